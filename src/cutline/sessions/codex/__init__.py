"""Codex's rollout files: find one, read it, rebuild what the client would send of it, write a cut copy.

Law: an original is only read. `find` knows where sessions are, `records` reads a file as an index of offsets, `branch`
decides which items are live, `history` copies their literals into a body, `copy` writes anew.
"""

import re
from pathlib import Path
from typing import cast

from ...plan import Plan
from ..damage import Torn
from ..model import Copy, Prove
from ..model import Session as AnySession
from ..neutral import NeutralSession
from . import copy as copies
from . import packed
from .find import SessionFile, places, sessions
from .records import Log, Record, read
from .session import open_session

LABEL = "Codex"
_OWN = re.compile(
    rb'"type"\s*:\s*"(?:session_meta|response_item|turn_context)"\s*,\s*"payload"'
    rb'|\A\s*\{[^\n]*"instructions"[^\n]*\n\s*\{[^\n]*"(?:record_type|type)"'
).search


def owns(path: Path, head: bytes) -> bool:
    """Whether a file looks like one of its rollouts: by the client's name for it, or by its records."""
    named = path.name.startswith("rollout-") and path.name.endswith((".jsonl", f".jsonl{packed.SUFFIX}"))
    return named or _OWN(head) is not None


def write(session: AnySession, plan: Plan, title: str, prove: Prove) -> Copy:
    """Write the cut copy of a session (see `copy.write`)."""
    return copies.write(cast(NeutralSession, session), plan, title, prove)


def reread(copy: Path, id: str, notice: str, before: bytes) -> tuple[bytes, str | None]:
    """A written copy's body without the notice's own message, and what that message says."""
    return copies.reread(copy, notice, before)


def resume(id: str) -> list[str]:
    """The command that goes on in a session."""
    return ["codex", "resume", id]


__all__ = [
    "LABEL",
    "Log",
    "Record",
    "SessionFile",
    "Torn",
    "open_session",
    "owns",
    "places",
    "read",
    "reread",
    "resume",
    "sessions",
    "write",
]
