"""The proxy on what it was not written with: requests, answers and sessions as they were recorded, with a seam put in.

A tool of the recording's own is given the checkpoint's name wherever it stands, so that seams come where no agent
would make one: in the first turn, among parallel calls, many in a row; and a call and a checkpoint are put behind the
whole. Read in place from ../shared; nothing is copied.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import wire_answers
import wire_bodies
from cutline import cut, record, verify
from cutline.errors import CutlineError
from cutline.proxy.observer import Observer, Place
from cutline.sessions.claude_code import open_session
from two_ends import Provider, Proxy, Seen, chunk, head

PATHS = {
    "anthropic": "/v1/messages",
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "gemini": "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse",
    "converse": "/model/amazon.nova-pro-v1%3A0/converse-stream",
}
JSON = ("Content-Type", "application/json")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not wire_bodies.SESSIONS.is_dir(), reason=wire_bodies.MISSING),
]


def called(value: Any) -> Iterator[str]:
    """Names of tools that are called, in any format."""
    if isinstance(value, list):
        for one in value:
            yield from called(one)
    elif isinstance(value, dict):
        name = value.get("name")
        if isinstance(name, str) and ("input" in value or "arguments" in value or "args" in value):
            yield name
        if isinstance(tool := value.get("toolUse"), dict):
            yield str(tool.get("name"))
        for one in value.values():
            yield from called(one)


def pair(format: str, name: str) -> list[Any]:
    """A call and its result."""
    id, result = f"call_{name}", "so it is " * 40
    if format == "anthropic":
        call: Any = {"type": "tool_use", "id": f"toolu_{name}", "name": name, "input": {"done": "all"}}
        told: Any = {"type": "tool_result", "tool_use_id": f"toolu_{name}", "content": result}
        return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [told]}]
    if format == "openai_chat":
        call = {"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}}
        told = {"role": "tool", "tool_call_id": id, "content": result}
        return [{"role": "assistant", "content": None, "tool_calls": [call]}, told]
    if format == "openai_responses":
        call = {"type": "function_call", "call_id": id, "name": name, "arguments": "{}"}
        return [call, {"type": "function_call_output", "call_id": id, "output": result}]
    if format == "gemini":
        call = {"functionCall": {"name": name, "args": {}}}
        told = {"functionResponse": {"name": name, "response": {"output": result}}}
        return [{"role": "model", "parts": [call]}, {"role": "user", "parts": [told]}]
    call = {"toolUse": {"toolUseId": id, "name": name, "input": {}}}
    told = {"toolResult": {"toolUseId": id, "content": [{"text": result}]}}
    return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [told]}]


def with_seams(format: str, body: bytes) -> Iterator[bytes]:
    """The body; it with each of its tools as the checkpoint; and with a call and a checkpoint behind."""
    yield body
    held = json.loads(body)
    key = {"openai_responses": "input", "gemini": "contents"}.get(format, "messages")
    if isinstance(items := held[key], list):
        more = [*items, *pair(format, "probe"), *pair(format, "micro_handoff")]
        yield json.dumps({**held, key: more}, ensure_ascii=False).encode("utf-8", "surrogatepass")
    for name in sorted(set(called(held))):
        literal = re.escape(json.dumps(name).encode())
        yield re.sub(rb'("name"\s*:\s*)' + literal, rb'\1"micro_handoff"', body)


@pytest.mark.parametrize("format", wire_bodies.FORMATS)
def test_recorded_requests_and_answers_pass_cut_or_as_they_came(format: str, tmp_path: Path):
    told = [one for one in wire_answers.recorded() if one.format == format and one.status == 200]
    assert told
    turn = 0

    def answers(seen: Seen) -> bytes:
        one = told[turn % len(told)]
        seen.send(head("200 OK", [("Content-Type", one.content_type), ("Transfer-Encoding", "chunked")]))
        size = 1 + turn % 977
        for at in range(0, min(len(one.body), 40 * size), size):
            seen.send(chunk(one.body[at : at + size]))
        rest = one.body[40 * size :]
        return (chunk(rest) if rest else b"") + b"0\r\n\r\n"

    writer = record.Writer(tmp_path / "record.db")
    observer = Observer(Place("recorded", "/p", None), writer)
    sent: list[bytes] = []
    changed = 0
    with Provider(answers) as provider, Proxy(provider.url, passed=observer.passed) as proxy:
        for whole in {one.body: None for one in wire_bodies.requests() if one.format == format}:
            for body in with_seams(format, whole):
                session = [JSON, ("x-session-id", f"s{turn}")]
                got = proxy.ask("POST", PATHS[format], body, session)
                assert (got.status, got.body) == (200, told[turn % len(told)].body)
                reached = bytes(provider.seen[-1].body)
                assert reached == cut(body).body and verify(body, reached).unchanged == (reached == body)
                sent.append(body)
                changed += reached != body
                turn += 1
        assert len(provider.seen) == turn, "each is asked for once"
    observer.close(60)
    assert writer.close(60) and not writer.fault
    assert not observer.faults and not any(one.faults for one in observer.accounts.values())
    assert changed > turn // 4, f"of {turn} only {changed} were cut"
    with record.Record(tmp_path / "record.db", readonly=True) as held:
        assert held.faults() == []
        for number, body in enumerate(sent):
            rows = held.requests(f"s{number}")
            assert [held.body(row.id) for row in rows] == [body], number


def grown(path: Path, steps: int) -> list[bytes]:
    """The requests of a recorded session at some of its turns, each tool once the checkpoint."""
    messages = json.loads(open_session(path).history.body)["messages"]
    ends = [
        number
        for number in range(1, len(messages))
        if messages[number - 1]["role"] != "assistant" and messages[number]["role"] == "assistant"
    ]
    names = sorted(set(called(messages)))
    told = []
    for end in ends[:: max(1, len(ends) // steps)]:
        whole = json.dumps({"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": messages[:end]}).encode()
        rarest = min(names, key=lambda name: (whole.count(f'"name": {json.dumps(name)}'.encode()) or 1 << 30, name))
        told.append(whole.replace(f'"name": {json.dumps(rarest)}'.encode(), b'"name": "mcp__cutline__micro_handoff"'))
    return told


def test_recorded_sessions_pass_through_one_proxy_turn_about(tmp_path: Path):
    """Several at once through one memory of cuts; each request is what a cut that remembers nothing gives."""
    sessions: list[list[bytes]] = []
    for path in sorted((wire_bodies.SESSIONS / "claude-code").glob("*.jsonl")):
        with contextlib.suppress(CutlineError, ValueError):  # what is no whole session, or has no call
            bodies = grown(path, 6)
            if bodies and len(bodies[-1]) > 50_000:
                sessions.append(bodies)
    writer = record.Writer(tmp_path / "record.db")
    observer = Observer(Place("claude", "/p", None), writer)
    changed = asked = 0
    with Provider() as provider, Proxy(provider.url, passed=observer.passed) as proxy:
        for step in range(max(map(len, sessions))):
            for number, bodies in enumerate(sessions):
                if step < len(bodies):
                    headers = [JSON, ("X-Claude-Code-Session-Id", f"s{number}")]
                    assert proxy.ask("POST", "/v1/messages?beta=true", bodies[step], headers).status == 200
                    reached = bytes(provider.seen[-1].body)
                    assert reached == cut(bodies[step]).body, (number, step)
                    changed += reached != bodies[step]
                    asked += 1
    observer.close(60)
    assert writer.close(120) and not writer.fault
    assert not observer.faults and changed > asked // 3
    with record.Record(tmp_path / "record.db", readonly=True) as held:
        assert held.faults() == []
        for number, bodies in enumerate(sessions):
            assert [held.body(row.id) for row in held.requests(f"s{number}")] == bodies, number
