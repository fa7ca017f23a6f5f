"""Anthropic's SDK on the transport: streamed and whole, sync and async, retries, time-outs, Bedrock's signatures."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest

import cutline
from loopback import Loopback, Told

from .provider import Provider, Turn
from .task import ABOUT, END, GO, SCHEMA, TOOL, holds, run_own, script

anthropic = pytest.importorskip("anthropic", reason="needs the group: uv run --group sdks pytest -m slow tests/sdks")
pytestmark = pytest.mark.slow

TOOLS = [{"name": TOOL, "description": ABOUT, "input_schema": SCHEMA}, *cutline.tools("anthropic")]
ASKED: dict[str, Any] = {"model": "claude-sonnet-4-5", "max_tokens": 1000, "tools": TOOLS}


def opened(through: cutline.Transport, url: str, **more: Any) -> Any:
    """The SDK's client on a transport."""
    http = anthropic.DefaultHttpxClient(transport=through)
    return anthropic.Anthropic(api_key="none", base_url=url, http_client=http, **more)


def results(through: cutline.Transport, content: list[Any]) -> list[dict[str, Any]]:
    """What each call of an answer is answered."""
    found = []
    for block in content:
        if block.type == "tool_use":
            own = {"type": "tool_result", "tool_use_id": block.id}
            found.append(through.answer(block) or {**own, "content": run_own(block.name, block.input)})
    return found


@pytest.mark.parametrize("packs", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_two_checkpoints(tmp_path: Path, streams: bool, packs: bool):
    through = cutline.Transport(record=tmp_path / "record.db")
    with Provider(script(), packs=packs) as provider, opened(through, provider.url) as client:
        messages: list[Any] = [{"role": "user", "content": GO}]
        while True:
            if streams:
                with client.messages.stream(messages=messages, **ASKED) as stream:
                    answer = stream.get_final_message()
            else:
                answer = client.messages.create(messages=messages, **ASKED)
            messages.append({"role": "assistant", "content": answer.content})
            given = results(through, answer.content)
            if not given:
                break
            messages.append({"role": "user", "content": given})
        assert answer.content[0].text == END
        holds(provider, through)


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_two_checkpoints_async(tmp_path: Path, streams: bool):
    through = cutline.AsyncTransport(record=tmp_path / "record.db")

    async def task(url: str) -> str:
        http = anthropic.DefaultAsyncHttpxClient(transport=through)
        async with anthropic.AsyncAnthropic(api_key="none", base_url=url, http_client=http) as client:
            messages: list[Any] = [{"role": "user", "content": GO}]
            while True:
                if streams:
                    async with client.messages.stream(messages=messages, **ASKED) as stream:
                        answer = await stream.get_final_message()
                else:
                    answer = await client.messages.create(messages=messages, **ASKED)
                messages.append({"role": "assistant", "content": answer.content})
                given = await asyncio.to_thread(results, through, answer.content)
                if not given:
                    return str(answer.content[0].text)
                messages.append({"role": "user", "content": given})

    with Provider(script()) as provider:
        assert asyncio.run(task(provider.url)) == END
        holds(provider, through)


def test_what_the_sdk_tries_again_is_the_same_bytes():
    through = cutline.Transport(record=False)
    with (
        Provider(script(), failing={2: 529, 9: 500, 14: 429}) as provider,
        opened(through, provider.url) as client,
    ):
        messages: list[Any] = [{"role": "user", "content": GO}]
        while given := results(through, (answer := client.messages.create(messages=messages, **ASKED)).content):
            messages += [{"role": "assistant", "content": answer.content}, {"role": "user", "content": given}]
        holds(provider, through, failed=3)


def test_the_sdks_time_out_is_kept():
    never = threading.Event()
    through = cutline.Transport(record=False)
    with (
        Loopback(lambda _: Told([never])) as server,
        opened(through, server.url, timeout=0.3, max_retries=1) as client,
    ):
        with pytest.raises(anthropic.APITimeoutError):
            client.messages.create(messages=[{"role": "user", "content": GO}], **ASKED)
        never.set()
        assert len(server.asked) == 2


def test_a_request_that_bedrock_signs_goes_as_it_is_and_one_with_a_key_is_cut():
    """Signed with AWS credentials over the body; a Bedrock API key signs nothing."""
    history = json.loads(
        json.dumps(
            [
                {"role": "user", "content": GO},
                *told(Turn("I read.", [("a", TOOL, {"path": "part_01.py"})]), run_own(TOOL, {"path": "part_01.py"})),
                *told(Turn("Checkpoint.", [("b", "micro_handoff", {"done": "1"})]), "checkpoint stored"),
            ]
        )
    )
    asked = {**ASKED, "model": "anthropic.claude-sonnet-4-5", "messages": history}
    login = {"aws_access_key": "AKIDEXAMPLE", "aws_secret_key": "none", "aws_region": "eu-central-1"}
    for credentials, cut in ((login, False), ({"api_key": "none", "aws_region": "eu-central-1"}, True)):
        through = cutline.Transport(record=False)
        with Provider([Turn("ok")]) as provider:
            http = anthropic.DefaultHttpxClient(transport=through)
            with anthropic.AnthropicBedrock(base_url=provider.url, http_client=http, **credentials) as client:
                assert client.messages.create(**asked).content[0].text == "ok"
            sent = provider.posted[0].raw
        assert provider.asked[0].headers["authorization"].startswith("Bearer" if cut else "AWS4-HMAC-SHA256")
        report = through.report()
        assert (report.cut, b"row_100" in sent) == (int(cut), not cut)
        assert cut or "signed" in next(iter(report.untouched))


def told(turn: Turn, result: str) -> list[dict[str, Any]]:
    """A turn with its one result, as the history has it."""
    ((id, tool, given),) = turn.calls
    call = {"type": "tool_use", "id": id, "name": tool, "input": given}
    return [
        {"role": "assistant", "content": [{"type": "text", "text": turn.words}, call]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": result}]},
    ]
