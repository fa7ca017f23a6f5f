"""Measure 6: a real model fills in blanks. Here an HTTP server reads the prompt and knows what stands in it."""

import json
import re
import subprocess
import sys
from os import environ
from pathlib import Path

import pytest

from cutline.bench import pieces, probes, whole
from loopback import Asked, Loopback, Told

pytest.importorskip("pydantic_ai", reason="needs the extra: pip install 'cutline[agent]'")

SESSION = "entire-cli_2a075ef1_low-narration"


def test_an_answer_counts_only_to_the_letter():
    asked = [probes.Probe("grep [____] src", "round_div"), probes.Probe("cat [____] now", "src/till/tax.py")]
    assert probes.right("1: round_div\n2: src/till/tax.py", asked) == 2
    assert probes.right("1. `round_div`\n2: till/tax.py", asked) == 1
    assert probes.right("2: round_div\nI think it is round_div", asked) == 0
    assert probes.right("", asked) == 0


@pytest.fixture(scope="module")
def path(shared: Path) -> Path:
    return shared / "data" / "sessions" / "claude-code" / f"{SESSION}.jsonl"


@pytest.fixture(scope="module")
def asked(path: Path) -> list[probes.Probe]:
    found, names = whole.read(path), pieces.Names()
    read = pieces.read(found.request, found.origins, names)
    drawn = probes.of(read, found.seams[0].message, found.seams[0].until, names, "salt")
    assert drawn == probes.of(read, found.seams[0].message, found.seams[0].until, names, "salt")
    return drawn


def test_a_blank_was_seen_before_the_seam_and_no_question_gives_it_away(path: Path, asked: list[probes.Probe]):
    found, names = whole.read(path), pieces.Names()
    read = pieces.read(found.request, found.origins, names)
    before = {
        names.written[name]
        for piece in read
        if piece.message < found.seams[0].message
        for line in piece.lines
        for name in line.parts
    }
    assert 1 <= len(asked) <= probes.MOST
    for one in asked:
        assert one.answer in before
        assert probes.BLANK in one.line
        assert not any(one.answer in other.line for other in asked)


def reader(request: Asked) -> Told:
    """Fills a blank with the first name of the context that stands in the line's own words there; else it passes."""
    prompt = json.loads(request.body)["messages"][-1]["content"]
    context, _, lines = prompt.rpartition("Each line below")
    answers = []
    for number, line in re.findall(r"(?m)^(\d+): (.*)$", lines):
        head, _, tail = line.partition(probes.BLANK)
        form = rf"{re.escape(head[-12:])}([\w./-]+){re.escape(tail[:4])}"
        hit = re.search(form, context)
        answers.append(f"{number}: {hit[1] if hit else 'unknown'}")
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "\n".join(answers)}}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    told = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
    return Told([json.dumps(told).encode()])


def bench(path: Path, model: str, url: str, *more: str) -> subprocess.CompletedProcess:
    env = {**environ, "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "none"}
    return subprocess.run(
        [sys.executable, "-m", "cutline", "bench", str(path), "--jobs", "1", "--model", model, *more],
        capture_output=True, text=True, env=env,
    )  # fmt: skip


@pytest.mark.slow
def test_each_context_is_sent_once_and_what_comes_back_is_graded(path: Path, tmp_path: Path):
    with Loopback(reader) as server:
        done = bench(path, "openai-chat:m", server.url, "-o", str(tmp_path))
        assert done.returncode == 0, done.stderr
        sent = [request for request in server.asked if request.target.endswith("/chat/completions")]
    told = json.loads((tmp_path / "probes.json").read_text())
    assert len(sent) == len(told)
    assert told[probes.NOTHING][0] == 0
    assert all(of == told[probes.NOTHING][1] > 0 for _, of in told.values())
    assert "to the letter" in done.stdout


@pytest.mark.slow
def test_a_provider_that_refuses_is_one_line_and_the_other_results_stand(path: Path, tmp_path: Path):
    refusal = json.dumps({"error": {"message": "no such key", "type": "invalid_request_error"}}).encode()
    with Loopback(lambda _: Told([refusal], status=401)) as server:
        done = bench(path, "openai-chat:m", server.url, "-o", str(tmp_path))
    assert done.returncode == 2
    assert "openai-chat:m" in done.stderr and "no such key" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert (tmp_path / "summary.json").exists()


def test_a_model_that_nobody_has_is_refused_before_the_work(path: Path):
    done = bench(path, "nobody:m", "http://127.0.0.1:9")
    assert done.returncode == 2
    assert "--model nobody:m" in done.stderr
