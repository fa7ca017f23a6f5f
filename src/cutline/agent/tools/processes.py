"""Processes that a session started: found by the mark in their environment, and ended.

Law: nothing is signalled that does not bear this session's mark or descend from what does; where the system lets it
(Linux), a process is held before it is looked at again, so that a number given anew is never hit.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

MARK = "CUTLINE_CALL"
"""The variable that every command of a session carries: `SESSION.CALL`."""

_ROUNDS = 40  # what is looked for may start others meanwhile


def end(mark: str, root: int | None = None) -> int:
    """Kill every process that bears a mark, and what descends from it; waits until they are gone, for some seconds.

    Args:
        mark: the variable's value, or its beginning up to and with a dot.
        root: a process known to be ours that was not waited for yet; its session (group, without /proc) goes too.

    Returns:
        How many were signalled.
    """
    hit: set[int] = set()
    for tried in range(_ROUNDS):
        held = {pid: _hold(pid) for pid in ours(mark, root)}
        if not held:
            break
        still = set(ours(mark, root))
        for pid, handle in held.items():
            with suppress(ProcessLookupError, PermissionError):
                if pid in still:
                    _kill(pid, handle)
                    hit.add(pid)
            if handle is not None:
                os.close(handle)
        time.sleep(min(0.002 * 2**tried, 0.1))
    return len(hit)


def ours(mark: str, root: int | None = None) -> list[int]:
    """The living processes that bear a mark or belong to the root's session, with all that descends from them."""
    table = _table()
    found = {pid for pid, (_, session) in table.items() if pid == root or session == root or _bears(pid, mark)}
    while more := {pid for pid, (parent, _) in table.items() if parent in found} - found:
        found |= more
    return sorted(found - {os.getpid()})


def _hold(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):  # no Linux, or an old one; or it is gone
        return None


def _kill(pid: int, handle: int | None) -> None:
    if handle is None:
        os.kill(pid, signal.SIGKILL)
    else:
        signal.pidfd_send_signal(handle, signal.SIGKILL)


def _table() -> dict[int, tuple[int, int]]:
    """Process id to (parent, session); the group stands for the session where only `ps` tells. Without zombies."""
    table = {}
    if Path("/proc/self/stat").exists():
        for entry in os.scandir("/proc"):
            if entry.name.isdigit():
                with suppress(OSError, ValueError, IndexError):
                    fields = Path(entry.path, "stat").read_text(errors="replace").rpartition(")")[2].split()
                    if fields[0] not in "ZX":
                        table[int(entry.name)] = (int(fields[1]), int(fields[3]))
        return table
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,pgid=,stat="], capture_output=True, text=True, check=False)
    for row in map(str.split, listed.stdout.splitlines()):
        if len(row) > 3 and row[3][0] != "Z":
            table[int(row[0])] = (int(row[1]), int(row[2]))
    return table


def _bears(pid: int, mark: str) -> bool:
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
    sign = f"{MARK}={mark}".encode()
    return any(part.startswith(sign) if mark.endswith(".") else part == sign for part in environment.split(b"\0"))
