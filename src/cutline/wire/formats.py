"""Which format a body is in, beside Anthropic's own: found by content, and read into the neutral shape.

Law: what is ambiguous is nobody's and stays as it is, with the reason; nothing is guessed.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

from .. import spans
from ..errors import Unreadable
from ..spans import DOUBTS, Object
from .editing import Added, Edit, Inside, Item
from .neutral import Native, Place, Source
from .shapes import Reader, Usual

_LISTS = {"messages": ("openai_chat", "converse"), "input": ("openai_responses",), "contents": ("gemini",)}
"""The member of a body that holds its history, and the formats in which it is called so."""
NAMES = tuple(name for names in _LISTS.values() for name in names)
_BOTH = "it looks like several wire formats at once ({}), so it is none that can be cut"


class Format(Protocol):
    """A module of this package that reads and writes one format."""

    NAME: str
    MERGES: frozenset[str]
    """Roles of which two neighbours are refused: what the cut made neighbours is merged."""
    STRICT: bool
    """Whether there are servers that are stricter than the format (`profile="strict"`)."""

    STRIPS: bool
    """Whether an item before the seam may change though all of it stays."""

    def usual(self, view: str, at: int) -> tuple[int, Usual] | None:
        """Reads an item of the usual shapes (`shapes.Reader`)."""

    def looks(self, usual: Sequence[Usual], others: Sequence[Object]) -> bool:
        """Whether a body is of this format, by the items of its history that `usual` read and those that it did not."""

    def read(self, source: Source) -> Native:
        """Read a body. Raises Unreadable for the first doubt."""

    def edits(self, native: Native, item: Item, inside: Inside, added: Mapping[Place, Sequence[Added]]) -> list[Edit]:
        """What changes in an item of which something left, or to which something was joined or added."""

    def folds(self, native: Native, items: Sequence[Item]) -> list[bool]:
        """For each item, whether a strict server wants the neighbour before it folded into it."""

    def merge(self, native: Native, items: Sequence[Item], literals: Sequence[bytes]) -> bytes:
        """One item out of neighbours of one role, each given as the literal that it would be alone."""


def format_of(name: str) -> Format:
    """A format's module."""
    return cast(Format, importlib.import_module(f".{name}", __package__))


def read(body: bytes) -> Native | None:
    """Read a body that is in one of these formats; None where it is in none.

    Raises:
        Unreadable: it seems to be one of them and can't be read, or several at once.
    """
    view = spans.view(body)
    lists: dict[str, list[tuple[int, int, Any]]] = {}

    def value(text: str, at: int, key: str) -> int:
        if key not in _LISTS or text[at] != "[":
            return spans.scan(text, at)[1]
        lists[key], end = spans.scanned(text, at, _usual(key))
        return end

    try:
        found, end = spans.members(view, spans.skip(view, 0), value)
        if spans.skip(view, end) != len(view):
            raise Unreadable("more bytes behind the JSON object", end)
        top = {member.key: member for member in found}
        key = next((key for key in _LISTS if key in top), "")
        if key not in lists:
            return None
        fits = _fits(key, view, lists[key])
        if not fits:
            return None
        if len(fits) > 1:
            raise Unreadable(_BOTH.format(", ".join(fits)), top[key].start)
        if len(top) != len(found):
            raise Unreadable("a key stands twice in the body", 0)
        return format_of(fits[0]).read(Source(body, view, top, lists[key]))
    except DOUBTS as error:
        raise spans.doubt(error, view) from None


def of_items(format: str, literals: Sequence[bytes]) -> Native:
    """Items that stood in a body of a format, as a body of their own.

    Raises:
        Unreadable: they can't be read in that format.
    """
    key = next(key for key, names in _LISTS.items() if format in names)
    body = b'{"%s":[%s]}' % (key.encode(), b",".join(literals))
    view = spans.view(body)
    try:
        items, end = spans.scanned(view, len(key) + 4, _usual(key))
        return format_of(format).read(Source(body, view, {key: spans.Member(key, 1, len(key) + 4, end)}, items))
    except DOUBTS as error:
        raise spans.doubt(error, view) from None


def behind(body: bytes, known: Native, upto: int) -> Native | None:
    """What stands in a body behind the items that it shares with a known one, read by itself.

    Args:
        body: the bytes.
        known: a body with which this one shares all bytes up to the end of the item before `upto`.
        upto: how many items they share, at least one.

    Returns:
        Its items, from there on, as if no others were; None where they are not of the known body's format, or there is
        any doubt.
    """
    start = known.items[upto - 1][1]
    key = next(key for key in _LISTS if key in known.top)
    try:
        view = spans.view(body, start)
        at, more = spans.after(view, start, "]")
        items, at = spans.further(view, at, _usual(key)) if more else ([], at)
        at, more = spans.after(view, at, "}")
        found, at = spans.following(view, at) if more else ([], at)
        top = {name: member for name, member in known.top.items() if member.at < known.items[0][0]}
        size = len(top) + len(found)
        top |= {member.key: member for member in found}
        # What is a format's by one of its items stays so; what is by all of them must be by these too.
        if any(member.key in _LISTS for member in found):
            return None
        fits = _fits(key, view, items)
        mine = fits == [known.format] or not (fits or (items and known.format != "openai_chat"))
        if not mine or len(top) != size or spans.skip(view, at) != len(view):
            return None
        return format_of(known.format).read(Source(body, view, top, items))
    except (Unreadable, *DOUBTS):
        return None


def _fits(key: str, view: str, items: Sequence[tuple[int, int, Any]]) -> list[str]:
    """The formats that a history may be of, by the member that holds it and its items."""
    usual = [value for _, _, value in items if type(value) is Usual]
    others = [Object(view, at, value) for at, _, value in items if type(value) is tuple]
    names = _LISTS[key]
    return [name for name in names if format_of(name).looks([one for one in usual if one.format == name], others)]


def _usual(key: str) -> Reader:
    """Reads items of the usual shapes of the formats that have their history under that key."""
    first, *others = [format_of(name).usual for name in _LISTS[key]]
    return (lambda view, at: first(view, at) or others[0](view, at)) if others else first
