"""Codex's compactions undone: a rollout only grows, so what stood before a compaction is still in it.

Law: the file is only read. Without its `compacted` records the client reads a rollout from its first item on. With
them goes what the client wrote for their sake: the request for the summary, whose answer stands as an agent's message
directly before, and the event that shows it. A compaction repeats a person's words; those must all stand before it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

from ..model import Session as AnySession
from ..neutral import NeutralSession
from ..reviving import Point, Undone, Window, lost, never
from ..reviving import window as listed_window
from .branch import text_of
from .history import history
from .items import Opened, is_call, is_summary
from .people import is_summary as tells_summary
from .records import Log, Record
from .session import Source

# What stands in the middle of a person's words where a compaction shortened them.
_SHORTENED = re.compile(r"…\d+ (?:tokens|chars) truncated…")

Fetch = Callable[[Record], bytes]


@dataclass(frozen=True, slots=True)
class _Found:
    """A compaction that can be undone: its record, what leaves with it, and what is known of it."""

    record: int
    gone: frozenset[int]
    summary: int
    tokens: int


def undo(session: AnySession) -> Undone:
    """Undo a session's compactions.

    Raises:
        NothingToCut: none stands in the rollout.
        InputError: what the summary replaced is not in the file.
    """
    read = cast(NeutralSession, session)
    source: Source = read.source
    log = source.log
    compacted = [number for number, record in enumerate(log.records) if record.type == "compacted"]
    if not compacted:
        raise never(session)
    made = next((number for number, record in enumerate(log.records) if _is_agents(record)), len(log.records))
    with log.reader() as fetch:
        found = [_found(log, number, fetch) for number in compacted if number > made]
        size = _window(log, fetch)
    if not found:
        first = log.records[compacted[0]]
        raise lost(session, f"line {first.line:,}", first.timestamp)
    gone = frozenset[int]().union(*(one.gone for one in found))
    records = [record for number, record in enumerate(log.records) if number not in gone]
    whole = history(replace(log, records=records)).history
    stays = next((log.records[number] for number in compacted if number < made), None)
    begins = [min(records[record].offset for record, _ in places) for places in whole.places]
    points = [
        Point(
            log.records[one.record].line,
            sum(begin < log.records[one.record].offset for begin in begins),
            one.summary,
            tokens=one.tokens,
        )
        for one in found
    ]
    return Undone(
        replace(read, source=replace(source, log=replace(log, records=records)), history=whole),
        points,
        lambda number: log.records[number].offset,
        lambda number: records[number].offset,
        Window(size, "as the rollout notes it") if size else listed_window(whole.model, read.history.requests),
        frozenset(log.records[number].offset for number in gone),
        frozenset(log.records[one.record].offset for one in found),
        _same,
        f"line {stays.line:,}" if stays else "",
    )


def _is_agents(record: Record) -> bool:
    return record.type == "response_item" and (record.role == "assistant" or is_call(record.kind))


def _found(log: Log, number: int, fetch: Fetch) -> _Found:
    record = log.records[number]
    opened = Opened(record, fetch(record))
    told = opened.member("payload", "message")
    words = text_of(opened.literal(told)) if told is not None and opened.view[told.start] == '"' else ""
    parts = [part for item in opened.items if not is_summary(item.type) for part in item.parts]
    literals = [literal for part in parts if (literal := opened.words(part)) and tells_summary(text_of(literal))]
    sealed = [item.end - item.start for item in opened.items if is_summary(item.type)]
    summary = literals[-1] if literals else opened.literal(told) if words else b""
    size = len(summary) - 2 if summary else sum(sealed)
    first = _asked(log, number, words, fetch)
    return _Found(
        number, frozenset((number, *first, *_shown(log, number))), size, _tokens(log, min((number, *first)), fetch)
    )


def _asked(log: Log, number: int, words: str, fetch: Fetch) -> list[int]:
    """The answer to the request for a summary: the agent's message directly before, and its reasoning."""
    found: list[int] = []
    for before in range(number - 1, -1, -1):
        record = log.records[before]
        if record.type == "event_msg" or record.type == "token_usage_record":
            if record.kind in ("task_started", "turn_started"):
                break
        elif not found and record.type == "response_item" and record.role == "assistant":
            opened = Opened(record, fetch(record))
            said = "".join(text_of(opened.words(part)) for item in opened.items for part in item.parts).strip()
            if not said or not words.rstrip().endswith(said):
                break
            found.append(before)
        elif found and record.type == "response_item" and record.kind == "reasoning":
            found.append(before)
        else:
            break
    return found


def _shown(log: Log, number: int) -> list[int]:
    """The event behind a compaction by which the terminal shows it."""
    for behind in range(number + 1, len(log.records)):
        record = log.records[behind]
        if record.type in ("response_item", "compacted"):
            break
        if record.type == "event_msg" and (record.kind == "context_compacted" or record.item == "ContextCompaction"):
            return [behind]
    return []


def _tokens(log: Log, number: int, fetch: Fetch) -> int:
    """Tokens of the context that was compacted: the last count before it."""
    for record in reversed(log.records[:number]):
        if record.type == "event_msg" and record.kind == "token_count":
            told = _info(fetch(record)).get("last_token_usage")
            counts = [told.get(key) for key in ("input_tokens", "output_tokens")] if isinstance(told, dict) else []
            total = sum(count for count in counts if type(count) is int)
            if total > 0:
                return total
    return 0


def _window(log: Log, fetch: Fetch) -> int:
    """The model's context as the client last noted it; 0 where it did not."""
    for record in reversed(log.records):
        if record.type == "event_msg" and record.kind == "token_count":
            size = _info(fetch(record)).get("model_context_window")
            if type(size) is int and size > 0:
                return size
    return 0


def _info(raw: bytes) -> dict[str, Any]:
    try:
        found = json.loads(raw)["payload"]["info"]
    except (ValueError, RecursionError, KeyError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}


def _same(repeated: str, said: str) -> bool:
    """Whether a compaction's repetition of a person's words is these, shortened perhaps."""
    if repeated == said:
        return True
    cut = _SHORTENED.search(repeated)
    return cut is not None and said.startswith(repeated[: cut.start()]) and said.endswith(repeated[cut.end() :])
