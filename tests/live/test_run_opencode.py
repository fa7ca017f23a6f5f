"""`cutline run opencode` on the real client: the whole loop, what it does by itself, its wires, what stays the user's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import providers
from cutline.blocks import address
from cutline.record import Record
from streams import Said
from test_proxy_upstreams import SECRET, signature_fault

from . import codex, gemini_cli, run_codex
from . import upstream as anthropic
from .chat import FULL, WINDOW, Answer
from .run_opencode import Home, look, provider, silent
from .run_pi import (
    DOCUMENT,
    HANDOFF,
    RECALL,
    SAY,
    calls,
    hand,
    history,
    names,
    offered,
    result,
    said,
    shared,
    system,
    weight,
)
from .test_run_task import PARTS, document, intent, outcome, project

pytestmark = pytest.mark.slow

MANDATE = "# Visible reasoning (Cutline)"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.make(tmp_path)


def script(folder: Path) -> list[Answer]:
    """The agent's answers to the task of `test_run_task`: words in text at first, with `say` later on."""
    answers: list[Answer] = []
    for number in range(PARTS):
        words = intent(number) if not number else f"{outcome(number - 1)}\n\n{intent(number)}"
        read = (f"r{number:02}", "read", {"filePath": str(folder / f"part_{number:02}.py")})
        if number > PARTS // 2:
            answers.append(Answer("", [(f"w{number:02}", SAY, {"text": words}), read]))
        else:
            answers.append(Answer(words, [read], "So far so good."))
        if number + 1 in (14, 25):
            words = f"{outcome(number)}\n\nA natural point: {number + 1} of {PARTS} parts agree."
            answers.append(Answer(words, [(f"h{number:02}", HANDOFF, document(number + 1))]))
    where = address("r03", "read", json.dumps({"filePath": str(folder / "part_03.py")}).encode())
    words = f"{outcome(PARTS - 1)}\n\nI recall part_03.py, because its row_200 matters now; I expect 1200."
    answers.append(Answer(words, [("c01", RECALL, {"what": where})]))
    answers.append(Answer("row_200 is 1200.\n\nI look for token_7.", [("c02", RECALL, {"what": "token_7"})]))
    answers.append(Answer("All parts agree."))
    return answers


def test_thirty_calls_and_two_checkpoints(home: Home):
    project(home.project)
    with provider(script(home.project)) as upstream:
        ran = home.run(upstream, "Do all parts agree?")
        assert ran.code == 0, ran.stderr[-3000:]
        assert upstream.faults == [] and upstream.unused == 0
        turns = upstream.requests

    # The history part is more than halved at each checkpoint, and nothing of the rest of a request is changed.
    seams = [n for n in range(1, len(turns)) if len(turns[n]["messages"]) < len(turns[n - 1]["messages"])]
    assert len(seams) == 2
    for n in seams:
        assert weight(turns[n]) < weight(turns[n - 1]) / 2
    # Each request begins with the one before; what stood before the last seam stays for ever.
    for n in range(1, len(turns)):
        if n not in seams:
            assert shared(turns[n - 1], turns[n]) == len(turns[n - 1]["messages"]), f"request {n} changed its prefix"
    assert shared(turns[seams[0]], turns[seams[1]]) == len(turns[seams[0]]["messages"])

    # Every word is still there, and nothing of the world's from before the seam.
    last = turns[-1]
    for number in range(PARTS - 1):
        assert intent(number) in said(last) and outcome(number) in said(last), number
    assert [name for name in names(last) if name != SAY] == [HANDOFF, HANDOFF, *("read",) * 3, RECALL, RECALL]

    # The recalled result is the file as it was read, though the call left two seams ago.
    assert (home.project / "part_03.py").read_text().splitlines()[199] in result(last, "c01")
    assert "part_07.py" in result(last, "c02")

    # The report tells it as it was.
    session = ran.session
    steps = session["checkpoints"]
    assert [step["first_cut_message_bytes"] * 2 < step["last_uncut_message_bytes"] for step in steps] == [True] * 2
    assert session["input_tokens"] < session["uncut_tokens_estimated"] and session["by_key"]
    assert session["turns"] == len(turns) and session["other_requests"] == len(upstream.asides) == 1  # a title
    assert session["refusals"] == session["faults"] == []
    spoken = session["narration"]
    assert spoken["calls"] == PARTS and spoken["in_text"] and spoken["by_say"] and spoken["silent"] <= 2, spoken
    assert ran.report["faults"] == ran.report["notes"] == []
    assert session["go_on"] == f"cutline run opencode -s {session['session']}"

    # The history stays whole: in the client's own database and in the record. Nothing of ours reaches the provider.
    shown = home.cutline("show", "--json", session["session"])
    assert shown.code == 0 and json.loads(shown.stdout)["rows"]["tool calls"]["blocks"] >= PARTS
    with Record(home.record, readonly=True) as record:
        held = record.history(session["session"])
        assert held is not None and len(calls(json.loads(held.body)["messages"])) >= PARTS + 4
        assert [one.session for one in record.documents()] == [session["session"]] * 2
    assert not [name for one in upstream.headers for name in one if "cutline" in name]


# -------------------------------------------------------------------------------------------------- coming back


class TestComingBack:
    def test_the_seam_is_found_again_and_without_cutline_all_is_sent(self, home: Home):
        with provider([look("c1"), hand("h1"), Answer("Later.")]) as upstream:
            first = home.run(upstream, "Count.")
            assert first.code == 0, first.stderr[-3000:]
        id_ = first.session["session"]
        with provider([look("c2"), hand("h2"), Answer("Done.")]) as back:
            again = home.run(back, "Go on.", "--session", id_)
            assert again.code == 0, again.stderr[-3000:]
        assert upstream.faults == back.faults == []
        turns = back.requests
        assert [names(turn) for turn in turns] == [[HANDOFF], [HANDOFF, "bash"], [HANDOFF, HANDOFF]]
        assert system(turns[0]).count(MANDATE) == 1 and HANDOFF in offered(turns[0])
        assert shared(upstream.requests[-1], turns[0]) == len(upstream.requests[-1]["messages"]), "the prefix stays"
        assert again.session["session"] == id_
        assert again.session["checkpoints"][0]["seam"] == first.session["checkpoints"][0]["seam"]

        # Plain: nothing is lost, and nothing of a run is left behind.
        with provider([Answer("Whole.")]) as plain:
            done = home.plain(plain, "And?", "--session", id_)
            assert done.code == 0 and plain.faults == [], done.stderr
        assert names(plain.requests[0]) == ["bash", HANDOFF, "bash", HANDOFF]
        assert MANDATE not in system(plain.requests[0])

    def test_a_session_that_never_heard_of_cutline_goes_on_in_a_run(self, home: Home):
        with provider([look("c1"), Answer("It has 800 rows.")]) as upstream:
            assert home.plain(upstream, "Count.").code == 0
        with provider([hand("h1"), Answer("Done.")]) as upstream:
            ran = home.run(upstream, "Go on.", "--continue")
            assert ran.code == 0 and upstream.faults == [], ran.stderr[-3000:]
        assert [names(turn) for turn in upstream.requests] == [["bash"], [HANDOFF]]
        assert MANDATE in system(upstream.requests[0])

    def test_a_copy_that_is_cut_goes_on_in_a_run(self, home: Home):
        with provider([look("c1"), hand("h1"), Answer("Later.")]) as upstream:
            session = home.run(upstream, "Count.").session["session"]
        cut = home.cutline("cut", "--force", "--json", session)
        assert cut.code == 0, cut.stderr
        copy = json.loads(cut.stdout)["copy"]["id"]
        with provider([look("c2"), hand("h2"), Answer("Done.")]) as upstream:
            ran = home.run(upstream, "Go on.", "--session", copy)
            assert ran.code == 0 and upstream.faults == [], ran.stderr[-3000:]
        assert [names(turn) for turn in upstream.requests] == [[HANDOFF], [HANDOFF, "bash"], [HANDOFF, HANDOFF]]
        assert ran.session["session"] == copy


@pytest.mark.parametrize("given", [{"done": "x"}, {**DOCUMENT, "facts": "none"}], ids=["misses members", "wrong type"])
def test_what_was_refused_is_no_seam(home: Home, given: dict[str, Any]):
    wrong = Answer("I write it.", [("h0", HANDOFF, given)])
    with provider([look("c1"), wrong, hand("h1"), Answer("Done.")]) as upstream:
        ran = home.run(upstream, "Count.")
        assert ran.code == 0 and upstream.faults == [], ran.stderr[-3000:]
    assert [names(turn) for turn in upstream.requests[2:]] == [["bash", HANDOFF], [HANDOFF]]
    assert len(ran.session["checkpoints"]) == 1


class TestTheMandate:
    SILENT = silent(look("c1", "few.txt"))

    def test_strict_returns_a_call_without_words_unrun(self, home: Home):
        with provider([self.SILENT, look("c2", "few.txt"), Answer("Done.")]) as upstream:
            ran = home.run(upstream, "Count.", flags=["--mandate", "strict"])
            assert ran.code == 0 and upstream.faults == [], ran.stderr[-3000:]
        last = upstream.requests[-1]
        assert "Cutline: not run" in result(last, "c1") and result(last, "c2").startswith("one\ntwo\n")

    def test_nudge_reminds_behind_the_result(self, home: Home):
        spoken = Answer("", [("w3", SAY, {"text": look("c3").text}), *look("c3").calls])
        with provider([self.SILENT, look("c2", "few.txt"), spoken, Answer("Done.")]) as upstream:
            ran = home.run(upstream, "Count.", flags=["--mandate", "nudge"])
            assert ran.code == 0 and upstream.faults == [], ran.stderr[-3000:]
        last = upstream.requests[-1]
        assert result(last, "c1").startswith("one\ntwo\n") and "this call comes without words" in result(last, "c1")
        assert "Cutline:" not in result(last, "c2") + result(last, "c3")


# --------------------------------------------------------------------------------------------------- its compaction

NEAR = FULL + FULL // 6
"""Tokens of a window at whose end nothing fits any more, and of which the full count is more than 80 percent."""


class TestCompaction:
    def test_a_checkpoint_is_asked_for_ahead_of_it(self, home: Home):
        told = [look("c1"), look("c2"), hand("h1"), look("c3"), Answer("Done.")]
        with provider(told, 2) as upstream:
            ran = home.run(upstream, "Count.", settings={"window": NEAR})
            assert ran.code == 0 and upstream.faults == [] and upstream.unused == 0, ran.stderr[-3000:]
        assert "Cutline: the context is nearly full" not in result(upstream.requests[1], "c1")
        assert "Cutline: the context is nearly full" in result(upstream.requests[2], "c2")
        assert names(upstream.requests[3]) == [HANDOFF]
        assert len(upstream.asides) == 1, "a title, and no summary"
        assert ran.session["compactions"] == 0 and len(ran.session["checkpoints"]) == 1

    def test_reads_everything_and_what_follows_is_cut(self, home: Home):
        assert FULL > WINDOW - 8_000
        told = [look("c1"), hand("h1"), look("c2"), look("c3"), look("c4"), hand("h2"), Answer("Done.")]
        with provider(told, 4) as upstream:
            settings = {"compaction": {"preserve_recent_tokens": 10}}
            ran = home.run(upstream, "Count.", flags=["--keep-compaction"], settings=settings)
            assert ran.code == 0 and upstream.faults == [] and upstream.unused == 0, ran.stderr[-3000:]
        asked = json.dumps(upstream.asides)
        assert "<conversation>" in asked and "for c1, because" in asked, "a summary is made of the whole"
        assert names(upstream.requests[3]) == [HANDOFF, "bash"]
        assert "for c1, because" not in said(upstream.requests[4]) and "All is well." in said(upstream.requests[4])
        assert names(upstream.requests[6]) == [HANDOFF] and "for c4, because" in said(upstream.requests[6])
        session = ran.session
        assert session["compactions"] == 1 and len(session["checkpoints"]) == 2
        assert session["faults"] == [] and session["turns"] == 7

    def test_old_results_are_not_cleared_by_the_client_itself(self, home: Home):
        (home.project / "long.txt").write_text("x" * 70 + "\n" + "y" * 70 + "\n")
        long = {"command": "for i in $(seq 300); do cat long.txt; done", "description": "a step"}
        told = [*(Answer("I read it all.", [(f"c{n}", "bash", long)]) for n in range(9)), *map(Answer, "123")]
        settings = {"compaction": {"prune": True}, "window": 10_000_000}
        with provider(told) as upstream:
            session = home.run(upstream, "One.", settings=settings).session["session"]
            for prompt in ("Two.", "Three."):
                ran = home.run(upstream, prompt, "--session", session, settings=settings)
                assert ran.code == 0 and upstream.faults == [], ran.stderr[-3000:]
            assert upstream.unused == 0
        assert "[Old tool result content cleared]" not in json.dumps(upstream.requests[-1])


# ------------------------------------------------------------------------------------------------------- sub-agents


@pytest.mark.parametrize("name", ["scripted", "opencode-own"])  # to its own service the client names sessions otherwise
def test_a_sub_agent_is_counted_by_itself(home: Home, name: str):
    def answer(body: dict[str, Any]) -> Answer:
        if "Count the rows" in json.dumps(history(body)[0]):
            return Answer("800 rows.") if names(body) else silent(look("b1"))
        if not names(body):
            task = {"description": "count", "prompt": "Count the rows.", "subagent_type": "general"}
            return Answer("I ask a helper to count.", [("a1", "task", task)])
        return hand("h1") if HANDOFF not in names(body) else Answer("Done.")

    with provider(answer) as upstream:
        ran = home.run(upstream, "How many?", flags=["--mandate", "nudge"], settings={"name": name})
        assert ran.code == 0 and upstream.faults == [], ran.stderr[-3000:]
    session = ran.session
    assert (session["turns"], session["sub_agent_turns"]) == (3, 2)
    (theirs,) = (body for body in upstream.requests if names(body) == ["bash"])
    assert "row 700" in result(theirs, "b1") and "Cutline:" not in result(theirs, "b1"), "it is left alone"
    assert "800 rows" in result(upstream.requests[3], "a1") and names(upstream.requests[-1]) == [HANDOFF]
    with Record(home.record, readonly=True) as record:
        (agent,) = {row.agent for row in record.requests(session["session"])} - {""}
        main, sub = record.history(session["session"]), record.history(session["session"], agent)
    assert main is not None and sub is not None
    assert b"I ask a helper" in main.body and b"row 700" in sub.body and b"row 700" not in main.body


# -------------------------------------------------------------------------------------------------- its other wires


class TestOtherWires:
    def run(self, home: Home, url: str, package: str, model: str = "m1") -> Any:
        home.settle(url, package, model)
        ran = home.cutline("run", "--json", "opencode", "run", "--format", "json", "Count.")
        assert ran.code == 0, ran.stderr[-3000:]
        assert ran.report["notes"] == [] and len(ran.session["checkpoints"]) == 1
        assert ran.session["turns"] == 3 and ran.session["faults"] == ran.session["refusals"] == []
        return ran

    @staticmethod
    def cats(call: Any) -> Any:
        return call("toolu_c1", "bash", command="cat rows.txt", description="a step")

    def test_anthropic_messages(self, home: Home):
        text, call, thinking = anthropic.text, anthropic.call, anthropic.thinking
        told = [
            [thinking("Hm."), text("I run `cat`."), self.cats(call)],
            [thinking("So."), text("800 rows."), call("toolu_h1", HANDOFF, **DOCUMENT)],
            [thinking("Good."), text("Done.")],
        ]
        with anthropic.Upstream(told, strict=True) as upstream:
            self.run(home, f"{upstream.url}/v1", "@ai-sdk/anthropic", "claude-sonnet-4-5")
            assert upstream.refusals == []
        bodies = [one.body for one in upstream.conversation]
        assert ["row 700" in json.dumps(body["messages"]) for body in bodies] == [False, True, False]

    def test_openai_responses(self, home: Home):
        told = [
            [codex.said("I run `cat`."), self.cats(codex.call)],
            [codex.said("800 rows."), codex.call("h1", HANDOFF, **DOCUMENT)],
            [codex.said("Done.")],
        ]

        class Provider(run_codex.Upstream):
            def answer(self, body: dict[str, Any]) -> Any:
                return super().answer(body) if body.get("tools") else ([codex.said("A title")], "")

        with Provider(told) as upstream:
            self.run(home, upstream.url, "@ai-sdk/openai")
            assert upstream.refusals == []
        assert ["row 700" in json.dumps(one["input"]) for one in upstream.bodies] == [False, True, False]

    def test_gemini(self, home: Home):
        text, call = gemini_cli.text, gemini_cli.call
        told = [
            [text("I run `cat`."), call("bash", "", "s1", command="cat rows.txt", description="a step")],
            [text("800 rows."), call(HANDOFF, "", "s2", **DOCUMENT)],
            [text("Done.")],
        ]
        with gemini_cli.Upstream(told) as upstream:
            self.run(home, f"{upstream.url}/v1beta", "@ai-sdk/google")
        assert ["row 700" in json.dumps(one["contents"]) for one in upstream.conversation] == [False, True, False]

    @pytest.mark.parametrize("found", [True, False])
    def test_bedrock_signed_by_the_client_is_cut_where_the_same_keys_are_found(self, home: Home, found: bool):
        pytest.importorskip("botocore", reason="botocore is not installed")
        keys = {"accessKeyId": "AKIDEXAMPLE", "secretAccessKey": SECRET, "region": "us-east-1"}
        variables = {"AWS_ACCESS_KEY_ID": keys["accessKeyId"], "AWS_SECRET_ACCESS_KEY": SECRET} if found else {}
        told = [
            Said("", "I run `cat`.", (("c1", "bash", {"command": "cat rows.txt", "description": "a step"}),)),
            Said("", "800 rows.", (("h1", HANDOFF, DOCUMENT),)),
            Said("", "Done.", ()),
        ]
        with Converse(told) as upstream:
            own = {"npm": "@ai-sdk/amazon-bedrock", "options": {"baseURL": upstream.url, **keys}, "models": {"m1": {}}}
            home.settle(upstream.url, name="amazon-bedrock", provider={"amazon-bedrock": own})
            ran = home.cutline(
                "run",
                "--json",
                "opencode",
                "run",
                "--format",
                "json",
                "Count.",
                AWS_EC2_METADATA_DISABLED="true",
                **variables,
            )
        assert ran.code == 0 and not upstream.faults and not told, ran.stderr[-3000:]
        assert all(signature_fault(one, SECRET) == "" for one in upstream.asked), "by the client, or anew"
        bodies = [one.body for one in upstream.asked if b'"toolConfig"' in one.body]
        assert [b"row 700" in body for body in bodies] == [False, True, not found]
        assert ran.session["turns"] == 3 and len(ran.session["checkpoints"]) == found
        assert [("are signed by the client" in note) for note in ran.report["notes"]] == [True] * (not found)


class Converse(providers.Provider):
    """Bedrock, as a script: what it answers where tools are offered, in order."""

    def __init__(self, script: list[Said]) -> None:
        super().__init__()
        self.script = script

    async def _stream(self, request: Any, way: str) -> Any:
        self.said = self.script.pop(0) if b'"toolConfig"' in self.asked[-1].body else Said("", "A title", ())
        return await super()._stream(request, way)


# ------------------------------------------------------------------------------------------------- the user's own


def test_the_users_own_stay_beside_the_runs(home: Home, tmp_path: Path):
    """Instructions, plugins, servers, permissions; nothing of them is changed."""
    (home.config / "AGENTS.md").write_text("My own instructions.")
    (home.config / "more.md").write_text("More of mine.")
    own = """export const Mine = async () => ({
        "experimental.chat.system.transform": async (_, told) => { told.system.push("Words of my own plugin."); },
    });"""
    (home.config / "plugin").mkdir()
    (home.config / "plugin" / "mine.js").write_text(own)
    server = {"type": "local", "command": ["false"], "enabled": True}  # an old one of the user's, with the name of ours
    settings = {
        "instructions": [str(home.config / "more.md")],
        "mcp": {"cutline": server},
        "permission": {"*": "ask", "bash": "allow", "cutline_*": "deny"},
    }
    with provider([look("c1"), hand("h1"), Answer("Done.")]) as upstream:
        home.settle(upstream.url, **settings)
        before = {path: path.read_bytes() for path in home.config.rglob("*") if path.is_file()}
        layer = '{ // mine\n "username": "somebody", "plugin": [], }'
        ran = home.run(upstream, "Count.", settings=settings, OPENCODE_CONFIG_CONTENT=layer)
        assert ran.code == 0 and upstream.faults == [], ran.stderr[-3000:]
    told = system(upstream.requests[0])
    assert all(one in told for one in ("My own instructions.", "More of mine.", "Words of my own plugin.", MANDATE)), (
        told[-2000:]
    )
    assert {HANDOFF, RECALL, SAY} < set(offered(upstream.requests[0]))
    assert names(upstream.requests[-1]) == [HANDOFF], "it is called without asking"
    assert {path: path.read_bytes() for path in before} == before
    assert not list(tmp_path.glob("cutline-*/run-*")), "the run's folder is gone"


def test_another_directory_and_a_provider_without_a_base_url_of_its_own(home: Home):
    """What the user's variables say counts; a run is begun from wherever."""
    with provider([look("c1"), hand("h1"), Answer("Done.")]) as upstream:
        home.settle("http://127.0.0.1:9/unused")
        layer = json.dumps({"provider": {"scripted": {"options": {"baseURL": upstream.url}}}})
        arguments = ["opencode", "run", "--format", "json", "--dir", str(home.project), "Count."]
        ran = home.cutline("run", "--json", *arguments, OPENCODE_CONFIG_CONTENT=layer, OPENCODE_EXPERIMENTAL="1")
        assert ran.code == 0 and upstream.faults == [], ran.stderr[-3000:]
    assert names(upstream.requests[-1]) == [HANDOFF], "the tools are called by themselves, not from within a script"


def test_the_clients_exit_code_is_the_runs(home: Home):
    home.settle("http://127.0.0.1:9/nobody")
    wrong = home.cutline("run", "--json", "opencode", "run", "--model", "none/such", "hi")
    assert wrong.code == 1 and wrong.report["exit_code"] == 1 and wrong.report["sessions"] == []
    for words in (["--pure"], ["models"], ["run", "--attach", "http://127.0.0.1:9", "hi"]):
        refused = home.cutline("run", "opencode", *words)
        assert refused.code == 2 and refused.stderr.count("\n") == 1, refused.stderr
