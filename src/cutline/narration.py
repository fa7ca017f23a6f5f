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
from .specifics import aim, ends, flat, read, specifics, target, texts, value_of

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

_OWN = re.compile(r"(?:^|cutline[_.-]+)(?:say|recall)$|(?:^|[_.-])micro_handoff$")
_SAY = re.compile(r"(?:^|cutline[_.-]+)say$")


def is_own(name: str) -> bool:
    """Whether a tool is one of ours (`micro_handoff`, `recall`, `say`), by its name as on the wire."""
    return _OWN.search(name) is not None


def spoken(name: str, arguments: bytes) -> str | None:
    """The words of a `say` call; None for any other tool, or where its arguments hold no text."""
    if not _SAY.search(name):
        return None
    value = value_of(arguments)
    text = value.get("text") if isinstance(value, dict) else None
    return text if isinstance(text, str) else None


# The agent's words: clauses, and what they say

_MOST_WORDS = 6_000
_CLAUSE = re.compile(r"(?<=[.!?;:])[*_\"')]*\s+|\s*\n+\s*|\s+[\u2014\u2013-]+\s+|\u2014")
_WORD = re.compile(r"[^\W\d_]{3,}|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2}")
_LEAD = (
    r"[\s*_>#\"'(\d.)-]*(?:(?:ok|okay|good|great|perfect|excellent|nice|alright|right|sure|yes|now|next|then|first|"
    r"second|third|finally|also|and|so|but|meanwhile|done|thanks|here|currently)\b[\s,!.:;]*)*"
)
_STATES = r"(?:\w{3,}ed|pass\w*|fail\w*|succe\w*|is|was|are|were|has|had|hits?|broke|clean|ok|done|errors?|says?)\b"
_PLAN = re.compile(
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
    rf"(?!\w+ {_STATES})[a-z-]+\b",
    re.I,
)
_STRONG = re.compile(
    r"\b(?:because|since|so that|in case|otherwise|given (?:that|how)|due to|whether|if|expect\w*|should|suspect|"
    r"might|may be|probably|likely|presumably|hypothesis|supposed|assum\w+|wonder|rather than|instead of|or else|"
    r"to (?:avoid|prevent|rule out|reproduce)|in order to|as (?:it|they)|which means|must)\b",
    re.I,
)
_WEAK = re.compile(r"\b(?:to|for|so|how|why|where|what|which|when|before|after|until|by|as|that|against)\b", re.I)
_TICKS = str.maketrans({"\u2019": "'", "\u2018": "'", "\u201c": '"', "\u201d": '"', "\u2011": "-"})


_FILLER_WORDS = """
the and but for nor not with without into onto from that this these those then than them they their there here
what when where which while who whom whose why how all any both each every few more most other some such only
own same just also too very can cannot could will would shall should may might must have has had having does
did doing done are was were been being its you your our ours his her she him about after again against before
between down during off once out over under until upon via per let don doesn didn isn wasn aren haven won
couldn shouldn check look see saw view read examine inspect explore review investigate analyze find found
search verify verified confirm ensure make made sure start begin continue proceed try trying tried run running
take get getting got give need want going use using used put set show know think understand learn update fix
fixed change edit write writing wrote add added create implement implementation test first second third next
now last final finally step good great perfect excellent nice okay fine well right correct correctly proper
properly ready clean green everything something anything nothing thing file code codebase project repo
repository repositorie directory folder content context current currently state structure detail quick quickly
full fully new old exist work pass issue problem error bug related relevant further bit lot part way one two
actual actually really still already yet able back time like exactly simply together command output result
expect happen follow information info please thanks sorry yes task tool job request user latest complete
completely success successful successfully close closely call called
"""


class _Clause(NamedTuple):
    """One clause, and what it says.

    Attributes:
        whole: the clause.
        text: what counts of it: of an announcement what stands behind its verb.
        plan: it only announces.
        words, names: the content words and the specifics of `text`.
    """

    whole: str
    text: str
    plan: bool
    words: frozenset[str]
    names: frozenset[str]


@lru_cache(maxsize=8)  # a text stands after one batch of calls and before the next, for each of their calls
def _clauses(text: str) -> tuple[_Clause, ...]:
    plain = text if text.isascii() else text.translate(_TICKS)
    return tuple(_clause(clause) for clause in _CLAUSE.split(plain) if clause and not clause.isspace())


def _clause(whole: str) -> _Clause:
    plan = _PLAN.match(whole)
    text = whole[plan.end() :] if plan else whole
    return _Clause(whole, text, plan is not None, *_said(text))


def _said(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """Content words and specifics of a text; the words inside a specific are no words of their own."""
    names, words = specifics(text), _content(text)
    return (words - _content(" ".join(names)) if names else words), names


@lru_cache(maxsize=4_096)
def _stem(word: str) -> str:
    """Roughly the stem of an English word: "failures" and "failure", "caching" and "cache" meet in it."""
    if len(word) > 3 and word[-1] == "s" and word[-2] not in "su":
        word = word[:-1]
    if len(word) > 5:
        word = word.removesuffix("ing").removesuffix("ed")
    return word[:-1] if len(word) > 3 and word[-1] == "e" else word


_FILLER = frozenset(map(_stem, _FILLER_WORDS.split()))


def _content(text: str) -> frozenset[str]:
    """Stems of the words that are no filler."""
    return frozenset(map(_stem, _WORD.findall(text.lower()))) - _FILLER


# What a call can be called by

_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_PLAIN_FILES = frozenset(("index", "main", "tests", "utils", "files", "types", "config", "common", "helper"))
_GIT = ("commit", "push", "pull", "fetch", "merge", "rebase", "diff", "stash", "clone", "checkout")
_DEEDS = tuple(
    (head, done, re.compile(rf"\b(?:re-?)?(?:{said})\b", re.I))
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
    """A call's names: its arguments' text, its files' names in words, its target's words, its deeds; and
    whether it changes something."""

    text: str
    files: tuple[frozenset[str], ...]
    words: frozenset[str]
    deeds: tuple[re.Pattern[str], ...]
    changing: bool

    def within(self, clauses: Iterable[_Clause]) -> bool:
        """Whether clauses name the call's target."""
        for clause in clauses:
            if any(deed.search(clause.whole) for deed in self.deeds):
                return True
            if any(len(name) > 2 and _stands(name, self.text) for name in clause.names):
                return True
        stems = {_stem(word) for clause in clauses for word in re.findall(r"[^\W_]+", clause.text.lower())}
        return any(file <= stems for file in self.files) or len(self.words & stems) >= 2


def _names(call: ToolCall) -> _Names:
    value = read(call.arguments)
    about = aim(value)[:2_000]
    files = set()
    for token in re.findall(r"[\w./\\~-]*\w", about[:600]):
        last = re.split(r"[/\\]", token)[-1]
        if last == token and "." not in token[1:]:
            continue
        parts = _PARTS.findall(last.lstrip(".").split(".")[0])
        joined = _stem("".join(parts).lower())
        if len(joined) > 4 and joined not in _PLAIN_FILES:
            files.add(frozenset((joined,)))
        if len(parts) > 1:
            files.add(frozenset(_stem(part.lower()) for part in parts))
    words = _content(about[:400]) if about else _content(call.name.replace("_", " "))
    if isinstance(value, dict):
        words |= _content(" ".join(flat(value.get(key))[:300] for key in ("description", "subject", "query")))
    deeds: tuple[re.Pattern[str], ...] = ()
    if _COMMANDING.search(call.arguments, 0, 4_000):
        line = about[:600].lower()
        deeds = tuple(said for head, done, said in _DEEDS if head in line and any(word in line for word in done))
    text = "\n".join([about, *(text[:3_000] for text in texts(value))])[:16_000].replace("\\", "")
    # A to-do list has contents too, but changes nothing.
    changing = any(mark in call.arguments for mark in _CHANGING) and b'"todos"' not in call.arguments[:200]
    return _Names(text, tuple(files), words, deeds, changing)


def _stands(name: str, text: str) -> bool:
    """Whether a name stands in a text by itself: no longer word or number goes on around it."""
    at, size = text.find(name), len(name)
    first, last, number = name[:1].isalnum(), name[-1:].isalnum(), name[:1].isdigit()
    while at >= 0:
        before, behind = text[max(at - 2, 0) : at], text[at + size : at + size + 2]
        whole = not (first and before[-1:].isalnum()) and not (last and behind[:1].isalnum())
        if whole and number:
            whole = not (before[-1:] in (".", ",") and before[:1].isdigit()) and not (
                behind[:1] in (".", ",") and behind[1:].isdigit()
            )
        if whole:
            return True
        at = text.find(name, at + 1)
    return False


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
            the last 6,000 characters are looked at.
        after: what it said from the result on until the next batch; the first 6,000 characters are looked at.
    """
    told, answered = bool(before) and not before.isspace(), bool(after) and not after.isspace()
    if not (told or answered):
        return _HOLE
    names = _names(call)
    intent = outcome = False
    if told:
        said = _clauses(before[-_MOST_WORDS:])
        intent = names.within(said) and _reasoned(said, names)
    if answered:
        outcome = _answered(_clauses(after[:_MOST_WORDS]), names, call)
    return Verdict(intent, outcome)


def _reasoned(clauses: Iterable[_Clause], names: _Names | None = None) -> bool:
    """Whether words give a reason or an expectation: something beyond announcing and beyond the target."""
    for clause in clauses:
        strong = _STRONG.search(clause.text)
        if not clause.plan:
            if _weight(clause.words, clause.names, names) >= (2 if strong else 3):
                return True
            continue
        # The change that an edit is to make is what the call was for.
        if names and names.changing and _weight(clause.words, clause.names, names) >= 2:
            return True
        if strong and _weight(*_said(clause.text[strong.end() :]), names) >= 1:
            return True
        weak = _WEAK.search(clause.text)
        if weak and _weight(*_said(clause.text[weak.end() :]), names) >= 2:
            return True
    return False


def _weight(words: frozenset[str], specific: frozenset[str], names: _Names | None) -> int:
    """How much is said: content words and specifics, without the target's own."""
    if names is None:
        return len(words) + len(specific)
    new = [
        name
        for name in specific
        if not _stands(name, names.text) and frozenset((_stem(name.lower()),)) not in names.files
    ]
    return len((words - names.words).difference(*names.files)) + len(new)


# Outcomes

_QUOTED = re.compile(r"`([^`\n]{4,120})`|\"([^\"\n]{4,120})\"")
_DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_COUNT = re.compile(rf"(?<![\w.#/-])(no|{'|'.join(_DIGITS)}|\d{{1,3}})\s+([a-z][\w-]*)(?:\s+([a-z]{{4,}}))?", re.I)
_LINE = re.compile(r"\blines? #?(\d{1,4})\b", re.I)
_COUNTED = frozenset(("test", "error", "file", "issue", "problem", "result", "pass", "step", "task", "call"))
_NUMBER = re.compile(r"(\d[\d,]*)(\.\d+)?(k|m|b|kb|mb|gb|ms|s|%)?", re.I)
_SCALE = {"k": 1e3, "kb": 1e3, "m": 1e6, "mb": 1e6, "b": 1e9, "gb": 1e9}
_NUMBERS = re.compile(r"\d[\d,]*(?:\.\d+)?")
_ABSENT = re.compile(
    r"\b(?:no|zero|without any) (?:\w+ ){0,2}?(?:match\w*|results?|files?|hits?|output|differences?|such|callers?|"
    r"usages?|references?|occurrences?|entries|rows|mentions?|commits?|changes)\b"
    r"|\bnothing (?:found|there|came|to |matche[sd]|changed|printed|returned|staged|else)|\bnone (?:found|exist)"
    r"|\bnot (?:found|there|present|exist|installed|defined|available|tracked)\b"
    r"|\b(?:do|does|did)(?: not|n't) (?:exist|match|find|appear|contain|print|return)\b"
    r"|\b(?:is|are|was|were|comes? back|came back|returns?|returned|prints?|printed) "
    r"(?:empty|missing|gone|nothing)\b|\bempty (?:result|output|file|list|diff)\b|\babsent\b",
    re.I,
)
_ABSENCE = re.compile(
    r"\bno (?:\w+ ){0,3}(?:found|match|result|file|output|such|entries|rows|changes)|not found|no such|not exist"
    r"|doesn't exist|nothing to\b|\bempty\b|\bmissing\b|can(?:no|')t find|unable to (?:find|locate)|enoent|\b404\b"
    r"|\b0 (?:\w+ )?(?:match|result|file|row|total)|up[ -]to[ -]date|working tree clean|not installed",
    re.I,
)
_EXITED = re.compile(r"\b(?:exit(?:s|ed)?|return(?:s|ed)?|status)(?: with)?(?: status| code)? (\d{1,3})\b", re.I)
_EXIT = re.compile(r"exit(?:ed)?(?: with)?(?: status| code)?[:=]? ?(\d+)", re.I)
_GOOD = re.compile(
    r"\b(?:pass(?:es|ed|ing)?|succe\w+|green|clean(?:ly)?|compiles?|compiled|built|works|worked|healthy|exists?|"
    r"up[ -]to[ -]date|valid|no (?:\w+ ){0,2}(?:errors?|issues?|warnings?|failures?|problems?|conflicts?))\b",
    re.I,
)
_CHANGED = re.compile(r"\b(?:now|wrote|written|rewrote|rewritten|made|\w{3,}ed)\b", re.I)
_BAD = re.compile(
    r"\b(?:fail(?:s|ed|ing|ures?)?|errors?|errored|broke|broken|crash\w*|panic\w*|conflicts?|tim(?:ed|es) out|"
    r"timeout|hangs?|hung|denied|refused|rejected|abort\w*|interrupt\w*|cancel\w*|killed|missing|invalid|cannot|"
    r"can't|couldn't|unable|unknown|unused|exceptions?|never (?:returned|answered|finished))\b",
    re.I,
)
_FAILED = re.compile(
    r"^\s*(?:fail\b|error\b|e {2,}|fatal:|panic:|---? fail)|traceback \(|\berror(?:\[\w+\])?:|error ts\d|"
    r"\b[1-9]\d* (?:failed|failures?|errors?|problems?|failing)\b|exit(?:ed)?(?: with)?(?: status| code)?[:=]? ?[1-9]"
    r"|\bconflict\b|not found|no such file|\b(?:denied|refused|failed)\b(?![:=] ?0)|timed out|✗|✕|✘",
    re.M,
)
_NONE_FAILED = re.compile(r"\b(?:0|no) (?:failed|failures?|errors?|problems?)\b")
_WRAPPED = re.compile(r"\A(?:[^\n]*\n){1,8}?Output:\n")
_QUIET = re.compile(r"[\s(<\[]*(?:[\w ]*(?:no output|without output)[\w ]*)?[\s.)>\]]*(?:</\w+>)?\s*\Z", re.I)


def _answered(clauses: Iterable[_Clause], names: _Names, call: ToolCall) -> bool:
    """Whether words carry a specific of the result, or a verdict that fits it.

    Of an announcement only the reason in it counts, which may state what was found.
    """
    said = []
    for clause in clauses:
        if not clause.plan:
            said.append(clause)
        elif strong := _STRONG.search(clause.text):
            reason = clause.text[strong.end() :]
            said.append(_Clause(reason, reason, False, *_said(reason)))
    if call.result is None:
        return any(_BAD.search(clause.text) for clause in said)
    if any(_carries(clause, names, call.result) for clause in said):
        return True
    result = ends(call.result)
    lowered = result.lower()
    return (
        any(_counted(clause.text, lowered) for clause in said)
        # An outcome is said at once: what comes later rather retells the whole work.
        or any(_retells(clause, names, lowered) for clause in said[:3])
        or _fits(said, names, call.error, result, lowered)
    )


def _carries(clause: _Clause, names: _Names, result: str) -> bool:
    """A specific or a quoted phrase of the clause stands in the result and not in the call."""
    for name in clause.names:
        # A small number stands in any long result; it counts with its noun only (`_counted`).
        if (len(name) < 3 and name.isdigit()) or _stands(name, names.text):
            continue
        if _stands(name, result) or (name[0].isdigit() and _same_number(name, ends(result))):
            return True
    for code, phrase in _QUOTED.findall(clause.text):
        quoted = (code or phrase).strip()
        if quoted not in names.text and quoted in result:
            return True
    return False


def _same_number(name: str, result: str) -> bool:
    """A number that the result spells otherwise: with thousands separators, without its unit, or unrounded."""
    read = _NUMBER.fullmatch(name)
    if read is None:
        return False
    digits, decimals, unit = read[1].replace(",", ""), read[2] or "", (read[3] or "").lower()
    if len(digits) > 15:
        return False
    if not decimals and not unit:
        return _stands(digits, result) or _stands(f"{int(digits):,}", result)
    if _stands(digits + decimals, result):
        return True
    scale = _SCALE.get(unit, 1.0)
    if len(digits + decimals) < (3 if scale > 1 else 4):
        return False
    value, slack = float(digits + decimals) * scale, 0.5001 * scale / 10 ** max(len(decimals) - 1, 0)
    others = (float(other.replace(",", "")) for other in _NUMBERS.findall(result) if len(other) < 20)
    return any(abs(other - value) <= slack for other in others)


def _counted(text: str, lowered: str) -> bool:
    """A count ("3 races", "no callers") or a line by its number, as the result has it."""
    for number, *nouns in _COUNT.findall(text):
        word = number.lower()
        digit = word if word.isdigit() else str(_DIGITS.index(word)) if word in _DIGITS else "0"
        if lowered.strip() == digit:
            return True
        for noun in nouns:
            stem = _stem(noun.lower())
            if len(stem) > 2 and (stem not in _FILLER or stem in _COUNTED) and _near(digit, stem, lowered):
                return True
    return any(re.search(rf"(?:^|[:\n])\s*{number}[:\t→\s-]", lowered) for number in _LINE.findall(text))


def _near(digit: str, stem: str, lowered: str) -> bool:
    """Whether a result has a number with a noun ("0 data races", "races: 0"), or says that there is no such."""
    stem = re.escape(stem)
    found = rf"(?<![\d.,]){digit}[^\w\n]{{1,3}}(?:\w+\W)?{stem}|\b{stem}\w*[^\w\n]{{1,4}}{digit}(?![\d.])"
    return re.search(found + (rf"|\bno (?:\w+ )?{stem}" if digit == "0" else ""), lowered) is not None


def _retells(clause: _Clause, names: _Names, lowered: str) -> bool:
    """Plain words that retell a short result: several content words stand in it, none of them from the call."""
    return len(lowered) < 2_000 and len(_shared(clause, names, lowered)) >= 3


def _shared(clause: _Clause, names: _Names, lowered: str) -> set[str]:
    return {word for word in clause.words - names.words if len(word) > 3 and word in lowered}


def _fits(said: Sequence[_Clause], names: _Names, error: bool, result: str, lowered: str) -> bool:
    """A verdict that is true of this result: a thing is absent, an exit code, a failure, a success.

    A success has a subject: "the build is clean" is a verdict of a build, "confirmed clean" of nothing.
    """
    wrapped = _WRAPPED.match(result)
    blank = _QUIET.match(result, wrapped.end() if wrapped else 0) is not None
    failed = error or _FAILED.search(_NONE_FAILED.sub("", lowered)) is not None
    codes = frozenset(_EXIT.findall(lowered))
    for clause in said:
        text = clause.text
        if _ABSENT.search(text) and (blank or _ABSENCE.search(lowered)):
            return True
        exited = _EXITED.search(text)
        if exited and exited[1] in codes:
            return True
        if failed and _BAD.search(text) and (names.within([clause]) or _shared(clause, names, lowered)):
            return True
        if failed:
            continue
        if any(word.endswith("ed") for deed in names.deeds for word in deed.findall(text)):
            return True
        if (_GOOD.search(text) or (names.changing and _CHANGED.search(text))) and names.within([clause]):
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
        ritual: how many batches of calls have words before them that give no reason at all.
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
        if batch.calls and before and not _reasoned(_clauses(before[-_MOST_WORDS:])):
            ritual += 1
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
