"""What a history is made of. Law: values only; every place is a byte offset into one body, no text is copied here.

`Block` and `Message` are named tuples, not dataclasses: a body of 1 MB has some 1,500 of them, and a tuple
is made in a third of the time.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from . import spans


class Kind(StrEnum):
    """What a content block is, whatever its format calls it."""

    TEXT = "text"
    CALL = "call"
    RESULT = "result"
    THINKING = "thinking"
    IMAGE = "image"
    DOCUMENT = "document"
    CONTROL = "control"
    UNKNOWN = "unknown"


class Author(StrEnum):
    """Who made a block: the agent and the human speak, the world returns, the harness instructs."""

    AGENT = "agent"
    HUMAN = "human"
    WORLD = "world"
    HARNESS = "harness"


class Span(NamedTuple):
    """A half-open range of bytes, ``body[start:end]``."""

    start: int
    end: int


class Place(NamedTuple):
    """Where a block stands: index of its message, index of the block in it (0 for a string content)."""

    message: int
    block: int

    def __str__(self) -> str:
        return f"messages[{self.message}].content[{self.block}]"


class Block(NamedTuple):
    """One content block.

    Attributes:
        kind: what it is.
        type: its type as written on the wire ("text" for a string content).
        start, end: its JSON literal, ``body[start:end]``.
        id: call id of a call, or the id that a result answers; "" elsewhere.
        name: tool name of a call; "" elsewhere.
        error: a result that says of itself that it is an error.
        server: a call or result that the provider ran itself (web search, code execution, MCP connector).
        marked: it carries a cache mark.
    """

    kind: Kind
    type: str
    start: int
    end: int
    id: str = ""
    name: str = ""
    error: bool = False
    server: bool = False
    marked: bool = False


class Message(NamedTuple):
    """One message.

    Attributes:
        role: as written.
        start, end: its JSON literal.
        content: the span of the value of its `content`.
        string: whether that value is a string (then `blocks` holds one text block with the same span).
        blocks: its content blocks, in order.
        plain: it has no members but `role` and `content`.
    """

    role: str
    start: int
    end: int
    content: Span
    string: bool
    blocks: tuple[Block, ...]
    plain: bool


@dataclass(frozen=True, slots=True)
class Said:
    """Words that the agent or the human wrote, as text.

    Attributes:
        text: the words.
        author: who wrote them.
    """

    text: str
    author: Author = Author.AGENT


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call with its result, read out of a history: what narration is judged by and a trace is made of.

    Attributes:
        name: tool name as on the wire.
        arguments: the raw JSON bytes of the arguments.
        result: the result's texts joined by newlines; None where the call was never answered.
        error: the result says that it is an error.
        batch: index of the message that made the call; parallel calls share it.
        address: 16 hex digits (DESIGN: one call with its result).
    """

    name: str
    arguments: bytes
    result: str | None
    error: bool
    batch: int
    address: str


Event = Said | ToolCall
"""A history as narration sees it: words and calls in their order."""


def address(id: str, name: str, arguments: bytes) -> str:
    """The address of a call: 16 hex digits, the same from the wire, the session file and the record.

    Args:
        id: the call's id; where a call has none, its occurrence number in the history.
        name: the tool's name as on the wire.
        arguments: the arguments' raw JSON; spelling and key order don't matter, number literals do.
    """
    key = "\0".join((id, name)).encode("utf-8", "surrogatepass")
    return hashlib.sha256(key + b"\0" + spans.canonical(arguments)).hexdigest()[:16]
