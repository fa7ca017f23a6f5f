"""Where OpenHands keeps its conversations, and how its files are known.

Law: looking is cheap and changes nothing. A conversation stands in a list as the first of its files of events. The
client's own variables say where to look.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ..opening import one_line, regular
from .source import FOLDER, files

_OLD = rb'"id"\s*:\s*\d+\s*,\s*"timestamp"\s*:\s*"[^"]*"\s*,\s*"source"\s*:\s*"(?:agent|user|environment)"'
_SDK = rb'"kind"\s*:\s*"\w+(?:Event|Observation|Condensation\w*)"'
_LIST = re.compile(rb"\A\s*\[\s*\[?\s*\{\s*(?:" + _OLD + rb'|(?=.*"source"\s*:).*' + _SDK + rb")", re.S).match
_EVENT = re.compile(rb"\A\s*\{\s*(?:" + _OLD + rb'|"id"\s*:\s*"(?=.*"source"\s*:).*' + _SDK + rb")", re.S).match
_OUTPUT = re.compile(rb'\A\s*\{\s*"instance_id"\s*:.*"(?:test_result|history)"\s*:', re.S).match
_DIRECTORY = re.compile(rb'"working_dir"\s*:\s*("(?:[^"\\]|\\.)*")').search
_TYPED = re.compile(rb'"source"\s*:\s*"user"').search
_WORDS = re.compile(rb'"(?:text|content)"\s*:\s*("(?:[^"\\]|\\.)+")').search
_FIRST = 12  # events that a title is looked for in
_HEAD = 1 << 16


@dataclass(frozen=True)
class SessionFile:
    """A conversation as a listing shows it (the attributes are `model.SessionFile`'s)."""

    path: Path
    id: str
    mtime: float
    talks: bool = True

    @cached_property
    def folder(self) -> str:
        """The working directory; "" where none is noted."""
        found = _DIRECTORY(_head(self.path.parent.parent / "base_state.json"))
        return _decoded(found[1]) if found else ""

    @cached_property
    def size(self) -> int:
        """Bytes of its events."""
        return sum(state.st_size for path in files(self.path.parent) if (state := regular(path)))

    @cached_property
    def title(self) -> str:
        """The first words that a person typed; "" where they are not among its first events."""
        for path in files(self.path.parent)[:_FIRST]:
            head = _head(path)
            words = _WORDS(head) if _TYPED(head) else None
            if words:
                return one_line(_decoded(words[1]))
        return ""


def places() -> list[Path]:
    """Where conversations are looked for: those of the SDK's generation, then those of the first.

    ``$OPENHANDS_CONVERSATIONS_DIR``, else ``conversations`` in ``$OPENHANDS_PERSISTENCE_DIR`` or ``~/.openhands``; and
    ``sessions`` in ``$FILE_STORE_PATH`` or ``~/.openhands``.
    """
    home = Path.home() / ".openhands"
    kept = _configured("OPENHANDS_PERSISTENCE_DIR") or home
    return [
        _configured("OPENHANDS_CONVERSATIONS_DIR") or kept / "conversations",
        (_configured("FILE_STORE_PATH") or home) / "sessions",
    ]


def sessions(cwd: Path | None = None) -> list[SessionFile]:
    """The conversations of a working directory, or of every one, the newest first."""
    found = [one for place in places() for one in _listed(place)]
    if cwd is not None:
        wanted = {str(cwd.absolute()), os.path.realpath(cwd)}
        found = [one for one in found if one.folder in wanted]
    return sorted(found, key=lambda one: (-one.mtime, str(one.path)))


def owns(path: Path, head: bytes) -> bool:
    """Whether a file is a trajectory, one event of a conversation, or an evaluation's output."""
    return bool(_LIST(head) or _EVENT(head) or _OUTPUT(head))


def _listed(root: Path) -> Iterator[SessionFile]:
    try:
        conversations = sorted(root.iterdir())
    except OSError:
        return
    for conversation in conversations:
        events = files(conversation / FOLDER)
        state = regular(events[-1]) if events else None
        if state:
            yield SessionFile(events[0], conversation.name, state.st_mtime)


def _configured(name: str) -> Path | None:
    value = os.environ.get(name)
    return Path(value).expanduser() if value else None


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as handle:
            return handle.read(_HEAD)
    except OSError:
        return b""


def _decoded(literal: bytes) -> str:
    try:
        return str(json.loads(literal))
    except ValueError:
        return ""
