"""What the proxy does with a request, decided without doing it: who may ask, what goes upstream, what to try next.

Law: pure functions of a request's own bytes; no socket, no clock, no disk. The same request gives the same plan
in any process; a `Cutter` only remembers how it came to the last ones. What is not understood passes untouched.
"""

from __future__ import annotations

import hmac
import re
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal
from urllib.parse import unquote

from ..blocks import address
from ..cut import Cut, cut, names_checkpoint
from ..errors import CutError
from ..memo import Memo
from ..verify import verify
from ..wire import anthropic as wire
from . import client

Kind = Literal["turn", "compaction", "count", "other"]
Verdict = Literal["late", "original"]
"""What a provider's refusal of a cut body led to: the cut without the tail's thinking, or no cut at this seam."""

BODY_CAP = 64 * 1024 * 1024
"""Bytes of a body, as it came and unpacked; the provider takes half of it."""

_MESSAGES = re.compile(r"/v1/messages(/count_tokens)?/?\Z")
_HOSTS = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\])(?::\d{1,5})?\Z", re.I)
_SPELLED = re.compile(r"[\x21-\x22\x24-\x7e]+\Z")
_HOP = frozenset(
    (
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te"),
        *("trailer", "transfer-encoding", "upgrade", "host", "content-length", "expect"),
    )
)
_SMALL = 1024 * 1024  # bytes that are searched for the checkpoint's name in a fraction of a millisecond
_PARTS = 10_000  # compressed parts of one body: each costs time, however small it is
_STEP = 65_536  # bytes that are unpacked at once: what follows a part is copied for each part
_READABLE = ("gzip", "x-gzip", "deflate", "zstd", "identity")


@dataclass(frozen=True, slots=True)
class Refusal:
    """A request that does not go upstream.

    Attributes:
        status: the HTTP status of the answer.
        type: the provider's name for such an error.
        message: what happened and what to do, in one line.
    """

    status: int
    type: str
    message: str

    def body(self) -> dict[str, object]:
        """The answer's body, in the provider's shape, so that clients show the message."""
        return {"type": "error", "error": {"type": self.type, "message": f"cutline: {self.message}"}}


@dataclass(frozen=True, slots=True)
class Forward:
    """A request that goes upstream.

    Attributes:
        kind: a "turn" of a conversation, the client's own "compaction", a token "count", or "other".
        whole: the body as the client sent it, unpacked.
        body: what is sent: the cut one, or the bytes as they came.
        packed: `body` still has the encoding that it came with.
        seam: address of the checkpoint at which it was cut; "" where it was not.
        reason: why it was not cut; "" where it was.
        session, agent: the client's ids of the session and the sub-agent; "" where it names none.
        metered: it came with a key of its own; False for a login by subscription.
        fault: a proof that failed: the rule and the first difference; "" where none did.
    """

    kind: Kind
    whole: bytes
    body: bytes
    packed: bool
    seam: str
    reason: str
    session: str
    agent: str
    metered: bool
    fault: str = ""

    @property
    def changed(self) -> bool:
        """Whether something other than the original goes upstream."""
        return bool(self.seam)


def admit(target: str, headers: Iterable[tuple[str, str]], token: str) -> str | Refusal:
    """Check who asks; the target's rest behind the token, or the refusal.

    Args:
        target: the request line's target, as it came.
        headers: names and values.
        token: what the path has to begin with.
    """
    given = [(name.lower(), value) for name, value in headers]
    hosts = [value for name, value in given if name == "host"]
    if len(hosts) != 1 or not _HOSTS.match(hosts[0].strip()):
        return Refusal(403, "permission_error", "the Host header names another host; use the printed loopback address")
    if any(name == "origin" for name, _ in given):
        return Refusal(403, "permission_error", "pages in a browser may not use this address")
    if any(name == "upgrade" for name, _ in given):
        return Refusal(400, "invalid_request_error", "this address does not switch to another protocol")
    path, _, query = target.partition("?")
    if not path.startswith("/"):
        return Refusal(400, "invalid_request_error", "the request target has to be a path")
    if not _SPELLED.match(target):
        return Refusal(400, "invalid_request_error", "the path may hold printable ASCII only, and no fragment")
    first, slash, rest = path[1:].partition("/")
    if not hmac.compare_digest(first.encode("utf-8", "replace"), token.encode()):
        return Refusal(403, "permission_error", "no or a wrong token in the path; use the address that the run printed")
    spelled = rest
    for _ in range(4):  # what a provider behind further gateways might read in it
        if re.search(r"[\\\x00-\x1f\x7f]", spelled) or any(part in (".", "..") for part in spelled.split("/")):
            return Refusal(400, "invalid_request_error", "the path leaves its place")
        spelled = unquote(spelled)
    return slash + rest + ("?" + query if query else "")


def conversation(method: str, target: str) -> Literal["messages", "count", ""]:
    """Whether a request carries a history: messages, a count of their tokens, or neither."""
    found = _MESSAGES.search(target.partition("?")[0]) if method == "POST" else None
    return "" if found is None else "count" if found[1] else "messages"


def unpack(body: bytes, encoding: str, *, torn: bool = False) -> bytes | Refusal | None:
    """A body without its content encodings; None for an encoding that is not known, which passes untouched.

    Never makes more than `BODY_CAP` bytes, whatever the body claims.

    Args:
        body: as it came.
        encoding: the header's value; "" for none.
        torn: of a body that breaks off, give what came before the break.
    """
    for name in reversed([part.strip().lower() for part in encoding.split(",") if part.strip()]):
        if name == "identity":
            continue
        inflate = _unpackers().get(name)
        if inflate is None:
            return None
        try:
            body = inflate(body, BODY_CAP + 1, torn)
        except Exception as error:  # each library has errors of its own, and a broken body must not end the proxy
            return Refusal(400, "invalid_request_error", f"the body is no {name}: {str(error) or type(error).__name__}")
        if len(body) > BODY_CAP and not torn:
            return too_large()
    return body


def too_large() -> Refusal:
    """A body over the cap."""
    return Refusal(413, "request_too_large", f"the body is over {BODY_CAP:,} bytes; the provider takes 32 MB")


def _unpackers() -> Mapping[str, Callable[[bytes, int, bool], bytes]]:
    return {"gzip": _gunzip, "x-gzip": _gunzip, "deflate": _inflate, "zstd": _unzstd}


def _gunzip(body: bytes, most: int, torn: bool) -> bytes:
    return _parts(body, most, torn, lambda: zlib.decompressobj(31))


def _inflate(body: bytes, most: int, torn: bool) -> bytes:
    try:
        return _parts(body, most, torn, lambda: zlib.decompressobj(15))
    except zlib.error:
        return _parts(body, most, torn, lambda: zlib.decompressobj(-15))  # what many clients send in its name


def _unzstd(body: bytes, most: int, torn: bool) -> bytes:
    from .zstd import ZstdDecompressor

    return _parts(body, most, torn, ZstdDecompressor)


def _parts(body: bytes, most: int, torn: bool, unpacker: Callable[[], Any]) -> bytes:
    """Unpack a body of one or more compressed parts; it ends behind `most` bytes."""
    out: list[bytes] = []
    size = at = 0
    for _ in range(_PARTS):
        if at >= len(body) or size >= most:
            return b"".join(out)
        part = unpacker()
        while not part.eof and size < most:
            step = body[at : at + _STEP]
            if not step and torn:
                return b"".join(out)
            if not step:
                raise ValueError("it ends too early")
            out.append(part.decompress(step, most - size))
            at += len(step) - len(part.unused_data)
            size += len(out[-1])
    raise ValueError(f"it has more than {_PARTS:,} parts")


class Cutter:
    """Cuts and proves bodies, and remembers which cuts were proven, for speed only.

    The first cut at a seam is proven whole. While a history grows behind a proven seam, the memo copies its new
    part as it came, and that is proven again from time to time by whoever has the time (`prove`).
    """

    def __init__(self) -> None:
        self._memo = Memo()
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
        late = verdict == "late"
        done = self._memo.cut(body, late=late)
        if not done.changed:
            return done, "", ""
        seam = self._proven_seam(done.plan)
        if seam:
            return done, seam, ""
        fault = prove(body, done.body, late=late)
        if fault:
            return Cut(body, False, f"the proof failed: {fault}"), "", fault
        seam = seam_address(done)
        self._proven = [(done.plan, seam), *self._proven[:7]]
        return done, seam, ""


def prove(before: bytes, after: bytes, *, late: bool = False) -> str:
    """Prove a cut; "" where it holds, else the rule and the first difference."""
    try:
        verify(before, after, late=late)
    except CutError as error:
        return str(error)
    return ""


def forward(
    which: Literal["messages", "count"],
    headers: Mapping[str, str],
    body: bytes,
    cutter: Cutter,
    verdict: Callable[[str, str], Verdict | None] = lambda session, seam: None,
) -> Forward | Refusal:
    """Decide what goes upstream of a request that carries a history.

    Args:
        which: what `conversation` said.
        headers: by lower-case name.
        body: as it came.
        cutter: cuts and proves.
        verdict: by session and seam, what a provider's earlier refusal led to.
    """
    session, agent = client.ids(headers)
    metered = client.metered(headers)
    encoding = headers.get("content-encoding", "")
    whole = unpack(body, encoding)
    if isinstance(whole, Refusal):
        return whole

    def as_it_came(kind: Kind, reason: str, plain: bytes, fault: str = "", seam: str = "") -> Forward:
        return Forward(kind, plain, body, bool(encoding), seam, reason, session, agent, metered, fault)

    if whole is None:
        return as_it_came("other", f"a body in the encoding {encoding} passes untouched", body)
    kind: Kind = "count" if which == "count" else "turn"
    if kind == "turn" and client.is_compaction(whole, cutter.known(whole)):
        return as_it_came("compaction", "the client summarises the conversation: it reads all of it", whole)
    done, seam, fault = cutter.cut(whole)
    if not done.changed:
        return as_it_came(kind, done.reason, whole, fault)
    said = verdict(session, seam)
    if said == "original":
        return as_it_came(kind, "the provider refused the cut at this seam; the original goes", whole)
    if said == "late":
        done, seam, fault = cutter.cut(whole, said)
        if not done.changed:
            return as_it_came(kind, done.reason, whole, fault)
    return Forward(kind, whole, done.body, False, seam, "", session, agent, metered)


def unharmed(which: Literal["messages", "count"], headers: Mapping[str, str], body: bytes, fault: str) -> Forward:
    """The original as it came, where deciding itself failed."""
    session, agent = client.ids(headers)
    metered = client.metered(headers)
    packed = bool(headers.get("content-encoding"))
    kind: Kind = "count" if which == "count" else "turn"
    return Forward(kind, body, body, packed, "", "the cut failed; the original goes", session, agent, metered, fault)


def seam_address(done: Cut) -> str:
    """The address of the checkpoint call at which a body was cut."""
    plan = done.plan
    assert plan is not None and plan.seam.call is not None, "a cut without `at` is made at a checkpoint"
    place = plan.seam.call
    call = plan.request.messages[place.message].blocks[place.block]
    return address(call.id, call.name, wire.member(plan.request, call, "input") or b"{}")


def after_refusal(sent: Forward, headers: Mapping[str, str], original: bytes) -> list[tuple[Verdict, Forward]]:
    """What to try, in order, when the provider answers 400 to a cut body: each once.

    Args:
        sent: what was refused.
        headers: by lower-case name, as they came.
        original: the body as it came.
    """
    tries: list[tuple[Verdict, Forward]] = []
    late = cut(sent.whole, late=True)
    if late.changed and late.body != sent.body and not prove(sent.whole, late.body, late=True):
        tries.append(("late", replace(sent, body=late.body, packed=False)))
    tries.append(("original", instead(sent, headers, original)))
    return tries


def instead(sent: Forward, headers: Mapping[str, str], original: bytes) -> Forward:
    """The original as it came, in place of a cut body that was refused."""
    packed = bool(headers.get("content-encoding"))
    return replace(sent, body=original, packed=packed, seam="", reason="the provider refused the cut")


def by_name(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Headers by their lower-case names; one that is given several times is a list."""
    found: dict[str, str] = {}
    for name, value in headers:
        low = name.lower()
        found[low] = f"{found[low]}, {value}" if low in found else value
    return found


def request_headers(headers: Iterable[tuple[str, str]], packed: bool) -> list[tuple[str, str]]:
    """The headers that go upstream: as they came, without those of the connection.

    Args:
        headers: names and values in their order.
        packed: the body still has its content encoding.
    """
    held = list(headers)
    named = {part.strip().lower() for name, value in held if name.lower() == "connection" for part in value.split(",")}
    kept: list[tuple[str, str]] = []
    spelled: dict[str, str] = {}
    for name, value in held:
        low = name.lower()
        if low in _HOP or low in named or (low == "content-encoding" and not packed):
            continue
        # One spelling for a header that comes twice: aiohttp would take the second in place of the first.
        kept.append((spelled.setdefault(low, name), _readable(value) if low == "accept-encoding" else value))
    return kept


def _readable(accepted: str) -> str:
    """The encodings that are asked for, without those in which usage could not be read."""
    parts = [part.strip() for part in accepted.split(",")]
    kept = [part for part in parts if part.split(";")[0].strip().lower() in _READABLE]
    return ", ".join(kept) or "identity"


def response_headers(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The headers of the answer: as they came, without those of the connection. The length stays."""
    held = list(headers)
    named = {part.strip().lower() for name, value in held if name.lower() == "connection" for part in value.split(",")}
    skipped = (_HOP - {"content-length"}) | named
    return [(name, value) for name, value in held if name.lower() not in skipped]
