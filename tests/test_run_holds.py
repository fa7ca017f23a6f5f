"""What a run has to withstand: foreign folders, a broken record, long answers, signals at every moment, a lost reader."""

import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from cutline.blocks import ToolCall
from cutline.errors import InputError
from cutline.mcp import Tools
from cutline.proxy import state, tap
from cutline.proxy.app import Gateway
from cutline.recall import Recalled, staleness
from cutline.record import Record
from test_launch import shell  # noqa: F401

DOCUMENT = {"done": "a", "open": "b", "went_wrong": "nothing"}


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


class TestTheRunsFolder:
    def test_lives_while_its_lock_is_held_and_goes_with_the_next_look(self, temporary: Path):
        one, two = state.make(os.getpid()), state.make(os.getpid())
        state.write(one.path, {"at": 1})
        assert {path for path, _ in state.running()} == {one.path, two.path}
        assert stat.S_IMODE(one.path.stat().st_mode) == 0o700
        one.lock.close()  # as when its process was killed
        assert [path for path, _ in state.running()] == [two.path]
        two.lock.close()
        assert not one.path.exists()

    def test_of_a_killed_run_goes_with_the_next_run(self, temporary: Path):
        left = state.make(os.getpid())
        (left.path / "settings.json").write_text("{}")
        left.lock.close()
        state.make(os.getpid()).lock.close()
        assert not left.path.exists()

    def test_is_never_looked_for_behind_a_link(self, temporary: Path):
        elsewhere = temporary / "mine"
        kept = elsewhere / "run-1-abcdefgh" / "thesis.txt"
        kept.parent.mkdir(parents=True)
        kept.write_text("years of work")
        state._home().symlink_to(elsewhere)
        assert list(state.running()) == []
        with pytest.raises(InputError, match="belongs to somebody else"):
            state.make(os.getpid())
        assert kept.read_text() == "years of work"

    def test_leaves_alone_what_is_not_named_like_a_run(self, temporary: Path):
        state.make(os.getpid()).lock.close()
        kept = state._home() / "run-results-2026"
        kept.mkdir()
        list(state.running())
        assert kept.is_dir()


class TestABrokenRecord:
    def test_takes_no_checkpoint_away(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
        record = Record(tmp_path / "data" / "record.db", timeout=0.1)
        tools = Tools(tmp_path, str(tmp_path), record, "s")
        import sqlite3

        other = sqlite3.connect(record.path, isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        reply = tools.call("micro_handoff", DOCUMENT, "toolu_1")
        other.execute("ROLLBACK")
        other.close()
        assert not reply.error and reply.texts[0].startswith("checkpoint stored")
        assert "not in the record" in reply.texts[0]

    def test_is_said_before_the_client_starts(self, shell: Any):  # noqa: F811
        place = shell.home / ".local" / "share" / "cutline"
        place.mkdir(parents=True, mode=0o700)
        (place / "record.db").write_bytes(b"no database at all, " * 1_000)
        done = shell("claude", "-p", "hi")
        assert done.returncode == 2 and b"--no-record" in done.stderr
        assert shell("--no-record", "claude", "-p", "hi").returncode == 0


class TestALongAnswer:
    def event(self, **given: Any) -> bytes:
        return f"event: {given['type']}\ndata: {json.dumps(given)}\n\n".encode()

    def test_of_a_hundred_thousand_pieces_is_read_in_no_time(self):
        start = self.event(type="content_block_start", index=0, content_block={"type": "text", "text": ""})
        piece = self.event(type="content_block_delta", index=0, delta={"type": "text_delta", "text": "x" * 200})
        began = time.process_time()
        answer = tap.read(start + piece * 100_000, "text/event-stream", "")
        assert len(answer.content[0]["text"]) == 20_000_000
        assert time.process_time() - began < 30  # joined piece by piece it takes many minutes

    def test_of_arguments_too_deep_to_read_is_an_answer_all_the_same(self):
        deep = "[" * 5_000 + "]" * 5_000
        start = self.event(
            type="content_block_start", index=0, content_block={"type": "tool_use", "id": "a", "input": {}}
        )
        piece = self.event(
            type="content_block_delta", index=0, delta={"type": "input_json_delta", "partial_json": deep}
        )
        assert tap.read(start + piece, "text/event-stream", "").content[0]["input"] == {}


def test_recall_does_not_wait_for_what_is_no_file(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    call = ToolCall("Read", json.dumps({"file_path": "pipe"}).encode(), "     1\tx", False, 0, "0" * 16)
    assert "no file" in staleness(Recalled(call, "s", None, 0, b""), tmp_path)


@pytest.mark.parametrize("url", ["http://x:99999", "http://[::1", "ftp://x", "x"])
def test_a_base_url_that_means_nothing_is_said(url: str):
    with pytest.raises(InputError, match="base URL"):
        Gateway(url, "token")


class TestSignals:
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
    def test_before_the_client_runs_leave_nothing_behind(self, shell: Any, number: signal.Signals):  # noqa: F811
        slow = shell.tmp / "bin" / "claude"
        started = shell("claude", then="sys.exit(0)", wait=False)
        for _ in range(400):  # it is asked for its version first
            if list(shell.tmp.glob("cutline-*/run-*")):
                break
            time.sleep(0.01)
        started.send_signal(number)
        started.communicate(timeout=30)
        assert slow.exists() and started.returncode in (128 + number, 0, -number)
        assert list(shell.tmp.glob("cutline-*/run-*")) == []

    def test_a_report_that_nobody_reads_leaves_the_exit_code_alone(self, shell: Any):  # noqa: F811
        started = shell("claude", then="sys.exit(7)", wait=False)
        started.stderr.close()
        with started:
            started.wait(timeout=60)
        assert started.returncode == 7


def test_the_status_line_lives_with_what_is_no_text(tmp_path: Path):
    (tmp_path / "statusline.json").write_text(json.dumps({"command": "printf '\\377mine'"}))
    done = subprocess.run(
        [sys.executable, "-P", "-m", "cutline", "status", "--line"],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "CUTLINE_RUN": str(tmp_path)},
        input=b'{"\xff": 1}',
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0 and b"mine" in done.stdout and b"cutline" in done.stdout


def test_what_a_provider_says_can_not_move_the_cursor():
    told = tap.read(
        b'{"model":"m\\u001b]0;mine\\u0007","error":{"message":"no\\u001b[2J\\nway"}}', "application/json", ""
    )
    assert (told.model, told.error) == ("m ]0;mine", "no [2J way")
