"""The MCP server with real clients and no proxy: Claude Code over both transports, Codex; then a cut copy of the session."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from typing import Any

import pytest

from cutline.mcp_serving import PROMPT

from . import claude, codex
from .run import DOCUMENT, HANDOFF, RECALL, SAY, Home, blocks, result_of, said
from .upstream import Block, Upstream, call, text, thinking

pytestmark = pytest.mark.slow

VERSIONS = pytest.mark.parametrize("version", [claude.VERSION, "2.1.197"])
SERVER = {"command": sys.executable, "args": ["-P", "-m", "cutline", "mcp"]}
ALLOWED = f"Bash,{HANDOFF},{RECALL},{SAY},ListMcpResourcesTool,ReadMcpResourceTool"
WAITS = {"MCP_CONNECTION_NONBLOCKING": "0"}
"""Without it the client asks before a server has started that needs longer than usual, on a machine with much to do."""
DONE = [text("Done.")]
SEEN = "The log has 300 lines, the last one is entry_299 (measured)."
COUNT = "for n in $(seq 0 299); do echo entry_$n; done"


def step(*blocks_: Block) -> list[Block]:
    """An answer that calls: with thinking before it, as the provider wants it behind."""
    return [thinking("so far so good"), *blocks_]


def with_server(home: Home, server: dict[str, Any] = SERVER) -> list[str]:
    """The client's options that give it the server, as a user types them."""
    config = home.root / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"cutline": server}}))
    # The equals sign: an option that takes several values would swallow what follows it.
    return [f"--mcp-config={config}", "--strict-mcp-config", f"--allowedTools={ALLOWED}"]


def last_result(body: dict[str, Any]) -> str:
    """The text of the newest result in a request."""
    return result_of(body["messages"], blocks(body["messages"], "tool_result")[-1]["tool_use_id"])


def first_work() -> list[list[Block]]:
    """A command with a long answer, what it gave in words, and a checkpoint."""
    return [
        step(text("I print the log, because its last line decides."), call("toolu_b01", "Bash", command=COUNT)),
        step(text(SEEN), call("toolu_h01", HANDOFF, **DOCUMENT)),
    ]


@VERSIONS
def test_the_slash_command_reaches_the_wire_with_what_stands_behind_it(tmp_path: Path, version: str):
    home = Home.make(tmp_path, version)
    with Upstream([step(call("toolu_h01", HANDOFF, **DOCUMENT)), DONE], strict=True) as upstream:
        ran = home.plain(upstream, "/mcp__cutline__micro-handoff mind the flaky test", *with_server(home), **WAITS)
    assert ran.code == 0 and not upstream.refusals, ran.stderr
    words = [block["text"] for block in blocks(upstream.conversation[0].messages, "text")]
    assert words[-1] == PROMPT
    assert "mind the flaky test" in words[-2]
    assert "checkpoint stored" in result_of(upstream.conversation[1].messages, "toolu_h01")


@VERSIONS
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_a_document_is_read_as_a_resource(tmp_path: Path, version: str, transport: str):
    home = Home.make(tmp_path, version)

    def read(body: dict[str, Any]) -> list[Block]:
        listed = last_result(body)
        uri = re.search(r"cutline://checkpoint/[0-9a-f]{16}", listed)
        assert uri and "the first part" in listed, listed
        return step(call("toolu_r01", "ReadMcpResourceTool", server="cutline", uri=uri[0]))

    with Upstream([*first_work(), DONE], strict=True) as upstream:
        wrote = home.plain(upstream, "Go.", *with_server(home), **WAITS)
    assert wrote.code == 0, wrote.stderr

    # The client asks for the list when it starts.
    script = [step(call("toolu_l01", "ListMcpResourcesTool", server="cutline")), read, DONE]
    with Upstream(script, strict=True) as upstream:
        if transport == "stdio":
            ran = home.plain(upstream, "What was written down?", *with_server(home), **WAITS)
        else:
            with Popen(
                [SERVER["command"], *SERVER["args"], "--http"],
                cwd=home.project,
                env=home.environment(upstream.url),
                stdout=PIPE,
                stderr=DEVNULL,
            ) as server:
                assert server.stdout is not None
                address = server.stdout.readline().decode().strip()
                ran = home.plain(upstream, "What was?", *with_server(home, {"type": "http", "url": address}), **WAITS)
                server.terminate()
    assert ran.code == 0 and not upstream.refusals and not upstream.unused, ran.stderr
    shown = last_result(upstream.conversation[-1].body)
    assert '\\"done\\"' in shown and "the first part" in shown and wrote.result["session_id"] in shown


@VERSIONS
@pytest.mark.parametrize("way", ["resume", "cut"])
def test_without_the_proxy_the_tools_work_and_a_cut_copy_goes_on(tmp_path: Path, version: str, way: str):
    home = Home.make(tmp_path, version)
    (home.project / "other.txt").write_text("nothing")

    def by_address(body: dict[str, Any]) -> list[Block]:
        found = next(line for line in last_result(body).splitlines() if "seq 0 299" in line)
        address = re.match(r"[0-9a-f]{16}", found)
        assert address, found
        return step(call("toolu_c02", RECALL, what=address[0]))

    script = [*first_work(), step(call("toolu_c01", RECALL, what="entry_7 seq")), by_address, DONE]
    with Upstream(script, strict=True) as upstream:
        ran = home.plain(upstream, "Print the log.", *with_server(home), **WAITS)
    assert ran.code == 0 and not upstream.refusals and not upstream.unused, ran.stderr
    messages = upstream.conversation[-1].messages
    assert "checkpoint stored" in result_of(messages, "toolu_h01")
    assert "\nentry_298\nentry_299" in result_of(messages, "toolu_c02")
    assert not list((home.root / "home").rglob("record.db")), "no record was begun"

    with Upstream([DONE], strict=True) as upstream:
        if way == "resume":
            on = ["--", "-p", "And now?", "--output-format", "json", "--model", "claude-sonnet-4-5"]
            again = home.cutline(upstream.url, "resume", "--force", ran.result["session_id"], *on)
        else:
            cut = home.cutline(upstream.url, "cut", "--force", "--json")
            assert cut.code == 0, cut.stderr
            copy = re.search(r"claude --resume ([0-9a-f-]{36})|\"id\": \"([0-9a-f-]{36})\"", cut.stdout + cut.stderr)
            assert copy, cut.stdout
            again = home.plain(upstream, "And now?", "--resume", next(filter(None, copy.groups())))
    assert again.code == 0 and not upstream.refusals, again.stderr
    (turn,) = upstream.conversation
    assert not any(block["id"] == "toolu_b01" for block in blocks(turn.messages, "tool_use"))
    assert "entry_17\n" not in json.dumps(result_of(turn.messages, "toolu_h01")), "what left, left"
    assert SEEN in said(turn.messages) and "I print the log" in said(turn.messages)
    assert "Left out of the context" in result_of(turn.messages, "toolu_h01")
    original = claude.project(home.config, home.project) / f"{ran.result['session_id']}.jsonl"
    assert "toolu_b01" in original.read_text(), "the whole history stays"


def test_what_was_not_said_is_handed_back_out_of_the_session_file(tmp_path: Path):
    home = Home.make(tmp_path)
    silent = step(call("toolu_b01", "Bash", command="echo a1b2c3d retry_policy.go:213"))
    script = [silent, *(step(call(id_, HANDOFF, **DOCUMENT)) for id_ in ("toolu_h01", "toolu_h02")), DONE]
    with Upstream(script, strict=True) as upstream:
        ran = home.plain(upstream, "Go.", *with_server(home), **WAITS)
    assert ran.code == 0, ran.stderr
    messages = upstream.conversation[-1].messages
    assert "checkpoint refused: this would be lost" in result_of(messages, "toolu_h01")
    assert "checkpoint stored" in result_of(messages, "toolu_h02")


def test_codex_lists_the_three_tools_and_a_checkpoint_succeeds(tmp_path: Path):
    binary = codex.install()
    project = tmp_path / "project"
    project.mkdir()
    command = f'mcp_servers.cutline={{command="{SERVER["command"]}",args={json.dumps(SERVER["args"])},required=true}}'
    script = [
        # The client shows an MCP server's tools to an agent that searches for them.
        [{"type": "tool_search_call", "call_id": "call_0", "execution": "client", "status": "completed",
          "arguments": {"query": "micro_handoff checkpoint recall say"}}],
        [codex.said("A natural point."), codex.call("call_1", "micro_handoff", "mcp__cutline", **DOCUMENT)],
        [codex.call("call_2", "micro_handoff", "mcp__cutline", done=1)],
        [codex.call("call_3", "recall", "mcp__cutline", what="no such words anywhere")],
        [codex.call("call_4", "say", "mcp__cutline", text="All is written down.")],
        [codex.said("Done.")],
    ]  # fmt: skip
    with codex.Upstream(script) as upstream:
        client = codex.Codex(binary, upstream.url, tmp_path / "codex", settings=("-c", command))
        ran = client.run(project, "Go on.")
    assert ran.code == 0 and not upstream.refusals and not upstream.unused, ran.stderr
    (space,) = next(item for item in upstream.bodies[1]["input"] if item["type"] == "tool_search_output")["tools"]
    assert space["name"] == "mcp__cutline" and {tool["name"] for tool in space["tools"]} == {
        "micro_handoff",
        "recall",
        "say",
    }
    results = {
        item["call_id"]: json.dumps(item["output"])
        for item in upstream.bodies[-1]["input"]
        if item.get("type") == "function_call_output"
    }
    assert "checkpoint stored" in results["call_1"] and str(project) in results["call_1"]
    assert "checkpoint refused:" in results["call_2"]
    assert "no call in this project" in results["call_3"] and "said" in results["call_4"]
