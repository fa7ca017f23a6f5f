"""`cutline hook`: what a client's hooks call that take no address. Law: never fails, prints JSON or nothing."""

from __future__ import annotations

import json
import os
import sys

import click

from ..errors import CutlineError


@click.command("hook", hidden=True)
@click.argument("name", type=click.Choice(["compacted"]))
def command(name: str) -> None:
    """Answer a client's hook, whose payload stands on standard input."""
    del name  # there is one
    path = os.environ.get("CUTLINE_RECORD", "")
    try:
        payload = json.load(sys.stdin)
        session = str(payload.get("session_id") or "")
    except (ValueError, AttributeError):
        return
    address = _last_document(path, session) if path else ""
    if address:
        text = (
            f"Cutline: before this summary you wrote a checkpoint; its document is at the address {address}. "
            "recall brings it back as you wrote it, and any earlier result too."
        )
        told = {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": text}}
        click.echo(json.dumps(told))


def _last_document(path: str, session: str) -> str:
    from ..record import Record

    try:
        with Record(path, readonly=True) as held:
            found = held.last_document(session)
    except CutlineError:
        return ""
    return found.address if found else ""
