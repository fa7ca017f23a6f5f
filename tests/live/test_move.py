"""A moved session in the real client: it resumes there, and the next request on the wire says what was said."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from conftest import SHARED
from cutline.sessions.clients import client, open_path
from cutline.sessions.model import Session
from cutline.sessions.moving import execute, plan
from live import codex as codex_client
from live import test_claude_code_resumes as claude_code
from live import test_codex_resumes as codex
from live import test_gemini_cli_resumes as gemini_cli
from live import test_opencode_resumes as opencode
from live import test_pi_resumes as pi
from live.chat import Answer
from live.gemini_cli import Home
from live.upstream import call, text

pytestmark = pytest.mark.slow

CUTLINE = (sys.executable, "-c", "from cutline.cli import main; main()")
DOCUMENT = {"done": "Counted to 40 in 3 ms.", "open": "the sum", "went_wrong": "nothing"}
# What every script below says, by whom; the checkpoint stands behind the note.
COUNTED = "I count: «seq» first — ünïcode \u2028 and \\u0041."
WORDS = [
    ("user", "Count and sum."),
    ("assistant", COUNTED),
    ("assistant", "A note before I go on."),
    ("call", "micro_handoff"),
    ("result", "micro_handoff"),
    ("assistant", "Now the sum."),
    ("assistant", "The sum is 820."),
]
Heard = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class World:
    """All clients at one working directory, each with a home of its own."""

    root: Path

    @property
    def cwd(self) -> Path:
        return self.root / "project"

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def claude(self) -> claude_code.Place:
        return claude_code.Place(self.cwd, self.root / "config")

    @property
    def codex(self) -> codex.Place:
        return codex.Place(self.cwd, self.root / "codex")

    def gemini(self) -> Home:
        server = self.root / "gemini_server.py"
        server.write_text(gemini_cli.SERVER)
        made = Home(self.home, self.cwd)
        made.settle({"cutline": {"command": sys.executable, "args": [str(server)], "trust": True}})
        return made

    def cutline(self, *arguments: str) -> dict[str, Any]:
        """Run the command line in the project; what it prints as JSON."""
        known = {key: value for key, value in os.environ.items() if not key.startswith(("XDG_", "PI_", "OPENCODE_"))}
        homes = {"CLAUDE_CONFIG_DIR": self.claude.config, "CODEX_HOME": self.codex.home}
        homes |= {"HOME": self.home, "GEMINI_CLI_HOME": self.home}
        done = subprocess.run(
            [*CUTLINE, *arguments, "--json"],
            cwd=self.cwd,
            env={**known, **{key: str(path) for key, path in homes.items()}, "NO_COLOR": "1"},
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def move(self, session: str, to: str, *options: str) -> str:
        """Move a session and give the new one's id."""
        made = self.cutline("move", session, "--to", to, *options)
        assert made["resume"] == client(made["to"]).resume(made["copy"]["id"])
        assert made["title"].endswith(f"(moved from {client(made['client']).LABEL})")
        return str(made["copy"]["id"])


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path)
    made.cwd.mkdir()
    made.home.mkdir()
    return made


# --------------------------------------------------------------------------- sessions that the clients write


def with_claude(world: World) -> str:
    script = [
        [text(COUNTED), call("toolu_1", "Bash", command="seq 1 40", description="count")],
        [text("A note before I go on."), call("toolu_2", "mcp__cutline__micro_handoff", **DOCUMENT)],
        [text("Now the sum."), call("toolu_3", "Bash", command="seq 800 820", description="sum")],
        [text("The sum is 820.")],
    ]
    return claude_code.write(world.claude, script, "Count and sum.")


def with_codex(world: World) -> str:
    script: list[codex_client.Answer] = [
        [codex_client.reasoning("U0VBTEVE"), codex_client.said(COUNTED), codex.bash("call_1", "seq 1 40")],
        [
            codex_client.said("A note before I go on."),
            codex_client.call("call_2", "micro_handoff", "mcp__cutline", **DOCUMENT),
        ],
        [codex_client.said("Now the sum."), codex.bash("call_3", "seq 800 820")],
        [codex_client.said("The sum is 820.")],
    ]
    return world.codex.write(script, "Count and sum.")


def chat(checkpoint: str, bash: Callable[[str], tuple[str, dict[str, str]]]) -> list[Answer]:
    return [
        Answer(COUNTED, [("c1", *bash("seq 1 40"))]),
        Answer("A note before I go on.", [("c2", checkpoint, DOCUMENT)]),
        Answer("Now the sum.", [("c3", *bash("seq 800 820"))]),
        Answer("The sum is 820."),
    ]


def with_opencode(world: World) -> str:
    made = opencode.installed(world.home, world.cwd)
    return opencode.write(made, chat(opencode.CHECKPOINT, opencode.bash), "Count and sum.")


def with_pi(world: World) -> str:
    made = pi.installed(world.home, world.cwd)
    script = chat(pi.CHECKPOINT, lambda command: ("bash", {"command": command}))
    return open_path(pi.write(made, script, "Count and sum.")).id


def with_gemini(world: World) -> str:
    script = [
        gemini_cli.run([gemini_cli.text(COUNTED)], "seq 1 40"),
        [gemini_cli.text("A note before I go on."), gemini_cli.call(gemini_cli.NOTE, "c_note", **DOCUMENT)],
        gemini_cli.run([gemini_cli.text("Now the sum.")], "seq 800 820"),
        [gemini_cli.text("The sum is 820.")],
    ]
    return open_path(gemini_cli.write(world.gemini(), script, "Count and sum.")).id


SOURCES: dict[str, Callable[[World], str]] = {
    "claude-code": with_claude,
    "codex": with_codex,
    "opencode": with_opencode,
    "gemini": with_gemini,
    "pi": with_pi,
}


# ------------------------------------------------------------------------------------ what the clients send


@dataclass(frozen=True, slots=True)
class Sent:
    """A request: who says what, a call and a result by its tool; the notices; the whole as JSON."""

    heard: Heard
    notices: list[str]
    whole: str


def sent(heard: Heard, request: Any) -> Sent:
    told = [text for _, text in heard if "[cutline]" in text]
    return Sent([entry for entry in heard if "[cutline]" not in entry[1]], told, json.dumps(request))


def in_codex(world: World, id_: str) -> Sent:
    items = world.codex.resume(id_)
    names: dict[str, str] = {}
    found: Heard = []
    for item in items:
        if item["type"] == "function_call":
            names[item["call_id"]] = item["name"]
            assert item.get("namespace", "") == ("mcp__cutline" if item["name"] == "micro_handoff" else "")
            found.append(("call", item["name"]))
        elif item["type"] == "function_call_output":
            found.append(("result", names[item["call_id"]]))
        elif item["type"] == "message" and item["role"] != "developer":
            for part in item["content"]:
                said = str(part.get("text", f"({part['type']})"))
                if not said.startswith(("<environment_context>", "# AGENTS.md")):
                    found.append((item["role"], said))
    return sent(found, items)


def in_claude(world: World, id_: str) -> Sent:
    messages = world.claude.resume(id_, "And now?")
    claude_code.assert_pairs(messages)
    names: dict[str, str] = {}
    found: Heard = []
    for role, block in claude_code.blocks(messages):
        if block["type"] == "tool_use":
            names[block["id"]] = block["name"].removeprefix("mcp__cutline__")
            found.append(("call", names[block["id"]]))
        elif block["type"] == "tool_result":
            found.append(("result", names[block["tool_use_id"]]))
        elif block["type"] == "text" and not block["text"].startswith("<system-reminder>"):
            found.append((role, block["text"].removesuffix("\n")))
    return sent(found, messages)


def in_chat(messages: list[dict[str, Any]], prefix: str) -> Sent:
    names: dict[str, str] = {}
    found: Heard = []
    for message in messages:
        content = message.get("content") or ""
        parts = [content] if isinstance(content, str) else [part.get("text", part["type"]) for part in content]
        if message["role"] == "tool":
            found.append(("result", names[message["tool_call_id"]]))
            continue
        found += [(message["role"], part) for part in parts if part]
        for made in message.get("tool_calls") or ():
            names[made["id"]] = made["function"]["name"].removeprefix(prefix)
            found.append(("call", names[made["id"]]))
    return sent(found, messages)


def in_opencode(world: World, id_: str) -> Sent:
    found = in_chat(opencode.resume(opencode.installed(world.home, world.cwd), id_), "cutline_")
    # The client puts what is typed behind `run` into quotes.
    return Sent([(who, said.strip('"') if said == '"And now?"' else said) for who, said in found.heard],
                found.notices, found.whole)  # fmt: skip


def in_pi(world: World, id_: str) -> Sent:
    return in_chat(pi.resume(pi.installed(world.home, world.cwd), id_), "mcp__cutline__")


def in_gemini(world: World, id_: str) -> Sent:
    contents, faults = gemini_cli.resume(world.gemini(), id_, "And now?")
    assert faults == []
    found: Heard = []
    for who, said in gemini_cli.heard(contents):
        kind, _, name = said.partition(" ")
        whose = {"functionCall": "call", "functionResponse": "result"}.get(kind)
        role = "assistant" if who == "model" else "user"
        found.append((whose, name.removeprefix("mcp_cutline_")) if whose else (role, said))
    return sent(found, contents)


TARGETS: dict[str, Callable[[World, str], Sent]] = {
    "claude-code": in_claude,
    "codex": in_codex,
    "opencode": in_opencode,
    "gemini": in_gemini,
    "pi": in_pi,
}


def said_by(world: World, source: str) -> Heard:
    """What a script's session says; opencode's own `run` puts a prompt into quotes."""
    first = '"Count and sum."' if source == "opencode" else "Count and sum."
    return [("user", first), *WORDS[1:], ("user", "And now?")]


WAYS = [("claude-code", "codex"), ("codex", "claude-code")]
WAYS += [("claude-code", to) for to in ("opencode", "gemini", "pi")]
WAYS += [(source, to) for source in ("opencode", "gemini", "pi") for to in ("claude-code", "codex")]


@pytest.mark.parametrize(("source", "to"), WAYS)
def test_a_session_goes_on_in_another_client(world: World, source: str, to: str) -> None:
    if to == "opencode":
        opencode.write(opencode.installed(world.home, world.cwd), [Answer("Hello.")], "Hello?")
    session = SOURCES[source](world)
    found = TARGETS[to](world, world.move(session, to))
    assert found.heard == said_by(world, source)
    assert json.dumps(DOCUMENT["done"])[1:-1] in found.whole, "the checkpoint's document goes along"
    assert "37\\\\n38" not in found.whole, "no result comes along by another way"
    assert len(found.notices) == 2, "what it is, and what left behind the checkpoint"
    assert found.whole.count("[cutline] Left out") == 2, "that notice, and the checkpoint's own in its result"


def test_there_and_back_again(world: World) -> None:
    """Words that were said in either client stand in their order; each move says so at the beginning."""
    there = world.move(with_claude(world), "codex")
    script: list[codex_client.Answer] = [
        [codex_client.said("I square it."), codex.bash("call_9", "seq 200 240")],
        [codex_client.said("Noted."), codex_client.call("call_10", "micro_handoff", "mcp__cutline", **DOCUMENT)],
        [codex_client.said("Squared.")],
    ]
    with codex_client.Upstream(script) as upstream:
        assert world.codex.client(upstream).run(world.cwd, "resume", there, "Square it.").code == 0
    found = in_claude(world, world.move(there, "claude-code"))
    assert found.heard == [
        *said_by(world, "claude-code")[:-1],
        ("user", "Square it."),
        ("assistant", "I square it."),
        ("assistant", "Noted."),
        ("call", "micro_handoff"),
        ("result", "micro_handoff"),
        ("assistant", "Squared."),
        ("user", "And now?"),
    ]
    first, second = (told for told in found.notices if "was moved to" in told)
    assert "said in Codex and was moved to Claude Code" in first
    assert "said in Claude Code and was moved to Codex" in second
    assert "230\\\\n231" not in found.whole


def test_a_moved_session_is_cut_like_any_other(world: World) -> None:
    moved = world.move(with_codex(world), "claude-code", "--at", "0")
    assert [name for who, name in in_claude(world, moved).heard if who == "call"] == [
        *("exec_command", "micro_handoff", "exec_command")
    ]
    copy = world.cutline("cut", moved, "--force", "--at", "end")["copy"]["id"]
    assert in_claude(world, copy).heard == [
        *said_by(world, "codex"),
        # That was the first resume's own turn.
        ("assistant", "Nothing more."),
        ("user", "And now?"),
    ]


def test_what_left_is_recalled_from_the_other_client_s_file(world: World) -> None:
    moved = world.codex.path(world.move(with_claude(world), "codex", "--trace", "all"))
    addresses = set(re.findall(r"\b[0-9a-f]{16}\b", moved.read_text("utf-8")))
    assert addresses and any("37\\n38" in json.dumps(world.cutline("recall", one)) for one in addresses)


def test_an_export_for_opencode_is_imported(world: World) -> None:
    made = opencode.installed(world.home, world.cwd)
    export = world.root / "moved.json"
    moved = world.move(with_claude(world), "opencode", "-o", str(export))
    with opencode.provider([]) as upstream:
        made.configure(upstream)
    assert moved in made.start("import", str(export)).stdout
    assert in_opencode(world, moved).heard == said_by(world, "claude-code")


# ------------------------------------------------------------------------------------- recorded sessions


def recorded(name: str) -> list[Path]:
    """Recorded sessions of a client, the smaller ones; those left out by name hold none, or no calls' ids."""
    found = sorted((SHARED / "data" / "sessions" / name).glob("*.jsonl"))
    return [
        path
        for path in found
        if path.stat().st_size < 3_000_000 and not path.stem.startswith(("agent-sessions", "claude-code-log_edge"))
    ]


def expected(session: Session) -> Iterator[tuple[str, str]]:
    """What the session's own file says, words only; what no client's wire can hold is U+FFFD."""
    for message, origin in zip(json.loads(session.history.body)["messages"], session.history.origins, strict=True):
        content = message["content"]
        for block in [text(content)] if isinstance(content, str) else content:
            # What an editor puts before a prompt nobody typed.
            said = block.get("text", "")
            if block["type"] == "text" and origin in ("agent", "human") and said.strip() and said[:5] != "<ide_":
                said = said.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
                yield ("assistant" if origin == "agent" else "user"), said


@pytest.mark.skipif(not SHARED.is_dir(), reason="the recorded sessions are not on this machine: no ../shared/data")
@pytest.mark.parametrize("source", recorded("codex"), ids=lambda path: path.stem)
def test_recorded_sessions_of_codex_go_on_in_claude_code(
    world: World, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(world.claude.config))
    session = open_path(source)
    move = plan(session, "claude-code", cwd=str(world.cwd))
    written = execute(move)
    world.claude.folder.mkdir(parents=True, exist_ok=True)
    # It is resumed here; the directory that it was held in is not on this machine.
    world.claude.path(written.id).write_bytes(written.path.read_bytes())
    found = in_claude(world, written.id).heard
    assert [entry for entry in found if entry[0] in ("user", "assistant")] == [
        *((who, said.removesuffix("\n")) for who, said in expected(session)),
        ("user", "And now?"),
    ]


@pytest.mark.skipif(not SHARED.is_dir(), reason="the recorded sessions are not on this machine: no ../shared/data")
@pytest.mark.parametrize("source", recorded("claude-code"), ids=lambda path: path.stem)
def test_recorded_sessions_of_claude_code_go_on_in_codex(
    world: World, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEX_HOME", str(world.codex.home))
    session = open_path(source)
    written = execute(plan(session, "codex", cwd=str(world.cwd)))
    found = in_codex(world, written.id).heard
    assert [entry for entry in found if entry[0] in ("user", "assistant") and entry[1] != "(input_image)"] == [
        *expected(session),
        ("user", "And now?"),
    ]
