"""`cutline run gemini` with the real client, headless, against the scripted provider. Law: a home of its own, loopback."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from validators import gemini as validator

from . import gemini_cli
from .gemini_cli import MODEL, Content, Part, Upstream
from .run import Ran

HANDOFF, RECALL, SAY = (f"mcp_cutline_{name}" for name in ("micro_handoff", "recall", "say"))
DOCUMENT: dict[str, Any] = {"done": "the first part", "open": "the second", "went_wrong": "nothing"}


def upstream(script: Sequence[list[Part]] | Callable[[dict[str, Any]], list[Part]]) -> Upstream:
    """A provider that refuses what Gemini's API would.

    But for the client's own look for loops, which from the thirtieth turn on sends the last twenty contents as they
    stand, a call without its response among them.
    """

    def refuses(path: str, body: dict[str, Any]) -> str:
        if not body.get("tools"):
            return ""
        named = re.search(r"/models/([^:/]+):", path)
        return "; ".join(validator.faults(body, model=named[1] if named else MODEL))

    return Upstream(script, refuses)


@dataclass(frozen=True, slots=True)
class Home:
    """A user's home with a project, and the client installed.

    Attributes:
        root: the folder of all of it.
        client: the client's home and working directory.
        binary: the client.
    """

    root: Path
    client: gemini_cli.Home
    binary: Path

    @classmethod
    def make(cls, root: Path, **settings: Any) -> Home:
        """A new home, with an API key as the way to log in; the client is installed if it is not there yet."""
        binary = gemini_cli.install()
        client = gemini_cli.Home(root / "home", root / "project")
        for folder in (client.root, client.cwd):
            folder.mkdir(parents=True)
        client.settle(**settings)
        return cls(root, client, binary)

    @property
    def project(self) -> Path:
        """The working directory."""
        return self.client.cwd

    @property
    def record(self) -> Path:
        """The record's file."""
        return self.client.root / ".local" / "share" / "cutline" / "record.db"

    def environment(self, url: str, **more: str) -> dict[str, str]:
        """The environment of a run: nothing of the user's but the PATH."""
        known = self.client.variables(url)
        return {**known, "PATH": f"{self.binary.parent}:{os.environ['PATH']}", "TMPDIR": str(self.root), **more}

    def run(
        self,
        provider: Upstream,
        prompt: str,
        *arguments: str,
        flags: tuple[str, ...] = (),
        wait_s: float = 150,
        **environment: str,
    ) -> Ran:
        """`cutline run FLAGS gemini -p PROMPT ARGUMENTS`, to its end."""
        client = ["gemini", "-y", "--skip-trust", "-m", MODEL, "--output-format", "json", *arguments, "-p", prompt]
        return self.cutline(provider.url, "run", "--json", *flags, *client, wait_s=wait_s, **environment)

    def cutline(self, url: str, *arguments: str, wait_s: float = 150, **environment: str) -> Ran:
        """Any command of Cutline in this home."""
        done = subprocess.run(
            [sys.executable, "-P", "-m", "cutline", *arguments],
            cwd=self.project,
            env=self.environment(url, **environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=wait_s,
            check=False,
        )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


def weight(body: dict[str, Any]) -> int:
    """Bytes of a request's history."""
    return len(json.dumps(body["contents"], ensure_ascii=False).encode())


def offered(body: dict[str, Any]) -> list[str]:
    """The names of the tools that a request offers."""
    return [one["name"] for tool in body["tools"] for one in tool["functionDeclarations"]]


def shared(one: dict[str, Any], two: dict[str, Any]) -> int:
    """How many contents from the start are the same in two requests."""
    count = 0
    for left, right in zip(one["contents"], two["contents"], strict=False):
        if left != right:
            break
        count += 1
    return count


def parts(contents: list[Content], kind: str) -> list[Any]:
    """All of a kind of part (`text`, `functionCall` …), in order, its content alone."""
    return [part[kind] for content in contents for part in content["parts"] if kind in part]


def said(contents: list[Content]) -> str:
    """All words of the agent, one behind the other."""
    return "\n".join(
        part["text"]
        for content in contents
        if content["role"] == "model"
        for part in content["parts"]
        if "text" in part and not part.get("thought")
    )


def result_of(contents: list[Content], name: str, number: int = -1) -> str:
    """The text of one of a tool's results."""
    found = [response for response in parts(contents, "functionResponse") if response["name"] == name][number]
    return str(found["response"].get("output", found["response"]))
