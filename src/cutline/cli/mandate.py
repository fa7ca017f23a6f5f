"""`cutline mandate`: the words that an agent is given. Law: prints them as they are sent."""

from __future__ import annotations

import click

from .. import mandate
from . import paint
from .options import json_option


@click.command("mandate")
@json_option
def command(as_json: bool) -> None:
    """Print the mandate: what `run` tells the agent, to use where `run` can't."""
    if as_json:
        paint.echo_json({"version": mandate.VERSION, "mandate": mandate.MANDATE, "tools": list(mandate.TOOLS)})
    else:
        click.echo(mandate.MANDATE)
