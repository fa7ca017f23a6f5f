"""What a cut costs, as ratios within one run.

    uv run python benchmarks/bench_cut.py [--json]

Each ratio is measured side by side: the two sides take turns, and the medians of their CPU time are compared,
because the speed of a machine changes from second to second and other programs take their share of it. The
other side is what a program without Cutline might do with the same bytes: read them with orjson, or read them
and write them again. One recorded history is told in each format (`wires`).
"""

import argparse
import gc
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson
import wires
import workload

from cutline import cut, verify
from cutline.memo import Memo

SIZES = {"1 MB": 1_000_000, "5 MB": 5_000_000}


@dataclass
class Row:
    """One measurement: `value` is held against `target` (at most, or at least where `least`)."""

    what: str
    value: float
    unit: str
    target: float | None = None
    least: bool = False
    detail: str = ""

    @property
    def verdict(self) -> str:
        if self.target is None:
            return ""
        held = self.value >= self.target if self.least else self.value <= self.target
        return "reached" if held else "missed"


def side_by_side(
    one: Callable[[], object],
    other: Callable[[], object],
    seconds: float = 3.0,
    clock: Callable[[], float] = time.process_time,
) -> tuple[float, float]:
    """Median seconds of the two, taken in turns."""
    times: tuple[list[float], list[float]] = ([], [])
    one(), other()
    gc.collect()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[0]) < 5:
        for run, taken in zip((one, other), times, strict=True):
            start = clock()
            run()
            taken.append(clock() - start)
    return statistics.median(times[0]), statistics.median(times[1])


def reread(body: bytes) -> bytes:
    """The least that any program does that changes a body: read it, write it."""
    return orjson.dumps(orjson.loads(body))


def against_orjson(what: str, body: bytes, target: float | None = None, **options: Any) -> Row:
    assert cut(body, **options).changed
    ours, theirs = side_by_side(lambda: cut(body, **options), lambda: reread(body), 2)
    detail = f"{ours * 1e3:.1f} ms against {theirs * 1e3:.1f} ms, {len(body) / 1e6:.2f} MB"
    return Row(f"first cut, {what}, against orjson loads + dumps", ours / theirs, "x", target, detail=detail)


def other_formats() -> dict[str, tuple[bytes, bytes]]:
    """By format and size, a body and the next request of the same history."""
    wires.WIRES["converse"] = wires.Wire("Bedrock Converse", "", _converse_top, "messages", "}", _converse)
    found = {}
    for format in ("openai_chat", "openai_responses", "gemini", "converse"):
        for name, size in SIZES.items():
            first, second = wires.session(size, format, 2)
            found[f"{wires.WIRES[format].title}, {name}"] = first, second
    return found


def _converse(messages: list[wires.Item]) -> list[wires.Item]:
    items = []
    for message in messages:
        blocks: list[wires.Item] = []
        for block in wires._blocks(message):
            if block["type"] == "text" and block["text"].strip():
                blocks.append({"text": block["text"]})
            elif block["type"] == "tool_use":
                made = {"toolUseId": block["id"], "name": block["name"], "input": block["input"]}
                blocks.append({"toolUse": made})
            elif block["type"] == "tool_result":
                content = [{"text": wires._words(block.get("content")) or "-"}]
                blocks.append({"toolResult": {"toolUseId": block["tool_use_id"], "content": content}})
        if blocks:
            items.append({"role": message["role"], "content": blocks})
    return items


def _converse_top() -> wires.Item:
    tools = [
        {"toolSpec": {"name": one["name"], "inputSchema": {"json": one["input_schema"]}}} for one in workload.tools()
    ]
    return {"modelId": "amazon.nova-pro-v1:0", "system": [{"text": wires.SYSTEM}], "toolConfig": {"tools": tools}}


def grown(what: str, before: bytes, after: bytes) -> list[Row]:
    """The next request of a history whose cut is remembered."""
    memo = Memo()
    memo.cut(before)
    known = memo._entries, memo._read

    def grow() -> bytes:
        memo._entries, memo._read = map(list, known)  # as it was before the turn, which must be new to it each time
        return memo.cut(after).body

    assert grow() == cut(after).body
    ours, theirs = side_by_side(grow, lambda: reread(after))
    detail = f"{ours * 1e3:.2f} ms against {theirs * 1e3:.1f} ms"
    return [Row(f"grown by one turn, {what}, against orjson loads + dumps", ours / theirs, "x", 0.3, detail=detail)]


def without_the_name(what: str, body: bytes) -> Row:
    body = body.replace(b"micro_handoff", b"micro-handoff")
    assert not cut(body).changed
    ours, theirs = side_by_side(lambda: cut(body), lambda: orjson.loads(body))
    detail = f"{ours * 1e3:.3f} ms against {theirs * 1e3:.2f} ms"
    return Row(
        f"no checkpoint's name in the bytes, {what}: faster than orjson loads", theirs / ours, "x", 5, True, detail
    )


def linear(bodies: dict[int, bytes], few: bytes, many: bytes) -> list[Row]:
    """Time for each byte at several times the size; and for each of four times as many tiny messages."""
    rows = []
    for times in (2, 4, 8):
        ours, once = side_by_side(lambda times=times: cut(bodies[times]), lambda: cut(bodies[1]))
        grows = len(bodies[times]) / len(bodies[1])
        detail = f"{ours * 1e3:.1f} ms against {once * 1e3:.1f} ms, {len(bodies[times]) / 1e6:.1f} MB"
        rows.append(Row(f"linear: {times} times the history, for a byte", ours / once / grows, "x", 1.2, detail=detail))
    ours, theirs = side_by_side(lambda: cut(many), lambda: cut(few))
    detail = f"{ours * 1e3:.0f} ms against {theirs * 1e3:.0f} ms"
    rows.append(
        Row("linear: 40,000 tiny messages against 10,000, for a message", ours / theirs / 4, "x", 1.3, detail=detail)
    )
    return rows


def memory(what: str, body: bytes) -> Row:
    """Peak of what a cut allocates, its output included, without the proof."""
    cut(body)
    gc.collect()
    tracemalloc.start()
    done = cut(body)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    detail = f"{peak / 1e6:.1f} MB for {len(body) / 1e6:.2f} MB, the output of {len(done.body) / 1e6:.2f} MB included"
    return Row(f"peak memory beyond the input, {what}", peak / len(body), "x", 3, detail=detail)


def proof(what: str, body: bytes) -> Row:
    after = cut(body).body
    ours, theirs = side_by_side(lambda: verify(body, after), lambda: reread(body))
    detail = f"{ours * 1e3:.0f} ms against {theirs * 1e3:.1f} ms"
    return Row(f"the proof, {what}, against orjson loads + dumps", ours / theirs, "x", detail=detail)


def process(what: str, code: list[str], target: float) -> Row:
    """CPU time of a whole process, in milliseconds, with its byte code at hand; a bare interpreter's beside it."""
    # Installed packages have their byte code; a clone under PYTHONDONTWRITEBYTECODE would compile all of it anew.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(Path(tempfile.gettempdir(), f"cutline-bench-{os.getuid()}"))

    def run(command: list[str]) -> None:
        subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL, env=environment)

    def spent_by_children() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    ours, bare = side_by_side(lambda: run(code), lambda: run(["-c", "pass"]), clock=spent_by_children)
    return Row(what, ours * 1e3, "ms", target, detail=f"as a process; a bare interpreter: {bare * 1e3:.0f} ms")


def measure() -> tuple[list[Row], str]:
    found, source = workload.histories()
    one = min(found, key=lambda messages: abs(len(json.dumps(messages)) - 1_280_000))
    five = workload.chained(found, 5_000_000)
    bodies = {"1 MB": workload.body(one), "5 MB": workload.body(five)}
    later = {"1 MB": workload.one_turn_later(bodies["1 MB"]), "5 MB": workload.one_turn_later(bodies["5 MB"])}
    others = other_formats()
    larger = {times: workload.body(one * times) for times in (1, 2, 4, 8)}
    few, many = (workload.body(workload.tiny(count)) for count in (10_000, 40_000))
    del found, one, five
    gc.collect()
    gc.freeze()  # what was needed to make the bodies is nobody's to collect
    rows = []
    for what, body in [*bodies.items(), *((what, first) for what, (first, _) in others.items())]:
        rows.append(against_orjson(what, body, 1.5))
        rows.append(against_orjson(f"{what}, without the trace", body, trace="none"))
    for what, body in bodies.items():
        rows += grown(what, body, later[what])
    for what, (first, second) in others.items():
        rows += grown(what, first, second)
    rows += [without_the_name(what, body) for what, body in bodies.items()]
    rows += linear(larger, few, many)
    rows += [memory(what, body) for what, body in bodies.items()]
    rows += [proof(what, body) for what, body in bodies.items()]
    rows += [proof(what, first) for what, (first, _) in others.items()]
    rows.append(process("cutline --help", ["-c", "from cutline.cli import main; main(['--help'])"], 150))
    rows.append(process("import cutline", ["-c", "import cutline"], 60))
    return rows, source


def main() -> None:
    parser = argparse.ArgumentParser(description="What a cut costs, as ratios within one run.")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    asked = parser.parse_args()
    rows, source = measure()
    if asked.json:
        print(
            json.dumps({"bodies": source, "rows": [asdict(row) | {"verdict": row.verdict} for row in rows]}, indent=1)
        )
        return
    print(f"Bodies: {source}. Python {sys.version.split()[0]}, orjson {orjson.__version__}.\n")
    width = max(len(row.what) for row in rows)
    for row in rows:
        sign = "≥" if row.least else "≤"
        target = f"{sign} {row.target:g} {row.unit}" if row.target is not None else ""
        print(f"{row.what:<{width}}  {row.value:8.2f} {row.unit:<2}  {target:<8}  {row.verdict:<7}  {row.detail}")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main()
