"""Figures of many sessions: means over sessions of the means over their seams, and how far they may be off.

Law: pure, and the same to the digit from run to run: intervals come from resampling sessions with a fixed seed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..claims import BASES
from .carried import CATEGORIES
from .lineup import KINDS as KINDS_OF_OTHERS
from .lineup import LATER, NO_WORSE, STRANGERS, TOLD_APART
from .lineups import FOREIGN
from .pieces import CARRIERS
from .statements import KINDS, SEAMS
from .strategies import FULL, HOLES, NAMES, NONE

Result = dict[str, Any]
MORE = "micro-handoff's is more by"
_RESAMPLED, _SEED = 2_000, 20_261_202
_OFTEN = 20
WHICH: dict[str, Callable[[Result, dict[str, Any]], bool]] = {
    "all": lambda result, seam: True,
    "design": lambda result, seam: not result["held"],
    "held out": lambda result, seam: bool(result["held"]),
    "compactions": lambda result, seam: seam["cause"] == "compaction",
    "natural": lambda result, seam: seam["cause"] != "compaction",
}
"""The sets of seams that are told apart."""


def summarise(results: Sequence[Result]) -> dict[str, Any]:
    """Everything that a table, a page or a program shows of a run."""
    return {
        "sessions": sum(1 for result in results if _scored(result)),
        "seams": sum(len(_scored(result)) for result in results),
        "carried": {which: carried(results, which) for which in WHICH},
        "lineup": {which: lineup(results, which) for which in ("all", "design", "held out")},
        "statements": statements(results),
        "craft": craft(results),
        "cost": cost(results),
        "narration": narration(results),
    }


def _scored(result: Result) -> list[dict[str, Any]]:
    return [seam for seam in result["seams"] if "strategies" in seam]


def carried(results: Sequence[Result], which: str) -> dict[str, Any]:
    """Measure 1 for each strategy, over the seams of one set."""
    found: dict[str, Any] = {}
    for name in NAMES:
        rows: list[dict[str, float]] = []
        seams = 0
        categories: dict[str, list[int]] = {}
        for result in results:
            here = [seam for seam in _scored(result) if name in seam["strategies"] and WHICH[which](result, seam)]
            per_byte = result["calibration"][0]
            cells = [_cell(seam, seam["strategies"][name], per_byte) for seam in here]
            seams += len(cells)
            if cells:
                rows.append(
                    {key: _mean(cell[key] for cell in cells if key in cell) for key in sorted(set().union(*cells))}
                )
            for seam in here:
                for kind, number in seam["categories"].items():
                    kept = seam["strategies"][name]["categories"].get(kind, 0)
                    before = categories.setdefault(kind, [0, 0])
                    categories[kind] = [before[0] + kept, before[1] + number]
        if rows:
            found[name] = {
                "sessions": len(rows),
                "seams": seams,
                **{key: _figure(rows, key) for key in sorted({key for row in rows for key in row})},
                "categories": {kind: categories[kind] for kind in CATEGORIES if kind in categories},
            }
    return found


def _cell(seam: dict[str, Any], score: dict[str, Any], per_byte: float) -> dict[str, float]:
    strategies = seam["strategies"]
    tokens = score["size"] * per_byte
    cell = {
        "specifics": score["specifics"] / seam["used"],
        "tokens": tokens,
        "of full": score["size"] / max(1, strategies[FULL]["size"]),
        "of deleted": (score["size"] - strategies[NONE]["size"]) / max(1, seam["deleted"]),
        "yield": 1000 * score["specifics"] / max(1.0, tokens),
    }
    if seam["pairs"]:
        cell["pairs"] = score["pairs"] / seam["pairs"]
    if seam["unread"]:
        cell["unread"] = score["unread"] / seam["unread"]
    for carrier in CARRIERS:
        if carrier in score["carriers"]:
            cell[f"by {carrier}"] = score["carriers"][carrier] / seam["used"]
    return cell


def _mean(values: Iterable[float]) -> float:
    held = list(values)
    return sum(held) / len(held) if held else 0.0


def _figure(rows: Sequence[dict[str, float]], key: str) -> Any:
    # A carrier that carries nothing at a session's seams has no figure there, and counts as nothing.
    held = [row.get(key, 0.0) for row in rows] if key.startswith("by ") else [row[key] for row in rows if key in row]
    if key in ("specifics", "pairs", "unread"):
        low, high = interval(held)
        return [round(_mean(held), 4), round(low, 4), round(high, 4)]
    return round(_mean(held), 4)


def interval(values: Sequence[float]) -> tuple[float, float]:
    """A bootstrap interval of 95 % of the mean, over sessions."""
    if len(values) < 2:
        return (values[0], values[0]) if values else (0.0, 0.0)
    drawn = random.Random(_SEED)
    means = sorted(_mean(drawn.choices(values, k=len(values))) for _ in range(_RESAMPLED))
    return means[int(0.025 * _RESAMPLED)], means[int(0.975 * _RESAMPLED) - 1]


def lineup(results: Sequence[Result], which: str) -> dict[str, Any]:
    """Measure 3: how often the true text comes first, and the mean of one over its rank; by chance 0.1 and 0.293.

    Beside each mean stands how much more it is under the micro-handoff, session by session.
    """
    found: dict[str, Any] = {}
    for kind in KINDS_OF_OTHERS:
        told = [
            [seam["lineup"][kind] for seam in _scored(result) if kind in seam["lineup"] and WHICH[which](result, seam)]
            for result in results
        ]
        found[kind] = {}
        for name in {name: None for seams in told for seam in seams for name in seam}:
            held = [[(seam[name], seam[HOLES]) for seam in seams if name in seam] for seams in told]
            held = [seams for seams in held if seams]
            first = [_mean(_mean(float(rank == 1) for rank in one) for one, _ in seams) for seams in held]
            inverse = [_mean(map(_inverse, (one for one, _ in seams))) for seams in held]
            more = [_mean(_inverse(ours) - _inverse(one) for one, ours in seams) for seams in held]
            found[kind][name] = {
                "sessions": len(held),
                "seams": sum(map(len, held)),
                "texts": sum(len(one) for seams in held for one, _ in seams),
                "top-1": round(_mean(first), 4),
                "mrr": [round(figure, 4) for figure in (_mean(inverse), *interval(inverse))],
                MORE: [round(figure, 4) for figure in (_mean(more), *interval(more))],
            }
    return {**found, "reached": reached(found)}


def _inverse(ranks: Sequence[int]) -> float:
    return _mean(1 / rank for rank in ranks)


def reached(found: dict[str, Any]) -> dict[str, bool]:
    """Whether the line-up's thresholds are met; those that can't be asked for are left out."""
    out = {}
    for kind in (LATER, STRANGERS):
        cells = found[kind]
        if HOLES in cells and kind == STRANGERS:
            out[f"{kind}: told apart"] = cells[HOLES]["mrr"][0] >= TOLD_APART
        if FOREIGN in cells:
            out[f"{kind}: better than under another agent's context"] = cells[FOREIGN][MORE][1] > 0
        if FULL in cells and kind == LATER:
            out[f"{kind}: no worse than under everything"] = cells[FULL][MORE][0] >= -NO_WORSE
    return out


def statements(results: Sequence[Result]) -> dict[str, Any]:
    """Measure 2: by strategy, kind and seams crossed, how many are in context and of how many.

    Where any session has labels, only sessions with labels count.
    """
    found: dict[str, Any] = {}
    judged = [result for result in results if result["survival"]["statements"]["labelled"]]
    for result in judged or results:
        for strategy, kinds in result["survival"]["statements"]["kept"].items():
            for kind, crossed in kinds.items():
                for number, (kept, all_) in crossed.items():
                    cells = found.setdefault(strategy, {}).setdefault(kind, {})
                    before = cells.get(number, [0, 0])
                    cells[number] = [before[0] + kept, before[1] + all_]
    return {
        strategy: {
            kind: dict(sorted(kinds[kind].items(), key=lambda cell: int(cell[0]))) for kind in KINDS if kind in kinds
        }
        for strategy, kinds in found.items()
    }


def _in_order(cells: dict[str, Any]) -> dict[str, Any]:
    return {str(number): cells[str(number)] for number in SEAMS if str(number) in cells}


def craft(results: Sequence[Result]) -> dict[str, list[int]]:
    """Iterated commands in context word for word, and of how many, over all seams."""
    found: dict[str, list[int]] = {}
    for result in results:
        for name, (kept, all_) in result["survival"]["craft"].items():
            before = found.get(name, [0, 0])
            found[name] = [before[0] + kept, before[1] + all_]
    return found


def cost(results: Sequence[Result]) -> dict[str, Any]:
    """Measure 5: the rest of each session from its first seam on; and what would have to be fetched again, by seam."""
    found: dict[str, Any] = {"sessions": 0, "requests": 0, "priced": 0, "again": 0, "again_tokens": 0, "strategies": {}}
    for result in results:
        rest = next((seam["cost"] for seam in _scored(result) if seam["cost"]), None)
        if rest is not None:
            found["sessions"] += 1
            for key in ("requests", "again", "again_tokens"):
                found[key] += rest[key]
            found["priced"] += rest["priced"]
            for name, told in rest["strategies"].items():
                cell = found["strategies"].setdefault(name, {"tokens": 0, "usd": 0.0})
                cell["tokens"] += told["tokens"]
                cell["usd"] += told["usd"] or 0.0
    missing: dict[str, list[dict[str, float]]] = {}
    for result in results:
        for seam in _scored(result):
            for name, told in seam["missing"].items():
                missing.setdefault(name, []).append(
                    {"results": told["results"], "tokens": told["bytes"] * result["calibration"][0]}
                )
    for name, rows in missing.items():
        cell = found["strategies"].setdefault(name, {})
        cell["refetched"] = round(_mean(row["results"] for row in rows), 2)
        cell["refetched_tokens"] = round(_mean(row["tokens"] for row in rows))
    return found


def narration(results: Sequence[Result]) -> dict[str, Any]:
    """Calls and holes over all sessions, by tool (of twenty calls and more) and by stretch; claims by basis."""
    told = [result["narration"] for result in results]
    tools: dict[str, list[int]] = {}
    for one in told:
        for name, (calls, holes) in one["tools"].items():
            before = tools.get(name, [0, 0])
            tools[name] = [before[0] + calls, before[1] + holes]
    stretches = [(calls, holes) for one in told for _, calls, holes in one["stretches"]]
    shares = sorted((calls - holes) / calls for calls, holes in stretches)
    often = [(name, cell) for name, cell in tools.items() if cell[0] >= _OFTEN]
    return {
        **{key: sum(one[key] for one in told) for key in ("calls", "intent", "outcome", "holes")},
        "tools": dict(sorted(often, key=lambda told: (-told[1][0], told[0]))),
        "stretches": {
            "all": len(shares),
            "nothing narrated": shares.count(0.0),
            "median": round(shares[len(shares) // 2], 4) if shares else None,
            "most": round(shares[-1], 4) if shares else None,
        },
        "claims": {basis: sum(one["claims"][basis] for one in told) for basis in BASES},
    }
