"""Clauses: the agent's words one by one, and what each says beyond announcing.

Law: a clause that only announces ("let me …", "now run …", "fixing …") says nothing but what stands behind its
"because", "whether", "to …". Words are looked at, never changed. It knows English; elsewhere announcing and stating
are not told apart.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from .specifics import content, lazily, specifics, stem

MOST = 4_000
"""Characters of words that are looked at."""
_BREAK = lazily(r"(?<=[.!?;:])[*_\"')]*\s+|(?<!\s)\s*\n\s*|(?<!\s)\s+[\u2014\u2013-]+\s+|\u2014")
_LEAD = (
    r"[\s*_>#\"'(\d.)-]*(?:(?:ok|okay|good|great|perfect|excellent|nice|alright|right|sure|yes|now|next|then|first|"
    r"second|third|finally|also|and|so|but|meanwhile|done|thanks|here|currently)\b[\s,!.:;]*)*"
)
_STATES = r"(?:\w{3,}ed|pass\w*|fail\w*|succe\w*|is|was|are|were|has|had|hits?|broke|clean|ok|done|errors?|says?)\b"
_PLAN = lazily(
    rf"{_LEAD}(?:(?:please )?(?:let me|let's|let us)\b"
    r"|(?:i|we)(?:'ll| will| want to| need to| have to| should| can(?! see| tell| say| confirm)|'d like to|"
    r"'m going to|'re going to)\b(?: (?:first|also|now|then|quickly|just|next|directly|start by))*"
    r"|(?:i'm|we're|i am|we are) (?:now |also |just |still )*\w+ing\b"
    r"|(?:going|time|about|ready|moving on) to\b"
    r"|(?!\w*thing\b|(?:during|missing|according|string|warning|remaining|existing|pending)\b)"
    rf"(?:re-?)?[a-z]{{2,}}ing\b(?! {_STATES})"
    r"|(?:re-?)?(?:check|read|run|look|verify|search|find|update|fix|write|create|edit|open|inspect|view|test|build|"
    r"commit|push|pull|install|try|use|apply|remove|replace|rename|move|start|launch|list|explore|examine|review|"
    r"confirm|continue|proceed|compile|implement|make|see|add|wire|drop|trim|get|fetch|format|retry)\b"
    rf"(?! {_STATES}))[\s,]*"
    # "Now" and any verb, but not "now the tests …"
    r"|[\s*_>#]*(?:ok|okay|good|great|perfect)?[\s,!.]*now,?\s+"
    r"(?!(?:the|all|its?|this|that|these|those|we|there|they|both|every\w*|i|no|only|my|our)\b)"
    rf"(?!\w+ {_STATES})[a-z-]+\b"
)
_TELLING = lazily(
    r"\b(?:add|remov|replac|renam|drop|delet|extract|split|wir|insert|inlin|flatten|fold|mov|switch|convert|mak|creat|"
    r"introduc|bump|wrap|strip|append|port|us|set|bring|put|trim)(?:e|ing|ting|ping|ding)?\b",
    re.I,
)
"""Verbs that say of a change what it is. "Update" and "fix" only say that there is one."""
_INTO = lazily(r"\b(?:to use|instead of|rather than)\b", re.I)
_BEHIND = 24  # characters behind "let me" in which its verb stands
_SINCE = r"because|since|given (?:that|how)|due to|as (?:it|they)|which means"
_CAUSE = lazily(rf"\b(?:{_SINCE})\b", re.I)
_STRONG = lazily(
    rf"\b(?:{_SINCE}|so that|in case|otherwise|whether|if|expect\w*|should|suspect|might|may be|probably|likely|"
    r"presumably|hypothesis|supposed|assum\w+|wonder|rather than|instead of|or else|"
    r"to (?:avoid|prevent|rule out|reproduce)|in order to|must)\b",
    re.I,
)
_WEAK = lazily(r"\b(?:to|for|so|how|why|where|what|which|when|before|after|until|by|as|that|against)\b", re.I)
_TYPED = (("\u2019", "'"), ("\u2018", "'"), ("\u201c", '"'), ("\u201d", '"'), ("\u2011", "-"))


class Clause(NamedTuple):
    """One clause.

    Attributes:
        whole: its text.
        change: of an announcement what stands behind its verb; "" for a statement.
        telling: that verb says what the change is.
        stated: what it states: all of it, or of an announcement only what stands behind its "because".
        reasons: the parts that may give a reason, each with the weight that makes it one.
    """

    whole: str
    change: str
    telling: bool
    stated: str
    reasons: tuple[tuple[str, int], ...]


@lru_cache(maxsize=8)  # a text stands after one batch of calls and before the next, for each of their calls
def clauses(text: str) -> tuple[Clause, ...]:
    """The clauses of a text, in order."""
    if not text.isascii():
        for fine, plain in _TYPED:
            text = text.replace(fine, plain)
    return tuple(_clause(clause) for clause in _BREAK().split(text) if clause and not clause.isspace())


def _clause(whole: str) -> Clause:
    plan = _PLAN().match(whole.lower())
    text = whole[plan.end() :] if plan else whole
    strong = _STRONG().search(text)
    if not plan:
        return Clause(whole, "", False, whole, ((whole, 2 if strong else 3),))
    verb = _TELLING().search(whole, 0, plan.end() + _BEHIND) or _INTO().search(text)
    cause, weak = (_CAUSE().search(text) if strong else None), _WEAK().search(text)
    return Clause(
        whole,
        verb.string[verb.end() :] if verb else text,
        verb is not None,
        text[cause.end() :] if cause else "",
        ((text[strong.end() :] if strong else "", 1), (text[weak.end() :] if weak else "", 2)),
    )


class Part(NamedTuple):
    """What some words say: stems of their content words, and their specifics."""

    words: frozenset[str]
    names: frozenset[str]


@lru_cache(maxsize=512)
def part(text: str) -> Part:
    """What some words say."""
    names, words = specifics(text), content(text)
    # The words inside a specific are no words of their own.
    return Part(words - content(" ".join(names)) if names else words, names)


VAGUE = frozenset(
    map(stem, ("overall", "status", "picture", "shape", "whole", "rest", "again", "confusion", "track", "progress"))
)
"""Content words that give no reason: "to see the overall status" is true of any call."""
_OFFERS = lazily(r"\?|\b(?:i'll|i will|want me|shall i|should i|i can|next|ready to|if you|i'd)\b", re.I)


def proposal(words: str) -> str:
    """What words propose that the human has answered: their last paragraph, if it offers something or plans it.

    Before it stands what was done: no announcement of a call that the human has not asked for yet.
    """
    last = words.rsplit("\n\n", 1)[-1]
    return last if _OFFERS().search(last) or any(clause.change for clause in clauses(last[-MOST:])) else ""
