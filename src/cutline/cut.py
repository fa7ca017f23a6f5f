"""The cut: one body in, a shorter body out, or the very same bytes and the reason.

Law: pure and deterministic; never raises for what a body holds. What can't be read, has no seam, or can't be
cut by the rules comes back untouched. Whether it is right is not this file's word but the proof's (`verify`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from .blocks import Kind, Place, address
from .errors import Unreadable
from .notice import Trace
from .plan import Options, Plan, make
from .seam import At, Refused, Seam, check_at
from .splice import splice
from .wire import anthropic as wire

if TYPE_CHECKING:
    from .wire.neutral import Native

NAME = b"micro_handoff"
_WINDOW = 29_900  # under 30,000 bytes CPython searches with its faster algorithm


@dataclass(frozen=True, slots=True)
class Removed:
    """One block that left.

    Attributes:
        kind: what it was.
        why: "call", "result", "thinking", "unanswered call", "orphan result", "blank text", or "narration"
            for a thinking block whose words stay as text.
        tool: tool name of a call, or of the call that a result answers; "" elsewhere.
        address: of that call; "" elsewhere and for orphans.
        size: bytes of its JSON literal.
        place: where it stood in the input.
    """

    kind: Kind
    why: str
    tool: str
    address: str
    size: int
    place: Place


@dataclass(frozen=True, slots=True)
class Notice:
    """Text added to a result.

    Attributes:
        start, end: its span in the output; without these bytes the result is the input's.
        place: the result's place in the input.
        kind: "notice", or "fill" where a result that points back got the content it points to.
    """

    start: int
    end: int
    place: Place
    kind: Literal["notice", "fill"]


@dataclass(frozen=True)
class Cut:
    """What `cut` returns.

    Attributes:
        body: the bytes to send: shorter, or the very same as they came.
        changed: whether they differ.
        reason: why nothing changed; "" where something did.
        seam: where the cut was made, or None.
        notices: what was added to results, by spans in `body`.
        joined: how many texts were joined onto another one.
        moved: indices of system messages that had to move.
        plan: the decisions, for those who look closer; None where nothing changed.
        native: the body as it was read, where it is not Anthropic's: then the plan is one of its neutral shape.
    """

    body: bytes
    changed: bool
    reason: str
    seam: Seam | None = None
    notices: tuple[Notice, ...] = ()
    joined: int = 0
    moved: tuple[int, ...] = ()
    plan: Plan | None = None
    native: Native | None = None

    @cached_property
    def removed(self) -> tuple[Removed, ...]:
        """Every block that left, in the input's order."""
        found = removed(self.plan) if self.plan else []
        if self.native is None:
            return tuple(found)
        at, size, shown = self.native.at, self.native.size, self.native.shown()
        return tuple(replace(one, size=size(one.place), place=shown[at(one.place)]) for one in found)

    @property
    def kept_unknown(self) -> tuple[tuple[str, Place], ...]:
        """Type and place of each block before the seam that stays because its type is not known."""
        if self.plan is None:
            return ()
        messages = self.plan.request.messages
        found = [(messages[n].blocks[i].type, Place(n, i)) for n, i in self.plan.unknown]
        if self.native is None:
            return tuple(found)
        from .wire.neutral import UNKNOWN

        return tuple((type_.removeprefix(UNKNOWN), self.native.shown_at(place)) for type_, place in found)


def cut(
    body: bytes,
    *,
    join: str | None = "\n\n",
    notice: bool = True,
    trace: Trace = "holes",
    keep_tools: Iterable[str] = (),
    at: At | None = None,
    profile: Literal["strict"] | None = None,
    narration: Literal["keep", "drop"] = "keep",
    late: bool = False,
) -> Cut:
    """Cut a request body at its last checkpoint.

    Args:
        body: an Anthropic Messages request body, as bytes.
        join: what stands between agent texts that become neighbours; "" for nothing, None to leave them
            separate blocks.
        notice: add the notice to each checkpoint's result, and fill results that point back to a removed one.
        trace: which removed calls the notice lists: those the agent did not narrate, none, or all.
        keep_tools: names of tools whose calls and results stay.
        at: cut without a checkpoint: before a message (its index from 0), "human:N" (before the Nth human
            turn), "last" (before the last one) or "end". Such a cut carries no notice.
        profile: "strict" for servers that refuse neighbours of one role; Anthropic Messages needs none.
        narration: "drop" removes narration blocks like any other thinking.
        late: the history behind the seam was made over the uncut one (the cut was switched on late): thinking
            there goes too where the model may bind it to what stood before it (docs/wire.md, 1.3).

    Returns:
        The `Cut`. Where nothing can be cut, `body` is the very same object and `reason` says why.

    Raises:
        ValueError: an option that means nothing.
    """
    options = check(join, notice, trace, keep_tools, at, profile, narration, late=late)
    if at is None and not names_checkpoint(body):
        return nameless(body)
    return _cut(body, options, strict=profile == "strict")


def cut_session(
    body: bytes,
    *,
    notice: bool = True,
    trace: Trace = "holes",
    keep_tools: Iterable[str] = (),
    at: At | None = None,
) -> Cut:
    """Cut the history of a session file, whose copy a client will resume.

    As `cut`, but nothing is joined, thinking behind the seam goes where the model may bind it to the uncut
    history, the history may end with the agent's words, and a cut without a checkpoint has its notice in
    `Cut.plan.last_notice`, for a record of its own.
    """
    options = check(None, notice, trace, keep_tools, at, None, "keep", session=True)
    return _cut(body, options)


def _cut(body: bytes, options: Options, *, strict: bool = False) -> Cut:
    try:
        request = wire.read(body)
    except Unreadable as error:
        doubt = Unreadable(error.what, error.at)  # that one holds on to all that was read
    else:
        return cut_read(body, request, options)
    return cut_native(body, options, doubt, strict=strict)


def cut_native(body: bytes, options: Options, doubt: Unreadable, *, strict: bool) -> Cut:
    """The cut of a body that is not Anthropic's; `doubt` is why it is not."""
    from . import native  # most programs never meet another format: nothing of it is loaded before
    from .wire import formats

    try:
        found = formats.read(body)
        if found is None:
            return unread(body, doubt)
        done = native.cut(found, options, strict=strict)
        _refuse(done.plan, done.ends, options)
    except Unreadable as error:
        return unread(body, error)
    except Refused as error:
        return Cut(body, False, str(error))
    except RecursionError:
        return Cut(body, False, "the body was left as it is: nested too deeply to be read safely")
    return Cut(
        done.body,
        done.body != body,
        "",
        done.plan.seam,
        tuple(
            Notice(start, end, found.shown_at(Place(*key)), "fill" if fills else "notice")
            for start, end, key, fills in done.added
        ),
        done.joined,
        (),
        done.plan,
        found,
    )


def nameless(body: bytes) -> Cut:
    """A body in which the checkpoint tool's name does not stand."""
    return Cut(body, False, "no checkpoint: nothing was cut")


def unread(body: bytes, error: Unreadable) -> Cut:
    """A body that could not be read."""
    return Cut(body, False, f"the body was left as it is: {error}")


def cut_read(body: bytes, request: wire.Request, options: Options) -> Cut:
    """Cut a body that was read already."""
    try:
        plan = make(request, options)
        done = splice(plan, options.join)
        _refuse(plan, done.ends, options)
    except Refused as error:
        return Cut(body, False, str(error))
    except RecursionError:
        # Deep enough to be read once, too deep for what is read again inside of it.
        return Cut(body, False, "the body was left as it is: nested too deeply to be read safely")
    return Cut(
        done.body,
        done.body != body,
        "",
        plan.seam,
        tuple(
            Notice(start, end, Place(*key), "fill" if filled else "notice") for start, end, key, filled in done.added
        ),
        done.joined,
        tuple(done.moved),
        plan,
    )


def _refuse(plan: Plan, ends: str, options: Options) -> None:
    """Raise `Refused` where nothing was cut, or where what is left is none that a provider takes."""
    turn = plan.seam.call.message if plan.seam.call else plan.seam.message - 1
    if not any(key[0] <= turn for key in (*plan.drop, *plan.speak)):
        raise Refused("nothing before the seam is left to cut")
    if plan.request.messages[0].role == "user" and _first_role(plan) != "user":
        raise Refused("the cut would leave a history that begins with the agent; providers refuse that")
    if not options.session and ends == "assistant" and _last_role(plan.request) != "assistant":
        raise Refused("the cut would leave a history that ends with the agent; providers refuse that")


def check(
    join: str | None,
    notice: bool,
    trace: Trace,
    keep_tools: Iterable[str],
    at: At | None,
    profile: str | None,
    narration: Literal["keep", "drop"],
    session: bool = False,
    late: bool = False,
) -> Options:
    """The options of a cut, checked. Raises ValueError for one that means nothing."""
    if trace not in ("holes", "none", "all"):
        raise ValueError(f'trace={trace!r} is none of "holes", "none", "all"')
    if profile not in (None, "strict"):
        raise ValueError(f'profile={profile!r} is neither None nor "strict"')
    if narration not in ("keep", "drop"):
        raise ValueError(f'narration={narration!r} is neither "keep" nor "drop"')
    check_at(at)
    if isinstance(keep_tools, str):
        raise ValueError("keep_tools is a list of tool names, not a string")
    return Options(join, notice, trace, frozenset(keep_tools), at, narration, session, late)


def names_checkpoint(body: bytes) -> bool:
    """Whether the checkpoint tool's name stands anywhere in the bytes: the quick way out for most bodies."""
    find, window, found = body.find, _WINDOW + len(NAME), -1
    for at in range(0, len(body), _WINDOW):
        found = find(NAME, at, at + window)
        if found >= 0:
            break
    return found >= 0


def _last_role(request: wire.Request) -> str:
    return next((message.role for message in reversed(request.messages) if message.role != "system"), "")


def _first_role(plan: Plan) -> str:
    for number, message in enumerate(plan.request.messages):
        if any((number, index) not in plan.drop for index in range(len(message.blocks))) or not message.blocks:
            return message.role
    return ""


def removed(plan: Plan) -> list[Removed]:
    """Every block that a plan removes, in the input's order."""
    request = plan.request
    maker = {answer: made for made, answer in plan.pairs.items()}
    known: dict[tuple[int, int], str] = {}
    found = []
    reasons = plan.drop | dict.fromkeys(plan.speak, "narration")
    for key in sorted(reasons):
        block = request.messages[key[0]].blocks[key[1]]
        made = key if block.kind is Kind.CALL else maker.get(key)
        tool = where = ""
        if made is not None:
            call = request.messages[made[0]].blocks[made[1]]
            tool = call.name
            if made not in known:
                known[made] = address(call.id, call.name, wire.member(request, call, "input") or b"{}")
            where = known[made]
        found.append(Removed(block.kind, reasons[key], tool, where, block.end - block.start, Place(*key)))
    return found
