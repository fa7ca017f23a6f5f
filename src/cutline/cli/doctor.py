"""`cutline doctor`: whether a client would run through Cutline here, a line for each thing looked at.

Law: looks and says, and does nothing; the exit code is 2 where a run would not work.
"""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path

import click
from rich.text import Text

from . import paint
from .options import json_option

_MARKS = {"good": ("✓", paint.GOOD), "note": ("·", paint.WORLD), "bad": ("✗", paint.BAD)}


@click.command("doctor")
@click.argument("client", required=False)
@json_option
@click.pass_context
def command(ctx: click.Context, client: str | None, as_json: bool) -> None:
    """Look whether CLIENT (default: every one that is installed) would run through Cutline here.

    Is it installed, how is it logged in, would its requests pass the proxy, do the tools answer, can copies be
    resumed, and how does its agent narrate. No session is started, and no provider is asked.
    """
    from ..launch import doctor, start
    from ..sessions import clients

    environment = dict(os.environ)
    wanted = [start.client(client)] if client else doctor.installed(list(start.CLIENTS), environment)
    seen = [(one, doctor.look(one, Path.cwd(), environment)) for one in wanted]
    works = bool(seen) and all(finding.state != "bad" for _, found in seen for finding in found)
    if as_json:
        told = {one.name: [asdict(finding) for finding in found] for one, found in seen}
        paint.echo_json({"works": works, "clients": told})
        ctx.exit(0 if works else 2)
    out = paint.console()
    if not seen:
        out.print("no client that run knows is on PATH; install one:")
        for one in start.CLIENTS.values():
            out.print(f"  npm install -g {one.package}")
    for number, (one, found) in enumerate(seen):
        if number:
            out.print()
        out.print(Text(clients.client(one.sessions).LABEL, style="bold"))
        for finding in found:
            mark, style = _MARKS[finding.state]
            line = Text.assemble((mark, style), " ", (f"{finding.name:<12}", paint.FAINT), finding.text)
            if finding.advice:
                line.append(f"  → {finding.advice}", style=style)
            out.print(line)
    ctx.exit(0 if works else 2)
