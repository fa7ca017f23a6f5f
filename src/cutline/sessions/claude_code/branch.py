"""The live branch: which records of a file the client would go on from.

Law: the walk is the client's own (docs/claude-code-sessions.md): from the leaf back by `parentUuid` to the
root or to a compaction, over a broken link to the record that was written just before. Then it is completed
by what hangs beside it: one API message stands in several records, and results of parallel calls hang off
different ones of them. What was guessed is said.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass
from typing import Literal

from .links import LINKED, TALK, Links, follow_preserved, when
from .records import Log, Record

_GUESS_MS = 5000  # how far the client looks back in time where a parent is missing
Ended = Literal["root", "compaction", "missing parent", "cycle"]


@dataclass(frozen=True, slots=True)
class Branch:
    """The records of one line of conversation, as indices into the file's records.

    Attributes:
        chain: from the first to the leaf, as they are linked, and what hangs off the leaf but is not said.
        leaf: the last of them that is said; None in an empty branch.
        messages: for each record of the chain that begins an API message: all records of that message in
            file order, those beside the chain too.
        results: for each of those: the records that answer its calls, in file order.
        unanswered: ids of calls that nothing answers, in order.
        orphans: (record, id) of results on the chain that answer no call of the branch, or one that has its
            result already.
        ended: where the walk back ended.
        missing: the ids of parents that are not in the file.
        relinked: (record, parent) where the client follows another link than the file's: over a missing
            parent to the record just before in time, or to messages that a compaction preserved; the parent
            is None at a root.
    """

    chain: tuple[int, ...]
    leaf: int | None
    messages: dict[int, tuple[int, ...]]
    results: dict[int, tuple[int, ...]]
    unanswered: tuple[str, ...]
    orphans: tuple[tuple[int, str], ...]
    ended: Ended
    missing: tuple[str, ...]
    relinked: tuple[tuple[int, int], ...]

    def all(self) -> set[int]:
        """Every record of the branch: the chain, and what hangs beside it."""
        found = set(self.chain)
        for group in (*self.messages.values(), *self.results.values()):
            found.update(group)
        return found


def live(log: Log) -> Branch:
    """The branch that the client would resume; empty where the file holds no conversation.

    A file that holds nothing but a sub-agent's records (`isSidechain`) is read as that sub-agent's branch.
    """
    links = Links(log)
    if not links.linked:
        # A web export carries no links: its order is its history.
        order = range(len(log.records)) if any(record.type in TALK for record in log.records) else ()
        return _complete(links, list(order), order[-1] if order else None, "root")
    preserved = follow_preserved(links, log)
    leaf = _leaf(links, preserved)
    if leaf is None:
        return _complete(links, [], None, "root")
    chain, ended = _walk(links, leaf)
    return _complete(links, [*chain, *_behind(links, leaf, chain)], leaf, ended)


def _leaf(links: Links, preserved: int | None) -> int | None:
    """The record that the client goes on from.

    It is the last record of the file (not the latest by time), unless the client has noted another leaf
    (`last-prompt`) that the last record does not come from: then a person went back, and that leaf counts.
    """
    last, noted, explicit, cleared = _marks(links)
    if cleared:
        return None
    at = links.linked.get(noted) if noted else None
    if preserved is None or (explicit and at is not None and links.own(at)):
        if at is not None and not explicit and last is not None and _descends(links, last, at):
            at = last
        if preserved is None and at is None:
            at = last
    else:
        at = None
    found = links.said(at) if at is not None else None
    if found is None:
        ends = _ends(links)
        if len(ends) > 1:
            at = links.linked.get(noted) if noted and links.linked.get(noted) in ends else last
            found = links.said(at) if at is not None else None
            ends = ends if found is None else {found}
        found = _latest(links, ends)
    if found is None or not links.own(found):
        talk = {index for index in links.linked.values() if links.records[index].type in TALK}
        found = _latest(links, talk)
    return found


def _marks(links: Links) -> tuple[int | None, str, bool, bool]:
    """The last record of the line, the leaf noted last, and whether a person chose it or cleared all."""
    last: int | None = None
    noted, explicit, cleared = "", False, False
    for index, record in enumerate(links.records):
        if record.type == "last-prompt":
            if record.leaf:
                explicit = record.explicit or (explicit and record.leaf == noted)
                noted, cleared = record.leaf, False
            elif record.explicit:
                noted, explicit, cleared = "", False, True
        elif record.uuid in links.linked and record.type in LINKED:
            if links.own(index):
                last, explicit, cleared = links.linked[record.uuid], False, False
            if record.subtype == "compact_boundary":
                noted, explicit = "", False
    return last, noted, explicit, cleared


def _descends(links: Links, index: int, ancestor: int) -> bool:
    seen: set[int] = set()
    at: int | None = index
    while at is not None and at not in seen:
        if at == ancestor:
            return True
        seen.add(at)
        at = links.up(at)
    return False


def _ends(links: Links) -> set[int]:
    """What is said last on each line: nothing that is said hangs off it."""
    parents: set[str] = set()
    spoken: set[str] = set()
    for index in links.linked.values():
        parents.add(links.parent[index])
        if links.records[index].type in TALK:
            spoken.add(links.parent[index])
    found: set[int] = set()
    for uuid, index in links.linked.items():
        end = links.said(index) if uuid not in parents else None
        if end is not None and links.records[end].uuid not in spoken:
            found.add(end)
    return found


def _latest(links: Links, indices: set[int]) -> int | None:
    """The latest by time, the first in the file among equals; without times the last in the file."""
    own = sorted(index for index in indices if links.own(index))
    timed = [(at, index) for index in own if (at := when(links.records[index])) is not None]
    if timed:
        return max(timed, key=lambda pair: (pair[0], -pair[1]))[1]
    return own[-1] if own else None


def _walk(links: Links, leaf: int) -> tuple[list[int], Ended]:
    """From the leaf back to where it ends; over a broken link as the client does."""
    chain: list[int] = []
    seen: set[int] = set()
    at = leaf
    ended: Ended
    while True:
        seen.add(at)
        chain.append(at)
        record = links.records[at]
        if record.subtype == "compact_boundary" and record.type == "system":
            ended = "compaction"
            break
        parent = links.parent[at]
        if not parent:
            ended = "root"
            break
        found = links.linked.get(parent)
        if found is None:
            links.missing.append(parent)
        if found is None or found in seen:
            guess = _just_before(links, at, seen)
            if guess is None:
                ended = "missing parent" if found is None else "cycle"
                break
            links.relinked.append((at, guess))
            found = guess
        at = found
    return chain[::-1], ended


def _just_before(links: Links, index: int, seen: set[int]) -> int | None:
    """The record that was written last before this one, within the client's few seconds."""
    until = when(links.records[index])
    if until is None:
        return None
    times = links.times
    at = bisect_right(times, (until, 1))
    while at > 0:
        at -= 1
        other = -times[at][1]
        if until - times[at][0] > _GUESS_MS:
            break
        if other not in seen and links.records[other].sidechain is links.records[index].sidechain:
            return other
    return None


def _behind(links: Links, leaf: int, chain: list[int]) -> list[int]:
    """What hangs off the leaf without being said: attachments with words that wait, reports of the system."""
    kids: dict[str, list[int]] = defaultdict(list)
    for index in links.linked.values():
        if links.records[index].type not in TALK:
            kids[links.parent[index]].append(index)
    found: list[int] = []
    seen = set(chain)
    queue = [leaf]
    while queue:
        for kid in kids.get(links.records[queue.pop(0)].uuid, ()):
            if kid not in seen:
                seen.add(kid)
                found.append(kid)
                queue.append(kid)
    return sorted(found, key=lambda index: links.records[index].timestamp)


# --------------------------------------------------------------------------- what hangs beside the chain


def _complete(links: Links, chain: list[int], leaf: int | None, ended: Ended) -> Branch:
    """Add what hangs beside the chain: the other records of its messages, and the results of their calls."""
    records = links.records
    on_chain = set(chain)
    by_message: dict[str, list[int]] = defaultdict(list)
    made: dict[str, list[int]] = defaultdict(list)
    answered: dict[str, list[int]] = defaultdict(list)
    for index, record in enumerate(records):
        if record.type not in TALK or not links.own(index):
            continue
        if record.uuid and links.linked.get(record.uuid) != index:
            continue
        if record.type == "assistant":
            if record.message_id:
                by_message[record.message_id].append(index)
            for id_ in record.calls:
                made[id_].append(index)
        else:
            for id_ in record.answers:
                answered[id_].append(index)
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
            group = tuple(by_message[record.message_id]) or group
        messages[index] = group
        answers: set[int] = set()
        for member in group:
            for id_ in records[member].calls:
                answer = _answer(records, answered[id_], made[id_], member, on_chain)
                if answer is None:
                    unanswered.append(id_)
                else:
                    owned.add((answer, id_))
                    answers.add(answer)
        results[index] = tuple(sorted(answers))
    orphans = tuple(
        (index, id_)
        for index in chain
        if records[index].type == "user"
        for id_ in records[index].answers
        if (index, id_) not in owned
    )
    missing, relinked = tuple(links.missing), tuple(links.relinked)
    return Branch(tuple(chain), leaf, messages, results, tuple(unanswered), orphans, ended, missing, relinked)


def _answer(records: list[Record], found: list[int], made: list[int], call: int, on_chain: set[int]) -> int | None:
    """The record that answers a call, on the chain if one is; it may stand before its call in the file.

    Where an id was used again, a result belongs to the call that it hangs off, else to the last before it.
    """
    if len(made) > 1:
        uuid = records[call].uuid
        own = [index for index in found if uuid and records[index].parent == uuid]
        until = next((other for other in made if other > call), len(records))
        found = own or [index for index in found if call < index < until]
    return next((index for index in found if index in on_chain), found[0] if found else None)
