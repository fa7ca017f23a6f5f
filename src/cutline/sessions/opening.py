"""What every client's files are opened, listed and named with.

Law: looking is cheap and changes nothing; what can't be opened is told in one line that says what to do.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from ..errors import InputError

EDGE = 1 << 16
"""Bytes of a file's beginning, and of its end, that a listing looks at."""
_LONGEST = 200


def open_file(path: Path, hint: str = "type: cutline ls") -> tuple[BinaryIO, int]:
    """Open a regular file (symlinks are followed) and say how many bytes it has now.

    Raises:
        InputError: it can't be opened; `hint` ends the line.
    """
    try:
        found = path.stat()
        if stat.S_ISDIR(found.st_mode):
            raise InputError(f"{path}: is a directory; give one session file in it, or type: cutline ls")
        if not stat.S_ISREG(found.st_mode):
            raise InputError(f"{path}: is no regular file; {hint}")
        handle = path.open("rb")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; {hint}") from None
    except OSError as error:
        raise InputError(f"{path}: can't be read ({error.strerror}); check its permissions") from None
    except ValueError as error:  # a NUL in the name
        raise InputError(f"{str(path)!r}: can't be a file's name ({error}); {hint}") from None
    return handle, os.fstat(handle.fileno()).st_size


def fetching(handle: BinaryIO, path: Path) -> Callable[[int, int], bytes]:
    """A function that reads bytes of a file again, by offset and length; it raises InputError where they are gone."""

    def fetch(offset: int, length: int) -> bytes:
        handle.seek(offset)
        found = handle.read(length)
        if len(found) != length:
            raise InputError(f"{path}: became shorter while it was read; try again")
        return found

    return fetch


def regular(path: Path) -> os.stat_result | None:
    """The state of a regular file (symlinks are followed); None for anything else."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found if stat.S_ISREG(found.st_mode) else None


def edges(path: Path, size: int) -> tuple[bytes, bytes]:
    """The first and the last 64 KB of a file, which don't overlap; nothing where it can't be read."""
    try:
        with path.open("rb") as handle:
            head = handle.read(EDGE)
            if size <= EDGE:
                return head, b""
            handle.seek(max(EDGE, size - EDGE))
            return head, handle.read(EDGE)
    except OSError:
        return b"", b""


def one_line(text: str) -> str:
    """One printable line of no more than 200 characters: no white space but blanks, no lone surrogates."""
    text = "".join(letter if letter.isprintable() else " " for letter in text[: 4 * _LONGEST])
    return " ".join(text.split())[:_LONGEST]
