"""A file of Gemini CLI as an index: which messages are live, and where each stands.

Law: the file is read line by line and no message is kept, only where it stands. What counts is what the client would
load: a later record of one id takes the place of the earlier, `$set` replaces, `$rewindTo` takes back. Records glued
into one line are parted; what is torn is passed over and told.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

from ... import spans
from ...errors import InputError, Unreadable
from ..opening import fetching

Shape = Literal["lines", "document", "contents"]
"""JSON lines; one document with a list of messages; a list of contents (a saved chat)."""

CONTENTS = re.compile(rb'\A\s*(?:\{\s*"history"\s*:\s*)?\[\s*(?:\]|\{\s*"(?:role|parts)"\s*:)').match
"""How a saved chat begins."""
_DERIVED = ("messages", "memoryScratchpad")  # the second: what the client notes about its calls, for its own memory
_HINT = "give a session file of Gemini CLI, or type: cutline ls"


class Entry(NamedTuple):
    """A live message: where it stands in the file (bytes), and its id ("" in a saved chat)."""

    offset: int
    length: int
    id: str


@dataclass(frozen=True, slots=True)
class Log:
    """A file that was read.

    Attributes:
        path: the file.
        shape: how it is written.
        size: how many of its bytes were read.
        grew: bytes that were added to it meanwhile, which are not in here.
        entries: its live messages, in order.
        meta: the last literal of each member that describes the session, but not those that repeat messages.
        dead: records that the client would not load: replaced by a later one of their id, or taken back.
        torn: lines (from 1) with bytes that are no whole record.
        glued: lines that hold more than one.
        nameless: messages without an id, which the client does not load.
    """

    path: Path
    shape: Shape
    size: int
    grew: int
    entries: list[Entry]
    meta: dict[str, bytes]
    dead: int
    torn: tuple[int, ...]
    glued: tuple[int, ...]
    nameless: int

    def word(self, key: str) -> str:
        """A member of the session's description that is a string; "" for none."""
        value = spans.decode(self.meta[key]) if self.meta.get(key, b"")[:1] == b'"' else ""
        return str(value)

    @contextmanager
    def reader(self) -> Iterator[Callable[[Entry], bytes]]:
        """Open the file once and give a function that reads a message's bytes again.

        Raises:
            InputError: the file is gone, or has become shorter; the function raises the latter too.
        """
        with _open(self.path)[0] as handle:
            again = fetching(handle, self.path)
            yield lambda entry: again(entry.offset, entry.length)


def read(path: str | os.PathLike[str]) -> Log:
    """Read a session file or a saved chat.

    Raises:
        InputError: it can't be read, or holds no message; the text names the file, the first doubt and what to do.
    """
    file = Path(path)
    handle, size = _open(file)
    with handle:
        if not size:
            raise InputError(f"{file}: the file is empty; {_HINT}")
        first = handle.readline(1 << 16)
        handle.seek(0)
        index = Index()
        shape: Shape = "lines"
        if _document(file, first):
            shape = index.document(handle.read(size))
        if shape == "lines":
            handle.seek(0)
            index.lines(handle, size)
        grew = max(os.fstat(handle.fileno()).st_size - size, 0)
    if not index.entries:
        raise InputError(f"{file}: {index.why(first)}; {_HINT}")
    entries = list(index.entries.values())
    torn, glued = tuple(index.torn), tuple(index.glued)
    return Log(file, shape, size, grew, entries, index.meta, index.dead, torn, glued, index.nameless)


def _document(file: Path, first: bytes) -> bool:
    """Whether a file is to be tried as one document: by its beginning, else by its name."""
    begins = first.strip()
    return begins in (b"", b"{", b"[") or begins[:1] == b"[" or CONTENTS(first) is not None or file.suffix != ".jsonl"


def _open(file: Path) -> tuple[BinaryIO, int]:
    """Open a regular file (symlinks are followed) and say how many bytes it has now."""
    try:
        found = file.stat()
        if not stat.S_ISREG(found.st_mode):
            kind = "a directory" if stat.S_ISDIR(found.st_mode) else "no regular file"
            raise InputError(f"{file}: is {kind}; {_HINT}")
        handle = file.open("rb")
    except OSError as error:
        raise InputError(f"{file}: can't be read ({(error.strerror or str(error)).lower()}); {_HINT}") from None
    return handle, os.fstat(handle.fileno()).st_size


@dataclass(slots=True)
class Index:
    """What grows while a file is read. A message without an id has a key of its own and is never replaced."""

    entries: dict[str | int, Entry] = field(default_factory=dict)
    meta: dict[str, bytes] = field(default_factory=dict)
    dead: int = 0
    torn: list[int] = field(default_factory=list)
    glued: list[int] = field(default_factory=list)
    nameless: int = 0
    doubt: str = ""

    def lines(self, handle: BinaryIO, size: int) -> None:
        """Read JSON lines, up to the size that the file had when it was opened."""
        offset = number = 0
        while offset < size:
            raw = handle.readline(size - offset)
            if not raw:
                break
            number += 1
            if not raw.isspace():
                self._line(raw, number, offset)
            offset += len(raw)

    def _line(self, raw: bytes, number: int, offset: int) -> None:
        view = raw.decode("latin-1")
        end = len(view.rstrip(" \t\r\n"))
        at = spans.skip(view, 0)
        whole = 0
        while at < end:
            start = at
            try:
                value, behind = spans.scan(view, at)
                if not raw.isascii():
                    spans.view(raw[start:behind])
            except spans.DOUBTS as error:
                doubt = spans.doubt(error, view)
                self.doubt = self.doubt or f"line {number} is no record ({doubt.what} at byte {offset + doubt.at:,})"
                self.torn.append(number)
                break
            except Unreadable as error:
                self.doubt = self.doubt or f"line {number} is no record ({error.what} at byte {offset + error.at:,})"
                self.torn.append(number)
            else:
                if type(value) is tuple:
                    whole += 1
                    self.record(dict(value), view, start, behind, offset)
            at = spans.skip(view, behind)
        if whole > 1:
            self.glued.append(number)

    def record(self, got: dict[str, Any], view: str, start: int, end: int, offset: int) -> None:
        """Take in one record, in the client's order of questions."""
        back, id_, news = got.get("$rewindTo"), got.get("id"), got.get("$set")
        if type(back) is str:
            keys = list(self.entries)
            gone = keys[keys.index(back) :] if back in self.entries else keys
            for key in gone:
                del self.entries[key]
            self.dead += len(gone)
        elif type(id_) is str:
            self._message(id_, Entry(offset + start, end - start, id_))
        elif type(news) is tuple:
            member = members_of(view, start)["$set"]
            if type(dict(news).get("messages")) is list:
                self.dead += len(self.entries)
                self.entries.clear()
            self._describe(view, member.start, offset)
        elif type(got.get("sessionId")) is str and type(got.get("projectHash")) is str:
            self._describe(view, start, offset)

    def _message(self, id_: str, entry: Entry) -> None:
        self.dead += id_ in self.entries
        self.entries[id_] = entry

    def _describe(self, view: str, at: int, offset: int) -> None:
        """Take in members that describe the session, and the messages among them."""
        for key, member in members_of(view, at).items():
            if key == "messages" and view[member.start] == "[":
                for start, end in spans.elements(view, member.start)[0]:
                    value = spans.scan(view, start)[0]
                    id_ = dict(value).get("id") if type(value) is tuple else None
                    if type(id_) is str:
                        self._message(id_, Entry(offset + start, end - start, id_))
                    else:
                        self.nameless += 1
            elif key not in _DERIVED:
                self.meta[key] = view[member.start : member.end].encode("latin-1")

    def document(self, data: bytes) -> Shape:
        """Index one document; "lines" where the data is none."""
        try:
            view = spans.view(data)
            at = spans.skip(view, 0)
            value, end = spans.scan(view, at)
            if spans.skip(view, end) != len(view):
                raise ValueError("something stands behind the document")
        except (*spans.DOUBTS, Unreadable) as error:
            doubt = spans.doubt(error, data.decode("latin-1"))
            self.doubt = f"neither JSON lines nor one document ({doubt.what} at byte {doubt.at:,})"
            return "lines"
        del value
        found = _list(view, at)
        if found is None:
            return "lines"
        shape: Shape = "contents" if view[at] == "[" or found.key == "history" else "document"
        if shape == "document":
            self.meta = {
                key: data[member.start : member.end]
                for key, member in members_of(view, at).items()
                if key not in _DERIVED
            }
        for number, (start, stop) in enumerate(spans.elements(view, found.start)[0]):
            if view[start] == "{":
                id_ = dict(spans.scan(view, start)[0]).get("id") if shape == "document" else None
                self.entries[number] = Entry(start, stop - start, id_ if type(id_) is str else "")
        return shape

    def why(self, first: bytes) -> str:
        """Why a file holds no message, in a few words."""
        if b"\0" in first:
            return "a binary file, no session"
        return self.doubt or "no message of a session in it"


def members_of(view: str, at: int) -> dict[str, spans.Member]:
    """An object's members by key; of a key that stands twice the last counts, as it does for the client."""
    return {member.key: member for member in spans.members(view, at)[0]}


def _list(view: str, at: int) -> spans.Member | None:
    """The list of a document's messages or contents."""
    if view[at] == "[":
        return spans.Member("", at, at, at)
    if view[at] != "{":
        return None
    found = members_of(view, at)
    wanted = found.get("messages") or found.get("history")
    return wanted if wanted and view[wanted.start] == "[" else None
