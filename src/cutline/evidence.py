"""Whether the record shows what a claim says: its evidence names a recorded call, and its figures stand in the result.

Law: pure; a claim and calls go in, "" or one short reason comes out. It looks for what speaks *against* a claim and
does not understand it: a claim whose evidence was run and whose figures stand is taken as shown. English number words
are read; a count is held against the noun that it counts. docs/checkpoint.md has the measured rates.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from .blocks import ToolCall
from .checkpoint import Fact
from .specifics import content, folded, specifics, stem, texts, value_of

_ADDRESS = re.compile(r"\b[0-9a-f]{16}\b")
_PLACE = re.compile(r"[\w./~-]*\.\w+:\d+\b|\b[\w-]+=[-+]?[\w.]+")  # a file's line, a key with its value
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?)?|\d\d:\d\d:\d\d|\b\d+(?:st|nd|rd|th)\b")
# Nothing in it is tried again: a result may hold a hundred thousand digits in a row.
_NUMBER = re.compile(r"(?<![\w.,:/-])-?\d[\d,]*+(?:\.\d++)?+(?!\w*+[./_-]\w)")
_WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_SPELT = re.compile(rf"\b(?:{'|'.join(_WORDS)})\b", re.I)
_NEXT = re.compile(r"[^\W\d_]{3,}")
_LONGEST = 4_000  # characters of a claim and of its evidence that are looked at
_NO_EVIDENCE = "it names no evidence"
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


class _Held:
    """A call as claims are held against it; what is read out of it is read once, when it is asked for."""

    def __init__(self, call: ToolCall) -> None:
        self.call = call
        self.given = folded(" ".join(texts(value_of(call.arguments))))

    @cached_property
    def result(self) -> str:
        """The result without its dates."""
        return _DATE.sub(" ", self.call.result or "")

    @cached_property
    def lowered(self) -> str:
        """The same in lower case."""
        return self.result.lower()

    @cached_property
    def whole(self) -> str:
        """Arguments and result on one line, in lower case."""
        return f"{self.given} {folded(self.call.result or '')}"

    @cached_property
    def undated(self) -> str:
        """The same without dates."""
        return _DATE.sub(" ", self.whole)

    @cached_property
    def numbers(self) -> dict[str, list[tuple[int, int]]]:
        """Where each number stands in the result."""
        found: dict[str, list[tuple[int, int]]] = {}
        for number in _NUMBER.finditer(self.result):
            found.setdefault(number[0].replace(",", ""), []).append(number.span())
        return found


class Record:
    """The record's calls, ready to be asked about several claims.

    Args:
        calls: with their results, in order.
    """

    def __init__(self, calls: Sequence[ToolCall]) -> None:
        self._calls = [_Held(call) for call in calls]

    def doubt(self, fact: Fact) -> str:
        """What speaks against a claim, in a few words; "" where the record shows it."""
        claim = fact.claim[:_LONGEST]
        named = self._named(fact.evidence[:_LONGEST])
        if named is None:
            return "no recorded call is its evidence"
        places, figures = _PLACE.findall(claim), _figures(_PLACE.sub(" ", claim))
        missing = ""
        for held in reversed(named or self._calls):
            lacks = _missing(places, figures, held)
            if lacks is None:
                break
            missing = missing or lacks
        else:
            where = f"of that ({named[-1].call.address})" if named else "on record"
            return f"“{missing}” stands in no result {where}" if missing else _NO_EVIDENCE
        if not (named or places or figures):
            return _NO_EVIDENCE
        if named and not figures and _failed(named[-1].call) and not _NEGATIVE.search(claim):
            return f"that run failed ({named[-1].call.address})"
        return ""

    def named(self, evidence: str) -> list[ToolCall]:
        """The calls that an evidence names, in order; none where it names nothing in particular."""
        return [held.call for held in self._named(evidence[:_LONGEST]) or []]

    def _named(self, evidence: str) -> list[_Held] | None:
        """The calls that an evidence names: [] where none in particular, None where what it names never was."""
        addresses = set(_ADDRESS.findall(evidence))
        if addresses:
            return [held for held in self._calls if held.call.address in addresses] or None
        wanted = folded(evidence)
        if not wanted:
            return []
        same = [
            held
            for held in self._calls
            if (len(wanted) > 5 and wanted in held.given) or (len(held.given) > 5 and held.given in wanted)
        ]
        if same:
            return same
        named = {name.lower() for name in specifics(evidence)} | {part.strip(".,;:()'\"`") for part in wanted.split()}
        named = {re.sub(r"(?::\d+)+\Z", "", name) for name in named}  # a file's line is evidence of the file
        names = [name for name in named if len(name) > 2 and not name[0].isdigit() and re.search(r"[/._]", name)]
        words = names or list(content(evidence))
        if not words:
            return []
        return [held for held in self._calls if all(word in held.given for word in words)] or None


def doubt(fact: Fact, calls: Sequence[ToolCall]) -> str:
    """What speaks against one claim; see `Record.doubt`."""
    return Record(calls).doubt(fact)


def _figures(claim: str) -> list[_Figure]:
    text = _SPELT.sub(lambda found: str(_WORDS.index(found[0].lower())), _DATE.sub(" ", claim))
    found = []
    for number in _NUMBER.finditer(text):
        beside = _NEXT.findall(text, number.end(), number.end() + 40)[:2]
        found.append(_Figure(number[0].replace(",", ""), frozenset(stem(word.lower()) for word in beside)))
    return found


def _missing(places: Sequence[str], figures: Sequence[_Figure], held: _Held) -> str | None:
    """The first place or figure of a claim that a call does not show; None where it shows all."""
    for place in places:
        if place.lower() not in held.whole and not _numbered(place, held.whole, held.call.result or ""):
            return place
    for figure in figures:
        spans = held.numbers.get(figure.number)
        if spans is None:
            if not re.search(rf"(?<![\w.]){re.escape(figure.number)}(?![\w.]*\w)", held.undated):
                return figure.number
        elif "." not in figure.number and int(figure.number) < _SMALL and not _beside(figure, spans, held.lowered):
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
