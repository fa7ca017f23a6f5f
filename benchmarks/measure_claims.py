"""How often a false claim is doubted, and a true one: claims made of recorded sessions' own results.

    uv run python benchmarks/measure_claims.py

A true claim is a line of a command's result, with the command as evidence. A false one is the same with one number
raised by one (if the result does not hold that too), or with another command as evidence. Needs ../shared/data.
"""

from __future__ import annotations

import random
import re
import sys
from pathlib import Path

from cutline import events, evidence
from cutline.blocks import ToolCall
from cutline.checkpoint import Fact
from cutline.errors import InputError
from cutline.sessions.claude_code import open_session
from cutline.specifics import value_of
from cutline.wire import anthropic as wire

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "sessions" / "claude-code"
NUMBER = re.compile(r"(?<![\w.,:/-])\d+(?![\w.,:/-])")
A_SESSION = 12  # claims taken from each, so that no long session decides alone


def main() -> None:
    """Print the rates."""
    if not DATA.is_dir():
        sys.exit("the recorded sessions are not on this machine: there is no ../shared/data")
    chance = random.Random(20261202)
    told = {"true": [0, 0], "off by one": [0, 0], "another command": [0, 0]}
    sessions = 0
    for file in sorted(DATA.rglob("*.jsonl")):
        try:
            history = events.events(wire.read(open_session(file).history.body))
        except InputError:
            continue
        calls = [event for event in history if isinstance(event, ToolCall)]
        lines = [(call, line) for call in calls if command(call) for line in worth(call)]
        sessions += bool(lines)
        for call, line in chance.sample(lines, min(A_SESSION, len(lines))):
            note(told["true"], line, command(call), calls)
            number = chance.choice(NUMBER.findall(line))
            raised = str(int(number) + 1)
            if raised not in (call.result or ""):
                note(
                    told["off by one"],
                    re.sub(rf"(?<![\w.,:/-]){number}(?![\w.,:/-])", raised, line),
                    command(call),
                    calls,
                )
            others = [other for other in calls if command(other) and line not in (other.result or "")]
            if others:
                note(told["another command"], line, command(chance.choice(others)), calls)
    print(f"{sessions} sessions")
    for way, (doubted, of) in told.items():
        print(f"{way:16}  doubted {doubted:4} of {of:4}  {100 * doubted / max(of, 1):5.1f} %")


def command(call: ToolCall) -> str:
    value = value_of(call.arguments)
    found = value.get("command") if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""


def worth(call: ToolCall) -> list[str]:
    """Lines of a result that a person would claim: some words, a whole number, no table."""
    lines = [line.strip() for line in (call.result or "").splitlines()[:400]]
    return [line for line in lines if 12 < len(line) < 120 and NUMBER.search(line) and len(line.split()) >= 3]


def note(row: list[int], claim: str, shown_by: str, calls: list[ToolCall]) -> None:
    row[0] += evidence.doubt(Fact(claim, "measured", shown_by), calls) != ""
    row[1] += 1


if __name__ == "__main__":
    main()
