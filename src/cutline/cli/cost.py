"""`cutline cost`: what agents cost, by day, project, client or model, from the providers' own counts.

Law: reads, writes nothing. List prices; where a model's is not known its tokens count and that is said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import click

from ..errors import InputError
from ..view.spending import By, Ledger, Sum, summed, total, usage_of
from . import paint
from .options import json_option


@click.command("cost")
@click.option("--by", type=click.Choice(["day", "project", "client", "model"]), default="day", show_default=True)
@click.option("--days", type=click.IntRange(1, 3650), default=30, show_default=True, help="How far back.")
@click.option("--here", is_flag=True, help="Only this directory's sessions.")
@click.option("--record", "recorded", is_flag=True, help="From the record instead of the clients' session files.")
@json_option
def command(by: str, days: int, here: bool, recorded: bool, as_json: bool) -> None:
    """Show what agents cost: each request of every client's sessions once, at list prices."""
    since = datetime.now(UTC) - timedelta(days=days)
    ledger = Ledger(since)
    unread = 0
    if recorded:
        _from_record(ledger, Path.cwd() if here else None)
    else:
        from ..view.gather import Gathered

        found = Gathered(since.timestamp(), Path.cwd() if here else None)
        with progress("reading sessions") as told:
            for session in found.sessions(told):
                ledger.add_session(session)
        unread = found.unread
    rows, whole = summed(ledger.paid, cast(By, by)), total(ledger.paid)
    if as_json:
        told_rows = [_json(row) for row in rows]
        paint.echo_json({"by": by, "days": days, "rows": told_rows, "all": _json(whole), "unread_sessions": unread})
        return
    out = paint.console()
    if not ledger.paid:
        out.print(f"No request of the last {days} days is counted anywhere; cutline ls --all lists the sessions.")
        return
    made = paint.table(by, "sessions", "requests", "cache read", "written", "uncached", "output", "cost")
    for row in [*rows, whole]:
        name = paint.short(row.name, 60) if by != "project" else _end(row.name)
        made.add_row(
            name,
            *(f"{number:,}" for number in (len(row.sessions), row.requests, row.cache_read, row.cache_write)),
            *(f"{number:,}" for number in (row.input, row.output)),
            paint.usd(row.usd) + ("*" if row.unpriced else ""),
            style="bold" if row is whole else None,
        )
    out.print(made)
    notes = ["Tokens as the providers counted them, list prices."]
    if whole.unpriced:
        notes.append(f"* {whole.unpriced:,} requests are of models without a known price, and count as nothing.")
    if unread:
        notes.append(f"{paint.count(unread, 'session')} could not be read.")
    out.print(" ".join(notes), style=paint.FAINT)


def _end(path: str) -> str:
    return path if len(path) <= 60 else "…" + path[-59:]


def _json(row: Sum) -> dict[str, object]:
    return {
        "name": row.name,
        "sessions": len(row.sessions),
        "requests": row.requests,
        "unpriced_requests": row.unpriced,
        "cache_read": row.cache_read,
        "cache_write": row.cache_write,
        "input": row.input,
        "output": row.output,
        "usd": row.usd,
    }


def _from_record(ledger: Ledger, here: Path | None) -> None:
    from .. import project, record
    from .held import opened

    path = record.default_path()
    if not path.exists():
        raise InputError("there is no record yet; cutline run begins one, or leave --record out")
    with opened(path) as held:
        scope = project.project(here) if here else None
        for session in {row.session: row for row in held.sessions(scope)}.values():
            for made in held.requests(session.session):
                if made.usage:
                    at = datetime.fromtimestamp(made.at, UTC).astimezone()
                    usage = usage_of(made.usage, made.model)
                    ledger.add(at, session.client, session.project, made.model, session.session, usage)


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal's standard error, for work over a second; yields what is told how far it is."""
    out = paint.console(err=True)
    if not out.is_terminal:
        yield lambda done, of: None
        return
    from rich.progress import Progress

    with Progress(console=out, transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, of: bar.update(task, completed=done, total=of)
