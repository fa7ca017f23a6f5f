"""Edits of one item's literal: elements that leave a list, members that leave an object, text that is added.

Law: bytes between what stays are copied; a comma leaves with what it parted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .. import spans
from ..spans import Member, Object
from .neutral import Native, Place


@dataclass(frozen=True, slots=True)
class Piece:
    """One block of the output: the places of the blocks that it is made of; of several, texts that are joined.

    `spoken` says that it was a thought whose words stay as text.
    """

    places: tuple[Place, ...]
    spoken: bool = False


@dataclass(frozen=True, slots=True)
class Item:
    """What stays of one item.

    Attributes:
        number: the item's index.
        pieces: its blocks in order.
        early: it stands before the seam, and behind the last compaction.
        last: the last one of a run of items that stay as they came; -1 for a single item.
    """

    number: int
    pieces: tuple[Piece, ...]
    early: bool = False
    last: int = -1


Inside = Callable[[Piece], bytes]
"""The inside of the string literal of a piece's words."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A span of a body and what stands there instead.

    Attributes:
        start, end: the span.
        new: its new bytes.
        added: 1 for a notice, 2 for content that fills a result which points back, 0 for anything else.
        place: the result's place, for what is added.
    """

    start: int
    end: int
    new: bytes
    added: int = 0
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class Added:
    """What a result gets: the inside of a string literal, and whether it fills a result that points back."""

    inside: bytes
    fills: bool


def absent(body: bytes, item: Object, but: Sequence[str]) -> bytes:
    """The members of an object without some, in one spelling: what two texts must share to be joined."""
    left = [key for key in item.held if key not in but]
    return told({key: body[slice(*item.span(key))] for key in left}) if left else b""


def told(members: dict[str, bytes]) -> bytes:
    """Members in one spelling and order; null and an empty list count as absent."""
    found = [(key.encode("utf-8", "surrogatepass"), raw) for key, raw in sorted(members.items())]
    return b",".join(key + b":" + raw for key, raw in found if raw not in (b"null", b"[]"))


def edited(native: Native, member: Member, item: Item, inside: Inside) -> list[Edit]:
    """The edits of a member that holds a string or a list: elements that left, and words that were joined."""
    mine = [piece for piece in item.pieces if piece.places[0].member == member.key]
    if native.view[member.start] == '"':
        joined = [piece for piece in mine if len(piece.places) > 1]
        return [Edit(member.start + 1, member.end - 1, inside(piece)) for piece in joined]
    edits: list[Edit] = []
    kept = {piece.places[0].part: piece for piece in mine}
    found = spans.elements(native.view, member.start)[0]
    if not kept:
        return []
    for part, (start, _) in enumerate(found):
        piece = kept.get(part)
        if piece is not None and len(piece.places) > 1:
            words = spans.find(native.view, start, "text")
            assert words is not None, "only texts are joined"
            edits.append(Edit(words.start + 1, words.end - 1, inside(piece)))
    return edits + left_out(found, [part for part in range(len(found)) if part not in kept])


def left_out(found: Sequence[tuple[int, int]], gone: Sequence[int]) -> list[Edit]:
    """The edits that take elements out of a list, of which at least one stays."""
    edits: list[Edit] = []
    left = set(gone)
    first = next((part for part in range(len(found)) if part not in left), None)
    if first is None:
        raise AssertionError("a list is never emptied: its member leaves")
    for part in gone:
        if part < first:
            edits.append(Edit(found[part][0], found[part + 1][0], b""))
        else:
            edits.append(Edit(found[part - 1][1], found[part][1], b""))
    return edits


def without(members: dict[str, Member], gone: Sequence[str], edits: list[Edit]) -> list[Edit]:
    """The edits that take members out of an object of which some stay, and those inside of members that stay."""
    ordered = sorted(members.values(), key=lambda member: member.at)
    whole = [(member.at, member.end) for member in ordered]
    places = [number for number, member in enumerate(ordered) if member.key in set(gone)]
    inside = [edit for edit in edits if not any(whole[n][0] <= edit.start < whole[n][1] for n in places)]
    return [*inside, *left_out(whole, places)] if places else inside


def apply(body: bytes, start: int, end: int, edits: Sequence[Edit]) -> tuple[bytes, list[tuple[int, int, Edit]]]:
    """A span of a body with edits, which don't overlap; and where in it each that adds something stands."""
    parts: list[bytes] = []
    marked: list[tuple[int, int, Edit]] = []
    at, size = start, 0
    for edit in sorted(edits, key=lambda edit: edit.start):
        parts += [body[at : edit.start], edit.new]
        size += edit.start - at + len(edit.new)
        if edit.added:
            marked.append((size - len(edit.new), size, edit))
        at = edit.end
    return b"".join((*parts, body[at:end])), marked


def adding(
    native: Native, end: int, content: Member | None, given: Sequence[Added], place: Place, part: bytes, key: str
) -> list[Edit]:
    """The edits that add text to a result: inside a string, as parts of a list, or as the content where it has none.

    Args:
        native: the body.
        end: where the object that holds the content ends.
        content: the member that holds it; None where it is absent.
        given: what is added.
        place: the result's place.
        part: a part of such a list, with ``%s`` for the inside of a literal.
        key: the member's name, where it has to be made.
    """
    if content is not None and native.view[content.start] == "[":
        empty = not spans.elements(native.view, content.start)[0]
        commas = [b"" if empty and not number else b"," for number in range(len(given))]
        return [
            Edit(content.end - 1, content.end - 1, comma + part % one.inside, 1 + one.fills, place)
            for comma, one in zip(commas, given, strict=True)
        ]
    if content is not None and native.view[content.start] == '"':
        return [Edit(content.end - 1, content.end - 1, b"\\n\\n" + one.inside, 1 + one.fills, place) for one in given]
    whole = b'"%s"' % b"\\n\\n".join(one.inside for one in given)
    if content is None:
        return [Edit(end - 1, end - 1, b',"%s":%s' % (key.encode(), whole), 1 + given[0].fills, place)]
    return [Edit(content.start, content.end, whole, 1 + given[0].fills, place)]


def merged(literals: Sequence[bytes], key: str, leads: str) -> bytes:
    """Objects as one: the last one's, with the elements of all their lists in order.

    Args:
        literals: the objects.
        key: the member that holds each one's list.
        leads: elements with this member that begin the last list stay first.
    """
    views = [literal.decode("latin-1") for literal in literals]
    lists = [spans.find(view, 0, key) for view in views]
    elements: list[list[bytes]] = []
    for literal, view, held in zip(literals, views, lists, strict=True):
        assert held is not None, "what is merged holds a list"
        elements.append([literal[start:end] for start, end in spans.elements(view, held.start)[0]])
    last, held = literals[-1], lists[-1]
    assert held is not None
    lead = 0
    starts = [start for start, _ in spans.elements(views[-1], held.start)[0]]
    while lead < len(starts) and spans.find(views[-1], starts[lead], leads) is not None:
        lead += 1
    parts = [*elements[-1][:lead], *(one for some in elements[:-1] for one in some), *elements[-1][lead:]]
    return last[: held.start] + b"[" + b",".join(parts) + b"]" + last[held.end :]
