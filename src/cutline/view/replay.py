"""Who filled what was sent, and what cutting would have saved: a session's own requests, gone through again.

Law: pure. The provider's counts are the base and are shared out; a cut is decided with what was known at its moment
(`money.payback` and `money.rhythm`, as `cutline cut` decides), and paid by the requests that really followed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from .. import money
from ..cut import cut_session
from ..repeats import asked
from ..sessions.model import Request
from .spending import time_of
from .timeline import PARTS, Timeline

CLIENT = "client"
"""What the session file does not hold: the client's system prompt and tool schemas."""


@dataclass(frozen=True, slots=True)
class Cutting:
    """What a way of cutting does to a session.

    Attributes:
        cuts: how many were made.
        tokens: input tokens that the later requests would not have sent.
        usd: what that would have saved, less what the cuts cost; None where no price is known.
        again, behind: of the calls behind the first cut, how many ask for what had left, and how many there are.
    """

    cuts: int
    tokens: int
    usd: float | None
    again: int
    behind: int


@dataclass(frozen=True, slots=True)
class Replay:
    """A session's requests.

    Attributes:
        requests: how many have a count.
        sent: input tokens over all of them, by what filled them (`timeline.PARTS`, and `CLIENT`).
        usd: what they cost on the input side; None where no price is known.
        paying: cutting at each human turn where the arithmetic of that moment says that it pays.
        every: cutting at each human turn, whether it pays or not.
    """

    requests: int
    sent: dict[str, int]
    usd: float | None
    paying: Cutting
    every: Cutting


def added(ways: Sequence[Cutting]) -> Cutting:
    """What a way of cutting does to several sessions together; money only where all have a price."""
    usd = [one.usd for one in ways]
    cuts, tokens, again, behind = (
        sum(getattr(one, name) for one in ways) for name in ("cuts", "tokens", "again", "behind")
    )
    return Cutting(cuts, tokens, None if None in usd else sum(one or 0.0 for one in usd), again, behind)


@dataclass(slots=True)
class _Sums:
    """Tokens up to each message, by part, of what a cut takes and of all."""

    by_part: dict[str, list[int]]
    gone: list[int]
    whole: list[int]
    first: list[int] = field(default_factory=list)


def replay(timeline: Timeline, counts: Callable[[Request], bool] = lambda made: True) -> Replay:
    """Go through a session's requests again.

    Args:
        timeline: the session.
        counts: which requests are counted; cuts are decided by all of them. Asked once for each, in order.
    """
    history = timeline.session.history
    counted = [made for made in history.requests if made.usage.total_input > 0]
    meant = [counts(made) for made in counted]
    plan = cut_session(history.body, trace="none", at=len(timeline.firsts)).plan
    drop = {timeline.index(*key) for key in plan.drop} if plan else set()
    sums = _sums(timeline, drop)
    sent = dict.fromkeys((*PARTS, CLIENT), 0)
    seams = [message for message, what in timeline.seams if what == "checkpoint"]
    for made in (made for made, wanted in zip(counted, meant, strict=True) if wanted):
        for part, tokens in _shares(sums, made, seams).items():
            sent[part] += tokens
    prices = _Prices()
    usd = prices.whole([made for made, wanted in zip(counted, meant, strict=True) if wanted])
    return Replay(
        sum(meant),
        sent,
        usd,
        _cutting(timeline, counted, meant, sums, drop, prices, always=False),
        _cutting(timeline, counted, meant, sums, drop, prices, always=True),
    )


def _sums(timeline: Timeline, drop: set[int]) -> _Sums:
    total = len(timeline.firsts)
    by_part = {part: [0] * total for part in PARTS}
    gone = [0] * total
    for index, entry in enumerate(timeline.entries):
        by_part[entry.part][entry.message] += entry.tokens
        if index in drop:
            gone[entry.message] += entry.tokens
    upto = {part: [0, *accumulate(row)] for part, row in by_part.items()}
    whole = [sum(row[at] for row in upto.values()) for at in range(total + 1)]
    firsts = [timeline.entries[index].message for index in sorted(drop)]
    return _Sums(upto, [0, *accumulate(gone)], whole, firsts)


def _shares(sums: _Sums, made: Request, seams: Sequence[int]) -> dict[str, int]:
    """What a request's input tokens were, by part; a request that went out cut has less of the world's."""
    at, total = made.message, made.usage.total_input
    seam = max((place for place in seams if place < at), default=0)
    shares = {part: row[at] for part, row in sums.by_part.items()}
    left = sums.gone[seam]
    if left and abs(sums.whole[at] - left - total) < abs(sums.whole[at] - total) and sums.whole[at] > total:
        out = {part: sums.by_part[part][seam] for part in ("call", "result", "thinking")}
        held = sum(out.values()) or 1
        for part, tokens in out.items():
            shares[part] -= round(min(1.0, left / held) * tokens)
    known = sum(shares.values())
    if known > total:
        shares = {part: tokens * total // known for part, tokens in shares.items()}
        known = sum(shares.values())
    return {**shares, CLIENT: total - known}


class _Prices:
    """The list prices of a session's requests."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, int], money.Rates | None] = {}

    def of(self, made: Request) -> money.Rates | None:
        key = (made.model, (made.usage.total_input - 1) // 8_000)
        if key not in self._held:
            ttl: money.Ttl = "1h" if made.usage.cache_write_1h else "5m"
            self._held[key] = money.rates(made.model, ttl=ttl, prompt=made.usage.total_input)
        return self._held[key]

    def whole(self, counted: Sequence[Request]) -> float | None:
        """What requests cost without their output."""
        total = 0.0
        for made in counted:
            rates = self.of(made)
            if rates is None:
                return None
            total += money.cost(made.usage, rates) - made.usage.output * rates.output / 1e6
        return total


def _cutting(
    timeline: Timeline,
    counted: Sequence[Request],
    meant: Sequence[bool],
    sums: _Sums,
    drop: set[int],
    prices: _Prices,
    *,
    always: bool,
) -> Cutting:
    turns = [at for at in timeline.session.history.human if at]
    removed = since = cuts = tokens = 0
    usd: float | None = 0.0
    for number, made in enumerate(counted):
        rates = prices.of(made)
        place = max((at for at in turns if at < made.message), default=0)
        moved = 0
        if place > since and sums.gone[place] > sums.gone[since]:
            first = next(at for at in sums.first if at >= since)
            deleted = sums.gone[place] - sums.gone[since]
            survives = max(0, sums.whole[made.message] - sums.whole[first] - deleted)
            paid = money.payback(0, survives, deleted, rates, warm=_warm(counted, number), factors=_factors(made))
            if always or paid.pays_within(money.rhythm([number])):
                cuts, since, removed = cuts + meant[number], place, removed + deleted
                moved = 0 if paid.cold else survives
        if not meant[number]:
            continue
        out = min(removed, made.usage.total_input)
        tokens += out
        if rates is None:
            usd = None
        elif usd is not None:
            # What leaves had been read from the cache as far as it was; the rest had been written.
            read = min(out, made.usage.cache_read)
            usd += (read * rates.cache_read + (out - read) * rates.input * rates.w) / 1e6
            usd -= min(moved, made.usage.cache_read - read) * (rates.input * rates.w - rates.cache_read) / 1e6
    again, behind = _again(timeline, since, drop)
    return Cutting(cuts, tokens, usd, again, behind)


def _warm(counted: Sequence[Request], number: int) -> bool:
    """Whether the cache still stood when a request was made; a client without times is taken to be quick."""
    if not number:
        return True
    before, now = time_of(counted[number - 1].timestamp), time_of(counted[number].timestamp)
    ttl: money.Ttl = "1h" if counted[number - 1].usage.cache_write_1h else "5m"
    return before is None or now is None or money.warm((now - before).total_seconds(), ttl)


def _factors(made: Request) -> tuple[float, float]:
    return money.factors(made.model, "1h" if made.usage.cache_write_1h else "5m")


def _again(timeline: Timeline, last: int, drop: set[int]) -> tuple[int, int]:
    """Calls that ask for what an earlier human turn's call, which would have left, had brought already."""
    turns = [at for at in timeline.session.history.human if 0 < at <= last]
    if not turns:
        return 0, 0
    known: dict[tuple[str, object, bytes], int] = {}
    again = behind = 0
    for found in timeline.calls:
        one = asked(found.call.arguments)
        key = (found.call.name, one.path, one.rest)
        turn = sum(at <= found.message for at in turns)
        if turn:
            behind += 1
            again += known.get(key, turn) < turn
        if timeline.index(found.message, found.block) in drop:
            known[key] = turn
    return again, behind
