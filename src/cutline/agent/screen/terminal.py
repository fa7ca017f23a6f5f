"""The terminal as a face: events are told above the line, what is typed steers the session.

Law: only keys that the human pressed steer; an event's text never does. Nothing typed is lost: a line is emptied once
its words are in the log, and until then a file holds them. What comes fast is printed in bounded parts.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import io
import re
import signal
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

from prompt_toolkit.input import Input
from prompt_toolkit.output import Output

from .. import commands
from .. import events as ev
from ..face import Approval, Face
from ..state import Given, texts
from ..tools.plain import shown
from .draft import Draft, Keeper
from .line import Fragments, Line
from .rendering import Renderer
from .status import Figures, line
from .telling import Running, Teller, Told

if TYPE_CHECKING:
    from ..loop import Session
    from ..opening import Opened
    from ..wanted import Wanted

_PART = 8_000  # characters that are printed at once
_EVERY = 0.05  # seconds between two drawings of what streams
_AGAIN = 3.0  # seconds within which a second Ctrl-C means the turn
_RECALLED = 40_000  # characters that /recall prints
_BEFORE = 12  # texts that are shown of a session that goes on
_ANSWERS = {"y": "y", "yes": "y", "n": "n", "no": "n", "a": "a", "always": "a"}
_COMMAND = re.compile(r"/[a-z-]+")
_HELP = {
    "/help": "this list",
    "/quit": "leave (Ctrl-D, too); the session is kept, --resume goes on with it",
}
_KEYS = (
    ("Enter", "sends the line: a message, or a hint while the agent works"),
    ("Alt-Enter", "a new line (Ctrl-J, too)"),
    ("Esc", "pauses before the next call; Enter on the empty line goes on"),
    ("Ctrl-C", "stops the running tool; twice, the turn"),
    ("Tab", "sets a half-typed line aside while a question waits; completes a command"),
)


class Terminal:
    """A session's terminal.

    Args:
        wanted: what the human asks for.
        opening: opens the session for this face; None for `opening.opened`.
        input, output: the terminal's; None for this process's own.
        colours: whether it shows any.
    """

    def __init__(
        self,
        wanted: Wanted,
        opening: Callable[[Wanted, Face], Awaitable[Opened]] | None = None,
        *,
        input: Input | None = None,
        output: Output | None = None,
        colours: bool = True,
    ) -> None:
        self._wanted, self._opening = wanted, opening
        self.teller = Teller()
        self._renderer = Renderer(colours)
        self._names = (*commands.HELP, *_HELP)
        self.line = Line(self, self._above, self._mark, self._status, self._names, input, output)
        self._made: Opened | None = None
        self._keeper: Keeper | None = None
        self._early: list[str] = []
        self._waiting: deque[Told] = deque()
        self._wake = asyncio.Event()
        self._work: asyncio.Task[Any] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._question: asyncio.Future[Approval] | None = None
        self._questions = asyncio.Lock()
        self._answering = False
        self._asked: ev.ApprovalAsked | None = None
        self._aside = ""
        self._interrupted = 0.0
        self._leaving = False

    # ------------------------------------------------------------------------------------------- as a face

    def show(self, event: ev.Event) -> None:
        """Show an event (see `Face.show`)."""
        if isinstance(event, ev.ApprovalAsked):
            self._asked = event
        if isinstance(event, ev.Begun):
            self._head(event, "")
        self._waiting.extend(self.teller.tell(event, time.monotonic()))
        self._wake.set()

    async def approve(self, asked: ev.ApprovalAsked) -> Approval:
        """Ask the human (see `Face.approve`)."""
        async with self._questions:
            if self._asked is not asked:  # before a session is there, nobody showed it
                self.show(asked)
            while self._waiting and not self._leaving:  # the question comes behind what it asks about
                await asyncio.sleep(_EVERY / 5)
            self._question = asyncio.get_running_loop().create_future()
            # Half-typed words stay a hint: no key that was on its way answers a question that its human has not read.
            self._answering = not self.line.buffer.text
            self._redraw()
            try:
                return await self._question
            finally:
                self._question, self._answering = None, False
                self._back()
                self._redraw()

    # ------------------------------------------------------------------------------------------- its keys

    def enter(self, text: str) -> bool:
        """A line is sent (see `Keyboard.enter`)."""
        said, session = text.strip(), self._session
        first = said.partition(" ")[0]
        if _COMMAND.fullmatch(first):
            if first not in self._names:
                self._tell("note", f"no command {first}; /help lists them")
                return False
            self._command(said)
        elif self._answering:
            return self._answer(said)
        elif not said:
            if session is not None:
                session.pause(False)
            return False
        elif session is None:
            self._early.append(text)
        elif self._busy:
            session.hint(text)
        else:
            self._start(session.turn(text))
        self.line.remember([text])
        self._redraw()
        return True

    def escape(self) -> None:
        """Esc holds the agent before its next call."""
        if self._session is not None and self._busy:
            self._session.pause(True)

    def interrupt(self) -> None:
        """Ctrl-C: what runs, then the turn; an idle line is set to the history, never thrown away."""
        now = time.monotonic()
        again, self._interrupted = now - self._interrupted < _AGAIN, now
        if self._session is not None and self._busy:
            if again:
                self._interrupted = 0.0
                self._session.stop_turn()
            elif self._session.stop_tool():
                self._tell("note", "the tool is stopped; Ctrl-C again stops the turn")
            else:
                self._tell("note", "no tool runs; Ctrl-C again stops the turn")
        elif text := self.line.buffer.text:
            self.line.put("")
            self.line.remember([text])
            self._tell("note", "the line is in the history: the up key brings it back")
        elif again:
            self.end()
        else:
            self._tell("note", "Ctrl-C again leaves; the session is kept")

    def end(self) -> None:
        """Leave."""
        if not self._leaving:
            self._leaving = True
            with contextlib.suppress(Exception):
                self.line.app.exit()

    def tab(self) -> bool:
        """Set the half-typed line aside where a question waits."""
        if self._question is None or self._answering:
            return False
        self._aside = self.line.buffer.text
        self.line.put("")
        return True

    def typed(self, text: str) -> None:
        """Keep what the line holds; an empty line answers the question that waits."""
        if self._question is not None and not text:
            self._answering = True
        if self._keeper is not None:
            self._keeper.keep(Draft(text, self._aside))

    @property
    def _session(self) -> Session | None:
        return self._made.session if self._made is not None else None

    @property
    def _busy(self) -> bool:
        return self._work is not None or (self._session is not None and self._session.state.active)

    # ------------------------------------------------------------------------------------------- what they do

    def _answer(self, said: str) -> bool:
        question = self._question
        assert question is not None
        if not said or question.done():
            return False
        word = _ANSWERS.get(said.lower())
        if word is None:
            question.set_result(Approval(False, said))
        else:
            question.set_result(Approval(word != "n", always=word == "a"))
        return True

    def _back(self) -> None:
        """What was set aside stands in the line again, behind what was typed meanwhile."""
        if self._aside:
            text, self._aside = "\n".join(part for part in (self._aside, self.line.buffer.text) if part), ""
            self.line.put(text)

    def _start(self, doing: Coroutine[Any, Any, Any]) -> None:
        self._work = asyncio.ensure_future(doing)
        self._work.add_done_callback(self._ended)

    def _aside_task(self, doing: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.ensure_future(doing)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(self._failed)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._work = None
        self._failed(task)
        session = self._session
        if session is not None and not (self._leaving or task.cancelled()) and session.state.next() is not None:
            self._start(session.go_on())  # a hint came while it ended
        self._redraw()

    def _failed(self, task: asyncio.Task[Any]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None and not self._leaving:
            self._leaving = True
            self.line.app.exit(exception=error)

    def _command(self, said: str) -> None:
        name, _, rest = said.partition(" ")
        rest = rest.strip()
        made = self._made
        if name == "/quit":
            self.end()
        elif name == "/help":
            told = [*commands.HELP.items(), *_HELP.items(), *_KEYS]
            self._tell("keys", "", "\n".join(f"{one}\t{what}" for one, what in told))
        elif made is None:
            self._tell("note", "the session is not open yet")
        elif name == "/checkpoint":
            if self._busy:
                self._aside_task(commands.checkpoint(made.session))
            else:
                self._start(commands.checkpoint(made.session))
        elif name == "/handoff":
            if self._busy:
                self._aside_task(commands.handoff(made.session, made.handoffs))
            else:
                self._start(commands.handoff(made.session, made.handoffs))
        elif name == "/recall":
            self._aside_task(self._recall(made, rest))
        elif name == "/cost":
            self._tell("answer", "/cost", shown(commands.cost(made.session, made.transport.report)).strip("\n"))
        elif name == "/undo-cut":
            commands.undo_cut(made.session)
        elif name == "/pause":
            made.session.pause(not made.session.paused)

    async def _recall(self, made: Opened, what: str) -> None:
        if not what:
            self._tell("note", "/recall ADDRESS, or words to search for")
            return
        text = shown(await asyncio.to_thread(made.own.recall, what))
        left = len(text) - _RECALLED
        more = f"\n… {left:,} more characters" if left > 0 else ""
        self._tell("answer", f"/recall {shown(what)}", text[:_RECALLED].rstrip("\n") + more)

    def _tell(self, kind: Any, text: str, more: str = "") -> None:
        self._waiting.append(Told(kind, text, more))
        self._wake.set()

    def _head(self, begun: ev.Begun, more: str) -> None:
        where = Path(begun.directory)
        if where.is_relative_to(Path.home()):
            where = "~" / where.relative_to(Path.home())
        self._tell("note", shown(f"session {begun.session} in {where}{more}"))
        self._tell("note", shown(f"{begun.model}, gate {begun.gate}, approve {self._wanted.approve}\n"))

    # ------------------------------------------------------------------------------------------- how it looks

    def _redraw(self) -> None:
        if self.line.app.is_running:
            self.line.redraw()

    def _mark(self) -> Fragments:
        return [("class:ask", "? ")] if self._answering else [("class:mark", "› ")]

    def _above(self, width: int, rows: int) -> Fragments:
        live, now = self.teller.live, time.monotonic()
        below: list[tuple[str, str]] = []
        below += [("class:wait", f"queued: {' '.join(text.split())}") for text in [*self._early, *live.queued][-3:]]
        if live.paused and self._busy:
            below.append(("class:ask", "paused; Enter on the empty line goes on"))
        if self._aside:
            below.append(("class:faint", f"set aside: {' '.join(self._aside.split())}"))
        if self._question is not None:
            how = " waits: y, n, a for always, or say why not"
            how = how if self._answering else ": Enter sends the hint, Tab sets it aside"
            below.append(("class:ask", f"a question{how}"))
        below = [(style, part) for style, text in below for part in self._fitted(style, text, width)][-rows:]
        left = max(1, rows - len(below))
        above = self._going_on(width, left, now)
        lines = [*above[-left:], *below]
        return [part for one in lines for part in (one, ("", "\n"))][:-1]

    def _fitted(self, style: str, text: str, width: int) -> list[str]:
        """What asks the human is told whole, all else in one row."""
        return self._renderer.wrapped(text, width, 3) if style == "class:ask" else [_cut(text, width)]

    def _going_on(self, width: int, rows: int, now: float) -> Fragments:
        live, writing = self.teller.live, self.teller.writing
        if writing.strip():
            return [("class:live", text) for text in self._renderer.wrapped(writing, width, rows)]
        if live.running:
            each = max(1, rows // len(live.running))
            return [part for one in live.running.values() for part in self._running(one, width, each, now)]
        if live.thinking.strip():
            text = self._renderer.wrapped(live.thinking, width, min(rows, 3))
            return [("class:faint", one) for one in text]
        if live.asked is not None and now - live.asked >= 1:
            return [("class:faint", f"waiting for the model, {now - live.asked:.0f} s")]
        return []

    def _running(self, one: Running, width: int, rows: int, now: float) -> Fragments:
        head = f"  {shown(one.call.name)} runs, {now - one.since:.0f} s"
        lines = [_cut(text.expandtabs(4), width - 4) for text in one.tail.rstrip("\n").split("\n")[-(rows - 1) :]]
        told = [("class:faint", f"  │ {text}") for text in lines] if rows > 1 and one.tail else []
        return [("class:faint", _cut(head, width)), *told]

    def _status(self, width: int) -> str:
        live = self.teller.live
        if self._made is None:
            word = "opening"
        elif self._question is not None:
            word = "asks you"
        elif self._busy:
            word = "paused" if live.paused else "working: Esc pauses, Ctrl-C stops"
        else:
            word = "ready"
        session = self._session
        model = session.state.model if session is not None else self._wanted.model
        full = session.how_full if session is not None else None
        return line(Figures(shown(model), live.status, len(live.queued), full, word), width)

    # ------------------------------------------------------------------------------------------- its life

    async def run(self) -> str:
        """Run until the human leaves. Returns the session's id; "" where none was opened.

        Raises:
            CutlineError, OSError: as `opening.opened`, or a log that can't be written any more.
        """
        loop = asyncio.get_running_loop()
        for name in ("SIGTERM", "SIGHUP"):
            if hasattr(signal, name):
                with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                    loop.add_signal_handler(getattr(signal, name), self.end)
        printing = asyncio.create_task(self._print())
        self.line.print(self._renderer.render(Told("note", "cutline agent; /help says what can be typed"), 80))
        stray = cast(TextIO, _Stray(loop, lambda text: self._tell("note", shown(text))))
        try:
            with contextlib.redirect_stdout(stray), contextlib.redirect_stderr(stray):
                await self.line.app.run_async(pre_run=lambda: self._aside_task(self._open()))
        except EOFError:
            pass
        finally:
            printing.cancel()
            running = [task for task in (self._work, *self._tasks) if task is not None]
            for task in running:
                task.cancel()
            await asyncio.gather(printing, *running, return_exceptions=True)
            while self._waiting:
                self._print_one()
            if self._made is not None:
                await self._made.close()
            elif unsent := "\n".join([*self._early, self.line.buffer.text]).strip():
                self.line.print(f"not sent: {shown(unsent)}\n")
        return self._made.log.path.stem if self._made is not None else ""

    async def _open(self) -> None:
        await asyncio.sleep(0)  # the line is drawn first
        opening = self._opening
        if opening is None:
            opening = (await asyncio.to_thread(importlib.import_module, "cutline.agent.opening")).opened
        made = await opening(self._wanted, self)
        self._keeper = Keeper(made.log.path)
        self._made = made
        draft = self._keeper.read()
        words = [words.text for one in made.session.state.history if isinstance(one, Given) for words in one.words]
        self.line.remember(words[-200:])
        if draft.text:
            self.line.put("\n".join(part for part in (draft.text, self.line.buffer.text) if part))
        else:
            self.typed(self.line.buffer.text)
        if self._wanted.path is not None:
            self._goes_on(made)
        early, self._early = self._early, []
        for text in early:
            self.enter(text)
        self._redraw()
        await asyncio.to_thread(_load, made)

    def _goes_on(self, made: Opened) -> None:
        """Show where a session stood, and go on with its turn once the human says so."""
        state = made.session.state
        assert state.begun is not None
        self._head(state.begun, f", {state.requests:,} request{'' if state.requests == 1 else 's'} so far")
        said: list[Told] = []
        for one in state.history:
            if isinstance(one, Given):
                said += [Told("human", shown(words.text)) for words in one.words if words.by != "harness"]
            else:
                said += [Told("said", shown(text)) for text in texts(one)]
        self._waiting.extend(said[-_BEFORE:])
        self.show(made.session.status())
        if state.active:
            self._tell("note", "the session was interrupted in the middle of a turn; Enter goes on with it")
            self.teller.live.active = True
            made.session.pause(True)
            self._start(made.session.go_on())

    async def _print(self) -> None:
        """Print what is told, and draw what streams: bounded parts, and keys in between."""
        while True:
            live = self.teller.live
            timeout = 0.5 if self._busy or live.asked is not None else None
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), timeout)
            self._wake.clear()
            while self._waiting and self.line.app.is_running:
                self._print_one()
                await asyncio.sleep(0)
            self._redraw()
            await asyncio.sleep(_EVERY)

    def _print_one(self) -> None:
        told = self._waiting.popleft()
        if len(told.more) > _PART:
            end = told.more.rfind("\n", 0, _PART) + 1 or _PART
            self._waiting.appendleft(Told(told.kind, "", told.more[end:]))
            told = Told(told.kind, told.text, told.more[:end].removesuffix("\n"))
        self.line.print(self._renderer.render(told, self.line.output.get_size().columns))


class _Stray(io.TextIOBase):
    """What a library prints past us: it is told above the line, in whole lines, from any thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, tell: Callable[[str], None]) -> None:
        self._loop, self._tell, self._held = loop, tell, ""

    def write(self, text: str) -> int:
        *lines, self._held = (self._held + text).split("\n")
        for one in lines:
            if one.strip():
                self._loop.call_soon_threadsafe(self._tell, one)
        return len(text)


def _cut(text: str, width: int) -> str:
    from rich.cells import cell_len, set_cell_size

    return text if cell_len(text) <= width else set_cell_size(text, width - 1).rstrip() + "…"


def _load(made: Opened) -> None:
    """Load what the first request and the first answer need, while the human types."""
    import rich.markdown  # noqa: F401

    made.load()
