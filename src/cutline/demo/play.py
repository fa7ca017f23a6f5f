"""The story as a scripted model tells it. Law: an answer is given only where the results before it show what its words
say of them; what the tools really gave is looked at in the request, as it came over the wire.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ..blocks import ToolCall
from ..errors import CutlineError
from ..specifics import aim, read
from .model import Answer, Asked
from .model import Call as Made
from .script import SCRIPT, Agent, Call, Human


class Play:
    """A story while it is played.

    Attributes:
        script: what the model answers, in turn.
        humans: what the human says, each when the agent has ended its turn.
        first: for each of these, the number of the answer that comes first.
        steps: calls whose results were looked at.
        tagged: calls with their results, by the script's name for them.
    """

    def __init__(self, turns: Sequence[Agent | Human] = SCRIPT) -> None:
        self._agents = [turn for turn in turns if isinstance(turn, Agent)]
        self.humans = [turn.says for turn in turns if isinstance(turn, Human)]
        said = [number for number, turn in enumerate(turns) if isinstance(turn, Human)]
        self.first = [number - behind for behind, number in enumerate(said)]
        self.script: list[Callable[[Asked], Answer]] = [partial(self._answer, n) for n in range(len(self._agents))]
        self.steps = 0
        self.tagged: dict[str, ToolCall] = {}
        self._hint = ""

    def hint(self) -> str:
        """What the human types while the latest answer's calls run; once, and "" for nothing."""
        text, self._hint = self._hint, ""
        return text

    def says(self, number: int) -> str:
        """The words of an answer."""
        return self._agents[number].says

    def _answer(self, number: int, asked: Asked) -> Answer:
        before = self._agents[number - 1] if number else None
        if before is not None and before.calls:
            self._look(before.calls, asked.results)
        agent = self._agents[number]
        self._hint = agent.hint
        calls = [
            Made(call.tool, call.arguments(asked) if callable(call.arguments) else call.arguments)
            for call in agent.calls
        ]
        return Answer(agent.says, calls, agent.thinks)

    def _look(self, made: Sequence[Call], given: Sequence[ToolCall]) -> None:
        if [call.tool for call in made] != [result.name for result in given]:
            raise CutlineError(f"the demo's agent called {_names(made)} and was answered {_names(given)}")
        for call, result in zip(made, given, strict=True):
            self.steps += 1
            text = result.result or ""
            shows = call.shows
            if call.returns:
                shows = (*shows, self.tagged[call.returns].result or "")
            what = "failed" if result.error and not call.fails else ""
            what = "did not fail" if call.fails and not result.error else what
            what = what or next((f"did not show {_short(one)}" for one in shows if one not in text), "")
            if what:
                raise CutlineError(
                    f"step {self.steps} of the demo {what}: {call.tool} {_short(aim(read(result.arguments)))} gave "
                    f"{_short(text)}; run it with a POSIX shell, awk, grep and sort in PATH"
                )
            if call.tag:
                self.tagged[call.tag] = result


def _names(calls: Sequence[Call] | Sequence[ToolCall]) -> str:
    return ", ".join(call.tool if isinstance(call, Call) else call.name for call in calls) or "nothing"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return f"“{line if len(line) <= 100 else line[:99] + '…'}”"
