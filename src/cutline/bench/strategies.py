"""What each strategy leaves of a history at a seam.

Law: pure functions of the same pieces. A context is lines with who carries them; nothing else of a strategy is judged.
Each does what its makers publish and no more: docs/bench.md has the sources.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .. import spans
from .. import trace as traces
from ..blocks import ToolCall
from ..narration import is_own
from ..plan import Options, Plan, make
from ..wire.anthropic import Request
from .pieces import AGENT, CALL, DOCUMENT, HARNESS, HUMAN, NOTICE, RESULT, SUMMARY, THINKING, Line, Names, Piece
from .seams import Seam

WORDS = (AGENT, HUMAN, HARNESS, DOCUMENT)
FULL, CALLS, NONE, HOLES, ALL = "full", "all calls kept", "words alone", "micro-handoff", "micro-handoff, trace all"
SMALL, CALL_HEADS = "micro-handoff, trace of 2 %", "words and heads of calls"
CLEAR, CLEAR_INPUTS, MASK = "clear tool uses", "clear tool uses and inputs", "observation masking"
WINDOW, ENDS, LINES, TOLD = "sliding window", "head and tail", "random lines", "client's summary"
WORDS_AND_LINES, FEW_LINES = "words and random lines", "words and random lines, 2 %"
NAMES = (
    *(FULL, NONE, HOLES, ALL, SMALL, CLEAR, CLEAR_INPUTS, MASK, WINDOW, ENDS, LINES, WORDS_AND_LINES, FEW_LINES),
    *(TOLD, CALL_HEADS, CALLS),
)
_SMALL = 0.02
_CALL_HEAD = 200  # characters of a call
KEPT_USES, KEPT_TURNS = 3, 10
_PLACEHOLDER = 80  # bytes: about what stands in a cleared result's place, and what wraps a result


class Unit(NamedTuple):
    """What stands together: a line, or a call's arguments.

    Attributes:
        carrier: as in `pieces.CARRIERS`.
        names: the specifics in it.
    """

    carrier: str
    names: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Context:
    """What is left at a seam.

    Attributes:
        strategy: its name.
        units: what stands together in it.
        size: bytes, wrapping included.
        texts: its texts, those that were added (the notice, the summary) among them.
    """

    strategy: str
    units: tuple[Unit, ...]
    size: int
    texts: tuple[str, ...] = ()

    def holds(self, text: str) -> bool:
        """Whether a text stands in it as it was written."""
        return any(text in held for held in self.texts)


def contexts(request: Request, pieces: Sequence[Piece], seam: Seam, names: Names, salt: str) -> dict[str, Context]:
    """Every strategy's context at a seam; those that can't be applied there are left out.

    Args:
        request, pieces: the history.
        seam: where it is cut.
        names: the numbers of the specifics.
        salt: what random lines are drawn by, beside their place.

    Raises:
        Refused: the history can't be cut there.
    """
    before = [piece for piece in pieces if piece.message < seam.message]
    found = {FULL: whole(FULL, before)}
    plans = {name: _plan(request, seam, trace) for name, trace in ((NONE, "none"), (HOLES, "holes"), (ALL, "all"))}
    for name, plan in plans.items():
        found[name] = micro_handoff(name, plan, before, names)
    kept = _kept(plans[NONE], before)
    budget = found[HOLES].size
    found[CALLS] = whole(CALLS, [*kept, *(piece for piece in before if piece.kind == CALL and piece not in kept)])
    found[CLEAR] = clear_tool_uses(before, inputs=False)
    found[CLEAR_INPUTS] = clear_tool_uses(before, inputs=True)
    found[MASK] = masked(before)
    found[WINDOW] = of_lines(WINDOW, before, _last(before, budget))
    found[ENDS] = of_lines(ENDS, before, _ends(before, budget))
    found[LINES] = of_lines(LINES, before, drawn(before, budget, salt))
    rest = [piece for piece in before if piece not in kept]
    allowed = int(_SMALL * sum(piece.size for piece in rest))
    found[SMALL] = _with_index(found[NONE], before, kept, names, allowed)
    for name, more in ((WORDS_AND_LINES, budget - found[NONE].size), (FEW_LINES, allowed)):
        found[name] = _with(name, found[NONE], of_lines("", rest, drawn(rest, max(0, more), salt)))
    heads = [names.line(f"{piece.name} {piece.text}"[:_CALL_HEAD]) for piece in rest if piece.kind == CALL]
    head_units = tuple(Unit(CALL, line.parts) for line in heads)
    found[CALL_HEADS] = _with(CALL_HEADS, found[NONE], Context("", head_units, sum(line.size for line in heads)))
    if seam.told is not None and seam.told.texts:
        tail = whole("", [piece for piece in before if piece.message in seam.told.kept])
        lines = [line for text in seam.told.texts for line in names.lines(text)]
        told = tuple(Unit(SUMMARY, line.parts) for line in lines if line.parts)
        size = sum(line.size for line in lines) + tail.size
        found[TOLD] = Context(TOLD, told + tail.units, size, seam.told.texts + tail.texts)
    return found


def _with(strategy: str, words: Context, more: Context) -> Context:
    return Context(strategy, words.units + more.units, words.size + more.size, words.texts + more.texts)


def _with_index(words: Context, before: Sequence[Piece], kept: Sequence[Piece], names: Names, allowed: int) -> Context:
    """The words with a trace of every call that left, as large as is allowed."""
    calls = [piece for piece in before if piece.kind == CALL and piece not in kept and not is_own(piece.name)]
    results = {piece.address: piece for piece in before if piece.kind == RESULT}
    made = []
    for piece in calls:
        got = results.get(piece.address)
        result, failed = (got.text, got.error) if got is not None else (None, False)
        made.append(ToolCall(piece.name, piece.raw, result, failed, piece.message, piece.address))
    said = [piece.text for piece in kept if piece.kind == AGENT]
    lines, _ = traces.index(list(enumerate(made)), len(made), said, allowed)
    text = "\n".join(lines)
    added = Context("", tuple(traced(text, before, names)), len(spans.quote(text)) - 2, (text,))
    return _with(SMALL, words, added)


def units_of(piece: Piece) -> Iterator[Unit]:
    """What stands together in a piece: a call's arguments, or each line of anything else."""
    if piece.kind in (CALL, DOCUMENT):
        yield Unit(piece.kind, tuple(dict.fromkeys(name for line in piece.lines for name in line.parts)))
    else:
        for line in piece.lines:
            if line.parts:
                yield Unit(piece.kind, line.parts)


def whole(strategy: str, kept: Iterable[Piece]) -> Context:
    """Pieces that stay as they are."""
    pieces = list(kept)
    units = tuple(unit for piece in pieces for unit in units_of(piece))
    return Context(strategy, units, sum(piece.size for piece in pieces), tuple(piece.text for piece in pieces))


def _plan(request: Request, seam: Seam, trace: str) -> Plan:
    return make(request, Options(at=seam.message, session=True, trace=trace))  # type: ignore[arg-type]


def _kept(plan: Plan, before: Sequence[Piece]) -> list[Piece]:
    return [piece for piece in before if (piece.message, piece.block) not in plan.drop]


def micro_handoff(strategy: str, plan: Plan, before: Sequence[Piece], names: Names) -> Context:
    """The words, what the contract keeps beside them, and the notice that the cut itself makes.

    A specific counts for the notice only on a line that names its own call, by address.
    """
    kept = _kept(plan, before)
    words = whole(strategy, kept)
    texts = [added.text for key in plan.add for added in plan.add[key] if added.source is None]
    text = "\n".join([*texts, plan.last_notice or ""])
    size = words.size + len(spans.quote(text)) - 2
    return Context(strategy, words.units + tuple(traced(text, before, names)), size, (*words.texts, text))


def traced(text: str, before: Iterable[Piece], names: Names) -> Iterator[Unit]:
    """What a trace's lines carry: on each the specifics that its own call holds, where it names target and outcome."""
    own: dict[str, set[int]] = {}
    for piece in before:
        if piece.address:
            own.setdefault(piece.address, set()).update(name for line in piece.lines for name in line.parts)
    for written in text.split("\n"):
        held: set[int] = set()
        for address in re.findall(r"\b[0-9a-f]{16}\b", written):
            held |= own.get(address, set())
        if held and " -> " in written:
            found = tuple(name for name in names.line(written).parts if name in held)
            if found:
                yield Unit(NOTICE, found)


def clear_tool_uses(before: Sequence[Piece], *, inputs: bool) -> Context:
    """The provider's own clearing: all results but those of the last three calls give way to a line, calls stay
    unless their inputs are cleared too."""
    calls = [piece for piece in before if piece.kind == CALL and not is_own(piece.name)]
    last = {(piece.message, piece.block) for piece in calls[-KEPT_USES:]}
    kept_results = {piece.address for piece in calls[-KEPT_USES:]}
    kept, size = [], 0
    for piece in before:
        if (piece.kind == RESULT and piece.address not in kept_results) or (
            piece.kind == CALL and inputs and (piece.message, piece.block) not in last
        ):
            size += _PLACEHOLDER
        else:
            kept.append(piece)
    name = CLEAR_INPUTS if inputs else CLEAR
    left = whole(name, kept)
    return Context(name, left.units, left.size + size, left.texts)


def masked(before: Sequence[Piece]) -> Context:
    """Observation masking: what the tools returned gives way to a line, but for the last ten turns that called any."""
    turns = sorted({piece.message for piece in before if piece.kind == CALL})[-KEPT_TURNS:]
    since = turns[0] if turns else 0
    kept = [piece for piece in before if piece.kind != RESULT or piece.message > since]
    left = whole(MASK, kept)
    return Context(MASK, left.units, left.size + _PLACEHOLDER * (len(before) - len(kept)), left.texts)


def of_lines(strategy: str, before: Sequence[Piece], chosen: Iterable[tuple[int, int]]) -> Context:
    """Lines of the history, given as (piece, line); those of one call stand together."""
    units: list[Unit] = []
    calls: dict[int, list[int]] = {}
    texts: dict[int, list[str]] = {}
    split: dict[int, list[str]] = {}
    size = 0
    for number, index in sorted(chosen):
        piece, line = before[number], before[number].lines[index]
        size += line.size
        if number not in split:
            split[number] = piece.text.split("\n")
        texts.setdefault(number, []).append(split[number][index])
        if piece.kind in (CALL, DOCUMENT):
            calls.setdefault(number, []).extend(line.parts)
        elif line.parts:
            units.append(Unit(piece.kind, line.parts))
    units += [Unit(before[number].kind, tuple(dict.fromkeys(held))) for number, held in calls.items()]
    return Context(strategy, tuple(units), size, tuple(map("\n".join, texts.values())))


def _all_lines(before: Sequence[Piece]) -> list[tuple[int, int, Line]]:
    return [
        (number, index, line)
        for number, piece in enumerate(before)
        if piece.kind != THINKING
        for index, line in enumerate(piece.lines)
        if line.size > 1
    ]


def _upto(lines: Iterable[tuple[int, int, Line]], budget: int) -> list[tuple[int, int]]:
    """The first lines that fit; the one that does not fit ends it."""
    found, spent = [], 0
    for number, index, line in lines:
        spent += line.size
        if spent > budget:
            break
        found.append((number, index))
    return found


def _last(before: Sequence[Piece], budget: int) -> list[tuple[int, int]]:
    return _upto(reversed(_all_lines(before)), budget)


def _ends(before: Sequence[Piece], budget: int) -> set[tuple[int, int]]:
    lines = _all_lines(before)
    return {*_upto(lines, budget // 2), *_upto(reversed(lines), budget // 2)}


def drawn(before: Sequence[Piece], budget: int, salt: str) -> list[tuple[int, int]]:
    """Lines drawn at random, that is in the order of a hash of their place; one that does not fit is passed over."""
    lines = _all_lines(before)
    order = sorted(
        lines, key=lambda one: hashlib.sha256(f"{salt} {before[one[0]].message} {one[0]} {one[1]}".encode()).digest()
    )
    found, spent = [], 0
    for number, index, line in order:
        if spent + line.size <= budget:
            spent += line.size
            found.append((number, index))
    return found
