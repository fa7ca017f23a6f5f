"""The transport's contract, on both httpx and httpx2, sync and async: what passes untouched, what is cut, what a fault
does, and that a program sees what it would see without us."""

from __future__ import annotations

import asyncio
import gzip
import importlib
import json
import os
import subprocess
import sys
import textwrap
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import conversations
import cutline
import validator
from conversations import FORMATS, PATHS, growing
from cutline.blocks import address
from cutline.record import Record
from loopback import Asked, Loopback, Told
from validators import converse, gemini, openai_chat, openai_responses

ANTHROPIC = growing("anthropic")
CUT = ANTHROPIC[-1]
JSON = {"Content-Type": "application/json"}
FAULTS: dict[str, Callable[[bytes], list[str]]] = {
    "anthropic": validator.faults,
    "openai_chat": openai_chat.faults,
    "openai_responses": openai_responses.faults,
    "gemini": gemini.faults,
    "converse": converse.faults,
}


@pytest.fixture(params=["httpx2", "httpx"])
def httpx(request: pytest.FixtureRequest) -> ModuleType:
    return importlib.import_module(request.param)


@pytest.fixture(params=["sync", "async"])
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def record(tmp_path: Path) -> Path:
    return tmp_path / "kept" / "record.db"


@dataclass(frozen=True)
class Got:
    """An answer as the program has it: `raw` is what came, `content` what that says."""

    status: int
    headers: list[tuple[bytes, bytes]]
    raw: bytes
    content: bytes


def send(httpx: ModuleType, way: str, transport: Any, method: str, url: str, **more: Any) -> Got:
    """One request by a client of its own; `transport` None is httpx's own."""
    return run(httpx, way, transport, [(method, url, more)])[0]


def run(httpx: ModuleType, way: str, transport: Any, requests: list[tuple[str, str, dict[str, Any]]]) -> list[Got]:
    """Several requests by one client."""
    if way == "sync":
        with httpx.Client(transport=transport) as client:
            return [_sync(httpx, client, *request) for request in requests]

    async def all_of_them() -> list[Got]:
        async with httpx.AsyncClient(transport=transport) as client:
            return [await _async(httpx, client, *request) for request in requests]

    return asyncio.run(all_of_them())


def _sync(httpx: ModuleType, client: Any, method: str, url: str, more: dict[str, Any]) -> Got:
    with client.stream(method, url, **more) as response:
        return _got(httpx, response, b"".join(response.iter_raw()))


async def _async(httpx: ModuleType, client: Any, method: str, url: str, more: dict[str, Any]) -> Got:
    async with client.stream(method, url, **more) as response:
        return _got(httpx, response, b"".join([part async for part in response.aiter_raw()]))


def _got(httpx: ModuleType, response: Any, raw: bytes) -> Got:
    content = httpx.Response(200, headers=response.headers, content=raw).content
    return Got(response.status_code, response.headers.raw, raw, content)


def says(format: str = "anthropic", **more: Any) -> Callable[[Asked], Told]:
    return lambda asked: Told([json.dumps(conversations.answer(format, **more)).encode()])


def transport(**more: Any) -> cutline.Transport:
    return cutline.Transport(**{"record": False, **more})


# ------------------------------------------------------------------------------------------ what passes untouched


def uploads() -> Iterator[bytes]:
    yield from (CUT[:100], CUT[100:])


UNTOUCHED: dict[str, tuple[str, str, Callable[[], dict[str, Any]]]] = {
    "a question without a body": ("GET", "/v1/models?limit=2", dict),
    "a history without a checkpoint": ("POST", "/v1/messages", lambda: {"content": ANTHROPIC[2]}),
    "a checkpoint that nobody answered yet": ("POST", "/v1/messages", lambda: {"content": CUT[: CUT.rfind(b"{")]}),
    "JSON of something else": ("POST", "/v1/embeddings", lambda: {"json": {"input": "micro_handoff"}}),
    "a form": ("POST", "/v1/messages", lambda: {"data": {"body": CUT.decode()}}),
    "an upload in parts": (
        "POST",
        "/v1/files",
        lambda: {
            "files": {"file": ("b.json", CUT)},
            "headers": {"Content-Type": "multipart/form-data; boundary=b"},
        },
    ),
    "nothing at all": ("POST", "/v1/messages", lambda: {"content": b""}),
    "no JSON": ("POST", "/v1/messages", lambda: {"content": b'{"messages": [micro_handoff'}),
    "an encoding that is not known": (
        "POST",
        "/v1/messages",
        lambda: {"content": CUT, "headers": {"Content-Encoding": "compress"}},
    ),
    "what its header says is packed, and is not": (
        "POST",
        "/v1/messages",
        lambda: {"content": CUT, "headers": {"Content-Encoding": "gzip"}},
    ),
    "a request to summarise on the server": ("POST", "/v1/responses/compact", lambda: {"content": CUT}),
    "a history that the server holds": (
        "POST",
        "/v1/responses",
        lambda: {"json": {**json.loads(growing("openai_responses")[-1]), "previous_response_id": "resp_0"}},
    ),
}


@pytest.mark.parametrize("name", UNTOUCHED)
def test_what_is_no_history_with_a_checkpoint_passes_byte_for_byte(httpx: ModuleType, way: str, name: str):
    method, path, more = UNTOUCHED[name]
    with Loopback(says()) as server:
        direct = send(httpx, way, None, method, server.url + path, **more())
        through = send(httpx, way, transport(), method, server.url + path, **more())
        assert server.asked[0] == server.asked[1]
    assert (direct.status, direct.raw) == (through.status, through.raw)
    assert {n for n, _ in direct.headers} == {n for n, _ in through.headers}


@pytest.mark.parametrize("way_of_body", ["a generator", "an async generator", "a file"])
def test_an_upload_that_is_read_while_it_is_sent_is_not_read_before(
    httpx: ModuleType, way_of_body: str, tmp_path: Path
):
    async def asynchronous() -> Any:
        for part in uploads():
            yield part

    (tmp_path / "body.json").write_bytes(CUT)
    with Loopback(says()) as server, (tmp_path / "body.json").open("rb") as file:
        body: Any = {"a generator": uploads, "an async generator": asynchronous, "a file": lambda: file}[way_of_body]()
        way = "async" if way_of_body == "an async generator" else "sync"
        send(httpx, way, transport(), "POST", server.url + "/v1/messages", content=body)
        assert server.asked[0].body == CUT


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/x, SignedHeaders=host, Signature=0"},
        {"Content-MD5": "0"},
        {"Content-Digest": "sha-256=:0:"},
        {"Signature-Input": 'sig=("content-digest")'},
    ],
    ids=lambda headers: next(iter(headers)),
)
def test_a_body_that_is_signed_passes_untouched_and_that_is_said(way: str, headers: dict[str, str]):
    import httpx2

    through = transport()
    with Loopback(says()) as server:
        url = server.url + "/model/anthropic.claude/invoke"
        send(httpx2, way, through, "POST", url, content=CUT, headers=headers)
        assert server.asked[0].body == CUT
    ((reason, count),) = through.report().untouched.items()
    assert count == 1 and ("signed" in reason or next(iter(headers)).lower() in reason)


def test_a_signature_that_leaves_the_body_out_does_not_hold_the_cut_back():
    import httpx2

    unsigned = {
        "Authorization": "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/x, SignedHeaders=host;x-amz-date, Signature=0",
        "X-Amz-Content-SHA256": "UNSIGNED-PAYLOAD",
    }
    with Loopback(says()) as server:
        url = server.url + "/model/anthropic.claude/invoke"
        send(httpx2, "sync", transport(), "POST", url, content=CUT, headers=unsigned)
        assert server.asked[0].body == cutline.cut(CUT).body


# ---------------------------------------------------------------------------------------------------- what is cut


@pytest.mark.parametrize("format", FORMATS)
def test_a_history_goes_out_as_the_library_cuts_it(httpx: ModuleType, way: str, format: str):
    bodies = growing(format)
    through = transport()
    with Loopback(says(format)) as server:
        requests = [("POST", server.url + PATHS[format], {"content": body, "headers": JSON}) for body in bodies]
        run(httpx, way, through, requests)
        sent = [asked.body for asked in server.asked]
    assert sent == [cutline.cut(body).body for body in bodies]
    assert [FAULTS[format](body) for body in sent] == [[]] * len(sent)
    for body, out in zip(bodies, sent, strict=True):
        assert out == body or cutline.verify(body, out)
    report = through.report()
    assert report.faults == () and len(report.checkpoints) == 2
    assert all(step.sent_messages < step.whole_messages / 2 for step in report.checkpoints)
    assert report.sent == sum(map(len, sent)) and report.whole == sum(map(len, bodies))


@pytest.mark.parametrize("format", FORMATS)
def test_between_checkpoints_what_was_sent_before_stays_as_it_was(format: str):
    import httpx2

    with Loopback(says(format)) as server:
        url = server.url + PATHS[format]
        requests = [("POST", url, {"content": body}) for body in growing(format)]
        run(httpx2, "sync", transport(), requests)
        histories = [conversation(asked.body) for asked in server.asked]
    seams = [n for n in range(1, len(histories)) if len(histories[n]) < len(histories[n - 1])]
    assert len(seams) == 2
    for n in range(1, len(histories)):
        if n not in seams:
            assert histories[n][: len(histories[n - 1])] == histories[n - 1]


def conversation(body: bytes) -> list[Any]:
    whole = json.loads(body)
    found: list[Any] = whole.get("messages") or whole.get("input") or whole["contents"]
    return found


def test_nothing_but_the_body_and_its_length_is_changed(httpx: ModuleType, way: str):
    headers = {
        "X-Api-Key": "none",
        "content-type": "application/json; charset=utf-8",
        "Idempotency-Key": "one",
        "X-Twice": "a",
    }
    with Loopback(says()) as server:
        url = server.url + "/v1/messages?beta=true&x=%2F"
        send(httpx, way, None, "POST", url, content=CUT, headers=headers)
        send(httpx, way, transport(), "POST", url, content=CUT, headers=headers)
        one, two = server.asked
    assert two.body == cutline.cut(CUT).body
    assert one.target == two.target
    length = [("content-length", str(len(two.body)))]
    assert [pair for pair in one.headers if pair[0].lower() != "content-length"] == [
        pair for pair in two.headers if pair[0].lower() != "content-length"
    ]
    assert [name for name, _ in one.headers] == [name for name, _ in two.headers]
    assert [(name.lower(), value) for name, value in two.headers if name.lower() == "content-length"] == length


def test_a_repeated_request_is_the_same_bytes_in_any_process(way: str):
    import httpx2

    with Loopback(says()) as server:
        url = server.url + "/v1/messages"
        for _ in range(2):
            run(httpx2, way, transport(), [("POST", url, {"content": CUT})] * 3)
        assert len({asked.body for asked in server.asked}) == 1


def test_the_program_keeps_its_own_request(httpx: ModuleType):
    with Loopback(says()) as server, httpx.Client(transport=transport()) as client:
        response = client.post(server.url + "/v1/messages", content=CUT)
    assert response.request.content == CUT
    assert response.json()["content"][0]["text"] == "ok"


def test_a_token_count_counts_what_would_be_sent():
    import httpx2

    through = transport()
    with Loopback(lambda _: Told([b'{"input_tokens":9}'])) as server:
        send(httpx2, "sync", through, "POST", server.url + "/v1/messages/count_tokens", content=CUT)
        assert server.asked[0].body == cutline.cut(CUT).body
    report = through.report()
    assert (report.counts, report.requests, report.sent) == (1, 0, 0)


def test_a_tool_that_asks_the_human_can_be_kept():
    import httpx2

    with Loopback(says()) as server:
        send(httpx2, "sync", transport(keep_tools=["read"]), "POST", server.url + "/v1/messages", content=CUT)
        assert server.asked[0].body == cutline.cut(CUT, keep_tools=["read"]).body
    with pytest.raises(ValueError, match="keep_tools"):
        transport(keep_tools="read")


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_a_packed_body_is_cut_and_packed_again(way: str, encoding: str):
    import httpx2

    packed = gzip.compress(CUT) if encoding == "gzip" else zlib.compress(CUT)
    headers = {"Content-Encoding": encoding}
    with Loopback(says()) as server:
        send(httpx2, way, transport(), "POST", server.url + "/v1/messages", content=packed, headers=headers)
        (asked,) = server.asked
    assert asked.header("Content-Encoding") == encoding
    assert asked.header("Content-Length") == str(len(asked.body))
    plain = gzip.decompress(asked.body) if encoding == "gzip" else zlib.decompress(asked.body)
    assert plain == cutline.cut(CUT).body


# ------------------------------------------------------------------------------------------------------ the answer


def events(**more: Any) -> list[bytes]:
    """A streamed answer of Anthropic's, event by event."""
    from live.upstream import events as told

    return list(told(conversations.answer("anthropic", **more)))


def test_a_stream_is_not_held_back(httpx: ModuleType, way: str):
    """The first event is in the program's hands while the server still waits with the next."""
    first, *rest = events()
    reached = threading.Event()
    stream = {"Content-Type": "text/event-stream"}
    through = transport()
    with Loopback(lambda _: Told([first, reached, *rest], headers=stream)) as server:
        url = server.url + "/v1/messages"
        if way == "sync":
            with httpx.Client(transport=through) as client, client.stream("POST", url, content=CUT) as response:
                parts = response.iter_raw()
                got = [next(parts)]
                reached.set()
                got += parts
        else:

            async def read() -> list[bytes]:
                client = httpx.AsyncClient(transport=through)
                async with client, client.stream("POST", url, content=CUT) as response:
                    found = []
                    async for part in response.aiter_raw():
                        found.append(part)
                        reached.set()
                    return found

            got = asyncio.run(read())
    assert got[0] == first and b"".join(got) == first + b"".join(rest)
    assert through.report().used.output == 20


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd"])
def test_a_packed_answer_passes_as_it_came_and_is_read_all_the_same(httpx: ModuleType, way: str, encoding: str):
    plain = b"".join(events())
    if encoding == "br":
        packed = pytest.importorskip("brotli", reason="brotli is not installed").compress(plain)
    elif encoding == "zstd":
        from cutline.encodings import pack

        pytest.importorskip(
            "zstandard" if httpx.__name__ == "httpx" else "backports.zstd", reason="httpx asks for none"
        )
        packed = pack(plain, "zstd")
    else:
        packed = gzip.compress(plain) if encoding == "gzip" else zlib.compress(plain)
    headers = {"Content-Type": "text/event-stream", "Content-Encoding": encoding}
    through = transport()
    with Loopback(lambda _: Told([packed[:7], packed[7:]], headers=headers)) as server:
        got = send(httpx, way, through, "POST", server.url + "/v1/messages", content=CUT)
    assert got.raw == packed and got.content == plain
    assert through.report().used.output == 20


def test_what_a_stopped_stream_told_is_counted(way: str):
    """The program breaks off in the middle: what came until then is in the report."""
    import httpx2

    first, *_ = events()
    never = threading.Event()
    through = transport()
    with Loopback(lambda _: Told([first, never], headers={"Content-Type": "text/event-stream"})) as server:
        url = server.url + "/v1/messages"
        if way == "sync":
            with httpx2.Client(transport=through) as client, client.stream("POST", url, content=CUT) as response:
                next(response.iter_raw())
        else:

            async def read() -> None:
                client = httpx2.AsyncClient(transport=through)
                async with client, client.stream("POST", url, content=CUT) as response:
                    await anext(response.aiter_raw())

            asyncio.run(read())
        never.set()
    assert through.report().used.input == 1_000


def test_a_mocked_answer_is_read_too(httpx: ModuleType, way: str):
    """An answer that never came over a wire has no stream."""
    seen: list[Any] = []

    def answer(request: Any) -> Any:
        seen.append(request)
        return httpx.Response(200, json=conversations.answer("anthropic"))

    through = transport(inner=httpx.MockTransport(answer))
    url = "https://api.example/v1/messages"
    if way == "sync":
        with httpx.Client(transport=through) as client:
            assert client.post(url, content=CUT).json()["content"]
    else:

        async def post() -> None:
            async with httpx.AsyncClient(transport=through) as client:
                assert (await client.post(url, content=CUT)).json()["content"]

        asyncio.run(post())
    assert seen[0].content == cutline.cut(CUT).body
    assert through.report().used.total_input == 1_000


PIECES = st.lists(st.binary(min_size=1, max_size=300), max_size=12)
TYPES = st.sampled_from(["text/event-stream", "application/json", "application/octet-stream", "text/html"])


@pytest.mark.parametrize("way", ["sync", "async"])
def test_whatever_is_answered_in_whatever_pieces_comes_out_as_it_went_in(way: str):
    """Random bytes in random chunks, with statuses and content types of all kinds, on one server and one transport."""
    import httpx2

    told: list[Told] = []
    through = transport()
    with Loopback(lambda _: told[-1]) as server:
        url = server.url + "/v1/messages"

        @settings(max_examples=15)
        @given(
            body=st.binary(max_size=400) | st.sampled_from(ANTHROPIC),
            pieces=PIECES,
            type_=TYPES,
            status=st.sampled_from([200, 201, 404, 429, 500, 529]),
            packed=st.booleans(),
        )
        def holds(body: bytes, pieces: list[bytes], type_: str, status: int, packed: bool) -> None:
            whole = gzip.compress(b"".join(pieces)) if packed else b"".join(pieces)
            chunks = [whole[n : n + 50] for n in range(0, len(whole), 50)] if packed else pieces
            headers = {"Content-Type": type_, **({"Content-Encoding": "gzip"} if packed else {})}
            told.append(Told(chunks, status, headers))
            got = send(httpx2, way, through, "POST", url, content=body)
            assert (got.status, got.raw) == (status, whole)
            assert server.asked[-1].body == cutline.cut(body).body

        holds()
    assert through.report().faults == ()


# ---------------------------------------------------------------------------------------------------------- faults


def failing(httpx: ModuleType, way: str, through: Any, url: str, **more: Any) -> str:
    """What a request raises, by its name."""
    with pytest.raises(httpx.HTTPError) as caught:
        send(httpx, way, through, "POST", url, content=CUT, **more)
    return type(caught.value).__name__


def test_a_connection_that_is_reset_in_the_middle_is_the_programs_to_see(httpx: ModuleType, way: str):
    with Loopback(lambda _: Told([events()[0]], resets=True)) as server:
        url = server.url + "/v1/messages"
        through = transport()
        assert failing(httpx, way, through, url) == failing(httpx, way, None, url)
    assert through.report().requests == 1


def test_a_server_that_hangs_is_waited_for_as_long_as_the_program_says(httpx: ModuleType, way: str):
    never = threading.Event()
    with Loopback(lambda _: Told([never])) as server:
        through, began = transport(), time.monotonic()
        timeout = httpx.Timeout(10, read=0.3)
        assert failing(httpx, way, through, server.url + "/v1/messages", timeout=timeout) == "ReadTimeout"
        assert time.monotonic() - began < 5
        never.set()
    assert failing(httpx, way, through, "http://127.0.0.1:9/v1/messages") == "ConnectError"
    report = through.report()
    assert (report.requests, report.refused) == (2, 1), "the first was answered, in part"


@pytest.mark.parametrize(
    ("what", "told"),
    [("cutline.cutter.Memo.cut", "the cut failed"), ("cutline.cutter.verify", "the cut failed")],
    ids=["the cut", "the proof"],
)
def test_a_fault_of_ours_sends_the_original_and_is_said(
    way: str, what: str, told: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    import httpx2

    def broken(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("a fault of ours")

    monkeypatch.setattr(what, broken)
    through = transport()
    with Loopback(says()) as server:
        got = run(httpx2, way, through, [("POST", server.url + "/v1/messages", {"content": CUT})] * 2)
        assert [one.status for one in got] == [200, 200]
        assert [asked.body for asked in server.asked] == [CUT, CUT]
    report = through.report()
    assert report.cut == 0 and [told in fault and "ZeroDivisionError" in fault for fault in report.faults] == [True]
    assert [record.levelname for record in caplog.records if "a fault of ours" in record.message] == ["WARNING"]


def test_a_proof_that_fails_sends_the_original_and_is_said(monkeypatch: pytest.MonkeyPatch):
    import httpx2

    def wrong(*_: Any, **__: Any) -> Any:
        raise cutline.CutError(1, "messages[0]", "a word is missing")

    monkeypatch.setattr("cutline.cutter.verify", wrong)
    through = transport()
    with Loopback(says()) as server:
        send(httpx2, "sync", through, "POST", server.url + "/v1/messages", content=CUT)
        assert server.asked[0].body == CUT
    assert through.report().faults == ("the proof failed: rule 1 broken at messages[0]: a word is missing",)
    assert dict(through.report().untouched) == {"the proof failed": 1}


def test_a_record_that_can_not_be_written_changes_nothing_and_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    import httpx2

    (tmp_path / "taken").write_text("no folder")
    through = transport(record=tmp_path / "taken" / "record.db")
    with Loopback(says()) as server:
        got = send(httpx2, "sync", through, "POST", server.url + "/v1/messages", content=CUT)
        assert got.status == 200 and server.asked[0].body == cutline.cut(CUT).body
    assert [fault.startswith("the record: ") for fault in through.report().faults] == [True]
    assert "the record: " in caplog.text


FULL = """
import resource, signal, sys
sys.path.insert(0, {tests!r})
import httpx2, cutline
from conversations import growing, answer
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
told = lambda request: httpx2.Response(200, json=answer("anthropic"))
through = cutline.Transport(httpx2.MockTransport(told), record={record!r})
with httpx2.Client(transport=through) as client:
    for body in growing("anthropic"):
        assert client.post("https://api.example/v1/messages", content=body).status_code == 200
report = through.report()
print(report.cut, len(report.faults), report.faults[0])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="a limit on a file's size stands for the full disk")
def test_a_full_disk_changes_nothing_and_is_said(record: Path):
    done = python(FULL.format(tests=str(Path(__file__).parent), record=str(record)))
    assert done.returncode == 0, done.stderr
    cut, faults, said = done.stdout.split(" ", 2)
    assert int(cut) == 5 and int(faults) == 1 and said.startswith("the record: ")


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def refusing(which: Callable[[bytes], bool], status: int = 400) -> Callable[[Asked], Told]:
    def tell(asked: Asked) -> Told:
        if which(asked.body):
            error = {"type": "error", "error": {"type": "invalid_request_error", "message": "messages: not like this"}}
            return Told([json.dumps(error).encode()], status)
        return says()(asked)

    return tell


@pytest.mark.parametrize("status", [400, 422])
def test_a_provider_that_refuses_the_cut_gets_the_original_and_the_seam_is_left_alone(
    httpx: ModuleType, way: str, status: int
):
    through = transport()
    with Loopback(refusing(lambda body: b'"call_r0"' not in body, status)) as server:
        key = {"Idempotency-Key": "k"}
        requests = [("POST", server.url + "/v1/messages", {"content": CUT, "headers": key})] * 2
        got = run(httpx, way, through, requests)
        bodies, keys = ([asked.body for asked in server.asked], [asked.header(*key) for asked in server.asked])
    assert [one.status for one in got] == [200, 200]
    assert bodies[0] == cutline.cut(CUT).body and bodies[-2:] == [CUT, CUT]
    assert keys[0] == keys[-1] == "k", "a request is the program's own repetition"
    report = through.report()
    assert report.cut == 0 and report.untouched["the provider refused the cut at this seam"] == 1
    assert "not like this" in report.faults[0] and "the original was accepted" in report.faults[0]


def test_a_refusal_that_the_cut_is_not_to_blame_for_reaches_the_program(way: str):
    import httpx2

    through = transport()
    with Loopback(refusing(lambda _: True)) as server:
        got = run(httpx2, way, through, [("POST", server.url + "/v1/messages", {"content": CUT})] * 2)
        assert server.asked[-1].body == CUT
    assert [(one.status, b"not like this" in one.raw) for one in got] == [(400, True)] * 2
    report = through.report()
    assert "the cut was not at fault" in report.faults[0] and report.refused == 2


def test_errors_that_say_nothing_of_the_body_are_passed_at_once(httpx: ModuleType, way: str):
    for status in (401, 429, 500, 529):
        with Loopback(refusing(lambda _: True, status)) as server:
            got = send(httpx, way, transport(), "POST", server.url + "/v1/messages", content=CUT)
            assert got.status == status and len(server.asked) == 1


# ----------------------------------------------------------------------------------------------- record and report


def test_the_record_keeps_the_whole_history_and_recall_finds_what_left(record: Path, way: str):
    import httpx2

    through = transport(record=record)
    with Loopback(says()) as server:
        requests = [("POST", server.url + "/v1/messages", {"content": body}) for body in ANTHROPIC]
        run(httpx2, way, through, requests)
    assert through.report().record == str(record)
    with Record(record, readonly=True) as held:
        (session,) = held.sessions()
        assert (session.client, session.requests) == ("python", len(ANTHROPIC))
        history = held.history(session.session, session.agent)
        assert history is not None and history.body == CUT and b'"ok"' in history.answer
    where = address("call_r0", "read", b'{"path": "part_00.py"}')
    assert conversations.result(0) in through.call("recall", {"what": where})
    assert where in through.call("recall", {"what": "part_00.py"})


@pytest.mark.parametrize("format", FORMATS)
def test_another_program_finds_it_in_the_record(record: Path, format: str):
    """What left the context of one process, recalled in the next one of the same project."""
    import httpx2

    first = transport(record=record)
    with Loopback(says(format)) as server:
        url = server.url + PATHS[format]
        run(httpx2, "sync", first, [("POST", url, {"content": body}) for body in growing(format)])
    first.report()
    second = transport(record=record)
    found = second.call("recall", {"what": "part_00.py"})
    where = found.splitlines()[1].split()[0]
    assert conversations.result(0) in second.call("recall", {"what": where})


# ------------------------------------------------------------------------------------------------ the agent's tools

UNPROVEN = {"claim": "4,711 rows are in part_00.py", "basis": "measured", "evidence": "wc -l elsewhere.py"}
RISKY = {**conversations.DOCUMENT, "facts": [UNPROVEN]}


def checkpoint(format: str, document: dict[str, Any]) -> Callable[[Asked], Told]:
    """An answer that calls micro_handoff."""
    made = conversations.answer(format, "Checkpoint.")
    if format == "anthropic":
        made["content"].append({"type": "tool_use", "id": "c", "name": "micro_handoff", "input": document})
    elif format == "openai_chat":
        function = {"name": "micro_handoff", "arguments": json.dumps(document)}
        made["choices"][0]["message"]["tool_calls"] = [{"id": "c", "type": "function", "function": function}]
    elif format == "openai_responses":
        call = {"type": "function_call", "call_id": "c", "name": "micro_handoff", "arguments": json.dumps(document)}
        made["output"].append(call)
    elif format == "gemini":
        call = {"functionCall": {"name": "micro_handoff", "args": document}}
        made["candidates"][0]["content"]["parts"].append(call)
    else:
        call = {"toolUse": {"toolUseId": "c", "name": "micro_handoff", "input": document}}
        made["output"]["message"]["content"].append(call)
    return lambda _: Told([json.dumps(made).encode()])


@pytest.mark.parametrize("format", FORMATS)
def test_what_a_checkpoint_would_lose_is_handed_back_once(record: Path, format: str):
    """The history is the one that the transport saw; the call is known by its id, or, without ids, as the latest."""
    import httpx2

    through = transport(record=record)
    call_id = "" if format == "gemini" else "c"
    with Loopback(checkpoint(format, RISKY)) as server:
        send(httpx2, "sync", through, "POST", server.url + PATHS[format], content=growing(format)[2])
    refused = through.call("micro_handoff", RISKY, call_id)
    assert refused.startswith("checkpoint refused:") and "4,711 rows" in refused
    stored = through.call("micro_handoff", RISKY, call_id)
    assert stored.startswith("checkpoint stored") and "Stored as unproven" in stored and "4,711" in stored
    with Record(record, readonly=True) as held:
        (document,) = held.documents()
        assert json.loads(document.json) == RISKY and document.session.startswith("python-")


def test_the_tools_answer_without_a_history_and_without_a_record():
    through = transport()
    assert through.call("micro_handoff", conversations.DOCUMENT).startswith("checkpoint stored")
    assert through.call("micro_handoff", {"done": "all"}).startswith("checkpoint refused: open: a text is required")
    assert through.call("say", {"text": "Now the tests."}) == "said"
    assert "no call in this project" in through.call("recall", {"what": "anything"})
    assert through.answer({"type": "tool_use", "id": "x", "name": "read", "input": {}}) is None


def test_a_tool_that_fails_is_an_answer_and_no_checkpoint(monkeypatch: pytest.MonkeyPatch):
    def broken(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("a fault of ours")

    monkeypatch.setattr("cutline.mcp.project.stamp", broken)
    through = transport()
    call = {"type": "tool_use", "id": "c", "name": "micro_handoff", "input": conversations.DOCUMENT}
    answered = through.answer(call)
    assert answered is not None and answered["is_error"]
    assert answered["content"][0]["text"].startswith("checkpoint refused: ")
    assert "a fault of ours" in through.report().faults[0]


def test_conversations_of_one_program_are_told_apart(record: Path):
    import httpx2

    others = [body.replace(conversations.GO.encode(), b"And the others?") for body in ANTHROPIC]
    through = transport(record=record)
    with Loopback(says()) as server:
        pairs = [body for pair in zip(ANTHROPIC, others, strict=True) for body in pair]
        run(httpx2, "sync", through, [("POST", server.url + "/v1/messages", {"content": body}) for body in pairs])
    through.report()
    with Record(record, readonly=True) as held:
        rows = held.sessions()
        assert len({row.session for row in rows}) == 1 and len({row.agent for row in rows}) == 2
        assert "" in {row.agent for row in rows} and {row.requests for row in rows} == {len(ANTHROPIC)}


@pytest.mark.parametrize(
    ("given", "environment", "kept"),
    [
        ("True", {}, "share/cutline/record.db"),
        ("True", {"CUTLINE_RECORD": ""}, ""),
        ("True", {"CUTLINE_RECORD": "{home}/elsewhere.db"}, "elsewhere.db"),
        ("False", {"CUTLINE_RECORD": "{home}/elsewhere.db"}, ""),
        ("'{home}/mine.db'", {}, "mine.db"),
    ],
    ids=["by default", "off by the environment", "named by the environment", "off", "a path"],
)
def test_where_the_record_lies_and_that_the_programs_end_stores_it(
    tmp_path: Path, given: str, environment: dict[str, str], kept: str
):
    """The program neither closes its client nor asks for a report."""
    code = f"""
    import sys, logging
    sys.path.insert(0, {str(Path(__file__).parent)!r})
    import httpx2, cutline
    from conversations import growing, answer
    told = lambda request: httpx2.Response(200, json=answer("anthropic"))
    client = httpx2.Client(transport=cutline.Transport(httpx2.MockTransport(told), record={given}))
    client.post("https://api.example/v1/messages", content=growing("anthropic")[-1])
    """
    home = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "share")}
    named = {name: value.format(home=tmp_path) for name, value in environment.items()}
    done = python(code.format(home=tmp_path), **{**home, **named})
    assert done.returncode == 0, done.stderr
    found = [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.db")]
    assert found == ([kept] if kept else [])
    if kept:
        assert str(tmp_path / kept) in done.stderr and "record=False" in done.stderr, "a new record is announced"
        with Record(tmp_path / kept, readonly=True) as held:
            assert [row.requests for row in held.sessions()] == [1]
    else:
        assert done.stderr == ""


def test_a_process_that_forked_goes_on(record: Path):
    code = f"""
    import os, sys
    sys.path.insert(0, {str(Path(__file__).parent)!r})
    import httpx2, cutline
    from conversations import growing, answer
    told = lambda request: httpx2.Response(200, json=answer("anthropic"))
    through = cutline.Transport(httpx2.MockTransport(told), record={str(record)!r})
    client = httpx2.Client(transport=through)
    post = lambda: client.post("https://api.example/v1/messages", content=growing("anthropic")[-1])
    post()
    through.report()
    child = os.fork()
    post()
    requests = through.report().requests
    if not child:
        os._exit(requests)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), requests)
    """
    if not hasattr(os, "fork"):
        pytest.skip("this system does not fork")
    done = python(code)
    assert done.stdout.split() == ["2", "2"], done.stderr
    with Record(record, readonly=True) as held:
        assert sum(row.requests for row in held.sessions()) == 3


@pytest.mark.parametrize("format", FORMATS)
def test_the_report_has_the_providers_own_counts(format: str):
    import httpx2

    through = transport()
    bodies = growing(format)
    with Loopback(says(format)) as server:
        run(httpx2, "sync", through, [("POST", server.url + PATHS[format], {"content": body}) for body in bodies])
        send(httpx2, "sync", through, "GET", server.url + "/v1/models")
    report = through.report()
    assert (report.requests, report.others, report.refused) == (len(bodies), 1, 0)
    assert (report.used.total_input, report.used.output) == (1_000 * len(bodies), 20 * len(bodies))
    assert report.uncut_tokens > report.used.total_input
    assert report.last is not None and report.last.kept is not None and report.last.kept.share == 1.0
    told = report.as_json()
    assert told["sent_bytes"] < told["uncut_bytes"] and json.loads(json.dumps(told)) == told
    shown = str(report)
    assert f"{len(bodies)} requests, {report.cut} cut" in shown and report.checkpoints[0].seam in shown


def test_threads_share_a_transport():
    import httpx2

    through = transport()
    with Loopback(says()) as server, httpx2.Client(transport=through) as client:

        def work(number: int) -> None:
            for body in ANTHROPIC:
                own = body.replace(conversations.GO.encode(), f"Number {number}?".encode())
                client.post(server.url + "/v1/messages", content=own).raise_for_status()

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(not validator.faults(asked.body) for asked in server.asked)
    report = through.report()
    assert (report.requests, report.cut, report.faults) == (8 * len(ANTHROPIC), 8 * 5, ())


# ------------------------------------------------------------------------------------------------- httpx's own lines


def test_one_transport_serves_both_kinds_of_client_again_and_again(httpx: ModuleType):
    """Clients that were closed, event loops that ended: the next one finds connections of its own."""
    through = transport()
    with Loopback(says()) as server:
        for way in ("sync", "async", "async", "sync"):
            assert send(httpx, way, through, "POST", server.url + "/v1/messages", content=CUT).status == 200
    assert through.report().requests == 4


def test_the_proxy_that_the_environment_names_is_used(way: str, monkeypatch: pytest.MonkeyPatch):
    """As httpx does by itself for a client that has no transport of its own."""
    import httpx2

    with Loopback(says()) as proxy, Loopback(says()) as server:
        for name in ("http_proxy", "HTTP_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        through = transport()
        send(httpx2, way, through, "POST", "http://provider.example/v1/messages", content=CUT)
        send(httpx2, way, through, "POST", server.url + "/v1/messages", content=CUT)
        assert [asked.target for asked in proxy.asked] == ["http://provider.example/v1/messages"]
        assert [asked.target for asked in server.asked] == ["/v1/messages"]


def test_the_library_alone_loads_nothing_of_this():
    code = (
        "import sys, cutline; print([name for name in sys.modules if name.split('.')[0] in ('httpx', 'httpx2', 'anyio')"
        " or name.startswith(('cutline.transport', 'cutline.record', 'cutline.toolset'))])"
    )
    assert python(code).stdout.strip() == "[]"
    alone = (
        "import sys, cutline; cutline.Transport(record=False); print('httpx' in sys.modules, 'httpx2' in sys.modules)"
    )
    assert python(alone).stdout.strip() == "False False"
