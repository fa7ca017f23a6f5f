"""`cutline mcp`: the three tools over standard input and output, for a client to start.

Law: standard output is MCP's alone. Where and what to record comes from the run that started it, by environment.
"""

from __future__ import annotations

import os
from pathlib import Path

import click


@click.command("mcp")
def command() -> None:
    """Serve micro_handoff, recall and say to a client (MCP over standard input and output)."""
    from .. import project
    from ..errors import InputError
    from ..mcp import Tools, serve
    from ..record import Record

    here = Path(os.environ.get("CLAUDE_PROJECT_DIR") or Path.cwd())
    path = os.environ.get("CUTLINE_RECORD")
    try:
        held = Record(path) if path else None
    except InputError as error:
        # Without a record the tools still serve: recall reads the client's session files.
        click.echo(f"cutline: {error}", err=True)
        held = None
    serve(Tools(here, project.project(here), held, os.environ.get("CLAUDE_CODE_SESSION_ID", "")))
