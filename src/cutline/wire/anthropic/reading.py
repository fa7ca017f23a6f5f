"""Anthropic Messages: how its bodies are read, and the rules that are its own.

Law: reading is one pass over the raw bytes and never repairs; a duplicate of a key that the cut steers by, a
message that is not one of Anthropic's, or any other doubt raises `Unreadable`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

from ... import spans
from ...blocks import Block, Kind, Message, Span, ToolCall, address
from ...errors import Unreadable
from ...spans import DOUBTS, scan, skip
from .signature import WITH_CALL as SIGNED_WITH_CALL
from .signature import may_be_narration, signed_narration

# Block types in requests (docs/wire.md, 1.1). A type that is not here is unknown: kept and reported.
_KINDS = {
    "text": Kind.TEXT,
    "tool_use": Kind.CALL,
    "tool_result": Kind.RESULT,
    "thinking": Kind.THINKING,
    "redacted_thinking": Kind.THINKING,
    "connector_text": Kind.THINKING,
    "image": Kind.IMAGE,
    "document": Kind.DOCUMENT,
    "search_result": Kind.DOCUMENT,
    "container_upload": Kind.DOCUMENT,
    "server_tool_use": Kind.CALL,
    "mcp_tool_use": Kind.CALL,
    "mcp_tool_result": Kind.RESULT,
    "web_search_tool_result": Kind.RESULT,
    "web_fetch_tool_result": Kind.RESULT,
    "code_execution_tool_result": Kind.RESULT,
    "bash_code_execution_tool_result": Kind.RESULT,
    "text_editor_code_execution_tool_result": Kind.RESULT,
    "tool_search_tool_result": Kind.RESULT,
    "advisor_tool_result": Kind.RESULT,
    "mcp_tool_listing": Kind.CONTROL,
    "compaction": Kind.CONTROL,
    "fallback": Kind.CONTROL,
    "tool_addition": Kind.CONTROL,
    "tool_removal": Kind.CONTROL,
}
TEXT, CALL, RESULT = Kind.TEXT, Kind.CALL, Kind.RESULT  # an enum's members are slow to look up by attribute
MARK = "cache_control"
_new: Any = tuple.__new__  # makes a named tuple in a third of the time that its own constructor takes
_STEERING = frozenset(
    ("type", "id", "name", "text", "input", "tool_use_id", "content", "is_error", "thinking", "signature", "data")
)
_STEERING_ABOVE = frozenset(("model", "thinking", "tools", "thread", "system"))
_HEAD = re.compile(
    r'\{[ \t\n\r]*"role"[ \t\n\r]*:[ \t\n\r]*"(user|assistant|system)"[ \t\n\r]*,'
    r'[ \t\n\r]*"content"[ \t\n\r]*:[ \t\n\r]*'
).match

# A human's refusal or interruption, as Claude Code and opencode write it into the result.
REFUSALS = (
    "The user rejected permission to use this specific tool call",
    "The user doesn't want to proceed with this tool use",
    "The user doesn't want to take this action right now",
    "[Request interrupted by user",
)
# Claude Code's answers to a repeated read or fetch: they point back to a result that a cut may have removed.
STUBS = (
    "Wasted call — file unchanged since your last Read",
    "File unchanged since last read. The content from the earlier Read tool_result",
    "Already fetched http",  # a repeated WebFetch, from 2.1.332 on
)
# As they stand in a view, and as they come out of JSON escapes.
_STUBS_VIEW = (*(text.encode().decode("latin-1") for text in STUBS), *STUBS)
# Words that a person typed while the agent worked: the client appends them to the result at hand.
QUEUED = "The user sent a new message while you were working:"
_REMINDED = ("</system-reminder>", "</system-reminder>\n")
_MARKED = REFUSALS + _STUBS_VIEW


@dataclass(frozen=True, slots=True)
class Request:
    """A body that was read.

    Attributes:
        body: the bytes; every span in `messages` is an offset into them.
        view: their latin-1 view.
        messages: the messages in order.
        model: the model's name, or None.
        thinking: the `type` of the body's thinking configuration ("enabled", "adaptive" …), or None.
        tools: names of the tools that the body declares.
        held: why the history can't be cut here because the server holds a part of it; "" if it does not.
        start: where the list of messages starts.
        above: what was read of the members that stand before it.
    """

    body: bytes
    view: str
    messages: list[Message]
    model: str | None
    thinking: str | None
    tools: tuple[str, ...]
    held: str
    start: int
    above: dict[str, Any]


def read(body: bytes, known: Request | None = None, upto: int = 0) -> Request:
    """Read a body, once, from left to right.

    Args:
        body: an Anthropic Messages request body.
        known, upto: a request with which this body shares all bytes up to the end of the message before
            `upto`; the caller has compared them, and they are not read again.

    Raises:
        Unreadable: the first doubt and its byte offset.
    """
    known = known if upto else None
    text = spans.view(body, known.messages[upto - 1].end if known else 0)
    try:
        return _read(body, text, known, upto)
    except DOUBTS as error:
        raise spans.doubt(error, text) from None


def _read(body: bytes, text: str, known: Request | None, upto: int) -> Request:
    messages: list[Message] | None = None
    seen: dict[str, Any] = {}
    above, first = seen, 0
    if known is None:
        at = skip(text, 0)
        if text[at : at + 1] != "{":
            raise Unreadable("not a JSON object", at)
        at = skip(text, at + 1)
        more = text[at] != "}"
        if not more:
            at += 1
    else:
        above, first = known.above, known.start
        seen.update(above)
        messages, end = _messages(text, first, known.messages[:upto])
        at, more = spans.after(text, end, "}")
    while more:
        if text[at] != '"':
            raise ValueError(f"a key is expected at byte {at}")
        key, end = scan(text, at)
        colon = skip(text, end)
        if text[colon] != ":":
            raise ValueError(f"a colon is expected at byte {colon}")
        start = skip(text, colon + 1)
        if key == "messages":
            if messages is not None:
                raise Unreadable("the key “messages” stands twice", at)
            above, first = dict(seen), start
            messages, end = _messages(text, start, [])
        elif key in _OTHERS and text[start] == "[" and messages is None and text.find('"messages"', start) < 0:
            raise Unreadable(_other_format({key: None}), 0)  # its history need not be read here
        else:
            value, end = scan(text, start)
            if key == "tools":
                value = _tool_names(text, start, value)
            if key in seen and key in _STEERING_ABOVE:
                raise Unreadable(f"the key “{key}” stands twice", at)
            seen[key] = value if key in _STEERING_ABOVE else None
        at, more = spans.after(text, end, "}")
    if skip(text, at) != len(text):
        raise Unreadable("more bytes behind the JSON object", at)
    if messages is None:
        raise Unreadable(_other_format(seen), 0)
    model = seen.get("model")
    thinking = dict(_object(seen.get("thinking"))).get("type")
    thread = dict(_object(seen.get("thread"))).get("type")
    return Request(
        body,
        text,
        messages,
        model if isinstance(model, str) else None,
        thinking if isinstance(thinking, str) else None,
        seen.get("tools", ()),
        "the history is held by the server (thread: continue)" if thread == "continue" else "",
        first,
        above,
    )


def _object(value: Any) -> tuple[tuple[str, Any], ...]:
    return value if isinstance(value, tuple) else ()


def _tool_names(text: str, at: int, tools: Any) -> tuple[str, ...]:
    """The names in the list of tools at `at`, which was scanned to `tools`."""
    if type(tools) is not list:
        return ()
    names = [name for tool in tools if type(name := dict(_object(tool)).get("name")) is str]
    if "".join(names).isascii():
        return tuple(names)
    starts = [start for start, _ in spans.elements(text, at)[0] if text[start] == "{"]
    exact = [_exact(text, start, "name") for start in starts if type(dict(scan(text, start)[0]).get("name")) is str]
    return tuple(exact)


_OTHERS = ("input", "contents")
"""Where other formats have their history."""


def _other_format(seen: dict[str, Any]) -> str:
    if "input" in seen:
        return "not an Anthropic Messages body (it looks like OpenAI Responses)"
    if "contents" in seen:
        return "not an Anthropic Messages body (it looks like Gemini generateContent)"
    return "not a request body (no “messages”)"


def _messages(text: str, at: int, known: list[Message]) -> tuple[list[Message], int]:
    if text[at] != "[":
        raise Unreadable("“messages” is not a list", at)
    found = list(known)
    if known:
        at, more = spans.after(text, known[-1].end, "]")
        if not more:
            return found, at
    else:
        at = skip(text, at + 1)
        if text[at] == "]":
            return found, at + 1
    append = found.append
    while True:
        message = _message(text, at)
        append(message)
        end = message.end
        # The usual case, written out: a comma and the next message directly behind it.
        if text[end] == "," and text[end + 1] == "{":
            at = end + 1
            continue
        at, more = spans.after(text, end, "]")
        if not more:
            return found, at


def _message(text: str, at: int) -> Message:
    head = _HEAD(text, at)
    if head is None:
        return _unusual_message(text, at)
    start = head.end()
    string, blocks, end = _content(text, start)
    content = _new(Span, (start, end))
    if text[end] == "}":
        made: Message = _new(Message, (head[1], at, end + 1, content, string, blocks, True))
        return made
    follows, more = spans.after(text, end, "}")
    if more:
        return _unusual_message(text, at)
    return Message(head[1], at, follows, content, string, blocks, True)


def _unusual_message(text: str, at: int) -> Message:
    """A message with other members than role and content, or in another order."""
    found, end = spans.members(text, at)
    keys = [member.key for member in found]
    if len(set(keys)) != len(keys):
        raise Unreadable("a key stands twice in a message", at)
    if "tool_calls" in keys or "function_call" in keys or "tool_call_id" in keys:
        raise Unreadable("not an Anthropic message (it looks like OpenAI Chat Completions)", at)
    places = {member.key: member for member in found}
    if "role" not in places or "content" not in places:
        raise Unreadable("a message without role or content", at)
    role = scan(text, places["role"].start)[0]
    if role not in ("user", "assistant", "system"):
        raise Unreadable(f"a message of the unknown role {role!r}", at)
    content = places["content"]
    string, blocks, _ = _content(text, content.start)
    return Message(role, at, end, Span(content.start, content.end), string, blocks, len(keys) == 2)


def _content(text: str, at: int) -> tuple[bool, tuple[Block, ...], int]:
    """The content at `at`: whether it is a string, its blocks, and the index behind it."""
    opening = text[at]
    if opening == '"':
        end = scan(text, at)[1]
        return True, (Block(TEXT, "text", at, end),), end
    if opening != "[":
        raise Unreadable("a message's content is neither a string nor a list", at)
    at += 1
    if text[at] != "{":
        at = skip(text, at)
        if text[at] == "]":
            return False, (), at + 1
    found: list[Block] = []
    while True:
        pairs, end = scan(text, at)
        if type(pairs) is not tuple:
            raise Unreadable("a content block is no object", at)
        block = dict(pairs)
        if len(block) != len(pairs):
            _refuse_twins(pairs, at)
        type_ = block.get("type")
        # Ordered by how often each occurs: this loop runs once for every block of a body.
        if type_ == "tool_use":
            id_, name = block.get("id"), block.get("name")
            if type(id_) is not str or type(name) is not str:
                raise Unreadable("a tool_use block without id or name", at)
            if not (id_.isascii() and name.isascii()):
                id_, name = _exact(text, at, "id"), _exact(text, at, "name")
            found.append(_new(Block, (CALL, "tool_use", at, end, id_, name, False, False, MARK in block)))
        elif type_ == "tool_result":
            id_ = block.get("tool_use_id")
            if type(id_) is not str:
                raise Unreadable("a tool_result block without tool_use_id", at)
            if not id_.isascii():
                id_ = _exact(text, at, "tool_use_id")
            mark = of_content(block.get("content"))
            error = block.get("is_error") is True
            found.append(_new(Block, (RESULT, "tool_result", at, end, id_, mark, error, False, MARK in block)))
        elif type_ == "text":
            if type(block.get("text")) is not str:
                raise Unreadable("a text block without text", at)
            found.append(_new(Block, (TEXT, "text", at, end, "", "", False, False, MARK in block)))
        else:
            found.append(_rarer(text, block, type_, at, end))
        if text[end] == "]":
            return False, tuple(found), end + 1
        if text[end] == "," and text[end + 1] == "{":
            at = end + 1
            continue
        at, more = spans.after(text, end, "]")
        if not more:
            return False, tuple(found), at


def _exact(text: str, at: int, key: str) -> str:
    """A string member that is not ASCII, decoded as what it is: in the view one character is one byte."""
    found = next(member for member in spans.members(text, at)[0] if member.key == key)
    return str(spans.decode(text[found.start : found.end].encode("latin-1")))


def _refuse_twins(pairs: tuple[tuple[str, Any], ...], at: int) -> None:
    keys = [key for key, _ in pairs]
    twice = next((key for key in keys if key in _STEERING and keys.count(key) > 1), None)
    if twice:
        raise Unreadable(f"the key “{twice}” stands twice in a content block", at)


def _rarer(text: str, block: dict[str, Any], type_: Any, start: int, end: int) -> Block:
    """A block that is no text, no client's call and no client's result."""
    if type(type_) is not str:
        raise Unreadable("a content block without a type (another wire format?)", start)
    kind, marked = _KINDS.get(type_, Kind.UNKNOWN), MARK in block
    if kind is RESULT:
        id_ = block.get("tool_use_id")
        if type(id_) is not str:
            raise Unreadable(f"a {type_} block without tool_use_id", start)
        id_ = id_ if id_.isascii() else _exact(text, start, "tool_use_id")
        return Block(kind, type_, start, end, id_, "", False, True, marked)
    if kind is CALL:
        id_, name = block.get("id"), block.get("name")
        if type(id_) is not str or type(name) is not str:
            raise Unreadable(f"a {type_} block without id or name", start)
        if not (id_.isascii() and name.isascii()):
            id_, name = _exact(text, start, "id"), _exact(text, start, "name")
        return Block(kind, type_, start, end, id_, name, False, True, marked)
    if type_ == "thinking":
        signature = block.get("signature")
        if type(block.get("thinking")) is not str:
            raise Unreadable("a thinking block without thinking", start)
        return Block(kind, type_, start, end, "", of_signature(signature))
    id_ = block.get("tool_use_id")
    return Block(kind, type_, start, end, id_ if kind is Kind.UNKNOWN and type(id_) is str else "")


REFUSED, STUB, LOADS, NARRATION, WITH_CALL = "refused", "stub", "loads", "narration", "with call"
"""What the `name` of a block that is no call says of it: a human's refusal, an answer that points back, a
loader of tools, thinking that was shown to the human, thinking that stays with a call of its message."""
SIGNED = b',"signed":true}'
"""How the literal of a call ends that signs the step it opens, in what is read of the formats that have such calls."""


def of_signature(signature: Any) -> str:
    """What a thinking block's scanned signature says of it."""
    if type(signature) is not str:
        return ""
    if signature == SIGNED_WITH_CALL:
        return WITH_CALL
    return NARRATION if may_be_narration(signature) and signed_narration(signature) else ""


def of_content(content: Any) -> str:
    """What a result's scanned content says of it."""
    if type(content) is str:
        # Most say nothing: told apart without a call.
        return _mark(content) if content.startswith(_MARKED) or content.endswith(_REMINDED) else ""
    return _mark_list(content)


_MAY_BEGIN = tuple(f'"{text[:12]}' for text in _MARKED)
_LOOKED_AT = 1 + max(map(len, _MARKED))


def of_literal(text: str, start: int, end: int) -> str:
    """What a result's content says of it, where that is the string whose literal is ``text[start:end]``."""
    tail = end - 6 * len(_REMINDED[1])
    if not (
        text.startswith(_MAY_BEGIN, start)
        or text.find("system-reminder", tail, end) >= 0
        or text.find("\\u", start, start + _LOOKED_AT) >= 0
        or text.find("\\u", tail, end) >= 0
    ):
        return ""  # told apart without decoding it
    return of_content(scanstring(text, start + 1, True)[0])


def _mark(content: str) -> str:
    if content.endswith(_REMINDED) and QUEUED in content:
        return REFUSED
    if not content.startswith(_MARKED):
        return ""
    return STUB if content.startswith(_STUBS_VIEW) else REFUSED


def _mark_list(content: Any) -> str:
    if type(content) is not list or not content:
        return ""
    if any(dict(_object(item)).get("type") == "tool_reference" for item in content):
        return LOADS
    texts = [dict(_object(item)).get("text") for item in content]
    if type(texts[-1]) is str and texts[-1].endswith(_REMINDED):
        return _mark("\n".join(text for text in texts if type(text) is str))
    return _mark(texts[0]) if type(texts[0]) is str else ""


# ---------------------------------------------------------------------------------------------- literals


_TEXT_HEAD = '{"type":"text","text":"'


def text_start(request: Request, block: Block) -> int:
    """Where `text_span` starts; its end costs a scan."""
    view, start = request.view, block.start
    if view[start] == '"':
        return start + 1
    return start + len(_TEXT_HEAD) if view.startswith(_TEXT_HEAD, start) else text_span(request, block).start


def text_span(request: Request, block: Block) -> Span:
    """The inside of the JSON string literal that holds a text's, or a thinking block's, words."""
    view, start = request.view, block.start
    if view[start] == '"':
        return Span(start + 1, block.end - 1)
    if view.startswith(_TEXT_HEAD, start):  # as nearly every client writes it
        start += len(_TEXT_HEAD)
        return Span(start, scan(view, start - 1)[1] - 1)
    span = _value(request, block, "thinking" if block.kind is Kind.THINKING else "text")
    assert span is not None and view[span.start] == '"'  # the reader has checked it
    return Span(span.start + 1, span.end - 1)


def weight(request: Request, block: Block) -> int:
    """Bytes of a block's literal without its cache mark, its comma and its white space included.

    A mark wanders from request to request, and what is weighed must not change with it.
    """
    size = block.end - block.start
    if not block.marked:
        return size
    found = spans.members(request.view, block.start)[0]
    number = next(number for number, member in enumerate(found) if member.key == MARK)
    if number:
        return size - (found[number].end - found[number - 1].end)
    behind = found[1].at if len(found) > 1 else block.end - 1
    return size - (behind - found[0].at)


def is_bare_text(request: Request, block: Block) -> bool:
    """A text block without members beside its type and its text, written as nearly every client writes it."""
    view = request.view
    if block.kind is not TEXT or not view.startswith(_TEXT_HEAD, block.start):
        return False
    return scan(view, block.start + len(_TEXT_HEAD) - 1)[1] == block.end - 1


def member(request: Request, block: Block, key: str) -> bytes | None:
    """The raw value of a member of a block, or None."""
    span = _value(request, block, key)
    return None if span is None else request.body[span.start : span.end]


# A key behind short members, as nearly every client writes it: it spares the walk over all members.
_BEHIND_SHORT = {
    key: re.compile(r'\{(?:"[a-z_]+": ?(?:"[^"\\]*+"|true|false|null), ?)*?"' + key + r'": ?(?=\S)').match
    for key in ("input", "content", "text", "thinking")
}


def _value(request: Request, block: Block, key: str) -> Span | None:
    view = request.view
    if key in _BEHIND_SHORT:
        head = _BEHIND_SHORT[key](view, block.start)
        if head is not None:
            return Span(head.end(), scan(view, head.end())[1])
    for found in spans.members(view, block.start)[0]:
        if found.key == key:
            return Span(found.start, found.end)
    return None


def words(request: Request, block: Block) -> str:
    """The words of a text or of a thinking block, decoded; lone surrogates stay."""
    start, end = text_span(request, block)
    return str(scanstring(request.body[start : end + 1].decode("utf-8"), 0, True)[0])


def result_text(request: Request, block: Block) -> str:
    """The texts of a result's content, joined by newlines; other content is named in brackets."""
    span = _value(request, block, "content")
    if span is None:
        return ""
    literal = request.body[span.start : span.end]
    if literal[:1] == b'"':
        return str(scanstring(literal.decode("utf-8"), 1, True)[0])
    return plain(spans.decode(literal))


def embedded(request: Request, block: Block) -> list[int]:
    """Characters of each piece of base64 data in a block, at whatever depth: images and other files."""
    found = []
    stack = [scan(request.view, block.start)[0]]
    while stack:
        value = stack.pop()
        if isinstance(value, tuple):
            pairs = dict(value)
            data = pairs.get("data")
            if pairs.get("type") == "base64" and isinstance(data, str):
                found.append(len(data))
            else:
                stack.extend(pairs.values())
        elif isinstance(value, list):
            stack.extend(value)
    return found


def plain(content: Any) -> str:
    """The text of a decoded result content."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = []
    for item in content:
        if isinstance(item, dict):
            found = item.get("text")
            parts.append(found if isinstance(found, str) else f"[{item.get('type', 'block')}]")
    return "\n".join(parts)


def call(request: Request, made: Block, batch: int, answer: Block | None) -> ToolCall:
    """Read a call and its result out of the body."""
    arguments = member(request, made, "input") or b"{}"
    return ToolCall(
        made.name,
        arguments,
        None if answer is None else result_text(request, answer),
        answer is not None and answer.error,
        batch,
        address(made.id, made.name, arguments),
    )
