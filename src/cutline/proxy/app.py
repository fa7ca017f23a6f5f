"""The loopback gateway: carries requests to the provider and answers back, as `plan` decides.

Law: bytes pass as they come. A request's body is read whole, an answer's never; an aborted client aborts the
provider; whatever fails in here, the original goes. Nothing of a header is kept, logged or shown.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import socket
import ssl
import sys
import threading
import time
import urllib.request
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import aiohttp
from aiohttp import payload, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_exceptions import HttpProcessingError
from multidict import CIMultiDict
from yarl import URL

from ..cutter import Cutter, Profile, Verdict
from ..errors import InputError
from . import plan, routes, tunnel
from .plan import Forward, Refusal
from .routes import Route
from .signing import Signer, is_signed
from .tap import unpack_what_is_there

HOOKS = "/cutline/hook/"
"""Where the client's hooks are answered, behind the token."""
_REFUSED = (400, 422)  # how providers and servers say that they don't take a body
_KEPT = 32 * 1024 * 1024  # bytes of an answer that are kept for the record
_ERROR = 1024 * 1024  # bytes of a refusal that are read
_TIMEOUT = aiohttp.ClientTimeout(total=None, connect=None, sock_connect=30, sock_read=None)
_SKIPPED = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")  # aiohttp must not add its own
_TURN_S = 0.0005  # how long a thread may keep the interpreter while the one that carries waits; 5 ms by default
_LINE = 65_536  # bytes of a request line or a header
_BUFFER = 1024 * 1024  # bytes that are read ahead
_UNSIGNED = (
    "Amazon Bedrock's requests are signed by the client, with credentials that are not found here: they pass uncut;"
    " AWS keys from the environment or a profile, and pip install 'cutline[bedrock]', let them be signed anew"
)
_SILENT = logging.getLogger("cutline.proxy.http")
_SILENT.disabled = True  # aiohttp logs what it can't read, and that may be a key


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
        upstream: base URL of the provider; the paths of requests are put behind it. None where the client names it
            with each request that carries a history, scheme and host before the path (`plan.elsewhere`).
        token: what every path has to begin with.
        passed: told of every request that carried a history, from the proxy's thread; must return at once.
        verdicts: by session and seam, what an earlier refusal led to; later ones are put in.
        hook: answers the client's hooks, by name and payload; called in a thread of its own.
        said: told, from the proxy's thread, why something that carries a history passes without being cut.
        port: 0 for a free one.
        profile: "strict" where the server is known to refuse neighbours of one role.
        signer: signs what goes upstream, where the provider wants each request signed. Where the client names the
            provider it has signed for that by itself: only what is cut is signed anew, and with its credentials alone.
        sockets: web sockets pass untouched; False refuses them (426), for a client that then asks over HTTP.
        named: the session of requests that name none, where the client's hooks told it; "" otherwise.

    Raises:
        InputError: the upstream is no http(s) URL, or the port is taken.
    """

    def __init__(
        self,
        upstream: str | None,
        token: str,
        *,
        passed: Callable[[Passed], None] = lambda passed: None,
        verdicts: dict[tuple[str, str], Verdict] | None = None,
        hook: Callable[[str, dict[str, Any]], dict[str, Any]] = lambda name, payload: {},
        said: Callable[[str], None] = lambda line: None,
        port: int = 0,
        profile: Profile = None,
        signer: Signer | None = None,
        sockets: bool = True,
        named: Callable[[], str] = str,
    ) -> None:
        self.upstream = "" if upstream is None else str(_base(upstream))
        self._ways: dict[str, URL | None] = {}
        if self.upstream:
            self._by_way_of(URL(self.upstream))  # a proxy that can't be used is told now
        self._token = token
        self._passed = passed
        self._verdicts = verdicts if verdicts is not None else {}
        self._hook = hook
        self._said = said
        self._port = port
        self._signer = signer
        self._looked = False
        self._sockets = sockets
        self._named = named
        self._cutter = Cutter(profile)
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="cutline-cut")
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="cutline-proxy", daemon=True)
        self._ready: Future[int] = Future()
        self._stopped = asyncio.Event()
        self._session: aiohttp.ClientSession

    def start(self) -> str:
        """Start, and return the address that clients are given: loopback, port and token."""
        sys.setswitchinterval(min(_TURN_S, sys.getswitchinterval()))
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
        except BaseException as error:
            if not self._ready.done():
                self._ready.set_exception(error)
            else:
                raise
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        server = _Server(
            self._handle,
            handler_cancellation=True,
            access_log=None,
            logger=_SILENT,
            auto_decompress=False,
            max_line_size=_LINE,
            max_field_size=_LINE,
            read_bufsize=_BUFFER,
        )
        runner = web.ServerRunner(server, shutdown_timeout=0.2)
        connector = aiohttp.TCPConnector(limit=0, ssl=_trust())
        async with aiohttp.ClientSession(
            connector=connector,
            timeout=_TIMEOUT,
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=_SKIPPED,
            max_line_size=_LINE,
            max_field_size=_LINE,
            read_bufsize=_BUFFER,
        ) as self._session:
            await runner.setup()
            try:
                await web.TCPSite(runner, "127.0.0.1", self._port).start()
                self._ready.set_result(runner.addresses[0][1])
                await self._stopped.wait()
            finally:
                await runner.cleanup()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in request.raw_headers]
        target = plan.admit(request.raw_path, headers, self._token)
        if isinstance(target, Refusal):
            return _refuse(target, routes.shape(request.raw_path))
        if request.headers.get("Expect", "").lower() == "100-continue":
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            request.writer.output_size = 0  # nothing of the answer was sent
        if target.startswith(HOOKS):
            return await self._answer_hook(request, target[len(HOOKS) :])
        route = routes.route(request.method, target)
        base = self.upstream or (plan.elsewhere(target) if route is not None and not plan.is_tunnel(headers) else "")
        if not base:
            return _refuse(plan.nowhere(), routes.shape(target))
        host = _origin(base)
        try:
            if plan.is_tunnel(headers):
                return await self._tunnel(request, target, headers)
            if route is None:
                return await self._pass(request, target, headers)
            return await self._carry(request, target, headers, route)
        except aiohttp.ClientError as error:
            said = f"{host} did not answer: {_reason(error)}"
        except TimeoutError:
            said = f"{host} did not answer: no connection in time"
        except InputError as error:
            said = str(error)
        return _refuse(Refusal(502, "api_error", said), routes.shape(target))

    async def _answer_hook(self, request: web.BaseRequest, name: str) -> web.StreamResponse:
        """One of the client's own hooks; whatever goes wrong, the client goes on as if there were none."""
        if request.method != "POST":
            return _refuse(Refusal(404, "not_found_error", "a hook is posted"))
        try:
            asked = json.loads(await _read(request) or b"")
            told = await asyncio.to_thread(self._hook, name.partition("?")[0], asked if isinstance(asked, dict) else {})
        except Exception:
            told = {}
        return web.json_response(told)

    async def _pass(self, request: web.BaseRequest, target: str, headers: list[tuple[str, str]]) -> web.StreamResponse:
        """Anything that carries no history goes through untouched, its body as a stream."""
        spared = routes.spared(request.method, target)
        if spared:
            self._said(spared)
        length = request.headers.get("Content-Length")
        sent = plan.request_headers(headers)
        data: AsyncIterator[bytes] | _Body | None = None
        if request.can_read_body and self._signer is not None:
            whole = await _read(request)  # what is signed has to be known whole
            if whole is None:
                return _refuse(plan.too_large(), routes.shape(target))
            data = _Body(whole)
        elif request.can_read_body:
            data = request.content.iter_any()
            if length is not None:
                sent.append(("Content-Length", length))
        async with await self._ask(request.method, target, sent, data) as answer:
            return await self._answer(request, answer, [])

    async def _tunnel(
        self, request: web.BaseRequest, target: str, headers: list[tuple[str, str]]
    ) -> web.StreamResponse:
        """A web socket: its bytes go through in both directions as they are."""
        if not self._sockets:
            said = "no web sockets here: what goes over one can't be cut; ask over HTTP"
            return _refuse(Refusal(426, "invalid_request_error", said), routes.shape(target))
        self._said(f"a web socket ({target.partition('?')[0]}) passes untouched: its history is not cut")
        sent = plan.tunnel_headers(headers)
        async with await self._ask(request.method, target, sent, None) as answer:
            if answer.status != 101:
                return await self._answer(request, answer, [])
            raw = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in answer.raw_headers]
            return await tunnel.through(request, answer, raw)

    async def _carry(
        self, request: web.BaseRequest, target: str, headers: list[tuple[str, str]], route: Route
    ) -> web.StreamResponse:
        """A request with a history: cut, sent, and sent otherwise where the provider refuses the cut."""
        at = time.time()
        body = await _read(request)
        if body is None:
            return _refuse(plan.too_large(), routes.shape(target))
        low = plan.by_name(headers)
        if session := self._named():
            low.setdefault("x-session-id", session)
        decided = await self._decide(route, low, body)
        if isinstance(decided, Refusal):
            return _refuse(decided, routes.shape(target))
        if decided.changed and not await self._may_sign(headers):
            self._said(_UNSIGNED)
            decided = replace(plan.instead(decided, body), reason=_UNSIGNED)
        if decided.kind == "other":
            self._said(decided.reason)
        first = sent = decided
        refused, verdict, status = "", None, 0
        tries: list[tuple[Verdict, Forward]] | None = None
        kind = "", ""
        kept: list[bytes] = []
        reached = True
        try:
            while True:
                outgoing = plan.request_headers(headers)
                signs = bool(self.upstream) or sent.changed
                async with await self._ask(request.method, target, outgoing, _Body(sent.raw), signs) as answer:
                    kind = answer.headers.get("Content-Type", ""), answer.headers.get("Content-Encoding", "")
                    if answer.status in _REFUSED and first.changed and tries != []:
                        if tries is None:
                            refused = unpack_what_is_there(await _some(answer), kind[1]).decode("utf-8", "replace")
                            tries = await self._tries(first, route, low, body)
                        verdict, sent = tries.pop(0)
                        continue
                    status = answer.status
                    if status < 400 and verdict is not None and route.kind != "count":
                        self._verdicts[first.session, first.seam] = verdict
                    return await self._answer(request, answer, kept)
        except aiohttp.ClientConnectorError:
            reached = False
            raise
        finally:
            # Also where the client went away or the provider broke off: what was sent was sent.
            if reached or refused:
                won = verdict if 0 < status < 400 else None
                self._passed(Passed(sent, at, status, b"".join(kept), *kind, refused, won, first.seam))

    async def _tries(
        self, first: Forward, route: Route, headers: dict[str, str], body: bytes
    ) -> list[tuple[Verdict, Forward]]:
        try:
            return await self._loop.run_in_executor(
                self._worker, plan.after_refusal, first, route, headers, body, self._cutter.profile
            )
        except Exception:  # as in _decide
            return [("original", plan.instead(first, body))]

    async def _decide(self, route: Route, headers: dict[str, str], body: bytes) -> Forward | Refusal:
        def known(session: str, seam: str) -> Verdict | None:
            return self._verdicts.get((session, seam))

        try:
            if "content-encoding" not in headers and self._cutter.is_quick(body):
                return plan.forward(route, headers, body, self._cutter, known)
            return await self._loop.run_in_executor(
                self._worker, plan.forward, route, headers, body, self._cutter, known
            )
        except Exception as error:  # a fault of ours must not stop the session: the original goes
            return plan.unharmed(route, headers, body, f"{type(error).__name__}: {error}")

    async def _may_sign(self, headers: list[tuple[str, str]]) -> bool:
        """Whether a cut body may go in place of what the client signed: signed anew, with the same credentials."""
        if self.upstream or not is_signed(headers):
            return True
        if self._signer is None and not self._looked:
            self._looked = True
            with contextlib.suppress(InputError):
                self._signer = await asyncio.to_thread(Signer)
        return self._signer is not None and await asyncio.to_thread(self._signer.signed, headers)

    async def _ask(
        self,
        method: str,
        target: str,
        headers: list[tuple[str, str]],
        data: _Body | AsyncIterator[bytes] | None,
        signs: bool = True,
    ) -> contextlib.AbstractAsyncContextManager[aiohttp.ClientResponse]:
        url = URL(self.upstream + target if self.upstream else plan.elsewhere(target), encoded=True)
        if signs and self._signer is not None:
            body = data.value if isinstance(data, _Body) else b""
            headers = await asyncio.to_thread(self._signer.sign, method, str(url), headers, body)
        return self._session.request(
            method, url, headers=CIMultiDict(headers), data=data, allow_redirects=False, proxy=self._by_way_of(url)
        )

    def _by_way_of(self, url: URL) -> URL | None:
        origin = str(url.origin())
        if origin not in self._ways:
            self._ways[origin] = _environments_proxy(url)
        return self._ways[origin]

    async def _answer(
        self, request: web.BaseRequest, answer: aiohttp.ClientResponse, kept: list[bytes]
    ) -> web.StreamResponse:
        """Carry an answer back as it comes; its bytes, up to a limit, are put into `kept` for the record."""
        raw = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in answer.raw_headers]
        response = _Answer(status=answer.status, reason=answer.reason, headers=CIMultiDict(plan.response_headers(raw)))
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
            _break_off(request)
            return response
        await response.write_eof()
        return response


class _Server(web.Server):
    """Requests without a router: any path and any method comes to the one handler."""

    def __call__(self) -> web.RequestHandler:
        return _Connection(self, loop=self._loop, **self._kwargs)


class _Connection(web.RequestHandler):
    """A connection whose faults are told in the provider's shape, and without the bytes that caused them."""

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """The answer to what can't be read, or to a fault of ours."""
        if request.writer.output_size > 0:
            _break_off(request)
            raise ConnectionError("an answer broke off")
        if status == 400 or isinstance(exc, (HttpProcessingError, web.RequestPayloadError)):
            answer = _refuse(Refusal(400, "invalid_request_error", "the request is no HTTP that could be read"))
        else:
            answer = _refuse(Refusal(500, "api_error", f"a fault of the proxy's own: {type(exc).__name__}"))
        answer.force_close()
        return answer


class _Answer(web.StreamResponse):
    """An answer with the provider's headers and none of aiohttp's but those of the connection and the date."""

    async def _prepare_headers(self) -> None:
        added = [name for name in ("Server", "Content-Type") if name not in self.headers]
        await super()._prepare_headers()
        for name in added:
            self.headers.pop(name, None)


class _Body(payload.Payload):
    """A body that is written as it is, in one go: it is in memory already."""

    _value: bytes

    def __init__(self, value: bytes) -> None:
        super().__init__(value)
        self._size = len(value)

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """The body as text; aiohttp wants it."""
        return self._value.decode(encoding, errors)

    @property
    def value(self) -> bytes:
        """Its bytes."""
        return self._value

    async def write(self, writer: AbstractStreamWriter) -> None:
        """Write it."""
        await writer.write(self._value)


async def _read(request: web.BaseRequest) -> bytes | None:
    """A request's whole body; None where it is over the cap."""
    parts, size = [], request.content_length or 0
    if size > plan.BODY_CAP:
        return None
    size = 0
    async for part in request.content.iter_any():
        size += len(part)
        if size > plan.BODY_CAP:
            return None
        parts.append(part)
    return b"".join(parts)


async def _some(answer: aiohttp.ClientResponse) -> bytes:
    """The body of an error, or as much of it as matters."""
    said = b""
    async for part in answer.content.iter_any():
        said += part
        if len(said) > _ERROR:
            break
    return said


def _break_off(request: web.BaseRequest) -> None:
    """End an answer in the middle so that it is seen to have broken off."""
    if request.transport is not None:
        request.transport.abort()


def _refuse(refusal: Refusal, format: str = "anthropic") -> web.Response:
    text = json.dumps(refusal.body(format), ensure_ascii=False)
    headers = {"x-amzn-ErrorType": "ValidationException"} if format == "converse" else {}
    return web.Response(status=refusal.status, text=text, content_type="application/json", headers=headers)


def _reason(error: aiohttp.ClientError) -> str:
    """Why there was no answer, in a few words; aiohttp's own text may hold headers and is not shown."""
    cause = getattr(error, "certificate_error", None) or getattr(error, "os_error", None) or error.__cause__
    if isinstance(cause, (ssl.SSLError, socket.gaierror)) and cause.strerror:
        return cause.strerror.lower()
    if isinstance(cause, OSError) and cause.errno:
        return os.strerror(cause.errno).lower()  # the error's own text may be a list of addresses
    return type(error).__name__


def _trust() -> ssl.SSLContext:
    """The machine's certificates, and those that the client itself would trust."""
    context = ssl.create_default_context()
    extra = os.environ.get("NODE_EXTRA_CA_CERTS")
    if extra:
        with contextlib.suppress(OSError, ssl.SSLError):
            context.load_verify_locations(extra)
    return context


def _base(upstream: str) -> URL:
    """A provider's base URL, looked at."""
    try:
        base = URL(upstream.rstrip("/"), encoded=True)
        base.port  # noqa: B018  (a wrong one is told only when it is asked for)
    except ValueError:
        raise InputError("the provider's base URL can't be read; give one such as https://api.anthropic.com") from None
    if base.user is not None or base.password is not None:
        raise InputError("the provider's base URL holds a name or password; give it without one")
    if base.scheme not in ("http", "https") or not base.host or base.query_string or base.fragment:
        raise InputError(f"{upstream}: is no base URL of a provider; give one such as https://api.anthropic.com")
    return base


def _origin(url: str) -> str:
    """What errors say of a provider: a gateway's path may hold a key."""
    return str(URL(url, encoded=True).origin())


def _environments_proxy(base: URL) -> URL | None:
    """The proxy that the environment names for a provider. Not aiohttp's own look: it adds passwords of a `.netrc`."""
    found = urllib.request.getproxies().get(base.scheme)
    if not found or urllib.request.proxy_bypass(f"{base.host}:{base.port}"):
        return None
    proxy = URL(found if "://" in found else f"http://{found}")
    if proxy.scheme not in ("http", "https") or not proxy.host:
        raise InputError(f"{base.scheme.upper()}_PROXY: only an http proxy can be used; unset it or name another")
    return proxy
