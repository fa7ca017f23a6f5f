"""The sessions of the last days, of every client, each with its sub-agents, one after the other.

Law: what can't be read is counted and passed over; a session that its client compacted comes whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..errors import CutlineError
from ..sessions.clients import client, open_found, sessions
from ..sessions.model import Session
from ..sessions.reviving import uncompacted


def beside(session: Session, most: int) -> Iterator[Session]:
    """The latest other sessions of a session's directory, of every client, each whole."""
    for one in sessions(Path(session.cwd)) if session.cwd else ():
        if most and one.file.talks and one.file.id != session.id:
            with suppress(CutlineError):
                found = uncompacted(open_found(one))
                if found.history.requests:
                    yield found
                    most -= 1


@dataclass(slots=True)
class Gathered:
    """What is gone through, and what could not be read.

    Attributes:
        since: sessions whose file changed later, in seconds since 1970.
        here: of this directory only; None for every one.
        unread: how many could not be read.
    """

    since: float
    here: Path | None = None
    unread: int = 0

    def sessions(self, told: Callable[[int, int], None] = lambda done, of: None) -> Iterator[Session]:
        """Each session, then its sub-agents; `told` is called with how many of how many files are done."""
        found = [one for one in sessions(self.here) if one.file.mtime >= self.since and one.file.talks]
        for number, one in enumerate(found):
            told(number, len(found))
            try:
                session = open_found(one)
            except CutlineError:
                self.unread += 1
                continue
            yield uncompacted(session)
            for path in session.subagents:
                try:
                    yield client(one.client).open_session(path)
                except CutlineError:
                    self.unread += 1
