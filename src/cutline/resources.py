"""What a client may read of a project: its checkpoint documents, and the saved craft that they name.

Law: reading only, this project's only. A document comes as it was stored. A file is read only where a document names it
as a recipe and it lies, its links followed, in the project's directory or in the git repository around it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from . import recall, record
from .errors import InputError
from .sessions.clients import open_found, sessions
from .wire import anthropic as wire

SCHEME = "cutline://"
_DOCUMENT = re.compile(rf"{SCHEME}checkpoint/([0-9a-f]{{16}})\Z")
_PAGE = 100
_FILES = 20  # session files that are looked through where there is no record, the newest
_LARGEST = 2_000_000  # bytes of a recipe; what is larger is no craft
_SHOWN = 120  # characters of a document's words in a listing
_KINDS = {".md": "text/markdown", ".json": "application/json"}


@dataclass(frozen=True, slots=True)
class Listed:
    """A resource as a listing shows it.

    Attributes:
        uri: what it is read by.
        name, title: what it is, for programs and for people; one line.
        about: what it says, or where it was named; one line.
        kind: its MIME type.
        size: bytes; None where that is only known when it is read.
    """

    uri: str
    name: str
    title: str
    about: str
    kind: str
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Content:
    """What is read of a resource: text, or bytes where it is none."""

    uri: str
    kind: str
    text: str | None
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class _Kept:
    """A stored document with what names it.

    Attributes:
        id: 16 hex digits: its call's address, else made of the document itself.
        session, at: where and when; "" and None where that is not known.
        json: the arguments, as they are kept.
        stamp, flags: what the machine added, decoded; empty where there is no record.
    """

    id: str
    session: str
    at: float | None
    json: str
    stamp: dict[str, Any]
    flags: dict[str, Any]

    @property
    def said(self) -> dict[str, Any]:
        """The document's members."""
        return _object(self.json)


class Resources:
    """The documents and recipes of one project.

    Args:
        directory: the working directory.
        scope: the project, as recall is scoped.
        record: the durable record; None where recording is off: the client's session files are read then.
    """

    def __init__(self, directory: Path, scope: str, record: record.Record | None) -> None:
        self._directory = directory
        self._scope = scope
        self._record = record

    def listed(self, cursor: str = "") -> tuple[list[Listed], str]:
        """Documents, the newest first, then the recipes that they name; and the cursor of what follows, "" for none.

        Args:
            cursor: the URI behind which the listing goes on; one that is not there any more begins it anew.

        Raises:
            InputError: the record can't be read now.
        """
        kept = self._kept()
        every = [_as_document(one) for one in kept] + [_as_recipe(text, by) for text, by in _recipes(kept).items()]
        begin = next((number + 1 for number, one in enumerate(every) if one.uri == cursor), 0)
        page = every[begin : begin + _PAGE]
        return page, page[-1].uri if begin + _PAGE < len(every) else ""

    def read(self, uri: str) -> list[Content]:
        """A document and what the machine noted of it, or a recipe's file.

        Raises:
            InputError: it names nothing of this project's, or nothing that may be read; the text says what to do.
        """
        kept = self._kept()
        found = _DOCUMENT.match(uri)
        if found:
            for one in kept:
                if one.id == found[1]:
                    return _contents(uri, one)
            raise InputError(f"no checkpoint {found[1]} in this project; list the resources to see those there are")
        for text, by in _recipes(kept).items():
            if _recipe_uri(text) == uri:
                return [self._file(uri, text, by)]
        raise InputError(f"{_line(uri)}: no resource of this project; list the resources to see those there are")

    def _kept(self) -> list[_Kept]:
        """Every document once, the newest first."""
        if self._record is None:
            found = list(self._filed())
        else:
            found = [_of_record(one) for one in self._record.documents(self._scope)]
        return list({one.id: one for one in reversed(found)}.values())[::-1]

    def _filed(self) -> Iterator[_Kept]:
        """The documents of this directory's newest session files."""
        for found in sessions(self._directory)[:_FILES]:
            try:
                if found.file.path.suffix == ".jsonl" and b"micro_handoff" not in found.file.path.read_bytes():
                    continue  # most sessions have none, and reading one whole costs ten times as much
                hits = list(recall.of_session(open_found(found)))
            except (InputError, OSError):
                continue
            for hit in reversed(hits):
                if wire.is_stored(hit.call):
                    told = hit.call.arguments.decode("utf-8", "replace")
                    yield _Kept(hit.call.address, hit.session, hit.at, told, {}, {})

    # ------------------------------------------------------------------------------------------ recipes

    def _file(self, uri: str, text: str, by: list[_Kept]) -> Content:
        places = [place / text for one in by for place in self._bases(one)]
        path = next((path for path in places if _is_there(path)), None)
        if path is None:
            raise InputError(f"{_line(text)}: there is no such file here any more")
        real = path.resolve()
        if ".git" in real.parts or not any(real.is_relative_to(root) for root in self._roots()):
            raise InputError(f"{_line(text)}: lies outside of this project; read it with a tool of your own")
        data = _bytes(real, text)
        try:
            return Content(uri, _KINDS.get(real.suffix, "text/plain"), data.decode("utf-8"))
        except UnicodeDecodeError:
            return Content(uri, "application/octet-stream", None, data)

    def _bases(self, one: _Kept) -> Iterator[Path]:
        """What a document's relative paths may be relative to."""
        stamped = Path(str(one.stamp.get("directory") or self._directory))
        yield stamped / str(one.said.get("working_directory") or "")
        yield stamped
        yield self._directory

    def _roots(self) -> list[Path]:
        """The directory, and the repository around it: by its mark, since git itself may not be installed."""
        here = self._directory.resolve()
        root = next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)
        return [here, root]


def _recipes(kept: list[_Kept]) -> dict[str, list[_Kept]]:
    """The paths that documents name as recipes, and by which, the newest first."""
    found: dict[str, list[_Kept]] = {}
    for one in kept:
        named = one.said.get("recipes")
        for text in named if isinstance(named, list) else []:
            if isinstance(text, str) and text.strip():
                found.setdefault(text.strip(), []).append(one)
    return found


def _recipe_uri(text: str) -> str:
    return f"{SCHEME}recipe/{quote(text, safe='/', errors='replace')}"


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # no permission, a name that is too long or holds a zero byte
        return False


def _bytes(real: Path, text: str) -> bytes:
    """A regular file's bytes; whatever else a path leads to is not waited for."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        with os.fdopen(os.open(real, flags), "rb") as handle:
            held = os.fstat(handle.fileno())
            if not stat.S_ISREG(held.st_mode):
                raise InputError(f"{_line(text)}: is no file")
            if held.st_size > _LARGEST:
                raise InputError(f"{_line(text)}: weighs {held.st_size:,} bytes; read it with a tool of your own")
            return handle.read(_LARGEST + 1)
    except OSError as error:
        raise InputError(f"{_line(text)}: {(error.strerror or str(error)).lower()}") from None


# ---------------------------------------------------------------------------------------------- documents


def _of_record(one: record.Document) -> _Kept:
    id = one.address
    if not id:
        key = "\0".join((one.session, repr(one.at), one.json))
        id = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return _Kept(id, one.session, one.at, one.json, _object(one.stamp), _object(one.flags))


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _as_document(one: _Kept) -> Listed:
    when = recall.when(one.at).partition(",")[0] or "at an unknown time"
    session = f", session {one.session[:8]}" if one.session else ""
    done = _line(str(one.said.get("done") or ""))
    size = len(one.json.encode("utf-8", "surrogatepass"))
    uri = f"{SCHEME}checkpoint/{one.id}"
    return Listed(uri, f"checkpoint {one.id}", _line(f"checkpoint {when}{session}"), done, "application/json", size)


def _as_recipe(text: str, by: list[_Kept]) -> Listed:
    shown = _line(text)
    kind = _KINDS.get(Path(shown).suffix, "text/plain")
    return Listed(_recipe_uri(text), shown, f"recipe {shown}", f"named by checkpoint {by[0].id}", kind)


def _contents(uri: str, one: _Kept) -> list[Content]:
    """The document as it is kept, and apart from it what the machine noted."""
    noted = {"session": one.session, "at": recall.when(one.at).partition(",")[0], "stamp": one.stamp, **one.flags}
    kind = "application/json"
    return [Content(uri, kind, one.json), Content(f"{uri}/noted", kind, json.dumps(noted, ensure_ascii=False))]


def _line(text: str) -> str:
    """Words of a document or of a client as one line that is safe to show."""
    shown = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return shown if len(shown) <= _SHOWN else f"{shown[: _SHOWN - 1]}…"
