"""Where Gemini CLI keeps its sessions, and whose they are.

Law: looking is cheap and changes nothing. A listing reads the two ends of a file. A saved chat and a sub-agent's file
are none of the list; a path is taken as given.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ..opening import EDGE, edges, one_line, regular
from .people import origin

_ID = re.compile(rb'"sessionId"\s*:\s*"([^"\\]+)"').search
_SUBAGENT = re.compile(rb'"kind"\s*:\s*"subagent"').search
_STRING = rb'("(?:[^"\\]|\\.)*")'
_SUMMARY = re.compile(
    rb'^(?:\{"\$set":\{"summary":|\{"sessionId":[^\n]*?,"summary":|  "summary": )' + _STRING, re.M
).findall
_TYPED = re.compile(rb'"type"\s*:\s*"user"\s*,\s*"content"\s*:\s*(?:\[\s*\{\s*"text"\s*:\s*)?' + _STRING).finditer
_MARK = ".project_root"
_ANSWERED = re.compile(rb'"type"\s*:\s*"gemini"').search


@dataclass(frozen=True)
class SessionFile:
    """A session file as a listing shows it (the attributes are `model.SessionFile`'s)."""

    path: Path
    folder: str
    size: int
    mtime: float

    @cached_property
    def id(self) -> str:
        """The id that stands at the file's beginning, else the file's name without its ending."""
        found = _ID(self._edges[0])
        return found[1].decode("utf-8", "replace") if found else self.path.stem

    @cached_property
    def title(self) -> str:
        """The client's title, else the first words that a person typed; "" where neither is near the file's ends."""
        head, tail = self._edges
        titles = [*_SUMMARY(head), *_SUMMARY(tail)]
        if titles:
            return one_line(_decoded(titles[-1]))
        typed = (_decoded(found[1]) for found in _TYPED(head))
        return one_line(next((words for words in typed if origin(words) == "human" and words.strip()), ""))

    @property
    def talks(self) -> bool:
        """Whether somebody says something in it; a large file is taken to talk."""
        if self.size > 2 * EDGE or any(map(_ANSWERED, self._edges)):
            return True
        return any(origin(_decoded(found[1])) == "human" for found in _TYPED(self._edges[0]))

    @property
    def subagent(self) -> bool:
        """Whether it is a sub-agent's."""
        return bool(_SUBAGENT(self._edges[0].partition(b"\n{")[0][:4096]))

    @cached_property
    def _edges(self) -> tuple[bytes, bytes]:
        return edges(self.path, self.size)


def home() -> Path:
    """The client's folder: ``.gemini`` in ``$GEMINI_CLI_HOME``, else in the user's home."""
    configured = os.environ.get("GEMINI_CLI_HOME")
    return (Path(configured) if configured else Path.home()) / ".gemini"


def projects() -> Path:
    """Where each project has a folder, named after its directory, in older versions after a hash of its path."""
    return home() / "tmp"


def sessions(cwd: str | os.PathLike[str] | None = None) -> list[SessionFile]:
    """The sessions of a working directory, or of every one, the newest first; of one id the newest file counts."""
    found = [file for folder in _folders(cwd) for file in _listed(folder)]
    newest: dict[str, SessionFile] = {}
    for file in sorted(found, key=lambda file: (-file.mtime, str(file.path))):
        if not file.subagent:
            newest.setdefault(file.id, file)
    return list(newest.values())


def subagents(path: Path, id_: str) -> tuple[Path, ...]:
    """The files of a session's sub-agents, in order of their names."""
    folder = path.parent / id_
    if not id_ or os.sep in id_ or not folder.is_dir():
        return ()
    return tuple(sorted(file for file in folder.iterdir() if file.suffix in (".json", ".jsonl") and file.is_file()))


def directory(path: Path, project_hash: str) -> str:
    """The working directory of a session file: as its project's folder says, else as the client's register does."""
    folder = path.resolve().parent
    folder = folder.parent if folder.name == "chats" else folder
    with suppress(OSError, UnicodeDecodeError):
        named = (folder / _MARK).read_text("utf-8").strip()
        if named:
            return named
    for cwd, slug in _register().items():
        if slug == folder.name or hashed(cwd) in (folder.name, project_hash):
            return cwd
    return ""


def hashed(cwd: str) -> str:
    """What the client calls a project's hash."""
    return hashlib.sha256(cwd.encode("utf-8", "surrogateescape")).hexdigest()


def _register() -> dict[str, str]:
    """The folder's name of each directory that newer versions have seen."""
    try:
        found = json.loads((home() / "projects.json").read_bytes())["projects"]
        return {cwd: slug for cwd, slug in found.items() if isinstance(slug, str)}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def _folders(cwd: str | os.PathLike[str] | None) -> Iterator[Path]:
    root = projects()
    try:
        every = sorted(folder for folder in root.iterdir() if folder.is_dir())
    except OSError:
        return
    if cwd is None:
        yield from every
        return
    here = os.path.realpath(cwd)
    known = {hashed(here), _register().get(here, "")}
    for folder in every:
        if folder.name in known or _owner(folder) == here:
            yield folder


def folder_of(cwd: str) -> Path:
    """The folder of a directory's sessions: the one that the client would take, else one that it will take for its own.

    The client looks the directory up in its register, then in the mark that each folder carries, and makes a name of
    the directory's where neither knows it. What an older version had is in a folder named by a hash; the client takes
    that over once, unless a newer one holds something: so it goes into the old one then.

    Raises:
        OSError: it can't be made.
    """
    here = os.path.realpath(cwd)
    root, known = projects(), _register()
    if here in known and _owner(root / known[here]) in ("", here):
        named = [root / known[here]]
    else:
        named = [folder for folder in sorted(root.glob("*/")) if _owner(folder) == here][:1]
    old = root / hashed(here)
    if not named and old.is_dir():
        (old / "chats").mkdir(exist_ok=True)
        return old / "chats"
    taken = set(known.values())
    slug = re.sub("[^a-z0-9]+", "-", Path(here).name.lower()).strip("-") or "project"
    names = (slug if number == 0 else f"{slug}-{number}" for number in itertools.count())
    free = (root / name for name in names if name not in taken and not (root / name).exists())
    folder = named[0] if named else next(free)
    (folder / "chats").mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError), (folder / _MARK).open("x", encoding="utf-8") as mark:
        mark.write(here)
    return folder / "chats"


def _owner(folder: Path) -> str:
    try:
        return (folder / _MARK).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _listed(folder: Path) -> Iterator[SessionFile]:
    try:
        entries = list((folder / "chats").iterdir())
    except OSError:
        return
    for path in entries:
        if path.suffix not in (".json", ".jsonl") or not path.name.startswith("session-"):
            continue
        found = regular(path)
        if found and found.st_size:
            yield SessionFile(path, folder.name, found.st_size, found.st_mtime)


def _decoded(literal: bytes) -> str:
    try:
        value = json.loads(literal)
    except ValueError:
        return ""
    return value if isinstance(value, str) else ""
