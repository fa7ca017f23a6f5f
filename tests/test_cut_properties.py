"""The contract's rules as properties of generated histories, each a small function with its rule's number.

The checks read both bodies with a slow parser of their own (readings.py). They know the rules and nothing of how
the cut decides.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import histories
import validator
from cutline import Cut, cut
from histories import History
from readings import Key, Object, Reading, Text


@dataclass
class Case:
    """One body, what became of it, and the options that it was cut with."""

    history: History
    options: dict[str, Any]

    @cached_property
    def body(self) -> bytes:
        return self.history.body

    @cached_property
    def done(self) -> Cut:
        return cut(self.body, **self.options)

    @cached_property
    def plain(self) -> Cut:
        """The same cut without notices."""
        return cut(self.body, **{**self.options, "notice": False})

    @cached_property
    def before(self) -> Reading:
        return Reading(self.body)

    @cached_property
    def after(self) -> Reading:
        return Reading(self.plain.body)

    @cached_property
    def spoken(self) -> list[Key]:
        """Narration blocks with words that are no thinking any more: their words have to be text."""
        if self.options.get("narration", "keep") == "drop":
            return []
        stay = [self.after.raw(key) for key in self.after.blocks if self.after.narrated(key) is not None]
        gone = []
        for key in reversed(self.before.blocks):
            if self.before.narrated(key) is not None:
                if stay and stay[-1] == self.before.raw(key):
                    stay.pop()
                else:
                    gone.append(key)
        return gone

    @cached_property
    def opening(self) -> set[str]:
        """Blocks that stay because the tool loop of a checkpoint without thinking begins with their step's thinking."""
        if _turn_thinking_goes(self):
            return set()
        turns = {key[0] for key in self.before.checkpoints if key[0] <= self.seam}
        turns |= {self.seam} & {n for n, message in enumerate(self.before.messages) if message["role"] == "assistant"}
        return {self.before.raw(key) for turn in turns for key in _opening(self.before, turn)}

    @property
    def seam(self) -> int:
        assert self.plain.seam is not None
        return self.plain.seam.message

    @property
    def seam_after(self) -> int:
        """Index of the seam's message in the output: messages behind it neither come nor go."""
        return len(self.after.messages) - (len(self.before.messages) - self.seam)


def _opening(before: Reading, turn: int) -> Iterator[Key]:
    """The step that opened the turn's tool loop, and those since then beside whose results a human spoke."""
    roles = [message["role"] for message in before.whole["messages"]]
    thinks = [(n, 0) in before.blocks and before.is_thinking((n, 0)) for n in range(len(roles))]
    whole: set[int] = set()
    end = turn if not thinks[turn] else 0
    while end:
        step = next((n + 1 for n in range(end - 1, -1, -1) if roles[n] == "user"), 0)
        start = next((n + 1 for n in range(step - 1, -1, -1) if roles[n] != "user"), 0)
        answers = [_answers(before, number) for number in range(start, step)]
        human = any(blocks and not any(blocks) for blocks in answers) or not answers
        beside = not all(map(all, answers))
        spoken = next(n for n in range(step, turn + 1) if roles[n] == "assistant")
        if (human or beside) and thinks[spoken]:
            whole |= set(range(spoken, next(n for n in range(spoken, turn + 1) if n == turn or roles[n] == "user")))
            for key in before.blocks:
                if key[0] in whole:
                    yield from (key, before.pairs[key]) if key in before.pairs else (key,)
            return
        if human:
            return
        end = start
        if beside:
            whole |= {n for n in range(start) if all(role != "user" for role in roles[n:start])}


def _answers(before: Reading, number: int) -> list[bool]:
    """Of each block of a message that says something, whether it answers a call."""
    return [
        before.type(key) == "tool_result"
        for key in before.blocks
        if key[0] == number
        and (key in before.pairs.values() if before.type(key) == "tool_result" else _says(before, key))
    ]


def _says(before: Reading, key: Key) -> bool:
    block = before.blocks[key]
    return before.type(key) != "text" or bool((block if isinstance(block, str) else block["text"]).strip())


# ---------------------------------------------------------------------------------------------- the rules


def rule_1_every_word_stays_in_order_with_its_role(case: Case) -> None:
    before, after = case.before.said(case.spoken), case.after.said()
    # A system message may have to move; its words are the harness's.
    assert [words.raw for role, words in before if role == "system"] == [w.raw for role, w in after if role == "system"]
    join = case.options.get("join", "\n\n")
    joiner = None if join is None else json.dumps(join)[1:-1]
    said = [[pair for pair in texts if pair[0] != "system"] for texts in (before, after)]
    blanks = _follow(*said, joiner)
    assert blanks, "the texts of the output are not the texts of the input, joined"
    assert blanks >= {sum(removed.why == "blank text" for removed in case.plain.removed)}


def _follow(before: list[tuple[str, Text]], after: list[tuple[str, Text]], joiner: str | None) -> set[int]:
    """How many blank texts left (more than one number may fit), if all others are there in order; else nothing."""
    states = {(0, 0, 0, 0)}  # texts of the input used, text of the output, offset in it, blanks so far
    found = set()
    while states:
        used, at, offset, blanks = states.pop()
        if used == len(before):
            if at == len(after):
                found.add(blanks)
            continue
        role, words = before[used]
        if not words.strip():
            states.add((used + 1, at, offset, blanks + 1))
        if at == len(after) or after[at][0] != role or not after[at][1].raw.startswith(words.raw, offset):
            continue
        end = offset + len(words.raw)
        if end == len(after[at][1].raw):
            states.add((used + 1, at + 1, 0, blanks))
        if joiner is not None and role == "assistant" and after[at][1].raw.startswith(joiner, end):
            states.add((used + 1, at, end + len(joiner), blanks))
    return found


def rule_2_only_notices_are_added_and_only_to_results(case: Case) -> None:
    body = case.done.body
    for notice in reversed(case.done.notices):
        result = case.before.blocks[notice.place]
        assert result["type"] == "tool_result"
        body = body[: notice.start] + body[notice.end :]
    assert body == case.plain.body
    assert not case.plain.notices
    for message in json.loads(case.done.body)["messages"]:
        for block in message["content"] if isinstance(message["content"], list) else ():
            content = block.get("content") if block["type"] == "tool_result" else None
            for item in content if isinstance(content, list) else ():
                assert item["type"] != "text" or isinstance(item["text"], str)
    if case.options.get("notice", True):
        stored = {case.before.pairs[key] for key in case.before.checkpoints}
        for notice in case.done.notices:
            added = case.done.body[notice.start : notice.end]
            assert added.isascii() or notice.kind == "fill"
            assert b"[cutline]" in added
            assert (tuple(notice.place) in stored) == (notice.kind == "notice")
    else:
        assert case.done.body == case.plain.body


def rule_2_every_block_that_is_no_text_is_one_of_the_input(case: Case) -> None:
    literals = {(case.before.role(key), case.before.raw(key)) for key in case.before.blocks}
    # A system message may have to move, and the checkpoint turn's leading thinking may have to lead.
    for what in ("system", "thinking", "rest"):
        one, two = (
            iter([(text.role(key), text.raw(key)) for key in text.blocks if _order(text, key) == what])
            for text in (case.before, case.after)
        )
        for wanted in two:
            assert wanted in literals and any(wanted == found for found in one), wanted


def _order(text: Reading, key: Key) -> str:
    if text.type(key) == "text":
        return "text"
    return "system" if text.role(key) == "system" else "thinking" if text.is_thinking(key) else "rest"


def rule_2_a_text_with_citations_stands_alone(case: Case) -> None:
    cited = [
        [(text.role(key), text.raw(key)) for key, block in text.blocks.items() if "text" in block and _cites(block)]
        for text in (case.before, case.after)
    ]
    assert cited[0] == cited[1]


def _cites(block: Object | Text) -> bool:
    return isinstance(block, Object) and block["type"] == "text" and bool(block.get("citations"))


def rule_3_from_the_checkpoint_turn_on_nothing_changes(case: Case) -> None:
    before, after = case.before, case.after
    for number in range(case.seam, len(before.messages)):
        there = case.seam_after + number - case.seam
        one = [key for key in before.blocks if key[0] == number]
        two = [after.raw(key) for key in after.blocks if key[0] == there]
        if two == [before.raw(key) for key in one]:
            assert after.messages[there].raw == before.messages[number].raw
            continue
        kept = [before.raw(key) for key in one if not before.is_thinking(key)]
        if number > case.seam or _turn_thinking_goes(case):
            # Thinking left: words of narration stand in its place.
            at = iter(two)
            assert all(raw in at for raw in kept)
            gone = [key for key in one if before.is_thinking(key) and before.raw(key) not in two]
            assert len(two) == len(one) - len(gone) + len(set(gone) & set(case.spoken))
        else:
            lead = 0
            while lead < len(one) and before.is_thinking(one[lead]):
                lead += 1
            own = [before.raw(key) for key in one]
            assert two[:lead] == own[:lead] and two[len(two) - len(own) + lead :] == own[lead:]
            moved = [key for key in after.blocks if key[0] == there][lead : len(two) - len(own) + lead]
            assert lead and all(not after.is_thinking(key) for key in moved)


def rule_4_nothing_of_the_worlds_stays_without_a_reason(case: Case) -> None:
    after, kept = case.after, case.options.get("keep_tools", ())
    todos = 0
    for key, block in after.blocks.items():
        if not after.floor < key or key[0] >= case.seam_after:
            continue
        kind = after.type(key)
        if kind.endswith("tool_result"):
            assert key in after.pairs.values(), "a result without its call"
        if not kind.endswith("tool_use"):
            continue
        assert key in after.pairs, "a call without its result"
        name, answer = block["name"], after.raw(after.pairs[key])
        reason = (
            name in (*histories.SPEECH, *histories.INSTRUCTIONS, *kept, "mcp__cutline__say")
            or (kind == "server_tool_use" and name.startswith("tool_search_tool"))
            or key in after.checkpoints
            or after.raw(key) in case.opening
            or "tool_reference" in answer
            or histories.REFUSAL in after.blocks[after.pairs[key]].get("content", "")
            or "[Request interrupted by user" in answer
        )
        assert reason or name == "TodoWrite", f"{name} stayed"
        todos += not reason
    assert todos <= 1 + len({key[0] for key in case.before.checkpoints if key[0] < case.seam})


def rule_4_what_has_a_reason_stays(case: Case) -> None:
    before, kept = case.before, case.options.get("keep_tools", ())
    here = {after for after in map(case.after.raw, case.after.blocks)}
    for key, block in before.blocks.items():
        kind = before.type(key)
        if kind in ("image", "document", "fallback", "compaction", "tool_addition"):
            assert before.raw(key) in here
        if not kind.endswith("tool_use") or key not in before.pairs:
            continue
        answer = before.blocks[before.pairs[key]]
        content = answer.get("content", "")
        if (
            block["name"] in (*histories.SPEECH, *histories.INSTRUCTIONS, *kept, "mcp__cutline__say")
            or key in before.checkpoints
            or (isinstance(content, str) and content.startswith(("[Request interrupted", histories.REFUSAL)))
            or (isinstance(content, list) and any(item["type"] == "tool_reference" for item in content))
        ):
            assert before.raw(key) in here and before.raw(before.pairs[key]) in here, block["name"]
    begin = max((before.pairs[key][0] for key in before.checkpoints if before.pairs[key][0] < case.seam), default=-1)
    lists = [
        k
        for k in before.pairs
        if before.blocks[k]["name"] == "TodoWrite" and begin < k[0] < case.seam and k > before.floor
    ]
    if lists:
        assert before.raw(lists[-1]) in here


def rule_5_a_valid_body_stays_valid(case: Case) -> None:
    for done in (case.done, case.plain):
        assert not (found := validator.faults(done.body)), found
        assert case.plain.seam is not None and case.plain.seam.call is not None
        behind = case.seam_after + case.plain.seam.call.message + 1 - case.seam
        assert not (found := validator.faults_of_a_cut(case.body, done.body, behind)), found


def rule_5_broken_pairs_before_the_seam_heal(case: Case) -> None:
    floor = case.before.floor[0]
    for fault in validator.calls_are_answered(case.after.whole):
        number = int(fault.partition("messages.")[2].partition(":")[0])
        assert number >= case.seam_after or number <= floor, fault


def rule_6_the_same_again(case: Case) -> None:
    again = cut(bytes(bytearray(case.body)), **case.options)
    assert (again.body, again.notices, again.removed) == (case.done.body, case.done.notices, case.done.removed)


def rule_6_a_second_cut_finds_nothing(case: Case) -> None:
    for done, options in ((case.done, case.options), (case.plain, {**case.options, "notice": False})):
        again = cut(done.body, **options)
        assert not again.changed and again.body is done.body and again.reason


def rule_6_what_was_sent_before_the_seam_stays_as_it_grows(case: Case) -> None:
    now = json.loads(case.done.body)["messages"][: case.seam_after]
    whole = json.loads(case.done.body)["messages"]
    for later in case.history.grown():
        done = cut(later.body, **case.options)
        assert done.changed and done.seam is not None
        then = json.loads(done.body)["messages"]
        assert [_bare(message) for message in then[: len(now)]] == [_bare(message) for message in now]
        if done.seam.message == case.seam:
            assert [_bare(message) for message in then[: len(whole)]] == [_bare(message) for message in whole]


def _bare(message: dict[str, Any]) -> dict[str, Any]:
    """A message as the cache compares it: without marks, a string as its one text."""
    content = message["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return {**message, "content": [{k: v for k, v in block.items() if k != "cache_control"} for block in blocks]}


def rule_7_no_thinking_before_the_seam(case: Case) -> None:
    for key in case.after.blocks:
        if case.after.floor < key and key[0] < case.seam_after and case.after.raw(key) not in case.opening:
            assert not case.after.is_thinking(key)


def rule_7_the_turns_thinking(case: Case) -> None:
    assert case.plain.seam is not None and case.plain.seam.call is not None
    turn = range(case.seam, case.plain.seam.call.message + 1)
    stays = not _turn_thinking_goes(case)
    here = [case.after.raw(key) for key in case.after.blocks]
    for key in case.before.blocks:
        if case.before.is_thinking(key) and key[0] in turn:
            there = case.seam_after + key[0] - case.seam
            found = any(case.after.is_thinking(other) for other in case.after.blocks if other[0] == there)
            assert found == stays
        elif case.before.is_thinking(key) and key[0] > turn[-1]:
            assert case.before.raw(key) in here


def _turn_thinking_goes(case: Case) -> bool:
    return case.before.thinking != "enabled" or validator.binds(case.before.whole.get("model"))


def rule_8_the_unknown_stays_and_is_reported(case: Case) -> None:
    unknown = [key for key in case.before.blocks if case.before.type(key) in ("hologram", "aura")]
    kept = [key for key in case.after.blocks if case.after.type(key) in ("hologram", "aura")]
    assert [case.before.raw(key) for key in unknown] == [case.after.raw(key) for key in kept]
    reported = {tuple(place): kind for kind, place in case.plain.kept_unknown}
    for key in unknown:
        if case.before.floor < key and key[0] < case.seam:
            assert reported[key] == case.before.type(key)


def rule_8_unchanged_is_the_very_same_object(case: Case) -> None:
    if not case.done.changed:
        assert case.done.body is case.body and case.done.reason
        assert not case.done.removed and not case.done.notices
    else:
        assert not case.done.reason and case.done.body != case.body


def rule_9_the_proof_agrees(case: Case) -> None:
    if importlib.util.find_spec("cutline.verify") is None:
        return
    verify = importlib.import_module("cutline.verify").verify
    assert verify(case.body, case.done.body, **case.options).unchanged != case.done.changed
    verify(case.body, case.plain.body, **{**case.options, "notice": False})


def rule_10_the_memo_cuts_as_the_cut(case: Case) -> None:
    if importlib.util.find_spec("cutline.memo") is None:
        return
    memo = importlib.import_module("cutline.memo").Memo()
    grown = case.history.grown()
    for history in (case.history, case.history, *grown, *reversed(grown), case.history, *grown):
        body = history.body
        found, wanted = memo.cut(body, **case.options), cut(body, **case.options)
        assert (found.body, found.changed, found.notices, found.seam) == (
            wanted.body,
            wanted.changed,
            wanted.notices,
            wanted.seam,
        )


def the_other_members_are_untouched(case: Case) -> None:
    one, two = case.before.whole, case.after.whole
    assert list(one) == list(two)
    for key in one:
        if key != "messages":
            assert one[key] == two[key]
    head = case.body.index(b'"messages"')
    assert case.plain.body[:head] == case.body[:head]


def the_wrappers_are_the_inputs(case: Case) -> None:
    """Members of messages other than their content: each output message has those of an input message."""
    wrappers = [{k: v for k, v in message.items() if k != "content"} for message in case.before.messages]
    for message in case.after.messages:
        assert {k: v for k, v in message.items() if k != "content"} in wrappers


# ------------------------------------------------------------------------------------------------ the tests

Rule = Callable[[Case], None]
ALWAYS: tuple[Rule, ...] = (
    rule_6_the_same_again,
    rule_8_unchanged_is_the_very_same_object,
    rule_9_the_proof_agrees,
)
OF_A_CUT: tuple[Rule, ...] = (
    rule_1_every_word_stays_in_order_with_its_role,
    rule_2_every_block_that_is_no_text_is_one_of_the_input,
    rule_2_a_text_with_citations_stands_alone,
    rule_4_nothing_of_the_worlds_stays_without_a_reason,
    rule_7_no_thinking_before_the_seam,
    rule_8_the_unknown_stays_and_is_reported,
    the_other_members_are_untouched,
    the_wrappers_are_the_inputs,
)
OF_A_SEAM: tuple[Rule, ...] = (
    rule_2_only_notices_are_added_and_only_to_results,
    rule_3_from_the_checkpoint_turn_on_nothing_changes,
    rule_6_a_second_cut_finds_nothing,
    rule_7_the_turns_thinking,
)
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "join": st.sampled_from((None, "", "\n\n", ' "ü" ')),
        "notice": st.booleans(),
        "trace": st.sampled_from(("holes", "none", "all")),
        "keep_tools": st.sampled_from(((), ("Grep",), ("Bash", "wetter_für_morgen"))),
        "narration": st.sampled_from(("keep", "drop")),
    },
)
PLACES = st.sampled_from(("last", "end", "human:1", "human:2", "human:3")) | st.integers(0, 12)


def hold(case: Case, *rules: Rule) -> None:
    for rule in rules:
        rule(case)


def valid(history: History, options: dict[str, Any]) -> None:
    case = Case(history, options)
    assert validator.faults(case.body) == [], "the strategy drew a body that a provider refuses"
    event(f"changed: {case.done.changed}")
    hold(case, *ALWAYS)
    if case.done.changed:
        hold(case, *OF_A_CUT, *OF_A_SEAM, rule_4_what_has_a_reason_stays, rule_5_a_valid_body_stays_valid)
        assert len(case.done.body) <= len(case.body) or case.done.notices


def growing(history: History, options: dict[str, Any]) -> None:
    case = Case(history, options)
    for later in history.grown():
        assert validator.faults(later.body) == [], "the strategy drew a body that a provider refuses"
    if case.done.changed:
        rule_6_what_was_sent_before_the_seam_stays_as_it_grows(case)
    rule_10_the_memo_cuts_as_the_cut(case)


def refused(history: History, options: dict[str, Any]) -> None:
    case = Case(history, options)
    event(f"changed: {case.done.changed}, valid: {not validator.faults(case.body)}")
    hold(case, *ALWAYS)
    if case.done.changed:
        hold(case, *OF_A_CUT, *OF_A_SEAM, rule_5_broken_pairs_before_the_seam_heal)


def late(history: History, options: dict[str, Any], at: int | str) -> None:
    case = Case(history, {**options, "at": at})
    event(f"changed: {case.done.changed}")
    hold(case, *ALWAYS)
    assert not case.done.notices
    if case.done.changed:
        hold(case, *OF_A_CUT)
        for fault in validator.faults(case.done.body):
            # A late cut can't know which thinking the open turn would have to begin with.
            assert "must start with a thinking block" in fault or fault in validator.faults(case.body)


@given(histories.histories(), OPTIONS)
def test_a_valid_history_is_cut_by_the_rules(history: History, options: dict[str, Any]) -> None:
    valid(history, options)


@settings(max_examples=100)
@given(histories.histories(grows=True), OPTIONS)
def test_a_growing_history_keeps_its_beginning(history: History, options: dict[str, Any]) -> None:
    growing(history, options)


@settings(max_examples=150)
@given(histories.broken(), OPTIONS)
def test_a_broken_history_is_cut_or_left_and_nothing_is_lost(history: History, options: dict[str, Any]) -> None:
    refused(history, options)


@given(histories.histories() | histories.histories(checkpoints=False), OPTIONS, PLACES)
def test_a_cut_at_a_place_keeps_the_rules(history: History, options: dict[str, Any], at: int | str) -> None:
    late(history, options, at)


@given(histories.histories(checkpoints=False), OPTIONS)
def test_without_a_checkpoint_nothing_is_cut(history: History, options: dict[str, Any]) -> None:
    body = history.body
    done = cut(body, **options)
    assert done.body is body and not done.changed and done.reason


@given(histories.histories())
def test_a_spelling_changes_no_decision(history: History) -> None:
    """The same history in ASCII escapes and in UTF-8: the same blocks leave, under the same addresses."""
    one, two = (
        cut(History(history.messages, history.members, histories.Style(ascii=ascii)).body, trace="none")
        for ascii in (True, False)
    )
    assert one.seam == two.seam
    assert [(r.kind, r.why, r.tool, r.address, r.place) for r in one.removed] == [
        (r.kind, r.why, r.tool, r.address, r.place) for r in two.removed
    ]


# Twenty thousand histories in all; each kind as often as it is cheap.


@pytest.mark.slow
@settings(max_examples=5_000)
@given(histories.histories())
def test_thousands_of_histories_as_they_are_cut_by_default(history: History) -> None:
    valid(history, {})


@pytest.mark.slow
@settings(max_examples=5_000)
@given(histories.histories(), OPTIONS)
def test_thousands_of_histories_with_any_options(history: History, options: dict[str, Any]) -> None:
    valid(history, options)


@pytest.mark.slow
@settings(max_examples=3_000)
@given(histories.histories(grows=True), OPTIONS)
def test_thousands_of_growing_histories(history: History, options: dict[str, Any]) -> None:
    growing(history, options)


@pytest.mark.slow
@settings(max_examples=4_000)
@given(histories.broken(), OPTIONS)
def test_thousands_of_broken_histories(history: History, options: dict[str, Any]) -> None:
    refused(history, options)


@pytest.mark.slow
@settings(max_examples=3_000)
@given(histories.histories() | histories.histories(checkpoints=False), OPTIONS, PLACES)
def test_thousands_of_late_cuts(history: History, options: dict[str, Any], at: int | str) -> None:
    late(history, options, at)
