"""Cutline's command as a process of its own, without the time that Python takes to begin one.

One process for each test process imports what the commands import, and forks for each command: what comes out has
its own arguments, directory, environment, streams and exit code, and what it changes in itself is gone with it.
It begins in a bare environment, so its locale is C.UTF-8; a test of locales, of memory or of imports starts its own.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

# What the usual commands import when they are called.
USED = (
    "card",
    "cost",
    "cut",
    "doctor",
    "ls",
    "move",
    "overview",
    "recall",
    "resume",
    "revive",
    "run",
    "show",
    "verify",
)


# ------------------------------------------------------------------------------------------------- in the tests


def run(
    *args: str, cwd: Path, env: Mapping[str, str], stdin: bytes = b"", timeout: float = 60
) -> subprocess.CompletedProcess[bytes]:
    """What `subprocess.run` of `cutline` with these arguments gives."""
    ours, theirs = socket.socketpair()
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, ours:
        given.write(stdin)
        given.seek(0)
        with theirs:
            socket.send_fds(_server(), [b"."], [given.fileno(), out.fileno(), err.fileno(), theirs.fileno()])
        asked = json.dumps({"args": args, "cwd": str(cwd), "env": dict(env)}).encode()
        ours.sendall(struct.pack("!I", len(asked)) + asked)
        (pid,) = struct.unpack("!i", _exactly(ours, 4))
        ours.settimeout(timeout)
        try:
            (code,) = struct.unpack("!i", _exactly(ours, 4))
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            raise subprocess.TimeoutExpired(["cutline", *args], timeout) from None
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(["cutline", *args], code, out.read(), err.read())


@functools.cache
def _server() -> socket.socket:
    ours, theirs = socket.socketpair()
    with theirs:
        started = subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            cwd="/",
            env={"PATH": os.environ["PATH"]},
            stdin=subprocess.DEVNULL,
        )

    def ended() -> None:
        ours.close()
        started.wait()

    atexit.register(ended)
    return ours


def _exactly(channel: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        piece = channel.recv(size - len(found))
        if not piece:
            raise EOFError("the process that starts commands has ended; its last words are above")
        found += piece
    return found


# ----------------------------------------------------------------------------------------- in the other process


def _serve(asking: socket.socket) -> list[str]:
    """Returns in each command's process, with the command's arguments, and in no other."""
    while True:
        _, fds, _, _ = socket.recv_fds(asking, 1, 4)
        if not fds:
            os._exit(0)
        if os.fork():
            for fd in fds:
                os.close(fd)
            continue
        # Stands between the two: waits for the command, and tells how it ended.
        asking.close()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        channel = socket.socket(fileno=fds.pop())
        (size,) = struct.unpack("!I", _exactly(channel, 4))
        asked = json.loads(_exactly(channel, size))
        pid = os.fork()
        if pid:
            channel.sendall(struct.pack("!i", pid))
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            try:
                channel.sendall(struct.pack("!i", code))
            finally:
                os._exit(0)
        channel.close()
        for number, fd in enumerate(fds):
            os.dup2(fd, number)
            os.close(fd)
        os.chdir(asked["cwd"])
        locale = os.environ.get("LC_CTYPE")  # Python's own doing in a bare environment
        os.environ.clear()
        os.environ.update(({"LC_CTYPE": locale} if locale else {}) | asked["env"])
        args: list[str] = asked["args"]
        return args


def _main() -> None:
    import gc
    import importlib
    import pkgutil

    sys.path.remove(str(Path(__file__).parent))  # the command sees none of the tests
    for name in USED:
        importlib.import_module(f"cutline.cli.{name}")
    from cutline import money, sessions

    for module in pkgutil.walk_packages(sessions.__path__, f"{sessions.__name__}."):
        importlib.import_module(module.name)
    money.rates("claude-sonnet-4-5")  # loads the prices
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=int(sys.argv[1])) as asking:
        sys.argv = ["-c", *_serve(asking)]
    from cutline.cli import main

    main()


if __name__ == "__main__":
    _main()
