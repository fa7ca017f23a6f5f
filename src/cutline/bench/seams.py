"""Where a history is cut in the bench: its checkpoints, its client's own compactions, else natural places by rule.

Law: pure. A natural seam stands before a human turn once forty calls have been made since the seam before, or where
no call is open once eighty have; and only where at least ten more calls follow, since what is measured is what the
agent went on to use.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ..blocks import Kind
from ..wire import anthropic as wire
from ..wire.anthropic import Request

Cause = Literal["compaction", "checkpoint", "natural"]
AFTER, LATEST, BEFORE = 40, 80, 10


@dataclass(frozen=True, slots=True)
class Told:
    """What a client put in the place of what it compacted.

    Attributes:
        texts: its summary's texts, and what else it put there; empty where they are not readable (encrypted).
        kept: messages before the seam that it kept whole.
        size: bytes of its summary.
    """

    texts: tuple[str, ...]
    kept: tuple[int, ...]
    size: int


@dataclass(frozen=True, slots=True)
class Seam:
    """A place to cut at.

    Attributes:
        message: the first message behind it.
        cause: why it is there.
        until: the first message that belongs to the next seam's stretch, or the end.
        told: what the client itself put there; None but at compactions.
    """

    message: int
    cause: Cause
    until: int
    told: Told | None = None


def natural(request: Request, human: Sequence[int]) -> list[int]:
    """Natural places to cut at, as message indices.

    Args:
        request: the history.
        human: the messages that a person typed.
    """
    made = [sum(block.kind is Kind.CALL for block in message.blocks) for message in request.messages]
    left, since, open_until = sum(made), 0, -1
    pairs, _ = wire.pairs(request.messages)
    answered = {place[0]: answer[0] for place, answer in pairs.items()}
    turns, found = set(human), []
    for number, calls in enumerate(made):
        free = number > open_until and request.messages[number].role in ("assistant", "user")
        if free and left >= BEFORE and (since >= LATEST or (since >= AFTER and number in turns)):
            found.append(number)
            since = 0
        since += calls
        left -= calls
        open_until = max(open_until, answered.get(number, -1))
    return found


def place(points: Sequence[tuple[int, Cause, Told | None]], end: int) -> list[Seam]:
    """Seams of these points, each answering for the words up to the next."""
    ordered = sorted(points, key=lambda point: point[0])
    nexts = [*(point[0] for point in ordered[1:]), end]
    return [
        Seam(at, cause, nexts[number], told)
        for number, (at, cause, told) in enumerate(ordered)
        if 0 < at < nexts[number]
    ]
