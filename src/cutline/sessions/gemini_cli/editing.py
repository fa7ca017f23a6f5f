"""A message with what left it taken out, and what a cut adds put in.

Law: what stays keeps its bytes. A result stays where its call holds it; its copies elsewhere go, whatever is cut: the
client would send each of them, and the provider refuses a second result of a call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ... import spans
from . import pieces
from .pieces import Group, Message

_Edit = tuple[int, int, bytes]


def edited(message: Message, gone: set[int], filled: Mapping[int, bytes]) -> bytes | None:
    """A message without some of its pieces; None where nothing of it is left.

    Args:
        message: the message.
        gone: indices of the pieces that leave.
        filled: by index, the new content of results.
    """
    if gone and len(gone) == len(message.pieces):
        return None
    edits = [*_content(message, gone, filled), *_thoughts(message, gone), *_calls(message, gone, filled)]
    raw = message.raw
    for start, end, new in sorted(edits, reverse=True):
        raw = raw[:start] + new + raw[end:]
    return raw


def _content(message: Message, gone: set[int], filled: Mapping[int, bytes]) -> list[_Edit]:
    content = message.content
    if content is None:
        return []
    items = message.items(content)
    out: set[int] = set()
    new: dict[int, list[bytes]] = {}
    for number, piece in enumerate(message.pieces):
        member, index, count = piece.where
        if member != "content" or (number not in gone and number not in filled):
            continue
        if index < 0:
            return [(content.start, content.end, b'""' if message.view[content.start] == '"' else b"[]")]
        out |= set(range(index, index + count))
        if number not in gone:
            new[index] = _filled(message, items[index : index + count], piece.literal, filled[number])
    return [_list(message, content.start, content.end, items, out, new)] if out else []


def _thoughts(message: Message, gone: set[int]) -> list[_Edit]:
    """Reasoning goes from `thoughts`, also where that only repeats what the content holds."""
    member = message.top.get("thoughts")
    items = message.items(member)
    thinking = {number: piece for number, piece in enumerate(message.pieces) if piece.kind == "thinking"}
    if member is None or not items or not gone & thinking.keys():
        return []
    out = {piece.where[1] for number, piece in thinking.items() if number in gone and piece.where[0] == "thoughts"}
    if gone >= thinking.keys():
        out = set(range(len(items)))
    return [_list(message, member.start, member.end, items, out, {})] if out else []


def _calls(message: Message, gone: set[int], filled: Mapping[int, bytes]) -> list[_Edit]:
    """Calls go from `toolCalls` with their results; of those that stay, results of other calls go."""
    member = message.top.get("toolCalls")
    items = message.items(member)
    if member is None or not items:
        return []
    native = {piece.id for number, piece in enumerate(message.pieces) if number in gone and _in_content(piece)}
    left = {piece.where[1] for number, piece in enumerate(message.pieces) if number in gone and _entry(piece, "call")}
    results = {piece.where[1]: number for number, piece in enumerate(message.pieces) if _entry(piece, "result")}
    edits: list[_Edit] = []
    out: set[int] = set()
    for index, (start, _) in enumerate(items):
        found = message.inside(start)
        name = message.value(found["name"]) if "name" in found else ""
        id_ = pieces.wire_id(message.value(found["id"]) if "id" in found else "", name)
        if index in left or id_ in native:
            out.add(index)
            continue
        result, number = found.get("result"), results.get(index)
        if result is None or number is None:
            continue
        if number in gone:
            edits.append((result.start, result.end, b"null"))
        elif message.view[result.start] == '"':
            if number in filled:
                edits.append((result.start, result.end, filled[number]))
        else:
            edits += _result(message, result, id_, message.pieces[number].literal, filled.get(number))
    if not out:
        return edits
    kept = [edit for edit in edits if not any(items[index][0] <= edit[0] < items[index][1] for index in out)]
    return _merged(message, member.start, member.end, items, out, kept)


def _in_content(piece: pieces.Piece) -> bool:
    return piece.kind == "call" and piece.where[0] == "content"


def _entry(piece: pieces.Piece, kind: str) -> bool:
    return piece.kind == kind and piece.where[0] == "toolCalls"


def _result(message: Message, result: spans.Member, id_: str, old: bytes, new: bytes | None) -> list[_Edit]:
    """A call's own parts of its recorded result, with a new content where there is one."""
    items = message.items(result)
    (number, group), *_ = pieces.own(message, result, id_)
    mine = set(range(number, number + len(group)))
    out = set(range(len(items))) - mine
    parts: dict[int, list[bytes]] = {}
    if new is not None:
        parts[number] = _filled(message, group, old, new)
        out |= mine
    return [_list(message, result.start, result.end, items, out, parts)] if out else []


def _filled(message: Message, group: Group, old: bytes, new: bytes) -> list[bytes]:
    """The parts of a result whose content became another: words in their place, or more texts behind them."""
    parts = [message.raw[start:end] for start, end in group]
    if new[:1] == b"[":
        view = new.decode("latin-1")
        known = len(spans.elements(old.decode("latin-1"), 0)[0])
        for start, _ in spans.elements(view, 0)[0][known:]:
            text = next(member for member in spans.members(view, start)[0] if member.key == "text")
            parts.append(b'{"text":%s}' % new[text.start : text.end])
        return parts
    start, end = group[0]
    first = message.inside(start)
    if "functionResponse" not in first:
        text = first["text"]
        parts[0] = message.raw[start : text.start] + new + message.raw[text.end : end]
        return parts
    answer = first["functionResponse"]
    response = message.inside(answer.start).get("response")
    if response is None:
        at = answer.end - 1
        parts[0] = message.raw[start:at] + b',"response":{"output":%s}' % new + message.raw[at:end]
        return parts
    members = message.inside(response.start)
    words = next(iter(members.values())) if len(members) == 1 else None
    if words and words.key in ("output", "error") and message.view[words.start] == '"':
        parts[0] = message.raw[start : words.start] + new + message.raw[words.end : end]
    else:
        # A response of another form stands in the history as the text of its JSON, with the notice behind it.
        parts[0] = message.raw[start : response.start] + b'{"output":%s}' % new + message.raw[response.end : end]
    return parts


def _list(
    message: Message,
    start: int,
    end: int,
    items: Sequence[tuple[int, int]],
    out: set[int],
    new: Mapping[int, list[bytes]],
) -> _Edit:
    """A list without some of its items, others in the place of some."""
    kept: list[bytes] = []
    for index, (first, last) in enumerate(items):
        if index in new:
            kept += new[index]
        elif index not in out:
            kept.append(message.raw[first:last])
    return start, end, joined(message.raw, (start, end), items, kept)


def joined(raw: bytes, whole: tuple[int, int], items: Sequence[tuple[int, int]], kept: Sequence[bytes]) -> bytes:
    """A list of these items, parted and framed as the list was."""
    if not kept or not items:
        return b"[%s]" % b",".join(kept)
    between = raw[items[0][1] : items[1][0]] if len(items) > 1 else b","
    return raw[whole[0] : items[0][0]] + between.join(kept) + raw[items[-1][1] : whole[1]]


def _merged(
    message: Message,
    start: int,
    end: int,
    items: Sequence[tuple[int, int]],
    out: set[int],
    edits: Sequence[_Edit],
) -> list[_Edit]:
    """A list without some of its items, and edits inside of others, as one edit."""
    kept: list[bytes] = []
    for index, (first, last) in enumerate(items):
        if index in out:
            continue
        raw = message.raw[first:last]
        for begin, stop, new in sorted((edit for edit in edits if first <= edit[0] < last), reverse=True):
            raw = raw[: begin - first] + new + raw[stop - first :]
        kept.append(raw)
    return [(start, end, joined(message.raw, (start, end), items, kept))]
