"""What the checkpoint documents of a history claim: each claim with its basis, and what the record says against it.

Law: reading only. A document that was let through in a wrong shape is read as far as it goes; a claim marked as
measured is held against the calls made before it, and only against those.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from . import evidence, narration, spans
from .checkpoint import Fact
from .events import calls
from .wire import anthropic as wire
from .wire.anthropic import Request

BASES = ("measured", "inferred", "unmarked")


@dataclass(frozen=True, slots=True)
class Claim:
    """A fact that a document states.

    Attributes:
        message: where the document stands.
        basis: one of `BASES`.
        claim, evidence: as written; "" where it is no text.
        doubt: what speaks against one marked as measured, in a few words; "" where the record shows it.
    """

    message: int
    basis: str
    claim: str
    evidence: str
    doubt: str


def stated(request: Request) -> list[Claim]:
    """Every claim of every checkpoint document, in order."""
    found: list[Claim] = []
    made = [one for one in calls(request) if not narration.is_own(one.call.name)]
    for number, message in enumerate(request.messages):
        for block in message.blocks:
            if wire.is_checkpoint(block):
                document: Any = spans.decode(wire.member(request, block, "input") or b"{}")
                record = evidence.Record([one.call for one in made if one.message < number])
                found += [_claim(number, fact, record) for fact in _facts(document)]
    return found


def by_basis(claims: Iterable[Claim]) -> dict[str, int]:
    """How many claims have each basis."""
    found = dict.fromkeys(BASES, 0)
    for one in claims:
        found[one.basis] += 1
    return found


def _facts(document: Any) -> list[Any]:
    facts = document.get("facts") if isinstance(document, Mapping) else None
    return facts if isinstance(facts, list) else []


def _claim(number: int, fact: Any, record: evidence.Record) -> Claim:
    held = fact if isinstance(fact, Mapping) else {}
    basis = held.get("basis")
    basis = basis if basis in BASES[:2] else "unmarked"
    claim, shown = (value if isinstance(value := held.get(key), str) else "" for key in ("claim", "evidence"))
    doubt = record.doubt(Fact(claim, "measured", shown)) if basis == "measured" and claim else ""
    return Claim(number, basis, claim, shown, doubt)
