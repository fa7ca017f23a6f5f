"""A scripted provider of Anthropic Messages on loopback. Law: it records every byte it is sent and asks no network.

The standard library only. Events are the documented minimum: `message_start`, `content_block_*`,
`message_delta`, `message_stop` (https://docs.claude.com/en/docs/build-with-claude/streaming). What it refuses, and
what it counts, is what the provider is known to (validator.py, prefix.py).
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

import validator

from . import prefix

Block = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer, and how it is given.

    Attributes:
        content: the blocks.
        pause_s: seconds before its head, and again before each of its events.
        compressed: whether it is sent in gzip, if the client takes that.
        status, message: where the status is not 200, an error of that status with that message.
        retry_after_s: seconds that an error asks the client to wait.
    """

    content: Sequence[Block] = ()
    pause_s: float = 0
    compressed: bool = False
    status: int = 200
    message: str = ""
    retry_after_s: int | None = None


Told = Sequence[Block] | Reply
Answer = Told | Callable[[dict[str, Any]], Told]
"""Content blocks of an answer, or the answer with how it is given, or what makes either of the request's body."""

_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}


@dataclass(frozen=True, slots=True)
class Recorded:
    """One request as it came.

    Attributes:
        method, path: as on the request line, the query included.
        headers: by lower-case name.
        raw: the body's bytes; empty where there was none.
    """

    method: str
    path: str
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> dict[str, Any]:
        """The body, decoded."""
        found: dict[str, Any] = json.loads(self.raw)
        return found

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The body's messages."""
        found: list[dict[str, Any]] = self.body["messages"]
        return found


def text(words: str) -> Block:
    """A text block."""
    return {"type": "text", "text": words}


def call(id_: str, name: str, **arguments: Any) -> Block:
    """A call of one of the client's tools."""
    return {"type": "tool_use", "id": id_, "name": name, "input": arguments}


def thinking(words: str = "", signature: str = "") -> Block:
    """A thinking block; without a signature of its own it gets one that is bound to the request it answers."""
    return {"type": "thinking", "thinking": words, "signature": signature or prefix.write(prefix.Seal("thinking"))}


def narration(words: str = "") -> Block:
    """The agent's words between calls, as the newest models send them; empty where the client has them omitted."""
    return thinking(words, prefix.write(prefix.Seal("narration")))


def failure(status: int, message: str = "", retry_after_s: int | None = None) -> Reply:
    """An error in place of an answer: 400, 401, 403, 404, 413, 429, 500 or 529."""
    return Reply(status=status, message=message or _ERRORS[status], retry_after_s=retry_after_s)


class Upstream:
    """The provider: a context manager; `url` is the base URL while it runs.

    Conversation requests (those that offer tools) are answered from the script in turn, or by the one callable;
    when the script is used up, and to every other request, the answer is the text "ok". A refused request takes
    nothing off the script. What a callable raises, leaving the context raises.

    Args:
        script: what the answers are.
        input_tokens: what every answer says that its request weighed; without it, what its bytes and a plain
            prompt cache come to.
        strict: refuse what the provider refuses (validator.py), with 400 and its error.
        bound: refuse thinking whose signature is not of this conversation, or that was changed in the open turn
            (prefix.py). Models that bind no prefix are only held to the blocks' own words.

    Attributes:
        requests: every request, in the order of arrival.
        refusals: the message of every request that `strict` or `bound` refused.
        aborted: how many clients went away in the middle of their request or of its answer.
        input_tokens: may be set anew between answers.
    """

    def __init__(
        self,
        script: Sequence[Answer] | Callable[[dict[str, Any]], Told] = (),
        input_tokens: int | None = None,
        *,
        strict: bool = False,
        bound: bool = False,
    ) -> None:
        self.requests: list[Recorded] = []
        self.refusals: list[str] = []
        self.aborted = 0
        self.input_tokens = input_tokens
        self._strict, self._bound = strict, bound
        self._script = script
        self._turn = 0
        self._made = 0
        self._cache = prefix.Cache()
        self._lock, self._telling = threading.Lock(), threading.Lock()
        self._closing = threading.Event()
        self._faults: list[BaseException] = []
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.upstream = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        """The base URL."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def conversation(self) -> list[Recorded]:
        """The requests that are turns of a conversation: messages posted with tools on offer."""
        return [request for request in self.requests if _converses(request)]

    @property
    def unused(self) -> int:
        """How many answers of the script were never asked for; 0 for a callable."""
        return 0 if callable(self._script) else max(0, len(self._script) - self._turn)

    def __enter__(self) -> Upstream:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        if kind is None and self._faults:
            raise self._faults[0]

    # ---- what the handlers ask, each in a thread of its own

    def record(self, request: Recorded) -> str | None:
        """Note a request; why it is refused, or None."""
        with self._lock:
            self.requests.append(request)
            fault = self._fault(request) if _posts(request) else None
            if fault is not None:
                self.refusals.append(fault)
            return fault

    def reply(self, request: Recorded) -> Reply:
        """The answer to a posted message, its thinking signed."""
        body = request.body
        with self._telling:
            told = self._told(body) if _converses(request) else [text("ok")]
        reply = told if isinstance(told, Reply) else Reply(told)
        return replace(reply, content=prefix.signed(body, list(reply.content)))

    def message(self, request: Recorded, blocks: Sequence[Block]) -> dict[str, Any]:
        """A whole answer, as it stands in a reply that is not streamed."""
        with self._lock:
            self._made += 1
            weighed = self._cache.usage(request.body, len(request.raw))
            if self.input_tokens is not None:
                weighed = {**dict.fromkeys(weighed, 0), "input_tokens": self.input_tokens}
            return {
                "id": f"msg_scripted{self._made:04d}",
                "type": "message",
                "role": "assistant",
                "model": str(request.body.get("model")),
                "content": list(blocks),
                "stop_reason": "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn",
                "stop_sequence": None,
                "usage": {**weighed, "output_tokens": max(1, len(json.dumps(list(blocks))) // 4)},
            }

    def gone(self) -> None:
        """Note that a client went away."""
        with self._lock:
            self.aborted += 1

    def failed(self, error: BaseException) -> None:
        """Note what a handler raised: it is the test's failure, not the client's."""
        with self._lock:
            self._faults.append(error)

    def closes(self, seconds: float) -> bool:
        """Let time pass; whether the upstream is at its end."""
        return self._closing.wait(seconds)

    def _fault(self, request: Recorded) -> str | None:
        try:
            body = request.body
        except ValueError as error:
            return f"The request body is not valid JSON: {error}"
        found = validator.faults(body) if self._strict else []
        found = found or (prefix.refused(body) if self._bound else [])
        return found[0] if found else None

    def _told(self, body: dict[str, Any]) -> Told:
        if callable(self._script):
            return self._script(body)
        turn, self._turn = self._turn, self._turn + 1
        answer = self._script[turn] if turn < len(self._script) else [text("ok")]
        return answer(body) if callable(answer) else answer


def events(message: dict[str, Any]) -> Iterator[bytes]:
    """A whole answer as the server-sent events of a streamed one."""
    usage = message["usage"]
    yield _event(
        "message_start",
        message={**message, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}},
    )
    for index, block in enumerate(message["content"]):
        empty, deltas = _parted(block)
        yield _event("content_block_start", index=index, content_block=empty)
        for delta in deltas:
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    stop = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield _event("message_delta", delta=stop, usage=usage)
    yield _event("message_stop")


def _parted(block: Block) -> tuple[Block, list[Block]]:
    """A block as its empty beginning and what fills it."""
    if block["type"] == "text":
        return {**block, "text": ""}, [{"type": "text_delta", "text": block["text"]}]
    if block["type"] == "thinking":
        words = [{"type": "thinking_delta", "thinking": block["thinking"]}] if block["thinking"] else []
        signature = {"type": "signature_delta", "signature": block["signature"]}
        return {**block, "thinking": "", "signature": ""}, [*words, signature]
    if block["type"] in ("tool_use", "server_tool_use"):
        return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
    return block, []


def _event(type_: str, **members: Any) -> bytes:
    return f"event: {type_}\ndata: {json.dumps({'type': type_, **members})}\n\n".encode()


def _counts(request: Recorded) -> bool:
    return "/count_tokens" in request.path


def _posts(request: Recorded) -> bool:
    return request.method == "POST" and "/v1/messages" in request.path


def _converses(request: Recorded) -> bool:
    if not _posts(request) or _counts(request):
        return False
    try:
        return bool(request.body.get("tools"))
    except (ValueError, AttributeError):
        return False


# ------------------------------------------------------------------------------------------------ the wire


class _Gone(Exception):
    """The client went away."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    upstream: Upstream

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that breaks a connection off is no fault; anything else is the test's."""
        error = sys.exception()
        if error is not None and not isinstance(error, ConnectionError):
            self.upstream.failed(error)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, *_: Any) -> None:
        """Say nothing: the test's output is the test's."""

    def do_HEAD(self) -> None:
        self._record()
        self._whole(200, "text/plain", b"")

    def do_GET(self) -> None:
        self._record()
        self._whole(404, "application/json", b"{}")

    def do_POST(self) -> None:
        try:
            self._answer(*self._record())
        except (_Gone, ConnectionError):
            self.server.upstream.gone()
            self.close_connection = True

    def _answer(self, request: Recorded, fault: str | None) -> None:
        if not _posts(request):
            self._whole(200, "application/json", b"{}")
            return
        if fault is not None:
            self._error(400, fault)
            return
        if _counts(request):
            self._whole(200, "application/json", json.dumps({"input_tokens": len(request.raw) // 4}).encode())
            return
        reply = self.server.upstream.reply(request)
        self._pause(reply.pause_s)
        if reply.status != 200:
            self._error(reply.status, reply.message, reply.retry_after_s)
            return
        message = self.server.upstream.message(request, reply.content)
        takes_gzip = "gzip" in request.headers.get("accept-encoding", "")
        pack = zlib.compressobj(wbits=31) if reply.compressed and takes_gzip else None
        if request.body.get("stream"):
            self._stream(events(message), reply.pause_s, pack)
        else:
            whole = json.dumps(message).encode()
            packed = pack.compress(whole) + pack.flush() if pack else whole
            self._whole(200, "application/json", packed, **({"content-encoding": "gzip"} if pack else {}))

    def _record(self) -> tuple[Recorded, str | None]:
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Recorded(self.command, self.path, headers, self._read())
        return request, self.server.upstream.record(request)

    def _read(self) -> bytes:
        """The whole body, before anything is answered, however its length is given."""
        if "chunked" not in self.headers.get("transfer-encoding", "").lower():
            return self._exactly(int(self.headers.get("content-length") or 0))
        found = b""
        while size := int(self._line().split(b";")[0], 16):
            found += self._exactly(size)
            self._line()
        while self._line().strip():
            pass  # trailers
        return found

    def _exactly(self, size: int) -> bytes:
        found = self.rfile.read(size)
        if len(found) < size:
            raise _Gone
        return found

    def _line(self) -> bytes:
        found = self.rfile.readline()
        if not found:
            raise _Gone
        return found

    def _stream(self, told: Iterable[bytes], pause_s: float, pack: Any) -> None:
        """The events, each sent as it comes."""
        coding = {"content-encoding": "gzip"} if pack else {}
        self._head(200, "text/event-stream", **coding, **{"transfer-encoding": "chunked"})
        for event in told:
            self._pause(pause_s)
            self._chunk(pack.compress(event) + pack.flush(zlib.Z_SYNC_FLUSH) if pack else event)
        with contextlib.suppress(ConnectionError):  # whoever has read the last event may go
            if pack:
                self._chunk(pack.flush())
            self.wfile.write(b"0\r\n\r\n")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

    def _pause(self, seconds: float) -> None:
        """Wait, and find out whether the client is still there."""
        until = time.monotonic() + seconds
        while True:
            readable, _, _ = select.select([self.connection], [], [], 0)
            if readable and not self.connection.recv(1, socket.MSG_PEEK):
                raise _Gone
            left = until - time.monotonic()
            if left <= 0 or self.server.upstream.closes(min(left, 0.01)):
                return

    def _error(self, status: int, message: str, retry_after_s: int | None = None) -> None:
        error = {"type": "error", "error": {"type": _ERRORS.get(status, "api_error"), "message": message}}
        later = {} if retry_after_s is None else {"retry-after": str(retry_after_s)}
        self._whole(status, "application/json", json.dumps(error).encode(), **later)

    def _whole(self, status: int, kind: str, body: bytes, **more: str) -> None:
        self._head(status, kind, **more, **{"content-length": str(len(body))})
        if self.command != "HEAD":
            self.wfile.write(body)

    def _head(self, status: int, kind: str, **more: str) -> None:
        self.send_response(status)
        for name, value in {"content-type": kind, "request-id": "req_scripted", **more}.items():
            self.send_header(name, value)
        self.end_headers()
