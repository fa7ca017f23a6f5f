"""One record taken apart into the blocks that it holds.

Law: reading only, and one numbering: the blocks of a record are counted in the order in which they stand there, by one
function, for the history that is built and for the copy that is written. Nothing that is kept is decoded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ... import spans
from ...spans import Member
from ...wire import neutral as shapes
from .records import Record

# What a call's arguments stand in, by type; its name, where it has none of its own, is the type without "_call".
_CALLS = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "local_shell_call": "action",
    "tool_search_call": "arguments",
}
_ANSWERS = {"function_call_output": "output", "custom_tool_call_output": "output", "tool_search_output": "tools"}
# The provider's own: call and result in one item. What they returned, where the item holds it.
_SERVED = {"web_search_call": "", "image_generation_call": "result"}
_SUMMARIES = ("compaction", "context_compaction", "compaction_summary")
# Written by older versions, sent by none.
_UNSENT = frozenset(("ghost_snapshot", "compaction_trigger", "other"))
_WORDS = ("input_text", "output_text", "text")
_FILES = ("input_image", "input_file", "input_audio")


class Item(NamedTuple):
    """An item of a history as it stands in a record.

    Attributes:
        type, role: its type, and the role of a message.
        start, end: its literal in the record.
        members: its members, the last of each key.
        first: the number of its first block in the record.
        parts: spans of the parts of a message's content, or of the content where that is one string.
    """

    type: str
    role: str
    start: int
    end: int
    members: dict[str, Member]
    first: int
    parts: tuple[tuple[int, int], ...]

    @property
    def blocks(self) -> int:
        """How many blocks it is: the parts of a message, else one."""
        return len(self.parts) if self.type == "message" else 1


class Opened:
    """A record's bytes taken apart.

    Attributes:
        raw, view: the bytes, and their latin-1 view.
        items: the items of the history that it holds; none for most records.
    """

    def __init__(self, record: Record, raw: bytes) -> None:
        self.raw, self.view = raw, raw.decode("latin-1")
        self.items = list(self._items(record))

    def _items(self, record: Record) -> Iterator[Item]:
        first = 0
        for start, end in self._spans(record):
            item = self._item(start, end, first)
            if is_sent(item.type):
                yield item
            first += max(item.blocks, 1)

    def _spans(self, record: Record) -> list[tuple[int, int]]:
        if record.type == "response_item":
            if record.bare:
                return [(0, len(self.raw))]
            found = spans.find(self.view, 0, "payload")
            return [(found.start, found.end)] if found and self.view[found.start] == "{" else []
        if record.type == "compacted":
            payload = spans.find(self.view, 0, "payload")
            kept = spans.find(self.view, payload.start, "replacement_history") if payload else None
            if kept is not None and self.view[kept.start] == "[":
                return [span for span in spans.elements(self.view, kept.start)[0] if self.view[span[0]] == "{"]
        return []

    def _item(self, start: int, end: int, first: int) -> Item:
        members = {member.key: member for member in spans.members(self.view, start)[0]}
        type_ = self.word(members, "type") or ("message" if "role" in members else "")
        parts: tuple[tuple[int, int], ...] = ()
        content = members.get("content")
        if type_ in ("message", "agent_message") and content is not None:
            if self.view[content.start] == "[":
                parts = tuple(spans.elements(self.view, content.start)[0])
            elif self.view[content.start] == '"':
                parts = ((content.start, content.end),)
        return Item(type_, self.word(members, "role"), start, end, members, first, parts)

    def literal(self, member: Member | None) -> bytes:
        """The bytes of a member's value; none where there is no such member."""
        return self.raw[member.start : member.end] if member else b""

    def word(self, members: dict[str, Member], key: str) -> str:
        """The value of a member that is a string; "" for anything else."""
        member = members.get(key)
        found = spans.decode(self.literal(member)) if member and self.view[member.start] == '"' else ""
        return found if isinstance(found, str) else ""

    def member(self, *path: str) -> Member | None:
        """A member of the record by the keys that lead to it; None where there is none."""
        found: Member | None = None
        at = 0
        for key in path:
            found = spans.find(self.view, at, key)
            if found is None:
                return None
            at = found.start
        return found

    def words(self, part: tuple[int, int]) -> bytes | None:
        """The string literal of a content part that is a text; None for any other part."""
        start, end = part
        if self.view[start] == '"':
            return self.raw[start:end]
        if self.view[start] != "{":
            return None
        members = {member.key: member for member in spans.members(self.view, start)[0]}
        type_ = self.word(members, "type")
        key = "refusal" if type_ == "refusal" else "text"
        text = members.get(key)
        if type_ in (*_WORDS, "refusal") and text is not None and self.view[text.start] == '"':
            return self.literal(text)
        return None

    def is_file(self, part: tuple[int, int]) -> bool:
        """Whether a content part is an image, a file or a sound."""
        found = spans.find(self.view, part[0], "type")
        return found is not None and self.raw[found.start + 1 : found.end - 1].decode("latin-1") in _FILES

    def answer(self, item: Item) -> bytes:
        """A result's content: the output's literal, or a list of blocks made of its parts."""
        held = item.members.get(_ANSWERS[item.type])
        if held is not None and self.view[held.start] == '"':
            return self.literal(held)
        if item.type == "tool_search_output" or held is None or self.view[held.start] != "[":
            return _quoted(self.literal(held)) if held else b'""'
        blocks: list[bytes] = []
        for part in spans.elements(self.view, held.start)[0]:
            text = self.words(part)
            raw = self.raw[part[0] : part[1]]
            if text is not None:
                blocks.append(shapes.text(text))
            elif self.is_file(part):
                blocks.append(b'{"type":"image","source":{"type":"client","data":%s}}' % _quoted(raw))
            else:
                blocks.append(shapes.other("part", raw))
        return b"[%s]" % b",".join(blocks)


def call_of(opened: Opened, item: Item) -> tuple[str, bytes]:
    """A call's name as on the wire, and its arguments' raw JSON."""
    if item.type in _SERVED:
        return item.type, opened.literal(item.members.get("action")) or b"{}"
    held = opened.literal(item.members.get(_CALLS[item.type])) or b"{}"
    name = item.type if item.type == "tool_search_call" else opened.word(item.members, "name")
    return name or item.type.removesuffix("_call"), shapes.arguments(held) if held[:1] == b'"' else held


def served(opened: Opened, item: Item) -> bytes:
    """What the provider's own call returned, as a literal; an empty one where the item does not hold it."""
    held = opened.literal(item.members.get(_SERVED[item.type]))
    return held if held[:1] == b'"' else b'""'


def call_id(opened: Opened, item: Item) -> str:
    """The id that ties a call to its result; "" where there is none."""
    return opened.word(item.members, "call_id") or opened.word(item.members, "id")


def is_sent(type_: str) -> bool:
    """Whether the client sends items of a type; it keeps some for itself."""
    return type_ not in _UNSENT


def is_call(type_: str) -> bool:
    """Whether an item is a call."""
    return type_ in _CALLS or type_ in _SERVED


def is_served(type_: str) -> bool:
    """Whether an item is call and result in one."""
    return type_ in _SERVED


def is_answer(type_: str) -> bool:
    """Whether an item is a call's result."""
    return type_ in _ANSWERS


def is_summary(type_: str) -> bool:
    """Whether an item stands for everything before it, in a form that the provider alone can read."""
    return type_ in _SUMMARIES


def _quoted(raw: bytes) -> bytes:
    return spans.quote(raw.decode("utf-8", "surrogatepass"))
