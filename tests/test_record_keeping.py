"""The record looked after: brought up from older layouts, checked, masked, exported, and deleted for good."""

# ruff: noqa: F811 (fixtures are imported)

import dataclasses
import json
import signal
import sqlite3
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bodies
import layout1
from cutline import record
from cutline.blocks import address
from cutline.errors import InputError
from cutline.record import Document, Record, RecordFault, Stop, Writer, mask
from cutline.record.migrations import MIGRATIONS
from cutline.record.schema import VERSION
from histories import histories
from test_record import MARK, PROJECT, call, child, count, exchange, marked, path, result, session, sound, store, turn  # noqa: F401

DAY = 86_400.0
NOW = 1_790_000_000.0
SECRET = "sk-ant-api03-" + "Zq7" * 12


def version(path: Path) -> int:
    connection = sqlite3.connect(path)
    found = connection.execute("PRAGMA user_version").fetchone()[0]
    connection.close()
    return found


def vocabulary(path: Path) -> set[str]:
    """Every trigram that either index holds, or that waits for it."""
    connection = sqlite3.connect(path)
    found = set()
    for index in ("search", "said_words"):
        connection.execute(f"CREATE VIRTUAL TABLE temp.v_{index} USING fts5vocab (main, {index}, row)")
        found |= {row[0] for row in connection.execute(f"SELECT term FROM temp.v_{index}")}
    for table in ("call_waiting", "said_waiting"):
        for (text,) in connection.execute(f"SELECT text FROM {table}"):
            found |= {text[at : at + 3] for at in range(len(text) - 2)}
    connection.close()
    return found


def raw(path: Path) -> bytes:
    """Every byte of the record's folder."""
    return b"".join(file.read_bytes() for file in sorted(path.parent.iterdir()))


def telling(words: str, session: str = "s1", **values):
    """A request whose words, call and result can be looked for in the file: SQLite holds documents as they are."""
    messages = [
        {"role": "user", "content": f"human {words}"},
        {"role": "assistant", "content": [{"type": "text", "text": f"agent {words}"}, call("t1", f"echo {words}")]},
        {"role": "user", "content": [result("t1", f"world {words}")]},
    ]
    answer = json.dumps([{"type": "text", "text": f"answer {words}"}]).encode()
    return exchange(bodies.body(messages), session, answer=answer, **values)


# ---------------------------------------------------------------------------------------------------- older layouts


@pytest.mark.parametrize("readonly", (False, True))
@pytest.mark.parametrize("older", (1, 2, 3))
def test_an_older_layout_is_brought_up_and_nothing_of_it_changes(path: Path, older: int, readonly: bool):
    where = address(layout1.CALL, "Bash", b'{"command":"cat importer.py"}')
    wanted = layout1.build(path, where)
    with sqlite3.connect(path) as connection:
        for migration in MIGRATIONS[: older - 1]:
            migration(connection)
        connection.execute(f"PRAGMA user_version={older}")
    connection.close()
    assert version(path) == older
    with Record(path, readonly=readonly) as store:
        assert version(path) == VERSION == 4
        assert [store.body(row.id) for row in store.requests("s1")] == wanted
        assert store.answer(2) == layout1.ANSWER and store.faults() == []
        (hit,) = store.calls(PROJECT, where)
        assert (
            hit.found.call.result == "range(len(rows) - 1)" == store.search(PROJECT, ["range(len"])[0].found.call.result
        )
        assert store.documents()[0].json == '{"done":"half"}' and store.stops("s1")[0].why == "refused twice"
        # What was said is found now, each text at the request that carried it first; the client's own words are not.
        assert [(one.author, one.text, one.message, one.request) for one in store.said(PROJECT, ["the"])] == [
            ("agent", "The bound is one too low.", 3, 2),
            ("agent", "Reading it, because of the bound.", 1, 2),
            ("human", "The importer drops the last row.", 0, 1),
        ]
        assert store.stats().retention == 90 and store.stats().masking is False
    sound(path)


def test_a_new_record_is_laid_out_as_one_that_was_brought_up(tmp_path: Path):
    layout1.build(tmp_path / "a" / "record.db", "b" * 16)
    layouts = []
    for name in ("a", "b"):
        with Record(tmp_path / name / "record.db"):
            pass
        connection = sqlite3.connect(tmp_path / name / "record.db")
        rows = connection.execute("SELECT sql FROM sqlite_master WHERE sql NOT NULL AND name NOT LIKE 'sqlite_%'")
        layouts.append(sorted("".join(row[0].split()) for row in rows))
        connection.close()
    assert layouts[0] == layouts[1]


def test_a_kill_in_the_middle_of_a_migration_leaves_the_old_layout(path: Path):
    layout1.build(path, "b" * 16)
    code = """
import os
from cutline.record import words
words.store = lambda *given: os._exit(9)
Record(path)
"""
    process = child(code, path)
    process.communicate()
    assert process.returncode == 9 and version(path) == 1
    with Record(path) as store:
        assert len(store.said(None, [])) == 3


# ------------------------------------------------------------------------------------------------------ what was said


def test_what_was_said_is_found_with_its_author_time_and_place(store: Record):
    store.write(telling("about races", at=5.0))
    store.write(exchange(bodies.body(session(2)), "s2", at=9.0, project="/b"))
    found = {one.author + " " + one.text.split()[0]: one for one in store.said(PROJECT, ["RACES"])}
    assert set(found) == {"human human", "agent agent", "agent answer"}
    assert [found["agent answer"].message, found["agent answer"].at, found["agent agent"].block] == [3, 5.0, 0]
    assert [one.text for one in store.said(PROJECT, ["about"], author="human")] == ["human about races"]
    assert store.said(PROJECT, [], since=6.0) == [] and len(store.said(None, [], since=6.0)) == 1
    assert store.said(None, ["races"], session="s2") == [] and store.said("/b", ["races"]) == []


def test_an_answer_that_comes_back_as_a_message_is_one_text_at_one_place(store: Record, path: Path):
    messages = [{"role": "user", "content": "Look."}]
    said = [{"type": "text", "text": "It leaks in the pool."}]
    store.write(exchange(bodies.body(messages), answer=json.dumps(said).encode()))
    messages += [{"role": "assistant", "content": said}, {"role": "user", "content": "Mend it."}]
    store.write(exchange(bodies.body(messages)))
    assert (count(path, "said"), count(path, "said_at")) == (3, 3)
    assert store.faults() == []


def test_harness_text_and_a_clients_own_question_are_nobodys_words(store: Record):
    messages = [*session(1), {"role": "user", "content": "Write a summary of the leak."}]
    store.write(exchange(bodies.body(messages), kind="compaction", answer=b'[{"type":"text","text":"leak summary"}]'))
    assert store.said(None, ["leak"]) == []
    # What the client asked is a person's words where a turn carries them on.
    reminder = {"type": "text", "text": "<system-reminder>leak</system-reminder>"}
    grown = [*messages, {"role": "assistant", "content": "It leaks."}, {"role": "user", "content": [reminder]}]
    store.write(exchange(bodies.body(grown)))
    assert [one.text for one in store.said(None, ["leak"])] == ["It leaks.", "Write a summary of the leak."]


def test_words_said_by_the_say_tool_are_the_agents(store: Record):
    block = {"type": "tool_use", "id": "t9", "name": "mcp__cutline__say", "input": {"text": "0 races, 23.4M reads"}}
    store.write(exchange(bodies.body([{"role": "user", "content": "go"}, {"role": "assistant", "content": [block]},
                                      {"role": "user", "content": [result("t9", "shown")]}])))  # fmt: skip
    assert [one.author for one in store.said(None, ["23.4M reads"])] == ["agent"]


def test_calls_are_chosen_by_tool_time_and_session(store: Record):
    named = [{"role": "user", "content": "go"}, {"role": "assistant", "content": [call("a", "ls", "mcp__box__shell")]},
             {"role": "user", "content": [result("a", "x")]}]  # fmt: skip
    store.write(exchange(bodies.body(session(2)), at=1.0))
    store.write(exchange(bodies.body(named), "s2", at=2.0))
    tools = [
        [hit.found.call.name for hit in store.search(None, [], tool=tool)] for tool in ("bash", "shell", "SHELL", "box")
    ]
    assert tools == [["Bash", "Bash"], ["mcp__box__shell"], ["mcp__box__shell"], []]
    assert [hit.session for hit in store.search(None, [], since=1.5)] == ["s2"]
    assert len(store.search(None, [], session="s1")) == 2


# ------------------------------------------------------------------------------------------------------------- verify


@settings(max_examples=25)
@given(history=histories(grows=True))
def test_a_sound_record_has_no_faults(tmp_path_factory: pytest.TempPathFactory, history):
    with Record(tmp_path_factory.mktemp("sound") / "record.db") as store:
        for one in (history, *history.grown()):
            store.write(exchange(one.body))
        assert store.faults() == []


@pytest.mark.parametrize(
    ("sql", "named"),
    (
        ("UPDATE blob SET data = (SELECT data FROM blob WHERE id = 2) WHERE id = 3", "blob 3: "),
        ("UPDATE blob SET data = x'00' WHERE id = 1", "session s1, 2026-09-21 14:13 UTC: its body can't be rebuilt"),
        ("UPDATE node SET gap = x'2c20' WHERE id = 2", "message 2: its history has another hash"),
        ("DELETE FROM node WHERE id = 2", "message 3: the message before it is missing"),
        ("UPDATE request SET size = size + 1", "its body is not the"),
        ("UPDATE place SET answer_block = 7", "it can't be read"),
        ("UPDATE call SET address = 'ffffffffffffffff'", "call ffffffffffffffff: another call stands where it was"),
        ("INSERT INTO search (search) VALUES ('delete-all')", "a search does not find it"),
        ("DELETE FROM call_waiting", "a search does not find it"),
        ("UPDATE said_waiting SET text = 'other words' WHERE id = 120", "text 120: a search does not find it"),
        ("UPDATE said SET author = 'human' WHERE id = 2", "text 2: other words stand where it was"),
        ("INSERT INTO said_words (said_words) VALUES ('delete-all')", "text 1: a search does not find it"),
    ),
)
def test_whatever_is_broken_is_named(path: Path, store: Record, sql: str, named: str):
    store.write(telling("about races"))
    for number in range(40):  # so many that a batch is in the indexes, and some more wait
        store.write(telling(f"about {number} more"))
    assert store.faults() == []
    connection = sqlite3.connect(path)
    connection.execute(sql)
    connection.commit()
    connection.close()
    found = store.faults()
    assert any(named in line for line in found), found


# ----------------------------------------------------------------------------------------------- what waits is found


def test_a_call_is_found_from_the_moment_it_is_stored(path: Path, store: Record):
    """In front of a batch, in it, behind it, and too long to wait: a search sees no difference, newest first."""
    long = " ".join(f"row{n}" for n in range(6_000))
    for number in range(75):
        store.write(telling(f"number{number}. {long if number % 30 == 29 else ''}", f"s{number}"))
        assert [hit.session for hit in store.search(None, [f"number{number}."])] == [f"s{number}"]
        assert {said.session for said in store.said(None, [f"NUMBER{number}."])} == {f"s{number}"}
    with sqlite3.connect(path) as connection:
        waits = [row[0] for row in connection.execute("SELECT id FROM call_waiting ORDER BY id")]
    connection.close()
    assert 0 < len(waits) < 32 and 75 in waits and 60 not in waits
    with Record(path, readonly=True) as other:
        assert [hit.session for hit in other.search(None, ["number"], 100)] == [f"s{n}" for n in reversed(range(75))]
        assert [hit.session for hit in other.search(None, ["row5999"], 100)] == ["s59", "s29"]
        assert other.search(None, ["number75."]) == [] and other.faults() == []


def test_what_waits_is_deleted_like_what_is_indexed(path: Path, store: Record):
    for number in range(40):
        store.write(telling(f"common qxj{number:03}", "gone" if number % 2 else "kept"))
    assert {"qxj", "033", "039"} <= vocabulary(path)
    store.delete(["gone"])
    assert store.search(None, ["qxj033"]) == [] == store.search(None, ["qxj039"])  # of the batch, and behind it
    assert [hit.session for hit in store.search(None, ["common"], 100)] == ["kept"] * 20 and store.faults() == []
    store.delete(["kept"])
    assert vocabulary(path) == set() and store.sweep() and b"qxj0" not in raw(path)


# --------------------------------------------------------------------------------------------------- deleted for good


def test_a_deleted_session_leaves_no_byte_and_no_trigram(path: Path, store: Record):
    """Incompressible words, so that they stand in the file as they are; another session shares none of them."""
    store.write(telling("about races", "kept"))
    before = vocabulary(path)
    store.write(telling("qxjzkvw", "gone", project="/q/xjz"))
    store.write(telling("qxjzkvw too", "gone", agent="explore-1"))
    store.put_document(Document("gone", "/q/xjz", 1.0, "", '{"done":"qxjzkvw"}', "{}", "[]"))
    store.stop("gone", "a" * 16, "5", "qxjzkvw refused", 1.0)
    address_ = store.search("/q/xjz", ["qxjzkvw"])[0].found.call.address
    assert b"qxjzkvw" in raw(path) and "qxj" in vocabulary(path)
    gone = store.delete(["gone"])
    assert (gone.sessions, gone.requests, gone.calls, gone.documents) == (("gone",), 2, 2, 1)
    assert store.sweep() and not store.sweep()
    assert b"qxjzkvw" not in raw(path) and b"xjz" not in raw(path) and b"explore-1" not in raw(path)
    assert vocabulary(path) == before
    assert store.calls(None, address_) == [] and store.search(None, ["qxjzkvw"]) == [] == store.said(None, ["qxjzkvw"])
    assert store.faults() == [] and store.history("kept").body == telling("about races").body
    assert store.last_document("gone") is None and store.stops("gone") == []
    sound(path)


def test_what_another_session_has_too_stays_with_it(path: Path, store: Record):
    """A fork shares its past; frames are packed against one another."""
    noise = [{"name": f"tool{n}", "description": str(hash((n, "x")) ** 9)} for n in range(300)]

    def body(number: int, turns: int) -> bytes:
        return bodies.body(marked(session(turns)), tools=noise, system=[{"type": "text", "text": f"secret-{number}"}])

    for number, name in enumerate(("first", "second", "third")):
        store.write(exchange(body(number, 3 + number), name))
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT count(*) FROM blob WHERE base IS NOT NULL").fetchone()[0] == 2
    connection.close()
    store.delete(["first"])
    store.sweep()
    assert [store.history(name).body for name in ("second", "third")] == [body(1, 4), body(2, 5)]
    assert store.faults() == [] and len(store.search(None, ["part0"])) == 1 and store.stats().calls == 5
    connection = sqlite3.connect(path)  # one stands for itself now, the other against it
    assert connection.execute("SELECT count(*) FROM blob WHERE base IS NOT NULL").fetchone()[0] == 1
    connection.close()
    assert len(store.calls(None, store.search(None, ["part0"])[0].found.call.address)) == 2


def test_a_session_that_goes_on_after_it_was_deleted_is_whole(store: Record):
    """The writer remembers its last request; a fork keeps the chain alive, but not this session's calls."""
    store.write(exchange(bodies.body(session(3)), "gone"))
    store.write(exchange(bodies.body(session(3)), "fork"))
    store.delete(["gone"])
    store.write(exchange(bodies.body(session(4)), "gone"))
    assert len(store.search(None, ["part"], session="gone")) == 4 and store.faults() == []


def one_call(arguments: dict, session: str):
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "Bash", "input": arguments}]},
        {"role": "user", "content": [result("t1", "done")]},
    ]
    return exchange(bodies.body(messages), session)


def test_equal_calls_whose_keys_are_turned_round_are_one_call_and_go_without_a_trigram(path: Path, store: Record):
    """One address, one entry in the index, and a text for each spelling: trigrams reach over the ends of members."""
    spelled = {"command": "qxjzk jump", "description": "vvbnm fox"}
    store.write(one_call(spelled, "first"))
    store.write(one_call(dict(reversed(spelled.items())), "second"))
    assert store.stats().calls == 1 and store.faults() == []
    store.delete(["first"])
    assert store.faults() == [] and [hit.session for hit in store.search(None, ["qxjzk", "vvbnm"])] == ["second"]
    store.delete(["second"])
    assert vocabulary(path) == set()


def test_a_secret_that_was_masked_only_later_goes_with_the_session_that_held_it(path: Path, store: Record):
    body = one_call({"command": f"export KEY={SECRET}"}, "before")
    store.write(body)
    store.set_masking(True)
    store.write(dataclasses.replace(body, session="behind"))
    assert "7zq" in vocabulary(path) and store.stats().calls == 1 and store.faults() == []
    store.delete(["before"])
    store.sweep()
    assert "7zq" not in vocabulary(path) and SECRET.encode() not in raw(path) and store.faults() == []
    assert len(store.search(None, ["[masked:"])) == 1


def test_a_damaged_session_can_be_deleted_and_the_rest_is_found(path: Path, store: Record):
    store.write(telling("qxjzkvw", "gone"))
    store.write(telling("about races", "kept"))
    connection = sqlite3.connect(path)
    connection.execute("UPDATE blob SET data = x'00' WHERE id <= 3")
    connection.commit()
    connection.close()
    store.delete(["gone"])
    store.sweep()
    assert store.faults() == [] and len(store.search(None, ["races"])) == 1 and "qxj" not in vocabulary(path)


def test_another_program_that_reads_delays_the_sweep_and_nothing_else(path: Path):
    with Record(path, timeout=0.05) as store:
        store.write(telling("qxjzkvw", "gone"))
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN")
        other.execute("SELECT * FROM request").fetchall()
        store.delete(["gone"])
        with pytest.raises(RecordFault, match="locked"):
            store.sweep()
        assert store.sessions() == []
        other.execute("COMMIT")
        other.close()
        assert store.sweep() and b"qxjzkvw" not in raw(path)


STEPS = """
import os, shutil, sqlite3
from test_record_keeping import telling

def ends(work, at):
    # A fork that runs `work` and is gone at its `at`th statement; whether it came to its end before.
    shutil.rmtree(path.parent / "copy", ignore_errors=True)
    copy = path.parent / "copy" / "record.db"
    copy.parent.mkdir(mode=0o700)
    shutil.copy(path, copy)
    pid = os.fork()
    if not pid:
        store, left = Record(copy), [at]
        def step(_):
            left[0] -= 1
            if left[0] < 0:
                os._exit(9)
        store._connection.set_trace_callback(step)
        work(store)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    connection = sqlite3.connect(copy)
    assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    connection.close()
    return copy, code == 0

def every(work, look):
    for at in range(10_000):
        copy, done = ends(work, at)
        with Record(copy) as store:
            assert store.faults() == [], (at, store.faults())
            look(store, done, copy)
        if done:
            print(at)
            return
"""


def test_a_deletion_beside_a_process_that_writes(path: Path):
    """Neither waits in vain, neither loses anything; the writer's remembered chain is shared with what goes."""
    with Record(path) as store:
        store.write(exchange(bodies.body(session(30)), "gone"))
    code = """
import time
with Record(path) as store:
    for turns in range(1, 50):
        while turns == 49 and not path.with_name("deleted").exists():
            time.sleep(0.01)
        store.write(test_record.exchange(bodies.body(test_record.session(turns)), "busy"))
        print(turns, flush=True)
"""
    process = child(code, path)
    with Record(path) as store:
        for line in process.stdout:
            if int(line) == 5:
                store.delete(["gone"])
                store.sweep()
            if int(line) in (10, 20):
                store.delete(["busy"])
                store.sweep()
            if int(line) == 20:
                path.with_name("deleted").touch()
        assert process.communicate()[1] == "" and process.returncode == 0
        rows = store.requests("busy")
        assert 0 < len(rows) <= 39 and store.body(rows[-1].id) == bodies.body(session(49))
        assert len(store.search(None, ["part"], 100)) == 49 and store.faults() == []


def test_a_kill_at_every_step_of_a_write_leaves_what_was_there(path: Path):
    with Record(path) as store:
        store.write(exchange(bodies.body(session(2))))
    code = """
body = bodies.body(test_record.session(3))
def look(store, done, copy):
    sizes = [row.size for row in store.requests("s1")]
    assert len(sizes) == 2 if done else sizes[:1] and sizes[1:] in ([], [len(body)])
every(lambda store: store.write(test_record.exchange(body, answer=b'[{"type":"text","text":"It is mended."}]')), look)
"""
    said, errors = child(STEPS + code, path).communicate()
    assert errors == "" and int(said) > 15, errors


@pytest.mark.slow
def test_a_kill_at_every_step_of_a_deletion_leaves_all_or_nothing_and_the_rest_is_made_up_for(path: Path):
    with Record(path) as store:
        for turns in (1, 2):
            store.write(exchange(bodies.body(session(turns)), "kept"))
        store.write(telling("qxjzkvw", "gone"))
    code = """
def work(store):
    store.delete(["gone"])
    store.sweep()
seen = set()
def look(store, done, copy):
    names = {row.session for row in store.sessions()}
    seen.add(len(names))
    assert names == {"kept"} if done else names in ({"kept"}, {"kept", "gone"})
    store.sweep()
    bytes_ = b"".join(file.read_bytes() for file in copy.parent.iterdir())
    assert (b"qxjzkvw" in bytes_) == ("gone" in names)
    assert len(store.search(None, ["part"], session="kept")) == 2
every(work, look)
assert seen == {1, 2}
"""
    said, errors = child(STEPS + code, path).communicate()
    assert errors == "" and int(said) > 40, errors


@pytest.mark.slow
def test_a_kill_from_outside_in_the_middle_of_a_deletion(path: Path):
    with Record(path) as store:
        for turns in range(1, 40):
            store.write(exchange(bodies.body(session(turns)), "gone"))
        store.write(telling("about races", "kept"))
    code = """
with Record(path) as store:
    print("go", flush=True)
    store.delete(["gone"])
    store.sweep()
"""
    for attempt in range(3):
        process = child(code, path)
        assert process.stdout.readline() == "go\n"
        time.sleep(0.006 * attempt)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        sound(path)
        with Record(path) as store:
            assert {row.session for row in store.sessions()} in ({"kept"}, {"kept", "gone"}) and store.faults() == []
    with Record(path) as store:
        store.delete(["gone"])
        assert store.sweep() and store.faults() == [] and store.history("kept")


def test_a_disk_without_room_keeps_the_sweep_owed(path: Path):
    noise = "".join(chr(0x4E00 + (n * n * 7919) % 20_000) for n in range(200_000))
    with Record(path) as store:
        store.write(exchange(bodies.body([{"role": "user", "content": noise}]), "kept"))
        store.write(telling("qxjzkvw", "gone"))
    code = """
import resource
from cutline.record import RecordFault
with Record(path) as store:
    store.delete(["gone"])
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        store.sweep()
    except RecordFault as error:
        print(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    assert store.history("kept") and store.sweep() and store.faults() == []
"""
    said, errors = child(code, path).communicate()
    assert errors == "" and ("disk" in said) and b"qxjzkvw" not in raw(path), (said, errors)


# ---------------------------------------------------------------------------------------------------------- retention


def test_the_default_keeps_ninety_days_and_is_applied_once_a_day(path: Path, store: Record):
    store.write(telling("qxjzkvw", "old", at=NOW - 91 * DAY))
    store.write(telling("qxjzkvw", "long", at=NOW - 300 * DAY))
    store.write(telling("about races", "long", at=NOW - 80 * DAY))  # its last request counts
    store.put_document(Document("papers", PROJECT, NOW - 91 * DAY, "", '{"done":"qxjzkvw"}', "{}", "[]"))
    assert store.look_after(NOW - DAY) is None  # the first look notes the time
    assert store.look_after(NOW - DAY / 2) is None  # not time yet
    gone = store.look_after(NOW)
    assert gone is not None and sorted(gone.sessions) == ["old", "papers"]
    assert [row.session for row in store.sessions()] == ["long"] and store.documents() == []
    assert store.look_after(NOW + DAY).sessions == ()


def test_retention_can_be_chosen_and_turned_off(store: Record):
    store.write(telling("a", "old", at=NOW - 9 * DAY))
    store.look_after(NOW - DAY)
    for day, days, gone in ((0, None, None), (1, 12, ()), (2, 10, ("old",))):
        store.set_retention(days)
        found = store.look_after(NOW + day * DAY)
        assert (found.sessions if found else None) == gone and store.stats().retention == days


def test_a_clock_that_jumps_deletes_nothing(store: Record):
    store.write(telling("a", at=NOW))
    store.look_after(NOW)
    assert store.look_after(NOW + 4_000 * DAY) is None  # far ahead: noted
    assert store.look_after(NOW + DAY) is None  # and back again
    assert store.look_after(NOW + 2.5 * DAY).sessions == () and len(store.sessions()) == 1
    store.write(telling("b", at=NOW - 3 * DAY))  # a request that came before the one before it
    assert store.stats().first == NOW - 3 * DAY and [one.at for one in store.requests("s1")] == [NOW, NOW - 3 * DAY]


def test_the_writer_looks_after_the_record(path: Path):
    now = time.time()
    with Record(path) as store:
        store.write(telling("qxjzkvw", "old", at=now - 91 * DAY))
        store.look_after(now - 2 * DAY)
    writer = Writer(path)
    writer.submit(telling("about races", "new", at=now))
    assert writer.flush()
    ends = time.monotonic() + 10
    while time.monotonic() < ends and b"qxjzkvw" in raw(path):
        time.sleep(0.02)
    assert writer.close() and writer.fault == "" and writer.written == 1
    with Record(path, readonly=True) as store:
        assert [row.session for row in store.sessions()] == ["new"]
    assert b"qxjzkvw" not in raw(path)


# ------------------------------------------------------------------------------------------------------------- export


def exported(store: Record, file: Path, session: str | None = None) -> Path:
    file.write_bytes(b"".join(store.lines(session)))
    return file


def take_in(store: Record, file: Path) -> list[bool]:
    added = []
    for item in record.read(file):
        if isinstance(item, Document):
            added.append(store.add_document(item))
        elif isinstance(item, Stop):
            store.stop(item.session, item.seam, item.rule, item.why, item.at)
        else:
            added.append(store.add(item))
    return added


@settings(max_examples=12)
@given(data=st.lists(histories(grows=True), min_size=1, max_size=2), torn=st.binary(max_size=20))
def test_an_export_brings_back_the_same_bodies(tmp_path_factory: pytest.TempPathFactory, data, torn: bytes):
    folder = tmp_path_factory.mktemp("export")
    with Record(folder / "a" / "record.db") as one, Record(folder / "b" / "record.db") as other:
        for number, history in enumerate(data):
            for grown in (history, *history.grown()):
                one.write(exchange(grown.body, f"s{number}", at=number + 0.1))
        one.write(exchange(torn, answer=torn[::-1], kind="other", seam="f" * 16, sent=3, status=529))
        file = exported(one, folder / "out.jsonl")
        assert all(json.loads(line)["type"] for line in file.read_bytes().splitlines())
        take_in(other, file)
        for session_ in ("s0", "s1"):
            there, here = (
                [(dataclasses.replace(row, id=0), s.body(row.id), s.answer(row.id)) for row in s.requests(session_)]
                for s in (one, other)
            )
            # What was sent twice at one moment is one request.
            assert [row for row in there if there.count(row) == 1] == [row for row in here if there.count(row) == 1]
            assert all(row in here for row in there)
        before = other.stats()
        assert not any(take_in(other, file)) and other.stats() == before


def test_an_export_of_one_session_holds_nothing_of_another(store: Record, tmp_path: Path):
    store.write(telling("qxjzkvw", "a"))
    store.write(telling("about races", "b"))
    store.put_document(Document("b", PROJECT, 1.0, "a" * 16, "{}", "{}", "[]"))
    store.stop("b", "a" * 16, "5", "why", 2.0)
    file = exported(store, tmp_path / "b.jsonl", "b")
    assert b"qxjzkvw" not in file.read_bytes()
    with Record(tmp_path / "other" / "record.db") as other:
        assert take_in(other, file) == [True, True]
        assert other.history("b").body == telling("about races").body and other.stops("b") == store.stops("b")
        assert other.last_document("b") == store.last_document("b")


@pytest.mark.parametrize(
    ("lines", "said"),
    (
        (b"", "empty"),
        (b'{"type":"message"}\n', "line 1: no export"),
        (b'{"type":"cutline record","format":2}\n', "format 2, this Cutline knows 1; upgrade"),
        (b'{"type":"cutline record","format":1}\n{"type":"request"}\n', "line 2: “frame” is missing"),
        (b'{"type":"cutline record","format":1}\n{"type":"mess', "line 2"),
        (b'{"type":"cutline record","format":1}\n[]\n', "line 2"),
    ),
)
def test_a_broken_export_is_one_line_with_its_place(tmp_path: Path, lines: bytes, said: str):
    file = tmp_path / "out.jsonl"
    file.write_bytes(lines)
    with pytest.raises(InputError, match=r"out\.jsonl") as error:
        list(record.read(file))
    assert said in str(error.value) and "\n" not in str(error.value)


# --------------------------------------------------------------------------------------------------------------- mask

SECRETS = {
    "anthropic key": SECRET,
    "openai key": "sk-proj-" + "a1B2" * 8,
    "openrouter key": "sk-or-v1-" + "0f" * 32,
    "github token": "ghp_" + "a1B2" * 9,
    "gitlab token": "glpat-" + "a1B2" * 5,
    "slack token": "xoxb-1234567890-abcdef",
    "stripe key": "sk_live_" + "a1B2" * 6,
    "google key": "AIza" + "a1B2-" * 7,
    "google token": "ya29." + "a1B2" * 6,
    "aws key id": "AKIA" + "ABCD" * 4,
    "aws secret key": "aws_secret_access_key = " + "aB3+" * 10,
    "npm token": "npm_" + "a1B2" * 9,
    "pypi token": "pypi-" + "a1B2" * 14,
    "hugging face token": "hf_" + "a1B2" * 9,
    "sendgrid key": "SG." + "a1B2" * 5 + "." + "a1B2" * 10,
    "json web token": "eyJ" + "a1B2" * 4 + ".eyJ" + "a1B2" * 4 + "." + "a1B2" * 4,
    "bearer token": "Bearer " + "a1B2." * 6,
    "basic login": "Basic " + "a1B2" * 5,
    "password in an address": "postgres://me:hunter2@db.local/x",
    "private key": "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIa1B2/+\n" * 6 + "-----END RSA PRIVATE KEY-----",
}


@pytest.mark.parametrize("name", record.FORMS)
def test_each_form_is_masked_wherever_it_stands_in_json(name: str):
    secret = SECRETS[name]
    for around in ("{}", "\n{}\n", 'KEY="{}"', "({})", "\t{} and", "\u00fc{}\u00fc", '{{"a":"\\n{}"}}', "a\\{}"):
        value = {"x": [around.format(secret)], "y": 1.50}
        for text in (json.dumps(value), json.dumps(value, ensure_ascii=False), json.dumps(json.dumps(value))):
            masked = mask(text.encode())
            told = json.loads(masked)
            told = json.loads(told) if isinstance(told, str) else told
            assert f"[masked: {name}]" in told["x"][0], (around, told)
            assert told["y"] == 1.5
            # Everything else is as it was: before the secret, and behind it.
            head, tail = told["x"][0].split(f"[masked: {name}]")
            whole = around.format(secret)
            assert whole.startswith(head) and whole.endswith(tail) and len(head) + len(tail) < len(whole) - 6


PIECES = st.sampled_from(
    [*SECRETS.values(), "\n", "\\", '"', "n", "npm_", "sk-", "\\n", "/", "ü", "\ud83d", " ", "_", "a1"]
)


@settings(max_examples=300)
@given(pieces=st.lists(PIECES | st.text(max_size=3), max_size=8), ascii_=st.booleans())
def test_masking_keeps_json_and_changes_nothing_but_the_secret(pieces: list[str], ascii_: bool):
    value = "".join(pieces)
    try:
        text = json.dumps([value, {value: 1}], ensure_ascii=ascii_).encode()
    except UnicodeEncodeError:
        text = json.dumps([value, {value: 1}]).encode()
    masked = mask(text)
    told, keys = json.loads(masked)
    assert list(keys) == [told] and mask(masked) == masked
    # Each stretch between masks is a stretch of the original, in order.
    at = 0
    for number, stretch in enumerate(_unmasked(told)):
        found = value.find(stretch, at)
        assert found >= 0 and (number or found == 0)
        at = found + len(stretch)
    if "[masked: " not in told:
        assert masked == text


def _unmasked(text: str) -> list[str]:
    import re

    return re.split("|".join(re.escape(f"[masked: {name}]") for name in record.FORMS), text)


def test_ordinary_text_is_no_secret():
    for text in (b"task-1234567890123456789012345", b"the risk-free disk-image-of-a-very-long-name", b"sk-learn", b"eyJ",
                 b"https://host:8080/path@v1", b"AKIA", b"bearer of bad news and of many more words", b"mailto:me@host"):  # fmt: skip
        assert mask(text) == text


def test_a_record_that_masks_holds_no_secret_and_says_so(path: Path, store: Record):
    messages = [*session(1), {"role": "user", "content": f"Use {SECRET}."}, *turn(7, f"token={SECRET}")]
    messages[-2]["content"] = [call("toolu_007", f"curl -H 'x-api-key: {SECRET}' host")]
    body = bodies.body(messages)
    as_sent = address("toolu_007", "Bash", json.dumps(messages[-2]["content"][0]["input"]).encode())
    before = store.write(exchange(body))
    assert store.body(before) == body
    store.set_masking(True)
    assert store.stats().masking
    answer = json.dumps([{"type": "text", "text": f"It is {SECRET}."}]).encode()
    grown = bodies.body([*messages, *turn(8, "the end")])
    for turns in (0, 1):
        id = store.write(exchange(bodies.body([*messages, *(turn(8, "the end") * turns)]), "s2", answer=answer))
    assert SECRET.encode() not in store.body(id) + store.answer(id) and store.body(id) == mask(grown)
    store.put_document(Document("s2", PROJECT, 1.0, "", json.dumps({"done": SECRET}), "{}", "[]"))
    assert store.last_document("s2").json == '{"done": "[masked: anthropic key]"}'
    # The address is the wire's, so that a notice's address still finds its call.
    assert {hit.session for hit in store.calls(None, as_sent)} == {"s1", "s2"}
    assert store.calls(None, as_sent)[0].found.call.result == "token=[masked: anthropic key]"
    assert store.faults() == []
    store.delete(["s1"])
    store.sweep()
    assert store.search(None, [SECRET]) == [] == store.said(None, [SECRET])
    store.set_masking(False)
    assert store.body(store.write(exchange(body, "s3"))) == body
