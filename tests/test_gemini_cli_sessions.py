"""Gemini CLI's session files are read and found: every shape, what is live in it, whose it is; damage is told."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conftest import SHARED
from cutline.errors import CutlineError, InputError
from cutline.sessions import gemini_cli
from cutline.sessions.clients import open_path, resolve
from cutline.sessions.cutting import execute, prospect
from cutline.sessions.gemini_cli import open_session
from cutline.wire import anthropic as wire
from gemini_made import (
    GOOD,
    ID,
    META,
    RECORDED,
    Writer,
    answer,
    blocks,
    cut,
    kinds,
    made,
    needs_data,
    said,
    talk,
    twice,
    written,
)

# ------------------------------------------------------------------------------------------------- reading


def manifest() -> dict[str, dict[str, Any]]:
    rows = json.loads((SHARED / "data" / "manifest.json").read_bytes())
    return {Path(row["file"]).name: row["stats"] for row in rows if row["kind"] == "gemini-cli"}


@needs_data
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_every_recorded_file_is_read_whole(path: Path) -> None:
    session = open_path(path)
    assert session.client == "gemini-cli" and session.damage == () and session.title
    stats, found = manifest()[path.name], kinds(session)
    assert (found["tool_use"], found["tool_result"]) == (stats["tool_calls"], stats["tool_results"])
    assert found["thinking"] == stats["thinking"]
    # What the count takes for a person's and is the client's: a summary of its own, and a nudge to go on.
    clients = [
        text
        for origin, message in zip(session.history.origins, json.loads(session.history.body)["messages"])
        for text in (block.get("text", "") for block in message["content"])
        if origin in ("summary", "harness") and not text.startswith("<session_context>")
    ]
    assert all(text.startswith(("<state_snapshot>", "System: Please continue.")) for text in clients)
    assert len(session.history.human) + len(clients) == stats["human_msgs"]
    used = {model for model in stats["models"] if model}
    assert session.history.model in (used or {""})


@needs_data
def test_every_word_of_the_recorded_files_is_the_file_s_own_literal() -> None:
    for path in RECORDED:
        source, session = path.read_bytes(), open_session(path)
        request = wire.read(session.history.body)
        for message in request.messages:
            for block in message.blocks:
                if block.type == "text":
                    start, end = wire.text_span(request, block)
                    assert session.history.body[start:end] in source


def test_all_three_shapes_of_a_talk_are_one_history(tmp_path: Path) -> None:
    writer = talk()
    plain = talk(repeated=False)
    lines = open_session(written(tmp_path, writer.lines()))
    document = open_session(written(tmp_path, writer.document(), "session-1.json"))
    saved = open_session(written(tmp_path, plain.contents(), "checkpoint-talk.json"))
    assert said(lines) == said(document) == said(saved)
    assert (lines.id, document.id, saved.id) == (ID, ID, "checkpoint-talk")
    assert lines.history.origins[:3] == ["harness", "human", "agent"]
    assert lines.title == "Count “é” 😀, please." and lines.last == "2026-10-05T09:00:09.000Z"
    assert lines.history.model == "gemini-3-pro-preview"
    assert [blocks(lines)[n] for n in (2, 3, 4, 5, 6, 7)] == [
        (
            "assistant",
            "thinking",
            '{"subject": "S", "description": "Two at once.", "timestamp": "2026-10-05T10:00:00.000Z"}',
        ),
        ("assistant", "text", "I count."),
        ("assistant", "tool_use", "a"),  # the id as on the wire
        ("assistant", "tool_use", "b"),
        ("user", "tool_result", "a"),
        ("user", "tool_result", "b"),
    ]


def test_a_result_that_the_client_keeps_twice_is_read_once(tmp_path: Path) -> None:
    session = open_session(written(tmp_path, talk().lines()))
    assert kinds(session)["tool_result"] == kinds(session)["tool_use"] == 6
    assert session.damage == ("6 results written twice: the client sends both, a copy holds one.",)
    once = open_session(written(tmp_path, talk(repeated=False).lines()))
    assert blocks(once) == blocks(session) and once.damage == ()


def test_a_result_that_stands_in_a_message_of_its_own_alone(tmp_path: Path) -> None:
    writer = Writer()
    writer.human("Go.")
    record = writer.agent("I go.", made("a", "gone"), made("b", "too"))
    again = twice(record)
    for call in record["toolCalls"]:
        call["result"] = None
    writer.records.append(again)
    session = open_session(written(tmp_path, writer.lines()))
    assert blocks(session)[-4:] == [
        ("assistant", "tool_use", "a"),
        ("assistant", "tool_use", "b"),
        ("user", "tool_result", "a"),
        ("user", "tool_result", "b"),
    ]


def test_what_a_resume_writes_anew_is_the_same_history(tmp_path: Path) -> None:
    """Calls stand in the content and in `toolCalls`, each call's result holds those of the calls beside it."""
    plain = talk(repeated=False)
    before = open_session(written(tmp_path, plain.lines()))
    messages = []
    for record in plain.records:
        calls = record.get("toolCalls", [])
        if record["type"] == "gemini":
            thoughts = [{"text": one["description"], "thought": True} for one in record["thoughts"]]
            parts = [{"functionCall": {key: call[key] for key in ("id", "name", "args")}} for call in calls]
            record["content"] = [*thoughts, {"text": record["content"]}, *parts]
        messages.append(record)
        if calls:
            every = [part for call in calls for part in call["result"]]
            for call in calls:
                call["result"] = every
            messages.append(
                {
                    "id": f"{record['id']}_response",
                    "timestamp": "2026-10-05T10:00:00.000Z",
                    "type": "user",
                    "content": every,
                }
            )
    path = written(tmp_path, talk().lines({"$set": {"messages": messages}}), "session-2.jsonl")
    after = open_session(path)
    assert said(after) == said(before)
    copy, written_at = cut(path)
    text = written_at.read_text("utf-8")
    assert text.count('"checkpoint stored') == 1 and '"looked"' not in text and "Two at once." not in text
    assert kinds(copy)["tool_use"] == 3 == kinds(copy)["tool_result"]


def test_the_live_messages_are_the_client_s(tmp_path: Path) -> None:
    """A later record of an id takes the earlier's place; `$rewindTo` takes back; `$set` replaces all."""
    writer = Writer()
    writer.human("One.")
    writer.agent("Old answer.")
    writer.records.append({**writer.records[-1], "content": "New answer."})
    writer.human("Mistaken.")
    mistaken = writer.records[-1]["id"]
    writer.agent("Wrong way.")
    writer.records.append({"$rewindTo": mistaken})
    writer.records.append({"id": "late", "timestamp": "2026-10-05T10:00:00.000Z", "type": "user", "content": "Two."})
    writer.record("info", "Update available")
    session = open_session(written(tmp_path, writer.lines()))
    assert [words for _, _, words in blocks(session)] == ["One.", "New answer.", "Two."]
    everything = {"$set": {"messages": [{"id": "x", "type": "user", "content": "Only this."}]}}
    replaced = open_session(written(tmp_path, writer.lines(everything)))
    assert [words for _, _, words in blocks(replaced)] == ["Only this."]
    nothing = written(tmp_path, writer.lines({"$rewindTo": "not there"}))
    with pytest.raises(InputError, match="no message of a session"):
        open_session(nothing)


def test_whose_words_a_message_holds(tmp_path: Path) -> None:
    writer = Writer()
    for words in (
        "<session_context>\nToday is Monday.",
        "<hook_context>from a hook</hook_context>",
        "Here is the user's editor context as a JSON object. This is for your information only.",
        "System: Please continue.",
    ):
        writer.human(words)
    writer.human("<state_snapshot>\n<overall_goal>Count.</overall_goal>")
    writer.human("/help me with é")
    writer.human("Typed.", "<hook_context>beside it</hook_context>")
    session = open_session(written(tmp_path, writer.lines()))
    assert session.history.origins == [*["harness"] * 4, "summary", "human", "human", "harness"]
    assert session.history.compacted and session.title == "Typed."


def test_results_of_every_kind(tmp_path: Path) -> None:
    image = {"inlineData": {"mimeType": "image/png", "data": "QUJD"}}
    nested = answer("run_shell_command__f", "run_shell_command", "see")
    nested["functionResponse"]["parts"] = [image]
    denied = {"error": "[Operation Cancelled] Reason: User denied execution."}
    writer = Writer()
    writer.record("user", [{"text": "Look:"}, image])
    writer.agent(
        "",
        made("a", "plain"),
        made("b", denied, status="cancelled"),
        made("c", {"result": [1, 2.50], "more": "x"}),
        made("d", "as a string", result="as a string"),
        made("e", "with an image", result=[answer("run_shell_command__e", "run_shell_command", "see"), image]),
        made("f", "inside", result=[nested]),
        made("g", "", result=None, status="executing"),
    )
    session = open_session(written(tmp_path, writer.lines()))
    results = [
        block
        for message in json.loads(session.history.body)["messages"]
        for block in message["content"]
        if block["type"] == "tool_result"
    ]
    assert [block["tool_use_id"] for block in results] == list("abcdef")
    assert [block.get("is_error", False) for block in results] == [False, True, False, False, False, False]
    assert [block["content"] for block in results[:4]] == [
        "plain",
        denied["error"],
        '{"result": [1, 2.5], "more": "x"}',
        "as a string",
    ]
    assert [[part["type"] for part in block["content"]] for block in results[4:]] == [["text", "image"]] * 2
    assert kinds(session)["image"] == 1 and kinds(session)["tool_use"] == 7
    copy, path = cut(session.path)
    assert kinds(copy) == {"tool_use": 0, "tool_result": 0, "thinking": 0, "image": 1}
    assert path.read_text("utf-8").count("QUJD") == 1, "the person's stays, the results' go"


def test_an_address_is_that_of_the_wire(tmp_path: Path) -> None:
    """Id without the prefix that only the file has, name and raw arguments as they are sent."""
    session = open_session(written(tmp_path, talk().lines()))
    request = wire.read(session.history.body)
    found = next(wire.call(request, block, 0, None) for m in request.messages for block in m.blocks if block.id == "c")
    on_wire = b'{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"run_shell_command",'
    on_wire += b'"input":{"command":"run run_shell_command__c"}}]}]}'
    other = wire.read(on_wire)
    assert found.address == wire.call(other, other.messages[0].blocks[0], 0, None).address


def test_what_the_provider_counted(tmp_path: Path) -> None:
    session = open_session(written(tmp_path, talk().lines()))
    requests = session.history.requests
    assert len(requests) == 6
    first = requests[0]
    assert (first.usage.input, first.usage.cache_read, first.usage.output) == (300, 600, 25)
    assert session.history.origins[first.message] == "agent" and first.model == "gemini-3-pro-preview"
    assert first.timestamp == "2026-10-05T09:00:03.000Z"


def test_a_part_of_an_unknown_kind_stays(tmp_path: Path) -> None:
    writer = Writer()
    writer.human("Go.")
    writer.agent([{"hologram": {"data": "x"}}, {"text": "Made."}], made("a", "gone"))
    session = open_session(written(tmp_path, writer.lines()))
    assert session.damage == ("1 part of an unknown kind: kept in a copy.",)
    _, path = cut(session.path)
    text = path.read_text("utf-8")
    assert '{"hologram": {"data": "x"}}' in text and '"gone"' not in text


# -------------------------------------------------------------------------------------------------- damage


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"   \n\n",
        b"\0\0\0binary",
        b"not JSON at all",
        b"[]",
        b"{}",
        b'{"history":[]}',
        b'{"sessionId":"x","projectHash":"y"}\n',
        b'{"messages":[1,2,"three"]}',
        b'{"sessionId":"x","messages":[{"id":"a","type":"user","content":"\xff"}]}',
        b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
        b"[" * 10_000,
        GOOD[:40],
    ],
    ids=range(13),
)
@pytest.mark.parametrize("name", ("session-1.jsonl", "session-1.json", "checkpoint-x.json"))
def test_what_is_no_session_is_refused_in_one_line(tmp_path: Path, data: bytes, name: str) -> None:
    path = written(tmp_path, data, name)
    with pytest.raises(InputError) as caught:
        open_session(path)
    assert "\n" not in str(caught.value) and str(path) in str(caught.value) and len(str(caught.value)) < 400


def test_a_directory_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a directory"):
        open_session(tmp_path)
    with pytest.raises(InputError, match="no such file"):
        open_session(tmp_path / "nothing.jsonl")


def test_damaged_lines_are_passed_over_and_told(tmp_path: Path) -> None:
    lines = GOOD.splitlines(keepends=True)
    deep = b'{"id":"deep","type":"user","content":' + b"[" * 10_000 + b"]" * 10_000 + b"}\n"
    glued = lines[1].rstrip(b"\n") + lines[2]
    data = b"".join(
        [
            lines[0],
            glued,
            b'{"id":"torn","type":"us\n',
            b'{"id":"bad","type":"user","content":"\xff"}\n',
            deep,
            *lines[3:],
        ]
    )
    session = open_session(written(tmp_path, data + b'{"id":"half","typ'))
    assert session.damage == (
        "4 torn lines (3, 4, 5, 13): in the original only.",
        "Records glued into one line were parted (line 2).",
    )
    assert blocks(session) == blocks(open_session(written(tmp_path, GOOD)))


def test_every_beginning_of_a_file_is_read_or_refused(tmp_path: Path) -> None:
    for data in (GOOD, talk().document(), talk(repeated=False).contents()):
        for end in range(0, len(data), max(1, len(data) // 60)):
            path = written(tmp_path, data[:end], "session-1.json")
            try:
                session = open_session(path)
                prospect(session, at="end")
            except CutlineError as error:
                assert "\n" not in str(error)


def test_lone_surrogates_stay_as_they_are_spelled(tmp_path: Path) -> None:
    data = GOOD.replace(b"It counts to 3.", b"Half a letter: \\ud83d.")
    path = written(tmp_path, data)
    _, copy = cut(path)
    assert b"Half a letter: \\ud83d." in copy.read_bytes()


def test_a_file_that_grows_is_copied_as_it_was_and_says_so(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    wanted = prospect(open_session(path))
    with path.open("ab") as handle:
        handle.write(b'{"id":"late","timestamp":"t","type":"user","content":"late"}\n')
    copy, _ = execute(wanted)
    assert copy.missed == 61 and b"late" not in copy.path.read_bytes()
    path.write_bytes(GOOD[:500])
    with pytest.raises(InputError, match="became shorter"):
        execute(wanted)
    assert sorted(tmp_path.iterdir()) == sorted((path, copy.path))


LARGE = """
import sys
from pathlib import Path
from cutline.sessions.gemini_cli import open_session
session = open_session(Path(sys.argv[1]))
print(int(open('/proc/self/status').read().split('VmHWM:')[1].split()[0]) // 1024)
"""


@pytest.mark.slow
@pytest.mark.slow
def test_a_large_file_is_read_in_bounded_memory(tmp_path: Path) -> None:
    """100 MB of results, each written twice, as the client does."""
    path = tmp_path / "session-1.jsonl"
    with path.open("wb") as handle:
        handle.write(json.dumps(META).encode() + b"\n")
        number = 0
        while handle.tell() < 100_000_000:
            number += 1
            writer = Writer()
            record = writer.agent(f"Step {number}.", made(f"c{number}", "x" * 50_000))
            record["id"] = f"m{number}"
            for row in (record, twice(record)):
                handle.write(json.dumps(row).encode() + b"\n")
    done = subprocess.run([sys.executable, "-c", LARGE, str(path)], capture_output=True, text=True, check=True)
    assert int(done.stdout) <= 250


# ------------------------------------------------------------------------------------------------- finding


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GEMINI_CLI_HOME", str(tmp_path / "home"))
    folder = tmp_path / "home" / ".gemini" / "tmp"
    folder.mkdir(parents=True)
    return folder


def put(home: Path, folder: str, name: str, data: bytes, age: int = 0) -> Path:
    chats = home / folder / "chats"
    chats.mkdir(parents=True, exist_ok=True)
    path = written(chats, data, name)
    os.utime(path, (1_000_000 - age, 1_000_000 - age))
    return path


def other(id_: str) -> bytes:
    return GOOD.replace(ID.encode(), id_.encode())


def test_sessions_are_found_in_the_folders_of_every_version(home: Path, tmp_path: Path) -> None:
    cwd = tmp_path / "Project é"
    cwd.mkdir()
    slug, hashed = "project", hashlib.sha256(str(cwd).encode()).hexdigest()
    mine = put(home, slug, "session-2026-10-05T09-00-aaaaaaaa.jsonl", other("aaaaaaaa-1"))
    (home / slug / ".project_root").write_text(str(cwd))
    old = put(home, hashed, "session-2025-10-05T09-00-bbbbbbbb.json", talk().document(), age=50)
    register = put(home, "by-register", "session-2026-10-05T09-00-cccccccc.jsonl", other("cccccccc-1"), age=20)
    (home.parent / "projects.json").write_text(json.dumps({"projects": {str(cwd): "by-register"}}))
    put(home, "elsewhere", "session-2026-10-05T09-00-dddddddd.jsonl", other("dddddddd-1"))
    # Newer versions copy the hash's folder; of one id the newest file counts. What is no session is not listed.
    put(home, hashed, "session-2026-10-05T09-00-aaaaaaaa.jsonl", other("aaaaaaaa-1"), age=99)
    put(home, slug, "session-2026-10-05T09-00-eeeeeeee.jsonl", GOOD.replace(b'"main"', b'"subagent"'))
    put(home, slug, "session-empty.jsonl", b"")
    put(home, slug, ".session-5.cutline-tmp.jsonl", GOOD)
    put(home, slug, "notes.json", GOOD)
    found = gemini_cli.sessions(cwd)
    assert [one.path for one in found] == [mine, register, old]
    assert [one.id for one in found] == ["aaaaaaaa-1", "cccccccc-1", ID]
    assert all(one.talks and one.title == "Count “é” 😀, please." for one in found)
    assert {one.folder for one in gemini_cli.sessions()} == {slug, hashed, "by-register", "elsewhere"}
    assert [open_session(one.path).cwd for one in found] == [str(cwd)] * 3
    assert resolve("aaaaaaaa", tmp_path).path == mine
    assert gemini_cli.resume("aaaaaaaa-1") == ["gemini", "--resume", "aaaaaaaa-1"]
    assert gemini_cli.resume("checkpoint-my%20tag") == ["gemini", "--prompt-interactive", "/chat resume my tag"]


def test_a_title_is_the_client_s_own_before_a_person_s_words(home: Path) -> None:
    titled = GOOD + b'{"$set":{"summary":"Counting things"}}\n'
    put(home, "p", "session-1.jsonl", titled)
    silent = json.dumps(META).encode() + b"\n" + GOOD.splitlines(keepends=True)[1]
    put(home, "p", "session-2.jsonl", silent.replace(ID.encode(), b"other"), age=9)
    first, second = gemini_cli.sessions()
    assert (first.title, first.talks) == ("Counting things", True)
    assert (second.title, second.talks) == ("", False), "the client's own context is nobody's word"
    assert open_session(first.path).title == "Counting things"


def test_the_files_of_sub_agents_belong_to_their_session(home: Path) -> None:
    path = put(home, "p", "session-1.jsonl", GOOD)
    (path.parent / ID).mkdir()
    agent = written(path.parent / ID, GOOD.replace(b'"main"', b'"subagent"'), "agent-1.jsonl")
    assert open_session(path).subagents == (agent,)
    with pytest.raises(InputError, match="a sub-agent's file can't be resumed"):
        execute(prospect(open_session(agent)))


def test_only_a_saved_chat_s_own_name_can_be_resumed(tmp_path: Path) -> None:
    session = open_session(written(tmp_path, talk(repeated=False).contents(), "talk.json"))
    with pytest.raises(InputError, match=r"checkpoint-NAME\.json"):
        execute(prospect(session))


def test_owning_asks_for_what_other_clients_do_not_write() -> None:
    path = Path("x.json")
    assert gemini_cli.owns(path, GOOD) and gemini_cli.owns(path, talk().document())
    assert gemini_cli.owns(path, talk(repeated=False).contents())
    assert not gemini_cli.owns(path, b'{"type":"user","sessionId":"x","uuid":"y"}\n')
    assert not gemini_cli.owns(path, b'{"messages":[{"role":"user","content":"x"}]}')
    assert not gemini_cli.owns(path, b'[{"role":"user","content":"x"}]')
