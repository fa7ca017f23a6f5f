"""A scripted answer in each provider's words: whole, streamed, and where it is an error.

Law: pure; shapes and events as the providers send them, every member that their SDKs ask for, nothing signed for real.
Sources: https://docs.claude.com/en/docs/build-with-claude/streaming,
https://platform.openai.com/docs/api-reference/responses-streaming, …/chat-streaming,
https://ai.google.dev/api/generate-content.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

Body = dict[str, Any]
Stop = Literal["", "length", "refusal"]
FORMATS = ("anthropic", "openai_responses", "openai_chat", "gemini")
_PIECE = 24  # characters of a delta


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call that the model makes.

    Attributes:
        name: the tool's.
        arguments: its arguments.
        id: the provider's id of it; "" for one made of the request that it answers.
    """

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""


class Tokens(NamedTuple):
    """What an answer says that it cost, in tokens: all input, how much of it a cache gave and took, and the output."""

    input: int
    read: int
    wrote: int
    output: int


@dataclass(frozen=True, slots=True)
class Spoken:
    """An answer that is about to be given.

    Attributes:
        number: counts the answers, for their ids.
        model: who answers.
        thinking, text: the words; "" for none.
        calls: each with its id.
        stop: why the model stopped, where it is not that it was done.
        tokens: what it says that it cost.
    """

    number: int
    model: str
    thinking: str
    text: str
    calls: Sequence[Call]
    stop: Stop
    tokens: Tokens


def call_id(format: str, digest: str) -> str:
    """An id as the provider makes them."""
    return ("toolu_" if format == "anthropic" else "call_") + digest


def whole(format: str, spoken: Spoken) -> Body:
    """The answer, as it comes where no stream was asked for."""
    return _WHOLE[format](spoken)


def events(format: str, spoken: Spoken, *, usage: bool = True) -> Iterator[bytes]:
    """The answer as server-sent events, each with what ends it.

    Args:
        format: one of `FORMATS`.
        spoken: the answer.
        usage: whether Chat Completions tell what it cost, which they do where the request asks for it.
    """
    if format == "openai_chat":
        return _chat_events(spoken, usage)
    return _EVENTS[format](spoken)


def error(format: str, status: int, message: str) -> tuple[int, Body]:
    """An error answer in place of a model's: its status and body. 529 is Anthropic's own; others call it 503."""
    if format == "anthropic":
        kind, said = _ANTHROPIC_ERRORS.get(status, ("api_error", "Internal server error"))
        told = {"type": kind, "message": message or said}
        return status, {"type": "error", "error": told, "request_id": "req_scripted"}
    status = 503 if status == 529 else status
    if format == "gemini":
        name, said = _GEMINI_ERRORS.get(status, ("INTERNAL", "An internal error has occurred."))
        return status, {"error": {"code": status, "message": message or said, "status": name}}
    kind, code, said = _OPENAI_ERRORS.get(status, ("server_error", None, "The server had an error."))
    return status, {"error": {"message": message or said, "type": kind, "param": None, "code": code}}


def broken(format: str, status: int, message: str) -> bytes:
    """The same as an event in the middle of a stream."""
    told = error(format, status, message)[1]
    if format == "anthropic":
        return _named(told)
    if format == "openai_responses":
        inside = told["error"]
        return _named({"type": "error", "code": inside["code"] or inside["type"], "message": inside["message"],
                       "param": None, "sequence_number": 0})  # fmt: skip
    return _data(told, b"\r\n\r\n" if format == "gemini" else b"\n\n")


_ANTHROPIC_ERRORS = {
    400: ("invalid_request_error", "Invalid request"),
    401: ("authentication_error", "invalid x-api-key"),
    404: ("not_found_error", "Not found"),
    413: ("request_too_large", "Request exceeds the maximum size"),
    429: ("rate_limit_error", "This request would exceed your account's rate limit. Please try again later."),
    529: ("overloaded_error", "Overloaded"),
}
_OPENAI_ERRORS = {
    400: ("invalid_request_error", None, "Invalid request."),
    401: ("invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    404: ("invalid_request_error", "model_not_found", "The model does not exist."),
    429: ("requests", "rate_limit_exceeded", "Rate limit reached. Please try again later."),
    503: ("service_unavailable_error", None, "The engine is currently overloaded, please try again later."),
}
_GEMINI_ERRORS = {
    400: ("INVALID_ARGUMENT", "Request contains an invalid argument."),
    401: ("UNAUTHENTICATED", "API key not valid."),
    404: ("NOT_FOUND", "The model is not found."),
    429: ("RESOURCE_EXHAUSTED", "You exceeded your current quota."),
    503: ("UNAVAILABLE", "The model is overloaded. Please try again later."),
}


def _pieces(words: str) -> Iterator[str]:
    return (words[at : at + _PIECE] for at in range(0, len(words), _PIECE))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _data(value: Body, end: bytes = b"\n\n") -> bytes:
    return b"data: " + _json(value).encode() + end


def _named(value: Body) -> bytes:
    return f"event: {value['type']}\n".encode() + _data(value)


def _seal(number: int) -> str:
    """What stands for a signature: base64, as the SDKs want it, and nothing that could fool anybody."""
    return base64.b64encode(b"not a real signature %d" % number).decode()


# ---------------------------------------------------------------------------------------------- Anthropic Messages


def _anthropic(spoken: Spoken) -> Body:
    content: list[Body] = []
    if spoken.thinking:
        content.append({"type": "thinking", "thinking": spoken.thinking, "signature": _seal(spoken.number)})
    if spoken.text:
        content.append({"type": "text", "text": spoken.text})
    content += [{"type": "tool_use", "id": one.id, "name": one.name, "input": one.arguments} for one in spoken.calls]
    why = {"length": "max_tokens", "refusal": "refusal"}.get(spoken.stop, "tool_use" if spoken.calls else "end_turn")
    used = spoken.tokens
    usage = {"input_tokens": used.input - used.read - used.wrote, "cache_creation_input_tokens": used.wrote,
             "cache_read_input_tokens": used.read, "output_tokens": used.output}  # fmt: skip
    return {"id": f"msg_scripted_{spoken.number:04}", "type": "message", "role": "assistant", "model": spoken.model,
            "content": content, "stop_reason": why, "stop_sequence": None, "usage": usage}  # fmt: skip


def _anthropic_events(spoken: Spoken) -> Iterator[bytes]:
    message = _anthropic(spoken)
    usage = message["usage"]
    begun = {**message, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    yield _named({"type": "message_start", "message": begun})
    yield _named({"type": "ping"})
    for index, block in enumerate(message["content"]):
        empty, deltas = _parted(block)
        yield _named({"type": "content_block_start", "index": index, "content_block": empty})
        for delta in deltas:
            yield _named({"type": "content_block_delta", "index": index, "delta": delta})
        yield _named({"type": "content_block_stop", "index": index})
    stop = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield _named({"type": "message_delta", "delta": stop, "usage": usage})
    yield _named({"type": "message_stop"})


def _parted(block: Body) -> tuple[Body, list[Body]]:
    """A block as its empty beginning and what fills it."""
    if block["type"] == "text":
        return {**block, "text": ""}, [{"type": "text_delta", "text": piece} for piece in _pieces(block["text"])]
    if block["type"] == "thinking":
        words: list[Body] = [{"type": "thinking_delta", "thinking": piece} for piece in _pieces(block["thinking"])]
        sealed = {"type": "signature_delta", "signature": block["signature"]}
        return {**block, "thinking": "", "signature": ""}, [*words, sealed]
    given = ["", *_pieces(_json(block["input"]))]
    return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": piece} for piece in given]


# ------------------------------------------------------------------------------------------------ OpenAI Responses


def _responses(spoken: Spoken) -> Body:
    output: list[Body] = []
    if spoken.thinking:
        summary = [{"type": "summary_text", "text": spoken.thinking}]
        sealed = {"encrypted_content": _seal(spoken.number)}
        output.append({"id": f"rs_{spoken.number:04}", "type": "reasoning", "summary": summary, **sealed})
    if spoken.text:
        said = {"type": "output_text", "text": spoken.text, "annotations": [], "logprobs": []}
        output.append({"id": f"msg_{spoken.number:04}", "type": "message", "status": "completed", "role": "assistant",
                       "content": [said]})  # fmt: skip
    output += [
        {"id": f"fc_{one.id}", "type": "function_call", "status": "completed", "call_id": one.id, "name": one.name,
         "arguments": _json(one.arguments)}
        for one in spoken.calls
    ]  # fmt: skip
    used = spoken.tokens
    usage = {"input_tokens": used.input, "output_tokens": used.output, "total_tokens": used.input + used.output,
             "input_tokens_details": {"cached_tokens": used.read},
             "output_tokens_details": {"reasoning_tokens": 0}}  # fmt: skip
    why = {"length": "max_output_tokens", "refusal": "content_filter"}.get(spoken.stop)
    return {
        "id": f"resp_{spoken.number:04}", "object": "response", "created_at": 1, "model": spoken.model,
        "status": "incomplete" if why else "completed", "error": None,
        "incomplete_details": {"reason": why} if why else None, "instructions": None, "metadata": {},
        "output": output, "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "temperature": 1.0,
        "top_p": 1.0, "usage": usage,
    }  # fmt: skip


def _responses_events(spoken: Spoken) -> Iterator[bytes]:
    response = _responses(spoken)
    begun = {**response, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    told: list[Body] = [{"type": f"response.{state}", "response": begun} for state in ("created", "in_progress")]
    for index, item in enumerate(response["output"]):
        told += _item_events(item, index)
    told.append({"type": f"response.{response['status']}", "response": response})
    for number, event in enumerate(told):
        yield _named({**event, "sequence_number": number})


def _item_events(item: Body, index: int) -> Iterator[Body]:
    """An item's beginning, what fills it, and its end."""
    at = {"item_id": item["id"], "output_index": index}
    if item["type"] == "reasoning":
        begun = {**item, "summary": []}
        filled = _part_events("response.reasoning_summary_part", "response.reasoning_summary_text",
                              {**at, "summary_index": 0}, item["summary"][0])  # fmt: skip
    elif item["type"] == "message":
        begun = {**item, "status": "in_progress", "content": []}
        filled = _part_events("response.content_part", "response.output_text",
                              {**at, "content_index": 0}, item["content"][0])  # fmt: skip
    else:
        begun = {**item, "status": "in_progress", "arguments": ""}
        deltas: Body = {"type": "response.function_call_arguments.delta", **at}
        filled = iter([
            *({**deltas, "delta": piece} for piece in _pieces(item["arguments"])),
            {"type": "response.function_call_arguments.done", **at, "arguments": item["arguments"],
             "name": item["name"]},
        ])  # fmt: skip
    yield {"type": "response.output_item.added", "output_index": index, "item": begun}
    yield from filled
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _part_events(part_name: str, text_name: str, at: Body, part: Body) -> Iterator[Body]:
    more: Body = {"logprobs": []} if "logprobs" in part else {}
    yield {"type": f"{part_name}.added", **at, "part": {**part, "text": ""}}
    for piece in _pieces(part["text"]):
        yield {"type": f"{text_name}.delta", **at, "delta": piece, **more}
    yield {"type": f"{text_name}.done", **at, "text": part["text"], **more}
    yield {"type": f"{part_name}.done", **at, "part": part}


# ------------------------------------------------------------------------------------------- OpenAI Chat Completions


def _chat_head(spoken: Spoken, kind: str) -> Body:
    return {"id": f"chatcmpl-{spoken.number:04}", "object": kind, "created": 1, "model": spoken.model}


def _chat_finish(spoken: Spoken) -> str:
    why = {"length": "length", "refusal": "content_filter"}
    return why.get(spoken.stop, "tool_calls" if spoken.calls else "stop")


def _chat_usage(spoken: Spoken) -> Body:
    used = spoken.tokens
    return {"prompt_tokens": used.input, "completion_tokens": used.output, "total_tokens": used.input + used.output,
            "prompt_tokens_details": {"cached_tokens": used.read}}  # fmt: skip


def _chat_calls(spoken: Spoken) -> list[Body]:
    return [
        {"id": one.id, "type": "function", "function": {"name": one.name, "arguments": _json(one.arguments)}}
        for one in spoken.calls
    ]


def _chat(spoken: Spoken) -> Body:
    message: Body = {"role": "assistant", "content": spoken.text or None}
    if spoken.thinking:
        message["reasoning_content"] = spoken.thinking  # as DeepSeek's and many local servers have it
    if spoken.calls:
        message["tool_calls"] = _chat_calls(spoken)
    choice = {"index": 0, "message": message, "finish_reason": _chat_finish(spoken), "logprobs": None}
    return {**_chat_head(spoken, "chat.completion"), "choices": [choice], "usage": _chat_usage(spoken)}


def _chat_events(spoken: Spoken, usage: bool) -> Iterator[bytes]:
    head = _chat_head(spoken, "chat.completion.chunk")
    deltas: list[Body] = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": piece} for piece in _pieces(spoken.thinking)]
    deltas += [{"content": piece} for piece in _pieces(spoken.text)]
    for index, call in enumerate(_chat_calls(spoken)):
        given = call["function"]["arguments"]
        deltas.append({"tool_calls": [{"index": index, **call, "function": {**call["function"], "arguments": ""}}]})
        deltas += [{"tool_calls": [{"index": index, "function": {"arguments": one}}]} for one in _pieces(given)]
    for delta in deltas:
        yield _data({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    yield _data({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": _chat_finish(spoken)}]})
    if usage:
        yield _data({**head, "choices": [], "usage": _chat_usage(spoken)})
    yield b"data: [DONE]\n\n"


# --------------------------------------------------------------------------------------------------------- Gemini


def _gemini_answer(spoken: Spoken, parts: Sequence[Body], *, last: bool) -> Body:
    candidate: Body = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    used = spoken.tokens
    usage: Body = {"promptTokenCount": used.input, "totalTokenCount": used.input + (used.output if last else 0)}
    if used.read:
        usage["cachedContentTokenCount"] = used.read
    if last:
        candidate["finishReason"] = {"length": "MAX_TOKENS", "refusal": "SAFETY"}.get(spoken.stop, "STOP")
        usage["candidatesTokenCount"] = used.output
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": spoken.model,
            "responseId": f"scripted_{spoken.number:04}"}  # fmt: skip


def _gemini_calls(spoken: Spoken) -> list[Body]:
    """The first call of an answer carries the signature, parallel ones none (docs/wire.md, 4)."""
    made: list[Body] = [
        {"functionCall": {"id": one.id, "name": one.name, "args": one.arguments}} for one in spoken.calls
    ]
    return [{**one, "thoughtSignature": _seal(spoken.number)} if not number else one for number, one in enumerate(made)]


def _gemini(spoken: Spoken) -> Body:
    parts: list[Body] = [{"text": spoken.thinking, "thought": True}] if spoken.thinking else []
    parts += [{"text": spoken.text}] if spoken.text else []
    return _gemini_answer(spoken, [*parts, *_gemini_calls(spoken)], last=True)


def _gemini_events(spoken: Spoken) -> Iterator[bytes]:
    parts: list[Body] = [{"text": piece, "thought": True} for piece in _pieces(spoken.thinking)]
    parts += [{"text": piece} for piece in _pieces(spoken.text)]
    parts += _gemini_calls(spoken)
    for number, part in enumerate(parts or [{"text": ""}]):
        last = number >= len(parts) - 1
        yield _data(_gemini_answer(spoken, [part], last=last), b"\r\n\r\n")


_WHOLE = {"anthropic": _anthropic, "openai_responses": _responses, "openai_chat": _chat, "gemini": _gemini}
_EVENTS = {
    "anthropic": _anthropic_events,
    "openai_responses": _responses_events,
    "gemini": _gemini_events,
}
