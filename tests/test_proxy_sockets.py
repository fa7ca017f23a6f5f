"""Web sockets through the gateway: bytes as they are in both directions, ends that are ends, and a word that nothing is cut."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import secrets
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutline.proxy.app import Gateway
from providers import Provider

TOKEN = "a-token-of-the-test"
PATH = "/v1/responses?model=m"


class Proxy:
    """A gateway that keeps what it says."""

    def __init__(self, upstream: str) -> None:
        self.said: list[str] = []
        self.gateway = Gateway(upstream, TOKEN, said=self.said.append)
        self.url = self.gateway.start()
        self.port = int(self.url.split(":")[2].split("/")[0])

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.gateway.stop()


def talk(url: str, *sent: str | bytes, **headers: str) -> tuple[list[Any], str | None]:
    """Send messages through a web socket and wait for all answers; the answers, and the protocol that was agreed on."""

    async def run() -> tuple[list[Any], str | None]:
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(url, protocols=("responses",), headers=headers, max_msg_size=0) as connection,
        ):
            told = [(await connection.receive(10)).data]
            for one in sent:
                await (connection.send_str(one) if isinstance(one, str) else connection.send_bytes(one))
                told += [(await connection.receive(10)).data for _ in range(2)]
            return told, connection.protocol

    return asyncio.run(run())


def test_messages_pass_in_both_directions_and_it_is_said_that_nothing_is_cut():
    large = secrets.token_bytes(3_000_000)
    with Provider() as provider, Proxy(provider.url + "/base") as proxy:
        told, protocol = talk(
            proxy.url + PATH, "create micro_handoff", large, "ü", **{"OpenAI-Beta": "responses_websockets=v1"}
        )
    assert told == ["welcome", *["create micro_handoff"] * 2, *[large] * 2, *["ü"] * 2] and protocol == "responses"
    assert provider.sockets == ["create micro_handoff", large, "ü"]
    (asked,) = provider.asked
    assert asked.target == "/base" + PATH and asked.headers["openai-beta"] == "responses_websockets=v1"
    assert asked.headers["host"] == provider.url.removeprefix("http://") and "origin" not in asked.headers
    assert proxy.said == ["a web socket (/v1/responses) passes untouched: its history is not cut"]


def test_a_provider_that_does_not_switch_is_heard():
    """A client falls back to plain requests then."""

    async def run(url: str) -> int:
        async with aiohttp.ClientSession() as session:
            with pytest.raises(aiohttp.WSServerHandshakeError) as found:
                await session.ws_connect(url)
            return found.value.status

    def refuse(connection: socket.socket) -> None:
        connection.recv(65_536)
        connection.sendall(b"HTTP/1.1 426 Upgrade Required\r\nContent-Length: 2\r\n\r\nno")

    with Bare(refuse) as bare, Proxy(bare.url) as proxy:
        assert asyncio.run(run(proxy.url + PATH)) == 426


def test_a_provider_that_is_not_there_is_told_in_its_shape():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with Proxy(f"http://127.0.0.1:{port}") as proxy, socket.create_connection(("127.0.0.1", proxy.port)) as client:
        client.sendall(head(PATH))
        said = client.recv(65_536)
    assert said.startswith(b"HTTP/1.1 502 ") and b"did not answer" in said


# ------------------------------------------------------------------------------------------------- byte for byte


class Bare:
    """A provider of one connection at a time, handled by a function."""

    def __init__(self, handle: Callable[[socket.socket], None]) -> None:
        self._handle = handle
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Bare:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _accept(self) -> None:
        try:
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._one, args=(connection,), daemon=True).start()
        except OSError:
            return

    def _one(self, connection: socket.socket) -> None:
        with connection:
            self._handle(connection)


def head(path: str) -> bytes:
    """What a client asks to switch with."""
    key = base64.b64encode(b"0123456789abcdef").decode()
    lines = [f"GET /{TOKEN}{path} HTTP/1.1", "Host: localhost", "Connection: keep-alive, Upgrade", "Upgrade: websocket"]
    lines += ["Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {key}"]
    return "\r\n".join([*lines, "", ""]).encode()


SWITCHED = (
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n"
)


@pytest.fixture(scope="module")
def echo():
    """A gateway before a provider that sends every byte back; what a connection begins with is sent at once."""

    def handle(connection: socket.socket) -> None:
        asked = b""
        while b"\r\n\r\n" not in asked:
            asked += connection.recv(65_536)
        assert b"Connection: Upgrade\r\nUpgrade: websocket" in asked
        connection.sendall(SWITCHED + b"at once" + asked.split(b"\r\n\r\n", 1)[1])
        while part := connection.recv(65_536):
            connection.sendall(part)

    with Bare(handle) as bare, Proxy(bare.url) as proxy:
        yield proxy.port


@settings(max_examples=25)
@given(st.lists(st.binary(min_size=1, max_size=3_000), max_size=20), st.integers(0, 2))
def test_any_bytes_in_any_pieces_come_out_as_they_went_in(echo: int, pieces: list[bytes], early: int):
    """Also what is sent before the other side has switched."""
    with socket.create_connection(("127.0.0.1", echo), timeout=10) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        first, rest = b"".join(pieces[:early]), pieces[early:]
        client.sendall(head(PATH) + first)
        got = b""
        while b"at once" not in got:
            got += client.recv(65_536)
        for piece in rest:
            client.sendall(piece)
        wanted = b"at once" + b"".join(pieces)
        while len(got.split(b"\r\n\r\n", 1)[1]) < len(wanted):
            part = client.recv(65_536)
            assert part
            got += part
    assert got.split(b"\r\n\r\n", 1)[1] == wanted


def test_a_slow_reader_slows_the_writer_down_and_nothing_is_lost():
    size, sent = 30_000_000, []

    def handle(connection: socket.socket) -> None:
        connection.recv(65_536)
        connection.sendall(SWITCHED)
        block = bytes(range(256)) * 256
        for _ in range(size // len(block)):
            connection.sendall(block)
            sent.append(len(block))

    with (
        Bare(handle) as bare,
        Proxy(bare.url) as proxy,
        socket.create_connection(("127.0.0.1", proxy.port), timeout=20) as client,
    ):
        client.sendall(head(PATH))
        time.sleep(0.5)
        assert sum(sent) < 20_000_000, "it waits for the reader"
        digest, total = hashlib.sha256(), 0
        got = b""
        while b"\r\n\r\n" not in got:
            got += client.recv(1 << 20)
        part = got.split(b"\r\n\r\n", 1)[1]
        while part:
            digest.update(part)
            total += len(part)
            part = client.recv(1 << 20)
    expected = bytes(range(256)) * 256 * (size // 65_536)
    assert total == len(expected) and digest.digest() == hashlib.sha256(expected).digest()


@pytest.mark.parametrize("end", ("client", "provider", "proxy"))
def test_whichever_end_goes_away_the_other_is_told(end: str):
    gone = threading.Event()
    opened = threading.Event()

    def handle(connection: socket.socket) -> None:
        connection.recv(65_536)
        connection.sendall(SWITCHED)
        opened.set()
        if end != "provider":
            connection.settimeout(10)
            if connection.recv(1) == b"":
                gone.set()

    with Bare(handle) as bare:
        proxy = Proxy(bare.url)
        client = socket.create_connection(("127.0.0.1", proxy.port), timeout=10)
        client.sendall(head(PATH))
        assert opened.wait(5)
        if end == "client":
            client.close()
            assert gone.wait(2)
        elif end == "proxy":
            started = time.monotonic()
            proxy.gateway.stop()
            assert gone.wait(2) and time.monotonic() - started < 3
        else:
            data = b""
            while part := client.recv(65_536):
                data += part
            assert data.startswith(b"HTTP/1.1 101 ")
        client.close()
        proxy.gateway.stop()
