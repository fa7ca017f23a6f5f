"""A child process that has the terminal to itself. Law: signals reach it, its end is ours, and ^Z stops both.

Signals are taken from before the first thing is made until after the last is said: before there is a child they end
us in good order, while it runs they are the child's, behind its end they are waited out.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType, TracebackType

_NAMES = ("SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT")
_OF_THE_TERMINAL = ("SIGINT", "SIGQUIT")  # typed at it, they have reached the child already


class Terminal:
    """A context manager that takes the signals; `run` runs a child in it.

    Raises:
        SystemExit: in the context, where a signal comes before there is a child: 128 and its number.
    """

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._before: dict[int, signal.Handlers | int | None] = {}

    def __enter__(self) -> Terminal:
        for name in _NAMES:
            if hasattr(signal, name):
                number = getattr(signal, name)
                self._before[number] = signal.signal(number, self._take)  # type: ignore[assignment]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _take(self, number: int, _: FrameType | None) -> None:
        child = self._child
        if child is None:
            sys.exit(128 + number)
        # On Windows ^C reaches everything at the terminal by itself, and can't be sent to one process.
        by_itself = sys.platform == "win32" or sys.stdin.isatty()
        typed = signal.Signals(number).name in _OF_THE_TERMINAL and by_itself
        if not typed and child.poll() is None:
            child.send_signal(number)

    def run(self, command: Sequence[str], environment: Mapping[str, str], directory: Path | None = None) -> int:
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
        self._child = subprocess.Popen(command, env=dict(environment), cwd=directory)
        code = _wait(self._child)
        return code if code >= 0 else 128 - code


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
