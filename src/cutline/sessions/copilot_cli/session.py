"""A session of GitHub Copilot CLI as a whole. Law: nothing is decided here; `events`, `history` and `find` do."""

from __future__ import annotations

import os
from pathlib import Path

from ... import spans
from ...errors import InputError
from ..neutral import NeutralSession
from ..opening import one_line
from . import find
from .events import Log, read
from .history import history


def open_session(path: str | os.PathLike[str], id: str = "") -> NeutralSession:
    """Read a session's file of events; it holds one session.

    Raises:
        InputError: it can't be read, or holds no session or no conversation.
    """
    log = read(path)
    try:
        found = history(log)
    except RecursionError:
        raise InputError(f"{path}: nested too deeply to be read safely; give another session") from None
    last = found.requests[-1].timestamp if found.requests else log.events[log.sent[-1]].timestamp
    # The client finds a session by its folder; a file elsewhere has no other id than its first event's.
    file = Path(path)
    id_ = file.resolve().parent.name if file.name == find.EVENTS else log.id
    return NeutralSession(
        "copilot-cli",
        file,
        id_,
        log.cwd or find.about(file).get("cwd", ""),
        _title(log),
        found,
        version=log.version,
        git_branch=log.branch,
        last=last,
        damage=tuple(log.lines.damage()),
        source=log,
    )


def _title(log: Log) -> str:
    named = one_line(find.about(log.path).get("name", ""))
    if named:
        return named
    with log.reader() as fetch:
        for event in log.events:
            words = find.typed(spans.decode(fetch(event))) if event.type == "user.message" and not event.inner else ""
            if words:
                return one_line(words)
    return ""
