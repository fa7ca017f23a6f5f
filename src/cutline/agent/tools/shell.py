"""The session's shell: bash commands one after another, that share directory, variables, functions and options.

Law: each command runs in a bash of its own, which begins with the state that the last one left and writes down its own
when it ends. So whatever ends a command (a stop, a time-out, `exit`, `kill -9 $$`), the shell is never lost: at worst
it goes on with the state from before that command, and says so. Only processes of this session are ever ended.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import signal
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from . import processes
from .capping import Spool
from .shell_script import AROUND, LINE

_CHUNK = 65_536
_GRACE = 0.3  # seconds between asking a command to end and ending it
_DRAIN = 0.2  # seconds that output already written is waited for, when something in the background holds the pipe


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended.

    Attributes:
        code: its exit code; 128 + the signal's number where one ended it.
        why: "" for by itself, "stopped" by the human, "timeout".
        kept: the shell has its directory and variables; else those from before it.
        left: ids of processes that it left running.
    """

    code: int
    why: str = ""
    kept: bool = True
    left: tuple[int, ...] = ()


class ShellFault(Exception):
    """The shell can't run a command: one line that says why."""


class Job:
    """A command in the background. Its output is read all the time; what was not asked for yet waits, within a cap."""

    def __init__(self, number: int, command: str, process: _Process, mark: str, spool: Spool) -> None:
        self.number, self.command, self.mark = number, command, mark
        self.spool = spool
        self.fresh = Spool(Path(), "")
        self.told = False  # its end was said
        self._process = process
        self.ending = asyncio.create_task(self._pump())

    @property
    def code(self) -> int | None:
        """Its exit code; None while it runs."""
        return _code(self._process.process.returncode) if self.ending.done() else None

    @property
    def pid(self) -> int:
        """The process id of its bash."""
        return self._process.process.pid

    async def _pump(self) -> None:
        try:
            async for data in self._process.output(None):
                self.spool.write(data)
                self.fresh.write(data)
        finally:
            self.spool.end()

    def take(self) -> Spool:
        """The output since it was last taken."""
        taken, self.fresh = self.fresh, Spool(Path(), "")
        return taken

    async def end(self) -> int:
        """End it with all that it started: its exit code."""
        if not self.ending.done():
            await _end(self._process.process, self.mark)
            await self.ending
        return _code(self._process.process.returncode)


class Bash:
    """A session's shell. Commands that come while another runs wait for it."""

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        """Nothing is started yet.

        Args:
            directory: where the first command starts, and where the shell returns to when its directory is gone.
            environment: the variables that it begins with, all exported.
        """
        self._home = self._directory = directory
        self._environment = dict(environment)
        self._session = secrets.token_hex(8)
        self._folder = Path(tempfile.mkdtemp(prefix="cutline-shell-"))
        self._around = self._folder / "around"
        self._around.write_text(AROUND)  # once: a job that has just begun may still be reading it
        self._count = 0
        self._lock = asyncio.Lock()
        self._running: tuple[asyncio.subprocess.Process, str] | None = None
        self._stopped = False
        self._drains: set[asyncio.Task[None]] = set()
        self.jobs: dict[int, Job] = {}

    @property
    def directory(self) -> Path:
        """Where the next command starts."""
        return self._directory

    @property
    def busy(self) -> bool:
        """Whether a command runs that `stop` would end."""
        return self._running is not None

    async def run(self, command: str, seconds: float) -> AsyncGenerator[bytes | Ended, None]:
        """Run a command: its output as it comes (stdout and stderr as one), then how it ended.

        Closing the iterator ends the command and everything that it started.

        Raises:
            ShellFault: no bash, or the system starts no process.
        """
        async with self._lock:
            running, mark = await self._start(command, keep=True)
            process = running.process
            self._running, self._stopped = (process, mark), False
            late = False
            try:
                try:
                    async with asyncio.timeout(seconds):
                        async for data in running.output(_DRAIN):
                            yield data
                except TimeoutError:
                    late = True
                    await _end(process, mark)
                    async for data in running.output(_DRAIN):
                        yield data
                why = "stopped" if self._stopped else "timeout" if late else ""
                left = () if why else await asyncio.to_thread(processes.ours, mark)
                yield Ended(_code(process.returncode), why, self._keep(), tuple(left))
            finally:
                self._running = None
                if process.returncode is None:
                    await _end(process, mark)
                if not running.at_end:
                    self._watch(running)

    async def start(self, command: str, outputs: Path, address: str) -> Job:
        """Start a command in the background, with the shell's present state. What it sets stays its own.

        Raises:
            ShellFault: no bash, or the system starts no process.
        """
        async with self._lock:
            running, mark = await self._start(command, keep=False)
        number = len(self.jobs) + 1
        self.jobs[number] = Job(number, command, running, mark, Spool(outputs, address))
        return self.jobs[number]

    async def stop(self) -> bool:
        """End the running command and everything that it started; the shell stays. False where nothing ran."""
        if self._running is None:
            return False
        self._stopped = True
        await _end(*self._running)
        return True

    async def close(self) -> None:
        """End whatever this session's commands left running, background jobs too; nothing else."""
        await asyncio.to_thread(processes.end, f"{self._session}.")
        for job in self.jobs.values():
            await job.end()
        for task in self._drains:
            task.cancel()
        await asyncio.gather(*self._drains, return_exceptions=True)
        shutil.rmtree(self._folder, ignore_errors=True)

    async def _start(self, command: str, *, keep: bool) -> tuple[_Process, str]:
        if not (bash := shutil.which("bash", path=self._environment.get("PATH")) or shutil.which("bash")):
            raise ShellFault("there is no bash on this system; install it, or work without this tool")
        if not self._directory.is_dir():
            self._directory = self._home
        self._count += 1
        mark = f"{self._session}.{self._count}"
        file, state = (self._folder / name for name in (f"command-{self._count}", "state"))
        file.write_bytes(command.encode("utf-8", "surrogateescape") + b"\n")
        given = {} if state.exists() else self._environment
        arguments = [
            "--noprofile",
            "--norc",
            "-c",
            LINE,
            "bash",
            str(self._around),
            str(state),
            str(file),
            "yes" if keep else "",
        ]
        reading, writing = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                bash,
                *arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=writing,
                stderr=writing,
                cwd=self._directory,
                env={**given, "PWD": str(self._directory), processes.MARK: mark},
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            os.close(reading)
            raise ShellFault(f"bash can't be started: {error}") from None
        finally:
            os.close(writing)
        return await _Process.of(process, reading), mark

    def _keep(self) -> bool:
        """Take over the state that the last command wrote down; false where it wrote none, or half."""
        state = self._folder / "state"
        new, where = state.with_name("state.new"), state.with_name("state.directory")
        with suppress(OSError):
            whole = new.read_bytes().endswith(b"# whole\n")
            directory = Path(os.fsdecode(where.read_bytes()))
            where.unlink()
            if whole and directory.is_absolute():
                new.replace(state)
                self._directory = directory
                return True
        new.unlink(missing_ok=True)
        where.unlink(missing_ok=True)
        return False

    def _watch(self, running: _Process) -> None:
        """Go on reading what background processes print, so that none stands still, or dies of a closed pipe."""
        task = asyncio.create_task(running.drain())
        self._drains.add(task)
        task.add_done_callback(self._drains.discard)


class _Process:
    """A process and the pipe that it, and whatever it started, prints into."""

    def __init__(self, process: asyncio.subprocess.Process, reader: asyncio.StreamReader) -> None:
        self.process, self._reader = process, reader
        self._transport: asyncio.BaseTransport | None = None
        self._waiting = asyncio.create_task(process.wait())
        self.at_end = False

    @classmethod
    async def of(cls, process: asyncio.subprocess.Process, reading: int) -> _Process:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=_CHUNK)
        made = cls(process, reader)
        made._transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(reading, "rb", buffering=0)
        )
        return made

    async def output(self, drain: float | None) -> AsyncIterator[bytes]:
        """What is printed until the process ended and the pipe is empty.

        Args:
            drain: seconds that the pipe is read on behind its end while others hold it; None until they let go.
        """
        until: float | None = None
        loop = asyncio.get_running_loop()
        while not self.at_end:
            reading = asyncio.ensure_future(self._reader.read(_CHUNK))
            try:
                if until is None and drain is not None:
                    await asyncio.wait({reading, self._waiting}, return_when=asyncio.FIRST_COMPLETED)
                    if self._waiting.done():
                        until = loop.time() + drain
                if not reading.done():
                    # What the process itself wrote lies in the pipe already: a short silence is the end of it.
                    silence = None if until is None else min(0.05, until - loop.time())
                    await asyncio.wait({reading}, timeout=silence)
            finally:
                if not reading.done():
                    reading.cancel()
            if reading.cancelled() or not reading.done():
                break
            data = reading.result()
            if not data:
                self.at_end = True
                self._close()
            else:
                yield data
            if until is not None and loop.time() >= until:
                break
        await self._waiting

    async def drain(self) -> None:
        """Read and forget until nobody holds the pipe any more."""
        try:
            while await self._reader.read(_CHUNK):
                pass
        finally:
            self.at_end = True
            self._close()

    def _close(self) -> None:
        if self._transport is not None:
            self._transport.close()


async def _end(process: asyncio.subprocess.Process, mark: str) -> None:
    """Ask the command to end, then end it with everything that bears its mark; returns when its bash is gone."""
    with suppress(ProcessLookupError, PermissionError):
        # To the whole group, and a signal that no bash in it survives: the rest of its line must not run now.
        os.killpg(process.pid, signal.SIGTERM)
    with suppress(TimeoutError):
        async with asyncio.timeout(_GRACE):
            await process.wait()
            while await asyncio.to_thread(processes.ours, mark):
                await asyncio.sleep(0.02)
    root = process.pid if process.returncode is None else None
    await asyncio.to_thread(processes.end, mark, root)
    await process.wait()


def _code(returned: int | None) -> int:
    return 128 - returned if returned is not None and returned < 0 else returned or 0
