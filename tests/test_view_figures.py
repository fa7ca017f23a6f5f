"""`cutline cost`, `card` and `show --advise`: what was paid, who filled what was sent, when a cut pays."""

from __future__ import annotations

import json
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

import pytest

import made
import view_made
from cutline import money
from cutline.errors import InputError, Unreadable
from cutline.sessions.clients import open_path
from cutline.view import card, replay, spending, timeline
from cutline.view.advice import advise
from test_command_line import Shell, fails, shell  # noqa: F401


def recorded(paths: list[Path]) -> list[timeline.Timeline]:
    found = []
    for path in paths:
        try:
            found.append(timeline.read(open_path(path)))
        except (InputError, Unreadable):
            continue
    return found


# ------------------------------------------------------------------------------------------------------------- cost


def test_each_request_is_paid_once_at_its_own_price(sessions: list[Path]):
    ledger = spending.Ledger()
    answers = {}
    for found in recorded(sessions):
        ledger.add_session(found.session)
        answers |= {one.message_id: one for one in found.session.history.requests}
    whole = spending.total(ledger.paid)
    assert len(answers) == whole.requests > 1_000
    assert whole.output == sum(one.usage.output for one in answers.values())
    for by in ("day", "project", "client", "model"):
        rows = spending.summed(ledger.paid, by)
        assert sum(row.requests for row in rows) == whole.requests
        assert sum(row.usd for row in rows) == pytest.approx(whole.usd)


def test_a_copy_of_a_session_costs_nothing_again(tmp_path: Path):
    path = made.small().write(tmp_path / "one.jsonl")
    ledger = spending.Ledger()
    for _ in range(2):
        ledger.add_session(open_path(path))
    found = open_path(path).history.requests
    assert len(ledger.paid) == len(found)
    rates = money.rates("claude-sonnet-4-5")
    assert rates is not None
    assert spending.total(ledger.paid).usd == pytest.approx(sum(money.cost(one.usage, rates) for one in found))


def test_requests_before_the_time_do_not_count(tmp_path: Path):
    ledger = spending.Ledger(datetime(2026, 10, 5, 9, 0, 20, tzinfo=UTC))
    session = open_path(made.small().write(tmp_path / "one.jsonl"))
    ledger.add_session(session)
    assert 0 < len(ledger.paid) < len(session.history.requests)


@pytest.mark.parametrize(
    ("counters", "model", "usage"),
    [
        ({"input_tokens": 3, "cache_read_input_tokens": 9, "output_tokens": 2}, "claude-x", money.Usage(3, 9, 0, 0, 2)),
        ({"input_tokens": 12, "input_tokens_details.cached_tokens": 9, "output_tokens": 2}, "gpt", money.Usage(3, 9, 0, 0, 2)),
        ({"prompt_tokens": 12, "prompt_tokens_details.cached_tokens": 9, "completion_tokens": 2}, "m", money.Usage(3, 9, 0, 0, 2)),
        ({"promptTokenCount": 12, "cachedContentTokenCount": 9, "candidatesTokenCount": 2}, "g", money.Usage(3, 9, 0, 0, 2)),
        ({"inputTokens": 3, "cacheReadInputTokens": 9, "outputTokens": 2}, "c", money.Usage(3, 9, 0, 0, 2)),
    ],
)  # fmt: skip
def test_recorded_counters_mean_what_their_format_says(counters: dict[str, int], model: str, usage: money.Usage):
    assert spending.usage_of(counters, model) == usage


# ------------------------------------------------------------------------------------------------------ gone through again


def test_what_was_sent_is_shared_out_without_rest(sessions: list[Path]):
    checked = 0
    for found in recorded(sessions):
        counted = [one.usage.total_input for one in found.session.history.requests if one.usage.total_input]
        told = replay.replay(found)
        assert told.requests == len(counted) and sum(told.sent.values()) == sum(counted), found.session.path.name
        assert min(told.sent.values()) >= 0
        assert (told.paying.tokens <= sum(counted) and told.paying.cuts <= told.every.cuts) or not counted
        checked += len(counted) > 50
    assert checked >= 8


def test_a_cut_that_pays_at_its_moment_saves_what_the_later_requests_would_have_read(tmp_path: Path):
    """Worked out by hand: six large results, then a human turn and 40 requests that read them from the cache."""
    session = made.Session()
    session.human("Read it.")
    for number in range(6):
        session.step("", f"cat {number}", "x" * 6_000)
    session.human("Now go on.")
    for number in range(40):
        session.step("", f"echo {number}", "ok")
    session.agent({"type": "text", "text": "Done."})
    for number, record in enumerate(one for one in session.records if one["type"] == "assistant"):
        sent = 14_000 if number >= 6 else 4_000 + 1_600 * number
        record["message"]["usage"] = {"input_tokens": 0, "cache_read_input_tokens": sent, "output_tokens": 5}
    found = timeline.read(open_path(session.write(tmp_path / "one.jsonl")))
    told = replay.replay(found)
    assert told.every.cuts == 1 and told.every.tokens > 0
    rates = money.rates(session.model)
    assert rates is not None and told.every.usd is not None
    # Each of the 41 requests behind the human turn would have been shorter by the same D, read at the price of a read.
    deleted, rest = divmod(told.every.tokens, 41)
    read = [one.tokens for one in found.entries if one.part in ("call", "result")][:12]
    assert rest == 0 and deleted == sum(read)
    assert told.every.usd < told.every.tokens * rates.cache_read / 1e6  # the cut itself is paid for
    assert told.every.usd > 0.5 * told.every.tokens * rates.cache_read / 1e6


def test_advice_is_the_arithmetic_of_the_cut(sessions: list[Path]):
    checked = 0
    for found in recorded(sessions[:15]):
        told = advise(found)
        if told.now is None:
            assert told.why
            continue
        paid = told.now.payback
        if paid.deleted <= 0:
            assert told.warm_turns == float("inf")
        else:
            assert told.warm_turns == pytest.approx((paid.w - paid.r) * paid.survives / (paid.r * paid.deleted))
        for one in told.choices:
            assert one.holes <= one.calls and one.deleted + one.survives > 0
        checked += 1
    assert checked >= 5


# ------------------------------------------------------------------------------------------------------------- the card


def test_the_card_is_a_picture_of_the_figures(tmp_path: Path):
    found = timeline.read(open_path(view_made.demo(tmp_path / "demo.jsonl")))
    month = card.month(30, [replay.replay(found)])
    picture = card.svg(month)
    root = ElementTree.fromstring(picture)
    texts = "".join(root.itertext())
    assert root.get("viewBox") == "0 0 1200 630"
    for name, _, tokens in month.shares():
        assert f"{100 * tokens / month.whole:.1f} % {name}" in texts
    assert sum(tokens for _, _, tokens in month.shares()) == month.whole
    bars = [
        float(one.get("width", "0"))
        for one in root.iter("{http://www.w3.org/2000/svg}rect")
        if one.get("height") == "64"
    ]
    assert sum(bars) == pytest.approx(1080 - 2 * len(bars), abs=4)
    assert "crumb" not in picture and made.CWD not in picture


# --------------------------------------------------------------------------------------------------------- the commands


def test_the_commands_speak_to_people_and_to_programs(shell: Shell):  # noqa: F811
    shell.session(checkpoint=True)
    shown = shell("cost", "--days", "3650")
    assert shown.returncode == 0 and b"2026-10-05" in shown.stdout and b"$" in shown.stdout
    told = json.loads(shell("cost", "--days", "3650", "--by", "model", "--json").stdout)
    assert told["rows"][0]["name"] == "claude-sonnet-4-5" and told["all"]["requests"] == told["rows"][0]["requests"] > 8
    advice = shell("show", "--advise")
    assert advice.returncode == 0 and b"(w - r) x S" in advice.stdout
    told = json.loads(shell("show", "--advise", "--json").stdout)
    assert told["now"]["D"] > 0 and told["others"]["sessions"] == 0
    drawn = shell("card", "--days", "3650", "-o", "one.svg")
    assert drawn.returncode == 0, drawn.stderr
    assert ElementTree.parse(shell.project / "one.svg").getroot().tag.endswith("svg")
    exported = shell("view", "--export", "one.html")
    assert exported.returncode == 0 and re.search(rb"masked", exported.stderr)
    assert (shell.project / "one.html").read_bytes().startswith(b"<!doctype html>")


def test_what_can_not_be_shown_is_said_in_one_line(shell: Shell):  # noqa: F811
    fails(shell("view", "--export", "one.html"), 2, "no session")
    fails(shell("card", "-o", "one.gif"), 2, ".svg or .png")
    fails(shell("card", "--days", "1"), 2, "no request of the last 1 days")
    fails(shell("cost", "--record"), 2, "no record yet")
    (shell.project / "body.json").write_bytes(b'{"model":"m","messages":[{"role":"user","content":"hi"}]}')
    fails(shell("show", "--advise", "body.json"), 2, "--advise is for sessions")
    fails(shell("view", "body.json"), 2, "view shows sessions")


def test_advice_counts_what_was_asked_again_in_the_other_sessions_of_the_directory(shell: Shell):  # noqa: F811
    path, id_ = shell.session(), "7" * 8 + made.ID[8:]
    again = made.small()
    for _ in range(3):
        again.human("Once more, from the start.")
        for record in made.small().records[1:]:
            if record["type"] == "assistant":
                again.step("The same look again.", "pytest -q -x --run 0", "31 passed in 2.0s")
    again.write(path.with_name(f"{id_}.jsonl"))
    told = json.loads(shell("show", str(path), "--advise", "--json").stdout)
    every = told["others"]["at_every_human_turn"]
    assert told["others"]["sessions"] == 1
    assert every["cuts"] > 0 and 0 < every["again"] <= every["behind"]
    assert b"the other session of its directory" in shell("show", str(path), "--advise").stdout


@pytest.mark.slow
def test_a_png_is_taken_where_there_is_a_browser(shell: Shell):  # noqa: F811
    if shutil.which("chromium") is None:
        pytest.skip("no Chromium on PATH; Debian's package is called chromium")
    shell.session()
    done = shell("card", "--days", "3650", "-o", "one.png")
    assert done.returncode == 0, done.stderr
    data = (shell.project / "one.png").read_bytes()
    assert data.startswith(b"\x89PNG") and data[16:24] == (1200).to_bytes(4, "big") + (630).to_bytes(4, "big")
