"""What Anthropic's API refuses, as far as it is written down (docs/wire.md, 1).

Written from the rules, not from what the cut makes: a body goes in, the list of its faults comes out, each
beginning with the provider's own words where they are known. Where the rules leave room, the body is accepted.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from typing import Any

Body = dict[str, Any]
Blocks = list[dict[str, Any]]

THINKING = ("thinking", "redacted_thinking")
SERVER_CALLS = ("server_tool_use", "mcp_tool_use")


def faults(body: bytes | Body) -> list[str]:
    """Every fault of a request body, in the rules' order; empty for one that the API takes.

    Where a member that the rules read is missing or of another type, those faults alone.
    """
    whole: Body = json.loads(body) if isinstance(body, bytes) else body
    return list(shape(whole)) or [fault for rule in RULES for fault in rule(whole)]


def faults_of_tools(body: bytes | Body, *, gateway: bool = False) -> list[str]:
    """Faults that show when `tools` lists what the history uses, as a client's own body does.

    Args:
        gateway: on the way there stands Bedrock or LiteLLM, which want every call that was made declared; the API
            itself takes calls of tools that are gone.
    """
    whole: Body = json.loads(body) if isinstance(body, bytes) else body
    return [*_unresolved(whole), *(_undeclared(whole) if gateway else ())]


def faults_of_a_cut(before: bytes | Body, after: bytes | Body, made_before: int) -> list[str]:
    """Faults that only show when the body is known that was answered: checks A and B, signed compactions.

    Args:
        before: the whole history.
        after: what is sent of it.
        made_before: the messages of `after` before this index were made over the whole history; the ones
            behind it over the cut one, if every request was cut.
    """
    one: Body = json.loads(before) if isinstance(before, bytes) else before
    two: Body = json.loads(after) if isinstance(after, bytes) else after
    return [
        *_modified_runs(one, two),
        *_moved_calls(one, two),
        *_bound_elsewhere(one, two, made_before),
        *_altered_compactions(one, two),
    ]


def blocks(message: dict[str, Any]) -> Blocks:
    """A message's content as a list of blocks."""
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def is_server_result(block: dict[str, Any]) -> bool:
    return str(block["type"]).endswith("_tool_result")


# -------------------------------------------------------------------------------------- 1.1 blocks and roles

MEMBERS: dict[str, dict[str, type]] = {
    "text": {"text": str},
    "tool_use": {"id": str, "name": str, "input": dict},
    "tool_result": {"tool_use_id": str},
    "thinking": {"thinking": str, "signature": str},
    "redacted_thinking": {"data": str},
    **{name: {"id": str, "name": str, "input": dict} for name in SERVER_CALLS},
}
PLACES: dict[str, str] = {
    "tool_result": "user",
    "tool_addition": "system",
    "tool_removal": "system",
    **dict.fromkeys(("tool_use", *SERVER_CALLS, *THINKING, "connector_text", "fallback"), "assistant"),
}


def shape(body: Any) -> Iterator[str]:
    """What has to be there for the rules to read: messages, roles, blocks with their own members."""
    messages = body.get("messages") if isinstance(body, dict) else None
    if not isinstance(messages, list):
        yield "messages: Field required"
        return
    if not messages:
        yield "messages: at least one message is required"
    for number, message in enumerate(messages):
        content = message.get("content") if isinstance(message, dict) else None
        if not isinstance(message, dict) or message.get("role") not in ("user", "assistant", "system"):
            yield f"messages.{number}.role: Input should be 'user', 'assistant' or 'system'"
        elif not isinstance(content, str | list):
            yield f"messages.{number}.content: Field required"
        for index, block in enumerate(content if isinstance(content, list) else ()):
            path = f"messages.{number}.content.{index}"
            if not isinstance(block, dict) or not isinstance(block.get("type"), str):
                yield f"{path}.type: Field required"
                continue
            wanted = MEMBERS.get(block["type"], {})
            if is_server_result(block):
                wanted = {"tool_use_id": str}
            for name, kind in wanted.items():
                if not isinstance(block.get(name), kind):
                    yield f"{path}.{block['type']}.{name}: Field required"


def places(body: Body) -> Iterator[str]:
    for number, message in enumerate(body["messages"]):
        for block in blocks(message):
            wanted = "assistant" if is_server_result(block) else PLACES.get(block["type"], message["role"])
            if message["role"] != wanted:
                yield f"messages.{number}: `{block['type']}` blocks can only be in {wanted} messages"


# --------------------------------------------------------------------------------------------- 1.2 structure


def size(body: Body) -> Iterator[str]:
    if len(body["messages"]) > 100_000:
        yield "too many messages"


def roles(body: Body) -> Iterator[str]:
    messages = body["messages"]
    if messages and messages[0]["role"] == "system":
        yield "a system message cannot be first"
    elif messages and messages[0]["role"] != "user":
        yield "first message must use the user role"
    for number, message in enumerate(messages):
        if message["role"] != "system":
            continue
        before = [other for other in messages[:number] if other["role"] != "system"]
        after = next((other for other in messages[number + 1 :] if other["role"] != "system"), None)
        if before and before[-1]["role"] == "assistant" and not is_server_result(blocks(before[-1])[-1]):
            yield f"messages.{number}: a system message must follow a user turn or a server tool result"
        if after is not None and after["role"] != "assistant":
            yield f"messages.{number}: a system message must precede an assistant turn or end the conversation"


def emptiness(body: Body) -> Iterator[str]:
    messages = body["messages"]
    for number, message in enumerate(messages):
        found = blocks(message)
        last_assistant = number == len(messages) - 1 and message["role"] == "assistant"
        if not found and not last_assistant:
            yield f"messages.{number}: all messages must have non-empty content"
        for block in found:
            if block["type"] == "text" and not block["text"]:
                yield f"messages.{number}: text content blocks must be non-empty"
        # White space beside a call is refused only once the call is gone: that is how clients meet it.
        if found and all(block["type"] == "text" and not block["text"].strip() for block in found):
            yield f"messages.{number}: text content blocks must contain non-whitespace text"
    prompt = body.get("system")
    for block in prompt if isinstance(prompt, list) else ():
        if not block["text"].strip():
            yield f"system: text content blocks must {'contain non-whitespace text' if block['text'] else 'be non-empty'}"


def calls_are_answered(body: Body) -> Iterator[str]:
    """Pairing is checked message by message: the very next one holds all results, and nothing else's."""
    messages = body["messages"]
    for number, message in enumerate(messages):
        made = Counter(block["id"] for block in blocks(message) if block["type"] == "tool_use")
        following = messages[number + 1] if number + 1 < len(messages) else None
        given: Counter[str] = Counter()
        if following is not None and following["role"] == "user":
            given = Counter(b["tool_use_id"] for b in blocks(following) if b["type"] == "tool_result")
        if made - given:
            yield (
                f"messages.{number}: `tool_use` ids were found without `tool_result` blocks immediately after: "
                + ", ".join((made - given).elements())
            )
        if message["role"] == "assistant" and following is not None and given - made:
            yield f"messages.{number + 1}: unexpected `tool_use_id` found in `tool_result` blocks"
        has_results = any(block["type"] == "tool_result" for block in blocks(message))
        if has_results and (number == 0 or messages[number - 1]["role"] != "assistant"):
            yield f"messages.{number}: unexpected `tool_use_id` found in `tool_result` blocks"


def results_come_first(body: Body) -> Iterator[str]:
    for number, message in enumerate(body["messages"]):
        kinds = [block["type"] == "tool_result" for block in blocks(message)]
        if kinds != sorted(kinds, reverse=True):
            yield f"messages.{number}: `tool_result` blocks must come first"


def server_pairs(body: Body) -> Iterator[str]:
    messages = body["messages"]
    waiting: dict[str, int] = {}
    for number, message in enumerate(messages):
        if message["role"] == "assistant":
            for block in blocks(message):
                if block["type"] in SERVER_CALLS:
                    waiting[block["id"]] = number
                elif is_server_result(block) and waiting.pop(block["tool_use_id"], None) is None:
                    yield f"messages.{number}: unexpected `tool_use_id` found in `{block['type']}` blocks"
        elif waiting and any(block["type"] != "tool_result" for block in blocks(message)):
            yield f"messages.{number}: only tool_result blocks may follow an unanswered server tool use"
    last_words = max((n for n, message in enumerate(messages) if message["role"] != "assistant"), default=-1)
    for number in waiting.values():
        # Only a paused last turn has a server's call without its result.
        if number <= last_words and not _open_loop(messages):
            yield f"messages.{number}: a server tool use without its result"


def prefill(body: Body) -> Iterator[str]:
    messages = body["messages"]
    if not messages or messages[-1]["role"] != "assistant":
        return
    if _version(body) is None or _version(body) >= (4, 6):
        yield "This model does not support assistant message prefill. The conversation must end with a user message."
    else:
        found = blocks(messages[-1])
        if found and found[-1]["type"] == "text" and found[-1]["text"] != found[-1]["text"].rstrip():
            yield "final assistant content cannot end with trailing whitespace"


def forced_tools(body: Body) -> Iterator[str]:
    if (body.get("tool_choice") or {}).get("type") not in ("any", "tool"):
        return
    if _thinking(body) == "enabled":
        yield "Thinking may not be enabled when tool_choice forces tool use."
    elif binds(body.get("model")) and "haiku" not in body["model"]:
        yield "tool_choice: this model does not support forcing tool use."


def toolsets(body: Body) -> Iterator[str]:
    """A call of a toolset's member is answered in that toolset's name."""
    messages = body["messages"]
    for number, message in enumerate(messages[1:], 1):
        asked = {b["id"]: b.get("toolset_name") for b in blocks(messages[number - 1]) if b["type"] == "tool_use"}
        for block in blocks(message):
            if block["type"] == "tool_result" and block.get("toolset_name") != asked.get(block["tool_use_id"]):
                yield f"messages.{number}: `toolset_name` of a `tool_result` must match its `tool_use`"


def citations(body: Body) -> Iterator[str]:
    """All documents are to be cited or none; those inside results count."""
    found = []
    for message in body["messages"]:
        for block in _with_inner(blocks(message)):
            if block["type"] == "document":
                found.append(bool((block.get("citations") or {}).get("enabled")))
    if len(set(found)) > 1:
        yield "citations must be enabled on all or none of the documents"


def callers(body: Body) -> Iterator[str]:
    """A call that a program on the server made is answered by results alone (1.5)."""
    messages = body["messages"]
    for number, message in enumerate(messages[:-1]):
        programs = {
            block["caller"].get("tool_id")
            for block in blocks(message)
            if block["type"] == "tool_use" and (block.get("caller") or {}).get("type") not in (None, "direct")
        }
        if programs and any(block["type"] != "tool_result" for block in blocks(messages[number + 1])):
            yield f"messages.{number + 1}: only tool_result blocks may answer a programmatic call"


# ---------------------------------------------------------------------------------------------- 1.3 thinking


def thinking_ends_no_message(body: Body) -> Iterator[str]:
    messages = body["messages"]
    for number, message in enumerate(messages):
        found = blocks(message)
        if message["role"] == "assistant" and found and found[-1]["type"] in THINKING:
            yield f"messages.{number}: The final block in an assistant message cannot be `thinking`"


def thinking_starts_the_turn(body: Body) -> Iterator[str]:
    """With manual thinking, an open tool loop has thinking first: in its last run of messages, or all in all."""
    messages = body["messages"]
    if _thinking(body) != "enabled" or binds(body.get("model")) or not _open_loop(messages):
        return  # the models that bind their thinking know adaptive thinking alone
    turn = _turn(messages)
    last_run: Blocks = []
    for message in reversed(messages[:-1]):
        if message["role"] != "assistant":
            break
        last_run = blocks(message) + last_run
    for found in (last_run, turn):
        if found and found[0]["type"] in THINKING:
            return
    yield (
        f"Expected `thinking` or `redacted_thinking`, but found `{last_run[0]['type']}`. When `thinking` is enabled, "
        "a final `assistant` message must start with a thinking block"
    )


def thinking_disabled(body: Body) -> Iterator[str]:
    assistants = [message for message in body["messages"] if message["role"] == "assistant"]
    if _thinking(body) == "disabled" and assistants and any(b["type"] in THINKING for b in blocks(assistants[-1])):
        yield "When thinking is disabled, a final assistant message cannot contain thinking"


def fallbacks(body: Body) -> Iterator[str]:
    """What the refused model had begun to call is left out of the message that its successor went on with (1.4)."""
    for number, message in enumerate(body["messages"]):
        kinds = [block["type"] for block in blocks(message)]
        if "fallback" in kinds and "tool_use" in kinds[: len(kinds) - kinds[::-1].index("fallback")]:
            yield f"messages.{number}: a `tool_use` before the last `fallback` block"


MODIFIED = "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified"
BOUND = (
    "Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block, or set "
    '`thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
)


def _modified_runs(before: Body, after: Body) -> Iterator[str]:
    """Check A: in the open turn each run of thinking is one that was made."""
    made = runs(_turn(before["messages"]))
    for run in runs(_turn(after["messages"])):
        if run not in made:
            yield MODIFIED


def _moved_calls(before: Body, after: Body) -> Iterator[str]:
    """Check A: a message of the open turn that keeps thinking keeps its calls, and no other message's thinking."""
    made = [(runs(found), _calls(found)) for found in map(blocks, before["messages"])]
    for message in open_turn(after["messages"]):
        kept = runs(blocks(message))
        owners = [(own, calls) for own, calls in made if any(run in own for run in kept)]
        known = any(_calls(blocks(message)) == calls and all(run in own for run in kept) for own, calls in owners)
        if owners and not known:
            yield MODIFIED


def _bound_elsewhere(before: Body, after: Body, made_before: int) -> Iterator[str]:
    """Check B: on models that bind it, no thinking stays that was made over another history."""
    if not binds(after.get("model")):
        return
    together = zip(before["messages"], after["messages"], strict=False)
    first = next((n for n, (one, two) in enumerate(together) if one != two), len(after["messages"]))
    for message in after["messages"][first:made_before]:
        if message["role"] == "assistant" and any(b["type"] in THINKING for b in blocks(message)):
            yield BOUND


def binds(model: str | None) -> bool:
    """Models whose thinking is bound to its prefix: from 5.1, and opus, sonnet and haiku from 5.5."""
    found = re.search(r"(fable|mythos|opus|sonnet|haiku)-(\d)(?:-(\d)(?!\d))?", model or "")
    if found is None:
        return False
    version = (int(found[2]), int(found[3] or 0))
    return version >= ((5, 1) if found[1] in ("fable", "mythos") else (5, 5))


def runs(found: Blocks) -> list[Blocks]:
    """The runs of neighbouring thinking blocks."""
    return [list(run) for is_run, run in groupby(found, lambda block: block["type"] in THINKING) if is_run]


def open_turn(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages since the last human one: the agent's, with the results as they stand between.

    A blank text beside results is nobody's words (the rules are silent on it).
    """
    turn: list[dict[str, Any]] = []
    for message in reversed(messages):
        kinds = {block["type"] for block in blocks(message) if block["type"] != "text" or block["text"].strip()}
        behind = any(other["role"] == "assistant" for other in turn)
        if message["role"] == "user" and kinds != {"tool_result"} and (behind or "tool_result" not in kinds):
            break
        turn.insert(0, message)
    while turn and turn[0]["role"] != "assistant":
        del turn[0]
    return turn


def _turn(messages: list[dict[str, Any]]) -> Blocks:
    return [block for message in open_turn(messages) for block in blocks(message)]


def _calls(found: Blocks) -> list[str]:
    return [block["id"] for block in found if block["type"] == "tool_use"]


def _open_loop(messages: list[dict[str, Any]]) -> bool:
    if len(messages) < 2 or messages[-1]["role"] != "user" or messages[-2]["role"] != "assistant":
        return False
    return all(block["type"] == "tool_result" for block in blocks(messages[-1]))


def _thinking(body: Body) -> str | None:
    return (body.get("thinking") or {}).get("type")


def _version(body: Body) -> Any:
    found = re.search(r"-(\d)(?:[-.](\d)(?!\d))?", body.get("model") or "")
    return (int(found[1]), int(found[2] or 0)) if found else None


# -------------------------------------------------------------- 1.2, 1.6 tools, and the provider's own context


def edits_in_order(body: Body) -> Iterator[str]:
    kinds = [edit["type"] for edit in (body.get("context_management") or {}).get("edits") or ()]
    if "clear_thinking_20251015" in kinds[1:]:
        yield "context_management.edits: clear_thinking_20251015 must be listed first"


def compactions(body: Body) -> Iterator[str]:
    """The signed form stands first, and alone."""
    found = [
        (number, index)
        for number, message in enumerate(body["messages"])
        for index, block in enumerate(blocks(message))
        if block["type"] == "compaction" and block.get("signature")
    ]
    if len(found) > 1:
        yield "compaction_block_ambiguous: at most one signed `compaction` block"
    elif found and found != [(0, 0)]:
        yield "compaction_block_misplaced: a signed `compaction` block must be the first block"


def _altered_compactions(before: Body, after: Body) -> Iterator[str]:
    made = [b for message in before["messages"] for b in blocks(message) if b["type"] == "compaction"]
    for block in (b for message in after["messages"] for b in blocks(message) if b["type"] == "compaction"):
        if block.get("signature") and block not in made:
            known = any(other.get("signature") == block["signature"] for other in made)
            yield "compaction_block_content_mismatch" if known else "compaction_block_signature_invalid"


def _unresolved(body: Body) -> Iterator[str]:
    """Changes of the tools on offer name tools that are declared, or that a server listed before."""
    known = {tool.get("name") for tool in body.get("tools") or ()}
    for number, message in enumerate(body["messages"]):
        for block in blocks(message):
            if block["type"] == "mcp_tool_listing":
                known |= {tool.get("name") for tool in block.get("tools") or ()}
            elif block["type"] in ("tool_addition", "tool_removal") and block["tool"].get("name") not in known:
                yield f"messages.{number}: tool_reference_unresolved: {block['tool'].get('name')}"


def _undeclared(body: Body) -> Iterator[str]:
    known = {tool.get("name") for tool in body.get("tools") or ()}
    used = {b["name"] for message in body["messages"] for b in blocks(message) if b["type"] == "tool_use"}
    if used and not known:
        yield "The toolConfig field must be defined when using toolUse and toolResult content blocks."
    for name in sorted(used - known if known else ()):
        yield f"tools: `{name}` is used and not declared"


# ------------------------------------------------------------------------------------------- 1.7 cache marks


def cache_marks(body: Body) -> Iterator[str]:
    marks = []
    if body.get("cache_control"):
        marks.append(body["cache_control"])
    for part in ("tools", "system"):
        found = body.get(part)
        marks += [
            item["cache_control"] for item in (found if isinstance(found, list) else []) if item.get("cache_control")
        ]
    for number, message in enumerate(body["messages"]):
        for block in _with_inner(blocks(message)):
            if not block.get("cache_control"):
                continue
            marks.append(block["cache_control"])
            if block["type"] in THINKING:
                yield f"messages.{number}: cache_control cannot be set for thinking blocks"
            if block["type"] == "text" and not block["text"]:
                yield f"messages.{number}: cache_control cannot be set for empty text blocks"
    if len(marks) > 4:
        yield f"a maximum of 4 blocks with cache_control may be provided. Found {len(marks)}."
    automatic, last = body.get("cache_control"), (blocks(body["messages"][-1]) or [{}])[-1].get("cache_control")
    if automatic and last and automatic.get("ttl", "5m") != last.get("ttl", "5m"):
        yield "the automatic cache_control and the last block's must have the same ttl"
    hours = [mark.get("ttl", "5m") == "1h" for mark in marks[bool(body.get("cache_control")) :]]
    if hours != sorted(hours, reverse=True):
        yield "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block"


def _with_inner(found: Blocks) -> Iterator[dict[str, Any]]:
    """The blocks, each behind those that stand in it."""
    for block in found:
        inside = block.get("content") if block["type"] == "tool_result" else None
        yield from inside if isinstance(inside, list) else ()
        yield block


RULES = (
    size,
    roles,
    places,
    emptiness,
    calls_are_answered,
    results_come_first,
    server_pairs,
    prefill,
    forced_tools,
    toolsets,
    citations,
    callers,
    thinking_ends_no_message,
    thinking_starts_the_turn,
    thinking_disabled,
    fallbacks,
    edits_in_order,
    compactions,
    cache_marks,
)
