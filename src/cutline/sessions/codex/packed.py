"""Rollouts that the client has compressed.

Law: Zstandard is loaded only where a file is compressed. Whatever is wrong with one is an `OSError`.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from typing import BinaryIO, cast

SUFFIX = ".zst"


def unpacked(handle: BinaryIO) -> BinaryIO:
    """What a compressed file holds, in a temporary file without a name. Raises OSError where it is broken."""
    whole = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115 (the caller closes it)
    try:
        _copy(handle, whole, None)
    except OSError:
        whole.close()
        raise
    return whole


def head(handle: BinaryIO, size: int) -> bytes:
    """The first bytes of what a compressed file holds. Raises OSError where it is broken."""
    with tempfile.SpooledTemporaryFile(max_size=2 * size) as some:
        _copy(handle, cast(BinaryIO, some), size)
        some.seek(0)
        return some.read(size)


def _copy(handle: BinaryIO, out: BinaryIO, size: int | None) -> None:
    if sys.version_info >= (3, 14):
        from compression.zstd import ZstdError, ZstdFile
    else:
        from backports.zstd import ZstdError, ZstdFile

    try:
        with ZstdFile(handle) as whole:
            if size is None:
                shutil.copyfileobj(whole, out)
            else:
                out.write(whole.read(size))
    except (ZstdError, EOFError) as error:
        raise OSError(str(error) or "it ends too early") from None
