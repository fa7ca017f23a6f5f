"""A log of either form: what was run, and one of its samples.

Law: one sample is read, however many there are; of the others no more than their names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from ..shown import choose, nothing, reading
from ..stream import Stream
from . import archive
from .sample import Sample

WHAT = "a log of Inspect"
NOUN = "sample"


@dataclass(slots=True)
class Log:
    """What was read of a log.

    Attributes:
        path: its file.
        name, sample: the sample that was asked for, or the only one, and what the log calls it.
        eval: what was run (the log's member `eval`).
    """

    path: Path
    name: str = ""
    sample: Sample | None = None
    eval: dict[str, Any] = field(default_factory=dict)


def read(path: Path, wanted: str) -> Log:
    """Read a log.

    Args:
        path: its file.
        wanted: the sample: its id, or its id and epoch as in ``1_epoch_2``; "" for the only one.

    Raises:
        InputError: it can't be read, holds no sample, or several and none, or not one of them, was named.
    """
    log = Log(path)
    with reading(path, WHAT) as handle:
        zipped = handle.read(len(archive.MAGIC)) == archive.MAGIC
        handle.seek(0)
        names = _archived(log, handle, wanted) if zipped else _written(log, Stream(handle.read), wanted)
    if not names:
        raise nothing(path, "no sample in it", WHAT)
    if log.sample is None:
        raise choose(path, NOUN, shortened(names), wanted)
    return log


def shortened(names: list[str]) -> list[str]:
    """The samples' ids, where each was run once; else their whole names."""
    short = [name.rpartition("_epoch_")[0] for name in names]
    return short if len(set(short)) == len(names) else names


def _chosen(names: list[str], wanted: str) -> str:
    """The name of the sample that is meant; "" where none or several are."""
    if wanted in names:
        return wanted
    fits = [name for name in names if wanted in ("", name.rpartition("_epoch_")[0])]
    return fits[0] if len(fits) == 1 else ""


# ------------------------------------------------------------------------------------------ a log as JSON


def _written(log: Log, stream: Stream, wanted: str) -> list[str]:
    """Read a log that is one JSON document; gives its samples' names."""
    names: list[str] = []
    found: list[Sample] = []
    for key in stream.members():
        if key == "eval":
            log.eval = _object(stream)
        elif key == "samples" and stream.begins() == "[":
            for _ in stream.elements():
                sample = _sample(stream, wanted, only=not found)
                names.append(sample.name)
                if sample.messages:
                    found.append(sample)
    log.name = _chosen(names, wanted)
    log.sample = next((sample for sample in found if sample.name == log.name), None)
    if log.name and log.sample is None:
        log.sample = Sample()
    return names


def _sample(stream: Stream, wanted: str, *, only: bool) -> Sample:
    """One sample of a list; more than its name where it may be meant (`only` so far, where none was named)."""
    sample = Sample()
    for key in stream.members():
        named = sample.id and (sample.name == wanted or sample.id == wanted)
        if key in ("id", "epoch") or named or (not wanted and only):
            sample.take(stream, key)
    return sample


# --------------------------------------------------------------------------------------- a log as archive


def _archived(log: Log, handle: BinaryIO, wanted: str) -> list[str]:
    """Read a log that is an archive; gives its samples' names."""
    with archive.opened(handle) as held:
        names = held.samples()
        header = held.header()
        if not header and not names:
            raise nothing(log.path, "a zip archive, but no log in it", WHAT)
        if header:
            with held.stream(header) as stream:
                for key in stream.members():
                    if key == "eval":
                        log.eval = _object(stream)
        log.name = name = _chosen(names, wanted)
        if name:
            log.sample = sample = Sample()
            if held.whole(name):
                with held.stream(held.whole(name)) as stream:
                    for key in stream.members():
                        sample.take(stream, key)
            else:
                _in_chunks(held, name, sample)
        return names


def _in_chunks(held: archive.Archive, name: str, sample: Sample) -> None:
    """Read a sample whose messages and texts stand in chunks; it refers to both by their numbers."""
    ranges: list[list[int]] = []
    with held.stream(held.shell(name)) as stream:
        for key in stream.members():
            if key == "message_refs":
                told = stream.value()
                ranges = [pair for pair in told if _is_range(pair)] if isinstance(told, list) else []
            elif key in ("id", "epoch"):
                sample.take(stream, key)
    pool = dict(_numbered(held, name, "messages", lambda number: any(first <= number < end for first, end in ranges)))
    behind = max(pool, default=-1) + 1
    order = (number for first, end in ranges for number in range(first, min(end, behind)))
    sample.messages = [pool[number] for number in order if number in pool]
    wanted = sample.wanted()
    texts = _numbered(held, name, "attachments", lambda number: str(number) in wanted)
    sample.texts = {str(number): literal for number, literal in texts if literal[:1] == b'"'}
    for _, entry in held.chunks(name, "events"):
        with held.stream(entry) as stream:
            for _ in stream.elements():
                sample.event(stream)


def _numbered(
    held: archive.Archive, name: str, sequence: str, wanted: Callable[[int], bool]
) -> Iterator[tuple[int, bytes]]:
    """Those items of a sequence in chunks that are wanted, each with its number."""
    for first, entry in held.chunks(name, sequence):
        with held.stream(entry) as stream:
            for number, _ in enumerate(stream.elements(), first):
                if wanted(number):
                    yield number, stream.take()


def _is_range(pair: Any) -> bool:
    return isinstance(pair, list) and len(pair) == 2 and all(type(number) is int for number in pair)


def _object(stream: Stream) -> dict[str, Any]:
    value = stream.value()
    return value if isinstance(value, dict) else {}
