"""An answer's bytes taken apart into JSON objects: server-sent events, Amazon's event stream, or plain JSON.

Law: reading only, in pieces of any size, without a decision on what an object means. What is torn, malformed or not
an object is left out, never an error.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator
from typing import Any, Protocol

CAP = 64 * 1024 * 1024
"""Bytes that wait for their end; a stream in which more wait is read no further."""
_BREAK = re.compile(rb"\r\n|\r")
_STRING = 7  # a header's type in Amazon's event stream
_WIDTHS = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
_PRELUDE = 12  # bytes: the whole length, the headers' length, a checksum of the two


class Frames(Protocol):
    """What takes an answer apart."""

    def feed(self, data: bytes) -> Iterator[dict[str, Any]]:
        """The objects that are complete with these bytes, in order."""

    def end(self) -> Iterator[dict[str, Any]]:
        """What can still be told when no more bytes come."""


def frames(content_type: str, first: bytes) -> Frames:
    """What takes an answer of a content type apart.

    Args:
        content_type: the header's value.
        first: its first bytes, by which a stream is known whose server gives it another type.
    """
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "application/vnd.amazon.eventstream":
        return EventStream()
    if kind == "text/event-stream" or re.match(rb"\s*(?:data|event|id|retry)?:", first):
        return ServerSent()
    return Json()


class ServerSent:
    """Server-sent events: the data of each that is a JSON object (WHATWG HTML, 9.2)."""

    def __init__(self) -> None:
        self._waiting: list[bytes] = []
        self._size = 0
        self._tail = b""  # the last bytes: a line break may be torn in two

    def feed(self, data: bytes) -> Iterator[dict[str, Any]]:
        """The events that are complete with these bytes."""
        data = self._tail + data
        self._tail = data[-1:] if data.endswith(b"\r") else b""
        data = _BREAK.sub(b"\n", data[: len(data) - len(self._tail)])
        if not data or self._size > CAP:
            return
        begins = data.startswith(b"\n") and self._waiting and self._waiting[-1].endswith(b"\n")
        if not begins and b"\n\n" not in data:
            self._waiting.append(data)
            self._size += len(data)
            return
        *whole, rest = (b"".join(self._waiting) + data).split(b"\n\n")
        self._waiting, self._size = ([rest] if rest else []), len(rest)
        for event in whole:
            yield from _event(event)

    def end(self) -> Iterator[dict[str, Any]]:
        """The last event, where only its end is missing."""
        last, self._waiting, self._size = b"".join(self._waiting), [], 0
        yield from _event(last)


def _event(text: bytes) -> Iterator[dict[str, Any]]:
    lines = (line[5:].removeprefix(b" ") for line in text.split(b"\n") if line.startswith(b"data:"))
    yield from _objects(b"\n".join(lines))


class EventStream:
    """Amazon's binary event stream: `{event's type: its payload}`; what a `chunk` carries stands for itself.

    A frame is its length, its headers' length and a checksum of both, its headers, its payload, a checksum
    (docs.aws.amazon.com, "Event stream encoding"). Checksums are the client's to check.
    """

    def __init__(self) -> None:
        self._waiting = bytearray()
        self._broken = False

    def feed(self, data: bytes) -> Iterator[dict[str, Any]]:
        """The frames that are complete with these bytes."""
        if self._broken:
            return
        waiting = self._waiting
        waiting += data
        while len(waiting) >= _PRELUDE:
            size, headers = int.from_bytes(waiting[:4], "big"), int.from_bytes(waiting[4:8], "big")
            if not _PRELUDE + 4 + headers <= size <= CAP:
                self._broken = True
                return
            if len(waiting) < size:
                return
            frame = bytes(waiting[:size])
            del waiting[:size]
            yield from _frame(_headers(frame[_PRELUDE : _PRELUDE + headers]), frame[_PRELUDE + headers : -4])

    def end(self) -> Iterator[dict[str, Any]]:
        """Nothing: half a frame says nothing."""
        yield from ()


def _headers(raw: bytes) -> dict[str, str]:
    """The headers of a frame that are strings."""
    found: dict[str, str] = {}
    at = 0
    while at < len(raw):
        name = raw[at + 1 : at + 1 + raw[at]]
        at += 1 + len(name)
        type_ = raw[at] if at < len(raw) else -1
        width = int.from_bytes(raw[at + 1 : at + 3], "big") + 2 if type_ in (6, _STRING) else _WIDTHS.get(type_)
        if width is None:
            return found
        if type_ == _STRING:
            found[name.decode("latin-1")] = raw[at + 3 : at + 1 + width].decode("utf-8", "replace")
        at += 1 + width
    return found


def _frame(headers: dict[str, str], payload: bytes) -> Iterator[dict[str, Any]]:
    fault = headers.get(":exception-type") or headers.get(":error-code")
    for value in _objects(payload or b"{}"):
        if fault:
            said = value.get("message") or value.get("Message") or headers.get(":error-message") or fault
            yield {"error": {"type": fault, "message": str(said)}}
        elif isinstance(value.get("bytes"), str):
            try:
                yield from _objects(base64.b64decode(value["bytes"]))
            except (binascii.Error, ValueError):
                continue
        else:
            yield {headers.get(":event-type", ""): value}


class Json:
    """A JSON object, or several: a list of them (Gemini's stream without `alt=sse`), or one a line; also torn ones."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> Iterator[dict[str, Any]]:
        """Nothing before the end."""
        if self._size <= CAP:
            self._parts.append(data)
            self._size += len(data)
        yield from ()

    def end(self) -> Iterator[dict[str, Any]]:
        """The object, or each of the list's."""
        text = b"".join(self._parts).decode("utf-8", "replace")
        self._parts = []
        at, decoder = 0, json.JSONDecoder()
        while True:
            at = _skip(text, at)
            try:
                value, at = decoder.raw_decode(text, at)
            except (ValueError, RecursionError):
                return
            if isinstance(value, dict):
                yield value


def _skip(text: str, at: int) -> int:
    """Past white space, and what stands between the elements of a list."""
    while at < len(text) and text[at] in " \t\r\n[,\ufeff":
        at += 1
    return at


def _objects(raw: bytes) -> Iterator[dict[str, Any]]:
    if raw:
        try:
            value = json.loads(raw)
        except (ValueError, RecursionError):
            return
        if isinstance(value, dict):
            yield value
