"""The home that Gemini CLI is given for a run: the user's own by links, and beside its extensions the run's.

Law: the client finds and writes what is the user's where it always is; nothing of it is copied or changed here. What
the client itself put in the place of a link (it writes some files anew and renames them) goes back when the run ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from ..errors import InputError
from .gemini import HOME
from .start import SERVER

_OWN, _EXTENSIONS, _PROJECTS = ".gemini", "extensions", "projects.json"
_KEPT = ("tmp", "history")  # sessions, and what an edit can be undone with; the client makes them where they are not
_PASSING = (".lock", ".tmp")


def lay(folder: Path, home: Path) -> Callable[[], None]:
    """Lay the links in a run's folder, in which the run's extension stands already.

    Args:
        folder: the run's own.
        home: the user's home, as the client sees it.

    Returns:
        What takes back to the user's home what the client made in place of links.

    Raises:
        InputError: links can't be made here, or the home can't be read.
    """
    made = folder / HOME
    try:
        for name in _KEPT:
            (home / _OWN / name).mkdir(parents=True, exist_ok=True)
        _link(home, made, but=_OWN)
        _link(home / _OWN, made / _OWN, but=_EXTENSIONS)
        settings = made / _OWN / "settings.json"
        if not settings.is_symlink():
            settings.symlink_to(home / _OWN / settings.name)  # the client makes the file through it
        if (home / _OWN / _EXTENSIONS).is_dir():
            _link(home / _OWN / _EXTENSIONS, made / _OWN / _EXTENSIONS, but=SERVER)
    except OSError as error:
        raise InputError(
            f"{error.filename or home}: {(error.strerror or str(error)).lower()}; "
            "run gives the client a home made of links"
        ) from None

    def back() -> None:
        for place, own in ((made / _OWN, home / _OWN), (made / _OWN / _EXTENSIONS, home / _OWN / _EXTENSIONS)):
            for found in _made(place):
                with contextlib.suppress(OSError, shutil.Error):
                    _return(found, own / found.name)

    return back


def _link(there: Path, here: Path, *, but: str) -> None:
    here.mkdir(mode=0o700, parents=True, exist_ok=True)
    for entry in there.iterdir():
        if entry.name != but:
            (here / entry.name).symlink_to(entry)


def _made(place: Path) -> Iterator[Path]:
    """What is no link, and neither the run's own nor a passing file."""
    for found in sorted(place.iterdir()) if place.is_dir() else ():
        if not found.is_symlink() and found.name not in (_EXTENSIONS, SERVER) and found.suffix not in _PASSING:
            yield found


def _return(found: Path, own: Path) -> None:
    if found.is_dir():
        shutil.copytree(found, own, symlinks=True, dirs_exist_ok=True)
        return
    own.parent.mkdir(parents=True, exist_ok=True)
    part = own.with_name(f".{own.name}.{os.getpid()}.part")
    try:
        shutil.copy2(found, part)
        if found.name == _PROJECTS and own.exists():
            # Another client may have named a project of its own meanwhile.
            part.write_text(_both(own.read_text(encoding="utf-8"), found.read_text(encoding="utf-8")), "utf-8")
        part.replace(own)
    finally:
        part.unlink(missing_ok=True)


def _both(theirs: str, ours: str) -> str:
    try:
        older, newer = json.loads(theirs), json.loads(ours)
        newer["projects"] = {**older["projects"], **newer["projects"]}
    except (ValueError, TypeError, KeyError, RecursionError):
        return ours
    return json.dumps(newer, indent=2)
