"""The cut copy of a session: a new folder beside the original's, which the client resumes.

Law: the original is only read. An event that stays keeps its bytes but for what the plan takes out of it or adds to it,
and for a link to an event that left. Made up are a name, and in a cut without a checkpoint the notice, in an event that
the client itself marks as the system's.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from ... import spans
from ...errors import InputError
from ...plan import Plan
from ...splice import result_literal
from ..files import TEMPORARY, unwritable, write_file
from ..lines import Opened, unview
from ..model import Copy, Prove
from ..neutral import NeutralHistory, without_notice
from .events import Event, Log, read
from .find import ABOUT, EVENTS
from .history import CALLS, REASONING, reasons, result
from .history import history as rebuilt

Fetch = Callable[[Event], bytes]
Edit = tuple[int, int, bytes]
"""Bytes `start` to `end` become these."""

# What the session keeps beside its events for the agent: a plan, files, what it stored before a summary, its lists.
_BESIDE = ("plan.md", "files", "research", "checkpoints", "session.db")
# The client's log of what it sent and was sent repeats whole requests; a resume never reads it.
_REPEATS = "model."
_ABOUT_A_CALL = ("tool.", "permission.", "external_tool.", "mcp.")
_ASSET = re.compile(rb'"assetId"\s*:\s*"([^"\\]*)"').findall
_CALL = re.compile(rb'"toolCallId"\s*:\s*"([^"\\]*)"').findall


def write(log: Log, history: NeutralHistory, plan: Plan, title: str, prove: Prove) -> Copy:
    """Write the cut copy of a session.

    Args:
        log, history: the session.
        plan: the decisions for `history.body`.
        title: the copy's name.
        prove: called with the finished file of events, its session id, and the id of the notice's event.

    Raises:
        InputError: the folder can't be written, or the disk is full.
    """
    source = log.path.resolve()
    new_id = str(uuid.uuid4())
    own = source.name == EVENTS
    final = (source.parent.parent if own else source.parent) / new_id
    copying = _Copying(log, history, plan, new_id)
    # The client passes over a folder whose name begins with a dot.
    folder = final.with_name(f".{new_id}{TEMPORARY}")
    _clear_left_overs(final.parent)
    held = -1
    try:
        folder.mkdir(mode=0o700)
        held = _hold(folder)
        _settle(source.parent if own else None, folder, new_id, title, log)
        size = write_file(folder / EVENTS, copying.lines(), lambda path: prove(path, new_id, copying.notice))
        folder.rename(final)
    except OSError as error:
        raise unwritable(final.parent, error) from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if held >= 0:
            os.close(held)
    missed = max(0, source.stat().st_size - log.lines.size)
    gone = len(copying.gone)
    return Copy(final / EVENTS, new_id, copying.notice, copying.written, gone, copying.relinked, size, missed)


def _hold(folder: Path) -> int:
    """Lock a folder that is being filled; gives what must be closed, -1 where folders can't be locked."""
    try:
        import fcntl

        handle = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):
        return -1
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return -1
    return handle


def _clear_left_overs(root: Path) -> None:
    """Remove the folders of runs that were killed: those that nobody holds a lock on."""
    for folder in root.glob(f".*{TEMPORARY}"):
        held = _hold(folder)
        if held >= 0:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(held)


def reread(path: Path, notice: str, before: bytes) -> tuple[bytes, str | None]:
    """The body of a written copy without the notice's own message, and what that message says."""
    log = read(path)
    found = rebuilt(log)
    return without_notice(found, before, (lambda record: log.events[record].id == notice) if notice else None)


def _settle(source: Path | None, folder: Path, new_id: str, title: str, log: Log) -> None:
    """Put beside the events what the original has there: its own words about itself, and the agent's files."""
    lines = {"id": new_id, "cwd": json.dumps(log.cwd)} if log.cwd else {"id": new_id}
    if source is not None:
        for name in _BESIDE:
            if name in log.without:
                continue
            if (source / name).is_dir() and not (source / name).is_symlink():
                shutil.copytree(source / name, folder / name, symlinks=True)
            elif (source / name).is_file():
                shutil.copyfile(source / name, folder / name)
        with suppress(OSError):
            for line in (source / ABOUT).read_text("utf-8", "replace").splitlines():
                key, colon, value = line.partition(": ")
                if colon and re.fullmatch(r"\w+", key):
                    lines[key] = value
    lines |= {"id": new_id, "name": json.dumps(title), "user_named": "true"}
    handle = os.open(folder / ABOUT, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as out:
        out.writelines(f"{key}: {value}\n" for key, value in lines.items())


@dataclass(slots=True)
class _Change:
    """What the plan does to one event: items that go (0 the text, 1 the reasoning, then the calls), what is added."""

    drop: set[int] = field(default_factory=set)
    add: list[bytes] = field(default_factory=list)


class _Copying:
    """The lines of the copy, one event at a time."""

    def __init__(self, log: Log, history: NeutralHistory, plan: Plan, new_id: str) -> None:
        self.log, self.history, self.plan, self.new_id = log, history, plan, new_id
        self.events = log.events
        self.written = self.relinked = 0
        self.changes = _changes(history, plan)
        self.by_id = {event.id: number for number, event in enumerate(self.events) if event.id}
        self.gone = self._gone()
        self.notice = str(uuid.uuid4()) if plan.last_notice is not None else ""
        self.behind = self._behind() if self.notice else None

    def _gone(self) -> set[int]:
        """Events that leave whole: all they say left, or they are about nothing but a call that left."""
        gone: set[int] = set()
        left: set[str] = set()
        kept: set[str] = set()
        runs: set[tuple[str, bytes]] = set()
        with self.log.reader() as fetch:
            for number, event in enumerate(self.events):
                change = self.changes.get(number)
                if event.type.startswith(_REPEATS):
                    gone.add(number)
                elif event.type == "assistant.message" and not event.inner:
                    dropped = change.drop if change else set()
                    for index, id_ in enumerate(event.calls, CALLS):
                        (left if index in dropped else kept).add(id_)
                    if change and self._whole(Opened(fetch(event)), event, change, runs):
                        gone.add(number)
                elif change and change.drop:
                    gone.add(number)
            left -= kept
            self._about_calls(gone, left, runs, fetch)
            self._assets(gone, fetch)
        return gone

    def _whole(self, opened: Opened, event: Event, change: _Change, runs: set[tuple[str, bytes]]) -> bool:
        """Whether nothing is left of an agent's message; notes the calls that left by name and arguments."""
        data = opened.inside(opened.members().get("data"))
        items = {0} if opened.literal(data.get("content")) not in (b"", b'""', b"null") else set[int]()
        items |= {1} if reasons(opened, data) else set()
        for index, (start, _) in enumerate(opened.elements(data.get("toolRequests")), CALLS):
            items.add(index)
            if index in change.drop:
                request = opened.members(start)
                name = opened.value(request.get("name"))
                arguments = opened.literal(request.get("arguments"))
                runs.add((str(name), spans.canonical(arguments)))
        return bool(change.drop) and change.drop >= items

    def _about_calls(self, gone: set[int], left: set[str], runs: set[tuple[str, bytes]], fetch: Fetch) -> None:
        """What repeats a call or a result that left: how it was carried out, what was asked for it, hooks of it."""
        hooks: set[str] = set()
        for number, event in enumerate(self.events):
            if event.inner or number in gone:
                continue
            if event.type.startswith(_ABOUT_A_CALL) and event.type != "tool.user_requested":
                asked = event.type.startswith("permission.") and not event.call
                ids = {id_.decode("latin-1") for id_ in _CALL(fetch(event))} if asked else {event.call}
                if ids & left:
                    gone.add(number)
            elif event.type == "hook.start":
                opened = Opened(fetch(event))
                given = opened.inside(opened.inside(opened.members().get("data")).get("input"))
                name, arguments = opened.value(given.get("toolName")), opened.value(given.get("toolArgs"))
                text = isinstance(arguments, str)
                raw = arguments.encode("utf-8", "surrogatepass") if text else opened.literal(given.get("toolArgs"))
                if isinstance(name, str) and (name, spans.canonical(raw)) in runs:
                    gone.add(number)
                    hooks.add(event.hook)
            elif event.type.startswith("hook.") and event.hook in hooks:
                gone.add(number)

    def _assets(self, gone: set[int], fetch: Fetch) -> None:
        """Pictures that stand in an event of their own leave with the last event that names them."""
        assets = [number for number, event in enumerate(self.events) if event.type == "session.binary_asset"]
        if not assets:
            return
        named: dict[bool, set[bytes]] = {True: set(), False: set()}
        for number, event in enumerate(self.events):
            if event.type != "session.binary_asset":
                named[number in gone].update(_ASSET(fetch(event)))
        lost = named[True] - named[False]
        gone.update(number for number in assets if lost.intersection(_ASSET(fetch(self.events[number]))))

    def _behind(self) -> int | None:
        """The event that the notice stands before; None where it comes last."""
        for places in self.history.places[self.plan.seam.message :]:
            if places[0][0] not in self.gone:
                return places[0][0]
        return None

    # ------------------------------------------------------------------------------------------- lines

    def lines(self) -> Iterator[bytes]:
        """The copy, line by line."""
        last = ""
        with self.log.reader() as fetch:
            for number, event in enumerate(self.events):
                if number == self.behind:
                    yield self._noted(self._above(event.parent), event.timestamp)
                if number not in self.gone:
                    self.written += 1
                    last = event.id or last
                    yield self._event(number, event, Opened(fetch(event)))
        if self.notice and self.behind is None:
            now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            yield self._noted(last, now)

    def _noted(self, parent: str, timestamp: str) -> bytes:
        self.written += 1
        data = b'{"content":%s,"kind":{"type":"unclassified"}}' % spans.quote(self.plan.last_notice or "")
        link = spans.quote(unview(parent)) if parent else b"null"
        ids = b'"id":"%s","timestamp":%s,"parentId":%s' % (self.notice.encode(), spans.quote(unview(timestamp)), link)
        return b'{"type":"system.notification","data":%s,%s}\n' % (data, ids)

    def _above(self, parent: str) -> str:
        """The nearest event at or above this one that stays; "" if none does."""
        seen: set[str] = set()
        while parent not in seen and self.by_id.get(parent) in self.gone:
            seen.add(parent)
            parent = self.events[self.by_id[parent]].parent
        return "" if parent in seen else parent

    def _event(self, number: int, event: Event, opened: Opened) -> bytes:
        members = opened.members()
        edits: list[Edit] = []
        above = self.notice if number == self.behind else self._above(event.parent)
        if above != event.parent and "parentId" in members:
            link = spans.quote(unview(above)) if above else b"null"
            edits.append((members["parentId"].start, members["parentId"].end, link))
            self.relinked += number != self.behind
        data = opened.inside(members.get("data"))
        change = self.changes.get(number)
        if event.type == "session.start" and opened.value(data.get("sessionId")) == self.log.id:
            edits.append((data["sessionId"].start, data["sessionId"].end, b'"%s"' % self.new_id.encode()))
        elif change and change.add:
            told = result(opened, data)[0]
            if told is None or any(added[:1] == b"," for added in change.add):
                raise InputError(f"{self.log.path}: the checkpoint's result is no text; cut elsewhere with --at")
            edits.append((told.end - 1, told.end - 1, b"".join(change.add)))
        elif change and event.type == "assistant.message":
            edits.append(_said(opened, members["data"], data, change))
        raw = opened.raw
        for start, end, new in sorted(edits, reverse=True):
            raw = raw[:start] + new + raw[end:]
        return raw.replace(b"\n", b" ") + b"\n" if b"\n" in raw else raw + b"\n"


def _changes(history: NeutralHistory, plan: Plan) -> dict[int, _Change]:
    """What the plan does, by event."""
    request = plan.request
    changes: dict[int, _Change] = {}
    for key in plan.drop:
        number, item = history.places[key[0]][key[1]]
        changes.setdefault(number, _Change()).drop.add(item)
    for key, additions in plan.add.items():
        number, _ = history.places[key[0]][key[1]]
        literal, places = result_literal(request, request.messages[key[0]].blocks[key[1]], additions)
        changes.setdefault(number, _Change()).add += [literal[start:end] for start, end, _ in places]
    return changes


def _said(opened: Opened, whole: spans.Member, data: dict[str, spans.Member], change: _Change) -> Edit:
    """An agent's message without what left it."""
    parts: list[bytes] = []
    for key, member in data.items():
        literal = opened.raw[member.at : member.end]
        if key in (*REASONING, "reasoningWireField") and 1 in change.drop:
            continue
        if key == "content" and 0 in change.drop:
            literal = opened.raw[member.at : member.start] + b'""'
        elif key == "toolRequests":
            requests = enumerate(opened.elements(member), CALLS)
            kept = [opened.raw[start:end] for index, (start, end) in requests if index not in change.drop]
            literal = opened.raw[member.at : member.start] + b"[" + b",".join(kept) + b"]"
        parts.append(literal)
    return whole.start, whole.end, b"{" + b",".join(parts) + b"}"
