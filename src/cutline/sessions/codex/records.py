"""A rollout file as records: an index of offsets, read once in bounded memory.

Law: the file is only read, one line at a time, and no record is held: an index entry says where it stands and what it
is, and its bytes are read again by offset. Damage is counted with its line and is not fatal while there is a record:
records glued into one line are parted, torn fragments are passed over. Only the bytes that stood there when the file
was opened are used. A compressed rollout is unpacked into a temporary file without a name.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from ... import spans
from ...errors import InputError, Unreadable
from ...spans import DOUBTS, scan, skip
from . import packed as packing

_HINT = "give a rollout file of Codex, or type: cutline ls"
# How a record begins (it is searched for behind a torn fragment).
_START = re.compile(r'\{\s*"(?:timestamp|ordinal|type|id|record_type)"').finditer
_TRIES = 500  # each may run to the line's end
_OUTER = frozenset(("session_meta", "turn_context", "response_item", "event_msg", "compacted", "world_state"))


class Record(NamedTuple):
    """One record: where it stands and what it is.

    Attributes:
        line, offset, length: its line (from 1), and its JSON literal as ``file[offset:offset + length]``.
        type: "session_meta", "turn_context", "response_item", "event_msg", "compacted" and more. An item of the old
            form, which stands alone in its line, is a "response_item"; that form's first line is a "session_meta".
        kind: the type of its payload ("message", "function_call", "token_count" …); "" where that has none.
        role: of a message.
        call: the id of the call that it makes, answers or reports on; "" where there is none.
        item: of an `item_completed` event, the type of its item.
        turns: of a `thread_rolled_back` event, how many turns were taken back.
        timestamp: as written (ISO 8601).
        model: of a `turn_context`, the model that it names.
        bare: it is of the old form, without a payload.
    """

    line: int
    offset: int
    length: int
    type: str
    kind: str = ""
    role: str = ""
    call: str = ""
    item: str = ""
    turns: int = 0
    timestamp: str = ""
    model: str = ""
    bare: bool = False


class Torn(NamedTuple):
    """Bytes that are no whole record: their line (from 1), where they stand and how many they are."""

    line: int
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class Log:
    """A rollout file that was read.

    Attributes:
        path: the file.
        size: how many of its bytes were read (of a compressed one: of what it holds).
        grew: bytes that were added to it meanwhile, which are not in here.
        records: its records in file order.
        glued: lines that hold more than one whole record.
        torn: fragments that are no record.
        others: lines of JSON that are no record.
        packed: it is compressed.
        last: the latest timestamp of its records.
    """

    path: Path
    size: int
    grew: int
    records: list[Record]
    glued: tuple[int, ...]
    torn: tuple[Torn, ...]
    others: tuple[int, ...]
    packed: bool
    last: str

    @contextmanager
    def reader(self) -> Iterator[Callable[[Record], bytes]]:
        """Open the file once and give a function that reads the bytes of a record again.

        Raises:
            InputError: the file is gone, or has become shorter; the function raises the latter too.
        """
        with _open(self.path)[0] as handle:

            def fetch(record: Record) -> bytes:
                handle.seek(record.offset)
                found = handle.read(record.length)
                if len(found) != record.length:
                    raise InputError(f"{self.path}: became shorter while it was read; try again")
                return found

            yield fetch


def read(path: str | os.PathLike[str]) -> Log:
    """Read a rollout file, plain or compressed.

    Raises:
        InputError: no such file, a directory, an empty file, or one without a single record; the text names the file,
            the place of the first doubt and what to do.
    """
    file = Path(path)
    handle, size, packed = _open(file)
    with handle:
        if not size:
            raise InputError(f"{file}: the file is empty; {_HINT}")
        index = _Index(size)
        index.lines(handle)
        grew = 0 if packed else os.fstat(handle.fileno()).st_size - size
        if not index.records:
            handle.seek(0)
            raise InputError(f"{file}: {index.why(handle.read(4096))}; {_HINT}")
    glued = tuple(dict.fromkeys(index.glued))
    torn, others = tuple(index.torn), tuple(index.others)
    return Log(file, size, max(grew, 0), index.records, glued, torn, others, packed, index.last)


def _open(file: Path) -> tuple[BinaryIO, int, bool]:
    """Open a regular file (symlinks are followed), say how many bytes it has now, and whether it was compressed."""
    try:
        found = file.stat()
        if stat.S_ISDIR(found.st_mode):
            raise InputError(f"{file}: is a directory; give one session file in it, or type: cutline ls")
        if not stat.S_ISREG(found.st_mode):
            raise InputError(f"{file}: is no regular file; {_HINT}")
        handle = file.open("rb")
    except FileNotFoundError:
        raise InputError(f"{file}: no such file; {_HINT}") from None
    except OSError as error:
        raise InputError(f"{file}: can't be read ({error.strerror}); check its permissions") from None
    except ValueError as error:  # a NUL in the name
        raise InputError(f"{str(file)!r}: can't be a file's name ({error}); {_HINT}") from None
    if file.suffix != packing.SUFFIX:
        return handle, os.fstat(handle.fileno()).st_size, False
    try:
        with handle:
            unpacked = packing.unpacked(handle)
    except OSError as error:
        raise InputError(f"{file}: can't be unpacked ({error}); {_HINT}") from None
    size = unpacked.tell()
    unpacked.seek(0)
    return unpacked, size, True


@dataclass(slots=True)
class _Index:
    """What grows while a file is read."""

    size: int
    records: list[Record] = field(default_factory=list)
    glued: list[int] = field(default_factory=list)
    torn: list[Torn] = field(default_factory=list)
    others: list[int] = field(default_factory=list)
    last: str = ""
    doubt: str = ""
    _seen: dict[str, str] = field(default_factory=dict)

    def lines(self, handle: BinaryIO) -> None:
        offset = number = 0
        while offset < self.size:
            raw = handle.readline(self.size - offset)
            if not raw:
                break
            number += 1
            self._line(raw, number, offset)
            offset += len(raw)

    def _line(self, raw: bytes, line: int, offset: int) -> None:
        text = raw.decode("latin-1")
        end = len(text.rstrip(" \t\r\n"))
        at = skip(text, 0)
        whole = 0
        while at < end:
            start = at
            try:
                value, behind = scan(text, at)
                if type(value) is not tuple:
                    # A bare value counts only where it is the whole line: a fragment can begin with a number.
                    if start or behind != end:
                        raise ValueError("no object")
                    self.others.append(line)
                elif not raw.isascii():
                    spans.view(raw[start:behind])
            except DOUBTS as error:
                self._doubt(spans.doubt(error, text), line, offset)
                at = _restart(text, at + 1, end)
                self.torn.append(Torn(line, offset + start, at - start))
                continue
            except Unreadable as error:
                self._doubt(error, line, offset + start)
                self.torn.append(Torn(line, offset + start, behind - start))
            else:
                if type(value) is tuple:
                    if self._add(dict(value), line, offset + start, behind - start):
                        whole += 1
                    else:
                        self.others.append(line)
            at = skip(text, behind)
        if whole > 1:
            self.glued.append(line)

    def _doubt(self, error: Unreadable, line: int, offset: int) -> None:
        self.doubt = self.doubt or f"line {line} is no record ({error.what} at byte {offset + error.at:,})"

    def _add(self, got: dict[str, Any], line: int, offset: int, length: int) -> bool:
        """Index an object; False where it is no record."""
        type_, inside, timestamp = _word(got, "type"), got.get("payload"), _word(got, "timestamp")
        bare = type(inside) is not tuple
        payload = got if type(inside) is not tuple else dict(inside)
        if not bare and not type_:
            return False
        if bare:
            if type_ in _OUTER:
                return False
            type_ = "response_item" if type_ else "state"
            if type_ == "state" and "record_type" not in got:
                if "id" not in got or not timestamp:
                    return False
                type_ = "session_meta"
        kind = "" if type_ in ("session_meta", "state") else _word(payload, "type")
        call = _word(payload, "call_id") or _word(payload, "callId")
        item, turns = "", 0
        if type_ == "response_item":
            call = call or ("" if kind == "message" else _word(payload, "id"))
        elif type_ == "event_msg":
            inside = payload.get("item")
            if kind == "item_completed" and type(inside) is tuple:
                completed = dict(inside)
                item, call = _word(completed, "type"), _word(completed, "id")
            elif kind == "guardian_assessment":
                call = _word(payload, "target_item_id")
            elif kind == "thread_rolled_back":
                told = payload.get("num_turns")
                turns = int(told) if isinstance(told, str) and told.isdecimal() and len(told) < 9 else 0
        self.last = max(self.last, timestamp)
        if len(self._seen) > 4096:
            self._seen.clear()
        same = self._seen.setdefault
        role = _word(payload, "role") if kind == "message" else ""
        model = _word(payload, "model") if type_ == "turn_context" else ""
        self.records.append(
            Record(
                *(line, offset, length, same(type_, type_), same(kind, kind), same(role, role)),
                *(same(call, call), same(item, item), turns, timestamp, same(model, model), bare),
            )
        )
        return True

    def why(self, head: bytes) -> str:
        """Why a file holds no record, in a few words."""
        if b"\0" in head:
            return f"a binary file (a NUL at byte {head.index(0):,}), no session"
        if self.doubt:
            return self.doubt
        if self.others:
            return f"no record of a session in it (line {self.others[0]} is JSON without a record's “type”)"
        return "only empty lines, no session"


def _restart(text: str, at: int, end: int) -> int:
    """Where the next whole record of the line begins, or `end`.

    An object inside the torn one is no record: a record has a payload, and nothing but another record or the line's
    end follows it.
    """
    failed = 0
    for found in _START(text, at, end):
        try:
            value, behind = scan(text, found.start())
        except DOUBTS:
            failed += 1
            if failed == _TRIES:
                break
            continue
        if type(value) is tuple and (behind == end or text[skip(text, behind)] == "{"):
            got = dict(value)
            if got.get("type") in _OUTER and type(got.get("payload")) is tuple:
                return found.start()
    return end


def _word(got: dict[str, Any], key: str) -> str:
    value = got.get(key)
    return value if type(value) is str else ""
