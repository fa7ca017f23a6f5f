"""The tools that run commands: `bash`, and `job_output` and `job_end` for what runs in the background.

Law: how a command ended is always said, first of all its exit code, in the last line of what the model receives. Output
is stdout and stderr as one, cleaned by `plain`; pieces are a view that may skip what nobody could read, the result and
the file of the whole skip nothing but what they say.
"""

from __future__ import annotations

import codecs
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any

from . import arguments
from .capping import Spool, capped
from .plain import Shower, shown
from .shell import Bash, Ended, Job, ShellFault
from .tool import Outcome, Piece, Place, Tool

SECONDS = 120
MOST_SECONDS = 3_600
_EVERY = 0.05  # seconds between two pieces
_SHOWN = 16_384  # bytes of a piece; of more that came meanwhile only the last are shown


async def _bash(given: Mapping[str, Any], at: Place) -> AsyncIterator[Piece | Outcome]:
    shell = _shell(at)
    try:
        command = arguments.text(given, "command")
        seconds = arguments.number(given, "timeout", SECONDS, least=1, most=MOST_SECONDS)
        background = arguments.flag(given, "background")
        if "\0" in command:
            raise arguments.Wrong("command holds a zero byte, which no command can")
    except arguments.Wrong as wrong:
        yield Outcome(f"{wrong}; nothing was run", is_error=True)
        return
    before = shell.directory
    try:
        if background:
            job = await shell.start(command, at.outputs, at.address)
            yield Outcome(
                f"[job {job.number} runs in the background (pid {job.pid}); job_output shows what it prints, job_end"
                f" ends it{_ended_jobs(shell)}]"
            )
            return
        spool, view, began = Spool(at.outputs, at.address), _View(), time.monotonic()
        async with aclosing(shell.run(command, seconds)) as running:
            async for part in running:
                if isinstance(part, Ended):
                    if text := view.end():
                        yield Piece(text)
                    yield _outcome(part, spool, at, before, shell, seconds, time.monotonic() - began)
                else:
                    spool.write(part)
                    if text := view.feed(part):
                        yield Piece(text)
    except ShellFault as fault:
        yield Outcome(f"{fault}", is_error=True)


def _outcome(
    ended: Ended, spool: Spool, at: Place, before: object, shell: Bash, seconds: float, took: float
) -> Outcome:
    text = _text(spool, at.address)
    said = [f"exit code {ended.code}"]
    if ended.why == "timeout":
        said.append(f"stopped at its time-out of {seconds:g} s, with everything that it started")
    elif ended.why == "stopped":
        said.append(f"stopped by the human after {took:.1f} s, with everything that it started")
    if not ended.kept:
        said.append("the shell ended with it and was started again: directory and variables are as before this command")
    if shell.directory != before:
        said.append(f"the directory is now {shown(str(shell.directory))}")
    if ended.left:
        pids = ", ".join(map(str, ended.left[:8])) + (" …" if len(ended.left) > 8 else "")
        said.append(f"it left running, and what that prints is not kept: pid {pids}")
    if spool.fault:
        said.append(spool.fault)
    text = f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}[{'; '.join(said)}{_ended_jobs(shell)}]"
    return Outcome(text, is_error=ended.code != 0 or bool(ended.why), exit_code=ended.code, whole=spool.path)


def _text(spool: Spool, address: str) -> str:
    data = spool.end()
    text = shown(data.decode("utf-8", "replace"))
    kept = address if spool.path is not None else ""
    if spool.partial:
        return capped(text, kept, whole=spool.size)
    return capped(text, kept)


def _ended_jobs(shell: Bash) -> str:
    ended = [job for job in shell.jobs.values() if job.code is not None and not job.told]
    for job in ended:
        job.told = True
    return "".join(f"; job {job.number} ended with exit code {job.code}" for job in ended)


class _View:
    """Pieces for the eye: not more often, and not more at once, than an eye can follow."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._shower = Shower()
        self._waiting = bytearray()
        self._skipped = 0
        self._last = 0.0

    def feed(self, data: bytes) -> str:
        self._waiting += data
        if len(self._waiting) > _SHOWN:
            self._skipped += len(self._waiting) - _SHOWN
            del self._waiting[:-_SHOWN]
        now = time.monotonic()
        if now - self._last < _EVERY:
            return ""
        self._last = now
        return self._take(final=False)

    def end(self) -> str:
        return self._take(final=True) + self._shower.end()

    def _take(self, *, final: bool) -> str:
        mark = f"\n[… {self._skipped:,} bytes not shown …]\n" if self._skipped else ""
        data, self._waiting, self._skipped = bytes(self._waiting), bytearray(), 0
        if mark:
            self._decoder.reset()
            mark = self._shower.end() + mark
        return mark + self._shower.feed(self._decoder.decode(data, final))


async def _job_output(given: Mapping[str, Any], at: Place) -> AsyncIterator[Piece | Outcome]:
    job = _job(given, at)
    if isinstance(job, Outcome):
        yield job
        return
    yield _job_said(job, at)


async def _job_end(given: Mapping[str, Any], at: Place) -> AsyncIterator[Piece | Outcome]:
    job = _job(given, at)
    if isinstance(job, Outcome):
        yield job
        return
    await job.end()
    yield _job_said(job, at)


def _job_said(job: Job, at: Place) -> Outcome:
    taken = job.take()
    data = taken.end()
    text = capped(shown(data.decode("utf-8", "replace")), "", whole=taken.size if taken.partial else None)
    if job.code is None:
        how = f"job {job.number} runs"
    else:
        how, job.told = f"job {job.number} ended with exit code {job.code}", True
    kept = f"; its whole output: recall {job.spool.path.name[:16]}" if job.spool.path is not None else ""
    text += "" if not text or text.endswith("\n") else "\n"
    return Outcome(f"{text}[{how}{kept}{'' if data else '; nothing new was printed'}]", exit_code=job.code)


def _job(given: Mapping[str, Any], at: Place) -> Job | Outcome:
    shell = _shell(at)
    try:
        number = int(arguments.number(given, "job", None, least=1, most=1e9))
    except arguments.Wrong as wrong:
        return Outcome(str(wrong), is_error=True)
    if number not in shell.jobs:
        there = ", ".join(map(str, shell.jobs)) or "none"
        return Outcome(f"there is no job {number}; jobs of this session: {there}", is_error=True)
    return shell.jobs[number]


def _shell(at: Place) -> Bash:
    assert isinstance(at.shell, Bash), "a command's place holds a shell.Bash"
    return at.shell


_JOB = {
    "type": "object",
    "properties": {"job": {"type": "integer", "minimum": 1, "description": "The job's number."}},
    "required": ["job"],
    "additionalProperties": False,
}

BASH = Tool(
    "bash",
    "Run a command in the session's shell (bash). The directory, variables, functions and options that it leaves are"
    " there for the next command; standard input is empty and there is no terminal. Output is stdout and stderr as one,"
    " without colours, other control characters written as <U+…>; a long one is capped to its head and tail, the whole"
    f" can be recalled. The last line states the exit code. It is ended after {SECONDS} s, or `timeout`. What goes"
    " on for longer (a server, a watcher) belongs in the background: it then runs with the shell's present state, and"
    " job_output and job_end look after it. Variables that hold secrets are not there.",
    {
        "type": "object",
        "properties": {
            "command": {"type": "string", "description": "What bash runs; several lines are fine."},
            "timeout": {"type": "number", "minimum": 1, "maximum": MOST_SECONDS, "description": "Seconds."},
            "background": {"type": "boolean", "description": "Run it as a job and return at once."},
        },
        "required": ["command"],
        "additionalProperties": False,
    },
    "run",
    _bash,
)
JOB_OUTPUT = Tool(
    "job_output",
    "What a background job printed since this was last asked, and whether it still runs.",
    _JOB,
    "read",
    _job_output,
)
JOB_END = Tool(
    "job_end",
    "End a background job with all that it started; its last output and its exit code.",
    _JOB,
    "other",
    _job_end,
)
