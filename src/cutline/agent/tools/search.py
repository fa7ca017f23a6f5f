"""The tools that find: `grep` and `glob`, by ripgrep where it is installed, else by `finding`.

Law: both ways leave out what .gitignore does and .git, look at hidden files, give the same lines in path order, and are
ended when they take too long or found enough; what was left out is said.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import shutil
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any

import pathspec

from . import arguments, files, finding
from .tool import Outcome, Piece, Place, Tool

SECONDS = 30
LIMIT = 200
MOST = 2_000
_WIDTH = 300  # characters of a line that are shown
_BYTES = 60_000
_LINE = 4 * finding.LARGEST  # bytes of one line of JSON


async def _grep(given: Mapping[str, Any], at: Place) -> AsyncIterator[Piece | Outcome]:
    try:
        pattern = arguments.text(given, "pattern")
        asked = {
            "pattern": pattern,
            "ignore_case": arguments.flag(given, "ignore_case"),
            "around": int(arguments.number(given, "context", 0, least=0, most=20)),
        }
        limit = int(arguments.number(given, "limit", LIMIT, least=1, most=MOST))
        wanted, names_only = _globs(arguments.text(given, "glob", "")), arguments.flag(given, "files_only")
        rows, counts, why = await _found(asked, given, at, wanted, limit, names_only)
    except (arguments.Wrong, OSError, ValueError) as wrong:
        yield Outcome(str(wrong), is_error=True)
        return
    if names_only:
        rows = [f"{name}: {count}" for name, count in sorted(counts.items())]
    total = sum(counts.values())
    said = f"{total:,} match{'' if total == 1 else 'es'} in {len(counts):,} file{'' if len(counts) == 1 else 's'}"
    yield _outcome(rows, said, why)


async def _glob(given: Mapping[str, Any], at: Place) -> AsyncIterator[Piece | Outcome]:
    try:
        wanted = _globs(arguments.text(given, "pattern"))
        limit = int(arguments.number(given, "limit", LIMIT, least=1, most=MOST))
        rows, counts, why = await _found({"pattern": None}, given, at, wanted, limit, False)
    except (arguments.Wrong, OSError, ValueError) as wrong:
        yield Outcome(str(wrong), is_error=True)
        return
    yield _outcome(sorted(rows), f"{len(counts):,} file{'' if len(counts) == 1 else 's'}", why)


def _outcome(rows: list[str], said: str, why: str) -> Outcome:
    size, kept = 0, len(rows)
    for index, row in enumerate(rows):
        size += len(row.encode("utf-8", "replace")) + 1
        if size > _BYTES:
            kept, why = index, why or f"only the first {_BYTES // 1000} KB are shown"
            break
    return Outcome("\n".join([*rows[:kept], f"[{said}{f'; {why}; narrow the search' if why else ''}]"]))


async def _found(
    asked: dict[str, Any],
    given: Mapping[str, Any],
    at: Place,
    wanted: pathspec.GitIgnoreSpec | None,
    limit: int,
    names_only: bool,
) -> tuple[list[str], dict[str, int], str]:
    """(lines to show, matches by file, why it is not all)."""
    where = arguments.text(given, "path", ".")
    start = files.locate(at, where)
    if not start.exists():
        raise arguments.Wrong(f"there is no {where}")
    if start.is_relative_to(at.tree):
        base, inside = at.tree, start.relative_to(at.tree)
    else:
        base, inside = (start.parent, Path(start.name)) if start.is_file() else (start, Path())
    rows: list[str] = []
    counts: dict[str, int] = {}
    why = ""
    begin = inside.as_posix() if inside.parts else ""
    async with aclosing(_lines(asked, base, begin, at)) as found:
        async for kind, name, number, line in found:
            if kind == "late":
                why = f"stopped after {SECONDS} s"
                break
            if wanted is not None and not wanted.match_file(name):
                continue
            shown = name if base == at.tree else str(base / name)
            if kind == "context":
                rows.append(f"{shown}-{number}-{_short(line)}")
                continue
            if (len(counts) if names_only else sum(counts.values()) if kind == "match" else len(rows)) >= limit and (
                not names_only or shown not in counts
            ):
                why = f"stopped at {limit:,}"
                break
            counts[shown] = counts.get(shown, 0) + 1
            if kind == "file":
                rows.append(shown)
            else:
                rows.append(f"{shown}:{number}:{_short(line)}")
    return rows, counts, why


def _short(line: str) -> str:
    line = line.rstrip("\r\n")
    return line if len(line) <= _WIDTH else f"{line[:_WIDTH]}[… {len(line) - _WIDTH:,} more]"


async def _lines(
    asked: dict[str, Any], base: Path, start: str, at: Place
) -> AsyncGenerator[tuple[str, str, int, str], None]:
    """(match, context, file or late; path; line number; line) as they are found; the program ends with the iterator."""
    program = shutil.which("rg", path=at.environment.get("PATH"))
    command = _ripgrep(program, asked, start) if program else [sys.executable, "-P", finding.__file__]
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=base,
        env=_environment(at) if not program else dict(at.environment) | {"RIPGREP_CONFIG_PATH": ""},
        stdin=asyncio.subprocess.DEVNULL if program else asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=_LINE,
    )
    assert process.stdout is not None and process.stderr is not None
    faults = asyncio.create_task(process.stderr.read())
    done = False
    try:
        if process.stdin is not None:
            process.stdin.write(
                json.dumps({"ignore_case": False, "around": 0, **asked, "tree": str(base), "start": start}).encode()
            )
            process.stdin.close()
        until = asyncio.get_running_loop().time() + SECONDS
        while True:
            try:
                async with asyncio.timeout_at(until):
                    row = await process.stdout.readline()
            except TimeoutError:
                yield "late", "", 0, ""
                return
            if not row:
                break
            if (found := _parsed(row, listing=asked["pattern"] is None and bool(program))) is not None:
                yield found
        code, said = await process.wait(), (await faults).decode("utf-8", "replace")
        done = True
        if code not in (0, 1) and (code != 2 or "regex" in said or "regular expression" in said):
            raise ValueError(said.strip()[-600:] or f"the search ended with exit code {code}")
    finally:
        if not done:
            with suppress(ProcessLookupError):
                process.kill()
            faults.cancel()
            await asyncio.gather(faults, return_exceptions=True)
            with suppress(Exception):
                while await process.stdout.read(65_536):
                    pass
            await process.wait()


def _ripgrep(program: str, asked: dict[str, Any], start: str) -> list[str]:
    common = ["--hidden", "--no-require-git", "--no-ignore-global", "--no-ignore-dot", "--glob", "!.git", "--sort"]
    common = [program, "--no-config", *common, "path"]
    place = ["--", f"./{start}"]
    if asked["pattern"] is None:
        return [*common, "--files", *place]
    options = ["--json", "--max-filesize", str(finding.LARGEST), "--context", str(asked["around"])]
    options += ["--ignore-case"] if asked["ignore_case"] else ["--case-sensitive"]
    return [*common, *options, "--regexp", asked["pattern"], *place]


def _environment(at: Place) -> dict[str, str]:
    """For our own Python: where this one finds its modules."""
    return {**at.environment, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry), "PYTHONUTF8": "1"}


def _parsed(row: bytes, *, listing: bool) -> tuple[str, str, int, str] | None:
    if listing:
        return "file", row.decode("utf-8", "replace").rstrip("\n").removeprefix("./"), 0, ""
    data = json.loads(row)
    if data["type"] not in ("match", "context", "file"):
        return None
    held = data["data"]
    path = _said(held["path"]).removeprefix("./")
    return data["type"], path, held.get("line_number") or 0, _said(held.get("lines", {"text": ""}))


def _said(value: dict[str, str]) -> str:
    return value["text"] if "text" in value else base64.b64decode(value["bytes"]).decode("utf-8", "replace")


def _globs(pattern: str) -> pathspec.GitIgnoreSpec | None:
    if not pattern:
        return None
    return pathspec.GitIgnoreSpec.from_lines(_braces(pattern))


def _braces(pattern: str, most: int = 64) -> list[str]:
    """`*.{ts,tsx}` as `*.ts` and `*.tsx`."""
    done: list[str] = []
    todo = [pattern]
    while todo and len(done) + len(todo) <= most:
        one = todo.pop()
        found = re.search(r"\{([^{}]*)\}", one)
        if found is None:
            done.append(one)
        else:
            todo += [one[: found.start()] + part + one[found.end() :] for part in found[1].split(",")]
    return done + todo


_PATH = {"type": "string", "description": "Folder or file to search; default: the working tree."}
_LIMIT = {"type": "integer", "minimum": 1, "maximum": MOST, "description": f"Default {LIMIT}."}

GREP = Tool(
    "grep",
    "Search the contents of files for a regular expression, line by line: `path:line:text` in path order. What"
    " .gitignore leaves out, binary files and .git are not searched.",
    {
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "description": "A regular expression."},
            "path": _PATH,
            "glob": {"type": "string", "description": "Only files like this, as in .gitignore: *.py, src/**, *.{c,h}."},
            "ignore_case": {"type": "boolean"},
            "context": {"type": "integer", "minimum": 0, "maximum": 20, "description": "Lines before and after."},
            "files_only": {"type": "boolean", "description": "Only the files, with how many lines match in each."},
            "limit": _LIMIT,
        },
        "required": ["pattern"],
        "additionalProperties": False,
    },
    "read",
    _grep,
    paths=("path",),
)
GLOB = Tool(
    "glob",
    "List files by name, in path order: a pattern as in .gitignore (*.py at any depth, src/*.py, docs/**, *.{c,h}; *"
    " for all). What .gitignore leaves out and .git are not listed.",
    {
        "type": "object",
        "properties": {"pattern": {"type": "string"}, "path": _PATH, "limit": _LIMIT},
        "required": ["pattern"],
        "additionalProperties": False,
    },
    "read",
    _glob,
    paths=("path",),
)
