"""`cutline run gemini` on the real client: thirty calls and two checkpoints, what it does by itself, how it logs in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cutline.blocks import address
from cutline.record import Record

from . import gemini_cli
from .gemini_cli import Part, call, text, thought
from .gemini_run import DOCUMENT, HANDOFF, RECALL, SAY, Home, offered, parts, result_of, said, shared, upstream, weight
from .test_run_task import PARTS, document, intent, outcome, project

pytestmark = pytest.mark.slow


def script() -> list[list[Part]]:
    """The agent's answers to the task of `test_run_task`: words in text at first, with `say` later on."""
    answers: list[list[Part]] = []

    def speak(words: str, signature: str, made: Part) -> None:
        # Of parallel calls the provider signs the first alone.
        if len(answers) > PARTS // 2:
            answers.append([thought("So far so good."), call(SAY, "", signature, text=words), made])
        else:
            answers.append([thought("So far so good."), text(words), {**made, "thoughtSignature": signature}])

    for number in range(PARTS):
        words = intent(number) if not number else f"{outcome(number - 1)}\n\n{intent(number)}"
        speak(words, f"r{number}", call("read_file", file_path=f"part_{number:02}.py"))
        if number + 1 in (14, 25):
            words = f"{outcome(number)}\n\nA natural point: {number + 1} of {PARTS} parts agree."
            answers.append([text(words), call(HANDOFF, "", f"h{number}", **document(number + 1))])
    return answers


def test_thirty_calls_and_two_checkpoints(tmp_path: Path):
    home = Home.make(tmp_path)
    project(home.project)
    given = script()
    asked: list[str] = []

    def answer(body: dict[str, Any]) -> list[Part]:
        turn = len(provider.conversation) - 1
        if turn < len(given):
            return given[turn]
        if turn == len(given):
            # The address of a result that left two seams ago, from the id that the client gave its call.
            before = provider.conversation[13]["contents"]
            (made,) = [c for c in parts(before, "functionCall") if c["args"].get("file_path") == "part_03.py"]
            asked.append(address(made.get("id"), made["name"], json.dumps(made["args"]).encode()))
            words = f"{outcome(PARTS - 1)}\n\nI recall part_03.py, because its row_200 matters now; I expect 1200."
            return [text(words), call(RECALL, "", "c1", what=asked[0])]
        if turn == len(given) + 1:
            return [text("row_200 is 1200.\n\nI look for token_7 by words."), call(RECALL, "", "c2", what="token_7")]
        return [text("All parts agree.")]

    with upstream(answer) as provider:
        ran = home.run(provider, "Do all parts agree?")
        assert ran.code == 0, ran.stderr
        assert ran.result["response"] == "All parts agree."
        assert provider.refusals == [] and len(provider.conversation) == len(given) + 3
        turns = provider.conversation

    # The history part is more than halved at each checkpoint, and nothing of the rest of a request is changed.
    seams = [n for n, turn in enumerate(turns) if HANDOFF in json.dumps(turn["contents"][-1])]
    assert len(seams) == 2
    for n in seams:
        assert weight(turns[n]) < weight(turns[n - 1]) / 2

    # Between checkpoints each request begins with the one before; what was sent before the last seam stays for ever.
    for n in range(1, len(turns)):
        if n not in seams:
            assert shared(turns[n - 1], turns[n]) == len(turns[n - 1]["contents"]), f"request {n} changed its prefix"
    first, second = turns[seams[0]]["contents"], turns[seams[1]]["contents"]
    assert second[: len(first)] == first or shared(turns[seams[0]], turns[seams[1]]) >= len(first) - 1

    # Every word is still there, and nothing of the world's from before the seam.
    last = turns[-1]["contents"]
    told = said(last) + "\n".join(str(made["args"].get("text", "")) for made in parts(last, "functionCall"))
    for number in range(PARTS - 1):
        assert intent(number) in told and outcome(number) in told, number
    names = [made["name"] for made in parts(last, "functionCall") if made["name"] != SAY]
    assert names == [HANDOFF, HANDOFF, "read_file", "read_file", "read_file", RECALL, RECALL]

    # The recalled result is the file as it was read, though the call left two seams ago.
    shown = result_of(last, RECALL, 0)
    assert (home.project / "part_03.py").read_text().splitlines()[199] in shown
    assert "part_07.py" in result_of(last, RECALL)

    # The report tells it as it was.
    figures = ran.session
    steps = figures["checkpoints"]
    assert len(steps) == 2
    assert all(step["first_cut_message_bytes"] * 2 < step["last_uncut_message_bytes"] for step in steps)
    assert figures["input_tokens"] < figures["uncut_tokens_estimated"] and figures["by_key"]
    assert figures["turns"] == len(turns) and figures["refusals"] == figures["faults"] == []
    spoken = figures["narration"]
    assert spoken["calls"] == PARTS and spoken["in_text"] and spoken["by_say"] and spoken["silent"] <= 2
    assert ran.report["faults"] == [] and figures["go_on"] == f"cutline run gemini --resume {figures['session']}"

    # The history stays whole: in the client's own file, whose id the report names, and in the record.
    (file,) = home.client.files()
    assert figures["session"] in file.read_text() and figures["session"][:8] in file.name
    with Record(home.record, readonly=True) as record:
        held = record.history(figures["session"])
        assert held is not None
        assert len(parts(json.loads(held.body)["contents"], "functionCall")) >= PARTS + 4
        assert [one.session for one in record.documents()] == [figures["session"]] * 2


# ------------------------------------------------------------------------------------ what the client does by itself

ROWS = "\n".join(f"row {number}" for number in range(800))
READ = [text("I read a.txt for its row 5."), call("read_file", "", "s1", file_path="a.txt")]
HAND = [text("Row 5 is there. A natural point."), call(HANDOFF, "", "s2", **DOCUMENT)]
ON = [text("I go on with echo."), call("run_shell_command", "", "s3", command="echo behind")]
DONE = [text("Done.")]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home.make(tmp_path)
    for name in ("a.txt", "ledger.py"):
        (made.project / name).write_text(ROWS)
    return made


def test_whoever_comes_back_finds_the_seam_again(home: Home):
    # On a resume the client sends each result twice, which the strict provider refuses, with Cutline or without.
    with gemini_cli.Upstream([READ, HAND, ON, DONE, ON, DONE]) as provider:
        first = home.run(provider, "Look.")
        session = first.session["session"]
        again = home.run(provider, "Go on.", "--resume", session)
        assert (first.code, again.code) == (0, 0), again.stderr
    before, back = provider.conversation[3]["contents"], provider.conversation[4]["contents"]
    assert said(before) in said(back) and "row 700" not in json.dumps(back)
    assert [made["name"] for made in parts(back, "functionCall")] == [HANDOFF, "run_shell_command"]
    assert again.session["session"] == session
    assert again.session["checkpoints"][0]["seam"] == first.session["checkpoints"][0]["seam"]
    # Written where the client's own home is, and what the client noted of the project with it. (In another minute the
    # client begins a second file of that id, without the history.)
    assert all(session[:8] in file.name and not file.is_symlink() for file in home.client.files())
    assert "echo behind" in max(home.client.files(), key=lambda file: file.stat().st_size).read_text()
    assert str(home.project) in (home.client.root / ".gemini" / "projects.json").read_text()


def test_a_refused_resume_goes_on_in_a_cut_copy(home: Home):
    with upstream([READ, HAND, ON, DONE]) as provider:
        session = home.run(provider, "Look.").session["session"]
        refused = home.run(provider, "Go on.", "--resume", session)
        assert refused.code != 0 and all("number of function response parts" in said for said in provider.refusals)
    with upstream([ON, DONE]) as provider:
        before = set(home.client.files())
        cut = home.cutline(provider.url, "cut", "--force", session)
        assert cut.code == 0, cut.stderr
        (file,) = set(home.client.files()) - before
        copy = json.loads(file.read_text().splitlines()[0])["sessionId"]
        again = home.run(provider, "Go on.", "--resume", copy)
        assert again.code == 0 and again.result["response"] == "Done.", again.stderr
        assert provider.refusals == []
    assert again.session["session"] == copy


def test_the_clients_compression_reads_everything_and_what_follows_is_valid(home: Home):
    summary = "<state_snapshot>All is well.</state_snapshot>"

    class Summing(gemini_cli.Upstream):
        def answer(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
            told = super().answer(path, body)
            if not body.get("tools"):
                told["candidates"][0]["content"]["parts"] = [text(summary)]
            return told

    with Summing([READ, HAND, ON, DONE, ON, HAND, ON, DONE]) as provider:
        session = home.run(provider, "Look.").session["session"]
        home.client.settle(model={"compressionThreshold": 0.0001})
        again = home.run(provider, "Go on.", "--resume", session)
        assert again.code == 0, again.stderr
    asked = [body for body in provider.others if "state_snapshot" in json.dumps(body["contents"][-1])]
    assert asked and len(asked) % 2 == 0, "the client asks twice for each"
    assert "row 700" in json.dumps(asked[0]["contents"]), "a summary is made of the whole"
    assert again.session["compactions"] == len(asked) // 2
    after = provider.conversation[4]["contents"]
    assert summary in json.dumps(after) and again.session["faults"] == []


SILENT = [call("read_file", "", "s1", file_path="ledger.py")]
LOOKED = [text("I read ledger.py because its sum decides the next step; I expect 42."), *SILENT]


def test_held_strictly_a_call_without_words_is_not_run(home: Home):
    with upstream([SILENT, LOOKED, HAND, DONE]) as provider:
        ran = home.run(provider, "Look.", flags=("--mandate", "strict"))
        assert ran.code == 0 and provider.refusals == [], ran.stderr
    refused, made = (json.dumps(turn["contents"][-1]) for turn in provider.conversation[1:3])
    assert "Cutline: not run, because no intent was stated" in refused and "row 700" not in refused
    assert "row 700" in made and "Cutline:" not in made


def test_nudged_a_call_without_words_runs_and_is_reminded_of(home: Home):
    with upstream([SILENT, LOOKED, HAND, DONE]) as provider:
        ran = home.run(provider, "Look.", flags=("--mandate", "nudge"))
        assert ran.code == 0 and provider.refusals == [], ran.stderr
    reminded, made = (json.dumps(turn["contents"][-1]) for turn in provider.conversation[1:3])
    assert "Cutline: this call comes without words" in reminded and "row 700" in reminded
    assert "row 700" in made and "Cutline:" not in made


def test_sub_agents_are_counted_by_themselves(home: Home):
    ended: list[str] = []

    def answer(body: dict[str, Any]) -> list[Part]:
        if "complete_task" in offered(body):
            if not parts(body["contents"], "functionCall"):
                return [text("I read a.txt to count."), call("read_file", "", "b1", file_path="a.txt")]
            ended.append("sub")
            return [call("complete_task", "", "b2", result={"response": "800 rows"})]
        turn = [made["name"] for made in parts(body["contents"], "functionCall")]
        if not turn:
            ask = {"agent_name": "generalist", "prompt": "Count the rows of a.txt."}
            return [text("I ask a helper to count a.txt."), call("invoke_agent", "", "a1", **ask)]
        return HAND if turn == ["invoke_agent"] else DONE

    with upstream(answer) as provider:
        ran = home.run(provider, "How many rows?")
        assert ran.code == 0 and provider.refusals == [], ran.stderr
    assert ended == ["sub"]
    told = ran.session
    assert (told["turns"], told["sub_agent_turns"]) == (3, 2)
    last = json.dumps(provider.conversation[-1]["contents"])
    assert "invoke_agent" in last, "what a helper reported can't be run again: the notice has its line"
    with Record(home.record, readonly=True) as record:
        assert {row.agent != "" for row in record.requests(told["session"])} == {True, False}


# --------------------------------------------------------------------------------------------------- how it logs in


def test_a_login_with_google_is_carried(home: Home):
    class CodeAssist(gemini_cli.Upstream):
        def answer(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
            if "enerateContent" in path:
                return {"response": super().answer(path, body["request"]), "traceId": "t"}
            tier = {"id": "standard-tier", "name": "Standard"}
            return {"currentTier": tier, "cloudaicompanionProject": "p"} if "loadCodeAssist" in path else {}

    home.client.settle(security={"auth": {"selectedType": "oauth-personal"}})
    with CodeAssist([READ, HAND, ON, DONE]) as provider:
        login = {"GOOGLE_GENAI_USE_GCA": "true", "GOOGLE_CLOUD_ACCESS_TOKEN": "ya29.dummy"}
        ran = home.run(provider, "Look.", CODE_ASSIST_ENDPOINT=provider.url, **login)
        assert ran.code == 0 and provider.faults == [], ran.stderr
    assert "row 700" in json.dumps(provider.conversation[1]) and "row 700" not in json.dumps(provider.conversation[2])
    told = ran.session
    assert told["model"] and told["turns"] == 4 and len(told["checkpoints"]) == 1 and not told["by_key"]


def test_vertex_ai_is_carried(home: Home):
    home.client.settle(security={"auth": {"selectedType": "vertex-ai"}})
    with upstream([READ, HAND, ON, DONE]) as provider:
        ran = home.run(provider, "Look.", GOOGLE_API_KEY="dummy", GOOGLE_VERTEX_BASE_URL=provider.url)
        assert ran.code == 0 and provider.refusals == [], ran.stderr
        assert all("/publishers/google/models/" in path for path in provider.paths)
    assert "row 700" not in json.dumps(provider.conversation[2]) and len(ran.session["checkpoints"]) == 1


def test_without_a_login_nothing_starts(home: Home):
    home.client.settle(security={})
    ran = home.cutline("", "run", "gemini", "-p", "hi", GEMINI_API_KEY="", GOOGLE_GEMINI_BASE_URL="")
    assert ran.code == 2 and "gemini is not logged in" in ran.stderr and ran.stdout == ""


def test_the_users_own_stay_beside_the_runs(home: Home, tmp_path: Path):
    """Extensions, servers, instructions and policies of the user's; nothing of them is changed."""
    home.client.settle(general={"enableAutoUpdate": False})  # in the client's newest words, or it changes them itself
    own = home.client.root / ".gemini"
    mine = own / "extensions" / "mine"
    mine.mkdir(parents=True)
    (mine / "gemini-extension.json").write_text(json.dumps({"name": "mine", "version": "1", "contextFileName": "M.md"}))
    (mine / "M.md").write_text("Words of my extension.")
    (own / "GEMINI.md").write_text("My own instructions.")
    (own / "policies").mkdir()
    rule = '[[rule]]\ntoolName = "run_shell_command"\ndecision = "deny"\npriority = 100\n'
    (own / "policies" / "mine.toml").write_text(rule)
    before = {path: path.read_bytes() for path in own.rglob("*") if path.is_file()}
    with upstream([ON, HAND, DONE]) as provider:
        ran = home.run(provider, "Look.")
        assert ran.code == 0 and provider.refusals == [], ran.stderr
    first = json.dumps(provider.conversation[0])
    assert "Words of my extension." in first and "My own instructions." in first and "Visible reasoning" in first
    assert "run_shell_command" not in offered(provider.conversation[0])
    assert {path: path.read_bytes() for path in before} == before
    assert not list(tmp_path.glob("cutline-*/run-*")), "the run's folder is gone"
