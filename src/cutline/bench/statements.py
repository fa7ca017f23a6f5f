"""Measure 2: what the article says is lost first, and whether it is still in context after so many seams.

Law: pure. Statements are found by patterns and judged by hand: a label is the hash of a sentence, its kind and whether
the pattern was right, so that nothing anybody wrote is stored. Where a session has labels only the true ones count;
elsewhere all that the patterns find do, and their precision is printed beside.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from ..specifics import content
from .pieces import AGENT, HUMAN, Piece
from .strategies import TOLD, Context

MISTAKE, FAILED, CORRECTION, DECISION, RULE = (
    "admitted mistakes",
    "failed approaches",
    "corrections",
    "decisions with reasons",
    "human rules",
)
KINDS = (MISTAKE, FAILED, CORRECTION, DECISION, RULE)
SEAMS = (1, 2, 3, 5, 8)
_PATTERNS = {
    MISTAKE: r"\b(?:my|our) (?:\w+ )?(?:mistakes?|errors?|bugs?|fault|oversight|assumption was|miss|slip|typo)\b"
    r"|\bI(?:'d| had|'ve| have)? (?:was wrong|made an? \w*\s?(?:mistake|error)|missed|forgot\w*|overlooked|misread|"
    r"misunderstood|misjudged|should have|shouldn't have|accidentally|mistakenly|incorrectly|wrongly|broke"
    r"|introduced)\b"
    r"|\b(?:you're|you are) (?:absolutely |completely )?right\b|\bI apologi[sz]e\b|\bgood catch\b|\boops\b|\bsorry\b"
    r"|\bcaused by my\b|\bmy (?:earlier|previous|last|first) (?:\w+ )?(?:was|were|did|had|left|broke|missed)\b",
    FAILED: r"\b(?:did(?:n't| not)|does(?:n't| not)|won't|isn't going to) (?:work|help|fix)\b|\bfail(?:s|ed)? because\b"
    r"|\bstill (?:fail\w*|broken|wrong|hangs?)\b|\b(?:is|was|are)(?:n't| not) (?:enough|possible|supported|feasible)\b"
    r"|\bdead end\b|\btried\b.{3,80}\bbut\b|\bdoes(?:n't| not) support\b",
    CORRECTION: r"\bturns out\b|\bin fact\b|\b(?:actual|real|root) (?:cause|issue|problem|reason|bug|fix)\b"
    r"|\bcorrection\b"
    r"|\bactually,|\bI (?:previously|earlier|first|initially|originally) (?:said|thought|assumed|claimed|read|blamed)\b"
    r"|\bcontrary to\b|\bnot\b.{3,60}\bbut rather\b|\bnot an?\b.{3,40}[,;] (?:but|it)\b"
    r"|^\W*(?:(?:oh|but|hmm|no),? )?wait\b(?! for| until)"
    r"|\bmisleading\b",
    DECISION: r"\b(?:use|using|keep(?:ing)?|kept|go(?:ing)? with|decid\w+|chose|choos\w+|prefer\w*|skip\w*|avoid\w*"
    r"|stick\w*|leav(?:e|ing)|left|drop\w*|switch\w*|mov(?:e|ing)|treat\w*|reus\w*|pick\w*)\b.{3,250}?\b(?:because|since"
    r"|so that|so the|to avoid|rather than|instead of|in order to|otherwise)\b",
    RULE: r"\b(?:always|never|don't|do not|must(?:n't)?|make sure|should(?:n't| not)? |only use|please (?:use|avoid"
    r"|keep|do not)|prefer|avoid|instead of|let's not|remember to|stop \w+ing|no need to|not allowed|ensure)\b",
}
_FINDS = {kind: re.compile(pattern, re.I) for kind, pattern in _PATTERNS.items()}
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_SHORTEST, _LONGEST = 25, 400


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence that a pattern found.

    Attributes:
        kind: which of `KINDS`.
        piece: index of the piece that holds it.
        message: where it was said.
        text: the sentence.
    """

    kind: str
    piece: int
    message: int
    text: str

    @property
    def hash(self) -> str:
        """What it is known by in the labels."""
        return hashlib.sha256(f"{self.kind}\0{self.text}".encode("utf-8", "replace")).hexdigest()[:16]


Labels = Mapping[str, tuple[str, bool]]
"""By a statement's hash, its kind and whether it is one."""


def labels() -> Labels:
    """The labels that were made by hand."""
    text = resources.files(__package__).joinpath("labels.json").read_text(encoding="utf-8")
    return {hash_: (kind, bool(right)) for kind, judged in json.loads(text).items() for hash_, right in judged.items()}


def find(pieces: Sequence[Piece]) -> Iterator[Statement]:
    """Every statement that a pattern finds; of a sentence said several times each saying."""
    for number, piece in enumerate(pieces):
        if piece.kind not in (AGENT, HUMAN):
            continue
        kinds = (RULE,) if piece.kind == HUMAN else KINDS[:4]
        for sentence in _SENTENCE.split(piece.text):
            text = sentence.strip()
            if not _SHORTEST <= len(text) <= _LONGEST or text.startswith(("```", "|", "<")):
                continue
            for kind in kinds:
                if _FINDS[kind].search(text):
                    yield Statement(kind, number, piece.message, text)


def precision(given: Labels) -> dict[str, tuple[int, int]]:
    """Of each kind, how many labelled finds are true, and how many were labelled."""
    found: dict[str, tuple[int, int]] = {}
    for kind, right in given.values():
        true, all_ = found.get(kind, (0, 0))
        found[kind] = true + right, all_ + 1
    return found


def survival(
    pieces: Sequence[Piece],
    kept: Sequence[tuple[int, dict[str, Context]]],
    given: Labels,
) -> dict[str, Any]:
    """For each strategy, kind and number of seams crossed: how many statements are in context, and of how many.

    A summary is asked for the sentence itself, and ("in other words") for a line that has three fifths of its words.
    """
    said = list(find(pieces))
    judged = {one.hash for one in said if one.hash in given}
    if judged:
        said = [one for one in said if given.get(one.hash, ("", False))[1]]
    out: dict[str, Any] = {"labelled": bool(judged), "found": len(said), "kept": {}}
    places = [at for at, _ in kept]
    lines = {at: _bags(contexts[TOLD]) for at, contexts in kept if TOLD in contexts}
    for number, (at, contexts) in enumerate(kept):
        for one in said:
            if one.message >= at:
                continue
            crossed = number - sum(place <= one.message for place in places) + 1
            if crossed not in SEAMS:
                continue
            words = content(one.text)
            for name, context in contexts.items():
                _count(out, name, one.kind, crossed, context.holds(one.text))
                if name == TOLD:
                    alike = any(len(words & bag) >= max(3, 0.6 * len(words)) for bag in lines[at])
                    _count(out, f"{TOLD}, in other words", one.kind, crossed, alike or context.holds(one.text))
    return out


def _bags(context: Context) -> list[frozenset[str]]:
    return [content(line) for text in context.texts for line in text.split("\n") if line.strip()]


def _count(out: dict[str, Any], strategy: str, kind: str, crossed: int, holds: bool) -> None:
    cell = out["kept"].setdefault(strategy, {}).setdefault(kind, {}).setdefault(str(crossed), [0, 0])
    cell[0] += holds
    cell[1] += 1
