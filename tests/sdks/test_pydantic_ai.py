"""Pydantic AI on the transport: its agent on Anthropic, OpenAI (both APIs) and Google, run and streamed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cutline

from .provider import Provider
from .task import ABOUT, END, GO, SCHEMA, TOOL, holds, read_part, script

pydantic_ai = pytest.importorskip(
    "pydantic_ai", reason="needs the group: uv run --group sdks pytest -m slow tests/sdks"
)
pytestmark = pytest.mark.slow


def anthropic(url: str, http: Any) -> Any:
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    provider = AnthropicProvider(api_key="none", base_url=url, http_client=http)
    return AnthropicModel("claude-sonnet-4-5", provider=provider)


def openai_chat(url: str, http: Any) -> Any:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    provider = OpenAIProvider(api_key="none", base_url=f"{url}/v1", http_client=http)
    return OpenAIChatModel("gpt-5.2", provider=provider)


def openai_responses(url: str, http: Any) -> Any:
    from pydantic_ai.models.openai import OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    provider = OpenAIProvider(api_key="none", base_url=f"{url}/v1", http_client=http)
    return OpenAIResponsesModel("gpt-5.2", provider=provider)


def google(url: str, http: Any) -> Any:
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    return GoogleModel("gemini-2.5-pro", provider=GoogleProvider(api_key="none", base_url=url, http_client=http))


def tools(through: cutline.Transport) -> list[Any]:
    """The program's tool, and Cutline's three."""

    def tool(declared: dict[str, Any]) -> Any:
        async def answer(ctx: Any, **arguments: Any) -> str:
            return await asyncio.to_thread(through.call, declared["name"], arguments, ctx.tool_call_id)

        return pydantic_ai.Tool.from_schema(
            answer, declared["name"], declared["description"], declared["input_schema"], takes_ctx=True
        )

    own = pydantic_ai.Tool.from_schema(read_part, TOOL, ABOUT, SCHEMA)
    return [own, *map(tool, cutline.tools("anthropic"))]


@pytest.mark.parametrize("streams", [False, True], ids=["run", "streamed"])
@pytest.mark.parametrize("model", [anthropic, openai_chat, openai_responses, google], ids=lambda made: made.__name__)
def test_two_checkpoints(tmp_path: Path, model: Callable[[str, Any], Any], streams: bool):
    import httpx2

    through = cutline.AsyncTransport(record=tmp_path / "record.db")

    async def task(url: str) -> str:
        async with httpx2.AsyncClient(transport=through, timeout=60) as http:
            agent = pydantic_ai.Agent(model(url, http), tools=tools(through))
            if not streams:
                return str((await agent.run(GO)).output)
            async with agent.run_stream_events(GO) as events:
                return [event.result.output async for event in events if hasattr(event, "result")][-1]

    with Provider(script()) as provider:
        assert asyncio.run(task(provider.url)) == END
        holds(provider, through)
