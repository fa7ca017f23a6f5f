"""What the user has set up works in a run as it does without: settings, hooks, servers, prompts, logins, files."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cutline import mandate
from cutline.record import Record

from . import claude
from .run import DOCUMENT, HANDOFF, OLDER, RECALL, SAY, Home, Ran, blocks, result_of
from .upstream import Block, Upstream, call, text, thinking

pytestmark = pytest.mark.slow

VERSIONS = pytest.mark.parametrize("version", [claude.VERSION, "2.1.197"])
DONE = [text("Done.")]
SERVER = """
import anyio, sys
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
async def tools(_, __):
    return types.ListToolsResult(tools=[types.Tool(name="greet", input_schema={"type": "object"})])
async def main():
    server = Server("mine", version="1", on_list_tools=tools)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())
anyio.run(main)
"""


def bash(command: str, id_: str = "toolu_b01") -> list[Block]:
    return [thinking("so far so good"), call(id_, "Bash", command=command, description="count")]


def write(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


def notes(log: Path, word: str) -> dict[str, Any]:
    """A hook that leaves a line when a call has run."""
    command = f"echo {word} >> {shlex.quote(str(log))}"
    return {"hooks": {"PostToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": command}]}]}}


def system(upstream: Upstream, turn: int = 0) -> str:
    held = upstream.conversation[turn].body["system"]
    return held if isinstance(held, str) else "\n".join(block["text"] for block in held)


@pytest.mark.parametrize("form", ["a path", "JSON"])
def test_hooks_of_all_settings_run_beside_ours(tmp_path: Path, form: str):
    home = Home.make(tmp_path)
    log = tmp_path / "log"
    write(home.config / "settings.json", notes(log, "user"))
    write(home.project / ".claude" / "settings.json", notes(log, "project"))
    write(home.project / ".claude" / "settings.local.json", notes(log, "local"))
    given = notes(log, "flag")
    value = str(write(tmp_path / "given.json", given)) if form == "a path" else json.dumps(given)
    with Upstream([bash("echo 1"), DONE], strict=True) as upstream:
        ran = home.run(upstream, "Count.", "--settings", value, flags=("--mandate", "nudge"))
    assert ran.code == 0, ran.stderr
    assert sorted(log.read_text().split()) == ["flag", "local", "project", "user"]
    assert mandate.NUDGE in json.dumps(upstream.conversation[-1].messages), "and ours"


@VERSIONS
def test_permissions_are_the_user_s_and_our_tools_ask_for_none(tmp_path: Path, version: str):
    home = Home.make(tmp_path, version)
    write(home.config / "settings.json", {"permissions": {"deny": ["Bash(rm:*)"]}})
    write(home.project / "kept.txt", "kept")
    given = {"permissions": {"allow": ["Bash(expr:*)"]}}
    ours = [
        call("toolu_s01", SAY, text="I run expr because the sum decides."),
        call("toolu_c01", RECALL, what="expr"),
        call("toolu_h01", HANDOFF, **DOCUMENT),
    ]
    script = [
        bash("expr 6 '*' 7"),
        bash("rm kept.txt", "toolu_b02"),
        bash(f"{sys.executable} -c 'print(1)'", "toolu_b03"),
        *([thinking("so far so good"), one] for one in ours),
        DONE,
    ]
    with Upstream(script, strict=True) as upstream:
        ran = home.run(upstream, "Count.", "--settings", json.dumps(given), allowed="Glob")
    assert ran.code == 0 and not upstream.refusals, ran.stdout
    with Record(home.record, readonly=True) as record:
        held = record.history(ran.session["session"])
        assert held is not None
        messages = json.loads(held.body)["messages"]
    failed = {block["tool_use_id"] for block in blocks(messages, "tool_result") if block.get("is_error")}
    assert failed == {"toolu_b02", "toolu_b03"}, "what the user denies, and what nobody allowed"
    assert "42" in result_of(messages, "toolu_b01") and "checkpoint stored" in result_of(messages, "toolu_h01")
    assert "toolu_b01" not in json.dumps(upstream.conversation[-1].messages), "and the cut was made"
    assert (home.project / "kept.txt").exists()


def test_the_status_line_and_cutline_status_while_a_run_goes_on(tmp_path: Path):
    home = Home.make(tmp_path)
    seen = f'{sys.executable} -c \'import json,sys; print("mine", json.load(sys.stdin)["model"]["id"])\''
    write(home.config / "settings.json", {"statusLine": {"type": "command", "command": seen, "padding": 0}})
    told: dict[str, Any] = {}
    big = "x" * 40_000

    def looks_around(body: dict[str, Any]) -> list[Block]:
        (folder,) = tmp_path.glob("cutline-*/run-*")
        line = json.loads((folder / "settings.json").read_text())["statusLine"]
        assert line["padding"] == 0
        for name, used in (("low", 40_000), ("high", 150_000)):
            usage = {"input_tokens": used, "output_tokens": 0}
            given = {"model": {"id": OLDER}, "context_window": {"context_window_size": 200_000, "current_usage": usage}}
            environment = home.environment(upstream.url, CUTLINE_RUN=str(folder))
            done = subprocess.run(
                line["command"], shell=True, env=environment, input=json.dumps(given), text=True, capture_output=True
            )
            told[name] = done.stdout.splitlines()
        told["text"], told["json"] = (
            home.cutline(upstream.url, "status"),
            home.cutline(upstream.url, "status", "--json"),
        )
        return DONE

    script: list[Any] = [bash(f"echo {big}"), [thinking("so"), call("toolu_h01", HANDOFF, **DOCUMENT)]]
    script += [bash("echo 2", "toolu_b02"), looks_around]
    with Upstream(script, strict=True) as upstream:
        ran = home.run(upstream, "Count.")
        after = home.cutline(upstream.url, "status")
    assert ran.code == 0, ran.stderr
    mine, ours = told["low"]
    assert mine == f"mine {OLDER}" and re.match(r"cutline · sends \d\d\.\d % \(.* of .*\) · 1 checkpoint", ours)
    assert (
        "checkpoint soon" not in ours and "a checkpoint soon" in told["high"][1] and "150k of 167k" in told["high"][1]
    )
    assert ran.session["session"][:8] in told["text"].stdout
    (status,) = json.loads(told["json"].stdout)
    assert status["session"] == ran.session["session"] and status["checkpoints"] == 1
    assert status["last_sent"] < status["last_whole"] and "token" not in status["run"]
    assert "no session runs through Cutline now" in after.stdout
    assert not list(tmp_path.glob("cutline-*/run-*")), "the run's folder is gone"


def test_a_base_url_in_the_user_s_settings_is_where_the_proxy_forwards_to(tmp_path: Path):
    home = Home.make(tmp_path)
    with Upstream([DONE]) as upstream:
        write(home.config / "settings.json", {"env": {"ANTHROPIC_BASE_URL": upstream.url + "/gateway", "MARK": "1"}})
        nowhere = "http://127.0.0.1:9"
        ran = home.run(upstream, "Hi.", ANTHROPIC_BASE_URL=nowhere)
    assert ran.code == 0, ran.stderr
    (turn,) = upstream.conversation
    assert turn.path.startswith("/gateway/v1/messages") and ran.session["sent_bytes"] == len(turn.raw)


@pytest.mark.parametrize("strict", [False, True], ids=["", "strict"])
def test_servers_of_the_user_stand_beside_ours(tmp_path: Path, strict: bool):
    home = Home.make(tmp_path)
    script = write(tmp_path / "server.py", SERVER)
    server = {"command": sys.executable, "args": [str(script)]}
    write(home.project / ".mcp.json", {"mcpServers": {"theirs": server}})
    given = write(tmp_path / "mcp.json", {"mcpServers": {"mine": server}})
    also = ["--strict-mcp-config"] if strict else []
    with Upstream([DONE]) as upstream:
        ran = home.run(
            upstream, "Hi.", "--mcp-config", str(given), *also, ENABLE_TOOL_SEARCH="false", MCP_TIMEOUT="9000"
        )
    assert ran.code == 0, ran.stderr
    names = {tool["name"] for tool in upstream.conversation[0].body["tools"]}
    assert {"mcp__mine__greet", HANDOFF, RECALL, SAY} <= names
    assert ("mcp__theirs__greet" in names) is not strict


@VERSIONS
def test_prompts_of_the_user_stay_and_the_mandate_comes_behind_them(tmp_path: Path, version: str):
    home = Home.make(tmp_path, version)
    with Upstream() as upstream:
        runs = [
            home.run(upstream, "Hi.", "--append-system-prompt", "APPENDED"),
            home.run(upstream, "Hi.", "--system-prompt", "REPLACED"),
        ]
    assert [ran.code for ran in runs] == [0, 0], [ran.stderr for ran in runs]
    for turn, word in enumerate(("APPENDED", "REPLACED")):
        told = system(upstream, turn)
        assert told.index(word) < told.index(mandate.MANDATE[:40]), word
    assert len(system(upstream, 1)) < len(system(upstream, 0)) / 2


@pytest.mark.parametrize(
    "version",
    [claude.VERSION, "2.1.197"],
)
def test_a_prompt_out_of_a_file_stays_too(tmp_path: Path, version: str):
    home = Home.make(tmp_path, version)
    file = write(tmp_path / "prompt.txt", "FROM-A-FILE")
    with Upstream() as upstream:
        ran = home.run(upstream, "Hi.", "--append-system-prompt-file", str(file))
    assert ran.code == 0, ran.stderr
    assert system(upstream).index("FROM-A-FILE") < system(upstream).index(mandate.MANDATE[:40])


@pytest.mark.parametrize("way", ["a token", "a file"])
def test_a_login_by_subscription_goes_through_and_is_told_without_money(tmp_path: Path, way: str):
    home = Home.make(tmp_path)
    secret = "sk-ant-oat01-" + "made-up-for-a-test"
    more = {"ANTHROPIC_API_KEY": ""}
    if way == "a token":
        more["CLAUDE_CODE_OAUTH_TOKEN"] = secret
    else:
        login = {"accessToken": secret, "refreshToken": "none", "expiresAt": 4_102_444_800_000}
        login |= {"scopes": ["user:inference", "user:profile"], "subscriptionType": "max"}
        write(home.config / ".credentials.json", {"claudeAiOauth": login})
    client = ["claude", "-p", "Count.", "--model", OLDER, "--allowedTools", "Bash"]
    with Upstream([bash("echo 1"), DONE], input_tokens=5_000) as upstream:
        ran = home.cutline(upstream.url, "run", *client, **more)
    assert ran.code == 0 and ran.stdout.strip() == "Done.", ran.stderr
    for turn in upstream.conversation:
        assert turn.headers["authorization"] == f"Bearer {secret}" and "x-api-key" not in turn.headers
    assert "$" not in ran.stderr and "input tokens" in ran.stderr
    for path in tmp_path.rglob("*"):
        if path.is_file() and home.config not in path.parents:
            assert secret.encode() not in path.read_bytes(), path
    assert secret not in ran.stderr


def test_the_client_s_configuration_is_left_alone(tmp_path: Path):
    def files(home: Home, ran: Ran) -> dict[str, bytes]:
        assert ran.code == 0, ran.stderr
        session = ran.result["session_id"]
        found = {}
        for path in home.config.rglob("*"):
            if path.is_file():
                name = str(path.relative_to(home.config)).replace(session, "SESSION")
                name = name.replace(re.sub(r"[^A-Za-z0-9]", "-", str(home.root)), "ROOT")
                found[re.sub(r"\d{13}|[0-9a-f-]{36}", "N", name)] = path.read_bytes()
        return found

    settings = {"permissions": {"deny": ["Bash(rm:*)"]}, "env": {"MARK": "1"}}
    both = []
    for name in ("plain", "cutline"):
        home = Home.make(tmp_path / name)
        write(home.config / "settings.json", settings)
        with Upstream([bash("echo 1"), DONE]) as upstream:
            ran = home.plain(upstream, "Count.") if name == "plain" else home.run(upstream, "Count.")
        both.append(files(home, ran))
        assert not list(home.project.iterdir()), "nothing is left in the project"
    plain, ours = both
    assert plain.keys() == ours.keys()
    assert ours["settings.json"] == plain["settings.json"] == json.dumps(settings).encode()
    one, two = (json.loads(held[".claude.json"]) for held in both)
    assert one.keys() == two.keys()
    for name, held in ours.items():
        # (Its own session file names the hooks that it asked.)
        assert name.startswith("projects/") or b"cutline" not in held, name
