"""The gate: whether a call's intent was stated, what is said where it was not, and how much is narrated.

Law: `narration` decides, here as everywhere; the words are `mandate`'s. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from .. import mandate, narration
from ..blocks import Author, Said, ToolCall
from ..blocks import Event as Told
from ..proxy.hooks import Heard, words
from . import events as ev
from .state import Answer, Call, Given, texts

Gate = Literal["off", "nudge", "strict"]
GATES: tuple[Gate, ...] = ("off", "nudge", "strict")


@dataclass(slots=True)
class Coverage:
    """How a session's calls are narrated, counted as it goes on.

    Attributes:
        calls: calls so far, without those of our own tools.
        intent: of them, how many had their intent stated.
        judged: of them, those whose outcome can be known: the agent has spoken since.
        narrated: of these, how many were told before and after.
    """

    calls: int = 0
    intent: int = 0
    judged: int = 0
    narrated: int = 0
    _heard: Heard = field(default_factory=Heard)
    _stated: dict[str, bool] = field(default_factory=dict)
    _last: tuple[str, Answer, Given] | None = None
    _held: Answer | None = None

    def hear(self, answer: Answer) -> None:
        """Note an answer: its calls' intent, and the outcome of the calls before it."""
        if self._last is not None:
            judged, narrated = _narrated(*self._last, answer)
            self.judged, self.narrated = self.judged + judged, self.narrated + narrated
            self._last = None
        self._heard.hear(answer.content)
        self._held = answer
        self._stated = {}
        for call in answer.calls:
            if not narration.is_own(call.name):
                stated = self._states(call)
                self._stated[call.id] = stated
                self.calls += 1
                self.intent += stated

    def give(self, given: Given) -> None:
        """Note what the calls were answered."""
        if self._held is not None and self._held.calls:
            self._last = (self._heard.earlier, self._held, given)

    def stated(self, call: str) -> bool | None:
        """Whether the last answer's call has its intent stated; None where none is asked for."""
        return self._stated.get(call)

    def returns(self) -> bool:
        """Whether calls without words may be returned unrun: not without end, the gate must not become a wall."""
        return self._heard.return_()

    def _states(self, call: Call) -> bool:
        made = _made(call, None)
        said = (words(self._heard.answer), self._heard.earlier)
        return any(narration.judge(made, text, "").intent for text in said if text.strip())


def verdict(gate: Gate, coverage: Coverage, call: Call) -> str:
    """What becomes of a call: "" for nothing said, `mandate.NUDGE`, or `mandate.STRICT` for returned unrun."""
    if gate == "off" or coverage.stated(call.id) is not False:
        return ""
    return mandate.STRICT if gate == "strict" and coverage.returns() else mandate.NUDGE


def _narrated(earlier: str, answer: Answer, given: Given, after: Answer) -> tuple[int, int]:
    """How many calls an answer makes, and how many of them the words before and behind them carry."""
    results = {result.call: result for result in given.results}
    told: list[Told] = [Said(earlier)] if earlier.strip() else []
    told += [Said(text) for text in texts(answer)]
    told += [_made(call, results.get(call.id)) for call in answer.calls if not narration.is_own(call.name)]
    told += [Said(one.text, Author.HUMAN) for one in given.words if one.by != "harness"]
    told += [Said(text) for text in texts(after)]
    found = narration.review(told)
    return found.calls, found.calls - len(found.holes)


def _made(call: Call, result: ev.Result | None) -> ToolCall:
    raw = json.dumps(call.arguments or {}, ensure_ascii=False).encode("utf-8", "surrogatepass")
    text = result.text if result else None
    return ToolCall(call.name, raw, text, bool(result and result.is_error), 0, call.address)


def replayed(history: Sequence[Given | Answer]) -> Coverage:
    """The coverage of a history, as it was counted while it grew."""
    coverage = Coverage()
    for one in history:
        if isinstance(one, Answer):
            coverage.hear(one)
        else:
            coverage.give(one)
    return coverage
