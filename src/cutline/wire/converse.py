"""Bedrock Converse: read into the neutral shape, and written from a plan.

Law: one pass, never repairs; any doubt raises `Unreadable`. Neighbours of one role are merged, and a cache point stays
only behind the block that it marked (docs/wire.md, 5).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .. import spans
from ..errors import Unreadable
from ..spans import Member
from . import neutral
from .editing import Added, Edit, Inside, Item, absent, adding, element_spans, left_out, merged
from .neutral import Native, Neutral, Place

NAME = "converse"
LIST = "messages"
MERGES = frozenset(("user", "assistant"))
STRICT = False
STRIPS = False
_FILES = ("image", "document", "video", "audio", "searchResult", "guardContent")
_CONTROL = ("toolAddition", "toolRemoval", "citationsContent")
_MARK = "cachePoint"
_KEYS = frozenset(("text", "toolUse", "toolResult", "reasoningContent", _MARK, *_FILES, *_CONTROL))


def looks(items: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a body is of this format: its blocks have no type, and are named by their one member."""
    blocks = [block for item in items if isinstance(item.get("content"), list) for block in item["content"]]
    return bool(blocks) and all(isinstance(b, dict) and "type" not in b and not _KEYS.isdisjoint(b) for b in blocks)


def read(body: bytes, view: str, top: dict[str, Member]) -> Native:
    """Read a body.

    Args:
        body, view: the bytes and their view.
        top: the members of the body, each once.

    Raises:
        Unreadable: the first doubt and its byte offset.
    """
    items = element_spans(view, top[LIST].start)
    out, roles = Neutral(), []
    for number, (start, end) in enumerate(items):
        found = spans.members(view, start)[0]
        members = {member.key: member for member in found}
        if len(members) != len(found):
            raise Unreadable("a key stands twice in a message", start)
        role = spans.decode(body[members["role"].start : members["role"].end]) if "role" in members else None
        if role not in ("user", "assistant", "system") or "content" not in members:
            raise Unreadable("a message without role or content", start)
        roles.append(role)
        out.part()
        blocks = element_spans(view, members["content"].start)
        speaks = [(part, at, to) for part, (at, to) in enumerate(blocks) if spans.find(view, at, _MARK) is None]
        if role == "system" or not speaks:
            out.add("assistant" if role == "assistant" else "user", neutral.control(body[start:end]), Place(number))
            continue
        for part, at, to in speaks:
            _block(body, view, out, role, Place(number, "content", part), at, to)
    asked = _value(body, top, "additionalModelRequestFields", {})
    thinking = asked.get("thinking") if isinstance(asked, dict) else None
    manual = isinstance(thinking, dict) and thinking.get("type") == "enabled"
    model = _value(body, top, "modelId", "")
    made = out.done(model if isinstance(model, str) else "", _tools(body, top), thinking="enabled" if manual else "")
    return Native(NAME, body, view, items, roles, out.places, made)


def _value(body: bytes, top: dict[str, Member], key: str, default: Any) -> Any:
    return spans.decode(body[top[key].start : top[key].end]) if key in top else default


def _tools(body: bytes, top: dict[str, Member]) -> list[str]:
    given = _value(body, top, "toolConfig", {})
    listed = given.get("tools") if isinstance(given, dict) else None
    specs = [one.get("toolSpec") for one in listed or () if isinstance(one, dict)]
    return [spec["name"] for spec in specs if isinstance(spec, dict) and isinstance(spec.get("name"), str)]


def _block(body: bytes, view: str, out: Neutral, role: neutral.Role, place: Place, at: int, end: int) -> None:
    members = {member.key: member for member in spans.members(view, at)[0]}
    raw = body[at:end]
    key = next((key for key in members if key in _KEYS), "")
    inner = members.get(key)
    if inner is not None and key == "text" and view[inner.start] == '"':
        out.add(role, neutral.text(body[inner.start : inner.end], absent(body, view, at, ("text",))), place)
    elif inner is not None and key == "toolUse":
        _call(body, view, out, place, inner)
    elif inner is not None and key == "toolResult":
        _result(body, view, out, role, place, inner)
    elif inner is not None and key == "reasoningContent":
        text = spans.find(view, inner.start, "reasoningText")
        words = spans.find(view, text.start, "text") if text else None
        signed = spans.find(view, text.start, "signature") if text else None
        mark = body[signed.start : signed.end] if signed and view[signed.start] == '"' else b'""'
        thought = body[words.start : words.end] if words and view[words.start] == '"' else raw
        out.add(role, neutral.thinking(thought, signature=mark), place)
    elif key in _FILES:
        out.add(role, neutral.attached(raw) if role == "user" else neutral.control(raw), place)
    elif key in _CONTROL:
        out.add(role, neutral.control(raw), place)
    else:
        out.add(role, neutral.unknown(next(iter(members), "block"), raw), place)


def _call(body: bytes, view: str, out: Neutral, place: Place, inner: Member) -> None:
    value = spans.decode(body[inner.start : inner.end])
    given = spans.find(view, inner.start, "input")
    if not isinstance(value.get("toolUseId"), str) or not isinstance(value.get("name"), str):
        raise Unreadable("a toolUse without toolUseId or name", inner.start)
    make = neutral.served if value.get("type") == "server_tool_use" else neutral.call
    arguments = body[given.start : given.end] if given else b"{}"
    out.add("assistant", make(value["toolUseId"], value["name"], arguments), place)


def _result(body: bytes, view: str, out: Neutral, role: neutral.Role, place: Place, inner: Member) -> None:
    value = spans.decode(body[inner.start : inner.end])
    if not isinstance(value.get("toolUseId"), str):
        raise Unreadable("a toolResult without toolUseId", inner.start)
    if role == "assistant":
        out.add(role, neutral.serving(value["toolUseId"], body[inner.start : inner.end]), place)
        return
    content = spans.find(view, inner.start, "content")
    parts = []
    for at, end in element_spans(view, content.start) if content else ():
        text = spans.find(view, at, "text")
        json_ = spans.find(view, at, "json")
        if text is not None and view[text.start] == '"':
            parts.append(neutral.text(body[text.start : text.end]))
        elif json_ is not None:
            given = body[json_.start : json_.end].decode("utf-8", "surrogatepass")
            parts.append(neutral.text(spans.quote(given)))
        else:
            kind = next((member.key for member in spans.members(view, at)[0]), "block")
            parts.append(neutral.other(kind, body[at:end]))
    made = neutral.result(value["toolUseId"], b"[%s]" % b",".join(parts), error=value.get("status") == "error")
    out.add("user", made, place)


# ------------------------------------------------------------------------------------------------- writing


def edits(native: Native, item: Item, inside: Inside, added: Mapping[Place, Sequence[Added]]) -> list[Edit]:
    """What changes in a message (see `formats.Format`)."""
    content = spans.find(native.view, native.items[item.number][0], "content")
    assert content is not None, "the reader has checked it"
    found = element_spans(native.view, content.start)
    pieces = {piece.places[0].part: piece for piece in item.pieces}
    made: list[Edit] = []
    kept = set(pieces)
    for part, (at, end) in enumerate(found):
        piece = pieces.get(part)
        if piece is None:
            # A cache point marks what stands before it, and may not follow reasoning.
            if (
                part - 1 in kept
                and spans.find(native.view, at, _MARK) is not None
                and not _thinks(native, found[part - 1])
            ):
                kept.add(part)
        elif piece.spoken:
            made.append(Edit(at, end, b'{"text":"%s"}' % inside(piece)))
        elif len(piece.places) > 1:
            words = spans.find(native.view, at, "text")
            assert words is not None, "only texts are joined"
            made.append(Edit(words.start + 1, words.end - 1, inside(piece)))
        elif piece.places[0] in added:
            result = spans.find(native.view, at, "toolResult")
            assert result is not None, "only results get something"
            held = spans.find(native.view, result.start, "content")
            given = added[piece.places[0]]
            made += adding(native, result.end, held, given, piece.places[0], b'{"text":"%s"}', "content")
    return made + left_out(found, [part for part in range(len(found)) if part not in kept])


def _thinks(native: Native, span: tuple[int, int]) -> bool:
    return spans.find(native.view, span[0], "reasoningContent") is not None


def folds(native: Native, items: Sequence[Item]) -> list[bool]:
    """No server of this format is stricter than the format."""
    return [False] * len(items)


def merge(native: Native, items: Sequence[Item], literals: Sequence[bytes]) -> bytes:
    """Messages of one role as one: their blocks in order, behind the last one's leading reasoning."""
    return merged(literals, "content", "reasoningContent")
