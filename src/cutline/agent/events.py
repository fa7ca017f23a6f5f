"""What happens in a session, as values. Law: an event says what happened and decides nothing; pure, no clock.

The durable ones are the session: the log holds them, in order, each before it is acted on, and `state` rebuilds all
from them. The passing ones (`DURABLE` is false) are only shown: what streams, and what a view derives.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from typing import Any, ClassVar, Literal


@dataclass(frozen=True, slots=True)
class Event:
    """Anything that happens.

    Attributes:
        DURABLE: it is in the log; false for what is only shown.
    """

    DURABLE: ClassVar[bool] = True


# ------------------------------------------------------------------------------------------- the session and the human


@dataclass(frozen=True, slots=True)
class Begun(Event):
    """A session begins.

    Attributes:
        session: its id.
        directory: the working tree, absolute.
        model: "provider:name".
        base_url: another place of that provider's API; "" for its own.
        gate: "off", "nudge" or "strict".
        approve: "ask", "edits" or "auto".
        instructions: the system prompt, whole; it stays the same for the whole session.
        tools: name, description and schema of each tool, in order; they stay the same, too.
        parent: the session that this one was forked from; "" for none.
    """

    session: str
    directory: str
    model: str
    base_url: str = ""
    gate: str = "nudge"
    approve: str = "ask"
    instructions: str = field(default="", repr=False)
    tools: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)
    parent: str = ""


@dataclass(frozen=True, slots=True)
class Resumed(Event):
    """A session goes on in another process; an empty member means that nothing changed."""

    model: str = ""
    base_url: str = ""


@dataclass(frozen=True, slots=True)
class Human(Event):
    """A message of the human's that begins a turn, or what the harness asks for in a turn of its own.

    Attributes:
        text: the words, as they were typed.
        harness: they are the harness's, on the human's command.
    """

    text: str
    harness: bool = False


@dataclass(frozen=True, slots=True)
class Hint(Event):
    """Words that the human typed while the agent worked; they go with the next request, verbatim."""

    text: str


@dataclass(frozen=True, slots=True)
class Pause(Event):
    """The human holds the agent before its next call, or lets it go on."""

    DURABLE: ClassVar[bool] = False
    paused: bool


@dataclass(frozen=True, slots=True)
class CutUndone(Event):
    """The human took a checkpoint back: its call is answered as refused from now on, and nothing is cut at it.

    Attributes:
        call: the checkpoint call's id.
    """

    call: str


# ---------------------------------------------------------------------------------------------------------- the model


@dataclass(frozen=True, slots=True)
class Asked(Event):
    """The model is about to be asked: what waits (results, hints, a message) has become part of the history.

    Attributes:
        number: of the request in the session, from 1.
        reminder: what the harness adds behind the results, in its own name; "" for nothing.
    """

    number: int
    reminder: str = ""


@dataclass(frozen=True, slots=True)
class TextDelta(Event):
    """A piece of text, as it is written."""

    DURABLE: ClassVar[bool] = False
    text: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta(Event):
    """A piece of thinking, as it comes."""

    DURABLE: ClassVar[bool] = False
    text: str


@dataclass(frozen=True, slots=True)
class Used(Event):
    """What one answer used, in tokens as `money.Usage` counts them, and what it cost.

    Attributes:
        input: outside the cache.
        cache_read, cache_write: read from, written to the cache.
        output: tokens.
        usd: the list price; None where none is known.
    """

    DURABLE: ClassVar[bool] = False
    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    usd: float | None = None

    @property
    def prompt(self) -> int:
        """All input tokens."""
        return self.input + self.cache_read + self.cache_write


@dataclass(frozen=True, slots=True)
class Answered(Event):
    """The model's answer is complete.

    Attributes:
        message: the whole answer as the provider library writes it (`models.dumped`), signatures and ids included.
        used: the token counts, by `Used`'s names.
    """

    message: Mapping[str, Any] = field(repr=False)
    used: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Text(Event):
    """A text of the agent's, complete; part of an answer that is in the log."""

    DURABLE: ClassVar[bool] = False
    text: str


@dataclass(frozen=True, slots=True)
class Thinking(Event):
    """A thinking block, complete."""

    DURABLE: ClassVar[bool] = False
    text: str


@dataclass(frozen=True, slots=True)
class Called(Event):
    """A call that an answer makes.

    Attributes:
        call: its id.
        name: the tool.
        arguments: decoded; empty where they can't be read.
        address: 16 hex digits.
        intent: the agent's words name its target and a reason or an expectation; None where none is asked for.
    """

    DURABLE: ClassVar[bool] = False
    call: str
    name: str
    arguments: Mapping[str, Any]
    address: str = ""
    intent: bool | None = None


@dataclass(frozen=True, slots=True)
class Retry(Event):
    """The model is asked again: what streamed of this answer so far does not count.

    Attributes:
        reason: one line.
        wait: seconds until then.
        attempt: of this request, from 1.
        shown: characters of text that were shown of the lost answer.
    """

    reason: str
    wait: float
    attempt: int
    shown: int = 0


# ---------------------------------------------------------------------------------------------------------- the tools


@dataclass(frozen=True, slots=True)
class ApprovalAsked(Event):
    """A call waits for the human.

    Attributes:
        call: its id.
        name, arguments: the call.
        reason: why it is asked for.
        diff: what an edit would change; "" for all else.
    """

    call: str
    name: str
    arguments: Mapping[str, Any]
    reason: str
    diff: str = ""


@dataclass(frozen=True, slots=True)
class Approved(Event):
    """The human let a call run.

    Attributes:
        call: its id.
        always: calls like it need not be asked for in this session.
    """

    call: str
    always: bool = False


@dataclass(frozen=True, slots=True)
class Denied(Event):
    """A call does not run.

    Attributes:
        call: its id.
        reason: the rule's, or how the human said it.
        words: what the human said to it; "" for nothing. They go to the agent as a hint does.
    """

    call: str
    reason: str
    words: str = ""


@dataclass(frozen=True, slots=True)
class Started(Event):
    """A call begins to run."""

    call: str
    name: str


@dataclass(frozen=True, slots=True)
class ToolOutput(Event):
    """A piece of a running call's output."""

    DURABLE: ClassVar[bool] = False
    call: str
    text: str


@dataclass(frozen=True, slots=True)
class Result(Event):
    """What a call is answered.

    Attributes:
        call: its id.
        name: the tool.
        text: what the model gets.
        is_error: the call failed, or did not run.
        exit_code: of a command.
        diff: what an edit changed.
        ran: false for a call that was returned unrun.
    """

    call: str
    name: str
    text: str
    is_error: bool = False
    exit_code: int | None = None
    diff: str = ""
    ran: bool = True


@dataclass(frozen=True, slots=True)
class Checkpoint(Event):
    """A checkpoint was stored: the next request is cut before its turn.

    Attributes:
        call: its call's id.
        document: its arguments.
        calls: how many calls of its stretch leave: all before its own turn that don't speak to the human.
    """

    DURABLE: ClassVar[bool] = False
    call: str
    document: Mapping[str, Any]
    calls: int = 0


# ---------------------------------------------------------------------------------------------------------- the harness


@dataclass(frozen=True, slots=True)
class Handoff(Event):
    """A full handoff was written.

    Attributes:
        path: the document.
    """

    path: str


@dataclass(frozen=True, slots=True)
class Notice(Event):
    """The harness says something to the human; the agent does not see it."""

    DURABLE: ClassVar[bool] = False
    text: str


@dataclass(frozen=True, slots=True)
class Failed(Event):
    """Something went wrong that ends the turn; one line that says what to do next."""

    text: str


@dataclass(frozen=True, slots=True)
class Status(Event):
    """The figures of a status line.

    Attributes:
        calls: calls so far, without those of our own tools.
        intent: how many of them had their intent stated.
        narrated: how many were narrated before and after.
        prompt: input tokens of the last request.
        window: the model's; 0 where it is not known.
        usd: cost so far; None where no price is known.
        checkpoints: stored so far.
        paused: the agent waits before its next call.
        judged: calls whose outcome can be known: the agent has spoken since.
    """

    DURABLE: ClassVar[bool] = False
    calls: int
    intent: int
    narrated: int
    prompt: int
    window: int
    usd: float | None
    checkpoints: int
    paused: bool = False
    judged: int = 0

    @property
    def coverage(self) -> float:
        """Share of the judged calls that were narrated; 1.0 where there is none."""
        return self.narrated / self.judged if self.judged else 1.0


@dataclass(frozen=True, slots=True)
class TurnEnded(Event):
    """The agent is done with a turn.

    Attributes:
        reason: it answered; the human stopped it; it failed; or only a checkpoint could have helped, and none came.
    """

    reason: Literal["answered", "stopped", "failed", "full"]


# ------------------------------------------------------------------------------------------------------------- as JSON


@cache
def _types() -> dict[str, type[Event]]:
    # By this module's names: a class with slots is made twice, and `__subclasses__` may know the first one.
    kinds = [held for held in globals().values() if isinstance(held, type) and issubclass(held, Event)]
    return {_snake(kind.__name__): kind for kind in kinds if kind is not Event}


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def to_json(event: Event) -> dict[str, Any]:
    """An event for the log and for programs: its type, and its members by their names."""
    return {"type": _snake(type(event).__name__), **asdict(event)}


def from_json(value: Mapping[str, Any]) -> Event:
    """The event that `to_json` wrote; members that this version does not know are let through.

    Raises:
        ValueError: no such event, or a member is missing.
    """
    kind = _types().get(str(value.get("type")))
    if kind is None:
        raise ValueError(f"no event of type {value.get('type')!r}")
    given = {one.name: value[one.name] for one in fields(kind) if one.name in value}
    if "tools" in given:
        given["tools"] = tuple(given["tools"])
    try:
        return kind(**given)
    except TypeError as error:
        raise ValueError(f"event {value.get('type')}: {error}") from None
