"""A session is killed at every event, before it is acted on, and goes on with the same words in another process."""

from __future__ import annotations

import asyncio
import os
import signal
import warnings
from pathlib import Path
from typing import Any

import pytest

from agent_made import Noting, opened, part, refuses, said, tool
from cutline.agent import events as ev
from cutline.agent import log as logs
from cutline.agent.face import Approval
from cutline.demo.model import Answer, Asked, Call, Model

pytest.importorskip("pydantic_ai", reason="needs the extra: pip install 'cutline[agent]'")
pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def loaded() -> None:
    """What the forked processes need is imported once, here."""
    import pydantic_ai.direct
    import pydantic_ai.models.anthropic
    import pydantic_ai.providers.anthropic  # noqa: F401


HINT = "Look at row 7, too."
FACT = {"claim": "token_2 is value-2", "basis": "measured", "evidence": "part_02.py"}
DOCUMENT = {"done": "three parts", "open": "one", "went_wrong": "nothing", "facts": [FACT]}
SCRIPT = [
    Answer(
        "I read part_00.py and part_01.py, because token_0 and token_1 must agree; I expect them last.",
        [Call("read_part", {"path": "part_00.py"}, "c0"), Call("read_part", {"path": "part_01.py"}, "c1")],
    ),
    Answer(
        "part_00.py has token_0 = 'value-0'. I count in part_02.py, because the deed has to be done once; I expect 1.",
        [Call("deed", {"path": "part_02.py"}, "c2")],
        thinking="carefully",
    ),
    Answer("part_02.py: the deed counts 1 (measured). A natural point.", [Call("micro_handoff", DOCUMENT, "c3")]),
    Answer(
        "I read part_03.py, because it is the last; I expect token_3.",
        [Call("read_part", {"path": "part_03.py"}, "c4")],
    ),
    Answer("All four agree."),
]


def by_history(asked: Asked) -> Answer:
    """The answer that comes behind what the history holds: a request that is made again is answered again."""
    texts = set(said(asked.raw)) | {joined for text in said(asked.raw) for joined in text.split("\n\n")}
    done = [n for n, answer in enumerate(SCRIPT) if answer.text in texts]
    return SCRIPT[done[-1] + 1 if done else 0]


async def live(path: Path, url: Any, deeds: Path) -> None:
    """What a process does: begin, or go on."""

    def deed(given: Any) -> str:
        with deeds.open("a") as handle:
            handle.write("done\n")
        return f"{len(deeds.read_text().splitlines())} deed"

    tools = [tool("read_part", part), tool("deed", deed, "run")]
    face = Noting(says=lambda asked: Approval(True))
    made = opened(
        path,
        url,
        tools=tools,
        face=face,
        rule=lambda call, t, p: ("ask", "a deed") if t.kind == "run" else ("allow", ""),
    )
    words = [words for _, event in logs.lines(path) for words in [event] if isinstance(event, ev.Hint | ev.Human)]

    def hint(event: ev.Event) -> None:
        if isinstance(event, ev.Started) and event.call == "c1" and not any(isinstance(one, ev.Hint) for one in words):
            made.session.hint(HINT)

    face.on = hint
    if not words:
        await made.session.turn("Do all parts agree?")
    elif made.session.state.active:
        await made.session.go_on()
    await made.close()


def process(path: Path, model: Any, deeds: Path, at: int | None, torn: bool) -> int:
    """Live in a process of its own, which is killed behind event `at`, or in the middle of writing it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the child makes no use of this process's threads
        pid = os.fork()
    if pid:
        return os.waitpid(pid, 0)[1]
    try:
        append = logs.Log.append

        def killing(log: logs.Log, event: ev.Event) -> None:
            if torn and log.count == at:
                os.write(log._file, b'{"n":%d,"at":1.0,"type":"ans' % log.count)
                os.kill(os.getpid(), signal.SIGKILL)
            append(log, event)
            if log.count - 1 == at:
                os.kill(os.getpid(), signal.SIGKILL)

        logs.Log.append = killing  # type: ignore[method-assign]
        asyncio.run(live(path, model, deeds))
        os._exit(0)
    except BaseException:
        import traceback

        traceback.print_exc()
        os._exit(1)


def words(path: Path) -> list[str]:
    """Every word that was said, in order, and what the calls that read gave."""
    found = []
    for _, event in logs.lines(path):
        if isinstance(event, ev.Human | ev.Hint):
            found.append(event.text)
        elif isinstance(event, ev.Answered):
            found += [one["content"] for one in event.message["parts"] if one["part_kind"] == "text"]
        elif isinstance(event, ev.Result) and event.name == "read_part":
            found.append(event.text)
    return found


@pytest.mark.parametrize("torn", [False, True], ids=["behind the event", "in its line"])
def test_every_event(tmp_path: Path, torn: bool):
    with Model([by_history] * 2_000, refuses=refuses) as model:
        whole = tmp_path / "whole.jsonl"
        assert process(whole, model, tmp_path / "whole.deeds", None, False) == 0
        events = [event for _, event in logs.lines(whole)]
        said_whole = sorted(words(whole))
        assert len(events) > 20 and HINT in said_whole and len(said_whole) == 2 + len(SCRIPT) + 3
        for at in range(len(events)):
            path, deeds = tmp_path / f"{at}.jsonl", tmp_path / f"{at}.deeds"
            assert process(path, model, deeds, at, torn) == signal.SIGKILL, at
            assert process(path, model, deeds, None, False) == 0, (at, events[at])
            # The hint is the human's, who types it once more if it was lost before it was there.
            assert sorted(words(path)) == said_whole, (at, events[at])
            done = deeds.read_text().splitlines() if deeds.exists() else []
            assert len(done) <= 1, (at, events[at])
            results = [event for _, event in logs.lines(path) if isinstance(event, ev.Result)]
            assert sorted(result.call for result in results) == ["c0", "c1", "c2", "c3", "c4"], at
            assert done or next(result for result in results if result.call == "c2").is_error, at
            ended = [event for _, event in logs.lines(path) if isinstance(event, ev.TurnEnded)]
            assert [one.reason for one in ended] == ["answered"], at
        assert model.refusals == []
