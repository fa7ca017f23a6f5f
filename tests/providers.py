"""A provider of every wire format on loopback: it refuses what the real ones refuse, and streams what it is told.

A real HTTP server (aiohttp) in a thread. Bodies are read with the standard library and judged by the validators; what
passes is answered in the way that its address asks for.
"""

from __future__ import annotations

import asyncio
import gzip
import importlib
import json
import re
import threading
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import WSMsgType, web

import conversations
import streams
import validator
from cutline.encodings import unpack
from streams import Said

WAYS = {
    "anthropic": "/v1/messages?beta=true",
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "gemini": "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse",
    "gemini list": "/v1beta/models/gemini-2.5-pro:streamGenerateContent",
    "converse": "/model/amazon.nova-pro-v1%3A0/converse-stream",
    "invoke": "/model/anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke-with-response-stream",
}
"""Each way in which an answer is streamed, and where it is asked for."""
WHOLE = {
    "anthropic": "/v1/messages",
    "openai_chat": "/openai/deployments/gpt/chat/completions?api-version=2026-03-01",
    "openai_responses": "/openai/v1/responses",
    "gemini": "/v1/projects/p/locations/global/publishers/google/models/gemini-2.5-pro:generateContent",
    "converse": "/model/amazon.nova-pro-v1%3A0/converse",
    "invoke": "/model/anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke",
}
"""The same where an answer comes whole, at other addresses."""


def format_of(way: str) -> str:
    """The wire format of a way."""
    return {"gemini list": "gemini", "invoke": "anthropic"}.get(way, way)


def offering(way: str, body: bytes) -> bytes:
    """A body with the tools that its calls need declared, as the way wants it."""
    held, names = json.loads(body), ("read", "micro_handoff", "recall", "say")
    format = format_of(way)
    if format == "anthropic":
        held["tools"] = [{"name": name, "input_schema": {"type": "object"}} for name in names]
    elif format == "openai_chat":
        held["tools"] = [{"type": "function", "function": {"name": name, "parameters": {}}} for name in names]
    elif format == "openai_responses":
        held["tools"] = [{"type": "function", "name": name, "parameters": {}} for name in names]
    elif format == "gemini":
        held["tools"] = [{"functionDeclarations": [{"name": name} for name in names]}]
    else:
        tools = [{"toolSpec": {"name": name, "inputSchema": {"json": {"type": "object"}}}} for name in names]
        held["toolConfig"] = {"tools": tools}
    if way == "invoke":
        held = {"anthropic_version": "bedrock-2023-05-31", **{k: v for k, v in held.items() if k != "model"}}
    return json.dumps(held).encode()


def growing(way: str, parts: int = 6, checkpoints: tuple[int, ...] = (3, 5)) -> list[bytes]:
    """The bodies of one conversation's requests (see `conversations.growing`), with tools."""
    return [offering(way, body) for body in conversations.growing(format_of(way), parts, checkpoints)]


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it came: method, target, headers by lower-case name, body without its content encoding."""

    method: str
    target: str
    headers: dict[str, str]
    raw: bytes
    body: bytes


@dataclass
class Provider:
    """A context manager; `url` is its base URL.

    Attributes:
        said: what it answers.
        usage: whether Chat Completions tell their counters.
        strict: whether it refuses neighbours of one role.
        refuses: makes the message of a refusal out of a body; "" to go on.
        asked: every request, the last `keeps` of them.
        faults: what was refused.
        sockets: what came through web sockets.
    """

    said: Said = field(default_factory=Said)
    usage: bool = True
    strict: bool = False
    refuses: Callable[[bytes], str] = lambda body: ""
    asked: list[Asked] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    sockets: list[Any] = field(default_factory=list)
    keeps: int = 100_000
    url: str = ""

    def __enter__(self) -> Provider:
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join(10)

    def _run(self) -> None:
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        self._ended = asyncio.Event()
        runner = web.ServerRunner(web.Server(self._handle, auto_decompress=False), shutdown_timeout=0.2)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        self._ready.set()
        await self._ended.wait()
        await runner.cleanup()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.headers.get("Upgrade", "").lower() == "websocket":
            return await self._talk(request)
        raw = await request.content.read()
        headers = {name.lower(): value for name, value in request.headers.items()}
        plain = unpack(raw, headers.get("content-encoding", ""), 1 << 26)
        assert plain is not None
        self.asked.append(Asked(request.method, request.raw_path, headers, raw, plain))
        del self.asked[: max(0, len(self.asked) - self.keeps)]
        path = request.raw_path.partition("?")[0]
        way = next((way for way, one in WAYS.items() if _same(path, one.partition("?")[0])), "")
        if request.method != "POST" or not way:
            return web.json_response({"ok": True})
        way = "gemini list" if way == "gemini" and "alt=sse" not in request.raw_path else way
        fault = self.refuses(plain) or next(iter(faults(way, plain, self.strict)), "")
        if fault:
            self.faults.append(fault)
            return web.json_response(_error(format_of(way), fault), status=400)
        if _is_whole(way, path, plain):
            return _whole(way, self.said, "gzip" in request.headers.get("Accept-Encoding", ""))
        return await self._stream(request, way)

    async def _stream(self, request: web.BaseRequest, way: str) -> web.StreamResponse:
        _, kind = streams.WAYS[way]
        data = streams.chat(self.said, usage=self.usage) if way == "openai_chat" else streams.stream(way, self.said)
        packed = "gzip" in request.headers.get("Accept-Encoding", "")
        response = web.StreamResponse(headers={"Content-Type": kind})
        if packed:
            response.headers["Content-Encoding"] = "gzip"
            packer = zlib.compressobj(wbits=31)
        await response.prepare(request)
        for at in range(0, len(data), 1_777):  # boundaries that respect nothing
            piece = data[at : at + 1_777]
            if packed:
                piece = packer.compress(piece) + packer.flush(zlib.Z_SYNC_FLUSH)
            await response.write(piece)
        if packed:
            await response.write(packer.flush())
        await response.write_eof()
        return response

    async def _talk(self, request: web.BaseRequest) -> web.StreamResponse:
        """A web socket: what comes is kept and answered twice."""
        self.asked.append(Asked("GET", request.raw_path, {n.lower(): v for n, v in request.headers.items()}, b"", b""))
        socket = web.WebSocketResponse(protocols=("responses",))
        await socket.prepare(request)
        await socket.send_str("welcome")
        async for message in socket:
            if message.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
                break
            self.sockets.append(message.data)
            send = socket.send_str if message.type is WSMsgType.TEXT else socket.send_bytes
            await send(message.data)
            await send(message.data)
        return socket


def faults(way: str, body: bytes, strict: bool = False) -> list[str]:
    """What the provider refuses of a body."""
    format = format_of(way)
    if format == "anthropic":
        held = json.loads(body)
        return validator.faults({"model": "claude-sonnet-4-5", **held})
    module = importlib.import_module(f"validators.{format}")
    found: list[str] = module.faults(body, strict=True) if strict and format == "openai_chat" else module.faults(body)
    return found


def _same(path: str, way: str) -> bool:
    """Whether a path is a way's, whatever the model, and whether it is asked for streamed or whole."""
    names = (r"/messages$", r"/chat/completions$", r"/responses$", r"enerateContent$", r"/converse", r"/invoke")
    return any(re.search(name, path) and re.search(name, way) for name in names)


def _is_whole(way: str, path: str, body: bytes) -> bool:
    if way in ("anthropic", "openai_chat", "openai_responses"):
        return not json.loads(body).get("stream")
    return path.endswith((":generateContent", "/converse", "/invoke"))


def _whole(way: str, said: Said, packed: bool) -> web.Response:
    told = json.dumps(conversations.answer(format_of(way), said.text, (1_000, 20))).encode()
    if not packed:
        return web.Response(body=told, content_type=streams.JSON)
    return web.Response(body=gzip.compress(told), headers={"Content-Type": streams.JSON, "Content-Encoding": "gzip"})


def _error(format: str, message: str) -> dict[str, Any]:
    if format == "anthropic":
        return {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
    if format == "gemini":
        return {"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}
    if format == "converse":
        return {"message": message}
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}}
