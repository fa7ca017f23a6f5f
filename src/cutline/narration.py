"""Narration: do the agent's own words carry a call and its result, once the call itself is gone?

Law: one definition, used everywhere. A call is narrated when visible text names its target and a reason or an
expectation before it (intent), and a specific or a verdict of its result after it (outcome); a call without
both is a hole. Pure and deterministic: words and results are looked at, never changed, and nothing is raised.

How it decides: `clauses` tells announcing from stating, `naming` knows what a call can be called by, `outcomes` holds
statements against the result. Filler words and the target's own words never count as a reason. docs/narration.md
says how often it is right.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace

from .blocks import Author, Event, Said, ToolCall
from .clauses import MOST, VAGUE, Clause, clauses, part, proposal
from .naming import Names, changes, names
from .outcomes import answered, judges
from .specifics import lazily, specifics, stands, stem, target, value_of

__all__ = [
    "Narration",
    "Verdict",
    "is_own",
    "judge",
    "review",
    "specifics",
    "spoken",
    "target",
]

# Our own tools

_OWN = lazily(r"(?:^|cutline[_.-]+)(?:say|recall)$|(?:^|[_.-])micro_handoff$")
_SAY = lazily(r"(?:^|cutline[_.-]+)say$")


def is_own(name: str) -> bool:
    """Whether a tool is one of ours (`micro_handoff`, `recall`, `say`), by its name as on the wire."""
    return _OWN().search(name) is not None


def spoken(name: str, arguments: bytes) -> str | None:
    """The words of a `say` call; None for any other tool, or where its arguments hold no text."""
    if not _SAY().search(name):
        return None
    value = value_of(arguments)
    text = value.get("text") if isinstance(value, dict) else None
    return text if isinstance(text, str) else None


# The verdict on one call


@dataclass(frozen=True, slots=True)
class Verdict:
    """How one call is narrated.

    Attributes:
        intent: words before it name its target and give a reason or an expectation.
        outcome: words after it carry a specific of its result, or a verdict that fits it.
        ritual: the words before it are only filler: they give no reason and state nothing (`review` says so).
    """

    intent: bool
    outcome: bool
    ritual: bool = False

    @property
    def hole(self) -> bool:
        """The call is not carried by words: intent or outcome is missing."""
        return not (self.intent and self.outcome)


def judge(call: ToolCall, before: str, after: str) -> Verdict:
    """Judge one call by the agent's words around it.

    Args:
        call: the call with its result.
        before: what the agent said since the batch of calls before, words between parallel calls included;
            the last 4,000 characters are looked at.
        after: what it said from the result on until the next batch; the first 4,000 characters are looked at.
    """
    said = clauses(before[-MOST:]) if before else ()
    heard = clauses(after[:MOST]) if after else ()
    found = any(clause.stated for clause in heard)
    changing = bool(said or found) and changes(call.arguments)
    return Verdict(_intends(call, said, changing), found and _tells(call, heard, changing))


Known = dict[tuple[ToolCall, str, str], bool]
_KNOWN: ContextVar[Known | None] = ContextVar("known", default=None)


@contextmanager
def remembering(known: Known) -> Iterator[None]:
    """What `is_hole` found is kept and not asked again: for whoever cuts one history at many places. For speed only."""
    token = _KNOWN.set(known)
    try:
        yield
    finally:
        _KNOWN.reset(token)


def is_hole(call: ToolCall, before: str, after: str) -> bool:
    """Whether `judge` finds a hole, in a third of its time: most calls have no intent, and then no more is asked."""
    known = _KNOWN.get()
    if known is None:
        return _is_hole(call, before, after)
    key = (call, before, after)
    if key not in known:
        known[key] = _is_hole(call, before, after)
    return known[key]


def _is_hole(call: ToolCall, before: str, after: str) -> bool:
    if not (before and after):
        return True
    changing = changes(call.arguments)
    if not _intends(call, clauses(before[-MOST:]), changing):
        return True
    heard = clauses(after[:MOST])
    return not (any(clause.stated for clause in heard) and _tells(call, heard, changing))


def _intends(call: ToolCall, said: Sequence[Clause], changing: bool) -> bool:
    """Whether the words before a call name its target and give a reason or an expectation."""
    if not _reasoned(said, None, changing):
        return False
    known = names(call.name, call.arguments)
    return known.within(*(clause.whole for clause in said)) and _reasoned(said, known, changing)


def _tells(call: ToolCall, heard: Sequence[Clause], changing: bool) -> bool:
    """Whether the words after a call carry a specific of its result, or a verdict that fits it."""
    return answered(heard, names(call.name, call.arguments), call, changing)


def _reasoned(said: Iterable[Clause], known: Names | None, changing: bool) -> bool:
    """Whether words give a reason or an expectation: something beyond announcing and beyond the target.

    Of an edit, the change that is announced is reason enough: it is what the call was for.
    """
    for clause in said:
        if any(text and _weight(text, known) >= least for text, least in clause.reasons):
            return True
        if changing and clause.change and _weight(clause.change, known, clause.telling) >= (1 if clause.telling else 2):
            return True
    return False


def _weight(text: str, known: Names | None, telling: bool = False) -> int:
    """How much is said: content words and specifics, without the target's own.

    Where a change is told, its specifics stand in the call and count.
    """
    words, specific = part(text)
    words -= VAGUE
    if known is None:
        return len(words) + len(specific)
    own = known.about if telling else known.text
    new = sum(not stands(name, own) and frozenset((stem(name.lower()),)) not in known.files for name in specific)
    return len((words - known.words).difference(*known.files)) + new


# Whole histories


@dataclass(frozen=True, slots=True)
class Narration:
    """How a history is narrated.

    Attributes:
        verdicts: the verdict on each call, in order, without the calls of our own tools.
        ritual: how many batches of calls have words before them that are only filler: no reason, nothing stated.
        by_tool: by tool name, how many calls and how many holes.
    """

    verdicts: tuple[Verdict, ...]
    ritual: int
    by_tool: Mapping[str, tuple[int, int]]

    @property
    def calls(self) -> int:
        """Calls, without those of our own tools."""
        return len(self.verdicts)

    @property
    def intent(self) -> int:
        """How many calls have an intent."""
        return sum(verdict.intent for verdict in self.verdicts)

    @property
    def outcome(self) -> int:
        """How many calls have an outcome."""
        return sum(verdict.outcome for verdict in self.verdicts)

    @property
    def holes(self) -> tuple[int, ...]:
        """Indices of the calls without both, in order."""
        return tuple(number for number, verdict in enumerate(self.verdicts) if verdict.hole)

    @property
    def coverage(self) -> float:
        """Share of the calls without a hole; 1.0 where there is no call."""
        return 1.0 if not self.verdicts else 1.0 - len(self.holes) / self.calls


@dataclass(slots=True)
class _Batch:
    """Parallel calls, and the agent's words around them in runs: the human's words end a run."""

    number: int
    before: list[list[str]]
    after: list[list[str]]
    calls: list[ToolCall]


def review(events: Sequence[Event]) -> Narration:
    """Judge every call of a history.

    Parallel calls share the words before and after their batch; words between them stand before. Where the
    human spoke between two batches, the agent's words there are several runs: the batch before has the first
    of them, the batch behind has the last, and if the human spoke after it, only what it proposes at its end (a
    result is answered first, a call is announced last). Calls of our own tools are not counted, though
    `micro_handoff` and `recall` part the words as any batch does; a `say` call's text is words, standing before
    the calls that it was made in parallel with.

    Args:
        events: the history in order; the human's words are `Said` with that author.
    """
    verdicts: list[Verdict] = []
    by_tool: dict[str, tuple[int, int]] = {}
    rituals = 0
    for batch in _batches(events):
        before, after = _words(reversed(batch.before)), _words(batch.after)
        ritual = bool(batch.calls and before) and _empty(before, batch.calls)
        rituals += ritual
        if before and not any(batch.before[-1]):
            before = proposal(before)
        for call in batch.calls:
            verdict = judge(call, before, after)
            verdicts.append(replace(verdict, ritual=True) if ritual else verdict)
            calls, holes = by_tool.get(call.name, (0, 0))
            by_tool[call.name] = (calls + 1, holes + verdict.hole)
    return Narration(tuple(verdicts), rituals, by_tool)


def _empty(before: str, calls: Iterable[ToolCall]) -> bool:
    """Whether words before calls are only filler: no reason, and nothing stated: no specific, figure or verdict."""
    said = clauses(before[-MOST:])
    for call in calls:
        changing = changes(call.arguments)
        if _reasoned(said, None, changing) and _reasoned(said, names(call.name, call.arguments), changing):
            return False
    stated = [clause.stated for clause in said if clause.stated]
    return not any(part(text).names or re.search(r"\d", text) or judges(text) for text in stated)


def _batches(events: Iterable[Event]) -> list[_Batch]:
    runs: list[list[str]] = [[]]
    batches: list[_Batch] = []
    for event in events:
        if isinstance(event, Said):
            if event.author is Author.AGENT:
                runs[-1].append(event.text)
            elif event.author is Author.HUMAN:
                runs.append([])
            continue
        last = batches[-1] if batches else None
        words = spoken(event.name, event.arguments)
        if last is None or event.batch != last.number:
            if words is not None:
                runs[-1].append(words)
                continue
            last = _Batch(event.batch, runs, [[]], [])
            batches.append(last)
            runs = last.after
        elif any(runs):
            # Between parallel calls: nothing has come back yet, so these words stand before.
            last.before += runs
            last.after = runs = [[]]
        if words is not None:
            last.before.append([words])
        elif not is_own(event.name):
            last.calls.append(event)
    return batches


def _words(runs: Iterable[list[str]]) -> str:
    """The first run that has words."""
    return next((text for run in runs if (text := "\n\n".join(run).strip())), "")
