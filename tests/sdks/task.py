"""The task that each SDK's agent carries out: twelve parts read, two checkpoints, an old result recalled.

`holds` is what must be true of it behind every SDK.
"""

from __future__ import annotations

import json
from typing import Any

import cutline

from .provider import Provider, Turn

PARTS, SEAMS = 12, (6, 10)
GO = "Do all parts agree?"
END = "All parts agree."
TOOL = "read_part"
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
ABOUT = "Reads one part."


def path(number: int) -> str:
    return f"part_{number:02}.py"


def read_part(path: str) -> str:
    """The agent's one tool of its own."""
    number = int(path[5:7])
    lines = [f"row_{n} = {n * (number + 3)}  # of part {number}" for n in range(120)]
    lines[57] = f"token_{number} = '{token(number)}'"
    return "\n".join(lines)


def token(number: int) -> str:
    return f"{(number + 1) * 2654435761 % 2**32:08x}"


def intent(number: int) -> str:
    return f"I read {path(number)}, because token_{number} decides whether the parts agree; I expect it near line 58."


def outcome(number: int) -> str:
    return f"{path(number)} has token_{number} = '{token(number)}' (measured)."


def script() -> list[Turn]:
    """The agent's answers."""
    turns = []
    for number in range(PARTS):
        words = intent(number) if not number else f"{outcome(number - 1)}\n\n{intent(number)}"
        turns.append(Turn(words, [(f"call_r{number}", TOOL, {"path": path(number)})]))
        if number + 1 in SEAMS:
            fact = {"claim": f"token_{number} is {token(number)}", "basis": "measured", "evidence": path(number)}
            document = {"done": f"{number + 1} parts", "open": "the rest", "went_wrong": "nothing", "facts": [fact]}
            words = f"{outcome(number)}\n\nA natural point: {number + 1} of {PARTS} parts agree."
            turns.append(Turn(words, [(f"call_c{number}", "micro_handoff", document)]))
    words = f"{outcome(PARTS - 1)}\n\nI recall part 3, because its row_100 matters now; I expect 600."
    turns.append(Turn(words, [("call_x", "recall", {"what": f"'{token(3)}'"})]))
    turns.append(Turn(END))
    return turns


def run_own(name: str, arguments: dict[str, Any]) -> str:
    """The answer of the program's own tool."""
    assert name == TOOL, name
    return read_part(arguments["path"])


def holds(provider: Provider, through: cutline.Transport, *, failed: int = 0) -> None:
    """Nothing was refused, the history more than halved twice, its beginning stable, every word there.

    Args:
        failed: so many requests were answered with an error, and repeated by the SDK.
    """
    assert provider.refusals == [] and provider.unused == 0
    report = through.report()
    assert report.faults == ()
    assert len(provider.posted) == len(script()) + failed
    assert report.requests == len(provider.posted) and report.refused == failed
    assert report.sent == sum(len(posted.raw) for posted in provider.posted)
    counted = [len(posted.raw) // 4 for n, posted in enumerate(provider.posted) if n not in provider.failing]
    assert (report.used.total_input, report.used.output) == (sum(counted), 20 * len(counted))

    # The history is more than halved at each checkpoint, and the report says by how much.
    assert len(report.checkpoints) == len(SEAMS)
    assert all(step.sent_messages < step.whole_messages / 2 for step in report.checkpoints)
    sizes = [len(json.dumps(posted.history)) for posted in provider.posted]
    seams = [n for n in range(1, len(sizes)) if sizes[n] < sizes[n - 1]]
    assert len(seams) == len(SEAMS) and all(sizes[n] < sizes[n - 1] / 2 for n in seams)

    # Between checkpoints each request begins with the one before it; a repeated one is the same bytes.
    histories = [posted.history for posted in provider.posted]
    for n in range(1, len(histories)):
        if n not in seams:
            assert histories[n][: len(histories[n - 1])] == histories[n - 1], f"request {n} changed its beginning"
    for n in provider.failing:
        assert provider.posted[n].raw == provider.posted[n + 1].raw

    # Every word is there, nothing that was read before the last checkpoint is, and the recalled call came back.
    last = json.dumps(histories[-1])
    for number in range(PARTS):
        assert json.dumps(intent(number))[1:-1] in last and json.dumps(outcome(number))[1:-1] in last, number
        shown = f"row_100 = {100 * (number + 3)}" in last
        assert shown == (number >= SEAMS[-1]), number
    assert "calls with these words" in last and TOOL in last
