"""A body taken apart and put together again. Law: pure; `join(split(body)) == body`, byte for byte, for every body.

A client's cache mark stands on its last messages only and wanders with each request. It is taken out of a
message's literal and kept with the request, so that a message is the same bytes however often it is sent.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_right
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple

from .. import spans
from ..blocks import Block, Message
from ..wire.anthropic import Request
from .packing import digest
from .reading import Body

_MARK = "cache_control"
_PIECE = 1 << 16
"""So many bytes of two bodies are compared at a time."""
ROOT = bytes(32)
"""What stands for the hash of a first message's parent."""


class Piece(NamedTuple):
    """A message without its cache marks.

    Attributes:
        literal: its bytes.
        hash: their digest.
        gap: the bytes between it and the message before it; None for a plain comma, and for the first message.
    """

    literal: bytes
    hash: bytes
    gap: bytes | None


class Mark(NamedTuple):
    """A cache mark that was taken out: the message's index, the offset in its literal as sent, the bytes."""

    message: int
    at: int
    text: bytes


@dataclass(frozen=True, slots=True)
class Parts:
    """A body, or its end, in pieces.

    Attributes:
        frame: what stands before and behind the messages; None where the known body has the same.
        split: where in it they go.
        pieces: the messages, from the one that was asked for on.
        marks: cache marks that were taken out of them.
    """

    frame: bytes | None
    split: int
    pieces: list[Piece]
    marks: list[Mark]


def split(read: Body, first: int = 0, known: Body | None = None) -> Parts:
    """Take a body apart; of its messages only those from `first` on, up to which a known body has the same bytes."""
    body, held = read.body, read.spans
    start, end = (held[0][0], held[-1][1]) if held else (len(body), len(body))
    pieces, marks = [], []
    for number in range(first, len(held)):
        offset, to = held[number]
        gap = body[held[number - 1][1] : offset] if number else b","
        literal = body[offset:to]
        found = [] if read.format else _marks(read.request, read.request.messages[number])
        for at, until in reversed(found):
            literal = literal[:at] + literal[until:]
        marks += [Mark(number, at, body[offset + at : offset + until]) for at, until in found]
        pieces.append(Piece(literal, digest(literal), None if gap == b"," else gap))
    same = known is not None and first > 0 and known.body[known.spans[-1][1] :] == body[end:]
    return Parts(None if same else body[:start] + body[end:], start, pieces, marks)


def join(frame: bytes, split: int, literals: list[tuple[bytes, bytes | None]], marks: list[Mark]) -> bytes:
    """Put a body together again from its frame, its messages with their gaps, and the cache marks."""
    literals = list(literals)
    for mark in marks:  # in order of place, so that each offset is the one in the literal as sent
        literal, gap = literals[mark.message]
        literals[mark.message] = (literal[: mark.at] + mark.text + literal[mark.at :], gap)
    out = [frame[:split]]
    for number, (literal, gap) in enumerate(literals):
        if number:
            out.append(b"," if gap is None else gap)
        out.append(literal)
    out.append(frame[split:])
    return b"".join(out)


def chain(pieces: list[Piece], parent: bytes = ROOT) -> list[bytes]:
    """The hash of the history up to each piece: SHA-256(hash of the parent, hash of the message, gap)."""
    hashes = []
    for piece in pieces:
        parent = hashlib.sha256(parent + piece.hash + (piece.gap or b"")).digest()
        hashes.append(parent)
    return hashes


def shared(known: Body, body: bytes) -> int:
    """How many messages a body has in common with a known request, all bytes up to their end being the same."""
    return bisect_right(known.spans, _same(known.body, body), key=itemgetter(1))


def _same(old: bytes, new: bytes) -> int:
    """How many bytes two bodies have in common from the beginning; in pieces, so that no copy leaves the cache."""
    low, most = 0, min(len(old), len(new))
    while low < most and new.startswith(old[low : low + _PIECE], low):
        low += _PIECE
    low, high = min(low, most), min(low + _PIECE, most)
    while low < high:
        middle = (low + high + 1) // 2
        if old[low:middle] == new[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def write_marks(marks: list[Mark]) -> str | None:
    """Cache marks as a column holds them."""
    return json.dumps([(mark.message, mark.at, mark.text.decode("latin-1")) for mark in marks]) if marks else None


def read_marks(column: str | None) -> list[Mark]:
    """Cache marks as `write_marks` wrote them."""
    return [Mark(message, at, text.encode("latin-1")) for message, at, text in json.loads(column or "[]")]


def _marks(request: Request, message: Message) -> list[tuple[int, int]]:
    """Where a message's literal holds cache marks, their commas included."""
    return [_mark(request, block, message.start) for block in message.blocks if block.marked]


def _mark(request: Request, block: Block, origin: int) -> tuple[int, int]:
    found = spans.members(request.view, block.start)[0]
    number = next(number for number, member in enumerate(found) if member.key == _MARK)
    if number:
        return found[number - 1].end - origin, found[number].end - origin
    return found[0].at - origin, found[1].at - origin
