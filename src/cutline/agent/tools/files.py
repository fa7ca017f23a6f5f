"""The tools that read and change files: `read`, `write`, `edit`.

Law: a file is written whole or not at all, keeps its mode, and what a link points to is written, never the link. What
is changed is worked out by `editing` from the file as it is at that moment. No file is read without bound.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import secrets
import stat
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from . import arguments, editing, plain
from .tool import Outcome, Piece, Place, Tool

LINES = 2_000
BYTES = 60_000  # of what one reading gives
_LONGEST = 2_000  # characters of a line
_WHOLE = 20_000_000  # bytes of a file that is held in memory
_SIGNS = (
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF", "a PDF"),
    (b"PK\x03\x04", "a zip archive"),
    (b"\x1f\x8b", "gzip data"),
    (b"\x7fELF", "an ELF program"),
    (b"SQLite format 3", "an SQLite database"),
)


def locate(at: Place, path: str) -> Path:
    """The file that an argument names: relative to the working tree, `~` is the user's folder."""
    if path == "~" or path.startswith("~/"):
        path = at.environment.get("HOME", "~") + path[1:]
    return Path(os.path.normpath(at.tree / path)) if ".." not in Path(path).parts else at.tree / path


async def _read(given: Mapping[str, Any], at: Place) -> AsyncIterator[Piece | Outcome]:
    yield await asyncio.to_thread(_reading, given, at)


def _reading(given: Mapping[str, Any], at: Place) -> Outcome:
    begin = b""
    try:
        path = arguments.text(given, "file_path")
        first = int(arguments.number(given, "offset", 1, least=1, most=1e12))
        most = int(arguments.number(given, "limit", LINES, least=1, most=1e6))
        file = locate(at, path)
        size = _regular(file, path)
        with file.open("rb") as opened:
            begin = opened.read(65_536)
            if size > _WHOLE:
                if b"\0" in begin:
                    raise editing.Refused(f"binary: {size:,} bytes with a zero byte among them")
                opened.seek(0)
                return Outcome(_numbered(_decoded(opened), first, most, None, [f"huge: {size:,} bytes"]))
            data = begin + opened.read(_WHOLE)
        text = editing.read(data)
    except (arguments.Wrong, editing.Refused) as wrong:
        kind = next((f" ({kind})" for sign, kind in _SIGNS if begin.startswith(sign)), "")
        return Outcome(f"{wrong}{kind}", is_error=True)
    except (OSError, ValueError) as error:
        return Outcome(_fault(error, given.get("file_path")), is_error=True)
    notes = [text.encoding] if text.encoding != "utf-8" or text.mark else []
    lines = text.text.split("\n")
    if lines[-1]:
        notes.append("no line feed at its end")
    else:
        lines.pop()
    if text.crlf:
        lines = [line.removesuffix("\r") for line in lines]
        notes.append("lines end with CR LF")
    if marks := plain.reordering(text.text):
        where = ", ".join(f"{sign} in line {line}" for line, sign in marks[:5])
        notes.append(f"characters that make it read otherwise than it is: {where}")
    return Outcome(_numbered(lines, first, most, len(lines), notes))


def _decoded(lines: Iterable[bytes]) -> Iterable[str]:
    for line in lines:
        yield line.decode("utf-8", "replace").removesuffix("\n")


def _numbered(lines: Iterable[str], first: int, most: int, total: int | None, notes: list[str]) -> str:
    out: list[str] = []
    size = cut = 0
    more = False
    for number, line in enumerate(itertools.islice(lines, first - 1, None), first):
        if number >= first + most or size > BYTES:
            more = True
            break
        if len(line) > _LONGEST:
            cut += 1
            line = f"{line[:_LONGEST]}[… {len(line) - _LONGEST:,} characters more]"
        out.append(f"{number:>6}\t{line}")
        size += len(line.encode("utf-8", "replace")) + 8
    last = first + len(out) - 1
    if not out:
        notes = ["an empty file" if total == 0 else f"it ends before line {first}" + (f", at {total}" if total else "")]
    elif more or first > 1:
        of = f" of {total:,}" if total is not None else ""
        notes.insert(0, f"lines {first:,} to {last:,}{of}" + (f"; go on with offset {last + 1}" if more else ""))
    if cut:
        notes.append(f"{cut} long line{'s' if cut > 1 else ''} cut at {_LONGEST:,} characters")
    return "\n".join([*out, f"[{'; '.join(notes)}]"] if notes else out)


async def _write(given: Mapping[str, Any], at: Place) -> AsyncIterator[Piece | Outcome]:
    yield await asyncio.to_thread(_changing, _written, given, at)


async def _edit(given: Mapping[str, Any], at: Place) -> AsyncIterator[Piece | Outcome]:
    yield await asyncio.to_thread(_changing, _edited, given, at)


def _written(given: Mapping[str, Any], before: editing.Text | None) -> editing.Text:
    return editing.rewritten(before, arguments.text(given, "content"))


def _edited(given: Mapping[str, Any], before: editing.Text | None) -> editing.Text:
    old, new = arguments.text(given, "old_string"), arguments.text(given, "new_string")
    if before is None:
        raise editing.Refused("there is no such file; write makes one")
    return editing.edited(before, old, new, everywhere=arguments.flag(given, "all"))


def _worked_out(make: Any, given: Mapping[str, Any], at: Place) -> tuple[Path, editing.Text | None, editing.Text, str]:
    path = arguments.text(given, "file_path")
    file = locate(at, path)
    before = None
    if os.path.lexists(file):
        size = _regular(file, path)
        if size > _WHOLE:
            raise editing.Refused(f"{path} has {size:,} bytes; files over {_WHOLE:,} are changed with bash")
        try:
            before = editing.read(file.read_bytes())
        except editing.Refused as wrong:
            if make is _edited:
                raise editing.Refused(f"{path}: {wrong}") from None
            before = editing.Text("", "utf-8")
    after = make(given, before)
    after.data()
    name = path if Path(path).is_absolute() or path.startswith("~") else file.relative_to(at.tree).as_posix()
    change = editing.diff(before.text if before else "", after.text, name.lstrip("/"), created=before is None)
    return file, before, after, change


def _changing(make: Any, given: Mapping[str, Any], at: Place) -> Outcome:
    try:
        file, before, after, change = _worked_out(make, given, at)
        target = file.resolve()
        _replace(target, after.data())
    except (arguments.Wrong, editing.Refused) as wrong:
        return Outcome(f"{wrong}; nothing was changed", is_error=True)
    except (OSError, ValueError) as error:
        return Outcome(f"{_fault(error, given.get('file_path'))}; nothing was changed", is_error=True)
    lines = change.splitlines()
    added = sum(line.startswith("+") for line in lines[2:])
    gone = sum(line.startswith("-") for line in lines[2:])
    what = "made" if before is None else "changed" if change else "left as it was"
    same = f", {added} line{'' if added == 1 else 's'} added, {gone} removed" if change else ""
    where = next(
        (f", from line {line.split('+')[1].split(',')[0].split(' ')[0]}" for line in lines if line[:3] == "@@ "), ""
    )
    return Outcome(f"{given['file_path']} {what}{same}{where if before else ''}", diff=change, changed=(target,))


def _preview(make: Any) -> Any:
    def preview(given: Mapping[str, Any], at: Place) -> str:
        try:
            change = _worked_out(make, given, at)[3]
        except (arguments.Wrong, editing.Refused, ValueError) as wrong:
            return f"it would fail: {wrong}"
        except OSError as error:
            return f"it would fail: {_fault(error, given.get('file_path'))}"
        return plain.shown(change) or "it would change nothing"

    return preview


def _regular(file: Path, path: str) -> int:
    """The size of a regular file.

    Raises:
        Refused: a folder, a pipe, a device.
        OSError: it is not there.
    """
    status = file.stat()
    if stat.S_ISDIR(status.st_mode):
        raise editing.Refused(f"{path} is a folder; glob lists what is in it")
    if not stat.S_ISREG(status.st_mode):
        raise editing.Refused(f"{path} is no regular file (a pipe, a socket or a device)")
    return status.st_size


def _replace(file: Path, data: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    passing = file.with_name(f".{file.name[:100]}.{secrets.token_hex(4)}")
    handle = os.open(passing, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o666)
    try:
        with os.fdopen(handle, "wb") as opened:
            with suppress(FileNotFoundError):
                status = file.stat()
                if not os.access(file, os.W_OK):
                    raise PermissionError(13, "the file is read-only")
                with suppress(OSError):
                    os.fchown(opened.fileno(), status.st_uid, status.st_gid)
                os.fchmod(opened.fileno(), stat.S_IMODE(status.st_mode))
            opened.write(data)
            opened.flush()
            os.fsync(opened.fileno())
        passing.replace(file)
    except BaseException:
        passing.unlink(missing_ok=True)
        raise


def _fault(error: Exception, path: Any) -> str:
    if isinstance(error, FileNotFoundError):
        return f"there is no file {path}"
    return f"{path}: {getattr(error, 'strerror', None) or error}"


def _schema(required: list[str], **properties: dict[str, Any]) -> dict[str, Any]:
    path = {"type": "string", "description": "Relative to the working tree, or absolute."}
    members = {"file_path": path, **properties}
    return {"type": "object", "properties": members, "required": required, "additionalProperties": False}


READ = Tool(
    "read",
    f"Read a text file, each line with its number and a tab before it: {LINES:,} lines or {BYTES // 1000} KB at once,"
    " the rest with `offset`. Its last line, in brackets, says what the lines do not show: where to go on, another"
    " encoding than UTF-8, CR LF, no line feed at the end.",
    _schema(
        ["file_path"],
        offset={"type": "integer", "minimum": 1, "description": "The first line wanted, from 1."},
        limit={"type": "integer", "minimum": 1, "description": "How many lines."},
    ),
    "read",
    _read,
    paths=("file_path",),
)
WRITE = Tool(
    "write",
    "Write a whole file, new or in place of the one that is there (its mode, encoding and line endings stay)."
    " Folders are made. To change a part of a file, edit is shorter and surer.",
    _schema(["file_path", "content"], content={"type": "string"}),
    "edit",
    _write,
    _preview(_written),
    ("file_path",),
)
EDIT = Tool(
    "edit",
    "Change a file in one place: `old_string`, exactly as it is there (white space too, without the line numbers of"
    " read) and only once, becomes `new_string`. Everything else stays byte for byte. `all` changes every place.",
    _schema(
        ["file_path", "old_string", "new_string"],
        old_string={"type": "string"},
        new_string={"type": "string"},
        all={"type": "boolean", "description": "Change every place; default false."},
    ),
    "edit",
    _edit,
    _preview(_edited),
    ("file_path",),
)
