"""Converse bodies (WIRE_RULES 5) as the proof reads them. Law: facts only, and the proof's own (see `foreign`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import Unreadable
from . import shape
from .tree import Node

if TYPE_CHECKING:
    from .foreign import Foreign

CONVERSE_FILES = (b"image", b"document", b"video", b"audio", b"searchResult", b"guardContent")
CONVERSE_CONTROL = (b"toolAddition", b"toolRemoval", b"citationsContent")
CONVERSE = (b"text", b"toolUse", b"toolResult", b"reasoningContent", b"cachePoint", *CONVERSE_FILES, *CONVERSE_CONTROL)


def translate(body: Foreign, index: int, item: Node) -> None:
    """One item of the history."""
    role, content = body.string(item.get(b"role")), item.get(b"content")
    if role not in ("user", "assistant", "system") or content is None or content.kind != "[":
        raise Unreadable("a message without role or content", item.start)
    body.part()
    blocks = [block for block in content.elements if block.get(b"cachePoint") is None]
    if role == "system" or not blocks:
        body.say("assistant" if role == "assistant" else "user", shape.control(body.raw(item)), index, item)
        return
    for block in blocks:
        body.say(*_converse_block(body, block, role), index, block, b"content")


def _converse_block(body: Foreign, block: Node, role: str) -> tuple[str, bytes]:
    raw = body.raw(block)
    key = next((name for name, _ in block.members if name in CONVERSE), b"")
    inner = block.get(key)
    if inner is None or (key == b"text" and inner.kind != '"'):
        return role, shape.unknown(block.members[0][0].decode() if block.members else "block", raw)
    if key == b"text":
        return role, shape.text(body.raw(inner), shape.also(body, block, (b"text",)))
    if key == b"toolUse":
        id_, name = inner.get(b"toolUseId"), inner.get(b"name")
        if id_ is None or name is None:
            raise Unreadable("a toolUse without id or name", block.start)
        own = body.string(inner.get(b"type")) == "server_tool_use"
        given = inner.get(b"input")
        arguments = body.raw(given) if given is not None else b"{}"
        return "assistant", shape.call(body.string(id_), body.string(name), arguments, own=own)
    if key == b"toolResult":
        id_ = inner.get(b"toolUseId")
        if id_ is None or id_.kind != '"':
            raise Unreadable("a toolResult without id", block.start)
        if role == "assistant":
            return role, shape.ran(body.string(id_), body.raw(inner))
        return "user", _converse_result(body, inner, body.string(id_))
    if key == b"reasoningContent":
        told = inner.get(b"reasoningText")
        words = told.get(b"text") if told is not None else None
        signed = told.get(b"signature") if told is not None else None
        mark = body.raw(signed) if signed is not None and signed.kind == '"' else b'""'
        return role, shape.thought(body.raw(words) if words is not None and words.kind == '"' else raw, mark)
    if key in CONVERSE_FILES and role == "user":
        return role, shape.attached(raw)
    return role, shape.control(raw)


def _converse_result(body: Foreign, inner: Node, id_: str) -> bytes:
    content, parts = inner.get(b"content"), []
    for item in content.elements if content is not None else ():
        whole, raw = body.within(item), body.raw(item)
        text, given = whole.get(b"text"), whole.get(b"json")
        if text is not None and text.kind == '"':
            parts.append(shape.text(raw[text.start : text.end]))
        elif given is not None:
            parts.append(shape.text(shape.quoted(raw[given.start : given.end])))
        else:
            parts.append(shape.plain(whole.members[0][0].decode() if whole.members else "block", "raw", raw))
    return shape.result(id_, b"[%s]" % b",".join(parts), body.string(inner.get(b"status")) == "error")
