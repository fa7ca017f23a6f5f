"""A history of any format in one shape, that of Anthropic Messages, made of the body's own literals.

Law: for deciding and proving only, nobody is sent it. Words, arguments and results stand in it as the literals that
they are in the body, and each block knows where it came from. What a format has and this shape has not is carried
along as members that keep two texts from being taken for alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, Literal, NamedTuple

from .. import blocks, spans
from ..blocks import Block, Kind, Message, Span
from .anthropic import SIGNED, Request, reading
from .shapes import Usual

Role = Literal["user", "assistant"]
_new: Any = tuple.__new__  # makes a named tuple in a third of the time that its own constructor takes
_Told = tuple[bytes, Kind, str, str, str, bool, bool]
"""What stands in a neutral message: a literal, and its kind, type, id, name, error and server (`blocks.Block`)."""
Part = tuple[bytes, str, str | None]
"""A part of a result: its literal and type, None; of a text its literal, "text", and what the scanner makes of it."""
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


class Settings(NamedTuple):
    """What a body says beside its history.

    Attributes:
        model: its name; "" for none.
        tools: names of the tools that it declares.
        thinking: whether a checkpoint turn keeps its thinking in this format: no; "kept"; or "enabled", where an open
            tool loop has to begin with thinking besides (docs/wire.md, 1.3).
        held: why the history can't be cut here because the server holds a part of it; "" if it does not.
    """

    model: str
    tools: Sequence[str]
    thinking: Literal["", "kept", "enabled"] = "kept"
    held: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """A body that is to be read.

    Attributes:
        body, view: the bytes and their latin-1 view.
        top: its members, each once.
        items: spans of its messages, items or contents, in order, and what was read of each: a `Usual`, or what the
            scanner makes of it.
    """

    body: bytes
    view: str
    top: dict[str, spans.Member]
    items: list[tuple[int, int, Any]]

    def each(self, format: str, usual: Callable[[int, Any], None], item: Callable[[int, spans.Object], None]) -> None:
        """Give each item to one of two readers; the first takes what was found in an item of the format's shapes."""
        for number, (start, _, value) in enumerate(self.items):
            if type(value) is not Usual:
                item(number, spans.Object(self.view, start, value))
            elif value.format == format:
                usual(number, value.found)
            else:  # of another format's
                item(number, spans.Object(self.view, start, spans.scan(self.view, start)[0]))

    def raw(self, span: tuple[int, int]) -> bytes:
        """A span's bytes."""
        return self.body[span[0] : span[1]]

    def item(self, number: int) -> bytes:
        """An item's literal."""
        start, end, _ = self.items[number]
        return self.body[start:end]

    def value(self, key: str) -> Any:
        """The value of a member, decoded; None where there is none."""
        member = self.top.get(key)
        return None if member is None else spans.decode(self.body[member.start : member.end])

    def text(self, key: str) -> str:
        """The value of a member that is a string; "" where it is none."""
        value = self.value(key)
        return value if isinstance(value, str) else ""

    def native(self, format: str, roles: list[str], out: Neutral, settings: Settings, held: str = "") -> Native:
        """The body, read; what was found in its items is let go."""
        items = [(start, end) for start, end, _ in self.items]
        self.items.clear()
        request = out.done(settings)
        return Native(
            format, self.body, self.view, self.top, items, roles, out.places, request, settings, settings.held or held
        )


@dataclass(frozen=True, slots=True)
class Native:
    """A body of another format that was read.

    Attributes:
        format: its name, as in `formats.NAMES`.
        body, view: the bytes and their latin-1 view.
        top: its members, each once.
        items: spans of its messages, items or contents, in order.
        roles: whose each of them is, in the format's own words: neighbours of one role may have to be merged.
        places: for block b of message m of the neutral body, where it stands.
        request: the neutral body, read.
        settings: what the body says beside its history.
        held: why the history can't be cut here because the server holds a part of it; "" if it does not.
    """

    format: str
    body: bytes
    view: str
    top: dict[str, spans.Member]
    items: list[tuple[int, int]]
    roles: list[str]
    places: list[list[Place]]
    request: Request
    settings: Settings
    held: str = ""

    def object(self, number: int) -> spans.Object:
        """An item, scanned."""
        start = self.items[number][0]
        return spans.Object(self.view, start, spans.scan(self.view, start)[0])

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

    def shown_at(self, place: blocks.Place) -> blocks.Place:
        """A block's place as it is shown: the item, and which of its blocks."""
        number, index = place
        item = self.places[number][index].item
        before = sum(at.item == item for at in self.places[number][:index])
        while number and self.places[number - 1][-1].item == item:
            number -= 1
            before += sum(at.item == item for at in self.places[number])
        return blocks.Place(item, before)

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


class Neutral:
    """Builds a neutral body, one block at a time, with the reading of it: what was read once is not read again.

    Each kind of block has its method; `part` begins a message.
    """

    def __init__(self) -> None:
        self.places: list[list[Place]] = []
        self._told: list[tuple[Role, list[_Told]]] = []
        self._role: Role | Literal[""] = ""

    def part(self) -> None:
        """The next block begins a message of its own, whatever its role."""
        self._role = ""

    def text(self, role: Role, literal: bytes, place: Place, others: bytes = b"") -> None:
        """Words (see `text`)."""
        self._add(role, text(literal, others), place, Kind.TEXT, "text")

    def thinking(self, role: Role, raw: bytes, place: Place, signed: str = "", signature: bytes = b"") -> None:
        """Reasoning, whatever JSON it is.

        Args:
            role: whose message holds it.
            raw: its literal.
            place: where it stands.
            signed: its signature.
            signature: that one's literal in the body, if it has one.
        """
        made = b'{"type":"thinking","thinking":%s,"signature":%s}'
        made %= raw if raw[:1] == b'"' else _quoted(raw), signature or spans.quote(signed)
        self._add(role, made, place, Kind.THINKING, "thinking", "", reading.of_signature(signed))

    def call(
        self, id: str, name: str, arguments: bytes, place: Place, caller: bytes = b"", *, signed: bool = False
    ) -> None:
        """A tool call; `arguments` is any JSON, `caller` what the format says of who called, if it does."""
        by = b',"caller":%s' % caller if caller else b""
        made = b'{"type":"tool_use","id":%s,"name":%s,"input":%s%s%s'
        made %= spans.quote(id), spans.quote(name), arguments, by, SIGNED if signed else b"}"
        self._add("assistant", made, place, Kind.CALL, "tool_use", id, name)

    def result(self, id: str, content: bytes, says: str, place: Place, *, error: bool = False) -> None:
        """A result.

        Args:
            id: of the call that it answers.
            content: the literal of a string, of null, or of a list of `text` and `other` blocks.
            says: what that says of it (`reading.of_content`).
            place: where it stands.
            error: it says of itself that it is an error.
        """
        made = b'{"type":"tool_result","tool_use_id":%s,"content":%s%s}'
        made %= spans.quote(id), content, b',"is_error":true' if error else b""
        self._add("user", made, place, Kind.RESULT, "tool_result", id, says, error)

    def results(self, id: str, parts: Sequence[Part], place: Place, *, error: bool = False) -> None:
        """A result whose content is a list."""
        literals = [text(raw) if words is not None else other(type, raw) for raw, type, words in parts]
        value = [(("type", type), ("text", words)) for _, type, words in parts]
        self.result(id, b"[%s]" % b",".join(literals), reading.of_content(value), place, error=error)

    def served(self, id: str, name: str, arguments: bytes, place: Place) -> None:
        """A call that the provider carried out itself."""
        made = b'{"type":"server_tool_use","id":%s,"name":%s,"input":%s}'
        made %= spans.quote(id), spans.quote(name), arguments
        self._add("assistant", made, place, Kind.CALL, "server_tool_use", id, name, server=True)

    def serving(self, id: str, raw: bytes, place: Place) -> None:
        """What the provider's own call gave."""
        made = b'{"type":"web_search_tool_result","tool_use_id":%s,"content":%s}' % (spans.quote(id), _quoted(raw))
        self._add("assistant", made, place, Kind.RESULT, "web_search_tool_result", id, server=True)

    def attached(self, role: Role, raw: bytes, place: Place) -> None:
        """An image or a file that a human attached."""
        self._add(role, b'{"type":"image","source":%s}' % _quoted(raw), place, Kind.IMAGE, "image")

    def control(self, role: Role, raw: bytes, place: Place) -> None:
        """What the harness put there (see `control`)."""
        self._add(role, control(raw), place, Kind.CONTROL, "tool_addition")

    def compaction(self, raw: bytes, place: Place) -> None:
        """A provider's own summary (see `compaction`)."""
        self._add("assistant", compaction(raw), place, Kind.CONTROL, "compaction")

    def unknown(self, role: Role, type: str, raw: bytes, place: Place) -> None:
        """A block of a type that is not known."""
        type = UNKNOWN + type
        self._add(role, b'{"type":%s,"raw":%s}' % (spans.quote(type), _quoted(raw)), place, Kind.UNKNOWN, type)

    def _add(
        self,
        role: Role,
        literal: bytes,
        place: Place,
        kind: Kind,
        type: str,
        id: str = "",
        name: str = "",
        error: bool = False,
        server: bool = False,
    ) -> None:
        """Add a block to the message at hand, or to a new one where the role is another."""
        if role != self._role:
            self.places.append([])
            self._told.append((role, []))
            self._role = role
        self.places[-1].append(place)
        self._told[-1][1].append((literal, kind, type, id, name, error, server))

    def done(self, settings: Settings) -> Request:
        """The neutral body, read."""
        out, messages = [b'{"messages":['], []
        start = len(out[0])
        for role, told in self._told:
            out.append(_OPENING[role])
            at = content = start + len(out[-1])
            blocks = []
            for literal, kind, type, id, name, error, server in told:
                out += (literal, b",")
                end = at + len(literal)
                blocks.append(_new(Block, (kind, type, at, end, id, name, error, server, False)))
                at = end + 1
            out[-1] = b"]},"
            span = _new(Span, (content - 1, at))
            messages.append(_new(Message, (role, start, at + 1, span, False, tuple(blocks), True)))
            start = at + 2
        if messages:
            out[-1] = b"]}"
        out.append(b"]}")
        body, first = b"".join(out), len(out[0])
        self._told, out = [], []  # before the view is made: each weighs as much as the body
        model, tools, thinking, _ = settings
        return Request(
            body,
            body.decode("latin-1"),
            messages,
            model or None,
            thinking or None,
            tuple(tools),
            "",
            first - 1,
            {},
        )


_OPENING = {"user": b'{"role":"user","content":[', "assistant": b'{"role":"assistant","content":['}


def _quoted(raw: bytes) -> bytes:
    """The JSON literal of bytes as text."""
    return spans.quote(raw.decode("utf-8", "surrogatepass"))


def text(literal: bytes, others: bytes = b"") -> bytes:
    """Words; `literal` with its quotes, `others` what else belongs to them: only texts with equal others are joined."""
    also = b',"also":%s' % spans.quote(others.decode("utf-8", "surrogatepass")) if others else b""
    return b'{"type":"text","text":%s%s}' % (literal, also)


def control(raw: bytes) -> bytes:
    """What the harness put there: kept as it is, nobody's words."""
    return b'{"type":"tool_addition","raw":%s}' % _quoted(raw)


def compaction(raw: bytes) -> bytes:
    """A provider's own summary of everything before it."""
    return b'{"type":"compaction","content":%s}' % _quoted(raw)


def other(type: str, raw: bytes) -> bytes:
    """What stands in a result beside texts."""
    return b'{"type":%s,"raw":%s}' % (spans.quote(type), _quoted(raw))


def type_of(part: spans.Object) -> str:
    """The type that a part says it has."""
    type = part.text("type")
    return "part" if type is None else type


def part_of(source: Source, part: spans.Object) -> Part:
    """A part of a result: its text, or the whole of it."""
    words = part.string("text")
    if words:
        return source.raw(words), "text", part.held["text"]
    return source.raw(part.literal), type_of(part), None


def arguments(literal: bytes) -> bytes:
    """Arguments that a format holds as a string, by its literal: the JSON object in it, else the string itself."""
    view = scanstring(literal.decode("latin-1"), 1, True)[0]
    if not view.isascii() and b"\\u" in literal:
        # Without such escapes one character of the view is one byte in the text too.
        text = spans.decode(literal)
        view = text.encode("utf-8", "surrogatepass").decode("latin-1")
    try:
        value, end = spans.scan(view, spans.skip(view, 0))
        return view.encode("latin-1") if type(value) is tuple and spans.skip(view, end) == len(view) else literal
    except spans.DOUBTS:
        return literal
