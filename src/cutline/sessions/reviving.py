"""A session as if its client had never compacted it: each summary gives way to what it had replaced.

Law: nothing is written, and nothing that the client still had may change or be lost by it, or the session is refused.
How a compaction is undone stands in each client's own `reviving`, which only reads; what is the same for all stands
here: that check, where the last compaction stood, what it had replaced and what that weighs.
"""

from __future__ import annotations

import importlib
import operator
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .. import spans
from ..errors import CutlineError, InputError, NothingToCut
from ..measure import measure
from ..wire import anthropic as wire
from .model import History, Request, Session


@dataclass(frozen=True, slots=True)
class Point:
    """A compaction on the live line that a client's own module undid.

    Attributes:
        line: of its record in the file, from 1; 0 where the session is in no file of lines.
        until: how many messages of the whole history stand before it.
        summary: bytes of the summary's words, as they are written in the file.
        trigger: "auto" or "manual" as the client noted it; "" where it noted nothing.
        tokens: of the context that was compacted, by the client's count; 0 where it noted none.
        guessed: the record that it says it followed is not in the file; the one written just before it is taken.
        id: what it is found by where there is no line.
    """

    line: int
    until: int
    summary: int
    trigger: str = ""
    tokens: int = 0
    guessed: bool = False
    id: str = ""

    @property
    def where(self) -> str:
        """What a person finds it by."""
        return f"line {self.line:,}" if self.line else self.id


@dataclass(frozen=True, slots=True)
class Window:
    """How many tokens a model takes.

    Attributes:
        tokens: of its context; None where it is not known.
        source: how that is known, or why not.
    """

    tokens: int | None
    source: str


Name = Callable[[int], Hashable]
"""What a record is called by its index, in the session and in the undone one alike."""


@dataclass(frozen=True, slots=True)
class Undone:
    """A session without its compactions, as a client's own module gives it.

    Attributes:
        session: it, its history whole.
        points: the compactions on the live line that were undone, the first one first.
        old, new: names of the records of the session as it was, and of this one.
        window: of the session's model.
        gone: names of the records that leave with a compaction.
        repeats: names of those among them that say again what was said: it must stand elsewhere, in the same order.
        same: whether a text in one of these is one that was said.
        stays: where a summary stays, since what it replaced is not in the file; "" for none.
        broken: the line has a beginning that is not in the file.
    """

    session: Session
    points: Sequence[Point]
    old: Name
    new: Name
    window: Window
    gone: frozenset[Hashable]
    repeats: frozenset[Hashable] = frozenset()
    same: Callable[[str, str], bool] = operator.eq
    stays: str = ""
    broken: bool = False


@dataclass(frozen=True, slots=True)
class Compaction:
    """One compaction that was undone, and what it had replaced.

    Attributes:
        line, where, trigger, tokens, summary, guessed: as in `Point`.
        words: bytes of the agent's and the human's words that it had replaced, as they are written in the file.
        whole: bytes of the messages that it had replaced, calls and results included.
        messages: how many those are.
    """

    line: int
    where: str
    trigger: str
    tokens: int
    summary: int
    words: int
    whole: int
    messages: int
    guessed: bool


@dataclass(frozen=True, slots=True)
class Revival:
    """A session with its compactions undone.

    Attributes:
        session: the session, its history whole.
        compactions: those on the live line that were undone, the first one first.
        place: the last compaction's place: the first message that the client still had whole behind what it replaced.
        stays: where a summary stays, since what it replaced is not in the file; "" for none.
        broken: the line has a beginning that is not in the file.
        window: of the session's model.
    """

    session: Session
    compactions: tuple[Compaction, ...]
    place: int
    stays: str
    broken: bool
    window: Window


def revive(session: Session) -> Revival:
    """Undo a session's compactions; nothing is written.

    Raises:
        NothingToCut: no compaction stands on the session's live line, or none that replaced anything.
        InputError: what the summary replaced is not in the file, or taking it back would change what came later.
    """
    undone = _undo(session)
    found, whole = session.history, undone.session.history
    kept = {
        undone.old(record)
        for places, origin in zip(found.places, found.origins, strict=True)
        for record, _ in places
        if origin != "summary"
    } - undone.gone
    _check(session, undone, kept)
    own = [{undone.new(record) for record, _ in places} for places in whole.places]
    place = max((number + 1 for number, names in enumerate(own) if not names & kept), default=0)
    if place == 0 and not undone.broken:
        raise NothingToCut(f"{session.path.name}: its client kept every message through its compaction")
    if place == 0 or (undone.stays and all(origin == "summary" for origin in whole.origins[:place])):
        raise lost(session, undone.stays or undone.points[0].where)
    first = 1 if undone.stays else 0
    told = _replaced(undone, place, first)
    # Requests behind a compaction were sent with the summary in place of the words: tokens are fitted to bytes by
    # those before the first alone.
    upto = told[0].messages + first
    early = [made for made in whole.requests if made.message < upto]
    revived = _with(undone.session, early)
    return Revival(revived, told, place, undone.stays, undone.broken, undone.window)


def uncompacted(session: Session) -> Session:
    """A session to look things up in: with what its compactions replaced, where that is in the file; else as it is."""
    if not session.history.compacted:
        return session
    try:
        return _undo(session).session
    except CutlineError:
        return session


def _undo(session: Session) -> Undone:
    try:
        theirs = importlib.import_module(f".{session.client.replace('-', '_')}.reviving", __package__)
    except ModuleNotFoundError:
        raise never(session) from None  # a client whose sessions are shown alone: it compacts none
    found: Undone = theirs.undo(session)
    return found


def _with(session: Any, requests: list[Request]) -> Any:
    """A session whose history has other requests; every client's are frozen dataclasses."""
    return replace(session, history=replace(session.history, requests=requests))


# --------------------------------------------------------------------------------- for the clients' modules


def never(session: Session) -> NothingToCut:
    """The client never compacted the session."""
    return NothingToCut(f"{session.path.name}: its client never compacted it, so there is nothing to revive")


def lost(session: Session, where: str, when: str = "", hint: str = "") -> InputError:
    """What a compaction replaced is not kept.

    Args:
        session: the session.
        where: the compaction, or its summary.
        when: its time (ISO 8601); "" where none is recorded.
        hint: what to do, where the session can't have been continued from another.
    """
    since = f" ({when[:16].replace('T', ' ')})" if when else ""
    hint = hint or "look for the session that it was continued from"
    return InputError(
        f"{session.path}: what was said before the compaction in {where}{since} is not in the file, only its summary; "
        f"nothing can be revived from it, {hint}"
    )


def listed(model: str) -> int | None:
    """The context of a model by genai-prices, in tokens; None where it knows none."""
    from genai_prices import Usage, calc_price

    try:
        return calc_price(Usage(input_tokens=1), model).model.context_window if model else None
    except LookupError:
        return None


def window(model: str, requests: Sequence[Request]) -> Window:
    """How many tokens a session's model takes, and how that is known.

    Args:
        model: as the session names it.
        requests: the session's, of which the largest shows what the model takes at least.
    """
    tokens = listed(model)
    if tokens is None:
        return Window(None, f"no window is known for {model or 'a session that names no model'}")
    seen = max((made.usage.total_input for made in requests), default=0)
    if seen > tokens:
        return Window(seen, f"a request of {seen:,} tokens was made in it")
    return Window(tokens, f"genai-prices, {model}")


def mended(raw: bytes, members: Mapping[str, bytes]) -> bytes:
    """A record in which some members name another record: each key's new literal, if it has that member."""
    for member in reversed(spans.members(raw.decode("latin-1"), 0)[0]):
        if member.key in members:
            raw = raw[: member.start] + members[member.key] + raw[member.end :]
    return raw


def line_of(path: Path, offset: int) -> int:
    """The line of a file that a byte stands in, from 1."""
    number = 1
    with path.open("rb") as handle:
        while handle.readline() and handle.tell() <= offset:
            number += 1
    return number


# --------------------------------------------------------------------------------------------- what was replaced


def _replaced(undone: Undone, place: int, before: int) -> tuple[Compaction, ...]:
    """What each compaction had replaced; `before` is where the first one's begins."""
    whole = undone.session.history
    request = wire.read(whole.body)
    found: list[Compaction] = []
    for number, point in enumerate(undone.points):
        last = number == len(undone.points) - 1
        upto = max(place if last else min(place, point.until), before)
        size = words = 0
        if upto > before:
            messages = request.messages[before:upto]
            size = messages[-1].end - messages[0].start
            # What the client says in a person's place is known by the record, not by the words.
            origins = whole.origins[before:upto]
            theirs = [
                whole.body[message.start : message.end]
                for message, origin in zip(messages, origins, strict=True)
                if origin not in ("harness", "summary")
            ]
            said = measure(b'{"messages":[%s]}' % b",".join(theirs)).before.said
            words = said.get("agent", 0) + said.get("human", 0)
        found.append(
            Compaction(
                *(point.line, point.where, point.trigger, point.tokens, point.summary),
                *(words, size, upto - before, point.guessed),
            )
        )
        before = upto
    return tuple(found)


# ------------------------------------------------------------------------------------------ what must not change


def _check(session: Session, undone: Undone, kept: set[Hashable]) -> None:
    """Raise where the whole history lacks something of the live one, or has what is said in another order."""
    found, whole = session.history, undone.session.history

    def blocks(of: History, name: Name, *, results: bool) -> list[tuple[Hashable, int]]:
        return [
            (name(record), block)
            for places, origin in zip(of.places, of.origins, strict=True)
            for record, block in places
            if name(record) in kept and (origin == "results") is results
        ]

    said, answered = (blocks(whole, undone.new, results=results) for results in (False, True))
    had = [blocks(found, undone.old, results=results) for results in (False, True)]
    if not undone.points or said != had[0] or not set(answered) >= set(had[1]):
        raise elsewhere(session)
    repeated = [number for number, places in enumerate(found.places) if undone.old(places[0][0]) in undone.repeats]
    known = _authored(whole, range(len(whole.places))) if repeated else iter(())
    for origin, words in _authored(found, repeated):
        if not any(origin == other and undone.same(words, text) for other, text in known):
            raise elsewhere(session)


def _authored(of: History, numbers: Iterable[int]) -> Iterator[tuple[str, str]]:
    """Whose, and the text or the attachment: what the agent and a person put into some messages."""
    request = wire.read(of.body)
    for number in numbers:
        origin = of.origins[number]
        for block in request.messages[number].blocks if origin in ("agent", "human") else ():
            if block.type == "text":
                yield origin, wire.words(request, block)
            elif block.type == "image":
                yield origin, of.body[block.start : block.end].decode("utf-8", "replace")


def elsewhere(session: Session) -> InputError:
    """Undoing the compaction would change what the client has."""
    return InputError(
        f"{session.path}: with its compaction undone the client would go on from another place than now, "
        "so nothing was written; cutline cut works on the session as it is"
    )
