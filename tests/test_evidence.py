"""Claims marked as measured, held against what was really run: what is caught, what slips through, and no false alarm."""

from dataclasses import replace

import pytest

from cutline import events, evidence, narration
from cutline.blocks import ToolCall
from cutline.checkpoint import Fact
from cutline.wire import anthropic as wire
from demo_made import played
from seeded import SEEDS, Seed

SLIP_THROUGH = {
    "the accountant confirmed 0.00",  # no evidence is named, and the figure stands in a result
    "tax_on is called 1202 times, discounted 2404 times less 1",  # arithmetic in words
}


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> list[ToolCall]:
    """The calls of the demo's session: every command was really run."""
    body = played(tmp_path_factory.mktemp("demo")).demo.whole
    made = [event for event in events.events(wire.read(body)) if isinstance(event, ToolCall)]
    return [call for call in made if not narration.is_own(call.name)]  # as `risks` asks: a document is no evidence


def spelt(named: str, calls: list[ToolCall]) -> str:
    """An evidence with its address written out."""
    wanted = {
        "<tests/test_mirror.py failing run>": lambda call: call.error,
        "<old formula>": lambda call: "days were off" in (call.result or ""),
        "<seen = differ>": lambda call: "amounts," in (call.result or ""),
        '<refund\\" { n[$1]++ }>': lambda call: b"n[$1]++" in call.arguments,
    }.get(named)
    return next(call.address for call in calls if wanted(call)) if wanted else named


def test_there_are_sixty_of_them_in_every_way():
    assert len(SEEDS) >= 60
    assert {seed.way for seed in SEEDS} == {"true", "re-worded", "off by one", "false", "half true", "failed run"}
    assert len(SLIP_THROUGH & {seed.claim for seed in SEEDS}) == len(SLIP_THROUGH)


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: f"{seed.way}: {seed.claim[:40]}")
def test_a_seeded_document(seed: Seed, calls: list[ToolCall]):
    doubt = evidence.doubt(Fact(seed.claim, "measured", spelt(seed.evidence, calls)), calls)
    assert (doubt == "") is (seed.holds or seed.claim in SLIP_THROUGH), doubt


@pytest.mark.parametrize(
    ("claim", "shown_by", "why"),
    [
        ("12 of 26 days were off", "python -m till close data/march | tail -n 1", "“12” stands in no result of that ("),
        ("mypy is clean", "mypy till", "no recorded call is its evidence"),
        ("all is well", "", "it names no evidence"),
        ("the suite passed", "<tests/test_mirror.py failing run>", "that run failed ("),
    ],
)
def test_a_doubt_says_what_speaks_against_the_claim(claim: str, shown_by: str, why: str, calls: list[ToolCall]):
    assert evidence.doubt(Fact(claim, "measured", spelt(shown_by, calls)), calls).startswith(why)


@pytest.mark.parametrize("text", ["", "0" * 100_000, "\ud83d 12", "(" * 5_000, "a/" * 5_000, "１２ tests"])
def test_nothing_in_a_claim_or_its_evidence_is_too_odd(text: str, calls: list[ToolCall]):
    assert isinstance(evidence.doubt(Fact(text or "x", "measured", text), calls), str)


def test_a_file_and_line_is_evidence_as_people_cite_it(calls: list[ToolCall]):
    assert evidence.doubt(Fact("the tax is rounded there", "measured", "till/tax.py:41"), calls) == ""


def test_a_result_of_a_hundred_thousand_digits_is_read_once(calls: list[ToolCall]):
    long = replace(calls[1], result="1" * 200_000 + " " + "2,3" * 50_000)
    assert evidence.doubt(Fact("81 passed", "measured", "1" * 200_000), [long]) != ""
