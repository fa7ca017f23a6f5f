"""Carry the session out and build its wire body. Law: words come from `script`, replies from the world.

The same program, script and tools give the same bytes, on every run and wherever the folder lies: replies
hold no times, no absolute paths, and no order that a directory or a hash decides.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import CutlineError
from . import commands, program, prompt
from .script import HANDOFF, SCRIPT, SPECIFICS, Agent, Call, Human
from .tools import Workshop

MODEL = "claude-opus-4-6"
STAMP = "Checkpoint written. The record keeps all that went before; go on. Working directory: crumb."


@dataclass(frozen=True, slots=True)
class Specific:
    """Something exact that the agent said before the seam and that stands in no document.

    Attributes:
        text: as the agent wrote it.
        message: index in `messages` of the first message that says it.
    """

    text: str
    message: int


@dataclass(frozen=True, slots=True)
class Craft:
    """What becomes of two commands that were reached by iteration.

    Attributes:
        one_liner: the command that was saved nowhere: its text stands in the arguments of one call only.
        call: id of that call.
        recipe: path of the one that was saved, relative to the project; the document's `recipes` name it.
        content: the recipe file's text.
    """

    one_liner: str
    call: str
    recipe: str
    content: str


@dataclass(frozen=True, slots=True)
class BroughtBack:
    """A removed result that is worth reading again.

    Attributes:
        call: id of its call.
        phrase: what it is, to be printed.
    """

    call: str
    phrase: str


@dataclass(frozen=True, slots=True)
class Demo:
    """A session that was carried out.

    Attributes:
        body: an Anthropic Messages request body, compact JSON; the last message is the human's.
        project: the folder that the session worked in, with all that it wrote there.
        steps: how many tool calls were carried out, the checkpoint among them.
        specifics, craft, brought_back: what a cut of this body is to be shown by.
    """

    body: bytes
    project: Path
    steps: int
    specifics: tuple[Specific, ...]
    craft: Craft
    brought_back: BroughtBack


def build(directory: Path) -> Demo:
    """Carry the session out.

    Args:
        directory: an empty folder, or one yet to be made; the project comes to stand in it as ``crumb``.

    Raises:
        CutlineError: a reply is not what the session's words say of it, a command can't be run, or the folder
            can't be used.
    """
    project = directory / "crumb"
    try:
        if project.exists():
            raise CutlineError(f"{project} exists already; give the demo an empty folder")
        program.write(project)
        return _Recorder(Workshop(project, directory / "bin")).play(project)
    except OSError as error:
        raise CutlineError(
            f"the demo could not work in {directory}: {error.strerror or error}; give it another folder"
        ) from None


class _Recorder:
    """Plays the script and writes down the messages."""

    def __init__(self, workshop: Workshop) -> None:
        self._workshop = workshop
        self._messages: list[dict[str, Any]] = []
        self._tags: dict[str, str] = {}
        self._steps = 0
        self._thoughts = 0

    def play(self, project: Path) -> Demo:
        for turn in SCRIPT:
            if isinstance(turn, Human):
                self._messages.append({"role": "user", "content": [{"type": "text", "text": turn.says}]})
            else:
                self._agent(turn)
        body = {
            "model": MODEL,
            "max_tokens": 8192,
            "system": prompt.SYSTEM,
            "tools": prompt.TOOLS,
            "messages": self._messages,
        }
        return Demo(
            json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8"),
            project,
            self._steps,
            tuple(Specific(text, self._saying(text)) for text in SPECIFICS),
            Craft(commands.TRY_3, self._tags["craft"], commands.RECIPE, commands.RECIPE_TEXT),
            BroughtBack(self._tags["pairs"], "every refund of March that did not undo its sale, one by one"),
        )

    def _agent(self, turn: Agent) -> None:
        content: list[dict[str, Any]] = []
        results: list[dict[str, Any]] = []
        if turn.thinks:
            self._thoughts += 1
            signature = f"not-a-real-signature-{self._thoughts}"
            content.append({"type": "thinking", "thinking": turn.thinks, "signature": signature})
        content.append({"type": "text", "text": turn.says})
        for call in turn.calls:
            self._steps += 1
            id = f"toolu_demo_{self._steps:02}"
            if call.tag:
                self._tags[call.tag] = id
            content.append({"type": "tool_use", "id": id, "name": call.tool, "input": call.arguments})
            results.append(self._result(id, call))
        self._messages.append({"role": "assistant", "content": content})
        if turn.hint:
            results.append({"type": "text", "text": turn.hint})
        if results:
            self._messages.append({"role": "user", "content": results})

    def _result(self, id: str, call: Call) -> dict[str, Any]:
        text, error = STAMP, False
        if call.tool != HANDOFF:
            text, error = self._workshop.carry_out(call.tool, call.arguments)
        what = "failed" if error and not call.fails else "did not fail" if call.fails and not error else ""
        for expected in call.shows:
            if expected not in text:
                what = what or f"did not show {_short(expected)}"
        if what:
            raise CutlineError(
                f"step {self._steps} of the demo {what}: {_head(call)} gave {_short(text)}; "
                "run it with a POSIX shell, awk, grep and sort in PATH"
            )
        result: dict[str, Any] = {"type": "tool_result", "tool_use_id": id, "content": text}
        return result | {"is_error": True} if error else result

    def _saying(self, text: str) -> int:
        """Index of the first message in which the agent says a text."""
        for number, message in enumerate(self._messages):
            blocks = message["content"] if message["role"] == "assistant" else ()
            if any(block["type"] == "text" and text in block["text"] for block in blocks):
                return number
        raise CutlineError(f"the demo's agent never says {text!r}; this is a fault of the demo's script")


def _head(call: Call) -> str:
    value = call.arguments.get("command") or call.arguments.get("file_path") or ""
    return f"{call.tool} {_short(str(value))}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return f"“{line if len(line) <= 100 else line[:99] + '…'}”"
