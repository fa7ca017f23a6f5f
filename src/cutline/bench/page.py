"""The page of a run: how much is carried for how many tokens, each strategy's figures, and each session's seams.

Law: one file that needs nothing else and no script; every text in it is escaped. The plot needs matplotlib, which the
extra `bench` brings; without it the page says so and has the table.
"""

from __future__ import annotations

import html
import io
from collections.abc import Iterable, Sequence
from typing import Any

from .lineup import KINDS
from .strategies import HOLES, LINES, NAMES, SMALL, TOLD, WORDS_AND_LINES
from .summary import WHICH

Result = dict[str, Any]
_STYLE = """
:root { color-scheme: light dark; --line: #8884; --faint: #888; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem } h2 { font-size: 1.1rem; margin-top: 2.2rem }
p, summary { max-width: 52rem } .faint { color: var(--faint) }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: .6rem 0 }
th, td { padding: .15rem .9rem .15rem 0; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line) }
th { color: var(--faint); font-weight: normal } th:first-child, td:first-child { text-align: left }
svg { max-width: 100%; height: auto; background: #fff } details { margin: .3rem 0 }
div.wide { overflow-x: auto }
"""
_SHOWN = (HOLES, SMALL, TOLD, LINES, WORDS_AND_LINES)


def page(results: Sequence[Result], summary: dict[str, Any]) -> str:
    """The whole page, as HTML."""
    found = summary["carried"]["all"]
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>",
        f"<title>cutline bench</title><style>{_STYLE}</style>",
        "<h1>What is still in context behind a seam</h1>",
        f"<p>{summary['sessions']:,} sessions, {summary['seams']:,} seams. Of the specifics that stood before a seam "
        "and that the agent went on to use, and of the pairs of them that belong together: the share that is still in "
        "context. Means over sessions; in brackets a bootstrap interval of 95 % over sessions.</p>",
        plot(found),
    ]
    for which in WHICH:
        table = summary["carried"][which]
        if table:
            parts += [f"<h2>{html.escape(which.capitalize())}</h2>", _carried(table)]
    for kind, cells in summary["lineup"]["all"].items():
        if kind in KINDS and cells:
            parts += [f"<h2>Its next words among ten: beside {html.escape(kind)}</h2>", _lined_up(cells)]
    parts += ["<h2>Session by session</h2>", *(_session(result) for result in results), "</html>\n"]
    return "\n".join(parts)


def plot(found: dict[str, Any]) -> str:
    """Recall against tokens, as SVG; a sentence where matplotlib is not installed."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        return "<p class=faint>The plot needs matplotlib: pip install 'cutline[bench]'.</p>"
    matplotlib.rcParams.update({"svg.hashsalt": "cutline", "svg.fonttype": "none", "font.size": 9})
    figure = Figure(figsize=(10, 4.2))
    for number, (key, title) in enumerate((("specifics", "specifics"), ("pairs", "pairs"))):
        axes = figure.add_subplot(1, 2, number + 1)
        shown = sorted((found[name][key][0], name) for name in NAMES if key in found.get(name, {}))
        labelled: list[tuple[float, float]] = []
        for mean, name in shown:
            _, low, high = found[name][key]
            colour = "#c2410c" if name.startswith("micro-handoff") or name == "words alone" else "#475569"
            tokens = found[name]["tokens"] / 1000
            axes.errorbar(tokens, mean, [[mean - low], [high - mean]], fmt="o", ms=4, lw=0.6, color=colour, alpha=0.8)
            # A label moves up until it is clear of those below it.
            height = max([mean, *(y + 0.032 for x, y in labelled if 0.4 < x / tokens < 2.5 and y + 0.032 > mean)])
            labelled.append((tokens, height))
            axes.annotate(
                name,
                (tokens, mean),
                (tokens * 1.05, height),
                textcoords="data",
                fontsize=6.5,
                color=colour,
                va="center",
            )
        axes.set_xscale("log")
        axes.set_xticks([5, 10, 20, 50, 100, 200], ["5", "10", "20", "50", "100", "200"])
        axes.minorticks_off()
        axes.set_xlabel("thousand tokens of context before the seam")
        axes.set_ylabel(f"{title} still in context")
        axes.set_ylim(0, 1.03)
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    return text[text.index("<svg") :]


def _carried(table: dict[str, Any]) -> str:
    rows = []
    for name in NAMES:
        if name in table:
            cell = table[name]
            rows.append(
                [
                    name,
                    cell["seams"],
                    _range(cell.get("specifics")),
                    _range(cell.get("pairs")),
                    _range(cell.get("unread")),
                    f"{cell['tokens']:,.0f}",
                    f"{cell['yield']:.1f}",
                    f"{100 * cell['of deleted']:.1f} %",
                ]
            )
    heads = ["strategy", "seams", "specifics", "pairs", "not read again", "tokens", "per 1,000", "added, of what left"]
    return _table(heads, rows)


def _lined_up(cells: dict[str, Any]) -> str:
    rows = [[name, cell["texts"], f"{cell['top-1']:.2f}", _range(cell["mrr"])] for name, cell in cells.items()]
    return _table(["context", "texts", "comes first", "one over its rank"], rows)


def _range(figure: Sequence[float] | None) -> str:
    return "–" if figure is None else f"{figure[0]:.2f} [{figure[1]:.2f}, {figure[2]:.2f}]"


def _session(result: Result) -> str:
    scored = [seam for seam in result["seams"] if "strategies" in seam]
    if not scored:
        return ""
    rows = []
    for seam in scored:
        cells: list[Any] = [f"{seam['at']:,} ({seam['cause']})", seam["used"], seam["pairs"]]
        for name in _SHOWN:
            score = seam["strategies"].get(name)
            pairs = f" / {score['pairs'] / seam['pairs']:.2f}" if score and seam["pairs"] else ""
            cells.append(f"{score['specifics'] / seam['used']:.2f}{pairs}" if score else "–")
        by = seam["strategies"][HOLES]["carriers"]
        cells.append(", ".join(f"{carrier} {number}" for carrier, number in by.items()))
        rows.append(cells)
    heads = ["seam at message", "used", "pairs", *_SHOWN, "carried by, under micro-handoff"]
    held = ", held out" if result["held"] else ""
    name = html.escape(f"{result['name']}  {result['client']}  {result['model']}  {result['size']:,} bytes{held}")
    narrated = ", ".join(f"{calls - holes:,} of {calls:,}" for _, calls, holes in result["narration"]["stretches"])
    told = f"<p class=faint>Narrated calls, by stretch: {narrated}.</p>"
    return f"<details><summary>{name}</summary>{_table(heads, rows)}{told}</details>"


def _table(heads: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    head = "".join(f"<th>{html.escape(text)}</th>" for text in heads)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<div class=wide><table><tr>{head}</tr>{body}</table></div>"
