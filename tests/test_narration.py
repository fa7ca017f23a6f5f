"""Narration: filler against words that carry a call, on hand-made calls, whole histories and recorded sessions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutline import narration
from cutline.blocks import Author, Event, Said, ToolCall
from cutline.narration import judge, review, specifics, target

# Calls to be told about. The results are what such tools print.

CACHE = (
    "     1\tclass Cache:\n     2\t    def refresh(self):\n     3\t        with self._mutex:\n"
    "     4\t            self.http.post(REFRESH_URL)\n     5\t            time.sleep(0.25)\n"
)
RACES = "=== RUN   TestReaders\nreads: 23412907\nraces: 0\n--- PASS: TestReaders (41.80s)\nok  \tpool\t42.113s\n"
RED = (
    "tests/test_escapes.py ...F.F\n=== FAILURES ===\nE   AssertionError: '\\\\u0041' != 'A'\n"
    "2 failed, 41 passed in 3.07s\n"
)
GREEN = "tests/test_escapes.py ......\n43 passed in 2.88s\n"
HITS = (
    "src/store.py:88:    lock.acquire()\nsrc/store.py:140:    lock.acquire()\nsrc/sync/pool.py:17:    lock.acquire()\n"
)
WRITTEN = "The file /home/me/app/src/parser.py has been updated."
COMMITTED = "[main 4be1c07] Keep escapes as they came\n 2 files changed, 31 insertions(+), 4 deletions(-)\n"
MISSING = "cat: config/local.toml: No such file or directory"


def call(name: str, arguments: Any, result: str | None, *, error: bool = False, batch: int = 0) -> ToolCall:
    raw = arguments if isinstance(arguments, bytes) else json.dumps(arguments).encode()
    return ToolCall(name, raw, result, error, batch, "0123456789abcdef")


READ = call("Read", {"file_path": "/home/me/app/src/cache.py"}, CACHE)
RACE = call("Bash", {"command": "go test -race -run TestReaders ./pool", "description": "Race test"}, RACES)
FAIL = call("Bash", {"command": "pytest tests/test_escapes.py"}, RED, error=True)
PASS = call("exec_command", {"cmd": "pytest tests/test_escapes.py", "workdir": "/home/me/app"}, GREEN)
GREP = call("Grep", {"pattern": "lock\\.acquire\\(", "path": "src"}, HITS)
NONE = call("Grep", {"pattern": "def flush_all", "path": "src"}, "No matches found")
EDIT = call(
    "Edit",
    {"file_path": "/home/me/app/src/parser.py", "old_string": "return s", "new_string": "return unescape(s)"},
    WRITTEN,
)
COMMIT = call("Bash", {"command": "git add -A && git commit -m 'Keep escapes as they came'"}, COMMITTED)
GONE = call("Bash", {"command": "cat config/local.toml"}, MISSING, error=True)
TYPES = call("Bash", {"command": "npx tsc --noEmit"}, "")
COUNT = call("Bash", {"command": "grep -c chalk src/theme.ts"}, "77\n")
PATCH = call(
    "apply_patch", b"*** Begin Patch\n*** Update File: docs/limits.md\n@@\n-a\n+b\n*** End Patch\n", "Success."
)
TORN = call("Bash", {"command": "make bench"}, None)

POLL = call("write_stdin", {"session_id": 7, "chars": ""}, "Process running with session ID 7\nOutput:\n")
STARTED = call(
    "Bash", {"command": "make bench", "run_in_background": True}, "Command running in background with ID: b1"
)
DELETE = call("Bash", {"command": "rm config/local.toml"}, "")
QUIET = call("Bash", {"command": "vet ./... ; echo --tidy--; go mod tidy"}, "--vet--\n--tidy--\n")
FOUND_FILE = call("Bash", {"command": "find . -name pool.py"}, "/home/me/app/src/sync/pool.py\n")

FULL = "I'll read cache.py because refresh holds the mutex across a POST; if the store takes it too, we deadlock."


@pytest.mark.parametrize(
    ("told", "before", "intent"),
    [
        # Filler: it announces, and says nothing that the call itself doesn't.
        (READ, "", False),
        (READ, "I'll check the file.", False),
        (READ, "Let me take a look at the file first.", False),
        (READ, "Let me read cache.py.", False),
        (READ, "Good! Now let me look at the code to understand how it works.", False),
        (READ, "Perfect, let's continue with `cache.py`:", False),
        (FAIL, "Now let me run the tests to make sure everything works.", False),
        (FAIL, "Running the test suite.", False),
        (COMMIT, "Great. Now commit this.", False),
        (GREP, "Let me search for that.", False),
        (EDIT, "Now the parser:", False),
        (EDIT, "I'll update parser.py.", False),
        # A reason, but for something else: the target is not named.
        (READ, "The store deadlocks under load because two writers meet, so I'll look at one more place.", False),
        (EDIT, "Escapes get lost when a key holds a surrogate. Let me fix this.", False),
        # A target with a reason or an expectation.
        (READ, FULL, True),
        (READ, "Cache holds its mutex across an HTTP POST, I suspect. Reading cache.py.", True),
        (READ, "I’m reading `cache.py` next: I expect the refresh to sleep while it holds the mutex.", True),
        (READ, "Let me check whether cache.py releases the mutex before it posts.", True),
        (FAIL, "The unescape call now runs twice for keys, so test_escapes should fail on nested objects.", True),
        (FAIL, "Run the suite again, since the previous failure came from a stale fixture.", True),
        (GREP, "Every caller of lock.acquire must release on the error path; searching for those that don't.", True),
        (EDIT, "In parser.py I'll unescape surrogate pairs before joining the chunks.", True),
        (PATCH, "limits.md still promises nested folders, which the reader refuses. Patching it.", True),
        (COMMIT, "Committing the escapes fix on its own, so that the cache work stays revertible.", True),
        (NONE, "If flush_all is gone, the shutdown hook calls something that isn't defined.", True),
        # A search is named by a word that it looks for, a call that only waits by its waiting.
        (GREP, "Who never lets go of the lock? Every acquire needs a partner, or the shutdown hangs.", True),
        (POLL, "The race run is still active; the package usually takes two minutes under instrumentation.", True),
        (POLL, "The package usually takes two minutes under instrumentation.", False),
        # Of a change, a verb that says what it is does; "update" says only that there is one.
        (EDIT, "Now add unescaping to parser.py.", True),
        (EDIT, "Let me update parser.py to use unescape instead of the raw text.", True),
        (DELETE, "The local.toml is read by nobody since the move, so I'm deleting it.", True),
        (DELETE, "Now delete the file.", False),
        (FAIL, "Let me run the tests to see the overall status.", False),
        # A dotted name, and a name spelt in one.
        (READ, "`app.CacheStore` must drop its lock before it posts, or the store deadlocks.", True),
        # Other languages: no telling apart, but a target and a reason are seen.
        (READ, "Ich lese cache.py, weil der Mutex über den POST hinweg gehalten wird.", True),
    ],
)
def test_intent_is_a_target_with_a_reason_or_an_expectation(told: ToolCall, before: str, intent: bool):
    verdict = judge(told, before, "")
    assert (verdict.intent, verdict.outcome) == (intent, False)


@pytest.mark.parametrize(
    ("told", "after", "outcome"),
    [
        # Filler: true of any result.
        (READ, "", False),
        (READ, "Done.", False),
        (READ, "I see. Now I have a clear picture of how it works.", False),
        (READ, "Now let me read the store.", False),
        (RACE, "Confirmed clean.", False),
        (RACE, "All good! Let me move on.", False),
        (PASS, "Perfect!", False),
        (EDIT, "Done! Let me fix the next one.", False),
        (EDIT, "Now update the tests.", False),
        (COMMIT, "Great, on to the next task.", False),
        # Specifics, but not of this result: repeated from the call, or announced for the next one.
        (GREP, "I searched src for lock.acquire.", False),
        (GREP, "Let me open src/sync/pool.py next.", False),
        (RACE, "17 races, 4.1M reads.", False),
        # A verdict that does not fit.
        (FAIL, "The tests pass.", False),
        (PASS, "The tests fail with an error.", False),
        (GREP, "There are no matches.", False),
        # Specifics of the result.
        (RACE, "Confirmed: 0 races, 23.4M reads, non-vacuous.", True),
        (RACE, "Clean: no races in 23,412,907 reads.", True),
        (RACE, "TestReaders took 41.8s.", True),
        (READ, "`refresh` posts to REFRESH_URL while it still has `_mutex`: that is the deadlock.", True),
        (READ, "It sleeps on line 5.", True),
        (GREP, "Three places take it: store.py twice, and pool.py:17 without a release.", True),
        (FAIL, "Two failed, both with AssertionError on the escaped capital.", True),
        (COMMIT, "Committed as 4be1c07.", True),
        (COUNT, "There are 77 usages.", True),
        (PASS, "43 passed, so the fixture was the culprit.", True),
        # Verdicts that fit.
        (PASS, "The tests pass.", True),
        (FAIL, "test_escapes still fails.", True),
        (NONE, "No matches, so nobody defines it any more.", True),
        (NONE, "It doesn't exist.", True),
        (GONE, "config/local.toml does not exist.", True),
        (TYPES, "The type check is clean.", True),
        (TYPES, "It printed nothing.", True),
        (EDIT, "parser.py now unescapes before it joins.", True),
        (POLL, "The suite is still running.", True),
        (STARTED, "The benchmark is running in the background.", True),
        (PASS, "The suite is still running.", False),
        (EDIT, "The escapes are in place. On to the tests.", True),
        (EDIT, "Let me see if the escapes are in place.", False),
        (DELETE, "local.toml is deleted.", True),
        (QUIET, "No output from either.", True),
        (FOUND_FILE, "It is in `./src/sync/pool.py`.", True),
        (FOUND_FILE, "We can open src/sync/pool.py next.", False),
        (READ, "We can see that it sleeps on line 5.", True),
        (PASS, "Let me check if the tests pass.", False),
        (TORN, "That was interrupted.", True),
        (TORN, "The benchmark is fast.", False),
    ],
)
def test_outcome_is_a_specific_or_a_fitting_verdict(told: ToolCall, after: str, outcome: bool):
    verdict = judge(told, "", after)
    assert (verdict.intent, verdict.outcome) == (False, outcome)


def test_a_call_without_both_is_a_hole():
    told = "`refresh` posts to REFRESH_URL inside `_mutex`."
    assert not judge(READ, FULL, told).hole
    assert judge(READ, FULL, "Done.").hole
    assert judge(READ, "I'll check the file.", told).hole
    assert judge(READ, "", "").hole


def test_an_exit_code_counts_as_a_verdict_of_the_result_that_has_it():
    one = call("Bash", {"command": "make check"}, "Exit code 1\n", error=True)
    assert judge(one, "", "It exited with 1.").outcome
    assert not judge(one, "", "It exited with 3.").outcome


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ("Process exited with code 0\nOutput:\n", "Nothing changed: the working tree is clean."),
        ("(Bash completed with no output)", "git status is clean."),
        ("<system>Tool ran without output</system>", "git status is clean."),
        ("Output: (empty)\nError: (none)\nExit Code: 0", "git status is clean."),
    ],
)
def test_silence_in_a_clients_wrapping_is_silence(result: str, words: str):
    assert judge(call("Bash", {"command": "git status --short"}, result), "", words).outcome


def test_a_result_is_not_touched_where_there_are_no_words():
    class Untouchable:
        def __getattribute__(self, name: str) -> Any:
            raise AssertionError(f"the result was asked for {name}")

    silent = ToolCall("Read", b'{"file_path": "a.py"}', Untouchable(), False, 0, "")  # type: ignore[arg-type]
    assert judge(silent, "", "  \n").hole
    # … nor where the words only announce the next call.
    assert judge(silent, "", "Let me check the next file.").hole


def test_words_that_are_typeset_count_like_typed_ones():
    straight, curly = 'The error says "lock is held" again.', "The error says “lock is held” again."
    held = call("Bash", {"command": "make run"}, "RuntimeError: lock is held\n", error=True)
    assert judge(held, "", straight) == judge(held, "", curly)
    assert judge(held, "", curly).outcome
    assert not judge(READ, "I’ll check the file.", "").intent


def test_only_the_words_next_to_the_call_are_looked_at():
    reason = "cache.py holds the mutex across the POST. "
    assert judge(READ, "Nothing of note happens here. " * 20 + reason, "").intent
    assert not judge(READ, reason + "Nothing of note happens here. " * 200, "").intent


# Our own tools


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("say", True),
        ("recall", True),
        ("micro_handoff", True),
        ("mcp__cutline__say", True),
        ("mcp_cutline_recall", True),
        ("cutline_say", True),
        ("cutline.recall", True),
        ("mcp__notes__micro_handoff", True),
        ("essay", False),
        ("mcp__robot__say", False),
        ("total_recall", False),
        ("say_hello", False),
        ("micro_handoffs", False),
        ("Unmicro_handoff", False),
    ],
)
def test_our_own_tools_are_known_by_name(name: str, own: bool):
    assert narration.is_own(name) is own


def test_what_a_say_call_says():
    assert narration.spoken("mcp__cutline__say", b'{"text": "It holds."}') == "It holds."
    assert narration.spoken("say", rb'{"text": "lone \ud800"}') == "lone \ud800"
    assert narration.spoken("say", b'{"text": 5}') is None
    assert narration.spoken("say", b'{"text": "torn') is None
    assert narration.spoken("say", b"[]") is None
    assert narration.spoken("mcp__robot__say", b'{"text": "beep"}') is None
    assert narration.spoken("recall", b'{"text": "x"}') is None


# Whole histories

WHY = "Cache holds its mutex across a POST, I suspect; reading cache.py."
FOUND = "`refresh` posts to REFRESH_URL inside `_mutex`, so that is the deadlock."


def agent(text: str) -> Said:
    return Said(text)


def human(text: str) -> Said:
    return Said(text, Author.HUMAN)


def read(batch: int, name: str = "cache.py", result: str = CACHE) -> ToolCall:
    return call("Read", {"file_path": f"/app/src/{name}"}, result, batch=batch)


def say(batch: int, text: str) -> ToolCall:
    return call("mcp__cutline__say", {"text": text}, "said", batch=batch)


def test_an_empty_history_is_fully_narrated():
    empty = review([])
    assert (empty.calls, empty.holes, empty.ritual, empty.coverage, empty.by_tool) == (0, (), 0, 1.0, {})
    assert review([agent("Hello."), human("Hi.")]).coverage == 1.0


def test_words_before_and_after_are_found_in_a_history():
    found = review([human("It hangs."), agent(WHY), read(1), agent(FOUND), read(3, "store.py"), agent("Done.")])
    assert (found.calls, found.intent, found.outcome, found.holes, found.coverage) == (2, 1, 1, (1,), 0.5)
    assert found.by_tool == {"Read": (2, 1)}


def test_parallel_calls_share_the_words_around_them():
    both = "Mutex order differs, I suspect, between cache.py and store.py."
    events: list[Event] = [
        agent(both),
        read(1, "cache.py"),
        read(1, "store.py", "def save_all(self):\n    ...\n"),
        read(1, "pool.py"),
        agent("`refresh` takes `_mutex` first, `save_all` never does."),
    ]
    found = review(events)
    # pool.py is not named: words for the batch are not words for everything in it.
    assert (found.calls, found.intent, found.outcome, found.holes) == (3, 2, 3, (2,))


def test_words_between_parallel_calls_stand_before_them():
    found = review([read(1, "store.py", "x = 1\n"), agent(WHY), read(1), agent(FOUND)])
    assert (found.intent, found.outcome, found.holes) == (1, 1, (0,))
    # … and not after the first: nothing had come back yet.
    assert review([read(1), agent(FOUND), read(1, "store.py", "")]).outcome == 0


def test_words_between_two_batches_answer_the_first_and_announce_the_second():
    store = "In store.py save_all waits for the same lock, I suspect."
    events = [agent(WHY), read(1), agent(f"{FOUND} {store}"), read(2, "store.py", "def save_all(): ...")]
    found = review(events)
    assert (found.intent, found.outcome, found.holes) == (2, 1, (1,))


@pytest.mark.parametrize("order", ["before", "after"])
def test_a_say_call_is_words_before_the_calls_beside_it(order: str):
    beside = [say(1, WHY), read(1)] if order == "before" else [read(1), say(1, WHY)]
    found = review([*beside, agent(FOUND)])
    assert (found.calls, found.intent, found.outcome, found.coverage) == (1, 1, 1, 1.0)


def test_a_say_call_of_its_own_answers_what_came_before():
    found = review([say(1, WHY), read(2), say(3, FOUND), read(4, "store.py")])
    assert (found.calls, found.holes) == (2, (1,))


def test_our_own_calls_are_not_counted_but_part_the_words():
    handoff = call("mcp__cutline__micro_handoff", {"done": WHY, "open": "", "went_wrong": ""}, "ok", batch=2)
    recall = call("recall", {"address": "0123456789abcdef"}, CACHE, batch=3)
    found = review([agent(WHY), read(1), handoff, agent(FOUND), recall, read(4)])
    # The words after the checkpoint are not said of the call before it, nor its document of the call after.
    assert (found.calls, found.intent, found.outcome, found.holes) == (2, 1, 0, (0, 1))
    assert found.by_tool == {"Read": (2, 2)}


def test_the_humans_words_end_a_stretch_and_narrate_nothing():
    # The human's own words are nobody's narration.
    found = review([human(WHY), read(1), human(FOUND)])
    assert (found.intent, found.outcome) == (0, 0)
    # What the agent says after the human answered is not said of the result before …
    assert review([agent(WHY), read(1), agent("Shall I?"), human("Yes."), agent(FOUND)]).outcome == 0
    # … nor what it said before the human spoke of the call after.
    assert review([agent(WHY), human("Wait."), agent("Okay, let me check."), read(1)]).intent == 0


def test_a_human_who_cuts_in_at_once_takes_no_words_away():
    # Words queued by the human arrive together with the result: the agent's first words still answer it.
    assert review([agent(WHY), read(1), human("Also look at the store."), agent(FOUND)]).outcome == 1
    # The agent proposed, the human agreed, the agent acted without another word.
    assert review([agent(WHY), human("Go on."), read(1)]).intent == 1


def test_what_the_agent_reported_before_the_human_spoke_announces_nothing():
    report = "cache.py holds its mutex across a POST, so the store deadlocks.\n\nAll of it is written down."
    assert review([agent(report), human("And the rest?"), read(1)]).intent == 0
    offer = f"{report}\n\nShall I read cache.py, to see whether refresh holds the mutex too?"
    assert review([agent(offer), human("Yes."), read(1)]).intent == 1
    # What stands directly before the call is looked at whole.
    assert review([human("And the rest?"), agent(report), read(1)]).intent == 1


def test_the_harness_has_no_say():
    found = review([agent(WHY), Said("Remember the to-do list.", Author.HARNESS), read(1), agent(FOUND)])
    assert found.coverage == 1.0


def test_ritual_counts_the_texts_that_are_only_filler():
    events: list[Event] = [
        agent("I'll check the file."),
        read(1),
        agent("Perfect! Now let me look at the next one."),
        read(2),
        agent(WHY),
        read(3),
        agent("It's 0.25s too slow. Let me check the file."),
        read(4),
        agent("I'll unescape surrogate pairs here."),
        call("Edit", {"file_path": "a.py", "old_string": "a", "new_string": "b"}, WRITTEN, batch=5),
        read(6),
        agent("Done."),
        say(7, "Nothing follows."),
    ]
    found = review(events)
    assert found.ritual == 2
    assert [verdict.ritual for verdict in found.verdicts] == [True, True, False, False, False, False]
    # A verdict on what came before is no filler.
    assert review([agent("The build passes. Now the next one."), read(1)]).ritual == 0


def test_the_verdict_on_a_call_does_not_hang_on_its_neighbours():
    quiet = [read(number) for number in range(1, 9)]
    alone = review([agent(WHY), read(9), agent(FOUND)])
    among = review([*quiet, agent(WHY), read(9), agent(FOUND), *[read(number) for number in range(10, 20)]])
    # The silent call before has the same words after it.
    assert alone.holes == () and 8 not in among.holes and len(among.holes) == among.calls - 1


PIECES = [*"aA1_ .:;,!?`\"'/\\-\n\t\ud800\x00漢é", "let me ", "because ", "no ", "fails ", "3 ", "Output:\n"]
ODD = st.lists(st.sampled_from(PIECES), max_size=60).map("".join)


@given(ODD, ODD, st.none() | ODD, st.binary(max_size=60), st.booleans())
def test_no_words_and_no_result_are_too_odd(before: str, after: str, result: str | None, raw: bytes, error: bool):
    told = ToolCall("x", raw, result, error, 0, "")
    assert judge(told, before, after) == judge(told, before, after)
    assert specifics(before) == specifics(before)


# Recorded sessions. The bounds are wide: they hold what a person sees who reads the sessions.


def recorded(path: Path) -> list[Event]:
    """A session file of Claude Code or Codex, roughly: words and calls in the file's order."""
    events: list[Any] = []
    results: dict[str, str] = {}
    batches: dict[str, int] = {}
    turn = 0  # a Codex file does not say which calls were made at once: those between two results
    for line in path.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        item, message = record.get("payload") or {}, record.get("message") or {}
        if record.get("type") == "response_item":
            kind = item.get("type")
            if kind == "message" and item["role"] == "assistant":
                events.append(agent(_plain(item["content"])))
            elif kind in ("function_call", "custom_tool_call"):
                raw = (item.get("arguments") or item.get("input") or "").encode()
                events.append((item["call_id"], item["name"], raw, turn))
            elif kind in ("function_call_output", "custom_tool_call_output"):
                results[item["call_id"]] = _plain(item["output"])
                turn += 1
        elif message and not record.get("isSidechain"):
            blocks = message["content"]
            for block in [{"type": "text", "text": blocks}] if isinstance(blocks, str) else blocks:
                if block["type"] == "tool_result":
                    results[block["tool_use_id"]] = _plain(block.get("content"))
                elif block["type"] == "tool_use":
                    number = batches.setdefault(message["id"], len(batches))
                    events.append((block["id"], block["name"], json.dumps(block["input"]).encode(), number))
                elif block["type"] == "text":
                    events.append(agent(block["text"]) if message["role"] == "assistant" else human(block["text"]))
    return [
        event
        if isinstance(event, Said)
        else ToolCall(event[1], event[2], results.get(event[0]), False, event[3], event[0])
        for event in events
    ]


def _plain(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(block["text"] for block in content or [] if isinstance(block.get("text"), str))


@pytest.mark.parametrize(
    ("file", "calls", "intent", "outcome", "coverage"),
    [
        # Hardly a word between its calls.
        ("claude-code/entire-cli_2a075ef1_low-narration.jsonl", 285, (0.0, 0.08), (0.0, 0.08), (0.0, 0.05)),
        # Speaks at every fifth batch.
        ("claude-code/oh-my-posh_77ff57b0_opus5_524calls.jsonl", 524, (0.03, 0.2), (0.03, 0.2), (0.0, 0.1)),
        # Speaks before half of its calls, mostly to announce them.
        ("claude-code/entire-cli_432b48f6_36human_2compact.jsonl", 248, (0.1, 0.4), (0.1, 0.4), (0.01, 0.2)),
        # Says why before most batches, and what came of it after some.
        ("codex/agentv_f4771ece_images.jsonl", 311, (0.3, 0.7), (0.2, 0.6), (0.08, 0.4)),
    ],
)
def test_recorded_sessions_get_the_coverage_that_a_reader_would_give(
    shared: Path,
    file: str,
    calls: int,
    intent: tuple[float, float],
    outcome: tuple[float, float],
    coverage: tuple[float, float],
):
    found = review(recorded(shared / "data" / "sessions" / file))
    assert found.calls == calls
    assert intent[0] <= found.intent / calls <= intent[1]
    assert outcome[0] <= found.outcome / calls <= outcome[1]
    assert coverage[0] <= found.coverage <= coverage[1]
    assert sum(number for number, _ in found.by_tool.values()) == calls
    assert sum(holes for _, holes in found.by_tool.values()) == len(found.holes)
    assert list(found.holes) == sorted(set(found.holes)) and found.holes[-1] < calls


def test_every_recorded_call_has_a_target_fit_to_be_shown(shared: Path):
    seen = named = 0
    for file in ("claude-code/skills_96770173_68human_388calls.jsonl", "codex/skills_d5c56be2_58human_543calls.jsonl"):
        for event in recorded(shared / "data" / "sessions" / file):
            if isinstance(event, ToolCall):
                text = target(event.name, event.arguments)
                assert len(text) <= 120 and text.isprintable() and text == text.strip()
                seen, named = seen + 1, named + bool(text)
    assert seen > 900 and named / seen > 0.98
