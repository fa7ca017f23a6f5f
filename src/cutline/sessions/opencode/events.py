"""A stream of the client's events: JSON lines, each of which says anew what a message or a part has become.

Law: read once, as an index of offsets, in bounded memory. Of what was said several times the last counts; words that
came in pieces stand behind the text that they go on. Lines that are glued are parted, torn ones passed over and told.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from ... import spans
from ...errors import Unreadable
from .literals import Members, Opened
from .records import Log, Part, Span, fetch, message, no_session, problem, unread

_KIND = re.compile(rb'"type"\s*:\s*"(?:session|message)\.[a-z.]+"').search
_LONGEST = 1 << 26
"""A longer line is no event: the client's largest parts are some megabytes."""


def are_events(head: bytes) -> bool:
    """Whether a file begins with events of the client."""
    first = head[:4096]
    return head.lstrip()[:1] == b"{" and b'"properties"' in first and bool(_KIND(first))


@dataclass(slots=True)
class _Session:
    """What is known of one session: where its record stands, and in the order of their appearance its messages."""

    head: Span | None = None
    child: bool = False
    messages: dict[str, Span] = field(default_factory=dict)
    parts: dict[str, dict[str, Span]] = field(default_factory=dict)
    size: int = 0


def read(path: Path, id: str = "") -> Log:
    """Read one session of a stream: the one that is named, else the first that is no sub-agent's.

    Raises:
        InputError: it can't be read, or says nothing of a session.
    """
    index = _Index(path)
    try:
        with path.open("rb") as handle:
            index.read(handle)
    except OSError as error:
        raise problem(path, error) from None
    talking = {name: one for name, one in index.sessions.items() if one.messages}
    first = next((name for name, one in talking.items() if not one.child), next(iter(talking), ""))
    wanted = id or first
    if wanted not in talking:
        raise no_session(path)
    others = [name for name, one in talking.items() if name != wanted and not one.child]
    if others and not id:
        index.damage.append(f"{len(others)} more sessions in the stream ({', '.join(others[:3])}) are not shown.")
    return _log(path, wanted, talking[wanted], index)


def _log(path: Path, id: str, one: _Session, index: _Index) -> Log:
    head = Opened(fetch(path, one.head) if one.head else b'{"id":%s}' % spans.quote(id))
    log = Log(path, "events", id, head, damage=index.damage, size=index.size)
    for name, span in one.messages.items():
        # The client orders parts by their ids.
        parts = [Part(part, raw) for part, raw in sorted(one.parts.get(name, {}).items())]
        try:
            log.messages.append(message(log.open(span), name, parts))
        except Unreadable as error:
            log.damage.append(unread(f"The message {name}", error))
    log.messages.sort(key=lambda said: (said.created, said.id))
    return log


class _Index:
    """The sessions of a stream."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sessions: dict[str, _Session] = {}
        self.damage: list[str] = []
        self.size = 0

    def read(self, handle: BinaryIO) -> None:
        """Read to the end that the file has now: what is written behind it meanwhile is not read."""
        end = handle.seek(0, 2)
        handle.seek(0)
        row = 0
        while self.size < end:
            line = handle.readline(min(_LONGEST, end - self.size))
            if not line:
                break
            row += 1
            try:
                self._line(line)
            except (Unreadable, *spans.DOUBTS) as error:
                why = error.what if isinstance(error, Unreadable) else "not JSON"
                self.damage.append(f"Line {row:,} can't be read ({why}): it is passed over, and stays in the original.")
            self.size += len(line)

    def _line(self, line: bytes) -> None:
        if not line.strip():
            return
        view = spans.view(line)
        at = spans.skip(view, 0)
        while at < len(view):
            try:
                found, end = spans.members(view, at)
            except spans.DOUBTS as error:
                raise spans.doubt(error, view) from None
            self._event(line, view, {member.key: member for member in found})
            at = spans.skip(view, end)

    def _event(self, line: bytes, view: str, members: Members) -> None:
        event = members.get("event")
        if event is not None:
            members = _inside(view, event)
        kind = _word(line, members, "type")
        properties = members.get("properties")
        if properties is None or not kind.startswith(("session.", "message.")):
            return
        said = _inside(view, properties)
        if kind in ("session.created", "session.updated") and "info" in said:
            info = _inside(view, said["info"])
            one = self._session(_word(line, info, "id"))
            one.head, one.child = self._span(said["info"]), "parentID" in info
        elif kind == "message.updated" and "info" in said:
            info = _inside(view, said["info"])
            one = self._session(_word(line, info, "sessionID"))
            one.messages[_word(line, info, "id")] = self._span(said["info"])
        elif kind == "message.part.updated" and "part" in said:
            part = _inside(view, said["part"])
            one = self._session(_word(line, part, "sessionID"))
            parts = one.parts.setdefault(_word(line, part, "messageID"), {})
            parts[_word(line, part, "id")] = self._span(said["part"])
        elif kind == "message.part.delta":
            self._delta(line, said)
        elif kind in ("message.removed", "message.part.removed"):
            one = self._session(_word(line, said, "sessionID"))
            if kind == "message.removed":
                one.messages.pop(_word(line, said, "messageID"), None)
            one.parts.get(_word(line, said, "messageID"), {}).pop(_word(line, said, "partID"), None)

    def _delta(self, line: bytes, said: Members) -> None:
        parts = self._session(_word(line, said, "sessionID")).parts.get(_word(line, said, "messageID"), {})
        name, delta = _word(line, said, "partID"), said.get("delta")
        if name in parts and delta is not None and _word(line, said, "field") == "text":
            span = parts[name]
            more = (self.size + delta.start, self.size + delta.end)
            parts[name] = span._replace(more=(*span.more, more))

    def _session(self, id: str) -> _Session:
        return self.sessions.setdefault(id, _Session())

    def _span(self, member: spans.Member) -> Span:
        return Span(self.size + member.start, self.size + member.end)


def _inside(view: str, member: spans.Member) -> Members:
    if view[member.start] != "{":
        return {}
    return {one.key: one for one in spans.members(view, member.start)[0]}


def _word(line: bytes, members: Members, key: str) -> str:
    member = members.get(key)
    if member is None or line[member.start : member.start + 1] != b'"':
        return ""
    found = spans.decode(line[member.start : member.end])
    return found if isinstance(found, str) else ""
