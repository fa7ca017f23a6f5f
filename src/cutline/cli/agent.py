"""`cutline agent`: the supervised agent, in the terminal or headless; its sessions listed, forked, exported.

Law: no logic here but what an exit code is: 0 the agent answered, 1 its turn failed or the context was full, 2 bad
usage or input, 130 the human stopped it.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .options import json_option

if TYPE_CHECKING:
    from ..agent import events as ev
    from ..agent.face import Approval
    from ..agent.log import Kept
    from ..agent.loop import Session
    from ..agent.wanted import Wanted

_CODES = {"answered": 0, "stopped": 130, "failed": 1, "full": 1}


@click.command("agent")
@click.argument("what", required=False, type=click.Choice(["ls"]))
@click.option("-p", "--prompt", help="Carry out one task without a terminal; “-” reads it from standard input.")
@click.option(
    "--model",
    envvar="CUTLINE_MODEL",
    metavar="PROVIDER:NAME",
    default="",
    help="anthropic, openai, openai-chat or google.",
)
@click.option("--base-url", metavar="URL", default="", help="Another server that speaks the provider's API.")
@click.option(
    "--gate", type=click.Choice(["off", "nudge", "strict"]), default="nudge", help="Calls without a stated intent."
)
@click.option("--approve", type=click.Choice(["ask", "edits", "auto"]), default="ask", help="What runs without asking.")
@click.option("--allow", multiple=True, metavar="RULE", help="Calls without a question: bash(git log*), edit(src/*).")
@click.option("--deny", multiple=True, metavar="RULE", help="Calls that never run; wins over everything.")
@click.option(
    "--env", "variables", multiple=True, metavar="NAME", help="A variable that tools get although it is a secret."
)
@click.option(
    "--resume",
    is_flag=False,
    flag_value="",
    default=None,
    metavar="[ID]",
    help="Go on with a session; the latest here without an id.",
)
@click.option("--fork", metavar="ID[@N]", help="Go on with a copy of a session, of its first N events.")
@click.option("--export", metavar="ID", help="Print a session as Markdown.")
@click.option("--all", "everywhere", is_flag=True, help="With ls: sessions of all directories.")
@json_option
def command(
    what: str | None,
    prompt: str | None,
    model: str,
    base_url: str,
    gate: str,
    approve: str,
    allow: tuple[str, ...],
    deny: tuple[str, ...],
    variables: tuple[str, ...],
    resume: str | None,
    fork: str | None,
    export: str | None,
    everywhere: bool,
    as_json: bool,
) -> int:
    """A coding agent under your eyes: its reasoning visible, its context cut at checkpoints.

    Without -p it runs in this terminal. A hint can be typed at any time.
    """
    here = Path.cwd().resolve()
    if what == "ls":
        return _ls(None if everywhere else here, as_json)
    if export is not None:
        return _export(export, here, as_json)
    if resume is not None and fork is not None:
        raise click.UsageError("--resume and --fork: give one of them")
    from ..agent.models import installed

    installed()
    from ..agent.wanted import Wanted

    wanted = Wanted(here, model, base_url, gate, approve, allow, deny, variables, _log(resume, fork, here))
    if prompt is not None or (wanted.path is not None and not sys.stdin.isatty()):
        text = sys.stdin.read() if prompt == "-" else prompt or ""
        return asyncio.run(_headless(wanted, text, as_json))
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError("no terminal: give the task with -p, or “-p -” to read it from standard input")
    # By name: prompt_toolkit is loaded only here.
    screen = importlib.import_module("cutline.agent.screen")
    return int(screen.run(wanted))


def _log(resume: str | None, fork: str | None, here: Path) -> Path | None:
    """The log of the session that goes on; None for a new one."""
    from ..agent import log

    if resume is not None:
        return log.find(resume, here).path
    if fork is None:
        return None
    name, mark, number = fork.partition("@")
    if mark and not number.isdecimal():
        raise click.UsageError(f"--fork {fork}: behind @ stands how many events are taken")
    return log.fork(log.find(name, here), int(number) if mark else None)


# --------------------------------------------------------------------------------------------------- headless


class _Headless:
    """The face without a terminal: the agent's words to standard output, what it does to standard error."""

    def __init__(self, as_json: bool) -> None:
        self._json = as_json

    def show(self, event: ev.Event) -> None:
        from ..agent import events as ev

        if self._json:
            click.echo(json.dumps(ev.to_json(event), ensure_ascii=True))
            return
        match event:
            case ev.Text():
                click.echo(_plain(event.text) + "\n")
            case ev.Called(name="say"):
                click.echo(_plain(str(event.arguments.get("text", ""))) + "\n")
            case ev.Called():
                given = ", ".join(f"{key}={value!r}" for key, value in event.arguments.items())
                _note(f"{event.name} {given}")
            case ev.Denied():
                _note(f"denied: {event.reason}")
            case ev.Retry():
                _note(f"{event.reason}; again in {event.wait:g} s")
            case ev.Checkpoint():
                _note(f"checkpoint: {event.calls} calls leave the context")
            case ev.Notice() | ev.Failed():
                _note(event.text)

    async def approve(self, asked: ev.ApprovalAsked) -> Approval:
        from ..agent.face import Approval

        return Approval(False, reason=f"{asked.reason}, and nobody is there to be asked (--approve, --allow)")


def _plain(text: str) -> str:
    from ..agent.tools.plain import shown

    return shown(text)


def _note(text: str) -> None:
    line = " ".join(_plain(text).split())
    click.echo(click.style(f"· {line if len(line) <= 200 else line[:199] + '…'}", dim=True), err=True)


async def _headless(wanted: Wanted, text: str, as_json: bool) -> int:
    from ..agent.opening import opened

    made = await opened(wanted, _Headless(as_json))
    session = made.session
    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, _stop, session, name)
    try:
        if text.strip():
            ended = await session.turn(text)
        elif session.state.active:
            ended = await session.go_on()
        else:
            raise click.UsageError("the session's turn is over: give the next task with -p")
        return _CODES[ended.reason]
    finally:
        for name in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(name)
        await made.close()


def _stop(session: Session, name: int) -> None:
    """An interrupt ends what runs, and where nothing runs the turn; a termination ends the turn."""
    if name == signal.SIGTERM or not session.stop_tool():
        session.stop_turn()


# --------------------------------------------------------------------------------------------------- what is kept


def _ls(directory: Path | None, as_json: bool) -> int:
    from ..agent import log

    kept = log.sessions(directory)
    if as_json:
        click.echo(json.dumps([_told(one) for one in kept], ensure_ascii=True))
        return 0
    if not kept:
        click.echo("no session of the agent" + ("" if directory is None else " in this directory (--all: elsewhere)"))
        return 0
    for one in kept:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(one.last))
        where = f"  {one.begun.directory}" if directory is None else ""
        first = " ".join(_plain(one.first).split())
        line = f"{one.session}  {when}  {one.events:>5} events  {one.begun.model}{where}  {first}"
        click.echo(line if len(line) <= _width() else line[: _width() - 1] + "…")
    return 0


def _width() -> int:
    return os.get_terminal_size().columns if sys.stdout.isatty() else 160


def _told(kept: Kept) -> dict[str, Any]:
    return {
        "session": kept.session,
        "path": str(kept.path),
        "directory": kept.begun.directory,
        "model": kept.begun.model,
        "parent": kept.begun.parent,
        "begun": kept.at,
        "last": kept.last,
        "events": kept.events,
        "first": kept.first,
    }


def _export(name: str, here: Path, as_json: bool) -> int:
    from ..agent import events as ev
    from ..agent import log
    from ..agent.exporting import markdown

    told = log.lines(log.find(name, here).path)
    if as_json:
        for at, event in told:
            click.echo(json.dumps({"at": at, **ev.to_json(event)}, ensure_ascii=True))
        return 0
    for part in markdown(told):
        click.echo(part if not sys.stdout.isatty() else _plain(part))
    return 0
