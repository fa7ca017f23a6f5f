"""The events of a conversation, one by one: out of a folder, a trajectory, or an evaluation's output.

Law: no more than one event is held. What a file says beside the events is kept only where a session needs it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..shown import choose, document, nothing, reading
from ..stream import Stream

WHAT = "a trajectory or an event's file of OpenHands"
FOLDER = "events"
"""Name of the folder that holds a conversation's events, one a file."""
_NUMBER = re.compile(r"(?:event-)?(\d+)(?:-|\.json)")


@dataclass(slots=True)
class Source:
    """Where a conversation's events are.

    Attributes:
        path: the file that was named.
        wanted: which instance of an evaluation's output; "" for the only one.
        about: what an evaluation's output says of the instance that was read (`instance_id`, `metadata`).
        damage: what could not be read, one sentence each.
    """

    path: Path
    wanted: str = ""
    about: dict[str, Any] = field(default_factory=dict)
    damage: list[str] = field(default_factory=list)

    @property
    def folder(self) -> Path | None:
        """The folder of a conversation whose event was named."""
        return self.path.parent.parent if self.path.absolute().parent.name == FOLDER else None

    def events(self) -> Iterator[bytes]:
        """Each event as it is in its file, in order.

        Raises:
            InputError: it can't be read, or there is no such instance.
        """
        if self.folder is not None:
            yield from self._of_folder()
            return
        with document(self.path, WHAT) as stream:
            if stream.begins() == "[":
                yield from _flat(stream)
                return
            yield from self._of_objects(stream)

    def _of_folder(self) -> Iterator[bytes]:
        self.damage.clear()
        for path in files(self.path.absolute().parent):
            try:
                with reading(path, WHAT) as handle:
                    yield Stream(handle.read).take()
            except InputError as error:
                self.damage.append(f"{str(error).partition(';')[0]}: left out.")

    def _of_objects(self, stream: Stream) -> Iterator[bytes]:
        """One event, or an evaluation's output: objects that hold a history each, one a line."""
        names: list[str] = []
        found = False
        while stream.begins():
            about: dict[str, Any] = {}
            event = b""
            for key in stream.members():
                if key in ("instance_id", "metadata"):
                    about[key] = stream.value()
                elif key in ("history", "events") and stream.begins() == "[":
                    name = str(about.get("instance_id", len(names) + 1))
                    names.append(name)
                    if not found and self.wanted in ("", name):
                        found = True
                        self.about = about
                        yield from _flat(stream)
                elif key in ("action", "observation", "kind") and not names:
                    event = b"one"
            if event:
                raise nothing(self.path, f"one event outside of a folder {FOLDER}", WHAT)
            if found and self.wanted:
                return
        if not names:
            raise nothing(self.path, "no history in it", WHAT)
        if not found or len(names) > 1:
            raise choose(self.path, "instance", names, self.wanted)


def files(folder: Path) -> list[Path]:
    """The files of a folder of events, in their order."""
    try:
        found = [(int(match[1]), path) for path in folder.iterdir() if (match := _NUMBER.match(path.name))]
    except OSError:
        return []
    return [path for _, path in sorted(found)]


def _flat(stream: Stream) -> Iterator[bytes]:
    """The elements of a list; those of the first versions are pairs of an action and its observation."""
    for _ in stream.elements():
        if stream.begins() == "[":
            for _ in stream.elements():
                yield stream.take()
        else:
            yield stream.take()
