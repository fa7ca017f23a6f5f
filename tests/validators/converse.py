"""What Bedrock's Converse API refuses.

Written from the rules, not from what the cut makes. Roles alternate strictly; calls and results pair as with
Anthropic; thinking follows Claude's rules where the model is Claude's.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import groupby, pairwise
from typing import Any

import validator

Body = dict[str, Any]
Block = dict[str, Any]
Message = dict[str, Any]


def faults(body: bytes | Body, *, model: str | None = None) -> list[str]:
    """Every fault of a request body, in the rules' order; empty for one that the API takes.

    Where a member that the rules read is missing or of another type, those faults alone.

    Args:
        model: the model that is asked, where the body itself doesn't say, as the address has it; only Claude's bind
            their thinking.
    """
    whole: Body = json.loads(body) if isinstance(body, bytes) else body
    found = list(shape(whole)) or [fault for rule in RULES for fault in rule(whole)]
    return found or thinking(whole, model or str(whole.get("modelId") or ""))


def faults_of_a_cut(
    before: bytes | Body, after: bytes | Body, made_before: int, *, model: str | None = None
) -> list[str]:
    """Faults that only show when the body is known that was answered: Claude's checks of its own thinking.

    Args:
        before: the whole history.
        after: what is sent of it.
        made_before: the messages of `after` before this index were made over the whole history; the ones
            behind it over the cut one, if every request was cut.
        model: as for `faults`.
    """
    one: Body = json.loads(before) if isinstance(before, bytes) else before
    two: Body = json.loads(after) if isinstance(after, bytes) else after
    asked = model or str(two.get("modelId") or "")
    if "claude" not in asked:
        return []
    return validator.faults_of_a_cut(as_anthropic(one, asked), as_anthropic(two, asked), made_before)


# -------------------------------------------------------------------------------------------- blocks and roles

MEMBERS: dict[str, dict[str, type]] = {
    "toolUse": {"toolUseId": str, "name": str},
    "toolResult": {"toolUseId": str, "content": list},
    "reasoningContent": {},
    "cachePoint": {"type": str},
}
PLACES = {
    **dict.fromkeys(("toolUse", "reasoningContent", "citationsContent"), "assistant"),
    **dict.fromkeys(("image", "document", "video", "audio", "searchResult"), "user"),
    **dict.fromkeys(("toolAddition", "toolRemoval"), "system"),
}


def shape(body: Any) -> Iterator[str]:
    """What has to be there for the rules to read: messages, roles, blocks of one member each."""
    messages = body.get("messages") if isinstance(body, dict) else None
    if not isinstance(messages, list) or not messages:
        yield "messages: A conversation must have at least one message."
        return
    for number, message in enumerate(messages):
        content = message.get("content") if isinstance(message, dict) else None
        if not isinstance(message, dict) or message.get("role") not in ("user", "assistant", "system"):
            yield f"messages.{number}.role: must be one of user, assistant, system"
        elif not isinstance(content, list):
            yield f"messages.{number}.content: must be a list of content blocks"
        for index, block in enumerate(content if isinstance(content, list) else ()):
            path = f"messages.{number}.content.{index}"
            if not isinstance(block, dict) or len(block) != 1:
                yield f"{path}: a ContentBlock must set exactly one of its members"
                continue
            inside = block[kind(block)]
            if kind(block) == "text" and isinstance(inside, str):
                continue
            if kind(block) == "text" or not isinstance(inside, dict):
                yield f"{path}.{kind(block)}: is of another type"
                continue
            for name, type_ in MEMBERS.get(kind(block), {}).items():
                if not isinstance(inside.get(name), type_):
                    yield f"{path}.{kind(block)}.{name}: is missing"
                elif name == "content" and not all(isinstance(inner, dict) for inner in inside[name]):
                    yield f"{path}.{kind(block)}.{name}: must be a list of content blocks"
    for name in ("toolConfig", "additionalModelRequestFields"):
        if not isinstance(body.get(name), dict | None):
            yield f"{name}: is of another type"


def places(body: Body) -> Iterator[str]:
    for number, message in enumerate(body["messages"]):
        for block in message["content"]:
            wanted = PLACES.get(kind(block), message["role"])
            if kind(block) == "toolResult":
                wanted = "assistant" if _is_server(block, message) else "user"
            if message["role"] != wanted:
                yield f"messages.{number}: a {kind(block)} block can only be in {wanted} messages"


# --------------------------------------------------------------------------------------------------- structure


def roles(body: Body) -> Iterator[str]:
    """System messages stand between; the others alternate, and a user begins."""
    messages = body["messages"]
    spoken = [(number, message["role"]) for number, message in enumerate(messages) if message["role"] != "system"]
    if messages[0]["role"] != "user":
        yield "A conversation must start with a user message. Try again with a conversation that starts with a user message."
    for (_, before), (number, role) in pairwise(spoken):
        if before == role:
            yield (
                "A conversation must alternate between user and assistant roles. Make sure the conversation alternates "
                f"between user and assistant roles and try again. (messages.{number})"
            )


def emptiness(body: Body) -> Iterator[str]:
    for number, message in enumerate(body["messages"]):
        if not message["content"]:
            yield f"The content field in the Message object at messages.{number} is empty."
        for index, block in enumerate(message["content"]):
            if kind(block) == "text" and not block["text"].strip():
                yield f"The text field in the ContentBlock object at messages.{number}.content.{index} is blank."
        held = {kind(block) for block in message["content"]}
        if "document" in held and "text" not in held:
            yield f"messages.{number}: a message with a document block needs a text block"


def calls_are_answered(body: Body) -> Iterator[str]:
    """Pairing is checked message by message: the very next one holds all results first, and nothing else's."""
    messages = body["messages"]
    for number, message in enumerate(messages):
        following = messages[number + 1] if number + 1 < len(messages) else None
        made = Counter(block["toolUse"]["toolUseId"] for block in _held(message, "toolUse") if not _served(block))
        given: Counter[str] = Counter()
        if following is not None and following["role"] == "user":
            given = Counter(block["toolResult"]["toolUseId"] for block in _held(following, "toolResult"))
        if made - given:
            yield (
                f"Expected toolResult blocks at messages.{number + 1}.content for the following Ids: "
                + ", ".join((made - given).elements())
            )
        more = given - made if message["role"] == "assistant" else None
        first = message["role"] == "user" and (number == 0 or messages[number - 1]["role"] != "assistant")
        if more or (first and _held(message, "toolResult")):
            where = number + 1 if more else number
            yield f"The number of toolResult blocks at messages.{where}.content exceeds the number of toolUse blocks of previous turn."
        if message["role"] == "user":
            kinds = [kind(block) == "toolResult" for block in message["content"] if kind(block) != "cachePoint"]
            if kinds != sorted(kinds, reverse=True):
                yield f"messages.{number}: toolResult blocks must come first"


def server_pairs(body: Body) -> Iterator[str]:
    """What the server ran has its result behind it, in the same message."""
    for number, message in enumerate(body["messages"]):
        waiting: list[str] = []
        for block in message["content"] if message["role"] == "assistant" else ():
            if kind(block) == "toolUse" and _served(block):
                waiting.append(block["toolUse"]["toolUseId"])
            elif kind(block) == "toolResult" and block["toolResult"]["toolUseId"] in waiting:
                waiting.remove(block["toolResult"]["toolUseId"])
            elif kind(block) == "toolResult":
                yield f"messages.{number}: a server's toolResult without its toolUse"
        for id in waiting:
            yield f"messages.{number}: a server's toolUse without its toolResult: {id}"


def tools(body: Body) -> Iterator[str]:
    used = any(kind(b) in ("toolUse", "toolResult") for message in body["messages"] for b in message["content"])
    if used and not (body.get("toolConfig") or {}).get("tools"):
        yield "The toolConfig field must be defined when using toolUse and toolResult content blocks."


# ------------------------------------------------------------------------------------------------- cache points


def cache_points(body: Body) -> Iterator[str]:
    """A cache point stands behind something, of its own message, that can be cached; and once."""
    for number, message in enumerate(body["messages"]):
        for before, block in pairwise([{"start": None}, *message["content"]]):
            if kind(block) == "cachePoint" and kind(before) in ("start", "cachePoint"):
                yield f"messages.{number}: a cachePoint must follow a content block of its message"
            if kind(block) == "toolResult" and any("cachePoint" in inner for inner in block["toolResult"]["content"]):
                yield f"messages.{number}: a cachePoint cannot be in the content of a toolResult"
    for _, turn in groupby(body["messages"], lambda message: message["role"]):
        flat = [block for message in turn for block in message["content"]]
        if any(kind(one) == "reasoningContent" and kind(two) == "cachePoint" for one, two in pairwise(flat)):
            yield "Cache point cannot be inserted after reasoning block."


# ------------------------------------------------------------------------------------------------ 1.3 thinking


def thinking(body: Body, model: str) -> list[str]:
    """Claude's own rules for thinking, as far as one body shows them."""
    if "claude" not in model:
        return []
    asked = as_anthropic(body, model)
    rules = (validator.thinking_ends_no_message, validator.thinking_starts_the_turn, validator.thinking_disabled)
    return [fault for rule in rules for fault in rule(asked)]


def as_anthropic(body: Body, model: str) -> Body:
    """The conversation as Claude's own API has it, cache points aside: enough for the rules of thinking."""
    asked = (body.get("additionalModelRequestFields") or {}).get("thinking")
    return {
        "model": model,
        "thinking": asked if isinstance(asked, dict) else None,
        "messages": [
            {
                "role": message["role"],
                "content": [_as_anthropic(block) for block in message["content"] if kind(block) != "cachePoint"],
            }
            for message in body["messages"]
        ],
    }


def _as_anthropic(block: Block) -> Block:
    inside = block[kind(block)]
    match kind(block):
        case "text":
            return {"type": "text", "text": inside}
        case "toolUse":
            kind_ = "server_tool_use" if _served(block) else "tool_use"
            return {"type": kind_, "id": inside["toolUseId"], "name": inside["name"], "input": inside.get("input")}
        case "toolResult":
            return {"type": "tool_result", "tool_use_id": inside["toolUseId"], "content": inside["content"]}
        case "reasoningContent" if "reasoningText" in inside:
            return {"type": "thinking", "thinking": inside["reasoningText"]}
        case "reasoningContent":
            return {"type": "redacted_thinking", "data": inside}
        case other:
            return {"type": other}


# -------------------------------------------------------------------------------------------------- the readers


def kind(block: Block) -> str:
    """A block's type: the name of its one member."""
    return next(iter(block))


def _held(message: Message, name: str) -> list[Block]:
    return [block for block in message["content"] if kind(block) == name]


def _served(block: Block) -> bool:
    return bool(block["toolUse"].get("type") == "server_tool_use")


def _is_server(result: Block, message: Message) -> bool:
    """Whether a result in the agent's own message answers a call of a server's tool there."""
    asked = {block["toolUse"]["toolUseId"] for block in _held(message, "toolUse") if _served(block)}
    return result["toolResult"]["toolUseId"] in asked or result["toolResult"].get("type") is not None


RULES = (places, roles, emptiness, calls_are_answered, server_pairs, tools, cache_points)
