"""The validators of the other providers: each refusal for a small change of a body that is taken.

What the providers are recorded to have taken is taken; half a pair of it is taken nowhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import validator
import wire_bodies
from validators import converse, gemini, openai_chat, openai_responses

Body = dict[str, Any]
Faults = Callable[..., list[str]]
# The provider's words: a body that is taken, and small changes of it that are refused with those words.
Refusals = dict[str, list[Body]]

BUGS = Path(__file__).resolve().parents[2] / "shared" / "bugs"


# ---------------------------------------------------------------------------------------------- Chat Completions


def chat_of(*messages: Body, model: str = "gpt-5.2", **more: Any) -> Body:
    return {"model": model, "messages": list(messages), **more}


def chat(*messages: Body, **more: Any) -> Body:
    """As all that follow here: a human has begun."""
    return chat_of(human(), *messages, **more)


def human(words: Any = "Go on.") -> Body:
    return {"role": "user", "content": words}


def agent(words: Any = None, *ids: str, **more: Any) -> Body:
    made = [{"id": id, "type": "function", "function": {"name": "shell", "arguments": "{}"}} for id in ids]
    return {"role": "assistant", "content": words, **({"tool_calls": made} if ids else {}), **more}


def tool(id: str, words: Any = "out") -> Body:
    return {"role": "tool", "tool_call_id": id, "content": words}


LEGACY = {"role": "assistant", "content": None, "function_call": {"name": "shell", "arguments": "{}"}}
ANSWER = {"role": "function", "name": "shell", "content": "out"}
NAMELESS = {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "shell", "arguments": {}}}]}
OPEN = chat(agent(None, "a"), tool("a"))
THINKING = {"thinking": {"type": "enabled"}}


def deepseek(*messages: Body, model: str = "deepseek-v4", **more: Any) -> Body:
    return chat(*messages, model=model, **more)


CHAT: Refusals = {
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'": [
        chat(agent("Looking.", "a", "b"), tool("b"), tool("a")),
        chat(agent("Looking.", "a", "b"), tool("b")),
        chat(agent(None, "a")),
        chat(agent(None, "a"), human("wait"), tool("a")),
        chat(agent(None, "a"), agent("hm"), tool("a")),
        chat(NAMELESS),
        chat(NAMELESS, {"role": "tool", "tool_name": "other", "content": "out"}),
    ],
    "messages with role 'tool' must be a response to a preceding message with 'tool_calls'": [
        OPEN,
        chat(tool("a")),
        chat(agent("Done."), tool("a")),
        chat(agent(None, "a"), tool("a"), tool("a")),
        chat(agent(None, "a"), tool("a"), tool("b")),
        chat_of(tool("a")),
    ],
    "Invalid value for 'content': expected a string, got null": [
        chat(agent(None, "a"), tool("a", None), agent(None, refusal="No."), human()),
        chat(agent(None), human()),
        chat_of(human(None)),
    ],
    "Invalid value for 'content': expected a string": [
        chat(agent("", "a"), tool("a"), agent(" ", "b"), tool("b", "")),
        chat(agent(""), human()),
        chat(agent(" \n"), human()),
    ],
    "Invalid 'messages[1].content': empty array": [chat(agent([], "a"), tool("a")), chat(agent([]), human())],
    "Invalid 'messages[1].tool_calls': empty array": [
        chat(agent("Done.", tool_calls=None), human()),
        chat(agent("Done.", tool_calls=[]), human()),
    ],
    "messages with role 'function' must be a response": [
        chat(LEGACY, ANSWER),
        chat(ANSWER),
        chat(LEGACY, ANSWER | {"name": "other"}),
        chat(LEGACY, ANSWER, ANSWER),
    ],
    "a 'function_call' must be followed by a message with role 'function'": [
        chat(LEGACY, ANSWER, human()),
        chat(LEGACY),
        chat(LEGACY, human(), ANSWER),
    ],
    "The `reasoning_content` in the thinking mode must be passed back to the API": [
        deepseek(agent("Plain, first."), agent(None, "a", reasoning_content=""), tool("a")),
        deepseek(agent("Plain, first."), agent(None, "a"), tool("a")),
        deepseek(agent(None, "a"), tool("a"), human(), agent("Done."), human()),
        deepseek(agent(None, "a", reasoning_content="Hm."), tool("a"), agent("Done."), human()),
        deepseek(agent(None, "a"), tool("a"), model="deepseek-reasoner"),
        deepseek(agent(None, "a"), tool("a"), model="deepseek-chat", **THINKING),
    ],
    "'tool_calls' can only be in assistant messages": [
        OPEN,
        chat_of(human() | {"tool_calls": agent(None, "a")["tool_calls"]}),
    ],
}

CHAT_STRICTLY: Refusals = {
    "conversation roles must alternate user/assistant": [
        chat(agent("So.", "a"), tool("a"), agent("Done."), human()),
        chat(agent("So."), agent(None, "a"), tool("a"), agent("Done."), human()),
        chat(agent("So."), agent("Done."), human()),
        chat(human()),
        chat(agent(None, "a"), tool("a"), human()),
        chat_of(agent("Hello."), human()),
    ],
    "does not support successive user or assistant messages": [
        deepseek(agent("So."), human(), model="deepseek-reasoner"),
        deepseek(agent("So."), agent("Done."), human(), model="deepseek-reasoner"),
        deepseek(human(), model="deepseek-reasoner"),
    ],
    "Unexpected role 'user' after role 'tool'": [
        chat(agent("So."), human(), agent(None, "a"), tool("a"), model="devstral-medium"),
        chat(agent("So."), agent(None, "a"), tool("a"), human(), model="devstral-medium"),
    ],
    "Expected last role User or Tool": [
        chat(agent("{", prefix=True), model="mistral-small-latest"),
        chat(agent("{"), model="mistral-small-latest"),
    ],
    "prefix: only the last message can be a prefix": [
        chat(agent("{", prefix=False), human(), model="mistral-small-latest"),
        chat(agent("{", prefix=True), human(), model="mistral-small-latest"),
    ],
}

CHAT_TAKEN = {
    "neighbours of one role": chat(human(), agent("So."), agent("Done."), human()),
    "ids that each message begins anew": chat(agent(None, "0"), tool("0"), agent(None, "0"), tool("0")),
    "arguments that are no JSON": chat(
        {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "sh", "arguments": '{"c": '}}]}, tool("a")
    ),
    "calls without ids": chat(NAMELESS, {"role": "tool", "tool_name": "shell", "content": "out"}),
    "a custom tool's call": chat(
        {"role": "assistant", "tool_calls": [{"id": "a", "type": "custom", "custom": {"name": "x", "input": ""}}]},
        tool("a"),
    ),
    "a last word of the agent's": chat(agent("{"), model="mistral-small-latest"),
    "a voice without words": chat(agent(None, audio={"id": "audio_1"}), human()),
    "a turn without calls in thinking mode": deepseek(agent("Done."), human()),
    "what lost its calls between two kept ones": deepseek(
        agent(None, "a", reasoning_content="Hm."),
        tool("a"),
        agent("Halfway."),
        agent(None, "b", reasoning_content="So."),
        tool("b"),
    ),
    "thinking switched off": deepseek(agent(None, "a"), tool("a"), thinking={"type": "disabled"}),
}


# -------------------------------------------------------------------------------------------------- Responses


def items(*found: Body, **more: Any) -> Body:
    return {"model": "gpt-5.2-codex", "input": list(found), **more}


def responses(*found: Body, **more: Any) -> Body:
    return items(asks(), *found, **more)


def asks(words: str = "Go on.") -> Body:
    return {"role": "user", "content": [{"type": "input_text", "text": words}]}


def says(words: str = "Done.", **more: Any) -> Body:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": words}], **more}


def function(call_id: str, **more: Any) -> Body:
    return {"type": "function_call", "call_id": call_id, "name": "shell", "arguments": "{}", **more}


def output(id: str | None, **more: Any) -> Body:
    return {"type": "function_call_output", "output": "out", **({} if id is None else {"call_id": id}), **more}


def thought(id: str = "rs_1", **more: Any) -> Body:
    return {"type": "reasoning", "id": id, "summary": [], "encrypted_content": "gAAA", **more}


SHELL = {"type": "local_shell_call", "id": "ls_1", "call_id": "c", "action": {"type": "exec", "command": ["ls"]}}
ASKED = {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "geo", "name": "find", "arguments": "{}"}
GIVEN = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}
PATCH = {"type": "custom_tool_call", "call_id": "p", "name": "apply_patch", "input": "*** Begin Patch"}
PATCHED = {"type": "custom_tool_call_output", "call_id": "p", "output": "Done"}

RESPONSES: Refusals = {
    "No tool output found for function call": [
        responses(function("a"), function("b"), output("b"), output("a")),
        responses(function("a"), function("b"), output("b")),
        responses(function("a"), function("a"), output("a")),
        responses(function("a"), asks("wait")),
        items(output("a"), function("a")),
    ],
    "No tool output found for": [
        responses(SHELL, output("c"), PATCH, PATCHED, ASKED, GIVEN),
        responses(SHELL),
        responses(PATCH),
        responses(ASKED),
        items(function("p"), PATCHED),
    ],
    "No tool call found for function call output with call_id": [
        responses(function("a"), output("a")),
        responses(output("a")),
        responses(function("a"), output("a"), output("a")),
        responses(function("a"), output("a"), output(None)),
        items(PATCH, PATCHED, output("p")),
    ],
    "Item 'rs_1' of type 'reasoning' was provided without its required following item": [
        responses(thought(), function("a"), output("a")),
        responses(thought()),
        responses(thought(), asks("wait")),
        responses(function("a"), thought(), output("a")),
        responses(thought(), thought("rs_2")),
    ],
    "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false": [
        items(thought(), says(), asks(), store=False),
        items(thought(encrypted_content=None), says(), asks(), store=False),
        items({"type": "item_reference", "id": "rs_1"}, says(), asks(), store=False),
    ],
    "Mutually exclusive parameters": [
        items(output("a"), previous_response_id="resp_1", conversation=None),
        items(output("a"), previous_response_id="resp_1", conversation={"id": "conv_1"}),
    ],
    "input: a 'compaction_trigger' must be the last item": [
        responses({"type": "compaction_trigger"}),
        items({"type": "compaction_trigger"}, asks()),
    ],
    "Invalid 'input[1].content': empty": [responses(says(), asks()), responses(says() | {"content": []}, asks())],
    "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'": [
        responses(says(), asks()),
        items(asks() | {"role": "assistant"}),
    ],
}

RESPONSES_TAKEN = {
    "a text alone": {"model": "gpt-5.2", "input": "Hello."},
    "anything first": items(says(), says(), asks(), asks()),
    "a call that ran on a server": responses(thought(), {"type": "web_search_call", "id": "ws_1"}, says(), asks()),
    "reasoning in a row, and without ids": items(thought(), thought("rs_2"), says(), thought(id=None), says(), asks()),
    "an output without call_id": items(
        function("a"), function("b", name="read"), output(None, name="shell"), output("b")
    ),
    "a shell's output under the call's id": items(
        SHELL, {"type": "local_shell_call_output", "id": "ls_1", "output": ""}
    ),
    "a server's tool search": items(
        {"type": "tool_search_call", "call_id": None}, {"type": "tool_search_output", "call_id": None, "tools": []}
    ),
    "an output whose call is stored": items(output("a"), conversation="conv_1"),
    "a reference to what is stored": items({"id": "msg_1"}, asks()),
    "an item never seen": responses(thought(), {"type": "future_call", "id": "f_1"}, says(), asks()),
    "a compaction": items({"type": "compaction", "encrypted_content": "gAAA"}, asks()),
}


# ---------------------------------------------------------------------------------------------------- Gemini


def content(role: str | None, *parts: Any) -> Body:
    held = [{"text": part} if isinstance(part, str) else part for part in parts]
    return {**({"role": role} if role else {}), "parts": held}


def model(*parts: Any) -> Body:
    return content("model", *parts)


def user(*parts: Any) -> Body:
    return content("user", *parts)


def called(name: str = "shell", signature: str | None = None, **more: Any) -> Body:
    made = {"functionCall": {"name": name, "args": {}, **more}}
    return made | ({"thoughtSignature": signature} if signature else {})


def answered(name: str = "shell", **more: Any) -> Body:
    return {"functionResponse": {"name": name, "response": {"output": "out"}, **more}}


def contents_of(*found: Body, **more: Any) -> Body:
    return {"contents": list(found), **more}


def contents(*found: Body, **more: Any) -> Body:
    return contents_of(GO, *found, **more)


GO = user("Go on.")
STEP = (model(called()), user(answered()))
SIGNED = (model(called(signature="c2ln")), user(answered()))
CODE = {"executableCode": {"language": "PYTHON", "code": "1"}}
RAN = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}

GEMINI: Refusals = {
    "Please ensure that function call turn comes immediately after a user turn or after a function response turn": [
        contents(model("Looking.", called()), user(answered()), *STEP),
        contents(model("Looking."), *STEP),
        contents_of(*STEP),
        contents(model(called()), model(called()), user(answered(), answered())),
    ],
    "number of function response parts is equal to the number of function call parts of the function call turn": [
        contents(model(called("a"), called("b")), user(answered("b"), answered("a"))),
        contents(model(called("a"), called("b")), user(answered("a"))),
        contents(model(called("a")), GO),
        contents(model(called("a"), called("b")), user(answered("a")), user(answered("b"))),
        contents(model(called("a")), user(answered("b"))),
        contents(model(called(id="1")), user(answered(id="2"))),
    ],
    "Please ensure that function response turn comes immediately after a function call turn": [
        contents(*STEP, user("And be quick.")),
        contents(user(answered())),
        contents_of(user(answered())),
        contents(model(called()), GO, user(answered())),
    ],
    "contents[0]: Please ensure that multiturn requests start with a user turn": [
        contents_of(content(None, "Go on.")),
        contents_of(model("Hello."), GO),
    ],
    "contents[1]: Please ensure that multiturn requests end with a user turn": [
        contents(*STEP),
        contents(model("Done.")),
    ],
    "contents.parts must not be empty": [
        contents(model("So."), GO),
        contents(model(), GO),
        contents({"role": "model"}, GO),
    ],
    "required oneof field 'data' must have one initialized field": [
        contents(model({"text": "", "thoughtSignature": "c2ln"}), GO),
        contents(model(""), GO),
        contents(model("So.", {}), GO),
        contents(model({"thoughtSignature": "c2ln"}), GO),
    ],
    "executableCode without its codeExecutionResult": [
        contents(model(CODE, RAN, "One."), GO),
        contents(model(CODE, "One."), GO),
    ],
    "codeExecutionResult without its executableCode": [contents(model(CODE, RAN), GO), contents(model(RAN, CODE), GO)],
    "a functionResponse cannot be in a content of role model": [
        contents(*STEP),
        contents(STEP[0], model(answered()), GO),
    ],
}

GEMINI_STRICTLY: Refusals = {
    "Please ensure that multiturn requests alternate between user and model": [
        contents(model("So.", "Done."), GO, *STEP, GO),
        contents(model("So."), model("Done."), GO),
        contents(GO),
    ]
}

GEMINI_3: Refusals = {
    "Function call is missing a thought_signature in functionCall parts": [
        contents(
            *STEP, model("Done."), GO, *SIGNED, model(called(signature="x"), called()), user(answered(), answered())
        ),
        contents(*SIGNED, *STEP),
        contents(model(called(), called(signature="x")), user(answered(), answered())),
        contents(model({"text": "So.", "thoughtSignature": "x"}, called()), user(answered())),
    ]
}

SNAKE = contents(
    model({"function_call": {"name": "a"}, "thought_signature": "c2ln"}),
    content("function", {"function_response": {"name": "a", "response": {}}}),
    model({"executable_code": {"code": "1"}}, {"code_execution_result": {"output": "1"}}),
    GO,
)

GEMINI_TAKEN = {
    "an older role for responses": contents(STEP[0], content("function", answered())),
    "neighbours of one role": contents(model("So."), model("Done."), GO, GO),
    "a human's picture, and nothing said": contents_of(user("", {"inlineData": {"data": "aQ=="}})),
    "calls that an older model did not sign": {"model": "gemini-2.5-pro", **contents(*STEP)},
    "thoughts": contents(model({"text": "Hm.", "thought": True}, "So."), GO),
    "snake_case": SNAKE,
    "Code Assist's envelope": {"model": "gemini-3-pro", "project": "p", "request": contents(*SIGNED)},
    "a part never seen": contents(model({"futurePart": {}}), GO),
}


# --------------------------------------------------------------------------------------------------- Converse


U, A = "user", "assistant"
END = (U, ["Thanks."])


def bedrock_of(*messages: tuple[str, list[Any]], **more: Any) -> Body:
    sent = [
        {"role": role, "content": [{"text": block} if isinstance(block, str) else block for block in held]}
        for role, held in messages
    ]
    return {"messages": sent, "toolConfig": {"tools": [{"toolSpec": {"name": "sh"}}]}, **more}


def bedrock(*messages: tuple[str, list[Any]], **more: Any) -> Body:
    return bedrock_of((U, ["Go on."]), *messages, **more)


def use(id: str, **more: Any) -> Body:
    return {"toolUse": {"toolUseId": id, "name": "sh", "input": {}, **more}}


def result(id: str, *held: Body) -> Body:
    return {"toolResult": {"toolUseId": id, "content": list(held) or [{"text": "out"}]}}


POINT = {"cachePoint": {"type": "default"}}
REASON = {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "c2ln"}}}
DOCUMENT = {"document": {"format": "pdf", "name": "d", "source": {"bytes": "JVBERg=="}}}

PAIR = bedrock((A, [use("a")]), (U, [result("a")]))
ENABLED = {"additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 1024}}}
DISABLED = {"additionalModelRequestFields": {"thinking": {"type": "disabled"}}}

CONVERSE: Refusals = {
    "A conversation must alternate between user and assistant roles": [
        bedrock((A, ["So.", "Done."]), (U, ["Thanks.", "Bye."])),
        bedrock((A, ["So."]), (A, ["Done."]), END),
        bedrock((U, ["Quick."])),
    ],
    "A conversation must start with a user message": [
        bedrock(("system", ["In French."]), (A, ["Oui."]), (U, ["Merci."])),
        bedrock_of((A, ["Hello."]), (U, ["Go on."])),
        bedrock_of(("system", ["In French."]), (U, ["Go on."])),
    ],
    "The toolConfig field must be defined when using toolUse and toolResult content blocks": [
        bedrock(toolConfig=None),
        PAIR | {"toolConfig": None},
        PAIR | {"toolConfig": {"tools": []}},
    ],
    "The text field in the ContentBlock object at messages.1.content.1 is blank": [
        bedrock((A, ["So.", "Done."]), END),
        *[bedrock((A, ["So.", blank]), END) for blank in ("", " \n")],
    ],
    "The content field in the Message object at messages.1 is empty": [
        bedrock((A, ["So."]), END),
        bedrock((A, []), END),
    ],
    "Expected toolResult blocks at messages.2.content for the following Ids: a": [
        bedrock((A, [use("a"), use("b")]), (U, [result("b"), result("a"), "Quick."])),
        bedrock((A, [use("a"), use("b")]), (U, [result("b")])),
        bedrock((A, [use("a")])),
        bedrock((A, [use("a")]), (U, ["Wait."])),
    ],
    "The number of toolResult blocks at messages.2.content exceeds the number of toolUse blocks of previous turn": [
        PAIR,
        bedrock((A, ["So."]), (U, [result("a")])),
        bedrock((A, [use("a")]), (U, [result("a"), result("b")])),
    ],
    "The number of toolResult blocks at messages.0.content exceeds the number of toolUse blocks of previous turn": [
        bedrock(),
        bedrock_of((U, [result("a")])),
    ],
    "messages.2: toolResult blocks must come first": [
        bedrock((A, [use("a")]), (U, [result("a"), "Quick."])),
        bedrock((A, [use("a")]), (U, ["Quick.", result("a")])),
    ],
    "a server's toolUse without its toolResult": [
        bedrock((A, [use("a", type="server_tool_use"), result("a")]), END),
        bedrock((A, [use("a", type="server_tool_use")]), END),
    ],
    "a message with a document block needs a text block": [
        bedrock_of((U, ["Read.", DOCUMENT])),
        bedrock_of((U, [DOCUMENT])),
    ],
    "a document block can only be in user messages": [
        bedrock_of((U, ["Read.", DOCUMENT]), (A, ["So."]), END),
        bedrock((A, ["So.", DOCUMENT]), END),
    ],
    "Cache point cannot be inserted after reasoning block": [
        bedrock((A, [REASON, "So.", POINT]), END),
        bedrock((A, [REASON, POINT, "So."]), END),
    ],
    "a cachePoint must follow a content block of its message": [
        bedrock_of((U, ["Go on.", POINT, "Quick.", POINT])),
        bedrock_of((U, [POINT, "Go on."])),
        bedrock_of((U, ["Go on.", POINT, POINT])),
        bedrock_of((U, [POINT])),
    ],
    "a cachePoint cannot be in the content of a toolResult": [
        bedrock((A, [use("a")]), (U, [result("a"), POINT])),
        bedrock((A, [use("a")]), (U, [result("a", {"text": "out"}, POINT)])),
    ],
}

CLAUDE: Refusals = {
    "The final block in an assistant message cannot be `thinking`": [
        bedrock((A, [REASON, "So."]), END),
        bedrock((A, [REASON]), END),
        bedrock((A, ["So.", REASON]), END),
    ],
    "Expected `thinking` or `redacted_thinking`, but found": [
        bedrock((A, [REASON, use("a")]), (U, [result("a"), POINT]), **ENABLED),
        PAIR | ENABLED,
    ],
    "When thinking is disabled, a final assistant message cannot contain thinking": [
        bedrock((A, [REASON, "So."]), (U, ["On."]), (A, ["Done."]), END, **DISABLED),
        bedrock((A, [REASON, "So."]), END, **DISABLED),
    ],
}

CONVERSE_TAKEN = {
    "another model's thinking alone": bedrock((A, [REASON]), END, modelId="openai.gpt-oss"),
    "a model that binds its thinking": PAIR | ENABLED | {"modelId": "us.anthropic.claude-opus-5-5-v1:0"},
    "words behind results": bedrock((A, [use("a")]), (U, [result("a"), POINT, "Quick."])),
    "a block never seen": bedrock_of((U, ["Go on.", {"futureBlock": {}}])),
}


# ------------------------------------------------------------------------------------------------- the tests

REFUSED: list[tuple[Faults, Refusals]] = [
    (openai_chat.faults, CHAT),
    (partial(openai_chat.faults, strict=True), CHAT_STRICTLY),
    (openai_responses.faults, RESPONSES),
    (gemini.faults, GEMINI),
    (partial(gemini.faults, strict=True), GEMINI_STRICTLY),
    (partial(gemini.faults, model="gemini-3-pro-preview"), GEMINI_3),
    (converse.faults, CONVERSE),
    (partial(converse.faults, model="us.anthropic.claude-sonnet-4-5-20250929-v1:0"), CLAUDE),
]
CASES = [pytest.param(faults, words, sent, id=words) for faults, table in REFUSED for words, sent in table.items()]
TAKEN = [
    pytest.param(faults, case, id=name)
    for faults, cases in (
        (openai_chat.faults, CHAT_TAKEN),
        (openai_responses.faults, RESPONSES_TAKEN),
        (gemini.faults, GEMINI_TAKEN),
        (converse.faults, CONVERSE_TAKEN),
    )
    for name, case in cases.items()
]


@pytest.mark.parametrize(("faults", "case"), TAKEN)
def test_what_the_rules_allow_is_taken(faults: Faults, case: Body) -> None:
    assert faults(case) == []
    assert faults(json.dumps(case).encode()) == []


@pytest.mark.parametrize(("faults", "words", "sent"), CASES)
def test_each_refusal_is_made(faults: Faults, words: str, sent: list[Body]) -> None:
    taken, *refused = sent
    assert faults(taken) == []
    assert refused
    for body in refused:
        assert any(words in fault for fault in faults(body)), body


@pytest.mark.parametrize("kept", ("id", "none"))
def test_an_item_asks_for_its_reasoning_by_its_id(kept: str) -> None:
    before = responses(thought(), says(id="msg_1"), function("a", id="fc_1"), output("a"), thought("rs_2"), says())
    bare = [says() if kept == "none" else says(id="msg_1")]
    after = responses(*bare, thought("rs_2"), says())
    assert openai_responses.faults(after) == openai_responses.faults_of_a_cut(before, before) == []
    words = ["Item 'msg_1' of type 'message' was provided without its required 'reasoning' item: 'rs_1'."]
    assert openai_responses.faults_of_a_cut(before, json.dumps(after).encode()) == (words if kept == "id" else [])


@pytest.mark.parametrize(("model", "refused"), [("anthropic.claude-opus-5-5-v1:0", True), ("openai.gpt-oss", False)])
def test_bound_thinking_stays_only_with_what_it_was_made_over(model: str, refused: bool) -> None:
    kept = ((A, [REASON, use("b")]), (U, [result("b")]))
    before, after = bedrock((A, [use("a")]), (U, [result("a")]), *kept, modelId=model), bedrock(*kept, modelId=model)
    assert converse.faults(after) == converse.faults_of_a_cut(before, before, 5) == []
    assert bool(converse.faults_of_a_cut(before, json.dumps(after).encode(), 3)) == refused
    bare = bedrock((A, [use("b")]), (U, [result("b")]), modelId=model)
    assert converse.faults_of_a_cut(before, bare, 3) == []


VALIDATORS: dict[str, Callable[[Body, str], list[str]]] = {
    "anthropic": lambda body, model: validator.faults(body),
    "openai_chat": lambda body, model: openai_chat.faults(body),
    "openai_responses": lambda body, model: openai_responses.faults(body),
    "gemini": lambda body, model: gemini.faults(body, model=model),
    "converse": lambda body, model: converse.faults(body, model=model),
}
ODD = ([], 1, None, {}, {"messages": 3}, {"messages": [{"role": "user"}]}, {"contents": [None]}, {"input": [[]]})


@pytest.mark.parametrize("form", VALIDATORS)
@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_what_is_no_body_at_all_is_refused_and_breaks_nothing(form: str, odd: Any) -> None:
    assert VALIDATORS[form](odd, "")


# ------------------------------------------------------------------------------------------- what was recorded

here = pytest.mark.skipif(not wire_bodies.SESSIONS.is_dir(), reason=wire_bodies.MISSING)


def requests(form: str) -> list[wire_bodies.Recorded]:
    return [one for one in wire_bodies.requests() if one.format == form]


@here
def test_every_format_has_recorded_bodies_each_with_its_own_name() -> None:
    found = wire_bodies.recorded()
    assert {format for _, format, _ in found} == set(wire_bodies.FORMATS) == set(VALIDATORS)
    assert len({name for name, _, _ in found}) == len(found) > 400
    assert not any(b"api_key" in body or b"attachment://" in body for _, _, body in found)


@here
@pytest.mark.parametrize("form", VALIDATORS)
def test_recorded_bodies_that_a_provider_took_are_taken(form: str) -> None:
    found = {one.name: VALIDATORS[form](json.loads(one.body), one.model) for one in requests(form)}
    assert found and {name: faults for name, faults in found.items() if faults} == {}


@here
def test_recorded_bodies_of_strict_servers_are_taken_strictly() -> None:
    names = ("mistral", "magistral", "deepseek-reasoner")
    found = {
        one.name: openai_chat.faults(one.body, strict=True)
        for one in requests("openai_chat")
        if one.model.startswith(names)
    }
    found |= {one.name: gemini.faults(one.body, strict=True) for one in requests("gemini")}
    assert len(found) > 25 and {name: faults for name, faults in found.items() if faults} == {}


# Where a format's messages stand, and which of them hold calls or results.
PAIRED: dict[str, tuple[str, Callable[[Body], Any]]] = {
    "openai_chat": ("messages", lambda message: message.get("tool_calls") or message["role"] == "tool"),
    "openai_responses": ("input", lambda item: item.get("type") in ("function_call", "function_call_output")),
    "gemini": (
        "contents",
        lambda content: re.search(r'"function_?(call|response)"', json.dumps(content), re.IGNORECASE),
    ),
}


@here
@pytest.mark.parametrize("form", PAIRED)
def test_half_a_pair_of_a_recorded_body_is_taken_nowhere(form: str) -> None:
    member, is_half = PAIRED[form]
    tried, taken = 0, []
    for one in requests(form):
        body = json.loads(one.body)
        if len(one.body) > 60_000 or openai_responses.stored(body):
            continue
        for number, message in enumerate(body[member]):
            if not is_half(message):
                continue
            tried += 1
            if not VALIDATORS[form](body | {member: body[member][:number] + body[member][number + 1 :]}, one.model):
                taken.append(f"{one.name}: {number}")
    assert tried > 20 and taken == []


@pytest.mark.skipif(not BUGS.is_dir(), reason="the reported faults are not on this machine: there is no ../shared/bugs")
def test_of_the_reported_inputs_those_alone_are_refused_that_were_broken_already() -> None:
    broken = {"19": "No tool call found for function call output", "25": "required oneof field 'data'"}
    forms = {"contents": "gemini", "input": "openai_responses", "toolConfig": "converse", "messages": "openai_chat"}
    read = set()
    for path in sorted(BUGS.glob("*.json")):
        body, number = json.loads(path.read_bytes()), path.name[:2]
        form = next((form for member, form in forms.items() if member in body), None)
        if form is None or (form == "openai_chat" and not any("tool_calls" in message for message in body["messages"])):
            continue  # no body, or one of Anthropic's
        read.add(number)
        faults = VALIDATORS[form](body, "gemini-3-pro-preview" if form == "gemini" else "")
        assert any(broken[number] in fault for fault in faults) if number in broken else faults == [], path.name
    assert read >= {"12", "14", "16", "17", "19", "20", "23", "25", "26", "27"}
