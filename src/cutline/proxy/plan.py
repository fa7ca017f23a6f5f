"""What the proxy does with a request, decided without doing it: who may ask, what goes upstream, what to try next.

Law: pure functions of a request's own bytes; no socket, no clock, no disk. The same request gives the same plan
in any process; a `Cutter` only remembers how it came to the last ones. What is not understood passes untouched.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal
from urllib.parse import unquote

from .. import encodings, spans
from ..cut import cut
from ..cutter import Cutter, Profile, Verdict, prove
from . import client, routes
from .routes import Route

Kind = Literal["turn", "compaction", "count", "other"]

BODY_CAP = 64 * 1024 * 1024
"""Bytes of a body, as it came and unpacked; the provider takes half of it."""

_NAMED = re.compile(r"/(https?)/([a-z0-9][a-z0-9.-]*|\[[0-9a-f:]+\])(?::([0-9]{1,5}))?(/.*)\Z", re.I)
_HOSTS = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\])(?::\d{1,5})?\Z", re.I)
_SPELLED = re.compile(r"[\x21-\x22\x24-\x7e]+\Z")
_HOP = frozenset(
    (
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te"),
        *("trailer", "transfer-encoding", "upgrade", "host", "content-length", "expect"),
    )
)
_TOLD = re.compile(rb'"model"\s*:\s*"([\x20-\x21\x23-\x5b\x5d-\x7e]+)"')
"""The model, where the request stands inside of another one that names it first."""
_ANTHROPIC = b'"anthropic_version"'  # Bedrock and Vertex want it of every body for a model of Anthropic's
_GOOGLE = {400: "INVALID_ARGUMENT", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 413: "INVALID_ARGUMENT"}


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

    def body(self, format: str = "anthropic") -> dict[str, object]:
        """The answer's body, in the shape of the provider of a format, so that clients show the message."""
        said = f"cutline: {self.message}"
        if format == "converse":
            return {"message": said}
        if format == "gemini":
            return {"error": {"code": self.status, "message": said, "status": _GOOGLE.get(self.status, "UNAVAILABLE")}}
        if format.startswith("openai"):
            return {"error": {"message": said, "type": self.type, "param": None, "code": None}}
        return {"type": "error", "error": {"type": self.type, "message": said}}


@dataclass(frozen=True, slots=True)
class Forward:
    """A request that goes upstream.

    Attributes:
        kind: a "turn" of a conversation, the client's own "compaction", a token "count", or "other".
        format: of its body and its answer (`answers.FORMATS`).
        whole: the request as the client sent it, unpacked; where it stands inside of another one, itself alone.
        body: what of it is sent: the cut one, or `whole`.
        raw: the bytes that go on the wire, in the encoding in which they came.
        seam: address of the checkpoint at which it was cut; "" where it was not.
        reason: why it was not cut; "" where it was.
        session, agent: the client's ids of the session and the sub-agent; "" where it names none.
        metered: it came with a key of its own; False for a login by subscription.
        model: as the address names it; "" where it names none.
        fault: a proof that failed: the rule and the first difference; "" where none did.
    """

    kind: Kind
    format: str
    whole: bytes
    body: bytes
    raw: bytes
    seam: str
    reason: str
    session: str
    agent: str
    metered: bool
    model: str = ""
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
    if any(name == "upgrade" and value.strip().lower() != "websocket" for name, value in given):
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


def elsewhere(target: str) -> str:
    """The URL that a target names, its scheme and host before the path; "" where it names none.

    Args:
        target: the rest behind the token, such as `/https/api.anthropic.com/v1/messages`.
    """
    named = _NAMED.match(target)
    if named is None or int(named[3] or 0) > 65535:
        return ""
    return f"{named[1]}://{named[2]}{':' + named[3] if named[3] else ''}{named[4]}"


def nowhere() -> Refusal:
    """A request to a proxy of many providers that names none of them, or carries no history."""
    return Refusal(404, "not_found_error", "only requests that carry a history go through here, each with its provider")


def unpack(body: bytes, encoding: str) -> bytes | Refusal | str:
    """A body without its content encodings; why it passes untouched where it can't be had.

    Never makes more than `BODY_CAP` bytes, whatever the body claims.

    Args:
        body: as it came.
        encoding: the header's value; "" for none.
    """
    try:
        plain = encodings.unpack(body, encoding, BODY_CAP)
    except ValueError as error:
        return f"the body is {error}"
    if plain is None:
        return f"a body in the encoding {encoding} can't be read"
    return too_large() if len(plain) > BODY_CAP else plain


def too_large() -> Refusal:
    """A body over the cap."""
    return Refusal(413, "request_too_large", f"the body is over {BODY_CAP:,} bytes; the provider takes 32 MB")


def forward(
    route: Route,
    headers: Mapping[str, str],
    body: bytes,
    cutter: Cutter,
    verdict: Callable[[str, str], Verdict | None] = lambda session, seam: None,
) -> Forward | Refusal:
    """Decide what goes upstream of a request that carries a history.

    Args:
        route: what `routes.route` said.
        headers: by lower-case name.
        body: as it came.
        cutter: cuts and proves.
        verdict: by session and seam, what a provider's earlier refusal led to.
    """
    encoding = headers.get("content-encoding", "")
    plain = unpack(body, encoding)
    if isinstance(plain, Refusal):
        return plain
    if isinstance(plain, str):
        return replace(_as_it_came(route, headers, body, body), kind="other", reason=f"{plain}: it passes untouched")
    start, end = _inside(plain, route.inside)
    whole = plain[start:end] if route.inside else plain
    came = _as_it_came(route, headers, body, whole)
    if route.inside and not came.model and (told := _TOLD.search(plain, 0, start)):
        came = replace(came, model=told[1].decode())
    if route.kind == "compaction" or (
        route.kind == "turn" and client.is_compaction(whole, cutter.known(whole), headers)
    ):
        return replace(came, kind="compaction", reason="the client summarises the conversation: it reads all of it")
    done, seam, fault = cutter.cut(whole)
    if not done.changed:
        return replace(came, reason=done.reason, fault=fault)
    said = verdict(came.session, seam)
    if said == "original":
        return replace(came, reason="the provider refused the cut at this seam; the original goes")
    if said is not None:
        done, seam, fault = cutter.cut(whole, said)
        if not done.changed:
            return replace(came, reason=done.reason, fault=fault)
    return _changed(replace(came, seam=seam), done.body, plain, (start, end), encoding)


def _changed(came: Forward, cut: bytes, plain: bytes, place: tuple[int, int], encoding: str) -> Forward:
    """A request whose history is cut: put back where it stood, in the encoding in which it came."""
    outer = cut if place == (0, len(plain)) else plain[: place[0]] + cut + plain[place[1] :]
    return replace(came, body=cut, raw=encodings.pack(outer, encoding))


def _as_it_came(route: Route, headers: Mapping[str, str], raw: bytes, whole: bytes) -> Forward:
    session, agent = client.ids(headers, whole)
    format = route.format
    if format == routes.BEDROCK:
        format = "anthropic" if _ANTHROPIC in whole else "converse"
    metered = route.format in (routes.BEDROCK, "converse") or client.metered(headers, format)
    return Forward(route.kind, format, whole, whole, raw, "", "", session, agent, metered, route.model)


def _inside(plain: bytes, names: tuple[str, ...]) -> tuple[int, int]:
    """Where in a body the request itself stands: in these members, one in another, as far as they are there."""
    found = 0, len(plain)
    if names:
        view = spans.view(plain)
        try:
            at = spans.skip(view, 0)
            for name in names:
                member = spans.find(view, at, name)
                if member is None or view[member.start] != "{":
                    break
                found = member.start, member.end
                at = member.start
        except spans.DOUBTS:
            return 0, len(plain)
    return found


def unharmed(route: Route, headers: Mapping[str, str], body: bytes, fault: str) -> Forward:
    """The original as it came, where deciding itself failed."""
    return replace(_as_it_came(route, headers, body, body), reason="the cut failed; the original goes", fault=fault)


def after_refusal(
    sent: Forward, route: Route, headers: Mapping[str, str], original: bytes, profile: Profile = None
) -> list[tuple[Verdict, Forward]]:
    """What to try, in order, when the provider refuses a cut body: each once.

    A cut without the tail's thinking, since some models bind that to all that stood before it; for servers that
    speak Chat Completions a cut that leaves no two neighbours of one role, which some templates refuse; the original.

    Args:
        sent: what was refused.
        route, headers: of the request; headers by lower-case name, as they came.
        original: the body as it came.
        profile: with which it was cut.
    """
    encoding = headers.get("content-encoding", "")
    plain = unpack(original, encoding)
    tries: list[tuple[Verdict, Forward]] = []
    if isinstance(plain, bytes):
        place = _inside(plain, route.inside)
        known = {sent.body}
        ways: tuple[Verdict, ...] = ("late", "strict") if sent.format == "openai_chat" else ("late",)
        for way in ways:
            done = cut(sent.whole, late=way == "late", profile="strict" if way == "strict" else profile)
            if done.changed and done.body not in known and not prove(sent.whole, done.body, way, profile):
                known.add(done.body)
                tries.append((way, _changed(sent, done.body, plain, place, encoding)))
    tries.append(("original", instead(sent, original)))
    return tries


def instead(sent: Forward, original: bytes) -> Forward:
    """The original as it came, in place of a cut body that was refused."""
    return replace(sent, body=sent.whole, raw=original, seam="", reason="the provider refused the cut")


def by_name(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Headers by their lower-case names; one that is given several times is a list."""
    found: dict[str, str] = {}
    for name, value in headers:
        low = name.lower()
        found[low] = f"{found[low]}, {value}" if low in found else value
    return found


def request_headers(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The headers that go upstream: as they came, in their order, without those of the connection."""
    held = list(headers)
    named = {part.strip().lower() for name, value in held if name.lower() == "connection" for part in value.split(",")}
    kept: list[tuple[str, str]] = []
    spelled: dict[str, str] = {}
    for name, value in held:
        low = name.lower()
        if low in _HOP or low in named or low in client.OURS:
            continue
        # One spelling for a header that comes twice: aiohttp would take the second in place of the first.
        kept.append((spelled.setdefault(low, name), _readable(value) if low == "accept-encoding" else value))
    return kept


def is_tunnel(headers: Iterable[tuple[str, str]]) -> bool:
    """Whether a request asks to switch to web sockets."""
    return any(name.lower() == "upgrade" for name, _ in headers)


def tunnel_headers(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The headers with which a web socket is asked for upstream."""
    return [*request_headers(headers), ("Connection", "Upgrade"), ("Upgrade", "websocket")]


def _readable(accepted: str) -> str:
    """The encodings that are asked for, without those in which usage could not be read."""
    parts = [part.strip() for part in accepted.split(",")]
    kept = [part for part in parts if part.split(";")[0].strip().lower() in encodings.READABLE]
    return ", ".join(kept) or "identity"


def response_headers(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The headers of the answer: as they came, without those of the connection. The length stays."""
    held = list(headers)
    named = {part.strip().lower() for name, value in held if name.lower() == "connection" for part in value.split(",")}
    skipped = (_HOP - {"content-length"}) | named
    return [(name, value) for name, value in held if name.lower() not in skipped]
