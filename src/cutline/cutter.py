"""Cuts that are proven before they are used: what carries requests asks this, and never the cut alone.

Law: a cut that does not prove itself is none, and the body stays as it came. For speed only it is remembered which
cuts were proven; the same body gives the same bytes in any process.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypedDict

from .blocks import address
from .cut import Cut, names_checkpoint
from .errors import CutError
from .memo import Memo
from .verify import verify
from .wire import anthropic as wire

Verdict = Literal["late", "strict", "original"]
"""What a provider's refusal of a cut led to: a cut without the tail's thinking, one that leaves no neighbours of one
role, or none at this seam."""
Profile = Literal["strict"] | None

_ROOM = 16 * 1024 * 1024  # bytes of the histories that are remembered: some dozens of sessions at once, or their agents
_SMALL = 1024 * 1024  # bytes that are searched for the checkpoint's name in a fraction of a millisecond


class _Options(TypedDict):
    late: bool
    profile: Profile
    keep_tools: frozenset[str]


class Cutter:
    """Cuts and proves bodies, and remembers which cuts were proven, for speed only.

    The first cut at a seam is proven whole. While a history grows behind a proven seam, the memo copies its new
    part as it came, and that is proven again from time to time by whoever has the time (`prove`).

    Args:
        profile: "strict" where the server is known to refuse neighbours of one role.
        keep_tools: names of tools whose calls and results stay.
    """

    def __init__(self, profile: Profile = None, keep_tools: Iterable[str] = ()) -> None:
        self.profile = profile
        self.keep_tools = frozenset(keep_tools)
        self._memo = Memo(room=_ROOM)
        self._proven: list[tuple[object, str]] = []

    def is_quick(self, body: bytes) -> bool:
        """Whether a body is soon cut: it is small and has no seam, or it grew behind a seam that was proven."""
        if len(body) <= _SMALL and not names_checkpoint(body):
            return True
        expected = self._memo.expects(body)
        return expected is not None and bool(self._proven_seam(expected[0]))

    def known(self, body: bytes) -> int:
        """How many bytes of a body are an earlier one's up to its checkpoint, as far as a glance tells."""
        expected = self._memo.expects(body)
        return expected[1] if expected else 0

    def _proven_seam(self, plan: object) -> str:
        return next((seam for one, seam in self._proven if one is plan), "")

    def cut(self, body: bytes, verdict: Verdict | None = None) -> tuple[Cut, str, str]:
        """The cut of a body, the address of its seam, and the fault of a proof that failed ("" where it holds).

        Where the proof fails the cut is the unchanged body.
        """
        options = _options(verdict, self.profile, self.keep_tools)
        done = self._memo.cut(body, **options)
        if not done.changed:
            return done, "", ""
        seam = self._proven_seam(done.plan)
        if seam:
            return done, seam, ""
        fault = prove(body, done.body, verdict, self.profile, self.keep_tools)
        if fault:
            return Cut(body, False, f"the proof failed: {fault}"), "", fault
        seam = seam_address(done)
        self._proven = [one for one in ((done.plan, seam), *self._proven) if self._memo.holds(one[0])]
        return done, seam, ""


def prove(
    before: bytes,
    after: bytes,
    verdict: Verdict | None = None,
    profile: Profile = None,
    keep_tools: Iterable[str] = (),
) -> str:
    """Prove a cut; "" where it holds, else the rule and the first difference."""
    try:
        verify(before, after, **_options(verdict, profile, keep_tools))
    except CutError as error:
        return str(error)
    return ""


def seam_address(done: Cut) -> str:
    """The address of the checkpoint call at which a body was cut."""
    plan = done.plan
    assert plan is not None and plan.seam.call is not None, "a cut without `at` is made at a checkpoint"
    place = plan.seam.call
    call = plan.request.messages[place.message].blocks[place.block]
    return address(call.id, call.name, wire.member(plan.request, call, "input") or b"{}")


def _options(verdict: Verdict | None, profile: Profile, keep_tools: Iterable[str]) -> _Options:
    return {
        "late": verdict == "late",
        "profile": "strict" if verdict == "strict" else profile,
        "keep_tools": frozenset(keep_tools),
    }
