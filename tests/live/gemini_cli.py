"""The real Gemini CLI, driven without a terminal, and a scripted upstream for its wire.

Law: a home of its own, a dummy key, loopback only. The client is installed from npm into the user's cache, outside of
the repository, once for each version. A test is skipped only where npm does not answer; any other fault is the test's
failure.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from . import npm

PACKAGE = "@google/gemini-cli"
VERSION = os.environ.get("CUTLINE_GEMINI_CLI") or "0.61.0"
"""The version that docs/gemini-cli-sessions.md speaks of; CUTLINE_GEMINI_CLI names another one."""

MODEL = "gemini-3-pro-preview"

NO_LOOP = '{"unproductive_state_analysis": "It gets on.", "unproductive_state_confidence": 0}'
"""What is answered where the client asks for JSON: from the thirtieth turn on it asks whether the agent runs in a loop."""

Part = dict[str, Any]
Content = dict[str, Any]


# ------------------------------------------------------------------------------------------- the provider


def text(words: str, **more: Any) -> Part:
    """Words."""
    return {"text": words, **more}


def thought(words: str) -> Part:
    """A summary of reasoning."""
    return {"text": words, "thought": True}


def call(name: str, id_: str = "", signature: str = "", **arguments: Any) -> Part:
    """A call of one of the client's tools, with the id that the provider gives it and its signature, where it has any."""
    made: Part = {"functionCall": {"name": name, "args": arguments, **({"id": id_} if id_ else {})}}
    return {**made, "thoughtSignature": signature} if signature else made


class Upstream:
    """A provider of streamed `generateContent` on loopback: a context manager; `url` is its base URL.

    Requests that offer tools are answered from the script in turn, or by the one callable, every other one with "ok".

    Args:
        script: the answers.
        refuses: by a request's path and body, why it is answered with 400; "" where it is not.

    Attributes:
        conversation: the bodies of the requests that offer tools, in order.
        others: the bodies of all other requests that ask for words, in order.
        faults: what the provider would refuse in them.
        refusals: what `refuses` said.
        paths: what was asked for, queries included.
    """

    def __init__(
        self,
        script: Sequence[list[Part]] | Callable[[dict[str, Any]], list[Part]],
        refuses: Callable[[str, dict[str, Any]], str] = lambda path, body: "",
    ) -> None:
        self.conversation: list[dict[str, Any]] = []
        self.others: list[dict[str, Any]] = []
        self.faults: list[str] = []
        self.refusals: list[str] = []
        self.paths: list[str] = []
        self._script = script
        self._refuses = refuses
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Upstream:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """What a request gets."""
        if "countTokens" in path:
            return {"totalTokens": len(json.dumps(body)) // 4}
        with self._lock:
            self.paths.append(path)
            if said := self._refuses(path, body):
                self.refusals.append(said)
                return {"error": {"code": 400, "message": said, "status": "INVALID_ARGUMENT"}}
            if not body.get("tools"):
                self.others.append(body)
            asks_json = "json" in str(body.get("generationConfig", {}).get("responseMimeType", ""))
            parts = self._told(body) if body.get("tools") else [text(NO_LOOP if asks_json else "ok")]
        weighed = len(json.dumps(body)) // 4
        return {
            "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {
                "promptTokenCount": weighed,
                "candidatesTokenCount": 7,
                "thoughtsTokenCount": 3,
                "cachedContentTokenCount": weighed // 2,
                "totalTokenCount": weighed + 10,
            },
        }

    def _told(self, body: dict[str, Any]) -> list[Part]:
        turn = len(self.conversation)
        self.conversation.append(body)
        self.faults += faults(body["contents"])
        if callable(self._script):
            return self._script(body)
        return self._script[turn] if turn < len(self._script) else [text("ok")]

    def _handler(upstream) -> type[BaseHTTPRequestHandler]:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None:
                """Say nothing: the test's output is the test's."""

            def do_GET(self) -> None:
                self._send("application/json", b"{}")

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
                answer = upstream.answer(self.path, body)
                told = json.dumps(answer).encode()
                if "error" in answer:
                    self._send("application/json", told, 400)
                elif "alt=sse" in self.path:
                    self._send("text/event-stream", b"data: %s\r\n\r\n" % told)
                else:
                    self._send("application/json", told)

            def _send(self, type_: str, body: bytes, status: int = 200) -> None:
                self.send_response(status)
                self.send_header("content-type", type_)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        return Handler


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that breaks a connection off, as one that is ended does, is no fault."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def faults(contents: list[Content]) -> list[str]:
    """What the provider refuses in a history: roles, empty parts, calls and results that do not pair."""
    found: list[str] = []
    if not contents or contents[0]["role"] != "user" or contents[-1]["role"] != "user":
        found.append("it does not begin and end with role user")
    waiting: list[str] = []
    before = ""
    for number, content in enumerate(contents):
        parts = content.get("parts") or []
        if not parts:
            found.append(f"contents[{number}] has no parts")
        if any(not part or (part.get("text") == "" and len(part) == 1) for part in parts):
            found.append(f"contents[{number}] has an empty part")
        calls = [part["functionCall"]["name"] for part in parts if "functionCall" in part]
        results = [part["functionResponse"]["name"] for part in parts if "functionResponse" in part]
        if content["role"] == "model":
            if waiting:
                found.append(f"contents[{number}] stands before the results of {waiting}")
            if calls and before != "user":
                found.append(f"contents[{number}] is a call turn behind role {before or 'nothing'}")
            waiting = calls
        else:
            if sorted(results) != sorted(waiting):
                found.append(f"contents[{number}] answers {results}, asked were {waiting}")
            waiting = []
        before = content["role"]
    return found


# --------------------------------------------------------------------------------------------- the client


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one run ended: exit code, and what it printed."""

    code: int
    stdout: str
    stderr: str

    @property
    def result(self) -> dict[str, Any]:
        """The one JSON object that the client prints at the end."""
        found: dict[str, Any] = json.loads(self.stdout[self.stdout.index("{") :])
        return found


@dataclass(frozen=True, slots=True)
class Home:
    """Where the client is run: a home of its own and a working directory."""

    root: Path
    cwd: Path

    @property
    def chats(self) -> Path:
        """The folder of this working directory's sessions (the only project of this home)."""
        (found,) = (self.root / ".gemini" / "tmp").glob("*/chats")
        return found

    def files(self) -> list[Path]:
        return sorted(self.chats.glob("session-*"))

    def session(self) -> Path:
        """The file of the one session that there is.

        Of one that is gone on with in another minute the client begins a second file without a message; when it starts
        next it takes that for damaged, and deletes every file that bears the id. So the second one goes first.
        """
        path, *others = sorted(self.files(), key=lambda file: file.stat().st_size, reverse=True)
        for other in others:
            assert other.stem.rpartition("-")[2] == path.stem.rpartition("-")[2], "another session"
            assert not re.search(r'"type":\s*"(user|gemini)"', other.read_text("utf-8")), "it holds messages"
            other.unlink()
        return path

    def variables(self, url: str) -> dict[str, str]:
        """The environment of a run: nothing of the user's but the PATH."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.root),
            "GEMINI_CLI_HOME": str(self.root),
            "GEMINI_API_KEY": "dummy",
            "GOOGLE_GEMINI_BASE_URL": url,
            "GEMINI_CLI_NO_RELAUNCH": "true",
            "NO_COLOR": "1",
        }

    def settle(self, servers: dict[str, Any] | None = None, **settings: Any) -> None:
        """Write the client's settings: a key as the way to sign in, no reports, the tools of these MCP servers."""
        folder = self.root / ".gemini"
        folder.mkdir(parents=True, exist_ok=True)
        wanted = {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "privacy": {"usageStatisticsEnabled": False},
            "telemetry": {"enabled": False},
            "general": {"disableAutoUpdate": True, "enableAutoUpdate": False},
            "mcpServers": servers or {},
            **settings,
        }
        (folder / "settings.json").write_text(json.dumps(wanted))

    def run(self, url: str, prompt: str, *options: str, model: str = MODEL) -> Outcome:
        """Give the client one prompt and wait for its end."""
        command = [str(install()), "-y", "--skip-trust", "-m", model, "--output-format", "json", *options, "-p", prompt]
        done = subprocess.run(
            command,
            cwd=self.cwd,
            env=self.variables(url),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=npm.RUNS_S,
            check=False,
        )
        return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())

    def talk(self, upstream: Upstream, prompt: str, after: str, *options: str) -> None:
        """Start the client on a terminal, type a prompt when some words are on the screen, and wait for its request."""
        command = [str(install()), "-y", "--skip-trust", "-m", MODEL, *options]
        known = {key: value for key, value in self.variables(upstream.url).items() if key != "NO_COLOR"}
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 120, 0, 0))
        environment = {**known, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        seen, typed, deadline = b"", 0, time.monotonic() + npm.RUNS_S
        client = subprocess.Popen(
            command, cwd=self.cwd, env=environment, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
        )
        try:
            os.close(theirs)
            while not upstream.conversation and time.monotonic() < deadline and client.poll() is None:
                # Two seconds without a change: before, the client's own commands may not be loaded yet. On a busy
                # machine keys can come too early all the same: words that don't show are typed again, Enter pressed again.
                if select.select([ours], [], [], 2)[0]:
                    seen += os.read(ours, 1 << 16)
                elif after.encode() in seen:
                    if not typed or prompt.encode() not in seen[typed:]:
                        typed = len(seen)
                        os.write(ours, prompt.encode())
                        time.sleep(0.5)
                    os.write(ours, b"\r")
            assert upstream.conversation, seen[-2000:].decode("utf-8", "replace")
        finally:
            client.kill()
            client.wait()
            os.close(ours)


def install(version: str = VERSION) -> Path:
    """The binary of one version, installed from npm if it is not there yet."""
    with npm.place("gemini-cli", version) as folder:
        binary = folder / "node_modules" / ".bin" / "gemini"
        if not _works(binary):
            npm.install(folder, PACKAGE, version, "--omit=optional", "--ignore-scripts")
            assert _works(binary), f"{binary} does not run"
    return binary


def _works(binary: Path) -> bool:
    return binary.exists() and (binary.parent.parent / PACKAGE / "package.json").exists()
