"""Where Inspect's logs are, and how they are known.

Law: looking is cheap and changes nothing: of an archive its directory is read, of a JSON log its beginning. A log
stands in a list once, however many samples it holds.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from urllib.parse import unquote, urlsplit

from ...errors import InputError
from ..shown import Listed, below, listed
from . import archive

_JSON = re.compile(
    rb'\A\s*\{\s*"(?:version|status|eval)"\s*:(?=.*"eval"\s*:\s*\{).*"(?:task|run_id|eval_id)"\s*:', re.S
).match
_TASK = re.compile(rb'"task"\s*:\s*"((?:[^"\\]|\\.)*)"').search
_DATED = re.compile(r"\d{4}-\d\d-\d\dT\d\d[:-]\d\d[:-]\d\d").match
_ID = re.compile(r"[0-9A-Za-z]{18,26}").fullmatch


def places() -> list[Path]:
    """Where logs are looked for: ``$INSPECT_LOG_DIR``, else ``logs`` in the working directory."""
    folder = _folder(Path.cwd())
    return [folder] if folder else []


def sessions(cwd: Path | None = None) -> list[Listed]:
    """The logs that are found from a directory (default: the one at hand), the newest first."""
    folder = _folder(cwd or Path.cwd())
    if folder is None:
        return []
    # The client itself takes a JSON file for a log by its date.
    paths = [path for path in below(folder, ".eval", ".json") if path.suffix == ".eval" or _DATED(path.name)]
    found = listed(paths, lambda path: str(path.parent), lambda head: "")
    return [replace(one, id=log_id(one.path), titled=partial(_about, one.path)) for one in found]


def owns(path: Path, head: bytes) -> bool:
    """Whether a file looks like a log; any zip archive is taken for one, as no other client has them."""
    return head.startswith(archive.MAGIC) or _JSON(head) is not None


def log_id(path: Path) -> str:
    """A log's id: what its name ends with, as the client names it; else its name."""
    last = path.stem.rpartition("_")[2]
    return last if _ID(last) else path.stem


def _about(path: Path, head: bytes) -> str:
    """What a listing says of a log: its task, and how many samples an archive holds."""
    if not head.startswith(archive.MAGIC):
        return _task(head)
    try:
        with path.open("rb") as handle, archive.opened(handle) as held:
            samples = len(held.samples())
            with held.stream(held.header()) as stream:
                return f"{_task(stream.take())} ({samples:,} sample{'' if samples == 1 else 's'})"
    except (OSError, InputError, KeyError):
        return ""


def _task(raw: bytes) -> str:
    found = _TASK(raw)
    return found[1].decode("utf-8", "replace") if found else ""


def _folder(cwd: Path) -> Path | None:
    """The folder of logs; None where it is on no disk of this machine."""
    configured = os.environ.get("INSPECT_LOG_DIR")
    if configured and "://" in configured:
        address = urlsplit(configured)
        return Path(unquote(address.path)) if address.scheme == "file" else None
    return cwd / (Path(configured).expanduser() if configured else "logs")
