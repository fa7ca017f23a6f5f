"""OpenAI Chat Completions, and the servers that speak it: read into the neutral shape, and written from a plan.

Law: one pass, never repairs; any doubt raises `Unreadable`. Calls, results and reasoning leave by their members; what
stays keeps its bytes (docs/wire.md, 2).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from .. import spans
from ..errors import Unreadable
from ..spans import Object
from . import neutral
from .anthropic import reading
from .anthropic.signature import WITH_CALL
from .editing import Added, Edit, Inside, Item, absent, adding, edited, without
from .neutral import Native, Neutral, Place, Settings, Source
from .shapes import PLAIN, STRING, Usual, one_of, shape

NAME = "openai_chat"
MERGES: frozenset[str] = frozenset()
STRICT = True
STRIPS = False
THOUGHTS = ("reasoning_content", "reasoning", "reasoning_details", "thinking")
"""Members of an assistant's message that hold its reasoning, by server (docs/wire.md, 2.3)."""
_TEXTS = ("text", "input_text", "output_text")
_FILES = ("image_url", "input_audio", "file", "image", "video_url", "audio_url", "document_url")
_CLAUDE = "claude"
_PART = b'{"type":"text","text":"%s"}'


_WORDS = (STRING, ({"type": '"text"', "text": STRING},))
_CALL = {"id": PLAIN, "type": '"function"', "index?": r"\d", "function": {"name": PLAIN, "arguments": STRING}}
_SHAPES = {
    "call": shape(
        {
            "role": '"assistant"',
            "content?": ["null", *_WORDS],
            "reasoning_content?": STRING,
            "refusal?": "null",
            "tool_calls": (_CALL,),
        }
    ),
    "result": shape({"role": '"tool"', "tool_call_id": PLAIN, "name?": PLAIN, "content": [*_WORDS]}),
    "words": shape({"role": '"(?:user|assistant)"', "content": [*_WORDS], "refusal?": "null"}),
}
usual = one_of(NAME, _SHAPES)


def looks(usual: Sequence[Usual], others: Sequence[Object]) -> bool:
    """Whether a body is of this format, by its members and those of its messages."""
    own = ("tool_calls", "function_call", "tool_call_id", *THOUGHTS)
    if any(one.held.get("role") == "developer" or not one.held.keys().isdisjoint(own) for one in others):
        return True
    if any(item.found[0] != "words" for item in usual):
        return True
    contents = (content for one in others if type(content := one.held.get("content")) is list)
    parts = (dict(part) for content in contents for part in content if type(part) is tuple)
    return any(part.get("type") in _FILES[:3] or type(part.get("thinking")) is list for part in parts)


def settings(source: Source) -> Settings:
    """What a body says beside its history."""
    model = source.text("model")
    return Settings(model, _tools(source.value("tools")), "" if _CLAUDE in model.lower() else "kept")


def read(source: Source, settings: Settings) -> Native:
    """Read a body. Raises Unreadable for the first doubt, with its byte offset."""
    build = _Reading(source)
    source.each(NAME, build.usual, build.message)
    return source.native(NAME, build.roles, build.out, settings)


def _tools(declared: Any) -> list[str]:
    found = []
    for tool in declared if isinstance(declared, list) else ():
        inner = tool.get("function") or tool.get("custom") if isinstance(tool, dict) else None
        if isinstance(inner, dict) and isinstance(inner.get("name"), str):
            found.append(inner["name"])
    return found


class _Reading:
    """The neutral body while it grows."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.out = Neutral()
        self.roles: list[str] = []
        self.waiting: list[str] = []  # ids given to calls that have none, in order, until they are answered
        self.given = 0

    def usual(self, number: int, item: tuple[str, re.Match[str]]) -> None:
        """One message of a usual shape."""
        kind, found = item
        self.out.part()
        if kind == "result":
            self.roles.append("tool")
            start, end = found.span("content")
            listed = self.source.view[start] == "["
            if listed:
                start, end = found.span("content_text")
            id_, content = found["tool_call_id"][1:-1], self.source.body[start:end]
            if id_ in self.waiting:
                self.waiting.remove(id_)
            says = reading.of_literal(self.source.view, start, end)
            self.out.result(id_, b"[%s]" % neutral.text(content) if listed else content, says, Place(number))
        elif kind == "call":
            self.roles.append("assistant")
            start, end = found.span("reasoning_content")
            if start >= 0:
                thought = self.source.body[start:end]
                self.out.thinking("assistant", thought, Place(number, "reasoning_content"), WITH_CALL)
            start, end = found.span("content")
            if end - start > 2 and self.source.view[start] != "n":  # beside a call an empty text is none
                self.words(number, "assistant", found)
            id_, name = found["tool_calls_id"][1:-1], found["tool_calls_function_name"][1:-1]
            self.waiting = [id_]
            start, end = found.span("tool_calls_function_arguments")
            arguments = neutral.arguments(self.source.body[start:end])
            self.out.call(id_, name, arguments, Place(number, "tool_calls", 0))
        else:
            role: neutral.Role = "user" if found["role"] == '"user"' else "assistant"
            self.roles.append(role)
            self.waiting = [] if role == "assistant" else self.waiting
            self.words(number, role, found)

    def words(self, number: int, role: neutral.Role, found: re.Match[str]) -> None:
        """The words of a message of a usual shape: a string, or a list of one text."""
        start, end = found.span("content")
        part = -1
        if self.source.view[start] == "[":
            part, (start, end) = 0, found.span("content_text")
        self.out.text(role, self.source.body[start:end], Place(number, "content", part))

    def message(self, number: int, item: Object) -> None:
        """One message: a neutral message of its own."""
        if item.twins:
            raise Unreadable("a key stands twice in a message", item.start)
        role = item.text("role")
        if role is None:
            raise Unreadable("a message without role", item.start)
        self.roles.append(role)
        self.out.part()
        if role == "assistant":
            self.waiting = []
            self.assistant(number, item)
        elif role in ("tool", "function"):
            self.answer(number, item)
        elif role == "user":
            self.content(number, item, "user")
        elif role in ("system", "developer"):
            self.out.control("user", self.source.item(number), Place(number))
        else:
            raise Unreadable(f"a message of the unknown role {role!r}", item.start)

    def assistant(self, number: int, item: Object) -> None:
        """Reasoning, then words, then calls: as they were made."""
        before, held, raw = len(self.out.places), item.held, self.source.raw
        for key in THOUGHTS:
            if key in held and item.view[item.place(key)] in '"[{':
                signed = WITH_CALL if key == "reasoning_content" else ""
                self.out.thinking("assistant", raw(item.span(key)), Place(number, key), signed)
        self.content(number, item, "assistant")
        if refusal := item.string("refusal"):
            self.out.text("assistant", raw(refusal), Place(number, "refusal"), b"refusal")
        if type(held.get("audio")) is tuple:
            self.out.control("assistant", raw(item.span("audio")), Place(number, "audio"))
        for part, made in enumerate(item.list("tool_calls")):
            self.call(Place(number, "tool_calls", part), made)
        if only := item.inner("function_call"):
            self.call(Place(number, "function_call"), only)
        if len(self.out.places) == before:
            self.out.control("assistant", self.source.item(number), Place(number))

    def call(self, place: Place, made: Object) -> None:
        """One call; a server that gives no ids pairs by order.

        Its arguments are a string of JSON, an object (Ollama), or the free text of a custom tool.
        """
        inner = made.inner("function") or made.inner("custom") or made
        name, id_ = inner.text("name"), made.text("id")
        if name is None:
            raise Unreadable("a tool call without a name", made.start)
        id_ = id_ or self.give()
        self.waiting.append(id_)
        key = next((key for key in ("arguments", "input") if key in inner.held), "")
        raw = self.source.raw(inner.span(key)) if key else b"{}"
        self.out.call(id_, name, neutral.arguments(raw) if raw[:1] == b'"' else raw, place)

    def give(self) -> str:
        """An id for what has none: its number among those (DESIGN: address)."""
        self.given += 1
        return str(self.given - 1)

    def answer(self, number: int, item: Object) -> None:
        """A tool's message."""
        id_ = item.text("tool_call_id")
        if id_ is None and "tool_call_id" in item.held:
            raise Unreadable("a tool_call_id that is no string", item.start)
        if not id_:
            id_ = self.waiting[0] if self.waiting else self.give()
        if id_ in self.waiting:
            self.waiting.remove(id_)
        content, words = item.held.get("content"), item.string("content")
        if words:
            self.out.result(id_, self.source.raw(words), reading.of_content(content), Place(number))
        elif type(content) is list:
            parts = [neutral.part_of(self.source, part) for part in item.list("content")]
            self.out.results(id_, parts, Place(number))
        else:
            self.out.result(id_, b"null", "", Place(number))

    def content(self, number: int, item: Object, role: neutral.Role) -> None:
        """The words of a person or of the agent."""
        content, calls, words = item.held.get("content"), item.held.get("tool_calls"), item.string("content")
        others = self.others(item) if role == "assistant" else b""
        if words:
            called = type(calls) is list and bool(calls)
            if words[1] - words[0] > 2 or not called:  # beside a call an empty text is none
                self.out.text(role, self.source.raw(words), Place(number, "content"), others)
        elif type(content) is list and content:
            for part, held in enumerate(item.list("content")):
                self.part(Place(number, "content", part), role, held, others)
        elif role == "user":
            self.out.control(role, self.source.item(number), Place(number))

    def part(self, place: Place, role: neutral.Role, part: Object, others: bytes) -> None:
        """One part of a content list."""
        type_, raw = neutral.type_of(part), self.source.raw
        text, refusal = part.string("text"), part.string("refusal")
        if type_ in _TEXTS and text:
            rest = absent(self.source.body, part, ("type", "text", "cache_control"))
            self.out.text(role, raw(text), place, others + rest)
        elif type_ == "refusal" and refusal:
            self.out.text(role, raw(refusal), place, b"refusal")
        elif type_ in ("thinking", "reasoning") and role == "assistant":
            self.out.thinking("assistant", raw(part.literal), place)
        elif type_ in _FILES:
            self.out.attached(role, raw(part.literal), place)
        else:
            self.out.unknown(role, type_, raw(part.literal), place)

    def others(self, item: Object) -> bytes:
        """A message's members that must be equal where its words are joined with another's."""
        return absent(self.source.body, item, ("role", "content", "tool_calls", "function_call", *THOUGHTS))


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
    first, second = (absent(native.body, native.object(item.number), but) for item in (one, other))
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
