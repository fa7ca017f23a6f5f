"""All measures of one session.

Law: pure but for reading the file. What comes out is figures, places and hashes, and nothing of what anybody wrote: it
can be stored, sent and committed.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from typing import Any

from .. import claims, events
from ..seam import Refused
from ..sessions.cutting import figures
from ..wire.anthropic import Request
from . import carried, cost, craft, pieces, statements, strategies, whole
from .strategies import Context

LEAST = 10
"""Specifics that must have been used behind a seam for it to count."""
_BEGINNING = 4


@dataclass(frozen=True, slots=True)
class Measured:
    """One session's figures, fit for JSON.

    Attributes:
        key: hash of the session's first messages: copies and forks of one session share it.
        held: whether it is of the third, by that hash, that the trace was not designed on.
        name, client, model: which session it is.
        size: bytes of its history.
        calibration: tokens by bytes of its history, and whether that is fitted to its usage.
        seams: what was measured at each.
        survival: measure 2.
        narration: what the agent's own words carry: calls, holes by tool and by stretch; claims of its documents.
    """

    key: str
    held: bool
    name: str
    client: str
    model: str
    size: int
    calibration: tuple[float, str]
    seams: list[dict[str, Any]]
    survival: dict[str, Any]
    narration: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        """The same as a JSON object."""
        return asdict(self)


def key_of(request: Request) -> str:
    """The hash of a history's first messages."""
    last = min(_BEGINNING, len(request.messages)) - 1
    return hashlib.sha256(request.body[request.messages[0].start : request.messages[last].end]).hexdigest()


def measure(source: whole.Source, labels: statements.Labels) -> Measured | None:
    """Measure a session; None where it has no seam to measure at.

    Raises:
        CutlineError: it can't be read.
    """
    found = whole.read(*source)
    request = found.request
    key = key_of(request)
    if not found.seams:
        return None
    names = pieces.Names()
    read = pieces.read(request, found.origins, names)
    told = figures(found.session.history, request) if found.session is not None else None
    per_byte = told.calibration.per_byte if told else 1 / 4
    how = told.calibration.source if told else "estimated"
    seams: list[dict[str, Any]] = []
    kept: list[tuple[int, dict[str, Context]]] = []
    for seam in found.seams:
        wanted = carried.wanted(read, seam.message, seam.until, names)
        try:
            contexts = strategies.contexts(request, read, seam, names, key)
        except Refused as reason:
            seams.append({"at": seam.message, "cause": seam.cause, "refused": str(reason)})
            continue
        kept.append((seam.message, contexts))
        if len(wanted.bits) < LEAST:
            seams.append({"at": seam.message, "cause": seam.cause, "thin": len(wanted.bits)})
            continue
        seams.append(
            {
                "at": seam.message,
                "cause": seam.cause,
                "used": len(wanted.bits),
                "pairs": wanted.pairs,
                "unread": len(wanted.bits) - len(wanted.shown),
                "categories": carried.tally(wanted.bits, names),
                "deleted": contexts[strategies.FULL].size - contexts[strategies.NONE].size,
                "strategies": {
                    name: asdict(carried.score(context, wanted, names)) for name, context in contexts.items()
                },
                "missing": {
                    name: cost.refetched(context, wanted, read, seam.message) for name, context in contexts.items()
                },
                "cost": cost.rest(found, seam, contexts, per_byte),
            }
        )
    survival = {
        "statements": statements.survival(read, kept, labels),
        "craft": craft.survival(request, kept),
    }
    name = found.session.id[:8] if found.session is not None and found.session.id else source.path.stem
    return Measured(
        key[:16],
        int(key, 16) % 3 == 0,
        name,
        found.client,
        found.model,
        len(request.body),
        (round(per_byte, 4), how),
        seams,
        survival,
        _narrated(request, [seam.message for seam in found.seams]),
    )


def _narrated(request: Request, ends: list[int]) -> dict[str, Any]:
    told = events.review(request)
    return {
        "calls": told.calls,
        "intent": told.intent,
        "outcome": told.outcome,
        "holes": len(told.holes),
        "tools": dict(told.by_tool),
        "stretches": [[one.message, one.calls, one.holes] for one in events.by_stretch(request, told, ends)],
        "claims": claims.by_basis(claims.stated(request)),
    }
