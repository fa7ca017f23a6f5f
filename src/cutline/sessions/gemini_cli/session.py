"""A session as a whole: its file, its history, and what it is called.

Law: nothing is decided here; `log`, `history` and `find` do.
"""

from __future__ import annotations

import os
from pathlib import Path

from ..neutral import NeutralSession
from ..opening import one_line
from . import find
from .history import Built, build
from .log import Log, read

NAME = "gemini-cli"
SAVED = "checkpoint-"
"""How the client begins the names of saved chats."""


def open_session(path: str | os.PathLike[str], id: str = "") -> NeutralSession:
    """Read a session file or a saved chat and rebuild its history; a file holds one session.

    Raises:
        InputError: it can't be read, or holds no message.
    """
    log = read(path)
    built = build(log)
    file = Path(path)
    own = log.word("sessionId") or file.stem
    return NeutralSession(
        NAME,
        file,
        own,
        find.directory(file, log.word("projectHash")),
        one_line(log.word("summary") or built.title),
        built.history,
        last=built.last or log.word("lastUpdated"),
        subagents=find.subagents(file, own),
        damage=tuple(_damage(log, built)),
        sealed=_sealed(log, file),
        source=log,
    )


def _damage(log: Log, built: Built) -> list[str]:
    told: list[str] = []
    if log.torn:
        lines = ", ".join(map(str, log.torn[:5]))
        told.append(f"{_counted(len(log.torn), 'torn line')} ({lines}): in the original only.")
    if log.glued:
        told.append(f"Records glued into one line were parted (line {', '.join(map(str, log.glued[:5]))}).")
    if log.nameless:
        told.append(f"{_counted(log.nameless, 'message')} without an id, which the client does not load.")
    if built.unknown:
        told.append(f"{_counted(built.unknown, 'part')} of an unknown kind: kept in a copy.")
    if built.repeats:
        told.append(f"{_counted(built.repeats, 'result')} written twice: the client sends both, a copy holds one.")
    if log.grew:
        told.append(f"The session grew while it was read: its last {log.grew:,} bytes are not in this.")
    return told


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' if number > 1 else ''}"


def _sealed(log: Log, file: Path) -> str:
    if log.shape == "contents":
        return "" if file.name.startswith(SAVED) else f"a chat that is not named {SAVED}NAME.json can't be resumed"
    if log.word("kind") == "subagent":
        return "a sub-agent's file can't be resumed"
    if not log.word("sessionId") or (log.shape == "lines" and not log.word("projectHash")):
        return "a file that names no session and no project can't be resumed"
    return ""
