"""What was paid: each request once, with the tokens that the provider counted, at the list price of its day.

Law: pure. Where no price is known the tokens count and the money is said to be incomplete. Copies and branches of a
session repeat its answers: one message id of the provider is one request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from .. import money
from ..money import Usage
from ..sessions.model import Session

By = Literal["day", "project", "client", "model"]
_TIER = 8_000  # tokens; see `timeline`


@dataclass(frozen=True, slots=True)
class Paid:
    """One request.

    Attributes:
        at: when; None where the client records no time.
        client, project, model: whose, where, of which model; "" where not known.
        session: its id.
        usage: tokens.
        usd: by list prices; None where none is known.
    """

    at: datetime | None
    client: str
    project: str
    model: str
    session: str
    usage: Usage
    usd: float | None


@dataclass(slots=True)
class Sum:
    """Requests taken together; `unpriced` of them have no known price."""

    name: str
    requests: int = 0
    unpriced: int = 0
    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    usd: float = 0.0
    sessions: set[str] = field(default_factory=set)

    def add(self, paid: Paid) -> None:
        """Count one request."""
        usage = paid.usage
        self.requests += 1
        self.unpriced += paid.usd is None
        self.input += usage.input
        self.cache_read += usage.cache_read
        self.cache_write += usage.cache_write_5m + usage.cache_write_1h
        self.output += usage.output
        self.usd += paid.usd or 0.0
        self.sessions.add(paid.session)


class Ledger:
    """Requests of many sessions, each once.

    Args:
        since: requests before it don't count; None for all.
    """

    def __init__(self, since: datetime | None = None) -> None:
        self._since = since
        self._seen: set[str] = set()
        self._prices: dict[tuple[str, str, int], money.Rates | None] = {}
        self.paid: list[Paid] = []

    def add_session(self, session: Session) -> None:
        """Count a session's requests."""
        for made in session.history.requests:
            if made.message_id and made.message_id in self._seen:
                continue
            self._seen.add(made.message_id)
            at = time_of(made.timestamp) or time_of(session.last)
            self.add(at, session.client, session.cwd, made.model, session.id, made.usage)

    def add(self, at: datetime | None, client: str, project: str, model: str, session: str, usage: Usage) -> None:
        """Count one request."""
        if self._since and at and at < self._since:
            return
        day = f"{at:%Y-%m-%d}" if at else ""
        key = (model, day, (usage.total_input - 1) // _TIER)
        if key not in self._prices:
            self._prices[key] = money.rates(model, when=at, prompt=usage.total_input)
        rates = self._prices[key]
        usd = None if rates is None else money.cost(usage, rates)
        self.paid.append(Paid(at, client, project, model, session, usage, usd))


def summed(paid: Iterable[Paid], by: By) -> list[Sum]:
    """Requests by day (the user's own), project, client or model: days in order, the rest by what they cost."""
    found: dict[str, Sum] = {}
    for one in paid:
        name = (f"{one.at.astimezone():%Y-%m-%d}" if one.at else "") if by == "day" else getattr(one, by)
        found.setdefault(name, Sum(name or "–")).add(one)
    if by == "day":
        return [found[name] for name in sorted(found)]
    return sorted(found.values(), key=lambda one: (-one.usd, -one.requests, one.name))


def total(paid: Sequence[Paid]) -> Sum:
    """All of them."""
    whole = Sum("all")
    for one in paid:
        whole.add(one)
    return whole


def usage_of(counters: Mapping[str, int], model: str) -> Usage:
    """A recorded answer's counters, whose names tell their format."""
    names = " ".join(counters)
    if "TokenCount" in names:
        return Usage.of("gemini", counters)
    if "inputTokens" in names:
        return Usage.of("converse", counters)
    if "prompt_" in names or "completion_tokens" in names:
        return Usage.of("openai_chat", counters)
    if "tokens_details" in names or ("cache_" not in names and "claude" not in model):
        return Usage.of("openai_responses", counters)
    return Usage.of("anthropic", counters)


def time_of(stamp: str) -> datetime | None:
    """A client's timestamp in the user's own time zone; None where it is none."""
    try:
        return datetime.fromisoformat(stamp).astimezone()
    except ValueError:
        return None
