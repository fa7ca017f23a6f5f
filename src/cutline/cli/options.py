"""Options that several commands share, and how their words become arguments of the library.

Law: a word that means nothing is a usage error that says what would.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict, TypeVar

import click

from ..seam import At, check_at

Command = TypeVar("Command", bound=Callable[..., Any])


class CutOptions(TypedDict):
    """What `cutline.cut` and `cutline.verify` take."""

    join: str | None
    notice: bool
    trace: Any
    keep_tools: tuple[str, ...]
    at: At | None
    narration: Any


class _AtType(click.ParamType):  # type: ignore[type-arg]
    name = "place"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> At:
        at: At = int(value) if isinstance(value, str) and value.isdecimal() else value
        try:
            check_at(at)
        except ValueError:
            self.fail(f"“{value}” is no place: give a message index, human:N, last, or end", param, ctx)
        return at


class _JoinType(click.ParamType):  # type: ignore[type-arg]
    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and value == "none":
            return _NO_JOIN
        return value.encode().decode("unicode_escape") if isinstance(value, str) and "\\" in value else value


_NO_JOIN = object()

at_option = click.option(
    "--at",
    type=_AtType(),
    help="Cut without a checkpoint: a message index, human:N (before the Nth human turn), last, end.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")


def cut_options(command: Command) -> Command:
    """The options of a cut."""
    for option in (
        click.option(
            "--narration",
            type=click.Choice(["keep", "drop"]),
            default="keep",
            help="Narration blocks: keep their words, or drop them.",
        ),
        click.option(
            "--keep-tool",
            "keep_tools",
            multiple=True,
            metavar="NAME",
            help="Keep this tool's calls and results (repeatable).",
        ),
        click.option(
            "--trace",
            type=click.Choice(["holes", "none", "all"]),
            default="holes",
            help="Removed calls that the notice lists.",
        ),
        click.option("--notice/--no-notice", default=True, help="Say in the checkpoint's result what left."),
        click.option(
            "--join",
            type=_JoinType(),
            default="\n\n",
            help="What joins texts that become neighbours; “none” to leave them apart.",
        ),
        at_option,
    ):
        command = option(command)
    return command


def collect(
    join: Any, notice: bool, trace: str, keep_tools: tuple[str, ...], at: At | None, narration: str
) -> CutOptions:
    """The library's arguments out of the command line's."""
    return CutOptions(
        join=None if join is _NO_JOIN else join,
        notice=notice,
        trace=trace,
        keep_tools=keep_tools,
        at=at,
        narration=narration,
    )
