"""The proxy's decisions as tables: who may ask, what is a history, what an answer said, what the hooks are told.

No socket is opened. Streams are written by hand, as the provider's documentation shows them.
"""

from __future__ import annotations

import gzip
import json
import sys
import zlib
from collections.abc import Sequence
from typing import Any

import pytest

import bodies
from cutline import cut, mandate
from cutline.cutter import seam_address
from cutline.proxy import client, hooks, ledger, plan, routes, tap
from cutline.proxy.hooks import Fullness, Heard
from cutline.proxy.ledger import Account
from cutline.proxy.plan import Forward, Refusal
from cutline.proxy.tap import Answer

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

HOST = ("Host", "127.0.0.1:4000")


def _gzip(data: bytes) -> bytes:
    """Always the same bytes: they name the tests."""
    return gzip.compress(data, mtime=0)


# ----------------------------------------------------------------------------------------------------- who may ask


@pytest.mark.parametrize(
    ("target", "rest"),
    (
        ("/tok", ""),
        ("/tok/", "/"),
        ("/tok?a=/../b", "?a=/../b"),
        ("/tok/v1/messages?beta=true", "/v1/messages?beta=true"),
        ("/tok/v1/files/a%20b%2Fc?x=%2e%2e", "/v1/files/a%20b%2Fc?x=%2e%2e"),
        ("/tok//x//", "//x//"),
        ("/tok/...", "/..."),
        ("/tok/tok/x", "/tok/x"),
    ),
)
def test_what_stands_behind_the_token_goes_on_as_it_came(target: str, rest: str):
    assert plan.admit(target, [HOST], "tok") == rest


@pytest.mark.parametrize(
    ("target", "headers", "status", "words"),
    (
        ("/tokk/v1", [HOST], 403, "token"),
        ("/to/v1", [HOST], 403, "token"),
        ("/TOK/v1", [HOST], 403, "token"),
        ("/%74ok/v1", [HOST], 403, "token"),
        ("tok/v1", [HOST], 400, "path"),
        ("*", [HOST], 400, "path"),
        ("http://127.0.0.1/tok/v1", [HOST], 400, "path"),
        ("/tok/v1", [], 403, "Host"),
        ("/tok/v1", [HOST, HOST], 403, "Host"),
        ("/tok/v1", [("host", "evil.example")], 403, "Host"),
        ("/tok/v1", [HOST, ("ORIGIN", "null")], 403, "browser"),
        ("/tok/v1", [HOST, ("Upgrade", "h2c")], 400, "switch"),
        ("/tok/../v1", [HOST], 400, "leaves"),
        ("/tok/%2E./v1", [HOST], 400, "leaves"),
        ("/tok/%252525252e", [HOST], None, ""),
        ("/tok/a b", [HOST], 400, "ASCII"),
        ("/tok/ü", [HOST], 400, "ASCII"),
        ("/tok/\udcff", [HOST], 400, "ASCII"),
        ("/tök/v1", [HOST], 400, "ASCII"),
    ),
)
def test_who_may_not_ask(target: str, headers: list[tuple[str, str]], status: int | None, words: str):
    told = plan.admit(target, headers, "tok")
    if status is None:
        assert isinstance(told, str)
        return
    assert isinstance(told, Refusal) and told.status == status and words in told.message
    assert told.body()["type"] == "error" and "\n" not in told.message


TURN, COUNT = routes.Route("anthropic"), routes.Route("anthropic", "count")


@pytest.mark.parametrize(
    ("method", "target", "which"),
    (
        ("POST", "/v1/messages", TURN),
        ("POST", "/v1/messages?beta=true", TURN),
        ("POST", "/v1/messages/", TURN),
        ("POST", "/gateway/v1/messages", TURN),
        ("POST", "/v1/messages/count_tokens?beta=true", COUNT),
        ("GET", "/v1/messages", None),
        ("POST", "/v1/messages/batches", None),
        ("POST", "/v1/messages/batches/b/results", None),
        ("POST", "/v1/messagesx", None),
        ("POST", "/v1/models?x=/v1/messages", None),
        ("POST", "", None),
    ),
)
def test_which_requests_carry_a_history(method: str, target: str, which: routes.Route | None):
    assert routes.route(method, target) == which


# ------------------------------------------------------------------------------------------------------ encodings


@pytest.mark.parametrize(
    ("encoding", "packed"),
    (
        ("", b"words"),
        ("identity", b"words"),
        ("gzip", _gzip(b"words")),
        ("X-GZIP", _gzip(b"words")),
        ("deflate", zlib.compress(b"words")),
        ("deflate", zlib.compress(b"words")[2:-4]),
        ("zstd", zstd.compress(b"words")),
        ("gzip", _gzip(b"wo") + _gzip(b"rds")),
        ("zstd", zstd.compress(b"wo") + zstd.compress(b"rds")),
        ("deflate, gzip ,", _gzip(zlib.compress(b"words"))),
    ),
)
def test_a_body_without_its_encodings(encoding: str, packed: bytes):
    assert plan.unpack(packed, encoding) == b"words"


@pytest.mark.parametrize(
    ("encoding", "packed", "told"),
    (
        ("br", b"x", "br can't be read"),
        ("gzip, br", b"x", "gzip, br can't be read"),
        ("gzip", _gzip(b"words")[:-1], "no gzip: it ends too early"),
        ("gzip", b"words", "no gzip: "),
        ("gzip", _gzip(b"words") + b"tail", "no gzip: "),
        ("zstd", zstd.compress(b"words")[:-1], "no zstd: it ends too early"),
        ("zstd", b"words", "no zstd: "),
        ("deflate", b"\xff\xff", "no deflate: "),
        ("gzip", _gzip(b"") * 10_001, "no gzip: it has more than 10,000 parts"),
        ("gzip", _gzip(bytes(1_001)), 413),
        ("zstd", zstd.compress(bytes(1_001)), 413),
        ("deflate", zlib.compress(bytes(1_001)), 413),
        ("gzip", _gzip(bytes(600)) * 2, 413),
        ("gzip", _gzip(bytes(1_000)), 200),
    ),
)
def test_what_can_not_be_unpacked(encoding: str, packed: bytes, told: str | int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(plan, "BODY_CAP", 1_000)
    plain = plan.unpack(packed, encoding)
    if told == 200:
        assert plain == bytes(1_000)
    elif told == 413:
        assert isinstance(plain, Refusal) and plain.status == told
    else:
        assert isinstance(plain, str) and str(told) in plain and "\n" not in plain


# -------------------------------------------------------------------------------------------------------- headers


def test_headers_of_a_request():
    came = [
        ("Host", "localhost"),
        ("X-Api-Key", "made-up"),
        ("Connection", "close, X-Own"),
        ("x-own", "1"),
        ("Content-Length", "5"),
        ("Content-Encoding", "gzip"),
        ("Accept-Encoding", "br, gzip;q=0.5"),
        ("X-Two", "a"),
        ("x-two", "b"),
        ("Expect", "100-continue"),
        ("Trailer", "x"),
    ]
    kept = [("X-Api-Key", "made-up"), ("Content-Encoding", "gzip"), ("Accept-Encoding", "gzip;q=0.5")]
    assert plan.request_headers(came) == [*kept, ("X-Two", "a"), ("X-Two", "b")]
    assert plan.by_name(came)["x-two"] == "a, b"


def test_headers_of_an_answer():
    came = [
        ("Content-Type", "text/event-stream"),
        ("Content-Length", "9"),
        ("Content-Encoding", "br"),
        ("Transfer-Encoding", "chunked"),
        ("connection", "x-own"),
        ("X-Own", "1"),
        ("Set-Cookie", "a"),
        ("set-cookie", "b"),
        ("Keep-Alive", "timeout=5"),
    ]
    kept = [came[0], came[1], came[2], came[6], came[7]]
    assert plan.response_headers(came) == kept


# ------------------------------------------------------------------------------------------------------ the client


INSTRUCTION = (
    "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.\n\n- Do NOT use Read, Bash, or ANY other tool.\n"
    "Make a detailed summary of the conversation, as here told.\n"
    "REMINDER: Do NOT call any tools. Respond with plain text only."
)


def _text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def _result(content: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": "toolu_1", "content": content}


def _messages(last: Any, role: str = "user") -> list[dict[str, Any]]:
    call = {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file_path": "x"}}
    return [
        {"role": "user", "content": "Read x."},
        {"role": "assistant", "content": [call]},
        {"role": role, "content": last},
    ]


@pytest.mark.parametrize(
    ("last", "role", "is_one"),
    (
        ([_result("…"), _text(INSTRUCTION)], "user", True),
        ([_result("…"), _text("\n" + INSTRUCTION)], "user", True),
        (INSTRUCTION, "user", True),
        ([_result(INSTRUCTION)], "user", False),
        ([_result([_text(INSTRUCTION)])], "user", False),
        ([_result("…"), _text(INSTRUCTION), _text("and now?")], "user", False),
        ([_result("…"), _text(f"What does this mean? {INSTRUCTION}")], "user", False),
        ([_result("…"), _text(INSTRUCTION.split("\n")[0])], "user", False),
        ([_text(INSTRUCTION)], "assistant", False),
    ),
)
def test_the_client_s_own_compaction_is_told_from_talk_about_it(last: Any, role: str, is_one: bool):
    for compact in (True, False):
        assert client.is_compaction(bodies.body(_messages(last, role), compact=compact)) is is_one


def test_a_compaction_is_never_cut_and_a_body_that_can_t_be_read_is_none():
    messages = [{"role": "user", "content": "Count."}, *bodies.checkpoint_turn(1)]
    messages[-1]["content"].append(_text(INSTRUCTION))
    body = bodies.body(messages)
    sent = plan.forward(TURN, {}, body, plan.Cutter())
    assert isinstance(sent, Forward) and (sent.kind, sent.body, sent.seam) == ("compaction", body, "")
    assert not client.is_compaction(INSTRUCTION.encode()) and not client.is_compaction(
        b'{"messages":[]}' + INSTRUCTION.encode()
    )


def test_who_asks_is_read_from_the_headers():
    headers = {"x-claude-code-session-id": "s", "x-claude-code-agent-id": "a", "authorization": "Bearer made-up"}
    body = bodies.body([{"role": "user", "content": "Hello."}])
    sent = plan.forward(TURN, headers, body, plan.Cutter())
    assert isinstance(sent, Forward)
    assert (sent.session, sent.agent, sent.metered, sent.kind, sent.body) == ("s", "a", False, "turn", body)
    sent = plan.forward(COUNT, {"x-api-key": "made-up"}, body, plan.Cutter())
    assert isinstance(sent, Forward) and (sent.session, sent.metered, sent.kind) == ("", True, "count")


def test_a_history_that_grows_behind_a_proven_seam_is_soon_cut_and_a_new_seam_is_not():
    messages = [{"role": "user", "content": "Count."}, *_worked(1), *bodies.checkpoint_turn(1)]
    cutter = plan.Cutter()
    one = bodies.body(messages)
    assert cutter.is_quick(bodies.body(messages[:3], tools=[])) and not cutter.is_quick(one)
    assert cutter.cut(one)[0].changed and cutter.is_quick(one)
    assert cutter.is_quick(bodies.body([*messages, *_worked(2)]))
    two = bodies.body([*messages, *_worked(2), *bodies.checkpoint_turn(2)])
    assert not cutter.is_quick(two)
    assert cutter.cut(two)[0].body == cut(two).body and cutter.is_quick(two) and cutter.is_quick(one)


# ------------------------------------------------------------------------------------------------- reading answers


def _event(**members: Any) -> str:
    return f"event: {members['type']}\ndata: {json.dumps(members)}\n\n"


def _block(index: int, block: dict[str, Any], *deltas: dict[str, Any]) -> str:
    start = _event(type="content_block_start", index=index, content_block=block)
    told = [_event(type="content_block_delta", index=index, delta=delta) for delta in deltas]
    return start + "".join(told) + _event(type="content_block_stop", index=index)


def _json(*parts: str) -> list[dict[str, Any]]:
    return [{"type": "input_json_delta", "partial_json": part} for part in parts]


START = _event(
    type="message_start",
    message={
        "model": "claude-opus-5-5",
        "content": [],
        "usage": {
            "input_tokens": 10,
            "cache_read_input_tokens": 90,
            "cache_creation_input_tokens": 7,
            "cache_creation": {"ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 4},
            "output_tokens": 1,
            "service_tier": "standard",
        },
    },
)
STOP = _event(type="message_delta", delta={"stop_reason": "tool_use"}, usage={"output_tokens": 55}) + _event(
    type="message_stop"
)
STREAM = (
    START
    + _event(type="ping")
    + _block(
        0,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "the bound"},
        {"type": "thinking_delta", "thinking": " is off — ü"},
        {"type": "signature_delta", "signature": "c2ln"},
    )
    + _block(
        1,
        {"type": "text", "text": ""},
        {"type": "text_delta", "text": "Reading "},
        {"type": "text_delta", "text": "x.\n\n"},
    )
    + ": a comment\n\n"
    + _block(
        2, {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {}}, *_json("", '{"file_', 'path": "ü', '"}')
    )
    + _block(3, {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}, *_json('{"query":1}'))
    + _block(4, {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [{"type": "x"}]})
    + _block(5, {"type": "tool_use", "id": "toolu_2", "name": "Now", "input": {}}, *_json(""))
    + _block(6, {"type": "hologram", "hue": 1}, {"type": "hologram_delta", "hue": 2})
    + STOP
).encode()
CONTENT = [
    {"type": "thinking", "thinking": "the bound is off — ü", "signature": "c2ln"},
    {"type": "text", "text": "Reading x.\n\n"},
    {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file_path": "ü"}},
    {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": 1}},
    {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [{"type": "x"}]},
    {"type": "tool_use", "id": "toolu_2", "name": "Now", "input": {}},
    {"type": "hologram", "hue": 1},
]
SSE = "text/event-stream; charset=utf-8"


def test_a_stream_gives_the_blocks_as_the_next_request_will_hold_them():
    read = tap.read(STREAM, SSE, "")
    assert read.content == CONTENT
    assert (read.model, read.stop, read.error, read.complete) == ("claude-opus-5-5", "tool_use", "", True)
    assert read.usage == {
        "input_tokens": 10,
        "cache_read_input_tokens": 90,
        "cache_creation_input_tokens": 7,
        "ephemeral_5m_input_tokens": 3,
        "ephemeral_1h_input_tokens": 4,
        "output_tokens": 55,
    }


@pytest.mark.parametrize("ends", (b"\n", b"\r\n", b"\r"))
def test_every_way_to_end_a_line_is_read(ends: bytes):
    assert tap.read(STREAM.replace(b"\n", ends), SSE, "") == tap.read(STREAM, SSE, "")


@pytest.mark.parametrize("encoding", ("gzip", "deflate", "zstd"))
def test_a_compressed_stream_is_read_whole_or_torn(encoding: str):
    pack = {"gzip": gzip.compress, "deflate": zlib.compress, "zstd": zstd.compress}[encoding]
    packed = pack(STREAM)
    assert tap.read(packed, SSE, encoding).content == CONTENT
    for at in range(0, len(packed), 7):
        torn = tap.read(packed[:at], SSE, encoding)
        assert len(torn.content) <= len(CONTENT) and not torn.error
    half = zlib.compressobj(wbits=31)
    flushed = half.compress(START.encode()) + half.flush(zlib.Z_SYNC_FLUSH)
    assert tap.read(flushed + b"\x00", SSE, "gzip").model == "claude-opus-5-5"
    packer = zstd.ZstdCompressor()
    flushed = packer.compress(START.encode(), packer.FLUSH_BLOCK)
    assert tap.read(flushed, SSE, "zstd").model == "claude-opus-5-5", "a torn answer gives what can be read of it"


def test_a_stream_that_is_torn_at_any_byte_gives_a_beginning_of_it_and_no_error():
    whole = [json.dumps(block) for block in CONTENT]
    before = 0
    for at in range(len(STREAM) + 1):
        read = tap.read(STREAM[:at], SSE, "")
        assert before <= len(read.content) <= len(CONTENT)
        before = len(read.content)
        assert [json.dumps(block) for block in read.content[:-1]] == whole[: max(0, len(read.content) - 1)]
        for block in read.content[-1:]:
            expected = CONTENT[len(read.content) - 1]
            assert block["type"] == expected["type"]
            assert expected.get("text", "").startswith(block.get("text", ""))
            assert block.get("input", {}) in ({}, expected.get("input"))
        assert read.complete == (at >= STREAM.index(b"\n\n", STREAM.rindex(b'"stop_reason"')))


@pytest.mark.parametrize(
    "bad",
    (
        "data: {\n\n",
        "data: [1]\n\n",
        "data: 1e999999\n\n",
        'data: {"type":"content_block_delta","index":99,"delta":{}}\n\n',
        'data: {"type":"content_block_start","index":null}\n\n',
        "data: " + "[" * 100_000 + "\n\n",
        'data: {"type":"message_delta"}\n\n',
    ),
)
def test_an_event_that_is_none_is_passed_over(bad: str):
    assert tap.read(bad.encode() + STREAM, SSE, "").content == CONTENT


def test_an_error_in_the_middle_of_a_stream():
    error = _event(type="error", error={"type": "overloaded_error", "message": "Overloaded"})
    read = tap.read((START + _block(0, {"type": "text", "text": "Hal"}) + error).encode(), SSE, "")
    assert (read.content, read.error, read.complete) == ([_text("Hal")], "Overloaded", False)


@pytest.mark.parametrize(
    ("raw", "answer"),
    (
        (b'{"content":[{"type":"text","text":"a"},1],"stop_reason":"end_turn","model":"m","usage":{"input_tokens":3,"x":null}}',
         Answer([_text("a")], {"input_tokens": 3}, "m", "end_turn", "")),
        (b'{"type":"error","error":{"type":"api_error"}}', Answer(error="api_error")),
        (b'{"input_tokens":12}', Answer()),
        (b"<html>", Answer()),
        (b"", Answer()),
        (b"[1]", Answer()),
        (b"[" * 100_000, Answer()),
        (b'{"content":null,"usage":[],"error":"x","model":null}', Answer(error="x")),
    ),
)  # fmt: skip
def test_an_answer_that_is_not_streamed(raw: bytes, answer: Answer):
    assert tap.read(raw, "application/json", "") == answer
    assert tap.read(_gzip(raw), "application/json", "gzip") == answer
    assert tap.read(b"\xff" + raw, "application/json", "br") == Answer()


# ------------------------------------------------------------------------------------------------------ the ledger


def _sent(body: bytes, **more: Any) -> Forward:
    done = cut(body)
    seam = seam_address(done) if done.changed else ""
    values = {"kind": "turn", "format": "anthropic", "whole": body, "body": done.body, "raw": done.body}
    values |= {"seam": seam, "reason": ""}
    return Forward(**{**values, "session": "s", "agent": "", "metered": True, **more})


def _answered(tokens: int, *content: dict[str, Any], output: int = 5) -> Answer:
    return Answer(list(content), {"input_tokens": tokens, "output_tokens": output}, "m", "end_turn")


def _worked(number: int, tool: str = "Bash") -> list[dict[str, Any]]:
    call = {"type": "tool_use", "id": f"toolu_{number}", "name": tool, "input": {"command": f"seq {number % 10}"}}
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": "1\n" * 500}
    return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]


HISTORY = [{"role": "user", "content": "Count."}, *_worked(1), *_worked(2)]
BEFORE = bodies.body(HISTORY)
AFTER = bodies.body([*HISTORY, *bodies.checkpoint_turn(1)])
LATER = bodies.body([*HISTORY, *bodies.checkpoint_turn(1), *_worked(11), *_worked(13)])


def test_a_checkpoint_is_one_step_from_the_last_request_before_it_to_the_first_behind_it():
    account = Account("s")
    for body, tokens in ((BEFORE, 1_000), (AFTER, 400), (LATER, 500)):
        account.add(_sent(body), _answered(tokens), 200)
    (step,) = account.steps
    sent = [len(cut(body).body) for body in (BEFORE, AFTER, LATER)]
    assert (step.before, step.after, step.new) == (sent[0], sent[1], len(AFTER) - len(BEFORE))
    assert (step.before_tokens, step.after_tokens) == (1_000, 400)
    assert step.after_messages < step.before_messages < step.before
    assert (account.turns, account.sent, account.whole) == (3, sum(sent), len(BEFORE) + len(AFTER) + len(LATER))
    assert account.used.input == 1_900 and account.used.output == 15
    expected = 1_000 + 400 * len(AFTER) / sent[1] + 500 * len(LATER) / sent[2]
    assert account.uncut == pytest.approx(expected)
    read = ledger.look(account)
    assert read is not None and read.redone == 1, "seq 1 again; seq 3 is new"
    assert ledger.tokens_per_byte(account) == pytest.approx(1_900 / sum(sent))


def test_what_is_no_turn_of_the_conversation_is_counted_apart():
    account = Account("s")
    account.add(_sent(BEFORE, kind="count"), Answer(), 200)
    assert (account.counts, account.sent, account.turns) == (1, 0, 0)
    account.add(_sent(BEFORE, agent="a"), _answered(10), 200)
    account.add(_sent(b'{"messages":[{"role":"user","content":"\\"tools\\":[{"}]}'), _answered(10), 200)
    account.add(_sent(BEFORE, kind="compaction"), _answered(10, _text("<summary>…</summary>")), 200)
    account.add(_sent(BEFORE, kind="other"), Answer(), 200)
    told = account.turns, account.agent_turns, account.compactions, account.others
    assert told == (0, 1, 1, 2) and not account.steps and account.used.input == 30


@pytest.mark.parametrize("status", (400, 429, 500, 529))
def test_an_error_is_no_step(status: int):
    account = Account("s")
    account.add(_sent(BEFORE), _answered(1_000), 200)
    account.add(_sent(AFTER), Answer(error="no"), status)
    assert not account.steps and account.last == BEFORE and (account.turns, account.others) == (1, 1)
    account.add(_sent(AFTER), _answered(400), 200)
    assert len(account.steps) == 1


def test_faults_are_told_once():
    account = Account("s")
    for fault in ("rule 1: x", "rule 1: x", "", "rule 2: y"):
        account.add(_sent(BEFORE, fault=fault), _answered(1), 200)
    assert account.faults == ["rule 1: x", "rule 2: y"]


@pytest.mark.parametrize(
    ("content", "claims"),
    (
        ([_text("<invoke name=\"Bash\"><parameter name=\"command\">ls")], True),
        ([_text("[Tool call: Bash(ls)]")], True),
        ([_text('{"type": "tool_use", "name": "Bash", "input": {}}')], True),
        ([_text('{"name": "Bash", "arguments": {"command": "ls"}}')], True),
        ([_text("<invoke name=\"Bash\">"), {"type": "tool_use", "id": "1", "name": "Bash", "input": {}}], False),
        ([_text("The function calls Bash; see [Tool]s and {\"name\": \"x\"}.")], False),
        ([_text("I ran the tests: 3 passed.")], False),
        ([], False),
    ),
)  # fmt: skip
def test_a_call_that_is_only_written_out_is_seen(content: list[dict[str, Any]], claims: bool):
    assert ledger.claims_without_a_call(content) is claims


# ------------------------------------------------------------------------------------------------------- the hooks


def _asked(name: str = "Bash", **more: Any) -> dict[str, Any]:
    return {
        "hook_event_name": "PreToolUse",
        "tool_name": name,
        "tool_input": {"command": "grep -rn count src/app.py"},
        "tool_use_id": "toolu_1",
        "session_id": "s",
        **more,
    }


CALL = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "grep -rn count src/app.py"}}
WORDS = "Searching src/app.py for count, because the sum of 41 looks wrong; I expect two places."
SAY = {"type": "tool_use", "id": "toolu_0", "name": "mcp__cutline__say", "input": {"text": WORDS}}


def _heard(*answers: Sequence[dict[str, Any]]) -> Heard:
    heard = Heard()
    for answer in answers:
        heard.hear(list(answer))
    return heard


@pytest.mark.parametrize(
    ("payload", "heard", "told"),
    (
        (_asked(), _heard([_text(WORDS), CALL]), "nothing"),
        (_asked(), _heard([SAY, CALL]), "nothing"),
        (_asked(), _heard([SAY], [CALL]), "nothing"),
        (_asked(), _heard([CALL]), "asks"),
        (_asked(), _heard([_text("Let me look."), CALL]), "asks"),
        (_asked(), None, "nothing"),
        (_asked(agent_id="a1"), _heard([CALL]), "nothing"),
        (_asked("mcp__cutline__micro_handoff"), _heard([CALL]), "nothing"),
        (_asked("mcp__cutline__say"), _heard([CALL]), "nothing"),
        (_asked("TodoWrite"), _heard([CALL]), "nothing"),
        (_asked("AskUserQuestion"), _heard([CALL]), "nothing"),
    ),
)  # fmt: skip
def test_a_call_without_words_is_asked_for_them(payload: dict[str, Any], heard: Heard | None, told: str):
    assert hooks.before_call(payload, heard, "text") == {}
    nudge = hooks.before_call(payload, heard, "nudge")
    strict = hooks.before_call(payload, heard, "strict")
    if told == "nothing":
        assert nudge == strict == {}
        return
    assert nudge == {"hookSpecificOutput": {"hookEventName": "PreToolUse", "additionalContext": mandate.NUDGE}}
    denied = {"permissionDecision": "deny", "permissionDecisionReason": mandate.STRICT}
    assert strict == {"hookSpecificOutput": {"hookEventName": "PreToolUse", **denied}}


def _full(tokens: int, **more: Any) -> Fullness:
    full = Fullness(**more)
    full.request(tokens, more.get("seam", ""))
    return full


@pytest.mark.parametrize(
    ("payload", "full", "held"),
    (
        ({"trigger": "auto"}, _full(117_000), True),
        ({"trigger": "manual"}, _full(117_000), False),
        ({"trigger": "auto"}, _full(176_000), False),
        ({"trigger": "auto"}, _full(967_000), True),
        ({"trigger": "auto"}, _full(976_000), False),
        ({}, _full(117_000), False),
        ({"trigger": "auto"}, Fullness(tokens=117_000, overflowed=True), False),
        ({"trigger": "auto"}, Fullness(tokens=150_000, pending=120_000), False),
        ({"trigger": "auto"}, Fullness(tokens=117_000, seam="two", turns=1, asked=1, asked_at="one"), False),
    ),
)  # fmt: skip
def test_the_client_s_own_summary_is_held_back_while_a_checkpoint_can_help(
    payload: dict[str, Any], full: Fullness, held: bool
):
    told = hooks.before_compaction({"hook_event_name": "PreCompact", **payload}, full)
    assert (told.get("decision") == "block") is held and full.wanted is held


def test_it_is_held_back_five_times_and_the_agent_is_told_once_for_each():
    full = _full(117_000)
    told = []
    for _ in range(7):
        held = hooks.before_compaction({"trigger": "auto"}, full)
        after = [hooks.after_call({"hook_event_name": "PostToolUse", "tool_name": "Bash"}, full) for _ in range(2)]
        told.append((bool(held), bool(after[0]), bool(after[1])))
        full.request(117_000, "")
    assert told == [(True, True, False)] * 5 + [(False, False, False)] * 2


@pytest.mark.parametrize(
    ("payload", "is_told", "wanted"),
    (
        ({"hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_response": {"stdout": "x"}}, True, False),
        ({"hook_event_name": "UserPromptSubmit", "prompt": "go on"}, True, False),
        ({"hook_event_name": "PostToolUse", "tool_name": "Bash", "agent_id": "a1"}, False, True),
        ({"hook_event_name": "PostToolUse", "tool_name": "mcp__cutline__say"}, False, True),
        ({"hook_event_name": "PostToolUse", "tool_name": "mcp__cutline__micro_handoff"}, False, False),
    ),
)
def test_the_agent_is_told_at_the_next_hook_that_reaches_it(payload: dict[str, Any], is_told: bool, wanted: bool):
    full = Fullness(tokens=117_000, wanted=True)
    told = hooks.after_call(payload, full)
    assert full.wanted is wanted
    if is_told:
        words = {"hookEventName": payload["hook_event_name"], "additionalContext": mandate.CHECKPOINT_WANTED}
        assert told == {"hookSpecificOutput": words}
    else:
        assert told == {}
