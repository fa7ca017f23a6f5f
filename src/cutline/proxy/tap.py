"""What an answer said, read from a copy of its bytes as they came: `wire.answers` behind its content encoding.

Law: reading only, after the last byte has gone to the client. A torn, aborted or unknown answer gives what could
be read of it, never an error.
"""

from __future__ import annotations

from .. import encodings
from ..wire import answers
from ..wire.answers import Answer, printable
from .plan import BODY_CAP

__all__ = ["Answer", "printable", "read", "unpack_what_is_there"]


def read(raw: bytes, content_type: str, encoding: str, format: str = "anthropic") -> Answer:
    """Read an answer, streamed or whole.

    Args:
        raw: its bytes as they came.
        content_type, encoding: its headers.
        format: the request's (`answers.FORMATS`).
    """
    return answers.read(format, content_type, unpack_what_is_there(raw, encoding))


def unpack_what_is_there(raw: bytes, encoding: str) -> bytes:
    """An answer without its encoding; what came before the break where it is torn, b"" where it can't be read."""
    try:
        return encodings.unpack(raw, encoding, BODY_CAP, torn=True) or b""
    except ValueError:
        return b""
