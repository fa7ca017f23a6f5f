"""The comparison: the output, element by element, against what must be left. Law: bytes decide; the first
difference raises, under the number of the rule that it breaks.

Numbers given here: 1 what was said, 2 what was added or changed outside of blocks, 3 the checkpoint turn and what
follows, 4 what of the world stays or goes, 5 pairs, 6 bytes that changed for no reason, 7 thinking, 8 what is
unknown.
"""

from __future__ import annotations

import json
from typing import NoReturn

from ..errors import CutError, Unreadable
from .expect import Expected, Out, Part
from .fates import Fate
from .history import Block, History, Message
from .notices import Addition
from .tree import Node, decode

_RULES = {"text": 1, "call": 4, "result": 4, "thought": 7, "attached": 4, "control": 8, "unknown": 8}


class Comparison:
    """Compares one output with what is expected of it.

    Attributes:
        notices, filled: results that carry a notice, and that carry an earlier result's content.
        added_bytes: what these weigh.

    Raises:
        CutError: `after` can't be read.
    """

    def __init__(self, expected: Expected, added: dict[int, Addition], after: bytes) -> None:
        self.expected = expected
        self.old = expected.history
        self.added = added
        try:
            self.new = History(after)
        except Unreadable as fault:
            raise CutError(5, "after", f"the output can't be read: {fault}") from None
        gone = (block for block in self.old.blocks if expected.fates.of(block) is not Fate.STAYS)
        self.gone = {self.old.literal(block): block for block in gone}
        self.blanks = {self.old.literal(block) for block in expected.blanks}
        self.notices = 0
        self.filled = 0
        self.added_bytes = 0

    def run(self) -> None:
        """Compare everything.

        Raises:
            CutError: at the first difference.
        """
        self._pairs()
        self._around()
        outs, systems = self.expected.outs, self.expected.systems
        done = seated = 0
        last: Message | None = None  # the message of the input that the one before was made of, at its end
        for message in self.new.messages:
            place = f"after messages[{message.index}]"
            if message.role == "system":
                if seated == len(systems):
                    self._surplus(message, place)
                source = systems[seated][0]
                self._system(*systems[seated], done, message, place)
                seated += 1
                first = source
            else:
                if done == len(outs):
                    self._surplus(message, place)
                self._message(outs[done], message, place)
                first, source = outs[done].head, outs[done].sources[-1]
                if outs[done].sources[0] is not first:
                    last = None
                done += 1
            if last is not None and first.index == last.index + 1:
                behind = self.new.messages[message.index - 1].node
                self._gap(last.node, first.node, behind, message.node, place)
            last = source
        where = f"after messages[{len(self.new.messages)}]"
        if done < len(outs):
            part = outs[done].parts[0] if outs[done].parts else None
            if part is not None:
                self._fault(part.blocks[0], where, f"the output ends before {part.blocks[0].place}")
            raise CutError(3, where, f"the output ends before messages[{outs[done].head.index}]")
        if seated < len(systems):
            raise CutError(1, where, f"the system message messages[{systems[seated][0].index}] is missing")

    # Pairs first: half a pair is worse than a pair too many

    def _pairs(self) -> None:
        owed: dict[tuple[str, str], int] = {}
        for block in self.old.blocks:
            outside = block.message >= self.expected.seam or block.seq < self.old.floor
            if block.kind in ("call", "result") and block.partner is None and outside:
                owed[block.type, block.id] = owed.get((block.type, block.id), 0) + 1
        for block in self.new.blocks:
            if block.kind in ("call", "result") and block.partner is None:
                left = owed.get((block.type, block.id), 0)
                if not left:
                    difference = f"half a pair: {block.type} {block.id!r} stands alone"
                    raise CutError(5, f"after {block.place}", difference)
                owed[block.type, block.id] = left - 1

    def _around(self) -> None:
        """Everything outside of `messages` is as it was."""
        old, new = self.old.messages_node, self.new.messages_node
        for one, two, offset in (
            (self.old.data[: old.start], self.new.data[: new.start], 0),
            (self.old.data[old.end :], self.new.data[new.end :], new.end),
        ):
            if one != two:
                at = differs(one, two)
                difference = f"bytes outside of messages changed: {show(two, at)}, not {show(one, at)}"
                raise CutError(2, f"after byte {offset + at:,}", difference)

    # Messages

    def _system(self, source: Message, places: set[int], done: int, message: Message, place: str) -> None:
        if self.old.source(source.node) != self.new.source(message.node):
            self._break(source, 1, place, f"the system message messages[{source.index}] changed")
        if done not in places:
            self._break(source, 1, place, f"the system message messages[{source.index}] stands in another place")

    def _message(self, out: Out, message: Message, place: str) -> None:
        head, parts = out.head, out.parts
        kept = [part.blocks[0].seq for part in parts if len(part.blocks) == 1 and not part.spoken]
        whole = kept == [block.seq for block in head.blocks] and not any(seq in self.added for seq in kept)
        if whole and self.new.source(message.node) == self.old.source(head.node):
            return
        for part, found in zip(parts, message.blocks, strict=False):
            if message.role != head.role:
                self._leftover(found, f"after {found.place}")
                difference = f"role {message.role!r}, where {part.blocks[0].place} of {head.role!r} is due"
                self._fault(part.blocks[0], place, difference)
            self._part(part, found, f"after {found.place}")
        if len(message.blocks) < len(parts):
            due = parts[len(message.blocks)].blocks[0]
            self._fault(due, place, f"the message ends before {due.place}")
        if len(message.blocks) > len(parts):
            self._surplus(message, place, len(parts))
        if message.role != head.role:
            self._break(head, 2, place, f"role {message.role!r}, not {head.role!r}")
        string = all(block.string for part in parts for block in part.blocks) and len(parts) == 1
        if string != (message.content.kind == '"'):
            self._break(head, 2, place, "a string content became a list, or the reverse")
        if self._beside(head.node, head.content, message.node, message.content):
            self._break(head, 2, place, "bytes of the message beside its content changed")
        self._gaps(out, message)

    def _part(self, part: Part, found: Block, place: str) -> None:
        block = part.blocks[0]
        if part.spoken or len(part.blocks) > 1:
            self._text(part, found, place)
        elif block.seq in self.added:
            self._addition(block, found, place)
        elif self.new.literal(found) != self.old.literal(block):
            members = [(name, self.new.source(node)) for name, node in found.node.members]
            if block.string and members == [(b"type", b'"text"'), (b"text", self.old.literal(block))]:
                return  # a string content among blocks
            self._leftover(found, place)
            one, two = self.old.literal(block), self.new.literal(found)
            at = differs(one, two)
            self._fault(block, place, f"{show(two, at)}, where before {block.place} has {show(one, at)}")

    def _text(self, part: Part, found: Block, place: str) -> None:
        """A text that was joined, or a narration block that became a text."""
        first = part.blocks[0]
        if found.kind != "text":
            self._leftover(found, place)
            self._unsaid(first, place, f"a block of type {found.type!r}, where {first.place} is due as text")
        insides = [self.old.source(self.old.words_node(block))[1:-1] for block in part.blocks]
        text = self.new.source(self.new.words_node(found))[1:-1]
        spellings = _spellings(self.expected.options.join or "")
        if not any(spelling.join(insides) == text for spelling in spellings):
            at = differs(spellings[0].join(insides), text)
            self._unsaid(first, place, f"not the words of {first.place} and what it is joined with: {show(text, at)}")
        if found.string and all(block.string for block in part.blocks):
            return
        if part.spoken or first.string:
            kept = [(b"type", b'"text"'), (b"text", b"")]
        else:
            kept = [(name, b"" if name == b"text" else self.old.source(node)) for name, node in first.node.members]
        members = [(name, b"" if name == b"text" else self.new.source(node)) for name, node in found.node.members]
        if _unmarked(members) != _unmarked(kept):
            self._unsaid(first, place, "the members of a joined text beside its words changed")
        marks = [node for block in part.blocks if (node := block.node.get(b"cache_control")) is not None]
        mark = [self.old.source(node) for node in marks[-1:]]
        if [raw for name, raw in members if name == b"cache_control"] != mark:
            self._unsaid(first, place, "the cache mark is not the last one among the joined texts")

    def _gaps(self, out: Out, message: Message) -> None:
        """What stands between two blocks that stood side by side is as it was."""
        for index in range(1, len(out.parts)):
            one, two = out.parts[index - 1].blocks[-1], out.parts[index].blocks[0]
            if two.seq == one.seq + 1 and two.message == one.message:
                left, right = message.blocks[index - 1], message.blocks[index]
                self._gap(one.node, two.node, left.node, right.node, f"after {right.place}")

    def _gap(self, one: Node, two: Node, left: Node, right: Node, place: str) -> None:
        if self.old.data[one.end : two.start] != self.new.data[left.end : right.start]:
            raise CutError(6, place, "the white space before it changed, though nothing was cut there")

    def _beside(self, node: Node, content: Node, new: Node, new_content: Node) -> bool:
        """Whether a literal's bytes around its content differ."""
        before = self.old.data[node.start : content.start] != self.new.data[new.start : new_content.start]
        return before or self.old.data[content.end : node.end] != self.new.data[new_content.end : new.end]

    # Additions (rule 2; WIRE_RULES 10)

    def _addition(self, block: Block, found: Block, place: str) -> None:
        add = self.added[block.seq]
        if self.new.literal(found) == self.old.literal(block):
            what = "the notice is missing" if add.raw is None else "a result that points back is not filled"
            raise CutError(2, place, what)
        if found.kind != "result" or found.id != block.id:
            self._leftover(found, place)
            self._fault(block, place, f"{found.type!r} stands where the result of {block.id!r} is due")
        old, new = block.node.get(b"content"), found.node.get(b"content")
        others = [(name, self.old.source(node)) for name, node in block.node.members if name != b"content"]
        if new is None or others != [
            (name, self.new.source(node)) for name, node in found.node.members if name != b"content"
        ]:
            self._fault(block, place, "a member of the result beside its content changed")
        if old is None or old.kind not in '"[':
            self._ends(self.new.source(new), b"", add, place)
        else:
            if self._beside(block.node, old, found.node, new):
                self._fault(block, place, "bytes of the result beside its content changed")
            if old.kind == '"':
                self._in_string(block, old, new, add, place)
            else:
                self._in_list(block, old, new, add, place)
        if add.raw is None:
            self.notices += 1
        else:
            self.filled += 1
        self.added_bytes += found.size - block.size

    def _in_string(self, block: Block, old: Node, new: Node, add: Addition, place: str) -> None:
        inside, text = self.old.source(old)[:-1], self.new.source(new)
        if not text.startswith(inside):
            if inside[1:] in text:
                raise CutError(2, place, "something was added before the result's own content")
            at = differs(inside, text)
            self._fault(block, place, f"the result's own content changed: {show(text, at)}, not {show(inside, at)}")
        self._ends(b'"' + text[len(inside) :], b"\n\n", add, place)

    def _in_list(self, block: Block, old: Node, new: Node, add: Addition, place: str) -> None:
        kept = [self.old.source(item) for item in old.elements]
        items = [self.new.source(item) for item in new.elements]
        if items[: len(kept)] != kept:
            if [item for item in items if item in kept] == kept:
                raise CutError(2, place, "something was added before the result's own content")
            self._fault(block, place, "the result's own content changed")
        members = [(name, node) for item in new.elements[len(kept) :] for name, node in item.members]
        if [name for name, _ in members] != [b"type", b"text"] or self.new.source(members[0][1]) != b'"text"':
            raise CutError(2, place, "what was added to the result is not one plain text block")
        self._ends(self.new.source(members[1][1]), b"", add, place)

    def _ends(self, literal: bytes, lead: bytes, add: Addition, place: str) -> None:
        """Raise, unless a string literal is the lead, the addition's text, and the filling as it was spelled."""
        raw = (add.raw or b"") + b'"'
        if not literal.startswith(b'"') or not literal.endswith(raw):
            raise CutError(2, place, "what was added is not the earlier result's content as it was spelled")
        given, wanted = decode(literal[: -len(raw)] + b'"'), lead.decode() + add.text
        if given != wanted:
            at = differs(given.encode("utf-8", "surrogatepass"), wanted.encode("utf-8", "surrogatepass"))
            difference = f"not the text that is due, from byte {at:,} of it: {given[:at][-20:]!r} …"
            raise CutError(2, place, difference)

    # Blame

    def _surplus(self, message: Message, place: str, index: int = 0) -> NoReturn:
        for found in message.blocks[index:]:
            self._leftover(found, f"after {found.place}")
        raise CutError(2, place, "something stands here that nobody said or returned")

    def _leftover(self, found: Block, place: str) -> None:
        """Raise, if what was found is a block that had to go."""
        literal = self.new.literal(found)
        block = self.gone.get(literal)
        if block is not None:
            rule = 7 if block.kind == "thought" else 4
            raise CutError(rule, place, f"{block.type} of before {block.place} is left")
        if literal in self.blanks:
            raise CutError(1, place, "a text of white space is left alone")

    def _break(self, head: Message, rule: int, place: str, difference: str) -> NoReturn:
        raise CutError(3 if head.index >= self.expected.seam else rule, place, difference)

    def _unsaid(self, block: Block, place: str, difference: str) -> NoReturn:
        raise CutError(3 if block.message >= self.expected.seam else 1, place, difference)

    def _fault(self, block: Block, place: str, difference: str) -> NoReturn:
        behind = block.message >= self.expected.seam and block.kind != "thought"
        raise CutError(3 if behind else _RULES[block.kind], place, difference)


def _spellings(text: str) -> list[bytes]:
    """How a joiner may be spelled as JSON: raw, or escaped."""
    raw = json.dumps(text, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass")
    return [raw, json.dumps(text)[1:-1].encode()]


def _unmarked(members: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    return [member for member in members if member[0] != b"cache_control"]


def differs(one: bytes, two: bytes) -> int:
    """Offset of the first byte that differs."""
    low, high = 0, min(len(one), len(two))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == two[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def show(data: bytes, at: int) -> str:
    """A few bytes from an offset on, fit for one line."""
    return repr(data[at : at + 40].decode("utf-8", "replace"))
