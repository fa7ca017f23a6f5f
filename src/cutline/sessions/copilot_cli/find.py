"""Where GitHub Copilot CLI keeps its sessions, and what they are called.

Law: looking is cheap and changes nothing. Each session has a folder, named after its id, with a file of events and a
small one that says where it is about and how it is called; a title costs that file, or the first 64 KB of the events.
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

from ..opening import EDGE, one_line, regular

EVENTS, ABOUT = "events.jsonl", "workspace.yaml"
_TALK = re.compile(rb'"type"\s*:\s*"(?:user|assistant)\.message"').search
_MEMBER = re.compile(r"^(\w+): ?(.*)$", re.MULTILINE)


@dataclass(frozen=True)
class SessionFile:
    """A session as a listing shows it.

    Attributes:
        path: its file of events.
        id: its id: the name of its folder.
        size: bytes.
        mtime: time of the last change, in seconds since 1970.
    """

    path: Path
    id: str
    size: int
    mtime: float

    @cached_property
    def folder(self) -> str:
        """The directory that the session is about; "" where neither of its files names one."""
        named = about(self.path).get("cwd")
        context = (start(self._head).get("data") or {}).get("context")
        return named or (str(context.get("cwd") or "") if isinstance(context, dict) else "")

    @cached_property
    def title(self) -> str:
        """Its name, else the first words that a person typed; "" where neither is found."""
        named = one_line(about(self.path).get("name", ""))
        return named or next((one_line(words) for words in map(typed, _objects(self._head)) if words), "")

    @property
    def talks(self) -> bool:
        """Whether somebody says something in it; a large file is taken to talk."""
        return self.size > EDGE or bool(_TALK(self._head))

    @cached_property
    def _head(self) -> bytes:
        try:
            with self.path.open("rb") as handle:
                return handle.read(EDGE)
        except OSError:
            return b""


def about(path: Path) -> dict[str, str]:
    """What the small file beside a session's events says; nothing where there is none."""
    try:
        text = (path.parent / ABOUT).read_text("utf-8", "replace") if path.name == EVENTS else ""
    except OSError:
        return {}
    return {key: _plain(value) for key, value in _MEMBER.findall(text)}


def _plain(value: str) -> str:
    """A value of one line: quoted as in JSON or as in YAML, or plain."""
    value = value.strip()
    if value.startswith('"'):
        try:
            return str(json.loads(value))
        except (ValueError, RecursionError):
            return value.strip('"')
    return value[1:-1].replace("''", "'") if value[:1] == "'" == value[-1:] and len(value) > 1 else value


def start(head: bytes) -> dict[str, Any]:
    """The first event of a session, where it stands at the beginning; nothing where it does not."""
    found = next(_objects(head), {})
    return found if found.get("type") == "session.start" and isinstance(found.get("data"), dict) else {}


def typed(event: dict[str, Any]) -> str:
    """The words that a person typed in an event; "" where it holds none."""
    data = event.get("data")
    if event.get("type") != "user.message" or event.get("agentId") or not isinstance(data, dict):
        return ""
    if data.get("source") or data.get("isAutopilotContinuation") or data.get("parentToolCallId"):
        return ""
    words = data.get("content")
    return words if isinstance(words, str) and words.strip() else ""


def places() -> list[Path]:
    """Where sessions are looked for: ``session-state`` in ``$COPILOT_HOME``, else in ``~/.copilot``."""
    configured = os.environ.get("COPILOT_HOME")
    return [(Path(configured).expanduser() if configured else Path.home() / ".copilot") / "session-state"]


def sessions(cwd: Path | None = None) -> list[SessionFile]:
    """The sessions of a working directory, or of every one, the newest first."""
    found = list(_listed(places()[0]))
    if cwd is not None:
        wanted = {str(cwd.absolute()), os.path.realpath(cwd)}
        found = [one for one in found if one.folder in wanted]
    return sorted(found, key=lambda one: (-one.mtime, str(one.path)))


def _listed(root: Path) -> Iterator[SessionFile]:
    """Each folder's events; older versions have no folders but a file for each session."""
    try:
        entries = list(root.iterdir())
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        path = entry if entry.suffix == ".jsonl" else entry / EVENTS
        found = regular(path)
        if found and found.st_size:
            yield SessionFile(path, entry.stem if path is entry else entry.name, found.st_size, found.st_mtime)


def _objects(head: bytes) -> Iterator[dict[str, Any]]:
    for line in head.split(b"\n"):
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            yield found
