"""Bodies of other formats as the proof reads them: each in the one shape that the contract is applied to.

Law: facts only, and the proof's own: nothing here is shared with the cut's readers, so that a mistake in one shows.
Each block of the neutral shape knows the node of the body that it stands for.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ..errors import Unreadable
from .tree import Node, decode, read

LISTS = (b"messages", b"input", b"contents")
REASONING = (b"reasoning_content", b"reasoning", b"reasoning_details", b"thinking")
GEMINI_CALLS = (b"functionCall", b"function_call")
GEMINI_ANSWERS = (b"functionResponse", b"function_response")
GEMINI_RUN = (b"executableCode", b"executable_code", b"toolCall", b"tool_call")
GEMINI_RAN = (b"codeExecutionResult", b"code_execution_result", b"toolResponse", b"tool_response")
GEMINI_FILES = (b"inlineData", b"inline_data", b"fileData", b"file_data")
CONVERSE_FILES = (b"image", b"document", b"video", b"audio", b"searchResult", b"guardContent")
CONVERSE_CONTROL = (b"toolAddition", b"toolRemoval", b"citationsContent")
CONVERSE = (b"text", b"toolUse", b"toolResult", b"reasoningContent", b"cachePoint", *CONVERSE_FILES, *CONVERSE_CONTROL)
CHAT_FILES = ("image_url", "input_audio", "file", "image", "video_url", "audio_url", "document_url")
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


@dataclass(frozen=True, slots=True)
class Home:
    """What a block of the neutral shape stands for.

    Attributes:
        item: index of the item (message, item or content) in the body's history.
        node: its own literal: an element of a list, a member's value, or the item itself.
        key: the member of the item that holds it; b"" for the item itself.
    """

    item: int
    node: Node
    key: bytes


class Foreign:
    """A body that is not Anthropic's.

    Attributes:
        name: its format.
        data, root: the body.
        history: the node of the list that holds the history.
        homes: by number of the neutral block, what it stands for.
        made_up: numbers of blocks whose id the reader gave, and those ids, in order.
        held: why the server holds a part of the history; "" if it does not.
        is_output: it is what the cut made, read with the ids that are due.
    """

    def __init__(self, data: bytes, name: str = "", ids: Iterator[str] | None = None) -> None:
        self.data = data
        self.root = read(data)
        self.history = _history(self)
        self.name = name or _recognise(self)
        self.homes: list[Home] = []
        self.made_up: list[tuple[int, str]] = []
        self.held = ""
        self.is_output = ids is not None
        self._ids = ids
        self._given = 0
        self._messages: list[tuple[str, list[bytes]]] = []
        self._open = False
        self._waiting: list[tuple[str, str]] = []
        self._running: list[str] = []
        translate: dict[str, Callable[[Foreign, int, Node], None]] = {
            "openai_chat": _chat,
            "openai_responses": _responses,
            "gemini": _gemini,
            "converse": _converse,
        }
        for index, item in enumerate(self.history.elements):
            if item.kind != "{":
                raise Unreadable("an item that is no object", item.start)
            names = [name for name, _ in item.members]
            if len(set(names)) != len(names):
                raise Unreadable("a key stands twice in an item", item.start)
            translate[self.name](self, index, item)
        names = [name for name, _ in self.root.members]
        if len(set(names)) != len(names):
            raise Unreadable("a key stands twice in the body", self.root.start)

    # Reading

    def raw(self, node: Node | None) -> bytes:
        """A node's literal; b"" for none."""
        return b"" if node is None else self.data[node.start : node.end]

    def string(self, node: Node | None) -> str:
        """A string node's text; "" for anything else."""
        return decode(self.raw(node)) if node is not None and node.kind == '"' else ""

    def within(self, node: Node) -> Node:
        """A node with its members, however deep it stands; offsets are those of its own literal."""
        return read(self.raw(node))

    # Making

    def say(self, role: str, block: bytes, item: int, node: Node, key: bytes = b"") -> None:
        """One more block."""
        if not self._open or self._messages[-1][0] != role:
            self._messages.append((role, []))
        self._messages[-1][1].append(block)
        self._open = True
        self.homes.append(Home(item, node, key))

    def part(self) -> None:
        """The next block begins a message."""
        self._open = False

    def give(self) -> str:
        """An id for the next block, which has none."""
        id_ = str(self._given) if self._ids is None else next(self._ids, f"surplus {self._given}")
        self._given += 1
        self.made_up.append((len(self.homes), id_))
        return id_

    def neutral(self) -> bytes:
        """The whole in the neutral shape."""
        told = [b'{"role":"%s","content":[%s]}' % (role.encode(), b",".join(said)) for role, said in self._messages]
        model = self._model()
        head = b'"model":%s,' % _quote(model) if model else b""
        head += b'"thinking":{"type":"enabled"},' if self._keeps_thinking(model) else b""
        tools = b",".join(b'{"name":%s}' % _quote(name) for name in self._tools())
        return b'{%s"messages":[%s],"tools":[%s]}' % (head, b",".join(told), tools)

    def _model(self) -> str:
        if self.name == "gemini":
            return "gemini"
        return self.string(self.root.get(b"modelId" if self.name == "converse" else b"model"))

    def _keeps_thinking(self, model: str) -> bool:
        if self.name == "converse":
            fields = self.root.get(b"additionalModelRequestFields")
            thinking = fields.get(b"thinking") if fields else None
            return thinking is not None and self.string(thinking.get(b"type")) == "enabled"
        return self.name != "openai_chat" or "claude" not in model.lower()

    def _tools(self) -> Iterator[str]:
        """Names of the tools, in any of the four ways to declare them."""
        node = self.root.get(b"toolConfig")
        node = self.root.get(b"tools") if node is None else node.get(b"tools")
        inner = (b"function", b"custom", b"toolSpec")
        nested: list[Node] = []
        for tool in node.elements if node is not None else ():
            named = next((found for key in inner if (found := tool.get(key)) is not None), None)
            if self.name in ("openai_responses", "gemini"):
                named = tool
            for key in (b"tools", b"functionDeclarations", b"function_declarations"):
                listed = tool.get(key)
                nested += listed.elements if listed is not None else []
            if named is not None and (name := named.get(b"name")) is not None and name.kind == '"':
                yield self.string(name)
        for one in nested:
            if (name := one.get(b"name")) is not None and name.kind == '"':
                yield self.string(name)


def _history(body: Foreign) -> Node:
    history = next((node for key in LISTS if (node := body.root.get(key)) is not None), None)
    if history is None or history.kind != "[":
        raise Unreadable("no list of messages, items or contents", body.root.start)
    return history


def _recognise(body: Foreign) -> str:
    """The format, by content; a body that fits several or none is none that is cut."""
    history = body.history
    items = [item for item in history.elements if item.kind == "{"]
    fits = []
    if history is body.root.get(b"messages"):
        signs = (b"tool_calls", b"function_call", b"tool_call_id", *REASONING)
        blocks = [block for item in items if (held := item.get(b"content")) is not None for block in held.elements]
        if any(
            any(item.get(key) is not None for key in signs) or body.string(item.get(b"role")) == "developer"
            for item in items
        ) or any(
            body.string(block.get(b"type")) in CHAT_FILES[:3]
            or ((thought := block.get(b"thinking")) is not None and thought.kind == "[")
            for block in blocks
        ):
            fits.append("openai_chat")
        if blocks and all(
            block.get(b"type") is None and any(block.get(key) is not None for key in CONVERSE) for block in blocks
        ):
            fits.append("converse")
    elif history is body.root.get(b"input"):
        keys = (b"type", b"role", b"id")
        if items and all(any(item.get(key) is not None for key in keys) for item in items):
            fits.append("openai_responses")
    elif items and all((parts := item.get(b"parts")) is not None and parts.kind == "[" for item in items):
        fits.append("gemini")
    if len(fits) != 1:
        raise Unreadable("no format that is cut, or several at once", history.start)
    return fits[0]


# Blocks


def _quote(text: str) -> bytes:
    return json.dumps(text).encode("ascii")


def _quoted(raw: bytes) -> bytes:
    return _quote(raw.decode("utf-8", "surrogatepass"))


def _text(literal: bytes, also: bytes = b"") -> bytes:
    return b'{"type":"text","text":%s%s}' % (literal, b',"also":' + _quoted(also) if also else b"")


def _thought(raw: bytes, signature: bytes = b'""') -> bytes:
    literal = raw if raw.startswith(b'"') else _quoted(raw)
    return b'{"type":"thinking","thinking":%s,"signature":%s}' % (literal, signature)


def _call(id_: str, name: str, arguments: bytes, *, own: bool = False, caller: bytes = b"") -> bytes:
    type_ = b"server_tool_use" if own else b"tool_use"
    by = b',"caller":' + caller if caller else b""
    return b'{"type":"%s","id":%s,"name":%s,"input":%s%s}' % (type_, _quote(id_), _quote(name), arguments, by)


def _result(id_: str, content: bytes, error: bool = False) -> bytes:
    flag = b',"is_error":true' if error else b""
    return b'{"type":"tool_result","tool_use_id":%s,"content":%s%s}' % (_quote(id_), content, flag)


def _ran(id_: str, raw: bytes) -> bytes:
    return b'{"type":"web_search_tool_result","tool_use_id":%s,"content":%s}' % (_quote(id_), _quoted(raw))


def _plain(type_: str, key: str, raw: bytes) -> bytes:
    return b'{"type":%s,"%s":%s}' % (_quote(type_), key.encode(), _quoted(raw))


def _control(raw: bytes) -> bytes:
    return _plain("tool_addition", "raw", raw)


def _attached(raw: bytes) -> bytes:
    return _plain("image", "source", raw)


def _unknown(type_: str, raw: bytes) -> bytes:
    return _plain(f"unknown:{type_}", "raw", raw)


def _also(body: Foreign, node: Node, but: tuple[bytes, ...]) -> bytes:
    """What two texts must share to be joined: their other members, sorted; null and an empty list don't count."""
    # Sorted as text is, not as bytes are.
    held = sorted(((name.decode("utf-8", "surrogatepass"), body.raw(value)) for name, value in node.members))
    told = [
        name.encode("utf-8", "surrogatepass") + b":" + raw
        for name, raw in held
        if name.encode("utf-8", "surrogatepass") not in but and raw not in (b"null", b"[]")
    ]
    return b",".join(told)


def _arguments(body: Foreign, node: Node | None) -> bytes:
    """Arguments: JSON as it stands, or what a string of them holds where that is one JSON object."""
    if node is None:
        return b"{}"
    if node.kind != '"':
        return body.raw(node)
    inside = body.string(node).encode("utf-8", "surrogatepass")
    try:
        return inside if read(inside).kind == "{" else body.raw(node)
    except Unreadable:
        return body.raw(node)


def _texts(body: Foreign, node: Node, key: bytes = b"text") -> bytes:
    """A list of parts as a result's content: texts, and others by their type."""
    parts = []
    for item in node.elements:
        whole = body.within(item)
        raw = body.raw(item)
        text, type_ = whole.get(key), whole.get(b"type")
        if text is not None and text.kind == '"':
            parts.append(_text(raw[text.start : text.end]))
        else:
            named = decode(raw[type_.start : type_.end]) if type_ is not None and type_.kind == '"' else "part"
            parts.append(_plain(named, "raw", raw))
    return b"[%s]" % b",".join(parts)


# Chat Completions (WIRE_RULES 2)


def _chat(body: Foreign, index: int, item: Node) -> None:
    role = body.string(item.get(b"role"))
    content = item.get(b"content")
    body.part()
    if role in ("system", "developer"):
        body.say("user", _control(body.raw(item)), index, item)
    elif role == "user":
        _chat_words(body, index, item, content, "user", b"")
    elif role in ("tool", "function"):
        id_ = body.string(item.get(b"tool_call_id"))
        if not id_:
            id_ = body._waiting[0][1] if body._waiting else body.give()
        body._waiting = [one for number, one in enumerate(body._waiting) if number != _first(body._waiting, id_)]
        if content is not None and content.kind == '"':
            told = body.raw(content)
        else:
            told = _texts(body, content) if content is not None and content.kind == "[" else b"null"
        body.say("user", _result(id_, told), index, item)
    elif role == "assistant":
        body._waiting = []
        before = len(body.homes)
        for key in REASONING:
            node = item.get(key)
            if node is not None and node.kind in '"[{':
                mark = b'"cutline:with-call"' if key == b"reasoning_content" else b'""'
                body.say("assistant", _thought(body.raw(node), mark), index, node, key)
        others = _also(body, item, (b"role", b"content", b"tool_calls", b"function_call", *REASONING))
        _chat_words(body, index, item, content, "assistant", others)
        refusal, audio = item.get(b"refusal"), item.get(b"audio")
        if refusal is not None and refusal.kind == '"':
            body.say("assistant", _text(body.raw(refusal), b"refusal"), index, refusal, b"refusal")
        if audio is not None and audio.kind == "{":
            body.say("assistant", _control(body.raw(audio)), index, audio, b"audio")
        calls, single = item.get(b"tool_calls"), item.get(b"function_call")
        for call in calls.elements if calls is not None else ():
            _chat_call(body, index, call, b"tool_calls")
        if single is not None and single.kind == "{":
            _chat_call(body, index, single, b"function_call")
        if len(body.homes) == before:
            body.say("assistant", _control(body.raw(item)), index, item)
    else:
        raise Unreadable("a message of an unknown role", item.start)


def _first(waiting: list[tuple[str, str]], id_: str) -> int:
    return next((number for number, one in enumerate(waiting) if one[1] == id_), -1)


def _chat_call(body: Foreign, index: int, call: Node, key: bytes) -> None:
    inner = next((node for name in (b"function", b"custom") if (node := call.get(name)) and node.kind == "{"), call)
    if (name := inner.get(b"name")) is None or name.kind != '"':
        raise Unreadable("a call without a name", call.start)
    id_ = body.string(call.get(b"id")) or body.give()
    body._waiting.append(("", id_))
    given = inner.get(b"arguments") or inner.get(b"input")
    body.say("assistant", _call(id_, body.string(name), _arguments(body, given)), index, call, key)


def _chat_words(body: Foreign, index: int, item: Node, content: Node | None, role: str, others: bytes) -> None:
    if content is None or content.kind not in '"[' or (content.kind == "[" and not content.elements):
        if role == "user":
            body.say(role, _control(body.raw(item)), index, item)
        return
    if content.kind == '"':
        called = any(node is not None and node.elements for node in [item.get(b"tool_calls")])
        if body.raw(content) != b'""' or not called:  # beside a call an empty text is none
            body.say(role, _text(body.raw(content), others), index, content, b"content")
        return
    for part in content.elements:
        type_ = body.string(part.get(b"type")) or "part"
        text, refusal, raw = part.get(b"text"), part.get(b"refusal"), body.raw(part)
        if type_ in ("text", "input_text", "output_text") and text is not None and text.kind == '"':
            block = _text(body.raw(text), others + _also(body, part, (b"type", b"text", b"cache_control")))
        elif type_ == "refusal" and refusal is not None and refusal.kind == '"':
            block = _text(body.raw(refusal), b"refusal")
        elif type_ in ("thinking", "reasoning") and role == "assistant":
            block = _thought(raw)
        else:
            block = _attached(raw) if type_ in CHAT_FILES else _unknown(type_, raw)
        body.say(role, block, index, part, b"content")


# Responses (WIRE_RULES 3)


def _responses(body: Foreign, index: int, item: Node) -> None:
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
        body._waiting.append(("", id_))
        given = _arguments(body, item.get(RESPONSES_CALLS[type_]))
        body.say("assistant", _call(id_, name, given, caller=by), index, item)
    elif type_ in RESPONSES_ANSWERS:
        ids = [body.string(item.get(key)) for key in (b"call_id", b"approval_request_id", b"id")]
        id_ = next(filter(None, ids), "") or (body._waiting[0][1] if body._waiting else body.give())
        body._waiting = [one for one in body._waiting if one[1] != id_]
        held = item.get(RESPONSES_ANSWERS[type_])
        if held is not None and held.kind == '"':
            told = body.raw(held)
        elif held is not None and held.kind == "[":
            told = _texts(body, held)
        else:
            told = _quoted(body.raw(held) if held is not None else raw)
        body.say("user", _result(id_, told), index, item)
    elif type_ == "reasoning":
        body.say("assistant", _thought(raw), index, item)
    elif type_ in RESPONSES_SERVED:
        id_ = body.string(item.get(b"id")) or body.give()
        body.say("assistant", _call(id_, body.string(item.get(b"name")) or type_, raw, own=True), index, item)
        body.say("assistant", _ran(id_, b""), index, item)
        body.part()
    elif type_ == "compaction":
        body.part()
        body.say("assistant", _plain("compaction", "content", raw), index, item)
        body.part()
    elif type_ in RESPONSES_CONTROL:
        body.part()
        body.say("user", _control(raw), index, item)
    elif type_ in ("item_reference", ""):
        body.held = "the server holds an item"
        body.say("user", _control(raw), index, item)
    else:
        body.say("assistant", _unknown(type_, raw), index, item)


def _responses_message(body: Foreign, index: int, item: Node, role: str) -> None:
    if role not in ("user", "assistant", "system", "developer"):
        raise Unreadable("a message of an unknown role", item.start)
    content, speaker = item.get(b"content"), "assistant" if role == "assistant" else "user"
    if speaker == "user":
        body.part()
    listed = content is not None and content.kind == "[" and bool(content.elements)
    if role in ("system", "developer") or content is None or not (content.kind == '"' or listed):
        body.say(speaker, _control(body.raw(item)), index, item)
        return
    others = _also(body, item, (b"type", b"role", b"content", b"id", b"status")) if speaker == "assistant" else b""
    if content.kind == '"':
        body.say(speaker, _text(body.raw(content), others), index, content, b"content")
    for part in content.elements:
        type_, text, refusal = body.string(part.get(b"type")), part.get(b"text"), part.get(b"refusal")
        raw = body.raw(part)
        if type_ in ("input_text", "output_text", "text", "summary_text") and text is not None and text.kind == '"':
            block = _text(body.raw(text), others + _also(body, part, (b"type", b"text")))
        elif type_ == "refusal" and refusal is not None and refusal.kind == '"':
            block = _text(body.raw(refusal), b"refusal")
        elif type_ in ("input_image", "input_file", "input_audio"):
            block = _attached(raw) if speaker == "user" else _control(raw)
        else:
            block = _unknown(type_ or "part", raw)
        body.say(speaker, block, index, part, b"content")


# Gemini (WIRE_RULES 4)


def _gemini(body: Foreign, index: int, item: Node) -> None:
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
        body._waiting, body._running = [], []
    if parts is None or not parts.elements:
        body.say(speaker, _control(body.raw(item)), index, item)
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
        body._waiting.append((name, id_))
        given = call.get(b"args")
        return "assistant", _call(id_, name, body.raw(given) if given is not None else b"{}")
    if (answer := held(GEMINI_ANSWERS)) is not None:
        return "user", _gemini_answer(body, answer)
    if thought is not None and body.raw(thought) == b"true":
        return speaker, _thought(raw)
    if text is not None and text.kind == '"':
        return speaker, _text(body.raw(text), _also(body, part, (b"text", b"thought")))
    if speaker == "assistant" and (run := held(GEMINI_RUN)) is not None:
        body._running.append(body.give())
        name = next(key for key in GEMINI_RUN if part.get(key) is not None).decode()
        return speaker, _call(body._running[-1], name, body.raw(run), own=True)
    if speaker == "assistant" and (ran := held(GEMINI_RAN)) is not None:
        return speaker, _ran(body._running.pop(0) if body._running else body.give(), body.raw(ran))
    if held(GEMINI_FILES) is not None:
        return speaker, _attached(raw) if speaker == "user" else _control(raw)
    return speaker, _unknown(part.members[0][0].decode("utf-8", "surrogatepass") if part.members else "part", raw)


def _gemini_answer(body: Foreign, answer: Node) -> bytes:
    name, id_ = body.string(answer.get(b"name")), body.string(answer.get(b"id"))
    fits = [one for one in body._waiting if one[1] == id_] or [one for one in body._waiting if one[0] == name]
    if fits:
        id_ = fits[0][1]
        body._waiting.remove(fits[0])
    id_ = id_ or body.give()
    response = answer.get(b"response")
    if response is None:
        return _result(id_, _quote("{}"))
    texts = [response.get(b"output"), response.get(b"result")]
    told = next((body.raw(text) for text in texts if text is not None and text.kind == '"'), None)
    failed = response.get(b"error") is not None
    return _result(id_, told if told is not None else _gemini_object(body, response), failed)


def _gemini_object(body: Foreign, response: Node) -> bytes:
    """A response without a text, as text; in an output, with what was added to it behind (WIRE_RULES 10)."""
    notice = response.get(b"cutline_notice")
    if notice is None or notice.kind != '"' or not body.is_output:
        return _quoted(body.raw(response))
    place = [name for name, _ in response.members].index(b"cutline_notice")
    start = response.members[place - 1][1].end if place else response.start + 1
    whole = body.data[response.start : start] + body.data[notice.end : response.end]
    return _quoted(whole)[:-1] + b"\\n\\n" + body.raw(notice)[1:]


# Converse (WIRE_RULES 5)


def _converse(body: Foreign, index: int, item: Node) -> None:
    role, content = body.string(item.get(b"role")), item.get(b"content")
    if role not in ("user", "assistant", "system") or content is None or content.kind != "[":
        raise Unreadable("a message without role or content", item.start)
    body.part()
    blocks = [block for block in content.elements if block.get(b"cachePoint") is None]
    if role == "system" or not blocks:
        body.say("assistant" if role == "assistant" else "user", _control(body.raw(item)), index, item)
        return
    for block in blocks:
        body.say(*_converse_block(body, block, role), index, block, b"content")


def _converse_block(body: Foreign, block: Node, role: str) -> tuple[str, bytes]:
    raw = body.raw(block)
    key = next((name for name, _ in block.members if name in CONVERSE), b"")
    inner = block.get(key)
    if inner is None or (key == b"text" and inner.kind != '"'):
        return role, _unknown(block.members[0][0].decode() if block.members else "block", raw)
    if key == b"text":
        return role, _text(body.raw(inner), _also(body, block, (b"text",)))
    if key == b"toolUse":
        id_, name = inner.get(b"toolUseId"), inner.get(b"name")
        if id_ is None or name is None:
            raise Unreadable("a toolUse without id or name", block.start)
        own = body.string(inner.get(b"type")) == "server_tool_use"
        given = inner.get(b"input")
        arguments = body.raw(given) if given is not None else b"{}"
        return "assistant", _call(body.string(id_), body.string(name), arguments, own=own)
    if key == b"toolResult":
        id_ = inner.get(b"toolUseId")
        if id_ is None or id_.kind != '"':
            raise Unreadable("a toolResult without id", block.start)
        if role == "assistant":
            return role, _ran(body.string(id_), body.raw(inner))
        return "user", _converse_result(body, inner, body.string(id_))
    if key == b"reasoningContent":
        told = inner.get(b"reasoningText")
        words = told.get(b"text") if told is not None else None
        signed = told.get(b"signature") if told is not None else None
        mark = body.raw(signed) if signed is not None and signed.kind == '"' else b'""'
        return role, _thought(body.raw(words) if words is not None and words.kind == '"' else raw, mark)
    if key in CONVERSE_FILES and role == "user":
        return role, _attached(raw)
    return role, _control(raw)


def _converse_result(body: Foreign, inner: Node, id_: str) -> bytes:
    content, parts = inner.get(b"content"), []
    for item in content.elements if content is not None else ():
        whole, raw = body.within(item), body.raw(item)
        text, given = whole.get(b"text"), whole.get(b"json")
        if text is not None and text.kind == '"':
            parts.append(_text(raw[text.start : text.end]))
        elif given is not None:
            parts.append(_text(_quoted(raw[given.start : given.end])))
        else:
            parts.append(_plain(whole.members[0][0].decode() if whole.members else "block", "raw", raw))
    return _result(id_, b"[%s]" % b",".join(parts), body.string(inner.get(b"status")) == "error")
