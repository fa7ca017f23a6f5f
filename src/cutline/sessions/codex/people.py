"""Whose words a message holds: a person's, or the client's in the person's place.

Law: what the client marks is believed; where it marks nothing, the beginnings of its own texts decide.
"""

from __future__ import annotations

from collections.abc import Sequence

NOTICE = ("<external_cutline>\n", "\n</external_cutline>")
"""What stands around a notice: the client's own form of a context that somebody else than the person gave."""

# How texts begin that the client puts into messages of role user, in lower case.
_CLIENTS = (
    "# agents.md instructions",
    "<environment_context>",
    "<user_instructions>",
    "<instructions>",
    "<skill>",
    "<user_shell_command>",
    "<user_action>",
    "<turn_aborted>",
    "<subagent_notification>",
    "<codex_internal_context",
    "<goal_context>",
    "<hook_prompt",
    "<recommended_plugins>",
    "<external_",
    "<image name=",
    "</image>",
    "warning: apply_patch was requested via exec_command.",
    "warning: the maximum number of unified exec processes",
)
_SUMMARY = "another language model started to solve this problem and produced a summary"
# How an editor's or an app's context begins; the person's own words stand behind this line.
_REQUEST = "## My request for Codex:"
# Outputs by which the client says that a call was not carried out; an output has no flag of its own.
_FAILED = (
    "unsupported call: ",
    "unsupported custom tool call: ",
    "user rejected MCP tool call",
    "user cancelled MCP tool call",
    "MCP tool call cancelled",
    "tool call error: ",
    "MCP tool call error: ",
    "tool call failed for `",
    "aborted by user",
)


def is_clients(text: str) -> bool:
    """Whether a text of role user is the client's."""
    return text.lstrip()[:80].lower().startswith(_CLIENTS)


def is_summary(text: str) -> bool:
    """Whether a text is the client's summary of what it compacted."""
    return text.lstrip()[:120].lower().startswith(_SUMMARY)


def typed(text: str, kind: str) -> bool:
    """Whether a person typed a text.

    Args:
        text: the words.
        kind: what newer versions call the part ("user.text" …); "" where they say nothing.
    """
    if kind.startswith("user."):
        return True
    return kind in ("", "unknown") and not is_clients(text)


def begins_turn(texts: Sequence[str], kinds: Sequence[str]) -> bool:
    """Whether a message of role user begins a turn, as the client counts turns that are taken back."""
    if any(kind.startswith("user.") for kind in kinds):
        return True
    return not any(is_clients(text) for text in texts)


def request_of(text: str) -> str:
    """A person's own words in a text that begins with an editor's or an app's context."""
    return text.partition(_REQUEST)[2] or text


def failed(output: str) -> bool:
    """Whether an output says, in the client's own words, that the call was not carried out."""
    return output == "aborted" or output.startswith(_FAILED)
