"""A cut copy in the real Gemini CLI: it resumes, and the next request on the wire is the cut history."""

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conftest import SHARED
from cutline.sessions.cutting import execute, prospect
from cutline.sessions.gemini_cli import open_session
from cutline.sessions.gemini_cli import resume as resume_command
from live import gemini_cli
from live.gemini_cli import Content, Home, Part, Upstream, call, text, thought

pytestmark = pytest.mark.slow

CUTLINE = (sys.executable, "-c", "from cutline.cli import main; main()")
DOCUMENT = {"done": "Counted to 40 in 3 ms.", "open": "the sum", "went_wrong": "nothing"}
NOTE = "mcp_cutline_micro_handoff"

# An MCP server with one tool, as a client starts it: lines of JSON-RPC on standard input and output.
SERVER = """
import json, sys
FIELDS = {name: {"type": "string"} for name in ("done", "open", "went_wrong")}
SCHEMA = {"type": "object", "properties": FIELDS}
TOOL = {"name": "micro_handoff", "description": "A checkpoint.", "inputSchema": SCHEMA}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    method, found = asked["method"], {}
    if method == "initialize":
        found = {
            "protocolVersion": asked["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "cutline", "version": "0"},
        }
    elif method == "tools/list":
        found = {"tools": [TOOL]}
    elif method == "tools/call":
        found = {"content": [{"type": "text", "text": "checkpoint stored"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": found}), flush=True)
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    cwd = tmp_path / "project"
    cwd.mkdir()
    server = tmp_path / "server.py"
    server.write_text(SERVER)
    made = Home(tmp_path / "home", cwd)
    made.settle({"cutline": {"command": sys.executable, "args": [str(server)], "trust": True}})
    return made


def write(home: Home, script: list[list[Part]], *prompts: str) -> Path:
    """A session that the client writes itself, a run for each prompt; the file."""
    with Upstream(script) as upstream:
        for number, prompt in enumerate(prompts):
            options = ("--resume", "latest") if number else ()
            outcome = home.run(upstream.url, prompt, *options)
            assert outcome.code == 0, (outcome.stdout[-500:], outcome.stderr[-500:])
    assert len(upstream.conversation) == len(script)
    return home.session()


def run(script: list[Part], command: str) -> list[Part]:
    """A call of the shell behind some words."""
    return [*script, call("run_shell_command", f"c_{command[-2:]}", command=command, description="run it")]


def cutline(home: Home, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in the project."""
    known = {**os.environ, "GEMINI_CLI_HOME": str(home.root), "HOME": str(home.root), "NO_COLOR": "1", **environment}
    return subprocess.run(
        [*CUTLINE, *arguments], cwd=home.cwd, env=known, capture_output=True, text=True, timeout=100, check=False
    )


def cut(home: Home, *arguments: str) -> str:
    """Cut a session and give the id of its copy."""
    done = cutline(home, "cut", *arguments, "--force", "--json")
    assert done.returncode == 0, done.stderr
    found: str = json.loads(done.stdout)["copy"]["id"]
    return found


def resume(home: Home, id_: str, prompt: str, answer: str = "Nothing more.") -> tuple[list[Content], list[str]]:
    """Go on in a session with one prompt: the contents that were sent for it, and what is wrong with them."""
    with Upstream([[text(answer)]]) as upstream:
        outcome = home.run(upstream.url, prompt, "--resume", id_)
    assert outcome.code == 0, (outcome.stdout[-500:], outcome.stderr[-500:])
    assert outcome.result["response"] == answer
    (sent,) = upstream.conversation
    return sent["contents"], upstream.faults


def heard(contents: list[Content]) -> list[tuple[str, str]]:
    """(role, words or what is called or answered) of each part, the client's own context aside."""
    found: list[tuple[str, str]] = []
    for content in contents:
        for part in content["parts"]:
            if "text" in part and not part["text"].startswith("<session_context>"):
                found.append((content["role"], part["text"]))
            for kind in ("functionCall", "functionResponse"):
                if kind in part:
                    found.append((content["role"], f"{kind} {part[kind]['name']}"))
    return found


def results(contents: list[Content], name: str) -> list[str]:
    """The outputs of a tool."""
    return [
        part["functionResponse"]["response"]["output"]
        for content in contents
        for part in content["parts"]
        if part.get("functionResponse", {}).get("name") == name
    ]


def state(path: Path) -> tuple[bytes, int, int]:
    found = path.stat()
    return path.read_bytes(), stat.S_IMODE(found.st_mode), found.st_mtime_ns


COUNTED = [
    [
        thought("**Two things** at once."),
        text("I count and I look: «seq» first — ünïcode \u2028 and \\u0041."),
        call("run_shell_command", "c_count", "U0lHMQ==", command="seq 1 40", description="count"),
        call("run_shell_command", "c_look", command="echo looked", description="look"),
    ],
    run([text("It counts to 40.")], "seq 41 99"),
    [
        thought("**Note** time."),
        text("A note before I go on."),
        call("run_shell_command", "c_aside", "U0lHMg==", command="echo aside", description="aside"),
        call(NOTE, "c_note", **DOCUMENT),
    ],
    run([text("Now the sum.")], "echo 820"),
    [text("The sum is 820.")],
]
KEPT = [
    ("user", "Count and sum."),
    ("model", "I count and I look: «seq» first — ünïcode \u2028 and \\u0041."),
    ("model", "It counts to 40."),
    ("model", "A note before I go on."),
    ("model", "functionCall run_shell_command"),
    ("model", f"functionCall {NOTE}"),
    ("user", "functionResponse run_shell_command"),
    ("user", f"functionResponse {NOTE}"),
    ("model", "Now the sum."),
    ("model", "functionCall run_shell_command"),
    ("user", "functionResponse run_shell_command"),
    ("model", "The sum is 820."),
    ("user", "And now?"),
]


def test_a_copy_cut_at_a_checkpoint_resumes_with_the_cut_history(home: Home) -> None:
    original = write(home, COUNTED, "Count and sum.")
    before = state(original)
    copy = cut(home, str(original))
    assert state(original) == before
    (written,) = (path for path in home.files() if path != original)
    assert stat.S_IMODE(written.stat().st_mode) == 0o600
    assert open_session(written).title == "Count and sum. (cut)"

    sent, faults = resume(home, copy, "And now?")
    assert faults == []
    assert heard(sent) == KEPT
    (note,) = results(sent, NOTE)
    assert "checkpoint stored" in note and "[cutline]" in note
    shell = results(sent, "run_shell_command")
    assert len(shell) == 2 and "aside" in shell[0] and "820" in shell[1]
    assert "77\\n78" not in json.dumps(sent)
    calls = [part["functionCall"] for content in sent for part in content["parts"] if "functionCall" in part]
    assert next(made for made in calls if made["name"] == NOTE)["args"] == DOCUMENT
    assert state(original) == before, "going on in the copy leaves the original alone"
    assert "77\\n78" not in written.read_text("utf-8"), "nor does the file hold it by another way"


def test_the_client_sends_every_result_of_the_whole_session_twice(home: Home) -> None:
    """So it can't go on in a session with calls where the provider counts them; in a copy it can."""
    original = write(home, COUNTED, "Count and sum.")
    session = open_session(original)
    assert any("written twice" in told for told in session.damage)
    sent, faults = resume(home, session.id, "And now?")
    assert len(results(sent, NOTE)) == 2 and faults


@pytest.mark.parametrize("at", ("last", "end"))
def test_a_cut_without_a_checkpoint_says_so_in_a_message_of_its_own(home: Home, at: str) -> None:
    script = [
        run([text("I count.")], "seq 1 40"),
        [text("It counts to 40.")],
        run([text("Once more.")], "seq 41 99"),
        [text("And to 99.")],
    ]
    original = write(home, script, "Count.", "Go on.")
    before = state(original)
    copy = cut(home, str(original), "--at", at)
    sent, faults = resume(home, copy, "And now?")
    assert faults == []
    notices = [entry for entry in heard(sent) if "[cutline]" in entry[1]]
    assert [role for role, _ in notices] == ["user"]
    kept = [("model", "functionCall run_shell_command"), ("user", "functionResponse run_shell_command")]
    assert [entry for entry in heard(sent) if entry not in notices] == [
        ("user", "Count."),
        ("model", "I count."),
        ("model", "It counts to 40."),
        ("user", "Go on."),
        ("model", "Once more."),
        *(kept if at == "last" else []),
        ("model", "And to 99."),
        ("user", "And now?"),
    ]
    assert state(original) == before


def test_a_copy_that_the_client_went_on_in_is_cut_again(home: Home) -> None:
    """On a resume the client writes the whole history anew, each result into every call beside it."""
    original = write(home, COUNTED, "Count and sum.")
    copy = cut(home, str(original))
    resume(home, copy, "And now?")
    again = cut(home, copy, "--at", "end")
    sent, faults = resume(home, again, "And then?")
    assert faults == []
    told = [entry for entry in heard(sent) if "[cutline]" not in entry[1]]
    assert told == [
        *(entry for entry in KEPT if "run_shell_command" not in entry[1]),
        ("model", "Nothing more."),
        ("user", "And then?"),
    ]
    (note,) = results(sent, NOTE)
    assert note.count("[cutline]") == 1


def test_resume_starts_the_client_on_the_copy(home: Home) -> None:
    original = write(home, [run([text("I count.")], "seq 1 40"), [text("It counts to 40.")]], "Count.")
    binary = gemini_cli.install()
    with Upstream([[text("Nothing more.")]]) as upstream:
        done = cutline(
            home,
            *("resume", open_session(original).id, "--force", "--", "-m", gemini_cli.MODEL, "-y", "--skip-trust"),
            *("--output-format", "json", "-p", "And now?"),
            **{**home.variables(upstream.url), "PATH": f"{binary.parent}{os.pathsep}{os.environ['PATH']}"},
        )
    assert done.returncode == 0, done.stderr
    assert "Nothing more." in done.stdout and "proven" in done.stderr
    assert upstream.faults == []
    told = [entry[1] for entry in heard(upstream.conversation[0]["contents"]) if "[cutline]" not in entry[1]]
    assert told == ["Count.", "I count.", "It counts to 40.", "And now?"]
    assert open_session(original).id in done.stderr


def test_the_copy_of_a_saved_chat_resumes_on_a_terminal(home: Home) -> None:
    """What `/chat save` writes is resumed within the client alone, with the signatures that it keeps."""
    write(home, [[text("Hello.")]], "Hello?")  # the client makes its folders
    asked = call("run_shell_command", "c_count", "U0lHMQ==", command="seq 1 40", description="count")
    told = {"functionResponse": {"id": "c_count", "name": "run_shell_command", "response": {"output": "1 to 40"}}}
    history = [
        {"role": "user", "parts": [text("Count.")]},
        {"role": "model", "parts": [thought("Counting."), text("I count."), asked]},
        {"role": "user", "parts": [told]},
        {"role": "model", "parts": [text("It counts to 40.", thoughtSignature="U0lHMg==")]},
        {"role": "user", "parts": [text("Thanks.")]},
        {"role": "model", "parts": [text("You are welcome.")]},
    ]
    saved = home.chats.parent / "checkpoint-count.json"
    saved.write_text(json.dumps({"history": history, "authType": "gemini-api-key"}, indent=2))
    copy = execute(prospect(open_session(saved)))[0]
    _, *options = resume_command(copy.id)
    for _ in range(3):
        with Upstream([[text("Nothing more.")]]) as upstream:
            home.talk(upstream, "Go on.", "You are welcome.", *options)
        sent = upstream.conversation[0]["contents"]
        # Before its commands are loaded, as on a busy machine, the client takes its own first command for words.
        if not heard(sent)[0][1].startswith("/chat resume"):
            break
    assert upstream.faults == []
    assert [entry for entry in heard(sent) if "[cutline]" not in entry[1]] == [
        ("user", "Count."),
        ("model", "I count."),
        ("model", "It counts to 40."),
        ("user", "Thanks."),
        ("model", "You are welcome."),
        ("user", "Go on."),
    ]
    assert "U0lHMg==" in json.dumps(sent) and results(sent, "run_shell_command") == []


# ------------------------------------------------------------------------------------- recorded sessions

RECORDED = sorted((SHARED / "data" / "sessions" / "gemini-cli").glob("[!g]*"))


def said(session: Any) -> list[tuple[str, str]]:
    """What the client is expected to send of a history, in the form of `heard`."""
    found: list[tuple[str, str]] = []
    for message in json.loads(session.history.body)["messages"]:
        for block in message["content"]:
            if block["type"] == "text":
                found.append(("model" if message["role"] == "assistant" else "user", block["text"]))
            elif block["type"] == "tool_use":
                found.append(("model", f"functionCall {block['name']}"))
            elif block["type"] == "tool_result":
                found.append(("user", "functionResponse"))
    return found


@pytest.mark.skipif(not RECORDED, reason="the recorded sessions are not on this machine: no ../shared/data")
@pytest.mark.parametrize("source", RECORDED, ids=lambda path: path.stem)
def test_recorded_sessions_resume_as_their_copies_are_read(home: Home, source: Path) -> None:
    write(home, [[text("Hello.")]], "Hello?")  # the client makes its folders
    path = home.chats / f"session-2026-01-01T00-00-00000000{source.suffix}"
    shutil.copyfile(source, path)
    copy = execute(prospect(open_session(path)))[0]
    # The client sends no message of a type that it does not write ("model").
    others = ("Captured multiline output.", "Ok")
    expected = [entry for entry in said(open_session(copy.path)) if entry[1] not in others]
    sent, faults = resume(home, copy.id, "And now?")
    assert faults == []
    answered = "functionResponse"
    told = [(role, answered if words.startswith(answered) else words) for role, words in heard(sent)]
    assert told == [*expected, ("user", "And now?")]
