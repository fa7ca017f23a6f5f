"""Measure 6, an extra that costs money: a real model fills in blanks from each context, and is graded exactly.

Law: pure but for reading the file; who is asked comes from outside. A blank is a specific that the agent used in a call
behind a seam, that stood before it, and that nothing behind it gave away; the line around it is the agent's own. An
answer counts when it is that text, to the letter.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from ..seam import Refused
from . import carried, pieces, strategies, whole
from .pieces import CALL, Piece
from .session import key_of
from .whole import Source

Ask = Callable[[str], str]
"""A prompt in, the model's words out."""
CONTEXTS = (strategies.HOLES, strategies.NONE, strategies.TOLD)
NOTHING = "no context"
MOST, LARGEST = 5, 400_000
"""Blanks for each session; characters of a context from which on it is not sent."""
BLANK = "[____]"
_LINE = re.compile(r"(?m)^\W*(\d+)\s*[:.)]\s*(.*?)\s*$")
_LEAST, _LONGEST = 3, 240  # words and characters of a line with a blank


class Probe(NamedTuple):
    """A line of a later call with a blank in it, and what belongs there."""

    line: str
    answer: str


def of(history: Sequence[Piece], at: int, until: int, names: pieces.Names, salt: str) -> list[Probe]:
    """The blanks at a seam, drawn by a hash; none gives away another.

    Args:
        history: the history.
        at, until: the first message behind the seam, and the first that the next one answers for.
        names: the specifics by number.
        salt: what they are drawn by, beside their words.
    """
    wanted = carried.wanted(history, at, until, names)
    unseen = set(wanted.bits) - wanted.shown
    found: dict[str, Probe] = {}
    for piece in history:
        if piece.kind != CALL or not at <= piece.message < until:
            continue
        for text, line in zip(piece.text.split("\n"), piece.lines, strict=True):
            for name in map(names.written.__getitem__, unseen.intersection(line.names)):
                blanked = text.strip().replace(name, BLANK)
                if len(blanked.split()) >= _LEAST and len(blanked) <= _LONGEST:
                    found.setdefault(name, Probe(blanked, name))
    drawn = sorted(found.values(), key=lambda one: hashlib.sha256(f"{salt}{one}".encode("utf-8", "replace")).digest())
    chosen: list[Probe] = []
    for one in drawn:
        told = (one.line == other.line or one.answer in other.line or other.answer in one.line for other in chosen)
        if len(chosen) < MOST and not any(told):
            chosen.append(one)
    return chosen


def prompt(texts: Iterable[str], probes: Sequence[Probe]) -> str:
    """What is asked: the context, then the lines with their blanks."""
    lines = "\n".join(f"{number}: {probe.line}" for number, probe in enumerate(probes, 1))
    return (
        "This is what is left of a coding session's context:\n\n" + "\n\n".join(texts) + "\n\n"
        f"Each line below is from a command or an edit that the agent made next, with one text left out as {BLANK}. "
        "Answer with a line for each, its number, a colon and the exact text that belongs in the blank, nothing else.\n"
        f"{lines}"
    )


def right(answers: str, probes: Sequence[Probe]) -> int:
    """How many blanks are filled in to the letter; quotes around an answer don't count against it."""
    told = {int(number): text.strip("`\"'") for number, text in _LINE.findall(answers)}
    return sum(told.get(number) == probe.answer for number, probe in enumerate(probes, 1))


def measure(source: Source, ask: Ask) -> Mapping[str, tuple[int, int]] | None:
    """For each context at a session's first seam, how many blanks were filled in, and of how many.

    Raises:
        CutlineError: the session can't be read.
    """
    found = whole.read(*source)
    if not found.seams:
        return None
    seam, names, key = found.seams[0], pieces.Names(), key_of(found.request)
    read = pieces.read(found.request, found.origins, names)
    probes = of(read, seam.message, seam.until, names, key)
    if not probes:
        return None
    try:
        contexts = strategies.contexts(found.request, read, seam, names, key)
    except Refused:
        return None
    held: dict[str, Sequence[str]] = {NOTHING: ()}
    held |= {name: contexts[name].texts for name in CONTEXTS if name in contexts}
    return {
        name: (right(ask(prompt(texts, probes)), probes), len(probes))
        for name, texts in held.items()
        if sum(map(len, texts)) <= LARGEST
    }


def summarise(rows: Iterable[Mapping[str, tuple[int, int]]]) -> dict[str, list[int]]:
    """By context, blanks filled in and blanks, over all sessions."""
    out: dict[str, list[int]] = {}
    for row in rows:
        for name, (hits, asked) in row.items():
            before = out.get(name, [0, 0])
            out[name] = [before[0] + hits, before[1] + asked]
    return out
