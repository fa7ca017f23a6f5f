"""What a cut must add: each stretch's notice from its own figures, and the contents of results that point back.

Law: the wording is shared with the cut (`cutline.notice`), the figures and what it is made of are counted here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .. import narration
from ..blocks import ToolCall, address
from ..notice import Loss, Unit, compose, instruction_files
from .fates import SAY, Fate, Fates, Stretch
from .history import Block, History, Message

REPORTERS = ("Task", "Agent")
WRITERS = ("Edit", "Write", "MultiEdit", "NotebookEdit")
STUBS = (
    "Wasted call — file unchanged since your last Read",
    "File unchanged since last read. The content from the earlier Read tool_result",
    "Already fetched http",
)


@dataclass(frozen=True, slots=True)
class Addition:
    """What stands behind a result's own content.

    Attributes:
        text: the notice, or the line that introduces an earlier result.
        raw: the earlier result's content as it was spelled; None for a notice.
    """

    text: str
    raw: bytes | None = None


def notices(cut: Fates) -> tuple[dict[int, Addition], str | None]:
    """The notices by the number of the result that they stand in, and the one that stands in no result."""
    added: dict[int, Addition] = {}
    last: str | None = None
    if not cut.options.notices:
        return added, last
    for number, stretch in enumerate(cut.stretches):
        if not stretch.gone:
            continue
        text = _Composer(cut, stretch, first=number == 0).text()
        if stretch.turn is None:
            last = text
            continue
        result = stretch.turn.checkpoints[-1].partner
        if result is not None:
            added[result.seq] = Addition(text)
    return added, last


class _Composer:
    """The notice of one stretch."""

    def __init__(self, cut: Fates, stretch: Stretch, first: bool) -> None:
        self.cut = cut
        self.history = cut.history
        self.stretch = stretch
        self.first = first

    def text(self) -> str:
        gone, history = self.stretch.gone, self.history
        calls = [block for block in gone if block.kind == "call"]
        files: dict[str, None] = {}
        for call in calls:
            if "ead" in call.name or "iew" in call.name:
                files.update(dict.fromkeys(instruction_files(history.literal(call))))
        loss = Loss(
            calls=len(calls),
            results=sum(block.kind == "result" for block in gone),
            thinking=sum(block.kind == "thought" for block in gone),
            weight=sum(block.size - _mark(history, block) for block in gone),
            files=tuple(files),
            first=self.first,
        )
        reports = [call for call in calls if call.name in REPORTERS]
        others = [c for c in calls if c.name not in REPORTERS and not narration.is_own(c.name)]
        return compose(loss, others, reports, self._units(), self._recall(), self.cut.options.trace)

    def _recall(self) -> str:
        """The tool beside the checkpoint's own that brings results back, if the body declares it."""
        if self.stretch.turn is None:
            return ""
        own = self.stretch.turn.checkpoints[-1].name
        name = own.removesuffix("micro_handoff") + "recall"
        tools = self.history.root.get(b"tools")
        for tool in tools.elements if tools is not None else ():
            named = tool.get(b"name")
            if named is not None and named.kind == '"' and self.history.string(named) == name:
                return name
        return ""

    def _units(self) -> Callable[[Block], Unit]:
        """Reads one removed call with the words around it."""
        segments: list[list[str]] = [[]]
        spoken_in: dict[int, int] = {}  # which segment a message's words close
        for message in self.history.messages[self.stretch.first : self.stretch.last]:
            if message.role != "assistant":
                continue
            segments[-1] += self._words(message)
            spoken_in[message.index] = len(segments) - 1
            if any(block.kind == "call" and not _said(block) for block in self._behind_floor(message)):
                segments.append([])
        turn = self.stretch.turn
        for message in self.history.messages[turn.first : turn.last] if turn is not None else ():
            if message.role == "assistant":
                segments[-1] += self._words(message, whole=True)

        def unit(call: Block) -> Unit:
            number = spoken_in.get(call.message, len(segments) - 1)
            after = segments[number + 1] if number + 1 < len(segments) else []
            return Unit(tool_call(self.history, call), "\n\n".join(segments[number]), "\n\n".join(after))

        return unit

    def _behind_floor(self, message: Message) -> list[Block]:
        return [block for block in message.blocks if block.seq > self.history.floor]

    def _words(self, message: Message, whole: bool = False) -> list[str]:
        """What the agent said in a message; in the `whole` of a checkpoint turn an unanswered `say` is there too."""
        words = []
        for block in self._behind_floor(message):
            if block.kind == "text" or self.cut.narrates(block):
                words.append(self.history.words(block))
            elif _said(block, whole):
                words.append(narration.spoken(block.name, arguments(self.history, block)) or "")
        return words


def _mark(history: History, block: Block) -> int:
    """Bytes of a block's cache mark with its comma: it wanders from request to request, and weighs nothing."""
    members = block.node.members if not block.string else []
    for number, (name, value) in enumerate(members):
        if name == b"cache_control":
            if number:
                return value.end - members[number - 1][1].end
            first = history.data.index(b'"', block.node.start)
            return (history.data.index(b'"', value.end) if len(members) > 1 else block.node.end - 1) - first
    return 0


def _said(block: Block, unanswered: bool = False) -> bool:
    """Whether a block is a call of `say` whose words stand in the output."""
    if block.type != "tool_use" or not SAY.search(block.name):
        return False
    return unanswered or block.partner is not None


def arguments(history: History, call: Block) -> bytes:
    """The raw JSON of a call's input; an absent one is an empty object."""
    node = call.node.get(b"input")
    return history.data[node.start : node.end] if node is not None else b"{}"


def tool_call(history: History, call: Block) -> ToolCall:
    """A call with its result, as the notice reads it."""
    raw, result = arguments(history, call), call.partner
    return ToolCall(
        name=call.name,
        arguments=raw,
        result=history.result_text(result) if result is not None else None,
        error=history.flag(result),
        batch=call.message,
        address=address(call.id, call.name, raw),
    )


def fillings(cut: Fates) -> dict[int, Addition]:
    """What fills the results from the seam on that point back to a removed one (WIRE_RULES 12)."""
    history = cut.history
    filled: dict[int, Addition] = {}
    if not cut.options.notices:
        return filled
    whole: dict[tuple[str, str], Block] = {}  # the last full result of a tool with the same arguments
    written: dict[str, int] = {}  # the last call that wrote to a path
    for call in history.blocks:
        if call.type != "tool_use" or call.seq <= history.floor:
            continue
        path = _path(history, call)
        if call.name in WRITERS and path:
            written[path] = call.seq
        result = call.partner
        if result is None:
            continue
        key = (call.name, address("", call.name, arguments(history, call)))
        if not history.result_text(result).startswith(STUBS):
            if not history.flag(result):
                whole[key] = call
            continue
        earlier = whole.get(key)
        if call.message < cut.seam or earlier is None or written.get(path, -1) > earlier.seq:
            continue
        source = earlier.partner
        if source is not None and cut.of(source) is Fate.GOES:
            there = address(earlier.id, earlier.name, arguments(history, earlier))
            head = f"[cutline] The earlier result, address {there}, which left this context:\n"
            filled[result.seq] = Addition(head, _raw_content(history, source))
    return filled


def _path(history: History, call: Block) -> str:
    given = call.node.get(b"input")
    for key in (b"file_path", b"notebook_path"):
        node = given.get(key) if given is not None else None
        if node is not None and node.kind == '"':
            return history.string(node)
    return ""


def _raw_content(history: History, result: Block) -> bytes:
    """A result's content as spelled, fit for the inside of a string literal."""
    content = result.node.get(b"content")
    if content is None:
        return b""
    if content.kind == '"':
        return history.data[content.start + 1 : content.end - 1]
    insides = []
    for item in content.elements:
        text, type_ = item.get(b"text"), item.get(b"type")
        known = type_ is not None and history.data[type_.start : type_.end] == b'"text"'
        if known and text is not None and text.kind == '"':
            insides.append(history.data[text.start + 1 : text.end - 1])
        else:
            named = history.data[type_.start + 1 : type_.end - 1] if type_ is not None else b""
            insides.append(b"[" + named + b": recall it by the address]")
    return rb"\n".join(insides)
