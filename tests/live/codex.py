"""The real Codex, driven without a terminal, and a scripted provider of OpenAI Responses on loopback.

Law: its own home, a dummy key, no network but loopback. The provider refuses what the real one refuses of a
history: a call without its output, an output without its call. The client is installed from npm into the user's
cache, once for each version; a test is skipped only where npm does not answer.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any

from cutline import encodings

from . import npm

PACKAGE = "@openai/codex"
VERSION = os.environ.get("CUTLINE_CODEX") or "0.171.0"
"""The version that docs/codex-sessions.md speaks of; CUTLINE_CODEX names another one."""

MODEL = "gpt-5.5"
MOST = 64 * 1024 * 1024

Item = dict[str, Any]
Answer = Sequence[Item] | Callable[[dict[str, Any]], Sequence[Item]]
"""The items of an answer, or what makes them of the request's body."""


# ------------------------------------------------------------------------------------------------ the provider


def said(words: str, **more: Any) -> Item:
    """A message of the agent's."""
    content = [{"type": "output_text", "text": words, "annotations": []}]
    head = {"type": "message", "role": "assistant", "id": message_id(words), "status": "completed"}
    return {**head, "content": content, **more}


def message_id(words: str) -> str:
    """The id that the provider gives a message."""
    return f"msg_{zlib.crc32(words.encode()):08x}"


def call(call_id: str, name: str, namespace: str = "", **arguments: Any) -> Item:
    """A call of one of the client's tools."""
    more = {"namespace": namespace} if namespace else {}
    item = {"type": "function_call", "id": f"fc_{call_id}", "call_id": call_id, "name": name, **more}
    return {**item, "arguments": json.dumps(arguments), "status": "completed"}


def reasoning(sealed: str, *summary: str) -> Item:
    """A reasoning item, encrypted."""
    told = [{"type": "summary_text", "text": words} for words in summary]
    return {"type": "reasoning", "id": f"rs_{sealed}", "summary": told, "encrypted_content": sealed}


class Upstream:
    """The provider: a context manager; `url` is the base URL while it runs.

    Requests for an answer are answered from the script in turn; when it is used up, with the words "ok".

    Attributes:
        bodies: the body of every request for an answer, in the order of arrival.
        headers: those requests' headers.
        paths: every path that was asked for.
        refusals: why requests were refused.
    Args:
        script: the answers.
        input_tokens: what each answer says that its request weighed, the last of them for all that follow.
    """

    def __init__(self, script: Sequence[Answer] = (), input_tokens: Sequence[int] = (1_000,)) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.refusals: list[str] = []
        self.input_tokens = input_tokens
        self._script = script
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.upstream = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        """The base URL."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @property
    def unused(self) -> int:
        """How many answers of the script were never asked for."""
        return max(0, len(self._script) - len(self.bodies) + len(self.refusals))

    def __enter__(self) -> Upstream:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, body: dict[str, Any]) -> tuple[list[Item], str]:
        """The items of the next answer, or why the request is refused."""
        with self._lock:
            fault = refused(body["input"])
            turn = len(self.bodies) - len(self.refusals)
            self.bodies.append(body)
            if fault:
                self.refusals.append(fault)
                return [], fault
        answer = self._script[turn] if turn < len(self._script) else [said("ok")]
        return list(answer(body) if callable(answer) else answer), ""


def refused(items: Sequence[Item]) -> str:
    """Why the provider refuses an input; "" where it takes it."""
    calls = {item["call_id"] for item in items if item.get("type", "").endswith("_call") and item.get("call_id")}
    outputs = {item["call_id"] for item in items if item.get("type", "").endswith("_output") and item.get("call_id")}
    for missing in sorted(calls - outputs):
        return f"No tool output found for function call {missing}."
    for missing in sorted(outputs - calls):
        return f"No tool call found for function call output with call_id {missing}."
    return ""


def _coming(number: int, item: Item) -> list[dict[str, Any]]:
    """How an item is announced, without which some clients don't take it; of a message also its words."""
    begun = {**item, "content": []} if item["type"] == "message" else item
    told = [{"type": "response.output_item.added", "output_index": number, "item": begun}]
    if item["type"] == "message":
        place = {"item_id": item.get("id", ""), "output_index": number}
        for at, part in enumerate(item["content"]):
            told.append(
                {"type": "response.output_text.delta", **place, "content_index": at, "delta": part.get("text", "")}
            )
    return told


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    upstream: Upstream

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is no fault; anything else is shown."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, *_: Any) -> None:
        """Say nothing: the test's output is the test's."""

    def do_GET(self) -> None:
        self.server.upstream.paths.append(self.path)
        if self.headers.get("upgrade"):  # the client then asks over HTTP
            self._whole(426, {"error": {"message": "no web sockets"}})
        else:
            self._whole(404, {"error": {"message": "not found"}})

    def do_POST(self) -> None:
        self.server.upstream.paths.append(self.path)
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        if not self.path.split("?")[0].endswith("/responses"):
            self._whole(404, {"error": {"message": "not found"}})
            return
        packed = self.headers.get("content-encoding") or ""  # zstd, of a login with ChatGPT
        body = json.loads(encodings.unpack(raw, packed, MOST) or b"")
        self.server.upstream.headers.append({name.lower(): value for name, value in self.headers.items()})
        items, fault = self.server.upstream.answer(body)
        if fault:
            self._whole(400, {"error": {"message": fault, "type": "invalid_request_error"}})
            return
        number = len(self.server.upstream.bodies)
        weighed = self.server.upstream.input_tokens
        tokens = weighed[min(number, len(weighed)) - 1]
        usage = {
            "input_tokens": tokens,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 10,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": tokens + 10,
        }
        whole = {"id": f"resp_{number}", "model": body["model"], "usage": usage, "output": items, "status": "completed"}
        told = [{"type": "response.created", "response": {"id": f"resp_{number}"}}]
        for n, item in enumerate(items):
            told += [*_coming(n, item), {"type": "response.output_item.done", "output_index": n, "item": item}]
        told += [{"type": "response.completed", "response": whole}]
        data = b"".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in told)
        self._send(200, "text/event-stream", data)

    def _whole(self, status: int, body: dict[str, Any]) -> None:
        self._send(status, "application/json", json.dumps(body).encode())

    def _send(self, status: int, kind: str, data: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


# ------------------------------------------------------------------------------------------------ the client


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one run ended: exit code, and what it printed."""

    code: int
    stdout: str
    stderr: str

    @property
    def thread(self) -> str:
        """The id of the session that was begun or gone on with."""
        started = next(json.loads(line) for line in self.stdout.splitlines() if '"thread.started"' in line)
        found: str = started["thread_id"]
        return found


@dataclass(frozen=True, slots=True)
class Codex:
    """An installed client, pointed at an upstream.

    Attributes:
        binary: what is run.
        url: the upstream's base URL.
        home: its CODEX_HOME.
        model: the model that is asked for.
        settings: options of the command line besides what every run gets.
    """

    binary: Path
    url: str
    home: Path
    model: str = MODEL
    settings: tuple[str, ...] = field(default=())

    def run(self, cwd: Path, *arguments: str) -> Outcome:
        """Give the client one prompt in `cwd` (`codex exec …`) and wait for its end."""
        return self.start(cwd, "exec", *self.options, *arguments)

    def start(self, cwd: Path, *arguments: str) -> Outcome:
        """Run a command line of the client's."""
        done = subprocess.run(
            [str(self.binary), *arguments],
            cwd=cwd,
            env=self.variables(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=npm.RUNS_S,
            check=False,
        )
        return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())

    @property
    def options(self) -> list[str]:
        """What every run is given."""
        provider = f'{{name="c",base_url="{self.url}",env_key="OPENAI_API_KEY",wire_api="responses"}}'
        return [
            *("--skip-git-repo-check", "--json", "-m", self.model, "--dangerously-bypass-approvals-and-sandbox"),
            *("-c", f"model_providers.c={provider}", "-c", "model_provider=c"),
            *self.settings,
        ]

    def variables(self) -> dict[str, str]:
        """The environment of a run: nothing of the user's but the PATH."""
        user = self.home.parent / "home"
        for folder in (self.home, user):
            folder.mkdir(parents=True, exist_ok=True)
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(user),
            "CODEX_HOME": str(self.home),
            "OPENAI_API_KEY": "dummy",
        }


def rollouts(home: Path) -> list[Path]:
    """The session files of a home."""
    return sorted((home / "sessions").rglob("rollout-*.jsonl*"))


def install(version: str = VERSION) -> Path:
    """The binary of one version, installed from npm if it is not there yet."""
    with npm.place("codex", version) as folder:
        binary = folder / "node_modules" / ".bin" / "codex"
        if not npm.works([binary]):
            npm.install(folder, PACKAGE, version)
            assert npm.works([binary]), f"{binary} does not run"
    return binary


def by_chatgpt() -> dict[str, Any]:
    """What the client's auth.json holds of a login with ChatGPT, made up and long valid."""
    claims = {"chatgpt_plan_type": "pro", "chatgpt_account_id": "account", "chatgpt_user_id": "user"}
    held = {"email": "someone@example.com", "exp": 4_102_444_800, "https://api.openai.com/auth": claims}
    parts = [base64.urlsafe_b64encode(json.dumps(one).encode()).decode().rstrip("=") for one in ({"alg": "none"}, held)]
    token = f"{'.'.join(parts)}.c2ln"
    tokens = {"id_token": token, "access_token": token, "refresh_token": "refresh", "account_id": "account"}
    fresh = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return {"auth_mode": "chatgpt", "OPENAI_API_KEY": None, "tokens": tokens, "last_refresh": fresh}
