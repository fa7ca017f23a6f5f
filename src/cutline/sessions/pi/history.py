"""What the client would send of a session, in the one form that is cut.

Law: words stay the literals that they are in the file. What the client never sends (an answer that failed or was
stopped, a command that a person kept to himself) is not in it; system messages, which it sends as they are, are none of
the conversation and are not in it either.
"""

from __future__ import annotations

from typing import Any

from ... import spans
from ...errors import InputError
from ...money import Usage
from ..lines import Opened, unview
from ..model import Origin, Request
from ..neutral import Builder, NeutralHistory
from .entries import Entry, Log

SPOKEN = ("custom", "hookMessage")
"""Roles of messages that an extension put in."""
_STOPPED = ("error", "aborted")
_SUMMARIES = ("branchSummary", "compactionSummary")


def history(log: Log) -> NeutralHistory:
    """Rebuild what the client would send.

    Raises:
        InputError: the file holds no conversation, or became shorter while it was read.
    """
    models = (log.entries[number].model for number in log.sent if log.entries[number].role == "assistant")
    build = Builder(unview(next((model for model in reversed(list(models)) if model), "")))
    with log.reader() as fetch:
        for position, number in enumerate(log.sent):
            entry = log.entries[number]
            if entry.type == "compaction":
                if position == 0:
                    build.compacted = True
                    opened = Opened(fetch(entry))
                    _words(build, "summary", opened, opened.members().get("summary"), (number, 0))
                continue
            edit = log.edits.get(number)
            edited = None if edit is None else Opened(fetch(log.entries[edit]))
            _add(build, number, entry, Opened(fetch(entry)), edited)
    if not build.places:
        raise InputError(f"{log.path}: no conversation in {len(log.entries):,} entries; give another session")
    return build.done()


def wire_id(id: str) -> str:
    """A call's id as on the wire: OpenAI's Responses keep the id of its item behind a bar."""
    return unview(id.split("|")[0])


def _add(build: Builder, number: int, entry: Entry, opened: Opened, edit: Opened | None) -> None:
    members = opened.members()
    if entry.type == "branch_summary":
        _words(build, "summary", opened, members.get("summary"), (number, 0))
        return
    if entry.type == "custom_message":
        holder, content = opened, members.get("content")
    elif entry.type == "message":
        members = opened.inside(members.get("message"))
        holder, content = opened, members.get("content")
    else:
        return
    if edit is not None and (entry.type == "custom_message" or entry.role in ("user", "assistant", "toolResult")):
        # An edit takes the message out, or puts another content in its place.
        holder, content = edit, edit.inside(edit.members().get("replacement")).get("content")
        if content is None:
            return
    role = entry.role or "custom"
    if role == "assistant":
        if entry.stop not in _STOPPED:
            _agent(build, number, entry, holder, content)
            if build.places and build.places[-1][-1][0] == number:
                _usage(build, entry, opened.value(members.get("usage")), opened.value(members.get("responseId")))
    elif role == "toolResult":
        failed = opened.literal(members.get("isError")) == b"true"
        build.result(wire_id(entry.answers), result_content(holder, content), (number, 0), error=failed)
    elif role == "user":
        _said(build, "human", number, holder, content)
    elif role in SPOKEN:
        _said(build, "harness", number, holder, content)
    elif role == "bashExecution":
        if opened.literal(members.get("excludeFromContext")) != b"true":
            _words(build, "human", opened, members.get("command"), (number, 0))
            _words(build, "harness", opened, members.get("output"), (number, 1))
    elif role in _SUMMARIES:
        _words(build, "summary", opened, members.get("summary"), (number, 0))


def _words(build: Builder, origin: Origin, opened: Opened, member: spans.Member | None, place: tuple[int, int]) -> None:
    literal = opened.literal(member)
    if literal[:1] == b'"' and literal != b'""':
        build.text(origin, literal, place)


def _said(build: Builder, origin: Origin, number: int, opened: Opened, content: spans.Member | None) -> None:
    """What a person or an extension said: one string, or texts and images."""
    if opened.is_text(content):
        _words(build, origin, opened, content, (number, 0))
    for index, (start, end) in enumerate(opened.elements(content)):
        block = opened.members(start)
        type_ = opened.value(block.get("type"))
        if type_ == "text":
            _words(build, origin, opened, block.get("text"), (number, index))
        elif block:
            build.image(opened.raw[start:end], (number, index), origin)


def _agent(build: Builder, number: int, entry: Entry, opened: Opened, content: spans.Member | None) -> None:
    if opened.is_text(content):
        build.text("agent", opened.literal(content), (number, 0))
    for index, (start, end) in enumerate(opened.elements(content)):
        block = opened.members(start)
        type_ = opened.value(block.get("type"))
        if type_ == "text" and opened.is_text(block.get("text")):
            build.text("agent", opened.literal(block["text"]), (number, index))
        elif type_ == "thinking":
            words = opened.literal(block.get("thinking"))
            # Reasoning that is encrypted has no words, but its weight.
            whole = words[:1] != b'"' or words == b'""'
            signed = block.get("thinkingSignature")
            if whole or not opened.is_text(signed):
                build.thinking(opened.raw[start:end] if whole else words, (number, index))
            else:
                build.thinking(words, (number, index), opened.literal(signed))
        elif type_ == "toolCall":
            id_, name = opened.value(block.get("id")), opened.value(block.get("name"))
            arguments = opened.literal(block.get("arguments")) or b"{}"
            build.call(
                id_.split("|")[0] if isinstance(id_, str) else "",
                name if isinstance(name, str) else "",
                arguments,
                (number, index),
            )


def _usage(build: Builder, entry: Entry, usage: Any, response: Any) -> None:
    if not isinstance(usage, dict):
        return
    hour = _count(usage, "cacheWrite1h")
    counts = Usage(
        input=_count(usage, "input"),
        cache_read=_count(usage, "cacheRead"),
        cache_write_5m=max(0, _count(usage, "cacheWrite") - hour),
        cache_write_1h=hour,
        output=_count(usage, "output"),
    )
    if counts.total_input or counts.output:
        id_ = response if isinstance(response, str) else ""
        build.answered(Request(0, id_, unview(entry.model), entry.timestamp, counts))


def _count(usage: dict[str, Any], key: str) -> int:
    value = usage.get(key)
    return int(value) if isinstance(value, str) and value.isdigit() else 0


def result_content(opened: Opened, content: spans.Member | None) -> bytes:
    """A result's content: its list as it is but for images, which are written in the form that is cut."""
    if content is None or opened.view[content.start] not in '"[':
        return b"[]"
    if opened.is_text(content):
        return opened.literal(content)
    items = []
    for start, end in opened.elements(content):
        block = opened.members(start)
        data, kind = block.get("data"), block.get("mimeType")
        if opened.value(block.get("type")) == "image" and opened.is_text(data) and opened.is_text(kind):
            source = b'{"type":"base64","media_type":%s,"data":%s}' % (opened.literal(kind), opened.literal(data))
            items.append(b'{"type":"image","source":%s}' % source)
        else:
            items.append(opened.raw[start:end])
    return b"[" + b",".join(items) + b"]"
