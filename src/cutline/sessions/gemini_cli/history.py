"""What the client would send of a session, in the one form that is cut.

Law: every word is the literal that stands in the file. A result is taken once: newer versions write it into its call
and into a message of its own, and a resume into every call beside it; the copies of it are told apart here, in one
place, for the reader and for the copy.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from ... import spans
from ...errors import InputError
from ...money import Usage
from ..model import Origin, Request
from ..neutral import Builder, NeutralHistory
from .log import Log
from .people import origin
from .pieces import Message, Piece, opened, tokens


@dataclass(slots=True)
class Pairing:
    """Which results answer the calls that were made so far."""

    open: Counter[str] = field(default_factory=Counter)
    names: dict[str, str] = field(default_factory=dict)
    answered: set[str] = field(default_factory=set)

    def take(self, message: Message) -> list[str | None]:
        """Take in a message: for each piece the call that a result answers, None where that has its result already."""
        claims: list[str | None] = []
        if message.type == "gemini":
            # Calls without an id are answered in their order before the agent speaks again, or never.
            self.open.pop("", None)
        for piece in message.pieces:
            claim: str | None = ""
            if piece.kind == "call":
                self.open[piece.id] += 1
                self.names[piece.id] = piece.name
            elif piece.kind == "result":
                claim = self._claimed(piece)
                if self.open[claim] > 0:
                    self.open[claim] -= 1
                    self.answered.add(claim)
                elif claim and claim in self.answered:
                    claim = None
            claims.append(claim)
        return claims

    def _claimed(self, piece: Piece) -> str:
        """The call that a result answers: by id, and where it carries none, by the name of one that waits."""
        if piece.id or self.open[""] > 0:
            return piece.id
        waiting = (id_ for id_, count in self.open.items() if count > 0 and self.names.get(id_) == piece.name)
        return next(waiting, "")


@dataclass(frozen=True, slots=True)
class Built:
    """A history, and what was seen on the way.

    Attributes:
        history: it.
        title: the first words that a person typed, decoded; "" for none.
        last: the latest time of a message (ISO 8601); "" where none is noted.
        unknown: parts of a kind that is not known; they stay.
        repeats: results that the file holds more than once.
    """

    history: NeutralHistory
    title: str
    last: str
    unknown: int
    repeats: int


def build(log: Log) -> Built:
    """Rebuild the history of a file.

    Raises:
        InputError: nothing is said in it, or it became shorter while it was read.
    """
    into, pairing = Builder(), Pairing()
    title = last = ""
    unknown = repeated = 0
    with log.reader() as fetch:
        for record, entry in enumerate(log.entries):
            message = opened(fetch(entry))
            last = max(last, message.word("timestamp"))
            unknown += sum(piece.kind == "unknown" for piece in message.pieces)
            if not message.pieces:
                continue
            claims = pairing.take(message)
            repeated += claims.count(None)
            answers = "gemini" if message.type == "gemini" else "user"
            counted = False
            into.model = message.word("model") or into.model
            for number, piece in enumerate(message.pieces):
                claim = claims[number]
                if claim is None:
                    continue
                place = (record, number)
                if answers == "gemini" and piece.kind == "result" and not counted:
                    counted = _count(into, message, entry.id, record)
                if piece.kind == "text":
                    words = str(spans.decode(piece.literal)) if answers == "user" else ""
                    whose: Origin = origin(words) if answers == "user" else "agent"
                    into.compacted = into.compacted or whose == "summary"
                    title = title or (words if whose == "human" and not words.startswith("/") else "")
                    into.text(whose, piece.literal, place)
                elif piece.kind == "thinking":
                    into.thinking(piece.literal, place)
                elif piece.kind == "call":
                    into.call(piece.id, piece.name, piece.literal, place)
                elif piece.kind == "image":
                    into.image(piece.literal, place)
                elif piece.kind == "unknown":
                    into.control(piece.literal, place, "agent" if answers == "gemini" else "harness")
                else:
                    into.result(claim, piece.literal, place, error=piece.error)
            if answers == "gemini" and not any(piece.kind == "result" for piece in message.pieces):
                _count(into, message, entry.id, record)
    if not into.places:
        raise InputError(f"{log.path}: nothing is said in it ({len(log.entries):,} messages); give another session")
    return Built(into.done(), title, last, unknown, repeated)


def _count(into: Builder, message: Message, id_: str, record: int) -> bool:
    """Note what the provider counted for an answer whose last block was added; False where there is none of it."""
    if not into.places or into.places[-1][-1][0] != record:
        return False
    noted = tokens(message)
    prompt, cached = _number(noted, "input"), _number(noted, "cached")
    if prompt:
        usage = Usage(
            input=max(prompt - cached, 0),
            cache_read=cached,
            output=_number(noted, "output") + _number(noted, "thoughts"),
        )
        into.answered(Request(0, id_, message.word("model"), message.word("timestamp"), usage))
    return True


def _number(noted: dict[str, object], key: str) -> int:
    value = noted.get(key)
    return int(value) if isinstance(value, str) and value.isdigit() else 0
