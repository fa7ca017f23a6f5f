"""What git says of a directory: the machine's stamp of a moment, and the project that recall is scoped to.

Law: asks git and changes nothing, not even its index; without git, or without an answer in time, a directory is
just a directory.
"""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

from .checkpoint import Stamp

_WAIT_S = 5


def stamp(directory: Path, at: float | None = None) -> Stamp:
    """This moment: time, directory, and the repository's state where there is one.

    Args:
        directory: the working directory.
        at: seconds since the epoch; None for now.
    """
    now = time.time() if at is None else at
    root = _git(directory, "rev-parse", "--show-toplevel").strip()
    if not root:
        return Stamp(now, str(directory))
    return Stamp(
        now,
        str(directory),
        root,
        _git(directory, "branch", "--show-current").strip(),
        _git(directory, "rev-parse", "--short", "HEAD").strip(),
        _dirty(_git(directory, "status", "--porcelain", "-z", "--untracked-files=normal")),
    )


def project(directory: Path) -> str:
    """The repository that a directory belongs to, the same for all of its worktrees; else the directory itself."""
    common = _git(directory, "rev-parse", "--path-format=absolute", "--git-common-dir").strip()
    if common:
        path = Path(common)
        return str(path.parent if path.name == ".git" else path)
    return str(directory.resolve())


def _dirty(status: str) -> tuple[str, ...]:
    """Paths out of `git status --porcelain -z`; of a rename the new one, its old one follows as a field of its own."""
    fields = iter(status.split("\0"))
    paths = []
    for entry in fields:
        if len(entry) > 3:
            paths.append(entry[3:])
            if entry[0] in "RC":
                next(fields, None)
    return tuple(paths)


def _git(directory: Path, *arguments: str) -> str:
    """What git says; "" where there is no git, no repository, or no answer in time."""
    try:
        done = subprocess.run(
            ["git", "-C", str(directory), *arguments],
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_WAIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""
