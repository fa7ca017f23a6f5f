"""The real opencode, driven without a terminal, and a scripted upstream for its wire (OpenAI Chat Completions).

Law: a home of its own, a dummy key, loopback only. The client is installed from npm into the user's cache, outside of
the repository, once for each version. A test is skipped only where npm does not answer; any other fault is the test's
failure.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import npm
from .chat import MODEL, WINDOW, Answer, Outcome, Upstream

PACKAGE = "opencode-ai"
VERSION = os.environ.get("CUTLINE_OPENCODE") or "1.18.33"
"""The version that docs/opencode-sessions.md speaks of; CUTLINE_OPENCODE names another one."""

FILES_VERSION = "1.1.65"
"""The last version that kept JSON files instead of a database."""


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
            timeout=npm.RUNS_S,
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
        server.write_text(npm.SERVER)
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
    with npm.place("opencode", version) as folder:
        binary = _binary(folder)
        if binary is None:
            npm.install(folder, PACKAGE, version)
            binary = _binary(folder)
            assert binary is not None, f"no binary in {folder} runs"
    return binary


def _binary(folder: Path) -> Path | None:
    """The binary itself: the package's own command is a script that looks for it."""
    found = sorted(folder.glob("node_modules/opencode-*-*/bin/opencode"))
    return next((path for path in found if npm.works([path])), None)


def provider(script: Sequence[Answer] | Callable[[dict[str, Any]], Answer]) -> Upstream:
    """A provider for this client, which asks for a title, and for its summary, in requests without tools."""
    made = Upstream(script)
    made.aside = "A title"
    return made
