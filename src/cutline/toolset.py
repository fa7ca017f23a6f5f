"""The three tools in each provider's words: how they are declared, how a call is read, how its answer is written.

Law: pure; the tools themselves are mandate's, what a call is answered is decided elsewhere. A call is taken as the
SDK gives it, an object or the dictionary that it stands for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from . import mandate

Format = Literal["anthropic", "openai-chat", "openai-responses", "gemini", "converse"]
FORMATS: tuple[Format, ...] = ("anthropic", "openai-chat", "openai-responses", "gemini", "converse")
NAMES = frozenset(tool["name"] for tool in mandate.TOOLS)


def tools(format: Format) -> list[dict[str, Any]]:
    """The declarations of micro_handoff, recall and say, to be put among a request's tools.

    Args:
        format: "anthropic" (Messages), "openai-chat" (Chat Completions and servers that speak it),
            "openai-responses", "gemini" (generateContent) or "converse" (Bedrock).

    Raises:
        ValueError: another format.
    """
    if format not in FORMATS:
        raise ValueError(f"format={format!r} is none of {', '.join(FORMATS)}")
    made = [_declared(format, tool["name"], tool["description"], tool["inputSchema"]) for tool in mandate.TOOLS]
    return [{"functionDeclarations": made}] if format == "gemini" else made


def _declared(format: Format, name: str, description: str, schema: dict[str, Any]) -> dict[str, Any]:
    said = {"name": name, "description": description}
    if format == "anthropic":
        return {**said, "input_schema": schema}
    if format == "openai-chat":
        return {"type": "function", "function": {**said, "parameters": schema}}
    if format == "openai-responses":
        # Strict schemas know no optional member, and a document has some.
        return {"type": "function", **said, "parameters": schema, "strict": False}
    if format == "gemini":
        return {**said, "parametersJsonSchema": schema}
    return {"toolSpec": {**said, "inputSchema": {"json": schema}}}


@dataclass(frozen=True, slots=True)
class Call:
    """A call of one of the three tools.

    Attributes:
        format: the provider's format, as the call's shape tells it.
        id: the provider's id; "" where the format gives none.
        name: the tool's.
        arguments: decoded; empty where they can't be read, which the tool then says.
    """

    format: Format
    id: str
    name: str
    arguments: Mapping[str, Any]

    def answered(self, text: str, *, error: bool = False, images: Sequence[tuple[str, str]] = ()) -> dict[str, Any]:
        """The answer, as it is put into the next request: a block, a message, an item or a part.

        Args:
            text: what the tool says.
            error: the call failed.
            images: (media type, base64) of images that belong to it; formats whose results hold text only say how
                many there are.
        """
        if images and self.format != "anthropic":
            text += f"\n({len(images)} image{'' if len(images) == 1 else 's'} can't be shown in this result)"
        if self.format == "anthropic":
            content: list[dict[str, Any]] = [{"type": "text", "text": text}]
            for kind, data in images:
                source = {"type": "base64", "media_type": kind, "data": data}
                content.append({"type": "image", "source": source})
            failed = {"is_error": True} if error else {}
            return {"type": "tool_result", "tool_use_id": self.id, "content": content, **failed}
        if self.format == "openai-chat":
            return {"role": "tool", "tool_call_id": self.id, "content": text}
        if self.format == "openai-responses":
            return {"type": "function_call_output", "call_id": self.id, "output": text}
        if self.format == "gemini":
            named = {"id": self.id, "name": self.name} if self.id else {"name": self.name}
            return {"functionResponse": {**named, "response": {"error" if error else "output": text}}}
        status = {"status": "error"} if error else {}
        return {"toolResult": {"toolUseId": self.id, "content": [{"text": text}], **status}}


def read(call: Any) -> Call | None:
    """A call as one of the three tools' is read; None where it is no call, or another tool's.

    Args:
        call: what the SDK gives: Anthropic's `tool_use` block, a Chat `tool_call`, a Responses `function_call` item,
            Gemini's function call or the part that holds it, Converse's `toolUse` block; an object or a dictionary.
    """
    held = _plain(call)
    for key in ("functionCall", "function_call"):
        if isinstance(held.get(key), Mapping):
            return _made("gemini", held[key], "id", "args")
    if isinstance(held.get("toolUse"), Mapping):
        return _made("converse", held["toolUse"], "toolUseId", "input")
    kind = held.get("type")
    if kind == "tool_use":
        return _made("anthropic", held, "id", "input")
    if kind == "function_call":
        return _made("openai-responses", held, "call_id", "arguments")
    if isinstance(held.get("function"), Mapping):
        return _made("openai-chat", {**held["function"], "id": held.get("id")}, "id", "arguments")
    return _made("gemini", held, "id", "args") if kind is None and "args" in held else None


def _plain(call: Any) -> Mapping[str, Any]:
    if isinstance(call, Mapping):
        return call
    dump = getattr(call, "model_dump", None)  # the SDKs' objects are pydantic's
    found = dump() if callable(dump) else None
    return found if isinstance(found, Mapping) else {}


def _made(format: Format, held: Mapping[str, Any], id: str, arguments: str) -> Call | None:
    name = held.get("name")
    if name not in NAMES:
        return None
    given = held.get(arguments)
    if isinstance(given, str):
        try:
            given = json.loads(given or "{}")
        except (ValueError, RecursionError):
            given = {}
    return Call(format, str(held.get(id) or ""), str(name), given if isinstance(given, Mapping) else {})
