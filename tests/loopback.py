"""An HTTP server on loopback that answers what a test tells it to, chunk by chunk, and keeps what it was sent."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it came: its line, its headers in their order and spelling, its body."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str:
        """A header's value; "" where it is absent."""
        return next((value for held, value in self.headers if held.lower() == name.lower()), "")


@dataclass(frozen=True, slots=True)
class Told:
    """An answer.

    Attributes:
        chunks: the body's pieces, each sent as it comes; an `Event` among them is waited for.
        resets: the connection is reset behind the chunks, in the middle of the answer.
    """

    chunks: Iterable[bytes | threading.Event] = ()
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})
    resets: bool = False


class Loopback:
    """A context manager; `url` is its base URL, `asked` what came."""

    def __init__(self, tell: Callable[[Asked], Told]) -> None:
        self.asked: list[Asked] = []
        self._tell = tell
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]  # clients that go away
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Loopback:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def log_message(self, *_: object) -> None:
                return

            def _answer(self) -> None:
                asked = Asked(self.command, self.path, tuple(self.headers.items()), self._read())
                server.asked.append(asked)
                told = server._tell(asked)
                self.send_response(told.status)
                for name, value in {**told.headers, "Transfer-Encoding": "chunked"}.items():
                    self.send_header(name, value)
                self.end_headers()
                for chunk in told.chunks:
                    if isinstance(chunk, threading.Event):
                        chunk.wait(20)
                    elif chunk:
                        self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
                if told.resets:
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    self.close_connection = True
                    self.connection.close()
                    return
                with contextlib.suppress(ConnectionError):
                    self.wfile.write(b"0\r\n\r\n")

            do_GET = do_POST = do_PUT = do_DELETE = _answer

            def _read(self) -> bytes:
                if "chunked" not in self.headers.get("Transfer-Encoding", ""):
                    return self.rfile.read(int(self.headers.get("Content-Length") or 0))
                found = b""
                while size := int(self.rfile.readline(), 16):
                    found += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
                return found

        return Handler
