"""Cutline: the history stays whole, the wire is cut. The library in three names: cut, verify, measure.

A pure core: bytes in, bytes out; it opens no file, reads no clock and no environment.
"""

from __future__ import annotations

from .cut import Cut, Notice, Removed, cut
from .errors import CutError, CutlineError
from .measure import WireReport, measure
from .verify import Proof, verify

__all__ = ["Cut", "CutError", "CutlineError", "Notice", "Proof", "Removed", "WireReport", "cut", "measure", "verify"]
