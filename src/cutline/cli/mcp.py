"""`cutline mcp`: the three tools, the project's documents and the prompt for a checkpoint, for a client to ask.

Law: standard output is MCP's alone, or the address under `--http`. Where and what to record comes from the run that
started it, by environment; started by hand it takes the user's record where there is one, and begins none.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from ..record import Record


@click.command("mcp")
@click.option("--http", is_flag=True, help="Serve over HTTP on loopback until interrupted, and print the address.")
@click.option("--port", type=click.IntRange(0, 65535), help="Listen on this port of 127.0.0.1, under --http.")
@click.option("--mandate", "mandated", is_flag=True, help="Give the mandate as the server's instructions; not --http.")
def command(http: bool, port: int | None, mandated: bool) -> None:
    """Serve micro_handoff, recall and say to a client (MCP over standard input and output)."""
    import secrets

    from .. import mandate, mcp_serving, project
    from ..errors import InputError
    from ..mcp import Tools
    from ..resources import Resources

    if port is not None and not http:
        raise InputError("--port goes with --http; without it there is no port, only standard input and output")
    if mandated and http:
        raise InputError("--mandate goes with standard input and output, not with --http")
    here = Path(os.environ.get("CLAUDE_PROJECT_DIR") or Path.cwd())
    scope, held = project.project(here), _record()
    tools = Tools(here, scope, held, os.environ.get("CLAUDE_CODE_SESSION_ID", ""), running=_running)
    resources = Resources(here, scope, held)
    if http:
        mcp_serving.over_http(tools, resources, secrets.token_urlsafe(24), port or 0, _serving)
    else:
        mcp_serving.over_stdio(tools, resources, mandate.MANDATE if mandated else None)


def _running() -> str:
    from ..proxy import state

    folder = os.environ.get(state.VARIABLE)
    return str(state.read(Path(folder)).get("session") or "") if folder else ""


def _record() -> Record | None:
    from ..errors import InputError
    from ..record import Record, default_path

    path = os.environ.get("CUTLINE_RECORD")
    if path is None and default_path().exists():
        path = str(default_path())
    try:
        return Record(path) if path else None
    except InputError as error:
        # Without a record the tools still serve: recall reads the client's session files.
        click.echo(f"cutline: {error}", err=True)
        return None


def _serving(address: str) -> None:
    click.echo(address)
    click.echo("cutline: give this address to a client as an MCP server over HTTP; ^C ends it", err=True)
