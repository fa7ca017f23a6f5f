"""Everything in the record checked against itself. Law: reading only; each fault is a line naming what is broken."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from ..errors import InputError
from . import calls, indexing, packing, parts, words
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
        try:
            size, based, *row = connection.execute(
                "SELECT b.size, o.base, b.hash, b.base, b.data FROM blob b LEFT JOIN blob o ON o.id = b.base"
                " WHERE b.id = ?",
                (id,),
            ).fetchone()
            if len(packing.unpack(connection, *row)) != size:
                yield f"blob {id}: it is not {size:,} bytes long"
            if based is not None:
                yield f"blob {id}: its base has a base itself"
        except _BROKEN as error:
            yield f"blob {id}: {_what(error)}"


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
    get = _Kept()
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
    get, index = _Kept(), _Index(connection, indexing.CALLS)
    for id, address, key in connection.execute("SELECT id, address, key FROM call ORDER BY id").fetchall():
        name, texts = f"call {address}", set()
        try:
            for found, itself in calls.places(connection, id, get):
                progress.step()
                texts.add(calls.haystack(found.found.call))
                if packing.digest(address.encode() + found.content)[:16] != key or not itself:
                    yield f"{name}: another call stands where it was, in session {found.session}"
            if not texts:
                yield f"{name}: it stands nowhere"
        except _BROKEN as error:
            yield f"{name}: it can't be read ({_what(error)})"
        index.ask(id, name, texts)
    yield from index.missing()


def _texts(connection: sqlite3.Connection, progress: _Progress) -> Iterator[str]:
    get, index = _Kept(), _Index(connection, indexing.TEXTS)
    for id, author, key in connection.execute("SELECT id, author, key FROM said ORDER BY id").fetchall():
        name, text = f"text {id}", None
        try:
            for found in words.places(connection, id, get):
                progress.step()
                text = found.text
                if words.key_of(author, text) != key:
                    yield f"{name}: other words stand where it was, in session {found.session}"
            if text is None:
                yield f"{name}: it stands nowhere"
        except _BROKEN as error:
            yield f"{name}: it can't be read ({_what(error)})"
        index.ask(id, name, set() if text is None else {calls.fold(text)})
    yield from index.missing()


class _Kept:
    """Reads blobs, and keeps the last of them at hand."""

    def __init__(self) -> None:
        self._kept: dict[int, bytes] = {}
        self._weight = 0

    def __call__(self, connection: sqlite3.Connection, id: int) -> bytes:
        found = self._kept.get(id)
        if found is None:
            found = packing.get(connection, id)
            self._weight += len(found)
            if self._weight > _CACHED:
                self._kept.clear()
                self._weight = len(found)
            self._kept[id] = found
        return found


class _Index:
    """Asks an index for texts, each by one of its first trigrams; each trigram is asked for once, for all its rows."""

    def __init__(self, connection: sqlite3.Connection, index: indexing.Index) -> None:
        self._connection, self._name = connection, index.name
        self._waiting = indexing.waiting(connection, index)
        self._lost: list[str] = []
        self._asked: dict[str, set[int]] = {}
        self._names: dict[int, str] = {}

    def ask(self, id: int, name: str, texts: set[str]) -> None:
        """Ask for what has one of these texts; which of them is in the index, nothing says."""
        if id in self._waiting:
            if self._waiting[id] not in texts:
                self._lost.append(name)
            return
        tried = [[text[at : at + 3] for at in range(min(len(text) - 2, _TRIED))] for text in texts]
        shared = [trigram for trigram in tried[0] if all(trigram in other for other in tried)] if tried else []
        if shared:
            trigram = next((one for one in shared if one in self._asked), shared[0])
            self._asked.setdefault(trigram, set()).add(id)
            self._names[id] = name

    def missing(self) -> Iterator[str]:
        """What a search does not find, a line each."""
        yield from (f"{name}: a search does not find it" for name in self._lost)
        select = f"SELECT rowid FROM {self._name} WHERE {self._name} MATCH ?"
        for trigram, ids in self._asked.items():
            try:
                found = {id for (id,) in self._connection.execute(select, (indexing.trigrams([trigram]),))}
            except _BROKEN as error:
                yield f"the search index can't be read ({_what(error)})"
                return
            for id in sorted(ids - found):
                yield f"{self._names[id]}: a search does not find it"


def _what(error: BaseException) -> str:
    return " ".join(str(error).split()).removeprefix("malformed: ")
