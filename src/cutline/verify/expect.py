"""What a cut must leave: the fate of every block, and from it the messages that must stand in the output.

Law: every decision names the rule of the contract that it follows; nothing is read from the output.
"""

from __future__ import annotations

import base64
import binascii
import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from ..notice import Trace
from .history import ATTACHED, CHECKPOINT, HARNESS, Block, History, Message, Turn
from .tree import Node

SPEECH = ("AskUserQuestion", "ExitPlanMode")
INSTRUCTIONS = ("Skill", "ToolSearch")
TODO = "TodoWrite"
SAY = re.compile(r"(?:^|cutline[_.-]+)say\Z")
_HUMAN_REFUSALS = (
    "The user doesn't want to proceed with this tool use",
    "The user doesn't want to take this action right now",
    "[Request interrupted by user",
)
_FAMILY = r"fable|mythos|opus|sonnet|haiku"
_MODEL = re.compile(
    rf"claude-(?:(?P<family>{_FAMILY})-(?P<major>\d{{1,2}})(?!\d)(?:[-.](?P<minor>\d{{1,2}})(?!\d))?"
    rf"|(?P<old_major>\d)(?:[-.](?P<old_minor>\d))?-(?P<old_family>{_FAMILY}))"
)


@dataclass(frozen=True, slots=True)
class Options:
    """The options of the cut that is proven; see `cutline.cut`."""

    join: str | None
    notice: bool
    trace: Trace
    keep_tools: frozenset[str]
    at: int | str | None
    drop_narration: bool
    session: bool


class Fate(Enum):
    """What happens to a block: it stays, it goes, or it stays as text (a narration block)."""

    STAYS = 1
    GOES = 2
    SPEAKS = 3


class Part:
    """One block of the output: a block that stays, or texts that are joined.

    Attributes:
        blocks: the input's blocks that it is made of.
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


class Out:
    """One message of the output: the input's message whose wrapper it has, and its parts."""

    __slots__ = ("head", "parts", "sources")

    def __init__(self, message: Message, parts: list[Part]) -> None:
        self.head = message
        self.sources = [message]
        self.parts = parts


@dataclass(slots=True)
class Stretch:
    """Messages ``first`` to ``last`` (excluded), what leaves them, and the turn that ends them (None: a bare seam)."""

    first: int
    last: int
    turn: Turn | None
    gone: list[Block]


class Uncut(Exception):
    """The body must come out as it is; the text says why."""


class Expected:
    """What must be left of a history.

    Attributes:
        seam: index of the first message that the cut is made before.
        stretches: what each checkpoint removed, in order.
        fates: by block number.
        outs: the output's messages.
        joined: texts that are joined onto another; blanks: texts of white space that go.

    Raises:
        Uncut: the contract leaves the body as it is.
    """

    def __init__(self, history: History, options: Options) -> None:
        self.history = history
        self.options = options
        if self._thread_continues():
            raise Uncut("the history is held by the server")
        self.model = _read_model(self._top_string(b"model"))
        self.thinking = self._thinking_type()
        self.seam, self.turn = self._seam()
        before = [turn for turn in history.turns if turn.first < self.seam]
        starts = [0, *(turn.first for turn in before)]
        ends = [*starts[1:], self.seam]
        self.stretches = [
            Stretch(first, last, turn, [])
            for first, last, turn in zip(starts, ends, [*before, self.turn], strict=True)
        ]
        self._refuse()
        self.fates = [Fate.STAYS] * len(history.blocks)
        self._decide()
        self._refuse_strangers()
        self.joined = 0
        self.blanks: list[Block] = []
        self.outs = self._build()
        if not self._removes():
            raise Uncut("nothing is left to remove")
        messages = history.messages
        if self.outs[0].head.role != "user" and messages[0].role == "user":
            raise Uncut("the output would not begin with a user message")
        if not options.session and self.outs[-1].head.role == "assistant" != messages[-1].role:
            raise Uncut("the output would end with the agent")

    # The seam

    def _seam(self) -> tuple[int, Turn | None]:
        history, at = self.history, self.options.at
        if at is None:
            if not history.turns:
                raise Uncut("no completed checkpoint")
            return history.turns[-1].first, history.turns[-1]
        place = self._snap(self._asked(at))
        if not place:
            raise Uncut("nothing stands before the place that was asked for")
        return place, None

    def _asked(self, at: int | str) -> int:
        messages = self.history.messages
        if isinstance(at, int):
            place = at
        elif at == "end":
            place = len(messages)
        else:
            turns = [message.index for message in messages if self._human(message)]
            number = len(turns) if at == "last" else int(at.removeprefix("human:"))
            if not 1 <= number <= len(turns):
                raise Uncut("no such human turn")
            place = turns[number - 1]
        if place > len(messages):
            raise Uncut("no such message")
        if place == len(messages) and not self.options.session:
            # The agent must be left something to answer: a last message of results alone stays, with its calls.
            last = next((message for message in reversed(messages) if message.role != "system"), None)
            if last is not None and last.role == "user" and all(
                block.kind == "result" or self.history.blank(block) for block in last.blocks
            ):
                return last.index
        return place

    def _human(self, message: Message) -> bool:
        return message.role == "user" and any(
            block.type in ATTACHED
            or (block.kind == "text" and bool(words := self.history.words(block).lstrip()) and not words.startswith(HARNESS))
            for block in message.blocks
        )

    def _snap(self, place: int) -> int:
        """The nearest place before, where no call is open and no system message stands."""
        messages = self.history.messages
        spans = []
        speakers, hearers = self.history.groups[-1]
        waiting = {message.index for message in speakers} if not hearers else set()
        for block in self.history.blocks:
            if block.kind == "call" and block.partner is not None:
                spans.append((block.message, block.partner.message))
            elif block.kind == "call" and block.message in waiting:
                spans.append((block.message, len(messages)))
        while place > 0:
            opened = min((call for call, result in spans if call < place <= result), default=None)
            if opened is not None:
                place = opened
            elif place < len(messages) and messages[place].role == "system":
                place -= 1
            else:
                break
        return place

    def _refuse(self) -> None:
        for block in self.history.blocks:
            if block.partner is not None and block.message < self.seam <= block.partner.message:
                raise Uncut(f"{block.place} and its result stand on both sides of the seam")
            # What is summed up does not change, so half of such a pair would be left behind it.
            if block.partner is not None and block.seq <= self.history.floor < block.partner.seq:
                raise Uncut(f"{block.place} and its result stand on both sides of a compaction")
        for stretch in self.stretches:
            for checkpoint in stretch.turn.checkpoints if stretch.turn else ():
                caller = checkpoint.node.get(b"caller")
                kind = caller.get(b"type") if caller is not None else None
                if caller is not None and caller.kind == "{" and self._string(kind) != "direct":
                    raise Uncut(f"{checkpoint.place} was called by a program of the provider")

    def _removes(self) -> bool:
        """Whether the cut has a cause: thinking behind it goes only where something else did."""
        last = self.turn.checkpoints[-1].message if self.turn is not None else self.seam - 1
        changed = any(
            fate is not Fate.STAYS and block.message <= last
            for block, fate in zip(self.history.blocks, self.fates, strict=True)
        )
        return changed or any(block.message < self.seam for block in self.blanks)

    def _refuse_strangers(self) -> None:
        """A block of an unknown type that answers a call which goes would be half a pair (WIRE_RULES 0.7)."""
        gone = {block.id for stretch in self.stretches for block in stretch.gone if block.kind == "call"}
        for block in self._between(0, self.seam):
            if block.kind == "unknown" and self._string(block.node.get(b"tool_use_id")) in gone:
                raise Uncut(f"{block.place} is of an unknown type and answers a call that would go")

    def _string(self, node: Node | None) -> str:
        return self.history.string(node) if node is not None and node.kind == '"' else ""

    def _top_string(self, key: bytes) -> str:
        return self._string(self.history.root.get(key))

    def _thread_continues(self) -> bool:
        thread = self.history.root.get(b"thread")
        return thread is not None and self._string(thread.get(b"type")) == "continue"

    def _thinking_type(self) -> str:
        thinking = self.history.root.get(b"thinking")
        return self._string(thinking.get(b"type")) if thinking is not None else ""

    # The fate of every block (rules 3, 4 and 7)

    def _decide(self) -> None:
        history, fates = self.history, self.fates
        for stretch in self.stretches:
            todo = self._last_todo(stretch)
            for block in self._between(stretch.first, stretch.last):
                if block.kind == "thought":
                    fates[block.seq] = self._thought(block)
                elif block.kind in ("call", "result") and not self.kept_pair(block, todo):
                    fates[block.seq] = Fate.GOES
                if fates[block.seq] is Fate.GOES:
                    stretch.gone.append(block)
        for block in self._between(self.seam, len(history.messages)):
            if block.kind == "thought" and self._late_or_turn(block):
                fates[block.seq] = self._thought(block)

    def _between(self, first: int, last: int) -> Iterator[Block]:
        for message in self.history.messages[first:last]:
            for block in message.blocks:
                if block.seq > self.history.floor:
                    yield block

    def _last_todo(self, stretch: Stretch) -> Block | None:
        last = None
        for block in self._between(stretch.first, stretch.last):
            if block.name == TODO and block.type == "tool_use" and block.partner is not None:
                last = block
        return last

    def kept_pair(self, block: Block, todo: Block | None) -> bool:
        """Whether a call or a result before the seam stays (rule 4; WIRE_RULES 9, CLIENTS)."""
        if block.partner is None:
            return False
        call, result = (block, block.partner) if block.kind == "call" else (block.partner, block)
        if call.name in self.options.keep_tools or call is todo:
            return True
        if call.type != "tool_use":
            return call.type == "server_tool_use" and call.name.startswith("tool_search_tool")
        if call.name in SPEECH or call.name in INSTRUCTIONS or SAY.search(call.name):
            return True
        if CHECKPOINT.search(call.name) and self.history.completed(call):
            return True
        content = result.node.get(b"content")
        loads = content is not None and any(self._string(i.get(b"type")) == "tool_reference" for i in content.elements)
        return loads or self.history.result_text(result).startswith(_HUMAN_REFUSALS)

    def narrates(self, block: Block) -> bool:
        """A narration block whose words are kept (WIRE_RULES 1.3)."""
        if block.type != "thinking" or self.options.drop_narration or not self.history.words(block).strip():
            return False
        if self.thinking == "between_tools":
            return True
        signature = self.history.member(block, b"signature")
        return signature is not None and tagged_narration(self.history.string(signature))

    def _thought(self, block: Block) -> Fate:
        return Fate.SPEAKS if self.narrates(block) else Fate.GOES

    def _late_or_turn(self, block: Block) -> bool:
        turn = self.turn
        if turn is not None and block.message <= turn.checkpoints[-1].message:
            return self.thinking != "enabled" or self.model == "bound"
        late = self.options.at is not None or self.options.session
        return late and self.model != "free"

    # The output's messages (rules 1, 3 and 5)

    def _build(self) -> list[Out]:
        outs: list[Out] = []
        systems: list[Message] = []
        for message in self.history.messages:
            if message.role == "system":
                systems.append(message)
                continue
            parts = self._parts(message)
            if parts or not message.blocks:
                outs.append(Out(message, parts))
        # What the human left blank goes first: it would stand between the agent's texts.
        outs = [out for out in outs if out.head.role == "assistant" or not self._only_blanks(out)]
        if self.options.join is not None:
            outs = self._join(outs)
        outs = [out for out in outs if not self._only_blanks(out)]
        outs = self._into_turn(outs, systems)
        return self._seat(outs, systems)

    def _touched(self, message: Message) -> bool:
        return any(self.fates[block.seq] is not Fate.STAYS for block in message.blocks)

    def _parts(self, message: Message) -> list[Part]:
        parts = []
        touched = self._touched(message)
        for block in message.blocks:
            if self.fates[block.seq] is Fate.GOES:
                continue
            empty = block.kind == "text" and not self.history.words(block)
            if empty and touched and message.index < self.seam and block.seq > self.history.floor:
                self.blanks.append(block)
                continue
            parts.append(Part(block, self.fates[block.seq] is Fate.SPEAKS))
        return parts

    def _only_blanks(self, out: Out) -> bool:
        if not out.parts or not all(part.text and self._blank(part) for part in out.parts):
            return False
        blocks = [block for part in out.parts for block in part.blocks]
        if blocks[0].seq < self.history.floor:
            return False
        if out.head.index >= self.seam and not self._touched(out.head):
            return False
        self.joined -= len(blocks) - len(out.parts)
        self.blanks += blocks
        return True

    def _blank(self, part: Part) -> bool:
        return all(not self.history.words(block).strip() for block in part.blocks)

    def _join(self, outs: list[Out]) -> list[Out]:
        turns = [turn for turn in self.history.turns if turn.first < self.seam]
        bound = {index for turn in turns for index in range(turn.first, turn.last + 1)}
        bound |= {message.index for message in self.history.messages if self._summed_up(message)}
        done: list[Out] = []
        for out in outs:
            if out.head.role != "assistant" or out.head.index in bound or out.head.index >= self.seam:
                done.append(out)
                continue
            parts: list[Part] = []
            for part in out.parts:
                if not parts or not self._join_part(parts[-1], part):
                    parts.append(part)
            out.parts = parts
            last = done[-1] if done else None
            joinable = (
                last is not None
                and last.head.role == "assistant"
                and last.head.index not in bound
                and self._others(last.head) == self._others(out.head)
                and bool(last.parts and parts)
            )
            if last is not None and joinable and self._join_part(last.parts[-1], parts[0]):
                last.parts += parts[1:]
                last.sources += out.sources
            else:
                done.append(out)
        return done

    def _join_part(self, one: Part, two: Part) -> bool:
        """Join `two` onto `one`, if the cut made them neighbours and both may be joined."""
        if not (one.text and two.text) or two.blocks[0].seq - one.blocks[-1].seq == 1:
            return False
        mine, yours = self._extras(one), self._extras(two)
        if mine is None or mine != yours:
            return False
        one.blocks += two.blocks
        self.joined += 1
        return True

    def _extras(self, part: Part) -> list[tuple[bytes, bytes]] | None:
        """A text's members beside its text and its cache mark; None where it must not be joined."""
        block = part.blocks[0]
        if part.spoken or block.string:
            return []
        data = self.history.data
        members = sorted((name, data[node.start : node.end]) for name, _, node in block.node.members)
        if any(name == b"citations" and raw != b"null" for name, raw in members):
            return None
        return [(name, raw) for name, raw in members if name not in (b"type", b"text", b"cache_control")]

    def _others(self, message: Message) -> list[tuple[bytes, bytes]]:
        data = self.history.data
        return sorted(
            (name, data[node.start : node.end])
            for name, _, node in message.node.members
            if name not in (b"role", b"content")
        )

    def _into_turn(self, outs: list[Out], systems: list[Message]) -> list[Out]:
        """Kept texts before a turn that must begin with its thinking go behind that thinking (rules 3 and 7)."""
        if self.turn is None:
            return outs
        at = next((i for i, out in enumerate(outs) if out.head.index == self.turn.first), None)
        if at is None or not outs[at].parts or not _thinks(outs[at].parts[0]):
            return outs
        goal, first = outs[at], at
        while first and self._may_enter(outs[first - 1], goal):
            before, after = outs[first - 1].sources[-1].index, outs[first].sources[0].index
            if _serves(outs[first - 1]) and any(before < message.index < after for message in systems):
                break  # a system message stands there rightly
            first -= 1
        if first == at or self.thinking != "enabled":
            return outs
        lead = next((i for i, part in enumerate(goal.parts) if not _thinks(part)), len(goal.parts))
        entering = outs[first:at]
        goal.parts[lead:lead] = [part for out in entering for part in out.parts]
        goal.sources = [source for out in entering for source in out.sources] + goal.sources
        return outs[:first] + outs[at:]

    def _may_enter(self, out: Out, goal: Out) -> bool:
        if out.head.role != "assistant" or self._summed_up(out.head):
            return False
        return self._others(out.head) == self._others(goal.head)

    def _summed_up(self, message: Message) -> bool:
        """Whether a message holds the last compaction, or stands before it: nothing joins it."""
        return bool(message.blocks) and message.blocks[0].seq <= self.history.floor

    def _seat(self, outs: list[Out], systems: list[Message]) -> list[Out]:
        """Put the system messages back: where they stood, or where they are legal (WIRE_RULES 1.2)."""
        firsts = [out.sources[0].index for out in outs]
        behind: dict[int, list[Message]] = {}
        for message in systems:
            place = bisect_left(firsts, message.index)  # so many of `outs` stand before it
            if self._among(message) and not _legal(outs, place, message):
                if _inside(outs, place, message) or place == len(outs) or outs[place].head.role == "assistant":
                    place = next((i for i in range(place, 0, -1) if outs[i - 1].head.role == "user"), place)
                while place < len(outs) and outs[place].head.role == "user":
                    place += 1
            behind.setdefault(place, []).append(message)
        seated: list[Out] = []
        for place in range(len(outs) + 1):
            for message in behind.get(place, ()):
                seated.append(Out(message, [Part(block, False) for block in message.blocks]))
            seated += outs[place : place + 1]
        return seated

    def _among(self, message: Message) -> bool:
        """Whether a message stands where the cut may change things."""
        return message.index < self.seam and all(block.seq > self.history.floor for block in message.blocks)


def _inside(outs: list[Out], place: int, message: Message) -> bool:
    """Whether messages around it became one."""
    return place > 0 and outs[place - 1].sources[-1].index > message.index


def _legal(outs: list[Out], place: int, message: Message) -> bool:
    """A system message stands behind a user turn or a provider's own result, and before an agent's turn or last."""
    if not place or _inside(outs, place, message):
        return False
    heard = outs[place - 1].head.role == "user" or _serves(outs[place - 1])
    return heard and (place == len(outs) or outs[place].head.role == "assistant")


def _thinks(part: Part) -> bool:
    return part.blocks[0].kind == "thought" and not part.spoken


def _serves(out: Out) -> bool:
    """Whether a message ends with a result, as an agent's can only with a provider's own."""
    return bool(out.parts) and out.parts[-1].blocks[0].kind == "result"


def _read_model(name: str) -> str:
    """How a model treats thinking over a changed prefix: ``bound``, ``free``, or ``unknown`` (WIRE_RULES 1.3)."""
    found = _MODEL.search(name)
    if found is None:
        return "unknown"
    family = found["family"] or found["old_family"]
    version = (int(found["major"] or found["old_major"]), int(found["minor"] or found["old_minor"] or 0))
    return "bound" if version >= ((5, 1) if family in ("fable", "mythos") else (5, 5)) else "free"


def tagged_narration(signature: str) -> bool:
    """Whether a signature's envelope says ``narration``: field 2, in it field 1, in it field 8 (WIRE_RULES 1.3)."""
    try:
        envelope = base64.b64decode(signature, validate=True)
        tags = [
            tag
            for outer in _fields(envelope, 2)
            for inner in _fields(outer, 1)
            for tag in _fields(inner, 8)
        ]
    except (binascii.Error, ValueError):
        return False
    return bool(tags) and tags[-1] == b"narration"


def _fields(data: bytes, wanted: int) -> list[bytes]:
    """The length-delimited fields of one number in a protobuf message.

    Raises:
        ValueError: it is no such message.
    """
    found = []
    pos = 0
    while pos < len(data):
        key, pos = _varint(data, pos)
        wire = key & 7
        if wire == 0:
            _, pos = _varint(data, pos)
            continue
        size = {1: 8, 5: 4}.get(wire)
        if wire == 2:
            size, pos = _varint(data, pos)
        if size is None or pos + size > len(data):
            raise ValueError("no protobuf message")
        if wire == 2 and key >> 3 == wanted:
            found.append(data[pos : pos + size])
        pos += size
    return found


def _varint(data: bytes, pos: int) -> tuple[int, int]:
    value = shift = 0
    while pos < len(data) and shift < 64:
        byte = data[pos]
        value |= (byte & 127) << shift
        pos += 1
        if byte < 128:
            return value, pos
        shift += 7
    raise ValueError("no varint")
