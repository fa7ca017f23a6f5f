"""Where Claude Code keeps its sessions, and which one is meant.

Law: looking is cheap and changes nothing. A listing opens no file; a title costs the first and the last 64 KB
of one. Sub-agents' files belong to their session and are none of their own; a path is taken as given.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ..opening import EDGE, edges, regular
from . import titles

_LONGEST = 200
_TALK = re.compile(rb'"type"\s*:\s*"(?:user|assistant)"').search
_SESSION = re.compile(rb'"sessionId"\s*:\s*"([^"\\]+)"').search


@dataclass(frozen=True)
class SessionFile:
    """A session file as a listing shows it.

    Attributes:
        path: the file.
        id: the session's id: the file's name without its ending.
        folder: name of the project's folder, which is made from the working directory (`folder_name`).
        size: bytes.
        mtime: time of the last change, in seconds since 1970.
    """

    path: Path
    id: str
    folder: str
    size: int
    mtime: float

    @cached_property
    def title(self) -> str:
        """Its title, else the first words that a person typed; "" where neither is near the file's ends."""
        return titles.of_edges(*self._edges)

    @property
    def talks(self) -> bool:
        """Whether somebody says something in it; a large file is taken to talk."""
        return self.size > 2 * EDGE or any(map(_TALK, self._edges))

    @cached_property
    def _edges(self) -> tuple[bytes, bytes]:
        return edges(self.path, self.size)


def projects() -> Path:
    """Where each project has a folder: ``$CLAUDE_CONFIG_DIR/projects``, else ``~/.claude/projects``."""
    configured = os.environ.get("CLAUDE_CONFIG_DIR")
    return (Path(configured) if configured else Path.home() / ".claude") / "projects"


def folder_name(cwd: str | os.PathLike[str]) -> str:
    """The name of a working directory's project folder: every character but a-z, A-Z, 0-9 is a dash.

    As the client does it: of the real path, by UTF-16 unit (an emoji gives two dashes); of a longer name the
    first 200 characters stay, with a hash of the path behind them.
    """
    real = os.path.realpath(cwd)
    name = re.sub(r"[^A-Za-z0-9]", lambda found: "--" if ord(found[0]) > 0xFFFF else "-", real)
    return name if len(name) <= _LONGEST else f"{name[:_LONGEST]}-{_hash(real)}"


def _hash(path: str) -> str:
    """The client's hash: h = 31 h + unit over the UTF-16 units, as a signed 32-bit number; its size in base 36."""
    units = path.encode("utf-16-le", "surrogatepass")
    value = 0
    for low, high in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + 256 * high + low) & 0xFFFFFFFF
    value = abs(value - (1 << 32) if value >> 31 else value)
    digits = ""
    while value:
        value, digit = divmod(value, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + digits
    return digits or "0"


def sessions(cwd: str | os.PathLike[str] | None = None) -> list[SessionFile]:
    """The sessions of a working directory, or of every one, the newest first.

    Empty and temporary files and sub-agents' files are skipped; symlinks are followed.
    """
    found = [session for folder in _folders(cwd) for session in _listed(folder)]
    return sorted(found, key=lambda session: (-session.mtime, str(session.path)))


def subagents(path: Path) -> list[Path]:
    """The files of a session's sub-agents, in order of their names.

    Newer versions keep them in ``<session>/subagents/``, older ones as ``agent-*.jsonl`` beside the session.
    """
    own = path.with_suffix("") / "subagents"
    found = {file for file in own.rglob("agent-*.jsonl") if regular(file)} if own.is_dir() else set()
    if not path.name.startswith("agent-"):
        for file in path.parent.glob("agent-*.jsonl"):
            if regular(file) and _owner(file) == path.stem:
                found.add(file)
    return sorted(found)


def _folders(cwd: str | os.PathLike[str] | None) -> Iterator[Path]:
    root = projects()
    if cwd is None:
        try:
            yield from sorted(folder for folder in root.iterdir() if folder.is_dir())
        except OSError:
            return
    else:
        yield root / folder_name(cwd)


def _listed(folder: Path) -> Iterator[SessionFile]:
    try:
        entries = list(folder.iterdir())
    except OSError:
        return
    for path in entries:
        if path.suffix != ".jsonl" or path.name.startswith((".", "agent-")):
            continue
        found = regular(path)
        if found and found.st_size:
            yield SessionFile(path, path.stem, folder.name, found.st_size, found.st_mtime)


def _owner(path: Path) -> str:
    """The session that an older sub-agent's file says it belongs to."""
    try:
        with path.open("rb") as handle:
            found = _SESSION(handle.read(4096))
    except OSError:
        return ""
    return found[1].decode("utf-8", "replace") if found else ""
