"""The sessions that the page lists, found by a short key and kept while they are looked at.

Law: only what a client's own listing shows, or what the command was given, can be opened: the page names no path. A
session is read again when its file has changed.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..errors import InputError, Unreadable
from ..sessions.clients import EVERY, Found, client, open_found, sessions
from ..sessions.model import Session
from . import timeline
from .timeline import Timeline

_KEPT = 3  # sessions that are kept read
_LISTED_S = 5.0  # so long a listing is good for
_MOST = 2_000  # sessions that a list shows


@dataclass(frozen=True, slots=True)
class _Kept:
    stamp: tuple[int, ...]
    timeline: Timeline


class Shelf:
    """Finds sessions and keeps the last ones read. Safe to be used by several threads.

    Args:
        given: a session that the command was started with; it may stand outside of every listing.
    """

    def __init__(self, given: Session | None = None) -> None:
        self._given = given
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._found: dict[str, Found] = {}
        self._listed = float("-inf")
        self.first = key(given.client, given.path, given.id) if given else ""
        self._fresh = self._stamp(self.first) if given else None

    def list(self) -> list[dict[str, Any]]:
        """The sessions of all clients, the newest first."""
        with self._lock:
            shown = [
                {
                    "key": name,
                    "client": client(one.client).LABEL,
                    "title": one.file.title or one.file.id,
                    "id": one.file.id,
                    "folder": one.file.folder,
                    "bytes": one.file.size,
                    "modified": datetime.fromtimestamp(one.file.mtime, UTC).isoformat(timespec="seconds"),
                }
                for name, one in self._listing().items()
            ]
        if self._given is not None and all(one["key"] != self.first for one in shown):
            held = self._given
            shown.insert(
                0,
                {
                    "key": self.first,
                    "client": client(held.client).LABEL,
                    "title": held.title or held.id,
                    "id": held.id,
                    "folder": held.cwd,
                    "bytes": len(held.history.body),
                    "modified": held.last,
                },
            )
        return shown

    def get(self, name: str) -> Timeline:
        """A session, read.

        Raises:
            InputError: no such session, or a history that can't be read.
        """
        with self._lock:
            stamp = self._stamp(name)
            kept = self._kept.get(name)
            if kept is None or kept.stamp != stamp:
                session = self._open(name, stamp)
                try:
                    kept = self._kept[name] = _Kept(stamp, timeline.read(session))
                except Unreadable as error:
                    raise InputError(f"{session.path.name}: its history can't be read: {error}") from None
            self._kept.move_to_end(name)
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
            return kept.timeline

    def stamp(self, name: str) -> str:
        """What changes when a session's file does."""
        with self._lock:
            return "-".join(map(str, self._stamp(name)))

    def _open(self, name: str, stamp: tuple[int, ...]) -> Session:
        if name == self.first and self._given is not None:
            held = self._given
            return held if stamp == self._fresh else client(held.client).open_session(held.path, held.id)
        return open_found(self._one(name))

    def _stamp(self, name: str) -> tuple[int, ...]:
        path = self._given.path if name == self.first and self._given else self._one(name).file.path
        try:
            state = path.stat()
        except OSError:
            raise InputError(f"{path}: is gone; go back to the list") from None
        found = (state.st_size, state.st_mtime_ns)
        try:  # what a database was told lately stands beside it
            late = path.with_name(path.name + "-wal").stat()
        except OSError:
            return found
        return (*found, late.st_size, late.st_mtime_ns)

    def _one(self, name: str) -> Found:
        found = self._found.get(name) or self._listing().get(name)
        if found is None:
            raise InputError("no such session; go back to the list")
        return found

    def _listing(self) -> dict[str, Found]:
        if time.monotonic() - self._listed > _LISTED_S:
            shown = [one for one in sessions(None, EVERY) if one.file.talks][:_MOST]
            self._found = {key(one.client, one.file.path, one.file.id): one for one in shown}
            self._listed = time.monotonic()
        return self._found


def key(name: str, path: Path, id: str) -> str:
    """A session's key in the page's addresses."""
    return hashlib.sha256("\0".join((name, str(path), id)).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def of_ids(found: Sequence[dict[str, Any]]) -> dict[str, str]:
    """The key of each session by its id, the newest first where two have one."""
    return {one["id"]: one["key"] for one in reversed(found)}
