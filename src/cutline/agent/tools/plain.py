"""What may be shown: text in which nothing steers a terminal, hides, or changes the order of what is read.

Law: pure; `shown` leaves nothing but printable text, line breaks and tabs, and showing what was shown changes nothing.
Colours and cursor movements go (they are no content); every other control, and each character that reorders or hides
text, is written out as `<U+202E>`, so that it is seen. A carriage return alone becomes a line break: what it would
overwrite stays to be read.
"""

from __future__ import annotations

import re

_MOST = 4096  # characters that an unfinished sequence may have; a longer one is no sequence

# ECMA-48: CSI; OSC, DCS, SOS, PM and APC up to their end (a line break ends one too: no line is lost to a forged
# opening); charset and other escapes of two or three characters; the same in single characters (C1).
_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n\r]*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]+[0-~]|\x1b[0-OQ-WYZ\\`-~]"
)
# The beginning of one, at the end of a piece of a stream.
_OPEN = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*\Z"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n\r]*(?:\x1b)?\Z"
    r"|\x1b[ -/]*\Z|\r\Z"
)
# Controls; zero-width, bidirectional and other invisible formatting; separators that are line breaks to some readers;
# surrogates, which no terminal's encoding takes; tags, with which whole sentences are hidden.
_HIDDEN = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    r"\ud800-\udfff\U000e0000-\U000e007f]"
)
_JOINER = re.compile(r"(?<=[\u2190-\u2bff\ufe0f\U0001f000-\U0001faff])\u200d(?=[\u2190-\u2bff\U0001f000-\U0001faff])")
_REORDERING = re.compile(r"[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]|[\U000e0000-\U000e007f]")


def shown(text: str) -> str:
    """The text as a person may see it."""
    if text.isascii() and text.isprintable():
        return text
    text = _SEQUENCE.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    return _HIDDEN.sub(lambda found: _written(found, text), text)


def _written(found: re.Match[str], text: str) -> str:
    if found[0] == "\u200d" and _JOINER.match(text, found.start()):
        return found[0]  # it joins the parts of one emoji
    return f"<U+{ord(found[0]):04X}>"


def reordering(text: str) -> list[tuple[int, str]]:
    """(line from 1, `U+202E`) of characters that make a text read otherwise than it is: a reader has to be told."""
    if text.isascii():
        return []
    return [(text.count("\n", 0, at.start()) + 1, f"U+{ord(at[0]):04X}") for at in _REORDERING.finditer(text)]


class Shower:
    """`shown` for a stream: a sequence that one piece begins and the next one ends goes as a whole."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, text: str) -> str:
        """The next piece, as far as it can be shown already."""
        text = self._held + text
        if text.endswith("\r"):
            cut = len(text) - 1
        else:
            opening = max(text.rfind(sign, max(len(text) - _MOST, 0)) for sign in "\x1b\x9b\x9d\x90\x98\x9e\x9f")
            if opening > 0 and text[opening - 1] == "\x1b":
                opening -= 1
            # The last escape may be the first half of the terminator of a string that began before it.
            string = re.compile(r"\x1b[\]PX^_][^\x07\x1b\x9c\n\r]*\x1b\Z").search(text, max(len(text) - _MOST, 0))
            opening = string.start() if string else opening
            cut = opening if opening >= 0 and _OPEN.match(text, opening) else len(text)
        self._held = text[cut:]
        return shown(text[:cut])

    def end(self) -> str:
        """What is left when nothing follows."""
        held, self._held = self._held, ""
        return shown(held)
