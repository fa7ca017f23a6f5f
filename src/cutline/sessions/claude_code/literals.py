"""One record taken apart into literals.

Law: nothing is decoded that is kept; an item is the very bytes of a content block as they are in the file.
Where a key stands twice the last counts, as it does for the client.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from ... import spans
from ...spans import scan, skip

Range = tuple[int, int]
"""Where a literal stands in a record's bytes: start, end (a plain tuple: there is one for every member)."""

# A member whose value is a string without escapes, a literal or a plain number: most are.
_SIMPLE = re.compile(r'"([^"\\]*)":("[^"\\]*"|null|true|false|-?\d+(?:\.\d+)?)([,}])').match


class Item(NamedTuple):
    """One content block.

    Attributes:
        type: its type; "text" for a content that is one string.
        answers: the call id that a result answers; "" elsewhere.
        literal: its bytes.
        block: its index in the record's content; -1 where the content is one string.
    """

    type: str
    answers: str
    literal: bytes
    block: int


class Opened:
    """A record's bytes, and where its members stand; what is not asked for is not scanned.

    Attributes:
        raw: the bytes.
        view: their latin-1 view.
    """

    def __init__(self, raw: bytes) -> None:
        """Take a record apart; it must have been read once (`records.read`)."""
        self.raw = raw
        self.view = raw.decode("latin-1")

    def _walk(self, at: int, until: str = "") -> dict[str, Range]:
        """Where the values of the object at `at` stand, up to the value of `until` (whose end is not looked for)."""
        view, found = self.view, dict[str, Range]()
        at += 1
        while True:
            simple = _SIMPLE(view, at)
            if simple:
                key = simple[1]
                found[key] = simple.span(2)
                at = simple.end()
                if simple[3] == "}" or key == until:
                    return found
                continue
            at = skip(view, at)
            if view[at] == "}":
                return found
            key, at = scan(view, at)
            start = skip(view, skip(view, at) + 1)
            if key == until:
                found[key] = (start, start)
                return found
            end = scan(view, start)[1]
            found[key] = (start, end)
            at, more = spans.after(view, end, "}")
            if not more:
                return found

    def _start(self, key: str) -> int:
        """Where the value of a member of the record begins; -1 where there is no such member."""
        times = self.raw.count(b'"%s"' % key.encode())
        if not times:
            return -1
        # The walk stops early where the key can stand but once: most of a record's bytes lie behind its message.
        return self._walk(0, key if times == 1 else "").get(key, (-1, -1))[0]

    def inside(self, key: str) -> dict[str, Range]:
        """The members of the object that is the value of `key`; none where it is no object."""
        start = self._start(key)
        return self._walk(start) if start >= 0 and self.view[start] == "{" else {}

    def top(self, key: str) -> Range | None:
        """Where the value of `key` stands; None where there is none."""
        start = self._start(key)
        return (start, scan(self.view, start)[1]) if start >= 0 else None

    def literal(self, member: Range | None) -> bytes:
        """The bytes of a member's value; none where there is no such member."""
        return self.raw[member[0] : member[1]] if member else b""

    def value(self, member: Range | None) -> Any:
        """The decoded value of a member; None where there is none."""
        return json.loads(self.literal(member)) if member else None

    def items(self, content: Range | None) -> list[Item]:
        """The blocks of a content that is a string or a list; what is no object in a list is no block."""
        if content is None:
            return []
        view, (at, behind) = self.view, content
        if view[at] == '"':
            return [Item("text", "", self.raw[at:behind], -1)]
        if view[at] != "[":
            return []
        found: list[Item] = []
        at, number = skip(view, at + 1), 0
        more = view[at] != "]"
        while more:
            value, end = scan(view, at)
            if type(value) is tuple:
                block = dict(value)
                type_, answers = block.get("type"), block.get("tool_use_id")
                found.append(
                    Item(
                        type_ if type(type_) is str else "",
                        answers if type_ == "tool_result" and type(answers) is str else "",
                        self.raw[at:end],
                        number,
                    )
                )
            number += 1
            at, more = spans.after(view, end, "]")
        return found


def words(item: Item) -> str:
    """The words of a text, decoded; "" for every other block."""
    value = json.loads(item.literal) if item.type == "text" else ""
    if isinstance(value, dict):
        value = value.get("text")
    return value if isinstance(value, str) else ""
