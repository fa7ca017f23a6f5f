"""What an agent is told: the mandate, and the three tools' names, descriptions and schemas. Law: text only, no logic.

An agent pays for these words with every request, so all of them together stay under 1,100 tokens (a test holds
their bytes; docs/claude-code.md says how the tokens were counted). docs/mandate.md says why each sentence is here.
"""

from __future__ import annotations

from typing import Any

VERSION = 1
"""Counted up whenever the agent would read something else."""

MANDATE = """\
# Visible reasoning (Cutline)
Your words are your memory: at a checkpoint all tool calls, results and thinking before it leave your context, while \
every word that you and the human wrote stays.
- Before each call, say what you do, to what, why, and what you expect. After it, what came of it with its \
specifics: path, line, count, message. "Confirmed" says nothing; "81 tests, 2 failed in test_io.py" does. Say whether \
a claim is measured or inferred, and when you were wrong.
- Where text between calls is not shown to the human, use the tool say, in parallel with the call it is about.
- A command that took several tries is craft: save it to a file before it is gone.
- At a natural break (something works, a question is settled, much lies behind you) call micro_handoff. Not in the \
middle of a question, and not often: each one costs detail.
- Behind a checkpoint, your earlier claims are testimony: check again what the next step stands on. recall returns any \
earlier result exactly. Call tools anew; never write a call out as text."""

NUDGE = (
    "Cutline: this call comes without words. Say before a call what you do, why, and what you expect, and after it "
    "what came of it, in text or with the tool say: results leave your context at the next checkpoint."
)
"""What a call without a stated intent is answered with under `--mandate nudge`; the call runs."""

STRICT = (
    "Cutline: not run, because no intent was stated. Say first what you do, to what, why, and what you expect "
    "(in text, or with the tool say in parallel), then call again."
)
"""The same under `--mandate strict`; the call does not run."""

CHECKPOINT_WANTED = (
    "Cutline: the context is nearly full. Write a checkpoint now with micro_handoff: what lies before it then leaves "
    "the context by itself, and the automatic summary is not needed."
)
"""What the agent is told when its client is about to summarise the conversation by itself."""

_TEXT: dict[str, Any] = {"type": "string"}
_TEXTS: dict[str, Any] = {"type": "array", "items": _TEXT}


def _text(description: str) -> dict[str, Any]:
    return {**_TEXT, "description": description}


TOOLS: tuple[dict[str, Any], ...] = (
    {
        "name": "micro_handoff",
        "description": (
            "Write a checkpoint: a short field-notebook entry to yourself (under 800 tokens) at a natural break. What "
            "was said stays; calls, results and thinking before it leave the context. Many facts, little reasoning: "
            "counts, paths, what lies about its exit code, what failed. Main agent only: a sub-agent never calls it."
        ),
        "inputSchema": {
            "type": "object",
            "properties": {
                "done": _TEXT,
                "open": _TEXT,
                "went_wrong": _text('"nothing" is an answer'),
                "working_directory": _TEXT,
                "facts": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "claim": _TEXT,
                            "basis": {"enum": ["measured", "inferred"]},
                            "evidence": _text("command or address that shows it"),
                        },
                        "required": ["claim", "basis"],
                    },
                },
                "dead_ends": {**_TEXTS, "description": "tried and failed, with why"},
                "recipes": {**_TEXTS, "description": "paths of saved craft"},
                "next": _TEXT,
            },
            "required": ["done", "open", "went_wrong"],
        },
    },
    {
        "name": "recall",
        "description": (
            "An earlier call with its result, exactly as it was: by its address (16 hex digits), or a list of those "
            "that hold all the given words."
        ),
        "inputSchema": {
            "type": "object",
            "properties": {
                "what": _text("address or words"),
                "offset": {"type": "integer", "description": "character to start from"},
            },
            "required": ["what"],
        },
    },
    {
        "name": "say",
        "description": (
            "Words to the human, kept for ever. In parallel with a call: what you do and why; with the next one: what "
            "came of it."
        ),
        "inputSchema": {"type": "object", "properties": {"text": _TEXT}, "required": ["text"]},
    },
)
"""The three tools, as an MCP server lists them."""
