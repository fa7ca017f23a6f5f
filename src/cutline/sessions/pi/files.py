"""A file that counts only when it is whole: written under a temporary name, proven, made durable, then renamed.

Law: nothing but its owner can read it, from its first moment on, and whatever goes wrong, nothing is left behind.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from ...errors import InputError

_TEMPORARY = ".cutline-tmp"


def write_file(final: Path, lines: Iterable[bytes], prove: Callable[[Path], None]) -> int:
    """Write a new file of mode 0600 and give its size in bytes.

    Args:
        final: its name; nothing may stand there.
        lines: what it holds.
        prove: called with the finished temporary file; what it raises ends the writing.

    Raises:
        InputError: it can't be written.
    """
    folder = final.parent
    temporary = folder / f".{final.stem}{_TEMPORARY}"
    _clear_left_overs(folder)
    try:
        with _create(temporary) as handle:
            for line in lines:
                handle.write(line)
            handle.flush()
            os.fsync(handle.fileno())
            prove(temporary)
        size = temporary.stat().st_size
        temporary.rename(final)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(f"{folder}: the copy can't be written ({reason}); nothing was left behind") from None
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
    with suppress(OSError):
        handle_ = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle_)
        finally:
            os.close(handle_)
    return size


def _create(path: Path) -> BinaryIO:
    handle = os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb")
    with suppress(ImportError):
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX)
    return handle


def _clear_left_overs(folder: Path) -> None:
    """Remove temporary files of runs that were killed: those that nobody holds a lock on."""
    try:
        import fcntl
    except ImportError:
        return
    for path in folder.glob(f".*{_TEMPORARY}"):
        with suppress(OSError), path.open("rb") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()
