"""Session files of GitHub Copilot CLI are found and read, and cut copies of them are written."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

import commands
from conftest import SHARED
from cutline.blocks import address
from cutline.errors import CutlineError, InputError, NothingToCut
from cutline.sessions import clients
from cutline.sessions import copilot_cli as copilot
from cutline.sessions.copilot_cli.events import read
from cutline.sessions.cutting import execute, prospect
from cutline.sessions.neutral import NeutralSession

RECORDED = sorted((SHARED / "data" / "sessions" / "copilot-cli").glob("*.jsonl"))
needs_data = pytest.mark.skipif(not RECORDED, reason="../shared/data is not on this machine")
ID = "0a0a0a0a-0000-4000-8000-000000000001"
CHECKPOINT = "cutline-micro_handoff"
DOCUMENT = {"done": "Counted.", "open": "the sum", "went_wrong": "nothing"}


class Writer:
    """Writes a session as the client does: each method appends an event linked to the one before."""

    def __init__(self, cwd: str = "/p") -> None:
        self.events: list[dict[str, Any]] = []
        context = {"cwd": cwd, "branch": "main"}
        self.add("session.start", sessionId=ID, version=1, copilotVersion="1.0.102", context=context)

    def add(self, type_: str, _more: dict[str, Any] | None = None, **data: Any) -> str:
        number = len(self.events) + 1
        parent = self.events[-1]["id"] if self.events else None
        event = {"type": type_, "data": data, "id": f"{number:08x}-0000-4000-8000-000000000000"}
        event |= {"timestamp": f"2026-10-05T09:{number // 60:02d}:{number % 60:02d}.000Z", "parentId": parent}
        self.events.append({**event, **(_more or {})})
        return str(event["id"])

    def human(self, words: str, **data: Any) -> str:
        wrapped = f"<current_datetime>now</current_datetime>\n\n{words}"
        return self.add("user.message", **{"content": words, "transformedContent": wrapped, "attachments": [], **data})

    def agent(self, words: str, *calls: tuple[str, str, Any], **data: Any) -> str:
        requests = [{"toolCallId": id_, "name": name, "arguments": given} for id_, name, given in calls]
        made = {"messageId": "m", "model": "m1", "content": words, "toolRequests": requests}
        return self.add("assistant.message", **{**made, **data})

    def result(self, id_: str, words: str, **data: Any) -> str:
        self.add("tool.execution_start", toolCallId=id_, toolName="bash", arguments={"command": f"run {id_}"})
        told = {"content": words, "detailedContent": f"detail of {words}"}
        return self.add("tool.execution_complete", **{"toolCallId": id_, "success": True, "result": told, **data})

    def step(self, id_: str, words: str = "Looking.", output: str = "seen") -> str:
        self.agent(words, bash(id_))
        return self.result(id_, output)

    def checkpoint(self, id_: str = "note") -> str:
        self.agent("A note.", (id_, CHECKPOINT, DOCUMENT))
        return self.result(id_, "checkpoint stored")

    def write(self, root: Path, id_: str = ID) -> Path:
        path = root / id_ / "events.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(json.dumps(event, ensure_ascii=False).encode() + b"\n" for event in self.events))
        return path


def bash(id_: str) -> tuple[str, str, dict[str, Any]]:
    return id_, "bash", {"command": f"run {id_}"}


@pytest.fixture
def writer() -> Writer:
    return Writer()


def outline(session: NeutralSession) -> list[str]:
    """Each message as its origin's letter and its blocks: words, +call, -result (! where it failed)."""
    found = []
    for message, origin in zip(json.loads(session.history.body)["messages"], session.history.origins, strict=True):
        parts = []
        for block in message["content"]:
            if block["type"] == "tool_use":
                parts.append(f"+{block['id']}")
            elif block["type"] == "tool_result":
                parts.append(f"-{block['tool_use_id']}" + ("!" if block.get("is_error") else ""))
            else:
                parts.append(block.get("text") or block.get("thinking") or block["type"])
        found.append(f"{origin[0]}: {' '.join(parts)}")
    return found


def opened(writer: Writer, root: Path) -> NeutralSession:
    return copilot.open_session(writer.write(root))


def cut(path: Path, **options: Any) -> tuple[NeutralSession, list[dict[str, Any]]]:
    """The copy of a session, read again, and its events."""
    copy, _ = execute(prospect(copilot.open_session(path), **options))
    return copilot.open_session(copy.path), rows(copy.path)


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line.strip()]


# ------------------------------------------------------------------------------------ every recorded session


@needs_data
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_every_recorded_session_is_read_whole(path: Path):
    manifest = {row["file"]: row["stats"] for row in json.loads((SHARED / "data" / "manifest.json").read_text())}
    counts = manifest[f"copilot-cli/{path.name}"]
    log, session = read(path), copilot.open_session(path)
    assert len(log.events) == counts["records"] and not session.damage
    calls = [id_ for event in log.events for id_ in event.calls]
    ends = [event.call for event in log.events if event.type == "tool.execution_complete"]
    assert (len(calls), len(ends)) == (counts["tool_calls"], counts["tool_results"])
    body = session.history.body
    assert body.count(b'"type":"tool_use"') == len(calls)
    # The client passes over a result that answers no call.
    assert body.count(b'"type":"tool_result"') == len([id_ for id_ in ends if id_ in calls])
    assert body.count(b'"type":"thinking"') == counts["thinking"]
    users = [event for event in log.events if event.type == "user.message"]
    typed = [origin for origin in session.history.origins if origin == "human"]
    assert len(users) == counts["human_msgs"]
    # One of them nobody typed: the client itself asks the agent to go on.
    assert len(users) - len(typed) == ("vibecoding" in path.name)
    assert session.cwd and session.git_branch and session.title and session.last and session.history.model
    assert session.version == next(iter(counts["versions"]))


def with_checkpoint(path: Path) -> None:
    """Put a checkpoint into a recorded session before its last turn."""
    events = rows(path)
    at = max(number for number, event in enumerate(events) if event["type"] == "assistant.turn_start")
    put = Writer()
    put.checkpoint()
    new = put.events[1:]
    new[0]["parentId"] = events[at - 1]["id"]
    events[at]["parentId"] = new[-1]["id"]
    path.write_bytes(b"".join(json.dumps(event).encode() + b"\n" for event in (*events[:at], *new, *events[at:])))


@needs_data
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
@pytest.mark.parametrize("place", ("last", "end", "human:2", "a checkpoint"))
def test_every_recorded_session_is_copied_and_proven(tmp_path: Path, path: Path, place: str):
    source = tmp_path / ID / "events.jsonl"
    source.parent.mkdir()
    source.write_bytes(path.read_bytes())
    if place == "a checkpoint":
        with_checkpoint(source)
    before, session = source.read_bytes(), copilot.open_session(source)
    try:
        copy, proof = execute(prospect(session, at=None if place == "a checkpoint" else place))
    except (InputError, NothingToCut):
        assert "vibecoding" in path.name and place in ("last", "human:2"), "one turn that a person typed"
        return
    assert not proof.unchanged and source.read_bytes() == before
    again = copilot.open_session(copy.path)
    assert again.id == copy.id == rows(copy.path)[0]["data"]["sessionId"] and again.title.endswith("(cut)")
    known = {event["id"] for event in rows(copy.path)}
    assert all(event["parentId"] in (*known, None) for event in rows(copy.path))
    left = {id_ for event in session.source.events for id_ in event.calls}
    left -= {id_ for event in again.source.events for id_ in event.calls}
    assert left and not [event for event in again.source.events if event.call in left]
    if place != "end":
        try:
            again = copilot.open_session(execute(prospect(again, at="end"))[0].path)
        except NothingToCut:
            pass
    with pytest.raises(NothingToCut):
        prospect(again, at="end")


# ------------------------------------------------------------------------------------------- what is sent


def test_a_history_is_what_the_client_sends(writer: Writer, tmp_path: Path):
    writer.add("session.info", infoType="x", message="not sent")
    writer.human("Count.")
    writer.add("system.message", role="system", content="You are an agent.")
    usage = {"inputTokens": 1000, "outputTokens": 7, "cacheReadTokens": 900, "cacheWriteTokens": 60, "apiCallId": "a1"}
    writer.add("session.usage_record", usage=usage)
    writer.agent("I count.", bash("c1"), bash("c2"), reasoningText="Hm.", reasoningOpaque="xyz")
    writer.result("c2", "", success=False, error={"message": "no such file"})
    writer.result("c1", "40")
    writer.result("c1", "a second end")
    writer.result("cx", "of no call")
    writer.add("system.notification", content="A shell ended.", kind={"type": "shell_completed"})
    writer.human("A skill's words.", source="skill-x")
    writer.add("user.message", content="", transformedContent="Go on.", isAutopilotContinuation=True)
    writer.add("tool.user_requested", toolCallId="u1", toolName="bash", arguments={"command": "ls"})
    writer.result("u1", "a b", isUserRequested=True)
    writer.agent("", reasoningOpaque="only opaque")
    inner = {"agentId": "agent-1"}
    writer.add("user.message", inner, content="A task.")
    writer.add("assistant.message", inner, messageId="m", content="Inner words.", toolRequests=[])
    writer.human("And?")
    session = opened(writer, tmp_path)
    assert outline(session) == [
        "h: Count.",
        "a: Hm. I count. +c1 +c2",
        "r: -c2!",
        "r: -c1",
        "h: A shell ended.",
        "h: A skill's words.",
        "h: Go on.",
        "h: ls",
        "h: a b",
        "a: only opaque",
        "h: And?",
    ]
    assert [session.history.origins[number] for number in range(4, 9)] == [*["harness"] * 3, "human", "harness"]
    assert b'"no such file"' in session.history.body
    (made,) = session.history.requests
    assert (made.message, made.message_id, made.model) == (1, "a1", "m1")
    counts = made.usage
    assert (counts.input, counts.cache_read, counts.cache_write_5m, counts.output) == (40, 900, 60, 7)
    assert (session.cwd, session.version, session.git_branch, session.id) == ("/p", "1.0.102", "main", ID)


def test_a_compaction_stands_for_what_was_before_it_began(writer: Writer, tmp_path: Path):
    writer.human("One.")
    writer.step("c1")
    writer.add("session.compaction_start")
    writer.step("c2")
    writer.add("session.compaction_complete", success=True, summaryContent="One was done.", messagesRemoved=99)
    writer.human("Two.")
    writer.add("session.compaction_start")
    writer.add("session.compaction_complete", success=False, error="no")
    session = opened(writer, tmp_path)
    assert outline(session) == ["s: One was done.", "a: Looking. +c2", "r: -c2", "h: Two."]
    assert session.history.compacted
    copy, _ = cut(session.path, at="end")
    assert outline(copy)[:-1] == ["s: One was done.", "a: Looking.", "h: Two."]


def test_a_context_that_was_cleared_begins_anew(writer: Writer, tmp_path: Path):
    writer.human("One.")
    writer.add("session.context_cleared", messagesCleared=1, initialMessage="Afresh.")
    writer.human("Two.")
    assert outline(opened(writer, tmp_path)) == ["h: Afresh.", "h: Two."]


def test_a_session_that_is_gone_on_with_elsewhere_is_there(writer: Writer, tmp_path: Path):
    writer.human("One.")
    writer.add("session.resume", resumeTime="now", eventCount=2, context={"cwd": "/q", "branch": "dev"})
    session = opened(writer, tmp_path)
    assert (session.cwd, session.git_branch) == ("/q", "dev")


def test_words_stay_the_literals_of_the_file(tmp_path: Path):
    words = rb'"na\u00efve \ud83d\ude00 \/ \u2028 half \ud83d, \u0041"'
    arguments = b'{"n": 1.0e3, "b":2,  "a":[1,-0.0],"s":"\\u00e4"}'
    lines = (
        b'{"type":"session.start","data":{"sessionId":"s1"},"id":"0","parentId":null}',
        b'{"type":"user.message","data":{"content":%s},"id":"1","parentId":"0"}' % words,
        b'{"type":"assistant.message","data":{"content":%s,"toolRequests":[{"toolCallId":"c1","name":"bash",'
        b'"arguments":%s}]},"id":"2","parentId":"1"}' % (words, arguments),
    )
    path = tmp_path / "s1.jsonl"
    path.write_bytes(b"\n".join(lines))
    body = copilot.open_session(path).history.body
    assert body.count(words) == 2 and arguments in body


def test_images_are_read_a_person_s_and_a_result_s(writer: Writer, tmp_path: Path):
    image = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    writer.human("Look.", attachments=[{"type": "blob", "data": "aGk=", "mimeType": "image/png"}])
    writer.agent("", bash("c1"))
    writer.result("c1", "", result={"content": "a picture", "binaryResultsForLlm": [image]})
    messages = json.loads(opened(writer, tmp_path).history.body)["messages"]
    assert [block["type"] for block in messages[0]["content"]] == ["text", "image"]
    source = {"type": "base64", "media_type": "image/png", "data": "aGk="}
    told = messages[2]["content"][0]["content"]
    assert told == [{"type": "text", "text": "a picture"}, {"type": "image", "source": source}]


# ------------------------------------------------------------------------------------------------ damage


def test_what_is_damaged_is_passed_over_and_told(writer: Writer, tmp_path: Path):
    writer.human("Count.")
    writer.step("c1")
    writer.human("And?")
    path = writer.write(tmp_path)
    lines = path.read_bytes().split(b"\n")
    lines[2:4] = [lines[2] + lines[3]]
    lines.insert(1, b"[1]")
    path.write_bytes(b"\n".join(lines) + b'{"type":"user.mess')
    session = copilot.open_session(path)
    assert outline(session) == ["h: Count.", "a: Looking. +c1", "r: -c1", "h: And?"]
    assert session.damage == (
        "1 torn fragment (line 7): in the original only.",
        "Records glued into one line were parted (line 4).",
        "JSON that is no record was passed over (line 2).",
    )
    again, _ = cut(path, at="end")
    assert not again.damage, "the client refuses a file with glued lines; the copy has none"


@pytest.mark.parametrize(
    ("data", "says"),
    (
        (b"", "is empty"),
        (b"not json\n", "line 1 is no record (not JSON"),
        (b"\0\1\2\n", "binary file"),
        (b'{"type":"user.message"}\n', "no record in it (line 1)"),
        (b'{"type":"user.message","data":{}}\n', "no beginning of a session"),
        (b'{"type":"session.start","data":{"sessionId":"1"}}\n', "no conversation"),
        (b'{"a":' * 10_000 + b"1" + b"}" * 10_000, "nested too deeply"),
    ),
)
def test_a_file_without_a_session_is_refused_in_one_line(tmp_path: Path, data: bytes, says: str):
    path = tmp_path / "events.jsonl"
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"events\.jsonl") as refused:
        copilot.open_session(path)
    assert says in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize("depth", range(100, 1_000, 30))
def test_an_event_nested_nearly_too_deeply_is_no_traceback(writer: Writer, tmp_path: Path, depth: int):
    writer.human("Count.")
    writer.step("c1")
    path = writer.write(tmp_path)
    deep = (
        b'{"type":"assistant.message","data":{"content":"x","toolRequests":[{"toolCallId":"d","name":"t","arguments":'
    )
    path.write_bytes(path.read_bytes() + deep + b"[" * depth + b"]" * depth + b'}]},"id":"d","parentId":null}\n')
    try:
        cut(path, at="end")
    except CutlineError as error:
        assert "\n" not in str(error)


# ----------------------------------------------------------------------------------------------- finding


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("COPILOT_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home" / ".copilot" / "session-state"


def test_sessions_are_found_by_their_directory(
    home: Path, writer: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    writer.human("Count, please.\nAll of it.")
    path = writer.write(home)
    other = Writer(cwd="/elsewhere")
    other.human("Other.")
    flat = home / "0b0b0b0b-0000-4000-8000-000000000002.jsonl"
    flat.write_text("".join(json.dumps(event) + "\n" for event in other.events))
    (home / ".locks").mkdir()
    (home / "no-session").mkdir()
    (found,) = copilot.sessions(Path("/p"))
    assert (found.path, found.id, found.folder, found.talks) == (path, ID, "/p", True)
    assert found.title == "Count, please. All of it." == copilot.open_session(path).title
    assert {one.id for one in copilot.sessions()} == {ID, flat.stem}
    (path.parent / "workspace.yaml").write_text(f"id: {ID}\ncwd: /p\nname: 'It''s a count'\nuser_named: true\n")
    assert copilot.sessions(Path("/p"))[0].title == "It's a count" == copilot.open_session(path).title
    assert clients.resolve(ID[:10], tmp_path).path == path
    assert clients.resolve(str(flat), tmp_path).client == "copilot-cli"
    assert copilot.resume(ID) == ["copilot", f"--resume={ID}"]
    monkeypatch.setenv("COPILOT_HOME", str(tmp_path / "other"))
    assert copilot.places() == [tmp_path / "other" / "session-state"] and copilot.sessions() == []


# ------------------------------------------------------------------------------------------------ copies


def test_a_copy_at_a_checkpoint(writer: Writer, tmp_path: Path):
    first = writer.human("Count.")
    writer.agent("I count.", bash("c1"), ("c2", "view", {"path": "a"}), reasoningText="Hm.", reasoningOpaque="xyz")
    hook = {"toolName": "bash", "toolArgs": '{"command":"run c1"}', "toolResult": {"textResultForLlm": "secret 40"}}
    writer.add("hook.start", hookInvocationId="h1", hookType="postToolUse", input=hook)
    writer.add("hook.end", hookInvocationId="h1", hookType="postToolUse", success=True)
    writer.add("permission.requested", requestId="r", permissionRequest={"kind": "shell", "toolCallId": "c1"})
    writer.result("c1", "secret 40")
    writer.result("c2", "secret 41", result={"content": "secret 41", "binaryResultsForLlm": [{"assetId": "sha256:1"}]})
    writer.add("session.binary_asset", assetId="sha256:1", data="aGk=", mimeType="image/png")
    writer.add("model.messages_snapshot", kind="messages_snapshot", messages=["secret 40"])
    writer.agent("", bash("c3"))
    writer.result("c3", "secret 42")
    writer.checkpoint()
    writer.step("c4", "On.", "43")
    writer.add("hook.start", hookInvocationId="h2", hookType="agentStop", input={"sessionId": ID})
    path = writer.write(tmp_path)
    (path.parent / "workspace.yaml").write_text(f"id: {ID}\ncwd: /p\nname: Counting\nuser_named: false\n")
    (path.parent / "plan.md").write_text("the plan")
    (path.parent / "files").mkdir()
    (path.parent / "files" / "a.txt").write_text("kept by the agent")
    before = path.read_bytes()
    old = os.umask(0)
    try:
        copy, events = cut(path)
    finally:
        os.umask(old)
    assert path.read_bytes() == before
    assert stat.S_IMODE(copy.path.stat().st_mode) == 0o600 and stat.S_IMODE(copy.path.parent.stat().st_mode) == 0o700
    assert outline(copy) == ["h: Count.", "a: I count.", "a: A note. +note", "r: -note", "a: On. +c4", "r: -c4"]
    rest = json.dumps([event for event in events if "[cutline]" not in json.dumps(event)])
    assert "secret" not in rest and "aGk=" not in rest
    said = events[2]["data"]
    assert said == {"messageId": "m", "model": "m1", "content": "I count.", "toolRequests": []}
    assert [event["type"] for event in events] == [
        "session.start",
        "user.message",
        "assistant.message",
        "assistant.message",
        "tool.execution_start",
        "tool.execution_complete",
        "assistant.message",
        "tool.execution_start",
        "tool.execution_complete",
        "hook.start",
    ]
    assert events[2]["parentId"] == first and events[3]["parentId"] == events[2]["id"]
    told = events[5]["data"]["result"]
    assert told["content"].startswith("checkpoint stored\n\n[cutline]")
    assert told["detailedContent"] == "detail of checkpoint stored"
    assert path.read_bytes().split(b"\n")[-2] in copy.path.read_bytes().split(b"\n")
    about = dict(line.split(": ", 1) for line in (copy.path.parent / "workspace.yaml").read_text().splitlines())
    assert about == {"id": copy.id, "cwd": "/p", "name": '"Counting (cut)"', "user_named": "true"}
    assert (copy.path.parent / "plan.md").read_text() == "the plan"
    assert (copy.path.parent / "files" / "a.txt").exists()
    assert not list(tmp_path.glob(".*"))


def test_a_copy_without_a_checkpoint_holds_the_notice_in_the_system_s_name(writer: Writer, tmp_path: Path):
    writer.human("Count.")
    writer.step("c1")
    writer.human("And?")
    writer.step("c2")
    path = writer.write(tmp_path)
    copy, events = cut(path, at="last")
    number = next(number for number, event in enumerate(events) if event["type"] == "system.notification")
    assert events[number]["data"]["content"].startswith("[cutline]")
    assert events[number]["data"]["kind"] == {"type": "unclassified"}
    assert events[number + 1]["parentId"] == events[number]["id"]
    assert copy.history.origins[2] == "harness"
    assert outline(copy)[3:] == ["h: And?", "a: Looking. +c2", "r: -c2"]
    at_end, events = cut(path, at="end")
    assert [line[:11] for line in outline(at_end)][-2:] == ["a: Looking.", "h: [cutline"]
    assert events[-1]["parentId"] == events[-2]["id"]


def test_a_sub_agent_s_own_events_are_its_own(writer: Writer, tmp_path: Path):
    """They are never sent; what it said stays in the file, and what it gave back leaves with the call."""
    writer.human("Count.")
    writer.agent("I ask.", ("c1", "task", {"prompt": "x"}))
    inner = {"agentId": "agent-1"}
    writer.add("assistant.message", inner, messageId="m", content="Inner words.", toolRequests=[])
    writer.result("c1", "the report")
    _, events = cut(writer.write(tmp_path), at="end")
    assert "Inner words." in json.dumps(events)
    assert not any(event["type"].startswith("tool.") for event in events)


def test_a_copy_of_a_session_that_never_had_a_folder_gets_one(writer: Writer, tmp_path: Path):
    writer.human("Count.")
    writer.step("c1")
    path = tmp_path / "recorded.jsonl"
    path.write_text("".join(json.dumps(event) + "\n" for event in writer.events))
    copy, _ = cut(path, at="end")
    assert copy.path == tmp_path / copy.id / "events.jsonl" and copy.title == "Count. (cut)" and copy.cwd == "/p"


def test_a_session_that_grows_meanwhile_is_copied_as_it_was(writer: Writer, tmp_path: Path):
    writer.human("Count.")
    writer.step("c1")
    path = writer.write(tmp_path)
    wanted = prospect(copilot.open_session(path), at="end")
    with path.open("a") as handle:
        handle.write(
            json.dumps({"type": "session.info", "data": {"late": True}, "id": "late", "parentId": None}) + "\n"
        )
    copy, _ = execute(wanted)
    assert copy.missed > 50 and b"late" not in copy.path.read_bytes()


def test_what_can_t_be_written_leaves_nothing_behind(writer: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    writer.human("Count.")
    writer.step("c1")
    path = writer.write(tmp_path)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    wanted = prospect(copilot.open_session(path), at="end")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="can't be written"):
        execute(wanted)
    assert list(tmp_path.iterdir()) == [path.parent]


def test_what_a_run_that_was_killed_left_is_cleared_by_the_next(writer: Writer, tmp_path: Path):
    writer.human("Count.")
    writer.step("c1")
    path = writer.write(tmp_path)
    left = tmp_path / ".0c0c0c0c-0000-4000-8000-000000000003.cutline-tmp"
    left.mkdir()
    (left / "events.jsonl").write_text("half")
    cut(path, at="end")
    assert not left.exists() and len(list(tmp_path.iterdir())) == 2


def test_the_commands_take_a_session_of_copilot(home: Path, tmp_path: Path):
    cwd = tmp_path / "project"
    cwd.mkdir()
    writer = Writer(cwd=str(cwd))
    writer.human("Count.")
    writer.step("c1", "Looking.", "the needle is 4711\n" * 400)
    writer.human("And?")
    writer.agent("Done.")
    writer.write(home)
    known = {**os.environ, "HOME": str(home.parents[1]), "NO_COLOR": "1", "CLAUDE_CONFIG_DIR": str(tmp_path / "none")}

    def run(*arguments: str) -> str:
        done = commands.run(*arguments, cwd=cwd, env=known)
        assert done.returncode == 0, done.stderr
        return done.stdout.decode()

    assert "Count." in run("ls") and ID in run("ls", "--json")
    assert "Count." in run()
    assert "5 messages" in run("show")
    copy = json.loads(run("cut", "--force", "--json"))["copy"]
    assert Path(copy["path"]).exists()
    assert "needle is 4711" in run("recall", address("c1", "bash", b'{"command":"run c1"}'))
