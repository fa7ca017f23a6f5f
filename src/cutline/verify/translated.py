"""The proof of a cut body that is not Anthropic's: the contract on the neutral shape, then the bytes beside it.

Law: two steps. What was said, what left and what was added is proven on both bodies in the neutral shape; that every
literal which stays is the one that came, and that neighbours are what the provider takes, on the bodies themselves.
"""

from __future__ import annotations

from ..errors import CutError, Unreadable
from .compare import Comparison, differs, show
from .expect import Expected, Part
from .foreign import Foreign, Home
from .history import History
from .notices import Addition
from .openai_chat import REASONING
from .seam import Options, Uncut
from .shape import also
from .tree import Node

_MERGED = {"gemini": ("model",), "converse": ("user", "assistant")}
_MAY_LEAVE = {
    "openai_chat": (
        b"tool_calls",
        b"function_call",
        b"reasoning_content",
        b"reasoning",
        b"reasoning_details",
        b"thinking",
    ),
    "openai_responses": (b"id",),
}
_LISTS = (b"content", b"parts", b"tool_calls")


def expected(body: Foreign, options: Options, strict: bool) -> Expected:
    """What must be left of a body, in the neutral shape.

    Raises:
        Unreadable: it can't be read in that shape.
        Uncut: the contract leaves the body as it is.
    """
    history = History(body.neutral())
    if body.held:
        raise Uncut(body.held)
    merges = body.name in _MERGED
    items = None if merges else [home.item for home in body.homes]
    folds = None
    if strict and body.name == "openai_chat":
        but = (b"role", b"content", b"tool_calls", b"function_call", *REASONING)
        told = [also(body, item, but) for item in body.history.elements]
        folds = [told[home.item] for home in body.homes]
    return Expected(history, options, meets=merges, items=items, folds=folds)


class Flat(Comparison):
    """Compares block by block: where messages end, the format decides."""

    def __init__(self, expected: Expected, added: dict[int, Addition], after: bytes) -> None:
        super().__init__(expected, added, after)
        self.pairs: list[tuple[Part, int]] = []

    def run(self) -> None:
        """Compare every block. Raises CutError at the first difference."""
        self._pairs()
        due = [(out.head.role, part) for out in self.expected.outs for part in out.parts]
        for number, found in enumerate(self.new.blocks):
            place = f"after {found.place}"
            if number == len(due):
                self._leftover(found, place)
                raise CutError(2, place, "something stands here that nobody said or returned")
            role, part = due[number]
            if role != found.role:
                self._leftover(found, place)
                self._fault(part.blocks[0], place, f"role {found.role!r}, where {part.blocks[0].place} is due")
            self._part(part, found, place)
            self.pairs.append((part, number))
        if len(self.new.blocks) < len(due):
            part = due[len(self.new.blocks)][1]
            self._fault(part.blocks[0], "after its end", f"the output ends before {part.blocks[0].place}")


def compare(before: Foreign, after: bytes, due: Expected, added: dict[int, Addition], strict: bool) -> Flat:
    """Prove a cut body; the comparison, for its figures.

    Args:
        before: the body as it came.
        after: what the cut made of it.
        due: what must be left of its neutral shape.
        added: what results get, by number of the result.
        strict: the cut was made for a server that refuses two neighbours of one role.

    Raises:
        CutError: at the first difference.
    """
    kept = {block.seq for out in due.outs for part in out.parts for block in part.blocks[:1]}
    try:
        new = Foreign(after, before.name, iter([id_ for seq, id_ in before.made_up if seq in kept]))
    except Unreadable as fault:
        raise CutError(5, "after", f"the output can't be read: {fault}") from None
    flat = Flat(due, added, new.neutral())
    flat.run()
    _Bytes(before, new, flat, strict).run()
    return flat


class _Bytes:
    """What the neutral shape leaves out: members, spelling, the items around the blocks."""

    def __init__(self, old: Foreign, new: Foreign, flat: Flat, strict: bool) -> None:
        self.old, self.new, self.flat = old, new, flat
        self.strict = strict and old.name == "openai_chat"
        self.merged = ("assistant",) if self.strict else _MERGED.get(old.name, ())
        self.parts: dict[int, list[Part]] = {}  # by item of the output, what it is made of
        self.kept: set[tuple[int, bytes]] = set()  # items of the input and members of theirs, of which something stays
        for part, number in flat.pairs:
            self.parts.setdefault(new.homes[number].item, []).append(part)
            self.kept.add((self._home(part).item, self._home(part).key))

    def run(self) -> None:
        self._around()
        for part, number in self.flat.pairs:
            self._literal(part, self._home(part), self.new.homes[number])
        last = -1
        for index, item in enumerate(self.new.history.elements):
            if index not in self.parts:
                raise CutError(2, f"after item {index}", "an item that stands for nothing that came")
            from_items = sorted({self._home(part).item for part in self.parts[index]})
            if from_items[0] <= last:
                raise CutError(1, f"after item {index}", "items stand in another order")
            self._item(index, item, from_items)
            self._neighbours(index, last, from_items[0])
            last = from_items[-1]

    def _home(self, part: Part) -> Home:
        return self.old.homes[part.blocks[0].seq]

    def _around(self) -> None:
        for one, two, offset in (
            (self.old.data[: self.old.history.start], self.new.data[: self.new.history.start], 0),
            (self.old.data[self.old.history.end :], self.new.data[self.new.history.end :], self.new.history.end),
        ):
            if one != two:
                at = differs(one, two)
                what = f"bytes outside of the history changed: {show(two, at)}, not {show(one, at)}"
                raise CutError(2, f"after byte {offset + at:,}", what)

    def _literal(self, part: Part, old: Home, new: Home) -> None:
        """A block that stays as it is has the very literal that came."""
        block = part.blocks[0]
        if len(part.blocks) > 1 or part.spoken or block.seq in self.flat.added or not old.key:
            return
        one, two = self.old.raw(old.node), self.new.raw(new.node)
        if one != two and not (part.text and self._as_part(one, two)):
            rule = 3 if block.message >= self.flat.expected.seam else 6
            raise CutError(rule, f"after item {new.item}", show(two, differs(one, two)))

    def _as_part(self, one: bytes, two: bytes) -> bool:
        """A string content that became a text part, where messages were merged."""
        return bool(self.merged) and two == b'{"type":"text","text":' + one + b"}"

    def _item(self, index: int, item: Node, from_items: list[int]) -> None:
        """An item's members are those of one that came, but for what left and what was joined or added."""
        held = [self.old.history.elements[number] for number in from_items]
        if len(held) == 1 and self.new.raw(item) == self.old.raw(held[0]):
            return
        if len(held) > 1 and not self._merges(from_items):
            raise CutError(2, f"after item {index}", "items were run together that are no neighbours of one role")
        source = held[-1]
        came = {name: self.old.raw(node) for name, node in source.members}
        here = {name: self.new.raw(node) for name, node in item.members}
        for name, raw in here.items():
            if name not in came:
                if not self._added(index, name) and not (name == b"content" and len(held) > 1):
                    what = f"a member {name.decode('utf-8', 'replace')!r} that did not come"
                    raise CutError(2, f"after item {index}", what)
            elif raw != came[name] and not self._may_change(index, name, source, item, merged=len(held) > 1):
                at = differs(came[name], raw)
                what = f"{name.decode('utf-8', 'replace')!r} changed: {show(raw, at)}, not {show(came[name], at)}"
                raise CutError(6, f"after item {index}", what)
        for name in came:
            if name not in here and not self._may_leave(name, index, from_items[-1]):
                raise CutError(6, f"after item {index}", f"the member {name.decode('utf-8', 'replace')!r} left")
        order = [name for name, _ in source.members if name in here]
        if [name for name, _ in item.members if name in came] != order:
            raise CutError(6, f"after item {index}", "its members stand in another order")

    def _added(self, index: int, name: bytes) -> bool:
        """Whether a member is what a result got that had none."""
        return name in (b"content", b"output") and self._gets(index)

    def _gets(self, index: int) -> bool:
        return any(part.blocks[0].seq in self.flat.added for part in self.parts[index])

    def _may_change(self, index: int, name: bytes, source: Node, item: Node, *, merged: bool) -> bool:
        """Members whose insides the neutral shape has proven; their elements' literals are compared one by one."""
        if name in (b"content", b"output", b"response") and self._gets(index):
            return True
        if name not in _LISTS:
            return False
        one, two = source.get(name), item.get(name)
        if one is None or two is None:
            return False
        return one.kind == two.kind or (merged and two.kind == "[")

    def _may_leave(self, name: bytes, index: int, came_from: int) -> bool:
        """Members that hold nothing but what left, and ids that tied an item before the seam to its reasoning."""
        if name == b"id":
            blocks = [part.blocks[0] for part in self.parts[index]]
            seam, floor = self.flat.expected.seam, self.flat.old.floor
            early = all(block.message < seam and block.seq > floor for block in blocks)
            return early and self.old.name == "openai_responses"
        return name in _MAY_LEAVE.get(self.old.name, ()) and (came_from, name) not in self.kept

    def _role(self, body: Foreign, number: int) -> str:
        named = body.string(body.history.elements[number].get(b"role"))
        return "user" if named in ("", "function") and body.name == "gemini" else named

    def _merges(self, from_items: list[int]) -> bool:
        roles = {self._role(self.old, number) for number in from_items}
        return len(roles) == 1 and roles.pop() in self.merged

    def _neighbours(self, index: int, last: int, first: int) -> None:
        """Two neighbours of a role that must not have one stand so only where they came so.

        Which of them are folded for a strict server, the comparison of the blocks has shown.
        """
        if not index or self.strict or first == last + 1:
            return
        role = self._role(self.new, index)
        if role in self.merged and self._role(self.new, index - 1) == role:
            raise CutError(5, f"after item {index}", f"two neighbours of the role {role!r}")
