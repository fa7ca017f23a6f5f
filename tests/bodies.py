"""Request bodies for tests, made from recorded Claude Code sessions with checkpoints put in.

A throwaway builder: it knows nothing of branches or compactions, and is good enough to have real words, real
tool traffic and real oddities in the shape that goes over the wire.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "sessions" / "claude-code"
BUGS = Path(__file__).resolve().parents[2] / "shared" / "bugs"
CHECKPOINT = "mcp__cutline__micro_handoff"

Message = dict[str, Any]


def session_files() -> list[Path]:
    """The recorded sessions, sub-agents' files included; empty where they are absent."""
    return sorted(DATA.rglob("*.jsonl"))


def bodies(most: int | None = None) -> Iterator[tuple[str, bytes]]:
    """Every session with one, two and three checkpoints, as (name, body).

    Args:
        most: sessions of more than so many bytes are left out.
    """
    for path in session_files():
        if most is None or path.stat().st_size <= most:
            yield from bodies_of(path)


def bodies_of(path: Path) -> Iterator[tuple[str, bytes]]:
    """One session with one, two and three checkpoints, where they fit."""
    messages = history(path)
    for count in (1, 2, 3):
        places = spots(messages, count)
        if places:
            # Both spellings that clients use: compact UTF-8, and ASCII with spaces.
            compact = (count + len(messages)) % 2 == 0
            yield f"{path.stem}-{count}", body(with_checkpoints(messages, places), compact=compact)


def history(path: Path) -> list[Message]:
    """A session file's main line as a list of messages."""
    messages: list[Message] = []
    speaking: dict[str, Message] = {}
    for record in _records(path):
        said = record.get("message")
        if record.get("isSidechain") or record.get("type") not in ("user", "assistant") or not isinstance(said, dict):
            continue
        content = said.get("content")
        if not content or (isinstance(content, list) and not all(isinstance(item, dict) for item in content)):
            continue
        if said.get("role") == "assistant":
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
            open_message = speaking.get(str(said.get("id")))
            if open_message is not None:
                open_message["content"] += blocks
            else:
                messages.append({"role": "assistant", "content": list(blocks)})
                speaking = {str(said.get("id")): messages[-1]}
        else:
            results = isinstance(content, list) and content[0].get("type") == "tool_result"
            last = messages[-1] if messages else None
            if results and last and last["role"] == "user" and isinstance(last["content"], list):
                last["content"] += content
            else:
                messages.append({"role": "user", "content": list(content) if results else content})
            if not results:
                speaking = {}
    while messages and messages[0]["role"] != "user":
        del messages[0]
    return messages


def spots(messages: list[Message], count: int) -> list[int]:
    """Where `count` checkpoints fit, spread evenly: behind user messages, where no call is open."""
    fits = [
        index
        for index in range(3, len(messages))
        if messages[index - 1]["role"] == "user" and messages[index]["role"] == "assistant"
    ]
    return [fits[(number + 1) * len(fits) // (count + 1)] for number in range(count)] if len(fits) > count else []


def with_checkpoints(messages: list[Message], places: list[int]) -> list[Message]:
    """The history with a checkpoint turn put in before each place; the second has thinking and a sibling call."""
    out: list[Message] = []
    for index, message in enumerate(messages):
        if index in places:
            number = places.index(index) + 1
            out += checkpoint_turn(number, rich=number == 2)
        out.append(message)
    return out


def checkpoint_turn(number: int, rich: bool = False) -> list[Message]:
    """An agent's message with a checkpoint, and the message with its result."""
    document = {"done": f"part {number}", "open": "the rest", "went_wrong": "nothing"}
    calls = [{"type": "tool_use", "id": f"toolu_check{number}", "name": CHECKPOINT, "input": document}]
    said: list[dict[str, Any]] = [{"type": "text", "text": f"Part {number} is done; checkpoint."}]
    if rich:
        said.insert(0, {"type": "thinking", "thinking": "Time to note it down.", "signature": "c2lnbmVk"})
        calls.append({"type": "tool_use", "id": f"toolu_side{number}", "name": "Bash", "input": {"command": "date"}})
    results = [{"type": "tool_result", "tool_use_id": call["id"], "content": "Checkpoint stored."} for call in calls]
    return [{"role": "assistant", "content": said + calls}, {"role": "user", "content": results}]


def body(messages: list[Message], *, compact: bool = True, **members: Any) -> bytes:
    """A request body; `members` are added to it or take the place of its own."""
    names = ("Bash", CHECKPOINT, "mcp__cutline__recall")
    tools = [{"name": name, "input_schema": {"type": "object"}} for name in names]
    whole = {
        "model": "claude-opus-4-7",
        "max_tokens": 32000,
        "system": [{"type": "text", "text": "You are a coding agent."}],
        "tools": tools,
        "thinking": {"type": "adaptive"},
        **members,
        "messages": messages,
        "metadata": {"user_id": "u"},
    }
    if compact:
        try:
            return json.dumps(whole, separators=(",", ":"), ensure_ascii=False).encode()
        except UnicodeEncodeError:
            pass  # a lone surrogate can only be written as an escape
    return json.dumps(whole).encode()


def _records(path: Path) -> Iterator[dict[str, Any]]:
    decoder = json.JSONDecoder()
    for line in path.read_text("utf-8", errors="replace").split("\n"):
        pos = 0
        while pos < len(line):
            try:
                record, pos = decoder.raw_decode(line, pos)
            except ValueError:
                break
            if isinstance(record, dict):
                yield record
            while line[pos : pos + 1].isspace():
                pos += 1
