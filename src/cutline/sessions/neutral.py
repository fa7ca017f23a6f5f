"""A history in the one form that is cut: an Anthropic Messages body, made of another client's literals.

Law: words are never decoded and encoded again: a text, a call's arguments and a result stand in the body as the JSON
literals that they are in the client's file, and `places` says where each came from. The form is for deciding and
proving only; nobody is sent it.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from .. import spans
from ..wire import anthropic as wire
from ..wire import neutral as shapes
from .model import History, Origin, Request

Role = Literal["user", "assistant"]
Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class NeutralHistory:
    """A history made by a `Builder` (the attributes are `model.History`'s)."""

    body: bytes
    places: list[list[Place]]
    origins: list[Origin]
    model: str
    requests: list[Request]
    compacted: bool = False

    @property
    def human(self) -> list[int]:
        """Indices of the messages that a person typed, in order."""
        return [number for number, origin in enumerate(self.origins) if origin == "human"]


@dataclass(frozen=True, slots=True)
class NeutralSession:
    """A session of a client other than Claude Code (the attributes are `model.Session`'s).

    `source` is what the client's own module needs to write a copy.
    """

    client: str
    path: Path
    id: str
    cwd: str
    title: str
    history: NeutralHistory
    version: str = ""
    git_branch: str = ""
    last: str = ""
    subagents: tuple[Path, ...] = ()
    damage: tuple[str, ...] = ()
    sealed: str = ""
    source: Any = None


@dataclass(slots=True)
class Builder:
    """Builds a history, one block at a time.

    Blocks of one record, role and origin behind one another become one message. Never those of two records: what stands
    between two records may leave, and a message's borders must be the same in a copy. Call `answered` behind the last
    block of a model's answer where the client says what it cost.
    """

    model: str = ""
    places: list[list[Place]] = field(default_factory=list)
    origins: list[Origin] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    compacted: bool = False
    _role: str = ""
    _out: io.BytesIO = field(default_factory=io.BytesIO)

    def text(self, origin: Origin, literal: bytes, place: Place) -> None:
        """Words: `literal` is their JSON string literal, quotes included, as it stands in the file."""
        self._add("assistant" if origin == "agent" else "user", origin, b'{"type":"text","text":%s}' % literal, place)

    def thinking(self, literal: bytes, place: Place, signature: bytes = b'""') -> None:
        """Reasoning; `literal` is any JSON value of the client's (an encrypted item too): only its size matters.

        `signature` is the string literal of an Anthropic signature, which says whether the words were shown.
        """
        inside = literal if literal[:1] == b'"' else spans.quote(literal.decode("utf-8", "surrogatepass"))
        self._add(
            "assistant", "agent", b'{"type":"thinking","thinking":%s,"signature":%s}' % (inside, signature), place
        )

    def call(self, id: str, name: str, arguments: bytes, place: Place) -> None:
        """A tool call; `arguments` is the raw JSON object, or (`{}`-less) the raw text of what can't be parsed."""
        self._add(
            "assistant",
            "agent",
            b'{"type":"tool_use","id":%s,"name":%s,"input":%s}' % (spans.quote(id), spans.quote(name), arguments),
            place,
        )

    def result(self, id: str, content: bytes, place: Place, *, error: bool = False) -> None:
        """A result; `content` is the JSON literal of a string, or of a list of Anthropic content blocks."""
        flag = b',"is_error":true' if error else b""
        block = b'{"type":"tool_result","tool_use_id":%s,"content":%s%s}' % (spans.quote(id), content, flag)
        self._add("user", "results", block, place)

    def image(self, literal: bytes, place: Place, origin: Origin = "human") -> None:
        """An image or file that a person attached: `literal` is the client's own JSON of it, kept for its size."""
        inside = literal if literal[:1] == b'"' else spans.quote(literal.decode("utf-8", "surrogatepass"))
        self._add("user", origin, b'{"type":"image","source":{"type":"client","data":%s}}' % inside, place)

    def control(self, literal: bytes, place: Place, origin: Origin = "harness") -> None:
        """What the client put there, or an item whose kind is not known: kept as it is, nobody's words."""
        role: Role = "assistant" if origin == "agent" else "user"
        self._add(role, origin, shapes.control(literal), place)

    def compaction(self, literal: bytes, place: Place) -> None:
        """The provider's own summary of everything before it, which it alone can read."""
        self._add("assistant", "summary", shapes.compaction(literal), place)

    def answered(self, request: Request) -> None:
        """What the provider counted for the answer whose blocks were added last; its `message` is set here."""
        if self.places:
            self.requests.append(replace(request, message=len(self.places) - 1, model=request.model or self.model))

    def part(self) -> None:
        """The next block begins a message of its own, whatever its role."""
        self._role = ""

    def done(self) -> NeutralHistory:
        """The history."""
        model = b'"model":%s,' % spans.quote(self.model) if self.model else b""
        body = b'{%s"messages":[%s%s]}' % (model, self._out.getvalue(), b"]}" if self.places else b"")
        return NeutralHistory(body, self.places, self.origins, self.model, self.requests, self.compacted)

    def _add(self, role: Role, origin: Origin, block: bytes, place: Place) -> None:
        out = self._out
        same = self.places and role == self._role and origin == self.origins[-1]
        if same and place[0] == self.places[-1][-1][0]:
            out.write(b",")
            self.places[-1].append(place)
        else:
            if self.places:
                out.write(b"]},")
            out.write(b'{"role":"%s","content":[' % role.encode())
            self.places.append([place])
            self.origins.append(origin)
        out.write(block)
        self._role = role


def without_notice(copy: History, before: bytes, is_notice: Callable[[int], bool] | None) -> tuple[bytes, str | None]:
    """A copy's body without the message that holds its notice, and what that message says (None for none).

    Args:
        copy: the copy's history.
        before: the original's body.
        is_notice: whether a record, by its index, is the notice's; None where the copy has none.
    """
    for number, places in enumerate(copy.places if is_notice else ()):
        if is_notice and any(is_notice(place[0]) for place in places):
            request = wire.read(copy.body)
            return around(before, copy.body, number), wire.words(request, request.messages[number].blocks[0])
    return around(before, copy.body, None), None


def around(before: bytes, body: bytes, skip: int | None) -> bytes:
    """A copy's messages, without one of them, between what stands around the original's messages."""
    request, original = wire.read(body), wire.read(before)
    messages = [body[message.start : message.end] for n, message in enumerate(request.messages) if n != skip]
    head, tail = before[: original.messages[0].start], before[original.messages[-1].end :]
    return head + b",".join(messages) + tail
