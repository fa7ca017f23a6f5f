"""What a provider knows of how a request begins: thinking that is bound to it, and the prompt cache.

Law: a beginning is its decoded values. Cache marks, JSON's spellings, a string for its one text, the border between
two messages of one role, and deferred tools that nothing loaded change nothing; any other difference does
(docs/wire.md, 1.3 and 1.7; https://platform.claude.com/docs/en/build-with-claude/preserved-thinking).
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import validator

Block = dict[str, Any]
Body = dict[str, Any]

THINKING, NARRATION = "thinking", "narration"
SIGNATURE = "Invalid `signature` in `thinking` block"


# --------------------------------------------------------------------------------------------- the beginning


@dataclass(frozen=True, slots=True)
class Part:
    """One step of a request: its tools, its system prompt, or a block with its role.

    Attributes:
        message, index: where the block stands; -1 for tools and system.
        block: the block; None for tools and system.
        canonical: its values, in one spelling.
        marked: whether a cache mark stands on it or in it.
    """

    message: int
    index: int
    block: Block | None
    canonical: bytes
    marked: bool


def parts(body: Body) -> Iterator[Part]:
    """A request in the order in which the provider reads it: tools, system, messages."""
    tools, system = body.get("tools") or [], _blocks(body.get("system") or [])
    # A deferred tool is no part of the prompt; where a reference loads it, its definition stands there.
    deferred = {tool["name"]: tool for tool in tools if tool.get("defer_loading")}
    at_once = [tool for tool in tools if not tool.get("defer_loading")]
    yield Part(-1, -1, None, _canonical(["tools", at_once]), _marked(at_once))
    yield Part(-1, -1, None, _canonical(["system", system]), _marked(system))
    for number, message in enumerate(body["messages"]):
        more = {key: value for key, value in message.items() if key not in ("role", "content")}
        for index, block in enumerate(_blocks(message["content"])):
            said = [message["role"], block, more, [deferred[name] for name in _references(block) if name in deferred]]
            yield Part(number, index, block, _canonical(said), _marked(block))


def before_each(body: Body) -> Iterator[tuple[bytes, Part]]:
    """Each part with the digest of everything before it."""
    digest = b""
    for part in parts(body):
        yield digest, part
        digest = _digest(digest, part.canonical)


def _blocks(content: Any) -> list[Block]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _references(block: Block) -> Iterator[str]:
    """The tools that a block loads."""
    inside = block.get("content")
    for item in (block, block.get("tool"), *(inside if isinstance(inside, list) else ())):
        if isinstance(item, dict) and item.get("type") == "tool_reference":
            yield item.get("tool_name") or item.get("name") or ""


def _marked(value: Any) -> bool:
    if isinstance(value, dict):
        return bool(value.get("cache_control")) or _marked(value.get("content"))
    return isinstance(value, list) and any(map(_marked, value))


def _canonical(value: Any) -> bytes:
    return json.dumps(_bare(value), sort_keys=True, separators=(",", ":")).encode()


def _bare(value: Any) -> Any:
    """Without marks, and with numbers as JavaScript has them: a client reads and writes them so."""
    if isinstance(value, dict):
        return {key: _bare(item) for key, item in value.items() if key != "cache_control"}
    if isinstance(value, list):
        return [_bare(item) for item in value]
    return float(value) + 0.0 if isinstance(value, int | float) and not isinstance(value, bool) else value


def _digest(*pieces: bytes) -> bytes:
    whole = hashlib.sha256()
    for piece in pieces:
        whole.update(len(piece).to_bytes(8, "big") + piece)
    return whole.digest()[:16]


# --------------------------------------------------------------------------------------------- signatures


@dataclass(frozen=True, slots=True)
class Seal:
    """What a signature says.

    Attributes:
        kind: `thinking`, or `narration` for the agent's words to the human.
        prefix: digest of everything before the block: of the request, and of the answer up to it.
        own: digest of the block's words.
        run: digest of the words of the run of thinking blocks that it stands in.
        calls: digest of the ids of its answer's calls.
    """

    kind: str
    prefix: bytes = b""
    own: bytes = b""
    run: bytes = b""
    calls: bytes = b""


def write(seal: Seal) -> str:
    """The signature: base64 of an envelope with the kind in field 2, in it field 1, in it field 8."""
    inner = b"".join(
        _field(number, value)
        for number, value in ((1, seal.prefix), (2, seal.own), (3, seal.run), (4, seal.calls), (8, seal.kind.encode()))
        if value
    )
    return base64.b64encode(b"\x08\x01" + _field(2, _field(1, inner))).decode()


def read(signature: str) -> Seal | None:
    """What a signature of ours says; None for any other."""
    try:
        envelope = base64.b64decode(signature, validate=True)
        found = _fields(_fields(_fields(envelope[2:])[2])[1])
        return Seal(found[8].decode(), *(found.get(number, b"") for number in (1, 2, 3, 4)))
    except (ValueError, KeyError, IndexError):
        return None


def signed(body: Body, answer: list[Block]) -> list[Block]:
    """An answer whose thinking carries signatures that are bound to the request; those that are set stay."""
    prefix = b""
    for before, part in before_each(body):
        prefix = _digest(before, part.canonical)
    runs = [run for run in validator.runs(answer) for _ in run]
    calls, out = _calls(answer), []
    for block in answer:
        run = runs.pop(0) if block["type"] in validator.THINKING else []
        seal = read(block["signature"]) if block["type"] == "thinking" else None
        if seal is not None and not seal.own:
            block = {**block, "signature": write(Seal(seal.kind, prefix, _words(block), _words(*run), calls))}
        out.append(block)
        prefix = _digest(prefix, _canonical(["assistant", block, {}, []]))
    return out


def refused(body: Body) -> list[str]:
    """What the provider says of the thinking in a request, by its signatures: check A and check B."""
    bound = validator.binds(body.get("model"))
    config = (body.get("thinking") or {}).get("block_binding") or {}
    if config.get("prefix_mismatch_behavior") == "drop_block":
        bound = False  # such blocks are dropped, and the request is answered
    found = []
    for before, part in before_each(body):
        if part.block is None or part.block["type"] != "thinking":
            continue
        path, seal = f"messages.{part.message}.content.{part.index}", read(part.block["signature"])
        if seal is None or seal.own != _words(part.block):
            found.append(f"{path}: {SIGNATURE}")
        elif bound and seal.prefix != before:
            found.append(f"{path}: {validator.BOUND}")
    return found or _modified(body)


def _modified(body: Body) -> list[str]:
    """Check A: in the open turn each run is whole, and stands with the calls of its answer."""
    found = []
    for message in validator.open_turn(body["messages"]):
        if message["role"] == "assistant":
            blocks = validator.blocks(message)
            for run in validator.runs(blocks):
                seals = [read(block["signature"]) for block in run if block["type"] == "thinking"]
                whole = (_words(*run), _calls(blocks))
                found += [validator.MODIFIED for seal in seals if seal is None or (seal.run, seal.calls) != whole]
    return found[:1]


def _words(*blocks: Block) -> bytes:
    return _digest(*(str(block.get("thinking", block.get("data"))).encode("utf-8", "replace") for block in blocks))


def _calls(blocks: list[Block]) -> bytes:
    return _digest(*(block["id"].encode() for block in blocks if block["type"] == "tool_use"))


def _field(number: int, value: bytes) -> bytes:
    """A length-delimited field of a protobuf-style message; all of ours are shorter than 128 bytes."""
    return bytes([number << 3 | 2, len(value)]) + value


def _fields(data: bytes) -> dict[int, bytes]:
    found, at = {}, 0
    while at < len(data):
        found[data[at] >> 3] = data[at + 2 : at + 2 + data[at + 1]]
        at += 2 + data[at + 1]
    return found


# ----------------------------------------------------------------------------------------------- the cache


class Cache:
    """A plain prompt cache: what stood before a mark once is read from it, for ever, for the same model."""

    def __init__(self) -> None:
        self._known: set[tuple[str, bytes]] = set()

    def usage(self, body: Body, size: int) -> dict[str, int]:
        """What a request weighs, and remember it.

        Args:
            body: the request, decoded.
            size: its bytes; a token is four of them.
        """
        model, steps = str(body.get("model")), list(before_each(body))
        after = [(model, _digest(before, part.canonical)) for before, part in steps]
        weight = [0]
        for _, part in steps:
            weight.append(weight[-1] + len(part.canonical))
        marked = len(steps) if body.get("cache_control") else 0
        marked = max(marked, *(number for number, (_, part) in enumerate(steps, 1) if part.marked), 0)
        known = max((number for number in range(1, marked + 1) if after[number - 1] in self._known), default=0)
        self._known.update(after[:marked])
        whole = max(1, size // 4)
        read, kept = (whole * weight[number] // weight[-1] for number in (known, marked))
        return {
            "input_tokens": whole - kept,
            "cache_creation_input_tokens": kept - read,
            "cache_read_input_tokens": read,
        }
