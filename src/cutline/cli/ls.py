"""`cutline ls`: the sessions of this directory, or of all.

Law: opens no more of a file than its two ends.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from ..sessions.claude_code import projects, sessions
from . import paint
from .options import json_option


@click.command("ls")
@click.option("-a", "--all", "everywhere", is_flag=True, help="Sessions of every directory.")
@click.option("-n", "limit", type=click.IntRange(1), default=20, show_default=True, help="How many.")
@json_option
def command(everywhere: bool, limit: int, as_json: bool) -> None:
    """List sessions, the newest first."""
    found = [session for session in sessions(None if everywhere else Path.cwd()) if session.talks]
    shown = found[:limit]
    if as_json:
        paint.echo_json(
            [
                {
                    "id": session.id,
                    "client": "claude-code",
                    "path": str(session.path),
                    "bytes": session.size,
                    "modified": datetime.fromtimestamp(session.mtime, UTC).isoformat(),
                    "title": session.title,
                }
                for session in shown
            ]
        )
        return
    out = paint.console()
    if not shown:
        where = projects()
        if everywhere:
            out.print(f"No session of Claude Code in {where}.")
        else:
            out.print(
                f"No session of Claude Code for this directory (looked in {where}); “cutline ls --all” lists every one."
            )
        return
    made = paint.table("session", "size", "last used", "title", *(["project"] if everywhere else []), left=(0, 3, 4))
    for session in shown:
        made.add_row(
            session.id[:8],
            paint.size(session.size),
            paint.ago(datetime.fromtimestamp(session.mtime, UTC)),
            paint.short(session.title or "–", 64),
            *([session.folder] if everywhere else []),
        )
    out.print(made)
    if len(found) > len(shown):
        out.print(f"{len(found) - len(shown):,} more: cutline ls -n {len(found)}", style=paint.FAINT)
