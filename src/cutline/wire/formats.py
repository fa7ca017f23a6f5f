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
from .neutral import Native, Place, Settings, Source
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

    def settings(self, source: Source) -> Settings:
        """What a body says beside its history."""

    def read(self, source: Source, settings: Settings) -> Native:
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
        return _read(fits[0], Source(body, view, top, lists[key]))
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
        return _read(format, Source(body, view, {key: spans.Member(key, 1, len(key) + 4, end)}, items))
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
    start, (key, at, list_, last) = known.items[upto - 1][1], known.top[_key_of(known)]
    top = {name: member for name, member in known.top.items() if member.at < at}
    try:
        view = spans.view(body, start)
        at_next, more = spans.after(view, start, "]")
        items, end = spans.further(view, at_next, _usual(key)) if more else ([], at_next)
        top[key] = spans.Member(key, at, list_, end)
        settings: Settings | None = known.settings
        if body[end:] != known.body[last:]:
            settings = None
            at_next, more = spans.after(view, end, "}")
            found, at_next = spans.following(view, at_next) if more else ([], at_next)
            if any(member.key in _LISTS or member.key in top for member in found):
                return None
            top |= {member.key: member for member in found}
            if len({member.key for member in found}) != len(found) or spans.skip(view, at_next) != len(view):
                return None
        # What is a format's by one of its items stays so; what is by all of them must be by these too.
        fits = _fits(key, view, items)
        if fits != [known.format] and (fits or (items and known.format != "openai_chat")):
            return None
        source, module = Source(body, view, top, items), format_of(known.format)
        return module.read(source, settings or module.settings(source))
    except (Unreadable, *DOUBTS):
        return None


def _key_of(native: Native) -> str:
    return next(key for key, names in _LISTS.items() if native.format in names)


def _read(format: str, source: Source) -> Native:
    module = format_of(format)
    return module.read(source, module.settings(source))


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
