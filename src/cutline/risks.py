"""What a checkpoint would lose or leave unproven: holes with specifics, craft saved nowhere, claims nothing shows.

Law: pure; a history's events and a document go in, short lines come out, the weightiest first. It errs towards
silence: a risk is named only where the record speaks plainly, because it is handed back to the agent once, as
a refusal, and each costs a call.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from . import evidence, narration, notice
from .blocks import Author, Event, Said, ToolCall
from .checkpoint import Document, Fact
from .specifics import folded, specifics, texts, value_of
from .wire import anthropic as wire

_HOLES, _CRAFT, _CLAIMS = 4, 3, 6  # how many of each are listed
_SHORT = 2_000  # characters up to which a result is an answer, not a document
_LOOKED_AT = 8_000  # characters of a command; a longer one is a file that is written
_LONG = 160  # characters from which a command with several stages is craft
_STAGE = re.compile(r"\||&&|;|\b(?:awk|sed|perl|jq|xargs|find|python3? -c|grep -[a-zA-Z]*[oP])\b")
_WRITING = re.compile(r"(?:cat|tee)\b[^\n|]*(?:>|\btee\b)|<<-?\s*['\"]?\w+")
_BLANKS = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Risks:
    """What is at risk.

    Attributes:
        unproven: claims marked as measured that no recorded call or result shows.
        craft: long commands that stand in no file that was written.
        holes: calls with specifics in their results which no words carry.
    """

    unproven: tuple[str, ...]
    craft: tuple[str, ...]
    holes: tuple[str, ...]

    @property
    def lines(self) -> tuple[str, ...]:
        """All of them, claims first: a false one does the most harm."""
        return self.unproven + self.craft + self.holes


def find(stretch: Sequence[Event], whole: Sequence[Event], document: Document) -> Risks:
    """What a document, written now, would leave behind.

    Args:
        stretch: words and calls since the last checkpoint, in order, up to and with the words beside this one.
        whole: words and calls of the whole record: a claim may rest on an earlier call.
        document: the checkpoint's document.
    """
    calls = [event for event in stretch if isinstance(event, ToolCall) and not narration.is_own(event.name)]
    every = [event for event in whole if isinstance(event, ToolCall) and not narration.is_own(event.name)]
    said = folded(
        "\n".join(event.text for event in stretch if isinstance(event, Said) and event.author is Author.AGENT)
    )
    said += " " + folded(" ".join((document.done, document.open, document.went_wrong, document.next)))
    said += " " + folded(" ".join([fact.claim + " " + fact.evidence for fact in document.facts]))
    said += " " + folded(" ".join(document.dead_ends))
    return Risks(
        tuple(_unproven(document.facts, every))[:_CLAIMS],
        tuple(_craft(calls, document))[:_CRAFT],
        tuple(_holes(stretch, calls, said))[:_HOLES],
    )


def _unproven(facts: Sequence[Fact], calls: Sequence[ToolCall]) -> list[str]:
    record = evidence.Record(calls)
    found: list[str] = []
    for fact in facts:
        if len(found) < _CLAIMS and fact.basis == "measured" and (why := record.doubt(fact)):
            found.append(f"marked measured, but {why}: “{_short(fact.claim, 120)}”")
    return found


def _craft(calls: Sequence[ToolCall], document: Document) -> list[str]:
    """Commands of several stages that were not saved: each is lost with its call."""
    written = [_held(call) for call in calls if _saves(call)]
    found: list[str] = []
    for call in reversed(calls):
        command = _command(call)
        if len(command) < _LONG or len(_STAGE.findall(command)) < 3 or _WRITING.search(command) or call.error:
            continue
        flat = folded(command)
        if any(flat in text for text in written) or any(recipe in command for recipe in document.recipes if recipe):
            continue
        found.append(f"a command that is saved in no file ({call.address}): {_short(command, 100)}")
    return found


def _saves(call: ToolCall) -> bool:
    head = call.arguments[:400]
    return (
        b'"content"' in head
        or b'"new_string"' in call.arguments
        or b'"file_text"' in head
        or (_WRITING.search(_command(call)) is not None)
    )


def _command(call: ToolCall) -> str:
    value = value_of(call.arguments)
    command = value.get("command") if isinstance(value, dict) else None
    return command[:_LOOKED_AT] if isinstance(command, str) else ""


def _holes(stretch: Sequence[Event], calls: Sequence[ToolCall], said: str) -> list[str]:
    """Unnarrated commands and failures whose short result holds specifics that stand nowhere in the agent's words.

    A file that was read or searched can be read again; a command's answer belongs to its moment.
    """
    found = []
    for number in reversed(narration.review(stretch).holes):
        call = calls[number]
        if call.result is None or not (_command(call) or call.error) or call.result.startswith(wire.REFUSALS):
            continue
        result = notice.unreminded(call.result)
        if len(result) > _SHORT:
            continue
        new = [name for name in specifics(result) if name.lower() not in said]
        if len(new) >= 2:
            found.append(f"not narrated: {notice.line(call)}")
    return found


def _held(call: ToolCall) -> str:
    """A call's words and its result's, on one line, in lower case."""
    return folded(" ".join(texts(value_of(call.arguments))) + " " + (call.result or ""))


def _short(text: str, size: int) -> str:
    clean = _BLANKS.sub(" ", text).strip()
    return clean if len(clean) <= size else clean[: size - 1] + "…"
