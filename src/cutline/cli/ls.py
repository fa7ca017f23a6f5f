"""`cutline ls`: the sessions of this directory, or of all.

Law: opens no more of a file than its two ends.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from ..sessions.clients import EVERY, client, sessions
from . import paint
from .options import json_option

_ID = 8  # characters of an id that a person types


@click.command("ls")
@click.option("-a", "--all", "everywhere", is_flag=True, help="Sessions of every directory.")
@click.option("-n", "limit", type=click.IntRange(1), default=20, show_default=True, help="How many.")
@json_option
def command(everywhere: bool, limit: int, as_json: bool) -> None:
    """List sessions, the newest first."""
    found = [one for one in sessions(None if everywhere else Path.cwd(), EVERY) if one.file.talks]
    shown = found[:limit]
    if as_json:
        paint.echo_json(
            [
                {
                    "id": one.file.id,
                    "client": one.client,
                    "path": str(one.file.path),
                    "bytes": one.file.size,
                    "modified": datetime.fromtimestamp(one.file.mtime, UTC).isoformat(),
                    "title": one.file.title,
                }
                for one in shown
            ]
        )
        return
    out = paint.console()
    if not shown:
        where = ", ".join(str(place) for name in EVERY for place in client(name).places())
        if everywhere:
            out.print(f"No session in {where}.")
        else:
            out.print(f"No session for this directory (looked in {where}); “cutline ls --all” lists every one.")
        return
    several = len({one.client for one in shown}) > 1
    columns = ["session", *(["client"] if several else []), "size", "last used", "title"]
    left = (0, *((1,) if several else ()), len(columns) - 1, len(columns))
    ids = {one.file.id for one in shown}
    shown_id = next(size for size in range(_ID, 200) if len({id_[:size] for id_ in ids}) == len(ids))
    made = paint.table(*columns, *(["project"] if everywhere else []), left=left)
    for one in shown:
        made.add_row(
            one.file.id[:shown_id],
            *([one.client] if several else []),
            paint.size(one.file.size),
            paint.ago(datetime.fromtimestamp(one.file.mtime, UTC)),
            paint.short(one.file.title or "–", 64),
            *([one.file.folder] if everywhere else []),
        )
    out.print(made)
    if len(found) > len(shown):
        out.print(f"{len(found) - len(shown):,} more: cutline ls -n {len(found)}", style=paint.FAINT)
