"""Narration against a person's labels: 330 recorded calls, labelled by the rules of docs/narration.md.

A label has three digits: intent, outcome, ritual. Of some calls there is a second one, given later without seeing the
first. No recorded text is stored, only where the call stands: the file, and the call's address in it. Two thirds of the
files were used while the recognition was made; the rest, by a hash of the name, were not looked at.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path

import pytest

from cutline import events, narration
from cutline.blocks import ToolCall
from cutline.narration import Verdict
from cutline.sessions.clients import open_path
from cutline.wire import anthropic as wire

LABELS = json.loads((Path(__file__).parent / "narration_labels.json").read_text(encoding="utf-8"))


def held_out(name: str) -> bool:
    file = name.partition("#")[0]
    return int(hashlib.sha256(file.encode()).hexdigest(), 16) % 3 == 0


def kinds(label: str) -> dict[str, bool]:
    intent, outcome, ritual = (digit == "1" for digit in label)
    return {"intent": intent, "outcome": outcome, "narrated": intent and outcome, "ritual": ritual}


def judged(path: Path, part: str) -> dict[str, Verdict]:
    """The verdict on each call of a session, by the call's address; the second of two equal calls is "…/2"."""
    told = events.events(wire.read(open_path(path, part).history.body))
    calls = [event for event in told if isinstance(event, ToolCall) and not narration.is_own(event.name)]
    found: dict[str, Verdict] = {}
    seen: dict[str, int] = {}
    for call, verdict in zip(calls, narration.review(told).verdicts, strict=True):
        number = seen[call.address] = seen.get(call.address, 0) + 1
        found[call.address if number == 1 else f"{call.address}/{number}"] = verdict
    return found


@pytest.fixture(scope="module")
def counts(shared: Path) -> dict[bool, Counter[tuple[str, bool, bool]]]:
    """For what was held out and what was not: how often each of (kind, said, labelled)."""
    found: dict[bool, Counter[tuple[str, bool, bool]]] = {True: Counter(), False: Counter()}
    for name, rows in LABELS.items():
        file, _, part = name.partition("#")
        verdicts = judged(shared / "data" / "sessions" / file, part)
        for address, label, *_ in rows:
            verdict = verdicts[address]
            said = kinds(f"{verdict.intent:d}{verdict.outcome:d}{verdict.ritual:d}")
            for kind, labelled in kinds(label).items():
                found[held_out(name)][kind, said[kind], labelled] += 1
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("held", "kind", "precision", "recall"),
    [
        (False, "intent", 0.90, 0.72),
        (False, "outcome", 0.94, 0.88),
        (False, "narrated", 0.92, 0.62),
        (False, "ritual", 0.86, 0.86),
        (True, "intent", 0.78, 0.72),
        (True, "outcome", 0.85, 0.60),
        (True, "narrated", 0.68, 0.42),
        (True, "ritual", 0.75, 0.68),
    ],
)
def test_it_is_right_as_often_as_docs_say(
    counts: dict[bool, Counter[tuple[str, bool, bool]]], held: bool, kind: str, precision: float, recall: float
):
    of = counts[held]
    hits, false, missed = of[kind, True, True], of[kind, True, False], of[kind, False, True]
    found = f"{kind}: precision {hits}/{hits + false}, recall {hits}/{hits + missed}"
    assert hits / (hits + false) >= precision, found
    assert hits / (hits + missed) >= recall, found


def test_the_labels_are_of_all_clients_and_hold_filler():
    rows = [(name, label) for name, rows in LABELS.items() for _, label, *_ in rows]
    clients = Counter(name.split("/")[0] for name, _ in rows)
    assert len(rows) == 330 and len(clients) == 10 and min(clients.values()) >= 8
    assert sum(kinds(label)["ritual"] for _, label in rows) >= 50
    assert sum(kinds(label)["narrated"] for _, label in rows) >= 30
    assert 0.25 < sum(held_out(name) for name, _ in rows) / len(rows) < 0.42


@pytest.mark.parametrize(("kind", "least"), [("intent", 58), ("outcome", 60), ("ritual", 59)])
def test_the_second_labels_agree_with_the_first(kind: str, least: int):
    pairs = [(kinds(row[1])[kind], kinds(row[2])[kind]) for rows in LABELS.values() for row in rows if len(row) == 3]
    assert len(pairs) == 60
    assert sum(first == second for first, second in pairs) >= least
