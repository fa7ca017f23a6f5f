"""Google's Gen AI SDK on the transport: streamed and whole, sync and async."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import cutline

from .provider import Provider
from .task import ABOUT, END, GO, SCHEMA, TOOL, holds, run_own, script

genai = pytest.importorskip("google.genai", reason="needs the group: uv run --group sdks pytest -m slow tests/sdks")
pytestmark = pytest.mark.slow

MODEL = "gemini-2.5-pro"
OWN = {"functionDeclarations": [{"name": TOOL, "description": ABOUT, "parametersJsonSchema": SCHEMA}]}
CONFIG: dict[str, Any] = {"tools": [OWN, *cutline.tools("gemini")]}


def opened(through: cutline.Transport, url: str) -> Any:
    """The SDK's client on a transport."""
    arguments = {"transport": through}
    options = genai.types.HttpOptions(base_url=url, client_args=arguments, async_client_args=arguments)
    return genai.Client(api_key="none", http_options=options)


def results(through: cutline.Transport, parts: list[Any]) -> list[Any]:
    """What each call of an answer is answered."""
    found: list[Any] = []
    for part in parts:
        if part.function_call:
            answered = through.answer(part.function_call)
            if answered is None:
                call = part.function_call
                response = {"output": run_own(call.name, call.args)}
                answered = {"functionResponse": {"id": call.id, "name": call.name, "response": response}}
            found.append(answered)
    return found


@pytest.mark.parametrize("packs", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_two_checkpoints(tmp_path: Path, streams: bool, packs: bool):
    through = cutline.Transport(record=tmp_path / "record.db")
    with Provider(script(), packs=packs) as provider, opened(through, provider.url) as client:
        contents: list[Any] = [{"role": "user", "parts": [{"text": GO}]}]
        while True:
            asked = {"model": MODEL, "contents": contents, "config": CONFIG}
            if streams:
                chunks = list(client.models.generate_content_stream(**asked))
                parts = [part for chunk in chunks for part in chunk.candidates[0].content.parts]
            else:
                parts = client.models.generate_content(**asked).candidates[0].content.parts
            contents.append({"role": "model", "parts": parts})
            given = results(through, parts)
            if not given:
                break
            contents.append({"role": "user", "parts": given})
        assert parts[0].text == END
        holds(provider, through)


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_two_checkpoints_async(tmp_path: Path, streams: bool):
    """With aiohttp installed the SDK would take that; a transport makes it take httpx."""
    through = cutline.AsyncTransport(record=tmp_path / "record.db")

    async def task(client: Any) -> str:
        contents: list[Any] = [{"role": "user", "parts": [{"text": GO}]}]
        while True:
            asked = {"model": MODEL, "contents": contents, "config": CONFIG}
            if streams:
                chunks = [chunk async for chunk in await client.aio.models.generate_content_stream(**asked)]
                parts = [part for chunk in chunks for part in chunk.candidates[0].content.parts]
            else:
                parts = (await client.aio.models.generate_content(**asked)).candidates[0].content.parts
            contents.append({"role": "model", "parts": parts})
            given = await asyncio.to_thread(results, through, parts)
            if not given:
                await client.aio.aclose()
                return str(parts[0].text)
            contents.append({"role": "user", "parts": given})

    with Provider(script()) as provider, opened(through, provider.url) as client:
        assert asyncio.run(task(client)) == END
        holds(provider, through)
