"""The checkpoint's document: its shape, the refusal of a wrong one, the machine's stamp, and the reply.

Law: pure text and values. The cut never looks at a document (any completed call is a checkpoint); what is
refused here is answered with `checkpoint refused:`, and that is no seam in any format (docs/wire.md, 11).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

REFUSED = "checkpoint refused:"
BUDGET = 800
"""Tokens that a document should stay under; a longer one is stored with a hint."""

_SAID = ("done", "open", "went_wrong")
_TEXTS = ("working_directory", "next")
_LISTS = ("dead_ends", "recipes")
_BASES = ("measured", "inferred")
_MOST = 200_000  # bytes; a document of this size is no notebook entry
_BYTES_PER_TOKEN = 4  # of English prose, roughly: it only decides whether a hint is given


@dataclass(frozen=True, slots=True)
class Fact:
    """One claim of a document.

    Attributes:
        claim: what is stated.
        basis: "measured" or "inferred".
        evidence: the command or the address that shows it; "" where none was given.
    """

    claim: str
    basis: str
    evidence: str


@dataclass(frozen=True, slots=True)
class Document:
    """A checkpoint's arguments, in their right shape.

    Attributes:
        done, open, went_wrong: the three that are required, as text.
        facts: the claims.
        dead_ends, recipes: lists of text.
        working_directory, next: text, "" where absent.
        size: bytes of the whole as JSON.
    """

    done: str
    open: str
    went_wrong: str
    facts: tuple[Fact, ...]
    dead_ends: tuple[str, ...]
    recipes: tuple[str, ...]
    working_directory: str
    next: str
    size: int


@dataclass(frozen=True, slots=True)
class Stamp:
    """What the machine, not the agent, says of the moment.

    Attributes:
        at: seconds since the epoch.
        directory: the tools' working directory.
        root: the git repository's root; "" outside of one.
        branch: its branch; "" with a detached head, or outside of a repository.
        head: the commit's short name; "" before the first commit.
        dirty: changed and untracked files, by their paths in the repository.
    """

    at: float
    directory: str
    root: str = ""
    branch: str = ""
    head: str = ""
    dirty: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The stamp as it is stored."""
        return {
            "at": datetime.fromtimestamp(self.at, UTC).isoformat(timespec="seconds"),
            "directory": self.directory,
            "root": self.root,
            "branch": self.branch,
            "head": self.head,
            "dirty": list(self.dirty),
        }


def read(arguments: Any) -> Document | str:
    """A checkpoint's arguments as a document, or the refusal that says how to mend them.

    Args:
        arguments: the call's arguments, decoded. Members that are not known are let through.
    """
    if not isinstance(arguments, Mapping):
        return refusal(["the arguments are no object"])
    wrong = [f"{key}: a text is required" for key in _SAID if not _is_text(arguments.get(key))]
    wrong += [f"{key}: a text" for key in _TEXTS if not isinstance(arguments.get(key, ""), str)]
    for key in _LISTS:
        value = arguments.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            wrong.append(f"{key}: a list of texts")
    facts, faults = _facts(arguments.get("facts", []))
    wrong += faults
    size = len(json.dumps(arguments, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    if size > _MOST:
        wrong.append(f"the document weighs {size:,} bytes, a notebook entry a few thousand: write less")
    if wrong:
        return refusal(wrong)
    return Document(
        done=arguments["done"],
        open=arguments["open"],
        went_wrong=arguments["went_wrong"],
        facts=facts,
        dead_ends=tuple(arguments.get("dead_ends", ())),
        recipes=tuple(arguments.get("recipes", ())),
        working_directory=arguments.get("working_directory", ""),
        next=arguments.get("next", ""),
        size=size,
    )


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _facts(value: Any) -> tuple[tuple[Fact, ...], list[str]]:
    if not isinstance(value, list):
        return (), ["facts: a list of objects with claim, basis and evidence"]
    facts, wrong = [], []
    for number, item in enumerate(value, 1):
        held = item if isinstance(item, Mapping) else {}
        claim, basis, evidence = held.get("claim"), held.get("basis"), held.get("evidence", "")
        if isinstance(claim, str) and _is_text(claim) and basis in _BASES and isinstance(evidence, str):
            facts.append(Fact(claim, basis, evidence))
        else:
            wrong.append(f'facts[{number}]: {{"claim": text, "basis": "measured" or "inferred", "evidence": text}}')
    return tuple(facts), wrong


def refusal(problems: Sequence[str]) -> str:
    """What a checkpoint that is not stored is answered with."""
    return f"{REFUSED} {'; '.join(problems)}. Mend this and call micro_handoff again."


def at_risk(risks: Sequence[str]) -> str:
    """The refusal that hands back, once, what would be lost with this checkpoint."""
    listed = "\n".join(f"- {risk}" for risk in risks)
    return (
        f"{REFUSED} this would be lost or stand unproven. Say in text (or in the document) what you still need of it, "
        f"save craft to a file, correct what is wrong, then call micro_handoff again; it will be stored then.\n{listed}"
    )


def reply(document: Document, stamp: Stamp, unmatched: Sequence[str] = ()) -> str:
    """What a stored checkpoint is answered with: the machine's stamp, what is still unproven, a hint.

    Args:
        document: what was stored.
        stamp: the moment.
        unmatched: risks that still stand, as they are flagged in the stored document.
    """
    lines = [f"checkpoint stored {datetime.fromtimestamp(stamp.at, UTC):%Y-%m-%d %H:%M:%S} UTC", place(stamp)]
    if unmatched:
        lines += ["Stored as unproven:", *(f"- {risk}" for risk in unmatched)]
    if document.size > BUDGET * _BYTES_PER_TOKEN:
        lines.append(f"The document weighs about {document.size // _BYTES_PER_TOKEN:,} tokens; aim below {BUDGET}.")
    elif outweighs(document):
        lines.append("More reasoning than facts: reasoning can be worked out again from your text, facts can't.")
    return "\n".join(lines)


def place(stamp: Stamp) -> str:
    """The stamp's place in one line."""
    if not stamp.root:
        return f"directory {stamp.directory}, no git repository"
    head = stamp.head or "no commit yet"
    where = f"{stamp.branch or 'detached'} at {head}"
    dirty = "clean" if not stamp.dirty else f"{len(stamp.dirty)} dirty: {_few(stamp.dirty)}"
    root = "" if stamp.root == stamp.directory else f", git root {stamp.root}"
    return f"directory {stamp.directory}{root}, {where}, {dirty}"


def _few(names: Sequence[str], most: int = 8) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def outweighs(document: Document) -> bool:
    """Whether the document's prose weighs more than its facts, dead ends and recipes, and is long enough to matter."""
    prose = len(document.done) + len(document.open) + len(document.went_wrong) + len(document.next)
    grit = sum(len(fact.claim) + len(fact.evidence) for fact in document.facts)
    grit += sum(map(len, document.dead_ends + document.recipes))
    return prose > 1_200 and prose > 2 * grit
