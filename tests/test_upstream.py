"""The scripted provider that the live tests stand on: what it refuses, what it counts, how it answers."""

from __future__ import annotations

import gzip
import http.client
import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from cutline.wire.anthropic.signature import may_be_narration, signed_narration
from live.upstream import Answer, Reply, Upstream, call, failure, narration, text, thinking

Body = dict[str, Any]
MARK = {"type": "ephemeral"}
GO = {"role": "user", "content": "go"}
BOUND = (
    "Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block, or set "
    '`thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
)
MODIFIED = "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified"


def body(*messages: Any, model: str = "claude-opus-5-5", **more: Any) -> Body:
    return {
        "model": model,
        "max_tokens": 100,
        "system": "Be brief.",
        "tools": [{"name": "Bash", "input_schema": {"type": "object"}}],
        "messages": list(messages),
        **more,
    }


def result(id_: str, content: str = "out") -> Body:
    return {"type": "tool_result", "tool_use_id": id_, "content": content}


@contextmanager
def opened(upstream: Upstream) -> Iterator[http.client.HTTPConnection]:
    address = upstream.url.removeprefix("http://")
    with closing(http.client.HTTPConnection(address, timeout=20)) as connection:
        yield connection


def post(
    upstream: Upstream, sent: Body | bytes, path: str = "/v1/messages?beta=true", **headers: str
) -> tuple[int, http.client.HTTPMessage, bytes]:
    """Status, headers and body of an answer."""
    with opened(upstream) as connection:
        raw = sent if isinstance(sent, bytes) else json.dumps(sent).encode()
        connection.request("POST", path, raw, headers)
        response = connection.getresponse()
        return response.status, response.headers, response.read()


def told(upstream: Upstream, sent: Body | bytes) -> Body:
    """A whole answer that was given without a fault."""
    status, _, said = post(upstream, sent)
    assert status == 200, said
    found: Body = json.loads(said)
    return found


def refusal(upstream: Upstream, sent: Body | bytes, path: str = "/v1/messages") -> str:
    """The message of a refusal, whose shape is the provider's."""
    status, headers, said = post(upstream, sent, path)
    found = json.loads(said)
    assert (status, headers["content-type"]) == (400, "application/json")
    assert found == {"type": "error", "error": {"type": "invalid_request_error", "message": found["error"]["message"]}}
    message: str = found["error"]["message"]
    return message


def of(events: bytes) -> list[Body]:
    """The data of server-sent events."""
    return [json.loads(event.split(b"data: ")[1]) for event in events.split(b"\n\n") if event]


def until(holds: Callable[[], bool]) -> bool:
    """Whether something comes about within five seconds."""
    for _ in range(500):
        if holds():
            return True
        time.sleep(0.01)
    return False


# ---------------------------------------------------------------------------------------------- refusals


def test_a_strict_upstream_refuses_what_the_provider_refuses_and_keeps_it() -> None:
    open_call = body(GO, {"role": "assistant", "content": [call("a", "Bash")]}, {"role": "user", "content": "stop"})
    with Upstream([[text("hello")]], strict=True) as upstream:
        for path in ("/v1/messages", "/v1/messages/count_tokens"):
            assert "`tool_use` ids were found without `tool_result` blocks" in refusal(upstream, open_call, path)
        assert "Field required" in refusal(upstream, {"model": "claude-opus-5-5"})
        assert "not valid JSON" in refusal(upstream, b'{"model":')
        assert told(upstream, body(GO))["content"] == [text("hello")], "a refusal takes nothing off the script"
    assert len(upstream.refusals) == 4 and len(upstream.requests) == 5
    assert upstream.refusals[0].startswith("messages.1: `tool_use` ids were found without")
    assert (upstream.unused, upstream.aborted) == (0, 0)


def test_without_that_it_answers_anything_that_can_be_read() -> None:
    with Upstream() as upstream:
        assert told(upstream, body({"role": "assistant", "content": "x"}))["content"] == [text("ok")]
    assert upstream.refusals == []


def test_what_a_script_raises_the_test_raises() -> None:
    def answer(_: Body) -> list[Body]:
        raise LookupError("no such turn")

    lost = pytest.raises(http.client.RemoteDisconnected)
    with pytest.raises(LookupError, match="no such turn"), Upstream(answer) as upstream, lost:
        post(upstream, body(GO))


# --------------------------------------------------------------------------------------------- signatures


def test_signatures_say_what_is_narration() -> None:
    with Upstream([[thinking("Hm."), narration("I look."), narration(), text("Done.")]]) as upstream:
        found = told(upstream, body(GO))["content"]
    signatures = [block["signature"] for block in found[:3]]
    assert [block["thinking"] for block in found[:3]] == ["Hm.", "I look.", ""]
    assert [signed_narration(signature) for signature in signatures] == [False, True, True]
    assert [may_be_narration(signature) for signature in signatures] == [False, True, True]
    assert len(set(signatures)) == 3


SCRIPT: list[Answer] = [
    [thinking("First."), narration("I look."), text("So."), call("a", "Bash", command="ls", n=1.0), call("b", "Bash")],
    [thinking("Second."), thinking("Third."), call("c", "Bash")],
    [narration("And on."), text("Done.")],
]


def talk(upstream: Upstream, model: str = "claude-opus-5-5") -> Body:
    """Three answers in one loop, then the human again: the request that is next."""
    messages = [GO]
    for answers in (("a", "b"), ("c",), ()):
        messages.append({"role": "assistant", "content": told(upstream, body(*messages, model=model))["content"]})
        messages.append({"role": "user", "content": [*map(result, answers)] or "on"})
    return body(*messages, model=model)


def copied(sent: Body) -> Body:
    found: Body = json.loads(json.dumps(sent))
    return found


def test_an_uncut_conversation_is_accepted_in_any_spelling() -> None:
    with Upstream([*SCRIPT, [text("fine")]], strict=True, bound=True) as upstream:
        sent = talk(upstream)
        marked = copied(sent)
        marked["system"] = [{"type": "text", "text": "Be brief.", "cache_control": MARK}]
        marked["messages"][0]["content"] = [{"cache_control": MARK, **text("go")}]
        marked["messages"][1]["content"][3]["input"]["n"] = 1
        told(upstream, json.dumps(marked, indent=1, sort_keys=True, ensure_ascii=False).encode())
        more = {"role": "assistant", "content": "ok"}
        assert told(upstream, body(*sent["messages"], more, GO))["content"] == [text("ok")]
    assert upstream.refusals == []


def change(what: str, sent: Body) -> Body:
    """The conversation with one thing changed."""
    sent = copied(sent)
    messages = sent["messages"]
    if what == "system":
        sent["system"] = "Be briefer."
    elif what == "tools":
        sent["tools"].append({"name": "Read"})
    elif what == "a word of the human":
        messages[0]["content"] = "go!"
    elif what == "a reminder before it":
        messages[0]["content"] = [text("go"), text("<system-reminder>now</system-reminder>")]
    elif what == "a result":
        messages[2]["content"][0]["content"] = "other"
    elif what == "thinking left out between others":
        del messages[1]["content"][0]
    elif what == "a pair":
        del messages[1]["content"][4], messages[2]["content"][1]
    elif what == "a member of a message":
        messages[2]["clear_at"] = 1
    return sent


CHANGES = {
    "system": "messages.1.content.0",
    "tools": "messages.1.content.0",
    "a word of the human": "messages.1.content.0",
    "a reminder before it": "messages.1.content.0",
    "thinking left out between others": "messages.1.content.0",
    "a result": "messages.3.content.0",
    "a pair": "messages.3.content.0",
    "a member of a message": "messages.3.content.0",
}


@pytest.mark.parametrize(("what", "path"), CHANGES.items(), ids=CHANGES.keys())
def test_a_changed_prefix_is_refused_at_the_first_block_behind_it(what: str, path: str) -> None:
    with Upstream(SCRIPT, strict=True, bound=True) as upstream:
        changed = change(what, talk(upstream))
        assert refusal(upstream, changed) == f"{path}: {BOUND}"
        assert refusal(upstream, changed, "/v1/messages/count_tokens") == f"{path}: {BOUND}"
        drop = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
        told(upstream, changed | {"thinking": drop})
        told(upstream, changed | {"model": "claude-opus-4-7"})
    assert upstream.refusals == [f"{path}: {BOUND}"] * 2


def test_a_deferred_tool_may_come_and_go_until_it_is_loaded() -> None:
    """As a client does whose MCP server answers late: the tool was no part of the prompt."""
    late = {"name": "mcp__late__look", "input_schema": {"type": "object"}, "defer_loading": True}
    loading = result("a") | {"content": [{"type": "tool_reference", "tool_name": "mcp__late__look"}]}
    script: list[Answer] = [[thinking("One."), call("a", "ToolSearch")], [thinking("Two."), call("b", "Bash")]]
    with Upstream(script, strict=True, bound=True) as upstream:
        messages = [GO, {"role": "assistant", "content": told(upstream, body(GO))["content"]}]
        messages.append({"role": "user", "content": [loading]})
        tools = [*body()["tools"], late]
        messages.append({"role": "assistant", "content": told(upstream, body(*messages, tools=tools))["content"]})
        messages.append({"role": "user", "content": [result("b")]})
        told(upstream, body(*messages, tools=[late, *body()["tools"]]))
        assert upstream.refusals == []
        other = [*body()["tools"], late | {"description": "another"}]
        assert refusal(upstream, body(*messages, tools=other)) == f"messages.3.content.0: {BOUND}"


def test_thinking_that_was_made_over_a_changed_prefix_is_accepted_with_it() -> None:
    """A cut from its first request on: what is answered behind it is bound to the cut history."""
    with Upstream([*SCRIPT, [thinking("Anew."), call("d", "Bash")]], strict=True, bound=True) as upstream:
        whole = talk(upstream)
        cut = [GO, {"role": "assistant", "content": [text("So."), text("Done.")]}, whole["messages"][-1]]
        last = {"role": "assistant", "content": told(upstream, body(*cut))["content"]}
        behind = [last, {"role": "user", "content": [result("d")]}]
        told(upstream, body(*cut, *behind))
        assert refusal(upstream, body(*whole["messages"], *behind)) == f"messages.7.content.0: {BOUND}"
    assert len(upstream.refusals) == 1


def test_a_session_is_held_to_its_conversation_by_another_upstream_too() -> None:
    with Upstream(SCRIPT, bound=True) as upstream:
        sent = talk(upstream)
    with Upstream(bound=True) as other:
        told(other, sent)
        assert refusal(other, change("a result", sent)).endswith(BOUND)


@pytest.mark.parametrize("model", ("claude-opus-4-7", "claude-opus-5-5"))
def test_words_and_signatures_are_held_to_on_every_model(model: str) -> None:
    with Upstream(SCRIPT, bound=True) as upstream:
        sent = talk(upstream, model)
        for member, value in (("thinking", "Other."), ("signature", "c2lnbmF0dXJl"), ("signature", "no base64")):
            changed = copied(sent)
            changed["messages"][1]["content"][0][member] = value
            assert refusal(upstream, changed) == "messages.1.content.0: Invalid `signature` in `thinking` block"


def test_the_open_turn_is_held_to_its_runs_and_their_calls() -> None:
    """On models that bind no prefix: a run may leave whole; in part, or without its answer's calls, it is refused."""
    with Upstream(SCRIPT, strict=True, bound=True) as upstream:
        closed = talk(upstream, "claude-opus-4-7")
        turn = closed | {"messages": closed["messages"][:5]}
        part, whole, sibling = copied(turn), copied(turn), copied(turn)
        del part["messages"][3]["content"][0]
        del whole["messages"][3]["content"][:2]
        del sibling["messages"][1]["content"][4], sibling["messages"][2]["content"][1]
        told(upstream, turn)
        told(upstream, whole)
        assert refusal(upstream, part) == refusal(upstream, sibling) == MODIFIED
        for changed in (part, sibling):
            told(upstream, closed | {"messages": [*changed["messages"], *closed["messages"][5:]]})


# ------------------------------------------------------------------------------------------- how it answers


def test_an_error_stands_in_for_one_answer() -> None:
    with Upstream([failure(429, retry_after_s=7), failure(529), failure(400, "no"), [text("at last")]]) as upstream:
        said = [post(upstream, body(GO)) for _ in range(3)]
        assert told(upstream, body(GO))["content"] == [text("at last")]
    assert [(status, headers["retry-after"]) for status, headers, _ in said] == [(429, "7"), (529, None), (400, None)]
    assert [json.loads(found)["error"] for _, _, found in said] == [
        {"type": "rate_limit_error", "message": "rate_limit_error"},
        {"type": "overloaded_error", "message": "overloaded_error"},
        {"type": "invalid_request_error", "message": "no"},
    ]
    assert upstream.refusals == [], "what the script says is no refusal"


def test_a_streamed_answer_holds_what_a_whole_one_does() -> None:
    answer = [narration("I look."), text("So."), call("a", "Bash", command="ls")]
    with Upstream(lambda _: answer) as upstream:
        whole = told(upstream, body(GO))
        status, headers, said = post(upstream, body(GO, stream=True))
    assert (status, headers["content-type"], headers["content-length"]) == (200, "text/event-stream", None)
    found = of(said)
    assert [event["type"] for event in found if not event["type"].startswith("content_block")] == [
        "message_start",
        "message_delta",
        "message_stop",
    ]
    deltas = [event["delta"] for event in found if event["type"] == "content_block_delta"]
    assert deltas == [
        {"type": "thinking_delta", "thinking": "I look."},
        {"type": "signature_delta", "signature": whole["content"][0]["signature"]},
        {"type": "text_delta", "text": "So."},
        {"type": "input_json_delta", "partial_json": '{"command": "ls"}'},
    ]
    assert found[-2]["delta"]["stop_reason"] == whole["stop_reason"] == "tool_use"


@pytest.mark.parametrize("stream", (False, True))
def test_gzip_is_sent_where_it_is_asked_for_and_taken(stream: bool) -> None:
    with Upstream(lambda _: Reply([text("ü" * 100)], compressed=True)) as upstream:
        _, plain, one = post(upstream, body(GO, stream=stream))
        _, packed, two = post(upstream, body(GO, stream=stream), **{"accept-encoding": "gzip, br"})
    assert (plain["content-encoding"], packed["content-encoding"]) == (None, "gzip")
    assert len(two) < len(one) and b"msg_scripted0002" in gzip.decompress(two)
    assert "ü" * 100 in json.dumps(of(gzip.decompress(two)) if stream else json.loads(one), ensure_ascii=False)


def test_events_come_one_by_one_with_the_pause_between_them() -> None:
    with Upstream([Reply([text("slow")], pause_s=0.1)]) as upstream, opened(upstream) as connection:
        connection.request("POST", "/v1/messages", json.dumps(body(GO, stream=True)))
        begun = time.monotonic()
        response = connection.getresponse()
        times = [time.monotonic() - begun]
        while response.readline():
            times.append(time.monotonic() - begun)
    assert times[0] >= 0.05 and times[-1] >= 0.6, "six events, and the head before them"
    assert times[-1] - times[1] > 0.1, "they do not come in one piece"
    assert upstream.aborted == 0


@pytest.mark.parametrize(("stream", "begun"), ((False, False), (True, False), (True, True)))
def test_a_client_that_goes_away_ends_the_answer(stream: bool, begun: bool) -> None:
    with Upstream([Reply([text("slow")], pause_s=0.1 if begun else 60)]) as upstream:
        with opened(upstream) as connection:
            connection.request("POST", "/v1/messages", json.dumps(body(GO, stream=stream)))
            if begun:
                response = connection.getresponse()
                assert response.readline() == b"event: message_start\n"
                response.close()
            else:
                assert until(lambda: len(upstream.requests) == 1)
        assert until(lambda: upstream.aborted == 1)
        assert told(upstream, body(GO))["content"] == [text("ok")], "the next request is answered"


def test_leaving_does_not_wait_for_an_answer_that_is_not_over() -> None:
    begun = time.monotonic()
    with Upstream([Reply([text("slow")], pause_s=60)]) as upstream, opened(upstream) as connection:
        connection.request("POST", "/v1/messages", json.dumps(body(GO)))
        assert until(lambda: len(upstream.requests) == 1)
    assert time.monotonic() - begun < 5


@pytest.mark.parametrize("chunked", (False, True))
def test_a_body_is_read_whole_before_it_is_answered(chunked: bool) -> None:
    raw = json.dumps(body(GO)).encode()
    length = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {len(raw)}"
    head = f"POST /v1/messages HTTP/1.1\r\nHost: x\r\n{length}\r\nConnection: close\r\n\r\n".encode()
    pieces = [raw[:20], raw[20:]]
    if chunked:
        pieces = [b"%x;a=b\r\n%b\r\n" % (len(piece), piece) for piece in pieces] + [b"0\r\nX: y\r\n\r\n"]
    with Upstream() as upstream:
        address = ("127.0.0.1", int(upstream.url.rpartition(":")[2]))
        with socket.create_connection(address, timeout=5) as client:
            for piece in (head, *pieces):
                client.sendall(piece)
                if piece is not pieces[-1]:
                    client.settimeout(0.05)
                    with pytest.raises(TimeoutError):
                        client.recv(1)
            client.settimeout(5)
            answer = b"".join(iter(lambda: client.recv(65536), b""))
        assert answer.startswith(b"HTTP/1.1 200 ") and upstream.requests[0].raw == raw
        with socket.create_connection(address, timeout=5) as client:
            client.sendall(head + pieces[0])
        assert until(lambda: upstream.aborted == 1), "half a request is none"
    assert len(upstream.requests) == 1


# ------------------------------------------------------------------------------------------------ what it counts


def usage(upstream: Upstream, sent: Body) -> tuple[int, int, int]:
    """Tokens that were read from the cache, written to it, and neither."""
    found = told(upstream, sent)["usage"]
    return found["cache_read_input_tokens"], found["cache_creation_input_tokens"], found["input_tokens"]


def marked(*words: str) -> list[Body]:
    """A human's messages of some 1,000 tokens each, the last with a cache mark on it."""
    texts = [text(word * 4000) for word in words]
    return [{"role": "user", "content": [block]} for block in [*texts[:-1], {**texts[-1], "cache_control": MARK}]]


def test_what_was_sent_before_is_read_from_the_cache_and_the_rest_is_written() -> None:
    with Upstream() as upstream:
        sizes = [usage(upstream, body(*messages)) for messages in (marked("a"), marked("a", "b"), marked("a", "b"))]
        cut = usage(upstream, body(*marked("a", "c")))
        other = usage(upstream, body(*marked("a", "b"), model="claude-fable-5-2"))
        behind = usage(upstream, body(*marked("a", "b"), {"role": "user", "content": "d" * 4000}))
        unmarked = usage(upstream, body({"role": "user", "content": "a" * 4000}))
        automatic = usage(upstream, body(GO, cache_control=MARK))
    for (read, written, rest), wanted in zip(
        (*sizes, cut, other, behind, unmarked, automatic),
        ((0, 1, 0), (1, 1, 0), (2, 0, 0), (1, 1, 0), (0, 2, 0), (2, 0, 1), (0, 0, 1), (0, 0, 0)),
    ):
        assert [round(tokens / 1000) for tokens in (read, written, rest)] == list(wanted)
    assert automatic[0] > 0, "tools and system stand before the human's words"
    assert sum(sizes[1]) == len(upstream.requests[1].raw) // 4


def test_a_streamed_answer_tells_its_usage_at_both_ends() -> None:
    with Upstream([[text("x" * 400)]]) as upstream:
        found = of(post(upstream, body(*marked("a"), stream=True))[2])
    start, end = found[0]["message"]["usage"], found[-2]["usage"]
    assert start == end | {"output_tokens": 1}
    assert 100 <= end["output_tokens"] < 120 and end["cache_creation_input_tokens"] > 1000


def test_a_number_that_is_set_stands_for_what_is_counted() -> None:
    with Upstream(input_tokens=7) as upstream:
        assert usage(upstream, body(*marked("a"))) == (0, 0, 7)
        upstream.input_tokens = 150_000
        assert usage(upstream, body(*marked("a"))) == (0, 0, 150_000)


def test_tokens_are_counted_by_size() -> None:
    with Upstream(strict=True) as upstream:
        sent = body(*marked("a", "b"))
        status, _, said = post(upstream, sent, "/v1/messages/count_tokens?beta=true")
        assert (status, json.loads(said)) == (200, {"input_tokens": len(json.dumps(sent)) // 4})
    assert upstream.conversation == []
