"""The first generation's events (actions and observations) as a history.

Law: what the model said and called is taken from the answer that the event carries, where there is one: the event's own
members hold it in another form. What only drives the client (states, requests for context) is sent to nobody.
"""

from __future__ import annotations

from typing import Any

from ... import spans
from ..lines import Opened
from ..talk import CALLS, CONTENT, Talk, literal_of, word

_STATES = ("change_agent_state", "agent_state_changed", "null")
"""Actions and observations that the client itself takes for no part of the history."""
_SILENT = (*_STATES, "recall", "condensation", "condensation_request", "pause", "resume", "stop")
"""Those that the model is not shown."""
_INNER = ("think", "finish")
"""Actions whose member `thought` is no text beside the call, but what is called with."""


class Events:
    """A history while it grows out of events.

    Attributes:
        version: the client's version; "" where none is noted.
    """

    def __init__(self, talk: Talk) -> None:
        """Begin a history."""
        self.talk = talk
        self.version = ""
        self._answers: set[str] = set()
        self._calls: dict[str, str] = {}  # by an action's id, the id of its call

    def add(self, number: int, opened: Opened) -> None:
        """Add one event."""
        members = opened.members()
        self.talk.at(word(opened, members.get("timestamp")))
        action, observation = word(opened, members.get("action")), word(opened, members.get("observation"))
        if "observation" in members:
            self._observation(number, opened, members, observation)
        elif action == "message":
            self._message(number, opened, members)
        elif action == "system":
            args = opened.inside(members.get("args"))
            self.version = word(opened, args.get("openhands_version")) or self.version
            self.talk.out.control(opened.literal(members.get("args")), (number, 0))
        elif action in _SILENT:
            return
        elif word(opened, members.get("source")) == "agent":
            self._action(number, opened, members, action)
        else:
            self.talk.out.control(opened.raw, (number, 0))

    def _message(self, number: int, opened: Opened, members: dict[str, spans.Member]) -> None:
        talk, args = self.talk, opened.inside(members.get("args"))
        source = word(opened, members.get("source"))
        origin = "agent" if source == "agent" else "human" if source == "user" else "harness"
        talk.words(origin, opened.literal(args.get("content")), (number, CONTENT))  # type: ignore[arg-type]
        for index, (start, end) in enumerate(opened.elements(args.get("image_urls")), CONTENT + 1):
            if origin == "human":
                talk.out.image(opened.raw[start:end], (number, index))
            else:
                talk.out.control(opened.raw[start:end], (number, index))
        self._counted(number, opened, members)

    def _action(self, number: int, opened: Opened, members: dict[str, spans.Member], action: str) -> None:
        talk, args = self.talk, opened.inside(members.get("args"))
        meta = opened.inside(members.get("tool_call_metadata"))
        id_, name = word(opened, meta.get("tool_call_id")), meta.get("function_name")
        made = self._answer(opened, meta)
        call = _call(opened, made, id_)
        if made:
            self._said(number, opened, meta, made)
        elif action not in _INNER:
            talk.words("agent", opened.literal(args.get("thought")), (number, CONTENT))
        self._calls[_id(opened, members.get("id"))] = id_
        if call:
            talk.call(opened, call.get("id"), call["function"], call["arguments"], (number, CALLS))
        else:
            raw = opened.literal(members.get("args")) or b"{}"
            talk.out.call(id_, word(opened, name) or action, raw, (number, CALLS))
        self._counted(number, opened, members)

    def _answer(self, opened: Opened, meta: dict[str, spans.Member]) -> dict[str, spans.Member]:
        """The message of the model's answer that made an action; empty where the event carries none."""
        choices = opened.elements(opened.inside(meta.get("model_response")).get("choices"))
        return opened.inside(opened.members(choices[0][0]).get("message")) if choices else {}

    def _said(self, number: int, opened: Opened, meta: dict[str, spans.Member], made: dict[str, spans.Member]) -> None:
        """What the answer says beside its calls, once where it makes several."""
        answer = word(opened, opened.inside(meta.get("model_response")).get("id"))
        if answer and answer in self._answers:
            return
        self._answers.add(answer)
        self.talk.reasoning(opened.literal(made.get("reasoning_content")), (number, 0))
        self.talk.content("agent", opened, made.get("content"), number)

    def _observation(self, number: int, opened: Opened, members: dict[str, spans.Member], kind: str) -> None:
        talk, content = self.talk, members.get("content")
        meta = opened.inside(members.get("tool_call_metadata"))
        if kind == "recall":
            talk.out.control(opened.literal(members.get("extras")) or opened.raw, (number, 0))
            return
        if kind in _SILENT or not kind:
            return
        cause = _id(opened, members.get("cause"))
        id_ = word(opened, meta.get("tool_call_id"))
        failed = kind == "error" or opened.literal(members.get("success")) == b"false"
        if kind == "condense":
            talk.out.compacted = True
            talk.words("summary", opened.literal(content), (number, 0))
        elif id_ or (cause and cause in self._calls):
            talk.result(id_ or self._calls[cause], opened, content, (number, 0), error=failed)
        elif content is not None:
            talk.out.control(literal_of(opened.literal(content)), (number, 0))
        else:
            talk.out.control(opened.raw, (number, 0))

    def _counted(self, number: int, opened: Opened, members: dict[str, spans.Member]) -> None:
        meta = opened.inside(members.get("tool_call_metadata"))
        answer: Any = opened.value(opened.inside(meta.get("model_response")).get("usage"))
        held = opened.inside(meta.get("model_response"))
        id_ = word(opened, held.get("id"))
        if answer and not any(made.message_id == id_ for made in self.talk.out.requests[-1:]):
            when = word(opened, members.get("timestamp"))
            self.talk.counted(answer, word(opened, held.get("model")), when, id_)


def shown(opened: Opened, members: dict[str, spans.Member]) -> bool:
    """Whether an event counts among those that the model is shown; the place of a summary is told in them."""
    return word(opened, members.get("observation") or members.get("action")) not in _STATES


def _call(opened: Opened, made: dict[str, spans.Member], id: str) -> dict[str, spans.Member]:
    """A call of an answer by its id: its members `id`, `function` (the name) and `arguments`."""
    for start, _ in opened.elements(made.get("tool_calls")):
        call = opened.members(start)
        if word(opened, call.get("id")) == id:
            function = opened.inside(call.get("function"))
            if "name" in function and "arguments" in function:
                return {"id": call["id"], "function": function["name"], "arguments": function["arguments"]}
    return {}


def _id(opened: Opened, member: spans.Member | None) -> str:
    value = opened.value(member)
    return value if isinstance(value, str) else ""
