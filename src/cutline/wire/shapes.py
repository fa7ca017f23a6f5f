"""Items of the usual shapes, read by patterns: which members they have, and where those stand.

Law: a pattern is as strict as the scanner (`spans.scan`), and takes half of its time because it makes no value. It
knows what nearly every client writes; what it does not match is read by its format's reader, which knows everything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

# The classes say what may stand in a string, not what may not: that alone saves a third.
_IN_STRING = r"[ !#-\[\]-\xff]*+"
STRING = rf'"{_IN_STRING}(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{{4}}){_IN_STRING})*+"'
"""A string, for `shape`."""
PLAIN = r'"[ !#-\[\]-~]++"'
"""A string of ASCII without escapes, and not empty: its literal is its text in quotes."""
_NUMBER = r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][-+]?+[0-9]++)?+"
_LEAF = f"(?:{STRING}|{_NUMBER}|true|false|null)"
_LEAVES = rf"\[(?:{_LEAF}(?:, ?+{_LEAF})*+)?+\]"
_MEMBER = f"{STRING}: ?+(?:{_LEAF}|{_LEAVES})"
FLAT = rf"\{{(?:{_MEMBER}(?:, ?+{_MEMBER})*+)?+\}}"
"""An object of which no value is nested deeper than a list of strings."""

Shape = Mapping[str, Any]
Match = Callable[[str, int], "re.Match[str] | None"]


def shape(members: Shape) -> Match:
    """A pattern for an object of the usual shape: these members and no others, each once, in any order.

    Each member's value is a group, named by the member's key; that of an object in it by the path: "function_name".

    Args:
        members: by key its value: a pattern in which no group captures; the members of an object; those in a tuple, for
            a list of that one object; or a list of such alternatives. A key is a pattern too, whose first word names
            the group; one that ends with "?" may be absent.
    """
    return re.compile(_object(members, 1, "")[0]).match


def _object(members: Shape, group: int, path: str) -> tuple[str, int]:
    """The pattern of an object whose first member is that group; also the number of the group behind its last."""
    branches, needed = [], []
    for key, value in members.items():
        word = re.search(r"\w+", key)
        assert word is not None, "a key has a name"
        pattern, behind = _any(value, group + 1, f"{path}{word[0]}_")
        # A key that stood before is refused.
        branches.append(rf'{key.removesuffix("?")}": ?+(?({group})(?!))(?P<{path}{word[0]}>{pattern})')
        needed += [] if key.endswith("?") else [f"(?({group})|(?!))"]
        group = behind
    # A comma stands before a key, and none behind the last member.
    return rf'\{{(?:"(?:{"|".join(branches)})(?:, ?+(?=")|(?=\}})))++\}}{"".join(needed)}', group


def _any(value: Any, group: int, path: str) -> tuple[str, int]:
    if isinstance(value, str):
        return value, group
    if isinstance(value, list):
        patterns = []
        for one in value:
            pattern, group = _any(one, group, path)
            patterns.append(pattern)
        return "|".join(patterns), group
    if isinstance(value, tuple):
        pattern, group = _object(value[0], group, path)
        return rf"\[{pattern}\]", group
    return _object(value, group, path)


class Usual(NamedTuple):
    """An item of a usual shape.

    Attributes:
        format: whose shape it is.
        found: what was found: which of that format's shapes it is, and what its pattern matched.
    """

    format: str
    found: Any


Reader = Callable[[str, int], "tuple[int, Usual] | None"]
"""Reads the item at an index of a view: the index behind it, and the item; None where it has none of the shapes."""


def one_of(format: str, shapes: Mapping[str, Match]) -> Reader:
    """Reads an item that has one of these shapes; `found` is the shape's name and the match."""
    patterns = list(shapes.items())

    def read(view: str, at: int) -> tuple[int, Usual] | None:
        found = _first(patterns, view, at)
        return None if found is None else (found[1].end(), Usual(format, found))

    return read


def _first(patterns: Sequence[tuple[str, Match]], view: str, at: int) -> tuple[str, re.Match[str]] | None:
    """The first of some shapes that the object at an index has, with what its pattern matched."""
    for kind, match in patterns:
        found = match(view, at)
        if found is not None:
            return kind, found
    return None


def list_of(format: str, key: str, roles: str, shapes: Mapping[str, Match]) -> Reader:
    """Reads an item of a role and a list of objects, each of which has one of these shapes.

    `found` is the role ("" where it has none), and a list of the shapes' names and matches.

    Args:
        format: whose shapes they are.
        key: of the list.
        roles: a pattern for the role's literal.
        shapes: by name.
    """
    patterns = list(shapes.items())
    begin = re.compile(rf'\{{(?:"role": ?+({roles}), ?+)?+"{key}": ?+\[(?=\{{)').match
    end = re.compile(rf'\](?:, ?+"role": ?+({roles}))?+\}}').match

    def read(view: str, at: int) -> tuple[int, Usual] | None:
        head = begin(view, at)
        if head is None:
            return None
        at, parts = head.end(), []
        while True:
            part = _first(patterns, view, at)
            if part is None:
                return None
            parts.append(part)
            at = part[1].end()
            if view[at] != ",":
                break
            at += 2 if view[at + 1] == " " else 1
        tail = end(view, at)
        if tail is None or (head[1] and tail[1]):
            return None
        return tail.end(), Usual(format, ((head[1] or tail[1] or "")[1:-1], parts))

    return read
