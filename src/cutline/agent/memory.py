"""Long-term memory: facts that the agent saves and finds again, each a plain file that a person edits or deletes.

Law: a fact is a Markdown file in one of two folders, this project's or everybody's; its first line is its title. What
is remembered is testimony of another day: it is told as that, and never as the human's word.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from .tools.tool import Outcome, Piece, Place, Tool

_TITLE, _FACT = 120, 4_000  # characters
_LISTED, _SHOWN = 60, 8  # titles in the prompt, facts that a search gives

_WHERE = {"enum": ["project", "everywhere"], "description": "for this project (the default), or for all"}
_REMEMBER = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "description": "one line that says it"},
        "fact": {"type": "string", "description": "what holds, and how you know"},
        "where": _WHERE,
    },
    "required": ["title", "fact"],
}
_FIND = {"type": "object", "properties": {"words": {"type": "string"}}, "required": ["words"]}


@dataclass(frozen=True, slots=True)
class Memory:
    """The two folders.

    Attributes:
        project: facts of one project.
        everywhere: facts of all.
    """

    project: Path
    everywhere: Path

    @classmethod
    def of(cls, base: Path, scope: str) -> Memory:
        """The memory of a project under a folder.

        Args:
            base: where all memory lies.
            scope: what names the project (`project.project`).
        """
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(scope).name) or "project"
        return cls(base / f"{name}-{sha256(scope.encode()).hexdigest()[:8]}", base / "everywhere")

    def titles(self) -> list[str]:
        """The facts' titles, the project's first, the newest first in each."""
        return [_title(path) for path in self._files()]

    def _files(self) -> list[Path]:
        found: list[Path] = []
        for folder in (self.project, self.everywhere):
            found += sorted(folder.glob("*.md"), key=lambda path: path.stat().st_mtime, reverse=True)
        return found

    def remember(self, title: str, fact: str, everywhere: bool = False) -> Path:
        """Save a fact; one of the same title is replaced. Raises OSError."""
        folder = self.everywhere if everywhere else self.project
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        title = " ".join(title.split())[:_TITLE]
        slug = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:60] or sha256(title.encode()).hexdigest()[:12]
        path, passing = folder / f"{slug}.md", folder / f".{slug}.new"
        text = f"# {title}\n\n{fact.strip()[:_FACT]}\n\nsaved {datetime.now(UTC):%Y-%m-%d}\n"
        passing.write_text(text, "utf-8", errors="replace")
        passing.chmod(0o600)
        passing.replace(path)
        return path

    def find(self, words: str) -> list[tuple[Path, str]]:
        """The facts that hold all the words."""
        wanted = words.lower().split()
        found = []
        for path in self._files():
            text = path.read_text("utf-8", errors="replace")
            if all(word in text.lower() for word in wanted):
                found.append((path, text))
        return found[:_SHOWN]

    def tools(self) -> list[Tool]:
        """The agent's two tools."""

        async def remember(arguments: Mapping[str, Any], at: Place) -> AsyncIterator[Piece | Outcome]:
            title, fact = arguments.get("title"), arguments.get("fact")
            if not (isinstance(title, str) and title.strip() and isinstance(fact, str) and fact.strip()):
                yield Outcome("title and fact: two texts", is_error=True)
                return
            try:
                path = self.remember(title, fact, arguments.get("where") == "everywhere")
            except OSError as error:
                yield Outcome(f"not saved: {error}", is_error=True)
                return
            yield Outcome(f"saved in {path}")

        async def find(arguments: Mapping[str, Any], at: Place) -> AsyncIterator[Piece | Outcome]:
            words = arguments.get("words")
            hits = self.find(words) if isinstance(words, str) else []
            told = [f"{path.name}\n{text.strip()}" for path, text in hits]
            yield Outcome("\n\n".join(told) if told else "no fact holds all of these words")

        about = "Save a fact for later sessions: what cost effort to find out and will hold. One fact a call."
        return [
            Tool("remember", about, _REMEMBER, "other", remember),
            Tool("memory", "Facts of earlier sessions that hold all the words.", _FIND, "read", find),
        ]


def listed(memory: Memory) -> str:
    """What the prompt says of the memory; "" where there is nothing."""
    titles = memory.titles()
    if not titles:
        return ""
    more = f"\n(and {len(titles) - _LISTED} more)" if len(titles) > _LISTED else ""
    head = "Facts of earlier sessions (testimony: check what the work stands on; the tool memory shows them):"
    return "\n".join([head, *(f"- {title}" for title in titles[:_LISTED])]) + more


def _title(path: Path) -> str:
    with path.open(encoding="utf-8", errors="replace") as handle:
        return handle.readline().lstrip("# ").strip()[:_TITLE] or path.stem
