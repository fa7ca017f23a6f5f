"""A provider of streamed Chat Completions on loopback, with a script, for clients that speak it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MODEL = "m1"
WINDOW, FULL = 200_000, 195_000
"""Tokens of the model's context, and a count at which a client sums it up."""

Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model answers: words, reasoning, and calls as (id, name, arguments)."""

    text: str = ""
    calls: Sequence[tuple[str, str, dict[str, Any]]] = ()
    thinking: str = ""


class Upstream:
    """A provider of streamed Chat Completions on loopback: a context manager; `url` is its base URL.

    It refuses (400) what such providers refuse: a call that the next messages do not answer, a result of no call.

    Attributes:
        requests: the bodies, in order.
        asides: the bodies of requests without tools, where those are answered beside the script.
        faults: what was refused.
        aside: what those are answered; None where they are requests like any.
        full: the request, counted from 1, whose answer says that the context is nearly full.
    """

    def __init__(self, script: Sequence[Answer] | Callable[[dict[str, Any]], Answer]) -> None:
        self.requests: list[dict[str, Any]] = []
        self.asides: list[dict[str, Any]] = []
        self.faults: list[str] = []
        self.aside: str | None = None
        self.full = 0
        self._script = script
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        """What the client is given as base URL."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @property
    def unused(self) -> int:
        """Answers of the script that nobody asked for."""
        return 0 if callable(self._script) else len(self._script) - len(self.requests)

    def __enter__(self) -> Upstream:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        upstream = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                return

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                status, said = upstream._take(body)
                self.send_response(status)
                self.send_header("Content-Type", "text/event-stream" if status == 200 else "application/json")
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

        return Handler

    def _take(self, body: dict[str, Any]) -> tuple[int, bytes]:
        with self._lock:
            number = len(self.requests)
            if self.aside is not None and not body.get("tools"):
                self.asides.append(body)
                return 200, _stream(Answer(self.aside), number, 10)
            self.requests.append(body)
            fault = _fault(body["messages"])
            if fault:
                self.faults.append(fault)
                return 400, json.dumps({"error": {"message": fault, "type": "invalid_request_error"}}).encode()
            if callable(self._script):
                answer = self._script(body)
            else:
                answer = self._script[number] if number < len(self._script) else Answer("ok")
        return 200, _stream(answer, number, FULL if number + 1 == self.full else len(json.dumps(body)) // 4)


def _fault(messages: Sequence[Message]) -> str:
    open_: set[str] = set()
    for number, message in enumerate(messages):
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_:
                return f"messages[{number}]: a tool message must answer a call of the assistant message before it"
            open_.discard(message["tool_call_id"])
            continue
        if open_:
            return f"messages[{number}]: a call was not answered: {sorted(open_)}"
        open_ = {call["id"] for call in message.get("tool_calls") or ()}
    return f"a call was not answered: {sorted(open_)}" if open_ else ""


def _stream(answer: Answer, number: int, tokens: int) -> bytes:
    events: list[dict[str, Any]] = []
    if answer.thinking:
        events.append({"delta": {"role": "assistant", "reasoning_content": answer.thinking}})
    if answer.text:
        events.append({"delta": {"role": "assistant", "content": answer.text}})
    for index, (id_, name, arguments) in enumerate(answer.calls):
        made = {"name": name, "arguments": json.dumps(arguments)}
        events.append({"delta": {"tool_calls": [{"index": index, "id": id_, "type": "function", "function": made}]}})
    events.append({"delta": {}, "finish_reason": "tool_calls" if answer.calls else "stop"})
    base = {
        "id": f"chatcmpl-{time.time_ns()}-{number}",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": MODEL,
    }
    usage = {"prompt_tokens": tokens, "completion_tokens": 20, "total_tokens": tokens + 20}
    rows = [{**base, "choices": [{"index": 0, "finish_reason": None, **event}]} for event in events]
    rows.append({**base, "choices": [], "usage": usage})
    return b"".join(b"data: %s\n\n" % json.dumps(row).encode() for row in rows) + b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one run ended: exit code, and what it printed."""

    code: int
    stdout: str
    stderr: str
