"""Inputs that broke other tools, with the outcome that is right (../shared/bugs), in Anthropic's format.

Each case is read as its `.expect.md` words it; "the tail" is everything from the checkpoint's message on.
"""

import json
from pathlib import Path

import pytest

import cutline
from cutline import cut

BUGS = Path(__file__).resolve().parents[2] / "shared" / "bugs"
pytestmark = pytest.mark.skipif(not BUGS.is_dir(), reason="../shared/bugs is not on this machine")


def case(number: str) -> bytes:
    return next(BUGS.glob(f"{number}-*.json")).read_bytes()


def without_notices(result: cutline.Cut) -> bytes:
    body = result.body
    for notice in reversed(result.notices):
        body = body[: notice.start] + body[notice.end :]
    return body


def both(number: str) -> list[bytes]:
    """The cut body with the notices taken out again, and the body cut without notices: they must be equal."""
    body = case(number)
    with_notice, without = cut(body), cut(body, notice=False)
    assert with_notice.changed and without.changed
    assert with_notice.notices
    assert without_notices(with_notice) == without.body
    for again in (cut(with_notice.body), cut(without.body, notice=False)):
        assert not again.changed, "a second cut must find nothing"
    cutline.verify(body, with_notice.body)
    cutline.verify(body, without.body, notice=False)
    return [without.body]


def messages(body: bytes) -> list[dict]:
    return json.loads(body)["messages"]


def texts(body: bytes) -> list[tuple[str, str]]:
    """(role, text) of every text block."""
    found = []
    for message in messages(body):
        content = message["content"]
        if isinstance(content, str):
            found.append((message["role"], content))
        else:
            found += [(message["role"], block["text"]) for block in content if block["type"] == "text"]
    return found


def ids(body: bytes, kind: str, key: str) -> list[str]:
    return [
        block[key]
        for message in messages(body)
        if isinstance(message["content"], list)
        for block in message["content"]
        if block["type"] == kind
    ]


def tail(body: bytes, marker: bytes) -> bytes:
    """The bytes from the message that holds `marker` on."""
    at = body.index(marker)
    return body[body.rindex(b'"role"', 0, at) :]


def test_01_an_orphan_result_beside_human_words_goes_and_the_words_stay():
    (body,) = both("01")
    assert b"toolu_tideGONE" not in body
    assert ("user", "Use metres everywhere, never feet.") in texts(body)
    assert [text for _, text in texts(body)][:3] == [
        "Port the tide table parser from awk to Python.",
        "Starting with the header row, since the columns moved in 2019.",
        "Use metres everywhere, never feet.",
    ]
    assert ids(body, "tool_use", "id") == ids(body, "tool_result", "tool_use_id") == ["toolu_tideck"]
    assert tail(body, b"toolu_tideck") == tail(case("01"), b"toolu_tideck")
    assert sum(removed.why == "orphan result" for removed in cut(case("01")).removed) == 1


def test_02_an_interrupted_call_goes_without_an_invented_result():
    (body,) = both("02")
    assert b"toolu_kiln1" not in body and b"toolu_kiln2" not in body
    assert texts(body)[:4] == [
        ("user", "Why does the kiln controller overshoot at 600 C?"),
        ("assistant", "I suspect integral wind-up; dumping the PID log first."),
        ("user", "Stop, wrong log. The right one is pid-b.log."),
        ("assistant", "Switching to pid-b.log."),
    ]
    assert ids(body, "tool_use", "id") == ids(body, "tool_result", "tool_use_id") == ["toolu_kilnck"]
    assert tail(body, b"toolu_kilnck") == tail(case("02"), b"toolu_kilnck")
    # The agent's words on both sides of what left are never run together with the checkpoint turn's.
    assert texts(body)[4][1].startswith("Integral keeps growing")


def test_03_manual_thinking_of_the_turn_stays_first_and_whole():
    (body,) = both("03")
    for gone in (b"SIGpre1AAAA==", b"REDACTEDpreBBBB==", b"toolu_seed1", b"toolu_seed2"):
        assert gone not in body
    turn = messages(body)[1]["content"]
    assert [block["type"] for block in turn] == ["thinking", "text", "text", "thinking", "tool_use"]
    assert turn[1]["text"] == "Reading the indexer.\n\nnorm() only lowercases; I will fold accents with NFKD."
    separate = messages(cut(case("03"), join=None, notice=False).body)[1]["content"]
    assert [block["type"] for block in separate] == ["thinking", "text", "text", "text", "thinking", "tool_use"]
    source = case("03")
    for signature in (b"SIGckCCCC==", b"SIGckDDDD=="):
        start = source.rindex(b"{", 0, source.index(signature))
        block = source[start : source.index(b"}", start) + 1]
        assert block in body
    assert b"SIGpostEMPTYFFFF==" in body
    after = source.index(b'"role": "user"', source.index(b"toolu_seedck"))
    assert body.endswith(source[after:])


def test_04_nothing_empty_is_left_and_no_placeholder_is_put():
    (body,) = both("04")
    assert [message["role"] for message in messages(body)] == ["user", "assistant", "user", "user"]
    assert messages(body)[1]["content"][0]["text"] == "  The data was deleted in the last commit; restoring it.  \n"
    assert all(message["content"] for message in messages(body))
    assert [text for _, text in texts(body) if not text.strip()] == []
    assert sum(removed.why == "blank text" for removed in cut(case("04")).removed) == 2


def test_06_parallel_calls_leave_together_and_the_checkpoint_turn_stays_whole():
    (body,) = both("06")
    assert ids(body, "tool_use", "id") == ["toolu_cw4", "toolu_cwck", "toolu_cw5"]
    assert sorted(ids(body, "tool_result", "tool_use_id")) == ["toolu_cw4", "toolu_cw5", "toolu_cwck"]
    assert ("assistant", "Three looks at once.") in texts(body)
    assert ("user", "Skip the proper nouns, please.") in texts(body)
    assert tail(body, b"toolu_cw4") == tail(case("06"), b"toolu_cw4")


def test_08_a_failed_checkpoint_is_no_seam():
    (body,) = both("08")
    result = cut(case("08"))
    assert result.seam.id == "toolu_pockA" and result.seam.errored == 1
    assert b"toolu_po1" not in body
    assert tail(body, b"toolu_pockA") == tail(case("08"), b"toolu_pockA")


def test_10_broken_escapes_behind_the_seam_stay_as_they_are_and_those_before_it_heal():
    (body,) = both("10")
    source = case("10")
    assert b"toolu_nul1" not in body
    assert rb"I like \ud83d\udc0c and \u00e9." in body
    at = source.index(b'{"role": "assistant", "content": [{"type": "text", "text": "One name')
    assert body.endswith(source[at:])
    assert body.count(rb"\ud83d") == 2, "the human's snail, and the break behind the seam"
    body.decode("utf-8")


def test_11_nothing_that_is_kept_is_spelled_anew():
    (body,) = both("11")
    source = case("11")
    messages_at = source.index(b'"messages"')
    assert body.startswith(source[:messages_at])
    assert body.endswith(
        source[source.index(b'{"role":"assistant","content":[{"type":"tool_use","id":"toolu_sunck"') :]
    )
    assert rb'{"text":"Looking the row up; caf\u00e9 notes are in \u0022ISO\u0022 form.","type":"text"}' in body
    assert b'"content":[{"text":"Looking' in body and b'}],"role":"assistant"}' in body
    assert b"toolu_sun1" not in body
    json.loads(body)


@pytest.mark.parametrize("number", ("12", "14", "16", "17", "19", "20", "23", "25", "26", "27"))
def test_other_formats_come_back_untouched_with_the_reason(number: str):
    body = case(number)
    result = cut(body)
    assert result.body is body and not result.changed
    assert "left as it is" in result.reason


QUEUED = (
    "31 passed\n\n<system-reminder>\nThe user sent a new message while you were working:\nnever touch the fixtures\n\n"
    "Please address it.\n</system-reminder>"
)


@pytest.mark.parametrize("content", (QUEUED, [{"type": "text", "text": QUEUED}]))
def test_words_that_a_client_put_into_a_result_stay_with_it(content):
    """A client queues what a person types while the agent works, and appends it to the next result."""
    body = json.loads(case("06"))
    body["messages"][2]["content"][0]["content"] = content
    source = json.dumps(body).encode()
    done = cut(source)
    assert b"never touch the fixtures" in done.body
    assert b"toolu_cw3" in done.body and b"toolu_cw1" not in done.body
    cutline.verify(source, done.body)


def test_a_stub_is_filled_with_the_last_call_s_result_whatever_order_the_results_stand_in():
    """Two reads of one file in parallel, answered in the other order; the later read only points back."""
    read = {"type": "tool_use", "name": "Read", "input": {"file_path": "a.py"}}
    full = {"type": "tool_result", "tool_use_id": "r2", "content": "second"}
    stub = (
        "File unchanged since last read. The content from the earlier Read tool_result in this conversation is current"
    )
    messages = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": [{**read, "id": "r1"}, {**read, "id": "r2"}]},
        {"role": "user", "content": [full, {**full, "tool_use_id": "r1", "content": "first"}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "ck", "name": "micro_handoff", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "ck", "content": "Stored."}]},
        {"role": "assistant", "content": [{**read, "id": "r3"}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "r3", "content": stub}]},
    ]
    source = json.dumps({"messages": messages}).encode()
    done = cut(source)
    cutline.verify(source, done.body)
    assert json.loads(done.body)["messages"][-1]["content"][0]["content"].endswith(":\nsecond")
    assert [notice.kind for notice in done.notices] == ["notice", "fill"]
