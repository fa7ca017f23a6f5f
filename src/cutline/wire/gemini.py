"""Gemini generateContent, in camelCase and in snake_case: read into the neutral shape, and written from a plan.

Law: one pass, never repairs; any doubt raises `Unreadable`. A content with a call has to follow a user's, so contents
of the model that the cut made neighbours are merged; a signature stays on the part that it came with (docs/wire.md, 4).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .. import spans
from ..errors import Unreadable
from ..spans import Member
from . import neutral
from .editing import Added, Edit, Inside, Item, absent, element_spans, left_out, merged
from .neutral import Native, Neutral, Place

NAME = "gemini"
LIST = "contents"
MERGES = frozenset(("model",))
STRICT = False
STRIPS = False
_CALL, _ANSWER = ("functionCall", "function_call"), ("functionResponse", "function_response")
_SERVED = {
    **dict.fromkeys(("executableCode", "executable_code", "toolCall", "tool_call"), True),
    **dict.fromkeys(("codeExecutionResult", "code_execution_result", "toolResponse", "tool_response"), False),
}
_FILES = ("inlineData", "inline_data", "fileData", "file_data")


def looks(items: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a body is of this format."""
    return bool(items) and all(isinstance(item.get("parts"), list) for item in items)


def read(body: bytes, view: str, top: dict[str, Member]) -> Native:
    """Read a body (see `converse.read`)."""
    items = element_spans(view, top[LIST].start)
    build = _Reading(body, view)
    for number, (start, end) in enumerate(items):
        build.content(number, start, end)
    made = build.out.done("gemini", _tools(body, top))
    return Native(NAME, body, view, items, build.roles, build.out.places, made)


def _tools(body: bytes, top: dict[str, Member]) -> list[str]:
    given = spans.decode(body[top["tools"].start : top["tools"].end]) if "tools" in top else []
    tools = [tool for tool in given if isinstance(tool, dict)] if isinstance(given, list) else []
    keys = ("functionDeclarations", "function_declarations")
    listed = [one for tool in tools for key in keys if isinstance(tool.get(key), list) for one in tool[key]]
    return [one["name"] for one in listed if isinstance(one, dict) and isinstance(one.get("name"), str)]


class _Reading:
    """The neutral body while it grows."""

    def __init__(self, body: bytes, view: str) -> None:
        self.body, self.view = body, view
        self.out = Neutral()
        self.roles: list[str] = []
        self.waiting: list[tuple[str, str]] = []  # name and id of calls that are not answered yet, in order
        self.served: list[str] = []
        self.given = 0

    def content(self, number: int, start: int, end: int) -> None:
        """One content; what the model said in several behind one another is one neutral message."""
        found = spans.members(self.view, start)[0]
        members = {member.key: member for member in found}
        if len(members) != len(found):
            raise Unreadable("a key stands twice in a content", start)
        role = spans.decode(self.raw(members["role"])) if "role" in members else "user"
        if role not in ("user", "model", "function"):
            raise Unreadable(f"a content of the unknown role {role!r}", start)
        again = role == "model" and self.roles[-1:] == ["model"]
        self.roles.append("model" if role == "model" else "user")
        if not again:
            self.out.part()
        speaker: neutral.Role = "assistant" if role == "model" else "user"
        parts = element_spans(self.view, members["parts"].start) if "parts" in members else []
        if not parts:
            self.out.add(speaker, neutral.control(self.body[start:end]), Place(number))
        if role == "model" and not again:
            self.waiting, self.served = [], []
        for part, (at, to) in enumerate(parts):
            self.part(Place(number, "parts", part), speaker, at, to)

    def part(self, place: Place, role: neutral.Role, at: int, end: int) -> None:
        """One part, named by the member that says what it is."""
        members = {member.key: member for member in spans.members(self.view, at)[0]}
        raw = self.body[at:end]
        call = next((members[key] for key in _CALL if key in members), None)
        answer = next((members[key] for key in _ANSWER if key in members), None)
        served = next((key for key in _SERVED if key in members), None)
        thought = "thought" in members and self.view.startswith("true", members["thought"].start)
        if call is not None:
            self.call(place, call)
        elif answer is not None:
            self.answer(place, answer)
        elif thought:
            self.out.add(role, neutral.thinking(raw), place)
        elif "text" in members and self.view[members["text"].start] == '"':
            others = absent(self.body, self.view, at, ("text", "thought"))
            self.out.add(role, neutral.text(self.raw(members["text"]), others), place)
        elif served is not None and role == "assistant":
            self.serve(place, members[served], served)
        elif any(key in members for key in _FILES):
            self.out.add(role, neutral.attached(raw) if role == "user" else neutral.control(raw), place)
        else:
            self.out.add(role, neutral.unknown(next(iter(members), "part"), raw), place)

    def call(self, place: Place, inner: Member) -> None:
        """A call; most clients give none an id, and answer in order."""
        name, id_ = self.text_of(inner, "name"), self.text_of(inner, "id")
        if not name:
            raise Unreadable("a functionCall without a name", inner.start)
        id_ = id_ or self.give()
        self.waiting.append((name, id_))
        arguments = spans.find(self.view, inner.start, "args")
        self.out.add("assistant", neutral.call(id_, name, self.raw(arguments) if arguments else b"{}"), place)

    def answer(self, place: Place, inner: Member) -> None:
        """A response: to the call of its id, else to the first that waits by its name, else to the first."""
        name, id_ = self.text_of(inner, "name"), self.text_of(inner, "id")
        fits = [one for one in self.waiting if one[1] == id_] or [one for one in self.waiting if one[0] == name]
        if fits:
            id_ = fits[0][1]
            self.waiting.remove(fits[0])
        elif not id_:
            id_ = self.give()
        response = spans.find(self.view, inner.start, "response")
        texts = [spans.find(self.view, response.start, key) for key in ("output", "result")] if response else []
        text = next((one for one in texts if one is not None and self.view[one.start] == '"'), None)
        failed = response is not None and spans.find(self.view, response.start, "error") is not None
        whole = self.raw(response).decode("utf-8", "surrogatepass") if response else "{}"
        content = self.raw(text) if text else spans.quote(whole)
        self.out.add("user", neutral.result(id_, content, error=failed), place)

    def serve(self, place: Place, inner: Member, key: str) -> None:
        """A call of the provider's own, or what it gave: pairs in order."""
        if _SERVED[key]:
            self.served.append(self.give())
            self.out.add("assistant", neutral.served(self.served[-1], key, self.raw(inner)), place)
        else:
            id_ = self.served.pop(0) if self.served else self.give()
            self.out.add("assistant", neutral.serving(id_, self.raw(inner)), place)

    def give(self) -> str:
        """An id for what has none: its number among those (DESIGN: address)."""
        self.given += 1
        return str(self.given - 1)

    def raw(self, member: Member) -> bytes:
        return self.body[member.start : member.end]

    def text_of(self, inner: Member, key: str) -> str:
        found = spans.find(self.view, inner.start, key)
        return str(spans.decode(self.raw(found))) if found is not None and self.view[found.start] == '"' else ""


# ------------------------------------------------------------------------------------------------- writing


def edits(native: Native, item: Item, inside: Inside, added: Mapping[Place, Sequence[Added]]) -> list[Edit]:
    """What changes in a content (see `formats.Format`)."""
    parts = spans.find(native.view, native.items[item.number][0], "parts")
    assert parts is not None, "the reader has checked it"
    found = element_spans(native.view, parts.start)
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
