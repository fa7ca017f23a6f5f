"""The card: who filled what was sent in the last days, and what cuts saved or would have saved, as one picture.

Law: pure; figures in, an SVG out. It names no project, no session and no person.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from .replay import CLIENT, Replay

WIDTH, HEIGHT = 1200, 630
_GROUND, _INK, _FAINT = "#15181d", "#e6e8ec", "#9aa3b2"
_ROWS = (
    ("tool calls, results", "#e0a458", ("call", "result")),
    ("the agent's words", "#5ac8e0", ("agent", "checkpoint")),
    ("the human's words", "#6ccf7f", ("human", "attachment")),
    ("thinking", "#7c8496", ("thinking",)),
    ("the client's own", "#4b5260", (CLIENT, "harness")),
)
"""What is shown, its colour, and the parts that it sums up."""


@dataclass(slots=True)
class Month:
    """What is on the card.

    Attributes:
        days: how many are looked back on.
        sessions, requests: how many.
        sent: input tokens by part, over all requests.
        usd: what they cost on the input side.
        unpriced: sessions without a known price.
        cuts: cuts that would have paid, each decided with what was known then.
        tokens, saved: what those would have saved, in tokens and USD.
        again, behind: of the calls behind such a cut, how many asked for what it left out.
        real: bytes that cuts on the wire really saved, by the record; None without one.
    """

    days: int
    sessions: int = 0
    requests: int = 0
    sent: dict[str, int] = field(default_factory=dict)
    usd: float = 0.0
    unpriced: int = 0
    cuts: int = 0
    tokens: int = 0
    saved: float = 0.0
    again: int = 0
    behind: int = 0
    real: int | None = None

    def add(self, told: Replay) -> None:
        """Count one session."""
        if not told.requests:
            return
        self.sessions += 1
        self.requests += told.requests
        for part, tokens in told.sent.items():
            self.sent[part] = self.sent.get(part, 0) + tokens
        self.usd += told.usd or 0.0
        self.unpriced += told.usd is None
        self.cuts += told.paying.cuts
        self.tokens += told.paying.tokens
        self.saved += told.paying.usd or 0.0
        self.again += told.paying.again
        self.behind += told.paying.behind

    @property
    def whole(self) -> int:
        """Input tokens of all requests."""
        return sum(self.sent.values())

    def shares(self) -> list[tuple[str, str, int]]:
        """Name, colour and tokens of each row."""
        return [(name, colour, sum(self.sent.get(part, 0) for part in parts)) for name, colour, parts in _ROWS]


def svg(month: Month) -> str:
    """The picture, 1,200 by 630."""
    whole = month.whole or 1
    rows = month.shares()
    world = 100 * rows[0][2] / whole
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'font-family="system-ui, DejaVu Sans, sans-serif" role="img" '
        f'aria-label="{world:.0f} % of the tokens sent were tool calls and their results">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{_GROUND}"/>',
        _text(60, 78, f"What my agents were sent, {month.days} days", 26, _FAINT),
        _text(60, 166, f"{world:.0f} % was calls and results", 72, rows[0][1], bold=True),
        _text(
            60,
            212,
            f"of {_short(whole)} input tokens in {month.requests:,} requests of {month.sessions:,} sessions"
            + (f", {_usd(month.usd)}" if month.usd else ""),
            24,
            _FAINT,
        ),
    ]
    x = 60.0
    for _, colour, tokens in rows:
        width = (WIDTH - 120) * tokens / whole
        parts.append(
            f'<rect x="{x:.1f}" y="246" width="{max(0.0, width - 2):.1f}" height="64" rx="3" fill="{colour}"/>'
        )
        x += width
    for number, (name, colour, tokens) in enumerate(rows):
        left, top = 60 + number % 3 * 370, 350 + number // 3 * 44
        parts.append(f'<rect x="{left}" y="{top - 17}" width="18" height="18" rx="3" fill="{colour}"/>')
        parts.append(_text(left + 30, top, f"{100 * tokens / whole:.1f} % {name}", 24, _INK))
    parts += [
        '<path d="M60 440H1140" stroke="#333a45" stroke-dasharray="8 6" stroke-width="2"/>',
        _text(60, 500, _saved(month), 30, _INK, bold=True),
        _text(60, 540, _how(month), 22, _FAINT),
        _text(60, 588, "cutline: the calls leave, every word stays", 22, "#5ac8e0"),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _saved(month: Month) -> str:
    if not month.cuts:
        return "No cut would have paid."
    share = 100 * month.tokens / (month.whole or 1)
    money = f", {_usd(month.saved)}" if month.saved > 0 else ""
    return (
        f"Cut where it pays: {share:.0f} % less sent{money} saved"
        if money
        else f"Cut where it pays: {share:.0f} % less"
    )


def _how(month: Month) -> str:
    told = f"{month.cuts:,} cuts at human turns, each decided by what was known then; list prices, input side"
    if month.real:
        told += f". Cuts on the wire really saved {month.real / 1e6:,.1f} MB"
    return told


def _text(x: int, y: int, text: str, size: int, colour: str, *, bold: bool = False) -> str:
    weight = ' font-weight="700"' if bold else ""
    safe = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return f'<text x="{x}" y="{y}" font-size="{size}" fill="{colour}"{weight}>{safe}</text>'


def _short(number: int) -> str:
    for unit, size in (("billion", 1e9), ("million", 1e6), ("thousand", 1e3)):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return str(number)


def _usd(amount: float) -> str:
    return f"${amount:,.0f}" if amount >= 100 else f"${amount:,.2f}"


def month(days: int, told: Iterable[Replay], real: int | None = None) -> Month:
    """The figures of several sessions."""
    found = Month(days, real=real)
    for one in told:
        found.add(one)
    return found
