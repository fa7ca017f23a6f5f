"""The wire body of a session's live branch, built by copying raw literals out of the file.

Law: no content block is decoded and encoded again; each stands in the body as the bytes it is in the file,
and `places` says where that is. What the client would not send (docs/claude-code-sessions.md) is not in the
body; what it composes anew for every request (its reminders and attachments) is counted, not rebuilt.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from ... import spans
from ...errors import InputError
from ...money import Usage
from ..lines import unview
from ..model import Origin, Request
from . import branch as branches
from .branch import Branch
from .literals import Item, Opened, words
from .people import foreign, typed
from .records import Log, Record

SYNTHETIC = "<synthetic>"
"""The model's name in records that the client made itself."""


class RecordPlace(NamedTuple):
    """Where a block of the body stands in the file.

    Attributes:
        record: index into the log's records.
        block: index into that record's content; -1 where the content is one string.
    """

    record: int
    block: int


@dataclass(frozen=True, slots=True)
class History:
    """The live branch of a session.

    Attributes:
        log, branch: the file's index, and which of its records are live.
        body: an Anthropic Messages body, ``{"model":…,"messages":[…]}``.
        places: for message m and block b of the body: where that block stands in the file.
        origins: for each message, what it is.
        model: the last real model of the branch; "" if there is none.
        models: every real model of the branch, each once, in order.
        requests: the requests of the branch, in order.
        left_out: bytes of attachments on the branch that are not in the body.
        dropped: records of the branch that the client does not send (its own error messages) or that hold
            nothing to send.
    """

    log: Log
    branch: Branch
    body: bytes
    places: list[list[RecordPlace]]
    origins: list[Origin]
    model: str
    models: tuple[str, ...]
    requests: list[Request]
    left_out: int
    dropped: tuple[int, ...]

    @property
    def human(self) -> list[int]:
        """Indices of the messages that a person typed (slash commands too), in order."""
        return [number for number, origin in enumerate(self.origins) if origin == "human"]

    @property
    def compacted(self) -> bool:
        """Whether the live branch ends at the client's own compaction."""
        return self.branch.ended == "compaction"


def history(log: Log) -> History:
    """Rebuild what the client would send of a session's live branch.

    Raises:
        InputError: the file holds no conversation, or became shorter while it was read.
    """
    build = _Build(log, branches.live(log))
    with log.reader() as fetch:
        build.run(fetch)
    if not build.places:
        raise InputError(f"{log.path}: no live conversation in {len(log.records):,} records; give another session")
    return History(
        log,
        build.branch,
        build.out.getvalue(),
        build.places,
        build.origins,
        build.models[-1] if build.models else "",
        tuple(dict.fromkeys(build.models)),
        build.requests,
        build.left_out,
        tuple(build.dropped),
    )


_Placed = tuple[int, Item]
"""A record's index and one of its blocks."""


class _Build:
    """The body while it grows. It is written once, block by block: a session may weigh 100 MB."""

    def __init__(self, log: Log, branch: Branch) -> None:
        self.log, self.branch, self.records = log, branch, log.records
        models = (self.records[index].model for index in branch.messages)
        self.models = [unview(model) for model in models if model not in ("", SYNTHETIC)]
        self.places: list[list[RecordPlace]] = []
        self.origins: list[Origin] = []
        self.requests: list[Request] = []
        self.orphans = frozenset(branch.orphans)
        self.placed: set[int] = set()
        self.left_out = 0
        self.dropped: list[int] = []
        self.out = io.BytesIO()

    def run(self, fetch: Callable[[Record], bytes]) -> None:
        """Walk the branch and write its messages."""
        self.fetch = fetch
        model = b'"model":%s,' % spans.quote(self.models[-1]) if self.models else b""
        self.out.write(b'{%s"messages":[' % model)
        for index in self.branch.chain:
            record = self.records[index]
            if record.type == "assistant":
                if index in self.branch.messages:
                    self._agent(index)
            elif record.type == "user":
                if index not in self.placed:
                    self._user(index, self._message(index))
            elif record.type == "attachment":
                self._attachment(index)
            elif record.type == "system" and record.subtype == "local_command":
                opened = self._open(index)
                self._say(index, opened.items(opened.top("content")), "harness")
        self.out.write(b"]}")

    def _agent(self, index: int) -> None:
        """Write an API message and, behind it, the results of its calls."""
        group, answers = self.branch.messages[index], self.branch.results[index]
        items: list[_Placed] = []
        usage: Request | None = None
        wanted: set[str] = set()
        for member in group:
            record = self.records[member]
            if record.api_error:
                self.dropped.append(member)
                continue
            opened = self._open(member)
            message = opened.inside("message")
            items += [(member, item) for item in opened.items(message.get("content"))]
            wanted.update(record.calls)
            counted = opened.value(message.get("usage"))
            if isinstance(counted, dict) and record.model != SYNTHETIC:
                counts = Usage.from_anthropic(counted)
                usage = Request(len(self.places), record.message_id, record.model, record.timestamp, counts)
        if items:
            self._write("assistant", items, "harness" if self.records[index].model == SYNTHETIC else "agent")
            if usage:
                self.requests.append(usage)
        elif group[0] not in self.dropped:
            self.dropped.extend(group)
        self._results(answers, wanted)

    def _results(self, answers: tuple[int, ...], wanted: set[str]) -> None:
        """Write the results of a message's calls as one message, and what else stands in their records."""
        calls = frozenset(wanted)
        results: list[_Placed] = []
        rest: dict[int, list[Item]] = {}
        for answer in answers:
            for item in self._message(answer):
                if item.type == "tool_result" and item.answers in wanted:
                    wanted.discard(item.answers)  # a second result of a call answers nothing
                    results.append((answer, item))
                elif answer not in self.placed and (
                    item.type != "tool_result" or item.answers in calls or (answer, item.answers) in self.orphans
                ):
                    rest.setdefault(answer, []).append(item)
        if results:
            self._write("user", results, "results")
        self.placed.update(answers)
        for answer, items in rest.items():
            self._user(answer, items)

    def _user(self, index: int, items: list[Item]) -> None:
        """Write what a user record says, and results in it that answer nothing."""
        record = self.records[index]
        if not items:
            self.dropped.append(index)
        elif all(item.type == "tool_result" for item in items):
            self._say(index, items, "results")
        elif record.summary:
            self._say(index, items, "summary")
        else:
            opened = self._open(index)
            other = record.meta or record.sidechain or foreign(opened.value(opened.top("origin")))
            self._say(index, items, "human" if not other and any(map(_typed, items)) else "harness")

    def _attachment(self, index: int) -> None:
        """Words typed while the agent worked stand in an attachment alone; other attachments are harness."""
        opened = self._open(index)
        if self.records[index].subtype != "queued_command":
            self.left_out += len(opened.literal(opened.top("attachment")))
            return
        queued = opened.inside("attachment")
        items = opened.items(queued.get("prompt"))
        mode = opened.value(queued.get("commandMode"))
        other = foreign(opened.value(queued.get("origin"))) or mode not in (None, "prompt", "bash")
        self._say(index, items, "human" if not other and any(map(_typed, items)) else "harness")

    def _open(self, index: int) -> Opened:
        return Opened(self.fetch(self.records[index]))

    def _message(self, index: int) -> list[Item]:
        opened = self._open(index)
        return opened.items(opened.inside("message").get("content"))

    def _say(self, index: int, items: list[Item], origin: Origin) -> None:
        if items:
            self._write("user", [(index, item) for item in items], origin)

    def _write(self, role: str, items: list[_Placed], origin: Origin) -> None:
        """Write one message; a content that is one string stays one, among blocks it becomes a text block."""
        out = self.out
        if self.places:
            out.write(b",")
        out.write(b'{"role":"%s","content":' % role.encode())
        if len(items) == 1 and items[0][1].block < 0:
            out.write(items[0][1].literal)
        else:
            for number, (_, item) in enumerate(items):
                out.write(b"," if number else b"[")
                out.write(b'{"type":"text","text":%s}' % item.literal if item.block < 0 else item.literal)
            out.write(b"]")
        out.write(b"}")
        self.places.append([RecordPlace(index, item.block) for index, item in items])
        self.origins.append(origin)


def _typed(item: Item) -> bool:
    return typed(item.type, words(item))
