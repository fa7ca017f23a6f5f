"""What the kinds have in common that are read and shown only: trajectories, logs, Markdown.

Law: nothing is written, since no client goes on in a copy of one. Looking for them is cheap and changes nothing; what
can't be read is told in one line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

from ..errors import InputError, Unreadable
from ..plan import Plan
from .damage import some
from .model import Copy, Prove, Session
from .opening import edges, one_line, open_file, regular
from .stream import Stream

_SOME = 8  # names that a refusal lists
_LONGEST = 1 << 24  # bytes of a line of text
_MOST = 5_000  # files that a listing looks at
_ASKED = re.compile(rb'"role"\s*:\s*"user"\s*,\s*"content"\s*:\s*("(?:[^"\\]|\\.)*")').search
_DIGITS = re.compile(r"(\d+)")


def sealed(what: str) -> str:
    """Why a session of this kind is not cut, and what to do instead; `what` it is, as in "a trajectory"."""
    return f"{what} is read and shown only; --dry-run shows what a cut would leave, “cutline move” goes on elsewhere"


def marked(what: str) -> str:
    """Why Markdown is not cut, and what to do instead; `what` it is."""
    return f"{what} holds no tool blocks, so nothing in it can be cut; “cutline move” goes on with its words elsewhere"


def write(session: Session, plan: Plan, title: str, prove: Prove) -> Copy:
    """Write nothing. Raises InputError: why, and what to do instead."""
    raise InputError(f"{session.path}: {session.sealed}")


def reread(copy: Path, id: str, notice: str, before: bytes) -> tuple[bytes, str | None]:
    """There is no copy. Raises InputError."""
    raise InputError(f"{copy}: is no copy; give a session")


def resume(id: str) -> list[str]:
    """No command goes on in it."""
    return []


# ------------------------------------------------------------------------------------------- finding them


@dataclass(frozen=True)
class Listed:
    """A file as a listing shows it (the attributes are `model.SessionFile`'s).

    `titled` says by a file's first 64 KB what it is about.
    """

    path: Path
    id: str
    folder: str
    size: int
    mtime: float
    titled: Callable[[bytes], str] = field(repr=False, compare=False)
    talks: bool = True

    @cached_property
    def title(self) -> str:
        """What it is about; "" where that is not near its beginning."""
        return one_line(self.titled(edges(self.path, 0)[0]))


def listed(
    paths: Iterable[Path], folder: Callable[[Path], str], titled: Callable[[bytes], str], *, ending: str = ""
) -> list[Listed]:
    """The regular files among some paths, the newest first; an id is a file's name without its ending."""
    found = []
    for path in paths:
        state = regular(path)
        if state and state.st_size:
            name = path.name.removesuffix(ending) if ending else path.stem
            found.append(Listed(path, name, folder(path), state.st_size, state.st_mtime, titled))
    return sorted(found, key=lambda one: (-one.mtime, str(one.path)))


def first_words(head: bytes) -> str:
    """The first words of a user's message that stand whole in the beginning of a chat's JSON; "" for none."""
    found = _ASKED(head)
    try:
        return str(json.loads(found[1])) if found else ""
    except ValueError:
        return ""


def below(folder: Path, *endings: str) -> list[Path]:
    """The files of these endings in a folder and the folders in it; no more than a listing has time for."""
    found: list[Path] = []
    waiting = [folder]
    looked = 0
    while waiting and looked < _MOST:
        try:
            entries = sorted(waiting.pop().iterdir())
        except OSError:
            continue
        for path in entries:
            looked += 1
            if path.name.endswith(endings):
                found.append(path)
            elif path.is_dir() and not path.is_symlink():
                waiting.append(path)
    return found


def upward(directory: Path) -> list[Path]:
    """A directory, and those above it up to the one that git calls the project's; alone where there is none."""
    above = [directory, *directory.parents]
    for number, one in enumerate(above):
        if (one / ".git").exists():
            return above[: number + 1]
    return above[:1]


# ------------------------------------------------------------------------------------------- reading them


@contextmanager
def reading(path: Path, what: str) -> Iterator[BinaryIO]:
    """Open a file; what is wrong with it is told as what it should have been.

    Raises:
        InputError: it can't be opened, is empty, or the body of the `with` finds it unreadable.
    """
    hint = f"give {what}, or type: cutline ls"
    handle, size = open_file(path, hint)
    with handle:
        if not size:
            raise InputError(f"{path}: the file is empty; {hint}")
        try:
            yield handle
        except Unreadable as error:
            raise InputError(f"{path}: {error}; {hint}") from None
        except RecursionError:
            raise InputError(f"{path}: nested too deeply to be read safely; {hint}") from None
        except OSError as error:
            raise InputError(f"{path}: can't be read ({error.strerror or error}); check it, and try again") from None


@contextmanager
def document(path: Path, what: str) -> Iterator[Stream]:
    """Open a file of JSON as a stream (see `reading`)."""
    with reading(path, what) as handle:
        yield Stream(handle.read)


class Lines:
    """The lines of a text, one by one, without their ends; bytes that are no UTF-8 become U+FFFD and are counted."""

    def __init__(self, handle: BinaryIO) -> None:
        """Begin to read."""
        self._handle = handle
        self._mended: list[int] = []

    def __iter__(self) -> Iterator[str]:
        """Each line in its turn."""
        for number, raw in enumerate(iter(self._line, b""), 1):
            try:
                text = raw.decode("utf-8")
            except UnicodeDecodeError:
                text = raw.decode("utf-8", "replace")
                self._mended.append(number)
            yield text.removesuffix("\n").removesuffix("\r")

    def damage(self) -> list[str]:
        """What could not be read, one sentence each."""
        if not self._mended:
            return []
        return [f"Bytes that are no UTF-8 were read as U+FFFD (line {some(self._mended)})."]

    def _line(self) -> bytes:
        raw = self._handle.readline(_LONGEST)
        if len(raw) == _LONGEST:
            raise Unreadable(f"a line of more than {_LONGEST:,} bytes", self._handle.tell() - _LONGEST)
        return raw


def nothing(path: Path, why: str, what: str) -> InputError:
    """What is said of a file that can be read and holds no session."""
    return InputError(f"{path}: {why}; give {what}, or type: cutline ls")


def choose(path: Path, noun: str, names: Sequence[str], wanted: str) -> InputError:
    """What is said where a file holds several and none, or not one of them, was named (``path#name``)."""
    some = ", ".join(one_line(name)[:40] for name in sorted(names, key=_natural)[:_SOME])
    held = f"{some}{', …' if len(names) > _SOME else ''}"
    if wanted:
        return InputError(f"{path}: no {noun} “{one_line(wanted)[:40]}” among its {len(names):,}; give one of: {held}")
    first = one_line(min(names, key=_natural))[:40]
    return InputError(
        f"{path}: holds {len(names):,} {noun}s; name one, as in “{path.name}#{first}” (there are: {held})"
    )


def _natural(name: str) -> list[tuple[int, int, str]]:
    """Numbers by their value, all else by its letters."""
    return [(0, int(part[:18]), "") if part.isdigit() else (1, 0, part) for part in _DIGITS.split(name)]
