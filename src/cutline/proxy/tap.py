"""What an answer said, read from a copy of its bytes: content blocks, usage, why it stopped.

Law: reading only, after the last byte has gone to the client. A torn, aborted or unknown answer gives what could
be read of it, never an error.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .plan import Refusal, unpack

_PARTS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}


@dataclass(frozen=True, slots=True)
class Answer:
    """A provider's answer.

    Attributes:
        content: the content blocks, as they will stand in the next request's history.
        usage: the provider's token counters, by its names.
        model: the model that answered.
        stop: why it stopped; "" where it did not say.
        error: the message of an error answer or event; "" where there was none.
    """

    content: list[dict[str, Any]] = field(default_factory=list)
    usage: Mapping[str, int] = field(default_factory=dict)
    model: str = ""
    stop: str = ""
    error: str = ""

    @property
    def complete(self) -> bool:
        """Whether the answer came to its end."""
        return bool(self.stop)


def read(raw: bytes, content_type: str, encoding: str) -> Answer:
    """Read an answer of the messages API, streamed or whole.

    Args:
        raw: its bytes as they came.
        content_type, encoding: its headers.
    """
    plain = unpack_what_is_there(raw, encoding)
    if content_type.partition(";")[0].strip() == "text/event-stream":
        return _streamed(plain)
    try:
        value = json.loads(plain)
    except (ValueError, RecursionError):
        return Answer()
    return _whole(value) if isinstance(value, dict) else Answer()


def unpack_what_is_there(raw: bytes, encoding: str) -> bytes:
    """An answer without its encoding; what came before the break where it is torn, b"" where it can't be read."""
    plain = unpack(raw, encoding, torn=True)
    return b"" if plain is None or isinstance(plain, Refusal) else plain


def _whole(value: dict[str, Any]) -> Answer:
    content, usage = value.get("content"), value.get("usage")
    return Answer(
        [block for block in content if isinstance(block, dict)] if isinstance(content, list) else [],
        _counters(usage),
        printable(str(value.get("model") or "")),
        str(value.get("stop_reason") or ""),
        _error(value),
    )


def _streamed(plain: bytes) -> Answer:
    """An answer out of its events (docs.claude.com/en/docs/build-with-claude/streaming)."""
    blocks: dict[int, dict[str, Any]] = {}
    parts: dict[tuple[int, str], list[str]] = {}
    usage: dict[str, int] = {}
    model = stop = error = ""
    for event in events(plain):
        kind, index = event.get("type"), event.get("index")
        if kind == "message_start" and isinstance(event.get("message"), dict):
            usage.update(_counters(event["message"].get("usage")))
            model = printable(str(event["message"].get("model") or ""))
        elif kind == "content_block_start" and isinstance(index, int) and isinstance(event.get("content_block"), dict):
            blocks[index] = dict(event["content_block"])
        elif kind == "content_block_delta" and index in blocks and isinstance(event.get("delta"), dict):
            key, piece = _piece(event["delta"])
            if key:
                parts.setdefault((index, key), []).append(piece)
        elif kind == "message_delta":
            usage.update(_counters(event.get("usage")))
            delta = event.get("delta")
            stop = str(delta.get("stop_reason") or "") if isinstance(delta, dict) else stop
        elif kind == "error":
            error = _error(event)
    for (index, key), pieces in parts.items():
        whole = "".join(pieces)
        if key != "input":
            blocks[index][key] = str(blocks[index].get(key) or "") + whole
        elif whole:
            try:
                blocks[index]["input"] = json.loads(whole)
            except (ValueError, RecursionError):
                blocks[index]["input"] = {}
    return Answer([blocks[index] for index in sorted(blocks)], usage, model, stop, error)


def _piece(delta: dict[str, Any]) -> tuple[str, str]:
    """Which member of its block a delta goes on with, and its piece; ("", "") for a delta that is not known."""
    kind = delta.get("type")
    if kind == "input_json_delta":
        return "input", str(delta.get("partial_json") or "")
    key = _PARTS.get(kind) if isinstance(kind, str) else None
    return (key, str(delta.get(key) or "")) if key else ("", "")


def events(plain: bytes) -> Iterator[dict[str, Any]]:
    """The events of a stream that are JSON objects, in order; a torn last one is left out."""
    for chunk in plain.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n\n"):
        data = b"\n".join(line[5:].lstrip() for line in chunk.split(b"\n") if line.startswith(b"data:"))
        if not data:
            continue
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield value


def printable(text: str) -> str:
    """A provider's text as one line that a terminal may show: it must not move the cursor, or name a window."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def _counters(usage: Any) -> dict[str, int]:
    if not isinstance(usage, dict):
        return {}
    found = {name: value for name, value in usage.items() if type(value) is int}
    creation = usage.get("cache_creation")
    if isinstance(creation, dict):
        found |= {name: value for name, value in creation.items() if type(value) is int}
    return found


def _error(value: dict[str, Any]) -> str:
    error = value.get("error")
    return printable(str(error.get("message") or error.get("type") or "")) if isinstance(error, dict) else ""
