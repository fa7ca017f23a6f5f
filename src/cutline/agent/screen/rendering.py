"""How what is told looks: Markdown, colours, wrapping, as the bytes that a terminal gets.

Law: a function of what is told and of the width. Only colours are added to text that `telling` made plain; links are
written out, so that none leads elsewhere than it says.
"""

from __future__ import annotations

import re
from io import StringIO
from typing import TYPE_CHECKING

from .telling import Told

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

_BLANKS = re.compile(r" +((?:\x1b\[[0-9;]*m)*)$", re.MULTILINE)
_EMPTY = re.compile(r"(?:\x1b\[[0-9;]*m)*")  # a line of these shows nothing
_LARGEST = 20_000  # characters of a block that is still laid out as Markdown
_WIDEST = 110  # columns of running text: longer lines are hard to read
_MARKS = {"human": ("› ", "bold green"), "hint": ("› ", "bold green"), "question": ("? ", "bold yellow")}
_FAINT = "dim"  # of the terminal's own colour: a grey of the palette is the background in some themes
_STYLES = {
    "call": "yellow",
    "note": _FAINT,
    "fault": "red",
    "checkpoint": "bold magenta",
    "lost": _FAINT,
}


class Renderer:
    """Makes a terminal's text.

    Args:
        colours: whether the terminal shows any.
    """

    def __init__(self, colours: bool = True) -> None:
        self._colours = colours

    def render(self, told: Told, width: int) -> str:
        """The text of what is told, with a line break at its end."""
        from rich.console import Group
        from rich.text import Text

        console = self._console(width)
        parts: list[RenderableType] = []
        if told.kind == "said":
            parts.append(self._markdown(told.text))
        elif told.kind in _MARKS:
            mark, style = _MARKS[told.kind]
            parts.append(_marked(mark, told.text, style))
            parts.append("" if told.kind != "question" else Group())
        elif told.kind == "answer":
            parts += [_marked("· ", told.text, _FAINT), _indented(Text(told.more), "  "), ""]
        elif told.kind == "keys":
            parts += [_columns(told.more), ""]
        elif told.kind == "diff":
            parts += [_indented(_diff(told.more.expandtabs(4)), "  "), ""]
        elif told.kind in ("result", "fault") and (told.more or told.kind == "result"):
            style = "red" if told.kind == "fault" else _FAINT
            parts.append(_marked("  ", told.text, style))
            if told.more:
                parts.append(
                    _indented(Text(told.more.expandtabs(4), style="" if told.kind == "fault" else _FAINT), "  │ ")
                )
            parts.append("")
        else:
            mark = {"call": "▸ ", "checkpoint": "◆ ", "fault": "! "}.get(told.kind, "· ")
            parts.append(_marked(mark, told.text, _STYLES.get(told.kind, "")))
            if told.more:
                parts.append(_indented(Text(told.more), "  "))
            if told.kind in ("checkpoint", "fault", "lost"):
                parts.append("")
        console.print(Group(*parts))
        file = console.file
        assert isinstance(file, StringIO)
        return _trimmed(file.getvalue(), told.kind)

    def wrapped(self, text: str, width: int, rows: int) -> list[str]:
        """The last rows of a text at a width, as wide as it will be told."""
        from rich.text import Text

        width = min(width, _WIDEST)
        console = self._console(width)
        lines = Text(text[-4 * width * rows :]).wrap(console, width)
        return [line.plain for line in lines][-rows:]

    def _console(self, width: int) -> Console:
        from rich.console import Console
        from rich.theme import Theme

        plain = {"markdown.code": "cyan", "markdown.code_block": "", "markdown.h1": "bold", "markdown.h2": "bold"}
        return Console(
            file=StringIO(),
            force_terminal=self._colours,
            no_color=None if self._colours else True,
            width=max(width, 20),
            highlight=False,
            markup=False,
            emoji=False,
            legacy_windows=False,
            theme=Theme({**plain, "markdown.h1.border": "none", "markdown.item.bullet": "cyan", "markdown.hr": "dim"}),
        )

    def _markdown(self, text: str) -> RenderableType:
        from rich.constrain import Constrain
        from rich.markdown import Heading, Markdown
        from rich.text import Text

        if len(text) > _LARGEST:
            return Text(text)

        class Plain(Heading):
            """A heading at the left, without a frame."""

            def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
                self.text.justify = "left"
                yield self.text

        class Quiet(Markdown):
            """Markdown without frames, in the terminal's own colours."""

            elements = {**Markdown.elements, "heading_open": Plain}  # noqa: RUF012  # as its base has it

        return Constrain(Quiet(text, code_theme="ansi_dark", hyperlinks=False), _WIDEST)


def _trimmed(text: str, kind: str) -> str:
    """Without the blanks that fill up lines (they wrap in a narrower window) and, of words, empty lines around it."""
    text = _BLANKS.sub(r"\1", text)
    if kind != "said":
        return text
    lines = text.split("\n")
    while lines and _EMPTY.fullmatch(lines[-1]):
        lines.pop()
    first = next((number for number, one in enumerate(lines) if not _EMPTY.fullmatch(one)), 0)
    return "\n".join(lines[first:]) + "\n\n"


def _marked(mark: str, text: str, style: str) -> RenderableType:
    """A text behind a mark; its further lines stand under its first."""
    from rich.table import Table
    from rich.text import Text

    table = Table.grid()
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row(Text(mark, style=style), Text(text, style=style))
    return table


def _columns(text: str) -> RenderableType:
    """Lines of two cells, parted by a tab."""
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for line in text.split("\n"):
        name, _, what = line.partition("\t")
        table.add_row(Text(f"  {name}", style="bold"), Text(what))
    return table


def _indented(text: RenderableType, before: str) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    table = Table.grid()
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    lines = text.split("\n", allow_blank=True) if isinstance(text, Text) else [text]
    for line in lines:
        table.add_row(Text(before, style=_FAINT), line)
    return table


def _diff(text: str) -> RenderableType:
    from rich.text import Text

    styles = {"+": "green", "-": "red", "@": "cyan"}
    made = Text()
    for number, line in enumerate(text.split("\n")):
        heading = line.startswith(("+++", "---")) and number < 2
        made.append("\n" if number else "")
        made.append(line, style="bold" if heading else styles.get(line[:1], ""))
    return made
