"""The record as commands open it. Law: what had to be mended to keep it private is said, on standard error."""

from __future__ import annotations

import os

import click

from ..record import Record


def opened(path: str | os.PathLike[str], *, readonly: bool = True) -> Record:
    """Open the record (see `Record`), and say what was mended."""
    held = Record(path, readonly=readonly)
    for note in held.notes:
        click.echo(f"cutline: {note}", err=True)
    return held
