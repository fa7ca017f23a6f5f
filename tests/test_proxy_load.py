"""Many at once, and many one after another: `cutline proxy` as a process of its own, with its record, before a real server."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import aiohttp
import pytest

import streams
from providers import WAYS, Provider, growing
from streams import Said
from test_record_apart import servants
from two_ends import command, ended

STREAMS = int(os.environ.get("CUTLINE_LOAD_STREAMS", "200"))
SECONDS = float(os.environ.get("CUTLINE_LOAD_S", "60"))
REQUESTS = int(os.environ.get("CUTLINE_SOAK", "20000"))
STEP = 500  # requests after which the record catches up: what waits for it is held in memory, and is no growth
MOST = 300  # MB
LONG = Said(text="All parts agree, and none is missing. " * 60)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads memory from /proc"),
    pytest.mark.timeout(900),
]


def memory(pid: int, what: str) -> int:
    """Megabytes of a process, with that of its record: `VmRSS` now, `VmHWM` at most."""
    total = 0
    for one in (pid, *servants(pid)):
        status = Path(f"/proc/{one}/status").read_text()
        total += next(int(line.split()[1]) for line in status.splitlines() if line.startswith(what))
    return total // 1024


def asked(way: str, parts: int) -> list[bytes]:
    """The last bodies of a conversation, streamed where the body says so."""
    streamed = way in ("anthropic", "openai_chat", "openai_responses")
    return [
        json.dumps({**json.loads(body), **({"stream": True} if streamed else {})}).encode() for body in growing(way)
    ]


async def client(
    session: aiohttp.ClientSession, address: str, number: int, parts: int, done: Any, counted: list[int]
) -> None:
    """One program: its conversation over and over, every answer read whole and held against what was sent."""
    way = sorted(WAYS)[number % len(WAYS)]
    bodies = asked(way, parts)
    wanted = streams.chat(LONG) if way == "openai_chat" else streams.stream(way, LONG)
    headers = {"Content-Type": "application/json", "x-session-id": f"s{number}", "Accept-Encoding": "identity"}
    while not done():
        for body in bodies:
            async with session.post(address + WAYS[way].replace("%3A", ":"), data=body, headers=headers) as got:
                assert got.status == 200, await got.text()
                assert await got.read() == wanted
            counted.append(len(body))
            if done():
                return


def run(address: str, together: int, parts: int, done: Any, counted: list[int]) -> None:
    async def all_of_them() -> None:
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(60)) as session:
            await asyncio.gather(
                *(client(session, address, number, parts, done, counted) for number in range(together))
            )

    asyncio.run(all_of_them())


def test_many_streams_at_once(tmp_path: Path):
    """200 streams for 60 seconds, each of a history of 180 KB: no error, every byte right, no more than 300 MB."""
    counted: list[int] = []
    end = time.monotonic() + SECONDS
    with Provider(said=LONG) as provider, command(tmp_path, provider.url) as (address, running):
        provider.keeps = 0
        run(address, STREAMS, 120, lambda: time.monotonic() > end, counted)
        most = memory(running.pid, "VmHWM")
        told = ended(running)
    print(f"{len(counted):,} requests in {SECONDS:g} s, {STREAMS} at once, {most} MB at most")
    assert told["faults"] == [] and not provider.faults
    assert sum(one["turns"] for one in told["sessions"]) == len(counted)
    assert most <= MOST


def caught_up(tmp_path: Path, wanted: int) -> None:
    """Wait until all is in the record: what waits for it is held in memory, up to the writer's limit."""
    held = tmp_path / "data" / "cutline" / "record.db"
    until = time.monotonic() + 60
    with closing(sqlite3.connect(f"file:{held}?mode=ro", uri=True, timeout=10)) as record:
        while record.execute("SELECT count(*) FROM request").fetchone()[0] < wanted and time.monotonic() < until:
            time.sleep(0.1)


def test_a_long_day(tmp_path: Path):
    """20,000 requests, a few at a time: memory does not grow behind the first quarter."""
    counted: list[int] = []
    with Provider(said=LONG) as provider, command(tmp_path, provider.url) as (address, running):
        provider.keeps = 0

        def some(until: int) -> None:
            while (goal := min(until, len(counted) + STEP)) > len(counted):
                run(address, 8, 12, lambda: len(counted) >= goal, counted)
                caught_up(tmp_path, len(counted))

        some(REQUESTS // 4)
        first = memory(running.pid, "VmRSS")
        some(REQUESTS)
        last, most = memory(running.pid, "VmRSS"), memory(running.pid, "VmHWM")
        told = ended(running)
    print(f"{len(counted):,} requests: {first} MB after a quarter, {last} MB at the end, {most} MB at most")
    assert told["faults"] == [] and not provider.faults
    assert last <= first * 1.2 + 10 and most <= MOST
