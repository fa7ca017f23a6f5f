"""What every client's sessions have in common: a file, a history in one form, a copy.

Law: values only. A history is a body that `cut`, `verify` and `measure` read, whatever the client's own format: in
the shape of Anthropic Messages, built by copying literals (`neutral`), so that one place decides what leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from ..money import Usage
from ..plan import Plan

Origin = Literal["agent", "results", "human", "harness", "summary"]
"""What a message is: the agent's, results of calls, a person's words, the client's own text, a summary."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request that the session's agent made, with what the provider counted.

    Attributes:
        message: index of the answer in the body.
        message_id, model, timestamp: of the answer (ISO 8601; "" where the client records none).
        usage: tokens.
    """

    message: int
    message_id: str
    model: str
    timestamp: str
    usage: Usage


class History(Protocol):
    """What the client would send of a session's live branch."""

    @property
    def body(self) -> bytes:
        """The history as an Anthropic Messages body, ``{"model":…,"messages":[…]}``."""

    @property
    def places(self) -> Sequence[Sequence[tuple[int, int]]]:
        """For message m and block b of the body: index of its record, and of its item in that record."""

    @property
    def origins(self) -> Sequence[Origin]:
        """For each message, what it is."""

    @property
    def model(self) -> str:
        """The model that answered last; "" if the client records none."""

    @property
    def requests(self) -> Sequence[Request]:
        """The requests of the branch, in order; empty where the client records no usage."""

    @property
    def human(self) -> list[int]:
        """Indices of the messages that a person typed, in order."""

    @property
    def compacted(self) -> bool:
        """Whether the client replaced a part of it by a summary."""


class Session(Protocol):
    """A session that was read."""

    @property
    def client(self) -> str:
        """The client's name, as in `clients.NAMES`."""

    @property
    def path(self) -> Path:
        """The file; for a client that keeps all sessions in one database, that."""

    @property
    def id(self) -> str:
        """The id that the client resumes it by."""

    @property
    def cwd(self) -> str:
        """The directory that it is resumed in; "" where none is recorded."""

    @property
    def title(self) -> str:
        """Its title, else the first words that a person typed; one line, "" where there are neither."""

    @property
    def version(self) -> str:
        """The client's version that wrote to it last; "" where none is recorded."""

    @property
    def git_branch(self) -> str:
        """The git branch that it was last on; "" where none is recorded."""

    @property
    def last(self) -> str:
        """When something was last said in it (ISO 8601); "" where no time is recorded."""

    @property
    def history(self) -> History:
        """Its live branch."""

    @property
    def subagents(self) -> Sequence[Path]:
        """The files of its sub-agents, where they have files of their own."""

    @property
    def damage(self) -> Sequence[str]:
        """What could not be read of the file, one sentence each."""

    @property
    def sealed(self) -> str:
        """Why no copy of it can be resumed, and behind a semicolon what to do instead; "" where one can."""


class SessionFile(Protocol):
    """A session as a listing shows it; making one is cheap."""

    @property
    def path(self) -> Path:
        """The file, or the database."""

    @property
    def id(self) -> str:
        """The session's id."""

    @property
    def folder(self) -> str:
        """What a list of every directory shows: the client's name of the project, or the working directory."""

    @property
    def size(self) -> int:
        """Bytes."""

    @property
    def mtime(self) -> float:
        """Time of the last change, in seconds since 1970."""

    @property
    def title(self) -> str:
        """Its title, else the first words that a person typed, else ""."""

    @property
    def talks(self) -> bool:
        """Whether somebody says something in it."""


@dataclass(frozen=True, slots=True)
class Copy:
    """A cut copy that was written.

    Attributes:
        path, id: the new file (or the database that holds it) and its session id.
        notice: what names the record that holds the notice of a cut without a checkpoint; "" if there is none.
        records: records written.
        removed: records that left whole.
        relinked: records whose parent had left.
        bytes: size of the file, or of the copy's records in a database.
        missed: bytes that were added to the original after it was read, and are not in the copy.
    """

    path: Path
    id: str
    notice: str
    records: int
    removed: int
    relinked: int
    bytes: int
    missed: int


Prove = Callable[[Path, str, str], None]
"""Called with the finished copy, its id and the name of its notice's record ("" for none), before it counts as a
session; what it raises ends the writing, and nothing is left behind."""


class Client(Protocol):
    """A client whose sessions are read: the package of that name."""

    LABEL: str
    """What people call it."""

    def sessions(self, cwd: Path | None = None) -> Sequence[SessionFile]:
        """The sessions of a working directory, or of every one, the newest first. Opens little of each file."""

    def places(self) -> Sequence[Path]:
        """Where they are looked for, by the client's own environment variables."""

    def owns(self, path: Path, head: bytes) -> bool:
        """Whether a file is one of this client's sessions, by its first 64 KB."""

    def open_session(self, path: Path, id: str = "") -> Session:
        """Read a session.

        Args:
            path: its file, or the database that holds it.
            id: which session of a database; "" for the only one.

        Raises:
            InputError: it can't be read, or holds no session or no conversation.
        """

    def write(self, session: Session, plan: Plan, title: str, prove: Prove) -> Copy:
        """Write the cut copy of a session beside it; the original is only read.

        Raises:
            InputError: it can't be written.
        """

    def reread(self, copy: Path, id: str, notice: str, before: bytes) -> tuple[bytes, str | None]:
        """A written copy's body without the notice's own message, and what that message says (None for none).

        Args:
            copy, id: what was written.
            notice: the name of the notice's record; "" for none.
            before: the original's body; what stands around its messages is the copy's too.
        """

    def resume(self, id: str) -> list[str]:
        """The command that goes on in a session; empty where the client has none."""
