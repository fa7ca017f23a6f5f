"""`cutline view`: the page, on loopback until interrupted; or one session as a file to share.

Law: standard output is the address, or nothing. The address holds a token; whoever has it reads every session there is.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from pathlib import Path

import click

from ..errors import InputError
from ..sessions.model import Session
from . import paint
from .inputs import Body, load


@click.command("view")
@click.argument("what", required=False, metavar="[SESSION]")
@click.option(
    "--export", type=click.Path(path_type=Path), metavar="FILE.html", help="Write one file to share, secrets masked."
)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Listen on this port of 127.0.0.1.")
@click.option("--no-open", is_flag=True, help="Print the address and open no browser.")
def command(what: str | None, export: Path | None, port: int, no_open: bool) -> None:
    """Look at sessions in a browser: timeline, before and after a cut anywhere, documents, cost, search."""
    session = _session(what, export is not None)
    if export is not None:
        assert session is not None
        _export(session, export)
        return
    from .. import record
    from ..view import server
    from ..view.shelf import Shelf

    held = record.default_path()
    shelf = Shelf(session)
    if session is not None:
        with suppress(InputError):  # then the page says why
            shelf.get(shelf.first)  # read before the browser asks for it
    token = secrets.token_urlsafe(24)
    made = server.app(shelf, token, held if held.exists() else None, Path.cwd())

    def told(address: str) -> None:
        click.echo(address)
        click.echo("cutline: this machine alone gets there, and only with that address; ^C ends it", err=True)
        if not no_open and paint.console().is_terminal:
            click.launch(address)

    server.serve(made, token, port, told)


def _session(what: str | None, needed: bool) -> Session | None:
    """The session that is meant; without one, and where none is needed, the page opens at its list."""
    try:
        found = load(what)
    except InputError:
        if what is not None or needed:
            raise
        return None
    if isinstance(found, Body):
        raise InputError(f"{found.name}: is a request body; view shows sessions, cutline show reads bodies")
    return found


def _export(session: Session, path: Path) -> None:
    from ..view import export

    data = export.page(session)
    try:
        path.write_bytes(data)
    except OSError as error:
        raise InputError(f"{path}: can't be written ({(error.strerror or str(error)).lower()})") from None
    click.echo(f"{path}: {paint.size(len(data))}, secrets of known forms masked; read it before you share it", err=True)
