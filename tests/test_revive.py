"""A compaction undone: each summary gives way to the words that it had replaced, and the copy is proven as a cut's is."""

import json
import uuid
from pathlib import Path
from typing import Any

import pytest

import made
from conftest import SHARED, claude_code_files
from cutline.errors import CutlineError, InputError, NothingToCut
from cutline.sessions.claude_code import Session, open_session
from cutline.sessions.claude_code.reviving import window
from cutline.sessions.cutting import execute, prospect
from cutline.sessions.reviving import Compaction, Point, Revival, revive, uncompacted
from test_command_line import Shell, body, fails, shell  # noqa: F401

SUMMARY = "This session is being continued: the importer was looked at – off by one, “probably”."


class Compacted(made.Session):
    """A session whose client may compact it; uuids are counted over all records."""

    def plain(self, type_: str, **members: Any) -> dict[str, Any]:
        """A record without a message, linked like any other."""
        record = self._add(type_, {}, **members)
        del record["message"]
        return record

    def boundary(self, *, trigger: str = "auto", logical: str | None = None, **metadata: Any) -> dict[str, Any]:
        before, self.parent = self.parent, None
        return self.plain(
            "system",
            subtype="compact_boundary",
            logicalParentUuid=logical or before,
            compactMetadata={"trigger": trigger, "preTokens": 150_000, **metadata},
        )

    def summary(self, text: str = SUMMARY) -> dict[str, Any]:
        return self._add(
            "user", {"role": "user", "content": text}, isCompactSummary=True, isVisibleInTranscriptOnly=True
        )

    def compact(self, text: str = SUMMARY, **options: Any) -> None:
        self.boundary(**options)
        self.summary(text)

    def keep(self, number: int) -> list[str]:
        """Note in the last boundary that the `number` records before it were kept; gives their uuids."""
        at = max(n for n, record in enumerate(self.records) if record.get("subtype") == "compact_boundary")
        kept = [record["uuid"] for record in self.records[at - number : at]]
        anchor = next(record["uuid"] for record in self.records[at:] if record.get("isCompactSummary"))
        self.records[at]["compactMetadata"] |= {
            "preservedSegment": {"headUuid": kept[0], "anchorUuid": anchor, "tailUuid": kept[-1]},
            "preservedMessages": {"anchorUuid": anchor, "uuids": kept, "allUuids": kept},
        }
        return kept


def counted(session: Compacted, first: int, last: int) -> None:
    for number in range(first, last + 1):
        session.step(f"Step {number}: I look because {number} fails.", f"run {number}", f"secret {number} " * 300)


def one(**options: Any) -> Compacted:
    """A person's prompt, three steps, a compaction in the middle of the turn, two steps, an end."""
    session = Compacted()
    session.human("Count to five, and leave ünïcode “as is”.")
    counted(session, 1, 3)
    session.compact(**options)
    counted(session, 4, 5)
    session.agent({"type": "text", "text": "Five it is."})
    return session


def opened(session: Compacted, folder: Path) -> Session:
    return open_session(session.write(folder / f"{session.id}.jsonl"))


def revived(session: Session, at: Any = None) -> tuple[Revival, Session]:
    """Revive, cut, write, prove; the copy is read again."""
    done = revive(session)
    copy, proof = execute(prospect(done.session, at=done.place if at is None else at), mark="revived")
    assert not proof.unchanged
    return done, open_session(copy.path)


def told(session: Session) -> list[str]:
    """A history in short: texts, and of calls and results the call's number; the notice aside."""
    found = []
    for message in json.loads(session.history.body)["messages"]:
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            if block["type"] == "text" and not block["text"].startswith("[cutline]"):
                found.append(block["text"])
            elif block["type"] in ("tool_use", "tool_result"):
                id_ = block.get("id") or block["tool_use_id"]
                found.append(f"{block['type'][5:]} {id_[-4:].lstrip('0')}")
    return found


def steps(*numbers: int, whole: bool = True) -> list[str]:
    return [
        entry
        for n in numbers
        for entry in (f"Step {n}: I look because {n} fails.", *((f"use {n}", f"result {n}") if whole else ()))
    ]


PROMPT = "Count to five, and leave ünïcode “as is”."

# ------------------------------------------------------------------------------------------ one compaction


def test_the_words_stand_where_the_summary_stood_and_what_came_later_stays_whole(tmp_path: Path):
    session = opened(one(), tmp_path)
    before = session.path.read_bytes()
    assert SUMMARY in told(session) and PROMPT not in told(session)
    done, copy = revived(session)
    assert told(copy) == [PROMPT, *steps(1, 2, 3, whole=False), *steps(4, 5), "Five it is."]
    assert session.path.read_bytes() == before
    text = copy.path.read_text("utf-8")
    assert SUMMARY not in text and "compact_boundary" not in text and "isCompactSummary" not in text
    assert "secret 3 " * 20 not in text and "secret 4 " * 300 in text
    assert copy.title == "Count to five, and leave ünïcode “as is”. (revived)"
    assert not copy.history.compacted and copy.history.origins[0] == "human"
    assert [record.get("isMeta") for record in map(json.loads, text.splitlines())].count(True) == 1
    assert done.compactions == (
        Compaction(
            11,
            "line 11",
            "auto",
            150_000,
            len(SUMMARY.encode()),
            done.compactions[0].words,
            done.compactions[0].whole,
            7,
            False,
        ),
    )
    words = [PROMPT, *steps(1, 2, 3, whole=False)]
    assert done.compactions[0].words == sum(len(json.dumps(word, ensure_ascii=False).encode()) - 2 for word in words)
    assert not done.broken and not done.stays


def test_a_record_that_stays_keeps_its_bytes_but_for_its_link_and_its_session(tmp_path: Path):
    session = opened(one(), tmp_path)
    _, copy = revived(session)
    old = {json.loads(line)["uuid"]: json.loads(line) for line in session.path.read_text("utf-8").splitlines()}
    for line in copy.path.read_text("utf-8").splitlines():
        new = json.loads(line)
        if new.get("uuid") in old:
            same = {**old[new["uuid"]], "sessionId": copy.id, "parentUuid": new["parentUuid"]}
            assert new == same or new["message"]["content"] != same["message"]["content"]
    # From the leaf back to the first word, over the place where the compaction stood.
    links = {
        r["uuid"]: r["parentUuid"] for r in map(json.loads, copy.path.read_text("utf-8").splitlines()) if "uuid" in r
    }
    at, seen = list(links)[-1], 0
    while at is not None:
        at, seen = links[at], seen + 1
    assert seen == len(links)


def test_the_proof_holds_the_copy_against_the_whole_uncut_history(tmp_path: Path):
    session = opened(one(), tmp_path)
    done = revive(session)
    assert told(done.session) == [PROMPT, *steps(1, 2, 3, 4, 5), "Five it is."]
    wanted = prospect(done.session, at=done.place)
    assert wanted.done.plan is not None
    wanted.done.plan.drop.pop(max(wanted.done.plan.drop))  # a result that should leave stays
    with pytest.raises(CutlineError):
        execute(wanted)
    assert list(tmp_path.iterdir()) == [session.path]


def test_another_place_may_be_chosen(tmp_path: Path):
    session = opened(one(), tmp_path)
    assert told(revived(session, "end")[1]) == [PROMPT, *steps(1, 2, 3, 4, 5, whole=False), "Five it is."]
    assert told(revived(session, 3)[1]) == [PROMPT, *steps(1, whole=False), *steps(2, 3, 4, 5), "Five it is."]


def test_a_manual_compaction_with_nothing_behind_it_but_its_own_command(tmp_path: Path):
    made_ = Compacted()
    made_.human(PROMPT)
    counted(made_, 1, 2)
    made_.agent({"type": "text", "text": "Two so far."})
    made_.compact(trigger="manual")
    made_._add(
        "user", {"role": "user", "content": "<local-command-caveat>Caveat: …</local-command-caveat>"}, isMeta=True
    )
    made_.human("<command-name>/compact</command-name>\n<command-message>compact</command-message>")
    made_.human("<local-command-stdout>Compacted</local-command-stdout>")
    done, copy = revived(opened(made_, tmp_path))
    assert done.compactions[0].trigger == "manual"
    assert told(copy)[:4] == [PROMPT, *steps(1, 2, whole=False), "Two so far."]
    assert [word.startswith("<") for word in told(copy)[4:]] == [True] * 3

    made_.records = made_.records[:-3]
    session = opened(made_, tmp_path)
    assert told(session) == [SUMMARY]
    assert told(revived(session)[1]) == [PROMPT, *steps(1, 2, whole=False), "Two so far."]


# ----------------------------------------------------------------------------------------- several, and odd ones


def test_of_two_compactions_both_are_undone_and_the_last_is_the_place(tmp_path: Path):
    session = one()
    session.compact("A second summary, which quotes the first.", trigger="manual")
    session.human("Go on.")
    counted(session, 6, 7)
    done, copy = revived(opened(session, tmp_path))
    assert told(copy) == [PROMPT, *steps(1, 2, 3, 4, 5, whole=False), "Five it is.", "Go on.", *steps(6, 7)]
    text = copy.path.read_text("utf-8")
    assert SUMMARY not in text and "quotes the first" not in text
    assert [(c.trigger, c.messages) for c in done.compactions] == [("auto", 7), ("manual", 5)]
    assert done.compactions[1].words == sum(map(len, (*steps(4, 5, whole=False), "Five it is.")))


@pytest.mark.parametrize("again", (False, True), ids=("not written again", "written again"))
def test_messages_that_the_client_kept_stay_whole_and_are_not_doubled(tmp_path: Path, again: bool):
    session = Compacted()
    session.human(PROMPT)
    counted(session, 1, 3)
    session.compact()
    kept = session.keep(3)
    if again:  # some versions do, now and then, under the same uuid and behind the summary
        old = {record["uuid"]: record for record in session.records}
        for uuid_ in kept:
            session.records.append({**old[uuid_], "parentUuid": session.parent})
            session.parent = uuid_
    counted(session, 4, 5)
    read = opened(session, tmp_path)
    assert told(read) == [SUMMARY, *steps(3, 4, 5)]
    _, copy = revived(read)
    assert told(copy) == [PROMPT, *steps(1, 2, whole=False), *steps(3, 4, 5)]
    uuids = [json.loads(line).get("uuid") for line in copy.path.read_text("utf-8").splitlines()]
    assert all(uuids.count(uuid_) == 1 for uuid_ in kept)


def test_kept_messages_that_stand_behind_the_boundary_alone(tmp_path: Path):
    """The record that the boundary names is then one of those behind it: the line goes on from the one before it."""
    session = Compacted()
    session.human(PROMPT)
    counted(session, 1, 2)
    tail, before = session.records[-3:], session.records[-4]["uuid"]
    session.compact()
    for record in tail:
        record["parentUuid"], session.parent = session.parent, record["uuid"]
    session.records = [record for record in session.records if record not in tail] + tail
    assert session.records[-5]["logicalParentUuid"] == tail[-1]["uuid"] and before != session.parent
    for number, record in enumerate(session.records):
        record["timestamp"] = f"2026-10-05T09:{number:02}:00.000Z"
    session.agent({"type": "text", "text": "Two."})
    done, copy = revived(opened(session, tmp_path))
    assert done.compactions[0].guessed
    assert told(copy) == [PROMPT, *steps(1, whole=False), *steps(2), "Two."]


def test_what_the_client_reports_between_boundary_and_summary_keeps_its_place(tmp_path: Path):
    session = Compacted()
    session.human(PROMPT)
    counted(session, 1, 2)
    session.boundary()
    session.plain("attachment", attachment={"type": "session_context", "content": "where and when"})
    session.summary()
    session.plain("attachment", attachment={"type": "skill_listing", "content": "one skill"})
    session.plain("progress", data={"type": "hook"})
    counted(session, 3, 3)
    _, copy = revived(opened(session, tmp_path))
    assert told(copy) == [PROMPT, *steps(1, 2, whole=False), *steps(3)]
    assert "where and when" in copy.path.read_text("utf-8") and "one skill" in copy.path.read_text("utf-8")


def test_files_that_the_client_put_back_go_with_an_earlier_summary_and_stay_behind_the_last(tmp_path: Path):
    session = Compacted()
    session.human(PROMPT)
    counted(session, 1, 2)
    for number in (1, 2):
        session.compact(f"Summary {number}.")
        session.plain("attachment", attachment={"type": "file", "filename": "a.py", "content": f"put back {number}"})
        counted(session, 2 * number + 1, 2 * number + 2)
    _, copy = revived(opened(session, tmp_path))
    assert told(copy) == [PROMPT, *steps(1, 2, 3, 4, whole=False), *steps(5, 6)]
    text = copy.path.read_text("utf-8")
    assert "put back 1" not in text and "put back 2" in text


def test_a_boundary_that_names_a_record_which_is_not_there_follows_the_one_written_before_it(tmp_path: Path):
    done, copy = revived(opened(one(logical=str(uuid.uuid4())), tmp_path))
    assert done.compactions[0].guessed
    assert told(copy) == [PROMPT, *steps(1, 2, 3, whole=False), *steps(4, 5), "Five it is."]


def test_a_line_that_was_given_up_before_the_compaction_is_not_revived(tmp_path: Path):
    """Nor does a leaf that was noted before it bring that line back."""
    session = Compacted()
    session.human(PROMPT)
    counted(session, 1, 2)
    back = session.parent
    session.human("A prompt that was taken back.")
    session.agent({"type": "text", "text": "An answer that was taken back."})
    session.records.append({"type": "last-prompt", "leafUuid": session.parent, "sessionId": session.id})
    session.parent = back
    counted(session, 3, 3)
    session.compact()
    counted(session, 4, 4)
    _, copy = revived(opened(session, tmp_path))
    assert told(copy) == [PROMPT, *steps(1, 2, 3, whole=False), *steps(4)]


def test_sub_agents_inline_are_not_the_session_s_words(tmp_path: Path):
    session = Compacted()
    session.human(PROMPT)
    counted(session, 1, 2)
    line, session.parent = session.parent, None
    for record in (session._add("user", {"role": "user", "content": "A task."}), session.records[-1]):
        record["isSidechain"] = True
    session.agent({"type": "text", "text": "Done, says the sub-agent."})
    session.records[-1]["isSidechain"] = True
    session.parent = line
    session.compact(logical=str(uuid.uuid4()))
    counted(session, 3, 3)
    _, copy = revived(opened(session, tmp_path))
    assert told(copy) == [PROMPT, *steps(1, 2, whole=False), *steps(3)]


def test_a_model_s_thinking_behind_the_place_goes_only_where_a_cut_s_would(tmp_path: Path):
    for model, stays in (("claude-sonnet-4-5", True), ("claude-opus-5-5", False)):
        session = Compacted(model=model)
        session.human(PROMPT)
        counted(session, 1, 2)
        session.compact()
        session.step("Step 3.", "run 3", "out", thinks="over the summary")
        folder = tmp_path / model
        _, copy = revived(opened(session, folder))
        assert ("over the summary" in copy.path.read_text("utf-8")) is stays


# ------------------------------------------------------------------------------------------- what can't be revived


def test_a_session_that_was_never_compacted_says_so(tmp_path: Path):
    with pytest.raises(NothingToCut, match="never compacted"):
        revive(open_session(made.small().write(tmp_path / f"{made.ID}.jsonl")))


def test_a_revived_copy_is_not_revived_again(tmp_path: Path):
    _, copy = revived(opened(one(), tmp_path))
    with pytest.raises(NothingToCut, match="never compacted"):
        revive(copy)


@pytest.mark.parametrize("left", ("nothing", "reports", "what was kept"))
def test_without_the_records_before_the_boundary_nothing_is_revived(tmp_path: Path, left: str):
    session = one()
    session.keep(3)
    at = next(n for n, record in enumerate(session.records) if record.get("subtype") == "compact_boundary")
    behind, tail = session.records[at:], session.records[at - 3 : at]
    report = {"type": "queue-operation", "operation": "enqueue", "sessionId": session.id}
    session.records = {"nothing": [], "reports": [report], "what was kept": tail}[left] + behind
    read = opened(session, tmp_path)
    with pytest.raises(InputError, match="not in the file"):
        revive(read)
    assert list(tmp_path.iterdir()) == [read.path]


def test_of_several_compactions_those_are_undone_whose_records_are_there(tmp_path: Path):
    session = one()
    session.compact("A second summary.")
    session.human("Go on.")
    counted(session, 6, 6)
    at = next(n for n, record in enumerate(session.records) if record.get("subtype") == "compact_boundary")
    session.records = session.records[at:]
    done, copy = revived(opened(session, tmp_path))
    assert done.stays == "line 1" and len(done.compactions) == 1
    assert told(copy) == [SUMMARY, *steps(4, 5, whole=False), "Five it is.", "Go on.", *steps(6)]
    assert "A second summary." not in copy.path.read_text("utf-8")


def test_a_file_that_begins_in_the_middle_is_revived_from_there_and_says_so(tmp_path: Path):
    session = one()
    session.records = session.records[4:]
    done, copy = revived(opened(session, tmp_path))
    assert done.broken
    assert told(copy)[0] == steps(2)[0]


# -------------------------------------------------------------------------------------------------- the window


def at(trigger: str, tokens: int) -> Point:
    return Point(1, 1, 1, trigger, tokens)


def test_how_large_the_window_is_and_how_that_is_known():
    assert window("claude-sonnet-4-5", 90_000, at("auto", 160_000)).tokens == 200_000
    assert "genai-prices" in window("claude-sonnet-4-5", 90_000, at("auto", 160_000)).source
    # The model takes a million, but the client saw the end at 167,000.
    small = window("claude-opus-4-6", 90_000, at("auto", 167_000))
    assert small.tokens == 200_000 and "167,000" in small.source and "claude-opus-4-6[1m]" in small.source
    assert window("claude-opus-4-6", 90_000, at("manual", 120_000)).tokens == 200_000
    assert window("claude-opus-4-6", 412_000, at("", 0)).tokens == 1_000_000
    assert window("claude-opus-5", 0, at("auto", 998_659)).tokens == 1_000_000
    for model in ("somebodys-model", ""):
        unknown = window(model, 90_000, at("auto", 90_000))
        assert unknown.tokens is None and "no window is known" in unknown.source


def long(model: str = "claude-sonnet-4-5") -> Compacted:
    """Two compactions, and behind them more words than 200,000 tokens hold; no single request was as large."""
    session = Compacted(model=model)
    session.human("Read it all out.")
    for part in (1, 2):
        counted(session, part, part)
        for page in range(20):
            session.tokens += 6_600
            session.agent(
                {"type": "text", "text": f"Page {part}.{page}: " + "the ledger says so, line by line. " * 700}
            )
        session.compact()
        session.tokens = 20_000
    counted(session, 3, 3)
    return session


def test_a_copy_that_would_not_fit_is_written_only_by_force(shell: Shell):  # noqa: F811
    path = long().write(shell.folder / f"{made.ID}.jsonl")
    done = shell("revive")
    assert done.returncode == 3 and b"Does not fit" in done.stdout
    assert (
        b"--force" in done.stderr
        and b"--at end would leave about" in done.stderr
        and b"too large as well" in done.stderr
    )
    assert done.stderr.count(b"\n") == 1
    assert list(path.parent.iterdir()) == [path]
    forced = shell("revive", "--force")
    assert forced.returncode == 0 and b"Proven on the copy" in forced.stdout and b"Does not fit" in forced.stdout
    assert len(list(path.parent.iterdir())) == 2


def test_where_no_window_is_known_both_shares_are_said(shell: Shell):  # noqa: F811
    long("somebodys-model").write(shell.folder / f"{made.ID}.jsonl")
    done = shell("revive", "-n")
    assert done.returncode == 0, done.stderr
    assert b"not known" in done.stdout and b"of 200,000" in done.stdout and b"of 1,000,000" in done.stdout


# ------------------------------------------------------------------------------------------------- the command


def test_the_command_prints_both_sizes_and_how_to_go_on(shell: Shell):  # noqa: F811
    path = one().write(shell.folder / f"{made.ID}.jsonl")
    dry = shell("revive", "--dry-run")
    assert dry.returncode == 0, dry.stderr
    assert b"Nothing was written" in dry.stdout and list(path.parent.iterdir()) == [path]
    done = shell("revive")
    text = done.stdout.decode()
    assert done.returncode == 0, done.stderr
    copy = next(other for other in path.parent.iterdir() if other != path)
    assert f"claude --resume {copy.stem}" in text and f"claude --resume {made.ID}" in text
    assert f"{len(SUMMARY.encode()):,} B" in text and "line 11, auto" in text and "now, with the summary" in text
    assert "Fits" in text and "200,000" in text


def test_the_same_for_programs(shell: Shell):  # noqa: F811
    one(logical=str(uuid.uuid4())).write(shell.folder / f"{made.ID}.jsonl")
    done = shell("revive", made.ID[:8], "--json", "--at", "end")
    assert done.returncode == 0, done.stderr
    told_ = json.loads(done.stdout)
    assert told_["summary_bytes"] == len(SUMMARY.encode()) and told_["words_bytes"] > 100
    assert told_["copy"]["id"] in told_["resume"] and told_["resume_original"][-1] == made.ID
    assert told_["chosen"] == "end" and told_["at"] > told_["place_of_last_compaction"]
    assert told_["window"]["fits"] is True and told_["compactions"][0]["link_guessed"] is True
    assert any("not in the file" in note for note in told_["notes"])


def test_what_is_no_compacted_session_is_refused_in_one_line(shell: Shell):  # noqa: F811
    shell.session()
    fails(shell("revive"), 3, "never compacted")
    (shell.project / "body.json").write_bytes(body())
    fails(shell("revive", "body.json"), 2, "is a request body")
    header = {"type": "session_meta", "timestamp": "2026-10-05T09:00:00.000Z", "payload": {"id": made.ID, "cwd": "/p"}}
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello."}]}
    item = {"type": "response_item", "timestamp": "2026-10-05T09:00:01.000Z", "payload": said}
    other = shell.project / f"rollout-2026-10-05T09-00-00-{made.ID}.jsonl"
    other.write_text(f"{json.dumps(header)}\n{json.dumps(item)}\n")
    fails(shell("revive", str(other)), 3, "never compacted")


def test_for_looking_things_up_a_compacted_session_is_whole_again(tmp_path: Path):
    session = opened(one(), tmp_path)
    assert told(uncompacted(session)) == [PROMPT, *steps(1, 2, 3, 4, 5), "Five it is."]
    plain = open_session(made.small().write(tmp_path / "plain.jsonl"))
    assert uncompacted(plain) is plain


# ------------------------------------------------------------------------------------------- recorded sessions


def compacted_files() -> list[Path]:
    """Recorded sessions whose live line passes a compaction, with the records before it in the file."""
    found = []
    for path in claude_code_files():
        if b'"compact_boundary"' in path.read_bytes():
            try:
                session = open_session(path)
            except InputError:
                continue
            if session.history.compacted and session.log.records[session.history.branch.chain[0]].line > 9:
                found.append(path)
    return found


# Which those are; the larger ones are for -m slow.
COMPACTED = [
    pytest.param(path, marks=[pytest.mark.slow] * (path.stat().st_size > 2_100_000))
    for path in claude_code_files()
    if path.name.startswith(
        (
            "cipher-box_c644f3af",
            "context-evaluator_ee7e610f",
            "entire-cli_2a075ef1",
            "entire-cli_432b48f6",
            "spotter_fa812bfe",
        )
    )
]


def texts(record: dict[str, Any]) -> list[str]:
    """What the agent or a person said in a record, by the record alone."""
    content = (record.get("message") or {}).get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
    return [block["text"] for block in blocks if block["type"] == "text" and block["text"].strip()]


def walked(path: Path) -> tuple[list[str], list[str]]:
    """The words before the last boundary, and the summaries: by the links of the records, read on their own."""
    rows = []
    for line in path.read_text("utf-8", "surrogatepass").splitlines():
        try:
            rows.append(json.loads(line))
        except ValueError:
            continue
    known = {row["uuid"]: row for row in rows if row.get("uuid")}
    summaries = [text for row in rows if row.get("isCompactSummary") for text in texts(row)]
    boundaries = [n for n, row in enumerate(rows) if row.get("subtype") == "compact_boundary"]
    at: str | None = rows[boundaries[-1]]["logicalParentUuid"]
    if at not in known:
        at = next(r["uuid"] for r in reversed(rows[: boundaries[-1]]) if r.get("type") in ("user", "assistant"))
    words: list[str] = []
    while at in known:
        row = known[at]
        if row["type"] == "assistant" or (
            row["type"] == "user" and not row.get("isMeta") and not row.get("isCompactSummary")
        ):
            words = texts(row) + words
        at = row.get("logicalParentUuid") if row.get("subtype") == "compact_boundary" else row.get("parentUuid")
    return words, summaries


@pytest.mark.skipif(not SHARED.is_dir(), reason="the recorded sessions are not on this machine: no ../shared/data")
@pytest.mark.parametrize("source", COMPACTED, ids=lambda path: path.stem[:30])
def test_every_recorded_compaction_is_undone(tmp_path: Path, source: Path):
    path = tmp_path / source.name
    path.write_bytes(source.read_bytes())
    words, summaries = walked(source)
    assert words and summaries
    done, copy = revived(open_session(path))
    assert path.read_bytes() == source.read_bytes()
    assert len(done.compactions) == len(summaries) and not done.stays
    assert [c.summary for c in done.compactions] == [pytest.approx(len(s.encode()), rel=0.1) for s in summaries]
    # Every word that was said before the last boundary, verbatim and in order.
    said = iter(told(copy))
    for text in words:
        assert any(text == other for other in said), f"not in the copy, or not in order: {text[:60]!r}"
    raw = copy.path.read_text("utf-8", "surrogatepass")
    for summary in summaries:
        assert json.dumps(summary, ensure_ascii=False)[1:200] not in raw
        assert json.dumps(summary)[1:200] not in raw
    assert '"isCompactSummary":true' not in raw and '"compact_boundary"' not in raw
    # What stood behind the last boundary is what the client had, and all of it.
    behind = [text for text in told(open_session(path)) if text not in summaries]
    assert told(copy)[-len(behind) :] == behind


@pytest.mark.skipif(not SHARED.is_dir(), reason="the recorded sessions are not on this machine: no ../shared/data")
def test_there_are_recorded_compactions_and_one_whose_past_is_not_in_its_file():
    assert compacted_files() == [one.values[0] for one in COMPACTED]
    gone = next(path for path in claude_code_files() if path.stem.startswith("oh-my-posh_77ff57b0"))
    with pytest.raises(InputError, match="not in the file"):
        revive(open_session(gone))
