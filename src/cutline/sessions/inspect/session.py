"""A sample of a log as a session. Law: nothing is decided here; `log`, `sample` and `history` do."""

from __future__ import annotations

from pathlib import Path

from ..neutral import NeutralSession
from ..opening import one_line
from ..shown import nothing, sealed
from .find import log_id
from .history import history
from .log import WHAT, read


def open_session(path: Path, id: str = "") -> NeutralSession:
    """Read one sample of a log.

    Args:
        path: the log.
        id: the sample, by its id or its id and epoch; "" or the log's own id for the only one.

    Raises:
        InputError: it can't be read, or holds several samples and none, or not one of them, was named.
    """
    own = log_id(path)
    log = read(path, "" if id == own else id.removeprefix(f"{own}#"))
    sample = log.sample
    talk = history(sample) if sample is not None else None
    if sample is None or talk is None or not talk.out.places:
        raise nothing(path, "no messages in it", WHAT)
    task = log.eval.get("task")
    which = f"{sample.id}, epoch {sample.epoch}" if sample.epoch != "1" else sample.id
    damage = []
    if sample.missing:
        damage.append(f"References of messages that lead to nothing in the log: {sample.missing:,}.")
    packages = log.eval.get("packages")
    return NeutralSession(
        "inspect",
        path,
        f"{own}#{log.name}",
        "",
        one_line(f"{task}, sample {which}") if isinstance(task, str) else talk.title,
        talk.out.done(),
        version=str(packages.get("inspect_ai") or "") if isinstance(packages, dict) else "",
        last=talk.last or str(log.eval.get("created") or ""),
        damage=tuple(damage),
        sealed=sealed("a log of Inspect"),
    )
