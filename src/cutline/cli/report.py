"""The tables that several commands print: what a body is made of, before and after, and what a cut costs.

Law: rendering only; every figure comes from the library.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console

from ..cut import Cut
from ..health import Fault
from ..measure import ROWS, Kept, Shape, WireReport
from ..money import Payback, Rates
from ..narration import Narration
from . import paint

# Rows that are shown even where they are empty; the others only where there is something in them.
_ALWAYS = ("agent text", "human text", "tool calls", "tool results", "thinking")


def print_shape(out: Console, shape: Shape) -> None:
    """One body by author: blocks, bytes, share of the whole."""
    made = paint.table("", "blocks", "bytes", "share")
    for name in _rows(shape):
        row = shape.rows[name]
        made.add_row(
            paint.styled(name, paint.STYLES.get(name, "")),
            f"{row.blocks:,}" if row.blocks else "",
            f"{row.bytes:,}",
            paint.percent(row.bytes, shape.bytes),
        )
    made.add_row("whole", "", f"{shape.bytes:,}", f"{paint.tokens(shape.tokens, shape.source)} tokens", style="bold")
    out.print(made)


def print_before_after(out: Console, report: WireReport) -> None:
    """The table of a cut: what there was, what is left."""
    before, after, kept = report.before, report.after, report.kept
    assert after is not None and kept is not None
    made = paint.table("", "before", "", "after", "", "left")
    for name in [n for n in ROWS if n in _rows(before) or n in _rows(after)]:
        one, two = before.rows[name], after.rows[name]
        made.add_row(
            paint.styled(name, paint.STYLES.get(name, "")),
            f"{one.blocks:,}" if one.blocks or two.blocks else "",
            f"{one.bytes:,} B",
            f"{two.blocks:,}" if one.blocks or two.blocks else "",
            f"{two.bytes:,} B",
            paint.percent(two.bytes, one.bytes),
        )
    made.add_row(
        "whole body", "", f"{before.bytes:,} B", "", f"{after.bytes:,} B", paint.percent(after.bytes, before.bytes),
        style="bold",
    )  # fmt: skip
    made.add_row(
        "tokens",
        "",
        paint.tokens(before.tokens, before.source),
        "",
        paint.tokens(after.tokens, after.source),
        paint.percent(after.tokens, before.tokens),
        style="bold",
    )
    out.print(made)
    print_kept(out, kept, before, after)


def print_kept(out: Console, kept: Kept, before: Shape, after: Shape) -> None:
    """What became of the words, and what was added."""
    share = f"{100 * kept.share:.4g} %" if kept.missing else "100 %"
    out.print(
        f"Words of the agent and the human: {kept.bytes:,} bytes, {share} kept, byte for byte.",
        style=paint.GOOD if not kept.missing else paint.BAD,
    )
    extra = [f"{kept.notices:,} bytes of notices in results", f"{kept.joiners:,} bytes of joiners between texts"]
    if kept.blank:
        extra.append(f"{kept.blank:,} bytes of white space dropped")
    out.print(f"Added: {', '.join(extra)}.", style=paint.FAINT)
    if before.harness_bytes:
        out.print(
            f"System prompt and tool schemas, which no cut touches: {before.harness_bytes:,} bytes, "
            f"{paint.percent(before.harness_bytes, after.bytes)} of what is left.",
            style=paint.FAINT,
        )
    one, two = _source(before), _source(after)
    out.print(f"Tokens are {one}." if one == two else f"Tokens are {one} before, {two} after.", style=paint.FAINT)


def _source(shape: Shape) -> str:
    return {
        "measured": "the provider's count",
        "calibrated": "an estimate fitted to this session's usage",
        "estimated": "an estimate at 3.6 bytes each",
    }[shape.source]


def _rows(shape: Shape) -> list[str]:
    return [name for name in ROWS if shape.rows[name].bytes or name in _ALWAYS]


def print_money(out: Console, payback: Payback, rates: Rates | None, likely: int | None) -> None:
    """S, D, and when the cut pays."""
    cache = "cold" if payback.cold else "warm"
    if payback.cold:
        when = "the cut pays at once"
    elif payback.turns == float("inf"):
        when = "the cut never pays: nothing became shorter"
    else:
        when = f"the cut has paid after {max(1, _up(payback.turns)):,} request{'s' if _up(payback.turns) > 1 else ''}"
    out.print(
        f"Cost: S {payback.survives:,} tokens written anew, D {payback.deleted:,} deleted; cache {cache}, "
        f"w {payback.w:g}, r {payback.r:g}: {when}"
        + (f" (this session's rhythm: {likely:,} more)." if likely is not None and not payback.cold else ".")
    )
    if rates is not None:
        once = f"{paint.usd(payback.cost_of_cut)} once, then " if payback.cost_of_cut else ""
        at_once = f" and {paint.usd(payback.saved_at_once)} on the first" if payback.saved_at_once else ""
        out.print(
            f"In money: {once}{paint.usd(payback.saved_per_turn)} saved on each request{at_once} "
            f"({rates.model}, list prices).",
            style=paint.FAINT,
        )


def _up(turns: float) -> int:
    return int(-(-turns // 1))


def money_json(payback: Payback, rates: Rates | None, likely: int | None) -> dict[str, Any]:
    """The same for programs: tokens, factors, requests, USD."""
    return {
        "P": payback.prefix,
        "S": payback.survives,
        "D": payback.deleted,
        "w": payback.w,
        "r": payback.r,
        "cache": "cold" if payback.cold else "warm",
        "pays_after_requests": None if payback.turns == float("inf") else payback.turns,
        "likely_requests": likely,
        "usd_once": payback.cost_of_cut,
        "usd_saved_per_request": payback.saved_per_turn,
        "price": rates.source if rates else "no price known",
    }


def print_narration(out: Console, narration: Narration, hidden: int) -> None:
    """How much of the work the agent's own words carry."""
    if not narration.calls:
        return
    holes = len(narration.holes)
    out.print(
        f"Narrated: {narration.calls - holes:,} of {narration.calls:,} calls ({paint.percent(narration.coverage, 1)}); "
        f"intent stated before {narration.intent:,}, outcome after {narration.outcome:,}."
        + (f" Hidden narration: {hidden:,} empty blocks." if hidden else "")
    )


def print_faults(out: Console, faults: list[Fault], healed: Mapping[Fault, bool] | None) -> None:
    """What the provider refuses, and whether a cut heals it."""
    for fault in faults:
        where = f" at {fault.place}" if fault.place else ""
        tail = "" if healed is None else ("; a cut heals it" if healed[fault] else "; a cut does not reach it")
        out.print(f"Refused by the provider: {fault.what}{where}{tail}.", style=paint.BAD)


def removed_json(done: Cut) -> list[dict[str, Any]]:
    """Every removed block for programs."""
    return [
        {
            "kind": str(removed.kind),
            "why": removed.why,
            "tool": removed.tool,
            "address": removed.address,
            "bytes": removed.size,
            "message": removed.place.message,
            "block": removed.place.block,
        }
        for removed in done.removed
    ]
