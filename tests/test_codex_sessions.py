"""Codex's rollouts: every shape that is recorded, damage, finding, and cut copies."""

import json
import os
import resource
import stat
import subprocess
import sys
import uuid
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from conftest import SHARED, large_ones_slow, smaller, tried
from cutline.errors import CutError, InputError, NothingToCut
from cutline.recall import of_session
from cutline.sessions import clients
from cutline.sessions.codex import open_session, read, sessions
from cutline.sessions.cutting import execute, prospect

ID = "01a00000-0000-7000-8000-0000000000aa"
WHEN = "2026-05-06T07:08:09.000Z"
NAME = f"rollout-2026-05-06T07-08-09-{ID}.jsonl"
DOCUMENT = {"done": "Counted to 40.", "open": "the sum", "went_wrong": "nothing"}


@dataclass
class Rollout:
    """A rollout as the client writes it; `counted` is the newest form, in which each record has a number."""

    counted: bool = False
    records: list[dict[str, Any]] = field(default_factory=list)
    tokens: int = 0

    def __post_init__(self) -> None:
        mode = {"history_mode": "paginated"} if self.counted else {}
        meta = {"id": ID, "session_id": ID, "timestamp": WHEN, "cwd": "/srv/stamps", "cli_version": "0.171.0"}
        self.add("session_meta", **meta, source="exec", git={"branch": "albums"}, **mode)
        self.add("turn_context", cwd="/srv/stamps", model="gpt-5.5")
        self.item("message", role="developer", content=[{"type": "input_text", "text": "<permissions instructions>"}])
        self.person("<environment_context>\n<cwd>/srv/stamps</cwd>\n</environment_context>", event=False)

    def add(self, type_: str, **payload: Any) -> None:
        record = {"timestamp": WHEN, "type": type_, "payload": payload}
        self.records.append({**record, "ordinal": len(self.records)} if self.counted else record)

    def item(self, kind: str, **members: Any) -> None:
        self.add("response_item", type=kind, **members)

    def event(self, kind: str, **members: Any) -> None:
        self.add("event_msg", type=kind, **members)

    def person(self, *words: str, event: bool = True) -> None:
        self.item("message", role="user", content=[{"type": "input_text", "text": text} for text in words])
        if event:
            self.event("user_message", message=words[0])

    def agent(self, words: str) -> None:
        content = [{"type": "output_text", "text": words, "annotations": []}]
        self.item("message", role="assistant", id=f"msg_{len(self.records)}", phase="commentary", content=content)
        self.event("agent_message", message=words)

    def thought(self, words: str, sealed: str = "c2VhbGVk") -> None:
        self.event("agent_reasoning", text=words)
        summary = [{"type": "summary_text", "text": words}]
        self.item("reasoning", id=f"rs_{len(self.records)}", summary=summary, encrypted_content=sealed)

    def call(self, id_: str, output: Any, name: str = "exec_command", **arguments: Any) -> None:
        more = {"namespace": "mcp__cutline"} if name == "micro_handoff" else {}
        self.item("function_call", id=f"fc_{id_}", name=name, arguments=json.dumps(arguments), call_id=id_, **more)
        self.event("exec_command_end", call_id=id_, aggregated_output=output)
        self.item("function_call_output", call_id=id_, output=output)

    def count(self, tokens: int = 1_000) -> None:
        self.tokens += tokens
        last = {"input_tokens": tokens, "cached_input_tokens": 600, "output_tokens": 20}
        self.event("token_count", info={"total_token_usage": {"input_tokens": self.tokens}, "last_token_usage": last})

    def write(self, folder: Path, name: str = NAME) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / name
        path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in self.records), "utf-8")
        return path


def small(counted: bool = False) -> Rollout:
    """Two turns: the first looks at an album, the second counts it."""
    made = Rollout(counted)
    made.person("Sort the stamp album «crowns».")
    made.thought("An album first.")
    made.agent("I list the album — ünï \u2028.")
    made.call("call_1", "crown\nanchor\nwatermark 17", cmd="ls album")
    made.count()
    made.agent("Three stamps: crown, anchor, watermark 17.")
    made.count()
    made.person("Count them again.")
    made.thought("Once more.")
    made.call("call_2", [{"type": "input_text", "text": "3 stamps"}], cmd="wc -l album")
    made.agent("There are 3.")
    made.count()
    return made


def noted(counted: bool = False) -> Rollout:
    """A session with a checkpoint between its two turns."""
    made = small(counted)
    made.call("call_note", '{"result":"checkpoint stored"}', "micro_handoff", **DOCUMENT)
    made.person("And the sum?")
    made.call("call_3", "820", cmd="sum album")
    made.agent("820.")
    return made


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line]


def kinds(path: Path) -> Counter[str]:
    return Counter(record["payload"].get("type", record["type"]) for record in records(path))


def texts(path: Path) -> list[tuple[str, str]]:
    """(origin, text) of each text of a history."""
    found = open_session(path).history
    return [
        (origin, block["text"])
        for message, origin in zip(json.loads(found.body)["messages"], found.origins)
        for block in message["content"]
        if block["type"] == "text"
    ]


def cut(path: Path, **options: Any):
    return execute(prospect(open_session(path), **options))[0]


# --------------------------------------------------------------------------------------------- reading


def test_a_history_is_what_the_client_sends(tmp_path: Path) -> None:
    session = open_session(noted().write(tmp_path))
    assert texts(session.path) == [
        ("human", "Sort the stamp album «crowns»."),
        ("agent", "I list the album — ünï \u2028."),
        ("agent", "Three stamps: crown, anchor, watermark 17."),
        ("human", "Count them again."),
        ("agent", "There are 3."),
        ("human", "And the sum?"),
        ("agent", "820."),
    ]
    assert (session.id, session.cwd, session.version, session.git_branch) == (ID, "/srv/stamps", "0.171.0", "albums")
    assert session.title == "Sort the stamp album «crowns»." and session.sealed == "" and session.damage == ()
    assert [(one.usage.input, one.usage.cache_read, one.usage.output) for one in session.history.requests] == [
        (400, 600, 20)
    ] * 3
    assert {one.model for one in session.history.requests} == {"gpt-5.5"}
    origins = session.history.origins
    assert [origins[one.message] for one in session.history.requests] == ["agent"] * 3


def test_words_are_the_literals_of_the_file(tmp_path: Path) -> None:
    """Another spelling of the same letters would be another text: escapes and surrogates stay as they are."""
    path = small().write(tmp_path)
    raw = path.read_text("utf-8").replace("crowns", "cr\\u006fwns \\ud800 \\/ 1.0")
    path.write_text(raw, "utf-8")
    assert b"cr\\u006fwns \\ud800 \\/ 1.0" in open_session(path).history.body


def test_a_call_has_the_address_that_it_has_on_the_wire(tmp_path: Path) -> None:
    from cutline.blocks import address

    made = noted()
    made.item("custom_tool_call", name="apply_patch", input="*** Begin Patch\n", call_id="call_p", status="completed")
    made.item("custom_tool_call_output", call_id="call_p", output="Success")
    made.item("function_call", name="odd", arguments="{broken", call_id="call_o")
    made.item("function_call_output", call_id="call_o", output="no")
    found = {one.call.name: one.call.address for one in of_session(open_session(made.write(tmp_path)))}
    assert found["micro_handoff"] == address("call_note", "micro_handoff", json.dumps(DOCUMENT).encode())
    assert found["apply_patch"] == address("call_p", "apply_patch", b'"*** Begin Patch\\n"')
    assert found["odd"] == address("call_o", "odd", b'"{broken"')


def test_a_result_says_that_it_failed_where_the_client_says_so(tmp_path: Path) -> None:
    """An output has no flag: the client's own words for a call that it did not carry out are its mark."""
    made = small()
    for number, output in enumerate(("unsupported call: micro_handoff", "aborted", "Exit code: 1\naborted")):
        made.call(f"call_f{number}", output, "micro_handoff")
    blocks = [b for m in json.loads(open_session(made.write(tmp_path)).history.body)["messages"] for b in m["content"]]
    failed = {block["tool_use_id"]: block.get("is_error", False) for block in blocks if block["type"] == "tool_result"}
    assert failed == {"call_1": False, "call_2": False, "call_f0": True, "call_f1": True, "call_f2": False}


def test_the_client_s_texts_are_nobody_s_words(tmp_path: Path) -> None:
    made = small()
    made.person("# AGENTS.md instructions for /srv/stamps\n\n<INSTRUCTIONS>\nSort.\n</INSTRUCTIONS>", event=False)
    made.person("<turn_aborted>\nThe user interrupted.\n</turn_aborted>", event=False)
    image = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}
    shown = [{"type": "input_text", "text": text} for text in ("What is this?", "<image name=[Image #1]>", "</image>")]
    made.item("message", role="user", content=[*shown[:2], image, shown[2]])
    marks = {"content_item_kinds": ["user.text"]}
    tagged = [{"type": "input_text", "text": "<skill> is a tag that I type"}]
    made.item("message", role="user", content=tagged, internal_chat_message_metadata_passthrough=marks)
    path = made.write(tmp_path)
    assert [text for who, text in texts(path) if who == "human"][-2:] == [
        "What is this?",
        "<skill> is a tag that I type",
    ]
    assert len(open_session(path).history.human) == 4


def test_results_stand_behind_the_calls_that_they_answer(tmp_path: Path) -> None:
    made = small()
    for id_ in ("call_a", "call_b"):
        made.item("function_call", name="exec_command", arguments="{}", call_id=id_)
    made.item("function_call_output", call_id="call_b", output="B")
    made.person("Meanwhile I say this.")
    made.item("function_call_output", call_id="call_a", output="A")
    made.agent("Both are there.")
    path = made.write(tmp_path)
    history = open_session(path).history
    order = [
        block.get("tool_use_id") or block.get("id") or block.get("text")
        for message in json.loads(history.body)["messages"][-6:]
        for block in message["content"]
    ]
    assert order == ["call_a", "call_b", "call_b", "call_a", "Meanwhile I say this.", "Both are there."]
    assert cut(path, at="end").removed


def test_a_compaction_replaces_what_stood_before_it(tmp_path: Path) -> None:
    made = small()
    kept = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Kept words."}]}]
    made.add("compacted", message="", replacement_history=[*kept, {"type": "compaction", "encrypted_content": "AAAA"}])
    made.person("Go on.")
    made.call("call_4", "four", cmd="four")
    made.agent("Four.")
    path = made.write(tmp_path)
    history = open_session(path).history
    assert history.compacted and history.origins.count("summary") == 1
    assert texts(path) == [("human", "Kept words."), ("human", "Go on."), ("agent", "Four.")]
    for at in ("human:1", "human:2"):
        with pytest.raises(NothingToCut):
            prospect(open_session(path), at=at)
    copy = cut(path, at="end")
    assert texts(copy.path)[:1] == [("human", "Kept words.")] and "Four." in copy.path.read_text("utf-8")
    assert any(record["type"] == "compacted" for record in records(copy.path))


@pytest.mark.skipif(not (SHARED / "bugs").is_dir(), reason="../shared/bugs is not on this machine")
def test_34_what_a_compaction_kept_stays_and_behind_it_is_cut(tmp_path: Path) -> None:
    source = next((SHARED / "bugs").glob("34-*.jsonl"))
    path = tmp_path / "rollout-2026-10-06T10-00-00-019f0000-0000-7000-8000-000000000034.jsonl"
    path.write_bytes(source.read_bytes())
    wanted = prospect(open_session(path))
    written, proof = execute(wanted)
    before, after = source.read_bytes().splitlines(), written.path.read_bytes().splitlines()
    boundary = next(number for number, line in enumerate(before) if b'"type":"compacted"' in line)
    assert after[0] == before[0].replace(b"019f0000-0000-7000-8000-000000000034", written.id.encode())
    assert after[1 : boundary + 1] == before[1 : boundary + 1], "the compaction stays byte for byte"
    behind = [json.loads(line)["payload"] for line in after[boundary + 1 :]]
    assert [one.get("call_id") for one in behind if str(one.get("type")).startswith("function_call")] == [
        "call_xck"
    ] * 2
    assert not any(one.get("type") == "reasoning" for one in behind)
    said = [one.get("message") for one in behind if one.get("type") in ("user_message", "agent_message")]
    assert said == ["Now the lower gate.", "The lower gate leaks at the hinge."]
    assert texts(written.path)[-3:] == [*texts(path)[-3:]] and texts(path)[-3][1] == "Now the lower gate."
    seam = next(number for number, line in enumerate(before) if b'"call_xck"' in line)
    # The count of tokens is of the uncut history (docs/codex-sessions.md); the title is the copy's own last line.
    tail = [line for line in before[seam:] if b'"token_count"' not in line]
    changed = [one for one, two in zip(tail, after[-1 - len(tail) : -1], strict=True) if one != two]
    assert len(changed) == 1 and b"function_call_output" in changed[0], "only the checkpoint's result has the notice"
    assert proof.last_notice is None and sum(b'"user_message"' in line for line in after) == 2
    with pytest.raises(NothingToCut):
        prospect(open_session(written.path))


def test_a_compaction_of_the_old_form_keeps_a_person_s_words_and_a_summary(tmp_path: Path) -> None:
    made = small()
    made.add("compacted", message="Another language model started to solve this problem and produced a summary: 3.")
    made.agent("I go on.")
    assert texts(made.write(tmp_path)) == [
        ("human", "Sort the stamp album «crowns»."),
        ("human", "Count them again."),
        ("summary", "Another language model started to solve this problem and produced a summary: 3."),
        ("agent", "I go on."),
    ]


def test_turns_that_were_taken_back_are_gone(tmp_path: Path) -> None:
    made = small()
    made.event("thread_rolled_back", num_turns=1)
    made.person("Count differently.")
    path = made.write(tmp_path)
    assert [text for who, text in texts(path) if who == "human"] == [
        "Sort the stamp album «crowns».",
        "Count differently.",
    ]
    copy = cut(path)
    assert [text for who, text in texts(copy.path) if who == "human"][-1] == "Count differently."


def test_a_rollout_of_the_first_form_is_read_and_says_that_no_copy_of_it_resumes(tmp_path: Path) -> None:
    """Items stand alone in their lines, and the first line is neither typed nor wrapped."""
    items = [record["payload"] for record in small().records if record["type"] == "response_item"]
    lines = [{"id": ID, "timestamp": WHEN, "instructions": None}, {"record_type": "state"}, *items]
    path = tmp_path / "rollout-2025-05-06T07-08-09-old.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    session = open_session(path)
    assert session.id == ID and session.cwd == "/srv/stamps" and len(session.history.human) == 2
    assert clients.open_path(path).client == "codex"
    with pytest.raises(InputError, match="old form"):
        execute(prospect(session))


def test_a_fork_tells_where_its_beginning_is(tmp_path: Path) -> None:
    made = small(counted=True)
    made.records[0]["payload"]["history_base"] = {"thread_id": "01a0-parent", "end_ordinal_exclusive": 31}
    session = open_session(made.write(tmp_path))
    assert "01a0-parent" in session.sealed and "01a0-parent" in session.damage[0]


def test_a_compressed_rollout_is_read_and_its_copy_is_plain(tmp_path: Path) -> None:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd

    plain = noted().write(tmp_path)
    path = tmp_path / f"{NAME}.zst"
    path.write_bytes(zstd.compress(plain.read_bytes()))
    body = open_session(plain).history.body
    plain.unlink()
    session = open_session(path)
    assert session.history.body == body
    copy = cut(path)
    assert copy.path.name.endswith(f"{copy.id}.jsonl") and "[cutline]" in copy.path.read_text("utf-8")
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match="can't be unpacked"):
        open_session(path)
    path.write_bytes(b"no zstd at all")
    with pytest.raises(InputError, match="can't be unpacked"):
        open_session(path)


# ---------------------------------------------------------------------------------------------- damage


@pytest.mark.parametrize(
    ("data", "told"),
    (
        (b"", "is empty"),
        (b"\n\n", "only empty lines"),
        (b"not JSON\n", "line 1 is no record"),
        (b"\0\0\0\0", "binary"),
        (b'{"type":"session_meta","payload":{"id":"x"}}\n', "no conversation"),
        (b'{"type":"response_item","payload":{"type":"mess', "line 1 is no record"),
        (b"[" * 10_000, "line 1 is no record"),
        (b'{"a":' * 10_000 + b"1" + b"}" * 10_000, "nested too deeply"),
        (b'{"type":"session_meta","payload":{"id":"\xff"}}\n', "UTF-8"),
        (b"7\n[1]\n", "no record of a session"),
    ),
)
def test_what_is_no_session_is_one_line_that_says_so(tmp_path: Path, data: bytes, told: str) -> None:
    path = tmp_path / NAME
    path.write_bytes(data)
    with pytest.raises(InputError, match=told) as error:
        open_session(path)
    assert "\n" not in str(error.value) and NAME in str(error.value)


def test_a_directory_and_a_missing_file_say_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a directory"):
        open_session(tmp_path)
    with pytest.raises(InputError, match="no such file"):
        open_session(tmp_path / "none.jsonl")


def test_damaged_lines_are_passed_over_and_told(tmp_path: Path) -> None:
    lines = [json.dumps(record) for record in small().records]
    lines[8] += lines.pop(9)  # two records glued into one line
    lines[3] = lines[3][:40]  # torn
    deep = '{"type":"event_msg","payload":' + '{"a":' * 10_000
    lines += [deep, '{"type":"response_item","payload":{"type":"reasoning","summary":"\\ud800"}}', "", lines[-1][:-9]]
    path = tmp_path / NAME
    path.write_bytes("\n".join(lines).encode() + b"\n\xff\xfe{\n")
    session = open_session(path)
    assert session.damage[0].startswith("4 torn fragments (line 4, ") and "(line 9)" in session.damage[1]
    assert [text for who, text in texts(path) if who == "human"] == [
        "Sort the stamp album «crowns».",
        "Count them again.",
    ]
    copy = cut(path)
    assert all(json.loads(line) for line in copy.path.read_bytes().split(b"\n") if line)


def test_a_session_that_grows_meanwhile_is_copied_as_it_was_and_says_so(tmp_path: Path) -> None:
    made = noted()
    path = made.write(tmp_path)
    wanted = prospect(open_session(path))
    with path.open("a") as handle:
        handle.write(json.dumps({**made.records[-1], "late": True}) + "\n")
    copy, _ = execute(wanted)
    assert copy.missed > 100 and '"late"' not in copy.path.read_text("utf-8")


# --------------------------------------------------------------------------------------------- finding


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    return tmp_path / "codex_home"


def test_sessions_are_listed_by_their_directory(home: Path) -> None:
    day = home / "sessions" / "2026" / "05" / "06"
    path = small().write(day)
    other, archived, agent = Rollout(), small(), small()
    other.records[0]["payload"]["cwd"] = "/elsewhere"
    agent.records[0]["payload"] |= {"source": {"subagent": {"other": "sort"}}, "parent_thread_id": ID}
    ids = [str(uuid.UUID(int=number)) for number in range(3)]
    other.write(day, NAME.replace(ID, ids[0]))
    archived.write(home / "archived_sessions", NAME.replace(ID, ids[1]))
    agents = agent.write(day, NAME.replace(ID, ids[2]))
    (day / f"{NAME}.zst").write_bytes(b"the plain one counts")
    (day / "notes.txt").write_text("no session")
    assert {file.id for file in sessions(Path("/srv/stamps"))} == {ID, ids[1]}
    assert {file.id for file in sessions()} == {ID, ids[0], ids[1]}
    listed = next(file for file in sessions() if file.id == ID)
    assert listed.title == "Sort the stamp album «crowns»." and listed.talks and listed.folder == "/srv/stamps"
    assert open_session(path).subagents == (agents,)
    (home / "session_index.jsonl").write_text(f'{{"id":"{ID}","thread_name":"Stamps"}}\nbroken\n')
    assert {file.title for file in sessions() if file.id == ID} == {"Stamps"} == {open_session(path).title}
    assert clients.resolve(ID[:12], "/").id == ID


def test_a_title_behind_long_instructions_is_found(home: Path) -> None:
    made = Rollout()
    made.item("message", role="developer", content=[{"type": "input_text", "text": "<skills>" + "x" * 200_000}])
    made.person("# Context from my IDE setup:\n\n## My request for Codex:\nSort the album.\n")
    made.write(home / "sessions" / "2026" / "05" / "06")
    assert [file.title for file in sessions()] == ["Sort the album."]


def test_home_is_the_client_s_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CODEX_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    small().write(tmp_path / ".codex" / "sessions" / "2026" / "05" / "06")
    assert [file.id for file in sessions()] == [ID]


# --------------------------------------------------------------------------------------------- copying


@pytest.mark.parametrize("counted", (False, True))
def test_a_copy_cut_at_a_checkpoint(tmp_path: Path, counted: bool) -> None:
    path = noted(counted).write(tmp_path)
    before = path.read_bytes(), path.stat().st_mtime_ns
    old = os.umask(0)
    try:
        copy = cut(path)
    finally:
        os.umask(old)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert stat.S_IMODE(copy.path.stat().st_mode) == 0o600 and copy.path.parent == path.parent
    assert copy.path.name == NAME.replace(ID, copy.id)
    found = records(copy.path)
    assert found[0]["payload"]["id"] == found[0]["payload"]["session_id"] == copy.id
    if counted:
        assert [record["ordinal"] for record in found] == list(range(len(found)))
    text = copy.path.read_text("utf-8")
    for words in ("watermark 17.", "I list the album — ünï \u2028.", "There are 3.", "820"):
        assert words in text
    rest = json.dumps([record for record in found if "[cutline]" not in json.dumps(record)])
    assert "anchor\\n" not in rest and "An album first." not in rest and "wc -l" not in rest
    assert kinds(copy.path) == Counter(
        {"session_meta": 1, "turn_context": 1, "message": 9, "user_message": 3, "agent_message": 4}
        | {"function_call": 2, "function_call_output": 2, "exec_command_end": 2, "thread_name_updated": 1}
    )
    outputs = {r["payload"]["call_id"]: r["payload"]["output"] for r in found if "output" in r["payload"]}
    assert outputs["call_note"].startswith('{"result":"checkpoint stored"}\n\n[cutline]') and outputs["call_3"] == "820"
    assert "[cutline]" not in json.dumps([record for record in found if record["type"] == "event_msg"])
    # What was tied to reasoning that left loses its id and nothing else; what was not, keeps it.
    messages = [r["payload"] for r in found if r["payload"].get("role") == "assistant"]
    assert ["id" in message for message in messages] == [False, True, True, True]
    assert all(message["phase"] == "commentary" for message in messages)
    assert open_session(copy.path).title == "Sort the stamp album «crowns». (cut)"
    with pytest.raises(NothingToCut, match="left to cut"):
        prospect(open_session(copy.path))


def test_what_stays_keeps_its_bytes(tmp_path: Path) -> None:
    path = noted().write(tmp_path)
    lines = path.read_bytes().split(b"\n")
    copied = cut(path).path.read_bytes().split(b"\n")
    kept = [line for line in lines if line in copied]
    assert len(kept) >= 17
    for words in (b'"And the sum?"', b'"820."', b'"Three stamps: crown, anchor, watermark 17."'):
        assert any(words in line and b"response_item" in line for line in kept)


def test_a_notice_is_added_to_a_list_as_a_part(tmp_path: Path) -> None:
    made = small()
    made.call("call_note", [{"type": "input_text", "text": "checkpoint stored"}], "micro_handoff", **DOCUMENT)
    made.agent("Noted.")
    copy = cut(made.write(tmp_path))
    added = [r["payload"]["output"] for r in records(copy.path) if isinstance(r["payload"].get("output"), list)][-1]
    assert [part["type"] for part in added] == ["input_text", "input_text"] and "[cutline]" in added[1]["text"]


@pytest.mark.parametrize("at", ("last", "end"))
@pytest.mark.parametrize("counted", (False, True))
def test_a_cut_without_a_checkpoint_tells_it_in_the_client_s_own_form(tmp_path: Path, at: str, counted: bool) -> None:
    copy = cut(small(counted).write(tmp_path), at=at)
    found = records(copy.path)
    told = [number for number, record in enumerate(found) if "[cutline]" in json.dumps(record)]
    assert told == [int(copy.notice)]
    payload = found[told[0]]["payload"]
    text = payload["content"][0]["text"]
    assert payload["role"] == "user" and text.startswith("<external_cutline>\n[cutline]")
    assert text.endswith("\n</external_cutline>")
    assert open_session(copy.path).history.human == [2, 6 if at == "last" else 5]
    behind = found[told[0] + 1]["payload"]
    assert behind.get("role") == "user" if at == "last" else behind["type"] != "message"


def test_words_that_name_the_session_stay(tmp_path: Path) -> None:
    made = noted()
    made.person(ID)
    copy = cut(made.write(tmp_path))
    assert texts(copy.path)[-1] == ("human", ID)
    told = [r["payload"]["message"] for r in records(copy.path) if r["payload"].get("type") == "user_message"]
    assert told[-1] == ID


def test_a_copy_is_named_in_the_client_s_list_and_an_archived_one_lies_among_the_others(home: Path) -> None:
    copy = cut(noted().write(home / "archived_sessions"))
    assert copy.path.parent == home / "sessions" / "2026" / "05" / "06"
    entry = json.loads((home / "session_index.jsonl").read_text())
    assert (entry["id"], entry["thread_name"]) == (copy.id, "Sort the stamp album «crowns». (cut)")


def test_a_search_of_the_provider_s_leaves_with_what_says_it_again(tmp_path: Path) -> None:
    made = small()
    made.event("web_search_end", call_id="ws_1", query="crown watermarks")
    made.item("web_search_call", status="completed", action={"type": "search", "query": "crown watermarks"})
    made.agent("Nothing was found.")
    path = made.write(tmp_path)
    assert "web_search_call" in {one.call.name for one in of_session(open_session(path))}
    copy = cut(path, at="end")
    assert "crown watermarks" not in "".join(
        json.dumps(record) for record in records(copy.path) if "[cutline]" not in json.dumps(record)
    )


def test_a_proof_that_fails_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = noted().write(tmp_path)

    def fail(*_: object, **__: object) -> None:
        raise CutError(1, "messages[0]", "a letter")

    monkeypatch.setattr("cutline.sessions.cutting.verify", fail)
    with pytest.raises(CutError, match="a letter"):
        cut(path)
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    path = noted().write(tmp_path / "folder")
    done = subprocess.run(
        [sys.executable, "-c", "from cutline.cli import main; main()", "cut", str(path), "--force"],
        env={**os.environ, "HOME": str(tmp_path), "NO_COLOR": "1"},
        capture_output=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500)),
    )
    text = done.stderr.decode()
    assert done.returncode == 2 and "can't be written" in text and text.count("\n") == 1
    assert list(path.parent.iterdir()) == [path]


# ------------------------------------------------------------------------------------- recorded sessions

FOLDER = SHARED / "data" / "sessions" / "codex"
recorded = pytest.mark.skipif(not FOLDER.is_dir(), reason="../shared/data is not on this machine")
FILES = sorted(FOLDER.glob("*.jsonl"))
# Samples of event records, in which nobody says anything.
SILENT = ("050_legacy", "051_usage", "052_raw", "053_rate_limit")


def stats(path: Path) -> dict[str, Any]:
    listed = json.loads((SHARED / "data" / "manifest.json").read_text())
    found: dict[str, Any] = next(one["stats"] for one in listed if one["file"] == f"codex/{path.name}")
    return found


@recorded
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_record_of_every_recorded_file_is_read(path: Path) -> None:
    log, told = read(path), stats(path)
    items = [record for record in log.records if record.type == "response_item"]
    assert log.torn == () and log.others == () and len(log.glued) == told["bad_lines"]
    # A line of two records counts as one there, and as bad.
    assert len(log.records) == told["records"] + 2 * len(log.glued)
    glued = [record for record in items if record.line in log.glued]
    calls = sum(record.kind.endswith("_call") for record in items)
    answers = sum(record.kind.endswith("_output") for record in items)
    assert calls - sum(record.kind.endswith("_call") for record in glued) == told["tool_calls"]
    assert answers - sum(record.kind.endswith("_output") for record in glued) == told["tool_results"]
    assert sum(record.kind == "reasoning" for record in items) == told["thinking"]
    assert sum(record.type == "compacted" for record in log.records) == told["compactions"]


@recorded
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_live_item_of_every_recorded_file_is_in_its_history(path: Path) -> None:
    if any(name in path.stem for name in SILENT):
        with pytest.raises(InputError, match="no conversation"):
            open_session(path)
        return
    session, told = open_session(path), stats(path)
    found = session.history
    blocks = Counter(block["type"] for message in json.loads(found.body)["messages"] for block in message["content"])
    log = read(path)
    last = max((n for n, record in enumerate(log.records) if record.type == "compacted"), default=-1)
    live = Counter(record.kind for record in log.records[last + 1 :] if record.type == "response_item")
    served = live["web_search_call"] + live["image_generation_call"]
    assert blocks["tool_use"] == sum(n for kind, n in live.items() if kind.endswith("_call"))
    # The provider's own calls hold their result in themselves: each counts as a result too.
    assert blocks["tool_result"] == sum(n for kind, n in live.items() if kind.endswith("_output")) + served
    assert blocks["thinking"] == live["reasoning"]
    if last < 0:
        assert blocks["tool_use"] == told["tool_calls"] and blocks["thinking"] == told["thinking"]
    assert bool(found.compacted) == bool(told["compactions"])


HUMAN = {
    # The client's recommendation of plug-ins counts as a person's there.
    "entire-graph_4b18f6ff_gpt56": 6,
    # The tags around an attached image count as messages there.
    "git-sync_8a21e9e6_image_unanswered": 12,
    # A sample of records, not one conversation: the compaction that is last holds made-up words.
    "agent-sessions_codex_small": None,
}


@recorded
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_person_s_messages_are_counted_as_a_person_counts(path: Path) -> None:
    wanted = HUMAN.get(path.stem, stats(path)["human_msgs"])
    if wanted:
        assert len(open_session(path).history.human) == wanted


@recorded
@pytest.mark.parametrize(
    ("at", "files", "least"),
    [
        *tried("smaller", smaller(FILES), {None: 5, "last": 3, "end": 5, "human:2": 1}),
        *tried("all", FILES, {None: 10, "last": 7, "end": 10, "human:2": 4}, pytest.mark.slow),
    ],
)
def test_every_recorded_session_is_copied_and_proven(
    tmp_path: Path, at: str | None, files: list[Path], least: int
) -> None:
    copied = 0
    for source in files:
        path = tmp_path / f"rollout-2026-05-06T07-08-09-{uuid.uuid4()}.jsonl"
        path.write_bytes(source.read_bytes())
        try:
            copy, proof = execute(prospect(open_session(path), at=at))
        except (InputError, NothingToCut):
            continue
        copied += 1
        assert not proof.unchanged and path.read_bytes() == source.read_bytes()
        assert not any(kind in ("token_count", "token_usage_record") for kind in kinds(copy.path))
        with pytest.raises(NothingToCut):
            prospect(open_session(copy.path), at=at)
    assert copied >= least


@recorded
@pytest.mark.parametrize("path", large_ones_slow(FILES), ids=lambda path: path.stem)
def test_a_recorded_session_with_a_checkpoint_put_in_is_cut_there(tmp_path: Path, path: Path) -> None:
    """As a recorded agent would have made one, in the middle of its live history."""
    if any(name in path.stem for name in SILENT) or path.stem == "agent-sessions_codex_small":
        return
    log = read(path)
    last = max((n for n, record in enumerate(log.records) if record.type == "compacted"), default=-1)
    outputs = [r.line for r in log.records[last + 1 :] if r.kind.endswith("_output")]
    lines = path.read_bytes().split(b"\n")
    at = outputs[len(outputs) // 2]
    items = noted().records
    note = [json.dumps(record).encode() for record in items if record["payload"].get("call_id") == "call_note"]
    target = tmp_path / NAME
    target.write_bytes(b"\n".join([*lines[:at], *note, *lines[at:]]))
    wanted = prospect(open_session(target))
    assert wanted.chosen == "checkpoint"
    copy, proof = execute(wanted)
    assert not proof.unchanged
    found = [r["payload"] for r in records(copy.path) if r["payload"].get("call_id") == "call_note"]
    assert any("[cutline]" in json.dumps(payload) for payload in found if payload["type"] == "function_call_output")


@pytest.mark.slow
def test_a_large_rollout_is_read_in_bounded_memory(tmp_path: Path) -> None:
    """100 MB: no more than 250 MB at the peak."""
    made = small()
    head, turn = made.records[:4], made.records[4:]
    path = tmp_path / NAME
    with path.open("w", encoding="utf-8") as handle:
        for record in head:
            handle.write(json.dumps(record) + "\n")
        number = 0
        while handle.tell() < 100_000_000:
            number += 1
            for record in turn:
                text = json.dumps(record).replace("call_", f"call_{number}_").replace("watermark 17", "17 " * 1_500)
                handle.write(text + "\n")
    code = (
        "import resource, sys; from pathlib import Path; from cutline.sessions.codex import open_session;"
        "session = open_session(Path(sys.argv[1])); assert len(session.history.human) > 1000;"
        "print(int(open('/proc/self/status').read().split('VmHWM:')[1].split()[0]))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 250_000
