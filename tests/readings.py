"""Bodies as tests read them: with a slow parser of its own that keeps each literal as it is written.

It knows the format and the words of the contract (pairs, checkpoints, narration), and nothing of how the cut
decides.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from functools import cached_property
from json.decoder import JSONObject, scanstring  # type: ignore[attr-defined]
from json.scanner import py_make_scanner  # type: ignore[attr-defined]
from typing import Any

import histories


class Text(str):
    """A decoded string that knows the inside of its literal."""

    raw: str


class Object(dict[str, Any]):
    """A decoded object that knows its literal."""

    raw: str


def parse(body: bytes) -> Any:
    """The value of a JSON text whose strings and objects know how they are written."""
    source = body.decode("utf-8")
    decoder = json.JSONDecoder()

    def string(text: str, begin: int, strict: bool = True) -> tuple[Text, int]:
        value, end = scanstring(text, begin, strict)
        found = Text(value)
        found.raw = text[begin : end - 1]
        return found, end

    def an_object(start: tuple[str, int], *rest: Any) -> tuple[Object, int]:
        value, end = JSONObject(start, *rest)
        found = Object(value)
        found.raw = source[start[1] - 1 : end]
        return found, end

    decoder.parse_string, decoder.parse_object = string, an_object  # type: ignore[attr-defined]
    decoder.scan_once = py_make_scanner(decoder)
    return decoder.decode(source)


Key = tuple[int, int]


class Reading:
    """A body that was read: its messages, their blocks, its pairs."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.whole = parse(body)
        self.messages: list[Object] = self.whole["messages"]

    @cached_property
    def thinking(self) -> str | None:
        return (self.whole.get("thinking") or {}).get("type")

    @cached_property
    def blocks(self) -> dict[Key, Any]:
        """Every block by its place; a string content is its one block."""
        return {
            (number, index): block
            for number, message in enumerate(self.messages)
            for index, block in enumerate(
                [message["content"]] if isinstance(message["content"], str) else message["content"]
            )
        }

    def type(self, key: Key) -> str:
        block = self.blocks[key]
        return "text" if isinstance(block, str) else block["type"]

    def raw(self, key: Key) -> str:
        block = self.blocks[key]
        return f'"{block.raw}"' if isinstance(block, str) else str(block.raw)

    def role(self, key: Key) -> str:
        return str(self.messages[key[0]]["role"])

    def is_thinking(self, key: Key) -> bool:
        return self.type(key) in ("thinking", "redacted_thinking", "connector_text")

    def narrated(self, key: Key) -> Text | None:
        """The words of a narration block; None for any other block, and where there are none."""
        if self.type(key) != "thinking":
            return None
        block = self.blocks[key]
        if block.get("signature") != histories.NARRATION and self.thinking != "between_tools":
            return None
        words: Text = block["thinking"]
        return words if words.strip() else None

    def said(self, spoken: Collection[Key] = ()) -> list[tuple[str, Text]]:
        """Every text with its role, in order; words of the narration blocks `spoken` are the agent's."""
        found = []
        for key, block in self.blocks.items():
            if self.type(key) == "text":
                found.append((self.role(key), block if isinstance(block, str) else block["text"]))
            elif key in spoken:
                found.append(("assistant", block["thinking"]))
        return found

    @cached_property
    def pairs(self) -> dict[Key, Key]:
        """Calls and their results: a client's in the user messages behind, a server's in the agent's own."""
        found: dict[Key, Key] = {}
        for key in self.blocks:
            if not self.type(key).endswith("tool_use"):
                continue
            for other in self._answers(key):
                if other not in found.values():
                    found[key] = other
                    break
        return found

    def _answers(self, key: Key) -> Iterator[Key]:
        id = self.blocks[key]["id"]
        left = False
        for other in self.blocks:
            if other <= key:
                continue
            role = self.role(other)
            if self.type(key) != "tool_use":
                if self.type(other).endswith("_tool_result") and self.blocks[other]["tool_use_id"] == id:
                    yield other
                continue
            if role == "user":
                left = True
            elif role == "assistant" and left:
                return
            if role == "user" and self.type(other) == "tool_result" and self.blocks[other]["tool_use_id"] == id:
                yield other

    @cached_property
    def checkpoints(self) -> list[Key]:
        """The calls that were stored: answered, without an error, not refused."""
        return [
            key
            for key, block in self.blocks.items()
            if self.type(key) == "tool_use"
            and block["name"] in histories.CHECKPOINTS
            and key in self.pairs
            and not self.blocks[self.pairs[key]].get("is_error")
            and "checkpoint refused:" not in self.raw(self.pairs[key])
        ]

    @cached_property
    def floor(self) -> Key:
        """The last compaction: what stands before it is out of reach."""
        return max((key for key in self.blocks if self.type(key) == "compaction"), default=(0, -1))
