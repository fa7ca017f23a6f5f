"""What goes out in place of a request: a cut that was proven, or the very same bytes and the reason.

Law: no socket, no clock, no disk, and nothing is raised: whatever fails here, the original goes, and that is said.
The same body gives the same bytes; what is remembered of earlier ones (the memo, proofs, a provider's refusals) is for
speed, or changes a body's fate from that refusal on.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from .. import encodings
from ..cut import check, nameless, names_checkpoint
from ..cutter import Cutter, Profile, Verdict, prove
from ..proxy.routes import Route, route

ELSEWHERE = Route("")
"""A history at an address that is not known: in the format that its body shows."""
_WAYS: tuple[Verdict, ...] = ("late", "strict")
"""How else a history is cut where the provider refuses the cut, in the order in which it is tried."""
_MOST = 64 * 1024 * 1024  # bytes of a body that are unpacked; providers take half of it
_SMALL = 1024 * 1024  # bytes that are searched for the checkpoint's name in a fraction of a millisecond
_SEAMS = 256  # refusals that are remembered

_DIGESTS = ("content-md5", "content-digest", "digest", "repr-digest", "signature-input")


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of a request that carries a history.

    Attributes:
        whole: the body as the program sent it, without content encoding.
        body: what goes out: the cut, or the bytes as they came.
        seam: address of the checkpoint at which it was cut; "" where it was not.
        reason: why it was not cut; "" where it was.
        fault: what failed of ours, in one line; "" where nothing did.
    """

    whole: bytes
    body: bytes
    seam: str = ""
    reason: str = ""
    fault: str = ""

    @property
    def changed(self) -> bool:
        """Whether something other than the original goes out."""
        return bool(self.seam)


def route_of(method: str, path: str, body: bytes) -> Route | None:
    """The route of a request that carries a history; None for any other, which passes untouched.

    By its path, or, at an address that is not known, because it names the checkpoint's tool.
    """
    found = route(method, path)
    return ELSEWHERE if found is None and method == "POST" and names_checkpoint(body) else found


def bound(headers: Iterable[tuple[str, str]], query: str) -> str:
    """Why a body may not change, because the request is signed over it; "" where it may.

    Args:
        headers: names and values.
        query: the URL's, without its question mark.
    """
    held = {name.lower(): value for name, value in headers}
    scheme, _, rest = held.get("authorization", "").partition(" ")
    if "HMAC" in scheme.upper():
        free = held.get("x-amz-content-sha256") == "UNSIGNED-PAYLOAD" and "content-length" not in rest.lower()
        return "" if free else f"it is signed ({scheme}), and a signature covers the body"
    if "x-amz-signature=" in query.lower():
        return "it is signed (in its URL), and a signature may cover the body"
    digest = next((name for name in _DIGESTS if name in held), "")
    return f"its header {digest} speaks of the body" if digest else ""


class Decider:
    """Cuts and proves bodies. Threads may share it.

    Args:
        keep_tools, profile: as for `cutline.cut`.

    Raises:
        ValueError: an option that means nothing.
    """

    def __init__(self, keep_tools: Iterable[str] = (), profile: Profile = None) -> None:
        kept = check("\n\n", True, "holes", keep_tools, None, profile, "keep").keep_tools
        self._cutter = Cutter(profile, kept)
        self._verdicts: dict[str, Verdict] = {}
        self._lock = threading.Lock()

    def is_quick(self, body: bytes) -> bool:
        """Whether a body is soon decided: it names no checkpoint, or grew behind one that was proven."""
        if len(body) <= _SMALL and not names_checkpoint(body):
            return True
        if not self._lock.acquire(blocking=False):
            return False  # another thread is at work: whoever must not wait asks elsewhere
        try:
            return self._cutter.is_quick(body)
        finally:
            self._lock.release()

    def decide(self, body: bytes, encoding: str = "") -> Decision:
        """What goes out for a body.

        Args:
            body: as the program sent it.
            encoding: its content encoding; "" for none.
        """
        try:
            try:
                whole = encodings.unpack(body, encoding, _MOST)
            except ValueError as error:
                return Decision(body, body, reason=f"the body is {error}")
            if whole is None or len(whole) > _MOST:
                return Decision(body, body, reason=f"its encoding {encoding} is not known, or it is too large")
            if not names_checkpoint(whole):
                return Decision(whole, body, reason=nameless(whole).reason)
            with self._lock:
                decided = self._decide(whole)
            return replace(decided, body=encodings.pack(decided.body, encoding) if decided.changed else body)
        except Exception as error:  # a fault of ours must not stop the program: the original goes
            return Decision(body, body, reason="the cut failed", fault=f"the cut failed: {_line(error)}")

    def _decide(self, whole: bytes) -> Decision:
        done, seam, fault = self._cutter.cut(whole)
        verdict = self._verdicts.get(seam)
        if verdict == "original":
            return Decision(whole, whole, reason="the provider refused the cut at this seam")
        if verdict is not None:
            done, seam, fault = self._cutter.cut(whole, verdict)
        if not done.changed:
            reason = "the proof failed" if fault else done.reason
            return Decision(whole, whole, reason=reason, fault=f"the proof failed: {fault}" if fault else "")
        return Decision(whole, done.body, seam)

    def prove(self, sent: Decision) -> str:
        """Prove a cut that went out; "" where it holds by one of the ways to cut, else the first difference."""
        ways: list[Verdict | None] = [None, "late", "strict"]
        faults = [prove(sent.whole, sent.body, way, self._cutter.profile, self._cutter.keep_tools) for way in ways]
        return faults[0] if all(faults) else ""

    def tries(self, refused: Decision, original: bytes, encoding: str = "") -> Iterator[tuple[Verdict, Decision]]:
        """What to send, in order and each once, where the provider refuses a cut body.

        Args:
            refused: what it refused.
            original: the body as the program sent it.
            encoding: its content encoding.
        """
        sent = {refused.body}
        for way in _WAYS:
            try:
                with self._lock:
                    done, seam, _ = self._cutter.cut(refused.whole, way)
                body = encodings.pack(done.body, encoding)
            except Exception:  # as in `decide`
                continue
            if done.changed and body not in sent:
                sent.add(body)
                yield way, Decision(refused.whole, body, seam)
        yield "original", Decision(refused.whole, original, reason="the provider refused the cut")

    def learn(self, seam: str, verdict: Verdict) -> None:
        """From now on this is what goes at a seam."""
        with self._lock:
            self._verdicts[seam] = verdict
            while len(self._verdicts) > _SEAMS:
                del self._verdicts[next(iter(self._verdicts))]


def _line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]
