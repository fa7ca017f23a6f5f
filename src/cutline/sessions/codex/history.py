"""The history of a rollout in the one form that is cut, built by copying raw literals out of the file.

Law: no words are decoded and encoded again; each block stands in the body as the bytes that it is in the file, and
`places` says where: index of the record, and of the block among those of the record (`items`).
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ...errors import InputError
from ...money import Usage
from ..model import Origin, Request
from ..neutral import Builder, NeutralHistory
from . import branch
from .branch import SUMMARY, Live, kinds_of, text_of
from .items import Item, Opened, call_id, call_of, is_answer, is_call, is_served, is_summary, served
from .people import failed, request_of, typed
from .records import Log, Record


@dataclass(frozen=True, slots=True)
class Read:
    """A history, and what else was learnt on the way.

    Attributes:
        history: the live history.
        first: the first words that a person typed; "" where there are none.
    """

    history: NeutralHistory
    first: str


def history(log: Log, given: int = 0) -> Read:
    """Rebuild what the client would send of a rollout.

    Args:
        log: the rollout.
        given: the first of the numbers that calls without an id get.

    Raises:
        InputError: the file holds no conversation, or became shorter while it was read.
    """
    with log.reader() as fetch:
        found = branch.live(log, fetch)
        build = _Build(log, fetch, given=given)
        build.run(found.items)
    if not build.out.places:
        raise InputError(f"{log.path}: no conversation in {len(log.records):,} records; give another session")
    build.out.compacted = found.compacted
    build.requests()
    return Read(build.out.done(), build.first)


@dataclass(slots=True)
class _Build:
    """The body while it grows."""

    log: Log
    fetch: Callable[[Record], bytes]
    out: Builder = field(default_factory=Builder)
    first: str = ""
    answers: list[tuple[int, int]] = field(default_factory=list)  # record and message of what the agent made
    served: list[tuple[str, bytes, tuple[int, int]]] = field(default_factory=list)
    given: int = 0
    opened: tuple[int, Opened] | None = None

    def run(self, items: list[Live]) -> None:
        models = [record.model for record in self.log.records if record.model]
        self.out.model = models[-1] if models else ""
        for one in items:
            if not one.agent:
                self.settle()
            record = self.log.records[one.record]
            if self.opened is None or self.opened[0] != one.record:
                self.opened = one.record, Opened(record, self.fetch(record))
            opened = self.opened[1]
            if one.item == SUMMARY:
                told = opened.member("payload", "message")
                if told is not None and opened.view[told.start] == '"':
                    self.out.text("summary", opened.literal(told), (one.record, 0))
                continue
            if one.item >= len(opened.items):
                continue
            self.out.part()
            self.item(one, opened, opened.items[one.item])
            if one.agent and self.out.places:
                self.answers.append((one.record, len(self.out.places) - 1))
        self.settle()

    def settle(self) -> None:
        """What the provider's own calls returned stands behind the run that holds them."""
        for id_, content, place in self.served:
            self.out.result(id_, content, place)
        self.served = []

    def item(self, one: Live, opened: Opened, item: Item) -> None:
        place = (one.record, item.first)
        raw = opened.raw[item.start : item.end]
        if item.type == "message":
            self.message(one, opened, item)
        elif item.type == "reasoning":
            self.out.thinking(raw, place)
        elif is_call(item.type):
            id_ = call_id(opened, item) or self.give()
            name, arguments = call_of(opened, item)
            self.out.call(id_, name, arguments, place)
            if is_served(item.type):
                self.served.append((id_, served(opened, item), place))
        elif is_answer(item.type):
            content = opened.answer(item)
            error = content[:1] == b'"' and failed(text_of(content))
            self.out.result(call_id(opened, item) or self.give(), content, place, error=error)
        elif is_summary(item.type):
            self.out.compaction(raw, place)
        else:
            self.out.control(raw, place)

    def message(self, one: Live, opened: Opened, item: Item) -> None:
        """A message, part by part: a person's words, the agent's, or the client's."""
        if not item.parts:
            self.out.control(opened.raw[item.start : item.end], (one.record, item.first))
            return
        kinds = kinds_of(opened, item) or [""] * len(item.parts)
        parts = list(zip(item.parts, kinds, strict=True))
        origin: Origin = "agent" if item.role == "assistant" else "harness"
        if one.type == "summary":
            origin = "summary"
        elif item.role == "user" and any(_typed(opened, part, kind) for part, kind in parts):
            origin = "human"
        for index, (part, kind) in enumerate(parts):
            place = (one.record, item.first + index)
            literal, raw = opened.words(part), opened.raw[part[0] : part[1]]
            if origin == "human" and opened.is_file(part):
                self.out.image(raw, place)
            elif literal is None or origin == "harness" or (origin == "human" and not typed(text_of(literal), kind)):
                self.out.control(raw, place, origin)
            else:
                self.out.text(origin, literal, place)
                if origin == "human" and not self.first:
                    self.first = request_of(text_of(literal)).strip()

    def give(self) -> str:
        """An id for what has none: its number among those."""
        self.given += 1
        return str(self.given - 1)

    def requests(self) -> None:
        """What the provider counted for each answer: the first count behind it that is a new one."""
        answers = sorted(self.answers)
        model, told, seen, response = "", -1, "", ""
        with self.log.reader() as fetch:
            for number, record in enumerate(self.log.records):
                if record.model:
                    model = record.model
                if record.type == "token_usage_record":
                    response = str(_payload(fetch(record)).get("response_id") or "")
                if record.kind != "token_count" or record.type != "event_msg":
                    continue
                info = _payload(fetch(record)).get("info")
                total = json.dumps(info.get("total_token_usage")) if isinstance(info, dict) else ""
                usage = info.get("last_token_usage") if isinstance(info, dict) else None
                at = bisect_left(answers, (number, 0)) - 1
                if at < 0 or not isinstance(usage, dict) or total == seen or answers[at][1] == told:
                    continue
                seen, told = total, answers[at][1]
                made = Request(told, response, model or self.out.model, record.timestamp, _usage(usage))
                self.out.requests.append(made)
                response = ""


def _typed(opened: Opened, part: tuple[int, int], kind: str) -> bool:
    """Whether a person typed or attached a part of a message."""
    literal = opened.words(part)
    return opened.is_file(part) if literal is None else typed(text_of(literal), kind)


def _payload(raw: bytes) -> dict[str, Any]:
    try:
        found = json.loads(raw).get("payload")
    except (ValueError, RecursionError, AttributeError):
        return {}
    return found if isinstance(found, dict) else {}


def _usage(told: dict[str, Any]) -> Usage:
    """Each token once: the client's `input_tokens` hold what the cache served and what was written to it."""

    def count(key: str) -> int:
        value = told.get(key)
        return value if type(value) is int and value > 0 else 0

    read, written = count("cached_input_tokens"), count("cache_write_input_tokens")
    fresh = max(0, count("input_tokens") - read - written)
    return Usage(input=fresh, cache_read=read, cache_write_5m=written, output=count("output_tokens"))
