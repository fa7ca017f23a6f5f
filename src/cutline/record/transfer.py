"""The record as lines of JSON, and back: an export is read by people and programs, and loses no byte of a body.

Law: a line that other lines name stands before them. What is JSON on one line stands as it is, byte for byte, in
`json`; what is not stands as text in `text`, or, where it is no UTF-8, in `base64`. docs/record.md names each field.
"""

from __future__ import annotations

import base64
import json
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

from .. import spans
from ..errors import InputError, Unreadable
from . import packing, parts
from .rebuilding import pieces
from .values import Document, Exchange, Stop

FORMAT = 1
HEAD = b'{"type":"cutline record"'
"""What an export begins with."""
_HELD = ("json", "text", "base64")


def write(connection: sqlite3.Connection, session: str | None) -> Iterator[bytes]:
    """The lines of an export, each with its line break. Inside one transaction."""
    yield HEAD + b',"format":%d}\n' % FORMAT
    blobs: set[int] = set()
    nodes: set[int] = set()
    rows = connection.execute(
        "SELECT r.id, s.session, s.agent, s.client, s.project, r.at, r.kind, r.model, r.size, r.sent, r.seam,"
        " r.status, r.answer, r.usage FROM request r JOIN session s ON s.id = r.session"
        " WHERE ?1 IS NULL OR s.session = ?1 ORDER BY r.id",
        (session,),
    ).fetchall()
    for id, name, agent, client, project, at, kind, model, size, sent, seam, status, answer, usage in rows:
        made = pieces(connection, id)
        before = None
        for node, message, gap in made.chain:
            if node not in nodes:
                nodes.add(node)
                head = {"type": "message", "message": node, "after": before}
                if gap is not None:
                    head["gap"] = gap.decode()
                yield _line(head, packing.get(connection, message))
            before = node
        for blob in (made.frame, answer):
            if blob is not None and blob not in blobs:
                blobs.add(blob)
                yield _line({"type": "part", "part": blob}, packing.get(connection, blob), blob != made.frame)
        yield _plain(
            {"type": "request", "session": name, "agent": agent, "client": client, "project": project, "at": at,
             "kind": kind, "model": model, "size": size, "sent": sent, "seam": seam, "status": status,
             "usage": json.loads(usage), "last": before, "frame": made.frame, "split": made.split,
             "marks": [[mark.message, mark.at, mark.text.decode()] for mark in made.marks], "answer": answer}
        )  # fmt: skip
    for table, value in (("document", Document), ("stop", Stop)):
        names = ", ".join(value.__dataclass_fields__)
        for row in connection.execute(
            f"SELECT {names} FROM {table} WHERE ?1 IS NULL OR session = ?1 ORDER BY at", (session,)
        ):
            yield _plain({"type": table, **asdict(value(*row))})


def is_export(path: Path) -> bool:
    """Whether a file begins as an export does; what is no regular file is none, and nobody waits for it."""
    if not path.is_file():
        return False
    with path.open("rb") as handle:
        return handle.read(len(HEAD)) == HEAD


def read(path: Path) -> Iterator[Exchange | Document | Stop]:
    """What an export holds, in its order. Of its messages one body's at a time is in memory.

    Raises:
        InputError: it is no export, of a newer format, or damaged; the text names the line.
    """
    with path.open("rb") as handle:
        number = 0
        try:
            reader = _Reader(handle)
            for line in iter(handle.readline, b""):
                number += 1
                found = reader.line(line, handle.tell() - len(line))
                if found is not None:
                    yield found
        except (KeyError, TypeError, ValueError, IndexError, Unreadable) as error:
            what = f"“{error.args[0]}” is missing" if isinstance(error, KeyError) else " ".join(str(error).split())
            raise InputError(f"{path}, line {number}: {what}; export the record again") from None
        if number == 0:
            raise InputError(f"{path}: empty; give an export or a session file")


class _Reader:
    """Where each message and part stands in the file, and the messages of the last body."""

    def __init__(self, handle: BinaryIO) -> None:
        self._handle = handle
        self._messages: dict[int, tuple[int, int | None, bytes | None]] = {}
        self._parts: dict[int, int] = {}
        self._last: dict[int, bytes] = {}
        self._begun = False

    def line(self, line: bytes, at: int) -> Exchange | Document | Stop | None:
        value = json.loads(line)
        kind = value["type"]
        if not self._begun:
            if kind != "cutline record":
                raise ValueError("no export of a record")
            if value["format"] > FORMAT:
                raise ValueError(f"an export of format {value['format']}, this Cutline knows {FORMAT}; upgrade Cutline")
            self._begun = True
        elif kind == "message":
            gap = value.get("gap")
            self._messages[value["message"]] = (at, value["after"], None if gap is None else gap.encode())
        elif kind == "part":
            self._parts[value["part"]] = at
        elif kind == "request":
            return self._exchange(value)
        elif kind in ("document", "stop"):
            made: Callable[..., Document | Stop] = Document if kind == "document" else Stop
            return made(**{key: item for key, item in value.items() if key != "type"})
        return None

    def _exchange(self, value: dict[str, Any]) -> Exchange:
        frame, answer = self._part(value["frame"]), value["answer"]
        body = frame
        if value["split"] is not None:
            marks = [parts.Mark(message, at, text.encode()) for message, at, text in value["marks"]]
            body = parts.join(frame, value["split"], self._chain(value["last"]), marks)
        if len(body) != value["size"]:
            raise ValueError(f"a body of {len(body):,} bytes instead of {value['size']:,}")
        given = {
            key: value[key]
            for key in ("session", "agent", "client", "project", "at", "sent", "seam", "status", "usage", "kind")
        }
        return Exchange(**given, body=body, answer=b"" if answer is None else self._part(answer))

    def _chain(self, last: int | None) -> list[tuple[bytes, bytes | None]]:
        literals: list[tuple[bytes, bytes | None]] = []
        kept: dict[int, bytes] = {}
        while last is not None:
            at, before, gap = self._messages[last]
            kept[last] = self._last[last] if last in self._last else self._held(at)
            literals.append((kept[last], gap))
            last = before
        self._last = kept
        return literals[::-1]

    def _part(self, number: int) -> bytes:
        return self._held(self._parts[number])

    def _held(self, at: int) -> bytes:
        """The bytes that a line holds, read again from the file."""
        here = self._handle.tell()
        self._handle.seek(at)
        line = self._handle.readline()
        self._handle.seek(here)
        found = {member.key: member for member in spans.members(line.decode("latin-1"), 0)[0]}
        key = next(key for key in _HELD if key in found)
        literal = line[found[key].start : found[key].end]
        if key == "json":
            return literal
        text = json.loads(literal)
        return text.encode() if key == "text" else base64.b64decode(text, validate=True)


def _plain(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _line(head: dict[str, Any], data: bytes, whole: bool = True) -> bytes:
    """A line with bytes in it; `whole`: they may be JSON."""
    start = _plain(head)[:-2]
    if whole and _is_line_of_json(data):
        return start + b',"json":' + data + b"}\n"
    try:
        return start + b',"text":' + json.dumps(data.decode(), ensure_ascii=False).encode() + b"}\n"
    except UnicodeDecodeError:
        return start + b',"base64":"' + base64.b64encode(data) + b'"}\n'


def _is_line_of_json(data: bytes) -> bool:
    if b"\n" in data or b"\r" in data or data[:1] in b" \t" or data[-1:] in b" \t":
        return False
    try:
        text = spans.view(data)
        return spans.scan(text, 0)[1] == len(text)
    except (*spans.DOUBTS, Unreadable):
        return False
