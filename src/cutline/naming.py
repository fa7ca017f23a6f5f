"""Naming: what a call can be called by, and whether words call it so.

Law: from the call alone, never from its result, so that what is asked before a call is answered as after it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple

from .clauses import part
from .specifics import FILLER, aim, content, flat, lazily, read, stands, stem, stems, texts

_ABOUT, _FIRST, _TEXT, _ALL = 2_000, 600, 3_000, 16_000  # characters of a call that are looked at
_PIECES = lazily(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_FILE = lazily(r"[\w~-]*[./\\][\w./\\~-]+")
_PLAIN_FILES = frozenset(("index", "main", "tests", "utils", "files", "types", "config", "common", "helper"))
_GIT = ("commit", "push", "pull", "fetch", "merge", "rebase", "diff", "stash", "clone")
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
        ("", (" mkdir ",), r"director\w+|folders?"),
        ("", (" rm ", " git rm "), r"remov\w+|delet\w+"),
        ("", (" mv ",), r"mov\w+|renam\w+"),
        ("", (" cp ",), r"cop(?:y|ied|ies)\w*"),
        ("git", (" log",), r"history|git log|recent commits?"),
        ("git", (" status",), r"status|(?:working )?tree"),
        ("git", (" add",), r"stag\w+|adds?|added"),
        ("git", (" checkout", " switch", " branch"), r"branch\w*|check\w* out"),
        ("git", (" checkout", " restore", " revert", " reset"), r"revert\w*|restor\w+|undo\w*"),
        ("git", (" --amend",), r"amend\w*"),
        *(("git", (f" {verb}",), rf"{verb.removesuffix('e')}\w*") for verb in _GIT),
    )
)
"""Deeds that a command is known by: "run the suite" names `pytest`."""
_COMMANDING = re.compile(rb'"(?:command|cmd|script)"|\A\s*[^{\s]')
_SOUGHT = lazily(r"\b(?:grep|rg|ag|ack)\s[^\"'|;&]*[\"']([^\"']{3,200})")
_LONG = 4  # letters that a word of a pattern has more than, if it names the search
_WAITED = lazily(
    r"\b(?:wait\w*|running|still active|in progress|in flight|load(?:s|ing)|finish\w*|session|process)\b", re.I
)
"""What a call is named by that only asks how another one is getting on."""
_CHANGING = (
    *(b'"old_string"', b'"oldText"', b'"new_str"', b'"file_text"', b'"edits"', b'"content":', b'"patch'),
    *(b"*** Begin Patch", b"sed -i", b"cat >", b"tee ", b"git commit", b"git apply"),
)
_MOVING = re.compile(rb'["\s;&|(](?:rm|mv|cp|mkdir|touch|edit|create|insert|git (?:checkout|switch|rebase|rm|mv)) ')


@lru_cache(maxsize=256)
def _spelt(text: str) -> frozenset[str]:
    """Stems of all words, and of the words that names are made of."""
    mixed = [name for name in part(text).names if not (name.islower() or name.isupper())]
    return stems(text).union(stem(piece.lower()) for name in mixed for piece in _PIECES().findall(name))


class Names(NamedTuple):
    """What a call can be called by.

    Attributes:
        text: its arguments' text.
        about: what it is about (`specifics.aim`).
        files: its files' names in words.
        words: its target's words, two of which name it.
        sought: of a search the words that it looks for, one of which names it; of a call without words its tool's.
        deeds: what a command does.
    """

    text: str
    about: str
    files: tuple[frozenset[str], ...]
    words: frozenset[str]
    sought: frozenset[str]
    deeds: tuple[re.Pattern[str], ...]

    def within(self, *said: str) -> bool:
        """Whether texts name the call's target."""
        for text in said:
            if any(deed.search(text) for deed in self.deeds):
                return True
            if any(len(name) > 2 and self._holds(name) for name in part(text).names):
                return True
        words = frozenset[str]().union(*map(_spelt, said))
        return (
            any(file <= words for file in self.files)
            or len(self.words & words) >= 2
            or not self.sought.isdisjoint(words)
        )

    def _holds(self, name: str) -> bool:
        """Whether a name, or the last part of a dotted one, stands in the call."""
        if stands(name, self.text):
            return True
        last = name.rpartition(".")[2]
        return _LONG < len(last) < len(name) and stands(last, self.text)


@lru_cache(maxsize=16)  # a call is asked for by its own verdict and by its batch's
def names(tool: str, arguments: bytes) -> Names:
    """What a call can be called by."""
    value = read(arguments)
    about = aim(value)[:_ABOUT]
    bare = not about or (about.strip().isdigit() and all(map(str.isdigit, texts(value))))
    words = frozenset[str]() if bare else content(about[:400])
    if isinstance(value, dict):
        words |= content(" ".join(flat(value.get(key))[:300] for key in ("description", "subject", "query")))
    deeds: tuple[re.Pattern[str], ...] = (_WAITED(),) if bare and about else ()
    if _COMMANDING.search(arguments, 0, 4_000):
        line = f" {about[:_FIRST].lower()} ".replace("/testbed", "")  # a benchmark's checkout is no test
        deeds = tuple(said() for head, done, said in _DEEDS if head in line and any(word in line for word in done))
    sought = content(" ".join(_PIECES().findall(tool))) if bare else _sought(value, about)
    text = "\n".join([about, *(text[:_TEXT] for text in texts(value))])[:_ALL].replace("\\", "")
    return Names(text, about, tuple(_files(about[:_FIRST])), words, sought, deeds)


def _files(about: str) -> set[frozenset[str]]:
    files = set()
    for token in _FILE().findall(about):
        last = token.replace("\\", "/").rstrip("/.-").rsplit("/", 1)[-1]
        if last == token and "." not in token[1:]:
            continue
        pieces = _PIECES().findall(last.lstrip(".").split(".")[0])
        joined = stem("".join(pieces).lower())
        if len(joined) > 4 and joined not in _PLAIN_FILES:
            files.add(frozenset((joined,)))
        if len(pieces) > 1:
            files.add(frozenset(stem(piece.lower()) for piece in pieces))
    return files


def _sought(value: Any, about: str) -> frozenset[str]:
    """The words that a search looks for."""
    pattern = value.get("pattern") or value.get("regex") if isinstance(value, dict) else None
    if not isinstance(pattern, str):
        found = _SOUGHT().search(about)
        pattern = found[1] if found else ""
    if not pattern:
        return frozenset()
    return frozenset(stem(piece.lower()) for piece in _PIECES().findall(pattern[:200]) if len(piece) > _LONG) - FILLER


def changes(arguments: bytes) -> bool:
    """Whether a call changes something. A to-do list has contents too, but changes nothing."""
    if b'"todos"' in arguments[:200]:
        return False
    return any(mark in arguments for mark in _CHANGING) or _MOVING.search(arguments, 0, 4_000) is not None
