"""What the client's hooks are answered: the mandate's guard, and a checkpoint instead of a summary.

Law: pure decisions from what the hook tells and what the proxy saw; the words are `mandate`'s. Whatever is not
understood is answered with nothing, and the client goes on as it would have.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from .. import mandate, narration
from ..blocks import ToolCall
from ..wire import anthropic as wire

Mandate = Literal["text", "nudge", "strict"]

_WINDOWS = (200_000, 1_000_000)  # tokens
_RESERVED = 23_000  # below the window, at which the client ends a run whose compaction is off (docs/claude-code.md)
_MARGIN = 4_000  # tokens; one request's new text must fit in
_ASKED = 5  # so many requests in a row may go on before the client's summary is let through
_BYTES_PER_TOKEN = 3
# Calls that need no narration: they speak themselves, or touch nothing.
_SPEAK = wire.SPEECH | wire.INSTRUCTIONS | wire.TODO_LISTS | {"TaskOutput", "TaskStop", "DeferredToolPlaceholder"}


@dataclass(slots=True)
class Fullness:
    """What is known of how full a session is, and whether a checkpoint was asked for.

    Attributes:
        tokens: the provider's count of the last prompt and its answer.
        pending: bytes of results that came since.
        seam: the seam of the last request.
        turns: requests since that seam.
        asked: how often a summary was held back since the seam at which the first one was.
        asked_at: that seam.
        wanted: the agent is to be told.
        overflowed: the provider refused the last request, perhaps as too long: only a summary helps then.
    """

    tokens: int = 0
    pending: int = 0
    seam: str = ""
    turns: int = 0
    asked: int = 0
    asked_at: str | None = None
    wanted: bool = False
    overflowed: bool = False

    def request(self, tokens: int, seam: str) -> None:
        """Note an answered request."""
        self.turns = self.turns + 1 if seam == self.seam else 1
        if seam != self.seam:
            self.wanted = False
        self.tokens, self.pending, self.seam, self.overflowed = tokens, 0, seam, False


def words(answer: Sequence[Mapping[str, Any]]) -> str:
    """What the agent said in an answer: its text, narration blocks' words, and what it made the say tool carry."""
    said: list[str] = []
    for block in answer:
        kind = block.get("type")
        if kind == "text":
            said.append(str(block.get("text") or ""))
        elif kind == "thinking" and wire.signed_narration(str(block.get("signature") or "")):
            said.append(str(block.get("thinking") or ""))
        elif kind == "tool_use":
            spoken = narration.spoken(str(block.get("name")), _raw(block.get("input")))
            if spoken:
                said.append(spoken)
    return "\n".join(text for text in said if text.strip())


def before_call(payload: Mapping[str, Any], answer: Sequence[Mapping[str, Any]], wanted: Mandate) -> dict[str, Any]:
    """Answer a `PreToolUse` hook: nothing where the call's intent was stated, else a reminder or a refusal.

    Args:
        payload: what the hook tells.
        answer: the content blocks of the answer that makes the call.
        wanted: how the mandate is held.
    """
    name = str(payload.get("tool_name") or "")
    if wanted == "text" or payload.get("agent_id") or narration.is_own(name) or name in _SPEAK:
        return {}
    call = ToolCall(name, _raw(payload.get("tool_input")), None, False, 0, "")
    if narration.judge(call, words(answer), "").intent:
        return {}
    told: dict[str, Any] = {"hookEventName": "PreToolUse"}
    if wanted == "strict":
        told |= {"permissionDecision": "deny", "permissionDecisionReason": mandate.STRICT}
    else:
        told |= {"additionalContext": mandate.NUDGE}
    return {"hookSpecificOutput": told}


def before_compaction(payload: Mapping[str, Any], full: Fullness) -> dict[str, Any]:
    """Answer a `PreCompact` hook: hold the client's own summary back and have a checkpoint asked for.

    It goes ahead where the human asked for it, where the request would no longer fit otherwise, where a checkpoint
    was just made and did not help, and where the agent was asked often enough.
    """
    if payload.get("trigger") != "auto" or full.overflowed:
        return {}
    held_back_at_another_seam = full.asked_at is not None and full.asked_at != full.seam
    if held_back_at_another_seam and full.turns <= 3:
        return {}
    if full.asked_at != full.seam:
        full.asked, full.asked_at = 0, full.seam
    estimate = full.tokens + full.pending // _BYTES_PER_TOKEN
    window = next((size for size in _WINDOWS if estimate <= size), _WINDOWS[-1])
    if estimate > window - _RESERVED - _MARGIN or full.asked >= _ASKED:
        return {}
    full.asked += 1
    full.wanted = True
    return {"decision": "block", "reason": "Cutline asks the agent for a checkpoint instead (--keep-compaction: never)"}


def after_call(payload: Mapping[str, Any], full: Fullness) -> dict[str, Any]:
    """Answer a `PostToolUse` or `UserPromptSubmit` hook: tell the agent that a checkpoint is wanted, where one is."""
    full.pending += len(_raw(payload.get("tool_response")))
    if not full.wanted or payload.get("agent_id") or narration.is_own(str(payload.get("tool_name") or "")):
        return {}
    full.wanted = False  # once for each summary that was held back
    event = str(payload.get("hook_event_name") or "PostToolUse")
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": mandate.CHECKPOINT_WANTED}}


def _raw(value: Any) -> bytes:
    return json.dumps(value if value is not None else {}, ensure_ascii=False).encode("utf-8", "surrogatepass")
