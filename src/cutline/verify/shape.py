"""The blocks of the one shape that the contract is applied to, made of a foreign body's literals.

Law: the proof's own spelling of that shape (`foreign`); words are copied as they stand.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ..errors import Unreadable
from .tree import Node, decode, read

if TYPE_CHECKING:
    from .foreign import Foreign


def quote(text: str) -> bytes:
    """The JSON literal of a text."""
    return json.dumps(text).encode("ascii")


def quoted(raw: bytes) -> bytes:
    """The JSON literal of bytes as text."""
    return quote(raw.decode("utf-8", "surrogatepass"))


def text(literal: bytes, also: bytes = b"") -> bytes:
    """Words; `also` is what else belongs to them."""
    return b'{"type":"text","text":%s%s}' % (literal, b',"also":' + quoted(also) if also else b"")


def thought(raw: bytes, signature: bytes = b'""') -> bytes:
    """Reasoning."""
    literal = raw if raw.startswith(b'"') else quoted(raw)
    return b'{"type":"thinking","thinking":%s,"signature":%s}' % (literal, signature)


def call(
    id_: str, name: str, arguments: bytes, *, own: bool = False, caller: bytes = b"", signed: bool = False
) -> bytes:
    """A call; `own` is one that the provider carried out itself, `signed` one that signs its step."""
    type_ = b"server_tool_use" if own else b"tool_use"
    by = b',"caller":' + caller if caller else b""
    by += b',"signed":true' if signed else b""
    return b'{"type":"%s","id":%s,"name":%s,"input":%s%s}' % (type_, quote(id_), quote(name), arguments, by)


def result(id_: str, content: bytes, error: bool = False) -> bytes:
    """A client's answer to a call."""
    flag = b',"is_error":true' if error else b""
    return b'{"type":"tool_result","tool_use_id":%s,"content":%s%s}' % (quote(id_), content, flag)


def ran(id_: str, raw: bytes) -> bytes:
    """What the provider's own call gave."""
    return b'{"type":"web_search_tool_result","tool_use_id":%s,"content":%s}' % (quote(id_), quoted(raw))


def plain(type_: str, key: str, raw: bytes) -> bytes:
    """A block of some type that holds a literal as text."""
    return b'{"type":%s,"%s":%s}' % (quote(type_), key.encode(), quoted(raw))


def control(raw: bytes) -> bytes:
    """What the harness put there."""
    return plain("tool_addition", "raw", raw)


def attached(raw: bytes) -> bytes:
    """What a human attached."""
    return plain("image", "source", raw)


def unknown(type_: str, raw: bytes) -> bytes:
    """A block of a type that is not known."""
    return plain(f"unknown:{type_}", "raw", raw)


def also(body: Foreign, node: Node, but: tuple[bytes, ...]) -> bytes:
    """What two texts must share to be joined: their other members, sorted; null and an empty list don't count."""
    # Sorted as text is, not as bytes are.
    held = sorted(((name.decode("utf-8", "surrogatepass"), body.raw(value)) for name, value in node.members))
    told = [
        name.encode("utf-8", "surrogatepass") + b":" + raw
        for name, raw in held
        if name.encode("utf-8", "surrogatepass") not in but and raw not in (b"null", b"[]")
    ]
    return b",".join(told)


def arguments(body: Foreign, node: Node | None) -> bytes:
    """Arguments: JSON as it stands, or what a string of them holds where that is one JSON object."""
    if node is None:
        return b"{}"
    if node.kind != '"':
        return body.raw(node)
    inside = body.string(node).encode("utf-8", "surrogatepass")
    try:
        return inside if read(inside).kind == "{" else body.raw(node)
    except Unreadable:
        return body.raw(node)


def texts(body: Foreign, node: Node, key: bytes = b"text") -> bytes:
    """A list of parts as a result's content: texts, and others by their type."""
    parts = []
    for item in node.elements:
        whole = body.within(item)
        raw = body.raw(item)
        words, type_ = whole.get(key), whole.get(b"type")
        if words is not None and words.kind == '"':
            parts.append(text(raw[words.start : words.end]))
        else:
            named = decode(raw[type_.start : type_.end]) if type_ is not None and type_.kind == '"' else "part"
            parts.append(plain(named, "raw", raw))
    return b"[%s]" % b",".join(parts)
