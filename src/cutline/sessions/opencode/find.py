"""Where opencode keeps its sessions, and what they are called.

Law: looking is cheap and changes nothing. A listing reads one row or one small file of each session; sizes and first
words are looked up when they are asked for. The client's own variables say where to look.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ..opening import one_line

_TABLES = {"session", "message", "part"}
_WAITS_S = 5
# What the client calls a session before it has a title.
UNTITLED = re.compile(r"(?:New|Child) session - \d{4}-\d\d-\d\dT[\d:.]+Z$").match


@dataclass(frozen=True)
class SessionFile:
    """A session as a listing shows it.

    Attributes:
        path: the database, or the session's own file.
        id: its id.
        folder: the working directory.
        mtime: time of the last change, in seconds since 1970.
        name: its title; "" where it has none.
        talks: whether somebody says something in it.
    """

    path: Path
    id: str
    folder: str
    mtime: float
    name: str = field(repr=False)
    talks: bool

    @cached_property
    def size(self) -> int:
        """Bytes of its messages and their parts."""
        if self.path.suffix == ".json":
            return sum(path.stat().st_size for path in _files(self.path, self.id))
        total = 0
        with suppress(sqlite3.Error), closing(connect(self.path)) as database:
            for table in ("message", "part"):
                asked = f"SELECT SUM(LENGTH(CAST(data AS BLOB))) FROM {table} WHERE session_id = ?"
                total += database.execute(asked, (self.id,)).fetchone()[0] or 0
        return total

    @cached_property
    def title(self) -> str:
        """Its title, else the first words that a person typed, else ""."""
        return one_line(self.name) or one_line(next(self._typed(), ""))

    def _typed(self) -> Iterator[str]:
        if self.path.suffix == ".json":
            storage = storage_of(self.path)
            for path in sorted((storage / "message" / self.id).glob("*.json")):
                if _object(path).get("role") == "user":
                    yield from map(typed, map(_object, sorted((storage / "part" / path.stem).glob("*.json"))))
            return
        asked = (
            "SELECT part.data FROM message JOIN part ON part.message_id = message.id "
            "WHERE message.session_id = ? ORDER BY message.time_created, message.id, part.id LIMIT 20"
        )
        with suppress(sqlite3.Error), closing(connect(self.path)) as database:
            rows = database.execute(asked, (self.id,)).fetchall()
            yield from filter(None, (typed(_decoded(row[0])) for row in rows))


def typed(part: dict[str, Any]) -> str:
    """The words that a person typed in a part; "" where it holds none."""
    text = part.get("text")
    said = part.get("type") == "text" and not part.get("synthetic") and not part.get("ignored")
    return text if said and isinstance(text, str) and text.strip() else ""


def title_of(name: str) -> str:
    """A title that means something; "" for the client's placeholder."""
    return "" if UNTITLED(name) else name


# ---------------------------------------------------------------------------------------------- places


def data_folder() -> Path:
    """The client's data directory: under ``$XDG_DATA_HOME``, else under ``~/.local/share``."""
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base).expanduser() if base else Path.home() / ".local" / "share") / "opencode"


def databases() -> list[Path]:
    """Its databases: the one that ``$OPENCODE_DB`` names, else those of its data directory."""
    named = os.environ.get("OPENCODE_DB")
    if named == ":memory:":
        return []
    return [data_folder() / named] if named else sorted(data_folder().glob("opencode*.db"))


def database() -> Path | None:
    """The database that a new session goes into: the released client's, else the one that was written to last."""
    found = [path for path in databases() if path.is_file()]
    own = [path for path in found if path.name == "opencode.db"]
    return next(iter(own or sorted(found, key=lambda path: -path.stat().st_mtime)), None)


def places() -> list[Path]:
    """Where sessions are looked for."""
    named = os.environ.get("OPENCODE_DB")
    return [data_folder() / named, data_folder()] if named and named != ":memory:" else [data_folder()]


def sessions(cwd: Path | None = None) -> list[SessionFile]:
    """The sessions of a working directory, or of every one, the newest first; those of sub-agents are left out.

    The files of older versions stay where they are when a newer version has taken them into its database: a session
    that is in a database is not listed a second time.
    """
    found: dict[str, SessionFile] = {}
    for path in databases():
        for one in in_database(path):
            found.setdefault(one.id, one)
    for one in _in_files(data_folder() / "storage"):
        found.setdefault(one.id, one)
    wanted = None if cwd is None else {str(cwd.absolute()), os.path.realpath(cwd)}
    listed = [one for one in found.values() if wanted is None or one.folder in wanted]
    return sorted(listed, key=lambda one: (-one.mtime, one.id))


def connect(path: Path) -> sqlite3.Connection:
    """A database, opened for reading; texts that are no UTF-8 come with surrogates in place of their bytes."""
    database = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=_WAITS_S, isolation_level=None)
    database.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
    return database


def holds_sessions(path: Path) -> bool:
    """Whether a database has the client's tables."""
    with suppress(sqlite3.Error, OSError), closing(connect(path)) as database:
        names = {row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        return names >= _TABLES
    return False


def in_database(path: Path) -> list[SessionFile]:
    """The sessions of a database, those of sub-agents left out; none where it is no database of the client."""
    if not path.is_file():
        return []
    asked = (
        "SELECT id, directory, time_updated, title, EXISTS(SELECT 1 FROM part WHERE session_id = session.id) "
        "FROM session WHERE parent_id IS NULL"
    )
    with suppress(sqlite3.Error, OSError), closing(connect(path)) as database:
        return [
            SessionFile(path, id_, folder, (updated or 0) / 1000, title_of(title or ""), bool(talks))
            for id_, folder, updated, title, talks in database.execute(asked)
        ]
    return []


def storage_of(path: Path) -> Path:
    """The folder of the older versions' files, by one session's file in it."""
    return path.parents[2]


def _in_files(storage: Path) -> Iterator[SessionFile]:
    for path in sorted(storage.glob("session/*/ses_*.json")):
        info = _object(path)
        if not isinstance(info.get("id"), str) or info.get("parentID"):
            continue
        times = info.get("time")
        updated = times.get("updated") if isinstance(times, dict) else None
        try:
            mtime = updated / 1000 if isinstance(updated, int) else path.stat().st_mtime
            talks = any((storage / "message" / info["id"]).iterdir())
        except OSError:
            mtime, talks = 0.0, False
        title = title_of(str(info.get("title") or ""))
        yield SessionFile(path, info["id"], str(info.get("directory") or path.parent.name), mtime, title, talks)


def _files(path: Path, id: str) -> Iterator[Path]:
    storage = storage_of(path)
    for message in (storage / "message" / id).glob("*.json"):
        yield message
        yield from (storage / "part" / message.stem).glob("*.json")


def _object(path: Path) -> dict[str, Any]:
    try:
        return _decoded(path.read_bytes())
    except OSError:
        return {}


def _decoded(text: str | bytes) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
