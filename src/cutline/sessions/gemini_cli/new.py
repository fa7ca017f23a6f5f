"""A session file written anew, for a session that was held in another client.

Law: one message a line, and each result once, in the call that it answers. The client marks nothing as nobody's, so a
text of nobody's begins as Cutline's notices do; and it does not send what a person typed if that looks like a command
or a question about the client, so such words have a text of nobody's before them.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from pathlib import Path

from ... import spans
from ...notice import OPENING
from ..files import unwritable, write_file
from ..model import History
from ..moved import Arrive, Call, Message, New, Part, Picture, Result, Text, Written, at_address
from . import find
from .session import open_session

SURROGATES = True
ERRORS = True
_TYPED = f"{OPENING} The human typed:"
SHOWN = True
ADDED = frozenset((_TYPED,))
_TOOLS = "mcp_cutline_"
_UNSENT = ("/", "?", "<session_context>", "<hook_context>")


def holds(picture: Picture) -> bool:
    """Whether a message can hold an attachment: any whose data is known."""
    return bool(picture.data)


def picture(raw: str) -> Picture | None:
    """An attachment in the client's own form."""
    try:
        part = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    part = part if isinstance(part, dict) else {}
    inline, file = part.get("inlineData"), part.get("fileData")
    if isinstance(inline, dict) and isinstance(inline.get("data"), str):
        return Picture(str(inline.get("mimeType") or ""), inline["data"])
    if isinstance(file, dict) and isinstance(file.get("fileUri"), str):
        return at_address(file["fileUri"], str(file.get("mimeType") or ""))
    return None


def aside(raw: str) -> str:
    """Such texts stand as they are."""
    return raw


def write(new: New, arrive: Arrive) -> Written:
    """Write a session file into the folder of its directory, which is made where the client has none yet."""
    id_ = str(uuid.uuid4())
    try:
        folder = find.folder_of(new.cwd)
    except OSError as error:
        raise unwritable(find.projects(), error) from None
    final = folder / f"session-{new.stamp[:16].replace(':', '-')}-{id_[:8]}.jsonl"
    records = list(lines(new, id_))
    size = write_file(final, records, lambda path: arrive(_history(path)), ending=final.suffix)
    return Written(final, id_, len(records), size)


def _history(path: Path) -> History:
    return open_session(path).history


def lines(new: New, id: str) -> Iterator[bytes]:
    """The file's lines."""
    told = {
        "sessionId": id,
        "projectHash": find.hashed(os.path.realpath(new.cwd)),
        "startTime": new.stamp,
        "lastUpdated": new.stamp,
        "kind": "main",
        "summary": new.title,
    }
    yield json.dumps(told, separators=(",", ":")).encode() + b"\n"
    answers: tuple[Result, ...] = ()
    for number, message in enumerate(new.messages):
        if message.who == "agent" and message.calls():
            answers = tuple(new.messages[number + 1].results())
        if message.who != "results":
            members = _members(new, message, answers)
            head = b'{"id":"%s","timestamp":"%s"' % (str(uuid.uuid4()).encode(), new.stamp.encode())
            yield b"%s,%s}\n" % (head, members)


def _members(new: New, message: Message, answers: tuple[Result, ...]) -> bytes:
    if message.who == "agent":
        texts = message.texts()
        content = texts[0].literal if len(texts) == 1 else _parts(texts) if texts else b'""'
        calls = b",".join(_call(new, *pair) for pair in zip(message.calls(), answers, strict=False))
        model = spans.quote(new.model)
        return b'"type":"gemini","content":%s,"model":%s%s' % (
            content,
            model,
            b',"toolCalls":[%s]' % calls if calls else b"",
        )
    if message.who == "aside":
        # It is not drawn as typed: what is shown is a blank.
        return b'"type":"user","content":%s,"displayContent":[{"text":" "}]' % _parts(message.parts)
    content = _parts(message.parts)
    if "".join(str(spans.decode(part.literal)) for part in message.texts()).strip().startswith(_UNSENT):
        shown = content
        content = _parts((Text(spans.quote(_TYPED)), *message.parts))
        return b'"type":"user","content":%s,"displayContent":%s' % (content, shown)
    return b'"type":"user","content":%s' % content


def _parts(parts: tuple[Part, ...] | list[Text]) -> bytes:
    return b"[%s]" % b",".join(map(_part, parts))


def _part(part: Part) -> bytes:
    if isinstance(part, Picture):
        return b'{"inlineData":{"mimeType":%s,"data":"%s"}}' % (spans.quote(part.media), part.data.encode())
    assert isinstance(part, Text)
    return b'{"text":%s}' % part.literal


def _call(new: New, call: Call, answer: Result) -> bytes:
    """A call with its result; in the file, and there only, the tool's name stands before the id."""
    bare = _TOOLS + call.own if call.own else call.name
    id_, name = spans.quote(f"{bare}__{call.id}"), spans.quote(bare)
    said = b'{"%s":%s}' % (b"error" if answer.error else b"output", answer.text)
    result = b'{"functionResponse":{"id":%s,"name":%s,"response":%s}}' % (id_, name, said)
    beside = b"".join(b"," + _part(picture) for picture in answer.pictures)
    return b'{"id":%s,"name":%s,"args":%s,"result":[%s%s],"status":"%s","timestamp":"%s"}' % (
        *(id_, name, call.arguments, result, beside),
        b"error" if answer.error else b"success",
        new.stamp.encode(),
    )
