"""A file of JSON lines taken apart into objects, whatever happened to it on the way.

Law: damage is counted with its line and is not fatal: objects glued into one line are parted, torn fragments are passed
over up to the next whole record. One line is held at a time, and only bytes that stood there at the beginning are read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, NamedTuple

from .. import spans
from ..errors import Unreadable
from ..spans import DOUBTS, scan, skip

_TRIES = 500  # each may run to the line's end

Take = Callable[[dict[str, Any], int, int, int], bool]
"""Is given an object (nested ones as tuples of pairs, texts in their latin-1 view), its line (from 1), its offset and
its length; says whether it is a record."""
Begins = Callable[[str, int, int], Iterator[re.Match[str]]]
"""Where in a view a record may begin, from one place to another."""


class Torn(NamedTuple):
    """Bytes that are no whole record: their line (from 1), where they stand and how many they are."""

    line: int
    offset: int
    length: int


@dataclass(slots=True)
class Damage:
    """What was found beside whole records.

    Attributes:
        glued: lines that hold more than one whole record.
        torn: fragments that are no record.
        others: lines of JSON that are no record.
        doubt: the first thing that could not be read, in a few words.
    """

    glued: list[int] = field(default_factory=list)
    torn: list[Torn] = field(default_factory=list)
    others: list[int] = field(default_factory=list)
    doubt: str = ""

    def lines(
        self, handle: BinaryIO, size: int, take: Take, begins: Begins, is_record: Callable[[dict[str, Any]], bool]
    ) -> None:
        """Read a file's lines.

        Args:
            handle: the file.
            size: how many of its bytes count.
            take: is given each object.
            begins, is_record: how a record is told behind a torn fragment.
        """
        offset = number = 0
        while offset < size:
            raw = handle.readline(size - offset)
            if not raw:
                break
            number += 1
            self._line(raw, number, offset, take, begins, is_record)
            offset += len(raw)

    def _line(
        self,
        raw: bytes,
        line: int,
        offset: int,
        take: Take,
        begins: Begins,
        is_record: Callable[[dict[str, Any]], bool],
    ) -> None:
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
                at = _restart(text, at + 1, end, begins, is_record)
                self.torn.append(Torn(line, offset + start, at - start))
                continue
            except Unreadable as error:
                self._doubt(error, line, offset + start)
                self.torn.append(Torn(line, offset + start, behind - start))
            else:
                if type(value) is tuple:
                    if take(dict(value), line, offset + start, behind - start):
                        whole += 1
                    else:
                        self.others.append(line)
            at = skip(text, behind)
        if whole > 1:
            self.glued.append(line)

    def _doubt(self, error: Unreadable, line: int, offset: int) -> None:
        self.doubt = self.doubt or f"line {line} is no record ({error.what} at byte {offset + error.at:,})"

    def why(self, head: bytes) -> str:
        """Why a file holds no record, in a few words; `head` is its beginning."""
        if why := binary(head):
            return why
        if self.doubt:
            return self.doubt
        if self.others:
            return f"no record of a session in it (line {self.others[0]} is JSON without a record's “type”)"
        return "only empty lines, no session"


def binary(head: bytes) -> str:
    """Why a file that begins so is no text; "" where it may be one."""
    for mark, tool in ((b"\x28\xb5\x2f\xfd", "zstd"), (b"\x1f\x8b", "gzip")):
        if head.startswith(mark):
            return f"it is packed with {tool}; unpack it first ({tool} -d)"
    return f"a binary file (a NUL at byte {head.index(0):,}), no session" if b"\0" in head else ""


def _restart(text: str, at: int, end: int, begins: Begins, is_record: Callable[[dict[str, Any]], bool]) -> int:
    """Where the next whole record of the line begins, or `end`.

    An object inside the torn one is no record: nothing but another record or the line's end follows one.
    """
    failed = 0
    for found in begins(text, at, end):
        try:
            value, behind = scan(text, found.start())
        except DOUBTS:
            failed += 1
            if failed == _TRIES:
                break
            continue
        if type(value) is tuple and (behind == end or text[skip(text, behind)] == "{") and is_record(dict(value)):
            return found.start()
    return end


def told(torn: Sequence[int], glued: Sequence[int], grew: int) -> list[str]:
    """What a person is told of a damaged file, one sentence each.

    Args:
        torn: the line of each fragment.
        glued: lines that held more than one record.
        grew: bytes that were added to the file while it was read.
    """
    found = []
    if torn:
        fragments = f"{len(torn)} torn fragment{'s' if len(torn) > 1 else ''}"
        found.append(f"{fragments} (line {some(torn)}): in the original only.")
    if glued:
        found.append(f"Records glued into one line were parted (line {some(glued)}).")
    if grew:
        found.append(f"The session grew while it was read: its last {grew:,} bytes are not in this.")
    return found


def some(lines: Sequence[int]) -> str:
    """The first few of some line numbers."""
    return ", ".join(map(str, lines[:5]))
