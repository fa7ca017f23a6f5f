"""The demo's session, carried out once for a whole run of the tests: whoever comes second waits and takes it."""

from __future__ import annotations

import fcntl
import os
import pickle
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from cutline.demo.session import Demo, build


class Played(NamedTuple):
    """The session, and how many seconds of processors it took: a machine that runs tests has more to do."""

    demo: Demo
    seconds: float


def played(folder: Path) -> Played:
    """The session.

    Args:
        folder: any folder that pytest made; the session lies under the root of those.
    """
    pytest.importorskip("pydantic_ai", reason="needs the extra: pip install 'cutline[agent]'")
    root = next((one for one in folder.parents if re.fullmatch(r"pytest-\d+", one.name)), folder)
    kept = root / "demo.pickle"
    with (root / "demo.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            start = sum(os.times()[:4])
            made = build(root / "demo")
            kept.write_bytes(pickle.dumps(Played(made, sum(os.times()[:4]) - start)))
        found: Played = pickle.loads(kept.read_bytes())
    return found
