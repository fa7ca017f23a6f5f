"""How full the context is, when a checkpoint would pay, and what is said of it.

Law: pure; said once for each stretch, never a nag. Sizes are estimated from bytes, on the provider's own count of the
last prompt; `money` does the arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .. import mandate, money
from . import events as ev
from .state import Answer, Given, State

WARN = 0.90
"""Share of the window from which a checkpoint is asked for."""
ONLY = 0.96
"""Share of it from which nothing else is callable."""
_LEAST = 20_000  # tokens that a cut must remove before it is spoken of
_BYTES_A_TOKEN = 4

PAYS = (
    "Cutline: at the next natural break a checkpoint (micro_handoff) would pay: about {deleted:,} tokens would leave "
    "your context."
)
ONLY_CHECKPOINT = (
    "Cutline: not run: the context is full. Only micro_handoff is callable now; what lies before it then leaves the "
    "context, and every other tool is back."
)

Level = Literal["", "pays", "warn", "only"]


@dataclass(frozen=True, slots=True)
class Fullness:
    """What is known before a request.

    Attributes:
        level: "" for nothing to say; a checkpoint pays; it is asked for; only it is callable.
        prompt: tokens that the next prompt comes to, estimated.
        window: the model's; 0 where it is not known.
        deleted: tokens that a checkpoint would remove, estimated.
        turns: requests after which a cut has paid.
    """

    level: Level
    prompt: int
    window: int
    deleted: int
    turns: float

    @property
    def reminder(self) -> str:
        """What the agent is told."""
        if self.level == "pays":
            return PAYS.format(deleted=round(self.deleted, -3))
        return mandate.CHECKPOINT_WANTED if self.level else ""

    @property
    def notice(self) -> str:
        """What the human is told."""
        if self.level == "pays":
            after = "at once" if self.turns <= 1 else f"after {self.turns:.0f} requests"
            return f"a checkpoint would remove about {round(self.deleted, -3):,} tokens and pay {after}: /checkpoint"
        if not self.level:
            return ""
        share = 100 * self.prompt / self.window
        more = "; only the checkpoint is callable now" if self.level == "only" else ""
        return f"the context is {share:.0f} % full: the agent is asked for a checkpoint{more}"


def weigh(state: State, window: int, rates: money.Rates | None) -> Fullness:
    """How full the context is before the next request.

    Args:
        state: with what waits to be given.
        window: tokens; 0 where it is not known.
        rates: what the model costs; None where no price is known.
    """
    said, world = _weights(state)
    waiting = sum(len(result.text.encode("utf-8", "replace")) for result in state.given_next())
    prompt = state.last.prompt + state.last.output + waiting // _BYTES_A_TOKEN
    deleted, survives = (world + waiting) // _BYTES_A_TOKEN, said // _BYTES_A_TOKEN
    prefix = max(0, prompt - deleted - survives)
    paid = money.payback(prefix, survives, deleted, rates, warm=True)
    if state.after_checkpoint:
        return Fullness("", prompt, window, deleted, paid.turns)
    if window and prompt >= ONLY * window:
        level: Level = "only"
    elif window and prompt >= WARN * window:
        level = "warn"
    else:
        level = "pays" if deleted >= _LEAST and paid.pays_within(max(1, money.rhythm(state.turns))) else ""
    return Fullness(level, prompt, window, deleted, paid.turns)


def _weights(state: State) -> tuple[int, int]:
    """Bytes behind the last checkpoint: of what was said, and of what a checkpoint would remove."""
    said = world = 0
    for one in state.stretch():
        if isinstance(one, Given):
            said += sum(len(words.text.encode("utf-8", "replace")) for words in one.words)
            world += sum(_weight(result) for result in one.results)
        elif isinstance(one, Answer):
            for block in one.content:
                if block["type"] == "text":
                    said += len(block["text"].encode("utf-8", "replace"))
                elif block["type"] == "tool_use":
                    world += len(str(block["input"]))
                else:
                    world += len(block["thinking"])
    return said, world


def _weight(result: ev.Result) -> int:
    return len(result.text.encode("utf-8", "replace"))
