"""A conversation with checkpoints, told as each provider's SDK would send it; every word is ours.

`growing` gives the bodies of its requests in order: each is the one before with what was answered and what came of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from cutline import tools

FORMATS = ("anthropic", "openai_chat", "openai_responses", "gemini", "converse")
PATHS = {
    "anthropic": "/v1/messages",
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "gemini": "/v1beta/models/gemini-3-pro:generateContent",
    "converse": "/model/some.model/converse",
}
GO = "Do all parts agree?"
DOCUMENT = {"done": "parts read", "open": "the rest", "went_wrong": "nothing"}


def result(number: int, lines: int = 60) -> str:
    """What reading a part gives."""
    return "\n".join(f"row_{n} = {n * (number + 3)}  # of part {number}" for n in range(lines))


def intent(number: int) -> str:
    """What is said before the call."""
    return (
        f"I read part_{number:02}.py, because its rows decide whether the parts agree; I expect {number + 3} per row."
    )


def steps(parts: int, checkpoints: tuple[int, ...]) -> Iterator[tuple[str, str, str, dict[str, Any], str]]:
    """Words, id, tool, arguments and result of each call."""
    for number in range(parts):
        if number in checkpoints:
            yield (
                f"{number} parts agree: checkpoint.",
                f"call_c{number}",
                "micro_handoff",
                DOCUMENT,
                "checkpoint stored",
            )
        yield intent(number), f"call_r{number}", "read", {"path": f"part_{number:02}.py"}, result(number)


def growing(format: str, parts: int = 6, checkpoints: tuple[int, ...] = (3, 5)) -> list[bytes]:
    """The bodies of one conversation's requests, in order."""
    bodies = []
    told: list[Any] = []
    for step in (None, *steps(parts, checkpoints)):
        told += [_human(format)] if step is None else _step(format, *step)
        bodies.append(json.dumps(_whole(format, told)).encode())
    return bodies


def _whole(format: str, told: list[Any]) -> dict[str, Any]:
    """A body that declares Cutline's tools, with what else a format's SDKs send."""
    if format == "anthropic":
        return {"model": "claude-sonnet-4-5", "max_tokens": 100, "messages": told, "tools": tools("anthropic")}
    if format == "openai_chat":
        messages = [{"role": "system", "content": "Be brief."}, *told]
        return {"model": "gpt-5.2", "messages": messages, "tools": tools("openai-chat")}
    if format == "openai_responses":
        return {"model": "gpt-5.2", "store": False, "input": told, "tools": tools("openai-responses")}
    if format == "gemini":
        config = {"functionCallingConfig": {"mode": "VALIDATED"}}
        return {"contents": told, "tools": tools("gemini"), "toolConfig": config}
    return {"messages": told, "toolConfig": {"tools": tools("converse")}}


def _human(format: str) -> Any:
    if format == "gemini":
        return {"role": "user", "parts": [{"text": GO}]}
    return {"role": "user", "content": [{"text": GO}] if format == "converse" else GO}


def _step(format: str, words: str, id: str, tool: str, arguments: dict[str, Any], gives: str) -> list[Any]:
    if format == "anthropic":
        made = {"type": "tool_use", "id": id, "name": tool, "input": arguments}
        return [
            {"role": "assistant", "content": [{"type": "text", "text": words}, made]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": gives}]},
        ]
    if format == "openai_chat":
        function = {"name": tool, "arguments": json.dumps(arguments)}
        calls = [{"id": id, "type": "function", "function": function}]
        return [
            {"role": "assistant", "content": words, "tool_calls": calls},
            {"role": "tool", "tool_call_id": id, "content": gives},
        ]
    if format == "openai_responses":
        said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": words}]}
        made = {"type": "function_call", "call_id": id, "name": tool, "arguments": json.dumps(arguments)}
        return [said, made, {"type": "function_call_output", "call_id": id, "output": gives}]
    if format == "gemini":
        answered = {"functionResponse": {"name": tool, "response": {"output": gives}}}
        return [
            {"role": "model", "parts": [{"text": words}, {"functionCall": {"name": tool, "args": arguments}}]},
            {"role": "user", "parts": [answered]},
        ]
    made = {"toolUse": {"toolUseId": id, "name": tool, "input": arguments}}
    answered = {"toolResult": {"toolUseId": id, "content": [{"text": gives}]}}
    return [{"role": "assistant", "content": [{"text": words}, made]}, {"role": "user", "content": [answered]}]


def with_answer(format: str, answered: dict[str, Any]) -> bytes:
    """A body whose last call, a checkpoint of the id "c", is answered so."""
    told = [_human(format), *_step(format, intent(0), "r", "read", {"path": "part_00.py"}, result(0))]
    *made, last = _step(format, "Checkpoint.", "c", "micro_handoff", DOCUMENT, "")
    if format in ("openai_chat", "openai_responses"):
        return json.dumps(_whole(format, [*told, *made, answered])).encode()
    inner = "parts" if format == "gemini" else "content"
    return json.dumps(_whole(format, [*told, *made, {**last, inner: [answered]}])).encode()


def answer(format: str, words: str = "ok", tokens: tuple[int, int] = (1_000, 20)) -> dict[str, Any]:
    """A whole answer of text, with the provider's counters of input and output tokens."""
    into, out = tokens
    if format == "anthropic":
        usage = {"input_tokens": into, "output_tokens": out}
        content = [{"type": "text", "text": words}]
        head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5"}
        return {**head, "content": content, "stop_reason": "end_turn", "stop_sequence": None, "usage": usage}
    if format == "openai_chat":
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": words}}
        usage = {"prompt_tokens": into, "completion_tokens": out, "total_tokens": into + out}
        head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-5.2"}
        return {**head, "choices": [choice], "usage": usage}
    if format == "openai_responses":
        said = {"type": "output_text", "text": words, "annotations": []}
        item = {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": [said]}
        usage = {"input_tokens": into, "output_tokens": out, "total_tokens": into + out}
        usage |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
        head = {"id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-5.2", "status": "completed"}
        return {**head, "output": [item], "usage": usage}
    if format == "gemini":
        candidate = {"content": {"role": "model", "parts": [{"text": words}]}, "finishReason": "STOP", "index": 0}
        usage = {"promptTokenCount": into, "candidatesTokenCount": out, "totalTokenCount": into + out}
        return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-3-pro"}
    message = {"role": "assistant", "content": [{"text": words}]}
    usage = {"inputTokens": into, "outputTokens": out, "totalTokens": into + out}
    return {"output": {"message": message}, "stopReason": "end_turn", "usage": usage}
