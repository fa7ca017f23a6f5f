"""What goes into the record and what comes out of it. Law: values only, and no place for anything of the headers.

Times are seconds since 1970, sizes are bytes. `session` is the client's own id, "" where it gave none; `agent` is
the id of a sub-agent, "" for the main agent; `project` is the absolute path that recall is scoped to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..events import Found


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its answer, as they are handed to the record.

    Attributes:
        session, agent: whose request it was.
        client: the client's name, such as "claude".
        project: where it worked.
        at: when the request came.
        body: the whole body as the client sent it, decompressed and uncut.
        sent: bytes of the body that went upstream.
        seam: address of the seam's checkpoint call; "" where nothing was cut.
        status: HTTP status of the answer; 0 where none came.
        answer: the answer's content blocks as a JSON array; b"" where there is none.
        usage: the provider's counters by its names, in tokens.
        kind: "turn", "compaction", "other", or "file": what a session file holds, which nobody saw on the wire.
    """

    session: str
    agent: str
    client: str
    project: str
    at: float
    body: bytes
    sent: int
    seam: str
    status: int
    answer: bytes
    usage: Mapping[str, int]
    kind: str


@dataclass(frozen=True, slots=True)
class Recorded:
    """A completed call at one of its places.

    Attributes:
        session, agent, client, project: whose history it stands in.
        at: when its result was first seen there.
        request: id of the request that carried it first.
        found: the call with its exact result, and where both stand in that request.
        content: the raw JSON of the result's content, without a byte changed; b"" where it has none. The raw
            arguments are `found.call.arguments`.
    """

    session: str
    agent: str
    client: str
    project: str
    at: float
    request: int
    found: Found
    content: bytes


@dataclass(frozen=True, slots=True)
class Said:
    """A text of the agent's or the human's, at one of its places.

    Attributes:
        session, agent, client, project: whose history it stands in.
        at: when it was first seen there.
        request: id of the request that carried it first, or was answered with it.
        author: "agent" or "human".
        text: the words, exactly.
        message, block: where it stands in the history.
    """

    session: str
    agent: str
    client: str
    project: str
    at: float
    request: int
    author: str
    text: str
    message: int
    block: int


@dataclass(frozen=True, slots=True)
class History:
    """A session's last request, whole.

    Attributes:
        session, agent, client, project: whose it is.
        at: when it came.
        request: its id.
        body: the body as the client sent it, byte for byte.
        answer: the answer's content blocks as a JSON array; b"" where there was none.
    """

    session: str
    agent: str
    client: str
    project: str
    at: float
    request: int
    body: bytes
    answer: bytes


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session, or one sub-agent of it, as a listing shows it.

    Attributes:
        session, agent, client, project: which one.
        first, last: when its first and its last request came.
        requests: how many there are.
        size: bytes of the last body.
    """

    session: str
    agent: str
    client: str
    project: str
    first: float
    last: float
    requests: int
    size: int


@dataclass(frozen=True, slots=True)
class RequestRow:
    """A request as a report counts it.

    Attributes:
        id: the request's id in this record.
        agent: the sub-agent that made it; "" for the main agent.
        at: when it came.
        kind, model: "turn", "compaction", "other" or "file"; the model that was asked, "" where it is not known.
        size, sent: bytes as the client sent it, and as it went upstream.
        seam: address of the seam's checkpoint call; "" where nothing was cut.
        status: HTTP status of the answer.
        usage: the provider's counters by its names, in tokens.
    """

    id: int
    agent: str
    at: float
    kind: str
    model: str
    size: int
    sent: int
    seam: str
    status: int
    usage: dict[str, int]


@dataclass(frozen=True, slots=True)
class Document:
    """A checkpoint's document.

    Attributes:
        session, project: where it was written.
        at: when.
        address: of the checkpoint call; "" where it is not known.
        json: the call's arguments, as JSON text.
        stamp, flags: what the machine adds (directory, branch …), and what could not be matched; JSON text.
    """

    session: str
    project: str
    at: float
    address: str
    json: str
    stamp: str
    flags: str


@dataclass(frozen=True, slots=True)
class Stop:
    """Cutting has ended for a session at a seam.

    Attributes:
        session: the session.
        seam: address of the seam's checkpoint call.
        rule: the rule to report.
        why: what happened, in one line.
        at: when.
    """

    session: str
    seam: str
    rule: str
    why: str
    at: float


@dataclass(frozen=True, slots=True)
class Stats:
    """What a record holds.

    Attributes:
        sessions, agents: sessions, and sub-agents of them.
        requests, calls, texts, documents: how many; a call with its result, or a text, counts once.
        stored: bytes of the record's files.
        bodies, sent: bytes of all request bodies, as the clients sent them and as they went upstream.
        first, last: when the first and the last request came; None where there is none.
        retention: sessions whose last request is so many days old are deleted; None for never.
        masking: whether secrets of known forms are masked on the way in.
        version: the layout's.
    """

    sessions: int
    agents: int
    requests: int
    calls: int
    texts: int
    documents: int
    stored: int
    bodies: int
    sent: int
    first: float | None
    last: float | None
    retention: int | None
    masking: bool
    version: int


@dataclass(frozen=True, slots=True)
class Deleted:
    """What left the record for good.

    Attributes:
        sessions: their ids.
        requests, calls, texts, documents: how many left with them; what other sessions have too stays theirs.
    """

    sessions: tuple[str, ...]
    requests: int
    calls: int
    texts: int
    documents: int


def text(value: str) -> str:
    """A text as SQLite can hold it: a lone surrogate becomes its escape (in JSON text that means the same)."""
    return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode("utf-8")
