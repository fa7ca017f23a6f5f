"""Claude Code's session files: find one, read it, rebuild what the client would send of it, write a cut copy.

Law: an original is only read. `find` knows where sessions are, `records` reads a file as an index of offsets,
`branch` decides which records are live, `history` copies their literals into a wire body, `copy` writes anew.
"""

from .branch import Branch
from .find import SessionFile, folder_name, projects, resolve, sessions, subagents
from .history import History, Origin, RecordPlace, Request
from .records import Log, Record, Torn, read
from .session import Session, open_session

__all__ = [
    "Branch",
    "History",
    "Log",
    "Origin",
    "Record",
    "RecordPlace",
    "Request",
    "Session",
    "SessionFile",
    "Torn",
    "folder_name",
    "open_session",
    "projects",
    "read",
    "resolve",
    "sessions",
    "subagents",
]
