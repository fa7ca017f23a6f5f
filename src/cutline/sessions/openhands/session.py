"""A conversation of OpenHands as a whole.

Law: nothing is decided here: `source` gives the events, `view` says which the model sees, `events` and `sdk` what they
are. They are read twice, so that none has to be held.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..lines import Opened
from ..neutral import NeutralSession
from ..shown import nothing, sealed
from ..talk import Talk, word
from . import events, sdk
from .source import WHAT, Source
from .view import Summary, view

_LARGEST = 1 << 26  # bytes of the file beside a conversation's events


def open_session(path: Path, id: str = "") -> NeutralSession:
    """Read a conversation.

    Args:
        path: a trajectory, an evaluation's output, or one of a conversation's files of events, which stands for all.
        id: which instance of an evaluation's output; "" for the only one.

    Raises:
        InputError: it can't be read, or holds no conversation.
    """
    source = Source(path, "")
    name = source.folder.name if source.folder is not None else path.stem
    source.wanted = "" if id == name else id
    state = _state(source.folder)
    talk = Talk()
    first, second = events.Events(talk), sdk.Events(talk, _usages(state))
    order = iter(view(source.events(), _text(state, "leaf_event_id")))
    due = _summaries(talk, order)
    for number, raw in enumerate(source.events()):
        if number == due:
            opened = Opened(raw)
            (second if word(opened, opened.members().get("kind")) else first).add(number, opened)
            due = _summaries(talk, order)
    if not talk.out.places:
        raise nothing(path, "no conversation in it", WHAT)
    settings = source.about.get("metadata")
    talk.out.model = talk.out.model or _text(state, "agent", "llm", "model") or _text(settings, "llm_config", "model")
    return NeutralSession(
        "openhands",
        path,
        str(source.about.get("instance_id") or name),
        _text(state, "workspace", "working_dir"),
        talk.title,
        talk.out.done(),
        version=first.version,
        last=talk.last,
        damage=tuple(source.damage),
        sealed=sealed("a conversation of OpenHands"),
    )


def _summaries(talk: Talk, order: Iterator[int | Summary]) -> int:
    """Say the summaries that come next; gives the number of the event behind them, -1 for none."""
    for one in order:
        if isinstance(one, int):
            return one
        talk.out.compacted = True
        talk.words("summary", one.literal, (one.number, 0))
    return -1


def _state(folder: Path | None) -> dict[str, Any]:
    """What stands beside a conversation's events: its agent, its directory, what was counted."""
    path = folder / "base_state.json" if folder is not None else None
    try:
        if path is None or path.stat().st_size > _LARGEST:
            return {}
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _usages(state: dict[str, Any]) -> dict[str, Any]:
    """By an answer's id, what was counted for it."""
    metrics = state.get("stats")
    metrics = metrics.get("usage_to_metrics") if isinstance(metrics, dict) else None
    found = {}
    for one in metrics.values() if isinstance(metrics, dict) else ():
        for counted in one.get("token_usages") or () if isinstance(one, dict) else ():
            if isinstance(counted, dict) and counted.get("response_id"):
                found[str(counted["response_id"])] = counted
    return found


def _text(value: Any, *keys: str) -> str:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""
