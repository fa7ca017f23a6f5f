"""A session file as events, and which of them the client makes its next request of.

Law: the client's own rules (docs/copilot-cli-sessions.md). Events count in the order of the file; links between them
say nothing. A compaction that succeeded stands for everything before it began.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import InputError
from ..lines import Lines, pairs, read_lines, unview, word

LABEL = "GitHub Copilot CLI"
_SPOKEN = ("user.message", "assistant.message", "tool.execution_complete", "system.notification", "tool.user_requested")
_RECENT = 4096


class Event(NamedTuple):
    """One event: where it stands and what it is about.

    Attributes:
        offset, length: its JSON literal, ``file[offset:offset + length]``.
        type: "user.message", "assistant.message" and many more.
        id, parent, timestamp: as written; "" where absent.
        inner: it is a sub-agent's own.
        call: the call that it is about; "" elsewhere.
        calls: ids of the calls that an agent's message makes.
        model: of an agent's message, or of a change of the model.
        hook: the hook's run that it is about.
        done: a compaction or a call that succeeded.
    """

    offset: int
    length: int
    type: str
    id: str = ""
    parent: str = ""
    timestamp: str = ""
    inner: bool = False
    call: str = ""
    calls: tuple[str, ...] = ()
    model: str = ""
    hook: str = ""
    done: bool = False


@dataclass(slots=True)
class Log:
    """A session file that was read.

    Attributes:
        lines: the file, and what could not be read of it.
        events: in file order.
        id, version: of the session's first event: its id, and the client's version.
        cwd, branch: the directory and the git branch that it was last gone on in.
        sent: the events that the client makes its request of, in its order: a compaction's end first.
        without: names of what stands beside the file and goes into no copy.
    """

    lines: Lines = field(init=False)
    events: list[Event] = field(default_factory=list)
    id: str = ""
    version: str = ""
    cwd: str = ""
    branch: str = ""
    sent: list[int] = field(default_factory=list)
    without: frozenset[str] = frozenset()
    _seen: dict[str, str] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        """The file."""
        return self.lines.path

    @contextmanager
    def reader(self) -> Iterator[Callable[[Event], bytes]]:
        """Open the file once and give a function that reads an event's bytes again. Raises InputError."""
        with self.lines.reader() as fetch:
            yield lambda event: fetch(event.offset, event.length)

    def take(self, got: dict[str, Any], line: int, offset: int, length: int) -> bool:
        """Index an object; False where it is no event."""
        type_ = word(got, "type")
        data = pairs(got.get("data"))
        if not type_ or type(got.get("data")) is not tuple:
            return False
        if type_ in ("session.start", "session.resume"):
            context = pairs(data.get("context"))
            if type_ == "session.start" and not self.id:
                self.id, self.version = unview(word(data, "sessionId")), unview(word(data, "copilotVersion"))
            self.cwd = unview(word(context, "cwd")) or self.cwd
            self.branch = unview(word(context, "branch")) or self.branch
        requests = data.get("toolRequests")
        calls = map(pairs, requests) if type_ == "assistant.message" and type(requests) is list else iter(())
        if len(self._seen) > _RECENT:
            self._seen.clear()
        same = self._seen.setdefault
        id_, parent, call = word(got, "id"), word(got, "parentId"), word(data, "toolCallId")
        model = word(data, "newModel" if type_ == "session.model_change" else "model")
        self.events.append(
            Event(
                offset,
                length,
                same(type_, type_),
                same(id_, id_),
                same(parent, parent),
                word(got, "timestamp"),
                bool(word(got, "agentId") or word(data, "parentToolCallId")),
                same(call, call),
                tuple(word(request, "toolCallId") for request in calls),
                same(model, model),
                word(data, "hookInvocationId"),
                data.get("success") is True and (type_[:5] == "tool." or bool(word(data, "summaryContent"))),
            )
        )
        return True


def read(path: str | os.PathLike[str]) -> Log:
    """Read a session file.

    Raises:
        InputError: it can't be read, or is no session.
    """
    log = Log()
    log.lines = read_lines(Path(path), log.take, LABEL)
    if not log.id:
        raise InputError(f"{path}: no beginning of a session of {LABEL} in it; type: cutline ls")
    log.sent = sent(log.events)
    return log


def sent(events: Sequence[Event]) -> list[int]:
    """The events that the client makes its request of, in its order."""
    found: list[int] = []
    started: int | None = None
    for number, event in enumerate(events):
        if event.inner:
            continue
        if event.type == "session.compaction_start":
            started = len(found)
        elif event.type == "session.compaction_complete" and event.done:
            found = [number, *found[len(found) if started is None else started :]]
            started = None
        elif event.type == "session.context_cleared":
            found, started = [number], None
        elif event.type in _SPOKEN:
            found.append(number)
    return found
