"""Outcomes: do statements carry what a call's result says?

Law: the result is the judge. A path, number, name, quoted phrase or count in the words must stand in the result and
not in the call; a verdict ("fails", "no matches") must fit the result, and be of something.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .blocks import ToolCall
from .clauses import Clause, part
from .naming import Names
from .specifics import FILLER, WORD, ends, lazily, stands, stem

_VERDICT = 8 * 1024  # counts and verdicts are looked for in this much of a result's head and of its tail
_QUOTED = lazily(r"`([^`\n]{4,120})`|\"([^\"\n]{4,120})\"")
_DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_COUNT = lazily(rf"(?<![\w.#/-])(no|{'|'.join(_DIGITS)}|\d{{1,3}})\s+([a-z][\w-]*)(?:\s+([a-z]{{4,}}))?", re.I)
_LINE = lazily(r"\blines? #?(\d{1,4})\b", re.I)
# Filler elsewhere, but things that are counted: "3 errors", "0 issues".
_UNCOUNTED = FILLER - {"test", "error", "fil", "issu", "problem", "result", "pass", "step", "task", "call", "chang"}
_NUMBER = lazily(r"(\d[\d,]*)(\.\d+)?(k|m|b|kb|mb|gb|ms|s|%)?", re.I)
_SCALE = {"k": 1e3, "kb": 1e3, "m": 1e6, "mb": 1e6, "b": 1e9, "gb": 1e9}
_NUMBERS = lazily(r"\d[\d,]*(?:\.\d+)?")
_ABSENT = lazily(
    r"\b(?:no|zero|without any) (?:\w+ ){0,2}?(?:match\w*|results?|files?|hits?|output|differences?|such|callers?|"
    r"usages?|references?|occurrences?|entries|rows|mentions?|commits?|changes)\b"
    r"|\bnothing (?:found|there|came|to |matche[sd]|changed|printed|returned|staged|else)|\bnone (?:found|exist)"
    r"|\bnot (?:found|there|present|exist|installed|defined|available|tracked)\b"
    r"|\b(?:do|does|did)(?: not|n't) (?:exist|match|find|appear|contain|print|return)\b"
    r"|\b(?:is|are|was|were|comes? back|came back|returns?|returned|prints?|printed) "
    r"(?:empty|missing|gone|nothing)\b|\bempty (?:result|output|file|list|diff)\b|\babsent\b",
    re.I,
)
_ABSENCE = lazily(
    r"\bno (?:\w+ ){0,3}(?:found|match|result|file|output|such|entries|rows|changes)|not found|no such|not exist"
    r"|doesn't exist|nothing to\b|\bempty\b|\bmissing\b|can(?:no|')t find|unable to (?:find|locate)|enoent|\b404\b"
    r"|\b0 (?:\w+ )?(?:match|result|file|row|total)|up[ -]to[ -]date|working tree clean|not installed",
    re.I,
)
_EXITED = lazily(r"\b(?:exit(?:s|ed)?|return(?:s|ed)?|status)(?: with)?(?: status| code)? (\d{1,3})\b", re.I)
_EXIT = lazily(r"exit(?:ed)?(?: with)?(?: status| code)?[:=]? ?(\d+)", re.I)
_GOOD = lazily(
    r"\b(?:pass(?:es|ed|ing)?|succe\w+|green|clean(?:ly)?|compiles?|compiled|built|works|worked|healthy|exists?|"
    r"up[ -]to[ -]date|valid|no (?:\w+ ){0,2}(?:errors?|issues?|warnings?|failures?|problems?|conflicts?))\b",
    re.I,
)
_CHANGED = lazily(r"\b(?:now|wrote|written|rewrote|rewritten|made|\w{3,}ed)\b", re.I)
_BAD = lazily(
    r"\b(?:fail(?:s|ed|ing|ures?)?|errors?|errored|broke|broken|crash\w*|panic\w*|conflicts?|tim(?:ed|es) out|"
    r"timeout|hangs?|hung|denied|refused|rejected|abort\w*|interrupt\w*|cancel\w*|killed|missing|invalid|cannot|"
    r"can't|couldn't|unable|unknown|unused|exceptions?|never (?:returned|answered|finished))\b",
    re.I,
)
_FAILED = lazily(
    r"^[ \t]*(?:fail\b|error\b|e {2,}|fatal:|panic:|---? fail)|traceback \(|\berror(?:\[\w+\])?:|error ts\d|"
    r"\b[1-9]\d* (?:failed|failures?|errors?|problems?|failing)\b|exit(?:ed)?(?: with)?(?: status| code)?[:=]? ?[1-9]"
    r"|\bconflict\b|not found|no such file|\b(?:denied|refused|failed)\b(?![:=] ?0)|timed out|✗|✕|✘",
    re.M,
)
_NONE_FAILED = lazily(r"\b(?:0|no) (?:failed|failures?|errors?|problems?)\b|\berror: \(?none\b")
_WRAPPED = lazily(r"\A(?:[^\n]*\n){1,8}?Output:\n")
_QUIET = lazily(r"[(<\[]?[\w ]*(?:no|without) output[\w ]*[.)>\]]*(?:</\w+>)?", re.I)


def answered(heard: Sequence[Clause], names: Names, call: ToolCall, changing: bool) -> bool:
    """Whether what is said after a call carries a specific of its result, or a verdict that fits it.

    Args:
        heard: the clauses after the call.
        names: what it can be called by.
        call: the call with its result.
        changing: it changes something.
    """
    found = [clause.stated for clause in heard if clause.stated]
    if call.result is None:
        return any(map(_BAD().search, found))
    if any(_carries(text, names, call.result) for text in found):
        return True
    result = ends(call.result, _VERDICT, _VERDICT)
    lowered = result.lower()
    return (
        any(_counted(text, lowered) for text in found)
        # An outcome is said at once: what comes later rather retells the whole work.
        or any(_retells(text, names, lowered) for text in found[:3])
        or _fits(found, names, call.error, result, lowered, changing, made=heard[0].whole == found[0])
    )


def judges(statement: str) -> bool:
    """Whether a statement says of something how it went."""
    return bool((_GOOD().search(statement) or _BAD().search(statement)) and part(statement).words)


def _carries(text: str, names: Names, result: str) -> bool:
    """A specific or a quoted phrase stands in the result and not in the call."""
    for name in part(text).names:
        # A small number stands in any long result; it counts with its noun only (`_counted`).
        if (len(name) < 3 and name.isdigit()) or stands(name, names.text):
            continue
        if stands(name.removeprefix("./"), result) or (
            name[0].isdigit() and _same_number(name, ends(result, _VERDICT, _VERDICT))
        ):
            return True
    for code, phrase in _QUOTED().findall(text):
        quoted = (code or phrase).strip()
        if quoted not in names.text and quoted in result:
            return True
    return False


def _same_number(name: str, result: str) -> bool:
    """A number that the result spells otherwise: with thousands separators, without its unit, or unrounded."""
    number = _NUMBER().fullmatch(name)
    if number is None:
        return False
    digits, decimals, unit = number[1].replace(",", ""), number[2] or "", (number[3] or "").lower()
    if len(digits) > 15:
        return False
    if not decimals and not unit:
        return stands(digits, result) or stands(f"{int(digits):,}", result)
    if stands(digits + decimals, result):
        return True
    scale = _SCALE.get(unit, 1.0)
    if len(digits + decimals) < (3 if scale > 1 else 4):
        return False
    value, slack = float(digits + decimals) * scale, 0.5001 * scale / 10 ** max(len(decimals) - 1, 0)
    others = (float(other.replace(",", "")) for other in _NUMBERS().findall(result) if len(other) < 20)
    return any(abs(other - value) <= slack for other in others)


def _counted(text: str, lowered: str) -> bool:
    """A count ("3 races", "no callers") or a line by its number, as the result has it."""
    for number, *nouns in _COUNT().findall(text):
        word = number.lower()
        digit = word if word.isdigit() else str(_DIGITS.index(word)) if word in _DIGITS else "0"
        if lowered.strip() == digit:
            return True
        counted = {root for noun in nouns if len(root := stem(noun.lower())) > 2 and root not in _UNCOUNTED}
        spelt = ("0", "no") if digit == "0" else (digit,)
        if any(_near(number, root, lowered) for root in counted for number in spelt):
            return True
    return any(re.search(rf"(?:^|[:\n])\s*{number}[:\t→\s-]", lowered) for number in _LINE().findall(text))


def _near(number: str, root: str, lowered: str) -> bool:
    """Whether a result has a number beside a noun: "0 data races", "races: 0"."""
    at = lowered.find(number)
    while at >= 0:
        end = at + len(number)
        if (
            not (lowered[at - 1 : at].isalnum() or lowered[at - 1 : at] in (".", ","))
            and not lowered[end : end + 1].isalnum()
        ):
            line = lowered[max(at - 24, 0) : at].rpartition("\n")[2], lowered[end : end + 40].partition("\n")[0]
            left, right = WORD().findall(line[0])[-1:], WORD().findall(line[1])[:2]
            if any(word.startswith(root) for word in left + right):
                return True
        at = lowered.find(number, end)
    return False


def _retells(text: str, names: Names, lowered: str) -> bool:
    """Plain words that retell a short result: several content words stand in it, none of them from the call."""
    return len(lowered) < 2_000 and len(_shared(text, names, lowered)) >= 3


def _shared(text: str, names: Names, lowered: str) -> set[str]:
    return {word for word in part(text).words - names.words if len(word) > 3 and word in lowered}


_MADE = lazily(r"\b(?:is|are) (?:all |now )?(?:in place|done|\w{3,}ed)\b", re.I)
_RULES = ("--", "==", "**", "##")
_RUNNING = (
    "process running with",
    "running in background",
    "running in the background",
    "still running",
    "agent launched",
)
_RUNS = lazily(
    r"\b(?:is|are|'s|'re) (?:now |still |already |being |all )?(?:\w+ing|in flight|in progress|under ?way)\b", re.I
)


def _fits(
    found: Sequence[str], names: Names, error: bool, result: str, lowered: str, changing: bool, *, made: bool
) -> bool:
    """A verdict that is true of this result: a thing is absent, an exit code, a failure, a success, still running.

    A success has a subject: "the build is clean" is a verdict of a build, "confirmed clean" of nothing. Only where
    the first thing `found` opens what is said after a change, it needs none of the call's names to be of that change.
    """
    wrapped = _WRAPPED().match(result)
    body = result[wrapped.end() if wrapped else 0 :].strip()
    blank = not body or (len(body) < 100 and _QUIET().fullmatch(body) is not None)
    # … and so are headlines that a command printed for itself, with nothing under them.
    blank = blank or (len(body) < 400 and all(line[:2] in _RULES and line[-2:] in _RULES for line in body.split("\n")))
    failed = error or _FAILED().search(_NONE_FAILED().sub("", lowered)) is not None
    if made and changing and not failed and _MADE().search(found[0]) and part(found[0]).words:
        return True
    running = any(mark in lowered for mark in _RUNNING)
    codes = frozenset(_EXIT().findall(lowered))
    for text in found:
        if running and _RUNS().search(text):
            return True
        if _ABSENT().search(text) and (blank or _ABSENCE().search(lowered)):
            return True
        exited = _EXITED().search(text)
        if exited and exited[1] in codes:
            return True
        if failed:
            bad = _BAD().search(text) is not None
            if bad and (_shared(text, names, lowered) or names.within(text)):
                return True
            continue
        if any(word.endswith("ed") for deed in names.deeds for word in deed.findall(text)):
            return True
        if (_GOOD().search(text) or (changing and _CHANGED().search(text))) and names.within(text):
            return True
    return False
