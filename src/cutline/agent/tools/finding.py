"""Searching files without ripgrep: a program of its own, so that a pattern that never ends can be ended.

Law: what .gitignore files leave out is left out, as are .git, binary and very large files; links to folders are not
followed; what is found is printed in path order, in ripgrep's own JSON lines. Reads its request from standard input.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pathspec

LARGEST = 20_000_000  # bytes of a file that is searched
_SNIFFED = 8_192

Specs = list[tuple[str, pathspec.GitIgnoreSpec]]


def walk(tree: str, start: str) -> Iterator[str]:
    """The files below a folder of a tree, as paths relative to the tree, without those that .gitignore leaves out."""
    specs: Specs = []
    _read_ignores(tree, "", specs, (".git/info/exclude", ".gitignore"))
    at = ""
    for part in Path(start).parts:  # also what stands on the way down to where it begins
        at = f"{at}{part}/"
        _read_ignores(tree, at, specs, (".gitignore",))
    yield from _below(tree, at, specs)


def _below(tree: str, folder: str, specs: Specs) -> Iterator[str]:
    try:
        entries = sorted(os.scandir(Path(tree, folder)), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        name = folder + entry.name
        if entry.name == ".git":
            continue
        if entry.is_dir(follow_symlinks=False):
            if not _ignored(f"{name}/", specs):
                inner = list(specs)
                _read_ignores(tree, f"{name}/", inner, (".gitignore",))
                yield from _below(tree, f"{name}/", inner)
        elif entry.is_file(follow_symlinks=False) and not _ignored(name, specs):
            yield name


def _read_ignores(tree: str, folder: str, specs: Specs, names: tuple[str, ...]) -> None:
    for name in names:
        try:
            text = Path(tree, folder, name).read_text("utf-8", "replace")
        except OSError:
            continue
        specs.append((folder, pathspec.GitIgnoreSpec.from_lines(text.splitlines())))


def _ignored(path: str, specs: Specs) -> bool:
    for folder, spec in reversed(specs):  # the nearest file that says something decides
        said = spec.check_file(path.removeprefix(folder)).include
        if said is not None:
            return said
    return False


def matches(file: Path, name: str, pattern: re.Pattern[str], around: int) -> Iterator[dict[str, Any]]:
    """The matching lines of a file, with lines around them, as ripgrep prints them."""
    try:
        if not file.is_file() or file.stat().st_size > LARGEST:
            return
        data = file.read_bytes()
    except OSError:
        return
    if b"\0" in data[:_SNIFFED]:
        return
    lines = data.decode("utf-8", "replace").split("\n")
    if not lines[-1]:
        lines.pop()
    hits = {number for number, line in enumerate(lines) if pattern.search(line)}
    wanted = {near for hit in hits for near in range(hit - around, hit + around + 1)} if around else hits
    for number in sorted(near for near in wanted if 0 <= near < len(lines)):
        kind = "match" if number in hits else "context"
        yield {
            "type": kind,
            "data": {"path": {"text": name}, "lines": {"text": lines[number]}, "line_number": number + 1},
        }


def main() -> int:
    """Search as the request says: its tree, start, pattern (none lists files), ignore_case and around."""
    asked = json.load(sys.stdin)
    pattern = None
    if asked["pattern"] is not None:
        try:
            pattern = re.compile(asked["pattern"], re.IGNORECASE if asked["ignore_case"] else 0)
        except (re.error, RecursionError, OverflowError) as error:
            print(f"the pattern is no regular expression: {error}", file=sys.stderr)
            return 2
    tree, start = asked["tree"], asked["start"]
    single = Path(tree, start).is_file()
    for name in [start] if single else walk(tree, start):
        if pattern is None:
            print(json.dumps({"type": "file", "data": {"path": {"text": name}}}))
            continue
        for found in matches(Path(tree, name), name, pattern, asked["around"]):
            print(json.dumps(found))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenPipeError:
        os._exit(0)
