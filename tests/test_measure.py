"""The wire report: figures that a reader can add up and check by hand."""

import json

import pytest

import cutline
from conftest import claude_code_files
from cutline import measure
from cutline.measure import ROWS, calibrate, weights
from cutline.wire import anthropic as wire


def pack(messages: list, **members) -> bytes:
    return json.dumps({**members, "messages": messages}, ensure_ascii=False, separators=(",", ":")).encode()


def call(id: str, name: str = "Bash", **arguments) -> dict:
    return {"type": "tool_use", "id": id, "name": name, "input": arguments}


def result(id: str, content="ok") -> dict:
    return {"type": "tool_result", "tool_use_id": id, "content": content}


BODY = pack(
    [
        {"role": "user", "content": "Grüß die Welt."},
        {"role": "user", "content": [{"type": "text", "text": "<system-reminder>be brief</system-reminder>"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
                {"type": "text", "text": "Looking, because 3 fail."},
                call("a", command="ls"),
                call("b", "mcp__cutline__say", text="Three of them fail."),
            ],
        },
        {"role": "user", "content": [result("a", "x" * 500), result("b")]},
        {"role": "assistant", "content": [{"type": "text", "text": "Found it."}, call("c", "micro_handoff", done="x")]},
        {"role": "user", "content": [result("c", "Stored.")]},
    ],
    system="You are an agent.",
    tools=[{"name": "Bash"}, {"name": "micro_handoff"}],
)


def test_the_rows_add_up_to_the_body_and_words_are_counted_inside_their_quotes():
    shape = measure(BODY).before
    assert list(shape.rows) == list(ROWS)
    assert sum(row.bytes for row in shape.rows.values()) == shape.bytes == len(BODY)
    assert shape.rows["human text"].bytes == len("Grüß die Welt.".encode())
    assert shape.rows["harness text"].blocks == 1
    assert shape.rows["agent text"].blocks == 3, "a say call is the agent's words"
    assert shape.said["agent"] == len("Looking, because 3 fail.") + len("Found it.") + len("Three of them fail.")
    assert shape.rows["tool calls"].blocks == 2 and shape.rows["tool results"].blocks == 3
    assert shape.rows["system prompt"].bytes == len('"You are an agent."')
    assert shape.rows["tool schemas"].blocks == 2


def test_authored_text_is_kept_to_the_byte_and_what_was_added_stands_apart():
    done = cutline.cut(BODY)
    kept = measure(BODY, done.body).kept
    assert kept.missing == 0 and kept.share == 1.0
    assert kept.notices == sum(notice.end - notice.start for notice in done.notices) > 0
    lost = done.body.replace(b"Found it.", b"Found.")
    worse = measure(BODY, lost).kept
    assert worse.missing == len("Found it.") and worse.share < 1.0


def test_joiners_are_counted_on_a_line_of_their_own():
    messages = [{"role": "user", "content": "Go."}]
    for number in range(3):
        messages += [
            {
                "role": "assistant",
                "content": [{"type": "text", "text": f"Step {number}."}, call(str(number), command="ls")],
            },
            {"role": "user", "content": [result(str(number), "y" * 99)]},
        ]
    messages += [
        {"role": "assistant", "content": [call("ck", "micro_handoff", done="x")]},
        {"role": "user", "content": [result("ck")]},
    ]
    source = pack(messages)
    assert measure(source, cutline.cut(source).body).kept.joiners == 2 * len(r"\n\n")
    assert measure(source, cutline.cut(source, join="").body).kept.joiners == 0


def test_tokens_say_where_they_come_from():
    assert measure(BODY).before.source == "estimated"
    assert measure(BODY, tokens=321).before.tokens == 321
    assert measure(BODY, tokens=321).before.source == "measured"
    fit = calibrate([(1_000 * n, 5_000 + 300 * n) for n in range(1, 9)])
    assert fit.source == "calibrated" and fit.harness == 5_000 and fit.per_byte == pytest.approx(0.3)
    told = measure(BODY, cutline.cut(BODY).body, tokens=5_400, calibration=fit)
    assert told.after.source == "calibrated" and 5_000 <= told.after.tokens <= 5_400


def test_a_fit_that_can_not_be_is_not_used():
    assert calibrate([]).source == "estimated"
    assert calibrate([(100, 90_000), (200, 80_000), (300, 70_000), (400, 60_000)]).source == "estimated"
    assert calibrate([(5, 10)] * 9).source == "estimated"


def test_signatures_and_image_data_are_bytes_and_no_tokens():
    plain = pack([{"role": "user", "content": "x" * 1_000}])
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 400_000}}
    pictured = pack([{"role": "user", "content": [{"type": "text", "text": "x" * 1_000}, image]}])
    before, after = measure(plain).before, measure(pictured).before
    assert after.bytes - before.bytes > 400_000
    assert after.tokens - before.tokens < 2_000
    assert weights(wire.read(pictured))[-1] < 1_500


@pytest.mark.skipif(not claude_code_files(), reason="../shared/data is not on this machine")
def test_recorded_sessions_keep_every_authored_byte():
    from cutline.errors import CutlineError
    from cutline.sessions.claude_code import open_session
    from cutline.sessions.cutting import prospect

    seen = 0
    for path in claude_code_files():
        if path.stat().st_size > 2_000_000:
            continue
        try:
            found = prospect(open_session(path))
        except CutlineError:
            continue
        seen += 1
        assert found.report.kept.missing == 0, path.name
        # In a session of a few lines the notice can weigh more than what left: then the cut does not pay.
        assert found.report.after.tokens <= found.report.before.tokens or not found.pays
    assert seen > 15
