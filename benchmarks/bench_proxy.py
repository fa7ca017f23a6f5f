"""What Cutline's proxy adds to the time to the first byte, and how many requests it sustains, beside others.

    uv run python benchmarks/bench_proxy.py [--part time|rate|formats]... [--rounds N] [--place FOLDER] [--json]

In one run, the ways in turns, kept-alive connections, client, upstream and each proxy in processes of their own. Cutline
cuts, proves and records; mitmproxy only carries (a reverse proxy without an addon); LiteLLM's proxy is asked by its own
/v1/messages and by its pass-through; headroom compresses, and once only carries. The others are installed by uv into
FOLDER (a temporary one where none is named), never into the project's environment.

time: a session grows behind a checkpoint, one call a request, as an agent's does, with a pause between requests; to
an ordinary HTTP server and to a bare socket that does the least. rate: 16 connections, each a session of its own from
round to round, ask without a pause for some seconds; the clock stops when all of it is in Cutline's record, and what the
record had no room for does not count. formats: as time, Cutline against going direct on each provider's wire.
"""

import argparse
import contextlib
import json
import platform
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import proxies
import wires
import workload
from proxies import Running

SIZES = {"200 KB": 200_000, "2 MB": 2_000_000}
PAUSE_S = 0.05
"""Between requests: an agent's tools run, and what a proxy does behind an answer has an end."""
PAUSE_BEHIND_FIRST_S = 2.0
"""A new session is also recorded and looked at whole."""
FIRST = 5
CONNECTIONS = 16
RATE_S = 5.0
WARM_S = 2.0
IDLE_S = 3.0
"""After so long a connection is opened anew, before the clock starts: some servers end one after 5 s."""


# --------------------------------------------------------------------------------------------------- the client


class Failed(Exception):
    """A proxy did not carry a request."""


class Way:
    """A connection that stays open, and a clock."""

    def __init__(self, to: Running, path: str, session: str) -> None:
        rest = to.url.removeprefix("http://")
        host, _, token = rest.partition("/")
        name, _, port = host.partition(":")
        self._head = f"POST {'/' + token if token else ''}{to.prefix}{path} HTTP/1.1\r\nHost: {host}\r\n"
        self._head += "Content-Type: application/json\r\nAnthropic-Version: 2023-06-01\r\nX-Api-Key: none\r\n"
        self._head += f"X-Claude-Code-Session-Id: {session}\r\nContent-Length: %d\r\n\r\n"
        self._place = name, int(port)
        self._open()

    def _open(self) -> None:
        self._connection = socket.create_connection(self._place, timeout=120)
        self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._used = time.monotonic()

    def ask(self, body: bytes) -> float:
        """Send a request and read the answer whole; seconds from the request's first byte to that of the answer's body.

        Raises:
            Failed: another status than 200, or the connection ended.
        """
        head = (self._head % len(body)).encode()
        if time.monotonic() - self._used > IDLE_S:
            self.close()
            self._open()
        start = time.perf_counter()
        self._connection.sendall(head + body)
        told, end = b"", -1
        while end < 0 or len(told) <= end + 4:
            told += self._more()
            end = told.find(b"\r\n\r\n")
        taken = time.perf_counter() - start
        if not told.startswith(b"HTTP/1.1 200"):
            raise Failed(told[:300].decode("latin-1"))
        low = told[:end].lower()
        if b"\r\ncontent-length:" in low:
            length = int(low.partition(b"\r\ncontent-length:")[2].partition(b"\r\n")[0])
            while len(told) < end + 4 + length:
                told += self._more()
        else:
            while not told.endswith(b"\r\n0\r\n\r\n"):
                told += self._more()
        self._used = time.monotonic()
        return taken

    def _more(self) -> bytes:
        got = self._connection.recv(65_536)
        if not got:
            raise Failed("the connection ended")
        return got

    def close(self) -> None:
        """End the connection."""
        self._connection.close()


# ------------------------------------------------------------------------------------------- time to the first byte


@dataclass
class Time:
    """One way at one size; milliseconds. `added` is to going direct, by the medians; `sent` is what came upstream."""

    upstream: str
    format: str
    size: str
    way: str
    median: float
    low: float
    high: float
    added: float
    asked: int
    sent: int
    processor: float


def times(
    kind: str, upstream: str, ways: Mapping[str, Running], format: str, size: str, rounds: int, left: list[str]
) -> list[Time]:
    """A growing session by every way, in turns; and for Cutline, how long a seam's first cut takes."""
    bodies = wires.session(SIZES[size], format)
    path = wires.WIRES[format].path
    open_: dict[str, Way] = {}
    taken: dict[str, list[float]] = {}
    sent: dict[str, int] = {}
    for name, to in ways.items():
        way = Way(to, path, f"{format} {size}")
        try:
            for body in bodies[:3]:
                way.ask(body)
                time.sleep(PAUSE_BEHIND_FIRST_S if body is bodies[0] else PAUSE_S)
        except (Failed, OSError) as error:
            left.append(f"{name}, {size}: {' '.join(str(error).split())[:300]}")
            continue
        open_[name], taken[name], sent[name] = way, [], 0
    used = {name: proxies.processor_s(ways[name].pid) for name in open_}
    order = list(open_)
    for _ in range(rounds):
        for body in bodies[3:]:
            order.append(order.pop(0))
            for name in [*order]:
                try:
                    taken[name].append(open_[name].ask(body) * 1e3)
                except (Failed, OSError) as error:
                    left.append(f"{name}, {size}, after {len(taken[name])}: {' '.join(str(error).split())[:300]}")
                    order.remove(name)
                time.sleep(PAUSE_S)
    for name in order:
        used[name] = (proxies.processor_s(ways[name].pid) - used[name]) / len(taken[name]) * 1e3
        open_[name].ask(bodies[-1])
        sent[name] = proxies.received(upstream)
    direct = statistics.median(taken["direct"])
    rows = []
    for name in (one for one in open_ if one in order):
        found = taken[name]
        rows.append(_time(kind, format, size, name, found, direct, len(bodies[-1]), sent[name], used[name]))
    first = []
    for number in range(FIRST):
        body = bodies[-1].replace(b"You are a coding agent.", b"You are coding agent %d." % number, 1)
        first.append(open_["cutline"].ask(body) * 1e3)
        time.sleep(PAUSE_BEHIND_FIRST_S)
    rows.append(_time(kind, format, size, "cutline, first cut", first, direct, len(bodies[-1]), sent["cutline"], 0))
    for way in open_.values():
        way.close()
    return rows


def _time(
    kind: str, format: str, size: str, way: str, found: list[float], direct: float, asked: int, sent: int, used: float
) -> Time:
    low, middle, high = statistics.quantiles(found, n=4)
    return Time(kind, format, size, way, middle, low, high, middle - direct, asked, sent, used)


def told_times(rows: list[Time]) -> Iterator[str]:
    """Lines for people."""
    yield f"{'upstream':<12}{'format':<17}{'size':<8}{'way':<23}{'median':>9}{'quartiles':>18}{'added':>10}  added, cutline's = 1"
    for row in rows:
        own = next(
            one.added
            for one in rows
            if (one.upstream, one.format, one.size, one.way) == (row.upstream, row.format, row.size, "cutline")
        )
        beside = f"{row.added / own:6.1f} ×" if row.way != "direct" and own > 0 else " " * 8
        spread = f"{row.low:.2f} to {row.high:.2f}"
        cpu = f", {row.processor:.1f} ms of processor" if row.processor else ""
        yield (
            f"{row.upstream:<12}{row.format:<17}{row.size:<8}{row.way:<23}{row.median:6.2f} ms{spread:>18}"
            f"{row.added:+7.2f} ms {beside}  {row.asked / 1e3:.0f} KB, {row.sent / 1e3:.0f} KB upstream{cpu}"
        )


# ---------------------------------------------------------------------------------------------- requests per second


@dataclass
class Rate:
    """One way under load: requests per second of each round, and milliseconds of processor time for a request."""

    load: str
    way: str
    median: float
    low: float
    high: float
    processor: float


def rates(ways: Mapping[str, Running], load: str, rounds: int, left: list[str]) -> list[Rate]:
    """Every way in turns, some seconds each, by 16 connections that ask without a pause."""
    bodies = wires.small() if load == "2 KB" else wires.session(SIZES[load])
    found: dict[str, list[float]] = {name: [] for name in ways}
    used: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds):
        for name in [*ways][number % len(ways) :] + [*ways][: number % len(ways)]:
            if name not in found:
                continue
            try:
                count, seconds, processor = _loaded(ways[name], bodies, load)
            except (Failed, OSError) as error:
                left.append(f"{name}, {load}, {CONNECTIONS} at once: {' '.join(str(error).split())[:300]}")
                del found[name]
                continue
            found[name].append(count / seconds)
            used[name].append(processor / max(1, count) * 1e3)
    return [
        Rate(load, name, statistics.median(one), min(one), max(one), statistics.median(used[name]))
        for name, one in found.items()
    ]


def _loaded(to: Running, bodies: list[bytes], session: str) -> tuple[int, float, float]:
    """Requests that were answered, and recorded, behind a beginning; the seconds until all was done; the processor's."""
    counts = [0] * CONNECTIONS
    faults: list[Exception] = []
    end = threading.Event()

    def ask(number: int) -> None:
        mark = b"You are coding agent %d of %b." % (number, session.encode())
        at = 0
        try:
            way = Way(to, wires.WIRES["anthropic"].path, f"{session} {number}")
            while not end.is_set():
                way.ask(bodies[at % len(bodies)].replace(b"You are a coding agent.", mark, 1))
                at += 1
                counts[number] += 1
            way.close()
        except (Failed, OSError) as error:
            faults.append(error)
            end.set()

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    end.wait(WARM_S)
    before, used, start = sum(counts), proxies.processor_s(to.pid), time.perf_counter()
    end.wait(RATE_S)
    end.set()
    for thread in threads:
        thread.join()
    missing = to.settled()
    done, taken = sum(counts) - before, time.perf_counter() - start
    used = proxies.processor_s(to.pid) - used
    if faults:
        raise faults[0]
    return done - missing, taken, used


def told_rates(rows: list[Rate]) -> Iterator[str]:
    """Lines for people."""
    yield f"{'load':<8}{'way':<23}{'a second':>10}{'of rounds':>20}{'processor':>16}  cutline's, this one's = 1"
    for row in rows:
        own = next(one.median for one in rows if (one.load, one.way) == (row.load, "cutline"))
        beside = f"{own / row.median:6.1f} ×" if not row.way.startswith(("direct", "cutline")) and row.median else ""
        spread = f"{row.low:,.1f} to {row.high:,.1f}"
        cpu = f"{row.processor:.2f} ms each" if row.way != "direct" else ""
        yield f"{row.load:<8}{row.way:<23}{row.median:>10,.1f}{spread:>20}{cpu:>16}  {beside}"


# ---------------------------------------------------------------------------------------------------------- the run


@contextlib.contextmanager
def running(
    kind: str, others: list[tuple[proxies.Other, str]], place: Path, left: list[str]
) -> Iterator[tuple[str, dict[str, Running]]]:
    """An upstream, and every way to it."""
    with contextlib.ExitStack() as open_:
        folder = open_.enter_context(tempfile.TemporaryDirectory())
        upstream = open_.enter_context(proxies.own("--upstream", kind))
        ways = {"direct": upstream}
        ways["cutline"] = open_.enter_context(proxies.own("--cutline", upstream.url, f"{folder}/record.db"))
        ways["cutline, no record"] = open_.enter_context(proxies.own("--cutline", upstream.url, ""))
        for other, _ in others:
            found = open_.enter_context(proxies.started(other, place, upstream.url))
            if found is None:
                left.append(f"{other.name} did not start: {place}/home")
            else:
                ways[other.name] = found
        yield upstream.url, ways


def main() -> None:
    parser = argparse.ArgumentParser(description="What the proxy adds to a request, and how many it sustains.")
    parser.add_argument("--part", action="append", choices=("time", "rate", "formats"), help="only this; repeatable")
    parser.add_argument("--rounds", type=int, default=1, help="how often each is repeated (rate: three times as often)")
    parser.add_argument("--place", type=Path, help="where the other proxies are installed, and stay")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    parser.add_argument("--upstream", choices=proxies.UPSTREAMS, help=argparse.SUPPRESS)
    parser.add_argument("--cutline", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.upstream:
        return proxies.UPSTREAMS[asked.upstream]()
    if asked.cutline:
        return proxies.serve_cutline(*asked.cutline)
    parts = asked.part or ["time", "rate", "formats"]
    time_rows: list[Time] = []
    rate_rows: list[Rate] = []
    with contextlib.ExitStack() as open_:
        place = asked.place or Path(open_.enter_context(tempfile.TemporaryDirectory()))
        others, left = proxies.install(place.resolve()) if {"time", "rate"} & {*parts} else ([], [])
        if "time" in parts:
            for kind in proxies.UPSTREAMS:
                with running(kind, others, place.resolve(), left) as (upstream, ways):
                    for size in SIZES:
                        time_rows += times(kind, upstream, ways, "anthropic", size, asked.rounds, left)
        if "formats" in parts:
            with running("HTTP server", [], place, left) as (upstream, ways):
                for format in wires.WIRES:
                    for size in SIZES:
                        time_rows += times("HTTP server", upstream, ways, format, size, asked.rounds, left)
        if "rate" in parts:
            with running("bare socket", others, place.resolve(), left) as (upstream, ways):
                for load in ("2 KB", "200 KB"):
                    rate_rows += rates(ways, load, 3 * asked.rounds, left)
    versions = {other.folder: version for other, version in others}
    bodies = workload.histories()[1]
    if asked.json:
        told = {"bodies": bodies, "python": platform.python_version(), "versions": versions, "left out": left}
        told |= {"times": [asdict(row) for row in time_rows], "rates": [asdict(row) for row in rate_rows]}
        print(json.dumps(told, indent=1))
        return
    beside = "".join(f", {name} {version}" for name, version in versions.items())
    print(f"Bodies: {bodies}. Python {platform.python_version()}{beside}.")
    for lines in (told_times(time_rows) if time_rows else (), told_rates(rate_rows) if rate_rows else ()):
        print("", *lines, sep="\n")
    print("", *dict.fromkeys(left), sep="\n", file=sys.stderr)


if __name__ == "__main__":
    main()
