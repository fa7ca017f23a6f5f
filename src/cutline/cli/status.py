"""`cutline status`: what a running session sends, and how full it is; with --line in one line for the client.

Law: reads the run's folder and asks nobody. The line shows the user's own status line first, then ours.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import click

from ..proxy import state
from . import paint
from .options import json_option

_SOON = 0.75  # of what the client compacts at


@click.command("status")
@click.option("--line", is_flag=True, help="One line, for a client's status line (its JSON on standard input).")
@json_option
def command(line: bool, as_json: bool) -> None:
    """Show the sessions that run through Cutline now: what is sent, checkpoints, narration."""
    if line:
        _line()
        return
    runs = [(folder, told) for folder, told in state.running()]
    if as_json:
        paint.echo_json([{"run": folder.name, **told} for folder, told in runs])
        return
    if not runs:
        click.echo("no session runs through Cutline now; start one: cutline run claude")
        return
    out = paint.console()
    for _, told in runs:
        out.print(f"session {str(told.get('session', ''))[:8] or 'no request yet'}  {describe(told)}")
        for fault in [*told.get("refusals", []), *told.get("faults", [])]:
            out.print(f"  {fault}", style=paint.FAINT)


def describe(told: dict[str, Any], now: float | None = None) -> str:
    """A status in one line of text: what was sent of what, checkpoints, narration, and what went wrong."""
    if not told:
        return "no request yet"
    parts = []
    if told["checkpoints"]:
        share = paint.percent(told["last_sent"], told["last_whole"])
        sizes = f"{paint.size(told['last_sent'])} of {paint.size(told['last_whole'])}"
        parts.append(f"sends {share} ({sizes})")
        parts.append(f"{told['checkpoints']} checkpoint{'' if told['checkpoints'] == 1 else 's'}")
    else:
        parts.append(f"sends all ({paint.size(told['last_whole'])}), no checkpoint yet")
    narrated = told.get("narrated")
    if narrated and narrated[1]:
        parts.append(f"{paint.percent(*narrated)} narrated")
    if told.get("refusals"):
        parts.append("a cut was refused: see cutline status")
    if told.get("faults"):
        parts.append("fault: see cutline status")
    quiet = (time.time() if now is None else now) - float(told.get("at", 0))
    if quiet > 3600:
        parts.append(f"quiet for {quiet / 3600:.0f} h")
    return " · ".join(parts)


def _line() -> None:
    """The client's status line: the user's own first, if there is one, then Cutline's."""
    given = sys.stdin.read() if not sys.stdin.isatty() else ""
    folder = Path(os.environ.get(state.VARIABLE) or "/nonexistent")
    own = _users_own(folder, given)
    if own:
        click.echo(own)
    text = f"cutline · {describe(state.read(folder))}"
    used = _used(given)
    if used is not None and used >= _SOON * 100:
        text += f" · context {used:.0f} %: a checkpoint soon"
    click.echo(text)


def _used(given: str) -> float | None:
    """How full the client says that its context is, in percent; None where it does not say."""
    try:
        window = json.loads(given)["context_window"]
        return float(window["used_percentage"])
    except (ValueError, KeyError, TypeError):
        return None


def _users_own(folder: Path, given: str) -> str:
    try:
        line = json.loads((folder / "statusline.json").read_text(encoding="utf-8"))
        command_ = line.get("command")
    except (OSError, ValueError, AttributeError):
        return ""
    if not isinstance(command_, str):
        return ""
    try:
        done = subprocess.run(command_, shell=True, input=given, text=True, capture_output=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.rstrip("\n")
