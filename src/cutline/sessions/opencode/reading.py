"""Reading a session, from whatever it is kept in.

Law: the original is only read, a database in one transaction, a file of lines as an index of offsets. What can't be
read is passed over and told; where nothing is left of a session, that is one line.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from ...errors import InputError, Unreadable
from . import events, find
from .literals import Opened, number
from .records import LABEL, Log, Message, Part, message, no_session, problem, unread

_HEAD = 1 << 16
_SQLITE = b"SQLite format 3\x00"
# Columns of a session's row, and where the client has them in the session's JSON.
_COLUMNS = {"title": "title", "directory": "directory", "version": "version", "parent_id": "parentID"}


def owns(path: Path, head: bytes) -> bool:
    """Whether a file is one of the client's, by its first 64 KB; a database, by its tables."""
    if head.startswith(_SQLITE):
        return find.holds_sessions(path)
    return b'"ses_' in head and (_is_export(head) or _is_info(head) or events.are_events(head))


def read(path: Path, id: str = "", storage: Path | None = None) -> Log:
    """Read a session.

    Args:
        path: the database, a session's own file, an export, or a stream of events.
        id: which session of a database or a stream; "" for the only one.
        storage: the folder that a session's own file belongs to, where that is not the one around it.

    Raises:
        InputError: it can't be read, or is none of the client's.
    """
    try:
        with path.open("rb") as handle:
            head = handle.read(_HEAD)
        if head.startswith(_SQLITE):
            return _database(path, id)
        if events.are_events(head):
            return events.read(path, id)
        return _document(path, storage)
    except OSError as error:
        raise problem(path, error) from None


def _is_export(head: bytes) -> bool:
    return head.lstrip()[:1] == b"{" and b'"info"' in head[:256] and not events.are_events(head)


def _is_info(head: bytes) -> bool:
    return head.lstrip()[:1] == b"{" and b'"projectID"' in head


# -------------------------------------------------------------------------------------------- database


def _database(path: Path, id: str) -> Log:
    try:
        with closing(find.connect(path)) as database:
            database.execute("BEGIN")
            return rows(database, path, id)
    except sqlite3.Error as error:
        raise InputError(f"{path}: can't be read as a database ({error}); give another session") from None


def rows(database: sqlite3.Connection, path: Path, id: str) -> Log:
    """Read a session's rows.

    Raises:
        InputError: there is no such session, or more than one and none was named.
    """
    found = _dicts(database, "SELECT * FROM session WHERE id = ?", id) if id else _dicts(database, _ANY)
    if not found:
        raise InputError(f"{path}: holds no session{f' {id}' if id else ''}; “cutline ls” lists this directory's")
    if len(found) > 1:
        raise InputError(f"{path}: holds more than one session; name one by its id (“cutline ls --all” lists them)")
    row = found[0]
    log = Log(path, "database", row["id"], _head_of(row), row=row)
    parts: dict[str, list[Part]] = {}
    for part in _dicts(database, "SELECT * FROM part WHERE session_id = ? ORDER BY message_id, id", log.id):
        raw = _data(log, part)
        if _reads(log, f"The part {part['id']}", raw):
            parts.setdefault(part["message_id"], []).append(Part(part["id"], raw, part))
    for one in _dicts(database, "SELECT * FROM message WHERE session_id = ? ORDER BY time_created, id", log.id):
        try:
            opened = Opened(_data(log, one))
            log.messages.append(message(opened, one["id"], parts.pop(one["id"], ()), one))
        except Unreadable as error:
            log.damage.append(unread(f"The message {one['id']}", error))
    if parts:
        lost = sum(map(len, parts.values()))
        log.damage.append(f"{lost} parts are of messages that can't be read or are not there: they are passed over.")
    return log


_ANY = (
    "SELECT * FROM session WHERE EXISTS (SELECT 1 FROM message WHERE session_id = session.id) "
    "AND (parent_id IS NULL OR NOT EXISTS (SELECT 1 FROM session WHERE parent_id IS NULL)) LIMIT 2"
)


def _dicts(database: sqlite3.Connection, asked: str, *values: str) -> list[dict[str, Any]]:
    cursor = database.execute(asked, values)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor]


def _data(log: Log, row: dict[str, Any]) -> bytes:
    """The JSON of a row; the other columns stay in it."""
    data = row.pop("data")
    raw = data.encode("utf-8", "surrogateescape") if isinstance(data, str) else bytes(data or b"")
    log.size += len(raw)
    return raw


def _head_of(row: dict[str, Any]) -> Opened:
    """What is recorded of a session, as the JSON that the client makes of its row."""
    head: dict[str, Any] = {"id": row["id"]}
    for column, key in _COLUMNS.items():
        text = row.get(column)
        if isinstance(text, str):
            head[key] = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    head["time"] = {"created": row.get("time_created") or 0, "updated": row.get("time_updated") or 0}
    try:
        head["revert"] = json.loads(row.get("revert") or "null")
    except (ValueError, RecursionError):
        head["revert"] = None
    return Opened(json.dumps(head).encode())


def _reads(log: Log, what: str, raw: bytes) -> bool:
    try:
        Opened(raw)
    except Unreadable as error:
        log.damage.append(unread(what, error))
        return False
    return True


# ------------------------------------------------------------------------------------ files, an export


def _document(path: Path, storage: Path | None) -> Log:
    data = path.read_bytes()
    try:
        opened = Opened(data)
    except Unreadable as error:
        raise InputError(f"{path}: {error}; give another session of {LABEL}") from None
    if opened.inside(opened.at("info")) and opened.literal("messages")[:1] == b"[":
        return _export(path, opened)
    if opened.word("id") and "time" in opened.members and "role" not in opened.members:
        return _files(path, opened, storage or find.storage_of(path))
    raise no_session(path)


def _export(path: Path, opened: Opened) -> Log:
    head = Opened(opened.literal("info"))
    log = Log(path, "export", head.word("id"), head, size=len(opened.raw))
    for place, (start, end) in enumerate(opened.elements("messages")):
        try:
            whole = Opened(opened.raw[start:end])
            info = Opened(whole.literal("info"))
            log.messages.append(message(info, info.word("id"), _listed(log, place, whole)))
        except Unreadable as error:
            log.damage.append(unread(f"The message {place + 1} of the export", error))
    return log


def _listed(log: Log, place: int, whole: Opened) -> list[Part]:
    parts = []
    for number_, (start, end) in enumerate(whole.elements("parts")):
        raw = whole.raw[start:end]
        if _reads(log, f"The part {number_ + 1} of message {place + 1}", raw):
            parts.append(Part(Opened(raw).word("id"), raw))
    return parts


def _files(path: Path, head: Opened, storage: Path) -> Log:
    log = Log(path, "files", head.word("id"), head, size=len(head.raw))
    for file in sorted((storage / "message" / log.id).glob("*.json")):
        opened = _file(log, file)
        if opened is None:
            continue
        parts = []
        for inner in sorted((storage / "part" / file.stem).glob("*.json")):
            part = _file(log, inner)
            if part is not None:
                parts.append(Part(inner.stem, part.raw))
        try:
            log.messages.append(message(opened, file.stem, parts))
        except Unreadable as error:
            log.damage.append(unread(f"The file {file.name}", error))
    return log


def _file(log: Log, path: Path) -> Opened | None:
    try:
        opened = Opened(path.read_bytes())
    except OSError as error:
        log.damage.append(f"The file {path.name} can't be read ({(error.strerror or '').lower()}): it is passed over.")
        return None
    except Unreadable as error:
        log.damage.append(unread(f"The file {path.name}", error))
        return None
    log.size += len(opened.raw)
    return opened


def last_said(log: Log) -> int:
    """When something was last said, milliseconds since 1970; 0 where that is not recorded."""
    times = (_ended(one) for one in reversed(log.messages))
    return next(filter(None, times), number(log.head.value("time", "updated")))


def _ended(one: Message) -> int:
    return number(Opened(one.raw).value("time", "completed")) or one.created
