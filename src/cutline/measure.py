"""The wire report: what a request body is made of, before a cut and after it, and how many tokens that is.

Law: everything is counted on the JSON bytes that are really sent. The body's bytes are divided without rest:
blocks by kind and author, the system prompt, the tool schemas, and the structure around them. Tokens are the
provider's where a caller has them, else an estimate, and every figure says which.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from . import spans
from .blocks import Author, Block, Kind, Place
from .errors import Unreadable
from .plan import words_of
from .wire import anthropic as wire
from .wire.anthropic import Request

if TYPE_CHECKING:
    from .wire.neutral import Native

Source = Literal["measured", "calibrated", "estimated"]
"""Where a token figure comes from: the provider's usage, an estimate fitted to this session's usage, or the
general ratio of bytes to tokens."""

BYTES_PER_TOKEN = 3.6
"""The general ratio, for a session without usage: JSON of code and prose in recorded sessions (docs/cut.md)."""
_CREDIBLE = (1 / 8, 1 / 1.25)
IMAGE_TOKENS = 1_500
"""An image of the size that clients send; Anthropic bills width x height / 750, at most about 1,600."""

ROWS = (
    "agent text",
    "human text",
    "harness text",
    "tool calls",
    "tool results",
    "thinking",
    "images",
    "documents",
    "control",
    "unknown",
    "system prompt",
    "tool schemas",
    "structure",
)
"""The rows of a shape; their bytes add up to the body's."""


@dataclass(frozen=True, slots=True)
class Row:
    """How many blocks of one kind, and their bytes: of texts the words inside their literals (so that 100 % is
    100 %), of all others the whole JSON literal."""

    blocks: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class Shape:
    """What one body is made of.

    Attributes:
        bytes: the whole body.
        messages: its messages.
        rows: blocks and bytes by the names of `ROWS`.
        said: bytes of words inside their string literals, by author ("agent", "human", "harness").
        weighed: bytes that tokens are estimated by: without signatures and encrypted or image data.
        tokens: input tokens.
        source: where `tokens` comes from.
    """

    bytes: int
    messages: int
    rows: dict[str, Row]
    said: dict[str, int]
    weighed: int
    tokens: int
    source: Source

    @property
    def harness_bytes(self) -> int:
        """System prompt and tool schemas: what no cut can touch."""
        return self.rows["system prompt"].bytes + self.rows["tool schemas"].bytes

    def as_json(self) -> dict[str, Any]:
        """The shape for programs: sizes in bytes, tokens with their source."""
        return {
            "bytes": self.bytes,
            "tokens": self.tokens,
            "tokens_source": self.source,
            "messages": self.messages,
            "rows": {name: {"blocks": row.blocks, "bytes": row.bytes} for name, row in self.rows.items()},
        }


@dataclass(frozen=True, slots=True)
class Kept:
    """Authored text, before against after.

    Attributes:
        bytes: bytes of the agent's and the human's words in the body before.
        missing: how many of them are not in the body after, in order; 0 is the contract.
        joiners: bytes that stand between joined texts.
        notices: bytes added to results (notices, and results filled again).
        blank: bytes of white-space-only texts that had to go.
    """

    bytes: int
    missing: int
    joiners: int
    notices: int
    blank: int

    @property
    def share(self) -> float:
        """Share of the authored bytes that is kept: exactly 1.0 by the contract."""
        return 1.0 if not self.bytes else (self.bytes - self.missing) / self.bytes


@dataclass(frozen=True, slots=True)
class WireReport:
    """One body, or a body before and after its cut."""

    before: Shape
    after: Shape | None = None
    kept: Kept | None = None

    def as_json(self) -> dict[str, Any]:
        """The report for programs: sizes in bytes, tokens with their source."""
        out: dict[str, Any] = {"before": {**self.before.as_json(), "said_bytes": self.before.said}}
        if self.after is not None and self.kept is not None:
            out["after"] = {**self.after.as_json(), "said_bytes": self.after.said}
            out["kept"] = {
                "authored_bytes": self.kept.bytes,
                "missing_bytes": self.kept.missing,
                "share": self.kept.share,
                "joiner_bytes": self.kept.joiners,
                "notice_bytes": self.kept.notices,
                "blank_bytes": self.kept.blank,
            }
        return out


@dataclass(frozen=True, slots=True)
class Calibration:
    """Tokens as a function of weighed bytes, fitted to one session's own usage.

    Attributes:
        per_byte: tokens per weighed byte of the history.
        harness: tokens of what the history does not hold (system prompt and tool schemas of the client).
        source: "calibrated", or "estimated" where the session has too little usage.
    """

    per_byte: float = 1 / BYTES_PER_TOKEN
    harness: int = 0
    source: Source = "estimated"

    def tokens(self, weighed: int) -> int:
        """Input tokens of a request with that many weighed bytes of history."""
        return round(self.harness + self.per_byte * weighed)


def calibrate(points: Sequence[tuple[int, int]]) -> Calibration:
    """Fit tokens to bytes by least squares.

    Args:
        points: for requests of one session: (weighed bytes of the history sent, input tokens that the
            provider counted: uncached, cache reads and cache writes together).

    Returns:
        The fit; the general ratio where there are fewer than 4 points or the fit is not credible (outside of
        1.25 to 8 bytes a token: the client sent something else than what the file holds). Recorded sessions
        lie between 2.9 and 3.5 bytes, with the newest models (opus-4.7, sonnet-5, fable-5) at 2.0.
    """
    if len(points) >= 4:
        mean_x = sum(x for x, _ in points) / len(points)
        mean_y = sum(y for _, y in points) / len(points)
        spread = sum((x - mean_x) ** 2 for x, _ in points)
        if spread:
            slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
            if _CREDIBLE[0] <= slope <= _CREDIBLE[1]:
                return Calibration(slope, max(0, round(mean_y - slope * mean_x)), "calibrated")
    last = points[-1] if points else None
    if last:
        return Calibration(harness=max(0, round(last[1] - last[0] / BYTES_PER_TOKEN)))
    return Calibration()


def measure(
    before: bytes,
    after: bytes | None = None,
    *,
    tokens: int | None = None,
    calibration: Calibration | None = None,
) -> WireReport:
    """Measure a body, or a body and its cut.

    Args:
        before: a request body of any format that is cut.
        after: what `cut` made of it.
        tokens: input tokens of `before` as the provider counted them (usage), if known.
        calibration: how bytes become tokens in this session; the general ratio if absent.

    Raises:
        Unreadable: a body that can't be read.
    """
    request, native = request_of(before)
    fit = calibration or Calibration()
    first = _shape(request, fit, tokens, native)
    if after is None:
        return WireReport(first)
    other, cut = request_of(after)
    if tokens is not None and first.weighed:
        # What was counted is shared out: the client's own part stays, the history's goes with its bytes.
        second = _shape(other, fit, None, cut)
        harness = min(fit.harness, tokens)
        left = harness + round((tokens - harness) * second.weighed / first.weighed)
        second = replace(second, tokens=left, source="estimated" if fit.source == "estimated" else "calibrated")
    else:
        second = _shape(other, fit, None, cut)
    return WireReport(first, second, _kept(request, other))


def request_of(body: bytes) -> tuple[Request, Native | None]:
    """Read a body of any format: in the shape that all is decided on, and the body itself if it is not Anthropic's.

    Raises:
        Unreadable: it is in no format that is read, or there is a doubt about it.
    """
    try:
        return wire.read(body), None
    except Unreadable:
        from .wire import formats  # loaded for other formats only

        native = formats.read(body)
        if native is None:
            raise
        return native.request, native


def shape(
    request: Request,
    calibration: Calibration | None = None,
    tokens: int | None = None,
    native: Native | None = None,
) -> Shape:
    """The shape of a body that was read already; `native` is the body itself where it is not Anthropic's."""
    return _shape(request, calibration or Calibration(), tokens, native)


_ABOVE = {
    "system prompt": ("system", "systemInstruction", "system_instruction", "instructions"),
    "tool schemas": ("tools", "toolConfig"),
}


def _shape(request: Request, fit: Calibration, tokens: int | None, native: Native | None = None) -> Shape:
    body = request.body if native is None else native.body
    counted = {name: [0, 0] for name in ROWS}
    said = {"agent": 0, "human": 0, "harness": 0}
    unweighed = images = 0
    for at, message in enumerate(request.messages):
        for index, block in enumerate(message.blocks):
            name, author, inside = _row(request, message.role, block)
            size = block.end - block.start
            if native is not None:
                name = "system prompt" if native.commands(at, index) else name
                size = native.size(Place(at, index))
            row = counted[name]
            row[0] += 1
            row[1] += inside if author else size
            if author:
                said[author] += inside
            data, number = _unweighed(request, block)
            if native is not None and block.kind is Kind.IMAGE:
                data, number = size, 1
            unweighed += data
            images += number
    view = request.view if native is None else native.view
    top = {member.key: member for member in spans.members(view, spans.skip(view, 0))[0]}
    for name, keys in _ABOVE.items():
        for value in (top[key] for key in keys if key in top):
            several = view[value.start] == "["
            counted[name][0] += len(spans.elements(view, value.start)[0]) if several else 1
            counted[name][1] += value.end - value.start
    counted["structure"][1] = len(body) - sum(number for _, number in counted.values())
    weighed = len(body) - unweighed
    if tokens is None:
        total, source = fit.tokens(weighed) + images * IMAGE_TOKENS, fit.source
    else:
        total, source = tokens, "measured"
    rows = {name: Row(*pair) for name, pair in counted.items()}
    messages = len(request.messages if native is None else native.items)
    return Shape(len(body), messages, rows, said, weighed, total, source)


def _row(request: Request, role: str, block: Block) -> tuple[str, str, int]:
    """Name of a block's row, the author of its words ("" where it has none), and the bytes of those words."""
    kind = block.kind
    if kind is Kind.TEXT:
        start, end = wire.text_span(request, block)
        text = wire.words(request, block) if role == "user" else ""
        author = wire.author(role, block, text)
        return f"{author} text", str(author), end - start
    if kind is Kind.CALL:
        if wire.is_say(block.name):
            return "agent text", "agent", len(_spoken(request, block))
        return "tool calls", "", 0
    if kind is Kind.THINKING and wire.is_narration(request, block):
        start, end = wire.text_span(request, block)
        if start < end:
            return "agent text", "agent", end - start
    names = {
        Kind.RESULT: "tool results",
        Kind.THINKING: "thinking",
        Kind.IMAGE: "images",
        Kind.DOCUMENT: "documents",
        Kind.CONTROL: "control",
    }
    return names.get(kind, "unknown"), "", 0


def _spoken(request: Request, block: Block) -> bytes:
    return words_of(request, block).encode("utf-8", "surrogatepass")


def weights(request: Request) -> list[int]:
    """For each message, and behind the last: the weighed bytes of the body in front of it."""
    found = []
    unweighed = 0
    for message in request.messages:
        found.append(message.start - unweighed)
        unweighed += sum(_unweighed(request, block)[0] for block in message.blocks)
    return [*found, len(request.body) - unweighed]


def _unweighed(request: Request, block: Block) -> tuple[int, int]:
    """Bytes of a block that are no text (signature, encrypted data, image data), and how many images it has."""
    if block.kind is Kind.THINKING:
        return sum(len(wire.member(request, block, key) or b"") for key in ("signature", "data")), 0
    if block.kind is Kind.CALL or request.body.find(b'"base64"', block.start, block.end) < 0:
        return 0, 0
    data = wire.embedded(request, block)
    return sum(data), len(data)


# -------------------------------------------------------------------------------------- before and after


def _kept(before: Request, after: Request) -> Kept:
    left = [(author, words) for author, words, _ in _authored(after)]
    total = missing = joiners = blank = 0
    position = offset = 0
    for author, words, text in _authored(before):
        total += len(words)
        at, place = position, offset
        while at < len(left):
            found = left[at][1].find(words, place) if left[at][0] == author else -1
            if found > place and not text.strip():
                found = -1  # white space is found in any text: it counts only where it is due
            if found >= 0:
                joiners += found - place
                position, offset = at, found + len(words)
                break
            at, place = at + 1, 0
        else:
            if text.strip():
                missing += len(words)
            else:
                total -= len(words)
                blank += len(words)
    return Kept(total, missing, joiners, _added(before, after), blank)


def _authored(request: Request) -> Iterator[tuple[str, bytes, str]]:
    """Author, raw words and decoded words of every text that the agent or the human wrote, in order."""
    for message in request.messages:
        for block in message.blocks:
            if block.kind is Kind.TEXT:
                start, end = wire.text_span(request, block)
                text = wire.words(request, block)
                author = wire.author(message.role, block, text)
                if author is not Author.HARNESS:
                    yield str(author), request.body[start:end], text
            elif block.kind is Kind.CALL and wire.is_say(block.name):
                words = _spoken(request, block)
                yield "agent", words, words.decode("utf-8", "surrogatepass")
            elif block.kind is Kind.THINKING and wire.is_narration(request, block):
                start, end = wire.text_span(request, block)
                if start < end:
                    yield "agent", request.body[start:end], "narration"


def _added(before: Request, after: Request) -> int:
    """Bytes by which results grew: notices, and results that were filled again."""
    sizes: dict[str, list[int]] = {}
    for message in before.messages:
        for block in message.blocks:
            if block.kind is Kind.RESULT:
                sizes.setdefault(block.id, []).append(block.end - block.start)
    grown = 0
    # From the end, so that ids which a server counts anew each turn meet their own.
    for message in reversed(after.messages):
        for block in reversed(message.blocks):
            if block.kind is Kind.RESULT and sizes.get(block.id):
                grown += block.end - block.start - sizes[block.id].pop()
    return max(0, grown)
