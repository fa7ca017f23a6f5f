"""The MCP server around the tools: over standard input and output, or over HTTP on loopback.

Law: nothing is decided here but who may ask. The official library speaks the protocol; a fault of ours is told in one
line and never ends the server. On standard output stands MCP's alone; over HTTP every path begins with a token.
"""

from __future__ import annotations

import base64
import gc
import json
import signal
import socket
from collections.abc import Callable, Mapping
from typing import Any

from . import mandate
from .errors import InputError
from .mcp import Reply, Tools
from .resources import Content, Resources

PROMPT = """\
Write a checkpoint now, with micro_handoff: calls, results and thinking before it leave your context, every word stays.
First say in text what you still need of the results so far, with its specifics (path, line, count, message), and save \
to a file what took several tries. In the document: many facts, each with its basis and the command or address that \
shows it; what went wrong and what failed; what is open and what comes next. If it is refused, mend what is listed and \
call again. Then say in one line what comes next, and wait."""
"""What `/mcp__cutline__micro-handoff` asks of the agent."""

_PATH = "/mcp"
_CLOSING_S = 1  # how long open answers are waited for at the end


def over_stdio(tools: Tools, resources: Resources, instructions: str | None = None) -> None:
    """Serve over standard input and output until the client closes them.

    Args:
        tools, resources: what is served.
        instructions: MCP's own, for the agent, which some clients pass on; None for none.
    """
    gc.disable()  # what the library is made of stays: looking through it while it is loaded takes a tenth of a second
    import anyio
    from mcp.server.stdio import stdio_server

    server = _server(tools, resources, instructions)
    gc.freeze()
    gc.enable()

    async def run() -> None:
        async with stdio_server() as (incoming, outgoing), anyio.create_task_group() as group:
            mended, mending = anyio.create_memory_object_stream[Any](0)
            group.start_soon(_mend, incoming, mended)
            await server.run(mending, outgoing, server.create_initialization_options())

    anyio.run(run)


def over_http(tools: Tools, resources: Resources, token: str, port: int, serving: Callable[[str], None]) -> None:
    """Serve over streamable HTTP on 127.0.0.1 until interrupted.

    Args:
        tools, resources: what is served.
        token: what every path has to begin with.
        port: 0 for a free one.
        serving: told the address when it is listened on.

    Raises:
        InputError: the port is taken.
    """
    import anyio
    import uvicorn
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    listening = _listen(port)
    # Stateless: nothing is kept for a client, so that one that comes back after a restart is answered as before.
    manager = StreamableHTTPSessionManager(_server(tools, resources), json_response=True, stateless=True)
    config = uvicorn.Config(
        _guarded(manager.handle_request, token),
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",  # a request that can't be read may hold the token
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=_CLOSING_S,
    )

    server = uvicorn.Server(config)

    async def run() -> None:
        async with manager.run():
            serving(f"http://127.0.0.1:{listening.getsockname()[1]}/{token}{_PATH}")
            await server.serve(sockets=[listening])

    def end(*_: Any) -> None:
        server.should_exit = True

    with listening:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(
                number, end
            )  # uvicorn has its own while it serves, and raises the signal again behind its end
        anyio.run(run)


def _listen(port: int) -> socket.socket:
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(("127.0.0.1", port))
        listening.listen()  # before the address is told: whoever reads it may connect at once
    except OSError as error:
        listening.close()
        raise InputError(f"127.0.0.1:{port}: {(error.strerror or str(error)).lower()}; give another --port") from None
    return listening


def _guarded(serve: Callable[..., Any], token: str) -> Callable[..., Any]:
    """An ASGI application that passes on what the proxy's own rules admit, at one path."""
    from .proxy.plan import Refusal, admit

    async def application(scope: Any, receive: Any, send: Any) -> None:
        target = scope["raw_path"] + (b"?" + scope["query_string"] if scope["query_string"] else b"")
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
        admitted = admit(target.decode("latin-1"), headers, token)
        if admitted == _PATH:
            await serve(scope, receive, send)
            return
        if isinstance(admitted, Refusal):
            status, message = admitted.status, admitted.message
        else:
            status, message = 404, "nothing is served here; use the address that was printed"
        error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": f"cutline: {message}"}}
        kind = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": status, "headers": kind})
        await send({"type": "http.response.body", "body": json.dumps(error).encode()})

    return application


def _server(tools: Tools, resources: Resources, instructions: str | None = None) -> Any:
    """The official library's server, with everything that Cutline answers."""
    import anyio
    from mcp import types
    from mcp.server.lowlevel import Server
    from mcp.shared.exceptions import MCPError

    async def on_list_tools(_: Any, __: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool.model_validate(_listed(tool)) for tool in mandate.TOOLS])

    async def on_call_tool(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        call_id, session = _origin(params.meta)
        reply = await anyio.to_thread.run_sync(_answer, tools, params.name, params.arguments or {}, call_id, session)
        content: list[Any] = [types.TextContent(type="text", text=text) for text in _sendable(reply.texts)]
        content += [types.ImageContent(type="image", data=data, mime_type=kind) for kind, data in reply.images]
        return types.CallToolResult(content=content, is_error=reply.error)

    async def on_list_resources(_: Any, params: Any) -> types.ListResourcesResult:
        cursor = (params.cursor if params else None) or ""
        listed, follows = await asked(resources.listed, cursor)
        found = [
            types.Resource(
                uri=one.uri, name=one.name, title=one.title, description=one.about, mime_type=one.kind, size=one.size
            )
            for one in listed
        ]
        return types.ListResourcesResult(resources=found, next_cursor=follows or None)

    async def on_read_resource(_: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        contents: list[Content] = await asked(resources.read, str(params.uri))
        found: list[Any] = []
        for one in contents:
            if one.text is not None:
                text = _whole(one.text)
                found.append(types.TextResourceContents(uri=one.uri, mime_type=one.kind, text=text))
            else:
                blob = base64.b64encode(one.data).decode()
                found.append(types.BlobResourceContents(uri=one.uri, mime_type=one.kind, blob=blob))
        return types.ReadResourceResult(contents=found)

    async def on_list_prompts(_: Any, __: Any) -> types.ListPromptsResult:
        # Without arguments: what a human types behind the command reaches the agent as it is.
        prompt = types.Prompt(
            name="micro-handoff",
            title="Write a checkpoint",
            description="Ask the agent for a checkpoint now: the calls and results before it leave its context",
        )
        return types.ListPromptsResult(prompts=[prompt])

    async def on_get_prompt(_: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        if params.name != "micro-handoff":
            raise MCPError(types.INVALID_PARAMS, "cutline: there is one prompt: micro-handoff")
        words = types.PromptMessage(role="user", content=types.TextContent(type="text", text=PROMPT))
        return types.GetPromptResult(messages=[words])

    async def asked(what: Callable[[str], Any], argument: str) -> Any:
        try:
            return await anyio.to_thread.run_sync(what, argument)
        except InputError as error:
            raise MCPError(types.INVALID_PARAMS, f"cutline: {_whole(str(error))}") from None

    return Server(
        "cutline",
        version=str(mandate.VERSION),
        instructions=instructions,
        on_list_tools=on_list_tools,
        on_call_tool=on_call_tool,
        on_list_resources=on_list_resources,
        on_read_resource=on_read_resource,
        on_list_prompts=on_list_prompts,
        on_get_prompt=on_get_prompt,
    )


def _origin(meta: Any) -> tuple[str, str]:
    """The provider's id of a call and the client's of its session, as Claude Code and Codex pass them on; else ""."""
    held = meta if isinstance(meta, Mapping) else {}
    return str(held.get("claudecode/toolUseId") or held.get("callId") or ""), str(held.get("sessionId") or "")


def _answer(tools: Tools, name: str, arguments: Mapping[str, Any], call_id: str, session: str) -> Reply:
    """A tool's answer, or what went wrong in one line."""
    try:
        return tools.call(name, arguments, call_id, session)
    except InputError as error:
        return Reply((f"cutline: {error}",), error=True)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return Reply((f"cutline: {where}{(error.strerror or str(error)).lower()}",), error=True)


def _listed(tool: Mapping[str, Any]) -> dict[str, Any]:
    """A tool as it is listed, with what the client is asked for (docs/claude-code.md).

    None of the three changes anything of the project's, and a client in its plan mode runs no tool that might.
    """
    held = {**tool, "annotations": {"readOnlyHint": True}}
    if held["name"] == "recall":
        held["_meta"] = {"anthropic/maxResultSizeChars": 500_000}
    return held


# ---------------------------------------------------------------------- halves of surrogate pairs, which UTF-8 has not


def _whole(text: str) -> str:
    """A text as it can be sent: a half of a surrogate pair, which a broken-off result may hold, stands as U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _sendable(texts: tuple[str, ...]) -> list[str]:
    sent = [_whole(text) for text in texts]
    if tuple(sent) != texts:
        sent.append("(Half of a surrogate pair stands there as U+FFFD: it can't be sent.)")
    return sent


async def _mend(incoming: Any, mended: Any) -> None:
    """Pass messages on; one that the library could not read for halves of surrogate pairs goes on without them.

    It would not be answered at all, and the client would wait for ever.
    """
    async with mended:
        async for message in incoming:
            await mended.send(_mended(message) if isinstance(message, Exception) else message)


def _mended(fault: Exception) -> Any:
    from mcp.shared.message import SessionMessage
    from mcp.types import jsonrpc_message_adapter
    from pydantic import ValidationError

    if not isinstance(fault, ValidationError):
        return fault
    try:
        held = json.loads(str(fault.errors()[0]["input"]))
        line = _whole(json.dumps(held, ensure_ascii=False))
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except (ValueError, RecursionError):  # pydantic's own is a ValueError
        return fault
