"""The record as a database: its tables, how it is opened, and what its faults mean.

Law: a record of a newer version is refused before anything touches it. A record of an older one is brought up by
numbered migrations, all in one transaction; a new record is made by layout 1 and the same migrations.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from ..errors import InputError
from . import place
from .migrations import MIGRATIONS

VERSION = 1 + len(MIGRATIONS)
APPLICATION = 0x4375746C  # "Cutl"

_TABLES = (
    # Bytes, each stored once: messages, frames, answers. `base` is the blob that `data` was packed against.
    """CREATE TABLE blob (
        id INTEGER PRIMARY KEY AUTOINCREMENT, hash BLOB NOT NULL UNIQUE, size INTEGER NOT NULL, base INTEGER,
        data BLOB NOT NULL)""",
    # A history is a chain of nodes: hash = SHA-256(hash of the parent, hash of the message, gap). `gap` is what
    # stands between the message and the one before it, NULL for a plain comma.
    """CREATE TABLE node (
        id INTEGER PRIMARY KEY AUTOINCREMENT, hash BLOB NOT NULL UNIQUE, parent INTEGER, message INTEGER NOT NULL,
        gap BLOB, depth INTEGER NOT NULL)""",
    """CREATE TABLE session (
        id INTEGER PRIMARY KEY, session TEXT NOT NULL, agent TEXT NOT NULL, client TEXT NOT NULL,
        project TEXT NOT NULL, UNIQUE (session, agent, client, project))""",
    # `frame` is what stands around the messages, which go in at `split`; NULL: it is the whole body.
    """CREATE TABLE request (
        id INTEGER PRIMARY KEY AUTOINCREMENT, session INTEGER NOT NULL, at REAL NOT NULL, kind TEXT NOT NULL,
        model TEXT NOT NULL, frame INTEGER NOT NULL, split INTEGER, node INTEGER, marks TEXT, size INTEGER NOT NULL,
        sent INTEGER NOT NULL, seam TEXT NOT NULL, status INTEGER NOT NULL, answer INTEGER, usage TEXT NOT NULL)""",
    "CREATE INDEX request_of_session ON request (session)",
    # A completed call: an address with one result. `key` = first half of SHA-256(address, the result's content).
    """CREATE TABLE call (
        id INTEGER PRIMARY KEY AUTOINCREMENT, key BLOB NOT NULL UNIQUE, address TEXT NOT NULL, tool TEXT NOT NULL)""",
    "CREATE INDEX call_at_address ON call (address)",
    # Where a session has it: messages by index and by node.
    """CREATE TABLE place (
        call INTEGER NOT NULL, session INTEGER NOT NULL, message INTEGER NOT NULL, block INTEGER NOT NULL,
        node INTEGER NOT NULL, answer INTEGER NOT NULL, answer_block INTEGER NOT NULL, request INTEGER NOT NULL,
        PRIMARY KEY (call, session, message, block)) WITHOUT ROWID""",
    # Which trigrams a call's text has, and no more: a filter in front of the exact comparison. rowid = call.id.
    "CREATE VIRTUAL TABLE search USING fts5 (text, content='', detail=none, columnsize=0, tokenize='trigram')",
    """CREATE TABLE document (
        id INTEGER PRIMARY KEY, session TEXT NOT NULL, project TEXT NOT NULL, at REAL NOT NULL, address TEXT NOT NULL,
        json TEXT NOT NULL, stamp TEXT NOT NULL, flags TEXT NOT NULL)""",
    "CREATE INDEX document_of_session ON document (session)",
    """CREATE TABLE stop (
        session TEXT NOT NULL, seam TEXT NOT NULL, rule TEXT NOT NULL, why TEXT NOT NULL, at REAL NOT NULL,
        PRIMARY KEY (session, seam)) WITHOUT ROWID""",
)


class RecordFault(InputError):
    """The record can't be read or written.

    Attributes:
        passing: the same may well succeed later (a lock, a full disk, missing rights).
    """

    def __init__(self, text: str, passing: bool) -> None:
        super().__init__(text)
        self.passing = passing


_ADVICE = (
    # what SQLite says, whether it passes, what to do
    ("locked", True, "another program holds it; try again when that has ended"),
    ("full", True, "make room on its disk"),
    ("readonly", True, "make the file and its folder writable"),
    ("unable to open", True, "see that its folder is there and writable"),
    ("disk i/o", True, "see to its disk"),
    ("no such module: fts5", False, "use a Python whose SQLite has FTS5"),
    ("no such tokenizer", False, "use a Python whose SQLite is 3.34 or newer"),
    ("not a database", False, "name another path for the record"),
    ("malformed", False, "it is damaged: move it away, and a new one is begun"),
)


def fault(path: Path, error: Exception) -> RecordFault:
    """An error of SQLite or of the system, as one line with what to do next."""
    if isinstance(error, OSError):
        what = error.strerror or str(error)
        return RecordFault(f"the record {path}: {what.lower()}; see that its folder is there and writable", True)
    what = " ".join(str(error).split())
    for sign, passing, advice in _ADVICE:
        if sign in what.lower():
            return RecordFault(f"the record {path}: {what}; {advice}", passing)
    return RecordFault(f"the record {path}: {what}; see to the file, or move it away", False)


def connect(path: Path, *, readonly: bool, timeout: float) -> sqlite3.Connection:
    """Open the record; where there is none yet, one is begun.

    Args:
        path: the file, in a folder that is there (`place.prepare`).
        readonly: never write, and begin none.
        timeout: how long to wait for another writer, in seconds.

    Raises:
        InputError: no record, one of a newer version, or something else.
        sqlite3.Error, OSError: see `fault`.
    """
    if not os.path.lexists(path):
        if readonly:
            raise InputError(f"{path}: no record yet; one is begun by `cutline run`")
        place.publish(path, _create)
    connection = _open(path, "ro", timeout)
    try:
        older = _check(connection, path)
        if older:
            connection.close()
            connection = _open(path, "rw", timeout)
            _migrate(connection, path)
        if older and readonly:
            connection.close()
            connection = _open(path, "ro", timeout)
        elif not readonly:
            connection.close()
            connection = _open(path, "rw", timeout)
            mode = connection.execute("PRAGMA journal_mode=WAL").fetchone()[0]
            if mode != "wal":
                raise InputError(f"{path}: its file system has no write-ahead log; keep the record on a local disk")
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute(f"PRAGMA journal_size_limit={16 << 20}")
    except BaseException:
        connection.close()
        raise
    return connection


def refuse_newer(connection: sqlite3.Connection, path: Path) -> None:
    """Raise InputError where another process has brought the record to a newer version."""
    found = connection.execute("PRAGMA user_version").fetchone()[0]
    if found > VERSION:
        raise InputError(f"{path} is a record of version {found}, this Cutline knows {VERSION}; upgrade Cutline")


def _open(path: Path, mode: str, timeout: float) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(uri, uri=True, timeout=timeout, isolation_level=None, check_same_thread=False)


def _check(connection: sqlite3.Connection, path: Path) -> bool:
    """Refuse what is no record of ours; whether it is one of an older version."""
    refuse_newer(connection, path)
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
        if path.stat().st_size == 0:
            raise InputError(f"{path} is empty; remove it, and a record is begun")
        raise InputError(f"{path} is another program's database; name another path for the record")
    return int(connection.execute("PRAGMA user_version").fetchone()[0]) < VERSION


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Bring a record up to this version, unless another process just did; a kill leaves it as it was."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        refuse_newer(connection, path)
        found = connection.execute("PRAGMA user_version").fetchone()[0]
        for migration in MIGRATIONS[found - 1 :]:
            migration(connection)
        connection.execute(f"PRAGMA user_version={VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.rollback()
        raise


def _create(path: Path) -> None:
    connection = _open(path, "rw", 0)
    try:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("BEGIN")
        for table in _TABLES:
            connection.execute(table)
        for migration in MIGRATIONS:
            migration(connection)
        connection.execute(f"PRAGMA application_id={APPLICATION}")
        connection.execute(f"PRAGMA user_version={VERSION}")
        connection.execute("COMMIT")
    finally:
        connection.close()
