"""OpenAI Responses: read into the neutral shape, and written from a plan.

Law: one pass, never repairs; any doubt raises `Unreadable`. The items that a model made between two answers of the
world are one message; reasoning leaves with what it led to, and the ids that tied them leave too (docs/wire.md, 3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .. import spans
from ..errors import Unreadable
from ..spans import Member
from . import neutral
from .editing import Added, Edit, Inside, Item, absent, adding, edited, element_spans, told, without
from .neutral import Native, Neutral, Place

NAME = "openai_responses"
LIST = "input"
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


def looks(items: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a body is of this format: each item says its type, or is a message."""
    return bool(items) and all("type" in item or "role" in item or "id" in item for item in items)


def read(body: bytes, view: str, top: dict[str, Member]) -> Native:
    """Read a body (see `converse.read`)."""
    items = element_spans(view, top[LIST].start)
    build = _Reading(body, view)
    for number, (start, end) in enumerate(items):
        build.item(number, start, end)
    model = spans.decode(body[top["model"].start : top["model"].end]) if "model" in top else ""
    made = build.out.done(model if isinstance(model, str) else "", _tools(body, top))
    held = build.held
    for key in ("previous_response_id", "conversation"):
        if key in top and view[top[key].start] != "n":
            held = f"the history is held by the server ({key})"
    return Native(NAME, body, view, items, build.roles, build.out.places, made, held)


def _tools(body: bytes, top: dict[str, Member]) -> list[str]:
    given = spans.decode(body[top["tools"].start : top["tools"].end]) if "tools" in top else []
    tools = [tool for tool in given if isinstance(tool, dict)] if isinstance(given, list) else []
    inside = [one for tool in tools if isinstance(tool.get("tools"), list) for one in tool["tools"]]
    named = [one for one in (*tools, *inside) if isinstance(one, dict)]
    return [tool["name"] for tool in named if isinstance(tool.get("name"), str)]


class _Reading:
    """The neutral body while it grows."""

    def __init__(self, body: bytes, view: str) -> None:
        self.body, self.view = body, view
        self.out = Neutral()
        self.roles: list[str] = []
        self.held = ""
        self.given = 0
        self.waiting: list[tuple[str, str]] = []  # name and id of calls that are not answered yet, in order

    def item(self, number: int, start: int, end: int) -> None:
        """One item; the model's own form one message until somebody else speaks."""
        found = spans.members(self.view, start)[0]
        members = {member.key: member for member in found}
        if len(members) != len(found):
            raise Unreadable("a key stands twice in an item", start)
        raw, place = self.body[start:end], Place(number)
        type_ = self.text_of(members, "type") or ("message" if "role" in members else "")
        self.roles.append(self.text_of(members, "role"))
        if type_ == "message":
            self.message(number, start, members, raw)
        elif type_ in _CALLS:
            self.call(type_, place, members, start)
        elif type_ in _ANSWERS:
            self.answer(type_, place, members, raw)
        elif type_ == "reasoning":
            self.out.add("assistant", neutral.thinking(raw), place)
        elif type_ in _SERVED:
            # Call and result in one: with it the world has spoken.
            id_ = self.text_of(members, "id") or self.give()
            self.out.add("assistant", neutral.served(id_, self.text_of(members, "name") or type_, raw), place)
            self.out.add("assistant", neutral.serving(id_, b""), Place(number, "", -2))
            self.out.part()
        elif type_ == "compaction":
            self.out.part()
            self.out.add("assistant", neutral.compaction(raw), place)
            self.out.part()
        elif type_ in _CONTROL:
            self.out.part()
            self.out.add("user", neutral.control(raw), place)
        elif type_ in ("item_reference", ""):
            self.held = "the history is held by the server (an item_reference)"
            self.out.add("user", neutral.control(raw), place)
        else:
            self.out.add("assistant", neutral.unknown(type_, raw), place)
            self.out.part()  # who knows who made it

    def message(self, number: int, start: int, members: dict[str, Member], raw: bytes) -> None:
        """A message: the agent's words, a person's, or the harness's."""
        role, content = self.text_of(members, "role"), members.get("content")
        if role not in ("user", "assistant", "system", "developer"):
            raise Unreadable(f"a message of the unknown role {role!r}", start)
        speaker: neutral.Role = "assistant" if role == "assistant" else "user"
        if role != "assistant":
            self.out.part()
        if role in ("system", "developer") or content is None or self.view[content.start] not in '"[':
            self.out.add(speaker, neutral.control(raw), Place(number))
            return
        others = b""
        if role == "assistant":
            but = ("type", "role", "content", "id", "status")
            others = told({key: self.raw(member) for key, member in members.items() if key not in but})
        if self.view[content.start] == '"':
            self.out.add(speaker, neutral.text(self.raw(content), others), Place(number, "content"))
            return
        parts = element_spans(self.view, content.start)
        if not parts:
            self.out.add(speaker, neutral.control(raw), Place(number))
        for part, (at, end) in enumerate(parts):
            self.part(Place(number, "content", part), speaker, others, at, end)

    def part(self, place: Place, role: neutral.Role, others: bytes, at: int, end: int) -> None:
        """One part of a message's content."""
        members = {member.key: member for member in spans.members(self.view, at)[0]}
        type_ = self.text_of(members, "type")
        if type_ in _WORDS and "text" in members and self.view[members["text"].start] == '"':
            rest = absent(self.body, self.view, at, ("type", "text"))
            self.out.add(role, neutral.text(self.raw(members["text"]), others + rest), place)
        elif type_ == "refusal" and "refusal" in members and self.view[members["refusal"].start] == '"':
            self.out.add(role, neutral.text(self.raw(members["refusal"]), b"refusal"), place)
        elif type_ in _FILES:
            raw = self.body[at:end]
            self.out.add(role, neutral.attached(raw) if role == "user" else neutral.control(raw), place)
        else:
            self.out.add(role, neutral.unknown(type_ or "part", self.body[at:end]), place)

    def call(self, type_: str, place: Place, members: dict[str, Member], start: int) -> None:
        """A call, whatever its kind."""
        id_ = self.text_of(members, "call_id") or self.text_of(members, "id")
        id_ = id_ or self.give()
        if type_ == "function_call" and not self.text_of(members, "name"):
            raise Unreadable("a function_call without a name", start)
        name = type_ if type_ == "tool_search_call" else self.text_of(members, "name") or type_.removesuffix("_call")
        held = members.get(_CALLS[type_])
        raw = self.raw(held) if held else b"{}"
        caller = members.get("caller")
        by = self.raw(caller) if caller is not None and self.view[caller.start] == "{" else b""
        self.waiting.append((name, id_))
        made = neutral.call(id_, name, neutral.arguments(raw) if raw[:1] == b'"' else raw, by)
        self.out.add("assistant", made, place)

    def answer(self, type_: str, place: Place, members: dict[str, Member], raw: bytes) -> None:
        """An output; one without an id answers the first call that waits."""
        ids = [self.text_of(members, key) for key in ("call_id", "approval_request_id", "id")]
        id_ = next((one for one in ids if one), "") or (self.waiting[0][1] if self.waiting else self.give())
        self.waiting = [one for one in self.waiting if one[1] != id_]
        held = members.get(_ANSWERS[type_])
        self.out.add("user", neutral.result(id_, self.output(held, raw)), place)

    def output(self, held: Member | None, raw: bytes) -> bytes:
        """An output's content in the neutral shape."""
        if held is not None and self.view[held.start] == '"':
            return self.raw(held)
        if held is None or self.view[held.start] != "[":
            return spans.quote((self.raw(held) if held else raw).decode("utf-8", "surrogatepass"))
        parts = []
        for at, end in spans.elements(self.view, held.start)[0]:
            text = spans.find(self.view, at, "text")
            if text is not None and self.view[text.start] == '"':
                parts.append(neutral.text(self.raw(text)))
            else:
                kind = spans.find(self.view, at, "type")
                named = spans.decode(self.raw(kind)) if kind is not None else "part"
                parts.append(neutral.other(str(named), self.body[at:end]))
        return b"[%s]" % b",".join(parts)

    def give(self) -> str:
        """An id for what has none: its number among those (DESIGN: address)."""
        self.given += 1
        return str(self.given - 1)

    def raw(self, member: Member) -> bytes:
        return self.body[member.start : member.end]

    def text_of(self, members: dict[str, Member], key: str) -> str:
        member = members.get(key)
        return str(spans.decode(self.raw(member))) if member is not None and self.view[member.start] == '"' else ""


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
