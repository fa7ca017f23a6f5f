"""The gateway on loopback: what reaches the provider, what comes back, and what never passes.

A real gateway between a real client (http.client, or bare sockets) and a provider that keeps every byte.
"""

from __future__ import annotations

import contextlib
import gzip
import http.client
import json
import logging
import os
import queue
import secrets
import socket
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bodies
import histories
from cutline import cut, cutter, record
from cutline.cutter import Cutter, Verdict
from cutline.errors import InputError
from cutline.proxy import app, plan, routes
from cutline.proxy.app import Gateway
from cutline.proxy.observer import Observer, Place
from live.upstream import Upstream, text
from two_ends import STREAM, TOKEN, Headers, Provider, Proxy, Seen, answer, chunk, head, until, watch

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MESSAGES = "/v1/messages?beta=true"
COUNT = "/v1/messages/count_tokens?beta=true"


# ---------------------------------------------------------------------------------------------------- the bodies


def said(words: str) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "text", "text": words}]}


def worked(number: int, **more: Any) -> list[dict[str, Any]]:
    call = {"type": "tool_use", "id": f"toolu_{number}", "name": "Bash", "input": {"command": f"seq {number}"}}
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": f"{number}\n" * 300}
    return [{"role": "assistant", "content": [*more.get("leading", ()), call]}, {"role": "user", "content": [result]}]


def history(*, checkpoint: bool = True, thinking: bool = False) -> list[dict[str, Any]]:
    """Calls, a checkpoint, and one more call behind it, with thinking before that call where asked."""
    thought = [{"type": "thinking", "thinking": "the bound?", "signature": "c2lnbmVk"}] if thinking else []
    turn = bodies.checkpoint_turn(1) if checkpoint else []
    return [{"role": "user", "content": "Count."}, *worked(1), *worked(2), *turn, *worked(3, leading=thought)]


SEAMED = bodies.body(history())
SEAMLESS = bodies.body(history(checkpoint=False))
BOUND = bodies.body(history(thinking=True), model="claude-opus-5-5")
EVENT = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%b"}}\n\n'
END = b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}\n\n'


def refused(message: str = "messages.3: no", status: str = "400 Bad Request", headers: Headers = ()) -> bytes:
    error = {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
    return answer(json.dumps(error).encode(), status, headers)


# ----------------------------------------------------------------------------------------- answers pass as they come


def test_an_event_reaches_the_client_before_the_next_one_is_written():
    go = threading.Event()

    def told(seen: Seen) -> None:
        seen.send(STREAM + chunk(EVENT % b"one"))
        assert go.wait(10)
        seen.send(chunk(EVENT % b"two") + b"0\r\n\r\n")

    with Provider(told) as provider, Proxy(provider.url) as proxy:
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as connection:
            head = f"POST /{TOKEN}{MESSAGES} HTTP/1.1\r\nHost: localhost:{proxy.port}\r\nContent-Length: {len(SEAMLESS)}\r\n\r\n"
            connection.sendall(head.encode() + SEAMLESS)
            got = http.client.HTTPResponse(connection)
            got.begin()
            assert got.read1(65_536) == EVENT % b"one"
            go.set()
            assert got.read() == EVENT % b"two"
        assert until(lambda: proxy.passed)
        assert proxy.passed[0].answer == EVENT % b"one" + EVENT % b"two"
        assert proxy.passed[0].content_type == "text/event-stream"


PACKED = {
    "gzip": gzip.compress(EVENT % b"packed"),
    "deflate": zlib.compress(EVENT % b"packed"),
    "zstd": zstd.compress(EVENT % b"packed"),
    "br": b"\x0b\x02\x80not really brotli, and nobody's business\x03",
}


@pytest.mark.parametrize("coding", PACKED)
@pytest.mark.parametrize("framing", ("chunked", "length", "close"))
def test_a_compressed_answer_passes_untouched_however_its_end_is_told(coding: str, framing: str):
    packed = PACKED[coding]
    headers = [("Content-Type", "text/event-stream"), ("content-encoding", coding)]

    def told(seen: Seen) -> bytes | None:
        if framing == "length":
            return head("200 OK", [*headers, ("Content-Length", str(len(packed)))]) + packed
        if framing == "chunked":
            return head("200 OK", [*headers, ("Transfer-Encoding", "chunked")]) + chunk(packed) + b"0\r\n\r\n"
        seen.send(head("200 OK", [*headers, ("Connection", "close")]) + packed)
        return None

    with Provider(told) as provider, Proxy(provider.url) as proxy:
        got = proxy.ask("POST", MESSAGES, SEAMLESS)
        assert got.body == packed
        assert ("content-encoding", coding) in [(name.lower(), value) for name, value in got.headers]
        assert until(lambda: proxy.passed)
        assert (proxy.passed[0].answer, proxy.passed[0].encoding) == (packed, coding)


@pytest.mark.parametrize(
    ("asked", "sent"),
    (
        ("gzip, deflate, br, zstd", "gzip, deflate, zstd"),
        ("br;q=1.0, gzip;q=0.8, *;q=0.1", "gzip;q=0.8"),
        ("br", "identity"),
        ("identity", "identity"),
    ),
)
def test_only_encodings_are_asked_for_in_which_usage_can_be_read(asked: str, sent: str):
    with Provider() as provider, Proxy(provider.url) as proxy:
        proxy.ask("POST", MESSAGES, SEAMLESS, [("Accept-Encoding", asked)])
        proxy.ask("POST", MESSAGES, SEAMLESS)
    assert [seen.header("accept-encoding") for seen in provider.seen] == [sent, None]


def test_head_and_get_and_unknown_paths_pass_with_their_bodies():
    upload = secrets.token_bytes(300_000)

    def told(seen: Seen) -> bytes:
        whole = answer(bytes(seen.body) or b"listed", "203 As Told", [("x-one", "1")])
        return whole[: whole.index(b"\r\n\r\n") + 4] if seen.line.startswith("HEAD") else whole

    with Provider(told) as provider, Proxy(provider.url) as proxy:
        head = proxy.ask("HEAD", "/")
        assert (head.status, head.reason, head.body) == (203, "As Told", b"")
        assert ("Content-Length", "6") in head.headers
        assert proxy.ask("GET", "/v1/models?limit=1").body == b"listed"
        assert proxy.ask("POST", "/v1/files", upload, [("Content-Type", "application/x-any")]).body == upload
        assert proxy.ask("PUT", "/v1/messages", SEAMED).body == SEAMED, "only POST carries a history"
        assert proxy.ask("DELETE", "/v1/messages/batches/b1").status == 203
        assert proxy.ask("POST", "/v1/messages/batches", SEAMED).body == SEAMED
        assert not proxy.passed
    assert [seen.line.split(" ")[0] for seen in provider.seen] == ["HEAD", "GET", "POST", "PUT", "DELETE", "POST"]
    assert provider.seen[2].header("content-length") == "300000"


@pytest.mark.parametrize("coding", ("gzip", "deflate", "br"))
def test_a_compressed_body_of_an_unknown_path_passes_untouched(coding: str):
    with Provider() as provider, Proxy(provider.url) as proxy:
        assert proxy.ask("POST", "/v1/files", PACKED[coding], [("Content-Encoding", coding)]).status == 200
    assert bytes(provider.seen[0].body) == PACKED[coding] and provider.seen[0].header("content-encoding") == coding


@pytest.mark.parametrize("chunked", (False, True))
def test_an_upload_streams(chunked: bool):
    """The provider sees the first half before the client has sent the second."""
    half = secrets.token_bytes(200_000)
    framing = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {2 * len(half)}"
    part = chunk(half) if chunked else half
    with Provider() as provider, Proxy(provider.url) as proxy:
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as connection:
            connection.sendall(
                f"POST /{TOKEN}/v1/files HTTP/1.1\r\nHost: localhost\r\n{framing}\r\n\r\n".encode() + part
            )
            assert until(lambda: provider.seen and len(provider.seen[0].body) == len(half))
            connection.sendall(part + (b"0\r\n\r\n" if chunked else b""))
            got = http.client.HTTPResponse(connection)
            got.begin()
            assert got.read() == b"{}"
        assert bytes(provider.seen[0].body) == half + half


@pytest.mark.parametrize(
    "target",
    (
        "/v1/models?",
        "/v1/models?a=1&b=%2F&c=%zz&d[]=%E2%82%AC&e=a+b",
        "/v1/files/a%20b%2Fc%252e/%C3%BC",
        "/v1//double///slashes/",
        "/v1/x;y=1,2/@me:now/(a)'b'*!$",
        "/v1/...dots/.hidden/a..b",
        "",
        "/",
    ),
)
@pytest.mark.parametrize("base", ("", "/api/anthropic", "/a%2Fb"))
def test_odd_paths_and_queries_arrive_as_they_were(target: str, base: str):
    with Provider() as provider, Proxy(provider.url + base) as proxy:
        assert proxy.ask("GET", target).status == 200
    expected = base + target.removesuffix("?")  # an empty query is none
    assert provider.seen[0].target == (expected or "/")


def test_redirects_are_passed_and_not_followed():
    def told(seen: Seen) -> bytes:
        return answer(b"", "307 Temporary Redirect", [("Location", "https://elsewhere.example/v1/messages")])

    with Provider(told) as provider, Proxy(provider.url) as proxy:
        for target in ("/v1/models", MESSAGES):
            got = proxy.ask("POST", target, SEAMED)
            assert got.status == 307 and ("Location", "https://elsewhere.example/v1/messages") in got.headers
    assert len(provider.seen) == 2


def test_headers_keep_their_order_and_those_of_the_connection_end_here():
    given_ = [
        ("x-api-key", "made-up"),
        ("anthropic-beta", "one"),
        ("X-Twice", "a"),
        ("Connection", "keep-alive, X-Mine"),
        ("X-Mine", "of this connection"),
        ("Keep-Alive", "timeout=5"),
        ("TE", "trailers"),
        ("Proxy-Authorization", "Basic bm8="),
        ("x-twice", "b"),
        ("Cookie", "a=1; b=2"),
        ("User-Agent", "claude-cli/2.1.332"),
        ("Accept", "application/json"),
    ]
    back = [
        ("Content-Type", "application/json"),
        ("request-id", "req_1"),
        ("Set-Cookie", "a=1"),
        ("Connection", "keep-alive, X-Theirs"),
        ("X-Theirs", "of that connection"),
        ("set-cookie", "b=2"),
        ("Server", "theirs"),
        ("Content-Length", "2"),
    ]
    with Provider(lambda seen: head("200 OK", back) + b"{}") as provider, Proxy(provider.url) as proxy:
        for method, target in (("POST", MESSAGES), ("GET", "/v1/models")):
            got = proxy.ask(method, target, SEAMED if method == "POST" else None, given_)
            dropped = {"connection", "x-mine", "keep-alive", "te", "proxy-authorization", "x-theirs"}
            sent = [pair for pair in provider.seen[-1].headers if pair[0].lower() not in ("host", "content-length")]
            alike = [(name.replace("x-twice", "X-Twice"), value) for name, value in given_]
            assert sent == [pair for pair in alike if pair[0].lower() not in dropped]
            kept = [pair for pair in got.headers if pair[0] not in ("Date", "Connection")]
            assert kept == [pair for pair in back if pair[0].lower() not in dropped]
    assert provider.seen[0].header("host") == provider.url.removeprefix("http://")
    assert provider.seen[0].names.count("host") == 1


def test_an_answer_without_a_type_gets_none():
    bare = head("200 OK", [("Content-Length", "2")]) + b"ok"
    with Provider(lambda seen: bare) as provider, Proxy(provider.url) as proxy:
        names = {name.lower() for name, _ in proxy.ask().headers}
    assert names <= {"content-length", "date", "connection"}


@pytest.mark.parametrize("target", ("/v1/files", MESSAGES))
def test_a_client_that_waits_for_leave_to_send_gets_it(target: str):
    with Provider() as provider, Proxy(provider.url) as proxy:
        head = f"Host: localhost\r\nExpect: 100-continue\r\nContent-Length: {len(SEAMED)}\r\n\r\n"
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as connection:
            connection.sendall(f"POST /{TOKEN}{target} HTTP/1.1\r\n{head}".encode())
            assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
            connection.sendall(SEAMED)
            got = http.client.HTTPResponse(connection)
            got.begin()
            assert (got.status, got.read()) == (200, b"{}")
        assert proxy.bare(f"POST /wrong{target} HTTP/1.1\r\n{head}".encode())[0] == 403, "refused before it is sent"
    assert provider.seen[0].header("expect") is None


def test_a_connection_is_used_again():
    with Provider() as provider, Proxy(provider.url) as proxy:
        connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=10)
        for body in (SEAMED, SEAMLESS, SEAMED):
            connection.request("POST", f"/{TOKEN}{MESSAGES}", body)
            assert connection.getresponse().read() == b"{}"
        connection.close()
        assert len({id(seen.connection) for seen in provider.seen}) == 1
    assert [bytes(seen.body) for seen in provider.seen] == [cut(SEAMED).body, SEAMLESS, cut(SEAMED).body]


# -------------------------------------------------------------------------------------------------- ends that are none


@pytest.mark.parametrize("when", ("before its head", "in the middle"))
def test_a_client_that_goes_away_takes_the_provider_s_answer_with_it(when: str):
    def told(seen: Seen) -> None:
        if when == "in the middle":
            seen.send(STREAM + chunk(EVENT % b"one"))
        watch(seen)

    with Provider(told) as provider, Proxy(provider.url) as proxy:
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as connection:
            head = f"POST /{TOKEN}{MESSAGES} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(SEAMED)}\r\n\r\n"
            connection.sendall(head.encode() + SEAMED)
            if when == "in the middle":
                assert connection.recv(65_536).startswith(b"HTTP/1.1 200")
            assert until(lambda: provider.seen and provider.seen[0].whole.is_set())
        assert provider.seen[0].gone.wait(1), "the provider goes on for nobody"
        assert until(lambda: proxy.passed), "what was sent was sent, and is counted"
        (passed,) = proxy.passed
        assert passed.sent.body == cut(SEAMED).body
        assert (passed.status, passed.answer) == ((200, EVENT % b"one") if when == "in the middle" else (0, b""))


@pytest.mark.parametrize("framing", ("chunked", "length"))
@pytest.mark.parametrize("target", ("/v1/files", MESSAGES))
def test_an_answer_that_breaks_off_is_seen_to_break_off(framing: str, target: str):
    def told(seen: Seen) -> None:
        if framing == "chunked":
            seen.send(STREAM + chunk(EVENT % b"one"))
        else:
            seen.send(head("200 OK", [("Content-Length", "5000")]) + b"half")

    with Provider(told) as provider, Proxy(provider.url) as proxy:
        with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
            proxy.ask("POST", target, SEAMLESS)
        if target == MESSAGES:
            assert until(lambda: proxy.passed) and proxy.passed[0].status == 200


def test_a_provider_that_closes_without_an_answer_is_said_in_the_provider_s_shape():
    with Provider(lambda seen: None) as provider, Proxy(provider.url) as proxy:
        got = proxy.ask("POST", MESSAGES, SEAMED)
        assert got.status == 502 and json.loads(got.body)["type"] == "error"
        assert until(lambda: proxy.passed) and proxy.passed[0].status == 0


def test_a_provider_that_is_not_there_is_said_quickly():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with Proxy(f"http://127.0.0.1:{port}") as proxy:
        start = time.monotonic()
        for method, target in (("POST", MESSAGES), ("GET", "/v1/models")):
            got = proxy.ask(method, target, SEAMED)
            assert got.status == 502
            error = json.loads(got.body)
            assert error["error"]["type"] == "api_error"
            assert error["error"]["message"] == (f"cutline: http://127.0.0.1:{port} did not answer: connection refused")
        assert time.monotonic() - start < 2
        assert not proxy.passed, "nothing was sent"


# ------------------------------------------------------------------------------------------------------------ the cut


def test_a_body_with_a_checkpoint_arrives_cut_and_any_other_as_it_came():
    with Upstream(strict=True) as upstream, Proxy(upstream.url + "/base") as proxy:
        for target in (MESSAGES, COUNT):
            for body in (SEAMED, SEAMLESS, b"no json", b"", b"[]", SEAMED[:-9]):
                proxy.ask("POST", target, body, [("Content-Type", "application/json")])
        assert until(lambda: len(proxy.passed) == 12)
    expected = [cut(SEAMED).body, SEAMLESS, b"no json", b"", b"[]", SEAMED[:-9]]
    assert [request.raw for request in upstream.requests] == expected * 2
    assert cut(SEAMED).changed and {request.path for request in upstream.requests} == {
        "/base" + MESSAGES,
        "/base" + COUNT,
    }
    assert {request.headers["content-length"] for request in upstream.requests[:1]} == {str(len(expected[0]))}
    assert [passed.sent.kind for passed in proxy.passed] == ["turn"] * 6 + ["count"] * 6
    assert proxy.passed[0].sent.whole == SEAMED and proxy.passed[0].sent.seam and not proxy.passed[1].sent.seam


def test_a_large_body_arrives_cut_too():
    large = bodies.body([*history(), *(message for number in range(4, 2_000) for message in worked(number))])
    assert len(large) > 2_000_000
    with Provider() as provider, Proxy(provider.url) as proxy:
        for _ in range(2):
            assert proxy.ask("POST", MESSAGES, large).status == 200
    assert [bytes(seen.body) for seen in provider.seen] == [cut(large).body] * 2


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "zstd": zstd.compress,
    "identity": bytes,
    "deflate, gzip": lambda body: gzip.compress(zlib.compress(body)),
}
UNPACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.decompress,
    "deflate": zlib.decompress,
    "zstd": zstd.decompress,
    "identity": bytes,
    "deflate, gzip": lambda body: zlib.decompress(gzip.decompress(body)),
}


@pytest.mark.parametrize("coding", PACKERS)
def test_a_compressed_body_is_cut_and_goes_on_in_the_encoding_in_which_it_came(coding: str):
    with Provider() as provider, Proxy(provider.url) as proxy:
        for body in (SEAMED, SEAMLESS):
            proxy.ask("POST", MESSAGES, PACKERS[coding](body), [("Content-Encoding", coding)])
        one, two = provider.seen
        assert UNPACKERS[coding](bytes(one.body)) == cut(SEAMED).body and one.header("content-encoding") == coding
        assert one.header("content-length") == str(len(one.body))
        assert bytes(two.body) == PACKERS[coding](SEAMLESS) and two.header("content-encoding") == coding
        assert until(lambda: len(proxy.passed) == 2) and proxy.passed[1].sent.whole == SEAMLESS


def test_two_headers_of_encodings_are_one_list():
    packed = gzip.compress(zlib.compress(SEAMED))
    with Provider() as provider, Proxy(provider.url) as proxy:
        given_ = [("Content-Encoding", "deflate"), ("Content-Encoding", "gzip")]
        assert proxy.ask("POST", MESSAGES, packed, given_).status == 200
    (seen,) = provider.seen
    assert zlib.decompress(gzip.decompress(bytes(seen.body))) == cut(SEAMED).body
    assert [value for name, value in seen.headers if name.lower() == "content-encoding"] == ["deflate", "gzip"]


def test_an_encoding_that_is_not_known_passes_untouched():
    with Provider() as provider, Proxy(provider.url) as proxy:
        assert proxy.ask("POST", MESSAGES, PACKED["br"], [("Content-Encoding", "br")]).status == 200
        assert until(lambda: proxy.passed) and proxy.passed[0].sent.kind == "other"
    assert bytes(provider.seen[0].body) == PACKED["br"] and provider.seen[0].header("content-encoding") == "br"


@pytest.mark.parametrize(
    ("coding", "body"),
    (
        ("gzip", gzip.compress(SEAMED)[:-30]),
        ("gzip", b"no gzip at all"),
        ("zstd", zstd.compress(SEAMED)[:-30]),
        ("deflate", zlib.compress(SEAMED)[:50]),
    ),
)
def test_a_torn_or_false_encoding_is_the_provider_s_to_refuse(coding: str, body: bytes):
    with Provider() as provider, Proxy(provider.url) as proxy:
        assert proxy.ask("POST", MESSAGES, body, [("Content-Encoding", coding)]).status == 200
        assert until(lambda: proxy.passed)
    assert bytes(provider.seen[0].body) == body and provider.seen[0].header("content-encoding") == coding
    assert proxy.passed[0].sent.reason.startswith(f"the body is no {coding}: ")


BOMB = """
import gzip, http.client, sys, zlib
from backports import zstd
from cutline.proxy.app import Gateway

def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) // 1024

def bomb(coding):
    pack = {"gzip": lambda: zlib.compressobj(9, wbits=31), "deflate": zlib.compressobj, "zstd": zstd.ZstdCompressor}
    packer, out = pack[coding](), b""
    for _ in range(100):
        out += packer.compress(bytes(1 << 20))
    return out + packer.flush()

bombs = [("gzip", gzip.compress(bomb("gzip"))), ("zstd", bomb("zstd")), ("deflate", bomb("deflate"))]
bombs[0] = ("gzip, gzip", bombs[0][1])
gateway = Gateway("http://127.0.0.1:9", "token")
url = gateway.start()
before = peak()
for coding, body in bombs:
    connection = http.client.HTTPConnection("127.0.0.1", int(url.split(":")[2].split("/")[0]), timeout=30)
    connection.request("POST", "/token/v1/messages", body, {"Content-Encoding": coding})
    got = connection.getresponse()
    print(coding, len(body), got.status, got.read().decode())
gateway.stop()
print("peak", peak() - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux") or sys.version_info >= (3, 14), reason="reads /proc")
def test_a_decompression_bomb_is_refused_before_it_fills_the_memory():
    done = subprocess.run([sys.executable, "-c", BOMB], capture_output=True, text=True, check=True)
    *lines, last = done.stdout.splitlines()
    assert len(lines) == 3
    for line in lines:
        told = line.rsplit(" 413 ", 1)
        assert int(told[0].rsplit(" ", 1)[1]) < 400_000, "a small body"
        assert json.loads(told[1])["error"]["type"] == "request_too_large"
    assert int(last.split()[1]) < 200, f"{last} MB for bodies of 100 MB"


@pytest.mark.parametrize("chunked", (False, True))
def test_a_body_over_the_cap_is_refused(chunked: bool, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(plan, "BODY_CAP", 1_000_000)
    framing = [("Transfer-Encoding", "chunked")] if chunked else [("Content-Length", "1000001")]
    body = bytes(1_000_001)
    with Provider() as provider, Proxy(provider.url) as proxy:
        head = "".join(f"{name}: {value}\r\n" for name, value in [("Host", "localhost"), *framing])
        whole = chunk(body) + b"0\r\n\r\n" if chunked else body
        status, told = proxy.bare(f"POST /{TOKEN}{MESSAGES} HTTP/1.1\r\n{head}\r\n".encode() + whole)
        assert status == 413 and json.loads(told)["error"]["type"] == "request_too_large"
        assert "over 1,000,000 bytes" in json.loads(told)["error"]["message"]
        assert proxy.ask("POST", MESSAGES, bytes(1_000_000)).status == 200
        assert proxy.ask("POST", "/v1/files", body).status == 200, "what carries no history has no cap"
    assert len(provider.seen) == 2


@settings(max_examples=settings.default.max_examples // 12)
@given(st.lists(histories.histories(grows=True), min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_two_gateways_send_the_same_bytes_for_the_same_requests_in_any_order(drawn: list[Any], chance: Any):
    """The memo is for speed only: sessions interleaved and repeated, in two orders, and cut anew."""
    requests = [
        ({"x-claude-code-session-id": str(number)}, step.body)
        for number, history_ in enumerate(drawn)
        for step in (history_, *history_.grown())
    ]
    again = [*requests, *requests]
    chance.shuffle(again)
    told = []
    for order in (again, requests):
        cuts = Cutter()
        sent = {}
        for headers, body in order:
            one = plan.forward(routes.Route("anthropic"), headers, body, cuts)
            assert isinstance(one, plan.Forward) and not one.fault
            assert sent.setdefault(body, one.body) == one.body
        told.append(sent)
    assert told[0] == told[1] == {body: cut(body).body for _, body in requests}


# -------------------------------------------------------------------------------- the provider refuses the cut


LATE, WHOLE = cut(BOUND, late=True).body, cut(BOUND).body


def refusing(
    *accepted: bytes, answers: bytes = refused(), good: bytes = answer(b'{"ok":1}')
) -> Callable[[Seen], bytes]:
    return lambda seen: good if bytes(seen.body) in accepted else answers


def sent_to(provider: Provider) -> list[str]:
    names = {WHOLE: "cut", LATE: "late", BOUND: "original", SEAMED: "original", cut(SEAMED).body: "cut"}
    return [names[bytes(seen.body)] for seen in provider.seen]


def test_the_cases_differ():
    assert len({BOUND, LATE, WHOLE}) == 3 and cut(SEAMED, late=True).body == cut(SEAMED).body


def test_a_refused_cut_is_tried_without_the_tail_s_thinking():
    with Provider(refusing(LATE, BOUND)) as provider, Proxy(provider.url) as proxy:
        assert proxy.ask("POST", MESSAGES, BOUND).status == 200
        assert sent_to(provider) == ["cut", "late"]
        assert proxy.ask("POST", MESSAGES, BOUND).status == 200
        assert sent_to(provider) == ["cut", "late", "late"], "remembered"
        assert until(lambda: len(proxy.passed) == 2)
    first, second = proxy.passed
    assert (first.verdict, second.verdict, second.refused) == ("late", None, "")
    assert json.loads(first.refused)["error"]["message"] == "messages.3: no"
    assert first.sent.body == LATE and first.seam == first.sent.seam != ""


def test_then_the_original_goes_once_and_cutting_stops_for_that_session_and_seam_only():
    verdicts: dict[tuple[str, str], Verdict] = {}
    headers = [("X-Claude-Code-Session-Id", "one")]
    other = [("X-Claude-Code-Session-Id", "two")]
    with Provider(refusing(BOUND)) as provider, Proxy(provider.url, verdicts=verdicts) as proxy:
        assert proxy.ask("POST", MESSAGES, BOUND, headers).body == b'{"ok":1}'
        assert sent_to(provider) == ["cut", "late", "original"]
        proxy.ask("POST", MESSAGES, BOUND, headers)
        assert sent_to(provider)[3:] == ["original"]
        proxy.ask("POST", MESSAGES, BOUND, other)
        assert sent_to(provider)[4:] == ["cut", "late", "original"]
        assert until(lambda: len(proxy.passed) == 3)
        seam = proxy.passed[0].seam
        assert verdicts == {("one", seam): "original", ("two", seam): "original"}
        # A new checkpoint is a new seam.
        later = json.loads(BOUND)
        later["messages"] += [*bodies.checkpoint_turn(2)]
        body = json.dumps(later).encode()
        proxy.ask("POST", MESSAGES, body, headers)
        assert bytes(provider.seen[7].body) == cut(body).body
    assert proxy.passed[0].verdict == "original" and proxy.passed[0].sent.body == BOUND
    assert not proxy.passed[0].sent.seam


def test_another_process_that_is_given_the_verdicts_goes_on_like_the_first():
    verdicts: dict[tuple[str, str], Verdict] = {}
    with Provider(refusing(LATE)) as provider:
        for _ in range(2):
            with Proxy(provider.url, verdicts=verdicts) as proxy:
                assert proxy.ask("POST", MESSAGES, BOUND).status == 200
        assert sent_to(provider) == ["cut", "late", "late"]


def test_where_the_tail_has_no_thinking_the_original_is_next():
    with Provider(refusing(SEAMED)) as provider, Proxy(provider.url) as proxy:
        assert proxy.ask("POST", MESSAGES, SEAMED).status == 200
    assert sent_to(provider) == ["cut", "original"]


def test_the_compressed_original_goes_as_it_came():
    packed = gzip.compress(SEAMED)
    with Provider(refusing(packed)) as provider, Proxy(provider.url) as proxy:
        assert proxy.ask("POST", MESSAGES, packed, [("Content-Encoding", "gzip")]).status == 200
    assert [seen.header("content-encoding") for seen in provider.seen] == ["gzip", "gzip"]
    assert gzip.decompress(bytes(provider.seen[0].body)) == cut(SEAMED).body


def test_a_refusal_of_the_original_too_is_passed_on_and_nothing_is_remembered():
    verdicts: dict[tuple[str, str], Verdict] = {}
    with Provider(refusing()) as provider, Proxy(provider.url, verdicts=verdicts) as proxy:
        for _ in range(2):
            got = proxy.ask("POST", MESSAGES, BOUND)
            assert got.status == 400 and got.body == refused().split(b"\r\n\r\n", 1)[1]
        assert sent_to(provider) == ["cut", "late", "original"] * 2 and not verdicts
        assert until(lambda: len(proxy.passed) == 2)
    assert (proxy.passed[0].verdict, proxy.passed[0].status) == (None, 400) and proxy.passed[0].refused


def test_a_body_that_was_not_cut_is_refused_once():
    with Provider(refusing()) as provider, Proxy(provider.url) as proxy:
        assert proxy.ask("POST", MESSAGES, SEAMLESS).status == 400
    assert len(provider.seen) == 1


def test_a_count_remembers_nothing():
    verdicts: dict[tuple[str, str], Verdict] = {}
    with Provider(refusing(BOUND)) as provider, Proxy(provider.url, verdicts=verdicts) as proxy:
        assert proxy.ask("POST", COUNT, BOUND).status == 200
        assert sent_to(provider) == ["cut", "late", "original"] and not verdicts


@pytest.mark.parametrize("status", ("401 Unauthorized", "413 Too Large", "429 Too Many", "500 Oh", "529 Overloaded"))
def test_any_other_error_is_passed_on_untouched_and_not_tried_again(status: str):
    told = refused("later", status, [("retry-after", "7"), ("x-should-retry", "true")])
    with Provider(lambda seen: told) as provider, Proxy(provider.url) as proxy:
        got = proxy.ask("POST", MESSAGES, BOUND)
        assert f"{got.status} {got.reason}" == status and told.endswith(b"\r\n\r\n" + got.body)
        assert ("retry-after", "7") in got.headers
        assert until(lambda: proxy.passed) and proxy.passed[0].refused == ""
    assert sent_to(provider) == ["cut"]


def test_an_error_behind_a_refusal_is_passed_on_and_nothing_is_remembered():
    verdicts: dict[tuple[str, str], Verdict] = {}
    busy = refused("busy", "529 Overloaded")

    def told(seen: Seen) -> bytes:
        return refused() if bytes(seen.body) == WHOLE else busy

    with Provider(told) as provider, Proxy(provider.url, verdicts=verdicts) as proxy:
        assert proxy.ask("POST", MESSAGES, BOUND).status == 529
    assert sent_to(provider) == ["cut", "late"] and not verdicts


@pytest.mark.parametrize("how", ("torn", "gzip"))
def test_the_provider_s_words_are_reported_however_they_came(how: str):
    whole = refused("the words")
    head, _, words = whole.partition(b"\r\n\r\n")

    def told(seen: Seen) -> bytes:
        if bytes(seen.body) == SEAMED:
            return answer()
        if how == "gzip":
            return answer(gzip.compress(words), "400 Bad Request", [("Content-Encoding", "gzip")])
        seen.send(head + b"\r\n\r\n" + words[:20])
        time.sleep(0.05)
        return words[20:]

    with Provider(told) as provider, Proxy(provider.url) as proxy:
        assert proxy.ask("POST", MESSAGES, SEAMED).status == 200
        assert until(lambda: proxy.passed)
    assert json.loads(proxy.passed[0].refused)["error"]["message"] == "the words"


# ------------------------------------------------------------------------------------------ faults of ours


def test_where_the_proof_fails_the_original_goes_and_the_rule_is_told(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cutter, "prove", lambda *_: "rule 1: a word is missing")
    with Provider() as provider, Proxy(provider.url) as proxy:
        assert proxy.ask("POST", MESSAGES, SEAMED).status == 200
        assert until(lambda: proxy.passed)
    assert bytes(provider.seen[0].body) == SEAMED
    assert proxy.passed[0].sent.fault == "rule 1: a word is missing" and not proxy.passed[0].sent.changed


@pytest.mark.parametrize("coding", ("", "gzip"))
def test_where_the_cut_itself_fails_the_original_goes(coding: str, monkeypatch: pytest.MonkeyPatch):
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a fault of ours")

    monkeypatch.setattr("cutline.memo.Memo.cut", broken)
    body = gzip.compress(SEAMED) if coding else SEAMED
    with Provider() as provider, Proxy(provider.url) as proxy:
        headers = [("Content-Encoding", coding)] if coding else []
        assert proxy.ask("POST", MESSAGES, body, headers).status == 200
        assert until(lambda: proxy.passed)
    assert bytes(provider.seen[0].body) == body and provider.seen[0].header("content-encoding") == (coding or None)
    assert proxy.passed[0].sent.fault == "ZeroDivisionError: a fault of ours"


def test_where_trying_again_fails_the_provider_s_refusal_is_not_lost(monkeypatch: pytest.MonkeyPatch):
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a fault of ours")

    monkeypatch.setattr(plan, "after_refusal", broken)
    with Provider(refusing(SEAMED)) as provider, Proxy(provider.url) as proxy:
        assert proxy.ask("POST", MESSAGES, SEAMED).status == 200
    assert sent_to(provider) == ["cut", "original"]


def test_a_fault_anywhere_else_is_an_error_in_the_provider_s_shape(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
):
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("SENTINEL")

    monkeypatch.setattr(plan, "request_headers", broken)
    with Provider() as provider, Proxy(provider.url) as proxy:
        for method, target in (("POST", MESSAGES), ("GET", "/v1/models")):
            got = proxy.ask(method, target, SEAMED)
            assert got.status == 500
            assert json.loads(got.body)["error"]["message"] == "cutline: a fault of the proxy's own: ZeroDivisionError"
    assert "SENTINEL" not in caplog.text + "".join(capfd.readouterr())


# ---------------------------------------------------------------------------------------------- who may ask


GOOD = f"/{TOKEN}/v1/models"
HOST = "Host: localhost\r\n"
REFUSED: dict[str, tuple[str, int, str]] = {
    "no token": (f"GET /v1/models HTTP/1.1\r\n{HOST}", 403, "no or a wrong token"),
    "no path": (f"GET / HTTP/1.1\r\n{HOST}", 403, "no or a wrong token"),
    "wrong token": (f"GET /{TOKEN[:-1]}/v1/models HTTP/1.1\r\n{HOST}", 403, "no or a wrong token"),
    "a longer token": (f"GET /{TOKEN}x/v1/models HTTP/1.1\r\n{HOST}", 403, "no or a wrong token"),
    "a token with a slash in code": (f"GET /{TOKEN}%2Fv1/models HTTP/1.1\r\n{HOST}", 403, "no or a wrong token"),
    "a token in the query": (f"GET /v1/models?{TOKEN} HTTP/1.1\r\n{HOST}", 403, "no or a wrong token"),
    "a token behind a slash": (f"GET //{TOKEN}/v1/models HTTP/1.1\r\n{HOST}", 403, "no or a wrong token"),
    "another origin": (f"GET {GOOD} HTTP/1.1\r\n{HOST}Origin: https://evil.example\r\n", 403, "pages in a browser"),
    "an origin of ours": (f"GET {GOOD} HTTP/1.1\r\n{HOST}Origin: http://localhost\r\n", 403, "pages in a browser"),
    "no origin": (f"GET {GOOD} HTTP/1.1\r\n{HOST}Origin: null\r\n", 403, "pages in a browser"),
    "a preflight": (
        f"OPTIONS {GOOD} HTTP/1.1\r\n{HOST}Origin: https://evil.example\r\nAccess-Control-Request-Method: POST\r\n",
        403,
        "pages in a browser",
    ),
    "a rebound host": (f"GET {GOOD} HTTP/1.1\r\nHost: evil.example\r\n", 403, "names another host"),
    "a rebound host with our name": (f"GET {GOOD} HTTP/1.1\r\nHost: 127.0.0.1.evil.example\r\n", 403, "another host"),
    "a host with a user": (f"GET {GOOD} HTTP/1.1\r\nHost: localhost@evil.example\r\n", 403, "another host"),
    "a host with a path": (f"GET {GOOD} HTTP/1.1\r\nHost: localhost/evil\r\n", 403, "another host"),
    "an empty host": (f"GET {GOOD} HTTP/1.1\r\nHost:\r\n", 403, "another host"),
    "any address": (f"GET {GOOD} HTTP/1.1\r\nHost: 0.0.0.0:80\r\n", 403, "another host"),
    "no host": (f"GET {GOOD} HTTP/1.1\r\n", 400, ""),
    "no host in the older version": (f"GET {GOOD} HTTP/1.0\r\n", 403, "names another host"),
    "two hosts": (f"GET {GOOD} HTTP/1.1\r\nHost: evil.example\r\n{HOST}", 400, ""),
    "a whole address": (f"GET http://localhost{GOOD} HTTP/1.1\r\n{HOST}", 400, "has to be a path"),
    "a whole address of another": (f"GET http://evil.example{GOOD} HTTP/1.1\r\n{HOST}", 400, "has to be a path"),
    "a star": (f"OPTIONS * HTTP/1.1\r\n{HOST}", 400, "has to be a path"),
    "a tunnel": ("CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n", 403, "another host"),
    "a tunnel by our name": (f"CONNECT localhost:443 HTTP/1.1\r\n{HOST}", 400, "has to be a path"),
    "another protocol": (f"GET {GOOD} HTTP/1.1\r\n{HOST}Connection: Upgrade\r\nUpgrade: tcp\r\n", 400, "switch"),
    **{
        f"traversal {path}": (f"GET /{TOKEN}{path} HTTP/1.1\r\n{HOST}", 400, "leaves its place")
        for path in (
            *("/..", "/../x", "/v1/../../x", "/./v1", "/%2e%2e/x", "/%2E%2e/x", "/.%2e/x", "/..%2fx", "/%2e%2e%2fx"),
            *("/..%5cx", "/..\\x", "/v1/%5c..", "/%252e%252e/x", "/%25252e./x", "/v1/%00", "/v1/%0d%0aHost:x"),
            *("/v1?/../..%00".replace("?", "/%3f"), "/v1/..?x=1", "/v1/a%5Cb"),
        )
    },
    "a fragment": (f"GET {GOOD}#x HTTP/1.1\r\n{HOST}", 400, "printable"),
    "a header that is none": (f"GET {GOOD} HTTP/1.1\r\n{HOST}x-api-key SENTINEL\r\n", 400, ""),
    "a header that is folded": (f"GET {GOOD} HTTP/1.1\r\n{HOST}x-api-key: a\r\n SENTINEL\r\n", 400, ""),
    "a broken length": (f"POST {GOOD} HTTP/1.1\r\n{HOST}Content-Length: SENTINEL\r\n", 400, ""),
    "two lengths": (f"POST {GOOD} HTTP/1.1\r\n{HOST}Content-Length: 1\r\nContent-Length: 2\r\n", 400, ""),
    "two framings": (f"POST {GOOD} HTTP/1.1\r\n{HOST}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", 400, ""),
    "a line that is too long": (f"GET {GOOD}?{'SENTINEL' * 10_000} HTTP/1.1\r\n{HOST}", 400, ""),
    "no HTTP": ("SENTINEL\r\n", 400, ""),
}


@pytest.fixture(scope="module")
def guarded() -> Iterator[tuple[Proxy, Provider]]:
    with Provider() as provider, Proxy(provider.url) as proxy:
        yield proxy, provider


@pytest.mark.parametrize("case", REFUSED)
def test_who_may_not_ask_is_told_so_in_the_provider_s_shape(
    case: str,
    guarded: tuple[Proxy, Provider],
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
):
    caplog.set_level(logging.DEBUG)
    proxy, provider = guarded
    request, status, words = REFUSED[case]
    got, body = proxy.bare(f"{request}\r\n".encode())
    assert got == status, body
    error = json.loads(body)
    assert error["type"] == "error" and set(error["error"]) == {"type", "message"}
    assert error["error"]["message"].startswith("cutline: ") and "\n" not in error["error"]["message"]
    assert words in error["error"]["message"]
    assert not provider.seen, "nothing of it went to the provider"
    assert "SENTINEL" not in body.decode() + caplog.text + "".join(capfd.readouterr())
    assert TOKEN not in body.decode()


def test_a_body_whose_framing_breaks_is_refused(guarded: tuple[Proxy, Provider]):
    proxy, provider = guarded
    head = f"POST /{TOKEN}{MESSAGES} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    status, body = proxy.bare(head.encode() + b"5\r\nabcdefgh\r\nSENTINEL\r\n")
    assert status == 400 and json.loads(body)["type"] == "error" and b"SENTINEL" not in body
    assert not provider.seen


def test_a_raw_letter_that_no_address_holds_is_refused(guarded: tuple[Proxy, Provider]):
    proxy, provider = guarded
    for letter in (b"\xc3\xbc", b"\xff"):
        status, body = proxy.bare(f"GET {GOOD}/".encode() + letter + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert status == 400 and json.loads(body)["type"] == "error"
    assert not provider.seen


@pytest.mark.parametrize("host", ("127.0.0.1", "localhost", "LOCALHOST:8080", "[::1]:1", "127.0.0.1:65535"))
def test_every_name_of_this_machine_s_loopback_may_ask(host: str):
    with Provider() as provider, Proxy(provider.url) as proxy:
        assert proxy.ask(host=host).status == 200
    assert provider.seen[0].header("host") == provider.url.removeprefix("http://")


def test_the_gateway_listens_on_loopback_alone():
    others = {"127.0.0.2", *(info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET))}
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # nothing is sent: it only chooses the address that would be used
        others.add(probe.getsockname()[0])
    with Proxy("http://127.0.0.1:9") as proxy:
        for address in others - {"127.0.0.1"}:
            with pytest.raises(OSError):
                socket.create_connection((address, proxy.port), timeout=2).close()


@pytest.mark.parametrize("upstream", ("", "ftp://x", "api.anthropic.com", "https://x?a=1", "https://x#a", "https://"))
def test_what_is_no_provider_s_address_is_refused_at_once(upstream: str):
    with pytest.raises(InputError, match="no base URL"):
        Gateway(upstream, TOKEN)


def test_a_password_in_the_provider_s_address_is_refused_and_not_repeated():
    with pytest.raises(InputError, match="name or password") as found:
        Gateway("https://user:SENTINEL@gateway.example", TOKEN)
    assert "SENTINEL" not in str(found.value)


def test_a_port_that_is_taken_is_said():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=f"127.0.0.1:{port}: .*in use"):
            Gateway("http://127.0.0.1:9", TOKEN, port=port).start()


def test_the_machine_s_own_password_file_adds_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login somebody password SENTINEL\n")
    (tmp_path / "netrc").chmod(0o600)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with Provider() as provider, Proxy(provider.url) as proxy:
        assert proxy.ask(headers=[("Authorization", "Bearer made-up")]).status == 200
        assert proxy.ask(headers=[("x-api-key", "made-up")]).status == 200
    assert [seen.header("authorization") for seen in provider.seen] == ["Bearer made-up", None]


def test_the_environment_s_proxy_is_used_and_its_exceptions_hold(monkeypatch: pytest.MonkeyPatch):
    for name in ("no_proxy", "NO_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    with Provider() as company:
        monkeypatch.setenv("HTTP_PROXY", company.url)
        monkeypatch.setenv("http_proxy", company.url)
        with Proxy("http://provider.example/base") as proxy:
            assert proxy.ask().status == 200
        assert company.seen[0].line == "GET http://provider.example/base/v1/models HTTP/1.1"
        with Provider() as provider:
            monkeypatch.setenv("no_proxy", "127.0.0.1")
            with Proxy(provider.url) as proxy:
                assert proxy.ask().status == 200
            assert len(provider.seen) == 1 and len(company.seen) == 1


# ------------------------------------------------------------------------------------------------- no secret stays


def test_no_key_is_in_any_log_record_status_or_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
):
    caplog.set_level(logging.DEBUG)
    secret = "SENTINEL-" + "made-up"
    folder = tmp_path / "run"
    folder.mkdir()
    writer = record.Writer(tmp_path / "record" / "r.db")
    observer = Observer(Place("claude", "project", folder), writer)
    headers = [
        ("x-api-key", secret),
        ("Authorization", f"Bearer {secret}"),
        ("Cookie", f"session={secret}"),
        ("X-Claude-Code-Session-Id", "s1"),
        (f"x-{secret}", "1"),
    ]
    back = [("Set-Cookie", secret), ("x-request", secret)]
    answers: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
    errors = []

    def told(seen: Seen) -> bytes | None:
        return answers.get()

    good = json.dumps({"content": [{"type": "text", "text": "hello"}], "stop_reason": "end_turn", "usage": {}}).encode()
    with Provider(told) as provider, Proxy(provider.url, passed=observer.passed, hook=observer.hook) as proxy:

        def ask(*told_: bytes | None, target: str = f"/v1/messages?key={secret}", body: bytes = SEAMED) -> int:
            for one in told_:
                answers.put(one)
            got = proxy.ask("POST", target, body, headers)
            if got.status >= 400:
                errors.append(got.body)
            return got.status

        assert ask(answer(good, headers=back)) == 200
        assert ask(answer(good, headers=back), target=f"/v1/files/{secret}") == 200
        assert ask(*[refused(headers=back)] * 2) == 400
        assert ask(refused(headers=back), answer(good, headers=back)) == 200
        assert ask(answer(b"{}", "500 Oh", back)) == 500
        assert ask(None) == 502
        assert ask(target=f"/../{secret}") == 400
        assert ask(body=b"x" * 10, target=f"/cutline/hook/before-call?{secret}") == 200
        assert proxy.ask("GET", f"/{secret}", headers=headers, prefix="").status == 403
        errors.append(proxy.ask("GET", f"/{secret}", headers=[*headers, ("Origin", secret)]).body)
        errors.append(proxy.bare(f"GET /{TOKEN} HTTP/1.1\r\nHost: localhost\r\nx-api-key {secret}\r\n\r\n".encode())[1])
        with contextlib.suppress(OSError):
            proxy.bare(f"\x16\x03\x01 {secret}\r\n\r\n".encode())
        assert len(provider.seen) >= 7
    observer.close()
    assert writer.close() and writer.written >= 4 and not writer.fault
    assert json.loads((folder / "status.json").read_text())["turns"] >= 3
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.name.startswith("r.db") for path in files) and any(b"s1" in path.read_bytes() for path in files)
    everything = {path.name: path.read_bytes() for path in files}
    everything |= {f"error {n}": error for n, error in enumerate(errors)}
    everything |= {"log": caplog.text.encode(), "terminal": "".join(capfd.readouterr()).encode()}
    everything |= {"faults": repr([observer.faults, observer.accounts]).encode()}
    for name, data in everything.items():
        assert secret.encode() not in data, name


# ------------------------------------------------------------------------------------------------------- the hooks


def test_the_client_s_hooks_are_answered_behind_the_token():
    asked = []

    def hook(name: str, payload: dict[str, Any]) -> dict[str, Any]:
        asked.append((name, payload))
        if payload.get("break"):
            raise ZeroDivisionError("SENTINEL")
        return {"decision": "block"} if name == "before-compaction" else {}

    path = "/cutline/hook/before-compaction"
    with Provider() as provider, Proxy(provider.url, hook=hook) as proxy:
        assert proxy.ask("POST", path, b"{}", prefix="").status == 403
        assert proxy.ask("POST", path, b"{}", [("Origin", "http://evil.example")]).status == 403
        assert not asked
        got = proxy.ask("POST", path, b'{"trigger":"auto"}', [("Content-Type", "application/json")])
        assert (got.status, json.loads(got.body)) == (200, {"decision": "block"})
        assert asked == [("before-compaction", {"trigger": "auto"})]
        deep = b"[" * 100_000
        for body in (b"", b"no json", b"\xff\xfe", deep, b'{"break":1}'):
            got = proxy.ask("POST", path, body, [("Content-Type", "application/json; charset=none-such")])
            assert (got.status, json.loads(got.body)) == (200, {}), body[:20]
        assert proxy.ask("POST", path, b"[1]").status == 200 and asked[-1] == ("before-compaction", {})
        assert proxy.ask("GET", path).status == 404
    assert not provider.seen, "our own paths never go to the provider"


def test_stopping_ends_open_answers_at_once():
    def told(seen: Seen) -> None:
        seen.send(STREAM + chunk(EVENT % b"one"))
        watch(seen)

    with Provider(told) as provider:
        proxy = Proxy(provider.url)
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as connection:
            head = f"POST /{TOKEN}{MESSAGES} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n"
            connection.sendall(head.encode() + b"{}")
            assert connection.recv(65_536)
            start = time.monotonic()
            proxy.gateway.stop()
            assert time.monotonic() - start < 2
            assert provider.seen[0].gone.wait(1)
        assert until(lambda: proxy.passed)


def test_what_the_scripted_provider_streams_arrives_whole():
    with Upstream([[text("a" * 50_000)]]) as upstream, Proxy(upstream.url) as proxy:
        got = proxy.ask("POST", MESSAGES, bodies.body(history(), stream=True), [("Accept-Encoding", "gzip")])
        assert got.status == 200 and b"a" * 50_000 in got.body and got.body.endswith(b"\n\n")
        assert until(lambda: proxy.passed) and proxy.passed[0].answer == got.body


assert app.HOOKS == "/cutline/hook/" and os.name  # the paths above are the gateway's
