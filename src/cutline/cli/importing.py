"""Files taken into the record: exports, and session files with their sub-agents'.

Law: importing twice adds nothing. Of a session file the live branch goes in, once for each human turn and once whole,
so that what a turn returned has the time of that turn; nobody saw these requests on the wire, so their kind is "file".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .. import project, record
from ..errors import InputError
from ..recall import time_of
from ..record import Document, Exchange, Record, Stop
from ..sessions.clients import client, open_path
from ..sessions.model import Session
from ..wire import anthropic as wire

_AS_RUN = {"claude-code": "claude"}  # as `cutline run` calls them


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


def files(given: tuple[Path, ...]) -> list[Path]:
    """The files that are meant: of a folder every ``.jsonl`` in it, but sub-agents' files, which their sessions bring.

    Raises:
        InputError: one is not there.
    """
    found: list[Path] = []
    for path in given:
        if path.is_dir():
            inside = (file for pattern in ("*.jsonl", "*.jsonl.zst") for file in path.rglob(pattern))
            found += sorted(file for file in inside if not file.name.startswith((".", "agent-")))
        elif path.exists():
            found.append(path)
        else:
            raise InputError(f"{path}: no such file; give exports, session files, or a folder that holds some")
    return list(dict.fromkeys(found))


def take(held: Record, path: Path) -> Imported:
    """Take one file in; a fault of the file is told, one of the record is raised."""
    added, known, newest, fault = 0, 0, 0.0, ""
    items = record.read(path) if record.is_export(path) else _of_session(path)
    while True:
        try:
            item = next(items, None)
        except InputError as error:
            fault = str(error)
            break
        if item is None:
            break
        if isinstance(item, Stop):
            held.stop(item.session, item.seam, item.rule, item.why, item.at)
            continue
        new = held.add_document(item) if isinstance(item, Document) else held.add(item)
        added, known, newest = added + new, known + (not new), max(newest, item.at)
    return Imported(path, added, known, newest, fault)


def _of_session(path: Path) -> Iterator[Exchange | Document | Stop]:
    session = open_path(path)
    yield from _exchanges(session, session.id, "")
    theirs = client(session.client)
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
