"""The real pi, driven without a terminal, and a scripted upstream for its wire (OpenAI Chat Completions).

Law: a home of its own, a dummy key, loopback only. The client is installed from npm into the user's cache, outside of
the repository, once for each version, with a Node.js that is new enough where the one on PATH is not. A test is skipped
only where npm does not answer; any other fault is the test's failure.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

PACKAGE = "@earendil-works/pi-coding-agent"
VERSION = os.environ.get("CUTLINE_PI") or "1.6.0"
"""The version that docs/pi-sessions.md speaks of; CUTLINE_PI names another one."""

MODEL = "m1"
_NODE = "22.23.3"
_NODE_NEEDED = (22, 19)
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

    Attributes:
        requests: the bodies, in order.
        faults: what was refused.
    """

    def __init__(self, script: Sequence[Answer] | Callable[[dict[str, Any]], Answer]) -> None:
        self.requests: list[dict[str, Any]] = []
        self.faults: list[str] = []
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
            self.requests.append(body)
            fault = _fault(body["messages"])
            if fault:
                self.faults.append(fault)
                return 400, json.dumps({"error": {"message": fault, "type": "invalid_request_error"}}).encode()
            if callable(self._script):
                answer = self._script(body)
            else:
                answer = self._script[number] if number < len(self._script) else Answer("ok")
        return 200, _stream(answer, number, len(json.dumps(body)) // 4)


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
class Pi:
    """An installed client with a home of its own.

    Attributes:
        command: what is run: Node.js and the client's script, or the client alone.
        home: its home directory, and the directory of its settings in it.
        cwd: the working directory.
    """

    command: tuple[str, ...]
    home: Path
    cwd: Path

    @property
    def agent(self) -> Path:
        """Where it keeps settings and sessions."""
        return self.home / ".pi" / "agent"

    @property
    def sessions(self) -> list[Path]:
        """The session files of every directory, in order of their names."""
        return sorted(self.agent.glob("sessions/*/*.jsonl"))

    def variables(self) -> dict[str, str]:
        """The environment of a run: nothing of the user's but the PATH."""
        return {
            "PATH": f"{self.command[-1].rpartition('/')[0]}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.home),
            "PI_OFFLINE": "1",
            "PI_TELEMETRY": "0",
        }

    def run(self, upstream: Upstream, prompt: str, *options: str, thinking: bool = False) -> Outcome:
        """Give the client one prompt and wait for its end."""
        self.configure(upstream, thinking=thinking)
        command = [*self.command, "--provider", "scripted", "--model", MODEL, *options, "-p", prompt]
        return self.start(command)

    def start(self, command: Sequence[str]) -> Outcome:
        """Run a command where the client runs."""
        done = subprocess.run(
            command,
            cwd=self.cwd,
            env=self.variables(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_RUNS_S,
            check=False,
        )
        return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())

    def configure(self, upstream: Upstream, *, thinking: bool = False) -> None:
        """Point the client at an upstream, and give it the server with the checkpoint tool."""
        self.agent.mkdir(parents=True, exist_ok=True)
        model = {"id": MODEL, "reasoning": thinking, "contextWindow": 1_000_000, "input": ["text", "image"]}
        provider = {"baseUrl": upstream.url, "api": "openai-completions", "apiKey": "dummy", "models": [model]}
        (self.agent / "models.json").write_text(json.dumps({"providers": {"scripted": provider}}))
        server = self.home / "server.py"
        server.write_text(SERVER)
        # What is exposed in the client's own way is called inside of scripts: such a call is no checkpoint.
        tools = {"command": sys.executable, "args": [str(server)], "exposure": "direct"}
        (self.agent / "mcp.json").write_text(json.dumps({"mcpServers": {"cutline": tools}}))


def client(home: Path, cwd: Path, version: str = VERSION) -> Pi:
    """The client, installed from npm if it is not there yet."""
    home.mkdir(parents=True, exist_ok=True)
    cwd.mkdir(parents=True, exist_ok=True)
    return Pi(install(version), home, cwd)


def install(version: str = VERSION) -> tuple[str, ...]:
    """The command that runs one version, installed from npm if it is not there yet."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm does not answer: it is not on PATH")
    folder = _cache() / version
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:  # parallel workers install once
        fcntl.flock(lock, fcntl.LOCK_EX)
        binary = folder / "node_modules" / ".bin" / "pi"
        node = _node(npm, folder)
        command = (*node, str(binary))
        if not _works(command):
            _npm(npm, "install", "--no-audit", "--no-fund", "--prefix", str(folder), f"{PACKAGE}@{version}")
            assert _works(command), f"{binary} does not run"
    return command


def _node(npm: str, folder: Path) -> tuple[str, ...]:
    """A Node.js that is new enough: none where the one on PATH is, else its binary from npm."""
    found = shutil.which("node")
    if found:
        said = subprocess.run([found, "--version"], capture_output=True, text=True, timeout=_RUNS_S, check=False).stdout
        numbers = re.match(r"v(\d+)\.(\d+)", said)
        if numbers and (int(numbers[1]), int(numbers[2])) >= _NODE_NEEDED:
            return ()
    machine = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    package = f"node-{sys.platform}-{machine}"
    binary = folder / "node_modules" / package / "bin" / "node"
    if not _works((str(binary),)):
        _npm(npm, "install", "--no-audit", "--no-fund", "--prefix", str(folder), f"{package}@{_NODE}")
        assert _works((str(binary),)), f"{binary} does not run"
    return (str(binary),)


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "cutline-tests" / "pi"


def _works(command: Sequence[str]) -> bool:
    if not all(Path(part).exists() for part in command):
        return False
    done = subprocess.run([*command, "--version"], capture_output=True, timeout=_RUNS_S, check=False)
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
