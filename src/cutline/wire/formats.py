"""Which format a body is in, beside Anthropic's own: found by content, and read into the neutral shape.

Law: what is ambiguous is nobody's and stays as it is, with the reason; nothing is guessed.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

from .. import spans
from ..errors import Unreadable
from ..spans import DOUBTS, Member
from .editing import Added, Edit, Inside, Item
from .neutral import Native, Place

NAMES = ("openai_chat", "openai_responses", "gemini", "converse")
_BOTH = "it looks like several wire formats at once ({}), so it is none that can be cut"


class Format(Protocol):
    """A module of this package that reads and writes one format."""

    NAME: str
    LIST: str
    """The body's member that holds the history."""
    MERGES: frozenset[str]
    """Roles of which two neighbours are refused: what the cut made neighbours is merged."""
    STRICT: bool
    """Whether there are servers that are stricter than the format (`profile="strict"`)."""

    STRIPS: bool
    """Whether an item before the seam may change though all of it stays."""

    def looks(self, items: Sequence[Mapping[str, Any]]) -> bool:
        """Whether a body is of this format, by its decoded history."""

    def read(self, body: bytes, view: str, top: dict[str, Member]) -> Native:
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
    try:
        found = spans.members(view, spans.skip(view, 0))[0]
        top = {member.key: member for member in found}
        history = next((top[key] for key in ("messages", "input", "contents") if key in top), None)
        if history is None or view[history.start] != "[":
            return None
        items = [item for item in spans.decode(body[history.start : history.end]) if isinstance(item, dict)]
        fits = [name for name in NAMES if history.key == format_of(name).LIST and format_of(name).looks(items)]
        if not fits:
            return None
        if len(fits) > 1:
            raise Unreadable(_BOTH.format(", ".join(fits)), history.start)
        if len(top) != len(found):
            raise Unreadable("a key stands twice in the body", 0)
        return format_of(fits[0]).read(body, view, top)
    except DOUBTS as error:
        raise spans.doubt(error, view) from None
