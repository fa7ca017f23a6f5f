"""The tools for a program's own agent: what micro_handoff, recall and say are answered.

Law: nothing is decided here but where to look: in the histories that the transport saw, which a program sends whole
with every request, then in the record. What a call is answered is `mcp.Tools`' word.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from .. import checkpoint, events, mcp, recall, record, toolset
from ..errors import InputError
from ..recall import Recalled, Source
from ..record import Said
from ..wire import anthropic as wire
from .behind import Behind, Conversation

_SETTLING_S = 2.0  # how long the answer that makes a call is waited for


class Agent:
    """Answers calls of the three tools.

    Args:
        behind: what follows the transport.
    """

    def __init__(self, behind: Behind) -> None:
        self._behind = behind
        self._tools: _Tools | None = None

    def call(self, name: str, arguments: Mapping[str, Any], call_id: str) -> str:
        """The answer in text (see `Transport.call`)."""
        return "\n".join(self._reply(name, arguments, call_id).texts)

    def answer(self, call: Any) -> dict[str, Any] | None:
        """The answer in the provider's shape (see `Transport.answer`)."""
        read = toolset.read(call)
        if read is None:
            return None
        reply = self._reply(read.name, read.arguments, read.id)
        return read.answered("\n".join(reply.texts), error=reply.error, images=reply.images)

    def _reply(self, name: str, arguments: Mapping[str, Any], call_id: str) -> mcp.Reply:
        try:
            self._behind.settle(_SETTLING_S)
            if self._tools is None:
                self._tools = _tools(self._behind)
            return self._tools.call(name, arguments, call_id)
        except Exception as error:  # a fault of ours must not stop the program: its agent is told, and goes on
            said = f"{name} failed: {type(error).__name__}: {error}"
            self._behind.fault(said)
            # These words are what makes it no checkpoint in formats whose results can't say that they failed.
            return mcp.Reply((f"{checkpoint.REFUSED} {said}; go on, and try again later",), error=True)


def _tools(behind: Behind) -> _Tools:
    held = None
    if behind.record is not None:
        try:
            held = record.Record(behind.record)
        except InputError as error:  # the histories of this program are there all the same
            behind.fault(f"the record: {error}")
    tools = _Tools(behind.directory, behind.scope, held, behind.session)
    tools.behind = behind
    return tools


class _Tools(mcp.Tools):
    """The tools, looking where a program's histories are."""

    behind: Behind

    def sources(self) -> list[Source]:
        """Where calls are looked for."""
        found: list[Source] = [_Seen(self.behind)]
        return [*found, recall.RecordedCalls(self.record, self.scope)] if self.record is not None else found

    def _history(self, call_id: str, session: str) -> mcp._Told | None:
        """The conversation that makes a checkpoint call: by the call's id, else the latest that makes one."""
        made = [
            (one, call)
            for one in self.behind.conversations()
            for call in one.answer.calls
            if wire.names_checkpoint(str(call.get("name")))
        ]
        found = next((one for one, call in made if call.get("id") == call_id), None)
        # Where the provider gives its calls no id, the program's own says nothing here: the latest one it is.
        found = found or next((one for one, call in made if not (call_id and call.get("id"))), None)
        if found is not None:
            return mcp._before(session, events.events(_answered(found)))
        # A program that was ended behind this answer, and goes on: its history is in the record.
        told = self._recorded(call_id) if self.record is not None and call_id else None
        return None if told is None else replace(told, session=session)


def _answered(conversation: Conversation) -> wire.Request:
    """A conversation with its last answer behind it."""
    request = conversation.request
    kept = [block for block in conversation.answer.content if block.get("type") in ("text", "tool_use")]
    content = json.dumps(kept).encode()
    end = request.messages[-1].end
    said = b',{"role":"assistant","content":' + content + b"}"
    return wire.read(request.body[:end] + said + request.body[end:])


class _Seen:
    """The calls of the conversations that passed; the program sends each history whole."""

    def __init__(self, behind: Behind) -> None:
        self._behind = behind

    def _all(self) -> Iterator[Recalled]:
        """Every call, the latest first."""
        for one in self._behind.conversations():
            yield from reversed(list(recall.of_request(one.request, self._behind.session, one.at)))

    def calls(self, address: str) -> list[Recalled]:
        """Every place of an address."""
        return [hit for hit in self._all() if hit.call.address == address]

    def search(self, words: Sequence[str], limit: int, *, tool: str = "", since: float = 0.0) -> list[Recalled]:
        """Calls that hold all the words."""
        return recall.chosen(self._all(), words, tool, since)[:limit]

    def said(self, words: Sequence[str], limit: int, *, author: str = "", since: float = 0.0) -> list[Said]:
        """What was said is in every request, whole: nothing of it has to be recalled."""
        return []
