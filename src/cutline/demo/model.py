"""A scripted model on loopback: a real HTTP server that answers whoever asks, in its own wire format, from a script.

Law: it opens one port of 127.0.0.1, keeps every request as it came, asks no network, and judges nothing by itself. An
answer of the script is for the next main request: one with a history that offers tools. Errors and answers that break
off are entries of their own, so the repeated request is given the entry behind them.
"""

from __future__ import annotations

import asyncio
import json
import threading
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from types import TracebackType
from typing import Any, Literal, Self

from aiohttp import web

from .. import events
from ..blocks import ToolCall
from ..encodings import unpack
from ..measure import request_of
from ..proxy import routes
from ..wire import anthropic as wire
from . import formats
from .formats import Body, Call, Spoken, Stop, Tokens

__all__ = ["Answer", "Asked", "Call", "Failure", "Model", "Script", "Tokens"]

_LARGEST = 1 << 28  # bytes of a request
_BYTES_A_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model says.

    Attributes:
        text: its words; "" for none.
        calls: the tools that it calls, in parallel.
        thinking: its thinking; "" for none.
        stop: why it stopped: "" for being done, "length" or "refusal".
        tokens: what the answer says that it cost; None for what its bytes and a plain prompt cache come to.
        delay_s: seconds before its first byte.
        pause_s: seconds before each event of the stream.
        breaks_after: the stream breaks off behind so many events; None for never.
        breaks_by: how: the connection is dropped, or an error event comes (529, overloaded).
    """

    text: str = ""
    calls: Sequence[Call] = ()
    thinking: str = ""
    stop: Stop = ""
    tokens: Tokens | None = None
    delay_s: float = 0.0
    pause_s: float = 0.0
    breaks_after: int | None = None
    breaks_by: Literal["drop", "error"] = "drop"


@dataclass(frozen=True, slots=True)
class Failure:
    """An error in place of an answer.

    Attributes:
        status: 400, 401, 404, 413, 429, 500, 529 …; formats other than Anthropic's say 503 for 529.
        message: the provider's; "" for what it usually says.
        retry_after_s: seconds that it asks the client to wait; None for no word of it.
        delay_s: seconds before it comes.
    """

    status: int
    message: str = ""
    retry_after_s: float | None = None
    delay_s: float = 0.0


@dataclass(frozen=True)
class Asked:
    """A request as it came.

    Attributes:
        number: counts the main requests from 0; -1 for any other.
        format: one of `formats.FORMATS`; "" where it carries no history.
        target: path and query.
        headers: by lower-case name.
        raw: the body, without content encoding.
    """

    number: int
    format: str
    target: str
    headers: dict[str, str]
    raw: bytes

    @cached_property
    def body(self) -> Body:
        """The body, decoded; empty where it is no JSON object."""
        try:
            found = json.loads(self.raw or b"{}")
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    @cached_property
    def history(self) -> wire.Request:
        """The body's history in one shape for all formats. Raises Unreadable."""
        return request_of(self.raw)[0]

    @cached_property
    def calls(self) -> tuple[ToolCall, ...]:
        """Every call of the history with its result, in order."""
        return tuple(found.call for found in events.calls(self.history))

    @property
    def results(self) -> tuple[ToolCall, ...]:
        """The calls of the latest answer that made any, with what they really gave back."""
        calls = self.calls
        return tuple(call for call in calls if call.batch == calls[-1].batch)


Said = Answer | Failure
Script = Sequence[Said | Callable[[Asked], Said]]
"""Answers in turn; a callable makes its answer of the request, so it can depend on results that tools really gave."""


class Model:
    """The model: a context manager; `url` is its root while it runs, in a thread of its own.

    Give a client `url` as its base address: `url` for Anthropic and Google, `url + "/v1"` for OpenAI.

    Args:
        script: the answers, in turn. One that is asked for more says so, with status 400.
        aside: the answer to requests with a history that offer no tools.
        refuses: says of a format and a body why it is refused, with status 400; "" for one that is taken. What is
            refused takes nothing off the script.
        packs: answers are sent in gzip where the client takes that.

    Attributes:
        asked: every request, in the order of arrival.
        refusals: what `refuses` said.
        gone: how many clients went away in the middle of an answer.
        faults: what callables of the script raised; leaving the context raises the first.
    """

    def __init__(
        self,
        script: Script,
        *,
        aside: Said | Callable[[Asked], Said] = Answer("ok"),  # a frozen value
        refuses: Callable[[str, bytes], str] | None = None,
        packs: bool = False,
    ) -> None:
        self.asked: list[Asked] = []
        self.refusals: list[str] = []
        self.gone = 0
        self.faults: list[Exception] = []
        self.url = ""
        self._script, self._aside, self._refuses, self._packs = script, aside, refuses, packs
        self._turn = 0
        self._given = 0
        self._cache: list[str] = []
        self._ready = threading.Event()
        self._failed: OSError | None = None
        self._thread = threading.Thread(target=self._run, name="scripted model", daemon=True)

    @property
    def unused(self) -> int:
        """How many answers of the script were not asked for."""
        return len(self._script) - self._turn

    @property
    def main(self) -> list[Asked]:
        """The main requests."""
        return [asked for asked in self.asked if asked.number >= 0]

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        if self._failed is not None:
            raise self._failed
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()
        if kind is None and self.faults:
            raise self.faults[0]

    # ------------------------------------------------------------------------------------------- deciding

    def _ask(self, target: str, headers: dict[str, str], raw: bytes) -> Asked:
        route = routes.route("POST", target)
        format = "" if route is None else "anthropic" if route.format == routes.BEDROCK else route.format
        asked = Asked(-1, format if format in formats.FORMATS else "", target, headers, raw)
        if asked.format and route is not None and route.kind == "turn" and asked.body.get("tools"):
            asked = Asked(len(self.main), asked.format, target, headers, raw)
        self.asked.append(asked)
        return asked

    def _say(self, asked: Asked) -> Said:
        """What a request is answered; takes it off the script."""
        fault = self._refuses(asked.format, asked.raw) if self._refuses is not None else ""
        if fault:
            self.refusals.append(fault)
            return Failure(400, fault)
        if asked.number < 0:
            said = self._aside
        elif self._turn < len(self._script):
            said, self._turn = self._script[self._turn], self._turn + 1
        else:
            return Failure(400, f"the script is at its end: it has {len(self._script)} answers, and one more was asked")
        if not callable(said):
            return said
        try:
            return said(asked)
        except Exception as error:  # of whoever wrote the script, who is told on leaving
            self.faults.append(error)
            return Failure(400, f"the script failed: {error}")

    def _speak(self, asked: Asked, answer: Answer) -> Spoken:
        self._given += 1
        digest = sha256(asked.raw)
        calls = []
        for index, call in enumerate(answer.calls):
            digest.update(b"%d" % index)
            made = call.id or formats.call_id(asked.format, digest.hexdigest()[:16])
            calls.append(Call(call.name, call.arguments, made))
        said = (answer.text, answer.thinking, *(json.dumps(call.arguments) for call in calls))
        tokens = answer.tokens or self._weigh(asked, sum(map(len, said)))
        route = routes.route("POST", asked.target)
        model = str(asked.body.get("model") or (route.model if route else "") or "scripted")
        return Spoken(self._given, model, answer.thinking, answer.text, calls, answer.stop, tokens)

    def _weigh(self, asked: Asked, output: int) -> Tokens:
        """What a request's bytes come to behind a plain prompt cache: what it has in common with the one before."""
        body = asked.body
        head = [body.get(key) for key in ("tools", "system", "instructions", "systemInstruction")]
        history = body.get("messages") or body.get("input") or body.get("contents") or []
        now = [json.dumps(_unmarked(one)) for one in [*head, *(history if isinstance(history, list) else [history])]]
        common = next((n for n, (one, two) in enumerate(zip(now, self._cache, strict=False)) if one != two), None)
        common = min(len(now), len(self._cache)) if common is None else common
        self._cache = now
        read, new = sum(map(len, now[:common])), sum(map(len, now[common:]))
        wrote = new // _BYTES_A_TOKEN if asked.format == "anthropic" else 0
        read //= _BYTES_A_TOKEN
        return Tokens(read + new // _BYTES_A_TOKEN, read, wrote, max(1, output // _BYTES_A_TOKEN))

    # -------------------------------------------------------------------------------------------- serving

    def _run(self) -> None:
        self._loop = asyncio.new_event_loop()
        try:
            self._loop.run_until_complete(self._serve())
        except OSError as error:
            self._failed = error
        finally:
            self._ready.set()
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
        held = await request.content.read()
        headers = {name.lower(): value for name, value in request.headers.items()}
        plain = unpack(held, headers.get("content-encoding", ""), _LARGEST)
        if request.method != "POST" or plain is None:
            return web.json_response({}, status=404)
        asked = self._ask(request.raw_path, headers, plain)
        if not asked.format:
            return web.json_response({}, status=404)
        route = routes.route("POST", asked.target)
        if route is not None and route.kind == "count":
            counted = len(plain) // _BYTES_A_TOKEN
            return web.json_response({"input_tokens": counted, "totalTokens": counted})
        said = self._say(asked)
        await asyncio.sleep(said.delay_s)
        if isinstance(said, Failure):
            status, told = formats.error(asked.format, said.status, said.message)
            later = {} if said.retry_after_s is None else {"Retry-After": f"{said.retry_after_s:g}"}
            return web.json_response(told, status=status, headers=later)
        try:
            return await self._tell(request, asked, said)
        except ConnectionError:
            self.gone += 1
            raise

    async def _tell(self, request: web.BaseRequest, asked: Asked, answer: Answer) -> web.StreamResponse:
        spoken, streams = self._speak(asked, answer), _streams(asked)
        packs = self._packs and "gzip" in asked.headers.get("accept-encoding", "")
        packer = zlib.compressobj(wbits=31) if packs else None
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream" if streams else "application/json"})
        if packer:
            response.headers["Content-Encoding"] = "gzip"
        usage = bool((asked.body.get("stream_options") or {}).get("include_usage"))
        whole = [json.dumps(formats.whole(asked.format, spoken)).encode()]
        await response.prepare(request)
        for number, event in enumerate(formats.events(asked.format, spoken, usage=usage) if streams else whole):
            await asyncio.sleep(answer.pause_s)
            if number == answer.breaks_after:
                if answer.breaks_by == "drop":
                    if request.transport is not None:
                        request.transport.abort()
                    return response
                event = formats.broken(asked.format, 529, "")
            await response.write(packer.compress(event) + packer.flush(zlib.Z_SYNC_FLUSH) if packer else event)
            if number == answer.breaks_after:
                break
        if packer:
            await response.write(packer.flush())
        await response.write_eof()
        return response


def _streams(asked: Asked) -> bool:
    return bool(asked.body.get("stream")) or ":streamGenerateContent" in asked.target


def _unmarked(value: Any) -> Any:
    """Without cache marks, which move from request to request."""
    if isinstance(value, dict):
        return {key: _unmarked(one) for key, one in value.items() if key != "cache_control"}
    return [_unmarked(one) for one in value] if isinstance(value, list) else value
