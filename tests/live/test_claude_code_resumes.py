"""A cut copy in the real client: it resumes, and the next request on the wire is the cut history."""

import json
import os
import re
import shutil
import stat
import subprocess
import sys
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from conftest import SHARED, claude_code_files
from cutline.errors import InputError
from cutline.sessions.claude_code import Session, open_session
from cutline.sessions.claude_code.history import History
from cutline.sessions.cutting import execute, prospect
from live import claude, npm
from live.upstream import Answer, Block, Upstream, call, text, thinking

pytestmark = pytest.mark.slow

CUTLINE = (sys.executable, "-c", "from cutline.cli import main; main()")
DOCUMENT = {"done": "Counted to 40 in 3 ms.", "open": "the sum", "went_wrong": "nothing"}
# The client's own texts in messages of role user.
_CLIENTS = ("<system-reminder>", "Tool loaded.", "Continue from where you left off.")
_ANSWER = "No response requested."
_TOOLS_GONE = "[Tool references removed"


@dataclass(frozen=True, slots=True)
class Place:
    """Where the client is run: its own configuration and a working directory."""

    cwd: Path
    config: Path

    @property
    def folder(self) -> Path:
        """Where the client keeps this working directory's sessions."""
        return claude.project(self.config, self.cwd)

    def path(self, id_: str) -> Path:
        return self.folder / f"{id_}.jsonl"

    def cutline(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run the command line here."""
        known = {**os.environ, "CLAUDE_CONFIG_DIR": str(self.config), "NO_COLOR": "1", **environment}
        return subprocess.run(
            [*CUTLINE, *arguments], cwd=self.cwd, env=known, capture_output=True, text=True, timeout=100, check=False
        )

    def cut(self, *arguments: str) -> str:
        """Cut a session and give the id of its copy."""
        done = self.cutline("cut", *arguments, "--force", "--json")
        assert done.returncode == 0, done.stderr
        found: str = json.loads(done.stdout)["copy"]["id"]
        return found

    def resume(self, id_: str, prompt: str, model: str = "claude-sonnet-4-5") -> list[dict[str, Any]]:
        """Go on in a session with one prompt, and give the messages that were sent for it."""
        with Upstream([[text("Nothing more.")]]) as upstream:
            outcome = claude.Claude(claude.install(), upstream.url, model).resume(id_, prompt, self.cwd, self.config)
        assert outcome.code == 0, (outcome.stdout[-500:], outcome.stderr[-500:])
        assert outcome.result["result"] == "Nothing more." and not outcome.result["is_error"]
        assert len(upstream.conversation) == 1, "one request, and none that summarises"
        return upstream.conversation[0].messages


@pytest.fixture
def place(tmp_path: Path) -> Place:
    cwd = tmp_path / "project"
    cwd.mkdir()
    return Place(cwd, tmp_path / "config")


def write(place: Place, script: list[Answer], *prompts: str) -> str:
    """A session that the client writes itself; gives its id."""
    server = place.cwd.parent / "server.py"
    server.write_text(npm.SERVER)
    servers = {"mcpServers": {"cutline": {"command": sys.executable, "args": [str(server)]}}}
    options = ["--mcp-config", json.dumps(servers), "--strict-mcp-config"]
    session = ""
    with Upstream(script) as upstream:
        client = claude.Claude(claude.install(), upstream.url)
        for prompt in prompts:
            more = ["--resume", session] if session else []
            outcome = client.run(prompt, place.cwd, place.config, *options, *more)
            assert outcome.code == 0, (outcome.stdout[-500:], outcome.stderr[-500:])
            session = outcome.result["session_id"]
    assert upstream.unused == 0, "the client asked less often than the script answers"
    return session


def blocks(messages: list[dict[str, Any]]) -> Iterable[tuple[str, Block]]:
    """Every content block with its role; messages of role system aside."""
    for message in messages:
        content = message["content"]
        for block in [text(content)] if isinstance(content, str) else content:
            if message["role"] != "system":
                yield message["role"], block


def heard(messages: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    """(role, type, text or id or signature) of each block, the client's own texts aside."""
    found: list[tuple[str, str, str]] = []
    for role, block in blocks(messages):
        kind = block["type"]
        key = {"text": "text", "tool_use": "id", "tool_result": "tool_use_id", "thinking": "signature"}.get(kind)
        said = str(block.get(key, "")) if key else kind
        if kind == "text":
            # Between texts of one message the client puts a line's end; a lone surrogate it can't send.
            said = said.rstrip("\n").encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        if kind != "text" or (said.strip() and not said.lstrip().startswith(_CLIENTS)):
            found.append((role, kind, said))
    return found


def results(messages: list[dict[str, Any]]) -> dict[str, str]:
    """The text of each result by its call's id, up to a reminder that the client puts into it (and trims it for)."""
    found: dict[str, str] = {}
    for _, block in blocks(messages):
        if block["type"] == "tool_result":
            content = block.get("content", "")
            if not isinstance(content, str):
                content = "".join(part.get("text", "") for part in content)
            found[block["tool_use_id"]] = content.split("<system-reminder>")[0].strip()
    return found


def assert_pairs(messages: list[dict[str, Any]]) -> None:
    """Each call is answered in the very next message, and each result answers a call."""
    waiting: set[str] = set()
    for message in messages:
        if message["role"] == "system":
            continue
        content = [] if isinstance(message["content"], str) else message["content"]
        answered = {block["tool_use_id"] for block in content if block["type"] == "tool_result"}
        made = {block["id"] for block in content if block["type"] == "tool_use"}
        if message["role"] == "user":
            assert answered == waiting
            waiting = set()
        else:
            assert not answered
            waiting |= made
    assert not waiting


def bash(id_: str, command: str) -> Block:
    return call(id_, "Bash", command=command, description="run it")


def state(path: Path) -> tuple[bytes, int, int]:
    found = path.stat()
    return path.read_bytes(), stat.S_IMODE(found.st_mode), found.st_mtime_ns


def test_a_copy_cut_at_a_checkpoint_resumes_with_the_cut_history(place: Place) -> None:
    script: list[Answer] = [
        [
            thinking("Two things at once.", "U0lHMQ=="),
            text("I count and I look: «seq» first — ünïcode \u2028 and \\u0041."),
            bash("toolu_count", "seq 1 40"),
            bash("toolu_look", "echo looked"),
        ],
        [text("It counts to 40."), bash("toolu_more", "seq 41 99")],
        [
            thinking("Time for a note.", "U0lHMg=="),
            text("A note before I go on."),
            call("toolu_note", "mcp__cutline__micro_handoff", **DOCUMENT),
        ],
        [text("Now the sum."), bash("toolu_sum", "echo 820")],
        [text("The sum is 820.")],
        [text("You are welcome.")],
    ]
    session = write(place, script, "Count and sum.", "Thanks.")
    original = place.path(session)
    before = state(original)
    copy = place.cut(session)
    assert state(original) == before

    sent = place.resume(copy, "And now?")
    assert heard(sent) == [
        ("user", "text", "Count and sum."),
        ("assistant", "text", "I count and I look: «seq» first — ünïcode \u2028 and \\u0041."),
        ("assistant", "text", "It counts to 40."),
        ("assistant", "text", "A note before I go on."),
        ("assistant", "tool_use", "toolu_note"),
        ("user", "tool_result", "toolu_note"),
        ("assistant", "text", "Now the sum."),
        ("assistant", "tool_use", "toolu_sum"),
        ("user", "tool_result", "toolu_sum"),
        ("assistant", "text", "The sum is 820."),
        ("user", "text", "Thanks."),
        ("assistant", "text", "You are welcome."),
        ("user", "text", "And now?"),
    ]
    assert_pairs(sent)
    told = results(sent)
    assert told["toolu_note"].startswith("checkpoint stored") and "[cutline]" in told["toolu_note"]
    assert told["toolu_sum"] == "820"
    assert "77\\n78" not in json.dumps(sent), "no result comes back by another way"
    note = next(block for _, block in blocks(sent) if block.get("id") == "toolu_note")
    assert note["input"] == DOCUMENT
    assert state(original) == before, "going on in the copy leaves the original alone"

    whole = place.resume(session, "And now?")
    assert {key for _, kind, key in heard(whole) if kind == "tool_use"} == {
        "toolu_count",
        "toolu_look",
        "toolu_more",
        "toolu_note",
        "toolu_sum",
    }
    assert "[cutline]" not in json.dumps(whole)
    assert results(whole)["toolu_look"] == "looked"


@pytest.mark.parametrize("at", ("last", "end"))
def test_a_cut_without_a_checkpoint_says_so_in_nobody_s_name(place: Place, at: str) -> None:
    script: list[Answer] = [
        [text("I count."), bash("toolu_count", "seq 1 40")],
        [text("It counts to 40.")],
        [text("Once more."), bash("toolu_again", "seq 41 99")],
        [text("And to 99.")],
    ]
    session = write(place, script, "Count.", "Go on.")
    before = state(place.path(session))
    copy = place.cut(session, "--at", at)
    marked = [json.loads(line) for line in place.path(copy).read_text("utf-8").splitlines() if "[cutline]" in line]
    assert [(record["type"], record.get("isMeta")) for record in marked] == [("user", True)]
    sent = place.resume(copy, "And now?")
    notices = [
        (role, block["text"])
        for role, block in blocks(sent)
        if block["type"] == "text" and "[cutline]" in block["text"]
    ]
    assert [role for role, _ in notices] == ["user"]
    assert [entry for entry in heard(sent) if "[cutline]" not in entry[2]] == [
        ("user", "text", "Count."),
        ("assistant", "text", "I count."),
        ("assistant", "text", "It counts to 40."),
        ("user", "text", "Go on."),
        ("assistant", "text", "Once more."),
        *([("assistant", "tool_use", "toolu_again"), ("user", "tool_result", "toolu_again")] if at == "last" else []),
        ("assistant", "text", "And to 99."),
        ("user", "text", "And now?"),
    ]
    assert_pairs(sent)
    assert sent[-1]["role"] == "user" and "No response requested" not in json.dumps(sent)
    assert state(place.path(session)) == before


def test_resume_starts_the_client_on_the_copy(place: Place) -> None:
    script: list[Answer] = [[text("I count."), bash("toolu_count", "seq 1 40")], [text("It counts to 40.")]]
    session = write(place, script, "Count.")
    binary = claude.install()
    with Upstream([[text("Nothing more.")]]) as upstream:
        done = place.cutline(
            *("resume", session, "--force", "--", "-p", "And now?", "--output-format", "json"),
            **{
                **claude.Claude(binary, upstream.url).variables(place.config),
                "PATH": f"{binary.parent}{os.pathsep}{os.environ['PATH']}",
            },
        )
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout)
    assert outcome["result"] == "Nothing more."
    assert outcome["session_id"] != session and place.path(outcome["session_id"]).exists()
    assert "proven" in done.stderr and session in done.stderr
    sent = upstream.conversation[0].messages
    assert [entry[2] for entry in heard(sent) if "[cutline]" not in entry[2]] == [
        "Count.",
        "I count.",
        "It counts to 40.",
        "And now?",
    ]


@pytest.mark.parametrize("kind", ("a second result", "written twice"))
def test_what_the_client_would_fall_back_on_leaves_too(place: Place, kind: str) -> None:
    """A second result, on a branch that was given up: the client finds it, and an empty user turn is left of it.

    An earlier writing of a record comes back to life where the later has left.
    """
    script: list[Answer] = [[text("I count."), bash("toolu_count", "seq 1 40")], [text("It counts to 40.")]]
    session = write(place, script, "Count.")
    path = place.path(session)
    lines = path.read_text("utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    number = next(number for number, line in enumerate(lines) if '"tool_use_id":"toolu_count"' in line)
    call_ = next(record for record in records if record.get("uuid") == records[number]["parentUuid"])
    again = [call_, records[number]] if kind == "written twice" else [{**records[number], "uuid": str(uuid.uuid4())}]
    at = records.index(call_) if kind == "written twice" else number
    path.write_text("\n".join([*lines[:at], *map(json.dumps, again), *lines[at:]]) + "\n", "utf-8")
    copy = place.cut(session)
    assert 'toolu_count"' not in place.path(copy).read_text("utf-8")
    sent = place.resume(copy, "And now?")
    assert [entry[2] for entry in heard(sent) if "[cutline]" not in entry[2]] == [
        "Count.",
        "I count.",
        "It counts to 40.",
        "And now?",
    ]


def test_a_session_that_the_client_compacted_itself(place: Place) -> None:
    """It keeps its last messages through a compaction without writing them again: they are cut like any other."""
    turns = 0

    def answer(body: dict[str, Any]) -> list[Block]:
        nonlocal turns
        turns += 1
        if "<summary>" in json.dumps(body["messages"][-1]):
            upstream.input_tokens = 3_000
            return [text("<summary>Counted so far.</summary>")]
        upstream.input_tokens = 12_000 if turns > 4 else 20_000 * turns
        return [text(f"Step {turns}."), bash(f"toolu_{turns}", f"seq {turns} 90")] if turns < 8 else [text("The end.")]

    with Upstream(answer) as upstream:
        automatic = {"DISABLE_AUTO_COMPACT": "", "CLAUDE_CODE_AUTO_COMPACT_WINDOW": "100000"}
        client = claude.Claude(claude.install(), upstream.url, environment=automatic)
        outcome = client.run("Count.", place.cwd, place.config)
    session = outcome.result["session_id"]
    boundary = next(line for line in place.path(session).read_text("utf-8").splitlines() if "compact_boundary" in line)
    assert json.loads(boundary)["compactMetadata"]["preservedMessages"]["uuids"]
    copy = place.cut(session, "--at", "end")
    before = open_session(place.path(copy))
    sent = place.resume(copy, "And now?")
    compare(before, sent, "And now?")
    assert [key for role, _, key in heard(sent) if role == "assistant"] == ["Step 4.", "Step 6.", "Step 7.", "The end."]
    assert "Counted so far." in json.dumps(sent)


@pytest.mark.parametrize("ours", (True, False))
def test_a_copy_of_a_nearly_full_session_is_not_summarised_before_it_was_asked(place: Place, ours: bool) -> None:
    """The client counts it as full as the original was; `cutline resume` holds its summary back until an answer came."""
    full = {"DISABLE_AUTO_COMPACT": "", "CLAUDE_CODE_AUTO_COMPACT_WINDOW": "150000"}
    asked = []

    def answer(body: dict[str, Any]) -> list[Block]:
        asked.append(json.dumps(body["messages"][-1]))
        upstream.input_tokens = 30_000
        return [text("<summary>Counted.</summary>" if "<summary>" in asked[-1] else "Nothing more.")]

    session = write(place, [[text("I count."), bash("toolu_1", "seq 1 90")], [text("It counts to 90.")]], "Count.")
    path = place.path(session)
    path.write_text(re.sub(r'"input_tokens":\d+', '"input_tokens":140000', path.read_text("utf-8")), "utf-8")
    with Upstream(answer) as upstream:
        client = claude.Claude(claude.install(), upstream.url, environment=full)
        arguments = ["-p", "And now?", "--model", client.model]
        if ours:
            variables = {**client.variables(place.config), "PATH": f"{client.binary.parent}:{os.environ['PATH']}"}
            done = place.cutline("resume", session, "--at", "end", "--force", "--", *arguments, **variables)
            assert done.returncode == 0 and "Nothing more." in done.stdout, done.stderr
        else:
            client.resume(place.cut(session, "--at", "end"), "And now?", place.cwd, place.config)
    assert ("<summary>" not in asked[0]) is ours, "the summary that is held back comes without"


# ------------------------------------------------------------------------------------- recorded sessions

# The smallest with a cut, the largest, one with compactions, images, sub-agents inline, glued records.
SAMPLE = (
    "ai-blame_2c965cfd",
    "skills_96770173_68human_388calls",
    "entire-cli_432b48f6_36human_2compact",
    "cipher-box_c644f3af_9images",
    "ccviewer_fe5e1c67_inline-sidechains",
    "entire-cli_8cfa910f_2badlines",
    "vibecodingtracker_claude_code",  # a result that is written twice
)


def cut_of(source: Path, place: Place) -> tuple[Session, str]:
    """A recorded session, cut in the client's folder: the copy read again, and its id."""
    place.folder.mkdir(parents=True, exist_ok=True)
    path = place.path(str(uuid.uuid4()))
    shutil.copyfile(source, path)
    written = execute(prospect(open_session(path)))[0]
    return open_session(written.path), written.id


def wrapped(found: History) -> list[str]:
    """Words of a copy that the client wraps into a text of its own: typed while the agent worked, or a task's end."""
    records = found.log.records
    messages = json.loads(found.body)["messages"]
    return [
        said
        for message, places in zip(messages, found.places)
        for _, kind, said in heard([message])
        if kind == "text" and (records[places[0].record].type == "attachment" or said.startswith("<task-notification>"))
    ]


def compare(copy: Session, sent: list[dict[str, Any]], prompt: str) -> None:
    """The wire is the copy's history: every block of it in order and nothing besides, but for what the client adds."""
    found = copy.history
    messages = json.loads(found.body)["messages"]
    inside = wrapped(found)
    assert inside == [] or "notification" in str(sent) or "while you were working" in str(sent)
    wire = "\n".join(
        str(block.get("text") or block.get("content"))
        for message in sent
        for block in ([text(message["content"])] if isinstance(message["content"], str) else message["content"])
    )
    assert [words for words in inside if words not in wire] == []
    # A call that nothing answered as the agent was stopped goes or gets a result, a user's last word an answer.
    stopped = set(found.branch.unanswered)
    answer = [] if messages[-1]["role"] == "assistant" and not stopped else [("assistant", "text", _ANSWER)]

    def own(told: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
        """Without thinking, which the client sends to the model that made it alone."""
        return [
            (role, kind, said)
            for role, kind, said in told
            if kind != "thinking" and said not in inside and (not kind.startswith("tool_") or said not in stopped)
        ]

    said = own(heard(sent))
    predicted = own(heard(messages))
    assert said in ([*predicted, ("user", "text", prompt)], [*predicted, *answer, ("user", "text", prompt)])
    told, known = results(sent), results(messages)
    assert told.keys() - stopped == known.keys()
    assert all(told[id_] == known[id_] or told[id_].startswith(_TOOLS_GONE) for id_ in known)
    assert_pairs(sent)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the recorded sessions are not on this machine: no ../shared/data")
@pytest.mark.parametrize("name", SAMPLE)
def test_recorded_sessions_resume_as_their_copies_are_read(place: Place, name: str) -> None:
    source = next(path for path in claude_code_files() if path.stem == name)
    copy, id_ = cut_of(source, place)
    sent = place.resume(id_, "And now?", f"{copy.history.model}[1m]")
    compare(copy, sent, "And now?")


@pytest.mark.skipif(not SHARED.is_dir(), reason="the recorded sessions are not on this machine: no ../shared/data")
def test_a_sub_agent_s_file_is_not_copied(place: Place) -> None:
    """The client finds no conversation in it."""
    source = next(path for path in claude_code_files() if path.stem == "agent-ea02459f")
    with pytest.raises(InputError, match="sub-agent"):
        cut_of(source, place)
