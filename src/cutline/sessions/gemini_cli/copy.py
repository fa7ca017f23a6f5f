"""The cut copy of a session: a new file beside the original, which the client resumes.

Law: the original is only read. The copy holds the live messages in their order, each with its own bytes but for what
the plan takes out of it or adds to it, and but for second copies of results. Nothing is made up but the id, the mark in
the title and, in a cut without a checkpoint, the notice in a message of its own. The copy is complete, proven and
durable before it has a session's name.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from ... import spans
from ...plan import Plan
from ...splice import result_literal
from ..files import write_file
from ..model import Copy, Prove
from ..neutral import NeutralHistory, without_notice
from .editing import edited, joined
from .history import Pairing, build
from .log import Entry, Log, read
from .pieces import opened


@dataclass(slots=True)
class _Change:
    """What the plan does to one message: by index of its piece."""

    drop: set[int] = field(default_factory=set)
    filled: dict[int, bytes] = field(default_factory=dict)


def write(log: Log, history: NeutralHistory, plan: Plan, title: str, prove: Prove) -> Copy:
    """Write the cut copy of a session.

    Args:
        log: the original.
        history: its history.
        plan: the decisions for that history's body.
        title: the copy's title (a saved chat has none).
        prove: called with the finished temporary file, its session id, and the name of the notice's message.

    Raises:
        InputError: the folder can't be written, or the disk is full.
    """
    source = log.path.resolve()
    rewriting = _Rewriting(log, history, plan, title)
    final, id_ = rewriting.name(source)
    # Whether it is one document or lines, a reader sees by the name's ending.
    size = write_file(final, rewriting.lines(), lambda path: prove(path, id_, rewriting.notice), ending=final.suffix)
    missed = max(0, source.stat().st_size - log.size)
    return Copy(final, id_, rewriting.notice, rewriting.written, rewriting.removed, 0, size, missed)


class _Rewriting:
    """The bytes of the copy, one message at a time."""

    def __init__(self, log: Log, history: NeutralHistory, plan: Plan, title: str) -> None:
        self.log, self.history, self.plan, self.title = log, history, plan, title
        self.id = str(uuid.uuid4())
        self.written = self.removed = 0
        self.changes = _changes(history, plan)
        self.notice = ""
        self.first_behind: int | None = None
        if plan.last_notice is not None:
            self.first_behind = self._first_behind()
            self.notice = self._notice_name()

    def name(self, source: Path) -> tuple[Path, str]:
        """The copy's path and id, named as the client names sessions, or as it names saved chats."""
        short = self.id[:8]
        if self.log.shape == "contents":
            stem = f"{source.stem.partition('-cut-')[0]}-cut-{short}"
            return source.with_name(f"{stem}.json"), stem
        minute = datetime.now(UTC).strftime("%Y-%m-%dT%H-%M")
        ending = "jsonl" if self.log.shape == "lines" else "json"
        return source.with_name(f"session-{minute}-{short}.{ending}"), self.id

    def lines(self) -> Iterator[bytes]:
        """The copy, piece by piece."""
        if self.log.shape == "lines":
            yield self._description()
            for message in self._messages():
                yield message.replace(b"\n", b" ") + b"\n"
        else:
            yield from self._document()

    def _messages(self) -> Iterator[bytes]:
        pairing = Pairing()
        with self.log.reader() as fetch:
            for number, entry in enumerate(self.log.entries):
                if self.notice and number == self.first_behind:
                    yield self._notice_message(fetch, entry)
                kept = self._message(number, fetch(entry), pairing)
                if kept is None:
                    self.removed += 1
                else:
                    self.written += 1
                    yield kept
            if self.notice and self.first_behind is None:
                yield self._notice_message(fetch, None)

    def _message(self, number: int, raw: bytes, pairing: Pairing) -> bytes | None:
        message = opened(raw)
        claims = pairing.take(message)
        change = self.changes.get(number, _Change())
        gone = change.drop | {index for index, claim in enumerate(claims) if claim is None}
        return edited(message, gone, change.filled)

    def _description(self) -> bytes:
        """The first line: what the original's lines say of the session, the last of each."""
        meta = {**self.log.meta, "sessionId": spans.quote(self.id), "summary": spans.quote(self.title)}
        self.written += 1
        return b"{%s}\n" % b",".join(b"%s:%s" % (spans.quote(key), literal) for key, literal in meta.items())

    def _document(self) -> Iterator[bytes]:
        """A document around other messages."""
        data = self.log.path.read_bytes()[: self.log.size]
        view = data.decode("latin-1")
        at = spans.skip(view, 0)
        if view[at] == "[":
            start, end = at, len(view.rstrip())
            edits: list[tuple[int, int, bytes]] = []
        else:
            top = spans.members(view, at)[0]
            found = {member.key: member for member in top}
            member = found.get("messages") or found["history"]
            start, end = member.start, member.end
            edits = []
            if self.log.shape == "document":
                edits.append((found["sessionId"].start, found["sessionId"].end, spans.quote(self.id)))
                if "summary" in found:
                    edits.append((found["summary"].start, found["summary"].end, spans.quote(self.title)))
                else:
                    gap = view[top[0].end : top[1].at].encode("latin-1") if len(top) > 1 else b","
                    edits.append((member.at, member.at, b'"summary":%s%s' % (spans.quote(self.title), gap)))
                if "memoryScratchpad" in found:
                    notes = found["memoryScratchpad"]
                    edits.append((notes.start, notes.end, b"null"))
        items = [(first, last) for first, last in spans.elements(view, start)[0] if view[first] == "{"]
        edits.append((start, end, joined(data, (start, end), items, list(self._messages()))))
        for begin, stop, new in sorted(edits, reverse=True):
            data = data[:begin] + new + data[stop:]
        yield data

    def _first_behind(self) -> int | None:
        """The message that the notice stands before; None where it comes last.

        At the end of a history that is before the agent's last message: a resumed session then goes on behind the
        agent's words, and the next prompt is a turn of its own.
        """
        places, origins = self.history.places, self.history.origins
        start = self.plan.seam.message
        if start < len(places):
            return min(record for record, _ in places[start])
        for number in range(len(places) - 1, -1, -1):
            kept = [record for record, piece in places[number] if piece not in self._drop(record)]
            if kept:
                return min(kept) if origins[number] == "agent" else None
        return None

    def _drop(self, record: int) -> set[int]:
        change = self.changes.get(record)
        return change.drop if change else set()

    def _notice_name(self) -> str:
        """The id of the notice's message; in a saved chat, whose messages have none, its place among them."""
        if self.log.shape != "contents":
            return str(uuid.uuid4())
        pairing = Pairing()
        until = len(self.log.entries) if self.first_behind is None else self.first_behind
        with self.log.reader() as fetch:
            kept = [self._message(number, fetch(self.log.entries[number]), pairing) for number in range(until)]
        return f"#{sum(raw is not None for raw in kept)}"

    def _notice_message(self, fetch: Callable[[Entry], bytes], near: Entry | None) -> bytes:
        """A message of the user's side that the client sends and does not draw."""
        self.written += 1
        text = b'[{"text":%s}]' % spans.quote(self.plan.last_notice or "")
        if self.log.shape == "contents":
            return b'{"role":"user","parts":%s}' % text
        when = opened(fetch(near)).word("timestamp") if near else ""
        when = when or datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return b'{"id":"%s","timestamp":%s,"type":"user","content":%s,"displayContent":[{"text":" "}]}' % (
            self.notice.encode(),
            spans.quote(when),
            text,
        )


def _changes(history: NeutralHistory, plan: Plan) -> dict[int, _Change]:
    """What the plan does, by message of the file."""
    request = plan.request
    changes: dict[int, _Change] = {}

    def at(key: tuple[int, int]) -> tuple[_Change, int]:
        record, piece = history.places[key[0]][key[1]]
        return changes.setdefault(record, _Change()), piece

    for key in plan.drop:
        change, piece = at(key)
        change.drop.add(piece)
    for key, additions in plan.add.items():
        change, piece = at(key)
        literal = result_literal(request, request.messages[key[0]].blocks[key[1]], additions)[0]
        content = next(m for m in spans.members(literal.decode("latin-1"), 0)[0] if m.key == "content")
        change.filled[piece] = literal[content.start : content.end]
    return changes


def reread(path: Path, notice: str, before: bytes) -> tuple[bytes, str | None]:
    """The body of a written copy without the notice's own message, and what that message says.

    Args:
        path: the copy.
        notice: id of the notice's message, or its place in a saved chat; "" for none.
        before: the original's body.
    """
    log = read(path)
    found = build(log).history

    def is_notice(record: int) -> bool:
        return notice == (f"#{record}" if log.shape == "contents" else log.entries[record].id)

    return without_notice(found, before, is_notice if notice else None)
