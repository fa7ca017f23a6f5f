"""A scripted provider of Anthropic Messages on loopback. Law: it records every byte it is sent and asks no network.

The standard library only. Events are the documented minimum: `message_start`, `content_block_*`,
`message_delta`, `message_stop` (https://docs.claude.com/en/docs/build-with-claude/streaming).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

Block = dict[str, Any]
Answer = Sequence[Block] | Callable[[dict[str, Any]], Sequence[Block]]
"""Content blocks of an answer, or what makes them of the request's body."""


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


def thinking(words: str, signature: str = "c2lnbmF0dXJl") -> Block:
    """A thinking block with its signature."""
    return {"type": "thinking", "thinking": words, "signature": signature}


class Upstream:
    """The provider: a context manager; `url` is the base URL while it runs.

    Conversation requests (those that offer tools) are answered from the script in turn, or by the one callable;
    when the script is used up, and to every other request, the answer is the text "ok".

    Args:
        script: what the answers are.
        input_tokens: what every answer says that its request weighed.

    Attributes:
        requests: every request, in the order of arrival.
        input_tokens: may be set anew between answers.
    """

    def __init__(
        self, script: Sequence[Answer] | Callable[[dict[str, Any]], Sequence[Block]] = (), input_tokens: int = 10
    ) -> None:
        self.requests: list[Recorded] = []
        self.input_tokens = input_tokens
        self._script = script
        self._turn = 0
        self._made = 0
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
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
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def record(self, request: Recorded) -> list[Block] | None:
        """Note a request; the blocks to answer a posted message with, None for anything else."""
        with self._lock:
            self.requests.append(request)
            if request.method != "POST" or _counts(request):
                return None
            if not _converses(request):
                return [text("ok")]
            if callable(self._script):
                return list(self._script(request.body))
            turn, self._turn = self._turn, self._turn + 1
            if turn >= len(self._script):
                return [text("ok")]
            answer = self._script[turn]
            return list(answer(request.body) if callable(answer) else answer)

    def message(self, model: str, blocks: list[Block]) -> dict[str, Any]:
        """A whole answer, as it stands in a reply that is not streamed."""
        with self._lock:
            self._made += 1
            number = self._made
        return {
            "id": f"msg_scripted{number:04d}",
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": blocks,
            "stop_reason": "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn",
            "stop_sequence": None,
            "usage": {
                "input_tokens": self.input_tokens,
                "output_tokens": 5,
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0,
            },
        }


def events(message: dict[str, Any]) -> Iterator[bytes]:
    """A whole answer as the server-sent events of a streamed one."""
    start = {**message, "content": [], "stop_reason": None}
    yield _event("message_start", message=start)
    for index, block in enumerate(message["content"]):
        empty, deltas = _parted(block)
        yield _event("content_block_start", index=index, content_block=empty)
        for delta in deltas:
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    stop = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield _event("message_delta", delta=stop, usage={"output_tokens": message["usage"]["output_tokens"]})
    yield _event("message_stop")


def _parted(block: Block) -> tuple[Block, list[Block]]:
    """A block as its empty beginning and what fills it."""
    if block["type"] == "text":
        return {**block, "text": ""}, [{"type": "text_delta", "text": block["text"]}]
    if block["type"] == "thinking":
        return {**block, "thinking": "", "signature": ""}, [
            {"type": "thinking_delta", "thinking": block["thinking"]},
            {"type": "signature_delta", "signature": block["signature"]},
        ]
    if block["type"] in ("tool_use", "server_tool_use"):
        return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
    return block, []


def _event(type_: str, **members: Any) -> bytes:
    return f"event: {type_}\ndata: {json.dumps({'type': type_, **members})}\n\n".encode()


def _counts(request: Recorded) -> bool:
    return "/count_tokens" in request.path


def _converses(request: Recorded) -> bool:
    posted = request.method == "POST" and "/v1/messages" in request.path and not _counts(request)
    return posted and bool(request.body.get("tools"))


def _handler(upstream: Upstream) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            """Say nothing: the test's output is the test's."""

        def do_HEAD(self) -> None:
            self._record()
            self._reply(200, "text/plain", b"")

        def do_GET(self) -> None:
            self._record()
            self._reply(404, "application/json", b"{}")

        def do_POST(self) -> None:
            request, blocks = self._record()
            if blocks is None:
                self._reply(200, "application/json", b'{"input_tokens":1000}')
                return
            message = upstream.message(str(request.body.get("model")), blocks)
            if request.body.get("stream"):
                self._reply(200, "text/event-stream", b"".join(events(message)))
            else:
                self._reply(200, "application/json", json.dumps(message).encode())

        def _record(self) -> tuple[Recorded, list[Block] | None]:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Recorded(self.command, self.path, headers, raw)
            return request, upstream.record(request)

        def _reply(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

    return Handler
