"""The tables of docs/narration.md: how much agents narrate, by model and year, by tool, and what hidden narration costs.

    uv run python benchmarks/measure_narration.py
    uv run python benchmarks/measure_narration.py --draw

Every recorded session is read as its client would go on with it; of a call that stands in several files only the first
counts. `--draw` prints the calls that tests/narration_labels.json was made from: file, message, block, address. It knows
nothing of what narration says of them. Needs ../shared/data.
"""

from __future__ import annotations

import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from cutline import events, narration
from cutline.blocks import Author, Event, Kind, Said, ToolCall
from cutline.errors import CutlineError
from cutline.sessions.clients import EVERY, open_path
from cutline.sessions.cutting import figures
from cutline.sessions.model import Session
from cutline.wire import anthropic as wire
from cutline.wire.anthropic import Request

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "sessions"
PARTS = re.compile(r"\(there are: (.*?)(?:, …)?\)$")
FAMILY = re.compile(r"claude-(?:\d-\d-)?(opus|sonnet|haiku|fable)(?:-(\d+))?|(gpt-\d+|gemini-\d+|deepseek)")
SEED = 7
AT_RANDOM = {"claude-code": 40, "codex": 24, "opencode": 14, "gemini-cli": 6, "pi": 14, "copilot-cli": 6} | {
    "openhands": 4,
    "swe-agent": 6,
    "mini-swe-agent": 10,
    "inspect": 6,
}
WITH_WORDS = {"claude-code": 70, "codex": 34, "opencode": 12, "gemini-cli": 8, "pi": 30, "copilot-cli": 10} | {
    "openhands": 4,
    "swe-agent": 12,
    "mini-swe-agent": 14,
    "inspect": 6,
}
FEWEST = 20  # calls that a row has at least; the others are summed up


def main() -> None:
    """Print the tables, or the draw."""
    if not DATA.is_dir():
        sys.exit("the recorded sessions are not on this machine: there is no ../shared/data")
    if "--draw" in sys.argv[1:]:
        draw()
    else:
        measure()


def histories() -> Iterator[tuple[str, str, Session, Request]]:
    """(client, file, session, its history) of every recorded session; of a file that holds many the first eight."""
    for client in EVERY:
        for path in sorted(path for path in (DATA / client).rglob("*") if path.is_file()):
            for part, session in opened(path):
                try:
                    request = wire.read(session.history.body)
                except CutlineError:
                    continue
                name = path.relative_to(DATA).as_posix()
                yield client, f"{name}#{part}" if part else name, session, request


def opened(path: Path) -> Iterator[tuple[str, Session]]:
    try:
        yield "", open_path(path)
    except CutlineError as error:
        several = PARTS.search(str(error))
        for part in several[1].split(", ") if several else ():
            try:
                yield part, open_path(path, part)
            except CutlineError:
                continue


def measure() -> None:
    models: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    tools: dict[str, Counter[str]] = defaultdict(Counter)
    seen: set[tuple[str, str]] = set()
    hidden: list[str] = []
    for _, _, session, request in histories():
        label = labels(session)
        every = events.events(request)
        spoken, plain = map(unsaid, (every, events.events(request, narrated=False)))
        calls = [event for event in every if isinstance(event, ToolCall) and not narration.is_own(event.name)]
        ways = [narration.review(told).verdicts for told in (plain, spoken, every)]
        before = {id(call) for call, words in announced(every) if words}
        for call, text, shown, whole in zip(calls, *ways, strict=True):
            key = call.address, (call.result or "")[:200]
            if key in seen:
                continue
            seen.add(key)
            way = "text" if not text.hole else "blocks" if not shown.hole else "say" if not whole.hole else "none"
            for row in (models[label[call.batch]], models["all", ""], tools[call.name], tools["all"]):
                row["calls"] += 1
                row[way] += 1
                row["words"] += id(call) in before
                row["intent"] += whole.intent
                row["outcome"] += whole.outcome
                row["ritual"] += whole.ritual
        hidden += empty(session, request)
    print(
        "| model | year | calls | words before | only filler | intent | outcome "
        "| narrated in text | in narration blocks | by `say` | holes |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for (model, year), row in ranked(models):
        shown = ("words", "ritual", "intent", "outcome", "text", "blocks", "say", "none")
        print(f"| {model} | {year} | {row['calls']:,} | {' | '.join(share(row[key], row['calls']) for key in shown)} |")
    print("\n| tool | calls | words before | intent | outcome | holes |\n|---|---|---|---|---|---|")
    for tool, row in ranked(tools):
        shown = ("words", "intent", "outcome", "none")
        print(f"| {tool} | {row['calls']:,} | {' | '.join(share(row[key], row['calls']) for key in shown)} |")
    print(
        "\n| model | empty narration blocks | their bytes | of its history | output tokens of their answers "
        "| of those shown, estimated | hidden |\n|---|---|---|---|---|---|---|"
    )
    print("\n".join(hidden) or "| none |")


def unsaid(told: list[Event]) -> list[Event]:
    """The same without `say` calls."""
    return [event for event in told if not (isinstance(event, ToolCall) and wire.is_say(event.name))]


def labels(session: Session) -> defaultdict[int, tuple[str, str]]:
    """For each message the family and year of the model that wrote it; the session's where none is recorded."""
    history = session.history
    found = defaultdict(lambda: (family(history.model), year(session.last)))
    for request in history.requests:
        found[request.message] = family(request.model or history.model), year(request.timestamp or session.last)
    return found


def family(model: str) -> str:
    found = FAMILY.search(model.lower())
    if not found:
        return "not recorded" if not model or "synthetic" in model else "others"
    if found[3]:
        return found[3].replace("gpt", "GPT").replace("gemini", "Gemini").replace("deepseek", "DeepSeek")
    version = found[2] if found[2] and len(found[2]) < 3 else "3" if "claude-3" in model else "4"
    return f"Claude {found[1].title()} {version}"


def year(stamp: str) -> str:
    return stamp[:4] if re.match(r"20\d\d-", stamp) else "?"


def announced(told: list[Event]) -> Iterator[tuple[ToolCall, bool]]:
    """Each call with whether the agent said anything since the batch before it."""
    words, batch = False, None
    for event in told:
        if isinstance(event, Said):
            words = words or (event.author is Author.AGENT and bool(event.text.strip()))
            continue
        if event.batch != batch:
            batch, had, words = event.batch, words, False
        yield event, had or words


def empty(session: Session, request: Request) -> list[str]:
    """A row about a session's narration blocks without words, if it has any."""
    history = session.history
    per_byte = figures(history, request).calibration.per_byte
    made = {one.message: one.usage.output for one in history.requests}
    bare, size, output, shown = 0, 0, 0, 0.0
    for number, message in enumerate(request.messages):
        here = [
            block.end - block.start
            for block in message.blocks
            if block.kind is Kind.THINKING
            and wire.is_narration(request, block)
            and len(set(wire.text_span(request, block))) == 1
        ]
        bare, size = bare + len(here), size + sum(here)
        if here:
            output += made.get(number, 0)
            shown += per_byte * sum(b.end - b.start for b in message.blocks if b.kind is not Kind.THINKING)
    if not bare:
        return []
    whole = len(request.body)
    return [
        f"| {family(history.model)} | {bare} | {size:,} | {share(size, whole)} | {output:,} | {shown:,.0f} | {output - shown:,.0f} |"
    ]


def ranked(rows: dict) -> Iterator[tuple]:  # type: ignore[type-arg]
    rest: Counter[str] = Counter()
    for key, row in sorted(rows.items(), key=lambda item: (-item[1]["calls"], item[0])):
        if row["calls"] >= FEWEST:
            yield key, row
        else:
            rest.update(row)
    if rest:
        first = next(iter(rows))
        yield (("fewer than 20 each", "") if isinstance(first, tuple) else "fewer than 20 each"), rest


def share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "-"


def draw() -> None:
    drawn: dict[str, list[tuple[str, int, int, str, bool]]] = defaultdict(list)
    seen: set[tuple[str, str]] = set()
    for client, name, _, request in histories():
        places = {(found.call.batch, found.call.address): found for found in events.calls(request)}
        for call, words in announced(events.events(request)):
            key = call.address, (call.result or "")[:200]
            if narration.is_own(call.name) or key in seen:
                continue
            seen.add(key)
            found = places[call.batch, call.address]
            drawn[client].append((name, found.message, found.block, call.address, words))
    chance = random.Random(SEED)
    for client, of in drawn.items():
        first = chance.sample(of, min(AT_RANDOM.get(client, 0), len(of)))
        rest = [one for one in of if one[4] and one not in first]
        for one in first + chance.sample(rest, min(WITH_WORDS.get(client, 0), len(rest))):
            print(*one[:4])


if __name__ == "__main__":
    main()
