"""What the client's hooks are answered: the mandate's guard, and a checkpoint instead of a summary.

Law: pure decisions from what the hook tells and what the proxy saw; the words are `mandate`'s. Whatever is not
understood is answered with nothing, and the client goes on as it would have.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from .. import mandate, narration
from ..blocks import ToolCall
from ..wire import anthropic as wire

Mandate = Literal["text", "nudge", "strict"]

_WINDOWS = (200_000, 1_000_000)  # tokens
_RESERVED = 23_000  # below the window, at which the client ends a run whose compaction is off (docs/claude-code.md)
_MARGIN = 4_000  # tokens; one request's new text must fit in
_AHEAD = (0.8, 0.9)  # of the tokens at which a client sums up whose summary can't be held back
_ASKED = 5  # so many requests in a row may go on before the client's summary is let through
_RETURNED = 3  # so many answers in a row are returned unrun: the gate must not become a wall
_SOON = 3  # turns behind a checkpoint within which a full context says that it did not help
_BYTES_PER_TOKEN = 3
_INLINE = 50_000  # characters of a result that the client puts on the wire; longer ones go to a file
_IMAGE = 6_000  # bytes that an image weighs as text would
# Calls that need no narration: they speak themselves, or touch nothing.
_SPEAK = wire.SPEECH | wire.INSTRUCTIONS | wire.TODO_LISTS | {"TaskOutput", "TaskStop", "DeferredToolPlaceholder"}


# ------------------------------------------------------------------------------------------------ the mandate


@dataclass(slots=True)
class Heard:
    """What the agent said last, as far as a coming call may lean on it.

    Attributes:
        answer: the content of its last answer.
        earlier: its words since its last call of a tool other than `say`, without those of `answer`.
        returned: answers in a row whose calls were returned unrun, `answer` among them.
    """

    answer: list[dict[str, Any]] = field(default_factory=list)
    earlier: str = ""
    returned: int = 0
    _now: bool = False

    def hear(self, answer: list[dict[str, Any]]) -> None:
        """Note an answer."""
        called = any(_names_call(block) and narration.spoken(*_call(block)) is None for block in self.answer)
        self.earlier = "" if called else f"{self.earlier}\n{words(self.answer)}".strip()
        self.returned, self._now = self.returned if self._now else 0, False
        self.answer = answer

    def holds(self, payload: Mapping[str, Any]) -> bool:
        """Whether the last answer makes the call that a hook is about: by its id, else by name and arguments."""
        id_ = payload.get("tool_use_id")
        if id_:
            return any(block.get("id") == id_ for block in self.answer)
        wanted = (payload.get("tool_name"), payload.get("tool_input"))
        return any(_names_call(block) and (block.get("name"), block.get("input")) == wanted for block in self.answer)

    def return_(self) -> bool:
        """Whether this answer's calls may be returned unrun; noted once for all of them."""
        if not self._now and self.returned < _RETURNED:
            self.returned, self._now = self.returned + 1, True
        return self._now


def words(answer: Sequence[Mapping[str, Any]]) -> str:
    """What the agent said in an answer: its text, narration blocks' words, and what it made the say tool carry."""
    said: list[str] = []
    for block in answer:
        kind = block.get("type")
        if kind == "text":
            said.append(str(block.get("text") or ""))
        elif kind == "thinking" and wire.signed_narration(str(block.get("signature") or "")):
            said.append(str(block.get("thinking") or ""))
        elif _names_call(block):
            said.append(narration.spoken(*_call(block)) or "")
    return "\n".join(text for text in said if text.strip())


def is_held(payload: Mapping[str, Any]) -> bool:
    """Whether a `PreToolUse` hook is about a call that the mandate asks words for: the main agent's, no speech."""
    name = str(payload.get("tool_name") or "")
    return not (payload.get("agent_id") or narration.is_own(name) or name in _SPEAK)


def before_call(payload: Mapping[str, Any], heard: Heard | None, wanted: Mandate) -> dict[str, Any]:
    """Answer a `PreToolUse` hook: nothing where the call's intent was stated, else a reminder or a refusal.

    Gemini CLI's `BeforeTool` takes a refusal alone, its `AfterTool` the reminder.

    Args:
        payload: what the hook tells.
        heard: what the agent said, with the answer that makes the call; None where that answer was not seen.
        wanted: how the mandate is held.
    """
    if wanted == "text" or heard is None or not is_held(payload):
        return {}
    call = ToolCall(str(payload.get("tool_name")), _raw(payload.get("tool_input")), None, False, 0, "")
    if any(narration.judge(call, said, "").intent for said in (words(heard.answer), heard.earlier) if said.strip()):
        return {}
    event = str(payload.get("hook_event_name") or "PreToolUse")
    told: dict[str, Any] = {"hookEventName": event}
    returned = wanted == "strict" and event != "AfterTool" and heard.return_()
    if event == "BeforeTool":
        return {"decision": "deny", "reason": mandate.STRICT} if returned else {}
    if returned:
        told |= {"permissionDecision": "deny", "permissionDecisionReason": mandate.STRICT}
    else:
        told |= {"additionalContext": mandate.NUDGE}
    return {"hookSpecificOutput": told}


# --------------------------------------------------------------------------------------------- the compaction


@dataclass(slots=True)
class Fullness:
    """What is known of how full a session is, and whether a checkpoint was asked for.

    Attributes:
        tokens: the provider's count of the last prompt and its answer.
        pending: bytes of results and prompts that came since.
        seam: the seam of the last request.
        turns: requests since that seam.
        asked: how often a summary was held back since the seam at which the first one was.
        asked_at: that seam; None where none was held back.
        wanted: the agent is to be told.
        made: a checkpoint was stored since the last request: the next one is cut.
        overflowed: the provider refused the last request, perhaps as too long: only a summary helps then.
    """

    tokens: int = 0
    pending: int = 0
    seam: str = ""
    turns: int = 0
    asked: int = 0
    asked_at: str | None = None
    wanted: bool = False
    made: bool = False
    overflowed: bool = False

    def request(self, tokens: int, seam: str) -> None:
        """Note an answered request."""
        self.turns = self.turns + 1 if seam == self.seam else 1
        if seam != self.seam:
            self.wanted = False
        self.tokens, self.pending, self.seam = tokens, 0, seam
        self.made = self.overflowed = False

    def compacted(self) -> None:
        """Note the client's own summary: the history begins anew, and nothing was asked for in it yet."""
        self.tokens = self.pending = self.turns = self.asked = 0
        self.seam, self.asked_at = "", None
        self.wanted = self.made = self.overflowed = False


def before_compaction(payload: Mapping[str, Any], full: Fullness) -> dict[str, Any]:
    """Answer a `PreCompact` hook: hold the client's own summary back and have a checkpoint asked for.

    It goes ahead where the human asked for it, in a sub-agent, where the request would no longer fit otherwise,
    where a checkpoint was just made and did not help, and where the agent was asked often enough.

    Args:
        payload: what the hook tells; `room`, the tokens that still fit, where the client knows them.
        full: what is known of the session.
    """
    if payload.get("trigger") != "auto" or payload.get("agent_id") or full.overflowed:
        return {}
    room = payload.get("room")
    if not isinstance(room, int):
        estimate = full.tokens + full.pending // _BYTES_PER_TOKEN
        window = next((size for size in _WINDOWS if estimate <= size), _WINDOWS[-1])
        room = window - _RESERVED - estimate
    if room < _MARGIN:
        return {}
    if not full.made:
        elsewhere = full.asked_at is not None and full.asked_at != full.seam
        if elsewhere and full.turns <= _SOON:
            return {}
        if full.asked_at != full.seam:
            full.asked, full.asked_at = 0, full.seam
        if full.asked >= _ASKED:
            return {}
        full.asked += 1
        full.wanted = True
    return {"decision": "block", "reason": "Cutline asks the agent for a checkpoint instead (--keep-compaction: never)"}


def after_call(payload: Mapping[str, Any], full: Fullness) -> dict[str, Any]:
    """Answer a `PostToolUse` or `UserPromptSubmit` hook: tell the agent that a checkpoint is wanted, where one is.

    Args:
        payload: what the hook tells; `limit`, the tokens at which the client sums up, where nothing can hold that back.
        full: what is known of the session.
    """
    if payload.get("agent_id"):
        return {}
    name = str(payload.get("tool_name") or "")
    weight = _weight(payload.get("tool_response")) + _weight(payload.get("prompt"))
    full.pending += weight if narration.is_own(name) else min(weight, _INLINE)
    if wire.names_checkpoint(name):  # a refused one is an error, and calls another hook
        full.made, full.wanted = True, False
    limit = payload.get("limit")
    if isinstance(limit, int) and limit > 0 and not full.made:
        _ask_ahead(limit, full)
    if not full.wanted or narration.is_own(name):
        return {}
    full.wanted = False  # once for each summary that was held back
    event = str(payload.get("hook_event_name") or "PostToolUse")
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": mandate.CHECKPOINT_WANTED}}


def _ask_ahead(limit: int, full: Fullness) -> None:
    """Have a checkpoint asked for while a summary comes near: at each of the shares once, until one is made."""
    estimate = full.tokens + full.pending // _BYTES_PER_TOKEN
    near = sum(estimate >= share * limit for share in _AHEAD)
    if full.asked_at != full.seam:
        if full.asked_at is not None and full.turns <= _SOON:
            return
        full.asked, full.asked_at = 0, full.seam
    if near > full.asked:
        full.asked, full.wanted = near, True


def _weight(value: Any) -> int:
    """Bytes of the texts in a result; an image's data weighs what the image does."""
    if isinstance(value, str):
        return len(value.encode("utf-8", "replace"))
    if isinstance(value, Mapping):
        return sum(_IMAGE if key in ("base64", "data") else _weight(held) for key, held in value.items())
    return sum(map(_weight, value)) if isinstance(value, list) else 0


def _names_call(block: Mapping[str, Any]) -> bool:
    return block.get("type") == "tool_use"


def _call(block: Mapping[str, Any]) -> tuple[str, bytes]:
    return str(block.get("name")), _raw(block.get("input"))


def _raw(value: Any) -> bytes:
    return json.dumps(value if value is not None else {}, ensure_ascii=False).encode("utf-8", "surrogatepass")
