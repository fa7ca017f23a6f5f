"""What a client's requests say of themselves: session, sub-agent, how it is paid, and the client's own compaction.

Law: facts of the clients on the wire, measured (docs/proxy.md, docs/claude-code.md); each is one small function, and
what is not recognised is an ordinary turn.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping

from ..blocks import Kind
from ..errors import Unreadable
from ..measure import request_of
from ..wire import anthropic as wire

_SUMMARIES = (
    # Claude Code 2.1.197, 2.1.332
    (r"CRITICAL: Respond with TEXT ONLY\. Do NOT call any tools\.", "a detailed summary of the conversation"),
    # Codex 0.142, 0.171, which also says so in a header
    (r"You are performing a CONTEXT CHECKPOINT COMPACTION\.", "summary"),
    # Gemini CLI 0.61: asked twice
    (
        r"(?:A previous <state_snapshot> exists|Generate a new <state_snapshot>)",
        "Then, generate the updated <state_sna",
    ),
    (r"Critically evaluate the <state_snapshot> you just generated\.", "<state_snapshot>"),
    # opencode 1.18: the history is told in one text
    (r"Here is the conversation so far:\s+<conversation>", "anchored summary"),
    # pi 1.6: likewise
    (r"<conversation>\n", "The messages above are "),
    (r"# Conversation\n", "The messages above are earlier context from an ongoing conversation."),  # of a split turn
)
"""How a client's own demand for a summary begins, and what else stands in it."""
_MARKS = (
    *(b"CRITICAL: Respond with TEXT ONLY", b"CONTEXT CHECKPOINT COMPACTION", b"<state_snapshot>", b"<conversation>"),
    b"# Conversation",
)
"""One of these stands in each of them."""
_SESSION = ("x-session-id", "x-session-affinity", "session_id")
"""opencode's, pi's, and what others send to be led to the same cache."""
OURS = ("x-cutline-session", "x-cutline-agent")
"""What `cutline run` itself puts on requests, where it can, to name session and sub-agent; it goes no further."""
_KEY = re.compile(rb'"(?:prompt_cache_key|session_id)"\s*:\s*"([\x20-\x21\x23-\x5b\x5d-\x7e]{1,200})"')

_ENDS = re.compile(rb'"name"\s*:\s*"complete_task"')


def ids(headers: Mapping[str, str], body: bytes = b"") -> tuple[str, str]:
    """Session and sub-agent of a request, "" where it names none.

    Args:
        headers: by lower-case name.
        body: without encodings; looked into where the headers name none and the format has a place for it.
    """
    if OURS[0] in headers:
        return headers[OURS[0]], headers.get(OURS[1], "")
    if "x-claude-code-session-id" in headers:
        return headers["x-claude-code-session-id"], headers.get("x-claude-code-agent-id", "")
    if "x-parent-session-id" in headers:  # opencode: a sub-agent has a session of its own
        return headers["x-parent-session-id"], headers.get("x-session-id", "")
    codex = headers.get("session-id", "")
    if codex:
        kind, thread = headers.get("x-openai-subagent", ""), headers.get("thread-id", "")
        sub = kind or "x-codex-parent-thread-id" in headers
        return codex, (thread if thread not in ("", codex) else kind) if sub else ""
    named = next(
        (headers[name] for name in ("x-session-id", "x-session-affinity", "session_id") if name in headers), ""
    )
    agent = _helper(body) if headers.get("user-agent", "").startswith("GeminiCLI") else ""
    if named or not body:
        return named, agent
    found = _KEY.search(body)  # inside of a text its quotes would be escaped
    return (found[1].decode() if found else ""), agent


def _helper(body: bytes) -> str:
    """Which of Gemini CLI's sub-agents asks, by what it was told first; "" for the main agent.

    Nothing else tells them apart, but that a sub-agent, and it alone, is offered a tool to end with.
    """
    if not _ENDS.search(body):
        return ""
    start = body.find(b'"contents"')
    told = body[start : body.find(b'"role"', start + len(b'"contents"'))]
    return f"sub-{hashlib.sha256(told).hexdigest()[:12]}"


def metered(headers: Mapping[str, str], format: str = "anthropic") -> bool:
    """Whether a request is paid by the token, with a key; a login by subscription sends a token instead.

    Args:
        headers: by lower-case name.
        format: of the request.
    """
    if any(name in headers for name in ("x-api-key", "api-key", "x-goog-api-key")):
        return True
    given = headers.get("authorization", "").removeprefix("Bearer ")
    if format == "anthropic":
        return given.startswith(("sk-", "ya29.")) and not given.startswith("sk-ant-oat")
    return "chatgpt-account-id" not in headers and not given.startswith("ya29.")


def is_compaction(body: bytes, start: int = 0, headers: Mapping[str, str] | None = None) -> bool:
    """Whether the client asks for a summary of the conversation: its last words are the client's own instruction.

    The same words elsewhere, in a file that the agent read, are none.

    Args:
        body: without encodings.
        start: what stands before this byte is not searched for them.
        headers: by lower-case name; Codex says what a request is for.
    """
    told = headers or {}
    if _kind(told) == "compaction":
        return True
    marks = _MARKS[:1] if "x-claude-code-session-id" in told else _MARKS  # each costs a look through the body
    if all(body.find(mark, start) < 0 for mark in marks):
        return False
    try:
        request = request_of(body)[0]
    except Unreadable:
        return False
    last = request.messages[-1] if request.messages else None
    if last is None or last.role != "user" or not last.blocks or last.blocks[-1].kind is not Kind.TEXT:
        return False
    words = wire.words(request, last.blocks[-1]).lstrip()
    return any(re.match(begins, words) is not None and more in words for begins, more in _SUMMARIES)


def _kind(headers: Mapping[str, str]) -> str:
    """What a request of Codex is for, by its own word: "turn", "compaction" …; "" where nothing says so."""
    try:
        told = json.loads(headers.get("x-codex-turn-metadata", "") or "{}")
    except (ValueError, RecursionError):
        return ""
    return str(told.get("request_kind") or "") if isinstance(told, dict) else ""
