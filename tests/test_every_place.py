"""Every recorded session, cut wherever a checkpoint could have stood: by the rules, proven, and taken by the provider.

A checkpoint turn is put in at a place where no call is open: every such place of the smaller sessions, twenty of the
larger ones. The history is the one that Cutline reads from the file, of whatever client.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import abroad
import bodies
import histories
import validator
from conftest import SHARED
from cutline import cut, verify
from cutline.errors import InputError
from cutline.sessions.clients import EVERY, open_path
from cutline.wire import anthropic as wire
from test_formats import faults
from validator import blocks

SESSIONS = SHARED / "data" / "sessions"
SMALL = 400_000  # bytes of a history of which every place is tried
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not SESSIONS.is_dir(), reason=f"{SESSIONS} is not there")]


def recorded() -> list[Path]:
    """The session files, sub-agents' too; request bodies stand elsewhere."""
    files = (path for kind in EVERY for path in (SESSIONS / kind).rglob("*") if path.is_file())
    return sorted(path for path in files if "consecutive" not in path.name)


def messages_of(path: Path) -> list[dict[str, Any]]:
    """A session's history, or its first one's where a file holds several; empty where it holds none."""
    try:
        body = open_path(path).history.body
    except InputError as error:
        if "name one" not in str(error):
            return []
        part = str(error).partition("#")[2].partition("”")[0]
        body = open_path(path, part).history.body
    found: list[dict[str, Any]] = json.loads(body)["messages"]
    return found


def places(messages: list[dict[str, Any]], most: int) -> list[int]:
    """Where a checkpoint fits: behind a user's message, where no call is open; evenly, at most so many."""
    waiting: Counter[str] = Counter()
    fits = []
    for number, message in enumerate(messages[:-1]):
        for block in blocks(message):
            waiting[block.get("id", "")] += block["type"].endswith("tool_use")
            waiting[block.get("tool_use_id", "")] -= block["type"].endswith("tool_result")
        calls_open = any(count > 0 for id, count in waiting.items() if id)
        if message["role"] == "user" and messages[number + 1]["role"] == "assistant" and not calls_open:
            fits.append(number + 1)
    return fits if len(fits) <= most else [fits[number * len(fits) // most] for number in range(most)]


def seamed(messages: list[dict[str, Any]], place: int) -> list[dict[str, Any]]:
    return [*messages[:place], *bodies.checkpoint_turn(1), *messages[place:]]


def has_something(messages: list[dict[str, Any]]) -> bool:
    """Whether an answered call stands there that no rule keeps."""
    answered = {block.get("tool_use_id") for message in messages for block in blocks(message)}
    kept = {*histories.SPEECH, *histories.INSTRUCTIONS, *wire.SPEECH, *wire.INSTRUCTIONS, *wire.TODO_LISTS}
    results = {block.get("tool_use_id"): json.dumps(block) for message in messages for block in blocks(message)}
    return any(
        block["type"] == "tool_use"
        and block["id"] in answered
        and block["name"] not in kept
        and not any(
            mark in results[block["id"]] for mark in ("The user doesn't want", "[Request interrupted", "tool_ref")
        )
        for message in messages
        for block in blocks(message)
    )


@pytest.mark.parametrize("path", recorded(), ids=lambda path: f"{path.parent.name}/{path.name}"[:70])
def test_a_session_is_cut_wherever_a_checkpoint_could_stand(path: Path) -> None:
    messages = messages_of(path)
    whole = len(json.dumps(messages))
    for place in places(messages, 10_000 if whole <= SMALL else 20):
        body = bodies.body(seamed(messages, place), compact=place % 2 == 0)
        done = cut(body)
        verify(body, done.body)
        assert done.changed or not has_something(messages[:place]), (place, done.reason)
        assert not done.kept_unknown, (place, done.kept_unknown)
        if done.changed and not validator.faults(body):
            assert validator.faults(done.body) == [], place


@pytest.mark.parametrize("format", ("openai_chat", "openai_responses", "gemini", "converse"))
@pytest.mark.parametrize("path", recorded(), ids=lambda path: f"{path.parent.name}/{path.name}"[:70])
def test_its_words_and_calls_in_another_format_too(path: Path, format: str) -> None:
    messages = messages_of(path)
    if any("id" not in block for message in messages for block in blocks(message) if block["type"] == "tool_use"):
        pytest.skip("a trimmed sample whose calls have no ids")
    for place in places(messages, 3):
        told = histories.History(seamed(messages, place), {"model": "m"}, histories.Style(ascii=False))
        body = json.dumps(abroad.FORMATS[format](told, place), ensure_ascii=place % 2 == 0).encode(
            errors="surrogatepass"
        )
        done = cut(body)
        verify(body, done.body)
        assert done.changed or not has_something(messages[:place]), (place, done.reason)
        assert not done.kept_unknown, (place, done.kept_unknown)
        if done.changed and not faults(format, body):
            assert faults(format, done.body) == [], place
