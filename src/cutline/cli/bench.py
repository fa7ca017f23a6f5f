"""`cutline bench`: what survives a seam, on sessions that were really recorded, by strategy.

Law: reads sessions, writes only where it is told to. Nothing anybody wrote is in what it writes: figures, places and
hashes alone.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from ..errors import InputError
from . import bench_models, paint
from .options import json_option

if TYPE_CHECKING:
    from ..bench.run import Ran
    from ..bench.whole import Source

_MAIN = ("specifics", "pairs", "unread")


@click.command("bench")
@click.argument("files", nargs=-1, metavar="[FILES…]")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="A directory for the results, a summary and a page."
)
@click.option("--jobs", type=click.IntRange(1), help="How many processes; without it one a processor, four at most.")
@click.option("--local", is_flag=True, help="Ask a small model on this machine too, about eight of them.")
@click.option("--model", metavar="PROVIDER:NAME", help="Have a real model fill in blanks too; it costs.")
@json_option
def command(
    files: tuple[str, ...], output: Path | None, jobs: int | None, local: bool, model: str | None, as_json: bool
) -> None:
    """Measure what is still in context behind a seam, over sessions and folders of them (default: all of your own).

    A run that is stopped goes on where it was when it is called again with the same --output.
    """
    from ..bench import run, statements
    from ..bench.summary import summarise

    small = bench_models.small() if local else None  # what is missing is said before the work, not behind it
    ask = bench_models.named(model) if model else None
    sources = run.files(files)
    for source in sources:
        if not source.path.exists():
            raise InputError(f"{source.path}: no such file; “cutline ls --all” lists your sessions")
    kept = None
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        kept = output / "unfinished.jsonl"
    ran = _run(sources, kept, jobs or run.processors())
    results = ran.results
    if not results:
        raise InputError(
            f"no session with a seam among {len(sources):,} files: the bench needs one with forty calls or more, "
            "or one that was compacted; name some, or a folder of them"
        )
    found = summarise(results)
    found["precision"] = {kind: list(told) for kind, told in sorted(statements.precision(statements.labels()).items())}
    found["passed over"] = ran.passed
    if output is not None:
        _write(output, results, found)
    asked: dict[str, Any] = {}
    if small is not None:
        asked["local"] = bench_models.ownership(ran, small)
    if ask is not None:
        asked["probes"] = bench_models.probes(ran.sources, ask)
    if output is not None:
        for name, told in asked.items():
            (output / f"{name}.json").write_text(json.dumps(told, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    if as_json:
        paint.echo_json({"summary": found, "results": results, **asked})
        return
    _print(found, output, asked, model or "")


def _run(sources: list[Source], kept: Path | None, jobs: int) -> Ran:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    from ..bench import run

    shown = Console(stderr=True)
    with Progress(
        "measuring", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=shown, transient=True,
        disable=not sys.stderr.isatty(),
    ) as bar:  # fmt: skip
        task = bar.add_task("", total=len(sources))
        return run.run(sources, kept, jobs, lambda done, _: bar.update(task, completed=done))


def _write(output: Path, results: list[dict[str, Any]], found: dict[str, Any]) -> None:
    from ..bench.page import page

    lines = (json.dumps(result, sort_keys=True, separators=(",", ":")) for result in results)
    (output / "results.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    (output / "summary.json").write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    (output / "page.html").write_text(page(results, found), encoding="utf-8")
    (output / "unfinished.jsonl").unlink(missing_ok=True)


def _print(found: dict[str, Any], output: Path | None, asked: dict[str, Any], model: str) -> None:
    out = paint.console()
    out.print(f"{found['sessions']:,} sessions, {found['seams']:,} seams", style="bold")
    out.print(
        "Of what stood before a seam and the agent went on to use: the share still in context. Means over sessions, "
        "[interval of 95 %].",
        style=paint.FAINT,
    )
    out.print()
    made = paint.table("strategy", "seams", "specifics", "", "pairs", "", "tokens", "per 1,000", left=(0, 3, 5))
    for name, cell in found["carried"]["all"].items():
        made.add_row(
            name,
            str(cell["seams"]),
            *_figure(cell.get("specifics")),
            *_figure(cell.get("pairs")),
            f"{cell['tokens']:,.0f}",
            f"{cell['yield']:.1f}",
        )
    out.print(made)
    _print_carriers(out, found)
    _print_statements(out, found)
    _print_lineup(out, found)
    _print_cost(out, found)
    _print_narration(out, found)
    if "local" in asked:
        bench_models.print_ownership(out, asked["local"])
    if "probes" in asked:
        bench_models.print_probes(out, model, asked["probes"])
    if output is not None:
        out.print()
        out.print(f"Results, summary and page: {output}")


def _figure(told: list[float] | None) -> tuple[str, str]:
    return ("–", "") if told is None else (f"{told[0]:.2f}", f"[{told[1]:.2f}, {told[2]:.2f}]")


def _print_carriers(out: Console, found: dict[str, Any]) -> None:
    from ..bench.strategies import HOLES

    cell = found["carried"]["all"].get(HOLES, {})
    by = [(key[3:], value) for key, value in cell.items() if key.startswith("by ") and value >= 0.005]
    if by:
        out.print()
        out.print(f"Under {HOLES} carried by: " + ", ".join(f"{carrier} {value:.2f}" for carrier, value in by))


def _print_statements(out: Console, found: dict[str, Any]) -> None:
    from ..bench.strategies import HOLES, LINES, MASK, TOLD, WINDOW

    shown = [name for name in (HOLES, MASK, WINDOW, LINES, TOLD) if name in found["statements"]]
    kinds = list(found["statements"].get(HOLES, {}))
    if not kinds:
        return
    out.print()
    made = paint.table("still there, of those before it", *shown)
    for kind in kinds:
        cells = [found["statements"][name].get(kind, {}).values() for name in shown]
        sums = [(sum(kept for kept, _ in cell), sum(all_ for _, all_ in cell)) for cell in cells]
        made.add_row(kind, *(f"{kept} of {all_}" if all_ else "–" for kept, all_ in sums))
    tried = found["craft"]
    made.add_row("iterated commands", *("{} of {}".format(*tried.get(name, (0, 0))) for name in shown))
    out.print(made)


def _print_lineup(out: Console, found: dict[str, Any]) -> None:
    from ..bench.lineup import LATER, STRANGERS
    from ..bench.lineups import FOREIGN, NOTHING
    from ..bench.strategies import FULL, HOLES, NONE

    told = found["lineup"]["all"]
    if not told[LATER]:
        return
    out.print()
    made = paint.table("its next words among ten: 1 over rank", LATER, "", STRANGERS, "", left=(0, 2, 4))
    for name in (FULL, HOLES, NONE, FOREIGN, NOTHING):
        cells = [told[kind].get(name, {}).get("mrr") for kind in (LATER, STRANGERS)]
        if any(cells):
            made.add_row(name, *(text for cell in cells for text in _figure(cell)))
    out.print(made)


def _print_cost(out: Console, found: dict[str, Any]) -> None:
    from ..bench.strategies import FULL, HOLES

    told = found["cost"]
    if not told["sessions"] or FULL not in told["strategies"]:
        return
    full, ours = told["strategies"][FULL], told["strategies"][HOLES]
    out.print()
    out.print(
        f"The rest of {told['sessions']:,} sessions from their first seam, {told['requests']:,} requests: "
        f"{full['tokens']:,} tokens of input ({paint.usd(full['usd'])}) as they were, {ours['tokens']:,} "
        f"({paint.usd(ours['usd'])}) under {HOLES}; {told['again']:,} later calls asked again for what had left."
    )


def _print_narration(out: Console, found: dict[str, Any]) -> None:
    told = found["narration"]
    if not told["calls"]:
        return
    parts, claims = told["stretches"], told["claims"]
    out.print()
    out.print(
        f"Narrated: {told['calls'] - told['holes']:,} of {told['calls']:,} calls; in {parts['nothing narrated']:,} of "
        f"{parts['all']:,} stretches none, in the median {paint.percent(parts['median'], 1)}, at most "
        f"{paint.percent(parts['most'], 1)}. Claims in checkpoint documents: "
        + ", ".join(f"{count:,} {basis}" for basis, count in claims.items())
        + "."
    )
