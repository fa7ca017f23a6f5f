"""The index of what was said: texts of the agent and the human, found by their words.

Law: as for calls, the index only finds; what is handed out is read from the recorded bytes. Harness text is nobody's
words. Of a request that is no turn (a summary is asked for, a title), the last message is the client's own.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from .. import spans
from ..blocks import Kind
from ..errors import Unreadable
from ..plan import words_of
from ..wire import anthropic as wire
from ..wire.anthropic import Request
from . import indexing, packing, reading
from .calls import fold
from .reading import Body
from .values import Said

_PLACES = """
    SELECT s.session, s.agent, s.client, s.project, r.at, r.id, w.author, p.message, p.block, n.message, r.answer,
        r.format
    FROM said_at p JOIN said w ON w.id = p.said JOIN session s ON s.id = p.session JOIN request r ON r.id = p.request
        LEFT JOIN node n ON n.id = p.node"""


class Text(NamedTuple):
    """A text of the agent's or the human's, and where it stands."""

    author: str
    text: str
    message: int
    block: int


def texts(request: Request, first: int = 0) -> Iterator[Text]:
    """What agent and human said, in order, from message `first` on; `say` calls are the agent's words."""
    for number in range(first, len(request.messages)):
        message = request.messages[number]
        for index, block in enumerate(message.blocks):
            if block.kind is Kind.TEXT:
                text = wire.words(request, block)
                author = str(wire.author(message.role, block, text))
            elif (block.kind is Kind.CALL and wire.is_say(block.name)) or (
                block.kind is Kind.THINKING and wire.is_narration(request, block)
            ):
                author, text = "agent", words_of(request, block)
            else:
                continue
            if author in ("agent", "human") and text.strip():
                yield Text(author, text, number, index)


def texts_of(read: Body, first: int = 0) -> Iterator[Text]:
    """The same of a body of any format, each where it stands there."""
    if not read.format:
        yield from texts(read.request, first)
        return
    for text in texts(read.request):
        message, block = read.place(text.message, text.block)
        if message >= first:
            yield text._replace(message=message, block=block)


def of_answer(answer: bytes, message: int) -> list[Text]:
    """What an answer says, as the message that it will be; nothing where it can't be read."""
    try:
        request = wire.read(b'{"messages":[{"role":"assistant","content":%s}]}' % answer)
    except Unreadable:
        return []
    return [text._replace(message=message) for text in texts(request)]


def store(
    connection: sqlite3.Connection,
    session: int,
    request: int,
    found: Sequence[Text],
    nodes: Sequence[int | None],
    add: indexing.Add = indexing.add,
) -> None:
    """Put texts into the index; `nodes[i]` is the node of message i, nothing there for an answer's."""
    for author, text, message, block in found:
        key = key_of(author, text)
        row = connection.execute("SELECT id FROM said WHERE key = ?", (key,)).fetchone()
        if row is None:
            id = connection.execute("INSERT INTO said (key, author) VALUES (?, ?)", (key, author)).lastrowid
            assert id is not None
            add(connection, indexing.TEXTS, id, fold(text))
        else:
            id = row[0]
        node = nodes[message] if message < len(nodes) else None
        connection.execute(
            "INSERT OR IGNORE INTO said_at VALUES (?, ?, ?, ?, ?, ?)", (id, session, message, block, node, request)
        )


def with_words(
    connection: sqlite3.Connection,
    project: str | None,
    wanted: Sequence[str],
    most: int,
    author: str | None = None,
    since: float | None = None,
    session: str | None = None,
) -> list[Said]:
    """Texts that hold all words, whatever their case, newest first, each at its newest place."""
    folded = [word for given in wanted if (word := fold(given.strip()))]
    found: list[Said] = []
    for id in indexing.candidates(connection, indexing.TEXTS, folded):
        if len(found) >= most:
            break
        row = connection.execute(
            f"{_PLACES} WHERE p.said = ?1 AND (?2 IS NULL OR s.project = ?2) AND (?3 IS NULL OR w.author = ?3)"
            " AND (?4 IS NULL OR r.at >= ?4) AND (?5 IS NULL OR s.session = ?5)"
            " ORDER BY r.id DESC, p.message DESC LIMIT 1",
            (id, project, author, since, session),
        ).fetchone()
        if row:
            said = _read(connection, row)
            hay = fold(said.text)
            if all(word in hay for word in folded):
                found.append(said)
    return found


def places(connection: sqlite3.Connection, id: int, get: packing.Get = packing.get) -> Iterator[Said]:
    """A text at each of its places."""
    for row in connection.execute(f"{_PLACES} WHERE p.said = ?", (id,)).fetchall():
        yield _read(connection, row, get)


def text_of(connection: sqlite3.Connection, id: int) -> str:
    """What the index holds of a text, read at one of its places."""
    row = connection.execute(f"{_PLACES} WHERE p.said = ? LIMIT 1", (id,)).fetchone()
    if row is None:
        raise sqlite3.DatabaseError(f"malformed: text {id} stands nowhere")
    return fold(_read(connection, row).text)


def key_of(author: str, text: str) -> bytes:
    """What a text is known by: the first half of SHA-256(author, text)."""
    return packing.digest(f"{author}\0{text}".encode("utf-8", "surrogatepass"))[:16]


def fill(connection: sqlite3.Connection) -> None:
    """Index everything that is recorded: each message once for each session that has it."""
    for (session,) in connection.execute("SELECT id FROM session ORDER BY id").fetchall():
        seen: set[int] = set()
        rows = connection.execute(
            "SELECT id, kind, frame, node, answer FROM request WHERE session = ? AND split IS NOT NULL ORDER BY id",
            (session,),
        ).fetchall()
        for id, kind, frame, node, answer in rows:
            _fill_one(connection, session, (id, kind, frame, node, answer), seen)


def _fill_one(connection: sqlite3.Connection, session: int, row: tuple[Any, ...], seen: set[int]) -> None:
    id, kind, frame, node, answer = row
    chain: list[tuple[int, int]] = []
    total = 0
    while node is not None and node not in seen:
        parent, message, depth = connection.execute(
            "SELECT parent, message, depth FROM node WHERE id = ?", (node,)
        ).fetchone()
        total = total or depth + 1
        chain.append((node, message))
        node = parent
    if kind != "turn":
        chain = chain[1:]
    known = (connection.execute("SELECT depth + 1 FROM node WHERE id = ?", (node,)).fetchone() or (0,))[0]
    literals = [packing.get(connection, message) for _, message in reversed(chain)]
    # The frame is a body without messages: what it says of thinking says which thinking is narration.
    framed = packing.get(connection, frame)
    request = wire.read(b'{"messages":[%s],%s' % (b",".join(literals), _settings(framed)))
    found = [text._replace(message=text.message + known) for text in texts(request)]
    nodes = [None] * known + [one for one, _ in reversed(chain)]
    store(connection, session, id, found, nodes, indexing.write)
    seen.update(one for one, _ in chain)
    if kind == "turn" and answer is not None:
        said = of_answer(packing.get(connection, answer), total or known)
        store(connection, session, id, said, [], indexing.write)


def _settings(frame: bytes) -> bytes:
    thinking = wire.read(frame).thinking
    return b'"thinking":{"type":%s}}' % spans.quote(thinking or "")


def _read(connection: sqlite3.Connection, row: tuple[Any, ...], get: packing.Get = packing.get) -> Said:
    session, agent, client, project, at, id, author, message, block, literal, answer, format = row
    if literal is not None:
        read = reading.of_messages(format, [get(connection, literal)])
    else:  # answers are kept in the one shape
        read = reading.of_messages("", [b'{"role":"assistant","content":%s}' % get(connection, answer)])
    text = words_of(read.request, read.at((0, block)))
    return Said(session, agent, client, project, at, id, author, text, message, block)
