"""Claude Code's compactions undone: the records that each summary replaced are still in the file.

Law: the file is only read. A compaction adds two records, a boundary and a summary, and cuts a link; without the two,
and with the link mended, the file holds the whole history, and everything else (the branch, the cut, the copy, the
proof) works on it as on any session. A link that the file does not give is taken from the order of its records, and
said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, cast

from ...errors import InputError
from ..model import Session as AnySession
from ..reviving import Point, Undone, Window, listed, lost, mended, never
from . import titles
from .history import History, history
from .links import LINKED, TALK
from .literals import Opened
from .records import Log, Record
from .session import Session

_BOUNDARY = "compact_boundary"
# What the client puts back behind a summary, for want of the results that it had removed.
_COMPANIONS = ("file", "compact_file_reference")
_SMALL, _LARGE = 200_000, 1_000_000


def undo(session: AnySession) -> Undone:
    """Undo a session's compactions.

    Raises:
        NothingToCut: no compaction stands on the session's live line.
        InputError: what the summary replaced is not in the file, or it is an export without links.
    """
    session = cast(Session, session)
    log, found = session.log, session.history
    if log.web:
        raise InputError(f"{log.path}: a web export has no links by which a compaction could be undone")
    if not found.compacted and found.origins[0] != "summary":
        raise never(session)
    undoing = _Undoing(log)
    first = log.records[found.branch.chain[0]]
    if not undoing.onto:
        raise lost(session, f"line {first.line:,}", first.timestamp)
    whole = history(undoing.log())
    points = undoing.told(whole)
    begins = whole.log.records[whole.branch.chain[0]]
    tokens = max((made.usage.total_input for made in (*found.requests, *whole.requests)), default=0)
    return Undone(
        replace(session, log=whole.log, history=whole, title=titles.of(whole) or session.title),
        points,
        lambda number: log.records[number].uuid,
        lambda number: whole.log.records[number].uuid,
        window(found.model or whole.model, tokens, points[-1] if points else None),
        frozenset(undoing.onto),
        stays=f"line {begins.line:,}" if whole.compacted else "",
        broken=whole.branch.ended in ("missing parent", "cycle"),
    )


def window(model: str, seen: int, last: Point | None) -> Window:
    """How many tokens the session's model takes, and how that is known.

    Args:
        model: as the session names it.
        seen: tokens of the session's largest request.
        last: its last compaction, which shows where the client itself saw the end.
    """
    known = listed(model.removesuffix("[1m]"))
    compacted = last.tokens if last else 0
    seen = max(seen, compacted)
    if seen > _SMALL:
        return Window(max(known or 0, _LARGE), f"a request of {seen:,} tokens was made in it")
    if known is None:
        return Window(None, f"no window is known for {model or 'a session that names no model'}")
    if known <= _SMALL:
        return Window(known, f"genai-prices, {model}")
    how = f"the client itself compacted it at {compacted:,}" if last and last.trigger == "auto" and compacted else ""
    how = how or f"no request in it was larger than {seen:,}"
    return Window(_SMALL, f"{how}; {model} takes {known:,}, which Claude Code asks for as {model}[1m]")


# --------------------------------------------------------------------------------------------- undoing


@dataclass(slots=True)
class _Point:
    """A compaction as the file has it: its boundary and its summaries, by index, and what it says of itself."""

    boundary: int
    summaries: list[int]
    metadata: dict[str, Any]
    guessed: bool = False

    @property
    def preserved(self) -> set[str]:
        kept = self.metadata.get("preservedMessages")
        uuids = kept.get("uuids") if isinstance(kept, dict) else None
        return {uuid for uuid in uuids if isinstance(uuid, str)} if isinstance(uuids, list) else set()


class _Undoing:
    """Which records of a file go, and where what hung off them hangs instead."""

    def __init__(self, log: Log) -> None:
        self.source, self.records = log, log.records
        # Of a record that a compaction wrote a second time the first writing is the one in its old place.
        self.by_uuid: dict[str, int] = {}
        for number, record in enumerate(self.records):
            if record.uuid:
                self.by_uuid.setdefault(record.uuid, number)
        self.points = self._points()
        self.onto: dict[str, str] = {}
        for point in self.points:
            boundary = self.records[point.boundary]
            old = self._before(point)
            if old is None:
                continue
            self.onto[boundary.uuid] = old
            for number in point.summaries:
                self.onto[self.records[number].uuid] = self.records[number].parent
        self.undone = [point for point in self.points if self.records[point.boundary].uuid in self.onto]
        self.dropped = self._dropped()

    def _points(self) -> list[_Point]:
        points: dict[int, _Point] = {}
        with self.source.reader() as fetch:
            for number, record in enumerate(self.records):
                if record.type == "system" and record.subtype == _BOUNDARY and record.uuid:
                    opened = Opened(fetch(record))
                    metadata = opened.value(opened.top("compactMetadata"))
                    points[number] = _Point(number, [], metadata if isinstance(metadata, dict) else {})
        for number, record in enumerate(self.records):
            if record.summary and record.uuid:
                above = self._above(number)
                if above in points:
                    points[above].summaries.append(number)
                elif above is not None:
                    # A summary without a boundary, in the middle of a line: what it hangs off is what it replaced.
                    points[number] = _Point(number, [], {})
        return [points[number] for number in sorted(points)]

    def _above(self, number: int) -> int | None:
        """The nearest record above that is said or is a boundary; between a boundary and its summary stand reports."""
        seen: set[int] = set()
        at = self.by_uuid.get(self.records[number].parent)
        while at is not None and at not in seen:
            record = self.records[at]
            if record.type in TALK or record.subtype == _BOUNDARY:
                return at
            seen.add(at)
            at = self.by_uuid.get(record.parent)
        return None

    def _before(self, point: _Point) -> str | None:
        """The uuid of the record that the line went on from; None where the file holds nothing before."""
        boundary = self.records[point.boundary]
        named = boundary.logical if boundary.subtype == _BOUNDARY else boundary.parent
        known = named in self.by_uuid and self.records[self.by_uuid[named]].type in (*LINKED, "progress")
        if known and not self._descends(named, boundary.uuid):
            return named
        # The last that was said before it: a compaction is written straight behind the line that it ends.
        for number in range(point.boundary - 1, -1, -1):
            record = self.records[number]
            if record.type in TALK and record.uuid and record.sidechain is boundary.sidechain and not record.summary:
                point.guessed = True
                return record.uuid
        return None

    def _descends(self, uuid: str, ancestor: str) -> bool:
        seen: set[str] = set()
        while uuid in self.by_uuid and uuid not in seen:
            if uuid == ancestor:
                return True
            seen.add(uuid)
            uuid = self.records[self.by_uuid[uuid]].parent
        return False

    def _dropped(self) -> set[int]:
        dropped = {number for number, record in enumerate(self.records) if record.uuid in self.onto}
        if not self.undone:
            return dropped
        last = self.undone[-1].boundary
        for point in self.undone:
            # Messages that the client kept stand in their old place; where it wrote them again, behind the boundary,
            # they would be there twice.
            kept = point.preserved
            for number in range(point.boundary, len(self.records)):
                uuid = self.records[number].uuid
                if uuid in kept and self.by_uuid[uuid] < point.boundary:
                    dropped.add(number)
        for number, record in enumerate(self.records):
            if record.type == "last-prompt" and number < last:
                dropped.add(number)  # the boundary ends what it says of the leaf
            elif record.subtype in _COMPANIONS and number < last and self._follows_summary(number):
                dropped.add(number)
                if record.uuid:
                    self.onto[record.uuid] = record.parent
        return dropped

    def _follows_summary(self, number: int) -> bool:
        """Whether nothing was said between a summary that goes and this record."""
        above = self._above(number)
        return above is not None and self.records[above].summary and self.records[above].uuid in self.onto

    def log(self) -> Log:
        """The file's records without what went, each linked to what stays."""
        records: list[Record] = []
        links: dict[int, bytes] = {}
        for number, record in enumerate(self.records):
            if number in self.dropped:
                continue
            if record.parent in self.onto:
                parent = self._onto(record.parent)
                record = record._replace(parent=parent)
                links[record.offset] = b'"%s"' % parent.encode() if parent else b"null"
            records.append(record)
        source = self.source
        return _Mended(
            source.path,
            source.size,
            source.grew,
            records,
            source.glued,
            source.torn,
            source.others,
            source.web,
            source.versions,
            source.folders,
            source.branches,
            source.first,
            source.last,
            links,
        )

    def _onto(self, uuid: str) -> str:
        seen: set[str] = set()
        while uuid in self.onto and uuid not in seen:
            seen.add(uuid)
            uuid = self.onto[uuid]
        return "" if uuid in self.onto else uuid

    def told(self, whole: History) -> list[Point]:
        """The compactions on the line."""
        records, chain = whole.log.records, whole.branch.chain
        at: dict[str, int] = {records[number].uuid: position for position, number in enumerate(chain)}
        ends: list[tuple[int, _Point]] = []
        for point in self.undone:
            uuid = self._onto(self.records[point.boundary].uuid)
            while uuid in self.by_uuid and self.records[self.by_uuid[uuid]].type == "progress":
                uuid = self._onto(self.records[self.by_uuid[uuid]].parent)  # such a record only passes a link on
            old = at.get(uuid)
            if old is None:
                continue  # on a line that was given up
            kept = point.preserved
            while old >= 0 and (records[chain[old]].type not in TALK or records[chain[old]].uuid in kept):
                old -= 1
            ends.append((old + 1, point))
        ends.sort(key=lambda end: (end[0], end[1].boundary))
        starts = _positions(whole, at)
        found: list[Point] = []
        for end, point in ends:
            tokens, trigger = point.metadata.get("preTokens"), point.metadata.get("trigger")
            found.append(
                Point(
                    self.records[point.boundary].line,
                    sum(start < end for start in starts),
                    self._summary(point),
                    trigger if trigger in ("auto", "manual") else "",
                    tokens if type(tokens) is int and tokens > 0 else 0,
                    point.guessed,
                )
            )
        return found

    def _summary(self, point: _Point) -> int:
        """Bytes of a summary's words, as they are written."""
        total = 0
        with self.source.reader() as fetch:
            for number in point.summaries or [point.boundary]:
                opened = Opened(fetch(self.records[number]))
                for item in opened.items(opened.inside("message").get("content")):
                    inside = Opened(item.literal).top("text") if item.block >= 0 else (0, len(item.literal))
                    total += inside[1] - inside[0] - 2 if inside and item.type == "text" else len(item.literal)
        return total


@dataclass(frozen=True, slots=True)
class _Mended(Log):
    """A file that reads as if no compaction had been written: its records with the links that they had before.

    Attributes:
        links: the literal of a record's new parent, by the record's offset.
    """

    links: dict[int, bytes]

    @contextmanager
    def reader(self) -> Iterator[Callable[[Record], bytes]]:
        """As `Log.reader`; a record whose parent went names the one that it has now."""
        with Log.reader(self) as fetch:

            def again(record: Record) -> bytes:
                link = self.links.get(record.offset)
                return fetch(record) if link is None else mended(fetch(record), {"parentUuid": link})

            yield again


def _positions(whole: History, at: dict[str, int]) -> list[int]:
    """For each message, where it begins on the chain; results beside the chain stand with their calls."""
    found: list[int] = []
    for places in whole.places:
        own = [at[uuid] for place in places if (uuid := whole.log.records[place.record].uuid) in at]
        found.append(min(own) if own else found[-1] if found else 0)
    return found
