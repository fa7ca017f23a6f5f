"""What a cut at a place would leave, cost and lose: a session's prospect, as the page asks for it.

Law: the figures are those that `cutline cut --dry-run --at` prints; nothing is estimated a second way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .. import narration
from ..blocks import Kind
from ..errors import InputError, NothingToCut
from ..repeats import asked
from ..seam import At
from ..sessions.cutting import Prospect, prospect
from ..wire import anthropic as wire
from .timeline import Timeline


def cut_at(timeline: Timeline, at: At | None) -> dict[str, Any]:
    """A cut before a message, or where `cutline cut` cuts (None), for the page.

    Returns:
        The figures; where nothing is left to remove, ``{"reason": …}``.
    """
    try:
        with narration.remembering(timeline.verdicts):
            wanted = prospect(timeline.session, at=at)
        return told(timeline, wanted)
    except (NothingToCut, InputError) as error:
        return {"at": at, "reason": str(error).partition(": ")[2] or str(error)}


def told(timeline: Timeline, wanted: Prospect) -> dict[str, Any]:
    """A prospect as the page shows it."""
    plan, report, payback = wanted.done.plan, wanted.report, wanted.payback
    assert plan is not None and report.after is not None and report.kept is not None
    gone = sorted(timeline.index(*key) for key in plan.drop)
    calls = [index for index in gone if timeline.entries[index].part == "call"]
    seam = wanted.done.seam.message if wanted.done.seam else wanted.at or 0
    again, weight = asked_again(timeline, gone, seam)
    endless = payback.turns == float("inf")
    return {
        "at": wanted.at,
        "chosen": wanted.chosen,
        "seam": seam,
        "gone": ranges(gone),
        "added": sorted(timeline.index(*key) for key in plan.add),
        "notice": plan.last_notice or "\n\n".join(one.text for adds in plan.add.values() for one in adds),
        "rows": {
            name: [row.blocks, row.bytes, report.after.rows[name].blocks, report.after.rows[name].bytes]
            for name, row in report.before.rows.items()
            if row.bytes or report.after.rows[name].bytes
        },
        "tokens": [report.before.tokens, report.after.tokens, report.before.source, report.after.source],
        "bytes": [report.before.bytes, report.after.bytes],
        "words": [report.kept.bytes, report.kept.missing],
        "money": {
            "S": payback.survives,
            "D": payback.deleted,
            "w": payback.w,
            "r": payback.r,
            "cold": payback.cold,
            "turns": None if endless else payback.turns,
            "likely": wanted.likely,
            "once": payback.cost_of_cut,
            "each": payback.saved_per_turn,
            "net": payback.net(max(wanted.likely, 1)),
            "pays": wanted.pays,
            "each_token": wanted.rates.input / 1_000_000 if wanted.rates else None,
            "model": wanted.rates.model if wanted.rates else "",
        },
        "lost": {
            "calls": len(calls),
            "holes": len(timeline.holes.intersection(calls)),
            "thinking": sum(timeline.entries[index].part == "thinking" for index in gone),
            "again": again,
            "again_tokens": weight,
        },
        "healed": [fault.what for fault, heals in wanted.faults.items() if heals],
    }


def asked_again(timeline: Timeline, gone: Sequence[int], seam: int) -> tuple[int, int]:
    """Calls behind a place that asked again for what leaves there: how many, and the tokens of their results."""
    left = set(gone)
    before: set[tuple[str, object, bytes]] = set()
    count = weight = 0
    for found in timeline.calls:
        if found.result is None or timeline.request.messages[found.message].blocks[found.block].kind is not Kind.CALL:
            continue
        one = asked(found.call.arguments)
        key = (found.call.name, one.path, one.rest)
        index = timeline.index(found.message, found.block)
        if found.message < seam:
            if index in left:
                before.add(key)
        elif key in before and not wire.is_say(found.call.name):
            count += 1
            weight += timeline.entries[timeline.index(*found.result)].tokens
    return count, weight


def ranges(indices: Iterable[int]) -> list[list[int]]:
    """Sorted indices as half-open runs."""
    runs: list[list[int]] = []
    for index in indices:
        if runs and runs[-1][1] == index:
            runs[-1][1] = index + 1
        else:
            runs.append([index, index + 1])
    return runs
