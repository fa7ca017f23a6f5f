"""Measure 3: from a context alone, which of ten texts did the agent write next?

Law: pure, and no model: the judge is a ranking of passages by their words (BM25). A candidate's score is what the best
passages of a context hold of it, a word counting by its rarity there and among the ten, late passages more than early
ones. The nine others are the hard ones, the agent's own later texts of the same session (same project, same model), or
those of other sessions; always the nearest in length, and none of them in any context. All is judged with the
specifics and, once more, with the specifics masked.

The judge and what it must reach were chosen on the sessions that are not held out, and stand here as they were before
the held-out ones were judged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import log, sqrt
from typing import NamedTuple

from ..specifics import names, stem, stems
from .pieces import AGENT, Piece

OTHERS, TRUE = 9, 5
"""How many others stand beside the true text, and how many texts behind a seam are asked for, each by itself."""
LATER, STRANGERS, MASKED = "own later words", "other agents' words", ", specifics masked"
KINDS = tuple(f"{others}{masked}" for others in (LATER, STRANGERS) for masked in ("", MASKED))
TOLD_APART, NO_WORSE = 0.70, 0.03
"""What was to be reached, as means of one over the rank: under the micro-handoff the first beside other agents' words,
beside these and beside its own later words more than under another agent's context (the interval of 95 % above 0), and
beside its own later words less than under everything by no more than the second."""
_SHORTEST = 8  # words of a text that is worth recognising
_BEHIND = 2  # texts behind the true ones that are passed over: they speak of the same
_PASSAGE = 600  # characters
_BEST = 10  # passages that count
_EARLY = 0.5  # what a context's first passage counts against its last
_OFTEN, _LONG = 1.2, 0.75  # BM25's own: how soon a word's weight is full, how much a passage's length counts


class Bag(NamedTuple):
    """The words of a text, and those of them that are no part of a specific."""

    all: frozenset[str]
    masked: frozenset[str]


@lru_cache(maxsize=8_192)
def bag(text: str) -> Bag:
    """Stems and specifics of a text."""
    words, specific = stems(text), frozenset(names(text))
    return Bag(words | specific, words - {stem(part) for name in specific for part in stems(name)})


def worth_asking(pieces: Iterable[Piece], message: int) -> list[str]:
    """The agent's texts from a message on that are long enough to be recognised."""
    return [
        piece.text
        for piece in pieces
        if piece.kind == AGENT and piece.message >= message and len(piece.text.split()) >= _SHORTEST
    ]


def among(true: str, others: Iterable[str]) -> list[str]:
    """The true text and the nine others that are nearest to it in length; empty where there are too few."""
    rest = [text for text in dict.fromkeys(others) if text != true]
    rest.sort(key=lambda text: (abs(len(text) - len(true)), hashlib.sha256(text.encode("utf-8", "replace")).digest()))
    return [true, *rest[:OTHERS]] if len(rest) >= OTHERS else []


def line_ups(later: Sequence[str], strangers: Sequence[str]) -> dict[str, list[list[str]]]:
    """By kind of others, the line-ups of a seam: in each the true text comes first.

    Args:
        later: the agent's texts behind the seam.
        strangers: texts of other sessions.
    """
    few = len(later) < TRUE + _BEHIND + OTHERS
    own = [among(true, later[(number + 1 if few else TRUE) + _BEHIND :]) for number, true in enumerate(later[:TRUE])]
    foreign = [among(true, strangers) for true in later[:TRUE]]
    return {LATER: [shown for shown in own if shown], STRANGERS: [shown for shown in foreign if shown]}


def ranks(shown: Mapping[str, Sequence[Sequence[str]]], texts: Sequence[str], salt: str) -> dict[str, list[int]]:
    """The rank (1 is best) of the true text of each line-up under a context, by kind."""
    held = [bag(passage) for passage in cut_up(texts)]
    whole, masked = [one.all for one in held], [one.masked for one in held]
    found: dict[str, list[int]] = {}
    for others, each in shown.items():
        for number, ten in enumerate(each):
            bags = list(map(bag, ten))
            for kind, words, passages in (
                (others, [one.all for one in bags], whole),
                (f"{others}{MASKED}", [one.masked for one in bags], masked),
            ):
                found.setdefault(kind, []).append(rank(words, passages, f"{salt}{number}"))
    return found


def cut_up(texts: Iterable[str]) -> list[str]:
    """Texts as passages."""
    return [text[at : at + _PASSAGE] for text in texts for at in range(0, len(text), _PASSAGE)]


def rank(shown: Sequence[frozenset[str]], passages: Sequence[frozenset[str]], salt: str) -> int:
    """Where the first of some candidates comes, by what the passages hold; equals stand in the order of a hash."""
    told = scores(shown, passages)
    ties = [hashlib.sha256(f"{salt}{number}".encode()).digest() for number in range(len(shown))]
    return sorted(range(len(shown)), key=lambda number: (-told[number], ties[number])).index(0) + 1


def scores(shown: Sequence[frozenset[str]], passages: Sequence[frozenset[str]]) -> list[float]:
    """What the judge says of each candidate."""
    asked: dict[str, int] = {}
    for words in shown:
        for word in words:
            asked[word] = asked.get(word, 0) + 1
    held = [passage & asked.keys() for passage in passages]
    within: dict[str, int] = {}
    for words in held:
        for word in words:
            within[word] = within.get(word, 0) + 1
    count = len(passages)
    weight = {
        word: log(1 + (count - found + 0.5) / (found + 0.5)) * log(len(shown) / asked[word])
        for word, found in within.items()
    }
    mean = sum(map(len, passages)) / count if count else 1.0
    best: list[list[float]] = [[] for _ in shown]
    for number, words in enumerate(held):
        if not words:
            continue
        late = _EARLY + (1 - _EARLY) * (number + 1) / count
        full = late * (_OFTEN + 1) / (1 + _OFTEN * (1 - _LONG + _LONG * len(passages[number]) / mean))
        for one, candidate in enumerate(shown):
            # In a fixed order: a sum of floats depends on it, and a set's order on the process.
            if both := sorted(words & candidate):
                best[one].append(full * sum(weight[word] for word in both))
    return [
        sum(sorted(found, reverse=True)[:_BEST]) / sqrt(len(candidate) or 1)
        for found, candidate in zip(best, shown, strict=True)
    ]
