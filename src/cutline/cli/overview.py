"""Bare `cutline`: this directory's latest session, what a cut would leave of it, and the next command.

Law: shows, writes nothing.
"""

from __future__ import annotations

from pathlib import Path

from ..errors import InputError, NothingToCut
from ..sessions.clients import resolve
from ..sessions.cutting import Prospect, prospect
from ..sessions.model import Session
from . import paint, report
from .cut import print_prospect, where
from .show import heading, shape_of


def overview(as_json: bool) -> None:
    """Print the overview of the latest session."""
    out = paint.console()
    try:
        session = resolve(None, Path.cwd())
    except InputError as error:
        if as_json:
            raise
        out.print(f"{str(error)[:1].upper()}{str(error)[1:]}.")
        out.print("\nTo see what Cutline does, without a key and without a network:  cutline demo")
        out.print("All sessions of this machine:  cutline ls --all")
        return
    found, nothing = _try(session)
    if as_json:
        paint.echo_json(_json(session, found, nothing))
        return
    heading(out, session)
    if found is None:
        report.print_shape(out, shape_of(session))
        out.print(f"\nNothing to cut: {session.sealed or nothing}.")
        return
    out.print(f"\nWhat a cut {where(found)} would leave:\n")
    print_prospect(out, found)
    if session.sealed:
        out.print(f"\n{session.sealed[:1].upper()}{session.sealed[1:]}.", style="bold")
    elif found.pays:
        out.print("\nNext:  cutline cut      a copy beside it, proven; then  cutline resume", style="bold")
    else:
        out.print(
            "\nA cut would not pay back within this session's rhythm:  cutline cut --force  does it anyway.",
            style="bold",
        )
    out.print("       cutline show     its narration, its holes, its faults", style=paint.FAINT)


def _try(session: Session) -> tuple[Prospect | None, str]:
    try:
        return prospect(session), ""
    except NothingToCut as error:
        return None, str(error).partition(": ")[2] or str(error)


def _json(session: Session, found: Prospect | None, nothing: str) -> dict[str, object]:
    base: dict[str, object] = {"session": session.id, "path": str(session.path), "title": session.title}
    if found is None:
        return {**base, "cut": None, "reason": nothing}
    return {
        **base,
        "at": found.at,
        "chosen": found.chosen,
        **found.report.as_json(),
        "money": report.money_json(found.payback, found.rates, found.likely),
        "pays": found.pays,
    }
