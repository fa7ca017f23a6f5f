"""What the client's hooks are answered, decided from what they tell and what the proxy saw."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cutline import mandate, project
from cutline.blocks import address
from cutline.cli import cli
from cutline.proxy import hooks
from cutline.proxy.hooks import Fullness, Heard
from cutline.proxy.ledger import claims_without_a_call
from cutline.record import Document, Exchange, Record

AUTO = {"trigger": "auto"}
HANDOFF, SAY = "mcp__cutline__micro_handoff", "mcp__cutline__say"
WHY = "I read ledger.py because its sum decides the next step; I expect 42."


def full(tokens: int = 118_000, seam: str = "", turns: int = 9, **more: Any) -> Fullness:
    return Fullness(tokens=tokens, seam=seam, turns=turns, **more)


def blocked(state: Fullness, payload: dict[str, Any] = AUTO) -> bool:
    return hooks.before_compaction(payload, state).get("decision") == "block"


class TestACompaction:
    def test_is_held_back_five_times_and_then_goes_ahead(self):
        state = full()
        assert [blocked(state) for _ in range(7)] == [True] * 5 + [False] * 2

    def test_the_agent_is_told_once_each_time(self):
        state = full()
        assert not hooks.after_call({"tool_name": "Bash"}, state)
        assert blocked(state)
        told = hooks.after_call({"tool_name": "Bash", "hook_event_name": "PostToolUse"}, state)
        assert told["hookSpecificOutput"] == {
            "hookEventName": "PostToolUse",
            "additionalContext": mandate.CHECKPOINT_WANTED,
        }
        assert not hooks.after_call({"tool_name": "Bash"}, state)

    def test_that_can_t_be_held_back_has_a_checkpoint_asked_for_ahead_twice(self):
        call = {"tool_name": "bash", "limit": 100_000}
        state = full(79_000)
        assert not hooks.after_call(call, state)
        assert hooks.after_call({**call, "tool_response": "x" * 3_600}, state), "what came since counts"
        assert not hooks.after_call(call, state)
        state.request(91_000, "")
        assert hooks.after_call(call, state) and not hooks.after_call(call, state)
        # A checkpoint that was just made and did not help is not asked for again at once.
        assert not hooks.after_call({**call, "tool_name": "cutline_micro_handoff"}, state)
        state.request(85_000, "a")
        assert not hooks.after_call(call, state)
        for _ in range(3):
            state.request(85_000, "a")
        assert hooks.after_call(call, state)
        assert not hooks.after_call({"tool_name": "bash", "limit": 0}, full(79_000))

    @pytest.mark.parametrize(
        ("state", "payload"),
        [
            (full(), {"trigger": "manual"}),
            (full(), {}),
            (full(), {"trigger": "auto", "agent_id": "a1"}),
            (full(overflowed=True), AUTO),
            (full(173_500), AUTO),
            (full(160_000, pending=42_000), AUTO),
            (full(974_000), AUTO),
            (full(seam="b", asked_at="a", asked=1, turns=1), AUTO),
        ],
        ids=["by the human", "unknown", "in a sub-agent", "refused", "at the end", "at the end soon", "1M", "no help"],
    )
    def test_goes_ahead_at_once(self, state: Fullness, payload: dict[str, Any]):
        assert not blocked(state, payload)

    def test_a_large_window_is_known_by_what_stands_in_it(self):
        assert blocked(full(967_500))

    def test_behind_a_stored_checkpoint_waits_for_the_cut_even_after_the_fifth_time(self):
        state = full()
        assert all(blocked(state) for _ in range(5))
        hooks.after_call({"tool_name": HANDOFF, "tool_response": "checkpoint stored"}, state)
        assert blocked(state) and not state.wanted
        state.request(30_000, "seam")
        assert not state.made and not state.wanted

    def test_in_the_history_behind_a_summary_everything_is_asked_anew(self):
        state = full()
        assert not [blocked(state) for _ in range(6)][-1]
        state.compacted()
        state.request(118_000, "")
        assert blocked(state)

    def test_what_comes_between_two_requests_weighs_as_it_stands_on_the_wire(self):
        for response, weight in (
            ("x" * 3_000, 3_000),
            ({"stdout": "x" * 900_000}, 50_000),
            ({"type": "image", "file": {"base64": "x" * 2_000_000, "type": "image/png"}}, 6_014),
            ([{"type": "text", "text": "x" * 10}], 14),
            (None, 0),
            (7, 0),
        ):
            state = full()
            hooks.after_call({"tool_name": "Bash", "tool_response": response}, state)
            assert state.pending == weight
        state = full()
        hooks.after_call({"tool_name": "mcp__cutline__recall", "tool_response": "x" * 300_000}, state)
        assert state.pending == 300_000
        hooks.after_call({"tool_name": "Bash", "tool_response": "x" * 300, "agent_id": "a1"}, state)
        assert state.pending == 300_000, "a sub-agent's results are not in this context"


def words(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def call(id_: str, name: str = "Read", **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id_, "name": name, "input": arguments or {"file_path": "ledger.py"}}


def heard(*answers: list[dict[str, Any]]) -> Heard:
    made = Heard()
    for answer in answers:
        made.hear(answer)
    return made


READ = {"tool_name": "Read", "tool_input": {"file_path": "ledger.py"}, "tool_use_id": "1"}


class TestACall:
    @pytest.mark.parametrize(
        "answers",
        [
            [[words(WHY), call("1")]],
            [[call("s", SAY, text=WHY), call("1")]],
            [[call("s", SAY, text=WHY)], [call("1")]],
            [[words(WHY)], [call("1")]],
        ],
        ids=["in text", "say in parallel", "say before", "an answer before"],
    )
    def test_with_a_stated_intent_runs(self, answers: list[list[dict[str, Any]]]):
        assert hooks.before_call(READ, heard(*answers), "strict") == {}

    def test_without_one_is_returned_or_reminded_of(self):
        strict = hooks.before_call(READ, heard([call("1")]), "strict")["hookSpecificOutput"]
        assert (strict["permissionDecision"], strict["permissionDecisionReason"]) == ("deny", mandate.STRICT)
        nudge = hooks.before_call(READ, heard([call("1")]), "nudge")["hookSpecificOutput"]
        assert nudge == {"hookEventName": "PreToolUse", "additionalContext": mandate.NUDGE}
        assert hooks.before_call(READ, heard([call("1")]), "text") == {}

    def test_of_gemini_cli_is_refused_before_it_or_reminded_of_behind_it(self):
        before, after = ({**READ, "hook_event_name": event} for event in ("BeforeTool", "AfterTool"))
        silent = [call("1")]
        assert hooks.before_call(before, heard(silent), "strict") == {"decision": "deny", "reason": mandate.STRICT}
        assert hooks.before_call(before, heard(silent), "nudge") == {}, "it takes no words beside a call that runs"
        told = hooks.before_call(after, heard(silent), "nudge")["hookSpecificOutput"]
        assert told == {"hookEventName": "AfterTool", "additionalContext": mandate.NUDGE}
        assert hooks.before_call(after, heard([words(WHY), call("1")]), "nudge") == {}

    def test_is_known_by_its_id_or_where_the_client_tells_none_by_name_and_arguments(self):
        made = heard([call("1")])
        named = {"tool_name": call("1")["name"], "tool_input": call("1")["input"]}
        assert made.holds({"tool_use_id": "1"}) and not made.holds({"tool_use_id": "2", **named})
        assert made.holds(named) and not made.holds({**named, "tool_input": {}}) and not made.holds({})

    def test_words_of_an_earlier_call_are_not_this_one_s(self):
        assert hooks.before_call(READ, heard([words(WHY), call("0")], [call("1")]), "strict")

    def test_whose_answer_was_not_seen_runs(self):
        assert hooks.before_call(READ, None, "strict") == {}

    @pytest.mark.parametrize("payload", [{"agent_id": "a"}, {"tool_name": SAY}, {"tool_name": "AskUserQuestion"}])
    def test_of_a_sub_agent_or_of_speech_is_not_asked_about(self, payload: dict[str, Any]):
        assert not hooks.is_held({**READ, **payload})
        assert hooks.before_call({**READ, **payload}, heard([call("1")]), "strict") == {}

    def test_is_returned_in_three_answers_in_a_row_at_most(self):
        made, returned = Heard(), []
        for _ in range(6):
            made.hear([call("1"), call("2")])
            told = [hooks.before_call(READ, made, "strict")["hookSpecificOutput"] for _call in "12"]
            returned.append([one.get("permissionDecision") == "deny" for one in told])
        assert returned == [[True, True]] * 3 + [[False, False]] + [[True, True]] * 2


def test_looking_for_calls_in_a_long_text_takes_no_time():
    for text in (
        "```\n" * 50_000,
        "<invoke " * 50_000,
        '{ "name" : ' * 50_000,
        "[Tool call:" * 50_000,
        " \n" * 200_000,
    ):
        start = time.process_time()
        claims_without_a_call([words(text)])
        assert time.process_time() - start < 2


@pytest.mark.parametrize("session", ["first", "after a clear"])
def test_behind_a_summary_the_last_document_is_put_back_in_view(tmp_path: Path, session: str):
    document = {"done": "all", "open": "nothing", "went_wrong": "nothing"}
    messages = [
        {"role": "user", "content": "Count."},
        {"role": "assistant", "content": [call("h", HANDOFF, **document)]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "h", "content": "checkpoint stored"}]},
    ]
    scope, path = project.project(tmp_path), tmp_path / "record.db"
    where = address("h", HANDOFF, json.dumps(document).encode())
    with Record(path) as record:
        body = json.dumps({"model": "m", "messages": messages}).encode()
        record.write(Exchange(session, "", "claude", scope, 1.0, body, len(body), "", 200, b"", {}, "turn"))
        # The tools bear the id of the session that they were started with.
        record.put_document(Document("first", scope, 1.0, where, json.dumps(document), "{}", "{}"))
    told = hook({"session_id": session, "cwd": str(tmp_path)}, path)
    assert f"its document is at the address {where}" in json.loads(told)["hookSpecificOutput"]["additionalContext"]
    assert hook({"session_id": "another", "cwd": str(tmp_path)}, path) == ""
    for broken in ({}, [], "x", {"session_id": 7}):
        assert hook(broken, path) == "" and hook(broken, tmp_path / "none.db") == ""


def test_a_resumed_copy_is_not_summarised_until_an_answer_came(tmp_path: Path) -> None:
    transcript = tmp_path / "copy.jsonl"
    old = {"type": "assistant", "timestamp": "2026-01-01T00:00:00.000Z", "message": {"usage": {"input_tokens": 9}}}
    transcript.write_text(json.dumps(old) + "\n")
    since = "2026-01-02T00:00:00.000Z"

    def asked(**payload: Any) -> str:
        given = {"trigger": "auto", "transcript_path": str(transcript), **payload}
        return CliRunner().invoke(cli, ["hook", "full", "--since", since], input=json.dumps(given)).stdout

    assert json.loads(asked())["decision"] == "block"
    assert asked(trigger="manual") == asked(transcript_path=str(tmp_path / "none")) == ""
    with transcript.open("a") as out:
        out.write(json.dumps({**old, "timestamp": "2026-01-02T00:00:01.000Z"}) + "\n")
    assert asked() == ""


def hook(payload: Any, record: Path) -> str:
    told = CliRunner().invoke(
        cli, ["hook", "compacted"], input=json.dumps(payload), env={"CUTLINE_RECORD": str(record)}
    )
    assert told.exit_code == 0, told.exception
    return told.stdout
