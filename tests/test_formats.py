"""Chat Completions, Responses, Gemini and Converse: the contract's rules on generated and recorded bodies.

Every cut is proven, and run through the validator of its format, which was written from the providers' rules.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import abroad
import wire_bodies
from cutline import CutError, cut, spans, verify
from cutline.errors import Unreadable
from cutline.wire import formats
from cutline.wire.anthropic import reading
from cutline.wire.shapes import PLAIN, STRING, shape
from validators import converse, gemini, openai_chat, openai_responses

FORMATS = tuple(abroad.FORMATS)
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "join": st.sampled_from(("\n\n", "", None)),
        "notice": st.booleans(),
        "trace": st.sampled_from(("holes", "none", "all")),
        "keep_tools": st.sampled_from(((), ("Bash",), ("Read", "Grep"))),
    },
)


def faults(format: str, body: bytes, *, strict: bool = False) -> list[str]:
    """What the format's provider would say."""
    if format == "openai_chat":
        return openai_chat.faults(body, strict=strict)
    if format == "openai_responses":
        return openai_responses.faults(body)
    return gemini.faults(body) if format == "gemini" else converse.faults(body)


def holds(format: str, body: bytes, options: dict[str, Any]) -> None:
    """Every rule, on one body and its cut."""
    done = cut(body, **options)
    proof = verify(body, done.body, **options)
    assert proof.unchanged != done.changed
    if not done.changed:
        assert done.body is body and done.reason
        return
    if not faults(format, body):
        assert faults(format, done.body) == []
    plain = cut(body, **{**options, "notice": False, "join": None, "narration": "drop"})
    before, after = abroad.said(format, body), abroad.said(format, plain.body)
    assert before == after, "a word changed, left, or stands in another order"
    assert cut(done.body, **options).changed is False, "a cut body is cut again"
    without = done.body
    for notice in reversed(done.notices):
        assert b"[cutline]" in without[notice.start : notice.end]
        without = without[: notice.start] + without[notice.end :]
    if not any(b"null" in body or b'"content":[]' in body or b'"cutline_notice"' in done.body for _ in (0,)):
        assert without == cut(body, **{**options, "notice": False}).body
    kept = options.get("keep_tools", ())
    left = abroad.calls(format, plain.body)
    assert any(name.endswith("micro_handoff") for name in left)
    assert len(left) <= len(abroad.calls(format, body)) and kept is not None


@pytest.mark.parametrize("format", FORMATS)
@settings(max_examples=12)
@given(data=st.data(), options=OPTIONS)
def test_a_generated_history_is_cut_by_the_rules(format: str, data: Any, options: dict[str, Any]) -> None:
    holds(format, data.draw(abroad.bodies(format)), options)


@pytest.mark.parametrize("format", FORMATS)
@settings(max_examples=10)
@given(data=st.data(), at=st.sampled_from(("end", "last", 0, 3, "human:1")))
def test_a_cut_at_a_place_is_proven(format: str, data: Any, at: int | str) -> None:
    body = data.draw(abroad.bodies(format) | abroad.bodies(format, checkpoints=False))
    done = cut(body, at=at)
    assert verify(body, done.body, at=at).unchanged != done.changed
    if done.changed and not faults(format, body):
        # A late cut can't know which thinking the open turn would have to begin with.
        assert all("must start with a thinking block" in fault for fault in faults(format, done.body))


@pytest.mark.parametrize("format", FORMATS)
@settings(max_examples=8)
@given(data=st.data())
def test_what_was_sent_before_the_last_seam_stays_the_same_as_a_history_grows(format: str, data: Any) -> None:
    sent = [(body, cut(body)) for body in data.draw(abroad.growing(format))]
    for (body, one), (_, two) in pairwise(sent):
        if one.changed and two.changed:
            assert one.native is not None and one.seam is not None
            before, after = _items(one.body), _items(two.body)
            behind = len(_items(body)) - one.native.places[one.seam.message][0].item
            assert after[: len(before) - behind] == before[: len(before) - behind]


def _items(body: bytes) -> list[Any]:
    whole = json.loads(body)
    return _unmarked(whole.get("messages") or whole.get("input") or whole["contents"])


def _unmarked(value: Any) -> Any:
    if isinstance(value, list):
        return [_unmarked(one) for one in value if not (isinstance(one, dict) and "cachePoint" in one)]
    return {key: _unmarked(one) for key, one in value.items()} if isinstance(value, dict) else value


@settings(max_examples=12)
@given(data=st.data())
def test_a_strict_server_never_hears_two_assistants_in_a_row(data: Any) -> None:
    body = data.draw(abroad.bodies("openai_chat"))
    done = cut(body, profile="strict")
    verify(body, done.body, profile="strict")
    roles = [message["role"] for message in json.loads(body)["messages"]]
    if "system" in roles[1:] or "developer" in roles[1:]:
        return  # nothing is folded across the harness's words
    if done.changed and not faults("openai_chat", body, strict=True):
        assert faults("openai_chat", done.body, strict=True) == []


# ------------------------------------------------------------------------------------------- the usual shapes


def _read_both_ways(body: bytes) -> None:
    """What the patterns for the usual shapes read is what the whole reader reads."""
    found = formats.read(body)
    with contextlib.ExitStack() as stack:
        for name in formats.NAMES:
            stack.enter_context(mock.patch.object(formats.format_of(name), "usual", lambda view, at: None))
        assert formats.read(body) == found


@pytest.mark.parametrize("format", FORMATS)
@settings(max_examples=15)
@given(data=st.data())
def test_an_item_of_a_usual_shape_is_read_as_any_other(format: str, data: Any) -> None:
    _read_both_ways(data.draw(abroad.bodies(format)))


@pytest.mark.skipif(not wire_bodies.SESSIONS.is_dir(), reason=wire_bodies.MISSING)
def test_recorded_items_of_usual_shapes_are_read_as_any_others() -> None:
    for _, format, body in wire_bodies.recorded():
        if format in FORMATS:
            with contextlib.suppress(Unreadable):
                _read_both_ways(body)


def test_a_shape_has_its_members_each_once_in_any_order() -> None:
    match = shape({"role": '"tool"', "content": STRING, "name?": PLAIN, "of": {"id": PLAIN}})
    found = match('{"of":{"id":"a"}, "content": "x\\\\", "role":"tool"},', 0)
    assert found and (found["of_id"], found["content"], found["name"]) == ('"a"', '"x\\\\"', None)
    for other in (
        '{"content":"x","role":"tool"}',
        '{"role":"tool","content":"x","of":{"id":"a"},"more":1}',
        '{"role":"tool","content":"x","of":{"id":"a"},"role":"tool"}',
        '{"role":"tool","content":"x","of":{"id":"a"},}',
        '{"role":"tool","content":"\t","of":{"id":"a"}}',
        '{"role":"tool","content":"\\x","of":{"id":"a"}}',
        '{"role":"tool","content":"x","of":{"id":""}}',
    ):
        assert match(other, 0) is None, other


@pytest.mark.parametrize(
    "text", [*reading.REFUSALS, *reading.STUBS, reading.QUEUED + "</system-reminder>", "plain", ""]
)
def test_what_a_result_says_of_itself_is_seen_in_any_spelling(text: str) -> None:
    whole = text + " and more" * (not text.endswith(">"))
    spelled = (json.dumps(whole), json.dumps(whole, ensure_ascii=False), "".join(f"\\u{ord(one):04x}" for one in whole))
    for literal in (*spelled[:2], f'"{spelled[2]}"'):
        view = f"[{literal}]".encode().decode("latin-1")
        says = reading.of_content(spans.scan(view, 1)[0])
        assert reading.of_literal(view, 1, len(view) - 1) == says
        assert bool(says) == (text not in ("plain", ""))


def test_a_step_of_gemini_keeps_its_signature_with_the_call_that_stays() -> None:
    """Parallel calls, of which the first alone is signed, and the second is what stays."""

    def step(*calls: tuple[str, str], signed: str = "U0lH") -> list[Any]:
        asked: list[Any] = [{"functionCall": {"name": name, "args": {"of": of}}} for name, of in calls]
        asked[0]["thoughtSignature"] = signed
        told = [{"functionResponse": {"name": name, "response": {"output": of * 300}}} for name, of in calls]
        return [{"role": "model", "parts": asked}, {"role": "user", "parts": told}]

    history = [
        {"role": "user", "parts": [{"text": "Find it."}]},
        *step(("read_file", "a"), ("say", "b")),
        *step(("read_file", "c"), ("micro_handoff", "d")),
        *step(("read_file", "e"), ("read_file", "f")),
        *step(("micro_handoff", "g")),
    ]
    body = json.dumps({"contents": history}).encode()
    holds("gemini", body, {})
    assert abroad.calls("gemini", cut(body).body) == [
        *("read_file", "say", "read_file", "micro_handoff", "micro_handoff")
    ]


@pytest.mark.parametrize("format", FORMATS)
def test_more_bytes_behind_a_body_are_a_doubt(format: str) -> None:
    body = _small(format) + b" x"
    done = cut(body)
    assert done.body is body and "more bytes" in done.reason
    assert verify(body, body).unchanged


# -------------------------------------------------------------------------------------------- recorded bodies


@pytest.mark.skipif(not wire_bodies.SESSIONS.is_dir(), reason=wire_bodies.MISSING)
@pytest.mark.parametrize("format", FORMATS)
def test_recorded_bodies_are_cut_at_many_places_and_proven(format: str) -> None:
    key = {"openai_responses": "input", "gemini": "contents"}.get(format, "messages")
    changed = 0
    for name, found, body in wire_bodies.recorded():
        if found != format:
            continue
        history = json.loads(body).get(key)
        count = len(history) if isinstance(history, list) else 0
        for at in (*range(0, count + 1, max(1, count // 6)), "end", "last"):
            done = cut(body, at=at)
            assert verify(body, done.body, at=at).unchanged != done.changed, (name, at)
            changed += done.changed
            if done.changed:
                assert faults(format, done.body) == [], (name, at)
                assert not done.kept_unknown, (name, at)
    assert changed, "none of them had anything to cut"


@pytest.mark.slow
@pytest.mark.parametrize("format", FORMATS)
@settings(max_examples=2_000)
@given(data=st.data(), options=OPTIONS)
def test_thousands_of_generated_histories(format: str, data: Any, options: dict[str, Any]) -> None:
    holds(format, data.draw(abroad.bodies(format)), options)


# --------------------------------------------------------------------------------------------------- mutants


def _mutants(format: str, body: bytes, done: bytes) -> Iterator[tuple[str, bytes]]:
    """Outputs that break one rule each."""
    yield "nothing was cut", body
    whole = json.loads(done)
    key = {"openai_responses": "input", "gemini": "contents"}.get(format, "messages")
    items = whole[key]

    def told(changed: list[Any]) -> bytes:
        return json.dumps({**whole, key: changed}, ensure_ascii=False, separators=(",", ":")).encode()

    first = next(number for number, item in enumerate(items) if "Look here" in json.dumps(item))
    yield "a message left", told(items[:first] + items[first + 1 :])
    yield "two messages changed places", told([items[1], items[0], *items[2:]])
    yield "a message twice", told([*items[: first + 1], items[first], *items[first + 1 :]])
    yield "words changed", done.replace(b"Look here", b"Look there", 1)
    yield "words in the agent's mouth", done.replace(b"I look because", b"I know, and look because", 1)
    yield "a wrong figure in the notice", done.replace(b" calls,", b" calls and one,", 1)
    yield "the notice is missing", cut(body, notice=False).body
    yield "the model changed", done.replace(b"some-model", b"other-model", 1)
    yield "a member of the checkpoint changed", done.replace(b"all is well", b"all is swell", 1)


def _small(format: str) -> bytes:
    """A history in which each mutant has something to break."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Look here."}]
    for number in range(2):
        call = {"type": "tool_use", "id": f"c{number}", "name": "Bash", "input": {"command": f"ls {number}"}}
        said = {"type": "text", "text": f"I look because of {number}."}
        result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": f"{number} files"}
        messages += [{"role": "assistant", "content": [said, call]}, {"role": "user", "content": [result]}]
    document = {"done": "all is well", "open": "nothing", "went_wrong": "nothing"}
    call = {"type": "tool_use", "id": "h1", "name": "mcp__cutline__micro_handoff", "input": document}
    stored = {"type": "tool_result", "tool_use_id": "h1", "content": "Checkpoint stored."}
    messages += [
        {"role": "assistant", "content": [{"type": "text", "text": "Checkpoint."}, call]},
        {"role": "user", "content": [stored]},
        {"role": "user", "content": "Go on."},
    ]
    body = abroad.FORMATS[format](abroad.History(messages, {}, abroad.Style()), 5)
    body["model" if format != "converse" else "modelId"] = "some-model"
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


@pytest.mark.parametrize("format", FORMATS)
def test_the_proof_rejects_what_breaks_a_rule(format: str) -> None:
    body = _small(format)
    done = cut(body)
    assert done.changed and not verify(body, done.body).unchanged
    tried = 0
    for what, mutant in _mutants(format, body, done.body):
        if mutant == done.body:
            continue  # this format has nothing of the kind
        tried += 1
        with pytest.raises(CutError):
            verify(body, mutant)
            pytest.fail(f"not rejected: {what}")
    assert tried >= 9


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"input": [{"type": "item_reference", "id": "x"}], "model": "gpt-5.2"}, "held by the server"),
        ({"input": [{"role": "user", "content": "x"}], "previous_response_id": "r"}, "held by the server"),
        ({"input": "just words"}, "left as it is"),
        ({"messages": [{"role": "tool", "tool_call_id": "a", "content": [{"toolUse": {}}]}]}, "several wire formats"),
        ({"contents": [{"role": "wizard", "parts": [{"text": "x"}]}]}, "unknown role"),
    ],
)
def test_what_can_t_be_cut_says_why(body: dict[str, Any], says: str) -> None:
    raw = json.dumps(body).encode()
    done = cut(raw, at="end")
    assert done.body is raw and says in done.reason
    assert verify(raw, raw, at="end").unchanged
