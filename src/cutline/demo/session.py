"""Carry the story out: the agent's real loop and tools, over real HTTP to a scripted model on loopback.

Law: words come from `script`, replies from the world; where the world says something else than the words rely on, the
demo fails and says where. Everything it makes lies in one folder; the human's own settings and record are not touched.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from .. import record
from ..agent import events as ev
from ..agent import log, models, prompt
from ..agent.face import Approval
from ..agent.loop import Held, Session
from ..agent.own import OwnTools
from ..agent.state import State
from ..agent.tools import BASH, EDIT, READ, WRITE, Bash, Place
from ..blocks import ToolCall
from ..errors import CutlineError
from ..transport import Report, Transport
from . import commands, program
from .model import Model
from .play import Play
from .script import HANDOFF

MODEL = "anthropic:claude-opus-4-6"
_TOOLS = {tool.name: tool for tool in (BASH, READ, EDIT, WRITE)}
_INHERITED = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONHOME", "TMPDIR")
_BRIEF = "You are a programmer who works beside a human, in the folder crumb. Never change data/."


@dataclass(frozen=True, slots=True)
class Demo:
    """A session that was carried out.

    Attributes:
        project: the repaired program's folder.
        whole: the request with the question for the accountant, as the record holds it.
        sent: the same as it went over the wire.
        report: of the transport, over the whole session.
        steps: calls that were really run, our own tools' among them.
        checkpoint: name of the checkpoint's tool.
        question, answer: the human's, and what the agent answered.
        said: the agent's texts before the question, in order.
        craft: the call of a command that was reached by iteration and saved nowhere.
        recalled: the call whose result was brought back by its address.
    """

    project: Path
    whole: bytes
    sent: bytes
    report: Report
    steps: int
    checkpoint: str
    question: str
    answer: str
    said: tuple[str, ...]
    craft: ToolCall
    recalled: ToolCall


def build(directory: Path, show: Callable[[ev.Event], None] = lambda event: None) -> Demo:
    """Carry the session out in `directory`, which is made where it is absent and may not hold a project already.

    Args:
        directory: gets `crumb`, the program, and beside it the record, the agent's log and a folder of programs.
        show: is shown every event of the agent's, as it happens.

    Raises:
        CutlineError: the folder can't be used, or the world did not answer as the script expects; the message says at
            which step.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if (directory / "crumb").exists():
            raise CutlineError(f"{directory / 'crumb'} exists already; give the demo an empty folder")
        return asyncio.run(_play(directory.resolve(), show))
    except OSError as error:
        raise CutlineError(
            f"the demo could not work in {directory}: {error.strerror or error}; give it another folder"
        ) from None


class _Face:
    """Whoever watches; the script's human types while calls run."""

    def __init__(self, play: Play, show: Callable[[ev.Event], None]) -> None:
        self._play, self._show = play, show
        self.type: Callable[[str], None] = lambda text: None

    def show(self, event: ev.Event) -> None:
        """Pass an event on; words of the human's come where the script has them."""
        self._show(event)
        if isinstance(event, ev.Started) and (hint := self._play.hint()):
            self.type(hint)

    async def approve(self, asked: ev.ApprovalAsked) -> Approval:
        """Never asked: every call may run, in a folder of its own."""
        return Approval(True)


async def _play(directory: Path, show: Callable[[ev.Event], None]) -> Demo:
    project = directory / "crumb"
    program.write(project)
    environment = _environment(directory, project)
    git = "a git repository, on branch main" if _commit(project, environment) else ""
    play, state = Play(), State()
    face = _Face(play, show)
    shell = Bash(project, environment)
    with contextlib.chdir(project):  # the project that checkpoints are stamped with
        transport = Transport(record=directory / "record.db")
    with contextlib.closing(log.Log(directory / "session.jsonl")) as kept, Model(play.script) as scripted:
        asked = models.Model(MODEL, scripted.url, transport, {})
        place = Place(project, environment, shell, directory / "outputs")
        own = OwnTools(transport, place.outputs)
        held = Held(kept, state, face, asked, own, _TOOLS, place, lambda call, tool, at: ("allow", ""))
        session = Session(held)
        face.type = session.hint
        declared = [
            {"name": one.name, "description": one.description, "schema": dict(one.schema)} for one in _TOOLS.values()
        ]
        words = prompt.system(_BRIEF, [], "", Path("crumb"), git)
        known = (*declared, *models.own_tools())
        session.emit(ev.Begun("demo", str(project), MODEL, scripted.url, "nudge", "auto", words, known))
        try:
            failed = ""
            for text in play.humans:
                ended = await session.turn(text)
                if ended.reason != "answered":
                    failed = f"the demo's agent did not end its turn: {ended.reason}"
                    break
        finally:
            await asked.close()
            await shell.close()
            report = await asyncio.to_thread(transport.report)
            await transport.aclose()
    if failed or scripted.unused:
        raise CutlineError(failed or f"{scripted.unused} of the demo's answers were never asked for")
    question = play.first[commands.QUESTION]
    with record.Record(directory / "record.db") as held_record:
        (row,) = held_record.sessions()
        whole = held_record.body(held_record.requests(row.session)[question].id)
    return Demo(
        project,
        whole,
        scripted.main[question].raw,
        report,
        play.steps,
        HANDOFF,
        play.humans[commands.QUESTION],
        play.says(question),
        tuple(map(play.says, range(question))),
        play.tagged["craft"],
        play.tagged["pairs"],
    )


def _environment(directory: Path, project: Path) -> Mapping[str, str]:
    """What commands are given: the same on every machine, and the Python that runs as `python`.

    Raises:
        CutlineError: it is not known which Python is running.
    """
    if not sys.executable:
        raise CutlineError("the demo can't tell which Python is running; start it with `python -m cutline demo`")
    # A link and not a script: temporary folders are often mounted so that nothing in them is executed.
    programs = directory / "programs"
    programs.mkdir(exist_ok=True)
    (programs / "python").symlink_to(sys.executable)
    return {name: os.environ[name] for name in _INHERITED if name in os.environ} | {
        "PATH": f"{programs}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "HOME": str(project),
        "LC_ALL": "C",
        "PYTHONUTF8": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "PYTHON_COLORS": "0",
        "NO_COLOR": "1",
        "GIT_CONFIG_NOSYSTEM": "1",
    }


def _commit(project: Path, environment: Mapping[str, str]) -> bool:
    """Make the project a repository, where there is git: `git diff` then shows what the agent changed."""
    if shutil.which("git", path=environment["PATH"]) is None:
        return False
    who = ("-c", "user.name=Crumb", "-c", "user.email=crumb@example.invalid")
    steps = (("init", "-q", "-b", "main"), ("add", "."), (*who, "commit", "-q", "-m", "The till"))
    return all(
        subprocess.run(["git", *words], cwd=project, env=dict(environment), check=False, capture_output=True).returncode
        == 0
        for words in steps
    )
