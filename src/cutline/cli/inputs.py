"""What a command works on: a request body, or a session of a client.

Law: one rule for every command. Nothing given: this directory's latest session. `-`: a body on standard input.
A file is a body if it is one JSON object with messages, else a session; anything else is a session's id or the
beginning of one.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from ..errors import InputError
from ..sessions.clients import is_session, resolve
from ..sessions.model import Session

_BODY = re.compile(rb"\s*\{")
_BODY_KEYS = re.compile(rb'"(?:messages|input|contents)"\s*:')


@dataclass(frozen=True, slots=True)
class Body:
    """A request body and where it came from."""

    name: str
    data: bytes


def load(argument: str | None, cwd: Path | None = None) -> Body | Session:
    """Resolve and read what a command was given.

    Raises:
        InputError: nothing of that name, or nothing that can be read.
    """
    if argument == "-":
        return Body("standard input", sys.stdin.buffer.read())
    if argument is not None:
        path = Path(argument).expanduser()
        if path.is_dir():
            raise InputError(f"{argument}: is a directory; give a session file, a body, or type: cutline ls")
        if path.is_file() and not is_session(path) and _is_body(path):
            return Body(argument, path.read_bytes())
    return resolve(argument, cwd or Path.cwd())


def _is_body(path: Path) -> bool:
    """A request body: one JSON document, not JSON lines, with a list of messages."""
    if path.suffix == ".jsonl":
        return False
    with path.open("rb") as handle:
        head = handle.read(1 << 16)
    if not _BODY.match(head):
        # Neither a body nor a session: let the body's reader say what is wrong with it.
        return path.suffix == ".json"
    if b'"loglines"' in head[:4096]:
        return False
    return path.suffix == ".json" or bool(_BODY_KEYS.search(head))
