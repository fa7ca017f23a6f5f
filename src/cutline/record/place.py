"""Where the record lies, and that nobody else can read it: a file of mode 0600 in a folder of mode 0700.

Law: what belongs to somebody else, or leads elsewhere, is refused; what is ours and too open is mended and said.
An existing record is never opened here: closing a file drops the locks that SQLite holds on it in this process.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from ..errors import InputError
from .settings import RETENTION_DAYS

_BESIDE = ("", "-wal", "-shm", "-journal")
"""What SQLite puts beside a file; it gives each the mode of the file itself."""


def default_path() -> Path:
    """Where the record lies by default: this user's data folder, by the customs of the system."""
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        given = os.environ.get("XDG_DATA_HOME", "")
        base = Path(given) if Path(given).is_absolute() else Path.home() / ".local" / "share"
    return base / "cutline" / "record.db"


def greeting(path: str | os.PathLike[str]) -> str:
    """What is said once, when a record is begun: where it lies, who can read it, how long it keeps a session."""
    return (
        f"whole histories are kept in {os.fspath(path)} (yours alone), each session for {RETENTION_DAYS} days behind"
        " its last request; cutline record retention changes that, --no-record keeps none"
    )


def files(path: Path) -> list[Path]:
    """The record's file and those beside it, as far as they are there."""
    return [beside for ending in _BESIDE if (beside := path.with_name(path.name + ending)).exists()]


def prepare(path: Path) -> tuple[str, ...]:
    """See to it that the record has a folder, and that both are this user's alone.

    Returns:
        What had to be mended, a line each.

    Raises:
        InputError: a symlink, something that is no file, or another owner's.
        OSError: the system refuses.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return (*_folder(path.parent, path.name), *_files(path))


def publish(path: Path, make: Callable[[Path], None]) -> None:
    """Make a new record under a passing name and give it its own when it is whole, unless there is one by then.

    So nobody ever meets half a record: not another process, and not the next one after a kill.

    Args:
        path: what it will be called.
        make: fills a new, empty file of mode 0600.
    """
    with tempfile.TemporaryDirectory(prefix=f"{path.name}.", dir=path.parent, ignore_cleanup_errors=True) as folder:
        passing = Path(folder) / path.name
        os.close(os.open(passing, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        make(passing)
        try:
            os.link(passing, path)
        except FileExistsError:
            pass  # another process was faster
        except OSError:  # a file system without links
            if not os.path.lexists(path):
                passing.rename(path)


def _files(path: Path) -> list[str]:
    """Look at the record's files, as far as they are there (see `prepare`)."""
    notes = []
    for ending in _BESIDE:
        beside = path.with_name(path.name + ending)
        try:
            found = beside.lstat()
        except FileNotFoundError:
            continue
        _refuse(beside, found, stat.S_ISREG(found.st_mode), "file")
        if _open(found, 0o077):
            try:
                beside.chmod(0o600)
            except FileNotFoundError:
                continue  # SQLite took it away in the meantime
            notes.append(f"{beside} was readable by others (mode {_mode(found)}); it is 0600 now")
    return notes


def _folder(folder: Path, name: str) -> list[str]:
    found = folder.lstat()
    _refuse(folder, found, stat.S_ISDIR(found.st_mode), "folder")
    if not _open(found, 0o077):
        return []
    # A folder that holds more than the record is not ours to close: a home, a project.
    if folder.name == "cutline" or all(entry.name.startswith(name) for entry in folder.iterdir()):
        folder.chmod(0o700)
        return [f"{folder} was open to others (mode {_mode(found)}); it is 0700 now"]
    if _open(found, 0o022):
        raise InputError(
            f"{folder} can be changed by others (mode {_mode(found)}); give the record a folder of its own"
        )
    return []


def _refuse(path: Path, found: os.stat_result, right: bool, kind: str) -> None:
    if stat.S_ISLNK(found.st_mode):
        raise InputError(f"{path} is a symlink; the record must lie where its path says: move it, or name another")
    if not right:
        raise InputError(f"{path} is no {kind}; move it away, or name another path for the record")
    if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
        raise InputError(f"{path} belongs to another user (id {found.st_uid}); name another path for the record")


def _open(found: os.stat_result, bits: int) -> bool:
    return hasattr(os, "geteuid") and bool(found.st_mode & bits)  # Windows' modes say nothing of others


def _mode(found: os.stat_result) -> str:
    return f"{stat.S_IMODE(found.st_mode):04o}"
