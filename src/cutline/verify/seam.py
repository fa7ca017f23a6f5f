"""Where the cut is made: at the last checkpoint turn, or at a place that was asked for. Law: pure reading."""

from __future__ import annotations

from dataclasses import dataclass

from ..notice import Trace
from .history import ATTACHED, HARNESS, History, Message, Turn


@dataclass(frozen=True, slots=True)
class Options:
    """The options of the cut that is proven; see `cutline.cut`."""

    join: str | None
    notice: bool
    trace: Trace
    keep_tools: frozenset[str]
    at: int | str | None
    drop_narration: bool
    session: bool
    late: bool

    @property
    def notices(self) -> bool:
        """Whether the cut adds anything: a body that is cut without a checkpoint carries no notice."""
        return self.notice and (self.at is None or self.session)


class Uncut(Exception):
    """The body must come out as it is; the text says why."""


def find_seam(history: History, options: Options) -> tuple[int, Turn | None]:
    """Index of the first message behind the cut, and the checkpoint turn that stands there (none with `at`).

    Raises:
        Uncut: there is no checkpoint, or nothing before the place that was asked for.
    """
    if options.at is None:
        # A body without the name in plain ASCII is not looked at, so that most bodies pass in no time.
        if not history.turns or b"micro_handoff" not in history.data:
            raise Uncut("no completed checkpoint")
        return history.turns[-1].first, history.turns[-1]
    place = _snap(history, _asked(history, options.at, options.session))
    if not place:
        raise Uncut("nothing stands before the place that was asked for")
    return place, None


def _asked(history: History, at: int | str, session: bool) -> int:
    messages = history.messages
    if isinstance(at, int):
        place = at
    elif at == "end":
        place = len(messages)
    else:
        turns = [message.index for message in messages if _human(history, message)]
        number = len(turns) if at == "last" else int(at.removeprefix("human:"))
        if not 1 <= number <= len(turns):
            raise Uncut(f"the history has {len(turns)} human turns")
        place = turns[number - 1]
    if place > len(messages):
        raise Uncut(f"the history has {len(messages)} messages")
    if place == len(messages) and not session:
        # The agent must be left something to answer: a last message of nothing but replies stays, with its calls.
        last = next((message for message in reversed(messages) if message.role != "system"), None)
        if last is not None and last.role == "user" and _hollow(history, last):
            return last.index
    return place


def _hollow(history: History, message: Message) -> bool:
    replies = any(block.kind == "result" and block.partner is not None for block in message.blocks)
    return replies and all(block.kind == "result" or history.blank(block) for block in message.blocks)


def _human(history: History, message: Message) -> bool:
    """Whether a person made this message: words that no client puts there, or something attached."""
    if message.role != "user":
        return False
    for block in message.blocks:
        if block.type in ATTACHED:
            return True
        words = history.words(block).lstrip() if block.kind == "text" else ""
        if words and not words.startswith(HARNESS):
            return True
    return False


def _snap(history: History, place: int) -> int:
    """The nearest place before, where no call is open and no system message stands."""
    messages = history.messages
    speakers, hearers = history.groups[-1]
    waiting = {message.index for message in speakers} if not hearers else set()
    spans = []
    for block in history.blocks:
        if block.kind == "call" and block.partner is not None:
            spans.append((block.message, block.partner.message))
        elif block.kind == "call" and block.message in waiting:
            spans.append((block.message, len(messages)))
    while place > 0:
        opened = min((call for call, result in spans if call < place <= result), default=None)
        if opened is not None:
            place = opened
        elif place < len(messages) and messages[place].role == "system":
            place -= 1
        else:
            break
    return place
