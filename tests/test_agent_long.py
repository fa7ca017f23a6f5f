"""A thousand calls in one session: what a turn costs in time and memory stays small."""

from __future__ import annotations

import asyncio
import gc
import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agent_made import Noting, opened, part, tool
from cutline.agent import events as ev
from cutline.demo.model import Answer, Call, Model

pytest.importorskip("pydantic_ai", reason="needs the extra: pip install 'cutline[agent]'")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")]

CALLS, EVERY = 1_000, 20


class Forgetting(Noting):
    """A face that keeps no event, and notes when each request was asked and answered."""

    def __init__(self) -> None:
        super().__init__()
        self.times: list[float] = []
        self.memory: list[int] = []
        self.seams = 0

    def show(self, event: ev.Event) -> None:
        if isinstance(event, ev.Asked):
            self.times.append(time.thread_time())  # the loop's own; the machine may be busy
            if event.number in (200, CALLS):
                gc.collect()
                self.memory.append(int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize())
        self.seams += isinstance(event, ev.Checkpoint)


def script() -> list[Any]:
    answers = []
    for number in range(CALLS):
        words = f"I read part_{number % 100:02}.py, because step {number} needs its token; I expect it last."
        answers.append(Answer(words, [Call("read_part", {"path": f"part_{number % 100:02}.py", "step": number})]))
        if number % EVERY == EVERY - 1:
            document = {"done": f"{number + 1} steps", "open": "the rest", "went_wrong": "nothing"}
            answers.append(Answer(f"{number + 1} steps are done.", [Call("micro_handoff", document)]))
    return [*answers, Answer("Done.")]


def live(url: str, path: Path) -> None:
    """The session, in a process of its own: the scripted model keeps what it was sent, and is not to be weighed."""
    face = Forgetting()

    async def go() -> None:
        made = opened(
            path, SimpleNamespace(url=url), face=face, tools=[tool("read_part", part)], record=path.parent / "r.db"
        )
        ended = await made.session.turn("Go.")
        assert ended.reason == "answered" and made.transport.report().faults == () and face.seams == CALLS // EVERY
        await made.close()

    asyncio.run(go())
    turns = [after - before for before, after in zip(face.times, face.times[1:])]
    told = {
        "early": statistics.median(turns[50:250]),
        "late": statistics.median(turns[-200:]),
        "grown": face.memory[-1] - face.memory[0],
    }
    print(json.dumps(told))


def test_a_thousand_calls(tmp_path: Path):
    code = "import sys, pathlib, test_agent_long as t; t.live(sys.argv[1], pathlib.Path(sys.argv[2]))"
    with Model(script()) as model:
        command = [sys.executable, "-c", code, model.url, str(tmp_path / "s.jsonl")]
        done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, timeout=460)
        assert done.returncode == 0, done.stderr
        assert model.unused == 0
    told = json.loads(done.stdout)
    print(told)
    # The provider library reads the whole history for each request (2.3 MB in the end): a turn grows by that, in ms.
    # The memory is the working space for reading, cutting and proving a body of that size; it is used again each time.
    assert told["late"] < 0.2 and told["grown"] < 250_000_000
