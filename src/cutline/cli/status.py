"""`cutline status`: what a running session sends, and how full it is; with --line in one line for the client.

Law: reads the run's folder and asks nobody. The line shows the user's own status line first, then ours.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from ..proxy import state
from . import paint
from .options import json_option

_SOON = 0.85  # of what the client summarises the conversation at
# Where that is, in tokens below the window (docs/claude-code.md): kept for an answer, and for what comes meanwhile.
_ANSWER, _ROOM = 20_000, 13_000
_COUNTED = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")


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
    made = paint.table("session", "model", "turns", "last request", "checkpoints", "narrated", left=(0, 1))
    for _, told in runs:
        made.add_row(*_row(told))
    out.print(made)
    for _, told in runs:
        for note in [*_notes(told), *told.get("notes", []), *told.get("refusals", []), *told.get("faults", [])]:
            out.print(f"{str(told.get('session', ''))[:8]}  {note}", style=paint.BAD)


def _row(told: dict[str, Any]) -> list[str]:
    if not told:
        return ["no request yet", "", "", "", "", ""]
    sent, whole = told["last_sent"], told["last_whole"]
    sizes = paint.size(sent) if sent == whole else f"{paint.size(sent)} of {paint.size(whole)}"
    narrated = told.get("narrated")
    share = paint.percent(*narrated) if narrated else "–"
    shown = [str(told["session"])[:8] or "–", str(told["model"]) or "–", f"{told['turns']:,}", sizes]
    return [*shown, f"{told['checkpoints']:,}", share]


def describe(told: dict[str, Any], now: float | None = None) -> str:
    """A status in one line of text: what was sent of what, checkpoints, narration, and what went wrong."""
    if not told:
        return "no request yet"
    parts = []
    if told["checkpoints"]:
        share = paint.percent(told["last_sent"], told["last_whole"])
        sizes = f"{paint.size(told['last_sent'])} of {paint.size(told['last_whole'])}"
        parts.append(f"sends {share} ({sizes})")
        parts.append(paint.count(told["checkpoints"], "checkpoint"))
    else:
        parts.append(f"sends all ({paint.size(told['last_whole'])}), no checkpoint yet")
    narrated = told.get("narrated")
    if narrated and narrated[1]:
        parts.append(f"{paint.percent(*narrated)} narrated")
    parts += _notes(told)
    if told.get("notes"):
        parts.append("something passes uncut: see cutline status")
    if told.get("refusals"):
        parts.append("a cut was refused: see cutline status")
    if told.get("faults"):
        parts.append("fault: see cutline status")
    quiet = (time.time() if now is None else now) - float(told.get("at", 0))
    if quiet > 3600:
        parts.append(f"quiet for {quiet / 3600:.0f} h")
    return " · ".join(parts)


def _notes(told: dict[str, Any]) -> list[str]:
    """What the client's own summaries did."""
    made, held = told.get("compactions", 0), told.get("held_back", 0)
    found = [f"summarised {made}×"] if made else []
    return [*found, f"summary held back {held}×: a checkpoint is wanted"] if held and not made else found


def _line() -> None:
    """The client's status line: the user's own first, if there is one, then Cutline's."""
    given = sys.stdin.buffer.read().decode("utf-8", "replace") if not sys.stdin.isatty() else ""
    folder = Path(os.environ.get(state.VARIABLE) or "/nonexistent")
    own = _users_own(folder, given)
    if own:
        click.echo(own)
    text = f"cutline · {describe(state.read(folder))}"
    used = _used(given, os.environ)
    if used is not None and used[0] >= _SOON * used[1]:
        text += f" · context {_thousands(used[0])} of {_thousands(used[1])}: a checkpoint soon"
    click.echo(text)


def _used(given: str, environment: Mapping[str, str]) -> tuple[int, int] | None:
    """How full the context is and what the client summarises at, in tokens; None where it does not say."""
    try:
        window = json.loads(given)["context_window"]
        size, usage = int(window["context_window_size"]), window["current_usage"]
        used = sum(int(usage.get(name) or 0) for name in _COUNTED)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    if not 0 < size < 100_000_000:
        return None
    lowered = environment.get("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "")
    usable = (min(size, int(lowered)) if lowered.isdecimal() else size) - _ANSWER
    limit = usable - _ROOM
    share = environment.get("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", "")
    if share.isdecimal():
        limit = min(limit, usable * int(share) // 100)
    return used, max(1, limit)


def _thousands(tokens: int) -> str:
    return f"{tokens / 1_000:.0f}k"


def _users_own(folder: Path, given: str) -> str:
    try:
        line = json.loads((folder / "statusline.json").read_text(encoding="utf-8"))
        command_ = line.get("command")
    except (OSError, ValueError, AttributeError):
        return ""
    if not isinstance(command_, str):
        return ""
    try:
        done = subprocess.run(command_, shell=True, input=given.encode(), capture_output=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace").rstrip("\n")
