"""LiteLLM on the transport: OpenAI's and Anthropic's providers, whole and streamed, sync and async."""

from __future__ import annotations

import asyncio
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import cutline

from .provider import Provider
from .task import ABOUT, END, GO, SCHEMA, TOOL, holds, run_own, script

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::ResourceWarning"),
]

OWN = {"name": TOOL, "description": ABOUT, "parameters": SCHEMA}
TOOLS = [{"type": "function", "function": OWN}, *cutline.tools("openai-chat")]


@pytest.fixture
def litellm(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # it would fetch prices from the network
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = pytest.importorskip("litellm", reason="needs the group: uv run --group sdks pytest -m slow tests/sdks")
    module.telemetry = False
    yield module
    module.client_session = module.aclient_session = None
    module.in_memory_llm_clients_cache.flush_cache()


def arguments(litellm: Any, provider: str, url: str, through: cutline.Transport, asynchronous: bool) -> dict[str, Any]:
    """How LiteLLM is put on a transport: by its sessions for OpenAI, by a client of each call for Anthropic."""
    import httpx
    from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler, HTTPHandler

    if provider == "openai":
        litellm.client_session = httpx.Client(transport=through)
        litellm.aclient_session = httpx.AsyncClient(transport=through)
        return {"model": "openai/gpt-5.2", "api_base": f"{url}/v1"}
    made: Any = HTTPHandler(client=httpx.Client(transport=through))
    if asynchronous:
        made = AsyncHTTPHandler()
        made.client = httpx.AsyncClient(transport=through)
    return {"model": "anthropic/claude-sonnet-4-5", "api_base": url, "client": made, "max_tokens": 1000}


def results(through: cutline.Transport, message: Any) -> list[dict[str, Any]]:
    found = []
    for call in message.tool_calls or ():
        answered = through.answer(call)
        if answered is None:
            given = run_own(call.function.name, json.loads(call.function.arguments))
            answered = {"role": "tool", "tool_call_id": call.id, "content": given}
        found.append(answered)
    return found


@pytest.mark.parametrize("how", ["whole", "streamed", "async"])
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_two_checkpoints(tmp_path: Path, litellm: Any, provider: str, how: str):
    through = cutline.Transport(record=tmp_path / "record.db")

    async def task(url: str) -> str:
        asked = {"api_key": "none", "tools": TOOLS, **arguments(litellm, provider, url, through, how == "async")}
        messages: list[Any] = [{"role": "user", "content": GO}]
        while True:
            if how == "async":
                answer = await litellm.acompletion(messages=messages, **asked)
            elif how == "whole":
                answer = litellm.completion(messages=messages, **asked)
            else:
                more = {"stream": True, "stream_options": {"include_usage": True}}
                chunks = list(litellm.completion(messages=messages, **asked, **more))
                answer = litellm.stream_chunk_builder(chunks, messages=messages)
            message = answer.choices[0].message
            messages.append(message.model_dump(exclude_none=True, include={"role", "content", "tool_calls"}))
            given = results(through, message)
            if not given:
                through.close()
                await through.aclose()
                return str(message.content)
            messages += given

    with Provider(script()) as server:
        assert asyncio.run(task(server.url)) == END
        holds(server, through)
