"""What the trace costs: the plan of each recorded session at the bench's seams, with the trace and without it.

    uv run python benchmarks/bench_trace.py [FILES…]

Processor time, the two in turns, the least of five; what is remembered of words from run to run is emptied before each.
"""

import sys
import time
from pathlib import Path

from cutline import plan, specifics
from cutline.bench import run, whole
from cutline.errors import CutlineError
from cutline.seam import Refused

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def taken(request, at: int, trace: str) -> tuple[float, int]:
    for memory in (specifics._within, specifics._alone, specifics.stem, specifics.stems):
        memory.cache_clear()
    before = time.process_time()
    made = plan.make(request, plan.Options(at=at, session=True, trace=trace))
    return (time.process_time() - before) * 1000, len(made.last_notice or "")


def main() -> None:
    rows = []
    for source in run.files(sys.argv[1:] or [str(DATA)]):
        try:
            found = whole.read(*source)
            for seam in found.seams:
                pairs = [
                    (taken(found.request, seam.message, "holes"), taken(found.request, seam.message, "none"))
                    for _ in range(5)
                ]
                size = found.request.messages[seam.message - 1].end
                cost = min(one[0][0] for one in pairs) - min(one[1][0] for one in pairs)
                rows.append((cost, size, pairs[0][0][1] - pairs[0][1][1]))
        except (CutlineError, Refused):
            continue
    rows.sort()
    at = lambda share: rows[min(len(rows) - 1, int(share * len(rows)))][0]  # noqa: E731
    print(f"{len(rows)} seams: median {at(0.5):.1f} ms, 90 % {at(0.9):.1f} ms, most {rows[-1][0]:.1f} ms")
    under = [cost for cost, size, _ in rows if size <= 1_000_000]
    print(
        f"histories up to 1 MB ({len(under)}): median {sorted(under)[len(under) // 2]:.1f} ms, most {max(under):.1f} ms"
    )
    print(f"per MB of history: {1e6 * sum(row[0] for row in rows) / sum(row[1] for row in rows):.0f} ms")
    print(f"under 50 ms: {sum(row[0] < 50 for row in rows)} of {len(rows)}")


if __name__ == "__main__":
    main()
