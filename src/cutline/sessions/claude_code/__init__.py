"""Claude Code's session files: find one, read it, rebuild what the client would send of it, write a cut copy.

Law: an original is only read. `find` knows where sessions are, `records` reads a file as an index of offsets,
`branch` decides which records are live, `history` copies their literals into a wire body, `copy` writes anew.
"""

from pathlib import Path
from typing import cast

from ...plan import Plan
from ..damage import Torn
from ..model import Copy, Prove
from ..model import Session as AnySession
from . import copy as copies
from .branch import Branch
from .find import SessionFile, folder_name, projects, sessions, subagents
from .history import History, RecordPlace, history
from .records import Log, Record, read
from .session import Session, open_session

LABEL = "Claude Code"


def places() -> list[Path]:
    """Where its sessions are looked for."""
    return [projects()]


def owns(path: Path, head: bytes) -> bool:
    """Whether a file looks like one of its sessions; what is nobody's is read as one, too, and refused there."""
    return b'"sessionId"' in head or b'"loglines"' in head


def write(session: AnySession, plan: Plan, title: str, prove: Prove) -> Copy:
    """Write the cut copy of a session beside it (see `copy.write`)."""
    return copies.write(cast(Session, session).history, plan, title, prove)


def reread(copy: Path, id: str, notice: str, before: bytes) -> tuple[bytes, str | None]:
    """A written copy's body without the notice's own message, and what that message says."""
    return copies.reread(copy, notice, before)


def resume(id: str) -> list[str]:
    """The command that goes on in a session."""
    return ["claude", "--resume", id]


__all__ = [
    "LABEL",
    "Branch",
    "History",
    "Log",
    "Record",
    "RecordPlace",
    "Session",
    "SessionFile",
    "Torn",
    "folder_name",
    "history",
    "open_session",
    "owns",
    "places",
    "projects",
    "read",
    "reread",
    "resume",
    "sessions",
    "subagents",
    "write",
]
