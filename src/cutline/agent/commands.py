"""What the human can ask of the harness: /checkpoint, /handoff, /recall, /cost, /undo-cut, as functions.

Law: a face calls these because the human typed so; nothing that the agent or a tool writes is ever read as one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from . import events as ev
from . import prompt
from .state import texts

if TYPE_CHECKING:
    from ..transport import Report
    from .loop import Session

HELP = {
    "/checkpoint": "ask the agent for a checkpoint (a micro-handoff)",
    "/handoff": "have a full handoff written: a document for a fresh instance",
    "/recall": "show a call with its result: an address, or words to search",
    "/cost": "what the session used and cost, and what the cuts saved",
    "/undo-cut": "take the last checkpoint back: everything before it is sent again",
    "/pause": "hold the agent before its next call, or let it go on",
}
"""The commands and what they do, in a line each."""


async def checkpoint(session: Session) -> ev.TurnEnded | None:
    """Ask for a checkpoint: at once between two turns, else with the next results (None then)."""
    if session.state.active:
        session.emit(ev.Human(prompt.CHECKPOINT, harness=True))
        return None
    return await session.turn(prompt.CHECKPOINT, harness=True)


async def handoff(session: Session, folder: Path) -> Path | None:
    """Have a full handoff written, between two turns.

    Args:
        session: whose.
        folder: where the document goes.

    Returns:
        The document; None where none came.
    """
    if session.state.active:
        session.emit(ev.Notice("the agent is at work: ask for the handoff when its turn is over"))
        return None
    ended = await session.turn(prompt.HANDOFF, harness=True)
    answers = session.state.answers()
    said = "\n\n".join(texts(answers[-1])) if answers else ""
    if ended.reason != "answered" or not said.strip():
        session.emit(ev.Notice("no handoff was written"))
        return None
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    begun = session.state.begun
    name = f"{begun.session if begun else 'session'}-handoff"
    number = len(list(folder.glob(f"{name}*.md"))) + 1
    path = folder / f"{name}-{number}.md"
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as handle:
        handle.write(said.encode("utf-8", "replace").decode() + "\n")
    session.emit(ev.Handoff(str(path)))
    return path


def undo_cut(session: Session) -> bool:
    """Take the last checkpoint back; False where none stands."""
    if not session.state.checkpoints:
        session.emit(ev.Notice("no checkpoint stands: nothing was cut"))
        return False
    session.emit(ev.CutUndone(session.state.checkpoints[-1]))
    session.emit(ev.Notice("the last checkpoint is taken back; the next request carries what it had removed"))
    return True


def cost(session: Session, report: Callable[[], Report]) -> str:
    """What the session used and cost, and what went over the wire in this process."""
    state = session.state
    used, usd = state.used, state.usd
    price = f"${usd:,.4f}" if usd is not None else "no price known for this model"
    head = (
        f"{state.requests:,} requests · {used.prompt:,} input tokens ({used.cache_read:,} of them from the cache) · "
        f"{used.output:,} output · {price}"
    )
    return f"{head}\n\n{report()}"
