"""Whose words a user record holds: a person's, or the client's in the person's place.

Law: what the client marks is believed; where it marks nothing, its own fixed beginnings decide.
"""

from __future__ import annotations

from typing import Any

from ...blocks import Author, Block, Kind
from ...wire import anthropic as wire

# What an editor puts before a prompt, in blocks of its own (Claude Code's IDE extensions).
_EDITOR = ("<ide_opened_file>", "<ide_selection>", "<ide_diagnostics>")
_TEXT = Block(Kind.TEXT, "text", 0, 0)


def typed(type_: str, text: str) -> bool:
    """Whether a content block is what a person typed or attached; slash commands are typed.

    Args:
        type_: the block's type.
        text: its words, for a text.
    """
    if type_ != "text":
        return type_ in ("image", "document")
    if not text.strip() or text.lstrip().startswith(_EDITOR):
        return False
    return wire.author("user", _TEXT, text) is Author.HUMAN


def foreign(origin: Any) -> bool:
    """Whether a record's `origin` names somebody else than the person at the keyboard."""
    kind = origin.get("kind") if isinstance(origin, dict) else None
    return kind not in (None, "human")
