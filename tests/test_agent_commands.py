"""The reading of commands held against bash itself: what would be let run is run, and must not reach the forbidden program."""

import os
import random
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

pytest.importorskip("tree_sitter_bash", reason="the extra `agent` is not installed")

from cutline.agent.tools import BASH, Bash, Place
from cutline.agent.tools.approvals import Rules, verdict

# Pieces that make and break words, lines, quotes and structures. Only two programs are there to be found, both ours.
PIECES = [
    "sudo", "sudo x", "ls", "ls", ";", "&&", "||", "|", "$(", ")", "(", "`", '"', "'", "\\", "\n", "{ ", " }", " if ", " then ",
    " fi", "#", "!", " time ", "<<E\n", "\nE\n", "x=", "$x", "for x in ", "; do ", "; done", "case ls in ls) ", ";; esac", "f() ",
    "[[ ", " ]]", "<(", "> o", "2>&1", "<<< ", "${x:-", "}", "$((", "))", "((", "''", "' '", '"\'"', "-c ", "\t", " ", " ", "$'",
    "function f ", "elif ", "else ", "while ", "until ", "coproc ", "E", "<<-'E'\n", '<<"E"\n', "\\\n", "[", "]", "=", "+=", "&>o",
    "a", "select x in a; do ", ">(", "$", "@(", "*", "?", "~", ",", "{a,",
]  # fmt: skip


def made(rng: random.Random) -> str:
    text = "".join(rng.choice(PIECES) + rng.choice(["", " ", ""]) for _ in range(rng.randint(2, 12)))
    return text if "sudo" in text else f"{text}{rng.choice([' ', ';', chr(10)])}sudo"


@pytest.mark.slow
def test_what_is_let_run_never_reaches_what_is_asked_for(tmp_path: Path):
    bash = shutil.which("bash")
    assert bash
    programs, tree, reached = tmp_path / "programs", tmp_path / "tree", tmp_path / "reached"
    programs.mkdir()
    tree.mkdir()
    for name, does in (("sudo", f": > '{reached}'"), ("ls", ":")):
        (programs / name).write_text(f"#!{bash}\n{does}\n")
        (programs / name).chmod(0o755)
    environment = {"PATH": str(programs), "HOME": str(tmp_path)}
    at = Place(tree, environment, Bash(tree, environment), tmp_path / "outputs")
    rng = random.Random(8)
    ran = 0
    for _ in range(20_000):
        command = made(rng)
        if verdict(Rules("auto"), BASH, {"command": command}, at)[0] != "allow":
            continue
        ran += 1
        running = subprocess.Popen(
            [bash, "-c", 'eval "$1"', "bash", command],
            cwd=tree,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        with suppress(subprocess.TimeoutExpired):
            running.wait(2)
        with suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
        running.wait()
        assert not reached.exists(), command
    assert ran > 200
