"""The validator that the properties lean on: each refusal for a small change of a body that is taken.

What the API is recorded to have taken is taken; of the recorded sessions, each that it would refuse has its reason.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import validator
from conftest import claude_code_files
from cutline.errors import InputError
from cutline.sessions.claude_code import open_session

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

ENDED = body(user("go"), agent("x"), user("on"))
LOOP = body(user("go"), agent(call("a")), user(result("a")))
PAIR = body(user("go"), agent("Searching.", search("s"), hits("s"), "Found."), user("on"))
THOUGHTFUL = body(user("go"), agent(THOUGHT, call("a")), user(result("a")), thinking=ENABLED)
PROGRAM = {"type": "code_execution_20250825", "tool_id": "s"}
PDF = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="}}
CITED = PDF | {"citations": {"enabled": True}}
SUMMARY = {"type": "compaction", "content": "So far.", "signature": "c2ln"}
ADVICE = {"type": "advisor_tool_result", "tool_use_id": "s", "content": "Go on."}
FIVE = [text(word, cache_control=MARK) for word in "abcde"]

# The provider's words: a body that is taken, and small changes of it that are refused with those words.
REFUSED: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    "`tool_use` ids were found without `tool_result` blocks immediately after": (
        LOOP,
        [
            body(user("go"), agent(call("a")), user("stop")),
            body(user("go"), agent(call("a"))),
            body(user("go"), agent(call("a")), user("wait"), user(result("a"))),
            body(user("go"), agent(call("a")), agent("hm"), user(result("a"))),
            body(user("go"), agent(call("a"), call("b")), user(result("a")), user(result("b"))),
        ],
    ),
    "unexpected `tool_use_id` found in `tool_result` blocks": (
        LOOP,
        [
            body(user("go"), agent("x"), user(result("a"))),
            body(user(result("a"))),
            body(user("go"), agent(call("a")), user(result("a"), result("b"))),
            body(user("go"), agent(call("a")), user(result("a"), result("a"))),
            body(user("go"), agent(call("a")), user(result("a")), user(result("a"))),
        ],
    ),
    "`tool_result` blocks must come first": (
        body(user("go"), agent(call("a")), user(result("a"), "so")),
        [body(user("go"), agent(call("a")), user("so", result("a")))],
    ),
    "`tool_result` blocks can only be in user messages": (
        LOOP,
        [body(user("go"), agent(call("a")), agent(result("a")), user("x"))],
    ),
    "`tool_use` blocks can only be in assistant messages": (LOOP, [body(user("go", call("a")), user(result("a")))]),
    "`thinking` blocks can only be in assistant messages": (ENDED, [body(user("go"), agent("x"), user(THOUGHT, "on"))]),
    "`web_search_tool_result` blocks can only be in assistant messages": (
        PAIR,
        [body(user("go"), agent("Searching.", search("s")), user(hits("s"), "on"))],
    ),
    "unexpected `tool_use_id` found in `web_search_tool_result` blocks": (
        PAIR,
        [
            body(user("go"), agent("Searching.", hits("s"), "Found."), user("on")),
            body(user("go"), agent(hits("s"), search("s")), user("y")),
        ],
    ),
    "unexpected `tool_use_id` found in `advisor_tool_result` blocks": (
        body(user("go"), agent(search("s") | {"name": "advisor"}, ADVICE, "x"), user("on")),
        [body(user("go"), agent(ADVICE, "x"), user("on"))],
    ),
    "only tool_result blocks may follow an unanswered server tool use": (
        body(user("go"), agent(search("s"), call("a")), user(result("a"))),
        [body(user("go"), agent(search("s"), call("a")), user(result("a"), "quick"))],
    ),
    "a server tool use without its result": (PAIR, [body(user("go"), agent(search("s"), "Found."), user("on"))]),
    "all messages must have non-empty content": (
        ENDED,
        [body(user(), agent("x"), user("on")), body(user("go"), agent(), user("on"))],
    ),
    "text content blocks must be non-empty": (
        LOOP,
        [
            body(user(""), agent(call("a")), user(result("a"))),
            body(user("go"), agent("", call("a")), user(result("a"))),
            LOOP | {"system": [text("")]},
        ],
    ),
    "text content blocks must contain non-whitespace text": (
        ENDED,
        [
            body(user(" \n"), agent("x"), user("on")),
            body({"role": "user", "content": "\t"}, agent("x"), user("on")),
            body(user("go"), agent(" ", "\n"), user("on")),
            ENDED | {"system": [text(" ")]},
        ],
    ),
    "first message must use the user role": (
        body(user("go"), agent("x"), user("on")),
        [body(agent("x"), user("on"))],
    ),
    "a system message cannot be first": (body(user("go"), SYSTEM), [body(SYSTEM, user("go"))]),
    "a system message must follow a user turn": (
        body(user("go"), SYSTEM, agent("x"), agent("y"), user("z")),
        [body(user("go"), agent("x"), SYSTEM, agent("y"), user("z"))],
    ),
    "a system message must precede an assistant turn": (
        body(user("go"), agent(call("a")), user(result("a")), SYSTEM),
        [
            body(user("go"), agent(call("a")), SYSTEM, user(result("a"))),
            body(user("go"), SYSTEM, user("on")),
        ],
    ),
    "This model does not support assistant message prefill. The conversation must end with a user message.": (
        body(user("go"), agent("{"), model="claude-opus-4-5"),
        [body(user("go"), agent("{"), model=f"claude-{name}") for name in ("opus-4-6", "sonnet-5", "fable-5-2[1m]")],
    ),
    "final assistant content cannot end with trailing whitespace": (
        body(user("go"), agent("so:"), model="claude-sonnet-4-5"),
        [body(user("go"), agent("so: "), model="claude-sonnet-4-5")],
    ),
    "The final block in an assistant message cannot be `thinking`": (
        body(user("go"), agent(THOUGHT, "x"), user("on")),
        [
            body(user("go"), agent("x", THOUGHT), user("on")),
            body(user("go"), agent(THOUGHT), user("on")),
            body(user("go"), agent({"type": "redacted_thinking", "data": "eA=="}), user("on")),
        ],
    ),
    "Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, a final `assistant` "
    "message must start with a thinking block": (THOUGHTFUL, [LOOP | {"thinking": ENABLED}]),
    "Expected `thinking` or `redacted_thinking`, but found `text`": (
        THOUGHTFUL,
        [
            body(user("go"), agent("So.", THOUGHT, call("a")), user(result("a")), thinking=ENABLED),
            body(user("go"), agent("So."), agent(THOUGHT, call("a")), user(result("a")), thinking=ENABLED),
        ],
    ),
    "When thinking is disabled, a final assistant message cannot contain thinking": (
        body(user("go"), agent(THOUGHT, "x"), user("on"), thinking={"type": "adaptive"}),
        [body(user("go"), agent(THOUGHT, "x"), user("on"), thinking={"type": "disabled"})],
    ),
    "Thinking may not be enabled when tool_choice forces tool use.": (
        body(user("go"), thinking=ENABLED, tool_choice={"type": "auto"}),
        [body(user("go"), thinking=ENABLED, tool_choice={"type": kind, "name": "Bash"}) for kind in ("any", "tool")],
    ),
    "tool_choice: this model does not support forcing tool use.": (
        body(user("go"), model="claude-haiku-5-5", tool_choice={"type": "any"}),
        [
            body(user("go"), model=f"claude-{name}", tool_choice={"type": "any"})
            for name in ("opus-5-5", "sonnet-5-5", "fable-5-1", "fable-5-2", "mythos-5-1")
        ],
    ),
    "`toolset_name` of a `tool_result` must match its `tool_use`": (
        body(user("go"), agent(call("a", toolset_name="t")), user(result("a", toolset_name="t"))),
        [body(user("go"), agent(call("a", toolset_name="t")), user(result("a")))],
    ),
    "citations must be enabled on all or none of the documents": (
        body(user(CITED, "read"), agent(call("a")), user(result("a", content=[CITED]))),
        [body(user(CITED, "read"), agent(call("a")), user(result("a", content=[PDF])))],
    ),
    "only tool_result blocks may answer a programmatic call": (
        body(user("go"), agent(call("a", caller=PROGRAM)), user(result("a"))),
        [body(user("go"), agent(call("a", caller=PROGRAM)), user(result("a"), "quick"))],
    ),
    "a `tool_use` before the last `fallback` block": (
        body(user("go"), agent({"type": "fallback"}, call("a")), user(result("a"))),
        [body(user("go"), agent(call("a"), {"type": "fallback"}), user(result("a")))],
    ),
    "context_management.edits: clear_thinking_20251015 must be listed first": (
        ENDED | {"context_management": {"edits": [{"type": "clear_thinking_20251015"}, {"type": "compact_20260112"}]}},
        [
            ENDED
            | {"context_management": {"edits": [{"type": "compact_20260112"}, {"type": "clear_thinking_20251015"}]}}
        ],
    ),
    "compaction_block_misplaced": (
        body(user(SUMMARY, "on")),
        [body(user("on", SUMMARY)), body(user("go"), agent(SUMMARY, "x"), user("on"))],
    ),
    "compaction_block_ambiguous": (body(user(SUMMARY, "on")), [body(user(SUMMARY, SUMMARY, "on"))]),
    "cache_control cannot be set for thinking blocks": (
        body(user("go"), agent(THOUGHT, text("x", cache_control=MARK)), user("y")),
        [body(user("go"), agent(THOUGHT | {"cache_control": MARK}, "x"), user("y"))],
    ),
    "cache_control cannot be set for empty text blocks": (
        body(user(text("x", cache_control=MARK))),
        [body(user(text("", cache_control=MARK)))],
    ),
    "a maximum of 4 blocks with cache_control may be provided. Found 5.": (
        body(user(*FIVE[:4], "e")),
        [
            body(user(*FIVE)),
            body(user(*FIVE[:4]), cache_control=MARK),
            body(user(*FIVE[:4]), agent(call("a")), user(result("a", content=FIVE[:1]))),
            body(user(*FIVE[:3]), system=FIVE[:1], tools=[{"name": "Bash", "cache_control": MARK}]),
        ],
    ),
    "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block": (
        body(user(text("a", cache_control=HOUR)), agent("b"), user(text("c", cache_control=MARK))),
        [body(user(text("a", cache_control=MARK)), agent("b"), user(text("c", cache_control=HOUR)))],
    ),
    "the automatic cache_control and the last block's must have the same ttl": (
        body(user(text("a", cache_control=HOUR)), cache_control=HOUR),
        [body(user(text("a", cache_control=HOUR)), cache_control=MARK)],
    ),
    "too many messages": (body(*[user("x")] * 100_000), [body(*[user("x")] * 100_001)]),
    "Field required": (
        THOUGHTFUL,
        [
            {"model": "claude-opus-4-7"},
            body({"role": "user"}),
            body(user({"text": "go"})),
            body(user("go"), agent({"type": "tool_use", "name": "Bash", "input": {}}), user(result("a"))),
            body(user("go"), agent({"type": "thinking", "thinking": "Hm."}, "x"), user("on")),
        ],
    ),
    "at least one message is required": (body(user("go")), [body()]),
    "Input should be 'user', 'assistant' or 'system'": (
        body(user("go")),
        [body({"role": "developer", "content": "go"})],
    ),
}

BOUND = "claude-fable-5-2"
STORED = call("c", name="micro_handoff")
RUN = body(user("go"), agent(THOUGHT, THOUGHT | {"thinking": "So."}, call("a")), user(result("a")))


@pytest.mark.parametrize("case", TAKEN.values(), ids=TAKEN.keys())
def test_what_the_rules_allow_is_taken(case: dict[str, Any]) -> None:
    assert validator.faults(case) == []
    assert validator.faults(json.dumps(case).encode()) == []


@pytest.mark.parametrize(("words", "case"), REFUSED.items(), ids=REFUSED.keys())
def test_each_refusal_of_the_api_is_made(words: str, case: tuple[dict[str, Any], list[dict[str, Any]]]) -> None:
    taken, refused = case
    assert validator.faults(taken) == []
    for sent in refused:
        # The provider's words stand first, or behind the path of what they speak of.
        assert any(fault.startswith(words) or f": {words}" in fault for fault in validator.faults(sent)), sent


def test_a_gateway_wants_every_call_declared() -> None:
    declared = LOOP | {"tools": [{"name": "Bash"}]}
    other = LOOP | {"tools": [{"name": "Read"}]}
    assert validator.faults_of_tools(LOOP) == validator.faults_of_tools(declared, gateway=True) == []
    assert validator.faults_of_tools(other) == []
    assert [fault.split()[0] for fault in validator.faults_of_tools(other, gateway=True)] == ["tools:"]
    assert validator.faults_of_tools(LOOP, gateway=True) == [
        "The toolConfig field must be defined when using toolUse and toolResult content blocks."
    ]


def test_a_change_of_tools_names_one_that_is_there() -> None:
    change = {"type": "tool_addition", "tool": {"type": "tool_reference", "name": "Grep"}}
    history = [user("go"), {"role": "system", "content": [change]}]
    listing = {"type": "mcp_tool_listing", "tools": [{"name": "Grep"}]}
    assert validator.faults_of_tools(body(*history, tools=[{"name": "Grep"}])) == []
    assert validator.faults_of_tools(body(user("go"), agent(listing, "x"), *history)) == []
    assert ["tool_reference_unresolved" in fault for fault in validator.faults_of_tools(body(*history))] == [True]


def test_a_run_of_thinking_may_leave_whole_and_never_in_part() -> None:
    whole = body(user("go"), agent(call("a")), user(result("a")))
    part = body(user("go"), agent(THOUGHT, call("a")), user(result("a")))
    assert validator.faults_of_a_cut(RUN, RUN, 3) == validator.faults_of_a_cut(RUN, whole, 3) == []
    assert ["cannot be modified" in fault for fault in validator.faults_of_a_cut(RUN, part, 3)] == [True]


def test_two_runs_may_not_become_one() -> None:
    two = body(user("go"), agent(THOUGHT, "So.", THOUGHT, call("a")), user(result("a")))
    one = body(user("go"), agent(THOUGHT, THOUGHT, call("a")), user(result("a")))
    assert ["cannot be modified" in fault for fault in validator.faults_of_a_cut(two, one, 3)] == [True]


def test_thinking_stays_with_the_calls_of_its_own_message_alone() -> None:
    first, second = agent(THOUGHT, call("a"), call("b")), agent(THOUGHT | {"thinking": "So."}, call("c"))
    before = body(user("go"), first, user(result("a"), result("b")), second, user(result("c")))
    lost = body(user("go"), agent(THOUGHT, call("b")), user(result("b")), second, user(result("c")))
    bare = body(user("go"), agent(call("b")), user(result("b")), second, user(result("c")))
    both = body(user("go"), agent(*first["content"], *second["content"]), user(*map(result, "abc")))
    assert validator.faults_of_a_cut(before, before, 5) == validator.faults_of_a_cut(before, bare, 5) == []
    for after in (lost, both):
        assert validator.faults(after) == []
        assert ["cannot be modified" in fault for fault in validator.faults_of_a_cut(before, after, 5)] == [True]


@pytest.mark.parametrize("member", ("content", "signature"))
def test_a_signed_compaction_stays_as_it_is(member: str) -> None:
    before = body(user(SUMMARY, "on"))
    after = body(user({**SUMMARY, member: "other"}, "on"))
    words = {"content": "compaction_block_content_mismatch", "signature": "compaction_block_signature_invalid"}
    assert validator.faults_of_a_cut(before, before, 1) == []
    assert validator.faults_of_a_cut(before, after, 1) == [words[member]]


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


# What the API would refuse of the recorded sessions' bodies as they stand in the file, and why it is so.
STOPPED = "the agent was stopped while it thought: the client does not send such a message"
OPEN = "the agent was stopped at a call: the client takes the call out, or makes up a result"
SHORT = "a made-up sample: no client wrote it"
OWN = "a sub-agent's file begins with the agent's words: the client does not resume it"
REASONS = {
    "agent-a0ad4f44468bdf20d": ("Field required", SHORT),
    "agent-sessions_0a1b2c3d-4e5f-4061-8071-2a3b4c5d6e7f": ("Field required", SHORT),
    "agent-sessions_schema_drift": ("first message must use the user role", SHORT),
    "agent-c8d9b115": ("first message must use the user role", OWN),
    "cipher-box_92e5c609_websearch": ("cannot be `thinking`", STOPPED),
    "entire-cli_00c9e235_orphan-result": ("cannot be `thinking`", STOPPED),
    "entire-cli_54bb2ec8_talky": ("cannot be `thinking`", STOPPED),
    "entire-cli_8cfa910f_2badlines": ("ids were found without", OPEN),
    "entire-graph_377577cb_fable5_mcp": ("ids were found without", OPEN),
}


@pytest.mark.skipif(not claude_code_files(), reason="../shared/data is not on this machine")
def test_recorded_sessions_are_taken_as_their_next_request() -> None:
    refused: dict[str, list[str]] = {}
    read = 0
    for path in claude_code_files():
        try:
            sent = json.loads(open_session(path).history.body)
        except InputError:
            continue  # there is no conversation in it
        read += 1
        if sent["messages"][-1]["role"] == "assistant":
            sent["messages"].append(user("And now?"))
        if found := validator.faults(sent):
            refused[path.stem] = found
    assert read > 30
    assert {name: fault for name, faults in refused.items() for fault in faults if name not in REASONS} == {}
    for name, (words, _) in REASONS.items():
        assert all(words in fault for fault in refused[name]), name
