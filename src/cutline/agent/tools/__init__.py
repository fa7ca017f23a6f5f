"""The tools that the agent is given, and what holds them: approvals, capping, the environment, what may be shown.

Law: every tool is a `tool.Tool`; none knows the loop, the models or the screen.
"""

from .bash import BASH, JOB_END, JOB_OUTPUT
from .files import EDIT, READ, WRITE
from .search import GLOB, GREP
from .shell import Bash
from .tool import Kind, Outcome, Piece, Place, Shell, Tool

TOOLS = (READ, WRITE, EDIT, BASH, JOB_OUTPUT, JOB_END, GREP, GLOB)
"""All of them, in the order in which a model is told of them."""

__all__ = [
    "BASH",
    "EDIT",
    "GLOB",
    "GREP",
    "JOB_END",
    "JOB_OUTPUT",
    "READ",
    "TOOLS",
    "WRITE",
    "Bash",
    "Kind",
    "Outcome",
    "Piece",
    "Place",
    "Shell",
    "Tool",
]
