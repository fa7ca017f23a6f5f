"""`cutline run claude`: the client through a proxy that cuts at checkpoints, and the wire report at its end.

Law: run's own flags stand before the client's name, what stands behind it is the client's. The exit code is the
client's, standard output is the client's alone; the report goes to standard error.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import Literal

import click


@click.command(
    "run",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    epilog="Example: cutline run claude --continue",
)
@click.option(
    "--mandate",
    type=click.Choice(["text", "nudge", "strict"]),
    default="text",
    show_default=True,
    help="How narration is asked for: in the prompt; with a reminder where it is missing; or the call is not run.",
)
@click.option("--no-record", is_flag=True, help="Keep no record; recall then reads the client's session files.")
@click.option("--keep-compaction", is_flag=True, help="Leave the client's own automatic summary alone.")
@click.option("--json", "as_json", is_flag=True, help="The report as JSON, on standard error.")
@click.argument("client")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[CLIENT'S ARGUMENTS]...")
@click.pass_context
def command(
    ctx: click.Context,
    mandate: Literal["text", "nudge", "strict"],
    no_record: bool,
    keep_compaction: bool,
    as_json: bool,
    client: str,
    arguments: tuple[str, ...],
) -> None:
    """Start CLIENT so that its history is cut at each checkpoint on the way to the provider.

    The agent gets three tools (micro_handoff, recall, say) and the mandate to narrate. Nothing in the client's own
    configuration is changed; its session file keeps everything.
    """
    from ..launch import start
    from ..launch.run import run
    from ..launch.terminal import Terminal
    from ..record import default_path, greeting
    from . import wire_report
    from .held import looked_at

    start.client(client)
    path = "" if no_record else str(default_path())
    first = bool(path) and not Path(path).exists()
    looked_at(path)

    def ready() -> None:
        if first:
            with contextlib.suppress(OSError, ValueError):
                click.echo(f"cutline: {greeting(path)}", err=True)

    with Terminal() as terminal:
        ended = run(client, arguments, start.Wish(mandate, keep_compaction, path), terminal, ready)
        try:
            wire_report.show(ended, as_json)
            sys.stderr.flush()
        except (OSError, ValueError, SystemExit):  # rich ends the program where a pipe is broken
            # Nobody reads the report any more. The code is the client's all the same, and what is left in the
            # buffer must not fail at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    ctx.exit(ended.code)
