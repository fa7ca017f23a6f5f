"""The comparison: the output, element by element, against what must be left. Law: bytes decide; the first
difference raises, under the number of the rule that it breaks.

Rules that this file names: 1 what was said, 2 what was added, 3 the checkpoint turn and what follows, 4 what of
the world stays or goes, 5 pairs, 6 bytes that changed for no reason, 7 thinking, 8 what is unknown.
"""

from __future__ import annotations

import json
from typing import NoReturn

from ..errors import CutError, Unreadable
from .expect import Expected, Fate, Out, Part
from .history import Block, History
from .notices import Addition
from .tree import Node, decode

_WRAPPER = 2


class Comparison:
    """Compares one output with what is expected of it."""

    def __init__(self, expected: Expected, added: dict[int, Addition], after: bytes) -> None:
        self.expected = expected
        self.before = expected.history
        self.added = added
        self.data = after
        try:
            self.after = History(after)
        except Unreadable as fault:
            raise CutError(5, "after", f"the output can't be read: {fault}") from None
        self.gone = {
            self.before.literal(block): block
            for block in self.before.blocks
            if expected.fates[block.seq] is not Fate.STAYS
        }
        self.notices = 0
        self.notice_bytes = 0
        self.filled = 0

    def run(self) -> None:
        """Compare everything.

        Raises:
            CutError: at the first difference.
        """
        self._pairs()
        self._around()
        outs, messages = self.expected.outs, self.after.messages
        for number, out in enumerate(outs):
            if number >= len(messages):
                self._missing(out, f"after messages[{number}]")
            self._message(out, number)
            if number and self._untouched_gap(outs[number - 1], out):
                self._gap(
                    self.before.messages[out.head.index - 1].node,
                    out.head.node,
                    messages[number - 1].node,
                    messages[number].node,
                    f"after messages[{number}]",
                )
        if len(messages) > len(outs):
            block = next(iter(messages[len(outs)].blocks), None)
            self._surplus(block, f"after messages[{len(outs)}]")

    # Pairs first: half a pair is worse than a pair too many

    def _pairs(self) -> None:
        owed: dict[tuple[str, str], int] = {}
        for block in self.before.blocks:
            if block.kind in ("call", "result") and block.partner is None:
                if block.message >= self.expected.seam or block.seq < self.before.floor:
                    owed[block.type, block.id] = owed.get((block.type, block.id), 0) + 1
        for block in self.after.blocks:
            if block.kind in ("call", "result") and block.partner is None:
                key = (block.type, block.id)
                owed[key] = owed.get(key, 0) - 1
                if owed[key] < 0:
                    raise CutError(5, f"after {block.place}", f"half a pair: {block.type} {block.id!r} stands alone")

    def _around(self) -> None:
        """Everything outside of `messages` is as it was."""
        old, new = self.before.messages_node, self.after.messages_node
        for one, two, offset in (
            (self.before.data[: old.start], self.data[: new.start], 0),
            (self.before.data[old.end :], self.data[new.end :], new.end),
        ):
            if one != two:
                at = offset + _differs(one, two)
                raise CutError(2, f"after byte {at:,}", f"bytes outside of messages changed: {_show(self.data, at)}")

    def _message(self, out: Out, number: int) -> None:
        message = self.after.messages[number]
        head = out.head
        place = f"after messages[{number}]"
        whole = len(out.sources) == 1 and not self._changed(out)
        if whole and self._slice(message.node) == self._source(head.node):
            return
        for index, part in enumerate(out.parts):
            if index >= len(message.blocks):
                self._lacks(part, f"{place}.content[{index}]", f"the message ends before {part.blocks[0].place}")
            self._role(out, part, message.role, place, message.blocks[index])
            self._part(part, message.blocks[index], f"after {message.blocks[index].place}")
        if len(message.blocks) > len(out.parts):
            block = message.blocks[len(out.parts)]
            self._surplus(block, f"after {block.place}")
        if message.role != head.role:
            self._break(out, place, f"role {message.role!r}, not {head.role!r}")
        string = head.content.kind == '"' and len(out.parts) == 1 and all(
            block.string for part in out.parts for block in part.blocks
        )
        if string != (message.content.kind == '"'):
            self._break(out, place, "a string content became a list, or the reverse")
        self._wrapper(out, message.node, message.content, place)
        self._gaps(out, number)

    def _changed(self, out: Out) -> bool:
        kept = [part.blocks[0].seq for part in out.parts if len(part.blocks) == 1 and not part.spoken]
        return kept != [block.seq for block in out.head.blocks] or any(seq in self.added for seq in kept)

    def _role(self, out: Out, part: Part, role: str, place: str, found: Block) -> None:
        if role != out.head.role:
            self._leftover(found, f"after {found.place}")
            self._lacks(part, place, f"role {role!r}, where {part.blocks[0].place} of role {out.head.role!r} is due")

    def _part(self, part: Part, found: Block, place: str) -> None:
        block = part.blocks[0]
        if part.text and (part.spoken or len(part.blocks) > 1):
            self._text(part, found, place)
        elif block.seq in self.added:
            self._addition(block, found, place)
        elif self.after.literal(found) != self.before.literal(block):
            if block.string and not found.string and self._lifted(block, found):
                return
            self._leftover(found, place)
            self._lacks(part, place, self._difference(block, found))

    def _lifted(self, block: Block, found: Block) -> bool:
        """A string content that stands among blocks now: a text block with the same literal and no more."""
        return self._is_plain_text(found, self._source(block.node))

    def _is_plain_text(self, found: Block, literal: bytes) -> bool:
        members = [(name, self._slice(node)) for name, _, node in found.node.members]
        return members == [(b"type", b'"text"'), (b"text", literal)]

    def _text(self, part: Part, found: Block, place: str) -> None:
        insides = [self._inside(self.before.words_node(block)) for block in part.blocks]
        if found.kind != "text":
            self._leftover(found, place)
            self._lacks(part, place, f"a block of type {found.type!r}, where {part.blocks[0].place} is due")
        node = self.after.words_node(found)
        self._joined(part, insides, self.data[node.start + 1 : node.end - 1], place)
        first = part.blocks[0]
        marks = [mark for block in part.blocks if (mark := block.node.get(b"cache_control")) and not block.string]
        mark = self._source(marks[-1]) if marks else None
        if found.string:
            if not all(block.string for block in part.blocks):
                raise CutError(1, place, "a text block became a string")
            return
        kept = [(b"type", b'"text"'), (b"text", b"")]
        if not part.spoken and not first.string:
            kept = [(n, b"" if n == b"text" else self._source(v)) for n, _, v in first.node.members]
        wanted = [member for member in kept if member[0] != b"cache_control"]
        members = [(n, b"" if n == b"text" else self._slice(v)) for n, _, v in found.node.members]
        if [member for member in members if member[0] != b"cache_control"] != wanted:
            raise CutError(1, place, "the other members of a joined text changed")
        if [raw for name, raw in members if name == b"cache_control"] != ([mark] if mark is not None else []):
            raise CutError(1, place, "the cache mark of a joined text is not the last one among its parts")

    def _joined(self, part: Part, insides: list[bytes], text: bytes, place: str) -> None:
        join = self.expected.options.join or ""
        spellings = [json.dumps(join, ensure_ascii=ascii_)[1:-1].encode("utf-8", "surrogatepass") for ascii_ in (True, False)]
        for spelling in dict.fromkeys(spellings):
            if spelling.join(insides) == text:
                return
        at = _differs(spellings[0].join(insides), text)
        raise CutError(1, place, f"not the words of {part.blocks[0].place} and what follows: {_show(text, at)}")

    # Additions (rule 2)

    def _addition(self, block: Block, found: Block, place: str) -> None:
        add = self.added[block.seq]
        if self.after.literal(found) == self.before.literal(block):
            raise CutError(2, place, "the notice is missing" if add.raw is None else "a result that points back is not filled")
        if found.kind != "result" or found.id != block.id:
            self._leftover(found, place)
            self._fault(block, place, f"{found.type!r} stands where the result of {block.id!r} is due")
        old, new = block.node.get(b"content"), found.node.get(b"content")
        others = [(n, self._source(v)) for n, _, v in block.node.members if n != b"content"]
        if new is None or others != [(n, self._slice(v)) for n, _, v in found.node.members if n != b"content"]:
            self._fault(block, place, "another member of the result than its content changed")
        if old is None or old.kind not in '"[':
            self._ends_with(self._inside_after(new), b"", add, place)
        elif old.kind == '"':
            inside, text = self._inside(old), self._inside_after(new)
            if not text.startswith(inside):
                self._fault(block, place, f"the result's own content changed: {_show(text, _differs(inside, text))}")
            self._ends_with(text[len(inside) :], b"\\n\\n", add, place)
            self._wrapper_of(block, found, old, new, place)
        else:
            kept = [self._source(item) for item in old.elements]
            items = [self._slice(item) for item in new.elements]
            if items[: len(kept)] != kept or len(items) != len(kept) + 1:
                self._fault(block, place, "the result's own content changed, or the notice is no last text block")
            last = new.elements[-1]
            text_node = last.get(b"text")
            if [n for n, _, _ in last.members] != [b"type", b"text"] or text_node is None or (
                self._slice(last.members[0][2]) != b'"text"'
            ):
                raise CutError(2, place, "what was added to the result is no plain text block")
            self._ends_with(self._inside_after(text_node), b"", add, place)
            self._wrapper_of(block, found, old, new, place)
        if add.raw is None:
            self.notices += 1
        else:
            self.filled += 1
        self.notice_bytes += (found.node.end - found.node.start) - block.size

    def _wrapper_of(self, block: Block, found: Block, old: Node, new: Node, place: str) -> None:
        source, node = block.node, found.node
        same = self.before.data[source.start : old.start] == self.data[node.start : new.start]
        if not same or self.before.data[old.end : source.end] != self.data[new.end : node.end]:
            self._fault(block, place, "bytes of the result beside its content changed")

    def _ends_with(self, text: bytes, lead: bytes, add: Addition, place: str) -> None:
        rest = text
        if add.raw is not None:
            if not text.endswith(add.raw):
                raise CutError(2, place, "the filling is not the earlier result's content as it was spelled")
            rest = text[: len(text) - len(add.raw)]
        wanted = decode(b'"' + lead + b'"') + add.text
        given = decode(b'"' + rest + b'"')
        if given != wanted:
            at = next((i for i, (a, b) in enumerate(zip(given, wanted, strict=False)) if a != b), min(len(given), len(wanted)))
            raise CutError(2, place, f"not the text that is due: {given[at : at + 40]!r}, not {wanted[at : at + 40]!r}")

    # Wrappers and gaps

    def _wrapper(self, out: Out, node: Node, content: Node, place: str) -> None:
        head = out.head
        same = self._source_range(head.node.start, head.content.start) == self.data[node.start : content.start]
        if not same or self._source_range(head.content.end, head.node.end) != self.data[content.end : node.end]:
            self._break(out, place, "bytes of the message beside its content changed")

    def _gaps(self, out: Out, number: int) -> None:
        """What stands between two blocks that stood side by side is as it was."""
        blocks = self.after.messages[number].blocks
        for index in range(1, len(out.parts)):
            one, two = out.parts[index - 1].blocks[-1], out.parts[index].blocks[0]
            if two.seq == one.seq + 1 and two.message == one.message and not two.string:
                self._gap(one.node, two.node, blocks[index - 1].node, blocks[index].node, f"after {blocks[index].place}")

    def _untouched_gap(self, one: Out, two: Out) -> bool:
        return two.sources[0] is two.head and one.sources[-1].index == two.head.index - 1

    def _gap(self, one: Node, two: Node, left: Node, right: Node, place: str) -> None:
        if self._source_range(one.end, two.start) != self.data[left.end : right.start]:
            raise CutError(6, place, "the white space before it changed, though nothing was cut there")

    # Blame

    def _surplus(self, found: Block | None, place: str) -> NoReturn:
        if found is not None:
            self._leftover(found, place)
            if found.kind == "text" and self.after.blank(found):
                raise CutError(1, place, "a text of white space is left alone")
        raise CutError(2, place, f"nobody said or returned this: {found.type if found else 'an empty message'}")

    def _leftover(self, found: Block, place: str) -> None:
        """Raise, if what was found is a block that had to go."""
        block = self.gone.get(self.after.literal(found))
        if block is None:
            if found.kind == "text" and not self.after.words(found).strip() and any(
                self.before.literal(blank) == self.after.literal(found) for blank in self.expected.blanks
            ):
                raise CutError(1, place, "a text of white space is left alone")
            return
        if block.kind == "thought":
            raise CutError(7, place, f"{block.type} of before {block.place} is left")
        raise CutError(4, place, f"{block.type} {block.id!r} of before {block.place} is left")

    def _missing(self, out: Out, place: str) -> NoReturn:
        if out.parts:
            self._lacks(out.parts[0], place, f"the output ends before {out.parts[0].blocks[0].place}")
        raise CutError(3, place, f"messages[{out.head.index}] is missing")

    def _lacks(self, part: Part, place: str, difference: str) -> NoReturn:
        self._fault(part.blocks[0], place, difference)

    def _break(self, out: Out, place: str, difference: str) -> NoReturn:
        if out.head.index >= self.expected.seam:
            raise CutError(3, place, difference)
        raise CutError(_WRAPPER, place, difference)

    def _fault(self, block: Block, place: str, difference: str) -> NoReturn:
        rule = {"text": 1, "call": 4, "result": 4, "thought": 7, "attached": 4, "control": 8, "unknown": 8}[block.kind]
        raise CutError(3 if block.message >= self.expected.seam and block.kind != "thought" else rule, place, difference)

    def _difference(self, block: Block, found: Block) -> str:
        one, two = self.before.literal(block), self.after.literal(found)
        at = _differs(one, two)
        return f"{_show(two, at)}, where before {block.place} has {_show(one, at)}"

    # Bytes

    def _source(self, node: Node) -> bytes:
        return self.before.data[node.start : node.end]

    def _source_range(self, start: int, end: int) -> bytes:
        return self.before.data[start:end]

    def _slice(self, node: Node) -> bytes:
        return self.data[node.start : node.end]

    def _inside(self, node: Node) -> bytes:
        return self.before.data[node.start + 1 : node.end - 1]

    def _inside_after(self, node: Node) -> bytes:
        return self.data[node.start + 1 : node.end - 1] if node.kind == '"' else b""


def _differs(one: bytes, two: bytes) -> int:
    """Offset of the first byte that differs."""
    low, high = 0, min(len(one), len(two))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == two[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _show(data: bytes, at: int) -> str:
    return repr(data[at : at + 40].decode("utf-8", "replace"))


def shortest_difference(before: bytes, after: bytes) -> tuple[str, str]:
    """Where two bodies differ first, and how."""
    at = _differs(before, after)
    return f"after byte {at:,}", f"{_show(after, at)}, not {_show(before, at)}"
