"""The trace: what its lines say, what they may not say, and what they cost."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutline import specifics, trace
from cutline.bench import pieces, strategies, whole
from cutline.blocks import ToolCall, address

READ = b'{"file_path":"src/till/tax.py"}'
EDIT = b'{"file_path":"src/till/tax.py","old_string":"round_half(net)","new_string":"round_div(net, 100)"}'
TEST = b'{"command":"python check.py --days 31"}'


def call(name: str, arguments: bytes, result: str | None, error: bool = False, id: str = "") -> ToolCall:
    return ToolCall(name, arguments, result, error, 0, address(id or name, name, arguments))


CALLS = [
    call("Read", READ, "def tax_on(net):\n    return round_half(net)\nRATE = 0.19\n"),
    call("Bash", TEST, "25 tests, 2 failed\nFAILED test_mirror.py", error=True, id="first"),
    call("Edit", EDIT, "The file src/till/tax.py has been updated."),
    call("Bash", TEST, "25 tests\n0 failed", id="second"),
]


def lines(said: list[str], budget: int = 10_000) -> list[str]:
    return trace.index(list(enumerate(CALLS)), len(CALLS), said, budget)[0]


def test_calls_about_one_thing_share_a_line_with_address_outcome_and_names():
    read, failed, edit, passed = (one.address for one in CALLS)
    assert lines([]) == [
        f"src/till/tax.py: Read {read} -> 3 lines: RATE tax_on 0.19; "
        f"Edit {edit} -> The file it has been updated.: 100 round_div round_half",
        # However many runs there were, the last one's outcome is told.
        f"python check.py --days 31: Bash {failed} -> error: 25 tests, 2 failed: test_mirror.py; "
        f"Bash {passed} -> 2 lines, last: 0 failed: 25",
    ]


def test_what_the_agent_said_is_not_said_again():
    assert "round_div" in lines([])[0]
    assert "round_div" not in lines(["I replaced it by `round_div`."])[0]


def test_a_budget_that_holds_nothing_gives_nothing_and_counts_what_has_no_line():
    assert trace.index(list(enumerate(CALLS)), len(CALLS), [], 10) == ([], 2)


NAMES = st.sampled_from(["tax_on", "src/a.py", "--fast", "0.19", "E_RANGE", "round_div", "plain", "words"])
TEXT = st.lists(NAMES, max_size=12).map(" ".join)
MADE = st.lists(st.tuples(st.sampled_from(["a.py", "b.py"]), TEXT, TEXT, st.booleans()), max_size=12)


@given(MADE, st.lists(TEXT, max_size=3), st.integers(0, 900))
def test_any_trace_fits_its_budget_repeats_no_word_of_the_agent_and_names_only_what_its_calls_hold(made, said, budget):
    calls = [
        call(f"T{number}", b'{"path":"%s","text":"%s"}' % (path.encode(), asked.encode()), told, error)
        for number, (path, asked, told, error) in enumerate(made)
    ]
    found, left = trace.index(list(enumerate(calls)), len(calls), said, budget)
    assert (found, left) == trace.index(list(enumerate(calls)), len(calls), said, budget)
    assert len("\\n".join(found)) <= budget
    assert len(found) + left == len({path for path, *_ in made})
    spoken = frozenset().union(*map(specifics.specifics, said))
    by_address = {one.address: one for one in calls}
    for line in found:
        aim = line.partition(": ")[0]
        for address_, after in re.findall(r" ([0-9a-f]{16}) -> (.*?)(?=; T\d+ |$)", line):
            own = by_address[address_]
            outcome, _, listed = after.partition(trace.brief(own, aim))
            assert not outcome
            for name in listed.removeprefix(": ").split():
                assert name in f"{own.arguments.decode()} {own.result}"
                assert name not in spoken


@pytest.mark.parametrize("name", ["entire-cli_2a075ef1_low-narration", "context-evaluator_ee7e610f_plan-heavy"])
def test_on_recorded_sessions_the_notice_carries_most_of_what_is_used_and_stays_within_its_share(
    shared: Path, name: str
):
    found = whole.read(shared / "data" / "sessions" / "claude-code" / f"{name}.jsonl")
    names = pieces.Names()
    read = pieces.read(found.request, found.origins, names)
    for seam in found.seams:
        contexts = strategies.contexts(found.request, read, seam, names, "")
        added = contexts[strategies.HOLES].size - contexts[strategies.NONE].size
        gone = contexts[strategies.FULL].size - contexts[strategies.NONE].size
        assert added <= 0.055 * gone
