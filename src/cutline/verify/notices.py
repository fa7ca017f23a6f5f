"""What a cut must add: each stretch's notice from its own figures, and the contents of results that point back.

Law: the wording is shared with the cut (`cutline.notice`), the figures and what it is made of are counted here.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .. import narration
from ..blocks import ToolCall, address
from ..notice import Loss, Unit, compose, instruction_files
from ..specifics import value_of
from .fates import SAY, Fate, Fates, Stretch
from .history import Block, History, Message

REPORTERS = ("Task", "Agent", "task")
WRITERS = ("Edit", "Write", "MultiEdit", "NotebookEdit")
STUBS = (
    "Wasted call — file unchanged since your last Read",
    "File unchanged since last read. The content from the earlier Read tool_result",
    "Already fetched http",
)
READ_ITSELF = re.compile(r"Called the Read tool with the following input: (\{.*\})")


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
    calls = [block for block in history.blocks if block.type == "tool_use" and block.seq > history.floor]
    repeated = {call.name for call in calls if call.message >= cut.seam and _points_back(history, call.partner)}
    if not repeated:
        return filled
    paths = {
        call.seq: _path(arguments(history, call))
        for call in calls
        if call.name in WRITERS or (call.name in repeated and call.partner is not None)
    }
    named = {block.seq: _attached(history, block) for block in history.blocks if block.seq > history.floor}
    absolute = _absolute({*paths.values(), *(path for given in named.values() for path in given)})
    whole: dict[tuple[str, str, str], Block] = {}  # the last full result of a tool that was asked the same
    written: dict[str, int] = {}  # the last call that wrote to a path, or the human's naming it
    for call in history.blocks:
        for path in filter(None, named.get(call.seq, ())):
            written[absolute.get(path) or path] = call.seq
        if call.seq not in paths:
            continue
        path = absolute.get(paths[call.seq]) or paths[call.seq]
        if call.name in WRITERS and path:
            written[path] = call.seq
        result = call.partner
        if result is None:
            continue
        key = (call.name, path, _question(arguments(history, call), path != ""))
        if not _points_back(history, result):
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


def _points_back(history: History, result: Block | None) -> bool:
    return result is not None and history.result_text(result).startswith(STUBS)


def _path(given: bytes) -> str:
    """The file that arguments name, `.` and `..` resolved; "" where they name none."""
    value = value_of(given)
    path = value[name] if isinstance(value, dict) and (name := _names_file(value)) else ""
    return posixpath.normpath(path) if 0 < len(path) <= 4_096 else path


def _names_file(value: dict[str, Any]) -> str:
    """The argument that names a file; "" where there is none."""
    return next((key for key in ("file_path", "notebook_path") if value.get(key) and type(value[key]) is str), "")


def _attached(history: History, block: Block) -> list[str]:
    """The files that the client read by itself because the human named them, and put into this text."""
    if block.type != "text" or block.role == "assistant":
        return []
    words = history.words(block)
    if not words.startswith("<system-reminder>"):
        return []
    return [_path(given.encode("utf-8", "surrogatepass")) for given in READ_ITSELF.findall(words)]


def _absolute(paths: set[str]) -> dict[str, str]:
    """For each end of an absolute path: that path, or "" where several end so."""
    found: dict[str, str] = {}
    for path in paths:
        at = 0 if path.startswith("/") and 1 < len(path) <= 4_096 else -1
        while at >= 0:
            end = path[at + 1 :]
            found[end] = path if end not in found else ""
            at = path.find("/", at + 1)
    return found


def _question(given: bytes, file: bool) -> str:
    """A call's arguments but for the file, and for a first line that is the file's own, in one spelling."""
    value = value_of(given) if file else None
    if not isinstance(value, dict):
        return address("", "", given)
    name = _names_file(value)
    kept = {key: item for key, item in value.items() if key != name and (key, repr(item)) != ("offset", "1")}
    return address("", "", json.dumps(kept, sort_keys=True).encode())


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
