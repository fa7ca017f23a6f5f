"""Where Codex keeps its sessions, and what a listing shows of one.

Law: looking is cheap and changes nothing. Of a file a listing reads the first and the last 64 KB, for a title at most
the first 512 KB, and the client's own list of names once. Sub-agents' files belong to their session and are none of
their own.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from ..opening import EDGE, one_line
from . import packed
from .people import request_of, typed

_NAME = re.compile(r"rollout-(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d)-([0-9a-fA-F-]{36})\.jsonl(?:\.zst)?\Z")
_CWD = re.compile(rb'"cwd"\s*:\s*("(?:[^"\\]|\\.)*")').search
_TAGGED = re.compile(rb"<cwd>([^<\\]+)</cwd>|Current working directory: ([^\\]+)").search
_SUBAGENT = re.compile(rb'"source"\s*:\s*\{\s*"sub_?agent"', re.IGNORECASE).search
_PARENT = re.compile(rb'"parent_thread_id"\s*:\s*"([^"\\]+)"').search
_TALK = re.compile(rb'"type"\s*:\s*"(?:message|function_call|user_message|agent_message)"').search
_RENAMED = re.compile(rb'"thread_name"\s*:\s*("(?:[^"\\]|\\.)*")').findall
INDEX = "session_index.jsonl"


@dataclass(frozen=True)
class SessionFile:
    """A rollout file as a listing shows it.

    Attributes:
        path: the file.
        id: the session's id, by the file's name.
        size: bytes, packed or not.
        mtime: time of the last change, in seconds since 1970.
        names: what the client's own list calls sessions, by their ids.
    """

    path: Path
    id: str
    size: int
    mtime: float
    names: dict[str, str] = field(repr=False, default_factory=dict)

    @property
    def folder(self) -> str:
        """The working directory; "" where it is not near the file's beginning."""
        return self.cwd

    @cached_property
    def cwd(self) -> str:
        """The working directory that the session began in."""
        return cwd_of(self._edges[0])

    @property
    def subagent(self) -> bool:
        """Whether it is a sub-agent's."""
        return is_subagents(self._edges[0])

    @cached_property
    def title(self) -> str:
        """Its name, else the first words that a person typed; "" where neither is near the file's ends."""
        renamed = [*_RENAMED(self._edges[0]), *_RENAMED(self._edges[1])]
        name = self.names.get(self.id) or (_text(renamed[-1]) if renamed else "")
        # Before the first words there may be more instructions than an edge holds.
        return one_line(name or _first(self._edges[0]) or _first(_head(self.path, 8 * EDGE)))

    @property
    def talks(self) -> bool:
        """Whether somebody says something in it; a large file is taken to talk."""
        return self.size > 2 * EDGE or any(map(_TALK, self._edges))

    @cached_property
    def _edges(self) -> tuple[bytes, bytes]:
        return edges(self.path)


def home() -> Path:
    """The client's own folder: ``$CODEX_HOME``, else ``~/.codex``."""
    configured = os.environ.get("CODEX_HOME")
    return Path(configured) if configured else Path.home() / ".codex"


def places() -> list[Path]:
    """Where its sessions are looked for."""
    return [home() / "sessions", home() / "archived_sessions"]


def home_of(path: Path) -> Path | None:
    """The client's folder that a rollout file lies in; None where it lies elsewhere."""
    for folder in path.parents:
        if folder.name in ("sessions", "archived_sessions"):
            return folder.parent
    return None


def stamp_of(path: Path) -> str:
    """The time in a rollout file's name, ``YYYY-MM-DDTHH-MM-SS``; "" where the name is another."""
    found = _NAME.match(path.name)
    return found[1] if found else ""


def sessions(cwd: Path | None = None) -> list[SessionFile]:
    """The sessions of a working directory, or of every one, the newest first.

    Of a rollout that is there plain and packed the plain one counts, as for the client.
    """
    names = names_of(home())
    wanted = {str(cwd), os.path.realpath(cwd)} if cwd is not None else set()
    found = [file for root in places() for file in _listed(root, names)]
    found = [file for file in found if not file.subagent and (cwd is None or file.cwd in wanted)]
    return sorted(found, key=lambda file: (-file.mtime, str(file.path)))


def subagents(path: Path, id: str) -> list[Path]:
    """The files of a session's sub-agents: of the same day or later, with its id as their parent's."""
    root = home_of(path)
    day = stamp_of(path)[:10]
    if root is None or not id:
        return []
    found = []
    for file in _listed(root / "sessions", {}):
        if stamp_of(file.path)[:10] >= day and file.path != path:
            head = _head(file.path, 1 << 13)
            parent = _PARENT(head)
            if parent and parent[1].decode("utf-8", "replace") == id and is_subagents(head):
                found.append(file.path)
    return sorted(found)


def names_of(folder: Path) -> dict[str, str]:
    """What the client's own list calls sessions, by their ids; of two names for one the later counts."""
    found: dict[str, str] = {}
    with suppress(OSError), (folder / INDEX).open("rb") as handle:
        for raw in handle:
            try:
                told = json.loads(raw)
            except (ValueError, RecursionError):
                continue
            if isinstance(told, dict) and isinstance(told.get("id"), str) and isinstance(told.get("thread_name"), str):
                found[told["id"]] = told["thread_name"]
    return found


def cwd_of(head: bytes) -> str:
    """The working directory that a rollout's beginning names; "" where it names none."""
    found = _CWD(head)
    if found:
        return _text(found[1])
    tagged = _TAGGED(head)
    return (tagged[1] or tagged[2]).decode("utf-8", "replace") if tagged else ""


def is_subagents(head: bytes) -> bool:
    """Whether a rollout is a sub-agent's, by its beginning."""
    return _SUBAGENT(head.partition(b"\n")[0]) is not None


def edges(path: Path) -> tuple[bytes, bytes]:
    """The first and the last 64 KB of a rollout; of a packed one the first only, since its end has to be unpacked."""
    try:
        head = _head(path, EDGE)
        size = path.stat().st_size
        if path.suffix == packed.SUFFIX or size <= EDGE:
            return head, b""
        with path.open("rb") as handle:
            handle.seek(max(EDGE, size - EDGE))
            return head, handle.read(EDGE)
    except OSError:
        return b"", b""


def _head(path: Path, size: int) -> bytes:
    try:
        with path.open("rb") as handle:
            if path.suffix != packed.SUFFIX:
                return handle.read(size)
            return packed.head(handle, size)
    except OSError:
        return b""


def _listed(root: Path, names: dict[str, str]) -> Iterator[SessionFile]:
    for folder, inside, files in os.walk(root):
        inside.sort()
        there = set(files)
        for name in sorted(files):
            parts = _NAME.match(name)
            if parts is None or name.removesuffix(packed.SUFFIX) in there - {name}:
                continue
            path = Path(folder) / name
            try:
                found = path.stat()
            except OSError:
                continue
            if stat.S_ISREG(found.st_mode) and found.st_size:
                yield SessionFile(path, parts[2], found.st_size, found.st_mtime, names)


def _first(head: bytes) -> str:
    """The first words that a person typed, as far as a file's beginning tells."""
    for raw in head.split(b"\n"):
        try:
            record = json.loads(raw)
        except (ValueError, RecursionError):
            continue
        payload = record.get("payload", record) if isinstance(record, dict) else None
        if not isinstance(payload, dict) or payload.get("role") != "user" or payload.get("type") != "message":
            continue
        content = payload.get("content")
        for part in content if isinstance(content, list) else [{"text": content}]:
            text = part.get("text") if isinstance(part, dict) else None
            if isinstance(text, str) and text.strip() and typed(text, ""):
                return request_of(text)
    return ""


def _text(literal: bytes) -> str:
    try:
        found = json.loads(literal)
    except ValueError:
        return ""
    return found if isinstance(found, str) else ""
