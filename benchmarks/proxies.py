"""The processes of the proxy benchmark: an upstream on loopback, Cutline's proxy, and the proxies beside it.

The others are installed by uv into virtual environments outside the project, with the interpreter that runs this, and
are started with their own defaults, pointed at the upstream. What can't be installed or started is left out, and why.
"""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import wires

# --------------------------------------------------------------------------------------------------------- the upstream


def serve_upstream() -> None:
    """Print a port, and answer every request on it as soon as its last byte is there, as an ordinary HTTP server."""
    import asyncio

    from aiohttp import web

    last = 0

    async def handle(request: web.Request) -> web.StreamResponse:
        nonlocal last
        if request.method == "GET":
            return web.Response(text=str(last))
        last = len(await request.read())
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(wires.answer(request.path))
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
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    print(listener.getsockname()[1], flush=True)
    last = 0

    def told(body: bytes, kind: bytes = b"text/event-stream") -> bytes:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nTransfer-Encoding: chunked\r\n\r\n" % kind
        return head + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)

    def answer(connection: socket.socket) -> None:
        nonlocal last
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        room = memoryview(bytearray(4_000_000))
        with contextlib.suppress(OSError), connection:
            while True:
                got, end = 0, -1
                while end < 0:
                    more = connection.recv_into(room[got:])
                    if not more:
                        return
                    got += more
                    end = bytes(room[: min(got, 65_536)]).find(b"\r\n\r\n")
                first, *lines = bytes(room[:end]).split(b"\r\n")
                if first.startswith(b"GET"):
                    connection.sendall(told(b"%d" % last, b"text/plain"))
                    continue
                low = [line.lower() for line in lines]
                if b"expect: 100-continue" in low:
                    connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
                length = next((int(line[15:]) for line in low if line.startswith(b"content-length:")), -1)
                while got < end + 4 + length or (length < 0 and bytes(room[got - 5 : got]) != b"0\r\n\r\n"):
                    got += connection.recv_into(room[got:])
                last = got - end - 4
                connection.sendall(told(wires.answer(first.split()[1].decode())))

    while True:
        threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()


UPSTREAMS: dict[str, Callable[[], None]] = {"HTTP server": serve_upstream, "bare socket": serve_bare_upstream}


def serve_cutline(upstream: str, record: str) -> None:
    """Print a base URL, and run Cutline's proxy there until standard input ends; "" for no record.

    Each line that comes in is answered when all that passed is in the record: with how much of it never will be.
    """
    from cutline.proxy.app import Gateway, Passed
    from cutline.proxy.observer import Observer, Place
    from cutline.record import Writer

    came = told = 0

    def passed(one: Passed) -> None:
        nonlocal came
        came += 1
        observer.passed(one)

    with tempfile.TemporaryDirectory() as folder:
        writer = Writer(record, apart=True) if record else None
        observer = Observer(Place("claude", "bench", Path(folder)), writer)
        gateway = Gateway(upstream, "token", passed=passed)
        print(gateway.start(), flush=True)
        for _ in sys.stdin:
            while writer is not None and writer.written + writer.dropped < came:
                time.sleep(0.005)
            dropped = 0 if writer is None else writer.dropped
            print(dropped - told, flush=True)
            told = dropped
        gateway.stop()
        observer.close()
        if writer is not None:
            writer.close()


# ----------------------------------------------------------------------------------------------------- what is started


@dataclass(frozen=True)
class Running:
    """A way to the upstream.

    Attributes:
        url: its base URL.
        pid: of the process that is measured; 0 where there is none.
        prefix: what stands before a provider's own path.
        settled: waits until what the requests left to do is done; how many requests are not in the record since.
    """

    url: str
    pid: int = 0
    prefix: str = ""
    settled: Callable[[], int] = int


@contextlib.contextmanager
def own(*arguments: str) -> Iterator[Running]:
    """One of this project's servers, by what it prints first: a port or a base URL."""
    command = [sys.executable, str(Path(__file__).with_name("bench_proxy.py")), *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None and running.stdin is not None
        try:
            told = running.stdout.readline().strip()
            if not told:
                raise SystemExit(f"{' '.join(arguments)} did not start")
            if arguments[0] == "--upstream":
                yield Running(f"http://127.0.0.1:{told}")
            else:
                yield Running(told, running.pid, settled=lambda: _settled(running))
        finally:
            running.stdin.close()
            if arguments[0] != "--cutline":
                running.terminate()


def _settled(running: "subprocess.Popen[str]") -> int:
    assert running.stdout is not None and running.stdin is not None
    running.stdin.write("\n")
    running.stdin.flush()
    return int(running.stdout.readline())


@dataclass(frozen=True)
class Other:
    """Another proxy: what is installed, its command behind the environment's bin/, its environment's variables.

    `{port}` and `{upstream}` are put in. `prefix` is what its addresses have before the provider's own.
    """

    name: str
    package: str
    command: tuple[str, ...]
    variables: dict[str, str] = field(default_factory=dict)
    prefix: str = ""
    config: str = ""

    @property
    def folder(self) -> str:
        """The name of its virtual environment."""
        return self.package.partition("[")[0]


_HOST = ("--host", "127.0.0.1", "--port", "{port}")
_AT = ("--listen-host", "127.0.0.1", "--listen-port", "{port}")
_LITELLM = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "ANTHROPIC_API_BASE": "{upstream}", "ANTHROPIC_API_KEY": "none"}
_ROUTES = """model_list:
  - model_name: claude-opus-4-7
    litellm_params: {{model: anthropic/claude-opus-4-7, api_base: "{upstream}", api_key: none}}
litellm_settings: {{telemetry: false}}
general_settings: {{dangerously_permit_weak_or_unset_master_key: true}}
"""
_HEADROOM = ("headroom", "proxy", *_HOST, "--anthropic-api-url", "{upstream}")
# Its limit of 60 requests a minute would be measured else, and its memory of answers, since ours repeat.
_HEADROOM += ("--no-rate-limit", "--no-cache", "--no-telemetry", "--no-subscription-tracking")
_LITELLM_COMMAND = ("litellm", "--config", "{config}", *_HOST)
OTHERS = (
    Other(
        "mitmproxy",
        "mitmproxy",
        ("mitmdump", "-q", "--mode", "reverse:{upstream}", *_AT, "--set", "confdir={home}"),
    ),
    # Like with like: it keeps what passes, as it came, in a file.
    Other(
        "mitmproxy -w",
        "mitmproxy",
        ("mitmdump", "-q", "-w", "{home}/flows", "--mode", "reverse:{upstream}", *_AT, "--set", "confdir={home}"),
    ),
    Other("LiteLLM, /v1/messages", "litellm[proxy]", _LITELLM_COMMAND, _LITELLM, "", _ROUTES),
    Other("LiteLLM, pass-through", "litellm[proxy]", _LITELLM_COMMAND, _LITELLM, "/anthropic", _ROUTES),
    Other("headroom", "headroom-ai[proxy]", _HEADROOM),
    Other("headroom --no-optimize", "headroom-ai[proxy]", (*_HEADROOM, "--no-optimize")),
)


def install(place: Path) -> tuple[list[tuple[Other, str]], list[str]]:
    """Install what can be; each with its version, and one line for each that is left out."""
    found: list[tuple[Other, str]] = []
    missing: list[str] = []
    uv = shutil.which("uv")
    if uv is None:
        return [], ["no other proxy is measured: uv is not there to install one"]
    done: dict[str, str] = {}
    for other in OTHERS:
        python = place / other.folder / "bin" / "python"
        if other.package not in done:
            asked = (
                [] if python.exists() else [[uv, "venv", "-q", "--python", sys.executable, str(place / other.folder)]]
            )
            asked.append([uv, "pip", "install", "-q", "--python", str(python), other.package])
            ran = [subprocess.run(one, capture_output=True, text=True) for one in asked]
            fault = next((one.stderr.strip() for one in ran if one.returncode), "")
            if fault:
                missing.append(f"{other.package} is left out: {fault.splitlines()[-1].strip()}")
            done[other.package] = "" if fault else _version(python, other.folder)
        if done[other.package]:
            found.append((other, done[other.package]))
    return found, missing


def _version(python: Path, package: str) -> str:
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    return subprocess.run([str(python), "-c", code], capture_output=True, text=True).stdout.strip()


@contextlib.contextmanager
def started(other: Other, place: Path, upstream: str) -> Iterator[Running | None]:
    """Another proxy before the upstream; None where it does not come up. What it says goes to a file beside it."""
    home = place / "home" / other.name.replace(" ", "_").replace("/", "_")
    home.mkdir(parents=True, exist_ok=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    put = {"port": str(port), "upstream": upstream, "home": str(home), "config": str(home / "config.yaml")}
    (home / "config.yaml").write_text(other.config.format(**put))
    program, *rest = (one.format(**put) for one in other.command)
    kept = {key: value for key, value in os.environ.items() if not key.endswith(("_API_KEY", "_BASE_URL", "_TOKEN"))}
    variables = {**kept, "HOME": str(home), **{key: value.format(**put) for key, value in other.variables.items()}}
    with (home / "said.txt").open("wb") as said:
        running = subprocess.Popen(
            [str(place / other.folder / "bin" / program), *rest],
            cwd=home,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
        try:
            up = _answers(port, running)
            yield Running(f"http://127.0.0.1:{port}", running.pid, other.prefix) if up else None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(running.pid, 15)
            try:
                running.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(running.pid, 9)
                running.wait()


def _answers(port: int, running: "subprocess.Popen[bytes]", seconds: float = 180) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end and running.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
        time.sleep(0.2)
    return False


# ------------------------------------------------------------------------------------------------- what they are asked


def received(upstream: str) -> int:
    """Bytes of the last body that the upstream was sent."""
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(upstream + "/received", timeout=10) as told:
        return int(json.loads(told.read()))


def processor_s(pid: int) -> float:
    """Seconds of processor time of a process and its children so far; 0.0 where /proc does not tell."""
    total, ticks = 0.0, os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = stat.read_text().rpartition(")")[2].split()
            if pid == int(stat.parent.name) or pid == int(fields[1]):
                total += (int(fields[11]) + int(fields[12])) / ticks
    return total
