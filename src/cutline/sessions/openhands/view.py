"""Which of a conversation's events the model still sees, and where summaries stand in place of others.

Law: as the client itself makes its view: the events of the live branch in their order; a condensation takes some out
and puts its summary where it says. The events are read for that once, and nothing of them is kept but their names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ... import spans
from ..lines import Opened
from ..talk import word
from . import events, sdk

_CONDENSES = re.compile(rb'"(?:forgotten_event_ids|forgotten_events_start_id)"').search
_ROOT = "__root__"  # the name that stands for no parent
_SPAN = 1_000_000  # events that one condensation names by its first and last


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary: the number of the event that brought it, and its literal."""

    number: int
    literal: bytes


@dataclass(frozen=True, slots=True)
class _Note:
    number: int
    id: str
    parent: str
    shown: bool
    condenses: tuple[frozenset[str], bytes, int | None] | None


def view(raws: Iterable[bytes], leaf: str) -> list[int | Summary]:
    """The numbers of the events that the model sees, in order, and summaries between them.

    Args:
        raws: the events.
        leaf: the id of the last event of the live branch; "" where the last of all is.
    """
    notes = [_noted(number, Opened(raw), raw) for number, raw in enumerate(raws)]
    order: list[tuple[str, int | Summary]] = []
    for note in _live(notes, leaf):
        if note.condenses is None:
            if note.shown:
                order.append((note.id, note.number))
            continue
        gone, literal, offset = note.condenses
        order = [one for one in order if one[0] not in gone]
        if literal[:1] == b'"' and offset is not None:
            order.insert(offset, (f"{note.id}-summary", Summary(note.number, literal)))
    return [what for _, what in order]


def _live(notes: list[_Note], leaf: str) -> list[_Note]:
    """The notes of the live branch; all where the events are no tree, or one with a hole in it."""
    if not any(note.parent for note in notes):
        return notes
    places = {note.id: place for place, note in enumerate(notes)}
    place = places.get(leaf, len(notes) - 1)
    found: list[_Note] = []
    while len(found) <= len(notes):
        note = notes[place]
        found.append(note)
        if note.parent == _ROOT or (not note.parent and place == 0):
            return found[::-1]
        above = places.get(note.parent) if note.parent else place - 1  # events before there was a tree
        if above is None:
            break
        place = above
    return notes


def _noted(number: int, opened: Opened, raw: bytes) -> _Note:
    members = opened.members()
    of_sdk = bool(word(opened, members.get("kind")))
    named = opened.value(members.get("id"))
    return _Note(
        number,
        named if isinstance(named, str) else f"#{number}",
        word(opened, members.get("parent_id")),
        (sdk if of_sdk else events).shown(opened, members),
        _condensed(opened, members, of_sdk) if _CONDENSES(raw) else None,
    )


def _condensed(
    opened: Opened, members: dict[str, spans.Member], of_sdk: bool
) -> tuple[frozenset[str], bytes, int | None] | None:
    """The events that a condensation takes out, its summary and the place of it; None for no condensation."""
    if word(opened, members.get("kind" if of_sdk else "action")).lower() != "condensation":
        return None
    held = members if of_sdk else opened.inside(members.get("args"))
    gone = {str(opened.value(spans.Member("", 0, *one))) for one in opened.elements(held.get("forgotten_event_ids"))}
    first, last = (_number(opened.value(held.get(f"forgotten_events_{key}_id"))) for key in ("start", "end"))
    if first is not None and last is not None:
        gone |= {str(one) for one in range(first, min(last, first + _SPAN) + 1)}
    return frozenset(gone), opened.literal(held.get("summary")), _number(opened.value(held.get("summary_offset")))


def _number(value: object) -> int | None:
    return int(value[:18]) if isinstance(value, str) and value.isdigit() else None
