"""`cutline card`: the last days on one picture.

Law: writes the one file that it names. The picture is an SVG; a PNG of it is taken by a Chromium where there is one.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from ..errors import CutlineError, InputError
from ..sessions.model import Request
from . import paint
from .cost import progress
from .options import json_option

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@click.command("card")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=Path("cutline-card.svg"),
    show_default=True,
    help="An .svg, or a .png (by a Chromium on PATH).",
)
@click.option("--days", type=click.IntRange(1, 3650), default=30, show_default=True, help="How far back.")
@click.option("--here", is_flag=True, help="Only this directory's sessions.")
@json_option
def command(output: Path, days: int, here: bool, as_json: bool) -> None:
    """Draw who filled what was sent in the last days, and what cuts saved or would have saved."""
    from ..view import card
    from ..view.gather import Gathered
    from ..view.replay import Replay, replay
    from ..view.spending import time_of
    from ..view.timeline import read

    if output.suffix not in (".svg", ".png"):
        raise InputError(f"{output}: give a name that ends in .svg or .png")
    found = Gathered((datetime.now(UTC) - timedelta(days=days)).timestamp(), Path.cwd() if here else None)

    seen: set[str] = set()

    def counts(made: Request) -> bool:
        """Within these days, and not told before by a copy of the session."""
        at = time_of(made.timestamp)
        again = bool(made.message_id) and made.message_id in seen
        seen.add(made.message_id)
        return not again and (at is None or at.timestamp() >= found.since)

    def replays() -> Iterator[Replay]:
        with progress("reading sessions") as told:
            for session in found.sessions(told):
                try:
                    yield replay(read(session), counts)
                except CutlineError:
                    found.unread += 1

    month = card.month(days, replays(), None if here else _saved_really(found.since))
    if as_json:
        paint.echo_json(
            {
                "days": days,
                "sessions": month.sessions,
                "requests": month.requests,
                "input_tokens": month.whole,
                "by": {name: tokens for name, _, tokens in month.shares()},
                "usd": month.usd,
                "sessions_without_price": month.unpriced,
                "cuts": month.cuts,
                "tokens_saved": month.tokens,
                "usd_saved": month.saved,
                "calls_asked_again": month.again,
                "calls_behind_cuts": month.behind,
                "bytes_really_saved": month.real,
                "unread_sessions": found.unread,
            }
        )
        return
    if not month.requests:
        raise InputError(f"no request of the last {days} days is counted anywhere; cutline ls --all lists the sessions")
    picture = card.svg(month)
    try:
        if output.suffix == ".svg":
            output.write_text(picture, encoding="utf-8")
        else:
            _png(picture, output, card.WIDTH, card.HEIGHT)
    except OSError as error:
        raise InputError(f"{output}: can't be written ({(error.strerror or str(error)).lower()})") from None
    out = paint.console()
    out.print(f"{output}: {month.sessions:,} sessions, {month.requests:,} requests, {month.whole:,} input tokens.")
    for name, _, tokens in month.shares():
        out.print(f"  {paint.percent(tokens, month.whole):>7} {name}")
    if month.cuts:
        out.print(
            f"Cut at the {month.cuts:,} human turns where it paid, by what was known then: {month.tokens:,} tokens "
            f"({paint.percent(month.tokens, month.whole)}) and {paint.usd(month.saved)} less, notices and work redone "
            f"not counted; {month.again:,} of {month.behind:,} calls behind such a cut asked again for what had left."
        )


def _png(picture: str, output: Path, width: int, height: int) -> None:
    found = next((path for name in _BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        raise InputError(f"{output}: a PNG needs Chromium on PATH; name the file .svg instead")
    with tempfile.TemporaryDirectory() as folder:
        page, taken = Path(folder) / "card.html", Path(folder) / "card.png"
        page.write_text(f"<!doctype html><meta charset=utf-8><style>body{{margin:0}}</style>{picture}", "utf-8")
        command_ = [found, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        command_ += [f"--user-data-dir={folder}/profile", f"--window-size={width},{height}", f"--screenshot={taken}"]
        try:
            subprocess.run([*command_, page.as_uri()], capture_output=True, timeout=60, check=False)
            data = taken.read_bytes()
        except (subprocess.TimeoutExpired, FileNotFoundError):
            raise InputError(f"{output}: Chromium took no picture; name the file .svg instead") from None
    output.write_bytes(data)


def _saved_really(since: float) -> int | None:
    """Bytes that cuts on the wire saved since then, by the record."""
    from .. import record
    from .held import opened

    path = record.default_path()
    if not path.exists():
        return None
    with opened(path) as held:
        rows = [row for row in held.sessions() if row.last >= since]
        ids = {row.session for row in rows}
        made = (one for id_ in ids for one in held.requests(id_))
        return sum(max(0, one.size - one.sent) for one in made if one.at >= since and one.seam)
