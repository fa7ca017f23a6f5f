"""A session as if its client had never compacted it, with the places where it did and what it put there.

Law: reading only. What a summary replaced is taken from the file's own records; where the file does not hold it, the
history begins at the summary and there is no seam.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from ..blocks import Kind
from ..errors import CutlineError, InputError
from ..measure import request_of
from ..sessions.clients import is_session, open_path
from ..sessions.model import Origin, Session
from ..wire import anthropic as wire
from ..wire.anthropic import Request
from . import seams
from .seams import Seam, Told


class Source(NamedTuple):
    """Where a session is: its file, and which one of a database that holds several."""

    path: Path
    part: str = ""


@dataclass(frozen=True, slots=True)
class Whole:
    """A history with its seams.

    Attributes:
        client, model: whose it is; "body" for a request body.
        request: the history, compactions undone.
        origins: for each message what it is; empty for a body.
        human: messages that a person typed.
        seams: where it is cut, in order.
        session: the session, for what its requests cost; None for a body.
    """

    client: str
    model: str
    request: Request
    origins: tuple[Origin, ...]
    human: tuple[int, ...]
    seams: tuple[Seam, ...]
    session: Session | None


def read(path: Path, part: str = "") -> Whole:
    """Read a session of any client (`part` names one of several in a file), or a request body.

    Raises:
        CutlineError: it is neither, or can't be read.
    """
    if path.suffix == ".json" and not is_session(path):
        try:
            request, _ = request_of(path.read_bytes())
        except CutlineError:
            pass
        else:
            typed = [n for n, m in enumerate(request.messages) if m.role == "user" and _typed(request, n)]
            return _with("body", request, (), typed, [], None)
    session = open_path(path, part)
    session, points = _undone(session)
    request, _ = request_of(session.history.body)
    return _with(session.client, request, tuple(session.history.origins), session.history.human, points, session)


def _typed(request: Request, number: int) -> bool:
    blocks = request.messages[number].blocks
    texts = [wire.words(request, block) for block in blocks if block.kind is Kind.TEXT]
    return any(wire.author("user", blocks[0], text) == "human" for text in texts)


def _with(
    client: str,
    request: Request,
    origins: tuple[Origin, ...],
    human: list[int],
    points: list[tuple[int, seams.Cause, Told | None]],
    session: Session | None,
) -> Whole:
    points = points or [(at, "checkpoint", None) for at in _checkpoints(request)]
    points = points or [(at, "natural", None) for at in seams.natural(request, human)]
    placed = tuple(seams.place(points, len(request.messages)))
    return Whole(client, request.model or "", request, origins, tuple(human), placed, session)


def _checkpoints(request: Request) -> list[int]:
    """For each completed checkpoint, the message behind its result."""
    pairs, _ = wire.pairs(request.messages)
    found = []
    for (number, index), answer in pairs.items():
        made, got = request.messages[number].blocks[index], request.messages[answer[0]].blocks[answer[1]]
        if wire.is_checkpoint(made) and wire.completed(request, got):
            found.append(answer[0] + 1)
    return sorted(set(found))


_Points = list[tuple[int, seams.Cause, Told | None]]


def _undone(session: Session) -> tuple[Session, _Points]:
    """The session whole, and its compactions."""
    if not session.history.compacted and "summary" not in session.history.origins and session.client != "opencode":
        return session, []
    undo = {"claude-code": _claude_code, "codex": _codex, "pi": _pi, "opencode": _opencode}.get(session.client)
    return undo(session) if undo else (session, [])


def _claude_code(session: Any) -> tuple[Session, _Points]:
    from ..sessions.claude_code.literals import Opened, words
    from ..sessions.reviving import revive

    try:
        revived = revive(session)
    except InputError:
        return session, []
    records, points, at = session.log.records, _Points(), 0
    with session.log.reader() as fetch:
        for number, point in enumerate(revived.compactions):
            at += point.messages
            nexts = [one.line for one in revived.compactions[number + 1 :]] + [records[-1].line + 1]
            texts = []
            for record in records:
                if record.summary and point.line <= record.line < nexts[0] and record.type == "user":
                    opened = Opened(fetch(record))
                    texts += [words(item) or "" for item in opened.items(opened.inside("message").get("content"))]
            points.append((at, "compaction", Told(tuple(texts), (), point.summary)))
    return revived.session, points


def _codex(session: Any) -> tuple[Session, _Points]:
    from ..sessions.codex.history import history

    log = session.source.log
    at = [number for number, record in enumerate(log.records) if record.type == "compacted"]
    whole = history(replace(log, records=[record for record in log.records if record.type != "compacted"])).history
    points: _Points = []
    for count, number in enumerate(at):
        # Record numbers of the whole history are without the compactions before them.
        message = next((m for m, p in enumerate(whole.places) if p[0][0] >= number - count), len(whole.places))
        left = history(replace(log, records=log.records[: number + 1])).history
        request, _ = request_of(left.body)
        texts, size, sealed = [], 0, False
        for one in request.messages:
            for block in one.blocks:
                size += block.end - block.start
                sealed = sealed or block.type == "compaction"
                if block.kind is Kind.TEXT:
                    texts.append(wire.words(request, block))
        points.append((message, "compaction", Told(() if sealed else tuple(texts), (), size)))
    return replace(session, history=whole), points


def _pi(session: Any) -> tuple[Session, _Points]:
    from ..sessions.pi.history import history

    log = session.source
    compactions = [number for number in log.chain if log.entries[number].type == "compaction"]
    sent = [number for number in log.chain if number not in compactions and log.entries[number].role != "system"]
    whole = history(replace(log, sent=sent))
    order = {number: position for position, number in enumerate(log.chain)}
    points: _Points = []
    with log.reader() as fetch:
        for number in compactions:
            value = _object(fetch(log.entries[number]))
            message = next(
                (m for m, places in enumerate(whole.places) if order[places[0][0]] > order[number]), len(whole.places)
            )
            entry = log.entries[number]
            targets = (n for n in log.chain if log.entries[n].id == entry.target)
            first = entry.kept if entry.kept in order else next(targets, number)
            kept = tuple(m for m in range(message) if order[whole.places[m][0][0]] >= order[first])
            summary = value.get("summary")
            text = summary if isinstance(summary, str) else ""
            points.append((message, "compaction", Told((text,) if text else (), kept, len(text.encode()))))
    return replace(session, history=whole), points


def _opencode(session: Any) -> tuple[Session, _Points]:
    from ..sessions.opencode.history import history
    from ..sessions.opencode.literals import Opened
    from ..sessions.opencode.live import compaction, sums_up

    log = session.source
    asks = {n for n, one in enumerate(log.messages) if one.role == "user" and compaction(log, n) is not None}
    sums = {n for n, one in enumerate(log.messages) if one.role == "assistant" and sums_up(Opened(one.raw))}
    if not sums:
        return session, []
    kept = [one for n, one in enumerate(log.messages) if n not in asks and n not in sums]
    origin = [n for n in range(len(log.messages)) if n not in asks and n not in sums]
    whole = history(replace(log, messages=kept))
    points: _Points = []
    for number in sorted(sums):
        message = next((m for m, places in enumerate(whole.places) if origin[places[0][0]] > number), len(whole.places))
        texts = [log.open(part.raw).value("text") for part in log.messages[number].parts]
        said = tuple(text for text in texts if isinstance(text, str) and text)
        points.append((message, "compaction", Told(said, (), sum(len(text.encode()) for text in said))))
    return replace(session, history=whole), points


def _object(raw: bytes) -> dict[str, Any]:
    """A record's object; empty where it is none."""
    from ..specifics import value_of

    value = value_of(raw)
    return value if isinstance(value, dict) else {}
