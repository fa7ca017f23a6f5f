"""What the proxy adds to the time to the first byte, beside going direct and beside mitmproxy.

    uv run python benchmarks/bench_proxy.py [--json]

A session grows behind a checkpoint, one call a request, as an agent's does. Each of its requests goes direct,
through Cutline and through mitmproxy, in turns within one run, over connections that stay open, to an upstream
that answers at once: an ordinary HTTP server (aiohttp), and a bare socket that does the least. Client, upstream and each proxy are processes of their own. Cutline cuts, proves and
records; mitmproxy only carries (a reverse proxy without an addon), and is left out where `uvx` can't run it.
"""

import argparse
import contextlib
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import workload

SIZES = {"200 KB": 200_000, "2 MB": 2_000_000}
TURNS = 60
FIRST = 5
PAUSE_S = 0.05
"""Between requests: an agent's tools run, and what a proxy does behind an answer has an end."""
PAUSE_BEHIND_FIRST_S = 2.0
"""A new session is also recorded and looked at whole."""
TARGET = 3.0
ANSWER = (
    b'event: message_start\ndata: {"type":"message_start","message":{"model":"m","usage":{"input_tokens":9}}}\n\n'
    b'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n'
    b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"ok"}}\n\n'
    b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}\n\n'
    b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
)


# ------------------------------------------------------------------------------------------- the other processes


def serve_upstream() -> None:
    """Print a port, and answer every request on it as soon as its last byte is there, as an ordinary HTTP server."""
    import asyncio

    from aiohttp import web

    async def handle(request: web.Request) -> web.StreamResponse:
        await request.read()
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(ANSWER)
        await response.write_eof()
        return response

    async def serve() -> None:
        app = web.Application(client_max_size=1 << 30)
        app.router.add_route("*", "/{rest:.*}", handle)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        print(runner.addresses[0][1], flush=True)
        await asyncio.Event().wait()

    asyncio.run(serve())


def serve_bare_upstream() -> None:
    """The same on a bare socket, which does the least that can be done: the floor, not what a provider is."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    told = head + b"%x\r\n%b\r\n0\r\n\r\n" % (len(ANSWER), ANSWER)
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)

    def answer(connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        room = memoryview(bytearray(8_000_000))
        with contextlib.suppress(OSError), connection:
            while True:
                got, end = 0, -1
                while end < 0:
                    more = connection.recv_into(room[got:])
                    if not more:
                        return
                    got += more
                    end = bytes(room[:65_536]).find(b"\r\n\r\n")
                lines = bytes(room[:end]).lower().split(b"\r\n")
                length = next(int(line[15:]) for line in lines if line.startswith(b"content-length:"))
                while got < end + 4 + length:
                    got += connection.recv_into(room[got:])
                connection.sendall(told)

    while True:
        threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()


UPSTREAMS = {"HTTP server": serve_upstream, "bare socket": serve_bare_upstream}


def serve_cutline(upstream: str, record: str) -> None:
    """Print a base URL, and run Cutline's proxy there until standard input ends."""
    from cutline.proxy.app import Gateway
    from cutline.proxy.observer import Observer, Place
    from cutline.record import Writer

    folder = Path(record).parent
    writer = Writer(record)
    observer = Observer(Place("claude", "bench", folder), writer)
    gateway = Gateway(upstream, "token", passed=observer.passed)
    print(gateway.start(), flush=True)
    sys.stdin.read()
    gateway.stop()
    observer.close()
    writer.close()


@contextlib.contextmanager
def process(*arguments: str) -> Iterator[str]:
    """One of this file's servers; what it prints first."""
    command = [sys.executable, str(Path(__file__).resolve()), *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None and running.stdin is not None
        try:
            told = running.stdout.readline().strip()
            if not told:
                raise SystemExit(f"{' '.join(arguments)} did not start")
            yield told
        finally:
            running.stdin.close()
            if arguments[0] != "--cutline":
                running.terminate()


@contextlib.contextmanager
def mitmproxy(upstream: str) -> Iterator[str | None]:
    """A mitmproxy before the upstream; None where it can't be run."""
    uvx = shutil.which("uvx")
    if uvx is None:
        yield None
        return
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as home:
        command = [uvx, "--from", "mitmproxy", "mitmdump", "-q", "--mode", f"reverse:{upstream}"]
        command += ["--listen-host", "127.0.0.1", "--listen-port", str(port), "--set", f"confdir={home}"]
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        running = subprocess.Popen(command, start_new_session=True, **silent)
        try:
            yield f"http://127.0.0.1:{port}" if _answers(port, running) else None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(running.pid, 15)
            running.wait()


def _answers(port: int, running: "subprocess.Popen[bytes]", seconds: float = 180) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end and running.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
        time.sleep(0.2)
    return False


# --------------------------------------------------------------------------------------------------- the client


class Way:
    """A connection that stays open, and a clock."""

    def __init__(self, url: str) -> None:
        rest = url.removeprefix("http://")
        host, _, path = rest.partition("/")
        name, _, port = host.partition(":")
        self._head = f"POST {'/' + path if path else ''}/v1/messages?beta=true HTTP/1.1\r\nHost: {host}\r\n"
        self._head += "Content-Type: application/json\r\nX-Claude-Code-Session-Id: %s\r\nContent-Length: %d\r\n\r\n"
        self._connection = socket.create_connection((name, int(port)))
        self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, body: bytes, session: str) -> float:
        """Send a request; seconds from its first byte to the answer's."""
        whole = (self._head % (session, len(body))).encode() + body
        start = time.perf_counter()
        self._connection.sendall(whole)
        told = self._connection.recv(65_536)
        taken = time.perf_counter() - start
        if not told.startswith(b"HTTP/1.1 200"):
            raise SystemExit(f"the proxy did not carry the request: {told[:300]!r}")
        while ANSWER[-40:] not in told or not told.endswith((b"0\r\n\r\n", ANSWER[-40:])):
            told += self._connection.recv(65_536)
        return taken


def session(size: int) -> list[bytes]:
    """The bodies of a session of about that size that grows behind a checkpoint, a call a request."""
    found, _ = workload.histories()
    room = max(20_000, size - workload.TOOL_SCHEMAS - 25_000)
    messages: list[workload.Message] = []
    weight = 0
    for message in workload.chained(found, room):
        weight += len(json.dumps(message, ensure_ascii=False))
        messages.append(message)
        if weight >= room and message["role"] == "user":
            break
    body = workload.body(messages)
    bodies = []
    for number in range(TURNS):
        call = {
            "type": "tool_use",
            "id": f"toolu_new{number}",
            "name": "Bash",
            "input": {"command": f"pytest -q {number}"},
        }
        result = {"type": "tool_result", "tool_use_id": call["id"], "content": "3 passed in 0.12s\n" * 60}
        said = {"type": "text", "text": f"Running the tests once more, the {number}th time."}
        turn = [{"role": "assistant", "content": [said, call]}, {"role": "user", "content": [result]}]
        end = body.rindex(b'],"stream":true}')
        body = body[:end] + b"," + json.dumps(turn, separators=(",", ":")).encode()[1:-1] + body[end:]
        bodies.append(body)
    return bodies


@dataclass
class Row:
    """One way at one size; times in milliseconds, ratios to going direct."""

    upstream: str
    size: str
    way: str
    median: float
    p90: float
    ratio: float
    detail: str = ""


def measure(kind: str, ways: dict[str, str]) -> list[Row]:
    """Every size by every way, in turns."""
    from cutline import cut

    rows = []
    for size, weight in SIZES.items():
        bodies = session(weight)
        after = cut(bodies[-1])
        assert after.changed
        open_ways = {name: Way(url) for name, url in ways.items()}
        times: dict[str, list[float]] = {name: [] for name in open_ways}
        for way in open_ways.values():
            for body in bodies[:3]:
                way.ask(body, size)
                time.sleep(PAUSE_BEHIND_FIRST_S if body is bodies[0] else PAUSE_S)
        order = list(open_ways)
        for body in bodies[3:]:
            order.append(order.pop(0))
            for name in order:
                times[name].append(open_ways[name].ask(body, size) * 1e3)
                time.sleep(PAUSE_S)
        direct = statistics.median(times["direct"])
        for name, taken in times.items():
            detail = (
                f"{len(bodies[-1]) / 1e3:.0f} KB, cut to {len(after.body) / 1e3:.0f} KB" if name == "cutline" else ""
            )
            middle = statistics.median(taken)
            rows.append(Row(kind, size, name, middle, statistics.quantiles(taken, n=10)[-1], middle / direct, detail))
        first = []
        for number in range(FIRST):
            body = bodies[-1].replace(b"You are a coding agent.", b"You are coding agent %d." % number, 1)
            first.append(open_ways["cutline"].ask(body, f"{size} {number}") * 1e3)
            time.sleep(PAUSE_BEHIND_FIRST_S)
        middle = statistics.median(first)
        rows.append(
            Row(
                kind,
                size,
                "cutline, first cut",
                middle,
                max(first),
                middle / direct,
                "cut and proven anew; p90: the worst",
            )
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description="What the proxy adds to the time to the first byte.")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    parser.add_argument("--upstream", choices=UPSTREAMS, help=argparse.SUPPRESS)
    parser.add_argument("--cutline", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.upstream:
        return UPSTREAMS[asked.upstream]()
    if asked.cutline:
        return serve_cutline(*asked.cutline)
    rows = []
    for kind in UPSTREAMS:
        with contextlib.ExitStack() as open_:
            folder = open_.enter_context(tempfile.TemporaryDirectory())
            upstream = "http://127.0.0.1:" + open_.enter_context(process("--upstream", kind))
            ways = {"direct": upstream}
            ways["cutline"] = open_.enter_context(process("--cutline", upstream, f"{folder}/record/record.db"))
            other = open_.enter_context(mitmproxy(upstream))
            if other is None:
                print("mitmproxy is left out: uvx --from mitmproxy mitmdump does not run here\n", file=sys.stderr)
            else:
                ways["mitmproxy"] = other
            rows += measure(kind, ways)
    if asked.json:
        print(json.dumps({"bodies": workload.histories()[1], "rows": [asdict(row) for row in rows]}, indent=1))
        return
    print(f"Bodies: {workload.histories()[1]}. Python {sys.version.split()[0]}. Time to the first byte.\n")
    print(f"{'upstream':<12} {'size':<7} {'way':<19} {'median':>9} {'p90':>9}  ratio")
    for row in rows:
        verdict = ""
        if row.way == "cutline":
            verdict = f"(≤ {TARGET:g}: {'reached' if row.ratio <= TARGET else 'missed'})  "
        print(
            f"{row.upstream:<12} {row.size:<7} {row.way:<19} {row.median:6.2f} ms {row.p90:6.2f} ms {row.ratio:6.2f}  {verdict}{row.detail}"
        )


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main()
