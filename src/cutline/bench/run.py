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
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import CutlineError
from ..sessions.clients import NAMES, parts, sessions
from . import statements
from .lineups import BESIDE, ranks
from .session import Measured, measure
from .whole import Source

Result = dict[str, Any]
Progress = Callable[[int, int], None]
"""Called with how many files are done, and of how many."""


def files(given: Sequence[str]) -> list[Source]:
    """The sessions that a run is over: those given, all in a given directory or database, else the user's own."""
    if not given:
        own = (one.file for one in sessions(None, NAMES))
        return sorted({Source(file.path, file.id if file.path.suffix == ".db" else "") for file in own})
    found: dict[Source, None] = {}
    for name in given:
        path = Path(name).expanduser()
        inside = sorted(one for one in path.rglob("*") if one.is_file()) if path.is_dir() else [path]
        found.update(dict.fromkeys(Source(one, part) for one in inside for part in parts(one)))
    return list(found)


class Ran(NamedTuple):
    """What a run came to.

    Attributes:
        results: in the order of the files, of a session and its copies only the longest.
        sources: where each of them is.
        passed: how many files are no session, or have no seam.
    """

    results: list[Result]
    sources: list[Source]
    passed: int


def run(sources: Sequence[Source], kept: Path | None, processes: int, progress: Progress) -> Ran:
    """Measure every file.

    Args:
        sources: sessions, and whatever else stands beside them: what is none is passed over.
        kept: a file that each result is added to as it comes, and that a later run goes on from.
        processes: how many at a time.
        progress: told after each file.
    """
    known = dict(_read(kept)) if kept is not None else {}
    done: dict[Source, Result | None] = {}
    left: dict[Source, str] = {}
    for source in sources:
        mark = _mark(source)
        if mark in known:
            done[source] = known[mark]
        else:
            left[source] = mark
    progress(len(done), len(sources))
    for source, result in _measured(list(left), processes):
        done[source] = result
        if kept is not None:
            with kept.open("a", encoding="utf-8") as out:
                out.write(json.dumps({"mark": left[source], "result": result}, sort_keys=True) + "\n")
        progress(len(done), len(sources))
    found = [(source, result) for source in sources if (result := done[source]) is not None]
    longest: dict[str, Result] = {}
    for _, result in found:
        other = longest.get(result["key"])
        if other is None or result["size"] > other["size"]:
            longest[result["key"]] = result
    own = [(source, result) for source, result in found if longest[result["key"]] is result]
    _add_lineups(own, processes)
    return Ran([result for _, result in own], [source for source, _ in own], len(sources) - len(found))


def _add_lineups(own: Sequence[tuple[Source, Result]], processes: int) -> None:
    """Add measure 3: each session's line-ups, the next ones in the list beside it."""
    if not own:
        return
    sources = [source for source, _ in own]
    beside = [(sources[number + 1 :] + sources[:number])[:BESIDE] for number in range(len(sources))]
    seams = [[seam["at"] for seam in result["seams"] if "strategies" in seam] for _, result in own]
    with ProcessPoolExecutor(min(processes, len(sources))) as pool:
        for (_, result), found in zip(own, pool.map(ranks, sources, beside, seams), strict=True):
            for seam in result["seams"]:
                seam["lineup"] = found.get(seam["at"], {})


def _measured(sources: Sequence[Source], processes: int) -> Iterator[tuple[Source, Result | None]]:
    if processes < 2 or len(sources) < 2:
        for source in sources:
            yield source, one(source)
        return
    with ProcessPoolExecutor(min(processes, len(sources))) as pool:
        # The largest first: the last to end is then a small one.
        by_size = sorted(sources, key=lambda source: -source.path.stat().st_size)
        tasks = {pool.submit(one, source): source for source in by_size}
        for task in as_completed(tasks):
            yield tasks[task], task.result()


def one(source: Source) -> Result | None:
    """One session's result; None for what is no session, can't be read, or has no seam."""
    try:
        found: Measured | None = measure(source, statements.labels())
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


def _mark(source: Source) -> str:
    """A file's bytes and the bench's own: a result is used again for the same of both."""
    return _digest(source.path) + source.part + _own()


@lru_cache(maxsize=1)  # the sessions of a database stand beside each other
def _digest(path: Path) -> str:
    total = hashlib.sha256()
    # What was written last may stand beside a database and not yet in it.
    for file in (path, path.with_name(f"{path.name}-wal")) if path.suffix == ".db" else (path,):
        if file.exists():
            with file.open("rb") as handle:
                total.update(hashlib.file_digest(handle, "sha256").digest())
    return total.hexdigest()


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
