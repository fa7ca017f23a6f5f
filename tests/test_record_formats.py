"""Histories of other formats than Anthropic's in the record: byte for byte, each message once, calls and words found."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import abroad
import providers
import wire_bodies
from cutline import events, record
from cutline.measure import request_of
from cutline.record import Exchange, Record

FORMATS = tuple(abroad.FORMATS)
SEARCHED = {"openai_chat", "openai_responses", "gemini", "converse", "invoke"}


def exchange(body: bytes, session: str = "s", **values: object) -> Exchange:
    usual = {"session": session, "agent": "", "client": "codex", "project": "/p", "at": 1_790_000_000.0, "body": body}
    usual |= {"sent": len(body), "seam": "", "status": 200, "answer": b"", "usage": {}, "kind": "turn"}
    return Exchange(**{**usual, **values})


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory):
    with Record(tmp_path_factory.mktemp("formats") / "record.db") as opened:
        yield opened


@pytest.mark.parametrize("format", FORMATS)
@settings(max_examples=25)
@given(data=st.data())
def test_a_history_and_its_futures_come_back_as_the_same_bytes(shared: Record, format: str, data: st.DataObject):
    """In one session, so that each is also held against a past that is not its own; every call is found at its address."""
    for body in data.draw(abroad.growing(format)):
        assert shared.body(shared.write(exchange(body, format))) == body
    request = request_of(body)[0]
    for found in events.calls(request):
        if found.result is None:
            continue
        recorded = shared.calls("/p", found.call.address)
        assert any(
            (one.found.call.name, one.found.call.result) == (found.call.name, found.call.result) for one in recorded
        )


def test_what_was_stored_holds_together(shared: Record):
    for format in FORMATS:
        for body in providers.growing(format):
            shared.write(exchange(body, format))
    # Drawn histories repeat ids: equal calls whose keys stand in another order share an address, and one index entry.
    assert [fault for fault in shared.faults() if "a search does not find it" not in fault] == []


@pytest.mark.parametrize("way", sorted(SEARCHED))
def test_a_growing_history_is_stored_once_and_searched(way: str, tmp_path: Path):
    bodies = providers.growing(way, 12, (5, 9))
    with Record(tmp_path / "r.db") as held:
        for body in bodies:
            held.write(exchange(body))
        assert [held.body(row.id) for row in held.requests("s")] == bodies
        found = held.search("/p", ["row_59", "part 7"])
        assert [one.found.call.name for one in found] == ["read"]
        assert json.loads(found[0].found.call.arguments) == {"path": "part_07.py"}
        assert (found[0].found.call.result or "").startswith("row_0 = 0")
        (same,) = held.calls("/p", found[0].found.call.address)
        assert same.content == found[0].content
        said = held.said("/p", ["part_07.py", "decide"])
        assert [one.author for one in said] == ["agent"] and said[0].text.startswith("I read part_07.py")
        assert [one.author for one in held.said("/p", ["all parts agree"])] == ["human"]
        assert held.stats().calls == 14 and held.faults() == []
    history = next(value for value in json.loads(bodies[-1]).values() if isinstance(value, list))
    with closing(sqlite3.connect(tmp_path / "r.db")) as connection:
        assert connection.execute("SELECT count(*) FROM node").fetchone() == (len(history),)


def test_secrets_are_masked_and_addresses_stay_those_of_the_wire(tmp_path: Path):
    body = providers.growing("openai_responses")[-1].replace(b"part_02.py", b"sk-ant-api03-" + b"A" * 95)
    with Record(tmp_path / "r.db") as held:
        held.set_masking(True)
        held.write(exchange(body))
        address = events.calls(request_of(body)[0])[2].call.address
        (one,) = held.calls("/p", address)
        assert b"[masked: " in one.found.call.arguments and held.faults() == []


def test_an_export_brings_it_back(tmp_path: Path):
    bodies = [body for way in sorted(SEARCHED) for body in providers.growing(way)]
    with Record(tmp_path / "r.db") as held:
        for body in bodies:
            held.write(exchange(body))
        (tmp_path / "all.jsonl").write_bytes(b"".join(held.lines()))
    with Record(tmp_path / "again.db") as again:
        for item in record.read(tmp_path / "all.jsonl"):
            assert isinstance(item, Exchange) and again.add(item)
        assert [again.body(row.id) for row in again.requests("s")] == bodies and again.faults() == []
        assert again.search("/p", ["row_59"])


@pytest.mark.skipif(not wire_bodies.SESSIONS.is_dir(), reason=wire_bodies.MISSING)
def test_recorded_bodies_come_back_as_they_are(tmp_path: Path):
    with Record(tmp_path / "r.db") as held:
        for one in wire_bodies.requests():
            if one.format != "anthropic" and len(one.body) < 200_000:
                assert held.body(held.write(exchange(one.body, one.name))) == one.body
        assert held.faults() == []
