"""Leaving and returning: with Cutline and without it, forked, cleared, rewound, planned, with images, in a worktree."""

import base64
import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fcntl import ioctl
from pathlib import Path
from typing import Any

import pytest

from cutline.blocks import address
from cutline.record import Record

from .run import BOUND, DOCUMENT, HANDOFF, OLDER, RECALL, Home, Ran, blocks, result_of, said
from .upstream import Answer, Block, Recorded, Upstream, call, text, thinking

pytestmark = pytest.mark.slow


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home.make(tmp_path)
    fill(made.project)
    return made


def fill(folder: Path) -> None:
    for name in ("a", "b", "c"):
        # Too long for an answer that one has to remember, so that no checkpoint asks for it.
        (folder / f"{name}.py").write_text("".join(f"{name}_{number} = {number}\n" for number in range(120)))


def step(*calls: Block, words: str = "I go on.") -> list[Block]:
    return [thinking("So far so good."), text(words), *calls]


def done(words: str = "Done.") -> list[Block]:
    return [thinking("Enough."), text(words)]


def read(id_: str, path: Path | str) -> Block:
    return call(id_, "Read", file_path=str(path))


def handoff(id_: str) -> list[Block]:
    return step(call(id_, HANDOFF, **DOCUMENT), words="A natural point.")


def calls(turn: Recorded) -> list[str]:
    return [block["id"] for block in blocks(turn.messages, "tool_use")]


def thoughts(turn: Recorded) -> int:
    return len(blocks(turn.messages, "thinking"))


def play(
    home: Home, script: Sequence[Answer], *arguments: str, prompt: str = "Go on.", **more: Any
) -> tuple[Ran, list[Recorded]]:
    """A run to its end, of which nothing was refused; its turns."""
    with Upstream(script, strict=True, bound=True) as upstream:
        ran = home.run(upstream, prompt, *arguments, **more)
    assert ran.code == 0, ran.stderr
    assert upstream.refusals == [] and upstream.unused == 0
    assert ran.report["faults"] == [] and all(told["faults"] == [] for told in ran.report["sessions"])
    return ran, upstream.conversation


def begin(home: Home, model: str) -> str:
    """A session with a checkpoint and thinking behind it; its id."""
    script = [
        step(read("toolu_r1", home.project / "a.py")),
        handoff("toolu_h1"),
        step(read("toolu_r2", home.project / "b.py")),
        done(),
    ]
    ran, turns = play(home, script, model=model)
    assert calls(turns[-1]) == ["toolu_h1", "toolu_r2"]
    return str(ran.session["session"])


def test_without_cutline_an_unbound_model_takes_the_whole_history_back(home: Home):
    session = begin(home, OLDER)
    with Upstream([done("Plain.")], strict=True, bound=True) as upstream:
        plain = home.plain(upstream, "And now?", "--continue", model=OLDER)
    assert plain.code == 0 and plain.result["result"] == "Plain." and upstream.refusals == []
    (turn,) = upstream.conversation
    assert calls(turn) == ["toolu_r1", "toolu_h1", "toolu_r2"] and thoughts(turn) == 4
    assert "[cutline]" not in turn.raw.decode()

    ran, turns = play(home, [done()], "--continue", model=OLDER)
    assert ran.session["session"] == session and calls(turns[0]) == ["toolu_h1", "toolu_r2"]
    assert "Plain." in said(turns[0].messages)


def test_without_cutline_the_client_itself_gets_a_bound_model_through(home: Home):
    """Thinking that was made over the cut history is refused over the whole one. The client drops all thinking, asks
    once more, and sends this session's thinking no more; so nothing is refused afterwards, cut or not."""
    session = begin(home, BOUND)
    with Upstream([step(read("toolu_p1", home.project / "b.py")), done("Plain.")], strict=True, bound=True) as upstream:
        plain = home.plain(upstream, "And now?", "--continue", model=BOUND)
    assert plain.code == 0 and plain.result["result"] == "Plain."
    assert len(upstream.refusals) == 1 and "bound to a different conversation" in upstream.refusals[0]
    assert [thoughts(turn) for turn in upstream.conversation] == [4, 0, 0]

    for number in (2, 3):
        script = [step(read(f"toolu_q{number}", home.project / "c.py")), done()]
        ran, turns = play(home, script, "--continue", model=BOUND)
        assert ran.session["session"] == session and ran.session["refusals"] == []
        assert calls(turns[0])[:3] == ["toolu_h1", "toolu_r2", "toolu_p1"] and thoughts(turns[-1]) == 0


@pytest.mark.parametrize("model", [OLDER, BOUND])
def test_with_cutline_the_first_request_is_cut_again_and_accepted(home: Home, model: str):
    session = begin(home, model)
    script = [step(read("toolu_r3", home.project / "a.py")), done("Back.")]
    ran, turns = play(home, script, "--continue", model=model)
    assert calls(turns[0]) == ["toolu_h1", "toolu_r2"] and calls(turns[1]) == ["toolu_h1", "toolu_r2", "toolu_r3"]
    assert "a_57 = 57" in result_of(turns[1].messages, "toolu_r3")
    told = ran.session
    assert told["session"] == session and told["sent_bytes"] < told["uncut_bytes"] and told["refusals"] == []
    # A fork is a session of its own, and is cut like the one that it comes from.
    ran, turns = play(home, [done()], "--resume", session, "--fork-session", model=model)
    assert ran.session["session"] != session and calls(turns[0]) == ["toolu_h1", "toolu_r2", "toolu_r3"]


def test_thinking_that_was_made_over_the_whole_history_is_cut_late(home: Home):
    """The cut is refused once; the one without the tail's thinking is accepted, remembered, and told."""
    session = begin(home, BOUND)
    # A provider that drops what it can't check, as some accounts have it: so the client learns nothing of it.
    with Upstream([step(read("toolu_p1", home.project / "b.py")), done()], strict=True) as upstream:
        plain = home.plain(upstream, "And now?", "--continue", model=BOUND)
    assert plain.code == 0 and thoughts(upstream.conversation[-1]) == 5

    script = [step(read("toolu_r3", home.project / "a.py")), done("Back.")]
    with Upstream(script, strict=True, bound=True) as upstream:
        ran = home.run(upstream, "Back?", "--continue", model=BOUND)
    assert ran.code == 0 and ran.result["result"] == "Back." and upstream.unused == 0
    assert len(upstream.refusals) == 1, "the client saw no refusal, and the next request made none"
    refused, first, second = upstream.conversation
    assert [thoughts(turn) for turn in (refused, first, second)] == [4, 0, 0]
    assert calls(refused) == calls(first) == ["toolu_h1", "toolu_r2", "toolu_p1"]
    told = ran.session
    (refusal,) = told["refusals"]
    assert "bound to a different conversation" in refusal and "accepted" in refusal and told["faults"] == []
    with Record(home.record, readonly=True) as record:
        assert [stop.rule for stop in record.stops(session)] == ["late"]

    ran, turns = play(home, [step(read("toolu_r4", home.project / "c.py")), done()], "--continue", model=BOUND)
    assert ran.session["refusals"] == [] and [thoughts(turn) for turn in turns] == [0, 0]
    assert calls(turns[0])[0] == "toolu_h1"

    # A new checkpoint is a new seam: thinking behind it was made over what was sent, and stays.
    script = [handoff("toolu_h2"), step(read("toolu_r5", home.project / "a.py")), done()]
    ran, turns = play(home, script, "--continue", model=BOUND)
    assert calls(turns[-1]) == ["toolu_h1", "toolu_h2", "toolu_r5"] and thoughts(turns[-1]) == 1


def test_a_file_of_the_session_before_needs_no_new_reading_where_the_client_says_so(home: Home):
    """What the client lets be edited after a return does not depend on the cut, which it knows nothing of."""
    begin(home, OLDER)
    edit = {"file_path": str(home.project / "a.py"), "old_string": "a_7 = 7\n", "new_string": "a_7 = 'seven'\n"}
    _, turns = play(home, [step(call("toolu_e1", "Edit", **edit)), done()], "--continue", model=OLDER)
    assert "updated successfully" in result_of(turns[-1].messages, "toolu_e1")


# ------------------------------------------------------------------------------------------------- images


def picture(shade: int) -> bytes:
    """A small PNG of one shade of grey."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + bytes([shade]) * 8 for _ in range(8))
    head = struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


@pytest.mark.parametrize("model", [OLDER, BOUND])
def test_the_human_s_image_stays_and_one_that_was_read_is_recalled(home: Home, model: str):
    (home.project / "seen.png").write_bytes(picture(200))
    shot = read("toolu_r1", home.project / "seen.png")
    where = address("toolu_r1", "Read", json.dumps(shot["input"]).encode())
    script = [step(shot), handoff("toolu_h1"), step(call("toolu_c1", RECALL, what=where)), done()]
    source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(picture(10)).decode()}
    content = [{"type": "image", "source": source}, text("What is this?")]
    line = json.dumps({"type": "user", "message": {"role": "user", "content": content}})
    client = ["claude", "-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]
    with Upstream(script, strict=True, bound=True) as upstream:
        ran = subprocess.run(
            [
                sys.executable,
                "-P",
                "-m",
                "cutline",
                "run",
                "--json",
                *client,
                "--model",
                model,
                "--allowedTools",
                "Read",
            ],
            cwd=home.project,
            env=home.environment(upstream.url),
            input=line.encode() + b"\n",
            capture_output=True,
            timeout=120,
            check=False,
        )
    assert ran.returncode == 0, ran.stderr
    assert upstream.refusals == [] and upstream.unused == 0
    turns = upstream.conversation
    assert [len(blocks(turn.messages, "image")) for turn in turns] == [1] * 4
    shown = [turn for turn in turns if any(_images(block) for block in blocks(turn.messages, "tool_result"))]
    assert shown == [turns[1], turns[3]], "read, gone with the checkpoint, recalled"
    (recalled,) = [found for block in blocks(turns[3].messages, "tool_result") for found in _images(block)]
    assert recalled == _images(blocks(turns[1].messages, "tool_result")[0])[0]


def _images(result: Block) -> list[str]:
    content = result["content"] if isinstance(result["content"], list) else []
    return [part["source"]["data"] for part in content if part["type"] == "image"]


# ------------------------------------------------------------------------------------------------- worktrees


@dataclass(frozen=True)
class Worktree(Home):
    """The same home, and another working tree of the same repository."""

    @property
    def project(self) -> Path:
        return self.root / "worktree"


def test_a_worktree_recalls_what_the_main_tree_saw(home: Home):
    person = {
        f"GIT_{role}_{key}": "nobody@example.com" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")
    }
    for command in ("init -q", "add .", "commit -qm begin", f"worktree add -q {home.root / 'worktree'}"):
        where = {"PATH": os.environ["PATH"], "HOME": str(home.root / "home"), **person}
        subprocess.run(["git", *command.split()], cwd=home.project, env=where, check=True, timeout=30)
    begin(home, BOUND)
    seen = address("toolu_r1", "Read", json.dumps({"file_path": str(home.project / "a.py")}).encode())
    other = Worktree(home.root, home.binary)
    (other.project / "a.py").write_text("changed = 1\n")
    script = [
        step(call("toolu_c1", RECALL, what=seen)),
        step(call("toolu_c2", RECALL, what="b.py b_57")),
        handoff("toolu_h2"),
        done(),
    ]
    _, turns = play(other, script, model=BOUND)
    recalled = result_of(turns[1].messages, "toolu_c1")
    assert "\n58\ta_57 = 57\n" in recalled and f"{home.project / 'a.py'} still has these lines" in recalled
    assert "toolu_r2" not in calls(turns[2]) and "b.py" in result_of(turns[2].messages, "toolu_c2")
    with Record(home.record, readonly=True) as record:
        stamps = [json.loads(document.stamp) for document in record.documents(str(home.project.resolve()))]
    assert {Path(stamp["directory"]).name for stamp in stamps} == {"project", "worktree"}


# ------------------------------------------------------------------------------------- at a terminal


@dataclass
class Terminal:
    """`cutline run claude` on a terminal of its own: keys go in, and what is drawn is kept.

    Attributes:
        process: the run.
        keys: the terminal's other end.
        drawn: all bytes that were drawn.
    """

    process: subprocess.Popen[bytes]
    keys: int
    drawn: bytearray = field(default_factory=bytearray)

    @classmethod
    def open(cls, home: Home, upstream: Upstream, *arguments: str) -> "Terminal":
        told = {
            "hasCompletedOnboarding": True,
            "theme": "dark",
            "customApiKeyResponses": {"approved": ["dummy"], "rejected": []},
            "projects": {str(home.project.resolve()): {"hasTrustDialogAccepted": True}},
        }
        (home.config / ".claude.json").write_text(json.dumps(told))
        keys, screen = pty.openpty()
        ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 150, 0, 0))
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "cutline", "run", "--json", "claude", *arguments],
            cwd=home.project,
            env=home.environment(upstream.url, TERM="xterm-256color", LANG="C.UTF-8"),
            stdin=screen,
            stdout=screen,
            stderr=screen,
            start_new_session=True,
        )
        os.close(screen)
        found = cls(process, keys)
        threading.Thread(target=found._draw, daemon=True).start()
        return found

    def _draw(self) -> None:
        while True:
            try:
                piece = os.read(self.keys, 65536)
            except OSError:
                return  # the other end is closed
            self.drawn += piece
            for question, answer in ((b"\x1b[c", b"\x1b[?62;c"), (b"\x1b[6n", b"\x1b[1;1R")):
                if question in piece:
                    os.write(self.keys, answer)

    def press(self, *keys: str) -> None:
        for key in keys:
            os.write(self.keys, key.encode())
            time.sleep(0.5)

    def type(self, words: str) -> None:
        self.press(words, "\r")

    def until(self, wanted: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + 20
        while not wanted():
            assert time.monotonic() < end and self.process.poll() is None, f"waited for {what}: {self.screen[-600:]}"
            time.sleep(0.1)

    def shows(self, words: str) -> None:
        """Wait until these words were drawn since the last key."""
        self.until(lambda: words.replace(" ", "") in self.screen, words)
        time.sleep(0.4)
        self.drawn.clear()

    @property
    def screen(self) -> str:
        """What was drawn, without blanks and the terminal's commands."""
        plain = re.sub(
            rb"\x1b(?:\[[0-9;?<>=]*[A-Za-z]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Z0-9]|[=>78])", b"", bytes(self.drawn)
        )
        return re.sub(r"\s", "", plain.decode("utf-8", "replace"))

    def leave(self) -> dict[str, Any]:
        """Leave the client; the report."""
        self.type("/exit")
        self.process.wait(20)
        select.select([self.keys], [], [], 0.3)
        time.sleep(0.3)
        os.close(self.keys)
        report = re.findall(rb'\{"exit_code".*\}', bytes(self.drawn))
        found: dict[str, Any] = json.loads(report[-1])
        return found


UP = "\x1b[A"


def test_rewind_past_a_seam_and_clear(home: Home):
    """What is rewound past a checkpoint is sent whole again; a cleared session is another one, with the same tools."""
    script = [
        step(read("toolu_r1", home.project / "a.py")),
        done("Answer zero."),
        handoff("toolu_h1"),
        step(read("toolu_r2", home.project / "b.py")),
        done("Answer one."),
        done("Answer two."),
        handoff("toolu_h2"),
        step(call("toolu_c1", RECALL, what="b.py b_57")),
        done("Answer three."),
    ]
    with Upstream(script, strict=True, bound=True) as upstream:
        terminal = Terminal.open(home, upstream, "--model", BOUND, "--allowedTools", "Read")
        terminal.shows("Claude Code v")
        for words, answer in (("zero", "Answer zero."), ("one", "Answer one.")):
            terminal.type(words)
            terminal.shows(answer)
        terminal.type("/rewind")
        terminal.shows("(current)")
        terminal.press(UP, "\r")
        terminal.shows("Restore conversation")
        terminal.press("\r", "\x15")
        terminal.type("instead")
        terminal.shows("Answer two.")
        terminal.type("/clear")
        time.sleep(1.5)
        terminal.type("new")
        terminal.shows("Answer three.")
        report = terminal.leave()
    assert upstream.refusals == [] and upstream.unused == 0
    turns = upstream.conversation
    assert [calls(turn) for turn in turns] == [
        *([], ["toolu_r1"]),
        *(["toolu_r1"], ["toolu_h1"], ["toolu_h1", "toolu_r2"]),
        ["toolu_r1"],
        *([], ["toolu_h2"], ["toolu_h2", "toolu_c1"]),
    ]
    assert "a_57 = 57" in result_of(turns[5].messages, "toolu_r1") and "[cutline]" not in turns[5].raw.decode()
    ids = [turn.headers["x-claude-code-session-id"] for turn in turns]
    assert len(set(ids[:6])) == 1 and len(set(ids[6:])) == 1 and ids[0] != ids[-1]
    assert "b.py" in result_of(turns[-1].messages, "toolu_c1")
    assert [told["session"] for told in report["sessions"]] == [ids[0], ids[-1]]
    assert all(told["faults"] == told["refusals"] == [] for told in report["sessions"]) and report["faults"] == []
    with Record(home.record, readonly=True) as record:
        assert {document.session for document in record.documents()} == {ids[0], ids[-1]}


def test_in_plan_mode_one_can_check_in_and_the_plan_stays(home: Home):
    """The client runs only what is marked as read-only there. The plan and the human's word on it are speech."""
    script = [
        step(read("toolu_r1", home.project / "a.py")),
        handoff("toolu_h1"),
        step(read("toolu_r2", home.project / "b.py")),
        step(call("toolu_x1", "ExitPlanMode", plan="1. Do the first thing."), words="This is the plan."),
        handoff("toolu_h2"),
        step(read("toolu_r3", home.project / "c.py")),
        done("All planned."),
    ]
    with Upstream(script, strict=True, bound=True) as upstream:
        terminal = Terminal.open(
            home, upstream, "--model", BOUND, "--permission-mode", "plan", "--allowedTools", "Read"
        )
        terminal.shows("Claude Code v")
        terminal.type("Plan it.")
        terminal.shows("Exit plan mode?")
        terminal.press("\r")
        terminal.shows("All planned.")
        report = terminal.leave()
    assert upstream.refusals == [] and upstream.unused == 0
    turns = upstream.conversation
    assert calls(turns[2]) == ["toolu_h1"]
    assert calls(turns[-1]) == ["toolu_h1", "toolu_x1", "toolu_h2", "toolu_r3"]
    assert "approved" in result_of(turns[-1].messages, "toolu_x1")
    assert "This is the plan." in said(turns[-1].messages)
    (told,) = report["sessions"]
    assert len(told["checkpoints"]) == 2 and told["faults"] == told["refusals"] == []
