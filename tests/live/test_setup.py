"""`cutline setup` with the real clients: the tools are there in every session, once; taken back, nothing is left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cutline.launch import start
from cutline.launch.setup_clients import NAMES

from . import chat, codex, gemini_cli, npm, opencode, run, run_codex, run_pi, upstream
from .run import DOCUMENT

pytestmark = pytest.mark.slow

MANDATE = "Visible reasoning (Cutline)"
OURS = ("micro_handoff", "recall", "say")
WORDS = "Done."


@dataclass(frozen=True)
class Client:
    """A client in a home of its own, with the user's settings in it.

    Attributes:
        provider: a context manager that answers it: first a checkpoint, then words.
        requests: the requests that offered tools, so far.
        environment: of everything that is started, by the provider's address.
        command: what is started, by the prompt.
        settle: writes the user's own settings, by the provider's address.
        flags: of the client's, behind `cutline run CLIENT`.
        places: where settings lie.
        written: by the client itself while it runs, among the settings.
    """

    provider: Any
    requests: Callable[[Any], Sequence[Any]]
    environment: Callable[[str], dict[str, str]]
    command: Callable[[str], list[str]]
    settle: Callable[[str], None]
    project: Path
    places: tuple[Path, ...]
    written: tuple[str, ...] = ()

    def start(self, url: str, command: Sequence[str]) -> str:
        done = subprocess.run(
            command,
            cwd=self.project,
            env=self.environment(url),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=npm.RUNS_S,
            check=False,
        )
        assert done.returncode == 0, (done.stderr or done.stdout)[-2000:].decode()
        return done.stdout.decode()

    def cutline(self, url: str, *words: str) -> str:
        return self.start(url, [sys.executable, "-P", "-m", "cutline", *words])

    def files(self) -> dict[str, bytes]:
        return {
            str(path): path.read_bytes()
            for place in self.places
            for path in ([place] if place.is_file() else sorted(place.rglob("*")))
            if path.is_file()
        }


def of_claude(root: Path) -> Client:
    home = run.Home.make(root)
    script = [[upstream.call("toolu_1", run.HANDOFF, **DOCUMENT)], *[[upstream.text(WORDS)]] * 3]
    home.config.joinpath("settings.json").write_text('{"permissions": {"allow": ["Bash(ls)"]}}\n')
    home.config.joinpath(".claude.json").write_text('{\n  "mcpServers": {}\n}')
    return Client(
        upstream.Upstream(script),
        lambda provider: [one.body for one in provider.conversation],
        home.environment,
        lambda prompt: [str(home.binary), "-p", prompt, "--model", run.OLDER, "--output-format", "json"],
        lambda url: None,
        home.project,
        (home.config / "settings.json", home.config / ".claude.json"),
        (".claude.json",),
    )


def of_codex(root: Path) -> Client:
    home = run_codex.Home.make(root)
    script = [[run_codex.cutlines("call_1", "micro_handoff", **DOCUMENT)], *[[codex.said(WORDS)]] * 3]
    return Client(
        codex.Upstream(script),
        lambda provider: provider.bodies,
        lambda url: home.environment(),
        lambda prompt: [str(home.binary), "exec", "--skip-git-repo-check", "-m", run_codex.DIRECT, prompt],
        lambda url: home.settle(url, "# mine", "[mcp_servers.docs]", 'command = "true"', "enabled = false"),
        home.project,
        (home.config / "config.toml",),
    )


def of_gemini(root: Path) -> Client:
    binary = gemini_cli.install()
    home = gemini_cli.Home(root / "home", root / "project")
    home.cwd.mkdir(parents=True)
    script = [[gemini_cli.call("mcp_cutline_micro_handoff", "", "s", **DOCUMENT)], *[[gemini_cli.text(WORDS)]] * 3]
    path = f"{binary.parent}:{os.environ['PATH']}"
    return Client(
        gemini_cli.Upstream(script),
        lambda provider: provider.conversation,
        lambda url: {**home.variables(url), "PATH": path, "TMPDIR": str(root)},
        lambda prompt: ["gemini", "--skip-trust", "-m", gemini_cli.MODEL, "--output-format", "json", "-p", prompt],
        lambda url: home.settle(general={"enableAutoUpdate": False}),  # as it writes them itself
        home.cwd,
        tuple(home.root / ".gemini" / name for name in ("settings.json", "extensions", "policies")),
    )


def of_opencode(root: Path) -> Client:
    made = opencode.client(root / "home", root / "project")
    place = made.home / ".config" / "opencode"

    def settle(url: str) -> None:
        place.mkdir(parents=True)
        models = {
            chat.MODEL: {"name": chat.MODEL, "tool_call": True, "limit": {"context": chat.WINDOW, "output": 8000}}
        }
        provider = {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": url, "apiKey": "k"}, "models": models}
        told = {"$schema": "https://opencode.ai/config.json", "provider": {"scripted": provider}, "share": "disabled"}
        text = json.dumps(told, indent="\t")
        (place / "opencode.jsonc").write_text("// mine\n" + text[:-2] + ', // too\n\t"autoupdate": false,\n}\n')

    script = [chat.Answer("", [("call_1", "cutline_micro_handoff", DOCUMENT)]), *[chat.Answer(WORDS)] * 3]
    path = f"{made.binary.parent}:{os.environ['PATH']}"
    return Client(
        opencode.provider(script),
        lambda provider: provider.requests,
        lambda url: {**made.variables(), "PATH": path, "TMPDIR": str(root)},
        lambda prompt: ["opencode", "run", "--model", f"scripted/{chat.MODEL}", prompt],
        settle,
        made.cwd,
        tuple(place / name for name in ("opencode.jsonc", "opencode.json", "config.json")),
    )


def of_pi(root: Path) -> Client:
    home = run_pi.Home.make(root)
    script = [chat.Answer("", [("call_1", "mcp__cutline__micro_handoff", DOCUMENT)]), *[chat.Answer(WORDS)] * 3]
    return Client(
        chat.Upstream(script),
        lambda provider: provider.requests,
        lambda url: home.environment(),
        lambda prompt: ["pi", "--model", f"scripted/{chat.MODEL}", "-p", prompt],
        home.settle,
        home.project,
        tuple(home.client.agent / name for name in ("models.json", "settings.json", "mcp.json", "extensions")),
    )


def offered(request: Any) -> list[str]:
    """Our tools, as often as a request offers them."""
    held: list[Any] = [*request.get("tools", ())]
    held += [tool for item in request.get("input", ()) for tool in item.get("tools", ())]  # Codex has them there too
    found: list[str] = []
    for tool in held:
        inner = tool.get("functionDeclarations") or (tool.get("tools") if tool.get("type") == "namespace" else None)
        found += [one.get("function", one).get("name", "") for one in inner or [tool]]
    return sorted(name for name in found if name.endswith(OURS))


CLIENTS = {"claude": of_claude, "codex": of_codex, "gemini": of_gemini, "opencode": of_opencode, "pi": of_pi}


@pytest.mark.parametrize("name", NAMES)
def test_the_tools_are_there_once_and_taken_back_nothing_is_left(tmp_path: Path, name: str):
    client = CLIENTS[name](tmp_path)
    with client.provider as provider:
        url = provider.url
        client.settle(url)
        before = client.files()
        client.cutline(url, "setup", name, "--yes")
        assert client.files() != before and client.cutline(url, "setup", name) == f"nothing to do: {name} is set up\n"

        # The client by itself: it offers the tools, and a checkpoint is stored.
        client.start(url, client.command("Go."))
        first, second = client.requests(provider)
        assert [tool[-len(ours) :] for tool, ours in zip(offered(first), OURS)] == list(OURS), offered(first)
        told = json.dumps(first)
        assert told.count(MANDATE) == 1 and MANDATE in told
        assert "checkpoint stored" in json.dumps(second)

        # Under a run they are there once, too.
        if name in start.CLIENTS:
            found = json.loads(client.cutline(url, "doctor", name, "--json"))["clients"][name]
            assert [one["state"] for one in found if one["name"] == "set up"] == ["good"]
            client.cutline(url, "run", "--no-record", *[name, *client.command("Go.")[1:]])
            third = client.requests(provider)[2]
            assert len(offered(third)) == 3 and json.dumps(third).count(MANDATE) == 1

        client.cutline(url, "setup", name, "--remove", "--yes")
        after = client.files()
        own = {path for path in after if path.endswith(client.written)} if client.written else set()
        assert {path: data for path, data in after.items() if path not in own} == {
            path: data for path, data in before.items() if path not in own
        }
        for path in own:  # the client wrote it anew meanwhile: it has lost our entry and nothing else
            assert json.loads(after[path])["mcpServers"] == {} and len(json.loads(after[path])) > 1
        assert not list(tmp_path.glob("**/cutline/setup")), "what undoes it is gone, too"

        count = len(client.requests(provider))
        client.start(url, client.command("Go."))
        last = client.requests(provider)[count]
        assert offered(last) == [] and MANDATE not in json.dumps(last)
