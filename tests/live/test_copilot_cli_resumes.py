"""A cut copy in the real GitHub Copilot CLI: it resumes, and the next request on the wire is the cut history."""

import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from conftest import SHARED
from cutline.sessions import copilot_cli as client
from cutline.sessions.cutting import execute, prospect
from live.chat import Answer, Message, Upstream
from live.copilot_cli import Copilot
from live.copilot_cli import client as installed

pytestmark = pytest.mark.slow

CUTLINE = (sys.executable, "-c", "from cutline.cli import main; main()")
CHECKPOINT = "cutline-micro_handoff"
DOCUMENT = {"done": "Counted to 40 in 3 ms.", "open": "the sum", "went_wrong": "nothing"}


def bash(id_: str, command: str) -> tuple[str, str, dict[str, Any]]:
    return id_, "bash", {"command": command, "description": "run it"}


WORK = (
    Answer(
        "I count and I look: «seq» first — ünïcode \u2028 and \\u0041.",
        [bash("c_count", "seq 1 40"), bash("c_look", "echo looked")],
        "Two things at once.",
    ),
    Answer("It counts to 40.", [bash("c_fails", "seq 41 99; exit 3")]),
    Answer("A note before I go on.", [("c_note", CHECKPOINT, DOCUMENT)], "Time for a note."),
    Answer("Now the sum.", [bash("c_sum", "echo 820")]),
    Answer("The sum is 820."),
)


@pytest.fixture
def copilot(tmp_path: Path) -> Copilot:
    return installed(tmp_path / "home", tmp_path / "project")


def write(copilot: Copilot, script: Sequence[Answer], *prompts: str) -> Path:
    """A session that the client writes itself."""
    with Upstream(script) as upstream:
        for number, prompt in enumerate(prompts):
            outcome = copilot.run(upstream, *(["--continue"] if number else []), "-p", prompt)
            assert outcome.code == 0, outcome
    assert upstream.unused == 0 and not upstream.faults
    (path,) = copilot.sessions
    return path


def cut(copilot: Copilot, *arguments: str) -> str:
    """Cut a session and give the id of its copy."""
    done = subprocess.run(
        [*CUTLINE, "cut", *arguments, "--force", "--json"],
        cwd=copilot.cwd,
        env={**os.environ, "HOME": str(copilot.home), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: str = json.loads(done.stdout)["copy"]["id"]
    return found


def resume(copilot: Copilot, id_: str) -> list[Message]:
    """Go on in a session by the command that is given for it, and give the messages that were sent."""
    with Upstream([Answer("Nothing more.")]) as upstream:
        outcome = copilot.run(upstream, *client.resume(id_)[1:], "-p", "And now?")
    assert outcome.code == 0 and "Nothing more." in outcome.stdout, outcome
    assert len(upstream.requests) == 1, "one request, and none that summarises"
    assert not upstream.faults
    return [message for message in upstream.requests[0]["messages"] if message["role"] != "system"]


_WRAPPED = re.compile(r"<(current_datetime|system_reminder|reminder)>.*?</\1>", re.DOTALL)


def bare(words: str) -> str:
    return _WRAPPED.sub("", words).strip("\n")


def heard(messages: list[Message]) -> list[tuple[str, str]]:
    """(role, words) and (role, call's id) of each message, in order, without what the client wraps around words."""
    found: list[tuple[str, str]] = []
    for message in messages:
        if message["role"] == "tool":
            found.append(("tool", message["tool_call_id"]))
            continue
        content = message.get("content") or ""
        words = content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
        words = bare(words) if message["role"] == "user" else words
        found += [(message["role"], words)] if words else []
        found += [("call", call["id"]) for call in message.get("tool_calls") or ()]
    return found


def test_a_copy_cut_at_a_checkpoint_resumes_with_the_cut_history(copilot: Copilot) -> None:
    path = write(copilot, [*WORK, Answer("You are welcome.")], "Count and sum.", "Thanks.")
    before = path.read_bytes()
    sent = resume(copilot, cut(copilot, path.parent.name))
    assert heard(sent) == [
        ("user", "Count and sum."),
        ("assistant", "I count and I look: «seq» first — ünïcode \u2028 and \\u0041."),
        ("assistant", "It counts to 40."),
        ("assistant", "A note before I go on."),
        ("call", "c_note"),
        ("tool", "c_note"),
        ("assistant", "Now the sum."),
        ("call", "c_sum"),
        ("tool", "c_sum"),
        ("assistant", "The sum is 820."),
        ("user", "Thanks."),
        ("assistant", "You are welcome."),
        ("user", "And now?"),
    ]
    note = next(message for message in sent if message.get("tool_call_id") == "c_note")
    assert note["content"].startswith("checkpoint stored") and "[cutline]" in note["content"]
    assert "77\\n78" not in json.dumps(sent), "no result comes back by another way"
    assert path.read_bytes() == before, "going on in the copy leaves the original alone"
    copy = next(file for file in copilot.sessions if file != path)
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600 and stat.S_IMODE(copy.parent.stat().st_mode) == 0o700
    assert "name: " in (copy.parent / "workspace.yaml").read_text() and client.open_session(copy).title.endswith(
        "(cut)"
    )

    whole = resume(copilot, path.parent.name)
    assert {id_ for kind, id_ in heard(whole) if kind == "call"} == {"c_count", "c_look", "c_fails", "c_note", "c_sum"}
    assert "[cutline]" not in json.dumps(whole)


@pytest.mark.parametrize("at", ("last", "end"))
def test_a_cut_without_a_checkpoint_says_so_in_the_system_s_name(copilot: Copilot, at: str) -> None:
    script = [
        Answer("I count.", [bash("c1", "seq 1 40")]),
        Answer("It counts to 40."),
        Answer("Once more.", [bash("c2", "seq 41 99")]),
        Answer("And to 99."),
    ]
    path = write(copilot, script, "Count.", "Go on.")
    id_ = cut(copilot, str(path), "--at", at)
    sent = resume(copilot, id_)
    told = [entry for entry in heard(sent) if "[cutline]" in entry[1]]
    assert [role for role, _ in told] == ["user"]
    assert [entry for entry in heard(sent) if entry not in told] == [
        ("user", "Count."),
        ("assistant", "I count."),
        ("assistant", "It counts to 40."),
        ("user", "Go on."),
        ("assistant", "Once more."),
        *([("call", "c2"), ("tool", "c2")] if at == "last" else []),
        ("assistant", "And to 99."),
        ("user", "And now?"),
    ]
    lines = (path.parent.parent / id_ / "events.jsonl").read_bytes().split(b"\n")
    marked = [json.loads(line) for line in lines if b"[cutline]" in line]
    assert [event["type"] for event in marked] == ["system.notification"]


def test_a_copy_that_went_on_is_cut_again(copilot: Copilot) -> None:
    path = write(copilot, WORK, "Count and sum.")
    first = cut(copilot, str(path))
    more = [
        Answer("Once more.", [bash("d1", "seq 41 99")]),
        Answer("Noted.", [("d2", CHECKPOINT, DOCUMENT)]),
        Answer("Done."),
    ]
    with Upstream(more) as upstream:
        outcome = copilot.run(upstream, *client.resume(first)[1:], "-p", "Go on.")
    assert outcome.code == 0 and not upstream.faults
    sent = resume(copilot, cut(copilot, first))
    assert [id_ for kind, id_ in heard(sent) if kind == "call"] == ["c_note", "d2"]
    assert [words for role, words in heard(sent) if role == "assistant"][-3:] == ["Once more.", "Noted.", "Done."]
    assert sum("[cutline]" in str(message.get("content")) for message in sent) == 2


def test_resume_starts_the_client_on_the_copy(copilot: Copilot) -> None:
    path = write(copilot, WORK, "Count and sum.")
    with Upstream([Answer("Nothing more.")]) as upstream:
        known = {**copilot.variables(upstream), "NO_COLOR": "1"}
        known["PATH"] = f"{copilot.binary.parent}{os.pathsep}{known['PATH']}"
        done = subprocess.run(
            [*CUTLINE, "resume", str(path), "--force", "--", "-p", "And now?", "--allow-all-tools"],
            cwd=copilot.cwd,
            env=known,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert "Nothing more." in done.stdout and "c_count" not in json.dumps(upstream.requests[0]["messages"])


def test_a_session_that_the_client_compacted_itself(copilot: Copilot) -> None:
    """Its summary stays, and so does every word that a person typed; the client's log of it does not."""
    path = write(copilot, [*WORK[:2], Answer("Done.")], "Count.")
    with Upstream(lambda _: Answer("Counted so far.")) as upstream:
        assert copilot.run(upstream, "--continue", "-p", "/compact").code == 0
    with Upstream([Answer("Once more.", [bash("c2", "seq 41 99")]), Answer("The end.")]) as upstream:
        assert copilot.run(upstream, "--continue", "-p", "Go on.").code == 0
    session = client.open_session(path)
    assert session.history.compacted and session.history.origins[0] == "summary"
    id_ = cut(copilot, str(path), "--at", "end")
    assert b"model.messages_snapshot" in path.read_bytes()
    assert b"model.messages_snapshot" not in (path.parent.parent / id_ / "events.jsonl").read_bytes()
    sent = resume(copilot, id_)
    words = [text for role, text in heard(sent) if role != "call"]
    assert "Counted so far." in words[0] and "Count." in words[0]
    assert [entry for entry in heard(sent)[1:] if "[cutline]" not in entry[1]] == [
        ("user", "Go on."),
        ("assistant", "Once more."),
        ("assistant", "The end."),
        ("user", "And now?"),
    ]


RECORDED = sorted((SHARED / "data" / "sessions" / "copilot-cli").glob("*.jsonl"))


@pytest.mark.skipif(not RECORDED, reason="../shared/data is not on this machine")
@pytest.mark.parametrize("whole", (True, False))
@pytest.mark.parametrize("source", RECORDED, ids=lambda path: path.stem)
def test_recorded_sessions_resume_as_they_were_rebuilt(copilot: Copilot, source: Path, whole: bool) -> None:
    folder = copilot.state / "0a0a0a0a-0000-4000-8000-000000000001"
    folder.mkdir(parents=True)
    path = folder / "events.jsonl"
    cwd = client.open_session(source).cwd
    path.write_bytes(source.read_bytes().replace(cwd.encode(), str(copilot.cwd).encode()))
    written = path if whole else execute(prospect(client.open_session(path), at="end"))[0].path
    found = client.open_session(written).history
    sent = resume(copilot, written.parent.name)
    expected: list[tuple[str, str]] = []
    for message in json.loads(found.body)["messages"]:
        for block in message["content"]:
            if block["type"] == "text":
                expected.append((message["role"], block["text"]))
            elif block["type"] == "tool_use":
                expected.append(("call", block["id"]))
            elif block["type"] == "tool_result":
                expected.append(("tool", block["tool_use_id"]))
    told = heard(sent)
    assert told.pop()[1].endswith("And now?")
    order = {id_: number for number, (kind, id_) in enumerate(told) if kind == "tool"}
    assert order.keys() == {id_ for kind, id_ in expected if kind == "tool"}
    # Results stand in the order of the calls on the wire, in the file in that of their ends.
    assert [entry[0] for entry in told if entry[0] != "tool"] == [entry[0] for entry in expected if entry[0] != "tool"]
    for (role, words), (_, wanted) in zip(
        (entry for entry in told if entry[0] != "tool"),
        (entry for entry in expected if entry[0] != "tool"),
        strict=True,
    ):
        assert words == wanted or (role == "user" and bare(wanted) in words)
