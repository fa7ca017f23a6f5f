"""A session's log: one file of JSON lines, mode 0600, each line on the disk before its event is acted on.

Law: lines are only added. A line is whole or it is not there: what a kill left half written at the end is cut off when
the log is opened again. One process at a time writes a log.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..record import default_path
from . import events as ev


def folder() -> Path:
    """Where the sessions' logs lie: beside the record."""
    named = os.environ.get("CUTLINE_RECORD", "")
    return (Path(named).absolute() if named else default_path()).parent / "agent"


def new_id() -> str:
    """A session's id: 12 hex digits."""
    return secrets.token_hex(6)


@dataclass(frozen=True, slots=True)
class Kept:
    """A session that is kept.

    Attributes:
        session: its id.
        path: its log.
        begun: how it began.
        at: when, seconds since the epoch.
        last: its last event.
        events: how many.
        first: the human's first words; "" where there are none yet.
    """

    session: str
    path: Path
    begun: ev.Begun
    at: float
    last: float
    events: int
    first: str


class Log:
    """A log that is written.

    Args:
        path: its file; made with its folder where it is not there.

    Raises:
        InputError: another process writes it.
        OSError: the system refuses.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0), 0o600)
        if not _locked(self._file):
            os.close(self._file)
            raise InputError(f"session {path.stem} is open in another process; end that one, or fork it with --fork")
        whole = os.pread(self._file, os.fstat(self._file).st_size, 0)
        end = whole.rfind(b"\n") + 1
        if end < len(whole):
            os.ftruncate(self._file, end)
        self.count = whole.count(b"\n")
        self._new = not whole

    def append(self, event: ev.Event) -> None:
        """Write an event; it is on the disk when this returns. Raises OSError."""
        line = {"n": self.count, "at": round(time.time(), 3), **ev.to_json(event)}
        # A half-written character of a provider's must not stop the log: lone surrogates stay escaped.
        data = json.dumps(line, ensure_ascii=True, separators=(",", ":")).encode("ascii") + b"\n"
        view = memoryview(data)
        while view:
            view = view[os.write(self._file, view) :]
        os.fsync(self._file)
        if self._new:  # the name itself must survive, too
            self._new = False
            with contextlib.suppress(OSError):
                held = os.open(self.path.parent, os.O_RDONLY)
                os.fsync(held)
                os.close(held)
        self.count += 1

    def close(self) -> None:
        """Let go of the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _locked(file: int) -> bool:
    try:
        import fcntl
    except ImportError:  # Windows: an exclusive lock is not kept there
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def lines(path: Path) -> Iterator[tuple[float, ev.Event]]:
    """A log's events with their times; a half line at its end is left out.

    Raises:
        InputError: a line can't be read.
        OSError: the file can't.
    """
    with path.open("rb") as handle:
        for number, line in enumerate(handle, 1):
            if not line.endswith(b"\n"):
                return
            try:
                value: Any = json.loads(line)
                yield float(value["at"]), ev.from_json(value)
            except (ValueError, KeyError, TypeError) as error:
                raise InputError(f"{path}: line {number} is no event of a session: {error}") from None


def sessions(directory: Path | None = None) -> list[Kept]:
    """The sessions that are kept, the latest first.

    Args:
        directory: only those of this working tree; None for all.
    """
    found = []
    for path in folder().glob("*.jsonl"):
        with contextlib.suppress(InputError, OSError, StopIteration):
            kept = _kept(path)
            if directory is None or Path(kept.begun.directory) == directory:
                found.append(kept)
    return sorted(found, key=lambda kept: kept.last, reverse=True)


def _kept(path: Path) -> Kept:
    told = lines(path)
    at, begun = next(told)
    if not isinstance(begun, ev.Begun):
        raise InputError(f"{path} does not begin a session")
    count, last, first = 1, at, ""
    for when, event in told:
        count, last = count + 1, when
        if not first and isinstance(event, ev.Human) and not event.harness:
            first = event.text
    return Kept(begun.session, path, begun, at, last, count, first)


def find(name: str, directory: Path) -> Kept:
    """A session by its id, the beginning of one, or "" for this directory's latest.

    Raises:
        InputError: there is none, or there are several.
    """
    if not name:
        here = sessions(directory)
        if not here:
            raise InputError("no session of the agent in this directory; cutline agent ls --all lists the others")
        return here[0]
    found = [kept for kept in sessions() if kept.session.startswith(name)]
    if len(found) == 1:
        return found[0]
    many = f"{len(found)} sessions begin with {name}" if found else f"no session {name}"
    raise InputError(f"{many}; cutline agent ls --all lists them")


def fork(kept: Kept, upto: int | None = None) -> Path:
    """A new session with the same events, which goes on by itself.

    Args:
        kept: the session.
        upto: how many of its events; None for all.

    Raises:
        InputError: it has no so many.
    """
    if upto is not None and not 1 <= upto <= kept.events:
        raise InputError(f"session {kept.session} has {kept.events} events: fork at 1 to {kept.events}")
    session = new_id()
    path = kept.path.with_name(f"{session}.jsonl")
    passing = path.with_suffix(".new")
    log = Log(passing)
    try:
        for number, (_, event) in enumerate(lines(kept.path)):
            if upto is not None and number >= upto:
                break
            if isinstance(event, ev.Begun):
                event = replace(event, session=session, parent=kept.session)
            log.append(event)
    finally:
        log.close()
    passing.rename(path)
    return path
