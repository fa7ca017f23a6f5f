"""A recorded shell command, run again, and its difference to what was recorded.

Law: nothing runs that was not shown whole before; other tools' calls are never run. The directory is the project's,
the environment is this one's: what differs may differ for that reason, and the reader is told so.
"""

from __future__ import annotations

import difflib
import os
import re
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..recall import Recalled
from ..specifics import value_of

_SHELLS = frozenset(
    (
        *("bash", "shell", "sh", "zsh", "local_shell", "exec_command", "shell_command", "execute_bash"),
        *("run_shell_command", "run_command", "terminal", "run_in_terminal", "run_terminal_cmd"),
    )
)
_COMMANDS = ("command", "cmd", "script")
_WAIT_S = 120.0  # as long as Claude Code waits
_CODE = re.compile(
    r"\AExit code (\d+)(?:\n|\Z)|^(?:Process|Command) exited with code (\d+)\.?\n?|^<returncode>(\d+)</returncode>\n?"
    r"|^\[?The command completed with exit code (-?\d+)\.?\]?\n?|^Exit Code: (\d+)\n?"
    r"|^<(?:shellId: \d+ completed|exited) with exit code (\d+)>\n?",
    re.M,
)
_REMINDER = re.compile(r"\s*<system-reminder>.*?</system-reminder>\s*\Z", re.S)
_SHORTENED = re.compile(r"\[\d[\d,]* (?:characters|lines) truncated\]|<persisted-output>|Output too large")
_HEAD, _TAIL = 200, 160  # characters at a result's ends in which a client tells the exit code


@dataclass(frozen=True, slots=True)
class Command:
    """A recorded command and where it is run.

    Attributes:
        text: the command line, as it goes to the shell.
        words: its words, where it was recorded as a list and no shell stood between.
        directory: where it is run.
        seconds: how long it may take.
    """

    text: str
    words: tuple[str, ...]
    directory: Path
    seconds: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """What running it again gave.

    Attributes:
        code: its exit code.
        recorded: the recorded one; None where the result does not tell.
        difference: lines of a unified diff, from recorded to now; empty where the output is the same.
        shortened: the client had shortened the recorded result.
    """

    code: int
    recorded: int | None
    difference: tuple[str, ...]
    shortened: bool

    @property
    def same(self) -> bool:
        """The same output, and the same exit code as far as it was recorded."""
        return not self.difference and self.recorded in (None, self.code)


def exit_code(hit: Recalled) -> int | None:
    """The exit code that a result tells; None where it tells none."""
    found = _told(hit.call.result or "") if is_shell(hit.call.name) else None
    return None if found is None else int(next(group for group in found.groups() if group is not None))


def _told(result: str) -> re.Match[str] | None:
    """Where a client tells the exit code: at an end of the result; further in, it is what a command printed."""
    found = _CODE.search(result)
    return found if found and (found.start() < _HEAD or found.end() > len(result) - _TAIL) else None


def is_shell(name: str) -> bool:
    """Whether a tool runs shell commands, by the last part of its name."""
    return re.split(r"__|[.:/]", name.casefold())[-1] in _SHELLS


def command(hit: Recalled) -> Command:
    """What would be run again for a call.

    Raises:
        InputError: it is no shell command, ran in the background, or its directory is not there.
    """
    call = hit.call
    held = value_of(call.arguments)
    held = held if isinstance(held, dict) else {}
    given = next((held[key] for key in _COMMANDS if held.get(key)), None)
    if not is_shell(call.name) or not isinstance(given, str | list):
        raise InputError(f"{call.address} is a call of {call.name}; only shell commands can be run again")
    if held.get("run_in_background") is True or held.get("background") is True:
        raise InputError(f"{call.address} ran in the background: its result was not what it printed")
    if call.result is None:
        raise InputError(f"{call.address} was never answered: there is nothing to hold a new result against")
    words = tuple(given) if isinstance(given, list) and all(isinstance(word, str) for word in given) else ()
    if isinstance(given, list) and not words:
        raise InputError(f"{call.address}: its command is no list of words")
    if "\0" in "".join(words or given):
        raise InputError(f"{call.address}: its command holds a NUL, which no shell takes")
    where = next((held[key] for key in ("workdir", "cwd") if isinstance(held.get(key), str)), "")
    directory = Path(hit.project or ".", where)
    if not hit.project or not directory.is_dir():
        raise InputError(f"{call.address} ran in {directory if hit.project else 'an unknown directory'}, which is gone")
    milliseconds = held.get("timeout") or held.get("timeout_ms")
    seconds = milliseconds / 1000 if isinstance(milliseconds, int | float) and milliseconds > 0 else _WAIT_S
    return Command(given if isinstance(given, str) else " ".join(words), words, directory, min(seconds, 3600.0))


def run(hit: Recalled, wanted: Command) -> Outcome:
    """Run a command, its output and its errors in one stream, and hold it against what was recorded.

    Raises:
        InputError: it took too long, and was ended with all that it started, or can't be started.
    """
    shell = shutil.which("bash") or shutil.which("sh") or "/bin/sh"
    line: list[str] = list(wanted.words) or [shell, "-c", wanted.text]
    try:
        process = subprocess.Popen(
            line,
            cwd=wanted.directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        raise InputError(f"{line[0]}: {(error.strerror or str(error)).lower()}") from None
    try:
        output, _ = process.communicate(timeout=wanted.seconds)
    except BaseException as error:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:  # Windows: what it started goes on
            process.kill()
        process.communicate()
        if isinstance(error, subprocess.TimeoutExpired):
            raise InputError(f"it took longer than {wanted.seconds:g} s and was ended") from None
        raise
    recorded = hit.call.result or ""
    then, now = _lines(recorded), _lines(output.decode("utf-8", "replace"), bare=False)
    difference = tuple(difflib.unified_diff(then, now, "recorded", "now", lineterm="", n=2))
    code = exit_code(hit)
    if code is None and hit.call.name == "Bash" and not hit.call.error:
        code = 0  # Claude Code tells every other
    return Outcome(process.returncode, code, difference, _SHORTENED.search(recorded) is not None)


def _lines(text: str, bare: bool = True) -> list[str]:
    """Lines as they are compared: without what a client adds, and without white space at the text's and lines' ends."""
    if bare:
        text = _REMINDER.sub("", text)
        told = _told(text)
        text = text[: told.start()] + text[told.end() :] if told else text
    return [line.rstrip() for line in text.replace("\r\n", "\n").strip().split("\n")] if text.strip() else []


def as_json(outcome: Outcome) -> dict[str, Any]:
    """An outcome for programs."""
    return {
        "same": outcome.same,
        "exit_code": outcome.code,
        "recorded_exit_code": outcome.recorded,
        "shortened": outcome.shortened,
        "difference": list(outcome.difference),
    }
