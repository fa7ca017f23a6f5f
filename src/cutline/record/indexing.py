"""The indexes of trigrams: which calls and texts may hold given words.

Law: an entry is a candidate of every search from the moment it is stored, and a candidate is only that. FTS5 writes a
new piece of its index with each transaction, which cost as much as all else of a write: short texts wait in a table of
their own and go in by the batch.
"""

from __future__ import annotations

import heapq
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

_BATCH = 32
"""So many texts are written into an index together."""
_LONG = 16_384
"""A text of so many characters does not wait: its own piece of the index is worth it."""
_TRIGRAMS = 64
"""So many of a word's trigrams are looked up; the exact comparison does the rest."""

TextOf = Callable[[sqlite3.Connection, int], str]
"""How the text of an entry is read from the recorded bytes; sqlite3.DatabaseError, ValueError or LookupError where
they are damaged."""


class Index(NamedTuple):
    """An index: the name of its FTS5 table, the table of its entries (id = rowid), the table of what waits for it."""

    name: str
    entries: str
    waiting: str


CALLS = Index("search", "call", "call_waiting")
TEXTS = Index("said_words", "said", "said_waiting")


Add = Callable[[sqlite3.Connection, Index, int, str], None]
"""How an entry is made findable by its folded text: `add` or `write`."""


def add(connection: sqlite3.Connection, index: Index, id: int, text: str) -> None:
    """Make an entry findable by its folded text; `settle` comes once at the end of the transaction."""
    if len(text) >= _LONG:
        write(connection, index, id, text)
    else:
        connection.execute(f"INSERT INTO {index.waiting} (id, text) VALUES (?, ?)", (id, text))


def write(connection: sqlite3.Connection, index: Index, id: int, text: str) -> None:
    """Put an entry into the index at once."""
    connection.execute(f"INSERT INTO {index.name} (rowid, text) VALUES (?, ?)", (id, text))


def settle(connection: sqlite3.Connection) -> None:
    """Put what waits into the indexes where it is a batch."""
    for index in (CALLS, TEXTS):
        if connection.execute(f"SELECT count(*) FROM {index.waiting}").fetchone()[0] >= _BATCH:
            connection.execute(
                f"INSERT INTO {index.name} (rowid, text) SELECT id, text FROM {index.waiting} ORDER BY id"
            )
            connection.execute(f"DELETE FROM {index.waiting}")


def waiting(connection: sqlite3.Connection, index: Index) -> dict[int, str]:
    """What waits for the index: texts by their entries' ids, newest first."""
    return dict(connection.execute(f"SELECT id, text FROM {index.waiting} ORDER BY id DESC").fetchall())


def candidates(connection: sqlite3.Connection, index: Index, words: Sequence[str]) -> Iterator[int]:
    """Ids of entries that may hold all folded words, newest first."""
    query = trigrams(words)
    if not query:
        return (row[0] for row in connection.execute(f"SELECT id FROM {index.entries} ORDER BY id DESC"))
    rows = connection.execute(
        f"SELECT rowid FROM {index.name} WHERE {index.name} MATCH ? ORDER BY rowid DESC", (query,)
    )
    waits = [id for id, text in waiting(connection, index).items() if all(word in text for word in words)]
    return heapq.merge(waits, (row[0] for row in rows), reverse=True)


def trigrams(words: Sequence[str]) -> str:
    """The query that asks for all trigrams of the words; "" where no word has one."""
    found = dict.fromkeys(word[at : at + 3] for word in words for at in range(min(len(word) - 2, _TRIGRAMS)))
    return " AND ".join('"' + trigram.replace('"', '""') + '"' for trigram in found)


def forget(connection: sqlite3.Connection, index: Index, ids: Sequence[int], text_of: TextOf) -> bool:
    """Take entries out of an index; True where that can't be done, because what they held is damaged."""
    waits = waiting(connection, index)
    try:
        for id in ids:
            if id not in waits:
                values = (id, text_of(connection, id))
                connection.execute(
                    f"INSERT INTO {index.name} ({index.name}, rowid, text) VALUES ('delete', ?, ?)", values
                )
    except (sqlite3.DatabaseError, ValueError, LookupError) as error:
        if isinstance(error, sqlite3.OperationalError):
            raise
        return True
    connection.executemany(f"DELETE FROM {index.waiting} WHERE id = ?", [(id,) for id in ids])
    return False


def merge(connection: sqlite3.Connection, index: Index) -> None:
    """Write the index as one piece: only so does it drop what it was told to forget."""
    connection.execute(f"INSERT INTO {index.name} ({index.name}) VALUES ('optimize')")


def build(connection: sqlite3.Connection, index: Index, text_of: TextOf) -> None:
    """Build an index anew from its entries; what is damaged is not found any more."""
    connection.execute(f"INSERT INTO {index.name} ({index.name}) VALUES ('delete-all')")
    connection.execute(f"DELETE FROM {index.waiting}")
    for (id,) in connection.execute(f"SELECT id FROM {index.entries} ORDER BY id").fetchall():
        try:
            text = text_of(connection, id)
        except (sqlite3.DatabaseError, ValueError, LookupError):
            continue
        write(connection, index, id, text)
