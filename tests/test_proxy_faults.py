"""What goes wrong, in every format: the client sees what it would see going direct, and nothing recorded is lost.

A raw client asks a raw provider twice, directly and through a gateway, and the two outcomes are held against each other.
"""

from __future__ import annotations

import http.client
import itertools
import json
import os
import random
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import bodies
import providers
import streams
from cutline import cut, record
from cutline.encodings import pack
from cutline.proxy import tap
from cutline.proxy.app import Passed
from cutline.proxy.observer import Observer, Place
from providers import WAYS, WHOLE, growing
from streams import Said
from two_ends import TOKEN, Headers, Provider, Proxy, Seen, answer, chunk, command, ended, head, until, watch

LAST = {way: growing(way)[-1] for way in WAYS}
STREAMS = {way: streams.stream(way, Said()) for way in WAYS}
_OWN = ("date", "connection", "transfer-encoding", "keep-alive")  # headers of a connection


def outcome(url: str, target: str, body: bytes, headers: Headers = ()) -> dict[str, Any]:
    """All that a client sees of an answer: its head, its bytes as far as they came, and how it ended."""
    parts = urlsplit(url)
    with closing(http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=20)) as connection:
        connection.request("POST", parts.path + target, body, dict(headers))
        try:
            got = connection.getresponse()
        except (http.client.BadStatusLine, ConnectionError) as error:
            return {"error": type(error).__name__}
        told = [(name, value) for name, value in got.getheaders() if name.lower() not in _OWN]
        data, end = b"", "whole"
        try:
            while part := got.read1(65_536):
                data += part
            if got.length:
                end = "broken"
        except (http.client.IncompleteRead, ConnectionError, ValueError) as error:
            data += getattr(error, "partial", b"")
            end = "broken"
        return {"status": (got.status, got.reason), "headers": told, "body": data, "end": end}


def error(way: str, status: int) -> bytes:
    """An error in the provider's own shape, with what its clients look at."""
    told = json.dumps(providers._error(providers.format_of(way), "later")).encode()
    headers = [("retry-after", "7"), ("x-should-retry", "true"), ("x-request-id", "r1")]
    return answer(told, f"{status} Told", headers)


def streamed(way: str, data: bytes, framing: str = "chunked") -> tuple[bytes, bool]:
    """A streamed answer in a framing, and whether the connection ends with it."""
    kind = [("Content-Type", streams.WAYS[way][1]), ("x-request-id", "r1")]
    pieces = [data[at : at + 701] for at in range(0, len(data), 701)]
    if framing == "chunked":
        told = head("200 OK", [*kind, ("Transfer-Encoding", "chunked")])
        return told + b"".join(map(chunk, pieces)) + b"0\r\n\r\n", False
    if framing == "length":
        return head("200 OK", [*kind, ("Content-Length", str(len(data)))]) + data, False
    return head("200 OK", [*kind, ("Connection", "close")]) + data, True


def garbled(way: str) -> bytes:
    """A stream with what does not belong there in its middle: half events, other bytes, JSON that is none."""
    whole, half = STREAMS[way], len(STREAMS[way]) // 2
    return whole[:half] + b'\r\n\r\ndata: {"choices": [\n\ndata: \xff\xfe\x00\n\n\x00\x00\x00\x10' + whole[half:]


def reset(connection: socket.socket) -> None:
    """End a connection as a crash does."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


FAULTS: dict[str, Callable[[str], Callable[[Seen], bytes | None]]] = {
    **{str(status): lambda way, status=status: lambda seen: error(way, status) for status in (400, 401, 403, 404, 413)},
    **{str(status): lambda way, status=status: lambda seen: error(way, status) for status in (422, 429, 500, 503, 529)},
    "whole": lambda way: lambda seen: streamed(way, STREAMS[way])[0],
    "garbled": lambda way: lambda seen: streamed(way, garbled(way))[0],
    "an error in the stream": lambda way: lambda seen: streamed(way, STREAMS[way][:400] + _event(way))[0],
    "until the end": lambda way: lambda seen: seen.send(streamed(way, STREAMS[way], "close")[0]),
    "no last chunk": lambda way: lambda seen: seen.send(streamed(way, STREAMS[way])[0][:-5]),
    "half a chunk": lambda way: lambda seen: seen.send(streamed(way, STREAMS[way])[0][:-40]),
    "too short": lambda way: lambda seen: seen.send(streamed(way, STREAMS[way], "length")[0][:-9]),
    "no bytes": lambda way: lambda seen: answer(b"", "200 OK"),
    "a redirect": lambda way: lambda seen: answer(b"", "307 There", [("Location", "http://127.0.0.1:1/x")]),
}


def _event(way: str) -> bytes:
    if streams.WAYS[way][1] == streams.AMAZON:
        return streams.frame("throttlingException", b'{"message":"slow down"}', "exception", ":exception-type")
    return b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n'


@pytest.fixture(scope="module")
def two() -> Iterator[Callable[[str, Callable[[Seen], bytes | None], bytes], tuple[dict[str, Any], dict[str, Any]]]]:
    """Asks a provider directly and through a gateway; both outcomes."""
    script: list[Callable[[Seen], bytes | None]] = []
    with Provider(lambda seen: script[-1](seen)) as provider, Proxy(provider.url) as proxy:

        def ask(way: str, told: Callable[[Seen], bytes | None], body: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
            script.append(told)
            headers = [("Content-Type", "application/json")]
            return outcome(provider.url, WAYS[way], body, headers), outcome(proxy.url, WAYS[way], body, headers)

        yield ask


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("fault", FAULTS)
def test_the_client_sees_what_it_would_see_going_direct(way: str, fault: str, two: Any):
    direct, through = two(way, FAULTS[fault](way), LAST[way])
    assert through == direct and "status" in direct


@pytest.mark.parametrize("way", WAYS)
def test_a_provider_that_resets_in_mid_stream_is_seen_to_break_off(way: str, two: Any):
    def told(seen: Seen) -> None:
        seen.send(streamed(way, STREAMS[way])[0][:900])
        time.sleep(0.2)  # what was sent is read before the reset throws it away
        reset(seen.connection)

    direct, through = two(way, told, LAST[way])
    assert through == direct and direct["end"] == "broken" and direct["body"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("how", ("closes", "resets", "is not there", "says no HTTP"))
def test_no_answer_at_all_is_told_in_the_provider_s_shape_and_quickly(way: str, how: str):
    def told(seen: Seen) -> None:
        if how == "resets":
            reset(seen.connection)
        elif how == "says no HTTP":
            seen.send(b"\x16\x03\x01 no HTTP\r\n\r\n")

    with Provider(told) as provider:
        url = provider.url
        if how == "is not there":
            with socket.create_server(("127.0.0.1", 0)) as taken:
                url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with Proxy(url) as proxy:
            started = time.monotonic()
            got = outcome(proxy.url, WAYS[way], LAST[way])
            assert time.monotonic() - started < 2 and got["status"][0] == 502
    said = json.loads(got["body"])
    message = said["message"] if providers.format_of(way) == "converse" or way == "invoke" else said["error"]["message"]
    assert message.startswith(f"cutline: {url} did not answer: ") and "\n" not in message


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("when", ("before the first byte", "in the middle"))
def test_a_client_that_gives_up_a_hanging_answer_ends_the_provider_s_work(way: str, when: str):
    def told(seen: Seen) -> bytes | None:
        if seen.line.startswith("GET"):
            return answer(b"next")
        if when == "in the middle":
            seen.send(streamed(way, STREAMS[way])[0][:900])
        watch(seen)
        return None

    with Provider(told) as provider, Proxy(provider.url) as proxy:
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as client:
            line = f"POST /{TOKEN}{WAYS[way]} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(LAST[way])}\r\n\r\n"
            client.sendall(line.encode() + LAST[way])
            assert until(lambda: provider.seen and provider.seen[0].whole.is_set())
            if when == "in the middle":
                assert client.recv(100)
        assert provider.seen[0].gone.wait(1), "within a second"
        assert until(lambda: proxy.passed), "what was sent is counted all the same"
        assert proxy.ask("GET", "/v1/models").body == b"next", "the proxy goes on"


# ------------------------------------------------------------------------------------- bytes are bytes, both ways


@pytest.fixture(scope="module")
def mirror() -> Iterator[tuple[Proxy, Provider, list[tuple[Sequence[bytes], str]]]]:
    """A provider that answers with the pieces and in the framing that stand in a list."""
    script: list[tuple[Sequence[bytes], str]] = []

    def told(seen: Seen) -> bytes | None:
        pieces, framing = script[-1]
        kind = [("Content-Type", "text/event-stream")]
        if framing == "length":
            kind.append(("Content-Length", str(sum(map(len, pieces)))))
        elif framing == "chunked":
            kind.append(("Transfer-Encoding", "chunked"))
        else:
            kind.append(("Connection", "close"))
        seen.send(head("200 OK", kind))
        for piece in pieces:
            if piece:
                seen.send(chunk(piece) if framing == "chunked" else piece)
        if framing == "chunked":
            seen.send(b"0\r\n\r\n")
        return None if framing == "close" else b""

    with Provider(told) as provider, Proxy(provider.url) as proxy:
        yield proxy, provider, script


PIECES = st.lists(st.binary(max_size=2_000), max_size=12)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(sorted(WAYS)), PIECES, st.sampled_from(("chunked", "length", "close")))
def test_any_answer_in_any_pieces_comes_out_as_it_went_in(mirror: Any, way: str, pieces: list[bytes], framing: str):
    proxy, _, script = mirror
    script.append((pieces, framing))
    before = len(proxy.passed)
    got = outcome(proxy.url, WAYS[way], LAST[way])
    assert (got["body"], got["end"]) == (b"".join(pieces), "whole")
    assert until(lambda: len(proxy.passed) > before)
    passed = proxy.passed[-1]
    assert passed.answer == b"".join(pieces)
    tap.read(passed.answer, passed.content_type, passed.encoding, passed.sent.format)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from([*WAYS.values(), *WHOLE.values(), "/v1/files", "/api/chat"]),
    PIECES,
    st.booleans(),
    st.sampled_from(("", "gzip", "zstd", "br", "deflate, gzip")),
)
def test_any_request_in_any_pieces_goes_on_as_it_came(
    mirror: Any, target: str, pieces: list[bytes], chunked: bool, encoding: str
):
    """Nothing of it is a history that could be cut: whatever it claims to be, the provider gets the same bytes."""
    proxy, provider, script = mirror
    script.append(([b"{}"], "length"))
    before = len(provider.seen)
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as client:
        lines = [f"POST /{TOKEN}{target} HTTP/1.1", "Host: localhost"]
        lines += [f"Content-Encoding: {encoding}"] if encoding else []
        lines.append("Transfer-Encoding: chunked" if chunked else f"Content-Length: {sum(map(len, pieces))}")
        client.sendall("\r\n".join([*lines, "", ""]).encode())
        for piece in pieces:
            if piece:
                client.sendall(chunk(piece) if chunked else piece)
        if chunked:
            client.sendall(b"0\r\n\r\n")
        got = http.client.HTTPResponse(client)
        got.begin()
        assert (got.status, got.read()) == (200, b"{}")
    (seen,) = provider.seen[before:]
    assert bytes(seen.body) == b"".join(pieces) and (seen.header("content-encoding") or "") == encoding


# ---------------------------------------------------------------------------------------------- reported by others


def reported(name: str) -> bytes:
    path = bodies.BUGS / name
    if not path.exists():
        pytest.skip("the reported inputs are not on this machine: there is no ../shared/bugs")
    return path.read_bytes()


@pytest.mark.parametrize("encoding", ("zstd", "gzip", "deflate", "zstd, gzip", ""))
def test_bug_22_a_compressed_body_is_opened_cut_and_sent_on_in_its_encoding(encoding: str):
    from cutline.encodings import unpack

    plain = unpack(reported("22-zstd-request-body.bin"), "zstd", 1 << 20)
    assert plain is not None
    body = reported("22-zstd-request-body.bin") if encoding == "zstd" else pack(plain, encoding)
    headers = [("Content-Type", "application/json"), *([("Content-Encoding", encoding)] if encoding else [])]
    with Provider() as provider, Proxy(provider.url) as proxy:
        assert proxy.ask("POST", "/v1/responses", body, headers).status == 200
        for torn in (body[: len(body) // 2], b"not it at all") if encoding else ():
            assert proxy.ask("POST", "/v1/responses", torn, headers).status == 200
            assert bytes(provider.seen[-1].body) == torn and provider.seen[-1].header("content-encoding") == encoding
    seen = provider.seen[0]
    assert seen.header("content-length") == str(len(seen.body)) and (seen.header("content-encoding") or "") == encoding
    sent = unpack(bytes(seen.body), encoding, 1 << 20)
    assert sent == cut(plain).body and sent is not None
    for words in (b"Typeset the hymn index.", b"Overfull boxes come from long first lines.", b"Hyphenate them."):
        assert words in sent
    for gone in (b"rs_z1", b"call_z1"):
        assert gone not in sent
    assert b"call_zck" in sent


@pytest.mark.parametrize("chunked", (False, True))
def test_bug_36_a_client_that_waits_for_leave_to_send(chunked: bool):
    raw = reported("36-expect-100-continue.bin")
    top, _, body = raw.partition(b"\r\n\r\n")
    lines = [line for line in top.split(b"\r\n")[1:] if not line.lower().startswith((b"host", b"content-length"))]
    framing = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: %d" % len(body)
    target = top.split(b" ")[1]
    with Provider() as provider, Proxy(provider.url) as proxy:
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as client:
            first = b"POST /%b%b HTTP/1.1" % (TOKEN.encode(), target)
            client.sendall(b"\r\n".join([first, b"Host: localhost", framing, *lines, b"", b""]))
            started = time.monotonic()
            assert client.recv(65_536) == b"HTTP/1.1 100 Continue\r\n\r\n" and time.monotonic() - started < 1
            client.sendall(chunk(body) + b"0\r\n\r\n" if chunked else body)
            got = http.client.HTTPResponse(client)
            got.begin()
            assert (got.status, got.read()) == (200, b"{}")
        (seen,) = provider.seen
        assert seen.target == target.decode() and seen.header("expect") is None
        assert bytes(seen.body) == cut(body).body != body and seen.header("content-length") == str(len(seen.body))
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as client:
            client.sendall(b"\r\n".join([first, b"Host: localhost", framing, *lines, b"", b""]))
            assert client.recv(65_536)
        time.sleep(0.1)
        assert len(provider.seen) == 1, "who goes away while we wait has asked for nothing"


def test_bug_38_pieces_of_a_stream_pass_one_by_one():
    """Run A: each piece within 200 ms, half characters too; run C: what breaks off is seen to."""
    told = json.loads(reported("38-sse-pieces-and-aborts.json"))
    pieces = [bytes.fromhex(piece["hex"]) for piece in told["pieces"]]
    sent: list[float] = []
    ends: list[int] = [len(pieces), 3]

    def answers(seen: Seen) -> bytes | None:
        last = ends.pop(0)
        seen.send(head("200 OK", [("Content-Type", told["content_type"]), ("Transfer-Encoding", "chunked")]))
        for piece in pieces[:last]:
            time.sleep(0.05)
            sent.append(time.monotonic())
            seen.send(chunk(piece))
        return b"0\r\n\r\n" if last == len(pieces) else None

    with Provider(answers) as provider, Proxy(provider.url) as proxy:
        for last in (len(pieces), 3):
            sent.clear()
            came: list[tuple[float, bytes]] = []
            with closing(http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=10)) as connection:
                connection.request("POST", f"/{TOKEN}/v1/messages", growing("anthropic")[0])
                got = connection.getresponse()
                assert got.getheader("content-type") == told["content_type"] and got.getheader("content-length") is None
                try:
                    while part := got.read1(65_536):
                        came.append((time.monotonic(), part))
                    end = "whole"
                except (http.client.IncompleteRead, ConnectionError, ValueError):
                    end = "broken"
            assert [part for _, part in came] == pieces[:last] and end == ("whole" if last == len(pieces) else "broken")
            assert all(at - begun < 0.2 for (at, _), begun in zip(came, sent))
        assert len(provider.seen) == 2, "nothing is asked for again"


# ------------------------------------------------------------------------------------------ the record, and our own end


def stored(tmp_path: Path) -> list[bytes]:
    """The recorded bodies of the session "s", after everything in the record was checked."""
    with record.Record(tmp_path / "data" / "cutline" / "record.db", readonly=True) as held:
        assert held.faults() == []
        return [held.body(row.id) for row in held.requests("s")]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="limits the size of files as POSIX does")
def test_a_full_disk_stops_the_record_and_nothing_else(tmp_path: Path):
    ask = [("x-session-id", "s")]
    grown = growing("openai_responses", 40, (20,))
    with providers.Provider() as provider:
        with command(tmp_path, provider.url, most=300_000) as (address, running):
            for body in grown:
                large = body.replace(b"# of part", random.Random(len(body)).randbytes(4_000).hex().encode(), 1)
                assert outcome(address, "/v1/responses", large, ask)["status"][0] == 200
            told = ended(running)
        assert len(provider.asked) == len(grown) and not provider.faults
        assert len(told["faults"]) == 1 and told["faults"][0].startswith("the record: "), told["faults"]
        assert "full" in told["faults"][0] or "disk" in told["faults"][0]
        kept = stored(tmp_path)
        assert 0 < len(kept) < len(grown)
        with command(tmp_path, provider.url) as (address, running):
            assert outcome(address, "/v1/responses", grown[-1], ask)["status"][0] == 200
            assert ended(running)["faults"] == []
    assert stored(tmp_path) == [*kept, grown[-1]]


def test_a_proxy_that_is_killed_in_a_session_and_started_again_goes_on_as_if_nothing_had_been(tmp_path: Path):
    """The same request gives the same bytes, what was recorded is there, and what a provider refused is not tried again."""
    ask = [("x-session-id", "s")]
    grown = growing("gemini", 10, (5,))
    refused = cut(grown[-3]).body
    hangs = threading.Event()

    def told(seen: Seen) -> bytes | None:
        if bytes(seen.body) == grown[-2] and not hangs.is_set():
            hangs.set()
            seen.send(streamed("gemini", STREAMS["gemini"])[0][:500])
            watch(seen)
            return None
        if bytes(seen.body) == refused:
            return error("gemini", 400)
        return streamed("gemini", STREAMS["gemini"])[0]

    with Provider(told) as provider:
        with command(tmp_path, provider.url) as (address, running):
            for body in grown[:-2]:
                assert outcome(address, WAYS["gemini"], body, ask)["status"][0] == 200
            assert until(lambda: len(stored_quietly(tmp_path)) == len(grown) - 2)
            torn = threading.Thread(target=outcome, args=(address, WAYS["gemini"], grown[-2], ask))
            torn.start()
            assert hangs.wait(10)
            running.kill()
            torn.join(10)
            running.communicate()
        before = len(provider.seen)
        with command(tmp_path, provider.url) as (address, running):
            for body in grown[-3:]:
                assert outcome(address, WAYS["gemini"], body, ask)["status"][0] == 200
            report = ended(running)
    sent = [bytes(seen.body) for seen in provider.seen]
    assert sent[: before - 3] == [cut(body).body for body in grown[:-3]]
    assert sent[before - 3 : before] == [refused, grown[-3], grown[-2]], "refused, and the original from then on"
    assert sent[before:] == grown[-3:], "that is remembered"
    assert report["faults"] == [] and len(report["sessions"]) == 1
    assert stored(tmp_path) == [*grown[:-2], *grown[-3:]]


def stored_quietly(tmp_path: Path) -> list[bytes]:
    try:
        return stored(tmp_path)
    except Exception:
        return []


# ----------------------------------------------------------------------------------------------------------- fuzzing


def fuzz(seconds: float, seed: int) -> int:
    """Throw broken heads and bodies at a gateway for so long; how many requests were made.

    What is no HTTP is refused or dropped, what is passes; whatever comes, the gateway answers the next good request,
    and nothing that a provider would not be sent directly reaches it.
    """
    dice = random.Random(seed)
    seen: list[Passed] = []
    grown = {way: growing(way) for way in WAYS}
    writer_faults: list[str] = []
    made = 0
    with providers.Provider() as provider, Proxy(provider.url, passed=seen.append) as proxy:
        observer = Observer(Place("fuzz", "/p", None), None)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            way = dice.choice(sorted(WAYS))
            body = bytearray(dice.choice(grown[way]))
            for _ in range(dice.randrange(6)):
                at = dice.randrange(len(body))
                what = dice.choice((b"", b"\x00", b'"', b"\\", b"{", b"]", b"\xff", b"\\ud83d", dice.randbytes(4)))
                body[at : at + dice.randrange(8)] = what
            encoding = dice.choice(("", "", "gzip", "zstd", "deflate", "br", "gzip, gzip"))
            sent = pack(bytes(body), encoding) if encoding and encoding != "br" else bytes(body)
            lines = [f"POST /{TOKEN}{WAYS[way]} HTTP/1.1", "Host: localhost", f"Content-Length: {len(sent)}"]
            lines += [f"Content-Encoding: {encoding}"] if encoding else []
            lines += dice.sample(ODD, dice.randrange(3))
            raw = bytearray("\r\n".join([*lines, "", ""]).encode("latin-1"))
            if dice.randrange(3) == 0:
                for _ in range(dice.randrange(1, 4)):
                    at = dice.randrange(len(raw))
                    raw[at : at + dice.randrange(3)] = dice.choice((b"\r\n", b"\x00", b":", b" ", b"%2e%2e/", b"\xff"))
            _throw(proxy.port, bytes(raw) + sent, dice)
            made += 1
            if made % 25 == 0:
                good = dice.choice(sorted(WAYS))
                got = outcome(proxy.url, WAYS[good], LAST[good])
                assert got["status"][0] == 200 and got["end"] == "whole", (seed, made, got)
                assert provider.asked[-1].body == cut(LAST[good]).body
                for one in seen:
                    assert not one.sent.fault, (seed, made, one.sent.fault)
                    observer.passed(one)
                seen.clear()
                provider.asked.clear()
        observer.close(60)
        writer_faults += observer.faults
    assert not writer_faults, writer_faults
    return made


ODD = [
    *("Content-Length: 7", "Content-Length: -1", "Transfer-Encoding: chunked", "Transfer-Encoding: gzip", "Expect: x"),
    *("Expect: 100-continue", "Connection: close", "Connection: Upgrade", "Upgrade: websocket", "Upgrade: h2c"),
    *("Origin: null", "Host: evil.example", "Content-Encoding: gzip", "x-session-id: \x7f", "x-a:", ": b", "x y: 1"),
    *(
        "x-codex-turn-metadata: {",
        "Accept-Encoding: br;q=x",
        f"x-long: {'a' * 9_000}",
        "Content-Type: text/event-stream",
    ),
    *("Authorization: AWS4-HMAC-SHA256 Credential=x/20260101/eu-west-1/bedrock/aws4_request, x=y", "TE: trailers"),
]


def _throw(port: int, raw: bytes, dice: random.Random) -> None:
    """Send bytes in pieces and read what comes, for a moment; some go away at once."""
    with socket.create_connection(("127.0.0.1", port), timeout=5) as client:
        try:
            for at in itertools.count(0, step := dice.choice((len(raw), len(raw) // 2 + 1, 1_000))):
                if at >= len(raw):
                    break
                client.sendall(raw[at : at + step])
            if dice.randrange(8) == 0:
                return
            client.settimeout(0.2)
            while client.recv(65_536):
                if dice.randrange(4) == 0:
                    return
        except OSError:
            return


def test_the_gateway_stands_what_is_thrown_at_it():
    assert fuzz(1.5, 1) > 10


@pytest.mark.slow
@pytest.mark.parametrize("seed", (int(os.environ.get("CUTLINE_FUZZ_SEED", "7")),))
def test_the_gateway_stands_five_minutes_of_it(seed: int):
    """CUTLINE_FUZZ_S names another time, in seconds."""
    assert fuzz(float(os.environ.get("CUTLINE_FUZZ_S", "300")), seed) > 100
