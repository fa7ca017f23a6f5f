"""The loopback gateway: carries requests to the provider and answers back, as `plan` decides.

Law: bytes pass as they come. A request's body is read whole, an answer's never; an aborted client aborts the
provider; whatever fails in here, the original goes. Nothing of a header is kept, logged or shown.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import ssl
import threading
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

import aiohttp
from aiohttp import web
from multidict import CIMultiDict
from yarl import URL

from ..errors import InputError
from . import plan
from .plan import Cutter, Forward, Refusal, Verdict

HOOKS = "/cutline/hook/"
"""Where the client's hooks are answered, behind the token."""
_KEPT = 32 * 1024 * 1024  # bytes of an answer that are kept for the record
_TIMEOUT = aiohttp.ClientTimeout(total=None, connect=None, sock_connect=30, sock_read=None)
_SKIPPED = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")  # aiohttp must not add its own


@dataclass(frozen=True, slots=True)
class Passed:
    """A request that carried a history, and its answer, after the last byte.

    Attributes:
        sent: what went upstream.
        at: when it came, seconds since the epoch.
        status: the answer's status; 0 where there was none.
        answer: the answer's bytes as they came, the first 32 MB of them.
        content_type, encoding: its headers.
        refused: what the provider said to a cut body that it refused; "" where it refused none.
        verdict: what succeeded after that; None where nothing was refused, or nothing succeeded.
        seam: the checkpoint at which the refused body was cut.
    """

    sent: Forward
    at: float
    status: int
    answer: bytes
    content_type: str
    encoding: str
    refused: str = ""
    verdict: Verdict | None = None
    seam: str = ""


class Gateway:
    """A running proxy: a thread with its own event loop.

    Args:
        upstream: base URL of the provider; the paths of requests are put behind it.
        token: what every path has to begin with.
        passed: told of every request that carried a history, from the proxy's thread; must return at once.
        verdicts: by session and seam, what an earlier refusal led to; later ones are put in.
        hook: answers the client's hooks, by name and payload; called in a thread of its own.
        port: 0 for a free one.

    Raises:
        InputError: the upstream is no http(s) URL, or the port is taken.
    """

    def __init__(
        self,
        upstream: str,
        token: str,
        *,
        passed: Callable[[Passed], None] = lambda passed: None,
        verdicts: dict[tuple[str, str], Verdict] | None = None,
        hook: Callable[[str, dict[str, Any]], dict[str, Any]] = lambda name, payload: {},
        port: int = 0,
    ) -> None:
        base = URL(upstream.rstrip("/"), encoded=True)
        if base.scheme not in ("http", "https") or not base.host or base.query_string or base.fragment:
            raise InputError(f"{upstream}: is no base URL of a provider; give one such as https://api.anthropic.com")
        self.upstream = str(base)
        self._token = token
        self._passed = passed
        self._verdicts = verdicts if verdicts is not None else {}
        self._hook = hook
        self._port = port
        self._cutter = Cutter()
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="cutline-cut")
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="cutline-proxy", daemon=True)
        self._ready: Future[int] = Future()
        self._stopped = asyncio.Event()
        self._session: aiohttp.ClientSession

    def start(self) -> str:
        """Start, and return the address that clients are given: loopback, port and token."""
        self._thread.start()
        try:
            port = self._ready.result(timeout=30)
        except OSError as error:
            raise InputError(f"127.0.0.1:{self._port}: {(error.strerror or str(error)).lower()}") from None
        return f"http://127.0.0.1:{port}/{self._token}"

    def stop(self) -> None:
        """Stop: open answers end, the thread is joined."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopped.set)
            self._thread.join(10)
        self._worker.shutdown(wait=False)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        app = web.Application(client_max_size=plan.BODY_CAP)
        app.router.add_route("*", "/{rest:.*}", self._handle)
        runner = web.AppRunner(
            app, handler_cancellation=True, access_log=None, max_line_size=65_536, max_field_size=65_536
        )
        connector = aiohttp.TCPConnector(limit=0, ssl=_trust())
        async with aiohttp.ClientSession(
            connector=connector,
            timeout=_TIMEOUT,
            auto_decompress=False,
            trust_env=True,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=_SKIPPED,
            max_line_size=65_536,
            max_field_size=65_536,
            read_bufsize=262_144,
        ) as self._session:
            await runner.setup()
            try:
                site = web.TCPSite(runner, "127.0.0.1", self._port, shutdown_timeout=1)
                await site.start()
                self._ready.set_result(runner.addresses[0][1])
            except OSError as error:
                self._ready.set_exception(error)
                await runner.cleanup()
                return
            await self._stopped.wait()
            await runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in request.raw_headers]
        target = plan.admit(request._message.path, headers, self._token)
        if isinstance(target, Refusal):
            return _refuse(target)
        if target.startswith(HOOKS) and request.method == "POST":
            return await self._answer_hook(request, target[len(HOOKS) :])
        which = plan.conversation(request.method, target)
        try:
            if not which:
                return await self._pass(request, target, headers)
            return await self._carry(request, target, headers, which == "count")
        except aiohttp.ClientError as error:
            return _refuse(Refusal(502, "api_error", f"{self.upstream} did not answer: {_reason(error)}"))
        except TimeoutError:
            return _refuse(Refusal(502, "api_error", f"{self.upstream} did not answer: no connection in time"))

    async def _answer_hook(self, request: web.Request, name: str) -> web.StreamResponse:
        """One of the client's own hooks; whatever goes wrong, the client goes on as if there were none."""
        try:
            payload = await request.json()
            told = await asyncio.to_thread(self._hook, name, payload if isinstance(payload, dict) else {})
        except (ValueError, web.HTTPException):
            told = {}
        return web.json_response(told)

    async def _pass(self, request: web.Request, target: str, headers: list[tuple[str, str]]) -> web.StreamResponse:
        """Anything that carries no history goes through untouched, its body as a stream."""
        length = request.headers.get("Content-Length")
        sent = plan.request_headers(headers, packed=True)
        data: AsyncIterator[bytes] | None = None
        if request.can_read_body:
            data = request.content.iter_any()
            if length is not None:
                sent.append(("Content-Length", length))
        async with self._ask(request.method, target, sent, data) as answer:
            return await self._answer(request, answer, [])

    async def _carry(
        self, request: web.Request, target: str, headers: list[tuple[str, str]], count: bool
    ) -> web.StreamResponse:
        """A request with a history: cut, sent, and sent otherwise where the provider refuses the cut."""
        at = time.time()
        try:
            body = await request.read()
        except web.HTTPRequestEntityTooLarge:
            return _refuse(plan.too_large())
        low = {name.lower(): value for name, value in headers}
        decided = await self._decide("count" if count else "messages", low, body)
        if isinstance(decided, Refusal):
            return _refuse(decided)
        first = sent = decided
        refused, verdict = "", None
        tries: list[tuple[Verdict, Forward]] | None = None
        while True:
            outgoing = plan.request_headers(headers, sent.packed)
            async with self._ask(request.method, target, outgoing, sent.body) as answer:
                if answer.status == 400 and first.changed and tries != []:
                    said = await answer.content.read(1024 * 1024)
                    if tries is None:
                        refused = said.decode("utf-8", "replace")
                        tries = await self._loop.run_in_executor(self._worker, plan.after_refusal, first, low, body)
                    verdict, sent = tries.pop(0)
                    continue
                if refused and answer.status >= 400:
                    verdict = None
                elif verdict is not None and not count:
                    self._verdicts[first.session, first.seam] = verdict
                kept: list[bytes] = []
                try:
                    return await self._answer(request, answer, kept)
                finally:
                    # Also where the client went away: what was sent was sent.
                    kind = answer.headers.get("Content-Type", ""), answer.headers.get("Content-Encoding", "")
                    told = b"".join(kept)
                    self._passed(Passed(sent, at, answer.status, told, *kind, refused, verdict, first.seam))

    async def _decide(
        self, which: Literal["messages", "count"], headers: dict[str, str], body: bytes
    ) -> Forward | Refusal:
        def known(session: str, seam: str) -> Verdict | None:
            return self._verdicts.get((session, seam))

        try:
            return await self._loop.run_in_executor(
                self._worker, plan.forward, which, headers, body, self._cutter, known
            )
        except Exception as error:  # a fault of ours must not stop the session: the original goes
            return plan.unharmed(which, headers, body, f"{type(error).__name__}: {error}")

    @contextlib.asynccontextmanager
    async def _ask(
        self, method: str, target: str, headers: list[tuple[str, str]], data: bytes | AsyncIterator[bytes] | None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        url = URL(self.upstream + target, encoded=True)
        async with self._session.request(
            method, url, headers=CIMultiDict(headers), data=data, allow_redirects=False
        ) as answer:
            yield answer

    async def _answer(
        self, request: web.Request, answer: aiohttp.ClientResponse, kept: list[bytes]
    ) -> web.StreamResponse:
        """Carry an answer back as it comes; its bytes, up to a limit, are put into `kept` for the record."""
        raw = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in answer.raw_headers]
        response = web.StreamResponse(
            status=answer.status, reason=answer.reason, headers=CIMultiDict(plan.response_headers(raw))
        )
        await response.prepare(request)
        size = 0
        try:
            async for chunk in answer.content.iter_any():
                if size < _KEPT:
                    kept.append(chunk)
                    size += len(chunk)
                await response.write(chunk)
        except aiohttp.ClientError:
            # The provider broke off: the client has to see that too, not an answer that seems to have ended.
            if request.transport is not None:
                request.transport.abort()
            return response
        await response.write_eof()
        return response


def _refuse(refusal: Refusal) -> web.Response:
    return web.Response(
        status=refusal.status, text=json.dumps(refusal.body(), ensure_ascii=False), content_type="application/json"
    )


def _reason(error: aiohttp.ClientError) -> str:
    """Why there was no answer, in a few words; aiohttp's own text may hold headers and is not shown."""
    cause = getattr(error, "os_error", None) or error.__cause__
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror.lower()
    return type(error).__name__


def _trust() -> ssl.SSLContext:
    """The machine's certificates, and those that the client itself would trust."""
    context = ssl.create_default_context()
    extra = os.environ.get("NODE_EXTRA_CA_CERTS")
    if extra:
        with contextlib.suppress(OSError, ssl.SSLError):
            context.load_verify_locations(extra)
    return context
