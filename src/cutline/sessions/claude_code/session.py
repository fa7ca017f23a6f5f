"""A session as a whole: its file, its live branch, and what it is called.

Law: nothing is decided here; `records`, `history`, `titles` and `find` do.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from ..damage import told
from . import titles
from .find import folder_name, subagents
from .history import History, history
from .records import Log, read


@dataclass(frozen=True, slots=True)
class Session:
    """A session that was read.

    Attributes:
        log: its file as records.
        history: its live branch and the wire body of that.
        title: its title, else the first words that a person typed; one line, "" where there are neither.
        subagents: the files of its sub-agents.
    """

    log: Log
    history: History
    title: str
    subagents: tuple[Path, ...]

    @property
    def client(self) -> str:
        """The client's name."""
        return "claude-code"

    @property
    def path(self) -> Path:
        """The file."""
        return self.log.path

    @property
    def id(self) -> str:
        """The id that the client resumes it by: the file's name without its ending."""
        return self.log.path.stem

    @property
    def cwd(self) -> str:
        """Where it is resumed: the directory that its folder is named after, else the first it was in."""
        folders = self.log.folders
        folder = self.log.path.resolve().parent.name
        return next((cwd for cwd in folders if folder_name(cwd) == folder), folders[0] if folders else "")

    @property
    def git_branch(self) -> str:
        """The git branch that it was last on; "" where none was recorded."""
        return self.log.branches[-1] if self.log.branches else ""

    @property
    def version(self) -> str:
        """The client's version that wrote to it last; "" where none was recorded."""
        return self.log.versions[-1] if self.log.versions else ""

    @property
    def last(self) -> str:
        """When its last request was made, else when its last record was; ISO 8601."""
        return self.history.requests[-1].timestamp if self.history.requests else self.log.last

    @property
    def damage(self) -> list[str]:
        """What could not be read of the file, one sentence each."""
        return told([torn.line for torn in self.log.torn], self.log.glued, self.log.grew)

    @property
    def sealed(self) -> str:
        """Why no copy of it can be resumed; "" where one can."""
        if self.log.web:
            return "a web export can't be resumed"
        if all(record.sidechain for record in self.log.records if record.role):
            return "a sub-agent's file can't be resumed"
        return ""


def open_session(path: str | os.PathLike[str], id: str = "") -> Session:
    """Read a session file and rebuild its live branch; the file holds one, whose id is its name.

    Raises:
        InputError: it can't be read, or holds no session or no conversation.
    """
    log = read(path)
    found = history(log)
    return Session(log, found, titles.of(found), tuple(subagents(log.path)))
