"""What passed through a proxy, session by session: the figures of the wire report.

Law: sums and the last bodies, in memory; nothing is decided here and nothing read from a clock or a disk. Tokens
are the provider's own counts; what would have been sent uncut is an estimate from them, and is called so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from .. import events, money, narration, spans
from ..blocks import ToolCall
from ..errors import Unreadable
from ..measure import BYTES_PER_TOKEN, request_of
from ..wire import anthropic as wire
from .plan import Forward
from .tap import Answer

_TOOL = r"(?:Bash|Read|Edit|Write|Grep|Glob|Agent|Task|Skill|WebFetch|WebSearch|TodoWrite|NotebookEdit|mcp__\w+)"
_OBJECT = (
    r"(?:\[\s*)?\{\s*\"(?:type\"\s*:\s*\"tool_use\""
    r"|name\"\s*:\s*\"[\w.-]+\"\s*,\s*\"(?:input|arguments|parameters)\"\s*:)"
)
_PHANTOM = re.compile(
    r"^[ \t]*(?:"
    r"<(?:antml:)?(?:invoke\s+name=|(?:function_calls|function_results|tool_use|tool_call|tool_result)\s*>)"
    rf"|<{_TOOL}>\s*<\w+>"
    rf"|{_OBJECT}"
    rf"|\[(?:[Tt]ool[ _](?:call|use|result)\s*:|[Cc]all(?:ing|ed)\s+(?:the\s+)?{_TOOL}\b)[^\]\n]*\](?!\()"
    r"|[●⏺]\s*\w+\("
    r"|(?:mcp__\w+|micro_handoff)\s*\(|(?:recall|say)\s*\(\s*(?:(?:what|text)\s*=|\{)"
    r")",
    re.M,
)
"""Texts that look like a call or its result: written out by a model, no tool ran. Each begins its line."""
_FENCE = re.compile(r"^[ \t]*(```+|~~~+)([^\n`]*)\n(.*?)(?:^[ \t]*\1[ \t]*$|\Z)", re.M | re.S)
_FENCED = re.compile(rf"\s*{_OBJECT}")
_BEDROCK = re.compile(
    r"(?:(?:us|eu|apac|jp|au|ca|sa|global|us-gov)\.)?"
    r"(?:ai21|amazon|anthropic|cohere|deepseek|google|meta|minimax|mistral|moonshot|nvidia|openai|qwen|writer)\."
)
_OFFERED = re.compile(rb'"tools"\s*:\s*\[\s*\{')


HELD = "held by the server"
"""What the reason says where nothing could be cut since the request carries a part of its history only."""


@dataclass(frozen=True, slots=True)
class Step:
    """One checkpoint on the wire: the last request before its cut, beside the first one behind it.

    Attributes:
        seam: the checkpoint's address.
        before, after: bytes of the two bodies as they were sent.
        before_messages, after_messages: bytes of their message lists.
        new: bytes of the history that are new between them (uncut: the checkpoint's turn, and what followed).
        before_tokens, after_tokens: the provider's counts for the two; 0 where it gave none.
    """

    seam: str
    before: int
    after: int
    before_messages: int
    after_messages: int
    new: int
    before_tokens: int
    after_tokens: int


@dataclass(frozen=True, slots=True)
class Read:
    """What is read out of a session's last history, for the report.

    Attributes:
        channels: how its calls were narrated.
        redone: calls behind a seam that repeat one which had left with it.
    """

    channels: events.Channels
    redone: int


@dataclass(slots=True)
class Account:
    """The sums of one session.

    Attributes:
        session: the client's id; "" for requests without one.
        turns, agent_turns: requests of the conversation, and of sub-agents.
        counts, compactions, others: token counts, the client's own summaries, anything else with a history.
        sent, whole: bytes of the bodies that went upstream, and of those that would have gone uncut.
        used: the provider's token counts, summed.
        uncounted: answers in which the provider gave none.
        held: turns that could not be cut because the server holds a part of their history.
        uncut: input tokens that would have been sent uncut, estimated from each request's own count.
        model: the last model that answered a turn.
        metered: requests come with a key, and are paid by the token.
        steps: the checkpoints.
        held_back: how often the client's own summary was held back, and a checkpoint asked for.
        phantoms: turns that wrote a call out as text and made none.
        faults: proofs that failed.
        refusals: what the provider refused of a cut, with what was done.
        last: the last turn of the conversation, uncut; None before the first.
        last_sent: what of it went upstream.
        last_tokens: the provider's count of its prompt.
        last_seam: the seam of it.
        earlier: what was read of the histories that the client's own summaries ended.
    """

    session: str
    turns: int = 0
    agent_turns: int = 0
    counts: int = 0
    compactions: int = 0
    others: int = 0
    sent: int = 0
    whole: int = 0
    used: money.Usage = field(default_factory=money.Usage)
    uncounted: int = 0
    held: int = 0
    uncut: float = 0.0
    model: str = ""
    metered: bool = True
    steps: list[Step] = field(default_factory=list)
    held_back: int = 0
    phantoms: int = 0
    faults: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    last: bytes | None = None
    last_sent: bytes = b""
    last_tokens: int = 0
    last_seam: str = ""
    earlier: list[Read] = field(default_factory=list)
    _asking: bool = False

    def add(self, sent: Forward, answer: Answer, status: int) -> None:
        """Note a request that carried a history, and its answer."""
        if sent.fault and sent.fault not in self.faults:
            self.faults.append(sent.fault)
        if sent.kind == "count":
            self.counts += 1
            return
        used = money.Usage.of(sent.format, answer.usage)
        self.uncounted += not answer.usage and status < 400
        self.sent += len(sent.body)
        self.whole += len(sent.whole)
        self.used = _sum(self.used, used)
        self.uncut += used.total_input * (len(sent.whole) / len(sent.body) if sent.changed and sent.body else 1.0)
        if sent.kind == "compaction" and answer.complete and status < 400:
            self._summarised(sent)
        elif sent.agent:
            self.agent_turns += 1
        elif sent.kind == "turn" and offers_tools(sent.whole):
            self._turn(sent, answer, used.total_input, status)
        else:
            self.others += 1

    def _turn(self, sent: Forward, answer: Answer, tokens: int, status: int) -> None:
        if status >= 400:
            self.others += 1  # refused, or to be tried again
            return
        self.turns += 1
        self.held += HELD in sent.reason
        self.model, self.metered = answer.model or sent.model or self.model, sent.metered
        self.phantoms += claims_without_a_call(answer.content)
        # A rewind, or a fork that bears the same id, comes back to a seam that was seen before.
        if sent.seam and not any(step.seam == sent.seam for step in self.steps):
            before = self.last_sent if self.last is not None else sent.whole
            new = max(0, len(sent.whole) - len(self.last)) if self.last is not None else 0
            one, two = messages_size(before), messages_size(sent.body)
            step = Step(sent.seam, len(before), len(sent.body), one, two, new, self.last_tokens, tokens)
            self.steps.append(step)
        self.last, self.last_sent = sent.whole, sent.body
        self.last_tokens, self.last_seam, self._asking = tokens, sent.seam, False

    def _summarised(self, sent: Forward) -> None:
        """Read what the client summarises: behind the summary it is in no history any more."""
        read = _read(sent.whole)
        if self._asking:  # the same once more: its first summary did not please the client
            self.others += 1
            self.earlier.pop()
        else:
            self.compactions += 1
        self.earlier.append(read or Read(events.Channels(0, 0, 0, 0, 0), 0))
        self.last, self.last_seam, self._asking = None, "", True


def _sum(one: money.Usage, two: money.Usage) -> money.Usage:
    return money.Usage(
        one.input + two.input,
        one.cache_read + two.cache_read,
        one.cache_write_5m + two.cache_write_5m,
        one.cache_write_1h + two.cache_write_1h,
        one.output + two.output,
    )


def offers_tools(body: bytes) -> bool:
    """Whether a body offers tools: a turn of the conversation, not one of the client's side questions.

    Looked for, not read: inside a text the quotes would be escaped.
    """
    return _OFFERED.search(body) is not None


def messages_size(body: bytes) -> int:
    """Bytes of a body's messages, items or contents; 0 where it can't be read."""
    try:
        request, native = request_of(body)
    except Unreadable:
        return 0
    spans_ = [(one.start, one.end) for one in request.messages] if native is None else native.items
    return spans_[-1][1] - spans_[0][0] if spans_ else 0


def claims_without_a_call(content: list[dict[str, Any]]) -> bool:
    """Whether an answer writes a call out as text and makes none: no tool ran."""
    if any(str(block.get("type", "")).endswith("tool_use") for block in content):
        return False
    return any(_is_phantom(str(block.get("text") or "")) for block in content if block.get("type") == "text")


def _is_phantom(text: str) -> bool:
    """Whether a text makes a call. Fenced code is an example, unless it is a call in JSON that ends the text."""
    fence = next(reversed(list(_FENCE.finditer(text))), None)
    ends = fence is not None and not text[fence.end() :].strip() and fence[2].strip() in ("", "json", "tool_use")
    if fence is not None and ends and _FENCED.match(fence[3]):
        return True
    return _PHANTOM.search(_FENCE.sub("", text)) is not None


def look(account: Account) -> Read | None:
    """Read a session's last history, and add what was read of those before it; None where there is none."""
    now = _read(account.last)
    found = [*account.earlier, *([now] if now is not None else [])]
    if not found:
        return None
    total = [sum(getattr(read.channels, name) for read in found) for name in events.Channels.__slots__]
    return Read(events.Channels(*total), sum(read.redone for read in found))


def _read(body: bytes | None) -> Read | None:
    if body is None:
        return None
    try:
        request = request_of(body)[0]
    except Unreadable:
        return None
    return Read(events.channels(request), redone(request))


def redone(request: wire.Request) -> int:
    """Calls that repeat, behind a checkpoint, one that was made before it: the same tool, the same arguments."""
    seen: set[tuple[str, bytes]] = set()
    before: set[tuple[str, bytes]] = set()
    count = 0
    for found in events.calls(request):
        call = found.call
        if wire.is_stored(call):
            before |= seen
        if narration.is_own(call.name):
            continue
        key = _key(call)
        count += key in before
        seen.add(key)
    return count


def _key(call: ToolCall) -> tuple[str, bytes]:
    return call.name, spans.canonical(call.arguments)


def seller(model: str) -> str | None:
    """Who is paid, by genai-prices' ids, where a model's name tells it: as Bedrock and OpenRouter write them."""
    if _BEDROCK.match(model):
        return "aws"
    return "openrouter" if "/" in model else None


def tokens_per_byte(account: Account) -> float:
    """Tokens a byte of what was sent, by the provider's counts; the usual estimate where it gave none."""
    total = account.used.total_input
    return total / account.sent if total and account.sent else 1 / BYTES_PER_TOKEN
