"""Cutline: the history stays whole, the wire is cut. The library in three names: cut, verify, measure.

A pure core: bytes in, bytes out; it opens no file, reads no clock and no environment.
"""

from __future__ import annotations

from .cut import Cut, cut

__all__ = ["Cut", "cut"]
