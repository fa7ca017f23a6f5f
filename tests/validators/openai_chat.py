"""What servers of OpenAI's Chat Completions refuse.

Written from the rules, not from what the cut makes. OpenAI itself asks for pairs and for content; servers with a
stricter chat template ask for alternation too (`strict`), DeepSeek's thinking models for their reasoning.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

Body = dict[str, Any]
Message = dict[str, Any]

ROLES = ("system", "developer", "user", "assistant", "tool", "function")
HARNESS = ("system", "developer")
# A call's own members by its type. Ollama's arguments are an object, the others' a text, whatever it holds.
MEMBERS: dict[str, dict[str, Any]] = {
    "function": {"name": str, "arguments": str | dict},
    "custom": {"name": str, "input": str},
}


def faults(body: bytes | Body, *, strict: bool = False) -> list[str]:
    """Every fault of a request body, in the rules' order; empty for one that the server takes.

    Where a member that the rules read is missing or of another type, those faults alone.

    Args:
        strict: the server demands that user and assistant alternate: Mistral's API, the chat templates of local
            servers that raise, the first DeepSeek reasoner.
    """
    whole: Body = json.loads(body) if isinstance(body, bytes) else body
    return list(shape(whole)) or [fault for rule in (*RULES, *(STRICT if strict else ())) for fault in rule(whole)]


# ---------------------------------------------------------------------------------------------- 2.1 messages


def shape(body: Any) -> Iterator[str]:
    """What has to be there for the rules to read: messages, known roles, calls with their own members."""
    messages = body.get("messages") if isinstance(body, dict) else None
    if not isinstance(messages, list) or not messages:
        yield "Missing required parameter: 'messages'."
        return
    for number, message in enumerate(messages):
        path = f"messages[{number}]"
        if not isinstance(message, dict) or message.get("role") not in ROLES:
            yield f"Invalid value for '{path}.role': supported values are {', '.join(map(repr, ROLES))}."
            continue
        content = message.get("content")
        if not isinstance(content, str | list | None):
            yield f"Invalid type for '{path}.content': expected one of a string or array of objects."
        for index, part in enumerate(content if isinstance(content, list) else ()):
            if not isinstance(part, dict) or not isinstance(part.get("type"), str):
                yield f"Missing required parameter: '{path}.content[{index}].type'."
            elif part["type"] == "text" and not isinstance(part.get("text"), str):
                yield f"Missing required parameter: '{path}.content[{index}].text'."
        yield from _shape_of_calls(message, path)
        if message["role"] == "function" and not isinstance(message.get("name"), str):
            yield f"Missing required parameter: '{path}.name'."


def _shape_of_calls(message: Message, path: str) -> Iterator[str]:
    made = message.get("tool_calls")
    if made is not None and not isinstance(made, list):
        yield f"Invalid type for '{path}.tool_calls': expected an array of objects."
        return
    for index, call in enumerate(made or ()):
        where = f"{path}.tool_calls[{index}]"
        if not isinstance(call, dict) or not isinstance(call.get("id"), str | None):
            yield f"Missing required parameter: '{where}.id'."
            continue
        kind = str(call.get("type") or "function")
        inner = call.get(kind)
        if kind in MEMBERS and not isinstance(inner, dict):
            yield f"Missing required parameter: '{where}.{kind}'."
            continue
        for name, type_ in MEMBERS.get(kind, {}).items():
            if not isinstance((inner or {}).get(name), type_):
                yield f"Missing required parameter: '{where}.{kind}.{name}'."
    if not isinstance(message.get("tool_call_id"), str | None):
        yield f"Invalid type for '{path}.tool_call_id': expected a string."
    if message.get("function_call") is not None and not isinstance(message["function_call"], dict):
        yield f"Invalid type for '{path}.function_call': expected an object."


def places(body: Body) -> Iterator[str]:
    for number, message in enumerate(body["messages"]):
        for name in ("tool_calls", "function_call"):
            if message.get(name) and message["role"] != "assistant":
                yield f"messages[{number}]: '{name}' can only be in assistant messages"


# ------------------------------------------------------------------------------------------------- 2.2 pairs

UNANSWERED = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'"
)
UNASKED = "messages with role 'tool' must be a response to a preceding message with 'tool_calls'"


def calls_are_answered(body: Body) -> Iterator[str]:
    """An id counts in the run of tool messages right behind its call; among those the order is free."""
    messages = body["messages"]
    for number, message in enumerate(messages):
        if message["role"] == "tool" and (number == 0 or messages[number - 1]["role"] not in ("tool", "assistant")):
            yield f"messages[{number}]: {UNASKED}"
        if message["role"] != "assistant":
            continue
        run = _run(messages, number + 1, "tool")
        made = [call.get("id") for call in calls(message)]
        given = [result.get("tool_call_id") for result in run]
        if None in made:
            # Ollama's calls have no ids: results are matched by their order, and named if at all (2.3).
            names = [(call.get("function") or {}).get("name") for call in calls(message)]
            missing = names[len(run) :]
            missing += [name for name, result in zip(names, run) if result.get("tool_name", name) != name]
            more = len(run) - len(names)
        else:
            missing = list((Counter(made) - Counter(given)).elements())
            more = (Counter(given) - Counter(made)).total()
        if missing:
            yield f"messages[{number}]: {UNANSWERED}. The following have no response: {', '.join(map(str, missing))}"
        if more > 0:
            yield f"messages[{number + 1}]: {UNASKED}"


def functions_are_answered(body: Body) -> Iterator[str]:
    """The older form has no ids: the next message answers, under the function's name."""
    messages = body["messages"]
    for number, (message, following) in enumerate(pairwise([{"role": "system"}, *messages, {"role": "system"}]), -1):
        asked = (message.get("function_call") or {}).get("name") if message["role"] == "assistant" else None
        given = following.get("name") if following["role"] == "function" else None
        if asked is not None and given is None:
            yield f"messages[{number}]: a 'function_call' must be followed by a message with role 'function'"
        elif given is not None and given != asked:
            yield f"messages[{number + 1}]: messages with role 'function' must be a response to a 'function_call'"


# ----------------------------------------------------------------------------------------------- 2.2 content


def contents(body: Body) -> Iterator[str]:
    """An agent's message without calls says something; others have content, a result's may be without a word."""
    for number, message in enumerate(body["messages"]):
        content, role = message.get("content"), message["role"]
        if role in ("tool", "function") or calls(message) or message.get("function_call"):
            continue
        if content == []:
            yield f"Invalid 'messages[{number}].content': empty array"
        elif content is None and (role != "assistant" or not says(message)):
            yield f"Invalid value for 'content': expected a string, got null. (messages[{number}])"
        elif role == "assistant" and not says(message):
            yield f"Invalid value for 'content': expected a string, got one without a word. (messages[{number}])"


def says(message: Message) -> bool:
    """Whether an assistant's message stands without calls: by words, a refusal, a voice, or any other part."""
    if message.get("refusal") or message.get("audio"):
        return True
    content = message.get("content")
    if isinstance(content, list):
        return any(part["type"] != "text" or part["text"].strip() for part in content)
    return bool((content or "").strip())


def no_empty_calls(body: Body) -> Iterator[str]:
    """Where no call is left the key goes too; Mistral alone is on record to take an empty list."""
    for number, message in enumerate(body["messages"]):
        if message.get("tool_calls") == [] and not _is(body, MISTRAL):
            yield f"Invalid 'messages[{number}].tool_calls': empty array"


# --------------------------------------------------------------------------------------------- 2.3 reasoning

UNREASONED = "The `reasoning_content` in the thinking mode must be passed back to the API."


def reasoning(body: Body) -> Iterator[str]:
    """DeepSeek's thinking models: in a turn with calls, on what keeps a call and on what follows the turn's last one.

    A turn lies between two user messages. Before its last call a message without calls may have had some that left,
    and its reasoning with them: there the rules leave room.
    """
    if not thinks_aloud(body):
        return
    turn: list[tuple[int, Message]] = []
    for number, message in [*enumerate(body["messages"]), (-1, {"role": "user"})]:
        if message["role"] != "user":
            turn.append((number, message))
            continue
        last = max((at for at, one in turn if calls(one)), default=None)
        for at, one in turn:
            bound = last is not None and one["role"] == "assistant" and (calls(one) or at > last)
            if bound and not isinstance(one.get("reasoning_content"), str):
                yield f"messages[{at}]: {UNREASONED}"
        turn = []


def thinks_aloud(body: Body) -> bool:
    """Whether the model is one of DeepSeek's in its thinking mode, as far as the body tells."""
    thinking = body.get("thinking")
    asked = thinking.get("type") if isinstance(thinking, dict) else None
    return _is(body, "deepseek") and asked != "disabled" and (asked == "enabled" or _is(body, "reasoner|v4"))


# ------------------------------------------------------------------------------------------------ 2.2 strict

MISTRAL = r"mistral|mixtral|magistral|ministral|codestral|devstral|pixtral"


def alternation(body: Body) -> Iterator[str]:
    """Templates count user messages and assistant messages without calls, from the first user message on."""
    counted = [
        (number, message["role"])
        for number, message in enumerate(body["messages"])
        if message["role"] == "user" or (message["role"] == "assistant" and not calls(message))
    ]
    for (_, before), (number, role) in pairwise([(-1, "assistant"), *counted]):
        if before == role:
            yield f"messages[{number}]: conversation roles must alternate user/assistant/user/assistant/..."


def successive(body: Body) -> Iterator[str]:
    """The first DeepSeek reasoner looks at every neighbour, calls or not."""
    if not _is(body, "deepseek-reasoner"):
        return
    spoken = [message["role"] for message in body["messages"] if message["role"] not in HARNESS]
    if any(before == after != "tool" for before, after in pairwise(spoken)):
        yield "deepseek-reasoner does not support successive user or assistant messages"


def order_of_mistral(body: Body) -> Iterator[str]:
    """Between results and a human there is a word of the agent's; the last word is not the agent's, but for a prefix."""
    if not _is(body, MISTRAL):
        return
    messages = body["messages"]
    for before, after in pairwise(messages):
        if before["role"] == "tool" and after["role"] == "user":
            yield "Unexpected role 'user' after role 'tool' (code 3230)"
        if before.get("prefix"):
            yield "prefix: only the last message can be a prefix"
    last = messages[-1]
    if last["role"] not in ("user", "tool") and not (last["role"] == "assistant" and last.get("prefix")):
        yield f"Expected last role User or Tool (or Assistant with prefix True) for serving but got {last['role']}"


# ------------------------------------------------------------------------------------------------ the readers


def calls(message: Message) -> list[dict[str, Any]]:
    """The calls that a message makes."""
    found: list[dict[str, Any]] = message.get("tool_calls") or []
    return found


def _run(messages: list[Message], begin: int, role: str) -> list[Message]:
    end = begin
    while end < len(messages) and messages[end]["role"] == role:
        end += 1
    return messages[begin:end]


def _is(body: Body, names: str) -> bool:
    return re.search(names, str(body.get("model") or "").lower()) is not None


RULES = (places, calls_are_answered, functions_are_answered, contents, no_empty_calls, reasoning)
STRICT = (alternation, successive, order_of_mistral)
