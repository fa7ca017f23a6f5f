"""`cutline recall`: a removed result, exactly as it was, by its address or by words; and what was said.

Law: asks the record, then the session files of this directory, or the one history that is named (a cut copy names
no other: its original keeps everything). `--raw` writes the result's text and nothing else. What is recorded is data:
on a terminal its control characters are shown, not obeyed.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from .. import project, recall, record
from ..errors import InputError, Unreadable
from ..measure import request_of
from ..narration import target
from ..recall import ADDRESS, Recalled, when
from ..record import Document, Said
from ..sessions.model import Session
from ..specifics import value_of
from . import paint, rerun
from .held import opened
from .inputs import Body, load
from .options import json_option

_LISTED, _ALL = 30, 10_000
_NEAR_S = 6 * 3600.0  # a stamp so near to a call says what was checked out then
_ARGUMENT = 2_000  # characters of an argument that are shown
_AGO = re.compile(r"(\d+)\s*(min|h|d|w)\Z")
_UNITS = {"min": "minutes", "h": "hours", "d": "days", "w": "weeks"}


class _Since(click.ParamType):  # type: ignore[type-arg]
    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        ago = _AGO.match(value.strip().lower())
        try:
            if ago:
                return (datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})).timestamp()
            return datetime.fromisoformat(value.strip()).timestamp()
        except (ValueError, OverflowError, OSError):
            self.fail(f"“{paint.short(value, 40)}” is no time: give 30min, 3h, 2d, 1w, or 2026-11-30", param, ctx)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is looked for: by words, tool, author and time."""

    words: tuple[str, ...]
    tool: str
    author: str
    since: float

    @property
    def said(self) -> bool:
        return self.author in ("agent", "human")


@click.command("recall")
@click.argument("words", nargs=-1, metavar="ADDRESS|WORDS…")
@click.option("-s", "--session", "what", metavar="SESSION|BODY", help="Look in this one only.")
@click.option("--tool", default="", metavar="NAME", help="Only calls of this tool.")
@click.option(
    "--author",
    type=click.Choice(["agent", "human", "world"]),
    default="world",
    show_default=True,
    help="Whose words: what the agent or the human said, or what the world returned.",
)
@click.option("--since", type=_Since(), help="No older than 30min, 3h, 2d, 1w or a date.")
@click.option("--everywhere", is_flag=True, help="In every project, not only in this one.")
@click.option("--raw", is_flag=True, help="Print the result's text alone, byte for byte.")
@click.option("--rerun", "again", is_flag=True, help="Run the shell command again and show what differs.")
@click.option("--yes", is_flag=True, help="Run it without asking.")
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    words: tuple[str, ...],
    what: str | None,
    tool: str,
    author: str,
    since: float | None,
    everywhere: bool,
    raw: bool,
    again: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Bring back a call with its result: from the record, this directory's sessions, or the one that is named."""
    wanted = _Wanted(words, tool, author, since or 0.0)
    address = words[0] if len(words) == 1 and ADDRESS.match(words[0]) and not wanted.said else None
    if not (words or tool or wanted.said or since):
        raise click.UsageError("give an address, or words; or --tool, --author agent, --since 2d")
    if tool and wanted.said:
        raise click.UsageError("--tool goes with what the world returned; leave --author out")
    if (raw or again) and not address:
        raise click.UsageError(f"{'--raw' if raw else '--rerun'} needs one address")
    if yes and not again:
        raise click.UsageError("--yes goes with --rerun")
    for source in _sources(what, everywhere):
        if address:
            hits = source.calls(address)
            if hits and again:
                ctx.exit(_rerun(hits[0], yes, as_json))
            if hits:
                _print_one(hits, raw, as_json)
                return
        elif _print_found(source, wanted, as_json):
            return
    raise InputError(_nothing(wanted, address, what, everywhere))


def _nothing(wanted: _Wanted, address: str | None, what: str | None, everywhere: bool) -> str:
    told = paint.short(address or " ".join(wanted.words), 80)
    found = f"nothing {'at the address' if address else 'with the words'} “{told}”" if told else "nothing of that"
    where = f"in {what}" if what else "in any project" if everywhere else "in this directory's sessions"
    if what:
        return f"{found} {where}"
    more = "what was deleted is gone for good" if address else "--author agent and --author human search what was said"
    return f"{found} {where}; try --session SESSION{'' if everywhere else ' or --everywhere'}; {more}"


class _One:
    """The history that was named."""

    def __init__(self, name: str, body: bytes, found: list[Recalled]) -> None:
        self._name, self._body, self._found = name, body, found[::-1]

    def calls(self, address: str) -> list[Recalled]:
        return [hit for hit in self._found if hit.call.address == address]

    def search(self, words: Sequence[str], limit: int, *, tool: str = "", since: float = 0.0) -> list[Recalled]:
        return recall.chosen(self._found, words, tool, since)[:limit]

    def said(self, words: Sequence[str], limit: int, *, author: str = "", since: float = 0.0) -> list[Said]:
        return recall.said_in(self._body, words, author, since)[:limit]


class _OneSession(_One):
    """The session file that was named."""

    def __init__(self, session: Session) -> None:
        super().__init__(session.id, session.history.body, list(recall.of_session(session)))
        self._session = session

    def said(self, words: Sequence[str], limit: int, *, author: str = "", since: float = 0.0) -> list[Said]:
        return recall.said_in(self._body, words, author, since, self._session)[:limit]


def _of(source: Session | Body) -> _One:
    if isinstance(source, Body):
        request = request_of(source.data)[0]
        return _One(source.name, request.body, list(recall.of_request(request, source.name)))
    return _OneSession(source)


def _sources(what: str | None, everywhere: bool) -> Iterator[recall.Source]:
    here = Path.cwd()
    path = record.default_path()
    if what is not None:
        try:
            source = load(what)
        except InputError:
            # A session whose file is gone may still be recorded.
            with _opened(path) as held:
                name = held and next((row.session for row in held.sessions() if row.session.startswith(what)), None)
                if not held or not name:
                    raise
                yield recall.RecordedCalls(held, None, name)
            return
        try:
            yield _of(source)
        except Unreadable as error:
            raise InputError(f"{what}: {error}; give another session or body") from None
        return
    with _opened(path) as held:
        if held:
            yield recall.RecordedCalls(held, None if everywhere else project.project(here))
    yield recall.SessionFiles(None if everywhere else here)


def _opened(path: Path) -> AbstractContextManager[record.Record | None]:
    """The record where there is one, open while it is needed; else None."""
    return opened(path) if path.exists() else nullcontext()


# ------------------------------------------------------------------------------------------------------ one call


def _print_one(hits: list[Recalled], raw: bool, as_json: bool) -> None:
    hit = hits[0]
    call, name = hit.call, hit.session
    result = call.result if call.result is not None else ""
    if raw:
        sys.stdout.buffer.write(result.encode("utf-8", "surrogatepass"))
        return
    code, stamp = rerun.exit_code(hit), _stamp(hit)
    places = sorted({item.message for item in hits})
    if as_json:
        paint.echo_json(
            {
                "session": name,
                "address": call.address,
                "tool": call.name,
                "arguments": call.arguments.decode("utf-8", "replace"),
                "result": call.result,
                "error": call.error,
                "messages": places,
                "at": paint.iso(hit.at),
                "directory": hit.project or None,
                "exit_code": code,
                "git": stamp,
            }
        )
        return
    out = paint.console()
    out.print(f"{call.address}  {call.name}  {paint.short(target(call.name, call.arguments), 90)}", style="bold")
    size = f"{len(result.encode('utf-8', 'replace')):,} bytes"
    state = "never answered" if call.result is None else f"an error, {size}" if call.error else size
    if code is not None:
        state += f", exit code {code}"
    told = [f"session {_brief(name)}, message {', '.join(map(str, places))}", when(hit.at), state]
    out.print("; ".join(part for part in told if part), style=paint.FAINT)
    if hit.project:
        out.print(f"in {_visible(hit.project)}{_checked_out(hit, stamp)}", style=paint.FAINT)
    for key, text in _arguments(call.arguments):
        out.print(f"  {key}  {text}")
    out.print()
    sys.stdout.flush()
    shown = _visible(result) if sys.stdout.isatty() else result
    sys.stdout.buffer.write(shown.encode("utf-8", "replace") + b"\n")


def _stamp(hit: Recalled) -> dict[str, Any] | None:
    """What was checked out around a call, by the checkpoint of its session that is nearest in time."""
    path = record.default_path()
    if hit.at is None or not hit.session or not path.exists():
        return None
    with record.Record(path, readonly=True) as held:
        documents = [one for one in held.documents() if one.session == hit.session]
    near: Document | None = min(documents, key=lambda one: abs(one.at - (hit.at or 0.0)), default=None)
    if near is None or abs(near.at - hit.at) > _NEAR_S:
        return None
    stamp = value_of(near.stamp.encode("utf-8", "replace"))
    if not isinstance(stamp, dict) or not stamp.get("head"):
        return None
    return {"head": stamp["head"], "branch": stamp.get("branch", ""), "stamped": paint.iso(near.at)}


def _checked_out(hit: Recalled, stamp: dict[str, Any] | None) -> str:
    if stamp is None or hit.at is None:
        return ""
    apart = datetime.fromisoformat(stamp["stamped"]).timestamp() - hit.at
    minutes = round(abs(apart) / 60)
    moment = "then" if not minutes else f"{minutes} min {'later' if apart > 0 else 'before'}"
    return f"; git {_visible(stamp['branch']) or 'detached'} at {_visible(str(stamp['head']))}, stamped {moment}"


def _arguments(raw: bytes) -> list[tuple[str, str]]:
    """Each argument on a line of its own, names aligned, further lines of a value indented."""
    held = value_of(raw)
    if not isinstance(held, dict):
        return [("arguments", _visible(paint.short(raw.decode("utf-8", "replace"), _ARGUMENT)))] if held else []
    width = max((len(key) for key in held), default=0)
    lines = []
    for key, value in held.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        cut = f"\n… {len(text) - _ARGUMENT:,} characters more (--json has all)" if len(text) > _ARGUMENT else ""
        shown = _visible(text[:_ARGUMENT] + cut).replace("\n", "\n" + " " * (width + 4))
        lines.append((_visible(key).ljust(width), shown))
    return lines


def _visible(text: str) -> str:
    """A text whose control characters, and others that steer a terminal, are shown by their escapes."""
    return "".join(c if c.isprintable() or c in "\n\t" else _escape(ord(c)) for c in text)


def _escape(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


# ------------------------------------------------------------------------------------------------------- run again


def _rerun(hit: Recalled, yes: bool, as_json: bool) -> int:
    wanted = rerun.command(hit)
    if not yes:
        if not sys.stdin.isatty():
            raise InputError("running a recorded command needs consent: a terminal to ask on, or --yes")
        out = paint.console(err=True)
        out.print(f"{hit.call.address}  {hit.call.name}  {when(hit.at)}".rstrip(), style="bold")
        out.print(_visible(wanted.text).replace("\n", "\n    "), style=paint.WORLD)
        out.print(f"in {_visible(str(wanted.directory))}, in this environment", style=paint.FAINT)
        click.confirm("Run it?", abort=True, err=True)
    outcome = rerun.run(hit, wanted)
    if as_json:
        paint.echo_json({"address": hit.call.address, "directory": str(wanted.directory), **rerun.as_json(outcome)})
        return 0 if outcome.same else 1
    out = paint.console()
    for line in outcome.difference[2:]:
        style = {"+": paint.GOOD, "-": paint.BAD, "@": paint.FAINT}.get(line[:1], "")
        out.print(_visible(line), style=style)
    codes = "" if outcome.recorded in (None, outcome.code) else f"; it was {outcome.recorded}"
    told = "the same as recorded" if outcome.same else "not what was recorded"
    out.print(f"{told}: exit code {outcome.code}{codes}", style=paint.GOOD if outcome.same else paint.BAD)
    if outcome.shortened:
        out.print("the client had shortened the recorded result: a part of it can't be compared", style=paint.FAINT)
    return 0 if outcome.same else 1


# ---------------------------------------------------------------------------------------------------------- lists


def _print_found(source: recall.Source, wanted: _Wanted, as_json: bool) -> bool:
    limit = _ALL if as_json else _LISTED + 1
    if wanted.said:
        texts = source.said(wanted.words, limit, author=wanted.author, since=wanted.since)
        if texts:
            _print_texts(texts, wanted, as_json)
        return bool(texts)
    hits = source.search(wanted.words, limit, tool=wanted.tool, since=wanted.since)
    if hits:
        _print_list(hits, as_json)
    return bool(hits)


def _print_list(hits: list[Recalled], as_json: bool) -> None:
    shown = (hits if as_json else hits[:_LISTED])[::-1]  # the newest last: it is what stands above the prompt
    if as_json:
        paint.echo_json(
            [
                {"session": hit.session, "address": hit.call.address, "tool": hit.call.name, "message": hit.message,
                 "target": target(hit.call.name, hit.call.arguments), "at": paint.iso(hit.at),
                 "project": hit.project or None}
                for hit in shown
            ]
        )  # fmt: skip
        return
    out = paint.console()
    made = paint.table("address", "session", "message", "seen", "tool", "target", left=(0, 1, 4, 5))
    # The target gives way, never the address: it is what one types next.
    room = max(16, min(72, out.width - 82))
    for hit in shown:
        made.add_row(
            hit.call.address,
            _brief(hit.session),
            str(hit.message),
            paint.since(hit.at),
            paint.short(hit.call.name, 24),
            _aimed(target(hit.call.name, hit.call.arguments), room),
        )
    out.print(made)
    out.print(f"{_more(hits)}bring one back: cutline recall ADDRESS", style=paint.FAINT)


def _print_texts(texts: list[Said], wanted: _Wanted, as_json: bool) -> None:
    shown = (texts if as_json else texts[:_LISTED])[::-1]
    if as_json:
        paint.echo_json(
            [
                {"session": one.session, "author": one.author, "text": one.text, "message": one.message,
                 "block": one.block, "at": paint.iso(one.at or None), "project": one.project or None}
                for one in shown
            ]
        )  # fmt: skip
        return
    out = paint.console()
    made = paint.table("session", "message", "said", wanted.author, left=(0, 3))
    for one in shown:
        made.add_row(_brief(one.session), str(one.message), paint.since(one.at), _around(one.text, wanted.words))
    out.print(made)
    out.print(f"{_more(texts)}whole texts: --json", style=paint.FAINT)


def _around(text: str, words: Sequence[str], width: int = 96) -> str:
    """The part of a text in which the first of the words stands, on one line."""
    line = paint.short(text, len(text) + 1)
    at = min((found for word in words if (found := line.lower().find(word.lower())) >= 0), default=0)
    start = max(0, at - width // 3) if len(line) > width else 0
    return ("…" if start else "") + paint.short(line[start:], width)


def _aimed(text: str, width: int) -> str:
    """A target on one line; of a long path the end, which names the file."""
    line = paint.short(text, len(text) + 1)
    return (
        f"…{line[1 - width :]}" if "/" in line and " " not in line and len(line) > width else paint.short(line, width)
    )


def _brief(session: str) -> str:
    return paint.short(session, 200)[:8]


def _more(hits: Sequence[object]) -> str:
    return f"the newest {_LISTED}; " if len(hits) > _LISTED else ""
