"""`cutline cut`: a session becomes a cut copy beside it, a body the cut body.

Law: nothing is written that was not proven first. A session cut that would lose money asks for `--force`; a
body always comes out, cut or as it came.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from .. import cut as cut_body
from .. import measure, verify
from ..errors import InputError, NothingToCut
from ..sessions.clients import client
from ..sessions.cutting import Prospect, check_writable, execute, prospect
from ..sessions.model import Copy, Session
from . import paint, report
from .inputs import Body, load
from .options import collect, cut_options, json_option


@click.command("cut")
@click.argument("what", required=False, metavar="[SESSION|BODY|-]")
@click.option("-n", "--dry-run", is_flag=True, help="Show the figures and write nothing.")
@click.option("--force", is_flag=True, help="Cut a session even if that loses money.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Where the cut body goes (default: standard output)."
)
@cut_options
@json_option
def command(
    what: str | None, dry_run: bool, force: bool, output: Path | None, as_json: bool, **words: Any
) -> int | None:
    """Cut a session or a request body.

    A session (default: the latest of this directory) is cut as a copy with an id of its own, which the client
    resumes; the original is never touched. It is cut at its last checkpoint, else before the last human turn,
    else at its end.
    """
    options = collect(**words)
    source = load(what)
    if isinstance(source, Body):
        return _body(source, dry_run, output, as_json, options)
    if output is not None:
        raise click.UsageError("-o is for a body; the copy of a session goes beside its original")
    if (options["join"], options["notice"], options["narration"]) != ("\n\n", True, "keep"):
        raise click.UsageError(
            "--join, --notice and --narration are for bodies; a copy joins nothing and carries its notice"
        )
    return _session(source, dry_run, force, as_json, options)


# ---------------------------------------------------------------------------------------------- a body


def _body(source: Body, dry_run: bool, output: Path | None, as_json: bool, options: Any) -> int | None:
    if as_json and output is None and not dry_run:
        raise click.UsageError("--json with a body needs -o FILE: the body itself goes to standard output")
    done = cut_body(source.data, **options)
    proof = verify(source.data, done.body, **options)
    if not dry_run:
        if output is None:
            sys.stdout.buffer.write(done.body)
            sys.stdout.buffer.flush()
        else:
            _write(output, done.body)
    out = paint.console(err=output is None and not dry_run)
    if not done.changed:
        if as_json:
            paint.echo_json({"changed": False, "reason": done.reason, "bytes": len(done.body)})
        else:
            same = "" if dry_run else "; the same bytes came out"
            out.print(f"{source.name}: {done.reason}{same}.", style=paint.FAINT)
        return NothingToCut.exit_code
    told = measure(source.data, done.body)
    if as_json:
        paint.echo_json(
            {
                "changed": True,
                "proven": not proof.unchanged,
                "seam": done.seam.message if done.seam else None,
                **told.as_json(),
                "kept_unknown": [{"type": type_, "place": str(place)} for type_, place in done.kept_unknown],
                "removed": report.removed_json(done),
            }
        )
        return None
    report.print_before_after(out, told)
    out.print("Proven by all rules of the contract." + (" Nothing was written." if dry_run else ""), style=paint.GOOD)
    if options["at"] is not None:
        out.print("Cut without a checkpoint: it carries no notice, and a later cut may differ.", style=paint.FAINT)
    for type_, place in done.kept_unknown:
        out.print(f"Kept, because its type is not known: {type_} at {place}.", style=paint.WORLD)
    return None


def _write(path: Path, data: bytes) -> None:
    """Write a file whole or not at all."""
    temporary = path.with_name(f".{path.name}.cutline-tmp")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    except OSError as error:
        raise InputError(
            f"{path}: can't be written ({(error.strerror or '').lower()}); nothing was left behind"
        ) from None
    finally:
        temporary.unlink(missing_ok=True)


# ------------------------------------------------------------------------------------------- a session


def _session(session: Session, dry_run: bool, force: bool, as_json: bool, options: Any) -> int | None:
    if not dry_run:
        check_writable(session)
    wanted = prospect(session, at=options["at"], trace=options["trace"], keep_tools=options["keep_tools"])
    written: Copy | None = None
    losing = not wanted.pays and not force
    if not dry_run and not losing:
        written, _ = execute(wanted, trace=options["trace"], keep_tools=options["keep_tools"])
    if as_json:
        paint.echo_json(_json(wanted, written))
    else:
        out = paint.console()
        print_prospect(out, wanted)
        _print_written(out, wanted, written)
    if losing and not dry_run:
        turns = wanted.payback.turns
        needed = "never" if turns == float("inf") else f"after {int(-(-turns // 1)):,} requests"
        raise NothingToCut(
            f"this cut would pay back {needed}, and the session is likely to make {max(wanted.likely, 1):,} more; "
            "nothing was written; --force cuts all the same"
        )
    return None


def print_prospect(out: Console, wanted: Prospect) -> None:
    """What a cut leaves, and what it costs."""
    report.print_before_after(out, wanted.report)
    report.print_money(out, wanted.payback, wanted.rates, wanted.likely)
    report.print_faults(out, list(wanted.faults), wanted.faults)
    _print_damage(out, wanted.session)


def where(wanted: Prospect) -> str:
    """The place of the cut in words."""
    total = len(wanted.session.history.places)
    place = wanted.done.seam.message if wanted.done.seam else 0
    if wanted.at is None:
        return f"at its last checkpoint, message {place} of {total}"
    if place >= total:
        return f"at its end, behind message {total}"
    words = "before the last human turn, " if wanted.chosen == "last" else ""
    return f"{words}before message {place} of {total}"


def _print_damage(out: Console, session: Session) -> None:
    for told in session.damage:
        out.print(told, style=paint.WORLD)


def _print_written(out: Console, wanted: Prospect, written: Copy | None) -> None:
    if written is None:
        return
    if written.missed and not any("grew" in told for told in wanted.session.damage):
        out.print(
            f"The session grew meanwhile: its last {written.missed:,} bytes are not in the copy.", style=paint.WORLD
        )
    if written.notice and wanted.done.plan:
        said = len((wanted.done.plan.last_notice or "").encode())
        out.print(f"A notice of {said:,} bytes stands in a record of its own, as nobody's words.", style=paint.FAINT)
    out.print()
    out.print(f"Cut {where(wanted)}. Proven on the copy that was written: {written.path}", style=paint.GOOD)
    command = client(wanted.session.client).resume
    for label, id_ in (("go on in the copy", written.id), ("go back to the original", wanted.session.id)):
        out.print(f"  {label:<24} {shlex.join(command(id_))}")
    if wanted.session.cwd:
        out.print(f"  both from                {wanted.session.cwd}", style=paint.FAINT)


def _json(wanted: Prospect, written: Copy | None) -> dict[str, Any]:
    command = client(wanted.session.client).resume
    return {
        "client": wanted.session.client,
        "session": wanted.session.id,
        "path": str(wanted.session.path),
        "at": wanted.at,
        "chosen": wanted.chosen,
        "seam": wanted.done.seam.message if wanted.done.seam else None,
        **wanted.report.as_json(),
        "money": report.money_json(wanted.payback, wanted.rates, wanted.likely),
        "pays": wanted.pays,
        "copy": None
        if written is None
        else {"id": written.id, "path": str(written.path), "bytes": written.bytes, "records": written.records},
        "resume": None if written is None else command(written.id),
        "resume_original": command(wanted.session.id),
        "damage": list(wanted.session.damage),
        "removed": report.removed_json(wanted.done),
    }
