"""JSON literals of one record, looked at and edited.

Law: a record is checked once, when it is opened; what is read of it is a span, and an edit replaces spans. Nothing that
stays is decoded and encoded again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import spans
from ...errors import Unreadable

Edit = tuple[int, int, bytes]
"""Bytes `start` to `end` become these."""

Members = dict[str, spans.Member]


class Opened:
    """A JSON object that was checked: its bytes, their latin-1 view, and its members by key.

    Raises:
        Unreadable: it is not one JSON object in UTF-8.
    """

    __slots__ = ("members", "raw", "view")

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self.view = spans.view(raw)
        try:
            at = spans.skip(self.view, 0)
            found, end = spans.members(self.view, at)
            if spans.skip(self.view, end) != len(self.view):
                raise Unreadable("more than one JSON value", end)
        except spans.DOUBTS as error:
            raise spans.doubt(error, self.view) from None
        self.members: Members = {member.key: member for member in found}

    def inside(self, member: spans.Member | None) -> Members:
        """The members of an object in it; none where it is no object."""
        if member is None or self.view[member.start] != "{":
            return {}
        return {one.key: one for one in spans.members(self.view, member.start)[0]}

    def at(self, *path: str) -> spans.Member | None:
        """The member that a path of keys leads to."""
        members, found = self.members, None
        for key in path:
            found = members.get(key)
            if found is None:
                return None
            members = self.inside(found)
        return found

    def literal(self, *path: str) -> bytes:
        """The bytes of that member; none where there is none."""
        member = self.at(*path)
        return b"" if member is None else self.raw[member.start : member.end]

    def value(self, *path: str) -> Any:
        """Its decoded value, numbers as their literals; None where there is none."""
        literal = self.literal(*path)
        return spans.decode(literal) if literal else None

    def word(self, *path: str) -> str:
        """Its text; "" where it is no string."""
        value = self.value(*path) if self.literal(*path)[:1] == b'"' else ""
        return value if isinstance(value, str) else ""

    def elements(self, *path: str) -> list[tuple[int, int]]:
        """Spans of the elements of a list in it."""
        member = self.at(*path)
        if member is None or self.view[member.start] != "[":
            return []
        return spans.elements(self.view, member.start)[0]

    def put(self, literal: bytes, *path: str) -> list[Edit]:
        """The edit that gives a member another value; none where it has no such member, or that value already."""
        member = self.at(*path)
        if member is None or self.raw[member.start : member.end] == literal:
            return []
        return [(member.start, member.end, literal)]

    def give(self, literal: bytes, key: str) -> list[Edit]:
        """The edit that gives a member of the object itself another value, or puts it in where there is none."""
        if key in self.members:
            return self.put(literal, key)
        first = next(iter(self.members.values()), None)
        at = self.view.index("{") + 1 if first is None else first.at
        return [(at, at, spans.quote(key) + b":" + literal + (b"," if first else b""))]

    def without(self, *path: str) -> list[Edit]:
        """The edit that takes a member out."""
        member = self.at(*path)
        if member is None:
            return []
        around = list((self.inside(self.at(*path[:-1])) if path[:-1] else self.members).values())
        number = next(index for index, one in enumerate(around) if one.at == member.at)
        if number:
            return [(around[number - 1].end, member.end, b"")]
        return [(member.at, around[1].at if len(around) > 1 else member.end, b"")]


def edited(raw: bytes, edits: Sequence[Edit]) -> bytes:
    """A record with its edits made."""
    for start, end, new in sorted(edits, reverse=True):
        raw = raw[:start] + new + raw[end:]
    return raw


def number(value: Any) -> int:
    """A whole number of a decoded record; 0 for anything else."""
    return int(value) if isinstance(value, str) and value.isdigit() and len(value) < 19 else 0
