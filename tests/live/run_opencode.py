"""`cutline run opencode` with the real client, headless, against the scripted provider. Law: a home of its own, loopback.

Providers stand in the home's own opencode.json, as a user's would. How a body of Chat Completions is read and refused
stands in `run_pi`, whose tools bear the same names.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from . import npm, opencode
from .chat import MODEL, WINDOW, Answer
from .run import Ran
from .run_pi import Upstream

COMPATIBLE = "@ai-sdk/openai-compatible"


@dataclass(frozen=True, slots=True)
class Home:
    """A user's home with a project, and the client installed.

    Attributes:
        root: the folder of all of it.
        client: the client, with its home and working directory.
    """

    root: Path
    client: opencode.Opencode

    @classmethod
    def make(cls, root: Path) -> Home:
        """A new home, in which the client was once before; the client is installed if it is not there yet."""
        client = opencode.client(root / "home", root / "project")
        (client.cwd / "rows.txt").write_text("".join(f"row {number}\n" for number in range(800)))
        (client.cwd / "few.txt").write_text("one\ntwo\n")
        home = cls(root, client)
        # What it fetches from npm by itself at its first start, where a plugin makes it wait for that.
        (home.config / "node_modules").mkdir(parents=True)
        locked = {"": {"dependencies": {"@opencode-ai/plugin": opencode.VERSION}}}
        (home.config / "package-lock.json").write_text(json.dumps({"packages": locked}))
        return home

    @property
    def config(self) -> Path:
        """The client's own folder."""
        return self.client.home / ".config" / "opencode"

    @property
    def project(self) -> Path:
        """The working directory."""
        return self.client.cwd

    @property
    def record(self) -> Path:
        """The record's file."""
        return self.client.home / ".local" / "share" / "cutline" / "record.db"

    def settle(
        self,
        url: str,
        package: str = COMPATIBLE,
        model: str = MODEL,
        *,
        window: int = WINDOW,
        name: str = "scripted",
        **settings: Any,
    ) -> None:
        """Write the user's own configuration, with the provider as one of their own."""
        limit = {"context": window, "output": 8_000}
        known = {"name": model, "reasoning": True, "tool_call": True, "attachment": True, "limit": limit}
        provider = {"npm": package, "options": {"baseURL": url, "apiKey": "dummy"}, "models": {model: known}}
        written = {
            "$schema": "https://opencode.ai/config.json",  # else the client puts it there by itself
            "model": f"{name}/{model}",
            "provider": {name: provider},
            "permission": {"bash": "allow"},
            "share": "disabled",
            "autoupdate": False,
            **settings,
        }
        (self.config / "opencode.json").write_text(json.dumps(written))

    def environment(self, **more: str) -> dict[str, str]:
        """The environment of a run: nothing of the user's but the PATH."""
        path = f"{self.client.binary.parent}:{os.environ['PATH']}"
        return {**self.client.variables(), "PATH": path, "TMPDIR": str(self.root), **more}

    def run(
        self,
        upstream: Upstream,
        prompt: str,
        *arguments: str,
        flags: Sequence[str] = (),
        settings: dict[str, Any] | None = None,
        **environment: str,
    ) -> Ran:
        """`cutline run FLAGS opencode run ARGUMENTS PROMPT`, to its end."""
        self.settle(upstream.url, **(settings or {}))
        client = ["opencode", "run", "--format", "json", *arguments, prompt]
        return self.cutline("run", "--json", *flags, *client, **environment)

    def cutline(self, *arguments: str, **environment: str) -> Ran:
        """Any command of Cutline in this home."""
        return self._end([sys.executable, "-P", "-m", "cutline", *arguments], environment)

    def plain(self, upstream: Upstream, prompt: str, *arguments: str) -> Ran:
        """The client without Cutline."""
        self.settle(upstream.url)
        return self._end([str(self.client.binary), "run", "--format", "json", *arguments, prompt], {})

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


def provider(script: Any, full: int = 0) -> Upstream:
    """A strict provider of Chat Completions, which answers titles and summaries beside its script.

    Args:
        script: what the model answers.
        full: the request, counted from 1, whose answer says that the context is nearly full.
    """
    made = Upstream(script)
    made.aside, made.full = "All is well.", full
    return made


def bash(call_id: str, command: str, text: str) -> Answer:
    """A call of the client's shell."""
    return Answer(text, [(call_id, "bash", {"command": command, "description": "a step"})])


def look(call_id: str, path: str = "rows.txt") -> Answer:
    """A call of the client's shell, narrated."""
    text = f"I run `cat {path}` for {call_id}, because its row 5 matters; I expect row 799 at its end."
    return bash(call_id, f"cat {path}", text)


def silent(answer: Answer) -> Answer:
    """The same without a word."""
    return replace(answer, text="")
