"""A run's own folder and the status in it: what `cutline status`, the hooks and the tools read while it runs.

Law: one folder a run, 0700, in one folder of the user's; written whole or not at all. The status holds no key and no
token; the settings beside it hold the run's token, and what the user's own settings hold. The folder is gone when the
run ends, and what a killed run left with the next one.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

from .. import events
from ..errors import InputError
from .ledger import Account

VARIABLE = "CUTLINE_RUN"
"""Names the run's folder, in the environment of the client and what it starts."""
_STATUS, _LOCK = "status.json", "lock"
_NAME = re.compile(r"run-(\d+)-\w{8}\Z")


@dataclass(frozen=True, slots=True)
class Folder:
    """A run's own folder.

    Attributes:
        path: where it is.
        lock: a file in it that is held open and locked while the run lives: so others see that it does.
    """

    path: Path
    lock: BinaryIO


def make(pid: int) -> Folder:
    """A new run's folder; what dead runs left is removed.

    Raises:
        InputError: the place for it belongs to somebody else, or can't be written.
    """
    home = _home()
    try:
        home.mkdir(mode=0o700, exist_ok=True)
        if not _ours(home):
            raise InputError(f"{home}: belongs to somebody else; set TMPDIR to a folder of your own")
        home.chmod(0o700)
        for folder in _folders(home):
            if not _alive(folder):
                remove(folder)
        made = Path(tempfile.mkdtemp(prefix=f"run-{pid}-", dir=home))
        lock = (made / _LOCK).open("wb")
    except OSError as error:
        raise InputError(
            f"{home}: {(error.strerror or str(error)).lower()}; set TMPDIR to a folder of your own"
        ) from None
    if fcntl is not None:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return Folder(made, lock)


def remove(folder: Path) -> None:
    """Remove a run's folder."""
    shutil.rmtree(folder, ignore_errors=True)


def running() -> Iterator[tuple[Path, dict[str, Any]]]:
    """Folders and statuses of the runs that are alive, the newest first; what dead ones left is removed."""
    home = _home()
    if not _ours(home):
        return
    for folder in _folders(home):
        if _alive(folder):
            yield folder, read(folder)
        else:
            remove(folder)


def _folders(home: Path) -> list[Path]:
    """The runs' folders, the newest first: by their names, ours, and no links."""
    found = []
    for folder in home.iterdir():
        if _NAME.match(folder.name) and _ours(folder):
            with contextlib.suppress(OSError):  # one that ends just now
                found.append((folder.stat().st_mtime, folder))
    return [folder for _, folder in sorted(found, reverse=True)]


def _ours(folder: Path) -> bool:
    """Whether something is a folder, no link to one, and belongs to this user."""
    try:
        held = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(held.st_mode) and (not hasattr(os, "getuid") or held.st_uid == os.getuid())


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


def of(
    account: Account, channels: events.Channels | None, faults: Sequence[str], now: float, notes: Sequence[str] = ()
) -> dict[str, Any]:
    """A session's status.

    Args:
        account: its sums.
        channels: how its calls are narrated, where that was judged.
        faults: what went wrong besides.
        now: seconds since the epoch.
        notes: what passes without being cut, and why.
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
        "notes": list(notes),
    }


def _home() -> Path:
    owner = str(os.getuid()) if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
    return Path(tempfile.gettempdir()) / f"cutline-{owner}"


def _alive(folder: Path) -> bool:
    """Whether a folder's run lives: it holds the lock; on Windows, what it holds open can't be removed."""
    lock = folder / _LOCK
    try:
        if fcntl is None:
            lock.unlink()
            return False
        with lock.open("rb") as held:
            fcntl.flock(held, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError as error:
        return fcntl is None and isinstance(error, PermissionError)
    return False
