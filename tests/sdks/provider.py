"""A scripted provider of every format on loopback: one script, told as whoever asks wants it, streamed or whole.

It refuses what the validators refuse, and records every byte. Its token is four bytes.
"""

from __future__ import annotations

import json
import threading
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import validator
from live.upstream import events as anthropic_events
from loopback import Asked, Loopback, Told
from validators import gemini, openai_chat, openai_responses

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Turn:
    """One answer: words, and calls as (id, tool, arguments)."""

    words: str = ""
    calls: Sequence[tuple[str, str, dict[str, Any]]] = ()


@dataclass(frozen=True, slots=True)
class Posted:
    """A request that carried a history."""

    format: str
    raw: bytes

    @property
    def history(self) -> list[Any]:
        """Its messages, items or contents, without what moves from request to request."""
        whole = json.loads(self.raw)
        found = whole.get("messages") or whole.get("input") or whole["contents"]
        return [_unmarked(one) for one in found]


def _unmarked(value: Any) -> Any:
    """Without cache marks; a string for its one text."""
    if isinstance(value, list):
        return [_unmarked(one) for one in value]
    if not isinstance(value, dict):
        return value
    bare = {key: _unmarked(one) for key, one in value.items() if key != "cache_control"}
    if bare.get("role") and isinstance(bare.get("content"), str):
        bare["content"] = [{"type": "text", "text": bare["content"]}]
    return bare


@dataclass
class Provider:
    """A context manager; `url` is its root.

    Attributes:
        script: the answers, in turn; behind the last one it says "ok".
        failing: by the request's number from 0, a status that it is answered in place of the script's turn.
        packs: answers are sent in gzip where the client takes that.
        posted: requests that carried a history, refused ones too.
        refusals: what the validators said.
    """

    script: Sequence[Turn]
    failing: Mapping[int, int] = field(default_factory=dict)
    packs: bool = False
    posted: list[Posted] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._turn = 0
        self._lock = threading.Lock()
        self._server = Loopback(self._tell)

    @property
    def url(self) -> str:
        return self._server.url

    @property
    def unused(self) -> int:
        return len(self.script) - self._turn

    @property
    def asked(self) -> list[Asked]:
        return self._server.asked

    def __enter__(self) -> Provider:
        self._server.__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        self._server.__exit__(*raised)

    def _tell(self, asked: Asked) -> Told:
        format = _format(asked.target)
        if not format:
            return Told([b"{}"])
        with self._lock:
            number = len(self.posted)
            self.posted.append(Posted(format, asked.body))
            if number in self.failing:
                return _error(self.failing[number], "try again")
            faults = _FAULTS[format](asked.body)
            if faults:
                self.refusals += faults
                return _error(400, faults[0])
            turn = self.script[self._turn] if self._turn < len(self.script) else Turn("ok")
            self._turn += 1
        told = _ANSWERS[format](turn, number, len(asked.body) // 4)
        streamed = json.loads(asked.body).get("stream") or "streamGenerateContent" in asked.target
        chunks = list(_STREAMS[format](told)) if streamed else [json.dumps(told).encode()]
        headers = {"Content-Type": "text/event-stream" if streamed else "application/json"}
        if self.packs and "gzip" in asked.header("Accept-Encoding"):
            packer = zlib.compressobj(wbits=31)
            chunks = [packer.compress(chunk) + packer.flush(zlib.Z_SYNC_FLUSH) for chunk in chunks] + [packer.flush()]
            headers["Content-Encoding"] = "gzip"
        return Told(chunks, headers=headers)


def _format(target: str) -> str:
    path = target.partition("?")[0]
    if path.endswith(("/messages", "/invoke")):
        return "anthropic"
    if path.endswith("/chat/completions"):
        return "openai_chat"
    if path.endswith("/responses"):
        return "openai_responses"
    return "gemini" if path.endswith("enerateContent") else ""


_FAULTS = {
    "anthropic": validator.faults,
    "openai_chat": openai_chat.faults,
    "openai_responses": openai_responses.faults,
    "gemini": gemini.faults,
}


def _error(status: int, message: str) -> Told:
    error = {"type": "error", "error": {"type": "invalid_request_error", "code": status, "message": message}}
    return Told([json.dumps(error).encode()], status, {"Content-Type": "application/json", "Retry-After": "0"})


# --------------------------------------------------------------------------------------------------- whole answers


def _anthropic(turn: Turn, number: int, tokens: int) -> Body:
    content: list[Body] = [{"type": "text", "text": turn.words}] if turn.words else []
    content += [{"type": "tool_use", "id": id, "name": tool, "input": given} for id, tool, given in turn.calls]
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": content,
        "stop_reason": "tool_use" if turn.calls else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": tokens, "output_tokens": 20},
    }


def _chat(turn: Turn, number: int, tokens: int) -> Body:
    message: Body = {"role": "assistant", "content": turn.words or None}
    if turn.calls:
        message["tool_calls"] = [
            {"id": id, "type": "function", "function": {"name": tool, "arguments": json.dumps(given)}}
            for id, tool, given in turn.calls
        ]
    choice = {"index": 0, "finish_reason": "tool_calls" if turn.calls else "stop", "message": message}
    usage = {"prompt_tokens": tokens, "completion_tokens": 20, "total_tokens": tokens + 20}
    head = {"id": f"chatcmpl-{number}", "object": "chat.completion", "created": 1, "model": "gpt-5.2"}
    return {**head, "choices": [choice], "usage": usage}


def _responses(turn: Turn, number: int, tokens: int) -> Body:
    output: list[Body] = []
    if turn.words:
        said = {"type": "output_text", "text": turn.words, "annotations": [], "logprobs": []}
        output.append(
            {
                "type": "message",
                "id": f"msg_{number}",
                "status": "completed",
                "role": "assistant",
                "content": [said],
            }
        )
    output += [
        {
            "type": "function_call",
            "id": f"fc_{id}",
            "call_id": id,
            "name": tool,
            "arguments": json.dumps(given),
            "status": "completed",
        }
        for id, tool, given in turn.calls
    ]
    usage = {"input_tokens": tokens, "output_tokens": 20, "total_tokens": tokens + 20}
    usage_details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1,
        "model": "gpt-5.2",
        "status": "completed",
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "usage": {**usage, **usage_details},
    }


def _gemini(turn: Turn, number: int, tokens: int) -> Body:
    parts: list[Body] = [{"text": turn.words}] if turn.words else []
    parts += [{"functionCall": {"id": id, "name": tool, "args": given}} for id, tool, given in turn.calls]
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": tokens, "candidatesTokenCount": 20, "totalTokenCount": tokens + 20}
    return {
        "candidates": [candidate],
        "usageMetadata": usage,
        "modelVersion": "gemini-2.5-pro",
        "responseId": f"r{number}",
    }


_ANSWERS = {"anthropic": _anthropic, "openai_chat": _chat, "openai_responses": _responses, "gemini": _gemini}


# ------------------------------------------------------------------------------------------------ streamed answers


def _data(value: Body, end: bytes = b"\n\n") -> bytes:
    return b"data: " + json.dumps(value).encode() + end


def _chat_events(whole: Body) -> Iterator[bytes]:
    message, head = whole["choices"][0]["message"], {**whole, "object": "chat.completion.chunk"}
    del head["choices"], head["usage"]
    deltas: list[Body] = [{"role": "assistant", "content": message["content"]}]
    for index, call in enumerate(message.get("tool_calls", ())):
        given = call["function"]["arguments"]
        deltas.append({"tool_calls": [{**call, "index": index, "function": {**call["function"], "arguments": ""}}]})
        deltas += [
            {"tool_calls": [{"index": index, "function": {"arguments": piece}}]} for piece in (given[:9], given[9:])
        ]
    for delta in deltas:
        yield _data({**head, "choices": [{"index": 0, "finish_reason": None, "delta": delta}]})
    finish = whole["choices"][0]["finish_reason"]
    yield _data({**head, "choices": [{"index": 0, "finish_reason": finish, "delta": {}}]})
    yield _data({**head, "choices": [], "usage": whole["usage"]})
    yield b"data: [DONE]\n\n"


def _responses_events(whole: Body) -> Iterator[bytes]:
    count = 0

    def event(type_: str, **members: Any) -> bytes:
        nonlocal count
        count += 1
        told = {"type": type_, "sequence_number": count - 1, **members}
        return b"event: " + type_.encode() + b"\n" + _data(told)

    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    yield event("response.created", response=begun)
    yield event("response.in_progress", response=begun)
    for index, item in enumerate(whole["output"]):
        at = {"output_index": index, "item_id": item["id"]}
        open_ = {**item, "status": "in_progress"}
        if item["type"] == "message":
            part = item["content"][0]
            where = {**at, "content_index": 0}
            yield event("response.output_item.added", output_index=index, item={**open_, "content": []})
            yield event("response.content_part.added", **where, part={**part, "text": ""})
            for piece in (part["text"][:9], part["text"][9:]):
                yield event("response.output_text.delta", **where, delta=piece, logprobs=[])
            yield event("response.output_text.done", **where, text=part["text"], logprobs=[])
            yield event("response.content_part.done", **where, part=part)
        else:
            yield event("response.output_item.added", output_index=index, item={**open_, "arguments": ""})
            yield event("response.function_call_arguments.delta", **at, delta=item["arguments"])
            yield event("response.function_call_arguments.done", **at, arguments=item["arguments"], name=item["name"])
        yield event("response.output_item.done", output_index=index, item=item)
    yield event("response.completed", response=whole)


def _gemini_events(whole: Body) -> Iterator[bytes]:
    """A chunk for each part, the counters with the last."""
    candidate = whole["candidates"][0]
    parts = candidate["content"]["parts"]
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        told = {"content": {"role": "model", "parts": [part]}, "index": 0}
        more = {key: whole[key] for key in ("modelVersion", "responseId")}
        if last:
            told["finishReason"] = candidate["finishReason"]
            more["usageMetadata"] = whole["usageMetadata"]
        yield _data({"candidates": [told], **more}, b"\r\n\r\n")


_STREAMS = {
    "anthropic": anthropic_events,
    "openai_chat": _chat_events,
    "openai_responses": _responses_events,
    "gemini": _gemini_events,
}
