"""The interactive terminal of the agent. Law: importing it loads nothing; prompt_toolkit and rich come with `run`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..wanted import Wanted

__all__ = ["run"]


def run(wanted: Wanted) -> int:
    """Run a session in this terminal until the human leaves.

    Args:
        wanted: what the human asks for.

    Returns:
        The exit code.

    Raises:
        InputError: a model that can't be asked, a log that can't be read, libraries that are not there.
        OSError: the log can't be written.
    """
    import asyncio
    import os

    from .terminal import Terminal

    async def living() -> str:
        return await Terminal(wanted, colours=not os.environ.get("NO_COLOR")).run()

    session = asyncio.run(living())
    if session:
        print(f"session {session} is kept; cutline agent --resume {session} goes on with it")
    return 0
