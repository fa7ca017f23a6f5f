"""Two claims of which one can't stand: what is found, and that work which went on is no contradiction."""

import json

import pytest

from cutline import checkpoint, contradictions, narration
from cutline.blocks import Author, Event, Said, ToolCall
from cutline.checkpoint import Document


def say(text: str) -> Said:
    return Said(text)


def ran(command: str, result: str = "ok", address: str = "a" * 16) -> ToolCall:
    return ToolCall("Bash", json.dumps({"command": command}).encode(), result, False, 0, address)


def looked(path: str, result: str = "def main(): ...") -> ToolCall:
    return ToolCall("Read", json.dumps({"file_path": path}).encode(), result, False, 0, "b" * 16)


def edited(path: str) -> ToolCall:
    given = {"file_path": path, "old_string": "a", "new_string": "b"}
    return ToolCall("Edit", json.dumps(given).encode(), "done", False, 0, "c" * 16)


def document(*claims: str, done: str = "x", **more: object) -> Document:
    facts = [{"claim": claim, "basis": "measured", "evidence": ""} for claim in claims]
    made = checkpoint.read({"done": done, "open": "nothing", "went_wrong": "nothing", "facts": facts, **more})
    assert isinstance(made, Document)
    return made


README = looked("README.md", "A till for cafés.")

# Each first claim, and the one that opposes it: nothing that lies between them says why.
OPPOSED = [
    ("REPRODUCED.", "The premise does not reproduce."),
    ("The deadlock reproduces.", "I could not reproduce the deadlock."),
    ("Reproduced on the second run.", "It is not reproduced on the second run."),
    ("All tests pass.", "2 tests fail."),
    ("The suite is green.", "The tests fail."),
    ("The Windows build is broken.", "The Windows build works."),
    ("tests/test_io.py passes.", "tests/test_io.py fails."),
    ("The stale index is the cause.", "The stale index is not the cause."),
    ("The retries were caused by the short timeout.", "The short timeout isn't the cause of the retries."),
    ("The culprit is `parse_row`.", "`parse_row` is not the root cause."),
    ("12 of 40 requests fail.", "14 of 40 requests fail."),
    ("12 of 40 fail", "14 out of 40 fail"),
    ("12/40 samples were dropped.", "twelve of 41 samples were dropped, 13 of 40 samples were dropped."),
    ("The audit has 128 call sites in 5 packages.", "The audit has 127 call sites in 5 packages."),
    ("The cold start takes 41 ms.", "The cold start takes 47 ms."),
    ("The worker holds 23,400,000 rows in memory.", "The worker holds 24,300,000 rows in memory."),
    ("Line coverage of the parser is 97 %.", "Line coverage of the parser is 79%."),
    ("`Cache.get` is thread-safe.", "`Cache.get` is not thread-safe."),
    ("The handler holds the session lock.", "The handler does not hold the session lock."),
    ("The `--dry-run` flag is supported.", "The `--dry-run` flag is unsupported."),
    ("The migration 0042 exists in the image.", "The migration 0042 is missing in the image."),
    ("The exports of both tills are identical.", "The exports of both tills differ."),
    ("The limit of the queue is valid.", "The limit of the queue is invalid."),
]

# Opposed as well, and not found: silence is the price of no false alarm.
SLIP_THROUGH = [
    ("The two exports are identical.", "The two exports differ."),  # of two, another two may differ
    ("81 tests pass.", "83 tests pass."),  # perhaps of another suite
    ("12 of 40 requests fail.", "Of the 40 requests, 14 time out."),  # other words
    ("The cause is the stale index.", "The cause is the short timeout."),  # there may be two
    ("The tests passed.", "The tests fail."),  # then, and now
    ("The deadlock reproduces.", "The hang can't be reproduced."),  # the same, by another name
]

# Two sets of pairs, of what a text and then a document say, for the rates of docs/checkpoint.md. The first was written
# before the rules were last changed: its false alarms led to some of them.
FIRST_OPPOSED = [
    (
        "I ran the importer against the March dump: 3 of 18 rows are rejected.",
        "4 of 18 rows are rejected by the importer",
    ),
    ("Reproduced: the hang shows up on the first try.", "the hang does not reproduce"),
    ("The leak does not reproduce under valgrind.", "the leak reproduces under valgrind"),
    ("The root cause is the missing index on orders.", "the missing index on orders is not the root cause"),
    ("So the DNS lookup is what causes the delay.", "the delay is not caused by the DNS lookup"),
    ("The whole suite passes.", "3 tests in the suite fail"),
    ("Lint is clean.", "lint is not clean"),
    ("The build succeeds on Alpine.", "the Alpine build fails"),
    ("p95 latency is 210 ms.", "p95 latency is 310 ms"),
    ("The table has 1,204 rows.", "the table has 1,240 rows"),
    ("`sync_all` is idempotent.", "`sync_all` is not idempotent"),
    ("The token never expires.", "the token expires"),
    ("Config reload works without a restart.", "config reload does not work without a restart"),
    ("There are 9 callers of `flush`.", "`flush` has 11 callers"),
    ("The worker pool is limited to 8 threads.", "the worker pool is limited to 16 threads"),
    ("The header is sent twice.", "the header is sent once"),
    ("Every fixture loads.", "two fixtures do not load"),
    ("The migration is reversible.", "the migration is irreversible"),
    ("No data was lost in the crash.", "data was lost in the crash"),
    ("The flaky test is caused by the clock.", "the clock has nothing to do with the flaky test"),
    ("The bundle weighs 412 kB.", "the bundle weighs 421 kB"),
    ("The proxy strips the cookie.", "the proxy does not strip the cookie"),
    ("7 out of 25 links are dead.", "8 of the 25 links are dead"),
    ("I can't reproduce the crash on 3.12.", "the crash reproduces on 3.12"),
    ("The regression came in with 2.3.0.", "the regression came in with 2.4.0"),
    ("The fix is deployed on staging.", "the fix is not deployed on staging"),
    ("The parser accepts trailing commas.", "the parser rejects trailing commas"),
    ("The two hashes are equal.", "the two hashes differ"),
    ("Memory stays flat at 180 MB over an hour.", "memory grows over an hour"),
    ("The endpoint returns 404 for unknown ids.", "the endpoint returns 500 for unknown ids"),
]

FIRST_SILENT = [
    ("The importer rejects 3 of 18 rows of March.", "the importer rejects 5 of 18 rows of April"),
    ("The hang reproduces on arm64.", "the hang does not reproduce on x86"),
    ("The suite fails because of the missing fixture. With the fixture restored it passes.", "the suite passes"),
    ("I thought the index was the cause; it is not.", "the index is not the cause"),
    ("Lint is clean, types are not.", "lint is clean"),
    ("p50 is 40 ms and p95 is 210 ms.", "p95 is 210 ms"),
    ("The table had 1,204 rows this morning.", "the table has 1,240 rows"),
    ("The old client does not retry.", "the new client retries"),
    ("Config reload does not work on Windows.", "config reload works"),
    ("9 callers remain in the api package.", "11 callers remain in the web package"),
    ("Worker A holds 8 connections.", "worker B holds 16 connections"),
    ("The first run took 12 s.", "the second run took 9 s"),
    ("Two fixtures do not load yet. Mending them.", "every fixture loads"),
    ("Migration 12 is reversible.", "migration 13 is not reversible"),
    ("No data is lost when the flag is set.", "data is lost without the flag"),
    ("The clock is not the cause of the second failure.", "the clock is the cause of the first failure"),
    ("Minified the bundle weighs 412 kB.", "unminified the bundle weighs 1,310 kB"),
    ("The proxy does not strip the cookie by default.", "the proxy strips the cookie in strict mode"),
    ("Page one: 7 of 25 links are dead.", "page two: 8 of 25 links are dead"),
    ("3.11 passes.", "3.12 fails"),
    ("Round 1: 4 failures.", "round 2: 2 failures"),
    ("The user says that the login is broken.", "the login works"),
    ("It would be wrong to say that the cache is safe.", "the cache is safe under one writer"),
    ("The parser accepts commas.", "the parser does not accept semicolons"),
    ("The README claims: the cache is thread-safe.", "the cache is not thread-safe"),
    ("Not all rows load.", "the rows of March load"),
    ("The endpoint returns 404 for unknown ids.", "the endpoint returns 200 for known ids"),
    ("Nothing is missing.", "the report for May is missing"),
    ("The lock is not held while the file is read.", "the lock is held while the file is written"),
    ("Total: 40 files. Changed: 12 files.", "28 files are unchanged"),
]

# The second was written after that and counted once.
SECOND_OPPOSED = [
    ("5 of 60 images fail to decode.", "6 of 60 images fail to decode"),
    ("Reproduced with the nightly build.", "not reproducible with the nightly build"),
    ("I cannot reproduce the flicker.", "the flicker reproduces"),
    ("The garbage collector is the culprit.", "the garbage collector is not the culprit"),
    ("The tests in tests/test_wire.py pass.", "the tests in tests/test_wire.py fail"),
    ("CI is green.", "CI is red"),
    ("The Docker build is broken.", "the Docker build works"),
    ("The job takes 14 minutes.", "the job takes 41 minutes"),
    ("The log has 88 warnings.", "the log has 90 warnings"),
    ("`retry()` is safe to call twice.", "`retry()` is not safe to call twice"),
    ("The scheduler locks the table.", "the scheduler doesn't lock the table"),
    ("Feature flag beta_ui is enabled.", "feature flag beta_ui is disabled"),
    ("The backup exists.", "the backup is missing"),
    ("The schema has 31 tables.", "the schema has 13 tables"),
    ("Compression is used for uploads.", "compression is not used for uploads"),
    ("The two clocks disagree by 3 s.", "the two clocks agree"),
    ("Nobody calls `legacy_close`.", "`legacy_close` is called from till.py"),
    ("The port is 8080.", "the port is 8081"),
    ("All 12 workers answered.", "11 workers answered"),
    ("The patch applies cleanly.", "the patch does not apply cleanly"),
    ("Coverage: 91 %.", "coverage is 81 %"),
    ("The bug is only in the reader.", "the bug is in the writer too"),
    ("The heap peaks at 512 MB.", "the heap peaks at 640 MB"),
    ("The signature is valid.", "the signature is invalid"),
    ("Search returns stale results.", "search does not return stale results"),
]

SECOND_SILENT = [
    ("The reader is fast and holds the lock.", "the writer is slow and does not hold the lock"),
    ("The errors are in the browser test files, not in the reader itself.",) * 2,
    ("On arm64, the build passes.", "on x86, the build fails"),
    ("The reader was checked. It is safe.", "the writer was checked. It is not safe."),
    ("## Reader\n12 rows are lost.", "the writer: 14 rows are lost"),
    ("5 of 60 images fail to decode with libfoo 2.", "5 of 60 images fail to decode with libfoo 3"),
    ("The flicker reproduces in Firefox.", "the flicker does not reproduce in Chrome"),
    ("The collector was suspected; the collector is not the culprit.", "the pool is the culprit"),
    ("tests/test_wire.py passes (run alone).", "tests/test_wire.py fails (run with the others)"),
    ("CI was red until noon.", "CI is green"),
    ("The job takes 14 minutes on two cores.", "the job takes 41 minutes on one core"),
    ("The first log has 88 warnings.", "the second log has 90 warnings"),
    ("`retry()` is safe.", "`retry_all()` is not safe"),
    ("The scheduler locks the table.", "the scheduler does not lock the row"),
    ("beta_ui is enabled for staff.", "beta_ui is disabled for guests"),
    ("The backup of May exists.", "the backup of June is missing"),
    ("The schema has 31 tables.", "the schema has 13 views"),
    ("Compression is not needed for small files.", "compression is needed"),
    ("Run A: 3 failures. Run B: 5 failures.", "run B: 5 failures"),
    ("The port is 8080 inside the container.", "the port is 8081 on the host"),
    ("All 12 workers answered. Later 11 workers answered.", "11 workers answered"),
    ("The patch applies cleanly to main.", "the patch does not apply cleanly to next"),
    ("Coverage is 91 % of lines.", "coverage is 81 % of branches"),
    ("Whether the bug is in the reader is open.", "the bug is not in the reader"),
    ("Without the limit the heap peaks at 640 MB.", "the heap peaks at 512 MB"),
    ("The first signature is valid.", "the second signature is invalid"),
    ("Page 3 works.", "page 4 does not work"),
    ("File a.py: no error. File b.py: an error.", "file a.py has no error"),
    ("The man page says the flag is supported.", "the flag is not supported"),
    ("The client sends 2 headers, the server 3.", "the server sends 3 headers"),
    ("The suite has 81 tests, of them 12 are slow.", "the suite has 12 slow tests"),
]

MISSED = {
    "4 of 18 rows are rejected by the importer",
    "the hang does not reproduce",
    "the token expires",
    "the header is sent once",
    "two fixtures do not load",
    "the migration is irreversible",
    "the clock has nothing to do with the flaky test",
    "the crash reproduces on 3.12",
    "the regression came in with 2.4.0",
    "the parser rejects trailing commas",
    "the two hashes differ",
    "memory grows over an hour",
    "the endpoint returns 500 for unknown ids",
    "the two clocks agree",
    "`legacy_close` is called from till.py",
    "the port is 8081",
    "the patch does not apply cleanly",
    "coverage is 81 %",
    "the bug is in the writer too",
    "the heap peaks at 640 MB",
}

# The same in the order of work: here the later claim takes the place of the earlier one.
SUPERSEDED: list[tuple[str, list[Event]]] = [
    ("an edit", [say("The tests fail."), edited("till/tax.py"), say("The tests pass.")]),
    ("a new run", [say("2 tests fail."), ran("pytest -q", "81 passed"), say("All tests pass.")]),
    (
        "a measurement",
        [say("12 of 40 fail."), ran("pytest -q", "14 failed, 26 passed of 40"), say("14 of 40 fail.")],
    ),
    ("a command that may change things", [say("The image is missing."), ran("make image"), say("The image exists.")]),
    ("now", [say("12 of 40 requests fail."), README, say("14 of 40 requests fail now.")]),
    ("after the fix", [say("The suite is red."), say("After the fix the suite is green.")]),
    ("it turned out", [say("The index is the cause."), say("It turned out that the index is not the cause.")]),
    (
        "a word in the sentence before",
        [say("12 of 40 requests fail."), README, say("I had misread the log. 14 of 40 requests fail.")],
    ),
    (
        "a correction",
        [say("12 of 40 requests fail."), README, say("14 of 40 requests fail."), say("The 12 was a slip of mine.")],
    ),
    ("before and after", [say("Before: 12 of 40 requests fail. After: 3 of 40 requests fail.")]),
    ("past and present", [say("The build failed on arm64. The build passes on arm64.")]),
    ("no longer", [say("The lock is held by the reader."), say("The lock is no longer held by the reader.")]),
    (
        "the human tells of it",
        [say("The server is broken."), Said("I restarted the server.", Author.HUMAN), say("The server works.")],
    ),
    (
        "work, then the last word",
        [say("REPRODUCED."), say("It does not reproduce."), ran("go test"), say("Reproduced.")],
    ),
    ("one sentence", [say("The export is valid on main, while the export is invalid on main without the header.")]),
]

# Said of different things, not claimed at all, or the same in other words.
NONE_AT_ALL: list[tuple[str, ...]] = [
    ("The unit tests pass.", "The browser tests fail."),
    ("12 of 40 requests fail.", "14 of 52 requests fail."),
    ("12 of 40 requests fail.", "14 of 40 workers fail."),
    ("38 tests pass.", "2 tests fail."),
    ("The cold start takes 41 ms.", "The warm start takes 12 ms."),
    ("The cold start takes 41.2 ms.", "The cold start takes 41 ms."),
    ("The export weighs 2 MB.", "The export weighs 2,100 KB."),
    ("The cache is probably the cause.", "The cache is not the cause."),
    ("If the cache is the cause, a restart helps.", "The cache is not the cause."),
    ("Is the cache the cause?", "The cache is not the cause."),
    ("I expect that the tests fail.", "The tests pass."),
    ('The note says "the cache is the cause".', "The cache is not the cause."),
    ("> The tests fail.", "The tests pass."),
    ("```\n12 of 40 requests fail\n```", "14 of 40 requests fail."),
    ("| requests | 12 of 40 fail |", "| requests | 14 of 40 fail |"),
    ("About 12 of 40 requests fail.", "14 of 40 requests fail."),
    ("Step 3 is the parser.", "Step 4 is the parser."),
    ("Line 41 calls the parser.", "Line 52 calls the parser."),
    ("**Reader**: 12 rows are lost\n**Writer**: 14 rows are lost",),
    ("## Ghost files\nNone.", "## No ghost files\nNone."),
    ("Added 3 tests for the parser.", "Added 5 tests for the parser."),
    ("The other tests pass.", "The tests fail."),
    ("No tests fail.", "All tests pass."),
    ("On arm64, the build passes.", "On x86, the build fails."),
    ("The build passes (with clang).", "The build fails (with gcc)."),
    ("The reader is fast and holds the lock.", "The writer is slow and does not hold the lock."),
    ("The reader was read. It is safe.", "The writer was read. It is not safe."),
    ("Reader: the rows are valid.", "Writer: the rows are not valid."),
    ("The `pass` keyword is used.", "The `fail` keyword is used."),
]

RITUAL = [
    "Let me check the file.",
    "Perfect! Now let me run the tests.",
    "I'll look at the next one.",
    "Great, that works.",
    "Good. Moving on to the next step.",
    "Confirmed clean.",
    "Hmm, that failed. Let me try another way.",
    "Done. All green.",
    "Excellent! The build passed.",
    "Now the tests.",
]


@pytest.mark.parametrize(("first", "second"), OPPOSED, ids=lambda text: text[:40])
class TestTwoClaimsOfWhichOneCantStand:
    def test_in_two_texts_with_nothing_but_a_look_elsewhere_between(self, first: str, second: str):
        found = contradictions.find([say(first), say(second)])
        assert len(found) == 1, found

    def test_in_a_text_and_the_document(self, first: str, second: str):
        (pair,) = contradictions.find([ran("make"), say(first)], document(second))
        assert not pair.first.in_document and pair.second.in_document
        assert pair.first.address == "a" * 16

    def test_in_the_document_alone(self, first: str, second: str):
        (pair,) = contradictions.find([], document(first, second))
        assert pair.first.in_document and pair.second.in_document

    def test_in_a_document_that_says_again_what_work_has_overtaken(self, first: str, second: str):
        told: list[Event] = [say(first), edited("a.py"), ran("make check"), say(second)]
        assert contradictions.find(told) == []
        assert len(contradictions.find(told, document(first))) == 1
        assert contradictions.find(told, document(second)) == []


@pytest.mark.parametrize("told", [told for _, told in SUPERSEDED], ids=[why for why, _ in SUPERSEDED])
def test_a_claim_that_took_anothers_place_is_none(told: list[Event]):
    assert contradictions.find(told) == []
    assert contradictions.find(told, document()) == []


@pytest.mark.parametrize("texts", NONE_AT_ALL, ids=lambda texts: texts[0][:40])
def test_what_is_said_of_other_things_or_not_claimed_is_none(texts: tuple[str, ...]):
    assert contradictions.find([say(text) for text in texts]) == []
    assert contradictions.find([say(text) for text in texts[:-1]], document(texts[-1])) == []
    assert contradictions.find([], document(*texts)) == []


@pytest.mark.parametrize(("first", "second"), SLIP_THROUGH, ids=lambda text: text[:40])
def test_what_slips_through_is_known(first: str, second: str):
    assert contradictions.find([say(first)], document(second)) == []


@pytest.mark.parametrize(("first", "second"), FIRST_OPPOSED + SECOND_OPPOSED, ids=lambda text: text[:40])
def test_a_pair_of_the_measured_sets_is_found_or_known_to_slip_through(first: str, second: str):
    assert (contradictions.find([say(first)], document(second)) == []) is (second in MISSED)


@pytest.mark.parametrize(("first", "second"), FIRST_SILENT + SECOND_SILENT, ids=lambda text: text[:40])
def test_a_pair_that_is_none_is_not_found(first: str, second: str):
    assert contradictions.find([say(first)], document(second)) == []


def test_ritual_filler_is_none():
    told: list[Event] = []
    for number, text in enumerate(RITUAL * 5):
        told += [say(text), ran(f"make step{number % 7}")]
    assert contradictions.find(told) == []
    assert contradictions.find(told, document(done="All done.")) == []


class TestWhatLiesBetween:
    def test_a_look_at_something_else_explains_nothing(self):
        told = [say("12 of 40 requests fail."), README, say("14 of 40 requests fail.")]
        assert len(contradictions.find(told)) == 1

    def test_a_look_at_what_the_claim_is_about_explains_it(self):
        log = looked("requests.log", "request 1 failed")
        assert contradictions.find([say("12 of 40 requests fail."), log, say("14 of 40 requests fail.")]) == []

    def test_of_a_claim_without_a_subject_any_call_explains_it(self):
        assert contradictions.find([say("The tests pass."), README, say("The tests fail.")]) == []

    def test_our_own_tools_explain_nothing(self):
        own = ToolCall("mcp__cutline__recall", b'{"what":"requests"}', "requests", False, 0, "d" * 16)
        assert len(contradictions.find([say("12 of 40 requests fail."), own, say("14 of 40 requests fail.")])) == 1

    def test_a_word_that_both_claims_have_tells_of_no_change(self):
        assert len(contradictions.find([say("The tests pass now.")], document("the tests fail now"))) == 1

    def test_what_went_wrong_and_what_led_nowhere_is_told_as_past(self):
        held = document("the tests pass", dead_ends=["the tests fail"], went_wrong="the tests fail")
        assert contradictions.find([], held) == []


class TestWhoseWords:
    def test_the_humans_are_no_claim_of_the_agents(self):
        assert (
            contradictions.find([Said("14 of 40 requests fail.", Author.HUMAN), say("12 of 40 requests fail.")]) == []
        )

    def test_words_said_with_the_tool_are(self):
        words = ToolCall("mcp__cutline__say", b'{"text":"12 of 40 requests fail."}', "said", False, 0, "e" * 16)
        assert narration.spoken(words.name, words.arguments)
        assert len(contradictions.find([words], document("14 of 40 requests fail"))) == 1

    def stored(self, result: str) -> ToolCall:
        given = {"done": "x", "open": "y", "went_wrong": "z", "facts": [FACT]}
        return ToolCall("mcp__cutline__micro_handoff", json.dumps(given).encode(), result, False, 0, "f" * 16)

    def test_an_earlier_documents_are_and_a_refused_ones_are_not(self):
        late = document("14 of 40 requests fail")
        assert len(contradictions.find([self.stored("checkpoint stored 2026-09-21")], late)) == 1
        assert contradictions.find([self.stored("checkpoint refused: x")], late) == []

    def test_a_pair_of_an_earlier_stretch_is_not_brought_up_again(self):
        told = [say("12 of 40 requests fail."), say("14 of 40 requests fail."), say("Next.")]
        assert len(contradictions.find(told, since=1)) == 1
        assert contradictions.find(told, since=2) == []


FACT = {"claim": "12 of 40 requests fail", "basis": "measured", "evidence": ""}


@pytest.mark.parametrize(
    "text",
    [
        "",
        " " * 40_000 + "x",
        "`" * 40_000,
        "(" * 40_000,
        "**" * 20_000,
        "1" * 40_000,
        "\ud83d is",
        "１２ of ４０ fail",
        "²",
    ],
    ids=lambda text: repr(text[:3]),
)
def test_nothing_in_a_text_is_too_odd(text: str):
    assert contradictions.find([say(text), say(text)]) == []


def test_a_claim_is_shown_as_it_was_written():
    (pair,) = contradictions.find(
        [say("So: **`Cache.get()`** is thread-safe.")], document("`Cache.get()` isn't thread-safe")
    )
    assert pair.first.text.endswith("`Cache.get()`** is thread-safe")
    assert pair.second.text == "`Cache.get()` isn't thread-safe"
