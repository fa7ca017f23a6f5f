"""MCP servers of a project's `.mcp.json`: their tools, through the mcp library's client.

Law: a server is started only after the human agreed to its very command. What a server says of itself (that a tool
only reads, that it is ours) is data: its calls are asked for as anything unknown is, and none can be a checkpoint.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import narration
from ..errors import InputError
from .tools.capping import Spool, capped
from .tools.tool import Outcome, Piece, Place, Tool

FILE = ".mcp.json"
_STARTING_S = 30.0
_ANSWER_S = 300.0
_LONGEST_NAME = 64  # characters (OpenAI, "Function calling")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


@dataclass(frozen=True, slots=True)
class Server:
    """A server as the file names it.

    Attributes:
        name: its name there.
        command: program and arguments; empty where it is reached by `url`.
        environment: variables beside those that tools are given.
        url: where it answers; "" where it is started.
        headers: sent along with each request.
    """

    name: str
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def told(self) -> str:
        """What is started or reached, in a line."""
        return " ".join(self.command) or self.url


def read(tree: Path, environment: Mapping[str, str]) -> list[Server]:
    """The servers of a tree's `.mcp.json`; none where it has none.

    Args:
        tree: the working tree.
        environment: fills `${NAME}` and `${NAME:-else}`.

    Raises:
        InputError: the file can't be read.
    """
    path = tree / FILE
    try:
        held = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise InputError(f"{path} can't be read: {error}; mend it or move it away") from None
    named = held.get("mcpServers") if isinstance(held, dict) else None
    if not isinstance(named, dict):
        raise InputError(f'{path} has no "mcpServers"; mend it or move it away')
    return [_server(path, name, one, environment) for name, one in named.items()]


def _server(path: Path, name: str, held: Any, environment: Mapping[str, str]) -> Server:
    def filled(value: Any) -> str:
        return _VARIABLE.sub(lambda found: environment.get(found[1], found[2] or ""), str(value))

    if isinstance(held, dict) and held.get("url"):
        headers = {key: filled(value) for key, value in (held.get("headers") or {}).items()}
        return Server(name, url=filled(held["url"]), headers=headers)
    if isinstance(held, dict) and held.get("command"):
        command = (filled(held["command"]), *(filled(one) for one in held.get("args") or ()))
        return Server(name, command, {key: filled(value) for key, value in (held.get("env") or {}).items()})
    raise InputError(f"{path}: server {name} has neither command nor url")


class Running:
    """The servers of a session while they run.

    Args:
        environment: what they are given, beside their own.
        tree: where they are started.
        errors: the folder for what they write to standard error.
    """

    def __init__(self, environment: Mapping[str, str], tree: Path, errors: Path) -> None:
        self._environment, self._tree, self._errors = environment, tree, errors
        self._tasks: list[asyncio.Task[None]] = []
        self._ended = asyncio.Event()

    async def start(self, server: Server) -> tuple[list[Tool], list[str]]:
        """Start a server: its tools, and what was left out and why, a line each.

        Raises:
            InputError: it does not answer.
        """
        ready: asyncio.Future[tuple[list[Tool], list[str]]] = asyncio.get_running_loop().create_future()
        # In a task of its own: a client is closed where it was opened.
        task = asyncio.create_task(self._keep(server, ready))
        self._tasks.append(task)
        try:
            return await asyncio.wait_for(asyncio.shield(ready), _STARTING_S)
        except Exception as error:
            task.cancel()
            why = "no answer in time" if isinstance(error, TimeoutError) else _inner(error)
            raise InputError(f"MCP server {server.name} ({server.told}): {why}") from None

    async def close(self) -> None:
        """End them all."""
        self._ended.set()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _keep(self, server: Server, ready: asyncio.Future[tuple[list[Tool], list[str]]]) -> None:
        from mcp import Client

        try:
            async with contextlib.AsyncExitStack() as stack:
                client = await stack.enter_async_context(Client(await self._line(server, stack)))
                tools, left = [], []
                cursor: str | None = None
                while True:
                    listed = await client.list_tools(cursor=cursor)
                    for one in listed.tools:
                        name = f"mcp__{server.name}__{one.name}"
                        fault = _fault(name)
                        if fault:
                            left.append(f"MCP tool {name}: {fault}")
                        else:
                            schema = dict(one.input_schema or {"type": "object"})
                            tools.append(_tool(client, name, one.name, one.description or one.name, schema))
                    cursor = listed.next_cursor
                    if not cursor:
                        break
                ready.set_result((tools, left))
                await self._ended.wait()
        except Exception as error:
            if not ready.done():
                ready.set_exception(error)

    async def _line(self, server: Server, stack: contextlib.AsyncExitStack) -> Any:
        if server.url:
            import httpx2
            from mcp.client.streamable_http import streamable_http_client

            made = httpx2.AsyncClient(headers=dict(server.headers), follow_redirects=True, timeout=_ANSWER_S)
            return streamable_http_client(server.url, http_client=await stack.enter_async_context(made))
        from mcp import StdioServerParameters, stdio_client

        self._errors.mkdir(mode=0o700, parents=True, exist_ok=True)
        safe = re.sub(r"[^A-Za-z0-9_-]", "_", server.name)
        descriptor = os.open(self._errors / f"mcp-{safe}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        errors = stack.enter_context(os.fdopen(descriptor, "w"))
        given = {**self._environment, **server.environment}
        program, *arguments = server.command
        return stdio_client(
            StdioServerParameters(command=program, args=arguments, env=given, cwd=self._tree), errlog=errors
        )


def _tool(client: Any, name: str, theirs: str, description: str, schema: Mapping[str, Any]) -> Tool:
    async def run(arguments: Mapping[str, Any], at: Place) -> AsyncIterator[Piece | Outcome]:
        try:
            told = await client.call_tool(theirs, dict(arguments))
        except Exception as error:  # a server that is gone, or an answer that breaks the protocol
            yield Outcome(f"{name} failed: {_inner(error)}", is_error=True)
            return
        spool = Spool(at.outputs, at.address)
        spool.write(_text(told.content).encode("utf-8", "replace"))
        text = spool.end().decode("utf-8", "replace")
        kept = at.address if spool.path is not None else ""
        text = capped(text, kept, whole=spool.size if spool.partial else None)
        yield Outcome(text, is_error=bool(told.is_error), whole=spool.path)

    return Tool(name, description, schema, "other", run)


def _fault(name: str) -> str:
    """Why a server's tool is not offered; "" for none."""
    if narration.is_own(name):
        return "it bears the name of one of our own tools, whose results only we give"
    if len(name) > _LONGEST_NAME or not re.fullmatch(r"[A-Za-z0-9_-]+", name):
        return f"no provider takes this name (letters, digits, _ and -, at most {_LONGEST_NAME})"
    return ""


def _text(content: Sequence[Any]) -> str:
    parts = []
    for one in content:
        text = getattr(one, "text", None)
        if text is None:
            held = getattr(one, "resource", None)
            text = getattr(held, "text", None) or f"({one.type} content, which this agent does not show)"
        parts.append(str(text))
    return "\n".join(parts) or "(no output)"


def _inner(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
