"""The real GitHub Copilot CLI, driven without a terminal and without a login: it takes a provider of one's own.

Law: a home of its own, a dummy key, loopback only. The client is installed from npm into the user's cache, outside of
the repository, once for each version. A test is skipped only where npm does not answer; any other fault is the test's
failure. The scripted provider is pi's: both speak OpenAI Chat Completions.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from .pi import MODEL, SERVER, Outcome, Upstream

PACKAGE = "@github/copilot"
VERSION = os.environ.get("CUTLINE_COPILOT_CLI") or "1.0.102"
"""The version that docs/copilot-cli-sessions.md speaks of; CUTLINE_COPILOT_CLI names another one."""

_ANSWERS_S, _INSTALLS_S, _RUNS_S = 30, 420, 120


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
        server.write_text(SERVER)
        tools = {"type": "local", "command": sys.executable, "args": [str(server)], "tools": ["*"]}
        given = json.dumps({"mcpServers": {"cutline": tools}})
        done = subprocess.run(
            [self.binary, *arguments, "--allow-all-tools", "--additional-mcp-config", given],
            cwd=self.cwd,
            env=self.variables(upstream),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_RUNS_S,
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
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm does not answer: it is not on PATH")
    base = os.environ.get("XDG_CACHE_HOME")
    folder = (Path(base) if base else Path.home() / ".cache") / "cutline-tests" / "copilot-cli" / version
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:  # parallel workers install once
        fcntl.flock(lock, fcntl.LOCK_EX)
        binary = folder / "node_modules" / ".bin" / "copilot"
        if not _works(binary, folder):
            _npm(npm, "install", "--no-audit", "--no-fund", "--prefix", str(folder), f"{PACKAGE}@{version}")
            assert _works(binary, folder), f"{binary} does not run"
    return binary


def _works(binary: Path, home: Path) -> bool:
    if not binary.exists():
        return False
    known = {"PATH": os.environ["PATH"], "HOME": str(home), "COPILOT_AUTO_UPDATE": "false"}
    done = subprocess.run([binary, "--version"], env=known, capture_output=True, timeout=_RUNS_S, check=False)
    return done.returncode == 0


def _npm(npm: str, *arguments: str) -> None:
    """Run npm; where it fails, say whether it answers at all."""
    try:
        done = subprocess.run([npm, *arguments], capture_output=True, text=True, timeout=_INSTALLS_S, check=False)
        if done.returncode == 0:
            return
        said = done.stderr.strip()[-500:]
    except subprocess.TimeoutExpired:
        said = f"no end within {_INSTALLS_S} s"
    try:
        asked: Sequence[str] = [npm, "view", PACKAGE, "version", "--fetch-retries=0"]
        alive = subprocess.run(asked, capture_output=True, timeout=_ANSWERS_S, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        alive = False
    if not alive:
        pytest.skip(f"npm does not answer: {said}")
    pytest.fail(f"npm answers, but does not install {PACKAGE}: {said}")
