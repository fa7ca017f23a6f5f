"""Whether the record shows what a claim says: its evidence names a recorded call, and its figures stand in the result.

Law: pure; a claim and calls go in, "" or one short reason comes out. It looks for what speaks *against* a claim and
does not understand it: a claim whose evidence was run and whose figures stand is taken as shown. English number words
are read; a count is held against the noun that it counts. docs/checkpoint.md has the measured rates.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from .blocks import ToolCall
from .checkpoint import Fact
from .specifics import content, specifics, stem, texts, value_of

_ADDRESS = re.compile(r"\b[0-9a-f]{16}\b")
_BLANKS = re.compile(r"\s+")
_PLACE = re.compile(r"[\w./~-]*\.\w+:\d+\b|\b[\w-]+=[-+]?[\w.]+")  # a file's line, a key with its value
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?)?|\d\d:\d\d:\d\d|\b\d+(?:st|nd|rd|th)\b")
# Nothing in it is tried again: a result may hold a hundred thousand digits in a row.
_NUMBER = re.compile(r"(?<![\w.,:/-])-?\d[\d,]*+(?:\.\d++)?+(?!\w*+[./_-]\w)")
_WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_SPELT = re.compile(rf"\b(?:{'|'.join(_WORDS)})\b", re.I)
_NEXT = re.compile(r"[^\W\d_]{3,}")
_LONGEST = 4_000  # characters of a claim and of its evidence that are looked at
_SMALL = 100  # a number below stands in many results; it counts with its noun
_NEGATIVE = re.compile(
    r"\b(?:fail\w*|error\w*|broke\w*|crash\w*|wrong|reject\w*|refus\w*|missing|not|no|never|n't|red|abort\w*)\b", re.I
)
_FAILED = re.compile(
    r"\bexit(?:ed)?(?: with)?(?: status| code)?[:= ]+[1-9]|\b[1-9]\d* (?:failed|errors?)\b|\bTraceback \(", re.I
)


@dataclass(frozen=True, slots=True)
class _Figure:
    """A number of a claim, and stems of the words beside it that it may count."""

    number: str
    nouns: frozenset[str]


def doubt(fact: Fact, calls: Sequence[ToolCall]) -> str:
    """What speaks against a claim, in a few words; "" where the record shows it.

    Args:
        fact: the claim with its evidence.
        calls: the record's calls with their results, in order.
    """
    claim = fact.claim[:_LONGEST]
    named = _named(fact.evidence[:_LONGEST], calls)
    if named is None:
        return "no recorded call is its evidence"
    places, figures = _PLACE.findall(claim), _figures(_PLACE.sub(" ", claim))
    for pool in (named,) if named else (calls,):
        best: str | None = None
        for call in reversed(pool):
            missing = _missing(places, figures, call)
            if missing is None:
                best = ""
                break
            best = best or missing
        if best is None or (best == "" and not (named or places or figures)):
            return "it names no evidence"
        if best:
            return f"“{best}” stands in no result {'of that' if named else 'on record'}"
    last = named[-1] if named else None
    if last is not None and _failed(last) and not _NEGATIVE.search(claim) and not figures:
        return f"that run failed ({last.address})"
    return ""


def _named(evidence: str, calls: Sequence[ToolCall]) -> list[ToolCall] | None:
    """The calls that an evidence names: [] where it names none in particular, None where what it names never was."""
    addresses = set(_ADDRESS.findall(evidence))
    if addresses:
        return [call for call in calls if call.address in addresses] or None
    wanted = _flat(evidence)
    if not wanted:
        return []
    held = [(call, _flat(" ".join(texts(value_of(call.arguments))))) for call in calls]
    same = [call for call, text in held if (len(wanted) > 5 and wanted in text) or (len(text) > 5 and text in wanted)]
    if same:
        return same
    named = {name.lower() for name in specifics(evidence)} | {part.strip(".,;:()'\"`") for part in wanted.split()}
    names = [name for name in named if len(name) > 2 and not name[0].isdigit() and re.search(r"[/._]", name)]
    words = names or list(content(evidence))
    if not words:
        return []
    return [call for call, text in held if all(word in text for word in words)] or None


def _figures(claim: str) -> list[_Figure]:
    text = _SPELT.sub(lambda found: str(_WORDS.index(found[0].lower())), _DATE.sub(" ", claim))
    found = []
    for number in _NUMBER.finditer(text):
        beside = _NEXT.findall(text, number.end(), number.end() + 40)[:2]
        found.append(_Figure(number[0].replace(",", ""), frozenset(stem(word.lower()) for word in beside)))
    return found


def _missing(places: Sequence[str], figures: Sequence[_Figure], call: ToolCall) -> str | None:
    """The first place or figure of a claim that a call does not show; None where it shows all."""
    result = call.result or ""
    whole = _flat(" ".join(texts(value_of(call.arguments))) + " " + result)
    undated = _DATE.sub(" ", whole)
    for place in places:
        if place.lower() not in whole and not _numbered(place, whole, result):
            return place
    plain = _DATE.sub(" ", result)
    numbers: dict[str, list[tuple[int, int]]] = {}
    for found in _NUMBER.finditer(plain):
        numbers.setdefault(found[0].replace(",", ""), []).append(found.span())
    lowered = plain.lower()
    for figure in figures:
        spans = numbers.get(figure.number)
        if spans is None and not re.search(rf"(?<![\w.]){re.escape(figure.number)}(?![\w.]*\w)", undated):
            return figure.number
        if spans and "." not in figure.number and int(figure.number) < _SMALL and not _beside(figure, spans, lowered):
            return figure.number
    return None


def _beside(figure: _Figure, spans: Sequence[tuple[int, int]], lowered: str) -> bool:
    """Whether a small number counts in the result what it counts in the claim, if the result names that at all."""
    known = [noun for noun in figure.nouns if re.search(rf"\b{re.escape(noun)}", lowered)]
    if not known:
        return True
    for start, end in spans:
        near = lowered[max(0, start - 24) : end + 40]
        if any(noun in near for noun in known):
            return True
    return False


def _numbered(place: str, whole: str, result: str) -> bool:
    """A file's line: the call is about the file, and its result numbers that line."""
    path, _, line = place.rpartition(":")
    return bool(path) and path.lower() in whole and re.search(rf"(?m)^\s*{line}(?:\t|→|:)", result) is not None


def _failed(call: ToolCall) -> bool:
    return call.error or _FAILED.search(call.result or "") is not None


def _flat(text: str) -> str:
    return _BLANKS.sub(" ", text).strip().lower()
