"""A cap on what the model receives: the head and the tail of a long output, and where the whole is.

Law: memory is bounded whatever comes; what fits is unchanged; a cap says how much it leaves out and how to get it. The
whole lies in a file named after the call's address, up to a limit that is said when it is met.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import BinaryIO

LINES = 600
BYTES = 30_000
KEPT = 64_000_000  # bytes of one output that the file keeps, beside the tail
_ADDRESS = re.compile(r"[0-9a-f]{16}\Z")


def wholes(outputs: Path, address: str) -> list[Path]:
    """The files that keep whole outputs of a call, oldest first: equal calls share an address, each has its own file.

    Raises:
        ValueError: no address.
    """
    if not _ADDRESS.match(address):
        raise ValueError(f"{address!r} is no address")
    return sorted(outputs.glob(f"{address}.*.out"), key=lambda path: int(path.name.split(".")[1]))


def capped(text: str, address: str, *, lines: int = LINES, most: int = BYTES, whole: int | None = None) -> str:
    """A text within the cap: as it is, or its head, a line that says what is left out, and its tail.

    Args:
        text: head and tail at least, where it is not the whole.
        address: of the call; "" where nothing keeps the whole.
        lines, most: the cap in lines, and in bytes of UTF-8.
        whole: bytes of the whole where `text` is less than that; the lines in between were then not counted.
    """
    data = text.encode("utf-8", "surrogatepass")
    if whole is None and len(data) <= most and text.count("\n") < lines:
        return text
    head, tail = _head(text, lines // 2, most // 2), _tail(text, lines // 2, most // 2)
    left = (whole or len(data)) - len((head + tail).encode("utf-8", "surrogatepass"))
    between = "" if whole is not None else f" in {max(text.count(chr(10)) - (head + tail).count(chr(10)), 1):,} lines"
    where = f"; the whole: recall {address}" if address else "; ask for less"
    return f"{head.rstrip(chr(10))}\n[… {max(left, 0):,} bytes{between} left out here{where} …]\n{tail}"


def _head(text: str, lines: int, most: int) -> str:
    part = "".join(text[: most * 4].splitlines(keepends=True)[:lines]) if text else ""
    return part.encode("utf-8", "surrogatepass")[:most].decode("utf-8", "ignore")


def _tail(text: str, lines: int, most: int) -> str:
    part = "".join(text[-most * 4 :].splitlines(keepends=True)[-lines:])
    return part.encode("utf-8", "surrogatepass")[-most:].decode("utf-8", "ignore")


class Spool:
    """An output as it comes: its head and tail in memory, the whole in a file once it is long."""

    def __init__(self, outputs: Path, address: str, *, most: int = BYTES, kept: int = KEPT) -> None:
        """Nothing is written before `most` bytes came.

        Args:
            outputs: the folder of whole outputs; made when it is needed.
            address: of the call; "" keeps no file.
            most: bytes of the head and of the tail that stay in memory.
            kept: bytes that the file holds before only the tail is kept.
        """
        self._outputs, self._address, self._most, self._kept = outputs, address, most, kept
        self._head, self._tail = bytearray(), bytearray()
        self._file: BinaryIO | None = None
        self._written = 0
        self.path: Path | None = None
        self.fault = ""
        self.size = 0

    def write(self, data: bytes) -> None:
        """The next bytes. A file that can't be written is noted in `fault`, the output goes on."""
        self.size += len(data)
        if len(self._head) < self._most:
            self._head += data[: self._most - len(self._head)]
        self._tail += data
        if len(self._tail) > 4 * self._most:
            del self._tail[: -self._most]
        if self._address and not self.fault and self.size > self._most:
            try:
                self._keep(data)
            except OSError as error:
                self.fault = f"the whole could not be kept: {error.strerror}"

    def _keep(self, data: bytes) -> None:
        if self._file is None:
            self._outputs.mkdir(mode=0o700, parents=True, exist_ok=True)
            earlier = wholes(self._outputs, self._address)
            number = int(earlier[-1].name.split(".")[1]) + 1 if earlier else 1
            self.path = self._outputs / f"{self._address}.{number}.out"
            self._file = os.fdopen(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb")
            before = self.size - len(data)
            data = bytes(self._head[:before]) + data
        room = self._kept - self._written
        self._written += self._file.write(data[:room]) if room > 0 else 0

    def end(self) -> bytes:
        """All of it, or head and tail when `size` is more than what this holds; closes the file."""
        if self._file is not None:
            lost = self.size - self._written
            tail = bytes(self._tail[-min(lost, self._most) :]) if lost else b""
            try:
                if lost > len(tail):
                    self._file.write(b"\n[... %d bytes not kept ...]\n" % (lost - len(tail)))
                self._file.write(tail)
                self._file.close()
            except OSError as error:
                self.fault = f"the whole could not be kept: {error.strerror}"
            self._file = None
            if lost > len(tail) and not self.fault:
                self.fault = f"the file keeps the first {self._written:,} bytes and the last {len(tail):,}"
        if self.size <= len(self._tail):
            return bytes(self._tail)
        return bytes(self._head) + bytes(self._tail[-self._most :])

    @property
    def partial(self) -> bool:
        """Whether memory no longer holds all of it."""
        return self.size > len(self._tail)
