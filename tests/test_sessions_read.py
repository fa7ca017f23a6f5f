"""Claude Code's session files are found and read: every record, the branch that is live, its wire body."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conftest import SHARED, claude_code_files
from cutline.blocks import Kind
from cutline.errors import InputError
from cutline.sessions.claude_code import Session, folder_name, open_session, read, sessions, subagents
from cutline.sessions.claude_code.history import History, history
from cutline.sessions.clients import resolve
from cutline.wire import anthropic as wire

needs_data = pytest.mark.skipif(not claude_code_files(), reason="../shared is not on this machine")
BUGS = sorted((SHARED / "bugs").glob("*-cc-*.jsonl"))
ID = "5e551000-0000-4000-8000-000000000001"


class Writer:
    """Writes a session as the client does: each method appends a record and returns its uuid."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.seconds = 0

    def record(self, parent: str | None, **members: Any) -> str:
        self.seconds += 1
        uuid = f"0000{self.seconds:04d}-0000-4000-8000-000000000000"
        row = {
            "parentUuid": parent,
            "isSidechain": False,
            "cwd": "/p",
            "sessionId": ID,
            "version": "2.1.197",
            "gitBranch": "main",
            "uuid": uuid,
            "timestamp": f"2026-10-05T09:{self.seconds // 60:02d}:{self.seconds % 60:02d}.000Z",
        } | members
        self.row(**row)
        return str(row["uuid"])

    def row(self, **members: Any) -> None:
        self.lines.append(json.dumps(members, ensure_ascii=False).encode())

    def human(self, parent: str | None, content: Any, **members: Any) -> str:
        return self.record(parent, type="user", message={"role": "user", "content": content}, **members)

    def result(self, parent: str | None, call: str, text: str, **members: Any) -> str:
        block = {"tool_use_id": call, "type": "tool_result", "content": text}
        return self.human(parent, [block], toolUseResult=text, **members)

    def agent(
        self, parent: str | None, message: str, *blocks: dict[str, Any], model: str = "claude-x", **members: Any
    ) -> str:
        usage = {"input_tokens": 3, "output_tokens": self.seconds, "cache_read_input_tokens": 100}
        made = {
            "model": model,
            "id": message,
            "type": "message",
            "role": "assistant",
            "content": blocks,
            "usage": usage,
        }
        return self.record(parent, type="assistant", message=made, requestId=f"req_{message}", **members)

    def attachment(self, parent: str, **members: Any) -> str:
        return self.record(parent, type="attachment", attachment=members)

    def write(self, path: Path) -> Path:
        path.write_bytes(b"".join(line + b"\n" for line in self.lines))
        return path


@pytest.fixture
def writer() -> Writer:
    return Writer()


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def call(id_: str, name: str = "Bash") -> dict[str, Any]:
    return {"type": "tool_use", "id": id_, "name": name, "input": {"command": "ls"}}


def live(writer: Writer, tmp_path: Path) -> History:
    return history(read(writer.write(tmp_path / f"{ID}.jsonl")))


def outline(found: History) -> list[str]:
    """Each message as its role's letter and its blocks: words, +call, -result."""
    lines = []
    for message in json.loads(found.body)["messages"]:
        content = message["content"]
        blocks = [text(content)] if isinstance(content, str) else content
        parts = [
            f"+{block['id']}"
            if block["type"] == "tool_use"
            else f"-{block['tool_use_id']}"
            if block["type"] == "tool_result"
            else block.get("text", block["type"])
            for block in blocks
        ]
        lines.append(f"{message['role'][0]}: {' '.join(parts)}")
    return lines


# ------------------------------------------------------------------------------------ every recorded session


@pytest.fixture(scope="module")
def manifest() -> dict[str, Any]:
    rows = json.loads((SHARED / "data" / "manifest.json").read_text())
    return {row["file"]: row["stats"] for row in rows}


def counts_of(path: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    return manifest[str(path.relative_to(SHARED / "data" / "sessions"))]


@needs_data
@pytest.mark.parametrize("path", claude_code_files(), ids=lambda path: path.stem[:40])
def test_every_recorded_session_is_read_whole(path: Path, manifest: dict[str, Any]):
    log = read(path)
    counts = counts_of(path, manifest)
    assert log.size == path.stat().st_size
    assert log.grew == 0
    assert log.torn == ()
    assert len(log.glued) == counts["bad_lines"]
    # The manifest leaves glued lines out (two records each) and counts lines of JSON that are no record.
    more = sum(1 for record in log.records if record.line in log.glued)
    assert len(log.records) - more + len(log.others) == counts["records"]
    if not log.glued:
        assert sum(len(record.calls) for record in log.records) == counts["tool_calls"]
        if path.name != "claude-code-log_edge_cases.jsonl":
            assert sum(len(record.answers) for record in log.records) == counts["tool_results"]
    with log.reader() as fetch:
        for record in log.records:
            assert json.loads(fetch(record))["type"] == record.type


# Made by hand or scrubbed: calls without ids, contents of the wrong kind.
NOT_WHOLE = {
    "agent-a0ad4f44468bdf20d.jsonl": "a tool_use block without id",
    "agent-sessions_0a1b2c3d-4e5f-4061-8071-2a3b4c5d6e7f.jsonl": "a tool_use block without id",
    "claude-code-log_edge_cases.jsonl": "no live conversation",
}
# Interrupted while the call ran: the file has no result for the last one.
STOPPED = {"entire-cli_8cfa910f_2badlines.jsonl": 1, "entire-graph_377577cb_fable5_mcp.jsonl": 1}


@needs_data
@pytest.mark.parametrize("path", claude_code_files() + BUGS, ids=lambda path: path.stem[:40])
def test_a_live_branch_becomes_a_body_of_the_files_own_literals(path: Path):
    if path.name in NOT_WHOLE:
        with pytest.raises(InputError, match=NOT_WHOLE[path.name]):
            wire.read(history(read(path)).body)
        return
    found = history(read(path))
    request = wire.read(found.body)
    pairs, orphans = wire.pairs(request.messages)
    calls = [
        (number, index)
        for number, message in enumerate(request.messages)
        for index, block in enumerate(message.blocks)
        if block.kind is Kind.CALL and not block.server
    ]
    assert orphans == len(found.branch.orphans)
    assert len(found.branch.unanswered) == STOPPED.get(path.name, 0)
    assert len(calls) - len(found.branch.unanswered) == len(pairs), "a call has lost its result"
    assert [len(places) for places in found.places] == [len(message.blocks) for message in request.messages]
    assert len(found.origins) == len(request.messages)
    raws: dict[int, bytes] = {}
    for message, places in zip(request.messages, found.places, strict=True):
        for block, place in zip(message.blocks, places, strict=True):
            raw = raws.setdefault(place.record, found.log.raw(found.log.records[place.record]))
            literal = found.body[block.start : block.end]
            assert literal in raw, "a literal is not the file's"
            content = json.loads(raw).get("message", {}).get("content")
            if place.block >= 0 and content is not None:
                assert json.loads(literal) == content[place.block]
            else:
                assert json.loads(literal) == (content if content is not None else json.loads(literal))


@needs_data
def test_most_recorded_sessions_hold_a_long_branch_with_usage():
    found = [history(read(path)) for path in claude_code_files() if path.name not in NOT_WHOLE]
    assert sum(len(one.requests) for one in found) > 2000
    for one in found:
        assert [made.message for made in one.requests] == sorted({made.message for made in one.requests})
        assert all(one.origins[made.message] == "agent" for made in one.requests)
        assert len({made.message_id for made in one.requests}) == len(one.requests)


@needs_data
def test_the_web_export_is_read_in_its_order():
    found = history(read(SHARED / "data" / "sessions" / "claude-code" / "simonw_sample_session_web.json"))
    assert found.log.web
    assert len(found.log.records) == 33
    assert len(wire.pairs(wire.read(found.body).messages)[0]) == 12
    assert len(found.human) == 5
    assert found.log.raw(found.log.records[3]).startswith(b"{")


# ----------------------------------------------------------------------------------------- records and damage


def test_glued_records_are_parted_and_torn_ones_counted(writer: Writer, tmp_path: Path):
    first = writer.human(None, "one")
    second = writer.agent(first, "m1", text("two"))
    writer.human(second, "three")
    one, two, three = writer.lines
    path = tmp_path / "s.jsonl"
    path.write_bytes(one + two + b"\n" + two[:90] + three + b"\n\n" + b"42\n" + three[:-2])
    log = read(path)
    assert [record.line for record in log.records] == [1, 1, 2]
    assert log.glued == (1,)
    assert [(torn.line, torn.length) for torn in log.torn] == [(2, 90), (5, len(three) - 2)]
    assert log.others == (4,)
    assert [log.raw(record) for record in log.records] == [one, two, three]


@needs_data
def test_the_reported_damage_is_found_on_its_lines():
    log = read(next(path for path in BUGS if path.name.startswith("30-")))
    assert log.glued == (2,)
    assert [(torn.line, torn.length) for torn in log.torn] == [(4, 90), (9, 140)]
    assert outline(history(log)) == [
        "u: Sort the stamp album by watermark.",
        "a: Listing the album. +toolu_s1",
        "u: -toolu_s1",
        "a: Two watermarks: crown and anchor. +toolu_sck",
        "u: -toolu_sck",
        "u: Crown first.",
    ]


def test_an_object_inside_a_torn_record_is_no_record(writer: Writer, tmp_path: Path):
    writer.human(None, "one")
    whole = writer.lines[0]
    torn = b'{"type":"progress","data":{"message":{"type":"user","uuid":"x","message":{"content":[{"type":"text"}]}}'
    path = tmp_path / "s.jsonl"
    path.write_bytes(torn + b"\n" + torn + whole + b"\n")
    log = read(path)
    assert [log.raw(record) for record in log.records] == [whole]
    assert [(found.line, found.length) for found in log.torn] == [(1, len(torn)), (2, len(torn))]


@pytest.mark.parametrize(
    "bad",
    [b"\0" * 300, b'{"type":"user","uuid":"\xff"}', b'{"type":"user"', b"garbage", b'{"a":' * 5000, b'{"a":1}}'],
    ids=["NUL", "not UTF-8", "torn", "words", "deep", "tail"],
)
def test_one_bad_line_among_good_ones_is_no_error(writer: Writer, tmp_path: Path, bad: bytes):
    first = writer.human(None, "one")
    writer.agent(first, "m1", text("two"))
    writer.lines.insert(1, bad)
    log = read(writer.write(tmp_path / "s.jsonl"))
    assert len(log.records) == 2
    assert [torn.line for torn in log.torn] == [2]
    assert outline(history(log)) == ["u: one", "a: two"]


def test_words_in_every_spelling_are_copied_as_they_are(writer: Writer, tmp_path: Path):
    first = writer.human(None, "placeholder")
    writer.lines[0] = writer.lines[0].replace(b'"placeholder"', '"é \\u00e9 \\ud83d \\u0000 😀 \\/ 1.0"'.encode())
    writer.agent(first, "m1", text("two"))
    found = live(writer, tmp_path)
    assert '"content":"é \\u00e9 \\ud83d \\u0000 😀 \\/ 1.0"'.encode() in found.body
    assert found.human == [0]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "empty"),
        (b"\n \n", "only empty lines"),
        (b"\x7fELF\0\0\1\2" * 99, "binary file (a NUL at byte 4)"),
        (b"\x28\xb5\x2f\xfd\x20\x03\0\n" * 9, "it is packed with zstd; unpack it first"),
        (b"\x1f\x8b\x08\x00\n" * 9, "it is packed with gzip; unpack it first"),
        (b"hello\nworld\n", "line 1 is no record"),
        (b'{"type":"user","uuid":"\xff"}\n', "invalid UTF-8 at byte 23"),
        (b'{"model":"x","messages":[]}\n', "without a record's “type”"),
        (b"[1, 2]\n", "line 1 is JSON without"),
        (b'{"loglines": 5}', "a web export that can't be read"),
        (b'{"loglines": [', "a web export that can't be read"),
        (b'{"type":"mode","mode":"normal"}\n', "no live conversation"),
        (b'{"type":"session_meta","payload":{}}\n', "no live conversation"),
    ],
)
def test_what_is_no_session_is_refused_in_one_line(tmp_path: Path, data: bytes, says: str):
    path = tmp_path / "file.jsonl"
    path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        open_session(path)
    message = str(caught.value)
    assert says in message
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    assert ";" in message, "it says what to do"


def test_directories_absent_files_and_pipes_are_refused(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    for path, says in (
        (tmp_path, "is a directory"),
        (tmp_path / "no", "no such file"),
        (tmp_path / "pipe", "no regular"),
    ):
        with pytest.raises(InputError, match=says):
            read(path)
    with pytest.raises(InputError, match="can't be a file's name"):
        read("a\0b")


def test_a_file_that_grows_is_read_as_it_was_and_says_so(
    writer: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    writer.human(None, "one")
    path = writer.write(tmp_path / "s.jsonl")
    size = path.stat().st_size
    from cutline.sessions.claude_code import records

    opened = records.open_file

    def open_then_grow(file: Path, hint: str) -> Any:
        found = opened(file, hint)
        with file.open("ab") as handle:
            handle.write(b'{"type":"user"')
        return found

    monkeypatch.setattr(records, "open_file", open_then_grow)
    log = read(path)
    assert (log.size, log.grew, len(log.records), log.torn) == (size, 14, 1, ())


def test_a_file_that_shrinks_is_said(writer: Writer, tmp_path: Path):
    writer.human(None, "one")
    path = writer.write(tmp_path / "s.jsonl")
    log = read(path)
    path.write_bytes(b"")
    with pytest.raises(InputError, match="became shorter"):
        history(log)


# ------------------------------------------------------------------------------------------ the live branch


def test_parallel_calls_keep_their_results_wherever_they_hang(writer: Writer, tmp_path: Path):
    a = writer.human(None, "go")
    b = writer.agent(a, "m1", text("three at once"))
    c = writer.agent(b, "m1", call("c1"))
    beside = writer.agent(c, "m1", call("c2"))
    d = writer.agent(c, "m1", call("c3"))
    writer.result(c, "c1", "one")
    writer.result(beside, "c2", "two")
    e = writer.result(d, "c3", "three")
    writer.agent(e, "m2", text("done"))
    found = live(writer, tmp_path)
    assert outline(found) == ["u: go", "a: three at once +c1 +c2 +c3", "u: -c1 -c2 -c3", "a: done"]
    assert found.origins == ["human", "agent", "results", "agent"]
    assert found.branch.unanswered == ()


def test_a_result_may_stand_before_its_call_in_the_file(writer: Writer, tmp_path: Path):
    a = writer.human(None, "go")
    b = writer.agent(a, "m1", call("c1"))
    c = writer.result(b, "c1", "one")
    writer.agent(c, "m2", text("done"))
    writer.lines[1], writer.lines[2] = writer.lines[2], writer.lines[1]
    assert outline(live(writer, tmp_path)) == ["u: go", "a: +c1", "u: -c1", "a: done"]


def test_an_id_that_is_used_again_pairs_with_its_own_result(writer: Writer, tmp_path: Path):
    a = writer.human(None, "go")
    for turn in ("m1", "m2"):
        b = writer.agent(a, turn, call("call_0"))
        a = writer.result(b, "call_0", turn)
    writer.agent(a, "m3", text("done"))
    found = live(writer, tmp_path)
    assert outline(found) == ["u: go", "a: +call_0", "u: -call_0", "a: +call_0", "u: -call_0", "a: done"]
    assert [json.loads(found.body)["messages"][number]["content"][0]["content"] for number in (2, 4)] == ["m1", "m2"]


def test_other_records_pass_the_chain_through(writer: Writer, tmp_path: Path):
    a = writer.human(None, "go")
    b = writer.agent(a, "m1", call("c1"))
    c = writer.record(b, type="progress", data={"type": "hook_progress"}, toolUseID="c1")
    d = writer.result(c, "c1", "one")
    e = writer.attachment(d, type="task_reminder", content=[])
    f = writer.record(e, type="system", subtype="turn_duration", durationMs=9)
    writer.agent(f, "m2", text("done"))
    found = live(writer, tmp_path)
    assert outline(found) == ["u: go", "a: +c1", "u: -c1", "a: done"]
    assert found.left_out == len('{"type": "task_reminder", "content": []}')


def test_the_last_record_of_the_file_decides_between_branches(writer: Writer, tmp_path: Path):
    a = writer.human(None, "one")
    b = writer.agent(a, "m1", text("first"))
    c = writer.human(b, "two, later by its clock")
    writer.agent(c, "m2", text("left"), timestamp="2026-10-05T11:00:00.000Z")
    d = writer.human(b, "two, written last")
    writer.agent(d, "m3", text("right"))
    assert outline(live(writer, tmp_path))[2:] == ["u: two, written last", "a: right"]


def test_a_noted_leaf_counts_where_the_last_record_does_not_come_from_it(writer: Writer, tmp_path: Path):
    a = writer.human(None, "one")
    b = writer.agent(a, "m1", text("first"))
    c = writer.human(b, "left")
    leaf = writer.agent(c, "m2", text("left done"))
    d = writer.human(b, "right")
    writer.agent(d, "m3", text("right done"))
    writer.row(type="last-prompt", leafUuid=leaf, sessionId=ID)
    assert outline(live(writer, tmp_path))[2:] == ["u: left", "a: left done"]
    # The session went on from the noted leaf: then the last record counts.
    e = writer.human(leaf, "left again")
    assert outline(live(writer, tmp_path))[2:] == ["u: left", "a: left done", "u: left again"]
    # A leaf that is not in the file is no leaf.
    writer.row(type="last-prompt", leafUuid="not-here", sessionId=ID)
    assert found_leaf(writer, tmp_path) == e


def found_leaf(writer: Writer, tmp_path: Path) -> str:
    found = live(writer, tmp_path)
    assert found.branch.leaf is not None
    return found.log.records[found.branch.leaf].uuid


def test_sidechains_are_no_part_of_the_session(writer: Writer, tmp_path: Path):
    a = writer.human(None, "go")
    b = writer.agent(a, "m1", call("c1", "Task"))
    x = writer.human(None, "sub-agent, go", isSidechain=True)
    writer.agent(x, "s1", text("sub-agent speaks"), isSidechain=True)
    c = writer.result(b, "c1", "report")
    writer.agent(c, "m2", text("done"))
    assert outline(live(writer, tmp_path)) == ["u: go", "a: +c1", "u: -c1", "a: done"]


def test_a_sub_agents_own_file_is_read_and_nobody_typed_in_it(writer: Writer, tmp_path: Path):
    a = writer.human(None, "sub-agent, go", isSidechain=True)
    writer.agent(a, "s1", text("sub-agent speaks"), isSidechain=True)
    found = live(writer, tmp_path)
    assert outline(found) == ["u: sub-agent, go", "a: sub-agent speaks"]
    assert found.human == []


def test_two_session_ids_in_one_file_are_one_session(writer: Writer, tmp_path: Path):
    a = writer.human(None, "one", sessionId="another")
    writer.agent(a, "m1", text("two"))
    assert outline(live(writer, tmp_path)) == ["u: one", "a: two"]


def test_a_record_written_twice_counts_once(writer: Writer, tmp_path: Path):
    a = writer.human(None, "one")
    writer.agent(a, "m1", text("two"))
    writer.lines.append(writer.lines[1])
    assert outline(live(writer, tmp_path)) == ["u: one", "a: two"]


def test_a_missing_parent_is_bridged_in_time_or_ends_the_branch(writer: Writer, tmp_path: Path):
    a = writer.human(None, "one")
    b = writer.agent(a, "m1", text("first"))
    writer.human("gone", "two")
    found = live(writer, tmp_path)
    assert outline(found) == ["u: one", "a: first", "u: two"]
    assert found.branch.missing == ("gone",)
    assert [(found.log.records[x].uuid[:8], found.log.records[y].uuid) for x, y in found.branch.relinked] == [
        ("00000003", b)
    ]
    writer.seconds += 6
    writer.human("gone too", "three")
    found = live(writer, tmp_path)
    assert outline(found) == ["u: three"]
    assert (found.branch.ended, found.branch.missing) == ("missing parent", ("gone too",))


def test_a_cycle_ends_the_branch(writer: Writer, tmp_path: Path):
    a = writer.human("00000004-0000-4000-8000-000000000000", "one")
    b = writer.agent(a, "m1", text("first"))
    c = writer.human(b, "two")
    writer.agent(c, "m2", text("second"))
    found = live(writer, tmp_path)
    assert outline(found) == ["u: one", "a: first", "u: two", "a: second"]
    assert found.branch.ended == "cycle"


def boundary(writer: Writer, parent: str, **metadata: Any) -> str:
    """A compaction and its summary; the summary's uuid."""
    at = writer.record(
        None,
        type="system",
        subtype="compact_boundary",
        logicalParentUuid=parent,
        compactMetadata={"trigger": "auto"} | metadata,
    )
    return writer.human(at, "the summary", isCompactSummary=True, isVisibleInTranscriptOnly=True, uuid="anchor")


def test_a_compaction_begins_the_branch_and_its_summary_is_nobodys_words(writer: Writer, tmp_path: Path):
    a = writer.human(None, "old words")
    b = writer.agent(a, "m1", text("old answer"))
    c = boundary(writer, b)
    d = writer.human(c, "new words")
    writer.agent(d, "m2", text("new answer"))
    found = live(writer, tmp_path)
    assert outline(found) == ["u: the summary", "u: new words", "a: new answer"]
    assert found.origins == ["summary", "human", "agent"]
    assert found.branch.ended == "compaction"
    assert found.log.records[found.branch.chain[0]].logical == b


@pytest.mark.parametrize("spelling", ["list", "piece"])
def test_messages_that_a_compaction_preserved_stand_behind_the_summary(writer: Writer, tmp_path: Path, spelling: str):
    a = writer.human(None, "old words")
    b = writer.agent(a, "m1", text("old answer"))
    c = writer.human(b, "kept words")
    d = writer.agent(c, "m2", text("kept answer"))
    if spelling == "list":
        e = boundary(writer, d, preservedMessages={"anchorUuid": "anchor", "uuids": [c, d]})
    else:
        e = boundary(writer, d, preservedSegment={"anchorUuid": "anchor", "headUuid": c, "tailUuid": d})
    f = writer.human(e, "new words")
    writer.agent(f, "m3", text("new answer"))
    found = live(writer, tmp_path)
    assert outline(found) == ["u: the summary", "u: kept words", "a: kept answer", "u: new words", "a: new answer"]
    assert len(found.branch.relinked) == 2


def test_preserved_messages_that_are_not_in_the_file_change_nothing(writer: Writer, tmp_path: Path):
    a = writer.human(None, "old words")
    b = boundary(writer, a, preservedMessages={"anchorUuid": "anchor", "uuids": ["elsewhere"]})
    writer.human(b, "new words")
    assert outline(live(writer, tmp_path)) == ["u: the summary", "u: new words"]


# ------------------------------------------------------------------------------------------- the wire body


def test_half_pairs_and_twins_are_in_the_body_so_that_a_cut_can_take_them(writer: Writer, tmp_path: Path):
    a = writer.human(None, "go")
    b = writer.agent(a, "m1", call("c1"), call("never"))
    c = writer.result(b, "c1", "one")
    d = writer.result(c, "c1", "one again")
    e = writer.result(d, "elsewhere", "lost")
    writer.agent(e, "m2", text("done"))
    found = live(writer, tmp_path)
    assert outline(found) == ["u: go", "a: +c1 +never", "u: -c1", "u: -c1", "u: -elsewhere", "a: done"]
    assert found.branch.unanswered == ("never",)
    assert [id_ for _, id_ in found.branch.orphans] == ["c1", "elsewhere"]


def test_words_beside_a_result_follow_it_as_their_own_message(writer: Writer, tmp_path: Path):
    a = writer.human(None, "go")
    b = writer.agent(a, "m1", call("c1"))
    block = {"tool_use_id": "c1", "type": "tool_result", "content": "one"}
    writer.human(b, [text("stop, and look here"), block])
    found = live(writer, tmp_path)
    assert outline(found) == ["u: go", "a: +c1", "u: -c1", "u: stop, and look here"]
    assert found.human == [0, 3]
    assert [place.block for places in found.places[2:] for place in places] == [1, 0]


def test_the_clients_own_error_messages_are_not_sent(writer: Writer, tmp_path: Path):
    a = writer.human(None, "go")
    b = writer.agent(a, "e1", text("API Error: 500"), model="<synthetic>", isApiErrorMessage=True)
    c = writer.agent(b, "n1", text("No response requested."), model="<synthetic>")
    d = writer.human(c, "again")
    writer.agent(d, "m1", text("done"), model="claude-y")
    found = live(writer, tmp_path)
    assert outline(found) == ["u: go", "a: No response requested.", "u: again", "a: done"]
    assert found.origins == ["human", "harness", "human", "agent"]
    assert (found.model, found.models) == ("claude-y", ("claude-y",))
    assert [made.message_id for made in found.requests] == ["m1"]
    assert len(found.dropped) == 1


@pytest.mark.parametrize(
    ("content", "members", "typed"),
    [
        ("plain words", {}, True),
        ("plain words", {"origin": {"kind": "human"}, "promptSource": "typed"}, True),
        ("<command-name>/review</command-name>\n<command-args>7</command-args>", {}, True),
        ("<bash-input>ls</bash-input>", {}, True),
        ([{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}}], {}, True),
        ([text("<ide_opened_file>a.py</ide_opened_file>"), text("and this")], {}, True),
        ([text("<ide_opened_file>a.py</ide_opened_file>")], {}, False),
        ("a skill's text", {"isMeta": True}, False),
        ("<local-command-stdout>out</local-command-stdout>", {}, False),
        ("<bash-stdout>out</bash-stdout><bash-stderr></bash-stderr>", {}, False),
        ("Caveat: The messages below were generated by the user while running local commands.", {}, False),
        ("[Request interrupted by user]", {}, False),
        ("<task-notification>done</task-notification>", {}, False),
        ("from another agent", {"origin": {"kind": "peer"}}, False),
    ],
)
def test_who_typed_a_message(writer: Writer, tmp_path: Path, content: Any, members: dict[str, Any], typed: bool):
    writer.human(None, content, **members)
    found = live(writer, tmp_path)
    assert found.human == ([0] if typed else [])
    assert found.origins == ["human" if typed else "harness"]


def test_words_that_waited_in_the_queue_are_the_humans(writer: Writer, tmp_path: Path):
    a = writer.human(None, "go")
    b = writer.agent(a, "m1", call("c1"))
    c = writer.result(b, "c1", "one")
    d = writer.attachment(c, type="queued_command", prompt="also this, é", commandMode="prompt")
    e = writer.attachment(d, type="queued_command", prompt=[text("and a picture")], origin={"kind": "human"})
    f = writer.attachment(e, type="queued_command", prompt="<task-notification>x", commandMode="task-notification")
    g = writer.agent(f, "m2", text("done"))
    writer.attachment(g, type="queued_command", prompt="one more thing", commandMode="prompt")
    found = live(writer, tmp_path)
    assert outline(found)[3:] == [
        "u: also this, é",
        "u: and a picture",
        "u: <task-notification>x",
        "a: done",
        "u: one more thing",
    ]
    assert found.human == [0, 3, 4, 7]
    assert found.places[3][0].block == -1


def test_a_local_commands_output_in_a_system_record_is_sent(writer: Writer, tmp_path: Path):
    a = writer.human(None, "go")
    writer.record(a, type="system", subtype="local_command", content="<local-command-stdout>x</local-command-stdout>")
    found = live(writer, tmp_path)
    assert outline(found) == ["u: go", "u: <local-command-stdout>x</local-command-stdout>"]
    assert found.human == [0]


def test_usage_is_the_last_of_a_messages_records(writer: Writer, tmp_path: Path):
    a = writer.human(None, "go")
    b = writer.agent(a, "m1", {"type": "thinking", "thinking": "", "signature": "x"})
    c = writer.agent(b, "m1", call("c1"))
    d = writer.result(c, "c1", "one")
    writer.agent(d, "m2", text("done"))
    found = live(writer, tmp_path)
    assert [(made.message, made.message_id, made.usage.output) for made in found.requests] == [
        (1, "m1", 2),
        (3, "m2", 4),
    ]
    assert found.requests[0].usage.cache_read == 100
    assert found.requests[1].timestamp == "2026-10-05T09:00:05.000Z"


# -------------------------------------------------------------------------------------- the session as a whole


def opened(writer: Writer, tmp_path: Path) -> Session:
    return open_session(writer.write(tmp_path / f"{ID}.jsonl"))


def test_a_session_says_what_and_where_it_is(writer: Writer, tmp_path: Path):
    a = writer.human(None, "<command-name>/fix</command-name>\n<command-args>the é bug</command-args>", cwd="/prøj")
    writer.agent(a, "m1", text("done"), version="2.1.332", gitBranch="feature")
    session = opened(writer, tmp_path)
    assert (session.id, session.path.name) == (ID, f"{ID}.jsonl")
    assert (session.cwd, session.git_branch, session.version) == ("/prøj", "feature", "2.1.332")
    assert (session.log.first, session.log.last) == ("2026-10-05T09:00:01.000Z", "2026-10-05T09:00:02.000Z")
    assert session.title == "/fix the é bug"
    writer.row(type="summary", summary="another session's", leafUuid="elsewhere")
    assert opened(writer, tmp_path).title == "/fix the é bug"
    writer.row(type="summary", summary="old", leafUuid=a)
    assert opened(writer, tmp_path).title == "old"
    writer.row(type="ai-title", aiTitle="by\nitself", sessionId=ID)
    assert opened(writer, tmp_path).title == "by itself"
    writer.row(type="custom-title", customTitle="mine", sessionId=ID)
    writer.row(type="custom-title", customTitle="mine, renamed", sessionId=ID)
    assert opened(writer, tmp_path).title == "mine, renamed"


# ----------------------------------------------------------------------------------------------- finding them


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
    (tmp_path / "config" / "projects").mkdir(parents=True)
    return tmp_path


def put(home: Path, cwd: Path, id_: str, words: str = "hello", age: int = 0) -> Path:
    cwd.mkdir(parents=True, exist_ok=True)
    folder = home / "config" / "projects" / folder_name(cwd)
    folder.mkdir(exist_ok=True)
    writer = Writer()
    writer.human(None, words)
    path = writer.write(folder / f"{id_}.jsonl")
    os.utime(path, (1_700_000_000 - age, 1_700_000_000 - age))
    return path


def test_a_folder_is_named_after_the_working_directory(tmp_path: Path):
    real = os.path.realpath(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path)
    assert folder_name("/a/b.c d_é/😀") == "-a-b-c-d" + "-" * 5
    assert folder_name("/e\u0301") == "-e-"
    # Measured with the client: a long name is shortened, and a hash of the path stands behind it.
    long = "/var/tmp/c/" + "k" * 150 + "/é😀" + "m" * 60
    assert folder_name(long) == "-var-tmp-c-" + "k" * 150 + "----" + "m" * 35 + "-qv80rs"
    assert folder_name(tmp_path / "link") == folder_name(real)
    assert set(folder_name(real)) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-")


def test_the_home_folder_is_looked_in_without_a_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert sessions() == []
    folder = tmp_path / ".claude" / "projects" / folder_name("/p")
    folder.mkdir(parents=True)
    (folder / "abc.jsonl").write_bytes(b"{}")
    assert [session.id for session in sessions("/p")] == ["abc"]


def test_sessions_are_listed_the_newest_first(home: Path):
    here, there = home / "here", home / "there"
    old, new, other = (
        put(home, here, "aaa1", age=9),
        put(home, here, "aaa2", "second session"),
        put(home, there, "bbb1", age=5),
    )
    assert [session.path for session in sessions(here)] == [new, old]
    assert [session.path for session in sessions()] == [new, other, old]
    first = sessions(here)[0]
    assert (first.id, first.folder, first.size, first.mtime) == (
        "aaa2",
        folder_name(here),
        new.stat().st_size,
        1_700_000_000,
    )
    assert first.title == "second session"
    with new.open("ab") as handle:
        handle.write(b'{"type":"user","message":"' + b"x" * 200_000 + b'"}\n')
        handle.write(b'{"type":"custom-title","customTitle":"named at the end"}\n{"type":"mo')
    assert sessions(here)[0].title == "named at the end"


def test_what_is_no_session_is_not_listed(home: Path):
    here = home / "here"
    real = put(home, here, "aaa1")
    folder = real.parent
    (folder / "empty.jsonl").touch()
    (folder / ".hidden.jsonl").write_bytes(b"{}")
    (folder / "copy.jsonl.tmp").write_bytes(b"{}")
    (folder / "agent-1.jsonl").write_bytes(b"{}")
    (folder / "broken.jsonl").symlink_to(folder / "nowhere")
    (folder / "folder.jsonl").mkdir()
    (folder / "aaa1" / "subagents").mkdir(parents=True)
    (folder / "aaa1" / "subagents" / "agent-2.jsonl").write_bytes(b"{}")
    (folder / "linked.jsonl").symlink_to(real)
    assert sorted(session.id for session in sessions(here)) == ["aaa1", "linked"]


def test_sub_agents_files_belong_to_their_session(home: Path):
    path = put(home, home / "here", "aaa1")
    own = path.parent / "aaa1" / "subagents"
    own.mkdir(parents=True)
    new, old, foreign = own / "agent-2.jsonl", path.parent / "agent-1.jsonl", path.parent / "agent-3.jsonl"
    new.write_bytes(b"{}")
    old.write_bytes(b'{"type":"user","sessionId":"aaa1"}')
    foreign.write_bytes(b'{"type":"user","sessionId":"another"}')
    assert subagents(path) == sorted([new, old])


def test_a_session_is_meant_by_path_by_id_by_prefix_or_by_nothing(home: Path, monkeypatch: pytest.MonkeyPatch):
    here, there = home / "here", home / "there"
    old, new = put(home, here, "aaaa1111-x", age=9), put(home, here, "aaab2222-x")
    other = put(home, there, "cccc3333-x", age=5)
    assert resolve(None, here).path == new
    assert resolve(None, there).path == other
    assert resolve("aaaa", there).path == old
    assert resolve("CCCC3333-X", here).path == other
    assert resolve(str(old), there).path == old
    monkeypatch.chdir(old.parent)
    assert resolve(old.name, there).path == Path(old.name)


def test_the_latest_session_is_one_in_which_somebody_speaks(home: Path):
    spoken = put(home, home / "here", "aaaa", age=9)
    (spoken.parent / "bbbb.jsonl").write_bytes(b'{"type":"mode","mode":"normal"}\n')
    assert resolve(None, home / "here").path == spoken


@pytest.mark.parametrize(
    ("argument", "says"),
    [
        (None, "no session for"),
        ("zzz", "no session “zzz”"),
        ("", "no session “”"),
        ("aaa", "fits 2 sessions"),
        ("./nothing.jsonl", "no such file"),
        (".", "is a directory"),
    ],
)
def test_what_is_not_clear_is_asked_back(home: Path, argument: str | None, says: str):
    put(home, home / "here", "aaa1")
    put(home, home / "here", "aaa2")
    with pytest.raises(InputError) as caught:
        resolve(argument, home / "elsewhere")
    assert says in str(caught.value)
    assert ";" in str(caught.value), "it says what to do"
    assert "\n" not in str(caught.value)


# ----------------------------------------------------------------------------------------------------- scale


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read from /proc")
@pytest.mark.parametrize("kind", ["results", "small", "pictures"])
def test_a_session_of_100_mb_is_read_in_250_mb(tmp_path: Path, kind: str):
    path = tmp_path / "large.jsonl"
    weight = {"results": 20_000, "small": 300, "pictures": 2_000_000}[kind]
    words = "Ünïcödé wörds of the world, 123.45 — line\n" * (weight // 45 + 1)
    parent: str | None = None
    with path.open("wb") as handle:
        number = 0
        while handle.tell() < 100_000_000:
            writer = Writer()
            writer.seconds = number = number + 3
            a = writer.human(parent, f"turn {number}", uuid=f"h{number}")
            b = writer.agent(a, f"m{number}", call(f"c{number}"), uuid=f"a{number}")
            parent = writer.result(b, f"c{number}", words, uuid=f"r{number}")
            handle.write(b"".join(line + b"\n" for line in writer.lines))
    # The peak of this program alone: what getrusage says includes the process that it was forked from.
    code = (
        "import re, sys; from cutline.sessions.claude_code import open_session; s = open_session(sys.argv[1]);"
        "peak = re.search(r'VmHWM:\\s*(\\d+) kB', open('/proc/self/status').read());"
        "print(len(s.log.records), len(s.history.body), peak[1])"
    )
    source = Path(__file__).resolve().parents[1] / "src"
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(source)},
    )
    records, body, peak = map(int, done.stdout.split())
    assert records == number
    assert body > 30_000_000
    assert peak * 1024 <= 250_000_000, f"peak {peak * 1024:,} bytes"
