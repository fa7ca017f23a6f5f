"""pi's compactions undone: each is one entry of the tree, and what it replaced hangs above it.

Law: the file is only read. Without its compactions, and with what hung off them hanging off what stood before, the line
leads from its leaf to the start, and the client sends all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import cast

from ... import spans
from ..lines import Opened, unview
from ..model import Session as AnySession
from ..neutral import NeutralSession
from ..reviving import Point, Undone, line_of, lost, mended, never, window
from .entries import TARGETS, Entry, Log
from .history import history

_SPOKEN = ("user", "assistant")


def undo(session: AnySession) -> Undone:
    """Undo a session's compactions, those on lines that were given up among them.

    Raises:
        NothingToCut: none stands on the session's live line.
        InputError: what the summary replaced is not in the file.
    """
    read = cast(NeutralSession, session)
    log: Log = read.source
    on_line = [number for number in log.chain if log.entries[number].type == "compaction"]
    if not on_line:
        raise never(session)
    gone = {number for number, entry in enumerate(log.entries) if entry.type == "compaction" and _follows(log, number)}
    if not gone.intersection(on_line):
        first = log.entries[on_line[0]]
        raise lost(session, f"line {line_of(log.path, first.offset):,}", first.timestamp)
    undone = _without(log, gone)
    whole = history(undone)
    points = []
    with log.reader() as fetch:
        for number in on_line:
            if number in gone:
                before = {log.entries[above].offset for above in log.chain[: log.chain.index(number)]}
                until = sum(undone.entries[places[0][0]].offset in before for places in whole.places)
                opened = Opened(fetch(log.entries[number]))
                members = opened.members()
                counted = opened.value(members.get("tokensBefore"))
                tokens = int(counted) if isinstance(counted, str) and counted.isdigit() else 0
                size = max(0, len(opened.literal(members.get("summary"))) - 2)
                line = line_of(log.path, log.entries[number].offset)
                points.append(Point(line, until, size, tokens=tokens))
    stays = next((log.entries[number] for number in on_line if number not in gone), None)
    return Undone(
        replace(read, source=undone, history=whole),
        points,
        lambda number: log.entries[number].offset,
        lambda number: undone.entries[number].offset,
        window(whole.model, read.history.requests),
        frozenset(log.entries[number].offset for number in gone),
        stays=f"line {line_of(log.path, stays.offset):,}" if stays else "",
        broken=bool(log.broken),
    )


def _follows(log: Log, number: int) -> bool:
    """Whether anybody says something above a compaction."""
    seen: set[int] = set()
    at = log.parents.get(number)
    while at is not None and at not in seen:
        if log.entries[at].role in _SPOKEN:
            return True
        seen.add(at)
        at = log.parents.get(at)
    return False


def _without(log: Log, gone: set[int]) -> Log:
    """The file's entries without some of them, each linked to what stays."""
    by_id = {log.entries[number].id: number for number in gone if log.entries[number].id}

    def above(id: str) -> str:
        seen: set[str] = set()
        while id in by_id and id not in seen:
            seen.add(id)
            parent = log.parents.get(by_id[id])
            id = log.entries[parent].id if parent is not None else ""
        return "" if id in seen else id

    entries: list[Entry] = []
    links: dict[int, dict[str, bytes]] = {}
    for number, entry in enumerate(log.entries):
        if number in gone:
            continue
        changed: dict[str, bytes] = {}
        if entry.parent in by_id:
            entry = entry._replace(parent=above(entry.parent))
            changed["parentId"] = _link(entry.parent)
        if entry.target in by_id:
            entry = entry._replace(target=above(entry.target))
            changed[TARGETS[entry.type]] = _link(entry.target)
        if changed:
            links[entry.offset] = changed
        entries.append(entry)
    header = next(number for number, entry in enumerate(entries) if entry.type == "session")
    # Where a compaction is the leaf, what it hung off is; that need not be the last entry of what is left.
    stays = [number for number in log.chain if number not in gone]
    leaf = stays[-1] - sum(number < stays[-1] for number in gone) if stays else None
    return _Mended(log.lines, entries, header, log.version, log.id, log.cwd, links=links).linked(leaf)


def _link(id: str) -> bytes:
    return spans.quote(unview(id)) if id else b"null"


@dataclass(frozen=True, slots=True)
class _Mended(Log):
    """A file that reads as if no compaction had been written.

    Attributes:
        links: by an entry's offset, what its members name now.
    """

    links: dict[int, dict[str, bytes]] = field(default_factory=dict)

    @contextmanager
    def reader(self) -> Iterator[Callable[[Entry], bytes]]:
        """As `Log.reader`; what named an entry that went names one that stays."""
        with Log.reader(self) as fetch:
            yield lambda entry: mended(fetch(entry), self.links.get(entry.offset, {}))
