"""The human's rules about calls, as they stand in a session. Law: only the human's own answers change them."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import InputError
from .state import Call
from .tools import approvals
from .tools.tool import Place, Tool

_OURS = ("remember",)  # it writes in the memory's folder alone


class Standing:
    """The rules of a session (see `approvals.Rules`).

    Args:
        mode: "ask", "edits" or "auto".
        allow, deny: patterns of calls.

    Raises:
        InputError: a pattern that means nothing.
    """

    def __init__(self, mode: str, allow: Sequence[str] = (), deny: Sequence[str] = ()) -> None:
        try:
            self.rules = approvals.Rules(mode, (*_OURS, *allow), tuple(deny))  # type: ignore[arg-type]  # it looks itself
        except ValueError as error:
            raise InputError(f"--allow, --deny: {error}") from None

    def verdict(self, call: Call, tool: Tool, place: Place) -> tuple[approvals.Word, str]:
        """Whether a call may run, and why not."""
        return approvals.verdict(self.rules, tool, call.arguments or {}, place)

    def remember(self, call: Call, tool: Tool, place: Place) -> None:
        """The human lets calls like this one run without being asked."""
        self.rules = self.rules.allowing(*approvals.pattern_of(tool, call.arguments or {}, place))
