"""A cut copy in the real pi: it resumes, and the next request on the wire is the cut history."""

import json
import os
import stat
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from conftest import SHARED
from cutline.errors import NothingToCut
from cutline.sessions import pi as client
from cutline.sessions.cutting import execute, prospect
from live.chat import MODEL, Answer, Message, Upstream
from live.pi import Pi
from live.pi import client as installed
from test_pi_sessions import Writer, call, text

pytestmark = pytest.mark.slow

CUTLINE = (sys.executable, "-c", "from cutline.cli import main; main()")
CHECKPOINT = "mcp__cutline__micro_handoff"
DOCUMENT = {"done": "Counted to 40 in 3 ms.", "open": "the sum", "went_wrong": "nothing"}
WORK = (
    Answer(
        "I count and I look: «seq» first — ünïcode \u2028 and \\u0041.",
        [("c_count", "bash", {"command": "seq 1 40"}), ("c_look", "bash", {"command": "echo looked"})],
        "Two things at once.",
    ),
    Answer("It counts to 40.", [("c_fails", "bash", {"command": "seq 41 99; exit 3"})]),
    Answer("A note before I go on.", [("c_note", CHECKPOINT, DOCUMENT)], "Time for a note."),
    Answer("Now the sum.", [("c_sum", "bash", {"command": "echo 820"})], "820 it is."),
    Answer("The sum is 820."),
)


@pytest.fixture
def pi(tmp_path: Path) -> Pi:
    return installed(tmp_path / "home", tmp_path / "project")


def write(pi: Pi, script: Sequence[Answer], *prompts: str, **options: Any) -> Path:
    """A session that the client writes itself."""
    with Upstream(script) as upstream:
        for number, prompt in enumerate(prompts):
            outcome = pi.run(upstream, prompt, *(["--continue"] if number else []), **options)
            assert outcome.code == 0, outcome
    assert upstream.unused == 0 and not upstream.faults
    (path,) = pi.sessions
    return path


def cutline(pi: Pi, *arguments: str) -> subprocess.CompletedProcess[str]:
    known = {**os.environ, **pi.variables(), "NO_COLOR": "1"}
    return subprocess.run(
        [*CUTLINE, *arguments], cwd=pi.cwd, env=known, capture_output=True, text=True, timeout=100, check=False
    )


def cut(pi: Pi, *arguments: str) -> str:
    """Cut a session and give the id of its copy."""
    done = cutline(pi, "cut", *arguments, "--force", "--json")
    assert done.returncode == 0, done.stderr
    found: str = json.loads(done.stdout)["copy"]["id"]
    return found


def resume(pi: Pi, id_: str, prompt: str = "And now?", **options: Any) -> list[Message]:
    """Go on in a session by the command that is given for it, and give the messages that were sent."""
    with Upstream([Answer("Nothing more.")]) as upstream:
        pi.configure(upstream, **options)
        outcome = pi.start([*pi.command, *client.resume(id_)[1:], "-p", prompt])
    assert (outcome.code, outcome.stdout) == (0, "Nothing more.\n"), outcome
    assert len(upstream.requests) == 1, "one request, and none that summarises"
    assert not upstream.faults
    return [message for message in upstream.requests[0]["messages"] if message["role"] not in ("system", "developer")]


def heard(messages: list[Message]) -> list[tuple[str, str]]:
    """(role, words) and (role, call's id) of each message, in order."""
    found: list[tuple[str, str]] = []
    for message in messages:
        content = message.get("content") or ""
        parts = [content] if isinstance(content, str) else [part.get("text", part["type"]) for part in content]
        if message["role"] == "tool":
            found.append(("tool", message["tool_call_id"]))
            continue
        found += [(message["role"], part) for part in parts if part]
        found += [("call", call["id"]) for call in message.get("tool_calls") or ()]
    return found


def entries(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line.strip()]


def fill(path: Path) -> None:
    """Let the provider have counted nearly a whole window of tokens."""
    known = entries(path)
    for entry in known:
        usage = entry.get("message", {}).get("usage")
        if usage:
            usage.update(input=995_000, totalTokens=995_020)
    path.write_text("".join(json.dumps(entry) + "\n" for entry in known), "utf-8")


def keep(pi: Pi, tokens: int) -> None:
    """Have the client keep so much of a session that it summarises."""
    (pi.agent / "settings.json").write_text(json.dumps({"compaction": {"keepRecentTokens": tokens}}))


def state(path: Path) -> tuple[bytes, int, int]:
    found = path.stat()
    return path.read_bytes(), stat.S_IMODE(found.st_mode), found.st_mtime_ns


def test_a_copy_cut_at_a_checkpoint_resumes_with_the_cut_history(pi: Pi) -> None:
    path = write(pi, [*WORK, Answer("You are welcome.")], "Count and sum.", "Thanks.", thinking=True)
    before = state(path)
    sent = resume(pi, cut(pi, str(path)), thinking=True)
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
    arguments = next(call for message in sent for call in message.get("tool_calls") or () if call["id"] == "c_note")
    assert json.loads(arguments["function"]["arguments"]) == DOCUMENT
    assert "77\\n78" not in json.dumps(sent), "no result comes back by another way"
    assert "Two things at once." not in json.dumps(sent)
    assert state(path) == before, "going on in the copy leaves the original alone"
    copy = next(file for file in pi.sessions if file != path)
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600

    whole = resume(pi, client.open_session(path).id, thinking=True)
    assert {id_ for kind, id_ in heard(whole) if kind == "call"} == {"c_count", "c_look", "c_fails", "c_note", "c_sum"}
    assert "[cutline]" not in json.dumps(whole)


@pytest.mark.parametrize("at", ("last", "end"))
def test_a_cut_without_a_checkpoint_says_so_in_an_extension_s_name(pi: Pi, at: str) -> None:
    script = [
        Answer("I count.", [("c1", "bash", {"command": "seq 1 40"})]),
        Answer("It counts to 40."),
        Answer("Once more.", [("c2", "bash", {"command": "seq 41 99"})]),
        Answer("And to 99."),
    ]
    path = write(pi, script, "Count.", "Go on.")
    sent = resume(pi, cut(pi, str(path), "--at", at))
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
    copy = next(file for file in pi.sessions if file != path)
    marked = [entry for entry in entries(copy) if "[cutline]" in json.dumps(entry)]
    assert [(entry["type"], entry["customType"]) for entry in marked] == [("custom_message", "cutline")]


def test_a_copy_that_went_on_is_cut_again(pi: Pi) -> None:
    path = write(pi, WORK, "Count and sum.")
    first = cut(pi, str(path))
    more = [
        Answer("Once more.", [("d1", "bash", {"command": "seq 41 99"})]),
        Answer("Noted.", [("d2", CHECKPOINT, DOCUMENT)]),
        Answer("Done."),
    ]
    with Upstream(more) as upstream:
        outcome = pi.run(upstream, "Go on.", *client.resume(first)[1:])
    assert outcome.code == 0 and not upstream.faults
    sent = resume(pi, cut(pi, first))
    assert [id_ for kind, id_ in heard(sent) if kind == "call"] == ["c_note", "d2"]
    assert [words for role, words in heard(sent) if role == "assistant"] == [
        WORK[0].text,
        "It counts to 40.",
        "A note before I go on.",
        "Now the sum.",
        "The sum is 820.",
        "Once more.",
        "Noted.",
        "Done.",
    ]
    assert sum("[cutline]" in str(message.get("content")) for message in sent) == 2


def test_a_copy_of_a_full_session_is_not_summarised(pi: Pi) -> None:
    """The client takes the provider's last count for the context's size; in a copy it counts what is there."""
    path = write(pi, WORK, "Count and sum.")
    fill(path)
    keep(pi, 100)
    with Upstream(lambda _: Answer("A summary.")) as upstream:
        pi.run(upstream, "And now?", "--fork", str(path))
    assert len(upstream.requests) > 1, "the whole session is summarised"
    resume(pi, cut(pi, str(path)))


def test_resume_starts_the_client_on_the_copy(pi: Pi) -> None:
    path = write(pi, WORK, "Count and sum.")
    binary = pi.cwd.parent / "bin" / "pi"
    binary.parent.mkdir()
    binary.write_text("#!/bin/sh\nexec " + " ".join(f"'{part}'" for part in pi.command) + ' "$@"\n')
    binary.chmod(0o755)
    with Upstream([Answer("Nothing more.")]) as upstream:
        pi.configure(upstream)
        known = {**pi.variables(), "NO_COLOR": "1"}
        known["PATH"] = f"{binary.parent}{os.pathsep}{known['PATH']}"
        done = subprocess.run(
            [*CUTLINE, "resume", str(path), "--force", "--", "-p", "And now?"],
            cwd=pi.cwd,
            env=known,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "Nothing more.\n"
    assert "c_count" not in json.dumps(upstream.requests[0]["messages"])


def test_a_session_that_the_client_compacted_itself(pi: Pi) -> None:
    """What it keeps in front of its summary is cut like anything else; the summary stays."""
    script = [
        Answer(f"Step {number}.", [(f"c{number}", "bash", {"command": f"seq {number} 30000"})]) for number in range(6)
    ]
    path = write(pi, [*script, Answer("The end.")], "Count.")
    fill(path)
    keep(pi, 6_000)

    def answer(body: dict[str, Any]) -> Answer:
        return Answer("Go on, then." if body.get("tools") else "Counted so far.")

    with Upstream(answer) as upstream:
        assert pi.run(upstream, "And now?", "--continue").code == 0
    types = [entry["type"] for entry in entries(path)]
    assert types.count("compaction") == 1
    session = client.open_session(path)
    assert session.history.compacted and session.history.origins[0] == "summary"
    sent = resume(pi, cut(pi, str(path), "--at", "end"))
    words = [text for role, text in heard(sent) if role != "call"]
    assert "Counted so far." in words[0] and words[-1] == "And now?"
    assert not [kind for kind, _ in heard(sent) if kind == "call"]
    assert [text for role, text in heard(sent) if role == "assistant"][-1] == "Go on, then."
    kept = [text for role, text in heard(sent) if role == "assistant" and text.startswith("Step ")]
    assert kept == [f"Step {number}." for number in range(6 - len(kept), 6)] and 0 < len(kept) < 6


def test_branches_edits_and_what_is_never_sent_are_read_as_the_client_reads_them(pi: Pi) -> None:
    writer = Writer(cwd=str(pi.cwd))
    start = writer.human("Count.")
    left = writer.step("c1", "On a branch that was left.")
    writer.leaf = start
    writer.add("branch_summary", fromId=left, summary="It went wrong.")
    first = writer.step("c2", "Again.", "long output")
    second = writer.human("A word that is taken back.")
    writer.add("context_edit", targetId=first, replacement={"content": [text("(pruned)")]})
    writer.add("context_edit", targetId=second, replacement=None)
    writer.agent(text("Half of an ans"), call("c3"), stopReason="aborted")
    writer.add("custom_message", customType="hint", content="Mind the gap.", display=True)
    writer.message("bashExecution", None, command="ls", output="a b", exitCode=0)
    writer.message("bashExecution", None, command="secret", output="x", exitCode=0, excludeFromContext=True)
    writer.add("label", targetId=start, label="here")
    writer.agent(text("Done."), call("c4"))  # never answered: the client says so itself
    path = pi.agent / "sessions" / "--made--"
    path.mkdir(parents=True)
    path = writer.write(path)
    history = client.open_session(path).history
    with Upstream([Answer("Nothing more.")]) as upstream:
        pi.configure(upstream)
        options = ["--session", str(path), "--provider", "scripted", "--model", MODEL]
        outcome = pi.start([*pi.command, *options, "-p", "And now?"])
    assert (outcome.code, upstream.faults) == (0, [])
    sent = [message for message in upstream.requests[0]["messages"] if message["role"] in ("user", "assistant", "tool")]
    told = [(role, "It went wrong." if "It went wrong." in words else words) for role, words in heard(sent)]
    assert told == [
        ("user", "Count."),
        ("user", "It went wrong."),
        ("assistant", "Again."),
        ("call", "c2"),
        ("tool", "c2"),
        ("user", "Mind the gap."),
        ("user", "Ran `ls`\n```\na b\n```"),
        ("assistant", "Done."),
        ("call", "c4"),
        ("tool", "c4"),
        ("user", "And now?"),
    ]
    assert next(message for message in sent if message.get("tool_call_id") == "c2")["content"] == "(pruned)"
    rebuilt = [block for message in json.loads(history.body)["messages"] for block in message["content"]]
    assert [block.get("text") or block.get("id") or block["tool_use_id"] for block in rebuilt] == [
        *("Count.", "It went wrong.", "Again.", "c2", "c2", "Mind the gap.", "ls", "a b", "Done.", "c4")
    ]


RECORDED = sorted((SHARED / "data" / "sessions" / "pi").glob("*.jsonl"))


@pytest.mark.skipif(not RECORDED, reason="../shared/data is not on this machine")
@pytest.mark.parametrize("source", RECORDED, ids=lambda path: path.stem)
def test_recorded_sessions_resume_as_they_were_rebuilt(pi: Pi, tmp_path: Path, source: Path) -> None:
    folder = pi.agent / "sessions" / "--recorded--"
    folder.mkdir(parents=True)
    # A session is gone on with in its own directory, so it is given one that is there.
    head, rest = source.read_bytes().split(b"\n", 1)
    path = folder / source.name
    path.write_bytes(json.dumps({**json.loads(head), "cwd": str(pi.cwd)}).encode() + b"\n" + rest)
    session = client.open_session(path)
    try:
        written = execute(prospect(session, at="end"))[0].path
    except NothingToCut:
        written = path
    copy = client.open_session(written)
    with Upstream([Answer("Nothing more.")]) as upstream:
        pi.configure(upstream)
        options = ["--session", str(written), "--provider", "scripted", "--model", MODEL]
        outcome = pi.start([*pi.command, *options, "-p", "And now?"])
    assert (outcome.code, outcome.stdout) == (0, "Nothing more.\n"), outcome
    assert len(upstream.requests) == 1 and not upstream.faults
    sent = [message for message in upstream.requests[0]["messages"] if message["role"] in ("user", "assistant", "tool")]
    found, expected = copy.history, list[tuple[str, str]]()
    kinds = [copy.source.entries[places[0][0]].role for places in found.places]
    messages = json.loads(found.body)["messages"]
    for number, (message, kind) in enumerate(zip(messages, kinds, strict=True)):
        for block in message["content"]:
            if kind == "bashExecution":
                # A person's own command and what it printed are one text on the wire.
                if found.origins[number] == "human":
                    printed = messages[number + 1]["content"][0]["text"]
                    expected.append(("user", f"Ran `{block['text']}`\n```\n{printed}\n```"))
            elif block["type"] == "text" and block["text"].strip():
                expected.append((message["role"], block["text"]))
            elif block["type"] == "tool_use":
                expected.append(("call", block["id"]))
            elif block["type"] == "tool_result":
                expected.append(("tool", block["tool_use_id"]))
    told = heard(sent)
    if found.compacted:
        assert expected[0][1] in told[0][1]
        told, expected = told[1:], expected[1:]
    assert told.pop() == ("user", "And now?")
    assert len(told) == len(expected)
    for (role, words), (speaker, wanted) in zip(told, expected, strict=True):
        # Behind a command's output stand its exit code and where the whole of it is.
        assert role == speaker and (words == wanted or (wanted.startswith("Ran `") and words.startswith(wanted)))
