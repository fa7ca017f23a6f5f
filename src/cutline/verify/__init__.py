"""The proof: is `after` what the contract leaves of `before`?

Law: an independent derivation. It reads both bodies with its own reader, finds the seam, decides every block's
fate, composes every notice from its own figures, and compares bytes. It shares with the cut the values of
`blocks`, the wording of `notice` and the one definition of narration, and no code that decides. Where the two
disagree, one of them is wrong about the contract (docs/cut.md), and nothing may be written.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ..errors import CutError, Unreadable
from ..notice import Trace
from .compare import Comparison, differs, show
from .expect import Expected
from .fates import Fate
from .history import HARNESS, Block, History
from .notices import fillings, notices
from .seam import Options, Uncut

if TYPE_CHECKING:
    from .foreign import Foreign

__all__ = ["Amount", "Proof", "verify"]

_TOO_DEEP = 500  # levels of nesting that not every reader takes: such a body may be left as it is


@dataclass(frozen=True, slots=True)
class Amount:
    """How much of something: blocks, and bytes of their JSON literals (of texts, of the insides)."""

    count: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class Proof:
    """What was proven of one cut; the figures are the proof's own.

    Attributes:
        unchanged: `after` is `before`, and rightly so.
        reason: why nothing was to be cut; "" where something was.
        seam_message: index in `before` of the first message that the cut stands before; None where unchanged.
        calls, results, thinking: what left (narration blocks that became text are not among it).
        agent_texts, human_texts, harness_texts: texts of the whole body that are still there, byte for byte.
        joined: texts that were joined onto the one before.
        blanks: texts of nothing but white space that left.
        narration: thinking blocks whose words became text.
        notices: notices in results, and the bytes that they and the fillings add.
        filled: results that pointed back to a removed one and carry its content now.
        last_notice: the notice of what left between the last checkpoint and the seam of a session cut without
            a checkpoint; it stands in no result.
    """

    unchanged: bool
    reason: str = ""
    seam_message: int | None = None
    calls: Amount = Amount()
    results: Amount = Amount()
    thinking: Amount = Amount()
    agent_texts: Amount = Amount()
    human_texts: Amount = Amount()
    harness_texts: Amount = Amount()
    joined: int = 0
    blanks: int = 0
    narration: int = 0
    notices: Amount = Amount()
    filled: int = 0
    last_notice: str | None = None


def verify(
    before: bytes,
    after: bytes,
    *,
    join: str | None = "\n\n",
    notice: bool = True,
    trace: Trace = "holes",
    keep_tools: Iterable[str] = (),
    at: int | str | None = None,
    profile: Literal["strict"] | None = None,
    narration: Literal["keep", "drop"] = "keep",
    session: bool = False,
    late: bool = False,
) -> Proof:
    """Prove that `after` is the cut of `before`, a request body of any format that is cut.

    Args:
        before: the body as it came.
        after: what the cut made of it.
        join, notice, trace, keep_tools, at, profile, narration: the options it was cut with; see `cutline.cut`.
        session: it is the history of a session file (`join` is None then).
        late: see `cutline.cut`.

    Returns:
        The `Proof`.

    Raises:
        CutError: with the number of the rule that is broken, the place and the first difference.
        ValueError: an option that means nothing.
    """
    if isinstance(at, bool) or not (at is None or (isinstance(at, int) and at >= 0) or _names_place(at)):
        raise ValueError(f'at={at!r} is none of: a message index from 0, "human:N" from 1, "last", "end"')
    kept = frozenset(keep_tools)
    options = Options(None if session else join, notice, trace, kept, at, narration == "drop", session, late)
    strict = profile == "strict"
    try:
        expected, foreign = _expected(before, options, strict)
    except (Unreadable, Uncut) as reason:
        if after != before:
            at_ = differs(before, after)
            difference = f"{show(after, at_)}, but the body had to stay as it is: {reason}"
            raise CutError(8, f"after byte {at_:,}", difference) from None
        return Proof(unchanged=True, reason=str(reason))
    added, last_notice = notices(expected.fates)
    added.update(fillings(expected.fates))
    if after == before:
        if expected.history.root.depth > _TOO_DEEP:
            return Proof(unchanged=True, reason="nested too deep to be cut safely")
        place = f"before messages[{expected.seam}]"
        raise CutError(9, place, "nothing was cut, though something stands before the seam that has to go")
    if foreign is not None:
        from .translated import compare

        comparison: Comparison = compare(foreign, after, expected, added, strict)
    else:
        comparison = Comparison(expected, added, after)
        comparison.run()
    return _proof(expected, comparison, last_notice)


def _expected(before: bytes, options: Options, strict: bool) -> tuple[Expected, Foreign | None]:
    """What must be left of a body, and the body itself where it is not Anthropic's."""
    try:
        return Expected(History(before), options), None
    except Unreadable as doubt:
        from .foreign import Foreign  # most bodies are Anthropic's: nothing of the others is loaded before
        from .translated import expected

        try:
            foreign = Foreign(before)
            return expected(foreign, options, strict), foreign
        except Unreadable:
            raise doubt from None


def _names_place(at: object) -> bool:
    if not isinstance(at, str):
        return False
    number = at.removeprefix("human:")
    return at in ("last", "end") or (at.startswith("human:") and number.isdecimal() and int(number) > 0)


def _proof(expected: Expected, comparison: Comparison, last_notice: str | None) -> Proof:
    history, fates = expected.history, expected.fates.fates
    blanks = {block.seq for block in expected.blanks}
    texts: dict[str, list[Block]] = {"agent": [], "human": [], "harness": []}
    gone: dict[str, list[Block]] = {"call": [], "result": [], "thought": []}
    for block in history.blocks:
        if fates[block.seq] is Fate.GOES:
            gone[block.kind].append(block)
        elif (block.kind == "text" and block.seq not in blanks) or fates[block.seq] is Fate.SPEAKS:
            texts[_author(history, block)].append(block)
    return Proof(
        unchanged=False,
        seam_message=expected.seam,
        calls=_amount(gone["call"]),
        results=_amount(gone["result"]),
        thinking=_amount(gone["thought"]),
        agent_texts=_inside(history, texts["agent"]),
        human_texts=_inside(history, texts["human"]),
        harness_texts=_inside(history, texts["harness"]),
        joined=expected.joined,
        blanks=len(blanks),
        narration=sum(fate is Fate.SPEAKS for fate in fates),
        notices=Amount(comparison.notices, comparison.added_bytes),
        filled=comparison.filled,
        last_notice=last_notice,
    )


def _author(history: History, block: Block) -> str:
    if block.role == "assistant":
        return "agent"
    harness = block.role != "user" or history.words(block).lstrip().startswith(HARNESS)
    return "harness" if harness else "human"


def _amount(blocks: list[Block]) -> Amount:
    return Amount(len(blocks), sum(block.size for block in blocks))


def _inside(history: History, blocks: list[Block]) -> Amount:
    nodes = [history.words_node(block) for block in blocks]
    return Amount(len(nodes), sum(node.end - node.start - 2 for node in nodes))
