"""What a cut copy of a session holds.

Law: a record that stays keeps its bytes but for ids and links, which must be new, and what the plan takes out of it or
adds to it. What repeats a removed call (the diffs that a question's answers made) leaves with it. Made up are the title
and, in a cut without a checkpoint, the notice, in a message that the client itself marks as not typed by anybody.
"""

from __future__ import annotations

import secrets
import string
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from ... import spans
from ...errors import InputError
from ...plan import Plan
from ...splice import result_literal
from ..neutral import NeutralHistory
from .history import output_path
from .literals import Edit, Opened, edited
from .live import compaction
from .records import Log, Message, Part

_MARKERS = {"step-start", "step-finish"}
_LETTERS = string.digits + string.ascii_uppercase + string.ascii_lowercase
_NO_TOKENS = b'{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}}'


class Ids:
    """New ids by the client's own scheme: a time and a counter in hexadecimal, then fourteen letters; they ascend."""

    def __init__(self) -> None:
        self.now = time.time_ns() // 1_000_000
        self._last = self.now << 12

    def message(self) -> str:
        """The next message's id."""
        return self._next("msg_")

    def part(self) -> str:
        """The next part's id."""
        return self._next("prt_")

    def session(self) -> str:
        """A session's id: these descend, so that the newest comes first."""
        return f"ses_{~self._last & 0xFFFFFFFFFFFF:012x}{self._letters()}"

    def _next(self, kind: str) -> str:
        self._last += 1
        return f"{kind}{self._last & 0xFFFFFFFFFFFF:012x}{self._letters()}"

    def _letters(self) -> str:
        return "".join(secrets.choice(_LETTERS) for _ in range(14))


@dataclass(slots=True)
class _Change:
    """What the plan does to one message, by index of the part."""

    drop: set[int] = field(default_factory=set)
    speak: set[int] = field(default_factory=set)
    filled: dict[int, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NewPart:
    """A part of the copy: its id, its JSON object, and the part that it was (None for the notice)."""

    id: str
    raw: bytes
    source: Part | None


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message of the copy.

    Attributes:
        id, raw: as in `NewPart`.
        created: milliseconds since 1970.
        parts: its parts.
        source: the message that it was, and that one's index; None and -1 for the notice.
        number: the index.
    """

    id: str
    raw: bytes
    created: int
    parts: list[NewPart]
    source: Message | None
    number: int


class Copying:
    """The records of the copy of one session.

    Attributes:
        id: the copy's session id.
        title: its title.
        now: the time of writing, milliseconds since 1970.
        notice: id of the notice's message; "" for none.
        removed, relinked: records that left whole, and records whose parent had left.
    """

    def __init__(self, log: Log, history: NeutralHistory, plan: Plan, title: str) -> None:
        self.log, self.history, self.plan, self.title = log, history, plan, title
        ids = Ids()
        self.id, self.now = ids.session(), ids.now
        self.removed = self.relinked = 0
        self.changes = _changes(history, plan)
        self.gone = self._gone()
        self.live = {place[0] for places in history.places for place in places}
        self.notice_before = self._notice_before() if plan.last_notice is not None else None
        self.notice = ""
        self.ids: dict[int, str] = {}
        self.part_ids: dict[tuple[int, int], str] = {}
        for number, one in enumerate(log.messages):
            if number == self.notice_before:
                self.notice = ids.message()
            if number not in self.gone:
                self.ids[number] = ids.message()
            self.part_ids |= {(number, index): ids.part() for index in range(len(one.parts))}
        if self.notice_before == len(log.messages):
            self.notice = ids.message()
        self.notice_part = ids.part()
        self.full = next((n for n in sorted(self.live - self.gone, reverse=True) if self._finished(n)), -1)

    def _finished(self, number: int) -> bool:
        one = self.log.messages[number]
        return one.role == "assistant" and bool(Opened(one.raw).word("finish"))

    def _gone(self) -> set[int]:
        """Messages of which nothing is left but the markers of their steps."""
        return {
            number
            for number, change in self.changes.items()
            if change.drop
            and all(
                index in change.drop or self.log.open(part.raw).word("type") in _MARKERS
                for index, part in enumerate(self.log.messages[number].parts)
            )
        }

    def _notice_before(self) -> int:
        """The message that the notice stands before; one too many where it comes last."""
        for places in self.history.places[self.plan.seam.message :]:
            if places[0][0] not in self.gone:
                return places[0][0]
        return max(self.live, default=-1) + 1

    # ------------------------------------------------------------------------------------- messages

    def messages(self) -> Iterator[NewMessage]:
        """The copy's messages, in order."""
        for number, one in enumerate(self.log.messages):
            if number == self.notice_before:
                yield self._notice(number)
            if number in self.gone:
                self.removed += 1 + len(one.parts)
            else:
                yield self._message(number, one)
        if self.notice_before == len(self.log.messages):
            yield self._notice(len(self.log.messages))

    def _message(self, number: int, one: Message) -> NewMessage:
        opened = Opened(one.raw)
        edits = self._own(opened, self.ids[number])
        if one.parent:
            parent = self._kept(one.parent, number)
            edits += opened.put(spans.quote(parent), "parentID") if parent else []
        if number == self.full:
            # By this the client reckons how full the context is, and it is the count of the uncut history.
            edits += opened.put(_NO_TOKENS, "tokens")
        if one.role == "user" and opened.elements("summary", "diffs") and self._lost_calls(number):
            edits += opened.put(b"[]", "summary", "diffs")
        change = self.changes.get(number, _Change())
        parts = []
        for index, part in enumerate(one.parts):
            if index in change.drop:
                self.removed += 1
            else:
                parts.append(self._part(number, index, part, change))
        return NewMessage(self.ids[number], edited(one.raw, edits), one.created, parts, one, number)

    def _own(self, opened: Opened, id: str) -> list[Edit]:
        return opened.put(spans.quote(id), "id") + opened.put(spans.quote(self.id), "sessionID")

    def _part(self, number: int, index: int, part: Part, change: _Change) -> NewPart:
        opened = self.log.open(part.raw)
        id_ = self.part_ids[number, index]
        edits = self._own(opened, id_) + opened.put(spans.quote(self.ids[number]), "messageID")
        name = self.log.names.get((number, index))
        if name:
            edits += opened.put(spans.quote(name), "callID")
        if index in change.speak:
            edits += opened.put(b'"text"', "type") + opened.without("metadata")
        if index in change.filled:
            edits += opened.put(change.filled[index], *output_path(opened)) + opened.without(
                "state", "time", "compacted"
            )
        if opened.word("tail_start_id"):
            tail = self._tail(opened.word("tail_start_id"), number)
            edits += opened.put(spans.quote(tail), "tail_start_id") if tail else opened.without("tail_start_id")
        return NewPart(id_, edited(opened.raw, edits), part)

    def _kept(self, id: str, number: int) -> str:
        """The new id of the message that was asked in; of the nearest person's before it where that one left."""
        asked = [n for n in range(number - 1, -1, -1) if self.log.messages[n].role == "user"]
        place = next((n for n in asked if self.log.messages[n].id == id), None)
        if place not in self.ids:
            place = next((n for n in asked if n in self.ids), None)
            self.relinked += place is not None
        return "" if place is None else self.ids[place]

    def _tail(self, id: str, number: int) -> str:
        """The new id of the first message that a compaction keeps; "" where none of them is left."""
        start = next((n for n in range(number) if self.log.messages[n].id == id), number)
        for place in range(start, number):
            if place == self.notice_before:
                return self.notice
            if place in self.ids:
                return self.ids[place]
        return ""

    def _lost_calls(self, number: int) -> bool:
        """Whether answers to a question lost something."""
        id_ = self.log.messages[number].id
        for place in range(number + 1, len(self.log.messages)):
            one = self.log.messages[place]
            if one.role == "user" and compaction(self.log, place) is None:
                return False
            if one.parent == id_ and place in self.changes and self.changes[place].drop:
                return True
        return False

    def _notice(self, before: int) -> NewMessage:
        """A user message whose text the client marks as its own; who asked which model is as in the nearest one."""
        asked = [n for n, one in enumerate(self.log.messages) if one.role == "user"]
        asker = min(asked, key=lambda n: (n >= before, abs(n - before)), default=-1)
        created = self._between(before)
        whose = b""
        if asker >= 0:
            opened = Opened(self.log.messages[asker].raw)
            for key in ("agent", "model", "variant"):
                literal = opened.literal(key)
                whose += b',"%s":%s' % (key.encode(), literal) if literal else b""
        own = self.log.kind != "database"
        ids = b'"id":%s,"sessionID":%s,' % (spans.quote(self.notice), spans.quote(self.id)) if own else b""
        raw = b'{%s"role":"user","time":{"created":%d}%s}' % (ids, created, whose)
        links = b'"id":%s,"sessionID":%s,"messageID":%s,' % (
            spans.quote(self.notice_part),
            spans.quote(self.id),
            spans.quote(self.notice),
        )
        text = b'"type":"text","text":%s,"synthetic":true' % spans.quote(self.plan.last_notice or "")
        part = NewPart(self.notice_part, b"{%s%s}" % (links if own else b"", text), None)
        return NewMessage(self.notice, raw, created, [part], None, -1)

    def _between(self, before: int) -> int:
        """A time for what stands before a message: one of its own if there is room; some versions sort by it alone."""
        times = [one.created for one in self.log.messages]
        behind = times[before - 1] if before else 0
        if before == len(times):
            return behind + 1 if behind else self.now
        return max(behind, times[before] - 1)

    # -------------------------------------------------------------------------------------- session

    def revert(self) -> tuple[str, str] | None:
        """The new ids of the message, and the part ("" for none), that a person went back to; None for none."""
        to, at = self.log.head.word("revert", "messageID"), self.log.head.word("revert", "partID")
        place = next((n for n, one in enumerate(self.log.messages) if to and one.id == to), None)
        if place is None or place not in self.ids:
            return None
        parts = self.log.messages[place].parts
        index = next((i for i, part in enumerate(parts) if at and part.id == at), None)
        return self.ids[place], "" if index is None else self.part_ids[place, index]

    def info(self) -> bytes:
        """What is recorded of the session itself, as a JSON object of the client's."""
        head = self.log.head
        edits = head.put(spans.quote(self.id), "id") + head.give(spans.quote(self.title), "title")
        edits += head.put(b"%d" % self.now, "time", "updated") + head.put(b"[]", "summary", "diffs")
        for key in ("parentID", "share"):
            edits += head.without(key)
        back = self.revert()
        if back is None:
            edits += head.without("revert")
        else:
            edits += head.put(spans.quote(back[0]), "revert", "messageID")
            edits += head.put(spans.quote(back[1]), "revert", "partID")
        return edited(head.raw, edits)


def _changes(history: NeutralHistory, plan: Plan) -> dict[int, _Change]:
    """What the plan does, by message."""
    request = plan.request
    changes: dict[int, _Change] = {}

    def at(key: tuple[int, int]) -> tuple[_Change, int]:
        place, index = history.places[key[0]][key[1]]
        return changes.setdefault(place, _Change()), index

    for key in plan.drop:
        change, index = at(key)
        change.drop.add(index)
    for key in plan.speak:
        change, index = at(key)
        change.speak.add(index)
    for key, additions in plan.add.items():
        change, index = at(key)
        literal = result_literal(request, request.messages[key[0]].blocks[key[1]], additions)[0]
        content = Opened(literal).literal("content")
        if content[:1] != b'"':
            raise InputError("a result with attachments can't be given the notice; cut elsewhere with --at")
        change.filled[index] = content
    return changes
