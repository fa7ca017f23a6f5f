"""Checkpoints that are not alone, not wanted, or not answered: what is a seam, and what is none."""

import json
import os
import signal
import sqlite3
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from cutline.record import Record

from .run import BOUND, DOCUMENT, HANDOFF, OLDER, Home, Ran, blocks, result_of, said
from .upstream import Answer, Block, Recorded, Upstream, call, text, thinking

pytestmark = pytest.mark.slow


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home.make(tmp_path)
    for name in ("a", "b", "c"):
        # Too long for an answer that one has to remember, so that no checkpoint asks for it.
        (made.project / f"{name}.py").write_text("".join(f"{name}_{number} = {number}\n" for number in range(120)))
    return made


def step(*calls: Block, words: str = "I go on.") -> list[Block]:
    return [thinking("So far so good."), text(words), *calls]


def done() -> list[Block]:
    return [thinking("Enough."), text("Done.")]


def handoff(id_: str) -> Block:
    return call(id_, HANDOFF, **DOCUMENT)


def echo(id_: str, words: str) -> Block:
    return call(id_, "Bash", command=f"echo {words}", description="say it")


def play(home: Home, script: Sequence[Answer], *arguments: str, **more: Any) -> tuple[Ran, list[Recorded]]:
    """A run to its end, of which nothing was refused; its turns."""
    with Upstream(script, strict=True, bound=True) as upstream:
        ran = home.run(upstream, "Go.", *arguments, **more)
    assert ran.code == 0, ran.stderr
    assert upstream.refusals == [] and upstream.unused == 0
    assert ran.report["faults"] == [] and all(told["faults"] == [] for told in ran.report["sessions"])
    return ran, upstream.conversation


def calls(turn: Recorded) -> list[str]:
    return [block["id"] for block in blocks(turn.messages, "tool_use")]


@pytest.mark.parametrize("model", [OLDER, BOUND])
def test_beside_other_calls_and_twice_in_one_message(home: Home, model: str):
    """What stands beside a checkpoint stays until the next one; of two in one message both stay, with one notice."""
    read = call("toolu_r2", "Read", file_path=str(home.project / "b.py"))
    script = [
        step(call("toolu_r1", "Read", file_path=str(home.project / "a.py")), words="I read a.py."),
        step(read, handoff("toolu_h1"), echo("toolu_s1", "sibling"), words="A natural point."),
        step(echo("toolu_s2", "after")),
        step(echo("toolu_s3", "beside"), handoff("toolu_h2"), handoff("toolu_h3"), words="Another one, twice."),
        done(),
    ]
    ran, turns = play(home, script, model=model)
    assert [calls(turn) for turn in turns] == [
        [],
        ["toolu_r1"],
        ["toolu_r2", "toolu_h1", "toolu_s1"],
        ["toolu_r2", "toolu_h1", "toolu_s1", "toolu_s2"],
        ["toolu_h1", "toolu_s3", "toolu_h2", "toolu_h3"],
    ]
    assert "b_57 = 57" in result_of(turns[2].messages, "toolu_r2")
    last = turns[-1].messages
    assert "[cutline]" in result_of(last, "toolu_h1") and "[cutline]" in result_of(last, "toolu_h3")
    assert "[cutline]" not in result_of(last, "toolu_h2")
    assert [words in said(last) for words in ("I read a.py.", "A natural point.", "Another one, twice.")] == [True] * 3
    assert len(ran.session["checkpoints"]) == 2
    with Record(home.record, readonly=True) as record:
        assert len(record.documents()) == 3


def test_a_refused_one_is_no_seam_and_two_in_one_human_turn_are_two(home: Home):
    script = [
        step(call("toolu_r1", "Read", file_path=str(home.project / "a.py"))),
        step(call("toolu_h1", HANDOFF, done="the first part"), words="Badly shaped."),
        step(handoff("toolu_h2"), words="Well shaped."),
        step(call("toolu_r2", "Read", file_path=str(home.project / "b.py"))),
        step(handoff("toolu_h3")),
        done(),
    ]
    ran, turns = play(home, script, model=BOUND)
    assert [calls(turn) for turn in turns[2:]] == [
        ["toolu_r1", "toolu_h1"],
        ["toolu_h2"],
        ["toolu_h2", "toolu_r2"],
        ["toolu_h2", "toolu_h3"],
    ]
    refused = result_of(turns[2].messages, "toolu_h1")
    assert refused.startswith("checkpoint refused:") and "open: a text is required" in refused
    assert "Badly shaped." in said(turns[-1].messages)
    assert len(ran.session["checkpoints"]) == 2


def test_what_would_be_lost_is_handed_back_once(home: Home):
    script = [
        step(call("toolu_b1", "Bash", command="printf 'a1b2c3d retry_policy.go:213'", description="look"), words="Hm."),
        step(handoff("toolu_h1")),
        step(handoff("toolu_h2")),
        done(),
    ]
    _, turns = play(home, script)
    assert [calls(turn) for turn in turns[2:]] == [["toolu_b1", "toolu_h1"], ["toolu_h2"]]
    handed_back = result_of(turns[2].messages, "toolu_h1")
    assert handed_back.startswith("checkpoint refused:") and "retry_policy.go:213" in handed_back


@pytest.mark.parametrize("how", ["disallowed by a flag", "denied by the user's settings"])
def test_a_denied_one_is_no_seam(home: Home, how: str):
    """The user's word stands above the permission that a run gives its tools."""
    deny = json.dumps({"permissions": {"deny": [HANDOFF]}})
    flags = ("--disallowedTools", HANDOFF) if "flag" in how else ("--settings", deny)
    read = call("toolu_r1", "Read", file_path=str(home.project / "a.py"))
    ran, turns = play(home, [step(read), step(handoff("toolu_h1")), done()], *flags)
    assert calls(turns[-1]) == ["toolu_r1", "toolu_h1"]
    assert "No such tool available" in result_of(turns[-1].messages, "toolu_h1")
    assert ran.session["checkpoints"] == [] and ran.session["sent_bytes"] == ran.session["uncut_bytes"]


@pytest.mark.parametrize(
    "end",
    [
        "times out",
        pytest.param("dies", marks=pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")),
    ],
)
def test_one_that_is_never_answered_is_no_seam_and_the_next_one_is(home: Home, end: str):
    """A foreign lock on the record holds the tool up, until the client gives up or its server is gone."""
    lock: sqlite3.Connection

    def held_up(_: dict[str, Any]) -> list[Block]:
        nonlocal lock
        lock = sqlite3.connect(home.record, isolation_level=None, check_same_thread=False)
        lock.execute("BEGIN IMMEDIATE")
        if end == "dies":
            threading.Thread(target=_kill_when_waiting, args=(home,), daemon=True).start()
        return step(handoff("toolu_h1"))

    def free_again(_: dict[str, Any]) -> list[Block]:
        lock.close()
        return step(handoff("toolu_h2"))

    read = call("toolu_r1", "Read", file_path=str(home.project / "a.py"))
    limit = {"MCP_TOOL_TIMEOUT": "1500"} if end == "times out" else {}
    ran, turns = play(home, [step(read), held_up, free_again, done()], **limit)
    assert calls(turns[2]) == ["toolu_r1", "toolu_h1"] and calls(turns[3]) == ["toolu_h2"]
    told = result_of(turns[2].messages, "toolu_h1")
    assert ("timed out" if end == "times out" else "Connection closed") in told
    assert len(ran.session["checkpoints"]) == 1


def _kill_when_waiting(home: Home) -> None:
    """Kill the tools' server of this home's client, a moment after it was called."""
    time.sleep(0.7)
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            where = (entry / "cwd").resolve()
        except OSError:
            continue
        if words[-3:-1] == [b"cutline", b"mcp"] and where == home.project.resolve():
            os.kill(int(entry.name), signal.SIGKILL)


@pytest.mark.parametrize("model", [OLDER, BOUND])
def test_a_sub_agent_s_cuts_its_own_wire_alone(home: Home, model: str):
    """It is told not to; if it does all the same, nothing of the main agent's is touched."""
    task = {"description": "look", "prompt": "Look at b.py", "subagent_type": "general-purpose"}
    script = [
        step(call("toolu_r1", "Read", file_path=str(home.project / "a.py"))),
        step(call("toolu_g1", "Agent", **task, run_in_background=False)),
        step(call("toolu_x1", "Read", file_path=str(home.project / "b.py"))),
        step(handoff("toolu_x2")),
        step(call("toolu_x3", "Read", file_path=str(home.project / "c.py"))),
        [thinking("Enough."), text("b.py has 120 rows.")],
        done(),
    ]
    ran, turns = play(home, script, model=model)
    main = [turn for turn in turns if "x-claude-code-agent-id" not in turn.headers]
    sub = [turn for turn in turns if "x-claude-code-agent-id" in turn.headers]
    assert [calls(turn) for turn in sub] == [[], ["toolu_x1"], ["toolu_x2"], ["toolu_x2", "toolu_x3"]]
    assert calls(main[-1]) == ["toolu_r1", "toolu_g1"]
    told = ran.session
    assert (told["turns"], told["sub_agent_turns"], told["checkpoints"]) == (3, 4, [])
    assert told["sent_bytes"] == sum(len(turn.raw) for turn in turns) < told["uncut_bytes"]


@pytest.mark.parametrize("model", [OLDER, BOUND])
def test_as_the_very_last_thing_before_leaving(home: Home, model: str):
    """It was answered, and nothing was sent behind it: the first request after coming back is cut."""
    read = call("toolu_r1", "Read", file_path=str(home.project / "a.py"))
    with Upstream([step(read), step(handoff("toolu_h1"))], strict=True, bound=True) as upstream:
        left = home.run(upstream, "Go.", "--max-turns", "2", model=model)
    assert left.code == 1 and left.session["checkpoints"] == [] and len(upstream.conversation) == 2
    ran, turns = play(home, [done()], "--continue", model=model)
    assert calls(turns[0]) == ["toolu_h1"] and turns[0].body["messages"][-1]["role"] != "assistant"
    assert len(ran.session["checkpoints"]) == 1
