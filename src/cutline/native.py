"""The cut of a body that is not Anthropic's: decided on its neutral shape, written in its own bytes.

Law: decides nothing. What the plan keeps is copied as it stands; an item of which something left is edited, and
neighbours of one role are merged where the format refuses them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from . import spans
from .plan import Addition, Options, Plan, make
from .seam import Key, Refused
from .splice import Out, Spliced, inside_of, lay_out
from .wire import anthropic as wire
from .wire.editing import Added, Item, Piece, apply
from .wire.formats import Format, format_of
from .wire.neutral import Native, Place


@dataclass(frozen=True, slots=True)
class Written:
    """A cut body.

    Attributes:
        body: the bytes.
        plan: the decisions, on the neutral body.
        added: (start, end, place of the result in the neutral body, filled) of what was added to results.
        joined: how many texts were joined onto another one.
        ends: role of the last message.
    """

    body: bytes
    plan: Plan
    added: list[tuple[int, int, Key, bool]]
    joined: int
    ends: str


def cut(native: Native, options: Options, *, strict: bool = False) -> Written:
    """Cut a body that was read.

    Args:
        native: the body.
        options: as for any cut.
        strict: the server refuses neighbours of one role, as the templates of some local models do.

    Raises:
        Refused: it can't or need not be cut; the text says why.
    """
    if native.held:
        raise Refused(native.held)
    plan = make(native.request, options)
    plan.lead = False  # where neighbours of one role are merged, the format's own writer does it
    if not format_of(native.format).MERGES:
        plan.items = [[place.item for place in places] for places in native.places]
    done = Spliced()
    outs = lay_out(plan, options.join, done)
    return _Writing(native, plan, options, strict).run(outs, done)


class _Writing:
    """The output while it grows."""

    def __init__(self, native: Native, plan: Plan, options: Options, strict: bool) -> None:
        self.native, self.plan = native, plan
        self.format: Format = format_of(native.format)
        self.strict = strict and self.format.STRICT
        self.joiner = spans.quote(options.join or "")[1:-1]
        self.blocks: dict[int, list[Key]] = {}
        self.keys: dict[Place, Key] = {}
        for number, places in enumerate(native.places):
            for index, place in enumerate(places):
                self.blocks.setdefault(place.item, []).append((number, index))
                self.keys[place] = (number, index)
        self.added = {self.place(key): [self.given(one) for one in given] for key, given in plan.add.items()}

    def run(self, outs: Sequence[Out], done: Spliced) -> Written:
        """Write the body."""
        native, body = self.native, self.native.body
        items = self.items(outs)
        parts, size = [body[: native.items[0][0]]], native.items[0][0]
        marked: list[tuple[int, int, Key, bool]] = []
        for number, group in enumerate(self.groups(items)):
            if number:
                lead = group[0].number
                parts.append(body[native.items[lead - 1][1] : native.items[lead][0]] if lead else b",")
                size += len(parts[-1])
            literals, places = [], []
            for item in group:
                literal, found = self.literal(item)
                literals.append(literal)
                places.append(found)
            whole = literals[0] if len(group) == 1 else self.format.merge(native, group, literals)
            for literal, found in zip(literals, places, strict=True):
                # In a merged item a literal's inside stands as it stood alone: what was added is looked for there.
                for start, end, place, fills in found:
                    at = start if len(group) == 1 else whole.index(literal[start:end])
                    marked.append((size + at, size + at + end - start, self.keys[place], fills))
            parts.append(whole)
            size += len(whole)
        parts.append(body[native.items[-1][1] :])
        return Written(b"".join(parts), self.plan, sorted(marked), done.joined, done.ends)

    def place(self, key: Key) -> Place:
        return self.native.places[key[0]][key[1]]

    def given(self, one: Addition) -> Added:
        inside = spans.quote(one.text)[1:-1]
        if one.source is not None:
            inside += b"\\n" + inside_of(self.plan.request, one.source)
        return Added(inside, one.source is not None)

    def items(self, outs: Sequence[Out]) -> list[Item]:
        """What stays of each item, in order."""
        found: list[Item] = []
        pieces: list[Piece] = []

        def flush() -> None:
            if pieces:
                found.append(Item(pieces[0].places[0].item, tuple(pieces), self.early(pieces[0])))
                pieces.clear()

        for out in outs:
            run = self.run_in(out)
            for keys in self.whole(out, run) if out.whole else out.pieces:
                if not keys:
                    flush()
                    found.append(Item(run[0], (), last=run[1]))
                    continue
                places = tuple(self.place(key) for key in keys)
                if pieces and pieces[0].places[0].item != places[0].item:
                    flush()
                pieces.append(Piece(places, keys[0] in self.plan.speak))
        flush()
        return found

    def run_in(self, out: Out) -> tuple[int, int]:
        """The items of a run of messages but those of its first and its last, which may meet a neighbour; else nothing.

        For a strict server each item is looked at.
        """
        places = self.native.places
        if self.strict or out.last - out.lead < 2:
            return 0, -1
        first, last = places[out.lead + 1][0].item, places[out.last - 1][-1].item
        alone = places[out.lead][-1].item < first and last < places[out.last][0].item
        return (first, last) if alone else (0, -1)

    def whole(self, out: Out, run: tuple[int, int]) -> list[list[Key]]:
        """The blocks of messages that stay as they are, each alone; nothing in the place of a run of items."""
        numbers = (out.lead, None, out.last) if run[0] <= run[1] else range(out.lead, out.last + 1)
        found: list[list[Key]] = []
        for number in numbers:
            blocks = () if number is None else range(len(self.native.places[number]))
            found += [[]] if number is None else [[(number, block)] for block in blocks]
        return found

    def early(self, piece: Piece) -> bool:
        return self.plan.floor < self.keys[piece.places[0]] < (self.plan.seam.message, 0)

    def groups(self, items: Sequence[Item]) -> list[list[Item]]:
        """Items by what they become: neighbours of one role are merged where the cut made them so."""
        found: list[list[Item]] = []
        folds = self.format.folds(self.native, items) if self.strict else []
        for number, item in enumerate(items):
            last = found[-1][-1] if found else None
            if last is not None and (folds[number] if self.strict else self.meet(last, item)):
                found[-1].append(item)
            else:
                found.append([item])
        return found

    def meet(self, last: Item, item: Item) -> bool:
        """Whether two neighbours become one item: the format refuses two of their role, and the cut made them so."""
        roles = self.native.roles
        if roles[item.number] not in self.format.MERGES or roles[max(last.number, last.last)] != roles[item.number]:
            return False
        return not (item.number == max(last.number, last.last) + 1 and self.is_whole(last) and self.is_whole(item))

    def is_whole(self, item: Item) -> bool:
        """Whether an item stays as it came."""
        if item.last >= 0:
            return True
        mine = [self.keys[piece.places[0]] for piece in item.pieces if len(piece.places) == 1 and not piece.spoken]
        return mine == self.blocks[item.number] and not any(self.place(key) in self.added for key in mine)

    def literal(self, item: Item) -> tuple[bytes, list[tuple[int, int, Place, bool]]]:
        """An item's literal, and where in it what was added stands."""
        start, end = self.native.items[item.number][0], self.native.items[max(item.number, item.last)][1]
        if self.is_whole(item) and not (item.early and self.format.STRIPS):
            return self.native.body[start:end], []
        edits = self.format.edits(self.native, item, self.inside, self.added)
        literal, marked = apply(self.native.body, start, end, edits)
        return literal, [(at, to, edit.place, edit.added == 2) for at, to, edit in marked if edit.place is not None]

    def inside(self, piece: Piece) -> bytes:
        """The inside of a piece's words: those of each text, with what joins them."""
        request, insides = self.plan.request, []
        for place in piece.places:
            number, index = self.keys[place]
            span = wire.text_span(request, request.messages[number].blocks[index])
            insides.append(request.body[span.start : span.end])
        return self.joiner.join(insides)
