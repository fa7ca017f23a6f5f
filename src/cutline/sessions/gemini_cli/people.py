"""Whose words a user message holds: a person's, or the client's in the person's place.

Law: the client marks nothing but by fixed beginnings; those decide, and every other text is a person's. What it wraps
together with a person's words (steering while the agent works) is the person's.
"""

from __future__ import annotations

from ...notice import OPENING
from ..model import Origin

# The client's own beginnings, from its first versions to 0.61.
_HARNESS = (
    OPENING,
    "<session_context>",
    "<hook_context>",
    "This is the Gemini CLI. We are setting up",
    "Here is the user's editor context as a JSON object",
    "Here is a summary of changes in the user's editor context",
    "System: Please continue.",
    "[System: You previously",
    "[System: You successfully executed a tool but returned an empty response",
)
_SUMMARY = "<state_snapshot>"


def origin(text: str) -> Origin:
    """Whose a text of a user message is."""
    begins = text.lstrip()
    if begins.startswith(_SUMMARY) or (begins.startswith("<scratchpad>") and _SUMMARY in begins):
        return "summary"
    return "harness" if begins.startswith(_HARNESS) else "human"
