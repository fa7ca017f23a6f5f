"""A session as a whole: its rollout, its live history, and what it is called.

Law: nothing is decided here; `records`, `branch`, `history` and `find` do.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..damage import told
from ..neutral import NeutralSession
from ..opening import one_line
from . import find
from .history import history
from .records import Log, Record, read


@dataclass(frozen=True, slots=True)
class Source:
    """What a copy is written from.

    Attributes:
        log: the rollout as records.
        id: the session's id as the file has it; "" where it has none.
        began: when it began, as written; "" where that is not recorded.
    """

    log: Log
    id: str
    began: str


def open_session(path: Path, id: str = "") -> NeutralSession:
    """Read a rollout and rebuild its live history; a file holds one session.

    Raises:
        InputError: it can't be read, or holds no session or no conversation.
    """
    path = Path(path)
    log = read(path)
    metas = [record for record in log.records if record.type == "session_meta"]
    with log.reader() as fetch:
        told = [_payload(record, fetch(record)) for record in metas]
        renamed = [r for r in log.records if r.kind == "thread_name_updated" and r.type == "event_msg"]
        name = _payload(renamed[-1], fetch(renamed[-1])).get("thread_name") if renamed else None
    first = told[0] if told else {}
    own = _word(first, "id")
    mine = [one for one in told if _word(one, "id") == own]
    found = history(log)
    git: dict[str, Any] = next((one["git"] for one in reversed(mine) if isinstance(one.get("git"), dict)), {})
    home = find.home_of(path)
    listed = find.names_of(home).get(own, "") if home else ""
    title = listed or (name if isinstance(name, str) else "") or found.first
    return NeutralSession(
        client="codex",
        path=path,
        id=own,
        cwd=_word(first, "cwd") or find.cwd_of(find.edges(path)[0]),
        title=one_line(title),
        history=found.history,
        version=next((_word(one, "cli_version") for one in reversed(mine) if _word(one, "cli_version")), ""),
        git_branch=_word(git, "branch"),
        last=found.history.requests[-1].timestamp if found.history.requests else log.last,
        subagents=tuple(find.subagents(path, own)),
        damage=tuple(_damage(log, first)),
        sealed=_sealed(log, first),
        source=Source(log, own, _word(first, "timestamp")),
    )


def _damage(log: Log, meta: dict[str, Any]) -> list[str]:
    found = told([torn.line for torn in log.torn], log.glued, log.grew)
    if _base(meta):
        found.append(f"It is a fork: what stands before it is in session {_base(meta)} and not in this.")
    return found


def _sealed(log: Log, meta: dict[str, Any]) -> str:
    first = log.records[0]
    if first.bare:
        return "Codex resumes no rollout of this old form"
    if first.type != "session_meta" or not _word(meta, "id"):
        return "Codex resumes no rollout that does not begin with its session_meta"
    if _base(meta):
        return f"a fork whose beginning stands in session {_base(meta)} can't be copied alone"
    return ""


def _base(meta: dict[str, Any]) -> str:
    """The session that holds the beginning of a fork; "" where the rollout is whole."""
    base = meta.get("history_base")
    return _word(base, "thread_id") if isinstance(base, dict) else ""


def _payload(record: Record, raw: bytes) -> dict[str, Any]:
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise InputError(f"line {record.line} can't be read ({error})") from None
    found = found if record.bare else found.get("payload")
    return found if isinstance(found, dict) else {}


def _word(told: dict[str, Any], key: str) -> str:
    value = told.get(key)
    return value if isinstance(value, str) else ""
