"""Entries of ours in a settings file of the user's, put in and taken out of its text.

Law: pure. Every byte that is not ours stays, comments and trailing commas included. What comes out is read again and
held against what was meant: where the two differ, nothing is changed and the person is told to do it by hand.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from .. import spans
from ..errors import InputError, Unreadable

Kind = Literal["json", "toml"]

_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\r\n]*|/\*.*?\*/', re.S)
_TRAILING = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])')
_HEADING = re.compile(r"\s*\[\[?([^\]]+)\]\]?\s*(?:#.*)?", re.S)


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that a settings file is given.

    Attributes:
        path: the keys that lead to it.
        value: what stands there; with `joins`, elements for the list that stands there.
        joins: it joins a list of the user's, and does not stand alone.
        yields: whatever the user has set there counts instead.
    """

    path: tuple[str, ...]
    value: Any
    joins: bool = False
    yields: bool = False


@dataclass(frozen=True, slots=True)
class Put:
    """A file with its entries.

    Attributes:
        data: the bytes.
        steps: what was inserted, as (offset, length) in the bytes of each step, the last step's first.
        made: objects and lists that were made to hold entries, the outer ones first.
        entries: those that were put in; what stood there already is not ours to take out.
    """

    data: bytes
    steps: tuple[tuple[tuple[int, int], ...], ...] = ()
    made: tuple[tuple[str, ...], ...] = ()
    entries: tuple[Entry, ...] = ()


def put(kind: Kind, data: bytes, entries: Sequence[Entry]) -> Put:
    """Put entries into a file.

    Args:
        kind: the file's.
        data: its bytes; b"" for a file that is not there.
        entries: what to put in; where one stands already as it is meant, nothing is changed for it.

    Raises:
        InputError: the file can't be read, something else stands in an entry's place, or no edit does what is meant.
    """
    steps: list[tuple[tuple[int, int], ...]] = []
    made: list[tuple[str, ...]] = []
    ours: list[Entry] = []
    for entry in entries:
        if entry.joins:
            held = _at(value(kind, data), entry.path)
            known = held if isinstance(held, list) else []
            entry = replace(entry, value=[one for one in entry.value if one not in known])
        wanted = _applied(value(kind, data), entry)
        inserted, holders = (_into_json if kind == "json" else _into_toml)(data, entry)
        after, places = _with(data, inserted)
        if not _says(kind, after, wanted):
            raise InputError(f"{'.'.join(entry.path)} can't be put in without touching what is there")
        if places:
            steps.insert(0, places)
            made += holders
            ours.append(entry)
        data = after
    return Put(data, tuple(steps), tuple(made), tuple(ours))


def undone(data: bytes, steps: Sequence[Sequence[tuple[int, int]]]) -> bytes:
    """The bytes without what was inserted, where nothing else has changed since."""
    for step in steps:
        for at, length in sorted(step, reverse=True):
            data = data[:at] + data[at + length :]
    return data


def take(kind: Kind, data: bytes, entries: Sequence[Entry], made: Sequence[tuple[str, ...]]) -> bytes:
    """Take entries out of a file that was edited since they were put in.

    Args:
        kind: the file's.
        data: its bytes.
        entries: what was put in; one that is gone already is no matter.
        made: what was made to hold them: it goes too where it is empty then.

    Raises:
        InputError: the file can't be read, or no edit does what is meant.
    """
    for entry in entries:
        wanted, found = _taken(value(kind, data), entry)
        if not found:
            continue
        data = (_out_of_json if kind == "json" else _out_of_toml)(data, entry)
        # A table of TOML that was only named in ours is gone with it.
        if not (_says(kind, data, wanted) or (kind == "toml" and _says(kind, data, _filled(wanted, entry.path[:-1])))):
            raise InputError(f"{'.'.join(entry.path)} can't be taken out by itself; take it out by hand")
    for path in sorted(made, key=len, reverse=True):
        if kind == "json" and _at(value(kind, data), path) in ({}, []):
            data = _out_of_json(data, Entry(path, None))
    return data


def holds(kind: Kind, data: bytes, entry: Entry) -> bool:
    """Whether a file holds an entry as it is meant.

    Raises:
        InputError: the file can't be read.
    """
    found = _at(value(kind, data), entry.path)
    if entry.yields:
        return found is not None
    if entry.joins:
        return isinstance(found, list) and all(one in found for one in entry.value)
    return bool(found == entry.value)


def value(kind: Kind, data: bytes) -> dict[str, Any]:
    """What a file says; nothing for an empty one.

    Raises:
        InputError: it can't be read.
    """
    if not data.strip():
        return {}
    try:
        if kind == "toml":
            return tomllib.loads(data.decode())
        found = json.loads(_bare(_uncommented(spans.view(data))).encode("latin-1"))
    except Unreadable as error:
        raise InputError(str(error)) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"no {kind.upper()}: {error}") from None
    if not isinstance(found, dict):
        raise InputError("it has to be a JSON object")
    return found


def _says(kind: Kind, data: bytes, wanted: Mapping[str, Any]) -> bool:
    """Whether an edited file says what it is to say."""
    try:
        return value(kind, data) == wanted
    except InputError:
        return False


def _with(data: bytes, inserted: Sequence[tuple[int, bytes]]) -> tuple[bytes, tuple[tuple[int, int], ...]]:
    """Bytes with texts put in at offsets, and where these stand then."""
    parts, places, last, size = [], [], 0, 0
    for at, text in sorted(inserted, key=lambda one: one[0]):
        parts += [data[last:at], text]
        size += at - last
        places.append((size, len(text)))
        size, last = size + len(text), at
    return b"".join([*parts, data[last:]]), tuple(places)


def _at(value: Any, path: Sequence[str]) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _applied(value: dict[str, Any], entry: Entry) -> dict[str, Any]:
    """What a file is to say with an entry."""
    made: dict[str, Any] = _copy(value)
    holder = made
    for key in entry.path[:-1]:
        holder = holder.setdefault(key, {})
        if not isinstance(holder, dict):
            raise InputError(f"{key} is no table of settings there")
    last = entry.path[-1]
    if entry.joins:
        held = holder.setdefault(last, [])
        if not isinstance(held, list):
            raise InputError(f"{'.'.join(entry.path)} is no list there")
        held += [one for one in entry.value if one not in held]
    elif holder.setdefault(last, entry.value) != entry.value and not entry.yields:
        raise InputError(f"{'.'.join(entry.path)} stands there already, and is another's; take it out or rename it")
    return made


def _taken(value: dict[str, Any], entry: Entry) -> tuple[dict[str, Any], bool]:
    """What a file is to say without an entry, and whether it has it."""
    made = _copy(value)
    holder, last = _at(made, entry.path[:-1]), entry.path[-1]
    if not isinstance(holder, dict) or last not in holder:
        return made, False
    if not entry.joins:
        del holder[last]
        return made, True
    held = holder[last]
    if not isinstance(held, list) or not any(one in held for one in entry.value):
        return made, False
    holder[last] = [one for one in held if one not in entry.value]
    return made, True


def _filled(value: dict[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """Without the tables on a path that are empty, the inner ones first."""
    for depth in range(len(path), 0, -1):
        holder = _at(value, path[: depth - 1])
        if holder and holder.get(path[depth - 1]) == {}:
            del holder[path[depth - 1]]
    return value


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(held) for key, held in value.items()}
    return [_copy(one) for one in value] if isinstance(value, list) else value


# ------------------------------------------------------------------------------------------------ JSON with comments


def _uncommented(text: str) -> str:
    """The text with blanks in place of comments, nothing moved."""
    return _COMMENT.sub(lambda found: found[1] or " " * len(found[0]), text)


def _bare(text: str) -> str:
    """The same without commas behind the last member or element."""
    return _TRAILING.sub(lambda found: found[1] or " ", text)


class _Document:
    """A file's text as it stands (`given`), without comments (`shown`), and as JSON (`text`), all of one length."""

    def __init__(self, data: bytes) -> None:
        self.given = spans.view(data)
        self.shown = _uncommented(self.given)
        self.text = _bare(self.shown)
        self.root = spans.skip(self.text, 0)
        self.newline = "\r\n" if "\r\n" in self.shown else "\n"
        first = re.compile(r"\{\s*?\n([ \t]+)").match(self.shown, self.root)
        self.unit = first[1] if first else "  "

    def parts(self, at: int) -> tuple[list[tuple[str, int, int, int]], int]:
        """The members or elements of what begins at an offset: key, begin, and the value's span; and where it ends."""
        if self.text[at] == "{":
            members, end = spans.members(self.text, at)
            return [(one.key, one.at, one.start, one.end) for one in members], end
        elements, end = spans.elements(self.text, at)
        return [("", start, start, stop) for start, stop in elements], end

    def find(self, path: Sequence[str]) -> tuple[int, int]:
        """Where the value at as much of a path as there is begins, and how many keys lead to it."""
        at = self.root
        for depth, key in enumerate(path):
            found = [part for part in self.parts(at)[0] if part[0] == key] if self.text[at] == "{" else []
            if len(found) > 1:
                raise InputError(f"{'.'.join(path[: depth + 1])} stands there twice")
            if not found:
                return at, depth
            at = found[0][2]
        return at, len(path)

    def inserted(self, at: int, depth: int, made: Sequence[str]) -> list[tuple[int, bytes]]:
        """What puts members or elements behind the last one of what stands at an offset.

        Args:
            at: where it begins.
            depth: how many keys lead to it.
            made: the members or elements, each with `\\n` where a line ends, indented as if it began one.
        """
        parts, end = self.parts(at)
        close = end - 1
        pad = self.pad(parts[-1][1]) if parts else ""
        pad = pad or self.newline + self.unit * (depth + 1)
        lines = [pad + one.replace("\n", pad) for one in made]
        if not parts:
            closing = "" if "\n" in self.shown[at:close] else self.newline + self.unit * depth
            return [(at + 1, (",".join(lines) + closing).encode())]
        last = parts[-1][3]
        if "\n" not in self.shown[last:close]:
            flat = ", ".join(" ".join(part.strip() for part in one.split("\n")) for one in made)
            return [(last, f", {flat}".encode())]
        comma = self.shown.find(",", last, close)
        behind = max(last, comma + 1)
        # What stands behind the last one on its line, a comment, stays there.
        line = self.shown.find("\n", behind, close)
        line = behind if line < 0 else line - (self.shown[line - 1] == "\r" and line > behind)
        text = ",".join(lines)
        if comma >= 0:
            return [(line, f"{text},".encode())]
        return [(last, f",{text}".encode())] if line == last else [(last, b","), (line, text.encode())]

    def is_of(self, entry: Entry, part: tuple[str, int, int, int]) -> bool:
        """Whether a member or element is an entry's."""
        key, _, start, end = part
        if entry.joins:
            return json.loads(self.text[start:end].encode("latin-1")) in entry.value
        return key == entry.path[-1]

    def cuts(
        self, parts: Sequence[tuple[str, int, int, int]], number: int, opens: int, closes: int
    ) -> list[tuple[int, int]]:
        """What goes with a member or element: its comma, and the line or the blanks that it leaves empty."""
        _, begin, _, end = parts[number]
        if len(parts) == 1 and not f"{self.given[opens:begin]}{self.given[end:closes]}".strip():
            return [(opens, closes)]
        comma = self.shown.find(",", end)
        is_behind = comma >= 0 and not self.shown[end:comma].strip()
        cuts = [(begin, end)]
        if is_behind:
            cuts.append((comma, comma + 1))
        elif number:
            before = self.shown.index(",", parts[number - 1][3])
            cuts.append((before, before + 1))
        line = self.shown.rfind("\n", 0, begin)
        if line >= 0 and not self.shown[line:begin].strip():
            cuts.append((line - (self.shown[line - 1] == "\r"), begin))
        elif is_behind:
            cuts.append((comma + 1, spans.skip(self.text, comma + 1)))
        elif number:
            cuts.append((before + 1, begin))
        return cuts

    def pad(self, at: int) -> str:
        """The line break and blanks before what begins its line at an offset; "" where it does not."""
        line = self.text.rfind("\n", 0, at)
        blanks = self.text[line + 1 : at]
        return self.newline + blanks if line >= 0 and not blanks.strip() else ""


def _into_json(data: bytes, entry: Entry) -> tuple[list[tuple[int, bytes]], list[tuple[str, ...]]]:
    """What to insert for an entry, and what is made to hold it."""
    if not data.strip():
        whole: Any = entry.value
        for key in reversed(entry.path):
            whole = {key: whole}
        holders = [entry.path[:depth] for depth in range(1, len(entry.path))]
        return [(0, (json.dumps(whole, indent=2) + "\n").encode())], holders + ([entry.path] if entry.joins else [])
    document = _Document(data)
    at, depth = document.find(entry.path)
    if depth == len(entry.path):
        if not entry.joins:
            return [], []
        if document.text[at] != "[":
            raise InputError(f"{'.'.join(entry.path)} is no list there")
        return (document.inserted(at, depth, [json.dumps(one) for one in entry.value]) if entry.value else []), []
    key, *deeper = entry.path[depth:]
    made: Any = entry.value
    for name in reversed(deeper):
        made = {name: made}
    if document.text[at] != "{":
        raise InputError(f"{'.'.join(entry.path[:depth])} is no table of settings there")
    text = f"{json.dumps(key)}: {json.dumps(made, indent=document.unit)}"
    holders = [entry.path[:n] for n in range(depth + 1, len(entry.path))]
    return document.inserted(at, depth, [text]), holders + ([entry.path] if entry.joins else [])


def _out_of_json(data: bytes, entry: Entry) -> bytes:
    """A file without a member, or without the elements of a list."""
    while True:
        document = _Document(data)
        at, depth = document.find(entry.path if entry.joins else entry.path[:-1])
        parts, end = document.parts(at)
        ours = [n for n, part in enumerate(parts) if document.is_of(entry, part)]
        if depth < len(entry.path) - 1 or not ours:
            return data
        for first, last in sorted(document.cuts(parts, ours[0], at + 1, end - 1), reverse=True):
            data = data[:first] + data[last:]


# ------------------------------------------------------------------------------------------------------------- TOML


def _into_toml(data: bytes, entry: Entry) -> tuple[list[tuple[int, bytes]], list[tuple[str, ...]]]:
    """A table of its own at the end of the file; what belongs to none before everything else."""
    if holds("toml", data, entry):
        return [], []
    newline = "\r\n" if b"\r\n" in data else "\n"
    if not isinstance(entry.value, Mapping):
        return [(0, f"{entry.path[0]} = {toml(entry.value)}{newline}".encode())], []
    lines = [f"[{'.'.join(entry.path)}]", *(f"{key} = {toml(held)}" for key, held in entry.value.items())]
    before = "" if not data else newline if data.endswith(b"\n") else newline * 2
    return [(len(data), (before + newline.join(lines) + newline).encode())], []


def toml(held: Any) -> str:
    """Text, a truth value, a number or a list of them, in TOML: basic strings are JSON's."""
    return json.dumps(held, ensure_ascii=False).replace("\x7f", "\\u007f")


def _out_of_toml(data: bytes, entry: Entry) -> bytes:
    """The file without the table, from its heading to its last key, and without what stands deeper in it."""
    lines = data.decode().splitlines(keepends=True)
    if not isinstance(entry.value, Mapping):
        line = next((line for line in lines if line.partition("=")[0].strip() == entry.path[0]), "")
        return "".join(lines).replace(line, "", 1).encode()
    kept: list[str] = []
    inside: list[str] = []
    ours = False
    for line in lines:
        heading = _HEADING.fullmatch(line)
        if heading is not None:
            kept += _after_keys(inside)
            inside, was = [], ours
            ours = _names(heading[1])[: len(entry.path)] == list(entry.path)
            if ours and not was and kept and not kept[-1].strip():
                kept.pop()  # the blank line before it
        (inside if ours else kept).append(line)
    return "".join([*kept, *_after_keys(inside)]).encode()


def _after_keys(lines: list[str]) -> list[str]:
    """Comments and blank lines behind a table's last key are of what follows."""
    last = max((n for n, line in enumerate(lines) if line.strip() and not line.lstrip().startswith("#")), default=-1)
    return lines[last + 1 :]


def _names(heading: str) -> list[str]:
    return [part.strip().strip("\"'") for part in heading.split(".")]
