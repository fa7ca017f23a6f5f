"""JSON documents read from their beginning on, one value at a time, in bounded memory.

Law: what is passed over is forgotten; what is taken comes as the bytes that it is in the file. No more is held than a
chunk, or the value that is taken where that is larger. Any doubt is `Unreadable`, with its byte offset.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Iterator
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

from .. import spans
from ..errors import Unreadable
from ..spans import DOUBTS

LARGEST = 1 << 28
"""Bytes of the largest value that is taken."""
_CHUNK = 1 << 18
_DEEPEST = 100  # containers inside one another, each larger than a chunk
_BOM = codecs.BOM_UTF8.decode("latin-1")

_Scan = Callable[[str, int], tuple[Any, int]]
# What Python writes beside JSON (NaN, Infinity) is passed over; it is refused where it is taken.
_PASS: _Scan = json.JSONDecoder(  # type: ignore[attr-defined]
    object_pairs_hook=tuple, parse_int=str, parse_float=str
).scan_once


class Stream:
    """One or more JSON values behind one another.

    The value at hand is looked at with `begins`, and then taken, passed over, or entered with `members` or `elements`;
    what the caller leaves of an entered value is passed over.
    """

    def __init__(self, read: Callable[[int], bytes]) -> None:
        """Begin to read; `read` gives up to so many bytes, b"" at the end."""
        self._read = read
        self._text = ""
        self._at = 0
        self._base = 0  # offset of the text that is held
        self._over = False
        self._depth = 0
        if self.begins() and self._text.startswith(_BOM):
            raise Unreadable("a byte order mark before the JSON", 0)

    def begins(self) -> str:
        """The first character of the value at hand; "" where nothing follows."""
        while True:
            self._at = spans.skip(self._text, self._at)
            held = len(self._text) - self._at
            if self._over or held > _CHUNK // 4:
                return self._text[self._at] if held else ""
            self._more()

    def take(self) -> bytes:
        """The value at hand as it is in the file.

        Raises:
            Unreadable: it is not JSON, not UTF-8, or larger than `LARGEST`.
        """
        raw = self._raw(spans.scan)
        try:
            spans.view(raw)
        except Unreadable as error:
            raise Unreadable(error.what, self._offset - len(raw) + error.at) from None
        return raw

    def value(self) -> Any:
        """The value at hand as Python has it, what only Python writes included; None where that can't be made of it."""
        try:
            return json.loads(self._raw(_PASS))
        except (ValueError, RecursionError):
            return None

    def skip(self) -> None:
        """Pass over the value at hand."""
        begins = self.begins()
        try:
            _, end = _PASS(self._text, self._at)
            if self._sure(end):
                self._at = end
                return
        except DOUBTS as error:
            if self._over or not self._short(error):
                raise self._doubt(error) from None
        # It goes on behind the chunk: what it holds is passed over piece by piece.
        if begins == "{":
            for _ in self.members():
                pass
        elif begins == "[":
            for _ in self.elements():
                pass
        elif begins == '"':
            self._skip_text()
        else:
            self._more()
            self.skip()

    def members(self) -> Iterator[str]:
        """Enter the object at hand: its keys, in the latin-1 view; each one's value is at hand in its turn."""
        for _ in self._inside("{", "}"):
            key = self._key()
            at = self._offset
            yield key
            if self._offset == at:
                self.skip()

    def elements(self) -> Iterator[None]:
        """Enter the array at hand: each element is at hand in its turn."""
        for _ in self._inside("[", "]"):
            at = self._offset
            yield None
            if self._offset == at:
                self.skip()

    def _raw(self, scan: _Scan) -> bytes:
        self.begins()
        while True:
            try:
                _, end = scan(self._text, self._at)
                if self._sure(end):
                    break
                self._more()
            except DOUBTS as error:
                self._go_on(error)
        raw = self._text[self._at : end].encode("latin-1")
        self._at = end
        return raw

    @property
    def _offset(self) -> int:
        return self._base + self._at

    def _inside(self, opens: str, closes: str) -> Iterator[None]:
        if self.begins() != opens:
            what = "an object" if opens == "{" else "an array"
            raise Unreadable(f"not JSON ({what} is expected)", self._offset)
        self._depth += 1
        if self._depth > _DEEPEST:
            raise Unreadable("nested too deeply to be read safely", self._offset)
        self._at += 1
        if self.begins() == closes:
            self._at += 1
        else:
            while True:
                self.begins()
                yield
                mark = self.begins()
                if mark not in (",", closes):
                    raise Unreadable(f"not JSON (a comma or {closes} is expected)" if mark else _EARLY, self._offset)
                self._at += 1
                if mark == closes:
                    break
        self._depth -= 1

    def _key(self) -> str:
        if self.begins() != '"':
            raise Unreadable("not JSON (a key is expected)", self._offset)
        while True:
            try:
                key, end = scanstring(self._text, self._at + 1, True)
                break
            except DOUBTS as error:
                self._go_on(error)
        self._at = end
        if self.begins() != ":":
            raise Unreadable("not JSON (a colon is expected)", self._offset)
        self._at += 1
        self.begins()
        return str(key)

    def _skip_text(self) -> None:
        """Pass over a string that goes on behind the chunk."""
        self._at += 1
        while True:
            end = self._text.find('"', self._at)
            piece = self._text[self._at : end] if end >= 0 else self._text[self._at :]
            escaping = (len(piece) - len(piece.rstrip("\\"))) % 2
            if end >= 0:
                self._at = end + 1
                if not escaping:
                    return
            else:
                self._at = len(self._text) - escaping
                if not self._more():
                    raise Unreadable(_EARLY, self._offset)

    def _sure(self, end: int) -> bool:
        """Whether a value that ends there is whole: a number near the end of what is held may go on (``1e+``)."""
        return end + 2 < len(self._text) or self._over or self._text[end - 1] in '"}]'

    def _go_on(self, error: BaseException) -> None:
        """Read on where a value is only not whole yet; else raise what is wrong with it."""
        if self._over or not self._short(error):
            raise self._doubt(error) from None
        self._more()

    def _short(self, error: BaseException) -> bool:
        """Whether a scan failed because what is held ends there."""
        if isinstance(error, json.JSONDecodeError):
            return error.msg.startswith("Unterminated string") or error.pos >= len(self._text) - 8
        if isinstance(error, StopIteration):
            return not isinstance(error.value, int) or error.value >= len(self._text) - 10
        return False

    def _doubt(self, error: BaseException) -> Unreadable:
        told = spans.doubt(error, self._text)
        return Unreadable(told.what, self._base + (told.at or self._at))

    def _more(self) -> bool:
        """Read on and forget what was passed."""
        held = len(self._text) - self._at
        if held > LARGEST:
            raise Unreadable(f"a value of more than {LARGEST:,} bytes", self._offset)
        read = self._read(max(_CHUNK, held))
        self._over = not read
        self._text = self._text[self._at :] + read.decode("latin-1")
        self._base, self._at = self._offset, 0
        return bool(read)


_EARLY = "the JSON ends too early"
