"""What a model's answer said, in any format, streamed or whole: content blocks, usage, why it stopped.

Law: reading only, of a copy of the bytes as they come, after content encodings were undone. Every format's answer is
told in one shape, that of Anthropic's content blocks. A torn, aborted, malformed or unknown answer gives what could be
read of it, never an error. Where each counter stands is docs/wire.md, 6.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from .framing import Frames, frames

FORMATS = ("anthropic", "openai_chat", "openai_responses", "gemini", "converse")
"""Formats whose answers are read: `formats.NAMES`, and Anthropic's own."""

Block = dict[str, Any]
_SNIFF = 64  # bytes by which a stream is known whose server gives it another type


@dataclass(frozen=True, slots=True)
class Answer:
    """A provider's answer.

    Attributes:
        content: the content blocks, in Anthropic's shape (`text`, `thinking`, `tool_use` …).
        usage: the provider's token counters by its names, those inside another as `outer.inner` (`money.Usage.of`).
        model: the model that answered; "" where it was not named.
        stop: why it stopped, in the provider's word; "" where it did not say: the answer did not come to its end.
        error: the message of an error answer or event; "" where there was none.
    """

    content: list[Block] = field(default_factory=list)
    usage: Mapping[str, int] = field(default_factory=dict)
    model: str = ""
    stop: str = ""
    error: str = ""

    @property
    def complete(self) -> bool:
        """Whether the answer came to its end."""
        return bool(self.stop)

    @property
    def calls(self) -> list[Block]:
        """The tools that it calls: blocks with `id`, `name` and `input`."""
        return [block for block in self.content if block.get("type") == "tool_use"]


class Reader:
    """Reads an answer while it comes.

    Args:
        format: the request's format, one of `FORMATS`.
        content_type: the answer's content type; "" where it has none.
    """

    def __init__(self, format: str, content_type: str) -> None:
        self._said: _Said = _SAID[format]()
        self._type = content_type
        self._frames: Frames | None = None
        self._first = b""

    def feed(self, data: bytes) -> None:
        """Take in bytes, in any pieces. Without content encoding."""
        if self._frames is None:
            self._first += data
            if len(self._first) < _SNIFF:
                return
            data = self._begin()
        assert self._frames is not None
        for value in self._frames.feed(data):
            self._take(value)

    def end(self) -> Answer:
        """What the answer said; call it once, when it ended or broke off."""
        if self._frames is None:
            rest = self._begin()
            self.feed(rest)
        assert self._frames is not None
        for value in self._frames.end():
            self._take(value)
        try:
            return self._said.answer()
        except _ODD:
            return Answer(error=self._said.error)

    def _begin(self) -> bytes:
        self._frames = frames(self._type, self._first)
        first, self._first = self._first, b""
        return first

    def _take(self, value: Block) -> None:
        try:
            told = error_of(value)
            if told:
                self._said.error = told
            self._said.take(value)
        except _ODD:
            return  # an object that is not as the format has it says nothing


def read(format: str, content_type: str, plain: bytes) -> Answer:
    """Read an answer that is there (see `Reader`)."""
    reader = Reader(format, content_type)
    reader.feed(plain)
    return reader.end()


def printable(text: str) -> str:
    """A provider's text as one line that a terminal may show: it must not move the cursor, or name a window."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


_ODD = (AttributeError, KeyError, TypeError, ValueError, IndexError, RecursionError)
"""What reading an object that is not as its format has it can raise."""


class _Said(Protocol):
    """An answer of one format while it is put together."""

    error: str

    def take(self, value: Block) -> None:
        """The whole answer, or one event of it."""

    def answer(self) -> Answer:
        """What was said so far."""


class _Blocks:
    """Blocks by their index, with what their deltas add, and the rest of an answer."""

    def __init__(self) -> None:
        self.blocks: dict[Any, Block] = {}
        self.parts: dict[tuple[Any, str], list[str]] = {}
        self.usage: dict[str, int] = {}
        self.model = self.stop = self.error = ""

    def block(self, index: Any, block: Block) -> None:
        """A block, where there is none yet."""
        self.blocks.setdefault(index, block)

    def piece(self, index: Any, key: str, text: Any) -> None:
        """What goes on with a member of a block."""
        if index in self.blocks and isinstance(text, str) and text:
            self.parts.setdefault((index, key), []).append(text)

    def words(self, index: Any, type_: str, text: Any) -> None:
        """What goes on with a block of words ("text" or "thinking"), which may begin with it."""
        if isinstance(text, str) and text:
            self.block(index, {"type": type_, type_: ""})
            self.piece(index, type_, text)

    def named(self, model: Any) -> None:
        """The model that answers."""
        if isinstance(model, str) and model:
            self.model = printable(model)

    def counted(self, usage: Any) -> None:
        """Counters: the last value of each counts."""
        self.usage.update(counters(usage))

    def answer(self) -> Answer:
        """What was said so far, its blocks in the order in which they began."""
        for (index, key), pieces in self.parts.items():
            block, whole = self.blocks[index], "".join(pieces)
            block[key] = _input(whole) if key == "input" else str(block.get(key) or "") + whole
        self.parts = {}
        return Answer(list(self.blocks.values()), self.usage, self.model, self.stop, self.error)


_PIECES = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
    "input_json_delta": ("input", "partial_json"),
}
"""Which member of its block a delta goes on with, and where its piece stands."""


class _Anthropic(_Blocks):
    """Anthropic Messages (docs.claude.com/en/docs/build-with-claude/streaming)."""

    def take(self, value: Block) -> None:
        """The message, or one event."""
        kind, index = value.get("type"), value.get("index")
        if kind == "message_start":
            self.counted(value["message"].get("usage"))
            self.named(value["message"].get("model"))
        elif kind == "content_block_start":
            self.block(index, dict(value["content_block"]))
        elif kind == "content_block_delta":
            delta = value["delta"]
            key, member = _PIECES.get(delta.get("type"), ("", ""))
            if key:
                self.piece(index, key, delta.get(member))
        elif kind == "message_delta":
            self.counted(value.get("usage"))
            self.stop = str(value["delta"].get("stop_reason") or "") or self.stop
        elif kind in (None, "message", "error"):
            content = value.get("content")
            for number, block in enumerate(content if isinstance(content, list) else ()):
                if isinstance(block, dict):
                    self.block(number, block)
            self.counted(value.get("usage"))
            self.named(value.get("model"))
            self.stop = str(value.get("stop_reason") or "") or self.stop


class _Chat(_Blocks):
    """OpenAI Chat Completions; Ollama's own `/api/chat` has the message outside of choices. The first choice counts."""

    _THOUGHTS = ("reasoning_content", "reasoning", "thinking")

    def take(self, value: Block) -> None:
        """The completion, or one chunk."""
        self.named(value.get("model"))
        self.counted(value.get("usage"))
        choices = value.get("choices")
        if choices is None:
            choices = [value] if "message" in value else []
            self.stop = str(value.get("done_reason") or "") or self.stop
            self.counted({key: value[key] for key in ("prompt_eval_count", "eval_count") if key in value})
        for choice in choices:
            if choice.get("index") in (None, 0):
                self.stop = str(choice.get("finish_reason") or "") or self.stop
                self._message(choice.get("delta") or choice.get("message") or {})

    def _message(self, message: Block) -> None:
        thought = next((message[key] for key in self._THOUGHTS if message.get(key)), None)
        self.words("thinking", "thinking", thought)
        content = message.get("content")
        parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
        self.words("text", "text", "".join(str(part.get("text") or "") for part in parts) or content)
        self.words("refusal", "text", message.get("refusal"))
        for number, call in enumerate(message.get("tool_calls") or ()):
            self._call(("call", call.get("index", number)), call, call.get("function") or call.get("custom") or {})
        if message.get("function_call"):
            self._call(("call", 0), {}, message["function_call"])

    def _call(self, index: tuple[str, Any], call: Block, inner: Block) -> None:
        if index in self.blocks and call.get("id") and call["id"] != self.blocks[index]["id"]:
            index = (index[0], call["id"])  # servers that count every call as the first one
        self.block(index, {"type": "tool_use", "id": "", "name": "", "input": {}})
        block = self.blocks[index]
        block["id"], block["name"] = block["id"] or str(call.get("id") or ""), block["name"] or inner.get("name") or ""
        given = inner.get("arguments") or inner.get("input")
        if isinstance(given, dict):
            block["input"] = given
        self.piece(index, "input", given)


_ARGUMENTS = ("arguments", "input", "action", "operation", "code")


class _Responses(_Blocks):
    """OpenAI Responses: items that are done count, and of those that never were, the words that came."""

    def take(self, value: Block) -> None:
        """The response, or one event."""
        kind = str(value.get("type") or "")
        if isinstance(value.get("response"), dict):
            response = value["response"]
            self.named(response.get("model"))
            self.counted(response.get("usage"))
            if kind in ("response.completed", "response.incomplete", "response.failed"):
                self._whole(response)
        elif kind == "response.output_item.done":
            self._item(value.get("output_index"), value["item"])
        elif kind in ("response.output_text.delta", "response.refusal.delta"):
            self.words((value.get("output_index"), 0), "text", value.get("delta"))
        elif value.get("object") == "response" or isinstance(value.get("output"), list):
            self.named(value.get("model"))
            self.counted(value.get("usage"))
            self._whole(value)

    def _whole(self, response: Block) -> None:
        status = str(response.get("status") or "completed")
        why = response.get("incomplete_details")
        self.stop = str(why.get("reason") or status) if isinstance(why, dict) else status
        self.error = error_of(response) or self.error
        for number, item in enumerate(response.get("output") or ()):
            self._item(number, item)

    def _item(self, index: Any, item: Block) -> None:
        """An item, whole: it takes the place of what was told of it before."""
        type_ = str(item.get("type") or "")
        gone = [key for key in self.blocks if key[0] == index]
        made: list[Block] = []
        if type_ == "message":
            words = (part.get("text") or part.get("refusal") for part in item.get("content") or ())
            made = [{"type": "text", "text": str(text)} for text in words if text]
        elif type_ == "reasoning":
            parts = [*(item.get("summary") or ()), *(item.get("content") or ())]
            told = [str(part.get("text") or "") for part in parts]
            made = [{"type": "thinking", "thinking": "\n\n".join(told)}]
        elif type_.endswith("_call") or type_ in ("program", "mcp_approval_request"):
            given: Any = next((item[key] for key in _ARGUMENTS if key in item), {})
            called = str(item.get("call_id") or item.get("id") or "")
            name = str(item.get("name") or type_.removesuffix("_call"))
            kind = "tool_use" if item.get("call_id") else "server_tool_use"
            made = [{"type": kind, "id": called, "name": name, "input": _input(given)}]
        for key in gone:
            del self.blocks[key]
        self.parts = {key: value for key, value in self.parts.items() if key[0] not in gone}
        for number, block in enumerate(made):
            self.blocks[index, number] = block


class _Gemini(_Blocks):
    """Gemini generateContent: every chunk is an answer of its own, whose parts follow the last one's."""

    def take(self, value: Block) -> None:
        """The answer, or one chunk; Code Assist puts it into a `response`."""
        value = value["response"] if isinstance(value.get("response"), dict) else value
        self.named(value.get("modelVersion"))
        self.counted(value.get("usageMetadata"))
        for candidate in value.get("candidates") or ():
            if candidate.get("index") in (None, 0):
                self.stop = str(candidate.get("finishReason") or "") or self.stop
                for part in (candidate.get("content") or {}).get("parts") or ():
                    self._part(part)
        blocked = value.get("promptFeedback") or {}
        self.stop = self.stop or str(blocked.get("blockReason") or "")

    def _part(self, part: Block) -> None:
        call = part.get("functionCall")
        last = len(self.blocks) - 1
        if isinstance(call, dict):
            if not call.get("name"):
                return  # arguments that come in pieces: the call that they go on with was told
            block = {"type": "tool_use", "id": str(call.get("id") or ""), "name": str(call["name"])}
            self.block(last + 1, {**block, "input": call.get("args") or {}})
        elif isinstance(part.get("text"), str):
            type_ = "thinking" if part.get("thought") else "text"
            goes_on = last >= 0 and self.blocks[last]["type"] == type_
            self.words(last if goes_on else last + 1, type_, part["text"])


class _Converse(_Blocks):
    """Bedrock Converse and ConverseStream; InvokeModel's answers of models that speak the same."""

    def take(self, value: Block) -> None:
        """The answer, or one event by its type."""
        output = value.get("output")
        if isinstance(output, dict):
            for number, block in enumerate((output.get("message") or {}).get("content") or ()):
                self._block(number, block)
            self.counted(value.get("usage"))
            self.stop = str(value.get("stopReason") or "")
        for kind, event in value.items():
            if kind == "contentBlockStart":
                self._block(event.get("contentBlockIndex"), event.get("start") or {})
            elif kind == "contentBlockDelta":
                self._block(event.get("contentBlockIndex"), event.get("delta") or {})
            elif kind == "messageStop":
                self.stop = str(event.get("stopReason") or "")
            elif kind == "metadata":
                self.counted(event.get("usage"))

    def _block(self, index: Any, block: Block) -> None:
        self.words(index, "text", block.get("text"))
        thought = block.get("reasoningContent")
        if isinstance(thought, dict):
            inner = thought.get("reasoningText") or thought
            self.words(index, "thinking", inner.get("text"))
        call = block.get("toolUse")
        if isinstance(call, dict):
            made = {"type": "tool_use", "id": str(call.get("toolUseId") or ""), "name": str(call.get("name") or "")}
            self.block(index, {**made, "input": {}})
            if isinstance(call.get("input"), dict):
                self.blocks[index]["input"] = call["input"]
            self.piece(index, "input", call.get("input"))


_SAID: Mapping[str, Callable[[], _Said]] = {
    "anthropic": _Anthropic,
    "openai_chat": _Chat,
    "openai_responses": _Responses,
    "gemini": _Gemini,
    "converse": _Converse,
}


def counters(usage: Any) -> dict[str, int]:
    """Token counters by a provider's names: those of an inner object as `outer.inner`, but cache lifetimes."""
    found: dict[str, int] = {}
    for name, value in usage.items() if isinstance(usage, dict) else ():
        if type(value) is int:
            found[name] = value
        elif isinstance(value, dict):
            outer = "" if name == "cache_creation" else f"{name}."
            found |= {outer + inner: held for inner, held in value.items() if type(held) is int}
        elif name == "cacheDetails" and isinstance(value, list):
            for one in value:
                if isinstance(one, dict) and type(one.get("inputTokens")) is int:
                    key = f"{name}.{one.get('ttl')}"
                    found[key] = found.get(key, 0) + one["inputTokens"]
    return found


def _input(given: Any) -> Any:
    """A call's arguments: what their string says in JSON, else the string; {} for one that is torn."""
    if not isinstance(given, str):
        return given
    try:
        return json.loads(given) if given.strip() else {}
    except (ValueError, RecursionError):
        return {} if given.lstrip()[:1] in ("{", "[") else given


def error_of(value: Block) -> str:
    """The message of an error, as the providers put it; "" where there is none."""
    error = value.get("error") or value.get("errors")
    if isinstance(error, list) and error:
        error = error[0]
    if isinstance(error, dict):
        return printable(str(error.get("message") or error.get("type") or error.get("code") or "error"))
    if isinstance(error, str):
        return printable(error)
    response = value.get("response")
    if isinstance(response, dict) and response.get("error"):
        return error_of(response)
    said = value.get("message") or value.get("Message") or value.get("detail")
    lone = "choices" not in value and "content" not in value and value.get("type") in (None, "error")
    return printable(said) if isinstance(said, str) and lone else ""
