"""The cut copy of a rollout: a new file that the client resumes.

Law: the original is only read. A record that stays keeps its bytes, but for the session's id, its number in the file's
own count, the id that ties an item of the agent's to reasoning that left, and what the plan takes out or adds.
Records in which the client repeats a call, a result or reasoning leave with that; so do its counts of tokens, which are
those of the uncut history. The copy is complete, proven and durable before it has a session's name.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from ... import spans
from ...errors import InputError
from ...plan import Addition, Plan
from ...splice import inside_of
from ...wire import anthropic as wire
from ..files import unwritable, write_file
from ..model import Copy, Prove
from ..neutral import NeutralSession, around
from . import find
from .branch import text_of
from .history import history as rebuilt
from .items import Item, Opened, is_answer, is_call
from .people import NOTICE
from .records import Log, Record, read
from .session import Source

# Items that a completed event repeats of what was said: they stay.
_SAID = frozenset(("UserMessage", "AgentMessage", "Plan", "HookPrompt", "EnteredReviewMode", "ExitedReviewMode"))
# Events that say again what an item beside them holds, without its id.
_BESIDE = {
    "agent_reasoning": "reasoning",
    "agent_reasoning_raw_content": "reasoning",
    "web_search_end": "web_search_call",
    "image_generation_end": "image_generation_call",
}
_IDS = ("session_id", "thread_id", "threadId")


@dataclass(slots=True)
class _Change:
    """What the plan does to one record, by the number of the block in it."""

    drop: set[int] = field(default_factory=set)
    add: dict[int, list[Addition]] = field(default_factory=dict)
    early: bool = False  # reasoning before it left: its id, which ties it to that, leaves too


Edit = tuple[int, int, bytes]
"""A span of a record, and what stands there instead."""


def write(session: NeutralSession, plan: Plan, title: str, prove: Prove) -> Copy:
    """Write the cut copy of a session, where the client looks for it.

    Args:
        session: the session.
        plan: the decisions for its history's body.
        title: the copy's title.
        prove: called with the finished temporary file, its session id, and the number of the notice's record.

    Raises:
        InputError: the folder can't be written, or the disk is full.
    """
    source: Source = session.source
    original = source.log.path.resolve()
    new_id = str(uuid.uuid4())
    rewriting = _Rewriting(session, plan, new_id, title)
    final = _place(original, source, new_id)
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(final.parent, error) from None
    size = write_file(final, rewriting.lines(), lambda path: prove(path, new_id, rewriting.notice))
    name(final, new_id, title)
    missed = 0 if source.log.packed else max(0, original.stat().st_size - source.log.size)
    return Copy(final, new_id, rewriting.notice, rewriting.written, len(rewriting.gone), 0, size, missed)


def _place(original: Path, source: Source, new_id: str) -> Path:
    """Beside the original, by the client's rule for names; of an archived session among the others, by its day."""
    stamp = find.stamp_of(original) or source.began[:19].replace(":", "-") or _now()[:19].replace(":", "-")
    home, folder = find.home_of(original), original.parent
    if home is not None and home / "archived_sessions" in original.parents:
        folder = home.joinpath("sessions", *stamp[:10].split("-"))
    return folder / f"rollout-{stamp}-{new_id}.jsonl"


def name(final: Path, id: str, title: str) -> None:
    """Add a session to the client's own list of names, to which it only ever adds; one without a name is one too."""
    home = find.home_of(final)
    if home is None:
        return
    entry = b'{"id":"%s","thread_name":%s,"updated_at":"%s"}\n' % (id.encode(), spans.quote(title), _now().encode())
    with suppress(OSError):
        handle = os.open(home / find.INDEX, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
        try:
            os.write(handle, entry)
        finally:
            os.close(handle)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class _Rewriting:
    """The lines of the copy, one record at a time."""

    def __init__(self, session: NeutralSession, plan: Plan, new_id: str, title: str) -> None:
        self.log: Log = session.source.log
        self.old_id: str = session.source.id
        self.places, self.plan, self.new_id, self.title = session.history.places, plan, new_id, title
        self.records = self.log.records
        self.written = 0
        self.notice = ""
        self.changes = self._changes()
        with self.log.reader() as fetch:
            self.gone = self._gone(fetch)
            self.first = self._ordinal(fetch)
        self.notice_at = self._notice_at() if plan.last_notice is not None else None

    # ---- decisions

    def _changes(self) -> dict[int, _Change]:
        """What the plan does, by record; and which items lose the id that tied them to reasoning."""
        changes: dict[int, _Change] = {}
        for number, index in self.plan.drop:
            record, block = self.places[number][index]
            changes.setdefault(record, _Change()).drop.add(block)
        for (number, index), additions in self.plan.add.items():
            record, block = self.places[number][index]
            changes.setdefault(record, _Change()).add.setdefault(block, []).extend(additions)
        lost = False
        for number, message in enumerate(self.plan.request.messages):
            if message.role != "assistant":
                lost = False
            for index in range(len(message.blocks)):
                if self.plan.drop.get((number, index)) == "thinking":
                    lost = True
                elif lost:
                    changes.setdefault(self.places[number][index][0], _Change()).early = True
        return changes

    def _gone(self, fetch: Callable[[Record], bytes]) -> set[int]:
        """Records that leave whole: all of theirs left, or they repeat nothing but what left."""
        gone: set[int] = set()
        for number, change in self.changes.items():
            record = self.records[number]
            if change.drop and record.type == "response_item":
                opened = Opened(record, fetch(record))
                if all(len(change.drop) >= item.blocks for item in opened.items):
                    gone.add(number)
        stays = {
            record.call for n, record in enumerate(self.records) if record.type == "response_item" and n not in gone
        }
        left = {self.records[number].call for number in gone if self.records[number].call} - stays
        inside = self._inside(gone)
        beside = self._beside(gone)
        for number, record in enumerate(self.records):
            if record.type == "token_usage_record" or (record.kind == "token_count" and record.type == "event_msg"):
                gone.add(number)
            elif record.type != "event_msg" or record.item in _SAID:
                continue
            elif number in beside or (
                record.call and (record.call in left or (number in inside and record.call not in stays))
            ):
                gone.add(number)
        return gone

    def _inside(self, gone: set[int]) -> set[int]:
        """Numbers of records between a call that left and its result: what calls made by that one returned."""
        begun: dict[str, int] = {}
        inside: set[int] = set()
        for number in sorted(gone):
            record = self.records[number]
            if is_answer(record.kind) and record.call in begun:
                inside.update(range(begun[record.call], number))
            elif is_call(record.kind):
                begun[record.call] = number
        return inside

    def _beside(self, gone: set[int]) -> set[int]:
        """Numbers of the events that say again an item that left: they stand beside it, with no item between."""
        found: set[int] = set()
        waiting: list[int] = []
        last = ""
        for number, record in enumerate(self.records):
            if record.type == "event_msg" and record.kind in _BESIDE:
                if _BESIDE[record.kind] == last:
                    found.add(number)
                waiting.append(number)
            elif record.type == "response_item":
                last = record.kind if number in gone else ""
                found.update(event for event in waiting if _BESIDE[self.records[event].kind] == last)
                waiting = []
        return found

    def _ordinal(self, fetch: Callable[[Record], bytes]) -> int | None:
        """The number that the file's own count begins with; None where it does not count."""
        opened = Opened(self.records[0], fetch(self.records[0]))
        raw = opened.literal(opened.member("ordinal"))
        return int(raw) if raw.isdigit() and len(raw) < 18 else None

    def _notice_at(self) -> int:
        """The record that the notice's record stands before: the first of the message behind the seam.

        At the end of a history that is the one behind the last live record.
        """
        start = self.plan.seam.message
        if start < len(self.places):
            return min(record for record, _ in self.places[start])
        last = max(record for places in self.places for record, _ in places)
        # Behind turns that were taken back: before them it would be taken back with them.
        back = [n for n in range(last + 1, len(self.records)) if self.records[n].kind == "thread_rolled_back"]
        return (back[-1] if back else last) + 1

    # ---- lines

    def lines(self) -> Iterator[bytes]:
        """The copy, line by line."""
        with self.log.reader() as fetch:
            for number, record in enumerate(self.records):
                if number == self.notice_at:
                    yield self._notice(record.timestamp)
                if number not in self.gone:
                    yield self._line(self._record(number, record, fetch(record)))
            if self.notice_at is not None and self.notice_at >= len(self.records):
                yield self._notice(self.log.last)
        told = b'{"timestamp":"%s","type":"event_msg","payload":{"type":"thread_name_updated","thread_id":"%s"' % (
            (self.log.last or _now()).encode(),
            self.new_id.encode(),
        )
        yield self._line(told + b',"thread_name":%s}}' % spans.quote(self.title))

    def _line(self, raw: bytes) -> bytes:
        """A record as a line, with its number in the file's own count."""
        if self.first is not None:
            view = raw.decode("latin-1")
            ordinal = b"%d" % (self.first + self.written)
            found = spans.find(view, 0, "ordinal")
            if found is not None:
                raw = raw[: found.start] + ordinal + raw[found.end :]
            else:
                raw = b'{"ordinal":%s,' % ordinal + raw[1:]
        self.written += 1
        return raw.replace(b"\n", b" ") + b"\n"

    def _notice(self, timestamp: str) -> bytes:
        """A message of role user in the client's own form for what no person said."""
        self.notice = str(self.written)
        words = spans.quote(NOTICE[0] + (self.plan.last_notice or "") + NOTICE[1])
        message = b'{"type":"message","role":"user","content":[{"type":"input_text","text":%s}]}' % words
        when = (timestamp or _now()).encode()
        return self._line(b'{"timestamp":"%s","type":"response_item","payload":%s}' % (when, message))

    def _record(self, number: int, record: Record, raw: bytes) -> bytes:
        opened = Opened(record, raw)
        edits = self._ids(record, opened)
        change = self.changes.get(number)
        if change:
            for item in opened.items:
                edits += self._item(opened, item, change)
        for start, end, new in sorted(edits, reverse=True):
            raw = raw[:start] + new + raw[end:]
        return raw

    def _ids(self, record: Record, opened: Opened) -> list[Edit]:
        """The session's own id, wherever the client wrote it."""
        if record.type in ("response_item", "compacted") or not self.old_id:
            return []
        keys = (*_IDS, "id") if record.type == "session_meta" else _IDS
        found = [opened.member("payload", key) for key in keys]
        found.append(opened.member("payload", "goal", "threadId"))
        old, new = b'"%s"' % self.old_id.encode(), b'"%s"' % self.new_id.encode()
        return [(one.start, one.end, new) for one in found if one is not None and opened.literal(one) == old]

    def _item(self, opened: Opened, item: Item, change: _Change) -> list[Edit]:
        """What changes in one item: parts that left, the id that left, what its result gets."""
        edits: list[Edit] = []
        tied = item.role == "assistant" if item.type == "message" else is_call(item.type)
        if change.early and tied and "id" in item.members:
            edits.append(_without(opened.view, item.start, "id"))
        kept = [part for n, part in enumerate(item.parts) if item.first + n not in change.drop]
        if item.type == "message" and 0 < len(kept) < len(item.parts):
            content = item.members["content"]
            edits.append((content.start, content.end, b"[%s]" % b",".join(opened.raw[a:b] for a, b in kept)))
        for addition in change.add.get(item.first, ()):
            edits.append(self._addition(opened, item, addition))
        return edits

    def _addition(self, opened: Opened, item: Item, addition: Addition) -> Edit:
        """What is added to a result (docs/wire.md, 10)."""
        request = self.plan.request
        behind = b"" if addition.source is None else b"\\n" + inside_of(request, addition.source)
        output = item.members.get("output")
        if output is not None and opened.view[output.start] == '"':
            at = output.end - 1
            return at, at, spans.quote("\n\n" + addition.text)[1:-1] + behind
        if output is not None and opened.view[output.start] == "[":
            comma = b"," if spans.elements(opened.view, output.start)[0] else b""
            text = spans.quote(addition.text)[:-1] + behind + b'"'
            return output.end - 1, output.end - 1, comma + b'{"type":"input_text","text":%s}' % text
        raise InputError(f"{self.log.path}: the checkpoint's result has a form that nothing can be added to")


def _without(view: str, at: int, key: str) -> Edit:
    """The edit that takes a member out of an object, with the comma that parted it."""
    members, _ = spans.members(view, at)
    number = next(n for n, member in enumerate(members) if member.key == key)
    if number + 1 < len(members):
        return members[number].at, members[number + 1].at, b""
    return (members[number - 1].end if number else members[number].at), members[number].end, b""


def reread(path: Path, notice: str, before: bytes) -> tuple[bytes, str | None]:
    """The body of a written copy without the notice's own message, and what that message says.

    Args:
        path: the copy.
        notice: number of the notice's record; "" for none.
        before: the original's body.
    """
    log = read(path)
    found = rebuilt(log).history
    # Calls without an id are numbered; where earlier ones left, those that stay keep the numbers that they had.
    left = _given(before) - _given(found.body)
    if left > 0:
        found = rebuilt(log, left).history
    if notice:
        wanted = int(notice)
        for number, places in enumerate(found.places):
            if places[0][0] == wanted:
                with log.reader() as fetch:
                    opened = Opened(log.records[wanted], fetch(log.records[wanted]))
                words = text_of(opened.words(opened.items[0].parts[0]))
                told = words.removeprefix(NOTICE[0]).removesuffix(NOTICE[1])
                return around(before, found.body, number), told
    return around(before, found.body, None), None


def _given(body: bytes) -> int:
    """How many numbers were given to calls without an id."""
    numbers = (block.id for message in wire.read(body).messages for block in message.blocks if block.id.isdecimal())
    return max(map(int, numbers), default=-1) + 1
