"""The cut copy of a session: a new file beside the original, which the client resumes.

Law: the original is only read. An entry that stays keeps its bytes but for what the plan takes out of it or adds to it,
and for links to entries that left. Made up are a name, the notice of a cut without a checkpoint, in an entry that the
client itself marks as an extension's, and an edit of nothing, by which the client counts the context anew.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from ... import spans
from ...plan import Plan
from ...splice import result_literal
from ..files import write_file
from ..lines import Opened, unview
from ..model import Copy, Prove
from ..neutral import NeutralHistory, without_notice
from .entries import TARGETS, Entry, Log, read
from .history import history as rebuilt
from .history import wire_id

Edit = tuple[int, int, bytes]
"""Bytes `start` to `end` become these."""


def write(log: Log, history: NeutralHistory, plan: Plan, title: str, prove: Prove) -> Copy:
    """Write the cut copy of a session.

    Args:
        log, history: the session.
        plan: the decisions for `history.body`.
        title: the copy's name.
        prove: called with the finished temporary file, its session id, and the id of the notice's entry.

    Raises:
        InputError: the folder can't be written, or the disk is full.
    """
    source = log.path.resolve()
    new_id, now = uuid7(), _now()
    final = source.with_name(f"{now.replace(':', '-').replace('.', '-')}_{new_id}.jsonl")
    copying = _Copying(log, history, plan, new_id, title, now)
    size = write_file(final, copying.lines(), lambda path: prove(path, new_id, copying.notice))
    missed = max(0, source.stat().st_size - log.lines.size)
    return Copy(final, new_id, copying.notice, copying.written, len(copying.gone), copying.relinked, size, missed)


def reread(path: Path, notice: str, before: bytes) -> tuple[bytes, str | None]:
    """The body of a written copy without the notice's own message, and what that message says."""
    log = read(path)
    found = rebuilt(log)
    return without_notice(found, before, (lambda record: log.entries[record].id == notice) if notice else None)


@dataclass(slots=True)
class _Change:
    """What the plan does to the content of one entry, by index of the item in it.

    Attributes:
        drop: items that go.
        speak: reasoning whose words stay as a text.
        add: items, or the inside of a string, that are put behind a result's content.
        alone: reasoning went, which ids of its neighbours point at.
    """

    drop: set[int] = field(default_factory=set)
    speak: set[int] = field(default_factory=set)
    add: list[bytes] = field(default_factory=list)
    alone: bool = False


class _Copying:
    """The lines of the copy, one entry at a time."""

    def __init__(self, log: Log, history: NeutralHistory, plan: Plan, new_id: str, title: str, now: str) -> None:
        self.log, self.history, self.plan, self.new_id, self.title, self.now = log, history, plan, new_id, title, now
        self.entries = log.entries
        self.written = self.relinked = 0
        self.live = {place[0] for places in history.places for place in places}
        self.changes = _changes(log, history, plan)
        self.known = {entry.id for entry in self.entries}
        self.by_id = {entry.id: number for number, entry in enumerate(self.entries) if entry.id}
        self.freed: set[str] = set()  # file ids of calls that lose the id of their item
        self.gone = self._gone()
        self.notice = self._fresh() if plan.last_notice is not None else ""
        self.behind = self._behind() if self.notice else None
        self.numbers: dict[int, int] = {}  # of the entries that stay: their index in the copy
        self._number()

    def _fresh(self) -> str:
        """An id that no entry has."""
        while True:
            found = secrets.token_hex(4)
            if found not in self.known:
                self.known.add(found)
                return found

    def _gone(self) -> set[int]:
        """Entries that leave whole: all their content left, or they are about nothing but what left."""
        gone: set[int] = set()
        left: dict[int, set[str]] = {}
        with self.log.reader() as fetch:
            for number, change in self.changes.items():
                holder = self.log.edits.get(number, number)
                opened = Opened(fetch(self.entries[holder]))
                content = _content(opened, self.entries[holder])
                if change.drop:
                    result = self.entries[number].role == "toolResult"
                    if result or len(change.drop) >= max(1, len(opened.elements(content))):
                        gone.add(number)
                    blocks = [opened.members(start) for start, _ in opened.elements(content)]
                    calls = {
                        index: str(opened.value(block.get("id")))
                        for index, block in enumerate(blocks)
                        if opened.value(block.get("type")) == "toolCall"
                    }
                    left[number] = {id_ for index, id_ in calls.items() if index in change.drop}
                    if change.alone:
                        self.freed |= {id_ for index, id_ in calls.items() if index not in change.drop}
        for number, entry in enumerate(self.entries):
            # A result that is not sent, of a call that left: on a branch that was given up, or taken out by an edit.
            unsent = entry.answers and number not in self.live
            if unsent and unview(entry.answers) in left.get(self._maker(number), ()):
                gone.add(number)
        for number, entry in enumerate(self.entries):
            if entry.type == "context_edit" and self.by_id.get(entry.target) in gone:
                gone.add(number)
            # Of an entry that was written twice the later counts; without it the earlier would come back to life.
            later = self.by_id.get(entry.id, number)
            if later != number and entry.type != "session" and (later in gone or later in self.changes):
                gone.add(number)
        return gone

    def _maker(self, number: int) -> int:
        """The entry that makes the call which a result answers; -1 where none above it does."""
        answers, seen = self.entries[number].answers, set[int]()
        at = self.log.parents.get(number)
        while at is not None and at not in seen:
            if answers in self.entries[at].calls:
                return at
            seen.add(at)
            at = self.log.parents.get(at)
        return -1

    def _behind(self) -> int | None:
        """The entry that the notice stands before; None where it comes last."""
        for places in self.history.places[self.plan.seam.message :]:
            if places[0][0] not in self.gone:
                return places[0][0]
        return None

    def _number(self) -> None:
        for number in range(len(self.entries)):
            if number == self.behind:
                self.numbers[-1] = len(self.numbers)
            if number not in self.gone:
                self.numbers[number] = len(self.numbers)

    # ------------------------------------------------------------------------------------------- lines

    def lines(self) -> Iterator[bytes]:
        """The copy, line by line."""
        with self.log.reader() as fetch:
            for number, entry in enumerate(self.entries):
                if number == self.behind:
                    yield self._added(
                        "custom_message", self.notice, self._above(number), self._notice_members(), entry.timestamp
                    )
                if number not in self.gone:
                    self.written += 1
                    yield self._entry(number, entry, Opened(fetch(entry)))
        leaf = self.log.chain[-1]
        last = self.entries[leaf].id if leaf not in self.gone else self._above(leaf)
        if self.notice and self.behind is None:
            yield self._added("custom_message", self.notice, last, self._notice_members())
            last = self.notice
        named, edit = self._fresh(), self._fresh()
        yield self._added("session_info", named, last, b'"name":%s' % spans.quote(self.title))
        # The client reckons its context by what the provider counted for the last answer, which is the uncut history;
        # behind an edit it counts what is there. This one is about the name above, which is never sent.
        yield self._added("context_edit", edit, named, b'"targetId":"%s","replacement":null' % named.encode())

    def _notice_members(self) -> bytes:
        content = spans.quote(self.plan.last_notice or "")
        return b'"customType":"cutline","content":%s,"display":true' % content

    def _added(self, type_: str, id_: str, parent: str, members: bytes, timestamp: str = "") -> bytes:
        self.written += 1
        link = _quoted(parent) if parent else b"null"
        when = _quoted(timestamp or self.now)
        head = b'{"type":"%s","id":"%s","parentId":%s' % (type_.encode(), id_.encode(), link)
        return b'%s,"timestamp":%s,%s}\n' % (head, when, members)

    def _above(self, number: int) -> str:
        """The id of the nearest ancestor that stays; "" if none does."""
        seen: set[int] = set()
        at = self.log.parents.get(number)
        while at is not None and at in self.gone and at not in seen:
            seen.add(at)
            at = self.log.parents.get(at)
        return self.entries[at].id if at is not None and at not in self.gone else ""

    def _entry(self, number: int, entry: Entry, opened: Opened) -> bytes:
        members = opened.members()
        edits: list[Edit] = []
        if entry.type == "session":
            edits = self._header(members) if number == self.log.header else []
        else:
            edits += self._links(number, entry, members)
            target = self.by_id.get(entry.target) if entry.type == "context_edit" else None
            owner = number if target is None else target
            if self.log.edits.get(owner, owner) == number and owner in self.changes:
                edits += _contents(opened, _content(opened, entry), self.changes[owner])
            if unview(entry.answers) in self.freed:
                answers = opened.inside(members["message"])["toolCallId"]
                edits.append((answers.start, answers.end, spans.quote(wire_id(entry.answers))))
        raw = opened.raw
        for start, end, new in sorted(edits, reverse=True):
            raw = raw[:start] + new + raw[end:]
        return raw.replace(b"\n", b" ") + b"\n" if b"\n" in raw else raw + b"\n"

    def _header(self, members: dict[str, spans.Member]) -> list[Edit]:
        source = spans.quote(os.fspath(self.log.path.resolve()))
        edits: list[Edit] = [(members["id"].start, members["id"].end, b'"%s"' % self.new_id.encode())]
        if "timestamp" in members:
            edits.append((members["timestamp"].start, members["timestamp"].end, b'"%s"' % self.now.encode()))
        if "parentSession" in members:
            edits.append((members["parentSession"].start, members["parentSession"].end, source))
        elif self.log.version > 1:
            last = max(member.end for member in members.values())
            edits.append((last, last, b',"parentSession":' + source))
        return edits

    def _links(self, number: int, entry: Entry, members: dict[str, spans.Member]) -> list[Edit]:
        edits: list[Edit] = []
        if "parentId" in members and self.log.version > 1:
            if number == self.behind:
                edits.append((members["parentId"].start, members["parentId"].end, _quoted(self.notice)))
            elif self.log.parents.get(number) in self.gone:
                above = self._above(number)
                edits.append((members["parentId"].start, members["parentId"].end, _quoted(above) if above else b"null"))
                self.relinked += 1
        if entry.type == "compaction" and entry.kept >= 0:
            kept = members["firstKeptEntryIndex"]
            index = b"%d" % self._first_kept(number, entry.kept)
            if index != b"%d" % entry.kept:
                edits.append((kept.start, kept.end, index))
        elif entry.type in TARGETS and self.by_id.get(entry.target) is not None:
            target = self.by_id[entry.target]
            member = members[TARGETS[entry.type]]
            if entry.type == "compaction":
                found = self._first_kept(number, target)
                new = self.notice if found == self.numbers.get(-1) else self.entries[self._at(found)].id
            else:
                new = (self._above(target) or "root") if target in self.gone else entry.target
            if new != entry.target:
                edits.append((member.start, member.end, _quoted(new)))
        return edits

    def _first_kept(self, compaction: int, target: int) -> int:
        """The index in the copy of the first entry that stays from `target` on; the compaction's own if none does."""
        path: list[int] = []
        at = self.log.parents.get(compaction)
        while at is not None and at != target and at not in path[-1:]:
            path.append(at)
            at = self.log.parents.get(at)
        for number in [target, *reversed(path)] if at == target else []:
            if number == self.behind:
                return self.numbers[-1]
            if number not in self.gone:
                return self.numbers[number]
        return self.numbers[target] if at != target and target in self.numbers else self.numbers[compaction]

    def _at(self, index: int) -> int:
        return next(number for number, found in self.numbers.items() if found == index)


def _changes(log: Log, history: NeutralHistory, plan: Plan) -> dict[int, _Change]:
    """What the plan does, by entry."""
    request = plan.request
    changes: dict[int, _Change] = {}

    def at(key: tuple[int, int]) -> tuple[_Change, int, int]:
        number, item = history.places[key[0]][key[1]]
        return changes.setdefault(number, _Change()), number, item

    for key, why in plan.drop.items():
        change, number, item = at(key)
        change.drop.add(item)
        change.alone |= why == "thinking" and "responses" in log.entries[number].api
    for key in plan.speak:
        change, _, item = at(key)
        change.speak.add(item)
    for key, additions in plan.add.items():
        change, _, _ = at(key)
        literal, places = result_literal(request, request.messages[key[0]].blocks[key[1]], additions)
        change.add += [literal[start:end] for start, end, _ in places]
    return changes


def _content(opened: Opened, entry: Entry) -> spans.Member | None:
    """An entry's content, or what an edit puts in the place of one."""
    members = opened.members()
    if entry.type == "context_edit":
        return opened.inside(members.get("replacement")).get("content")
    return opened.inside(members.get("message")).get("content") if entry.type == "message" else members.get("content")


def _contents(opened: Opened, content: spans.Member | None, change: _Change) -> list[Edit]:
    """The edits of a content: what left is out, what was added is in."""
    if content is None:
        return []
    if opened.is_text(content):
        return [(content.end - 1, content.end - 1, b"".join(change.add))] if change.add else []
    kept: list[bytes] = []
    for index, (start, end) in enumerate(opened.elements(content)):
        if index in change.speak:
            words = opened.literal(opened.members(start)["thinking"])
            kept.append(b'{"type":"text","text":%s}' % words)
        elif index not in change.drop:
            kept.append(_freed(opened, start, end) if change.alone else opened.raw[start:end])
    kept += [added.lstrip(b",") for added in change.add]
    return [(content.start, content.end, b"[" + b",".join(kept) + b"]")]


def _freed(opened: Opened, start: int, end: int) -> bytes:
    """An item whose reasoning left, without the id of its own: the provider asks for both or for neither."""
    block = opened.members(start)
    raw = opened.raw
    for key in ("id", "textSignature"):
        member = block.get(key)
        if member is None or not opened.is_text(member):
            continue
        value = opened.value(member)
        new = spans.quote(value.split("|")[0]) if key == "id" else spans.quote(_unsigned(value))
        return raw[start : member.start] + new + raw[member.end : end]
    return raw[start:end]


def _unsigned(signature: str) -> str:
    """The signature of a text without the id of its item: what else it says (its phase) stays."""
    try:
        found = json.loads(signature) if signature.startswith("{") else None
    except (ValueError, RecursionError):
        found = None
    return json.dumps({**found, "id": ""}, separators=(",", ":")) if isinstance(found, dict) else ""


def _quoted(text: str) -> bytes:
    """The literal of a value that was scanned in a latin-1 view."""
    return spans.quote(unview(text))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def uuid7() -> str:
    """An id like the client's own: its first half is the time, so that names sort by it."""
    value = (time.time_ns() // 1_000_000 & (1 << 48) - 1) << 80 | 7 << 76 | secrets.randbits(12) << 64
    value |= 0b10 << 62 | secrets.randbits(62)
    text = f"{value:032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
