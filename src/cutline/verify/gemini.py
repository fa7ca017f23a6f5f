"""Gemini bodies (WIRE_RULES 4) as the proof reads them. Law: facts only, and the proof's own (see `foreign`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import Unreadable
from . import shape
from .tree import Node

if TYPE_CHECKING:
    from .foreign import Foreign

GEMINI_CALLS = (b"functionCall", b"function_call")
GEMINI_ANSWERS = (b"functionResponse", b"function_response")
GEMINI_RUN = (b"executableCode", b"executable_code", b"toolCall", b"tool_call")
GEMINI_RAN = (b"codeExecutionResult", b"code_execution_result", b"toolResponse", b"tool_response")
GEMINI_FILES = (b"inlineData", b"inline_data", b"fileData", b"file_data")


def translate(body: Foreign, index: int, item: Node) -> None:
    """One item of the history."""
    role = body.string(item.get(b"role")) or "user"
    if role not in ("user", "model", "function"):
        raise Unreadable("a content of an unknown role", item.start)
    speaker = "assistant" if role == "model" else "user"
    parts = item.get(b"parts")
    before = body.history.elements[index - 1] if index else None
    goes_on = before is not None and role == "model" == body.string(before.get(b"role"))
    if not goes_on:
        body.part()
    if role == "model" and not goes_on:
        body.waiting, body.running = [], []
    if parts is None or not parts.elements:
        body.say(speaker, shape.control(body.raw(item)), index, item)
        return
    for part in parts.elements:
        body.say(*_gemini_part(body, part, speaker), index, part, b"parts")


def _gemini_part(body: Foreign, part: Node, speaker: str) -> tuple[str, bytes]:
    def held(keys: tuple[bytes, ...]) -> Node | None:
        return next((node for key in keys if (node := part.get(key)) is not None), None)

    raw, text, thought = body.raw(part), part.get(b"text"), part.get(b"thought")
    if (call := held(GEMINI_CALLS)) is not None:
        name, id_ = body.string(call.get(b"name")), body.string(call.get(b"id")) or body.give()
        if not name:
            raise Unreadable("a call without a name", part.start)
        body.waiting.append((name, id_))
        given = call.get(b"args")
        signed = any(body.string(part.get(key)) for key in (b"thoughtSignature", b"thought_signature"))
        return "assistant", shape.call(id_, name, body.raw(given) if given is not None else b"{}", signed=signed)
    if (answer := held(GEMINI_ANSWERS)) is not None:
        return "user", _gemini_answer(body, answer)
    if thought is not None and body.raw(thought) == b"true":
        return speaker, shape.thought(raw)
    if text is not None and text.kind == '"':
        return speaker, shape.text(body.raw(text), shape.also(body, part, (b"text", b"thought")))
    if speaker == "assistant" and (run := held(GEMINI_RUN)) is not None:
        body.running.append(body.give())
        name = next(key for key in GEMINI_RUN if part.get(key) is not None).decode()
        return speaker, shape.call(body.running[-1], name, body.raw(run), own=True)
    if speaker == "assistant" and (ran := held(GEMINI_RAN)) is not None:
        return speaker, shape.ran(body.running.pop(0) if body.running else body.give(), body.raw(ran))
    if held(GEMINI_FILES) is not None:
        return speaker, shape.attached(raw) if speaker == "user" else shape.control(raw)
    return speaker, shape.unknown(part.members[0][0].decode("utf-8", "surrogatepass") if part.members else "part", raw)


def _gemini_answer(body: Foreign, answer: Node) -> bytes:
    name, id_ = body.string(answer.get(b"name")), body.string(answer.get(b"id"))
    fits = [one for one in body.waiting if one[1] == id_] or [one for one in body.waiting if one[0] == name]
    if fits:
        id_ = fits[0][1]
        body.waiting.remove(fits[0])
    id_ = id_ or body.give()
    response = answer.get(b"response")
    if response is None:
        return shape.result(id_, shape.quote("{}"))
    texts = [response.get(b"output"), response.get(b"result")]
    told = next((body.raw(text) for text in texts if text is not None and text.kind == '"'), None)
    failed = response.get(b"error") is not None
    return shape.result(id_, told if told is not None else _gemini_object(body, response), failed)


def _gemini_object(body: Foreign, response: Node) -> bytes:
    """A response without a text, as text; in an output, with what was added to it behind (WIRE_RULES 10)."""
    notice = response.get(b"cutline_notice")
    if notice is None or notice.kind != '"' or not body.is_output:
        return shape.quoted(body.raw(response))
    place = [name for name, _ in response.members].index(b"cutline_notice")
    start = response.members[place - 1][1].end if place else response.start + 1
    whole = body.data[response.start : start] + body.data[notice.end : response.end]
    return shape.quoted(whole)[:-1] + b"\\n\\n" + body.raw(notice)[1:]
