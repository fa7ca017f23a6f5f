"""JSON bytes to spans: the one file that everything stands on.

Law: nothing that is kept is decoded and encoded again. A body is looked at through its latin-1 view (one
character is one byte, so an index is a byte offset), containers are walked by hand, and values are read by
the standard library's scanner, which checks strings, escapes, numbers and nesting on the way. Any doubt
(not JSON, not UTF-8, a byte order mark, NaN, a nesting deeper than the interpreter's stack) is `Unreadable`.
Lone surrogate escapes are no doubt: real sessions hold them, and a cut may heal them.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable
from json.decoder import scanstring  # type: ignore[attr-defined]
from json.encoder import encode_basestring_ascii as _quoted
from operator import itemgetter
from typing import Any, NamedTuple

from .errors import Unreadable

_BOM = b"\xef\xbb\xbf"
_CHUNK = 1 << 16
_SPACE = " \t\n\r"
_skip = re.compile(r"[ \t\n\r]*").match


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


# Objects become tuples of pairs, so that duplicates of a key are seen; numbers stay as they are written.
_DECODER = json.JSONDecoder(
    object_pairs_hook=tuple, parse_int=str, parse_float=str, parse_constant=_refuse, strict=True
)
scan: Callable[[str, int], tuple[Any, int]] = _DECODER.scan_once  # type: ignore[attr-defined]
"""``scan(view, at) -> (value, end)``, at C speed: objects as tuples of pairs, numbers as their literals.

Raises what the standard library raises; call it inside ``try … except DOUBTS as e: raise doubt(e, view)``.
"""

DOUBTS = (ValueError, StopIteration, IndexError, RecursionError)
"""What a walk over a view can raise."""


class Member(NamedTuple):
    """One member of an object: its decoded key, where the key's literal starts, and its value's span."""

    key: str
    at: int
    start: int
    end: int


def doubt(error: BaseException, view: str) -> Unreadable:
    """Say in one line what a walk stumbled over, and where (byte offset)."""
    if isinstance(error, Unreadable):
        return error
    if isinstance(error, json.JSONDecodeError):
        return Unreadable(f"not JSON ({error.msg[:1].lower()}{error.msg[1:]})", error.pos)
    if isinstance(error, StopIteration):
        at = error.value if isinstance(error.value, int) else len(view)
        return Unreadable("not JSON (a value is missing)", min(at, len(view)))
    if isinstance(error, RecursionError):
        return Unreadable("nested too deeply to be read safely", 0)
    if isinstance(error, IndexError):
        return Unreadable("the JSON ends too early", len(view))
    return Unreadable(f"not JSON ({error})", 0)


def view(data: bytes, start: int = 0) -> str:
    """The latin-1 view of a body, after checking that its bytes from `start` on are UTF-8.

    Raises:
        Unreadable: a byte order mark or invalid UTF-8, with its offset.
    """
    if data.startswith(_BOM):
        raise Unreadable("a byte order mark before the JSON", 0)
    if not data.isascii():
        # In pieces: the temporary text of a whole body with one emoji in it would weigh four times the body.
        at, size, raw = start, len(data), memoryview(data)
        while at < size:
            end = min(at + _CHUNK, size)
            try:
                at += codecs.utf_8_decode(raw[at:end], "strict", end == size)[1]
            except UnicodeDecodeError as error:
                raise Unreadable("invalid UTF-8", at + error.start) from None
    return data.decode("latin-1")


def skip(text: str, at: int) -> int:
    """Index of the first character at or behind `at` that is no JSON white space."""
    if text[at : at + 1] in _SPACE:
        found = _skip(text, at)
        assert found is not None
        return found.end()
    return at


def members(text: str, at: int) -> tuple[list[Member], int]:
    """Walk the object that starts at `at`: its members in order, and the index behind it.

    Raises the standard library's errors (`DOUBTS`) on anything that is not an object.
    """
    if text[at] != "{":
        raise ValueError(f"an object is expected at byte {at}")
    found: list[Member] = []
    at = skip(text, at + 1)
    if text[at] == "}":
        return found, at + 1
    while True:
        if text[at] != '"':
            raise ValueError(f"a key is expected at byte {at}")
        key, colon = scanstring(text, at + 1, True)
        colon = skip(text, colon)
        if text[colon] != ":":
            raise ValueError(f"a colon is expected at byte {colon}")
        start = skip(text, colon + 1)
        _, end = scan(text, start)
        found.append(Member(key, at, start, end))
        at, more = after(text, end, "}")
        if not more:
            return found, at


def find(text: str, at: int, key: str) -> Member | None:
    """The first member of that key of the object at `at`; None where there is none, or no object."""
    if text[at] != "{":
        return None
    return next((member for member in members(text, at)[0] if member.key == key), None)


def after(text: str, at: int, close: str) -> tuple[int, bool]:
    """Behind a member or element: index of the next one and True, or the index behind `close` and False."""
    at = skip(text, at)
    mark = text[at]
    if mark == ",":
        return skip(text, at + 1), True
    if mark == close:
        return at + 1, False
    raise ValueError(f"a comma or {close} is expected at byte {at}")


def elements(text: str, at: int) -> tuple[list[tuple[int, int]], int]:
    """Walk the array that starts at `at`: the spans of its elements in order, and the index behind it."""
    if text[at] != "[":
        raise ValueError(f"an array is expected at byte {at}")
    found: list[tuple[int, int]] = []
    at = skip(text, at + 1)
    if text[at] == "]":
        return found, at + 1
    while True:
        _, end = scan(text, at)
        found.append((at, end))
        at, more = after(text, end, "]")
        if not more:
            return found, at


_PLAIN = json.JSONDecoder(parse_int=str, parse_float=str)


def decode(literal: bytes) -> Any:
    """The value of a JSON literal that was already read once: objects as dicts, numbers as their literals.

    Lone surrogates come out as they are; encode with ``"surrogatepass"`` or mend them before printing.
    """
    return _PLAIN.decode(literal.decode("utf-8"))


def is_object(literal: bytes) -> bool:
    """Whether bytes are one JSON object that can be read without a doubt."""
    try:
        text = view(literal)
        value, end = scan(text, skip(text, 0))
        return isinstance(value, tuple) and skip(text, end) == len(text)
    except (Unreadable, *DOUBTS):
        return False


def quote(text: str) -> bytes:
    """The JSON literal of a text in pure ASCII: it fits into any body, whatever that body's own spelling."""
    return json.dumps(text).encode("ascii")


class _Number(str):
    """A number's literal: in a canonical form 1 and "1" must differ."""

    __slots__ = ()


_EXACT = json.JSONDecoder(
    object_pairs_hook=tuple, parse_int=_Number, parse_float=_Number, parse_constant=_refuse, strict=True
)


def canonical(literal: bytes) -> bytes:
    """A JSON literal in one spelling: sorted keys, number literals as written, no white space, pure ASCII.

    What can't be parsed comes back as it is, so that an address never fails (DESIGN: address).
    """
    try:
        text = literal.decode("utf-8")
        value, end = _EXACT.scan_once(text, skip(text, 0))  # type: ignore[attr-defined]
        if skip(text, end) != len(text):
            return literal
        out: list[str] = []
        _write(value, out)
    except (UnicodeDecodeError, *DOUBTS):
        return literal
    return "".join(out).encode("ascii")


def _write(value: Any, out: list[str]) -> None:
    if isinstance(value, tuple):
        out.append("{")
        for number, (key, item) in enumerate(sorted(value, key=itemgetter(0))):
            out.append(f",{_quoted(key)}:" if number else f"{_quoted(key)}:")
            if type(item) is str:  # most are: a call spared
                out.append(_quoted(item))
            else:
                _write(item, out)
        out.append("}")
    elif isinstance(value, list):
        out.append("[")
        for number, item in enumerate(value):
            out.append("," if number else "")
            _write(item, out)
        out.append("]")
    elif isinstance(value, _Number):
        out.append(value)
    else:
        out.append(_quoted(value) if isinstance(value, str) else json.dumps(value))
