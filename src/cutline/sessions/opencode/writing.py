"""A cut copy, written where the original is: rows of its database, files beside its files, an export beside an export.

Law: the original is only read, and the copy counts only when it was proven as it was written. In a database that is one
transaction, which is committed behind the proof; of files the one that makes them a session comes last.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from ... import spans
from ...errors import InputError
from ...plan import Plan
from ..files import TEMPORARY, clear_left_overs, create, unwritable, write_file
from ..model import Copy, Prove
from ..neutral import NeutralHistory, without_notice
from .copy import Copying, NewMessage
from .history import history as rebuilt
from .literals import Edit, Opened, edited
from .reading import read, rows
from .records import Log

_WAITS_S = 10
# A copy that is being proven stands in a transaction that no other connection sees.
_uncommitted: dict[str, sqlite3.Connection] = {}


def write(log: Log, history: NeutralHistory, plan: Plan, title: str, prove: Prove) -> Copy:
    """Write the cut copy of a session.

    Args:
        log, history: the session.
        plan: the decisions for `history.body`.
        title: the copy's title.
        prove: called with the copy before it counts, its session id, and the id of the notice's message.

    Raises:
        InputError: it can't be written.
    """
    copying = Copying(log, history, plan, title)
    messages = list(copying.messages())
    if log.kind == "database":
        return _into_database(log, copying, messages, prove)
    if log.kind == "files":
        return _as_files(log, copying, messages, prove)
    return _as_export(log, copying, messages, prove)


def reread(path: Path, id: str, notice: str, before: bytes) -> tuple[bytes, str | None]:
    """The body of a written copy without the notice's own message, and what that message says.

    Args:
        path, id: the copy.
        notice: id of the notice's message; "" for none.
        before: the original's body.
    """
    if id in _uncommitted:
        log = rows(_uncommitted[id], path, id)
    else:
        log = read(path, id, path.parent if path.name.startswith(TEMPORARY) else None)
    found = rebuilt(log)
    return without_notice(found, before, (lambda record: log.messages[record].id == notice) if notice else None)


def _copy(log: Log, copying: Copying, messages: list[NewMessage], path: Path, size: int, missed: int) -> Copy:
    written = 1 + len(messages) + sum(len(one.parts) for one in messages)
    return Copy(path, copying.id, copying.notice, written, copying.removed, copying.relinked, size, max(0, missed))


def _fault(path: Path, error: OSError | sqlite3.Error) -> InputError:
    return unwritable(path, error if isinstance(error, OSError) else OSError(str(error)))


# -------------------------------------------------------------------------------------------- database


def _into_database(log: Log, copying: Copying, messages: list[NewMessage], prove: Prove) -> Copy:
    path = log.path
    with transaction(path) as database:
        size = _insert_all(database, log, copying, messages)
        _uncommitted[copying.id] = database
        try:
            prove(path, copying.id, copying.notice)
        finally:
            _uncommitted.pop(copying.id)
        missed = _stored(database, log.id) - log.size
    return _copy(log, copying, messages, path, size, missed)


@contextmanager
def transaction(path: Path) -> Iterator[sqlite3.Connection]:
    """A database, opened for one transaction: it is committed at the end, and where anything fails nothing was written.

    Raises:
        InputError: it can't be written.
    """
    try:
        where = f"{path.resolve().as_uri()}?mode=rw"
        with closing(sqlite3.connect(where, uri=True, timeout=_WAITS_S, isolation_level=None)) as database:
            database.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
            database.execute("PRAGMA foreign_keys = ON")
            database.execute("BEGIN IMMEDIATE")
            yield database
            database.execute("COMMIT")
    except (OSError, sqlite3.Error) as error:
        raise _fault(path, error) from None


def _insert_all(database: sqlite3.Connection, log: Log, copying: Copying, messages: list[NewMessage]) -> int:
    insert(database, "session", log.row | _session_row(log, copying))
    size = 0
    for one in messages:
        own = one.source.row if one.source else {"time_created": one.created, "time_updated": one.created}
        row = {**own, "id": one.id, "session_id": copying.id, "data": one.raw.decode()}
        insert(database, "message", row)
        size += len(one.raw)
        for part in one.parts:
            made = part.source.row if part.source else own
            links = {"id": part.id, "message_id": one.id, "session_id": copying.id, "data": part.raw.decode()}
            insert(database, "part", {**made, **links})
            size += len(part.raw)
    if database.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'todo'").fetchone():
        cursor = database.execute("SELECT * FROM todo WHERE session_id = ?", (log.id,))
        names = [column[0] for column in cursor.description]
        for values in cursor.fetchall():
            insert(database, "todo", {**dict(zip(names, values, strict=True)), "session_id": copying.id})
    return size


def _session_row(log: Log, copying: Copying) -> dict[str, Any]:
    """What is different in the copy's row: it is nobody's sub-agent, not shared, not put away."""
    new: dict[str, Any] = dict.fromkeys(
        ("parent_id", "share_url", "time_compacting", "time_archived", "summary_diffs", "revert")
    )
    new |= {"id": copying.id, "title": copying.title, "time_updated": copying.now}
    back = copying.revert()
    if back is not None:
        revert = Opened(log.row["revert"].encode())
        edits = revert.put(spans.quote(back[0]), "messageID") + revert.put(spans.quote(back[1]), "partID")
        new["revert"] = edited(revert.raw, edits).decode()
    return {key: value for key, value in new.items() if key in log.row}


def insert(database: sqlite3.Connection, table: str, row: dict[str, Any]) -> None:
    """Add a row."""
    columns = ", ".join(f'"{name}"' for name in row)
    values = [
        value.encode("utf-8", "surrogateescape").decode("utf-8", "replace") if isinstance(value, str) else value
        for value in row.values()
    ]
    database.execute(f"INSERT INTO {table} ({columns}) VALUES ({', '.join('?' * len(row))})", values)


def _stored(database: sqlite3.Connection, id: str) -> int:
    """Bytes of a session's messages and parts."""
    total = 0
    for table in ("message", "part"):
        asked = f"SELECT SUM(LENGTH(CAST(data AS BLOB))) FROM {table} WHERE session_id = ?"
        total += database.execute(asked, (id,)).fetchone()[0] or 0
    return total


# ----------------------------------------------------------------------------------------------- files


def _as_files(log: Log, copying: Copying, messages: list[NewMessage], prove: Prove) -> Copy:
    """Files of older versions: the messages and their parts, then the session's own file, which makes them count."""
    source = log.path.resolve()
    storage = source.parents[2]
    # The client takes every file in the session's folder for a session, so the temporary one is elsewhere.
    temporary = storage / f"{TEMPORARY}-{copying.id}"
    final = source.with_name(f"{copying.id}.json")
    info = copying.info()
    size = len(info)
    clear_left_overs(storage, f"{TEMPORARY}-ses_*", lambda path: _remove(storage, path))
    try:
        with create(temporary) as handle:
            handle.write(info)
            handle.flush()
            for one in messages:
                size += _put(storage / "message" / copying.id / f"{one.id}.json", one.raw)
                for part in one.parts:
                    size += _put(storage / "part" / one.id / f"{part.id}.json", part.raw)
            os.fsync(handle.fileno())
            prove(temporary, copying.id, copying.notice)
            temporary.rename(final)
    except OSError as error:
        raise _fault(storage, error) from None
    finally:
        if temporary.exists():
            _remove(storage, temporary)
    return _copy(log, copying, messages, final, size, _on_disk(storage, log) - log.size)


def _put(path: Path, raw: bytes) -> int:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as handle:
        handle.write(raw)
        handle.flush()
        os.fsync(handle.fileno())
    return len(raw)


def _remove(storage: Path, temporary: Path) -> None:
    """Take back the files of a copy that did not come to its end."""
    id_ = temporary.name.removeprefix(f"{TEMPORARY}-")
    folder = storage / "message" / id_
    for message in folder.glob("msg_*.json"):
        shutil.rmtree(storage / "part" / message.stem, ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):
        temporary.unlink(missing_ok=True)


def _on_disk(storage: Path, log: Log) -> int:
    found = [log.path, *(storage / "message" / log.id).glob("*.json")]
    found += [part for one in found[1:] for part in (storage / "part" / one.stem).glob("*.json")]
    return sum(path.stat().st_size for path in found)


# ------------------------------------------------------------------------------------------- an export


def _as_export(log: Log, copying: Copying, messages: list[NewMessage], prove: Prove) -> Copy:
    """An export beside an export, or beside a stream of events; the client imports it."""
    source = log.path.resolve()
    final = source.with_name(f"{copying.id}.json")
    raw = _spliced(source.read_bytes()[: log.size], copying, messages) if log.kind == "export" else None
    raw = raw or _composed(copying, messages)
    write_file(final, [raw], lambda path: prove(path, copying.id, copying.notice))
    return _copy(log, copying, messages, final, len(raw), source.stat().st_size - log.size)


def _composed(copying: Copying, messages: list[NewMessage]) -> bytes:
    made = [b'{"info":%s,"parts":[%s]}' % (one.raw, b",".join(part.raw for part in one.parts)) for one in messages]
    return b'{"info":%s,"messages":[%s]}\n' % (copying.info(), b",".join(made))


def _spliced(data: bytes, copying: Copying, messages: list[NewMessage]) -> bytes:
    """The export itself, with what stays in its place and in its own spelling."""
    whole = Opened(data)
    info, listed = whole.at("info"), whole.at("messages")
    assert info is not None and listed is not None
    places = whole.elements("messages")
    by_source = {id(one.source): one for one in messages if one.source}
    kept: list[bytes | None] = []
    read_ = iter(copying.log.messages)
    current = next(read_, None)
    for start, end in places:
        element = Opened(data[start:end])
        if current is None or element.literal("info") != current.raw:
            kept.append(None)  # it could not be read
            continue
        made = by_source.get(id(current))
        kept.append(_element(element, made) if made else None)
        current = next(read_, None)
    notice = next((one for one in messages if one.source is None), None)
    new = [raw for raw in kept if raw is not None]
    if notice:
        before = messages.index(notice)
        new.insert(before, b'{"info":%s,"parts":[%s]}' % (notice.raw, notice.parts[0].raw))
    edits: list[Edit] = [(info.start, info.end, copying.info())]
    edits.append((listed.start, listed.end, _list(data, listed, places, new)))
    return edited(data, edits)


def _element(element: Opened, made: NewMessage) -> bytes:
    info, parts = element.at("info"), element.at("parts")
    assert info is not None
    edits: list[Edit] = [(info.start, info.end, made.raw)]
    if parts is not None:
        new = [part.raw for part in made.parts]
        edits.append((parts.start, parts.end, _list(element.raw, parts, element.elements("parts"), new)))
    return edited(element.raw, edits)


def _list(raw: bytes, member: spans.Member, places: list[tuple[int, int]], new: list[bytes]) -> bytes:
    """A list with other elements, between the brackets, the white space and the commas that it has."""
    if not places or not new:
        return b"[]" if not new else b"[%s]" % b",".join(new)
    between = raw[places[0][1] : places[1][0]] if len(places) > 1 else b","
    return raw[member.start : places[0][0]] + between.join(new) + raw[places[-1][1] : member.end]
