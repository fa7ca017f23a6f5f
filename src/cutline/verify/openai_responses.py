"""Responses bodies (WIRE_RULES 3) as the proof reads them. Law: facts only, and the proof's own (see `foreign`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import Unreadable
from . import shape
from .tree import Node

if TYPE_CHECKING:
    from .foreign import Foreign

RESPONSES_CALLS = {
    "function_call": b"arguments",
    "custom_tool_call": b"input",
    "local_shell_call": b"action",
    "shell_call": b"action",
    "apply_patch_call": b"operation",
    "computer_call": b"action",
    "tool_search_call": b"arguments",
    "program": b"code",
    "mcp_approval_request": b"arguments",
}
RESPONSES_ANSWERS = {
    "function_call_output": b"output",
    "custom_tool_call_output": b"output",
    "local_shell_call_output": b"output",
    "shell_call_output": b"output",
    "apply_patch_call_output": b"output",
    "computer_call_output": b"output",
    "program_output": b"output",
    "tool_search_output": b"tools",
    "mcp_approval_response": b"approve",
}
RESPONSES_SERVED = ("web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call")
RESPONSES_CONTROL = ("additional_tools", "configuration_update", "mcp_list_tools", "compaction_trigger")


def translate(body: Foreign, index: int, item: Node) -> None:
    """One item of the history."""
    role, raw = body.string(item.get(b"role")), body.raw(item)
    type_ = body.string(item.get(b"type")) or ("message" if item.get(b"role") is not None else "")
    for key in (b"previous_response_id", b"conversation"):
        node = body.root.get(key)
        if node is not None and body.raw(node) != b"null":
            body.held = "the server holds the history"
    if type_ == "message":
        _responses_message(body, index, item, role)
    elif type_ in RESPONSES_CALLS:
        id_ = body.string(item.get(b"call_id")) or body.string(item.get(b"id")) or body.give()
        name = body.string(item.get(b"name")) or type_.removesuffix("_call")
        if type_ == "function_call" and not body.string(item.get(b"name")):
            raise Unreadable("a call without a name", item.start)
        name = type_ if type_ == "tool_search_call" else name
        caller = item.get(b"caller")
        by = body.raw(caller) if caller is not None and caller.kind == "{" else b""
        body.waiting.append(("", id_))
        given = shape.arguments(body, item.get(RESPONSES_CALLS[type_]))
        body.say("assistant", shape.call(id_, name, given, caller=by), index, item)
    elif type_ in RESPONSES_ANSWERS:
        ids = [body.string(item.get(key)) for key in (b"call_id", b"approval_request_id", b"id")]
        id_ = next(filter(None, ids), "") or (body.waiting[0][1] if body.waiting else body.give())
        body.waiting = [one for one in body.waiting if one[1] != id_]
        held = item.get(RESPONSES_ANSWERS[type_])
        if held is not None and held.kind == '"':
            told = body.raw(held)
        elif held is not None and held.kind == "[":
            told = shape.texts(body, held)
        else:
            told = shape.quoted(body.raw(held) if held is not None else raw)
        body.say("user", shape.result(id_, told), index, item)
    elif type_ == "reasoning":
        body.say("assistant", shape.thought(raw), index, item)
    elif type_ in RESPONSES_SERVED:
        id_ = body.string(item.get(b"id")) or body.give()
        body.say("assistant", shape.call(id_, body.string(item.get(b"name")) or type_, raw, own=True), index, item)
        body.say("assistant", shape.ran(id_, b""), index, item)
        body.part()
    elif type_ == "compaction":
        body.part()
        body.say("assistant", shape.plain("compaction", "content", raw), index, item)
        body.part()
    elif type_ in RESPONSES_CONTROL:
        body.part()
        body.say("user", shape.control(raw), index, item)
    elif type_ in ("item_reference", ""):
        body.held = "the server holds an item"
        body.say("user", shape.control(raw), index, item)
    else:
        body.say("assistant", shape.unknown(type_, raw), index, item)
        body.part()


def _responses_message(body: Foreign, index: int, item: Node, role: str) -> None:
    if role not in ("user", "assistant", "system", "developer"):
        raise Unreadable("a message of an unknown role", item.start)
    content, speaker = item.get(b"content"), "assistant" if role == "assistant" else "user"
    if speaker == "user":
        body.part()
    listed = content is not None and content.kind == "[" and bool(content.elements)
    if role in ("system", "developer") or content is None or not (content.kind == '"' or listed):
        body.say(speaker, shape.control(body.raw(item)), index, item)
        return
    others = shape.also(body, item, (b"type", b"role", b"content", b"id", b"status")) if speaker == "assistant" else b""
    if content.kind == '"':
        body.say(speaker, shape.text(body.raw(content), others), index, content, b"content")
    for part in content.elements:
        type_, text, refusal = body.string(part.get(b"type")), part.get(b"text"), part.get(b"refusal")
        raw = body.raw(part)
        if type_ in ("input_text", "output_text", "text", "summary_text") and text is not None and text.kind == '"':
            block = shape.text(body.raw(text), others + shape.also(body, part, (b"type", b"text")))
        elif type_ == "refusal" and refusal is not None and refusal.kind == '"':
            block = shape.text(body.raw(refusal), b"refusal")
        elif type_ in ("input_image", "input_file", "input_audio"):
            block = shape.attached(raw) if speaker == "user" else shape.control(raw)
        else:
            block = shape.unknown(type_ or "part", raw)
        body.say(speaker, block, index, part, b"content")
