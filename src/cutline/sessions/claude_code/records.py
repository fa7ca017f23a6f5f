"""A session file as records: an index of offsets, read once in bounded memory.

Law: the file is only read, one line at a time, and no record is held: an index entry says where it stands and
how it is linked, and its bytes are read again by offset. Damage is counted with its line and is not fatal
while there is a record: records glued into one line are parted, torn fragments are passed over. Only the
bytes that stood there when the file was opened are used.
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

_HEAD = 4096
_WEB = re.compile(rb'\s*\{\s*"loglines"\s*:').match
# How a record begins (it is searched for behind a torn fragment).
_START = re.compile(
    r'\{\s*"(?:type|parentUuid|logicalParentUuid|isSidechain|sessionId|session_id|uuid|messageId|leafUuid|summary)"'
).finditer
_TRIES = 500  # each may run to the line's end
_RECENT = 4096  # texts that are kept to be shared: a parent is nearly always a recent record
_HINT = "give a session file of Claude Code, or type: cutline ls"


class Record(NamedTuple):
    """One record: where it stands and how it is linked.

    Attributes:
        line, offset, length: its line (from 1), and its JSON literal as ``file[offset:offset + length]``.
        type: "user", "assistant", "system", "attachment", "progress" and many more; "" where it has none.
        subtype: that of a system record; the type of an attachment.
        uuid, parent, logical: its own id, its parent's, and the one before a compaction; "" where absent.
        session: the session id that it carries.
        timestamp: as written (ISO 8601).
        sidechain, meta, summary, api_error: the client's marks `isSidechain`, `isMeta`, `isCompactSummary`
            and `isApiErrorMessage`.
        role, message_id, model, request_id: of its message, and of the request that made it.
        calls, answers: ids of the calls that it makes, and of the calls that its results answer.
        leaf, explicit: of a `last-prompt` record: the leaf that it notes, and whether a person chose it.
    """

    line: int
    offset: int
    length: int
    type: str
    subtype: str = ""
    uuid: str = ""
    parent: str = ""
    logical: str = ""
    session: str = ""
    timestamp: str = ""
    sidechain: bool = False
    meta: bool = False
    summary: bool = False
    api_error: bool = False
    role: str = ""
    message_id: str = ""
    model: str = ""
    request_id: str = ""
    calls: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    leaf: str = ""
    explicit: bool = False


class Torn(NamedTuple):
    """Bytes that are no whole record: their line (from 1), where they stand and how many they are."""

    line: int
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class Log:
    """A session file that was read.

    Attributes:
        path: the file.
        size: how many of its bytes were read.
        grew: bytes that were added to it meanwhile, which are not in here.
        records: its records in file order.
        glued: lines that hold more than one whole record.
        torn: fragments that are no record.
        others: lines of JSON that are no record (a number, a list, an object without a type).
        web: it is a web export, whose records stand in one list and carry no links.
        versions, folders, branches: the client's versions, working directories and git branches, each once,
            in the order in which they appear.
        first, last: the earliest and the latest timestamp of its messages.
    """

    path: Path
    size: int
    grew: int
    records: list[Record]
    glued: tuple[int, ...]
    torn: tuple[Torn, ...]
    others: tuple[int, ...]
    web: bool
    versions: tuple[str, ...]
    folders: tuple[str, ...]
    branches: tuple[str, ...]
    first: str
    last: str

    def raw(self, record: Record) -> bytes:
        """The record's bytes, read again from the file (`reader` is cheaper for many)."""
        with self.reader() as fetch:
            return fetch(record)

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
    """Read a session file: JSON lines, or a web export (``{"loglines": […]}``).

    Raises:
        InputError: no such file, a directory, an empty file, or one without a single record; the text names
            the file, the place of the first doubt and what to do.
    """
    file = Path(path)
    handle, size = _open(file)
    with handle:
        if not size:
            raise InputError(f"{file}: the file is empty; {_HINT}")
        head = handle.read(_HEAD)
        handle.seek(0)
        index = _Index(size)
        if _WEB(head):
            web = index.web(handle.read(size))
        else:
            web = False
            index.lines(handle)
            if not index.records and b'"loglines"' in head:
                handle.seek(0)
                index = _Index(size)
                web = index.web(handle.read(size))
        grew = os.fstat(handle.fileno()).st_size - size
    if not index.records:
        raise InputError(f"{file}: {index.why(head)}; {_HINT}")
    return Log(
        file,
        size,
        max(grew, 0),
        index.records,
        tuple(dict.fromkeys(index.glued)),
        tuple(index.torn),
        tuple(index.others),
        web,
        tuple(index.versions),
        tuple(unview(folder) for folder in index.folders),
        tuple(unview(branch) for branch in index.branches),
        index.first,
        index.last,
    )


def _open(file: Path) -> tuple[BinaryIO, int]:
    """Open a regular file (symlinks are followed) and say how many bytes it has now."""
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
    return handle, os.fstat(handle.fileno()).st_size


@dataclass(slots=True)
class _Index:
    """What grows while a file is read."""

    size: int
    records: list[Record] = field(default_factory=list)
    glued: list[int] = field(default_factory=list)
    torn: list[Torn] = field(default_factory=list)
    others: list[int] = field(default_factory=list)
    versions: dict[str, None] = field(default_factory=dict)
    folders: dict[str, None] = field(default_factory=dict)
    branches: dict[str, None] = field(default_factory=dict)
    first: str = ""
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
                    if self._add(value, line, offset + start, behind - start):
                        whole += 1
                    else:
                        self.others.append(line)
            at = skip(text, behind)
        if whole > 1:
            self.glued.append(line)

    def _doubt(self, error: Unreadable, line: int, offset: int) -> None:
        self.doubt = self.doubt or f"line {line} is no record ({error.what} at byte {offset + error.at:,})"

    def web(self, data: bytes) -> bool:
        """Index a web export; False where the data is none."""
        try:
            text = spans.view(data)
            found = {member.key: member for member in spans.members(text, skip(text, 0))[0]}
            rows = spans.elements(text, found["loglines"].start)[0]
        except (*DOUBTS, KeyError, Unreadable) as error:
            text = data.decode("latin-1")
            why = "no “loglines”" if isinstance(error, KeyError) else spans.doubt(error, text)
            self.doubt = self.doubt or f"a web export that can't be read: {why}"
            return False
        line, at = 1, 0
        for start, end in rows:
            line, at = line + text.count("\n", at, start), start
            value = scan(text, start)[0]
            if type(value) is not tuple or not self._add(value, line, start, end - start):
                self.others.append(line)
        return True

    def _add(self, pairs: tuple[tuple[str, Any], ...], line: int, offset: int, length: int) -> bool:
        """Index an object; False where it is no record."""
        got = dict(pairs)
        type_ = got.get("type")
        if type(type_) is not str:
            return False
        if len(self._seen) > _RECENT:
            self._seen.clear()
        same = self._seen.setdefault
        subtype = got.get("subtype")
        role = message_id = model = ""
        calls: tuple[str, ...] = ()
        answers: tuple[str, ...] = ()
        timestamp = _word(got, "timestamp")
        if type_ in ("user", "assistant"):
            message = dict(_pairs(got.get("message")))
            role, message_id, model = _word(message, "role"), _word(message, "id"), _word(message, "model")
            content = message.get("content")
            if type(content) is list:
                calls, answers = _ids(content)
            if timestamp:
                self.first = min(self.first or timestamp, timestamp)
                self.last = max(self.last, timestamp)
        elif type_ == "attachment":
            subtype = dict(_pairs(got.get("attachment"))).get("type")
        for key, seen in (("version", self.versions), ("cwd", self.folders), ("gitBranch", self.branches)):
            value = got.get(key)
            if type(value) is str and value and value not in seen:
                seen[value] = None
        uuid, parent, logical = _word(got, "uuid"), _word(got, "parentUuid"), _word(got, "logicalParentUuid")
        session, request = _word(got, "sessionId"), _word(got, "requestId")
        self.records.append(
            Record(
                line,
                offset,
                length,
                same(type_, type_),
                same(subtype, subtype) if type(subtype) is str else "",
                same(uuid, uuid),
                same(parent, parent),
                same(logical, logical),
                same(session, session),
                timestamp,
                got.get("isSidechain") is True,
                got.get("isMeta") is True,
                got.get("isCompactSummary") is True,
                got.get("isApiErrorMessage") is True,
                same(role, role),
                same(message_id, message_id),
                same(model, model),
                same(request, request),
                calls,
                answers,
                _word(got, "leafUuid"),
                got.get("explicit") is True,
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

    An object inside the torn one is no record: a record has a type and says what it belongs to, and nothing
    but another record or the line's end follows it.
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
            named = got.keys() & {"sessionId", "messageId", "leafUuid"}
            if type(got.get("type")) is str and named:
                return found.start()
    return end


def _pairs(value: Any) -> tuple[tuple[str, Any], ...]:
    return value if type(value) is tuple else ()


def _word(got: dict[str, Any], key: str) -> str:
    value = got.get(key)
    return value if type(value) is str else ""


def _ids(content: list[Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The ids of the calls that a message's content makes, and of those that its results answer."""
    calls: list[str] = []
    answers: list[str] = []
    for item in content:
        block = dict(_pairs(item))
        type_ = block.get("type")
        if type_ == "tool_use":
            calls.append(_word(block, "id"))
        elif type_ == "tool_result":
            answers.append(_word(block, "tool_use_id"))
    return tuple(calls), tuple(answers)


_BYTES = re.compile("[\x80-\xff]+")


def unview(value: str) -> str:
    """The text of a value that was scanned in a latin-1 view: its bytes as UTF-8, escapes as they are."""
    if value.isascii():
        return value
    return _BYTES.sub(lambda found: found[0].encode("latin-1").decode("utf-8", "replace"), value)
