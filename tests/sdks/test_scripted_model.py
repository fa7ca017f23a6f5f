"""The scripted model under the providers' own SDKs: Pydantic AI streams the script in every format, and asks again."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from cutline.demo.model import Answer, Call, Failure, Model, Tokens

from .provider import refused
from .test_pydantic_ai import anthropic, google, openai_chat, openai_responses, pydantic_ai

pytestmark = pytest.mark.slow

LOOK = Answer(
    "I read “a.py”, because å and 𝄞 are in it; I expect two of them in more words than one delta holds.",
    (Call("read", {"path": "a.py", "lines": [1, 2]}), Call("read", {"path": "b “é”.py", "lines": []})),
    thinking="Is it a.py? It is the only one that anybody wrote this year.",
    tokens=Tokens(1_000, 600, 100, 20),
)
END = Answer("Both are there: a.py and b.py, read.", tokens=Tokens(2_000, 0, 0, 8))
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}, "lines": {"type": "array"}}}
EVERY = pytest.mark.parametrize(
    "made", [anthropic, openai_chat, openai_responses, google], ids=lambda made: made.__name__
)


class Heard:
    """What an agent was given."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.thought: list[str] = []
        self.given: list[dict[str, Any]] = []
        self.output = ""
        self.usage: Any = None


async def run(made: Any, url: str) -> Heard:
    """A run that streams, its deltas gathered by the parts that they belong to."""
    import httpx2

    heard = Heard()

    async def read(**arguments: Any) -> str:
        heard.given.append(arguments)
        return f"{arguments['path']} is there"

    tool = pydantic_ai.Tool.from_schema(read, "read", "Reads.", SCHEMA)
    async with httpx2.AsyncClient(timeout=10) as http:
        agent = pydantic_ai.Agent(made(url, http), tools=[tool])
        async with agent.run_stream_events("Go.") as events:
            async for event in events:
                part = getattr(event, "part", None) if event.event_kind == "part_start" else None
                delta = getattr(event, "delta", None) if event.event_kind == "part_delta" else None
                for piece, kind in ((part, "part_kind"), (delta, "part_delta_kind")):
                    if piece is None or getattr(piece, kind) not in ("text", "thinking"):
                        continue
                    into = heard.said if getattr(piece, kind) == "text" else heard.thought
                    words = piece.content if piece is part else piece.content_delta
                    into.append(words or "")
                if hasattr(event, "result"):
                    heard.output, heard.usage = event.result.output, event.result.usage
    return heard


@EVERY
def test_it_is_streamed_as_the_script_says(made: Any) -> None:
    with Model([LOOK, END], refuses=refused) as model:
        heard = asyncio.run(run(made, model.url))
        assert model.unused == 0 and model.refusals == []
    assert "".join(heard.said) == LOOK.text + END.text and heard.output == END.text
    assert "".join(heard.thought) == LOOK.thinking
    assert len([piece for piece in heard.said if piece]) > 5
    assert heard.given == [call.arguments for call in LOOK.calls]
    assert (heard.usage.input_tokens, heard.usage.output_tokens) == (3_000, 28)
    assert heard.usage.cache_read_tokens == 600
    first, second = (call.result or "" for call in model.main[-1].results)
    assert "a.py is there" in first and ".py is there" in second


@EVERY
@pytest.mark.parametrize("status", [429, 500, 529])
def test_an_error_is_one_that_the_sdk_knows_and_asks_again_for(made: Any, status: int) -> None:
    from pydantic_ai.exceptions import ModelHTTPError

    with Model([Failure(status, retry_after_s=0), LOOK, Failure(status, retry_after_s=0), END]) as model:
        if made is google:  # its SDK asks again only where it is told to
            with pytest.raises(ModelHTTPError) as caught:
                asyncio.run(run(made, model.url))
            assert caught.value.status_code == (503 if status == 529 else status)
            return
        heard = asyncio.run(run(made, model.url))
        assert "".join(heard.said) == LOOK.text + END.text and model.unused == 0
        raws = [asked.raw for asked in model.main]
        assert raws[0] == raws[1] != raws[2] == raws[3]


@EVERY
@pytest.mark.parametrize("by", ["drop", "error"])
def test_a_stream_that_breaks_off_fails_and_the_next_run_gets_the_next_answer(made: Any, by: Any) -> None:
    with Model([replace(LOOK, breaks_after=4, breaks_by=by), LOOK, END]) as model:
        with pytest.raises(Exception) as caught:  # each SDK has errors of its own
            asyncio.run(run(made, model.url))
        assert not isinstance(caught.value, AssertionError | TypeError | AttributeError | KeyError)
        assert asyncio.run(run(made, model.url)).output == END.text
