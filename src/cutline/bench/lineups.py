"""The line-ups of one session, among other sessions: measure 3 needs more than one.

Law: pure but for reading the files. No words leave it: a rank for each text that was asked for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from . import lineup, pieces, strategies, whole
from .pieces import AGENT, HARNESS, HUMAN
from .session import key_of
from .whole import Source

SHUFFLED, QUARTER, NOTHING = "control: its texts shuffled", "control: only the first quarter", "control: nothing"
FOREIGN, FOREIGN_WORDS = "control: another agent, as many bytes", "control: another agent's words"
BESIDE = 3
"""How many other sessions a session is held against: the first one's context is the control, the others' words are
strangers'."""

Ranks = dict[int, dict[str, dict[str, list[int]]]]
"""By seam, kind of others and context: the rank of each text that the agent wrote next."""


class _Other(NamedTuple):
    """Another session: what stands before its last seam, as carrier and text; and the agent's texts."""

    before: tuple[tuple[str, str], ...]
    agent: tuple[str, ...]


@lru_cache(maxsize=2 * BESIDE)
def _other(source: Source) -> _Other:
    found = whole.read(*source)
    read = pieces.read(found.request, found.origins, pieces.Names())
    end = found.seams[-1].message if found.seams else len(found.request.messages)
    return _Other(
        tuple((piece.kind, piece.text) for piece in read if piece.message < end), tuple(lineup.worth_asking(read, 0))
    )


def ranks(source: Source, others: Sequence[Source], at: Collection[int]) -> Ranks:
    """The line-ups of a session.

    Args:
        source: the session.
        others: up to `BESIDE` other sessions; without any there are neither strangers nor their control.
        at: the seams that are measured.

    Raises:
        CutlineError: one of them can't be read.
    """
    found = whole.read(*source)
    names = pieces.Names()
    read = pieces.read(found.request, found.origins, names)
    key = key_of(found.request)
    strangers = [text for other in others[1:] for text in _other(other).agent]
    told: Ranks = {}
    for seam in found.seams:
        shown = lineup.line_ups(lineup.worth_asking(read, seam.message), strangers)
        if seam.message not in at or not any(shown.values()):
            continue
        contexts = strategies.contexts(found.request, read, seam, names, key)
        held: dict[str, Sequence[str]] = {name: context.texts for name, context in contexts.items()}
        full, cut = held[strategies.FULL], held[strategies.HOLES]
        held[SHUFFLED] = sorted(
            cut, key=lambda text: hashlib.sha256(f"{key}{text}".encode("utf-8", "replace")).digest()
        )
        held[QUARTER] = full[: max(1, len(full) // 4)]
        held[NOTHING] = ()
        if others:
            held[FOREIGN] = before(others[0], sum(map(len, cut)))
            held[FOREIGN_WORDS] = [text for kind, text in _other(others[0]).before if kind in (AGENT, HUMAN, HARNESS)]
        by_context = {name: lineup.ranks(shown, texts, f"{key} {seam.message} ") for name, texts in held.items()}
        kinds = {kind: None for each in by_context.values() for kind in each}
        told[seam.message] = {kind: {name: each[kind] for name, each in by_context.items()} for kind in kinds}
    return told


def before(source: Source, size: int) -> list[str]:
    """The last of what stands before a session's last seam, up to so many characters."""
    return list(_last((text for _, text in reversed(_other(source).before)), size))[::-1]


def _last(texts: Iterable[str], size: int) -> Iterator[str]:
    """The first of some texts, up to this many characters."""
    for text in texts:
        if size <= 0:
            return
        yield text[-size:]
        size -= len(text)
