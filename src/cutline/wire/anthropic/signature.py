"""What a thinking block's signature says: whether its words were shown to the human (docs/wire.md, 1.3).

Law: whatever does not parse is ordinary thinking.
"""

from __future__ import annotations

import base64
import binascii

WITH_CALL = "cutline:with-call"
"""In the neutral shape (`neutral`): a thought that stays wherever a call of its message stays (docs/wire.md, 2.3)."""
# The word in base64, at each of the three places that a byte can have in it.
_IN_BASE64 = ("bmFycmF0aW9u", "5hcnJhdGlvb", "uYXJyYXRpb2")


def may_be_narration(signature: str) -> bool:
    """Whether a signature can hold the word at all: it spares the decoding of nearly every other one."""
    one, two, three = _IN_BASE64
    return one in signature or two in signature or three in signature


def signed_narration(signature: str) -> bool:
    """Whether a signature's envelope (field 2, in it field 1, in it field 8) reads ``narration``."""
    try:
        envelope = base64.b64decode(signature + "=" * (-len(signature) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False
    inner = _field(_field(envelope, 2), 1)
    return _field(inner, 8) == b"narration"


def _field(data: bytes | None, wanted: int) -> bytes | None:
    """The last length-delimited field of that number in a protobuf-style message, or None."""
    at, found = 0, None
    try:
        while data is not None and at < len(data):
            tag, at = _varint(data, at)
            number, wire = tag >> 3, tag & 7
            if wire == 2:
                size, at = _varint(data, at)
                if at + size > len(data):
                    return None
                if number == wanted:
                    found = data[at : at + size]
                at += size
            elif wire == 0:
                _, at = _varint(data, at)
            elif wire in (1, 5):
                at += 8 if wire == 1 else 4
            else:
                return None
    except IndexError:
        return None
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
        if shift > 63:
            raise IndexError
