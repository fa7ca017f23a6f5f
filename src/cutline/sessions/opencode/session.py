"""A session of opencode as a whole. Law: nothing is decided here; `reading`, `history` and `find` do."""

from __future__ import annotations

import os
from pathlib import Path

from ...errors import InputError, Unreadable
from ..neutral import NeutralHistory, NeutralSession
from ..opening import one_line
from . import find
from .history import history, stamp
from .literals import Opened
from .reading import last_said, read
from .records import Log

_NAMELESS = "the stream does not say what its session is, and the client imports no such session"


def open_session(path: str | os.PathLike[str], id: str = "") -> NeutralSession:
    """Read a session.

    Args:
        path: the database, a session's own file, an export, or a stream of events.
        id: which session of a database or a stream; "" for the only one.

    Raises:
        InputError: it can't be read, or holds no session or no conversation.
    """
    try:
        log = read(Path(path), id)
        found = history(log)
    except Unreadable as error:
        raise InputError(f"{path}: {error}; give another session") from None
    except RecursionError:
        raise InputError(f"{path}: nested too deeply to be read safely; give another session") from None
    return NeutralSession(
        "opencode",
        Path(path),
        log.id,
        log.head.word("directory") or _cwd(log),
        _title(log, found),
        found,
        version=log.head.word("version"),
        last=stamp(last_said(log)),
        damage=tuple(log.damage),
        sealed="" if log.kind != "events" or log.head.word("directory") else _NAMELESS,
        source=log,
    )


def _cwd(log: Log) -> str:
    answers = (Opened(one.raw).word("path", "cwd") for one in reversed(log.messages))
    return next(filter(None, answers), "")


def _title(log: Log, found: NeutralHistory) -> str:
    named = one_line(find.title_of(log.head.word("title")))
    if named:
        return named
    for number in found.human:
        place, index = found.places[number][0]
        opened = log.open(log.messages[place].parts[index].raw)
        words = one_line(opened.word("text"))
        if words:
            return words
    return ""
