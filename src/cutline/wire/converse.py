"""Bedrock Converse: read into the neutral shape, and written from a plan.

Law: one pass, never repairs; any doubt raises `Unreadable`. Neighbours of one role are merged, and a cache point stays
only behind the block that it marked (docs/wire.md, 5).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

from .. import spans
from ..errors import Unreadable
from ..spans import Object
from . import neutral
from .anthropic import reading
from .editing import Added, Edit, Inside, Item, absent, adding, left_out, merged
from .neutral import Native, Neutral, Place, Settings, Source
from .shapes import FLAT, PLAIN, STRING, Usual, list_of, shape

NAME = "converse"
MERGES = frozenset(("user", "assistant"))
STRICT = False
STRIPS = False
_FILES = ("image", "document", "video", "audio", "searchResult", "guardContent")
_CONTROL = ("toolAddition", "toolRemoval", "citationsContent")
_MARK = "cachePoint"
_KEYS = frozenset(("text", "toolUse", "toolResult", "reasoningContent", _MARK, *_FILES, *_CONTROL))


_SHAPES = {
    "call": shape({"toolUse": {"toolUseId": PLAIN, "name": PLAIN, "input": FLAT}}),
    "result": shape({"toolResult": {"toolUseId": PLAIN, "content": ({"text": STRING},), "status?": PLAIN}}),
    "text": shape({"text": STRING}),
    "thought": shape({"reasoningContent": {"reasoningText": {"text": STRING, "signature?": STRING}}}),
    "mark": shape({_MARK: FLAT}),
}
usual = list_of(NAME, "content", '"(?:user|assistant)"', _SHAPES)


def looks(usual: Sequence[Usual], others: Sequence[Object]) -> bool:
    """Whether a body is of this format: its blocks have no type, and are named by their one member."""
    lists = [content for item in others if type(content := item.held.get("content")) is list]
    return bool(usual or any(lists)) and all(_is_block(block) for content in lists for block in content)


def _is_block(value: Any) -> bool:
    keys = {key for key, _ in value} if type(value) is tuple else set()
    return "type" not in keys and not _KEYS.isdisjoint(keys)


def settings(source: Source) -> Settings:
    """What a body says beside its history."""
    asked = source.value("additionalModelRequestFields")
    thinking = asked.get("thinking") if isinstance(asked, dict) else None
    manual = isinstance(thinking, dict) and thinking.get("type") == "enabled"
    return Settings(source.text("modelId"), _tools(source.value("toolConfig")), "enabled" if manual else "")


def read(source: Source, settings: Settings) -> Native:
    """Read a body. Raises Unreadable for the first doubt, with its byte offset."""
    build = _Reading(source)
    source.each(NAME, build.usual, build.message)
    return source.native(NAME, build.roles, build.out, settings)


def _tools(given: Any) -> list[str]:
    listed = given.get("tools") if isinstance(given, dict) else None
    specs = [one.get("toolSpec") for one in listed or () if isinstance(one, dict)]
    return [spec["name"] for spec in specs if isinstance(spec, dict) and isinstance(spec.get("name"), str)]


class _Reading:
    """The neutral body while it grows."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.out = Neutral()
        self.roles: list[str] = []

    def usual(self, number: int, item: tuple[str, list[tuple[str, re.Match[str]]]]) -> None:
        """One message of the usual shape."""
        (spoken, blocks), body, out = item, self.source.body, self.out
        if not spoken:
            raise Unreadable("a message without role", self.source.items[number][0])
        role: neutral.Role = "assistant" if spoken == "assistant" else "user"
        self.roles.append(role)
        out.part()
        if all(kind == "mark" for kind, _ in blocks):
            out.control(role, self.source.item(number), Place(number))
            return
        for part, (kind, found) in enumerate(blocks):
            place = Place(number, "content", part)
            if kind == "call":
                start, end = found.span("toolUse_input")
                out.call(found["toolUse_toolUseId"][1:-1], found["toolUse_name"][1:-1], body[start:end], place)
            elif kind == "result" and role == "assistant":
                start, end = found.span("toolResult")
                out.serving(found["toolResult_toolUseId"][1:-1], body[start:end], place)
            elif kind == "result":
                id_, (start, end) = found["toolResult_toolUseId"][1:-1], found.span("toolResult_content_text")
                content = b"[%s]" % neutral.text(body[start:end])
                says, failed = reading.of_literal(self.source.view, start, end), found["toolResult_status"] == '"error"'
                out.result(id_, content, says, place, error=failed)
            elif kind == "text":
                start, end = found.span("text")
                out.text(role, body[start:end], place)
            elif kind == "thought":
                start, end = found.span("reasoningContent_reasoningText_text")
                first, last = found.span("reasoningContent_reasoningText_signature")
                signed = scanstring(self.source.view, first + 1, True)[0] if first >= 0 else ""
                out.thinking(role, body[start:end], place, signed, body[first:last])

    def message(self, number: int, item: Object) -> None:
        """One message: a neutral message of its own."""
        if item.twins:
            raise Unreadable("a key stands twice in a message", item.start)
        role = item.text("role")
        if role not in ("user", "assistant", "system") or type(item.held.get("content")) is not list:
            raise Unreadable("a message without role or content", item.start)
        self.roles.append(role)
        self.out.part()
        blocks = [(part, held) for part, held in enumerate(item.list("content")) if _MARK not in held.held]
        if role == "system" or not blocks:
            speaker: neutral.Role = "assistant" if role == "assistant" else "user"
            self.out.control(speaker, self.source.item(number), Place(number))
            return
        for part, held in blocks:
            self.block("assistant" if role == "assistant" else "user", Place(number, "content", part), held)

    def block(self, role: neutral.Role, place: Place, block: Object) -> None:
        """One block, named by the member that says what it is."""
        raw = self.source.raw
        key = next((key for key in block.held if key in _KEYS), "")
        if key == "text" and (words := block.string(key)):
            self.out.text(role, raw(words), place, absent(self.source.body, block, (key,)))
        elif key == "toolUse":
            self.call(place, block)
        elif key == "toolResult":
            self.result(role, place, block)
        elif key == "reasoningContent":
            held = block.inner(key)
            text = held.inner("reasoningText") if held else None
            words, signed = (text.string("text"), text.string("signature")) if text else (None, None)
            signature = (text.held["signature"], raw(signed)) if text and signed else ()
            self.out.thinking(role, raw(words) if words else raw(block.literal), place, *signature)
        elif key in _FILES and role == "user":
            self.out.attached(role, raw(block.literal), place)
        elif key in _FILES or key in _CONTROL:
            self.out.control(role, raw(block.literal), place)
        else:
            self.out.unknown(role, next(iter(block.held), "block"), raw(block.literal), place)

    def call(self, place: Place, block: Object) -> None:
        """A call, the client's or the provider's own."""
        made = block.inner("toolUse")
        id_, name = (made.text("toolUseId"), made.text("name")) if made else (None, None)
        if made is None or id_ is None or name is None:
            raise Unreadable("a toolUse without toolUseId or name", block.place("toolUse"))
        arguments = self.source.raw(made.span("input")) if "input" in made.held else b"{}"
        make = self.out.served if made.held.get("type") == "server_tool_use" else self.out.call
        make(id_, name, arguments, place)

    def result(self, role: neutral.Role, place: Place, block: Object) -> None:
        """A result; of the provider's own call in the agent's message."""
        answer = block.inner("toolResult")
        id_ = answer.text("toolUseId") if answer else None
        if answer is None or id_ is None:
            raise Unreadable("a toolResult without toolUseId", block.place("toolResult"))
        if role == "assistant":
            self.out.serving(id_, self.source.raw(block.span("toolResult")), place)
            return
        if type(answer.held.get("content", [])) is not list:
            raise Unreadable("a toolResult's content is no list", answer.start)
        parts = [self.returned(part) for part in answer.list("content")]
        self.out.results(id_, parts, place, error=answer.held.get("status") == "error")

    def returned(self, part: Object) -> neutral.Part:
        """A part of a result: its text, its JSON as text, or the whole of it."""
        words = part.string("text")
        if words:
            return self.source.raw(words), "text", part.held["text"]
        if "json" in part.held:
            text = self.source.raw(part.span("json")).decode("utf-8", "surrogatepass")
            return spans.quote(text), "text", text
        return self.source.raw(part.literal), next(iter(part.held), "block"), None


# ------------------------------------------------------------------------------------------------- writing


def edits(native: Native, item: Item, inside: Inside, added: Mapping[Place, Sequence[Added]]) -> list[Edit]:
    """What changes in a message (see `formats.Format`)."""
    content = spans.find(native.view, native.items[item.number][0], "content")
    assert content is not None, "the reader has checked it"
    found = spans.elements(native.view, content.start)[0]
    pieces = {piece.places[0].part: piece for piece in item.pieces}
    made: list[Edit] = []
    kept = set(pieces)
    for part, (at, end) in enumerate(found):
        piece = pieces.get(part)
        if piece is None:
            # A cache point marks what stands before it, and may not follow reasoning.
            if (
                part - 1 in kept
                and spans.find(native.view, at, _MARK) is not None
                and not _thinks(native, found[part - 1])
            ):
                kept.add(part)
        elif piece.spoken:
            made.append(Edit(at, end, b'{"text":"%s"}' % inside(piece)))
        elif len(piece.places) > 1:
            words = spans.find(native.view, at, "text")
            assert words is not None, "only texts are joined"
            made.append(Edit(words.start + 1, words.end - 1, inside(piece)))
        elif piece.places[0] in added:
            result = spans.find(native.view, at, "toolResult")
            assert result is not None, "only results get something"
            held = spans.find(native.view, result.start, "content")
            given = added[piece.places[0]]
            made += adding(native, result.end, held, given, piece.places[0], b'{"text":"%s"}', "content")
    return made + left_out(found, [part for part in range(len(found)) if part not in kept])


def _thinks(native: Native, span: tuple[int, int]) -> bool:
    return spans.find(native.view, span[0], "reasoningContent") is not None


def folds(native: Native, items: Sequence[Item]) -> list[bool]:
    """No server of this format is stricter than the format."""
    return [False] * len(items)


def merge(native: Native, items: Sequence[Item], literals: Sequence[bytes]) -> bytes:
    """Messages of one role as one: their blocks in order, behind the last one's leading reasoning."""
    return merged(literals, "content", "reasoningContent")
