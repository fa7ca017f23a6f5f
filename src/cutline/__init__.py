"""Cutline: the history stays whole, the wire is cut. The library in three names: cut, verify, measure.

A pure core: bytes in, bytes out; it opens no file, reads no clock and no environment. `Transport` stands above it and
carries a program's requests, `tools` are what its agent is given; both are loaded when they are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .cut import Cut, Notice, Removed, cut
from .errors import CutError, CutlineError
from .measure import WireReport, measure
from .verify import Proof, verify

if TYPE_CHECKING:
    from .toolset import tools
    from .transport import AsyncTransport, Report, Transport

__all__ = [
    "AsyncTransport",
    "Cut",
    "CutError",
    "CutlineError",
    "Notice",
    "Proof",
    "Removed",
    "Report",
    "Transport",
    "WireReport",
    "cut",
    "measure",
    "tools",
    "verify",
]

_LATER = {
    "AsyncTransport": "transport",
    "Report": "transport",
    "Transport": "transport",
    "tools": "toolset",
}
"""Names that most programs never ask for, by the module that has them."""


def __getattr__(name: str) -> Any:
    module = _LATER.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f".{module}", __name__), name)
