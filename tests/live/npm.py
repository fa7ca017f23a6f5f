"""Clients from npm: installed once into a cache, by one worker at a time; where npm does not answer, the test skips."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

ANSWERS_S, INSTALLS_S, RUNS_S = 30, 420, 120
_QUIET = ("--no-audit", "--no-fund")

# An MCP server with one tool, as a client starts it: lines of JSON-RPC on standard input and output.
SERVER = """
import json, sys
TOOL = {"name": "micro_handoff", "description": "A checkpoint.", "inputSchema": {"type": "object"}}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    method, found = asked["method"], {}
    if method == "initialize":
        found = {
            "protocolVersion": asked["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "cutline", "version": "0"},
        }
    elif method == "tools/list":
        found = {"tools": [TOOL]}
    elif method == "tools/call":
        found = {"content": [{"type": "text", "text": "checkpoint stored"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": found}), flush=True)
"""


@contextmanager
def place(client: str, version: str) -> Iterator[Path]:
    """The folder that one version of a client is installed in, which no other worker touches meanwhile."""
    if shutil.which("npm") is None:
        pytest.skip("npm does not answer: it is not on PATH")
    base = os.environ.get("XDG_CACHE_HOME")
    folder = (Path(base) if base else Path.home() / ".cache") / "cutline-tests" / client / version
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:  # parallel workers install once
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


def works(command: Sequence[str | Path], env: Mapping[str, str] | None = None) -> bool:
    """Whether a command is there and says its version."""
    if not all(Path(part).exists() for part in command):
        return False
    try:
        done = subprocess.run([*command, "--version"], env=env, capture_output=True, timeout=RUNS_S, check=False)
    except OSError:
        return False
    return done.returncode == 0


def install(folder: Path, package: str, version: str, *options: str) -> None:
    """Install a package; where npm fails, say whether it answers at all."""
    try:
        command = ["npm", "install", *_QUIET, *options, "--prefix", str(folder), f"{package}@{version}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALLS_S, check=False)
        if done.returncode == 0:
            return
        said = done.stderr.strip()[-500:]
    except subprocess.TimeoutExpired:
        said = f"no end within {INSTALLS_S} s"
    try:
        asked = ["npm", "view", package, "version", "--fetch-retries=0"]
        alive = subprocess.run(asked, capture_output=True, timeout=ANSWERS_S, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        alive = False
    if not alive:
        pytest.skip(f"npm does not answer: {said}")
    pytest.fail(f"npm answers, but does not install {package}: {said}")
