"""The real opencode, driven without a terminal, and a scripted upstream for its wire (OpenAI Chat Completions).

Law: a home of its own, a dummy key, loopback only. The client is installed from npm into the user's cache, outside of
the repository, once for each version. A test is skipped only where npm does not answer; any other fault is the test's
failure.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

PACKAGE = "opencode-ai"
VERSION = os.environ.get("CUTLINE_OPENCODE") or "1.18.33"
"""The version that docs/opencode-sessions.md speaks of; CUTLINE_OPENCODE names another one."""

FILES_VERSION = "1.1.65"
"""The last version that kept JSON files instead of a database."""

MODEL = "m1"
WINDOW, FULL = 200_000, 195_000
"""Tokens of the model's context, and a count at which the client sums it up."""

_ANSWERS_S, _INSTALLS_S, _RUNS_S = 30, 420, 120

Message = dict[str, Any]


# ------------------------------------------------------------------------------------------- the provider


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model answers: words, reasoning, and calls as (id, name, arguments)."""

    text: str = ""
    calls: Sequence[tuple[str, str, dict[str, Any]]] = ()
    thinking: str = ""


class Upstream:
    """A provider of streamed Chat Completions on loopback: a context manager; `url` is its base URL.

    It refuses (400) what such providers refuse: a call that the next messages do not answer, a result of no call.
    Requests without tools (the client asks for a title in one) are answered beside the script.

    Attributes:
        requests: the bodies of the conversation, in order.
        asides: the bodies of requests without tools.
        faults: what was refused.
        aside: what those are answered.
        full: the request, counted from 1, whose answer says that the context is nearly full.
    """

    def __init__(self, script: Sequence[Answer] | Callable[[dict[str, Any]], Answer]) -> None:
        self.requests: list[dict[str, Any]] = []
        self.asides: list[dict[str, Any]] = []
        self.faults: list[str] = []
        self.aside = "A title"
        self.full = 0
        self._script = script
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        """What the client is given as base URL."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

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
            if not body.get("tools"):
                self.asides.append(body)
                return 200, _stream(Answer(self.aside), 10)
            number = len(self.requests)
            self.requests.append(body)
            fault = _fault(body["messages"])
            if fault:
                self.faults.append(fault)
                return 400, json.dumps({"error": {"message": fault, "type": "invalid_request_error"}}).encode()
            if callable(self._script):
                answer = self._script(body)
            else:
                answer = self._script[number] if number < len(self._script) else Answer("ok")
        return 200, _stream(answer, FULL if number + 1 == self.full else len(json.dumps(body)) // 4)


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


def _stream(answer: Answer, tokens: int) -> bytes:
    events: list[dict[str, Any]] = []
    if answer.thinking:
        events.append({"delta": {"role": "assistant", "reasoning_content": answer.thinking}})
    if answer.text:
        events.append({"delta": {"role": "assistant", "content": answer.text}})
    for index, (id_, name, arguments) in enumerate(answer.calls):
        made = {"name": name, "arguments": json.dumps(arguments)}
        events.append({"delta": {"tool_calls": [{"index": index, "id": id_, "type": "function", "function": made}]}})
    events.append({"delta": {}, "finish_reason": "tool_calls" if answer.calls else "stop"})
    base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": MODEL}
    usage = {"prompt_tokens": tokens, "completion_tokens": 20, "total_tokens": tokens + 20}
    rows = [{**base, "choices": [{"index": 0, "finish_reason": None, **event}]} for event in events]
    rows.append({**base, "choices": [], "usage": usage})
    return b"".join(b"data: %s\n\n" % json.dumps(row).encode() for row in rows) + b"data: [DONE]\n\n"


# --------------------------------------------------------------------------------------------- the client

# An MCP server with one tool, as a client starts it: lines of JSON-RPC on standard input and output.
SERVER = """
import json, sys
TOOL = {"name": "micro_handoff", "description": "A checkpoint.", "inputSchema": {"type": "object"}}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    method, found = asked["method"], {}
    if method == "initialize":
        found = {
            "protocolVersion": asked["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "cutline", "version": "0"},
        }
    elif method == "tools/list":
        found = {"tools": [TOOL]}
    elif method == "tools/call":
        found = {"content": [{"type": "text", "text": "checkpoint stored"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": found}), flush=True)
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one run ended: exit code, and what it printed."""

    code: int
    stdout: str
    stderr: str


@dataclass(frozen=True, slots=True)
class Opencode:
    """An installed client with a home of its own.

    Attributes:
        binary: what is run.
        home: its home directory.
        cwd: the working directory.
        settings: members of its configuration beside the provider and the server.
    """

    binary: Path
    home: Path
    cwd: Path
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def data(self) -> Path:
        """Where it keeps its sessions."""
        return self.home / ".local" / "share" / "opencode"

    def variables(self) -> dict[str, str]:
        """The environment of a run: nothing of the user's but the PATH."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
        }

    def run(self, upstream: Upstream, prompt: str, *options: str) -> Outcome:
        """Give the client one prompt and wait for its end."""
        self.configure(upstream)
        return self.start("run", "--model", f"scripted/{MODEL}", *options, prompt)

    def start(self, *arguments: str) -> Outcome:
        """Run the client with these arguments."""
        done = subprocess.run(
            [self.binary, *arguments],
            cwd=self.cwd,
            env=self.variables(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_RUNS_S,
            check=False,
        )
        return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())

    @contextmanager
    def serve(self, upstream: Upstream) -> Iterator[str]:
        """The client's server, without a terminal; its base URL."""
        self.configure(upstream)
        server = subprocess.Popen(
            [self.binary, "serve", "--port", "0"],
            cwd=self.cwd,
            env=self.variables(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert server.stdout is not None
        with server, server.stdout as said:
            try:
                lines = (line.decode().partition("listening on ")[2].strip() for line in said)
                yield next(url for url in lines if url)
            finally:
                server.terminate()

    def configure(self, upstream: Upstream) -> None:
        """Point the client at an upstream, and give it the server with the checkpoint tool."""
        limit = {"context": WINDOW, "output": 8_000}
        model = {"name": MODEL, "reasoning": True, "tool_call": True, "attachment": True, "limit": limit}
        server = self.home / "server.py"
        server.write_text(SERVER)
        written = {
            "$schema": "https://opencode.ai/config.json",
            "model": f"scripted/{MODEL}",
            "provider": {
                "scripted": {
                    "npm": "@ai-sdk/openai-compatible",
                    "options": {"baseURL": upstream.url, "apiKey": "dummy"},
                    "models": {MODEL: model},
                }
            },
            "mcp": {"cutline": {"type": "local", "command": [sys.executable, str(server)], "enabled": True}},
            "permission": {"bash": "allow", "edit": "allow"},
            "share": "disabled",
            "autoupdate": False,
            **self.settings,
        }
        folder = self.home / ".config" / "opencode"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "opencode.json").write_text(json.dumps(written))


def client(home: Path, cwd: Path, version: str = VERSION) -> Opencode:
    """The client, installed from npm if it is not there yet."""
    home.mkdir(parents=True, exist_ok=True)
    cwd.mkdir(parents=True, exist_ok=True)
    return Opencode(install(version), home, cwd)


def install(version: str = VERSION) -> Path:
    """The binary of one version, installed from npm if it is not there yet."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm does not answer: it is not on PATH")
    folder = _cache() / version
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:  # parallel workers install once
        fcntl.flock(lock, fcntl.LOCK_EX)
        binary = _binary(folder)
        if binary is None:
            _npm(npm, "install", "--no-audit", "--no-fund", "--prefix", str(folder), f"{PACKAGE}@{version}")
            binary = _binary(folder)
            assert binary is not None, f"no binary in {folder} runs"
    return binary


def _binary(folder: Path) -> Path | None:
    """The binary itself: the package's own command is a script that looks for it."""
    found = sorted(folder.glob("node_modules/opencode-*-*/bin/opencode"))
    return next((path for path in found if _works(path)), None)


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "cutline-tests" / "opencode"


def _works(binary: Path) -> bool:
    try:
        done = subprocess.run([binary, "--version"], capture_output=True, timeout=_RUNS_S, check=False)
    except OSError:
        return False
    return done.returncode == 0


def _npm(npm: str, *arguments: str) -> None:
    """Run npm; where it fails, say whether it answers at all."""
    try:
        done = subprocess.run([npm, *arguments], capture_output=True, text=True, timeout=_INSTALLS_S, check=False)
        if done.returncode == 0:
            return
        said = done.stderr.strip()[-500:]
    except subprocess.TimeoutExpired:
        said = f"no end within {_INSTALLS_S} s"
    try:
        asked = [npm, "view", PACKAGE, "version", "--fetch-retries=0"]
        alive = subprocess.run(asked, capture_output=True, timeout=_ANSWERS_S, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        alive = False
    if not alive:
        pytest.skip(f"npm does not answer: {said}")
    pytest.fail(f"npm answers, but does not install {PACKAGE}: {said}")
