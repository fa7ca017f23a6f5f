"""From one layout of the record to the next, each step numbered and never changed again once it was released.

Law: a step runs inside a transaction, and leaves what was recorded as it was; on an empty record it makes tables.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from . import words


def to_2(connection: sqlite3.Connection) -> None:
    """What was said, and the record's own settings."""
    for table in (
        # A text of the agent or the human. `key` = first half of SHA-256(author, text).
        "CREATE TABLE said (id INTEGER PRIMARY KEY AUTOINCREMENT, key BLOB NOT NULL UNIQUE, author TEXT NOT NULL)",
        # Where a session has it; `node` is NULL where the text stands in the answer of `request`.
        """CREATE TABLE said_at (
            said INTEGER NOT NULL, session INTEGER NOT NULL, message INTEGER NOT NULL, block INTEGER NOT NULL,
            node INTEGER, request INTEGER NOT NULL, PRIMARY KEY (said, session, message, block)) WITHOUT ROWID""",
        # Like `search`: which trigrams a text has. rowid = said.id.
        "CREATE VIRTUAL TABLE said_words USING fts5 (text, content='', detail=none, columnsize=0, tokenize='trigram')",
        # What its owner chose, and when it was last looked after.
        "CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    ):
        connection.execute(table)
    words.fill(connection)


def to_3(connection: sqlite3.Connection) -> None:
    """Histories of other formats than Anthropic's: whose messages they are made of."""
    connection.execute("ALTER TABLE request ADD COLUMN format TEXT NOT NULL DEFAULT ''")


def to_4(connection: sqlite3.Connection) -> None:
    """What waits for the indexes: short texts go into them by the batch (`indexing`)."""
    for table in ("call_waiting", "said_waiting"):
        connection.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, text TEXT NOT NULL)")


MIGRATIONS: tuple[Callable[[sqlite3.Connection], None], ...] = (to_2, to_3, to_4)
