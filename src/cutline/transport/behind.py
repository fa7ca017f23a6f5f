"""What is done with a request after its last byte: read the answer, count, record, prove again, keep the history.

Law: a thread of its own; nothing in here delays or changes a request, nothing that goes wrong in here reaches the
program. Nothing of a header is kept.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import logging
import os
import queue
import threading
import time
import uuid
import weakref
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .. import project
from ..cutter import Verdict
from ..errors import Unreadable
from ..measure import request_of
from ..proxy.routes import Route
from ..record import Exchange, Writer, greeting
from ..wire import answers
from ..wire import anthropic as wire
from ..wire.answers import Answer
from ..wire.neutral import Native
from .deciding import Decider, Decision
from .report import Report, Sums

log = logging.getLogger("cutline")

CLIENT = "python"
"""The client's name in the record."""
_KEPT = 32 * 1024 * 1024  # bytes of an answer that are kept
_ENDING_S = 15.0  # how long a program's end waits for what is not recorded yet
_FAULTS = 100  # so many different ones are told
_AGAIN_S = 20.0  # how often a growing history is proven whole again
_CONVERSATIONS, _MEMORY = 16, 64 * 1024 * 1024  # so many, and so many bytes of, last histories are kept for recall


@dataclass(slots=True)
class Passed:
    """A request that carried a history, while it is answered.

    Attributes:
        route: what it is, by its address.
        sent: what went out at last.
        plain: `sent.body` has no content encoding.
        at: when it came, seconds since the epoch.
        status: the answer's status; 0 where there was none.
        content_type: the answer's.
        decode: undoes the answer's content encoding, as far as its bytes are there.
        refused: what the provider said to a cut body that it refused; "" where it refused none.
        verdict: what succeeded after that.
        seam: the checkpoint at which the refused body was cut.
    """

    route: Route
    sent: Decision
    plain: bool
    at: float
    status: int = 0
    content_type: str = ""
    decode: Callable[[list[bytes]], bytes] = b"".join
    refused: str = ""
    verdict: Verdict | None = None
    seam: str = ""
    _chunks: list[bytes] | None = None
    _size: int = 0
    _done: bool = False

    def hear(self, chunk: bytes) -> None:
        """Bytes of the answer, as they came."""
        if self._chunks is None:
            self._chunks = []
        if self._size < _KEPT:
            self._chunks.append(chunk)
            self._size += len(chunk)

    def once(self) -> bool:
        """True the first time: an answer that was read to its end is closed too."""
        done, self._done = self._done, True
        return not done

    @property
    def answer(self) -> bytes:
        """The answer without its encoding."""
        return self.decode(self._chunks or [])


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation as its last request left it.

    Attributes:
        id: by its beginning; "" for the first one that passed.
        request: its history, in the shape that all is decided on.
        answer: what it was answered.
        at: when.
        size: bytes of the body.
    """

    id: str
    request: wire.Request
    answer: Answer
    at: float
    size: int


class Behind:
    """Follows a transport.

    Args:
        decider: proves again.
        record: the record's file; None where recording is off.
        directory: where the program works.
        session: its id in the record; "" for a new one.
    """

    def __init__(self, decider: Decider, record: Path | None, directory: Path, session: str = "") -> None:
        self.session = session or f"{CLIENT}-{uuid.uuid4().hex[:12]}"
        self.record = record
        self.directory = directory
        self.sums = Sums()
        self._decider = decider
        self._conversations: OrderedDict[str, Conversation] = OrderedDict()
        self._first = ""
        self._scope = ""
        self._proved = 0.0
        self.begin()
        _ALL.add(self)

    def begin(self) -> None:
        """What belongs to this process: a fork has none of its parent's threads."""
        self._lock = threading.Lock()
        self._queue: queue.SimpleQueue[Passed | threading.Event | None] = queue.SimpleQueue()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._writer: Writer | None = None

    # ------------------------------------------------------------------------------ for the program's threads

    def passed(self, passed: Passed) -> None:
        """Note a request that was answered; returns at once."""
        self._start()
        self._queue.put(passed)

    def other(self) -> None:
        """Note a request without a history."""
        with self._lock:
            self.sums.others += 1

    def report(self) -> Report:
        """What has passed so far."""
        with self._lock:
            return self.sums.report(str(self.record or ""))

    def settle(self, timeout: float) -> bool:
        """Wait until all that passed is counted; False if the time was too short."""
        if not self._runs():
            return True
        reached = threading.Event()
        self._queue.put(reached)
        return reached.wait(timeout)

    def flush(self, timeout: float) -> bool:
        """Wait until all that passed is counted and recorded; False if the time was too short, or the record fails."""
        until = time.monotonic() + timeout
        if not self.settle(timeout):
            return False
        # A record that can't be written is tried again for as long as it takes: nobody waits for that.
        while (writer := self._writer) is not None and not writer.flush(0.05):
            if writer.fault or time.monotonic() > until:
                self._hear_the_writer(writer)
                return False
        return True

    def end(self) -> None:
        """Let the thread end behind what is queued; returns at once."""
        if self._runs():
            self._queue.put(None)

    def close(self, timeout: float) -> None:
        """Work off what is queued, and end."""
        thread = self._thread
        if thread is not None and self._runs():
            self._queue.put(None)
            thread.join(timeout)

    @property
    def scope(self) -> str:
        """The project that recall is scoped to."""
        if not self._scope:
            self._scope = project.project(self.directory)
        return self._scope

    def conversations(self) -> list[Conversation]:
        """The conversations that are remembered, the latest first."""
        with self._lock:
            return list(reversed(self._conversations.values()))

    def fault(self, text: str) -> None:
        """Say once that something of ours failed."""
        with self._lock:
            if text in self.sums.faults or len(self.sums.faults) >= _FAULTS:
                return
            self.sums.faults.append(text)
        log.warning("cutline: %s", text)

    # --------------------------------------------------------------------------------------------- the thread

    def _runs(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _start(self) -> None:
        with self._starting:
            if not self._runs():
                self._thread = threading.Thread(target=self._run, name="cutline-transport", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            if isinstance(item, threading.Event):
                item.set()
                continue
            try:
                self._note(item)
            except Exception as error:  # the program goes on without this request's figures
                self.fault(f"a request could not be counted: {type(error).__name__}: {error}")
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()
            self._hear_the_writer(writer)

    def _note(self, passed: Passed) -> None:
        sent = passed.sent
        if sent.fault:
            self.fault(sent.fault)
        if passed.refused:
            self.fault(_told(passed))
        read: tuple[wire.Request, Native | None] | None = None
        try:
            read = request_of(sent.whole)
        except Unreadable:
            pass
        format = _format(passed.route, read)
        answer = answers.read(format, passed.content_type, passed.answer)
        with self._lock:
            self.sums.add(passed.route.kind, sent, passed.status, format, answer, read)
        if passed.route.kind != "count":
            # A Chat body without a call is of no format by its content; it is kept all the same.
            agent = self._remember(read[0], passed, answer) if read is not None else ""
            self._record(passed, agent, answer)
            self._prove_again(passed)

    def _remember(self, request: wire.Request, passed: Passed, answer: Answer) -> str:
        """The conversation of a request, by its messages before the agent's first."""
        opening = hashlib.sha256()
        for message in request.messages:
            if message.role == "assistant":
                break
            opening.update(request.body[message.start : message.end])
        id = opening.hexdigest()[:12]
        self._first = self._first or id
        held = Conversation("" if id == self._first else id, request, answer, passed.at, len(passed.sent.whole))
        if 0 < passed.status < 400:
            with self._lock:
                self._conversations.pop(id, None)
                self._conversations[id] = held
                size = sum(one.size for one in self._conversations.values())
                while len(self._conversations) > 1 and (len(self._conversations) > _CONVERSATIONS or size > _MEMORY):
                    size -= self._conversations.popitem(last=False)[1].size
        return held.id

    def _record(self, passed: Passed, agent: str, answer: Answer) -> None:
        if self.record is None:
            return
        if self._writer is None:
            if not self.record.exists():
                log.warning("cutline: %s; Transport(record=False) keeps none", greeting(self.record).split(";")[0])
            self._writer = Writer(self.record)
        content = json.dumps(answer.content, ensure_ascii=False).encode("utf-8", "surrogatepass")
        self._writer.submit(
            Exchange(
                session=self.session,
                agent=agent,
                client=CLIENT,
                project=self.scope,
                at=passed.at,
                body=passed.sent.whole,
                sent=len(passed.sent.body),
                seam=passed.sent.seam,
                status=passed.status,
                answer=content if answer.content else b"",
                usage=dict(answer.usage),
                kind=passed.route.kind,
            )
        )
        self._hear_the_writer(self._writer)

    def _hear_the_writer(self, writer: Writer) -> None:
        if writer.fault:
            self.fault(f"the record: {writer.fault}")

    def _prove_again(self, passed: Passed) -> None:
        """A history that grew behind a proven seam was copied as it came: that is proven whole from time to time."""
        sent, now = passed.sent, time.monotonic()
        if not sent.changed or not passed.plain or now - self._proved < _AGAIN_S:
            return
        self._proved = now
        fault = self._decider.prove(sent)
        if fault:
            self._decider.learn(sent.seam, "original")
            self.fault(f"the proof failed, and cutting stopped at this seam: {fault}")


_ALL: weakref.WeakSet[Behind] = weakref.WeakSet()


@atexit.register
def _at_exit() -> None:
    """What is queued is recorded when the program ends, too."""
    for behind in list(_ALL):
        behind.close(_ENDING_S)


def _forked() -> None:
    for behind in list(_ALL):
        behind.begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def _format(route: Route, read: tuple[wire.Request, Native | None] | None) -> str:
    """The format of an answer: by the address, since a short history may be of several by its content."""
    if route.format in answers.FORMATS:
        return route.format
    return read[1].format if read is not None and read[1] is not None else "anthropic"


def _told(passed: Passed) -> str:
    """A refusal in one line: what the provider said, and what was done."""
    try:
        value = json.loads(passed.refused)
        said = str(value["error"]["message"])
    except (ValueError, KeyError, TypeError, RecursionError):
        said = passed.refused
    done: dict[Verdict | None, str] = {
        "late": "the cut without the tail's thinking was accepted",
        "strict": "the cut without neighbours of one role was accepted",
        "original": "the original was accepted, and cutting stopped at this seam",
        None: "so was the original: the cut was not at fault",
    }
    return f"the provider refused the cut at {passed.seam} ({answers.printable(said)[:300]}); {done[passed.verdict]}"
