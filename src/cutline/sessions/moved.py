"""What a moved session holds, in no client's form: who said what, calls with their results, and nobody's words.

Law: values only. Words stand as the JSON literals that they are in the source's file, so that what a writer copies is
what was written. Each message of the agent's with calls is followed by one with all their results, in order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from .model import History

Who = Literal["human", "agent", "results", "aside"]
"""Whose a message is; an aside is nobody's: a notice, or a summary that a client made."""


class Text(NamedTuple):
    """Words: their JSON string literal, quotes included."""

    literal: bytes


class Picture(NamedTuple):
    """An image or a file that was attached.

    Attributes:
        media: its media type; "" where only its address is known.
        data: base64; "" where only its address is known.
        url: its address; "" where its data is known.
    """

    media: str
    data: str = ""
    url: str = ""

    @property
    def address(self) -> str:
        """Where it is: its own address, or its data as one."""
        return self.url or f"data:{self.media};base64,{self.data}"


class Call(NamedTuple):
    """A tool call.

    Attributes:
        id: unlike every other's; letters, digits, `_` and `-`, at most 40.
        name: of the tool as its client called it, letters, digits, `_` and `-`, at most 64.
        own: of a tool of Cutline's, its bare name ("micro_handoff"): each client knows it by another; else "".
        arguments: one JSON object.
    """

    id: str
    name: str
    own: str
    arguments: bytes


class Result(NamedTuple):
    """What a call returned: `text` is one JSON string literal; the other attributes are `Call`'s and `Picture`'s."""

    id: str
    name: str
    own: str
    text: bytes
    pictures: tuple[Picture, ...] = ()
    error: bool = False


Part = Text | Picture | Call | Result


class Message(NamedTuple):
    """A message: texts and pictures of the human's; texts, then calls of the agent's; results; one text of nobody's."""

    who: Who
    parts: tuple[Part, ...]

    def texts(self) -> list[Text]:
        """Its texts."""
        return [part for part in self.parts if isinstance(part, Text)]

    def calls(self) -> list[Call]:
        """Its calls."""
        return [part for part in self.parts if isinstance(part, Call)]

    def results(self) -> list[Result]:
        """Its results."""
        return [part for part in self.parts if isinstance(part, Result)]


@dataclass(frozen=True, slots=True)
class New:
    """A session that is to be written.

    Attributes:
        title: what it is called.
        cwd: the directory that it is resumed in.
        model: who answered in it last; "unknown" where that is not recorded.
        maker: the client that it was held in, as in `clients.NAMES`.
        now: the time of writing, milliseconds since 1970.
        messages: what it holds.
    """

    title: str
    cwd: str
    model: str
    maker: str
    now: int
    messages: tuple[Message, ...]

    @property
    def stamp(self) -> str:
        """The time of writing as ISO 8601."""
        return datetime.fromtimestamp(self.now / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True, slots=True)
class Written:
    """A session that was written: its file or database, the id that it is resumed by, its records and their bytes."""

    path: Path
    id: str
    records: int
    bytes: int


Arrive = Callable[[History], None]
"""Called with the history of what was written, as the client's own reader gives it, before it counts as a session; what
it raises ends the writing, and nothing is left behind."""


class Target(Protocol):
    """A client that sessions are moved to: the module `new` of its package, which knows the client's own forms."""

    SURROGATES: bool
    """Whether its files may hold half of a character, which a broken escape stands for."""
    ERRORS: bool
    """Whether a result can say of itself that it is an error."""
    SHOWN: bool
    """Whether a result can hold pictures."""
    ADDED: frozenset[str]
    """Texts of nobody's that the writer may put beside a human's."""

    def holds(self, picture: Picture) -> bool:
        """Whether its file can hold an attachment."""

    def picture(self, raw: str) -> Picture | None:
        """An attachment in the client's own form (its JSON, or its address); None for anything else."""

    def aside(self, raw: str) -> str:
        """The words of a text of nobody's, by the client's own form of it; "" where it is none."""

    def write(self, new: New, arrive: Arrive) -> Written:
        """Write a session where the client looks for it.

        Raises:
            InputError: it can't be written.
        """


def inside(part: dict[str, Any]) -> Picture | None:
    """An attachment in Anthropic's form; None for anything else."""
    source = part.get("source")
    told = source if isinstance(source, dict) else {}
    media, data, url = (told.get(key) for key in ("media_type", "data", "url"))
    if told.get("type") == "base64" and isinstance(media, str) and isinstance(data, str):
        return Picture(media, data)
    return Picture("", url=url) if told.get("type") == "url" and isinstance(url, str) else None


def at_address(address: str, media: str = "") -> Picture:
    """An attachment by its address, which may be its data."""
    head, found, data = address.partition(";base64,")
    if found and head.startswith("data:"):
        return Picture(media or head.removeprefix("data:").partition(";")[0], data)
    return Picture(media, url=address)
