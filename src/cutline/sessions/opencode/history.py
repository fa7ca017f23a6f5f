"""What the client would send of a session, in the form that is cut.

Law: words, arguments and results are the literals of their records. One part holds a call and its result: both come
from the same place. What the client puts in by itself (a marker of a compaction, a synthetic text) is the harness's.
"""

from __future__ import annotations

from datetime import UTC, datetime

from ... import spans
from ...errors import InputError
from ...money import Usage
from ..model import Origin, Request
from ..neutral import Builder, NeutralHistory, Place
from .literals import Opened, number
from .live import live, sums_up
from .records import Log, Message

_CLEARED = b'"[Old tool result content cleared]"'
_INTERRUPTED = b'"[Tool execution was interrupted]"'
_SAID_FOR = {"compaction": b'"What did we do so far?"', "subtask": b'"The following tool was executed by the user"'}
_UNSENT = ("text/plain", "application/x-directory")
"""Attached files of these kinds are sent as texts of their own."""


def history(log: Log) -> NeutralHistory:
    """Rebuild the live history. Gives names to calls whose recorded id is that of an earlier one (`Log.names`).

    Raises:
        InputError: nobody says anything in it.
    """
    found = live(log)
    build = Builder(model=_model(log, found.order))
    build.compacted = found.compacted
    building = _Building(log, build)
    for place in found.order:
        one = log.messages[place]
        info = Opened(one.raw)
        upto = found.until.get(place, len(one.parts))
        if one.role == "user":
            building.person(place, one, upto)
        elif _is_sent(log, one, info):
            building.agent(place, one, info, upto)
    if not build.places:
        raise InputError(f"{log.path}: no conversation in session {log.id}; give another one")
    return build.done()


def _is_sent(log: Log, one: Message, info: Opened) -> bool:
    """An answer that failed is not sent, unless a person stopped it and something of it is there."""
    if info.literal("error") in (b"", b"null"):
        return True
    kinds = {log.open(part.raw).word("type") for part in one.parts}
    return info.word("error", "name") == "MessageAbortedError" and bool(kinds - {"step-start", "reasoning"})


def _model(log: Log, order: list[int]) -> str:
    answers = (Opened(log.messages[place].raw) for place in reversed(order) if log.messages[place].role == "assistant")
    return next((name for name in (info.word("modelID") for info in answers) if name), "")


class _Building:
    """Puts one message after the other into a history."""

    def __init__(self, log: Log, build: Builder) -> None:
        self.log, self.build = log, build
        self.calls: set[str] = set()
        log.names.clear()

    def person(self, place: int, one: Message, upto: int) -> None:
        """A user message: what a person typed and attached, and what the client put beside it."""
        for index, part in enumerate(one.parts[:upto]):
            opened = self.log.open(part.raw)
            kind, at = opened.word("type"), (place, index)
            if kind == "text" and opened.literal("ignored") != b"true":
                self._text("harness" if opened.literal("synthetic") == b"true" else "human", opened, at)
            elif kind == "file" and opened.word("mime") not in _UNSENT:
                self.build.image(opened.literal("url") or b'""', at)
            elif kind in _SAID_FOR:
                self.build.text("harness", _SAID_FOR[kind], at)

    def agent(self, place: int, one: Message, info: Opened, upto: int) -> None:
        """An answer: of each step first what the agent said and called, then the results."""
        summary = sums_up(info)
        results: list[tuple[str, bytes, Place, bool]] = []
        said = len(self.build.places)
        counted: Opened | None = None

        def step() -> None:
            nonlocal said, counted
            if len(self.build.places) > said:
                self._usage(one, info, counted)
            for id_, content, at, failed in results:
                self.build.result(id_, content, at, error=failed)
            results.clear()
            self.build.part()
            said, counted = len(self.build.places), None

        for index, part in enumerate(one.parts[:upto]):
            opened = self.log.open(part.raw)
            kind, at = opened.word("type"), (place, index)
            if kind == "step-start":
                step()
            elif kind == "step-finish":
                counted = opened
            elif kind == "text":
                self._text("summary" if summary else "agent", opened, at)
            elif kind == "reasoning":
                self._thinking(opened, at)
            elif kind == "tool":
                id_ = self._id(opened.word("callID"), at)
                self.build.call(id_, opened.word("tool"), opened.literal("state", "input") or b"{}", at)
                content, failed = result(opened)
                results.append((id_, content, at, failed))
        step()

    def _id(self, id: str, at: Place) -> str:
        """A call's id; where an earlier call has the same (published sessions hold such), one that no call has."""
        name, copies = id, 1
        while name in self.calls:
            copies += 1
            name = f"{id}#{copies}"
        if name != id:
            self.log.names[at] = name
        self.calls.add(name)
        return name

    def _text(self, origin: Origin, opened: Opened, at: Place) -> None:
        literal = opened.literal("text")
        if literal[:1] == b'"' and literal != b'""':
            self.build.text(origin, literal, at)

    def _thinking(self, opened: Opened, at: Place) -> None:
        words = opened.literal("text")
        signature = opened.literal("metadata", "anthropic", "signature")
        # Reasoning that is encrypted has no words, but its weight.
        silent = words[:1] != b'"' or words == b'""'
        literal = opened.literal("metadata") or b'""' if silent else words
        self.build.thinking(literal, at, signature if signature[:1] == b'"' else b'""')

    def _usage(self, one: Message, info: Opened, counted: Opened | None) -> None:
        tokens = (counted or info).value("tokens")
        if not isinstance(tokens, dict):
            return
        cache = tokens.get("cache")
        stored = cache if isinstance(cache, dict) else {}
        read, written = number(stored.get("read")), number(stored.get("write"))
        fresh, output, total = number(tokens.get("input")), number(tokens.get("output")), number(tokens.get("total"))
        # Whether output counts the reasoning differs by provider; the total says.
        spent = max(output, total - fresh - read - written) if total else output + number(tokens.get("reasoning"))
        usage = Usage(input=fresh, cache_read=read, cache_write_5m=written, output=spent)
        if usage.total_input or usage.output:
            ended = number(info.value("time", "completed")) or one.created
            self.build.answered(Request(0, one.id, info.word("modelID"), stamp(ended), usage))


def result(opened: Opened) -> tuple[bytes, bool]:
    """A call's result as it is sent, and whether the client marks it as an error."""
    status = opened.word("state", "status")
    if status == "completed":
        if number(opened.value("state", "time", "compacted")):
            return _CLEARED, False
        output = opened.literal("state", "output")
        output = output if output[:1] == b'"' else spans.quote(output.decode("utf-8", "surrogatepass"))
        attached = opened.elements("state", "attachments")
        if not attached:
            return output, False
        images = [
            b'{"type":"image","source":{"type":"client","data":%s}}' % spans.quote(opened.raw[start:end].decode())
            for start, end in attached
        ]
        return b'[{"type":"text","text":%s},%s]' % (output, b",".join(images)), False
    if status == "error":
        output = opened.literal("state", "metadata", "output")
        if opened.literal("state", "metadata", "interrupted") == b"true" and output[:1] == b'"':
            return output, False
        error = opened.literal("state", "error")
        return (error if error[:1] == b'"' else b'""'), True
    return _INTERRUPTED, True


def output_path(opened: Opened) -> tuple[str, ...]:
    """Where the text of a result stands in its part; nothing where the client makes it up."""
    status = opened.word("state", "status")
    if status == "completed" and not number(opened.value("state", "time", "compacted")):
        return ("state", "output")
    if status == "error":
        interrupted = opened.literal("state", "metadata", "interrupted") == b"true"
        if interrupted and opened.literal("state", "metadata", "output")[:1] == b'"':
            return ("state", "metadata", "output")
        return ("state", "error")
    return ()


def stamp(milliseconds: int) -> str:
    """A time of the client's as ISO 8601; "" for none."""
    if not milliseconds:
        return ""
    try:
        then = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return ""
    return then.isoformat(timespec="milliseconds").replace("+00:00", "Z")
