"""pi's session files are found and read, and cut copies of them are written: every entry, the line that is live."""

import base64
import json
import os
import resource
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import commands
from conftest import SHARED, smaller
from cutline.blocks import address
from cutline.errors import CutlineError, InputError, NothingToCut
from cutline.sessions import clients, pi
from cutline.sessions.cutting import execute, prospect
from cutline.sessions.neutral import NeutralSession
from cutline.sessions.pi.entries import read
from cutline.sessions.pi.find import folder_name

RECORDED = sorted((SHARED / "data" / "sessions" / "pi").glob("*.jsonl"))
needs_data = pytest.mark.skipif(not RECORDED, reason="../shared/data is not on this machine")
ID = "01a00000-0000-7000-8000-000000000001"
CHECKPOINT = "mcp__cutline__micro_handoff"
DOCUMENT = {"done": "Counted.", "open": "the sum", "went_wrong": "nothing"}


class Writer:
    """Writes a session as the client does: each method appends an entry behind the last one and returns its id."""

    def __init__(self, version: int | None = 3, cwd: str = "/p") -> None:
        self.version = version
        self.header: dict[str, Any] = {"type": "session", "version": version, "id": ID, "timestamp": self.time(0)}
        self.header["cwd"] = cwd
        if version is None:
            del self.header["version"]
        self.entries: list[dict[str, Any]] = []
        self.leaf: str | None = None

    @staticmethod
    def time(number: int) -> str:
        return f"2026-10-05T09:{number // 60:02d}:{number % 60:02d}.000Z"

    def add(self, type_: str, **members: Any) -> str:
        number = len(self.entries) + 1
        entry: dict[str, Any] = {"type": type_, "id": f"{number:08x}", "parentId": self.leaf}
        entry |= {"timestamp": self.time(number)} | members
        if self.version is None:
            del entry["id"], entry["parentId"]
        self.entries.append(entry)
        self.leaf = entry.get("id")
        return str(self.leaf)

    def message(self, role: str, content: Any, **members: Any) -> str:
        return self.add("message", message={"role": role, "content": content, **members})

    def human(self, words: str) -> str:
        return self.message("user", [text(words)])

    def agent(self, *blocks: dict[str, Any], **members: Any) -> str:
        known = {"api": "anthropic-messages", "provider": "a", "model": "claude-sonnet-4-5", "stopReason": "stop"}
        usage = {"input": 3, "output": 7, "cacheRead": 1000 + len(self.entries), "cacheWrite": 40, "cacheWrite1h": 10}
        return self.message("assistant", list(blocks), **{**known, "usage": usage, **members})

    def result(self, id_: str, words: str, **members: Any) -> str:
        return self.message("toolResult", [text(words)], toolCallId=id_, toolName="bash", isError=False, **members)

    def step(self, id_: str, words: str = "Looking.", output: str = "seen") -> str:
        self.agent(text(words), call(id_))
        return self.result(id_, output)

    def checkpoint(self, id_: str = "note") -> str:
        self.agent(text("A note."), call(id_, CHECKPOINT, **DOCUMENT))
        return self.result(id_, "checkpoint stored")

    def write(self, folder: Path) -> Path:
        path = folder / f"2026-10-05T09-00-00-000Z_{ID}.jsonl"
        rows = [self.header, *self.entries]
        path.write_bytes(b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows))
        return path


@pytest.fixture
def writer() -> Writer:
    return Writer()


def text(words: str, **members: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **members}


def call(id_: str, name: str = "bash", **arguments: Any) -> dict[str, Any]:
    return {"type": "toolCall", "id": id_, "name": name, "arguments": arguments or {"command": f"run {id_}"}}


def thinking(words: str, signature: str = "") -> dict[str, Any]:
    return {"type": "thinking", "thinking": words, "thinkingSignature": signature}


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


def opened(writer: Writer, folder: Path) -> NeutralSession:
    return pi.open_session(writer.write(folder))


def cut(path: Path, **options: Any) -> tuple[NeutralSession, list[dict[str, Any]]]:
    """The copy of a session, read again, and its entries."""
    copy, _ = execute(prospect(pi.open_session(path), **options))
    return pi.open_session(copy.path), rows(copy.path)


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line.strip()]


def by_id(entries: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {entry["id"]: entry for entry in entries}


# ------------------------------------------------------------------------------------ every recorded session


@needs_data
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_every_recorded_session_is_read_whole(path: Path):
    manifest = {row["file"]: row["stats"] for row in json.loads((SHARED / "data" / "manifest.json").read_text())}
    counts = manifest[f"pi/{path.name}"]
    log = read(path)
    roles = [entry.role for entry in log.entries]
    assert len(log.entries) == counts["records"] and not log.lines.damage()
    assert sum(len(entry.calls) for entry in log.entries) == counts["tool_calls"]
    assert roles.count("toolResult") == counts["tool_results"]
    assert roles.count("user") == counts["human_msgs"]
    assert sum(entry.type == "compaction" for entry in log.entries) == counts["compactions"]


@needs_data
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_what_is_sent_of_a_recorded_session_is_all_of_its_live_line(path: Path):
    """But for answers that failed or were stopped: the client never sends those, whatever stands in them."""
    session = pi.open_session(path)
    entries = session.source.entries
    live = [entries[number] for number in session.source.sent]
    stopped = {id_ for entry in live if entry.stop in ("error", "aborted") for id_ in entry.calls}
    made = [id_ for entry in live for id_ in entry.calls]
    assert session.history.body.count(b'"type":"tool_use"') == len(made) - len(stopped)
    assert session.history.body.count(b'"type":"tool_result"') == sum(entry.role == "toolResult" for entry in live)
    typed = [json.loads(row)["message"]["content"] for row in _literals(session, "user")]
    found = session.history
    said = [
        message["content"]
        for message, places in zip(json.loads(found.body)["messages"], found.places, strict=True)
        if entries[places[0][0]].role == "user"
    ]
    assert said == typed and len(found.human) == len(said) + sum(entry.role == "bashExecution" for entry in live)
    assert session.cwd and session.title and session.last and session.version == ""


def _literals(session: NeutralSession, role: str) -> list[bytes]:
    log = session.source
    with log.reader() as fetch:
        return [fetch(log.entries[number]) for number in log.sent if log.entries[number].role == role]


@needs_data
def test_a_recorded_session_of_the_first_version_goes_on_from_its_last_compaction():
    session = pi.open_session(next(path for path in RECORDED if "before-compaction" in path.name))
    assert session.history.compacted and session.history.origins[0] == "summary"
    assert session.source.version == 1 and session.source.sent[1] == 551
    assert len(session.history.requests) > 100 and session.history.model == "claude-opus-4-5"


def linked(path: Path, folder: Path) -> Path:
    """A recorded session in the newest version of the format, as the client itself migrates it."""
    entries, before = rows(path), None
    if "version" in entries[0]:
        return path
    for number, entry in enumerate(entries[1:], 1):
        entry |= {"id": f"{number:08x}", "parentId": before}
        before = entry["id"]
        kept = entry.pop("firstKeptEntryIndex", None)
        if kept is not None:
            entry["firstKeptEntryId"] = entries[kept]["id"]
    entries[0]["version"] = 3
    found = folder / f"linked-{path.name}"
    found.write_text("".join(json.dumps(entry) + "\n" for entry in entries), "utf-8")
    return found


def with_checkpoint(path: Path, folder: Path) -> Path:
    """A recorded session with a checkpoint put in two thirds along, where no call is open."""
    entries = rows(path)
    put = Writer(version=None if "version" not in entries[0] else 3)
    at = next(
        number
        for number in range(2 * len(entries) // 3, len(entries))
        if entries[number].get("message", {}).get("role") == "user"
    )
    put.checkpoint()
    new = [dict(entry) for entry in put.entries]
    if put.version:
        new[0] |= {"id": "cccccc01", "parentId": entries[at]["parentId"]}
        new[1] |= {"id": "cccccc02", "parentId": "cccccc01"}
        entries[at]["parentId"] = "cccccc02"
    found = folder / f"checkpoint-{path.name}"
    found.write_text("".join(json.dumps(entry) + "\n" for entry in (*entries[:at], *new, *entries[at:])), "utf-8")
    return found


SEEN = {
    ("pi-mono_large-session", "as recorded", "last"),
    ("pi-mono_large-session", "linked", "end"),
    ("pi-mono_before-compaction", "as recorded", "human:2"),
    ("pi-mono_large-session", "linked", "a checkpoint"),
}


@needs_data
@pytest.mark.parametrize(
    ("path", "version", "place"),
    [
        # Two files of three are large; each version and each place is seen once in the ordinary run all the same.
        pytest.param(
            path,
            version,
            place,
            id=f"{place}-{version}-{path.stem}",
            marks=[pytest.mark.slow] * (path not in smaller(RECORDED) and (path.stem, version, place) not in SEEN),
        )
        for place in ("last", "end", "human:2", "a checkpoint")
        for version in ("as recorded", "linked")
        for path in RECORDED
    ],
)
def test_every_recorded_session_is_copied_and_proven(tmp_path: Path, path: Path, version: str, place: str):
    source = tmp_path / path.name
    source.write_bytes(path.read_bytes())
    source = linked(source, tmp_path) if version == "linked" else source
    if place == "a checkpoint":
        if "small" in path.name:
            pytest.skip("nothing but words in it")
        source = with_checkpoint(source, tmp_path)
    before = source.read_bytes()
    session = pi.open_session(source)
    try:
        copy, proof = execute(prospect(session, at=None if place == "a checkpoint" else place))
    except NothingToCut:
        assert "small" in path.name or place == "human:2"
        return
    assert not proof.unchanged and source.read_bytes() == before
    again = pi.open_session(copy.path)
    assert again.id == copy.id != session.id and again.title.endswith("(cut)") and not again.damage
    assert copy.bytes < len(before)
    if version == "linked":
        known = {entry["id"] for entry in rows(copy.path)}
        assert all(entry.get("parentId") in (*known, None) for entry in rows(copy.path))
    if place != "end":
        try:
            again = pi.open_session(execute(prospect(again, at="end"))[0].path)
        except NothingToCut:
            pass
    with pytest.raises(NothingToCut):
        prospect(again, at="end")


# ------------------------------------------------------------------------------------------- what is sent


def test_a_history_is_what_the_client_sends(writer: Writer, tmp_path: Path):
    writer.add("model_change", provider="a", modelId="claude-sonnet-4-5")
    writer.message("system", "", sections={"preamble": "You are an agent."}, toolsAdded=[])
    writer.human("Count.")
    writer.agent(thinking("Hm."), text("I count."), call("c1"), call("c2"), responseId="msg_1")
    writer.result("c1", "40")
    writer.message("toolResult", [text("no such file")], toolCallId="c2", toolName="bash", isError=True)
    writer.agent(text("Half of an ans"), call("c3"), stopReason="aborted")
    writer.add("custom", customType="state", data={"n": 1})
    writer.add("custom_message", customType="hint", content="Mind the gap.", display=True)
    writer.message("bashExecution", None, command="ls", output="a b", exitCode=0)
    writer.message("bashExecution", None, command="secret", output="x", exitCode=0, excludeFromContext=True)
    writer.add("usage", kind="cache_warm", usage={})
    writer.add("label", targetId="00000003", label="here")
    writer.human("And?")
    session = opened(writer, tmp_path)
    assert outline(session) == [
        "h: Count.",
        "a: Hm. I count. +c1 +c2",
        "r: -c1",
        "r: -c2!",
        "h: Mind the gap.",
        "h: ls",
        "h: a b",
        "h: And?",
    ]
    assert [session.history.origins[number] for number in (4, 5, 6)] == ["harness", "human", "harness"]
    (made,) = session.history.requests
    assert (made.message, made.message_id, made.model) == (1, "msg_1", "claude-sonnet-4-5")
    assert (made.usage.input, made.usage.cache_read, made.usage.output) == (3, 1003, 7)
    assert (made.usage.cache_write_5m, made.usage.cache_write_1h) == (30, 10)
    assert made.timestamp == session.last and session.cwd == "/p" and session.id == ID


def test_the_leaf_is_the_last_entry_and_its_branch_is_the_history(writer: Writer, tmp_path: Path):
    fork = writer.human("Count.")
    writer.step("c1")
    left = writer.human("That was wrong.")
    writer.leaf = fork
    writer.add("branch_summary", fromId=left, summary="It went wrong.")
    writer.step("c2")
    assert outline(opened(writer, tmp_path)) == ["h: Count.", "s: It went wrong.", "a: Looking. +c2", "r: -c2"]
    # An entry of another kind that comes last holds the leaf too.
    writer.leaf = left
    writer.add("label", targetId=fork, label="again")
    assert outline(opened(writer, tmp_path))[-1] == "h: That was wrong."


@pytest.mark.parametrize("version", (None, 3))
def test_the_last_compaction_stands_first_and_what_it_keeps_behind_it(tmp_path: Path, version: int | None):
    writer = Writer(version)
    writer.human("One.")
    writer.step("c1")
    writer.add(
        "compaction", summary="Old.", **({"firstKeptEntryIndex": 1} if not version else {"firstKeptEntryId": "0"})
    )
    kept = writer.human("Two.")
    writer.step("c2")
    first = {"firstKeptEntryIndex": 5} if not version else {"firstKeptEntryId": kept}
    writer.add("compaction", summary="One was done.", tokensBefore=9, **first)
    writer.human("Three.")
    session = opened(writer, tmp_path)
    assert outline(session) == ["s: One was done.", "h: Two.", "a: Looking. +c2", "r: -c2", "h: Three."]
    assert session.history.compacted


def test_a_compaction_may_keep_nothing(writer: Writer, tmp_path: Path):
    writer.human("One.")
    writer.add("compaction", summary="All of it.", firstKeptEntryId="00000002")
    writer.human("Two.")
    assert outline(opened(writer, tmp_path)) == ["s: All of it.", "h: Two."]


def test_an_edit_of_the_context_counts_instead_of_what_it_edits(writer: Writer, tmp_path: Path):
    writer.human("Count.")
    first, second = writer.step("c1"), writer.step("c2")
    writer.add("context_edit", targetId=first, replacement={"content": [text("(pruned)")]})
    writer.add("context_edit", targetId=second, replacement=None)
    writer.human("And?")
    session = opened(writer, tmp_path)
    assert outline(session) == ["h: Count.", "a: Looking. +c1", "r: -c1", "a: Looking. +c2", "h: And?"]
    assert b"(pruned)" in session.history.body and b"seen" not in session.history.body


def test_words_stay_the_literals_of_the_file(tmp_path: Path):
    words = rb'"na\u00efve \ud83d\ude00 \/ \u2028 half \ud83d, \u0041"'
    arguments = b'{"n": 1.0e3, "b":2,  "a":[1,-0.0],"s":"\\u00e4"}'
    lines = (
        b'{"type":"session","version":3,"id":"s1","timestamp":"2026-10-05T09:00:00.000Z","cwd":"/p"}',
        b'{"type":"message","id":"1","parentId":null,"message":{"role":"user","content":%s}}' % words,
        b'{"type":"message","id":"2","parentId":"1","message":{"role":"assistant","content":[{"type":"text","text":%s},'
        b'{"type":"toolCall","id":"call_1|fc_2","name":"bash","arguments":%s}]}}' % (words, arguments),
    )
    path = tmp_path / "s1.jsonl"
    path.write_bytes(b"\n".join(lines))
    body = pi.open_session(path).history.body
    assert body.count(words) == 2 and arguments in body
    assert b'"id":"call_1"' in body, "the id on the wire; the part behind the bar names the item"


def test_images_are_read_a_person_s_and_a_result_s(writer: Writer, tmp_path: Path):
    image = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    writer.message("user", [text("Look."), image])
    writer.agent(call("c1"))
    writer.message("toolResult", [text("a picture"), image], toolCallId="c1", toolName="read", isError=False)
    messages = json.loads(opened(writer, tmp_path).history.body)["messages"]
    assert [block["type"] for block in messages[0]["content"]] == ["text", "image"]
    source = {"type": "base64", "media_type": "image/png", "data": "aGk="}
    assert messages[2]["content"][0]["content"] == [text("a picture"), {"type": "image", "source": source}]


# ------------------------------------------------------------------------------------------------ damage

WHOLE = Writer()
WHOLE.human("Count.")
WHOLE.step("c1")


def test_what_is_damaged_is_passed_over_and_told(writer: Writer, tmp_path: Path):
    writer.human("Count.")
    writer.step("c1")
    writer.human("And?")
    path = writer.write(tmp_path)
    lines = path.read_bytes().split(b"\n")
    lines[1] = b'{"type":"message","id":"torn","message":{"role":"us' + lines[1]  # torn, the next glued to it
    lines[2:4] = [lines[2] + lines[3]]
    lines.insert(1, b"123")
    lines.insert(2, b"")
    path.write_bytes(b"\n".join(lines) + b'{"type":"mess')
    session = pi.open_session(path)
    assert outline(session) == ["h: Count.", "a: Looking. +c1", "r: -c1", "h: And?"]
    assert session.damage == (
        "2 torn fragments (line 4, 7): in the original only.",
        "Records glued into one line were parted (line 5).",
        "JSON that is no record was passed over (line 2).",
    )
    again, _ = cut(path, at="end")
    assert not again.damage and outline(again)[:2] == ["h: Count.", "a: Looking."]


def test_bytes_that_are_no_text_are_read_as_the_client_reads_them(writer: Writer, tmp_path: Path):
    writer.human("A caf\u00e9.")
    writer.step("c1")
    path = writer.write(tmp_path)
    path.write_bytes(path.read_bytes().replace("\u00e9".encode(), b"\xe9"))
    session = pi.open_session(path)
    assert outline(session)[0] == "h: A caf\ufffd." and "U+FFFD" in session.damage[0]
    again, _ = cut(path, at="end")
    assert outline(again)[0] == "h: A caf\ufffd."


def test_a_line_that_hangs_off_nothing_begins_there(writer: Writer, tmp_path: Path):
    writer.human("Lost.")
    writer.leaf = "ffffffff"
    writer.human("Found.")
    session = opened(writer, tmp_path)
    assert outline(session) == ["h: Found."] and "ffffffff" in session.damage[0]


def test_links_in_a_ring_end(writer: Writer, tmp_path: Path):
    writer.leaf = "00000002"
    writer.human("One.")
    writer.human("Two.")
    assert outline(opened(writer, tmp_path)) == ["h: One.", "h: Two."]


@pytest.mark.parametrize(
    ("data", "says"),
    (
        (b"", "is empty"),
        (b"\n\n  \n", "only empty lines"),
        (b"not json\n", "line 1 is no record (not JSON"),
        (b'{"type":"mess', "line 1 is no record"),
        (b"\0\1\2\n", "binary file"),
        (b"[1,2]\n", "no record in it (line 1)"),
        (b'{"type":"message","id":"1"}\n', "no header"),
        (b'{"type":"session","id":"1"}\n', "no conversation"),
        (b'{"type":"session","version":3,"id":"1"}\n' + b'{"a":' * 10_000 + b"1" + b"}" * 10_000, "no conversation"),
        (b"[" * 10_000 + b"]" * 10_000, "nested too deeply"),
    ),
)
def test_a_file_without_a_session_is_refused_in_one_line(tmp_path: Path, data: bytes, says: str):
    path = tmp_path / "s.jsonl"
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"s\.jsonl") as refused:
        pi.open_session(path)
    assert says in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize("depth", range(100, 1_000, 30))
def test_an_entry_nested_nearly_too_deeply_is_no_traceback(writer: Writer, tmp_path: Path, depth: int):
    writer.human("Count.")
    writer.step("c1")
    path = writer.write(tmp_path)
    deep = b'{"type":"message","id":"d","parentId":"%s","timestamp":"","message":{"role":"assistant","content":[' % (
        str(writer.leaf).encode()
    )
    deep += b'{"type":"toolCall","id":"x","name":"t","arguments":{"a":' + b"[" * depth + b"]" * depth + b"}}]}}\n"
    path.write_bytes(path.read_bytes() + deep)
    try:
        cut(path, at="end")
    except CutlineError as error:
        assert "\n" not in str(error)


def test_no_file_and_a_directory_are_refused(tmp_path: Path):
    with pytest.raises(InputError, match="no such file"):
        pi.open_session(tmp_path / "no.jsonl")
    with pytest.raises(InputError, match="is a directory"):
        pi.open_session(tmp_path)


def test_a_header_that_is_not_first_is_read_but_not_copied(tmp_path: Path):
    writer = Writer()
    writer.human("Count.")
    writer.step("c1")
    path = writer.write(tmp_path)
    head, rest = path.read_bytes().split(b"\n", 1)
    path.write_bytes(rest + head + b"\n")
    session = pi.open_session(path)
    assert "refuses" in session.sealed
    with pytest.raises(InputError, match="header"):
        execute(prospect(session, at="end"))


# ----------------------------------------------------------------------------------------------- finding


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("PI_CODING_AGENT_DIR", "PI_CODING_AGENT_SESSION_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home" / ".pi" / "agent"


def put(writer: Writer, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return writer.write(folder)


def test_sessions_are_found_by_their_directory(home: Path, writer: Writer, tmp_path: Path):
    assert folder_name("/home/me/my.app/c:d") == "--home-me-my.app-c-d--"
    cwd = tmp_path / "my.app"
    cwd.mkdir()
    writer.human("Count, please.\nAll of it.")
    path = put(writer, home / "sessions" / folder_name(str(cwd)))
    put(WHOLE, home / "sessions" / "--elsewhere--")
    (path.parent / ".hidden.jsonl").write_text("x")
    (path.parent / "empty.jsonl").touch()
    (found,) = pi.sessions(cwd)
    assert (found.path, found.id, found.folder, found.talks) == (path, ID, "/p", True)
    assert found.title == "Count, please. All of it." == pi.open_session(path).title
    assert len(pi.sessions()) == 2 and pi.places() == [home / "sessions"]


def test_the_client_s_own_variables_and_setting_say_where(
    home: Path, writer: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    writer.human("Count.")
    here = Writer(cwd=str(tmp_path))
    here.human("Here.")
    put(writer, tmp_path / "own" / "sessions" / "--p--")
    monkeypatch.setenv("PI_CODING_AGENT_DIR", str(tmp_path / "own"))
    assert [found.title for found in pi.sessions(Path("/p"))] == ["Count."]
    flat = put(here, tmp_path / "flat")
    (tmp_path / "own" / "settings.json").write_text(json.dumps({"sessionDir": str(flat.parent)}))
    assert [found.path for found in pi.sessions(tmp_path)] == [flat] and pi.sessions(Path("/p")) == []
    monkeypatch.setenv("PI_CODING_AGENT_SESSION_DIR", str(tmp_path / "none"))
    assert pi.sessions() == [] and pi.places() == [tmp_path / "none"]


def test_a_name_comes_before_the_first_words_and_can_be_taken_back(home: Path, writer: Writer):
    writer.human("Count.")
    writer.add("session_info", name="  The\tcount ")
    path = put(writer, home / "sessions" / "--p--")
    assert pi.sessions()[0].title == "The count" == pi.open_session(path).title
    writer.add("session_info", name="")
    path = put(writer, home / "sessions" / "--p--")
    assert pi.sessions()[0].title == "Count." == pi.open_session(path).title


def test_a_path_and_an_id_open_a_session_of_pi(home: Path, writer: Writer, tmp_path: Path):
    writer.human("Count.")
    path = put(writer, home / "sessions" / "--p--")
    assert clients.resolve(str(path), tmp_path).client == "pi"
    assert clients.resolve(ID[:13], tmp_path).path == path
    assert pi.owns(path, b'\n{"torn\n' + path.read_bytes()) and not pi.owns(path, b'{"type":"user"}\n')
    assert pi.resume(ID) == ["pi", "--session", ID]


# ------------------------------------------------------------------------------------------------ copies


def test_a_copy_at_a_checkpoint(writer: Writer, tmp_path: Path):
    first = writer.human("Count.")
    writer.agent(thinking("Hm.", "sig"), text("I count."), call("c1"), call("c2"))
    writer.result("c1", "40", details={"diff": "secret of 40"})
    writer.result("c2", "41")
    alone = writer.agent(call("c3"))
    last = writer.result("c3", "42")
    writer.checkpoint()
    writer.step("c4", "On.", "43")
    path = writer.write(tmp_path)
    before = path.read_bytes()
    path.chmod(0o644)
    old = os.umask(0)
    try:
        copy, entries = cut(path)
    finally:
        os.umask(old)
    assert path.read_bytes() == before and stat.S_IMODE(copy.path.stat().st_mode) == 0o600
    assert outline(copy) == ["h: Count.", "a: I count.", "a: A note. +note", "r: -note", "a: On. +c4", "r: -c4"]
    header, known = entries[0], by_id(entries)
    assert header["id"] == copy.id and header["parentSession"] == str(path) and header["cwd"] == "/p"
    assert copy.path.name.endswith(f"_{copy.id}.jsonl") and copy.path.parent == path.parent
    assert alone not in known and last not in known
    assert known["00000007"]["parentId"] == "00000002" and known["00000002"]["parentId"] == first
    assert "secret of 40" not in json.dumps(entries)
    notice = known["00000008"]["message"]["content"]
    assert notice[0] == text("checkpoint stored") and notice[1]["text"].startswith("[cutline]")
    assert known["00000008"]["parentId"] == "00000007"
    # From the checkpoint on every byte is as it was, but for links and the notice.
    assert path.read_bytes().split(b"\n")[-2] in copy.path.read_bytes().split(b"\n")
    named, edit = entries[-2:]
    assert (named["type"], named["name"]) == ("session_info", "Count. (cut)") and copy.title == "Count. (cut)"
    # An edit of nothing that is sent: behind it the client counts its context anew.
    assert (edit["type"], edit["targetId"], edit["replacement"]) == ("context_edit", named["id"], None)
    assert edit["parentId"] == named["id"] and named["parentId"] == "0000000a"


@pytest.mark.parametrize("version", (None, 3))
def test_a_copy_without_a_checkpoint_holds_the_notice_in_an_extension_s_entry(tmp_path: Path, version: int | None):
    writer = Writer(version)
    writer.human("Count.")
    writer.step("c1")
    writer.human("And?")
    writer.step("c2")
    path = writer.write(tmp_path)
    copy, entries = cut(path, at="last")
    number = next(number for number, entry in enumerate(entries) if entry["type"] == "custom_message")
    assert entries[number]["customType"] == "cutline" and entries[number]["content"].startswith("[cutline]")
    assert copy.history.origins[2] == "harness"
    told = outline(copy)
    assert (told[:2], told[3:]) == (["h: Count.", "a: Looking."], ["h: And?", "a: Looking. +c2", "r: -c2"])
    if version:
        assert entries[number + 1]["parentId"] == entries[number]["id"]
    at_end, _ = cut(path, at="end")
    assert [line[:12] for line in outline(at_end)] == [
        "h: Count.",
        "a: Looking.",
        "h: And?",
        "a: Looking.",
        "h: [cutline]",
    ]


def test_a_compaction_keeps_what_is_left_of_what_it_kept(tmp_path: Path):
    for version in (None, 3):
        writer = Writer(version)
        writer.human("One.")
        writer.agent(call("c0"))
        kept = writer.result("c0", "seen")  # a compaction never keeps a result first, but a link may lead anywhere
        writer.human("Two.")
        writer.step("c1")
        first = {"firstKeptEntryId": kept} if version else {"firstKeptEntryIndex": 3}
        writer.add("compaction", summary="One was done.", **first)
        writer.human("Three.")
        writer.step("c2")
        copy, _ = cut(writer.write(tmp_path), at="end")
        assert outline(copy)[:-1] == ["s: One was done.", "h: Two.", "a: Looking.", "h: Three.", "a: Looking."]


def test_links_and_bookmarks_lead_past_what_left(writer: Writer, tmp_path: Path):
    fork = writer.human("Count.")
    gone = writer.step("c1")
    writer.add("label", targetId=gone, label="the human's bookmark")
    writer.human("Wrong.")
    writer.leaf = gone
    writer.add("branch_summary", fromId=gone, summary="It went wrong.")
    writer.step("c2")
    copy, entries = cut(writer.write(tmp_path), at="end")
    known = by_id(entries)
    assert fork in known and gone not in known
    label = next(entry for entry in entries if entry["type"] == "label")
    assert (label["targetId"], label["parentId"], label["label"]) == ("00000002", "00000002", "the human's bookmark")
    summary = next(entry for entry in entries if entry["type"] == "branch_summary")
    assert summary["fromId"] == "00000002"
    assert any("Wrong." in json.dumps(entry) for entry in entries), "a branch that was left stays"
    assert outline(copy)[:3] == ["h: Count.", "a: Looking.", "s: It went wrong."]


def test_what_repeats_a_result_or_a_call_that_left_leaves_with_it(writer: Writer, tmp_path: Path):
    writer.human("Count.")
    made = writer.agent(text("Looking."), call("c1"))
    result = writer.result("c1", "first telling")
    writer.add("context_edit", targetId=result, replacement={"content": [text("second telling")]})
    writer.leaf = made
    writer.result("c1", "third telling")  # on the branch that is live
    copy, entries = cut(writer.write(tmp_path), at="end")
    assert "telling" not in json.dumps(entries).split("[cutline]")[0]
    assert outline(copy)[:2] == ["h: Count.", "a: Looking."]


def test_an_edited_message_is_cut_where_the_edit_stands(writer: Writer, tmp_path: Path):
    writer.human("Count.")
    made = writer.agent(text("Old words."), call("c1"))
    writer.result("c1", "seen")
    writer.add("context_edit", targetId=made, replacement={"content": [text("New words."), call("c1")]})
    copy, entries = cut(writer.write(tmp_path), at="end")
    assert outline(copy)[:2] == ["h: Count.", "a: New words."]
    assert next(entry for entry in entries if entry["type"] == "context_edit")["replacement"] == {
        "content": [text("New words.")]
    }


def test_of_an_entry_that_was_written_twice_the_earlier_does_not_come_back(writer: Writer, tmp_path: Path):
    writer.human("Count.")
    writer.step("c1")
    writer.entries.insert(2, writer.entries[2])
    _, entries = cut(writer.write(tmp_path), at="end")
    assert "seen" not in json.dumps(entries).split("[cutline]")[0]


def test_reasoning_that_left_takes_the_ids_along_that_ask_for_it(writer: Writer, tmp_path: Path):
    """OpenAI's Responses refuse an item whose reasoning is missing; the link is the item's id."""
    signed = json.dumps({"v": 1, "id": "msg_1", "phase": "commentary"}, separators=(",", ":"))
    item = json.dumps({"type": "reasoning", "id": "rs_1", "encrypted_content": "gAAA"})
    known = {"api": "openai-responses", "model": "gpt-5.4"}
    writer.human("Count.")
    writer.agent(thinking("", item), text("I count.", textSignature=signed), call("call_1|fc_1"), **known)
    writer.result("call_1|fc_1", "40")
    note = call("call_2|fc_2", CHECKPOINT, **DOCUMENT)
    writer.agent(thinking("", item), text("A note.", textSignature="msg_2"), note, **known)
    writer.result("call_2|fc_2", "checkpoint stored")
    writer.agent(text("Done.", textSignature="msg_3"), **known)
    copy, entries = cut(writer.write(tmp_path))
    known_ = by_id(entries)
    assert known_["00000002"]["message"]["content"] == [text("I count.", textSignature=signed.replace("msg_1", ""))]
    assert "rs_1" not in json.dumps(entries)
    words, made = known_["00000004"]["message"]["content"]
    assert words == text("A note.", textSignature="") and made["id"] == "call_2"
    assert known_["00000005"]["message"]["toolCallId"] == "call_2"
    assert known_["00000006"]["message"]["content"] == [text("Done.", textSignature="msg_3")], "it had no reasoning"
    assert outline(copy)[-3:] == ["a: A note. +call_2", "r: -call_2", "a: Done."]


def test_words_that_were_shown_stay_though_they_stand_in_reasoning(writer: Writer, tmp_path: Path):
    """The newest Claude models return what they say between calls so; the signature tells it from reasoning."""
    inner = b"\x42\x09narration"
    middle = b"\x0a" + bytes([len(inner)]) + inner
    signature = base64.b64encode(b"\x12" + bytes([len(middle)]) + middle).decode()
    writer.human("Count.")
    known = {"model": "claude-opus-5-5"}
    writer.agent(
        thinking("Only a thought.", "c2lnbmVk"), thinking("The cause is that.", signature), call("c1"), **known
    )
    writer.result("c1", "seen")
    writer.agent(text("Done."), **known)
    copy, entries = cut(writer.write(tmp_path), at="end")
    assert outline(copy)[:3] == ["h: Count.", "a: The cause is that.", "a: Done."]
    assert by_id(entries)["00000002"]["message"]["content"] == [text("The cause is that.")]


def test_a_copy_is_cut_again_and_again(writer: Writer, tmp_path: Path):
    writer.human("Count.")
    writer.step("c1")
    writer.checkpoint("n1")
    writer.step("c2")
    writer.checkpoint("n2")
    writer.step("c3")
    path = writer.write(tmp_path)
    first, _ = cut(path)
    second, entries = cut(first.path, at="end")
    assert [line for line in outline(second) if "+" in line] == ["a: A note. +n1", "a: A note. +n2"]
    assert second.title == "Count. (cut)" and [e["type"] for e in entries].count("session_info") == 2
    assert entries[0]["parentSession"] == str(first.path)


def test_a_session_that_grows_meanwhile_is_copied_as_it_was(writer: Writer, tmp_path: Path):
    writer.human("Count.")
    writer.step("c1")
    path = writer.write(tmp_path)
    wanted = prospect(pi.open_session(path), at="end")
    with path.open("a") as handle:
        handle.write(json.dumps({"type": "message", "id": "late", "parentId": writer.leaf, "message": {}}) + "\n")
    copy, _ = execute(wanted)
    assert copy.missed > 50 and b"late" not in copy.path.read_bytes()


def test_a_full_disk_leaves_nothing_behind(writer: Writer, tmp_path: Path):
    writer.human("Count.")
    writer.step("c1", "Looking. " * 2_000)
    path = writer.write(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", "from cutline.cli import main; main()", "cut", str(path), "--at", "end", "--force"],
        env={**os.environ, "HOME": str(tmp_path), "NO_COLOR": "1"},
        capture_output=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, 2_000)),
    )
    told = done.stderr.decode()
    assert done.returncode == 2 and "can't be written" in told and told.count("\n") == 1
    assert list(tmp_path.iterdir()) == [path]


def test_the_commands_take_a_session_of_pi(home: Path, tmp_path: Path):
    cwd = tmp_path / "project"
    cwd.mkdir()
    writer = Writer(cwd=str(cwd))
    writer.human("Count.")
    writer.step("c1", "Looking.", "the needle is 4711\n" * 400)
    writer.human("And?")
    writer.agent(text("Done."))
    put(writer, home / "sessions" / folder_name(str(cwd)))
    known = {**os.environ, "HOME": str(home.parents[1]), "NO_COLOR": "1", "CLAUDE_CONFIG_DIR": str(tmp_path / "none")}

    def run(*arguments: str) -> str:
        done = commands.run(*arguments, cwd=cwd, env=known)
        assert done.returncode == 0, done.stderr
        return done.stdout.decode()

    assert "Count." in run("ls")
    assert ID in run("ls", "--json")
    assert "Count." in run()
    assert "5 messages" in run("show")
    copy = json.loads(run("cut", "--force", "--json"))["copy"]
    assert Path(copy["path"]).exists()
    assert "needle is 4711" in run("recall", address("c1", "bash", b'{"command":"run c1"}'))


@pytest.mark.slow
@pytest.mark.slow
def test_a_large_session_is_read_in_bounded_memory(tmp_path: Path):
    path = tmp_path / "large.jsonl"
    writer = Writer()
    writer.human("Count.")
    writer.step("c1", "Looking.", "line \u00e9 of output\n" * 1_000)
    lines = [json.dumps(entry, ensure_ascii=False).encode() + b"\n" for entry in writer.entries[1:]]
    with path.open("wb") as handle:
        handle.write(json.dumps(writer.header).encode() + b"\n" + json.dumps(writer.entries[0]).encode() + b"\n")
        number, before = 2, b"00000001"
        while handle.tell() < 100_000_000:
            for line, own in zip(lines, (b"00000002", b"00000003"), strict=True):
                new = b"%08x" % number
                parent = b'"parentId": "%s"' % (b"00000001" if own == b"00000002" else b"00000002")
                line = line.replace(parent, b'"parentId": "%s"' % before).replace(
                    b'"id": "%s"' % own, b'"id": "%s"' % new
                )
                handle.write(line.replace(b'"c1"', b'"c%d"' % (number // 2)))
                number, before = number + 1, new
    code = (
        "import resource, sys; from cutline.sessions import pi; s = pi.open_session(sys.argv[1]); "
        "print(len(s.history.places), int(open('/proc/self/status').read().split('VmHWM:')[1].split()[0]))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    messages, kilobytes = map(int, done.stdout.split())
    assert messages == number - 1 and kilobytes < 250_000
