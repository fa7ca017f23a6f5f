"""A place for the agent's tools: a real shell in a folder, and a call carried out in it."""

import asyncio
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cutline.agent.tools import Bash, Outcome, Place, Tool
from cutline.agent.tools.plain import shown

ADDRESS = "0123456789abcdef"
Call = Callable[..., Any]


def place(tree: Path, **more: str) -> Place:
    environment = {"PATH": os.environ["PATH"], "HOME": str(tree.parent), "LC_ALL": "C.UTF-8", **more}
    return Place(tree, environment, Bash(tree, environment), tree.parent / "outputs", ADDRESS)


async def call(tool: Tool, at: Place, **arguments: Any) -> Outcome:
    """The outcome; every piece before it has to be fit to be shown."""
    items = [item async for item in tool.run(arguments, at)]
    assert all(item.text == shown(item.text) for item in items[:-1])
    assert isinstance(items[-1], Outcome)
    return items[-1]


def session(tree: Path, play: Callable[[Place], Any], **more: str) -> None:
    async def whole() -> None:
        at = place(tree, **more)
        try:
            await play(at)
        finally:
            await at.shell.close()
        assert not Path(at.shell._folder).exists()

    asyncio.run(whole())


def living(mark: str) -> list[str]:
    listed = subprocess.run(["ps", "-A", "-o", "args="], capture_output=True, text=True, check=True).stdout
    return [line for line in listed.splitlines() if mark in line]
