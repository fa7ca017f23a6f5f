"""A cut copy in the real Codex: it resumes, and the next request on the wire is the cut history."""

import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from conftest import SHARED
from cutline.sessions.codex import open_session, resume
from cutline.sessions.cutting import execute, prospect
from live import codex, npm
from live.codex import Answer, Codex, Upstream, call, message_id, reasoning, said

pytestmark = pytest.mark.slow

CUTLINE = (sys.executable, "-c", "from cutline.cli import main; main()")
DOCUMENT = {"done": "Counted to 40 in 3 ms.", "open": "the sum", "went_wrong": "nothing"}

# What the client sends in the place of an image that it can't read, as those of the recorded sessions.
_UNREADABLE = "image content omitted because it could not be processed"


@dataclass(frozen=True, slots=True)
class Place:
    """Where the client is run: its own home and a working directory."""

    cwd: Path
    home: Path

    def client(self, upstream: Upstream, model: str = codex.MODEL) -> Codex:
        server = self.cwd.parent / "server.py"
        server.write_text(npm.SERVER)
        tools = f'mcp_servers.cutline={{command="{sys.executable}",args=["{server}"]}}'
        return Codex(codex.install(), upstream.url, self.home, model, ("-c", tools))

    def path(self, id_: str) -> Path:
        """The rollout of a session."""
        return next(path for path in codex.rollouts(self.home) if id_ in path.name)

    def write(self, script: Sequence[Answer], *prompts: str, input_tokens: Sequence[int] = (1_000,)) -> str:
        """A session that the client writes itself; gives its id."""
        session = ""
        with Upstream(script, input_tokens) as upstream:
            client = self.client(upstream)
            for prompt in prompts:
                outcome = client.run(self.cwd, *(("resume", session) if session else ()), prompt)
                assert outcome.code == 0, (outcome.stdout[-500:], outcome.stderr[-500:])
                session = outcome.thread
        assert upstream.refusals == [] and upstream.unused == 0, "the client asked less often than the script answers"
        return session

    def cutline(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run the command line here."""
        known = {**os.environ, "CODEX_HOME": str(self.home), "NO_COLOR": "1", **environment}
        return subprocess.run(
            [*CUTLINE, *arguments], cwd=self.cwd, env=known, capture_output=True, text=True, timeout=100, check=False
        )

    def cut(self, *arguments: str) -> str:
        """Cut a session and give the id of its copy."""
        done = self.cutline("cut", *arguments, "--force", "--json")
        assert done.returncode == 0, done.stderr
        found: str = json.loads(done.stdout)["copy"]["id"]
        return found

    def resume(self, id_: str, prompt: str = "And now?", model: str = codex.MODEL) -> list[dict[str, Any]]:
        """Go on in a session with one prompt, and give the items that were sent for it."""
        with Upstream([[said("Nothing more.")]]) as upstream:
            outcome = self.client(upstream, model).run(self.cwd, "resume", id_, prompt)
        assert outcome.code == 0, (outcome.stdout[-500:], outcome.stderr[-500:])
        assert outcome.thread == id_ and upstream.refusals == []
        assert len(upstream.bodies) == 1, "one request, and none that compacts"
        items: list[dict[str, Any]] = upstream.bodies[0]["input"]
        return items


@pytest.fixture
def place(tmp_path: Path) -> Place:
    cwd = tmp_path / "project"
    cwd.mkdir()
    return Place(cwd, tmp_path / "codex")


def heard(items: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    """(who, what) of each item: words, ids of calls and results; what the client composes anew aside."""
    found: list[tuple[str, str]] = []
    for item in items:
        kind = item["type"]
        if kind == "message" and item["role"] in ("user", "assistant"):
            for part in item["content"]:
                text = part.get("text", f"({part['type']})")
                text = "(input_image)" if text == _UNREADABLE else text
                if item["role"] == "assistant" or not text.lstrip().startswith(("<", "# AGENTS.md")):
                    found.append((item["role"], text))
        elif kind == "reasoning":
            found.append((kind, item["encrypted_content"] or ""))
        elif kind.endswith(("_call", "_output")):
            found.append((kind.rpartition("_")[2], item.get("call_id") or item.get("id") or ""))
    return found


def told(items: Sequence[dict[str, Any]]) -> dict[str, str]:
    """The text of each output by its call's id."""
    found: dict[str, str] = {}
    for item in items:
        if item["type"].endswith("_output"):
            output = item.get("output", "")
            parts = [{"text": output}] if isinstance(output, str) else output
            found[item["call_id"]] = "".join(part.get("text", "") for part in parts)
    return found


def notices(items: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    """(role, text) of the messages that hold a notice."""
    return [
        (item["role"], part["text"])
        for item in items
        if item["type"] == "message"
        for part in item["content"]
        if "[cutline]" in part.get("text", "")
    ]


def bash(id_: str, command: str) -> dict[str, Any]:
    return call(id_, "exec_command", cmd=command)


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line]


COUNTING: list[Answer] = [
    [
        reasoning("U0VBTEVE", "Two things at once."),
        said("I count and I look: «seq» first — ünïcode \u2028 and \\u0041.", phase="commentary"),
        bash("call_count", "seq 1 40"),
        bash("call_look", "echo looked"),
    ],
    [said("It counts to 40.", phase="commentary"), bash("call_more", "seq 41 99")],
    [
        reasoning("QkVGT1JF", "Time for a note."),
        said("A note before I go on."),
        call("call_note", "micro_handoff", "mcp__cutline", **DOCUMENT),
    ],
    [reasoning("QkVISU5E"), said("Now the sum."), bash("call_sum", "echo 820")],
    [said("The sum is 820.")],
    [said("You are welcome.")],
]


def test_a_copy_cut_at_a_checkpoint_resumes_with_the_cut_history(place: Place) -> None:
    session = place.write(COUNTING, "Count and sum.", "Thanks.")
    before = place.path(session).read_bytes()
    copy = place.cut(session)
    assert place.path(session).read_bytes() == before

    sent = place.resume(copy)
    assert [entry for entry in heard(sent) if entry[0] != "reasoning"] == [
        ("user", "Count and sum."),
        ("assistant", "I count and I look: «seq» first — ünïcode \u2028 and \\u0041."),
        ("assistant", "It counts to 40."),
        ("assistant", "A note before I go on."),
        ("call", "call_note"),
        ("output", "call_note"),
        ("assistant", "Now the sum."),
        ("call", "call_sum"),
        ("output", "call_sum"),
        ("assistant", "The sum is 820."),
        ("user", "Thanks."),
        ("assistant", "You are welcome."),
        ("user", "And now?"),
    ]
    results = told(sent)
    assert "checkpoint stored" in results["call_note"] and "[cutline]" in results["call_note"]
    assert "820" in results["call_sum"]
    assert "37\\n38" not in json.dumps(sent), "no result comes back by another way"
    assert "U0VBTEVE" not in json.dumps(sent)
    note = next(item for item in sent if item.get("call_id") == "call_note" and "arguments" in item)
    assert json.loads(note["arguments"]) == DOCUMENT
    # What was tied to reasoning that left stands alone: the provider refuses an id without its reasoning.
    ids = {part["text"]: item.get("id") for item in sent if item.get("role") == "assistant" for part in item["content"]}
    assert ids["I count and I look: «seq» first — ünïcode \u2028 and \\u0041."] is None
    assert all(ids[words] == message_id(words) for words in ("It counts to 40.", "You are welcome."))
    phases = {item["content"][0]["text"]: item.get("phase") for item in sent if item.get("role") == "assistant"}
    assert phases["It counts to 40."] == "commentary"

    whole = place.resume(session)
    assert {id_ for kind, id_ in heard(whole) if kind == "call"} == {
        *("call_count", "call_look", "call_more", "call_note", "call_sum")
    }
    assert "[cutline]" not in json.dumps(whole)


def test_what_the_file_repeats_of_a_result_leaves_with_it(place: Place) -> None:
    session = place.write(COUNTING, "Count and sum.", "Thanks.")
    assert place.path(session).read_text("utf-8").count("37\\n38") > 1
    copy = place.path(place.cut(session))
    text = copy.read_text("utf-8")
    assert "37\\n38" not in text and "Two things at once." not in text
    found = records(copy)
    assert [record["ordinal"] for record in found] == list(range(len(found))), "the file's own count has no gap"
    said_again = [
        record["payload"]["item"]["type"] for record in found if record["payload"].get("type") == "item_completed"
    ]
    assert said_again.count("AgentMessage") == 6 and said_again.count("UserMessage") == 2
    assert "820" in json.dumps([record for record in found if "item" in record["payload"]])
    assert {record["payload"].get("thread_id", copy.stem[-36:]) for record in found} == {copy.stem[-36:]}


@pytest.mark.parametrize("at", ("last", "end"))
def test_a_cut_without_a_checkpoint_says_so_in_nobody_s_name(place: Place, at: str) -> None:
    script: list[Answer] = [
        [said("I count."), bash("call_count", "seq 1 40")],
        [said("It counts to 40.")],
        [said("Once more."), bash("call_again", "seq 41 99")],
        [said("And to 99.")],
    ]
    session = place.write(script, "Count.", "Go on.")
    before = place.path(session).read_bytes()
    sent = place.resume(place.cut(session, "--at", at))
    assert [role for role, _ in notices(sent)] == ["user"]
    text = notices(sent)[0][1]
    assert text.startswith("<external_cutline>\n[cutline]") and text.endswith("\n</external_cutline>")
    assert heard(sent) == [
        ("user", "Count."),
        ("assistant", "I count."),
        ("assistant", "It counts to 40."),
        ("user", "Go on."),
        ("assistant", "Once more."),
        *([("call", "call_again"), ("output", "call_again")] if at == "last" else []),
        ("assistant", "And to 99."),
        ("user", "And now?"),
    ]
    order = [part.get("text", "") for item in sent if item["type"] == "message" for part in item["content"]]
    behind = "Go on." if at == "last" else "And now?"
    assert order.index(text) + 1 == order.index(behind)
    assert place.path(session).read_bytes() == before


def test_a_copy_that_went_on_is_cut_a_second_time(place: Place) -> None:
    session = place.write(COUNTING, "Count and sum.", "Thanks.")
    copy = place.cut(session)
    script: list[Answer] = [
        [reasoning("TkVX"), said("I square it."), bash("call_square", "seq 200 240")],
        [said("Squared."), call("call_two", "micro_handoff", "mcp__cutline", **DOCUMENT)],
        [said("All noted.")],
    ]
    with Upstream(script) as upstream:
        assert place.client(upstream).run(place.cwd, "resume", copy, "Square it.").code == 0
    second = place.cut(copy)
    sent = place.resume(second)
    assert [id_ for kind, id_ in heard(sent) if kind == "call"] == ["call_note", "call_two"]
    assert [text for who, text in heard(sent) if who == "user"] == [
        *("Count and sum.", "Thanks.", "Square it.", "And now?")
    ]
    results = told(sent)
    assert results["call_note"].count("[cutline]") == 1 and results["call_two"].count("[cutline]") == 1
    assert "230\\n231" not in json.dumps(sent)


def test_the_copy_is_found_by_its_name_and_is_the_latest(place: Place) -> None:
    session = place.write(COUNTING, "Count and sum.", "Thanks.")
    copy = place.cut(session)
    for words in (("Count and sum. (cut)",), ("--last",)):
        with Upstream([[said("Nothing more.")]]) as upstream:
            outcome = place.client(upstream).run(place.cwd, "resume", *words, "And now?")
        assert outcome.code == 0 and outcome.thread == copy


def test_a_nearly_full_session_is_not_compacted_by_the_client_once_it_is_cut(place: Place) -> None:
    """It takes how full a session is from the file's own counts, which are those of the uncut history."""
    script: list[Answer] = [[said("I count."), bash("call_count", "seq 1 40")], [said("It counts to 40.")]]
    session = place.write(script, "Count.", input_tokens=(1_000, 257_000))
    copy = place.cut(session, "--at", "end")
    place.resume(copy)
    with Upstream() as upstream:
        assert place.client(upstream).run(place.cwd, "resume", session, "And now?").code == 0
    assert len(upstream.bodies) > 1, "the client compacts the original before it goes on"


def test_a_session_that_the_client_compacted_is_cut_behind_the_compaction(place: Place) -> None:
    script: list[Answer] = [[said("I count."), bash("call_count", "seq 1 40")], [said("It counts to 40.")]]
    session = place.write(script, "Count.", input_tokens=(1_000, 257_000))
    more: list[Answer] = [
        [said("Counted so far.")],
        [reasoning("TkVX"), said("I go on."), bash("call_more", "seq 41 99")],
        [said("Done.")],
    ]
    with Upstream(more) as upstream:
        assert place.client(upstream).run(place.cwd, "resume", session, "Go on.").code == 0
    assert any(record["type"] == "compacted" for record in records(place.path(session)))
    read = open_session(place.path(session)).history
    assert read.compacted and "summary" in read.origins
    sent = place.resume(place.cut(session, "--at", "end"))
    assert "Counted so far." in json.dumps(sent) and "call_more" not in json.dumps(heard(sent))
    assert [text for who, text in heard(sent) if who == "assistant"] == ["I go on.", "Done."]


def test_an_archived_session_is_copied_among_the_others(place: Place) -> None:
    script: list[Answer] = [[said("I count."), bash("call_count", "seq 1 40")], [said("It counts to 40.")]]
    session = place.write(script, "Count.")
    with Upstream() as upstream:
        assert place.client(upstream).start(place.cwd, "archive", session).code == 0
    assert not any(session in path.name for path in codex.rollouts(place.home))
    copy = place.cut(session)
    assert heard(place.resume(copy))[-2:] == [("assistant", "It counts to 40."), ("user", "And now?")]


def test_turns_that_were_taken_back_are_not_sent(place: Place) -> None:
    script: list[Answer] = [
        [said("I count."), bash("call_count", "seq 1 40")],
        [said("It counts to 40.")],
        [said("Once more."), bash("call_again", "seq 41 99")],
        [said("And to 99.")],
    ]
    session = place.write(script, "Count.", "Go on.")
    path = place.path(session)
    last = records(path)[-1]
    back = {"type": "thread_rolled_back", "num_turns": 1}
    with path.open("a") as handle:
        handle.write(json.dumps({**last, "ordinal": last["ordinal"] + 1, "type": "event_msg", "payload": back}) + "\n")
    assert [text for who, text in heard(place.resume(place.cut(session)))] == [
        *("Count.", "I count.", "It counts to 40.", "And now?")
    ]


def test_the_command_that_resumes_starts_the_client_on_the_copy(place: Place) -> None:
    """`codex resume` needs a terminal; it is given one, and its first request is the cut history."""
    script: list[Answer] = [[said("I count."), bash("call_count", "seq 1 40")], [said("It counts to 40.")]]
    copy = place.cut(place.write(script, "Count."))
    with Upstream([[said("Nothing more.")]]) as upstream:
        # A model that it does not know: of others it asks first whether a newer one is wanted.
        client = place.client(upstream, "scripted")
        options = [option for option in client.options if option not in ("--skip-git-repo-check", "--json")]
        trust = ("-c", f'projects."{place.cwd}".trust_level="trusted"')
        command = [str(client.binary), *resume(copy)[1:], *options, *trust, "And now?"]
        with terminal(command, place.cwd, client.variables()) as tick:
            until = time.monotonic() + 60
            while not upstream.bodies and time.monotonic() < until:
                tick()
    assert upstream.bodies, "the client sent nothing"
    assert heard(upstream.bodies[0]["input"]) == [
        *(("user", "Count."), ("assistant", "I count."), ("assistant", "It counts to 40."), ("user", "And now?"))
    ]


class terminal:
    """A program on a terminal of its own, which answers what terminals are asked; ended on leaving."""

    def __init__(self, command: list[str], cwd: Path, environment: dict[str, str]) -> None:
        self.handle, side = pty.openpty()
        fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self.process = subprocess.Popen(
            command, cwd=cwd, env={**environment, "TERM": "xterm-256color"}, stdin=side, stdout=side, stderr=side
        )
        os.close(side)

    def __enter__(self) -> "terminal":
        return self

    def __call__(self) -> None:
        """Read what there is, for a moment."""
        if select.select([self.handle], [], [], 0.1)[0]:
            try:
                shown = os.read(self.handle, 1 << 16)
            except OSError:
                return
            for asked, answer in ((b"\x1b[6n", b"\x1b[1;1R"), (b"\x1b[c", b"\x1b[?62;c")):
                if asked in shown:
                    os.write(self.handle, answer)

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(20)
        os.close(self.handle)


# ------------------------------------------------------------------------------------- recorded sessions


def recorded() -> list[Path]:
    """The recorded sessions; five more files there are samples of records, and no sessions."""
    found = sorted((SHARED / "data" / "sessions" / "codex").glob("*.jsonl"))
    return [path for path in found if not path.stem.startswith("agent-sessions")]


def predicted(path: Path) -> Iterator[tuple[str, str]]:
    """What the wire has to hold of a copy, by its history as it is read again."""
    found = open_session(path).history
    names = {"tool_use": ("call", "id"), "tool_result": ("output", "tool_use_id")}
    for message, origin in zip(json.loads(found.body)["messages"], found.origins):
        for block in message["content"]:
            if block["type"] == "text":
                text = block["text"].encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
                if origin in ("agent", "human") and not text.lstrip().startswith(("<", "# AGENTS.md")):
                    yield "assistant" if origin == "agent" else "user", text
            elif block["type"] in names:
                who, key = names[block["type"]]
                yield who, block[key]
            elif block["type"] == "image" and origin == "human":
                yield "user", "(input_image)"


@pytest.mark.skipif(not SHARED.is_dir(), reason="the recorded sessions are not on this machine: no ../shared/data")
@pytest.mark.parametrize("at", (None, "end"))
@pytest.mark.parametrize("source", recorded(), ids=lambda path: path.stem)
def test_recorded_sessions_resume_as_their_copies_are_read(place: Place, source: Path, at: str | None) -> None:
    raw = source.read_bytes().replace(b'"model_provider":"openai"', b'"model_provider":"c"')
    old = json.loads(raw.split(b"\n")[0])["payload"]["id"]
    folder = place.home / "sessions" / "2026" / "01" / "02"
    folder.mkdir(parents=True)
    path = folder / f"rollout-2026-01-02T03-04-05-{old}.jsonl"
    path.write_bytes(raw)
    copy, _ = execute(prospect(open_session(path), at=at))
    expected = list(predicted(copy.path))
    # Asked for another model it may compact first.
    items = place.resume(copy.id, model=open_session(copy.path).history.model)
    sent = [entry for entry in heard(items) if entry[0] != "reasoning"]
    # A call that nothing answered as the agent was stopped gets an output of the client's.
    stopped = {id_ for kind, id_ in expected if kind == "call"} - {id_ for kind, id_ in expected if kind == "output"}
    assert [entry for entry in sent if entry[0] != "output" or entry[1] not in stopped] == [
        *expected,
        ("user", "And now?"),
    ]
