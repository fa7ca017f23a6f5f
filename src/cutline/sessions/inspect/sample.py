"""One sample of a log, as its file has it: its messages, what they refer to, and what was counted.

Law: of all that a sample holds only this is kept; its events, by far the most, pass by one at a time. A message's
references (`attachment://…`) are replaced by the literals that they stand for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ..stream import Stream

_REFERENCE = re.compile(rb'"(?:attachment|tc)://([0-9A-Za-z]+)"')


@dataclass(slots=True)
class Sample:
    """A sample while it is read.

    Attributes:
        id, epoch: which it is.
        messages: its messages, each as it is in the file.
        texts: by name, the literal of each text that a message refers to.
        usages: by a message's id, the `usage` that the provider counted, the model and the time.
        missing: references that lead to nothing.
    """

    id: str = ""
    epoch: str = "1"
    messages: list[bytes] = field(default_factory=list)
    texts: dict[str, bytes] = field(default_factory=dict)
    usages: dict[str, tuple[dict[str, Any], str, str]] = field(default_factory=dict)
    missing: int = 0

    @property
    def name(self) -> str:
        """What the log calls it."""
        return f"{self.id}_epoch_{self.epoch}"

    def take(self, stream: Stream, key: str) -> None:
        """Take what is wanted of one member of a sample; its value is at hand."""
        if key in ("id", "epoch"):
            self._named(key, stream.value())
        elif key == "messages" and stream.begins() == "[":
            self.messages = [stream.take() for _ in stream.elements()]
        elif key == "attachments" and stream.begins() == "{":
            self.attachments((name, stream) for name in stream.members())
        elif key == "events" and stream.begins() == "[":
            for _ in stream.elements():
                self.event(stream)
        elif key == "transcript" and stream.begins() == "{":  # logs of 2024
            for part in stream.members():
                self.take(stream, {"content": "attachments"}.get(part, part))

    def attachments(self, texts: Iterable[tuple[str, Stream]]) -> None:
        """Keep those texts that a message refers to; where the messages are still to come, all."""
        wanted = self.wanted()
        for name, stream in texts:
            if name in wanted or not self.messages:
                literal = stream.take()
                if literal[:1] == b'"':
                    self.texts[name] = literal

    def wanted(self) -> set[str]:
        """The names of the texts that the messages refer to."""
        return {found.decode() for raw in self.messages for found in _REFERENCE.findall(raw)}

    def event(self, stream: Stream) -> None:
        """Note what was counted, if the event at hand is a model's answer."""
        if stream.begins() != "{":
            return
        held: dict[str, Any] = {}
        for key in stream.members():
            if key in ("event", "model", "timestamp", "completed"):
                held[key] = stream.value()
            elif key == "output" and held.get("event", "model") == "model" and stream.begins() == "{":
                for part in stream.members():
                    if part in ("usage", "model"):
                        held[f"output_{part}"] = stream.value()
                    elif part == "choices" and stream.begins() == "[":
                        held["ids"] = list(_ids(stream))
        usage = held.get("output_usage")
        if held.get("event") == "model" and isinstance(usage, dict):
            model = held.get("output_model") or held.get("model") or ""
            for id_ in held.get("ids", ()):
                self.usages[id_] = (usage, str(model), str(held.get("completed") or held.get("timestamp") or ""))

    def resolved(self) -> Iterator[bytes]:
        """The messages with the texts that they refer to."""
        for raw in self.messages:
            yield _REFERENCE.sub(self._literal, raw)

    def _literal(self, found: re.Match[bytes]) -> bytes:
        literal = self.texts.get(found[1].decode())
        self.missing += literal is None
        return found[0] if literal is None else literal

    def _named(self, key: str, value: Any) -> None:
        if isinstance(value, str | int):
            setattr(self, key, str(value))


def _ids(stream: Stream) -> Iterator[str]:
    """The ids of the messages of an answer's choices."""
    for _ in stream.elements():
        if stream.begins() != "{":
            continue
        for key in stream.members():
            if key == "message" and stream.begins() == "{":
                for part in stream.members():
                    if part == "id":
                        value = stream.value()
                        if isinstance(value, str):
                            yield value
