"""The loop: what `state` says comes next is done, and told as events; a thin shell around that decision.

Law: an event is in the log before it is acted on. A call is answered once, with a result that this process made; no
text of a tool or a model approves, hints, or stands for a checkpoint's result. Only the face speaks for the human.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from .. import mandate
from ..checkpoint import REFUSED
from ..toolset import NAMES
from ..wire.anthropic import is_say, names_checkpoint
from . import events as ev
from . import fullness, gate
from .face import Face
from .log import Log
from .models import Model, Piece, Trouble, Whole, partial
from .state import INTERRUPTED, Answer, Ask, Call, Given, Run, State, is_checkpoint
from .tools.tool import Outcome, Place, Tool
from .tools.tool import Piece as Output

Word = Literal["allow", "ask", "deny"]
Rule = Callable[[Call, Tool, Place], tuple[Word, str]]
"""Whether a call may run, and why not: `approvals` decides, from rules of the human's alone."""

WAITS = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 60.0)
"""Seconds before a request is tried again, one for each time; what a provider asks for counts if it is longer."""
_INSISTED = 5  # requests in a row in which only a checkpoint is callable
_LONGEST_S = 600.0  # a provider that asks for more is not waited for

STOPPED = "Stopped by the human before it ended."
NOT_RUN = "Not run: the human stopped the turn before it began."
UNREADABLE = "Not run: the arguments are no JSON object."
CHANGED = "the file changed while this waited for an answer: look again"


class Own(Protocol):
    """Answers micro_handoff, recall and say (`Transport.answer`)."""

    def answer(self, call: Any) -> dict[str, Any] | None:
        """The answer to a call, as Anthropic's tool_result block."""


@dataclass(slots=True)
class Held:
    """What a session stands on.

    Attributes:
        log: where events go first.
        state: what they come to.
        face: who shows them.
        model: who is asked.
        own: who answers our own tools.
        tools: the others, by name.
        place: where they are carried out.
        rule: whether a call may run.
        waits: seconds before each further try.
        remember: the human lets calls like this one run without being asked.
    """

    log: Log
    state: State
    face: Face
    model: Model
    own: Own
    tools: Mapping[str, Tool]
    place: Place
    rule: Rule
    waits: Sequence[float] = WAITS
    remember: Callable[[Call, Tool, Place], None] = field(default=lambda call, tool, place: None)


class Session:
    """A session that a face steers (see `face.Steering`).

    Args:
        held: what it stands on; the state may be one that was rebuilt from a log.
    """

    def __init__(self, held: Held) -> None:
        self._held = held
        self.state = held.state
        self.coverage = gate.replayed(self.state.history)
        self._go = asyncio.Event()
        self._go.set()
        self._work: asyncio.Task[None] | None = None
        self._running: dict[str, asyncio.Task[Outcome]] = {}
        self._stopping = False
        self._ended_by_hand: set[str] = set()
        self._stops: asyncio.Future[bool] | None = None  # held, so that it is not collected while it runs
        self._asks = asyncio.Lock()
        self._shown: list[str] = []
        self._told: tuple[int, str] = (-1, "")
        self._fullness: fullness.Fullness | None = None
        self._full = 0

    # ------------------------------------------------------------------------------------- for the face

    def hint(self, text: str) -> None:
        """Note words of the human's (see `Steering`)."""
        self.emit(ev.Hint(text))

    def pause(self, paused: bool = True) -> None:
        """Hold the agent before its next call, or let it go on."""
        if paused == self.paused:
            return
        if paused:
            self._go.clear()
        else:
            self._go.set()
        self.emit(ev.Pause(paused))
        self.emit(self.status())

    @property
    def paused(self) -> bool:
        """Whether it waits, or will, before the next call."""
        return not self._go.is_set()

    @property
    def how_full(self) -> fullness.Fullness | None:
        """How full the context was before the last request; None before the first."""
        return self._fullness

    def stop_tool(self) -> bool:
        """End what runs of the current calls (see `Steering`)."""
        shell = self._held.place.shell
        if shell.busy:  # its own outcome says how far the command came, and the shell stays
            self._stops = asyncio.ensure_future(shell.stop())
            return True
        stopped = False
        for call, task in self._running.items():
            if not task.done():
                self._ended_by_hand.add(call)
                task.cancel()
                stopped = True
        return stopped

    def stop_turn(self) -> None:
        """End the turn (see `Steering`)."""
        if self._work is not None and not self._work.done():
            self._stopping = True
            self._work.cancel()

    def emit(self, event: ev.Event) -> None:
        """An event happens: first in the log, then in the state, then shown."""
        if event.DURABLE:
            self._held.log.append(event)
            self.state.apply(event)
        self._held.face.show(event)

    def status(self) -> ev.Status:
        """The figures of a status line."""
        covered, state = self.coverage, self.state
        return ev.Status(
            covered.calls,
            covered.intent,
            covered.narrated,
            state.last.prompt,
            self._held.model.window,
            state.usd,
            len(state.checkpoints),
            self.paused,
            covered.judged,
        )

    async def turn(self, text: str, *, harness: bool = False) -> ev.TurnEnded:
        """A message of the human's, and all that the agent does about it.

        Args:
            text: the words.
            harness: they are the harness's own, on the human's command.
        """
        self.emit(ev.Human(text, harness))
        return await self.go_on()

    async def go_on(self) -> ev.TurnEnded:
        """Go on until the turn is over: behind `turn`, behind a hint, or where another process ended."""
        self._stopping = False
        self._work = asyncio.create_task(self._steps())
        ended: Literal["answered", "stopped", "failed", "full"] = "answered"
        try:
            await self._work
        except asyncio.CancelledError:
            if not self._stopping:  # the program itself is ended: the log is as a kill would leave it
                self._work.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await self._work
                raise
            ended = "stopped"
            self._wind_up()
        except Trouble as trouble:
            ended = "full" if trouble.full else "failed"
            self.emit(ev.Failed(str(trouble)))
        self._running.clear()
        over = ev.TurnEnded(ended)
        self.emit(over)
        self.emit(self.status())
        return over

    # ---------------------------------------------------------------------------------------- what is done

    async def _steps(self) -> None:
        while (step := self.state.next()) is not None:
            if isinstance(step, Ask):
                await self._ask(step)
            else:
                await self._run(step)

    def _wind_up(self) -> None:
        """What a stopped turn leaves behind: every call answered, every word that was shown kept."""
        if self.state.asking and (said := "".join(self._shown)).strip():
            self._answer(Whole(partial(said), {}))
        for call in list(self.state.open.values()):
            text = STOPPED if call.id in self.state.started else NOT_RUN
            self.emit(_unrun(call, text, ran=call.id in self.state.started))

    # -------------------------------------------------------------------------------------------- the model

    async def _ask(self, step: Ask) -> None:
        await self._go.wait()
        state, model = self.state, self._held.model
        # Words that came while it waited go along.
        if not step.again or state.waiting:
            self._fullness = full = fullness.weigh(state, model.window, model.rates(state.last.prompt))
            self._full = self._full + 1 if full.level == "only" else 0
            if self._full > _INSISTED:
                raise Trouble(
                    "the context is full, and the agent wrote no checkpoint: fork it at an earlier event", full=True
                )
            reminder = full.reminder if self._is_news(full) else ""
            before = len(state.history)
            self.emit(ev.Asked(state.requests + 1, reminder))
            if len(state.history) > before:
                given = state.history[-1]
                assert isinstance(given, Given)
                self.coverage.give(given)
        begun = state.begun
        assert begun is not None
        for attempt in range(len(self._held.waits) + 1):
            self._shown = []
            try:
                async for piece in model.stream(state.history, state.rewritten, begun.instructions, begun.tools):
                    if isinstance(piece, Whole):
                        self._answer(piece)
                        return
                    self._show(piece)
            except Trouble as trouble:
                if not trouble.passing or attempt >= len(self._held.waits):
                    raise
                wait = max(self._held.waits[attempt], trouble.wait or 0.0)
                if wait > _LONGEST_S:
                    raise
                self.emit(ev.Retry(str(trouble), wait, attempt + 1, sum(map(len, self._shown))))
                self._shown = []
                await asyncio.sleep(wait)
                continue
            raise Trouble("the provider ended without an answer; say something to try again")

    def _show(self, piece: Piece) -> None:
        if piece.thinking:
            self.emit(ev.ThinkingDelta(piece.text))
        else:
            self._shown.append(piece.text)
            self.emit(ev.TextDelta(piece.text))

    def _answer(self, whole: Whole) -> None:
        self.emit(ev.Answered(whole.message, whole.used))
        self._shown = []
        answer = self.state.history[-1]
        assert isinstance(answer, Answer)
        self.coverage.hear(answer)
        calls = iter(answer.calls)
        for block in answer.content:
            if block["type"] == "text":
                self.emit(ev.Text(block["text"]))
            elif block["type"] == "thinking":
                self.emit(ev.Thinking(block["thinking"]))
            else:
                call = next(calls)
                stated = self.coverage.stated(call.id)
                self.emit(ev.Called(call.id, call.name, call.arguments or {}, call.address, stated))
        self.emit(self.state.last)
        self.emit(self.status())

    def _is_news(self, full: fullness.Fullness) -> bool:
        """Whether a level was not told of yet in this stretch; the human is told with the agent."""
        stretch, level = self._told
        now = len(self.state.checkpoints)
        if not full.level or (stretch == now and (level == full.level or full.level == "pays")):
            return False
        self._told = (now, full.level)
        self.emit(ev.Notice(full.notice))
        return True

    # -------------------------------------------------------------------------------------------- the calls

    async def _run(self, step: Run) -> None:
        for group in _groups(step.calls, self._held.tools):
            await self._go.wait()
            await _all([self._call(call) for call in group])

    async def _call(self, call: Call) -> None:
        returned = self._returned(call)
        if returned:
            self.emit(_unrun(call, returned))
            return
        if call.name in NAMES:
            await self._own(call)
            return
        tool = self._held.tools[call.name]
        place = replace(self._held.place, address=call.address)
        reason = await self._refused(call, tool, place)
        if reason:
            self.emit(_unrun(call, reason))
            return
        if call.id in self.state.started and tool.kind != "read":
            self.emit(_unrun(call, INTERRUPTED, ran=True))
            return
        self.emit(ev.Started(call.id, call.name))
        outcome = await self._outcome(call, tool, place)
        text = outcome.text
        begun = self.state.begun
        if begun is not None and begun.gate != "off" and self.coverage.stated(call.id) is False:
            text = f"{text}\n\n{mandate.NUDGE}"
        self.emit(ev.Result(call.id, call.name, text, outcome.is_error, outcome.exit_code, outcome.diff))

    def _returned(self, call: Call) -> str:
        """Why a call is returned unrun, without asking anybody; "" for none."""
        begun, full = self.state.begun, self._fullness
        if call.arguments is None:
            return UNREADABLE
        if call.name != "micro_handoff" and full is not None and full.level == "only":
            return fullness.ONLY_CHECKPOINT
        if call.name in NAMES:
            return ""
        if call.name not in self._held.tools:
            return f"No tool {call.name}. There are {', '.join([*self._held.tools, *sorted(NAMES)])}."
        if begun is not None and begun.gate == "strict" and call.id not in self.state.started:
            said = gate.verdict("strict", self.coverage, call)
            return said if said == mandate.STRICT else ""
        return ""

    async def _refused(self, call: Call, tool: Tool, place: Place) -> str:
        """Why a call does not run: a rule's word, or the human's; "" where it runs."""
        state = self.state
        if call.id in state.approved:
            return ""
        if call.id not in state.denied:
            async with self._asks:  # one question at a time, each by the rules as they stand then
                word, reason = self._held.rule(call, tool, place)
                if word == "allow":
                    return ""
                if word == "deny":
                    self.emit(ev.Denied(call.id, reason))
                else:
                    await self._approval(call, tool, place, reason)
        return f"Not run: {state.denied[call.id]}" if call.id in state.denied else ""

    async def _approval(self, call: Call, tool: Tool, place: Place, reason: str) -> None:
        assert call.arguments is not None
        preview, seen = tool.preview or (lambda given, at: ""), None
        while (diff := preview(call.arguments, place)) != seen:  # what is allowed has to be what would be done
            self.emit(asked := ev.ApprovalAsked(call.id, call.name, call.arguments, reason, diff))
            said = await self._held.face.approve(asked)
            if not said.allow:
                self.emit(ev.Denied(call.id, said.reason or "the human denied it", said.words))
                return
            seen, reason = diff, CHANGED
        self.emit(ev.Approved(call.id, said.always))
        if said.always:
            self._held.remember(call, tool, place)

    async def _outcome(self, call: Call, tool: Tool, place: Place) -> Outcome:
        task = asyncio.create_task(self._carry_out(call, tool, place))
        self._running[call.id] = task
        try:
            return await task
        except asyncio.CancelledError:
            if call.id not in self._ended_by_hand or self._stopping:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
                raise
            self._ended_by_hand.discard(call.id)
            return Outcome(STOPPED, is_error=True)
        finally:
            self._running.pop(call.id, None)

    async def _carry_out(self, call: Call, tool: Tool, place: Place) -> Outcome:
        seen: list[str] = []
        stream = tool.run(call.arguments or {}, place)
        try:
            async for item in stream:
                if isinstance(item, Output):
                    seen.append(item.text)
                    self.emit(ev.ToolOutput(call.id, item.text))
                else:
                    return item
        except asyncio.CancelledError:
            await _close(stream)
            if call.id in self._ended_by_hand and not self._stopping and seen:
                self._ended_by_hand.discard(call.id)
                return Outcome(f"{''.join(seen)[-_TAIL:]}\n{STOPPED}", is_error=True)
            raise
        except Exception as error:  # a fault of a tool's ends the call, not the session
            return Outcome(f"{call.name} failed: {type(error).__name__}: {error}", is_error=True)
        return Outcome(f"{call.name} ended without a result.", is_error=True)

    async def _own(self, call: Call) -> None:
        self.emit(ev.Started(call.id, call.name))
        asked = {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}
        told = await asyncio.to_thread(self._held.own.answer, asked) or {"is_error": True}
        text = "\n".join(part.get("text", "") for part in told.get("content", ()) if part.get("type") == "text")
        failed = bool(told.get("is_error"))
        result = _unrun(call, text, ran=True) if failed else ev.Result(call.id, call.name, text)
        held = (one.calls for one in self.state.stretch() if isinstance(one, Answer) and call not in one.calls)
        behind = sum(not is_say(made.name) for calls in held for made in calls)
        self.emit(result)
        if is_checkpoint(result):
            self.emit(ev.Checkpoint(call.id, call.arguments or {}, behind))


_TAIL = 20_000  # characters of a stopped call's output that the agent is given


def _unrun(call: Call, text: str, ran: bool = False) -> ev.Result:
    """The result of a call that failed or did not run; where it has a checkpoint's name, it must be no checkpoint.

    Not every format can say that a result is an error: there the words decide (docs/wire.md, 11).
    """
    if names_checkpoint(call.name) and not text.startswith(REFUSED):
        text = f"{REFUSED} {text}"
    return ev.Result(call.id, call.name, text, True, ran=ran)


def _groups(calls: Sequence[Call], tools: Mapping[str, Tool]) -> list[list[Call]]:
    """The calls in order; neighbours that only read are carried out together."""
    groups: list[list[Call]] = []
    reads = False
    for call in calls:
        tool = tools.get(call.name)
        reading = tool is not None and tool.kind == "read"
        if groups and reads and reading:
            groups[-1].append(call)
        else:
            groups.append([call])
        reads = reading
    return groups


async def _all(doing: Sequence[Awaitable[None]]) -> None:
    """All of them at once; where one fails or the turn is stopped, none is left running."""
    tasks = [asyncio.ensure_future(one) for one in doing]
    try:
        await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


async def _close(stream: Any) -> None:
    closing = getattr(stream, "aclose", None)
    if closing is not None:
        with contextlib.suppress(Exception, asyncio.CancelledError):
            await closing()
