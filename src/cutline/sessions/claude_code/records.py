"""A session file as records: an index of offsets, read once in bounded memory.

Law: the file is only read, one line at a time, and no record is held: an index entry says where it stands and
how it is linked, and its bytes are read again by offset. Damage is counted with its line and is not fatal
while there is a record: records glued into one line are parted, torn fragments are passed over. Only the
bytes that stood there when the file was opened are used.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from ... import spans
from ...errors import InputError, Unreadable
from ...spans import DOUBTS, scan, skip
from ..damage import Damage, Torn
from ..lines import unview, word
from ..opening import fetching, open_file

_HEAD = 4096
_WEB = re.compile(rb'\s*\{\s*"loglines"\s*:').match
# How a record begins (it is searched for behind a torn fragment).
_START = re.compile(
    r'\{\s*"(?:type|parentUuid|logicalParentUuid|isSidechain|sessionId|session_id|uuid|messageId|leafUuid|summary)"'
).finditer
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
        with open_file(self.path, _HINT)[0] as handle:
            again = fetching(handle, self.path)
            yield lambda record: again(record.offset, record.length)


def read(path: str | os.PathLike[str]) -> Log:
    """Read a session file: JSON lines, or a web export (``{"loglines": […]}``).

    Raises:
        InputError: no such file, a directory, an empty file, or one without a single record; the text names
            the file, the place of the first doubt and what to do.
    """
    file = Path(path)
    handle, size = open_file(file, _HINT)
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
        raise InputError(f"{file}: {index.damage.why(head)}; {_HINT}")
    return Log(
        file,
        size,
        max(grew, 0),
        index.records,
        tuple(dict.fromkeys(index.damage.glued)),
        tuple(index.damage.torn),
        tuple(index.damage.others),
        web,
        tuple(index.versions),
        tuple(unview(folder) for folder in index.folders),
        tuple(unview(branch) for branch in index.branches),
        index.first,
        index.last,
    )


@dataclass(slots=True)
class _Index:
    """What grows while a file is read."""

    size: int
    records: list[Record] = field(default_factory=list)
    damage: Damage = field(default_factory=Damage)
    versions: dict[str, None] = field(default_factory=dict)
    folders: dict[str, None] = field(default_factory=dict)
    branches: dict[str, None] = field(default_factory=dict)
    first: str = ""
    last: str = ""
    _seen: dict[str, str] = field(default_factory=dict)

    def lines(self, handle: BinaryIO) -> None:
        self.damage.lines(handle, self.size, self._add, _START, _is_record)

    def web(self, data: bytes) -> bool:
        """Index a web export; False where the data is none."""
        try:
            text = spans.view(data)
            found = {member.key: member for member in spans.members(text, skip(text, 0))[0]}
            rows = spans.elements(text, found["loglines"].start)[0]
        except (*DOUBTS, KeyError, Unreadable) as error:
            text = data.decode("latin-1")
            why = "no “loglines”" if isinstance(error, KeyError) else spans.doubt(error, text)
            self.damage.doubt = self.damage.doubt or f"a web export that can't be read: {why}"
            return False
        line, at = 1, 0
        for start, end in rows:
            line, at = line + text.count("\n", at, start), start
            value = scan(text, start)[0]
            if type(value) is not tuple or not self._add(dict(value), line, start, end - start):
                self.damage.others.append(line)
        return True

    def _add(self, got: dict[str, Any], line: int, offset: int, length: int) -> bool:
        """Index an object; False where it is no record."""
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
        timestamp = word(got, "timestamp")
        if type_ in ("user", "assistant"):
            message = dict(_pairs(got.get("message")))
            role, message_id, model = word(message, "role"), word(message, "id"), word(message, "model")
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
        uuid, parent, logical = word(got, "uuid"), word(got, "parentUuid"), word(got, "logicalParentUuid")
        session, request = word(got, "sessionId"), word(got, "requestId")
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
                word(got, "leafUuid"),
                got.get("explicit") is True,
            )
        )
        return True


def _is_record(got: dict[str, Any]) -> bool:
    """Whether an object behind a torn one is a record: it has a type and says what it belongs to."""
    return type(got.get("type")) is str and bool(got.keys() & {"sessionId", "messageId", "leafUuid"})


def _pairs(value: Any) -> tuple[tuple[str, Any], ...]:
    return value if type(value) is tuple else ()


def _ids(content: list[Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The ids of the calls that a message's content makes, and of those that its results answer."""
    calls: list[str] = []
    answers: list[str] = []
    for item in content:
        block = dict(_pairs(item))
        type_ = block.get("type")
        if type_ == "tool_use":
            calls.append(word(block, "id"))
        elif type_ == "tool_result":
            answers.append(word(block, "tool_use_id"))
    return tuple(calls), tuple(answers)
