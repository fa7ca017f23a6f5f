"""A session written anew, for a session that was held in another client: rows of the client's database, or an export.

Law: a message a message, a call and its result in one part. A text of nobody's stands in a user message of its own that
the client marks as not typed. The client wants to know of every prompt which model and project it is for: both are
taken from what stands in the database already. A database is written to in one transaction, an export is a new file.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ... import spans
from ...errors import InputError
from ..files import write_file
from ..moved import Arrive, Call, Message, New, Part, Picture, Result, Text, Written, at_address
from . import find
from .copy import Ids
from .history import history
from .reading import read, rows
from .writing import insert, transaction

SURROGATES = True
ERRORS = True
SHOWN = False
ADDED: frozenset[str] = frozenset()
_TOOLS = "cutline_"
_NO_TOKENS = '{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}}'
_AGENT = "build"
# Who serves the models that a client of one maker's has; a person may have them from elsewhere.
_PROVIDERS = {"claude-code": "anthropic", "codex": "openai", "gemini-cli": "google"}
_LOOKED_THROUGH = 50  # messages, for one that names a model
_ALONE = "no session of opencode's that a new one could go by; use it once, or give -o FILE, and import that"


def holds(picture: Picture) -> bool:
    """Whether a message can hold an attachment: any whose type is known."""
    return bool(picture.media)


def picture(raw: str) -> Picture | None:
    """An attachment in the client's own form: its address, or the whole part."""
    if raw[:1] != "{":
        return at_address(raw) if raw else None
    try:
        part = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    url, media = part.get("url"), part.get("mime")
    return at_address(url, media if isinstance(media, str) else "") if isinstance(url, str) else None


def aside(raw: str) -> str:
    """Such texts stand as they are."""
    return raw


def write(new: New, arrive: Arrive) -> Written:
    """Write a session into the client's database.

    Raises:
        InputError: there is none, or nothing in it says which model and project are meant.
    """
    path = find.database()
    if path is None:
        raise InputError(f"{find.data_folder()}: {_ALONE}")
    with transaction(path) as database:
        context = _context(database, path, new)
        records = _Records(new, context)
        size = records.insert(database)
        arrive(history(rows(database, path, records.id)))
    return Written(path, records.id, records.number, size)


def exported(output: Path) -> Callable[[New, Arrive], Written]:
    """A writer like `write` that makes an export, which the client imports."""

    def write(new: New, arrive: Arrive) -> Written:
        if output.exists():
            raise InputError(f"{output}: is there already; name a new file")
        model = {"providerID": _PROVIDERS.get(new.maker, new.maker), "modelID": new.model}
        records = _Records(new, Context(json.dumps(model).encode(), "global", "", "0.0.0"))
        made = b",".join(
            b'{"info":%s,"parts":[%s]}' % (info, b",".join(raw for _, raw in parts))
            for _, info, parts in records.messages(whole=True)
        )
        document = b'{"info":%s,"messages":[%s]}\n' % (records.info(), made)
        size = write_file(output, [document], lambda path: arrive(history(read(path))))
        return Written(output, records.id, records.number, size)

    return write


@dataclass(frozen=True, slots=True)
class Context:
    """What a new session goes by.

    Attributes:
        model: which model a prompt is for, as the client writes it (JSON).
        project: id of its project.
        path: the directory within the project.
        version: of the client.
    """

    model: bytes
    project: str
    path: str
    version: str


def _context(database: sqlite3.Connection, path: Path, new: New) -> Context:
    """What the sessions say that are there, first of all those of the same directory, the newest first."""
    asked = (
        "SELECT message.data, session.version FROM message JOIN session ON session.id = message.session_id "
        "ORDER BY session.directory = ? DESC, message.time_created DESC LIMIT ?"
    )
    told = database.execute(asked, (new.cwd, _LOOKED_THROUGH)).fetchall()
    model, version = next(((model, row[1]) for row in told if (model := _model(row[0]))), (None, ""))
    project = database.execute(
        "SELECT project_id, worktree FROM session JOIN project ON project.id = session.project_id "
        "WHERE directory = ? ORDER BY session.time_updated DESC LIMIT 1",
        (new.cwd,),
    ).fetchone()
    if project is None:
        # The innermost that the directory lies in; the client's own for what is in none has "/" for its tree.
        trees = database.execute("SELECT id, worktree FROM project ORDER BY LENGTH(worktree) DESC").fetchall()
        around = (new.cwd, *map(str, Path(new.cwd).parents), "/")
        project = next((tree for tree in trees if tree[1] in around), None)
    if model is None or project is None:
        raise InputError(f"{path}: {_ALONE}")
    inside = os.path.relpath(new.cwd, project[1])
    return Context(model, project[0], "" if inside == "." else inside, version)


def _model(data: str) -> bytes | None:
    try:
        model = json.loads(data).get("model")
    except (ValueError, RecursionError, AttributeError):
        return None
    named = isinstance(model, dict) and model.keys() >= {"providerID", "modelID"}
    return json.dumps(model).encode() if named else None


Made = tuple[str, bytes, list[tuple[str, bytes]]]
"""A message's id and record, and those of its parts."""


class _Records:
    """The records of a new session, one message at a time."""

    def __init__(self, new: New, context: Context) -> None:
        self.new, self.context = new, context
        self.ids = Ids()
        self.id = self.ids.session()
        self.number = 1
        self._asked = b"null"

    def info(self) -> bytes:
        """What is recorded of the session itself, in an export."""
        told = {
            "id": self.id,
            "slug": "moved",
            "version": self.context.version,
            "projectID": self.context.project,
            "directory": self.new.cwd,
            "title": self.new.title,
            "time": {"created": self.new.now, "updated": self.new.now},
        }
        return json.dumps(told).encode()

    def insert(self, database: sqlite3.Connection) -> int:
        """Add the session's rows to a database; gives the bytes of its messages and parts."""
        times = {"time_created": self.new.now, "time_updated": self.new.now}
        row = {
            "id": self.id,
            "project_id": self.context.project,
            "slug": "moved",
            "directory": self.new.cwd,
            "path": self.context.path,
            "title": self.new.title,
            "version": self.context.version,
        }
        columns = {column[1] for column in database.execute("PRAGMA table_info(session)")}
        insert(database, "session", {key: value for key, value in row.items() if key in columns} | times)
        size = 0
        for id_, info, parts in self.messages(whole=False):
            insert(database, "message", {"id": id_, "session_id": self.id, **times, "data": info.decode()})
            size += len(info)
            for part, raw in parts:
                links: dict[str, Any] = {"id": part, "message_id": id_, "session_id": self.id}
                insert(database, "part", {**links, **times, "data": raw.decode()})
                size += len(raw)
        return size

    def messages(self, *, whole: bool) -> Iterator[Made]:
        """Every message; `whole` with its ids, which are columns in a database."""
        for number, message in enumerate(self.new.messages):
            if message.who == "results":
                continue
            results = self.new.messages[number + 1].results() if message.calls() else []
            id_ = self.ids.message()
            own = b'"id":"%s","sessionID":"%s",' % (id_.encode(), self.id.encode()) if whole else b""
            parts = []
            for members in _parts(message, results, self.new.now):
                part = self.ids.part()
                links = b'"id":"%s","sessionID":"%s","messageID":"%s",' % (
                    part.encode(),
                    self.id.encode(),
                    id_.encode(),
                )
                parts.append((part, b"{%s%s}" % (links if whole else b"", members)))
            if message.who != "agent":
                self._asked = b'"%s"' % id_.encode()
            self.number += 1 + len(parts)
            yield id_, b"{%s%s}" % (own, self._info(message)), parts

    def _info(self, message: Message) -> bytes:
        now = self.new.now
        if message.who != "agent":
            return b'"role":"user","time":{"created":%d},"agent":"%s","model":%s' % (
                now,
                _AGENT.encode(),
                self.context.model,
            )
        return b",".join(
            (
                b'"role":"assistant","parentID":%s,"mode":"%s","agent":"%s"'
                % (self._asked, _AGENT.encode(), _AGENT.encode()),
                b'"path":{"cwd":%s,"root":%s}' % (spans.quote(self.new.cwd), spans.quote(self.new.cwd)),
                b'"cost":0,"tokens":%s' % _NO_TOKENS.encode(),
                b'"modelID":%s,"providerID":%s'
                % (spans.quote(self.new.model), spans.quote(_PROVIDERS.get(self.new.maker, self.new.maker))),
                b'"time":{"created":%d,"completed":%d}' % (now, now),
                b'"finish":"%s"' % (b"tool-calls" if message.calls() else b"stop"),
            )
        )


def _parts(message: Message, results: list[Result], now: int) -> Iterator[bytes]:
    answers = iter(results)
    for part in message.parts:
        if isinstance(part, Call):
            yield _tool(part, next(answers), now)
        else:
            yield _said(part, b',"synthetic":true' if message.who == "aside" else b"")


def _said(part: Part, marks: bytes = b"") -> bytes:
    if isinstance(part, Picture):
        return b'"type":"file","mime":%s,"url":%s' % (spans.quote(part.media), spans.quote(part.address))
    assert isinstance(part, Text)
    return b'"type":"text","text":%s%s' % (part.literal, marks)


def _tool(call: Call, answer: Result, now: int) -> bytes:
    name = spans.quote(_TOOLS + call.own if call.own else call.name)
    times = b'"time":{"start":%d,"end":%d}' % (now, now)
    if answer.error:
        state = b'"status":"error","input":%s,"error":%s,%s' % (call.arguments, answer.text, times)
    else:
        state = b'"status":"completed","input":%s,"output":%s,"title":"","metadata":{},%s' % (
            call.arguments,
            answer.text,
            times,
        )
    return b'"type":"tool","callID":%s,"tool":%s,"state":{%s}' % (spans.quote(call.id), name, state)
