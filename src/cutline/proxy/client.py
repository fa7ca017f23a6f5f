"""What a client's requests say of themselves: session, sub-agent, and the client's own compaction.

Law: facts of Claude Code on the wire, measured (docs/claude-code.md); each is one small function, and what is
not recognised is an ordinary turn.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..blocks import Kind
from ..errors import Unreadable
from ..wire import anthropic as wire

_SUMMARISE = "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools."
_TASK = "a detailed summary of the conversation"


def ids(headers: Mapping[str, str]) -> tuple[str, str]:
    """Session and sub-agent of a request, "" where it names none. Header names are lower-case."""
    return headers.get("x-claude-code-session-id", ""), headers.get("x-claude-code-agent-id", "")


def metered(headers: Mapping[str, str]) -> bool:
    """Whether a request is paid by the token, with a key; a login by subscription sends a bearer's token instead."""
    return "x-api-key" in headers


def is_compaction(body: bytes, start: int = 0) -> bool:
    """Whether the client asks for a summary of the conversation: its last words are the client's own instruction.

    The same words elsewhere, in a file that the agent read, are none. Versions 2.1.197 and 2.1.332. What stands before
    byte `start` is not searched for them.
    """
    if body.find(_SUMMARISE.encode(), start) < 0 or _TASK.encode() not in body:
        return False
    try:
        request = wire.read(body)
    except Unreadable:
        return False
    last = request.messages[-1] if request.messages else None
    if last is None or last.role != "user" or not last.blocks or last.blocks[-1].kind is not Kind.TEXT:
        return False
    words = wire.words(request, last.blocks[-1])
    return words.lstrip().startswith(_SUMMARISE) and _TASK in words
