"""How often a false claim is doubted, and a true one: claims made of recorded sessions' own results and words.

    uv run python benchmarks/measure_claims.py

A true claim is a line of a command's result, with the command as evidence. A false one is the same with one number
raised by one (if the result does not hold that too), or with another command as evidence.

Then contradictions. Every text of an agent is once taken for the last one: what do the words up to it leave standing
both ways? And each of its sentences with a number or a plain verb is said again by a document: as it is, with the
number raised by one, or with a "not". Many of them are plans, code and listings, and claim nothing. Needs ../shared/data.
"""

from __future__ import annotations

import random
import re
import sys
from pathlib import Path

from cutline import contradictions, events, evidence
from cutline.blocks import Author, Event, Said, ToolCall
from cutline.checkpoint import Document, Fact
from cutline.errors import InputError
from cutline.sessions.clients import open_path
from cutline.specifics import value_of
from cutline.wire import anthropic as wire

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "sessions"
OTHERS = ("codex", "gemini-cli", "opencode", "pi")  # the rules were not written on these
NUMBER = re.compile(r"(?<![\w.,:/-])\d+(?![\w.,:/-])")
SAID_NUMBER = re.compile(r"(?<![\w.,:/#$`-])\d+(?![\w,:/.-])")
VERB = re.compile(r"\b(?:is|are|was|were|does|do)\b(?! not\b|n't)")
A_SESSION = 12  # claims taken from each, so that no long session decides alone


def main() -> None:
    """Print the rates."""
    if not DATA.is_dir():
        sys.exit("the recorded sessions are not on this machine: there is no ../shared/data")
    claims(histories("claude-code"))
    for name, clients in (("claude-code", ("claude-code",)), (", ".join(OTHERS), OTHERS)):
        both_ways(name, [history for client in clients for history in histories(client)])


def histories(client: str) -> list[list[Event]]:
    """Words and calls of a client's recorded sessions that can be read."""
    found = []
    for file in sorted(path for path in (DATA / client).rglob("*") if path.suffix in (".jsonl", ".json", ".db")):
        try:
            found.append(events.events(wire.read(open_path(file).history.body)))
        except InputError:
            continue
    return found


def claims(told: list[list[Event]]) -> None:
    chance = random.Random(20261202)
    rates = {"true": [0, 0], "off by one": [0, 0], "another command": [0, 0]}
    sessions = 0
    for history in told:
        calls = [event for event in history if isinstance(event, ToolCall)]
        record = evidence.Record(calls)
        lines = [(call, line) for call in calls if command(call) for line in worth(call)]
        sessions += bool(lines)
        for call, line in chance.sample(lines, min(A_SESSION, len(lines))):
            note(rates["true"], line, command(call), record)
            number = chance.choice(NUMBER.findall(line))
            raised = str(int(number) + 1)
            if raised not in (call.result or ""):
                false = re.sub(rf"(?<![\w.,:/-]){number}(?![\w.,:/-])", raised, line)
                note(rates["off by one"], false, command(call), record)
            others = [other for other in calls if command(other) and line not in (other.result or "")]
            if others:
                note(rates["another command"], line, command(chance.choice(others)), record)
    print(f"{sessions} sessions")
    show(rates)


def both_ways(name: str, told: list[list[Event]]) -> None:
    """Alarms over sessions as they are, and over documents made of their sentences."""
    rates = {"said again": [0, 0], "number raised": [0, 0], "denied": [0, 0]}
    texts, alarms = 0, set()
    for number, history in enumerate(told):
        for place, event in enumerate(history):
            if not isinstance(event, Said) or event.author is not Author.AGENT:
                continue
            texts += 1
            until = history[: place + 1]
            for pair in contradictions.find(until):
                alarms.add((number, pair.first.text, pair.second.text))
            for sentence in sentences(event.text):
                figure, verb = SAID_NUMBER.search(sentence), VERB.search(sentence)
                if figure or verb:
                    opposed(rates["said again"], until, sentence)
                if figure:
                    raised = f"{sentence[: figure.start()]}{int(figure[0]) + 1}{sentence[figure.end() :]}"
                    opposed(rates["number raised"], until, raised)
                if verb:
                    opposed(rates["denied"], until, f"{sentence[: verb.end()]} not{sentence[verb.end() :]}")
    print(f"contradictions in {name}: {len(told)} sessions, {texts} texts, {len(alarms)} alarms")
    for _, first, second in sorted(alarms):
        print(f"  “{first}” / “{second}”")
    show(rates)


def sentences(text: str) -> list[str]:
    lines = [line for line in text.splitlines() if not line.lstrip().startswith(("|", ">", "#", "```"))]
    parts = [part.strip(" *-") for line in lines for part in re.split(r"(?<=[.!?])\s+", line)]
    return [part for part in parts if 20 < len(part) < 140]


def opposed(row: list[int], told: list[Event], claim: str) -> None:
    document = Document("x", "nothing", "nothing", (Fact(claim, "inferred", ""),), (), (), "", "", 0)
    row[0] += bool(contradictions.find(told, document, len(told)))
    row[1] += 1


def show(rates: dict[str, list[int]]) -> None:
    for way, (doubted, of) in rates.items():
        print(f"{way:16}  doubted {doubted:4} of {of:4}  {100 * doubted / max(of, 1):5.1f} %")


def command(call: ToolCall) -> str:
    value = value_of(call.arguments)
    found = value.get("command") if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""


def worth(call: ToolCall) -> list[str]:
    """Lines of a result that a person would claim: some words, a whole number, no table."""
    lines = [line.strip() for line in (call.result or "").splitlines()[:400]]
    return [line for line in lines if 12 < len(line) < 120 and NUMBER.search(line) and len(line.split()) >= 3]


def note(row: list[int], claim: str, shown_by: str, record: evidence.Record) -> None:
    row[0] += record.doubt(Fact(claim, "measured", shown_by)) != ""
    row[1] += 1


if __name__ == "__main__":
    main()
