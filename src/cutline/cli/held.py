"""The record as commands open it. Law: what had to be mended to keep it private is said, on standard error."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import click

from ..errors import CutlineError
from ..record import Record


def opened(path: str | os.PathLike[str], *, readonly: bool = True) -> Record:
    """Open the record (see `Record`), and say what was mended."""
    held = Record(path, readonly=readonly)
    for note in held.notes:
        click.echo(f"cutline: {note}", err=True)
    return held


def looked_at(path: str) -> None:
    """Mend and say so before others open it, who have nobody to say it to; why it is refused is theirs to say."""
    if path and Path(path).exists():
        with contextlib.suppress(CutlineError, OSError, ValueError), opened(path):
            pass
