"""Inputs that broke other tools, with the outcome that is right (../shared/bugs).

Each case is read as its `.expect.md` words it; "the tail" is everything from the checkpoint's message on.
"""

import json
from pathlib import Path
from typing import Any

import pytest

import cutline
from cutline import cut, verify

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


# ------------------------------------------------------------------------------------------- other formats


def cut_both_ways(number: str) -> tuple[list[Any], list[Any]]:
    """The history that is left, and the one that came; with and without the notice, proven."""
    body = case(number)
    left: list[list[Any]] = []
    for notice in (True, False):
        done = cut(body, notice=notice)
        assert done.changed and not verify(body, done.body, notice=notice).unchanged
        left.append(history(done.body))
    assert len(left[0]) == len(left[1])
    return left[1], history(body)


def history(body: bytes) -> list[Any]:
    whole = json.loads(body)
    return next(whole[key] for key in ("messages", "input", "contents") if key in whole)


def test_12_a_chat_message_of_nothing_but_calls_leaves_whole():
    left, came = cut_both_ways("12")
    assert len(left) == 7 and left[4:] == came[-3:]
    assert [message["role"] for message in left[:4]] == ["system", "developer", "user", "assistant"]
    assert left[3] == {
        "role": "assistant",
        "content": "The rota file is empty on disk; asking git for an older copy.",
    }


@pytest.mark.parametrize("spelling", ["reasoning_content", "reasoning", "reasoning_details"])
def test_14_reasoning_leaves_before_the_seam_and_stays_behind_it(spelling: str):
    body = case("14").replace(b'"reasoning_content"', b'"%s"' % spelling.encode())
    done = cut(body)
    assert not verify(body, done.body).unchanged
    for gone in (b"I should read the page.", b"31/12 = 3 pages", b"answer briefly", b"call_00_f1", b"call_00_f2"):
        assert gone not in done.body.split(b"[cutline]")[0]
    left = history(cut(body, notice=False).body)
    assert left[-4:] == history(body)[-4:]
    assert [message.get("content") for message in left[1:4]] == [
        "Make the ferry timetable printable.",
        "The table has 31 columns; a landscape page fits 12.\n\nThree pages then.",
        "Make it two.",
    ]


def test_16_ids_that_a_server_counts_anew_each_turn_pair_within_their_turn():
    left, came = cut_both_ways("16")
    for gone in ("ll sorts wrong", '"pass"', '"patched"', "patched 2"):
        assert gone not in json.dumps(left)
    results = [number for number, message in enumerate(left) if message["role"] == "tool"]
    assert len(results) == 3
    for number in results:
        ids = [call["id"] for call in left[number - 1].get("tool_calls", ())]
        assert left[number]["tool_call_id"] in ids
    early = next(number for number, message in enumerate(left) if "Checkpoint stored. (1)" in str(message["content"]))
    assert left[early - 1]["content"] == "Early checkpoint."
    seam = (
        next(number for number, message in enumerate(came) if "Checkpoint stored. (2)" in str(message["content"])) - 1
    )
    assert left[seam - len(came) :] == came[seam:]


def test_17_reasoning_leaves_with_what_it_led_to():
    left, came = cut_both_ways("17")
    assert len(left) == 10 and left[2:] == came[-8:]
    assert [item["content"][0]["text"] for item in left[:2]] == [
        "Tidy the museum label templates.",
        "Twelve templates, three unused.",
    ]


def test_19_half_pairs_leave_before_the_seam_and_stay_behind_it():
    left, came = cut_both_ways("19")
    assert len(left) == 7 and left[-4:] == came[-4:]
    assert not any(str(item.get("type")).startswith("custom_tool_call") for item in left)


def test_20_every_kind_of_call_is_known_and_an_unknown_item_stays():
    left, came = cut_both_ways("20")
    kinds = [item["type"] for item in left]
    assert kinds[:6] == [
        *("message", "message", "tool_search_call", "tool_search_output"),
        *("function_call", "function_call_output"),
    ]
    assert left[6:] == [came[-6], *came[-5:]][-len(left[6:]) :]
    assert not {"web_search_call", "mcp_call", "image_generation_call"} & set(kinds)
    body = case("20").replace(b'"image_generation_call"', b'"future_call"')
    done = cut(body)
    assert not verify(body, done.body).unchanged
    assert [type_ for type_, _ in done.kept_unknown] == ["future_call"] and b"future_call" in done.body


def test_23_a_signature_stays_on_the_part_that_it_came_with():
    left, came = cut_both_ways("23")
    assert left[-4:] == came[-4:]
    assert left[1]["parts"] == [
        {"text": "Checking the units first."},
        {"text": "Depth is in centimetres.", "thoughtSignature": "U0lHdGV4dDE="},
    ]
    assert "U0lHcHJlMQ" not in json.dumps(left)


def test_25_snake_case_is_read_and_no_empty_content_is_left():
    left, came = cut_both_ways("25")
    assert left == [came[0], {"role": "model", "parts": [came[3]["parts"][1]]}, *came[4:]]


def test_26_a_cancelled_checkpoint_is_none_and_the_human_s_media_stay():
    left, came = cut_both_ways("26")
    assert left[0] == came[0] and left[2:] == came[4:]
    assert left[1]["parts"] == [came[1]["parts"][0], *came[3]["parts"]]


def test_27_roles_alternate_and_no_cache_point_is_left_alone():
    left, came = cut_both_ways("27")
    assert [message["role"] for message in left] == ["user", "assistant", "user", "assistant", "user"]
    assert left[1]["content"] == [
        {"text": "Reading the old SVG.\n\nTwo gates; the upper one is drawn twice."},
        *came[5]["content"],
    ]
    assert "cachePoint" not in json.dumps(left) and left[2:] == came[6:]
    assert json.loads(cut(case("27")).body)["toolConfig"] == json.loads(case("27"))["toolConfig"]


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
