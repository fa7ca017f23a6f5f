"""`cutline resume`: the client, started on a session's cut copy.

Law: cuts, proves and writes the copy as `cutline cut` does, then hands the terminal to the client and returns
what the client returned.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from ..errors import InputError, NothingToCut
from ..launch import claude_code
from ..launch.terminal import Terminal
from ..sessions.clients import client
from ..sessions.cutting import check_writable, execute, prospect
from ..sessions.model import Session
from . import paint
from .cut import where
from .inputs import Body, load
from .options import at_option


@click.command("resume", context_settings={"ignore_unknown_options": True})
@click.argument("what", required=False, metavar="[SESSION]")
@at_option
@click.option("--force", is_flag=True, help="Cut even if that loses money.")
@click.argument("client_arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- CLIENT ARGUMENTS…]")
def command(what: str | None, force: bool, client_arguments: tuple[str, ...], at: Any) -> int:
    """Cut a session (default: the latest of this directory) and go on in the copy.

    A session that is a cut copy already, with nothing left to cut, is resumed as it is.
    """
    source = load(what)
    if isinstance(source, Body):
        raise InputError(f"{source.name}: is a request body; give a session to resume")
    check_writable(source)
    theirs = client(source.client)
    program, *_ = theirs.resume(source.id) or [""]
    found = shutil.which(program) if program else None  # on Windows with its ending: claude.cmd, claude.exe
    if found is None:
        raise InputError(
            f"{program}: not found on PATH; install {theirs.LABEL}"
            if program
            else f"{source.path}: {theirs.LABEL} can't be started on a session; type: cutline cut"
        )
    since = datetime.now(UTC)
    copy = _copy_of(source, at, force)
    _, *arguments = theirs.resume(copy)
    if copy != source.id and source.client == "claude-code" and not _sets(client_arguments):
        arguments.append(f"--settings={json.dumps(claude_code.uncounted(sys.executable, since))}")
    folder = Path(source.cwd) if source.cwd and Path(source.cwd).is_dir() else Path.cwd()
    with Terminal() as terminal:
        return terminal.run([found, *arguments, *client_arguments], os.environ, folder)


def _sets(arguments: tuple[str, ...]) -> bool:
    """Whether the user gives the client settings, of which it takes one."""
    return any(word.partition("=")[0] == "--settings" for word in arguments)


def _copy_of(session: Session, at: Any, force: bool) -> str:
    out = paint.console(err=True)
    try:
        wanted = prospect(session, at=at)
    except NothingToCut as error:
        if session.title.endswith("(cut)"):
            out.print(f"{error}: going on in it as it is.", style=paint.FAINT)
            return session.id
        raise
    if not wanted.pays and not force:
        raise NothingToCut(
            f"this cut would not pay back within {max(wanted.likely, 1):,} more requests; nothing was written; "
            "--force cuts all the same"
        )
    written, _ = execute(wanted)
    before, after = wanted.report.before, wanted.report.after
    assert after is not None
    out.print(
        f"Cut {where(wanted)}: {paint.size(before.bytes)} became {paint.size(after.bytes)}, proven. "
        f"The original stays: {shlex.join(client(session.client).resume(session.id))}",
        style=paint.GOOD,
    )
    return written.id
