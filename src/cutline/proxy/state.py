"""A run's own folder and the status in it: what `cutline status`, the hooks and the tools read while it runs.

Law: one folder a run, 0700, in one folder of the user's; written whole or not at all; no key and no token in it.
It is gone when the run ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from .. import events
from ..errors import InputError
from .ledger import Account

VARIABLE = "CUTLINE_RUN"
"""Names the run's folder, in the environment of the client and what it starts."""
_STATUS = "status.json"


def make(pid: int) -> Path:
    """A new run's folder.

    Raises:
        InputError: the place for it belongs to somebody else.
    """
    home = _home()
    home.mkdir(mode=0o700, exist_ok=True)
    held = home.lstat()
    if not stat.S_ISDIR(held.st_mode) or (hasattr(os, "getuid") and held.st_uid != os.getuid()):
        raise InputError(f"{home}: belongs to somebody else; set TMPDIR to a folder of your own")
    home.chmod(0o700)
    return Path(tempfile.mkdtemp(prefix=f"run-{pid}-", dir=home))


def remove(folder: Path) -> None:
    """Remove a run's folder."""
    shutil.rmtree(folder, ignore_errors=True)


def running() -> Iterator[tuple[Path, dict[str, Any]]]:
    """Folders and statuses of the runs that are alive, the newest first; what dead ones left is removed."""
    home = _home()
    if not home.is_dir():
        return
    for folder in sorted(home.glob("run-*"), key=lambda path: path.stat().st_mtime, reverse=True):
        told = read(folder)
        pid = folder.name.split("-")[1]
        if pid.isdecimal() and _alive(int(pid)):
            yield folder, told
        else:
            remove(folder)


def write(folder: Path, told: dict[str, Any]) -> None:
    """Write a run's status."""
    part = folder / (_STATUS + ".part")
    with contextlib.suppress(OSError):  # a full disk must not end the run
        part.write_text(json.dumps(told), encoding="utf-8")
        part.replace(folder / _STATUS)


def read(folder: Path) -> dict[str, Any]:
    """A run's status; empty before its first request."""
    try:
        value = json.loads((folder / _STATUS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def of(account: Account, channels: events.Channels | None, faults: Sequence[str], now: float) -> dict[str, Any]:
    """A session's status.

    Args:
        account: its sums.
        channels: how its calls are narrated, where that was judged.
        faults: what went wrong besides.
        now: seconds since the epoch.
    """
    return {
        "at": now,
        "session": account.session,
        "model": account.model,
        "turns": account.turns + account.agent_turns,
        "sent": account.sent,
        "whole": account.whole,
        "last_sent": len(account.last_sent),
        "last_whole": len(account.last or b""),
        "last_tokens": account.last_tokens,
        "checkpoints": len(account.steps),
        "seam": account.last_seam,
        "compactions": account.compactions,
        "held_back": account.held_back,
        "narrated": None if channels is None else [channels.calls - channels.silent, channels.calls],
        "refusals": list(account.refusals),
        "faults": [*account.faults, *faults],
    }


def _home() -> Path:
    owner = str(os.getuid()) if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
    return Path(tempfile.gettempdir()) / f"cutline-{owner}"


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
