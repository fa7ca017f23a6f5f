"""A session of pi as a whole. Law: nothing is decided here; `entries`, `history` and `find` do."""

from __future__ import annotations

import os
from pathlib import Path

from ... import spans
from ...errors import InputError
from ..lines import Opened
from ..neutral import NeutralHistory, NeutralSession
from ..opening import one_line
from . import find
from .entries import Log, read
from .history import history


def open_session(path: str | os.PathLike[str], id: str = "") -> NeutralSession:
    """Read a session file; it holds one session, whose id its header has.

    Raises:
        InputError: it can't be read, or holds no session or no conversation.
    """
    log = read(path)
    try:
        found = history(log)
    except RecursionError:
        raise InputError(f"{path}: nested too deeply to be read safely; give another session") from None
    broken = [
        f"The entry {parent} that the line hangs off is not in the file: the client sends nothing from before it."
        for parent in log.broken
    ]
    return NeutralSession(
        "pi",
        Path(path),
        log.id,
        log.cwd,
        _title(log),
        found,
        last=_last(log, found),
        damage=(*log.lines.damage(), *broken),
        sealed="" if log.header == 0 else "its header does not stand first, and the client refuses such a file",
        source=log,
    )


def _last(log: Log, found: NeutralHistory) -> str:
    if found.requests:
        return found.requests[-1].timestamp
    return next((log.entries[number].timestamp for number in reversed(log.chain)), "")


def _title(log: Log) -> str:
    named = next((entry for entry in reversed(log.entries) if entry.type == "session_info"), None)
    with log.reader() as fetch:
        if named is not None:
            opened = Opened(fetch(named))
            name = opened.value(opened.members().get("name"))
            if isinstance(name, str) and name.strip():
                return one_line(name)
        for entry in log.entries:
            words = find.typed(spans.decode(fetch(entry))) if entry.role == "user" else ""
            if words.strip():
                return one_line(words)
    return ""
