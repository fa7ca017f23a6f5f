"""How the command line looks: numbers, tables, a restrained palette.

Law: quiet and aligned; a pipe gets the same words without colours and without wrapping; NO_COLOR is honoured.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

AGENT, HUMAN, WORLD, FAINT, GOOD, BAD = "cyan", "green", "yellow", "bright_black", "green", "red"
STYLES = {
    "agent text": AGENT,
    "human text": HUMAN,
    "tool calls": WORLD,
    "tool results": WORLD,
    "thinking": FAINT,
    "harness text": FAINT,
    "system prompt": FAINT,
    "tool schemas": FAINT,
    "structure": FAINT,
}


def console(*, err: bool = False) -> Console:
    """A console for standard output or error; a pipe is as wide as its lines."""
    stream = sys.stderr if err else sys.stdout
    return Console(
        file=stream, highlight=False, soft_wrap=True, emoji=False, markup=False, width=None if stream.isatty() else 160
    )


def table(*columns: str, left: Sequence[int] = (0,)) -> Table:
    """A table without lines: headings faint, numbers to the right except in the `left` columns."""
    made = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style=FAINT, show_header=any(columns))
    for number, name in enumerate(columns):
        made.add_column(name, justify="left" if number in left else "right", no_wrap=True)
    return made


def size(number: int) -> str:
    """Bytes for people: 640 B, 12.4 KB, 1.28 MB."""
    if number < 1_000:
        return f"{number} B"
    if number < 1_000_000:
        return f"{number / 1_000:.1f} KB"
    return f"{number / 1_000_000:.2f} MB"


def count(number: int, noun: str) -> str:
    """How many of something: 1 call, 2,345 calls."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def tokens(number: int, source: str) -> str:
    """Tokens with a mark of where they come from: exact figures plain, others with ~."""
    return f"{number:,}" if source == "measured" else f"~{_rounded(number):,}"


def _rounded(number: int) -> int:
    digits = max(0, len(str(abs(number))) - 3)
    return int(round(number, -digits))


def percent(part: float, whole: float) -> str:
    """A share, one decimal."""
    return f"{100 * part / whole:.1f} %" if whole else "–"


def usd(amount: float | None) -> str:
    """Money: cents where there are some, more digits below."""
    if amount is None:
        return "–"
    return f"${amount:,.2f}" if abs(amount) >= 0.095 or not amount else f"${amount:.4f}"


def ago(then: datetime | None, now: datetime | None = None) -> str:
    """How long ago, in one unit."""
    if then is None:
        return "–"
    seconds = ((now or datetime.now(UTC)) - then).total_seconds()
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{int(seconds // length)} {unit} ago"
    return "just now"


def since(at: float | None) -> str:
    """How long ago a time was, in seconds since 1970; "–" where there is none."""
    return ago(datetime.fromtimestamp(at, UTC)) if at else "–"


def iso(at: float | None) -> str | None:
    """A time in seconds since 1970, for programs; None where there is none."""
    return None if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


def short(text: str, width: int) -> str:
    """One line of at most `width` characters, control characters as spaces."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= width else line[: width - 1] + "…"


def styled(text: str, style: str = "") -> Text:
    """A text with one style."""
    return Text(text, style=style)


def echo_json(value: Any) -> None:
    """One JSON document on standard output; lone surrogates are escaped as JSON allows."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=True) + "\n")
