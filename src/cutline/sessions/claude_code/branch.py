"""The live branch: which records of a file the client would go on from.

Law: the walk is the client's own (docs/claude-code-sessions.md): from the leaf back by `parentUuid` to the
root, to a compaction, or to where a link breaks. Then it is completed by what hangs beside it: one API
message stands in several records, and results of parallel calls hang off different ones of them.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Literal

from .records import Log, Record

TALK = ("user", "assistant")
_LINKED = ("user", "assistant", "attachment", "system")
Ended = Literal["root", "compaction", "missing parent", "cycle"]


@dataclass(frozen=True, slots=True)
class Branch:
    """The records of one line of conversation, as indices into the file's records.

    Attributes:
        chain: from the first to the leaf, as they are linked; records that only pass the chain through are
            among them.
        messages: for each record of the chain that begins an API message: all records of that message in
            file order, those beside the chain too.
        results: for each of those: the records that answer its calls, in file order.
        unanswered: ids of calls that nothing answers, in order.
        orphans: (record, id) of results on the chain that answer no call of the branch.
        ended: where the walk back ended.
        missing: the id of the parent that is not in the file; "" if there is none such.
    """

    chain: tuple[int, ...]
    messages: dict[int, tuple[int, ...]]
    results: dict[int, tuple[int, ...]]
    unanswered: tuple[str, ...]
    orphans: tuple[tuple[int, str], ...]
    ended: Ended
    missing: str

    def all(self) -> set[int]:
        """Every record of the branch: the chain, and what hangs beside it."""
        found = set(self.chain)
        for group in (*self.messages.values(), *self.results.values()):
            found.update(group)
        return found


@dataclass(slots=True)
class _Links:
    """Records by what links them; a record written twice counts as its last writing."""

    records: list[Record]
    sidechain: bool
    by_uuid: dict[str, int] = field(default_factory=dict)
    by_message: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    made: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    answered: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        for index, record in enumerate(self.records):
            if record.uuid:
                self.by_uuid[record.uuid] = index
        for index, record in enumerate(self.records):
            if record.type not in TALK or record.sidechain is not self.sidechain:
                continue
            if record.uuid and self.by_uuid[record.uuid] != index:
                continue
            if record.type == "assistant":
                if record.message_id:
                    self.by_message[record.message_id].append(index)
                for id_ in record.calls:
                    self.made[id_].append(index)
            else:
                for id_ in record.answers:
                    self.answered[id_].append(index)


def live(log: Log) -> Branch:
    """The branch that the client would resume; empty where the file holds no conversation.

    A file that holds nothing but a sub-agent's records (`isSidechain`) is read as that sub-agent's branch.
    """
    records = log.records
    sidechain = all(record.sidechain for record in records if record.type in TALK)
    links = _Links(records, sidechain)
    if any(record.uuid for record in records if record.type in TALK):
        leaf = _leaf(links)
        chain, ended, missing = ([], "root", "") if leaf is None else _walk(links, leaf)
    else:
        # A web export carries no links: its order is its history.
        chain, ended, missing = list(range(len(records))), "root", ""
    return _complete(links, chain, ended, missing)


def _leaf(links: _Links) -> int | None:
    """The latest user or assistant record that ends a line; the first of those with the same time."""
    records = links.records
    linked = [index for index in links.by_uuid.values() if records[index].type in _LINKED]
    parents = {_parent(links, records[index]) for index in linked}
    leaves: set[int] = set()
    for index in linked:
        if records[index].uuid in parents:
            continue
        seen: set[int] = set()
        at: int | None = index
        while at is not None and at not in seen:
            seen.add(at)
            if records[at].type in TALK:
                leaves.add(at)
                break
            at = links.by_uuid.get(records[at].parent)
    best: int | None = None
    for index in sorted(leaves):
        if records[index].sidechain is links.sidechain and (
            best is None or records[index].timestamp > records[best].timestamp
        ):
            best = index
    if best is None:
        # Links that run in a circle leave no end: the last record that was said is taken.
        said = [index for index in linked if records[index].type in TALK]
        best = max((index for index in said if records[index].sidechain is links.sidechain), default=None)
    return best


def _parent(links: _Links, record: Record) -> str:
    """The parent that counts: `progress` records only pass the chain through."""
    seen: set[str] = set()
    parent = record.parent
    while parent and parent not in seen:
        seen.add(parent)
        index = links.by_uuid.get(parent)
        if index is None or links.records[index].type != "progress":
            break
        parent = links.records[index].parent
    return parent


def _walk(links: _Links, leaf: int) -> tuple[list[int], Ended, str]:
    """From the leaf back to where it ends."""
    chain: list[int] = []
    seen: set[int] = set()
    at = leaf
    while True:
        if at in seen:
            return chain[::-1], "cycle", ""
        seen.add(at)
        chain.append(at)
        record = links.records[at]
        if record.subtype == "compact_boundary" and record.type == "system":
            return chain[::-1], "compaction", ""
        if not record.parent:
            return chain[::-1], "root", ""
        found = links.by_uuid.get(record.parent)
        if found is None:
            return chain[::-1], "missing parent", record.parent
        at = found


def _complete(links: _Links, chain: list[int], ended: Ended, missing: str) -> Branch:
    """Add what hangs beside the chain: the other records of its messages, and the results of their calls."""
    records = links.records
    on_chain = set(chain)
    messages: dict[int, tuple[int, ...]] = {}
    results: dict[int, tuple[int, ...]] = {}
    unanswered: list[str] = []
    owned: set[tuple[int, str]] = set()
    begun: set[str] = set()
    for index in chain:
        record = records[index]
        if record.type != "assistant" or record.message_id in begun:
            continue
        group: tuple[int, ...] = (index,)
        if record.message_id:
            begun.add(record.message_id)
            group = tuple(links.by_message[record.message_id]) or group
        messages[index] = group
        answers: set[int] = set()
        for member in group:
            for id_ in records[member].calls:
                answer = _answer(links, id_, member, on_chain)
                if answer is None:
                    unanswered.append(id_)
                else:
                    owned.add((answer, id_))
                    answers.add(answer)
        results[index] = tuple(sorted(answers))
    orphans = [
        (index, id_)
        for index in chain
        if records[index].type == "user"
        for id_ in records[index].answers
        if (index, id_) not in owned
    ]
    return Branch(tuple(chain), messages, results, tuple(unanswered), tuple(orphans), ended, missing)


def _answer(links: _Links, id_: str, call: int, on_chain: set[int]) -> int | None:
    """The record that answers a call, on the chain if one is; it may stand before its call in the file.

    Where an id was used again, a result belongs to the call that it hangs off, else to the last before it.
    """
    found, made = links.answered[id_], links.made[id_]
    if len(made) > 1:
        uuid = links.records[call].uuid
        own = [index for index in found if uuid and links.records[index].parent == uuid]
        until = next((other for other in made if other > call), len(links.records))
        found = own or [index for index in found if call < index < until]
    return next((index for index in found if index in on_chain), found[0] if found else None)
