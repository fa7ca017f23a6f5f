"""A memo of the last cuts: a history that grew behind the same seam costs a comparison and its new part.

Law: for speed only. `Memo.cut` returns what `cut` returns, byte for byte; whatever the memo is not sure of is
cut anew. It holds bodies in memory and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeVar

from .blocks import Kind, Message
from .cut import NAME, Cut, check, cut_native, cut_read, nameless, names_checkpoint
from .errors import Unreadable
from .notice import Trace
from .plan import Options, Plan
from .wire import anthropic as wire

if TYPE_CHECKING:
    from .wire.neutral import Native

_GLANCE = 4096  # bytes by which a history is recognised before it is compared
_MOST = 64  # histories that are remembered at most
_Held = TypeVar("_Held")


@dataclass(frozen=True, slots=True)
class _Entry:
    """One cut: its options, its input up to the end of the checkpoint's results, and what became of that.

    Attributes:
        options: of the cut.
        done: the cut.
        known: the last body that it held for. Of another format's only the items are that body's.
        upto: how many of its messages, or items, stand in `before`.
        before: the input up to the end of the checkpoint's results.
        after: what became of that.
        named: how often the checkpoint tool's name stands behind `before`.
    """

    options: Options
    done: Cut
    known: wire.Request | Native
    upto: int
    before: bytes
    after: bytes
    named: int


class Memo:
    """Cuts bodies like `cut`, and remembers the last few.

    Args:
        size: how many histories to remember; each costs the memory of its last body and of its cut.
        room: bytes of histories up to which more of them are remembered, 64 at most.
    """

    def __init__(self, size: int = 4, room: int = 0) -> None:
        self._size = size
        self._room = room
        self._entries: list[_Entry] = []  # the last used first
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
        """Cut a body at its last checkpoint (see `cutline.cut`; there is no `at` here: such cuts don't grow).

        With a profile other formats' bodies are cut anew each time: what is folded there depends on what comes later.
        """
        options = check(join, notice, trace, keep_tools, None, profile, narration, late=late)
        if not names_checkpoint(body):
            return nameless(body)
        entries = [entry for entry in self._entries if entry.options == options]
        for entry in entries if profile is None else ():
            grown = _grown_native(body, entry)
            if grown is not None:
                return self._again(entry, grown, body)
        try:
            request, known, shared = self._request(body)
        except Unreadable as error:
            doubt: Unreadable | None = Unreadable(error.what, error.at)  # that one holds on to all that was read
        else:
            doubt = None
            for entry in entries:
                if _grew(request, entry, shared if entry.known is known else 0):
                    return self._again(entry, request, body)
            done = cut_read(body, request, options)
            made = _entry(request, options, done)
        if doubt is not None:
            done = cut_native(body, options, doubt, strict=profile == "strict")
            made = _entry_native(body, options, done) if profile is None else None
        if made is not None:
            self._entries = self._newest([made, *self._entries], lambda entry: len(entry.known.body))
        return done

    def holds(self, plan: object) -> bool:
        """Whether a history that was cut by a plan is remembered."""
        return any(entry.done.plan is plan for entry in self._entries)

    def expects(self, body: bytes) -> tuple[Plan, int] | None:
        """The plan by which a body will be cut without much work, and how many of its bytes are known.

        It begins as a remembered history does, and names the checkpoint tool no more often: no new seam. A guess by
        a few kilobytes of it, for the speed of an answer; None where nothing is foreseen.
        """
        begin = body[:_GLANCE]
        for entry in self._entries:
            before, plan = entry.before, entry.done.plan
            end = len(before)
            if (
                plan is not None
                and before.startswith(begin[:end])
                and body[max(0, end - _GLANCE) : end] == before[-_GLANCE:]
                and body.count(NAME, end) <= entry.named
            ):
                return plan, end
        return None

    def _again(self, entry: _Entry, known: wire.Request | Native, body: bytes) -> Cut:
        """The cut of a history that grew."""
        others = (other for other in self._entries if other is not entry)
        self._entries = [replace(entry, known=known), *others]
        return replace(entry.done, body=entry.after + body[len(entry.before) :])

    def _request(self, body: bytes) -> tuple[wire.Request, wire.Request | None, int]:
        """Read a body; of a history that is known, only what is new. Also that history, and how far it is the same."""
        known, shared = None, 0
        for one in self._read:
            count = _shared(body, one.body, len(one.messages), lambda n, one=one: one.messages[n][1:3])  # type: ignore[misc]
            if count > shared:
                known, shared = one, count
        request = wire.read(body, known, shared)
        # Where most of it was known it is the same history, grown or a little shorter; else it is another one.
        same = known if known is not None and 2 * shared >= len(known.messages) else None
        others = (one for one in self._read if one is not same)
        self._read = self._newest([request, *others], lambda one: len(one.body))
        return request, known, shared

    def _newest(self, held: list[_Held], weigh: Callable[[_Held], int]) -> list[_Held]:
        """The first of those that are remembered, as many as there is room for."""
        kept, weight = 0, 0
        for one in held[:_MOST]:
            weight += weigh(one)
            if kept >= self._size and weight > self._room:
                break
            kept += 1
        return held[:kept]


def _grew(request: wire.Request, entry: _Entry, shared: int) -> bool:
    """Whether a body is an entry's history with something behind it that leaves its cut as it is.

    `shared` is how many messages it was found to share with the last body of that history: they were looked at then.
    """
    known = entry.known
    if not isinstance(known, wire.Request):
        return False
    if shared < entry.upto and not request.body.startswith(entry.before):
        return False
    looked = max(shared, entry.upto)
    later = request.messages[looked:]
    # A call of the checkpoint's turn may be answered late.
    next_ = later[0] if later and looked == entry.upto else None
    if next_ and next_.role != "assistant" and any(b.type.endswith("tool_result") for b in next_.blocks):
        return False
    return _alike(request, known) and not _matters(later, request, entry.options)


def _grown_native(body: bytes, entry: _Entry) -> Native | None:
    """The same for a body of another format: what is known of it then, or None."""
    known = entry.known
    if isinstance(known, wire.Request) or not body.startswith(entry.before):
        return None
    from .wire import formats

    looked = max(entry.upto, _shared(body, known.body, len(known.items), known.items.__getitem__))
    tail = formats.behind(body, known, looked)
    if tail is None or tail.held or not _alike(tail.request, known.request):
        return None
    later = tail.request.messages
    # Directly behind the checkpoint's results something else than the agent's may belong to them, or be merged.
    if looked == entry.upto and later and later[0].role != "assistant":
        return None
    if _matters(later, tail.request, entry.options):
        return None
    return replace(known, body=body, view="", top=tail.top, items=[*known.items[:looked], *tail.items])


def _alike(request: wire.Request, known: wire.Request) -> bool:
    """Whether two bodies agree in what a cut depends on beside the history."""
    one, other = ((each.model, each.thinking, each.tools, each.held) for each in (request, known))
    return one == other


def _matters(later: Iterable[Message], request: wire.Request, options: Options) -> bool:
    """Whether anything in new messages may change the cut of what stands before them, or is cut itself.

    Another checkpoint moves the seam; a new result that points back may have to be filled.
    """
    late = options.late and wire.binds_thinking(request.model) is not False
    return any(
        wire.is_checkpoint(block)
        or block.name == wire.STUB
        or block.type == "compaction"
        or block.server
        or (late and block.kind is Kind.THINKING)
        for message in later
        for block in message.blocks
    )


def _shared(body: bytes, last: bytes, count: int, span: Callable[[int], tuple[int, int]]) -> int:
    """How many messages or items from the first on a body shares with a known one, byte for byte, with all before them.

    Of the last few of them it may be none, since a cache mark wanders.

    Args:
        body: the body.
        last: the known one.
        count: how many that one has.
        span: where each of those stands.
    """
    if not count:
        return 0
    start, end = span(0)
    glance = slice(max(start, end - _GLANCE), end)  # most others differ in the first one already
    held = memoryview(last)  # its parts are no copies
    if body[glance] != last[glance] or not body.startswith(held[:start]):
        return 0
    low, high = 0, count
    while low < high:
        middle = (low + high + 1) // 2
        end = span(middle - 1)[1]
        if body.startswith(held[start:end], start):
            low, start = middle, end
        else:
            high = middle - 1
    return low


def _entry(request: wire.Request, options: Options, done: Cut) -> _Entry | None:
    """What can be remembered of a cut."""
    last = _last_settled(done)
    return None if last is None else _made(options, done, request, last + 1, request.body, request.messages[last].end)


def _entry_native(body: bytes, options: Options, done: Cut) -> _Entry | None:
    """The same of a body of another format."""
    last, native = _last_settled(done), done.native
    if last is None or native is None:
        return None
    places = native.places
    upto = places[last][-1].item + 1
    if last + 1 < len(places) and places[last + 1][0].item < upto:
        return None  # one item is of two authors
    return _made(options, done, native, upto, body, native.items[upto - 1][1])


def _last_settled(done: Cut) -> int | None:
    """The last message of the checkpoint's results; None where something behind it was changed or counted."""
    plan = done.plan
    if plan is None or plan.seam.call is None or plan.seam.errored:
        return None
    messages = plan.request.messages
    last = plan.pairs[plan.seam.call.message, plan.seam.call.block][0]
    while last + 1 < len(messages) and messages[last + 1].role != "assistant":
        last += 1
    behind = any(key[0] > last for key in (*plan.drop, *plan.speak, *plan.add))
    return None if behind else last


def _made(options: Options, done: Cut, known: wire.Request | Native, upto: int, body: bytes, end: int) -> _Entry:
    after = done.body[: len(done.body) - (len(body) - end)]
    return _Entry(options, done, known, upto, body[:end], after, body.count(NAME, end))
