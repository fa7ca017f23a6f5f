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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from . import calls, deleting, indexing, masking, packing, parts, place, schema, settings, transfer, words
from .checking import faults
from .preparing import Known, Prepared, all_marks, prepare
from .rebuilding import answer_of, body_of
from .schema import fault
from .values import (
    Deleted,
    Document,
    Exchange,
    History,
    Recorded,
    RequestRow,
    Said,
    SessionRow,
    Stats,
    Stop,
    text,
)

_SESSIONS, _MEMORY = 16, 64 << 20
"""Of so many sessions, and of so many bytes of bodies, the last request is kept in memory."""

_Key = tuple[str, str, str, str]

_DAY, _AWAY = 86_400.0, 30 * 86_400.0
"""Seconds between two looks at what is too old; after so long a silence the first look only notes the time."""


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
        self._known: dict[_Key, Known] = {}
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
        with self._lock:
            return self._write(*self._masked(exchange))

    def add(self, exchange: Exchange) -> bool:
        """Store a request with its answer unless the record has it already; whether it was new."""
        with self._lock:
            masked, sent = self._masked(exchange)
            with self._transaction() as connection:
                rows = connection.execute(
                    "SELECT r.id FROM request r JOIN session s ON s.id = r.session WHERE s.session = ? AND s.agent = ?"
                    " AND s.client = ? AND s.project = ? AND r.at = ? AND r.kind = ? AND r.size = ?",
                    (*_key(masked), masked.at, text(masked.kind), len(masked.body)),
                ).fetchall()
                same = (masked.body, masked.answer)
                if any((body_of(connection, id), answer_of(connection, id)) == same for (id,) in rows):
                    return False
            self._write(masked, sent)
            return True

    def _masked(self, exchange: Exchange) -> tuple[Exchange, bytes | None]:
        """An exchange without its secrets, and the body as it was sent, where secrets are masked and it held any."""
        with self._guarded() as connection:
            schema.refuse_newer(connection, self.path)
            if not settings.masking(connection):
                return exchange, None
        body, answer = masking.mask(exchange.body), masking.mask(exchange.answer)
        return replace(exchange, body=body, answer=answer), exchange.body if body != exchange.body else None

    def _write(self, exchange: Exchange, sent: bytes | None) -> int:
        key = _key(exchange)
        known = self._known.get(key)
        prepared = prepare(exchange, known, sent)
        with self._transaction(write=True) as connection:
            if known and not (self._known and _there(connection, known)):
                known, prepared = None, prepare(exchange, None, sent)
            session = _session(connection, key)
            nodes = _nodes(connection, prepared, known)
            id = _request(connection, session, nodes[-1] if nodes else None, exchange, prepared, known)
            if prepared.new:
                prepared.new.store(connection, session, id, nodes)
            words.store(connection, session, id, prepared.texts, nodes)
            indexing.settle(connection)
        self._remember(key, id, prepared, known, nodes)
        return id

    def _remember(self, key: _Key, id: int, prepared: Prepared, known: Known | None, nodes: list[int]) -> None:
        self._known.pop(key, None)
        if prepared.request is not None:
            marks = all_marks(prepared, known)
            self._known[key] = Known(id, prepared.request, marks, prepared.hashes, nodes, prepared.said)
        size = sum(len(one.request.body) for one in self._known.values())
        while self._known and (len(self._known) > _SESSIONS or size > _MEMORY):
            size -= len(self._known.pop(next(iter(self._known))).request.body)

    def put_document(self, document: Document) -> None:
        """Store a checkpoint's document."""
        self._put_document(document)

    def add_document(self, document: Document) -> bool:
        """Store a document unless the record has it already; whether it was new."""
        return self._put_document(document, " AND NOT EXISTS (SELECT 1 FROM document WHERE " + _SAME_DOCUMENT + ")")

    def _put_document(self, d: Document, unless: str = "") -> bool:
        told = [text(value) for value in (d.json, d.stamp, d.flags)]
        with self._transaction(write=True) as connection:
            if settings.masking(connection):
                told = [masking.mask(value.encode()).decode() for value in told]
            done = connection.execute(
                "INSERT INTO document (session, project, at, address, json, stamp, flags)"
                f" SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7 WHERE 1{unless}",
                (text(d.session), text(d.project), d.at, text(d.address), *told),
            )
            return done.rowcount > 0

    def stop(self, session: str, seam: str, rule: str, why: str, at: float) -> None:
        """Store that cutting has ended for a session at a seam."""
        with self._transaction(write=True) as connection:
            values = (text(session), text(seam), text(rule), text(why), at)
            connection.execute(
                "INSERT OR REPLACE INTO stop (session, seam, rule, why, at) VALUES (?, ?, ?, ?, ?)", values
            )

    # --------------------------------------------------------------------------------------- looking after

    def delete(self, sessions: Sequence[str]) -> Deleted:
        """Delete whole sessions for good: rows, bytes, documents, words in the indexes. `sweep` ends it.

        Args:
            sessions: the clients' ids; one that is not there is no fault.
        """
        with self._transaction(write=True, secure=True) as connection:
            return deleting.sessions(connection, [text(name) for name in sessions])

    def sweep(self) -> bool:
        """Write the file anew without the bytes of what was deleted; False where nothing was owed.

        Raises:
            RecordFault: it can't be done now (another program is at it, no room); it stays owed.
        """
        with self._guarded() as connection:
            return deleting.sweep(connection)

    def look_after(self, now: float) -> Deleted | None:
        """Delete what is older than the record keeps, at most once a day; None where it was not time.

        A clock that went back, or far ahead, only has its time noted: what it would delete goes a day later, if
        the clock still says so.

        Args:
            now: seconds since 1970.
        """
        with self._transaction(write=True, secure=True) as connection:
            noted = settings.get(connection, settings.LOOKED_AFTER)
            passed = now - float(noted) if noted else None
            if passed is not None and 0 <= passed < _DAY:
                return None
            settings.put(connection, settings.LOOKED_AFTER, repr(now))
            days, gone = settings.retention(connection), None
            if days is not None and passed is not None and 0 <= passed <= _AWAY:
                old = deleting.outdated(connection, now - days * _DAY)
                gone = deleting.sessions(connection, old) if old else Deleted((), 0, 0, 0, 0)
        self.sweep()
        return gone

    def set_retention(self, days: int | None) -> None:
        """Delete sessions whose last request is so many days old (`look_after`); None: never."""
        with self._transaction(write=True) as connection:
            settings.put(connection, settings.RETENTION, "off" if days is None else str(days))

    def set_masking(self, on: bool) -> None:
        """Mask secrets of known forms on the way in from now on, or no longer."""
        with self._transaction(write=True) as connection:
            settings.put(connection, settings.MASKING, "on" if on else "off")

    def stats(self) -> Stats:
        """What the record holds, and how it is kept."""
        with self._transaction() as connection:
            requests, called, texts, documents = (
                connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
                for table in ("request", "call", "said", "document")
            )
            sessions, agents = connection.execute(
                "SELECT count(DISTINCT session), count(DISTINCT CASE WHEN agent != '' THEN session || char(0) || agent"
                " END) FROM session"
            ).fetchone()
            bodies, sent, first, last = connection.execute(
                "SELECT coalesce(sum(size), 0), coalesce(sum(sent), 0), min(at), max(at) FROM request"
            ).fetchone()
            days, masked = settings.retention(connection), settings.masking(connection)
        stored = sum(file.stat().st_size for file in place.files(self.path))
        return Stats(
            sessions, agents, requests, called, texts, documents, stored, bodies, sent, first, last, days, masked,
            schema.VERSION,
        )  # fmt: skip

    def faults(self, told: Callable[[int, int], None] = lambda done, of: None) -> list[str]:
        """Check everything: each hash, each body rebuilt, each call and text found again. A line for each fault.

        Args:
            told: called now and then with how much is done, and of how much.
        """
        with self._transaction() as connection:
            return faults(connection, told)

    def lines(self, session: str | None = None) -> Iterator[bytes]:
        """The record, or one session of it, as lines of JSON (docs/record.md), all of one moment."""
        with self._transaction() as connection:
            yield from transfer.write(connection, None if session is None else text(session))

    # ---------------------------------------------------------------------------------------- reading

    def body(self, request: int) -> bytes:
        """The body of a request, byte for byte as the client sent it.

        Raises:
            InputError: there is no such request.
        """
        with self._transaction() as connection:
            return body_of(connection, request)

    def answer(self, request: int) -> bytes:
        """The content blocks of a request's answer as they were stored; b"" where there are none.

        Raises:
            InputError: there is no such request.
        """
        with self._transaction() as connection:
            return answer_of(connection, request)

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
            return History(name, agent, client, project, at, id, body_of(connection, id), answer_of(connection, id))

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
            return calls.at_address(connection, _scope(project), text(address))

    def search(
        self,
        project: str | None,
        wanted: Sequence[str],
        limit: int = 20,
        *,
        tool: str | None = None,
        since: float | None = None,
        session: str | None = None,
    ) -> list[Recorded]:
        """Completed calls whose arguments or result hold all words, whatever their case.

        The call that was recorded last comes first; equal results of one call are one, at its newest place. Words
        are only words; they may stand inside others.

        Args:
            project: None for every project.
            wanted: the words; none for every call.
            limit: no more than so many.
            tool: only calls of this tool, by its whole name or the part behind its server's.
            since: only what was first seen at this time or later.
            session: only this session's.
        """
        with self._transaction() as connection:
            return calls.with_words(connection, _scope(project), wanted, limit, tool, since, _scope(session))

    def said(
        self,
        project: str | None,
        wanted: Sequence[str],
        limit: int = 20,
        *,
        author: str | None = None,
        since: float | None = None,
        session: str | None = None,
    ) -> list[Said]:
        """Texts of the agent and the human that hold all words (see `search`), newest first.

        Args:
            project, wanted, limit, since, session: as for `search`.
            author: "agent" or "human"; None for both.
        """
        with self._transaction() as connection:
            return words.with_words(connection, _scope(project), wanted, limit, author, since, _scope(session))

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
    def _guarded(self) -> Iterator[sqlite3.Connection]:
        """The connection, this thread's alone; its faults as one line."""
        with self._lock:
            try:
                yield self._opened()
            except (sqlite3.Error, OSError) as error:
                self.close()  # whatever is wrong with it, the next use opens it anew
                raise fault(self.path, error) from error

    @contextmanager
    def _transaction(self, write: bool = False, secure: bool = False) -> Iterator[sqlite3.Connection]:
        """A transaction: everything in it is read at one moment, and written together or not at all."""
        with self._guarded() as connection:
            if secure:
                connection.execute("PRAGMA secure_delete=ON")  # what is deleted is blank before it is swept
            connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            try:
                schema.refuse_newer(connection, self.path)
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                connection.rollback()
                raise
            finally:
                if secure:
                    connection.execute("PRAGMA secure_delete=OFF")

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
        if not self._readonly or os.path.lexists(self.path):
            self.notes += place.prepare(self.path)
        self._connection = schema.connect(self.path, readonly=self._readonly, timeout=self._timeout)
        found = self.path.stat()
        self._file = (found.st_dev, found.st_ino)
        self._known.clear()  # another file has other ids
        return self._connection


_SAME_DOCUMENT = "session = ?1 AND project = ?2 AND at = ?3 AND address = ?4 AND json = ?5"
_DOCUMENTS = "SELECT session, project, at, address, json, stamp, flags FROM document"
_STOPS = "SELECT session, seam, rule, why, at FROM stop"


def _key(exchange: Exchange) -> _Key:
    return text(exchange.session), text(exchange.agent), text(exchange.client), text(exchange.project)


def _scope(project: str | None) -> str | None:
    return None if project is None else text(project)


def _there(connection: sqlite3.Connection, known: Known) -> bool:
    """Whether the known request and its chain still are what they were; they may be deleted. No id is used twice."""
    if connection.execute("SELECT 1 FROM request WHERE id = ?", (known.id,)).fetchone() is None:
        return False
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


def _nodes(connection: sqlite3.Connection, prepared: Prepared, known: Known | None) -> list[int]:
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
    prepared: Prepared,
    known: Known | None,
) -> int:
    request, found = prepared.request, prepared.parts
    done = connection.execute(
        "INSERT INTO request (session, at, kind, model, frame, split, node, marks, size, sent, seam, status, answer,"
        " usage, format) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            session,
            exchange.at,
            text(exchange.kind),
            text(request.request.model or "") if request else "",
            _frame(connection, session, found.frame, known, request is not None),
            None if request is None else found.split,
            node,
            parts.write_marks(all_marks(prepared, known)),
            len(exchange.body),
            exchange.sent,
            text(exchange.seam),
            exchange.status,
            packing.put(connection, exchange.answer) if exchange.answer else None,
            json.dumps(dict(exchange.usage)),
            request.format if request else "",
        ),
    )
    assert done.lastrowid is not None
    return done.lastrowid


def _frame(connection: sqlite3.Connection, session: int, frame: bytes | None, known: Known | None, read: bool) -> int:
    """The id of what stands around the messages; much of that is the client's tools, the same in many requests."""
    if frame is None:
        assert known is not None
        return int(connection.execute("SELECT frame FROM request WHERE id = ?", (known.id,)).fetchone()[0])
    base = None
    if read:
        # That of this session's last request, else of anybody's.
        row = connection.execute(
            "SELECT frame FROM request WHERE split IS NOT NULL ORDER BY session = ? DESC, id DESC LIMIT 1", (session,)
        ).fetchone()
        base = row and row[0]
    return packing.put(connection, frame, base=base)
