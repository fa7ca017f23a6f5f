"""Markdown as it is written, given out block by block as each is complete. Law: pure; no character is lost or added,
but the line breaks around a block, and the fence that a block too long to wait for is cut at.
"""

from __future__ import annotations

import re

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_LARGEST = 16_000  # characters of a block; a longer one is given out in parts


class Blocks:
    """A text that streams."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._size = 0
        self._open = ""
        self._fence = ""
        self._partial: list[str] = []

    @property
    def rest(self) -> str:
        """What is not complete yet."""
        return "\n".join([*self._lines, "".join(self._partial)])

    def feed(self, text: str) -> list[str]:
        """Take a piece in; the blocks that it completes."""
        found: list[str] = []
        first, *others = text.split("\n")
        self._partial.append(first)
        for line in others:
            found += self._line("".join(self._partial))
            self._partial = [line]
        if self._size + sum(map(len, self._partial)) > _LARGEST:
            self._lines.append("".join(self._partial))
            self._partial = []
            found += self._cut()
        return found

    def end(self) -> list[str]:
        """What is left when nothing follows, as the last blocks."""
        found = self._line("".join(self._partial))
        self._partial, self._open, self._fence = [], "", ""
        return found + self._take()

    def _line(self, line: str) -> list[str]:
        mark = _FENCE.fullmatch(line)
        if self._open:
            self._keep(line)
            if mark and mark[1].startswith(self._open) and not mark[2].strip():
                self._open = self._fence = ""
                return self._take()
            return []
        if mark and not ("`" in mark[1] and "`" in mark[2]):
            before = self._take()
            self._open, self._fence = mark[1], line
            self._keep(line)
            return before
        if not line.strip():
            return self._take()
        self._keep(line)
        return []

    def _keep(self, line: str) -> None:
        self._lines.append(line)
        self._size += len(line) + 1

    def _take(self) -> list[str]:
        text = "\n".join(self._lines)
        self._lines, self._size = [], 0
        return [text] if text.strip() else []

    def _cut(self) -> list[str]:
        fence, opened = self._fence, self._open
        if opened:
            self._lines.append(opened)
        found = self._take()
        if opened:
            self._keep(fence)
        return found
