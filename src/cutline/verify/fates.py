"""What happens to every block: it stays, it goes, or its words stay as text (rules 3, 4 and 7 of the contract).

Law: every decision is taken from the input alone, and names where it comes from.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from enum import Enum

from .history import CHECKPOINT, Block, History, Message, Turn
from .seam import Options, Uncut, find_seam
from .tree import Node

# Whose pairs stay before a seam, by client (CLIENTS.md): what was said through a tool, and what instructs.
CLAUDE_CODE = {"AskUserQuestion": "speech", "ExitPlanMode": "speech", "Skill": "load", "ToolSearch": "load"}
CODEX = {"request_user_input": "speech", "tool_search_call": "load"}
GEMINI_CLI = {"ask_user": "speech", "exit_plan_mode": "speech", "activate_skill": "load"}
OPENCODE = {"question": "speech", "plan_exit": "speech", "skill": "load"}
COPILOT_CLI = {"ask_user": "speech", "task_complete": "speech"}
CLINE = {name: "speech" for name in ("ask_followup_question", "plan_mode_respond", "attempt_completion")}
OTHERS = {"use_skill": "load", "finish": "speech"}
KEPT = CLAUDE_CODE | CODEX | GEMINI_CLI | OPENCODE | COPILOT_CLI | CLINE | OTHERS
TODO = {"TodoWrite", "update_plan", "write_todos", "todowrite"}
SAY = re.compile(r"(?:^|cutline[_.-]+)say\Z")
_QUEUED = "The user sent a new message while you were working:"
_HUMAN_REFUSALS = (
    "The user rejected permission to use this specific tool call",
    "The user doesn't want to proceed with this tool use",
    "The user doesn't want to take this action right now",
    "[Request interrupted by user",
)
_FAMILY = r"fable|mythos|opus|sonnet|haiku"
_MODEL = re.compile(
    rf"claude-(?:(?P<family>{_FAMILY})-(?P<major>\d{{1,2}})(?!\d)(?:[-.](?P<minor>\d{{1,2}})(?!\d))?"
    rf"|(?P<old_major>\d)(?:[-.](?P<old_minor>\d))?-(?P<old_family>{_FAMILY}))"
)
# Models of other makers, whose reasoning is bound to nothing before it (WIRE_RULES 2.3, 3.3, 4.3).
_OTHERS = re.compile(
    r"(?<![a-z0-9])(?:gpt|o1|o3|o4|codex|gemini|gemma|deepseek|qwen|kimi|glm|grok|mistral|ministral|devstral|codestral"
    r"|magistral|mixtral|llama|nova)(?![a-z])"
)


class Fate(Enum):
    """What happens to a block: it stays, it goes, or it is a narration block whose words stay as text."""

    STAYS = 1
    GOES = 2
    SPEAKS = 3


class Stretch:
    """Messages ``first`` to ``last`` (excluded), what leaves them, and the turn that ends them (None: a bare seam)."""

    __slots__ = ("first", "gone", "last", "turn")

    def __init__(self, first: int, last: int, turn: Turn | None) -> None:
        self.first = first
        self.last = last
        self.turn = turn
        self.gone: list[Block] = []


class Fates:
    """The fate of every block of a history.

    Attributes:
        seam: index of the first message behind the cut.
        turn: the checkpoint turn at the seam; None where the place was asked for.
        stretches: what lies between the checkpoints, up to the seam, in order.
        fates: by block number.
        opened: messages with which a tool loop begins that must begin with thinking, where its turn has none.

    Raises:
        Uncut: the contract leaves the body as it is.
    """

    def __init__(self, history: History, options: Options) -> None:
        self.history = history
        self.options = options
        if self._member_of(b"thread", b"type") == "continue":
            raise Uncut("the history is held by the server")
        self.model = read_model(self._string(history.root.get(b"model")))
        self.thinking = self._member_of(b"thinking", b"type")
        self.seam, self.turn = find_seam(history, options)
        earlier = [turn for turn in history.turns if turn.first < self.seam]
        starts = [0, *(turn.first for turn in earlier)]
        ends = [*starts[1:], self.seam]
        self.stretches = [Stretch(*ends_) for ends_ in zip(starts, ends, [*earlier, self.turn], strict=True)]
        self._refuse()
        self.opened = self._opened()
        self.fates = [Fate.STAYS] * len(history.blocks)
        self._called = 0, False  # up to which message `_call_stays` has looked, and what it found
        self._decide()
        self._refuse_strangers()

    def of(self, block: Block) -> Fate:
        """The fate of one block."""
        return self.fates[block.seq]

    def caused(self) -> bool:
        """Whether anything leaves before the seam or in its turn; only then does later thinking have to go."""
        last = self.turn.checkpoints[-1].message if self.turn is not None else self.seam - 1
        return any(block.message <= last and self.of(block) is not Fate.STAYS for block in self.history.blocks)

    def between(self, first: int, last: int) -> Iterator[Block]:
        """The blocks of some messages that stand behind the last compaction."""
        for message in self.history.messages[first:last]:
            for block in message.blocks:
                if block.seq > self.history.floor:
                    yield block

    # What forbids a cut

    def _refuse(self) -> None:
        floor = self.history.floor
        for block in self.history.blocks:
            if block.partner is None or block.kind != "call":
                continue
            if block.message < self.seam <= block.partner.message:
                raise Uncut(f"{block.place} and its result stand on both sides of the seam")
            # What is summed up does not change, so half of such a pair would be left behind it.
            if block.seq < floor < block.partner.seq:
                raise Uncut(f"{block.place} and its result stand on both sides of a compaction")
        for stretch in self.stretches:
            for checkpoint in stretch.turn.checkpoints if stretch.turn else ():
                caller = checkpoint.node.get(b"caller")
                if caller is not None and caller.kind == "{" and self._string(caller.get(b"type")) != "direct":
                    raise Uncut(f"{checkpoint.place} was called by a program that the provider runs")

    def _refuse_strangers(self) -> None:
        """A block of an unknown type that answers a call which goes would be half a pair (WIRE_RULES 0.7)."""
        gone = {block.id for stretch in self.stretches for block in stretch.gone if block.kind == "call"}
        for block in self.between(0, self.seam):
            if block.kind == "unknown" and self._string(block.node.get(b"tool_use_id")) in gone:
                raise Uncut(f"{block.place} is of an unknown type and answers a call that would go")

    # Decisions

    def _decide(self) -> None:
        for stretch in self.stretches:
            todo = self._last_todo(stretch)
            for block in self.between(stretch.first, stretch.last):
                if block.kind == "result" and block.partner is not None and block.partner.message in self.opened:
                    continue
                if block.message in self.opened and (block.kind == "thought" or block.partner is not None):
                    continue
                if block.kind == "thought":
                    if not self._with_call(block) or not self._call_stays(block.message, todo):
                        self.fates[block.seq] = self._thought(block)
                elif block.kind in ("call", "result") and not self._kept_pair(block, todo):
                    self.fates[block.seq] = Fate.GOES
                if self.of(block) is Fate.GOES:
                    stretch.gone.append(block)
        for block in self.between(self.seam, len(self.history.messages)):
            if block.kind == "thought" and self._leaves_tail(block):
                self.fates[block.seq] = self._thought(block)

    def _opened(self) -> set[int]:
        """The steps that must stay whole, so that a loop with manual thinking begins with it (WIRE_RULES 1.3).

        A loop goes back to a person's message; words beside results may begin one, or not.
        """
        if self.thinking != "enabled" or self.model == "bound":
            return set()
        wanting = {turn.first for turn in self.history.turns if turn.first < self.seam}
        if self.turn is not None or self.model == "free":
            wanting.add(self.seam)
        found: set[int] = set()
        groups = self.history.groups
        for number, (speakers, _) in enumerate(groups):
            for message in speakers:
                if message.index in wanting and not _begins_with_thought(message):
                    found |= self._opener(groups, number, message.index)
        return found

    def _opener(self, groups: list[tuple[list[Message], list[Message]]], number: int, before: int) -> set[int]:
        answered_beside_words: set[int] = set()
        for at in range(number, -1, -1):
            speakers = [message for message in groups[at][0] if message.index < before]
            heard = groups[at - 1][1] if at else []
            told = [{block.kind == "result" for block in message.blocks if self._counts(block)} for message in heard]
            spoke_only = not at or any(kinds == {False} for kinds in told)
            words = any(False in kinds for kinds in told)
            if speakers and (spoke_only or words) and _begins_with_thought(speakers[0]):
                return answered_beside_words | {message.index for message in speakers}
            if spoke_only:
                break
            if words:
                answered_beside_words |= {message.index for message in groups[at - 1][0]}
        return set()

    def _counts(self, block: Block) -> bool:
        """Whether a block that a user's message holds says something: no stray result, no blank text."""
        return block.partner is not None if block.kind == "result" else not self.history.blank(block)

    def _last_todo(self, stretch: Stretch) -> Block | None:
        last = None
        for block in self.between(stretch.first, stretch.last):
            if block.name in TODO and block.type == "tool_use" and block.partner is not None:
                last = block
        return last

    def _kept_pair(self, block: Block, todo: Block | None) -> bool:
        """Whether a call or a result before the seam stays (rule 4; WIRE_RULES 9, CLIENTS)."""
        if block.partner is None:
            return False
        call, result = (block, block.partner) if block.kind == "call" else (block.partner, block)
        return self._has_reason(call, result, todo) or self._signs_its_step(call, todo)

    def _signs_its_step(self, call: Block, todo: Block | None) -> bool:
        """Whether it opens a step and has the signature that the step's first staying call lacks (WIRE_RULES 4.3)."""
        calls = [block for block in self.history.messages[call.message].blocks if block.type == "tool_use"]
        if calls[:1] != [call] or not self._is_signed(call):
            return False
        reasons = (other for other in calls[1:] if other.partner and self._has_reason(other, other.partner, todo))
        first = next(reasons, None)
        return first is not None and not self._is_signed(first)

    def _is_signed(self, call: Block) -> bool:
        return self.history.literal(call).endswith(b',"signed":true}')

    def _has_reason(self, call: Block, result: Block, todo: Block | None) -> bool:
        if call.name in self.options.keep_tools or call is todo:
            return True
        if call.type != "tool_use":
            return call.type == "server_tool_use" and call.name.startswith("tool_search_tool")
        if call.name in KEPT or SAY.search(call.name):
            return True
        if CHECKPOINT.search(call.name) and self.history.completed(call):
            return True
        content = result.node.get(b"content")
        items = content.elements if content is not None else []
        if any(self._string(item.get(b"type")) == "tool_reference" for item in items):
            return True
        text = self.history.result_text(result)
        reminded = text.endswith(("</system-reminder>", "</system-reminder>\n"))
        return text.startswith(_HUMAN_REFUSALS) or (reminded and _QUEUED in text)

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

    def _with_call(self, block: Block) -> bool:
        """Whether a thought is of the kind that a server wants back with the calls of its message (WIRE_RULES 2.3)."""
        signature = self.history.member(block, b"signature")
        return signature is not None and self.history.string(signature) == "cutline:with-call"

    def _call_stays(self, message: int, todo: Block | None) -> bool:
        """Whether a call stays that was made in this message, or before it since a person last spoke."""
        start, called = self._called
        for earlier in self.history.messages[start:message]:
            if earlier.role == "user":
                called = called and all(block.kind in ("result", "control") for block in earlier.blocks)
            else:
                called = called or any(b.kind == "call" and self.of(b) is Fate.STAYS for b in earlier.blocks)
        self._called = message, called
        mine = self.history.messages[message].blocks
        if any(block.kind == "call" and self._kept_pair(block, todo) for block in mine):
            return True
        return called and any(block.kind == "text" and self.history.words(block).strip() for block in mine)

    def _leaves_tail(self, block: Block) -> bool:
        """Whether a thought from the seam on leaves: the turn's by the turn's rule, what follows in late cuts."""
        if self._with_call(block):
            return False
        if self.turn is not None and block.message <= self.turn.checkpoints[-1].message:
            return self.thinking not in ("enabled", "kept") or self.model == "bound"
        late = self.options.late or self.options.at is not None or self.options.session
        return late and self.model != "free"

    # Members that steer

    def _string(self, node: Node | None) -> str:
        return self.history.string(node) if node is not None and node.kind == '"' else ""

    def _member_of(self, outer: bytes, inner: bytes) -> str:
        node = self.history.root.get(outer)
        return self._string(node.get(inner)) if node is not None else ""


def _begins_with_thought(message: Message) -> bool:
    return bool(message.blocks) and message.blocks[0].kind == "thought"


def read_model(name: str) -> str:
    """How a model treats thinking over a changed prefix: ``bound``, ``free``, or ``unknown`` (WIRE_RULES 1.3)."""
    found = _MODEL.search(name)
    if found is None:
        return "free" if _OTHERS.search(name.lower()) else "unknown"
    family = found["family"] or found["old_family"]
    version = (int(found["major"] or found["old_major"]), int(found["minor"] or found["old_minor"] or 0))
    return "bound" if version >= ((5, 1) if family in ("fable", "mythos") else (5, 5)) else "free"


def tagged_narration(signature: str) -> bool:
    """Whether a signature's envelope says ``narration``: field 2, in it field 1, in it field 8 (WIRE_RULES 1.3)."""
    try:
        envelope = base64.b64decode(signature, validate=True)
        tags = [tag for outer in _fields(envelope, 2) for inner in _fields(outer, 1) for tag in _fields(inner, 8)]
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
