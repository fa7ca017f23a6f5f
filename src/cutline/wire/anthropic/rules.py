"""The rules that are Anthropic's own: pairs, checkpoints, thinking, authors, and which tools' pairs stay.

Law: each rule is one small function over what `reading` returns, cited by its number in docs/wire.md.
"""

from __future__ import annotations

import re

from ...blocks import Author, Block, Kind, Message, ToolCall
from .reading import CALL, NARRATION, RESULT, Request, result_text, text_span, words

# Tools whose pairs stay before a seam (docs/cut.md: what stays), by client.
SPEECH = frozenset(
    (
        *("AskUserQuestion", "ExitPlanMode"),  # Claude Code
        *("request_user_input", "ask_user", "exit_plan_mode", "question", "plan_exit"),  # Codex, Gemini CLI, opencode
        *("task_complete", "finish"),  # Copilot CLI, OpenHands
        *("ask_followup_question", "plan_mode_respond", "attempt_completion"),  # Cline, Roo
    )
)
INSTRUCTIONS = frozenset(("Skill", "ToolSearch", "tool_search_call", "activate_skill", "skill", "use_skill"))
TODO_LISTS = frozenset(("TodoWrite", "update_plan", "write_todos", "todowrite"))
SUBAGENTS = frozenset(("Task", "Agent", "task"))
WRITES = frozenset(("Edit", "Write", "MultiEdit", "NotebookEdit"))

_CHECKPOINT = re.compile(r"(?:^|[_.-])micro_handoff$").search
_SAY = re.compile(r"(?:^|cutline[_.-]+)say$").search
_ATTACHED = re.compile(r"Called the Read tool with the following input: (\{[^\n]*\})")
# What clients put before a result: Claude Code, Gemini CLI, Codex.
_WRAPPERS = re.compile(r'\s*(?:\{"result":\s*"|<untrusted_context>\s*|Wall time: [0-9.]+ seconds\nOutput:\s*)?').match
# How a result begins that says of itself that nothing was stored: ours, and Codex's own (docs/codex.md), unflagged.
_NOT_STORED = (
    "checkpoint refused:",
    *("unsupported call: ", "tool call error: ", "MCP tool call error: ", "MCP tool call cancelled"),
    *("user rejected MCP tool call", "user cancelled MCP tool call", "aborted by user"),
)


def is_checkpoint(block: Block) -> bool:
    """A call of the checkpoint tool, under whatever prefix a client gives it."""
    return block.type == "tool_use" and names_checkpoint(block.name)


def names_checkpoint(name: str) -> bool:
    """Whether a tool is the checkpoint tool, by its name as on the wire."""
    return name.endswith("micro_handoff") and _CHECKPOINT(name) is not None


def is_say(name: str) -> bool:
    """Cutline's own tool for words to the human."""
    return name.endswith("say") and _SAY(name) is not None


def attached(request: Request, block: Block) -> list[bytes]:
    """Arguments of the reads that the client made by itself, for a file that the human named: text holds them."""
    start, _ = text_span(request, block)
    if not request.view.startswith("<system-reminder>", start):
        return []
    return [found.encode("utf-8", "surrogatepass") for found in _ATTACHED.findall(words(request, block))]


def completed(request: Request, answer: Block) -> bool:
    """Whether a checkpoint's result says that it was stored: no error flag, and no text that says otherwise."""
    return not answer.error and not _refuses(result_text(request, answer))


def is_stored(call: ToolCall) -> bool:
    """Whether a call is a checkpoint that was stored (see `completed`)."""
    return names_checkpoint(call.name) and call.result is not None and not call.error and not _refuses(call.result)


def _refuses(result: str) -> bool:
    wrapper = _WRAPPERS(result)
    return result == "aborted" or result.startswith(_NOT_STORED, wrapper.end() if wrapper else 0)


def pairs(messages: list[Message]) -> tuple[dict[tuple[int, int], tuple[int, int]], int]:
    """Which result answers which call, both as (message, block).

    A call is answered in the user messages that directly follow its run of assistant messages
    (docs/wire.md, 1.2); ids are scoped to that neighbourhood, so ids that a server counts anew each turn
    pair rightly. A server's own calls are answered in an assistant message, at or behind their own.

    Returns:
        The pairs, call to result, and the number of results that answer nothing.
    """
    found: dict[tuple[int, int], tuple[int, int]] = {}
    waiting: dict[str, list[tuple[int, int]]] = {}
    at_server: dict[str, tuple[int, int]] = {}
    orphans = 0
    last = ""
    for number, message in enumerate(messages):
        role = message.role
        if role == "assistant":
            if last != "assistant":
                waiting = {}
            for index, block in enumerate(message.blocks):
                if block.kind is CALL:
                    if block.server:
                        at_server[block.id] = (number, index)
                    elif block.id in waiting:
                        waiting[block.id].append((number, index))
                    else:
                        waiting[block.id] = [(number, index)]
                elif block.kind is RESULT:
                    made = at_server.pop(block.id, None)
                    if made is None:
                        orphans += 1
                    else:
                        found[made] = (number, index)
        else:
            for index, block in enumerate(message.blocks):
                if block.kind is RESULT:
                    queue = waiting.get(block.id)
                    if queue:
                        found[queue.pop(0)] = (number, index)
                    else:
                        orphans += 1
        if role != "system":
            last = role
    return found, orphans


# Versions from which thinking is bound to everything before it (docs/wire.md, 1.3, check B).
_BOUND_FROM = {"fable": (5, 1), "mythos": (5, 1), "opus": (5, 5), "sonnet": (5, 5), "haiku": (5, 5)}
_MODEL = re.compile(r"claude-(?:(\d)(?:[-.](\d))?-)?([a-z]+)(?:-(\d{1,2})(?:[-.](\d{1,2})(?!\d))?)?")


# Makers whose models' reasoning is bound to nothing before it (docs/wire.md, 2.3, 3.3, 4.3).
_FREE = re.compile(
    r"(?<![a-z0-9])(?:gpt|o1|o3|o4|codex|gemini|gemma|deepseek|qwen|kimi|glm|grok|llama|nova"
    r"|(?:mi|mini|dev|code|magi)stral|mixtral)(?![a-z])"
)


def binds_thinking(model: str | None) -> bool | None:
    """Whether a model's thinking is bound to its exact prefix; None for a model that is not known."""
    if model and _FREE.search(model.lower()):
        return False
    found = _MODEL.search(model) if model else None
    if found is None or found[3] not in _BOUND_FROM:
        return None
    major, minor = (found[4], found[5]) if found[4] else (found[1], found[2])
    if not major:
        return None
    return (int(major), int(minor or 0)) >= _BOUND_FROM[found[3]]


def keeps_turn_thinking(request: Request) -> bool:
    """Whether the checkpoint turn keeps its thinking: only manual thinking of a model that does not bind it.

    Other formats say "kept" (`wire.neutral`).
    """
    return request.thinking in ("enabled", "kept") and binds_thinking(request.model) is not True


def is_narration(request: Request, block: Block) -> bool:
    """Whether a thinking block holds words that were shown to the human (docs/wire.md, 1.3)."""
    return block.type == "thinking" and (block.name == NARRATION or request.thinking == "between_tools")


_HARNESS_TEXT = (
    "<system-reminder>",
    "<local-command-",
    "<task-notification>",
    "<bash-stdout>",
    "<bash-stderr>",
    "<user-prompt-submit-hook>",
    "Caveat: The messages below were generated by the user while running local commands",
    "This session is being continued from a previous conversation",
    "[Request interrupted by user",
)


def author(role: str, block: Block, text: str) -> Author:
    """Who made a block; `text` is a text block's words."""
    if role == "system" or block.kind is Kind.CONTROL:
        return Author.HARNESS
    if block.kind is RESULT:
        return Author.WORLD
    if role == "assistant":
        return Author.AGENT
    return Author.HARNESS if text.lstrip().startswith(_HARNESS_TEXT) else Author.HUMAN
