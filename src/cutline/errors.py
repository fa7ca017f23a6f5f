"""The tree of errors, drawn by whose fault it is. Law: one line says what happened, where, and what to do next.

CutlineError
├── InputError        theirs: bytes, files or arguments that can't be used (exit code 2)
│   └── Unreadable    … JSON that is not JSON, with the byte offset of the first doubt
├── NothingToCut      nobody's: there is nothing to remove, or removing it would lose money (exit code 3)
└── CutError          ours: the proof failed; a cut broke a rule of the contract (exit code 1)
"""

from __future__ import annotations


class CutlineError(Exception):
    """The root of every error that Cutline raises on purpose; its text is one line, fit to be shown."""

    exit_code = 2


class InputError(CutlineError):
    """Bytes, a file or an argument that can't be used; the text names it and says what to do."""


class Unreadable(InputError):
    """JSON that can't be trusted to mean one thing.

    Attributes:
        what: what was found, in a few words.
        at: byte offset of the first doubt.
    """

    def __init__(self, what: str, at: int) -> None:
        super().__init__(f"{what} at byte {at:,}")
        self.what = what
        self.at = at


class NothingToCut(CutlineError):
    """There is nothing to remove, or the cut would cost more than it saves and was not forced."""

    exit_code = 3


class CutError(CutlineError):
    """The proof failed: `after` is not the cut of `before` by the contract.

    Attributes:
        rule: number of the contract's rule that is broken (1 to 10, docs/cut.md).
        place: where, as a path such as ``messages[4].content[1]``.
        difference: the first difference, in one line.
    """

    exit_code = 1

    def __init__(self, rule: int, place: str, difference: str) -> None:
        super().__init__(f"rule {rule} broken at {place}: {difference}")
        self.rule = rule
        self.place = place
        self.difference = difference
