"""A `.eval` log: a zip archive of JSON, each sample one entry, or a folder of chunks in newer ones.

Law: nothing is unpacked; an entry is read as a stream and no further than a bound, whatever the archive says of itself.
An entry's name decides only which sample it is of. Compression with Zstandard is loaded where a file needs it.
"""

from __future__ import annotations

import re
import sys
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, BinaryIO

from ...errors import Unreadable
from ..stream import Stream

MAGIC = b"PK\x03\x04"
MOST = 1 << 30
"""Bytes that the entries of one sample may hold when they are unpacked."""
HEADERS = ("header.json", "_journal/start.json")
"""Entries that say what was run: written at the end, and at the beginning."""
_ZSTANDARD = 93
# No zip, an entry that is damaged or encrypted, a compression that is not known.
_BROKEN: tuple[type[Exception], ...] = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    OSError,
)
_SAMPLE = re.compile(r"samples/(.+_epoch_\d+)(?:\.json|/sample\.json)").fullmatch
_CHUNK = re.compile(r"(\d+)\.json").fullmatch


class Archive:
    """The entries of a log that is open."""

    def __init__(self, held: Any, broken: tuple[type[Exception], ...]) -> None:
        """Look at an archive's directory; `broken` is what reading a damaged entry raises."""
        self._held = held
        self._broken = broken
        self._entries: dict[str, zipfile.ZipInfo] = {info.filename: info for info in held.infolist()}
        self._left = MOST

    def samples(self) -> list[str]:
        """The names of its samples."""
        return [found[1] for name in self._entries if (found := _SAMPLE(name))]

    def whole(self, sample: str) -> str:
        """The entry that holds a sample; "" where it is in chunks."""
        name = f"samples/{sample}.json"
        return name if name in self._entries else ""

    def chunks(self, sample: str, sequence: str) -> list[tuple[int, str]]:
        """The chunks of a sample's messages, events or texts: the number of the first item, and the entry."""
        folder = f"samples/{sample}/{sequence}/"
        inside = ((name.removeprefix(folder), name) for name in self._entries if name.startswith(folder))
        return sorted((int(found[1]), name) for rest, name in inside if (found := _CHUNK(rest)))

    def shell(self, sample: str) -> str:
        """The entry that holds what a sample in chunks is beside them."""
        return f"samples/{sample}/sample.json"

    def header(self) -> str:
        """The entry that says what was run; "" for none."""
        return next((name for name in HEADERS if name in self._entries), "")

    @contextmanager
    def stream(self, entry: str) -> Iterator[Stream]:
        """One entry as a stream of JSON.

        Raises:
            Unreadable: it is damaged, encrypted, compressed in a way that is not known, or too large.
        """
        info = self._entries[entry]
        if info.file_size > self._left:
            raise Unreadable(f"{entry}: more than {MOST:,} bytes when unpacked", info.header_offset)
        try:
            with self._held.open(info) as handle:
                yield Stream(lambda size: self._read(handle, size, entry))
        except RecursionError:
            raise
        except self._broken as error:
            raise Unreadable(f"{entry}: {_told(error)}", info.header_offset) from None
        except Unreadable as error:
            raise Unreadable(f"{entry}: {error.what}", error.at) from None

    def _read(self, handle: IO[bytes], size: int, entry: str) -> bytes:
        found = handle.read(size)
        self._left -= len(found)
        if self._left < 0:
            raise Unreadable(f"{entry}: more than {MOST:,} bytes when unpacked", 0)
        return found


@contextmanager
def opened(handle: BinaryIO) -> Iterator[Archive]:
    """Open an archive. Raises Unreadable where it is none, or torn."""
    module, broken = zipfile, _BROKEN
    try:
        held = zipfile.ZipFile(handle)
        if any(info.compress_type == _ZSTANDARD for info in held.infolist()):
            module, broken = _zstandard()
            held = module.ZipFile(handle)
    except broken as error:
        raise Unreadable(f"a zip archive that can't be read ({_told(error)})", 0) from None
    with held:
        yield Archive(held, broken)


def _zstandard() -> tuple[Any, tuple[type[Exception], ...]]:
    """The standard library's `zipfile`, before Python 3.14 its backport, and what damaged entries raise there."""
    if sys.version_info >= (3, 14):
        from compression.zstd import ZstdError

        return zipfile, (*_BROKEN, ZstdError)
    from backports.zstd import ZstdError
    from backports.zstd import zipfile as backported

    return backported, (*_BROKEN, ZstdError, backported.BadZipFile)


def _told(error: BaseException) -> str:
    words = str(error).replace("\n", " ") or type(error).__name__
    return words[:1].lower() + words[1:120]
