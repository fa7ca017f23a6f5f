"""What Gemini's generateContent refuses.

Written from the rules, not from what the cut makes. Names are read in both spellings, camelCase and snake_case, and
Code Assist's envelope is opened. The model stands in the address as a rule, so it is told.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

Body = dict[str, Any]
Part = dict[str, Any]
Content = dict[str, Any]


def faults(body: bytes | Body, *, model: str | None = None, strict: bool = False) -> list[str]:
    """Every fault of a request body, in the rules' order; empty for one that the API takes.

    Where a member that the rules read is missing or of another type, those faults alone.

    Args:
        model: the model that is asked, where the body itself doesn't say; from Gemini 3 on calls have to be signed.
        strict: the model demands that user and model alternate, as some do.
    """
    whole: Body = json.loads(body) if isinstance(body, bytes) else body
    found = list(shape(whole)) or [fault for rule in RULES for fault in rule(contents(whole))]
    if found:
        return found
    if _signs(model or str(whole.get("model") or "")):
        found += signatures(contents(whole))
    return found + (list(alternation(contents(whole))) if strict else [])


# ------------------------------------------------------------------------------------------------- 4.1 parts

# What a part is made of, by its camelCase name: one of these, and marks beside it.
DATA = (
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
)
MARKS = ("thought", "thoughtSignature", "videoMetadata", "mediaResolution", "partMetadata")
PLACES = {
    "functionCall": ("model",),
    "functionResponse": ("user", "function"),
    **dict.fromkeys(("executableCode", "codeExecutionResult", "toolCall", "toolResponse"), ("model",)),
}
SERVER_PAIRS = {"executableCode": "codeExecutionResult", "toolCall": "toolResponse"}


def shape(body: Any) -> Iterator[str]:
    """What has to be there for the rules to read: contents, known roles, parts with data in them."""
    found = contents(body) if isinstance(body, dict) else None
    if not isinstance(found, list) or not found:
        yield "* GenerateContentRequest.contents: contents is not specified"
        return
    for number, content in enumerate(found):
        path = f"contents[{number}]"
        parts = content.get("parts") if isinstance(content, dict) else None
        if not isinstance(content, dict) or role(content) not in ("user", "model", "function"):
            yield f"{path}.role: Please use a valid role: user, model."
        elif parts is not None and not isinstance(parts, list):
            yield f"{path}.parts: expected a list"
        elif not parts:
            yield f"* GenerateContentRequest.{path}.parts: contents.parts must not be empty."
        for index, part in enumerate(parts if isinstance(parts, list) else ()):
            yield from _shape_of_part(part, f"{path}.parts[{index}]")


def _shape_of_part(part: Any, path: str) -> Iterator[str]:
    if not isinstance(part, dict):
        yield f"{path}: expected an object"
        return
    data = [name for name in part if _camel(name) not in MARKS]
    if not data:
        yield f"* GenerateContentRequest.{path}.data: required oneof field 'data' must have one initialized field"
    for name in data:
        inner = part[name]
        if _camel(name) in DATA and not isinstance(inner, str if _camel(name) == "text" else dict):
            yield f"Invalid value at '{path}.{name}'"
        elif _camel(name) in ("functionCall", "functionResponse"):
            if not isinstance(inner.get("name"), str):
                yield f"{path}.{name}.name: Name cannot be empty."
            if not isinstance(inner.get("id"), str | None):
                yield f"Invalid value at '{path}.{name}.id'"


def places(found: list[Content]) -> Iterator[str]:
    for number, content in enumerate(found):
        for part in content["parts"]:
            for name, roles in PLACES.items():
                if name in kinds(part) and role(content) not in roles:
                    yield f"contents[{number}]: a {name} cannot be in a content of role {role(content)}"


def words(found: list[Content]) -> Iterator[str]:
    """The model's empty text is legal with a signature alone; a human's was taken."""
    for number, content in enumerate(found):
        for index, part in enumerate(content["parts"]):
            if role(content) == "model" and part.get("text") == "" and not signature(part):
                yield (
                    f"* GenerateContentRequest.contents[{number}].parts[{index}].data: "
                    "required oneof field 'data' must have one initialized field"
                )


# --------------------------------------------------------------------------------------------- 4.2 structure

TURN = "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
ANSWER = "Please ensure that function response turn comes immediately after a function call turn."
NUMBER = (
    "Please ensure that the number of function response parts is equal to the number of function call parts of the "
    "function call turn."
)


def ends(found: list[Content]) -> Iterator[str]:
    if role(found[0]) != "user":
        yield "contents[0]: Please ensure that multiturn requests start with a user turn"
    if role(found[-1]) == "model":
        yield f"contents[{len(found) - 1}]: Please ensure that multiturn requests end with a user turn or a function response"


def calls_follow_a_user(found: list[Content]) -> Iterator[str]:
    for number, content in enumerate(found):
        if members(content, "functionCall") and (number == 0 or role(found[number - 1]) == "model"):
            yield f"contents[{number}]: {TURN}"


def calls_are_answered(found: list[Content]) -> Iterator[str]:
    """The next content answers all calls of one, and nothing else: by number, and by id or name where told."""
    for number, (content, following) in enumerate(pairwise([{"parts": []}, *found, {"parts": []}]), -1):
        made, given = members(content, "functionCall"), members(following, "functionResponse")
        if given and not made:
            yield f"contents[{number + 1}]: {ANSWER}"
        elif len(made) != len(given):
            yield f"contents[{number}]: {NUMBER}"
        elif _names(made, "name") != _names(given, "name"):
            yield f"contents[{number + 1}]: {NUMBER} (the names differ)"
        elif all("id" in one for one in (*made, *given)) and _names(made, "id") != _names(given, "id"):
            yield f"contents[{number + 1}]: {NUMBER} (the ids differ)"


def server_pairs(found: list[Content]) -> Iterator[str]:
    """Code and tools that the server ran: each with its result, in order, within one stretch of the model's words."""
    for asked, answer in SERVER_PAIRS.items():
        open_ = 0
        for number, content in enumerate([*found, {"parts": []}]):
            if role(content) != "model" and open_:
                yield f"contents[{number - 1}]: {asked} without its {answer}"
                open_ = 0
            for part in content["parts"]:
                if asked in kinds(part):
                    open_ += 1
                elif answer in kinds(part) and open_:
                    open_ -= 1
                elif answer in kinds(part):
                    yield f"contents[{number}]: {answer} without its {asked}"


def alternation(found: list[Content]) -> Iterator[str]:
    """A human's content may still stand beside responses: there they are not to be merged."""
    for number, (before, after) in enumerate(pairwise(found), 1):
        responses = members(before, "functionResponse") or members(after, "functionResponse")
        if (role(before) == "model") == (role(after) == "model") and not responses:
            yield f"contents[{number}]: Please ensure that multiturn requests alternate between user and model."


# -------------------------------------------------------------------------------------------- 4.3 signatures


def signatures(found: list[Content]) -> Iterator[str]:
    """In the current turn the first call of every step is signed; of parallel calls the first alone."""
    human = [
        number
        for number, content in enumerate(found)
        if role(content) != "model" and any("functionResponse" not in kinds(part) for part in content["parts"])
    ]
    for number in range(max(human, default=-1) + 1, len(found)):
        first = next((part for part in found[number]["parts"] if "functionCall" in kinds(part)), None)
        if first is not None and not signature(first):
            yield f"contents[{number}]: Function call is missing a thought_signature in functionCall parts."


def _signs(model: str) -> bool:
    found = re.search(r"gemini-(\d+)", model)
    return found is not None and int(found[1]) >= 3


# ------------------------------------------------------------------------------------------------ the readers


def contents(body: Body) -> Any:
    """The list of contents; Code Assist has it one level down, and one alone needs no list."""
    inner = body.get("request") if "contents" not in body else body
    found = inner.get("contents") if isinstance(inner, dict) else None
    return [found] if isinstance(found, dict) else found


def role(content: Content) -> Any:
    """A content's role; without one it is the user's."""
    return content.get("role") or "user"


def kinds(part: Part) -> set[str]:
    """What a part holds, in camelCase."""
    return {_camel(name) for name in part}


def members(content: Content, name: str) -> list[dict[str, Any]]:
    """Those of a content's parts that hold `name`, without their wrapping."""
    return [value for part in content["parts"] for key, value in part.items() if _camel(key) == name]


def signature(part: Part) -> Any:
    """What a part is signed with, if it is."""
    return part.get("thoughtSignature") or part.get("thought_signature")


def _names(found: list[dict[str, Any]], member: str) -> Counter[Any]:
    return Counter(one.get(member) for one in found)


def _camel(name: str) -> str:
    return re.sub(r"_([a-z])", lambda letter: letter[1].upper(), name)


RULES = (places, words, ends, calls_follow_a_user, calls_are_answered, server_pairs)
