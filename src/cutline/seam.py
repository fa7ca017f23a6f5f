"""Where a body is cut: its completed checkpoints, or the place that `at` names.

Law: finding only, nothing is decided about blocks here. What has no seam, or one that can't be used, raises
`Refused` with the reason that the user reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from . import spans
from .blocks import Author, Block, Kind, Place
from .errors import CutlineError
from .wire import anthropic as wire
from .wire.anthropic import Request

TEXT, CALL, RESULT = Kind.TEXT, Kind.CALL, Kind.RESULT

At = int | str
"""A message index, "human:N", "last" or "end"."""
Key = tuple[int, int]
"""A block's place as a plain tuple: message index, block index."""


class Refused(CutlineError):
    """The body can't or need not be cut; the text is the reason that the user reads."""


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


def floor_of(request: Request) -> Key:
    """The place behind which the history begins: a provider ignores what stands before a compaction."""
    places = [
        (number, index)
        for number, message in enumerate(request.messages)
        for index, block in enumerate(message.blocks)
        if block.type == "compaction"
    ]
    return places[-1] if places else (0, -1)


def turns_of(request: Request, pairs: dict[Key, Key], floor: Key) -> tuple[list[Turn], list[Key]]:
    """The completed checkpoint turns in order, and the checkpoint calls that failed."""
    turns: list[Turn] = []
    errored: list[Key] = []
    for number in range(floor[0], len(request.messages)):
        message = request.messages[number]
        if message.role != "assistant":
            continue
        for index, block in enumerate(message.blocks):
            if block.kind is not CALL or not wire.is_checkpoint(block):
                continue
            key = (number, index)
            if key <= floor:
                continue
            answer = pairs.get(key)
            if answer is None or not wire.completed(request, request.messages[answer[0]].blocks[answer[1]]):
                errored.append(key)
                continue
            start = turn_start(request, pairs, number)
            if turns and turns[-1].start == start:
                turns[-1] = Turn(start, (*turns[-1].calls, key), answer)
            else:
                turns.append(Turn(start, (key,), answer))
    return turns, errored


def turn_start(request: Request, pairs: dict[Key, Key], number: int) -> int:
    """The first message of a run of assistant messages whose calls are answered together with this one's."""
    start = at = number
    while at > 0 and request.messages[at - 1].role != "user":
        at -= 1
        blocks = request.messages[at].blocks
        if any(b.kind is Kind.CALL and not b.server and (at, i) in pairs for i, b in enumerate(blocks)):
            start = at
    return start


def opening(request: Request, start: int, answers: frozenset[Key]) -> frozenset[int]:
    """The messages that have to stay whole, because the tool loop of a turn without thinking begins with theirs.

    With manual thinking an open loop has to begin with it, and a message that keeps its thinking keeps its calls
    (docs/wire.md, 1.3): so the step that opened the loop stays whole. So does every step on the way whose results came
    with a person's words: without the results the words would begin a loop of their own. Empty where the turn begins
    with thinking itself, or the loop has none. Results that answer nothing and blank texts, which may leave, begin no
    loop.
    """
    messages = request.messages
    at = start
    if start == len(messages) or messages[start].role != "assistant" or _thinks_first(messages[start].blocks):
        return frozenset()
    whole: set[int] = set()
    beside = False
    while at:
        first = at
        while first and messages[first - 1].role != "user":
            first -= 1
        if beside:
            whole |= set(range(first, at))
        at = first
        while at and messages[at - 1].role == "user":
            at -= 1
        heard = [_answers(request, number, answers) for number in range(at, first)]
        human = not heard or any(results and not any(results) for results in heard)
        beside = not all(map(all, heard))
        spoken = next((n for n in range(first, start) if messages[n].role == "assistant"), None)
        if spoken is not None and (human or beside) and _thinks_first(messages[spoken].blocks):
            ends = next((n for n in range(spoken, start) if messages[n].role == "user"), start)
            return frozenset(whole | set(range(spoken, ends)))
        if human:
            break
    return frozenset()


def _answers(request: Request, number: int, answers: frozenset[Key]) -> list[bool]:
    """Of each block of a user's message that says something, whether it answers a call."""
    return [
        block.kind is RESULT
        for index, block in enumerate(request.messages[number].blocks)
        if ((number, index) in answers if block.kind is RESULT else block.kind is not TEXT or not blank(request, block))
    ]


def blank(request: Request, block: Block) -> bool:
    """Whether a text is of nothing but white space."""
    return not wire.words(request, block).strip()


def _thinks_first(blocks: Sequence[Block]) -> bool:
    return bool(blocks) and blocks[0].kind is Kind.THINKING


def refuse_programs(request: Request, turn: Turn) -> None:
    """Raise `Refused` for a checkpoint that a program of the provider's called (docs/wire.md, 1.5)."""
    for call in turn.calls:
        raw = wire.member(request, request.messages[call[0]].blocks[call[1]], "caller")
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


def resolve(request: Request, at: At) -> int:
    """The message index that `at` names; it may still have to snap. Raises `Refused` where there is none."""
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


def snap(request: Request, start: int, pairs: dict[Key, Key], session: bool) -> int:
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
        elif start == len(messages) and not session and only_results(request, pairs):
            last = last_said(request)
            start = min(made[0] for made, answer in pairs.items() if answer[0] == last)
        else:
            break
    if start == 0:
        raise Refused("nothing stands before the place that was asked for")
    return start


def last_said(request: Request) -> int:
    """Index of the last message that is not the harness's."""
    numbers = [number for number, message in enumerate(request.messages) if message.role != "system"]
    return numbers[-1] if numbers else -1


def only_results(request: Request, pairs: dict[Key, Key]) -> bool:
    """A last message that a cut would remove whole: a request must not end with the agent's words by a cut."""
    number = last_said(request)
    message = request.messages[number]
    return (
        message.role == "user"
        and any(answer[0] == number for answer in pairs.values())
        and all(b.kind is RESULT or (b.kind is TEXT and blank(request, b)) for b in message.blocks)
    )


def split_pair(request: Request, pairs: dict[Key, Key], start: int) -> tuple[Key, Key] | tuple[None, Key]:
    """A call before `start` whose result stands behind it, as a program's can; (None, …) where there is none."""
    for made, answer in pairs.items():
        if made[0] < start <= answer[0]:
            return made, answer
    return None, (0, 0)
