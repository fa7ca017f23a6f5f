"""Zstandard from wherever this Python has it: the standard library from 3.14 on, its backport before."""

import sys

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdDecompressor
else:
    from backports.zstd import ZstdDecompressor

__all__ = ["ZstdDecompressor"]
