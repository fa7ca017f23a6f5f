"""The agent's screen: how soon its line is there, and how soon a key that is pressed stands in it.

    uv run python benchmarks/bench_screen.py [--keys N] [--starts N] [--calls N] [--json]

The real program in a pseudo-terminal of 100 × 30, the scripted model in a process of its own. Each key is a letter that
was not on the screen before, so that no redrawing of an older one counts; the time runs from the write of the key to the
read of its letter. Keys are pressed at uneven distances of 20 to 70 ms. A start of Python with rich alone gives the scale. Once in a new session, once in one that goes on
behind N calls: idle, while text streams as fast as it can be read, and while a tool prints as fast as it can.
"""

import argparse
import contextlib
import json
import os
import pty
import random
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from pathlib import Path

from cutline.demo.model import Answer, Call, Model

MODEL = "anthropic:claude-sonnet-4-5"
LETTERS = [chr(n) for n in (*range(0x100, 0x180), *range(0x391, 0x3A2), *range(0x410, 0x450))]
PARAGRAPH = "It says one word after the other, and **none** of them is `the last` one. " * 5 + "\n\n"
FLOOD = "yes 'a line of output that a tool prints, as long as many lines are, and then some more of it'"
EVERY = 20


def script(calls: int) -> list[Answer]:
    answers = []
    for number in range(calls):
        path = f"part_{number % 100:02}.py"
        words = f"I read {path}, because step {number} needs its token; I expect it last."
        answers.append(Answer(words, [Call("read", {"file_path": path})]))
        if number % EVERY == EVERY - 1:
            document = {"done": f"{number + 1} steps", "open": "the rest", "went_wrong": "nothing"}
            answers.append(Answer(f"{number + 1} steps are done.", [Call("micro_handoff", document)]))
    if calls:
        answers.append(Answer("Done."))
    flood = Answer("I run yes, because it floods; I expect much.", [Call("bash", {"command": FLOOD})])
    return [*answers, Answer(PARAGRAPH * 30_000), flood, Answer("It was stopped.")]


def serve(calls: int) -> None:
    with Model(script(calls)) as model:
        print(model.url, flush=True)
        sys.stdin.read()


@contextlib.contextmanager
def model(calls: int) -> Iterator[str]:
    command = [sys.executable, __file__, "--serve", str(calls)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


class Place:
    def __init__(self, folder: Path, url: str) -> None:
        self.tree = folder / "tree"
        self.tree.mkdir()
        for number in range(100):
            rows = "".join(f"row_{n} = {n * (number + 3)}\n" for n in range(60))
            (self.tree / f"part_{number:02}.py").write_text(f"{rows}token_{number} = 'value-{number}'\n")
        self.environment = {
            **os.environ,
            "HOME": str(folder),
            "CUTLINE_RECORD": str(folder / "record.db"),
            "CUTLINE_MODEL": MODEL,
            "LC_ALL": "C.UTF-8",
            "TERM": "xterm-256color",
        }
        self.command = [sys.executable, "-m", "cutline", "agent", "--approve", "auto", "--base-url", url]

    def logged(self) -> int:
        """Bytes of the sessions' logs: a stopped turn's words are there."""
        return sum(path.stat().st_size for path in (self.tree.parent / "agent").glob("*.jsonl"))

    def headless(self, text: str) -> None:
        subprocess.run(
            [*self.command, "-p", text], cwd=self.tree, env=self.environment, check=True, capture_output=True
        )

    @contextlib.contextmanager
    def screen(self, *words: str) -> Iterator["Screen"]:
        pid, terminal = pty.fork()
        if pid == 0:
            termios.tcsetwinsize(0, (30, 100))
            os.chdir(self.tree)
            os.execve(sys.executable, [*self.command, *words], self.environment)
        screen = Screen(terminal)
        try:
            yield screen
        finally:
            os.kill(pid, signal.SIGKILL)
            used = os.wait4(pid, 0)[2]
            screen.processor = used.ru_utime + used.ru_stime
            os.close(terminal)


class Screen:
    def __init__(self, terminal: int) -> None:
        self.terminal = terminal
        self.began = time.perf_counter()
        self.bytes = 0
        self.processor = 0.0
        """Seconds that the agent's process used; known when it has ended."""

    def press(self, text: str) -> None:
        os.write(self.terminal, text.encode())

    def read(self, seconds: float) -> bytes:
        if not select.select([self.terminal], [], [], max(0.0, seconds))[0]:
            return b""
        data = os.read(self.terminal, 1 << 16)
        self.bytes += len(data)
        return data

    def until(self, text: str, seconds: float = 60.0) -> float:
        """Seconds since now until a text comes."""
        began, mark, seen = time.perf_counter(), text.encode(), b""
        while mark not in seen:
            if time.perf_counter() - began > seconds:
                raise TimeoutError(f"{text!r} did not come: {seen[-500:]!r}")
            seen = seen[-100:] + self.read(1.0)
        return time.perf_counter() - began

    def drain(self, seconds: float) -> None:
        end = time.perf_counter() + seconds
        while (left := end - time.perf_counter()) > 0:
            self.read(left)

    def echo(self, keys: int) -> dict[str, float]:
        """Milliseconds from a key to its letter."""
        took, chance, began, before = [], random.Random(7), time.perf_counter(), self.bytes
        for number in range(keys):
            letter = LETTERS[number % len(LETTERS)]
            if number % 40 == 0:
                self.press("\x15")  # Ctrl-U: the line is empty again
            self.drain(chance.uniform(0.02, 0.07))
            self.press(letter)
            took.append(1e3 * self.until(letter))
        took.sort()
        at = lambda share: took[min(keys - 1, int(share * keys))]  # noqa: E731
        seconds = time.perf_counter() - began
        self.press("\x15")
        return {
            "median": statistics.median(took),
            "p95": at(0.95),
            "longest": took[-1],
            "drawn_kb_s": (self.bytes - before) / 1e3 / seconds,
        }


def starts(place: Place, number: int, *words: str) -> dict[str, float]:
    took, ready, bare, processor = [], [], [], []
    for _ in range(number):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import asyncio, json, rich.console"], check=True)
        bare.append(time.perf_counter() - began)
        with place.screen(*words) as screen:
            screen.until("›")
        processor.append(screen.processor)
        with place.screen(*words) as screen:
            took.append(screen.until("›"))
            screen.until("ready")
            ready.append(time.perf_counter() - screen.began)
    middle = lambda times: 1e3 * statistics.median(times)  # noqa: E731
    return {
        "prompt": middle(took),
        "least": 1e3 * min(took),
        "most": 1e3 * max(took),
        "open": middle(ready),
        "bare": middle(bare),
        "processor": middle(processor),
    }


def measured(calls: int, keys: int, number: int) -> dict[str, dict[str, float]]:
    with tempfile.TemporaryDirectory() as folder, model(calls) as url:
        place = Place(Path(folder), url)
        words = ()
        if calls:
            place.headless("Go.")
            words = ("--resume",)
        told = {"start": starts(place, number, *words)}
        with place.screen(*words) as screen:
            screen.until("ready")
            screen.drain(2.0)
            told["idle"] = screen.echo(keys)
            before, since = place.logged(), time.perf_counter()
            screen.press("go on\r")
            screen.until("It says one")
            screen.drain(0.5)
            told["text streams"] = screen.echo(keys)
            screen.press("\x03")
            screen.drain(0.2)
            screen.press("\x03")
            screen.until("you stopped the turn")
            told["text streams"]["read_kb_s"] = (place.logged() - before) / 1e3 / (time.perf_counter() - since)
            screen.drain(1.0)
            screen.press("flood\r")
            screen.until("bash runs")
            screen.drain(0.5)
            told["a tool prints"] = screen.echo(keys)
    return told


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--keys", type=int, default=200)
    options.add_argument("--starts", type=int, default=7)
    options.add_argument("--calls", type=int, default=1_000)
    options.add_argument("--json", action="store_true")
    options.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.serve is not None:
        serve(given.serve)
        return
    told = {}
    for calls in (0, given.calls):
        told[str(calls)] = figures = measured(calls, given.keys, given.starts)
        if not given.json:
            shown(calls, figures)
    if given.json:
        print(json.dumps(told))


def shown(calls: int, figures: dict[str, dict[str, float]]) -> None:
    one = figures["start"]
    print(f"behind {calls:,} calls")
    print(
        f"  to the prompt {one['prompt']:.0f} ms ({one['least']:.0f} to {one['most']:.0f}),"
        f" processor time {one['processor']:.0f} ms, session open {one['open']:.0f} ms;"
        f" Python with rich alone {one['bare']:.0f} ms"
    )
    for what, one in figures.items():
        if what != "start":
            print(
                f"  a key, {what:<14} median {one['median']:5.1f} ms  95 % within {one['p95']:5.1f} ms"
                f"  longest {one['longest']:5.1f} ms  drawn {one['drawn_kb_s']:.0f} KB/s"
                + (f"  read {one['read_kb_s']:.0f} KB/s" if "read_kb_s" in one else ""),
                flush=True,
            )


if __name__ == "__main__":
    main()
