"""A memo of the last cuts: a history that grew behind the same seam costs a comparison and its new part.

Law: for speed only. `Memo.cut` returns what `cut` returns, byte for byte; whatever the memo is not sure of is
cut anew. It holds bodies in memory and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from .cut import Cut, check, cut_read, nameless, names_checkpoint, unread
from .errors import Unreadable
from .notice import Trace
from .plan import Options
from .wire import anthropic as wire


@dataclass(frozen=True, slots=True)
class _Entry:
    """One cut: its options, its input up to the end of the checkpoint's results, and what became of that."""

    options: Options
    done: Cut
    request: wire.Request
    messages: int
    before: bytes
    after: bytes


class Memo:
    """Cuts bodies like `cut`, and remembers the last few.

    Args:
        size: how many histories to remember; each costs the memory of its body and its cut.
    """

    def __init__(self, size: int = 4) -> None:
        self._size = size
        self._entries: list[_Entry] = []

    def cut(
        self,
        body: bytes,
        *,
        join: str | None = "\n\n",
        notice: bool = True,
        trace: Trace = "holes",
        keep_tools: Iterable[str] = (),
        profile: Literal["strict"] | None = None,
        narration: Literal["keep", "drop"] = "keep",
        late: bool = False,
    ) -> Cut:
        """Cut a body at its last checkpoint (see `cutline.cut`; there is no `at` here: such cuts don't grow)."""
        options = check(join, notice, trace, keep_tools, None, profile, narration, late=late)
        for entry in self._entries:
            if entry.options == options and body.startswith(entry.before):
                grown = self._grown(body, entry)
                if grown is not None:
                    self._keep(entry)
                    return grown
        if not names_checkpoint(body):
            return nameless(body)
        try:
            request = wire.read(body)
        except Unreadable as error:
            return unread(body, error)
        done = cut_read(body, request, options)
        entry_ = _entry(body, request, options, done)
        if entry_ is not None:
            self._keep(entry_)
        return done

    def _grown(self, body: bytes, entry: _Entry) -> Cut | None:
        rest = body[len(entry.before) :]
        if names_checkpoint(rest):
            return None
        try:
            request = wire.read(body, entry.request, entry.messages)
        except Unreadable:
            return None
        known = entry.request
        if (request.model, request.thinking, request.tools, request.held) != (
            known.model,
            known.thinking,
            known.tools,
            known.held,
        ):
            return None
        # A new result that points back may have to be filled, and a call of the turn may be answered late.
        later = request.messages[entry.messages :]
        if later and later[0].role != "assistant" and any(b.type.endswith("tool_result") for b in later[0].blocks):
            return None
        if any(
            block.name == wire.STUB or block.type == "compaction" or block.server for m in later for block in m.blocks
        ):
            return None
        return replace(entry.done, body=entry.after + rest)

    def _keep(self, entry: _Entry) -> None:
        self._entries = [entry, *(other for other in self._entries if other is not entry)][: self._size]


def _entry(body: bytes, request: wire.Request, options: Options, done: Cut) -> _Entry | None:
    """What can be remembered of a cut: nothing where something behind the checkpoint turn was changed."""
    plan = done.plan
    if plan is None or plan.seam.call is None:
        return None
    last = plan.pairs[plan.seam.call.message, plan.seam.call.block][0]
    while last + 1 < len(request.messages) and request.messages[last + 1].role != "assistant":
        last += 1
    if any(key[0] > last for key in (*plan.drop, *plan.speak, *plan.add)):
        return None
    end = request.messages[last].end
    rest = len(body) - end
    return _Entry(options, done, request, last + 1, body[:end], done.body[: len(done.body) - rest])
