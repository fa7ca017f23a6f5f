"""`cutline revive`: a compacted session becomes a copy in which the words stand again that its summary replaced.

Law: decides nothing; the compactions are undone, the whole history is cut where the last of them stood, and nothing
is written that was not proven against it. A copy that would not fit its model's window asks for `--force`.
"""

from __future__ import annotations

import shlex
from contextlib import suppress
from typing import Any

import click
from rich.console import Console

from ..errors import InputError, NothingToCut
from ..sessions.clients import client
from ..sessions.cutting import Figures, Prospect, check_writable, execute, figures, prospect
from ..sessions.model import Copy, Session
from ..sessions.reviving import Revival, Window, revive
from ..wire import anthropic as wire
from . import paint, report
from .cut import where
from .inputs import Body, load
from .options import at_option, json_option

# Clients summarise before a window is full: in recorded sessions of Claude Code and Codex at 73 to 93 % of it.
_NEAR = 0.72


@click.command("revive")
@click.argument("what", required=False, metavar="[SESSION]")
@click.option("-n", "--dry-run", is_flag=True, help="Show the figures and write nothing.")
@click.option("--force", is_flag=True, help="Write the copy even if it would not fit its model's window.")
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
    what: str | None, dry_run: bool, force: bool, as_json: bool, at: Any, trace: Any, keep_tools: tuple[str, ...]
) -> int | None:
    """Undo the compactions of a session.

    A session (default: the latest of this directory) whose history its client replaced by a summary is copied with
    the agent's and the human's own words in the summary's place; calls, results and thinking leave, as at a
    checkpoint, up to where the last compaction stood, and what came behind it stays whole. The original is never
    touched.
    """
    source = load(what)
    if isinstance(source, Body):
        raise InputError(f"{source.name}: is a request body; give a session whose compaction is to be undone")
    if not dry_run:
        check_writable(source)
    revival = revive(source)
    wanted = prospect(
        revival.session, at=revival.place if at is None else at, trace=trace, keep_tools=tuple(keep_tools)
    )
    assert wanted.report.after is not None
    fits = revival.window.tokens is None or wanted.report.after.tokens <= revival.window.tokens
    written: Copy | None = None
    if not dry_run and (fits or force):
        written, _ = execute(wanted, trace=trace, keep_tools=tuple(keep_tools), mark="revived")
    if as_json:
        paint.echo_json(_json(source, revival, wanted, written, fits))
    else:
        out = paint.console()
        _print_sizes(out, source, revival, wanted)
        _print_window(out, revival.window, wanted)
        _print_notes(out, source, revival)
        _print_written(out, source, wanted, written, dry_run)
    if not fits and not force and not dry_run:
        raise NothingToCut(_too_large(revival, wanted, trace, tuple(keep_tools)))
    return None


def _too_large(revival: Revival, wanted: Prospect, trace: Any, keep_tools: tuple[str, ...]) -> str:
    """Why nothing was written, and what would fit."""
    assert wanted.report.after is not None and revival.window.tokens is not None
    less = ""
    if wanted.chosen != "end":
        with suppress(NothingToCut):
            shorter = prospect(revival.session, at="end", trace=trace, keep_tools=keep_tools).report.after
            assert shorter is not None
            fits = "" if shorter.tokens <= revival.window.tokens else ", which is too large as well"
            less = f"--at end would leave about {shorter.tokens:,}{fits}; "
    return (
        f"about {wanted.report.after.tokens:,} tokens do not fit a window of {revival.window.tokens:,}; "
        f"nothing was written; {less}--force writes it all the same"
    )


def _now(source: Session) -> Figures:
    """What the session's next request weighs as it is, with the summary."""
    return figures(source.history, wire.read(source.history.body))


def _print_sizes(out: Console, source: Session, revival: Revival, wanted: Prospect) -> None:
    """Summaries beside the words that they replaced, then the three histories."""
    made = paint.table("compaction", "at tokens", "summary", "its words", "of a history of")
    for one in revival.compactions:
        made.add_row(
            f"{one.where}{f', {one.trigger}' if one.trigger else ''}",
            f"{one.tokens:,}" if one.tokens else "",
            f"{one.summary:,} B",
            paint.styled(f"{one.words:,} B", paint.AGENT),
            f"{one.whole:,} B, {one.messages:,} messages",
        )
    if len(revival.compactions) > 1:
        summaries, words = _totals(revival)
        whole, messages = (sum(getattr(one, key) for one in revival.compactions) for key in ("whole", "messages"))
        made.add_row("all", "", f"{summaries:,} B", f"{words:,} B", f"{whole:,} B, {messages:,} messages", style="bold")
    out.print(made)
    now, before, after = _now(source), wanted.report.before, wanted.report.after
    assert after is not None
    made = paint.table("history", "bytes", "tokens")
    known = "–" if now.tokens is None else f"{'' if now.exact else '~'}{now.tokens:,}"
    made.add_row("now, with the summary", f"{len(source.history.body):,} B", known)
    made.add_row("whole, uncut", f"{before.bytes:,} B", f"~{before.tokens:,}")
    made.add_row("revived", f"{after.bytes:,} B", f"~{after.tokens:,}", style="bold")
    out.print(made)
    fitted = "fitted to the session's own usage" if after.source == "calibrated" else "at 3.6 bytes each"
    out.print(
        f"Tokens of a whole request, the client's prompt and tools included; ~ is an estimate {fitted}.",
        style=paint.FAINT,
    )


def _totals(revival: Revival) -> tuple[int, int]:
    return sum(one.summary for one in revival.compactions), sum(one.words for one in revival.compactions)


def _print_window(out: Console, window: Window, wanted: Prospect) -> None:
    """Whether the copy fits."""
    after = wanted.report.after
    assert after is not None
    if window.tokens is None:
        shares = " and ".join(f"{paint.percent(after.tokens, size)} of {size:,}" for size in (200_000, 1_000_000))
        out.print(f"Whether it fits is not known: {window.source}. It is {shares} tokens.", style=paint.WORLD)
        return
    share = paint.percent(after.tokens, window.tokens)
    if after.tokens > window.tokens:
        told, style = f"Does not fit: {share} of a window of {window.tokens:,} tokens", paint.BAD
    elif after.tokens > _NEAR * window.tokens:
        told = (
            f"Fits barely, {share} of a window of {window.tokens:,} tokens: the client may summarise it again at once"
        )
        style = paint.WORLD
    else:
        told, style = f"Fits: {share} of a window of {window.tokens:,} tokens", paint.GOOD
    out.print(f"{told} ({window.source}).", style=style)


def _print_notes(out: Console, source: Session, revival: Revival) -> None:
    """What is not as in a session that was never compacted."""
    for told in (*_notes(revival), *source.damage):
        out.print(told, style=paint.WORLD)


def _notes(revival: Revival) -> list[str]:
    told = [
        f"The compaction in {one.where} follows a record that is not in the file; the one before it is taken."
        for one in revival.compactions
        if one.guessed
    ]
    if revival.stays:
        told.append(f"The summary in {revival.stays} stays: what it replaced is not in the file.")
    if revival.broken:
        told.append("The beginning of the session is not in the file; it is revived from where the file begins.")
    return told


def _print_written(out: Console, source: Session, wanted: Prospect, written: Copy | None, dry_run: bool) -> None:
    if written is None:
        if dry_run:
            out.print("Nothing was written.", style=paint.FAINT)
        return
    if written.missed:
        out.print(
            f"The session grew meanwhile: its last {written.missed:,} bytes are not in the copy.", style=paint.WORLD
        )
    out.print()
    out.print(f"Revived, cut {where(wanted)}. Proven on the copy that was written: {written.path}", style=paint.GOOD)
    command_of = client(source.client).resume
    for label, id_ in (("go on in the copy", written.id), ("go back to the original", source.id)):
        out.print(f"  {label:<24} {shlex.join(command_of(id_))}")
    if source.cwd:
        out.print(f"  both from                {source.cwd}", style=paint.FAINT)


def _json(source: Session, revival: Revival, wanted: Prospect, written: Copy | None, fits: bool) -> dict[str, Any]:
    command_of, after = client(source.client).resume, wanted.report.after
    assert after is not None
    summaries, words = _totals(revival)
    now = _now(source)
    return {
        "client": source.client,
        "session": source.id,
        "path": str(source.path),
        "at": wanted.at,
        "chosen": wanted.chosen,
        "place_of_last_compaction": revival.place,
        "compactions": [
            {
                "line": one.line or None,
                "where": one.where,
                "trigger": one.trigger,
                "tokens": one.tokens or None,
                "summary_bytes": one.summary,
                "words_bytes": one.words,
                "replaced_bytes": one.whole,
                "replaced_messages": one.messages,
                "link_guessed": one.guessed,
            }
            for one in revival.compactions
        ],
        "summary_bytes": summaries,
        "words_bytes": words,
        "now": {"bytes": len(source.history.body), "tokens": now.tokens, "exact": now.exact},
        "whole": {"bytes": wanted.report.before.bytes, "tokens": wanted.report.before.tokens},
        "revived": {"bytes": after.bytes, "tokens": after.tokens, "tokens_source": after.source},
        "window": {"tokens": revival.window.tokens, "source": revival.window.source, "fits": fits},
        "copy": None
        if written is None
        else {"id": written.id, "path": str(written.path), "bytes": written.bytes, "records": written.records},
        "resume": None if written is None else command_of(written.id),
        "resume_original": command_of(source.id),
        "notes": [*_notes(revival), *source.damage],
        "removed": report.removed_json(wanted.done),
    }
