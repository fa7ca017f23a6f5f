"""SWE-agent's trajectories: found and read; shown, not cut.

Law: the history is what the model was sent, its `history` member; the steps beside it say the same again.
Demonstrations that the configuration puts before the task are the harness's. In a history without tool calls the
agent's message is taken apart as the file itself does it, into its `thought` and its `action`, a shell command.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import spans
from .lines import Opened
from .neutral import NeutralSession
from .shown import Listed, below, document, first_words, listed, nothing, reread, resume, sealed, write
from .stream import Stream
from .talk import CALLS, Talk, word

LABEL = "SWE-agent"
_WHAT = "a trajectory of SWE-agent"
_ENDING = ".traj"
_FIRST = re.compile(rb'\A\s*\{\s*"(?:environment|trajectory|history|info|replay_config|attempts)"\s*:').match
_STEPS = re.compile(
    rb'"(?:trajectory|history)"\s*:\s*\[\s*(?:\]|\{\s*"(?:action|observation|response|thought|query|role)")'
).search


def places() -> list[Path]:
    """Where they are looked for: ``$SWE_AGENT_TRAJECTORY_DIR``, else ``trajectories`` in the working directory."""
    return [_folder(Path.cwd())]


def sessions(cwd: Path | None = None) -> list[Listed]:
    """The trajectories that are found from a directory (default: the one at hand), the newest first."""
    folder = _folder(cwd or Path.cwd())
    return listed(below(folder, _ENDING), lambda path: str(path.parent), first_words, ending=_ENDING)


def owns(path: Path, head: bytes) -> bool:
    """Whether a file looks like a trajectory of SWE-agent."""
    return _FIRST(head) is not None and _STEPS(head) is not None


def open_session(path: Path, id: str = "") -> NeutralSession:
    """Read a trajectory; a file holds one.

    Raises:
        InputError: it can't be read, or holds no history.
    """
    found = _Trajectory()
    with document(path, _WHAT) as stream:
        found.read(stream)
    if not found.talk.out.places:
        raise nothing(path, "no history in it", _WHAT)
    return NeutralSession(
        "swe-agent",
        path,
        path.name.removesuffix(_ENDING),
        "",
        found.talk.title,
        found.talk.out.done(),
        version=found.version,
        sealed=sealed("a trajectory"),
    )


@dataclass(slots=True)
class _Trajectory:
    """A trajectory while it is read."""

    talk: Talk = field(default_factory=Talk)
    version: str = ""
    asked: bool = False  # the task was given
    acted: bool = False  # the last message of the agent's has an action that waits for its result

    def read(self, stream: Stream) -> None:
        for key in stream.members():
            if key == "history" and stream.begins() == "[":
                for number, _ in enumerate(stream.elements()):
                    self._message(number, Opened(stream.take()))
            elif key == "info":
                self.version = _text(_value(stream), "swe_agent_version")
            elif key == "replay_config":
                self.talk.out.model = _text(_value(stream), "agent", "model", "name")

    def _message(self, number: int, opened: Opened) -> None:
        members, talk = opened.members(), self.talk
        role = word(opened, members.get("role"))
        content = members.get("content")
        if opened.literal(members.get("is_demo")) == b"true":
            talk.out.control(opened.raw, (number, 0))
        elif role == "assistant":
            self._agent(number, opened, members)
        elif role == "tool":
            ids = [opened.value(spans.Member("", 0, *span)) for span in opened.elements(members.get("tool_call_ids"))]
            talk.result(str(ids[0]) if ids else "", opened, content, (number, 0))
        elif role == "user" and self.acted:
            talk.result("", opened, content, (number, 0))
            self.acted = False
        elif role == "user" and not self.asked:
            talk.content("human", opened, content, number)
            self.asked = True
        elif members:
            talk.content("harness", opened, content, number)
        else:
            talk.out.control(opened.raw, (number, 0))

    def _agent(self, number: int, opened: Opened, members: dict[str, spans.Member]) -> None:
        talk = self.talk
        for index, (start, end) in enumerate(opened.elements(members.get("thinking_blocks"))):
            block = opened.members(start)
            told, signed = opened.literal(block.get("thinking")), opened.literal(block.get("signature"))
            talk.reasoning(told or opened.raw[start:end], (number, -index), signed)
        thought, action = members.get("thought"), opened.literal(members.get("action"))
        if opened.elements(members.get("tool_calls")):
            talk.content("agent", opened, members.get("content"), number)
            talk.calls(opened, members["tool_calls"], number)
            self.acted = False
            return
        self.acted = action[:1] == b'"' and len(action) > 2
        talk.content(
            "agent", opened, thought if self.acted and opened.is_text(thought) else members.get("content"), number
        )
        if self.acted:
            talk.out.call("", "bash", b'{"command":%s}' % action, (number, CALLS))


def _value(stream: Stream) -> Any:
    """The value at hand; newer versions write the configuration as a text that holds JSON."""
    value = stream.value()
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return None


def _text(value: Any, *keys: str) -> str:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""


def _folder(cwd: Path) -> Path:
    configured = os.environ.get("SWE_AGENT_TRAJECTORY_DIR")
    return cwd / Path(configured).expanduser() if configured else cwd / "trajectories"


__all__ = ["LABEL", "open_session", "owns", "places", "reread", "resume", "sessions", "write"]
