"""Compactions of the other clients undone: the same words come back in each client's own file, or it is said plainly."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import gemini_made
import test_codex_sessions as codex_made
import test_copilot_cli_sessions as copilot_made
import test_opencode_sessions as opencode_made
import test_pi_sessions as pi_made
from conftest import SHARED
from cutline.errors import CutlineError, InputError, NothingToCut
from cutline.sessions.clients import client, open_path
from cutline.sessions.codex import reviving as codex_undoing
from cutline.sessions.codex.history import history as codex_history
from cutline.sessions.cutting import execute, prospect
from cutline.sessions.model import Session
from cutline.sessions.reviving import Revival, revive, uncompacted
from test_command_line import Shell, fails, shell  # noqa: F401

SUMMARY = "What was done: the “ledger” was looked at – off by one, probably."
PREFIX = (
    "Another language model started to solve this problem and produced a summary of its thinking process. "
    "Here is the summary:\n"
)
SEALED = {"type": "compaction", "encrypted_content": SUMMARY}
PROMPT = "Count to five, and leave ünïcode “as is”."
END = "Five it is."


def words(number: int) -> str:
    return f"Step {number}: I look because {number} fails."


def secret(number: int) -> str:
    return f"secret {number} " * 60


def steps(*numbers: int, whole: bool = False) -> list[str]:
    return [
        entry for n in numbers for entry in (words(n), *((f"call c{n}", f"result c{n}: {secret(n)}") if whole else ()))
    ]


def told(session: Session) -> list[str]:
    """A history in short: texts, calls by their ids, results with their words; the notice aside."""
    found = []
    for message, origin in zip(json.loads(session.history.body)["messages"], session.history.origins, strict=True):
        for block in message["content"]:
            if block["type"] == "text" and origin != "harness" and "[cutline]" not in block["text"]:
                found.append(block["text"])
            elif block["type"] == "tool_use":
                found.append(f"call {block['id']}")
            elif block["type"] == "tool_result":
                content = block["content"]
                text = content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
                found.append(f"result {block['tool_use_id']}: {text}")
    return found


def revived(session: Session, at: Any = None) -> tuple[Revival, Session]:
    """Revive, cut, write, prove; the copy is read again."""
    done = revive(session)
    written, proof = execute(prospect(done.session, at=done.place if at is None else at), mark="revived")
    assert not proof.unchanged
    return done, client(session.client).open_session(written.path, written.id)


def stored(session: Session) -> str:
    """Everything that is kept of a session, wherever it is kept."""
    if session.path.suffix == ".db":
        with closing(sqlite3.connect(session.path)) as database:
            asked = (
                "SELECT data FROM message WHERE session_id = ?1 UNION ALL SELECT data FROM part WHERE session_id = ?1"
            )
            return "\n".join(row[0] for row in database.execute(asked, (session.id,)))
    folder = session.path.parent
    if session.path.name == "events.jsonl":
        return "\n".join(path.read_text("utf-8") for path in sorted(folder.rglob("*")) if path.is_file())
    if session.client == "opencode" and folder.parent.name == "session":
        storage = folder.parent.parent
        parts = [*storage.glob(f"message/{session.id}/*.json")]
        parts += [part for one in parts for part in storage.glob(f"part/{one.stem}/*.json")]
        return "\n".join(path.read_text("utf-8") for path in parts)
    return session.path.read_text("utf-8")


# -------------------------------------------------------------------------------- one session, each client's way


def codex(folder: Path, *, form: str = "words", counted: bool = False) -> Session:
    """A summary in the agent's words, as asked of it; an encrypted one; in the old form one that keeps no history."""
    made = codex_made.Rollout(counted)
    made.person(PROMPT)
    for number in (1, 2, 3):
        made.agent(words(number))
        made.call(f"c{number}", secret(number), cmd="look")
        made.count(10_000 * number)
    person = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": PROMPT}]}
    if form == "sealed":
        made.add("compacted", message="", replacement_history=[person, SEALED])
    else:
        made.thought("How do I put it?")
        del made.records[-2]  # of this reasoning the client tells nothing in an event
        made.item("message", role="assistant", content=[{"type": "output_text", "text": SUMMARY}])
        made.count(31_000)
        summary = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": PREFIX + SUMMARY}]}
        made.add(
            "compacted",
            message=PREFIX + SUMMARY,
            **({} if form == "old" else {"replacement_history": [person, summary]}),
        )
    made.event("context_compacted")
    for number in (4, 5):
        made.agent(words(number))
        made.call(f"c{number}", secret(number), cmd="look")
        made.count(5_000)
    made.agent(END)
    for number, record in enumerate(made.records):
        if counted:
            record["ordinal"] = number
    return open_path(made.write(folder))


def pi(folder: Path, *, version: int | None = 3) -> Session:
    made = pi_made.Writer(version)
    made.human(PROMPT)
    ids = [made.step(f"c{number}", words(number), secret(number)) for number in (1, 2, 3)]
    kept = len(made.entries)
    made.step("c4", words(4), secret(4))
    first = {"firstKeptEntryIndex": kept + 1} if version is None else {"firstKeptEntryId": f"{kept + 1:08x}"}
    made.add("compaction", summary=SUMMARY, tokensBefore=31_000, details={"readFiles": []}, **first)
    made.step("c5", words(5), secret(5))
    made.agent(pi_made.text(END))
    assert len(ids) == 3
    return open_path(made.write(folder))


def opencode(folder: Path, *, kept_in: str = "database", overflow: bool = False) -> Session:
    made = opencode_made.Writer()
    made.human(PROMPT)
    for number in (1, 2, 3):
        made.step(f"c{number}", words(number), secret(number))
    tail = {} if overflow else {"tail_start_id": made.step("c4", words(4), secret(4))}
    made.human({"type": "compaction", "auto": True, "overflow": overflow, **tail})
    made.agent(SUMMARY, summary=True, mode="compaction", agent="compaction")
    if overflow:
        made.human(PROMPT)
        made.step("c4", words(4), secret(4))
    else:
        made.human({"type": "text", "text": "Continue if you have next steps.", "synthetic": True})
    made.step("c5", words(5), secret(5))
    made.agent(END)
    path: Path = getattr(made, kept_in)(folder)
    return client("opencode").open_session(path, made.id)


def copilot(folder: Path) -> Session:
    made = copilot_made.Writer()
    made.human(PROMPT)
    for number in (1, 2, 3):
        made.step(f"c{number}", words(number), secret(number))
    made.add("session.compaction_start", trigger="auto", tokenLimit=128_000)
    made.add("model.response", response={"content": SUMMARY})
    made.step("c4", words(4), secret(4))  # it goes on while it is compacted in the background
    made.add("session.compaction_complete", success=True, summaryContent=SUMMARY, preCompactionTokens=31_000)
    made.step("c5", words(5), secret(5))
    made.agent(END)
    path = made.write(folder)
    (path.parent / "checkpoints").mkdir()
    (path.parent / "checkpoints" / "001.md").write_text(SUMMARY, "utf-8")
    return open_path(path)


def gemini(folder: Path, *, resumed: bool = False) -> Session:
    """Its `$set` gives all messages new ids, and those that are kept another form; a resume does so again."""
    made = gemini_made.Writer()
    made.record("user", [{"text": "<session_context>\nToday is Monday.\n</session_context>"}])
    context = dict(made.records[0])
    made.human(PROMPT)
    for number in (1, 2, 3):
        made.agent(words(number), gemini_made.made(f"c{number}", secret(number)))
    made.human("Go on.")
    made.agent(words(4), gemini_made.made("c4", secret(4)))

    def row(id_: str, type_: str, parts: list[dict[str, Any]]) -> dict[str, Any]:
        return {"id": id_, "timestamp": "2026-10-05T09:30:00.000Z", "type": type_, "content": parts}

    def again(prefix: str) -> list[dict[str, Any]]:
        call_ = {"functionCall": {"id": "run_shell_command__c4", "name": "run_shell_command", "args": {}}}
        return [
            context,
            row(f"{prefix}1", "user", [{"text": f"<state_snapshot>{SUMMARY}</state_snapshot>"}]),
            row(f"{prefix}2", "gemini", [{"text": "Got it. Thanks for the additional context!"}]),
            row(f"{prefix}3", "user", [{"text": "Go on."}]),
            row(f"{prefix}4", "gemini", [{"text": words(4)}, call_]),
            row(f"{prefix}5", "user", [gemini_made.answer("run_shell_command__c4", "run_shell_command", secret(4))]),
        ]

    made.records.append({"$set": {"messages": again("a")}})
    if resumed:
        made.records += [{"$set": {"messages": [context]}}, {"$set": {"messages": again("b")}}]
    made.agent(words(5), gemini_made.made("c5", secret(5)))
    made.agent(END)
    return open_path(gemini_made.written(folder, made.lines()))


@dataclass(frozen=True)
class Case:
    """A client's way to write the session, what it notes of its compaction, what else is said, the summary as written."""

    make: Callable[..., Session]
    options: dict[str, Any]
    tokens: int = 31_000
    trigger: str = ""
    more: tuple[str, ...] = ()
    summary: str = json.dumps(SUMMARY, ensure_ascii=False)[1:-1]


TOLD = json.dumps(PREFIX + SUMMARY, ensure_ascii=False)[1:-1]
SNAPSHOT = f"<state_snapshot>{SUMMARY}</state_snapshot>"
CASES = {
    "codex": Case(codex, {}, 30_020, summary=TOLD),
    "codex, counted": Case(codex, {"counted": True}, 30_020, summary=TOLD),
    "codex, the old form": Case(codex, {"form": "old"}, 30_020, summary=TOLD),
    "codex, encrypted": Case(codex, {"form": "sealed"}, 30_020, summary=json.dumps(SEALED, ensure_ascii=False)),
    "pi": Case(pi, {}),
    "pi, its first version": Case(pi, {"version": None}),
    "opencode": Case(opencode, {}, 1_064, "auto"),
    "opencode, files": Case(opencode, {"kept_in": "files"}, 1_064, "auto"),
    "opencode, an export": Case(opencode, {"kept_in": "export"}, 1_064, "auto"),
    "opencode, too large": Case(opencode, {"overflow": True}, 1_063, "auto"),
    "copilot": Case(copilot, {}, trigger="auto"),
    "gemini": Case(gemini, {}, 900, more=("Go on.",), summary=SNAPSHOT),
    "gemini, resumed": Case(gemini, {"resumed": True}, 900, more=("Go on.",), summary=SNAPSHOT),
}
cases = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


@cases
def test_the_words_stand_where_the_summary_stood_and_what_came_later_stays_whole(tmp_path: Path, case: Case):
    session = case.make(tmp_path, **case.options)
    assert session.history.compacted and words(1) not in told(session)
    before = stored(session)
    done, copy = revived(session)
    assert told(copy) == [PROMPT, *steps(1, 2, 3), *case.more, *steps(4, 5, whole=True), END]
    assert stored(session) == before and SUMMARY in json.loads(json.dumps(before))
    kept = stored(copy)
    assert "ledger" not in kept, "the summary is in the original only"
    assert "context_compacted" not in kept and "session.compaction" not in kept
    assert kept.count("<session_context>") == before.count("Today is Monday", 0, before.index(PROMPT))
    assert secret(3)[:99] not in kept and secret(4)[:99] in kept
    assert copy.title.endswith("(revived)") and not copy.history.compacted
    (one,) = done.compactions
    assert one.tokens == case.tokens and one.trigger == case.trigger and not done.stays and not done.broken
    assert one.words == sum(
        len(json.dumps(said, ensure_ascii=False).encode()) - 2 for said in (PROMPT, *steps(1, 2, 3))
    )
    assert one.summary == len(case.summary.encode())
    # What was counted behind it was counted with the summary in the place of the words.
    assert all(made.message < one.messages for made in done.session.history.requests)
    with pytest.raises(NothingToCut, match="never compacted"):
        revive(copy)


@cases
def test_another_place_may_be_chosen(tmp_path: Path, case: Case):
    _, copy = revived(case.make(tmp_path, **case.options), "end")
    assert told(copy) == [PROMPT, *steps(1, 2, 3), *case.more, *steps(4, 5), END]


@cases
def test_for_looking_things_up_the_session_is_whole(tmp_path: Path, case: Case):
    session = case.make(tmp_path, **case.options)
    whole = told(uncompacted(session))
    assert [entry for entry in whole if entry not in case.more] == [PROMPT, *steps(1, 2, 3, 4, 5, whole=True), END]


def test_an_undoing_that_would_change_what_the_client_has_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The guard behind every client's own module, with modules that lose, or turn round, what came later."""
    session = codex(tmp_path)
    right = codex_undoing.undo(session)
    for at in (slice(None, -2), slice(None, None, -1)):
        wrong = right.session.source.log.records[at]  # type: ignore[attr-defined]
        log = replace(right.session.source.log, records=wrong)  # type: ignore[attr-defined]
        changed = replace(right.session, history=codex_history(log).history)  # type: ignore[type-var]
        faulty = replace(right, session=changed, new=lambda number, wrong=wrong: wrong[number].offset)
        monkeypatch.setattr(codex_undoing, "undo", lambda _, faulty=faulty: faulty)
        with pytest.raises(InputError, match="nothing was written"):
            revive(session)
    monkeypatch.setattr(codex_undoing, "undo", lambda _: right)
    assert revive(session).compactions


# -------------------------------------------------------------------------------------------------- several, odd


def test_of_two_compactions_of_codex_both_are_undone(tmp_path: Path):
    session = codex(tmp_path)
    rows = codex_made.records(session.path)
    person = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": PROMPT}]}]
    sealed = {"type": "compaction", "encrypted_content": "eHh4"}
    second = {"message": "", "replacement_history": [*person, sealed]}
    rows.append({"timestamp": codex_made.WHEN, "type": "compacted", "payload": second})
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "And on."}]}
    rows.append({"timestamp": codex_made.WHEN, "type": "response_item", "payload": said})
    session.path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done, copy = revived(open_path(session.path))
    assert told(copy) == [PROMPT, *steps(1, 2, 3, 4, 5), END, "And on."]
    assert [one.messages for one in done.compactions] == [12, 7]


def test_words_that_codex_shortened_for_its_summary_come_back_whole(tmp_path: Path):
    session = codex(tmp_path)
    text = session.path.read_text("utf-8")
    long = f"Count {'one two three ' * 40}to five."
    rows = [json.loads(line) for line in text.replace(json.dumps(PROMPT, ensure_ascii=False)[1:-1], long).splitlines()]
    kept = next(row for row in rows if row["type"] == "compacted")["payload"]["replacement_history"]
    kept[0]["content"][0]["text"] = f"{long[:20]}…117 tokens truncated…{long[-9:]}"
    session.path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert told(revived(open_path(session.path))[1])[0] == long


def test_words_that_only_a_compaction_of_codex_holds_are_not_given_up(tmp_path: Path):
    session = codex(tmp_path)
    rows = codex_made.records(session.path)
    kept = next(row for row in rows if row["type"] == "compacted")["payload"]["replacement_history"]
    kept.insert(1, {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Not said before."}]})
    session.path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(InputError, match="nothing was written"):
        revive(open_path(session.path))


def test_a_turn_of_codex_that_was_taken_back_behind_the_compaction_stays_so(tmp_path: Path):
    session = codex(tmp_path)
    rows = codex_made.records(session.path)
    for role, kind, text in (("user", "input_text", "Once more."), ("assistant", "output_text", "Six.")):
        payload = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
        rows.append({"timestamp": codex_made.WHEN, "type": "response_item", "payload": payload})
    back = {"type": "thread_rolled_back", "num_turns": 1}
    rows.append({"timestamp": codex_made.WHEN, "type": "event_msg", "payload": back})
    session.path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert told(revived(open_path(session.path))[1])[-1] == END
    back["num_turns"] = 2  # over the compaction: without it another turn would be meant
    session.path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(CutlineError):
        revive(open_path(session.path))


def test_calls_of_codex_that_have_no_id_keep_their_numbers_where_earlier_ones_left(tmp_path: Path):
    session = codex(tmp_path)
    rows = codex_made.records(session.path)
    for at in (len(rows), 6):
        search = {"type": "web_search_call", "status": "completed", "action": {"type": "search", "query": f"at {at}"}}
        rows.insert(at, {"timestamp": codex_made.WHEN, "type": "response_item", "payload": search})
    session.path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    _, copy = revived(open_path(session.path))
    assert told(copy)[:4] == [PROMPT, *steps(1, 2, 3)] and told(copy)[-2:] == ["call 0", "result 0: "]


def test_of_several_compactions_of_codex_those_are_undone_whose_records_are_there(tmp_path: Path):
    session = codex(tmp_path, form="sealed")
    rows = codex_made.records(session.path)
    at = next(number for number, row in enumerate(rows) if row["type"] == "compacted")
    again = [rows[at]["payload"]["replacement_history"][0], {"type": "compaction", "encrypted_content": "eHh4"}]
    second = {
        "timestamp": codex_made.WHEN,
        "type": "compacted",
        "payload": {"message": "", "replacement_history": again},
    }
    rows = [rows[0], *rows[at:], second]
    session.path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done, copy = revived(open_path(session.path))
    assert done.stays == "line 2" and len(done.compactions) == 1
    assert told(copy) == [PROMPT, *steps(4, 5), END] and copy.history.compacted
    assert "ledger" in stored(copy), "what nothing is left of but the summary keeps it"


@pytest.mark.parametrize("labelled", (False, True))
def test_a_compaction_of_pi_that_comes_last_leaves_the_leaf_where_it_hung(tmp_path: Path, labelled: bool):
    """Though the file's last other entry is of a line that was given up; a label of it moves up."""
    made = pi_made.Writer()
    made.human(PROMPT)
    made.step("c1", words(1), secret(1))
    leaf = made.agent(pi_made.text(words(2)))
    made.human("A prompt that was given up.")
    made.leaf = leaf
    compaction = made.add("compaction", summary=SUMMARY, firstKeptEntryId=leaf, tokensBefore=1)
    if labelled:
        made.add("label", targetId=compaction, label="here")
    _, copy = revived(pi_made.opened(made, tmp_path))
    assert told(copy) == [PROMPT, words(1), words(2)]
    ids = {row["id"] for row in pi_made.rows(copy.path)}
    labels = [row for row in pi_made.rows(copy.path) if row["type"] == "label"]
    assert len(labels) == labelled and all({row["targetId"], row["parentId"]} <= ids for row in labels)


def test_where_pi_kept_every_message_nothing_was_replaced(tmp_path: Path):
    made = pi_made.Writer()
    first = made.human(PROMPT)
    made.step("c1", words(1), secret(1))
    made.add("compaction", summary=SUMMARY, firstKeptEntryId=first, tokensBefore=1)
    with pytest.raises(NothingToCut, match="kept every message"):
        revive(pi_made.opened(made, tmp_path))


def test_of_a_line_of_pi_whose_beginning_is_lost_what_is_there_is_revived(tmp_path: Path):
    session = pi(tmp_path)
    lines = session.path.read_text("utf-8").splitlines(keepends=True)
    session.path.write_text("".join([lines[0], *lines[4:]]), "utf-8")
    done, copy = revived(open_path(session.path))
    assert done.broken and told(copy) == [*steps(2, 3), *steps(4, 5, whole=True), END]


def test_a_compaction_of_opencode_that_failed_or_was_taken_back_is_none(tmp_path: Path):
    made = opencode_made.Writer()
    made.human(PROMPT)
    made.step("c1", words(1), secret(1))
    made.human({"type": "compaction", "auto": False})
    made.agent("Half a summ", summary=True, error={"name": "MessageAbortedError"}, finish=None)
    session = client("opencode").open_session(made.export(tmp_path))
    with pytest.raises(NothingToCut, match="never compacted"):
        revive(session)
    taken = opencode_made.Writer()
    taken.human(PROMPT)
    taken.step("c1", words(1), secret(1))
    asked = taken.human({"type": "compaction", "auto": False})
    taken.agent(SUMMARY, summary=True)
    taken.info["revert"] = {"messageID": asked}
    with pytest.raises(NothingToCut, match="never compacted"):
        revive(client("opencode").open_session(taken.export(tmp_path)))


# ------------------------------------------------------------------------------------- where nothing can be revived


def beginning(session: Session, marker: str) -> Session:
    """A file that begins with its compaction: what came before is not in it."""
    lines = session.path.read_text("utf-8").splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if marker in line)
    session.path.write_text("".join([lines[0], *lines[at:]]), "utf-8")
    return open_path(session.path)


@pytest.mark.parametrize(
    ("make", "marker"),
    ((codex, '"compacted"'), (pi, '"compaction"'), (copilot, "compaction_complete"), (gemini, '"messages"')),
    ids=("codex", "pi", "copilot", "gemini"),
)
def test_what_is_not_in_the_file_is_said_in_one_line(tmp_path: Path, make: Callable[[Path], Session], marker: str):
    session = beginning(make(tmp_path), marker)
    with pytest.raises(
        InputError, match=r"what was said before .* \(20\d\d-.*is not in the file, only its summary"
    ) as told_:
        revive(session)
    assert "\n" not in str(told_.value) and "line " in str(told_.value)


def test_a_document_of_gemini_keeps_a_summary_alone(tmp_path: Path):
    made = gemini_made.Writer()
    made.human(f"<state_snapshot>{SUMMARY}</state_snapshot>")
    made.agent("Got it. Thanks for the additional context!")
    made.human("Go on.")
    made.agent(words(4), gemini_made.made("c4", secret(4)))
    for data, name in ((made.document(), "session-a.json"), (made.contents(), "checkpoint-a.json")):
        with pytest.raises(InputError, match=r"message 1.*only its summary.*saved before"):
            revive(open_path(gemini_made.written(tmp_path, data, name)))


def test_messages_to_which_gemini_gave_one_id_are_two(tmp_path: Path):
    """So it writes an answer and its calls' results on a resume, and takes the later alone when it reads them again."""
    made = gemini_made.Writer()
    made.human(PROMPT)
    call_ = {"functionCall": {"id": "run_shell_command__c1", "name": "run_shell_command", "args": {}}}
    answered = gemini_made.answer("run_shell_command__c1", "run_shell_command", secret(1))
    said = {
        "id": "x",
        "timestamp": "2026-10-05T09:20:00.000Z",
        "type": "gemini",
        "content": [{"text": words(1)}, call_],
    }
    heard = {"id": "x", "timestamp": "2026-10-05T09:20:00.000Z", "type": "user", "content": [answered]}
    rest = [{**said, "id": "y", "content": [{"text": words(2)}]}]
    made.records.append({"$set": {"messages": [*made.records, said, heard, *rest]}})
    summary = {**heard, "id": "z", "content": [{"text": f"<state_snapshot>{SUMMARY}</state_snapshot>"}]}
    made.records.append({"$set": {"messages": [summary]}})
    made.human("Go on.")
    made.agent(words(3), gemini_made.made("c3", secret(3)))
    session = open_path(gemini_made.written(tmp_path, made.lines()))
    done = revive(session)
    # Where the results stay, both messages do, and the client must find both.
    kept = {"keep_tools": ("run_shell_command",)}
    at = len(done.session.history.places)
    with pytest.raises(NothingToCut):
        prospect(done.session, at=at, **kept)
    assert told(revived(session)[1])[:4] == [PROMPT, words(1), words(2), "Go on."]
    ids = [entry.id for entry in done.session.source.entries]  # type: ignore[attr-defined]
    assert ids == ["m1", "x", "x-2", "y", "m4", "m5"] and len(set(ids)) == len(ids)


def test_two_compressions_of_gemini_to_the_same_words_are_two(tmp_path: Path):
    made = gemini_made.Writer()
    for number in (1, 2, 3, 4):
        made.human(f"Prompt {number}.")
        made.agent(words(number), gemini_made.made(f"c{number}", secret(number)))
        if number in (2, 3):
            text = {"text": f"<state_snapshot>{SUMMARY}</state_snapshot>"}
            kept = {**made.records[-2], "id": f"k{number}"}, {**made.records[-1], "id": f"l{number}"}
            made.records.append({"$set": {"messages": [{**kept[0], "id": f"s{number}", "content": [text]}, *kept]}})
    done, copy = revived(open_path(gemini_made.written(tmp_path, made.lines())))
    assert told(copy)[:6] == [entry for number in (1, 2, 3) for entry in (f"Prompt {number}.", words(number))][:6]
    assert [one.messages for one in done.compactions] == [3, 3] and told(copy)[-2] == "call c4"


def test_gemini_s_summary_of_something_else_is_not_taken_for_this_session_s(tmp_path: Path):
    """What comes again behind the summary is not the end of what stood before it."""
    session = gemini(tmp_path)
    head, behind, tail = session.path.read_text("utf-8").partition('{"id": "a3"')
    session.path.write_text(head + behind + tail.replace("Go on.", "Something else.", 1), "utf-8")
    with pytest.raises(InputError, match="not in the file"):
        revive(open_path(session.path))


# ------------------------------------------------------------------------------------------------- the command


def test_the_command_revives_any_client_s_session(shell: Shell):  # noqa: F811
    session = pi(shell.project)
    done = shell("revive", str(session.path))
    assert done.returncode == 0, done.stderr
    text = done.stdout.decode()
    assert "pi --session " in text and f"pi --session {session.id}" in text
    assert f"{len(SUMMARY.encode()):,} B" in text and "line 11" in text and "now, with the summary" in text
    (copy,) = (path for path in session.path.parent.glob("*.jsonl") if path != session.path)
    assert told(open_path(copy))[:4] == [PROMPT, *steps(1, 2, 3)]


def test_what_is_lost_is_a_fault_of_the_input(shell: Shell):  # noqa: F811
    session = beginning(copilot(shell.project), "compaction_complete")
    fails(shell("revive", str(session.path)), 2, "is not in the file, only its summary")


# ------------------------------------------------------------------------------------------- recorded sessions

FOLDER = SHARED / "data" / "sessions"


@cache
def recorded() -> list[Path]:
    """Recorded sessions of these clients whose live line passes a compaction that replaced something."""
    found = []
    for path in sorted(
        path for kind in ("codex", "pi", "opencode", "copilot-cli", "gemini-cli") for path in (FOLDER / kind).glob("*")
    ):
        try:
            revive(open_path(path))
        except CutlineError:
            continue
        found.append(path)
    return found


# Which those are; most are for -m slow.
COMPACTED = [
    FOLDER / "codex" / "agentv_0034f597_codex-spark.jsonl",
    pytest.param(FOLDER / "codex" / "agentv_f4771ece_images.jsonl", marks=pytest.mark.slow),
    pytest.param(FOLDER / "codex" / "git-sync_2dcf2f1a_607calls_badline.jsonl", marks=pytest.mark.slow),
    pytest.param(FOLDER / "codex" / "skills_d5c56be2_58human_543calls.jsonl", marks=pytest.mark.slow),
    FOLDER / "pi" / "pi-mono_before-compaction.jsonl",
]


@pytest.mark.slow
def test_there_are_recorded_compactions():
    if not FOLDER.is_dir():
        pytest.skip("the recorded sessions are not on this machine: no ../shared/data")
    assert recorded() == [getattr(one, "values", (one,))[0] for one in COMPACTED]


def originals(path: Path) -> tuple[list[str], list[str]]:
    """What agent and human said before the last compaction, and the summaries: by the lines of the file alone."""
    said: list[str] = []
    summaries: list[str] = []
    before = 0
    for line in path.read_text("utf-8", "surrogatepass").splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        payload = row.get("payload") or {}
        if row["type"] in ("compacted", "compaction"):
            before = len(said)
            summaries += filter(None, [row.get("summary") or payload.get("message")])
        message = payload if row["type"] == "response_item" else row.get("message") or {}
        if message.get("role") in ("user", "assistant") and message.get("stopReason") not in ("error", "aborted"):
            parts = message["content"]
            said += [part["text"] for part in parts if isinstance(part, dict) and part.get("text")]
    return said[:before], summaries


@pytest.mark.skipif(not FOLDER.is_dir(), reason="the recorded sessions are not on this machine: no ../shared/data")
@pytest.mark.parametrize("source", COMPACTED, ids=lambda path: path.stem[:30])
def test_every_recorded_compaction_is_undone(tmp_path: Path, source: Path):
    path = tmp_path / source.name
    path.write_bytes(source.read_bytes())
    before, summaries = originals(source)
    assert before
    session = open_path(path)
    done, copy = revived(session)
    assert path.read_bytes() == source.read_bytes() and not done.stays
    words_ = [
        block["text"]
        for message in json.loads(copy.history.body)["messages"]
        for block in message["content"]
        if block["type"] == "text"
    ]
    known = iter(words_)
    for text in before:
        if text.lstrip().startswith(("<", "# AGENTS.md")):
            continue  # the client's own
        assert any(text == other for other in known), f"not in the copy, or not in order: {text[:60]!r}"
    raw = copy.path.read_text("utf-8", "surrogatepass")
    assert '"compacted"' not in raw and '"type":"compaction"' not in raw
    assert all(json.dumps(summary, ensure_ascii=False)[1:200] not in raw for summary in summaries)
    # What stood behind the last compaction is what the client had, and all of it.
    behind = [entry for entry in told(session) if entry not in summaries]
    assert told(copy)[-20:] == behind[-20:]


def test_a_sample_of_records_is_no_session_and_is_refused():
    path = FOLDER / "codex" / "agent-sessions_codex_small.jsonl"
    if not path.is_file():
        pytest.skip("the recorded sessions are not on this machine: no ../shared/data")
    assert codex_undoing.undo(open_path(path)).points
    with pytest.raises(InputError, match="nothing was written"):
        revive(open_path(path))
