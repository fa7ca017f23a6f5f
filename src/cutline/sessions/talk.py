"""Messages in the shape of chat requests, which trajectories and logs are made of, as a history.

Law: words, arguments and results are copied as the literals that they are. What the harness put there is nobody's
words and stands as it is; a part whose type is not known is kept as that.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from .. import spans
from ..money import Usage
from ..wire import neutral as shapes
from .lines import Opened
from .model import Origin, Request
from .neutral import Builder
from .opening import one_line

CONTENT = 1
"""Index of the first part of a message's content among its items: 0 is its reasoning."""
CALLS = 1_000_000
"""Index of the first call among a message's items."""
_TEXTS = ("text", "input_text", "output_text")
_PICTURES = ("image", "image_url", "input_image", "audio", "video", "document", "input_file", "file")
_DATA_URI = re.compile(rb'"data:([\w.+/-]+);base64,([A-Za-z0-9+/=]*)"')


@dataclass(slots=True)
class Talk:
    """A history while it grows.

    Attributes:
        out: it.
        title: the first words that a person typed, one line; "" for none yet.
        last: the latest time that was noted (ISO 8601); "" for none.
    """

    out: Builder = field(default_factory=Builder)
    title: str = ""
    last: str = ""

    def words(self, origin: Origin, literal: bytes, place: tuple[int, int]) -> None:
        """One text; nothing where `literal` is no string, or an empty one."""
        if literal[:1] != b'"' or literal == b'""':
            return
        if origin == "harness":
            self.out.control(literal, place)
            return
        if origin == "human" and not self.title:
            self.title = one_line(str(spans.decode(literal)))
        self.out.text(origin, literal, place)

    def content(self, origin: Origin, opened: Opened, member: spans.Member | None, number: int) -> None:
        """A message's content: one text, or a list of parts."""
        if opened.is_text(member):
            self.words(origin, opened.literal(member), (number, CONTENT))
        for index, (start, end) in enumerate(opened.elements(member), CONTENT):
            self._part(origin, opened, start, end, (number, index))

    def reasoning(self, literal: bytes, place: tuple[int, int], signature: bytes = b'""') -> None:
        """Reasoning, whatever JSON it is; nothing where there is none."""
        if literal not in (b"", b"null", b'""', b"[]", b"{}"):
            self.out.thinking(literal, place, signature if signature[:1] == b'"' else b'""')

    def calls(self, opened: Opened, member: spans.Member | None, number: int) -> int:
        """The calls of a message, in any of the shapes that they have there; gives how many."""
        found = opened.elements(member)
        for index, (start, _) in enumerate(found, CALLS):
            call = opened.members(start)
            function = call.get("function")
            inside = opened.inside(function) if function and opened.view[function.start] == "{" else call
            name = inside.get("name") or function
            self.call(opened, call.get("id"), name, inside.get("arguments"), (number, index))
        return len(found)

    def call(
        self,
        opened: Opened,
        id: spans.Member | None,
        name: spans.Member | None,
        arguments: spans.Member | None,
        place: tuple[int, int],
    ) -> None:
        """One call; arguments are an object, or a string that holds one."""
        raw = opened.literal(arguments)
        if raw[:1] == b'"':
            raw = shapes.arguments(raw)
        self.out.call(word(opened, id), word(opened, name), raw if raw not in (b"", b"null") else b"{}", place)

    def result(
        self, id: str, opened: Opened, member: spans.Member | None, place: tuple[int, int], *, error: bool = False
    ) -> None:
        """A result; its content is a text, or a list of parts."""
        self.out.result(id, result_content(opened, member), place, error=error)

    def counted(self, usage: Any, model: str, timestamp: str, id: str = "") -> None:
        """What the provider counted for the answer whose blocks were added last (the member `usage` of its answer)."""
        timestamp = self.at(timestamp)
        self.out.model = model or self.out.model
        counts = usage_of(usage)
        if counts.total_input and self.out.origins and self.out.origins[-1] == "agent":
            self.out.answered(Request(0, id, model, timestamp, counts))

    def at(self, timestamp: str) -> str:
        """Something was said at that time; gives it with its zone, which is this machine's where none is noted."""
        try:
            then = datetime.fromisoformat(timestamp)
            known = (then if then.tzinfo else then.astimezone()).isoformat()
        except (ValueError, OverflowError, OSError):
            return ""
        self.last = max(self.last, known)
        return known

    def _part(self, origin: Origin, opened: Opened, start: int, end: int, place: tuple[int, int]) -> None:
        raw = opened.raw[start:end]
        part = opened.members(start)
        type_ = word(opened, part.get("type"))
        if raw[:1] == b'"':
            self.words(origin, raw, place)
        elif type_ in _TEXTS:
            self.words(origin, opened.literal(part.get("text")), place)
        elif type_ == "refusal":
            self.words(origin, opened.literal(part.get("refusal")), place)
        elif type_ in ("reasoning", "thinking") and origin == "agent":
            told = opened.literal(part.get("reasoning") or part.get("thinking"))
            self.reasoning(
                told if told[:1] == b'"' and told != b'""' else raw, place, opened.literal(part.get("signature"))
            )
        elif type_ == "redacted_thinking" and origin == "agent":
            self.reasoning(raw, place)
        elif type_ in _PICTURES and origin == "human":
            self.out.image(raw, place)
        else:
            self.out.control(raw, place, "agent" if origin == "agent" else "harness")


def word(opened: Opened, member: spans.Member | None) -> str:
    """The text of a member; "" for anything else."""
    value = opened.value(member) if opened.is_text(member) else None
    return value if isinstance(value, str) else ""


def result_content(opened: Opened, member: spans.Member | None) -> bytes:
    """A result's content in the form that is cut: its text, or its parts, pictures written as that form has them."""
    raw = opened.literal(member)
    if raw[:1] not in (b"[", b""):
        return b"[]" if raw == b"null" else literal_of(raw)
    blocks = []
    for start, end in opened.elements(member):
        raw = opened.raw[start:end]
        part = opened.members(start)
        text = part.get("text")
        if raw[:1] == b'"':
            blocks.append(b'{"type":"text","text":%s}' % raw)
        elif word(opened, part.get("type")) in _TEXTS and opened.is_text(text):
            blocks.append(b'{"type":"text","text":%s}' % opened.literal(text))
        else:
            blocks.append(_picture(raw))
    return b"[%s]" % b",".join(blocks)


def _picture(raw: bytes) -> bytes:
    inside = _DATA_URI.search(raw)
    if inside:
        source = b'{"type":"base64","media_type":"%s","data":"%s"}' % (inside[1], inside[2])
    else:
        source = b'{"type":"client","data":%s}' % literal_of(raw)
    return b'{"type":"image","source":%s}' % source


def literal_of(raw: bytes) -> bytes:
    """Any JSON as the literal of one text: a string stays, all else is quoted."""
    return raw if raw[:1] == b'"' else spans.quote(raw.decode("utf-8", "surrogatepass"))


def literal(text: str) -> bytes:
    """The JSON literal of a text that is no JSON in its file: its letters as UTF-8, not as escapes."""
    return json.dumps(text, ensure_ascii=False).encode("utf-8", "replace")


def usage_of(usage: Any) -> Usage:
    """Tokens, as OpenAI's, LiteLLM's or Anthropic's `usage` counts them.

    OpenAI's and LiteLLM's prompt tokens are all of them, those served by the cache or written to it included.
    """
    held = usage if isinstance(usage, dict) else {}
    details = held.get("prompt_tokens_details") or held.get("input_tokens_details") or {}
    cached = _count(details, "cached_tokens") if isinstance(details, dict) else 0
    read = _count(held, "cache_read_input_tokens") or cached
    written = _count(held, "cache_creation_input_tokens")
    if "prompt_tokens" in held or cached:
        whole = _count(held, "prompt_tokens") or _count(held, "input_tokens")
        output = _count(held, "completion_tokens") or _count(held, "output_tokens")
        return Usage(input=max(0, whole - read - written), cache_read=read, cache_write_5m=written, output=output)
    return Usage(
        input=_count(held, "input_tokens"),
        cache_read=read,
        cache_write_5m=written,
        output=_count(held, "output_tokens"),
    )


def _count(held: dict[str, Any], key: str) -> int:
    value = held.get(key)
    try:
        return max(0, int(float(value))) if isinstance(value, str | int | float) else 0
    except (ValueError, OverflowError):
        return 0


def stamp(seconds: Any) -> str:
    """A time in seconds since 1970 in ISO 8601; "" for anything else."""
    try:
        return datetime.fromtimestamp(float(seconds), UTC).isoformat() if seconds is not None else ""
    except (TypeError, ValueError, OverflowError, OSError):
        return ""
