"""The tools in each provider's words: how they are declared, how a call is read, how its answer stands in a body."""

from __future__ import annotations

import json
from typing import Any

import pytest

import conversations
import cutline
from cutline import mandate, toolset
from cutline.cut import cut
from cutline.toolset import FORMATS

DOCUMENT = conversations.DOCUMENT
SPELLED = dict(zip(FORMATS, conversations.FORMATS, strict=True))


def calls(format: str, name: str = "micro_handoff", given: Any = None) -> list[dict[str, Any]]:
    """A call, in every way in which an SDK may give it."""
    given = DOCUMENT if given is None else given
    if format == "anthropic":
        return [{"type": "tool_use", "id": "c", "name": name, "input": given}]
    if format == "openai-chat":
        text = given if isinstance(given, str) else json.dumps(given)
        return [{"id": "c", "type": "function", "function": {"name": name, "arguments": text}}]
    if format == "openai-responses":
        text = given if isinstance(given, str) else json.dumps(given)
        return [{"type": "function_call", "id": "fc_1", "call_id": "c", "name": name, "arguments": text}]
    if format == "gemini":
        call = {"id": "c", "name": name, "args": given}
        return [call, {"functionCall": call}, {"text": None, "function_call": call}]
    return [{"toolUse": {"toolUseId": "c", "name": name, "input": given}}]


def names(format: str, declared: list[dict[str, Any]]) -> list[str]:
    inner = {"openai-chat": "function", "converse": "toolSpec"}.get(format)
    found = declared[0]["functionDeclarations"] if format == "gemini" else declared
    return [(one[inner] if inner else one)["name"] for one in found]


@pytest.mark.parametrize("format", FORMATS)
def test_the_three_tools_are_declared_with_the_schemas_of_the_mcp_server(format: Any):
    declared = cutline.tools(format)
    assert names(format, declared) == [tool["name"] for tool in mandate.TOOLS]
    told = json.dumps(declared)
    for tool in mandate.TOOLS:
        assert json.dumps(tool["inputSchema"]) in told and json.dumps(tool["description"]) in told


def test_another_format_is_refused():
    with pytest.raises(ValueError, match="anthropic, openai-chat, openai-responses, gemini, converse"):
        cutline.tools("openai")  # type: ignore[arg-type]


@pytest.mark.parametrize("format", FORMATS)
def test_a_call_is_read_however_it_is_given(format: str):
    for given in calls(format):

        class Held:
            """As the SDKs' objects."""

            def model_dump(self, given: Any = given) -> Any:
                return given

        for call in (given, Held()):
            read = toolset.read(call)
            assert read is not None
            assert (read.format, read.id, read.name, dict(read.arguments)) == (format, "c", "micro_handoff", DOCUMENT)


@pytest.mark.parametrize("format", FORMATS)
def test_a_call_of_another_tool_is_nobodys_here(format: str):
    assert [toolset.read(call) for call in calls(format, "read_part")] == [None] * len(calls(format))
    for nothing in ({}, {"type": "text", "text": "micro_handoff"}, None, "micro_handoff", object()):
        assert toolset.read(nothing) is None


@pytest.mark.parametrize("format", ["openai-chat", "openai-responses"])
@pytest.mark.parametrize("torn", ['{"done": "a', "[]", "", "null"])
def test_arguments_that_can_not_be_read_are_none(format: str, torn: str):
    read = toolset.read(calls(format, given=torn)[0])
    assert read is not None and read.arguments == {}


@pytest.mark.parametrize("error", [False, True])
@pytest.mark.parametrize("format", FORMATS)
def test_an_answer_makes_a_checkpoint_of_its_call_unless_it_failed(format: str, error: bool):
    """Put into a conversation, a stored checkpoint is a seam, and a refused one is none."""
    said = "checkpoint refused: write more" if error else "checkpoint stored"
    read = toolset.read(calls(format)[-1])
    assert read is not None
    body = conversations.with_answer(SPELLED[format], read.answered(said, error=error))
    done = cut(body)
    assert done.changed != error
    assert cutline.verify(body, done.body)


def test_images_of_a_recalled_result():
    image = [("image/png", "aGk=")]
    (anthropic, *others) = (toolset.read(calls(format, "recall", {"what": "x"})[0]) for format in FORMATS)
    assert anthropic is not None
    assert anthropic.answered("here", images=image)["content"][1]["source"]["data"] == "aGk="
    for call in others:
        assert call is not None and "1 image can't be shown" in json.dumps(call.answered("here", images=image))
