"""`cutline run codex` on the real client: the whole loop, and what the client does by itself on the way."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cutline.blocks import address
from cutline.measure import request_of
from cutline.record import Record

from . import codex
from .codex import Item, call, reasoning, said
from .run_codex import DIRECT, SCRIPTED, Home, Upstream, calls, cutlines, output, script, shared, texts, weight
from .test_run_task import PARTS, document, intent, outcome, project

pytestmark = pytest.mark.slow

Reads = Callable[[str, int], list[Item]]


def by_itself(words: str, number: int) -> list[Item]:
    """A model that says its words and calls the client's tool."""
    path = f"part_{number:02}.py"
    return [reasoning(f"s{number}"), said(words), call(f"r{number:02}", "exec_command", cmd=f"cat {path}")]


def from_a_script(words: str, number: int) -> list[Item]:
    """A model that calls the client's tools from within a script, and hides its words but for `say`."""
    source = f"const r = await tools.exec_command({{cmd: 'cat part_{number:02}.py'}}); text(r.output)"
    told = cutlines(f"w{number:02}", "say", text=words)
    return [reasoning(f"s{number}", "Hm."), told, script(f"r{number:02}", source)]


def task(reads: Reads) -> list[list[Item]]:
    """The agent's answers."""
    answers = []
    for number in range(PARTS):
        answers.append(reads(intent(number) if not number else f"{outcome(number - 1)}\n\n{intent(number)}", number))
        if number + 1 in (14, 25):
            words = f"{outcome(number)}\n\nA natural point: {number + 1} of {PARTS} parts agree."
            answers.append([said(words), cutlines(f"h{number:02}", "micro_handoff", **document(number + 1))])
    first = reads("", 3)[-1]
    raw = first["arguments"] if first["type"] == "function_call" else json.dumps(first["input"])
    where = address("r03", first["name"], raw.encode())
    words = f"{outcome(PARTS - 1)}\n\nI recall part_03.py, because its row_200 matters now; I expect 1200."
    answers.append([said(words), cutlines("c01", "recall", what=where)])
    answers.append([said("row_200 is 1200.\n\nI look for token_7."), cutlines("c02", "recall", what="token_7")])
    answers.append([said("All parts agree.")])
    return answers


@pytest.mark.parametrize(
    ("model", "reads"), [(DIRECT, by_itself), (SCRIPTED, from_a_script)], ids=["calls tools", "calls them in scripts"]
)
def test_thirty_calls_and_two_checkpoints(tmp_path: Path, model: str, reads: Reads):
    home = Home.make(tmp_path)
    project(home.project)
    with Upstream(task(reads)) as upstream:
        ran = home.run(upstream, "Do all parts agree?", model=model)
        assert ran.code == 0, ran.stderr[-3000:]
        assert upstream.refusals == [] and upstream.unused == 0
        turns = upstream.bodies

    seams = [n for n in range(1, len(turns)) if len(turns[n]["input"]) < len(turns[n - 1]["input"])]
    assert len(seams) == 2
    for n in seams:
        assert weight(turns[n]) < weight(turns[n - 1]) / 2

    # Between checkpoints each request begins with the one before; what stood before the last seam stays for ever.
    for n in range(1, len(turns)):
        if n not in seams:
            assert shared(turns[n - 1], turns[n]) == len(turns[n - 1]["input"]), f"request {n} changed its prefix"
    assert shared(turns[seams[0]], turns[seams[1]]) >= len(turns[seams[0]]["input"]) - 3

    # Every word is still there, and nothing of the world's from before the seam.
    last = turns[-1]
    told = texts(last, "assistant") + "".join(
        json.loads(item["arguments"]).get("text", "") for item in last["input"] if item["type"] == "function_call"
    )
    for number in range(PARTS - 1):
        assert intent(number) in told and outcome(number) in told, number
    reading = "exec_command" if reads is by_itself else "exec"
    assert [name for name in calls(last) if name != "say"] == [
        *("micro_handoff", "micro_handoff"),
        *(reading,) * 3,
        *("recall", "recall"),
    ]

    # The recalled result is the file as it was read, though the call left two seams ago.
    shown = output(last, "c01")
    assert (home.project / "part_03.py").read_text().splitlines()[199] in shown
    assert "part_07.py" in output(last, "c02")

    # The report tells it as it was.
    session = ran.session
    assert session["model"] == model and session["turns"] == len(turns)
    assert [step["first_cut_bytes"] < step["last_uncut_bytes"] for step in session["checkpoints"]] == [True, True]
    assert session["input_tokens"] == 1_000 * len(turns)
    assert session["refusals"] == session["faults"] == [] and ran.report["faults"] == [] and ran.report["notes"] == []
    assert session["go_on"] == f"cutline run codex resume {session['session']}"
    spoken = session["narration"]
    assert spoken["calls"] == PARTS and spoken["silent"] <= 2, spoken

    # The history stays whole, in the client's own file and in the record; nothing else of the user's is touched.
    (rollout,) = codex.rollouts(home.config)
    assert session["session"] in rollout.name and rollout.read_text().count('"call_id":"r03"') >= 2
    with Record(home.record, readonly=True) as record:
        held = record.history(session["session"])
        assert held is not None
        request, _ = request_of(held.body)
        assert sum(len(message.blocks) for message in request.messages) > 3 * PARTS
        assert [one.address != "" for one in record.documents()] == [True, True]
    assert (home.config / "config.toml").read_text() == f'openai_base_url = "{upstream.url}"\n'


LONG, DOCUMENT = "seq 1 2000", {"done": "counted", "open": "the rest", "went_wrong": "nothing"}


def counted(number: int, command: str = LONG) -> list[Item]:
    words = f"I run `{command}`, because part {number} needs its numbers; I expect its last line."
    return [reasoning(f"s{number}"), said(words), call(f"c{number}", "exec_command", cmd=command)]


def checkpoint(number: int) -> list[Item]:
    words = f"`seq` printed 2000 lines, part {number}."
    return [said(words), cutlines(f"h{number}", "micro_handoff", **DOCUMENT)]


class TestCompaction:
    @pytest.mark.parametrize("way", ["the provider's", "the client's"])
    def test_reads_the_whole_history_and_what_comes_behind_it_is_cut_again(self, tmp_path: Path, way: str):
        home = Home.make(tmp_path)
        made = [{"type": "compaction", "id": "cmp_1", "encrypted_content": "sealed"}]
        summary = made if way == "the provider's" else [said("What was done: counting.")]
        told = [counted(1), checkpoint(1), counted(2), counted(3), summary, counted(4), checkpoint(2), [said("End.")]]
        with Upstream(told, input_tokens=[1_000, 2_000, 1_500, 9_000, 1_000]) as upstream:
            home.settle(upstream.url, *own_provider(upstream.url, way == "the client's"))
            ran = home.run(upstream, "Count.", "-c", "model_auto_compact_token_limit=5000", settle=False)
            assert ran.code == 0, ran.stderr[-3000:]
            assert upstream.refusals == [] and upstream.unused == 0
            turns = upstream.bodies

        # Before it the wire was cut; it reads everything; behind it only what came since is there, and is cut.
        assert calls(turns[3]) == ["micro_handoff", "exec_command"]
        assert calls(turns[4]) == ["exec_command", "micro_handoff", "exec_command", "exec_command"]
        assert calls(turns[5]) == [] and calls(turns[6]) == ["exec_command"]
        assert calls(turns[7]) == ["micro_handoff"] and "because part 4" in texts(turns[7], "assistant")
        session = ran.session
        assert session["compactions"] == 1 and session["turns"] == 7 and len(session["checkpoints"]) == 2
        assert session["faults"] == []


def own_provider(url: str, wanted: bool = True) -> list[str]:
    """Lines of a configuration whose provider is the user's own."""
    if not wanted:
        return []
    held = f'name = "Mine", base_url = "{url}", env_key = "CODEX_API_KEY", supports_websockets = true'
    return ['model_provider = "mine"', f"model_providers.mine = {{ {held} }}"]


class TestComingBack:
    def test_the_seam_is_found_again_and_without_cutline_all_is_sent(self, tmp_path: Path):
        home = Home.make(tmp_path)
        with Upstream([counted(1), checkpoint(1), [said("Later.")]]) as upstream:
            first = home.run(upstream, "Count.")
            assert first.code == 0, first.stderr[-3000:]
        id = first.session["session"]

        # Again through a proxy: cut at the same place, and the tools and the mandate are there.
        with Upstream([counted(2), checkpoint(2), [said("Done.")]]) as upstream:
            again = home.run(upstream, "Go on.", "resume", id)
            assert again.code == 0, again.stderr[-3000:]
            assert upstream.refusals == [] and upstream.unused == 0
            turns = upstream.bodies
        assert again.session["session"] == id
        assert [calls(turn) for turn in turns] == [
            ["micro_handoff"],
            ["micro_handoff", "exec_command"],
            ["micro_handoff", "micro_handoff"],
        ]
        assert "mcp__cutline" in [tool.get("name") for tool in turns[0]["tools"]]
        assert texts(turns[0], "developer").count("# Visible reasoning (Cutline)") == 1

        # Plain: nothing is lost.
        with Upstream([[said("Whole.")]]) as upstream:
            plain = home.plain(upstream, "And?", "resume", id)
            assert plain.code == 0 and upstream.refusals == []
        assert calls(upstream.bodies[0]) == ["exec_command", "micro_handoff", "exec_command", "micro_handoff"]

    def test_a_session_that_never_heard_of_cutline_goes_on_in_a_run(self, tmp_path: Path):
        home = Home.make(tmp_path)
        with Upstream([counted(1), [said("It printed 2000.")]]) as upstream:
            plain = home.plain(upstream, "Count.")
            assert plain.code == 0, plain.stderr[-3000:]
        (rollout,) = codex.rollouts(home.config)
        id = rollout.stem[-36:]
        with Upstream([checkpoint(1), [said("Done.")]]) as upstream:
            ran = home.run(upstream, "Go on.", "resume", id)
            assert ran.code == 0, ran.stderr[-3000:]
            assert upstream.refusals == []
        assert calls(upstream.bodies[-1]) == ["micro_handoff"]
        (tools,) = (tool for tool in upstream.bodies[0]["tools"] if tool.get("name") == "mcp__cutline")
        assert tools["description"].startswith("# Visible reasoning (Cutline)")  # no new instructions are given there
        assert ran.session["session"] == id

    def test_what_was_refused_is_no_seam(self, tmp_path: Path):
        home = Home.make(tmp_path)
        wrong = cutlines("h0", "micro_handoff", done="x")
        with Upstream([counted(1), [said("I write it."), wrong], checkpoint(1), [said("Done.")]]) as upstream:
            ran = home.run(upstream, "Count.")
            assert ran.code == 0, ran.stderr[-3000:]
        turns = upstream.bodies
        assert "checkpoint refused" in output(turns[2], "h0")
        assert [calls(turn) for turn in turns[2:]] == [["exec_command", "micro_handoff"], ["micro_handoff"]]


class TestLogins:
    def test_by_chatgpt_the_wire_is_carried_and_cut(self, tmp_path: Path):
        home = Home.make(tmp_path)
        (home.config / "auth.json").write_text(json.dumps(codex.by_chatgpt()))
        with Upstream([counted(1), checkpoint(1), [said("Done.")]]) as upstream:
            aside = f'chatgpt_base_url = "{upstream.url}/aside"'
            home.settle(upstream.url, aside)
            ran = home.run(upstream, "Count.", settle=False, CODEX_API_KEY="")
            assert ran.code == 0, ran.stderr[-3000:]
            assert upstream.refusals == [] and upstream.unused == 0
        for headers in upstream.headers:  # of the history; packed, and with the login's own headers
            assert headers["content-encoding"] == "zstd" and headers["chatgpt-account-id"] == "account"
        assert calls(upstream.bodies[2]) == ["micro_handoff"]
        assert ran.session["by_key"] is False and ran.report["notes"] == []
        held = home.record.read_bytes()
        assert codex.by_chatgpt()["tokens"]["access_token"].encode() not in held

    def test_a_provider_of_the_users_own(self, tmp_path: Path):
        home = Home.make(tmp_path)
        with Upstream([counted(1), checkpoint(1), [said("Done.")]]) as upstream:
            home.settle("http://127.0.0.1:9/unused", *own_provider(upstream.url))
            before = (home.config / "config.toml").read_bytes()
            ran = home.run(upstream, "Count.", settle=False)
            assert ran.code == 0, ran.stderr[-3000:]
            assert upstream.refusals == [] and upstream.unused == 0
        assert calls(upstream.bodies[2]) == ["micro_handoff"]
        assert (home.config / "config.toml").read_bytes() == before


def test_a_sub_agent_is_a_session_of_its_own_in_the_report(tmp_path: Path):
    home = Home.make(tmp_path)
    spawn = {"type": "function_call", "id": "fc_a1", "call_id": "a1", "name": "spawn_agent", "status": "completed"}
    asked = {"task_name": "count", "message": "Count for me."}
    begun = [said("I ask another."), {**spawn, "namespace": "collaboration", "arguments": json.dumps(asked)}]
    waits = {**spawn, "id": "fc_a2", "call_id": "a2", "name": "wait_agent", "namespace": "collaboration"}

    class Provider(Upstream):
        def answer(self, body: dict[str, object]) -> tuple[list[Item], str]:
            if self.headers[-1].get("x-openai-subagent"):
                self.bodies.append(body)
                return [said("It is 2000.")], ""
            mine = [one for one in self.bodies if one["client_metadata"]["thread_id"] == one["prompt_cache_key"]]
            self.bodies.append(body)
            return [begun, [{**waits, "arguments": "{}"}], checkpoint(1), [said("Done.")]][min(len(mine), 3)], ""

    with Provider() as upstream:
        ran = home.run(upstream, "Count.", model=SCRIPTED)
    assert ran.code == 0, ran.stderr[-3000:]
    session = ran.session
    assert session["sub_agent_turns"] == 1 and session["turns"] == 4, session
    assert [step["seam"] != "" for step in session["checkpoints"]] == [True]
    (agent,) = {headers["thread-id"] for headers in upstream.headers if headers["thread-id"] != session["session"]}
    with Record(home.record, readonly=True) as record:
        main, theirs = record.history(session["session"]), record.history(session["session"], agent)
    assert main is not None and theirs is not None
    # The client may give a sub-agent the history that it was asked in.
    assert b"I ask another." in main.body and b"Count for me." in theirs.body and theirs.body != main.body


def test_the_clients_exit_code_is_the_runs(tmp_path: Path):
    home = Home.make(tmp_path)
    home.settle("http://127.0.0.1:9/nobody")
    wrong = home.cutline("run", "--json", "codex", "exec", "--no-such-flag", "hi")
    assert wrong.code == 2 and "--no-such-flag" in wrong.stderr and wrong.report["exit_code"] == 2
    strict = home.cutline("run", "--mandate", "strict", "codex", "exec", "hi")
    assert strict.code == 2 and strict.stderr.count("\n") == 1 and "--mandate strict: not with codex" in strict.stderr
