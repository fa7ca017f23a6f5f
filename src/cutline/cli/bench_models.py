"""What `cutline bench` asks models: a small one on this machine, a real one that the user named.

Law: nothing is sent anywhere but to the model that was named with `--model`, and no key is read here: the library that
calls it does that.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from rich.console import Console

from ..errors import CutlineError, InputError
from . import paint

if TYPE_CHECKING:
    from ..bench.local import Small
    from ..bench.run import Ran
    from ..bench.whole import Source

One = TypeVar("One")


def small() -> Small:
    """The small model, loaded."""
    from ..bench.local import Small

    return Small()


def ownership(ran: Ran, model: Small) -> dict[str, Any]:
    """What the small model takes from each context, over some sessions."""
    from ..bench import local

    pairs = local.chosen((result["key"], source) for result, source in zip(ran.results, ran.sources, strict=True))
    rows = []
    for source, other in _told("asking the small model", pairs):
        told = local.measure(source, other, model)
        rows += [told] if told is not None else []
    return local.summarise(rows)


def probes(sources: Sequence[Source], ask: Callable[[str], str]) -> dict[str, list[int]]:
    """By context, how many blanks the real model filled in, and of how many."""
    from ..bench import probes as asked

    told = [asked.measure(source, ask) for source in _told("asking the model", sources)]
    return asked.summarise(one for one in told if one is not None)


def _told(what: str, each: Sequence[One]) -> Iterator[One]:
    from rich.progress import Progress

    shown = Console(stderr=True)
    with Progress(console=shown, transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(what, total=len(each))
        for one in each:
            yield one
            bar.advance(task)


def named(model: str) -> Callable[[str], str]:
    """Asks a model by its provider and name, as pydantic-ai has them ("anthropic:claude-opus-5").

    Raises:
        InputError: the extra is not installed, or there is no such model, or no key for it.
    """
    try:
        from pydantic_ai.direct import model_request_sync
        from pydantic_ai.exceptions import AgentRunError, UserError
        from pydantic_ai.messages import ModelRequest, TextPart
        from pydantic_ai.models import infer_model
    except ImportError:
        raise InputError("--model needs the extra: pip install 'cutline[agent]'") from None
    try:
        found = infer_model(model)
    except (UserError, ValueError, ImportError) as error:
        raise InputError(f"--model {model}: {paint.short(str(error), 200)}") from None

    def ask(prompt: str) -> str:
        try:
            answer = model_request_sync(found, [ModelRequest.user_text_prompt(prompt)])
        except AgentRunError as error:
            raise CutlineError(f"{model}: {paint.short(str(error), 200)}") from None
        return "".join(part.content for part in answer.parts if isinstance(part, TextPart))

    return ask


def print_ownership(out: Console, told: dict[str, Any]) -> None:
    """What the small model takes from each context."""
    from ..bench.local import CHANGED, PROSE, READ, SPECIFICS

    heads = ("sessions", CHANGED, READ, "told apart", "", f"{PROSE}, a token", f"{SPECIFICS}, a token")
    made = paint.table("the small model: nats that a context adds", *heads, left=(0, 5))
    for name, cell in told.items():
        both = (f"{cell[CHANGED][0]:+.1f}", f"{cell[READ][0]:+.1f}")
        apart, low, high = cell["told apart"]
        gains = (f"{cell[kind][0]:+.2f}" for kind in (PROSE, SPECIFICS))
        made.add_row(name, str(cell["sessions"]), *both, f"{apart:+.1f}", f"[{low:+.1f}, {high:+.1f}]", *gains)
    out.print()
    out.print(made)
    out.print(
        "Files: how much likelier “I changed X” becomes than “a previous session changed X”. The next text: by token.",
        style=paint.FAINT,
    )


def print_probes(out: Console, model: str, told: dict[str, list[int]]) -> None:
    """How many blanks the real model filled in from each context."""
    made = paint.table(f"blanks that {model} filled in, to the letter", "right", "of", "")
    for name, (hits, asked) in told.items():
        made.add_row(name, f"{hits:,}", f"{asked:,}", paint.percent(hits, asked))
    out.print()
    out.print(made)
