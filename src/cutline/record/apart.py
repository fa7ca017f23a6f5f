"""A record in a process of its own: what it takes to store is not taken from the threads of the program.

Law: each call does what it does on `store.Record`, with the same faults. A process that died is started again, once
for a call, and what it may have stored by then is stored once. It ends when its program does, however that ends, and
not in the middle of a write.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from .schema import RecordFault
from .values import Document, Exchange

_ENDING_S = 10.0
_PIPE = 1 << 20  # bytes that wait in the pipe, where the system lets us say so: most requests fit
_AGAIN = {"write": "add", "put_document": "add_document"}
"""What is asked in place of a call that may have been done already."""


class Apart:
    """A record for writing, in a process of its own.

    Args:
        path: the record's file; None: `default_path()`.
        timeout: how long to wait for another writer, in seconds.

    Attributes:
        notes: what had to be mended to keep the record private, a line each.

    Raises:
        RecordFault: from every method, as `store.Record` raises it, or since the process can't be had.
    """

    def __init__(self, path: str | os.PathLike[str] | None, timeout: float) -> None:
        self.notes: tuple[str, ...] = ()
        self._place = "" if path is None else str(Path(path).absolute())
        self._command = [sys.executable, "-P", "-m", "cutline.record.served", self._place, str(timeout)]
        self._process: subprocess.Popen[bytes] | None = None

    def write(self, exchange: Exchange) -> None:
        """See `store.Record.write`."""
        self._ask("write", exchange)

    def put_document(self, document: Document) -> None:
        """See `store.Record.put_document`."""
        self._ask("put_document", document)

    def stop(self, session: str, seam: str, rule: str, why: str, at: float) -> None:
        """See `store.Record.stop`."""
        self._ask("stop", session, seam, rule, why, at)

    def look_after(self, now: float) -> None:
        """See `store.Record.look_after`."""
        self._ask("look_after", now)

    def close(self) -> None:
        """Let the process end, and wait for it."""
        process, self._process = self._process, None
        if process is None:
            return
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            with suppress(OSError):  # it has ended before
                pipe.close()
        with suppress(subprocess.TimeoutExpired):  # it ends by itself when it is done
            process.wait(_ENDING_S)

    def _ask(self, name: str, *arguments: Any) -> None:
        said = ""
        for asked in (name, _AGAIN.get(name, name)):
            try:
                fault, passing, self.notes = self._asked(asked, *arguments)
                break
            except (OSError, EOFError, pickle.UnpicklingError) as error:
                self.close()
                said = str(error) or "it ended"
        else:
            place = self._place or "the record"
            text = f"{place}: its process can't be had ({said}); see that {sys.executable} runs"
            raise RecordFault(text, passing=True)
        if fault:
            raise RecordFault(fault, passing)

    def _asked(self, name: str, *arguments: Any) -> tuple[str, bool, tuple[str, ...]]:
        if self._process is None:
            # A session of its own: what the terminal sends to its programs is not for it.
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                pipesize=_PIPE,
                start_new_session=True,
                creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
            )
        assert self._process.stdin is not None and self._process.stdout is not None
        pickle.dump((name, arguments), self._process.stdin, pickle.HIGHEST_PROTOCOL)
        self._process.stdin.flush()
        told: tuple[str, bool, tuple[str, ...]] = pickle.load(self._process.stdout)
        return told
