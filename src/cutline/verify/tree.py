"""JSON bytes as a tree of spans. Law: strict, iterative, the proof's own; no byte is changed and no value is made.

A node knows where its literal stands. What is nested deeper than any block of a message is checked, not kept:
the proof compares it as bytes.
"""

from __future__ import annotations

import codecs
import json
import re
from typing import NoReturn

from ..errors import Unreadable

DEEP = 7
"""Levels kept as nodes: body, messages, message, content, block, a result's content, a block in it."""
_PIECE = 1 << 16
_WS = rb"[ \t\n\r]*+"
# The classes say what may stand in a string, not what may not: that is quicker.
_STRING = rb'"[ !#-\[\]-\xff]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[ !#-\[\]-\xff]*+)*+"'
_SCALAR = rb"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?+[0-9]++)?+|true|false|null"
_value = re.compile(_WS + b"(?:(" + _STRING + b")|(" + _SCALAR + rb")|([\[{]))").match
_key = re.compile(_WS + b"(" + _STRING + b")" + _WS + b":").match
_after = re.compile(_WS + rb"([,\]}])").match
_end = re.compile(_WS + rb"\Z").match


class Node:
    """One JSON value.

    Attributes:
        kind: ``{``, ``[``, ``"`` or ``0`` (a number, true, false, null).
        start, end: its literal, ``data[start:end]``.
        members: of an object: (key, value); elements: of an array. Both empty where nested deeper than `DEEP`.
        depth: of the root: the most levels that anything in it is nested.
    """

    __slots__ = ("depth", "elements", "end", "kind", "members", "start")

    def __init__(self, kind: str, start: int, end: int) -> None:
        self.kind = kind
        self.start = start
        self.end = end
        self.depth = 0
        self.members: list[tuple[bytes, Node]] = [] if kind == "{" else _NO_MEMBERS
        self.elements: list[Node] = [] if kind == "[" else _NO_ELEMENTS

    def get(self, key: bytes) -> Node | None:
        """The value of a member, None where there is none (or this is no object)."""
        for name, value in self.members:
            if name == key:
                return value
        return None


# What a value without parts shares with all others, since most values are such.
_NO_MEMBERS: list[tuple[bytes, Node]] = []
_NO_ELEMENTS: list[Node] = []


def read(data: bytes) -> Node:
    """Read one JSON text.

    Raises:
        Unreadable: it is not strict JSON in UTF-8.
    """
    _check_utf8(data)
    stack: list[Node] = []
    holder: Node | None = None
    key, pos = b"", 0
    while True:
        found = _value(data, pos)
        if found is None:
            _doubt("no JSON value", pos)
        what = found.lastindex
        start, pos = found.span(what or 0)
        node = Node('"' if what == 1 else "0" if what == 2 else data[start : start + 1].decode(), start, pos)
        if holder is not None and len(stack) <= DEEP:
            if holder.kind == "{":
                holder.members.append((key, node))
            else:
                holder.elements.append(node)
        if what == 3:
            stack.append(node)
            holder = node
            stack[0].depth = max(stack[0].depth, len(stack))
            closing = _after(data, pos)
            if closing is None or closing[1] != (b"}" if node.kind == "{" else b"]"):
                if node.kind == "{":
                    key, pos = _member(data, pos)
                continue
        while holder is not None:
            mark = _after(data, pos)
            if mark is None:
                _doubt("no comma or bracket", pos)
            pos = mark.end()
            if mark[1] == b",":
                if holder.kind == "{":
                    key, pos = _member(data, pos)
                break
            if mark[1] != (b"}" if holder.kind == "{" else b"]"):
                _doubt("the wrong bracket", pos - 1)
            holder.end = pos
            stack.pop()
            if not stack:
                if _end(data, pos) is None:
                    _doubt("bytes behind the JSON text", pos)
                return holder
            holder = stack[-1]
        else:
            if _end(data, pos) is None:
                _doubt("bytes behind the JSON text", pos)
            return node


def _check_utf8(data: bytes) -> None:
    """Raise, unless it is UTF-8; in pieces, for a text of the whole would weigh up to four times as much."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, len(data), _PIECE):
        try:
            decoder.decode(data[start : start + _PIECE], start + _PIECE >= len(data))
        except UnicodeDecodeError as fault:
            raise Unreadable("not UTF-8", max(0, start + fault.start)) from None


def _member(data: bytes, pos: int) -> tuple[bytes, int]:
    found = _key(data, pos)
    if found is None:
        _doubt("no member name", pos)
    start, end = found.span(1)
    name = data[start + 1 : end - 1]
    if b"\\" in name:
        name = decode(data[start:end]).encode("utf-8", "surrogatepass")
    return name, found.end()


def decode(literal: bytes) -> str:
    """The text of a string literal; lone surrogates stay what they are."""
    text = json.loads(literal.decode("utf-8"))
    return text if isinstance(text, str) else ""


def _doubt(what: str, at: int) -> NoReturn:
    raise Unreadable(what, at)
