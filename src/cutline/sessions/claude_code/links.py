"""How the records of a file are linked, as the client sees it.

Law: `progress` records only pass a link through, of a record that was written twice the last writing counts, and
a compaction may put preserved messages behind its summary. Every link that is not the file's own is noted.
"""

from __future__ import annotations

from datetime import datetime
from functools import cached_property
from typing import Any

from .literals import Opened
from .records import Log, Record

TALK = ("user", "assistant")
"""Types of the records that are said."""

LINKED = ("user", "assistant", "attachment", "system")
"""Types of the records that links count."""


class Links:
    """Records by what links them.

    Attributes:
        records: the file's records; everything else names them by their index.
        sidechain: the line that is read is a sub-agent's own.
        linked: the records that links count, by uuid.
        parent: the uuid that each of them hangs off; "" at a root.
        missing: uuids of parents that were looked for and are not in the file.
        relinked: (record, parent) of links that are not the file's own.
    """

    def __init__(self, log: Log) -> None:
        """Index the links of a file."""
        self.records = records = log.records
        talk = [record for record in records if record.type in TALK]
        self.sidechain = bool(talk) and all(record.sidechain for record in talk)
        passing = (record for record in records if record.uuid and record.type == "progress")
        passed = {record.uuid: record.parent for record in passing}
        self.linked: dict[str, int] = {}
        for index, record in enumerate(records):
            if record.uuid and record.type in LINKED:
                self.linked[record.uuid] = index
        self.parent: dict[int, str] = {}
        for index in self.linked.values():
            parent, seen = records[index].parent, set[str]()
            while parent in passed and parent not in seen:
                seen.add(parent)
                parent = passed[parent]
            self.parent[index] = parent
        self.missing: list[str] = []
        self.relinked: list[tuple[int, int]] = []

    @cached_property
    def times(self) -> list[tuple[float, int]]:
        """The linked records by time, each with its negated index (of equal times the first comes last)."""
        times = ((when(self.records[index]), -index) for index in self.linked.values())
        return sorted((at, index) for at, index in times if at is not None)

    def own(self, index: int) -> bool:
        """Whether a record is of the line that is read: the session's, not a sub-agent's."""
        return self.records[index].sidechain is self.sidechain

    def up(self, index: int) -> int | None:
        """The parent of a record, if it is in the file."""
        return self.linked.get(self.parent[index])

    def said(self, index: int) -> int | None:
        """The nearest record at or above this one that is said."""
        seen: set[int] = set()
        at: int | None = index
        while at is not None and at not in seen:
            if self.records[at].type in TALK:
                return at
            seen.add(at)
            at = self.up(at)
        return None


def when(record: Record) -> float | None:
    """A record's time in milliseconds since 1970."""
    try:
        return datetime.fromisoformat(record.timestamp).timestamp() * 1000
    except ValueError:
        return None


def follow_preserved(links: Links, log: Log) -> int | None:
    """Follow the last compaction's list of preserved messages: they stand behind its summary, in their order.

    Returns:
        The last preserved record; None where nothing is preserved, or where the list can't be followed.
    """
    records = links.records
    boundaries = [index for index in links.linked.values() if records[index].subtype == "compact_boundary"]
    if not boundaries:
        return None
    lists: dict[int, dict[str, Any]] = {}
    with log.reader() as fetch:
        for index in boundaries:
            opened = Opened(fetch(links.records[index]))
            found = opened.value(opened.top("compactMetadata"))
            if isinstance(found, dict) and (found.get("preservedMessages") or found.get("preservedSegment")):
                lists[index] = found
    if not lists:
        return None
    last = max(boundaries)
    anchor, kept = _listed(links, lists[last]) if last in lists else ("", [])
    if last in lists and (not anchor or not kept or any(uuid not in links.linked for uuid in kept)):
        return None
    if kept:
        tail, head = kept[-1], kept[0]
        for uuid, parent in zip(kept, [anchor, *kept], strict=False):
            _set(links, links.linked[uuid], parent)
        for uuid, index in links.linked.items():
            if links.parent[index] == anchor and uuid != head:
                _set(links, index, tail)
    gone = {uuid for uuid, index in links.linked.items() if index < last and uuid not in set(kept)}
    for uuid in gone:
        del links.linked[uuid]
    if kept:
        for index in links.linked.values():
            if links.records[index].type in TALK and links.parent[index] in gone:
                _set(links, index, tail)
    return links.linked[tail] if kept else None


def _set(links: Links, index: int, parent: str) -> None:
    if links.parent[index] != parent:
        links.parent[index] = parent
        if parent in links.linked:
            links.relinked.append((index, links.linked[parent]))


def _listed(links: Links, metadata: dict[str, Any]) -> tuple[str, list[str]]:
    """The anchor of preserved messages and their ids in order: a list, or a piece of the old chain."""
    listed = metadata.get("preservedMessages")
    if isinstance(listed, dict):
        uuids = listed.get("uuids")
        kept = [uuid for uuid in uuids if isinstance(uuid, str)] if isinstance(uuids, list) else []
        return str(listed.get("anchorUuid") or ""), kept
    piece = metadata["preservedSegment"]
    if not isinstance(piece, dict):
        return "", []
    kept = []
    at = links.linked.get(str(piece.get("tailUuid")))
    while at is not None and links.records[at].uuid not in kept:
        kept.append(links.records[at].uuid)
        if kept[-1] == piece.get("headUuid"):
            return str(piece.get("anchorUuid") or ""), kept[::-1]
        at = links.up(at)
    return "", []
