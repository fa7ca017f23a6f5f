"""`cutline move`: a session goes on in another client.

Law: decides nothing; the session is cut, what means something elsewhere is written as a session of the other client,
and nothing is written that was not read again there and found to say the same.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from ..errors import InputError
from ..measure import Calibration
from ..sessions.clients import client
from ..sessions.cutting import figures
from ..sessions.moved import Written
from ..sessions.moving import TARGETS, Move, Tally, execute, plan, tally
from ..wire import anthropic as wire
from . import paint
from .inputs import Body, load
from .options import at_option, json_option

_SHORT = {"gemini": "gemini-cli"}
# What stays behind, in words: one, several.
_LEFT = {
    "calls": ("call", "calls"),
    "results": ("result", "results"),
    "thinking": ("thinking block", "thinking blocks"),
    "client_texts": ("text of the client's own", "texts of the client's own"),
    "instructions": ("loaded instruction", "loaded instructions"),
    "to_do_lists": ("to-do list", "to-do lists"),
    "unanswered_calls": ("call without a result", "calls without a result"),
    "orphan_results": ("result without a call", "results without a call"),
    "attachments": ("attachment that the other file can't hold", "attachments that the other file can't hold"),
    "result_parts": ("part of a result that is no text", "parts of results that are no text"),
    "sealed_summaries": ("summary that its provider alone can read", "summaries that their provider alone can read"),
    "blank_texts": ("text of nothing but white space", "texts of nothing but white space"),
    "unknown": ("block of an unknown kind", "blocks of an unknown kind"),
}
_ROWS = {
    "agent_texts": ("agent text", paint.AGENT),
    "human_texts": ("human text", paint.HUMAN),
    "checkpoints": ("checkpoints", paint.WORLD),
    "pairs": ("other calls with results", paint.WORLD),
    "pictures": ("images and files", ""),
    "asides": ("notices, summaries", paint.FAINT),
}


@click.command("move")
@click.argument("what", required=False, metavar="[SESSION]")
@click.option(
    "--to", required=True, type=click.Choice([*TARGETS[:3], *_SHORT, TARGETS[-1], *_SHORT.values()]), metavar="CLIENT",
    help="The client to go on in: claude-code, codex, opencode, gemini or pi.",
)  # fmt: skip
@click.option("-n", "--dry-run", is_flag=True, help="Show the figures and write nothing.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="For opencode: write a file for `opencode import`, not into its database.",
)
@click.option(
    "--trace",
    type=click.Choice(["holes", "none", "all"]),
    default="holes",
    help="Removed calls that the notice lists.",
)
@click.option(
    "--keep-tool",
    "keep_tools",
    multiple=True,
    metavar="NAME",
    help="Keep this tool's calls and results (repeatable).",
)
@at_option
@json_option
def command(
    what: str | None,
    to: str,
    dry_run: bool,
    output: Path | None,
    as_json: bool,
    at: Any,
    trace: Any,
    keep_tools: tuple[str, ...],
) -> None:
    """Go on with a session in another client.

    A session (default: the latest of this directory) of any client becomes a new one of another: every word of the
    agent's and the human's, checkpoints, questions with their answers, the human's images. It is cut at its end; with
    --at the calls and results behind that place go along under the names they have. The original is never touched.
    """
    name = _SHORT.get(to, to)
    if output is not None and name != "opencode":
        raise click.UsageError("-o is for opencode; of other clients a session goes where they look for it")
    source = load(what)
    if isinstance(source, Body):
        raise InputError(f"{source.name}: is a request body; give a session to move")
    move = plan(source, name, at=at, trace=trace, keep_tools=tuple(keep_tools), cwd=str(Path.cwd()))
    written = None if dry_run else execute(move, output)
    if as_json:
        paint.echo_json(_json(move, written, output))
        return
    out = paint.console()
    _print_figures(out, move, tally(move))
    _print_notes(out, move)
    if written is not None:
        _print_written(out, move, written, output)
    else:
        out.print("Nothing was written.", style=paint.FAINT)


def _print_figures(out: Console, move: Move, moved: dict[str, Tally]) -> None:
    made = paint.table("", "number", "bytes")
    for key, (label, style) in _ROWS.items():
        row = moved[key]
        if row.number or key in ("agent_texts", "human_texts", "checkpoints"):
            made.add_row(paint.styled(label, style), f"{row.number:,}", f"{row.bytes:,}")
    whole = sum(row.bytes for row in moved.values())
    words = whole - moved["pictures"].bytes
    made.add_row("moved", "", f"{whole:,}", f"~{_tokens(words):,} tokens", style="bold")
    history = move.session.history
    told = figures(history, wire.read(history.body))
    known = "" if told.tokens is None else f"{'' if told.exact else '~'}{told.tokens:,} tokens"
    made.add_row("of a history of", "", f"{len(history.body):,}", known, style=paint.FAINT)
    out.print(made)
    out.print(
        "Tokens moved are an estimate at 3.6 bytes each, images and the client's own prompt and tools aside.",
        style=paint.FAINT,
    )


def _tokens(size: int) -> int:
    return Calibration().tokens(size)


def _left(move: Move) -> list[str]:
    """What stays behind, in words."""
    return [f"{move.left[key]:,} {words[move.left[key] != 1]}" for key, words in _LEFT.items() if move.left[key]]


def _notes(move: Move) -> list[str]:
    session = move.session
    told = [*session.damage]
    if session.history.compacted:
        told.append(
            f"{client(session.client).LABEL} had put a summary in the place of words; “cutline revive” first, and then "
            "a move of the copy, takes the words along."
        )
    if not session.cwd:
        told.append(f"The session names no directory; it is moved to this one, {move.new.cwd}.")
    return told


def _print_notes(out: Console, move: Move) -> None:
    left = _left(move)
    if left:
        out.print(f"Stays behind: {', '.join(left)}.", style=paint.FAINT)
    for told in _notes(move):
        out.print(told, style=paint.WORLD)


def _where(move: Move) -> str:
    total = len(move.session.history.places)
    return "at its end" if move.place >= total else f"before message {move.place} of {total}"


def _print_written(out: Console, move: Move, written: Written, output: Path | None) -> None:
    theirs, ours = client(move.to), client(move.session.client)
    out.print(
        "Every word of the agent's and the human's was found again in what was written, in its order.", style=paint.GOOD
    )
    out.print()
    out.print(f"Cut {_where(move)}, moved from {ours.LABEL} to {theirs.LABEL}: {written.path}", style=paint.GOOD)
    rows = [(f"go on in {theirs.LABEL}", theirs.resume(written.id))]
    if output is not None:
        rows.insert(0, ("import it", ["opencode", "import", str(output)]))
    back = ours.resume(move.session.id) if not move.session.sealed else []
    if back:
        rows.append(("go back to the original", back))
    width = max(len(label) for label, _ in rows)
    for label, words in rows:
        out.print(f"  {label:<{width}} {shlex.join(words)}")
    out.print(f"  {'from':<{width}} {move.new.cwd}", style=paint.FAINT)


def _json(move: Move, written: Written | None, output: Path | None) -> dict[str, Any]:
    session = move.session
    return {
        "client": session.client,
        "session": session.id,
        "path": str(session.path),
        "to": move.to,
        "at": move.place,
        "moved": {key: {"number": row.number, "bytes": row.bytes} for key, row in tally(move).items()},
        "left": {key: move.left[key] for key in _LEFT if move.left[key]},
        "history_bytes": len(session.history.body),
        "title": move.new.title,
        "directory": move.new.cwd,
        "copy": None
        if written is None
        else {"id": written.id, "path": str(written.path), "bytes": written.bytes, "records": written.records},
        "import": None if written is None or output is None else ["opencode", "import", str(output)],
        "resume": None if written is None else client(move.to).resume(written.id),
        "resume_original": client(session.client).resume(session.id),
        "notes": _notes(move),
    }
