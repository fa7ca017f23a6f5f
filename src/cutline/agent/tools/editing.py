"""What a file becomes: text with its encoding and line endings, an exact edit of it, and the diff.

Law: pure. An edit changes what it was asked to change and no other byte; a place that is not exactly one is refused.
"""

from __future__ import annotations

import codecs
import difflib
import re
from dataclasses import dataclass

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CONTEXT = 3
_COMPARED = 5_000  # lines that are compared; of more, one hunk takes all away and puts all there
_NEAR = 3  # places that a refusal names


class Refused(ValueError):
    """Why a file can't be read as text, or an edit can't be made: one line for the model."""


@dataclass(frozen=True, slots=True)
class Text:
    """A file's contents as text.

    Attributes:
        text: without a byte order mark, line endings as they are.
        encoding: that gives the same bytes again.
        mark: the byte order mark; b"" for none.
    """

    text: str
    encoding: str = "utf-8"
    mark: bytes = b""

    @property
    def crlf(self) -> bool:
        """Whether every line of it ends with CR LF, where one ends."""
        return "\r\n" in self.text and self.text.count("\n") == self.text.count("\r\n")

    def data(self) -> bytes:
        """The bytes again.

        Raises:
            Refused: the encoding has no place for a character.
        """
        try:
            return self.mark + self.text.encode(self.encoding)
        except UnicodeEncodeError as error:
            sign = error.object[error.start]
            raise Refused(f"the file is {self.encoding}, which can't hold {sign!r}") from None


def read(data: bytes) -> Text:
    """A file's bytes as text: by its byte order mark, as UTF-8, or else as Latin-1, which loses nothing.

    Raises:
        Refused: it is no text.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            try:
                text = data[len(mark) :].decode(encoding)
            except UnicodeDecodeError:
                break
            made = Text(text, encoding, mark)
            if made.data() == data:
                return made
            break
    if b"\0" in data:
        raise Refused(f"binary: {len(data):,} bytes with a zero byte among them")
    try:
        return Text(data.decode())
    except UnicodeDecodeError:
        return Text(data.decode("latin-1"), "latin-1")


def edited(before: Text, old: str, new: str, *, everywhere: bool = False) -> Text:
    """The text with one exact place changed.

    In a file of CR LF alone, a line feed in `old` and `new` stands for CR LF, since models do not write the other.

    Args:
        before: the file.
        old: stands there exactly once.
        new: what takes its place.
        everywhere: all places; there may be several.

    Raises:
        Refused: no such place, or more than one, or nothing that changes.
    """
    if not old:
        raise Refused("old is empty; give the text that is there now, or use write")
    if before.crlf:
        old, new = _crlf(old), _crlf(new)
    if old == new:
        raise Refused("old and new are the same; nothing to change")
    at = _places(before.text, old)
    if not at:
        raise Refused("old is not in the file exactly as given" + _hint(before.text, old))
    if len(at) > 1 and not everywhere:
        lines = ", ".join(str(before.text.count("\n", 0, place) + 1) for place in at[:_NEAR])
        more = ", …" if len(at) > _NEAR else ""
        raise Refused(f"old is in the file {len(at)} times (lines {lines}{more}); add what stands around the one meant")
    text = before.text.replace(old, new) if everywhere else before.text[: at[0]] + new + before.text[at[0] + len(old) :]
    return Text(text, before.encoding, before.mark)


def _places(text: str, old: str) -> list[int]:
    """Where it stands, overlapping places too: of `aa` in `aaa` it is not clear which one is meant."""
    found: list[int] = []
    at = text.find(old)
    while at >= 0 and len(found) < 1000:
        found.append(at)
        at = text.find(old, at + 1)
    return found


def _hint(text: str, old: str) -> str:
    first = next((line.strip() for line in old.splitlines() if line.strip()), "")
    at = [number for number, line in enumerate(text.splitlines(), 1) if first and line.strip() == first][:_NEAR]
    if not at:
        return "; read it again"
    return f"; its first line stands in line {', '.join(map(str, at))}, so white space or what follows differs"


def rewritten(before: Text | None, content: str) -> Text:
    """A file's new contents, in the encoding and with the line endings that it has."""
    if before is None:
        return Text(content)
    return Text(_crlf(content) if before.crlf else content, before.encoding, before.mark)


def _crlf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def diff(before: str, after: str, name: str, *, created: bool = False) -> str:
    """A unified diff of two texts; "" where they are the same, a line where an empty file is made."""
    if before == after:
        return f"--- /dev/null\n+++ b/{name}\n" if created else ""
    old, new = _lines(before), _lines(after)
    start = end = 0  # what is the same at both ends need not be compared: a large file with a small edit is quick
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    first, last = max(start - _CONTEXT, 0), max(end - _CONTEXT, 0)
    old, new = old[first : len(old) - last], new[first : len(new) - last]
    if max(len(old), len(new)) > _COMPARED:
        head, foot = start - first, end - last
        hunk = [f" {line}" for line in old[:head]]
        hunk += [f"-{line}" for line in old[head : len(old) - foot]] + [
            f"+{line}" for line in new[head : len(new) - foot]
        ]
        hunk += [f" {line}" for line in old[len(old) - foot :]] if foot else []
        lines = [f"@@ -{_span(1, len(old))} +{_span(1, len(new))} @@\n", *hunk]
    else:
        lines = list(difflib.unified_diff(old, new, n=_CONTEXT))[2:]
    lines = [_shifted(line, first) if line.startswith("@@ ") else line for line in lines]
    lines = [f"--- {'/dev/null' if created else f'a/{name}'}\n", f"+++ b/{name}\n", *lines]
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _shifted(header: str, by: int) -> str:
    return re.sub(r"([-+])(\d+)", lambda found: f"{found[1]}{int(found[2]) + by}", header)


def _span(first: int, count: int) -> str:
    return f"{first if count else first - 1},{count}"


def _lines(text: str) -> list[str]:
    """Split at line feeds alone: a form feed or U+2028 inside a line is no line's end."""
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
