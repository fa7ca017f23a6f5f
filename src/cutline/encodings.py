"""Content encodings of HTTP bodies, taken off and put on again.

Law: what a header names is undone in its order, never more than the caller allows is made of it, and the same body
packs into the same bytes. An encoding that is not known is nobody's to touch.
"""

from __future__ import annotations

import gzip
import importlib
import sys
import zlib
from collections.abc import Callable, Mapping
from typing import Any

READABLE = ("gzip", "x-gzip", "deflate", "zstd", "identity")
"""The encodings that are known, by the names of HTTP (IANA, "HTTP Content Coding Registry")."""
_PARTS = 10_000  # compressed parts of one body: each costs time, however small it is
_STEP = 65_536  # bytes that are unpacked at once: what follows a part is copied for each part


def names(encoding: str) -> list[str]:
    """What a Content-Encoding header names, in the order in which it was put on; without `identity`."""
    found = [part.strip().lower() for part in encoding.split(",")]
    return [name for name in found if name and name != "identity"]


def unpack(body: bytes, encoding: str, most: int, *, torn: bool = False) -> bytes | None:
    """A body without its encodings; None for an encoding that is not known.

    Args:
        body: as it came.
        encoding: the header's value; "" for none.
        most: bytes; what would be longer ends within a step behind them, so that a bomb costs no memory.
        torn: of a body that breaks off, give what came before the break.

    Raises:
        ValueError: it is not what its header says, or torn; the text says how, in a line.
    """
    for name in reversed(names(encoding)):
        inflate = _UNPACK.get(name)
        if inflate is None:
            return None
        try:
            body = inflate(body, most + 1, torn)
        except Exception as error:  # each library has errors of its own
            raise ValueError(f"no {name}: {str(error) or type(error).__name__}") from None
        if len(body) > most:
            return body
    return body


def pack(body: bytes, encoding: str) -> bytes:
    """A body with the encodings that a header names, all of which have to be known."""
    for name in names(encoding):
        body = _PACK[name](body)
    return body


def _gunzip(body: bytes, most: int, torn: bool) -> bytes:
    return _parts(body, most, torn, lambda: zlib.decompressobj(31))


def _inflate(body: bytes, most: int, torn: bool) -> bytes:
    try:
        return _parts(body, most, torn, lambda: zlib.decompressobj(15))
    except zlib.error:
        return _parts(body, most, torn, lambda: zlib.decompressobj(-15))  # what many clients send in its name


def _unzstd(body: bytes, most: int, torn: bool) -> bytes:
    return _parts(body, most, torn, _zstandard().ZstdDecompressor)


def _zstd(body: bytes) -> bytes:
    packed: bytes = _zstandard().compress(body)
    return packed


def _zstandard() -> Any:
    """Zstandard from wherever this Python has it: the standard library from 3.14 on, its backport before."""
    return importlib.import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")


def _gzip(body: bytes) -> bytes:
    return gzip.compress(body, 6, mtime=0)


_UNPACK: Mapping[str, Callable[[bytes, int, bool], bytes]] = {
    "gzip": _gunzip,
    "x-gzip": _gunzip,
    "deflate": _inflate,
    "zstd": _unzstd,
}
_PACK: Mapping[str, Callable[[bytes], bytes]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": zlib.compress,
    "zstd": _zstd,
}


def _parts(body: bytes, most: int, torn: bool, unpacker: Callable[[], Any]) -> bytes:
    """Unpack a body of one or more compressed parts; it ends behind `most` bytes."""
    out: list[bytes] = []
    size = at = 0
    for _ in range(_PARTS):
        if at >= len(body) or size >= most:
            return b"".join(out)
        part = unpacker()
        while not part.eof and size < most:
            step = body[at : at + _STEP]
            if not step and torn:
                return b"".join(out)
            if not step:
                raise ValueError("it ends too early")
            out.append(part.decompress(step, most - size))
            at += len(step) - len(part.unused_data)
            size += len(out[-1])
    raise ValueError(f"it has more than {_PARTS:,} parts")
