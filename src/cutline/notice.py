"""The notice: what a cut adds to a checkpoint's result, and the trace of what was not narrated.

Law: a pure text of one stretch. It states the loss in figures, says how to get anything back, and names the
calls that the agent's own words don't carry. The same stretch gives the same text for ever: nothing here may
depend on what comes after the stretch's checkpoint turn. The cut writes it, the proof composes it again from
its own reading and compares.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from . import narration
from .blocks import ToolCall
from .trace import index, outcome, short

Trace = Literal["holes", "none", "all"]
Handle = TypeVar("Handle")

OPENING = "[cutline]"
_SHARE = 20  # the trace may weigh one part in this many of what left
_LEAST, _MOST = 400, 100_000  # … and never less than the first, never more than the second (bytes)
_TARGET = 90  # characters
_INSTRUCTIONS = re.compile(rb"(?:CLAUDE(?:\.local)?|AGENTS|SKILL|GEMINI)\.md")
_PATH_BEFORE = re.compile(rb"[\w./~-]*\Z")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\u0080-\u009f\u2028\u2029\ud800-\udfff]+")


@dataclass(frozen=True, slots=True)
class Unit:
    """One removed call with the agent's words around it.

    Attributes:
        call: the call and its result.
        before: what the agent said since the calls before, up to and with the calling message.
        after: what it said next, up to and with the message of the next calls.
    """

    call: ToolCall
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Loss:
    """What left one stretch.

    Attributes:
        calls, results, thinking: how many blocks of each.
        weight: bytes of those blocks' JSON literals.
        files: instruction files that were read in the stretch, in order, each once.
        first: nothing but the conversation's start lies before the stretch.
    """

    calls: int
    results: int
    thinking: int
    weight: int
    files: tuple[str, ...]
    first: bool


def instruction_files(literal: bytes) -> list[str]:
    """Names of instruction files that a call's JSON literal mentions."""
    found: list[str] = []
    if b".md" not in literal:
        return found
    for name in _INSTRUCTIONS.finditer(literal):
        path = _PATH_BEFORE.search(literal, max(0, name.start() - 300), name.start())
        found.append((path[0] if path else b"").decode("ascii", "replace") + name[0].decode())
    return found


def counts(loss: Loss) -> str:
    """The figures of a loss, as the notice gives them."""
    parts = [
        f"{number:,} {word}{'' if number == 1 else 's'}"
        for number, word in ((loss.calls, "call"), (loss.results, "result"), (loss.thinking, "thinking block"))
        if number
    ]
    return f"{', '.join(parts)} ({loss.weight:,} bytes)"


def compose(
    loss: Loss,
    calls: Sequence[Handle],
    reports: Sequence[Handle],
    unit: Callable[[Handle], Unit],
    recall: str,
    trace: Trace = "holes",
) -> str:
    """The notice's text.

    Args:
        loss: the stretch's figures.
        calls: handles of the removed calls, in order; reports are not among them.
        reports: handles of the removed sub-agents' calls: their reports are not re-runnable in seconds, so
            each gets a line, narrated or not (none with ``trace="none"``).
        unit: reads what a handle stands for.
        recall: name of the tool that brings results back, or "" where the body declares none.
        trace: what is indexed: calls that are not narrated, with names that the agent did not say; nothing; or every
            call with every name.
    """
    since = "the start" if loss.first else "the checkpoint before"
    how = f"the tool {recall} with an address" if recall else "`cutline recall ADDRESS`"
    lines = [
        f"{OPENING} Left out of the context between {since} and this checkpoint: {counts(loss)}. "
        "Every word that you and the human wrote is still here.",
        f"The record keeps all of it; {how} brings any result back exactly as it was.",
        "What you stated above is testimony, not evidence: derive again whatever the next step stands on. "
        "Call tools anew when you need them; never write a call or its result out as text.",
    ]
    if loss.files:
        lines.append(f"Instruction files that left with their results, to be read again: {', '.join(loss.files)}.")
    if trace != "none":
        lines += _trace(calls, unit, max(_LEAST, min(_MOST, loss.weight // _SHARE)), trace)
        if reports:
            lines += ["Sub-agents' reports:", *(line(unit(handle).call) for handle in reports)]
    return "\n".join(lines)


def _trace(calls: Sequence[Handle], unit: Callable[[Handle], Unit], budget: int, trace: Trace) -> list[str]:
    units = [unit(handle) for handle in calls]
    # With "all" the agent's words count for nothing: neither a narrated call nor a name that was said is left out.
    heard = () if trace == "all" else units
    said = dict.fromkeys(words for read in heard for words in (read.before, read.after) if words)
    listed = [
        (number, read.call)
        for number, read in enumerate(units)
        if trace == "all" or narration.is_hole(read.call, read.before, read.after)
    ]
    if not listed:
        return []
    lines, left = index(listed, len(calls), said, budget)
    which = "that your words don't carry" if trace == "holes" else "that left"
    more = f" ({left:,} other targets have no line here; recall finds them by words)" if left else ""
    return [f"Calls {which}, by target, with address, outcome, and names that stand in them{more}:", *lines]


def line(call: ToolCall) -> str:
    """One line of the trace: address, tool, target, outcome."""
    what = _aim(narration.target(call.name, call.arguments))
    return f"{call.address} {call.name}{' ' if what else ''}{what} → {outcome(call)}"


def _aim(target: str) -> str:
    """A target in few words; of a long path the end, which names the file."""
    path = target if "/" in target and not re.search(r"\s", target) and not _CONTROL.search(target) else ""
    return f"…{path[1 - _TARGET :]}" if len(path) > _TARGET else short(target, _TARGET)
