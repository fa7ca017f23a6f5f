"""Cutting a session: what a cut would leave, what it would save, and the copy that proves it.

Law: nothing is written that was not proven on the file that was written. Whether a cut pays is advice; the
caller decides.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from .. import health, money, spans
from ..cut import Cut, cut_session
from ..errors import CutError, InputError, NothingToCut
from ..measure import Calibration, WireReport, calibrate, measure, weights
from ..notice import Trace
from ..seam import At, check_at
from ..verify import Proof, verify
from ..wire import anthropic as wire
from .clients import client
from .model import Copy, History, Session


@dataclass(frozen=True, slots=True)
class Prospect:
    """What a cut of a session would do.

    Attributes:
        session: the session.
        done: the cut of its history.
        at: the place it is cut at (a message index), or None for its last checkpoint.
        chosen: how that place was chosen: "checkpoint", "last", "end", or what the caller asked for.
        report: before and after.
        payback: what it costs and when it has paid.
        rates: list prices of the session's model; None where none is known.
        likely: requests that the session is likely to go on for.
        faults: what a provider refuses in the history, each with whether the cut removes it.
    """

    session: Session
    done: Cut
    at: int | None
    chosen: str
    report: WireReport
    payback: money.Payback
    rates: money.Rates | None
    likely: int
    faults: dict[health.Fault, bool]

    @property
    def pays(self) -> bool:
        """Whether the cut pays back within the requests that are likely."""
        return self.payback.pays_within(max(self.likely, 1))


@dataclass(frozen=True, slots=True)
class Figures:
    """What a session's own usage says.

    Attributes:
        calibration: tokens by bytes of its history.
        tokens: input tokens of its next request, before anything is typed.
        exact: `tokens` is the provider's own count.
    """

    calibration: Calibration
    tokens: int | None
    exact: bool


def figures(found: History, request: wire.Request) -> Figures:
    """Fit tokens to bytes by the session's usage, and say how large its next request is."""
    before = weights(request)
    points = [(before[made.message], made.usage.total_input) for made in found.requests if made.usage.total_input > 0]
    fit = calibrate(points)
    if not points:
        return Figures(fit, None, False)
    last = next(made for made in reversed(found.requests) if made.usage.total_input > 0)
    behind = before[-1] - before[min(last.message + 1, len(before) - 1)]
    more = round(behind * fit.per_byte)
    return Figures(fit, last.usage.total_input + last.usage.output + more, behind < 64)


def prospect(
    session: Session,
    *,
    at: At | None = None,
    trace: Trace = "holes",
    keep_tools: tuple[str, ...] = (),
    now: datetime | None = None,
) -> Prospect:
    """Work out a cut without writing anything.

    Args:
        session: the session.
        at: where to cut; without it the last checkpoint, else before the last human turn, else at the end.
        trace, keep_tools: as in `cutline.cut`.
        now: the time that the cache's age is reckoned at.

    Raises:
        NothingToCut: nothing before that place is left to remove.
        InputError: no such place.
    """
    found = session.history
    done, place, chosen = _cut(found, at, trace, keep_tools)
    if not done.changed or done.plan is None:
        unread = done.reason.startswith("the body was left as it is")
        raise (InputError if unread else NothingToCut)(f"{session.path.name}: {done.reason}")
    request = done.plan.request
    told = figures(found, request)
    report = measure(found.body, _with_notice(done), tokens=told.tokens, calibration=told.calibration)
    assert report.kept is not None
    said = len(spans.quote(done.plan.last_notice or "")) - 2
    report = replace(report, kept=replace(report.kept, notices=report.kept.notices + said))
    assert report.after is not None
    last = found.requests[-1] if found.requests else None
    rates = money.rates(found.model or None, ttl=_ttl(found), prompt=report.before.tokens)
    first = min((*done.plan.drop, *done.plan.speak))
    start = request.messages[first[0]].blocks[first[1]].start
    prefix = min(told.calibration.tokens(start), report.after.tokens)
    idle = ((now or datetime.now(UTC)) - _time(last.timestamp)).total_seconds() if last else float("inf")
    payback = money.payback(
        prefix,
        report.after.tokens - prefix,
        report.before.tokens - report.after.tokens,
        rates,
        warm=money.warm(idle, _ttl(found)),
        factors=money.factors(found.model, _ttl(found)),
    )
    gone = set(done.plan.drop)
    faults = {fault: fault.place is None or tuple(fault.place) in gone for fault in health.faults(request)}
    return Prospect(session, done, place, chosen, report, payback, rates, money.rhythm([len(found.requests)]), faults)


def _with_notice(done: Cut) -> bytes:
    """The history that a copy sends: where it was cut without a checkpoint, the notice is a message of its own."""
    assert done.plan is not None
    if done.plan.last_notice is None:
        return done.body
    request = done.plan.request
    rest = len(request.body) - request.messages[-1].end
    message = b',{"role":"system","content":%s}' % spans.quote(done.plan.last_notice)
    return done.body[:-rest] + message + done.body[-rest:]


def _cut(found: History, at: At | None, trace: Trace, keep: tuple[str, ...]) -> tuple[Cut, int | None, str]:
    if at is None:
        done = cut_session(found.body, trace=trace, keep_tools=keep)
        if done.changed or "checkpoint" not in done.reason:
            return done, None, "checkpoint"
        # Nothing of the agent's before the last human turn: everything so far is that turn.
        at = "last" if found.human and "agent" in found.origins[: found.human[-1]] else "end"
    place = place_of(found, at)
    done = cut_session(found.body, trace=trace, keep_tools=keep, at=place)
    return done, done.seam.message if done.seam else place, str(at)


def place_of(found: History, at: At) -> int:
    """The message index that a place names. Whether a person typed a message, the records say, not its text.

    Raises:
        InputError: no such place.
    """
    check_at(at)
    total = len(found.places)
    if isinstance(at, int):
        if at > total:
            raise InputError(f"--at {at}: the history has {total} messages")
        return at
    if at == "end":
        return total
    number = len(found.human) if at == "last" else int(at.partition(":")[2])
    if not 1 <= number <= len(found.human):
        raise InputError(f"--at {at}: the session has {len(found.human)} human turns")
    return found.human[number - 1]


def _ttl(found: History) -> money.Ttl:
    return "1h" if any(made.usage.cache_write_1h for made in found.requests[-3:]) else "5m"


def _time(stamp: str) -> datetime:
    try:
        then = datetime.fromisoformat(stamp)
    except ValueError:
        return datetime.fromtimestamp(0, UTC)
    return then if then.tzinfo else then.replace(tzinfo=UTC)


def check_writable(session: Session) -> None:
    """Raise InputError where no copy of a session can be resumed: why, and what to do instead."""
    if session.sealed:
        advice = "" if ";" in session.sealed else ", so no copy is written; use --dry-run"
        raise InputError(f"{session.path}: {session.sealed}{advice}")


def execute(
    wanted: Prospect, *, trace: Trace = "holes", keep_tools: tuple[str, ...] = (), mark: str = "cut"
) -> tuple[Copy, Proof]:
    """Write the cut copy and prove it: the written file is read again, and its history held against the original's.

    Args:
        wanted: the cut.
        trace, keep_tools: as they were given to `prospect`.
        mark: what the copy's title says it is, in brackets.

    Raises:
        CutError: the proof failed; nothing is left behind.
        InputError: the copy can't be written.
    """
    session, plan = wanted.session, wanted.done.plan
    check_writable(session)
    assert plan is not None
    before, theirs = session.history.body, client(session.client)
    proofs: list[Proof] = []

    def prove(path: Path, id: str, notice: str) -> None:
        copied, told = theirs.reread(path, id, notice, before)
        proof = verify(before, copied, trace=trace, keep_tools=keep_tools, at=wanted.at, session=True)
        if proof.last_notice != told:
            raise CutError(2, "the notice's record", "it does not say what really left")
        proofs.append(proof)

    return theirs.write(session, plan, marked(session.title.removesuffix(" (cut)"), mark), prove), proofs[0]


def marked(title: str, mark: str) -> str:
    """A title that says what a session is: a picker shows some sixty characters, and the mark must be among them."""
    title = title or "session"
    return f"{title if len(title) <= 50 else title[:49] + '…'} ({mark})"
