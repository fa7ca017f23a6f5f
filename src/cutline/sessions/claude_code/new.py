"""A session file written anew, for a session that was held in another client.

Law: one record a message, each linked to the one before. A text of nobody's stands in a record that the client itself
marks as not the human's. What a message cost is left out: nothing was counted for it here.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator

from ... import spans
from ..files import unwritable, write_file
from ..moved import Arrive, Call, Message, New, Part, Picture, Result, Text, Written
from . import find
from .session import open_session

SURROGATES = True
ERRORS = True
SHOWN = True
ADDED: frozenset[str] = frozenset()
_TOOLS = "mcp__cutline__"
_DOCUMENT = "application/pdf"


def holds(picture: Picture) -> bool:
    """Whether a message can hold an attachment: images and PDF files."""
    return bool(picture.url) or picture.media.startswith("image/") or picture.media == _DOCUMENT


def picture(raw: str) -> Picture | None:
    """It has no form of its own: a history's attachments are in the wire's."""
    return None


def aside(raw: str) -> str:
    """Such texts stand as they are."""
    return raw


def write(new: New, arrive: Arrive) -> Written:
    """Write a session file into the folder of its directory."""
    id_ = str(uuid.uuid4())
    final = find.projects() / find.folder_name(new.cwd) / f"{id_}.jsonl"
    try:
        final.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise unwritable(final.parent, error) from None
    records = list(lines(new, id_))
    size = write_file(final, records, lambda path: arrive(open_session(path).history))
    return Written(final, id_, len(records), size)


def lines(new: New, id: str) -> Iterator[bytes]:
    """The file's lines."""
    parent = b"null"
    for message in new.messages:
        own = b'"%s"' % str(uuid.uuid4()).encode()
        type_ = b"assistant" if message.who == "agent" else b"user"
        yield b"".join(
            (
                b'{"parentUuid":%s,"isSidechain":false,"userType":"external","cwd":%s' % (parent, spans.quote(new.cwd)),
                b',"sessionId":"%s","type":"%s"' % (id.encode(), type_),
                b',"isMeta":true' if message.who == "aside" else b"",
                b',"message":%s' % _message(new, message),
                b',"uuid":%s,"timestamp":"%s"}\n' % (own, new.stamp.encode()),
            )
        )
        parent = own
    title = spans.quote(new.title)
    yield b'{"type":"custom-title","customTitle":%s,"sessionId":"%s"}\n' % (title, id.encode())


def _message(new: New, message: Message) -> bytes:
    if message.who != "agent":
        # Words alone stand as a string, as the client writes what is typed.
        alone = message.parts[0] if len(message.parts) == 1 else None
        content = alone.literal if isinstance(alone, Text) else _content(message.parts)
        return b'{"role":"user","content":%s}' % content
    head = b'"id":"msg_%s","type":"message","role":"assistant"' % uuid.uuid4().hex.encode()
    return b'{%s,"model":%s,"content":%s,"stop_reason":null,"stop_sequence":null}' % (
        head,
        spans.quote(new.model),
        _content(message.parts),
    )


def _content(parts: tuple[Part, ...]) -> bytes:
    return b"[%s]" % b",".join(map(_block, parts))


def _block(part: Part) -> bytes:
    if isinstance(part, Text):
        return b'{"type":"text","text":%s}' % part.literal
    if isinstance(part, Picture):
        return _picture(part)
    if isinstance(part, Call):
        name = spans.quote(_TOOLS + part.own if part.own else part.name)
        return b'{"type":"tool_use","id":%s,"name":%s,"input":%s}' % (spans.quote(part.id), name, part.arguments)
    return _result(part)


def _picture(picture: Picture) -> bytes:
    kind = b"document" if picture.media == _DOCUMENT else b"image"
    source = b'{"type":"url","url":%s}' % spans.quote(picture.url)
    if not picture.url:
        source = b'{"type":"base64","media_type":%s,"data":"%s"}' % (
            spans.quote(picture.media),
            picture.data.encode(),
        )
    return b'{"type":"%s","source":%s}' % (kind, source)


def _result(result: Result) -> bytes:
    content = result.text
    if result.pictures:
        text = [] if result.text == b'""' else [b'{"type":"text","text":%s}' % result.text]
        content = b"[%s]" % b",".join([*text, *map(_picture, result.pictures)])
    flag = b',"is_error":true' if result.error else b""
    return b'{"tool_use_id":%s,"type":"tool_result","content":%s%s}' % (spans.quote(result.id), content, flag)
