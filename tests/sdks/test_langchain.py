"""LangChain's models on the transport: ChatAnthropic, ChatOpenAI (both APIs), ChatGoogleGenerativeAI."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cutline

from .provider import Provider
from .task import ABOUT, END, GO, SCHEMA, TOOL, holds, run_own, script

core = pytest.importorskip(
    "langchain_core.messages", reason="needs the group: uv run --group sdks pytest -m slow tests/sdks"
)
pytestmark = pytest.mark.slow

OWN = {"name": TOOL, "description": ABOUT, "parameters": SCHEMA}
TOOLS = [{"type": "function", "function": OWN}, *cutline.tools("openai-chat")]


def anthropic(url: str, through: cutline.Transport) -> Any:
    """It takes no client of httpx: the ones that it made are put on the transport."""
    from anthropic import DefaultAsyncHttpxClient, DefaultHttpxClient
    from langchain_anthropic import ChatAnthropic

    model = ChatAnthropic(model="claude-sonnet-4-5", api_key="none", base_url=url, max_tokens=1000)
    model.__dict__["_client"] = model._client.with_options(http_client=DefaultHttpxClient(transport=through))
    model.__dict__["_async_client"] = model._async_client.with_options(
        http_client=DefaultAsyncHttpxClient(transport=through)
    )
    return model


def openai(url: str, through: cutline.Transport, **more: Any) -> Any:
    import httpx2
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(
        model="gpt-5.2",
        api_key="none",
        base_url=f"{url}/v1",
        http_client=httpx2.Client(transport=through),
        http_async_client=httpx2.AsyncClient(transport=through),
        stream_usage=True,
        **more,
    )


def openai_responses(url: str, through: cutline.Transport) -> Any:
    return openai(url, through, use_responses_api=True, store=False, output_version="responses/v1")


def google(url: str, through: cutline.Transport) -> Any:
    from langchain_google_genai import ChatGoogleGenerativeAI

    return ChatGoogleGenerativeAI(
        model="gemini-2.5-pro", api_key="none", base_url=url, client_args={"transport": through}
    )


@pytest.mark.parametrize("how", ["invoke", "stream", "ainvoke"])
@pytest.mark.parametrize("made", [anthropic, openai, openai_responses, google], ids=lambda made: made.__name__)
def test_two_checkpoints(tmp_path: Path, made: Callable[..., Any], how: str):
    through = cutline.Transport(record=tmp_path / "record.db")

    async def task(url: str) -> str:
        bound = made(url, through).bind_tools(TOOLS)
        messages: list[Any] = [core.HumanMessage(GO)]
        while True:
            if how == "ainvoke":
                answer = await bound.ainvoke(messages)
            elif how == "invoke":
                answer = bound.invoke(messages)
            else:
                chunks = list(bound.stream(messages))
                answer = sum(chunks[1:], chunks[0])
            messages.append(answer)
            if not answer.tool_calls:
                through.close()
                await through.aclose()
                return str(answer.text)
            for call in answer.tool_calls:
                own = call["name"] == TOOL
                answer_to = run_own if own else (lambda name, given, id=call["id"]: through.call(name, given, id))
                messages.append(core.ToolMessage(answer_to(call["name"], call["args"]), tool_call_id=call["id"]))

    with Provider(script()) as provider:
        assert asyncio.run(task(provider.url)) == END
        holds(provider, through)
