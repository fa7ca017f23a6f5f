"""Deleting whole sessions, so that nothing of them is left: rows, bytes, and what the indexes know.

Law: one transaction; what another session has too stays, byte for byte. Afterwards the file is written anew
(`sweep`), and until that has succeeded the record remembers that it is owed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from . import calls, indexing, packing, settings, words
from .packing import get
from .values import Deleted


def sessions(connection: sqlite3.Connection, names: Sequence[str]) -> Deleted:
    """Delete sessions with their sub-agents, documents and stops. Inside a transaction.

    Args:
        connection: with ``secure_delete`` on, so that free pages are blank before the file is written anew.
        names: the clients' ids of the sessions.
    """
    connection.execute("CREATE TEMP TABLE named (session TEXT PRIMARY KEY)")
    connection.executemany("INSERT INTO named VALUES (?)", [(name,) for name in names])
    connection.execute("CREATE TEMP TABLE gone (id INTEGER PRIMARY KEY)")
    connection.execute("INSERT INTO gone SELECT id FROM session WHERE session IN named")
    gone_calls = _alone(connection, "call", "place")
    gone_texts = _alone(connection, "said", "said_at")
    rebuild = [
        _unlike(connection) or indexing.forget(connection, indexing.CALLS, gone_calls, calls.text_of),
        indexing.forget(connection, indexing.TEXTS, gone_texts, words.text_of),
    ]
    for table in ("place", "said_at"):
        connection.execute(f"DELETE FROM {table} WHERE session IN gone")
    requests = connection.execute("DELETE FROM request WHERE session IN gone").rowcount
    connection.executemany("DELETE FROM call WHERE id = ?", [(id,) for id in gone_calls])
    connection.executemany("DELETE FROM said WHERE id = ?", [(id,) for id in gone_texts])
    connection.execute("DELETE FROM session WHERE id IN gone")
    documents = connection.execute("DELETE FROM document WHERE session IN named").rowcount
    connection.execute("DELETE FROM stop WHERE session IN named")
    connection.execute("DROP TABLE gone")
    connection.execute("DROP TABLE named")
    _bytes(connection)
    for index, text_of, broken in (
        (indexing.CALLS, calls.text_of, rebuild[0]),
        (indexing.TEXTS, words.text_of, rebuild[1]),
    ):
        if broken:
            indexing.build(connection, index, text_of)
        else:
            indexing.merge(connection, index)
    settings.put(connection, settings.OWED, "1")
    return Deleted(tuple(names), requests, len(gone_calls), len(gone_texts), documents)


def outdated(connection: sqlite3.Connection, before: float) -> list[str]:
    """Sessions whose last request, and whose last document, is older than a time."""
    return [
        row[0]
        for row in connection.execute(
            "SELECT session FROM (SELECT s.session, r.at FROM request r JOIN session s ON s.id = r.session"
            " UNION ALL SELECT session, at FROM document UNION ALL SELECT session, at FROM stop)"
            " GROUP BY session HAVING max(at) < ?",
            (before,),
        )
    ]


def sweep(connection: sqlite3.Connection) -> bool:
    """Write the file anew without what was deleted; whether that was owed.

    Raises:
        sqlite3.Error: another program is at it, or the disk is full; it stays owed.
    """
    if settings.get(connection, settings.OWED) is None:
        return False
    _empty_log(connection)
    connection.execute("VACUUM")
    _empty_log(connection)
    settings.put(connection, settings.OWED, None)
    return True


def _empty_log(connection: sqlite3.Connection) -> None:
    if connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
        raise sqlite3.OperationalError("the write-ahead log is locked")


def _alone(connection: sqlite3.Connection, column: str, table: str) -> list[int]:
    """Ids that stand in sessions that go, and in no other."""
    return [
        row[0]
        for row in connection.execute(
            f"SELECT {column} FROM {table} GROUP BY {column} HAVING min(session IN gone)",
        )
    ]


def _unlike(connection: sqlite3.Connection) -> bool:
    """Whether a call of the sessions that go reads otherwise in other messages.

    The index holds one of its texts, and nothing says which.
    """
    rows = connection.execute(
        "SELECT p.call FROM place p JOIN node n ON n.id = p.node JOIN node a ON a.id = p.answer"
        " WHERE p.call IN (SELECT call FROM place WHERE session IN gone) GROUP BY p.call"
        " HAVING min(n.message) < max(n.message) OR min(a.message) < max(a.message)"
    ).fetchall()
    try:
        return not all(calls.reads_alike(connection, id) for (id,) in rows)
    except (sqlite3.DatabaseError, ValueError, LookupError) as error:
        if isinstance(error, sqlite3.OperationalError):
            raise
        return True


def _bytes(connection: sqlite3.Connection) -> None:
    """Delete the nodes that no request leads to, and the blobs that nothing needs."""
    connection.execute("CREATE TEMP TABLE kept (id INTEGER PRIMARY KEY)")
    connection.execute(
        "INSERT INTO kept WITH RECURSIVE chain (id) AS (SELECT node FROM request WHERE node IS NOT NULL"
        " UNION SELECT n.parent FROM node n JOIN chain c ON n.id = c.id WHERE n.parent IS NOT NULL)"
        " SELECT id FROM chain"
    )
    connection.execute("DELETE FROM node WHERE id NOT IN kept")
    connection.execute("DELETE FROM kept")
    connection.execute(
        "INSERT INTO kept SELECT message FROM node UNION SELECT frame FROM request"
        " UNION SELECT answer FROM request WHERE answer IS NOT NULL"
    )
    _repack(connection)
    connection.execute("DELETE FROM blob WHERE id NOT IN kept")
    connection.execute("DROP TABLE kept")


def _repack(connection: sqlite3.Connection) -> None:
    """A blob that stays gets a new base where its own goes: the first of those that had the same."""
    rows = connection.execute(
        "SELECT id, base FROM blob WHERE id IN kept AND base IS NOT NULL AND base NOT IN kept ORDER BY id"
    ).fetchall()
    data = {}
    for id, _ in rows:
        try:
            data[id] = get(connection, id)
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise
            continue  # damaged before: it stays so
    bases: dict[int, int] = {}
    for id, base in rows:
        if id in data:
            packed, chosen = packing.pack(connection, data[id], bases.get(base))
            connection.execute("UPDATE blob SET base = ?, data = ? WHERE id = ?", (chosen, packed, id))
            bases.setdefault(base, id)
