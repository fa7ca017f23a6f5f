"""What a record's owner chose, kept in the record itself, and when it was last looked after.

Law: values are short texts; what was never set has its default here.
"""

from __future__ import annotations

import sqlite3

RETENTION_DAYS = 90
"""Sessions whose last request is older are deleted, unless the owner chose otherwise."""
RETENTION, MASKING, LOOKED_AFTER, OWED = "retention", "masking", "looked_after", "sweep_owed"


def get(connection: sqlite3.Connection, name: str) -> str | None:
    """A setting; None where it was never set."""
    row = connection.execute("SELECT value FROM setting WHERE name = ?", (name,)).fetchone()
    return None if row is None else str(row[0])


def put(connection: sqlite3.Connection, name: str, value: str | None) -> None:
    """Set a setting; None takes it back."""
    if value is None:
        connection.execute("DELETE FROM setting WHERE name = ?", (name,))
    else:
        connection.execute("INSERT OR REPLACE INTO setting (name, value) VALUES (?, ?)", (name, value))


def retention(connection: sqlite3.Connection) -> int | None:
    """Days until a session is deleted; None for never."""
    value = get(connection, RETENTION)
    return RETENTION_DAYS if value is None else int(value) if value.isdecimal() else None


def masking(connection: sqlite3.Connection) -> bool:
    """Whether secrets of known forms are masked on the way in."""
    return get(connection, MASKING) == "on"
