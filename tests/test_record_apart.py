"""The record in a process of its own: the same record, whatever ends, and whoever ends it."""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from contextlib import suppress
from pathlib import Path

import pytest

import bodies
from cutline.record import Record, Stop, Writer
from cutline.record.apart import Apart
from test_record import child, exchange, session, sound
from two_ends import until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="ends processes as POSIX does")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cutline" / "record.db"


def state(pid: int) -> list[str]:
    """What the system says of a process, from its state and its parent on; of one that is gone that it is dead."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ["X", "0"]


def alive(pid: int) -> bool:
    return state(pid)[0] not in "ZX"


def servants(parent: int) -> list[int]:
    """The records' processes that a process has started."""
    found = []
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        pid = int(command.parent.name)
        with suppress(OSError):
            if b"cutline.record.served" in command.read_bytes() and state(pid)[1] == str(parent) and alive(pid):
                found.append(pid)
    return found


def locked(path: Path) -> sqlite3.Connection:
    Record(path).close()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    return other


def turns_of(path: Path) -> list[bytes]:
    sound(path)
    with Record(path, readonly=True) as store:
        assert store.faults() == []
        return [store.body(row.id) for row in store.requests("s1")]


def test_what_is_handed_over_is_what_the_record_holds_and_nothing_is_left_running(path: Path):
    sent = [bodies.body(session(turns)) for turns in (1, 2, 3)]
    answer = b'[{"type":"text","text":"lone \xed\xa0\xbd and NUL \\u0000"}]'
    writer = Writer(path, apart=True)
    for body in sent:
        writer.submit(exchange(body, answer=answer))
    writer.submit(Stop("s1", "a" * 12, "strict", "it was refused", 7.0))
    assert writer.flush() and (writer.written, writer.dropped, writer.fault) == (4, 0, "")
    (servant,) = servants(os.getpid())
    assert path.stat().st_mode & 0o777 == 0o600
    assert writer.close() and until(lambda: not alive(servant), 10)
    assert turns_of(path) == sent
    with Record(path, readonly=True) as store:
        assert store.answer(1) == answer and store.stopped("s1", "a" * 12)


def test_an_in_process_writer_stores_the_same_bytes(tmp_path: Path):
    sent = [bodies.body(session(turns)) for turns in range(1, 12)]
    for name, apart in (("own", False), ("apart", True)):
        (tmp_path / name).mkdir(mode=0o700)
        writer = Writer(tmp_path / name / "record.db", apart=apart)
        for body in sent:
            writer.submit(exchange(body))
        assert writer.close() and writer.written == len(sent)
    with Record(tmp_path / "own" / "record.db") as one, Record(tmp_path / "apart" / "record.db") as two:
        assert [*one.lines()] == [*two.lines()]


def test_a_process_that_is_killed_between_two_writes_is_started_again(path: Path):
    writer = Writer(path, apart=True)
    sent = [bodies.body(session(turns)) for turns in (1, 2, 3)]
    for body in sent:
        writer.submit(exchange(body))
        assert writer.flush() and writer.fault == ""
        (servant,) = servants(os.getpid())
        os.kill(servant, signal.SIGKILL)
        assert until(lambda gone=servant: not alive(gone), 10)
    assert writer.close() and turns_of(path) == sent


def test_a_process_that_is_killed_in_a_write_stores_it_once(path: Path):
    other = locked(path)
    writer = Writer(path, apart=True)
    sent = [bodies.body(session(turns)) for turns in (1, 2)]
    writer.submit(exchange(sent[0]))
    assert until(lambda: servants(os.getpid()), 10) and not writer.flush(0.5)
    os.kill(servants(os.getpid())[0], signal.SIGKILL)
    other.execute("ROLLBACK")
    other.close()
    writer.submit(exchange(sent[1]))
    assert writer.flush() and writer.close() and writer.fault == ""
    assert turns_of(path) == sent


def test_what_was_stored_before_the_process_could_say_so_is_stored_once(path: Path, monkeypatch: pytest.MonkeyPatch):
    """It ends behind the write and before its answer: the one place at which the program can't know."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    record = Apart(path, 10.0)
    record._command[record._command.index("cutline.record.served")] = "test_record_apart"
    sent = [bodies.body(session(turns)) for turns in (1, 2)]
    for body in sent:
        record.write(exchange(body))
    record.close()
    assert path.with_name("record.db.ended").exists()
    assert turns_of(path) == sent


def test_a_process_that_cannot_be_started_is_said_and_tried_again(path: Path, tmp_path: Path):
    writer = Writer(path, apart=True)
    real, sys.executable = sys.executable, str(tmp_path / "no-python")
    try:
        writer.submit(exchange(bodies.body(session(1))))
        assert not writer.flush(0.5)
        assert "its process can't be had" in writer.fault and "\n" not in writer.fault and str(path) in writer.fault
    finally:
        sys.executable = real
    assert not writer.close(0.0) or writer.dropped == 1
    assert until(lambda: writer.written + writer.dropped == 1, 10)


def test_a_locked_record_is_said_and_what_waits_is_stored_later(path: Path):
    other = locked(path)
    writer = Writer(path, timeout=0.05, apart=True)
    for turns in (1, 2):
        writer.submit(exchange(bodies.body(session(turns))))
    assert writer.flush(1.0) is False
    assert "locked; another program holds it" in writer.fault and "\n" not in writer.fault
    other.execute("ROLLBACK")
    other.close()
    assert writer.flush() and (writer.written, writer.dropped) == (2, 0) and writer.close()
    assert len(turns_of(path)) == 2


def test_a_record_that_is_refused_is_told_as_ever(tmp_path: Path):
    (tmp_path / "elsewhere.db").write_bytes(b"")
    (tmp_path / "record.db").symlink_to(tmp_path / "elsewhere.db")
    writer = Writer(tmp_path / "record.db", apart=True)
    writer.submit(exchange(b"{}"))
    assert writer.flush() and writer.close() and (writer.written, writer.dropped) == (0, 1)
    own = Writer(tmp_path / "record.db")
    own.submit(exchange(b"{}"))
    assert own.flush() and own.close() and own.fault == writer.fault != ""


def test_a_program_that_is_killed_loses_nothing_that_its_process_had(path: Path):
    """The request is in the process, which waits for a lock, as its program is killed: it is stored behind the lock."""
    other = locked(path)
    program = child(
        """
writer = Writer(path, apart=True)
writer.submit(test_record.exchange(bodies.body(test_record.session(1))))
print("handed over", flush=True)
writer.flush(60)
""",
        path,
    )
    assert program.stdout is not None and program.stdout.readline()
    assert until(lambda: servants(program.pid), 10)
    (servant,) = servants(program.pid)
    assert until(lambda: path in opened(servant), 10)  # it opens the file once it has read what it is for
    program.kill()
    program.communicate()
    assert alive(servant)
    other.execute("ROLLBACK")
    other.close()
    assert until(lambda: not alive(servant), 10)
    assert turns_of(path) == [bodies.body(session(1))]


def opened(pid: int) -> list[Path]:
    """What a process holds open; nothing where it is gone."""
    try:
        return [link.readlink() for link in Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:
        return []


def test_what_the_terminal_sends_its_programs_does_not_end_the_process(path: Path):
    program = child(
        """
import os, signal
signal.signal(signal.SIGINT, lambda *_: print("asked to end", flush=True))
signal.signal(signal.SIGHUP, lambda *_: print("hung up", flush=True))
writer = Writer(path, apart=True)
for turns in (1, 2, 3):
    writer.submit(test_record.exchange(bodies.body(test_record.session(turns))))
    assert writer.flush()
    os.killpg(os.getpgrp(), signal.SIGINT)
    os.killpg(os.getpgrp(), signal.SIGHUP)
assert writer.close() and writer.written == 3 and writer.fault == "", writer.fault
""",
        path,
        before=["setsid", "--wait"],
    )
    said, errors = program.communicate(timeout=60)
    assert errors == "" and said.count("asked to end") == 3 and program.returncode == 0
    assert len(turns_of(path)) == 3


def test_a_folder_of_the_users_cannot_put_its_modules_in_our_way(path: Path, tmp_path: Path):
    (tmp_path / "pickle.py").write_text("raise SystemExit('not yours')")
    (tmp_path / "cutline").mkdir()
    program = child(
        """
import os
os.chdir(path.parents[1])
writer = Writer(path, apart=True)
writer.submit(test_record.exchange(bodies.body(test_record.session(1))))
assert writer.flush() and writer.close() and writer.written == 1, writer.fault
""",
        path,
    )
    assert program.communicate(timeout=60)[1] == "" and len(turns_of(path)) == 1


def _ends_before_it_answers() -> None:
    """A record's process as `served` has it, that ends without its answer the first time that it has stored something."""
    from cutline.record import served

    mark = Path(sys.argv[1] + ".ended")

    class Ending(Record):
        def write(self, exchange_):  # type: ignore[no-untyped-def]
            id = super().write(exchange_)
            if not mark.exists():
                mark.touch()
                os._exit(9)
            return id

    served.Record = Ending  # type: ignore[misc]
    served.main(*sys.argv[1:])


if __name__ == "__main__":
    _ends_before_it_answers()
