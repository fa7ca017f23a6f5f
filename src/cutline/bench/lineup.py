"""Measure 3: from a context alone, which of ten texts did the agent write next?

Law: pure, and no model: the judge counts words. A candidate's score is the rarity of its words that stand in the
context, late ones counting more, for the root of its length. The nine others are the agent's own later texts of the
same session, the nearest in length: same project, same model, and none of them in any context. Words and specifics
are judged together and, once more, with the specifics masked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from math import log, sqrt
from typing import Any

from ..specifics import names, stem, stems
from .pieces import AGENT, Piece
from .seams import Seam
from .strategies import FULL, HOLES, Context

OTHERS = 9
KINDS = ("kept", "masked")
"""Judged with the specifics, and without."""
FOREIGN = "control: another agent"
_SHORTEST = 8  # words of a text that is worth recognising
_BEHIND = 2  # texts behind the true one that are passed over: they speak of the same


def at(pieces: Sequence[Piece], seam: Seam, contexts: Mapping[str, Context], salt: str) -> dict[str, Any] | None:
    """The rank (1 is best) of the true next text under each context, and under controls.

    Args:
        pieces: the history.
        seam: where it is cut.
        contexts: what each strategy leaves.
        salt: what decides between equals, and how the control is shuffled.

    Returns:
        None where there is no line-up: too few texts behind the seam.
    """
    shown = candidates(pieces, seam.message)
    if not shown:
        return None
    full, cut = contexts[FULL].texts, contexts[HOLES].texts
    mixed = sorted(cut, key=lambda text: hashlib.sha256(f"{salt}{text}".encode("utf-8", "replace")).digest())
    held = {name: context.texts for name, context in contexts.items()}
    held["control: shuffled"] = tuple(mixed)
    held["control: only the first quarter"] = full[: max(1, len(full) // 4)]
    held["control: nothing"] = ()
    return {
        kind: {name: rank(shown, texts, salt, masked=kind == "masked") for name, texts in held.items()}
        for kind in KINDS
    }


def candidates(pieces: Sequence[Piece], message: int) -> list[str]:
    """The true next text behind a place, and the nine others; empty where there are too few."""
    later = [
        piece.text
        for piece in pieces
        if piece.kind == AGENT and piece.message >= message and len(piece.text.split()) >= _SHORTEST
    ]
    if len(later) < OTHERS + 1 + _BEHIND:
        return []
    true, rest = later[0], [text for text in later[1 + _BEHIND :] if text != later[0]]
    rest.sort(key=lambda text: (abs(len(text) - len(true)), hashlib.sha256(text.encode("utf-8", "replace")).digest()))
    shown = [true, *dict.fromkeys(rest)][: OTHERS + 1]
    return shown if len(shown) > OTHERS else []


def rank(shown: Sequence[str], texts: Sequence[str], salt: str, *, masked: bool) -> int:
    """Where the first of some texts comes, by what stands in a context; equals are put in the order of a hash."""
    bags = [_bag(text, masked) for text in shown]
    rarity = {word: log(1 + len(bags) / sum(word in bag for bag in bags)) for bag in bags for word in bag}
    late = _late(texts, masked, rarity)
    scores = [sum(rarity[word] * late.get(word, 0.0) for word in sorted(bag)) / sqrt(len(bag) or 1) for bag in bags]
    ties = [hashlib.sha256(f"{salt}{number}".encode()).digest() for number in range(len(bags))]
    order = sorted(range(len(bags)), key=lambda number: (-scores[number], ties[number]))
    return order.index(0) + 1


def _bag(text: str, masked: bool) -> frozenset[str]:
    words = stems(text)
    if not masked:
        return words | frozenset(names(text))
    hidden = {stem(part) for name in names(text) for part in stems(name)}
    return words - hidden


def _late(texts: Sequence[str], masked: bool, wanted: Mapping[str, float]) -> dict[str, float]:
    """For each wanted word of a context, how late it stands last, from a half to 1."""
    found: dict[str, float] = {}
    total = sum(map(len, texts)) or 1
    passed = 0
    for text in texts:
        passed += len(text)
        late = 0.5 + passed / total / 2
        for word in _bag(text, masked) & wanted.keys():
            found[word] = late
    return found
