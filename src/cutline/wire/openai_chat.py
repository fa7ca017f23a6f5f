"""OpenAI Chat Completions, and the servers that speak it: read into the neutral shape, and written from a plan.

Law: one pass, never repairs; any doubt raises `Unreadable`. Calls, results and reasoning leave by their members; what
stays keeps its bytes (docs/wire.md, 2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .. import spans
from ..errors import Unreadable
from ..spans import Member
from . import neutral
from .anthropic.signature import WITH_CALL
from .editing import Added, Edit, Inside, Item, absent, adding, edited, element_spans, without
from .neutral import Native, Neutral, Place

NAME = "openai_chat"
LIST = "messages"
MERGES: frozenset[str] = frozenset()
STRICT = True
STRIPS = False
THOUGHTS = ("reasoning_content", "reasoning", "reasoning_details", "thinking")
"""Members of an assistant's message that hold its reasoning, by server (docs/wire.md, 2.3)."""
_TEXTS = ("text", "input_text", "output_text")
_FILES = ("image_url", "input_audio", "file", "image", "video_url", "audio_url", "document_url")
_CLAUDE = "claude"
_PART = b'{"type":"text","text":"%s"}'


def looks(messages: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a body is of this format, by its members and those of its messages."""
    own = ("tool_calls", "function_call", "tool_call_id", *THOUGHTS)
    if any(message.get("role") == "developer" or any(key in message for key in own) for message in messages):
        return True
    contents = [message["content"] for message in messages if isinstance(message.get("content"), list)]
    parts = [part for content in contents for part in content if isinstance(part, dict)]
    return any(part.get("type") in _FILES[:3] or isinstance(part.get("thinking"), list) for part in parts)


def read(body: bytes, view: str, top: dict[str, Member]) -> Native:
    """Read a body.

    Args:
        body, view: the bytes and their view.
        top: the members of the body, each once.

    Raises:
        Unreadable: the first doubt and its byte offset.
    """
    items = element_spans(view, top[LIST].start)
    build = _Reading(body, view)
    for number, (start, _) in enumerate(items):
        build.message(number, start)
    model = spans.decode(body[top["model"].start : top["model"].end]) if "model" in top else ""
    model = model if isinstance(model, str) else ""
    out = build.out.done(model, _tools(body, view, top), thinking="" if _CLAUDE in model.lower() else "kept")
    return Native(NAME, body, view, items, build.roles, build.out.places, out)


def _tools(body: bytes, view: str, top: dict[str, Member]) -> list[str]:
    if "tools" not in top or view[top["tools"].start] != "[":
        return []
    found = []
    for tool in spans.decode(body[top["tools"].start : top["tools"].end]):
        inner = tool.get("function") or tool.get("custom") if isinstance(tool, dict) else None
        if isinstance(inner, dict) and isinstance(inner.get("name"), str):
            found.append(inner["name"])
    return found


class _Reading:
    """The neutral body while it grows."""

    def __init__(self, body: bytes, view: str) -> None:
        self.body, self.view = body, view
        self.out = Neutral()
        self.roles: list[str] = []
        self.waiting: list[str] = []  # ids given to calls that have none, in order, until they are answered
        self.given = 0

    def message(self, number: int, start: int) -> None:
        """One message: a neutral message of its own."""
        found, end = spans.members(self.view, start)
        members = {member.key: member for member in found}
        if len(members) != len(found):
            raise Unreadable("a key stands twice in a message", start)
        role = self.text_of(members.get("role"), start, "a message without role")
        raw = self.body[start:end]
        self.roles.append(role)
        self.out.part()
        if role == "assistant":
            self.waiting = []
            self.assistant(number, start, members, raw)
        elif role in ("tool", "function"):
            self.answer(number, members, start)
        elif role == "user":
            self.content(number, members, "user", raw)
        elif role in ("system", "developer"):
            self.out.add("user", neutral.control(raw), Place(number))
        else:
            raise Unreadable(f"a message of the unknown role {role!r}", start)

    def assistant(self, number: int, start: int, members: dict[str, Member], raw: bytes) -> None:
        """Reasoning, then words, then calls: as they were made."""
        before = len(self.out.places)
        calls = members.get("tool_calls")
        for key in THOUGHTS:
            if key in members and self.view[members[key].start] in '"[{':
                mark = spans.quote(WITH_CALL) if key == "reasoning_content" else b'""'
                block = neutral.thinking(self.raw(members[key]), signature=mark)
                self.out.add("assistant", block, Place(number, key))
        self.content(number, members, "assistant", raw)
        if "refusal" in members and self.view[members["refusal"].start] == '"':
            block = neutral.text(self.raw(members["refusal"]), b"refusal")
            self.out.add("assistant", block, Place(number, "refusal"))
        if "audio" in members and self.view[members["audio"].start] == "{":
            self.out.add("assistant", neutral.control(self.raw(members["audio"])), Place(number, "audio"))
        if calls is not None and self.view[calls.start] == "[":
            for part, (at, end) in enumerate(element_spans(self.view, calls.start)):
                self.call(Place(number, "tool_calls", part), at, end)
        if "function_call" in members and self.view[members["function_call"].start] == "{":
            member = members["function_call"]
            self.call(Place(number, "function_call"), member.start, member.end)
        if len(self.out.places) == before:
            self.out.add("assistant", neutral.control(raw), Place(number))

    def call(self, place: Place, at: int, end: int) -> None:
        """One call; a server that gives no ids pairs by order."""
        value = self.decoded(at, end)
        inner = next((value[key] for key in ("function", "custom") if isinstance(value.get(key), dict)), value)
        name, id_ = inner.get("name"), value.get("id")
        if not isinstance(name, str):
            raise Unreadable("a tool call without a name", at)
        if not isinstance(id_, str) or not id_:
            id_ = self.give()
        self.waiting.append(id_)
        self.out.add("assistant", neutral.call(id_, name, self.arguments(at)), place)

    def give(self) -> str:
        """An id for what has none: its number among those (DESIGN: address)."""
        self.given += 1
        return str(self.given - 1)

    def arguments(self, at: int) -> bytes:
        """A call's arguments: a string of JSON, an object (Ollama), or the free text of a custom tool."""
        for key in ("function", "custom"):
            inner = spans.find(self.view, at, key)
            if inner is not None and self.view[inner.start] == "{":
                at = inner.start
                break
        found = spans.find(self.view, at, "arguments") or spans.find(self.view, at, "input")
        if found is None:
            return b"{}"
        raw = self.raw(found)
        return neutral.arguments(raw) if raw[:1] == b'"' else raw

    def answer(self, number: int, members: dict[str, Member], start: int) -> None:
        """A tool's message."""
        id_ = ""
        if "tool_call_id" in members:
            id_ = self.text_of(members["tool_call_id"], start, "a tool_call_id that is no string")
        if not id_:
            id_ = self.waiting[0] if self.waiting else self.give()
        if id_ in self.waiting:
            self.waiting.remove(id_)
        content = members.get("content")
        self.out.add("user", neutral.result(id_, self.result(content)), Place(number))

    def result(self, content: Member | None) -> bytes:
        """A result's content in the neutral shape."""
        if content is None or self.view[content.start] not in '"[':
            return b"null"
        if self.view[content.start] == '"':
            return self.raw(content)
        parts = []
        for at, end in element_spans(self.view, content.start):
            text = spans.find(self.view, at, "text")
            if text is not None and self.view[text.start] == '"':
                parts.append(neutral.text(self.raw(text)))
            else:
                parts.append(neutral.other(_type(self.decoded(at, end)), self.body[at:end]))
        return b"[%s]" % b",".join(parts)

    def content(self, number: int, members: dict[str, Member], role: neutral.Role, raw: bytes) -> None:
        """The words of a person or of the agent."""
        content = members.get("content")
        others = self.others(members) if role == "assistant" else b""
        if content is None or self.view[content.start] not in '"[':
            if role == "user":
                self.out.add(role, neutral.control(raw), Place(number))
            return
        if self.view[content.start] == '"':
            calls = members.get("tool_calls")
            called = (
                calls is not None and self.view[calls.start] == "[" and bool(spans.elements(self.view, calls.start)[0])
            )
            if content.end - content.start > 2 or not called:  # beside a call an empty text is none
                self.out.add(role, neutral.text(self.raw(content), others), Place(number, "content"))
            return
        parts = element_spans(self.view, content.start)
        for part, (at, end) in enumerate(parts):
            self.part(Place(number, "content", part), role, at, end, others)
        if not parts and role == "user":
            self.out.add(role, neutral.control(raw), Place(number))

    def part(self, place: Place, role: neutral.Role, at: int, end: int, others: bytes) -> None:
        """One part of a content list."""
        value, raw = self.decoded(at, end), self.body[at:end]
        type_ = _type(value)
        text = spans.find(self.view, at, "text")
        refusal = spans.find(self.view, at, "refusal")
        if type_ in _TEXTS and text is not None and self.view[text.start] == '"':
            rest = absent(self.body, self.view, at, ("type", "text", "cache_control"))
            self.out.add(role, neutral.text(self.raw(text), others + rest), place)
        elif type_ == "refusal" and refusal is not None and self.view[refusal.start] == '"':
            self.out.add(role, neutral.text(self.raw(refusal), b"refusal"), place)
        elif type_ in ("thinking", "reasoning") and role == "assistant":
            self.out.add(role, neutral.thinking(raw), place)
        elif type_ in _FILES:
            self.out.add(role, neutral.attached(raw), place)
        else:
            self.out.add(role, neutral.unknown(type_, raw), place)

    def others(self, members: dict[str, Member]) -> bytes:
        """A message's members that must be equal where its words are joined with another's."""
        left = sorted(
            key for key in members if key not in ("role", "content", "tool_calls", "function_call", *THOUGHTS)
        )
        told = [(key, self.raw(members[key])) for key in left]
        return b",".join(key.encode() + b":" + raw for key, raw in told if raw not in (b"null", b"[]"))

    def raw(self, member: Member) -> bytes:
        return self.body[member.start : member.end]

    def decoded(self, at: int, end: int) -> dict[str, Any]:
        value = spans.decode(self.body[at:end])
        if not isinstance(value, dict):
            raise Unreadable("an object is expected", at)
        return value

    def text_of(self, member: Member | None, at: int, fault: str) -> str:
        if member is None or self.view[member.start] != '"':
            raise Unreadable(fault, at)
        return str(spans.decode(self.raw(member)))


def _type(value: dict[str, Any]) -> str:
    type_ = value.get("type")
    return type_ if isinstance(type_, str) else "part"


# ------------------------------------------------------------------------------------------------- writing


def edits(native: Native, item: Item, inside: Inside, added: Mapping[Place, Sequence[Added]]) -> list[Edit]:
    """What changes in a message: what left, words that others were joined to, text that a result gets.

    Args:
        native: the body.
        item: what of the message stays.
        inside: the inside of the string literal of a piece's words.
        added: what results get (docs/wire.md, 10).
    """
    start, end = native.items[item.number]
    members = {member.key: member for member in spans.members(native.view, start)[0]}
    whole = Place(item.number)
    if whole in added:
        return adding(native, end, members.get("content"), added[whole], whole, _PART, "content")
    kept = {piece.places[0].member for piece in item.pieces}
    found: list[Edit] = []
    gone = [key for key in (*THOUGHTS, "function_call") if key in members and key not in kept]
    calls = members.get("tool_calls")
    if calls is not None and native.view[calls.start] == "[":
        found += edited(native, calls, item, inside)
        gone += [] if "tool_calls" in kept else ["tool_calls"]
    content = members.get("content")
    if content is not None and native.view[content.start] in '"[' and "content" in kept:
        found += edited(native, content, item, inside)
    return without(members, gone, found)


def folds(native: Native, items: Sequence[Item]) -> list[bool]:
    """For each message, whether the agent's words before it go into it, so that no two of its messages are neighbours.

    Not into a message with calls that a human's follows: strict servers don't count it, so words in it would leave two
    of the human's in a row. Nor where something of the first message would be lost.
    """
    human = False
    heard: list[bool] = []
    for item in reversed(items):
        calls = any(piece.places[0].member in ("tool_calls", "function_call") for piece in item.pieces)
        heard.append(human and calls)
        if native.roles[item.number] == "user":
            human = True
        elif native.roles[item.number] == "assistant" and not calls:
            human = False
    pairs = zip(items, items[1:], heard[-2::-1], strict=False)
    return [False, *(not before and _fold(native, one, other) for one, other, before in pairs)]


def _fold(native: Native, one: Item, other: Item) -> bool:
    """Whether two messages are the agent's, the first before the seam and of nothing but words, and both alike."""
    if native.roles[one.number] != "assistant" or native.roles[other.number] != "assistant" or not one.early:
        return False
    if any(piece.places[0].member not in ("content", "refusal") for piece in one.pieces):
        return False
    but = ("role", "content", "tool_calls", "function_call", *THOUGHTS)
    starts = [native.items[item.number][0] for item in (one, other)]
    first, second = (absent(native.body, native.view, start, but) for start in starts)
    return first == second


def merge(native: Native, items: Sequence[Item], literals: Sequence[bytes]) -> bytes:
    """Assistant messages as one, for servers that want roles to alternate: the last one's members, all words in front.

    The words become a list of text parts, so that no word of two messages is run together.
    """
    parts: list[bytes] = []
    for literal in literals:
        content = spans.find(literal.decode("latin-1"), 0, "content")
        raw = literal[content.start : content.end] if content else b"null"
        if raw[:1] == b'"' and len(raw) > 2:
            parts.append(b'{"type":"text","text":%s}' % raw)
        elif raw[:1] == b"[":
            inner = spans.elements(raw.decode("latin-1"), 0)[0]
            parts += [raw[start:end] for start, end in inner]
    last = literals[-1]
    content = spans.find(last.decode("latin-1"), 0, "content")
    whole = b"[%s]" % b",".join(parts)
    if content is None:
        return last[:-1] + b',"content":' + whole + b"}"
    return last[: content.start] + whole + last[content.end :]
