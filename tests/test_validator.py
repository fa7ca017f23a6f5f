"""The validator that the properties lean on: one body for each refusal, and what the API took is taken."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import validator

WIRE = Path(__file__).resolve().parents[2] / "shared" / "data" / "sessions" / "wire"


def user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": [text(item) if isinstance(item, str) else item for item in content]}


def agent(*content: Any) -> dict[str, Any]:
    return user(*content) | {"role": "assistant"}


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def call(id: str, **more: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": "Bash", "input": {}, **more}


def result(id: str, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": "out", **more}


def search(id: str) -> dict[str, Any]:
    return {"type": "server_tool_use", "id": id, "name": "web_search", "input": {}}


def hits(id: str) -> dict[str, Any]:
    return {"type": "web_search_tool_result", "tool_use_id": id, "content": []}


def body(*messages: Any, model: str = "claude-opus-4-7", **more: Any) -> dict[str, Any]:
    return {"model": model, "messages": list(messages), **more}


THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
SYSTEM = {"role": "system", "content": "From now on, in French."}
MARK = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}
ENABLED = {"type": "enabled", "budget_tokens": 1024}

TAKEN = {
    "words": body(user("hello"), agent("hi"), user("go on")),
    "a call and its result": body(user("go"), agent("Looking.", call("a")), user(result("a"))),
    "parallel calls": body(user("go"), agent(call("a"), call("b")), user(result("b"), result("a"))),
    "words behind results": body(user("go"), agent(call("a")), user(result("a"), "and be quick")),
    "neighbours of one role": body(user("a"), user("b"), agent("c"), agent("d"), user("e")),
    "white space beside a call": body(user("go"), agent(" ", call("a")), user(result("a"))),
    "an empty final assistant message of an older model": body(user("go"), agent(), model="claude-opus-4-5"),
    "a prefill of an older model": body(user("go"), agent("{"), model="claude-sonnet-4-5-20250929"),
    "a system message behind a human": body(user("go"), SYSTEM, agent("oui"), user("on")),
    "a system message behind results": body(user("go"), agent(call("a")), user(result("a")), SYSTEM),
    "two system messages": body(user("go"), SYSTEM, SYSTEM, agent("oui"), user("on")),
    "a system message behind a server's result": body(
        user("go"), agent(search("s"), hits("s")), SYSTEM, agent("x"), user("y")
    ),
    "a server's pair": body(user("go"), agent("Searching.", search("s"), hits("s"), "Found."), user("on")),
    "a paused turn": body(user("go"), agent(search("s")), model="claude-opus-4-5"),
    "a paused turn with a client's call": body(user("go"), agent(search("s"), call("a")), user(result("a"))),
    "a paused turn that went on": body(user("go"), agent(search("s")), agent(hits("s"), "Found."), user("on")),
    "thinking first": body(user("go"), agent(THOUGHT, call("a")), user(result("a")), thinking=ENABLED),
    "thinking once in a loop": body(
        user("go"), agent(THOUGHT, call("a")), user(result("a")), agent(call("b")), user(result("b")), thinking=ENABLED
    ),
    "no thinking in a closed turn": body(
        user("go"), agent(call("a")), user(result("a")), agent("done"), user("on"), thinking=ENABLED
    ),
    "adaptive thinking anywhere": body(
        user("go"), agent("So.", THOUGHT, call("a")), user(result("a")), thinking={"type": "adaptive"}
    ),
    "earlier thinking with thinking disabled": body(
        user("go"), agent(THOUGHT, "x"), user("on"), agent("y"), user("z"), thinking={"type": "disabled"}
    ),
    "four marks": body(
        user(text("a", cache_control=HOUR)),
        agent(text("b", cache_control=MARK)),
        user(text("c", cache_control=MARK)),
        system=[text("s", cache_control=HOUR)],
    ),
}

REFUSED = {
    "`tool_use` ids were found without `tool_result` blocks immediately after": [
        body(user("go"), agent(call("a")), user("stop")),
        body(user("go"), agent(call("a"))),
        body(user("go"), agent(call("a")), user("wait"), user(result("a"))),
        body(user("go"), agent(call("a")), agent("hm"), user(result("a"))),
        body(user("go"), agent(call("a"), call("b")), user(result("a")), user(result("b"))),
    ],
    "unexpected `tool_use_id` found in `tool_result` blocks": [
        body(user("go"), agent("x"), user(result("a"))),
        body(user(result("a"))),
        body(user("go"), agent(call("a")), user(result("a"), result("b"))),
        body(user("go"), agent(call("a")), user(result("a"), result("a"))),
        body(user("go"), agent(call("a")), user(result("a")), user(result("a"))),
    ],
    "`tool_result` blocks must come first": [body(user("go"), agent(call("a")), user("so", result("a")))],
    "`tool_result` blocks can only be in user messages": [
        body(user("go"), agent(call("a")), agent(result("a")), user("x"))
    ],
    "unexpected `tool_use_id` found in `web_search_tool_result` blocks": [
        body(user("go"), agent(hits("s"), "x"), user("y")),
        body(user("go"), agent(hits("s"), search("s")), user("y")),
    ],
    "only tool_result blocks may follow an unanswered server tool use": [
        body(user("go"), agent(search("s"), call("a")), user(result("a"), "quick"))
    ],
    "a server tool use without its result": [body(user("go"), agent(search("s"), "x"), user("on"))],
    "all messages must have non-empty content": [body(user()), body(user("a"), agent(), user("b"))],
    "text content blocks must be non-empty": [
        body(user("")),
        body(user("go"), agent("", call("a")), user(result("a"))),
    ],
    "text content blocks must contain non-whitespace text": [
        body(user(" \n")),
        body({"role": "user", "content": "\t"}),
        body(user("a"), agent(" ", "\n"), user("b")),
    ],
    "first message must use the user role": [body(agent("hello"), user("hi"))],
    "a system message cannot be first": [body(SYSTEM, user("hi"))],
    "a system message must follow a user turn": [body(user("go"), agent("x"), SYSTEM, agent("y"), user("z"))],
    "a system message must precede an assistant turn": [
        body(user("go"), SYSTEM, user("on")),
        body(user("go"), agent(call("a")), SYSTEM, user(result("a"))),
    ],
    "does not support assistant message prefill": [
        body(user("go"), agent("{")),
        body(user("go"), agent("{"), model="claude-opus-4-6"),
    ],
    "final assistant content cannot end with trailing whitespace": [
        body(user("go"), agent("so: "), model="claude-sonnet-4-5")
    ],
    "final block in an assistant message cannot be `thinking`": [
        body(user("go"), agent("x", THOUGHT), user("on")),
        body(user("go"), agent(THOUGHT), user("on")),
    ],
    "a final `assistant` message must start with a thinking block": [
        body(user("go"), agent(call("a")), user(result("a")), thinking=ENABLED),
        body(user("go"), agent("So.", THOUGHT, call("a")), user(result("a")), thinking=ENABLED),
        body(user("go"), agent("So."), agent(THOUGHT, call("a")), user(result("a")), thinking=ENABLED),
    ],
    "when thinking is disabled": [body(user("go"), agent(THOUGHT, "x"), user("on"), thinking={"type": "disabled"})],
    "when tool_choice forces tool use": [body(user("go"), thinking=ENABLED, tool_choice={"type": "any"})],
    "only tool_result blocks may answer a programmatic call": [
        body(
            user("go"),
            agent(call("a", caller={"type": "code_execution_20250825", "tool_id": "s"})),
            user(result("a"), "quick"),
        )
    ],
    "cache_control cannot be set for thinking blocks": [
        body(user("go"), agent(THOUGHT | {"cache_control": MARK}, "x"), user("y"))
    ],
    "cache_control cannot be set for empty text blocks": [body(user(text("", cache_control=MARK), "x"))],
    "a maximum of 4 blocks with cache_control": [body(user(*[text("x", cache_control=MARK)] * 4), cache_control=MARK)],
    "a ttl='1h' cache_control block must not come after": [
        body(user(text("a", cache_control=MARK)), agent("b"), user(text("c", cache_control=HOUR)))
    ],
    "too many messages": [body(*[user("x")] * 100_001)],
}

BOUND = "claude-fable-5-2"
STORED = call("c", name="micro_handoff")
RUN = body(user("go"), agent(THOUGHT, THOUGHT | {"thinking": "So."}, call("a")), user(result("a")))


@pytest.mark.parametrize("case", TAKEN.values(), ids=TAKEN.keys())
def test_what_the_rules_allow_is_taken(case: dict[str, Any]) -> None:
    assert validator.faults(case) == []
    assert validator.faults(json.dumps(case).encode()) == []


@pytest.mark.parametrize(("words", "cases"), REFUSED.items(), ids=REFUSED.keys())
def test_each_refusal_of_the_api_is_made(words: str, cases: list[dict[str, Any]]) -> None:
    for case in cases:
        assert any(words in fault for fault in validator.faults(case)), case


def test_a_run_of_thinking_may_leave_whole_and_never_in_part() -> None:
    whole = body(user("go"), agent(call("a")), user(result("a")))
    part = body(user("go"), agent(THOUGHT, call("a")), user(result("a")))
    assert validator.faults_of_a_cut(RUN, RUN, 3) == validator.faults_of_a_cut(RUN, whole, 3) == []
    assert ["cannot be modified" in fault for fault in validator.faults_of_a_cut(RUN, part, 3)] == [True]


def test_two_runs_may_not_become_one() -> None:
    two = body(user("go"), agent(THOUGHT, "So.", THOUGHT, call("a")), user(result("a")))
    one = body(user("go"), agent(THOUGHT, THOUGHT, call("a")), user(result("a")))
    assert ["cannot be modified" in fault for fault in validator.faults_of_a_cut(two, one, 3)] == [True]


def test_thinking_of_an_earlier_turn_is_not_looked_at() -> None:
    before = body(user("go"), agent(THOUGHT, THOUGHT, "x"), user("on"), agent(THOUGHT, call("a")), user(result("a")))
    after = body(user("go"), agent(THOUGHT, "x"), user("on"), agent(THOUGHT, call("a")), user(result("a")))
    assert validator.faults_of_a_cut(before, after, 5) == []


@pytest.mark.parametrize(("model", "refused"), [(BOUND, True), ("claude-opus-5-5", True), ("claude-opus-4-7", False)])
def test_bound_thinking_of_the_checkpoint_turn_may_not_stay(model: str, refused: bool) -> None:
    before = body(
        user("go"), agent(call("a")), user(result("a")), agent(THOUGHT, STORED), user(result("c")), model=model
    )
    after = body(user("go"), agent(THOUGHT, STORED), user(result("c")), model=model)
    assert bool(validator.faults_of_a_cut(before, after, 3)) == refused
    assert validator.faults_of_a_cut(before, before, 5) == []
    behind = [agent(THOUGHT, call("d")), user(result("d"))]
    after = body(user("go"), agent(STORED), user(result("c")), *behind, model=model)
    before["messages"] += behind
    assert validator.faults_of_a_cut(before, after, 3) == []


def recorded() -> Iterator[tuple[str, dict[str, Any]]]:
    """Bodies that the Anthropic API answered with 200, from the recordings of several SDKs' test suites."""
    yaml = pytest.importorskip("yaml", reason="the recordings are YAML, and pyyaml is not installed")
    for path in sorted(WIRE.glob("*.y*ml")):
        tape = yaml.load(path.read_text("utf-8"), yaml.BaseLoader)  # the safest one: texts, lists and mappings
        for number, exchange in enumerate(tape.get("interactions") or tape.get("http_interactions") or []):
            if "request" not in exchange:
                continue  # a recording of another protocol
            request, response = exchange["request"], exchange["response"]
            url = str(request.get("uri") or request.get("url"))
            status = response.get("status") or response.get("code")
            if isinstance(status, dict):
                status = status["code"]
            assert isinstance(status, str)
            if not status.startswith("200") or not ("anthropic.com/v1/messages" in url or "anthropic.claude" in url):
                continue
            sent = request.get("parsed_body") or request.get("body")
            if isinstance(sent, dict) and "string" in sent:
                sent = sent["string"]
            if isinstance(sent, str | bytes):
                sent = json.loads(sent)
            if url.endswith(("/invoke", "/messages")) or "messages?" in url:
                yield f"{path.name} {number}", sent


@pytest.mark.skipif(not WIRE.is_dir(), reason="../shared/data is not on this machine")
def test_recorded_bodies_that_the_api_took_are_taken() -> None:
    found = list(recorded())
    assert len(found) > 30
    assert [(name, validator.faults(sent)) for name, sent in found if validator.faults(sent)] == []
