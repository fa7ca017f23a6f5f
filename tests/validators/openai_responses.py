"""What OpenAI's Responses API refuses.

Written from the rules, not from what the cut makes. Nothing has to alternate here; what counts is that calls and
outputs stand in pairs, and that reasoning and the item it led to stay together or lose what ties them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

Body = dict[str, Any]
Item = dict[str, Any]


def faults(body: bytes | Body) -> list[str]:
    """Every fault of a request body, in the rules' order; empty for one that the API takes.

    Where a member that the rules read is missing or of another type, those faults alone. What a stored conversation
    holds is not seen: there an output alone is taken.
    """
    whole: Body = json.loads(body) if isinstance(body, bytes) else body
    return list(shape(whole)) or [fault for rule in RULES for fault in rule(whole)]


def faults_of_a_cut(before: bytes | Body, after: bytes | Body) -> list[str]:
    """Faults that only show when the body is known that was answered: an item that asks for its reasoning by its id.

    Args:
        before: the whole history.
        after: what is sent of it.
    """
    one: Body = json.loads(before) if isinstance(before, bytes) else before
    two: Body = json.loads(after) if isinstance(after, bytes) else after
    bonds = dict(_bonds(items(one)))
    kept = {item.get("id") for item in items(two) if kind(item) == "reasoning"}
    return [
        f"Item '{item['id']}' of type '{kind(item)}' was provided without its required 'reasoning' item: "
        f"'{bonds[item['id']]}'."
        for item in items(two)
        if item.get("id") in bonds and bonds[item["id"]] not in kept
    ]


# ------------------------------------------------------------------------------------------------- 3.1 items

# Calls that the client answers, each with what may answer it. Codex answers its shell calls as functions (3.1).
PAIRS = {
    "function_call": ("function_call_output",),
    "custom_tool_call": ("custom_tool_call_output",),
    "shell_call": ("shell_call_output",),
    "apply_patch_call": ("apply_patch_call_output",),
    "computer_call": ("computer_call_output",),
    "tool_search_call": ("tool_search_output",),
    "program": ("program_output",),
    "local_shell_call": ("local_shell_call_output", "function_call_output"),
    "mcp_approval_request": ("mcp_approval_response",),
}
OUTPUTS = {output for outputs in PAIRS.values() for output in outputs}
# What no reasoning leads to: all that the model did not make.
NOT_OF_THE_MODEL = {
    *OUTPUTS,
    "additional_tools",
    "configuration_update",
    "compaction",
    "compaction_trigger",
}
ROLES = ("user", "assistant", "system", "developer")


def shape(body: Any) -> Iterator[str]:
    """What has to be there for the rules to read: items with a type or a role, calls with their own members."""
    if not isinstance(body, dict) or not isinstance(body.get("input", []), str | list):
        yield "Invalid type for 'input': expected one of a string or array of input items."
        return
    if "input" not in body and not any(body.get(name) for name in ("prompt", *STATE)):
        yield "Missing required parameter: 'input'."
    for number, item in enumerate(items(body)):
        path = f"input[{number}]"
        if not isinstance(item, dict) or not isinstance(item.get("type", ""), str | None):
            yield f"Invalid type for '{path}': expected an input item."
        elif not isinstance(item.get("id"), str | None) or not isinstance(item.get("call_id"), str | None):
            yield f"Invalid type for '{path}': ids are strings."
        elif kind(item) == "message":
            yield from _shape_of_message(item, path)
        elif kind(item) in ("function_call", "custom_tool_call"):
            for name in ("call_id", "name", "arguments" if kind(item) == "function_call" else "input"):
                if not isinstance(item.get(name), str):
                    yield f"Missing required parameter: '{path}.{name}'."
        elif kind(item) in ("function_call_output", "custom_tool_call_output"):
            if not isinstance(item.get("output"), str | list):
                yield f"Missing required parameter: '{path}.output'."


def _shape_of_message(item: Item, path: str) -> Iterator[str]:
    if item.get("role") not in ROLES:
        yield f"Invalid value for '{path}.role': supported values are {', '.join(map(repr, ROLES))}."
        return
    content = item.get("content")
    if not isinstance(content, str | list):
        yield f"Missing required parameter: '{path}.content'."
    theirs = ("output_text", "refusal")
    for index, part in enumerate(content if isinstance(content, list) else ()):
        if not isinstance(part, dict) or not isinstance(part.get("type"), str):
            yield f"Missing required parameter: '{path}.content[{index}].type'."
        elif item["role"] == "assistant" and part["type"].startswith("input_"):
            yield f"Invalid value: '{part['type']}'. Supported values are: 'output_text' and 'refusal'. ({path})"
        elif item["role"] != "assistant" and part["type"] in theirs:
            yield f"Invalid value: '{part['type']}'. Supported values are: 'input_text', 'input_image' … ({path})"


def contents(body: Body) -> Iterator[str]:
    """An assistant's message says something."""
    for number, item in enumerate(items(body)):
        if kind(item) == "message" and item["role"] == "assistant" and not item["content"]:
            yield f"Invalid 'input[{number}].content': empty"


# ------------------------------------------------------------------------------------------------- 3.2 pairs


def calls_are_answered(body: Body) -> Iterator[str]:
    """An output answers a call that stands before it, once; how far before is free."""
    waiting: list[Item] = []
    for item in items(body):
        if kind(item) in PAIRS:
            waiting.append(item)
        elif kind(item) in OUTPUTS:
            call = _answered(item, waiting)
            if call is not None:
                waiting = [other for other in waiting if other is not call]
            elif not stored(body):
                which = item.get("call_id") or item.get("approval_request_id") or item.get("id")
                named = kind(item).replace("_", " ")
                yield f"No tool call found for {named} with call_id {which}."
    for call in waiting:
        yield f"No tool output found for {kind(call).replace('_', ' ')} {call.get('call_id') or call.get('id')}."


def _answered(output: Item, waiting: list[Item]) -> Item | None:
    """The open call that an output answers: by id, or where it names none, the nearest one it can mean."""
    fitting = [call for call in waiting if kind(output) in PAIRS[kind(call)]]
    if kind(output) == "mcp_approval_response":
        named = output.get("approval_request_id")
        return next((call for call in fitting if call.get("id") == named), None)
    named = output.get("call_id")
    if named is None and kind(output) == "local_shell_call_output":
        named = output.get("id")
    if named is not None:
        by_call = [call for call in fitting if call.get("call_id") == named]
        by_id = [call for call in fitting if kind(call) == "local_shell_call" and call.get("id") == named]
        return next(iter(by_call + by_id), None)
    # A tool search that the server carried out has no call_id on either side.
    loose = kind(output) != "tool_search_output"
    near = [call for call in fitting if loose or call.get("call_id") is None]
    return next((call for call in reversed(near) if output.get("name", call.get("name")) == call.get("name")), None)


def reasoning_leads_somewhere(body: Body) -> Iterator[str]:
    """Behind reasoning, and any more of it, comes what the model then said or called."""
    found = items(body)
    for number, item in enumerate(found):
        if kind(item) != "reasoning":
            continue
        following = next((other for other in found[number + 1 :] if kind(other) != "reasoning"), None)
        of_the_model = following is not None and kind(following) not in NOT_OF_THE_MODEL
        if following is not None and kind(following) == "message":
            of_the_model = following["role"] == "assistant"
        if not of_the_model:
            named = f"Item '{item['id']}'" if item.get("id") else f"input[{number}]: An item"
            yield f"{named} of type 'reasoning' was provided without its required following item."


def _bonds(found: list[Item]) -> Iterator[tuple[str, str]]:
    """(id of an item, id of the reasoning before it that it asks for), over what one answer made."""
    last = None
    for item in found:
        if kind(item) == "reasoning":
            last = item.get("id")
        elif kind(item) in NOT_OF_THE_MODEL or (kind(item) == "message" and item["role"] != "assistant"):
            last = None
        elif last and item.get("id") and kind(item) not in ("item_reference", "mcp_list_tools"):
            yield item["id"], last


# ------------------------------------------------------------------------------------------------- 3.3 state

STATE = ("previous_response_id", "conversation")


def state(body: Body) -> Iterator[str]:
    if all(body.get(name) for name in STATE):
        yield "Mutually exclusive parameters: 'previous_response_id' and 'conversation'."


def unstored(body: Body) -> Iterator[str]:
    """Without storage an id alone names nothing."""
    if body.get("store") is not False or stored(body):
        return
    for item in items(body):
        alone = kind(item) == "item_reference" or (kind(item) == "reasoning" and not item.get("encrypted_content"))
        if alone and item.get("id"):
            yield f"Item with id '{item['id']}' not found. Items are not persisted when `store` is set to false."


def triggers(body: Body) -> Iterator[str]:
    if any(kind(item) == "compaction_trigger" for item in items(body)[:-1]):
        yield "input: a 'compaction_trigger' must be the last item"


# ------------------------------------------------------------------------------------------------ the readers


def items(body: Body) -> list[Item]:
    """The input as a list of items."""
    found = body.get("input") or []
    return [{"type": "message", "role": "user", "content": found}] if isinstance(found, str) else found


def kind(item: Item) -> str:
    """An item's type; a message may do without, as a reference may."""
    return item.get("type") or ("message" if "role" in item else "item_reference")


def stored(body: Body) -> bool:
    """Whether the server holds a history that is not in the body."""
    return any(body.get(name) for name in STATE)


RULES = (contents, calls_are_answered, reasoning_leads_somewhere, state, unstored, triggers)
