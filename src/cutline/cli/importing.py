"""What is taken into the record: exports, and sessions of every client with their sub-agents'.

Law: importing twice adds nothing. Of a session file the live branch goes in, once for each human turn and once whole,
so that what a turn returned has the time of that turn; nobody saw these requests on the wire, so their kind is "file".
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .. import project, record
from ..errors import InputError, Unreadable
from ..launch.start import CLIENTS
from ..recall import time_of
from ..record import Document, Exchange, Record, Stop
from ..sessions import clients
from ..sessions.model import Session
from ..wire import anthropic as wire

_AS_RUN = {one.sessions: one.name for one in CLIENTS.values()}
_SESSIONS = (".jsonl", ".jsonl.zst", ".json", ".eval", ".traj")
"""How session files are called in a folder; a file by itself may have any name."""
_SUBAGENTS = re.compile(r"agent-(?:a\w+-)?[0-9a-f]+\.jsonl")
"""How Claude Code calls them; a session that a person called agent-something is one like any other."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A file to take in.

    Attributes:
        path: the file.
        part: which of its sessions; "" for the only one.
        client: whose it is; "" is found out.
    """

    path: Path
    part: str = ""
    client: str = ""


@dataclass(frozen=True, slots=True)
class Imported:
    """What a file gave.

    Attributes:
        path: the file.
        added, known: requests and documents that are new in the record, and that it had.
        newest: when the newest of them came, in seconds since 1970; 0 where there is none.
        fault: why it could not be read; "" where it could.
    """

    path: Path
    added: int = 0
    known: int = 0
    newest: float = 0.0
    fault: str = ""


def wanted(given: tuple[str, ...], kept_by: tuple[str, ...]) -> list[Wanted]:
    """What is meant: files, folders, sessions by their id, and all sessions that some clients keep.

    Of a folder every session file and export in it, but sub-agents' files, which their sessions bring.

    Raises:
        InputError: one is not there.
    """
    found = (
        [Wanted(one.file.path, one.file.id, one.client) for one in clients.sessions(None, kept_by)] if kept_by else []
    )
    for name in given:
        path = Path(name).expanduser()
        whole, mark, part = name.rpartition("#")
        if path.is_dir():
            found += _inside(path)
        elif path.exists():
            found.append(Wanted(path))
        elif mark and Path(whole).expanduser().is_file():
            found.append(Wanted(Path(whole).expanduser(), part))
        elif os.sep in name or path.suffix:
            raise InputError(f"{name}: no such file; give exports, session files or ids, or a folder that holds some")
        else:
            found.append(_by_id(name))
    return list(dict.fromkeys(found))


def _inside(folder: Path) -> Iterator[Wanted]:
    for path in sorted(path for path in folder.rglob("*") if path.name.endswith(_SESSIONS)):
        if path.name.startswith(".") or _SUBAGENTS.fullmatch(path.name) or not path.is_file():
            continue
        # What is called .json can be anything; a .jsonl that nobody knows is told as a fault.
        if ".jsonl" in path.name or (os.access(path, os.R_OK) and clients.is_session(path)):
            yield Wanted(path)


def _by_id(name: str) -> Wanted:
    fits = [one for one in clients.sessions() if one.file.id.startswith(name)]
    if len(fits) == 1:
        return Wanted(fits[0].file.path, fits[0].file.id, fits[0].client)
    said = "no session" if not fits else f"{len(fits)} sessions"
    raise InputError(f"{said} with an id that begins with “{name}”; “cutline ls --all” lists them")


def take(held: Record, one: Wanted) -> Imported:
    """Take one file in; a fault of the file is told, one of the record is raised."""
    path = one.path
    added, known, newest, fault = 0, 0, 0.0, ""
    if path.exists() and not path.is_file():
        return Imported(path, fault=f"{path}: is no regular file; give an export or a session's file")
    try:
        items = record.read(path) if not one.client and record.is_export(path) else _of_session(one)
    except OSError as error:
        return Imported(path, fault=f"{path}: can't be read: {error.strerror}")
    while True:
        try:
            item = next(items, None)
        except InputError as error:
            fault = f"{path}: {error}" if isinstance(error, Unreadable) else str(error)
            break
        if item is None:
            break
        if isinstance(item, Stop):
            held.stop(item.session, item.seam, item.rule, item.why, item.at)
            continue
        new = held.add_document(item) if isinstance(item, Document) else held.add(item)
        added, known, newest = added + new, known + (not new), max(newest, item.at)
    return Imported(path, added, known, newest, fault)


def _of_session(one: Wanted) -> Iterator[Exchange | Document | Stop]:
    found = clients.client(one.client).open_session(one.path, one.part) if one.client else None
    session = found or clients.open_path(one.path, one.part)
    yield from _exchanges(session, session.id, "")
    theirs = clients.client(session.client)
    for file in session.subagents:
        try:
            yield from _exchanges(theirs.open_session(file), session.id, file.stem.removeprefix("agent-"))
        except InputError:
            continue  # a sub-agent that said nothing


def _exchanges(session: Session, id: str, agent: str) -> Iterator[Exchange]:
    where = Path(session.cwd)
    scope = project.project(where) if session.cwd and where.is_dir() else session.cwd
    history, name = session.history, _AS_RUN.get(session.client, session.client)
    messages = wire.read(history.body).messages
    last = time_of(session.last) or session.path.stat().st_mtime
    first = 0
    for end in (*(human for human in history.human if human > 0), len(messages)):
        made = [request for request in history.requests if first <= request.message < end]
        if end < len(messages) and not made:
            continue
        times = [at for request in made if (at := time_of(request.timestamp))]
        body = history.body[: messages[end - 1].end] + history.body[messages[-1].end :]
        usage = {
            "input_tokens": sum(one.usage.input for one in made),
            "cache_read_input_tokens": sum(one.usage.cache_read for one in made),
            "cache_creation_input_tokens": sum(one.usage.cache_write_5m + one.usage.cache_write_1h for one in made),
            "output_tokens": sum(one.usage.output for one in made),
        }
        at = max(times) if times else last
        yield Exchange(id, agent, name, scope, at, body, len(body), "", 200, b"", usage, "file")
        first = end
