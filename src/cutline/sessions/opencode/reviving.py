"""opencode's compactions undone: what a summary hides is still in the database, in the files, in an export.

Law: the session is only read. A compaction is two messages, one that asks for a summary and the summary; without them
the client sends what stands before. Where it compacted because a request was too large, it then wrote the person's
last message a second time, and that repetition goes as well.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

from ...errors import Unreadable
from ..model import Session as AnySession
from ..neutral import NeutralSession
from ..reviving import Point, Undone, lost, never, window
from .history import history, stamp
from .literals import Opened, number
from .live import compaction, standing, sums_up
from .records import Log, Message


@dataclass(frozen=True, slots=True)
class _Found:
    """A compaction: the message that asks for it, its summary, all that leaves, what of that is repeated; indices."""

    asker: int
    summary: int
    gone: frozenset[int]
    again: list[int]
    auto: bool


def undo(session: AnySession) -> Undone:
    """Undo a session's compactions; one that a person took back is none.

    Raises:
        NothingToCut: none stands on what is sent.
        InputError: what the summary replaced is not there.
    """
    read = cast(NeutralSession, session)
    log: Log = read.source
    order, _ = standing(log)
    found = [one for at in order if (one := _found(log, order, at)) is not None]
    if not found:
        raise never(session)
    hidden = [one for one in found if any(_answers(log, at) for at in range(one.asker))]
    if not hidden:
        raise lost(session, *_where(log, found[0]), "look for the session that it was forked from")
    gone = frozenset[int]().union(*(one.gone for one in hidden))
    kept = [at for at in range(len(log.messages)) if at not in gone]
    undone = replace(log, messages=[log.messages[at] for at in kept], names={})
    whole = history(undone)
    points = [
        Point(
            0,
            sum(kept[places[0][0]] < one.asker for places in whole.places),
            _size(log, log.messages[one.summary]),
            "auto" if one.auto else "manual",
            _tokens(log, one.asker),
            id=_where(log, one)[0],
        )
        for one in hidden
    ]
    stays = "" if hidden[0] is found[0] else _where(log, found[0])[0]
    return Undone(
        replace(read, source=undone, history=whole),
        points,
        # Ids are blacked out in published exports, the messages themselves are shared.
        lambda at: id(log.messages[at]),
        lambda at: id(undone.messages[at]),
        window(whole.model, read.history.requests),
        frozenset(id(log.messages[at]) for at in gone),
        frozenset(id(log.messages[at]) for one in hidden for at in one.again),
        stays=stays,
    )


def _found(log: Log, order: list[int], at: int) -> _Found | None:
    """The compaction that a message asks for, if it came to a summary."""
    asks = compaction(log, at) if log.messages[at].role == "user" else None
    if asks is None:
        return None
    asker = log.messages[at].id
    answers = [
        one for one in order if one > at and log.messages[one].parent == asker and _is_summary(log.messages[one])
    ]
    summary = next((one for one in answers if sums_up(Opened(log.messages[one].raw))), None)
    if summary is None:
        return None
    part = log.open(log.messages[at].parts[asks.part].raw)
    again = _again(log, order, at, summary) if part.literal("overflow") == b"true" else []
    return _Found(at, summary, frozenset((at, *answers, *again)), again, part.literal("auto") == b"true")


def _again(log: Log, order: list[int], asker: int, summary: int) -> list[int]:
    """The repetition of the person's last message, which comes next behind the summary."""
    people = [at for at in order if log.messages[at].role == "user" and compaction(log, at) is None]
    before = next((at for at in reversed(people) if at < asker), None)
    behind = next((at for at in people if at > summary), None)
    if before is None or behind is None or not _typed(log, before):
        return []
    # An image of it became a word that stands for it, behind the person's own.
    said = _typed(log, behind)
    return [behind] if said[: len(_typed(log, before))] == _typed(log, before) else []


def _typed(log: Log, at: int) -> list[bytes]:
    """The texts of a message, as literals."""
    opened = (log.open(part.raw) for part in log.messages[at].parts)
    return [part.literal("text") for part in opened if part.word("type") == "text"]


def _answers(log: Log, at: int) -> bool:
    """Whether a message is the agent's, and no summary."""
    return log.messages[at].role == "assistant" and not _is_summary(log.messages[at])


def _is_summary(one: Message) -> bool:
    """Whether an answer is a summary, one that did not come to its end included."""
    return Opened(one.raw).literal("summary") == b"true"


def _where(log: Log, one: _Found) -> tuple[str, str]:
    """What a compaction is found by, and its time."""
    asker = log.messages[one.asker]
    return f"message {asker.id}", stamp(asker.created)


def _size(log: Log, summary: Message) -> int:
    opened = (log.open(part.raw) for part in summary.parts)
    return sum(max(0, len(part.literal("text")) - 2) for part in opened if part.word("type") == "text")


def _tokens(log: Log, asker: int) -> int:
    """Tokens of the last answer before a compaction, by which the client took the context for full."""
    for one in reversed(log.messages[:asker]):
        try:
            info = Opened(one.raw)
        except Unreadable:
            continue
        counts = ("input",), ("output",), ("reasoning",), ("cache", "read"), ("cache", "write")
        total = number(info.value("tokens", "total")) or sum(number(info.value("tokens", *key)) for key in counts)
        if one.role == "assistant" and total:
            return total
    return 0
