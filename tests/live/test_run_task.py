"""The whole loop on the real client: thirty calls, two checkpoints, an old result recalled, nothing refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cutline.blocks import address
from cutline.record import Record
from cutline.sessions.claude_code import open_session

from .claude import sessions
from .run import BOUND, HANDOFF, OLDER, RECALL, SAY, Home, bare, blocks, result_of, said, shared, weight
from .upstream import Block, Upstream, call, narration, text, thinking

pytestmark = pytest.mark.slow

PARTS = 28
"""Files that are read; with two checkpoints and two recalls the task makes 32 calls."""


def token(number: int) -> str:
    return f"{(number + 1) * 2654435761 % 2**32:08x}"


def project(folder: Path) -> None:
    for number in range(PARTS):
        lines = [f"row_{n} = {n * (number + 3)}  # of part {number}" for n in range(260)]
        lines[57] = f"token_{number} = '{token(number)}'"
        (folder / f"part_{number:02}.py").write_text("\n".join(lines) + "\n")


def intent(number: int) -> str:
    return (
        f"I read part_{number:02}.py because token_{number} decides whether the parts agree; I expect it near line 58."
    )


def outcome(number: int) -> str:
    return f"part_{number:02}.py has token_{number} = '{token(number)}' (measured)."


def document(upto: int) -> dict[str, Any]:
    fact = {
        "claim": f"token_{upto - 1} is {token(upto - 1)}",
        "basis": "measured",
        "evidence": f"part_{upto - 1:02}.py",
    }
    return {"done": f"{upto} parts read", "open": "the rest", "went_wrong": "nothing", "facts": [fact]}


def script(folder: Path, speak: Callable[[str, list[Block]], list[Block]]) -> list[list[Block]]:
    """The agent's answers; `speak` puts words before calls in the way that its model has."""
    answers = []
    for number in range(PARTS):
        words = intent(number) if not number else f"{outcome(number - 1)}\n\n{intent(number)}"
        answers.append(
            speak(words, [call(f"toolu_r{number:02}", "Read", file_path=str(folder / f"part_{number:02}.py"))])
        )
        if number + 1 in (14, 25):
            words = f"{outcome(number)}\n\nA natural point: {number + 1} of {PARTS} parts agree."
            answers.append(speak(words, [call(f"toolu_h{number:02}", HANDOFF, **document(number + 1))]))
    where = address("toolu_r03", "Read", json.dumps({"file_path": str(folder / "part_03.py")}).encode())
    words = f"{outcome(PARTS - 1)}\n\nI recall part_03.py, because its row_200 matters now; I expect 1200."
    answers.append(speak(words, [call("toolu_c01", RECALL, what=where)]))
    answers.append(
        speak("row_200 is 1200.\n\nI look for token_7 by words.", [call("toolu_c02", RECALL, what="token_7")])
    )
    answers.append([text("All parts agree.")])
    return answers


def in_text(words: str, calls: list[Block]) -> list[Block]:
    return [thinking("so far so good"), text(words), *calls]


def in_narration_and_say(words: str, calls: list[Block]) -> list[Block]:
    """A model that hides what it says between calls: narration blocks, some empty, and `say` in parallel."""
    number = int(calls[0]["id"][-2:]) if calls[0]["id"][-2:].isdecimal() else 0
    if number % 2:
        return [narration(""), call(f"{calls[0]['id']}s", SAY, text=words), *calls]
    return [narration(words), *calls]


@pytest.mark.parametrize(
    ("model", "speak"),
    [(OLDER, in_text), (BOUND, in_narration_and_say)],
    ids=["narrates in text", "hides its narration"],
)
def test_thirty_calls_and_two_checkpoints(tmp_path: Path, model: str, speak: Callable[[str, list[Block]], list[Block]]):
    home = Home.make(tmp_path)
    project(home.project)
    with Upstream(script(home.project, speak), strict=True, bound=True) as upstream:
        ran = home.run(upstream, "Do all parts agree?", model=model)
        assert ran.code == 0, ran.stderr
        assert ran.result["result"] == "All parts agree."
        assert upstream.refusals == [] and upstream.unused == 0
        turns = upstream.conversation

    # The history part is more than halved at each checkpoint.
    seams = [n for n in range(1, len(turns)) if len(turns[n].messages) < len(turns[n - 1].messages)]
    assert len(seams) == 2
    for n in seams:
        assert weight(turns[n]) < weight(turns[n - 1]) / 2
    assert sum(len(result) for result in _results(home)) >= 200_000

    # Between checkpoints each request begins with the one before; what was sent before the last seam stays for ever.
    for n in range(1, len(turns)):
        if n not in seams:
            assert shared(turns[n - 1], turns[n]) == len(turns[n - 1].messages), f"request {n} changed its prefix"
    # (A model with manual thinking gets the kept words inside of its checkpoint's own message: docs/wire.md, 1.3.)
    stays = 2 if speak is in_narration_and_say else 1
    assert shared(turns[seams[0]], turns[seams[1]]) >= stays

    # Every word is still there, and nothing of the world's from before the seam.
    last = turns[-1].messages
    told = said(last) + "\n".join(block["input"].get("text", "") for block in blocks(last, "tool_use"))
    told += "\n".join(
        block["thinking"] for block in blocks(last, "thinking")
    )  # narration behind the seam stays as it is
    for number in range(PARTS - 1):
        assert intent(number) in told and outcome(number) in told, number
    names = [block["name"] for block in blocks(last, "tool_use") if block["name"] != SAY]
    assert names == [HANDOFF, HANDOFF, "Read", "Read", "Read", RECALL, RECALL]

    # The recalled result is the file as it was read, though the call left two seams ago.
    shown = result_of(last, "toolu_c01")
    assert (home.project / "part_03.py").read_text().splitlines()[199] in shown
    assert "still has these lines" in shown
    assert "part_07.py" in result_of(last, "toolu_c02")

    # The report tells it as it was.
    told = ran.session
    assert [step["first_cut_message_bytes"] * 2 < step["last_uncut_message_bytes"] for step in told["checkpoints"]] == [
        True,
        True,
    ]
    assert told["sent_bytes"] == sum(len(turn.raw) for turn in turns)
    assert told["input_tokens"] < told["uncut_tokens_estimated"]
    spoken = told["narration"]
    assert spoken["calls"] == PARTS and spoken["silent"] <= 2
    if speak is in_narration_and_say:
        assert spoken["in_narration_blocks"] and spoken["by_say"] and spoken["hidden_narration_blocks"]
    else:
        assert spoken["in_text"] == spoken["calls"] - spoken["silent"]
    assert told["refusals"] == told["faults"] == [] and ran.report["faults"] == []

    # The history stays whole: in the client's own file, and in the record.
    (file,) = sessions(home.config, home.project)
    assert len(blocks(json.loads(open_session(file).history.body)["messages"], "tool_use")) >= PARTS + 4
    with Record(home.record, readonly=True) as record:
        held = record.history(told["session"])
        assert held is not None
        assert len(blocks(json.loads(held.body)["messages"], "tool_use")) >= PARTS + 4
        assert [document.address != "" for document in record.documents()] == [True, True]


def _results(home: Home) -> list[str]:
    (file,) = sessions(home.config, home.project)
    messages = json.loads(open_session(file).history.body)["messages"]
    return [json.dumps(block["content"]) for block in blocks(bare(messages), "tool_result")]
