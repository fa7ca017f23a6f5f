"""What `cutline setup` changes for good, and how it is taken back.

Law: decided on what is there, shown before it is written, and written whole or not at all: each file beside itself and
then renamed, its mode kept, links followed; where one can't be written the others are put back. What undoes it is kept
beside the record: places and lengths of what was put in and digests of the files, nothing that the user wrote. A file
that nobody touched since comes back byte for byte; one that was edited loses our entries alone.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from .. import record
from ..errors import InputError
from . import setup_clients, setup_text
from .setup_clients import File, Given
from .setup_text import Entry

_KEPT = ".kept"
"""Put behind the name of a file of ours that the user has edited, where it would go."""


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of one file.

    Attributes:
        path: which.
        before: its bytes; None where it is not there.
        after: what they become; None where it goes.
        aside: it is ours and was edited: it stays under another name.
    """

    path: Path
    before: bytes | None
    after: bytes | None
    aside: bool = False


@dataclass(frozen=True, slots=True)
class Kept:
    """What was done to one file.

    Attributes:
        path, kind: which.
        existed: it was there before.
        before, after: digests of its bytes, before and behind it.
        steps, made, entries: see `setup_text.Put`.
    """

    path: str
    kind: Literal["json", "toml", "own"]
    existed: bool
    before: str
    after: str
    steps: Sequence[Sequence[tuple[int, int]]] = ()
    made: Sequence[Sequence[str]] = ()
    entries: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """A change of a client's set-up.

    Attributes:
        changes: files that become other than they are; none where all is as it is to be.
        kept: what undoes it, from then on; none where nothing is left to undo.
        place: where that is kept.
        folders: that were made for earlier changes, and go with them where they are empty.
    """

    changes: tuple[Change, ...]
    kept: tuple[Kept, ...]
    place: Path
    folders: tuple[str, ...] = ()


def setting(name: str, environment: Mapping[str, str], python: str) -> Plan:
    """What setting a client up would change.

    Args:
        name: the client's, as behind `cutline run`.
        environment: the user's.
        python: the interpreter that runs Cutline's own commands.

    Raises:
        InputError: a client that is not known, or a file that can't be changed without touching what is there.
    """
    wanted = setup_clients.given(name, environment, python)
    setup_clients.check(wanted, python)
    place = _place(name, wanted)
    known, folders = _kept(place)
    changes: list[Change] = []
    kept: list[Kept] = []
    for file in wanted.files:
        change, undo = _given(file, known.pop(str(file.path), None))
        changes.append(change)
        kept.append(undo)
    changes += [_taken(one) for one in known.values()]  # places of an earlier set-up, where the client looks no more
    return Plan(_real(changes), tuple(kept), place, folders)


def removing(name: str, environment: Mapping[str, str], python: str) -> Plan:
    """What taking a client's set-up back would change.

    Raises:
        InputError: a client that is not known, or a file that can't be changed without touching what is there.
    """
    wanted = setup_clients.given(name, environment, python)
    place = _place(name, wanted)
    known, folders = _kept(place)
    if not place.exists():
        known = _recognised(wanted)
    return Plan(_real([_taken(one) for one in known.values()]), (), place, folders)


def state(name: str, environment: Mapping[str, str], python: str) -> Literal["set", "changed", "not"]:
    """Whether a client is set up, and still as it was.

    Raises:
        InputError: a client that is not known, or a file that can't be read.
    """
    wanted = setup_clients.given(name, environment, python)
    if not _place(name, wanted).exists():
        return "set" if _recognised(wanted) else "not"
    return "changed" if setting(name, environment, python).changes else "set"


def write(plan: Plan) -> None:
    """Carry a plan out.

    Raises:
        InputError: a file changed since it was looked at, or can't be written; then all of them are as they were.
    """
    for change in plan.changes:
        if _read(change.path) != change.before:
            raise InputError(f"{change.path}: it changed in the meantime; nothing was written, try again")
    folders = list(plan.folders)
    done: list[Change] = []
    path, earlier = plan.place, _read(plan.place)
    try:
        if plan.kept:
            folders += _folder(plan.place.parent)
            _keep(plan.place, plan.kept, folders)  # first: a write that is cut short can then be undone
        for change in plan.changes:
            path = change.path
            folders += _folder(path.parent)
            done.append(change)
            if change.aside:
                path.rename(_free(path.with_name(path.name + _KEPT)))
            if change.after is not None:
                _put(path, change.after)
            elif not change.aside:
                path.unlink(missing_ok=True)
        _keep(plan.place, plan.kept, folders)
    except OSError as error:
        for path_, data in ((plan.place, earlier), *((change.path, change.before) for change in done)):
            with contextlib.suppress(OSError):
                path_.unlink(missing_ok=True) if data is None else _put(path_, data)
        _leave(folders[len(plan.folders) :])
        raise InputError(f"{path}: {(error.strerror or str(error)).lower()}; all files are as they were") from None
    if not plan.kept:
        _leave(folders)


def _leave(folders: Sequence[str]) -> None:
    """Remove folders that were made, the inner ones first, where nothing else stands in them."""
    for folder in sorted(folders, key=len, reverse=True):
        with contextlib.suppress(OSError):
            Path(folder).rmdir()


# ---------------------------------------------------------------------------------------------------- one file's change


def _given(file: File, known: Kept | None) -> tuple[Change, Kept]:
    """A file with what it is to be given, from what it was before an earlier set-up; and what undoes that."""
    now = _read(file.path)
    if known is not None and now is not None and _has(file, now):
        return Change(file.path, now, now), known  # wherever in it the client, which writes it too, has put it
    base, aside = (now, False) if known is None else _undone(known, now)
    if file.kind == "own":
        after = file.text.encode()
        if base not in (None, after):
            raise InputError(f"{file.path}: is there already, and not by setup; move it away, then set up again")
        put = setup_text.Put(after)
        base = None
    else:
        try:
            put = setup_text.put(file.kind, base or b"", file.entries)
        except InputError as error:
            raise InputError(f"{file.path}: {error}") from None
    entries = [asdict(entry) for entry in put.entries]
    digests = (_digest(base or b""), _digest(put.data))
    return (
        Change(file.path, now, put.data, aside and now != put.data),
        Kept(str(file.path), file.kind, base is not None, *digests, put.steps, put.made, entries),
    )


def _has(file: File, now: bytes) -> bool:
    """Whether a file has all that it is to be given."""
    if file.kind == "own":
        return now == file.text.encode()
    try:
        return all(setup_text.holds(file.kind, now, entry) for entry in file.entries)
    except InputError as error:
        raise InputError(f"{file.path}: {error}") from None


def _taken(known: Kept) -> Change:
    """A file without what it was given."""
    path = Path(known.path)
    now = _read(path)
    base, aside = _undone(known, now)
    return Change(path, now, base, aside)


def _undone(known: Kept, now: bytes | None) -> tuple[bytes | None, bool]:
    """A file as it was before; and whether it is one of ours that was edited."""
    if now is None or (known.existed and _digest(now) == known.before):
        return now, False
    if _digest(now) == known.after:
        return (setup_text.undone(now, known.steps) if known.existed else None), False
    if known.kind == "own":
        return None, True
    entries = [Entry(tuple(one["path"]), one["value"], one["joins"], one["yields"]) for one in known.entries]
    try:
        left = setup_text.take(known.kind, now, entries, [tuple(path) for path in known.made])
        return (None if not known.existed and not setup_text.value(known.kind, left) else left), False
    except InputError as error:
        raise InputError(f"{known.path}: {error}") from None


def _real(changes: Sequence[Change]) -> tuple[Change, ...]:
    return tuple(one for one in changes if one.before != one.after or one.aside)


# ----------------------------------------------------------------------------------------------------- what is kept


def _place(name: str, wanted: Given) -> Path:
    """Where a client's undoing is kept: for each place of its settings its own, since the environment moves them."""
    where = _digest(str(wanted.folder).encode())[:8]
    return record.default_path().parent / "setup" / f"{name}-{where}.json"


def _kept(place: Path) -> tuple[dict[str, Kept], tuple[str, ...]]:
    held = _read(place)
    if held is None:
        return {}, ()
    try:
        told = json.loads(held)
        return {one["path"]: Kept(**one) for one in told["files"]}, tuple(told["folders"])
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise InputError(f"{place}: can't be read ({error}); without it, take the entries out by hand") from None


def _recognised(wanted: Given) -> dict[str, Kept]:
    """What is there just as setup writes it, where what undoes it was lost; nothing where any of it is not."""
    found: dict[str, Kept] = {}
    for file in wanted.files:
        now = _read(file.path)
        if now is None or not _has(file, now):
            return {}
        if file.kind == "own":
            found[str(file.path)] = Kept(str(file.path), "own", False, "", _digest(now))
            continue
        entries = [asdict(entry) for entry in file.entries]
        found[str(file.path)] = Kept(str(file.path), file.kind, True, "", "", entries=entries)
    return found


def _keep(place: Path, kept: Sequence[Kept], folders: Sequence[str]) -> None:
    """Keep what undoes a set-up; nothing where there is nothing to undo."""
    if not kept:
        place.unlink(missing_ok=True)
        return
    _put(
        place, (json.dumps({"version": 1, "files": [asdict(one) for one in kept], "folders": folders}) + "\n").encode()
    )


# ------------------------------------------------------------------------------------------------------------- files


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _read(path: Path) -> bytes | None:
    """A file's bytes; None where it is not there."""
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise InputError(f"{path}: {(error.strerror or str(error)).lower()}") from None


def _folder(path: Path) -> list[str]:
    """Make a folder, for the user alone; gives those that were not there."""
    missing = [one for one in (path, *path.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir(mode=0o700)
    return [str(one) for one in missing]


def _put(path: Path, data: bytes) -> None:
    """Write a file whole or not at all: owner and mode stay, a link stays one; a new one is the user's alone."""
    path = path.resolve()
    held = path.stat() if path.exists() else None
    handle, passing = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if held is not None:
            with contextlib.suppress(OSError, AttributeError):  # its owner, where another may give it
                os.chown(passing, held.st_uid, held.st_gid)
            Path(passing).chmod(stat.S_IMODE(held.st_mode))
        Path(passing).replace(path)
    except BaseException:
        Path(passing).unlink(missing_ok=True)
        raise


def _free(path: Path) -> Path:
    """A name that nothing has yet."""
    number = 1
    while path.exists():
        number += 1
        path = path.with_name(f"{path.name.partition(_KEPT)[0]}{_KEPT}{number}")
    return path
