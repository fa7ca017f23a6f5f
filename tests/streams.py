"""Answers as each provider streams them, out of words and calls: bytes by hand, as the providers' documentation shows."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SSE = "text/event-stream"
AMAZON = "application/vnd.amazon.eventstream"
JSON = "application/json"

Call = tuple[str, str, dict[str, Any]]
"""A call: its id, the tool's name, the arguments."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a model answers.

    Attributes:
        thinking, text: its words; "" for none.
        calls: the tools that it calls.
        tokens: input, read from the cache, written to it, output, as the provider counts them; None where it does not.
    """

    thinking: str = ""
    text: str = "I look: å, 𝄞."
    calls: Sequence[Call] = (("call_1", "read", {"path": "a.py", "lines": [1, 2]}),)
    tokens: tuple[int, int, int, int] | None = (1_000, 600, 100, 20)


def pieces(words: str, size: int = 5) -> Iterator[str]:
    """Words in the pieces in which a model says them."""
    return (words[at : at + size] for at in range(0, len(words), size))


def sse(events: Sequence[Mapping[str, Any]], *, named: bool = False, done: bool = False) -> bytes:
    """Server-sent events."""
    told = [(f"event: {one['type']}\n" if named else "") + f"data: {json.dumps(one)}\n\n" for one in events]
    return "".join(told).encode() + (b"data: [DONE]\n\n" if done else b"")


def frame(type_: str, payload: bytes, kind: str = "event", key: str = ":event-type") -> bytes:
    """One frame of Amazon's event stream."""
    told = {key: type_, ":content-type": JSON, ":message-type": kind}
    headers = b"".join(
        bytes([len(name)]) + name.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
        for name, value in told.items()
    )
    prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    head = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + payload
    return head + struct.pack(">I", zlib.crc32(head))


def anthropic_events(said: Said) -> list[dict[str, Any]]:
    into, read, wrote, out = said.tokens or (0, 0, 0, 0)
    usage = {"input_tokens": into - read - wrote, "cache_read_input_tokens": read, "cache_creation_input_tokens": wrote}
    usage["output_tokens"] = 1
    start = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": []}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {**start, "usage": usage}}]
    blocks: list[tuple[dict[str, Any], str, str, str]] = []
    if said.thinking:
        blocks.append(
            ({"type": "thinking", "thinking": "", "signature": ""}, "thinking_delta", "thinking", said.thinking)
        )
    if said.text:
        blocks.append(({"type": "text", "text": ""}, "text_delta", "text", said.text))
    for id_, name, arguments in said.calls:
        block = {"type": "tool_use", "id": id_, "name": name, "input": {}}
        blocks.append((block, "input_json_delta", "partial_json", json.dumps(arguments)))
    for index, (block, delta, key, words) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        for piece in pieces(words):
            events.append({"type": "content_block_delta", "index": index, "delta": {"type": delta, key: piece}})
        events.append({"type": "content_block_stop", "index": index})
    stop = {"stop_reason": "tool_use" if said.calls else "end_turn", "stop_sequence": None}
    events.append({"type": "message_delta", "delta": stop, "usage": {"output_tokens": out}})
    return [*events, {"type": "message_stop"}]


def chat(said: Said, *, usage: bool = True) -> bytes:
    """Chunks of Chat Completions; the counters come in a last one, if they were asked for."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": piece} for piece in pieces(said.thinking)]
    deltas += [{"content": piece} for piece in pieces(said.text)]
    for index, (id_, name, arguments) in enumerate(said.calls):
        head = {"index": index, "id": id_, "type": "function", "function": {"name": name, "arguments": ""}}
        deltas.append({"tool_calls": [head]})
        for piece in pieces(json.dumps(arguments)):
            deltas.append({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-5.2"}
    rows = [{**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    rows.append(
        {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls" if said.calls else "stop"}]}
    )
    if usage and said.tokens:
        into, read, wrote, out = said.tokens
        details = {"cached_tokens": read, "cache_write_tokens": wrote}
        counted = {"prompt_tokens": into, "completion_tokens": out, "total_tokens": into + out}
        rows.append({**base, "choices": [], "usage": {**counted, "prompt_tokens_details": details}})
    return sse(rows, done=True)


def responses(said: Said) -> bytes:
    """Events of Responses, as OpenAI sends them: words in deltas, each item once more when it is done."""
    items: list[dict[str, Any]] = []
    if said.thinking:
        items.append({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": said.thinking}]})
    if said.text:
        part = {"type": "output_text", "text": said.text, "annotations": []}
        items.append({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]})
    for id_, name, arguments in said.calls:
        call = {"type": "function_call", "id": f"fc_{id_}", "call_id": id_, "name": name, "namespace": "mcp__x"}
        items.append({**call, "arguments": json.dumps(arguments), "status": "completed"})
    head = {"id": "resp_1", "object": "response", "model": "gpt-5.2"}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**head, "status": "in_progress", "output": [], "usage": None}}
    ]
    for number, item in enumerate(items):
        events.append({"type": "response.output_item.added", "output_index": number, "item": {**item, "content": []}})
        if item["type"] == "message":
            for piece in pieces(said.text):
                told = {"item_id": "msg_1", "output_index": number, "content_index": 0, "delta": piece}
                events.append({"type": "response.output_text.delta", **told})
        events.append({"type": "response.output_item.done", "output_index": number, "item": item})
    usage: dict[str, Any] | None = None
    if said.tokens:
        into, read, wrote, out = said.tokens
        details = {"cached_tokens": read, "cache_write_tokens": wrote}
        usage = {
            "input_tokens": into,
            "input_tokens_details": details,
            "output_tokens": out,
            "total_tokens": into + out,
        }
    whole = {**head, "status": "completed", "output": items, "usage": usage}
    return sse([*events, {"type": "response.completed", "response": whole}], named=True)


def gemini_chunks(said: Said) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = [{"text": piece, "thought": True} for piece in pieces(said.thinking)]
    parts += [{"text": piece} for piece in pieces(said.text)]
    for id_, name, arguments in said.calls:
        parts.append({"functionCall": {"name": name, "args": arguments, "id": id_}, "thoughtSignature": "U0lH"})
    chunks: list[dict[str, Any]] = [
        {"candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}], "modelVersion": "gemini-3-pro"}
        for part in parts
    ]
    chunks.append({"candidates": [{"content": {"role": "model", "parts": []}, "finishReason": "STOP", "index": 0}]})
    if said.tokens:
        into, read, _, out = said.tokens
        for number, chunk in enumerate(chunks):
            last = number == len(chunks) - 1
            counted = {"promptTokenCount": into, "cachedContentTokenCount": read, "candidatesTokenCount": out - 7}
            chunk["usageMetadata"] = {**counted, "thoughtsTokenCount": 7} if last else {"promptTokenCount": into}
    return chunks


def gemini_list(said: Said) -> bytes:
    """Gemini's stream without `alt=sse`: a list that grows."""
    return b"[" + b",\r\n".join(json.dumps(one, indent=1).encode() for one in gemini_chunks(said)) + b"]"


def converse_events(said: Said) -> list[tuple[str, dict[str, Any]]]:
    events: list[tuple[str, dict[str, Any]]] = [("messageStart", {"role": "assistant", "p": "abc"})]
    index = 0
    if said.thinking:
        for piece in pieces(said.thinking):
            events.append(
                ("contentBlockDelta", {"contentBlockIndex": index, "delta": {"reasoningContent": {"text": piece}}})
            )
        events.append(("contentBlockStop", {"contentBlockIndex": index}))
        index += 1
    if said.text:
        for piece in pieces(said.text):
            events.append(("contentBlockDelta", {"contentBlockIndex": index, "delta": {"text": piece}}))
        events.append(("contentBlockStop", {"contentBlockIndex": index}))
        index += 1
    for id_, name, arguments in said.calls:
        start = {"toolUse": {"toolUseId": id_, "name": name}}
        events.append(("contentBlockStart", {"contentBlockIndex": index, "start": start}))
        for piece in pieces(json.dumps(arguments)):
            events.append(("contentBlockDelta", {"contentBlockIndex": index, "delta": {"toolUse": {"input": piece}}}))
        events.append(("contentBlockStop", {"contentBlockIndex": index}))
        index += 1
    events.append(("messageStop", {"stopReason": "tool_use" if said.calls else "end_turn"}))
    told: dict[str, Any] = {"metrics": {"latencyMs": 5}}
    if said.tokens:
        into, read, wrote, out = said.tokens
        counted = {"inputTokens": into - read - wrote, "outputTokens": out, "totalTokens": into + out}
        told["usage"] = {**counted, "cacheReadInputTokens": read, "cacheWriteInputTokens": wrote}
    return [*events, ("metadata", told)]


def amazon(said: Said) -> bytes:
    """ConverseStream's frames."""
    return b"".join(frame(name, json.dumps(payload).encode()) for name, payload in converse_events(said))


def invoked(said: Said) -> bytes:
    """The frames of InvokeModelWithResponseStream for a model of Anthropic's: each event in base64."""
    chunks = []
    for event in anthropic_events(said):
        if event["type"] == "message_stop":
            event = {**event, "amazon-bedrock-invocationMetrics": {"inputTokenCount": 1, "outputTokenCount": 1}}
        told = {"bytes": base64.b64encode(json.dumps(event).encode()).decode(), "p": "abcd"}
        chunks.append(frame("chunk", json.dumps(told).encode()))
    return b"".join(chunks)


WAYS: dict[str, tuple[str, str]] = {
    "anthropic": ("anthropic", SSE),
    "openai_chat": ("openai_chat", SSE),
    "openai_responses": ("openai_responses", SSE),
    "gemini": ("gemini", SSE),
    "gemini list": ("gemini", JSON),
    "converse": ("converse", AMAZON),
    "invoke": ("anthropic", AMAZON),
}
"""Each way in which an answer is streamed: its format, its content type."""


def stream(way: str, said: Said) -> bytes:
    """An answer, streamed in one of `WAYS`."""
    if way == "anthropic":
        return sse(anthropic_events(said), named=True)
    if way == "gemini":
        return sse(gemini_chunks(said))
    made = {
        "openai_chat": chat,
        "openai_responses": responses,
        "gemini list": gemini_list,
        "converse": amazon,
        "invoke": invoked,
    }
    return made[way](said)
