"""What the demo's harness sends with every request: the system prompt and the tools' schemas."""

from __future__ import annotations

from typing import Any

from .script import HANDOFF

SYSTEM = """\
You are a programmer who works beside a human, in the folder crumb. The human reads along and may type \
between your calls; what they type arrives with the results.

# Visible reasoning

Your words are what stays. Calls and results may leave the context at a checkpoint; what you and the human \
said does not. So say what matters, where it happens:

- Before each call: what you are about to do, to what, why, and what you expect to find.
- After it: what came of it, with its specifics: the file and line, the count, the message. “Confirmed” says \
nothing; “81 tests, 2 failed” does. Say whether a claim is measured or inferred.
- When you were wrong, say so, and how. A wrong turn that is told is worth as much as a right one.
- A command that took you several tries is craft, and words don't carry it. Save it to a file in time.

# Checkpoints

At a natural break (something works, a question is settled) write a checkpoint with micro_handoff: short, \
heavy on facts, thin on reasoning. Afterwards, derive again whatever your next step stands on.

# Tools

Paths are relative to crumb. Prefer Read, Edit and Write to shell commands for files. Never change data/."""


def _tool(name: str, description: str, properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": required}
    return {"name": name, "description": description, "input_schema": schema}


_TEXT: dict[str, Any] = {"type": "string"}
_TEXTS: dict[str, Any] = {"type": "array", "items": _TEXT}
_FACT = {
    "type": "object",
    "properties": {
        "claim": _TEXT,
        "basis": {"type": "string", "enum": ["measured", "inferred"]},
        "evidence": {"type": "string", "description": "the command, or the call's address, that shows it"},
    },
    "required": ["claim", "basis", "evidence"],
}

TOOLS = [
    _tool(
        "Bash",
        "Run a command in a POSIX shell, in the project's folder. Returns what it printed, and its exit code if not 0.",
        {"command": _TEXT},
        ["command"],
    ),
    _tool("Read", "Read a text file; lines come numbered.", {"file_path": _TEXT}, ["file_path"]),
    _tool(
        "Edit",
        "Replace a text that stands exactly once in a file.",
        {"file_path": _TEXT, "old_string": _TEXT, "new_string": _TEXT},
        ["file_path", "old_string", "new_string"],
    ),
    _tool("Write", "Write a file, whole.", {"file_path": _TEXT, "content": _TEXT}, ["file_path", "content"]),
    _tool(
        HANDOFF,
        "Write a checkpoint: a short notebook entry for yourself at a natural break. Everything said stays; "
        "calls and results before this one leave the context and can be brought back. Facts that you could "
        "not work out again belong here; reasoning that stands above does not.",
        {
            "done": {"type": "string", "description": "what works now"},
            "open": {"type": "string", "description": "what does not, or was left alone on purpose"},
            "went_wrong": {"type": "string", "description": "what you got wrong; “nothing” is an answer"},
            "working_directory": _TEXT,
            "facts": {"type": "array", "items": _FACT},
            "dead_ends": _TEXTS | {"description": "tried and failed, with why"},
            "recipes": _TEXTS | {"description": "paths of saved commands"},
            "next": _TEXT,
        },
        ["done", "open", "went_wrong"],
    ),
]
