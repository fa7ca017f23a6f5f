"""A connection that has switched to web sockets: two sockets joined, bytes as they are.

Law: nothing is read, changed or kept. Whichever end goes away ends the other; a slow reader slows its writer down.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, cast

import aiohttp
from aiohttp import web

_WAITING = 1024 * 1024  # bytes that wait to be written before the other end is read no further
_LOOK_S = 0.02


async def through(
    request: web.BaseRequest, answer: aiohttp.ClientResponse, headers: Iterable[tuple[str, str]]
) -> web.StreamResponse:
    """Hand the provider's 101 to the client, and then every byte of both until one of them ends.

    Args:
        request: the client's.
        answer: the provider's, of status 101.
        headers: the answer's, as they came.
    """
    connection, ours = answer.connection, request.transport
    assert connection is not None and connection.protocol is not None
    theirs = connection.transport
    if ours is None or theirs is None:
        raise aiohttp.ServerDisconnectedError
    lines = [f"HTTP/1.1 101 {answer.reason}", *(f"{name}: {value}" for name, value in headers)]
    ours.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
    ended = asyncio.Event()
    pipes = _Pipe(theirs, ours, ended), _Pipe(ours, theirs, ended)
    try:
        # What came behind the head is handed over at once. aiohttp's own web sockets are read in this way.
        cast(Any, connection.protocol).set_parser(pipes[0], None)
        cast(Any, request.protocol).set_parser(pipes[1])
        while not ended.is_set():
            waits = _LOOK_S if any(pipe.full for pipe in pipes) else None
            try:
                await asyncio.wait_for(_either(ended, pipes), waits)
            except TimeoutError:
                pass
            for pipe in pipes:
                pipe.go_on()
    finally:
        theirs.close()
    return _Given()


async def _either(ended: asyncio.Event, pipes: tuple[_Pipe, _Pipe]) -> None:
    """Until an end is gone, or a pipe is full."""
    waits = [asyncio.ensure_future(event.wait()) for event in (ended, *(pipe.filled for pipe in pipes))]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in waits:
            one.cancel()


class _Pipe:
    """One direction, in the place of a parser of aiohttp's."""

    def __init__(self, source: asyncio.Transport, into: asyncio.Transport, ended: asyncio.Event) -> None:
        self.full = False
        self.filled = asyncio.Event()
        self._source, self._into, self._ended = source, into, ended

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        """Bytes of one end, for the other."""
        if not self._into.is_closing():
            self._into.write(data)
            if self._into.get_write_buffer_size() > _WAITING and not self.full:
                self.full = True
                self.filled.set()
                self._source.pause_reading()
        return False, b""

    def feed_eof(self) -> None:
        """The end is gone."""
        self._ended.set()

    def go_on(self) -> None:
        """Read on where what waited was written."""
        if self.full and self._into.get_write_buffer_size() <= _WAITING:
            self.full = False
            self.filled.clear()
            if not self._source.is_closing():
                self._source.resume_reading()


class _Given(web.StreamResponse):
    """An answer that was given already: the connection ends with it."""

    def __init__(self) -> None:
        super().__init__()
        self.force_close()

    async def prepare(self, request: web.BaseRequest) -> None:
        """Nothing is left to say."""

    async def write_eof(self, data: bytes = b"") -> None:
        """Nothing is left to say."""
