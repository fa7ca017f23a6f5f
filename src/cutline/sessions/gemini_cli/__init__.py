"""Gemini CLI's session files: find one, read it, rebuild what the client would send of it, write a cut copy.

Law: an original is only read. `find` knows where sessions are, `log` reads a file as an index of offsets, `pieces`
takes a message apart into literals, `history` builds the body, `editing` and `copy` write anew.
"""

import re
from pathlib import Path
from typing import cast
from urllib.parse import unquote

from ...plan import Plan
from ..model import Copy, Prove
from ..model import Session as AnySession
from ..neutral import NeutralSession
from . import copy as copies
from .find import projects, sessions
from .log import CONTENTS
from .session import SAVED, open_session

LABEL = "Gemini CLI"
_HASH = re.compile(rb'"projectHash"\s*:').search  # as a key: it may be what somebody said


def places() -> list[Path]:
    """Where its sessions are looked for."""
    return [projects()]


def owns(path: Path, head: bytes) -> bool:
    """Whether a file is one of its sessions, or a chat that it saved."""
    if b'"sessionId"' in head and _HASH(head):
        return True
    return CONTENTS(head) is not None and b'"parts"' in head


def write(session: AnySession, plan: Plan, title: str, prove: Prove) -> Copy:
    """Write the cut copy of a session beside it (see `copy.write`)."""
    source = cast(NeutralSession, session)
    return copies.write(source.source, source.history, plan, title, prove)


def reread(copy: Path, id: str, notice: str, before: bytes) -> tuple[bytes, str | None]:
    """A written copy's body without the notice's own message, and what that message says."""
    return copies.reread(copy, notice, before)


def resume(id: str) -> list[str]:
    """The command that goes on in a session, or in a saved chat."""
    if id.startswith(SAVED):
        return ["gemini", "--prompt-interactive", f"/chat resume {unquote(id.removeprefix(SAVED))}"]
    return ["gemini", "--resume", id]


__all__ = ["LABEL", "open_session", "owns", "places", "projects", "reread", "resume", "sessions", "write"]
