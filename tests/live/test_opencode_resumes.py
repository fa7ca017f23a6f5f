"""A cut copy in the real opencode: it resumes, and the next request on the wire is the cut history."""

import json
import os
import sqlite3
import stat
import subprocess
import sys
import urllib.request
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from conftest import SHARED
from cutline.errors import NothingToCut
from cutline.sessions import opencode as client
from cutline.sessions.cutting import execute, prospect
from live.chat import FULL, MODEL, Answer, Message
from live.opencode import FILES_VERSION, Opencode, provider
from live.opencode import client as installed

pytestmark = pytest.mark.slow

CUTLINE = (sys.executable, "-c", "from cutline.cli import main; main()")
CHECKPOINT = "cutline_micro_handoff"
DOCUMENT = {"done": "Counted to 40 in 3 ms.", "open": "the sum", "went_wrong": "nothing"}


def bash(command: str) -> tuple[str, dict[str, str]]:
    return "bash", {"command": command, "description": "a step"}


WORK = (
    Answer(
        "I count and I look: «seq» first — ünïcode \u2028 and \\u0041.",
        [("c_count", *bash("seq 1 40")), ("c_look", *bash("echo looked"))],
        "Two things at once.",
    ),
    Answer("It counts to 40.", [("c_fails", *bash("seq 41 99; exit 3"))]),
    Answer("A note before I go on.", [("c_note", CHECKPOINT, DOCUMENT)], "Time for a note."),
    Answer("Now the sum.", [("c_sum", *bash("echo 820"))], "820 it is."),
    Answer("The sum is 820."),
)
KEPT = [
    ("user", '"Count and sum."'),
    ("assistant", "I count and I look: «seq» first — ünïcode \u2028 and \\u0041."),
    ("assistant", "It counts to 40."),
    ("assistant", "A note before I go on."),
    ("call", "c_note"),
    ("tool", "c_note"),
    ("assistant", "Now the sum."),
    ("call", "c_sum"),
    ("tool", "c_sum"),
    ("assistant", "The sum is 820."),
]


@pytest.fixture
def opencode(tmp_path: Path) -> Opencode:
    return installed(tmp_path / "home", tmp_path / "project")


@pytest.fixture
def older(tmp_path: Path) -> Opencode:
    return installed(tmp_path / "home", tmp_path / "project", FILES_VERSION)


def write(opencode: Opencode, script: Sequence[Answer], *prompts: str) -> str:
    """A session that the client writes; its id."""
    with provider(script) as upstream:
        for number, prompt in enumerate(prompts):
            outcome = opencode.run(upstream, prompt, *(["--continue"] if number else []))
            assert outcome.code == 0, outcome
        assert not upstream.faults
    return newest(opencode)


def newest(opencode: Opencode) -> str:
    found = json.loads(cutline(opencode, "ls", "--json"))
    return str(found["sessions"][0]["id"] if isinstance(found, dict) else found[0]["id"])


def cutline(opencode: Opencode, *arguments: str) -> str:
    done = subprocess.run(
        [*CUTLINE, *arguments],
        cwd=opencode.cwd,
        env={**opencode.variables(), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def cut(opencode: Opencode, session: str, *options: str) -> str:
    """Cut a session as a person does; the copy's id."""
    made = json.loads(cutline(opencode, "cut", session, "--force", "--json", *options))
    assert made["resume"] == client.resume(made["copy"]["id"])
    return str(made["copy"]["id"])


def resume(opencode: Opencode, session: str, prompt: str = "And now?") -> list[Message]:
    """Go on in a session, by the command that is given for it; what is sent, less the system prompt."""
    with provider([Answer("Nothing more.")]) as upstream:
        outcome = opencode.run(upstream, prompt, *client.resume(session)[1:])
    assert outcome.code == 0 and "Nothing more." in outcome.stdout, outcome
    assert len(upstream.requests) == 1 and not upstream.faults
    return [message for message in upstream.requests[0]["messages"] if message["role"] != "system"]


def heard(messages: Sequence[Message]) -> list[tuple[str, str]]:
    """Each message in short: who, and the words or the call."""
    found = []
    for message in messages:
        content = message.get("content") or ""
        text = content if isinstance(content, str) else "".join(item.get("text", "") for item in content)
        if message["role"] == "tool":
            found.append(("tool", message["tool_call_id"]))
            continue
        if text:
            found.append((message["role"], text.rstrip("\n")))
        found += [("call", call["id"]) for call in message.get("tool_calls") or ()]
    return found


def rows(opencode: Opencode, session: str) -> list[tuple[Any, ...]]:
    """Everything that the database holds of a session."""
    found: list[tuple[Any, ...]] = []
    with closing(sqlite3.connect(opencode.data / "opencode.db")) as database:
        for table, column in (("session", "id"), ("message", "session_id"), ("part", "session_id")):
            found += database.execute(f"SELECT * FROM {table} WHERE {column} = ? ORDER BY id", (session,)).fetchall()
    return found


def test_a_copy_resumes_with_the_cut_history(opencode: Opencode) -> None:
    session = write(opencode, WORK, "Count and sum.")
    before = rows(opencode, session)
    copy = cut(opencode, session)
    sent = resume(opencode, copy)
    assert heard(sent) == [*KEPT, ("user", '"And now?"')]
    note = next(message for message in sent if message.get("tool_call_id") == "c_note")
    assert note["content"].startswith("checkpoint stored") and "[cutline]" in note["content"]
    made = next(call for message in sent for call in message.get("tool_calls") or () if call["id"] == "c_note")
    assert json.loads(made["function"]["arguments"]) == DOCUMENT
    assert "77\\n78" not in json.dumps(sent), "no result comes back by another way"
    assert "Two things at once." not in json.dumps(sent)
    assert rows(opencode, session) == before, "going on in the copy leaves the original alone"

    whole = resume(opencode, session)
    assert {id_ for kind, id_ in heard(whole) if kind == "call"} == {"c_count", "c_look", "c_fails", "c_note", "c_sum"}
    assert "[cutline]" not in json.dumps(whole)


@pytest.mark.parametrize("at", ("last", "end"))
def test_a_cut_without_a_checkpoint_says_so_in_a_message_of_the_client_s(opencode: Opencode, at: str) -> None:
    script = [
        Answer("I count.", [("c1", *bash("seq 1 40"))]),
        Answer("It counts to 40."),
        Answer("Once more.", [("c2", *bash("seq 41 99"))]),
        Answer("And to 99."),
    ]
    session = write(opencode, script, "Count.", "Go on.")
    copy = cut(opencode, session, "--at", at)
    sent = resume(opencode, copy)
    told = [entry for entry in heard(sent) if "[cutline]" in entry[1]]
    assert [role for role, _ in told] == ["user"]
    assert [entry for entry in heard(sent) if entry not in told] == [
        ("user", "Count."),
        ("assistant", "I count."),
        ("assistant", "It counts to 40."),
        ("user", '"Go on."'),
        ("assistant", "Once more."),
        *([("call", "c2"), ("tool", "c2")] if at == "last" else []),
        ("assistant", "And to 99."),
        ("user", '"And now?"'),
    ]
    marked = [json.loads(row[-1]) for row in rows(opencode, copy) if "[cutline]" in str(row[-1])]
    assert [part["synthetic"] for part in marked] == [True]


def test_a_copy_that_went_on_is_cut_again(opencode: Opencode) -> None:
    first = cut(opencode, write(opencode, WORK, "Count and sum."))
    more = [
        Answer("Once more.", [("d1", *bash("seq 41 99"))]),
        Answer("Noted.", [("d2", CHECKPOINT, DOCUMENT)]),
        Answer("Done."),
    ]
    with provider(more) as upstream:
        outcome = opencode.run(upstream, "Go on.", *client.resume(first)[1:])
    assert outcome.code == 0 and not upstream.faults
    sent = resume(opencode, cut(opencode, first))
    assert [id_ for kind, id_ in heard(sent) if kind == "call"] == ["c_note", "d2"]
    assert [words for role, words in heard(sent) if role == "assistant"] == [
        *(words for role, words in KEPT if role == "assistant"),
        "Once more.",
        "Noted.",
        "Done.",
    ]
    assert sum("[cutline]" in str(message.get("content")) for message in sent) == 2


def test_the_title_is_marked_and_the_client_lists_the_copy_first(opencode: Opencode) -> None:
    session = write(opencode, WORK, "Count and sum.")
    copy = cut(opencode, session)
    listed = json.loads(opencode.start("session", "list", "--format", "json").stdout)
    assert [(one["id"], one["title"]) for one in listed] == [(copy, "A title (cut)"), (session, "A title")]


def fill(opencode: Opencode, session: str) -> None:
    """Let the session's last answer say that the context is nearly full."""
    with closing(sqlite3.connect(opencode.data / "opencode.db")) as database, database:
        asked = "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created DESC, id DESC LIMIT 1"
        id_, data = database.execute(asked, (session,)).fetchone()
        counted = {"total": FULL, "input": FULL - 20, "output": 20, "reasoning": 0, "cache": {"read": 0, "write": 0}}
        changed = json.dumps({**json.loads(data), "tokens": counted})
        database.execute("UPDATE message SET data = ? WHERE id = ?", (changed, id_))


def test_a_copy_of_a_full_session_is_not_summarised(opencode: Opencode) -> None:
    """The client takes the provider's last count for the context's size; in a copy there is none yet."""
    session = write(opencode, WORK, "Count and sum.")
    fill(opencode, session)
    assert heard(resume(opencode, cut(opencode, session))) == [*KEPT, ("user", '"And now?"')]
    with provider(lambda _: Answer("Go on.")) as upstream:
        opencode.run(upstream, "And now?", *client.resume(session)[1:])
    assert len(upstream.asides) == 1, "the whole session is summed up first"


def test_the_client_s_files_of_older_versions(older: Opencode) -> None:
    session = write(older, WORK, "Count and sum.")
    storage = older.data / "storage"
    before = {path: path.read_bytes() for path in storage.rglob(f"*/{session}*/**/*.json")}
    copy = cut(older, session)
    assert heard(resume(older, copy)) == [*KEPT, ("user", '"And now?"')]
    assert before and all(path.read_bytes() == data for path, data in before.items())
    made = [next(storage.glob(f"session/*/{copy}.json")), *storage.glob(f"message/{copy}/*.json")]
    assert {stat.S_IMODE(path.stat().st_mode) for path in made if "[cutline]" in path.read_text()} <= {0o600}
    assert not list(storage.glob(".cutline*"))


def test_a_copy_of_an_export_is_imported_and_resumes(opencode: Opencode, tmp_path: Path) -> None:
    session = write(opencode, WORK, "Count and sum.")
    export = tmp_path / "export.json"
    export.write_text(opencode.start("export", session).stdout)
    written = execute(prospect(client.open_session(export)))[0]
    assert written.path.parent == tmp_path and stat.S_IMODE(written.path.stat().st_mode) == 0o600
    said = opencode.start("import", str(written.path))
    assert said.code == 0 and written.id in said.stdout, said
    assert heard(resume(opencode, written.id)) == [*KEPT, ("user", '"And now?"')]


def test_resume_starts_the_client_on_the_copy(opencode: Opencode) -> None:
    session = write(opencode, WORK, "Count and sum.")
    commands = opencode.cwd.parent / "bin"
    commands.mkdir()
    (commands / "opencode").symlink_to(opencode.binary)
    with provider([Answer("Nothing more.")]) as upstream:
        opencode.configure(upstream)
        known = {**opencode.variables(), "NO_COLOR": "1"}
        known["PATH"] = f"{commands}{os.pathsep}{known['PATH']}"
        done = subprocess.run(
            [*CUTLINE, "resume", session, "--force", "--", "run", "And now?"],
            cwd=opencode.cwd,
            env=known,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
    assert done.returncode == 0 and "Nothing more." in done.stdout, done
    assert heard(upstream.requests[0]["messages"])[1:] == [*KEPT, ("user", '"And now?"')]


def test_a_client_that_has_the_database_open_goes_on_in_the_copy(opencode: Opencode) -> None:
    session = write(opencode, WORK, "Count and sum.")
    with provider([Answer("Nothing more.")]) as upstream, opencode.serve(upstream) as url:
        where = f"?directory={opencode.cwd}"

        def ask(path: str, body: dict[str, Any] | None = None) -> Any:
            data = None if body is None else json.dumps(body).encode()
            request = urllib.request.Request(url + path + where, data, {"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)

        assert [one["id"] for one in ask("/session")] == [session]
        copy = cut(opencode, session)
        assert [one["id"] for one in ask("/session")] == [copy, session]
        model = {"providerID": "scripted", "modelID": MODEL}
        ask(f"/session/{copy}/message", {"parts": [{"type": "text", "text": "And now?"}], "model": model})
    assert heard(upstream.requests[0]["messages"])[1:] == [*KEPT, ("user", "And now?")]


def test_a_session_that_the_client_compacted_itself(opencode: Opencode) -> None:
    """Its summary stays, and what it keeps behind that is cut like anything else."""
    script = [Answer(f"Step {number}.", [(f"c{number}", *bash(f"seq {number} 9000"))]) for number in range(6)]
    opencode.settings["compaction"] = {"auto": True, "preserve_recent_tokens": 12_000}
    with provider([*script, Answer("The end.")]) as upstream:
        upstream.full = len(script) + 1
        upstream.aside = "Counted so far."
        assert opencode.run(upstream, "Count.").code == 0
        assert opencode.run(upstream, "And now?", "--continue").code == 0
    session = newest(opencode)
    opened = client.open_session(opencode.data / "opencode.db", session)
    assert opened.history.compacted and "summary" in opened.history.origins
    whole = heard(resume(opencode, session))
    kept = [entry for entry in whole if entry[0] in ("user", "assistant")]
    sent = heard(resume(opencode, cut(opencode, session, "--at", "end")))
    assert [entry for entry in sent if entry[0] in ("call", "tool")] == []
    assert [entry for entry in sent if "[cutline]" not in entry[1]] == [
        *kept,
        ("assistant", "Nothing more."),
        ("user", '"And now?"'),
    ]


RECORDED = sorted((SHARED / "data" / "sessions" / "opencode").glob("*"))


@pytest.mark.skipif(not RECORDED, reason="../shared/data is not on this machine")
@pytest.mark.parametrize("source", RECORDED, ids=lambda path: path.stem)
def test_recorded_sessions_resume_as_they_were_rebuilt(opencode: Opencode, tmp_path: Path, source: Path) -> None:
    path = tmp_path / source.name
    path.write_bytes(source.read_bytes())
    session = client.open_session(path)
    try:
        written = execute(prospect(session, at="end"))[0]
    except NothingToCut:
        pytest.skip("nothing of it can be cut")
    copy = client.open_session(written.path)
    with provider([Answer("Nothing more.")]) as upstream:
        opencode.configure(upstream)
        said = opencode.start("import", str(written.path))
        assert said.code == 0 and written.id in said.stdout, said
        outcome = opencode.run(upstream, "And now?", *client.resume(written.id)[1:])
    assert outcome.code == 0 and "Nothing more." in outcome.stdout, outcome
    assert len(upstream.requests) == 1 and not upstream.faults
    expected = []
    for message in json.loads(copy.history.body)["messages"]:
        for block in message["content"]:
            if block["type"] == "text" and block["text"].strip():
                expected.append((message["role"], block["text"]))
            elif block["type"] == "tool_use":
                expected.append(("call", block["id"]))
            elif block["type"] == "tool_result":
                expected.append(("tool", block["tool_use_id"]))
    told = heard([message for message in upstream.requests[0]["messages"] if message["role"] != "system"])
    # The client reminds of a mode that another agent of the session was in.
    assert told[-1][0] == "user" and told[-1][1].startswith('"And now?"')
    # Texts of one message are put together on this wire.
    assert [entry for entry in told[:-1] if entry[0] in ("call", "tool")] == [
        entry for entry in expected if entry[0] in ("call", "tool")
    ]
    assert "".join("".join(words for _, words in told[:-1]).split()) == "".join(
        "".join(words for _, words in expected).split()
    )
    assert upstream.requests[0]["model"] == MODEL
