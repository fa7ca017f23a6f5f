"""What a person is told of each event, and what is going on right now.

Law: pure; the clock is an argument. All text goes through `plain` here, so nothing behind this file meets a byte that
steers a terminal. What is told is told once; what only goes on (`Live`) is held as its last lines.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ... import mandate
from .. import events as ev
from ..tools.plain import Shower, shown
from .blocks import Blocks

Kind = (
    Literal["said", "human", "hint", "call", "result", "fault", "diff", "note", "question", "checkpoint", "lost"]
    | Literal["answer", "keys"]  # to the human's own commands
)

_ARGUMENT_LINES = 24
_TAIL = 4_000  # characters of a running tool's output, or of thinking, that are held for the eye
_HEAD_LINES, _TAIL_LINES = 3, 8  # of a result
_READ_LINES = 3  # of what was only looked at
_FAULT_LINES = 20
_DIFF_LINES = 400
_LOOKING = frozenset({"read", "grep", "glob", "memory", "recall", "job_output"})
_OWN = frozenset({"say", "micro_handoff"})


@dataclass(frozen=True, slots=True)
class Told:
    """Something that is told, for good.

    Attributes:
        kind: what it is.
        text: the heading or the text.
        more: what stands under it.
    """

    kind: Kind
    text: str
    more: str = ""


@dataclass(slots=True)
class Running:
    """A call that runs.

    Attributes:
        call: as the agent made it.
        since: when it began, by the caller's clock.
        tail: the last of its output.
    """

    call: ev.Called
    since: float
    tail: str = ""
    shower: Shower = field(default_factory=Shower, repr=False)


@dataclass(slots=True)
class Live:
    """What goes on now.

    Attributes:
        asked: when the model was asked; None while it is not.
        thinking: the last of its thinking.
        running: the calls that run, by id.
        queued: hints that the agent was not given yet.
        paused, active: it is held; a turn is on.
        status: the latest figures.
    """

    asked: float | None = None
    thinking: str = ""
    running: dict[str, Running] = field(default_factory=dict)
    queued: list[str] = field(default_factory=list)
    paused: bool = False
    active: bool = False
    status: ev.Status | None = None


class Teller:
    """Tells a session's events."""

    def __init__(self) -> None:
        self.live = Live()
        self._blocks = Blocks()
        self._shower = Shower()
        self._streamed = False
        self._calls: dict[str, ev.Called] = {}
        self._diffs: set[str] = set()
        self._together = 0  # calls of the last answer

    @property
    def writing(self) -> str:
        """The agent's words that are not a whole block yet."""
        return self._blocks.rest

    def tell(self, event: ev.Event, now: float) -> list[Told]:
        """What is told of an event; `now` in seconds, by any clock."""
        return [*self._human(event), *self._model(event, now), *self._tools(event, now), *self._harness(event)]

    def _human(self, event: ev.Event) -> Iterator[Told]:
        live = self.live
        match event:
            case ev.Human():
                live.active = True
                asked = Told("note", "on your command, the agent is asked")
                yield asked if event.harness else Told("human", shown(event.text))
            case ev.Hint():
                live.active = True
                live.queued.append(shown(event.text))
            case ev.Pause():
                live.paused = event.paused
            case ev.ApprovalAsked():
                if event.call not in self._calls:  # not the agent's: a server of the project's, before the first turn
                    yield _called(ev.Called(event.call, event.name, event.arguments))
                if event.diff:
                    self._diffs.add(event.call)
                    yield _diff(event.diff)
                yield Told("question", f"{shown(event.name)}: {shown(event.reason)}")
            case ev.Approved():
                yield Told("note", "allowed, and calls like it from now on" if event.always else "allowed")
            case ev.Denied():
                if event.words:
                    live.queued.append(shown(event.words))
                yield Told("note", "denied; your words go to the agent" if event.words else _denied(event))

    def _model(self, event: ev.Event, now: float) -> Iterator[Told]:
        live = self.live
        match event:
            case ev.Asked():
                live.asked = now
                self._begin()
                yield from (Told("hint", text) for text in live.queued)
                live.queued = []
            case ev.TextDelta():
                self._streamed, live.thinking = True, ""
                yield from (Told("said", text) for text in self._blocks.feed(self._shower.feed(event.text)))
            case ev.ThinkingDelta():
                yield from self._flush()
                live.thinking = (live.thinking + shown(event.text))[-_TAIL:]
            case ev.Answered():
                yield from self._flush()
                live.asked, live.thinking, self._together = None, "", 0
            case ev.Text():
                if not self._streamed:
                    yield from _said(event.text)
            case ev.Thinking():
                yield Told("note", f"thought, {len(event.text):,} characters")
            case ev.Called():
                self._calls[event.call] = event
                self._together += 1
                if event.name == "say":
                    yield from _said(str(event.arguments.get("text", "")))
                else:
                    yield _called(event)
            case ev.Retry():
                yield from self._lost(event, now)

    def _tools(self, event: ev.Event, now: float) -> Iterator[Told]:
        match event:
            case ev.Started():
                made = self._calls.get(event.call) or ev.Called(event.call, event.name, {})
                self.live.running[event.call] = Running(made, now)
            case ev.ToolOutput():
                if (running := self.live.running.get(event.call)) is not None:
                    running.tail = (running.tail + running.shower.feed(event.text))[-_TAIL:]
            case ev.Result():
                yield from self._result(event, now)
            case ev.Checkpoint():
                yield _checkpoint(event)

    def _harness(self, event: ev.Event) -> Iterator[Told]:
        live = self.live
        match event:
            case ev.CutUndone():
                yield Told("note", "checkpoint taken back")
            case ev.Handoff():
                yield Told("note", f"full handoff written: {shown(event.path)}")
            case ev.Notice():
                yield Told("note", shown(event.text))
            case ev.Failed():
                yield Told("fault", shown(event.text))
            case ev.Status():
                live.status, live.paused = event, event.paused
            case ev.TurnEnded():
                yield from self._flush()
                live.asked, live.active, live.running, live.thinking = None, False, {}, ""
                if event.reason == "stopped":
                    yield Told("note", "you stopped the turn")

    def _begin(self) -> None:
        self._blocks, self._shower, self._streamed = Blocks(), Shower(), False
        self.live.thinking = ""

    def _flush(self) -> Iterator[Told]:
        for text in [*self._blocks.feed(self._shower.end()), *self._blocks.end()]:
            yield Told("said", text)

    def _lost(self, event: ev.Retry, now: float) -> Iterator[Told]:
        rest = self._blocks.feed(self._shower.end()) + self._blocks.end()
        if rest:
            yield Told("lost", "\n\n".join(rest))
        said = "; what it had written of this answer does not count" if event.shown else ""
        yield Told("fault", f"{shown(event.reason)}; asked again in {event.wait:g} s{said}")
        self._begin()
        self.live.asked = now

    def _result(self, event: ev.Result, now: float) -> Iterator[Told]:
        running = self.live.running.pop(event.call, None)
        if event.name in _OWN and not event.is_error:
            return
        made = self._calls.get(event.call)
        text, nudged = event.text, False
        if text.endswith(mandate.NUDGE):
            text, nudged = text.removesuffix(mandate.NUDGE).rstrip("\n"), True
        text = shown(text).strip("\n")
        if event.exit_code is not None:  # the heading says it
            text = f"\n{text}".removesuffix(f"\n[exit code {event.exit_code}]").strip("\n")
        lines = text.count("\n") + 1 if text else 0
        head = [shown(event.name)] if self._together > 1 else []
        head += [] if event.ran else ["not run"]
        if event.exit_code is not None:
            head.append(f"exit code {event.exit_code}")
        elif event.is_error and event.ran:
            head.append("failed")
        head.append("done" if event.diff else f"{lines:,} line{'' if lines == 1 else 's'}")
        if running is not None and now - running.since >= 0.1:
            head.append(f"{now - running.since:.1f} s")
        if nudged:
            head.append("reminded of its intent")
        bad = event.is_error and event.exit_code is None
        if event.diff:
            yield Told("result", " · ".join(head))
            if event.call not in self._diffs:
                yield _diff(event.diff)
            return
        first, last = (_READ_LINES, 0) if event.name in _LOOKING and not bad else (_HEAD_LINES, _TAIL_LINES)
        if bad or not event.ran:
            first, last = _FAULT_LINES, 0
        if lines > first + last + 1 and made is not None and made.address:
            head.append(f"/recall {made.address}")
        yield Told("fault" if bad else "result", " · ".join(head), _some(text, first, last))


def _said(text: str) -> Iterator[Told]:
    """A text that is whole, block by block."""
    whole = Blocks()
    for block in [*whole.feed(shown(text)), *whole.end()]:
        yield Told("said", block)


def _diff(text: str) -> Told:
    return Told("diff", "", _some(shown(text).rstrip("\n"), _DIFF_LINES, 0))


def _denied(event: ev.Denied) -> str:
    return f"denied: {shown(event.reason)}"


def _some(text: str, first: int, last: int) -> str:
    """The first and last lines of a text, with how many stand between."""
    lines = text.split("\n")
    if len(lines) <= first + last + 1:
        return text
    left = f"… {len(lines) - first - last:,} more lines"
    return "\n".join([*lines[:first], left, *(lines[-last:] if last else ())])


def _called(event: ev.Called) -> Told:
    head, more = arguments(event.name, event.arguments)
    if event.intent is False:
        head += "   (no intent stated)"
    return Told("call", f"{shown(event.name)}  {head}".rstrip(), _some(more, _ARGUMENT_LINES, 0) if more else "")


def arguments(name: str, given: Mapping[str, Any]) -> tuple[str, str]:
    """A call's arguments: one line, and what does not fit into it."""
    if name == "micro_handoff":
        return "", ""
    if name in ("edit", "write") and isinstance(given.get("file_path"), str):
        return shown(given["file_path"]), ""  # the diff says the rest
    head, more = [], []
    for number, (key, value) in enumerate(given.items()):
        text = shown(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))
        bare = number == 0 and isinstance(value, str)
        if "\n" in text.strip("\n"):
            more += [] if bare else [f"{shown(key)}:"]
            more += text.strip("\n").split("\n")
        else:
            text = text.strip("\n")
            head.append(text if bare else f"{shown(key)}={text}")
    return "  ".join(head), "\n".join(more)


def _checkpoint(event: ev.Checkpoint) -> Told:
    told = []
    for name in ("done", "open", "went_wrong", "next"):
        value = event.document.get(name)
        if isinstance(value, str) and value.strip():
            told.append(f"{name.replace('_', ' ')}: {' '.join(shown(value).split())}")
    facts = event.document.get("facts")
    if isinstance(facts, list) and facts:
        told.append(f"facts: {len(facts)}")
    calls = "1 call leaves" if event.calls == 1 else f"{event.calls:,} calls leave"
    return Told("checkpoint", f"checkpoint: {calls} the context; /undo-cut takes it back", "\n".join(told))
