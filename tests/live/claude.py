"""The real Claude Code, driven without a terminal. Law: its own home, a dummy key, an upstream on loopback.

It is installed from npm into the user's cache, outside of the repository, once for each version. A test is
skipped only where npm does not answer; any other fault is the test's failure.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import npm

PACKAGE = "@anthropic-ai/claude-code"
VERSION = os.environ.get("CUTLINE_CLAUDE_CODE") or "2.1.332"
"""The version that docs/claude-code-sessions.md speaks of; CUTLINE_CLAUDE_CODE names another one."""

_MODEL = "claude-sonnet-4-5"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one run ended: exit code, and what it printed."""

    code: int
    stdout: str
    stderr: str

    @property
    def result(self) -> dict[str, Any]:
        """The one JSON object that the client prints at the end."""
        found: dict[str, Any] = json.loads(self.stdout)
        return found


@dataclass(frozen=True, slots=True)
class Claude:
    """An installed client, pointed at an upstream.

    Attributes:
        binary: what is run.
        url: the upstream's base URL.
        model: the model that is asked for.
        environment: set besides what every run gets.
    """

    binary: Path
    url: str
    model: str = _MODEL
    environment: dict[str, str] = field(default_factory=dict)

    def run(self, prompt: str, cwd: Path, config_dir: Path, *options: str) -> Outcome:
        """Give the client one prompt in `cwd` and wait for its end."""
        environment = self.variables(config_dir)
        command = [str(self.binary), "-p", prompt, "--model", self.model, "--output-format", "json"]
        command += ["--allowedTools", "Bash,Read,mcp__cutline__micro_handoff", *options]
        done = subprocess.run(
            command,
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=npm.RUNS_S,
            check=False,
        )
        return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())

    def variables(self, config_dir: Path) -> dict[str, str]:
        """The environment of a run: nothing of the user's but the PATH."""
        home = config_dir.parent / "home"
        home.mkdir(parents=True, exist_ok=True)
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "CLAUDE_CONFIG_DIR": str(config_dir),
            "ANTHROPIC_BASE_URL": self.url,
            "ANTHROPIC_API_KEY": "dummy",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_AUTO_COMPACT": "1",
            **self.environment,
        }

    def resume(self, session_id: str, prompt: str, cwd: Path, config_dir: Path, *options: str) -> Outcome:
        """Go on in a session with one more prompt."""
        return self.run(prompt, cwd, config_dir, "--resume", session_id, *options)


def sessions(config_dir: Path, cwd: Path) -> list[Path]:
    """The session files of a working directory."""
    return sorted(project(config_dir, cwd).glob("*.jsonl"))


def project(config_dir: Path, cwd: Path) -> Path:
    """The folder that holds them; for directories whose path is plain ASCII and no longer than 200 characters."""
    return config_dir / "projects" / re.sub(r"[^A-Za-z0-9]", "-", os.path.realpath(cwd))


def install(version: str = VERSION) -> Path:
    """The binary of one version, installed from npm if it is not there yet."""
    with npm.place("claude-code", version) as folder:
        binary = folder / "node_modules" / ".bin" / "claude"
        if not npm.works([binary]):
            npm.install(folder, PACKAGE, version)
            if not npm.works([binary]):  # npm was told to run no scripts: the package's own one puts it in place
                package = folder / "node_modules" / PACKAGE
                subprocess.run(["node", "install.cjs"], cwd=package, timeout=npm.INSTALLS_S, check=True)
            assert npm.works([binary]), f"{binary} does not run"
    return binary
