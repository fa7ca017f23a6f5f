"""A session of the agent for tests: the real loop, log and transport, a scripted model on loopback, a face that notes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cutline
import validator
from cutline.agent import events as ev
from cutline.agent import log as logs
from cutline.agent.face import Approval
from cutline.agent.loop import Held, Rule, Session
from cutline.agent.models import Model, own_tools
from cutline.agent.state import State
from cutline.agent.tools.tool import Outcome, Piece, Place, Tool
from validators import gemini, openai_chat, openai_responses

MODELS = {
    "anthropic": "anthropic:claude-sonnet-4-5",
    "openai_chat": "openai-chat:gpt-5.2",
    "openai_responses": "openai:gpt-5.2",
    "gemini": "google:gemini-2.5-pro",
}
_FAULTS = {
    "anthropic": validator.faults,
    "openai_chat": openai_chat.faults,
    "openai_responses": openai_responses.faults,
    "gemini": gemini.faults,
}
SYSTEM = "You work under a human's eyes."


def refuses(format: str, body: bytes) -> str:
    """What the provider would refuse."""
    faults = _FAULTS[format](body)
    return faults[0] if faults else ""


class Shell:
    """No shell."""

    directory = Path("/")
    busy = False

    async def stop(self) -> bool:
        return False

    async def close(self) -> None:
        return


def tool(
    name: str, run: Callable[[Mapping[str, Any]], Any], kind: Any = "read", preview: Callable[..., str] | None = None
) -> Tool:
    """A tool that a function answers: a text, an outcome, or an iterator of pieces and the outcome."""

    async def carried(arguments: Mapping[str, Any], at: Place) -> AsyncIterator[Piece | Outcome]:
        told = run(arguments)
        if hasattr(told, "__aiter__"):
            async for item in told:
                yield item
        else:
            yield Outcome(told) if isinstance(told, str) else told

    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    return Tool(name, f"The tool {name}.", schema, kind, carried, preview)


def part(arguments: Mapping[str, Any]) -> str:
    """What reading a part gives: much, with one specific in it."""
    number = int(str(arguments["path"])[5:7])
    return "\n".join([*(f"row_{n} = {n * (number + 3)}" for n in range(120)), f"token_{number} = 'value-{number}'"])


READ = tool("read_part", part)


@dataclass
class Noting:
    """A face that notes all, and does as the test says.

    Attributes:
        seen: every event, in order.
        says: answers an approval.
        on: called with each event as it is shown.
    """

    says: Callable[[ev.ApprovalAsked], Approval] = lambda asked: Approval(True)
    on: Callable[[ev.Event], None] = lambda event: None
    seen: list[ev.Event] = field(default_factory=list)

    def show(self, event: ev.Event) -> None:
        self.seen.append(event)
        self.on(event)

    async def approve(self, asked: ev.ApprovalAsked) -> Approval:
        await asyncio.sleep(0)
        return self.says(asked)

    def of(self, kind: type) -> list[Any]:
        return [event for event in self.seen if isinstance(event, kind)]


def url(model: Any, format: str) -> str:
    """The scripted model's base URL for a format."""
    return f"{model.url}/v1" if format.startswith("openai") else str(model.url)


@dataclass
class Made:
    """A session, its parts, and what closes them."""

    session: Session
    face: Noting
    transport: cutline.Transport
    model: Model
    log: logs.Log

    async def close(self) -> None:
        await self.model.close()
        await self.transport.aclose()
        self.log.close()


def opened(
    path: Path,
    model: Any,
    format: str = "anthropic",
    *,
    tools: Sequence[Tool] = (READ,),
    face: Noting | None = None,
    rule: Rule = lambda call, tool, place: ("allow", ""),
    gate: str = "nudge",
    record: Any = False,
) -> Made:
    """A session on a log: a new one, or what the log holds goes on."""
    face = face or Noting()
    transport = cutline.AsyncTransport(record=record)
    made = Model(MODELS[format], url(model, format), transport, {})
    state = State()
    for _, event in logs.lines(path) if path.exists() else ():
        state.apply(event)
    new = state.begun is None
    log = logs.Log(path)
    declared = [{"name": one.name, "description": one.description, "schema": dict(one.schema)} for one in tools]
    place = Place(path.parent, {}, Shell(), path.parent)
    by_name = {one.name: one for one in tools}
    session = Session(Held(log, state, face, made, transport, by_name, place, rule, waits=(0.01, 0.01, 0.01)))
    if new:
        known = (*declared, *own_tools())
        session.emit(ev.Begun(path.stem, str(path.parent), MODELS[format], "", gate, "ask", SYSTEM, known))
    return Made(session, face, transport, made, log)


def said(raw: bytes) -> list[str]:
    """Every string of a body's history, in order."""
    found: list[str] = []

    def walk(value: Any) -> None:
        if isinstance(value, str):
            found.append(value)
        for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            walk(one)

    body = json.loads(raw)
    walk(body.get("messages") or body.get("input") or body.get("contents"))
    return found
