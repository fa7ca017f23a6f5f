"""What a human asks for when a session is opened.

Law: a value; nothing is loaded for it, so that the terminal's line is there first.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a human asks for.

    Attributes:
        directory: the working tree.
        model: "provider:name"; "" for what the session had.
        base_url: another place of its API; "" for what the session had, or the provider's own.
        gate: "off", "nudge" or "strict".
        approve: "ask", "edits" or "auto".
        allow, deny: patterns of calls that need no question, and of calls that never run (`approvals.Rules`).
        named: variables that tools are given although they look like secrets.
        path: the log of a session that goes on; None for a new one.
        environment: this process's variables.
    """

    directory: Path
    model: str = ""
    base_url: str = ""
    gate: str = "nudge"
    approve: str = "ask"
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    path: Path | None = None
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
