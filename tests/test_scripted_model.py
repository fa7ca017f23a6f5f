"""The scripted model: in every format it streams what the script says, fails as the script says, and keeps what it was sent.

Here it is read by the record's own reader of answers; tests/sdks has the providers' SDKs read it.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from cutline.demo.formats import FORMATS
from cutline.demo.model import Answer, Asked, Call, Failure, Model, Tokens
from cutline.wire import answers

MODEL = "some-model"
PATHS = {
    "anthropic": "/v1/messages",
    "openai_responses": "/v1/responses",
    "openai_chat": "/v1/chat/completions",
    "gemini": f"/v1beta/models/{MODEL}:streamGenerateContent?alt=sse",
}
SAID = Answer(
    "I look at “a.py”: å, 𝄞, and then\nfar more words than one delta holds, because a stream is pieces.",
    (Call("read", {"path": "a.py", "lines": [1, 2], "why": "é"}), Call("grep", {"pattern": "x" * 60})),
    thinking="A float somewhere? " * 4,
)
CLIENT = httpx.Client(timeout=10)  # a client of its own for each request would cost more than the request
EVERY = pytest.mark.parametrize("format", FORMATS)


def body(format: str, *results: str, streams: bool = True, tools: bool = True) -> dict[str, Any]:
    """A request: a question, and for each result the call that it answers."""
    if format == "gemini":
        held: dict[str, Any] = {"contents": [{"role": "user", "parts": [{"text": "Go."}]}]}
        for number, text in enumerate(results):
            made = {"functionCall": {"id": f"c{number}", "name": "read", "args": {"n": number}}}
            back = {"functionResponse": {"id": f"c{number}", "name": "read", "response": {"output": text}}}
            held["contents"] += [{"role": "model", "parts": [made]}, {"role": "user", "parts": [back]}]
        return held | ({"tools": [{"functionDeclarations": [{"name": "read"}]}]} if tools else {})
    held = {"model": MODEL, "stream": streams, **({"tools": [{"name": "read"}]} if tools else {})}
    if format == "openai_responses":
        held["input"] = [{"role": "user", "content": "Go."}]
        for number, text in enumerate(results):
            made = {"type": "function_call", "call_id": f"c{number}", "name": "read", "arguments": f'{{"n":{number}}}'}
            held["input"] += [made, {"type": "function_call_output", "call_id": f"c{number}", "output": text}]
        return held
    held |= {"messages": [{"role": "user", "content": "Go."}]}
    if format == "openai_chat":
        held["stream_options"] = {"include_usage": True}
    for number, text in enumerate(results):
        if format == "anthropic":
            call = {"type": "tool_use", "id": f"c{number}", "name": "read", "input": {"n": number}}
            back = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"c{number}", "content": text}]}
            held["messages"] += [{"role": "assistant", "content": [call]}, back]
        else:
            told = {"name": "read", "arguments": f'{{"n":{number}}}'}
            call = {"id": f"c{number}", "type": "function", "function": told}
            back = {"role": "tool", "tool_call_id": f"c{number}", "content": text}
            held["messages"] += [{"role": "assistant", "content": None, "tool_calls": [call]}, back]
    return held


def post(model: Model, format: str, *results: str, whole: bool = False, **options: Any) -> httpx.Response:
    path = PATHS[format].replace("streamGenerateContent?alt=sse", "generateContent") if whole else PATHS[format]
    sent = json.dumps(body(format, *results, streams=not whole, **options)).encode()
    return CLIENT.post(model.url + path, content=sent)


def read(format: str, response: httpx.Response) -> answers.Answer:
    assert response.status_code == 200, response.text
    return answers.read(format, response.headers["content-type"], response.content)


def words(read: answers.Answer, kind: str) -> str:
    return "".join(str(block[kind]) for block in read.content if block["type"] == kind)


# --------------------------------------------------------------------------------------------------- what is said


@EVERY
@pytest.mark.parametrize("whole", [False, True], ids=["streamed", "whole"])
def test_what_the_script_says_is_what_arrives(format: str, whole: bool) -> None:
    with Model([SAID]) as model:
        found = read(format, post(model, format, whole=whole))
    assert (words(found, "text"), words(found, "thinking")) == (SAID.text, SAID.thinking)
    assert [(call["name"], call["input"]) for call in found.calls] == [(c.name, c.arguments) for c in SAID.calls]
    assert len({call["id"] for call in found.calls}) == 2 and all(call["id"] for call in found.calls)
    assert found.complete and found.model == MODEL and not found.error


@EVERY
def test_a_stream_comes_in_pieces_each_as_it_is_said(format: str) -> None:
    with Model([replace(SAID, pause_s=0.01)]) as model:
        sent = json.dumps(body(format)).encode()
        with CLIENT.stream("POST", model.url + PATHS[format], content=sent) as response:
            times = [(time.monotonic(), chunk) for chunk in response.iter_raw()]
    assert len(times) > 10 and times[-1][0] - times[0][0] > 0.1


@EVERY
@pytest.mark.parametrize(
    ("stop", "said"),
    [
        ("", {"end_turn", "completed", "stop", "STOP"}),
        ("length", {"max_tokens", "max_output_tokens", "length", "MAX_TOKENS"}),
        ("refusal", {"refusal", "content_filter", "SAFETY"}),
    ],
)
def test_it_stops_for_the_reason_that_the_script_gives(format: str, stop: Any, said: set[str]) -> None:
    with Model([Answer("Half", stop=stop)]) as model:
        assert read(format, post(model, format)).stop in said


@EVERY
def test_it_counts_what_it_was_sent_and_what_a_prompt_cache_would_have_given(format: str) -> None:
    long = "line of a file\n" * 400
    with Model([Answer("a"), Answer("b"), Answer("c", tokens=Tokens(1_000, 600, 100, 20))]) as model:
        first, second, third = (read(format, post(model, format, *[long] * n)).usage for n in (1, 2, 2))
        sizes = [len(asked.raw) for asked in model.asked]
    read_name = {
        "anthropic": "cache_read_input_tokens",
        "openai_responses": "input_tokens_details.cached_tokens",
        "openai_chat": "prompt_tokens_details.cached_tokens",
        "gemini": "cachedContentTokenCount",
    }[format]
    assert not first.get(read_name)
    assert sizes[0] / 4 * 0.9 < second[read_name] < sizes[0] / 4, "all of the first request, and nothing else"
    assert third[read_name] == 600
    assert 20 in third.values()


# ---------------------------------------------------------------------------------------------- what goes wrong


@EVERY
@pytest.mark.parametrize("status", [429, 529, 500, 401])
def test_an_error_has_the_providers_status_and_shape_and_the_next_request_gets_the_next_answer(
    format: str, status: int
) -> None:
    with Model([Failure(status, retry_after_s=2), Failure(status, "Come back at noon"), SAID]) as model:
        for message in ("", "Come back at noon"):
            failed = post(model, format)
            assert failed.status_code == (503 if status == 529 and format != "anthropic" else status)
            error = failed.json()["error"]
            assert error["message"] and message in error["message"]
            assert ("type" in error) is (format != "gemini") and ("status" in error) is (format == "gemini")
            assert failed.headers.get("retry-after") == (None if message else "2")
        assert words(read(format, post(model, format)), "text") == SAID.text
    assert [asked.number for asked in model.asked] == [0, 1, 2]


@EVERY
@pytest.mark.parametrize("after", [0, 1, 4])
def test_a_stream_is_dropped_where_the_script_says(format: str, after: int) -> None:
    with Model([replace(SAID, breaks_after=after), SAID]) as model:
        got = b""
        sent = json.dumps(body(format)).encode()
        with (
            pytest.raises(httpx.TransportError),
            CLIENT.stream("POST", model.url + PATHS[format], content=sent) as response,
        ):
            for chunk in response.iter_raw():
                got += chunk
        assert got.count(b"data: ") <= after
        assert words(read(format, post(model, format)), "text") == SAID.text


@EVERY
def test_an_error_comes_in_the_middle_of_a_stream(format: str) -> None:
    with Model([replace(SAID, breaks_after=4, breaks_by="error")]) as model:
        found = read(format, post(model, format))
    assert "verloaded" in found.error and not found.complete


@EVERY
def test_it_lets_wait_before_the_first_byte(format: str) -> None:
    with Model([replace(SAID, delay_s=0.2)]) as model:
        start = time.monotonic()
        post(model, format)
        assert time.monotonic() - start >= 0.2


def test_a_client_that_goes_away_is_counted() -> None:
    with Model([replace(SAID, pause_s=0.02), SAID]) as model:
        sent = json.dumps(body("anthropic")).encode()
        with CLIENT.stream("POST", model.url + PATHS["anthropic"], content=sent) as response:
            next(response.iter_raw())
        for _ in range(100):
            if model.gone:
                break
            time.sleep(0.02)
        assert model.gone == 1
        assert words(read("anthropic", post(model, "anthropic")), "text") == SAID.text


# ----------------------------------------------------------------------------------------------- what it is asked


@EVERY
def test_an_answer_can_depend_on_what_the_tools_really_gave(format: str) -> None:
    def next_step(asked: Asked) -> Answer:
        (result,) = asked.results
        return Answer(f"{result.name} gave {result.result}", (Call("read", {"n": len(asked.calls)}),))

    with Model([next_step, next_step]) as model:
        first = read(format, post(model, format, "42 of 162"))
        second = read(format, post(model, format, "42 of 162", "7 of 7"))
    assert words(first, "text") == "read gave 42 of 162" and first.calls[0]["input"] == {"n": 1}
    assert words(second, "text") == "read gave 7 of 7" and second.calls[0]["input"] == {"n": 2}


@EVERY
def test_the_same_request_is_given_the_same_ids_and_another_one_others(format: str) -> None:
    with Model([SAID, SAID, SAID]) as model:
        once, again, other = (read(format, post(model, format, *had)) for had in ((), (), ("x",)))
    ids = [{call["id"] for call in one.calls} for one in (once, again, other)]
    assert ids[0] == ids[1] and not ids[0] & ids[2]


@EVERY
def test_a_script_that_is_at_its_end_says_so(format: str) -> None:
    with Model([SAID]) as model:
        assert model.unused == 1
        post(model, format)
        assert model.unused == 0
        over = post(model, format)
    assert over.status_code == 400
    assert over.json()["error"]["message"] == "the script is at its end: it has 1 answers, and one more was asked"


@EVERY
def test_a_request_that_offers_no_tools_takes_nothing_off_the_script(format: str) -> None:
    with Model([SAID], aside=Answer("A title")) as model:
        assert words(read(format, post(model, format, tools=False)), "text") == "A title"
        assert words(read(format, post(model, format)), "text") == SAID.text
        assert [asked.number for asked in model.asked] == [-1, 0] and len(model.main) == 1


@EVERY
def test_every_request_is_kept_as_it_came(format: str) -> None:
    with Model([SAID, SAID]) as model:
        post(model, format)
        post(model, format, "one")
    assert [asked.body for asked in model.main] == [body(format), body(format, "one")]
    assert {asked.format for asked in model.asked} == {format}


def test_what_is_refused_takes_nothing_off_the_script() -> None:
    faults: Iterator[str] = iter(("messages: at least one message is required", ""))
    with Model([SAID], refuses=lambda format, raw: next(faults)) as model:
        refused = post(model, "anthropic")
        assert (refused.status_code, refused.json()["error"]["type"]) == (400, "invalid_request_error")
        assert words(read("anthropic", post(model, "anthropic")), "text") == SAID.text
    assert model.refusals == ["messages: at least one message is required"]


def test_what_a_callable_of_the_script_raises_is_raised_where_the_model_is_left() -> None:
    def wrong(asked: Asked) -> Answer:
        raise LookupError(f"no such result among {len(asked.results if asked.calls else ())}")

    with pytest.raises(LookupError, match="no such result among 0"), Model([wrong]) as model:
        assert post(model, "anthropic").status_code == 400


def test_the_example_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).resolve().parents[1] / "docs" / "demo.md").read_text("utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, re.S)
    ask = [
        "    told = [CLIENT.post(model.url + '/v1/messages', json=ask) for ask in asks]",
        "    unused = model.unused",
    ]
    held: dict[str, Any] = {
        "CLIENT": CLIENT,
        "asks": [body("anthropic", *had, streams=False) for had in ((), (), ("42",))],
    }
    exec(example + "\n".join(ask), held)
    assert capsys.readouterr().out.startswith("http://127.0.0.1:") and held["unused"] == 0
    assert [one.status_code for one in held["told"]] == [529, 200, 200]
    assert held["told"][2].json()["content"][0]["text"] == "It says 42."


def test_tokens_are_counted_and_other_addresses_are_nothing() -> None:
    with Model([]) as model:
        counted = CLIENT.post(f"{model.url}/v1/messages/count_tokens", json=body("anthropic")).json()
        assert counted["input_tokens"] > 10
        assert CLIENT.get(f"{model.url}/v1/models").status_code == 404
        assert CLIENT.post(f"{model.url}/v1/embeddings", json={}).status_code == 404
        assert CLIENT.post(f"{model.url}/v1/messages", content=b"{").status_code == 200, (
            "an odd body is no main request"
        )
