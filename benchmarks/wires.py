"""The proxy benchmark's sessions and answers on each provider's wire: one recorded history, told in its format.

A session grows behind a checkpoint, one call a request, as an agent's does; each body is the one before with a call
and its result put behind. The answers are the shortest complete streams that the formats allow.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import workload

Item = dict[str, Any]

TURNS = 60
SYSTEM = "You are a coding agent. " * 800


def _sse(*events: str, named: bool = False, ends: str = "") -> bytes:
    lines = (f"event: {json.loads(one)['type']}\n" if named else "" for one in events)
    return "".join(f"{name}data: {one}\n\n" for name, one in zip(lines, events, strict=True)).encode() + ends.encode()


ANTHROPIC = _sse(
    '{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],'
    '"model":"claude-opus-4-7","stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":1}}}',
    '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}',
    '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"ok"}}',
    '{"type":"content_block_stop","index":0}',
    '{"type":"message_delta","usage":{"output_tokens":1},"delta":{"stop_reason":"end_turn","stop_sequence":null}}',
    '{"type":"message_stop"}',
    named=True,
)
CHAT = _sse(
    '{"id":"c1","object":"chat.completion.chunk","created":1,"model":"gpt-5.2","choices":[{"index":0,'
    '"delta":{"role":"assistant","content":"ok"},"finish_reason":null}]}',
    '{"id":"c1","object":"chat.completion.chunk","created":1,"model":"gpt-5.2","choices":[{"index":0,"delta":{},'
    '"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":1,"total_tokens":10}}',
    ends="data: [DONE]\n\n",
)
RESPONSES = _sse(
    '{"type":"response.output_text.delta","output_index":0,"content_index":0,"item_id":"m1","delta":"ok"}',
    '{"type":"response.completed","response":{"id":"r1","object":"response","status":"completed","model":"gpt-5.2",'
    '"output":[{"type":"message","id":"m1","role":"assistant","status":"completed","content":[{"type":"output_text",'
    '"text":"ok","annotations":[]}]}],"usage":{"input_tokens":9,"output_tokens":1,"total_tokens":10}}}',
    named=True,
)
GEMINI = _sse(
    '{"candidates":[{"content":{"role":"model","parts":[{"text":"ok"}]},"finishReason":"STOP","index":0}],'
    '"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":1,"totalTokenCount":10},"modelVersion":"gemini-3-pro"}',
)


def answer(path: str) -> bytes:
    """What the upstream answers at a path, query and prefix left aside."""
    path = path.partition("?")[0]
    ends = {"/chat/completions": CHAT, "/responses": RESPONSES, ":streamGenerateContent": GEMINI}
    return next((told for end, told in ends.items() if path.endswith(end)), ANTHROPIC)


# ------------------------------------------------------------------------------------------- one history, told four ways


def _blocks(message: Item) -> list[Item]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _words(content: Any) -> str:
    """A result as text."""
    if isinstance(content, str):
        return content
    return "\n".join(one.get("text", "[image]") for one in content or [])


def _anthropic(messages: list[Item]) -> list[Item]:
    return messages


def _chat(messages: list[Item]) -> list[Item]:
    items: list[Item] = []
    for message in messages:
        said: Item = {"role": message["role"], "content": ""}
        for block in _blocks(message):
            if block["type"] == "text":
                said["content"] += ("\n\n" if said["content"] else "") + block["text"]
            elif block["type"] == "tool_use":
                told = {"name": block["name"], "arguments": json.dumps(block["input"], ensure_ascii=False)}
                said.setdefault("tool_calls", []).append({"id": block["id"], "type": "function", "function": told})
            elif block["type"] == "tool_result":
                content = _words(block.get("content"))
                items.append({"role": "tool", "tool_call_id": block["tool_use_id"], "content": content})
        if said["content"] or "tool_calls" in said:
            items.append(said)
    return items


def _responses(messages: list[Item]) -> list[Item]:
    items: list[Item] = []
    for message in messages:
        kind = "output_text" if message["role"] == "assistant" else "input_text"
        for block in _blocks(message):
            if block["type"] == "text":
                content = [{"type": kind, "text": block["text"]}]
                items.append({"type": "message", "role": message["role"], "content": content})
            elif block["type"] == "tool_use":
                told = json.dumps(block["input"], ensure_ascii=False)
                call = {"type": "function_call", "call_id": block["id"], "name": block["name"], "arguments": told}
                items.append(call)
            elif block["type"] == "tool_result":
                output = _words(block.get("content"))
                items.append({"type": "function_call_output", "call_id": block["tool_use_id"], "output": output})
    return items


def _gemini(messages: list[Item]) -> list[Item]:
    items: list[Item] = []
    names: dict[str, str] = {}
    for message in messages:
        parts: list[Item] = []
        for block in _blocks(message):
            if block["type"] == "text":
                parts.append({"text": block["text"]})
            elif block["type"] == "tool_use":
                names[block["id"]] = block["name"]
                parts.append({"functionCall": {"id": block["id"], "name": block["name"], "args": block["input"]}})
            elif block["type"] == "tool_result":
                id = block["tool_use_id"]
                told = {"id": id, "name": names.get(id, "Bash"), "response": {"output": _words(block.get("content"))}}
                parts.append({"functionResponse": told})
        if parts:
            items.append({"role": "model" if message["role"] == "assistant" else "user", "parts": parts})
    return items


@dataclass(frozen=True)
class Wire:
    """A format: its name for people, where it is asked, what a body begins with, its list's end, its items."""

    title: str
    path: str
    top: Callable[[], Item]
    last: str
    tail: str
    items: Callable[[list[Item]], list[Item]]


def _functions() -> list[Item]:
    return [
        {"name": one["name"], "description": one["description"], "parameters": one["input_schema"]}
        for one in workload.tools()
    ]


def _anthropic_top() -> Item:
    system = [{"type": "text", "text": SYSTEM}]
    return {
        "model": "claude-opus-4-7",
        "max_tokens": 32_000,
        "system": system,
        "tools": workload.tools(),
        "thinking": {"type": "adaptive"},
    }


def _chat_top() -> Item:
    return {"model": "gpt-5.2", "tools": [{"type": "function", "function": one} for one in _functions()]}


def _responses_top() -> Item:
    tools = [{"type": "function", **one} for one in _functions()]
    return {"model": "gpt-5.2", "store": False, "instructions": SYSTEM, "tools": tools}


def _gemini_top() -> Item:
    tools = [{"functionDeclarations": _functions()}]
    return {"systemInstruction": {"parts": [{"text": SYSTEM}]}, "tools": tools}


WIRES = {
    "anthropic": Wire(
        "Anthropic Messages",
        "/v1/messages?beta=true",
        _anthropic_top,
        "messages",
        ',"stream":true}',
        _anthropic,
    ),
    "openai_chat": Wire("OpenAI Chat", "/v1/chat/completions", _chat_top, "messages", ',"stream":true}', _chat),
    "openai_responses": Wire(
        "OpenAI Responses", "/v1/responses", _responses_top, "input", ',"stream":true}', _responses
    ),
    "gemini": Wire(
        "Gemini",
        "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse",
        _gemini_top,
        "contents",
        "}",
        _gemini,
    ),
}


def session(size: int, format: str = "anthropic", turns: int = TURNS) -> list[bytes]:
    """The bodies of a session that begins at about that size and grows behind a checkpoint, a call a request."""
    wire = WIRES[format]
    top = _json(wire.top())
    room = max(20_000, size - len(top))
    messages: list[Item] = []
    weight = 0
    for message in workload.chained(workload.histories()[0], room):
        weight += len(json.dumps(message, ensure_ascii=False))
        messages.append(message)
        if weight >= room and message["role"] == "user":
            break
    fits = [
        n
        for n in range(int(0.9 * len(messages)), len(messages))
        if messages[n - 1]["role"] != "assistant" and messages[n]["role"] == "assistant"
    ]
    messages[fits[0] : fits[0]] = workload.turn()
    told = [*([{"role": "system", "content": SYSTEM}] if format == "openai_chat" else []), *wire.items(messages)]
    body = top[:-1] + f',"{wire.last}":'.encode() + _json(told)[:-1]
    bodies = []
    for number in range(turns):
        body += b"," + _json(wire.items(_turn(number)))[1:-1]
        bodies.append(body + b"]" + wire.tail.encode())
    return bodies


def small(format: str = "anthropic") -> list[bytes]:
    """Bodies of about 2 KB, without a checkpoint: one question each."""
    wire = WIRES[format]
    top = {key: value for key, value in wire.top().items() if key not in ("tools", "system", "instructions")}
    asked = [{"role": "user", "content": "Which of these files is the longest, and why?\n" + "src/module.py\n" * 130}]
    return [_json({**top, wire.last: wire.items(asked)})[:-1] + wire.tail.encode()] * TURNS


def _turn(number: int) -> list[Item]:
    call = {"type": "tool_use", "id": f"toolu_new{number}", "name": "Bash", "input": {"command": f"pytest -q {number}"}}
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": "3 passed in 0.12s\n" * 60}
    said = {"type": "text", "text": f"Running the tests once more, the {number}th time."}
    return [{"role": "assistant", "content": [said, call]}, {"role": "user", "content": [result]}]


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")
