"""Prices, cache arithmetic and payback, against figures worked out by hand from the price lists."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from math import inf
from pathlib import Path

import pytest

from cutline import money
from cutline.money import Usage

SESSIONS = Path(__file__).parents[2] / "shared" / "data" / "sessions" / "claude-code"
OPUS = "claude-opus-5"  # 5 in, 25 out, 0.50 read, 6.25 write, 10 one-hour write


def priced(model: str, ttl: money.Ttl = "5m", provider: str | None = None, prompt: int = 0) -> money.Rates:
    found = money.rates(model, provider, ttl, prompt=prompt)
    assert found is not None, f"no price known for {model}"
    return found


# Prices


@pytest.mark.parametrize(
    ("model", "input", "output", "read", "write", "hour"),
    [
        ("claude-opus-5", 5, 25, 0.5, 6.25, 10),
        ("claude-opus-4-7", 5, 25, 0.5, 6.25, 10),
        ("claude-opus-4-6", 5, 25, 0.5, 6.25, 10),
        ("claude-opus-4-5-20251101", 5, 25, 0.5, 6.25, 10),
        ("claude-opus-4-20250514", 15, 75, 1.5, 18.75, 30),
        ("claude-sonnet-5", 2, 10, 0.2, 2.5, 4),
        ("claude-sonnet-5[1m]", 2, 10, 0.2, 2.5, 4),
        ("claude-sonnet-4-5-20250929", 3, 15, 0.3, 3.75, 6),
        ("claude-haiku-4-5-20251001", 1, 5, 0.1, 1.25, 2),
        ("claude-fable-5", 10, 50, 1, 12.5, 20),
        ("claude-fable-5-1", 10, 50, 0.25, 12.5, 20),
        ("claude-opus-5-5", 4, 20, 0.2, 5, 8),
    ],
)
def test_models_as_claude_code_names_them_have_their_list_price(
    model: str, input: float, output: float, read: float, write: float, hour: float
) -> None:
    found = priced(model)
    listed = (found.input, found.output, found.cache_read, found.cache_write_5m, found.cache_write_1h)
    assert listed == (input, output, read, write, hour)
    assert found.model == model
    assert found.source.startswith("genai-prices")
    assert "factor" not in found.source


@pytest.mark.parametrize(
    "model", [None, "", "<synthetic>", "sonnet", "claude-opus-99", "claude-mythos-5", "some-model-of-mine"]
)
def test_a_model_without_a_known_price_has_none(model: str | None) -> None:
    assert money.rates(model) is None


def test_an_unknown_provider_has_no_prices() -> None:
    assert money.rates(OPUS, "nobody-in-particular") is None


def test_the_source_says_which_model_the_price_is_of() -> None:
    assert priced("claude-opus-5").source == "genai-prices"
    assert priced("claude-opus-4-5-20251101").source == "genai-prices, as claude-opus-4-5"


def test_above_a_size_of_prompt_some_models_cost_more() -> None:
    assert [priced("claude-sonnet-4-5", prompt=n).input for n in (0, 200_000, 200_001)] == [3, 3, 6]
    above = priced("claude-sonnet-4-5", prompt=300_000)
    assert (above.output, above.cache_read, above.cache_write_5m) == (22.5, 0.6, 7.5)
    assert (above.w, above.r) == pytest.approx((1.25, 0.1))
    three = [priced("qwen/qwen3-coder-flash", provider="openrouter", prompt=n).input for n in (1, 32_001, 128_001)]
    assert three[0] < three[1] < three[2]


def test_prices_of_an_earlier_day_are_that_days() -> None:
    # o3 became cheaper on 2025-06-10.
    before = money.rates("o3", when=datetime(2025, 6, 1, tzinfo=UTC))
    assert before is not None
    assert (before.input, priced("o3").input) == (10, 2)


@pytest.mark.parametrize(
    ("model", "ttl", "w", "r"),
    [
        ("claude-opus-5", "5m", 1.25, 0.1),
        ("claude-opus-5", "1h", 2, 0.1),
        ("claude-sonnet-5-5", "5m", 1.25, 0.05),
        ("claude-opus-5-5", "1h", 2, 0.05),
        ("claude-fable-5", "5m", 1.25, 0.1),
        ("claude-fable-5-2", "1h", 2, 0.025),
        ("gpt-5.2", "5m", 1, 0.1),
        ("gpt-5.6", "5m", 1.25, 0.1),
        ("gpt-4o", "1h", 1, 0.5),
        ("gemini-2.5-pro", "5m", 1, 0.1),
        ("gpt-4", "5m", 1, 1),
    ],
)
def test_the_factors_of_the_listed_prices_are_the_published_ones(
    model: str, ttl: money.Ttl, w: float, r: float
) -> None:
    found = priced(model, ttl)
    assert (found.w, found.r) == pytest.approx((w, r))


@pytest.mark.parametrize(
    ("model", "ttl", "expected"),
    [
        ("claude-mythos-5", "5m", (1.25, 0.1)),
        ("claude-mythos-5-1", "5m", (1.25, 0.025)),
        ("claude-fable-5-20260301", "5m", (1.25, 0.1)),
        ("us.anthropic.claude-opus-5-5-v1:0", "1h", (2, 0.05)),
        ("claude-sonnet-5-20260501", "1h", (2, 0.1)),
        ("gpt-5.5", "1h", (1, 0.1)),
        ("gpt-5.10", "5m", (1.25, 0.1)),
        ("gemini-4-argon", "5m", (1, 0.1)),
        ("something-else", "5m", (1.25, 0.1)),
        (None, "1h", (2, 0.1)),
    ],
)
def test_factors_are_known_where_a_price_is_not(
    model: str | None, ttl: money.Ttl, expected: tuple[float, float]
) -> None:
    assert money.factors(model, ttl) == expected


def test_a_cache_price_that_is_not_listed_is_a_published_factor_and_the_source_says_so() -> None:
    # Bedrock's list has no one-hour write for this model; twice the input price is what Anthropic publishes.
    found = priced("us.anthropic.claude-sonnet-4-20250514-v1:0", "1h", "aws")
    assert found.cache_write_1h == 2 * found.input
    assert found.w == 2
    assert "1h cache write 2" in found.source
    assert "cache read" not in found.source


def test_no_listed_cache_price_and_no_published_factor_means_no_caching() -> None:
    found = priced("gpt-4")
    assert found.cache_read == found.cache_write_5m == found.cache_write_1h == found.input == 30
    assert found.source == (
        "genai-prices; not listed, so counted as a factor of the input price: cache read 1, cache write 1"
    )


# Usage and cost


def test_usage_of_an_anthropic_answer() -> None:
    usage = Usage.from_anthropic(
        {
            "input_tokens": 4,
            "cache_read_input_tokens": 60_000,
            "cache_creation_input_tokens": 20_500,
            "cache_creation": {"ephemeral_5m_input_tokens": 500, "ephemeral_1h_input_tokens": 20_000},
            "output_tokens": 321,
            "service_tier": "standard",
        }
    )
    assert usage == Usage(input=4, cache_read=60_000, cache_write_5m=500, cache_write_1h=20_000, output=321)
    assert usage.total_input == 80_504


@pytest.mark.parametrize(
    ("raw", "usage"),
    [
        ({}, Usage()),
        ({"input_tokens": 7, "output_tokens": 2}, Usage(input=7, output=2)),
        # Before lifetimes were told apart every write was for five minutes.
        ({"cache_creation_input_tokens": 90}, Usage(cache_write_5m=90)),
        (
            {"cache_creation_input_tokens": 90, "cache_creation": {"ephemeral_1h_input_tokens": 60}},
            Usage(cache_write_5m=30, cache_write_1h=60),
        ),
        ({"cache_creation": {"ephemeral_5m_input_tokens": 5}}, Usage(cache_write_5m=5)),
        ({"input_tokens": None, "cache_creation": None, "output_tokens": "12"}, Usage()),
        ({"input_tokens": -3, "output_tokens": True}, Usage()),
    ],
)
def test_usage_that_is_old_partial_or_odd(raw: dict[str, object], usage: Usage) -> None:
    assert Usage.from_anthropic(raw) == usage


def test_cost_counts_every_token_once() -> None:
    usage = Usage(input=20_000, cache_read=60_000, cache_write_5m=20_000)
    # 20k at 5, 60k at 0.50, 20k at 6.25: 0.10 + 0.03 + 0.125
    assert money.cost(usage, priced(OPUS)) == pytest.approx(0.255)


def test_cost_of_output_and_of_one_hour_writes() -> None:
    usage = Usage(input=2, cache_read=150_000, cache_write_5m=1_000, cache_write_1h=4_000, output=2_000)
    # 0.00001 + 0.075 + 0.00625 + 0.04 + 0.05, whichever lifetime the rates were asked for
    assert money.cost(usage, priced(OPUS)) == pytest.approx(0.17126)
    assert money.cost(usage, priced(OPUS, "1h")) == pytest.approx(0.17126)


def test_cost_agrees_with_the_price_library_which_counts_cached_tokens_as_input() -> None:
    import genai_prices

    usage = Usage(input=1_234, cache_read=56_789, cache_write_5m=3_210, cache_write_1h=987, output=654)
    theirs = genai_prices.calc_price(
        genai_prices.Usage(
            input_tokens=usage.total_input,
            cache_read_tokens=usage.cache_read,
            cache_write_tokens=usage.cache_write_5m + usage.cache_write_1h,
            cache_write_1h_tokens=usage.cache_write_1h,
            output_tokens=usage.output,
        ),
        model_ref=OPUS,
    )
    assert money.cost(usage, priced(OPUS)) == pytest.approx(float(theirs.total_price))


def recorded() -> Iterator[tuple[str, dict[str, int]]]:
    """Model and usage of the assistant records in the smaller recorded sessions."""
    for path in sorted(SESSIONS.glob("*.jsonl")):
        if path.stat().st_size > 1_000_000:
            continue
        for line in path.read_bytes().splitlines():
            try:
                record = json.loads(line) if b'"usage"' in line else {}
            except ValueError:  # two records glued together
                continue
            message = record.get("message")
            if record.get("type") == "assistant" and isinstance(message, dict) and "usage" in message:
                yield message["model"], message["usage"]


@pytest.mark.skipif(not SESSIONS.is_dir(), reason="no recorded sessions beside the project (../shared/data)")
def test_recorded_usage_is_counted_whole_and_every_recorded_claude_model_has_a_price() -> None:
    models = set()
    for model, raw in recorded():
        models.add(model)
        usage = Usage.from_anthropic(raw)
        cached = raw.get("cache_read_input_tokens", 0) + raw.get("cache_creation_input_tokens", 0)
        assert usage.total_input == raw.get("input_tokens", 0) + cached
        assert usage.output == raw.get("output_tokens", 0)
    assert len(models) > 3
    assert {model for model in models if model.startswith("claude") and not money.rates(model)} == set()


# When a cut pays


def test_on_opus_5_a_cut_of_100k_with_8k_behind_it_pays_with_the_request_that_cuts() -> None:
    back = money.payback(20_000, 8_000, 100_000, priced(OPUS), warm=True)
    assert back.turns == pytest.approx(0.92)
    assert back.pays_within(1)
    assert not back.pays_within(0)
    # (1.25 - 0.1) x 8k x 5/M to write again, 0.1 x 100k x 5/M less to read each time
    assert (back.cost_of_cut, back.saved_per_turn, back.saved_at_once) == pytest.approx((0.046, 0.05, 0))
    assert back.net(1) == pytest.approx(0.004)
    assert back.net(10) == pytest.approx(0.454)
    assert back.net(0) == 0


def test_where_cache_reads_cost_a_fortieth_the_same_cut_pays_later() -> None:
    back = money.payback(20_000, 8_000, 100_000, priced("claude-fable-5-1"), warm=True)
    assert back.turns == pytest.approx(3.92)  # 49 x 0.08
    assert [back.pays_within(n) for n in (3, 4)] == [False, True]


@pytest.mark.parametrize(
    ("model", "ttl", "turns"),
    [
        ("claude-opus-5", "5m", 11.5),
        ("claude-opus-5", "1h", 19),
        ("claude-opus-5-5", "5m", 24),
        ("claude-opus-5-5", "1h", 39),
        ("claude-fable-5-2", "5m", 49),
        ("claude-fable-5-2", "1h", 79),
        ("gpt-5.6", "5m", 11.5),
        ("gpt-5.2", "5m", 9),
        ("gpt-4o", "5m", 1),
        ("gemini-2.5-pro", "5m", 9),
    ],
)
def test_turns_where_as_much_survives_behind_the_cut_as_was_deleted(model: str, ttl: money.Ttl, turns: float) -> None:
    assert money.payback(0, 50_000, 50_000, priced(model, ttl), warm=True).turns == pytest.approx(turns)


def test_net_is_what_the_requests_with_and_without_the_cut_differ_by() -> None:
    rates = priced(OPUS, "1h")
    prefix, survives, deleted, n = 18_000, 30_000, 70_000, 6
    whole = Usage(cache_read=prefix + survives + deleted)
    first = Usage(cache_read=prefix, cache_write_1h=survives)
    later = Usage(cache_read=prefix + survives)
    uncut = n * money.cost(whole, rates)
    cut = money.cost(first, rates) + (n - 1) * money.cost(later, rates)
    assert money.payback(prefix, survives, deleted, rates, warm=True).net(n) == pytest.approx(uncut - cut)


def test_on_a_cold_cache_a_cut_pays_at_once() -> None:
    rates = priced(OPUS)
    back = money.payback(18_000, 30_000, 70_000, rates, warm=False)
    assert back.cold
    assert (back.turns, back.cost_of_cut) == (0, 0)

    def three_requests(tokens: int) -> float:
        first, later = Usage(cache_write_5m=tokens), Usage(cache_read=tokens)
        return money.cost(first, rates) + 2 * money.cost(later, rates)

    assert back.net(3) == pytest.approx(three_requests(118_000) - three_requests(48_000))
    # The request that cuts saves writing what was deleted: 70k at 6.25.
    assert back.net(1) == pytest.approx(0.4375)


def test_without_caching_a_cut_pays_at_once() -> None:
    back = money.payback(1_000, 5_000, 10_000, priced("gpt-4"), warm=True)
    assert back.turns == 0
    assert back.pays_within(1)
    assert back.net(2) == pytest.approx(2 * 10_000 * 30 / 1e6)


@pytest.mark.parametrize("warm", [True, False])
@pytest.mark.parametrize("deleted", [0, -40])
def test_a_cut_that_makes_nothing_shorter_never_pays(warm: bool, deleted: int) -> None:
    back = money.payback(1_000, 5_000, deleted, priced(OPUS), warm=warm)
    assert back.turns == inf
    assert not back.pays_within(1_000_000)


def test_a_cut_with_nothing_behind_it_pays_at_once() -> None:
    assert money.payback(1_000, 0, 5_000, priced(OPUS), warm=True).turns == 0


def test_without_a_price_turns_are_known_by_factors_and_money_is_not() -> None:
    back = money.payback(0, 8_000, 100_000, None, warm=True, factors=money.factors("claude-mythos-5-1"))
    assert back.turns == pytest.approx(3.92)
    assert (back.cost_of_cut, back.saved_per_turn, back.saved_at_once, back.net(5)) == (None,) * 4
    assert money.payback(0, 8_000, 100_000, None, warm=True).turns == pytest.approx(0.92)


def test_a_model_that_costs_nothing_costs_nothing() -> None:
    free = money.Rates("local", 0, 0, 0, 0, 0, "5m", "a test")
    assert (free.w, free.r) == (1, 1)
    back = money.payback(1_000, 5_000, 10_000, free, warm=True)
    assert (back.turns, back.net(5)) == (0, 0)


def test_where_reading_is_free_only_the_rewriting_counts() -> None:
    rates = money.Rates("odd", 1, 1, 0, 1, 1, "5m", "a test")
    assert money.payback(0, 5_000, 10_000, rates, warm=True).turns == inf


# Whether the cache is warm, and how long a session goes on


@pytest.mark.parametrize(
    ("idle", "ttl", "warm"),
    [(0, "5m", True), (299, "5m", True), (300, "5m", False), (300, "1h", True), (3600, "1h", False)],
)
def test_a_cache_is_warm_until_its_lifetime_has_passed(idle: float, ttl: money.Ttl, warm: bool) -> None:
    assert money.warm(idle, ttl) is warm


@pytest.mark.parametrize(("requests", "more"), [([], 0), ([7], 7), ([3, 21, 1, 5], 30)])
def test_a_session_is_expected_to_go_on_as_long_as_it_has(requests: list[int], more: int) -> None:
    assert money.rhythm(requests) == more


def test_importing_money_loads_no_prices() -> None:
    code = "import sys, cutline.money; print('genai_prices' in sys.modules, 'pydantic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
