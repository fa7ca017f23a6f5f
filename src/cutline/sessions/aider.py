"""Aider's chat history, a Markdown file: found and read. It holds no tool blocks, so nothing in it can be cut.

Law: whose a line is its marks say, as Aider writes them: `#### ` begins a line of a person's, `> ` one of Aider's own
output, and each such line ends with two blanks, which tells it from the agent's headings and quotations. All else is
the agent's. Of an output of several lines only the first is marked: it goes on to the next that ends with two blanks.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from .model import Origin
from .neutral import NeutralSession
from .opening import edges
from .shown import Lines, Listed, listed, marked, nothing, reading, reread, resume, upward, write
from .talk import Talk, literal

LABEL = "Aider"
NAME = ".aider.chat.history.md"
_WHAT = "a chat history of Aider"
_START = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")
_OWN = re.compile(rb"^# aider chat started at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\s*$", re.M).search
_JSON = re.compile(rb"\A\s*[{\[]").match
_TYPED = re.compile(rb"^#### (?!/)(\S.*?) *$", re.M).search
_VERSION = re.compile(r"> Aider v(\S+)").match
_MODEL = re.compile(r"> (?:Main model|Models?): ([^\s,]+)").match

Kind = Literal["start", "human", "output", "agent"]


def places() -> list[Path]:
    """Where it is looked for: ``$AIDER_CHAT_HISTORY_FILE``, else in the working directory and above it."""
    return _files(Path.cwd())[:1]


def sessions(cwd: Path | None = None) -> list[Listed]:
    """The chat history of a directory's project (default: of the one at hand)."""
    found = listed(_files(cwd or Path.cwd()), lambda path: str(path.parent), _title)
    return [one for one in found if owns(one.path, edges(one.path, 0)[0])][:1]


def owns(path: Path, head: bytes) -> bool:
    """Whether a file looks like a chat history: a line that Aider begins each chat with."""
    return _JSON(head) is None and _OWN(head) is not None


def open_session(path: Path, id: str = "") -> NeutralSession:
    """Read a chat history, all its chats behind one another, as Aider itself restores it.

    Raises:
        InputError: it can't be read, or no chat begins in it.
    """
    talk = Talk()
    version, chats = "", 0
    with reading(path, _WHAT) as handle:
        found = Lines(handle)
        for number, kind, text in _runs(found):
            if kind == "start":
                chats += 1
                talk.out.part()
                talk.at(_START.match(text)[1].replace(" ", "T"))  # type: ignore[index]
            elif kind == "output":
                for line in text.split("\n"):
                    named, model = _VERSION(line), _MODEL(line)
                    version = named[1] if named else version
                    talk.out.model = model[1] if model else talk.out.model
            origin: Origin = "human" if kind == "human" else "agent" if kind == "agent" else "harness"
            talk.words(origin, literal(text), (number, 0))
    if not chats:
        raise nothing(path, "no chat begins in it", _WHAT)
    return NeutralSession(
        "aider",
        path,
        path.stem if path.stem.strip(".") else path.name,
        str(path.absolute().parent),
        talk.title,
        talk.out.done(),
        version=version,
        last=talk.last,
        damage=tuple(found.damage()),
        sealed=marked("Aider's Markdown"),
    )


def _runs(found: Iterable[str]) -> Iterator[tuple[int, Kind, str]]:
    """Runs of lines that are of one kind: the number of the first, the kind, and the words without their marks."""
    begins, kind, held = 0, "agent", [""]
    going = fresh = False  # an output whose last line is still to come; a chat in which nobody has spoken
    for number, line in enumerate(found):
        ends = line.endswith("  ")
        now = _kind(line, ends, going, fresh or (kind in ("human", "output") and held[-1].endswith("  ")))
        fresh = now == "start" or (fresh and not line.strip())
        if now == "output" and not ends:
            going = True
        elif (ends and line.strip()) or now in ("start", "human"):
            going = False
        if now != kind or now == "start":
            yield from _told(begins, kind, held)
            begins, kind, held = number, now, []
        held.append(line)
    yield from _told(begins, kind, held)


def _kind(line: str, ends: bool, going: bool, behind_mark: bool) -> Kind:
    if _START.match(line):
        return "start"
    if line.startswith("#### ") and ends:
        return "human"
    # An output without the two blanks begins right behind a line with them; the agent's quotation does not.
    if going or (line.startswith("> ") and (ends or behind_mark)):
        return "output"
    return "agent"


def _told(begins: int, kind: str, held: list[str]) -> Iterator[tuple[int, Kind, str]]:
    if kind == "human":
        yield begins, "human", "\n".join(line[5:-2] for line in held)
    elif kind == "agent":
        text = "\n".join(held).strip()  # as it was written: Aider puts empty lines around it
        if text:
            yield begins, "agent", text
    else:
        yield begins, "start" if kind == "start" else "output", "\n".join(held)


def _files(cwd: Path) -> list[Path]:
    configured = os.environ.get("AIDER_CHAT_HISTORY_FILE")
    return [cwd / Path(configured).expanduser()] if configured else [above / NAME for above in upward(cwd)]


def _title(head: bytes) -> str:
    found = _TYPED(head)
    return found[1].decode("utf-8", "replace") if found else ""


__all__ = ["LABEL", "open_session", "owns", "places", "reread", "resume", "sessions", "write"]
