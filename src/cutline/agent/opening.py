"""How a session is put together: its log, its transport and model, its tools and servers, its prompt.

Law: what is decided here is decided once, at the beginning, and kept in the log: a session goes on as it began. What
the human has to agree to (a server's command) is asked for before it is done.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import project
from ..errors import InputError
from ..transport import AsyncTransport
from . import events as ev
from . import log as logs
from . import prompt, servers
from .belt import Standing
from .face import Face
from .loop import Held, Session
from .memory import Memory, listed
from .models import Model, installed, named, own_tools
from .own import OwnTools
from .state import State
from .tools import TOOLS, Bash, environment
from .tools.tool import Place, Tool
from .wanted import Wanted


@dataclass(slots=True)
class Opened:
    """A session with all that it stands on; closed by `close`.

    Attributes:
        session: it.
        own: answers our own tools, and the human's /recall.
        transport: cuts, records, measures.
        handoffs: the folder of full handoffs.
        log: its log.
    """

    session: Session
    own: OwnTools
    transport: AsyncTransport
    handoffs: Path
    log: logs.Log
    _model: Model
    _shell: Bash
    _servers: servers.Running

    def load(self) -> None:
        """Import what the first request needs, ahead of it; takes a second or two, best in a thread."""
        self._model.load()

    async def close(self) -> None:
        """End what runs, and write what waits for the record. The session can go on later."""
        for closing in (self._shell.close, self._servers.close, self._model.close, self.transport.aclose):
            with contextlib.suppress(Exception):
                await closing()
        self.log.close()


def settings() -> Path:
    """The folder of the human's own settings: persona.md, AGENTS.md."""
    given = os.environ.get("XDG_CONFIG_HOME", "")
    return (Path(given) if Path(given).is_absolute() else Path.home() / ".config") / "cutline"


async def opened(wanted: Wanted, face: Face) -> Opened:
    """Open a session.

    Args:
        wanted: what the human asks for.
        face: shows it, and asks the human.

    Raises:
        InputError: a model that can't be asked, a log that can't be read, libraries that are not there.
        OSError: the log can't be written.
    """
    state = State()
    for _, event in logs.lines(wanted.path) if wanted.path is not None else ():
        state.apply(event)
    begun = state.begun
    spec = wanted.model or state.model
    if not spec:
        raise InputError(
            "name a model: --model anthropic:claude-sonnet-5, or CUTLINE_MODEL; its key in the environment"
        )
    named(spec)
    installed()
    rules = Standing(wanted.approve, wanted.allow, wanted.deny)
    tree = Path(begun.directory) if begun is not None else wanted.directory.resolve()
    if not tree.is_dir():
        raise InputError(f"the session's directory {tree} is not there")
    session = begun.session if begun is not None else logs.new_id()
    folder = logs.folder()
    outputs = folder / "outputs" / session
    with contextlib.chdir(tree):  # a session may go on from elsewhere: its project is where it works
        transport = AsyncTransport(record=True, session=session)
    same = begun is None or not wanted.model or wanted.model == state.model
    base_url = wanted.base_url or (state.base_url if same else "")
    model = Model(spec, base_url, transport, wanted.environment)
    given = environment.given(wanted.environment, wanted.named)
    shell = Bash(tree, given)
    running = servers.Running(given, tree, folder / "servers")
    log = logs.Log(wanted.path or folder / f"{session}.jsonl")
    try:
        scope = project.project(tree)
        memory = Memory.of(folder.parent / "memory", scope)
        tools = [*TOOLS, *memory.tools()]
        notices = await _serve(running, servers.read(tree, wanted.environment), tools, face, wanted.approve)
        by_name = {tool.name: tool for tool in tools}
        place = Place(tree, given, shell, outputs)
        for call in state.always:
            if call.name in by_name:
                rules.remember(call, by_name[call.name], place)
        own = OwnTools(transport, outputs)
        held = Held(log, state, face, model, own, by_name, place, rules.verdict, remember=rules.remember)
        steered = Session(held)
        made = Opened(steered, own, transport, folder / "handoffs", log, model, shell, running)
        if begun is None:
            steered.emit(_begun(session, tree, spec, base_url, wanted, tools, memory, scope))
        else:
            changed = base_url if base_url != state.base_url else ""
            steered.emit(ev.Resumed(spec if spec != state.model else "", changed))
        for line in notices:
            steered.emit(ev.Notice(line))
    except BaseException:
        await shell.close()
        await running.close()
        log.close()
        raise
    return made


def _begun(
    session: str, tree: Path, spec: str, base_url: str, wanted: Wanted, tools: list[Tool], memory: Memory, scope: str
) -> ev.Begun:
    stamp = project.stamp(tree)
    git = (
        f"git root {stamp.root}, {stamp.branch or 'detached'} at {stamp.head or 'no commit yet'}" if stamp.root else ""
    )
    own = settings()
    files = prompt.instructions(own, Path(stamp.root or tree), tree)
    text = prompt.system(prompt.persona(own, tree), files, listed(memory), tree, git)
    declared: list[dict[str, Any]] = [
        {"name": tool.name, "description": tool.description, "schema": dict(tool.schema)} for tool in tools
    ]
    known = (*declared, *own_tools())
    return ev.Begun(session, str(tree), spec, base_url, wanted.gate, wanted.approve, text, known)


async def _serve(
    running: servers.Running, named: list[servers.Server], tools: list[Tool], face: Face, approve: str
) -> list[str]:
    """Start the servers that the human agrees to; their tools are added. What went wrong, a line each."""
    notices = []
    for server in named:
        if approve != "auto":
            what = "starts this program" if server.command else "reaches this address"
            reason = f"{servers.FILE} of this directory {what}"
            asked = ev.ApprovalAsked(f"mcp:{server.name}", "MCP server", {server.name: server.told}, reason)
            said = await face.approve(asked)
            if not said.allow:
                notices.append(f"MCP server {server.name} was not started: {said.reason or said.words or 'denied'}")
                continue
        try:
            found, left = await running.start(server)
        except InputError as error:
            notices.append(str(error))
            continue
        notices += left
        have = {tool.name for tool in tools}
        tools += [tool for tool in found if tool.name not in have]
    return notices
