"""The live part of the terminal: what goes on, the line that the human types, the status; above it the scrollback.

Law: it draws and passes on keys, and knows nothing of sessions. A printed text goes above the line and stays there;
what is typed is changed by keys alone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.data_structures import Point
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import ConditionalContainer, Dimension, FormattedTextControl, HSplit, Layout, Window
from prompt_toolkit.layout.controls import BufferControl
from prompt_toolkit.layout.processors import BeforeInput
from prompt_toolkit.layout.screen import Char
from prompt_toolkit.output import ColorDepth, Output
from prompt_toolkit.output.defaults import create_output
from prompt_toolkit.styles import Style

Fragments = StyleAndTextTuples

_STYLE = Style.from_dict(
    {
        "live": "",
        "faint": "dim",
        "wait": "ansigreen",
        "ask": "bold ansiyellow",
        "mark": "bold ansigreen",
        "status": "dim",
    }
)
_LINE_ROWS = 8  # of a text that is typed


class Keyboard(Protocol):
    """Who is told of the keys that mean something."""

    def enter(self, text: str) -> bool:
        """A line is sent; true where it was taken, and the line is emptied."""

    def escape(self) -> None:
        """Esc."""

    def interrupt(self) -> None:
        """Ctrl-C."""

    def end(self) -> None:
        """Ctrl-D on an empty line."""

    def tab(self) -> bool:
        """Tab; true where it meant something else than a completion."""

    def typed(self, text: str) -> None:
        """The line holds this now."""


class Line:
    """The live part.

    Args:
        keyboard: is told of keys.
        above: fragments of what goes on, for a width and a number of rows.
        mark: what stands before the line.
        status: the status line, for a width.
        commands: what Tab completes behind a slash.
        input, output: the terminal's; None for this process's own.
    """

    def __init__(
        self,
        keyboard: Keyboard,
        above: Callable[[int, int], Fragments],
        mark: Callable[[], Fragments],
        status: Callable[[int], str],
        commands: Iterable[str],
        input: Input | None = None,
        output: Output | None = None,
    ) -> None:
        self._keyboard, self._above = keyboard, above
        self.output = output or _output()
        self.history = InMemoryHistory()
        self.buffer = Buffer(
            multiline=True,
            history=self.history,
            completer=_Commands(commands),
            on_text_changed=lambda buffer: keyboard.typed(buffer.text),
        )
        above_it = Window(FormattedTextControl(self._live), dont_extend_height=True, always_hide_cursor=True)
        live = ConditionalContainer(above_it, Condition(lambda: bool(self._live())))
        typed = Window(
            BufferControl(self.buffer, input_processors=[BeforeInput(mark)]),
            height=Dimension(min=1, max=_LINE_ROWS),
            dont_extend_height=True,
            wrap_lines=True,
        )
        below = Window(
            FormattedTextControl(lambda: [("class:status", status(self._width() - 1))]),
            height=1,
            dont_extend_height=True,
        )
        self.app: Application[None] = _App(
            Layout(HSplit([live, typed, below]), focused_element=typed),
            style=_STYLE,
            key_bindings=self._keys(),
            erase_when_done=True,
            input=input,
            output=self.output,
            max_render_postpone_time=0.01,
        )
        self.app.timeoutlen, self.app.ttimeoutlen = 0.1, 0.05

    def print(self, text: str) -> None:
        """Put a text above the line, for good."""
        data = text.replace("\r\n", "\n").replace("\n", "\r\n")
        if not self.app.is_running:
            self.output.write_raw(data)
            self.output.flush()
            return
        self.app.renderer.erase(leave_alternate_screen=False)
        self.output.write_raw(data)
        self.app._redraw()

    def redraw(self) -> None:
        """Draw the live part anew; where it became shorter, it moves up to the text above it."""
        renderer, screen = self.app.renderer, self.app.renderer.last_rendered_screen
        size = self.output.get_size()
        if screen is not None and screen.height > self._height(size.columns, size.rows):
            renderer.erase(leave_alternate_screen=False)
        self.app.invalidate()

    def put(self, text: str) -> None:
        """Put a text into the line, in place of what it holds."""
        self.buffer.document = Document(text, len(text))

    def remember(self, texts: Sequence[str]) -> None:
        """Texts that the up key brings back, the oldest first."""
        for text in texts:
            self.history.append_string(text)
        held = self.buffer.document
        self.buffer.reset()
        self.buffer.document = held

    def _width(self) -> int:
        return self.output.get_size().columns

    def _height(self, columns: int, rows: int) -> int:
        return int(self.app.layout.container.preferred_height(columns, rows).preferred)

    def _live(self) -> Fragments:
        size = self.output.get_size()
        # The typed text, the status and a row of what is above stay in sight.
        return self._above(max(20, size.columns - 1), max(2, min(16, size.rows // 2 - 2)))

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()

        @keys.add("enter")
        def _(event: KeyPressEvent) -> None:
            text = self.buffer.text
            if self._keyboard.enter(text):
                self.buffer.reset()
                self._keyboard.typed("")

        @keys.add("escape", "enter")
        @keys.add("c-j")
        def _(event: KeyPressEvent) -> None:
            self.buffer.newline()

        @keys.add("escape")
        def _(event: KeyPressEvent) -> None:
            self._keyboard.escape()

        @keys.add("c-c")
        @keys.add(Keys.SIGINT)
        def _(event: KeyPressEvent) -> None:
            self._keyboard.interrupt()

        @keys.add("c-d")
        def _(event: KeyPressEvent) -> None:
            if self.buffer.text:
                self.buffer.delete()
            else:
                self._keyboard.end()

        @keys.add("tab")
        def _(event: KeyPressEvent) -> None:
            if self._keyboard.tab():
                return
            found = list(self.buffer.completer.get_completions(self.buffer.document, CompleteEvent()))
            if len(found) == 1:
                self.buffer.apply_completion(found[0])

        return keys


class _App(Application[None]):
    """The library's, which on a resize takes rows for what they were: a terminal that got narrower wrapped them."""

    def _on_resize(self) -> None:
        renderer, columns = self.renderer, max(1, self.output.get_size().columns)
        at, screen = renderer._cursor_pos, renderer.last_rendered_screen
        if screen is not None and "XTERM_VERSION" not in os.environ:  # xterm cuts rows off
            widths = [_row_width(screen.data_buffer[row]) for row in range(at.y)]
            more = sum(-(-width // columns) - 1 for width in widths if width)
            renderer._cursor_pos = Point(at.x % columns, at.y + more + at.x // columns)
        super()._on_resize()


def _row_width(row: Mapping[int, Char]) -> int:
    """The columns that a row was written on, without the blanks at its end."""
    return max((column + char.width for column, char in row.items() if char.char.strip()), default=0)


class _Commands(Completer):
    def __init__(self, names: Iterable[str]) -> None:
        self._names = tuple(names)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        text = document.text
        if text.startswith("/") and " " not in text:
            for name in self._names:
                if name.startswith(text):
                    yield Completion(name, start_position=-len(text))


def _output() -> Output:
    if sys.platform == "win32":
        return create_output()
    from prompt_toolkit.output.vt100 import Vt100_Output

    # No question to the terminal where its cursor is: the answer would come between the keys.
    made = Vt100_Output.from_pty(sys.stdout, default_color_depth=ColorDepth.from_env())  # NO_COLOR
    made.enable_cpr = False
    return made
