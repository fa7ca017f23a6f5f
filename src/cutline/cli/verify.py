"""`cutline verify BEFORE AFTER`: prove that one body is the cut of another.

Law: prints what the proof found; a failed proof exits with 1 and one line.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from .. import verify as prove
from ..errors import InputError
from . import paint
from .options import collect, cut_options, json_option


@click.command("verify")
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
@cut_options
@json_option
def command(before: Path, after: Path, as_json: bool, **words: Any) -> None:
    """Prove that AFTER is what the contract makes of BEFORE (give the options that it was cut with)."""
    proof = prove(_read(before), _read(after), **collect(**words))
    if as_json:
        paint.echo_json({"proven": True, **asdict(proof)})
        return
    out = paint.console()
    if proof.unchanged:
        out.print("Proven: nothing could be cut, and nothing was changed.", style=paint.GOOD)
        return
    out.print("Proven: AFTER is the cut of BEFORE, by all rules of the contract.", style=paint.GOOD)
    out.print(
        f"{proof.calls.count:,} calls, {proof.results.count:,} results and {proof.thinking.count:,} thinking blocks "
        f"left; {proof.agent_texts.count:,} texts of the agent and {proof.human_texts.count:,} of the human stand "
        f"byte for byte, {proof.joined:,} of them joined.",
        style=paint.FAINT,
    )


def _read(path: Path) -> bytes:
    if path.is_dir():
        raise InputError(f"{path}: is a directory; give a file with a request body")
    return path.read_bytes()
