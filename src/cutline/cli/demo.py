"""`cutline demo`: a small coding session, really carried out, cut and proven before your eyes.

Law: no key, no network; nothing is left behind unless `--keep` says where.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import click
from rich.console import Console

from .. import cut, events, measure, verify
from ..demo.session import Demo, build
from ..errors import CutlineError, InputError
from ..wire import anthropic as wire
from . import paint, report
from .options import json_option


@click.command("demo")
@click.option(
    "--keep",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Leave the project, before.json and after.json there.",
)
@json_option
def command(keep: Path | None, as_json: bool) -> None:
    """Carry out a small coding session, cut it at its checkpoint, prove the cut, and show what survived."""
    if keep is not None and keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        raise InputError(f"{keep}: is not an empty directory; give one that is empty or does not exist")
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        _run(keep, as_json, keep)
        return
    with tempfile.TemporaryDirectory(prefix="cutline-demo-") as folder:
        _run(Path(folder), as_json, None)


def _run(folder: Path, as_json: bool, keep: Path | None) -> None:
    demo = build(folder)
    done = cut(demo.body)
    proof = verify(demo.body, done.body)
    told = measure(demo.body, done.body)
    if not done.changed or proof.unchanged:
        raise CutlineError(f"the demo was not cut: {done.reason}; this is a fault of Cutline, please report it")
    if keep is not None:
        (keep / "before.json").write_bytes(demo.body)
        (keep / "after.json").write_bytes(done.body)
    request = wire.read(demo.body)
    calls = events.calls(request)
    found = {request.messages[item.message].blocks[item.block].id: item for item in calls}
    back, lost = found[demo.brought_back.call], found[demo.craft.call]
    if as_json:
        paint.echo_json(
            {
                **told.as_json(),
                "proven": True,
                "calls": demo.steps,
                "specifics": [specific.text for specific in demo.specifics],
                "brought_back": {"address": back.call.address, "tool": back.call.name, "result": back.call.result},
                "craft": demo.craft.one_liner,
                "craft_survives": _literal(demo.craft.one_liner) in done.body,
                "recipe": demo.craft.recipe,
            }
        )
        return
    out = paint.console()
    _heading(out, "A coding session")
    out.print(
        f"An agent looked for a bug in a small program: {demo.steps} tool calls, all of them really run just now. "
        "Before each it said what and why, after each what came of it; a person read along and sent a hint. "
        "Then it wrote a checkpoint, its field notebook, and went on."
    )
    _heading(out, "The cut")
    out.print(
        "Before the checkpoint every tool call, tool result and thinking block is left out. No model was called.\n"
    )
    report.print_before_after(out, told)
    out.print("Proven by all rules of the contract, on a code path of its own.", style=paint.GOOD)
    _survivors(out, demo, done.body)
    _recalled(out, demo, back)
    _craft(out, demo, lost, done.body)
    _heading(out, "Now on your own sessions")
    for line, what in (
        ("cutline", "in a project with Claude Code history: what a cut would leave"),
        ("cutline cut", "a copy of its latest session, cut and proven; the original stays"),
        ("cutline resume", "cut it and go on in the copy"),
    ):
        out.print(f"  {line:<16} {what}")
    if keep is not None:
        out.print(f"\nLeft in {keep}: the project, before.json and after.json (cutline verify before.json after.json).")


def _heading(out: Console, text: str) -> None:
    out.print(f"\n{text}", style="bold")


def _literal(text: str) -> bytes:
    return json.dumps(text, ensure_ascii=False).encode("utf-8")[1:-1]


def _survivors(out: Console, demo: Demo, after: bytes) -> None:
    _heading(out, "What survived only because it was said")
    for specific in demo.specifics:
        sentence = _sentence(demo.body, specific.text)
        if _literal(sentence) not in after:
            raise CutlineError(f"“{specific.text}” did not survive; this is a fault of Cutline, please report it")
        out.print(f"  {specific.text:<20} “{paint.short(sentence, 110)}”")
    out.print(
        "Neither stands in the checkpoint's document: the agent can cite them because it narrated them.",
        style=paint.FAINT,
    )


def _sentence(body: bytes, text: str) -> str:
    """The agent's line that says it first."""
    request = wire.read(body)
    for message in request.messages:
        for block in message.blocks:
            if message.role == "assistant" and block.type == "text":
                words = wire.words(request, block)
                if text in words:
                    line = next(line for line in words.splitlines() if text in line)
                    parts = [part for part in line.split(". ") if text in part]
                    return parts[0] if parts else line
    return text


def _recalled(out: Console, demo: Demo, back: events.Found) -> None:
    _heading(out, "One removed result, brought back by its address")
    out.print(f"  {back.call.address}   {demo.brought_back.phrase}")
    lines = (back.call.result or "").splitlines()
    for line in lines[:4]:
        out.print(f"    {paint.short(line, 100)}", style=paint.WORLD)
    out.print(
        f"    … {len(lines) - 4} more lines, {len((back.call.result or '').encode()):,} bytes, exactly as it was",
        style=paint.FAINT,
    )


def _craft(out: Console, demo: Demo, lost: events.Found, after: bytes) -> None:
    if _literal(demo.craft.one_liner) in after:
        raise CutlineError("the one-liner survived the cut; this is a fault of Cutline, please report it")
    _heading(out, "An honest cost: craft does not survive")
    out.print("  Gone with its call (the agent knows that it wrote it, and can't say it again):")
    out.print(f"    {paint.short(demo.craft.one_liner, 110)}", style=paint.BAD)
    out.print(f"  Still there, because the agent saved it to {demo.craft.recipe} first:")
    for line in demo.craft.content.splitlines()[:4]:
        out.print(f"    {line[:110]}", style=paint.GOOD)
    out.print(
        f"  In a session of yours, cutline recall {lost.call.address} would bring the first one back.",
        style=paint.FAINT,
    )
