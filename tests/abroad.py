"""Generated histories in the other wire formats: a drawn Anthropic history, told anew as each of them would be sent.

What a format has and Anthropic's has not is drawn too: reasoning in its several members, ids and phases, signatures, cache
points, calls without ids, both spellings. `said` reads the words out of a body again, with a parser of its own.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

import histories
from histories import History, Style, write

Body = dict[str, Any]
Message = dict[str, Any]


def _blocks(message: Message) -> list[dict[str, Any]]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _result(block: dict[str, Any]) -> str:
    content = block.get("content", "")
    if isinstance(content, str):
        return content
    return "\n".join(item.get("text", f"[{item['type']}]") for item in content) if isinstance(content, list) else "…"


def _name(name: str) -> str:
    return name.replace(".", "_")


class Teller:
    """Tells one history; `dice` decides what the history leaves open."""

    def __init__(self, history: History, seed: int) -> None:
        self.messages, self.dice = history.messages, random.Random(seed)
        self.model = self.dice.choice(("gpt-5.2", "deepseek-reasoner", "some-local-model"))

    def one_in(self, share: int) -> bool:
        return self.dice.randrange(share) == 0


def openai_chat(history: History, seed: int) -> Body:
    """A Chat Completions body."""
    told = Teller(history, seed)
    reasoning = told.dice.choice(("reasoning_content", "reasoning", "reasoning_details", ""))
    ids = not told.one_in(6)
    out: list[Message] = [{"role": "system", "content": "You are a coding agent."}]
    for message in told.messages:
        blocks, texts = _blocks(message), [block["text"] for block in _blocks(message) if block["type"] == "text"]
        if message["role"] == "system":
            out.append({"role": told.dice.choice(("system", "developer")), "content": " ".join(texts) or "be brief"})
        elif message["role"] == "user":
            out += [
                {
                    "role": "tool",
                    **({"tool_call_id": block["tool_use_id"]} if ids else {"tool_name": "x"}),
                    "content": told.dice.choice((_result(block), [{"type": "text", "text": _result(block)}])),
                }
                for block in blocks
                if block["type"] == "tool_result"
            ]
            parts: list[Any] = [{"type": "text", "text": text} for text in texts]
            if any(block["type"] == "image" for block in blocks):
                parts.append({"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}})
            if len(parts) == 1 and texts and told.one_in(2):
                out.append({"role": "user", "content": texts[0]})
            elif parts:
                out.append({"role": "user", "content": parts})
        else:
            out += _chat_agent(told, blocks, texts, reasoning, ids)
    tools = [{"type": "function", "function": {"name": name}} for name in ("Bash", "mcp__cutline__recall")]
    return {"model": told.model, "messages": out, "tools": tools, "stream": True}


def _chat_agent(
    told: Teller, blocks: list[dict[str, Any]], texts: list[str], reasoning: str, ids: bool
) -> list[Message]:
    made: Message = {"role": "assistant"}
    calls = [block for block in blocks if block["type"] == "tool_use"]
    if len(texts) == 1 and not told.one_in(4):
        made["content"] = texts[0]
    elif texts:
        made["content"] = [{"type": "text", "text": text} for text in texts]
    elif calls:
        made["content"] = told.dice.choice((None, ""))
    else:
        return []
    if calls:
        made["tool_calls"] = [
            {
                **({"id": call["id"]} if ids else {}),
                "type": "function",
                "function": {"name": _name(call["name"]), "arguments": json.dumps(call["input"])},
            }
            for call in calls
        ]
    if reasoning and told.model == "deepseek-reasoner":
        made[reasoning] = (
            "let me think" if reasoning != "reasoning_details" else [{"type": "reasoning.text", "text": "x"}]
        )
    if told.one_in(8):
        made["refusal"] = None
    if told.one_in(12) and not calls:
        made["name"] = "somebody"
    return [made]


def openai_responses(history: History, seed: int) -> Body:
    """A Responses body, with reasoning before what it led to."""
    told = Teller(history, seed)
    stored = told.one_in(3)
    out: list[Message] = []
    for number, message in enumerate(told.messages):
        blocks = _blocks(message)
        if message["role"] == "system":
            text = " ".join(block.get("text", "x") for block in blocks)
            out.append({"type": "message", "role": "developer", "content": [{"type": "input_text", "text": text}]})
            continue
        if message["role"] == "user":
            for block in blocks:
                if block["type"] == "tool_result":
                    output: Any = _result(block)
                    output = [{"type": "input_text", "text": output}] if told.one_in(4) else output
                    out.append({"type": "function_call_output", "call_id": block["tool_use_id"], "output": output})
            parts = [{"type": "input_text", "text": block["text"]} for block in blocks if block["type"] == "text"]
            if any(block["type"] == "image" for block in blocks):
                parts.append({"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="})
            if parts:
                out.append({"type": "message", "role": "user", "content": parts})
            continue
        for index, block in enumerate(blocks):
            id_ = f"{number}_{index}"
            thinks = block["type"] in ("text", "tool_use") and told.one_in(3)
            if thinks:
                mark = {"id": f"rs_{id_}"} if stored else {}
                out.append({"type": "reasoning", **mark, "summary": [], "encrypted_content": "gAAA" + id_})
            own = {"id": f"it_{id_}"} if thinks and stored else {}
            if block["type"] == "text":
                part: Any = {"type": "output_text", "text": block["text"], "annotations": []}
                if told.one_in(8):
                    part["annotations"] = [{"type": "url_citation", "url": "u"}]
                phase = {"phase": told.dice.choice(("commentary", "final_answer"))} if told.one_in(4) else {}
                out.append({"type": "message", "role": "assistant", **own, "content": [part], **phase})
            elif block["type"] == "tool_use":
                arguments = json.dumps(block["input"]) if not told.one_in(12) else "not json"
                space = {"namespace": "mcp__cutline"} if block["name"] == "micro_handoff" else {}
                made = {"type": "function_call", "call_id": block["id"], "name": _name(block["name"]), **space}
                out.append({**made, **own, "arguments": arguments})
            elif block["type"] == "server_tool_use":
                out.append({"type": "web_search_call", "id": block["id"], "status": "completed", "action": {}})
    tools = [{"type": "function", "name": name, "parameters": {}} for name in ("Bash", "mcp__cutline__recall")]
    return {"model": "gpt-5.2", "input": out, "tools": tools, "store": stored, "stream": True}


def gemini(history: History, seed: int) -> Body:
    """A generateContent body, in either spelling."""
    told = Teller(history, seed)
    snake = told.one_in(4)
    calls, answers, signature = (
        ("function_call", "function_response", "thought_signature")
        if snake
        else ("functionCall", "functionResponse", "thoughtSignature")
    )
    names: dict[str, str] = {}
    ids, each = told.one_in(3), told.one_in(3)  # of parallel calls the first alone is signed, or each
    out: list[Message] = []
    for message in told.messages:
        blocks, parts = _blocks(message), []
        if message["role"] == "system":
            continue
        for block in blocks:
            if block["type"] == "text":
                part: Any = {"text": block["text"]}
                if message["role"] == "assistant" and told.one_in(6):
                    part[signature] = "U0lH"
                parts.append(part)
            elif block["type"] == "thinking":
                parts.append({"text": block["thinking"] or "hm", "thought": True})
            elif block["type"] == "tool_use":
                names[block["id"]] = _name(block["name"])
                call = {"name": names[block["id"]], "args": block["input"], **({"id": block["id"]} if ids else {})}
                first = not any(calls in part for part in parts)
                parts.append({calls: call, **({signature: "U0lH"} if first or each else {})})
            elif block["type"] == "tool_result":
                text = _result(block)
                response = told.dice.choice(({"output": text}, {"result": text}, {"content": {"text": text}}, {}))
                if block.get("is_error"):
                    response = {"error": text}
                elif "stored" in text or "refused" in text:
                    response = {"output": text}
                id_ = {"id": block["tool_use_id"]} if ids else {}
                parts.append({answers: {"name": names.get(block["tool_use_id"], "x"), **id_, "response": response}})
            elif block["type"] == "image":
                parts.append({"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}})
            elif block["type"] == "server_tool_use" and not snake:
                parts += [{"executableCode": {"code": "1"}}, {"codeExecutionResult": {"output": "1"}}]
        if not parts:
            continue
        role = "model" if message["role"] == "assistant" else "user"
        _add(out, role, parts, any(answers in part for part in parts))
    declared = [{"name": name} for name in ("Bash", "mcp__cutline__recall")]
    key = "function_declarations" if snake else "functionDeclarations"
    return {"contents": out, "tools": [{key: declared}]}


def _add(out: list[Message], role: str, parts: list[Any], answers: bool) -> None:
    """One more content; the model's neighbours are one, and a person's words don't join responses."""
    if out and out[-1]["role"] == role == "model":
        out[-1]["parts"] += parts
    elif out and out[-1]["role"] == role and not answers:
        out.append({"role": role, "parts": parts})
    else:
        out.append({"role": role, "parts": parts})


def converse(history: History, seed: int) -> Body:
    """A Converse body, roles in turn."""
    told = Teller(history, seed)
    manual = history.members.get("thinking", {}).get("type") == "enabled"
    out: list[Message] = []
    for message in told.messages:
        if message["role"] == "system":
            continue
        blocks: list[Any] = []
        for block in _blocks(message):
            if block["type"] == "text" and block["text"].strip():
                blocks.append({"text": block["text"]})
            elif block["type"] == "thinking" and block["thinking"]:
                text = {"text": block["thinking"], "signature": block.get("signature", "")}
                blocks.append({"reasoningContent": {"reasoningText": text}})
            elif block["type"] == "tool_use":
                use = {"toolUseId": block["id"], "name": _name(block["name"]), "input": block["input"]}
                blocks.append({"toolUse": use})
            elif block["type"] == "tool_result":
                inner: list[Any] = [{"text": _result(block) or "–"}]
                if told.one_in(6):
                    inner.append({"json": {"n": 1}})
                status = "error" if block.get("is_error") else "success"
                result = {"toolUseId": block["tool_use_id"], "content": inner, "status": status}
                blocks.append({"toolResult": result})
            elif block["type"] == "image":
                blocks.append({"image": {"format": "png", "source": {"bytes": "iVBORw0KGgo="}}})
        if not blocks or (message["role"] == "assistant" and all("reasoningContent" in block for block in blocks)):
            continue
        if told.one_in(6) and "reasoningContent" not in blocks[-1]:
            blocks.append({"cachePoint": {"type": "default"}})
        if out and out[-1]["role"] == message["role"]:
            out[-1]["content"] += blocks
        else:
            out.append({"role": message["role"], "content": blocks})
    tools = [{"toolSpec": {"name": name, "inputSchema": {"json": {}}}} for name in ("Bash", "mcp__cutline__recall")]
    body: Body = {"modelId": history.members.get("model") or "amazon.nova-pro-v1:0", "messages": out}
    body["toolConfig"] = {"tools": tools}
    if manual:
        body["additionalModelRequestFields"] = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
    return body


FORMATS: dict[str, Callable[[History, int], Body]] = {
    "openai_chat": openai_chat,
    "openai_responses": openai_responses,
    "gemini": gemini,
    "converse": converse,
}


@st.composite
def bodies(draw: histories.Draw, format: str, *, checkpoints: bool = True) -> bytes:
    """A body of a format, in a drawn spelling."""
    history = draw(histories.histories(checkpoints=checkpoints))
    style: Style = draw(histories.STYLES)
    return write(FORMATS[format](history, draw(st.integers(0, 1 << 30))), style).encode()


@st.composite
def growing(draw: histories.Draw, format: str) -> list[bytes]:
    """Bodies of one session, each longer than the one before."""
    history = draw(histories.histories(grows=True))
    style: Style = draw(histories.STYLES)
    seed = draw(st.integers(0, 1 << 30))
    return [write(FORMATS[format](one, seed), style).encode() for one in (history, *history.grown())]


# --------------------------------------------------------------------------------------------- reading again


def said(format: str, body: bytes) -> list[tuple[str, str]]:
    """Role and words of each text of agent and human, in order; blank ones are left out."""
    whole = json.loads(body)
    found: list[tuple[str, str]] = []
    for item in whole[{"openai_responses": "input", "gemini": "contents"}.get(format, "messages")]:
        role = "agent" if item.get("role") in ("assistant", "model") else "human"
        if item.get("role") in ("system", "developer", "tool") or item.get("type", "message") != "message":
            continue
        parts = item.get("parts", item.get("content"))
        for part in [{"text": parts}] if isinstance(parts, str) else parts or []:
            if isinstance(part.get("text"), str) and part["text"].strip() and not part.get("thought"):
                found.append((role, part["text"]))
    return found


def calls(format: str, body: bytes) -> list[str]:
    """Names of the calls that are left, in order."""
    return [
        word
        for word in _names(
            json.loads(body)[{"openai_responses": "input", "gemini": "contents"}.get(format, "messages")]
        )
    ]


def _names(value: Any) -> list[str]:
    if isinstance(value, list):
        return [name for one in value for name in _names(one)]
    if not isinstance(value, dict):
        return []
    for key in ("functionCall", "function_call", "toolUse", "function"):
        if isinstance(value.get(key), dict):
            return [value[key]["name"]]
    if value.get("type") == "function_call":
        return [value["name"]]
    return [name for one in value.values() for name in _names(one)]
