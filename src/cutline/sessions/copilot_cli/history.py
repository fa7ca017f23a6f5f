"""What the client would send of a session, in the one form that is cut.

Law: words stay the literals that they are in the file: of a message that a person typed those that he typed, not what
the client wraps around them. What it composes anew (its system prompt, the words around a summary) is not in it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import spans
from ...errors import InputError
from ...money import Usage
from ..lines import Opened, unview
from ..model import Origin, Request
from ..neutral import Builder, NeutralHistory
from .events import Event, Log

REASONING = ("reasoningText", "reasoningOpaque", "reasoningBlocks", "encryptedContent")
"""Members of an agent's message that hold its reasoning."""
CALLS = 2
"""Index of the first call among the items of an agent's message: 0 is its text, 1 its reasoning."""


def history(log: Log) -> NeutralHistory:
    """Rebuild what the client would send.

    Raises:
        InputError: the file holds no conversation, or became shorter while it was read.
    """
    build = _Build(Builder(_model(log)))
    with log.reader() as fetch:
        build.usage = _usages(log, fetch)
        for number in log.sent:
            build.add(number, log.events[number], Opened(fetch(log.events[number])))
    if not build.out.places:
        raise InputError(f"{log.path}: no conversation in {len(log.events):,} events; give another session")
    return build.out.done()


def _model(log: Log) -> str:
    """The model that answered last; older versions say it where a call ends, or where it was chosen."""
    for type_ in ("assistant.message", "tool.execution_complete", "session.model_change"):
        named = (event.model for event in reversed(log.events) if event.type == type_ and not event.inner)
        found = next((model for model in named if model), "")
        if found:
            return unview(found)
    return ""


def _usages(log: Log, fetch: Callable[[Event], bytes]) -> dict[int, dict[str, Any]]:
    """By an agent's message, what the provider counted for it: that stands in the event before."""
    found: dict[int, dict[str, Any]] = {}
    counted: dict[str, Any] | None = None
    for number, event in enumerate(log.events):
        if event.type == "session.usage_record" and not event.inner:
            opened = Opened(fetch(event))
            value = opened.value(opened.inside(opened.members().get("data")).get("usage"))
            counted = value if isinstance(value, dict) else None
        elif event.type == "assistant.message" and not event.inner and counted is not None:
            found[number], counted = counted, None
    return found


class _Build:
    """The history while it grows."""

    def __init__(self, out: Builder) -> None:
        self.out = out
        self.usage: dict[int, dict[str, Any]] = {}
        self.made: set[str] = set()

    def add(self, number: int, event: Event, opened: Opened) -> None:
        """Add what one event says."""
        data = opened.inside(opened.members().get("data"))
        if event.type == "user.message":
            self._user(number, opened, data)
        elif event.type == "assistant.message":
            self._agent(number, event, opened, data)
        elif event.type == "tool.execution_complete":
            self._result(number, event, opened, data)
        elif event.type == "tool.user_requested":
            command = opened.inside(data.get("arguments")).get("command")
            self._words("human", opened, command, (number, 0))
        elif event.type == "system.notification":
            self._words("harness", opened, data.get("content"), (number, 0))
        elif event.type == "session.context_cleared":
            self._words("harness", opened, data.get("initialMessage"), (number, 0))
        else:
            self.out.compacted = True
            self._words("summary", opened, data.get("summaryContent"), (number, 0))

    def _words(self, origin: Origin, opened: Opened, member: spans.Member | None, place: tuple[int, int]) -> bool:
        literal = opened.literal(member)
        if literal[:1] != b'"' or literal == b'""':
            return False
        self.out.text(origin, literal, place)
        return True

    def _user(self, number: int, opened: Opened, data: dict[str, spans.Member]) -> None:
        marked = opened.literal(data.get("isAutopilotContinuation")) == b"true" or opened.value(data.get("source"))
        origin: Origin = "harness" if marked else "human"
        if not self._words(origin, opened, data.get("content"), (number, 0)):
            # Nobody typed a word: the client says it.
            self._words("harness", opened, data.get("transformedContent"), (number, 0))
        for index, (start, end) in enumerate(opened.elements(data.get("attachments")), 1):
            self.out.image(opened.raw[start:end], (number, index), origin)

    def _agent(self, number: int, event: Event, opened: Opened, data: dict[str, spans.Member]) -> None:
        out = self.out
        if reasons(opened, data):
            told = opened.literal(data.get("reasoningText"))
            rest = next((opened.literal(data[key]) for key in REASONING[1:] if key in data), b'""')
            out.thinking(told if told[:1] == b'"' and told != b'""' else rest, (number, 1))
        self._words("agent", opened, data.get("content"), (number, 0))
        for index, (start, _) in enumerate(opened.elements(data.get("toolRequests")), CALLS):
            request = opened.members(start)
            id_, name = opened.value(request.get("toolCallId")), opened.value(request.get("name"))
            if isinstance(id_, str) and isinstance(name, str):
                self.made.add(id_)
                out.call(id_, name, opened.literal(request.get("arguments")) or b"{}", (number, index))
        usage = self.usage.get(number)
        if usage and out.places and out.places[-1][0][0] == number:
            self._counted(event, usage)

    def _counted(self, event: Event, usage: dict[str, Any]) -> None:
        # Input tokens are all of them, those that the cache served included.
        read, written = _count(usage, "cacheReadTokens"), _count(usage, "cacheWriteTokens")
        counts = Usage(
            input=max(0, _count(usage, "inputTokens") - read - written),
            cache_read=read,
            cache_write_5m=written,
            output=_count(usage, "outputTokens"),
        )
        id_ = usage.get("apiCallId")
        self.out.answered(Request(0, id_ if isinstance(id_, str) else "", unview(event.model), event.timestamp, counts))

    def _result(self, number: int, event: Event, opened: Opened, data: dict[str, spans.Member]) -> None:
        if opened.literal(data.get("isUserRequested")) == b"true":
            self._words("harness", opened, result(opened, data)[0], (number, 0))
        elif unview(event.call) in self.made:
            # The client passes over a result that answers no call, or a call that was answered.
            self.made.discard(unview(event.call))
            member, failed = result(opened, data)
            content = opened.literal(member) if opened.is_text(member) else b'""'
            images = _images(opened, opened.inside(data.get("result")).get("binaryResultsForLlm"))
            if images:
                content = b'[{"type":"text","text":%s},%s]' % (content, b",".join(images))
            self.out.result(unview(event.call), content, (number, 0), error=failed)


def result(opened: Opened, data: dict[str, spans.Member]) -> tuple[spans.Member | None, bool]:
    """Where the text stands that a call's end gives to the agent, and whether the call failed."""
    if opened.literal(data.get("success")) == b"true":
        return opened.inside(data.get("result")).get("content"), False
    told = opened.inside(data.get("error")).get("message")
    return told if opened.is_text(told) else opened.inside(data.get("result")).get("content"), True


def reasons(opened: Opened, data: dict[str, spans.Member]) -> bool:
    """Whether an agent's message holds reasoning."""
    return any(opened.literal(data.get(key)) not in (b"", b"null", b'""', b"[]") for key in REASONING)


def _images(opened: Opened, member: spans.Member | None) -> list[bytes]:
    found = []
    for start, end in opened.elements(member):
        block = opened.members(start)
        data, kind = block.get("data"), block.get("mimeType")
        if opened.is_text(data) and opened.is_text(kind):
            source = b'{"type":"base64","media_type":%s,"data":%s}' % (opened.literal(kind), opened.literal(data))
        else:
            source = b'{"type":"client","data":%s}' % spans.quote(opened.raw[start:end].decode("utf-8", "replace"))
        found.append(b'{"type":"image","source":%s}' % source)
    return found


def _count(usage: dict[str, Any], key: str) -> int:
    value = usage.get(key)
    try:
        return max(0, int(float(value))) if isinstance(value, str) else 0
    except (ValueError, OverflowError):
        return 0
