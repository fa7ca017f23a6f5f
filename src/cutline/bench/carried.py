"""Measure 1: of what was seen before a seam and used after it, how much is still in context, and who carries it.

Law: pure. Used is what the agent itself writes behind the seam, in its words or its calls; what a human or the client
wrote behind the seam before that is given away and does not count. Two specifics belong together when they stand on
one line or in one call before, and in one sentence or one call after.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from .pieces import AGENT, CALL, CARRIERS, DOCUMENT, HARNESS, HUMAN, RESULT, Names, Piece
from .strategies import Context, Unit, units_of

CATEGORIES = ("paths", "identifiers", "numbers", "hashes", "flags", "error texts")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")


def category(name: str) -> str:
    """What kind of specific a name is."""
    if name.startswith("-"):
        return "flags"
    if re.fullmatch(r"(?=.*\d)(?=.*[a-f])[0-9a-f]{7,64}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", name):
        return "hashes"
    if re.fullmatch(r"[A-Za-z.]*(?:Error|Exception|Warning|Failure)|E[A-Z]{4,}|SIG[A-Z]{3,}|E\d{3,}", name):
        return "error texts"
    if re.fullmatch(r"[\d.,:/+-]+(?:%|[A-Za-z]{1,3})?", name):
        return "numbers"
    if "/" in name or re.fullmatch(r"\.?[\w-]+(?:\.[\w-]+)*\.[a-z][a-z0-9]{0,4}", name):
        return "paths"
    return "identifiers"


@dataclass(slots=True)
class Wanted:
    """What the agent went on to use.

    Attributes:
        bits: the specifics, each with its own bit.
        shown: those of them that a result behind the seam showed before they were used.
        together: for each specific, the others that belong together with it, before and after.
    """

    bits: dict[int, int] = field(default_factory=dict)
    shown: set[int] = field(default_factory=set)
    together: dict[int, int] = field(default_factory=dict)

    @property
    def pairs(self) -> int:
        """How many pairs belong together."""
        return sum(mask.bit_count() for mask in self.together.values()) // 2


def wanted(pieces: Sequence[Piece], at: int, until: int, names: Names) -> Wanted:
    """What was seen before a seam and used between it and the next.

    Args:
        pieces: the history.
        at, until: the first message behind the seam, and the first that the next one answers for.
        names: the specifics by number.
    """
    before = [piece for piece in pieces if piece.message < at]
    seen = {name for piece in before for line in piece.lines for name in line.parts}
    given: set[int] = set()
    read: set[int] = set()
    used: dict[int, None] = {}
    found = Wanted()
    said: list[set[int]] = []
    for piece in pieces:
        if not at <= piece.message < until:
            continue
        parts = {name for line in piece.lines for name in line.parts}
        if piece.kind in (HUMAN, HARNESS):
            given |= parts
        elif piece.kind == RESULT:
            read |= parts
        elif piece.kind in (AGENT, CALL, DOCUMENT):
            written = [name for line in piece.lines for name in line.names if name in seen and name not in given]
            found.shown.update(name for name in written if name not in used and name in read)
            used.update(dict.fromkeys(written))
            said += _sentences(piece, names)
    found.bits = {name: 1 << number for number, name in enumerate(used)}
    after = relations(said, found.bits)
    prior = relations((unit.names for piece in before for unit in units_of(piece)), found.bits)
    spelled = {name: names.written[name] for name in used}
    for name, mask in after.items():
        mask &= prior.get(name, 0)
        # A path and its own end say one thing.
        for other, bit in found.bits.items():
            if mask & bit and (spelled[name] in spelled[other] or spelled[other] in spelled[name]):
                mask &= ~bit
        if mask:
            found.together[name] = mask
    return found


def _sentences(piece: Piece, names: Names) -> list[set[int]]:
    """What stands in one sentence of a text, or in one call."""
    if piece.kind != AGENT:
        return [{name for line in piece.lines for name in line.names}]
    return [set(names.line(sentence).names) for sentence in _SENTENCE.split(piece.text) if sentence]


def relations(units: Iterable[Iterable[int]], bits: dict[int, int]) -> dict[int, int]:
    """For each specific that is wanted, those that stand in one unit with it."""
    found: dict[int, int] = {}
    known: set[int] = set()
    for unit in units:
        held = [name for name in unit if name in bits]
        if len(held) < 2:
            continue
        mask = 0
        for name in held:
            mask |= bits[name]
        if mask in known:
            continue
        known.add(mask)
        for name in held:
            found[name] = found.get(name, 0) | (mask & ~bits[name])
    return found


@dataclass(frozen=True, slots=True)
class Score:
    """How a strategy does at one seam.

    Attributes:
        specifics, pairs: how many are still in context.
        unread: specifics in context, of those that no result behind the seam showed before they were used.
        size: bytes of the context.
        categories: by category, how many in context.
        carriers: by carrier, how many specifics it is the first to carry.
        paired: by carrier, how many pairs it is the first to carry.
    """

    specifics: int
    pairs: int
    unread: int
    size: int
    categories: dict[str, int]
    carriers: dict[str, int]
    paired: dict[str, int]


def score(context: Context, found: Wanted, names: Names) -> Score:
    """Hold a context against what the agent went on to use."""
    by_carrier: dict[str, list[Unit]] = {}
    for unit in context.units:
        by_carrier.setdefault(unit.carrier, []).append(unit)
    carried: set[int] = set()
    joined: dict[int, int] = {}
    pairs = 0
    carriers: dict[str, int] = {}
    paired: dict[str, int] = {}
    for carrier in CARRIERS:
        units = by_carrier.get(carrier)
        if not units:
            continue
        held = {name for unit in units for name in unit.names if name in found.bits}
        if more := len(held - carried):
            carriers[carrier] = more
        carried |= held
        for name, mask in relations((unit.names for unit in units), found.bits).items():
            joined[name] = joined.get(name, 0) | mask
        now = sum((mask & joined.get(name, 0)).bit_count() for name, mask in found.together.items()) // 2
        if now > pairs:
            paired[carrier] = now - pairs
        pairs = now
    categories = tally(carried, names)
    unread = len(carried - found.shown)
    return Score(len(carried), pairs, unread, context.size, categories, carriers, paired)


def tally(held: Iterable[int], names: Names) -> dict[str, int]:
    """How many specifics of each category."""
    kinds = [category(names.written[name]) for name in held]
    return {kind: kinds.count(kind) for kind in CATEGORIES if kind in kinds}
