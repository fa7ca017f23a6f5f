"""The record: whole histories, written and read. Law: one exchange is one transaction, and what was stored stays.

A history is stored as a chain of its messages, so that a request that goes on where another ended adds its new
messages and nothing else, and a fork shares its past. The last request of each session is kept in memory, to
read and hash the new part of the next one only.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from ..errors import InputError, Unreadable
from ..wire import anthropic as wire
from . import packing, parts, place, schema
from .calls import New, at_address, with_words
from .schema import fault
from .values import Document, Exchange, History, Recorded, RequestRow, SessionRow, Stop, text

_SESSIONS, _MEMORY = 16, 64 << 20
"""Of so many sessions, and of so many bytes of bodies, the last request is kept in memory."""

_Key = tuple[str, str, str, str]

# A history from its last node back to its first; the columns of each node follow.
_CHAIN = """
    WITH RECURSIVE chain (id, parent, message, gap, depth) AS (
        SELECT id, parent, message, gap, depth FROM node WHERE id = ?
        UNION ALL SELECT n.id, n.parent, n.message, n.gap, n.depth FROM node n JOIN chain c ON n.id = c.parent)"""


@dataclass(frozen=True, slots=True)
class _Known:
    """The last request of a session: what was read of it, and its chain's hashes and ids."""

    request: wire.Request
    marks: list[parts.Mark]
    hashes: list[bytes]
    nodes: list[int]


@dataclass(frozen=True, slots=True)
class _Prepared:
    """An exchange, read and hashed.

    Attributes:
        request: the body as it was read; None where it can't be.
        parts: the body's frame, and its messages from the `shared`th on.
        shared: how many messages have the bytes that they have in the known request.
        hashes: of the whole chain.
        common: how many nodes of it the known chain has.
        new: calls that are not in the index yet.
    """

    request: wire.Request | None
    parts: parts.Parts
    shared: int
    hashes: list[bytes]
    common: int
    new: New | None


class Record:
    """An open record. Threads may share it; processes open their own.

    Args:
        path: the file; None: `default_path()`.
        readonly: only read; the record has to be there.
        timeout: how long to wait for another writer, in seconds.

    Attributes:
        path: the file.
        notes: what had to be mended to keep it private, a line each.

    Raises:
        InputError: the record is refused (a symlink, another owner's, a newer version …) or can't be used now
            (`RecordFault`). Every method may raise the latter.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None = None, *, readonly: bool = False, timeout: float = 10.0
    ) -> None:
        self.path = Path(os.path.abspath(path)) if path is not None else place.default_path()  # noqa: PTH100
        self.notes: tuple[str, ...] = ()
        self._readonly, self._timeout = readonly, timeout
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._file = (0, 0)
        self._known: dict[_Key, _Known] = {}
        try:
            with self._transaction():
                pass  # opened, and refused where it has to be
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Record:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                try:
                    connection.close()
                except sqlite3.Error:
                    pass

    # ---------------------------------------------------------------------------------------- writing

    def write(self, exchange: Exchange) -> int:
        """Store a request with its answer, in one transaction; returns the request's id."""
        key = (text(exchange.session), text(exchange.agent), text(exchange.client), text(exchange.project))
        with self._lock:
            known = self._known.get(key)
            prepared = _prepare(exchange.body, known)
            with self._transaction(write=True) as connection:
                if known and not (self._known and _there(connection, known)):
                    known, prepared = None, _prepare(exchange.body, None)
                session = _session(connection, key)
                nodes = _nodes(connection, prepared, known)
                id = _request(connection, session, nodes[-1] if nodes else None, exchange, prepared, known)
                if prepared.new:
                    prepared.new.store(connection, session, id, nodes)
            self._remember(key, prepared, known, nodes)
        return id

    def _remember(self, key: _Key, prepared: _Prepared, known: _Known | None, nodes: list[int]) -> None:
        self._known.pop(key, None)
        if prepared.request is not None:
            self._known[key] = _Known(prepared.request, _marks(prepared, known), prepared.hashes, nodes)
        size = sum(len(one.request.body) for one in self._known.values())
        while self._known and (len(self._known) > _SESSIONS or size > _MEMORY):
            size -= len(self._known.pop(next(iter(self._known))).request.body)

    def put_document(self, document: Document) -> None:
        """Store a checkpoint's document."""
        d = document
        values = (text(d.session), text(d.project), d.at, text(d.address), text(d.json), text(d.stamp), text(d.flags))
        with self._transaction(write=True) as connection:
            connection.execute(
                "INSERT INTO document (session, project, at, address, json, stamp, flags) VALUES (?, ?, ?, ?, ?, ?, ?)",
                values,
            )

    def stop(self, session: str, seam: str, rule: str, why: str, at: float) -> None:
        """Store that cutting has ended for a session at a seam."""
        with self._transaction(write=True) as connection:
            values = (text(session), text(seam), text(rule), text(why), at)
            connection.execute(
                "INSERT OR REPLACE INTO stop (session, seam, rule, why, at) VALUES (?, ?, ?, ?, ?)", values
            )

    # ---------------------------------------------------------------------------------------- reading

    def body(self, request: int) -> bytes:
        """The body of a request, byte for byte as the client sent it.

        Raises:
            InputError: there is no such request.
        """
        with self._transaction() as connection:
            return _body(connection, request)

    def answer(self, request: int) -> bytes:
        """The content blocks of a request's answer as they were stored; b"" where there are none.

        Raises:
            InputError: there is no such request.
        """
        with self._transaction() as connection:
            return _answer(connection, request)

    def history(self, session: str, agent: str = "") -> History | None:
        """The last turn of a session (its last request where it has no turn); None for an unknown session."""
        with self._transaction() as connection:
            row = connection.execute(
                "SELECT s.session, s.agent, s.client, s.project, r.at, r.id"
                " FROM request r JOIN session s ON s.id = r.session WHERE s.session = ? AND s.agent = ?"
                " ORDER BY r.kind = 'turn' DESC, r.id DESC LIMIT 1",
                (text(session), text(agent)),
            ).fetchone()
            if row is None:
                return None
            name, agent, client, project, at, id = row
            return History(name, agent, client, project, at, id, _body(connection, id), _answer(connection, id))

    def sessions(self, project: str | None = None) -> list[SessionRow]:
        """The sessions of a project (None: of all), sub-agents' apart, those with the newest request first."""
        with self._transaction() as connection:
            rows = connection.execute(
                "SELECT s.session, s.agent, s.client, s.project, g.first, g.last, g.requests, r.size"
                " FROM (SELECT session, min(at) AS first, max(at) AS last, count(*) AS requests, max(id) AS id"
                " FROM request GROUP BY session) g JOIN request r ON r.id = g.id JOIN session s ON s.id = g.session"
                " WHERE ? IS NULL OR s.project = ? ORDER BY g.id DESC",
                (_scope(project), _scope(project)),
            )
            return [SessionRow(*row) for row in rows]

    def requests(self, session: str) -> list[RequestRow]:
        """The requests of a session and its sub-agents, in the order in which they were stored."""
        with self._transaction() as connection:
            rows = connection.execute(
                "SELECT r.id, s.agent, r.at, r.kind, r.model, r.size, r.sent, r.seam, r.status, r.usage"
                " FROM request r JOIN session s ON s.id = r.session WHERE s.session = ? ORDER BY r.id",
                (text(session),),
            )
            return [
                RequestRow(id, agent, at, kind, model, size, sent, seam, status, json.loads(usage))
                for id, agent, at, kind, model, size, sent, seam, status, usage in rows
            ]

    def calls(self, project: str | None, address: str) -> list[Recorded]:
        """Every place of an address within a project (None: everywhere), newest first."""
        with self._transaction() as connection:
            return at_address(connection, _scope(project), text(address))

    def search(self, project: str | None, words: Sequence[str], limit: int = 20) -> list[Recorded]:
        """Completed calls whose arguments or result hold all words, whatever their case.

        The call that was recorded last comes first; equal results of one call are one, at its newest place. Words
        are only words; they may stand inside others.
        """
        with self._transaction() as connection:
            return with_words(connection, _scope(project), words, limit)

    def last_document(self, session: str) -> Document | None:
        """The document that a session wrote last."""
        with self._transaction() as connection:
            row = connection.execute(
                f"{_DOCUMENTS} WHERE session = ? ORDER BY id DESC LIMIT 1", (text(session),)
            ).fetchone()
            return row and Document(*row)

    def documents(self, project: str | None = None) -> list[Document]:
        """The documents of a project (None: of all), newest first."""
        with self._transaction() as connection:
            rows = connection.execute(
                f"{_DOCUMENTS} WHERE ? IS NULL OR project = ? ORDER BY id DESC", (_scope(project), _scope(project))
            )
            return [Document(*row) for row in rows]

    def stopped(self, session: str, seam: str) -> Stop | None:
        """Whether, and why, cutting has ended for a session at a seam."""
        with self._transaction() as connection:
            row = connection.execute(f"{_STOPS} WHERE session = ? AND seam = ?", (text(session), text(seam))).fetchone()
            return row and Stop(*row)

    def stops(self, session: str) -> list[Stop]:
        """Every seam of a session at which cutting has ended, oldest first."""
        with self._transaction() as connection:
            rows = connection.execute(f"{_STOPS} WHERE session = ? ORDER BY at, seam", (text(session),))
            return [Stop(*row) for row in rows]

    # ----------------------------------------------------------------------------------- the connection

    @contextmanager
    def _transaction(self, write: bool = False) -> Iterator[sqlite3.Connection]:
        """A transaction: everything in it is read at one moment, and written together or not at all."""
        with self._lock:
            try:
                connection = self._opened()
                connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                try:
                    schema.refuse_newer(connection, self.path)
                    yield connection
                    connection.execute("COMMIT")
                except BaseException:
                    connection.rollback()
                    raise
            except (sqlite3.Error, OSError) as error:
                self.close()  # whatever is wrong with it, the next use opens it anew
                raise fault(self.path, error) from error

    def _opened(self) -> sqlite3.Connection:
        """The connection; a new one where the file has been moved away or replaced."""
        if self._connection is not None:
            try:
                found = self.path.stat()
            except FileNotFoundError:
                self.close()
            else:
                if (found.st_dev, found.st_ino) == self._file:
                    return self._connection
                self.close()
        if self._readonly:
            place.check(self.path, mend=False)
        else:
            self.notes += place.prepare(self.path)
        self._connection = schema.connect(self.path, readonly=self._readonly, timeout=self._timeout)
        found = self.path.stat()
        self._file = (found.st_dev, found.st_ino)
        self._known.clear()  # another file has other ids
        return self._connection


_DOCUMENTS = "SELECT session, project, at, address, json, stamp, flags FROM document"
_STOPS = "SELECT session, seam, rule, why, at FROM stop"


def _prepare(body: bytes, known: _Known | None) -> _Prepared:
    """Read a body and hash what is new in it; nothing is looked up yet."""
    shared = parts.shared(known.request, body) if known else 0
    try:
        request = wire.read(body, known.request if known and shared else None, shared)
    except Unreadable:
        return _Prepared(None, parts.Parts(body, 0, [], []), 0, [], 0, None)
    found = parts.split(request, shared)
    before = known.hashes[:shared] if known else []
    hashes = before + parts.chain(found.pieces, before[-1] if before else parts.ROOT)
    common = shared
    if known:
        while common < min(len(hashes), len(known.hashes)) and hashes[common] == known.hashes[common]:
            common += 1
    return _Prepared(request, found, shared, hashes, common, New(request, common))


def _marks(prepared: _Prepared, known: _Known | None) -> list[parts.Mark]:
    """The cache marks of the whole body, those of its known messages included."""
    old = [mark for mark in known.marks if mark.message < prepared.shared] if known else []
    return old + prepared.parts.marks


def _scope(project: str | None) -> str | None:
    return None if project is None else text(project)


def _there(connection: sqlite3.Connection, known: _Known) -> bool:
    """Whether the known chain still is what it was; somebody may have deleted it. Ids are never used again."""
    if not known.nodes:
        return True
    row = connection.execute("SELECT hash FROM node WHERE id = ?", (known.nodes[-1],)).fetchone()
    return row is not None and row[0] == known.hashes[-1]


def _session(connection: sqlite3.Connection, key: _Key) -> int:
    connection.execute("INSERT OR IGNORE INTO session (session, agent, client, project) VALUES (?, ?, ?, ?)", key)
    found = connection.execute(
        "SELECT id FROM session WHERE session = ? AND agent = ? AND client = ? AND project = ?", key
    ).fetchone()
    return int(found[0])


def _nodes(connection: sqlite3.Connection, prepared: _Prepared, known: _Known | None) -> list[int]:
    """The ids of a history's nodes; those that are not there yet are stored."""
    hashes, pieces, shared = prepared.hashes, prepared.parts.pieces, prepared.shared
    nodes: list[int] = known.nodes[: prepared.common] if known else []
    missing = False
    for number in range(len(nodes), len(hashes)):
        row = None
        if not missing:
            row = connection.execute("SELECT id FROM node WHERE hash = ?", (hashes[number],)).fetchone()
        if row:
            nodes.append(row[0])
            continue
        missing = True  # what follows a node that is not there is not there either
        piece = pieces[number - shared]
        message = packing.put(connection, piece.literal, piece.hash)
        done = connection.execute(
            "INSERT INTO node (hash, parent, message, gap, depth) VALUES (?, ?, ?, ?, ?)",
            (hashes[number], nodes[-1] if nodes else None, message, piece.gap, number),
        )
        assert done.lastrowid is not None
        nodes.append(done.lastrowid)
    return nodes


def _request(
    connection: sqlite3.Connection,
    session: int,
    node: int | None,
    exchange: Exchange,
    prepared: _Prepared,
    known: _Known | None,
) -> int:
    request, found = prepared.request, prepared.parts
    base = None
    if request is not None:
        # The frame of this session's last request, else of anybody's: much of it is the client's tools.
        row = connection.execute(
            "SELECT frame FROM request WHERE split IS NOT NULL ORDER BY session = ? DESC, id DESC LIMIT 1", (session,)
        ).fetchone()
        base = row and row[0]
    done = connection.execute(
        "INSERT INTO request (session, at, kind, model, frame, split, node, marks, size, sent, seam, status, answer,"
        " usage) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            session,
            exchange.at,
            text(exchange.kind),
            text(request.model or "") if request else "",
            packing.put(connection, found.frame, base=base),
            None if request is None else found.split,
            node,
            parts.write_marks(_marks(prepared, known)),
            len(exchange.body),
            exchange.sent,
            text(exchange.seam),
            exchange.status,
            packing.put(connection, exchange.answer) if exchange.answer else None,
            json.dumps(dict(exchange.usage)),
        ),
    )
    assert done.lastrowid is not None
    return done.lastrowid


def _body(connection: sqlite3.Connection, request: int) -> bytes:
    row = connection.execute("SELECT frame, split, node, marks FROM request WHERE id = ?", (request,)).fetchone()
    if row is None:
        raise InputError(f"no request {request} in the record")
    frame, split, node, marks = row
    framed = packing.get(connection, frame)
    if split is None:
        return framed
    rows = connection.execute(
        f"{_CHAIN} SELECT b.hash, b.base, b.data, c.gap FROM chain c JOIN blob b ON b.id = c.message ORDER BY c.depth",
        (node,),
    ).fetchall()
    literals = [(packing.unpack(connection, *blob), gap) for *blob, gap in rows]
    return parts.join(framed, split, literals, parts.read_marks(marks))


def _answer(connection: sqlite3.Connection, request: int) -> bytes:
    row = connection.execute("SELECT answer FROM request WHERE id = ?", (request,)).fetchone()
    if row is None:
        raise InputError(f"no request {request} in the record")
    return packing.get(connection, row[0]) if row[0] else b""
