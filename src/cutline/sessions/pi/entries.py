"""A session file as entries: which of them are live, and in what order the client sends them.

Law: the client's own rules (docs/pi-sessions.md). The leaf is the file's last entry; links lead from it to the start;
the last compaction on the way stands first, with what it keeps behind it. A first version of the format has no links:
there each entry hangs off the one before it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

from ...errors import InputError
from ..lines import Lines, pairs, read_lines, unview, word

LABEL = "pi"
_RECENT = 4096  # texts that are kept to be shared: a parent is nearly always a recent entry


class Entry(NamedTuple):
    """One entry: where it stands and how it is linked.

    Attributes:
        offset, length: its JSON literal, ``file[offset:offset + length]``.
        type: "message", "compaction", "label" and more; "session" is the header.
        id, parent: its own id and its parent's; "" where absent, and in the format's first version.
        timestamp: as written (ISO 8601).
        role: of its message; "" elsewhere.
        model, api: of an agent's message; of a change of the model, `model`.
        stop: why an agent's message ended.
        calls: ids of the calls that it makes, as in the file.
        answers: id of the call that its result answers.
        target: the entry that it points at: what a compaction keeps first, what an edit or a label is about, what a
            branch's summary came from.
        kept: index of the entry that a compaction of the first version keeps first; -1 elsewhere.
    """

    offset: int
    length: int
    type: str
    id: str = ""
    parent: str = ""
    timestamp: str = ""
    role: str = ""
    model: str = ""
    api: str = ""
    stop: str = ""
    calls: tuple[str, ...] = ()
    answers: str = ""
    target: str = ""
    kept: int = -1


TARGETS = {
    "compaction": "firstKeptEntryId",
    "context_edit": "targetId",
    "label": "targetId",
    "branch_summary": "fromId",
}
"""By type, the member that holds `Entry.target`."""


@dataclass(frozen=True, slots=True)
class Log:
    """A session file that was read.

    Attributes:
        lines: the file, and what could not be read of it.
        entries: in file order, the header among them.
        header: index of the header.
        version: of the format: 1 has no links.
        id, cwd: as the header says.
        chain: the entries from the start to the leaf, by index.
        sent: those that the client makes its request of, in its order: a compaction first.
        edits: for an entry that is edited, the index of the last edit of it.
        parents: for each entry that hangs off one in the file, that one.
        broken: ids of parents that are not in the file, where the live line ends at one.
    """

    lines: Lines
    entries: list[Entry]
    header: int
    version: int
    id: str
    cwd: str
    chain: list[int] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)
    edits: dict[int, int] = field(default_factory=dict)
    parents: dict[int, int] = field(default_factory=dict)
    broken: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        """The file."""
        return self.lines.path

    def linked(self, leaf: int | None = None) -> Self:
        """The same entries, with what their links make of them: all from `chain` on.

        Args:
            leaf: index of the entry that the client would go on from; None for the file's last.
        """
        entries = self.entries
        links, parents, broken = _links(entries, self.version)
        chain, lost = _chain(entries, parents, broken, leaf)
        compaction = next((number for number in reversed(chain) if entries[number].type == "compaction"), None)
        sent = chain if compaction is None else _kept(entries, chain, compaction, links)
        edits = {
            links[entries[number].target]: number
            for number in sent
            if entries[number].type == "context_edit" and entries[number].target in links
        }
        return replace(self, chain=chain, sent=sent, edits=edits, parents=parents, broken=(lost,) if lost else ())

    @contextmanager
    def reader(self) -> Iterator[Callable[[Entry], bytes]]:
        """Open the file once and give a function that reads an entry's bytes again. Raises InputError."""
        with self.lines.reader() as fetch:
            yield lambda entry: fetch(entry.offset, entry.length)


def read(path: str | os.PathLike[str]) -> Log:
    """Read a session file.

    Raises:
        InputError: it can't be read, or has no header.
    """
    index = _Index()
    lines = read_lines(Path(path), index.take, LABEL)
    header = next((number for number, entry in enumerate(index.entries) if entry.type == "session"), None)
    if header is None:
        raise InputError(f"{path}: no header of a session of {LABEL} in it; type: cutline ls")
    return Log(
        lines, index.entries, header, index.version, unview(index.entries[header].id), unview(index.cwd)
    ).linked()


class _Index:
    """What grows while a file is read."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.version, self.cwd, self._headed = 1, "", False
        self._seen: dict[str, str] = {}

    def take(self, got: dict[str, Any], line: int, offset: int, length: int) -> bool:
        """Index an object; False where it is no entry."""
        type_ = word(got, "type")
        if not type_ or (type_ == "session" and not word(got, "id")):
            return False
        if type_ == "session" and not self._headed:
            # The scanner gives a number as its literal.
            version = got.get("version")
            self.version = int(version) if isinstance(version, str) and version.isdigit() else 1
            self.cwd, self._headed = word(got, "cwd"), True
        if len(self._seen) > _RECENT:
            self._seen.clear()
        same = self._seen.setdefault
        role = model = api = stop = answers = ""
        calls: tuple[str, ...] = ()
        if type_ == "message":
            message = pairs(got.get("message"))
            role = word(message, "role")
            if role == "assistant":
                model, api, stop = word(message, "model"), word(message, "api"), word(message, "stopReason")
                content = message.get("content")
                blocks = map(pairs, content) if type(content) is list else iter(())
                calls = tuple(word(block, "id") for block in blocks if block.get("type") == "toolCall")
            elif role == "toolResult":
                answers = word(message, "toolCallId")
        elif type_ == "model_change":
            model = word(got, "modelId")
        kept = got.get("firstKeptEntryIndex")
        id_, parent = word(got, "id"), word(got, "parentId")
        self.entries.append(
            Entry(
                offset,
                length,
                same(type_, type_),
                same(id_, id_),
                same(parent, parent),
                word(got, "timestamp"),
                same(role, role),
                same(model, model),
                same(api, api),
                same(stop, stop),
                calls,
                answers,
                word(got, TARGETS[type_]) if type_ in TARGETS else "",
                int(kept) if type_ == "compaction" and isinstance(kept, str) and kept.isdigit() else -1,
            )
        )
        return True


def _links(entries: list[Entry], version: int) -> tuple[dict[str, int], dict[int, int], dict[int, str]]:
    """Entries by id (the last of two counts), each one's parent, and the parents that are not there."""
    links = {entry.id: number for number, entry in enumerate(entries) if entry.type != "session" and entry.id}
    parents: dict[int, int] = {}
    broken: dict[int, str] = {}
    before = -1
    for number, entry in enumerate(entries):
        if entry.type == "session":
            continue
        if version < 2:
            if before >= 0:
                parents[number] = before
            before = number
        elif entry.parent in links:
            parents[number] = links[entry.parent]
        elif entry.parent:
            broken[number] = entry.parent
    return links, parents, broken


def _chain(
    entries: list[Entry], parents: dict[int, int], broken: dict[int, str], leaf: int | None
) -> tuple[list[int], str]:
    at = leaf
    if at is None:
        at = next((n for n in range(len(entries) - 1, -1, -1) if entries[n].type != "session"), None)
    chain: list[int] = []
    seen: set[int] = set()
    while at is not None and at not in seen:
        seen.add(at)
        chain.append(at)
        at = parents.get(at)
    return chain[::-1], broken.get(chain[-1], "") if chain else ""


def _kept(entries: list[Entry], chain: list[int], compaction: int, links: dict[str, int]) -> list[int]:
    """What is sent of a compacted line: the compaction, what it keeps from before it, and what follows."""
    at = chain.index(compaction)
    entry = entries[compaction]
    first = entry.kept if entry.kept >= 0 else links.get(entry.target, -1)
    before = chain[chain.index(first) : at] if first in chain[:at] else []
    return [compaction, *(number for number in before if entries[number].role != "system"), *chain[at + 1 :]]
