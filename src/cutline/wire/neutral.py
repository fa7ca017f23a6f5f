"""A history of any format in one shape, that of Anthropic Messages, made of the body's own literals.

Law: for deciding and proving only, nobody is sent it. Words, arguments and results stand in it as the literals that
they are in the body, and each block knows where it came from. What a format has and this shape has not is carried
along as members that keep two texts from being taken for alike.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from .. import blocks, spans

Role = Literal["user", "assistant"]
UNKNOWN = "unknown:"
"""Begins the type of a block whose own type is not known."""


class Place(NamedTuple):
    """Where a block stands in its body.

    Attributes:
        item: index into the body's list of messages, items or contents.
        member: the member of the item that holds it; "" for the item itself.
        part: index in that member's list; -1 where it holds no list.
    """

    item: int
    member: str = ""
    part: int = -1


@dataclass(frozen=True, slots=True)
class Native:
    """A body of another format that was read.

    Attributes:
        format: its name, as in `formats.NAMES`.
        body, view: the bytes and their latin-1 view.
        items: spans of its messages, items or contents, in order.
        roles: whose each of them is, in the format's own words: neighbours of one role may have to be merged.
        places: for block b of message m of the neutral body, where it stands.
        neutral: the neutral body.
        held: why the history can't be cut here because the server holds a part of it; "" if it does not.
    """

    format: str
    body: bytes
    view: str
    items: list[tuple[int, int]]
    roles: list[str]
    places: list[list[Place]]
    neutral: bytes
    held: str = ""

    def at(self, place: blocks.Place) -> Place:
        """Where a block of the neutral body stands."""
        return self.places[place.message][place.block]

    def shown(self) -> dict[Place, blocks.Place]:
        """Each place as it is shown: the item, and which of its blocks."""
        counted: dict[int, int] = {}
        found: dict[Place, blocks.Place] = {}
        for at in (one for places in self.places for one in places):
            found[at] = blocks.Place(at.item, counted.setdefault(at.item, 0))
            counted[at.item] += 1
        return found

    def commands(self, message: int, block: int) -> bool:
        """Whether a block is a system or developer message."""
        at = self.places[message][block]
        return not at.member and self.roles[at.item] in ("system", "developer")

    def size(self, place: blocks.Place) -> int:
        """Bytes of a block's own literal in the body."""
        at = self.at(place)
        start, end = self.items[at.item]
        if not at.member:
            return end - start
        member = spans.find(self.view, start, at.member)
        if member is None:
            return 0
        if at.part < 0:
            return member.end - member.start
        first, last = spans.elements(self.view, member.start)[0][at.part]
        return last - first


@dataclass(slots=True)
class Neutral:
    """Builds a neutral body, one block at a time; `part` begins a message."""

    places: list[list[Place]] = field(default_factory=list)
    _role: str = ""
    _out: list[bytes] = field(default_factory=list)

    def add(self, role: Role, block: bytes, place: Place) -> None:
        """Add a block to the message at hand, or to a new one where the role is another."""
        if self.places and role == self._role:
            self._out += (b",", block)
            self.places[-1].append(place)
        else:
            self._out += (b"]}," if self.places else b"", b'{"role":"%s","content":[' % role.encode(), block)
            self.places.append([place])
            self._role = role

    def part(self) -> None:
        """The next block begins a message of its own, whatever its role."""
        self._role = ""

    def done(self, model: str, tools: list[str], *, thinking: Literal["", "kept", "enabled"] = "kept") -> bytes:
        """The neutral body.

        Args:
            model: the model's name; "" for none.
            tools: names of the tools that the body declares.
            thinking: whether a checkpoint turn keeps its thinking in this format: no; "kept"; or "enabled", where an
                open tool loop has to begin with thinking besides (docs/wire.md, 1.3).
        """
        head = b'"model":%s,' % spans.quote(model) if model else b""
        head += b'"thinking":{"type":"%s"},' % thinking.encode() if thinking else b""
        named = b",".join(b'{"name":%s}' % spans.quote(name) for name in tools)
        return b'{%s"messages":[%s%s],"tools":[%s]}' % (
            head,
            b"".join(self._out),
            b"]}" if self.places else b"",
            named,
        )


def text(literal: bytes, others: bytes = b"") -> bytes:
    """Words; `literal` with its quotes, `others` what else belongs to them: only texts with equal others are joined."""
    also = b',"also":%s' % spans.quote(others.decode("utf-8", "surrogatepass")) if others else b""
    return b'{"type":"text","text":%s%s}' % (literal, also)


def thinking(raw: bytes, *, signature: bytes = b'""') -> bytes:
    """Reasoning, whatever JSON it is; `signature` is a string's literal."""
    inside = raw if raw[:1] == b'"' else spans.quote(raw.decode("utf-8", "surrogatepass"))
    return b'{"type":"thinking","thinking":%s,"signature":%s}' % (inside, signature)


def call(id: str, name: str, arguments: bytes, caller: bytes = b"") -> bytes:
    """A tool call; `arguments` is any JSON, `caller` what the format says of who called, if it does."""
    by = b',"caller":%s' % caller if caller else b""
    return b'{"type":"tool_use","id":%s,"name":%s,"input":%s%s}' % (spans.quote(id), spans.quote(name), arguments, by)


def result(id: str, content: bytes, *, error: bool = False) -> bytes:
    """A result; `content` is the literal of a string, of null, or of a list of `text` and `other` blocks."""
    flag = b',"is_error":true' if error else b""
    return b'{"type":"tool_result","tool_use_id":%s,"content":%s%s}' % (spans.quote(id), content, flag)


def served(id: str, name: str, arguments: bytes) -> bytes:
    """A call that the provider carried out itself."""
    return b'{"type":"server_tool_use","id":%s,"name":%s,"input":%s}' % (spans.quote(id), spans.quote(name), arguments)


def serving(id: str, raw: bytes) -> bytes:
    """What the provider's own call gave."""
    content = spans.quote(raw.decode("utf-8", "surrogatepass"))
    return b'{"type":"web_search_tool_result","tool_use_id":%s,"content":%s}' % (spans.quote(id), content)


def attached(raw: bytes) -> bytes:
    """An image or a file that a human attached."""
    return b'{"type":"image","source":%s}' % spans.quote(raw.decode("utf-8", "surrogatepass"))


def control(raw: bytes) -> bytes:
    """What the harness put there: kept as it is, nobody's words."""
    return b'{"type":"tool_addition","raw":%s}' % spans.quote(raw.decode("utf-8", "surrogatepass"))


def compaction(raw: bytes) -> bytes:
    """A provider's own summary of everything before it."""
    return b'{"type":"compaction","content":%s}' % spans.quote(raw.decode("utf-8", "surrogatepass"))


def unknown(type: str, raw: bytes) -> bytes:
    """A block of a type that is not known."""
    inside = spans.quote(raw.decode("utf-8", "surrogatepass"))
    return b'{"type":%s,"raw":%s}' % (spans.quote(UNKNOWN + type), inside)


def other(type: str, raw: bytes) -> bytes:
    """What stands in a result beside texts."""
    return b'{"type":%s,"raw":%s}' % (spans.quote(type), spans.quote(raw.decode("utf-8", "surrogatepass")))


def arguments(literal: bytes) -> bytes:
    """Arguments that a format holds as a string: the JSON object in it, else the string itself."""
    try:
        inside = spans.decode(literal)
    except ValueError:
        return literal
    if not isinstance(inside, str):
        return literal
    raw = inside.encode("utf-8", "surrogatepass")
    return raw if spans.is_object(raw) else literal
