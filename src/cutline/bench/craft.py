"""Measure 2, the other half: commands that were reached by trying, and whether their exact text is still in context.

Law: pure. What counts as reached by trying is what a checkpoint counts as craft at risk (`risks`): versions of one
command of which one failed and a later one worked.
"""

from __future__ import annotations

from collections.abc import Sequence

from .. import events, risks
from ..specifics import value_of
from ..wire.anthropic import Request
from .strategies import Context


def survival(request: Request, kept: Sequence[tuple[int, dict[str, Context]]]) -> dict[str, tuple[int, int]]:
    """For each strategy, how many iterated commands stand in a context word for word, and of how many, over all seams.

    Args:
        request: the history.
        kept: for each seam, the first message behind it and the contexts.
    """
    made = events.calls(request)
    found: dict[str, tuple[int, int]] = {}
    for at, contexts in kept:
        versions = risks.tries([one.call for one in made if one.message < at])
        commands = {_command(each[-1].arguments) for each in versions} - {""}
        for name, context in contexts.items():
            held = sum(map(context.holds, commands))
            before, all_ = found.get(name, (0, 0))
            found[name] = before + held, all_ + len(commands)
    return found


def _command(arguments: bytes) -> str:
    value = value_of(arguments)
    command = value.get("command", value.get("cmd")) if isinstance(value, dict) else None
    return command if isinstance(command, str) else ""
