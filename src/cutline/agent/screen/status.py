"""The status line: figures that fit into a width. Law: pure; what matters least goes first where there is no room."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .. import events as ev
    from ..fullness import Fullness


@dataclass(frozen=True, slots=True)
class Figures:
    """What a status line says.

    Attributes:
        model: "provider:name".
        status: the loop's figures; None before the session is open.
        queued: hints that wait.
        full: how full the context was before the last request; None before the first.
        word: what the agent does, in a word or two.
    """

    model: str
    status: ev.Status | None
    queued: int
    full: Fullness | None
    word: str


def parts(figures: Figures) -> list[tuple[int, str, str]]:
    """(what is dropped first has the higher number, text, a shorter one), in the order of the line."""
    model = figures.model.partition(":")[2] or figures.model
    found = [(0, figures.word, figures.word.partition(":")[0]), (4, model, model)]
    status = figures.status
    if status is not None:
        of = f"{_short(status.prompt)}/{_short(status.window)}" if status.window else _short(status.prompt)
        share = f" {100 * status.prompt / status.window:.0f} %" if status.window else ""
        found.append((1, f"{of} tokens{share}", of))
        if status.usd is not None:
            usd = f"${status.usd:.2f}" if status.usd >= 0.1 or not status.usd else f"${status.usd:.4f}"
            found.append((3, usd, usd))
        if status.calls:
            told = f"{status.narrated}/{status.calls}"
            found.append((2, f"narrated {told}", f"{told} told"))
        if status.checkpoints:
            found.append((6, f"{status.checkpoints} checkpoint{'' if status.checkpoints == 1 else 's'}", ""))
    if figures.queued:
        hints = f"{figures.queued} hint{'' if figures.queued == 1 else 's'}"
        found.append((1, f"{hints} queued", hints))
    return found + _pays(figures.full)


def line(figures: Figures, width: int) -> str:
    """The line, at most `width` characters."""
    found = parts(figures)
    text = " · ".join(long for _, long, _ in found)
    if len(text) <= width:
        return text
    left = [(rank, short) for rank, _, short in found if short]
    while len(text := " · ".join(short for _, short in left)) > width and len(left) > 1:
        worst = max(rank for rank, _ in left)
        left.remove(next(one for one in reversed(left) if one[0] == worst))
    return text[:width]


def _pays(full: Fullness | None) -> list[tuple[int, str, str]]:
    if full is None:
        return []
    if full.level == "pays":
        return [(1, f"/checkpoint would pay: -{_short(full.deleted)}", f"/checkpoint -{_short(full.deleted)}")]
    if full.level:
        return [(1, "checkpoint wanted", "checkpoint wanted")]
    if full.deleted >= 1_000 and full.turns < 1_000:
        requests = max(1, round(full.turns))
        return [(5, f"/checkpoint pays in {requests} request{'' if requests == 1 else 's'}", "")]
    return []


def _short(number: int) -> str:
    """Tokens for a line: 940, 12.4k, 200k, 1M."""
    if number < 1_000:
        return str(number)
    if number < 1_000_000:
        return f"{number / 1_000:.1f}".removesuffix(".0") + "k" if number < 100_000 else f"{number // 1_000}k"
    return f"{number / 1_000_000:.1f}".removesuffix(".0") + "M"
