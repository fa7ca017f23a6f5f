"""Gemini CLI's compressions undone, where the file is one of JSON lines: those only grow.

Law: the file is only read. A compression is a `$set` whose messages begin with a summary that was not there before;
what stood there until then is what it replaced, but for the messages at its end which come again behind the summary.
The client gives messages new ids with each `$set`, so these are known by their words and calls. A file that is one
document is written anew each time, and nothing of what a summary replaced is left in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from ... import spans
from ...errors import InputError
from ..model import Session as AnySession
from ..neutral import NeutralSession
from ..opening import fetching
from ..reviving import Point, Undone, line_of, lost, mended, never, window
from .history import build
from .log import Entry, Index, Log, members_of
from .people import origin
from .pieces import Message, opened, tokens

# What the client puts into the agent's mouth behind a summary.
_THANKS = "Got it. Thanks for the additional context!"

Fetch = Callable[[Entry], bytes]


def undo(session: AnySession) -> Undone:
    """Undo a session's compressions.

    Raises:
        NothingToCut: no summary is among its live messages.
        InputError: what the summary replaced is not in the file.
    """
    read = cast(NeutralSession, session)
    log: Log = read.source
    if not read.history.compacted:
        raise never(session)
    with log.path.open("rb") as lines, log.path.open("rb") as handle:
        again = fetching(handle, log.path)
        trace = _Trace(path=log.path, fetch=lambda entry: again(entry.offset, entry.length))
        if log.shape == "lines":
            trace.lines(lines, log.size)
        at = _summary(log.entries, trace.message)
        summary = trace.message(log.entries[at])
        found = trace.known.get(_told(summary))
        if found is None:
            raise _lost(session, log, at, summary.word("timestamp"))
        gone = _frame(log.entries, at, trace.message)
    live = [entry for number, entry in enumerate(log.entries) if number not in gone]
    whole = _with(log, _once(found.entries, live))
    history = build(whole).history
    points = [replace(point, until=_until(whole, history.places, entries)) for point, entries in found.points]
    return Undone(
        replace(read, source=whole, history=history),
        points,
        lambda number: log.entries[number].offset,
        lambda number: whole.entries[number].offset,
        window(history.model, read.history.requests),
        frozenset(log.entries[number].offset for number in gone),
    )


def _lost(session: AnySession, log: Log, at: int, when: str) -> InputError:
    if log.shape == "lines":
        return lost(session, f"line {line_of(log.path, log.entries[at].offset):,}", when)
    return lost(session, f"message {at + 1}", when, "look for a chat that was saved before")


@dataclass(frozen=True, slots=True)
class _Hidden:
    """What a summary replaced.

    Attributes:
        entries: all of it, what earlier summaries replaced included.
        points: the compressions, the first one first, each with what stood before it.
    """

    entries: list[Entry]
    points: list[tuple[Point, list[Entry]]]


@dataclass(slots=True)
class _Trace(Index):
    """What a file's messages were, one record after the other.

    Attributes:
        path: the file.
        fetch: reads a message.
        known: by the words of a summary, what it replaced.
        live: the messages as the client had them when it wrote the last record.
    """

    path: Path = Path()
    fetch: Fetch = field(default=lambda _: b"{}")
    known: dict[str, _Hidden] = field(default_factory=dict)
    live: list[Entry] = field(default_factory=list)

    def message(self, entry: Entry) -> Message:
        """A message, taken apart."""
        return opened(self.fetch(entry))

    def record(self, got: dict[str, Any], view: str, start: int, end: int, offset: int) -> None:
        """Take in one record, and what it does to the messages."""
        Index.record(self, got, view, start, end, offset)
        back, id_, news = got.get("$rewindTo"), got.get("id"), got.get("$set")
        if type(back) is str:
            at = next((number for number, entry in enumerate(self.live) if entry.id == back), 0)
            self.live = self.live[:at]
        elif type(id_) is str:
            self._said(Entry(offset + start, end - start, id_))
        elif type(news) is tuple and type(dict(news).get("messages")) is list:
            # Two messages of one id, as it writes them here, are two to the client while it runs.
            member = members_of(view, members_of(view, start)["$set"].start)["messages"]
            listed = spans.elements(view, member.start)[0]
            ids = [dict(spans.scan(view, first)[0]).get("id") for first, _ in listed if view[first] == "{"]
            places = [place for place in listed if view[place[0]] == "{"]
            new = [Entry(offset + a, b - a, id_) for (a, b), id_ in zip(places, ids, strict=True) if type(id_) is str]
            self._set(new, offset + start)

    def _said(self, entry: Entry) -> None:
        same = next((number for number in range(len(self.live) - 1, -1, -1) if self.live[number].id == entry.id), None)
        if same is None:
            self.live.append(entry)
        else:
            self.live[same] = entry

    def _set(self, new: list[Entry], offset: int) -> None:
        """Other messages in the place of all: the same again, or a summary and what is kept behind it."""
        at = _summary(new, self.message)
        before, self.live = self.live, new
        if at >= 0:
            self._compressed(_told(self.message(new[at])), before, new, at, offset)

    def _compressed(self, words: str, before: list[Entry], new: list[Entry], at: int, offset: int) -> None:
        behind = [entry for number, entry in enumerate(new) if number not in _frame(new, at, self.message)][at:]
        first = _summary(before, self.message)
        earlier = _Hidden([], [])
        if first >= 0:
            found = self.known.get(_told(self.message(before[first])))
            if found is None:
                return
            earlier = found
            gone = _frame(before, first, self.message)
            before = [entry for number, entry in enumerate(before) if number not in gone]
        if words in self.known and not behind:
            return  # written again, with what came behind it taken back
        split = self._split(before, behind)
        if split is None or not any(self.message(entry).type == "gemini" for entry in before[:split]):
            return
        hidden = _once(earlier.entries, before[:split])
        last = next((count for entry in reversed(before) if (count := _tokens(self.message(entry)))), 0)
        summary = sum(len(piece.literal) - 2 for piece in self.message(new[at]).pieces if piece.kind == "text")
        point = Point(line_of(self.path, offset), 0, summary, tokens=last)
        self.known[words] = _Hidden(hidden, [*earlier.points, (point, hidden)])

    def _split(self, before: list[Entry], behind: list[Entry]) -> int | None:
        """Where the messages begin that come again behind a summary; None where that can't be told."""
        kept = [token for entry in behind for token in _tokens_of(self.message(entry))]
        if not kept:
            return len(before)
        told: list[tuple[str, str]] = []
        for number in range(len(before) - 1, -1, -1):
            told = _tokens_of(self.message(before[number])) + told
            if told == kept:
                return number
            if len(told) >= len(kept):
                return None
        return None


def _tokens_of(message: Message) -> list[tuple[str, str]]:
    """What a message is known by, whatever form it is written in: its words and its calls."""
    return [
        (piece.kind, str(spans.decode(piece.literal)) if piece.kind == "text" else piece.name)
        for piece in message.pieces
        if piece.kind in ("text", "call")
    ]


def _words(message: Message) -> str:
    return "".join(str(spans.decode(piece.literal)) for piece in message.pieces if piece.kind == "text")


def _summary(entries: list[Entry], message: Callable[[Entry], Message]) -> int:
    """Index of the message that holds a summary; -1 where none does."""
    told = (number for number, entry in enumerate(entries) if _told(message(entry)))
    return next(told, -1)


def _told(message: Message) -> str:
    """The summary that a message holds; "" for none."""
    texts = [str(spans.decode(piece.literal)) for piece in message.pieces if piece.kind == "text"]
    return next((text for text in texts if message.type == "user" and origin(text) == "summary"), "")


def _frame(entries: list[Entry], at: int, message: Callable[[Entry], Message]) -> set[int]:
    """A summary, and the thanks for it that the client lets the agent say."""
    behind = message(entries[at + 1]) if at + 1 < len(entries) else None
    thanks = behind is not None and behind.type == "gemini" and _words(behind) == _THANKS
    return {at, at + 1} if thanks else {at}


def _tokens(message: Message) -> int:
    value = tokens(message).get("input")
    return int(value) if isinstance(value, str) and value.isdigit() else 0


def _once(before: list[Entry], behind: list[Entry]) -> list[Entry]:
    """Messages in a row; the client's context, which stands in front of each list, once: as it was written last."""
    at = next((number for number, entry in enumerate(before) if behind and entry.id == behind[0].id), None)
    if at is None:
        return [*before, *behind]
    return [*before[:at], behind[0], *before[at + 1 :], *behind[1:]]


def _until(log: Log, places: list[list[tuple[int, int]]], before: list[Entry]) -> int:
    offsets = {entry.offset for entry in before}
    first = 1 if log.entries and log.entries[0].offset not in offsets else 0  # the context, as it was written last
    return sum(log.entries[own[0][0]].offset in offsets for own in places) + first


def _with(log: Log, entries: list[Entry]) -> Log:
    """The file with other live messages; of two that have one id the client would take the later alone."""
    seen: dict[str, int] = {}
    named: dict[int, bytes] = {}
    for number, entry in enumerate(entries):
        seen[entry.id] = seen.get(entry.id, 0) + 1
        if seen[entry.id] > 1:
            entries[number] = entry._replace(id=f"{entry.id}-{seen[entry.id]}")
            named[entry.offset] = spans.quote(entries[number].id)
    kept = {key: getattr(log, key) for key in Log.__slots__} | {"entries": entries}
    return _Named(**kept, named=named)


@dataclass(frozen=True, slots=True)
class _Named(Log):
    """A file in which some messages have other ids: by their offsets, the literals of those."""

    named: dict[int, bytes] = field(default_factory=dict)

    @contextmanager
    def reader(self) -> Iterator[Fetch]:
        """As `Log.reader`."""
        with Log.reader(self) as fetch:

            def again(entry: Entry) -> bytes:
                name = self.named.get(entry.offset)
                return fetch(entry) if name is None else mended(fetch(entry), {"id": name})

            yield again
