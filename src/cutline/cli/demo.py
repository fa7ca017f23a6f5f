"""`cutline demo`: the agent really works on a small program, and what it sends is cut and proven before your eyes.

Law: no key, no network; nothing is left behind unless `--keep` says where.
"""

from __future__ import annotations

import json
import logging
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table

from .. import cut, measure, verify
from ..errors import CutlineError, InputError
from . import paint, report
from .options import json_option

if TYPE_CHECKING:
    from ..agent import events as ev
    from ..demo.compare import Context
    from ..demo.session import Demo

_LABEL, _EXCERPT, _LINES = 14, 1_100, 4
_NARROW = 100  # columns below which the contexts stand one under the other


@click.command("demo")
@click.option(
    "--keep",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Leave the project, the record, before.json and after.json there.",
)
@click.option(
    "--compare", is_flag=True, help="Show the same question behind a client's summary, a full handoff, and the cut."
)
@json_option
def command(keep: Path | None, compare: bool, as_json: bool) -> None:
    """Let the agent find a bug in a small program, cut what it sends at its checkpoint, and show what survived.

    The agent's loop, its tools and the HTTP are real; the model's answers are a script, so no key is needed.
    """
    if keep is not None and keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        raise InputError(f"{keep}: is not an empty directory; give one that is empty or does not exist")
    logging.getLogger("cutline").setLevel(logging.ERROR)  # where the record lies is said below, if it stays
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        _run(keep, compare, as_json, keep)
        return
    with tempfile.TemporaryDirectory(prefix="cutline-demo-") as folder:
        _run(Path(folder), compare, as_json, None)


def _run(folder: Path, compare: bool, as_json: bool, keep: Path | None) -> None:
    from ..agent import models

    models.installed()
    from ..demo.session import build

    out = paint.console()
    if not as_json:
        _heading(out, "A coding session")
        _prose(
            out,
            "The supervised agent at work: its own loop, tools that really run, HTTP on this machine. Only the model's "
            "answers are written beforehand, and each is given only where the tools showed what it says.\n",
        )
    demo = build(folder, (lambda event: None) if as_json else _watcher(out))
    proof = verify(demo.whole, demo.sent)
    if proof.unchanged or cut(demo.whole).body != demo.sent:
        raise CutlineError("what the demo sent is not its history cut; this is a fault of Cutline, please report it")
    if keep is not None:
        (keep / "before.json").write_bytes(demo.whole)
        (keep / "after.json").write_bytes(demo.sent)
    if as_json:
        _json(demo)
    elif compare:
        _compared(out, demo)
    else:
        _told(out, demo)
    if keep is not None and not as_json:
        _prose(
            out,
            f"\nLeft in {keep}: crumb (git diff shows the fix), the record, the agent's log, before.json and "
            "after.json (cutline verify before.json after.json).",
        )


def _json(demo: Demo) -> None:
    from ..demo import commands, compare

    found, stated = compare.contexts(demo.whole, demo.sent, demo.checkpoint)
    back, (step, *_) = demo.recalled, demo.report.checkpoints
    paint.echo_json(
        {
            **measure(demo.whole, demo.sent).as_json(),
            "proven": True,
            "calls": demo.steps,
            "requests": demo.report.requests,
            "next_request": {"uncut_bytes": step.whole, "sent_bytes": step.sent},
            "answer": demo.answer,
            "specifics": list(compare.PARTS),
            "brought_back": {"address": back.address, "tool": back.name, "result": back.result},
            "craft": commands.TRY_3,
            "craft_survives": _literal(commands.TRY_3) in demo.sent,
            "recipe": commands.RECIPE,
            "compared": [
                {
                    "context": one.name,
                    "bytes": one.bytes,
                    "words_kept": round(one.said, 4),
                    "specifics_stated": stated,
                    "specifics_kept": one.named,
                    "answers": {what: bool(compare.holder(one, text)) for text, what in compare.PARTS.items()},
                }
                for one in found
            ],
        }
    )


# ------------------------------------------------------------------------------------------------ the session


def _watcher(out: Console) -> Callable[[ev.Event], None]:
    """Prints a session as it goes on: a line for each answer and for all that the human says."""
    from ..agent import events as ev
    from ..agent.state import is_checkpoint

    said: list[str] = []
    calls: list[str] = []

    def line(label: str, text: str, style: str) -> None:
        row = paint.styled(f"{label:<{_LABEL}} ", paint.FAINT)
        room = (out.width if out.is_terminal else 140) - _LABEL - 2
        out.print(row.append(paint.short(text, max(40, room)), style=style))

    def show(event: ev.Event) -> None:
        match event:
            case ev.Human():
                line("you", event.text, paint.HUMAN)
            case ev.Hint():
                line("you, meanwhile", event.text, paint.HUMAN)
            case ev.Text():
                said.append(event.text)
            case ev.Called():
                calls.append(event.name)
            case ev.Status() if said:
                names = " ".join(dict.fromkeys(calls)) or "agent"
                line(names, " ".join(said), paint.AGENT)
                said.clear()
                calls.clear()
            case ev.Result() if event.name == "micro_handoff" and not is_checkpoint(event):
                line("", event.text, paint.BAD)
            case ev.Checkpoint():
                line("checkpoint", f"stored: {event.calls} calls with their results leave the next request", paint.GOOD)
            case ev.Retry():
                line("", event.reason, paint.BAD)

    return show


# ------------------------------------------------------------------------------------------- what came of it


def _told(out: Console, demo: Demo) -> None:
    step = demo.report.checkpoints[0]
    _heading(out, "The cut, measured on the wire")
    _prose(
        out,
        f"{demo.report.requests} requests went out, {demo.report.cut} of them cut. The one behind the checkpoint "
        f"weighed {step.sent:,} bytes in place of {step.whole:,}. No model was called for it. The one with the "
        "question for the accountant, uncut and as it was sent:\n",
    )
    report.print_before_after(out, measure(demo.whole, demo.sent))
    _prose(out, "Proven by all rules of the contract, on a code path of its own.", style=paint.GOOD)
    _survivors(out, demo)
    _recalled(out, demo)
    _craft(out, demo)
    _heading(out, "Now on your own sessions")
    for line, what in (
        ("cutline", "in a project with Claude Code history: what a cut would leave"),
        ("cutline cut", "a copy of its latest session, cut and proven; the original stays"),
        ("cutline resume", "cut it and go on in the copy"),
        ("cutline demo --compare", "the same question behind a summary, a full handoff, and the cut"),
    ):
        out.print(f"  {line:<24} {what}")


def _prose(out: Console, text: str, style: str = "") -> None:
    """A paragraph: wrapped between words on a terminal, one line in a pipe."""
    out.print(text, style=style, soft_wrap=not out.is_terminal)


def _heading(out: Console, text: str) -> None:
    out.print(f"\n{text}", style="bold")


def _literal(text: str) -> bytes:
    return json.dumps(text, ensure_ascii=False).encode("utf-8")[1:-1]


def _survivors(out: Console, demo: Demo) -> None:
    from ..demo import compare

    _heading(out, "What survived only because it was said")
    _prose(out, f"  “{paint.short(demo.question, 130)}”", style=paint.HUMAN)
    _prose(out, f"  “{demo.answer}”", style=paint.AGENT)
    words = "\n".join(demo.said)
    for text in compare.PARTS:
        told = compare.sentence(words, text)
        if not told or _literal(told) not in demo.sent:
            raise CutlineError(f"“{text}” did not survive; this is a fault of Cutline, please report it")
        _prose(out, f"  {text:<20} “{paint.short(told, 110)}”")
    _prose(
        out,
        "Neither stands in the checkpoint's document, and the results that showed them were gone: the agent could "
        "answer because it had narrated them.",
        style=paint.FAINT,
    )


def _recalled(out: Console, demo: Demo) -> None:
    _heading(out, "One removed result, brought back by its address")
    back = demo.recalled
    _prose(out, f"  {back.address}   every refund of March that did not undo its sale, one by one")
    lines = (back.result or "").splitlines()
    for line in lines[:_LINES]:
        out.print(f"    {paint.short(line, 100)}", style=paint.WORLD)
    _prose(
        out,
        f"    … {len(lines) - _LINES} more lines, {len((back.result or '').encode()):,} bytes, exactly as it was: "
        "the agent wrote them to a file",
        style=paint.FAINT,
    )


def _craft(out: Console, demo: Demo) -> None:
    from ..demo import commands

    if _literal(commands.TRY_3) in demo.sent:
        raise CutlineError("the one-liner survived the cut; this is a fault of Cutline, please report it")
    _heading(out, "An honest cost: craft does not survive")
    _prose(out, "  Gone with its call (the agent knows that it wrote it, and can't say it again):")
    out.print(f"    {paint.short(commands.TRY_3, 110)}", style=paint.BAD)
    _prose(out, f"  Still there, because the agent saved it to {commands.RECIPE} first:")
    for line in commands.RECIPE_TEXT.splitlines()[:_LINES]:
        out.print(f"    {line[:110]}", style=paint.GOOD)
    _prose(
        out,
        f"  In a session of yours, cutline recall {demo.craft.address} would bring the first one back.",
        style=paint.FAINT,
    )


# ------------------------------------------------------------------------------------------------- comparing


def _compared(out: Console, demo: Demo) -> None:
    from ..demo import compare

    found, stated = compare.contexts(demo.whole, demo.sent, demo.checkpoint)
    _heading(out, "The same question, three contexts")
    _prose(out, f"  “{paint.short(demo.question, 130)}”\n", style=paint.HUMAN)
    whole = len(json.dumps(json.loads(demo.whole)["messages"], ensure_ascii=False, separators=(",", ":")).encode())
    narrow = out.width < _NARROW
    made = paint.table("", *(one.name for one in found), left=(0, 1, 2, 3))
    if not narrow:
        made.add_row("made by", *(one.costs for one in found), style=paint.FAINT)
    made.add_row("history sent", *(f"{one.bytes:,} B" for one in found))
    made.add_row("of the uncut", *(paint.percent(one.bytes, whole) for one in found))
    made.add_row("words kept", *(f"{100 * one.said:.0f} %" for one in found))
    made.add_row("specifics", *(f"{one.named} of {stated}" for one in found))
    for text, what in compare.PARTS.items():
        held = [bool(compare.holder(one, text)) for one in found]
        yes, no = ("yes", "no") if narrow else (text, "not in it")
        cells = (paint.styled(yes, paint.GOOD) if one else paint.styled(no, paint.BAD) for one in held)
        made.add_row(what, *cells)
    out.print(made)
    _heading(out, "What stands where the history was")
    _side_by_side(out, found)
    _prose(
        out,
        "\nThe summary and the handoff are written for the demo, and say nothing false; behind all three stand the "
        "same later messages. What real summaries carry is measured in docs/bench.md.",
        style=paint.FAINT,
    )


def _side_by_side(out: Console, found: list[Context]) -> None:
    """The beginnings of the contexts in columns; on a narrow terminal one under the other."""
    if out.width < _NARROW:
        for one in found:
            out.print(f"\n{one.name}", style=paint.AGENT)
            _prose(out, one.opening[:_EXCERPT].rstrip() + " …")
        return
    made = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style=paint.AGENT)
    for one in found:
        made.add_column(one.name, ratio=1, overflow="fold")
    made.add_row(*(one.opening[:_EXCERPT].rstrip() + " …" for one in found))
    out.print(made, soft_wrap=False)
