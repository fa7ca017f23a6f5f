"""A request read and hashed before the record is touched. Law: pure; only what a known request lacks is looked at."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import Unreadable
from . import calls, parts, reading, words
from .reading import Body
from .values import Exchange


@dataclass(frozen=True, slots=True)
class Known:
    """The last request of a session: its id, what was read of it, its chain's hashes and ids.

    The words of its first `said` messages are in the index.
    """

    id: int
    request: Body
    marks: list[parts.Mark]
    hashes: list[bytes]
    nodes: list[int]
    said: int


@dataclass(frozen=True, slots=True)
class Prepared:
    """An exchange, read and hashed.

    Attributes:
        request: the body as it was read; None where it can't be.
        parts: the body's frame, and its messages from the `shared`th on.
        shared: how many messages have the bytes that they have in the known request.
        hashes: of the whole chain.
        common: how many nodes of it the known chain has.
        new, texts: calls and texts that are not in the index yet.
        said: the words of so many messages will be.
    """

    request: Body | None
    parts: parts.Parts
    shared: int
    hashes: list[bytes]
    common: int
    new: calls.New | None
    texts: list[words.Text]
    said: int


def prepare(exchange: Exchange, known: Known | None, sent: bytes | None) -> Prepared:
    """Read a body and hash what is new in it; nothing is looked up yet. `sent` is the body before it was masked."""
    body = exchange.body
    shared = parts.shared(known.request, body) if known else 0
    try:
        request = reading.read(body, known.request if known else None, shared)
        as_sent = None if sent is None else reading.read(sent)
    except Unreadable:
        return Prepared(None, parts.Parts(body, 0, [], []), 0, [], 0, None, [], 0)
    found = parts.split(request, shared, known.request if known else None)
    before = known.hashes[:shared] if known else []
    hashes = before + parts.chain(found.pieces, before[-1] if before else parts.ROOT)
    common = shared
    if known:
        while common < min(len(hashes), len(known.hashes)) and hashes[common] == known.hashes[common]:
            common += 1
    new = calls.New(request, common, as_sent)
    total = len(request.spans)
    own = exchange.kind in ("compaction", "other")  # its last message is the client's, and nobody said it
    texts = [
        text
        for text in words.texts_of(request, min(common, known.said) if known else 0)
        if not (own and text.message == total - 1)
    ]
    if exchange.kind == "turn" and exchange.answer:
        texts += words.of_answer(exchange.answer, total)
    return Prepared(request, found, shared, hashes, common, new, texts, max(0, total - own))


def all_marks(prepared: Prepared, known: Known | None) -> list[parts.Mark]:
    """The cache marks of the whole body, those of its known messages included."""
    old = [mark for mark in known.marks if mark.message < prepared.shared] if known else []
    return old + prepared.parts.marks
