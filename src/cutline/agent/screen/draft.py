"""What is typed and not sent yet, in a file beside the session's log (0600), so that a kill does not lose it.

Law: the file holds what the line holds, a keystroke later at the most; it is replaced whole, and is gone when the line
is empty. A disk that refuses is no reason to disturb who types.
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Draft:
    """Half-typed text.

    Attributes:
        line: what stands in the line.
        aside: what was set aside while a question is answered.
    """

    line: str = ""
    aside: str = ""

    @property
    def text(self) -> str:
        """All of it."""
        return "\n".join(part for part in (self.aside, self.line) if part)


class Keeper:
    """Keeps a draft.

    Args:
        log: the session's log; the draft lies beside it.
    """

    def __init__(self, log: Path) -> None:
        self.path = log.with_suffix(".draft")

    def read(self) -> Draft:
        """What an earlier process kept."""
        try:
            value = json.loads(self.path.read_bytes())
            return Draft(str(value["line"]), str(value["aside"]))
        except (OSError, ValueError, KeyError, TypeError):
            return Draft()

    def keep(self, draft: Draft) -> None:
        """Keep this one in its place."""
        with contextlib.suppress(OSError):
            if not draft.text:
                self.path.unlink(missing_ok=True)
                return
            passing = self.path.with_suffix(".draft-new")
            file = os.open(passing, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(file, "w", encoding="ascii") as handle:
                json.dump({"line": draft.line, "aside": draft.aside}, handle)
            passing.replace(self.path)
