"""The bench: a history whose every answer is known, and recorded sessions measured twice."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cutline.bench import carried, cost, lineup, lineups, pieces, run, seams, statements, strategies, summary, whole
from cutline.bench.seams import Seam, Told
from cutline.bench.whole import Source
from cutline.wire import anthropic as wire
from test_opencode_sessions import Writer
from test_opencode_sessions import call as opencode_call

HUMAN_RULE = "Never touch vendor/lib.py, it is not ours."
SEAM = 5  # the message of the second human turn


def text(words: str) -> dict:
    return {"type": "text", "text": words}


def call(id: str, command: str) -> dict:
    return {"type": "tool_use", "id": id, "name": "Bash", "input": {"command": command, "timeout": 4000}}


def result(id: str, words: str) -> dict:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": words}]}


MESSAGES = [
    {"role": "user", "content": [text(HUMAN_RULE)]},
    {
        "role": "assistant",
        "content": [text("I forgot that tax_on rounds at 0.19."), call("c1", "grep -n round_div till.py")],
    },
    result("c1", "21: round_div(net)\n48: half_up(net)"),
    {"role": "assistant", "content": [call("c2", "python check.py --days 31")]},
    result("c2", "ok E_NONE 4000"),
    {"role": "user", "content": [text("Now use half_up, as said.")]},
    {"role": "assistant", "content": [text("tax_on is next."), call("c3", "python check.py --days 31")]},
    result("c3", "round_div at 48"),
    {
        "role": "assistant",
        "content": [text("So round_div and half_up differ, in vendor/lib.py too. E_NONE."), call("c4", "true")],
    },
    result("c4", ""),
    {"role": "assistant", "content": [text("Line 48 it is.")]},
]


@pytest.fixture(scope="module")
def read() -> tuple[wire.Request, list[pieces.Piece], pieces.Names]:
    request = wire.read(json.dumps({"model": "m", "messages": MESSAGES}).encode())
    names = pieces.Names()
    return request, pieces.read(request, (), names), names


def found(read, upto: int = len(MESSAGES)) -> tuple[carried.Wanted, set[str]]:
    _, history, names = read
    wanted = carried.wanted(history, SEAM, upto, names)
    return wanted, {names.written[number] for number in wanted.bits}


def test_used_is_what_stood_before_and_the_agent_writes_behind_unless_a_human_gave_it_away(read):
    _, used = found(read)
    # half_up was given by the human; 4000 is a setting; `true` was never seen.
    assert used == {"tax_on", "check.py", "--days", "31", "round_div", "vendor/lib.py", "E_NONE", "48"}


def test_what_a_result_behind_the_seam_showed_first_is_told_apart(read):
    wanted, _ = found(read)
    names = read[2]
    assert {names.written[number] for number in wanted.shown} == {"round_div", "48"}


def test_pairs_stand_on_one_line_or_in_one_call_before_and_in_one_sentence_or_call_after(read):
    wanted, _ = found(read)
    names = read[2]
    pairs = {
        frozenset((names.written[one], names.written[other]))
        for one, mask in wanted.together.items()
        for other, bit in wanted.bits.items()
        if mask & bit
    }
    assert pairs == {frozenset(pair) for pair in (("check.py", "--days"), ("check.py", "31"), ("--days", "31"))}
    assert wanted.pairs == 3


def test_uses_behind_the_next_seam_are_the_next_seam_s(read):
    assert found(read, upto=7)[1] == {"tax_on", "check.py", "--days", "31"}


@pytest.fixture(scope="module")
def contexts(read) -> dict[str, strategies.Context]:
    request, history, names = read
    told = Told(("The agent worked on tax_on.",), (), 27)
    return strategies.contexts(request, history, Seam(SEAM, "compaction", len(MESSAGES), told), names, "salt")


def scored(read, contexts, name: str) -> carried.Score:
    return carried.score(contexts[name], found(read)[0], read[2])


def test_each_strategy_carries_what_it_keeps(read, contexts):
    held = {name: scored(read, contexts, name) for name in contexts}
    assert (held[strategies.FULL].specifics, held[strategies.FULL].pairs) == (8, 3)
    assert held[strategies.NONE].carriers == {"agent text": 1, "human text": 1}  # tax_on, vendor/lib.py
    assert held[strategies.TOLD].carriers == {"summary": 1}
    assert (held[strategies.CALLS].specifics, held[strategies.CALLS].pairs) == (6, 3)  # all but 48 and E_NONE
    assert held[strategies.CLEAR_INPUTS].specifics == 8  # there are only two calls, and it keeps three
    assert set(held) == set(strategies.NAMES)


def test_the_notice_counts_only_on_a_line_that_names_the_specific_s_own_call(read, contexts):
    _, history, names = read
    micro = scored(read, contexts, strategies.HOLES)
    assert micro.carriers == {"agent text": 1, "human text": 1, "notice": 6}
    assert micro.paired == {"notice": 3}
    notice = contexts[strategies.HOLES].texts[-1]
    assert list(strategies.traced(notice, history[:SEAM], names))
    foreign = notice.replace(history[2].address, "0" * 16)
    own = {names.written[n] for unit in strategies.traced(foreign, history, names) for n in unit.names}
    assert "round_div" not in own
    assert "check.py" in own


def test_a_window_and_random_lines_have_the_budget_of_the_micro_handoff(contexts):
    budget = contexts[strategies.HOLES].size
    for name in (strategies.WINDOW, strategies.ENDS, strategies.LINES):
        assert contexts[name].size <= budget


def test_what_is_missing_is_priced_at_the_results_that_hold_it(read, contexts):
    wanted, _ = found(read)
    history = read[1]
    missing = cost.refetched(contexts[strategies.NONE], wanted, history, SEAM)
    # E_NONE stands in the second result; round_div and 48 were read again, the rest stands in calls alone.
    assert (missing["results"], missing["nowhere"]) == (1, 3)
    assert cost.refetched(contexts[strategies.FULL], wanted, history, SEAM) == {"results": 0, "bytes": 0, "nowhere": 0}


def test_a_natural_seam_waits_for_forty_calls_and_a_human_turn_or_for_eighty():
    def history(calls: int, human_at: int | None) -> wire.Request:
        made = [{"role": "user", "content": [text("Go.")]}]
        for number in range(calls):
            if number == human_at:
                made.append({"role": "user", "content": [text("Now the next.")]})
            made += [{"role": "assistant", "content": [call(f"c{number}", "ls")]}, result(f"c{number}", "a")]
        return wire.read(json.dumps({"messages": made}).encode())

    assert seams.natural(history(60, 45), [91]) == [91]
    assert seams.natural(history(60, 20), [41]) == []
    assert seams.natural(history(100, None), []) == [161]
    assert seams.natural(history(85, None), []) == []  # too little follows


def test_the_interval_is_that_of_the_sessions_and_the_same_each_time():
    assert summary.interval([0.5]) == (0.5, 0.5)
    low, high = summary.interval([0.1, 0.2, 0.3, 0.9])
    assert 0.1 < low < 0.375 < high < 0.9
    assert summary.interval([0.1, 0.2, 0.3, 0.9]) == (low, high)


def test_a_label_is_a_hash_and_nothing_that_anybody_wrote():
    made = statements.labels()
    assert len(made) >= 150
    assert {kind for kind, _ in made.values()} == set(statements.KINDS)
    assert all(len(hash_) == 16 and int(hash_, 16) >= 0 for hash_ in made)


def test_rules_and_admissions_are_found_and_stay_under_the_micro_handoff(read, contexts):
    history = read[1]
    assert {one.kind for one in statements.find(history)} == {statements.RULE, statements.MISTAKE}
    kept = statements.survival(history, [(SEAM, contexts)], {})["kept"]
    assert kept[strategies.HOLES] == {statements.RULE: {"1": [1, 1]}, statements.MISTAKE: {"1": [1, 1]}}
    assert kept[strategies.TOLD][statements.RULE] == {"1": [0, 1]}


def test_a_line_up_needs_enough_texts_behind_the_seam(read):
    later = lineup.worth_asking(read[1], SEAM)
    assert len(later) == 1  # the others have fewer than eight words
    assert lineup.line_ups(later, ["Twenty times the same text of a stranger."] * 20) == {
        lineup.LATER: [],
        lineup.STRANGERS: [],
    }


OWN = [
    f"The rounding of tax number {number} goes through half_up, as the till's own check wants it."
    for number in range(9)
]
STRANGE = [
    f"Pod {number} was evicted again, so the queue's consumer restarts with backoff and logs it."
    for number in range(12)
]


def test_the_judge_knows_the_words_of_its_context_and_is_misled_by_another_s():
    shown = lineup.line_ups(OWN, STRANGE)
    assert [len(ten) for ten in shown[lineup.STRANGERS]] == [10] * lineup.TRUE
    till = ["till: tax by half_up", "check rounding"]
    queue = ["queue: consumer restarts", "evicted pod, backoff"]
    kinds = (lineup.STRANGERS, lineup.STRANGERS + lineup.MASKED)
    for kind in kinds:
        assert lineup.ranks(shown, till, "salt")[kind] == [1] * lineup.TRUE
        assert lineup.ranks(shown, queue, "salt")[kind] == [10] * lineup.TRUE


def test_without_a_context_the_ranks_are_those_of_chance():
    shown = [[f"{number} {one}" for one in range(10)] for number in range(400)]
    found = lineup.ranks({lineup.LATER: shown}, (), "salt")[lineup.LATER]
    assert 0.26 < sum(1 / rank for rank in found) / len(found) < 0.33  # 0.293 is expected
    assert set(found) == set(range(1, 11))


def test_a_word_that_all_candidates_have_tells_nothing_and_a_late_passage_more_than_an_early_one():
    words = frozenset
    assert lineup.scores([words({"a"}), words({"a"})], [words({"a"})]) == [0, 0]
    first, last = lineup.scores([words({"a"}), words({"b"})], [words({"a"}), words({"c"}), words({"b"})])
    assert 0 < first < last


def test_masked_nothing_is_left_of_a_specific():
    bag = lineup.bag("It calls round_half(net) in src/till/tax.py")
    assert "round_half" in bag.all
    assert bag.masked == {"it", "call", "net", "in"}


# ------------------------------------------------------------------------------------- recorded sessions

SMALL = (
    "claude-code/context-evaluator_ee7e610f_plan-heavy.jsonl",
    "codex/entire-graph_54fb8b1d_ansi.jsonl",
)


@pytest.fixture(scope="module")
def recorded(shared: Path) -> list[Path]:
    return [shared / "data" / "sessions" / name for name in SMALL]


def bench(*args: str, **env: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "cutline", "bench", *args], capture_output=True, text=True, env={**os.environ, **env}
    )


@pytest.mark.slow
def test_two_runs_agree_to_the_digit_whatever_the_hash_seed_and_the_number_of_processes(recorded: list[Path]):
    files = list(map(str, recorded[:2]))
    one = bench(*files, "--json", "--jobs", "1", PYTHONHASHSEED="1")
    two = bench(*files, "--json", "--jobs", "2", PYTHONHASHSEED="2")
    assert one.returncode == 0, one.stderr
    assert one.stdout == two.stdout
    told = json.loads(one.stdout)
    assert told["summary"]["sessions"] == 2
    for kinds in told["summary"]["statements"][strategies.HOLES].values():
        assert all(kept == all_ for kept, all_ in kinds.values())


@pytest.mark.slow
def test_on_recorded_sessions_the_agent_s_own_context_knows_its_next_words_from_strangers_and_another_s_less(
    shared: Path,
):
    where = shared / "data" / "sessions" / "claude-code"
    names = (
        "entire-cli_432b48f6_36human_2compact",
        "git-sync_0c2a854b_494calls_opus47",
        "skills_96770173_68human_388calls",
    )
    own, *others = (Source(where / f"{name}.jsonl") for name in names)
    seams = [seam.message for seam in whole.read(*own).seams]
    found = lineups.ranks(own, others, seams)
    assert found == lineups.ranks(own, others, seams)
    best = {
        name: [1 / rank for seam in found.values() for rank in seam[lineup.STRANGERS][name]]
        for name in (strategies.HOLES, lineups.FOREIGN, lineups.NOTHING)
    }
    ours, theirs, none = (sum(each) / len(each) for each in best.values())
    assert ours > 0.7
    assert ours > theirs
    assert none < 0.6


def test_a_stopped_run_goes_on_where_it_was(recorded: list[Path], tmp_path: Path):
    kept = tmp_path / "unfinished.jsonl"
    first = run.run([Source(recorded[0])], kept, 1, lambda done, of: None)
    with kept.open("a") as half:
        half.write('{"mark": "torn')  # it was stopped while it wrote
        half.write("\n")
    seen: list[int] = []
    both = run.run(list(map(Source, recorded[:2])), kept, 1, lambda done, of: seen.append(done))
    assert seen == [1, 2]
    assert both.results[0] == first.results[0]


def test_the_page_and_the_results_hold_no_word_of_the_sessions(recorded: list[Path], tmp_path: Path):
    done = bench(str(recorded[1]), "-o", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "micro-handoff" in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["page.html", "results.jsonl", "summary.json"]
    page = (tmp_path / "page.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "<script" not in page
    for path in tmp_path.iterdir():
        assert "/Users/" not in path.read_text()


def test_every_session_of_opencode_s_database_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    made = []
    for session in range(2):
        one = Writer(f"ses_{session}fffffffffffAAAAAAAAAAAAAA", slug=f"otter-{session}")
        one.human(f"Count the parts of crate_{session}.")
        for number in range(50):
            if number == 35:
                one.checkpoint(f"note_{session}")
            command = f"grep -n part_{number % 12} crate_{session}/bin_{number % 7}.rs"
            one.agent(
                opencode_call(
                    f"c{session}_{number}", "bash", {"command": command}, output=f"{number}: part_{number % 12}"
                )
            )
        # The ids that tell messages apart tell them apart in the whole database.
        one.messages = json.loads(json.dumps(one.messages).replace("2377e4", f"2377e{session}"))
        made.append(one)
    home = tmp_path / "opencode"
    home.mkdir()
    path = made[0].database(home, made[1])
    sources = run.files([str(path)])
    assert sorted(sources) == [Source(path, one.id) for one in made]
    # … as the user's own sessions, and by the folder.
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert set(sources) <= set(run.files([]))
    assert run.files([str(home)])[: len(sources)] == sources
    ran = run.run(sources, tmp_path / "kept", 1, lambda done, of: None)
    assert [result["client"] for result in ran.results] == ["opencode", "opencode"]
    for result in ran.results:
        assert [seam["cause"] for seam in result["seams"]] == ["checkpoint"]
        assert [(calls, holes) for _, calls, holes in result["narration"]["stretches"]] == [(35, 35), (15, 15)]
    told = summary.narration(ran.results)
    assert (told["calls"], told["holes"], told["stretches"]["nothing narrated"]) == (100, 100, 4)
    assert told["tools"] == {"bash": [100, 100]}


def test_a_folder_without_a_session_says_what_to_do(tmp_path: Path):
    (tmp_path / "notes.txt").write_text("nothing")
    done = bench(str(tmp_path))
    assert done.returncode == 2
    assert "no session with a seam among 1 files" in done.stderr
    assert bench(str(tmp_path / "absent.jsonl")).returncode == 2


@pytest.mark.slow
def test_all_recorded_sessions_take_less_than_five_minutes_and_two_gigabytes(shared: Path):
    script = (
        "import resource,sys;from cutline.cli import cli;"
        f"cli.main(['bench',{str(shared / 'data')!r},'--jobs','2'],standalone_mode=False);"
        "print('KB',resource.getrusage(resource.RUSAGE_SELF).ru_maxrss"
        "+2*resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss,file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert int(done.stderr.split("KB ")[1]) < 2_000_000
