"""When two calls ask for the same thing in two spellings, as a client's read cache sees it (docs/wire.md, 12).

Law: pure. A path is its parts without `.` and `..`; a read from line 1 is a read from the start; a relative path
is the one absolute path of the same history that ends so, and itself where there is none or more than one.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterable
from dataclasses import dataclass

from . import spans
from .specifics import value_of

_KEYS = ("file_path", "notebook_path")
_LONGEST = 4_096  # characters of a path that is taken apart; no system has longer ones


@dataclass(frozen=True, slots=True)
class Asked:
    """What a call asks for.

    Attributes:
        path: the file that it names, in one spelling; None where it names none.
        rest: its other arguments, in one spelling.
    """

    path: str | None
    rest: bytes


def asked(arguments: bytes) -> Asked:
    """Read a call's raw arguments; what is no object, or names no file, is compared as it stands."""
    value = value_of(arguments)
    held = value if isinstance(value, dict) else {}
    key = next((key for key in _KEYS if isinstance(held.get(key), str) and held[key]), "")
    if not key:
        return Asked(None, spans.canonical(arguments))
    path = value.pop(key)
    if type(value.get("offset")) is int and value["offset"] == 1:
        del value["offset"]
    return Asked(
        posixpath.normpath(path) if len(path) <= _LONGEST else path, json.dumps(value, sort_keys=True).encode()
    )


class Paths:
    """The files that a history names.

    Args:
        paths: as `asked` spells them.
    """

    def __init__(self, paths: Iterable[str | None]) -> None:
        self._ends: dict[str, str] = {}
        for path in dict.fromkeys(paths):
            if path is not None and path.startswith("/") and len(path) <= _LONGEST:
                parts = path[1:].split("/")
                for start in range(len(parts)):
                    end = "/".join(parts[start:])
                    self._ends[end] = "" if end in self._ends else path

    def whole(self, path: str | None) -> str | None:
        """The absolute path that a relative one means, where only one can be meant; else the path as it is."""
        return path if path is None else self._ends.get(path, "") or path
