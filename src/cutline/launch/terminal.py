"""A child process that has the terminal to itself. Law: signals reach it, its end is ours, and ^Z stops both."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any


def run(command: Sequence[str], environment: Mapping[str, str], directory: Path | None = None) -> int:
    """Run a command on this terminal and wait for its end.

    Args:
        command: what to run.
        environment: the whole of it.
        directory: where; None for here.

    Returns:
        Its exit code; 128 and the signal's number where a signal ended it.

    Raises:
        OSError: it can't be started.
    """
    child = subprocess.Popen(command, env=dict(environment), cwd=directory)
    before = {number: signal.signal(number, handler) for number, handler in _handlers(child).items()}
    try:
        code = _wait(child)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return code if code >= 0 else 128 - code


def _handlers(child: subprocess.Popen[bytes]) -> dict[int, Any]:
    def pass_on(number: int, _: FrameType | None) -> None:
        if child.poll() is None:
            child.send_signal(number)

    def leave(_: int, __: FrameType | None) -> None:
        """The terminal has told the client too: what ^C means is the client's to say."""

    found: dict[int, Any] = {signal.SIGTERM: pass_on}
    on_terminal = sys.stdin.isatty()
    found[signal.SIGINT] = leave if on_terminal else pass_on
    for name in ("SIGHUP", "SIGQUIT"):
        if hasattr(signal, name):
            found[getattr(signal, name)] = leave if name == "SIGQUIT" and on_terminal else pass_on
    return found


def _wait(child: subprocess.Popen[bytes]) -> int:
    if not hasattr(os, "WUNTRACED"):
        return child.wait()
    while True:
        try:
            pid, status = os.waitpid(child.pid, os.WUNTRACED)
        except ChildProcessError:
            return child.wait()
        if pid == child.pid and os.WIFSTOPPED(status):
            # As a rule ^Z stops the whole group, us too, and this comes to light when both go on again. A client
            # that stopped by itself has the shell wait for us to do the same.
            if not _goes_on(child.pid):
                os.kill(os.getpid(), signal.SIGSTOP)
                os.kill(child.pid, signal.SIGCONT)
            continue
        code = os.waitstatus_to_exitcode(status)
        child.returncode = code
        return code


def _goes_on(pid: int) -> bool:
    """Whether a child that was seen to stop has been told to go on since."""
    found, status = os.waitpid(pid, os.WNOHANG | os.WCONTINUED)
    return found == pid and os.WIFCONTINUED(status)
