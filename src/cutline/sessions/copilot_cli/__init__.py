"""Session files of GitHub Copilot CLI: find one, read it, rebuild what the client would send of it, write a cut copy.

Law: an original is only read. `find` knows where sessions are, `events` which of a file's events are sent, `history`
copies their literals into the form that is cut, `copy` writes anew.
"""

from pathlib import Path
from typing import cast

from ...plan import Plan
from ..model import Copy, Prove, Session
from ..neutral import NeutralSession
from . import copy as copies
from .events import LABEL, Log
from .find import SessionFile, places, sessions, start
from .session import open_session


def owns(path: Path, head: bytes) -> bool:
    """Whether a file looks like one of its sessions: its first event says so."""
    return start(head).get("type") == "session.start"


def write(session: Session, plan: Plan, title: str, prove: Prove) -> Copy:
    """Write the cut copy of a session beside it (see `copy.write`)."""
    read = cast(NeutralSession, session)
    return copies.write(cast(Log, read.source), read.history, plan, title, prove)


def reread(copy: Path, id: str, notice: str, before: bytes) -> tuple[bytes, str | None]:
    """A written copy's body without the notice's own message, and what that message says."""
    return copies.reread(copy, notice, before)


def resume(id: str) -> list[str]:
    """The command that goes on in a session."""
    return ["copilot", f"--resume={id}"]


__all__ = ["LABEL", "SessionFile", "open_session", "owns", "places", "reread", "resume", "sessions", "write"]
