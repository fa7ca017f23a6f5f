"""Bytes in the record, each stored once, under its SHA-256, compressed.

Law: what comes out has the hash that it went in with.

A blob may be packed against another one, its base, of which it differs little (the tools and the system prompt of
two requests); a base has no base itself, so that two look-ups are enough for any blob.
"""

from __future__ import annotations

import hashlib
import sqlite3
import sys
from collections.abc import Callable

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_LEVEL = 3
_SMALL = 2048
"""Bytes under which a base is not worth its look-up."""


Get = Callable[[sqlite3.Connection, int], bytes]
"""How a blob is read, by its id (see `get`)."""


def digest(data: bytes) -> bytes:
    """SHA-256, 32 bytes."""
    return hashlib.sha256(data).digest()


def put(connection: sqlite3.Connection, data: bytes, hash: bytes | None = None, base: int | None = None) -> int:
    """Store bytes if they are not stored yet; returns the blob's id.

    Args:
        connection: inside a transaction.
        data: the bytes.
        hash: their digest, where it is known.
        base: id of a blob that is much like it.
    """
    hash = hash or digest(data)
    known = connection.execute("SELECT id FROM blob WHERE hash = ?", (hash,)).fetchone()
    if known:
        return int(known[0])
    packed, base = pack(connection, data, base)
    done = connection.execute(
        "INSERT INTO blob (hash, size, base, data) VALUES (?, ?, ?, ?)", (hash, len(data), base, packed)
    )
    assert done.lastrowid is not None
    return done.lastrowid


def pack(connection: sqlite3.Connection, data: bytes, base: int | None) -> tuple[bytes, int | None]:
    """Bytes packed, and the base that they were packed against: `base` or its own, if that is worth it."""
    packed = zstd.compress(data, _LEVEL)
    if base is None or len(packed) <= _SMALL:
        return packed, None
    row = connection.execute("SELECT coalesce(base, id) FROM blob WHERE id = ?", (base,)).fetchone()
    if row is None:
        return packed, None
    difference = zstd.compress(data, _LEVEL, zstd_dict=_prefix(get(connection, row[0])))
    return (difference, row[0]) if 2 * len(difference) < len(packed) else (packed, None)


def get(connection: sqlite3.Connection, id: int) -> bytes:
    """The bytes of a blob.

    Raises:
        sqlite3.DatabaseError: they are not there, or not what was stored.
    """
    row = connection.execute("SELECT hash, base, data FROM blob WHERE id = ?", (id,)).fetchone()
    if row is None:
        raise sqlite3.DatabaseError(f"malformed: blob {id} is missing")
    return unpack(connection, *row)


def unpack(connection: sqlite3.Connection, hash: bytes, base: int | None, packed: bytes) -> bytes:
    """The bytes of a blob's row (see `get`)."""
    try:
        found = zstd.decompress(packed, zstd_dict=None if base is None else _prefix(get(connection, base)))
    except zstd.ZstdError as error:
        raise sqlite3.DatabaseError(f"malformed: a blob can't be decompressed ({error})") from None
    if digest(found) != hash:
        raise sqlite3.DatabaseError("malformed: a blob has another hash than it was stored with")
    return found


def _prefix(data: bytes) -> tuple[zstd.ZstdDict, int]:
    # A dictionary needs at least 8 bytes; a base is always longer than that.
    return zstd.ZstdDict(data, is_raw=True).as_prefix
