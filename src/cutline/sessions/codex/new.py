"""A rollout written anew, for a session that was held in another client.

Law: what is said stands in items of the Responses API, and once more in the events that the client's terminal and its
list of sessions are made of. A text of a human's is marked as one, whatever it begins with; a text of nobody's stands
in the client's own form for that.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

from ... import spans
from ..files import unwritable, write_file
from ..model import History
from ..moved import Arrive, Call, Message, New, Part, Picture, Result, Text, Written, at_address
from . import find
from .copy import name
from .people import NOTICE
from .session import open_session

SURROGATES = False  # its reader refuses the whole line
ERRORS = False
SHOWN = True
ADDED: frozenset[str] = frozenset()
_NAMESPACE = "mcp__cutline"


def holds(picture: Picture) -> bool:
    """Whether a message can hold an attachment: images only."""
    return bool(picture.url) or picture.media.startswith("image/")


def picture(raw: str) -> Picture | None:
    """An image in the client's own form."""
    part = _object(raw)
    url = part.get("image_url")
    return at_address(url) if part.get("type") == "input_image" and isinstance(url, str) else None


def aside(raw: str) -> str:
    """The words of a text that was given from outside."""
    text = _object(raw).get("text")
    given = isinstance(text, str) and text.startswith(NOTICE[0]) and text.endswith(NOTICE[1])
    return text[len(NOTICE[0]) : -len(NOTICE[1])] if given and isinstance(text, str) else ""


def _object(raw: str) -> dict[str, object]:
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def write(new: New, arrive: Arrive) -> Written:
    """Write a rollout where the client looks for it, and its name into the client's list."""
    id_ = str(uuid.uuid4())
    stamp = new.stamp[:19].replace(":", "-")
    final = find.home().joinpath("sessions", *stamp[:10].split("-"), f"rollout-{stamp}-{id_}.jsonl")
    try:
        final.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise unwritable(final.parent, error) from None
    records = list(lines(new, id_))
    size = write_file(final, records, lambda path: arrive(_history(path)))
    name(final, id_, new.title)
    return Written(final, id_, len(records), size)


def _history(path: Path) -> History:
    return open_session(path).history


def lines(new: New, id: str) -> Iterator[bytes]:
    """The rollout's lines."""
    meta = b'{"id":"%s","timestamp":"%s","cwd":%s,"originator":"cutline","cli_version":"0.0.0","source":"cli"}' % (
        id.encode(),
        new.stamp.encode(),
        spans.quote(new.cwd),
    )
    yield _line(new, b"session_meta", meta)
    for message in new.messages:
        for type_, payload in _payloads(message):
            yield _line(new, type_, payload)
    told = b'{"type":"thread_name_updated","thread_id":"%s","thread_name":%s}' % (id.encode(), spans.quote(new.title))
    yield _line(new, b"event_msg", told)


def _line(new: New, type_: bytes, payload: bytes) -> bytes:
    return b'{"timestamp":"%s","type":"%s","payload":%s}\n' % (new.stamp.encode(), type_, payload)


def _payloads(message: Message) -> Iterator[tuple[bytes, bytes]]:
    """A message's items, and the events that say its words again."""
    if message.who == "aside":
        text = NOTICE[0] + "".join(str(spans.decode(part.literal)) for part in message.texts()) + NOTICE[1]
        yield _item(b"user", [b'{"type":"input_text","text":%s}' % spans.quote(text)])
    elif message.who == "human":
        yield _item(b"user", [_part(part) for part in message.parts], [_kind(part) for part in message.parts])
        yield _event(b"user_message", message)
    elif message.who == "agent":
        for part in message.texts():
            yield _item(b"assistant", [b'{"type":"output_text","text":%s}' % part.literal])
        if message.texts():
            yield _event(b"agent_message", message)
        for call in message.calls():
            yield b"response_item", _call(call)
    else:
        for result in message.results():
            yield b"response_item", _output(result)


def _item(role: bytes, parts: list[bytes], kinds: list[bytes] | None = None) -> tuple[bytes, bytes]:
    marks = b',"internal_chat_message_metadata_passthrough":{"content_item_kinds":[%s]}' % b",".join(kinds or ())
    return b"response_item", b'{"type":"message","role":"%s","content":[%s]%s}' % (
        role,
        b",".join(parts),
        marks if kinds else b"",
    )


def _part(part: Part) -> bytes:
    if isinstance(part, Picture):
        return b'{"type":"input_image","image_url":%s}' % spans.quote(part.address)
    assert isinstance(part, Text)
    return b'{"type":"input_text","text":%s}' % part.literal


def _kind(part: Part) -> bytes:
    """What the client calls a part that a person typed or attached."""
    return b'"user.image"' if isinstance(part, Picture) else b'"user.text"'


def _event(type_: bytes, message: Message) -> tuple[bytes, bytes]:
    words = b'"%s"' % b"\\n\\n".join(part.literal[1:-1] for part in message.texts())
    return b"event_msg", b'{"type":"%s","message":%s}' % (type_, words)


def _call(call: Call) -> bytes:
    named = b'"name":%s' % spans.quote(call.own or call.name)
    if call.own:
        named += b',"namespace":"%s"' % _NAMESPACE.encode()
    arguments = spans.quote(call.arguments.decode("utf-8"))
    return b'{"type":"function_call",%s,"arguments":%s,"call_id":%s}' % (named, arguments, spans.quote(call.id))


def _output(result: Result) -> bytes:
    output = result.text
    if result.pictures:
        parts = [_part(Text(result.text)), *map(_part, result.pictures)]
        output = b"[%s]" % b",".join(parts)
    return b'{"type":"function_call_output","call_id":%s,"output":%s}' % (spans.quote(result.id), output)
