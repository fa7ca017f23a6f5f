"""A raw client and a raw provider for the gateway: every byte of a request is seen, every byte of an answer is the test's.

Sockets of the standard library: nothing is normalised, and an answer may break in any way.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

from cutline.proxy.app import Gateway, Passed

TOKEN = "a-token-of-the-test"
Headers = Sequence[tuple[str, str]]


@dataclass
class Seen:
    """A request as it reached the provider, byte for byte."""

    line: str
    headers: list[tuple[str, str]]
    connection: socket.socket
    body: bytearray = field(default_factory=bytearray)
    whole: threading.Event = field(default_factory=threading.Event)
    gone: threading.Event = field(default_factory=threading.Event)

    @property
    def target(self) -> str:
        return self.line.split(" ")[1]

    @property
    def names(self) -> list[str]:
        return [name.lower() for name, _ in self.headers]

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name), None)

    def send(self, data: bytes) -> None:
        self.connection.sendall(data)


def answer(body: bytes = b"{}", status: str = "200 OK", headers: Headers = ()) -> bytes:
    """An answer with a length."""
    told = [("Content-Type", "application/json"), *headers, ("Content-Length", str(len(body)))]
    return head(status, told) + body


def head(status: str, headers: Headers) -> bytes:
    return "".join([f"HTTP/1.1 {status}\r\n", *(f"{name}: {value}\r\n" for name, value in headers), "\r\n"]).encode()


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


STREAM = head("200 OK", [("Content-Type", "text/event-stream"), ("Transfer-Encoding", "chunked")])


class Provider:
    """A provider whose answers are the test's own bytes, given by a function that holds the connection.

    Args:
        told: answers one request. What it returns is sent; None: it has answered, and the connection is closed.
    """

    def __init__(self, told: Callable[[Seen], bytes | None] = lambda seen: answer()) -> None:
        self.seen: list[Seen] = []
        self._told = told
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Provider:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with connection, connection.makefile("rb") as lines, contextlib.suppress(OSError):
            while first := lines.readline():
                headers = []
                while line := lines.readline().strip():
                    name, _, value = line.decode("latin-1").partition(":")
                    headers.append((name, value.strip()))
                seen = Seen(first.decode("latin-1").strip(), headers, connection)
                self.seen.append(seen)
                self._read(seen, lines)
                told = self._told(seen)
                if told is None:
                    return
                connection.sendall(told)

    def _read(self, seen: Seen, lines: Any) -> None:
        left = int(seen.header("content-length") or 0)
        while left:
            part = lines.read1(min(left, 65_536))
            if not part:
                raise OSError("the upload broke off")
            seen.body += part
            left -= len(part)
        if seen.header("transfer-encoding") == "chunked":
            while size := int(lines.readline(), 16):
                seen.body += lines.read(size)
                lines.readline()
            lines.readline()
        seen.whole.set()


def watch(seen: Seen) -> None:
    """Hold an answer open until the other end is gone."""
    with contextlib.suppress(OSError):
        seen.connection.settimeout(10)
        if seen.connection.recv(1) == b"":
            seen.gone.set()
            return
    seen.gone.set()


class Proxy:
    """A gateway before a provider, and a client's view of it."""

    def __init__(self, upstream: str, **options: Any) -> None:
        self.passed: list[Passed] = []
        options.setdefault("passed", self.passed.append)
        self.gateway = Gateway(upstream, TOKEN, **options)
        self.url = self.gateway.start()
        self.port = urlsplit(self.url).port or 0

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.gateway.stop()

    def ask(
        self,
        method: str = "GET",
        target: str = "/v1/models",
        body: bytes | None = None,
        headers: Headers = (),
        *,
        prefix: str = f"/{TOKEN}",
        host: str | None = None,
    ) -> SimpleNamespace:
        """One request with exactly these headers; status, headers in their order, and the body's bytes."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.putrequest(method, prefix + target, skip_host=True, skip_accept_encoding=True)
        connection.putheader("Host", f"127.0.0.1:{self.port}" if host is None else host)
        for name, value in headers:
            connection.putheader(name, value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        try:
            got = connection.getresponse()
            return SimpleNamespace(status=got.status, headers=got.getheaders(), body=got.read(), reason=got.reason)
        finally:
            connection.close()

    def bare(self, request: bytes, *, end: bool = True) -> tuple[int, bytes]:
        """Bytes as they are to the gateway; status and body of what comes back until it closes or is idle."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
            connection.sendall(request)
            got = http.client.HTTPResponse(connection)
            got.begin()
            return got.status, got.read()


def until(true: Callable[[], object], seconds: float = 5) -> bool:
    """Wait for something that another thread does."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if true():
            return True
        time.sleep(0.005)
    return bool(true())


@contextmanager
def command(tmp_path: Path, url: str, most: int = 0) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """`cutline proxy` before a provider; `most`: bytes beyond which the system lets it write no file, as on a full disk."""
    start = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, ({most}, {most}));" if most else "import sys;"
    )
    code = start.format(most=most) + "from cutline.cli import main; main(sys.argv[1:])"
    own = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data")}
    running = subprocess.Popen(
        [sys.executable, "-c", code, "proxy", "--json", "--upstream", url],
        env=own,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stdout is not None and running.stderr is not None
    with running:
        address = running.stdout.readline().strip()
        assert address, running.stderr.read()
        running.stderr.readline()
        try:
            yield address, running
        finally:
            running.kill()


def ended(running: subprocess.Popen[str]) -> dict[str, Any]:
    """Interrupt it and read its report."""
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=30)
    told: dict[str, Any] = json.loads(said)
    return told
