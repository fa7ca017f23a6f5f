"""A session as one Markdown document: every word, every call with its result. Law: reading only."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from . import events as ev
from .state import read

_LABELS = {"human": "Human", "hint": "Human, while the agent worked", "harness": "Cutline, on the human's command"}


def markdown(told: Iterable[tuple[float, ev.Event]]) -> Iterator[str]:
    """The document's parts in order, each to be ended with a line break.

    Args:
        told: the log's events with their times.
    """
    for at, event in told:
        match event:
            case ev.Begun():
                when = f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"
                forked = f", forked from {event.parent}" if event.parent else ""
                yield f"# Session {event.session}\n\n{event.model} in {event.directory}, begun {when}{forked}\n"
            case ev.Human():
                yield _said(_LABELS["harness" if event.harness else "human"], event.text)
            case ev.Hint():
                yield _said(_LABELS["hint"], event.text)
            case ev.Answered():
                yield from _answer(event)
            case ev.Denied():
                yield f"*denied: {event.reason}*\n"
                if event.words:
                    yield _said(_LABELS["hint"], event.words)
            case ev.Result():
                notes = ["an error"] if event.is_error else []
                notes += [] if event.exit_code is None else [f"exit code {event.exit_code}"]
                about = f" ({', '.join(notes)})" if notes else ""
                yield f"Result of {event.name}{about}:\n\n{_fenced(event.text)}\n"
            case ev.CutUndone():
                yield "*the human took the last checkpoint back*\n"
            case ev.TurnEnded() if event.reason != "answered":
                yield f"*the turn ended: {event.reason}*\n"


def _answer(event: ev.Answered) -> Iterator[str]:
    for block in read(event.message).content:
        if block["type"] == "text":
            yield _said("Agent", block["text"])
        elif block["type"] == "tool_use":
            given = block["input"]
            shown = given.get("command") if list(given) == ["command"] else None
            yield f"Call {block['name']}:\n\n{_fenced(shown or json.dumps(given, ensure_ascii=False, indent=1))}\n"


def _said(who: str, text: str) -> str:
    return f"## {who}\n\n{text}\n"


def _fenced(text: str) -> str:
    """A block that its own text can't end."""
    longest = max((len(run) for run in _runs(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def _runs(text: str) -> Iterator[str]:
    run = ""
    for sign in text:
        if sign == "`":
            run += sign
        elif run:
            yield run
            run = ""
    if run:
        yield run
