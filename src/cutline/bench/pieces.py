"""A history as the bench sees it: pieces by author, each with its lines and the specifics in them.

Law: pure. One reading serves every strategy and every measure; a name is a number from here on, and two names are the
same thing only where they are written alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .. import specifics
from ..blocks import Author, Kind, address
from ..sessions.model import Origin
from ..trace import returned
from ..wire import anthropic as wire
from ..wire.anthropic import Request

AGENT, HUMAN, HARNESS, CALL, RESULT, THINKING, DOCUMENT = (
    "agent text",
    "human text",
    "harness text",
    "call",
    "result",
    "thinking",
    "document",
)
NOTICE, SUMMARY = "notice", "summary"
CARRIERS = (AGENT, HUMAN, DOCUMENT, NOTICE, SUMMARY, HARNESS, CALL, RESULT, THINKING)
"""What can carry a specific over a seam, in the order in which one that stands in several is attributed."""


class Line(NamedTuple):
    """One line of a piece.

    Attributes:
        names: the specifics that are written in it, as numbers.
        parts: those, and the file names at the end of its paths.
        size: bytes of UTF-8, the line's end included.
    """

    names: tuple[int, ...]
    parts: tuple[int, ...]
    size: int


class Piece(NamedTuple):
    """One block of a history.

    Attributes:
        kind: what it is, as in `CARRIERS`.
        message, block: its place.
        text: its words: of a call the values of its arguments, of a result its texts.
        lines: those, line by line.
        size: bytes of its JSON literal.
        name: a call's tool; for a result, its call's.
        address: of a call, and of the call that a result answers; "" elsewhere.
        error: a result that says that it is an error.
        raw: a call's arguments as they are written.
    """

    kind: str
    message: int
    block: int
    text: str
    lines: tuple[Line, ...]
    size: int
    name: str = ""
    address: str = ""
    error: bool = False
    raw: bytes = b""


@dataclass(slots=True)
class Names:
    """Specifics as numbers, in the order in which they were met."""

    numbers: dict[str, int] = field(default_factory=dict)
    written: list[str] = field(default_factory=list)
    _tokens: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = field(default_factory=dict)

    def line(self, text: str) -> Line:
        """Read a line."""
        names: list[int] = []
        parts: list[int] = []
        for raw in specifics.tokens(text):
            known = self._tokens.get(raw)
            if known is None:
                known = self._tokens[raw] = self._read(raw)
            if known[1]:
                names += known[0]
                parts += known[1]
        size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
        return Line(tuple(dict.fromkeys(names)), tuple(dict.fromkeys(parts)), size + 1)

    def lines(self, text: str) -> tuple[Line, ...]:
        """Read a text."""
        return tuple(map(self.line, text.split("\n")))

    def _read(self, raw: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        found = sorted(specifics.specifics(raw))
        whole = specifics.names(raw)
        return tuple(self._number(name) for name in found if name in whole), tuple(map(self._number, found))

    def _number(self, name: str) -> int:
        number = self.numbers.setdefault(name, len(self.written))
        if number == len(self.written):
            self.written.append(name)
        return number


def read(request: Request, origins: Sequence[Origin], names: Names) -> list[Piece]:
    """Every block of a history that holds words, in order.

    Args:
        request: the history.
        origins: for each message, what it is, as the session's client knows it; empty for a request body.
        names: where specifics get their numbers.
    """
    pairs, _ = wire.pairs(request.messages)
    asked = {answer: made for made, answer in pairs.items()}
    found: list[Piece] = []
    known: dict[tuple[int, int], tuple[str, str]] = {}
    for number, message in enumerate(request.messages):
        for index, block in enumerate(message.blocks):
            name, there, raw = "", "", b""
            if block.kind is Kind.TEXT:
                text = wire.words(request, block)
                kind = _said(message.role, wire.author(message.role, block, text), origins, number)
            elif block.kind is Kind.CALL:
                raw = wire.member(request, block, "input") or b"{}"
                name, there = block.name, address(block.id, block.name, raw)
                known[number, index] = name, there
                text, kind = written(raw), DOCUMENT if wire.is_checkpoint(block) else CALL
                if wire.is_say(block.name):
                    kind = AGENT
            elif block.kind is Kind.RESULT:
                name, there = known.get(asked.get((number, index), (-1, -1)), ("", ""))
                text, kind = returned(wire.result_text(request, block)), RESULT
            elif block.kind is Kind.THINKING:
                text = wire.words(request, block) if block.type == "thinking" else ""
                # Reasoning that is encrypted is no words.
                text = text if " " in text[:400] and not text.startswith("{") else ""
                kind = AGENT if wire.is_narration(request, block) and text.strip() else THINKING
            elif block.kind is Kind.CONTROL:
                inside = specifics.value_of(request.body[block.start : block.end])
                text, kind = _unwrapped(inside.get("raw") if isinstance(inside, dict) else None), HARNESS
            else:
                continue
            size = wire.weight(request, block)
            found.append(Piece(kind, number, index, text, names.lines(text), size, name, there, block.error, raw))
    return found


def _said(role: str, author: Author, origins: Sequence[Origin], number: int) -> str:
    origin = origins[number] if origins else ""
    if origin == "summary":
        return SUMMARY
    if role == "assistant":
        return AGENT if author is Author.AGENT else HARNESS
    return HUMAN if author is Author.HUMAN and origin in ("human", "results", "") else HARNESS


def _unwrapped(raw: Any) -> str:
    """The words of an item that the client keeps as it is."""
    return written(raw.encode("utf-8", "surrogatepass")) if isinstance(raw, str) else ""


def written(arguments: bytes) -> str:
    """What a call's arguments say: their values, each on lines of its own; what is no JSON as it stands."""
    value = specifics.value_of(arguments)
    return arguments.decode("utf-8", "replace") if value is None else "\n".join(specifics.written(value))
