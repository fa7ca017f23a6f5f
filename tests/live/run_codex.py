"""`cutline run codex` with the real client, headless, against the scripted provider. Law: a home of its own, loopback.

The provider refuses what the real one refuses of a body (tests/validators), and an item of an answer whose reasoning
is gone. Its address stands in the home's own config.toml, as a user's would.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from validators import openai_responses

from . import codex, npm
from .codex import Answer, Item
from .run import Ran

NAMESPACE = "mcp__cutline"
DIRECT, SCRIPTED = "gpt-5.5", "gpt-6.2-sol"
"""A model that calls tools, and one that calls them from within a script: the client knows which does what."""


class Upstream(codex.Upstream):
    """The provider, strict."""

    def __init__(self, script: Sequence[Answer] = (), input_tokens: Sequence[int] = (1_000,)) -> None:
        super().__init__(script, input_tokens)
        self._given: list[Item] = []

    def answer(self, body: dict[str, Any]) -> tuple[list[Item], str]:
        """As the plain one's, with all rules."""
        found = openai_responses.faults(body)
        found = found or openai_responses.faults_of_a_cut({"input": self._given}, body)
        if found:
            self.bodies.append(body)
            self.refusals.append(found[0])
            return [], found[0]
        items, fault = super().answer(body)
        self._given += [*items, codex.said("", role="user")]  # an answer's reasoning led to this answer's items only
        return items, fault


@dataclass(frozen=True, slots=True)
class Home:
    """A user's home with a project, and the client installed.

    Attributes:
        root: the folder of all of it.
        binary: the client.
    """

    root: Path
    binary: Path

    @classmethod
    def make(cls, root: Path, version: str = codex.VERSION) -> Home:
        """A new home; the client is installed if it is not there yet."""
        binary = codex.install(version)
        for name in ("home", "codex", "project"):
            (root / name).mkdir(parents=True)
        return cls(root, binary)

    @property
    def project(self) -> Path:
        """The working directory."""
        return self.root / "project"

    @property
    def config(self) -> Path:
        """The client's own folder."""
        return self.root / "codex"

    @property
    def record(self) -> Path:
        """The record's file."""
        return self.root / "home" / ".local" / "share" / "cutline" / "record.db"

    def settle(self, url: str, *lines: str) -> None:
        """Write the user's own configuration."""
        (self.config / "config.toml").write_text("\n".join((f'openai_base_url = "{url}"', *lines)) + "\n")

    def environment(self, **more: str) -> dict[str, str]:
        """The environment of a run: nothing of the user's but the PATH."""
        return {
            "PATH": f"{self.binary.parent}:{os.environ['PATH']}",
            "HOME": str(self.root / "home"),
            "CODEX_HOME": str(self.config),
            "CODEX_API_KEY": "dummy",
            **more,
        }

    def run(
        self,
        upstream: codex.Upstream,
        prompt: str,
        *arguments: str,
        model: str = DIRECT,
        flags: Sequence[str] = (),
        settle: bool = True,
        **environment: str,
    ) -> Ran:
        """`cutline run FLAGS codex exec ARGUMENTS PROMPT`, to its end."""
        if settle:
            self.settle(upstream.url)
        client = ["codex", "exec", "--json", "--skip-git-repo-check", "-m", model]
        client.append("--dangerously-bypass-approvals-and-sandbox")
        return self.cutline("run", "--json", *flags, *client, *arguments, prompt, **environment)

    def cutline(self, *arguments: str, **environment: str) -> Ran:
        """Any command of Cutline in this home."""
        return self._end([sys.executable, "-P", "-m", "cutline", *arguments], environment)

    def plain(self, upstream: codex.Upstream, prompt: str, *arguments: str, model: str = DIRECT) -> Ran:
        """The client without Cutline."""
        self.settle(upstream.url)
        command = [str(self.binary), "exec", "--json", "--skip-git-repo-check", "-m", model]
        return self._end([*command, "--dangerously-bypass-approvals-and-sandbox", *arguments, prompt], {})

    def _end(self, command: list[str], environment: dict[str, str]) -> Ran:
        done = subprocess.run(
            command,
            cwd=self.project,
            env=self.environment(**environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=npm.RUNS_S,
            check=False,
        )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


def cutlines(call_id: str, name: str, **arguments: Any) -> Item:
    """A call of one of Cutline's tools."""
    return codex.call(call_id, name, NAMESPACE, **arguments)


def script(call_id: str, source: str) -> Item:
    """A call of a model that calls the client's tools from within a script."""
    item = {"type": "custom_tool_call", "id": f"ctc_{call_id}", "call_id": call_id, "name": "exec"}
    return {**item, "namespace": "functions", "input": source, "status": "completed"}


def kinds(body: dict[str, Any]) -> list[str]:
    """The items' types, in order."""
    return [item["type"] for item in body["input"]]


def calls(body: dict[str, Any]) -> list[str]:
    """The names of the calls, in order."""
    return [item["name"] for item in body["input"] if item["type"].endswith("_call")]


def texts(body: dict[str, Any], role: str) -> str:
    """All words of a role, one behind the other."""
    return "\n".join(
        part["text"]
        for item in body["input"]
        if item["type"] == "message" and item["role"] == role
        for part in item["content"]
        if "text" in part
    )


def output(body: dict[str, Any], call_id: str) -> str:
    """The text of a call's result."""
    for item in body["input"]:
        if item["type"].endswith("_output") and item["call_id"] == call_id:
            held = item["output"]
            return held if isinstance(held, str) else "\n".join(part.get("text", "") for part in held)
    raise AssertionError(f"no output of {call_id}")


def weight(body: dict[str, Any]) -> int:
    """Bytes of a request's history: its items without the client's own instructions."""
    return len(json.dumps(body["input"][given(body) :], ensure_ascii=False).encode())


def given(body: dict[str, Any]) -> int:
    """How many items stand before the human's first: what the client tells by itself."""
    roles = [item.get("role") for item in body["input"]]
    return next(n for n, role in enumerate(roles) if role == "assistant") - 1 if "assistant" in roles else 0


def shared(one: dict[str, Any], two: dict[str, Any]) -> int:
    """How many items from the start are the same in two requests."""
    count = 0
    for left, right in zip(one["input"], two["input"], strict=False):
        if left != right:
            break
        count += 1
    return count
