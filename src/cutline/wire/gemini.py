"""Gemini generateContent, in camelCase and in snake_case: read into the neutral shape, and written from a plan.

Law: one pass, never repairs; any doubt raises `Unreadable`. A content with a call has to follow a user's, so contents
of the model that the cut made neighbours are merged; a signature stays on the part that it came with (docs/wire.md, 4).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from .. import spans
from ..errors import Unreadable
from ..spans import Object
from . import neutral
from .anthropic import reading
from .editing import Added, Edit, Inside, Item, absent, left_out, merged
from .neutral import Native, Neutral, Place, Settings, Source
from .shapes import FLAT, PLAIN, STRING, Usual, list_of, shape

NAME = "gemini"
MERGES = frozenset(("model",))
STRICT = False
STRIPS = False
_CALL, _ANSWER = ("functionCall", "function_call"), ("functionResponse", "function_response")
_SERVED = {
    **dict.fromkeys(("executableCode", "executable_code", "toolCall", "tool_call"), True),
    **dict.fromkeys(("codeExecutionResult", "code_execution_result", "toolResponse", "tool_response"), False),
}
_MARKS = ("thoughtSignature", "thought_signature")
_FILES = ("inlineData", "inline_data", "fileData", "file_data")


_SIGNED = {f"{key}?": PLAIN for key in _MARKS}
_SHAPES = {
    "call": shape({"function(?:Call|_call)": {"name": PLAIN, "args?": FLAT, "id?": PLAIN}, **_SIGNED}),
    "answer": shape(
        {
            "function(?:Response|_response)": {
                "name": PLAIN,
                "id?": PLAIN,
                "response": {"(?:output|result)": STRING},
            },
        }
    ),
    "text": shape({"text": STRING, **_SIGNED}),
    "thought": shape({"text": STRING, "thought": "true", **_SIGNED}),
}
usual = list_of(NAME, "parts", '"(?:user|model)"', _SHAPES)


def looks(usual: Sequence[Usual], others: Sequence[Object]) -> bool:
    """Whether a body is of this format."""
    return bool(usual or others) and all(type(item.held.get("parts")) is list for item in others)


def settings(source: Source) -> Settings:
    """What a body says beside its history; its model stands in the address."""
    return Settings("gemini", _tools(source.value("tools")))


def read(source: Source, settings: Settings) -> Native:
    """Read a body. Raises Unreadable for the first doubt, with its byte offset."""
    build = _Reading(source)
    source.each(NAME, build.usual, build.content)
    return source.native(NAME, build.roles, build.out, settings)


def _tools(declared: Any) -> list[str]:
    tools = [tool for tool in declared if isinstance(tool, dict)] if isinstance(declared, list) else []
    keys = ("functionDeclarations", "function_declarations")
    listed = [one for tool in tools for key in keys if isinstance(tool.get(key), list) for one in tool[key]]
    return [one["name"] for one in listed if isinstance(one, dict) and isinstance(one.get("name"), str)]


class _Reading:
    """The neutral body while it grows."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.out = Neutral()
        self.roles: list[str] = []
        self.waiting: list[tuple[str, str]] = []  # name and id of calls that are not answered yet, in order
        self.served: list[str] = []
        self.given = 0

    def usual(self, number: int, item: tuple[str, list[tuple[str, re.Match[str]]]]) -> None:
        """One content of the usual shape."""
        body, out = self.source.body, self.out
        speaker = self.speaks(item[0])
        for part, (kind, found) in enumerate(item[1]):
            place = Place(number, "parts", part)
            if kind == "call":
                name, id_ = found["function_name"][1:-1], (found["function_id"] or "")[1:-1]
                opens = any(found[key] for key in _MARKS)
                self.called(name, id_, found.span("function_args"), place, opens)
            elif kind == "answer":
                name, id_ = found["function_name"][1:-1], (found["function_id"] or "")[1:-1]
                start, end = found.span("function_response_output")
                says = reading.of_literal(self.source.view, start, end)
                out.result(self.answered(name, id_), body[start:end], says, place)
            elif kind == "text":
                marks = ((key, found[key]) for key in _MARKS)
                signed = b",".join(f"{key}:{mark}".encode() for key, mark in marks if mark)
                start, end = found.span("text")
                out.text(speaker, body[start:end], place, signed)
            else:
                out.thinking(speaker, body[found.start() : found.end()], place)

    def content(self, number: int, item: Object) -> None:
        """One content; what the model said in several behind one another is one neutral message."""
        if item.twins:
            raise Unreadable("a key stands twice in a content", item.start)
        role = item.text("role") if "role" in item.held else "user"
        if role not in ("user", "model", "function"):
            raise Unreadable(f"a content of the unknown role {role!r}", item.start)
        speaker = self.speaks(role)
        parts = item.list("parts")
        if not parts:
            self.out.control(speaker, self.source.item(number), Place(number))
        for part, held in enumerate(parts):
            self.part(Place(number, "parts", part), speaker, held)

    def speaks(self, role: str) -> neutral.Role:
        """Begin what that role says: of the model's contents only where another's stands before."""
        again = role == "model" and self.roles[-1:] == ["model"]
        self.roles.append("model" if role == "model" else "user")
        if not again:
            self.out.part()
        if role == "model" and not again:
            self.waiting, self.served = [], []
        return "assistant" if role == "model" else "user"

    def part(self, place: Place, role: neutral.Role, part: Object) -> None:
        """One part, named by the member that says what it is."""
        held, raw = part.held, self.source.raw
        call = next((key for key in _CALL if key in held), None)
        answer = next((key for key in _ANSWER if key in held), None)
        if call is not None:
            self.call(place, part, call)
        elif answer is not None:
            self.answer(place, part, answer)
        elif held.get("thought") is True:
            self.out.thinking(role, raw(part.literal), place)
        elif words := part.string("text"):
            self.out.text(role, raw(words), place, absent(self.source.body, part, ("text", "thought")))
        elif role == "assistant" and (served := next((key for key in _SERVED if key in held), None)) is not None:
            self.serve(place, part, served)
        elif held.keys().isdisjoint(_FILES):
            self.out.unknown(role, next(iter(held), "part"), raw(part.literal), place)
        elif role == "user":
            self.out.attached(role, raw(part.literal), place)
        else:
            self.out.control(role, raw(part.literal), place)

    def call(self, place: Place, part: Object, key: str) -> None:
        """A call."""
        made = part.inner(key)
        name = made.text("name") if made else None
        if made is None or not name:
            raise Unreadable("a functionCall without a name", part.place(key))
        arguments = made.span("args") if "args" in made.held else (-1, -1)
        signed = any(part.text(key) for key in _MARKS)
        self.called(name, made.text("id") or "", arguments, place, signed)

    def called(self, name: str, id_: str, arguments: tuple[int, int], place: Place, signed: bool) -> None:
        """A call; most clients give none an id, and answer in order."""
        id_ = id_ or self.give()
        self.waiting.append((name, id_))
        self.out.call(id_, name, self.source.raw(arguments) if arguments[0] >= 0 else b"{}", place, signed=signed)

    def answer(self, place: Place, part: Object, key: str) -> None:
        """A response."""
        inner = part.inner(key)
        id_ = self.answered(inner.text("name") or "", inner.text("id") or "") if inner else self.answered("", "")
        response = inner.inner("response") if inner else None
        words = [(key, span) for key in ("output", "result") if response and (span := response.string(key))]
        failed = response is not None and "error" in response.held
        if words and response:
            key, span = words[0]
            self.out.result(id_, self.source.raw(span), reading.of_content(response.held[key]), place, error=failed)
        else:
            whole = self.source.raw(inner.span("response")) if inner and "response" in inner.held else b"{}"
            text = whole.decode("utf-8", "surrogatepass")
            self.out.result(id_, spans.quote(text), reading.of_content(text), place, error=failed)

    def answered(self, name: str, id_: str) -> str:
        """The id that is answered: the response's own, else that of the first call that waits by its name."""
        fits = [one for one in self.waiting if one[1] == id_] or [one for one in self.waiting if one[0] == name]
        if fits:
            self.waiting.remove(fits[0])
            return fits[0][1]
        return id_ or self.give()

    def serve(self, place: Place, part: Object, key: str) -> None:
        """A call of the provider's own, or what it gave: pairs in order."""
        raw = self.source.raw(part.span(key))
        if _SERVED[key]:
            self.served.append(self.give())
            self.out.served(self.served[-1], key, raw, place)
        else:
            self.out.serving(self.served.pop(0) if self.served else self.give(), raw, place)

    def give(self) -> str:
        """An id for what has none: its number among those (DESIGN: address)."""
        self.given += 1
        return str(self.given - 1)


# ------------------------------------------------------------------------------------------------- writing


def edits(native: Native, item: Item, inside: Inside, added: Mapping[Place, Sequence[Added]]) -> list[Edit]:
    """What changes in a content (see `formats.Format`)."""
    parts = spans.find(native.view, native.items[item.number][0], "parts")
    assert parts is not None, "the reader has checked it"
    found = spans.elements(native.view, parts.start)[0]
    pieces = {piece.places[0].part: piece for piece in item.pieces}
    made: list[Edit] = []
    for part, piece in pieces.items():
        at = found[part][0]
        if len(piece.places) > 1:
            words = spans.find(native.view, at, "text")
            assert words is not None, "only texts are joined"
            made.append(Edit(words.start + 1, words.end - 1, inside(piece)))
        elif piece.places[0] in added:
            made += _answered(native, at, added[piece.places[0]], piece.places[0])
    return made + left_out(found, [part for part in range(len(found)) if part not in pieces])


def _answered(native: Native, at: int, given: Sequence[Added], place: Place) -> list[Edit]:
    """Behind the text of `output`, else of `result`, else as a member of its own (docs/wire.md, 10)."""
    view = native.view
    answer = next(one for key in _ANSWER if (one := spans.find(view, at, key)) is not None)
    response = spans.find(view, answer.start, "response")
    text = b"\\n\\n".join(one.inside for one in given)
    kind = 1 + given[0].fills
    if response is None or view[response.start] != "{":
        return [Edit(answer.end - 1, answer.end - 1, b',"response":{"cutline_notice":"%s"}' % text, kind, place)]
    for key in ("output", "result"):
        held = spans.find(view, response.start, key)
        if held is not None and view[held.start] == '"':
            return [Edit(held.end - 1, held.end - 1, b"\\n\\n" + text, kind, place)]
    members = spans.members(view, response.start)[0]
    at, comma = (members[-1].end, b",") if members else (response.start + 1, b"")
    return [Edit(at, at, comma + b'"cutline_notice":"%s"' % text, kind, place)]


def folds(native: Native, items: Sequence[Item]) -> list[bool]:
    """No server of this format is stricter than the format."""
    return [False] * len(items)


def merge(native: Native, items: Sequence[Item], literals: Sequence[bytes]) -> bytes:
    """Contents of the model as one: their parts in order, behind the last one's leading thoughts."""
    return merged(literals, "parts", "thought")
