"""Sessions of opencode: find one, read it, rebuild what the client would send of it, write a cut copy.

Law: an original is only read. `find` knows where sessions are, `reading` and `events` read what they are kept in into
`records`, `live` decides which of those are sent, `history` copies their literals into the form that is cut, `copy`
decides what a copy holds, and `writing` puts it where the original is.
"""

from typing import cast

from ...plan import Plan
from ..model import Copy, Prove, Session
from ..neutral import NeutralSession
from . import writing
from .find import SessionFile, places, sessions
from .reading import owns
from .records import LABEL, Log
from .session import open_session
from .writing import reread


def write(session: Session, plan: Plan, title: str, prove: Prove) -> Copy:
    """Write the cut copy of a session where the original is (see `writing.write`)."""
    read = cast(NeutralSession, session)
    return writing.write(cast(Log, read.source), read.history, plan, title, prove)


def resume(id: str) -> list[str]:
    """The command that goes on in a session of the client's own; an export is imported first (`opencode import`)."""
    return ["opencode", "-s", id]


__all__ = ["LABEL", "SessionFile", "open_session", "owns", "places", "reread", "resume", "sessions", "write"]
