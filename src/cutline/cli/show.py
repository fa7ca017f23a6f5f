"""`cutline show`: what a session or a body is made of, how much of it was narrated, what it cost, what ails it.

Law: shows, writes nothing.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Any

import click
from rich.console import Console

from .. import claims, events, health, measure, money, narration
from .. import cut as cut_body
from ..errors import CutlineError, InputError, Unreadable
from ..measure import Shape, request_of, shape
from ..sessions.clients import client
from ..sessions.cutting import figures, prospect
from ..sessions.model import Session
from ..wire import anthropic as wire
from . import paint, report
from .inputs import Body, load
from .options import json_option


@click.command("show")
@click.argument("what", required=False, metavar="[SESSION|BODY|-]")
@click.option("--holes", is_flag=True, help="List the calls that the agent's words don't carry.")
@click.option("--claims", "list_claims", is_flag=True, help="List what its checkpoints claim, with basis and doubts.")
@click.option("--advise", is_flag=True, help="When to cut this session and when not, with the arithmetic.")
@json_option
def command(what: str | None, holes: bool, list_claims: bool, advise: bool, as_json: bool) -> None:
    """Show a session (default: the latest of this directory) or a body by author; narration, cost, faults."""
    source = load(what)
    if advise:
        _advise(source, as_json)
        return
    body = source.data if isinstance(source, Body) else source.history.body
    try:
        request, native = request_of(body)
    except Unreadable as error:
        name = source.name if isinstance(source, Body) else str(source.path)
        raise InputError(f"{name}: {error}; show reads request bodies and sessions") from None
    told = measure(body).before if isinstance(source, Body) else shape_of(source, request)
    narrated = events.review(request)
    hidden = events.hidden(request)
    stretches = events.by_stretch(request, narrated)
    stated = claims.stated(request)
    ails = _faults(source, request) if native is None else {}  # the limits that are known are Anthropic's
    if as_json:
        paint.echo_json(
            {
                **_name(source),
                **told.as_json(),
                **({} if isinstance(source, Body) else {"sealed": source.sealed, "damage": list(source.damage)}),
                "narration": {
                    "calls": narrated.calls,
                    "intent": narrated.intent,
                    "outcome": narrated.outcome,
                    "holes": len(narrated.holes),
                    "coverage": narrated.coverage,
                    "hidden": hidden,
                    "by_tool": {name: {"calls": made, "holes": left} for name, (made, left) in _most(narrated)},
                    "by_stretch": [asdict(stretch) for stretch in stretches],
                },
                "claims": {**claims.by_basis(stated), "stated": [asdict(claim) for claim in stated]},
                "cost": None if isinstance(source, Body) else _cost_json(source),
                "faults": [
                    {"what": fault.what, "place": str(fault.place), "healed": healed} for fault, healed in ails.items()
                ],
            }
        )
        return
    out = paint.console()
    if not isinstance(source, Body):
        heading(out, source)
        _print_state(out, source)
    report.print_shape(out, told)
    out.print()
    report.print_narration(out, narrated, hidden)
    if stated:
        _print_claims(out, stated, each=list_claims)
    if not isinstance(source, Body):
        _print_cost(out, source)
    report.print_faults(out, list(ails), ails)
    if holes:
        ours = [item for item in events.calls(request) if not narration.is_own(item.call.name)]
        _print_holes(out, [ours[number] for number in narrated.holes])
        _print_where(out, narrated, stretches)
    elif narrated.holes:
        out.print("The calls that left no words behind: cutline show --holes", style=paint.FAINT)


def _advise(source: Body | Session, as_json: bool) -> None:
    from . import advice  # it goes through the session's requests again: most shows don't

    if isinstance(source, Body):
        raise InputError(f"{source.name}: a body has no requests to reckon with; --advise is for sessions")
    out = paint.console()
    if not as_json:
        heading(out, source)
    advice.show(out, source, as_json)


def _name(source: Body | Session) -> dict[str, str]:
    if isinstance(source, Body):
        return {"body": source.name}
    return {"session": source.id, "path": str(source.path), "title": source.title}


def heading(out: Console, session: Session) -> None:
    """Two lines that say which session this is."""
    history = session.history
    facts = [
        f"{client(session.client).LABEL} {session.version}".strip(),
        session.id[:8],
        session.git_branch,
        history.model,
        f"{len(history.places):,} messages",
        f"{len(history.human):,} of them typed",
        paint.ago(_when(session.last)),
    ]
    out.print(paint.short(session.title or session.id, 100), style="bold")
    out.print("  ·  ".join(fact for fact in facts if fact), style=paint.FAINT)
    if history.compacted:
        out.print("Its client compacted it: what stands before the summary is not in its context.", style=paint.WORLD)


def _print_state(out: Console, session: Session) -> None:
    """Why it can't be cut, where it can't, and what could not be read of it."""
    if session.sealed:
        out.print(f"{session.sealed[:1].upper()}{session.sealed[1:]}.", style=paint.WORLD)
    for told in session.damage:
        out.print(told, style=paint.WORLD)


def shape_of(session: Session, request: wire.Request | None = None) -> Shape:
    """The shape of a session's history, in tokens by its own usage."""
    request = request or wire.read(session.history.body)
    told = figures(session.history, request)
    return shape(request, told.calibration, told.tokens)


def _when(stamp: str) -> datetime | None:
    try:
        return datetime.fromisoformat(stamp)
    except ValueError:
        return None


def _faults(source: Body | Session, request: wire.Request) -> dict[health.Fault, bool]:
    found = health.faults(request)
    if not found:
        return {}
    if not isinstance(source, Body):
        try:
            return prospect(source).faults
        except CutlineError:  # nothing to cut: then a cut heals nothing
            return dict.fromkeys(found, False)
    done = cut_body(source.data)
    gone = set(done.plan.drop) if done.plan else set()
    return {fault: fault.place is not None and tuple(fault.place) in gone for fault in found}


def _cost(session: Session) -> tuple[float, money.Usage, bool]:
    total, complete = 0.0, True
    sums = [0, 0, 0, 0, 0]
    for made in session.history.requests:
        usage = made.usage
        for number, part in enumerate(
            (usage.input, usage.cache_read, usage.cache_write_5m, usage.cache_write_1h, usage.output)
        ):
            sums[number] += part
        prices = money.rates(made.model, prompt=usage.total_input)
        if prices is None:
            complete = False
        else:
            total += money.cost(usage, prices)
    return total, money.Usage(*sums), complete


def _cost_json(session: Session) -> dict[str, Any]:
    total, usage, complete = _cost(session)
    return {
        "usd": total,
        "complete": complete,
        "requests": len(session.history.requests),
        "input": usage.input,
        "cache_read": usage.cache_read,
        "cache_write": usage.cache_write_5m + usage.cache_write_1h,
        "output": usage.output,
    }


def _print_cost(out: Console, session: Session) -> None:
    total, usage, complete = _cost(session)
    if not session.history.requests:
        return
    out.print(
        f"Cost of these {len(session.history.requests):,} requests: {paint.usd(total)}"
        + ("" if complete else " (some models have no known price)")
        + f"; {usage.cache_read:,} tokens read from the cache, "
        f"{usage.cache_write_5m + usage.cache_write_1h:,} written, "
        f"{usage.input:,} uncached, {usage.output:,} of output. List prices."
    )


def _most(narrated: narration.Narration) -> list[tuple[str, tuple[int, int]]]:
    """Calls and holes by tool, the most holes first."""
    return sorted(narrated.by_tool.items(), key=lambda told: (-told[1][1], -told[1][0], told[0]))


def _print_where(out: Console, narrated: narration.Narration, stretches: list[events.Stretch]) -> None:
    """Holes by tool and, where there are checkpoints, by stretch."""
    tools = paint.table("tool", "calls", "holes", "narrated", left=(0,))
    for name, (made, holes) in _most(narrated):
        tools.add_row(paint.short(name, 40), f"{made:,}", f"{holes:,}", paint.percent(made - holes, made))
    out.print()
    out.print(tools)
    if len(stretches) < 2:
        return
    parts = paint.table("stretch", "from message", "calls", "holes", "narrated")
    for number, one in enumerate(stretches, 1):
        narrates = paint.percent(one.calls - one.holes, one.calls)
        parts.add_row(f"{number:,}", f"{one.message:,}", f"{one.calls:,}", f"{one.holes:,}", narrates)
    out.print()
    out.print(parts)


def _print_claims(out: Console, stated: list[claims.Claim], *, each: bool) -> None:
    """How many claims of the checkpoint documents have which basis; and, where it is asked for, each of them."""
    count = claims.by_basis(stated)
    doubted = sum(bool(one.doubt) for one in stated)
    out.print(
        f"Claims in checkpoint documents: {count['measured']:,} measured, {count['inferred']:,} inferred"
        + (f", {count['unmarked']:,} unmarked" if count["unmarked"] else "")
        + (f"; {doubted:,} of the measured ones not shown by the record." if doubted else ".")
        + ("" if each else " Each of them: cutline show --claims")
    )
    if not each:
        return
    made = paint.table("message", "basis", "claim", "evidence", "the record says", left=(1, 2, 3, 4))
    for one in stated:
        words = (paint.short(one.claim, 60), paint.short(one.evidence, 40))
        told = (
            paint.styled(paint.short(one.doubt, 60), paint.BAD)
            if one.doubt
            else ("shown" if one.basis == "measured" else "")
        )
        made.add_row(str(one.message), one.basis, *words, told)
    out.print(made)


def _print_holes(out: Console, items: list[events.Found]) -> None:
    made = paint.table("address", "message", "tool", "target", "bytes", left=(0, 2, 3))
    for item in items:
        target = narration.target(item.call.name, item.call.arguments)
        made.add_row(
            item.call.address,
            str(item.message),
            paint.short(item.call.name, 24),
            paint.short(target, 70),
            f"{len((item.call.result or '').encode('utf-8', 'replace')):,}",
        )
    out.print()
    out.print(made)
    out.print("Bring one back: cutline recall ADDRESS", style=paint.FAINT)
