"""The index of completed calls: every place of an address, and words in arguments and results.

Law: the index only finds; what is handed out is read from the recorded bytes again, and a search compares the
exact text of each candidate.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from .. import spans
from ..blocks import Block, ToolCall
from ..events import Found
from ..wire import anthropic as wire
from ..wire.anthropic import Request
from . import indexing, packing, reading
from .reading import Body
from .values import Recorded, text

_PLACES = """
    SELECT s.session, s.agent, s.client, s.project, r.at, r.id, c.address, c.tool, p.message, p.block, a.depth,
        p.answer_block, n.message, a.message, r.format
    FROM place p JOIN session s ON s.id = p.session JOIN request r ON r.id = p.request JOIN call c ON c.id = p.call
        JOIN node n ON n.id = p.node JOIN node a ON a.id = p.answer"""


class New:
    """What is new in a history: its completed calls, read before the transaction in which they are stored.

    Args:
        read: the history.
        first: calls whose result stands in an earlier message are known.
        sent: the history as it was sent, where secrets were masked in `read`: an address is that of the wire.
    """

    def __init__(self, read: Body, first: int, sent: Body | None = None) -> None:
        self.calls: list[tuple[bytes, ToolCall, tuple[int, int], tuple[int, int]]] = []
        request = read.request
        for made, answer in _pairs(read, first):
            place, at = read.place(*made), read.place(*answer)
            if at[0] < first:
                continue
            block = request.messages[made[0]].blocks[made[1]]
            answered = request.messages[answer[0]].blocks[answer[1]]
            call = wire.call(request, block, place[0], answered)
            if sent is not None:
                as_sent = wire.call(sent.request, sent.at(place), place[0], None)
                call = replace(call, address=as_sent.address)
            key = packing.digest(call.address.encode() + _content(request, answered))[:16]
            self.calls.append((key, call, place, at))

    def store(self, connection: sqlite3.Connection, session: int, request: int, nodes: Sequence[int]) -> None:
        """Put the calls into the index; `nodes` are the ids of the history's nodes, in order."""
        for key, call, made, answer in self.calls:
            row = connection.execute("SELECT id FROM call WHERE key = ?", (key,)).fetchone()
            if row is None:
                values = (key, call.address, text(call.name))
                id = connection.execute("INSERT INTO call (key, address, tool) VALUES (?, ?, ?)", values).lastrowid
                assert id is not None
                indexing.add(connection, indexing.CALLS, id, haystack(call))
            else:
                id = row[0]
            place = (id, session, *made, nodes[made[0]], nodes[answer[0]], answer[1], request)
            connection.execute("INSERT OR IGNORE INTO place VALUES (?, ?, ?, ?, ?, ?, ?, ?)", place)


def _pairs(read: Body, first: int) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Which result answers which call; at least all whose result stands at `first` or behind it.

    What is answered there was called in the assistant's turn before it, or later; only a server's own call may stand
    before that, and without it its result answers nothing: then the whole history is paired.
    """
    messages = read.request.messages
    start = 0 if read.format else min(first, len(messages) - 1)
    while start > 0 and not (messages[start].role == "assistant" and messages[start - 1].role == "user"):
        start -= 1
    found, orphans = wire.pairs(messages[start:] if start > 0 else messages)
    if start > 0 and orphans:
        start, (found, _) = 0, wire.pairs(messages)
    start = max(start, 0)
    return (((made[0] + start, made[1]), (answer[0] + start, answer[1])) for made, answer in found.items())


def at_address(connection: sqlite3.Connection, project: str | None, address: str) -> list[Recorded]:
    """Every place of an address, newest first."""
    rows = connection.execute(
        f"{_PLACES} WHERE c.address = ? AND (? IS NULL OR s.project = ?)"
        " ORDER BY r.id DESC, p.message DESC, p.block DESC",
        (address, project, project),
    ).fetchall()
    return [_read(connection, row) for row in rows]


def with_words(
    connection: sqlite3.Connection,
    project: str | None,
    words: Sequence[str],
    most: int,
    tool: str | None = None,
    since: float | None = None,
    session: str | None = None,
) -> list[Recorded]:
    """Calls whose arguments or result hold all words, newest first, each at its newest place."""
    wanted = [folded for word in words if (folded := fold(word.strip()))]
    found: list[Recorded] = []
    for id in indexing.candidates(connection, indexing.CALLS, wanted):
        if len(found) >= most:
            break
        row = connection.execute(
            f"{_PLACES} WHERE p.call = ?1 AND (?2 IS NULL OR s.project = ?2) AND (?3 IS NULL OR r.at >= ?3)"
            " AND (?4 IS NULL OR s.session = ?4) ORDER BY r.id DESC LIMIT 1",
            (id, project, since, session),
        ).fetchone()
        if row and (tool is None or is_tool(row[7], tool)):
            recorded = _read(connection, row)
            hay = haystack(recorded.found.call)
            if all(word in hay for word in wanted):
                found.append(recorded)
    return found


def is_tool(name: str, wanted: str) -> bool:
    """Whether a tool is meant: by its whole name or by the part behind its server's, whatever the case."""
    name, wanted = name.casefold(), wanted.casefold()
    return name == wanted or re.split(r"__|[.:/]", name)[-1] == wanted


def places(connection: sqlite3.Connection, id: int, get: packing.Get = packing.get) -> Iterator[tuple[Recorded, bool]]:
    """A call at each of its places, and whether it still has its address there; of masked arguments nobody can tell."""
    for row in connection.execute(f"{_PLACES} WHERE p.call = ?", (id,)).fetchall():
        found, address = _at(connection, row, get)
        call = found.found.call
        yield found, address == call.address or b"[masked: " in call.arguments


def text_of(connection: sqlite3.Connection, id: int) -> str:
    """What the index holds of a call, read at one of its places."""
    row = connection.execute(f"{_PLACES} WHERE p.call = ? LIMIT 1", (id,)).fetchone()
    if row is None:
        raise sqlite3.DatabaseError(f"malformed: call {id} stands nowhere")
    return haystack(_read(connection, row).found.call)


def reads_alike(connection: sqlite3.Connection, id: int) -> bool:
    """Whether a call has one text at all of its places: its keys may be turned round, its secrets masked at some."""
    return len({haystack(found.found.call) for found, _ in places(connection, id)}) < 2


def fold(words: str) -> str:
    """Words as they are compared: without case; lone surrogates and NUL, which SQLite can't hold, are one sign."""
    folded = words.casefold().replace("\0", "\ufffd")
    return folded if folded.isascii() else folded.encode("utf-8", "replace").decode("utf-8")


def haystack(call: ToolCall) -> str:
    """What a search looks through: the keys and values of the arguments, decoded, and the result's text."""
    parts: list[str] = []
    stack = [spans.decode(call.arguments)]
    while stack:
        value: Any = stack.pop()
        if isinstance(value, dict):
            stack.extend(item for pair in reversed(value.items()) for item in reversed(pair))
        elif isinstance(value, list):
            stack.extend(reversed(value))
        else:
            parts.append(value if isinstance(value, str) else str(value).lower())
    return fold("\n".join([*parts, call.result or ""]))


def _content(request: Request, answer: Block) -> bytes:
    return wire.member(request, answer, "content") or b""


def _read(connection: sqlite3.Connection, row: tuple[Any, ...]) -> Recorded:
    return _at(connection, row)[0]


def _at(connection: sqlite3.Connection, row: tuple[Any, ...], get: packing.Get = packing.get) -> tuple[Recorded, str]:
    """The call at a place, out of the one or two messages that hold it and its result; its address as it reads."""
    session, agent, client, project, at, id, *rest = row
    address, _, message, block, answer, answer_block, first, second, format = rest
    literals = [get(connection, first)]
    if answer != message:
        literals.append(get(connection, second))
    body = reading.of_messages(format, literals)
    made, answered = body.at((0, block)), body.at((len(literals) - 1, answer_block))
    read = wire.call(body.request, made, message, answered)
    found = Found(replace(read, address=address), message, block, (answer, answer_block))
    # A call without an id has its number in the history in its place, which two messages alone don't tell.
    as_it_reads = address if format and made.id.isdecimal() else read.address
    return Recorded(session, agent, client, project, at, id, found, _content(body.request, answered)), as_it_reads
