"""Which items of a rollout are live: what the client would send again, in its order.

Law: decisions only. A compaction replaces what stood before it, turns that were taken back are gone, results come
directly behind the run of items that called for them. What the client composes anew for each request is not in this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from ... import spans
from .items import Item, Opened, is_answer, is_call, is_sent, is_served
from .people import begins_turn
from .people import is_summary as tells_summary
from .records import Log, Record

SUMMARY = -1
"""The item's number of a compaction's summary that stands as plain words in its record."""
_KEPT_WORDS = 80_000  # bytes: of a person's words, the newest 20,000 tokens outlive a compaction of the old form


class Live(NamedTuple):
    """One live item.

    Attributes:
        record, item: index of its record, and of the item in it; `SUMMARY` for a summary in plain words.
        type, call: the item's type, and the id that ties a call to its result.
        agent: the agent made it: a message, reasoning, or a call.
        turn: it begins a turn.
        context: the client's own context before a turn, which goes with the turn when that is taken back.
        size: bytes.
    """

    record: int
    item: int
    type: str
    call: str
    agent: bool
    turn: bool = False
    context: bool = False
    size: int = 0


@dataclass(slots=True)
class Branch:
    """What is live of a rollout.

    Attributes:
        items: the live items in the order in which they are sent.
        compacted: a compaction stands at their beginning.
    """

    items: list[Live] = field(default_factory=list)
    compacted: bool = False


def live(log: Log, fetch: Callable[[Record], bytes]) -> Branch:
    """Follow the records from the first to the last."""
    found: list[Live] = []
    compacted = False
    for number, record in enumerate(log.records):
        if record.type == "response_item":
            if record.kind == "message" and record.role in ("user", "developer", "system"):
                opened = Opened(record, fetch(record))
                found += [_live(number, index, opened, item) for index, item in enumerate(opened.items)]
            elif is_sent(record.kind) and (record.kind != "message" or record.role):
                agent = record.role == "assistant" or record.kind == "reasoning" or is_call(record.kind)
                turn = record.kind == "agent_message"
                found.append(Live(number, 0, record.kind, record.call, agent, turn, False, record.length))
        elif record.type == "compacted":
            opened = Opened(record, fetch(record))
            kept = opened.member("payload", "replacement_history")
            compacted = True
            if kept is not None and opened.view[kept.start] == "[":
                found = [_live(number, index, opened, item) for index, item in enumerate(opened.items)]
            else:
                found = [*_words_kept(found), Live(number, SUMMARY, "summary", "", False)]
        elif record.kind == "thread_rolled_back" and record.type == "event_msg":
            found = _taken_back(found, record.turns)
    return Branch(list(_answered(found)), compacted)


def _live(number: int, index: int, opened: Opened, item: Item) -> Live:
    size = item.end - item.start
    call = opened.word(item.members, "call_id") or ("" if item.type == "message" else opened.word(item.members, "id"))
    if item.type != "message":
        agent = item.type == "reasoning" or is_call(item.type)
        return Live(number, index, item.type, call, agent, item.type == "agent_message", False, size)
    if item.role == "assistant":
        return Live(number, index, item.type, "", True, size=size)
    texts = [text_of(opened.words(part)) for part in item.parts]
    if item.role != "user":
        context = any(text.startswith("<") for text in texts)
        return Live(number, index, item.type, "", False, False, context, size)
    if any(map(tells_summary, texts)):
        return Live(number, index, "summary", "", False, True, False, size)
    turn = begins_turn(texts, kinds_of(opened, item))
    return Live(number, index, item.type, "", False, turn, not turn, size)


def text_of(literal: bytes | None) -> str:
    """A string literal's text; "" for none."""
    found = spans.decode(literal) if literal is not None else ""
    return found if isinstance(found, str) else ""


def kinds_of(opened: Opened, item: Item) -> list[str]:
    """What newer versions call each part of a message; empty where they say nothing."""
    marks = item.members.get("internal_chat_message_metadata_passthrough")
    if marks is None or opened.view[marks.start] != "{":
        return []
    kinds = spans.find(opened.view, marks.start, "content_item_kinds")
    found = spans.decode(opened.literal(kinds)) if kinds else None
    fits = isinstance(found, list) and len(found) == len(item.parts)
    return [str(kind) for kind in found] if fits and isinstance(found, list) else []


def _words_kept(found: list[Live]) -> list[Live]:
    """A person's messages that a compaction of the old form keeps: the newest, up to a limit."""
    kept: list[Live] = []
    left = _KEPT_WORDS
    for one in reversed(found):
        if one.type == "message" and one.turn and left > 0:
            kept.append(one)
            left -= one.size
    return kept[::-1]


def _taken_back(found: list[Live], turns: int) -> list[Live]:
    """What is left where the last turns were taken back."""
    starts = [number for number, one in enumerate(found) if one.turn]
    if not turns or not starts:
        return found
    first, cut = starts[0], starts[-turns] if turns <= len(starts) else starts[0]
    while cut > first and found[cut - 1].context:
        cut -= 1
    return found[:cut]


def _answered(found: list[Live]) -> Iterator[Live]:
    """The items, each result behind the run of items that holds its call."""
    waiting: dict[str, list[int]] = {}
    for number, one in enumerate(found):
        if is_answer(one.type):
            waiting.setdefault(one.call, []).append(number)
    placed: set[int] = set()
    calls: list[str] = []
    for number, one in enumerate(found):
        if number in placed:
            continue
        if not one.agent and calls:
            answers = []
            for call in calls:
                later = next((at for at in waiting.get(call, ()) if at > number - 1 and at not in placed), None)
                if later is not None:
                    answers.append(later)
                    placed.add(later)
            yield from (found[at] for at in sorted(answers))
            calls = []
            if number in placed:
                continue
        if one.agent and is_call(one.type) and not is_served(one.type):
            calls.append(one.call)
        yield one
