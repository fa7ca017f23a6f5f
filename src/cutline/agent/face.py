"""What the loop asks of whoever shows it, and what it offers to them: a terminal, `-p`, a test.

Law: a face shows and asks, and decides nothing; what steers the agent comes from the human through it, never from an
event's text. All of it happens in the loop's own thread (one event loop), so nothing here locks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from .events import ApprovalAsked, Event


@dataclass(frozen=True, slots=True)
class Approval:
    """What the human says to a call.

    Attributes:
        allow: it runs.
        words: said along with a denial, to the agent.
        always: calls like it need not be asked for in this session.
        reason: why it does not run, where no human said so; "" for the human's denial.
    """

    allow: bool
    words: str = ""
    always: bool = False
    reason: str = ""


class Face(Protocol):
    """Whoever shows a session."""

    def show(self, event: Event) -> None:
        """Show an event: every one, in order, the durable ones once they are in the log. Returns at once.

        Texts of the agent and of tools may hold anything; what reaches a terminal goes through `tools.plain`.
        """

    async def approve(self, asked: ApprovalAsked) -> Approval:
        """Ask the human about a call. Only keys that the human pressed may answer it."""


class Steering(Protocol):
    """What a session offers to its face, at any time; none of it waits for the agent."""

    def hint(self, text: str) -> None:
        """Note words of the human's: durable at once, delivered with the next request."""

    def pause(self, paused: bool = True) -> None:
        """Hold the agent before its next call, or let it go on."""

    def stop_tool(self) -> bool:
        """End what runs of the current calls; the turn goes on with that result. False where nothing ran."""

    def stop_turn(self) -> None:
        """End the turn: the running request or calls, and what was to follow."""
