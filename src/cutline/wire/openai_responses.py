"""OpenAI Responses: read into the neutral shape, and written from a plan.

Law: one pass, never repairs; any doubt raises `Unreadable`. The items that a model made between two answers of the
world are one message; reasoning leaves with what it led to, and the ids that tied them leave too (docs/wire.md, 3).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from .. import spans
from ..errors import Unreadable
from ..spans import Member, Object
from . import neutral
from .anthropic import reading
from .editing import Added, Edit, Inside, Item, absent, adding, edited, without
from .neutral import Native, Neutral, Place, Settings, Source
from .shapes import FLAT, PLAIN, STRING, Usual, one_of, shape

NAME = "openai_responses"
MERGES: frozenset[str] = frozenset()
STRICT = False
STRIPS = True
# What a call's arguments stand in, by type; its name where it has none of its own is the type without "_call".
_CALLS = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "local_shell_call": "action",
    "shell_call": "action",
    "apply_patch_call": "operation",
    "computer_call": "action",
    "tool_search_call": "arguments",
    "program": "code",
    "mcp_approval_request": "arguments",
}
_ANSWERS = {
    **{f"{name}_output": "output" for name in ("function_call", "custom_tool_call", "local_shell_call", "shell_call")},
    **{f"{name}_output": "output" for name in ("apply_patch_call", "computer_call", "program")},
    "tool_search_output": "tools",
    "mcp_approval_response": "approve",
}
_SERVED = ("web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call")
_CONTROL = ("additional_tools", "configuration_update", "mcp_list_tools", "compaction_trigger")
_WORDS = ("input_text", "output_text", "text", "summary_text")
_FILES = ("input_image", "input_file", "input_audio")


_NAMED = {"id?": PLAIN, "call_id": PLAIN, "name": PLAIN, "namespace?": PLAIN, "status?": PLAIN}
_PART = {"type": '"(?:in|out)put_text"', "text": STRING, "(?:annotations|logprobs)?": r"\[\]"}
_SHAPES = {
    "function_call": shape({"type": '"function_call"', **_NAMED, "arguments": STRING}),
    "custom_tool_call": shape({"type": '"custom_tool_call"', **_NAMED, "input": STRING}),
    "output": shape(
        {
            "type": '"(?:function|custom_tool)_call_output"',
            "id?": PLAIN,
            "call_id": PLAIN,
            "output": STRING,
            "status?": PLAIN,
        }
    ),
    "reasoning": shape(
        {
            "type": '"reasoning"',
            "id?": PLAIN,
            "summary": rf"\[(?:{FLAT}(?:, ?+{FLAT})*+)?+\]",
            "content?": r"null|\[\]",
            "encrypted_content?": f"null|{STRING}",
        }
    ),
    "message": shape(
        {
            "type?": '"message"',
            "id?": PLAIN,
            "role": '"(?:user|assistant)"',
            "content": [STRING, (_PART,)],
            "status?": PLAIN,
            "phase?": PLAIN,
        }
    ),
}
usual = one_of(NAME, _SHAPES)


def looks(usual: Sequence[Usual], others: Sequence[Object]) -> bool:
    """Whether a body is of this format: each item says its type, or is a message."""
    known = all("type" in item.held or "role" in item.held or "id" in item.held for item in others)
    return known and bool(usual or others)


def settings(source: Source) -> Settings:
    """What a body says beside its history."""
    keys = [key for key in ("previous_response_id", "conversation") if key in source.top]
    held = [key for key in keys if source.view[source.top[key].start] != "n"]
    why = f"the history is held by the server ({held[-1]})" if held else ""
    return Settings(source.text("model"), _tools(source.value("tools")), held=why)


def read(source: Source, settings: Settings) -> Native:
    """Read a body. Raises Unreadable for the first doubt, with its byte offset."""
    build = _Reading(source)
    source.each(NAME, build.usual, build.item)
    return source.native(NAME, build.roles, build.out, settings, build.held)


def _tools(declared: Any) -> list[str]:
    tools = [tool for tool in declared if isinstance(tool, dict)] if isinstance(declared, list) else []
    inside = [one for tool in tools if isinstance(tool.get("tools"), list) for one in tool["tools"]]
    named = [one for one in (*tools, *inside) if isinstance(one, dict)]
    return [tool["name"] for tool in named if isinstance(tool.get("name"), str)]


class _Reading:
    """The neutral body while it grows."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.out = Neutral()
        self.roles: list[str] = []
        self.held = ""
        self.given = 0
        self.waiting: list[tuple[str, str]] = []  # name and id of calls that are not answered yet, in order

    def usual(self, number: int, item: tuple[str, re.Match[str]]) -> None:
        """One item of a usual shape."""
        (kind, found), body, out = item, self.source.body, self.out
        self.roles.append(found["role"][1:-1] if kind == "message" else "")
        if kind == "output":
            id_, (start, end) = found["call_id"][1:-1], found.span("output")
            self.answered(id_)
            out.result(id_, body[start:end], reading.of_literal(self.source.view, start, end), Place(number))
        elif kind == "reasoning":
            out.thinking("assistant", self.source.item(number), Place(number))
        elif kind == "message":
            role: neutral.Role = "assistant" if found["role"] == '"assistant"' else "user"
            if role == "user":
                out.part()
            phase = found["phase"] if role == "assistant" else None
            start, end = found.span("content")
            part = -1
            if self.source.view[start] == "[":
                part, (start, end) = 0, found.span("content_text")
            out.text(role, body[start:end], Place(number, "content", part), f"phase:{phase}".encode() if phase else b"")
        else:
            id_, name = found["call_id"][1:-1], found["name"][1:-1]
            self.waiting.append((name, id_))
            start, end = found.span(_CALLS[kind])
            out.call(id_, name, neutral.arguments(body[start:end]), Place(number))

    def item(self, number: int, item: Object) -> None:
        """One item; the model's own form one message until somebody else speaks."""
        if item.twins:
            raise Unreadable("a key stands twice in an item", item.start)
        place, out = Place(number), self.out
        type_ = item.text("type") or ("message" if "role" in item.held else "")
        self.roles.append(item.text("role") or "")
        if type_ == "message":
            self.message(number, item)
        elif type_ in _CALLS:
            self.call(type_, place, item)
        elif type_ in _ANSWERS:
            self.answer(type_, place, item)
        elif type_ == "reasoning":
            out.thinking("assistant", self.source.item(number), place)
        elif type_ in _SERVED:
            # Call and result in one: with it the world has spoken.
            id_ = item.text("id") or self.give()
            out.served(id_, item.text("name") or type_, self.source.item(number), place)
            out.serving(id_, b"", Place(number, "", -2))
            out.part()
        elif type_ == "compaction":
            out.part()
            out.compaction(self.source.item(number), place)
            out.part()
        elif type_ in _CONTROL:
            out.part()
            out.control("user", self.source.item(number), place)
        elif type_ in ("item_reference", ""):
            self.held = "the history is held by the server (an item_reference)"
            out.control("user", self.source.item(number), place)
        else:
            out.unknown("assistant", type_, self.source.item(number), place)
            out.part()  # who knows who made it

    def message(self, number: int, item: Object) -> None:
        """A message: the agent's words, a person's, or the harness's."""
        role, content, words = item.text("role"), item.held.get("content"), item.string("content")
        if role not in ("user", "assistant", "system", "developer"):
            raise Unreadable(f"a message of the unknown role {role or ''!r}", item.start)
        speaker: neutral.Role = "assistant" if role == "assistant" else "user"
        if role != "assistant":
            self.out.part()
        if role in ("system", "developer") or not (words or (type(content) is list and content)):
            self.out.control(speaker, self.source.item(number), Place(number))
            return
        others = b""
        if role == "assistant":
            others = absent(self.source.body, item, ("type", "role", "content", "id", "status"))
        if words:
            self.out.text(speaker, self.source.raw(words), Place(number, "content"), others)
            return
        for part, held in enumerate(item.list("content")):
            self.part(Place(number, "content", part), speaker, held, others)

    def part(self, place: Place, role: neutral.Role, part: Object, others: bytes) -> None:
        """One part of a message's content."""
        type_, raw = part.text("type") or "", self.source.raw
        if type_ in _WORDS and (words := part.string("text")):
            rest = absent(self.source.body, part, ("type", "text"))
            self.out.text(role, raw(words), place, others + rest)
        elif type_ == "refusal" and (words := part.string("refusal")):
            self.out.text(role, raw(words), place, b"refusal")
        elif type_ not in _FILES:
            self.out.unknown(role, type_ or "part", raw(part.literal), place)
        elif role == "user":
            self.out.attached(role, raw(part.literal), place)
        else:
            self.out.control(role, raw(part.literal), place)

    def call(self, type_: str, place: Place, item: Object) -> None:
        """A call, whatever its kind."""
        id_, name = item.text("call_id") or item.text("id") or self.give(), item.text("name")
        if type_ == "function_call" and not name:
            raise Unreadable("a function_call without a name", item.start)
        if type_ == "tool_search_call":
            name = type_
        name = name or type_.removesuffix("_call")
        key = _CALLS[type_]
        raw = self.source.raw(item.span(key)) if key in item.held else b"{}"
        by = self.source.raw(item.span("caller")) if type(item.held.get("caller")) is tuple else b""
        self.waiting.append((name, id_))
        self.out.call(id_, name, neutral.arguments(raw) if raw[:1] == b'"' else raw, place, by)

    def answer(self, type_: str, place: Place, item: Object) -> None:
        """An output; one without an id answers the first call that waits."""
        ids = (item.text(key) for key in ("call_id", "approval_request_id", "id"))
        id_ = next((one for one in ids if one), "") or (self.waiting[0][1] if self.waiting else self.give())
        self.answered(id_)
        key = _ANSWERS[type_]
        output = item.held.get(key)
        if words := item.string(key):
            self.out.result(id_, self.source.raw(words), reading.of_content(output), place)
        elif type(output) is list:
            self.out.results(id_, [neutral.part_of(self.source, part) for part in item.list(key)], place)
        else:
            whole = self.source.raw(item.span(key)) if key in item.held else self.source.item(place.item)
            text = whole.decode("utf-8", "surrogatepass")
            self.out.result(id_, spans.quote(text), reading.of_content(text), place)

    def answered(self, id_: str) -> None:
        """The call of that id waits no longer."""
        if self.waiting:
            self.waiting = [one for one in self.waiting if one[1] != id_]

    def give(self) -> str:
        """An id for what has none: its number among those (DESIGN: address)."""
        self.given += 1
        return str(self.given - 1)


# ------------------------------------------------------------------------------------------------- writing


def edits(native: Native, item: Item, inside: Inside, added: Mapping[Place, Sequence[Added]]) -> list[Edit]:
    """What changes in an item: parts that left, words that were joined, an id that tied it to reasoning that left."""
    start, end = native.items[item.number]
    members = {member.key: member for member in spans.members(native.view, start)[0]}
    whole = Place(item.number)
    found: list[Edit] = []
    if whole in added:
        held = members.get("output")
        found += adding(native, end, held, added[whole], whole, b'{"type":"input_text","text":"%s"}', "output")
    content = members.get("content")
    if content is not None and any(piece.places[0].member == "content" for piece in item.pieces):
        found += edited(native, content, item, inside)
    gone = ["id"] if item.early and "id" in members and _is_models(native, members) else []
    return without(members, gone, found)


def _is_models(native: Native, members: dict[str, Member]) -> bool:
    """Whether an item is a message of the agent's or a call: those that a provider ties to reasoning by their ids."""
    values = {key: native.body[members[key].start : members[key].end] for key in ("type", "role") if key in members}
    type_ = values.get("type", b'"message"').decode().strip('"')
    return values.get("role") == b'"assistant"' or (type_ in _CALLS and "call_id" in members)


def folds(native: Native, items: Sequence[Item]) -> list[bool]:
    """No server of this format is stricter than the format."""
    return [False] * len(items)


def merge(native: Native, items: Sequence[Item], literals: Sequence[bytes]) -> bytes:
    """Nothing is merged here: no two items are refused as neighbours."""
    raise AssertionError("this format merges nothing")
