"""The real GitHub Copilot CLI, driven without a terminal and without a login: it takes a provider of one's own.

Law: a home of its own, a dummy key, loopback only. The client is installed from npm into the user's cache, outside of
the repository, once for each version. A test is skipped only where npm does not answer; any other fault is the test's
failure. The scripted provider is pi's: both speak OpenAI Chat Completions.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from . import npm
from .chat import MODEL, Outcome, Upstream

PACKAGE = "@github/copilot"
VERSION = os.environ.get("CUTLINE_COPILOT_CLI") or "1.0.102"
"""The version that docs/copilot-cli-sessions.md speaks of; CUTLINE_COPILOT_CLI names another one."""


@dataclass(frozen=True, slots=True)
class Copilot:
    """An installed client with a home of its own.

    Attributes:
        binary: what is run.
        home: its home directory.
        cwd: the working directory.
    """

    binary: Path
    home: Path
    cwd: Path

    @property
    def state(self) -> Path:
        """Where it keeps sessions."""
        return self.home / ".copilot" / "session-state"

    @property
    def sessions(self) -> list[Path]:
        """The files of events of its sessions, the oldest first."""
        return sorted(self.state.glob("*/events.jsonl"), key=lambda path: path.stat().st_mtime)

    def variables(self, upstream: Upstream) -> dict[str, str]:
        """The environment of a run: nothing of the user's but the PATH."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "COPILOT_PROVIDER_BASE_URL": upstream.url,
            "COPILOT_PROVIDER_API_KEY": "dummy",
            "COPILOT_MODEL": MODEL,
            "COPILOT_OFFLINE": "true",
            "COPILOT_AUTO_UPDATE": "false",
        }

    def run(self, upstream: Upstream, *arguments: str) -> Outcome:
        """Run the client with a server that has the checkpoint tool, and wait for its end."""
        server = self.home / "server.py"
        server.write_text(npm.SERVER)
        tools = {"type": "local", "command": sys.executable, "args": [str(server)], "tools": ["*"]}
        given = json.dumps({"mcpServers": {"cutline": tools}})
        done = subprocess.run(
            [self.binary, *arguments, "--allow-all-tools", "--additional-mcp-config", given],
            cwd=self.cwd,
            env=self.variables(upstream),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=npm.RUNS_S,
            check=False,
        )
        return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())


def client(home: Path, cwd: Path, version: str = VERSION) -> Copilot:
    """The client, installed from npm if it is not there yet."""
    home.mkdir(parents=True, exist_ok=True)
    cwd.mkdir(parents=True, exist_ok=True)
    return Copilot(install(version), home, cwd)


def install(version: str = VERSION) -> Path:
    """The binary of one version, installed from npm if it is not there yet."""
    with npm.place("copilot-cli", version) as folder:
        binary = folder / "node_modules" / ".bin" / "copilot"
        known = {"PATH": os.environ["PATH"], "HOME": str(folder), "COPILOT_AUTO_UPDATE": "false"}
        if not npm.works([binary], known):
            npm.install(folder, PACKAGE, version)
            assert npm.works([binary], known), f"{binary} does not run"
    return binary
