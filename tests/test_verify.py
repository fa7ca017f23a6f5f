"""The proof: it accepts what the cut makes of real histories, and rejects a cut that breaks one rule alone.

Each mutant is an output that a faulty cut could have made; it must be rejected under the number of its rule.
"""

import base64
import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bodies import BUGS, CHECKPOINT, bodies, bodies_of, body, session_files
from conftest import large_ones_slow
from cutline import CutError, cut, verify
from cutline.cut import cut_session
from cutline.verify.fates import read_model, tagged_narration
from cutline.verify.tree import read

STUB = "Wasted call — file unchanged since your last Read. Refer to that earlier tool_result instead."
MARK = {"type": "ephemeral"}
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}

Block = dict[str, Any]
Mutation = Callable[[bytes], bytes]


def text(words: str, **more: Any) -> Block:
    return {"type": "text", "text": words, **more}


def call(id: str, name: str = "Bash", **given: Any) -> Block:
    return {"type": "tool_use", "id": id, "name": name, "input": given}


def result(id: str, content: Any = "done", **more: Any) -> Block:
    return {"type": "tool_result", "tool_use_id": id, "content": content, **more}


def thought(words: str, signature: str = "c2lnbmVk") -> Block:
    return {"type": "thinking", "thinking": words, "signature": signature}


def agent(*blocks: Block) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def human(*blocks: Block) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def note(words: str) -> dict[str, Any]:
    return {"role": "system", "content": words}


HISTORY = [
    {"role": "user", "content": "Find why the sundial runs late. é"},
    agent(thought("Where?"), text("Reading the table for its longitude."), call("c1", "Read", file_path="CLAUDE.md")),
    human(result("c1", "rules")),
    note("The clock was set."),
    agent(text("The longitude lost its sign.", cache_control=MARK), call("c2", command="pytest -q")),
    human(result("c2", "1 failed"), IMAGE, text("Use metres, please.")),
    agent({"type": "sketch", "lines": [1.5]}, call("q1", "AskUserQuestion", question="East or west?")),
    human(result("q1", "West.")),
    agent(thought("Enough."), text("Checkpoint one."), call("k1", CHECKPOINT, done="the sign"), call("s1")),
    human(result("k1", "Checkpoint stored."), result("s1", "Monday")),
    agent(text(" \n"), call("c3", command="ls")),
    human(result("c3", "eot.py"), text("It loses a minute a day.")),
    agent(text("Now the equation of time."), call("c4", "Read", file_path="/eot.py")),
    human(result("c4", 'def eot():\n    return 7  # "minutes"')),
    agent(text("It is a constant 7."), call("c5", command="python eot.py")),
    human(result("c5", "7")),
    agent(thought("Note it down."), text("Checkpoint two."), call("k2", CHECKPOINT, done="the constant")),
    human(result("k2", "Checkpoint stored.")),
    agent(thought("Look again."), text("Looking at eot.py again."), call("c6", "Read", file_path="/eot.py")),
    human(result("c6", STUB)),
    {"role": "user", "content": "Go on, then."},
]
# Spellings that no library would write again: a number with a trailing zero, an escape that need not be.
BEFORE = body(HISTORY).replace(b'"lines":[1.5]', b'"lines":[1.50]').replace("é".encode(), b"\\u00e9")
AFTER = cut(BEFORE).body


def spelled(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def swap(old: str, new: str) -> Mutation:
    """One thing, found once, is spelled differently."""

    def mutate(after: bytes) -> bytes:
        assert after.count(old.encode()) == 1, old
        return after.replace(old.encode(), new.encode())

    return mutate


def drop(value: str) -> Mutation:
    """An element is gone, with the comma behind it or else before it."""
    return lambda after: swap(f"{value}," if f"{value},".encode() in after else f",{value}", "")(after)


def put(anchor: str, *values: Any) -> Mutation:
    """Elements stand before the one that begins with `anchor`."""
    return swap(anchor, "".join(f"{spelled(value)}," for value in values) + anchor)


def chain(*mutations: Mutation) -> Mutation:
    def mutate(after: bytes) -> bytes:
        for mutation in mutations:
            after = mutation(after)
        return after

    return mutate


def notices(after: bytes) -> list[str]:
    """The two notices as they are spelled, without the blank line before."""
    found = [part.split('"}')[0] for part in after.decode().split("Checkpoint stored.\\n\\n")[1:]]
    assert len(found) == 2
    assert all(notice.startswith("[cutline] Left out") for notice in found)
    return found


def renote(change: Callable[[str], str]) -> Mutation:
    """The second notice is changed."""
    return lambda after: swap(notices(after)[1], change(notices(after)[1]))(after)


def notice_elsewhere(old: str, new: str) -> Mutation:
    """The second notice (``@`` in `old` and `new`) stands in another place."""

    def mutate(after: bytes) -> bytes:
        notice = notices(after)[1]
        without = swap(f"\\n\\n{notice}", "")(after)
        return swap(old, new.replace("@", notice))(without)

    return mutate


def without_first_result(after: bytes) -> bytes:
    return re.sub(rb'\{"role":"user","content":\[\{"type":"tool_result","tool_use_id":"k1".*?"\}\]\},', b"", after)


FIRST, LAST = '{"role":"user","content":"Find', spelled({"role": "user", "content": "Go on, then."})
ONE, TWO = "Reading the table for its longitude.", "The longitude lost its sign."
THREE, FOUR = "Now the equation of time.", "It is a constant 7."
METRES = spelled(text("Use metres, please."))
CLOCK = spelled(note("The clock was set."))
SKETCH = '{"type":"sketch","lines":[1.50]}'
LEAVE_CALL = swap(f"{spelled(MARK)}}}", f"{spelled(MARK)}}},{spelled(HISTORY[4]['content'][1])}")
LEAVE_RESULT = put('{"type":"image"', HISTORY[5]["content"][0])
QUESTION, ANSWER = spelled(HISTORY[6]["content"][1]), spelled(HISTORY[7])
CHECKPOINT_1 = spelled(HISTORY[8]["content"][2])
LOSES = '{"role":"user","content":[{"type":"text","text":"It loses'

MUTANTS: list[tuple[int, str, Mutation]] = [
    (1, "a word is changed", swap("lost its sign", "lost the sign")),
    (1, "an escape is respelled", swap("late. \\u00e9", "late. é")),
    (1, "two texts change places", swap(f"{ONE}\\n\\n{TWO}", f"{TWO}\\n\\n{ONE}")),
    (1, "a human text is dropped", drop(METRES)),
    (1, "texts of two authors are joined", chain(drop(METRES), swap(TWO, f"{TWO}\\n\\nUse metres, please."))),
    (1, "a text is joined with a checkpoint's", swap(FOUR, f"{FOUR}\\n\\nCheckpoint two.")),
    (1, "neighbours are left apart", swap(f"{THREE}\\n\\n{FOUR}", f'{THREE}"}},{{"type":"text","text":"{FOUR}')),
    (1, "the joiner is another one", swap(f"{ONE}\\n\\n", f"{ONE}\\n")),
    (1, "the cache mark is lost", swap(f',"cache_control":{spelled(MARK)}', "")),
    (1, "a blank text is left alone", put(LOSES, agent(text(" \n")))),
    (1, "a system message is dropped", drop(CLOCK)),
    (1, "a system message is changed", swap("The clock was set.", "The clock was off.")),
    (1, "a system message stands where it is refused", chain(drop(CLOCK), put(FIRST, note("The clock was set.")))),
    (1, "a text changes its role", swap(FIRST, FIRST.replace("user", "assistant"))),
    (2, "an arbitrary notice", renote(lambda notice: "[cutline] All is well.")),
    (2, "a wrong count in the notice", renote(lambda notice: notice.replace("4 calls", "5 calls"))),
    (2, "a wrong weight in the notice", renote(lambda notice: re.sub(r"\((\d)", r"(1\1", notice))),
    (2, "an address is changed", renote(lambda notice: re.sub(r" [0-9a-f]{16} ->", " 0123456789abcdef ->", notice))),
    (2, "a line of the trace is missing", renote(lambda notice: notice.rsplit("\\n", 1)[0])),
    (2, "a notice is missing", renote(lambda notice: "")),
    (
        2,
        "a notice stands before the client's words",
        notice_elsewhere('"Checkpoint stored."}]}', '"@Checkpoint stored."}]}'),
    ),
    (2, "a notice stands in the human's mouth", notice_elsewhere("Go on, then.", "Go on, then.\\n\\n@")),
    (2, "a notice tells the other stretch's loss", lambda after: renote(lambda notice: notices(after)[0])(after)),
    (2, "a message that nobody wrote", swap(LAST, f"{LAST},{spelled(human(text('Be brief.')))}")),
    (2, "a stub is not filled", lambda after: re.sub(rb'\\n\\n\[cutline\] The earlier.*?minutes\\"', b"", after)),
    (2, "a filling is respelled", swap('7  # \\"minutes\\""', '7  # \\u0022minutes\\""')),
    (2, "a number before the messages is respelled", swap('"max_tokens":32000', '"max_tokens":3.2e4')),
    (2, "the system prompt changes", swap("You are a coding agent.", "You are an agent.")),
    (2, "a member behind the messages is lost", swap(',"metadata":{"user_id":"u"}', "")),
    (3, "the tail changes by a byte", swap("Go on, then.", "Go on, then!")),
    (3, "a text of the turn changes", swap("Checkpoint two.", "Checkpoint 2.")),
    (3, "the document changes", swap('"done":"the constant"', '"done":"a constant"')),
    (3, "the last message is lost", drop(LAST)),
    (4, "a pair is left", chain(LEAVE_CALL, LEAVE_RESULT)),
    (4, "an earlier checkpoint is removed", chain(drop(CHECKPOINT_1), without_first_result)),
    (4, "a question to the human is removed", chain(drop(QUESTION), drop(ANSWER))),
    (4, "an attached image is dropped", drop(spelled(IMAGE))),
    (5, "half a pair is left: the call", LEAVE_CALL),
    (5, "half a pair is left: the result", LEAVE_RESULT),
    (5, "the output can't be read", lambda after: after[:-1]),
    (6, "white space appears between messages", swap(f",{LAST}", f", {LAST}")),
    (6, "white space appears between blocks", swap(f",{METRES}", f" ,{METRES}")),
    (7, "thinking before the seam is left", put(f'{{"type":"text","text":"{ONE}', thought("Where?"))),
    (7, "an earlier turn's thinking is left", put('{"type":"text","text":"Checkpoint one.', thought("Enough."))),
    (7, "the turn's thinking is left", put('{"type":"text","text":"Checkpoint two.', thought("Note it down."))),
    (7, "thinking behind the seam is dropped", drop(spelled(thought("Look again.")))),
    (8, "an unknown block is dropped", drop(SKETCH)),
    (8, "a number in an unknown block is respelled", swap("[1.50]", "[1.5]")),
    (9, "nothing is cut", lambda after: BEFORE),
]


def broken(before: bytes, after: bytes, **options: Any) -> CutError:
    with pytest.raises(CutError) as caught:
        verify(before, after, **options)
    error = caught.value
    assert error.place
    assert error.difference
    assert "\n" not in str(error)
    return error


@pytest.mark.parametrize(("rule", "name", "mutate"), MUTANTS, ids=[name for _, name, _ in MUTANTS])
def test_a_cut_that_breaks_one_rule_is_rejected_under_its_number(rule: int, name: str, mutate: Mutation):
    mutant = mutate(AFTER)
    assert mutant != AFTER
    error = broken(BEFORE, mutant)
    assert error.rule == rule, str(error)


def test_the_proof_counts_what_left_and_what_stayed():
    proof = verify(BEFORE, AFTER)
    assert not proof.unchanged
    assert proof.seam_message == 16
    assert (proof.calls.count, proof.results.count, proof.thinking.count) == (6, 6, 3)
    gone = [block for message in HISTORY for block in message["content"] if "id" in block and block["id"][0] in "cs"]
    assert proof.calls.bytes == sum(len(spelled(block)) for block in gone if block["id"] != "c6")
    assert (proof.agent_texts.count, proof.human_texts.count, proof.harness_texts.count) == (7, 4, 1)
    assert (proof.joined, proof.blanks, proof.filled, proof.narration) == (2, 1, 1, 0)
    assert proof.notices.count == 2
    assert proof.notices.bytes > sum(len(notice.encode()) for notice in notices(AFTER))


def test_another_option_is_another_cut():
    others = {"notice": False, "trace": "none", "join": "", "keep_tools": ("Bash",), "at": 5}
    for options in ({"join": None}, *({name: value} for name, value in others.items())):
        other = cut(BEFORE, **options).body
        assert not verify(BEFORE, other, **options).unchanged
        assert other != AFTER
        broken(BEFORE, other)
        broken(BEFORE, AFTER, **options)


# Real histories


@pytest.mark.parametrize("path", large_ones_slow(session_files()), ids=lambda path: path.stem)
def test_every_recorded_session_is_cut_as_the_contract_says(path: Path):
    for name, before in bodies_of(path):
        for options in ({}, {"notice": False, "join": None}):
            after = cut(before, **options)
            proof = verify(before, after.body, **options)
            assert proof.unchanged == (not after.changed), name
        kept = cut_session(before, trace="all")
        assert verify(before, kept.body, trace="all", session=True).unchanged == (not kept.changed), name


@pytest.mark.slow
@pytest.mark.parametrize("path", session_files(), ids=lambda path: path.stem)
def test_every_recorded_session_is_cut_without_a_checkpoint_as_the_contract_says(path: Path):
    for name, before in list(bodies_of(path))[-1:]:
        for at in ("last", "end", "human:2", 7):
            assert verify(before, cut(before, at=at).body, at=at).seam_message != 0, name
            kept = cut_session(before, at=at)
            proof = verify(before, kept.body, at=at, session=True)
            assert (kept.plan.last_notice or None if kept.plan else None) == proof.last_notice, name


def test_a_body_with_something_to_cut_must_not_come_back_unchanged():
    tried = 0
    for _, before in bodies(most=100_000):
        if cut(before).changed:
            tried += 1
            assert broken(before, before).rule == 9
    if not tried:
        pytest.skip("../shared/data is not on this machine")


def test_any_byte_that_changes_in_the_output_is_noticed():
    tried = 0
    for name, before in [("by hand", BEFORE), *bodies(most=60_000)]:
        after = cut(before).body
        chance = random.Random(name)
        for _ in range(40):
            at = chance.randrange(len(after))
            if after[at : at + 1].isspace():
                continue  # between elements it may differ where something was cut
            changed = after[:at] + bytes([after[at] ^ 1]) + after[at + 1 :]
            broken(before, changed)
            broken(before, after[:at] + after[at + 1 :])
            tried += 1
    assert tried > 30


@pytest.mark.parametrize("number", ["01", "02", "03", "04", "06", "08", "10", "11"])
@pytest.mark.parametrize("notice", [True, False])
def test_inputs_that_broke_others_are_cut_and_proven(number: str, notice: bool):
    if not BUGS.is_dir():
        pytest.skip("../shared/bugs is not on this machine")
    before = next(BUGS.glob(f"{number}-*.json")).read_bytes()
    proof = verify(before, cut(before, notice=notice).body, notice=notice)
    assert not proof.unchanged
    assert proof.notices.count == notice
    assert broken(before, before, notice=notice).rule == 9


# Bodies that must come out as they are


def seamed(*messages: dict[str, Any], opening: list[Block] | None = None, **members: Any) -> bytes:
    """A short history with something to cut, ending in a checkpoint turn.

    `messages` stand before that turn, `opening` holds blocks that its message begins with.
    """
    start = [human(text("Hello.")), agent(text("I look."), call("c1")), human(result("c1"))]
    return body([*start, *messages, agent(*(opening or []), call("k1", CHECKPOINT)), human(result("k1"))], **members)


SEARCH = {"type": "server_tool_use", "id": "w", "name": "web_search", "input": {}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "w", "content": []}
UNTOUCHABLE = {
    "no checkpoint": body(HISTORY[:8]),
    "an errored checkpoint": body([*HISTORY[:8], agent(call("k", CHECKPOINT)), human(result("k", is_error=True))]),
    "a refused checkpoint": body(
        [*HISTORY[:8], agent(call("k", CHECKPOINT)), human(result("k", '{"result":"checkpoint refused: no facts"}'))]
    ),
    "an unanswered checkpoint": body([*HISTORY[:8], agent(call("k", CHECKPOINT)), human(text("Stop."))]),
    "a history that the server holds": seamed(thread={"type": "continue"}),
    "a checkpoint called by the provider's code": seamed(
        agent({**call("k", CHECKPOINT), "caller": {"type": "code_execution_20250825"}}), human(result("k"))
    ),
    "nothing before the checkpoint": body([human(text("Hello.")), agent(call("k", CHECKPOINT)), human(result("k"))]),
    "a compaction behind the checkpoint": body([*HISTORY[:18], agent({"type": "compaction", "content": "So far."})]),
    "a pair of the provider's own on both sides of the seam": seamed(agent(SEARCH), opening=[FOUND]),
    "a result of an unknown type": seamed(agent(SEARCH, {**FOUND, "type": "x_tool_result"})),
    "a duplicate of messages": seamed().replace(b'"metadata"', b'"messages"'),
    "a duplicate of a block's name": seamed().replace(b'"input":{}', b'"name":"Bash","input":{}', 1),
    "a duplicate of a role": seamed().replace(b'{"role":"user",', b'{"role":"user","role":"user",', 1),
    "a control character": seamed().replace(b"I look.", b"I\x01look."),
    "a wrong escape": seamed().replace(b"I look.", rb"I \look."),
    "a wrong number": seamed().replace(b"32000", b"032000"),
    "not a number": seamed().replace(b"32000", b"NaN"),
    "a byte order mark": b"\xef\xbb\xbf" + seamed(),
    "bytes behind the body": seamed() + b"x",
    "not UTF-8": seamed().replace(b"I look.", b"I \xff look."),
    "a raw surrogate": seamed().replace(b"I look.", b"I \xed\xa0\x80 look."),
    "a trailing comma": seamed().replace(b'"u"}}', b'"u"},}'),
    "a torn body": seamed()[:-20],
    "nothing at all": b"",
    "a list": b"[]",
}


@pytest.mark.parametrize("name", UNTOUCHABLE)
def test_what_must_not_be_cut_is_proven_by_its_very_bytes(name: str):
    before = UNTOUCHABLE[name]
    proof = verify(before, before)
    assert proof.unchanged
    assert proof.reason
    assert broken(before, before.replace(b"l", b"L") + b" ").rule == 8


def test_bodies_nested_deeper_than_a_stack_are_read_and_may_be_left_alone():
    deep = seamed().replace(b'"input":{}', b'"input":' + b"[" * 10_000 + b"]" * 10_000, 1)
    assert verify(deep, deep).unchanged
    assert verify(deep, cut(deep).body).unchanged
    assert read(b"[" * 10_000 + b"]" * 10_000).depth == 10_000


# Decisions that the real histories do not show


def left(before: bytes, **options: Any) -> list[dict[str, Any]]:
    """The messages that the proof accepts, before the checkpoint turn's call."""
    after = cut(before, notice=False, **options).body
    assert not verify(before, after, notice=False, **options).unchanged
    return json.loads(after)["messages"]


def narration(word: bytes = b"narration") -> str:
    """A signature whose envelope holds a word where narration blocks have theirs."""
    inner = bytes([8 << 3 | 2, len(word)]) + word
    middle = bytes([1 << 3 | 2, len(inner)]) + inner
    return base64.b64encode(bytes([2 << 3 | 2, len(middle)]) + middle).decode()


def test_a_narration_block_is_known_by_its_signature_alone():
    assert tagged_narration(narration())
    assert not tagged_narration(narration(b"thinking"))
    for wrong in ("", "c2lnbmVk", "not base64!", base64.b64encode(b"\x12\xff").decode()):
        assert not tagged_narration(wrong)


def test_narration_becomes_text_with_the_same_literal_and_counts_so():
    before = seamed(agent(thought("The cause is \u00e9.", narration()), call("c2")), human(result("c2"))).replace(
        "é".encode(), b"\\u00e9"
    )
    after = cut(before).body
    assert verify(before, after).narration == 1
    assert b"The cause is \\u00e9." in after
    assert broken(before, after.replace(b"is \\u00e9", "is é".encode())).rule == 1
    dropped = cut(before, narration="drop").body
    assert verify(before, dropped, narration="drop").thinking.count == 1
    broken(before, dropped)


@pytest.mark.parametrize(
    ("model", "treats"),
    [
        ("claude-opus-5-5", "bound"),
        ("claude-fable-5.1", "bound"),
        ("claude-mythos-5-2-20261101", "bound"),
        ("us.anthropic.claude-haiku-5-5-v1:0", "bound"),
        ("claude-opus-6", "bound"),
        ("claude-fable-5", "free"),
        ("claude-sonnet-4-5-20250929", "free"),
        ("claude-sonnet-4-20250514", "free"),
        ("claude-3-7-sonnet-20250219", "free"),
        ("claude-opus-4-1[1m]", "free"),
        ("some-other-model", "unknown"),
        ("", "unknown"),
    ],
)
def test_models_are_told_apart_by_family_and_version(model: str, treats: str):
    assert read_model(model) == treats


def test_the_turns_thinking_stays_for_manual_thinking_and_kept_texts_go_behind_it():
    before = seamed(opening=[thought("Note.")])
    manual = before.replace(b'"adaptive"', b'"enabled"')
    assert [block["type"] for block in left(manual)[1]["content"]] == ["thinking", "text", "tool_use"]
    assert [block["type"] for block in left(before)[-2]["content"]] == ["tool_use"]
    bound = manual.replace(b"claude-opus-4-7", b"claude-opus-5-5")
    assert [block["type"] for block in left(bound)[-2]["content"]] == ["tool_use"]


def test_late_cuts_take_the_tails_thinking_only_where_it_may_be_bound():
    before = body([*HISTORY[:8], *HISTORY[18:]])
    for model, stays in (("claude-opus-4-7", True), ("claude-opus-5-5", False), ("a-model", False)):
        late = before.replace(b"claude-opus-4-7", model.encode())
        after = cut(late, at=8).body
        assert not verify(late, after, at=8).unchanged
        assert (b"Look again." in after) == stays


@pytest.mark.parametrize("name", ["say", "mcp__cutline__say", "Skill", "ToolSearch", "ExitPlanMode"])
def test_pairs_of_speech_and_instruction_stay(name: str):
    before = seamed(agent(call("x1", name, text="Hm.")), human(result("x1")))
    after = cut(before).body
    assert b'"x1"' in after
    assert verify(before, after).calls.count == 1


def test_each_stretchs_last_answered_list_stays():
    lists = [agent(call(f"t{n}", "TodoWrite")) for n in (1, 2)]
    before = seamed(lists[0], human(result("t1")), lists[1], human(result("t2")))
    after = cut(before).body
    assert b'"t1"' not in after
    assert b'"t2"' in after
    verify(before, after)
