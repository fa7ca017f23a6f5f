"""Recording off the request's path: a thread of its own writes what the caller hands over.

Law: nothing that goes wrong with the record reaches the caller. What may pass (a locked record, a full disk) is
tried again, what can't be stored is dropped, and both are said. Once a day, between two writes, what is older than
the record keeps is deleted.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque

from ..errors import InputError
from .apart import Apart
from .schema import RecordFault
from .store import Record
from .values import Document, Exchange, Stop

_PAUSE = 5.0
"""Seconds until what failed is tried again, when nothing else comes."""
_LOOK = 3_600.0
"""Seconds between two looks at whether the day is over."""


_STEP = threading.Lock()
"""Held while a thread of ours is inside of SQLite: a fork then would leave the child locks that nobody gives back."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_STEP.acquire, after_in_parent=_STEP.release, after_in_child=_STEP.release)


class Writer:
    """Writes to the record in the background.

    Args:
        path: the record's file; None: `default_path()`.
        timeout: how long to wait for another writer, in seconds.
        limit: so many bytes may wait; what comes beyond is dropped.
        apart: the record is a process of its own: for a program that has better things to do with its threads.

    Attributes:
        fault: what went wrong last, in one line; "" if nothing ever did. What waits may have been stored since.
        written, dropped: how many of the things handed over were stored, and how many never will be.
        notes: what had to be mended to keep the record private, a line each.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        timeout: float = 10.0,
        limit: int = 256 << 20,
        apart: bool = False,
    ) -> None:
        self.fault = ""
        self.written = self.dropped = 0
        self.notes: tuple[str, ...] = ()
        self._path, self._timeout, self._limit, self._apart = path, timeout, limit, apart
        self._queue: deque[Exchange | Document | Stop] = deque()
        self._waiting = 0
        self._asked = 0
        self._closing = False
        self._news = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="cutline-record", daemon=True)
        self._thread.start()

    def submit(self, item: Exchange | Document | Stop) -> None:
        """Hand something over to be stored. Returns at once and never raises."""
        with self._news:
            if self._closing or self._waiting + _weight(item) > self._limit:
                self.dropped += 1
                return
            self._queue.append(item)
            self._waiting += _weight(item)
            self._asked += 1
            self._news.notify_all()

    def flush(self, timeout: float = 10.0) -> bool:
        """Wait until everything that was handed over is stored or dropped; False if the time was too short."""
        with self._news:
            self._asked += 1
            self._news.notify_all()
            return self._news.wait_for(lambda: not self._queue, timeout)

    def close(self, timeout: float = 15.0) -> bool:
        """Store what waits, as far as that is possible now, and end; False if the time was too short."""
        with self._news:
            self._closing = True
            self._news.notify_all()
        self._thread.join(timeout)
        return not self._thread.is_alive()

    # ------------------------------------------------------------------------------------- the thread

    def _run(self) -> None:
        record: Record | Apart | None = None
        looked = float("-inf")
        while True:
            with self._news:
                self._news.wait_for(lambda: self._queue or self._closing)
                if not self._queue:
                    break
                item, asked = self._queue[0], self._asked
            passing = False
            try:
                with _STEP:
                    if record is None:
                        record = (Apart if self._apart else Record)(self._path, timeout=self._timeout)
                    _store(record, item)
                    self.notes = record.notes
                stored = True
            except Exception as error:
                stored, passing = False, isinstance(error, RecordFault) and error.passing
                self.fault = told(error)
            with self._news:
                if passing and not self._closing:
                    if self._asked == asked:
                        self._news.wait(_PAUSE)
                    continue
                if passing:
                    self.dropped += len(self._queue)
                    self._queue.clear()
                else:
                    self.written, self.dropped = self.written + stored, self.dropped + (not stored)
                    self._queue.popleft()
                    self._waiting -= _weight(item)
                self._news.notify_all()
                idle = not self._queue and not self._closing
            if record is not None and stored and idle and time.monotonic() - looked > _LOOK:
                looked = time.monotonic()
                self._look_after(record)
        if record is not None:
            with _STEP:
                record.close()

    def _look_after(self, record: Record | Apart) -> None:
        try:
            with _STEP:
                record.look_after(time.time())
        except Exception as error:
            self.fault = told(error)


def _store(record: Record | Apart, item: Exchange | Document | Stop) -> None:
    if isinstance(item, Exchange):
        record.write(item)
    elif isinstance(item, Document):
        record.put_document(item)
    else:
        record.stop(item.session, item.seam, item.rule, item.why, item.at)


def _weight(item: Exchange | Document | Stop) -> int:
    if isinstance(item, Exchange):
        return len(item.body) + len(item.answer)
    return len(item.json) if isinstance(item, Document) else len(item.why)


def told(error: Exception) -> str:
    """Why something could not be stored, in one line."""
    said = " ".join(str(error).split())
    return (
        said if isinstance(error, InputError) else f"an exchange could not be recorded: {type(error).__name__} {said}"
    )
