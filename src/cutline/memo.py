"""A memo of the last cuts: a history that grew behind the same seam costs a comparison and its new part.

Law: for speed only. `Memo.cut` returns what `cut` returns, byte for byte; whatever the memo is not sure of is
cut anew. It holds bodies in memory and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from .cut import NAME, Cut, check, cut_read, nameless, names_checkpoint, unread
from .errors import Unreadable
from .notice import Trace
from .plan import Options, Plan
from .wire import anthropic as wire

_GLANCE = 4096  # bytes by which a history is recognised before it is compared


@dataclass(frozen=True, slots=True)
class _Entry:
    """One cut: its options, its input up to the end of the checkpoint's results, and what became of that.

    `request` is the last body that it held for, `named` how often the checkpoint tool's name stands behind that input.
    """

    options: Options
    done: Cut
    request: wire.Request
    messages: int
    before: bytes
    after: bytes
    named: int


class Memo:
    """Cuts bodies like `cut`, and remembers the last few.

    Args:
        size: how many histories to remember; each costs the memory of its last body and of its cut.
    """

    def __init__(self, size: int = 4) -> None:
        self._size = size
        self._entries: list[_Entry] = []
        self._read: list[wire.Request] = []

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
        if not names_checkpoint(body):
            return nameless(body)
        try:
            request, known, shared = self._request(body)
        except Unreadable as error:
            return unread(body, error)
        for entry in self._entries:
            if entry.options == options and _grew(request, entry, shared if entry.request is known else 0):
                self._entries = [
                    replace(entry, request=request),
                    *(other for other in self._entries if other is not entry),
                ]
                return replace(entry.done, body=entry.after + body[len(entry.before) :])
        done = cut_read(body, request, options)
        made = _entry(request, options, done)
        if made is not None:
            self._entries = [made, *self._entries][: self._size]
        return done

    def expects(self, body: bytes) -> tuple[Plan, int] | None:
        """The plan by which a body will be cut without much work, and how many of its bytes are known.

        It begins as a remembered history does, and names the checkpoint tool no more often: no new seam. A guess by
        a few kilobytes of it, for the speed of an answer; None where nothing is foreseen.
        """
        for entry in self._entries:
            end, plan = len(entry.before), entry.done.plan
            ends = slice(0, min(_GLANCE, end)), slice(max(0, end - _GLANCE), end)
            if (
                plan is not None
                and all(body[part] == entry.before[part] for part in ends)
                and body.count(NAME, end) <= entry.named
            ):
                return plan, end
        return None

    def _request(self, body: bytes) -> tuple[wire.Request, wire.Request | None, int]:
        """Read a body; of a history that is known, only what is new. Also that history, and how far it is the same."""
        known, shared = None, 0
        for one in self._read:
            count = _shared(body, one)
            if count > shared:
                known, shared = one, count
        request = wire.read(body, known, shared)
        # Where most of it was known it is the same history, grown or a little shorter; else it is another one.
        same = known if known is not None and 2 * shared >= len(known.messages) else None
        self._read = [request, *(one for one in self._read if one is not same)][: self._size]
        return request, known, shared


def _grew(request: wire.Request, entry: _Entry, shared: int) -> bool:
    """Whether a body is an entry's history with something behind it that leaves its cut as it is.

    `shared` is how many messages it was found to share with the last body of that history: they were looked at then.
    """
    known = entry.request
    if shared < entry.messages and not request.body.startswith(entry.before):
        return False
    if (request.model, request.thinking, request.tools, request.held) != (
        known.model,
        known.thinking,
        known.tools,
        known.held,
    ):
        return False
    looked = max(shared, entry.messages)
    later = request.messages[looked:]
    # A call of the checkpoint's turn may be answered late.
    next_ = later[0] if later and looked == entry.messages else None
    if next_ and next_.role != "assistant" and any(b.type.endswith("tool_result") for b in next_.blocks):
        return False
    # Another checkpoint moves the seam; a new result that points back may have to be filled.
    return not any(
        wire.is_checkpoint(block) or block.name == wire.STUB or block.type == "compaction" or block.server
        for message in later
        for block in message.blocks
    )


def _shared(body: bytes, known: wire.Request) -> int:
    """How many messages from the first on a body shares with a known one, byte for byte, with all before them.

    Of the last few of them it may be none, since a cache mark wanders.
    """
    messages, last = known.messages, known.body
    if not messages or not body.startswith(last[: messages[0].start]):
        return 0
    low, high, start = 0, len(messages), messages[0].start
    while low < high:
        middle = (low + high + 1) // 2
        end = messages[middle - 1].end
        if body.startswith(last[start:end], start):
            low, start = middle, end
        else:
            high = middle - 1
    return low


def _entry(request: wire.Request, options: Options, done: Cut) -> _Entry | None:
    """What can be remembered of a cut: nothing where something behind the checkpoint turn was changed or counted."""
    plan, body = done.plan, request.body
    if plan is None or plan.seam.call is None or plan.seam.errored:
        return None
    last = plan.pairs[plan.seam.call.message, plan.seam.call.block][0]
    while last + 1 < len(request.messages) and request.messages[last + 1].role != "assistant":
        last += 1
    if any(key[0] > last for key in (*plan.drop, *plan.speak, *plan.add)):
        return None
    end = request.messages[last].end
    rest = len(body) - end
    after = done.body[: len(done.body) - rest]
    return _Entry(options, done, request, last + 1, body[:end], after, body.count(NAME, end))
