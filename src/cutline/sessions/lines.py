"""A file of JSON lines as an index of offsets, read once in bounded memory.

Law: the file is only read, one line at a time, and no record is held: its bytes are read again by offset. Damage is
counted with its line and is not fatal while there is a record: records glued into one line are parted, torn fragments
are passed over, bytes that are no UTF-8 become U+FFFD. Only the bytes that stood there when the file was opened are
used.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import spans
from ..errors import InputError, Unreadable
from ..spans import DOUBTS, scan, skip
from .damage import Take, binary, some, told
from .opening import fetching, open_file

_START = re.compile(r'\{\s*"').finditer
_TRIES = 200  # each may run to the line's end
_BYTES = re.compile("[\x80-\xff]+")


@dataclass(slots=True)
class Lines:
    """What reading found, the records themselves aside.

    Attributes:
        path: the file.
        size: how many of its bytes were read.
        grew: bytes that were added to it meanwhile, which are not in here.
        glued: lines that hold more than one whole record.
        torn: lines with a fragment that is no record.
        others: lines of JSON that are no record.
        mended: offsets of records with bytes that are no UTF-8.
        doubt: the first thing that could not be read, in a few words.
    """

    path: Path
    size: int
    grew: int = 0
    glued: list[int] = field(default_factory=list)
    torn: list[int] = field(default_factory=list)
    others: list[int] = field(default_factory=list)
    mended: dict[int, int] = field(default_factory=dict)
    doubt: str = ""

    @contextmanager
    def reader(self) -> Iterator[Callable[[int, int], bytes]]:
        """Open the file once and give a function that reads a record's bytes again, by offset and length.

        Raises:
            InputError: the file is gone, or has become shorter; the function raises the latter too.
        """
        with open_file(self.path)[0] as handle:
            again = fetching(handle, self.path)

            def fetch(offset: int, length: int) -> bytes:
                found = again(offset, length)
                return found.decode("utf-8", "replace").encode() if offset in self.mended else found

            yield fetch

    def damage(self) -> list[str]:
        """What could not be read, one sentence each."""
        found = told(self.torn, self.glued, 0)
        if self.mended:
            lines = some(list(self.mended.values()))
            found.append(f"Bytes that are no UTF-8 were read as U+FFFD (line {lines}).")
        if self.others:
            found.append(f"JSON that is no record was passed over (line {some(self.others)}).")
        return found + told((), (), self.grew)


def read_lines(path: Path, take: Take, client: str) -> Lines:
    """Read a file of JSON lines; each object is given to `take`.

    Args:
        path: the file.
        take: says whether an object is a record, and keeps what it wants of it.
        client: the client's name for a refusal.

    Raises:
        InputError: no such file, a directory, an empty file, or one without a single record; one line that says what
            to do.
    """
    hint = f"give a session file of {client}, or type: cutline ls"
    handle, size = open_file(path, hint)
    found = Lines(path, size)
    records = offset = number = 0
    with handle:
        if not size:
            raise InputError(f"{path}: the file is empty; {hint}")
        head = handle.read(4096)
        handle.seek(0)
        while offset < size:
            raw = handle.readline(size - offset)
            if not raw:
                break
            number += 1
            records += _line(found, take, raw, number, offset)
            offset += len(raw)
        found.grew = max(0, os.fstat(handle.fileno()).st_size - size)
    if not records:
        other = f"no record in it (line {found.others[0]})" if found.others else "only empty lines"
        why = binary(head) or found.doubt or other
        raise InputError(f"{path}: {why}; {hint}")
    return found


def _line(found: Lines, take: Take, raw: bytes, line: int, offset: int) -> int:
    """Take one line apart; gives how many records it holds."""
    text = raw.decode("latin-1")
    end = len(text.rstrip(" \t\r\n"))
    at = skip(text, 0)
    whole = 0
    while at < end:
        start = at
        try:
            value, behind = scan(text, at)
            if type(value) is not tuple and (start or behind != end):
                raise ValueError("no object")  # a fragment can begin with a number
        except DOUBTS as error:
            doubt = spans.doubt(error, text)
            found.doubt = found.doubt or f"line {line} is no record ({doubt.what} at byte {offset + doubt.at:,})"
            found.torn.append(line)
            at = _restart(text, at + 1, end)
            continue
        if type(value) is tuple and take(dict(value), line, offset + start, behind - start):
            whole += 1
            if not raw.isascii() and not _is_text(raw[start:behind]):
                found.mended[offset + start] = line
        else:
            found.others.append(line)
        at = skip(text, behind)
    if whole > 1:
        found.glued.append(line)
    return whole


def _is_text(raw: bytes) -> bool:
    try:
        spans.view(raw)
    except Unreadable:
        return False
    return True


def _restart(text: str, at: int, end: int) -> int:
    """Where the next whole record of the line begins, or `end`: nothing but another record may follow it."""
    for tried, found in enumerate(_START(text, at, end)):
        if tried == _TRIES:
            break
        try:
            value, behind = scan(text, found.start())
        except DOUBTS:
            continue
        if type(value) is tuple and (behind == end or text[skip(text, behind)] == "{"):
            named = dict(value)
            if type(named.get("type")) is str and named.keys() & {"timestamp", "parentId"}:
                return found.start()
    return end


def word(got: dict[str, Any], key: str) -> str:
    """A member that is a string, as it was scanned; "" for anything else."""
    value = got.get(key)
    return value if type(value) is str else ""


def pairs(value: Any) -> dict[str, Any]:
    """A scanned object as a dict; an empty one for anything else. Of a key that stands twice the last counts."""
    return dict(value) if type(value) is tuple else {}


def unview(value: str) -> str:
    """The text of a value that was scanned in a latin-1 view: its bytes as UTF-8, escapes as they are."""
    if value.isascii():
        return value
    return _BYTES.sub(lambda found: found[0].encode("latin-1").decode("utf-8", "replace"), value)


class Opened:
    """A record's bytes, and where its members stand. It must have been read once (`read_lines`)."""

    def __init__(self, raw: bytes) -> None:
        """Take a record apart."""
        self.raw = raw
        self.view = raw.decode("latin-1")

    def members(self, at: int = 0) -> dict[str, spans.Member]:
        """The members of the object at `at`; none where there is no object. Of a key twice the last counts."""
        if self.view[at] != "{":
            return {}
        return {member.key: member for member in spans.members(self.view, at)[0]}

    def inside(self, member: spans.Member | None) -> dict[str, spans.Member]:
        """The members of a member's value."""
        return self.members(member.start) if member else {}

    def literal(self, member: spans.Member | None) -> bytes:
        """The bytes of a member's value; none where there is no such member."""
        return self.raw[member.start : member.end] if member else b""

    def value(self, member: spans.Member | None) -> Any:
        """The decoded value of a member, numbers as their literals; None where there is none."""
        return spans.decode(self.literal(member)) if member else None

    def elements(self, member: spans.Member | None) -> list[tuple[int, int]]:
        """Where the elements of a list stand; none for anything else."""
        if member is None or self.view[member.start] != "[":
            return []
        return spans.elements(self.view, member.start)[0]

    def is_text(self, member: spans.Member | None) -> bool:
        """Whether a member's value is a string."""
        return member is not None and self.view[member.start] == '"'
