"""A session's records, whatever the client keeps them in: messages, each with its parts.

Law: a record's bytes are kept as they stand; what can't be read is passed over and told. Order is the client's: that of
messages by time and id, that of parts by id, and in an export that of the document.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ...errors import InputError, Unreadable
from .literals import Opened, number

LABEL = "opencode"
Kind = Literal["database", "files", "export", "events"]
"""What a session is kept in: the database of newer versions, the JSON files of older ones, what `opencode export`
prints, a stream of the client's events as its server sends them."""


class Span(NamedTuple):
    """Where a record stands in a file of JSON lines.

    Attributes:
        start, end: bytes of the file.
        more: spans of string literals that go behind its text.
    """

    start: int
    end: int
    more: tuple[tuple[int, int], ...] = ()


Raw = bytes | Span


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a message.

    Attributes:
        id: its id; in published exports several may have the same.
        raw: its JSON object, or where that stands.
        row: the other columns of its row in a database.
    """

    id: str
    raw: Raw
    row: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Message:
    """One message.

    Attributes:
        id, raw, row: as in `Part`.
        role: "user" or "assistant".
        parent: id of the user message that an answer belongs to.
        created: when it was made, milliseconds since 1970; 0 where that is not recorded.
        parts: its parts, in order.
    """

    id: str
    raw: bytes
    role: str
    parent: str
    created: int
    parts: tuple[Part, ...]
    row: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Log:
    """A session that was read.

    Attributes:
        path: its file, or the database.
        kind: what it is kept in.
        id: the session's id.
        head: what is recorded of the session itself: a JSON object; of a database, made of the columns that are read.
        messages: its messages, in order.
        damage: what could not be read, one sentence each.
        size: bytes that were read.
        row: the session's row in a database.
        names: ids of calls that were given because the recorded one is an earlier call's, by message and part.
    """

    path: Path
    kind: Kind
    id: str
    head: Opened
    messages: list[Message] = field(default_factory=list)
    damage: list[str] = field(default_factory=list)
    size: int = 0
    row: dict[str, Any] = field(default_factory=dict)
    names: dict[tuple[int, int], str] = field(default_factory=dict)

    def open(self, raw: Raw) -> Opened:
        """A record, opened. Raises Unreadable where it is none."""
        return Opened(fetch(self.path, raw))


def fetch(path: Path, raw: Raw) -> bytes:
    """The bytes of a record; words that came in pieces are put together as the literals that they are."""
    if isinstance(raw, bytes):
        return raw
    with path.open("rb") as handle:

        def read(start: int, end: int) -> bytes:
            handle.seek(start)
            return handle.read(end - start)

        whole = read(raw.start, raw.end)
        more = b"".join(read(start + 1, end - 1) for start, end in raw.more)
    if not more:
        return whole
    text = Opened(whole).at("text")
    if text is None or whole[text.end - 1 : text.end] != b'"':
        return whole
    return whole[: text.end - 1] + more + whole[text.end - 1 :]


def message(opened: Opened, id: str, parts: Iterable[Part], row: dict[str, Any] | None = None) -> Message:
    """A message of a record that was opened.

    Raises:
        Unreadable: it is neither a person's nor an answer.
    """
    role = opened.word("role")
    if role not in ("user", "assistant"):
        raise Unreadable(f"a message whose role is “{role[:20]}”", 0)
    created = number(opened.value("time", "created"))
    return Message(id, opened.raw, role, opened.word("parentID"), created, tuple(parts), row or {})


def unread(what: str, error: Exception) -> str:
    """How damage is told."""
    why = error.what if isinstance(error, Unreadable) else str(error)
    return f"{what} can't be read ({why}): it is passed over, and stays in the original."


def problem(path: Path, error: OSError) -> InputError:
    """A file that can't be opened, in one line."""
    return InputError(f"{path}: can't be read ({(error.strerror or str(error)).lower()}); give another session")


def no_session(path: Path) -> InputError:
    """A file that is none of the client's, in one line."""
    return InputError(f"{path}: is no session of {LABEL}; “cutline ls” lists this directory's sessions")
