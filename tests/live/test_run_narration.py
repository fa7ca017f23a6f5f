"""Models that hide what they say, and the mandate held by a hook: each way of narrating counts, none of it is lost."""

from __future__ import annotations

import itertools
import json
import statistics
import time
from pathlib import Path
from typing import Any

import pytest

from cutline import mandate

from . import claude
from .run import BOUND, DOCUMENT, HANDOFF, OLDER, SAY, Home, blocks, result_of, said
from .upstream import Block, Upstream, call, narration, text, thinking

pytestmark = pytest.mark.slow

VERSIONS = pytest.mark.parametrize("version", [claude.VERSION, "2.1.197"])
MODELS = pytest.mark.parametrize("model", [OLDER, BOUND])


def intent(number: int) -> str:
    return (
        f"I run echo sum-{number * 37} because part {number} decides the next step; I expect sum-{number * 37} twice."
    )


def total(number: int) -> str:
    return str((number + 1) * 7919)


def outcome(number: int) -> str:
    return f"Part {number} printed {total(number)} (measured)."


def bash(number: int) -> Block:
    command = f"echo sum-{number * 37}; expr {number + 1} '*' 7919"
    return call(f"toolu_b{number:02}", "Bash", command=command, description="count")


def spoken(way: str, words: str, id_: str) -> list[Block]:
    """Words in the way that a model has: in text, in a narration block, with `say`, or kept to itself."""
    if way == "say":
        return [call(id_, SAY, text=words)]
    return [{"text": text, "narration": narration}[way](words)] if way != "hidden" else [narration("")]


def mixed(ways: list[str]) -> list[list[Block]]:
    """One call for each way, its reason before it and what came of it behind it, both in that way."""
    answers = []
    for number, way in enumerate([*ways, ""], 1):
        answer = spoken(ways[number - 2], outcome(number - 1), f"toolu_o{number:02}") if number > 1 else []
        if way:
            answer = [*answer, *spoken(way, intent(number), f"toolu_s{number:02}"), bash(number)]
        answers.append(sorted(answer, key=lambda block: block["type"] == "tool_use"))
    return answers


def test_every_way_of_narrating_is_counted_once_and_its_words_stay(tmp_path: Path):
    home = Home.make(tmp_path)
    ways = ["text", "text", "narration", "narration", "narration", "say", "say", "hidden"]
    *answers, last = mixed(ways)
    checkpoint = [*last, text("A natural point."), call("toolu_h01", HANDOFF, **DOCUMENT)]
    script = [*answers, checkpoint, [narration("All counted, I say so at the end."), text("Done.")]]
    with Upstream(script, strict=True, bound=True) as upstream:
        ran = home.run(upstream, "Count.", model=BOUND)
    assert (ran.code, upstream.refusals, upstream.unused) == (0, [], 0), ran.stdout
    told = ran.session["narration"]
    ways_counted = {key: told[key] for key in ("in_text", "in_narration_blocks", "by_say", "silent")}
    assert ways_counted == {"in_text": 2, "in_narration_blocks": 3, "by_say": 2, "silent": 1}
    assert sum(ways_counted.values()) == told["calls"] == len(ways)
    assert told["hidden_narration_blocks"] == 2

    # Behind the seam narration blocks are gone, and their words stand as text where they stood; `say` stays as it is.
    after = upstream.conversation[-1].messages
    words = said(after)
    for number, way in enumerate(ways, 1):
        if way in ("text", "narration"):
            assert words.count(intent(number)) == words.count(outcome(number)) == 1, number
            assert words.index(intent(number)) < words.index(outcome(number))
    told_by_say = [block["input"]["text"] for block in blocks(after, "tool_use") if block["name"] == SAY]
    assert told_by_say == [intent(6), outcome(6), intent(7), outcome(7)]
    assert not blocks(after, "thinking")
    assert [block["name"] for block in blocks(after, "tool_use") if block["name"] != SAY] == [HANDOFF]


@VERSIONS
@MODELS
def test_narration_is_asked_to_be_shown_unless_the_user_says_otherwise(tmp_path: Path, version: str, model: str):
    home = Home.make(tmp_path, version)
    with Upstream() as upstream:
        assert home.run(upstream, "Hi.", model=model).code == 0
        assert home.run(upstream, "Hi.", "--thinking-display", "omitted", model=model).code == 0
    shown = [turn.body["thinking"].get("display") for turn in upstream.conversation]
    assert shown == ["summarized", "omitted"]


def silent(number: int) -> list[Block]:
    return [thinking("so far so good"), bash(number)]


def narrated(number: int) -> list[Block]:
    return [thinking("so far so good"), text(intent(number)), bash(number)]


def in_parallel(number: int) -> list[Block]:
    return [thinking("so far so good"), call(f"toolu_s{number:02}", SAY, text=intent(number)), bash(number)]


def said_before(number: int) -> list[Block]:
    return [thinking("so far so good"), call(f"toolu_s{number:02}", SAY, text=intent(number))]


DONE = [text("Done.")]


def test_a_call_written_out_as_text_stays_text_and_is_counted(tmp_path: Path):
    home = Home.make(tmp_path)
    written = 'Next one.\n\n<invoke name="Bash">\n<parameter name="command">touch made</parameter>\n</invoke>'
    checkpoint = [thinking("so far so good"), call("toolu_h01", HANDOFF, **DOCUMENT)]
    script = [narrated(1), checkpoint, [text(written)], narrated(2), DONE]
    with Upstream(script, strict=True) as upstream:
        first = home.run(upstream, "Count.")
        second = home.run(upstream, "Go on.", "--continue")
    assert (first.code, second.code, upstream.refusals) == (0, 0, []), second.stdout
    assert first.session["phantom_calls"] == 1 and second.session["phantom_calls"] == 0
    last = upstream.conversation[-1].messages
    assert written in said(last) and not (home.project / "made").exists()
    assert [block["id"] for block in blocks(last, "tool_use")] == ["toolu_h01", "toolu_b02"]


@VERSIONS
def test_nudge_reminds_where_words_are_missing_and_runs_the_call(tmp_path: Path, version: str):
    home = Home.make(tmp_path, version)
    with Upstream([silent(1), narrated(2), in_parallel(3), DONE], strict=True) as upstream:
        ran = home.run(upstream, "Count.", flags=("--mandate", "nudge"))
    assert ran.code == 0 and not upstream.refusals, ran.stdout
    last = upstream.conversation[-1].messages
    told = [json.dumps(turn.messages).count(mandate.NUDGE) for turn in upstream.conversation]
    assert told == [0, 1, 1, 1], "behind the first result, and nowhere else"
    for number in (1, 2, 3):
        assert total(number) in result_of(last, f"toolu_b{number:02}")


@VERSIONS
def test_strict_returns_a_call_unrun_until_its_intent_is_stated(tmp_path: Path, version: str):
    home = Home.make(tmp_path, version)
    again = [thinking("so far so good"), text(intent(1)), {**bash(1), "id": "toolu_b91"}]
    script = [silent(1), again, in_parallel(2), said_before(3), silent(3), silent(4), DONE]
    with Upstream(script, strict=True) as upstream:
        ran = home.run(upstream, "Count.", flags=("--mandate", "strict"))
    assert ran.code == 0 and not upstream.refusals, ran.stdout
    last = upstream.conversation[-1].messages
    returned = {block["tool_use_id"] for block in blocks(last, "tool_result") if block.get("is_error")}
    assert returned == {"toolu_b01", "toolu_b04"}
    assert mandate.STRICT in result_of(last, "toolu_b01") and total(1) not in result_of(last, "toolu_b01")
    for id_, number in (("toolu_b91", 1), ("toolu_b02", 2), ("toolu_b03", 3)):
        assert total(number) in result_of(last, id_)


def test_strict_is_no_wall(tmp_path: Path):
    """An agent that is not understood gets on after three answers, with the reminder."""
    home = Home.make(tmp_path)
    with Upstream([silent(1), silent(2), silent(3), silent(4), DONE], strict=True) as upstream:
        ran = home.run(upstream, "Count.", flags=("--mandate", "strict"))
    last = upstream.conversation[-1].messages
    assert ran.code == 0
    assert [bool(block.get("is_error")) for block in blocks(last, "tool_result")] == [True, True, True, False]
    assert mandate.NUDGE in json.dumps(last)


@VERSIONS
def test_a_sub_agent_is_not_held_to_it_and_not_kept_waiting(tmp_path: Path, version: str):
    home = Home.make(tmp_path, version)
    times: dict[str, float] = {}

    def play(body: dict[str, Any]) -> list[Block]:
        told = json.dumps(body["messages"])
        if "cc_is_subagent=true" in json.dumps(body.get("system", "")):
            times.setdefault("asked" if "toolu_b01" not in told else "answered", time.monotonic())
            return [text("Counted.")] if "toolu_b01" in told else [bash(1)]
        if "toolu_a01" not in told:
            words = "I have an agent audit the ledger module because its sums look wrong; I expect one fault."
            task = {"description": "audit the ledger module", "prompt": "Audit it.", "subagent_type": "general-purpose"}
            return [thinking("so far so good"), text(words), call("toolu_a01", "Agent", **task)]
        return DONE

    with Upstream(play) as upstream:
        ran = home.run(upstream, "Count.", flags=("--mandate", "strict"))
    assert ran.code == 0, ran.stdout
    results = [turn for turn in upstream.conversation if "toolu_b01" in json.dumps(turn.messages)]
    assert total(1) in result_of(results[0].messages, "toolu_b01")
    assert ran.session["sub_agent_turns"] == 2
    assert times["answered"] - times["asked"] < 1.4, "its answer is not waited for"


@VERSIONS
def test_the_guard_costs_a_call_little_time(tmp_path: Path, version: str):
    def seconds_a_call(held: str) -> float:
        home = Home.make(tmp_path / held, version)
        came: list[float] = []

        def play(body: dict[str, Any]) -> list[Block]:
            came.append(time.monotonic())
            return narrated(len(came)) if len(came) < 10 else DONE

        with Upstream(play) as upstream:
            assert home.run(upstream, "Count.", flags=("--mandate", held)).code == 0
        return statistics.median(two - one for one, two in itertools.pairwise(came[1:]))

    free, held = seconds_a_call("text"), seconds_a_call("strict")
    print(f"{version}: {free * 1000:.0f} ms a call, {held * 1000:.0f} ms with the guard")
    assert held - free < 0.3
