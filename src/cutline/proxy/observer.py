"""What is done with a request after its last byte: read the answer, count, record, prove again, tell the status.

Law: one thread behind the proxy, and one for what is dear; nothing in here delays or changes a request, and a
fault is kept as one line.
"""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import events, money
from ..cutter import Profile, Verdict, prove
from ..errors import Unreadable
from ..measure import request_of
from ..record import Exchange, Stop, Writer
from ..wire import answers
from . import hooks, state, tap
from .app import Passed
from .hooks import Fullness, Heard, Mandate
from .ledger import Account, offers_tools
from .plan import Forward

_ANSWER_S = 1.5  # a hook may come before its answer was read; the client waits for it
_TOLD_S = 0.2  # how old a status may be while requests come faster: writing one costs as much as noting a request
_AGAIN_S = 20.0  # how often a growing history is proven whole, and its narration judged


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run works.

    Attributes:
        client: the client's name.
        project: what recall is scoped to.
        folder: the run's own folder, for its status; None where there is none.
        mandate: how the mandate is held.
        profile: with which the proxy cuts.
    """

    client: str
    project: str
    folder: Path | None
    mandate: Mandate = "text"
    profile: Profile = None


class Observer:
    """Follows a proxy.

    Args:
        place: where the run works.
        writer: the record's writer; None where recording is off.
        clock: seconds since the epoch.
    """

    def __init__(self, place: Place, writer: Writer | None, clock: Callable[[], float] = time.time) -> None:
        self.accounts: dict[str, Account] = {}
        self.faults: list[str] = []
        self.notes: list[str] = []
        self.session = ""  # as the client's hook named it, for requests that name none
        self._place = place
        self._writer = writer
        self._clock = clock
        self._queue: queue.SimpleQueue[Passed | str | None] = queue.SimpleQueue()
        self._judged: dict[str, float] = {}
        self._channels: dict[str, events.Channels] = {}
        self._full: dict[str, Fullness] = {}
        self._heard: dict[str, Heard] = {}
        self._came = self._counted = 0
        self._last = ""
        self._answered = threading.Condition()
        self._telling = threading.Lock()
        self._dear: threading.Thread | None = None
        self._thread = threading.Thread(target=self._run, name="cutline-observer", daemon=True)
        self._thread.start()

    def passed(self, passed: Passed) -> None:
        """Note a request; returns at once."""
        self._came += 1
        self._queue.put(passed)

    def said(self, line: str) -> None:
        """Note why something passes without being cut, once."""
        if line not in self.notes:
            self.notes.append(line)
            if self._place.folder is not None:
                self._queue.put(line)

    def close(self, timeout: float = 10.0) -> None:
        """Work off what is queued, and end."""
        self._queue.put(None)
        self._thread.join(timeout)
        if self._thread.is_alive():
            self._fault(
                f"{self._came - self._counted:,} requests are not in this report: reading their answers took too long"
            )
        if self._dear is not None:
            self._dear.join(timeout)

    def hook(self, name: str, payload: dict[str, Any]) -> dict[str, Any]:
        """Answer one of the client's hooks; may wait a moment for the answer that it is about."""
        session = str(payload.get("session_id") or "")
        if name == "session":
            self.session = session
            return {}
        if name == "uncut":
            self.said(answers.printable(str(payload.get("why") or ""))[:300])
            return {}
        if name == "before-call":
            heard = self._answer(session, payload) if hooks.is_held(payload) else None
            return hooks.before_call(payload, heard, self._place.mandate)
        full = self._full.setdefault(session, Fullness())
        if name == "before-compaction" or "limit" in payload:
            came = self._came
            with self._answered:
                self._answered.wait_for(lambda: self._counted >= came, _ANSWER_S)
        if name == "before-compaction":
            told = hooks.before_compaction(payload, full)
            if told and session in self.accounts:
                self.accounts[session].held_back += 1
            return told
        return hooks.after_call(payload, full) if name == "after-call" else {}

    def _answer(self, session: str, payload: dict[str, Any]) -> Heard | None:
        """What the agent said, with the answer that makes the hook's call; None where it was not seen in time."""

        def seen() -> Heard | None:
            heard = self._heard.get(session)
            return heard if heard is not None and heard.holds(payload) else None

        with self._answered:
            if not payload.get("tool_use_id"):
                # An earlier answer may have made the same call, and a sub-agent's is in none that is heard: so what
                # came is counted first, and not waited for any longer.
                came = self._came
                self._answered.wait_for(lambda: self._counted >= came, _ANSWER_S)
                return seen()
            return self._answered.wait_for(seen, _ANSWER_S)

    def _run(self) -> None:
        told, owed = 0.0, False  # when the status was written last, and whether anything came since
        passed: Passed | str | None = ""
        while passed is not None:
            try:
                passed = self._queue.get(timeout=max(0.0, told + _TOLD_S - time.monotonic()) if owed else None)
                owed = owed or passed is not None
            except queue.Empty:
                passed = ""
            try:
                if isinstance(passed, Passed):
                    self._note(passed)
                if owed and (passed is None or time.monotonic() - told >= _TOLD_S):
                    told, owed = time.monotonic(), False
                    self._tell(self._last)
            except Exception as error:  # the run goes on without this request's figures
                self._fault(f"{type(error).__name__}: {error}")

    def _note(self, passed: Passed) -> None:
        sent = passed.sent
        try:
            answer = tap.read(passed.answer, passed.content_type, passed.encoding, sent.format)
            account = self.accounts.setdefault(sent.session, Account(sent.session))
            account.add(sent, answer, passed.status)
            if not sent.agent:
                self._follow(passed, answer)
        finally:
            with self._answered:
                self._counted += 1
                self._answered.notify_all()
        if passed.refused:
            told = _told(passed)
            account.refusals.append(told)
            if self._writer is not None and passed.verdict is not None and sent.kind == "turn":
                self._writer.submit(Stop(sent.session, passed.seam, passed.verdict, told, passed.at))
        if self._writer is not None and sent.kind != "count" and sent.kind != "other":
            content = json.dumps(answer.content, ensure_ascii=False).encode("utf-8", "surrogatepass")
            self._writer.submit(
                Exchange(
                    session=sent.session,
                    agent=sent.agent,
                    client=self._place.client,
                    project=self._place.project,
                    at=passed.at,
                    body=sent.whole,
                    sent=len(sent.body),
                    seam=sent.seam,
                    status=passed.status,
                    answer=content if answer.content else b"",
                    usage=dict(answer.usage),
                    kind=sent.kind,
                )
            )
        self._last = sent.session
        self._look_again(passed, account)

    def _follow(self, passed: Passed, answer: tap.Answer) -> None:
        """Note what the hooks will ask: what the main agent said last, and how full its context is."""
        sent = passed.sent
        full = self._full.setdefault(sent.session, Fullness())
        if sent.kind == "compaction" and answer.complete:
            full.compacted()
        elif sent.kind == "turn" and answer.complete and offers_tools(sent.whole):
            used = money.Usage.of(sent.format, answer.usage)
            full.request(used.total_input + used.output, sent.seam)
            self._heard.setdefault(sent.session, Heard()).hear(answer.content)
        elif sent.kind == "turn" and passed.status in (400, 413):
            full.overflowed = True

    def _look_again(self, passed: Passed, account: Account) -> None:
        """Prove a grown history whole, and judge its narration: dear, so now and then, and beside the queue."""
        sent, now = passed.sent, time.monotonic()
        if sent.kind != "turn" or sent.agent or now - self._judged.get(sent.session, -_AGAIN_S) < _AGAIN_S:
            return
        if self._dear is not None and self._dear.is_alive():
            return
        self._judged[sent.session] = now
        self._dear = threading.Thread(target=self._look, args=(passed, account), name="cutline-again", daemon=True)
        self._dear.start()

    def _look(self, passed: Passed, account: Account) -> None:
        sent = passed.sent
        try:
            if sent.changed:
                # A verdict of an earlier request or run is not told here: the late cut is right too.
                fault = prove(sent.whole, sent.body, None, self._place.profile)
                fault = fault and _proof_by_verdict(sent, self._place.profile) and fault
                if fault and fault not in account.faults:
                    account.faults.append(fault)
            self._channels[sent.session] = events.channels(request_of(sent.whole)[0])
        except Unreadable:
            return
        except Exception as error:
            self._fault(f"{type(error).__name__}: {error}")
        self._tell(sent.session)

    def _tell(self, session: str) -> None:
        if self._place.folder is not None:
            faults = [*self.faults, *([self._writer.fault] if self._writer and self._writer.fault else [])]
            with self._telling:
                account = self.accounts.get(session) or Account(session)
                told = state.of(account, self._channels.get(session), faults, self._clock(), self.notes)
                state.write(self._place.folder, told)

    def _fault(self, text: str) -> None:
        if text not in self.faults:
            self.faults.append(text)


def _proof_by_verdict(sent: Forward, profile: Profile) -> str:
    """The fault of a proof of what an earlier refusal led to; "" where one of its ways holds."""
    ways: tuple[Verdict, ...] = ("late", "strict")
    faults = [prove(sent.whole, sent.body, way, profile) for way in ways]
    return "" if "" in faults else faults[0]


def _told(passed: Passed) -> str:
    """A refusal in one line: what the provider said, and what was done."""
    said = answers.read(passed.sent.format, "application/json", passed.refused.encode()).error or passed.refused
    done: dict[Verdict | None, str] = {
        "late": "the cut without the tail's thinking was accepted",
        "strict": "the cut without neighbours of one role was accepted",
        "original": "the original was accepted, and cutting stopped at this seam",
        None: "so was the original: the cut was not at fault",
    }
    told = answers.printable(said)[:300]
    return f"rule 5: the provider refused the cut at {passed.seam} ({told}); {done[passed.verdict]}"
