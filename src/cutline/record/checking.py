"""Everything in the record checked against itself. Law: reading only; each fault is a line naming what is broken."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from ..errors import InputError
from . import calls, packing, parts, words
from .rebuilding import answer_of, body_of

_CACHED = 64 << 20
"""So many bytes of messages are kept at hand while bodies are rebuilt."""
_STEP = 200
_TRIED = 8
"""So many trigrams of a text are looked up in its index."""

_Told = Callable[[int, int], None]
_BROKEN = (sqlite3.DatabaseError, InputError, ValueError, LookupError, TypeError, AssertionError)
"""What reading damaged rows can raise."""


def faults(connection: sqlite3.Connection, told: _Told) -> list[str]:
    """Check the whole record, inside one transaction (see `Record.faults`)."""
    found: list[str] = []
    try:
        said = [row[0] for row in connection.execute("PRAGMA quick_check(20)")]
        found += [f"the file: {line}" for line in said if line != "ok"]
        progress = _Progress(connection, told)
        for check in (_blobs, _nodes, _requests, _calls, _texts):
            for line in check(connection, progress):
                found.append(line)
    except _BROKEN as error:
        if isinstance(error, sqlite3.OperationalError):
            raise
        # Where the tables themselves are torn, what stands in them can't be told apart any more.
        found.append(f"the file: {_what(error)}")
    return found


class _Progress:
    def __init__(self, connection: sqlite3.Connection, told: _Told) -> None:
        tables = ("blob", "node", "request", "place", "said_at")
        self._of = sum(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables)
        self._done, self._told = 0, told

    def step(self) -> None:
        self._done += 1
        if self._done % _STEP == 0 or self._done == self._of:
            self._told(self._done, self._of)


def _blobs(connection: sqlite3.Connection, progress: _Progress) -> Iterator[str]:
    for (id,) in connection.execute("SELECT id FROM blob ORDER BY id").fetchall():
        progress.step()
        size, based = connection.execute(
            "SELECT b.size, EXISTS (SELECT 1 FROM blob o WHERE o.id = b.base AND o.base IS NOT NULL)"
            " FROM blob b WHERE b.id = ?",
            (id,),
        ).fetchone()
        try:
            if len(packing.get(connection, id)) != size:
                yield f"blob {id}: it is not {size:,} bytes long"
        except _BROKEN as error:
            yield f"blob {id}: {_what(error)}"
        if based:
            yield f"blob {id}: its base has a base itself"


def _nodes(connection: sqlite3.Connection, progress: _Progress) -> Iterator[str]:
    rows = connection.execute(
        "SELECT n.id, n.hash, n.parent, p.hash, b.hash, n.gap, n.depth, p.depth"
        " FROM node n LEFT JOIN node p ON p.id = n.parent LEFT JOIN blob b ON b.id = n.message ORDER BY n.id"
    )
    for id, hash, parent, before, message, gap, depth, above in rows:
        progress.step()
        if message is None:
            yield f"message {id}: its bytes are missing"
        elif parent is not None and before is None:
            yield f"message {id}: the message before it is missing"
        elif hash != hashlib.sha256((before or parts.ROOT) + message + (gap or b"")).digest():
            yield f"message {id}: its history has another hash than it was stored with"
        elif depth != (0 if parent is None else above + 1):
            yield f"message {id}: it stands at another depth than its history is long"


def _requests(connection: sqlite3.Connection, progress: _Progress) -> Iterator[str]:
    kept: dict[int, bytes] = {}
    weight = 0

    def get(connection: sqlite3.Connection, id: int) -> bytes:
        nonlocal weight
        found = kept.get(id)
        if found is None:
            found = kept[id] = packing.get(connection, id)
            weight += len(found)
            if weight > _CACHED:
                kept.clear()
                weight = 0
        return found

    rows = connection.execute(
        "SELECT r.id, s.session, r.at, r.size FROM request r LEFT JOIN session s ON s.id = r.session ORDER BY r.id"
    ).fetchall()
    for id, session, at, size in rows:
        progress.step()
        name = f"request {id} of session {session or '(no id)'}, {datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"
        if session is None:
            yield f"request {id}: its session is missing"
        try:
            if len(body_of(connection, id, get)) != size:
                yield f"{name}: its body is not the {size:,} bytes that it was"
        except _BROKEN as error:
            yield f"{name}: its body can't be rebuilt ({_what(error)})"
        try:
            answer_of(connection, id)
        except _BROKEN as error:
            yield f"{name}: its answer can't be read ({_what(error)})"


def _calls(connection: sqlite3.Connection, progress: _Progress) -> Iterator[str]:
    for id, address, key in connection.execute("SELECT id, address, key FROM call ORDER BY id").fetchall():
        try:
            for found, itself in calls.places(connection, id):
                progress.step()
                if packing.digest(address.encode() + found.content)[:16] != key or not itself:
                    yield f"call {address}: another call stands where it was, in session {found.session}"
            if not _found(connection, "search", id, calls.text_of(connection, id)):
                yield f"call {address}: a search does not find it"
        except _BROKEN as error:
            yield f"call {address}: it can't be read ({_what(error)})"


def _texts(connection: sqlite3.Connection, progress: _Progress) -> Iterator[str]:
    for id, author, key in connection.execute("SELECT id, author, key FROM said ORDER BY id").fetchall():
        try:
            for found in words.places(connection, id):
                progress.step()
                if words.key_of(author, found.text) != key:
                    yield f"text {id}: other words stand where it was, in session {found.session}"
            if not _found(connection, "said_words", id, words.text_of(connection, id)):
                yield f"text {id}: a search does not find it"
        except _BROKEN as error:
            yield f"text {id}: it can't be read ({_what(error)})"


def _found(connection: sqlite3.Connection, index: str, id: int, text: str) -> bool:
    """Whether an index knows a text, by the first of its trigrams."""
    query = calls.trigrams([text[: _TRIED + 2]])
    if not query:
        return True
    found = connection.execute(f"SELECT 1 FROM {index} WHERE {index} MATCH ? AND rowid = ?", (query, id)).fetchone()
    return found is not None


def _what(error: BaseException) -> str:
    return " ".join(str(error).split()).removeprefix("malformed: ")
