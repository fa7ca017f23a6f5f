"""`cutline run claude` with the real client, headless, against the scripted provider. Law: a home of its own, loopback.

What is checked of every run, whatever it does, stands here too: what was sent is a cut of the history, in order.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import claude
from .upstream import Block, Recorded, Upstream

HANDOFF, RECALL, SAY = (f"mcp__cutline__{name}" for name in ("micro_handoff", "recall", "say"))
DOCUMENT: dict[str, Any] = {"done": "the first part", "open": "the second", "went_wrong": "nothing"}
OLDER, BOUND = "claude-sonnet-4-5", "claude-opus-5-5"


@dataclass(frozen=True, slots=True)
class Ran:
    """How a run ended: exit code, what the client printed, what Cutline reported."""

    code: int
    stdout: str
    stderr: str

    @property
    def report(self) -> dict[str, Any]:
        """The wire report, as JSON."""
        line = next(line for line in reversed(self.stderr.splitlines()) if line.startswith("{"))
        found: dict[str, Any] = json.loads(line)
        return found

    @property
    def session(self) -> dict[str, Any]:
        """The report's one session."""
        (found,) = self.report["sessions"]
        return found

    @property
    def result(self) -> dict[str, Any]:
        """The one JSON object that the client prints at its end."""
        found: dict[str, Any] = json.loads(self.stdout)
        return found


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
    def make(cls, root: Path, version: str = claude.VERSION) -> Home:
        """A new home; the client is installed if it is not there yet."""
        binary = claude.install(version)
        for name in ("home", "config", "project"):
            (root / name).mkdir(parents=True)
        return cls(root, binary)

    @property
    def project(self) -> Path:
        """The working directory."""
        return self.root / "project"

    @property
    def config(self) -> Path:
        """The client's configuration."""
        return self.root / "config"

    @property
    def record(self) -> Path:
        """The record's file."""
        return self.root / "home" / ".local" / "share" / "cutline" / "record.db"

    def environment(self, url: str, **more: str) -> dict[str, str]:
        """The environment of a run: nothing of the user's but the PATH."""
        return {
            "PATH": f"{self.binary.parent}:{os.environ['PATH']}",
            "HOME": str(self.root / "home"),
            "TMPDIR": str(self.root),
            "CLAUDE_CONFIG_DIR": str(self.config),
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "dummy",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            **more,
        }

    def run(
        self,
        upstream: Upstream,
        prompt: str,
        *arguments: str,
        model: str = OLDER,
        flags: tuple[str, ...] = (),
        allowed: str = "Bash,Read,Edit,Write,Agent,Task",
        wait_s: float = 150,
        **environment: str,
    ) -> Ran:
        """`cutline run FLAGS claude -p PROMPT ARGUMENTS`, to its end."""
        client = ["claude", "-p", prompt, "--model", model, "--output-format", "json", "--allowedTools", allowed]
        return self.cutline(upstream.url, "run", "--json", *flags, *client, *arguments, wait_s=wait_s, **environment)

    def cutline(self, url: str, *arguments: str, wait_s: float = 150, **environment: str) -> Ran:
        """Any command of Cutline in this home."""
        return self._end([sys.executable, "-P", "-m", "cutline", *arguments], url, wait_s, environment)

    def plain(self, upstream: Upstream, prompt: str, *arguments: str, model: str = OLDER, **environment: str) -> Ran:
        """The client without Cutline."""
        command = [str(self.binary), "-p", prompt, "--model", model, "--output-format", "json"]
        command += ["--allowedTools", "Bash,Read,Edit,Write", *arguments]
        return self._end(command, upstream.url, 150, environment)

    def _end(self, command: list[str], url: str, wait_s: float, environment: dict[str, str]) -> Ran:
        done = subprocess.run(
            command,
            cwd=self.project,
            env=self.environment(url, **environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=wait_s,
            check=False,
        )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


def bare(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Messages as a provider compares them: without cache marks, a string as its one text."""
    out = []
    for message in messages:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        out.append({**message, "content": [_unmarked(block) for block in blocks]})
    return out


def _unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _unmarked(held) for key, held in value.items() if key != "cache_control"}
    return [_unmarked(held) for held in value] if isinstance(value, list) else value


def blocks(messages: list[dict[str, Any]], kind: str) -> list[Block]:
    """All blocks of a type, in order."""
    return [block for message in bare(messages) for block in message["content"] if block["type"] == kind]


def said(messages: list[dict[str, Any]]) -> str:
    """All text blocks of the agent, one behind the other."""
    return "\n".join(
        block["text"]
        for message in bare(messages)
        if message["role"] == "assistant"
        for block in message["content"]
        if block["type"] == "text"
    )


def weight(request: Recorded) -> int:
    """Bytes of a request's messages."""
    return len(json.dumps(request.messages, ensure_ascii=False).encode())


def shared(one: Recorded, two: Recorded) -> int:
    """How many messages from the start are the same in two requests."""
    count = 0
    for left, right in zip(bare(one.messages), bare(two.messages), strict=False):
        if left != right:
            break
        count += 1
    return count


def result_of(messages: list[dict[str, Any]], id_: str) -> str:
    """The text of a call's result."""
    for block in blocks(messages, "tool_result"):
        if block["tool_use_id"] == id_:
            content = block["content"]
            return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)
    raise AssertionError(f"no result of {id_}")
