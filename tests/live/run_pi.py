"""`cutline run pi` with the real client, headless, against the scripted provider. Law: a home of its own, loopback.

The provider refuses what the real ones refuse of a body (tests/validators). Its address stands in the home's own
models.json, as a user's would.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from validators import openai_chat

from . import chat, npm, pi
from .chat import MODEL, Answer, Message
from .run import Ran

HANDOFF, RECALL, SAY = (f"cutline_{name}" for name in ("micro_handoff", "recall", "say"))
DOCUMENT: dict[str, Any] = {"done": "the first part", "open": "the second", "went_wrong": "nothing"}


class Upstream(chat.Upstream):
    """The provider, strict.

    Attributes:
        headers: of every request, by lower-case name.
    """

    def __init__(self, *script: Any) -> None:
        super().__init__(*script)
        self.headers: list[dict[str, str]] = []

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        upstream = self

        class Handler(super()._handler()):  # type: ignore[misc]
            def do_POST(self) -> None:
                upstream.headers.append({name.lower(): value for name, value in self.headers.items()})
                super().do_POST()

        return Handler

    def _take(self, body: dict[str, Any]) -> tuple[int, bytes]:
        found = openai_chat.faults(body)
        if not found:
            return super()._take(body)
        self.requests.append(body)
        self.faults.append(found[0])
        return 400, json.dumps({"error": {"message": found[0], "type": "invalid_request_error"}}).encode()


@dataclass(frozen=True, slots=True)
class Home:
    """A user's home with a project, and the client installed.

    Attributes:
        root: the folder of all of it.
        client: the client, with its home and working directory.
    """

    root: Path
    client: pi.Pi

    @classmethod
    def make(cls, root: Path) -> Home:
        """A new home; the client is installed if it is not there yet."""
        client = pi.client(root / "home", root / "project")
        client.agent.mkdir(parents=True)
        binary = root / "bin" / "pi"
        binary.parent.mkdir()
        binary.write_text("#!/bin/sh\nexec " + " ".join(f"'{part}'" for part in client.command) + ' "$@"\n')
        binary.chmod(0o755)
        (client.cwd / "rows.txt").write_text("".join(f"row {number}\n" for number in range(800)))
        (client.cwd / "few.txt").write_text("one\ntwo\n")
        return cls(root, client)

    @property
    def project(self) -> Path:
        """The working directory."""
        return self.client.cwd

    @property
    def record(self) -> Path:
        """The record's file."""
        return self.client.home / ".local" / "share" / "cutline" / "record.db"

    def settle(self, url: str, window: int = 1_000_000, **settings: Any) -> None:
        """Write the user's own settings, with the provider as one of their own."""
        model = {"id": MODEL, "contextWindow": window, "maxTokens": 1_000, "input": ["text", "image"]}
        provider = {"baseUrl": url, "api": "openai-completions", "apiKey": "dummy", "models": [model]}
        (self.client.agent / "models.json").write_text(json.dumps({"providers": {"scripted": provider}}))
        (self.client.agent / "settings.json").write_text(json.dumps(settings))

    def environment(self, **more: str) -> dict[str, str]:
        """The environment of a run: nothing of the user's but the PATH."""
        known = self.client.variables()
        return {**known, "PATH": f"{self.root / 'bin'}:{os.environ['PATH']}", "TMPDIR": str(self.root), **more}

    def run(
        self,
        upstream: chat.Upstream,
        prompt: str,
        *arguments: str,
        flags: Sequence[str] = (),
        window: int = 1_000_000,
        settings: dict[str, Any] | None = None,
        **environment: str,
    ) -> Ran:
        """`cutline run FLAGS pi ARGUMENTS -p PROMPT`, to its end."""
        self.settle(upstream.url, window, **(settings or {}))
        client = ["pi", "--model", f"scripted/{MODEL}", "--mode", "json", *arguments, "-p", prompt]
        return self.cutline("run", "--json", *flags, *client, **environment)

    def cutline(self, *arguments: str, **environment: str) -> Ran:
        """Any command of Cutline in this home."""
        done = subprocess.run(
            [sys.executable, "-P", "-m", "cutline", *arguments],
            cwd=self.project,
            env=self.environment(**environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=npm.RUNS_S,
            check=False,
        )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    def talk(self, *commands: dict[str, Any], **environment: str) -> Ran:
        """`cutline run pi` as a program drives it: one command after the other, each to its end."""
        with subprocess.Popen(
            [sys.executable, "-P", "-m", "cutline", "run", "--json", "pi", "--mode", "rpc"],
            cwd=self.project,
            env=self.environment(**environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as run:
            assert run.stdin is not None and run.stdout is not None
            told: list[bytes] = []
            for command in commands:
                run.stdin.write(json.dumps(command).encode() + b"\n")
                run.stdin.flush()
                for line in run.stdout:
                    told.append(line)
                    event = json.loads(line)
                    if event["type"] == "response":
                        assert event["success"], event
                    if event["type"] == ("agent_settled" if command["type"] == "prompt" else "response"):
                        break
            out, err = run.communicate(timeout=npm.RUNS_S)
        return Ran(run.returncode, (b"".join(told) + out).decode(), err.decode())


def calls(messages: Sequence[Message]) -> list[tuple[str, str, dict[str, Any]]]:
    """All calls, as (id, name, arguments), in order."""
    return [
        (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
        for message in messages
        for call in message.get("tool_calls") or ()
    ]


def names(body: dict[str, Any]) -> list[str]:
    """The names of a request's calls, in order."""
    return [name for _, name, _ in calls(body["messages"])]


def words(message: Message) -> str:
    """A message's text."""
    content = message.get("content") or ""
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


def said(body: dict[str, Any]) -> str:
    """All words of the agent, one behind the other, those that it made the say tool carry with them."""
    spoken = [given["text"] for _, name, given in calls(body["messages"]) if name == SAY]
    return "\n".join([*(words(one) for one in body["messages"] if one["role"] == "assistant"), *spoken])


def result(body: dict[str, Any], call_id: str) -> str:
    """The text of a call's result."""
    (found,) = (one for one in body["messages"] if one["role"] == "tool" and one["tool_call_id"] == call_id)
    return words(found)


def offered(body: dict[str, Any]) -> list[str]:
    """The names of the tools that a request offers."""
    return [tool["function"]["name"] for tool in body["tools"]]


def system(body: dict[str, Any]) -> str:
    """The client's own instructions."""
    return "\n".join(words(one) for one in body["messages"] if one["role"] in ("system", "developer"))


def history(body: dict[str, Any]) -> list[Message]:
    """A request's messages without the client's own instructions in front."""
    return [one for one in body["messages"] if one["role"] not in ("system", "developer")]


def weight(body: dict[str, Any]) -> int:
    """Bytes of a request's history."""
    return len(json.dumps(history(body), ensure_ascii=False).encode())


def shared(one: dict[str, Any], two: dict[str, Any]) -> int:
    """How many messages from the start are the same in two requests."""
    count = 0
    for left, right in zip(one["messages"], two["messages"], strict=False):
        if left != right:
            break
        count += 1
    return count


def look(call_id: str, path: str = "rows.txt") -> Answer:
    """A call of the client's shell, narrated."""
    text = f"I run `cat {path}` for {call_id}, because its row 5 matters; I expect row 799 at its end."
    return Answer(text, [(call_id, "bash", {"command": f"cat {path}"})])


def hand(call_id: str, text: str = "rows.txt ends with row 799. A natural point.") -> Answer:
    """A checkpoint."""
    return Answer(text, [(call_id, HANDOFF, DOCUMENT)])
