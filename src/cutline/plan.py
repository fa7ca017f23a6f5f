"""What a cut takes out and what it adds: a decision for every block.

Law: decisions only, no bytes are made here. A plan is a function of one body and its options; whatever can't
be met raises `Refused` with the reason, and the body stays as it is. One plan serves the splice of a request
body and the rewritten copy of a session file. Why each thing stays or goes: docs/cut.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from . import narration, notice
from .blocks import Block, Kind, Place
from .notice import Trace
from .repeats import Asked, Paths, asked
from .seam import (
    At,
    Key,
    Refused,
    Seam,
    Turn,
    floor_of,
    opening,
    refuse_programs,
    resolve,
    snap,
    split_pair,
    turns_of,
)
from .wire import anthropic as wire
from .wire.anthropic import Request

TEXT, CALL, RESULT, THINKING = Kind.TEXT, Kind.CALL, Kind.RESULT, Kind.THINKING
_KEPT = wire.SPEECH | wire.INSTRUCTIONS
_OWN = ("micro_handoff", "recall", "say")


@dataclass(frozen=True, slots=True)
class Options:
    """What a caller may choose (the parameters of `cutline.cut`).

    `session` marks the copy of a session file: nothing is joined, thinking behind the seam counts as made
    over the uncut history, the history may end with the agent's words, and the notice of a cut without a
    checkpoint is composed too. `late` says of any body that its thinking behind the seam was made so.
    """

    join: str | None = "\n\n"
    notice: bool = True
    trace: Trace = "holes"
    keep_tools: frozenset[str] = frozenset()
    at: At | None = None
    narration: Literal["keep", "drop"] = "keep"
    session: bool = False
    late: bool = False

    @property
    def marks_loss(self) -> bool:
        """Whether anything is added to results: a body cut at a chosen place carries no notice."""
        return self.notice and (self.at is None or self.session)


@dataclass(frozen=True, slots=True)
class Addition:
    """Text added to a result: a notice, or the content that a stub points back to.

    Attributes:
        text: what is added, decoded.
        source: for a filled stub, the block whose content follows the text; None for a notice.
    """

    text: str
    source: Block | None = None


@dataclass(slots=True)
class Plan:
    """The decisions for one body.

    Attributes:
        request: the body that was read.
        seam: where the cut is made.
        drop: blocks that go, with the reason: "call", "result", "thinking", "unanswered call",
            "orphan result", "blank text" (the splice adds the last).
        speak: thinking blocks whose words stay as a text block.
        add: what a result gets appended.
        unknown: blocks of unknown type that stay before the seam.
        own: messages whose texts are joined with nothing: those of earlier checkpoint turns, and all up to
            a compaction.
        opening: messages that stay whole, because the tool loop of a turn without thinking begins with theirs.
        lead: M keeps its thinking, so kept texts directly before it join it behind that thinking.
        last_notice: notice of what left between the last checkpoint and `at` (session copies).
        items: of a body in another format that merges nothing, the item that each block stands in: words are joined
            onto another item's only where nothing else of their own stays.
        called: up to which message it is known whether a call stays that was made since the human last spoke, and that.
        floor: the last compaction block, behind which the history begins.
        pairs: results of calls, both as keys; `answers` are the results alone.
    """

    request: Request
    seam: Seam
    drop: dict[Key, str] = field(default_factory=dict)
    speak: set[Key] = field(default_factory=set)
    add: dict[Key, list[Addition]] = field(default_factory=dict)
    unknown: list[Key] = field(default_factory=list)
    own: set[int] = field(default_factory=set)
    opening: frozenset[int] = frozenset()
    lead: bool = False
    last_notice: str | None = None
    items: list[list[int]] | None = None
    called: tuple[int, bool] = (0, False)
    floor: Key = (0, -1)
    pairs: dict[Key, Key] = field(default_factory=dict)
    answers: frozenset[Key] = frozenset()


def make(request: Request, options: Options) -> Plan:
    """Decide what goes.

    Raises:
        Refused: no seam, nothing to remove, or a rule that can't be met; the text says which.
    """
    if request.held:
        raise Refused(request.held)
    messages = request.messages
    floor = floor_of(request)
    pairs, _ = wire.pairs(messages)
    turns, errored = turns_of(request, pairs, floor)
    if options.at is not None:
        start = snap(request, resolve(request, options.at), pairs, options.session)
        turns = [turn for turn in turns if turn.result[0] < start]
        seam = Seam(start, None, "", 0)
    elif turns:
        last = turns[-1]
        call = last.calls[-1]
        start = last.start
        seam = Seam(start, Place(*call), messages[call[0]].blocks[call[1]].id, sum(e > last.calls[-1] for e in errored))
        turns = turns[:-1]
    else:
        what = "every checkpoint call failed or was never answered" if errored else "no checkpoint"
        raise Refused(f"{what}: nothing was cut")
    if floor != (0, -1) and start <= floor[0]:
        raise Refused("what stands before a compaction is left alone")
    if floor != (0, -1) and any(made <= floor < answer for made, answer in pairs.items()):
        raise Refused("a call before the compaction is answered behind it")
    plan = Plan(request, seam, floor=floor, pairs=pairs, answers=frozenset(pairs.values()))
    made, answer = split_pair(request, pairs, start)
    if made:
        raise Refused(f"{Place(*made)} is a call whose result stands behind the seam at {Place(*answer)}")
    plan.own = {number for turn in turns for number in range(turn.start, turn.result[0] + 1)}
    if floor != (0, -1):
        plan.own |= set(range(floor[0] + 1))

    if request.thinking == "enabled" and wire.keeps_turn_thinking(request):
        starts = [turn.start for turn in turns]
        if seam.call is not None or wire.binds_thinking(request.model) is False:
            starts.append(seam.message)
        plan.opening = frozenset(n for start in starts for n in opening(request, start, plan.answers))
        plan.own |= plan.opening
    begin = floor[0]
    for turn in turns:
        _stretch(plan, options, begin, turn, kept_from=turns)
        begin = turn.start
    final = None
    if seam.call is not None:
        call = (seam.call.message, seam.call.block)
        final = Turn(seam.message, (call,), pairs[call])
    for turn in (*turns, *([final] if final else [])):
        refuse_programs(request, turn)
    _stretch(plan, options, begin, final, kept_from=turns)
    gone = {_block(request, key).id for key, why in plan.drop.items() if why.endswith("call")} if plan.unknown else ()
    for number, index in plan.unknown:
        if request.messages[number].blocks[index].id in gone:
            raise Refused(f"{Place(number, index)} is of unknown type and answers a call that would leave")
    _behind_the_seam(plan, options)
    if options.marks_loss:
        _fill_stubs(plan)
    return plan


# ------------------------------------------------------------------------------------------ the stretch


def _stays(plan: Plan, options: Options, key: Key, block: Block, todo: Key | None) -> bool:
    """Whether a call before the seam stays with its result (docs/cut.md: what stays)."""
    answer = plan.pairs.get(key)
    if answer is None:
        return False
    name = block.name
    if key[0] in plan.opening:
        return True
    if block.server:
        return name.startswith("tool_search_tool") or name in options.keep_tools
    if name in _KEPT or name in options.keep_tools or key == todo:
        return True
    mark = plan.request.messages[answer[0]].blocks[answer[1]].name
    return mark == wire.REFUSED or mark == wire.LOADS or wire.is_say(name)


def _signs(plan: Plan, options: Options, key: Key, block: Block, checkpoints: set[Key], todo: Key | None) -> bool:
    """Whether a call holds the signature of its step, and another call of that step stays (docs/wire.md, 4)."""
    body, (number, index) = plan.request.body, key
    if key not in plan.pairs or not body.endswith(wire.SIGNED, block.start, block.end):
        return False
    made = [(at, b) for at, b in enumerate(plan.request.messages[number].blocks) if b.kind is CALL and not b.server]
    if made[0][0] != index:
        return False
    for at, other in made[1:]:
        if (number, at) in checkpoints or _stays(plan, options, (number, at), other, todo):
            return not body.endswith(wire.SIGNED, other.start, other.end)
    return False


def _stretch(plan: Plan, options: Options, begin: int, turn: Turn | None, kept_from: list[Turn]) -> None:
    """Decide for the messages from `begin` up to a turn (or up to the seam), and compose the turn's notice."""
    request, messages, pairs = plan.request, plan.request.messages, plan.pairs
    end = turn.start if turn else plan.seam.message
    checkpoints = {key for earlier in kept_from for key in earlier.calls if begin <= key[0] < end}
    todo = _last_todo(plan, begin, end)
    drop, body, answers, floor = plan.drop, request.body, plan.answers, plan.floor
    kept_results: set[Key] = {pairs[key] for key in checkpoints}
    calls: list[tuple[Key, int]] = []
    reports: list[tuple[Key, int]] = []
    said: list[list[Key]] = [[]]
    files: dict[str, None] = {}
    n_calls = n_results = n_thinking = weight = 0
    for number in range(begin, end):
        message = messages[number]
        called = False
        for index, block in enumerate(message.blocks):
            kind = block.kind
            key = (number, index)
            if number <= floor[0] and key <= floor:
                continue
            if kind is TEXT:
                if message.role == "assistant":
                    said[-1].append(key)
            elif kind is CALL:
                if key in checkpoints:
                    called = True
                elif _stays(plan, options, key, block, todo) or _signs(plan, options, key, block, checkpoints, todo):
                    kept_results.add(pairs[key])
                    if wire.is_say(block.name):
                        said[-1].append(key)
                    else:
                        called = True
                else:
                    called = True
                    drop[key] = "call" if key in pairs else "unanswered call"
                    n_calls += 1
                    weight += wire.weight(request, block)
                    name = block.name
                    if name in wire.SUBAGENTS:
                        reports.append((key, len(said) - 1))
                    elif not (name.endswith(_OWN) and narration.is_own(name)):
                        calls.append((key, len(said) - 1))
                        if "ead" in name or "iew" in name:
                            for file in notice.instruction_files(body[block.start : block.end]):
                                files[file] = None
            elif kind is RESULT:
                if key not in kept_results:
                    n_results += 1
                    weight += wire.weight(request, block)
                    drop[key] = "result" if key in answers else "orphan result"
            elif kind is THINKING and number not in plan.opening:
                if _speaks(plan, options, block):
                    plan.speak.add(key)
                    said[-1].append(key)
                elif block.name != wire.WITH_CALL or not _stays_with_call(plan, options, number, checkpoints, todo):
                    drop[key] = "thinking"
                    n_thinking += 1
                    weight += wire.weight(request, block)
            elif kind is Kind.UNKNOWN:
                plan.unknown.append(key)
        if called:
            said.append([])
    if options.marks_loss and (n_calls or n_results or n_thinking):
        tail = range(turn.start, turn.result[0]) if turn else range(0)
        said[-1] += _said_in(plan, options, tail)
        loss = notice.Loss(n_calls, n_results, n_thinking, weight, tuple(files), not checkpoints)
        name = messages[turn.calls[-1][0]].blocks[turn.calls[-1][1]].name if turn else ""
        recall = name.removesuffix("micro_handoff") + "recall" if name else ""
        recall = recall if recall in request.tools else ""
        _mark_loss(plan, turn, notice.compose(loss, calls, reports, _units(plan, said), recall, options.trace))


def _stays_with_call(plan: Plan, options: Options, number: int, checkpoints: set[Key], todo: Key | None) -> bool:
    """Whether a message's thoughts stay because a call does that it made, or one before it since the human last spoke.

    Some servers want such thoughts back (docs/wire.md, 2.3), but never a message of nothing else.
    """
    messages = plan.request.messages
    start, called = plan.called
    for earlier in range(start, number):  # what these lose is decided: each is looked at once
        blocks = messages[earlier].blocks
        if messages[earlier].role == "user":
            called = called and all(block.kind is RESULT or block.kind is Kind.CONTROL for block in blocks)
        elif not called:
            called = any(b.kind is CALL and (earlier, index) not in plan.drop for index, b in enumerate(blocks))
    plan.called = number, called
    mine = messages[number].blocks
    for index, block in enumerate(mine):
        key = (number, index)
        if block.kind is CALL and (key in checkpoints or _stays(plan, options, key, block, todo)):
            return True
    return called and any(block.kind is TEXT and wire.words(plan.request, block).strip() for block in mine)


def _mark_loss(plan: Plan, turn: Turn | None, text: str) -> None:
    if turn:
        plan.add.setdefault(turn.result, []).append(Addition(text))
    else:
        plan.last_notice = text


def _last_todo(plan: Plan, begin: int, end: int) -> Key | None:
    for number in range(end - 1, begin - 1, -1):
        blocks = plan.request.messages[number].blocks
        for index in range(len(blocks) - 1, -1, -1):
            if blocks[index].name in wire.TODO_LISTS and (number, index) in plan.pairs:
                return number, index
    return None


def _speaks(plan: Plan, options: Options, block: Block) -> bool:
    """A narration block with words: the words stay as text (docs/wire.md, 1.3)."""
    if options.narration != "keep" or not wire.is_narration(plan.request, block):
        return False
    return bool(words_of(plan.request, block).strip())


def words_of(request: Request, block: Block) -> str:
    """The words of a text block, of a narration block, or of a `say` call."""
    if block.kind is Kind.CALL:
        return narration.spoken(block.name, wire.member(request, block, "input") or b"{}") or ""
    return wire.words(request, block)


def _said_in(plan: Plan, options: Options, numbers: range) -> list[Key]:
    """What the agent says in the checkpoint turn's own messages."""
    found = []
    for number in numbers:
        message = plan.request.messages[number]
        if message.role == "assistant":
            for index, block in enumerate(message.blocks):
                if (
                    block.kind is Kind.TEXT
                    or (block.kind is Kind.CALL and wire.is_say(block.name))
                    or (block.kind is Kind.THINKING and _speaks(plan, options, block))
                ):
                    found.append((number, index))
    return found


def _units(plan: Plan, said: list[list[Key]]) -> Callable[[tuple[Key, int]], notice.Unit]:
    """Reads a removed call with the words around it, when the notice asks for it."""
    request, known = plan.request, {}

    def words(segment: int) -> str:
        if segment not in known:
            blocks = (request.messages[n].blocks[i] for n, i in said[segment])
            known[segment] = "\n\n".join(words_of(request, block) for block in blocks)
        return known[segment]

    def unit(handle: tuple[Key, int]) -> notice.Unit:
        (number, index), segment = handle
        answer = plan.pairs.get((number, index))
        call = wire.call(
            request,
            request.messages[number].blocks[index],
            number,
            request.messages[answer[0]].blocks[answer[1]] if answer else None,
        )
        return notice.Unit(call, words(segment), words(segment + 1) if segment + 1 < len(said) else "")

    return unit


# ------------------------------------------------------------------------------------ behind the seam


def _behind_the_seam(plan: Plan, options: Options) -> None:
    """Thinking behind the seam (contract, rule 7)."""
    request, seam = plan.request, plan.seam
    late = options.late or options.at is not None or options.session
    goes_late = late and wire.binds_thinking(request.model) is not False
    turn_end = seam.call.message if seam.call else -1
    turn_goes = seam.call is not None and not wire.keeps_turn_thinking(request)
    plan.lead = seam.call is not None and not turn_goes
    until = len(request.messages) if goes_late else turn_end + 1
    for number in range(seam.message, until):
        message = request.messages[number]
        if message.role != "assistant" or not (turn_goes if number <= turn_end else goes_late):
            continue
        for index, block in enumerate(message.blocks):
            if block.kind is Kind.THINKING:
                if _speaks(plan, options, block):
                    plan.speak.add((number, index))
                elif block.name != wire.WITH_CALL:
                    plan.drop[number, index] = "thinking"


def _fill_stubs(plan: Plan) -> None:
    """Results behind the seam that point back to a result which left get its content (docs/wire.md, 12)."""
    request = plan.request
    stubs = [
        (number, index)
        for number in range(plan.seam.message, len(request.messages))
        for index, block in enumerate(request.messages[number].blocks)
        if block.name == wire.STUB and block.kind is Kind.RESULT
    ]
    if not stubs:
        return
    maker = {answer: made for made, answer in plan.pairs.items()}
    wanted = {maker[stub]: stub for stub in stubs if stub in maker}
    for stub, source in _pointed_at(plan, wanted):
        answer = _block(request, source)
        call = wire.call(request, _block(request, maker[source]), source[0], None)
        text = f"{notice.OPENING} The earlier result, address {call.address}, which left this context:"
        plan.add.setdefault(stub, []).append(Addition(text, answer))


def _block(request: Request, key: Key) -> Block:
    return request.messages[key[0]].blocks[key[1]]


def _pointed_at(plan: Plan, stubs: dict[Key, Key]) -> list[tuple[Key, Key]]:
    """For stubs, by their calls: the last full result of the same question before, if the cut removed it.

    The order is that of the calls. Not where a call that writes to the same path stands between, or a reading that
    the client attached to the human's words.
    """
    request, found = plan.request, []
    names = {_block(request, made).name for made in stubs} | wire.WRITES
    calls: dict[Key, Asked] = {}
    shown: list[tuple[Key, Asked]] = []
    for number, message in enumerate(request.messages):
        for index, block in enumerate(message.blocks):
            made = (number, index)
            if made <= plan.floor:
                continue
            # A write counts even where it was never answered.
            if block.kind is CALL and block.name in names and (made in plan.pairs or block.name in wire.WRITES):
                calls[made] = asked(wire.member(request, block, "input") or b"{}")
            elif block.kind is TEXT and message.role != "assistant":
                shown += [(made, asked(given)) for given in wire.attached(request, block)]
    files = Paths(call.path for call in (*calls.values(), *(call for _, call in shown)))
    full: dict[tuple[str, str | None, bytes], Key] = {}
    written: dict[str | None, Key] = {}
    for made, call in sorted([*calls.items(), *shown], key=lambda pair: pair[0]):
        path = files.whole(call.path)
        if made not in calls:
            written[path] = made  # the pointer means this later reading; its text stays
            continue
        name, answer = _block(request, made).name, plan.pairs.get(made)
        if made in stubs:
            source = full.get((name, path, call.rest))
            stands = source is not None and (path is None or written.get(path, (-1, -1)) < source)
            if stands and source is not None and plan.pairs[source] in plan.drop:
                found.append((stubs[made], plan.pairs[source]))
        if name in wire.WRITES:
            written[path] = made
        elif answer and not _block(request, answer).error and _block(request, answer).name != wire.STUB:
            full[name, path, call.rest] = made
    return found
