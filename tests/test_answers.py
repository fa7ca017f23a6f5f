"""Answers of every format, however they are streamed and torn: what was said, what was called, what was counted.

Recorded answers are real ones (../shared/data); the others are written by hand, as the providers document them.
"""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import conversations
import streams
import wire_answers
import wire_bodies
from cutline.money import Usage
from cutline.wire import answers
from cutline.wire.answers import Answer, Reader
from streams import JSON, SSE, WAYS, Said

THOUGHT = Said(thinking="Which part?", calls=[*Said().calls, ("call_2", "say", {"text": "so: 𝄞"})])
BLOCKS = [
    {"type": "text", "text": "I look: å, 𝄞."},
    {"type": "tool_use", "id": "call_1", "name": "read", "input": {"path": "a.py", "lines": [1, 2]}},
    {"type": "tool_use", "id": "call_2", "name": "say", "input": {"text": "so: 𝄞"}},
]


def told(answer: Answer) -> list[dict[str, Any]]:
    """The blocks, without what only Anthropic's have."""
    return [{key: value for key, value in block.items() if key != "signature"} for block in answer.content]


@pytest.mark.parametrize("way", WAYS)
def test_what_is_streamed_is_read(way: str):
    format, kind = WAYS[way]
    read = answers.read(format, kind, streams.stream(way, THOUGHT))
    assert told(read) == [{"type": "thinking", "thinking": "Which part?"}, *BLOCKS]
    assert read.calls == BLOCKS[1:] and read.complete and read.error == ""
    written = 0 if format == "gemini" else 100  # there nothing says what is written
    used = Usage.of(format, read.usage)
    assert used == Usage(1_000 - 600 - written, 600, written, 0, 20) and used.total_input == 1_000
    assert read.model == {"gemini": "gemini-3-pro", "converse": ""}.get(format, read.model) != "?"


@pytest.mark.parametrize("way", WAYS)
def test_an_answer_without_counters_has_none(way: str):
    format, kind = WAYS[way]
    read = answers.read(format, kind, streams.stream(way, Said(tokens=None)))
    assert read.complete and told(read) == BLOCKS[:2]
    assert Usage.of(format, read.usage).total_input == 0
    if way == "openai_chat":
        assert not read.usage, "stream_options.include_usage was not asked for"


@pytest.mark.parametrize("format", conversations.FORMATS)
def test_an_answer_that_is_not_streamed(format: str):
    read = answers.read(format, JSON, json.dumps(conversations.answer(format, "All parts agree.", (900, 30))).encode())
    assert told(read) == [{"type": "text", "text": "All parts agree."}] and read.complete
    assert Usage.of(format, read.usage) == Usage(input=900, output=30)


@given(st.sampled_from(sorted(WAYS)), st.lists(st.integers(1, 97), min_size=1, max_size=40))
def test_however_the_bytes_are_cut_up_the_same_is_read(way: str, sizes: list[int]):
    format, kind = WAYS[way]
    data = streams.stream(way, THOUGHT)
    reader, at = Reader(format, kind), 0
    for size in itertools.cycle(sizes):
        reader.feed(data[at : at + size])
        at += size
        if at >= len(data):
            break
    assert reader.end() == answers.read(format, kind, data)


@given(st.sampled_from(sorted(WAYS)), st.data())
def test_a_torn_answer_gives_a_beginning_of_what_the_whole_one_gives(way: str, data: st.DataObject):
    format, kind = WAYS[way]
    whole = streams.stream(way, THOUGHT)
    read = answers.read(format, kind, whole[: data.draw(st.integers(0, len(whole) - 1))])
    every = told(answers.read(format, kind, whole))
    for found, one in zip(told(read), every, strict=False):
        assert found["type"] == one["type"]
        assert all(str(one.get(key) or "").startswith(str(found.get(key) or "")) for key in ("text", "thinking"))
        assert found.get("input") in ({}, one.get("input"))
    assert len(read.content) <= len(every)


@given(st.sampled_from(sorted(WAYS)), st.data())
def test_broken_bytes_are_no_fault(way: str, data: st.DataObject):
    format, kind = WAYS[way]
    whole = bytearray(streams.stream(way, THOUGHT))
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(whole) - 1))
        whole[at : at + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=9))
    answers.read(format, kind, bytes(whole))


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 9) | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *(
                        "type",
                        "index",
                        "delta",
                        "content_block",
                        "message",
                        "usage",
                        "content",
                        "choices",
                        "tool_calls",
                    ),
                    *("function", "arguments", "response", "output", "item", "summary", "candidates", "parts", "error"),
                    *("functionCall", "usageMetadata", "contentBlockDelta", "contentBlockIndex", "toolUse", "metadata"),
                    *("text", "name", "id", "cacheDetails", "stopReason", "promptFeedback", "output_index", "input"),
                ]
            ),
            inner | st.sampled_from(["message_start", "response.output_item.done", "content_block_delta", "reasoning"]),
            max_size=4,
        )
    ),
    max_leaves=25,
)


@given(st.sampled_from(answers.FORMATS), st.lists(JUNK, max_size=6))
def test_objects_that_are_no_answer_are_no_fault(format: str, values: list[Any]):
    data = b"".join(b"data: %b\n\n" % json.dumps(value).encode() for value in values)
    read = answers.read(format, SSE, data)
    json.dumps(read.content)
    Usage.of(format, read.usage)
    for value in values:
        answers.read(format, JSON, json.dumps(value).encode())


@pytest.mark.parametrize(
    ("format", "kind", "data", "message"),
    (
        ("anthropic", JSON, b'{"type":"error","error":{"type":"api_error","message":"no"}}', "no"),
        ("openai_chat", JSON, b'{"error":{"message":"no","type":"invalid_request_error","param":null}}', "no"),
        ("openai_chat", JSON, b'{"error":"no"}', "no"),
        ("openai_chat", JSON, b'{"object":"error","message":"no","code":400}', "no"),
        ("openai_chat", JSON, b'{"detail":"no"}', "no"),
        ("openai_chat", SSE, b'data: {"error":{"message":"no","code":502}}\n\n', "no"),
        ("openai_responses", SSE, b'data: {"type":"error","code":"x","message":"no"}\n\n', "no"),
        (
            "openai_responses",
            SSE,
            b'data: {"type":"response.failed","response":{"status":"failed","error":{"code":"x","message":"no"}}}\n\n',
            "no",
        ),
        ("gemini", JSON, b'{"error":{"code":400,"message":"no","status":"INVALID_ARGUMENT"}}', "no"),
        ("gemini", JSON, b'[{"error":{"code":400,"message":"no","status":"INVALID_ARGUMENT"}}]', "no"),
        ("converse", JSON, b'{"message":"no"}', "no"),
        ("converse", JSON, b'{"Message":"no"}', "no"),
        (
            "converse",
            streams.AMAZON,
            streams.frame("throttlingException", b'{"message":"no"}', "exception", ":exception-type"),
            "no",
        ),
        ("anthropic", streams.AMAZON, streams.frame("internal", b"", "error", ":error-code"), "internal"),
    ),
)
def test_what_a_provider_says_of_an_error(format: str, kind: str, data: bytes, message: str):
    read = answers.read(format, kind, data)
    assert read.error == message and not read.content


@pytest.mark.parametrize("ends", (b"\n", b"\r\n", b"\r"))
def test_every_way_to_end_a_line(ends: bytes):
    data = streams.chat(THOUGHT).replace(b"\n", ends)
    for size in (1, 2, 7, len(data)):
        reader = Reader("openai_chat", SSE)
        for at in range(0, len(data), size):
            reader.feed(data[at : at + size])
        assert reader.end() == answers.read("openai_chat", SSE, streams.chat(THOUGHT))


def test_a_stream_of_another_name_is_known_by_its_beginning():
    assert answers.read("openai_responses", "text/plain", streams.responses(THOUGHT)).calls == BLOCKS[1:]
    assert answers.read("anthropic", "", streams.stream("anthropic", THOUGHT)).calls == BLOCKS[1:]


def test_servers_that_count_every_call_as_the_first_one():
    calls = [("a", "read", {"path": "x"}), ("b", "read", {"path": "y"})]
    chunks = [
        {
            "choices": [
                {"delta": {"tool_calls": [{"index": 0, "id": i, "function": {"name": n, "arguments": json.dumps(v)}}]}}
            ]
        }
        for i, n, v in calls
    ]
    assert [(one["id"], one["input"]) for one in answers.read("openai_chat", SSE, streams.sse(chunks)).calls] == [
        ("a", {"path": "x"}),
        ("b", {"path": "y"}),
    ]


def test_what_was_said_before_a_break_is_told_though_its_item_was_never_done():
    data = streams.responses(Said(text="Half a sentence", calls=()))
    torn = data[: data.index(b"event: response.output_item.done")]
    read = answers.read("openai_responses", SSE, torn)
    assert read.content == [{"type": "text", "text": "Half a sentence"}] and not read.complete


def test_gemini_s_login_by_google_puts_each_answer_into_another():
    data = streams.sse([{"response": chunk, "traceId": "t"} for chunk in streams.gemini_chunks(THOUGHT)])
    assert answers.read("gemini", SSE, data).calls == BLOCKS[1:]


def test_what_bedrock_s_own_library_reads_of_its_frames_is_the_same():
    eventstream = pytest.importorskip("botocore.eventstream", reason="botocore is not installed")
    buffer = eventstream.EventStreamBuffer()
    buffer.add_data(streams.amazon(THOUGHT))
    theirs = [(one.headers[":event-type"], json.loads(one.payload)) for one in buffer]
    assert theirs == streams.converse_events(THOUGHT)


# ------------------------------------------------------------------------------------------------ recorded answers


@pytest.mark.skipif(not wire_bodies.SESSIONS.is_dir(), reason=wire_bodies.MISSING)
def test_recorded_answers_are_read():
    found: dict[tuple[str, str], int] = {}
    for one in wire_answers.recorded():
        read = answers.read(one.format, one.content_type, one.body)
        if one.status >= 400:
            assert read.error and not read.content, one.name
            continue
        assert read.complete and read.content and not read.error, one.name
        used = Usage.of(one.format, read.usage)
        assert used.total_input and used.output, one.name
        streamed = "JSON" if "json" in one.content_type else "streamed"
        found[one.format, streamed] = found.get((one.format, streamed), 0) + 1
    assert {format for format, _ in found} == set(answers.FORMATS), found
    assert sum(found.values()) > 100, found
