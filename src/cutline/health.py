"""What a provider refuses in a history that was accepted once: the faults a session gets stuck on.

Law: detection only, on the raw bytes; each fault names its block, so that a caller can say whether a cut
removes it. Limits are Anthropic's (docs/wire.md).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .blocks import Block, Place
from .wire import anthropic as wire
from .wire.anthropic import Request

IMAGE_LIMIT = 5 * 1024 * 1024
"""Bytes of one image, decoded (Anthropic, "Vision": 5 MB in the API)."""
BODY_LIMIT = 32 * 1024 * 1024
"""Bytes of one request (Anthropic, "API overview": 32 MB)."""
RESULT_LIMIT = 2_000_000
"""Bytes of one result: at 3.6 bytes a token it alone overflows a window of 500,000 tokens."""

# A high surrogate without a low one behind it, or a low one without a high one before it. An even number of
# backslashes before the escape means that it is text that shows an escape.
_LONE = re.compile(
    rb"(?<!\\)(?:\\\\)*(?:\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2})"
)


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that a provider refuses.

    Attributes:
        what: in a few words.
        place: the block that holds it; None for the body as a whole.
    """

    what: str
    place: Place | None


def faults(request: Request) -> list[Fault]:
    """Every fault of a body, in order."""
    body = request.body
    found = []
    surrogates = b"\\ud" in body or b"\\uD" in body
    images = b'"base64"' in body
    for number, message in enumerate(request.messages):
        for index, block in enumerate(message.blocks):
            place = Place(number, index)
            if surrogates and _LONE.search(body, block.start, block.end):
                found.append(Fault("a broken surrogate escape (half of an emoji)", place))
            if images and block.end - block.start > IMAGE_LIMIT:
                found += [Fault(what, place) for what in _large_images(request, block)]
            if block.type == "tool_result" and block.end - block.start > RESULT_LIMIT and not images:
                found.append(Fault(f"a result of {block.end - block.start:,} bytes", place))
    if len(body) > BODY_LIMIT:
        found.append(Fault(f"a request of {len(body):,} bytes, over the limit of {BODY_LIMIT:,}", None))
    return found


def _large_images(request: Request, block: Block) -> list[str]:
    sizes = (length * 3 // 4 for length in wire.embedded(request, block))
    return [f"an image of {size:,} bytes, over the limit of {IMAGE_LIMIT:,}" for size in sizes if size > IMAGE_LIMIT]
