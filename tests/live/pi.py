"""The real pi, driven without a terminal, and a scripted upstream for its wire (OpenAI Chat Completions).

Law: a home of its own, a dummy key, loopback only. The client is installed from npm into the user's cache, outside of
the repository, once for each version, with a Node.js that is new enough where the one on PATH is not. A test is skipped
only where npm does not answer; any other fault is the test's failure.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from . import npm
from .chat import MODEL, Outcome, Upstream

PACKAGE = "@earendil-works/pi-coding-agent"
VERSION = os.environ.get("CUTLINE_PI") or "1.6.0"
"""The version that docs/pi-sessions.md speaks of; CUTLINE_PI names another one."""

_NODE = "22.23.3"
_NODE_NEEDED = (22, 19)


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
            timeout=npm.RUNS_S,
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
        server.write_text(npm.SERVER)
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
    with npm.place("pi", version) as folder:
        binary = folder / "node_modules" / ".bin" / "pi"
        command = (*_node(folder), str(binary))
        if not npm.works(command):
            npm.install(folder, PACKAGE, version)
            assert npm.works(command), f"{binary} does not run"
    return command


def _node(folder: Path) -> tuple[str, ...]:
    """A Node.js that is new enough: none where the one on PATH is, else its binary from npm."""
    found = shutil.which("node")
    if found:
        said = subprocess.run(
            [found, "--version"], capture_output=True, text=True, timeout=npm.RUNS_S, check=False
        ).stdout
        numbers = re.match(r"v(\d+)\.(\d+)", said)
        if numbers and (int(numbers[1]), int(numbers[2])) >= _NODE_NEEDED:
            return ()
    machine = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    package = f"node-{sys.platform}-{machine}"
    binary = folder / "node_modules" / package / "bin" / "node"
    if not npm.works([binary]):
        npm.install(folder, package, _NODE)
        assert npm.works([binary]), f"{binary} does not run"
    return (str(binary),)
