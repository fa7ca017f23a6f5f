"""`cutline hook`: what a client's hooks call that take no address. Law: never fails, prints JSON or nothing."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import click

from ..errors import CutlineError

_LATEST = 20  # documents that are looked at
_WAITS_S = 4


@click.command("hook", hidden=True)
@click.argument("name", type=click.Choice(["compacted", "full", "ask"]))
@click.option("--since", default="", help="With “full”: when the copy was resumed, as the session file writes times.")
@click.option("--for", "wanted", default="", help="With “ask”: which of the proxy's hooks.")
def command(name: str, since: str, wanted: str) -> None:
    """Answer a client's hook, whose payload stands on standard input."""
    if name == "ask":
        _ask(wanted)
        return
    path = os.environ.get("CUTLINE_RECORD", "")
    try:
        payload = json.load(sys.stdin)
        session, place = str(payload.get("session_id") or ""), str(payload.get("cwd") or ".")
    except (ValueError, AttributeError, RecursionError):
        return
    if name == "full":
        if payload.get("trigger") == "auto" and not _asked_since(str(payload.get("transcript_path") or ""), since):
            why = "Cutline: the count is of the history before the cut; the next answer brings the new one"
            click.echo(json.dumps({"decision": "block", "reason": why}))
        return
    address = _last_document(path, session, Path(place)) if path else ""
    if address:
        text = (
            f"Cutline: before this summary you wrote a checkpoint; its document is at the address {address}. "
            "recall brings it back as you wrote it, and any earlier result too."
        )
        told = {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": text}}
        click.echo(json.dumps(told))


def _ask(wanted: str) -> None:
    """Have the run's proxy answer, for a client whose hooks are commands; nothing where no run is there."""
    from http.client import HTTPConnection
    from urllib.parse import urlsplit

    try:
        address = (Path(os.environ["CUTLINE_RUN"]) / "address").read_text(encoding="utf-8")
        to = urlsplit(f"{address}/cutline/hook/{wanted}")
        asking = HTTPConnection(str(to.hostname), to.port, timeout=_WAITS_S)
        asking.request("POST", to.path, sys.stdin.buffer.read(), {"Content-Type": "application/json"})
        told = asking.getresponse().read()
    except (KeyError, OSError, ValueError):
        return
    click.echo(told)


def _asked_since(transcript: str, since: str) -> bool:
    """Whether an answer came from then on, with the cut history's usage; true where that can't be told."""
    try:
        with Path(transcript).open("rb") as lines:
            for line in lines:
                if b'"usage"' in line and b'"assistant"' in line:
                    record = json.loads(line)
                    if record.get("type") == "assistant" and str(record.get("timestamp") or "") >= since:
                        return True
    except (OSError, ValueError, AttributeError, RecursionError):
        return True
    return False


def _last_document(path: str, session: str, directory: Path) -> str:
    """The address of the session's last document; "" where there is none."""
    from ..project import project
    from ..record import Record

    try:
        with Record(path, readonly=True) as held:
            found = held.last_document(session)
            if found is not None:
                return found.address
            # Behind a /clear the tools still bear the first session's id: only the call says whose document it is.
            for document in held.documents(project(directory))[:_LATEST]:
                if document.address and any(call.session == session for call in held.calls(None, document.address)):
                    return document.address
    except CutlineError:
        return ""
    return ""
