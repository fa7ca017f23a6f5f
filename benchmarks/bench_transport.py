"""What a transport adds to a request: sent direct and through it, in turn, to the same loopback server.

Run it with: uv run python benchmarks/bench_transport.py
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import httpx2

import conversations
import cutline
from loopback import Loopback, Told

SIZES = (200_000, 2_000_000)
ROUNDS = 15


def bodies(format: str, size: int) -> list[bytes]:
    """A history of about that size with a checkpoint in the middle, growing by a step each time."""
    parts = max(4, size // 1_900)
    grown = conversations.growing(format, parts, (parts // 2,))
    return grown[-ROUNDS:]


def main() -> None:
    print(f"{'format':18}{'body':>10}{'direct':>10}{'first cut':>11}{'grown':>10}   added behind the first, median ms")
    for format in conversations.FORMATS:
        told = json.dumps(conversations.answer(format)).encode()
        with Loopback(lambda _, told=told: Told([told])) as server:
            url = server.url + conversations.PATHS[format]
            through = cutline.Transport(record=False)
            with httpx2.Client() as plain, httpx2.Client(transport=through) as cutting:
                for size in SIZES:
                    times: dict[str, list[float]] = {"direct": [], "through": []}
                    for body in bodies(format, size):
                        for name, client in (("direct", plain), ("through", cutting)):
                            began = time.perf_counter()
                            client.post(url, content=body).raise_for_status()
                            times[name].append(1000 * (time.perf_counter() - began))
                    direct, (first, *grown) = statistics.median(times["direct"]), times["through"]
                    after = statistics.median(grown)
                    print(
                        f"{format:18}{len(body):>10,}{direct:>10.1f}{first:>11.1f}{after:>10.1f}   {after - direct:.1f}"
                    )


if __name__ == "__main__":
    main()
