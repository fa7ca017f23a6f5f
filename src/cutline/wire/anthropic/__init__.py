"""Anthropic Messages: how its bodies are read, and the rules that are its own.

Law: what differs from other formats stays in here. The rules hold for the direct API, Vertex rawPredict, Bedrock
InvokeModel and Foundry alike (docs/wire.md).
"""

from .reading import (
    LOADS,
    NARRATION,
    REFUSED,
    STUB,
    STUBS,
    Request,
    call,
    embedded,
    is_bare_text,
    member,
    plain,
    read,
    result_text,
    text_span,
    weight,
    words,
)
from .rules import (
    INSTRUCTIONS,
    SPEECH,
    SUBAGENTS,
    TODO_LISTS,
    WRITES,
    author,
    binds_thinking,
    completed,
    is_checkpoint,
    is_narration,
    is_say,
    keeps_turn_thinking,
    pairs,
)
from .signature import signed_narration

__all__ = [
    "INSTRUCTIONS",
    "LOADS",
    "NARRATION",
    "REFUSED",
    "SPEECH",
    "STUB",
    "STUBS",
    "SUBAGENTS",
    "TODO_LISTS",
    "WRITES",
    "Request",
    "author",
    "binds_thinking",
    "call",
    "completed",
    "embedded",
    "is_bare_text",
    "is_checkpoint",
    "is_narration",
    "is_say",
    "keeps_turn_thinking",
    "member",
    "pairs",
    "plain",
    "read",
    "result_text",
    "signed_narration",
    "text_span",
    "weight",
    "words",
]
