"""The agent's loop against a scripted model over real HTTP: every request is held against its provider's rules."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agent_made import MODELS, opened, refuses, said
from cutline.agent import events as ev
from cutline.demo.model import Answer, Call, Model

pytest.importorskip("pydantic_ai", reason="needs the extra: pip install 'cutline[agent]'")

FORMATS = list(MODELS)


def read(number: int) -> Answer:
    before = f"part_{number - 1:02}.py has token_{number - 1} = 'value-{number - 1}' (measured).\n\n" if number else ""
    words = f"{before}I read part_{number:02}.py, because token_{number} decides whether the parts agree; I expect it last."
    return Answer(words, [Call("read_part", {"path": f"part_{number:02}.py"})])


def checkpoint(number: int) -> Answer:
    fact = {"claim": f"token_{number} is value-{number}", "basis": "measured", "evidence": f"part_{number:02}.py"}
    document = {"done": f"{number + 1} parts", "open": "the rest", "went_wrong": "nothing", "facts": [fact]}
    words = f"part_{number:02}.py has token_{number} = 'value-{number}' (measured). A natural point."
    return Answer(words, [Call("micro_handoff", document)])


@pytest.mark.parametrize("format", FORMATS)
def test_three_seams_and_every_word(tmp_path: Path, format: str):
    script: list[Any] = []
    for number in range(9):
        script.append(read(number))
        if number in (2, 5, 7):
            script.append(checkpoint(number))
    script.append(Answer("All parts agree."))

    async def go(model: Model) -> Any:
        made = opened(tmp_path / "s.jsonl", model, format, record=tmp_path / "record.db")
        ended = await made.session.turn("Do all parts agree?")
        await made.close()
        return made, ended

    with Model(script, refuses=refuses) as model:
        made, ended = asyncio.run(go(model))
        assert model.refusals == [] and model.unused == 0
    assert ended.reason == "answered"
    report = made.transport.report()
    assert report.faults == () and report.requests == len(script)
    assert len(report.checkpoints) == 3 and len(made.face.of(ev.Checkpoint)) == 3
    last = said(model.main[-1].raw)
    for number in range(9):
        assert any(f"I read part_{number:02}.py, because" in text for text in last), number
        assert any(f"row_100 = {100 * (number + 3)}" in text for text in last) == (number > 7), number
    # What the session holds is whole.
    assert sum("row_100" in event.text for event in made.face.of(ev.Result)) == 9
