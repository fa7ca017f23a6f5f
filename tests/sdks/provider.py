"""The scripted model (`cutline.demo.model`) as these tests want it: what the validators refuse it refuses, and an
answer's input is a token for four bytes.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import validator
from cutline.demo.model import Answer, Asked, Call, Failure, Model, Tokens


@dataclass(frozen=True, slots=True)
class Turn:
    """One answer: words, and calls as (id, tool, arguments)."""

    words: str = ""
    calls: Sequence[tuple[str, str, dict[str, Any]]] = ()


@dataclass(frozen=True, slots=True)
class Posted:
    """A request that carried a history."""

    format: str
    raw: bytes

    @property
    def history(self) -> list[Any]:
        """Its messages, items or contents, without what moves from request to request."""
        whole = json.loads(self.raw)
        found = whole.get("messages") or whole.get("input") or whole["contents"]
        return [_unmarked(one) for one in found]


def _unmarked(value: Any) -> Any:
    """Without cache marks; a string for its one text."""
    if isinstance(value, list):
        return [_unmarked(one) for one in value]
    if not isinstance(value, dict):
        return value
    bare = {key: _unmarked(one) for key, one in value.items() if key != "cache_control"}
    if bare.get("role") and isinstance(bare.get("content"), str):
        bare["content"] = [{"type": "text", "text": bare["content"]}]
    if isinstance(bare.get("parts"), list):
        bare["parts"] = _joined(bare["parts"])
    return bare


def _joined(parts: list[Any]) -> list[Any]:
    """Gemini's texts as they were said: its SDK keeps the pieces in which they were streamed."""
    out: list[Any] = []
    for part in parts:
        if out and set(part) == set(out[-1]) == {"text"}:
            part = {"text": out.pop()["text"] + part["text"]}
        out.append(part)
    return out


class Provider(Model):
    """A context manager; `url` is its root.

    Args:
        script: the answers, in turn; behind the last one it says "ok".
        failing: by the request's number from 0, a status that it is answered in place of the script's turn.
        packs: answers are sent in gzip where the client takes that.
    """

    _BEHIND = 100  # answers behind the script's

    def __init__(self, script: Sequence[Turn], failing: Mapping[int, int] | None = None, packs: bool = False) -> None:
        self.failing = dict(failing or {})
        told: list[Any] = [_counted(turn) for turn in script]
        for number, status in sorted(self.failing.items()):
            told.insert(number, Failure(status, "try again", retry_after_s=0))
        told += [_counted(Turn("ok"))] * self._BEHIND
        super().__init__(told, aside=_counted(Turn("ok")), refuses=refused, packs=packs)

    @property
    def posted(self) -> list[Posted]:
        """Requests that carried a history, refused ones too."""
        return [Posted(asked.format, asked.raw) for asked in self.asked if asked.format]

    @property
    def unused(self) -> int:
        """How many of the script's own answers were not asked for."""
        return super().unused - self._BEHIND


def _counted(turn: Turn) -> Callable[[Asked], Answer]:
    calls = tuple(Call(name, given, id) for id, name, given in turn.calls)
    return lambda asked: Answer(turn.words, calls, tokens=Tokens(len(asked.raw) // 4, 0, 0, 20))


def refused(format: str, body: bytes) -> str:
    """The first fault that a validator finds; "" for none."""
    module = validator if format == "anthropic" else importlib.import_module(f"validators.{format}")
    return next(iter(module.faults(body)), "")
