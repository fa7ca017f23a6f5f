"""What a tool is: four frozen values that the loop, the tools and the faces share.

Law: a tool is a value and decides nothing about itself: whether it may run is `approvals`' word, what the model gets is
its `Outcome`, what a person sees on the way are its `Piece`s. Pure; the standard library only.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

Kind = Literal["read", "edit", "run", "other"]
"""What a call does to the world: reads files, changes files, runs a program, or something that no rule knows."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a running tool's output, as it comes.

    Attributes:
        text: safe to be shown as it stands (`plain.shown`); may end in the middle of a line.
    """

    text: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a call ended: the last thing that a tool gives, and the only one that it always gives.

    Attributes:
        text: what the model receives, capped; show it through `plain.shown`.
        is_error: the call did not do what it was asked for. A command that ended with another exit code than 0 is one.
        exit_code: of the command; 128 + the signal's number where a signal ended it; None where no command ran or it
            still runs in the background.
        diff: what an edit or a write changed, as a unified diff; "" for all else.
        whole: the file that keeps the whole output where `text` holds only its head and tail; None where `text` is all.
        changed: the files that were written, absolute.
    """

    text: str
    is_error: bool = False
    exit_code: int | None = None
    diff: str = ""
    whole: Path | None = None
    changed: tuple[Path, ...] = ()


class Shell(Protocol):
    """The session's shell, as far as the loop and the approvals need it; `shell.Bash` is the real one."""

    @property
    def directory(self) -> Path:
        """Where the next command starts; absolute."""

    @property
    def busy(self) -> bool:
        """Whether a command runs that `stop` would end."""

    async def stop(self) -> bool:
        """End the running command and everything that it started; the shell stays. False where nothing ran."""

    async def close(self) -> None:
        """End whatever this session's commands left running, background jobs too; nothing else."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a call is carried out. The loop makes one for each call: `dataclasses.replace(place, address=…)`.

    Attributes:
        tree: the working tree, absolute, links followed; relative paths in arguments begin here.
        environment: the variables that tools are given; secrets are already left out (`environment.given`).
        shell: the session's shell.
        outputs: the folder, under the record's, in which the whole of a capped output is kept, by address.
        address: of the call that is carried out (16 hex digits); a cap names it.
    """

    tree: Path
    environment: Mapping[str, str] = field(repr=False)
    shell: Shell = field(repr=False)
    outputs: Path
    address: str = ""


Run = Callable[[Mapping[str, Any], Place], AsyncIterator[Piece | Outcome]]
Preview = Callable[[Mapping[str, Any], Place], str]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that the agent may call.

    Attributes:
        name: as the model writes it.
        description: what the model reads about it.
        schema: JSON schema of its arguments, an object.
        kind: what a call does to the world.
        run: carries a call out: pieces as they come, an outcome as the last item. It raises nothing for what the model
            got wrong, that is an outcome with `is_error`; when its iterator is closed, what it runs is ended.
        preview: the unified diff that a call would make, for the human's eyes before it is approved; says in one line
            why where it would fail. None for a tool that changes no file.
        paths: the arguments that name files or folders, for the approvals.
    """

    name: str
    description: str
    schema: Mapping[str, Any] = field(repr=False)
    kind: Kind
    run: Run = field(repr=False, compare=False)
    preview: Preview | None = field(default=None, repr=False, compare=False)
    paths: Sequence[str] = ()
