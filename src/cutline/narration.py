"""Narration: do the agent's own words carry a call and its result, once the call itself is gone?

Law: one definition, used everywhere. A call is narrated when visible text names its target and a reason or an
expectation before it (intent), and a specific or a verdict of its result after it (outcome); a call without
both is a hole. Pure and deterministic: words and results are looked at, never changed, and nothing is raised.

How it decides. Text is split into clauses. A clause that only announces ("let me …", "now run …", "fixing …")
says nothing but what stands behind its "because", "whether", "to …"; filler words and the target's own words
never count. Of outcomes the result is the judge: a path, number, name, quoted phrase or count in the words
must stand in the result and not in the call, and a verdict ("fails", "no matches") must fit the result.
It knows English. Elsewhere targets and specifics work alike, but announcing and stating are not told apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from .blocks import Author, Event, Said, ToolCall
from .specifics import (
    FILLER,
    WORD,
    aim,
    content,
    ends,
    flat,
    lazily,
    read,
    specifics,
    stands,
    stem,
    stems,
    target,
    texts,
    value_of,
)

__all__ = [
    "Narration",
    "Verdict",
    "is_own",
    "judge",
    "review",
    "specifics",
    "spoken",
    "target",
]

# Our own tools

_OWN = lazily(r"(?:^|cutline[_.-]+)(?:say|recall)$|(?:^|[_.-])micro_handoff$")
_SAY = lazily(r"(?:^|cutline[_.-]+)say$")


def is_own(name: str) -> bool:
    """Whether a tool is one of ours (`micro_handoff`, `recall`, `say`), by its name as on the wire."""
    return _OWN().search(name) is not None


def spoken(name: str, arguments: bytes) -> str | None:
    """The words of a `say` call; None for any other tool, or where its arguments hold no text."""
    if not _SAY().search(name):
        return None
    value = value_of(arguments)
    text = value.get("text") if isinstance(value, dict) else None
    return text if isinstance(text, str) else None


# The agent's words: clauses, and what they say

_MOST_WORDS = 4_000  # characters
_CLAUSE = lazily(r"(?<=[.!?;:])[*_\"')]*\s+|(?<!\s)\s*\n\s*|(?<!\s)\s+[\u2014\u2013-]+\s+|\u2014")
_LEAD = (
    r"[\s*_>#\"'(\d.)-]*(?:(?:ok|okay|good|great|perfect|excellent|nice|alright|right|sure|yes|now|next|then|first|"
    r"second|third|finally|also|and|so|but|meanwhile|done|thanks|here|currently)\b[\s,!.:;]*)*"
)
_STATES = r"(?:\w{3,}ed|pass\w*|fail\w*|succe\w*|is|was|are|were|has|had|hits?|broke|clean|ok|done|errors?|says?)\b"
_PLAN = lazily(
    rf"{_LEAD}(?:(?:please )?(?:let me|let's|let us)\b"
    r"|(?:i|we)(?:'ll| will| want to| need to| have to| should| can now|'d like to|'m going to|'re going to)\b"
    r"(?: (?:first|also|now|then|quickly|just|next|start by))*"
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
_STRONG = lazily(
    r"\b(?:because|since|so that|in case|otherwise|given (?:that|how)|due to|whether|if|expect\w*|should|suspect|"
    r"might|may be|probably|likely|presumably|hypothesis|supposed|assum\w+|wonder|rather than|instead of|or else|"
    r"to (?:avoid|prevent|rule out|reproduce)|in order to|as (?:it|they)|which means|must)\b",
    re.I,
)
_WEAK = lazily(r"\b(?:to|for|so|how|why|where|what|which|when|before|after|until|by|as|that|against)\b", re.I)
_TYPED = (("\u2019", "'"), ("\u2018", "'"), ("\u201c", '"'), ("\u201d", '"'), ("\u2011", "-"))


class _Clause(NamedTuple):
    """One clause.

    Attributes:
        whole: its text.
        change: of an announcement what stands behind its verb; "" for a statement.
        stated: what it states: all of it, or of an announcement only what stands behind its "because".
        reasons: the parts that may give a reason, each with the weight that makes it one.
    """

    whole: str
    change: str
    stated: str
    reasons: tuple[tuple[str, int], ...]


@lru_cache(maxsize=8)  # a text stands after one batch of calls and before the next, for each of their calls
def _clauses(text: str) -> tuple[_Clause, ...]:
    if not text.isascii():
        for fine, plain in _TYPED:
            text = text.replace(fine, plain)
    return tuple(_clause(clause) for clause in _CLAUSE().split(text) if clause and not clause.isspace())


def _clause(whole: str) -> _Clause:
    plan = _PLAN().match(whole.lower())
    text = whole[plan.end() :] if plan else whole
    strong = _STRONG().search(text)
    if not plan:
        return _Clause(whole, "", whole, ((whole, 2 if strong else 3),))
    weak = _WEAK().search(text)
    because = text[strong.end() :] if strong else ""
    return _Clause(whole, text, because, ((because, 1), (text[weak.end() :] if weak else "", 2)))


class _Part(NamedTuple):
    """What some words say: stems of their content words, and their specifics."""

    words: frozenset[str]
    names: frozenset[str]


@lru_cache(maxsize=512)
def _part(text: str) -> _Part:
    names, words = specifics(text), content(text)
    # The words inside a specific are no words of their own.
    return _Part(words - content(" ".join(names)) if names else words, names)


# What a call can be called by

_PARTS = lazily(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_PLAIN_FILES = frozenset(("index", "main", "tests", "utils", "files", "types", "config", "common", "helper"))
_GIT = ("commit", "push", "pull", "fetch", "merge", "rebase", "diff", "stash", "clone", "checkout")
_DEEDS = tuple(
    (head, done, lazily(rf"\b(?:re-?)?(?:{said})\b", re.I))
    for head, done, said in (
        ("", ("test", "spec ", "jest", "mocha", "tox", "nox"), r"test\w*|suites?|specs?"),
        ("", ("build", "compile", "tsc", "make", "cargo check", "go vet", "gcc"), r"build\w*|built|compil\w*"),
        ("", ("tsc", "mypy", "pyright", "typecheck", "type-check"), r"types?|type-?check\w*"),
        ("", ("lint", "ruff", "clippy", "credo", "flake8", "vet "), r"lint\w*|ruff|clippy|credo|flake8|vet"),
        ("", ("format", "fmt", "prettier", "black"), r"format\w*|fmt|prettier"),
        ("", ("install", "npm ci", "uv sync"), r"install\w*|dependenc\w+"),
        ("", ("bench",), r"bench\w*"),
        ("", ("curl", "wget"), r"curl|requests?|endpoints?"),
        ("", ("deploy",), r"deploy\w*"),
        ("git", (" log",), r"history|git log|recent commits?"),
        ("git", (" status",), r"status|(?:working )?tree"),
        ("git", (" add",), r"stag\w+|adds?|added"),
        *(("git", (f" {verb}",), rf"{verb.removesuffix('e')}\w*") for verb in _GIT),
    )
)
"""Deeds that a command is known by: "run the suite" names `pytest`."""
_COMMANDING = re.compile(rb'"(?:command|cmd|script)"|\A\s*[^{\s]')
_CHANGING = (
    *(b'"old_string"', b'"oldText"', b'"new_str"', b'"file_text"', b'"edits"', b'"content"', b'"patch'),
    *(b"*** Begin Patch", b"sed -i", b"cat >", b"tee ", b"git commit", b"git apply"),
)


class _Names(NamedTuple):
    """A call's names: its arguments' text, its files' names in words, its target's words, and its deeds."""

    text: str
    files: tuple[frozenset[str], ...]
    words: frozenset[str]
    deeds: tuple[re.Pattern[str], ...]

    def within(self, *said: str) -> bool:
        """Whether texts name the call's target."""
        for text in said:
            if any(deed.search(text) for deed in self.deeds):
                return True
            if any(len(name) > 2 and stands(name, self.text) for name in _part(text).names):
                return True
        words = frozenset[str]().union(*map(stems, said))
        return any(file <= words for file in self.files) or len(self.words & words) >= 2


def _names(call: ToolCall) -> _Names:
    value = read(call.arguments)
    about = aim(value)[:2_000]
    files = set()
    for token in re.findall(r"[\w~-]*[./\\][\w./\\~-]+", about[:600]):
        last = token.replace("\\", "/").rstrip("/.-").rsplit("/", 1)[-1]
        if last == token and "." not in token[1:]:
            continue
        parts = _PARTS().findall(last.lstrip(".").split(".")[0])
        joined = stem("".join(parts).lower())
        if len(joined) > 4 and joined not in _PLAIN_FILES:
            files.add(frozenset((joined,)))
        if len(parts) > 1:
            files.add(frozenset(stem(part.lower()) for part in parts))
    words = content(about[:400]) if about else content(call.name.replace("_", " "))
    if isinstance(value, dict):
        words |= content(" ".join(flat(value.get(key))[:300] for key in ("description", "subject", "query")))
    deeds: tuple[re.Pattern[str], ...] = ()
    if _COMMANDING.search(call.arguments, 0, 4_000):
        line = about[:600].lower()
        deeds = tuple(said() for head, done, said in _DEEDS if head in line and any(word in line for word in done))
    text = "\n".join([about, *(text[:3_000] for text in texts(value))])[:16_000].replace("\\", "")
    return _Names(text, tuple(files), words, deeds)


def _changes(arguments: bytes) -> bool:
    """Whether a call changes something. A to-do list has contents too, but changes nothing."""
    return any(mark in arguments for mark in _CHANGING) and b'"todos"' not in arguments[:200]


# The verdict on one call


@dataclass(frozen=True, slots=True)
class Verdict:
    """How one call is narrated.

    Attributes:
        intent: words before it name its target and give a reason or an expectation.
        outcome: words after it carry a specific of its result, or a verdict that fits it.
    """

    intent: bool
    outcome: bool

    @property
    def hole(self) -> bool:
        """The call is not carried by words: intent or outcome is missing."""
        return not (self.intent and self.outcome)


_HOLE = Verdict(False, False)


def judge(call: ToolCall, before: str, after: str) -> Verdict:
    """Judge one call by the agent's words around it.

    Args:
        call: the call with its result.
        before: what the agent said since the batch of calls before, words between parallel calls included;
            the last 4,000 characters are looked at.
        after: what it said from the result on until the next batch; the first 4,000 characters are looked at.
    """
    said = _clauses(before[-_MOST_WORDS:]) if before else ()
    found = [clause.stated for clause in _clauses(after[:_MOST_WORDS]) if clause.stated] if after else []
    changing = bool(said or found) and _changes(call.arguments)
    hopeful = _reasoned(said, None, changing)
    if not (hopeful or found):
        return _HOLE
    names = _names(call)
    return Verdict(
        hopeful and names.within(*(clause.whole for clause in said)) and _reasoned(said, names, changing),
        bool(found) and _answered(found, names, call, changing),
    )


def _reasoned(said: Iterable[_Clause], names: _Names | None, changing: bool) -> bool:
    """Whether words give a reason or an expectation: something beyond announcing and beyond the target.

    Of an edit, the change that is announced is reason enough: it is what the call was for.
    """
    for clause in said:
        if any(text and _weight(text, names) >= least for text, least in clause.reasons):
            return True
        if changing and clause.change and _weight(clause.change, names) >= 2:
            return True
    return False


def _weight(text: str, names: _Names | None) -> int:
    """How much is said: content words and specifics, without the target's own."""
    words, specific = _part(text)
    if names is None:
        return len(words) + len(specific)
    new = [
        name
        for name in specific
        if not stands(name, names.text) and frozenset((stem(name.lower()),)) not in names.files
    ]
    return len((words - names.words).difference(*names.files)) + len(new)


# Outcomes

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


def _answered(found: Sequence[str], names: _Names, call: ToolCall, changing: bool) -> bool:
    """Whether statements carry a specific of the result, or a verdict that fits it."""
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
        or _fits(found, names, call.error, result, lowered, changing)
    )


def _carries(text: str, names: _Names, result: str) -> bool:
    """A specific or a quoted phrase stands in the result and not in the call."""
    for name in _part(text).names:
        # A small number stands in any long result; it counts with its noun only (`_counted`).
        if (len(name) < 3 and name.isdigit()) or stands(name, names.text):
            continue
        if stands(name, result) or (name[0].isdigit() and _same_number(name, ends(result, _VERDICT, _VERDICT))):
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


def _retells(text: str, names: _Names, lowered: str) -> bool:
    """Plain words that retell a short result: several content words stand in it, none of them from the call."""
    return len(lowered) < 2_000 and len(_shared(text, names, lowered)) >= 3


def _shared(text: str, names: _Names, lowered: str) -> set[str]:
    return {word for word in _part(text).words - names.words if len(word) > 3 and word in lowered}


def _fits(found: Sequence[str], names: _Names, error: bool, result: str, lowered: str, changing: bool) -> bool:
    """A verdict that is true of this result: a thing is absent, an exit code, a failure, a success.

    A success has a subject: "the build is clean" is a verdict of a build, "confirmed clean" of nothing.
    """
    wrapped = _WRAPPED().match(result)
    body = result[wrapped.end() if wrapped else 0 :].strip()
    blank = not body or (len(body) < 100 and _QUIET().fullmatch(body) is not None)
    failed = error or _FAILED().search(_NONE_FAILED().sub("", lowered)) is not None
    codes = frozenset(_EXIT().findall(lowered))
    for text in found:
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


# Whole histories


@dataclass(frozen=True, slots=True)
class Narration:
    """How a history is narrated.

    Attributes:
        calls: calls, without those of our own tools.
        intent, outcome: how many of them have each.
        holes: indices among those calls, in order, of the ones without both.
        ritual: how many batches of calls have words before them that are only filler: no reason, nothing stated.
        by_tool: by tool name, how many calls and how many holes.
    """

    calls: int
    intent: int
    outcome: int
    holes: tuple[int, ...]
    ritual: int
    by_tool: Mapping[str, tuple[int, int]]

    @property
    def coverage(self) -> float:
        """Share of the calls without a hole; 1.0 where there is no call."""
        return 1.0 if not self.calls else 1.0 - len(self.holes) / self.calls


@dataclass(slots=True)
class _Batch:
    """Parallel calls, and the agent's words around them in runs: the human's words end a run."""

    number: int
    before: list[list[str]]
    after: list[list[str]]
    calls: list[ToolCall]


def review(events: Sequence[Event]) -> Narration:
    """Judge every call of a history.

    Parallel calls share the words before and after their batch; words between them stand before. Where the
    human spoke between two batches, the agent's words there are several runs: the batch before has the first
    of them, the batch behind has the last (a result is answered first, a call is announced last). Calls of
    our own tools are not counted, though `micro_handoff` and `recall` part the words as any batch does; a
    `say` call's text is words, standing before the calls that it was made in parallel with.

    Args:
        events: the history in order; the human's words are `Said` with that author.
    """
    verdicts: list[tuple[str, Verdict]] = []
    ritual = 0
    for batch in _batches(events):
        before, after = _words(reversed(batch.before)), _words(batch.after)
        ritual += bool(batch.calls and before) and _empty(before, batch.calls)
        verdicts += [(call.name, judge(call, before, after)) for call in batch.calls]
    by_tool: dict[str, tuple[int, int]] = {}
    for name, verdict in verdicts:
        calls, holes = by_tool.get(name, (0, 0))
        by_tool[name] = (calls + 1, holes + verdict.hole)
    return Narration(
        calls=len(verdicts),
        intent=sum(verdict.intent for _, verdict in verdicts),
        outcome=sum(verdict.outcome for _, verdict in verdicts),
        holes=tuple(number for number, (_, verdict) in enumerate(verdicts) if verdict.hole),
        ritual=ritual,
        by_tool=by_tool,
    )


def _empty(before: str, calls: Iterable[ToolCall]) -> bool:
    """Whether words before calls are only filler: no reason, and no statement with a specific or a figure."""
    said = _clauses(before[-_MOST_WORDS:])
    if _reasoned(said, None, any(_changes(call.arguments) for call in calls)):
        return False
    return not any(_part(clause.stated).names or re.search(r"\d", clause.stated) for clause in said)


def _batches(events: Iterable[Event]) -> list[_Batch]:
    runs: list[list[str]] = [[]]
    batches: list[_Batch] = []
    for event in events:
        if isinstance(event, Said):
            if event.author is Author.AGENT:
                runs[-1].append(event.text)
            elif event.author is Author.HUMAN:
                runs.append([])
            continue
        last = batches[-1] if batches else None
        words = spoken(event.name, event.arguments)
        if last is None or event.batch != last.number:
            if words is not None:
                runs[-1].append(words)
                continue
            last = _Batch(event.batch, runs, [[]], [])
            batches.append(last)
            runs = last.after
        elif any(runs):
            # Between parallel calls: nothing has come back yet, so these words stand before.
            last.before += runs
            last.after = runs = [[]]
        if words is not None:
            last.before.append([words])
        elif not is_own(event.name):
            last.calls.append(event)
    return batches


def _words(runs: Iterable[list[str]]) -> str:
    """The first run that has words."""
    return next((text for run in runs if (text := "\n\n".join(run).strip())), "")
