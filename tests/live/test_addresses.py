"""One call, one address: on the wire that the real client speaks, in the session file that it writes, in the record."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cutline import events
from cutline.measure import request_of
from cutline.record import Record

from . import (
    codex,
    gemini_cli,
    gemini_run,
    run,
    run_codex,
    run_opencode,
    run_pi,
    test_run_codex,
    test_run_gemini,
    test_run_opencode,
    test_run_pi,
    test_run_task,
    upstream,
)

pytestmark = pytest.mark.slow

TURNS = 3
TASK = "Do all parts agree?"


def claude(folder: Path) -> tuple[Any, Any, str]:
    home = run.Home.make(folder)
    script = test_run_task.script(home.project, test_run_task.in_text)[:TURNS]
    return home, upstream.Upstream([*script, [upstream.text("Yes.")]]), "claude-code"


def openai_codex(folder: Path) -> tuple[Any, Any, str]:
    home = run_codex.Home.make(folder)
    return (
        home,
        run_codex.Upstream([*test_run_codex.task(test_run_codex.by_itself)[:TURNS], [codex.said("Yes.")]]),
        "codex",
    )


def gemini(folder: Path) -> tuple[Any, Any, str]:
    home = gemini_run.Home.make(folder)
    answers = iter([*test_run_gemini.script()[:TURNS], [gemini_cli.text("Yes.")]])
    return home, gemini_run.upstream(lambda body: next(answers)), "gemini-cli"


def opencode(folder: Path) -> tuple[Any, Any, str]:
    home = run_opencode.Home.make(folder)
    script = test_run_opencode.script(home.project)[:TURNS]
    return home, run_opencode.provider([*script, run_opencode.Answer("Yes.")]), "opencode"


def pi(folder: Path) -> tuple[Any, Any, str]:
    home = run_pi.Home.make(folder)
    return home, run_pi.Upstream([*test_run_pi.script()[:TURNS], test_run_pi.Answer("Yes.")]), "pi"


@pytest.mark.parametrize("client", [claude, openai_codex, gemini, opencode, pi], ids=lambda made: made.__name__)
def test_the_wire_the_session_file_and_the_record_name_each_call_alike(
    tmp_path: Path, client: Callable[[Path], tuple[Any, Any, str]]
):
    home, provider, name = client(tmp_path)
    test_run_task.project(home.project)
    with provider as asked:
        ran = home.run(asked, TASK)
        assert ran.code == 0, ran.stderr[-2000:]
        command = ("record", "import", "--client", name, "--json")
        given = command if client in (openai_codex, opencode, pi) else (asked.url, *command)
        assert home.cutline(*given).code == 0
    session = ran.session["session"]
    with Record(home.record, readonly=True) as record:
        found: dict[str, set[str]] = {"turn": set(), "file": set()}
        for row in record.requests(session):
            if row.kind in found:
                made = events.calls(request_of(record.body(row.id))[0])
                found[row.kind] |= {one.call.address for one in made if one.result}
        assert len(found["turn"]) >= TURNS and found["turn"] == found["file"]
        assert all(record.calls(None, address) for address in found["turn"])
        assert record.faults() == []
