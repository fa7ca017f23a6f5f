"""What a cut takes out and what it adds: the seam, and a decision for every block.

Law: decisions only, no bytes are made here. A plan is a function of one body and its options; whatever can't
be met raises `Refused` with the reason, and the body stays as it is. One plan serves the splice of a request
body and the rewritten copy of a session file. Why each thing stays or goes: docs/cut.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from . import narration, notice, spans
from .blocks import Author, Block, Kind, Place
from .errors import CutlineError
from .notice import Trace
from .wire import anthropic as wire
from .wire.anthropic import Request

TEXT, CALL, RESULT, THINKING = Kind.TEXT, Kind.CALL, Kind.RESULT, Kind.THINKING
_KEPT = wire.SPEECH | wire.INSTRUCTIONS
_OWN = ("micro_handoff", "recall", "say")

At = int | str
Key = tuple[int, int]
"""A block's place as a plain tuple: message index, block index."""


class Refused(CutlineError):
    """The body can't or need not be cut; the text is the reason that the user reads."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a caller may choose (the parameters of `cutline.cut`).

    `session` marks the copy of a session file: nothing is joined, thinking behind the seam counts as made
    over the uncut history, the history may end with the agent's words, and the notice of a cut without a
    checkpoint is composed too.
    """

    join: str | None = "\n\n"
    notice: bool = True
    trace: Trace = "holes"
    keep_tools: frozenset[str] = frozenset()
    at: At | None = None
    narration: Literal["keep", "drop"] = "keep"
    session: bool = False


@dataclass(frozen=True, slots=True)
class Seam:
    """Where the cut is made.

    Attributes:
        message: index of the first message that the cut leaves as it is (the checkpoint turn's first, or the
            place that `at` chose).
        call: place of the last checkpoint call of the turn; None with `at`.
        id: that call's id; "" with `at`.
        errored: checkpoint calls behind the seam that failed and are no seam.
    """

    message: int
    call: Place | None
    id: str
    errored: int


@dataclass(frozen=True, slots=True)
class Turn:
    """A checkpoint turn: its first message, its checkpoint calls, and the result that takes the notice."""

    start: int
    calls: tuple[Key, ...]
    result: Key


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
        lead: M keeps its thinking, so kept texts directly before it join it behind that thinking.
        last_notice: notice of what left between the last checkpoint and `at` (session copies).
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
    lead: bool = False
    last_notice: str | None = None
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
    floor = _floor(request)
    pairs, _ = wire.pairs(messages)
    turns, errored = _turns(request, pairs, floor)
    if options.at is not None:
        start = _snap(request, _resolve(request, options.at), pairs, options)
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
    if any(made <= floor < answer for made, answer in pairs.items()):
        raise Refused("a call before the compaction is answered behind it")
    plan = Plan(request, seam, floor=floor, pairs=pairs, answers=frozenset(pairs.values()))
    made, answer = _split_pair(request, pairs, start)
    if made:
        raise Refused(f"{Place(*made)} is a call whose result stands behind the seam at {Place(*answer)}")
    plan.own = {number for turn in turns for number in range(turn.start, turn.result[0] + 1)}
    if floor != (0, -1):
        plan.own |= set(range(floor[0] + 1))

    begin = floor[0]
    for turn in turns:
        _stretch(plan, options, begin, turn, kept_from=turns)
        begin = turn.start
    final = None
    if seam.call is not None:
        call = (seam.call.message, seam.call.block)
        final = Turn(seam.message, (call,), pairs[call])
    for turn in (*turns, *([final] if final else [])):
        _refuse_programs(request, turn)
    _stretch(plan, options, begin, final, kept_from=turns)
    gone = {_block(request, key).id for key, why in plan.drop.items() if why.endswith("call")}
    for number, index in plan.unknown:
        if request.messages[number].blocks[index].id in gone:
            raise Refused(f"{Place(number, index)} is of unknown type and answers a call that would leave")
    _behind_the_seam(plan, options)
    if options.notice and (options.at is None or options.session):
        _fill_stubs(plan)
    return plan


# -------------------------------------------------------------------------------------------- the seam


def _floor(request: Request) -> Key:
    """The place behind which the history begins: a provider ignores what stands before a compaction."""
    places = [
        (number, index)
        for number, message in enumerate(request.messages)
        for index, block in enumerate(message.blocks)
        if block.type == "compaction"
    ]
    return places[-1] if places else (0, -1)


def _turns(request: Request, pairs: dict[Key, Key], floor: Key) -> tuple[list[Turn], list[Key]]:
    """The completed checkpoint turns in order, and the checkpoint calls that failed."""
    turns: list[Turn] = []
    errored: list[Key] = []
    for number in range(floor[0], len(request.messages)):
        message = request.messages[number]
        if message.role != "assistant":
            continue
        for index, block in enumerate(message.blocks):
            if not wire.is_checkpoint(block):
                continue
            key = (number, index)
            if key <= floor:
                continue
            answer = pairs.get(key)
            if answer is None or not wire.completed(request, request.messages[answer[0]].blocks[answer[1]]):
                errored.append(key)
                continue
            start = _turn_start(request, pairs, number)
            if turns and turns[-1].start == start:
                turns[-1] = Turn(start, (*turns[-1].calls, key), answer)
            else:
                turns.append(Turn(start, (key,), answer))
    return turns, errored


def _turn_start(request: Request, pairs: dict[Key, Key], number: int) -> int:
    """The first message of a run of assistant messages whose calls are answered together with this one's."""
    start = at = number
    while at > 0 and request.messages[at - 1].role != "user":
        at -= 1
        blocks = request.messages[at].blocks
        if any(b.kind is Kind.CALL and not b.server and (at, i) in pairs for i, b in enumerate(blocks)):
            start = at
    return start


def _refuse_programs(request: Request, turn: Turn) -> None:
    for call in turn.calls:
        raw = wire.member(request, _block(request, call), "caller")
        kind = spans.decode(raw) if raw is not None else None
        if isinstance(kind, dict) and kind.get("type") not in (None, "direct"):
            raise Refused("a checkpoint was called by a program that the provider runs, which can't be cut")


def human_turns(request: Request) -> list[int]:
    """Indices of the messages that a person typed: no reminder, no result, no summary."""
    found = []
    for number, message in enumerate(request.messages):
        if message.role != "user":
            continue
        for block in message.blocks:
            if block.kind in (Kind.IMAGE, Kind.DOCUMENT):
                found.append(number)
                break
            if block.kind is Kind.TEXT:
                text = wire.words(request, block)
                if text.strip() and wire.author("user", block, text) is Author.HUMAN:
                    found.append(number)
                    break
    return found


def _resolve(request: Request, at: At) -> int:
    total = len(request.messages)
    if isinstance(at, int):
        if not 0 <= at <= total:
            raise Refused(f"at={at} is outside of the history, which has {total} messages")
        return at
    if at == "end":
        return total
    humans = human_turns(request)
    if at == "last":
        if not humans:
            raise Refused("no human turn to cut before (at=last)")
        return humans[-1]
    wanted = int(at.partition(":")[2])
    if wanted > len(humans):
        raise Refused(f"at={at}: the history has {len(humans)} human turns")
    return humans[wanted - 1]


def check_at(at: At | None) -> None:
    """Raise ValueError where `at` is none of: a message index, "human:N" from 1, "last", "end"."""
    if at is None or at in ("last", "end") or (type(at) is int and at >= 0):
        return
    if isinstance(at, str) and at.startswith("human:") and at[6:].isdecimal() and int(at[6:]) > 0:
        return
    raise ValueError(f'at={at!r} is none of: a message index from 0, "human:N" from 1, "last", "end"')


def _snap(request: Request, start: int, pairs: dict[Key, Key], options: Options) -> int:
    """The nearest place at or before `start` where no call is open and the history keeps a legal end."""
    messages = request.messages
    spanning = sorted((made[0], answer[0]) for made, answer in pairs.items())
    unanswered = [
        number
        for number, message in enumerate(messages)
        for index, block in enumerate(message.blocks)
        if block.kind is Kind.CALL and (number, index) not in pairs
    ]
    while start > 0:
        opened = [made for made, answer in spanning if made < start <= answer]
        # An unanswered call at the very end is still waiting for its result.
        opened += [made for made in unanswered if made == len(messages) - 1 < start]
        if opened:
            start = min(opened)
        elif start < len(messages) and messages[start].role == "system":
            start -= 1
        elif start == len(messages) and not options.session and _only_results(request, pairs):
            last = _last_said(request)
            start = min(made[0] for made, answer in pairs.items() if answer[0] == last)
        else:
            break
    if start == 0:
        raise Refused("nothing stands before the place that was asked for")
    return start


def _last_said(request: Request) -> int:
    """Index of the last message that is not the harness's."""
    numbers = [number for number, message in enumerate(request.messages) if message.role != "system"]
    return numbers[-1] if numbers else -1


def _only_results(request: Request, pairs: dict[Key, Key]) -> bool:
    """A last message that a cut would remove whole: a request must not end with the agent's words by a cut."""
    number = _last_said(request)
    message = request.messages[number]
    return (
        message.role == "user"
        and any(answer[0] == number for answer in pairs.values())
        and all(b.kind is RESULT or (b.kind is TEXT and not wire.words(request, b).strip()) for b in message.blocks)
    )


def _split_pair(request: Request, pairs: dict[Key, Key], start: int) -> tuple[Key, Key] | tuple[None, Key]:
    for made, answer in pairs.items():
        if made[0] < start <= answer[0]:
            return made, answer
    return None, (0, 0)


# ------------------------------------------------------------------------------------------ the stretch


def _stays(plan: Plan, options: Options, key: Key, block: Block, todo: Key | None) -> bool:
    """Whether a call before the seam stays with its result (docs/cut.md: what stays)."""
    answer = plan.pairs.get(key)
    if answer is None:
        return False
    name = block.name
    if block.server:
        return name.startswith("tool_search_tool") or name in options.keep_tools
    if name in _KEPT or name in options.keep_tools or key == todo:
        return True
    mark = plan.request.messages[answer[0]].blocks[answer[1]].name
    return mark == wire.REFUSED or mark == wire.LOADS or wire.is_say(name)


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
    marks = _Marks(request, messages[begin].start if begin < end else 0)
    for number in range(begin, end):
        message = messages[number]
        called = False
        for index, block in enumerate(message.blocks):
            kind = block.kind
            key = (number, index)
            if key <= floor:
                continue
            if kind is TEXT:
                if message.role == "assistant":
                    said[-1].append(key)
            elif kind is CALL:
                if key in checkpoints:
                    called = True
                elif _stays(plan, options, key, block, todo):
                    kept_results.add(pairs[key])
                    if wire.is_say(block.name):
                        said[-1].append(key)
                    else:
                        called = True
                else:
                    called = True
                    drop[key] = "call" if key in pairs else "unanswered call"
                    n_calls += 1
                    weight += marks.weigh(block)
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
                    weight += marks.weigh(block)
                    drop[key] = "result" if key in answers else "orphan result"
            elif kind is THINKING and _speaks(plan, options, block):
                plan.speak.add(key)
                said[-1].append(key)
            elif kind is THINKING:
                drop[key] = "thinking"
                n_thinking += 1
                weight += marks.weigh(block)
            elif kind is Kind.UNKNOWN:
                plan.unknown.append(key)
        if called:
            said.append([])
    lost = n_calls or n_results or n_thinking
    if options.notice and lost and (turn is not None or options.session) and (options.at is None or options.session):
        tail = range(turn.start, turn.result[0]) if turn else range(0)
        said[-1] += _said_in(plan, options, tail)
        loss = notice.Loss(n_calls, n_results, n_thinking, weight, tuple(files), not checkpoints)
        name = messages[turn.calls[-1][0]].blocks[turn.calls[-1][1]].name if turn else ""
        recall = name.removesuffix("micro_handoff") + "recall" if name else ""
        recall = recall if recall in request.tools else ""
        _mark_loss(plan, turn, notice.compose(loss, calls, reports, _units(plan, said), recall, options.trace))


class _Marks:
    """Weighs blocks without their cache marks: a mark wanders from request to request, a notice never changes.

    The marks are found in one pass over the body, since the blocks are weighed in their order.
    """

    _KEY = b'"cache_control"'

    def __init__(self, request: Request, start: int) -> None:
        self._request = request
        self._next = request.body.find(self._KEY, start)

    def weigh(self, block: Block) -> int:
        size = block.end - block.start
        while 0 <= self._next < block.start:
            self._next = self._request.body.find(self._KEY, block.start)
        return size - wire.mark_size(self._request, block) if 0 <= self._next < block.end else size


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
    if block.kind is Kind.THINKING:
        start, end = wire.literal_inside(request, block, "thinking")
        return str(spans.decode(b'"' + request.body[start:end] + b'"'))
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
    late = options.at is not None or options.session
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
                else:
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
    for stub in stubs:
        made = maker.get(stub)
        if made is None:
            continue
        source = _pointed_at(plan, maker, made)
        if source is not None:
            answer = request.messages[source[0]].blocks[source[1]]
            call = wire.call(request, _block(request, maker[source]), source[0], None)
            text = f"{notice.OPENING} The earlier result, address {call.address}, which left this context:"
            plan.add.setdefault(stub, []).append(Addition(text, answer))


def _block(request: Request, key: Key) -> Block:
    return request.messages[key[0]].blocks[key[1]]


def _pointed_at(plan: Plan, maker: dict[Key, Key], made: Key) -> Key | None:
    """The last full result of the same call before this one, if the cut removed it and no write came since."""
    request = plan.request
    block = _block(request, made)
    wanted = spans.canonical(wire.member(request, block, "input") or b"{}")
    path = _path(wanted)
    for answer in sorted((key for key in maker if maker[key] < made), reverse=True):
        earlier = _block(request, maker[answer])
        if earlier.name in wire.WRITES:
            if path is not None and _path(wire.member(request, earlier, "input") or b"{}") == path:
                return None
            continue
        if earlier.name != block.name:
            continue
        result = _block(request, answer)
        if result.error or result.name == wire.STUB:
            continue
        if spans.canonical(wire.member(request, earlier, "input") or b"{}") == wanted:
            return answer if answer in plan.drop else None
    return None


def _path(arguments: bytes) -> str | None:
    value = spans.decode(arguments)
    found = (value.get("file_path") or value.get("notebook_path")) if isinstance(value, dict) else None
    return found if isinstance(found, str) else None
