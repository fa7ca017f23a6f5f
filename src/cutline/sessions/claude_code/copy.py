"""The cut copy of a session: a new file beside the original, which the client resumes.

Law: the original is only read. A record that stays keeps its bytes but for its session id, its parent where
that one left, and what the plan takes out of it or adds to it. Nothing is made up but one title record and,
in a cut without a checkpoint, the notice in a record that the client itself marks as not the human's. The copy
is complete, proven and durable before it has a session's name.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from ... import spans
from ...plan import Plan
from ...splice import result_literal, text_literal
from ...wire import anthropic as wire
from ..files import write_file
from ..model import Copy, Prove
from ..neutral import without_notice
from .history import History
from .history import history as rebuilt
from .records import Record, read

_CALLER = re.compile(rb'"(?:toolUseID|parentToolUseID)"\s*:\s*"([^"\\]*)"').findall
# Newer clients keep whole requests beside the records, for themselves: a resume never reads them, and they would
# carry into the copy what left it (docs/claude-code-sessions.md).
_REPEATS = "api-request"
_AFTERTHOUGHTS = ("progress", "attachment", "system")


@dataclass(slots=True)
class _Change:
    """What the plan does to one record: by index of the block in its content."""

    drop: set[int] = field(default_factory=set)
    replace: dict[int, bytes] = field(default_factory=dict)


def write(history: History, plan: Plan, title: str, prove: Prove) -> Copy:
    """Write the cut copy of a session.

    Args:
        history: the session's live branch.
        plan: the decisions for `history.body`.
        title: the copy's title.
        prove: called with the finished temporary file, its session id, and the uuid of the notice's record.

    Raises:
        InputError: the folder can't be written, or the disk is full.
    """
    source = history.log.path.resolve()
    new_id = str(uuid.uuid4())
    final = source.with_name(f"{new_id}.jsonl")
    rewriting = _Rewriting(history, plan, new_id, title)
    size = write_file(final, rewriting.lines(), lambda path: prove(path, new_id, rewriting.notice))
    missed = max(0, source.stat().st_size - history.log.size)
    gone, relinked = len(rewriting.gone), rewriting.relinked
    return Copy(final, new_id, rewriting.notice, rewriting.written, gone, relinked, size, missed)


class _Rewriting:
    """The lines of the copy, one record at a time."""

    def __init__(self, history: History, plan: Plan, new_id: str, title: str) -> None:
        self.history, self.plan, self.new_id, self.title = history, plan, new_id, title
        self.records = history.log.records
        self.written = self.relinked = 0
        self.changes = _changes(history, plan)
        self.by_uuid = {record.uuid: number for number, record in enumerate(self.records) if record.uuid}
        self.gone = self._gone()
        # Where the client follows another link than the file's, the copy says so: with records gone, the guess
        # that it makes over a missing parent could fall on another record.
        self.guessed = {child: self.records[parent].uuid for child, parent in history.branch.relinked}
        # Attachments behind the leaf may hang side by side; in the copy one hangs off the other, or a notice among
        # them would end the line for the rest.
        chain = history.branch.chain
        for before, number in pairwise(chain):
            if (
                history.branch.leaf is not None
                and number > history.branch.leaf
                and self.records[number].type == "attachment"
            ):
                self.guessed[number] = self.records[before].uuid
        self.notice = str(uuid.uuid4()) if plan.last_notice is not None else ""
        self.first_behind = self._first_behind() if self.notice else None

    def _gone(self) -> set[int]:
        """Records that leave whole: all their blocks left, or they answer or report on nothing but a call that left."""
        gone: set[int] = set()
        calls = {
            wire_block.id
            for (number, index), why in self.plan.drop.items()
            if why in ("call", "unanswered call")
            for wire_block in (self.plan.request.messages[number].blocks[index],)
        }
        live = self.history.branch.all()
        with self.history.log.reader() as fetch:
            for number, record in enumerate(self.records):
                change = self.changes.get(number)
                if record.type.startswith(_REPEATS):
                    gone.add(number)
                elif change and change.drop:
                    if len(change.drop) >= _blocks(fetch(record)):
                        gone.add(number)
                elif record.answers and number not in live and calls.issuperset(record.answers):
                    # A second result of a call that left, on a branch that was given up: without its call the
                    # client would find it beside the message and put an empty user turn in its place.
                    if len(record.answers) == _blocks(fetch(record)):
                        gone.add(number)
                elif record.type not in _AFTERTHOUGHTS or record.subtype == "queued_command":
                    continue
                elif any(id_.decode("latin-1") in calls for id_ in _CALLER(fetch(record))):
                    gone.add(number)
        # Of a record that was written twice the later counts; without it the earlier would come back to life.
        for number, record in enumerate(self.records):
            later = self.by_uuid.get(record.uuid, number)
            if later != number and (later in gone or later in self.changes):
                gone.add(number)
        return gone

    def _first_behind(self) -> int | None:
        """The record that the notice's record stands before; None where it comes last.

        At the end of a history that is before the agent's last message: behind a user's record that comes last
        the client puts an answer of its own into the agent's mouth.
        """
        places, origins = self.history.places, self.history.origins
        start = self.plan.seam.message
        for number in range(start, len(places)):
            # Not a record that leaves, as thinking behind the seam may: what hung off it would pass the notice by.
            kept = [place.record for place in places[number] if place.record not in self.gone]
            if kept:
                return min(kept)
        for number in range(len(places) - 1, -1, -1):
            kept = [place.record for place in places[number] if place.record not in self.gone]
            if kept:
                return min(kept) if origins[number] == "agent" else None
        return None

    def lines(self) -> Iterator[bytes]:
        """The copy, line by line."""
        with self.history.log.reader() as fetch:
            for number, record in enumerate(self.records):
                if number == self.first_behind:
                    yield self._notice_record(fetch(record), record, self._parent(number))
                if number in self.gone:
                    continue
                line = self._record(number, record, fetch(record))
                if line is not None:
                    self.written += 1
                    yield line
            if self.notice and self.first_behind is None:
                leaf = self.records[self.history.branch.chain[-1]]
                yield self._notice_record(fetch(leaf), leaf, leaf.uuid, behind=True)
        self.written += 1
        yield b'{"type":"custom-title","customTitle":%s,"sessionId":"%s"}\n' % (
            spans.quote(self.title),
            self.new_id.encode(),
        )

    def _record(self, number: int, record: Record, raw: bytes) -> bytes | None:
        view = raw.decode("latin-1")
        members, _ = spans.members(view, 0)
        edits: list[tuple[int, int, bytes]] = []
        change = self.changes.get(number)
        for position, member in enumerate(members):
            if member.key in ("sessionId", "session_id") and view[member.start] == '"':
                edits.append((member.start, member.end, b'"%s"' % self.new_id.encode()))
            elif member.key == "parentUuid":
                link = self._link(number)
                if link is not None:
                    self.relinked += 1
                    edits.append((member.start, member.end, link))
            elif member.key == "leafUuid" and view[member.start] == '"':
                leaf = self._survivor(raw[member.start + 1 : member.end - 1].decode("latin-1"))
                if leaf is not None:
                    if not leaf:
                        return None
                    edits.append((member.start, member.end, b'"%s"' % leaf.encode()))
            elif change and member.key == "message":
                edits.append(_content(raw, view, member.start, change))
            elif change and change.drop and member.key == "toolUseResult":
                # It repeats a result that left.
                before = members[position - 1].end if position else member.at
                after = member.end if position or len(members) == 1 else members[1].at
                edits.append((before, after, b""))
        for start, end, new in reversed(edits):
            raw = raw[:start] + new + raw[end:]
        return raw.replace(b"\n", b" ") + b"\n" if b"\n" in raw else raw + b"\n"

    def _link(self, number: int) -> bytes | None:
        """The new literal of a record's parent; None where it stays as it is."""
        if number == self.first_behind:
            return b'"%s"' % self.notice.encode()
        found = self._survivor(self._parent(number))
        if found is None:
            guess = self.guessed.get(number)
            return b'"%s"' % guess.encode() if guess and guess != self.records[number].parent else None
        return b'"%s"' % found.encode() if found else b"null"

    def _parent(self, number: int) -> str:
        return self.guessed.get(number, self.records[number].parent)

    def _survivor(self, uuid_: str) -> str | None:
        """The nearest ancestor that stays ("" if none does), or None where that record itself stays."""
        number = self.by_uuid.get(uuid_)
        if number is None or number not in self.gone:
            return None
        seen: set[int] = set()
        while number is not None and number in self.gone and number not in seen:
            seen.add(number)
            uuid_ = self._parent(number)
            number = self.by_uuid.get(uuid_)
        return uuid_ if number is not None and number not in self.gone else ""

    def _notice_record(self, raw: bytes, near: Record, parent: str, *, behind: bool = False) -> bytes:
        """A user record with `isMeta`, which the client sends and does not show as the human's."""
        found = self._survivor(parent)
        parent = parent if found is None else found
        if not behind:
            parent = parent if parent in self.by_uuid else ""
        view = raw.decode("latin-1")
        copied = b"".join(
            b',"%s":%s' % (member.key.encode("latin-1"), raw[member.start : member.end])
            for member in spans.members(view, 0)[0]
            if member.key in ("isSidechain", "userType", "cwd", "version", "gitBranch")
        )
        self.written += 1
        when = _now() if behind or not near.timestamp else near.timestamp
        return b"".join(
            (
                b'{"parentUuid":',
                b'"%s"' % parent.encode() if parent else b"null",
                copied,
                b',"sessionId":"%s","type":"user","isMeta":true' % self.new_id.encode(),
                b',"message":{"role":"user","content":%s}' % spans.quote(self.plan.last_notice or ""),
                b',"uuid":"%s","timestamp":"%s"}\n' % (self.notice.encode(), when.encode()),
            )
        )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _changes(history: History, plan: Plan) -> dict[int, _Change]:
    """What the plan does, by record."""
    request = plan.request
    changes: dict[int, _Change] = {}

    def at(key: tuple[int, int]) -> tuple[_Change, int]:
        place = history.places[key[0]][key[1]]
        return changes.setdefault(place.record, _Change()), max(place.block, 0)

    for key in plan.drop:
        change, block = at(key)
        change.drop.add(block)
    for key in plan.speak:
        change, block = at(key)
        start, end = wire.text_span(request, request.messages[key[0]].blocks[key[1]])
        change.replace[block] = text_literal(request.body[start:end])
    for key, additions in plan.add.items():
        change, block = at(key)
        change.replace[block] = result_literal(request, request.messages[key[0]].blocks[key[1]], additions)[0]
    return changes


def _blocks(raw: bytes) -> int:
    """How many content blocks a record's message has."""
    view = raw.decode("latin-1")
    message = next(member for member in spans.members(view, 0)[0] if member.key == "message")
    content = next(member for member in spans.members(view, message.start)[0] if member.key == "content")
    return len(spans.elements(view, content.start)[0]) if view[content.start] == "[" else 1


def _content(raw: bytes, view: str, message: int, change: _Change) -> tuple[int, int, bytes]:
    """The edit of a message's content: what left is out, what was added is in."""
    content = next(member for member in spans.members(view, message)[0] if member.key == "content")
    if view[content.start] != "[":
        return content.start, content.end, change.replace.get(0, raw[content.start : content.end])
    kept = [
        change.replace.get(index, raw[start:end])
        for index, (start, end) in enumerate(spans.elements(view, content.start)[0])
        if index not in change.drop
    ]
    return content.start, content.end, b"[" + b",".join(kept) + b"]"


def reread(path: Path, notice: str, before: bytes) -> tuple[bytes, str | None]:
    """The wire body of a written copy without the notice's own message, and what that message says.

    Args:
        path: the copy.
        notice: uuid of the notice's record; "" for none.
        before: the original's body.
    """
    log = read(path)
    found = rebuilt(log)
    return without_notice(found, before, (lambda record: log.records[record].uuid == notice) if notice else None)
