"""A body read as what narration sees: words and calls in their order.

Law: reading only; which words are the agent's is decided by `wire`, whether they narrate by `narration`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from . import narration
from .blocks import Event, Kind, Said, ToolCall
from .wire import anthropic as wire
from .wire.anthropic import Request


@dataclass(frozen=True, slots=True)
class Found:
    """A call of a history and where it stands.

    Attributes:
        call: the call with its result.
        message, block: its place.
        result: (message, block) of its result, or None.
    """

    call: ToolCall
    message: int
    block: int
    result: tuple[int, int] | None


def calls(request: Request) -> list[Found]:
    """Every call of a history with its result, in order."""
    pairs, _ = wire.pairs(request.messages)
    found = []
    for number, message in enumerate(request.messages):
        for index, block in enumerate(message.blocks):
            if block.kind is Kind.CALL:
                answer = pairs.get((number, index))
                answered = request.messages[answer[0]].blocks[answer[1]] if answer else None
                found.append(Found(wire.call(request, block, number, answered), number, index, answer))
    return found


def events(request: Request, *, narrated: bool = True) -> list[Event]:
    """Words and calls in their order. Harness text is nobody's words and is left out.

    Args:
        request: the history.
        narrated: count narration blocks' words among the agent's.
    """
    made = {(found.message, found.block): found.call for found in calls(request)}
    out: list[Event] = []
    for number, message in enumerate(request.messages):
        for index, block in enumerate(message.blocks):
            if block.kind is Kind.CALL:
                out.append(made[number, index])
            elif block.kind is Kind.TEXT:
                text = wire.words(request, block)
                author = wire.author(message.role, block, text)
                if author in ("agent", "human"):
                    out.append(Said(text, author))
            elif narrated and block.kind is Kind.THINKING and wire.is_narration(request, block):
                text = wire.words(request, block)
                if text.strip():
                    out.append(Said(text))
    return out


def hidden(request: Request) -> int:
    """Narration blocks without words: the agent narrated, and nobody was shown it."""
    count = 0
    for message in request.messages:
        for block in message.blocks:
            if block.kind is Kind.THINKING and wire.is_narration(request, block):
                start, end = wire.text_span(request, block)
                count += start == end
    return count


@dataclass(frozen=True, slots=True)
class Stretch:
    """How much of one stretch is narrated.

    Attributes:
        message: its first message.
        calls, holes: its calls, without those of our own tools, and those of them that no words carry.
    """

    message: int
    calls: int
    holes: int


@dataclass(frozen=True, slots=True)
class Channels:
    """In which way the calls of a history are narrated; each is counted once, by the first way that carries it.

    Attributes:
        calls: calls, without those of our own tools.
        text: carried by ordinary text.
        narration: carried only with the words of narration blocks.
        say: carried only with the words of `say` calls.
        hidden: narration blocks that came without words.
    """

    calls: int
    text: int
    narration: int
    say: int
    hidden: int

    @property
    def silent(self) -> int:
        """Calls that nothing carries."""
        return self.calls - self.text - self.narration - self.say


def channels(request: Request) -> Channels:
    """How the calls of a history are narrated, and by which way."""
    everything = events(request)
    no_say = [event for event in everything if not (isinstance(event, ToolCall) and wire.is_say(event.name))]
    plain = [
        event
        for event in events(request, narrated=False)
        if not (isinstance(event, ToolCall) and wire.is_say(event.name))
    ]
    whole, shown, text = (narration.review(told) for told in (everything, no_say, plain))
    carried = [one.calls - len(one.holes) for one in (text, shown, whole)]
    # A further word may part a clause otherwise than without it: a way never counts less than none.
    first, second = carried[0], max(carried[0], carried[1])
    return Channels(whole.calls, first, second - first, max(second, carried[2]) - second, hidden(request))


def review(request: Request) -> narration.Narration:
    """How much of the history's calls its agent narrated."""
    return narration.review(events(request))


def by_stretch(request: Request, narrated: narration.Narration, ends: Sequence[int] | None = None) -> list[Stretch]:
    """How each stretch of a history is narrated, in order; one without calls is left out.

    Args:
        request: the history.
        narrated: what `review` says of it.
        ends: the first message behind each stretch but the last, in order; without it the turns of the completed
            checkpoints.
    """
    ends = checkpoints(request) if ends is None else ends
    ours = [found for found in calls(request) if not narration.is_own(found.call.name)]
    made, holes = [0] * (len(ends) + 1), [0] * (len(ends) + 1)
    for found, verdict in zip(ours, narrated.verdicts, strict=True):
        number = bisect_right(ends, found.message)
        made[number] += 1
        holes[number] += verdict.hole
    starts = (0, *ends)
    return [Stretch(*told) for told in zip(starts, made, holes, strict=True) if told[1]]


def checkpoints(request: Request) -> list[int]:
    """The messages that hold a completed checkpoint's call, in order."""
    pairs, _ = wire.pairs(request.messages)
    found = {
        number
        for (number, index), answer in pairs.items()
        if wire.is_checkpoint(request.messages[number].blocks[index])
        and wire.completed(request, request.messages[answer[0]].blocks[answer[1]])
    }
    return sorted(found)
