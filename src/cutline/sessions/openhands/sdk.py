"""The events of OpenHands' SDK (its second generation) as a history.

Law: a call is the one that the model made, not the action that the client made of it. What the client adds to a message
or a result is the harness's.
"""

from __future__ import annotations

from typing import Any

from ... import spans
from ..lines import Opened
from ..model import Origin
from ..talk import CALLS, CONTENT, Talk, result_content, word

KINDS = (
    *("MessageEvent", "ActionEvent", "ObservationEvent", "UserRejectObservation", "AgentErrorEvent"),
    *("SystemPromptEvent", "CondensationSummaryEvent"),
)
"""Events that the model is shown something of."""
_ORIGINS: dict[str, Origin] = {"agent": "agent", "user": "human"}


class Events:
    """A history while it grows out of the SDK's events.

    Attributes:
        usages: by an answer's id, what the provider counted for it.
    """

    def __init__(self, talk: Talk, usages: dict[str, Any]) -> None:
        """Begin a history."""
        self.talk = talk
        self.usages = usages

    def add(self, number: int, opened: Opened) -> None:
        """Add one event."""
        members, talk = opened.members(), self.talk
        kind = word(opened, members.get("kind"))
        talk.at(word(opened, members.get("timestamp")))
        if kind == "MessageEvent":
            self._message(number, opened, members)
        elif kind == "ActionEvent":
            self._action(number, opened, members)
        elif kind in ("ObservationEvent", "UserRejectObservation", "AgentErrorEvent"):
            self._result(number, opened, members, kind)
        elif kind == "CondensationSummaryEvent":
            talk.out.compacted = True
            talk.words("summary", opened.literal(members.get("summary")), (number, 0))
        elif kind == "SystemPromptEvent":
            talk.out.control(opened.literal(members.get("system_prompt")) or opened.raw, (number, 0))
            if members.get("dynamic_context"):
                talk.out.control(opened.literal(members["dynamic_context"]), (number, 1))

    def _message(self, number: int, opened: Opened, members: dict[str, spans.Member]) -> None:
        talk, message = self.talk, opened.inside(members.get("llm_message"))
        origin = _ORIGINS.get(word(opened, members.get("source")), "harness")
        if origin == "agent":
            self._reasoning(number, opened, message)
        talk.content(origin, opened, message.get("content"), number)
        for index, (start, end) in enumerate(opened.elements(members.get("extended_content")), CALLS):
            talk.out.control(opened.raw[start:end], (number, index))
        self._counted(opened, members)

    def _action(self, number: int, opened: Opened, members: dict[str, spans.Member]) -> None:
        talk, call = self.talk, opened.inside(members.get("tool_call"))
        self._reasoning(number, opened, members)
        talk.content("agent", opened, members.get("thought"), number)
        inside = opened.inside(call.get("function")) or call
        arguments = inside.get("arguments") or members.get("action")
        name = inside.get("name") or members.get("tool_name")
        talk.call(opened, call.get("id") or members.get("tool_call_id"), name, arguments, (number, CALLS))
        self._counted(opened, members)

    def _reasoning(self, number: int, opened: Opened, members: dict[str, spans.Member]) -> None:
        blocks = opened.elements(members.get("thinking_blocks"))
        for index, (start, end) in enumerate(blocks):
            block = opened.members(start)
            told = opened.literal(block.get("thinking")) or opened.raw[start:end]
            self.talk.reasoning(told, (number, -index), opened.literal(block.get("signature")))
        for key in ("reasoning_content", "responses_reasoning_item") if not blocks else ():
            self.talk.reasoning(opened.literal(members.get(key)), (number, 0))

    def _result(self, number: int, opened: Opened, members: dict[str, spans.Member], kind: str) -> None:
        talk, id_ = self.talk, word(opened, members.get("tool_call_id"))
        if kind != "ObservationEvent":
            told = members.get("error" if kind == "AgentErrorEvent" else "rejection_reason")
            talk.result(id_, opened, told, (number, 0), error=True)
            return
        observation = opened.inside(members.get("observation"))
        content = observation.get("content") or observation.get("output") or members.get("observation")
        failed = opened.literal(observation.get("is_error")) == b"true"
        talk.out.result(id_, result_content(opened, content), (number, 0), error=failed)
        for index, (start, end) in enumerate(opened.elements(members.get("extended_content")), CONTENT):
            talk.out.control(opened.raw[start:end], (number, index))

    def _counted(self, opened: Opened, members: dict[str, spans.Member]) -> None:
        counted = self.usages.pop(word(opened, members.get("llm_response_id")), None)
        if isinstance(counted, dict):
            usage = {
                "prompt_tokens": counted.get("prompt_tokens"),
                "completion_tokens": counted.get("completion_tokens"),
                "cache_read_input_tokens": counted.get("cache_read_tokens"),
                "cache_creation_input_tokens": counted.get("cache_write_tokens"),
            }
            model = str(counted.get("model") or "")
            when = word(opened, members.get("timestamp"))
            self.talk.counted(usage, model, when, str(counted.get("response_id") or ""))


def shown(opened: Opened, members: dict[str, spans.Member]) -> bool:
    """Whether the model is shown something of an event; the place of a summary is told in those."""
    return word(opened, members.get("kind")) in KINDS
