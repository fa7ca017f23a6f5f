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
