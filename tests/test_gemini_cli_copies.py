"""Cut copies of Gemini CLI's sessions: they hold what the plan keeps and nothing else, and leave the original alone."""

import json
import os
import resource
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cutline.errors import InputError, NothingToCut
from cutline.sessions import gemini_cli
from cutline.sessions.clients import open_path
from cutline.sessions.cutting import execute, prospect
from cutline.sessions.gemini_cli import open_session
from cutline.wire import anthropic as wire
from gemini_made import (
    DOCUMENT,
    GOOD,
    ID,
    META,
    NOTE,
    RECORDED,
    Record,
    Writer,
    blocks,
    cut,
    made,
    needs_data,
    talk,
    written,
)


def rows(path: Path) -> list[Record]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def test_a_copy_at_a_checkpoint_holds_what_the_plan_keeps(tmp_path: Path) -> None:
    path = written(tmp_path, talk().lines({"$set": {"memoryScratchpad": {"workflowSummary": "ran seq"}}}))
    path.chmod(0o644)
    before = path.read_bytes(), path.stat().st_mtime_ns
    old = os.umask(0)
    try:
        session, copy = cut(path)
    finally:
        os.umask(old)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600 and copy.parent == path.parent
    assert copy.name.startswith("session-") and copy.name.endswith(f"-{session.id[:8]}.jsonl")
    assert session.id != ID and session.title == "Count “é” 😀, please. (cut)"
    meta, *messages = rows(copy)
    assert meta == {**META, "sessionId": session.id, "summary": session.title}
    assert [entry for entry in blocks(session) if "cutline" not in entry[2]] == [
        ("user", "text", "<session_context>\nToday is Monday.\n</session_context>"),
        ("user", "text", "Count “é” \u2028 😀, please."),
        ("assistant", "text", "I count."),
        ("assistant", "text", "It counts to 3."),
        ("assistant", "text", "A note."),
        ("assistant", "tool_use", "d"),
        ("assistant", "tool_use", "n"),
        ("user", "tool_result", "d"),
        ("user", "tool_result", "n"),
        ("assistant", "text", "Now the sum."),
        ("assistant", "tool_use", "e"),
        ("user", "tool_result", "e"),
        ("assistant", "text", "The sum is 820."),
        ("user", "text", "Thanks."),
        ("assistant", "text", "You are welcome."),
    ]
    text = copy.read_text("utf-8")
    assert '"looked"' not in text and "41\\n42" not in text and "workflowSummary" not in text and '-again"' not in text
    # What stays whole keeps its bytes.
    source = before[0].splitlines()
    kept = copy.read_bytes().splitlines()
    for words in (b"Count \xe2\x80\x9c", b"Now the sum.", b"The sum is 820.", b"Thanks.", b"You are welcome."):
        assert next(line for line in source if words in line) in kept
    note = next(m for m in messages if m.get("toolCalls") and m["toolCalls"][-1]["name"] == NOTE)["toolCalls"][-1]
    (result,) = note["result"]
    assert result["functionResponse"]["response"]["output"].startswith("checkpoint stored\n\n[cutline]")
    assert note["resultDisplay"] == "shown: checkpoint stored" and note["args"] == DOCUMENT


def test_a_cut_copy_is_cut_again_when_more_was_done(tmp_path: Path) -> None:
    path = written(tmp_path, talk().lines())
    _, copy = cut(path)
    with pytest.raises(NothingToCut):
        prospect(open_session(copy))
    more = Writer()
    more.human("Again.")
    more.agent("Once more.", made("z", "much of it"))
    more.agent("Done.")
    for record in more.records:
        record["id"] = f"later-{record['id']}"
    with copy.open("ab") as handle:
        handle.write(b"".join(json.dumps(record).encode() + b"\n" for record in more.records))
    again, second = cut(copy, at="end")
    assert again.title.count("(cut)") == 1
    text = second.read_text("utf-8")
    assert '"much of it"' not in text and text.count("checkpoint stored") == 2  # shown, and sent


@pytest.mark.parametrize("shape", ("lines", "document", "contents"))
@pytest.mark.parametrize("at", (None, "last", "end", "human:1", 2))
def test_every_shape_is_copied_in_its_own(tmp_path: Path, shape: str, at: Any) -> None:
    writer = talk(repeated=False)
    name = {"lines": "session-1.jsonl", "document": "session-1.json", "contents": "checkpoint-é.json"}[shape]
    path = written(tmp_path, getattr(writer, shape)(), name)
    if at in ("human:1", 2):
        with pytest.raises(NothingToCut):
            prospect(open_session(path), at=at)
        return
    before = open_session(path)
    session, copy = cut(path, at=at)
    if shape == "contents":
        assert copy.name == f"{session.id}.json" and session.id.startswith("checkpoint-é-cut-")
        assert json.loads(copy.read_bytes())["authType"] == "gemini-api-key"
    else:
        assert session.title.endswith("(cut)")
    told = [(role, words) for role, kind, words in blocks(session) if kind == "text" and "[cutline]" not in words]
    assert told == [(role, words) for role, kind, words in blocks(before) if kind == "text"]
    notices = [words for _, kind, words in blocks(session) if kind == "text" and "[cutline]" in words]
    assert len(notices) == (0 if at is None else 1)
    assert session.history.human == [
        number for number, origin in enumerate(session.history.origins) if origin == "human"
    ] and len(session.history.human) == len(before.history.human)
    if at == "end":
        assert [id_ for _, kind, id_ in blocks(session) if kind == "tool_use"] == ["n"]


def test_the_notice_of_a_cut_without_a_checkpoint_is_not_drawn_as_a_person_s(tmp_path: Path) -> None:
    path = written(tmp_path, talk().lines())
    _, copy = cut(path, at="end")
    (notice,) = (row for row in rows(copy) if "[cutline]" in json.dumps(row) and row.get("type") == "user")
    assert notice["displayContent"] == [{"text": " "}] and notice["id"]
    assert rows(copy)[-1]["content"] == "You are welcome.", "the agent's last words stay the last"


def test_a_result_of_another_form_takes_the_notice_too(tmp_path: Path) -> None:
    for output in ({"result": {"stored": True}}, {"output": "checkpoint stored", "took": 3}):
        writer = Writer()
        writer.human("Go.")
        writer.agent("I go.", made("a", "gone"))
        writer.agent("A note.", made("n", output, NOTE))
        _, copy = cut(written(tmp_path, writer.lines()))
        note = rows(copy)[-1]["toolCalls"][0]["result"][0]["functionResponse"]["response"]
        assert list(note) == ["output"] and note["output"].startswith(json.dumps(output))
        assert "[cutline]" in note["output"]


def test_a_refused_checkpoint_is_no_seam(tmp_path: Path) -> None:
    writer = Writer()
    writer.human("Go.")
    writer.agent("I go.", made("a", "gone"))
    refused = "<untrusted_context>\ncheckpoint refused: `open` is missing\n</untrusted_context>"
    writer.agent("A note.", made("n", refused, NOTE))
    assert prospect(open_session(written(tmp_path, writer.lines()))).chosen == "end"


def test_what_is_said_through_a_tool_stays(tmp_path: Path) -> None:
    writer = Writer()
    writer.human("Go.")
    writer.agent("I ask.", made("q", '{"answers":{"0":"Blue"}}', "ask_user"), made("a", "gone"))
    writer.agent("Blue it is.")
    session, _ = cut(written(tmp_path, writer.lines()), at="end")
    assert [id_ for _, kind, id_ in blocks(session) if kind in ("tool_use", "tool_result")] == ["q", "q"]


def with_a_checkpoint(data: bytes) -> bytes | None:
    """A recorded file with a checkpoint put in behind its middle; None where it holds too little."""
    call = made("noted", "checkpoint stored", NOTE)
    record = {"id": "put-in", "timestamp": "2026-01-01T00:00:00.000Z", "type": "gemini", "content": "A note."}
    record["toolCalls"] = [call]
    try:
        found = json.loads(data)
    except ValueError:
        lines = data.splitlines(keepends=True)
        return b"".join([*lines[:4], json.dumps(record).encode() + b"\n", *lines[4:]])
    if isinstance(found, list):
        asked = {key: call[key] for key in ("id", "name", "args")}
        middle = next(n for n in range(len(found) // 2, len(found)) if found[n]["role"] == "model")
        found[middle:middle] = [
            {"role": "model", "parts": [{"text": "A note."}, {"functionCall": asked}]},
            {"role": "user", "parts": call["result"]},
        ]
        return json.dumps(found).encode()
    found["messages"].insert(len(found["messages"]) // 2 + 1, record)
    return json.dumps(found, indent=2).encode()


@needs_data
@pytest.mark.parametrize("source", RECORDED, ids=lambda path: path.stem)
@pytest.mark.parametrize("at", ("last", "end", "checkpoint"))
def test_every_recorded_file_is_copied_read_again_and_proven(tmp_path: Path, source: Path, at: str) -> None:
    data = source.read_bytes()
    name = "checkpoint-recorded.json" if data[:1] == b"[" else source.name
    path = written(tmp_path, with_a_checkpoint(data) or data if at == "checkpoint" else data, name)
    before = path.read_bytes()
    try:
        wanted = prospect(open_session(path), at=None if at == "checkpoint" else at)
    except NothingToCut:
        assert at == "last" and len(open_session(path).history.human) == 1
        return
    assert wanted.chosen == at
    copy, proof = execute(wanted)
    assert proof is not None and path.read_bytes() == before
    session = open_path(copy.path)
    assert session.id == copy.id and session.damage == ()
    assert sorted(tmp_path.iterdir()) == sorted((path, copy.path))
    text = copy.path.read_text("utf-8")
    gone = {block.id for block in _calls(open_session(path))} - {block.id for block in _calls(session)}
    assert not [id_ for id_ in gone if f'"{id_}"' in text]
    assert gone or {removed.why for removed in wanted.done.removed} == {"thinking"}
    with pytest.raises(NothingToCut):
        prospect(session, at=None if at == "checkpoint" else at)


def _calls(session: Any) -> list[Any]:
    return [b for message in wire.read(session.history.body).messages for b in message.blocks if b.type == "tool_use"]


CODE = "from cutline.cli import main; main()"


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    done = subprocess.run(
        [sys.executable, "-c", CODE, "cut", str(path), "--force"],
        env={**os.environ, "HOME": str(tmp_path / "none"), "NO_COLOR": "1"},
        capture_output=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (400, 400)),
    )
    text = done.stderr.decode()
    assert done.returncode == 2 and "can't be written" in text and text.count("\n") == 1
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_proof_leaves_nothing_behind(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    session = open_session(path)
    wanted = prospect(session)
    assert wanted.done.plan is not None

    def refuse(*_: object) -> None:
        raise InputError("no")

    with pytest.raises(InputError, match="no"):
        gemini_cli.write(session, wanted.done.plan, "t (cut)", refuse)
    assert list(tmp_path.iterdir()) == [path]
