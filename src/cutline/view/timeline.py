"""A session as a person looks at it: every block with its author and weight, seams, documents, requests.

Law: values for JSON, made from one history; previews are cut short, whole texts are asked for block by block. What is
recorded is data: nothing of it is ever markup.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from .. import checkpoint, events, evidence, money, narration, spans
from ..blocks import Block, Kind, ToolCall
from ..measure import IMAGE_TOKENS, Calibration
from ..seam import floor_of, turns_of
from ..sessions.cutting import figures
from ..sessions.model import Session
from ..wire import anthropic as wire

PARTS = ("agent", "human", "call", "result", "thinking", "harness", "attachment", "checkpoint")
"""What a block is on the page: whose words, or what was not said."""
WORDS = frozenset({"agent", "human"})
_PREVIEW = 140
_TIER = 8_000  # tokens; every border between prices that are listed (32, 128, 200, 256, 272 thousand) is a multiple
_LINKED = 3  # calls, the last ones, that lead from a claim to its evidence


@dataclass(frozen=True, slots=True)
class Entry:
    """One block.

    Attributes:
        message, block: its place.
        part: one of `PARTS`.
        tokens: its share of a request, by the session's own ratio of bytes to tokens.
        label: the tool of a call or result, else "".
        preview: its beginning, one line.
        address: of the call, or of the call that a result answers; "" elsewhere.
        error: a result that says of itself that it is an error.
    """

    message: int
    block: int
    part: str
    tokens: int
    label: str
    preview: str
    address: str = ""
    error: bool = False


@dataclass(frozen=True)
class Timeline:
    """A session, read for the page.

    Attributes:
        session: the session.
        request: its history.
        fit: its tokens by bytes.
        entries: its blocks, in order.
        firsts: for each message, the index of its first entry.
        seams: (message, what it is): checkpoints, and summaries that the client put there.
        calls: each call with its result and its place.
        verdicts: what `narration.is_hole` found of them, for the next cut that is asked for.
    """

    session: Session
    request: wire.Request
    fit: Calibration
    entries: Sequence[Entry]
    firsts: Sequence[int]
    seams: Sequence[tuple[int, str]]
    calls: Sequence[events.Found]
    verdicts: narration.Known = field(default_factory=dict, repr=False)
    _texts: dict[int, str] = field(default_factory=dict, repr=False)

    def index(self, message: int, block: int) -> int:
        """The index of the entry at a place."""
        return self.firsts[message] + block

    @cached_property
    def narrated(self) -> narration.Narration:
        """The verdict on its narration."""
        return events.review(self.request)

    @cached_property
    def holes(self) -> frozenset[int]:
        """The entries that are calls which no words carry."""
        ours = [found for found in self.calls if not narration.is_own(found.call.name)]
        return frozenset(self.index(ours[at].message, ours[at].block) for at in self.narrated.holes)

    @cached_property
    def by_address(self) -> dict[str, int]:
        """Where each address was called last, as the index of an entry."""
        return {found.call.address: self.index(found.message, found.block) for found in self.calls}

    def text(self, index: int) -> str:
        """The whole of a block as text: words, a call's arguments, a result; JSON of anything else."""
        entry = self.entries[index]
        block = self.request.messages[entry.message].blocks[entry.block]
        if block.kind is Kind.TEXT:
            return wire.words(self.request, block)
        if block.kind is Kind.RESULT:
            return wire.result_text(self.request, block)
        if block.kind is Kind.CALL:
            return _pretty(wire.member(self.request, block, "input") or b"{}")
        if block.kind is Kind.THINKING and wire.member(self.request, block, "thinking") is not None:
            return wire.words(self.request, block)
        raw = self.request.body[block.start : block.end]
        return f"{entry.part}: {len(raw):,} bytes" if len(raw) > 100_000 else _pretty(raw)

    def find(self, words: Sequence[str]) -> list[int]:
        """The entries that hold all words, in any case."""
        wanted = [word.lower() for word in words if word]
        found = []
        for index in range(len(self.entries)) if wanted else ():
            text = self._texts.get(index)
            if text is None:
                text = self._texts[index] = f"{self.entries[index].label} {self.text(index)}".lower()
            if all(word in text for word in wanted):
                found.append(index)
        return found

    def as_json(self) -> dict[str, Any]:
        """What the page shows first; blocks as columns, which weighs a third."""
        session, history = self.session, self.session.history
        tools = sorted({entry.label for entry in self.entries})
        number = {name: at for at, name in enumerate(tools)}
        return {
            "title": session.title or session.id,
            "id": session.id,
            "client": session.client,
            "version": session.version,
            "cwd": session.cwd,
            "branch": session.git_branch,
            "model": history.model,
            "last": session.last,
            "sealed": session.sealed,
            "damage": list(session.damage),
            "compacted": history.compacted,
            "tokens": {"per_byte": self.fit.per_byte, "harness": self.fit.harness, "source": self.fit.source},
            "parts": PARTS,
            "tools": tools,
            "blocks": {
                "message": [entry.message for entry in self.entries],
                "part": [PARTS.index(entry.part) for entry in self.entries],
                "tokens": [entry.tokens for entry in self.entries],
                "tool": [number[entry.label] for entry in self.entries],
                "preview": [entry.preview for entry in self.entries],
                "address": [entry.address for entry in self.entries],
                "error": [index for index, entry in enumerate(self.entries) if entry.error],
            },
            "human": list(history.human),
            "seams": [{"message": message, "what": what} for message, what in self.seams],
        }

    def notes(self) -> dict[str, Any]:
        """What takes longer to say of it: narration, documents, requests."""
        return {
            "holes": sorted(self.holes),
            "calls": self.narrated.calls,
            "hidden": events.hidden(self.request),
            "requests": requests(self.session),
            "documents": self.documents(),
        }

    def documents(self) -> list[dict[str, Any]]:
        """Every checkpoint's document, each claim held against the calls before it."""
        found = []
        before: list[ToolCall] = []
        for one in self.calls:
            block = self.request.messages[one.message].blocks[one.block]
            if not wire.is_checkpoint(block):
                before.append(one.call)
                continue
            found.append(self._document(one, evidence.Record(before)))
        return found

    def _document(self, found: events.Found, record: evidence.Record) -> dict[str, Any]:
        held = spans.decode(found.call.arguments)
        document = checkpoint.read(held)
        facts = document.facts if isinstance(document, checkpoint.Document) else _facts(held)
        return {
            "message": found.message,
            "index": self.index(found.message, found.block),
            "address": found.call.address,
            "refused": document if isinstance(document, str) else "",
            "stored": (found.message, "checkpoint") in self.seams,
            "texts": {key: value for key, value in _texts(held).items() if value},
            "facts": [
                {
                    "claim": fact.claim,
                    "basis": fact.basis,
                    "evidence": fact.evidence,
                    "doubt": record.doubt(fact) if fact.basis == "measured" else "",
                    "calls": [self.by_address[call.address] for call in record.named(fact.evidence)[-_LINKED:]],
                }
                for fact in facts
            ],
            "reply": found.call.result or "",
        }


def read(session: Session) -> Timeline:
    """Read a session for the page."""
    history = session.history
    request = wire.read(history.body)
    fit = figures(history, request).calibration
    calls = events.calls(request)
    made = {(found.message, found.block): found for found in calls}
    answers = {found.result: found for found in calls if found.result}
    entries: list[Entry] = []
    firsts: list[int] = []
    for at, message in enumerate(request.messages):
        firsts.append(len(entries))
        for index, block in enumerate(message.blocks):
            key = (at, index)
            call = made.get(key) or answers.get(key)
            part = _part(request, message.role, block, history.origins[at], call)
            entries.append(
                Entry(
                    at,
                    index,
                    part,
                    tokens(request, block, fit),
                    call.call.name if call else "",
                    _line(_shown(request, block, call)),
                    call.call.address if call else "",
                    block.error,
                )
            )
    floor = floor_of(request)
    turns, _ = turns_of(request, wire.pairs(request.messages)[0], floor)
    seams = [(turn.start, "checkpoint") for turn in turns]
    seams += [(at, "summary") for at, origin in enumerate(history.origins) if origin == "summary"]
    return Timeline(session, request, fit, entries, firsts, sorted(seams), calls)


def _part(request: wire.Request, role: str, block: Block, origin: str, call: events.Found | None) -> str:
    kind = block.kind
    if kind is Kind.TEXT:
        if origin in ("harness", "summary"):
            return "harness"
        author = str(wire.author(role, block, wire.words(request, block) if role == "user" else ""))
        return author if author in WORDS else "harness"
    if kind is Kind.CALL and wire.is_checkpoint(block):
        return "checkpoint"
    if kind is Kind.CALL and wire.is_say(block.name):
        return "agent"
    if kind is Kind.THINKING and wire.is_narration(request, block):
        start, end = wire.text_span(request, block)
        return "agent" if end > start else "thinking"
    if kind is Kind.RESULT and call and narration.is_own(call.call.name) and call.call.name.endswith("micro_handoff"):
        return "checkpoint"
    names = {Kind.CALL: "call", Kind.RESULT: "result", Kind.THINKING: "thinking"}
    other = "attachment" if kind in (Kind.IMAGE, Kind.DOCUMENT) else "harness"
    return names.get(kind, other)


def tokens(request: wire.Request, block: Block, fit: Calibration) -> int:
    """Tokens of a block by a session's own ratio; signatures and encrypted data weigh nothing, an image its usual."""
    size, images = block.end - block.start, 0
    if block.kind is Kind.THINKING:
        size -= sum(len(wire.member(request, block, key) or b"") for key in ("signature", "data"))
    elif block.kind is Kind.IMAGE:
        return IMAGE_TOKENS
    elif block.kind is not Kind.CALL and request.body.find(b'"base64"', block.start, block.end) >= 0:
        data = wire.embedded(request, block)
        size, images = size - sum(data), len(data)
    return max(1, round(size * fit.per_byte)) + images * IMAGE_TOKENS


def _shown(request: wire.Request, block: Block, found: events.Found | None) -> str:
    if found is not None:
        call = found.call
        if block.kind is Kind.RESULT:
            return call.result or ""
        return narration.target(call.name, call.arguments) or call.arguments[:_PREVIEW].decode("utf-8", "replace")
    if block.kind is Kind.TEXT:
        return wire.words(request, block)
    if block.kind is Kind.THINKING and wire.member(request, block, "thinking") is not None:
        return wire.words(request, block)
    return block.type


def _line(text: str) -> str:
    line = " ".join(text[: 4 * _PREVIEW].split())
    return line if len(line) <= _PREVIEW else line[: _PREVIEW - 1] + "…"


def _pretty(raw: bytes) -> str:
    """JSON for people; what can't be decoded, as it is."""
    try:
        return json.dumps(json.loads(raw), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return raw.decode("utf-8", "replace")


def _texts(held: Any) -> dict[str, Any]:
    if not isinstance(held, dict):
        return {}
    found = {}
    for key in ("done", "open", "went_wrong", "next", "working_directory", "dead_ends", "recipes"):
        value = held.get(key)
        if isinstance(value, str):
            found[key] = value
        elif isinstance(value, list):
            found[key] = "\n".join(str(item) for item in value)
    return found


def _facts(held: Any) -> list[checkpoint.Fact]:
    """The claims of a document whose shape is wrong, as far as they can be read."""
    found = held.get("facts") if isinstance(held, dict) else None
    facts = []
    for item in found if isinstance(found, list) else []:
        if isinstance(item, dict):
            claim, basis, shown = (str(item.get(key) or "") for key in ("claim", "basis", "evidence"))
            facts.append(checkpoint.Fact(claim, basis if basis in ("measured", "inferred") else "unmarked", shown))
        elif isinstance(item, str):
            facts.append(checkpoint.Fact(item, "unmarked", ""))
    return facts


def requests(session: Session) -> list[dict[str, Any]]:
    """Each request with what the provider counted, and what it cost by list prices (None where none is known)."""
    found = []
    prices: dict[tuple[str, int], money.Rates | None] = {}
    for made in session.history.requests:
        usage = made.usage
        key = (made.model, (usage.total_input - 1) // _TIER)
        if key not in prices:
            prices[key] = money.rates(made.model, prompt=usage.total_input)
        rates = prices[key]
        found.append(
            {
                "message": made.message,
                "model": made.model,
                "at": made.timestamp,
                "input": usage.input,
                "read": usage.cache_read,
                "write": usage.cache_write_5m + usage.cache_write_1h,
                "output": usage.output,
                "usd": None if rates is None else money.cost(usage, rates),
            }
        )
    return found
