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


def parts(figures: Figures) -> list[tuple[int, str]]:
    """(what is dropped first has the higher number, text), in the order of the line."""
    found = [(0, figures.word), (3, figures.model.partition(":")[2] or figures.model)]
    status = figures.status
    if status is not None:
        window = f"/{_short(status.window)}" if status.window else ""
        share = f" {100 * status.prompt / status.window:.0f} %" if status.window else ""
        found.append((1, f"{_short(status.prompt)}{window} tokens{share}"))
        if status.usd is not None:
            found.append((2, f"${status.usd:.2f}" if status.usd >= 0.1 or not status.usd else f"${status.usd:.4f}"))
        if status.calls:
            found.append((2, f"narrated {status.narrated}/{status.calls}"))
        if status.checkpoints:
            found.append((5, f"{status.checkpoints} checkpoint{'' if status.checkpoints == 1 else 's'}"))
    if figures.queued:
        found.append((1, f"{figures.queued} hint{'' if figures.queued == 1 else 's'} queued"))
    if pays := _pays(figures.full):
        found.append(pays)
    return found


def line(figures: Figures, width: int) -> str:
    """The line, at most `width` characters."""
    found = parts(figures)
    while len(text := " · ".join(part for _, part in found)) > width and len(found) > 1:
        worst = max(rank for rank, _ in found)
        found.remove(next(one for one in reversed(found) if one[0] == worst))
    return text[:width]


def _pays(full: Fullness | None) -> tuple[int, str] | None:
    if full is None:
        return None
    if full.level == "pays":
        return 1, f"/checkpoint would pay: -{_short(full.deleted)}"
    if full.level:
        return 1, "checkpoint wanted"
    if full.deleted >= 1_000 and full.turns < 1_000:
        return 4, f"/checkpoint pays in {max(1, round(full.turns))} requests"
    return None


def _short(number: int) -> str:
    """Tokens for a line: 940, 12.4k, 200k, 1M."""
    if number < 1_000:
        return str(number)
    if number < 1_000_000:
        return f"{number / 1_000:.1f}".removesuffix(".0") + "k" if number < 100_000 else f"{number // 1_000}k"
    return f"{number / 1_000_000:.1f}".removesuffix(".0") + "M"
