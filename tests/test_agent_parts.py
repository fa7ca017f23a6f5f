"""The agent's parts that need no model: state, log, gate, fullness, memory, prompt, servers' names, export."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from cutline import mandate
from cutline.agent import events as ev
from cutline.agent import fullness, gate, prompt, servers
from cutline.agent import log as logs
from cutline.agent.exporting import markdown
from cutline.agent.memory import Memory, listed
from cutline.agent.state import Ask, Given, Run, State, is_checkpoint
from cutline.errors import InputError


def answered(text: str, *calls: tuple[str, str, Any], used: dict[str, Any] | None = None) -> ev.Answered:
    parts: list[dict[str, Any]] = [{"part_kind": "text", "content": text}] if text else []
    parts += [
        {"part_kind": "tool-call", "tool_call_id": id, "tool_name": name, "args": args} for id, name, args in calls
    ]
    return ev.Answered({"kind": "response", "parts": parts}, used or {})


def after(*events: ev.Event) -> State:
    state = State()
    for event in events:
        state.apply(event)
    return state


def test_every_event_is_its_own_json():
    for event in (
        ev.Begun("a", "/x", "m:n", tools=({"name": "t"},)),
        ev.Human("hé\ud83d"),
        answered("hi", ("1", "read", "{}")),
        ev.Result("1", "read", "text", exit_code=3),
        ev.Retry("why", 1.0, 2, 3),
        ev.Denied("1", "no", "words"),
        ev.TurnEnded("stopped"),
    ):
        assert ev.from_json(json.loads(json.dumps(ev.to_json(event)))) == event
    with pytest.raises(ValueError, match="no event of type"):
        ev.from_json({"type": "event"})


def test_what_comes_next_is_read_off_the_events():
    begun = (ev.Begun("a", "/x", "m:n"), ev.Human("Go."))
    assert after(*begun).next() == Ask(again=False)
    assert after(*begun, ev.Asked(1)).next() == Ask(again=True)
    made = (*begun, ev.Asked(1), answered("I read.", ("1", "read", {}), ("2", "read", "{")))
    step = after(*made).next()
    assert isinstance(step, Run) and [call.arguments for call in step.calls] == [{}, None]
    # Results go in the calls' order, hints behind them, whatever came first.
    state = after(*made, ev.Hint("wait"), ev.Result("2", "read", "two"), ev.Result("1", "read", "one"), ev.Asked(2))
    given = state.history[-1]
    assert isinstance(given, Given) and [one.text for one in given.results] == ["one", "two"]
    assert [(words.text, words.by) for words in given.words] == [("wait", "hint")]
    assert after(*made, ev.Result("1", "read", ""), ev.Result("2", "read", ""), ev.TurnEnded("stopped")).next() is None


def test_a_request_without_an_answer_takes_what_comes_later_along():
    state = after(
        ev.Begun("a", "/x", "m:n"), ev.Human("One."), ev.Asked(1), ev.TurnEnded("failed"), ev.Human("Two."), ev.Asked(2)
    )
    (given,) = state.history
    assert isinstance(given, Given) and [words.text for words in given.words] == ["One.", "Two."]


def test_only_a_stored_result_is_a_checkpoint_and_it_can_be_taken_back():
    assert not is_checkpoint(ev.Result("1", "micro_handoff", "checkpoint refused: x"))
    assert not is_checkpoint(ev.Result("1", "micro_handoff", "stored", is_error=True))
    assert not is_checkpoint(ev.Result("1", "bash", "checkpoint stored"))
    stored = ev.Result("1", "micro_handoff", "checkpoint stored")
    state = after(ev.Human("Go."), ev.Asked(1), answered("", ("1", "micro_handoff", {})), stored)
    assert state.checkpoints == ["1"] and state.after_checkpoint
    state.apply(ev.CutUndone("1"))
    assert state.checkpoints == [] and not state.after_checkpoint
    state.apply(ev.Asked(2))
    given = state.history[-1]
    assert (
        isinstance(given, Given) and given.results[0].is_error and "took this checkpoint back" in given.results[0].text
    )


def test_the_log_is_private_whole_and_of_one_writer(tmp_path: Path):
    path = tmp_path / "agent" / "a.jsonl"
    log = logs.Log(path)
    log.append(ev.Begun("a", "/x", "m:n"))
    log.append(ev.Human("lone \ud83d surrogate"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    with pytest.raises(InputError, match="open in another process"):
        logs.Log(path)
    log.close()
    with path.open("ab") as handle:
        handle.write(b'{"n":2,"at":1,"type":"hum')
    assert [event for _, event in logs.lines(path)][1:] == [ev.Human("lone \ud83d surrogate")]
    log = logs.Log(path)
    log.append(ev.Hint("on"))
    log.close()
    assert [type(event) for _, event in logs.lines(path)] == [ev.Begun, ev.Human, ev.Hint]


def test_sessions_are_listed_found_and_forked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CUTLINE_RECORD", str(tmp_path / "record.db"))
    for session in ("abc1", "abd2"):
        log = logs.Log(logs.folder() / f"{session}.jsonl")
        for event in (ev.Begun(session, str(tmp_path), "m:n"), ev.Human(f"task of {session}"), ev.Asked(1)):
            log.append(event)
        log.close()
    (logs.folder() / "torn.jsonl").write_bytes(b'{"n":0')
    assert {kept.first for kept in logs.sessions(tmp_path)} == {"task of abc1", "task of abd2"}
    assert logs.sessions(tmp_path / "elsewhere") == []
    with pytest.raises(InputError, match="2 sessions begin with ab"):
        logs.find("ab", tmp_path)
    forked = logs.fork(logs.find("abc", tmp_path), 2)
    (_, begun), (_, human) = logs.lines(forked)
    assert isinstance(begun, ev.Begun) and (begun.parent, begun.session) == ("abc1", forked.stem)
    assert human == ev.Human("task of abc1")
    with pytest.raises(InputError, match="has 3 events"):
        logs.fork(logs.find("abc", tmp_path), 4)


def test_the_gate_asks_the_one_narration_function():
    words = "I read src/pool.py, because the lock order decides whether it can hang; I expect two locks."
    state = after(ev.Human("Go."), ev.Asked(1), answered(words, ("1", "read", {"file_path": "src/pool.py"})))
    coverage = gate.replayed(state.history)
    call = next(iter(state.open.values()))
    assert coverage.stated("1") is True and gate.verdict("strict", coverage, call) == ""
    state = after(ev.Human("Go."), ev.Asked(1), answered("Let me look.", ("1", "read", {"file_path": "src/pool.py"})))
    coverage = gate.replayed(state.history)
    assert gate.verdict("off", coverage, call) == ""
    assert gate.verdict("nudge", coverage, call) == mandate.NUDGE
    assert gate.verdict("strict", coverage, call) == mandate.STRICT


def test_coverage_counts_what_is_told_before_and_after():
    before = "I run the tests of pool.py, because the deadlock should be gone; I expect 12 passed."
    call = ("1", "bash", {"command": "pytest tests/test_pool.py"})
    told = (
        ev.Human("Go."),
        ev.Asked(1),
        answered(before, call),
        ev.Result("1", "bash", "12 passed in 0.31s"),
        ev.Asked(2),
    )
    good = gate.replayed(after(*told, answered("12 passed in 0.31s: tests/test_pool.py is green.")).history)
    bare = gate.replayed(after(*told, answered("Okay.")).history)
    assert (good.calls, good.intent, good.judged, good.narrated) == (1, 1, 1, 1) and (bare.judged, bare.narrated) == (
        1,
        0,
    )


@pytest.mark.parametrize(
    ("prompt_tokens", "level"), [(1_000, ""), (89_000, "pays"), (91_000, "warn"), (97_000, "only")]
)
def test_fullness(prompt_tokens: int, level: str):
    used = {"input": prompt_tokens}
    state = after(ev.Human("Go."), ev.Asked(1), answered("I read.", ("1", "read", {}), used=used))
    state.apply(ev.Result("1", "read", "x" * (400 if not level else 160_000 if level == "pays" else 400)))
    state.turns = [40]
    if level == "pays":
        state.last = ev.Used(input=40_000)
    full = fullness.weigh(state, 100_000, None)
    assert full.level == level and bool(full.reminder) == bool(full.notice) == bool(level)


def test_memory_is_plain_files(tmp_path: Path):
    memory = Memory.of(tmp_path, "/home/me/pool")
    path = memory.remember("The tests need  redis", "start it with just redis (measured)")
    memory.remember("Prefers short answers", "said so", everywhere=True)
    assert path.read_text().startswith("# The tests need redis\n") and stat.S_IMODE(path.stat().st_mode) == 0o600
    assert memory.titles() == ["The tests need redis", "Prefers short answers"]
    assert [found.name for found, _ in memory.find("redis JUST")] == [path.name]
    memory.remember("The tests need redis", "no longer")
    assert len(memory.titles()) == 2 and "no longer" in path.read_text()
    assert Memory.of(tmp_path, "/home/you/pool").titles() == ["Prefers short answers"]
    path.unlink()
    assert "testimony" in listed(memory) and "redis" not in listed(memory)


def test_instructions_go_from_the_general_to_the_particular(tmp_path: Path):
    own, root, tree = tmp_path / "own", tmp_path / "repo", tmp_path / "repo" / "a" / "b"
    for folder in (own, tree):
        folder.mkdir(parents=True)
    (own / "AGENTS.md").write_text("mine")
    (root / "AGENTS.md").write_text("root")
    (root / "CLAUDE.md").write_text("not read: AGENTS.md is there")
    (tree / "CLAUDE.md").write_text("tree")
    assert [text for _, text in prompt.instructions(own, root, tree)] == ["mine", "root", "tree"]
    assert prompt.persona(own, tree) == prompt.PERSONA
    (own / "persona.md").write_text("Terse.")
    assert prompt.persona(own, tree) == "Terse."
    made = prompt.system("Terse.", prompt.instructions(own, root, tree), "", tree, "")
    assert (
        made.startswith("Terse.")
        and mandate.MANDATE in made
        and made.index("AGENTS.md\nroot") < made.index("CLAUDE.md\ntree")
    )


def test_a_servers_file_is_read_and_its_tools_can_not_be_ours(tmp_path: Path):
    assert servers.read(tmp_path, {}) == []
    held = {
        "one": {"command": "run", "args": ["${WHERE:-here}", "$HOME"], "env": {"K": "${KEY}"}},
        "two": {"url": "http://x"},
    }
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": held}))
    one, two = servers.read(tmp_path, {"KEY": "k"})
    assert one.command == ("run", "here", "$HOME") and dict(one.environment) == {"K": "k"} and two.told == "http://x"
    (tmp_path / ".mcp.json").write_text("{")
    with pytest.raises(InputError, match=r"\.mcp\.json can't be read"):
        servers.read(tmp_path, {})
    assert (
        servers._fault("mcp__x__micro_handoff")
        and servers._fault("mcp__cutline__say")
        and servers._fault("mcp__x y__a")
    )
    assert servers._fault("mcp__files__read") == ""


def test_an_export_holds_every_word():
    told = [
        ev.Begun("a", "/x", "m:n"),
        ev.Human("Go."),
        answered("I look.", ("1", "bash", {"command": "ls"})),
        ev.Hint("Quick!"),
        ev.Result("1", "bash", "```\na\n", True, exit_code=2),
        ev.Denied("2", "the human denied it", "no"),
        ev.TurnEnded("stopped"),
    ]
    text = "\n".join(markdown((0.0, event) for event in told))
    for part in (
        "## Human\n\nGo.",
        "## Agent\n\nI look.",
        "```\nls\n```",
        "Quick!",
        "````\n```\na\n\n````",
        "exit code 2",
        "no",
    ):
        assert part in text


def test_the_commands_are_told(tmp_path: Path):
    from click.testing import CliRunner

    from cutline.cli.agent import command

    def run(*args: str) -> Any:
        env = {"CUTLINE_RECORD": str(tmp_path / "record.db"), "ANTHROPIC_API_KEY": "", "CUTLINE_MODEL": ""}
        return CliRunner().invoke(command, [*args], env=env)

    assert run("ls").output.startswith("no session of the agent in this directory")
    assert "no terminal" in run("--model", "anthropic:x").output
    for args, said in (
        (("-p", "x"), "name a model"),
        (("-p", "x", "--model", "anthropic"), "give provider:name"),
        (("-p", "x", "--model", "anthropic:y"), "set ANTHROPIC_API_KEY"),
        (("--resume", "beef"), "no session beef"),
        (("-p", "x", "--model", "local:y", "--base-url", "http://127.0.0.1:1", "--deny", "("), "--allow, --deny"),
    ):
        got = run(*args)
        assert isinstance(got.exception, InputError) and said in str(got.exception), (args, got.output, got.exception)
    assert list(tmp_path.iterdir()) == []
