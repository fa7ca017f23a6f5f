"""Copilot CLI's compactions undone: its file of events only grows, so what a summary stands for is still in it.

Law: the file is only read. Events count in their order; without those that begin and end a compaction the client sends
all of them. It stores each summary in a file beside its events as well, and that goes into no copy.
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
from ..reviving import Point, Undone, Window, line_of, lost, mended, never
from ..reviving import window as listed_window
from .events import Event, Log, sent
from .history import history

_BEGINS, _ENDS, _CLEARED = "session.compaction_start", "session.compaction_complete", "session.context_cleared"
_SUMMARIES = frozenset(("checkpoints",))
"""Where the client stores its summaries beside the events."""


def undo(session: AnySession) -> Undone:
    """Undo a session's compactions.

    Raises:
        NothingToCut: none stands on what is sent.
        InputError: what the summary replaced is not in the file.
    """
    read = cast(NeutralSession, session)
    log: Log = read.source
    events = log.events
    cleared = max((n for n, event in enumerate(events) if event.type == _CLEARED and not event.inner), default=-1)
    ended = [n for n, event in enumerate(events) if event.type == _ENDS and event.done and not event.inner]
    on_line = [number for number in ended if number > cleared]
    if not on_line:
        raise never(session)
    said = next((n for n in range(cleared + 1, len(events)) if _is_agents(events[n])), len(events))
    found = {number: _begin(events, number) for number in on_line}
    hidden = [number for number in on_line if found[number] > said]
    if not hidden:
        first = events[on_line[0]]
        raise lost(session, f"line {line_of(log.path, first.offset):,}", first.timestamp)
    gone = {*hidden, *(found[number] for number in hidden)}
    undone = _without(log, gone)
    whole = history(undone)
    stays = next((number for number in on_line if number not in gone), None)
    limit, points = 0, []
    with log.reader() as fetch:
        for number in hidden:
            opened, began = Opened(fetch(events[number])), Opened(fetch(events[found[number]]))
            data, before = (one.inside(one.members().get("data")) for one in (opened, began))
            trigger = began.value(before.get("trigger"))
            begins = events[found[number]].offset
            points.append(
                Point(
                    line_of(log.path, events[number].offset),
                    sum(undone.events[places[0][0]].offset < begins for places in whole.places),
                    max(0, len(opened.literal(data.get("summaryContent"))) - 2),
                    trigger if trigger in ("auto", "manual") else "",
                    _count(opened.value(data.get("preCompactionTokens"))),
                )
            )
            limit = _count(began.value(before.get("tokenLimit"))) or limit
    return Undone(
        replace(read, source=undone, history=whole),
        points,
        lambda number: events[number].offset,
        lambda number: undone.events[number].offset,
        Window(limit, "as the client noted it") if limit else listed_window(whole.model, read.history.requests),
        frozenset(events[number].offset for number in gone),
        stays=f"line {line_of(log.path, events[stays].offset):,}" if stays is not None else "",
    )


def _is_agents(event: Event) -> bool:
    return event.type == "assistant.message" and not event.inner


def _begin(events: list[Event], end: int) -> int:
    """Where a compaction began; its end where that is not recorded."""
    for number in range(end - 1, -1, -1):
        if events[number].type == _BEGINS and not events[number].inner:
            return number
        if events[number].type in (_ENDS, _CLEARED) and not events[number].inner:
            break
    return end


def _count(value: object) -> int:
    return int(value) if isinstance(value, str) and value.isdigit() else 0


def _without(log: Log, gone: set[int]) -> Log:
    """The file's events without some of them, each linked to what stays."""
    by_id = {log.events[number].id: log.events[number].parent for number in gone if log.events[number].id}
    links: dict[int, bytes] = {}
    events: list[Event] = []
    for number, event in enumerate(log.events):
        if number in gone:
            continue
        if event.parent in by_id:
            parent, seen = event.parent, set[str]()
            while parent in by_id and parent not in seen:
                seen.add(parent)
                parent = by_id[parent]
            event = event._replace(parent="" if parent in seen else parent)
            links[event.offset] = spans.quote(unview(event.parent)) if event.parent else b"null"
        events.append(event)
    undone = _Mended(events, log.id, log.version, log.cwd, log.branch, sent(events), _SUMMARIES, links=links)
    undone.lines = log.lines
    return undone


@dataclass(slots=True)
class _Mended(Log):
    """A file that reads as if no compaction had been written.

    Attributes:
        links: by an event's offset, the one that it hangs off now.
    """

    links: dict[int, bytes] = field(default_factory=dict)

    @contextmanager
    def reader(self) -> Iterator[Callable[[Event], bytes]]:
        """As `Log.reader`; what hung off an event that went hangs off one that stays."""
        with Log.reader(self) as fetch:

            def again(event: Event) -> bytes:
                link = self.links.get(event.offset)
                return fetch(event) if link is None else mended(fetch(event), {"parentId": link})

            yield again
