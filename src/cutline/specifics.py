"""Specifics: what a call is about, and what a text holds that can't be guessed.

Law: pure text in, text out; whatever the arguments are (torn JSON, a patch, a program, lone surrogates,
megabytes), something is read out of them and nothing is raised.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache, partial
from typing import Any


def lazily(pattern: str, flags: int = 0) -> Callable[[], re.Pattern[str]]:
    """A pattern that is compiled when it is first asked for: these take longer than anything else of an import."""
    return cache(partial(re.compile, pattern, flags))


# The target: what a call is about

_FILES = ("file_path", "filePath", "absolute_path", "notebook_path", "target_file", "filename", "file")
_SEARCHES = ("pattern", "regex", "glob")
_PLACES = ("path", "relative_path", "dir_path", "directory", "dir", "paths", "uri")
_COMMANDS = ("command", "cmd", "script", "commands")
_SALVAGED = frozenset((*_FILES, *_SEARCHES, *_PLACES, *_COMMANDS))
_ABOUT = (
    *("url", "query", "q", "search_term", "patchText", "patch", "diff", "subject", "description", "question"),
    *("questions", "topic", "skill", "name", "title", "prompt", "task", "input", "code", "text", "chars"),
    *("reason", "explanation", "plan", "todos", "id", "task_id", "taskId", "session_id", "bash_id"),
)
_NEVER = ("workdir", "cwd", "justification", "sandbox_permissions", "timeout", "model", "subagent_type")
_WIDTH, _SHORT, _LONG = 120, 300, 10_000
SETTINGS = ("timeout", "timeout_ms", "yield_time_ms", "max_output_tokens", "limit", "head_limit", "session_id")
"""Arguments whose numbers say how a call is made, and nothing of the work."""
_PATCHED = lazily(r"^(?:\*\*\* (?:Update|Add|Delete) File: |\+\+\+ (?:b/)?)(\S.*)$", re.M)
_SHELL = lazily(r"(?:.*/)?(?:ba|z|da|fi|pw)?sh(?:\.exe)?|-\w*c|(?:.*/)?powershell(?:\.exe)?|-Command")
_GO_THERE = lazily(r"\s*cd\s+(?:\"[^\"]*\"|'[^']*'|[^\s;&|]+)[ \t]*(?:&&|;|\n)\s*(?=\S)")
_LOOSE = lazily(r"""(?<![\w.])["']?([A-Za-z_]\w{0,30})["']?\s*:\s*"((?:[^"\\]|\\.){1,2000})""")
_BLANKS = lazily("[\\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_SPACES = lazily(r"\s+")
_SURROGATE = lazily("[\ud800-\udfff]")


def target(name: str, arguments: bytes) -> str:
    """The thing a call is about, on one line of at most 120 printable characters.

    A path, a pattern and its place, a command's head (without the `cd` before it), an address, a question.

    Args:
        name: the tool's name as on the wire; arguments' names say more, so nothing is made of it.
        arguments: the raw JSON; what can't be parsed (a patch, a program, a torn object) is read as text.

    Returns:
        "" where there is nothing to name.
    """
    del name
    return one_line(aim(read(arguments)))


def one_line(text: str) -> str:
    """A text as a target is printed: one line of at most 120 characters."""
    clean = _BLANKS().sub(" ", _SURROGATE().sub("\ufffd", text[:1_000])).strip()
    return clean if len(clean) <= _WIDTH else clean[: _WIDTH - 1].rstrip() + "…"


def value_of(arguments: bytes) -> Any:
    """The value of a call's raw arguments; None where they are no JSON. A lone surrogate escape is no fault."""
    try:
        return _DECODER.decode(arguments.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def _whole(digits: str) -> int:
    return int(digits) if len(digits) < 20 else 0


_DECODER = json.JSONDecoder(parse_int=_whole)


def read(arguments: bytes) -> Any:
    """The arguments' value; of what is no JSON, the members that can be salvaged, or else its text."""
    value = value_of(arguments)
    if value is not None:
        return value
    text = arguments[: 4 * _LONG].decode("utf-8", "replace")
    if _PATCHED().search(text):
        return text
    # A torn object, or a program that calls tools: whatever reads as `key: "value"`.
    found = {key: inner.replace('\\"', '"').replace("\\\\", "\\") for key, inner in _LOOSE().findall(text)}
    return found if _SALVAGED & found.keys() else text


def aim(value: Any) -> str:
    """What a call with these arguments is about: whole and raw, up to some thousand characters."""
    if not isinstance(value, dict):
        return _patched(next(texts(value), ""))
    search, where = _pick(value, _SEARCHES), _pick(value, _PLACES)
    found = _pick(value, _FILES) or (f"{search} in {where}" if search and where else search or where)
    if found:
        return found
    command = _pick(value, _COMMANDS)[:2_000]
    there = _GO_THERE().match(command)
    return (
        command[there.end() if there else 0 :]
        or _pick(value, _ABOUT)
        or _brief(item for key, item in value.items() if key not in _NEVER)
    )


def _pick(held: Mapping[str, Any], keys: Iterable[str]) -> str:
    return next((text for key in keys if key in held and (text := flat(held[key]))), "")


def flat(value: Any) -> str:
    """One text of one argument: a list of words is a command line, a patch is the files that it names."""
    if type(value) is int:
        return str(value)
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value[:20]):
        return " ".join(word for word in value[:20] if not _SHELL().fullmatch(word[:100])).strip()
    return _patched(_brief([value]))


def _patched(text: str) -> str:
    """The files that a patch names; any other text as it is."""
    files = _PATCHED().findall(text) if text.startswith(("***", "---", "diff ")) else None
    return ", ".join(files) if files else text


def _brief(values: Iterable[Any]) -> str:
    """The first short string in some values; only where there is none, the first long one."""
    long = ""
    for value in values:
        for text in texts(value):
            if len(text) <= _SHORT:
                return text
            long = long or text
    return long


def texts(value: Any, depth: int = 4) -> Iterator[str]:
    """The strings in a value, in order, without blank ones, each up to 10,000 characters."""
    if isinstance(value, str):
        text = value[:_LONG].strip()
        if any(map(str.isprintable, text[:200])):
            yield text
    elif depth:
        items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        for item in list(items)[:30]:
            yield from texts(item, depth - 1)


def written(value: Any) -> Iterator[str]:
    """The strings and numbers of a value, in order and whole; numbers that only set how a call is made are left out."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key not in SETTINGS or isinstance(inner, str):
                yield from written(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from written(inner)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def folded(text: str) -> str:
    """A text on one line, in lower case: as words are looked for where neither matters."""
    return _SPACES().sub(" ", text).strip().lower()


# Specifics: what a text holds that can't be guessed

_HEAD, _TAIL = 48 * 1024, 16 * 1024


def _token(word: str, digit: str, space: str) -> str:
    """The pattern of what may be a specific, by the classes that it is made of."""
    rest = rf"[{word}$@~/.%+-]*(?:::[{word}.]+)*"
    # The first character is a class of its own: what begins nothing is passed over quickly.
    return (
        rf"[`{word}$@~/.-](?:(?<![`h{digit}]){rest}"
        rf"|(?<=`)[^`{space}]{{2,80}}`"
        rf"|(?<=h)(?:ttps?://[^{space}\"'`<>()\[\]{{}}\\]+|{rest})"
        rf"|(?<=[{digit}])(?:[{digit}]{{0,2}}(?:,[{digit}]{{3}})+(?:\.[{digit}]+)?[{word}]*|{rest}))"
    )


_TOKEN = lazily(_token(r"\w", r"\d", r"\s"))
_ASCII_TOKEN = lazily(_token("A-Za-z0-9_", "0-9", r" \t\n\r\f\v\x1c-\x1f"))  # the same there, in half of the time
_COMMON = "ERROR|WARNING|PASSED|FAILED|README|TRUE|FALSE|NULL|TODO|NOTE|HTTP|JSON|HTML|PASS|FAIL|INFO|WARN|DONE"
_IS = lazily(
    r"https?://.+"
    r"|(?!\d+(?:st|nd|rd|th)$)\d[\d,]*(?:\.\d+)?(?:%|[A-Za-z]{1,3})"  # a number with its unit
    r"|\d[\d,]+|\d+\.\d+|\d+(?:[-./]\d+)+"
    r"|--[A-Za-z][\w-]*|-[A-Za-z]"
    r"|(?=.*[\w~@]/)(?=.*[\d._-]|[~/]|.*/.*/)(?=.*\w{2})[\w$@~/.%+-]+"  # a path, but not "and/or"
    r"|\.?[\w-]{2,}(?:\.\w+)+|\.[a-z][\w.-]+"  # file names, dotted names
    r"|(?=.*[A-Za-z])(?:\w*[^\W_]_\w+|_+\w{2,})"
    r"|[A-Za-z]*[a-z][A-Z]\w*|[A-Z]{2,}[a-z]{2,}\w*"
    r"|(?!\d+(?:st|nd|rd|th)$)(?=\w*\d)(?=\w*[A-Za-z])\w{2,}"
    r"|\$\w{2,}|\w+::[\w.:]+"
    rf"|(?!(?:{_COMMON})$)[A-Z][A-Z0-9]{{3,}}"
)
_IS_WORD = lazily(  # the same of one word, in half of the time
    r"(?=.*[A-Za-z])(?:\w*[^\W_]_\w+|_+\w{2,})"
    r"|[A-Za-z]*[a-z][A-Z]\w*|[A-Z]{2,}[a-z]{2,}\w*"
    r"|(?!\d+(?:st|nd|rd|th)$)(?=\w*\d)(?=\w*[A-Za-z])\w{2,}|\d{2,}"
    rf"|(?!(?:{_COMMON})$)[A-Z][A-Z0-9]{{3,}}"
)


def _is(token: str) -> bool:
    """Whether a token is a specific."""
    pattern = _IS_WORD() if token.isidentifier() or token.isalnum() else _IS()
    return pattern.fullmatch(token) is not None


def specifics(text: str) -> frozenset[str]:
    """The specifics of a text, each as it is written.

    They are paths, file names, identifiers, numbers (of two digits, with decimals or a unit), hashes, flags,
    addresses, errors by name, and single words quoted as code. A path comes with its last part too, so that
    a file is found by either name. Of a text of more than 64 KB the first 48 KB and the last 16 KB are read.
    """
    found: set[str] = set()
    for raw in tokens(ends(text)):
        found.update(_within(raw))
    return frozenset(found)


def names(text: str) -> dict[str, None]:
    """The specifics of a text in their order, whatever its length; a path's last part only where it stands alone."""
    found: dict[str, None] = {}
    for raw in tokens(text):
        for name in _alone(raw):
            found[name] = None
    return found


@lru_cache(maxsize=16_384)
def _alone(raw: str) -> tuple[str, ...]:
    """The specifics that a token holds, without the last part of a path that it holds too."""
    held = _within(raw)
    if len(held) < 2:
        return held
    return tuple(name for name in held if not any(other.endswith(f"/{name}") for other in held))


@lru_cache(maxsize=16_384)  # most tokens of a history come again and again
def _within(raw: str) -> tuple[str, ...]:
    """The specifics that a token holds."""
    found: dict[str, None] = {}
    parts = [raw]
    if raw[0] == "`":
        inner = raw[1:-1].removesuffix("()")
        if any(map(str.isalnum, inner)):
            found[inner] = None
        parts = _TOKEN().findall(inner)
    for part in parts:
        token = part if part[-1] == "%" else part.rstrip(".,:;-+%/")
        if 1 < len(token) <= 200 and _is(token):
            found[token] = None
            if "/" in token and _is(last := token.rsplit("/", 1)[-1]):
                found[last] = None
    return tuple(found)


def tokens(text: str) -> list[str]:
    """What may be a specific in a text, in order, each once; the specifics of the tokens are those of the text."""
    # Most tokens are plain words: told apart here, in a tenth of the time that the patterns take.
    found = dict.fromkeys((_ASCII_TOKEN() if text.isascii() else _TOKEN()).findall(text))
    return [raw for raw in found if not (raw.isalpha() and (raw.islower() or raw.istitle()))]


def ends(text: str, head: int = _HEAD, tail: int = _TAIL) -> str:
    """A text, or of a long one only its head and its tail, of these many characters."""
    return text if len(text) <= head + tail else f"{text[:head]}\n{text[-tail:]}"


def stands(name: str, text: str) -> bool:
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


# Content words: what is left of a text without filler

WORD = lazily(r"[^\W\d_]{3,}|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2}")
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


@lru_cache(maxsize=4_096)
def stem(word: str) -> str:
    """Roughly the stem of an English word: "failures" and "failure", "caching" and "cache" meet in it."""
    if len(word) > 3 and word[-1] == "s" and word[-2] not in "su":
        word = word[:-1]
    if len(word) > 5:
        word = word.removesuffix("ing").removesuffix("ed")
    return word[:-1] if len(word) > 3 and word[-1] == "e" else word


FILLER = frozenset(map(stem, _FILLER_WORDS.split()))


@lru_cache(maxsize=256)
def stems(text: str) -> frozenset[str]:
    """Stems of all words, those inside names too."""
    return frozenset(map(stem, re.findall(r"[^\W_]+", text.lower())))


def content(text: str) -> frozenset[str]:
    """Stems of the words that are no filler."""
    return frozenset(map(stem, WORD().findall(text.lower()))) - FILLER
