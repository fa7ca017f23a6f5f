"""The record: what goes in comes out byte for byte, takes little room, and survives what happens to files."""

import dataclasses
import itertools
import json
import os
import pickle
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bodies
import made
from cutline import events, record
from cutline.errors import InputError, Unreadable
from cutline.record import Document, Exchange, Record, RecordFault, Stop, Writer, calls, parts, reading
from cutline.record.calls import fold, haystack
from cutline.record.schema import VERSION
from cutline.sessions.claude_code import open_session
from cutline.wire import anthropic as wire
from histories import broken, histories

PROJECT = "/home/user/proj"
NUMBERS = itertools.count()
MARK = {"cache_control": {"type": "ephemeral"}}


def exchange(body: bytes, session: str = "s1", **values) -> Exchange:
    usual = {
        "session": session, "agent": "", "client": "claude", "project": PROJECT, "at": 1_790_000_000.0, "body": body,
        "sent": len(body), "seam": "", "status": 200, "answer": b"", "usage": {"input_tokens": 7}, "kind": "turn",
    }  # fmt: skip
    return Exchange(**{**usual, **values})


def call(id: str, command: str, name: str = "Bash") -> dict:
    return {"type": "tool_use", "id": id, "name": name, "input": {"command": command}}


def result(id: str, content, **members) -> dict:
    return {"type": "tool_result", "tool_use_id": id, "content": content, **members}


def turn(number: int, result_text: str) -> list[dict]:
    """A call with its result, as two messages."""
    return [
        {"role": "assistant", "content": [call(f"toolu_{number:03}", f"cat part{number}.txt")]},
        {"role": "user", "content": [result(f"toolu_{number:03}", result_text)]},
    ]


def session(turns: int, first: str = "Find the lost row.") -> list[dict]:
    messages: list[dict] = [{"role": "user", "content": first}]
    for number in range(turns):
        messages += turn(number, f"row {number} of part{number}.txt\n" * 20)
    return messages


def marked(messages: list[dict]) -> list[dict]:
    """The messages with the cache mark on the last block, where clients put it: it wanders with each request."""
    last = messages[-1]
    blocks = [{"type": "text", "text": last["content"]}] if isinstance(last["content"], str) else list(last["content"])
    return [*messages[:-1], {**last, "content": [*blocks[:-1], {**blocks[-1], **MARK}]}]


def count(path: Path, table: str) -> int:
    with sqlite3.connect(path) as connection:
        found = connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    connection.close()
    return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cutline" / "record.db"


@pytest.fixture
def store(path: Path):
    with Record(path) as opened:
        yield opened


# ------------------------------------------------------------------------------------------ what goes in comes out


@pytest.fixture(scope="module")
def shared_store(tmp_path_factory: pytest.TempPathFactory):
    with Record(tmp_path_factory.mktemp("generated") / "record.db") as opened:
        yield opened


@settings(max_examples=120)
@given(history=histories(grows=True), name=st.sampled_from("abc"))
def test_a_generated_history_and_its_futures_come_back_as_the_same_bytes(shared_store: Record, history, name: str):
    """In few sessions, so that each is also held against a past that is not its own."""
    for one in (history, *history.grown(), history):
        assert shared_store.body(shared_store.write(exchange(one.body, name))) == one.body


@settings(max_examples=80)
@given(history=broken())
def test_a_history_that_a_provider_refuses_comes_back_too(shared_store: Record, history):
    assert shared_store.body(shared_store.write(exchange(history.body))) == history.body


@settings(max_examples=60)
@given(
    body=st.binary(max_size=60) | st.sampled_from((b"{}", b'{"messages":[]}', b' {"messages": [ ] }\n', b'{"input":1}'))
)
def test_a_body_that_nobody_can_read_is_kept_as_it_is(shared_store: Record, body: bytes):
    id = shared_store.write(exchange(body, answer=body, kind="other"))
    assert shared_store.body(id) == body and shared_store.answer(id) == body


def test_recorded_sessions_come_back_as_the_same_bytes(path: Path, sessions: list[Path]):
    """Each as its client would send it, then with checkpoints put in, in two spellings of JSON."""
    with Record(path) as store:
        ids, total = {}, 0
        for file in sessions:
            if file.stat().st_size > 1_500_000:
                continue
            found = [body for _, body in bodies.bodies_of(file)]
            try:
                found.append(open_session(file).history.body)
            except InputError:
                pass
            for body in found:
                ids[store.write(exchange(body, file.stem))] = body
                total += len(body)
        assert len(ids) > 60
    with Record(path, readonly=True) as reader:
        assert all(reader.body(id) == body for id, body in ids.items())
    assert path.stat().st_size < 0.6 * total


def test_odd_spellings_and_marks_in_odd_places_come_back(store: Record):
    bodies_ = [
        b'{"messages":[{"role":"user","content":"a"} , \n{"role":"assistant","content":"b"}],"messages2":[]}',
        b'{"messages":[\t{"content":[{"cache_control":{"type":"ephemeral"},"type":"text","text":"x"}],"role":"user"} ]}',
        b'{"messages":[{"role":"user","content":[{"type":"text","cache_control" : null ,"text":"x","cache_control":1},'
        b'{"type":"text","text":"y","cache_control":{}}]}]}',
        b'{"messages":[{"role":"user","content":[{"type":"text","text":"a broken \\ud83d, 1.0e5 \\/ \xc3\xbc"}],"n":1.50}]}',
        b'{"system":"x","messages":[{"role":"user","content":"a"}],"model":"m\\u00fc"}',
    ]
    for body in (*bodies_, *reversed(bodies_)):
        assert store.body(store.write(exchange(body))) == body


def test_a_mark_that_stays_where_it_is_while_the_history_grows_comes_back(store: Record):
    for turns in range(3, 6):
        body = bodies.body(marked([*marked(session(2)), *session(turns)[5:]]))
        assert body.count(b'"cache_control"') == 2 and store.body(store.write(exchange(body))) == body


def test_an_answer_and_the_counters_come_back(store: Record):
    first = store.write(exchange(bodies.body(session(1)), at=10.5, answer=b'[{"type":"text","text":"Fo\\u0075nd."}]'))
    second = exchange(bodies.body(session(2)), at=9.0, sent=70, seam="a" * 16, status=529, usage={"cache_read": 5})
    store.write(dataclasses.replace(second, kind="compaction"))
    found = store.history("s1")
    assert found is not None and (found.request, found.at, found.project) == (first, 10.5, PROJECT)
    assert found.answer == b'[{"type":"text","text":"Fo\\u0075nd."}]' and found.body == bodies.body(session(1))
    one, two = store.requests("s1")
    assert (one.kind, one.status, one.usage, one.model) == ("turn", 200, {"input_tokens": 7}, "claude-opus-4-7")
    assert (two.kind, two.status, two.sent, two.seam, two.usage) == ("compaction", 529, 70, "a" * 16, {"cache_read": 5})
    assert two.size == len(bodies.body(session(2))) and two.at == 9.0
    (row,) = store.sessions(PROJECT)
    assert (row.session, row.requests, row.first, row.last) == ("s1", 2, 9.0, 10.5)
    assert store.sessions("/elsewhere") == [] and store.history("s2") is None and store.requests("s2") == []


def test_a_request_that_is_not_there_is_said(store: Record):
    with pytest.raises(InputError, match="no request 77"):
        store.body(77)


# ----------------------------------------------------------------------------------------------------- how much room


def test_a_request_that_grew_adds_its_new_messages_and_nothing_else(path: Path):
    with Record(path) as store:
        store.write(exchange(bodies.body(marked(session(40)))))
        before = count(path, "blob"), count(path, "node"), count(path, "place")
        store.write(exchange(bodies.body(marked(session(41)))))
        assert (count(path, "blob"), count(path, "node"), count(path, "place")) == tuple(
            old + new for old, new in zip(before, (2, 2, 1))
        )
    with Record(path) as store:  # another process, which remembers nothing
        store.write(exchange(bodies.body(marked(session(42)))))
        assert count(path, "blob") == before[0] + 4 and count(path, "place") == before[2] + 2


def test_300_growing_requests_take_fifty_times_less_than_their_bodies(path: Path, sessions: list[Path]):
    """A recorded session, sent as Claude Code sends it: tools, a mark that wanders. Measured: 90 times."""
    (file,) = (file for file in sessions if file.name.startswith("git-sync"))
    messages = bodies.history(file)
    ends = [end for end in range(1, len(messages)) if messages[end - 1]["role"] == "user"][:300]
    tools = [{"name": f"tool{n}", "description": f"{n} is what it is " * 40, "input_schema": {}} for n in range(90)]
    total, spent = 0, []
    with Record(path) as store:
        for end in ends:
            body = bodies.body(marked(messages[:end]), tools=tools)
            answer = json.dumps(messages[end]["content"]).encode()
            began = time.perf_counter()
            last = store.write(exchange(body, answer=answer))
            spent.append(time.perf_counter() - began)
            total += len(body)
        assert store.body(last) == body and len(ends) == 300
    print(f"{total:,} bytes in {path.stat().st_size:,}, {sorted(spent)[150] * 1e3:.1f} ms at the median")
    assert total >= 50 * path.stat().st_size


def test_frames_that_differ_in_a_few_bytes_are_stored_as_their_difference(path: Path):
    """As in a client that counts its requests in the system prompt; the messages stay what they were."""
    noise = [{"name": f"tool{n}", "description": str(hash((n, "x")) ** 9)} for n in range(300)]
    with Record(path) as store:
        sizes = []
        for number in range(4):
            body = bodies.body(session(3), tools=noise, system=[{"type": "text", "text": f"request {number}"}])
            assert store.body(store.write(exchange(body, session=str(number % 2)))) == body
            with sqlite3.connect(path) as connection:
                sizes.append(connection.execute("SELECT sum(length(data)) FROM blob").fetchone()[0])
            connection.close()
    assert sizes[0] > 20_000 and sizes[-1] - sizes[0] < 1_000
    assert count(path, "node") == 7


# --------------------------------------------------------------------------------------------------------- addresses


def test_the_wire_the_session_file_and_the_record_name_a_call_alike(tmp_path: Path, store: Record):
    small = made.small()
    session_body = open_session(small.write(tmp_path / made.FOLDER / f"{made.ID}.jsonl")).history.body
    from_file = {found.call.address: found.call for found in events.calls(wire.read(session_body))}
    # On the wire: the same history in another spelling, keys turned round.
    respelled = json.dumps(json.loads(session_body, object_pairs_hook=lambda pairs: dict(pairs[::-1]))).encode()
    from_wire = [found.call.address for found in events.calls(wire.read(respelled))]
    store.write(exchange(respelled))
    assert from_wire == list(from_file) and len(from_wire) == 9
    for address, call in from_file.items():
        (found,) = store.calls(PROJECT, address)
        assert (found.found.call.address, found.found.call.result) == (address, call.result)
        assert json.loads(found.found.call.arguments) == json.loads(call.arguments)


@settings(max_examples=100)
@given(history=histories(grows=True))
def test_the_index_holds_every_completed_call_of_a_history_exactly(shared_store: Record, history):
    """Found again from the index alone: place, arguments, result; however the history came to grow."""
    project = f"/{next(NUMBERS)}"
    for one in (history, *history.grown()):
        id = shared_store.write(exchange(one.body, project=project))
        request = wire.read(shared_store.body(id))
        calls = {(found.message, found.block): found for found in events.calls(request) if found.result}
        for place, found in calls.items():
            hits = [hit for hit in shared_store.calls(project, found.call.address) if hit.found == found]
            assert len(hits) == 1, place
            block = request.messages[found.result[0]].blocks[found.result[1]]
            assert hits[0].content == (wire.member(request, block, "content") or b"")
    recorded = shared_store.search(project, [], 10_000)
    assert {hit.found.call.address for hit in recorded} == {found.call.address for found in calls.values()}


@settings(max_examples=100)
@given(history=histories(grows=True) | broken(), data=st.data())
def test_a_tail_is_paired_as_it_is_in_the_whole_history(history, data):
    """Whatever stands before it: a server's own calls, results that answer nothing, ids that are counted anew."""
    try:
        body = reading.read(history.body)
    except Unreadable:
        return
    first = data.draw(st.integers(0, len(body.spans)))
    whole = wire.pairs(body.request.messages)[0].items()
    tail = [pair for pair in calls._pairs(body, first) if pair[1][0] >= first]
    assert sorted(tail) == sorted(pair for pair in whole if pair[1][0] >= first)


@given(
    start=st.binary(max_size=40), ends=st.tuples(st.binary(max_size=9), st.binary(max_size=9)), piece=st.integers(1, 9)
)
def test_what_two_bodies_share_is_told_to_the_byte(start: bytes, ends, piece: int):
    old, new = (start + end for end in ends)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(parts, "_PIECE", piece)
        differ = (at for at, (one, other) in enumerate(zip(old, new, strict=False)) if one != other)
        assert parts._same(old, new) == next(differ, min(len(old), len(new)))


def test_a_call_is_in_the_index_once_its_result_is_there(store: Record):
    messages = session(1)
    parallel = {"role": "assistant", "content": [call("a", "ls src"), call("b", "ls docs"), call("c", "ls tests")]}
    store.write(exchange(bodies.body([*messages, parallel])))
    assert store.search(PROJECT, ["ls"]) == []
    answers = {"role": "user", "content": [result("b", "index.md"), result("a", [{"type": "text", "text": "app.py"}])]}
    store.write(exchange(bodies.body([*messages, parallel, answers]), at=2e9))
    found = {hit.found.call.arguments: hit for hit in store.search(PROJECT, ["ls "])}
    assert sorted(found) == [b'{"command":"ls docs"}', b'{"command":"ls src"}']
    hit = found[b'{"command":"ls src"}']
    assert (hit.content, hit.found.call.result) == (b'[{"type":"text","text":"app.py"}]', "app.py")
    assert (hit.found.message, hit.found.block, hit.found.result, hit.at) == (3, 0, (4, 1), 2e9)


def test_equal_calls_share_an_address_and_every_place_is_listed(store: Record):
    """A server that counts its ids anew: the same id, name and arguments, another result."""
    messages: list[dict] = [{"role": "user", "content": "go"}]
    for answer in ("9:00", "9:05", "9:10"):
        messages += [
            {"role": "assistant", "content": [call("call_1", "date")]},
            {"role": "user", "content": [result("call_1", answer)]},
        ]
        store.write(exchange(bodies.body(marked(messages))))
    address = store.search(PROJECT, ["9:05"])[0].found.call.address
    places = store.calls(PROJECT, address)
    assert [(hit.found.message, hit.found.call.result) for hit in places] == [(5, "9:10"), (3, "9:05"), (1, "9:00")]
    assert [hit.request for hit in places] == [3, 2, 1]


def test_recall_stays_in_its_project(store: Record):
    store.write(exchange(bodies.body(session(1)), project="/a"))
    address = store.search("/a", ["part0"])[0].found.call.address
    assert store.search("/b", ["part0"]) == [] and store.calls("/b", address) == []
    assert len(store.calls(None, address)) == len(store.search(None, ["part0"])) == 1
    store.write(exchange(bodies.body(session(1)), "s2", project="/b"))  # the session was forked elsewhere
    assert len(store.calls("/b", address)) == 1 and len(store.calls(None, address)) == 2
    assert store.calls("/b", address)[0].session == "s2"


# -------------------------------------------------------------------------------------------------------------- words


WORDS = ("x", "ls", "races", "RACES", "Straße", "strasse", "NOT", "a OR b", '"', '"quoted"', "*", "col:", "(", "^a", "😀", "\0", "\ud83d", "世界", "İ")  # fmt: skip


TEXTS = st.text(max_size=30) | st.sampled_from(("3 braces", "STRASSE 世界 😀", 'a "quoted" b', "\ud83d\0x"))


@settings(max_examples=150)
@given(
    texts=st.lists(TEXTS, min_size=1, max_size=4),
    words=st.lists(st.sampled_from(WORDS) | st.text(max_size=4), max_size=2),
    data=st.data(),
)
def test_a_search_finds_what_reading_everything_would_find(shared_store: Record, texts, words, data):
    project = f"/{next(NUMBERS)}"
    chosen = data.draw(st.sampled_from(texts))
    start = data.draw(st.integers(0, len(chosen)))
    words.append(chosen[start : start + data.draw(st.integers(1, 8))])
    messages: list[dict] = [{"role": "user", "content": "go"}]
    for number, text in enumerate(texts):
        messages.append({"role": "assistant", "content": [call(f"{project}{number}", text)]})
        messages.append({"role": "user", "content": [result(f"{project}{number}", text[::-1])]})
    body = bodies.body(messages)
    shared_store.write(exchange(body, project=project))
    wanted = [fold(word.strip()) for word in words]
    expected = [f.call.address for f in events.calls(wire.read(body)) if all(w in haystack(f.call) for w in wanted)]
    found = [hit.found.call.address for hit in shared_store.search(project, words, 100)]
    assert found == expected[::-1]


def test_the_newest_come_first_and_no_more_than_asked_for(store: Record):
    store.write(exchange(bodies.body(session(6))))
    assert [hit.found.message for hit in store.search(PROJECT, ["PART", "row"], 2)] == [11, 9]
    assert [hit.found.message for hit in store.search(PROJECT, ["art2.tx"])] == [5]
    assert [hit.found.message for hit in store.search(PROJECT, ["2"], 1)] == [5]
    assert store.search(PROJECT, ["row", "nowhere"]) == []


# ------------------------------------------------------------------------------------- forks, rewinds, other agents


def test_a_rewind_a_fork_and_a_clear_lose_and_mix_nothing(store: Record):
    grown = session(4)
    other = [*grown[:5], {"role": "user", "content": "No, the other file."}, *turn(9, "another end")]
    cleared = session(1, "A new subject.")
    sent = [grown, other, cleared, [*other, *turn(10, "and on")], grown]
    ids = [store.write(exchange(bodies.body(messages), at=float(n))) for n, messages in enumerate(sent)]
    assert [store.body(id) for id in ids] == [bodies.body(messages) for messages in sent]
    assert store.history("s1").body == bodies.body(grown)
    found = {hit.found.call.result[:11] for hit in store.search(PROJECT, ["part"], 100)}
    assert found == {f"row {n} of pa" for n in range(4)} | {"another end", "and on"}
    fork = store.write(exchange(bodies.body(other), "s2"))
    assert store.body(fork) == bodies.body(other) and store.history("s1").body == bodies.body(grown)
    assert len(store.calls(PROJECT, store.search(PROJECT, ["another end"])[0].found.call.address)) == 2


def test_a_sub_agent_has_a_history_of_its_own(store: Record):
    main, helper = bodies.body(session(2)), bodies.body(session(1, "Look around."))
    store.write(exchange(main))
    store.write(exchange(helper, agent="explore-1"))
    assert store.history("s1").body == main and store.history("s1", "explore-1").body == helper
    assert [row.agent for row in store.sessions()] == ["explore-1", ""]
    assert [row.agent for row in store.requests("s1")] == ["", "explore-1"]


def test_what_the_writer_remembers_changes_nothing(tmp_path: Path):
    """One record whose writer remembers, one that is opened anew for each request: the same rows."""
    sent = [session(3), session(4), session(2), session(5, "Else."), marked(session(5, "Else.")), session(6)]
    tables = ("node", "request", "call", "place", "blob")

    def rows(path: Path) -> list:
        connection = sqlite3.connect(path)
        found = [connection.execute(f"SELECT * FROM {table}").fetchall() for table in tables]
        connection.close()
        return found

    with Record(tmp_path / "a" / "record.db") as store:
        for messages in sent:
            store.write(exchange(bodies.body(messages)))
    for messages in sent:
        with Record(tmp_path / "b" / "record.db") as store:
            store.write(exchange(bodies.body(messages)))
    assert rows(tmp_path / "a" / "record.db") == rows(tmp_path / "b" / "record.db")


def test_a_chain_that_somebody_deleted_is_stored_again(path: Path, store: Record):
    store.write(exchange(bodies.body(session(3))))
    with sqlite3.connect(path) as connection:
        for table in ("node", "request", "place", "blob"):
            connection.execute(f"DELETE FROM {table}")
    connection.close()
    body = bodies.body(session(4))
    assert store.body(store.write(exchange(body))) == body
    assert store.search(PROJECT, ["part0"])[0].found.message == 1


# ---------------------------------------------------------------------------------------------- documents and stops


def test_documents_and_stops(store: Record):
    first = Document("s1", PROJECT, 1.0, "a" * 16, '{"done":"half","n":1.0}', '{"branch":"main"}', "[]")
    second = dataclasses.replace(first, at=0.5, address="", json='{"done":"a broken \ud83d"}')
    for document in (first, second, dataclasses.replace(first, session="s2", project="/b")):
        store.put_document(document)
    assert [d.session for d in store.documents()] == ["s2", "s1", "s1"] and store.documents(PROJECT)[1] == first
    last = store.last_document("s1")
    assert last is not None and json.loads(last.json) == json.loads(second.json) and last.address == ""
    assert store.last_document("s3") is None
    store.stop("s1", "a" * 16, "5", "refused twice", 3.0)
    store.stop("s1", "a" * 16, "7", "refused again", 4.0)
    assert store.stopped("s1", "a" * 16) == Stop("s1", "a" * 16, "7", "refused again", 4.0)
    assert store.stopped("s1", "b" * 16) is None and store.stopped("s2", "a" * 16) is None
    assert [stop.rule for stop in store.stops("s1")] == ["7"]


# ----------------------------------------------------------------------------------------- the file and its folder


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_it_is_this_users_alone(path: Path, store: Record):
    store.write(exchange(bodies.body(session(1))))
    assert mode(path.parent) == 0o700 and store.notes == ()
    assert {entry.name: mode(entry) for entry in path.parent.iterdir()} == {
        "record.db": 0o600,
        "record.db-wal": 0o600,
        "record.db-shm": 0o600,
    }


@pytest.mark.parametrize("readonly", (False, True))
def test_loose_permissions_are_mended_and_said(path: Path, readonly: bool):
    with Record(path) as first:
        first.write(exchange(bodies.body(session(1))))
        for loose in (*path.parent.iterdir(), path.parent):
            loose.chmod(0o755)
        with Record(path, readonly=readonly) as second:
            assert len(second.notes) == 4 and "0755" in second.notes[0]
        assert [mode(file) for file in path.parent.iterdir()] == [0o600] * 3 and mode(path.parent) == 0o700


def test_a_folder_with_other_things_in_it_is_not_closed(tmp_path: Path):
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o755)
    (home / "letter.txt").write_text("mine")
    with Record(home / "record.db") as store:
        assert mode(home) == 0o755 and mode(home / "record.db") == 0o600 and store.notes == ()
    home.chmod(0o777)
    with pytest.raises(InputError, match="can be changed by others"):
        Record(home / "record.db")


def test_a_symlink_is_refused(tmp_path: Path, path: Path):
    Record(path).close()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "record.db").symlink_to(path)
    (tmp_path / "linked").symlink_to(path.parent)
    for led in (tmp_path / "other" / "record.db", tmp_path / "linked" / "record.db"):
        with pytest.raises(InputError, match="is a symlink"):
            Record(led)
    with pytest.raises(InputError, match="is a symlink"):
        Record(tmp_path / "other" / "record.db", readonly=True)


def test_another_owners_folder_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch):
    path.parent.mkdir()
    owner = os.geteuid()
    monkeypatch.setattr("os.geteuid", lambda: owner + 1)
    with pytest.raises(InputError, match="belongs to another user"):
        Record(path)
    assert list(path.parent.iterdir()) == []


def test_a_newer_version_is_refused_untouched(path: Path):
    with Record(path) as store:
        store.write(exchange(bodies.body(session(1))))
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version={VERSION + 1}")
    connection.close()
    before = path.read_bytes()
    for readonly in (False, True):
        with pytest.raises(
            InputError, match=rf"version {VERSION + 1}, this Cutline knows {VERSION}; upgrade Cutline\Z"
        ):
            Record(path, readonly=readonly)
    assert path.read_bytes() == before


def test_a_record_that_becomes_newer_while_it_is_open_is_refused(path: Path, store: Record):
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version={VERSION + 1}")
    connection.close()
    with pytest.raises(InputError, match="upgrade Cutline"):
        store.write(exchange(bodies.body(session(1))))


def test_what_is_no_record_is_refused_untouched(path: Path):
    path.parent.mkdir()
    with pytest.raises(InputError, match="no record yet"):
        Record(path, readonly=True)
    path.write_bytes(b"")
    with pytest.raises(InputError, match="is empty; remove it"):
        Record(path)
    path.write_bytes(b"not a database at all " * 100)
    with pytest.raises(RecordFault, match="not a database"):
        Record(path)
    path.unlink()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE mine (x)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(InputError, match="another program's database"):
        Record(path)
    assert path.read_bytes() == before


def test_a_damaged_blob_is_said(path: Path, store: Record):
    id = store.write(exchange(bodies.body(session(1))))
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE blob SET data = (SELECT data FROM blob WHERE id = 1) WHERE id = 2")
    connection.close()
    with pytest.raises(RecordFault, match="another hash"):
        store.body(id)


def test_a_record_that_is_moved_away_is_begun_anew(path: Path, store: Record):
    store.write(exchange(bodies.body(session(3))))
    store.close()
    path.rename(path.with_name("old.db"))
    body = bodies.body(session(4))
    assert store.body(store.write(exchange(body))) == body
    with Record(path.with_name("old.db"), readonly=True) as old:
        assert old.history("s1").body == bodies.body(session(3))


def test_where_it_lies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    monkeypatch.setattr(sys, "platform", "linux")
    assert record.default_path() == Path("/data/cutline/record.db")
    monkeypatch.setenv("XDG_DATA_HOME", "relative")  # the standard says: to be ignored
    assert record.default_path() == tmp_path / ".local/share/cutline/record.db"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert record.default_path() == tmp_path / "Library/Application Support/cutline/record.db"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", "/local")
    assert record.default_path() == Path("/local/cutline/record.db")


def test_there_is_no_place_for_anything_of_the_headers(path: Path, store: Record):
    assert not any("header" in field.name or "key" in field.name for field in dataclasses.fields(Exchange))
    connection = sqlite3.connect(path)
    tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    columns = {table: [row[1] for row in connection.execute(f"PRAGMA table_info({table})")] for table in tables}
    connection.close()
    ours = {
        table: names for table, names in columns.items() if not table.startswith(("search_", "said_words_", "sqlite_"))
    }
    assert ours == {
        "blob": ["id", "hash", "size", "base", "data"],
        "node": ["id", "hash", "parent", "message", "gap", "depth"],
        "session": ["id", "session", "agent", "client", "project"],
        "request": [
            "id", "session", "at", "kind", "model", "frame", "split", "node", "marks", "size", "sent", "seam", "status",
            "answer", "usage", "format",
        ],
        "call": ["id", "key", "address", "tool"],
        "place": ["call", "session", "message", "block", "node", "answer", "answer_block", "request"],
        "search": ["text"],
        "document": ["id", "session", "project", "at", "address", "json", "stamp", "flags"],
        "stop": ["session", "seam", "rule", "why", "at"],
        "said": ["id", "key", "author"],
        "said_at": ["said", "session", "message", "block", "node", "request"],
        "said_words": ["text"],
        "setting": ["name", "value"],
        "call_waiting": ["id", "text"],
        "said_waiting": ["id", "text"],
    }  # fmt: skip


# ------------------------------------------------------------------------------------------------ when things go wrong

CHILD = """
import sys
sys.path[:0] = {paths!r}
from pathlib import Path
import bodies, test_record
from cutline.record import Record, Writer
path, name = Path(sys.argv[1]), sys.argv[2]
"""


def child(code: str, path: Path, name: str = "s1", before: Sequence[str] = ()) -> subprocess.Popen:
    """A process of its own that has this file's helpers."""
    paths = [str(Path(__file__).parent), str(Path(record.__file__).parents[2])]
    command = [*before, sys.executable, "-c", CHILD.format(paths=paths) + code, str(path), name]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def sound(path: Path) -> None:
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    connection.close()


def test_a_process_that_is_killed_leaves_a_readable_record(path: Path):
    """Killed in the middle of writing, again and again; what it said that it had stored is there."""
    code = """
with Record(path) as store:
    for turns in range(1, 400):
        store.write(test_record.exchange(bodies.body(test_record.session(turns)), name))
        print(turns, flush=True)
"""
    for attempt in range(5):
        process = child(code, path, f"s{attempt}")
        for line in process.stdout:
            if int(line) >= 7 * (attempt + 1):
                break
        time.sleep(0.0013 * attempt)
        process.send_signal(signal.SIGKILL)
        said = [int(line) for line in process.stdout.read().splitlines()]
        process.communicate()
        with Record(path, readonly=True) as store:
            rows = store.requests(f"s{attempt}")
            least = max([7 * (attempt + 1), *said])
            assert least <= len(rows) <= least + 1
            assert [store.body(row.id) for row in rows] == [bodies.body(session(n + 1)) for n in range(len(rows))]
            assert store.search(PROJECT, [f"part{least - 1}.txt"])
    sound(path)


@pytest.mark.slow
def test_a_kill_at_every_call_that_changes_the_disk_leaves_all_or_nothing(path: Path):
    """Not at its statements but below SQLite: in place of each write, sync and truncation of a file."""
    kill = ["strace", "-f", "-qq", "-o", "/dev/null"]
    if not shutil.which("strace") or subprocess.run([*kill, "true"], check=False, capture_output=True).returncode:
        pytest.skip("strace is not on this machine, or may not trace")
    with Record(path) as store:
        for turns in (1, 2):
            store.write(exchange(bodies.body(session(turns))))
    # As little as a child can do: it is begun for each of some 60 steps.
    code = """
import pickle, sys
from cutline.record import Record
with Record(sys.argv[1]) as store:
    store.write(pickle.load(sys.stdin.buffer))
    store._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
"""
    given, changing = pickle.dumps(exchange(bodies.body(session(3)))), "pwrite64,fdatasync,fsync,ftruncate"
    seen = set()
    for step in range(1, 500):
        copy = path.parent / str(step) / path.name
        copy.parent.mkdir(mode=0o700)
        shutil.copy(path, copy)
        command = [*kill, "-e", f"inject={changing}:signal=KILL:when={step}", sys.executable, "-c", code, str(copy)]
        done = subprocess.run(command, input=given, check=False, capture_output=True)
        assert done.returncode in (0, -signal.SIGKILL), done.stderr.decode()
        sound(copy)
        with Record(copy) as store:
            rows = store.requests("s1")
            assert store.faults() == [] and len(rows) in (2, 3)
            assert [store.body(row.id) for row in rows] == [bodies.body(session(n + 1)) for n in range(len(rows))]
        seen.add(len(rows))
        if done.returncode == 0:
            break
    assert done.returncode == 0 and step > 10 and seen == {2, 3}


def test_a_record_is_whole_or_not_there(path: Path):
    """Killed while it begins the record: the next process begins it anew. Two may begin at once."""
    code = """
import os
from cutline.record import schema
schema._TABLES = (*schema._TABLES[:3], None)
real = schema._open
class Dying:
    def __init__(self, connection): self.connection = connection
    def execute(self, sql): return self.connection.execute(sql) if sql else os._exit(9)
    def close(self): self.connection.close()
schema._open = lambda *given: Dying(real(*given))
Record(path)
"""
    process = child(code, path)
    process.communicate()
    assert process.returncode == 9
    assert not path.exists() and len(list(path.parent.iterdir())) == 1
    gate, faults = threading.Barrier(6), []

    def begin() -> None:
        gate.wait()
        try:
            with Record(path) as store:
                store.write(exchange(bodies.body(session(1))))
        except InputError as error:
            faults.append(error)

    threads = [threading.Thread(target=begin) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == [] and count(path, "request") == 6 and count(path, "node") == 3


def test_two_processes_write_one_record_while_a_third_reads(path: Path):
    """Both the same session and one of their own; the reader only ever sees whole requests."""
    Record(path).close()
    code = """
with Record(path) as store:
    for turns in range(1, 60):
        for session in ("both", name):
            store.write(test_record.exchange(bodies.body(test_record.session(turns)), session))
"""
    processes = [child(code, path, name) for name in ("one", "two")]
    looks = 0
    with Record(path, readonly=True) as reader:
        while any(process.poll() is None for process in processes):
            for row in reader.sessions():
                found = reader.history(row.session)
                assert found is not None
                assert found.body == bodies.body(session(len(wire.read(found.body).messages) // 2))
                looks += 1
            time.sleep(0.01)
    for process in processes:
        assert process.communicate()[1] == "" and process.returncode == 0
    sound(path)
    with Record(path) as store:
        assert {row.session: row.requests for row in store.sessions()} == {"both": 118, "one": 59, "two": 59}
        assert count(path, "node") == 119 and looks
        assert len(store.calls(PROJECT, store.search(PROJECT, ["part58.txt"])[0].found.call.address)) == 3


def test_a_locked_record_never_reaches_the_caller_and_what_waits_is_stored_later(path: Path):
    Record(path).close()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(RecordFault, match="locked"), Record(path, timeout=0.05) as store:
        store.write(exchange(b"{}"))
    writer = Writer(path, timeout=0.05)
    for turns in (1, 2):
        writer.submit(exchange(bodies.body(session(turns))))
    assert writer.flush(0.3) is False
    assert "locked; another program holds it" in writer.fault and "\n" not in writer.fault
    with Record(path, readonly=True) as reader:  # a reader needs no lock
        assert reader.requests("s1") == []
    other.execute("ROLLBACK")
    other.close()
    assert writer.flush(10) and (writer.written, writer.dropped) == (2, 0)
    assert writer.close()
    with Record(path, readonly=True) as reader:
        assert reader.history("s1").body == bodies.body(session(2))


@pytest.mark.slow
def test_a_record_that_is_locked_for_ten_seconds_and_more_loses_nothing(path: Path):
    """With the times that a run has: a caller is told after ten, what was handed over is stored behind the lock."""
    Record(path).close()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    writer = Writer(path)
    began = time.monotonic()
    for turns in (1, 2, 3):
        writer.submit(exchange(bodies.body(session(turns))))
    assert time.monotonic() - began < 0.5
    with pytest.raises(RecordFault, match="locked; another program holds it"), Record(path) as store:
        store.write(exchange(b"{}"))
    assert 9 < time.monotonic() - began < 14
    time.sleep(1)
    other.execute("ROLLBACK")
    other.close()
    assert writer.flush(20) and writer.close() and (writer.written, writer.dropped) == (3, 0)
    with Record(path, readonly=True) as reader:
        assert len(reader.requests("s1")) == 3 and reader.faults() == []


def test_a_writer_that_must_end_gives_up_what_it_cannot_store(path: Path):
    Record(path).close()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    writer = Writer(path, timeout=0.05)
    for turns in (1, 2):
        writer.submit(exchange(bodies.body(session(turns))))
    assert writer.close(5) and (writer.written, writer.dropped) == (0, 2)
    writer.submit(exchange(b"{}"))
    assert writer.dropped == 3
    other.close()


def test_a_full_disk(path: Path):
    """The limit on a file's size stands in for the disk's end: SQLite meets it in the middle of a write."""
    code = """
import resource
writer = Writer(path, timeout=0.2)
for turns in (1, 2):
    writer.submit(test_record.exchange(bodies.body(test_record.session(turns))))
assert writer.flush(), writer.fault
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))
import os
big = [{"role": "user", "content": os.urandom(300_000).hex()}, *test_record.turn(500, "the end")]
writer.submit(test_record.exchange(bodies.body(big)))
writer.submit(test_record.exchange(bodies.body(test_record.session(3))))
assert not writer.flush(1)
print(writer.fault)
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
assert writer.flush() and writer.written == 4 and writer.dropped == 0
assert writer.close()
"""
    process = child(code, path)
    said, errors = process.communicate()
    assert process.returncode == 0 and errors == "", errors
    assert str(path) in said and ("disk" in said)
    sound(path)
    with Record(path, readonly=True) as store:
        assert len(store.requests("s1")) == 4 and store.history("s1").body == bodies.body(session(3))


def test_a_folder_that_can_only_be_read(path: Path):
    with Record(path) as store:
        store.write(exchange(bodies.body(session(1))))
    code = """
writer = Writer(path, timeout=0.2)
writer.submit(test_record.exchange(bodies.body(test_record.session(2))))
assert not writer.flush(0.5)
print(writer.fault)
path.parent.chmod(0o700)
assert writer.flush() and writer.close() and writer.written == 1
"""
    before: list[str] = []
    if os.geteuid() == 0:  # the superuser may write everywhere, unless that right is given up
        if not shutil.which("setpriv"):
            pytest.skip("setpriv is not on this machine, and the superuser may write everywhere")
        before = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search", "--inh-caps", "-all"]
    path.parent.chmod(0o500)
    said, errors = child(code, path, before=before).communicate()
    path.parent.chmod(0o700)
    assert errors == "" and str(path) in said and "writable" in said
    with Record(path, readonly=True) as store:
        assert len(store.requests("s1")) == 2


# ----------------------------------------------------------------------------------------------------------- the writer


def test_a_writer_stores_everything_that_it_is_given(path: Path):
    writer = Writer(path)
    document = Document("s1", PROJECT, 1.0, "", "{}", "{}", "[]")
    for item in (exchange(bodies.body(session(1))), document, Stop("s1", "a" * 16, "5", "why", 2.0)):
        writer.submit(item)
    assert writer.flush() and (writer.written, writer.dropped, writer.fault) == (3, 0, "")
    assert writer.close()
    with Record(path, readonly=True) as store:
        assert store.last_document("s1") == document and store.stopped("s1", "a" * 16).rule == "5"


def test_a_writer_keeps_so_many_bytes_waiting_and_no_more(path: Path):
    Record(path).close()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    writer = Writer(path, timeout=0.05, limit=1_000)
    for _ in range(5):
        writer.submit(exchange(b"x" * 400))
    assert writer.dropped == 3
    other.close()
    assert writer.flush() and (writer.written, writer.dropped) == (2, 3)
    for _ in range(2):  # what is stored waits no more
        writer.submit(exchange(b"x" * 400))
    assert writer.close() and (writer.written, writer.dropped) == (4, 3)


def test_what_cannot_be_stored_at_all_is_dropped_and_the_next_is_stored(path: Path):
    writer = Writer(path)
    writer.submit(exchange(b"{}", at="yesterday", usage={"tokens": object()}))
    writer.submit(exchange(b"{}"))
    assert writer.close() and (writer.written, writer.dropped) == (1, 1)
    assert "TypeError" in writer.fault


def test_a_writer_on_a_refused_record_drops_and_says(tmp_path: Path, path: Path):
    path.parent.symlink_to(tmp_path)
    writer = Writer(path)
    writer.submit(exchange(b"{}"))
    assert writer.close() and writer.dropped == 1 and "is a symlink" in writer.fault


def test_threads_may_share_a_record(path: Path, store: Record):
    failures: list[BaseException] = []

    def work(name: str) -> None:
        try:
            for turns in range(1, 15):
                body = bodies.body(session(turns))
                assert store.body(store.write(exchange(body, name))) == body
                assert store.search(PROJECT, [f"part{turns - 1}"])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in ("a", "b", "c")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_body_that_cannot_be_read_between_two_that_can(store: Record):
    with pytest.raises(Unreadable):
        wire.read(b'{"messages":[{"role":"user"')
    sent = [bodies.body(session(2)), b'{"messages":[{"role":"user"', bodies.body(session(3))]
    ids = [store.write(exchange(body)) for body in sent]
    assert [store.body(id) for id in ids] == sent
    assert [hit.found.message for hit in store.search(PROJECT, ["part"])] == [5, 3, 1]
