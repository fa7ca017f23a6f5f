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

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .blocks import Author, Event, Said, ToolCall

# ------------------------------------------------------------------------------------------ our own tools

_OWN = re.compile(r"(?:^|cutline[_.-]+)(?:say|recall)$|(?:^|[_.-])micro_handoff$")
_SAY = re.compile(r"(?:^|cutline[_.-]+)say$")


def is_own(name: str) -> bool:
    """Whether a tool is one of ours (`micro_handoff`, `recall`, `say`), by its name as on the wire."""
    return _OWN.search(name) is not None


def spoken(name: str, arguments: bytes) -> str | None:
    """The words of a `say` call; None for any other tool, or where its arguments hold no text."""
    if not _SAY.search(name):
        return None
    value = _json(arguments)
    text = value.get("text") if isinstance(value, dict) else None
    return text if isinstance(text, str) else None


# --------------------------------------------------------------------------------------------- the target

_FILES = ("file_path", "filePath", "absolute_path", "notebook_path", "target_file", "filename", "file")
_SEARCHES = ("pattern", "regex", "glob", "pattern_string")
_PLACES = ("path", "relative_path", "dir_path", "directory", "dir", "paths", "uri")
_COMMANDS = ("command", "cmd", "script", "commands")
_ABOUT = (
    "url", "query", "q", "search_term", "patchText", "patch", "diff", "subject", "description", "question",
    "questions", "libraryName", "topic", "skill", "name", "element", "title", "prompt", "task", "input", "code",
    "text", "chars", "reason", "explanation", "plan", "todos", "id", "task_id", "taskId", "session_id", "bash_id",
)  # fmt: skip
_NEVER = ("workdir", "cwd", "justification", "sandbox_permissions", "timeout", "model", "subagent_type")
_WIDTH = 120
_SHORT = 300
_PATCHED = re.compile(r"^(?:\*\*\* (?:Update|Add|Delete) File: |\+\+\+ (?:b/)?)(\S.*)$", re.M)
_SHELL = re.compile(r"(?:.*/)?(?:ba|z|da|fi|pw)?sh(?:\.exe)?$|-\w*c$|(?:.*/)?powershell(?:\.exe)?$|-Command$")
_GO_THERE = re.compile(r"\s*cd\s+(?:\"[^\"]*\"|'[^']*'|[^\s;&|]+)\s*(?:&&|;|\n)\s*(?=\S)")
_LOOSE = re.compile(r"""(?<![\w.])["']?([A-Za-z_]\w*)["']?\s*:\s*"((?:[^"\\]|\\.){1,2000})""")
_BLANKS = re.compile("[\\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_SURROGATE = re.compile("[\ud800-\udfff]")


def target(name: str, arguments: bytes) -> str:
    """The thing a call is about, on one line of at most 120 printable characters: a path, a pattern and its
    place, a command's head, an address, a question.

    Args:
        name: the tool's name as on the wire; a last resort is never made of it.
        arguments: the raw JSON; what can't be parsed (a patch, a program, a torn object) is read as text.

    Returns:
        "" where there is nothing to name.
    """
    del name  # argument names say more than the hundreds of tool names do
    return _line(_aim(_parse(arguments)))


def _json(arguments: bytes) -> Any:
    """The value of some JSON; None where it is none (a lone surrogate escape is no fault)."""
    try:
        return json.loads(arguments.decode("utf-8", "replace"), parse_int=_whole)
    except (ValueError, RecursionError):
        return None


def _whole(digits: str) -> int:
    return int(digits) if len(digits) < 20 else 0


def _parse(arguments: bytes) -> Any:
    value = _json(arguments)
    if value is not None:
        return value
    text = arguments.decode("utf-8", "replace")
    if _PATCHED.search(text):
        return text
    # A torn object, or a program that calls tools: whatever reads as `key: "value"`.
    found = {key: _unescape(value) for key, value in _LOOSE.findall(text[:20_000])}
    return found if any(key in found for key in (*_FILES, *_SEARCHES, *_PLACES, *_COMMANDS)) else text


def _unescape(text: str) -> str:
    return text.replace("\\n", "\n").replace('\\"', '"').replace("\\/", "/").replace("\\\\", "\\")


def _aim(value: Any) -> str:
    if not isinstance(value, dict):
        text = _first(value, 4)
        patched = _PATCHED.findall(text[:20_000])
        return ", ".join(patched) if patched else text
    held = {key: item for key, item in value.items() if isinstance(key, str)}
    files = _pick(held, _FILES)
    if files:
        return files
    where = _pick(held, _PLACES)
    search = _pick(held, _SEARCHES)
    if search:
        return f"{search} in {where}" if where else search
    if where:
        return where
    command = _pick(held, _COMMANDS)
    if command:
        return _GO_THERE.sub("", command[:2_000], count=1)
    return _pick(held, _ABOUT) or _first({key: item for key, item in held.items() if key not in _NEVER}, 4)


def _pick(held: Mapping[str, Any], keys: Iterable[str]) -> str:
    for key in keys:
        if key in held:
            text = _flat(held[key])
            patched = _PATCHED.findall(text[:20_000]) if text.startswith(("***", "---", "diff ")) else None
            if patched:
                return ", ".join(patched)
            if text:
                return text
    return ""


def _flat(value: Any) -> str:
    if isinstance(value, str):
        return _trim(value)
    if type(value) is int:
        return str(value)
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value[:20]):
        return " ".join(word for word in value[:20] if not _SHELL.fullmatch(word[:100])).strip()
    return _first(value, 3)


def _first(value: Any, depth: int) -> str:
    """The first string in a value that is short and not blank; a lone long one is taken too."""
    if isinstance(value, str):
        return _trim(value)
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    texts = [text for text in (_first(item, depth - 1) for item in list(items)[:20]) if text] if depth else []
    return next((text for text in texts if len(text) <= _SHORT), texts[0] if texts else "")


def _trim(text: str) -> str:
    head = text[:10_000].strip()
    return head if any(map(str.isprintable, head[:200])) else ""


def _line(text: str) -> str:
    clean = _BLANKS.sub(" ", _SURROGATE.sub("\ufffd", text[:1_000])).strip()
    return clean if len(clean) <= _WIDTH else clean[: _WIDTH - 1].rstrip() + "…"


# ------------------------------------------------------------------------------------------------ specifics

_HEAD, _TAIL = 48 * 1024, 16 * 1024
_TOKEN = re.compile(
    r"`[^`\s]{2,80}`"  # quoted as code
    r"|https?://[^\s\"'`<>()\[\]{}\\]+"
    r"|\d{1,3}(?:,\d{3})+(?:\.\d+)?\w*"
    r"|[\w$@~/.-][\w$@~/.%+-]*(?:::[\w.]+)*"
)
_IS = re.compile(
    r"https?://.+"
    r"|(?!\d(?:st|nd|rd|th)$)\d[\d,]*(?:\.\d+)?(?:%|[A-Za-z]{1,3})(?<!\d)"  # with a unit
    r"|\d[\d,]+|\d+\.\d+|\d+(?:[-./]\d+)+"
    r"|--[A-Za-z][\w-]*|-[A-Za-z]"
    r"|(?=.*[\w~@]/)(?=.*[\d._-]|[~/]|.*/.*/)(?=.*\w{2})[\w$@~/.%+-]+"  # a path, but not "and/or"
    r"|\.?[\w-]{2,}(?:\.\w+)+|\.[a-z][\w.-]+"  # file names, dotted names
    r"|(?=.*[A-Za-z])(?:\w*[A-Za-z0-9]_\w+|_+\w{2,})"
    r"|[A-Za-z]*[a-z][A-Z]\w*|[A-Z]{2,}[a-z]{2,}\w*"
    r"|(?!\d(?:st|nd|rd|th)$)(?=\w*\d)(?=\w*[A-Za-z])\w{2,}"
    r"|\$\w{2,}|\w+::[\w.:]+"
    r"|(?!(?:ERROR|WARNING|PASSED|FAILED|README|TRUE|FALSE|NULL|TODO|NOTE|HTTP|JSON|HTML|PASS|FAIL|INFO|"
    r"WARN|DONE|WITH|THIS|THAT|NEVER|ALWAYS|MUST|ONLY)$)[A-Z][A-Z0-9]{3,}"
)
_EDGE = ".,:;-+%/"


def specifics(text: str) -> frozenset[str]:
    """The paths, file names, identifiers, numbers (of two digits, with decimals or a unit), hashes, flags,
    addresses and words quoted as code in a text, each as it is written.

    Of a text of more than 64 KB only the first 48 KB and the last 16 KB are looked at. A path with a slash
    comes with its last part too, so that a file is found by either name.
    """
    if len(text) > _HEAD + _TAIL:
        text = f"{text[:_HEAD]}\n{text[-_TAIL:]}"
    found = set()
    for raw in set(_TOKEN.findall(text)):
        if raw[0] == "`":
            inner = raw[1:-1].removesuffix("()")
            if any(map(str.isalnum, inner)):
                found.add(inner)
            parts = _TOKEN.findall(inner)
        else:
            parts = [raw]
        for part in parts:
            token = part.rstrip(_EDGE) if not part.endswith("%") else part
            if len(token) > 1 and len(token) <= 200 and _IS.fullmatch(token):
                found.add(token)
                if "/" in token:
                    last = token.rsplit("/", 1)[1]
                    if _IS.fullmatch(last):
                        found.add(last)
    return frozenset(found)


# ---------------------------------------------------------------------------------------------------- words

_MOST_WORDS = 6_000  # characters of the agent's words that are looked at: the last before, the first after
_CLAUSE = re.compile(r"(?<=[.!?;:])[*_\"')]*\s+|\s*\n+\s*|\s+[—–-]+\s+|—")
_WORD = re.compile(r"[^\W\d_]{3,}|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2}")
_FILLER = frozenset(
    """
    the and but for nor not with without into onto from that this these those then than them they their there
    here what when where which while who whom whose why how all any both each every few more most other some
    such only own same just also too very can cannot could will would shall should may might must have has had
    having does did doing done are was were been being its it's you your our ours his her she him about after
    again against before between down during off once out over under until upon via per let lets let's i'll i'm
    i've we'll we're we've you're that's there's here's don't doesn't didn't isn't wasn't aren't haven't
    check checks checking checked look looks looking looked see sees seeing saw view read reads reading examine
    inspect explore exploring review reviewing investigate analyze find finding finds found search searching
    verify verifying verified confirm confirming confirmed ensure ensuring make makes making made sure start
    starting started begin continue continuing proceed try trying tried run running runs rerun rerunning take
    taking get getting got give need needs needed want wants going use using used put set show shows know think
    understand understanding learn update updating updated updates fix fixing fixed fixes change changing changed
    changes edit edits editing write writing wrote add adding added create creating created implement implementing
    implemented implementation test tests testing tested first second third next now last final finally step
    steps good great perfect excellent nice okay fine well right correct correctly proper properly ready
    clean green everything something anything nothing thing things file files code codebase project repo
    repository directory folder content contents context current currently state structure details detail more
    quick quickly full fully new old existing exist exists work works working worked pass passes passed passing
    issue issues problem problems error errors bug related relevant further bit lot part way one two actual
    actually really still already yet able back let time like exactly simply together command commands output
    result results expected expect happening going happens follow information info please thanks sorry yes
    task tasks tool job request user latest complete completed completely successful successfully success
    """.split()
)
_LEAD = (
    r"[\s*_>#\"'(\d.)-]*(?:(?:ok|okay|good|great|perfect|excellent|nice|alright|right|sure|yes|now|next|then|"
    r"first|second|third|finally|also|and|so|but|meanwhile|done|thanks|here|currently)\b[\s,!.:;]*)*"
)
_STATES = r"(?:\w{3,}ed|pass\w*|fail\w*|succe\w*|is|was|are|were|has|had|hits?|broke|clean|ok|done|errors?|says?)\b"
_PLAN = re.compile(
    _LEAD + r"(?:"
    r"(?:please )?(?:let me|let's|let us|let)\b"
    r"|(?:i|we)(?:'ll| will| want to| need to| have to| should| can now|'d like to|'m going to|'re going to)\b"
    r"(?: (?:first|also|now|then|quickly|just|next|start by))*"
    r"|(?:i'm|we're|i am|we are) (?:now |also |just |still )*(?!not\b)\w+ing\b"
    r"|(?:going|time|about|ready|moving on) to\b"
    r"|(?!\w*thing\b|during\b|missing\b|nothing\b|according\b|string\b|warning\b|remaining\b|existing\b|pending\b)"
    rf"(?:re-?)?[a-z]{{2,}}ing\b(?! {_STATES})"
    r"|(?:(?:re-?)?(?:check|read|run|look|verify|search|find|update|fix|write|create|edit|open|inspect|view|test|"
    r"build|commit|push|pull|install|try|use|apply|remove|replace|rename|move|start|launch|list|explore|examine|"
    rf"review|confirm|continue|proceed|compile|implement|make|see|add|wire|drop|trim|get|fetch|format|retry)\b"
    rf"(?! {_STATES}))"
    r")[\s,]*",
    re.I,
)
_NOW_DO = re.compile(
    r"[\s*_>#]*(?:ok|okay|good|great|perfect)?[\s,!.]*now,?\s+"
    r"(?!(?:the|all|it|its|this|that|these|those|we|there|they|both|everything|every|i|no|only|my|our)\b)"
    rf"(?!\w+ {_STATES})[a-z-]+\b",
    re.I,
)
_STRONG = re.compile(
    r"\b(?:because|since|so that|in case|otherwise|given (?:that|how)|due to|whether|if|expect\w*|should|suspect|"
    r"might|may be|probably|likely|presumably|hypothesis|supposed|assum\w+|wonder|rather than|instead of|"
    r"or else|to avoid|to prevent|to rule out|to reproduce|in order to|as it|as they|which means|must)\b",
    re.I,
)
_WEAK = re.compile(
    r"\b(?:to|for|so|how|why|where|what|which|when|before|after|until|by|as|that|where|against|instead)\b", re.I
)
_TICKS = str.maketrans({"\u2019": "'", "\u2018": "'", "\u201c": '"', "\u201d": '"', "\u2011": "-"})


def _clauses(text: str) -> list[tuple[str, bool]]:
    """The clauses of a text, each with whether it only announces; a reason behind an announcement stands alone."""
    found = []
    for clause in _CLAUSE.split(text.translate(_TICKS)):
        if not clause or clause.isspace():
            continue
        plan = _PLAN.match(clause) or _NOW_DO.match(clause)
        if plan is None:
            found.append((clause, False))
            continue
        found.append((clause[plan.end() :], True))
    return found


def _stem(word: str) -> str:
    """Roughly the stem of an English word: "failures" and "failure", "caching" and "cache" meet in it."""
    if len(word) > 3 and word[-1] == "s" and word[-2] not in "su":
        word = word[:-1]
    if len(word) > 5:
        word = word.removesuffix("ing").removesuffix("ed")
    return word[:-1] if len(word) > 3 and word[-1] == "e" else word


def _content(text: str) -> set[str]:
    """Stems of the words that are no filler."""
    return {_stem(word) for word in _WORD.findall(text.lower()) if word not in _FILLER}


# ------------------------------------------------------------------------------------------- what a call names

_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_PLAIN_FILES = frozenset("index main test tests init util utils file files mod lib src app type types config".split())
_GIT = ("commit", "push", "pull", "fetch", "merge", "rebase", "diff", "status", "stash", "clone", "checkout")
_DEEDS = tuple(
    (re.compile(done, re.I), re.compile(rf"\b(?:re-?)?(?:{said})\b", re.I))
    for done, said in (
        (r"test|spec\b|jest|mocha|\btox\b|\bnox\b", r"test\w*|suites?|specs?"),
        (r"build|compile|\btsc\b|\bmake\b|cargo check|go vet|javac|gcc", r"build\w*|built|compil\w*"),
        (r"\btsc\b|mypy|pyright|type-?check", r"types?|type-?check\w*"),
        (r"lint|ruff|clippy|credo|flake8|\bvet\b", r"lint\w*|ruff|clippy|credo|flake8|vet"),
        (r"format|\bfmt\b|prettier|\bblack\b", r"format\w*|fmt|prettier"),
        (r"install|npm ci\b|uv sync", r"install\w*|dependenc\w+"),
        (r"git\b.*\blog\b", r"history|git log|recent commits?"),
        (r"bench", r"bench\w*"),
        (r"curl|wget", r"curl|requests?|endpoints?"),
        (r"deploy", r"deploy\w*"),
        *((rf"\bgit\b.*\b{verb}\b", rf"{verb.removesuffix('e')}\w*") for verb in _GIT),
    )
)
"""Deeds that a command is known by: "run the suite" names `pytest`."""
_COMMANDING = re.compile(rb'"(?:command|cmd|script)"|\A\s*[^{\s]')
_CHANGING = re.compile(
    rb'"(?:old_string|oldText|new_string|newText|new_str|file_text|edits|content|patchText|patch)"\s*:'
    rb"|\*\*\* Begin Patch|sed -i|(?:cat|tee) >|git commit|git apply"
)


@dataclass(frozen=True, slots=True)
class _Names:
    """What a call can be called by: its arguments' text, its files' names in words, its target's words, and
    the deed that its command is."""

    text: str
    files: tuple[frozenset[str], ...]
    words: frozenset[str]
    deeds: tuple[re.Pattern[str], ...]

    def holds(self, name: str) -> bool:
        """Whether a specific stands in the call's own arguments."""
        return _stands(name, self.text)

    def within(self, text: str) -> bool:
        """Whether a text names the call's target."""
        if any(deed.search(text) for deed in self.deeds):
            return True
        if any(self.holds(name) for name in specifics(text) if len(name) > 2):
            return True
        stems = {_stem(word) for word in re.findall(r"[^\W_]+", text.lower())}
        return any(file <= stems for file in self.files) or len(self.words & stems) >= 2


def _names(call: ToolCall) -> _Names:
    value = _parse(call.arguments)
    aim = _aim(value)[:2_000]
    texts = [aim]
    _collect(value, texts, 4)
    files = set()
    for token in re.findall(r"[\w./\\~-]*\w", aim[:600]):
        last = re.split(r"[/\\]", token)[-1]
        if last == token and "." not in token[1:]:
            continue
        stem = last.lstrip(".").split(".")[0]
        parts = {_stem(part.lower()) for part in _PARTS.findall(stem) if len(part) > 1}
        if len(parts) > 1:
            files.add(frozenset(parts))
        joined = _stem("".join(_PARTS.findall(stem)).lower())
        if len(joined) > 4 and joined not in _PLAIN_FILES:
            files.add(frozenset((joined,)))
    words = _content(aim[:400])
    if isinstance(value, dict):
        for key in ("description", "subject", "query"):
            words |= _content(_flat(value.get(key))[:300])
    if not aim:
        words |= _content(call.name.replace("_", " "))
    deeds: tuple[re.Pattern[str], ...] = ()
    if _COMMANDING.search(call.arguments, 0, 4_000):
        head = aim[:600]
        deeds = tuple(said for done, said in _DEEDS if done.search(head))
    return _Names("\n".join(texts).replace("\\", "")[:16_000], tuple(files), frozenset(words), deeds)


def _collect(value: Any, into: list[str], depth: int) -> None:
    if isinstance(value, str):
        into.append(value[:3_000])
    elif depth and len(into) < 40:
        for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            _collect(item, into, depth - 1)


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


# ------------------------------------------------------------------------------------------------- the verdict


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
        return Verdict(False, False)
    names = _names(call)
    before, after = before[-_MOST_WORDS:].translate(_TICKS), after[:_MOST_WORDS].translate(_TICKS)
    intent = told and names.within(before) and _reasoned(before, names, _CHANGING.search(call.arguments) is not None)
    return Verdict(intent, answered and _answered(after, names, call))


def _reasoned(text: str, names: _Names | None = None, changing: bool = False) -> bool:
    """Whether words give a reason or an expectation: something beyond announcing and beyond the target."""
    for clause, plan in _clauses(text):
        strong = _STRONG.search(clause)
        if not plan:
            if _weight(clause, names) >= (2 if strong else 3):
                return True
            continue
        if strong and _weight(clause[strong.end() :], names) >= 1:
            return True
        weak = _WEAK.search(clause)
        if weak and _weight(clause[weak.end() :], names) >= 2:
            return True
        # The change that an edit is to make is what the call was for.
        if changing and _weight(clause, names) >= 2:
            return True
    return False


def _weight(text: str, names: _Names | None) -> int:
    """How much a clause says: its content words and its specifics, without the target's."""
    words, exact = _content(text), specifics(text)
    if names is not None:
        words -= names.words
        words = words.difference(*names.files)
        return len(words) + sum(1 for name in exact if not names.holds(name))
    return len(words) + len(exact)


# --------------------------------------------------------------------------------------------------- outcomes

_QUOTED = re.compile(r"`([^`\n]{3,120})`|\"([^\"\n]{4,120})\"")
_DIGITS = dict(zip("no zero one two three four five six seven eight nine ten".split(), (0, *range(11)), strict=True))
_COUNT = re.compile(
    r"(?<![\w.#/-])(no|zero|two|three|four|five|six|seven|eight|nine|ten|\d{1,3})\s+((?:[a-z][\w-]*\s+)?)([a-z]{4,})",
    re.I,
)
_PLACED = re.compile(r"\b([a-z]{4,}) #?(\d{1,3})\b", re.I)
_NUMBER = re.compile(r"(\d[\d,]*)(\.\d+)?(k|m|b|kb|mb|gb|ms|s|%)?", re.I)
_SCALE = {"k": 1e3, "kb": 1e3, "m": 1e6, "mb": 1e6, "b": 1e9, "gb": 1e9}
_NUMBERS = re.compile(r"\d[\d,]*(?:\.\d+)?")
_ABSENT = re.compile(
    r"\b(?:no|zero|without any) (?:\w+ ){0,2}?(?:match\w*|results?|files?|hits?|output|differences?|such|callers?|"
    r"usages?|references?|occurrences?|entries|rows|mentions?|commits?|changes)\b"
    r"|\bnothing (?:found|there|came|to |matche[sd]|changed|printed|returned|staged|else)|\bnone (?:found|exist)"
    r"|\bnot (?:found|there|present|exist|installed|defined|available|tracked)\b"
    r"|\b(?:does not|doesn't|do not|don't|did not|didn't) (?:exist|match|find|appear|contain|print|return)\b"
    r"|\b(?:is|are|was|were|comes? back|came back|returns?|returned|prints?|printed) (?:empty|missing|gone|nothing)\b"
    r"|\bempty (?:result|output|file|list|diff)\b|\babsent\b",
    re.I,
)
_ABSENCE = re.compile(
    r"\bno (?:\w+ ){0,3}(?:found|match|result|file|output|such|entries|rows|changes)|not found|no such|not exist"
    r"|doesn't exist|nothing to\b|\bempty\b|\bmissing\b|cannot find|can't find|unable to (?:find|locate)|enoent|\b404\b"
    r"|\b0 (?:\w+ )?(?:match|result|file|row|total)|up[ -]to[ -]date|working tree clean|without output|not installed",
    re.I,
)
_EXITED = re.compile(r"\b(?:exit(?:s|ed)?|return(?:s|ed)?|status)(?: with)?(?: status| code)? (\d{1,3})\b", re.I)
_EXIT = re.compile(r"exit(?:ed)?(?: with)?(?: status| code)?[:=]? ?(\d+)", re.I)
_GOOD = re.compile(
    r"\b(?:pass(?:es|ed|ing)?|succe\w+|green|clean(?:ly)?|compiles?|compiled|built|works|worked|healthy|exists?|"
    r"up[ -]to[ -]date|merged|applied|installed|landed|valid|pushed|committed|no (?:\w+ ){0,2}(?:errors?|issues?|"
    r"warnings?|failures?|problems?|conflicts?|regressions?))\b",
    re.I,
)
_CHANGED = re.compile(r"\b(?:now|wrote|written|rewrote|rewritten|made|\w{3,}ed)\b", re.I)
_BAD = re.compile(
    r"\b(?:fail(?:s|ed|ing|ures?)?|errors?|errored|broke|broken|crash\w*|panic\w*|conflicts?|tim(?:ed|es) out|timeout|"
    r"hangs?|hung|denied|refused|rejected|abort\w*|interrupt\w*|cancel\w*|killed|missing|invalid|cannot|can't|"
    r"couldn't|unable|unknown|unused|exceptions?)\b",
    re.I,
)
_FAILED = re.compile(
    r"^\s*(?:fail\b|error\b|e {2,}|fatal:|panic:|---? fail)|traceback \(|\berror(?:\[\w+\])?:|error ts\d|"
    r"\b[1-9]\d* (?:failed|failures?|errors?|problems?|failing)\b|exit(?:ed)?(?: with)?(?: status| code)?[:=]? ?[1-9]|"
    r"\bconflict\b|not found|no such file|\bdenied\b|\brefused\b|timed out|\bfailed\b|✗|✕|✘",
    re.I | re.M,
)
_HARMLESS = re.compile(r"\b(?:0|no) (?:failed|failures?|errors?|problems?)\b|\bfailed[:=] ?0\b", re.I)
_WRAPPED = re.compile(r"\A(?:[^\n]*\n){1,8}?Output:\n")
_QUIET = re.compile(r"[\s(<\[]*(?:[\w ]*(?:no output|without output)[\w ]*)?[\s.)>\]]*(?:</\w+>)?\s*\Z", re.I)


def _answered(text: str, names: _Names, call: ToolCall) -> bool:
    """Whether words carry a specific of the result, or a verdict that fits it."""
    said = [told for clause, plan in _clauses(text) if (told := _behind(clause) if plan else clause)]
    if not said:
        return False
    if call.result is None:
        return any(_BAD.search(clause) for clause in said)
    full = call.result
    result = full if len(full) <= _HEAD + _TAIL else f"{full[:_HEAD]}\n{full[-_TAIL:]}"
    lowered = result.lower()
    changing = _CHANGING.search(call.arguments) is not None
    return (
        any(_carries(clause, names, full, result) for clause in said)
        or any(_counted(clause, names, lowered) for clause in said)
        or any(_retells(clause, names, lowered) for clause in said)
        or _fits(said, names, call.error, result, changing)
    )


def _behind(clause: str) -> str:
    """Of an announcement only the reason in it, which may state what was found."""
    strong = _STRONG.search(clause)
    return clause[strong.end() :] if strong else ""


def _carries(clause: str, names: _Names, full: str, result: str) -> bool:
    """A specific or a quoted phrase of the clause stands in the result and not in the call."""
    for name in specifics(clause):
        # A small number stands in any long result; it counts with its noun only (`_counted`).
        if len(name) < 3 and name.isdigit() or names.holds(name):
            continue
        if _stands(name, full) or _same_number(name, result):
            return True
    for code, phrase in _QUOTED.findall(clause):
        quoted = (code or phrase).strip()
        if len(quoted) > 3 and quoted not in names.text and quoted in full:
            return True
    return False


def _same_number(name: str, result: str) -> bool:
    """A number that the result spells otherwise: with thousands separators, with another unit, or unrounded."""
    read = _NUMBER.fullmatch(name)
    if read is None:
        return False
    digits, decimals, unit = read[1].replace(",", ""), read[2] or "", (read[3] or "").lower()
    if not decimals and not unit:
        return _stands(digits, result) or (len(digits) < 16 and _stands(f"{int(digits):,}", result))
    if _stands(digits + decimals, result):
        return True
    scale = _SCALE.get(unit, 1.0)
    if len(digits + decimals) < (3 if scale > 1 else 4) or len(digits) > 15:
        return False
    value, slack = float(digits + decimals) * scale, 0.5001 * scale / 10 ** max(len(decimals) - 1, 0)
    numbers = (number for number in _NUMBERS.findall(result) if len(number) < 20)
    return any(abs(float(number.replace(",", "")) - value) <= slack for number in numbers)


def _counted(clause: str, names: _Names, lowered: str) -> bool:
    """A count or a numbered thing ("3 races", "no callers", "line 42") as the result has it."""
    for number, _, noun in _COUNT.findall(clause):
        word = _DIGITS.get(number.lower())
        digit, stem = int(number) if word is None else word, re.escape(_stem(noun.lower()))
        if re.search(rf"(?<![\d.,]){digit}[^\w\n]{{1,3}}(?:\w+\W)?{stem}|\b{stem}\w*[^\w\n]{{1,4}}{digit}(?![\d.])", lowered):
            return True
        if digit == 0 and re.search(rf"\bno (?:\w+ )?{stem}", lowered):
            return True
        if digit > 1 and digit == sum(1 for line in lowered.splitlines() if line.strip()):
            return True
    for noun, number in _PLACED.findall(clause):
        place = f"{noun.lower()} {number}"
        if place in lowered and place not in names.text.lower():
            return True
        if noun.lower() in ("line", "lines") and re.search(rf"(?:^|[:\n])\s*{number}(?:[:\t→-]|\s)", lowered):
            return True
    return False


def _retells(clause: str, names: _Names, lowered: str) -> bool:
    """Plain words that retell the result: several content words of one clause stand in it, none from the call."""
    return len(_shared(clause, names, lowered)) >= (3 if len(lowered) < 4_000 else 5)


def _shared(clause: str, names: _Names, lowered: str) -> set[str]:
    return {word for word in _content(clause) - names.words if len(word) > 3 and word in lowered}


def _fits(said: Sequence[str], names: _Names, error: bool, result: str, changing: bool) -> bool:
    """A verdict that is true of this result: a thing is absent, an exit code, a failure, a success.

    A success has a subject: "the build is clean" is a verdict of a build, "confirmed clean" of nothing.
    """
    wrapped = _WRAPPED.match(result)
    blank = _QUIET.match(result, wrapped.end() if wrapped else 0) is not None
    failed = error or _FAILED.search(_HARMLESS.sub("", result)) is not None
    lowered, codes = result.lower(), frozenset(_EXIT.findall(result))
    for clause in said:
        if _ABSENT.search(clause) and (blank or _ABSENCE.search(result)):
            return True
        exited = _EXITED.search(clause)
        if exited and exited[1] in codes:
            return True
        if failed and _BAD.search(clause) and (names.within(clause) or _shared(clause, names, lowered)):
            return True
        if not failed and (_GOOD.search(clause) or (changing and _CHANGED.search(clause))) and names.within(clause):
            return True
    return False


# ----------------------------------------------------------------------------------------------- whole histories


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

    Parallel calls share the words before and after their batch; words between them stand before. Of the words
    between two batches the human's own make runs: the batch before them has the first run, the batch behind
    them the last (the agent answers a result first and announces a call last). Calls of our own tools are
    not counted, though `micro_handoff` and `recall` part the words as any batch does; a `say` call's text
    is words, standing before its own batch.

    Args:
        events: the history in order; the human's words are `Said` with that author.
    """
    batches = _batches(events)
    verdicts: list[tuple[str, Verdict]] = []
    ritual = 0
    for batch in batches:
        before, after = _words(reversed(batch.before)), _words(batch.after)
        if batch.calls and before and not _reasoned(before[-_MOST_WORDS:].translate(_TICKS)):
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
            last = _Batch(event.batch, runs, [], [])
            batches.append(last)
            runs = last.after
            runs.append([])
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
