"""An httpx transport that cuts, records and measures under any Python SDK.

Law: bytes pass as they come. Only a request's body is changed, by a cut that was proven; whatever fails in here, the
original goes, and that is said. An answer is never held back, never decoded, never changed. Nothing of a header is
kept. Neither httpx nor httpx2 is imported: a request says which of them it is of.
"""

from __future__ import annotations

import os
import sys
import time
import weakref
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from .. import record as records
from ..cutter import Profile, Verdict
from ..proxy.routes import Route
from . import deciding
from .answering import Agent
from .behind import Behind, Passed, log
from .deciding import Decider, Decision
from .lines import Lines, family
from .report import Report, Step

if TYPE_CHECKING:
    # To a type checker it is whatever a client takes: httpx's base class, or httpx2's, which are different ones.
    from typing import Any as _Transport
else:
    _Transport = object

__all__ = ["AsyncTransport", "Report", "Step", "Transport"]

_SETTLING_S = 10.0  # how long a report waits for what is still counted
_REFUSALS = (400, 422)  # statuses by which a body is refused
_REFUSAL = 64 * 1024  # bytes of a refusal that are told


class Transport(_Transport):  # type: ignore[misc]
    """Carries requests as another transport would, and cuts histories at their last checkpoint.

    For sync and async clients of httpx and httpx2, at once if need be; threads may share it.

    Args:
        inner: the transport that carries the requests; None for httpx's own, with the proxy that the environment
            names. What a client takes about connections (`verify`, `proxy`, `limits`, `http2` …) it only heeds for
            its own transport: make one with these, and give it here.
        record: keep whole histories with their answers, as `cutline run` does: True for the record that
            `CUTLINE_RECORD` names (empty for none), else your own; a path for another one; False for none.
        keep_tools: names of tools whose calls and results stay before a checkpoint, such as one that asks the human.
        profile: "strict" for servers that refuse neighbours of one role.
        session: its id in the record, for a program that goes on with a session in another process; "" for a new one.

    Raises:
        ValueError: an option that means nothing.
    """

    def __init__(
        self,
        inner: Any = None,
        *,
        record: bool | str | os.PathLike[str] = True,
        keep_tools: Iterable[str] = (),
        profile: Profile = None,
        session: str = "",
    ) -> None:
        self._inner = inner
        self._lines = Lines()
        self._decider = Decider(keep_tools, profile)
        self._behind = Behind(self._decider, _place(record), Path.cwd(), session)
        self._agent = Agent(self._behind)
        weakref.finalize(self, self._behind.end).atexit = False

    # ------------------------------------------------------------------------------------- for the program

    def report(self) -> Report:
        """What has passed so far. Waits, seconds at most, until the latest answers are counted."""
        self._behind.flush(_SETTLING_S)
        return self._behind.report()

    def call(self, name: str, arguments: Mapping[str, Any], call_id: str = "") -> str:
        """Answer a call of micro_handoff, recall or say, in text.

        It may ask git and read the record: in an event loop, call it in a thread.

        Args:
            name: the tool's.
            arguments: the call's, decoded.
            call_id: the provider's id of the call, where it is known.
        """
        return self._agent.call(name, arguments, call_id)

    def answer(self, call: Any) -> dict[str, Any] | None:
        """Answer a call that the SDK gives, in the shape that goes into the next request; None for another's tool.

        Args:
            call: Anthropic's `tool_use` block, a Chat `tool_call`, a Responses `function_call` item, Gemini's
                function call or part, Converse's `toolUse` block; an object or a dictionary.
        """
        return self._agent.answer(call)

    # ---------------------------------------------------------------------------------- for httpx's clients

    def handle_request(self, request: Any) -> Any:
        """Send a request of a sync client (see `httpx.BaseTransport`)."""
        line = self._lines.sync(request) if self._inner is None else self._inner
        job = self._begin(request)
        if job is None:
            return line.handle_request(request)
        with job:
            response = line.handle_request(job.request)
            while job.is_refused(response):
                try:
                    response.read()
                finally:
                    response.close()
                response = line.handle_request(job.otherwise(response))
            return job.tapped(response, 0)

    async def handle_async_request(self, request: Any) -> Any:
        """Send a request of an async client (see `httpx.AsyncBaseTransport`)."""
        line = self._lines.asynchronous(request) if self._inner is None else self._inner
        job = await self._begin_async(request)
        if job is None:
            return await line.handle_async_request(request)
        with job:
            response = await line.handle_async_request(job.request)
            while job.is_refused(response):
                try:
                    await response.aread()
                finally:
                    await response.aclose()
                response = await line.handle_async_request(await _elsewhere(job.otherwise, response))
            return job.tapped(response, 1)

    def close(self) -> None:
        """Close the connections of sync clients, and store what waits for the record."""
        (self._lines if self._inner is None else self._inner).close()
        self._behind.flush(_SETTLING_S)

    async def aclose(self) -> None:
        """Close the connections of this event loop's clients, and store what waits for the record."""
        await (self._lines if self._inner is None else self._inner).aclose()
        await _elsewhere(self._behind.flush, _SETTLING_S)

    def __enter__(self) -> Self:
        if self._inner is not None:
            self._inner.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        if self._inner is not None:
            self._inner.__exit__(kind, error, trace)
        else:
            self._lines.close()
        self._behind.flush(_SETTLING_S)

    async def __aenter__(self) -> Self:
        if self._inner is not None:
            await self._inner.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        if self._inner is not None:
            await self._inner.__aexit__(kind, error, trace)
        else:
            await self._lines.aclose()
        await _elsewhere(self._behind.flush, _SETTLING_S)

    # -------------------------------------------------------------------------------------------- deciding

    def _begin(self, request: Any) -> _Job | None:
        """The job that a request is; None where it passes untouched. Never raises."""
        at = time.time()
        try:
            body = _body(request)
            route = deciding.route_of(request.method, request.url.path, body) if body else None
            if route is None:
                self._behind.other()
                return None
            decided = self._decide(request, body, route)
            return _Job(self._decider, self._behind, request, route, decided, at)
        except Exception as error:  # a fault of ours must not stop the program: the request goes as it is
            self._behind.fault(f"a request passed unread: {type(error).__name__}: {error}")
            return None

    def _decide(self, request: Any, body: bytes, route: Route) -> Decision:
        if route.kind == "compaction":
            return Decision(body, body, reason="the server summarises the conversation: it reads all of it")
        reason = deciding.bound(request.headers.multi_items(), request.url.query.decode("ascii", "replace"))
        if reason:
            return Decision(body, body, reason=reason)
        return self._decider.decide(body, request.headers.get("content-encoding", ""))

    async def _begin_async(self, request: Any) -> _Job | None:
        """The same, in a thread where it takes long."""
        if "content-encoding" not in request.headers and self._decider.is_quick(_body(request)):
            return self._begin(request)
        made: _Job | None = await _elsewhere(self._begin, request)
        return made


AsyncTransport = Transport
"""The same by the name that httpx's users look for: one transport serves sync and async clients."""


class _Job:
    """A request with a history on its way, and its answer on the way back.

    A context: what is raised inside ends it.
    """

    def __init__(
        self, decider: Decider, behind: Behind, request: Any, route: Route, first: Decision, at: float
    ) -> None:
        self._decider, self._behind, self._original, self._first = decider, behind, request, first
        self._encoding = request.headers.get("content-encoding", "")
        self._passed = Passed(route, first, not self._encoding, at)
        self._tries: list[tuple[Verdict, Decision]] | None = None
        self.request = request if not first.changed else _with_body(request, first.body)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.end()

    def is_refused(self, response: Any) -> bool:
        """Whether the provider may have refused the cut, and there is something else to send."""
        return response.status_code in _REFUSALS and self._first.changed and self._tries != []

    def otherwise(self, response: Any) -> Any:
        """What is sent after a refusal that was read."""
        passed = self._passed
        if self._tries is None:
            passed.refused = response.content[:_REFUSAL].decode("utf-8", "replace")
            passed.seam = self._first.seam
            self._tries = list(self._decider.tries(self._first, self._original.content, self._encoding))
        passed.verdict, passed.sent = self._tries.pop(0)
        if not passed.sent.changed:
            return self._original
        return _with_body(self._original, passed.sent.body, passed.verdict)

    def tapped(self, response: Any, asynchronous: int) -> Any:
        """The response, from whose stream a copy is taken as it is read."""
        passed = self._passed
        passed.status = response.status_code
        if passed.refused and passed.route.kind != "count" and passed.verdict is not None and passed.status < 400:
            self._decider.learn(passed.seam, passed.verdict)
        elif passed.status >= 400:
            passed.verdict = None
        passed.content_type = response.headers.get("content-type", "")
        try:
            content = response.content
        except Exception:  # not read yet, as it is with anything that came over a wire
            passed.decode = _decoder(self._original, response.headers.get("content-encoding", ""))
            response.stream = _taps(family(response).__name__)[asynchronous](response.stream, self)
        else:
            passed.hear(content)
            self.end()
        return response

    def hear(self, chunk: bytes) -> None:
        """Bytes of the answer."""
        self._passed.hear(chunk)

    def end(self) -> None:
        """The answer ended, broke off, was closed, or never came."""
        if self._passed.once():
            self._behind.passed(self._passed)


@cache
def _taps(name: str) -> tuple[type, type]:
    """The streams, sync and async, that clients of one httpx take: they ask for classes of its own."""
    httpx: Any = sys.modules[name]

    class Tap(httpx.SyncByteStream):  # type: ignore[misc]
        def __init__(self, stream: Any, job: _Job) -> None:
            self._stream, self._job = stream, job

        def __iter__(self) -> Iterator[bytes]:
            for chunk in self._stream:
                self._job.hear(chunk)
                yield chunk
            self._job.end()

        def close(self) -> None:
            try:
                self._stream.close()
            finally:
                self._job.end()

    class AsyncTap(httpx.AsyncByteStream):  # type: ignore[misc]
        def __init__(self, stream: Any, job: _Job) -> None:
            self._stream, self._job = stream, job

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for chunk in self._stream:
                self._job.hear(chunk)
                yield chunk
            self._job.end()

        async def aclose(self) -> None:
            try:
                await self._stream.aclose()
            finally:
                self._job.end()

    return Tap, AsyncTap


def _body(request: Any) -> bytes:
    """A request's body where it is in memory; b"" for none, for a stream and for anything that is no JSON object."""
    try:
        body: bytes = request.content
    except Exception:  # an upload that is read while it is sent (RequestNotRead)
        return b""
    packed = "content-encoding" in request.headers
    return body if packed or body[:64].lstrip()[:1] == b"{" else b""


def _with_body(request: Any, body: bytes, again: str = "") -> Any:
    """A request as it came, with another body: its length is right, everything else is as it was.

    Args:
        request: as it came.
        body: what it carries.
        again: names a second attempt: that is another request, and no repetition to a server that knows the first.
    """
    httpx = family(request)
    headers = []
    for name, value in request.headers.raw:
        low = name.lower()
        if low == b"content-length":
            value = b"%d" % len(body)
        elif again and low == b"idempotency-key":
            value += f"-{again}".encode()
        headers.append((name, value))
    made = httpx.Request(
        request.method, request.url, headers=headers, stream=httpx.ByteStream(body), extensions=request.extensions
    )
    made.read()
    return made


def _decoder(request: Any, encoding: str) -> Callable[[list[bytes]], bytes]:
    """What undoes an answer's content encoding, by httpx's own means: it knows those that it asked for."""
    if not encoding:
        return b"".join
    httpx: Any = family(request)

    def decode(chunks: list[bytes]) -> bytes:
        class Torn(httpx.SyncByteStream):  # type: ignore[misc]
            def __iter__(self) -> Iterator[bytes]:
                yield from chunks

        parts: list[bytes] = []
        try:
            for part in httpx.Response(200, headers={"content-encoding": encoding}, stream=Torn()).iter_bytes():
                parts.append(part)
        except Exception:  # it broke off; what came before says what it says
            log.debug("cutline: an answer could not be decoded to its end")
        return b"".join(parts)

    return decode


async def _elsewhere(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call something in a thread, under asyncio as under trio: httpx stands on anyio."""
    import anyio.to_thread

    return await anyio.to_thread.run_sync(function, *arguments)


def _place(record: bool | str | os.PathLike[str]) -> Path | None:
    """Where the record lies; None for none."""
    if record is False or record == "":
        return None
    if record is not True:
        return Path(record).absolute()
    named = os.environ.get("CUTLINE_RECORD")
    return records.default_path() if named is None else Path(named).absolute() if named else None
