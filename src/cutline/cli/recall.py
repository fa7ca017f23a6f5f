"""`cutline recall`: a removed result, exactly as it was, by its address or by words.

Law: asks the record, then the session files of this directory, or the one history that is named (a cut copy names
no other: its original keeps everything). `--raw` writes the result's text and nothing else.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from .. import project, recall, record
from ..errors import InputError
from ..narration import target
from ..recall import ADDRESS, Recalled
from ..wire import anthropic as wire
from . import paint
from .inputs import Body, load
from .options import json_option

_LISTED = 30


@click.command("recall")
@click.argument("words", nargs=-1, required=True, metavar="ADDRESS|WORDS…")
@click.option("-s", "--session", "what", metavar="SESSION|BODY", help="Look in this one only.")
@click.option("--raw", is_flag=True, help="Print the result's text alone, byte for byte.")
@json_option
def command(words: tuple[str, ...], what: str | None, raw: bool, as_json: bool) -> None:
    """Bring back a call with its result: from the record, this directory's sessions, or the one that is named."""
    address = words[0] if len(words) == 1 and ADDRESS.match(words[0]) else None
    for source in _sources(what):
        if address:
            hits = source.calls(address)
            if hits:
                _print_one(hits, raw, as_json)
                return
        else:
            hits = source.search(words, 10_000 if as_json else _LISTED + 1)
            if hits:
                _print_list(hits, as_json)
                return
    wanted = words[0] if address else " ".join(words)
    where = f"in {what}" if what else "in this directory's sessions"
    raise InputError(
        f"nothing {'at the address' if address else 'with the words'} “{wanted}” {where}; try --session SESSION"
    )


class _One:
    """The history that was named."""

    def __init__(self, name: str, body: bytes) -> None:
        self._found = list(recall.of_request(wire.read(body), name))[::-1]

    def calls(self, address: str) -> list[Recalled]:
        return [hit for hit in self._found if hit.call.address == address]

    def search(self, words: Sequence[str], limit: int) -> list[Recalled]:
        return [hit for hit in self._found if recall.holds(hit.call, words)][:limit]


def _sources(what: str | None) -> Iterator[recall.Source]:
    if what is not None:
        source = load(what)
        name, body = (source.name, source.data) if isinstance(source, Body) else (source.id, source.history.body)
        yield _One(name, body)
        return
    here = Path.cwd()
    path = record.default_path()
    if path.exists():
        with record.Record(path, readonly=True) as held:
            yield recall.RecordedCalls(held, project.project(here))
    yield recall.SessionFiles(here)


def _print_one(hits: list[Recalled], raw: bool, as_json: bool) -> None:
    hit = hits[0]
    call, name = hit.call, hit.session
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
                "messages": sorted({item.message for item in hits}),
            }
        )
        return
    out = paint.console()
    out.print(f"{call.address}  {call.name}  {paint.short(target(call.name, call.arguments), 90)}", style="bold")
    places = ", ".join(str(number) for number in sorted({item.message for item in hits}))
    state = (
        "never answered"
        if call.result is None
        else ("an error" if call.error else f"{len(result.encode('utf-8', 'replace')):,} bytes")
    )
    out.print(f"session {name[:8]}, message {places}; {state}", style=paint.FAINT)
    out.print()
    sys.stdout.flush()
    sys.stdout.buffer.write(result.encode("utf-8", "replace") + b"\n")


def _print_list(hits: list[Recalled], as_json: bool) -> None:
    shown = (hits if as_json else hits[:_LISTED])[::-1]  # the newest last: it is what stands above the prompt
    if as_json:
        paint.echo_json(
            [
                {"session": hit.session, "address": hit.call.address, "tool": hit.call.name, "message": hit.message,
                 "target": target(hit.call.name, hit.call.arguments)}
                for hit in shown
            ]
        )  # fmt: skip
        return
    out = paint.console()
    made = paint.table("address", "session", "message", "tool", "target", left=(0, 1, 3, 4))
    for hit in shown:
        made.add_row(
            hit.call.address,
            hit.session[:8],
            str(hit.message),
            paint.short(hit.call.name, 24),
            paint.short(target(hit.call.name, hit.call.arguments), 80),
        )
    out.print(made)
    more = f"the newest {_LISTED}; " if len(hits) > _LISTED else ""
    out.print(f"{more}bring one back: cutline recall ADDRESS", style=paint.FAINT)
