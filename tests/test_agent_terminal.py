"""`cutline agent` in a real terminal: tmux types and looks; the program, its tools, HTTP and the record are all real."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import agent_made
from cutline.agent import events as ev
from cutline.agent import log as logs
from cutline.demo.model import Answer, Call, Model

pytest.importorskip("prompt_toolkit", reason="needs the extra: pip install 'cutline[agent]'")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(120),
    pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux: apt-get install tmux"),
]


@dataclass
class Desk:
    """A terminal with the agent in it, and the model that it asks.

    Attributes:
        folder: everything lies here.
        model: the scripted one.
        size: columns and rows.
    """

    folder: Path
    model: Model
    size: tuple[int, int]
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.tree = self.folder / "tree"
        self.tree.mkdir(exist_ok=True)
        self.environment = {
            **os.environ,
            "HOME": str(self.folder),
            "CUTLINE_RECORD": str(self.folder / "record" / "record.db"),
            "LC_ALL": "C.UTF-8",
            "TERM": "xterm-256color",
        }
        for name in ("TMUX", "NO_COLOR", "CUTLINE_MODEL"):
            self.environment.pop(name, None)

    def tmux(self, *words: str) -> str:
        command = ["tmux", "-S", str(self.folder / "tmux"), "-f", "/dev/null", *words]
        return subprocess.run(
            command, check=True, capture_output=True, text=True, env=self.environment, timeout=20
        ).stdout

    def command(self, *words: str) -> list[str]:
        model = ["--model", agent_made.MODELS["anthropic"], "--base-url", self.model.url]
        return [sys.executable, "-m", "cutline", "agent", *([] if "--resume" in words else model), *words]

    def open(self, *words: str) -> None:
        """The agent in a new terminal."""
        width, height = map(str, self.size)
        line = f"{shlex.join(self.command(*words))}; echo it ended with $?; exec sleep 1000"
        self.tmux("new-session", "-d", "-x", width, "-y", height, "-c", str(self.tree), line)

    def keys(self, *names: str) -> None:
        self.tmux("send-keys", *names)

    def type(self, text: str) -> None:
        self.tmux("send-keys", "-l", text)

    def say(self, text: str) -> None:
        self.type(text)
        self.keys("Enter")

    @property
    def screen(self) -> str:
        return self.tmux("capture-pane", "-p")

    @property
    def all(self) -> str:
        return self.tmux("capture-pane", "-p", "-J", "-S", "-5000")

    def sees(self, text: str, seconds: float = 20.0) -> None:
        """Wait until a text stands on the screen."""
        self.until(lambda: text in self.screen, f"{text!r} is not on the screen", seconds)

    def until(self, holds: Callable[[], bool], what: str, seconds: float = 20.0) -> None:
        end = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < end, f"{what}:\n{self.all}"
            time.sleep(0.03)

    @property
    def typed(self) -> str:
        """The line, its rows as one, as it stands above the status in the last rows."""
        rows = self.screen.rstrip().split("\n")[:-1]
        first = max((n for n, row in enumerate(rows) if row.startswith("›")), default=0)
        width = int(self.tmux("display-message", "-p", "#{pane_width}"))
        return "".join(row.ljust(width) for row in rows[first:]).rstrip()

    def close(self) -> None:
        with contextlib.suppress(subprocess.CalledProcessError):
            self.tmux("kill-server")

    @property
    def log(self) -> Path:
        (path,) = (self.folder / "record" / "agent").glob("*.jsonl")
        return path

    def events(self, kind: type) -> list[Any]:
        return [event for _, event in logs.lines(self.log) if isinstance(event, kind)]


@contextlib.contextmanager
def desk(folder: Path, script: list[Any], size: tuple[int, int] = (100, 30)) -> Iterator[Desk]:
    with Model(script, refuses=agent_made.refuses) as model:
        at = Desk(folder, model, size)
        try:
            yield at
        finally:
            at.close()
        assert model.refusals == []


def look(words: str) -> Answer:
    """Words that stream slowly, and a file that is read."""
    return Answer(words, [Call("read", {"file_path": "cache.py"})], pause_s=0.02)


def run(words: str, command: str) -> Answer:
    return Answer(words, [Call("bash", {"command": command})])


TICKS = "for i in $(seq 200); do echo tick $i; test -e over && break; sleep 0.05; done"


@pytest.mark.parametrize("size", [(60, 20), (200, 50)], ids=["60x20", "200x50"])
def test_a_supervised_session(tmp_path: Path, size: tuple[int, int]):
    fact = {"claim": "LIMIT is 20", "basis": "measured", "evidence": "cache.py"}
    document = {"done": "LIMIT is 20", "open": "nothing", "went_wrong": "nothing", "facts": [fact], "next": "an answer"}
    edit = {"file_path": "cache.py", "old_string": "LIMIT = 10", "new_string": "LIMIT = 20"}
    script = [
        look("I read cache.py, because LIMIT decides how much stays; I expect 10.\n\n" + "It streams. " * 30),
        run("cache.py:1 has LIMIT = 10 (measured). I run seq 200, because it takes long; I expect ticks.", TICKS),
        Answer(
            "tick 200 did not come: it ended early. I edit cache.py, because LIMIT has to be 20; I expect one line.",
            [Call("edit", edit)],
        ),
        run("cache.py:1 is LIMIT = 20 now. I run rm -rf build, because it is stale; I expect nothing.", "rm -rf build"),
        Answer("rm -rf build was denied: others use build/. A natural point.", [Call("micro_handoff", document)]),
        Answer("The checkpoint stands. All is done."),
    ]
    with desk(tmp_path, script, size) as at:
        (at.tree / "cache.py").write_text("LIMIT = 10\n")
        (at.tree / "build").mkdir()
        at.open()
        at.sees("ready")
        at.say("raise the limit")
        at.sees("It streams.")
        assert "▸ read" not in at.screen, "the words stand there while they are written"
        at.sees("a question waits")
        assert "▸ bash" in at.screen and "for i in $(seq 200)" in at.screen, "a call is shown before it runs"
        at.say("y")
        at.sees("│ tick 3")
        at.say("20 is right, not 15")
        at.sees("queued: 20 is right, not 15")
        assert "1 hint" in at.screen
        at.type("half-typed w")
        at.sees("half-typed w")
        (at.tree / "over").touch()
        at.sees("Tab sets it aside")
        assert "+LIMIT = 20" in at.screen, "a diff comes before the edit"
        assert (at.tree / "cache.py").read_text() == "LIMIT = 10\n"
        at.tmux("resize-window", "-x", str(size[0] - 7), "-y", str(size[1] - 3))
        at.keys("Tab")
        at.sees("set aside: half-typed w")
        at.say("y")
        at.sees("rm -rf build")
        at.sees("Tab sets it aside")
        assert "› half-typed w" in at.screen, "it came back"
        at.keys("C-u")
        at.sees("say why not")
        at.say("others use build")
        at.sees("The checkpoint stands.")
        at.sees("ready")
        at.say("/recall tick 7")
        at.sees("· /recall tick 7")
        at.say("/cost")
        at.sees("requests")
        at.say("/undo-cut")
        at.sees("taken back")
        at.say("/quit")
        at.sees("it ended with 0")
        told, widest = at.all, max(map(len, at.screen.split("\n")))
        assert told.count("20 is right, not 15") >= 1 and "◆ checkpoint:" in told and widest <= size[0]
        assert (at.tree / "cache.py").read_text() == "LIMIT = 20\n" and (at.tree / "build").is_dir()
        assert "20 is right, not 15" in agent_made.said(at.model.main[2].raw)
        assert "others use build" in agent_made.said(at.model.main[4].raw)
        last = agent_made.said(at.model.main[5].raw)
        assert "raise the limit" in last and not any("tick 1\n" in text for text in last), "cut at the checkpoint"


def test_the_commands(tmp_path: Path):
    fact = {"claim": "LIMIT is 10", "basis": "measured", "evidence": "cache.py"}
    document = {"done": "read cache.py", "open": "nothing", "went_wrong": "nothing", "facts": [fact], "next": "wait"}
    script = [
        Answer(
            "I read cache.py, because LIMIT matters; I expect 10.",
            [Call("read", {"file_path": "cache.py"}), Call("glob", {"pattern": "*.py"})],
        ),
        Answer("cache.py:1 has LIMIT = 10, and it is the only *.py."),
        Answer("A checkpoint, as you ask.", [Call("micro_handoff", document)]),
        Answer("It stands."),
        Answer("# Handoff\n\nLIMIT is 10."),
    ]
    with desk(tmp_path, script) as at:
        (at.tree / "cache.py").write_text("LIMIT = 10\n")
        at.open()
        at.sees("ready")
        at.say("look")
        at.sees("the only *.py")
        at.sees("ready")
        at.say("/checkpoint")
        at.sees("2 calls leave the context; /undo-cut takes it back")
        at.sees("It stands.")
        at.sees("ready")
        at.say("/handoff")
        at.sees("full handoff written:")
        (path,) = (tmp_path / "record").rglob("*.md")
        assert "LIMIT is 10." in path.read_text()
        at.say("/recall LIMIT")
        at.sees("· /recall LIMIT")
        at.keys("C-d")
        at.sees("it ended with 0")
        assert "is kept; cutline agent --resume" in at.all


def test_pause_and_stop(tmp_path: Path):
    script = [
        look("I read cache.py, because I look; I expect 10." + " And on." * 60),
        run("cache.py:1 has LIMIT = 10. I run seq 200, because it is slow; I expect ticks.", TICKS),
        Answer("It was stopped at tick 3. " + "I think about it. " * 400, pause_s=0.02),
    ]
    with desk(tmp_path, script) as at:
        (at.tree / "cache.py").write_text("LIMIT = 10\n")
        at.open("--approve", "auto", "--allow", "bash")
        at.sees("ready")
        at.say("look")
        at.sees("I read cache.py")
        at.keys("Escape")
        at.sees("paused; Enter")
        at.sees("▸ read")
        time.sleep(0.3)
        assert not at.events(ev.Started)
        at.keys("Enter")
        at.sees("│ tick 3")
        at.keys("C-c")
        at.sees("I think about it.")
        at.keys("C-c")
        time.sleep(0.1)
        at.keys("C-c")
        at.sees("you stopped the turn")
        at.sees("ready")
        results = at.events(ev.Result)
        assert "Stopped by the human" in results[1].text or "stopped by the human" in results[1].text
        assert [event.reason for event in at.events(ev.TurnEnded)] == ["stopped"]


def test_a_kill_loses_no_word(tmp_path: Path):
    script = [
        run("I run seq 200, because it is slow; I expect ticks.", TICKS),
        Answer("It was interrupted at a tick. I am done."),
    ]
    with desk(tmp_path, script, (60, 20)) as at:
        at.open("--approve", "auto")
        at.sees("ready")
        at.say("look")
        at.sees("│ tick 3")
        at.say("a hint")
        at.sees("queued: a hint")
        at.type("half-typed")
        at.sees("half-typed")
        pid = next(int(path.name) for path in Path("/proc").glob("[0-9]*") if _is_agent(path, at.model.url))
        os.kill(pid, signal.SIGKILL)
        at.sees("it ended with 137")
        at.tmux("respawn-pane", "-k", f"{shlex.join(at.command('--resume', '--approve', 'auto'))}; exec sleep 1000")
        at.sees("paused; Enter")
        assert "› half-typed" in at.screen
        at.say(" words")
        at.sees("queued: half-typed words")
        at.keys("Enter")
        at.sees("I am done.")
        at.sees("ready")
        said = agent_made.said(at.model.main[1].raw)
        assert "a hint" in said and "half-typed words" in said and "look" in said


def _is_agent(process: Path, url: str) -> bool:
    try:
        words = (process / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return words[:1] == [sys.executable.encode()] and url.encode() in words


_COLOUR = re.compile(r"\x1b\[(?:\d+;)*(?:3[0-8]|4[0-8]|9\d|10\d)[;m]")
STREAM = "It says one word after the other. " * 400


def test_a_hint_while_text_streams_at_every_width(tmp_path: Path):
    script = [
        Answer(STREAM, [Call("glob", {"pattern": "*"})], pause_s=0.01),
        Answer("Seen."),
    ]
    with desk(tmp_path, script) as at:
        at.open()
        at.sees("ready")
        at.say("go")
        at.sees("It says one word")
        at.say("mind the ü")
        at.sees("queued: mind the ü")
        at.type("half-typed and longer than forty columns are")
        for columns in (40, 200, 60):
            at.tmux("resize-window", "-x", str(columns), "-y", "30")
            at.until(lambda: at.typed == "› half-typed and longer than forty columns are", "what is typed stays")
            rows = at.screen.split("\n")
            assert sum(row.startswith("working") for row in rows) == 1, at.screen
            assert sum("queued: mind the ü" in row for row in rows) == 1, "no row of the old width stays"
        at.sees("Seen.", 60)
        at.sees("ready")
        assert "› half-typed and longer" in at.screen
        assert "mind the ü" in agent_made.said(at.model.main[1].raw)
        assert "› mind the ü" in at.all and at.all.count("mind the ü") >= 1


@pytest.mark.parametrize("no_color", ["", "1"])
def test_what_a_tool_prints_does_not_steer_the_terminal(tmp_path: Path, no_color: str):
    evil = r"printf '\033]0;forged\007\033[2J\033[1;1H\033[31mred\033[0m \033]8;;http://x.example\007link\n\ny\n\302\2336n'"
    script = [
        run("I run printf, because it is evil; I expect red.", f"{evil}; sleep 0.5; {evil}"),
        Answer("red link came, as `text`."),
    ]
    with desk(tmp_path, script) as at:
        at.environment["NO_COLOR"] = no_color
        at.open("--approve", "auto")
        at.sees("ready")
        at.say("go on then")
        at.sees("red link came")
        at.sees("ready")
        assert "forged" not in at.tmux("display-message", "-p", "#{pane_title}")
        assert "› go on then" in at.screen and "│ red link" in at.screen, "nothing was wiped, nothing overwritten"
        drawn = at.tmux("capture-pane", "-p", "-e")
        assert bool(_COLOUR.search(drawn)) is not bool(no_color)
        (row,) = {row for row in drawn.split("\n") if "red link" in row and "│" in row}
        assert not re.search(r"\x1b\[(?:\d+;)*31m", row)


# ------------------------------------------------------------------------------------------------------------- figures


def test_the_line_is_there_and_a_key_stands_in_it_at_once():
    """The bounds are loose, since the machine has other work; docs/performance.md has the figures."""
    bench = Path(__file__).parents[1] / "benchmarks" / "bench_screen.py"
    command = [sys.executable, str(bench), "--json", "--keys", "30", "--starts", "2", "--calls", "20"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr
    for calls, told in json.loads(done.stdout).items():
        assert told["start"]["least"] < 2_000, calls
        for what in ("idle", "text streams", "a tool prints"):
            assert told[what]["median"] < 60, (calls, what, told[what])
