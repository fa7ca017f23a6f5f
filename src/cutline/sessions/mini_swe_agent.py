"""mini-SWE-agent's trajectories, of every version: found and read; shown, not cut.

Law: the history is the file's list of messages. Where the agent acts through text, the one fenced command of its
message is a call and the words around it are its words, as the client itself reads it; what answers it is its result.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import spans
from .lines import Opened
from .neutral import NeutralSession
from .shown import Listed, document, first_words, listed, nothing, reread, resume, sealed, write
from .stream import Stream
from .talk import CALLS, CONTENT, Talk, stamp, word

LABEL = "mini-SWE-agent"
_WHAT = "a trajectory of mini-SWE-agent"
_ENDING = ".traj.json"
_OBJECT = re.compile(rb'\A\s*\{\s*"(?:info|messages|trajectory_format|instance_id)"\s*:').match
_NAMED = re.compile(rb'"(?:trajectory_format"\s*:\s*"mini-swe-agent|mini_version"\s*:\s*")').search
_LIST = re.compile(rb'\A\s*\[\s*\{\s*"(?:role|content)"\s*:').match
_CWD = re.compile(rb'"environment"\s*:\s*\{[^{}]*?"cwd"\s*:\s*("(?:[^"\\]|\\.)*")').search
_MARKS = (b"mswea_bash_command", b"<returncode>", b"SUBMIT_FINAL_OUTPUT", b"MINI_SWE_AGENT_FINAL_OUTPUT")
# On the raw literal: a line break there is a backslash and an n, and every escape is stepped over whole.
_FENCED = re.compile(rb"```(?:mswea_bash_command|bash)(?:[ \t]|\\[rt])*\\n((?:[^\\]|\\.)*?)\\n```(?:\\n)*", re.S)
_FENCES = 100  # each may run to the message's end
_TYPED = (
    "Interrupted by user: ",
    "Command not executed. The user rejected",
    "Commands not executed. The user rejected",
    "The user added a new task: ",
    "User command: ",
)


def places() -> list[Path]:
    """Where the last run's is: the client's configuration, ``$MSWEA_GLOBAL_CONFIG_DIR`` where that is set."""
    return [_folder()]


def sessions(cwd: Path | None = None) -> list[Listed]:
    """The last run; of a directory only where the file says that it ran there."""
    try:
        paths = [path for path in _folder().iterdir() if path.name.endswith(_ENDING)]
    except OSError:
        return []
    found = listed(paths, _ran_in, first_words, ending=_ENDING)
    return [one for one in found if cwd is None or one.folder in (str(cwd), os.path.realpath(cwd))]


def owns(path: Path, head: bytes) -> bool:
    """Whether a file looks like a trajectory of any version; the first were bare lists of messages."""
    if _OBJECT(head):
        return _NAMED(head) is not None or (b'"messages"' in head and any(mark in head for mark in _MARKS))
    return _LIST(head) is not None and any(mark in head for mark in _MARKS)


def open_session(path: Path, id: str = "") -> NeutralSession:
    """Read a trajectory; a file holds one.

    Raises:
        InputError: it can't be read, or holds no messages.
    """
    found = _Trajectory()
    with document(path, _WHAT) as stream:
        found.read(stream)
    if not found.talk.out.places:
        raise nothing(path, "no messages in it", _WHAT)
    return NeutralSession(
        "mini-swe-agent",
        path,
        found.instance or path.name.removesuffix(_ENDING),
        found.cwd,
        found.talk.title,
        found.talk.out.done(),
        version=found.version,
        last=found.talk.last,
        sealed=sealed("a trajectory"),
    )


@dataclass(slots=True)
class _Trajectory:
    """A trajectory while it is read."""

    talk: Talk = field(default_factory=Talk)
    instance: str = ""
    version: str = ""
    cwd: str = ""
    asked: bool = False  # the task was given
    acted: bool = False  # the last message of the agent's has a command in its text that waits for its result

    def read(self, stream: Stream) -> None:
        if stream.begins() == "[":
            self._messages(stream)
            return
        for key in stream.members():
            if key == "messages" and stream.begins() == "[":
                self._messages(stream)
            elif key == "instance_id":
                self.instance = str(stream.value() or "")
            elif key == "info":
                info = stream.value()
                self.version = _text(info, "mini_version")
                self.cwd = _text(info, "config", "environment", "cwd")
                self.talk.out.model = self.talk.out.model or _text(info, "config", "model", "model_name")

    def _messages(self, stream: Stream) -> None:
        for number, _ in enumerate(stream.elements()):
            opened = Opened(stream.take())
            members = opened.members()
            extra = opened.inside(members.get("extra"))
            self.talk.at(stamp(opened.value(extra.get("timestamp"))))
            self._message(number, opened, members, extra)

    def _message(
        self, number: int, opened: Opened, members: dict[str, spans.Member], extra: dict[str, spans.Member]
    ) -> None:
        talk = self.talk
        role, type_ = word(opened, members.get("role")), word(opened, members.get("type"))
        if role == "assistant":
            self._agent(number, opened, members, extra)
            answer = opened.value(extra.get("response"))
            self._counted(number, answer if isinstance(answer, dict) else {}, opened, extra)
        elif word(opened, members.get("object")) == "response":
            self._items(number, opened, members)
            self._counted(number, opened.value(spans.Member("", 0, 0, len(opened.view))), opened, extra)
        elif role == "tool":
            talk.result(word(opened, members.get("tool_call_id")), opened, members.get("content"), (number, 0))
        elif type_ == "function_call_output":
            talk.result(word(opened, members.get("call_id")), opened, members.get("output"), (number, 0))
        elif role == "user":
            self._user(number, opened, members, extra)
        elif role == "system":
            talk.content("harness", opened, members.get("content"), number)
        else:
            talk.out.control(opened.raw, (number, 0))

    def _user(
        self, number: int, opened: Opened, members: dict[str, spans.Member], extra: dict[str, spans.Member]
    ) -> None:
        talk, content = self.talk, members.get("content")
        words = word(opened, content)
        kind = word(opened, extra.get("interrupt_type"))
        if not self.asked or kind.startswith("User") or words.startswith(_TYPED):
            talk.content("human", opened, content, number)
            self.asked = True
        elif self.acted and not kind:
            talk.result("", opened, content, (number, 0))
        else:
            talk.content("harness", opened, content, number)
        self.acted = False

    def _agent(
        self, number: int, opened: Opened, members: dict[str, spans.Member], extra: dict[str, spans.Member]
    ) -> None:
        talk, content = self.talk, members.get("content")
        talk.reasoning(opened.literal(members.get("reasoning_content")), (number, 0))
        self.acted = False
        if opened.elements(members.get("tool_calls")):
            talk.content("agent", opened, content, number)
            talk.calls(opened, members["tool_calls"], number)
            return
        raw = opened.literal(content) if opened.is_text(content) else b""
        commands = _FENCED.findall(raw) if raw.count(b"```") <= _FENCES else []
        noted = [opened.members(start) for start, _ in opened.elements(extra.get("actions"))]
        if len(commands) == 1:
            fence = _FENCED.search(raw)
            assert fence is not None
            talk.words("agent", _before(raw[: fence.start()]) + b'"', (number, CONTENT))
            talk.out.call("", "bash", b'{"command":"%s"}' % fence[1], (number, CALLS))
            talk.words("agent", b'"' + raw[fence.end() :], (number, CALLS + 1))
            self.acted = True
            return
        talk.content("agent", opened, content, number)
        for index, action in enumerate(noted, CALLS):
            if opened.is_text(action.get("command")):
                command = opened.literal(action["command"])
                talk.out.call("", "bash", b'{"command":%s}' % command, (number, index))
                self.acted = True

    def _items(self, number: int, opened: Opened, members: dict[str, spans.Member]) -> None:
        """The items of an answer in the shape of OpenAI's Responses."""
        self.acted = False
        for index, (start, end) in enumerate(opened.elements(members.get("output"))):
            item, place = opened.members(start), (number, CALLS + index)
            type_ = word(opened, item.get("type"))
            if type_ == "message":
                self.talk.content("agent", opened, item.get("content"), number)
            elif type_ == "function_call":
                id_ = item.get("call_id") or item.get("id")
                self.talk.call(opened, id_, item.get("name"), item.get("arguments"), place)
            elif type_ == "reasoning":
                self.talk.reasoning(opened.raw[start:end], place)
            else:
                self.talk.out.control(opened.raw[start:end], place, "agent")

    def _counted(self, number: int, answer: Any, opened: Opened, extra: dict[str, spans.Member]) -> None:
        if self.talk.out.places and self.talk.out.places[-1][-1][0] == number:
            when = stamp(opened.value(extra.get("timestamp")))
            self.talk.counted(answer.get("usage"), _text(answer, "model"), when, _text(answer, "id"))


def _before(raw: bytes) -> bytes:
    """The beginning of a literal without the line breaks at its end."""
    end = len(raw)
    while raw[end - 2 : end] == b"\\n":
        first = end - 2
        while raw[first - 1 : first] == b"\\":
            first -= 1
        if (end - 1 - first) % 2 == 0:  # a backslash, and the letter n
            break
        end -= 2
    return raw[:end]


def _text(value: Any, *keys: str) -> str:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""


def _folder() -> Path:
    configured = os.environ.get("MSWEA_GLOBAL_CONFIG_DIR")
    if configured:
        return Path(configured)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "mini-swe-agent"
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return (Path(local) if local else Path.home() / "AppData" / "Local") / "mini-swe-agent" / "mini-swe-agent"
    settings = os.environ.get("XDG_CONFIG_HOME")
    return (Path(settings) if settings else Path.home() / ".config") / "mini-swe-agent"


def _ran_in(path: Path) -> str:
    try:
        with path.open("rb") as handle:
            found = _CWD(handle.read(1 << 16))
    except OSError:
        return ""
    return str(spans.decode(found[1])) if found else ""


__all__ = ["LABEL", "open_session", "owns", "places", "reread", "resume", "sessions", "write"]
