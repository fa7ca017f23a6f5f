"""Measure 5: what the rest of a session costs with each context, and what would have to be fetched again.

Law: pure. The session's own requests are the base: what the provider counted for each is paid as it was, less what
the strategy took out of its prompt, and plus what the changed prefix had to be written again once. Work redone is
counted two ways: calls behind the seam that did ask again for what had left, and the results that hold a specific
which is missing and which nothing behind the seam showed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .. import money
from ..blocks import Kind
from ..repeats import asked
from ..wire import anthropic as wire
from ..wire.anthropic import Request
from .carried import Wanted
from .pieces import RESULT, Piece
from .seams import Seam
from .strategies import FULL, Context
from .whole import Whole


def refetched(context: Context, wanted: Wanted, pieces: Sequence[Piece], at: int) -> dict[str, int]:
    """The fewest results, found greedily, that hold what is missing: how many, and their bytes.

    Missing is what the agent used, the context does not hold, and no result behind the seam showed first.
    """
    held = {name for unit in context.units for name in unit.names}
    lost = set(wanted.bits) - wanted.shown - held
    results = []
    for piece in pieces:
        if piece.message < at and piece.kind == RESULT:
            has = lost.intersection(name for line in piece.lines for name in line.parts)
            if has:
                results.append((has, piece.size))
    fetched = size = 0
    while lost and results:
        has, weight = max(results, key=lambda one: (len(one[0] & lost), -one[1]))
        if not has & lost:
            break
        lost -= has
        fetched += 1
        size += weight
    return {"results": fetched, "bytes": size, "nowhere": len(lost)}


def rest(found: Whole, seam: Seam, contexts: Mapping[str, Context], per_byte: float) -> dict[str, Any] | None:
    """The session from a seam to its end, with each context.

    Args:
        found: the session.
        seam: where it is cut.
        contexts: what each strategy leaves.
        per_byte: tokens for a byte of its history.

    Returns:
        None where the client counted no tokens, or compacted the session there: then its requests were others.
    """
    if found.session is None or seam.cause == "compaction" or found.session.history.compacted:
        return None
    later = [made for made in found.session.history.requests if made.message >= seam.message and made.usage.total_input]
    if not later:
        return None
    rates = money.rates(found.model or None, prompt=later[0].usage.total_input)
    written = rates.input * rates.w if rates else 0.0
    again, weight = _asked_again(found.request, seam.message)
    out: dict[str, Any] = {
        "requests": len(later),
        "priced": rates is not None,
        "again": again,
        "again_tokens": round(weight * per_byte),
        "strategies": {},
    }
    base = contexts[FULL].size
    for name, context in contexts.items():
        gone = max(0, round((base - context.size) * per_byte))
        left = round(context.size * per_byte)
        tokens = usd = 0.0
        for number, made in enumerate(later):
            usage = made.usage
            out_of = min(gone, usage.total_input)
            tokens += usage.total_input - out_of
            if rates is None:
                continue
            # What is taken out is taken out of what was read from the cache, and only then of what was written.
            read = min(out_of, usage.cache_read)
            usd += money.cost(usage, rates)
            usd -= (read * rates.cache_read + (out_of - read) * written) / 1e6
            if number == 0 and gone and usage.cache_read:
                # Everything behind the first thing that left was read, and has to be written anew.
                moved = min(left, usage.cache_read - read)
                usd += moved * (written - rates.cache_read) / 1e6
        out["strategies"][name] = {"tokens": round(tokens), "usd": round(usd, 6) if rates else None}
    return out


def _asked_again(request: Request, at: int) -> tuple[int, int]:
    """Calls behind a place that repeat one before it, and the bytes of their results."""
    pairs, _ = wire.pairs(request.messages)
    before: set[tuple[str, object, bytes]] = set()
    count = weight = 0
    for (number, index), answer in sorted(pairs.items()):
        block = request.messages[number].blocks[index]
        if block.kind is not Kind.CALL:
            continue
        one = asked(wire.member(request, block, "input") or b"{}")
        key = (block.name, one.path, one.rest)
        if number < at:
            before.add(key)
        elif key in before:
            count += 1
            weight += wire.weight(request, request.messages[answer[0]].blocks[answer[1]])
    return count, weight
