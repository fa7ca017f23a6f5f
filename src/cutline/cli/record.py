"""`cutline record`: what the record holds, whether it is sound, and how it is kept, moved and emptied.

Law: nothing is deleted that was not named and confirmed; what can't be done now is said, and what was not done.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from .. import record
from ..errors import InputError
from ..record import Record, RecordFault, SessionRow
from ..sessions.clients import NAMES
from . import importing, paint
from .held import opened
from .options import json_option

_LISTED = 10
_DAY = 86_400.0


@click.group("record", invoke_without_command=True)
@json_option
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """The durable record of whole histories; without a command: `stats`."""
    if ctx.invoked_subcommand is None:
        _stats(as_json)
    elif as_json:
        raise click.UsageError(f"--json belongs behind the command: cutline record {ctx.invoked_subcommand} … --json")


def _path(begin: bool = False) -> Path:
    path = record.default_path()
    if not path.exists() and not begin:
        raise InputError(f"no record yet ({path}); `cutline run` begins one, and `cutline record import` too")
    return path


def _is_there(as_json: bool) -> bool:
    """Whether there is a record; where there is none, that is said, and no fault."""
    path = record.default_path()
    if path.exists():
        return True
    if as_json:
        paint.echo_json({"path": str(path), "exists": False})
    else:
        out = paint.console()
        out.print(f"No record yet: it will lie in {path}, readable by you alone.")
        out.print(
            "cutline run claude begins one; cutline record import FILES takes session files in", style=paint.FAINT
        )
    return False


# ------------------------------------------------------------------------------------------------------------ stats


@command.command("stats")
@json_option
def stats(as_json: bool) -> None:
    """What the record holds, how much room it takes, since when, and how it is kept."""
    _stats(as_json)


def _stats(as_json: bool) -> None:
    if not _is_there(as_json):
        return
    with opened(_path()) as held:
        found, rows = held.stats(), held.sessions()
    if as_json:
        told = {**asdict(found), "first": paint.iso(found.first), "last": paint.iso(found.last)}
        paint.echo_json({"path": str(held.path), "exists": True, **told, "listed": [_row(row) for row in rows]})
        return
    out = paint.console()
    out.print(str(held.path), style="bold")
    if found.first is not None and found.last is not None:
        out.print(f"since {_when(found.first)}; the last request {paint.since(found.last)}", style=paint.FAINT)
    out.print()
    made = paint.table("", "", "", left=(0, 2))
    ratio = f", {found.bodies / found.stored:,.0f} times as much" if found.bodies > 2 * found.stored else ""
    for name, count, note in (
        ("sessions", f"{found.sessions:,}", f"and {found.agents:,} sub-agents of them" if found.agents else ""),
        ("requests", f"{found.requests:,}", f"{paint.size(found.bodies)} as the client made them{ratio}"),
        ("", "", f"{paint.size(found.sent)} as they were sent on"),
        ("calls", f"{found.calls:,}", "each with its result"),
        ("texts", f"{found.texts:,}", "of agent and human"),
        ("documents", f"{found.documents:,}", "written at checkpoints"),
        ("stored", paint.size(found.stored), "all of it, indexes included"),
    ):
        made.add_row(name, count, paint.styled(note, paint.FAINT))
    out.print(made)
    if rows:
        out.print()
        listed = paint.table("session", "requests", "body", "last", "project", left=(0, 4))
        for row in _by_session(rows)[:_LISTED]:
            name = paint.short(row.session, 200)[:8] or "(no id)"
            where = paint.short(row.project, 64)
            listed.add_row(name, f"{row.requests:,}", paint.size(row.size), paint.since(row.last), where)
        out.print(listed)
        if found.sessions > _LISTED:
            out.print(f"{found.sessions - _LISTED:,} more: cutline record stats --json", style=paint.FAINT)
    out.print()
    kept = "until you delete it" if found.retention is None else f"{found.retention} days behind its last request"
    secrets = "masked on the way in" if found.masking else "stored as they come"
    out.print(f"a session is kept {kept}; secrets are {secrets}", style=paint.FAINT)


def _by_session(rows: list[SessionRow]) -> list[SessionRow]:
    """Sessions with their sub-agents' requests counted in, the newest first."""
    found: dict[str, SessionRow] = {}
    for row in rows:
        one = found.get(row.session)
        if one is None:
            found[row.session] = row
            continue
        main = one if one.agent == "" else row
        found[row.session] = SessionRow(
            row.session, "", main.client, main.project, min(one.first, row.first), max(one.last, row.last),
            one.requests + row.requests, main.size,
        )  # fmt: skip
    return sorted(found.values(), key=lambda row: row.last, reverse=True)


def _row(row: SessionRow) -> dict[str, Any]:
    return {**asdict(row), "first": paint.iso(row.first), "last": paint.iso(row.last)}


# ------------------------------------------------------------------------------------------------- verify, delete


@command.command("verify")
@json_option
@click.pass_context
def verify(ctx: click.Context, as_json: bool) -> None:
    """Check every hash, rebuild every body, find every call and text again. Exit code 1: something is broken."""
    if not _is_there(as_json):
        return
    began = time.monotonic()
    with opened(_path()) as held, _meter("checking") as told:
        faults, found = held.faults(told), held.stats()
    if as_json:
        paint.echo_json({"path": str(held.path), "sound": not faults, "faults": faults, "requests": found.requests,
                         "calls": found.calls, "texts": found.texts})  # fmt: skip
    else:
        out = paint.console()
        for line in faults[:_LISTED]:
            out.print(paint.short(line, 200), style=paint.BAD)
        if len(faults) > _LISTED:
            out.print(f"{len(faults) - _LISTED:,} more: cutline record verify --json", style=paint.FAINT)
        if not faults:
            out.print(
                f"Sound: {paint.count(found.requests, 'request')} rebuilt, {paint.count(found.calls, 'call')} and"
                f" {paint.count(found.texts, 'text')} found"
                f" again, in {time.monotonic() - began:.1f} s."
            )
    ctx.exit(1 if faults else 0)


@command.command("delete")
@click.argument("session")
@click.option("--yes", is_flag=True, help="Delete without asking.")
@json_option
def delete(session: str, yes: bool, as_json: bool) -> None:
    """Delete SESSION (an id or its beginning) for good: its requests, documents, bytes, and what the search knows."""
    with opened(_path(), readonly=False) as held:
        row = _named(held, session)
        name = row.session or "(no id)"
        if not yes:
            if not sys.stdin.isatty():
                raise InputError("deleting needs consent: a terminal to ask on, or --yes")
            out = paint.console(err=True)
            out.print(f"{paint.short(name, 60)}  {paint.count(row.requests, 'request')}", style="bold")
            out.print(f"in {paint.short(row.project, 100)}", style=paint.FAINT)
            out.print(f"{_when(row.first)} to {_when(row.last)}; the client's own file stays", style=paint.FAINT)
            click.confirm("Delete it for good?", abort=True, err=True)
        gone = held.delete([row.session])
        try:
            held.sweep()
        except RecordFault as error:
            raise InputError(
                f"{paint.short(name, 60)} is deleted and no longer found, but its bytes leave the file only when that"
                f" is written anew, which failed ({error}); run the same command again, or leave it to the next run"
            ) from None
    if as_json:
        paint.echo_json(asdict(gone))
        return
    paint.console().print(
        f"Deleted {paint.short(name, 60)}: {paint.count(gone.requests, 'request')}, {paint.count(gone.calls, 'call')},"
        f" {paint.count(gone.texts, 'text')}, {paint.count(gone.documents, 'document')}. The file was written anew"
        " without them."
    )


def _named(held: Record, session: str) -> SessionRow:
    """The session that is meant, by its id or the beginning of it; one that left only documents counts too."""
    rows = _by_session(held.sessions())
    known = {row.session for row in rows}
    for one in held.documents():
        if one.session not in known:
            known.add(one.session)
            rows.append(SessionRow(one.session, "", "", one.project, one.at, one.at, 0, 0))
    exact = [row for row in rows if row.session == session]
    fits = exact or [row for row in rows if session and row.session.startswith(session)]
    if len(fits) == 1:
        return fits[0]
    told = paint.short(session, 60)
    if fits:
        some = ", ".join(paint.short(row.session, 40) for row in fits[:3])
        raise InputError(f"“{told}” fits {len(fits)} sessions of the record ({some}); give more of it")
    if held.sweep():  # a deletion that was interrupted before the file was written anew
        raise InputError(f"no session “{told}” in the record; bytes of one that was deleted before have left it now")
    raise InputError(f"no session “{told}” in the record; “cutline record” lists the newest")


# ------------------------------------------------------------------------------------------------- export, import


@command.command("export")
@click.argument("session", required=False)
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write to a file (mode 0600).")
@json_option
def export(session: str | None, output: Path | None, as_json: bool) -> None:
    """Write the record, or one SESSION of it, as lines of JSON that lose no byte of a body."""
    if as_json and output is None:
        raise click.UsageError("--json tells what was written, and needs -o FILE")
    with opened(_path()) as held:
        name = None if session is None else _named(held, session).session
        if output is None:
            for line in held.lines(name):
                sys.stdout.buffer.write(line)
            return
        lines = 0
        handle, passing = tempfile.mkstemp(prefix=f"{output.name}.", dir=output.absolute().parent)
        try:
            with os.fdopen(handle, "wb") as out:
                for line in held.lines(name):
                    out.write(line)
                    lines += 1
            Path(passing).replace(output)
        except BaseException:
            Path(passing).unlink(missing_ok=True)
            raise
    size = output.stat().st_size
    if as_json:
        paint.echo_json({"path": str(output), "lines": lines, "bytes": size, "session": name})
    else:
        paint.console().print(
            f"Wrote {output}: {paint.count(lines, 'line')}, {paint.size(size)}. Whoever has it can read it all."
        )


@command.command("import")
@click.argument("files", nargs=-1)
@click.option(
    "--client",
    "kept_by",
    multiple=True,
    type=click.Choice((*NAMES, "all")),
    help="All sessions that this client keeps.",
)
@json_option
@click.pass_context
def import_(ctx: click.Context, files: tuple[str, ...], kept_by: tuple[str, ...], as_json: bool) -> None:
    """Take FILES into the record: exports, sessions by file or id, or folders of them. Twice adds nothing."""
    if not files and not kept_by:
        raise InputError("nothing to take in; give files, ids or folders, or --client all for every session there is")
    wanted = importing.wanted(files, NAMES if "all" in kept_by else kept_by)
    if not wanted:
        raise InputError(f"no session in {', '.join((*files, *(f'what {name} keeps' for name in kept_by)))}")
    done = []
    with opened(_path(begin=True), readonly=False) as held, _meter("importing") as told:
        for number, source in enumerate(wanted, 1):
            done.append(importing.take(held, source))
            told(number, len(wanted))
        days = held.stats().retention
    read, failed = [one for one in done if not one.fault], [one for one in done if one.fault]
    added, known = sum(one.added for one in done), sum(one.known for one in done)
    old = sum(bool(days and one.newest and one.newest < time.time() - days * _DAY) for one in read)
    if as_json:
        paint.echo_json({"files": len(read), "added": added, "known": known, "older_than_kept": old,
                         "failed": [{"path": str(one.path), "fault": one.fault} for one in failed]})  # fmt: skip
    else:
        out, err = paint.console(), paint.console(err=True)
        for one in failed[:_LISTED]:
            err.print(f"not taken in: {paint.short(one.fault, 300)}", style=paint.BAD)
        if len(failed) > _LISTED:
            err.print(f"{len(failed) - _LISTED:,} more files could not be read (--json names them)", style=paint.BAD)
        out.print(
            f"{paint.count(len(read), 'file')}: {added:,} requests and documents added, {known:,} were there already."
        )
        if old:
            out.print(
                f"A session is kept for {days} days; older ones, {old:,} here, go with the next daily look:"
                " cutline record retention off keeps them",
                style=paint.FAINT,
            )
    ctx.exit(0 if read else 2)


# ------------------------------------------------------------------------------------------------- retention, mask


@command.command("retention")
@click.argument("days", required=False, metavar="[DAYS|off]")
@json_option
def retention(days: str | None, as_json: bool) -> None:
    """For how many DAYS a session is kept behind its last request; `off` keeps everything."""
    if days is not None and not (days == "off" or (days.isdecimal() and 0 < int(days) <= 36_500)):
        raise click.UsageError(f"“{paint.short(days, 20)}” is no number of days: give 1 to 36500, or off")
    if days is None and not _is_there(as_json):
        return
    with opened(_path(begin=True), readonly=days is None) as held:
        if days is not None:
            held.set_retention(None if days == "off" else int(days))
        kept = held.stats().retention
        rows = _by_session(held.sessions())
    old = [row for row in rows if kept is not None and row.last < time.time() - kept * _DAY]
    if as_json:
        paint.echo_json({"days": kept, "older": [row.session for row in old]})
        return
    out = paint.console()
    if kept is None:
        out.print("Every session is kept until you delete it.")
        return
    out.print(f"A session is kept for {kept} days behind its last request; then all of it is deleted for good.")
    gone = f"{len(old):,} are older" if old else "none is older"
    out.print(f"looked at once a day, while something is recorded; {gone} now", style=paint.FAINT)


@command.command("mask")
@click.argument("state", required=False, type=click.Choice(["on", "off"]))
@json_option
def mask(state: str | None, as_json: bool) -> None:
    """Mask secrets of known forms on the way into the record, or not (the default)."""
    if state is None and not _is_there(as_json):
        return
    with opened(_path(begin=True), readonly=state is None) as held:
        if state is not None:
            held.set_masking(state == "on")
        on = held.stats().masking
    if as_json:
        paint.echo_json({"masking": on, "forms": list(record.FORMS)})
        return
    out = paint.console()
    if on:
        out.print("Secrets of known forms are masked from the next request on; what is recorded stays as it is.")
        out.print("The recorded history is then not byte for byte what was sent: each secret is [masked: its form].")
    else:
        out.print("Nothing is masked: the record holds what was sent, byte for byte, secrets included.")
    out.print(f"known forms: {', '.join(record.FORMS)}", style=paint.FAINT)


# ------------------------------------------------------------------------------------------------------------ words


class _meter:
    """How far a long work is, on a terminal, from the second second on."""

    def __init__(self, what: str) -> None:
        self._what, self._began, self._shown = what, time.monotonic(), False

    def __enter__(self) -> Callable[[int, int], None]:
        return self._tell

    def __exit__(self, *_: object) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")

    def _tell(self, done: int, of: int) -> None:
        if sys.stderr.isatty() and time.monotonic() - self._began > 1:
            self._shown = True
            sys.stderr.write(f"\r{self._what}: {100 * done // max(of, 1)} %")
            sys.stderr.flush()


def _when(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"
