"""`cutline recall`: a removed result, exactly as it was, by its address or by words.

Law: reads the session's own file (the original keeps everything; a cut copy names no other). `--raw` writes the
result's text and nothing else.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from .. import events
from ..errors import InputError
from ..narration import target
from ..sessions.claude_code import open_session, sessions
from ..wire import anthropic as wire
from . import paint
from .inputs import Body, load
from .options import json_option

_ADDRESS = re.compile(r"[0-9a-f]{16}\Z")


@click.command("recall")
@click.argument("words", nargs=-1, required=True, metavar="ADDRESS|WORDS…")
@click.option("-s", "--session", "what", metavar="SESSION|BODY", help="Look in this one only.")
@click.option("--raw", is_flag=True, help="Print the result's text alone, byte for byte.")
@json_option
def command(words: tuple[str, ...], what: str | None, raw: bool, as_json: bool) -> None:
    """Bring back a call with its result, from this directory's sessions (the newest first) or the given one."""
    address = words[0] if len(words) == 1 and _ADDRESS.match(words[0]) else None
    for name, found in _histories(what):
        if address:
            hits = [item for item in found if item.call.address == address]
        else:
            hits = [item for item in found if _matches(item, words)]
        if not hits:
            continue
        if address:
            _print_one(name, hits, raw, as_json)
        else:
            _print_list(name, hits, as_json)
        return
    wanted = words[0] if address else " ".join(words)
    where = f"in {what}" if what else "in this directory's sessions"
    raise InputError(
        f"nothing {'at the address' if address else 'with the words'} “{wanted}” {where}; try --session SESSION"
    )


def _histories(what: str | None) -> Iterator[tuple[str, list[events.Found]]]:
    """The given history, or this directory's sessions, each read when those before it held nothing."""
    if what is not None:
        source = load(what)
        name, body = (source.name, source.data) if isinstance(source, Body) else (source.id, source.history.body)
        yield name, events.calls(wire.read(body))
        return
    for file in sessions(Path.cwd()):
        try:
            session = open_session(file.path)
            found = events.calls(wire.read(session.history.body))
        except InputError:
            continue
        yield session.id, found


def _matches(item: events.Found, words: tuple[str, ...]) -> bool:
    text = (item.call.arguments.decode("utf-8", "replace") + "\n" + (item.call.result or "")).lower()
    return all(word.lower() in text for word in words)


def _print_one(name: str, hits: list[events.Found], raw: bool, as_json: bool) -> None:
    call = hits[-1].call
    result = call.result if call.result is not None else ""
    if raw:
        sys.stdout.buffer.write(result.encode("utf-8", "surrogatepass"))
        return
    if as_json:
        paint.echo_json(
            {
                "session": name,
                "address": call.address,
                "tool": call.name,
                "arguments": call.arguments.decode("utf-8", "replace"),
                "result": call.result,
                "error": call.error,
                "messages": [item.message for item in hits],
            }
        )
        return
    out = paint.console()
    out.print(f"{call.address}  {call.name}  {paint.short(target(call.name, call.arguments), 90)}", style="bold")
    places = ", ".join(str(item.message) for item in hits)
    state = (
        "never answered"
        if call.result is None
        else ("an error" if call.error else f"{len(result.encode('utf-8', 'replace')):,} bytes")
    )
    out.print(f"session {name[:8]}, message {places}; {state}", style=paint.FAINT)
    out.print()
    sys.stdout.flush()
    sys.stdout.buffer.write(result.encode("utf-8", "replace") + b"\n")


def _print_list(name: str, hits: list[events.Found], as_json: bool) -> None:
    if as_json:
        paint.echo_json(
            [
                {"session": name, "address": h.call.address, "tool": h.call.name, "message": h.message,
                 "target": target(h.call.name, h.call.arguments)}
                for h in hits
            ]
        )  # fmt: skip
        return
    out = paint.console()
    made = paint.table("address", "message", "tool", "target", left=(0, 2, 3))
    for item in hits[-30:]:
        made.add_row(
            item.call.address,
            str(item.message),
            paint.short(item.call.name, 24),
            paint.short(target(item.call.name, item.call.arguments), 80),
        )
    out.print(made)
    more = f"the last 30 of {len(hits):,}; " if len(hits) > 30 else ""
    out.print(f"{more}session {name[:8]}. Bring one back: cutline recall ADDRESS", style=paint.FAINT)
