"""Recall: a call with its result, exactly as it was, from the record or from the client's session files.

Law: reading only, scoped to one project. The record is asked first, because it holds what no session file does
(requests of a session that was cleared, or made elsewhere); the session files always, because recording can be off.
"""

from __future__ import annotations

import posixpath
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, TypeVar

from . import events, narration, repeats
from .blocks import ToolCall
from .errors import InputError
from .record import Record, Recorded, Said, is_tool
from .record import texts as record_texts
from .sessions.clients import open_found, sessions
from .sessions.model import Session
from .sessions.reviving import uncompacted
from .specifics import value_of
from .wire import anthropic as wire

ADDRESS = re.compile(r"[0-9a-f]{16}\Z")
_MOST = 200  # calls about a file that are looked through for the one that a stub points to
_UNITS = ((90, 1, "s"), (5_400, 60, "min"), (172_800, 3_600, "h"), (float("inf"), 86_400, "d"))
_FILE_KEYS = ("file_path", "notebook_path", "filePath", "absolute_path")
_LARGEST = 20_000_000  # bytes of a file that is compared with what was read of it
_NUMBERED = re.compile(r"\s*(\d+)(?:\t|→)(.*)\Z", re.S)
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Recalled:
    """A call that was found.

    Attributes:
        call: the call with its result.
        session: the client's id of its session; "" where it gave none.
        at: when it was first seen with its result, seconds since the epoch; None where that is not known.
        message: index of its message in that history.
        content: the raw JSON of the result's content; b"" where there is none.
        project: the project that its session belongs to, or its directory; "" where neither is known.
    """

    call: ToolCall
    session: str
    at: float | None
    message: int
    content: bytes
    project: str = ""


class Source(Protocol):
    """Where calls are looked for. Each list is ordered newest first."""

    def calls(self, address: str) -> list[Recalled]:
        """Every place of an address."""

    def search(self, words: Sequence[str], limit: int, *, tool: str = "", since: float = 0.0) -> list[Recalled]:
        """Calls whose arguments or result hold all the words, in any case; of one tool, no older than a time."""

    def said(self, words: Sequence[str], limit: int, *, author: str = "", since: float = 0.0) -> list[Said]:
        """Texts of the agent or the human, or of one of them, that hold all the words."""


class SessionFiles:
    """The session files of one working directory, the newest first.

    Args:
        directory: the working directory; None for every one that there is.
    """

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory

    def calls(self, address: str) -> list[Recalled]:
        """Every place of an address in the newest session that has it."""
        for hits in self._of_each(lambda session: [one for one in of_session(session) if one.call.address == address]):
            if hits:
                return hits[::-1]
        return []

    def search(self, words: Sequence[str], limit: int, *, tool: str = "", since: float = 0.0) -> list[Recalled]:
        """Calls that hold all words, from the newest sessions on, until there are enough."""
        hits: list[Recalled] = []
        for found in self._of_each(lambda session: chosen(reversed(list(of_session(session))), words, tool, since)):
            hits += found
            if len(hits) >= limit:
                break
        return hits[:limit]

    def said(self, words: Sequence[str], limit: int, *, author: str = "", since: float = 0.0) -> list[Said]:
        """Texts that hold all words, from the newest sessions on, until there are enough."""
        hits: list[Said] = []
        for found in self._of_each(lambda session: said_in(session.history.body, words, author, since, session)):
            hits += found
            if len(hits) >= limit:
                break
        return hits[:limit]

    def _of_each(self, look: Callable[[Session], list[_T]]) -> Iterator[list[_T]]:
        """What is found in each session; one that can't be read hides none of the others."""
        for file in sessions(self._directory):
            try:
                found = look(uncompacted(open_found(file)))
            except InputError:
                continue
            yield found


class RecordedCalls:
    """The record's calls and texts within one project.

    Args:
        record: an open record.
        scope: the project's path; None for every project.
        session: only those of this session.
    """

    def __init__(self, record: Record, scope: str | None, session: str | None = None) -> None:
        self._record = record
        self._scope = scope
        self._session = session

    def calls(self, address: str) -> list[Recalled]:
        """Every place of an address."""
        hits = self._record.calls(self._scope, address)
        return [_recorded(hit) for hit in hits if self._session in (None, hit.session)]

    def search(self, words: Sequence[str], limit: int, *, tool: str = "", since: float = 0.0) -> list[Recalled]:
        """Calls that hold all words."""
        hits = self._record.search(
            self._scope, words, limit, tool=tool or None, since=since or None, session=self._session
        )
        return [_recorded(hit) for hit in hits]

    def said(self, words: Sequence[str], limit: int, *, author: str = "", since: float = 0.0) -> list[Said]:
        """Texts that hold all words."""
        return self._record.said(
            self._scope, words, limit, author=author or None, since=since or None, session=self._session
        )


def _recorded(hit: Recorded) -> Recalled:
    return Recalled(hit.found.call, hit.session, hit.at, hit.found.message, hit.content, hit.project)


def of_session(session: Session) -> Iterator[Recalled]:
    """Every call of a session file, in its order, at the time of the answer that made it."""
    times = [(one.message, time_of(one.timestamp)) for one in session.history.requests]
    at = None
    for hit in of_request(wire.read(session.history.body), session.id):
        while times and times[0][0] <= hit.message:
            at = times.pop(0)[1] or at
        yield replace(hit, at=at, project=session.cwd)


def said_in(
    body: bytes, words: Sequence[str], author: str = "", since: float = 0.0, session: Session | None = None
) -> list[Said]:
    """What agent and human said in a history and holds all words, newest first.

    Args:
        body: the history.
        words, author, since: as for a search.
        session: the session file that the history is of; its answers' times are the texts' times.
    """
    times = [(one.message, time_of(one.timestamp) or 0.0) for one in session.history.requests] if session else []
    name, where = (session.id, session.cwd) if session else ("", "")
    found: list[Said] = []
    at = 0.0
    for text in record_texts(wire.read(body)):
        while times and times[0][0] <= text.message:
            at = times.pop(0)[1]
        lowered = text.text.lower()
        if author in ("", text.author) and at >= since and all(word.lower() in lowered for word in words):
            found.append(Said(name, "", "", where, at, 0, text.author, text.text, text.message, text.block))
    return found[::-1]


def chosen(hits: Iterable[Recalled], words: Sequence[str], tool: str, since: float) -> list[Recalled]:
    """Those that hold all words, are calls of the tool (any, where it is ""), and are no older than a time."""
    return [
        hit
        for hit in hits
        if holds(hit.call, words) and (not tool or is_tool(hit.call.name, tool)) and (hit.at or 0.0) >= since
    ]


def time_of(timestamp: str) -> float | None:
    """Seconds since the epoch of a client's timestamp; None where it is none."""
    try:
        return datetime.fromisoformat(timestamp).timestamp()
    except ValueError:
        return None


def of_request(request: wire.Request, session: str, at: float | None = None) -> Iterator[Recalled]:
    """Every call of a history, in its order."""
    for found in events.calls(request):
        content = b""
        if found.result is not None:
            block = request.messages[found.result[0]].blocks[found.result[1]]
            content = wire.member(request, block, "content") or b""
        yield Recalled(found.call, session, at, found.message, content)


def holds(call: ToolCall, words: Sequence[str]) -> bool:
    """Whether a call's arguments and result together hold all words."""
    text = (call.arguments.decode("utf-8", "replace") + "\n" + (call.result or "")).lower()
    return all(word.lower() in text for word in words)


def by_address(sources: Sequence[Source], address: str) -> Recalled | None:
    """The newest place of an address; a result that only points back to an earlier one comes with that one's content.

    Args:
        sources: asked in their order, until one knows the address.
        address: 16 hex digits.
    """
    for source in sources:
        hits = source.calls(address)
        if hits:
            return _behind_a_stub(source, hits[0])
    return None


def by_words(sources: Sequence[Source], words: Sequence[str], limit: int) -> list[Recalled]:
    """Calls that hold all words, each address once, newest first within each source.

    Earlier calls of recall itself are left out: they only repeat what they found.
    """
    found: dict[str, Recalled] = {}
    for source in sources:
        for hit in source.search(words, 2 * limit):
            if not (narration.is_own(hit.call.name) and hit.call.name.endswith("recall")):
                found.setdefault(hit.call.address, hit)
    return list(found.values())[:limit]


def _behind_a_stub(source: Source, hit: Recalled) -> Recalled:
    """The full result that a client's "unchanged since your last read" points back to (docs/wire.md, 12).

    It is the last one before the pointer: what the same call was answered later may be another file by then.
    """
    if not (hit.call.result or "").startswith(wire.STUBS):
        return hit
    wanted = repeats.asked(hit.call.arguments)
    about = posixpath.basename(wanted.path) if wanted.path else str(_arguments(hit.call).get("url") or "")
    found = [
        other
        for other in (source.search([about], _MOST) if about else ())
        if other.call.result
        and not other.call.error
        and not other.call.result.startswith(wire.STUBS)
        and other.call.name == hit.call.name
        and _same(repeats.asked(other.call.arguments), wanted)
        and _before(other, hit)
    ]
    return max(found, key=_order, default=hit)


def _same(one: repeats.Asked, other: repeats.Asked) -> bool:
    if one.rest != other.rest or one.path is None or other.path is None:
        return one == other
    return one.path == other.path or one.path.endswith(f"/{other.path}") or other.path.endswith(f"/{one.path}")


def _before(other: Recalled, hit: Recalled) -> bool:
    if other.session != hit.session and (other.at is None or hit.at is None):
        return False  # nothing says which was first
    return _order(other) <= _order(hit)


def _order(hit: Recalled) -> tuple[float, int]:
    return hit.at or 0.0, hit.message


def _arguments(call: ToolCall) -> dict[str, Any]:
    value = value_of(call.arguments)
    return value if isinstance(value, dict) else {}


def _path_of(call: ToolCall) -> str:
    held = _arguments(call)
    return next((held[key] for key in _FILE_KEYS if isinstance(held.get(key), str)), "")


def staleness(hit: Recalled, directory: Path) -> str:
    """How far a read file's result still holds: "" for calls that read no file.

    Numbered lines, as clients print them, are compared with the file as it is; for anything else the time of the
    file's last change decides.

    Args:
        hit: the call.
        directory: what relative paths are relative to.
    """
    call = hit.call
    path = _path_of(call)
    if not path or call.result is None or call.error or "ead" not in call.name:
        return ""
    file = directory / path
    try:
        held = file.stat()
        if not stat.S_ISREG(held.st_mode) or held.st_size > _LARGEST:
            return f"{path} is no file that can be compared now"
        changed = held.st_mtime
        text = file.read_bytes().decode("utf-8", "replace")
    except FileNotFoundError:
        return f"{path} is gone by now"
    except OSError as error:
        return f"{path} can't be read now: {(error.strerror or str(error)).lower()}"
    shown = _numbered(call.result)
    if shown:
        lines = [
            line.removesuffix("\r") for line in text.split("\n")
        ]  # a client numbers what follows the last break too
        differ = [number for number, line in shown if number > len(lines) or lines[number - 1] != line]
        if not differ:
            return f"{path} still has these lines"
        return f"{path} changed since: {_ranges(differ)} differ now"
    if hit.at is not None and changed > hit.at:
        return f"{path} changed since ({datetime.fromtimestamp(changed, UTC):%Y-%m-%d %H:%M} UTC)"
    return f"{path} not changed since" if hit.at is not None else ""


def _numbered(result: str) -> list[tuple[int, str]]:
    """The numbered lines of a result, or nothing where it is not made of them."""
    found = []
    for line in result.split("\n"):
        match = _NUMBERED.match(line)
        if match is None:
            break  # what a client puts behind the file's lines
        found.append((int(match[1]), match[2].removesuffix("\r")))
    return found


def _ranges(numbers: Sequence[int]) -> str:
    """Line numbers as ranges: "line 3", "lines 3-5, 9"."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    told = [str(a) if a == b else f"{a}-{b}" for a, b in runs[:4]] + (["…"] if len(runs) > 4 else [])
    return f"line{'' if len(numbers) == 1 else 's'} {', '.join(told)}"


def when(at: float | None, now: float | None = None) -> str:
    """A time and how long ago it was: "2026-12-02 09:14 UTC, 3 min ago"; "" where it is not known."""
    if at is None:
        return ""
    past = max(0.0, (time.time() if now is None else now) - at)
    ago = next(f"{past / one:.0f} {unit}" for below, one, unit in _UNITS if past < below)
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC, {ago} ago"
