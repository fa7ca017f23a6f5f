"""Chat Completions bodies (WIRE_RULES 2) as the proof reads them. Law: facts only, the proof's own (see `foreign`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import Unreadable
from . import shape
from .tree import Node

if TYPE_CHECKING:
    from .foreign import Foreign

REASONING = (b"reasoning_content", b"reasoning", b"reasoning_details", b"thinking")
CHAT_FILES = ("image_url", "input_audio", "file", "image", "video_url", "audio_url", "document_url")


def translate(body: Foreign, index: int, item: Node) -> None:
    """One item of the history."""
    role = body.string(item.get(b"role"))
    content = item.get(b"content")
    body.part()
    if role in ("system", "developer"):
        body.say("user", shape.control(body.raw(item)), index, item)
    elif role == "user":
        _chat_words(body, index, item, content, "user", b"")
    elif role in ("tool", "function"):
        id_ = body.string(item.get(b"tool_call_id"))
        if not id_:
            id_ = body.waiting[0][1] if body.waiting else body.give()
        body.waiting = [one for number, one in enumerate(body.waiting) if number != _first(body.waiting, id_)]
        if content is not None and content.kind == '"':
            told = body.raw(content)
        else:
            told = shape.texts(body, content) if content is not None and content.kind == "[" else b"null"
        body.say("user", shape.result(id_, told), index, item)
    elif role == "assistant":
        body.waiting = []
        before = len(body.homes)
        for key in REASONING:
            node = item.get(key)
            if node is not None and node.kind in '"[{':
                mark = b'"cutline:with-call"' if key == b"reasoning_content" else b'""'
                body.say("assistant", shape.thought(body.raw(node), mark), index, node, key)
        others = shape.also(body, item, (b"role", b"content", b"tool_calls", b"function_call", *REASONING))
        _chat_words(body, index, item, content, "assistant", others)
        refusal, audio = item.get(b"refusal"), item.get(b"audio")
        if refusal is not None and refusal.kind == '"':
            body.say("assistant", shape.text(body.raw(refusal), b"refusal"), index, refusal, b"refusal")
        if audio is not None and audio.kind == "{":
            body.say("assistant", shape.control(body.raw(audio)), index, audio, b"audio")
        calls, single = item.get(b"tool_calls"), item.get(b"function_call")
        for call in calls.elements if calls is not None else ():
            _chat_call(body, index, call, b"tool_calls")
        if single is not None and single.kind == "{":
            _chat_call(body, index, single, b"function_call")
        if len(body.homes) == before:
            body.say("assistant", shape.control(body.raw(item)), index, item)
    else:
        raise Unreadable("a message of an unknown role", item.start)


def _first(waiting: list[tuple[str, str]], id_: str) -> int:
    return next((number for number, one in enumerate(waiting) if one[1] == id_), -1)


def _chat_call(body: Foreign, index: int, call: Node, key: bytes) -> None:
    inner = next((node for name in (b"function", b"custom") if (node := call.get(name)) and node.kind == "{"), call)
    if (name := inner.get(b"name")) is None or name.kind != '"':
        raise Unreadable("a call without a name", call.start)
    id_ = body.string(call.get(b"id")) or body.give()
    body.waiting.append(("", id_))
    given = inner.get(b"arguments") or inner.get(b"input")
    body.say("assistant", shape.call(id_, body.string(name), shape.arguments(body, given)), index, call, key)


def _chat_words(body: Foreign, index: int, item: Node, content: Node | None, role: str, others: bytes) -> None:
    if content is None or content.kind not in '"[' or (content.kind == "[" and not content.elements):
        if role == "user":
            body.say(role, shape.control(body.raw(item)), index, item)
        return
    if content.kind == '"':
        called = any(node is not None and node.elements for node in [item.get(b"tool_calls")])
        if body.raw(content) != b'""' or not called:  # beside a call an empty text is none
            body.say(role, shape.text(body.raw(content), others), index, content, b"content")
        return
    for part in content.elements:
        type_ = body.string(part.get(b"type")) or "part"
        text, refusal, raw = part.get(b"text"), part.get(b"refusal"), body.raw(part)
        if type_ in ("text", "input_text", "output_text") and text is not None and text.kind == '"':
            block = shape.text(body.raw(text), others + shape.also(body, part, (b"type", b"text", b"cache_control")))
        elif type_ == "refusal" and refusal is not None and refusal.kind == '"':
            block = shape.text(body.raw(refusal), b"refusal")
        elif type_ in ("thinking", "reasoning") and role == "assistant":
            block = shape.thought(raw)
        else:
            block = shape.attached(raw) if type_ in CHAT_FILES else shape.unknown(type_, raw)
        body.say(role, block, index, part, b"content")
