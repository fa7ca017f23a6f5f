"""A run of the bench: which files, in how many processes, and where it was interrupted.

Law: the only part that reads directories and starts processes. Results come in the order of their files whatever
process was faster; a run that was stopped goes on where it was, if its results are kept in a file.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from pathlib import Path
from typing import Any

from ..errors import CutlineError
from ..sessions.clients import NAMES, sessions
from . import statements
from .lineup import FOREIGN
from .session import Measured, foreign, measure

Result = dict[str, Any]
Progress = Callable[[int, int], None]
"""Called with how many files are done, and of how many."""


def files(given: Sequence[str]) -> list[Path]:
    """The files that a run is over: those given, all in a given directory, else the user's own sessions.

    A client that keeps all sessions in one database has no file for each; those are left out.
    """
    if not given:
        own = {one.file.path for name in NAMES for one in sessions(None, (name,)) if one.file.path.suffix != ".db"}
        return sorted(own)
    found: dict[Path, None] = {}
    for name in given:
        path = Path(name).expanduser()
        inside = sorted(one for one in path.rglob("*") if one.is_file()) if path.is_dir() else [path]
        found.update(dict.fromkeys(inside))
    return list(found)


def run(paths: Sequence[Path], kept: Path | None, processes: int, progress: Progress) -> tuple[list[Result], int]:
    """Measure every file.

    Args:
        paths: sessions, and whatever else stands beside them: what is none is passed over.
        kept: a file that each result is added to as it comes, and that a later run goes on from.
        processes: how many at a time.
        progress: told after each file.

    Returns:
        The results in the order of the files, of a session and its copies only the longest; and how many files are
        no session, or have no seam.
    """
    known = dict(_read(kept)) if kept is not None else {}
    done: dict[Path, Result | None] = {}
    left: dict[Path, str] = {}
    for path in paths:
        mark = _mark(path)
        if mark in known:
            done[path] = known[mark]
        else:
            left[path] = mark
    progress(len(done), len(paths))
    for path, result in _measured(list(left), processes):
        done[path] = result
        if kept is not None:
            with kept.open("a", encoding="utf-8") as out:
                out.write(json.dumps({"mark": left[path], "result": result}, sort_keys=True) + "\n")
        progress(len(done), len(paths))
    found = [(path, result) for path in paths if (result := done[path]) is not None]
    longest: dict[str, Result] = {}
    for _, result in found:
        other = longest.get(result["key"])
        if other is None or result["size"] > other["size"]:
            longest[result["key"]] = result
    own = [(path, result) for path, result in found if longest[result["key"]] is result]
    _add_foreign(own, processes)
    return [result for _, result in own], len(paths) - len(found)


def _add_foreign(own: Sequence[tuple[Path, Result]], processes: int) -> None:
    """Add the line-up's control: each session under the words of the next one."""
    if len(own) < 2:
        return
    paths = [path for path, _ in own]
    with ProcessPoolExecutor(min(processes, len(paths))) as pool:
        ranks = pool.map(foreign, paths, [*paths[1:], paths[0]])
        for (_, result), found in zip(own, ranks, strict=True):
            for seam in result["seams"]:
                for kind, place in found.get(seam["at"], {}).items():
                    if seam.get("lineup"):
                        seam["lineup"][kind][FOREIGN] = place


def _measured(paths: Sequence[Path], processes: int) -> Iterator[tuple[Path, Result | None]]:
    if processes < 2 or len(paths) < 2:
        for path in paths:
            yield path, one(path)
        return
    with ProcessPoolExecutor(min(processes, len(paths))) as pool:
        # The largest first: the last to end is then a small one.
        tasks = {pool.submit(one, path): path for path in sorted(paths, key=lambda path: -path.stat().st_size)}
        for task in as_completed(tasks):
            yield tasks[task], task.result()


def one(path: Path) -> Result | None:
    """One file's result; None for what is no session, can't be read, or has no seam."""
    try:
        found: Measured | None = measure(path, statements.labels())
    except (CutlineError, UnicodeError):
        return None
    # What comes from a file that was kept and what comes from here is the same.
    return None if found is None else json.loads(json.dumps(found.as_json()))


def _read(kept: Path) -> Iterator[tuple[str, Result | None]]:
    if not kept.exists():
        return
    with kept.open(encoding="utf-8") as lines:
        for line in lines:
            try:
                told = json.loads(line)
                yield told["mark"], told["result"]
            except (ValueError, KeyError, TypeError):
                continue  # the run was stopped while it wrote this line


def _mark(path: Path) -> str:
    """A file's bytes and the bench's own: a result is used again for the same of both."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest() + _own()


@cache
def _own() -> str:
    package = Path(__file__).resolve().parents[1]
    total = hashlib.sha256()
    for path in sorted([*package.rglob("*.py"), *package.rglob("*.json")]):
        if "cli" not in path.relative_to(package).parts[:1]:
            total.update(path.read_bytes())
    return total.hexdigest()[:16]


def processors() -> int:
    """How many processes a run takes: one a processor, four at most, since each holds a session."""
    return min(4, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
