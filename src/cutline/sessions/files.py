"""A file that counts only when it is whole: written under a temporary name, proven, made durable, then renamed.

Law: nothing but its owner can read it, from its first moment on, and whatever goes wrong, nothing is left behind. A
temporary file is locked while it is written and proven, so that what nobody holds a lock on is a killed run's.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from ..errors import InputError

TEMPORARY = ".cutline-tmp"


def write_file(final: Path, lines: Iterable[bytes], prove: Callable[[Path], None], *, ending: str = "") -> int:
    """Write a new file of mode 0600 and give its size in bytes.

    Args:
        final: its name; nothing may stand there.
        lines: what it holds.
        prove: called with the finished temporary file; what it raises ends the writing.
        ending: of the temporary file's name, where reading it depends on that.

    Raises:
        InputError: it can't be written.
    """
    folder = final.parent
    temporary = folder / f".{final.stem}{TEMPORARY}{ending}"
    clear_left_overs(folder, f".*{TEMPORARY}*")
    try:
        with create(temporary) as handle:
            for line in lines:
                handle.write(line)
            handle.flush()
            os.fsync(handle.fileno())
            prove(temporary)
        size = temporary.stat().st_size
        temporary.rename(final)
    except OSError as error:
        raise unwritable(folder, error) from None
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
    sync(folder)
    return size


def unwritable(folder: Path, error: OSError) -> InputError:
    """What is said where a copy can't be written into a folder."""
    reason = (error.strerror or str(error)).lower()
    return InputError(f"{folder}: the copy can't be written ({reason}); nothing was left behind")


def create(path: Path) -> BinaryIO:
    """A new file that only its owner can read, from its first moment and whatever the umask; it is locked."""
    handle = os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb")
    with suppress(ImportError):
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX)
    return handle


def clear_left_overs(folder: Path, pattern: str, remove: Callable[[Path], None] = Path.unlink) -> None:
    """Remove temporary files of runs that were killed: those that nobody holds a lock on."""
    try:
        import fcntl
    except ImportError:
        return
    for path in folder.glob(pattern):
        with suppress(OSError), path.open("rb") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove(path)


def sync(folder: Path) -> None:
    """Make a folder's new names durable."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
