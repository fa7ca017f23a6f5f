"""Where pi keeps its sessions, and what they are called.

Law: looking is cheap and changes nothing. A listing opens no file; an id or a title costs the first and the last 64 KB
of one. The client's own variables and its setting `sessionDir` say where to look.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..opening import EDGE, edges, one_line, regular

_TALK = re.compile(rb'"role"\s*:\s*"(?:user|assistant)"').search


@dataclass(frozen=True)
class SessionFile:
    """A session file as a listing shows it.

    Attributes:
        path: the file.
        size: bytes.
        mtime: time of the last change, in seconds since 1970.
    """

    path: Path
    size: int
    mtime: float

    @cached_property
    def id(self) -> str:
        """The session's id, which its header has; "" where it has none."""
        return str(header(self._edges[0]).get("id") or "")

    @cached_property
    def folder(self) -> str:
        """The directory that the session is about; where its header names none, the folder that it is in."""
        return str(header(self._edges[0]).get("cwd") or self.path.parent.name)

    @cached_property
    def title(self) -> str:
        """Its name, else the first words that a person typed; "" where neither is near the file's ends."""
        named, first = "", ""
        for line in (*self._edges[0].split(b"\n"), *self._edges[1].split(b"\n")):
            entry = _object(line)
            if entry.get("type") == "session_info":
                named = str(entry.get("name") or "")
            elif not first:
                first = typed(entry)
        return one_line(named) or one_line(first)

    @property
    def talks(self) -> bool:
        """Whether somebody says something in it; a large file is taken to talk."""
        return self.size > 2 * EDGE or any(map(_TALK, self._edges))

    @cached_property
    def _edges(self) -> tuple[bytes, bytes]:
        return edges(self.path, self.size)


def header(head: bytes) -> dict[str, Any]:
    """The header of a session: the first line that is JSON; nothing where that is no header."""
    for line in head.split(b"\n"):
        found = _object(line)
        if found:
            return found if found.get("type") == "session" and isinstance(found.get("id"), str) else {}
    return {}


def typed(entry: dict[str, Any]) -> str:
    """The words that a person typed in an entry; "" where it holds none."""
    message = entry.get("message")
    if not isinstance(message, dict) or message.get("role") != "user":
        return ""
    content = message.get("content")
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    texts = (block.get("text") for block in blocks if isinstance(block, dict) and block.get("type") == "text")
    return next((text for text in texts if isinstance(text, str) and text.strip()), "")


def agent_folder() -> Path:
    """The client's own directory: ``$PI_CODING_AGENT_DIR``, else ``~/.pi/agent``."""
    configured = os.environ.get("PI_CODING_AGENT_DIR")
    return Path(configured).expanduser() if configured else Path.home() / ".pi" / "agent"


def places() -> list[Path]:
    """Where sessions are looked for."""
    own = _own_folder()
    return [own] if own else [agent_folder() / "sessions"]


def sessions(cwd: Path | None = None) -> list[SessionFile]:
    """The sessions of a working directory, or of every one, the newest first."""
    own = _own_folder()
    if own:
        found = list(_listed(own))
        if cwd is not None:
            wanted = set(_spellings(cwd))
            found = [one for one in found if one.folder in wanted]
    else:
        root = agent_folder() / "sessions"
        folders = _folders(root) if cwd is None else [root / folder_name(path) for path in _spellings(cwd)]
        found = [one for folder in folders for one in _listed(folder)]
    return sorted(found, key=lambda one: (-one.mtime, str(one.path)))


def folder_of(cwd: str) -> Path:
    """Where the client keeps a new session of a working directory."""
    return _own_folder() or agent_folder() / "sessions" / folder_name(cwd)


def folder_name(cwd: str) -> str:
    """The name of a working directory's folder: its path without the first slash, each other one and colon a dash."""
    return "--" + re.sub(r"[/\\:]", "-", re.sub(r"^[/\\]", "", cwd)) + "--"


def _spellings(cwd: Path) -> list[str]:
    """A directory as it was named and as it really is: the client takes what the shell gives it."""
    return list(dict.fromkeys((str(cwd.absolute()), os.path.realpath(cwd))))


def _own_folder() -> Path | None:
    """A folder that the client was told to keep every session in."""
    configured = os.environ.get("PI_CODING_AGENT_SESSION_DIR")
    if not configured:
        try:
            settings = _object((agent_folder() / "settings.json").read_bytes())
        except OSError:
            return None
        configured = settings.get("sessionDir")
    return Path(configured).expanduser() if isinstance(configured, str) and configured else None


def _folders(root: Path) -> list[Path]:
    try:
        return sorted(folder for folder in root.iterdir() if folder.is_dir())
    except OSError:
        return []


def _listed(folder: Path) -> Iterator[SessionFile]:
    try:
        entries = list(folder.iterdir())
    except OSError:
        return
    for path in entries:
        if path.suffix != ".jsonl" or path.name.startswith("."):
            continue
        found = regular(path)
        if found and found.st_size:
            yield SessionFile(path, found.st_size, found.st_mtime)


def _object(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
