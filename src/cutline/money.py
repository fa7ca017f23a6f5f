"""Prices, the arithmetic of the provider's cache, and when a cut pays.

Law: multiplication only. No clock, no environment, no network: what a price depends on (the day, the size of
the prompt) is an argument. Where no price is known the answer is None, never a guess. Prices come from
`genai-prices`, whose data are inside that package; it is imported by the one function that needs it.

A cut ends the prefix that the provider has cached: what survives behind the first deletion is written anew
once, at `w` times the input price, and what was deleted is no longer read on any later request, at `r` times.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import inf
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from decimal import Decimal

    from genai_prices.types import TieredPrices

Ttl = Literal["5m", "1h"]
"""How long Anthropic keeps a cached prefix after its last use; the client chooses it with the cache mark."""

LIFETIME: Mapping[Ttl, int] = {"5m": 300, "1h": 3600}
"""Seconds (Anthropic, "Prompt caching")."""

_MILLION = 1_000_000
# Behind every dated price, at an hour without a night discount: "the newest price" without a clock.
_NEWEST = datetime(9999, 12, 31, 12, tzinfo=UTC)


class _Factors(NamedTuple):
    """Cache prices as factors of the input price."""

    write_5m: float
    write_1h: float
    read: float


_USUAL = _Factors(1.25, 2.0, 0.1)

# First match wins. Sources: Anthropic, "Prompt caching" and the model pages; OpenAI, "Prompt caching";
# Gemini, "Context caching" (implicit).
_FACTORS: tuple[tuple[str, _Factors], ...] = (
    (r"claude-(opus|sonnet)-5[-.]5(?!\d)", _Factors(1.25, 2.0, 0.05)),
    (r"claude-(fable|mythos)-5[-.][12](?!\d)", _Factors(1.25, 2.0, 0.025)),
    (r"claude", _USUAL),
    (r"gpt-(5\.([6-9]|\d\d)|[6-9])", _Factors(1.25, 1.25, 0.1)),
    (r"gpt-5|gemini", _Factors(1.0, 1.0, 0.1)),
)


@dataclass(frozen=True, slots=True)
class Rates:
    """What one model costs, in USD per million tokens.

    Attributes:
        model: the model as it was asked for.
        input: input that is neither read from the cache nor written to it.
        output: output, thinking included.
        cache_read: input read from the cache.
        cache_write_5m, cache_write_1h: input written to the cache, by its lifetime (equal where a provider
            knows one lifetime only).
        ttl: the lifetime that this session's cache has; it decides `w`.
        source: where the prices come from, and which of them are not listed but a published factor.
    """

    model: str
    input: float
    output: float
    cache_read: float
    cache_write_5m: float
    cache_write_1h: float
    ttl: Ttl
    source: str

    @property
    def w(self) -> float:
        """Price of a cache write as a factor of the input price."""
        return _ratio(self.cache_write_1h if self.ttl == "1h" else self.cache_write_5m, self.input)

    @property
    def r(self) -> float:
        """Price of a cache read as a factor of the input price; 1 where there is no caching."""
        return _ratio(self.cache_read, self.input)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one request, each counted once (Anthropic's way: `input` excludes what the cache served).

    Attributes:
        input: input tokens outside the cache.
        cache_read: input tokens read from the cache.
        cache_write_5m, cache_write_1h: input tokens written to the cache, by its lifetime.
        output: output tokens.
    """

    input: int = 0
    cache_read: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    output: int = 0

    @classmethod
    def from_anthropic(cls, usage: Mapping[str, object]) -> Usage:
        """Read the `usage` member of an Anthropic message.

        A session file repeats it on every record of one message id and completes it on the way: the last
        counts. Writes whose lifetime is not given (older answers) were 5-minute writes. Anything that is not
        a whole number above 0 counts as 0.
        """
        split = usage.get("cache_creation")
        lifetimes: Mapping[str, object] = split if isinstance(split, Mapping) else {}
        hour = _count(lifetimes, "ephemeral_1h_input_tokens")
        written = _count(usage, "cache_creation_input_tokens")
        return cls(
            input=_count(usage, "input_tokens"),
            cache_read=_count(usage, "cache_read_input_tokens"),
            cache_write_5m=max(_count(lifetimes, "ephemeral_5m_input_tokens"), written - hour),
            cache_write_1h=hour,
            output=_count(usage, "output_tokens"),
        )

    @classmethod
    def of(cls, format: str, counters: Mapping[str, int]) -> Usage:
        """Read an answer's counters (`wire.answers.counters`) as its format means them (docs/wire.md, 6).

        OpenAI and Gemini count what the cache served, and what was written to it, among the input tokens; there a
        write has one price, told as `cache_write_5m`. Gemini counts thoughts beside the output.

        Args:
            format: of the answer, one of `wire.answers.FORMATS`.
            counters: by the provider's names.
        """
        if format == "anthropic":
            return cls.from_anthropic({**counters, "cache_creation": counters})
        if format == "converse":
            hour = _count(counters, "cacheDetails.1h")
            written = _count(counters, "cacheWriteInputTokens")
            read = _count(counters, "cacheReadInputTokens")
            plain, output = _count(counters, "inputTokens"), _count(counters, "outputTokens")
            return cls(plain, read, max(0, written - hour), hour, output)
        where = _COUNTERS[format]
        total, written, output = (sum(_count(counters, key) for key in where[name]) for name in ("in", "write", "out"))
        read = max(_count(counters, key) for key in where["read"])  # DeepSeek tells it by both names
        return cls(max(0, total - read - written), read, written, 0, output)

    @property
    def total_input(self) -> int:
        """All input tokens: the size of the prompt, and what other providers call input tokens."""
        return self.input + self.cache_read + self.cache_write_5m + self.cache_write_1h


_COUNTERS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "openai_chat": {
        "in": ("prompt_tokens", "prompt_eval_count"),  # the second is Ollama's
        "read": ("prompt_tokens_details.cached_tokens", "prompt_cache_hit_tokens"),
        "write": ("prompt_tokens_details.cache_write_tokens",),
        "out": ("completion_tokens", "eval_count"),
    },
    "openai_responses": {
        "in": ("input_tokens",),
        "read": ("input_tokens_details.cached_tokens",),
        "write": ("input_tokens_details.cache_write_tokens",),
        "out": ("output_tokens",),
    },
    "gemini": {
        "in": ("promptTokenCount", "toolUsePromptTokenCount"),
        "read": ("cachedContentTokenCount",),
        "write": (),
        "out": ("candidatesTokenCount", "thoughtsTokenCount"),
    },
}
"""Where each format counts all input, what of it was read from and written to the cache, and output."""


@dataclass(frozen=True, slots=True)
class Payback:
    """What a cut costs and saves on the input side.

    Attributes:
        prefix: P, tokens in front of the first deletion, unchanged.
        survives: S, tokens of the cut body behind it, notices included.
        deleted: D, tokens by which the body became shorter.
        w, r: price of a cache write and of a cache read, as factors of the input price.
        turns: requests, the cutting one included, after which the cut has paid; 0 where it pays at once,
            infinite where nothing became shorter.
        cost_of_cut: USD that writing S anew costs more than reading it; None where no price is known.
        saved_per_turn: USD that each request saves, the cutting one included; None where no price is known.
        saved_at_once: USD that the cutting request saves on a cold cache beyond `saved_per_turn`, because
            D need not be written again; 0 on a warm one; None where no price is known.
        cold: the cache had passed its lifetime.
    """

    prefix: int
    survives: int
    deleted: int
    w: float
    r: float
    turns: float
    cost_of_cut: float | None
    saved_per_turn: float | None
    saved_at_once: float | None
    cold: bool

    def pays_within(self, n: int) -> bool:
        """Whether the cut has paid after `n` more requests."""
        return self.turns <= n

    def net(self, n: int) -> float | None:
        """USD won (or, below 0, lost) after `n` more requests; None where no price is known."""
        if self.saved_per_turn is None or self.cost_of_cut is None or self.saved_at_once is None:
            return None
        return n * self.saved_per_turn + (self.saved_at_once - self.cost_of_cut if n > 0 else 0.0)


def rates(
    model: str | None,
    provider: str | None = None,
    ttl: Ttl = "5m",
    *,
    when: datetime | None = None,
    prompt: int = 0,
) -> Rates | None:
    """The list price of a model.

    Batch, priority and regional surcharges are not in it, nor are web searches.

    Args:
        model: as the session or the body names it; Claude Code's mark `[1m]` is understood.
        provider: who is paid, by genai-prices' ids ("anthropic", "aws" …); without it the model's maker.
        ttl: lifetime of the session's cache.
        when: the day that is priced; without it the newest price that is listed.
        prompt: tokens of the whole prompt, since some models cost more above a size.

    Returns:
        None where no price is known, and for "<synthetic>", which no model wrote. Say so to the user.
    """
    if not model:
        return None
    from genai_prices import Usage as Priced
    from genai_prices import calc_price

    try:
        found = calc_price(
            Priced(input_tokens=max(prompt, 0)),
            model.removesuffix("[1m]"),
            provider_id=provider,
            genai_request_timestamp=when or _NEWEST,
        )
    except LookupError:
        return None
    listed = found.model_price
    base, output = _price(listed.input_mtok, prompt), _price(listed.output_mtok, prompt)
    if base is None or output is None:
        return None
    read, write = _price(listed.cache_read_mtok, prompt), _price(listed.cache_write_mtok, prompt)
    hour = _price(listed.cache_write_1h_mtok, prompt)
    known = _known(found.model.id)
    factored: list[str] = []
    if read is None:
        # No price for reading, and no factor published: no caching.
        read = base * (known.read if known else 1.0)
        factored.append(f"cache read {_ratio(read, base):g}")
    if write is None:
        # No price for writing, and no factor published: no surcharge.
        write = base * (known.write_5m if known else 1.0)
        factored.append(f"cache write {_ratio(write, base):g}")
    if hour is None and known and known.write_1h != known.write_5m:
        hour = base * known.write_1h
        factored.append(f"1h cache write {_ratio(hour, base):g}")
    source = "genai-prices" if found.model.id == model else f"genai-prices, as {found.model.id}"
    if factored:
        source += f"; not listed, so counted as a factor of the input price: {', '.join(factored)}"
    return Rates(model, base, output, read, write, write if hour is None else hour, ttl, source)


def factors(model: str | None, ttl: Ttl = "5m") -> tuple[float, float]:
    """(w, r) of a model by its provider's published factors, for models without a known price.

    A name that no factor is known for gets Anthropic's usual ones, so that no cut looks free by ignorance.
    """
    known = _known(model or "") or _USUAL
    return (known.write_1h if ttl == "1h" else known.write_5m), known.read


def cost(usage: Usage, rates: Rates) -> float:
    """USD that a request cost."""
    return (
        usage.input * rates.input
        + usage.cache_read * rates.cache_read
        + usage.cache_write_5m * rates.cache_write_5m
        + usage.cache_write_1h * rates.cache_write_1h
        + usage.output * rates.output
    ) / _MILLION


def payback(
    prefix: int,
    survives: int,
    deleted: int,
    rates: Rates | None,
    *,
    warm: bool,
    factors: tuple[float, float] = (_USUAL.write_5m, _USUAL.read),
) -> Payback:
    """When a cut has paid for itself.

    The cutting request would have read P, S and D; cut, it reads P and writes S. Each request saves reading
    D. So after n requests the cut has paid when n * r * D >= (w - r) * S. On a cold cache everything would
    have been written anyway: the cut saves writing D and costs nothing. The output side is left out.

    Args:
        prefix: tokens in front of the first deletion, system prompt and tools included.
        survives: tokens of the cut body behind the first deletion, what the cut added included.
        deleted: tokens of the uncut body less those of the cut one.
        rates: what the model costs; None where no price is known.
        warm: whether the cache still holds the uncut prefix (`warm`).
        factors: (w, r) to count with where `rates` is None.
    """
    w, r = (rates.w, rates.r) if rates else factors
    once = max(w - r, 0.0) * survives if warm else 0.0
    each = r * deleted
    if deleted <= 0:
        turns = inf
    elif not once:
        turns = 0.0
    else:
        turns = once / each if each else inf
    usd = rates.input / _MILLION if rates else None
    return Payback(
        prefix,
        survives,
        deleted,
        w,
        r,
        turns,
        cost_of_cut=None if usd is None else once * usd,
        saved_per_turn=None if usd is None else each * usd,
        saved_at_once=None if usd is None else (0.0 if warm else (w - r) * deleted * usd),
        cold=not warm,
    )


def warm(idle_seconds: float, ttl: Ttl = "5m") -> bool:
    """Whether the cache still stands `idle_seconds` after the last request, each of which renews it."""
    return idle_seconds < LIFETIME[ttl]


def rhythm(requests: Sequence[int]) -> int:
    """How many more requests a session is likely to make: as many again as it has made.

    Measured on 24 recorded Claude Code sessions (3,265 requests), at the end of each human turn that another
    one followed (223 places), and on 11 sessions of Codex, pi and Gemini CLI (in brackets); means over the
    sessions of how far the rule is off, and of how often it answers "will there be n more requests?" rightly,
    n from 1 to 24:

        as many again               factor 3.6 (3.4)    81 % (90 %)
        3 x mean turn               factor 3.4 (4.0)    81 % (91 %)
        median turn x turns so far  factor 3.7 (3.9)    80 % (88 %)
        always 20                   factor 3.8 (4.6)    79 % (82 %)
        median turn                 factor 4.9 (10.5)   69 % (58 %)

    So no rule is good, and this one has nothing to tune. It is too high at half of the places, and always for
    a session that is over; long sessions are over-represented among recordings.

    Args:
        requests: requests of each human turn so far; one request is one message id of the provider.
    """
    return sum(requests)


def _count(values: Mapping[str, object], key: str) -> int:
    value = values.get(key)
    return value if type(value) is int and value > 0 else 0


def _ratio(price: float, base: float) -> float:
    # A model that costs nothing has no factors; 1 says "no caching", and every amount is 0 anyway.
    return price / base if base else 1.0


def _known(model: str) -> _Factors | None:
    name = model.lower()
    return next((found for pattern, found in _FACTORS if re.search(pattern, name)), None)


def _price(listed: Decimal | TieredPrices | None, prompt: int) -> float | None:
    from decimal import Decimal

    if listed is None or isinstance(listed, Decimal):
        return None if listed is None else float(listed)
    # The whole prompt is paid at the price of the highest tier that it passes.
    return float(next((tier.price for tier in reversed(listed.tiers) if prompt > tier.start), listed.base))
