"""The trace: an index of the calls that left a stretch and that the agent's own words don't carry.

Law: a pure text of one stretch, within a budget of bytes. A line is about one target, and names its calls by tool and
address, what came of them, and the names that stand in them; nothing of it is put into other words, and no name is
added that the agent wrote itself in that stretch. What gets a place is what agents go on to use, as docs/bench.md
measures it: names that the agent put into a call before those that a result showed, names of several calls before
those of one, late ones before early ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import sqrt
from operator import itemgetter
from typing import NamedTuple

from . import spans, specifics
from .blocks import ToolCall

_LONGEST, _LAST = 70, 40  # characters of an error's head, of an only or a last line
_ASKED, _HEAD, _TAIL = 20_000, 4_000, 2_000  # characters that are looked at: of arguments, of a result's ends
_READ = 100_000  # characters of results that are looked at in one stretch
_SHOWN = 0.2  # what a name that only a result showed counts against one of a call
_FIRST = 0.3  # … and one of the stretch's first call against one of its last
_CRUMB = 8  # bytes of a budget that are not worth looking for what fits
_CALL = 25  # bytes that a call takes at least: its address and what stands around it
_WRAPPED = ("output", "result", "stdout", "stderr", "error")
_COMMANDING = re.compile(rb'"(?:command|cmd|script|chars)"')
_CONTROL = re.compile(r"[\x00-\x1f\x7f\u0080-\u009f\u2028\u2029\ud800-\udfff]+")


def index(calls: Sequence[tuple[int, ToolCall]], total: int, said: Iterable[str], budget: int) -> tuple[list[str], int]:
    """The trace's lines, those whose last call is the oldest first, and how many targets have none.

    Args:
        calls: the calls to be indexed, each with its number among those of the stretch.
        total: how many calls the stretch had.
        said: what the agent said in the stretch.
        budget: bytes that the lines may weigh in a JSON body.
    """
    spoken = frozenset().union(*map(specifics.specifics, said))
    targets: dict[str, _Target] = {}
    count: dict[str, int] = {}  # in how many calls a name stands
    home: dict[str, _Target | None] = {}  # where a name goes: to every target that it was asked with, else to the last
    made: dict[int, int] = {}
    since = _since([call for _, call in calls])
    for place, (number, call) in enumerate(calls):
        value = specifics.read(call.arguments)
        aim = specifics.one_line(specifics.aim(value))
        target = targets.setdefault(aim, _Target(aim))
        asked = specifics.names(specifics.ends("\n".join(specifics.written(value)), _ASKED, _ASKED))
        told = specifics.names(specifics.ends(returned(call.result or ""), _HEAD, _TAIL)) if place >= since else {}
        for name in asked | told:
            count[name] = count.get(name, 0) + 1
            home[name] = None if name in asked or home.get(name, target) is None else target
        late = _FIRST + (1 - _FIRST) * (number + 1) / total
        asks = [name for name in asked if name not in spoken]
        tells = [name for name in told if name not in spoken and name not in asked]
        target.calls.append(_Held(call, late, asks, tells))
        made[id(target)] = number
    offers = [offer for target in targets.values() for offer in target.offers(count, home, spoken)]
    offers.sort(key=itemgetter(0), reverse=True)  # equals stay in their order
    for _, target, name in offers:
        if budget < _CRUMB:
            break
        budget -= target.take(name, budget)
    taken = [target for target in targets.values() if target.lines]
    taken.sort(key=lambda target: made[id(target)])
    return [target.text() for target in taken], len(targets) - len(taken)


def _since(calls: Sequence[ToolCall]) -> int:
    """The first call whose result is looked into: in a long stretch the late ones only, so that it takes no longer."""
    left = _READ
    for place in range(len(calls) - 1, -1, -1):
        left -= min(len(calls[place].result or ""), _HEAD + _TAIL)
        if left < 0:
            return place + 1
    return 0


class _Held(NamedTuple):
    """A call, how late it was made (up to 1), and the names in its arguments and, beside those, in its result."""

    call: ToolCall
    late: float
    asked: list[str]
    told: list[str]


@dataclass(slots=True)
class _Target:
    """The calls about one thing, and what the trace says of them.

    Attributes:
        aim: what they are about.
        calls: in order.
        lines: by call, what the line says of it: the names.
    """

    aim: str
    calls: list[_Held] = field(default_factory=list)
    lines: dict[int, list[str]] = field(default_factory=dict)
    _where: dict[str, list[int]] = field(default_factory=dict)
    _order: list[int] = field(default_factory=list)
    _heads: dict[int, str] = field(default_factory=dict)

    def offers(
        self, count: dict[str, int], home: dict[str, _Target | None], spoken: frozenset[str]
    ) -> list[tuple[float, _Target, str]]:
        """What the line could say: what a byte of it is worth, the target, and a name; with none, its last call."""
        own = specifics.names(self.aim)
        worth: dict[str, float] = {}
        for number, one in enumerate(self.calls):
            # Names that were written together are used together.
            together = one.late * sqrt(len(one.asked))
            for name in one.asked:
                if name not in own:
                    worth[name] = max(worth.get(name, 0.0), together)
                    self._where.setdefault(name, []).append(number)
            for name in one.told:
                if home[name] is self and name not in own:
                    shown = _SHOWN * one.late * (1 + (count[name] > 1)) * (0.25 if name[0].isdigit() else 1)
                    worth[name] = max(worth.get(name, 0.0), shown)
                    self._where.setdefault(name, []).append(number)
        # Of several calls those are named that hold the most: one address may stand for all of a file's names.
        weight = [0.0] * len(self.calls)
        for name, numbers in self._where.items():
            for number in numbers:
                weight[number] += worth[name]
        self._order = sorted(range(len(self.calls)), key=lambda number: (-weight[number], -number))
        late = self.calls[-1].late
        line = late * sum(name not in spoken for name in own) + 0.2
        found: list[tuple[float, _Target, str]] = [(line / (len(self.aim) + 45), self, "")]
        return found + [(worth[name] / (len(name) + 1), self, name) for name in sorted(worth)]

    def take(self, name: str, budget: int) -> int:
        """Put a name on the line, with the call that it stands in; returns the bytes that it took."""
        last = len(self.calls) - 1
        new = [] if self.lines else [last]
        number = last
        cost = len(name) + 1 if name else 0
        if name:
            where = self._where[name]
            known = [one for one in (*self.lines, *new) if one in where]
            number = known[0] if known else next(one for one in self._order if one in where)
            if not known:
                new.append(number)
        if cost + _CALL * len(new) > budget:
            return 0
        cost += (0 if self.lines else _weight(self.aim) + 2) + sum(_weight(self._head(one)) + 4 for one in new)
        if cost > budget:
            return 0
        for one in new:
            self.lines.setdefault(one, [])
        if name:
            self.lines[number].append(name)
        return cost

    def _head(self, number: int) -> str:
        if number not in self._heads:
            call = self.calls[number].call
            self._heads[number] = f"{call.name} {call.address} -> {brief(call, self.aim)}"
        return self._heads[number]

    def text(self) -> str:
        """The line."""
        parts = []
        for number in sorted(self.lines):
            names = " ".join(self.lines[number])
            parts.append(f"{self._head(number)}{': ' if names else ''}{names}")
        return f"{self.aim or '(no target)'}: {'; '.join(parts)}"


# What came of a call


def outcome(call: ToolCall) -> str:
    """What came of a call, in a few words of its own result: the error, the only line, or size and last line."""
    return _outcome(call, _LONGEST, last=True)


def brief(call: ToolCall, aim: str) -> str:
    """The same in fewer words: of many lines the last only where a command printed them, and without the target."""
    found = _outcome(call, _LONGEST, last=_COMMANDING.search(call.arguments, 0, 4_000) is not None)
    return found if call.error else short(found.replace(aim, "it") if len(aim) > 3 else found, _LAST)


def _outcome(call: ToolCall, size: int, *, last: bool) -> str:
    if call.result is None:
        return "no result"
    lines = list(filter(str.strip, returned(call.result).splitlines()))
    if not lines:
        return "error, empty" if call.error else "empty"
    if call.error:
        return f"error: {short(lines[0], _LONGEST)}"
    if len(lines) == 1:
        return short(lines[0], size)
    return f"{len(lines):,} lines{f', last: {short(lines[-1], size)}' if last else ''}"


def unreminded(result: str) -> str:
    """A result without the reminders that a client put behind it: they speak of the client, not of the call."""
    text = result.rstrip()
    while text.endswith("</system-reminder>") and (start := text.rfind("<system-reminder>")) >= 0:
        text = text[:start].rstrip()
    return text


def returned(result: str) -> str:
    """What a tool returned, without reminders; of a result that a client wrapped in JSON, its output."""
    text = unreminded(result)
    if text.startswith("{"):
        value = specifics.value_of(text.encode("utf-8", "surrogatepass"))
        found = [value[key] for key in _WRAPPED if isinstance(value.get(key), str)] if isinstance(value, dict) else []
        text = "\n".join(found) if found else text
    return text


def short(text: str, size: int) -> str:
    """One line of printable text: an agent must not take a tool's control characters for structure."""
    clean = _CONTROL.sub(" ", text).strip()
    return clean if len(clean) <= size else clean[: size - 1] + "…"


def _weight(text: str) -> int:
    """Bytes of a text in a JSON body, where what is not ASCII is escaped."""
    return len(spans.quote(text)) - 2
