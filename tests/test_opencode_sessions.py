"""opencode's sessions are found and read, and cut copies of them are written: its database, its files, its exports."""

import json
import os
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from conftest import SHARED, large_ones_slow, smaller, tried
from cutline import spans
from cutline.blocks import address
from cutline.errors import CutlineError, InputError, NothingToCut
from cutline.sessions import clients, opencode
from cutline.sessions.cutting import execute, prospect
from cutline.sessions.neutral import NeutralSession
from live.upstream import narration

RECORDED = sorted((SHARED / "data" / "sessions" / "opencode").glob("*"))
needs_data = pytest.mark.skipif(not RECORDED, reason="../shared/data is not on this machine")
ID = "ses_f377e4b0cffeAAAAAAAAAAAAAA"
CHECKPOINT = "cutline_micro_handoff"
DOCUMENT = {"done": "Counted.", "open": "the sum", "went_wrong": "nothing"}
SCHEMA = """
CREATE TABLE session (id text PRIMARY KEY, project_id text NOT NULL, parent_id text, slug text NOT NULL,
  directory text NOT NULL, title text NOT NULL, version text NOT NULL, share_url text, summary_diffs text,
  revert text, permission text, time_created integer NOT NULL, time_updated integer NOT NULL,
  time_archived integer);
CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL REFERENCES session(id) ON DELETE CASCADE,
  time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL REFERENCES message(id) ON DELETE CASCADE,
  session_id text NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
CREATE TABLE todo (session_id text NOT NULL REFERENCES session(id) ON DELETE CASCADE, content text NOT NULL,
  position integer NOT NULL, PRIMARY KEY (session_id, position));
"""


class Writer:
    """Writes a session as the client does: each method appends a message and returns its id."""

    def __init__(self, id: str = ID, cwd: str = "/p", **info: Any) -> None:
        self.id = id
        self.info: dict[str, Any] = {"id": id, "slug": "calm-otter", "projectID": "global", "directory": cwd}
        self.info |= {"title": "Counting", "version": "1.18.33", "time": {"created": 1_000, "updated": 9_000}}
        self.info |= info
        self.messages: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
        self.asked = ""

    def message(self, role: str, parts: list[dict[str, Any]], **members: Any) -> str:
        number = len(self.messages) + 1
        id_ = f"msg_2377e4{number:06x}AAAAAAAAAAAAAA"
        info = {"id": id_, "sessionID": self.id, "role": role, "time": {"created": 1_796_000_000_000 + number}}
        made = [
            {"id": f"prt_2377e4{number * 256 + index:06x}AAAAAAAAAAAAAA", "sessionID": self.id, "messageID": id_} | part
            for index, part in enumerate(parts)
        ]
        self.messages.append((info | members, made))
        return id_

    def human(self, *parts: Any, **members: Any) -> str:
        known = {"agent": "build", "model": {"providerID": "scripted", "modelID": "m1"}}
        given = [text(part) if isinstance(part, str) else part for part in parts]
        self.asked = self.message("user", given, **known, **members)
        return self.asked

    def agent(self, *parts: Any, **members: Any) -> str:
        tokens = {"total": 1_060 + len(self.messages), "input": 40, "output": 20 + len(self.messages), "reasoning": 9}
        tokens["cache"] = {"read": 1_000, "write": 0}  # type: ignore[assignment]
        given = [text(part) if isinstance(part, str) else part for part in parts]
        steps = [{"type": "step-start"}, *given, {"type": "step-finish", "reason": "stop", "tokens": tokens, "cost": 0}]
        known = {"parentID": self.asked, "modelID": "m1", "providerID": "scripted", "mode": "build", "agent": "build"}
        known |= {"path": {"cwd": "/p", "root": "/"}, "cost": 0, "tokens": tokens, "finish": "stop"}
        return self.message("assistant", steps, **(known | members))

    def step(self, id_: str, words: str = "Looking.", output: str = "seen") -> str:
        return self.agent(words, call(id_, output=output))

    def checkpoint(self, id_: str = "note") -> str:
        return self.agent("A note.", call(id_, CHECKPOINT, DOCUMENT, "checkpoint stored"))

    # what it is kept in

    def database(self, folder: Path, *others: "Writer") -> Path:
        path = folder / "opencode.db"
        with closing(sqlite3.connect(path)) as database, database:
            database.execute("PRAGMA journal_mode = WAL")
            database.executescript(SCHEMA)
            for one in (self, *others):
                one.insert(database)
        return path

    def insert(self, database: sqlite3.Connection) -> None:
        info = self.info
        row = {"id": self.id, "project_id": "global", "parent_id": info.get("parentID"), "slug": info["slug"]}
        row |= {"directory": info["directory"], "title": info["title"], "version": info["version"]}
        row |= {"share_url": (info.get("share") or {}).get("url"), "permission": "[]"}
        row |= {"revert": json.dumps(info["revert"]) if "revert" in info else None}
        row |= {"time_created": info["time"]["created"], "time_updated": info["time"]["updated"]}
        put(database, "session", row)
        for message, parts in self.messages:
            made = message["time"]["created"]
            times = {"time_created": made, "time_updated": made}
            data = dumped({key: value for key, value in message.items() if key not in ("id", "sessionID")})
            put(database, "message", {"id": message["id"], "session_id": self.id, "data": data, **times})
            for part in parts:
                data = dumped({k: v for k, v in part.items() if k not in ("id", "sessionID", "messageID")})
                links = {"id": part["id"], "message_id": message["id"], "session_id": self.id}
                put(database, "part", {**links, "data": data, **times})

    def files(self, folder: Path) -> Path:
        storage = folder / "storage"
        for message, parts in self.messages:
            save(storage / "message" / self.id / f"{message['id']}.json", message)
            for part in parts:
                save(storage / "part" / message["id"] / f"{part['id']}.json", part)
        return save(storage / "session" / "global" / f"{self.id}.json", self.info)

    def export(self, folder: Path) -> Path:
        found = [{"info": message, "parts": parts} for message, parts in self.messages]
        return save(folder / "export.json", {"info": self.info, "messages": found})

    def events(self, folder: Path) -> Path:
        rows = [{"type": "session.created", "properties": {"info": self.info}}]
        for message, parts in self.messages:
            rows.append({"type": "message.updated", "properties": {"info": message}})
            rows += [{"type": "message.part.updated", "properties": {"part": part}} for part in parts]
        path = folder / "events.jsonl"
        path.write_bytes(b"".join(dumped(row).encode() + b"\n" for row in rows))
        return path


def text(words: str, **members: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **members}


def thinking(words: str, **members: Any) -> dict[str, Any]:
    return {"type": "reasoning", "text": words, "time": {"start": 1, "end": 2}, **members}


def call(
    id_: str, name: str = "bash", arguments: dict[str, Any] | None = None, output: str = "seen", **state: Any
) -> dict[str, Any]:
    given = {"command": f"run {id_}"} if arguments is None else arguments
    known = {"status": "completed", "input": given, "output": output, "title": "", "metadata": {"output": output}}
    return {"type": "tool", "callID": id_, "tool": name, "state": {**known, "time": {"start": 1, "end": 2}, **state}}


def dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def save(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False, indent=2))
    return path


def put(database: sqlite3.Connection, table: str, row: dict[str, Any]) -> None:
    marks = ", ".join("?" * len(row))
    database.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", list(row.values()))


def outline(session: NeutralSession) -> list[str]:
    """Each message as its role's letter and its blocks: words, +call, -result, *thinking."""
    lines = []
    for message in json.loads(session.history.body)["messages"]:
        parts = [
            f"+{block['id']}"
            if block["type"] == "tool_use"
            else f"-{block['tool_use_id']}"
            if block["type"] == "tool_result"
            else f"*{block['thinking']}"
            if block["type"] == "thinking"
            else block.get("text", block["type"])
            for block in message["content"]
        ]
        lines.append(f"{message['role'][0]}: {' '.join(parts)}")
    return lines


def contents(session: NeutralSession) -> dict[str, Any]:
    """The results of a history, by their calls."""
    blocks = [block for message in json.loads(session.history.body)["messages"] for block in message["content"]]
    return {block["tool_use_id"]: block for block in blocks if block["type"] == "tool_result"}


KINDS: dict[str, Callable[[Writer, Path], Path]] = {
    "database": Writer.database,
    "files": Writer.files,
    "export": Writer.export,
    "events": Writer.events,
}
kinds = pytest.mark.parametrize("kind", KINDS)


def work(**info: Any) -> Writer:
    writer = Writer(**info)
    writer.human("Count — ünïcode \u2028 to 40.")
    writer.agent(thinking("Hm."), "I count.", call("c1", output="1\n2\n3"), call("c2", output="looked"))
    writer.step("c3", "Once more.", "4\n5\n6")
    writer.checkpoint()
    writer.agent("Now the sum.", call("c4", output="820"))
    writer.agent("The sum is 820.")
    return writer


# ------------------------------------------------------------------------------------ every recorded session


@pytest.fixture(scope="module")
def manifest() -> dict[str, Any]:
    rows = json.loads((SHARED / "data" / "manifest.json").read_text())
    return {row["file"]: row["stats"] for row in rows}


@needs_data
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_every_recorded_session_is_read_whole(path: Path, manifest: dict[str, Any]) -> None:
    counts = manifest[f"opencode/{path.name}"]
    session = opencode.open_session(path)
    assert session.damage == ()
    blocks = [
        (origin, block)
        for message, origin in zip(json.loads(session.history.body)["messages"], session.history.origins, strict=True)
        for block in message["content"]
    ]
    kinds = [block["type"] for _, block in blocks]
    assert kinds.count("tool_use") == counts["tool_calls"]
    assert kinds.count("tool_result") == counts["tool_results"]
    assert sum(bool(block.get("is_error")) for _, block in blocks) == counts["errors"]
    assert session.history.model in counts["models"]
    assert kinds.count("thinking") == counts["thinking"]
    assert len(session.history.human) == counts["human_msgs"]
    assert session.id.startswith("ses_") and session.cwd and session.title and session.version and session.last


@needs_data
@pytest.mark.parametrize("path", large_ones_slow(RECORDED), ids=lambda path: path.stem)
def test_words_arguments_and_results_are_the_file_s_own_literals(path: Path) -> None:
    session, data = opencode.open_session(path), path.read_bytes()
    view = session.history.body.decode("latin-1")
    messages = spans.find(view, 0, "messages")
    assert messages is not None
    made_up = (b'"The following tool was executed by the user"', b'"[Old tool result content cleared]"')
    seen = 0
    for start, _ in spans.elements(view, messages.start)[0]:
        content = spans.find(view, start, "content")
        assert content is not None
        for block, _ in spans.elements(view, content.start)[0]:
            for member in spans.members(view, block)[0]:
                literal = session.history.body[member.start : member.end]
                if member.key in ("text", "input", "content"):
                    assert literal in data or literal in made_up
                    seen += 1
    assert seen > 5


@needs_data
@pytest.mark.parametrize(
    ("at", "files", "least"),
    [
        *tried("smaller", smaller(RECORDED), {None: 3, "end": 3}),
        # Two of them have turns with something before, and both are large.
        *tried("one", [path for path in RECORDED if path.stem == "nimbus_37364f83fa"], {"last": 1, "human:2": 1}),
        *tried("all", RECORDED, {None: 5, "last": 2, "end": 5, "human:2": 2}, pytest.mark.slow),
    ],
)
def test_every_recorded_session_is_copied_and_proven(
    tmp_path: Path, at: str | None, files: list[Path], least: int
) -> None:
    copied = 0
    for source in files:
        path = tmp_path / source.name
        path.write_bytes(source.read_bytes())
        try:
            copy, proof = execute(prospect(opencode.open_session(path), at=at))
        except (InputError, NothingToCut):
            continue
        copied += 1
        assert not proof.unchanged
        assert path.read_bytes() == source.read_bytes()
        again = opencode.open_session(copy.path)
        assert again.id == copy.id and again.title.endswith("(cut)") and again.damage == ()
        ids = [one.id for one in again.source.messages] + [p.id for one in again.source.messages for p in one.parts]
        assert len(ids) == len(set(ids)), "recorded ids are blacked out, those of a copy are not"
        copy.path.unlink()
    assert copied >= least


@needs_data
@pytest.mark.parametrize(
    "path", large_ones_slow(path for path in RECORDED if path.suffix == ".json"), ids=lambda path: path.stem
)
def test_every_recorded_session_is_cut_at_a_checkpoint(tmp_path: Path, path: Path) -> None:
    whole = json.loads(path.read_bytes())
    model = next(one for one in reversed(whole["messages"]) if any(p["type"] == "tool" for p in one["parts"]))
    note = {"id": "prt_note", "sessionID": "s", "messageID": "m"} | call("note", CHECKPOINT, DOCUMENT, "stored")
    whole["messages"].append({"info": model["info"], "parts": [note]})
    made = tmp_path / path.name
    made.write_text(dumped(whole))
    wanted = prospect(opencode.open_session(made))
    copy, _ = execute(wanted)
    assert wanted.chosen == "checkpoint" and copy.notice == ""
    again = opencode.open_session(copy.path)
    left = contents(again)
    assert list(left) == ["note"] and "[cutline]" in left["note"]["content"]
    with pytest.raises(NothingToCut):
        prospect(again)


# --------------------------------------------------------------------------------------------- reading


@kinds
def test_a_session_is_read_as_the_client_sends_it(tmp_path: Path, kind: str) -> None:
    session = opencode.open_session(KINDS[kind](work(), tmp_path))
    assert outline(session) == [
        "u: Count — ünïcode \u2028 to 40.",
        "a: *Hm. I count. +c1 +c2",
        "u: -c1 -c2",
        "a: Once more. +c3",
        "u: -c3",
        "a: A note. +note",
        "u: -note",
        "a: Now the sum. +c4",
        "u: -c4",
        "a: The sum is 820.",
    ]
    assert (session.client, session.id, session.cwd, session.title) == ("opencode", ID, "/p", "Counting")
    assert (session.version, session.last) == ("1.18.33", "2026-11-30T00:53:20.006Z")
    assert session.history.model == "m1" and session.history.human == [0] and session.damage == ()
    first, *_ = session.history.requests
    assert (first.message, first.usage.input, first.usage.cache_read, first.usage.output) == (1, 40, 1_000, 21)


def test_a_call_has_the_address_that_it_has_on_the_wire(tmp_path: Path) -> None:
    arguments = {"b": 1, "a": ["ü", {"n": 1.5}]}
    writer = Writer()
    writer.human("Go.")
    writer.agent("Looking.", call("c1", "read", arguments))
    session = opencode.open_session(writer.database(tmp_path))
    block = json.loads(session.history.body)["messages"][1]["content"][1]
    assert block["input"] == arguments
    raw = session.history.body[session.history.body.index(b'{"b"') :][: len(dumped(arguments).encode())]
    assert address("c1", "read", raw) == address("c1", "read", dumped(arguments).encode())


def test_what_the_client_puts_in_is_not_the_human_s(tmp_path: Path) -> None:
    writer = Writer()
    writer.human(
        text("Called the Read tool.", synthetic=True),
        "Look at this.",
        text("not sent", ignored=True),
        {"type": "file", "mime": "text/plain", "url": "file:///p/a.txt", "filename": "a.txt"},
        {"type": "file", "mime": "image/png", "url": "data:image/png;base64,AAAA"},
        {"type": "agent", "name": "plan"},
    )
    writer.agent("I see.")
    writer.human({"type": "subtask", "prompt": "Review.", "description": "a review", "agent": "build"})
    session = opencode.open_session(writer.files(tmp_path))
    assert outline(session) == [
        "u: Called the Read tool.",
        "u: Look at this. image",
        "a: I see.",
        "u: The following tool was executed by the user",
    ]
    assert session.history.origins == ["harness", "human", "agent", "harness"]


def test_results_are_what_the_client_sends_for_them(tmp_path: Path) -> None:
    writer = Writer()
    writer.human("Go.")
    rejected = "The user rejected permission to use this specific tool call."
    writer.agent(
        call("fails", status="error", error=rejected),
        call("stopped", status="error", error="aborted", metadata={"interrupted": True, "output": "so far"}),
        call("runs", status="running"),
        call("old", time={"start": 1, "end": 2, "compacted": 3}),
        call("shot", attachments=[{"type": "file", "mime": "image/png", "url": "data:image/png;base64,AAAA"}]),
    )
    found = contents(opencode.open_session(writer.export(tmp_path)))
    assert [(id_, block.get("is_error", False)) for id_, block in found.items()] == [
        ("fails", True),
        ("stopped", False),
        ("runs", True),
        ("old", False),
        ("shot", False),
    ]
    assert found["fails"]["content"] == rejected
    assert found["stopped"]["content"] == "so far"
    assert found["runs"]["content"] == "[Tool execution was interrupted]"
    assert found["old"]["content"] == "[Old tool result content cleared]"
    assert [item["type"] for item in found["shot"]["content"]] == ["text", "image"]


def test_an_answer_of_several_steps_is_several_messages(tmp_path: Path) -> None:
    writer = Writer()
    writer.human("Go.")
    writer.agent("One.", call("c1"), {"type": "step-start"}, "Two.", call("c2"), {"type": "step-start"}, "Three.")
    session = opencode.open_session(writer.database(tmp_path))
    assert outline(session)[1:] == ["a: One. +c1", "u: -c1", "a: Two. +c2", "u: -c2", "a: Three."]


def test_an_answer_that_failed_is_not_sent_unless_a_person_stopped_it(tmp_path: Path) -> None:
    writer = Writer()
    writer.human("Go.")
    writer.agent("Never sent.", error={"name": "APIError", "data": {}})
    writer.agent("Half of it", error={"name": "MessageAbortedError", "data": {}})
    session = opencode.open_session(writer.database(tmp_path))
    assert outline(session) == ["u: Go.", "a: Half of it"]


@kinds
def test_what_a_person_took_back_is_not_sent(tmp_path: Path, kind: str) -> None:
    writer = work()
    writer.human("No, not that.")
    writer.agent("Sorry.", call("c9"))
    message, parts = writer.messages[-1]
    writer.info["revert"] = {"messageID": message["id"], "partID": parts[2]["id"]}
    assert outline(opencode.open_session(KINDS[kind](writer, tmp_path)))[-2:] == ["u: No, not that.", "a: Sorry."]


def compacted(tail: bool) -> Writer:
    writer = Writer()
    writer.human("Count.")
    writer.step("c1", "One.")
    kept = writer.step("c2", "Two.")
    asks = {"type": "compaction", "auto": True} | ({"tail_start_id": kept} if tail else {})
    writer.human(asks)
    writer.agent(thinking("Summing."), "Counted so far.", summary=True)
    writer.human("Go on.")
    writer.step("c3", "Three.")
    return writer


@kinds
def test_a_compaction_hides_what_stands_before_it(tmp_path: Path, kind: str) -> None:
    session = opencode.open_session(KINDS[kind](compacted(tail=False), tmp_path))
    assert session.history.compacted
    assert outline(session) == [
        "u: What did we do so far?",
        "a: *Summing.",
        "u: Counted so far.",
        "u: Go on.",
        "a: Three. +c3",
        "u: -c3",
    ]
    assert session.history.origins[2] == "summary" and session.history.human == [3]


@kinds
def test_the_messages_that_a_compaction_keeps_come_behind_its_summary(tmp_path: Path, kind: str) -> None:
    session = opencode.open_session(KINDS[kind](compacted(tail=True), tmp_path))
    assert outline(session)[2:] == [
        "u: Counted so far.",
        "a: Two. +c2",
        "u: -c2",
        "u: Go on.",
        "a: Three. +c3",
        "u: -c3",
    ]
    copy, _ = execute(prospect(session, at="end"))
    again = opencode.open_session(copy.path, copy.id)
    assert [line for line in outline(again) if "[cutline]" not in line] == [
        "u: What did we do so far?",
        "u: Counted so far.",
        "a: Two.",
        "u: Go on.",
        "a: Three.",
    ]


def test_calls_whose_ids_were_blacked_out_are_told_apart(tmp_path: Path) -> None:
    writer = Writer()
    writer.human("Go.")
    writer.agent("Looking.", call("X", output="first"), call("X", output="second"))
    writer.agent("A note.", call("X", CHECKPOINT, DOCUMENT, "stored"))
    session = opencode.open_session(writer.export(tmp_path))
    assert [block["content"] for block in contents(session).values()] == ["first", "second", "stored"]
    copy, _ = execute(prospect(session))
    assert list(contents(opencode.open_session(copy.path))) == ["X#3"]


# ---------------------------------------------------------------------------------------------- damage


def test_rows_that_can_t_be_read_are_passed_over_and_told(tmp_path: Path) -> None:
    path = work().database(tmp_path)
    deep = '{"type":"text","text":' + "[" * 10_000 + "]" * 10_000 + "}"
    with closing(sqlite3.connect(path)) as database, database:
        found = database.execute("SELECT id FROM part WHERE data LIKE '%\"text\"%' ORDER BY id").fetchall()
        ids = [row[0] for row in found]
        database.execute('UPDATE part SET data = \'{"type": "te\' WHERE id = ?', (ids[1],))
        database.execute("UPDATE part SET data = ? WHERE id = ?", (deep, ids[2]))
        database.execute("UPDATE part SET data = CAST(x'7b22ff223a317d' AS TEXT) WHERE id = ?", (ids[3],))
        database.execute("UPDATE message SET data = '[]' WHERE time_created = 1796000000006")
    session = opencode.open_session(path, ID)
    assert len(session.damage) == 5 and not any("\n" in told for told in session.damage)
    assert session.damage[0].startswith(f"The part {ids[1]} can't be read (not JSON (")
    assert session.damage[1].startswith(f"The part {ids[2]} can't be read (nested too deeply to be read safely): ")
    assert session.damage[2].startswith(f"The part {ids[3]} can't be read (invalid UTF-8): it is passed over")
    assert session.damage[3].startswith("The message msg_2377e4000006")
    assert session.damage[4].startswith("3 parts are of messages that can't be read")
    assert "a: +c3" in outline(session)
    copy, _ = execute(prospect(session))
    assert opencode.open_session(path, copy.id).damage == ()


def test_a_lone_surrogate_stays_as_it_is_written(tmp_path: Path) -> None:
    path = work().export(tmp_path)
    path.write_bytes(path.read_bytes().replace(b"Now the sum.", b"Now \\ud83d the sum."))
    session = opencode.open_session(path)
    assert rb"Now \ud83d the sum." in session.history.body
    copy, _ = execute(prospect(session))
    assert rb"Now \ud83d the sum." in copy.path.read_bytes()


def test_events_that_are_glued_are_parted_and_torn_ones_are_told(tmp_path: Path) -> None:
    path = work().events(tmp_path)
    lines = path.read_bytes().splitlines()
    deep = b'{"type":"message.updated","properties":' + b"[" * 10_000 + b"]" * 10_000 + b"}"
    torn = [lines[0] + lines[1], lines[2], lines[3][:40], b'{"a\xff', deep, b"", *lines[3:], lines[-1][:20]]
    path.write_bytes(b"\n".join(torn))
    session = opencode.open_session(path)
    assert outline(session)[1] == "a: *Hm. I count. +c1 +c2"
    assert [told.split(" can't")[0] for told in session.damage] == ["Line 3", "Line 4", "Line 5", f"Line {len(torn)}"]


def test_words_that_came_in_pieces_are_put_together(tmp_path: Path) -> None:
    writer = Writer()
    writer.human("Go.")
    writer.agent("One")
    path = writer.events(tmp_path)
    part = writer.messages[-1][1][1]
    delta = {"sessionID": ID, "messageID": part["messageID"], "partID": part["id"], "field": "text"}
    with path.open("a") as handle:
        for piece in (" \u00fc", "\nand two."):
            handle.write(dumped({"type": "message.part.delta", "properties": {**delta, "delta": piece}}) + "\n")
    assert outline(opencode.open_session(path))[-1] == "a: One ü\nand two."


def test_a_stream_that_does_not_say_what_its_session_is_is_shown_and_not_copied(tmp_path: Path) -> None:
    path = work().events(tmp_path)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[1:]))
    session = opencode.open_session(path)
    assert session.id == ID and len(outline(session)) == 10
    with pytest.raises(InputError, match="does not say what its session is"):
        execute(prospect(session))


def test_what_is_no_session_is_one_line(tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as database, database:
        database.execute("CREATE TABLE a (b)")
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"SQLite format 3\x00" + b"x" * 200)
    (tmp_path / "empty.json").write_bytes(b"")
    (tmp_path / "text.json").write_bytes(b"hello")
    (tmp_path / "list.json").write_bytes(b"[]")
    (tmp_path / "deep.json").write_bytes(b'{"info":' + b"[" * 10_000)
    silent = Writer("ses_silent").export(tmp_path)
    for path in (other, broken, silent, tmp_path, tmp_path / "none.json", *tmp_path.glob("*.json")):
        with pytest.raises(InputError) as told:
            opencode.open_session(path)
        assert "\n" not in str(told.value) and str(path) in str(told.value)
    assert not opencode.owns(other, other.read_bytes()) and not opencode.owns(broken, broken.read_bytes())


def test_one_of_several_sessions_must_be_named(tmp_path: Path) -> None:
    path = work().database(tmp_path, Writer("ses_2377e4b0dffeBBBBBBBBBBBBBB"))
    assert opencode.open_session(path).id == ID, "the other one says nothing"
    second = Writer("ses_2377e4b0effeCCCCCCCCCCCCCC")
    second.messages = [
        ({**info, "id": info["id"] + "2"}, [{**part, "id": part["id"] + "2"} for part in parts])
        for info, parts in work().messages
    ]
    with closing(sqlite3.connect(path)) as database, database:
        second.insert(database)
    with pytest.raises(InputError, match="more than one session; name one by its id"):
        opencode.open_session(path)
    with pytest.raises(InputError, match="holds no session ses_x"):
        opencode.open_session(path, "ses_x")
    assert opencode.open_session(path, second.id).id == second.id


@pytest.mark.slow
def test_a_hundred_megabytes_of_events_are_read_in_bounded_memory(tmp_path: Path) -> None:
    path = work().events(tmp_path)
    part = work().messages[1][1][3]
    with path.open("ab") as handle:
        for number in range(400):
            output = "x" * 250_000
            state = {**part["state"], "status": "running", "metadata": {"output": output}, "n": number}
            row = {"type": "message.part.updated", "properties": {"part": {**part, "state": state}}}
            handle.write(json.dumps(row).encode() + b"\n")
        row = {"type": "message.part.updated", "properties": {"part": part}}
        handle.write(json.dumps(row).encode() + b"\n")
    assert path.stat().st_size > 100_000_000
    code = (
        "import resource, sys; from cutline.sessions import opencode; "
        "from cutline.sessions.cutting import execute, prospect; "
        f"s = opencode.open_session({str(path)!r}); execute(prospect(s)); "
        "print(int(open('/proc/self/status').read().split('VmHWM:')[1].split()[0]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 250_000


# --------------------------------------------------------------------------------------------- finding


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("OPENCODE_DB", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / ".local" / "share" / "opencode"
    folder.mkdir(parents=True)
    return folder


def test_sessions_of_a_directory_are_listed_the_newest_first(home: Path, tmp_path: Path) -> None:
    here = tmp_path / "project"
    here.mkdir()
    old = work(id="ses_old", cwd=str(here))
    old.info["title"] = "New session - 2026-12-02T16:02:33.358Z"
    elsewhere = Writer("ses_there", cwd="/elsewhere")
    child = Writer("ses_child", cwd=str(here), parentID="ses_old")
    silent = Writer("ses_silent", cwd=str(here), time={"created": 1, "updated": 20_000})
    old.database(home, elsewhere, child, silent)
    found = opencode.sessions(here)
    assert [(one.id, one.talks) for one in found] == [("ses_silent", False), ("ses_old", True)]
    assert found[1].title == "Count — ünïcode to 40." and found[1].folder == str(here)
    assert found[1].size == opencode.open_session(found[1].path, found[1].id).source.size
    assert [one.id for one in opencode.sessions()] == ["ses_silent", "ses_old", "ses_there"]
    assert clients.resolve(None, here).id == "ses_old"
    assert clients.resolve("ses_ol", tmp_path).id == "ses_old"
    assert clients.resolve(str(home / "opencode.db"), tmp_path).id == "ses_old"


def test_files_of_older_versions_are_listed_unless_they_are_in_the_database(home: Path, tmp_path: Path) -> None:
    work().files(home)
    assert [(one.id, one.title, one.path.suffix) for one in opencode.sessions()] == [(ID, "Counting", ".json")]
    session = clients.resolve(ID, tmp_path)
    assert outline(session)[0] == "u: Count — ünïcode \u2028 to 40."  # type: ignore[arg-type]
    assert opencode.sessions()[0].size > 1_000
    work().database(home)
    assert [one.path.suffix for one in opencode.sessions()] == [".db"]


def test_the_client_s_variables_say_where_its_sessions_are(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert opencode.places() == [home] and opencode.sessions() == []
    other = tmp_path / "data" / "opencode"
    other.mkdir(parents=True)
    work().database(other)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert opencode.places() == [other] and [one.id for one in opencode.sessions()] == [ID]
    (other / "opencode.db").rename(other / "mine.sqlite")
    assert opencode.sessions() == []
    monkeypatch.setenv("OPENCODE_DB", "mine.sqlite")
    assert [one.id for one in opencode.sessions()] == [ID]
    monkeypatch.setenv("OPENCODE_DB", str(other / "mine.sqlite"))
    assert [one.id for one in opencode.sessions()] == [ID]
    monkeypatch.setenv("OPENCODE_DB", ":memory:")
    assert opencode.sessions() == []


def test_a_session_is_recognised_whatever_it_is_kept_in(tmp_path: Path) -> None:
    for number, write in enumerate(KINDS.values()):
        folder = tmp_path / str(number)
        folder.mkdir()
        path = write(work(), folder)
        assert clients.open_path(path).client == "opencode"


# --------------------------------------------------------------------------------------------- copying


@kinds
def test_a_copy_holds_what_was_said_and_what_stands_behind_the_seam(tmp_path: Path, kind: str) -> None:
    path = KINDS[kind](work(), tmp_path)
    session = opencode.open_session(path)
    before = everything(tmp_path)
    copy, proof = execute(prospect(session))
    assert not proof.unchanged and copy.notice == "" and copy.missed == 0
    again = opencode.open_session(copy.path, copy.id)
    assert outline(again) == [
        "u: Count — ünïcode \u2028 to 40.",
        "a: I count.",
        "a: Once more.",
        "a: A note. +note",
        "u: -note",
        "a: Now the sum. +c4",
        "u: -c4",
        "a: The sum is 820.",
    ]
    note = contents(again)["note"]["content"]
    assert note.startswith("checkpoint stored\n\n[cutline] ") and "opencode" not in note
    assert (again.id, again.title, again.cwd) == (copy.id, "Counting (cut)", "/p")
    after = everything(tmp_path)
    assert {key: after[key] for key in before} == before, "the original is not touched"
    assert opencode.open_session(path, ID).history.body == session.history.body


def everything(folder: Path) -> dict[str, Any]:
    """Every row of a database, and the bytes of every file."""
    found: dict[str, Any] = {}
    for path in folder.rglob("*"):
        if path.is_file() and path.suffix in (".json", ".jsonl"):
            found[str(path)] = path.read_bytes()
    for path in folder.glob("*.db"):
        with closing(sqlite3.connect(path)) as database:
            for table in ("session", "message", "part"):
                found |= {f"{table} {row[0]}": row for row in database.execute(f"SELECT * FROM {table}")}
    return found


@kinds
def test_a_record_that_stays_keeps_its_bytes_but_for_ids(tmp_path: Path, kind: str) -> None:
    session = opencode.open_session(KINDS[kind](work(), tmp_path))
    copy, _ = execute(prospect(session))
    again = opencode.open_session(copy.path, copy.id)
    old = [one for one in session.source.messages if one.parts[1:2]]
    for before, after in ((session.source.messages[0], again.source.messages[0]), (old[-1], again.source.messages[-1])):
        names = {before.id: after.id, ID: copy.id, before.parent: after.parent}
        names |= {one.id: two.id for one, two in zip(before.parts, after.parts, strict=True)}
        for one, two in zip(before.parts, after.parts, strict=True):
            raw = session.source.open(one.raw).raw.decode()
            for name, new in names.items():
                raw = raw.replace(f'"{name}"', f'"{new}"')
            assert again.source.open(two.raw).raw.decode() == raw


@kinds
def test_ids_are_new_and_ascend_and_answers_hang_off_their_question(tmp_path: Path, kind: str) -> None:
    session = opencode.open_session(KINDS[kind](work(), tmp_path))
    copy, _ = execute(prospect(session, at="end"))
    again = opencode.open_session(copy.path, copy.id).source
    ids = [one.id for one in again.messages]
    assert ids == sorted(ids) and not set(ids) & {one.id for one in session.source.messages}
    parts = [part.id for one in again.messages for part in one.parts]
    assert parts == sorted(parts) and len(set(parts)) == len(parts)
    assert all(len(id_) == 30 and id_[:4] in ("msg_", "prt_", "ses_") for id_ in (*ids, *parts, copy.id))
    assert copy.id < ID, "ids of sessions descend: the newest comes first"
    assert {one.parent for one in again.messages if one.role == "assistant"} == {ids[0]}


@kinds
def test_a_cut_without_a_checkpoint_stands_in_a_message_that_the_client_marks(tmp_path: Path, kind: str) -> None:
    writer = work()
    writer.human("And now?")
    writer.agent("More.", call("c5"))
    for at, place in (("last", -4), ("end", -1)):
        folder = tmp_path / at
        folder.mkdir()
        writer.messages[3][1][2]["tool"] = "bash"
        session = opencode.open_session(KINDS[kind](writer, folder))
        copy, _ = execute(prospect(session, at=at))
        again = opencode.open_session(copy.path, copy.id)
        (number,) = [n for n, line in enumerate(outline(again)) if "[cutline]" in line]
        assert number - len(outline(again)) == place
        assert again.history.origins[number] == "harness"
        record = again.source.messages[again.history.places[number][0][0]]
        info = json.loads(record.raw)
        assert record.id == copy.notice and info["role"] == "user"
        if at == "end":  # some versions sort by time alone
            assert info["time"]["created"] == again.source.messages[-2].created + 1
        assert (info["agent"], info["model"]) == ("build", {"providerID": "scripted", "modelID": "m1"})
        assert json.loads(again.source.open(record.parts[0].raw).raw)["synthetic"] is True


@kinds
def test_a_copy_is_cut_again(tmp_path: Path, kind: str) -> None:
    first, _ = execute(prospect(opencode.open_session(KINDS[kind](work(), tmp_path))))
    session = opencode.open_session(first.path, first.id)
    second, _ = execute(prospect(session, at="end"))
    again = opencode.open_session(second.path, second.id)
    assert again.title == "Counting (cut)"
    assert [line for line in outline(again) if "+" in line or "-note" in line] == ["a: A note. +note", "u: -note"]
    assert sum("[cutline]" in str(block) for block in contents(again).values()) == 1


@kinds
def test_what_repeats_a_removed_call_leaves_with_it(tmp_path: Path, kind: str) -> None:
    writer = work(summary={"additions": 1, "deletions": 0, "files": 1})
    diff = {"file": "a.py", "before": "", "after": "SECRET = 1"}
    writer.messages[0][0]["summary"] = {"title": "Counting", "diffs": [diff]}
    writer.human("Thanks.", summary={"diffs": [{**diff, "after": "KEPT = 1"}]})
    writer.agent("You are welcome.")
    session = opencode.open_session(KINDS[kind](writer, tmp_path))
    copy, _ = execute(prospect(session))
    again = opencode.open_session(copy.path, copy.id).source
    whole = b"".join(one.raw + b"".join(again.open(p.raw).raw for p in one.parts) for one in again.messages)
    assert b"SECRET" not in whole and b"4\\n5" not in whole and b"KEPT = 1" in whole


@kinds
def test_the_copy_s_context_is_counted_anew(tmp_path: Path, kind: str) -> None:
    """By the count of the last answer the client would take the copy to be as full as the original."""
    session = opencode.open_session(KINDS[kind](work(), tmp_path))
    copy, _ = execute(prospect(session))
    infos = [json.loads(one.raw) for one in opencode.open_session(copy.path, copy.id).source.messages]
    counts = [info["tokens"]["input"] + info["tokens"]["cache"]["read"] for info in infos if "tokens" in info]
    assert counts == [1040, 1040, 1040, 1040, 0]


def test_a_message_of_which_only_its_markers_are_left_leaves(tmp_path: Path) -> None:
    writer = Writer()
    writer.human("Go.")
    writer.agent(call("c1"))
    writer.agent(call("c2"), {"type": "patch", "hash": "abc", "files": ["/p/a"]})
    writer.agent("Done.")
    session = opencode.open_session(writer.database(tmp_path))
    copy, _ = execute(prospect(session, at="end"))
    again = opencode.open_session(copy.path, copy.id).source
    kinds_ = [[again.open(part.raw).word("type") for part in one.parts] for one in again.messages]
    assert kinds_ == [
        ["text"],
        ["step-start", "patch", "step-finish"],
        ["step-start", "text", "step-finish"],
        ["text"],
    ], "what a person can go back by stays"
    assert copy.removed == 1 + 3 + 1


@kinds
def test_words_that_were_shown_in_thinking_stay_as_a_text(tmp_path: Path, kind: str) -> None:
    """The newest Claude models send what they say between calls in signed thinking."""
    shown = narration("I look first.")["signature"]
    writer = Writer()
    writer.human("Go.")
    writer.agent(thinking("I look first.", metadata={"anthropic": {"signature": shown}}), thinking("Hm."), call("c1"))
    writer.checkpoint()
    session = opencode.open_session(KINDS[kind](writer, tmp_path))
    copy, _ = execute(prospect(session))
    again = opencode.open_session(copy.path, copy.id)
    assert outline(again)[:2] == ["u: Go.", "a: I look first."]
    said = json.loads(again.source.open(again.source.messages[1].parts[1].raw).raw)
    assert said["type"] == "text" and "metadata" not in said


@kinds
def test_where_a_person_went_back_to_is_carried_over(tmp_path: Path, kind: str) -> None:
    writer = work()
    writer.human("No, not that.")
    writer.agent("Sorry.", call("c9"))
    writer.info["revert"] = {"messageID": writer.messages[-2][0]["id"], "snapshot": "abc"}
    session = opencode.open_session(KINDS[kind](writer, tmp_path))
    copy, _ = execute(prospect(session))
    again = opencode.open_session(copy.path, copy.id)
    assert outline(again)[-1] == "a: The sum is 820."
    assert again.source.head.word("revert", "messageID") == again.source.messages[-2].id
    assert len(again.source.messages) == 8, "what was taken back can be brought back"


@kinds
def test_a_copy_is_nobody_s_sub_agent_and_not_shared(tmp_path: Path, kind: str) -> None:
    writer = work(parentID="ses_parent", share={"url": "https://example.org/s/1"})
    parent = Writer("ses_parent")
    path = writer.database(tmp_path, parent) if kind == "database" else KINDS[kind](writer, tmp_path)
    copy, _ = execute(prospect(opencode.open_session(path, ID)))
    again = opencode.open_session(copy.path, copy.id).source
    assert again.head.word("parentID") == ""
    assert again.row.get("share_url") is None and "share" not in again.head.members


def test_a_list_of_things_to_do_is_carried_over(tmp_path: Path) -> None:
    path = work().database(tmp_path)
    with closing(sqlite3.connect(path)) as database, database:
        put(database, "todo", {"session_id": ID, "content": "the sum", "position": 0})
    copy, _ = execute(prospect(opencode.open_session(path)))
    with closing(sqlite3.connect(path)) as database:
        found = database.execute("SELECT content FROM todo WHERE session_id = ?", (copy.id,)).fetchall()
        assert found == [("the sum",)]
        assert database.execute("PRAGMA foreign_key_check").fetchall() == []


@pytest.mark.parametrize("kind", ("files", "export", "events"))
def test_files_of_a_copy_are_private_from_their_first_moment(tmp_path: Path, kind: str) -> None:
    path = KINDS[kind](work(), tmp_path)
    known = set(tmp_path.rglob("*"))
    old = os.umask(0)
    try:
        copy, _ = execute(prospect(opencode.open_session(path)))
    finally:
        os.umask(old)
    made = [one for one in tmp_path.rglob("*") if one not in known]
    assert copy.path in made and copy.path.name == f"{copy.id}.json"
    assert {stat.S_IMODE(one.stat().st_mode) for one in made if one.is_file()} == {0o600}
    assert not [one for one in made if "cutline" in one.name]


@kinds
def test_a_proof_that_fails_leaves_nothing_behind(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = prospect(opencode.open_session(KINDS[kind](work(), tmp_path)))
    before = everything(tmp_path), sorted(tmp_path.rglob("*.json"))
    original = opencode.reread

    def broken(copy: Path, id: str, notice: str, body: bytes) -> tuple[bytes, str | None]:
        found, told = original(copy, id, notice, body)
        return found.replace(b"Once more.", b"Once less."), told

    monkeypatch.setattr(opencode, "reread", broken)
    with pytest.raises(CutlineError, match="less"):
        execute(wanted)
    assert (everything(tmp_path), sorted(tmp_path.rglob("*.json"))) == before
    assert not [one for one in tmp_path.rglob("*") if "cutline" in one.name]


def test_a_database_that_somebody_writes_to_is_waited_for(tmp_path: Path) -> None:
    path = work().database(tmp_path)
    wanted = prospect(opencode.open_session(path))
    with closing(sqlite3.connect(path, check_same_thread=False, isolation_level=None)) as busy:
        busy.execute("BEGIN IMMEDIATE")
        timer = threading.Timer(0.4, lambda: busy.execute("COMMIT"))
        timer.start()
        started = time.monotonic()
        execute(wanted)
        timer.join()
    assert time.monotonic() - started > 0.3


def test_a_database_that_stays_locked_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cutline.sessions.opencode.writing._WAITS_S", 0.1)
    path = work().database(tmp_path)
    wanted = prospect(opencode.open_session(path))
    with closing(sqlite3.connect(path, isolation_level=None)) as busy:
        busy.execute("BEGIN IMMEDIATE")
        with pytest.raises(InputError, match=r"can.t be written \(database is locked\); nothing was left behind"):
            execute(wanted)


@kinds
def test_a_session_that_grows_meanwhile_is_copied_as_it_was_and_says_so(tmp_path: Path, kind: str) -> None:
    path = KINDS[kind](work(), tmp_path)
    wanted = prospect(opencode.open_session(path))
    late = work()
    late.human("late " * 50)
    if kind == "database":
        with closing(sqlite3.connect(path)) as database, database:
            info, parts = late.messages[-1]
            times = {"time_created": info["time"]["created"], "time_updated": 1}
            put(database, "message", {"id": info["id"], "session_id": ID, "data": dumped(info), **times})
            links = {"id": parts[0]["id"], "message_id": info["id"], "session_id": ID}
            put(database, "part", {**links, "data": dumped(parts[0]), **times})
    elif kind == "export":
        path.write_bytes(path.read_bytes() + b" " * 300)
    else:
        KINDS[kind](late, tmp_path)
    copy, _ = execute(wanted)
    assert copy.missed >= 250
    assert not any("late" in line for line in outline(opencode.open_session(copy.path, copy.id)))


def test_an_export_keeps_its_own_spelling(tmp_path: Path) -> None:
    path = work().export(tmp_path)
    copy, _ = execute(prospect(opencode.open_session(path)))
    data = copy.path.read_bytes()
    assert data.startswith(b'{\n  "info": {\n    "id": "ses_') and data.endswith(b"\n  ]\n}")
    assert b'\n          "text": "The sum is 820."' in data


@pytest.mark.parametrize("kind", ("files", "export"))
def test_what_a_killed_run_left_is_cleared_by_the_next(tmp_path: Path, kind: str) -> None:
    """A copy's own file comes last: without it neither the client nor a listing sees the rest."""
    path = KINDS[kind](work(), tmp_path)
    known = set(tmp_path.rglob("*"))
    if kind == "export":
        (tmp_path / ".ses_killed.cutline-tmp").write_bytes(b"{")
    else:
        storage = tmp_path / "storage"
        (storage / ".cutline-tmp-ses_killed").write_bytes(b"{}")
        save(storage / "message" / "ses_killed" / "msg_killed.json", {})
        save(storage / "part" / "msg_killed" / "prt_killed.json", {})
    copy, _ = execute(prospect(opencode.open_session(path)))
    left = [one for one in set(tmp_path.rglob("*")) - known if "killed" in str(one.relative_to(tmp_path))]
    assert not left and copy.path.exists()


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    path = work().export(tmp_path)
    small = path.stat().st_size // 8
    code = "from cutline.sessions import opencode; from cutline.sessions.cutting import execute, prospect\n"
    code += "import resource, sys; session = opencode.open_session(sys.argv[1]); wanted = prospect(session)\n"
    code += f"resource.setrlimit(resource.RLIMIT_FSIZE, ({small}, {small}))\n"
    code += "from cutline.errors import InputError\n"
    code += "try: execute(wanted)\nexcept InputError as error: print(error)"
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert "can't be written" in done.stdout and done.stdout.count("\n") == 1
    assert list(tmp_path.iterdir()) == [path]
