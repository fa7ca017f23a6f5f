"""A session file written anew, for a session that was held in another client.

Law: one entry a message and one a result, each hanging off the one before. A text of nobody's stands in an entry that
the client itself marks as an extension's. The client reads a count of tokens in every answer, so they have one of zero.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from ... import spans
from ..files import unwritable, write_file
from ..moved import Arrive, Call, Message, New, Part, Picture, Text, Written
from . import find
from .copy import uuid7
from .session import open_session

SURROGATES = True
ERRORS = True
SHOWN = True
ADDED: frozenset[str] = frozenset()
_TOOLS = "mcp__cutline__"
_NO_COST = b'{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}'
_USAGE = b'{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":%s}' % _NO_COST


def holds(picture: Picture) -> bool:
    """Whether a message can hold an attachment: images with their data."""
    return bool(picture.data) and picture.media.startswith("image/")


def picture(raw: str) -> Picture | None:
    """An image in the client's own form."""
    try:
        part = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    media, data = (part.get("mimeType"), part.get("data")) if isinstance(part, dict) else (None, None)
    return Picture(media, data) if isinstance(media, str) and isinstance(data, str) else None


def aside(raw: str) -> str:
    """Such texts stand as they are."""
    return raw


def write(new: New, arrive: Arrive) -> Written:
    """Write a session file into the folder of its directory."""
    id_ = uuid7()
    folder = find.folder_of(new.cwd)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise unwritable(folder, error) from None
    final = folder / f"{new.stamp.replace(':', '-').replace('.', '-')}_{id_}.jsonl"
    records = list(lines(new, id_))
    size = write_file(final, records, lambda path: arrive(open_session(path).history))
    return Written(final, id_, len(records), size)


def lines(new: New, id: str) -> Iterator[bytes]:
    """The file's lines."""
    stamp = new.stamp.encode()
    yield b'{"type":"session","version":3,"id":"%s","timestamp":"%s","cwd":%s}\n' % (
        id.encode(),
        stamp,
        spans.quote(new.cwd),
    )
    parent, number = b"null", 0
    for type_, members in _entries(new):
        own = b'"%08x"' % number
        if type_ == b"context_edit":
            members = b'"targetId":%s,"replacement":null' % parent
        yield b'{"type":"%s","id":%s,"parentId":%s,"timestamp":"%s",%s}\n' % (type_, own, parent, stamp, members)
        parent, number = own, number + 1


def _entries(new: New) -> Iterator[tuple[bytes, bytes]]:
    """Type and members of each entry."""
    for message in new.messages:
        if message.who == "aside":
            content = b"".join(part.literal for part in message.texts())
            yield b"custom_message", b'"customType":"cutline","content":%s,"display":true' % content
        else:
            for inside in _messages(new, message):
                yield b"message", b'"message":{%s,"timestamp":%d}' % (inside, new.now)
    yield b"session_info", b'"name":%s' % spans.quote(new.title)
    # Behind an edit the client counts its context anew (`copy`); this one is about the name above, never sent.
    yield b"context_edit", b""


def _messages(new: New, message: Message) -> Iterator[bytes]:
    if message.who == "human":
        yield b'"role":"user","content":%s' % _content(message.parts)
    elif message.who == "agent":
        stop = b"toolUse" if message.calls() else b"stop"
        whose = b'"api":"unknown","provider":%s,"model":%s' % (spans.quote(new.maker), spans.quote(new.model))
        content = _content(message.parts)
        yield b'"role":"assistant","content":%s,%s,"usage":%s,"stopReason":"%s"' % (content, whose, _USAGE, stop)
    else:
        for result in message.results():
            text = () if result.text == b'""' else (Text(result.text),)
            yield b'"role":"toolResult","toolCallId":%s,"toolName":%s,"content":%s,"isError":%s' % (
                spans.quote(result.id),
                spans.quote(_TOOLS + result.own if result.own else result.name),
                _content((*text, *result.pictures)),
                b"true" if result.error else b"false",
            )


def _content(parts: tuple[Part, ...]) -> bytes:
    return b"[%s]" % b",".join(map(_block, parts))


def _block(part: Part) -> bytes:
    if isinstance(part, Picture):
        return b'{"type":"image","data":"%s","mimeType":%s}' % (part.data.encode(), spans.quote(part.media))
    if isinstance(part, Call):
        name = spans.quote(_TOOLS + part.own if part.own else part.name)
        return b'{"type":"toolCall","id":%s,"name":%s,"arguments":%s}' % (spans.quote(part.id), name, part.arguments)
    assert isinstance(part, Text)
    return b'{"type":"text","text":%s}' % part.literal
