"""`cutline doctor`: what it looks at, what it says is missing, and that it leaves nothing behind."""

import contextlib
import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from click.testing import CliRunner

import commands
from cutline import mandate
from cutline.cli import cli
from cutline.events import Channels
from cutline.launch import doctor, start
from cutline.sessions import clients
from made import Session


@dataclass(frozen=True)
class Machine:
    """A home, a project, and programs that stand in for clients: each says a version."""

    root: Path

    def install(self, name: str, version: str) -> None:
        program = self.root / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\necho '{version} (stand-in)'\n")
        program.chmod(0o755)

    def __call__(self, *arguments: str, **environment: str) -> tuple[int, dict[str, Any]]:
        done = self.run(*arguments, "--json", **environment)
        told: dict[str, Any] = json.loads(done.stdout)
        return done.returncode, told

    def quick(self, *arguments: str, **environment: str) -> tuple[int, dict[str, Any]]:
        """The same in this process, with the tools there: their server takes a second to begin, each time."""
        (self.root / "work").mkdir(exist_ok=True)
        tools = [tool["name"] for tool in mandate.TOOLS]
        with (
            mock.patch.dict(os.environ, self.environment(environment), clear=True),
            mock.patch.object(doctor, "_listed", lambda here, environment: tools),
            contextlib.chdir(self.root / "work"),
        ):
            done = CliRunner().invoke(cli, ["doctor", *arguments, "--json"])
        return done.exit_code, json.loads(done.stdout)

    def environment(self, more: dict[str, str]) -> dict[str, str]:
        return {"HOME": str(self.root), "PATH": f"{self.root / 'bin'}:/bin:/usr/bin", "COLUMNS": "100", **more}

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        (self.root / "work").mkdir(exist_ok=True)
        done = commands.run("doctor", *arguments, cwd=self.root / "work", env=self.environment(environment))
        return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def states(told: dict[str, Any], client: str) -> dict[str, str]:
    return {one["name"]: one["state"] for one in told["clients"][client]}


def text(told: dict[str, Any], client: str, name: str) -> str:
    (found,) = (one for one in told["clients"][client] if one["name"] == name)
    return f"{found['text']} {found['advice']}".strip()


@pytest.mark.skipif(any(shutil.which(name, path="/bin:/usr/bin") for name in start.CLIENTS), reason="a client is there")
def test_where_no_client_is_installed_it_says_how(machine: Machine):
    done = machine.run()
    assert done.returncode == 2
    for one in start.CLIENTS.values():
        assert f"npm install -g {one.package}" in done.stdout
    code, told = machine("gemini")
    assert code == 2 and text(told, "gemini", "installed").endswith("npm install -g @google/gemini-cli")


def test_a_client_that_is_ready(machine: Machine):
    machine.install("gemini", "0.61.0")
    before = sorted(path for path in machine.root.rglob("*") if path.is_file())
    code, told = machine("gemini", GEMINI_API_KEY="secret-key")
    assert code == 0 and told["works"]
    assert states(told, "gemini") == {
        "installed": "good",
        "login": "good",
        "wire": "good",
        "tools": "good",
        "set up": "note",
        "copies": "good",
        "narration": "note",
    }
    assert "https://generativelanguage.googleapis.com;" in text(told, "gemini", "wire")
    assert "micro_handoff, recall, say" in text(told, "gemini", "tools")
    assert "secret-key" not in json.dumps(told)
    assert sorted(path for path in machine.root.rglob("*") if path.is_file()) == before, "it leaves nothing behind"


def test_a_client_that_a_run_would_refuse_says_what_to_do(machine: Machine):
    machine.install("gemini", "0.61.0")
    code, told = machine.quick("gemini")
    assert code == 2 and not told["works"]
    assert "set GEMINI_API_KEY" in text(told, "gemini", "wire")


def test_another_version_is_no_fault(machine: Machine):
    machine.install("codex", "9.9.9")
    _, told = machine.quick("codex", CODEX_API_KEY="k")
    assert states(told, "codex")["copies"] == "note"
    assert "measured with 0.171.0, not with 9.9.9" in text(told, "codex", "copies")


def test_a_gateways_path_is_not_shown(machine: Machine):
    machine.install("claude", "2.1.332")
    _, told = machine.quick(
        "claude", ANTHROPIC_BASE_URL="https://gateway.example:8443/secret-path", ANTHROPIC_API_KEY="k"
    )
    assert text(told, "claude", "wire").startswith("https://gateway.example:8443; ")
    assert "secret-path" not in json.dumps(told)
    assert text(told, "claude", "login") == "an API key (ANTHROPIC_API_KEY)"


def test_a_subscription_is_told_by_its_file(machine: Machine):
    machine.install("claude", "2.1.332")
    (machine.root / ".claude").mkdir()
    (machine.root / ".claude" / ".credentials.json").write_text('{"claudeAiOauth": {"accessToken": "secret"}}')
    _, told = machine.quick("claude")
    assert text(told, "claude", "login") == "a subscription" and "secret" not in json.dumps(told)


def test_without_a_name_all_that_are_installed(machine: Machine):
    machine.install("claude", "2.1.332")
    machine.install("codex", "0.171.0")
    done = machine.run(ANTHROPIC_API_KEY="k", CODEX_API_KEY="k")
    assert done.returncode == 0, done.stdout
    assert "Claude Code" in done.stdout and "Codex" in done.stdout
    marked = [line for line in done.stdout.splitlines() if line[:1] in ("✓", "·", "✗")]
    assert len(marked) >= 14 and len({line[2:14].strip() for line in marked}) == 7


def test_another_word_is_bad_usage(machine: Machine):
    done = machine.run("emacs")
    assert done.returncode == 2 and "not emacs" in done.stderr


@pytest.mark.parametrize(
    ("found", "state", "said"),
    [
        (Channels(10, 8, 0, 0, 0), "good", "8 of 10 calls narrated, in text"),
        (Channels(10, 0, 7, 0, 3), "good", "7 of 10 calls narrated, in narration blocks"),
        (Channels(10, 1, 0, 9, 0), "good", "10 of 10 calls narrated, by say"),
        (Channels(10, 1, 0, 0, 9), "note", "1 of 10 calls narrated; 9 blocks hide their words"),
        (Channels(10, 1, 0, 0, 0), "note", "1 of 10 calls narrated"),
        (Channels(0, 0, 0, 0, 0), "note", "no calls"),
    ],
)
def test_how_a_model_narrates(found: Channels, state: str, said: str):
    told = doctor.narrated(found, "m")
    assert (told.state, told.text) == (state, f"m: {said}")
    assert bool(told.advice) == (state == "note")


def test_it_is_read_from_the_clients_latest_session(machine: Machine):
    machine.install("claude", "2.1.332")
    session = Session()
    session.human("Look at a.py.")
    says = "I read part_00.py because token_0 decides whether the parts agree; I expect it near line 58."
    session.step(says, "cat part_00.py", "token_0 = '9e3779b1'")
    session.agent({"type": "text", "text": "part_00.py has token_0 = '9e3779b1' (measured)."})
    folder = machine.root / ".claude" / "projects" / "-work"
    folder.mkdir(parents=True)
    session.write(folder / f"{session.id}.jsonl")
    _, told = machine.quick("claude", ANTHROPIC_API_KEY="k")
    assert "claude-sonnet-4-5, latest session: 1 of 1 calls narrated, in text" in text(told, "claude", "narration")


def test_every_client_that_run_knows_has_measured_versions_and_sessions():
    assert set(start.CLIENTS) <= set(doctor.MEASURED)
    for one in start.CLIENTS.values():
        assert clients.client(one.sessions).LABEL and os.sep not in one.name
