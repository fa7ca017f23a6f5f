"""What `cutline show --advise` prints: when to cut this session and when not, with the arithmetic.

Law: rendering only; every figure comes from `view.advice`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from math import ceil, inf
from typing import Any

from rich.console import Console

from ..sessions.model import Session
from ..view import timeline
from ..view.advice import Advice, advise
from ..view.gather import beside
from ..view.replay import Cutting, Replay, added, replay
from . import paint

_OTHERS = 5  # sessions of the same directory that are gone through, too


def show(out: Console, session: Session, as_json: bool) -> None:
    """Print the advice for a session."""
    others = [replay(timeline.read(one)) for one in beside(session, _OTHERS)]
    told = advise(timeline.read(session), others)
    if as_json:
        paint.echo_json(_json(told))
        return
    _now(out, told)
    _places(out, told)
    _history(out, told)


def _now(out: Console, told: Advice) -> None:
    wanted = told.now
    if wanted is None:
        out.print(f"\nNothing to cut: {told.why}.", style="bold")
        return
    paid, likely = wanted.payback, max(wanted.likely, 1)
    verdict = "Cut it" if wanted.pays else "Don't cut it now"
    out.print(f"\n{verdict}: it {_pays(paid.turns)}, and {likely:,} more requests are likely.", style="bold")
    w, r, survives, deleted = paid.w, paid.r, paid.survives, paid.deleted
    out.print(
        f"  Warm cache: written anew (w - r) x S = ({w:g} - {r:g}) x {survives:,} = {max(0.0, w - r) * survives:,.0f} "
        f"token prices, once;\n              no longer read r x D = {r:g} x {deleted:,} = {r * deleted:,.0f} on each "
        f"request: {_pays(told.warm_turns)}."
    )
    out.print(
        f"  Cold cache: both would be written anew, so leaving D out costs nothing and saves {w:g} x {deleted:,} once."
    )
    if told.cold_from is not None:
        is_cold = told.cold_from <= datetime.now(told.cold_from.tzinfo)
        out.print(
            f"  The cache is cold since {told.cold_from:%Y-%m-%d %H:%M}: a good moment."
            if is_cold
            else f"  The cache is warm until {told.cold_from:%H:%M}; after a pause until then a cut is free.",
            style=paint.FAINT,
        )
    net = paid.net(likely)
    if net is not None:
        out.print(f"  In money, over {likely:,} requests: {paint.usd(net)} (list prices of {told.model}).")
    out.print(
        "  Not while what a result says is still being worked with and stands in no words: recall is one call for each."
    )


def _pays(turns: float) -> str:
    if turns == inf:
        return "never pays"
    return "pays at once" if not turns else f"has paid after {max(1, ceil(turns)):,} request{'s' if turns > 1 else ''}"


def _places(out: Console, told: Advice) -> None:
    if not told.choices:
        return
    made = paint.table("before", "", "S", "D", "pays, warm cache", "calls lost", "without words", left=(0, 1))
    for one in told.choices:
        made.add_row(
            f"message {one.message}",
            one.what,
            *(f"{number:,}" for number in (one.survives, one.deleted)),
            "never" if one.turns == inf else f"after {max(1, ceil(one.turns)):,}",
            *(f"{number:,}" for number in (one.calls, one.holes)),
        )
    out.print("\nWhere a cut could be made now (tokens; S is written anew once, D is not sent again):\n")
    out.print(made)


def _history(out: Console, told: Advice) -> None:
    found = told.replay
    if not found.requests:
        return
    _replayed(out, "this session", "its human turns", [found])
    if told.others:
        number = len(told.others)
        which = "the other session" if number == 1 else f"the {number} latest other sessions"
        _replayed(out, f"{which} of its directory", "their human turns", told.others)
    out.print(
        "Asked again: calls behind the first cut that ask for what a call before it had brought. They were made "
        "without any cut; what a cut makes an agent fetch anew comes on top, and cutline bench measures that.",
        style=paint.FAINT,
    )


def _replayed(out: Console, what: str, turns: str, found: Sequence[Replay]) -> None:
    whole = sum(sum(one.sent.values()) for one in found)
    requests = sum(one.requests for one in found)
    out.print(f"\nHad {what} been cut at {turns} ({requests:,} requests, gone through again):\n")
    made = paint.table("", "cuts", "tokens less", "", "money", "asked again", left=(0,))
    made.add_row("where it paid by then", *_row(added([one.paying for one in found]), whole))
    made.add_row("at every one", *_row(added([one.every for one in found]), whole))
    out.print(made)


def _row(way: Cutting, whole: int) -> list[str]:
    again = f"{way.again:,} of {way.behind:,}"
    return [f"{way.cuts:,}", f"{way.tokens:,}", paint.percent(way.tokens, whole), paint.usd(way.usd), again]


def _json(told: Advice) -> dict[str, Any]:
    def finite(turns: float) -> float | None:
        return None if turns == inf else turns

    def way(one: Cutting) -> dict[str, Any]:
        names = ("cuts", "tokens", "usd", "again", "behind")
        return {name: getattr(one, name) for name in names}

    wanted = told.now
    return {
        "cut": bool(wanted and wanted.pays),
        "why_not": told.why,
        "now": wanted
        and {
            "S": wanted.payback.survives,
            "D": wanted.payback.deleted,
            "w": wanted.payback.w,
            "r": wanted.payback.r,
            "cold": wanted.payback.cold,
            "pays_after_requests": finite(wanted.payback.turns),
            "pays_after_requests_warm": finite(told.warm_turns),
            "likely_requests": wanted.likely,
            "usd": wanted.payback.net(max(wanted.likely, 1)),
        },
        "cold_from": told.cold_from.isoformat() if told.cold_from else None,
        "places": [
            {
                "message": one.message,
                "what": one.what,
                "S": one.survives,
                "D": one.deleted,
                "pays_after_requests_warm": finite(one.turns),
                "calls": one.calls,
                "holes": one.holes,
            }
            for one in told.choices
        ],
        "replay": {
            "requests": told.replay.requests,
            "sent": told.replay.sent,
            "where_it_paid": way(told.replay.paying),
            "at_every_human_turn": way(told.replay.every),
        },
        "others": {
            "sessions": len(told.others),
            "where_it_paid": way(added([one.paying for one in told.others])),
            "at_every_human_turn": way(added([one.every for one in told.others])),
        },
    }
