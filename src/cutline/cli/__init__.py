"""The command line: one command, `cutline`, its subcommands loaded when they are used.

Law: no logic here. Each command resolves its input, calls the library, prints. Exit codes: 0 done, 1 the proof
failed, 2 bad usage or input (nothing is written), 3 nothing to remove or a cut that would lose money.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

import click

from ..errors import CutlineError

# Order is the order of the help page: what people use, then what programs and the curious use.
_COMMANDS = {
    "ls": "Sessions of this directory, the newest first.",
    "show": "What a session or body is made of; holes, claims, cost, faults.",
    "cut": "Cut a session (as a copy) or a body, prove it, and say what it saves.",
    "resume": "Start the client on a session's cut copy.",
    "run": "Start a client through the proxy that cuts at checkpoints.",
    "recall": "Bring back a removed result, by address or by words.",
    "revive": "Undo a compaction: a copy with the words in place of the client's summary.",
    "move": "Go on with a session in another client: a new one, with every word.",
    "view": "Look at sessions in a browser: timeline, before and after, cost, search.",
    "cost": "What agents cost, by day, project, client or model.",
    "card": "The last 30 days on one picture.",
    "agent": "A coding agent under your eyes, cut at its checkpoints (needs cutline[agent]).",
    "demo": "A small coding session, cut and proven; no key, no network.",
    "verify": "Prove that one body is the cut of another.",
    "doctor": "Whether a client would run through Cutline here, and what to do if not.",
    "setup": "Give a client the tools and the mandate for good, or take them back.",
    "status": "What the sessions that run through Cutline send now.",
    "record": "The durable record: what it holds, check it, export, import, delete.",
    "bench": "What survives a seam, measured on recorded sessions against other strategies.",
    "mandate": "The words that the agent is given.",
    "mcp": "The tools, documents and prompt for a client, over MCP.",
    "proxy": "The proxy alone, for programs pointed at it by hand.",
}
_HIDDEN = ("hook",)


class _Lazy(click.Group):
    """A group whose commands are imported when they are called: the help page loads none of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS and name not in _HIDDEN:
            return None
        command = importlib.import_module(f".{name}", __name__).command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in _COMMANDS and args[0] not in _HIDDEN:
            close = _closest(args[0])
            hint = f"; did you mean “cutline {close}”?" if close else "; “cutline --help” lists them"
            raise click.UsageError(f"no command “{args[0]}”{hint}")
        return super().resolve_command(ctx, args)


def _closest(word: str) -> str | None:
    import difflib

    found = difflib.get_close_matches(word, _COMMANDS, 1)
    return found[0] if found else None


def _version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"cutline {version('cutline')}")
        ctx.exit()


@click.group(cls=_Lazy, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
@click.option(
    "--version", is_flag=True, callback=_version, expose_value=False, is_eager=True, help="Print the version."
)
@click.pass_context
def cli(ctx: click.Context, as_json: bool) -> None:
    """Half the tokens, every word: cut an agent's history at the words, prove it, go on.

    Without a command: this directory's latest session, what a cut would leave of it, and what to type next.
    """
    if ctx.invoked_subcommand is None:
        from .overview import overview

        overview(as_json)
    elif as_json:
        raise click.UsageError(f"--json belongs behind the command: cutline {ctx.invoked_subcommand} … --json")


def main(args: list[str] | None = None) -> Any:
    """Run the command line and exit with its code."""
    try:
        code = cli.main(args=args, prog_name="cutline", standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except CutlineError as error:
        _fail(str(error), error.exit_code)
    except click.UsageError as error:
        _fail(error.format_message(), 2)
    except click.Abort:
        _fail("interrupted", 130)
    except click.ClickException as error:
        _fail(error.format_message(), 2)
    except BrokenPipeError:
        # The reader of a pipe has seen enough; what is left in the buffer must not fail at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _fail(f"{where}{(error.strerror or str(error)).lower()}", 2)


def _fail(text: str, code: int) -> None:
    line = " ".join(text.split())
    click.echo(click.style("cutline: ", fg="red", bold=True) + line, err=True)
    sys.exit(code)
