"""A session's state, rebuilt from its events, and what comes next: the agent's decision core.

Law: a fold. Nothing is known that no event told; no clock, no effects, no provider's types. The history only grows,
but for a checkpoint that the human takes back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from .. import narration
from ..blocks import address
from ..checkpoint import REFUSED
from . import events as ev

INTERRUPTED = (
    "Interrupted: the program ended while this ran; whether it had an effect is not known. Look before you repeat it."
)
TAKEN_BACK = f"{REFUSED} the human took this checkpoint back; everything before it stands in your context again."


@dataclass(frozen=True, slots=True)
class Words:
    """Text that goes to the model on the human's side.

    Attributes:
        text: as it was typed.
        by: "human"; "hint" for the human's words while the agent worked; "harness".
    """

    text: str
    by: Literal["human", "hint", "harness"] = "human"


@dataclass(frozen=True, slots=True)
class Given:
    """What the model is given between two answers: results in the calls' order, then words; the reminder is ours."""

    results: tuple[ev.Result, ...] = ()
    words: tuple[Words, ...] = ()
    reminder: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    """A call as an answer makes it.

    Attributes:
        id: the call's.
        name: the tool.
        arguments: decoded; None where they can't be read.
        address: 16 hex digits.
    """

    id: str
    name: str
    arguments: Mapping[str, Any] | None
    address: str


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer.

    Attributes:
        message: as the provider library writes it.
        content: its texts and calls in Anthropic's shape, as narration hears them.
        calls: the calls in order.
    """

    message: Mapping[str, Any] = field(repr=False)
    content: list[dict[str, Any]]
    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class Ask:
    """Next: the model is asked. `again`: the request that was asked last has no answer, and nothing was added."""

    again: bool


@dataclass(frozen=True, slots=True)
class Run:
    """Next: these calls are carried out."""

    calls: tuple[Call, ...]


def read(message: Mapping[str, Any]) -> Answer:
    """An answer out of the provider library's JSON form of it (`models.dumped`)."""
    content: list[dict[str, Any]] = []
    calls = []
    for part in message.get("parts", ()):
        kind = part.get("part_kind")
        if kind == "text" and part.get("content"):
            content.append({"type": "text", "text": part["content"]})
        elif kind == "thinking" and part.get("content"):
            thought = {"type": "thinking", "thinking": part["content"], "signature": part.get("signature") or ""}
            content.append(thought)
        elif kind == "tool-call":
            call = _call(part)
            calls.append(call)
            content.append({"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments or {}})
    return Answer(message, content, tuple(calls))


def _call(part: Mapping[str, Any]) -> Call:
    given, id, name = part.get("args"), str(part.get("tool_call_id")), str(part.get("tool_name"))
    raw = given if isinstance(given, str) else json.dumps(given if given is not None else {}, ensure_ascii=False)
    try:
        value = json.loads(raw or "{}")
    except (ValueError, RecursionError):
        value = None
    where = address(id, name, (raw or "{}").encode("utf-8", "surrogatepass"))
    return Call(id, name, value if isinstance(value, dict) else None, where)


def is_checkpoint(result: ev.Result) -> bool:
    """Whether a result stores a checkpoint."""
    return result.name == "micro_handoff" and not (result.is_error or result.text.startswith(REFUSED))


@dataclass(slots=True)
class State:
    """What a session is, after the events so far.

    Attributes:
        begun: how it began.
        model, base_url: what is asked now.
        history: what was given and answered, whole.
        open: calls without a result, by id, in order.
        started, approved: of these, what began to run, and what the human let run.
        denied: of these, why they do not run.
        always: calls of which the human said that others like them need no question.
        asking: a request has no answer yet.
        active: a turn is on.
        requests: that were begun.
        turns: requests of each turn.
        usd: cost so far; None where no price is known. `used`: all token counts together; `last`: of the last answer.
        checkpoints: calls of stored checkpoints that stand.
        rewritten: counts changes inside the history.
    """

    begun: ev.Begun | None = None
    model: str = ""
    base_url: str = ""
    history: list[Given | Answer] = field(default_factory=list)
    open: dict[str, Call] = field(default_factory=dict)
    started: set[str] = field(default_factory=set)
    approved: set[str] = field(default_factory=set)
    denied: dict[str, str] = field(default_factory=dict)
    always: list[Call] = field(default_factory=list)
    asking: bool = False
    active: bool = False
    requests: int = 0
    turns: list[int] = field(default_factory=list)
    usd: float | None = 0.0
    used: ev.Used = field(default_factory=ev.Used)
    last: ev.Used = field(default_factory=ev.Used)
    checkpoints: list[str] = field(default_factory=list)
    rewritten: int = 0
    _results: dict[str, ev.Result] = field(default_factory=dict)
    _order: list[str] = field(default_factory=list)
    _words: list[Words] = field(default_factory=list)

    # ------------------------------------------------------------------------------------------- what was

    def apply(self, event: ev.Event) -> None:
        """Take an event in."""
        match event:
            case ev.Begun():
                self.begun, self.model, self.base_url = event, event.model, event.base_url
            case ev.Resumed():
                self.model = event.model or self.model
                self.base_url = event.base_url or self.base_url
            case ev.Human():
                self._words.append(Words(event.text, "harness" if event.harness else "human"))
                self.turns.append(0)
                self.active = True
            case ev.Hint():
                self._words.append(Words(event.text, "hint"))
                self.active = True
            case ev.Asked():
                self._asked(event)
            case ev.Answered():
                self._answered(event)
            case ev.Approved():
                self.approved.add(event.call)
                if event.always and event.call in self.open:
                    self.always.append(self.open[event.call])
            case ev.Denied():
                self.denied[event.call] = event.reason
                if event.words:
                    self._words.append(Words(event.words, "hint"))
            case ev.Started():
                self.started.add(event.call)
            case ev.Result():
                self._result(event)
            case ev.CutUndone():
                self._undo(event.call)
            case ev.TurnEnded():
                self.active = False

    def _asked(self, event: ev.Asked) -> None:
        results = tuple(self.given_next())
        given = Given(results, tuple(self._words), event.reminder)
        self._results, self._order, self._words = {}, [], []
        before = self.history[-1] if self.history else None
        if isinstance(before, Given):  # its request was never answered
            given = Given(before.results + results, before.words + given.words, before.reminder or given.reminder)
            self.history[-1] = given
            self.rewritten += 1
        else:
            self.history.append(given)
        self.asking = True
        self.requests += 1
        self.turns = self.turns or [0]
        self.turns[-1] += 1

    def _answered(self, event: ev.Answered) -> None:
        answer = read(event.message)
        self.history.append(answer)
        self.asking = False
        self.open = {call.id: call for call in answer.calls}
        self._order = list(self.open)
        self.started, self.approved, self.denied = set(), set(), {}
        if not event.used:  # a turn that was stopped: nobody told what its half answer used
            return
        self.last, total = ev.Used(**event.used), self.used
        self.used = ev.Used(
            total.input + self.last.input,
            total.cache_read + self.last.cache_read,
            total.cache_write + self.last.cache_write,
            total.output + self.last.output,
        )
        self.usd = None if self.usd is None or self.last.usd is None else self.usd + self.last.usd

    def _result(self, event: ev.Result) -> None:
        self.open.pop(event.call, None)
        self._results[event.call] = event
        if is_checkpoint(event):
            self.checkpoints.append(event.call)

    def _undo(self, call: str) -> None:
        if call in self.checkpoints:
            self.checkpoints.remove(call)
        if call in self._results:
            self._results[call] = replace(self._results[call], text=TAKEN_BACK, is_error=True)
        for number in range(len(self.history) - 1, -1, -1):
            given = self.history[number]
            if isinstance(given, Given) and any(one.call == call for one in given.results):
                results = (
                    replace(one, text=TAKEN_BACK, is_error=True) if one.call == call else one for one in given.results
                )
                self.history[number] = replace(given, results=tuple(results))
                self.rewritten += 1
                return

    # ------------------------------------------------------------------------------------------- what is next

    @property
    def waiting(self) -> bool:
        """Whether there is something that the model was not given yet."""
        return bool(self._results or self._words)

    def next(self) -> Ask | Run | None:
        """What comes next; None where the turn is over."""
        if not self.active:
            return None
        if self.open:
            return Run(tuple(self.open.values()))
        if self.waiting or self.asking:
            return Ask(again=not self.waiting)
        return None

    def given_next(self) -> list[ev.Result]:
        """The results that wait to be given, in the calls' order."""
        return [self._results[id] for id in self._order if id in self._results]

    @property
    def after_checkpoint(self) -> bool:
        """Whether a stored checkpoint's result waits to be given."""
        return any(is_checkpoint(result) for result in self._results.values())

    def answers(self) -> list[Answer]:
        """All answers, in order."""
        return [one for one in self.history if isinstance(one, Answer)]

    def stretch(self) -> list[Given | Answer]:
        """The history behind the last standing checkpoint's turn."""
        for number in range(len(self.history) - 1, -1, -1):
            given = self.history[number]
            if isinstance(given, Given) and any(map(is_checkpoint, given.results)):
                return self.history[number + 1 :]
        return list(self.history)


def texts(answer: Answer) -> list[str]:
    """What the agent said in an answer: its texts, and what it made the say tool carry."""
    found = []
    for block in answer.content:
        if block["type"] == "text":
            found.append(block["text"])
        elif block["type"] == "tool_use":
            raw = json.dumps(block["input"], ensure_ascii=False).encode("utf-8", "surrogatepass")
            found.append(narration.spoken(block["name"], raw) or "")
    return [text for text in found if text.strip()]
