"""One message of the file taken apart into the blocks that the client would send of it.

Law: literals only, in the order of the wire; nothing is decoded but names, ids and the beginnings that tell whose a
text is. A message whose content holds calls or reasoning itself is sent as it is; of any other the client sends its
`thoughts`, its content and its `toolCalls`, and the results of those behind them (docs/gemini-cli-sessions.md).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from ... import spans
from ...errors import Unreadable
from ...spans import Member

Kind = Literal["text", "thinking", "call", "result", "image", "unknown"]
Where = tuple[str, int, int]
"""A member of the message; an index in its list (-1: it is no list); for a result in `toolCalls` the index of its first
part (-1: it is a string), in a content how many parts it has."""

_NONE = Member("", 0, 0, 0)
_MEDIA = {"inlineData", "fileData"}


class Piece(NamedTuple):
    """One block.

    Attributes:
        kind: what it is.
        where: where it stands in the message.
        literal: a text's string literal, a call's arguments, a result's content, else the client's own JSON.
        id, name: of a call, or of the call that a result answers; the id as on the wire.
        error: a result that the client marks as failed.
    """

    kind: Kind
    where: Where
    literal: bytes
    id: str = ""
    name: str = ""
    error: bool = False


@dataclass(slots=True)
class Message:
    """A message taken apart.

    Attributes:
        raw, view: its bytes, and their latin-1 view.
        top: its members.
        type: "user", "gemini", or another that the client does not send ("info" …).
        pieces: its blocks.
    """

    raw: bytes
    view: str
    top: dict[str, Member]
    type: str
    pieces: list[Piece] = field(default_factory=list)

    def word(self, key: str) -> str:
        """A member that is a string; "" for none."""
        return self.value(self.top.get(key, _NONE))

    def value(self, member: Member) -> str:
        """A string, decoded; "" for anything else."""
        if self.view[member.start : member.start + 1] != '"':
            return ""
        return str(spans.decode(self.raw[member.start : member.end]))

    def inside(self, at: int) -> dict[str, Member]:
        """The members of the object at `at`; none where it is no object."""
        if self.view[at] != "{":
            return {}
        return {member.key: member for member in spans.members(self.view, at)[0]}

    def items(self, member: Member | None) -> list[tuple[int, int]]:
        """The spans of a list's items; none where it is no list."""
        return spans.elements(self.view, member.start)[0] if member and self.view[member.start] == "[" else []

    @property
    def content(self) -> Member | None:
        """The member that holds the content."""
        return self.top.get("content") or self.top.get("parts")


_TYPES = {"model": "gemini", "function": "user"}


def opened(raw: bytes) -> Message:
    """Take a message apart; it must have been read once (`log.read`)."""
    view = raw.decode("latin-1")
    message = Message(raw, view, {member.key: member for member in spans.members(view, 0)[0]}, "")
    type_ = message.word("type") or message.word("role")
    message.type = _TYPES.get(type_, type_)
    if message.type == "user":
        _parts(message)
    elif message.type == "gemini":
        _agent(message)
    return message


def _agent(message: Message) -> None:
    _parts(message)
    parts = message.pieces
    made = {piece.id for piece in parts if piece.kind == "call"}
    before: list[Piece] = []
    if not any(piece.kind == "thinking" for piece in parts):
        for index, (start, end) in enumerate(message.items(message.top.get("thoughts"))):
            before.append(Piece("thinking", ("thoughts", index, -1), message.raw[start:end]))
    calls: list[Piece] = []
    results: list[Piece] = []
    for index, (start, _) in enumerate(message.items(message.top.get("toolCalls"))):
        found = message.inside(start)
        name = message.value(found.get("name", _NONE))
        id_ = wire_id(message.value(found.get("id", _NONE)), name)
        if id_ not in made:
            calls.append(Piece("call", ("toolCalls", index, -1), _arguments(message, found.get("args")), id_, name))
        failed = message.value(found.get("status", _NONE)) in ("error", "cancelled")
        result = found.get("result")
        if result and message.view[result.start] == '"':
            literal = message.raw[result.start : result.end]
            results.append(Piece("result", ("toolCalls", index, -1), literal, id_, name, failed))
        for number, group in own(message, result, id_)[:1]:
            literal, error = answer(message, group)
            results.append(Piece("result", ("toolCalls", index, number), literal, id_, name, failed or error))
    message.pieces = [*before, *parts, *calls, *results]


def _parts(message: Message) -> None:
    """The blocks of a message's content: one string, one part, or a list of parts."""
    content = message.content
    if content is None:
        return
    kind = message.view[content.start]
    if kind == '"':
        if content.end - content.start > 2:
            message.pieces.append(Piece("text", ("content", -1, 1), message.raw[content.start : content.end]))
        return
    if kind not in "[{":
        return
    places = message.items(content) if kind == "[" else [(content.start, content.end)]
    taken = 0  # up to where a result took the media behind it
    for index, (start, end) in enumerate(places):
        where = ("content", index if kind == "[" else -1, 1)
        if index < taken:
            continue
        if message.view[start] == '"':
            if end - start > 2:
                message.pieces.append(Piece("text", where, message.raw[start:end]))
            continue
        found = message.inside(start)
        if "functionCall" in found:
            made = message.inside(found["functionCall"].start)
            name = message.value(made.get("name", _NONE))
            id_ = wire_id(message.value(made.get("id", _NONE)), name)
            message.pieces.append(Piece("call", where, _arguments(message, made.get("args")), id_, name))
        elif "functionResponse" in found:
            id_, name = _names(message, found["functionResponse"])
            taken = index + 1
            while taken < len(places) and _MEDIA & message.inside(places[taken][0]).keys():
                taken += 1
            literal, error = answer(message, places[index:taken])
            where = (*where[:2], taken - index)
            message.pieces.append(Piece("result", where, literal, id_, name, error))
        elif "text" in found and message.view[found["text"].start] == '"':
            literal = message.raw[found["text"].start : found["text"].end]
            if "thought" in found and message.view[found["thought"].start] == "t":
                message.pieces.append(Piece("thinking", where, literal))
            elif literal != b'""':
                message.pieces.append(Piece("text", where, literal))
        elif _MEDIA & found.keys() and message.type == "user":
            message.pieces.append(Piece("image", where, message.raw[start:end]))
        else:
            message.pieces.append(Piece("unknown", where, message.raw[start:end]))


def wire_id(id_: str, name: str) -> str:
    """A call's id as on the wire: newer versions keep it in the file behind the tool's name."""
    return id_.removeprefix(f"{name.strip() or 'generic_tool'}__")


def _arguments(message: Message, member: Member | None) -> bytes:
    if member is None or message.view.startswith("null", member.start):
        return b"{}"
    literal = message.raw[member.start : member.end]
    if literal[:1] == b'"':
        text = str(spans.decode(literal)).encode("utf-8", "surrogatepass")
        try:
            view = spans.view(text)
            if spans.scan(view, spans.skip(view, 0))[1] == len(view.rstrip()) and view.lstrip()[:1] == "{":
                return text
        except (*spans.DOUBTS, Unreadable):
            pass
    return literal


def _names(message: Message, member: Member) -> tuple[str, str]:
    """Id and name of a `functionResponse`."""
    found = message.inside(member.start)
    name = message.value(found.get("name", _NONE))
    return wire_id(message.value(found.get("id", _NONE)), name), name


Group = list[tuple[int, int]]
"""The spans of a result's parts: a `functionResponse`, and what stands behind it up to the next one."""


def groups(message: Message, result: Member | None) -> list[tuple[str, list[int], Group]]:
    """A call's recorded result by the call that each part answers: its id, the parts' indices, their spans."""
    found: list[tuple[str, list[int], Group]] = []
    for index, (start, end) in enumerate(message.items(result)):
        inside = message.inside(start)
        response = inside.get("functionResponse")
        if response or not found:
            id_ = _names(message, response)[0] if response else ""
            found.append((id_, [], []))
        found[-1][1].append(index)
        found[-1][2].append((start, end))
    return found


def own(message: Message, result: Member | None, id_: str) -> list[tuple[int, Group]]:
    """The parts of a call's recorded result that answer that call, with the index of the first.

    On a resume the client writes into each call's result the results of all calls beside it.
    """
    found = groups(message, result)
    mine = [(parts[0], group) for name, parts, group in found if name == id_]
    return mine or [(parts[0], group) for name, parts, group in found if not name]


def answer(message: Message, group: Group) -> tuple[bytes, bool]:
    """A result's content, and whether it is an error.

    It is the literal of the words that the client calls `output` or `error`; a response of another form stands as
    the text of its JSON. Images and texts beside it make it a list.
    """
    first = message.inside(group[0][0])
    blocks: list[bytes] = []
    literal, error = b'""', False
    if "functionResponse" in first:
        inside = message.inside(first["functionResponse"].start)
        response = inside.get("response")
        members = message.inside(response.start) if response else {}
        error = "error" in members
        words = next(iter(members.values())) if len(members) == 1 else None
        if words and words.key in ("output", "error") and message.view[words.start] == '"':
            literal = message.raw[words.start : words.end]
        elif response:
            literal = _quoted(message.raw[response.start : response.end])
        blocks = [_image(message.raw[start:end]) for start, end in message.items(inside.get("parts"))]
        group = group[1:]
    elif "text" in first and message.view[first["text"].start] == '"':
        literal = message.raw[first["text"].start : first["text"].end]
        group = group[1:]
    for start, end in group:
        beside = message.inside(start)
        if "text" in beside and message.view[beside["text"].start] == '"':
            text = message.raw[beside["text"].start : beside["text"].end]
            blocks.append(b'{"type":"text","text":%s}' % text)
        else:
            blocks.append(_image(message.raw[start:end]))
    if not blocks:
        return literal, error
    return b'[{"type":"text","text":%s},%s]' % (literal, b",".join(blocks)), error


def _image(literal: bytes) -> bytes:
    return b'{"type":"image","source":{"type":"client","data":%s}}' % _quoted(literal)


def _quoted(literal: bytes) -> bytes:
    return spans.quote(literal.decode("utf-8", "surrogatepass"))


def tokens(message: Message) -> dict[str, Any]:
    """What the client noted of the provider's counts; empty where it noted none."""
    member = message.top.get("tokens")
    value = spans.decode(message.raw[member.start : member.end]) if member else None
    return value if isinstance(value, dict) else {}
