"""A body as the record reads it: where its messages stand, and the history in the one shape.

Law: pure. Bytes are told by the body's own messages, items or contents; calls and words by the shape that all formats
are read into, and each is put where it stands in the body itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..blocks import Block
from ..errors import Unreadable
from ..wire import anthropic as wire
from ..wire import formats
from ..wire.neutral import Native

Where = tuple[int, int]
"""A message of the body, by its index, and which of its blocks."""


@dataclass(frozen=True, slots=True)
class Body:
    """A body that was read.

    Attributes:
        body: the bytes.
        format: "" for Anthropic Messages, else one of `formats.NAMES`.
        spans: where its messages, items or contents stand, in order.
        request: the history in the one shape.
        shown: in another format than Anthropic's, where each block of that shape stands.
        held: the same the other way round.
    """

    body: bytes
    format: str
    spans: Sequence[tuple[int, int]]
    request: wire.Request
    shown: dict[Where, Where] = field(default_factory=dict)
    held: dict[Where, Where] = field(default_factory=dict)

    def place(self, message: int, block: int) -> Where:
        """Where a block of the one shape stands in the body."""
        return self.shown[message, block] if self.format else (message, block)

    def at(self, where: Where) -> Block:
        """The block that stands at a place of the body."""
        message, block = self.held[where] if self.format else where
        return self.request.messages[message].blocks[block]


def read(body: bytes, known: Body | None = None, shared: int = 0) -> Body:
    """Read a body; of one in Anthropic's format only what a known one has not, `shared` messages from its beginning.

    Raises:
        Unreadable: it is in no format that is read, or there is a doubt about it.
    """
    try:
        request = wire.read(body, known.request if known and not known.format and shared else None, shared)
    except Unreadable:
        native = formats.read(body)
        if native is None:
            raise
        return _of(native)
    same = known.spans[:shared] if known and not known.format else ()
    return Body(body, "", [*same, *((one.start, one.end) for one in request.messages[len(same) :])], request)


def of_messages(format: str, literals: Sequence[bytes]) -> Body:
    """Messages that stood in a body of a format, as a body of their own."""
    if not format:
        return read(b'{"messages":[%s]}' % b",".join(literals))
    return _of(formats.of_items(format, literals))


def _of(native: Native) -> Body:
    shown = native.shown()
    placed = {
        (number, index): (shown[place].message, shown[place].block)
        for number, places in enumerate(native.places)
        for index, place in enumerate(places)
    }
    held = {where: key for key, where in placed.items()}
    return Body(native.body, native.format, native.items, native.request, placed, held)
