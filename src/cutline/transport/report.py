"""The wire report of a program: what went out, what would have gone uncut, and why anything was left as it was.

Law: sums of what really passed; tokens are the provider's own counts, what would have been sent uncut is estimated
from them and called so.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import Unreadable
from ..measure import WireReport, measure, request_of
from ..money import Usage
from ..wire.answers import Answer
from ..wire.anthropic import Request
from ..wire.neutral import Native
from .deciding import Decision

_STEPS = 1_000  # checkpoints that are listed
_AT = re.compile(r" at byte [\d,]+")  # where a doubt was: another byte is the same reason


@dataclass(frozen=True, slots=True)
class Step:
    """A checkpoint on the wire: the first request that was cut at it, beside the same request uncut.

    Attributes:
        seam: the checkpoint's address.
        whole, sent: bytes of the two bodies.
        whole_messages, sent_messages: bytes of their histories.
    """

    seam: str
    whole: int
    sent: int
    whole_messages: int
    sent_messages: int


@dataclass(frozen=True, slots=True)
class Report:
    """What passed through a transport.

    Attributes:
        requests: requests that carried a history and were answered or refused.
        cut: how many of them went out cut.
        refused: how many the provider answered with an error.
        counts: requests that only had their tokens counted.
        others: requests without a history, which pass untouched.
        sent, whole: bytes of the bodies that went out, and of those that would have gone uncut.
        used: the provider's token counts, summed.
        uncut_tokens: input tokens that would have been sent uncut: an estimate from each request's own count.
        model: the model that answered last.
        checkpoints: each checkpoint that was cut at.
        untouched: why requests with a history were not cut, and how many each.
        faults: what failed of Cutline's own, and what the provider refused of a cut; a line each.
        record: the record's file; "" where recording is off.
        last: what the last answered request was made of, before and after its cut; None before the first.
    """

    requests: int
    cut: int
    refused: int
    counts: int
    others: int
    sent: int
    whole: int
    used: Usage
    uncut_tokens: int
    model: str
    checkpoints: tuple[Step, ...]
    untouched: Mapping[str, int]
    faults: tuple[str, ...]
    record: str
    last: WireReport | None

    def as_json(self) -> dict[str, Any]:
        """The report for programs: sizes in bytes, counts in tokens."""
        return {
            "requests": self.requests,
            "cut": self.cut,
            "refused": self.refused,
            "token_counts": self.counts,
            "other_requests": self.others,
            "model": self.model,
            "sent_bytes": self.sent,
            "uncut_bytes": self.whole,
            "input_tokens": self.used.total_input,
            "uncut_tokens_estimated": self.uncut_tokens,
            "cache_read_tokens": self.used.cache_read,
            "cache_write_tokens": self.used.cache_write_5m + self.used.cache_write_1h,
            "output_tokens": self.used.output,
            "checkpoints": [
                {
                    "seam": step.seam,
                    "uncut_bytes": step.whole,
                    "cut_bytes": step.sent,
                    "uncut_message_bytes": step.whole_messages,
                    "cut_message_bytes": step.sent_messages,
                }
                for step in self.checkpoints
            ],
            "untouched": dict(self.untouched),
            "faults": list(self.faults),
            "record": self.record,
            "last": None if self.last is None else self.last.as_json(),
        }

    def __str__(self) -> str:
        """The report for people."""
        head = f"Cutline · {self.model or 'model not named'} · {_count(self.requests, 'request')}, {self.cut:,} cut"
        rows = [("", "sent", "uncut", "share"), ("bytes", *_pair(self.sent, self.whole, ""))]
        if self.used.total_input:
            about = "" if self.uncut_tokens == self.used.total_input else "~"
            rows.append(("input tokens", *_pair(self.used.total_input, self.uncut_tokens, about)))
        steps = [("checkpoint", "sent", "uncut", "of it history")] if self.checkpoints else []
        for step in self.checkpoints:
            history = f"{step.whole_messages:,} → {step.sent_messages:,}"
            steps.append((step.seam, f"{step.sent:,}", f"{step.whole:,}", history))
        facts = [f"not cut: {why} ({_count(number, 'request')})" for why, number in self.untouched.items()]
        facts += [f"fault: {fault}" for fault in self.faults]
        facts += [f"record: {self.record}"] if self.record else ["record: off"]
        return "\n".join([head, "", *_aligned(rows), *(["", *_aligned(steps)] if steps else []), "", *facts])


def _pair(sent: int, whole: int, about: str) -> tuple[str, str, str]:
    share = f"{about}{100 * sent / whole:.0f} %" if whole else "–"
    return f"{sent:,}", f"{about}{whole:,}", share


def _aligned(rows: list[tuple[str, str, str, str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    ]


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


@dataclass(slots=True)
class Sums:
    """The sums behind a report, while they grow."""

    requests: int = 0
    cut: int = 0
    refused: int = 0
    counts: int = 0
    others: int = 0
    sent: int = 0
    whole: int = 0
    used: Usage = field(default_factory=Usage)
    uncut: float = 0.0
    model: str = ""
    steps: dict[str, Step] = field(default_factory=dict)
    untouched: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    last: Decision | None = None

    def add(
        self,
        kind: str,
        sent: Decision,
        status: int,
        format: str,
        answer: Answer,
        read: tuple[Request, Native | None] | None,
    ) -> None:
        """Count a request with its answer.

        Args:
            kind: "turn", "compaction" or "count".
            sent: what went out.
            status: the answer's; 0 where there was none.
            format, answer: what was answered, in which format.
            read: the uncut body, read; None where it is in none of the formats.
        """
        if kind == "count":
            self.counts += 1
            return
        self.requests += 1
        self.cut += sent.changed
        self.sent += len(sent.body)
        self.whole += len(sent.whole)
        if not sent.changed:
            self.untouched[_AT.sub("", sent.reason)] += 1
        if not 0 < status < 400:
            self.refused += 1
            return
        used = Usage.of(format, answer.usage)
        self.used = _sum(self.used, used)
        self.uncut += used.total_input * (len(sent.whole) / len(sent.body) if sent.changed else 1.0)
        self.model = answer.model or self.model
        self.last = sent if read is not None else self.last
        if read is not None and sent.changed and sent.seam not in self.steps and len(self.steps) < _STEPS:
            try:
                after = _history(*request_of(sent.body))
            except Unreadable:
                after = 0  # it went out with a content encoding
            self.steps[sent.seam] = Step(sent.seam, len(sent.whole), len(sent.body), _history(*read), after)

    def report(self, record: str) -> Report:
        """The sums so far."""
        return Report(
            self.requests,
            self.cut,
            self.refused,
            self.counts,
            self.others,
            self.sent,
            self.whole,
            self.used,
            round(self.uncut),
            self.model,
            tuple(self.steps.values()),
            dict(self.untouched),
            tuple(self.faults),
            record,
            _measured(self.last),
        )


def _sum(one: Usage, two: Usage) -> Usage:
    return Usage(*(getattr(one, name) + getattr(two, name) for name in Usage.__slots__))


def _measured(sent: Decision | None) -> WireReport | None:
    if sent is None:
        return None
    try:
        return measure(sent.whole, sent.body if sent.changed else None)
    except Unreadable:
        return None


def _history(request: Request, native: Native | None) -> int:
    """Bytes of a body's history."""
    if native is not None:
        return native.items[-1][1] - native.items[0][0] if native.items else 0
    messages = request.messages
    return messages[-1].end - messages[0].start if messages else 0
