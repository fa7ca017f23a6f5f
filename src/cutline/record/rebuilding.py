"""A recorded request put together again. Law: reading only; what comes out has the hashes that it went in with."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from ..errors import InputError
from . import packing, parts

# A history from its last node back to its first; the columns of each node follow.
_CHAIN = """
    WITH RECURSIVE chain (id, parent, message, gap, depth) AS (
        SELECT id, parent, message, gap, depth FROM node WHERE id = ?
        UNION ALL SELECT n.id, n.parent, n.message, n.gap, n.depth FROM node n JOIN chain c ON n.id = c.parent)"""


class Pieces(NamedTuple):
    """What a request's body is made of.

    Attributes:
        frame: id of the blob that stands around the messages.
        split: where in it they go; None where the frame is the whole body.
        chain: of each message its node, its blob and its gap, in order.
        marks: cache marks that were taken out.
    """

    frame: int
    split: int | None
    chain: list[tuple[int, int, bytes | None]]
    marks: list[parts.Mark]


def pieces(connection: sqlite3.Connection, request: int) -> Pieces:
    """Look up what a request is made of.

    Raises:
        InputError: there is no such request.
    """
    row = connection.execute("SELECT frame, split, node, marks FROM request WHERE id = ?", (request,)).fetchone()
    if row is None:
        raise InputError(f"no request {request} in the record")
    frame, split, node, marks = row
    chain = connection.execute(f"{_CHAIN} SELECT id, message, gap FROM chain ORDER BY depth", (node,)).fetchall()
    return Pieces(frame, split, chain, parts.read_marks(marks))


def body_of(connection: sqlite3.Connection, request: int, get: packing.Get = packing.get) -> bytes:
    """The body of a request, byte for byte.

    Args:
        connection: inside a transaction.
        request: its id.
        get: how a blob is read.

    Raises:
        InputError: there is no such request.
        sqlite3.DatabaseError: it is damaged.
    """
    made = pieces(connection, request)
    frame = get(connection, made.frame)
    if made.split is None:
        return frame
    literals = [(get(connection, message), gap) for _, message, gap in made.chain]
    return parts.join(frame, made.split, literals, made.marks)


def answer_of(connection: sqlite3.Connection, request: int) -> bytes:
    """The answer of a request as it was stored; b"" where there is none.

    Raises:
        InputError: there is no such request.
        sqlite3.DatabaseError: it is damaged.
    """
    row = connection.execute("SELECT answer FROM request WHERE id = ?", (request,)).fetchone()
    if row is None:
        raise InputError(f"no request {request} in the record")
    return packing.get(connection, row[0]) if row[0] else b""
