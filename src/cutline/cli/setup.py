"""`cutline setup`: the three tools and the mandate in a client's own settings, for good; and back.

Law: shows the change before it is made, and asks; where nobody can be asked and nobody said yes, nothing is written.
"""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click
from rich.console import Console

from . import paint
from .options import json_option

if TYPE_CHECKING:
    from ..launch.setup import Change

_STYLES = {"+": paint.GOOD, "-": paint.BAD, "@": paint.FAINT}


@click.command("setup", epilog="Example: cutline setup claude")
@click.argument("client")
@click.option("--remove", is_flag=True, help="Take it back: the settings are as they were before.")
@click.option("--yes", is_flag=True, help="Write without asking.")
@json_option
@click.pass_context
def command(ctx: click.Context, client: str, remove: bool, yes: bool, as_json: bool) -> None:
    """Give CLIENT (claude, codex, gemini, opencode, pi) Cutline's tools and mandate for good.

    The agent then writes checkpoints in every session, and “cutline resume” goes on in a cut copy. The wire is cut
    under “cutline run” alone, which needs none of this.
    """
    from ..launch import setup

    plan = (setup.removing if remove else setup.setting)(client, os.environ, sys.executable)
    diffs = [(str(change.path), list(_diff(change))) for change in plan.changes]
    told = {"client": client, "files": [{"path": path, "diff": "".join(lines)} for path, lines in diffs]}
    out = paint.console()
    if not plan.changes:
        if remove:
            setup.write(plan)  # what was kept to undo it has nothing left to undo
        if as_json:
            paint.echo_json({**told, "written": False})
        else:
            out.print(f"nothing to do: {client} is {'not set up' if remove else 'set up'}")
        return
    if not as_json:
        _show(out, [line for _, lines in diffs for line in lines])
    written = yes or _agreed(as_json)
    if written:
        setup.write(plan)
    if as_json:
        paint.echo_json({**told, "written": written})
    elif written:
        _tell(out, client, remove)
    if not written:
        click.echo("cutline: nothing was written; --yes writes without asking", err=True)
        ctx.exit(2)


def _agreed(as_json: bool) -> bool:
    if as_json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    return click.confirm("Write this?", err=True)


def _tell(out: Console, client: str, remove: bool) -> None:
    if remove:
        out.print(f"Taken back. A session of {client} that runs already has the tools until it ends.", style=paint.GOOD)
        return
    out.print(f"Written; a session that is started from now on has the tools. Back: cutline setup {client} --remove")
    out.print(f"What is sent is cut with: cutline run {client}  (or a cut copy: cutline resume)", style=paint.FAINT)


def _diff(change: Change) -> Iterator[str]:
    """A change as a unified diff."""
    old, new = ((data or b"").decode("utf-8", "replace") for data in (change.before, change.after))
    was, is_ = (str(change.path) if data is not None else "(none)" for data in (change.before, change.after))
    if change.aside:
        yield f"# edited since: it stays as {change.path.name}.kept\n"
    for line in difflib.unified_diff(old.splitlines(True), new.splitlines(True), was, is_):
        yield line if line.endswith("\n") else f"{line}\n\\ no line break at the end\n"


def _show(out: Console, lines: list[str]) -> None:
    for line in lines:
        out.print(paint.styled(line.rstrip("\r\n"), _STYLES.get(line[0], "")))
    out.print()
