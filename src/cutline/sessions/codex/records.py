"""A rollout file as records: an index of offsets, read once in bounded memory.

Law: the file is only read, one line at a time, and no record is held: an index entry says where it stands and what it
is, and its bytes are read again by offset. Damage is counted with its line and is not fatal while there is a record:
records glued into one line are parted, torn fragments are passed over. Only the bytes that stood there when the file
was opened are used. A compressed rollout is unpacked into a temporary file without a name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from ...errors import InputError
from ..damage import Damage, Torn
from ..lines import word
from ..opening import fetching, open_file
from . import packed as packing

_HINT = "give a rollout file of Codex, or type: cutline ls"
# How a record begins (it is searched for behind a torn fragment).
_START = re.compile(r'\{\s*"(?:timestamp|ordinal|type|id|record_type)"').finditer
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
            again = fetching(handle, self.path)
            yield lambda record: again(record.offset, record.length)


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
            raise InputError(f"{file}: {index.damage.why(handle.read(4096))}; {_HINT}")
    glued = tuple(dict.fromkeys(index.damage.glued))
    torn, others = tuple(index.damage.torn), tuple(index.damage.others)
    return Log(file, size, max(grew, 0), index.records, glued, torn, others, packed, index.last)


def _open(file: Path) -> tuple[BinaryIO, int, bool]:
    """Open a regular file (symlinks are followed), say how many bytes it has now, and whether it was compressed."""
    handle, size = open_file(file, _HINT)
    if file.suffix != packing.SUFFIX:
        return handle, size, False
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
    damage: Damage = field(default_factory=Damage)
    last: str = ""
    _seen: dict[str, str] = field(default_factory=dict)

    def lines(self, handle: BinaryIO) -> None:
        self.damage.lines(handle, self.size, self._add, _START, _is_record)

    def _add(self, got: dict[str, Any], line: int, offset: int, length: int) -> bool:
        """Index an object; False where it is no record."""
        type_, inside, timestamp = word(got, "type"), got.get("payload"), word(got, "timestamp")
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
        kind = "" if type_ in ("session_meta", "state") else word(payload, "type")
        call = word(payload, "call_id") or word(payload, "callId")
        item, turns = "", 0
        if type_ == "response_item":
            call = call or ("" if kind == "message" else word(payload, "id"))
        elif type_ == "event_msg":
            inside = payload.get("item")
            if kind == "item_completed" and type(inside) is tuple:
                completed = dict(inside)
                item, call = word(completed, "type"), word(completed, "id")
            elif kind == "guardian_assessment":
                call = word(payload, "target_item_id")
            elif kind == "thread_rolled_back":
                told = payload.get("num_turns")
                turns = int(told) if isinstance(told, str) and told.isdecimal() and len(told) < 9 else 0
        self.last = max(self.last, timestamp)
        if len(self._seen) > 4096:
            self._seen.clear()
        same = self._seen.setdefault
        role = word(payload, "role") if kind == "message" else ""
        model = word(payload, "model") if type_ == "turn_context" else ""
        self.records.append(
            Record(
                *(line, offset, length, same(type_, type_), same(kind, kind), same(role, role)),
                *(same(call, call), same(item, item), turns, timestamp, same(model, model), bare),
            )
        )
        return True


def _is_record(got: dict[str, Any]) -> bool:
    """Whether an object behind a torn one is a record: it has a payload."""
    return got.get("type") in _OUTER and type(got.get("payload")) is tuple
