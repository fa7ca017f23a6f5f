"""OpenAI's SDK on the transport: Chat Completions and Responses, streamed and whole, sync and async, on both httpx."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import cutline

from .provider import Provider
from .task import ABOUT, END, GO, SCHEMA, TOOL, holds, run_own, script

openai = pytest.importorskip("openai", reason="needs the group: uv run --group sdks pytest -m slow tests/sdks")
pytestmark = pytest.mark.slow

OWN = {"name": TOOL, "description": ABOUT, "parameters": SCHEMA}
CHAT: dict[str, Any] = {
    "model": "gpt-5.2",
    "tools": [{"type": "function", "function": OWN}, *cutline.tools("openai-chat")],
}
RESPONSES: dict[str, Any] = {
    "model": "gpt-5.2",
    "store": False,
    "tools": [{"type": "function", **OWN, "strict": False}, *cutline.tools("openai-responses")],
}


def opened(through: cutline.Transport, url: str, **more: Any) -> Any:
    """The SDK's client on a transport."""
    http = openai.DefaultHttpxClient(transport=through)
    return openai.OpenAI(api_key="none", base_url=f"{url}/v1", http_client=http, **more)


def chat_results(through: cutline.Transport, message: Any) -> list[dict[str, Any]]:
    """What each call of an answer is answered."""
    found = []
    for call in message.tool_calls or ():
        answered = through.answer(call)
        if answered is None:
            result = run_own(call.function.name, json.loads(call.function.arguments))
            answered = {"role": "tool", "tool_call_id": call.id, "content": result}
        found.append(answered)
    return found


def response_results(through: cutline.Transport, output: list[Any]) -> list[dict[str, Any]]:
    """The same of a response's items."""
    found = []
    for item in output:
        if item.type == "function_call":
            answered = through.answer(item)
            if answered is None:
                result = run_own(item.name, json.loads(item.arguments))
                answered = {"type": "function_call_output", "call_id": item.call_id, "output": result}
            found.append(answered)
    return found


@pytest.mark.parametrize("packs", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_two_checkpoints_in_chat(tmp_path: Path, streams: bool, packs: bool):
    through = cutline.Transport(record=tmp_path / "record.db")
    with Provider(script(), packs=packs) as provider, opened(through, provider.url) as client:
        messages: list[Any] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": GO}]
        while True:
            if streams:
                more = {"stream_options": {"include_usage": True}}
                with client.chat.completions.stream(messages=messages, **CHAT, **more) as stream:
                    answer = stream.get_final_completion().choices[0].message
            else:
                answer = client.chat.completions.create(messages=messages, **CHAT).choices[0].message
            messages.append(answer.model_dump(exclude_none=True, include={"role", "content", "tool_calls"}))
            given = chat_results(through, answer)
            if not given:
                break
            messages += given
        assert answer.content == END
        holds(provider, through)


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_two_checkpoints_in_responses(tmp_path: Path, streams: bool):
    through = cutline.Transport(record=tmp_path / "record.db")
    with Provider(script()) as provider, opened(through, provider.url) as client:
        items: list[Any] = [{"role": "user", "content": GO}]
        while True:
            if streams:
                with client.responses.stream(input=items, **RESPONSES) as stream:
                    answer = stream.get_final_response()
            else:
                answer = client.responses.create(input=items, **RESPONSES)
            items += [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in answer.output]
            given = response_results(through, answer.output)
            if not given:
                break
            items += given
        assert answer.output_text == END
        holds(provider, through)


@pytest.mark.parametrize("family", ["httpx2", "httpx"])
def test_two_checkpoints_async_on_both_httpx(tmp_path: Path, family: str):
    """Its own client is httpx2's; one of httpx's is taken too."""
    through = cutline.AsyncTransport(record=tmp_path / "record.db")
    http = pytest.importorskip(family).AsyncClient(transport=through)

    async def task(url: str) -> str:
        async with openai.AsyncOpenAI(api_key="none", base_url=f"{url}/v1", http_client=http) as client:
            messages: list[Any] = [{"role": "user", "content": GO}]
            while True:
                answer = (await client.chat.completions.create(messages=messages, **CHAT)).choices[0].message
                messages.append(answer.model_dump(exclude_none=True))
                given = await asyncio.to_thread(chat_results, through, answer)
                if not given:
                    return str(answer.content)
                messages += given

    with Provider(script()) as provider:
        assert asyncio.run(task(provider.url)) == END
        holds(provider, through)


def test_what_the_sdk_tries_again_is_the_same_bytes():
    through = cutline.Transport(record=False)
    with Provider(script(), failing={2: 500, 9: 429}) as provider, opened(through, provider.url) as client:
        items: list[Any] = [{"role": "user", "content": GO}]
        while given := response_results(through, (answer := client.responses.create(input=items, **RESPONSES)).output):
            items += [*(item.model_dump(exclude_none=True) for item in answer.output), *given]
        holds(provider, through, failed=2)


def test_a_history_that_the_server_holds_is_not_cut_and_that_is_said():
    through = cutline.Transport(record=False)
    with Provider([]) as provider, opened(through, provider.url) as client:
        items: list[Any] = []
        for id, tool in (("a", TOOL), ("b", "micro_handoff")):
            items.append({"type": "function_call", "call_id": id, "name": tool, "arguments": "{}"})
            items.append({"type": "function_call_output", "call_id": id, "output": "done"})
        client.responses.create(input=items, previous_response_id="resp_0", **RESPONSES)
    ((reason, _),) = through.report().untouched.items()
    assert "previous_response_id" in reason
