"""Bodies for the benchmarks: real ones from recorded sessions where they are there, else made up ones.

A body is a history with a checkpoint put in at about 90 % of it, a system prompt, and 64 KB of tool schemas.
"""

import json
from pathlib import Path
from typing import Any

from cutline.errors import CutlineError
from cutline.sessions.claude_code import open_session

SESSIONS = Path(__file__).resolve().parents[2] / "shared" / "data" / "sessions" / "claude-code"
CHECKPOINT = "mcp__cutline__micro_handoff"
TOOL_SCHEMAS = 64 * 1024

Message = dict[str, Any]


def histories() -> tuple[list[list[Message]], str]:
    """Message lists, the largest first, and where they come from."""
    found = []
    for path in sorted(SESSIONS.glob("*.jsonl")):
        try:
            body = open_session(path).history.body
        except CutlineError:
            continue
        messages = json.loads(body)["messages"]
        if len(messages) > 200:
            found.append((len(body), messages))
    if not found:
        return [made_up(1_000 + n) for n in range(5)], "made up (no recorded sessions on this machine)"
    found.sort(key=lambda pair: -pair[0])
    return [messages for _, messages in found], "recorded Claude Code sessions"


def made_up(turns: int) -> list[Message]:
    """A history of calls with results of about 1 KB, some of them narrated."""
    messages: list[Message] = [{"role": "user", "content": "Find out why the count is wrong, and mend it."}]
    listing = "\n".join(f'src/module_{n}.py:{n}:\tcount += weights["{n}"]  # “{n}”' for n in range(18))
    for n in range(turns):
        call = {
            "type": "tool_use",
            "id": f"toolu_{n:08}",
            "name": "Bash",
            "input": {"command": f"grep -rn count src | tail -{n}"},
        }
        said = [{"type": "text", "text": f"Looking at step {n}, because module_{n % 18}.py seems to count twice."}]
        messages.append({"role": "assistant", "content": [*(said if n % 3 == 0 else []), call]})
        result = {"type": "tool_result", "tool_use_id": call["id"], "content": f"{n} files\n{listing}"}
        messages.append({"role": "user", "content": [result]})
    return messages


def chained(found: list[list[Message]], size: int) -> list[Message]:
    """Histories behind one another until they weigh about `size` bytes of JSON."""
    out: list[Message] = []
    weight = 0
    while weight < size * 0.95:
        for messages in found:
            out += messages
            weight += len(json.dumps(messages))
            if weight >= size * 0.95:
                break
    return out


def tiny(count: int) -> list[Message]:
    """As many very small messages."""
    return [
        {"role": "user", "content": "a"}
        if n % 2 == 0
        else {"role": "assistant", "content": [{"type": "text", "text": "b"}]}
        for n in range(count)
    ]


def body(messages: list[Message], *, share: float | None = 0.9) -> bytes:
    """A compact body; a checkpoint at that share of its messages, or none."""
    messages = list(messages)
    if share is not None:
        fits = [
            n
            for n in range(1, len(messages))
            if messages[n - 1]["role"] != "assistant" and messages[n]["role"] == "assistant"
        ]
        at = next(n for n in fits if n >= share * len(messages))
        messages[at:at] = turn()
    whole = {
        "model": "claude-opus-4-7",
        "max_tokens": 32_000,
        "system": [{"type": "text", "text": "You are a coding agent. " * 800}],
        "tools": tools(),
        "thinking": {"type": "adaptive"},
        "messages": messages,
        "stream": True,
    }
    try:
        return json.dumps(whole, separators=(",", ":"), ensure_ascii=False).encode()
    except UnicodeEncodeError:  # a lone surrogate can only be written as an escape
        return json.dumps(whole, separators=(",", ":")).encode()


def turn() -> list[Message]:
    """A checkpoint and its result."""
    document = {"done": "the count is right", "open": "the tests", "went_wrong": "nothing"}
    call = {"type": "tool_use", "id": "toolu_checkpoint", "name": CHECKPOINT, "input": document}
    result = {"type": "tool_result", "tool_use_id": "toolu_checkpoint", "content": "Checkpoint stored."}
    return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]


def one_turn_later(body: bytes) -> bytes:
    """The next request: the same bytes, and a call with its result behind the last message."""
    call = {"type": "tool_use", "id": "toolu_next", "name": "Bash", "input": {"command": "pytest -q"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_next", "content": "3 passed in 0.12s\n" * 60}
    said = {"type": "text", "text": "Running the tests once more."}
    turn = [{"role": "assistant", "content": [said, call]}, {"role": "user", "content": [result]}]
    end = body.rindex(b'],"stream":true}')
    return body[:end] + b"," + json.dumps(turn, separators=(",", ":")).encode()[1:-1] + body[end:]


def tools() -> list[dict[str, Any]]:
    """Tool schemas of about 64 KB."""
    declared: list[dict[str, Any]] = [
        {"name": name, "description": "…", "input_schema": {"type": "object"}}
        for name in (CHECKPOINT, "mcp__cutline__recall")
    ]
    number = 0
    while len(json.dumps(declared)) < TOOL_SCHEMAS:
        number += 1
        properties = {
            f"argument_{n}": {"type": "string", "description": "What the tool does with this argument, in a sentence."}
            for n in range(8)
        }
        schema = {"type": "object", "properties": properties, "required": ["argument_0"], "additionalProperties": False}
        declared.append({"name": f"tool_{number}", "description": "Does a thing. " * 40, "input_schema": schema})
    return declared
