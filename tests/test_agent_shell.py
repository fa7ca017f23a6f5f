"""The agent's shell, with real commands and real processes: what it keeps, how it ends things, what comes of output."""

import asyncio
import os
import re
import resource
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pathspec", reason="the extra `agent` is not installed")

from agent_place import ADDRESS, call, living, session
from cutline.agent.tools import (
    BASH,
    JOB_END,
    JOB_OUTPUT,
    Outcome,
    Place,
)
from cutline.agent.tools.capping import BYTES, LINES, Spool, capped, wholes


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "tree").mkdir()
    return tmp_path / "tree"


# --------------------------------------------------------------------------------------------------------- the shell


def test_the_shell_keeps_directory_variables_functions_and_options(tree: Path):
    (tree / "sub dir").mkdir()

    async def play(at: Place) -> None:
        set_up = "cd 'sub dir'; A=5; export B=$'x\\ny \"z\"'; arr=(1 'a b'); declare -A m=([k k]=v); unset GONE; umask 027; set -f\nf() { echo f$1; }"
        first = await call(BASH, at, command=set_up)
        assert first.text == f"[exit code 0; the directory is now {tree}/sub dir]"
        look = (
            'pwd; echo $A "$B" "${arr[1]}" "${m[k k]}" [$GONE]; f 1; umask; echo *; printenv B | head -1; echo err >&2'
        )
        second = await call(BASH, at, command=look)
        assert second.text == f'{tree}/sub dir\n5 x\ny "z" a b v []\nf1\n0027\n*\nx\nerr\n[exit code 0]'
        assert at.shell.directory == tree / "sub dir"
        shutil.rmtree(tree / "sub dir")
        assert (await call(BASH, at, command="pwd")).text.startswith(
            f"{tree}\n[exit code 0; the directory is now {tree}"
        )

    session(tree, play, GONE="was here")


@pytest.mark.parametrize(
    ("command", "code", "kept"),
    [
        ("A=2; exit 3", 3, True),
        ("A=2; set -e; false; echo not reached", 1, True),
        ("A=2; nosuchprogram", 127, True),
        ("A=2\nif", 2, True),
        ("A=2; trap 'echo bye' EXIT", 0, True),
        ("A=2; kill -9 $$", 137, False),
        ("A=2; exec true", 0, False),
        ("A=2; kill -TERM $$; sleep 1", 143, True),
        ("A=2; PATH=; printf() { return 9; }", 0, True),
    ],
)
def test_no_end_of_a_command_is_the_end_of_the_shell(command: str, code: int, kept: bool, tree: Path):
    async def play(at: Place) -> None:
        await call(BASH, at, command="A=1")
        ended = await call(BASH, at, command=command)
        assert (ended.exit_code, ended.is_error) == (code, code != 0)
        assert f"exit code {code}" in ended.text.splitlines()[-1]
        assert ("the shell ended with it" in ended.text) is not kept
        assert (await call(BASH, at, command="echo $A")).text == f"{2 if kept else 1}\n[exit code 0]"

    session(tree, play)


def test_what_bash_complains_of_is_the_command(tree: Path):
    async def play(at: Place) -> None:
        said = await call(BASH, at, command="nosuchprogram")
        assert said.text == "bash: line 1: nosuchprogram: command not found\n[exit code 127]"

    session(tree, play)


STUBBORN = """trap '' TERM INT HUP
setsid bash -c 'trap "" TERM INT HUP; echo $$ > deep; sleep 98765' &
(sleep 98765 & sleep 98765) | cat"""


@pytest.mark.parametrize("how", ["stop", "timeout", "closed", "cancelled"])
def test_a_command_ends_with_its_grandchildren_and_the_shell_stays(how: str, tree: Path):
    async def play(at: Place) -> None:
        await call(BASH, at, command="A=1")
        stranger = subprocess.Popen(["sleep", "87654"], start_new_session=True)  # nobody's but ours
        try:
            command = f"echo begun; {STUBBORN}; touch reached"
            stream = BASH.run({"command": command, "timeout": 2 if how == "timeout" else 60}, at)
            assert (await anext(stream)).text == "begun\n"
            while len(living("sleep 98765")) < 3 or not (tree / "deep").exists():
                await asyncio.sleep(0.01)
            assert at.shell.busy
            began = time.monotonic()
            if how == "closed":
                await stream.aclose()
            elif how == "cancelled":
                task = asyncio.create_task(anext(stream))
                await asyncio.sleep(0.05)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            else:
                if how == "stop":
                    assert await at.shell.stop()
                ended = [item async for item in stream][-1]
                assert isinstance(ended, Outcome) and ended.is_error and ended.exit_code in (137, 143)
                assert f"exit code {ended.exit_code}; stopped" in ended.text
                assert ("time-out" in ended.text) is (how == "timeout")
            assert time.monotonic() - began < 10
            assert not living("sleep 98765") and not (tree / "reached").exists()
            assert not at.shell.busy and not await at.shell.stop()
            assert (await call(BASH, at, command="echo $A")).text == "1\n[exit code 0]"
            assert stranger.poll() is None
        finally:
            stranger.send_signal(signal.SIGKILL)
            stranger.wait()

    session(tree, play)


def test_what_a_command_leaves_running_is_said_and_ends_with_the_session(tree: Path):
    async def play(at: Place) -> None:
        left = await call(BASH, at, command="sleep 76543 & setsid nohup sleep 76543 >/dev/null 2>&1 & true; echo on")
        assert left.exit_code == 0 and re.search(r"it left running, .*: pid \d+, \d+", left.text)
        noisy = await call(BASH, at, command="yes & echo started")
        assert noisy.exit_code == 0
        assert len(living("sleep 76543")) == 2

    session(tree, play)
    assert not living("sleep 76543")


def test_jobs_start_print_and_end(tree: Path):
    async def play(at: Place) -> None:
        await call(BASH, at, command="A=1")
        begun = await call(BASH, at, command="echo one $A; read x < gate; echo two; sleep 65432", background=True)
        assert re.match(r"\[job 1 runs in the background \(pid \d+\)", begun.text) and begun.exit_code is None
        quick = await call(BASH, at, command="exit 7", background=True)
        assert "job 2" in quick.text
        while at.shell.jobs[2].code is None:
            await asyncio.sleep(0.01)
        other = await call(BASH, at, command="echo go > gate; A=9")  # the shell is free meanwhile
        assert "job 2 ended with exit code 7" in other.text
        async with asyncio.timeout(20):
            while b"two" not in at.shell.jobs[1].fresh._tail:
                await asyncio.sleep(0.01)
        assert (await call(JOB_OUTPUT, at, job=1)).text == "one 1\ntwo\n[job 1 runs]"
        assert (await call(JOB_OUTPUT, at, job=1)).text == "[job 1 runs; nothing new was printed]"
        ended = await call(JOB_END, at, job=1)
        assert ended.exit_code == 143 and "[job 1 ended with exit code 143" in ended.text
        assert not living("sleep 65432")
        assert (await call(JOB_END, at, job=5)).is_error and (await call(JOB_OUTPUT, at)).is_error

    os.mkfifo(tree / "gate")
    session(tree, play)


def test_a_job_is_whole_however_soon_the_next_one_begins(tree: Path):
    async def play(at: Place) -> None:
        for number in range(30):
            await call(BASH, at, command=f"echo {number}", background=True)
        jobs = list(at.shell.jobs.values())
        await asyncio.gather(*(job.ending for job in jobs))
        assert [(job.code, bytes(job.take().end())) for job in jobs] == [(0, b"%d\n" % number) for number in range(30)]

    session(tree, play)


def test_commands_take_turns_and_get_no_input(tree: Path):
    async def play(at: Place) -> None:
        many = await asyncio.gather(*(call(BASH, at, command=f"read x; A=${{A}}{n}; echo $A") for n in range(4)))
        assert [one.text.splitlines()[0] for one in many] == ["0", "01", "012", "0123"]

    session(tree, play)


# ------------------------------------------------------------------------------------------------- output and the cap


def test_a_long_output_is_capped_and_the_whole_is_kept_under_its_address(tree: Path):
    async def play(at: Place) -> None:
        long = await call(BASH, at, command="seq 1 20000")
        lines = long.text.splitlines()
        assert lines[0] == "1" and lines[-2:] == ["20000", "[exit code 0]"] and len(lines) <= LINES + 2
        mark = next(line for line in lines if line.startswith("[…"))
        assert re.fullmatch(
            rf"\[… [\d,]+ bytes(?: in [\d,]+ lines)? left out here; the whole: recall {ADDRESS} …\]", mark
        )
        assert long.whole is not None and long.whole.read_text() == "".join(f"{n}\n" for n in range(1, 20001))
        assert long.whole.stat().st_mode & 0o777 == 0o600 and long.whole.parent.stat().st_mode & 0o777 == 0o700
        again = await call(BASH, at, command="seq 1 20000 | tac")  # an equal address: both are kept
        assert wholes(at.outputs, ADDRESS) == [long.whole, again.whole]

    session(tree, play)


def flood(tree: Path, size: str) -> tuple[Outcome, float, int]:
    seen: list[Any] = []

    async def play(at: Place) -> None:
        began = time.monotonic()
        async for item in BASH.run({"command": f"yes 'a line of output' | head -c {size}", "timeout": 120}, at):
            seen.append(len(item.text) if not isinstance(item, Outcome) else item)
        seen.append(time.monotonic() - began)

    session(tree, play)
    *pieces, outcome, took = seen
    assert max(pieces) < 20_000 and len(pieces) <= took / 0.05 + 2  # an eye's pace, whatever comes
    return outcome, took, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def test_a_fast_output_is_followed_at_an_eyes_pace(tree: Path):
    outcome, took, _ = flood(tree, "20M")
    assert outcome.exit_code == 0 and outcome.whole is not None and outcome.whole.stat().st_size == 20 * 2**20
    assert len(outcome.text.encode()) < BYTES + 500 and "bytes left out here" in outcome.text
    assert took < 5


@pytest.mark.slow
def test_a_stream_of_a_gigabyte_takes_bounded_memory_and_disk(tree: Path):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcome, took, after = flood(tree, "1G")
    assert outcome.exit_code == 0 and outcome.whole is not None and outcome.whole.stat().st_size < 65_000_000
    assert "the file keeps the first 64,000,000 bytes" in outcome.text
    assert after - before < 40_000 and took < 60


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=400), st.integers(2, 40), st.integers(20, 200))
def test_a_cap_keeps_head_and_tail_and_what_fits_as_it_is(text: str, lines: int, most: int):
    made = capped(text, ADDRESS, lines=lines, most=most)
    if len(text.encode()) <= most and text.count("\n") < lines:
        assert made == text
        return
    head, mark, tail = re.fullmatch(r"(.*?)\n(\[… [^\n]*? …\])\n(.*)", made, re.S).groups()
    assert text.startswith(head) and text.endswith(tail) and ADDRESS in mark
    assert len(head.encode()) <= most // 2 and len(tail.encode()) <= most // 2


@settings(max_examples=40, deadline=None)
@given(st.lists(st.binary(max_size=50), max_size=20), st.integers(4, 30))
def test_a_spool_holds_all_or_head_and_tail(tmp_path_factory, parts: list[bytes], most: int):
    spool = Spool(tmp_path_factory.mktemp("outputs"), ADDRESS, most=most, kept=100)
    for part in parts:
        spool.write(part)
    whole, held = b"".join(parts), spool.end()
    assert spool.size == len(whole)
    assert held == whole if not spool.partial else held == whole[:most] + whole[-most:]
    if spool.path is not None:
        data = spool.path.read_bytes()
        assert (
            data == whole if len(whole) <= 100 + most else data.startswith(whole[:100]) and data.endswith(whole[-most:])
        )
    else:
        assert len(whole) <= most
