"""When to cut a session and when not: the arithmetic now, at earlier human turns, and what cutting would have done.

Law: pure; the decision is `money.payback`'s against `money.rhythm`, as everywhere. What a cut loses is counted, not
weighed: whether it is still needed only the reader knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from .. import money
from ..errors import InputError, NothingToCut
from ..sessions.cutting import Prospect, prospect
from . import whatif
from .replay import Replay, replay
from .spending import time_of
from .timeline import Timeline

_PLACES = 8


@dataclass(frozen=True, slots=True)
class Choice:
    """A cut at one place.

    Attributes:
        message: before which it is made.
        what: the place in words.
        survives, deleted: S and D, tokens.
        turns: requests after which it has paid on a warm cache; infinite for never.
        calls, holes: calls that leave, and how many of them no words carry.
    """

    message: int
    what: str
    survives: int
    deleted: int
    turns: float
    calls: int
    holes: int


@dataclass(frozen=True, slots=True)
class Advice:
    """What is said of a session.

    Attributes:
        now: the cut that `cutline cut` would make; None where there is none.
        why: then, why there is none.
        warm_turns: requests after which it has paid on a warm cache.
        cold_from: when the cache is cold, if nothing is sent before; None where no time is known.
        choices: cuts at the last human turns and checkpoints.
        replay: what cutting would have done to this session.
        others: and to other sessions; empty where none were given.
        model: the session's model.
    """

    now: Prospect | None
    why: str
    warm_turns: float
    cold_from: datetime | None
    choices: Sequence[Choice]
    replay: Replay
    others: Sequence[Replay]
    model: str


def advise(timeline: Timeline, others: Sequence[Replay] = ()) -> Advice:
    """Work out what is said of a session.

    Args:
        timeline: the session.
        others: what became of other sessions of the same person when they were gone through again.
    """
    session = timeline.session
    now: Prospect | None = None
    why = ""
    try:
        now = prospect(session)
    except (NothingToCut, InputError) as error:
        why = str(error).partition(": ")[2] or str(error)
    places = [(at, "human turn") for at in session.history.human if at]
    places += [(at, what) for at, what in timeline.seams if what == "checkpoint"]
    places = sorted(places)
    if len(places) > _PLACES:  # spread over the session, the last one among them
        places = [places[(number + 1) * len(places) // _PLACES - 1] for number in range(_PLACES)]
    choices = [found for at, what in places if (found := _choice(timeline, at, what))]
    last = session.history.requests[-1] if session.history.requests else None
    then = time_of(last.timestamp) if last else None
    ttl: money.Ttl = "1h" if last and last.usage.cache_write_1h else "5m"
    return Advice(
        now,
        why,
        _warm(now.payback.survives, now.payback.deleted, now.payback.w, now.payback.r) if now else float("inf"),
        then + timedelta(seconds=money.LIFETIME[ttl]) if then else None,
        choices,
        replay(timeline),
        others,
        session.history.model,
    )


def _choice(timeline: Timeline, at: int, what: str) -> Choice | None:
    told = whatif.cut_at(timeline, at)
    if "reason" in told:
        return None
    paid, lost = told["money"], told["lost"]
    turns = _warm(paid["S"], paid["D"], paid["w"], paid["r"])
    return Choice(told["seam"], what, paid["S"], paid["D"], turns, lost["calls"], lost["holes"])


def _warm(survives: int, deleted: int, w: float, r: float) -> float:
    return money.payback(0, survives, deleted, None, warm=True, factors=(w, r)).turns
