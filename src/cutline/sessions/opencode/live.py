"""Which messages the client would send, and in which order.

Law: the client's own rules. What a person took back (a revert) is not sent any more; a compaction hides what stands
before it, but for the last messages that it keeps, which come behind its summary.
"""

from __future__ import annotations

from dataclasses import dataclass

from .literals import Opened
from .records import Log


@dataclass(frozen=True, slots=True)
class Live:
    """What is sent.

    Attributes:
        order: indices of messages, in the order of sending.
        until: for a message that a revert cut short, how many of its parts are left.
        compacted: whether something is hidden behind a summary.
    """

    order: list[int]
    until: dict[int, int]
    compacted: bool


@dataclass(frozen=True, slots=True)
class Compaction:
    """A user message that asks for a summary: the part that says so, and the first message that is kept, if any."""

    part: int
    tail: str


def live(log: Log) -> Live:
    """The messages that are sent."""
    order, until = standing(log)
    found: list[int] = []
    answered: set[str] = set()
    tail, compacted = "", False
    for number in reversed(order):
        one = log.messages[number]
        found.append(number)
        if tail:
            if one.id == tail:
                break
            continue
        if one.role == "user" and one.id in answered:
            asks = compaction(log, number)
            if asks is not None:
                compacted = True
                if not asks.tail or asks.tail == one.id:
                    break
                tail = asks.tail
        elif one.role == "assistant" and sums_up(Opened(one.raw)):
            answered.add(one.parent)
    found.reverse()
    return Live(_tail_last(log, found), until, compacted)


def sums_up(info: Opened) -> bool:
    """Whether an answer is a finished summary."""
    done = bool(info.word("finish")) and info.literal("error") in (b"", b"null")
    return info.literal("summary") == b"true" and done


def compaction(log: Log, number: int) -> Compaction | None:
    """What a user message asks to be summed up."""
    for index, part in enumerate(log.messages[number].parts):
        opened = log.open(part.raw)
        if opened.word("type") == "compaction":
            return Compaction(index, opened.word("tail_start_id"))
    return None


def standing(log: Log) -> tuple[list[int], dict[int, int]]:
    """The messages before the point that a person went back to; of one that this cut short, how many parts are left."""
    everything = list(range(len(log.messages)))
    to, at = log.head.word("revert", "messageID"), log.head.word("revert", "partID")
    place = next((number for number in everything if to and log.messages[number].id == to), None)
    if place is None:
        return everything, {}
    if not at:
        return everything[:place], {}
    parts = log.messages[place].parts
    left = next((index for index, part in enumerate(parts) if part.id == at), len(parts))
    return everything[: place + 1], {place: left}


def _tail_last(log: Log, found: list[int]) -> list[int]:
    """The messages that a compaction keeps, behind its summary."""
    asked = [(at, compaction(log, number)) for at, number in enumerate(found) if log.messages[number].role == "user"]
    kept = [(at, asks.tail) for at, asks in asked if asks is not None and asks.tail]
    if not kept:
        return found
    at, tail = kept[-1]
    asker = log.messages[found[at]].id
    summary = next((place for place in range(at + 1, len(found)) if _answers(log, found[place], asker)), -1)
    start = next((place for place, number in enumerate(found) if log.messages[number].id == tail), -1)
    if not 0 <= start < at < summary:
        return found
    return found[at : summary + 1] + found[start:at] + found[summary + 1 :]


def _answers(log: Log, number: int, asker: str) -> bool:
    one = log.messages[number]
    return one.role == "assistant" and one.parent == asker and Opened(one.raw).literal("summary") == b"true"
