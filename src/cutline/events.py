"""A body read as what narration sees: words and calls in their order.

Law: reading only; which words are the agent's is decided by `wire`, whether they narrate by `narration`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import narration, spans
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


def claims(request: Request) -> dict[str, int]:
    """How many facts the checkpoint documents state, by their basis ("measured", "inferred", "unmarked")."""
    found = {"measured": 0, "inferred": 0, "unmarked": 0}
    for message in request.messages:
        for block in message.blocks:
            if not wire.is_checkpoint(block):
                continue
            document: Any = spans.decode(wire.member(request, block, "input") or b"{}")
            facts = document.get("facts") if isinstance(document, dict) else None
            for fact in facts if isinstance(facts, list) else []:
                basis = fact.get("basis") if isinstance(fact, dict) else None
                found[basis if basis in ("measured", "inferred") else "unmarked"] += 1
    return found


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
