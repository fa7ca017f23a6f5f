"""The messages that must stand in the output: what stays, joined where it may be, blank texts gone.

Law: built from the fates alone (rules 1, 3 and 5 of the contract). System messages are kept apart: they stay
where they stood, or have a few legal places where theirs became illegal.
"""

from __future__ import annotations

from bisect import bisect_left

from .fates import Fate, Fates
from .history import Block, History, Message
from .seam import Options, Uncut


class Part:
    """One block of the output.

    Attributes:
        blocks: the input's blocks that it is made of: one, or texts that are joined.
        spoken: a narration block that became a text.
    """

    __slots__ = ("blocks", "spoken")

    def __init__(self, block: Block, spoken: bool) -> None:
        self.blocks = [block]
        self.spoken = spoken

    @property
    def text(self) -> bool:
        """Whether it is a text in the output."""
        return self.spoken or self.blocks[0].kind == "text"

    @property
    def thinks(self) -> bool:
        """Whether it is still a thought."""
        return self.blocks[0].kind == "thought" and not self.spoken


class Out:
    """One message of the output.

    Attributes:
        head: the input's message whose wrapper it has.
        sources: the input's messages that it is made of, in order.
    """

    __slots__ = ("head", "parts", "sources")

    def __init__(self, message: Message, parts: list[Part]) -> None:
        self.head = message
        self.sources = [message]
        self.parts = parts


class Expected:
    """What must be left of a history.

    Attributes:
        outs: the output's messages without system messages.
        systems: the system messages, each with the places where it may stand: how many of `outs` before it.
        meets: whether words meet the message behind the seam, whatever it holds: always in a format that merges
            neighbours, never in one that does not; None for Anthropic's rule.
        items: by block, the item of another format that it stands in: there words leave theirs for another only where
            nothing else of it stays.
        folds: by block, the other members of its item, where a strict server wants the agent's neighbours folded.
        blanks: texts of white space that go.
        joined: how many texts are joined onto another.

    Raises:
        Uncut: the contract leaves the body as it is.
    """

    def __init__(
        self,
        history: History,
        options: Options,
        *,
        meets: bool | None = None,
        items: list[int] | None = None,
        folds: list[bytes] | None = None,
    ) -> None:
        self.history = history
        self.options = options
        self.meets = meets
        self.items = items
        self.folds = folds
        self.fates = Fates(history, options)
        self.seam = self.fates.seam
        self.joined = 0
        self.blanks: list[Block] = []
        system = [message for message in history.messages if message.role == "system"]
        self.outs = self._build(system)
        self.systems = self._seats(system)
        if not self.fates.caused() and not any(block.message < self.seam for block in self.blanks):
            raise Uncut("nothing is left to remove")
        spoken = [message for message in history.messages if message.role != "system"]
        if not self.outs or (self.outs[0].head.role != "user" and spoken[0].role == "user"):
            raise Uncut("the output would not begin with a user message")
        if not options.session and self.outs[-1].head.role == "assistant" and spoken[-1].role != "assistant":
            raise Uncut("the output would end with the agent")

    def _build(self, system: list[Message]) -> list[Out]:
        outs = []
        for message in self.history.messages:
            if message.role != "system":
                parts = self._parts(message)
                if parts or not message.blocks:
                    outs.append(Out(message, parts))
        # What the human left blank goes first: it would stand between the agent's texts.
        outs = [out for out in outs if out.head.role == "assistant" or not self._only_blanks(out)]
        if self.options.join is not None:
            outs = self._join(outs)
        for out in outs:
            if len(out.sources) > 1:
                out.parts = [part for part in out.parts if not self._empty(part)]
        outs = [out for out in outs if not self._only_blanks(out)]
        return self._into_turn(outs, system) if self.folds is None else self._folded(outs, self.folds)

    def _touched(self, message: Message) -> bool:
        return any(self.fates.of(block) is not Fate.STAYS for block in message.blocks)

    def _parts(self, message: Message) -> list[Part]:
        parts = []
        touched = message.index < self.seam and self._touched(message)
        for block in message.blocks:
            if self.fates.of(block) is not Fate.GOES:
                part = Part(block, self.fates.of(block) is Fate.SPEAKS)
                if not touched or not self._empty(part):
                    parts.append(part)
        return parts

    def _empty(self, part: Part) -> bool:
        """Whether a part is an empty text, which goes wherever its message is touched; it is counted."""
        block = part.blocks[0]
        if len(part.blocks) > 1 or block.kind != "text" or block.seq < self.history.floor or self.history.words(block):
            return False
        self.blanks.append(block)
        return True

    def _only_blanks(self, out: Out) -> bool:
        """Whether nothing but white space would be left of a message; then it goes, and is counted.

        From the seam on only what the cut itself laid bare goes.
        """
        blocks = [block for part in out.parts for block in part.blocks]
        if not blocks or not all(self.history.blank(block) for block in blocks) or self._summed_up(out.head):
            return False
        if out.head.index >= self.seam and not self._touched(out.head):
            return False
        self.joined -= len(blocks) - len(out.parts)
        self.blanks += blocks
        return True

    def _summed_up(self, message: Message) -> bool:
        """Whether a message holds the last compaction, or stands before it: nothing joins it."""
        return bool(message.blocks) and message.blocks[0].seq <= self.history.floor

    # Joining

    def _join(self, outs: list[Out]) -> list[Out]:
        bound = {
            index for turn in self.history.turns if turn.first < self.seam for index in range(turn.first, turn.last + 1)
        }
        bound |= self.fates.opened
        done: list[Out] = []
        last: Out | None = None  # the message before, if it may be joined
        for out in outs:
            free = out.head.role == "assistant" and out.head.index < self.seam and out.head.index not in bound
            if not free or self._summed_up(out.head):
                done.append(out)
                last = None
                continue
            parts: list[Part] = []
            held = [self._item(part) for part in out.parts]
            for part in out.parts:
                if not parts or not self._join_parts(parts[-1], part, held):
                    parts.append(part)
            out.parts = parts
            alike = last is not None and self._others(last.head) == self._others(out.head)
            if last is not None and alike and last.parts and parts and self._join_parts(last.parts[-1], parts[0], held):
                last.parts += parts[1:]
                last.sources += out.sources
            else:
                done.append(out)
                last = out
        return done

    def _item(self, part: Part) -> int:
        return self.items[part.blocks[0].seq] if self.items is not None else 0

    def _join_parts(self, one: Part, two: Part, held: list[int]) -> bool:
        """Join `two` onto `one`, if the cut made them neighbours and both may be joined.

        `held` are the items of all parts of the message that `two` stood in.
        """
        if self.items is not None:
            home = self.items[two.blocks[0].seq]
            if self.items[one.blocks[-1].seq] != home and held.count(home) > 1:
                return False
        if not (one.text and two.text) or two.blocks[0].seq - one.blocks[-1].seq == 1:
            return False
        mine = self._extras(one)
        if mine is None or mine != self._extras(two):
            return False
        one.blocks += two.blocks
        self.joined += 1
        return True

    def _extras(self, part: Part) -> list[tuple[bytes, bytes]] | None:
        """A text's members beside its text and its cache mark; None where it must not be joined."""
        block = part.blocks[0]
        if part.spoken or block.string:
            return []
        members = sorted((name, self.history.source(node)) for name, node in block.node.members)
        if any(name == b"citations" and raw != b"null" for name, raw in members):
            return None
        return [(name, raw) for name, raw in members if name not in (b"type", b"text", b"cache_control")]

    def _others(self, message: Message) -> list[tuple[bytes, bytes]]:
        """A message's members beside its role and content."""
        return sorted(
            (name, self.history.source(node))
            for name, node in message.node.members
            if name not in (b"role", b"content")
        )

    def _into_turn(self, outs: list[Out], system: list[Message]) -> list[Out]:
        """Kept texts before a turn that must begin with its thinking go behind that thinking (rules 3 and 7)."""
        turn = self.fates.turn
        if self.meets is False or (self.meets is None and (turn is None or self.fates.thinking != "enabled")):
            return outs
        at = next((number for number, out in enumerate(outs) if out.head.index == self.seam), None)
        if at is None or not outs[at].parts or not outs[at].parts[0].thinks:
            return outs
        goal, first = outs[at], at
        while first and self._may_enter(outs[first - 1], goal):
            before, behind = outs[first - 1].sources[-1].index, outs[first].sources[0].index
            if _serves(outs[first - 1]) and any(before < message.index < behind for message in system):
                break  # a system message stands there rightly
            first -= 1
        lead = next((number for number, part in enumerate(goal.parts) if not part.thinks), len(goal.parts))
        goal.parts[lead:lead] = [part for out in outs[first:at] for part in out.parts]
        goal.sources = [source for out in outs[first:at] for source in out.sources] + goal.sources
        return outs[:first] + outs[at:]

    def _folded(self, outs: list[Out], others: list[bytes]) -> list[Out]:
        """The agent's neighbours as one message: all words in front of the last one's calls, behind its thoughts."""
        done: list[Out] = []
        for number, out in enumerate(outs):
            last = done[-1] if done else None
            if (
                last is not None
                and not (_calls(out) and self._human_is_next(outs[number + 1 :]))
                and last.head.role == out.head.role == "assistant"
                and last.sources[-1].index < self.seam
                and not self._summed_up(last.sources[-1])
                and all(part.text for part in last.parts)
                and last.parts
                and out.parts
                and others[last.parts[-1].blocks[0].seq] == others[out.parts[0].blocks[0].seq]
            ):
                lead = next((number for number, part in enumerate(out.parts) if not part.thinks), len(out.parts))
                out.parts[lead:lead] = last.parts
                out.sources = [*last.sources, *out.sources]
                done[-1] = out
            else:
                done.append(out)
        return done

    def _human_is_next(self, outs: list[Out]) -> bool:
        """Whether the next message that a strict server counts is a human's: not one with calls, nor their results."""
        for out in outs:
            if out.head.role == "assistant" and not _calls(out):
                return False
            if out.head.role == "user" and any(part.blocks[0].kind not in ("result", "control") for part in out.parts):
                return True
        return False

    def _may_enter(self, out: Out, goal: Out) -> bool:
        if out.head.role != "assistant" or self._summed_up(out.head):
            return False
        return self._others(out.head) == self._others(goal.head)

    # System messages (WIRE_RULES 1.2)

    def _seats(self, system: list[Message]) -> list[tuple[Message, set[int]]]:
        """Where each system message may stand: its own place, if that is legal; else the nearest legal ones.

        Legal is: behind a user's turn or a provider's own result, and before an agent's turn or last.
        """
        outs = self.outs
        firsts = [out.sources[0].index for out in outs]
        heard = [out.head.role == "user" or _serves(out) for out in outs]
        earlier = [0]  # for each place, the nearest before it where somebody was heard; 0 for none
        for number, there in enumerate(heard):
            earlier.append(number + 1 if there else earlier[-1])
        run = [len(outs)] * (len(outs) + 1)  # for each place, the end of the run of user messages that begins there
        for number in range(len(outs) - 1, -1, -1):
            run[number] = run[number + 1] if outs[number].head.role == "user" else number
        seats = []
        for message in system:
            place = bisect_left(firsts, message.index)
            inside = place > 0 and outs[place - 1].sources[-1].index > message.index
            there = place > 0 and not inside and heard[place - 1]
            speaks = inside or run[place] == place
            fixed = message.index >= self.seam or self._summed_up(message)
            places = {place}
            if not fixed and not (there and speaks):
                places = {run[place]} if not speaks else set()
                if not there or outs[place - 1].head.role != "user":
                    places.add(earlier[place - (inside or there)])
                places = (places - {0}) or {place}
            seats.append((message, places))
        return seats


def _calls(out: Out) -> bool:
    return any(part.blocks[0].kind == "call" for part in out.parts)


def _serves(out: Out) -> bool:
    """Whether a message ends with a result, as an agent's can only with a provider's own."""
    return bool(out.parts) and out.parts[-1].blocks[0].kind == "result"
