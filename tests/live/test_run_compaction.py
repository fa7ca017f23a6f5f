"""The client's own compaction in a run: a checkpoint is asked for instead, and where a summary comes it comes whole.

The threshold is brought down to 117,000 tokens (CLAUDE_CODE_AUTO_COMPACT_WINDOW=150000), so that it fires headless;
the scripted provider says how full the context is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from cutline import mandate
from cutline.record import Record

from . import claude
from .run import DOCUMENT, HANDOFF, RECALL, Home, bare, blocks, result_of
from .upstream import Block, Recorded, Reply, Upstream, call, failure, text, thinking

pytestmark = pytest.mark.slow

FULL = {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "150000"}
LOW, HIGH = 40_000, 118_000
SUMMARY = "<analysis>All of it.</analysis>\n<summary>The parts were counted.</summary>"
ASKS = "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools."
TASK = "a detailed summary of the conversation"
Step = tuple[int, list[Block]]
Made = Callable[[dict[str, Any]], Step | Reply]


class Model:
    """The scripted model: an answer and the count of tokens that it comes with, in turn; a summary where one is asked.

    Attributes:
        upstream: what it answers for; set once there is one.
    """

    upstream: Upstream

    def __init__(self, steps: Sequence[Step | Made]) -> None:
        self._steps = iter(steps)

    def __call__(self, body: dict[str, Any]) -> list[Block] | Reply:
        if summarises(body["messages"]):
            self.upstream.input_tokens = LOW
            return [text(SUMMARY)]
        step = next(self._steps)
        told = step(body) if callable(step) else step
        if isinstance(told, Reply):
            return told
        self.upstream.input_tokens, answer = told
        return [thinking("so far so good"), *answer]


def played(*steps: Step | Made) -> Upstream:
    model = Model(steps)
    model.upstream = Upstream(model, strict=True)
    return model.upstream


def summarises(messages: list[dict[str, Any]]) -> bool:
    """Whether a request asks for the client's own summary."""
    last = bare(messages)[-1]["content"][-1]
    return last["type"] == "text" and last["text"].startswith(ASKS) and TASK in last["text"]


def work(number: int, tokens: int = LOW) -> Step:
    words = f"I run part {number} because its sum decides the next step; I expect {number * 7}."
    return tokens, [
        text(words),
        call(f"toolu_w{number:02}", "Bash", command=f"echo sum-{number * 7}", description="count"),
    ]


def checkpoint(number: int, tokens: int = LOW) -> Step:
    document = {**DOCUMENT, "done": f"parts up to {number}"}
    return tokens, [text(f"Part {number} printed sum-{number * 7}."), call(f"toolu_h{number:02}", HANDOFF, **document)]


def done(tokens: int = LOW) -> Step:
    return tokens, [text("All counted.")]


def reminders(request: Recorded) -> int:
    """How often the agent is told in a request that a checkpoint is wanted."""
    return json.dumps(request.body["messages"]).count(mandate.CHECKPOINT_WANTED)


def summaries(upstream: Upstream) -> list[Recorded]:
    return [request for request in upstream.conversation if summarises(request.messages)]


def names(request: Recorded) -> list[str]:
    return [block["id"] for block in blocks(request.messages, "tool_use")]


@pytest.mark.parametrize("version", [claude.VERSION, "2.1.197"])
def test_a_checkpoint_is_asked_for_instead_and_no_summary_is_made(tmp_path: Path, version: str):
    home = Home.make(tmp_path, version)
    steps = [work(1), work(2, HIGH), work(3, HIGH), checkpoint(3, HIGH), work(4), done()]
    with played(*steps) as upstream:
        ran = home.run(upstream, "Count.", **FULL)
    assert (ran.code, ran.result["result"]) == (0, "All counted."), ran.stderr
    turns = upstream.conversation
    assert len(turns) == len(steps) and not summaries(upstream) and not upstream.refusals
    # Held back before the third request; told with the next result, in the fourth; once, and not behind the seam.
    assert [reminders(turn) for turn in turns[:4]] == [0, 0, 0, 1] and reminders(turns[-1]) <= 1
    assert names(turns[3])[-1] == "toolu_w03" and names(turns[4]) == ["toolu_h03"]
    told = ran.session
    assert (told["compactions"], told["held_back"], len(told["checkpoints"])) == (0, 3, 1)


def test_an_agent_that_does_not_listen_gets_its_summary_and_its_document_is_put_back_in_view(tmp_path: Path):
    home = Home.make(tmp_path)
    ignores = [work(number, HIGH) for number in range(2, 8)]

    def recalls_its_document(body: dict[str, Any]) -> Step:
        where = json.dumps(body["messages"]).partition("its document is at the address ")[2][:16]
        return LOW, [text("I look at my document again."), call("toolu_c01", RECALL, what=where)]

    steps: list[Step | Made] = [work(1), checkpoint(1), *ignores, recalls_its_document]
    steps += [(LOW, [text("And at the first sum."), call("toolu_c02", RECALL, what="sum-7")])]
    steps += [work(10), work(11), checkpoint(11), done()]
    with played(*steps) as upstream:
        ran = home.run(upstream, "Count.", **FULL)
    assert (ran.code, ran.result["result"]) == (0, "All counted."), ran.stderr
    assert not upstream.refusals
    turns = upstream.conversation
    (summary,) = summaries(upstream)
    at = turns.index(summary)
    assert at == 2 + 6, "five requests go on, and then the client has its way"
    assert [reminders(turn) for turn in turns[3:at]] == [0, 1, 2, 3, 4], "told once each time"

    # What is summarised is the whole history, though the requests before it were cut.
    assert "toolu_w01" not in names(turns[at - 1]) and names(summary)[:2] == ["toolu_w01", "toolu_h01"]
    assert "sum-7" in result_of(summary.messages, "toolu_w01")
    with Record(home.record, readonly=True) as record:
        (row,) = [row for row in record.requests(ran.session["session"]) if row.kind == "compaction"]
        assert record.body(row.id) == summary.raw

    # Behind it the document can be found again, and what it stands on.
    assert "This session is being continued" in json.dumps(turns[at + 1].messages)
    assert '"parts up to 1"' in result_of(turns[at + 2].messages, "toolu_c01")
    assert "sum-7" in result_of(turns[at + 3].messages, "toolu_c02")

    # And the next checkpoint cuts as ever.
    assert names(turns[-1]) == ["toolu_h11"] and "The parts were counted." in json.dumps(turns[-1].messages)
    told = ran.session
    assert (told["compactions"], told["held_back"], len(told["checkpoints"])) == (1, 5, 2)
    assert told["narration"]["calls"] >= 9, "what was summarised is counted too"
    assert told["faults"] == told["refusals"] == [] and ran.report["faults"] == []


def test_close_to_the_client_s_end_the_summary_goes_ahead_at_once(tmp_path: Path):
    home = Home.make(tmp_path)
    with played(work(1), work(2, 174_500), work(3), done()) as upstream:
        ran = home.run(upstream, "Count.", **FULL)
    assert (ran.code, ran.result["result"]) == (0, "All counted."), ran.stdout
    assert len(summaries(upstream)) == 1 and ran.session["compactions"] == 1 and ran.session["held_back"] == 0


def test_a_prompt_that_the_provider_finds_too_long_is_summarised_as_without_cutline(tmp_path: Path):
    home = Home.make(tmp_path)

    def too_long(body: dict[str, Any]) -> Reply:
        return failure(400, "prompt is too long: 213242 tokens > 200000 maximum")

    with played(work(1), checkpoint(1), work(2), too_long, too_long, work(3), done()) as upstream:
        ran = home.run(upstream, "Count.")
    assert (ran.code, ran.result["result"]) == (0, "All counted."), ran.stdout + ran.stderr
    assert len(summaries(upstream)) == 1 and ran.session["compactions"] == 1


def test_kept_compaction_is_the_client_s_own(tmp_path: Path):
    home = Home.make(tmp_path)
    with played(work(1), work(2, HIGH), work(3), done()) as upstream:
        ran = home.run(upstream, "Count.", flags=("--keep-compaction",), **FULL)
    assert (ran.code, ran.result["result"]) == (0, "All counted."), ran.stderr
    turns = upstream.conversation
    assert [summarises(turn.messages) for turn in turns] == [False, False, True, False, False]
    assert not any(map(reminders, turns))
    assert ran.session["compactions"] == 1 and ran.session["held_back"] == 0


def test_the_human_s_own_compact_always_works(tmp_path: Path):
    home = Home.make(tmp_path)
    with played(work(1), checkpoint(1), work(2), done(), work(3), checkpoint(3), done()) as upstream:
        first = home.run(upstream, "Count.", **FULL)
        second = home.run(upstream, "/compact keep the sums", "--continue", **FULL)
        third = home.run(upstream, "Go on.", "--continue", **FULL)
    assert [first.code, second.code, third.code] == [0, 0, 0], second.stdout + second.stderr
    (summary,) = summaries(upstream)
    assert "keep the sums" in json.dumps(summary.messages) and "toolu_w01" in names(summary)
    assert third.result["result"] == "All counted." and names(upstream.conversation[-1]) == ["toolu_h03"]
    assert second.session["compactions"] == 1 and len(third.session["checkpoints"]) == 1
    assert "its document is at the address" in json.dumps(upstream.conversation[-1].messages)
