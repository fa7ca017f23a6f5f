"""Which clients' sessions are read, and which session is meant.

Law: one rule for every client; what differs stands in the client's own package, which is imported when it is asked for.
A path is taken as given, an id by its beginning, nothing as this directory's latest session of any client.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from ..errors import InputError
from .model import Client, Session, SessionFile

NAMES: tuple[str, ...] = ("claude-code", "codex", "opencode", "gemini-cli", "pi", "copilot-cli")
"""Clients in the order of a listing where two sessions are of the same second."""
SHOWN: tuple[str, ...] = ("openhands", "swe-agent", "mini-swe-agent", "inspect", "aider", "specstory")
"""Kinds that are read and shown only; none is a directory's latest session while a client has one there."""
EVERY = NAMES + SHOWN
_HEAD = 1 << 16


@dataclass(frozen=True, slots=True)
class Found:
    """A session that a client's listing shows, and whose it is."""

    client: str
    file: SessionFile


def client(name: str) -> Client:
    """A client's package."""
    return cast(Client, importlib.import_module(f".{name.replace('-', '_')}", __package__))


def sessions(cwd: str | os.PathLike[str] | None = None, names: Sequence[str] = NAMES) -> list[Found]:
    """The sessions of a working directory, or of every one, the newest first."""
    where = None if cwd is None else Path(cwd)
    found = [Found(name, file) for name in names for file in client(name).sessions(where)]
    return sorted(found, key=lambda one: -one.file.mtime)


def open_found(found: Found) -> Session:
    """Read a session that a listing shows. Raises InputError where it can't be read."""
    return client(found.client).open_session(found.file.path, found.file.id)


def open_path(path: Path, part: str = "") -> Session:
    """Read a session file of any client.

    Args:
        path: the file.
        part: which session of a file that holds several; "" for the only one.

    Raises:
        InputError: no client's, it can't be read, or it holds no such session.
    """
    return _part(_owner(path) or NAMES[0], path, part)


def _part(name: str, path: Path, part: str) -> Session:
    session = client(name).open_session(path, part)
    if part not in session.id:
        raise InputError(f"{path}: holds one session; leave “#{part}” out")
    return session


def parts(path: Path) -> list[str]:
    """The sessions of a database, by id; of any other file "", which is the only one."""
    if path.suffix != ".db":
        return [""]
    from .opencode.find import in_database

    return [one.id for one in in_database(path) if one.talks]


def is_session(path: Path) -> bool:
    """Whether a file is a session of a client that keeps some as one JSON document, as request bodies are kept too."""
    return bool(_owner(path))


def _owner(path: Path) -> str:
    """The client whose file it is; "" for Claude Code's, and for nobody's, which is read as Claude Code's."""
    with path.open("rb") as handle:
        head = handle.read(_HEAD)
    return next((name for name in EVERY[1:] if client(name).owns(path, head)), "")


def resolve(argument: str | None, cwd: str | os.PathLike[str]) -> Session:
    """The session that is meant, read.

    Args:
        argument: a path; a session id or its beginning, of any client and directory; either with ``#part`` for one
            session of a file that holds several; None for the latest of `cwd`.
        cwd: the working directory.

    Raises:
        InputError: nothing or more than one fits; the text says what to do.
    """
    if argument is None:
        latest = next((one for names in (NAMES, SHOWN) for one in sessions(cwd, names) if one.file.talks), None)
        if latest is None:
            raise InputError(
                f"no session for {Path(cwd)} (looked in {', '.join(map(str, _looked()))}); "
                "give a session's path or id, or go to a directory that has one"
            )
        return open_found(latest)
    path = Path(argument).expanduser()
    named = os.sep in argument or argument.endswith((".jsonl", ".json", ".zst", ".db", ".eval", ".traj", ".md"))
    whole, mark, part = argument.rpartition("#")
    if mark and not path.exists() and Path(whole).expanduser().is_file():
        return open_path(Path(whole).expanduser(), part)
    if argument and (named or path.exists()):
        if path.is_dir():
            raise InputError(f"{argument}: is a directory; give one session file in it")
        if not path.exists():
            raise InputError(f"{argument}: no such file; “cutline ls” lists this directory's sessions")
        return open_path(path)
    if mark:
        found = _by_id(whole)
        return _part(found.client, found.file.path, part)
    return open_found(_by_id(argument))


def _by_id(argument: str) -> Found:
    wanted = argument.strip().lower()
    fits: list[Found] = []
    for names in (NAMES, SHOWN) if wanted else ():
        # A client's own comes first: SpecStory, for one, keeps a rendering of every session.
        fits = fits or [one for one in sessions(names=names) if one.file.id.lower().startswith(wanted)]
    fits = [one for one in fits if one.file.id.lower() == wanted] or fits
    if not fits:
        raise InputError(
            f"no session “{argument}” (neither a file nor the beginning of a session id in "
            f"{', '.join(map(str, _looked()))}); “cutline ls” lists this directory's sessions"
        )
    if len(fits) > 1:
        some = ", ".join(f"{one.file.folder}/{one.file.id}" for one in fits[:3])
        more = f" and {len(fits) - 3} more" if len(fits) > 3 else ""
        raise InputError(f"“{argument}” fits {len(fits)} sessions ({some}{more}); give more of it, or a path")
    return fits[0]


def _looked() -> Iterator[Path]:
    for name in NAMES:
        yield from client(name).places()
