"""OpenAI's Agents SDK on the transport: its runner on Responses and on Chat Completions, run and streamed."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import cutline

from .provider import Provider
from .task import ABOUT, END, GO, SCHEMA, TOOL, holds, read_part, script

agents = pytest.importorskip("agents", reason="needs the group: uv run --group sdks pytest -m slow tests/sdks")
pytestmark = pytest.mark.slow


def tools(through: cutline.Transport) -> list[Any]:
    """The program's tool, and Cutline's three."""

    def tool(declared: dict[str, Any]) -> Any:
        async def answer(ctx: Any, arguments: str) -> str:
            return await asyncio.to_thread(
                through.call, declared["name"], json.loads(arguments or "{}"), ctx.tool_call_id
            )

        return agents.FunctionTool(
            declared["name"], declared["description"], declared["input_schema"], answer, strict_json_schema=False
        )

    async def read(ctx: Any, arguments: str) -> str:
        return read_part(**json.loads(arguments))

    own = agents.FunctionTool(TOOL, ABOUT, SCHEMA, read, strict_json_schema=False)
    return [own, *map(tool, cutline.tools("anthropic"))]


@pytest.mark.parametrize("streams", [False, True], ids=["run", "streamed"])
@pytest.mark.parametrize("api", ["responses", "chat"])
def test_two_checkpoints(tmp_path: Path, api: str, streams: bool):
    import openai

    through = cutline.AsyncTransport(record=tmp_path / "record.db")

    async def task(url: str) -> str:
        http = openai.DefaultAsyncHttpxClient(transport=through)
        async with openai.AsyncOpenAI(api_key="none", base_url=f"{url}/v1", http_client=http) as client:
            made = agents.OpenAIResponsesModel if api == "responses" else agents.OpenAIChatCompletionsModel
            settings = agents.ModelSettings(store=False, include_usage=True)
            model = made(model="gpt-5.2", openai_client=client)
            agent = agents.Agent("reader", model=model, model_settings=settings, tools=tools(through))
            config = agents.RunConfig(tracing_disabled=True)
            if not streams:
                return str((await agents.Runner.run(agent, GO, max_turns=30, run_config=config)).final_output)
            running = agents.Runner.run_streamed(agent, GO, max_turns=30, run_config=config)
            async for _ in running.stream_events():
                pass
            return str(running.final_output)

    with Provider(script()) as provider:
        assert asyncio.run(task(provider.url)) == END
        holds(provider, through)
