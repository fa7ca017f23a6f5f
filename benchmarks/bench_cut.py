"""What a cut costs, as ratios within one run.

    uv run python benchmarks/bench_cut.py [--json]

Each ratio is measured side by side: the two sides take turns, and the medians are compared, because the speed
of a machine changes from second to second. The other side is what a program without Cutline might do with the
same bytes: read them with orjson, or read them and write them again.
"""

import argparse
import gc
import json
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson
import workload

from cutline import cut, verify

try:
    from cutline.memo import Memo
except ImportError:  # the memo is an addition to the pure core
    Memo = None  # type: ignore[assignment, misc]


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


def side_by_side(one: Callable[[], object], other: Callable[[], object], seconds: float = 3.0) -> tuple[float, float]:
    """Median seconds of the two, taken in turns."""
    times: tuple[list[float], list[float]] = ([], [])
    one(), other()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[0]) < 5:
        for run, taken in zip((one, other), times, strict=True):
            gc.collect()
            start = time.perf_counter()
            run()
            taken.append(time.perf_counter() - start)
    return statistics.median(times[0]), statistics.median(times[1])


def reread(body: bytes) -> bytes:
    """The least that any program does that changes a body: read it, write it."""
    return orjson.dumps(orjson.loads(body))


def against_orjson(what: str, body: bytes, target: float | None) -> Row:
    assert cut(body).changed
    ours, theirs = side_by_side(lambda: cut(body), lambda: reread(body))
    detail = f"{ours * 1e3:.1f} ms against {theirs * 1e3:.1f} ms, {len(body) / 1e6:.2f} MB"
    return Row(f"first cut, {what}, against orjson loads + dumps", ours / theirs, "x", target, detail=detail)


def grown(what: str, messages: list[workload.Message]) -> list[Row]:
    """The next request of a history whose cut is remembered."""
    if Memo is None:
        return []
    before, after = workload.body(messages), workload.body(messages + workload.one_more_turn(), share=0.9)
    cut_at = json.loads(before)["messages"]
    after = workload.body(cut_at + workload.one_more_turn(), share=None)
    assert Memo().cut(after).body == cut(after).body
    memo = Memo()
    memo.cut(before)
    assert memo.cut(after).body == cut(after).body
    ours, theirs = side_by_side(lambda: memo.cut(after), lambda: reread(after))
    detail = f"{ours * 1e3:.2f} ms against {theirs * 1e3:.1f} ms"
    return [Row(f"grown by one turn, {what}, against orjson loads + dumps", ours / theirs, "x", 0.3, detail=detail)]


def without_the_name(what: str, messages: list[workload.Message]) -> Row:
    body = workload.body(messages, share=None).replace(b"micro_handoff", b"micro-handoff")
    assert not cut(body).changed
    ours, theirs = side_by_side(lambda: cut(body), lambda: orjson.loads(body))
    detail = f"{ours * 1e3:.3f} ms against {theirs * 1e3:.2f} ms"
    return Row(f"no checkpoint's name in the bytes, {what}: faster than orjson loads", theirs / ours, "x", 5, True, detail)


def linear(messages: list[workload.Message]) -> list[Row]:
    """Time for each byte, at eight times the size against once; and for each of many tiny messages."""
    bodies = {times: workload.body(messages * times) for times in (1, 2, 4, 8)}
    small = {
        times: side_by_side(lambda times=times: cut(bodies[times]), lambda: cut(bodies[1]), 4) for times in (2, 4, 8)
    }
    worst = max(ours / times / once for times, (ours, once) in small.items())
    detail = ", ".join(f"{times} times the size: {ours / once:.2f} times the time" for times, (ours, once) in small.items())
    rows = [Row("linear: time for a byte at 2, 4 and 8 times the size, the worst", worst, "x", 1.3, detail=detail)]
    many, few = workload.body(workload.tiny(40_000)), workload.body(workload.tiny(10_000))
    ours, theirs = side_by_side(lambda: cut(many), lambda: cut(few))
    detail = f"{ours * 1e3:.0f} ms and {theirs * 1e3:.0f} ms (no call in them: nothing is cut)"
    rows.append(Row("linear: 40,000 tiny messages against 10,000, for a message", ours / theirs / 4, "x", 1.3, detail=detail))
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
    """Wall time of a whole process, in milliseconds; a bare interpreter's beside it."""

    def run(command: list[str]) -> None:
        subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL)

    ours, bare = side_by_side(lambda: run(code), lambda: run(["-c", "pass"]))
    return Row(what, ours * 1e3, "ms", target, detail=f"a bare interpreter: {bare * 1e3:.0f} ms")


def measure() -> tuple[list[Row], str]:
    found, source = workload.histories()
    one = min(found, key=lambda messages: abs(len(json.dumps(messages)) - 1_280_000))
    five = workload.chained(found, 5_000_000)
    sizes = (("1 MB", one), ("5 MB", five))
    rows = [against_orjson(what, workload.body(messages), 1.5) for what, messages in sizes]
    for what, messages in sizes:
        rows += grown(what, messages)
    rows += [without_the_name(what, messages) for what, messages in sizes]
    rows += linear(one)
    rows += [memory(what, workload.body(messages)) for what, messages in sizes]
    rows += [proof(what, workload.body(messages)) for what, messages in sizes]
    rows.append(process("cutline --help", ["-c", "from cutline.cli import main; main(['--help'])"], 150))
    rows.append(process("import cutline", ["-c", "import cutline"], 60))
    return rows, source


def main() -> None:
    parser = argparse.ArgumentParser(description="What a cut costs, as ratios within one run.")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    asked = parser.parse_args()
    rows, source = measure()
    if asked.json:
        print(json.dumps({"bodies": source, "rows": [asdict(row) | {"verdict": row.verdict} for row in rows]}, indent=1))
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
