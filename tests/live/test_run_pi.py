"""`cutline run pi` on the real client: the whole loop, what the client does by itself, its wires, what stays the user's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cutline.blocks import address
from cutline.record import Record

from . import codex, gemini_cli, run_codex
from . import upstream as anthropic
from .chat import FULL, WINDOW, Answer
from .run import BOUND, OLDER
from .run_pi import (
    DOCUMENT,
    HANDOFF,
    RECALL,
    SAY,
    Home,
    Upstream,
    calls,
    hand,
    history,
    look,
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


def script() -> list[Answer]:
    """The agent's answers to the task of `test_run_task`: words in text at first, with `say` later on."""
    answers: list[Answer] = []
    for number in range(PARTS):
        words = intent(number) if not number else f"{outcome(number - 1)}\n\n{intent(number)}"
        read = (f"r{number:02}", "read", {"path": f"part_{number:02}.py"})
        if number > PARTS // 2:
            answers.append(Answer("", [(f"w{number:02}", SAY, {"text": words}), read]))
        else:
            answers.append(Answer(words, [read]))
        if number + 1 in (14, 25):
            words = f"{outcome(number)}\n\nA natural point: {number + 1} of {PARTS} parts agree."
            answers.append(Answer(words, [(f"h{number:02}", HANDOFF, document(number + 1))]))
    where = address("r03", "read", json.dumps({"path": "part_03.py"}).encode())
    words = f"{outcome(PARTS - 1)}\n\nI recall part_03.py, because its row_200 matters now; I expect 1200."
    answers.append(Answer(words, [("c01", RECALL, {"what": where})]))
    answers.append(Answer("row_200 is 1200.\n\nI look for token_7.", [("c02", RECALL, {"what": "token_7"})]))
    answers.append(Answer("All parts agree."))
    return answers


def test_thirty_calls_and_two_checkpoints(home: Home):
    project(home.project)
    odd = home.project / "part_03.py"
    odd.write_text(odd.read_text() + "# a line that some readers break in two:\u2028\u2029 \N{OK HAND SIGN}\n")
    given = script()
    with Upstream(given) as upstream:
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
    assert odd.read_text() in result(last, "c01")
    assert "part_07.py" in result(last, "c02")

    # The report tells it as it was.
    session = ran.session
    steps = session["checkpoints"]
    assert [step["first_cut_message_bytes"] * 2 < step["last_uncut_message_bytes"] for step in steps] == [True] * 2
    assert session["input_tokens"] < session["uncut_tokens_estimated"] and session["by_key"]
    assert session["turns"] == len(turns) and session["refusals"] == session["faults"] == []
    spoken = session["narration"]
    assert spoken["calls"] == PARTS and spoken["in_text"] and spoken["by_say"] and spoken["silent"] <= 2, spoken
    assert ran.report["faults"] == ran.report["notes"] == []
    assert session["go_on"] == f"cutline run pi --session {session['session']}"

    # The history stays whole: in the client's own file and in the record. Nothing of ours reaches the provider.
    (file,) = home.client.sessions
    assert session["session"] in file.name and file.read_text().count('"toolResult"') >= PARTS
    with Record(home.record, readonly=True) as record:
        held = record.history(session["session"])
        assert held is not None and len(calls(json.loads(held.body)["messages"])) >= PARTS + 4
        found = {(one.session, one.address) for one in record.documents()}
    assert found == {(session["session"], step["seam"]) for step in steps}
    assert not [name for one in upstream.headers for name in one if "cutline" in name]


# -------------------------------------------------------------------------------------------------- coming back


class TestComingBack:
    def test_the_seam_is_found_again_and_without_cutline_all_is_sent(self, home: Home):
        with Upstream([look("c1"), hand("h1"), Answer("Later.")]) as upstream:
            first = home.run(upstream, "Count.")
            assert first.code == 0, first.stderr[-3000:]
        id_ = first.session["session"]
        with Upstream([look("c2"), hand("h2"), Answer("Done.")]) as back:
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
        with Upstream([Answer("Whole.")]) as plain:
            home.settle(plain.url)
            done = home.client.start([*home.client.command, "--session", id_, "-p", "And?"])
            assert done.code == 0 and plain.faults == [], done.stderr
        assert names(plain.requests[0]) == ["bash", HANDOFF, "bash", HANDOFF]
        assert MANDATE not in system(plain.requests[0])

    def test_a_session_that_never_heard_of_cutline_goes_on_in_a_run(self, home: Home):
        with Upstream([look("c1"), Answer("It has 800 rows.")]) as upstream:
            home.settle(upstream.url)
            plain = home.client.start([*home.client.command, "--model", "scripted/m1", "-p", "Count."])
            assert plain.code == 0, plain.stderr
        with Upstream([hand("h1"), Answer("Done.")]) as upstream:
            ran = home.run(upstream, "Go on.", "--continue")
            assert ran.code == 0 and upstream.faults == [], ran.stderr[-3000:]
        assert [names(turn) for turn in upstream.requests] == [["bash"], [HANDOFF]]
        assert MANDATE in system(upstream.requests[0])

    def test_a_copy_that_is_cut_goes_on_in_a_run(self, home: Home):
        with Upstream([look("c1"), hand("h1"), Answer("Later.")]) as upstream:
            session = home.run(upstream, "Count.").session["session"]
        cut = home.cutline("cut", "--force", "--json", session)
        assert cut.code == 0, cut.stderr
        copy = json.loads(cut.stdout)["copy"]["id"]
        with Upstream([look("c2"), hand("h2"), Answer("Done.")]) as upstream:
            ran = home.run(upstream, "Go on.", "--session", copy)
            assert ran.code == 0 and upstream.faults == [], ran.stderr[-3000:]
        assert [names(turn) for turn in upstream.requests] == [[HANDOFF], [HANDOFF, "bash"], [HANDOFF, HANDOFF]]
        assert ran.session["session"] == copy


def test_another_provider_and_another_session_in_one_run(home: Home):
    """As a program drives it: a change of model from one wire to another, a summary asked for, a new session."""
    theirs = [
        [anthropic.text("I run `cat`."), anthropic.call("toolu_d1", "bash", command="cat rows.txt")],
        [anthropic.text("800 rows."), anthropic.call("toolu_g1", HANDOFF, **DOCUMENT)],
        [anthropic.text("Done there.")],
    ]
    ours = [
        look("c1"),
        hand("h1"),
        look("c2"),
        Answer("Here."),
        Answer("Again."),
        look("e1"),
        hand("k1"),
        Answer("New."),
    ]
    with nearly_full(Upstream(ours), 0) as here, anthropic.Upstream(theirs, strict=True) as there:
        home.settle(here.url, **KEEP)
        models = own(here.url, "openai-completions")
        models["providers"] |= {"other": own(there.url, "anthropic-messages")["providers"]["scripted"]}
        (home.client.agent / "models.json").write_text(json.dumps(models))
        first, other = ({"type": "set_model", "provider": name, "modelId": "m1"} for name in ("scripted", "other"))
        ran = home.talk(
            *(first, {"type": "prompt", "message": "Count."}),
            *(other, {"type": "prompt", "message": "Count there."}),
            *(first, {"type": "compact"}, {"type": "prompt", "message": "And again?"}),
            *({"type": "new_session"}, {"type": "prompt", "message": "Anew."}),
        )
        assert ran.code == 0 and here.faults == there.refusals == [] and here.unused == 0, ran.stderr[-3000:]
    # The seam is found in the other wire's words, and the next one's in its own.
    sent = [json.dumps(one.body["messages"]) for one in there.conversation]
    assert all(look("c1").text in one and look("c2").text in one for one in sent)
    assert ["row 700" in one for one in sent] == [True, True, False]
    assert here.asides, "the human asked for it: it is not held back"
    assert [names(turn) for turn in here.requests[-3:]] == [[], ["bash"], [HANDOFF]]
    old, new = ran.report["sessions"]
    assert (old["compactions"], old["held_back"], len(old["checkpoints"])) == (1, 0, 2)
    assert (new["turns"], len(new["checkpoints"])) == (3, 1) and new["session"] != old["session"]


# -------------------------------------------------------------------------------------- what is a checkpoint, and not


@pytest.mark.parametrize(
    "given",
    [{"done": "x"}, {**DOCUMENT, "facts": "none"}, {**DOCUMENT, "done": "checkpoint"}],
    ids=["misses members", "of a wrong type", "blocked by another extension"],
)
def test_what_was_refused_is_no_seam(home: Home, given: dict[str, Any]):
    blocks = """export default function (pi) {
        pi.on("tool_call", (event) => event.input.done === "checkpoint" ? { block: true, reason: "Not now." } : undefined);
    }"""
    extension(home, "blocks", blocks)
    wrong = Answer("I write it.", [("h0", HANDOFF, given)])
    with Upstream([look("c1"), wrong, hand("h1"), Answer("Done.")]) as upstream:
        ran = home.run(upstream, "Count.")
        assert ran.code == 0 and upstream.faults == [], ran.stderr[-3000:]
    assert result(upstream.requests[2], "h0").startswith("checkpoint refused:")
    assert [names(turn) for turn in upstream.requests[2:]] == [["bash", HANDOFF], [HANDOFF]]
    assert len(ran.session["checkpoints"]) == 1


def extension(home: Home, name: str, source: str) -> None:
    """An extension of the user's own."""
    folder = home.client.agent / "extensions"
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.ts").write_text(source)


class TestTheMandate:
    SILENT = Answer("", [("c1", "bash", {"command": "cat few.txt"})])

    def test_strict_returns_a_call_without_words_unrun(self, home: Home):
        with Upstream([self.SILENT, look("c2", "few.txt"), Answer("Done.")]) as upstream:
            ran = home.run(upstream, "Count.", flags=["--mandate", "strict"])
            assert ran.code == 0 and upstream.faults == [], ran.stderr[-3000:]
        last = upstream.requests[-1]
        assert result(last, "c1").startswith("Cutline: not run") and result(last, "c2") == "one\ntwo\n"

    def test_nudge_reminds_behind_the_result(self, home: Home):
        spoken = Answer("", [("w3", SAY, {"text": look("c3").text}), *look("c3").calls])
        with Upstream([self.SILENT, look("c2", "few.txt"), spoken, Answer("Done.")]) as upstream:
            ran = home.run(upstream, "Count.", flags=["--mandate", "nudge"])
            assert ran.code == 0 and upstream.faults == [], ran.stderr[-3000:]
        last = upstream.requests[-1]
        assert result(last, "c1").startswith("one\ntwo\n") and "this call comes without words" in result(last, "c1")
        assert "Cutline:" not in result(last, "c2") + result(last, "c3")


# --------------------------------------------------------------------------------------------------- its compaction


def nearly_full(upstream: Upstream, request: int) -> Upstream:
    upstream.aside, upstream.full = "All is well.", request
    return upstream


KEEP = {"compaction": {"keepRecentTokens": 10}}
ROOM = WINDOW + 4_000
"""Tokens of a window in which the full count is past the client's threshold, and the next request still fits."""


class TestCompaction:
    def test_is_held_back_for_a_checkpoint(self, home: Home):
        assert FULL > ROOM - 16_384
        told = [look("c1"), look("c2"), look("c3", "few.txt"), hand("h1"), look("c4"), Answer("Done.")]
        with nearly_full(Upstream(told), 2) as upstream:
            ran = home.run(upstream, "Count.", window=ROOM, settings=KEEP)
            assert ran.code == 0 and upstream.faults == [] and upstream.unused == 0, ran.stderr[-3000:]
        assert upstream.asides == [], "nothing is summarised"
        assert "Cutline: the context is nearly full" in result(upstream.requests[3], "c3")
        assert names(upstream.requests[4]) == [HANDOFF]
        session = ran.session
        assert session["held_back"] >= 1 and session["compactions"] == 0 and len(session["checkpoints"]) == 1

    def test_reads_everything_where_it_is_kept_and_what_follows_is_cut(self, home: Home):
        told = [look("c1"), hand("h1"), look("c2"), look("c3"), look("c4"), hand("h2"), Answer("Done.")]
        with nearly_full(Upstream(told), 4) as upstream:
            ran = home.run(upstream, "Count.", flags=["--keep-compaction"], window=ROOM, settings=KEEP)
            assert ran.code == 0 and upstream.faults == [] and upstream.unused == 0, ran.stderr[-3000:]
        assert upstream.asides and "cat rows.txt" in json.dumps(upstream.asides), "a summary is made of the whole"
        assert names(upstream.requests[3]) == [HANDOFF, "bash"]
        assert "All is well." in json.dumps(history(upstream.requests[4])[0])
        assert names(upstream.requests[6]) == [HANDOFF] and "for c4, because" in said(upstream.requests[6])
        session = ran.session
        assert session["compactions"] == 1 and session["held_back"] == 0 and len(session["checkpoints"]) == 2
        assert session["faults"] == [] and session["turns"] == 7

    def test_goes_ahead_where_the_provider_says_that_it_is_too_much(self, home: Home):
        class Small(Upstream):
            def _take(self, body: dict[str, Any]) -> tuple[int, bytes]:
                if body.get("tools") and names(body) == ["bash", "bash"] and not self.asides:
                    said = "This model's maximum context length is 8 tokens. Please reduce the length of the messages."
                    return 400, json.dumps({"error": {"message": said, "code": "context_length_exceeded"}}).encode()
                return super()._take(body)

        with nearly_full(Small([look("c1"), look("c2"), hand("h1"), Answer("Done.")]), 0) as upstream:
            ran = home.run(upstream, "Count.", settings=KEEP)
            assert ran.code == 0 and upstream.faults == [] and upstream.unused == 0, ran.stderr[-3000:]
        assert upstream.asides and ran.session["compactions"] == 1 and ran.session["held_back"] == 0


# ------------------------------------------------------------------------------------------------------- sub-agents

HELPER = """
import { spawn } from "node:child_process";
export default function (pi) {
    pi.registerTool({
        name: "helper",
        label: "helper",
        description: "Ask a helper.",
        parameters: { type: "object", properties: { prompt: { type: "string" } }, required: ["prompt"] },
        async execute(id, { prompt }) {
            const words = [process.argv[1], "--no-session", "--model", "scripted/m1", "-p", prompt];
            const child = spawn(process.execPath, words, { stdio: ["ignore", "pipe", "inherit"] });
            let said = "";
            child.stdout.on("data", (part) => { said += part; });
            await new Promise((done) => child.on("close", done));
            return { content: [{ type: "text", text: said }], details: undefined };
        },
    });
}
"""
"""As the client's own example of sub-agents does it: a process of its own for each."""


def test_a_sub_agent_is_counted_by_itself(home: Home):
    extension(home, "helper", HELPER)

    def answer(body: dict[str, Any]) -> Answer:
        if "Count the rows" in json.dumps(history(body)[0]):
            return Answer("800 rows.") if names(body) else look("b1")
        if not names(body):
            return Answer("I ask a helper to count.", [("a1", "helper", {"prompt": "Count the rows."})])
        return hand("h1") if HANDOFF not in names(body) else Answer("Done.")

    with Upstream(answer) as upstream:
        ran = home.run(upstream, "How many?")
        assert ran.code == 0 and upstream.faults == [], ran.stderr[-3000:]
    session = ran.session
    assert (session["turns"], session["sub_agent_turns"]) == (3, 2)
    theirs = [body for body in upstream.requests if "Count the rows" in json.dumps(history(body)[0])]
    assert not any(HANDOFF in offered(body) or MANDATE in system(body) for body in theirs)
    last = upstream.requests[-1]
    assert names(last) == [HANDOFF] and "helper" in result(last, "h1"), "its report can't be run again: it has a line"
    with Record(home.record, readonly=True) as record:
        (agent,) = {row.agent for row in record.requests(session["session"])} - {""}
        main, sub = record.history(session["session"]), record.history(session["session"], agent)
    assert main is not None and sub is not None
    assert b"I ask a helper" in main.body and b"for b1" in sub.body and b"for b1" not in main.body


def test_what_another_extension_asks_of_the_model_is_no_turn(home: Home):
    source = """export default function (pi) {
        pi.registerTool({
            name: "aside", label: "aside", description: "Ask aside.", parameters: { type: "object", properties: {} },
            async execute(id, args, signal, onUpdate, ctx) {
                const tools = [{ name: "x", description: "x", parameters: { type: "object", properties: {} } }];
                const ask = (content) => [{ role: "user", content, timestamp: 0 }];
                await ctx.modelRegistry.complete(ctx.model, { messages: ask("A title?") });
                await ctx.modelRegistry.complete(ctx.model, { messages: ask("A helper within."), tools });
                return { content: [{ type: "text", text: "asked" }], details: undefined };
            },
        });
    }"""
    extension(home, "aside", source)

    def answer(body: dict[str, Any]) -> Answer:
        if len(body["messages"]) == 1:
            return Answer("A title.")
        return Answer("I ask.", [("a1", "aside", {})]) if not names(body) else Answer("Done.")

    with Upstream(answer) as upstream:
        ran = home.run(upstream, "Count.")
        assert ran.code == 0 and upstream.faults == [], ran.stderr[-3000:]
    session = ran.session
    assert (session["turns"], session["sub_agent_turns"], session["other_requests"]) == (2, 1, 1)


# -------------------------------------------------------------------------------------------------- its other wires


def own(url: str, api: str, **more: Any) -> dict[str, Any]:
    """A provider of the user's own, in models.json."""
    model = {"id": "m1", "contextWindow": 1_000_000, "maxTokens": 1_000, "input": ["text"], **more}
    return {"providers": {"scripted": {"baseUrl": url, "api": api, "apiKey": "dummy", "models": [model]}}}


class TestOtherWires:
    def run(self, home: Home, models: dict[str, Any], model: str = "scripted/m1") -> Any:
        (home.client.agent / "models.json").write_text(json.dumps(models))
        ran = home.cutline("run", "--json", "pi", "--model", model, "-p", "Count.")
        assert ran.code == 0, ran.stderr[-3000:]
        assert ran.report["notes"] == [] and len(ran.session["checkpoints"]) == 1
        assert ran.session["turns"] == 3 and ran.session["faults"] == ran.session["refusals"] == []
        return ran

    @pytest.mark.parametrize("model", [OLDER, BOUND])
    def test_anthropic_messages_with_thinking_that_is_bound_to_its_beginning(self, home: Home, model: str):
        text, call, thinking = anthropic.text, anthropic.call, anthropic.thinking
        told = [
            [thinking("Hm."), text("I run `cat`."), call("toolu_c1", "bash", command="cat rows.txt")],
            [thinking("So."), text("800 rows."), call("toolu_h1", HANDOFF, **DOCUMENT)],
            [thinking("Good."), text("Done.")],
            [thinking("Again."), text("I look again."), call("toolu_c2", "bash", command="cat few.txt")],
            [text("Two rows.")],
        ]
        with anthropic.Upstream(told, strict=True, bound=True) as upstream:
            models = own(
                upstream.url, "anthropic-messages", id=model, reasoning=True, compat={"forceAdaptiveThinking": True}
            )
            ran = self.run(home, models, f"scripted/{model}")
            again = home.cutline("run", "--json", "pi", "--session", ran.session["session"], "-p", "And now?")
            assert again.code == 0 and upstream.refusals == [], again.stderr[-3000:]
        bodies = [one.body for one in upstream.conversation]
        assert all(body["thinking"]["type"] == "adaptive" for body in bodies)
        assert ["row 700" in json.dumps(body["messages"]) for body in bodies] == [False, True, False, False, False]

    def test_anthropic_without_the_threads_in_which_the_provider_holds_the_history(self, home: Home):
        told = [
            [anthropic.text("I run `cat`."), anthropic.call("toolu_c1", "bash", command="cat rows.txt")],
            [anthropic.text("800 rows."), anthropic.call("toolu_h1", HANDOFF, **DOCUMENT)],
            [anthropic.text("Done.")],
        ]
        with anthropic.Upstream(told) as upstream:
            self.run(home, own(upstream.url, "anthropic-messages", compat={"supportsMessageThreads": True}))
        bodies = [one.body for one in upstream.conversation]
        assert len(bodies) == 3 and not any("thread" in body for body in bodies)
        assert ["row 700" in json.dumps(body["messages"]) for body in bodies] == [False, True, False]

    def test_openai_responses(self, home: Home):
        told = [
            [codex.said("I run `cat`."), codex.call("c1", "bash", command="cat rows.txt")],
            [codex.said("800 rows."), codex.call("h1", HANDOFF, **DOCUMENT)],
            [codex.said("Done.")],
        ]
        with run_codex.Upstream(told) as upstream:
            self.run(home, own(upstream.url, "openai-responses"))
            assert upstream.refusals == []
        assert ["row 700" in json.dumps(one["input"]) for one in upstream.bodies] == [False, True, False]

    def test_gemini(self, home: Home):
        text, call = gemini_cli.text, gemini_cli.call
        told = [
            [text("I run `cat`."), call("bash", "", "s1", command="cat rows.txt")],
            [text("800 rows."), call(HANDOFF, "", "s2", **DOCUMENT)],
            [text("Done.")],
        ]
        with gemini_cli.Upstream(told) as upstream:
            self.run(home, own(f"{upstream.url}/v1beta", "google-generative-ai"))
        assert ["row 700" in json.dumps(one["contents"]) for one in upstream.conversation] == [False, True, False]


def test_a_login_with_chatgpt_is_carried_over_http(home: Home):
    token = codex.by_chatgpt()["tokens"]["access_token"]
    held = {
        "type": "oauth",
        "access": token,
        "refresh": "refresh",
        "expires": 4_102_444_800_000,
        "accountId": "account",
    }
    (home.client.agent / "auth.json").write_text(json.dumps({"openai-codex": held}))
    told = [
        [codex.said("I run `cat`."), codex.call("c1", "bash", command="cat rows.txt")],
        [codex.said("800 rows."), codex.call("h1", HANDOFF, **DOCUMENT)],
        [codex.said("Done.")],
    ]
    with run_codex.Upstream(told) as upstream:
        (home.client.agent / "models.json").write_text(
            json.dumps({"providers": {"openai-codex": {"baseUrl": upstream.url}}})
        )
        ran = home.cutline("run", "--json", "pi", "--model", "openai-codex/gpt-5.5", "-p", "Count.")
        assert ran.code == 0 and upstream.refusals == [], ran.stderr[-3000:]
    assert ["row 700" in json.dumps(one["input"]) for one in upstream.bodies] == [False, True, False]
    assert upstream.paths == ["/v1/codex/responses"] * 3, "no web socket is tried, over which nothing could be cut"
    assert all(headers["chatgpt-account-id"] == "account" for headers in upstream.headers)
    assert ran.session["by_key"] is False and ran.report["notes"] == [] and len(ran.session["checkpoints"]) == 1
    assert token.encode() not in home.record.read_bytes()


# ------------------------------------------------------------------------------------------------- the user's own


def test_the_users_own_stay_beside_the_runs(home: Home, tmp_path: Path):
    """Instructions, extensions, servers, a list of tools; nothing of them is changed."""
    agent = home.client.agent
    (agent / "APPEND_SYSTEM.md").write_text("Words of my own prompt.")
    (agent / "AGENTS.md").write_text("My own instructions.")
    extension(
        home,
        "mine",
        'export default (pi) => pi.on("before_agent_start", (e) => { e.systemPromptOptions.sections.mine = "Mine."; });',
    )
    with Upstream([look("c1"), hand("h1"), Answer("Done.")]) as upstream:
        home.client.configure(upstream)  # an MCP server of the user's, which has the name of ours
        home.settle(upstream.url, defaultThinkingLevel="off")
        before = {path: path.read_bytes() for path in agent.rglob("*") if path.is_file()}
        ran = home.cutline("run", "--json", "pi", "--model", "scripted/m1", "--tools", "bash,read", "-p", "Count.")
        assert ran.code == 0 and upstream.faults == [], ran.stderr[-3000:]
    told = system(upstream.requests[0])
    assert all(one in told for one in ("Words of my own prompt.", "My own instructions.", "Mine.", MANDATE))
    assert offered(upstream.requests[0])[:2] == ["bash", "read"] and "write" not in offered(upstream.requests[0])
    assert {HANDOFF, RECALL, SAY} < set(offered(upstream.requests[0]))
    assert names(upstream.requests[-1]) == [HANDOFF]
    assert {path: path.read_bytes() for path in before} == before
    assert not list(tmp_path.glob("cutline-*/run-*")), "the run's folder is gone"


@pytest.mark.parametrize("options", [["-ne"], ["--no-mcp"], ["--no-tools"], ["--system-prompt", "You count."]])
def test_whatever_is_left_out_the_runs_own_is_there(home: Home, options: list[str]):
    with Upstream([look("c1"), hand("h1"), Answer("Done.")]) as upstream:
        ran = home.run(upstream, "Count.", *options)
        assert ran.code == 0 and upstream.faults == [], ran.stderr[-3000:]
    assert {HANDOFF, RECALL, SAY} <= set(offered(upstream.requests[0])) and MANDATE in system(upstream.requests[0])
    assert names(upstream.requests[-1]) == [HANDOFF]


def test_what_goes_past_the_proxy_is_said(home: Home):
    """A provider that an extension makes up in the process itself; no request of it is ever seen."""
    source = """import { createAssistantMessageEventStream } from "@earendil-works/pi-ai";
    export default function (pi) {
        pi.registerProvider("inside", {
            baseUrl: "http://127.0.0.1:9", apiKey: "x", api: "inside-api",
            models: [{ id: "m", name: "m", reasoning: false, input: ["text"], contextWindow: 9999, maxTokens: 99,
                cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 } }],
            streamSimple(model, context, options) {
                const stream = createAssistantMessageEventStream();
                const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
                const usage = { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, totalTokens: 2, cost };
                const message = { role: "assistant", content: [{ type: "text", text: "Inside." }], api: model.api,
                    provider: model.provider, model: model.id, usage, stopReason: "stop", timestamp: Date.now() };
                (async () => {
                    await options.onPayload?.({}, model);
                    stream.push({ type: "start", partial: message });
                    stream.push({ type: "done", reason: "stop", message });
                    stream.end();
                })();
                return stream;
            },
        });
    }"""
    extension(home, "inside", source)
    ran = home.cutline("run", "--json", "pi", "--model", "inside/m", "-p", "Count.")
    assert (ran.code, ran.stdout) == (0, "Inside.\n"), ran.stderr[-3000:]
    assert ran.report["notes"] == ["inside (inside-api) goes past the proxy: it is not cut"]


def test_the_clients_exit_code_is_the_runs(home: Home):
    home.settle("http://127.0.0.1:9/nobody")
    wrong = home.cutline("run", "--json", "pi", "-q", "hi")
    assert wrong.code == 1 and "Unknown option: -q" in wrong.stderr and wrong.report["exit_code"] == 1
