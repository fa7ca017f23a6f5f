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
from functools import cache
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


def members(text: str, at: int, read: Callable[[str, int, str], int] | None = None) -> tuple[list[Member], int]:
    """Walk the object that starts at `at`: its members in order, and the index behind it.

    Args:
        text: the view.
        at: where the object starts.
        read: reads a value in place of the scanner, by the view, where it starts and its key: the index behind it.

    Raises the standard library's errors (`DOUBTS`) on anything that is not an object.
    """
    if text[at] != "{":
        raise ValueError(f"an object is expected at byte {at}")
    at = skip(text, at + 1)
    return ([], at + 1) if text[at] == "}" else following(text, at, read)


def following(text: str, at: int, read: Callable[[str, int, str], int] | None = None) -> tuple[list[Member], int]:
    """The same from a member's key on: its members from there."""
    found: list[Member] = []
    while True:
        if text[at] != '"':
            raise ValueError(f"a key is expected at byte {at}")
        key, colon = scanstring(text, at + 1, True)
        colon = skip(text, colon)
        if text[colon] != ":":
            raise ValueError(f"a colon is expected at byte {colon}")
        start = skip(text, colon + 1)
        end = read(text, start, key) if read else scan(text, start)[1]
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


Usual = Callable[[str, int], tuple[int, Any] | None]


def _never(text: str, at: int) -> None:
    return None


def elements(text: str, at: int) -> tuple[list[tuple[int, int]], int]:
    """Walk the array that starts at `at`: the spans of its elements in order, and the index behind it."""
    found, end = scanned(text, at)
    return [(start, end) for start, end, _ in found], end


def scanned(text: str, at: int, usual: Usual = _never) -> tuple[list[tuple[int, int, Any]], int]:
    """Walk the array that starts at `at`: its elements' spans and values, and the index behind it.

    Args:
        text: the view.
        at: where the array starts.
        usual: reads an element of the usual shape, by a pattern that is as strict as the scanner: the index behind it
            and what it stands for, or None. Any other element's value is the scanner's.
    """
    if text[at] != "[":
        raise ValueError(f"an array is expected at byte {at}")
    at = skip(text, at + 1)
    return ([], at + 1) if text[at] == "]" else further(text, at, usual)


def further(text: str, at: int, usual: Usual = _never) -> tuple[list[tuple[int, int, Any]], int]:
    """The same from an element on: its elements from there."""
    found: list[tuple[int, int, Any]] = []
    while True:
        made = usual(text, at)
        if made is None:
            value, end = scan(text, at)
        else:
            end, value = made
        found.append((at, end, value))
        if text[end] == "," and text[end + 1] == "{":  # as nearly every client writes it
            at = end + 1
            continue
        at, more = after(text, end, "]")
        if not more:
            return found, at


# What was scanned once is jumped over by its quotes, at a tenth of what reading it takes. A quote behind one, three or
# five backslashes is an escaped one; behind six or more nobody is sure here, and the string is scanned again.
_STRING = r'"[^"]*+(?:(?:(?<=[^\\]\\)|(?<=[^\\]\\{3})|(?<=[^\\]\\{5}))"[^"]*+)*+"(?<!\\{6}")'
_GAP = r"[ \t\n\r]*+"
_past_string = re.compile(_STRING).match
_NUMERIC = frozenset("-0123456789")  # the scanner gives numbers as they are written: by this a string is told apart


@cache
def _to(key: str) -> Callable[[str, int], re.Match[str] | None]:
    """A pattern for the way from an object's start to the value of a key, behind members without parts."""
    short = rf'"[^"\\]*+"{_GAP}:{_GAP}(?:{_STRING}|[^"\[{{}},]++){_GAP},{_GAP}'
    return re.compile(rf'\{{{_GAP}(?:{short})*?"{key}"{_GAP}:{_GAP}').match


def past(text: str, at: int) -> int:
    """The index behind the value at `at`, which was scanned before."""
    found = _past_string(text, at) if text[at] == '"' else None
    return found.end() if found else scan(text, at)[1]


class Object:
    """An object that was scanned: its values at hand, and the places of those that are asked for.

    Values are the scanner's: numbers look like strings there, and strings are those of the view. `text` gives a
    string as it is meant, the spans say where its literal stands.

    Attributes:
        view: the view of the body.
        start: where it starts.
        held: its values by key; of a key that stands twice, the first.
        twins: whether one does.
    """

    __slots__ = ("held", "start", "twins", "view")

    def __init__(self, view: str, start: int, value: Any) -> None:
        if type(value) is not tuple:
            raise Unreadable("an object is expected", start)
        self.view, self.start = view, start
        self.held: dict[str, Any] = dict(value)
        self.twins = len(self.held) != len(value)
        if self.twins:
            self.held = {}
            for key, one in value:
                self.held.setdefault(key, one)

    @property
    def literal(self) -> tuple[int, int]:
        """Its own literal."""
        return self.start, scan(self.view, self.start)[1]

    def place(self, key: str) -> int:
        """Where the value of a member starts, which must be there."""
        found = _to(key)(self.view, self.start)
        if found:
            return found.end()
        return next(member.start for member in members(self.view, self.start)[0] if member.key == key)

    def span(self, key: str) -> tuple[int, int]:
        """The literal of a member's value."""
        start = self.place(key)
        return start, past(self.view, start)

    def string(self, key: str) -> tuple[int, int] | None:
        """The literal of a member's value, where it is a string."""
        if type(self.held.get(key)) is not str:
            return None
        start = self.place(key)
        return (start, past(self.view, start)) if self.view[start] == '"' else None

    def text(self, key: str) -> str | None:
        """The text of a member that is a string."""
        value = self.held.get(key)
        if type(value) is not str or (value.isascii() and value[:1] not in _NUMERIC):
            return value if type(value) is str else None
        span = self.string(key)
        return None if span is None else str(decode(self.view[slice(*span)].encode("latin-1")))

    def inner(self, key: str) -> Object | None:
        """The object that a member holds."""
        value = self.held.get(key)
        return Object(self.view, self.place(key), value) if type(value) is tuple else None

    def list(self, key: str) -> list[Object]:
        """The objects in the list that a member holds; empty where it holds no list.

        Raises:
            Unreadable: another element.
        """
        values = self.held.get(key)
        if type(values) is not list or not values:
            return []
        at = skip(self.view, self.place(key) + 1)
        found = [Object(self.view, at, values[0])]
        for value in values[1:]:
            at, _ = after(self.view, scan(self.view, at)[1], "]")
            found.append(Object(self.view, at, value))
        return found


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
    return _quoted(text).encode("ascii")


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
