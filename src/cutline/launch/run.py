"""One run: the proxy, the client through it, and what there is to say at its end.

Law: whatever is started is stopped, whatever was made is removed, and the client's exit code is the run's. Reads
the user's settings, writes none of them.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import project, record
from ..errors import InputError
from ..proxy import state
from ..proxy.app import Gateway
from ..proxy.ledger import Account
from ..proxy.observer import Observer, Place
from ..proxy.plan import Verdict
from . import claude_code
from .claude_code import Wish
from .terminal import Terminal

_PROBE_S = 20


@dataclass(frozen=True, slots=True)
class Ended:
    """A run that ended.

    Attributes:
        code: the client's exit code.
        accounts: the sessions that passed through.
        faults: what went wrong besides, a line each.
        record: path of the record; "" where recording was off.
    """

    code: int
    accounts: tuple[Account, ...]
    faults: tuple[str, ...]
    record: str


def claude(arguments: Sequence[str], wish: Wish, terminal: Terminal, ready: Callable[[], None] = lambda: None) -> Ended:
    """Run Claude Code through a proxy of its own, on this terminal.

    Args:
        arguments: the client's own.
        wish: how the run is wanted; its `record` names the record, "" for none.
        terminal: what takes the signals, entered.
        ready: called when all is there, right before the client starts.

    Raises:
        InputError: the client is not installed, its settings can't be read, or it is set to another provider.
    """
    env = dict(os.environ)
    binary = shutil.which("claude", path=env.get("PATH"))
    if binary is None:
        raise InputError("claude is not on PATH; install it: npm install -g @anthropic-ai/claude-code")
    user = claude_code.asked(arguments)
    here = Path.cwd()
    layers = _layers(user, here, env)
    provider = claude_code.upstream(layers, env)
    appended = _text(user.append_file)
    scope = project.project(here)
    known = verdicts(wish.record, scope)
    with contextlib.ExitStack() as undone:  # what was begun last ends first, however the run ends
        folder = state.make(os.getpid())
        undone.callback(folder.lock.close)
        undone.callback(state.remove, folder.path)
        writer = record.Writer(wish.record) if wish.record else None
        if writer is not None:
            undone.callback(writer.close)
        observer = Observer(Place("claude", scope, folder.path, wish.mandate), writer)
        undone.callback(observer.close)
        gateway = Gateway(
            provider,
            secrets.token_urlsafe(24),
            passed=observer.passed,
            verdicts=known,
            hook=observer.hook,
        )
        undone.callback(gateway.stop)
        lines = (layer.get("statusLine") for layer in layers)
        start = claude_code.compose(
            user,
            wish,
            address=gateway.start(),
            provider=provider,
            folder=str(folder.path),
            python=sys.executable,
            given=layers[0],
            appended=appended,
            status_line=next((line for line in lines if isinstance(line, dict)), None),
            environment=env,
            shows_thinking=_shows_thinking(binary, env),
        )
        for name, text in start.files.items():
            (folder.path / name).write_text(text, encoding="utf-8")
            (folder.path / name).chmod(0o600)
        ready()
        code = terminal.run([binary, *start.arguments], {**env, **start.environment})
    faults = [*observer.faults, *([f"the record: {writer.fault}"] if writer is not None and writer.fault else [])]
    return Ended(code, tuple(observer.accounts.values()), tuple(faults), wish.record)


def _layers(user: claude_code.Asked, here: Path, environment: Mapping[str, str]) -> list[dict[str, Any]]:
    """The client's settings, the strongest first: the flag's, the project's local ones, the project's, the user's."""
    home = Path(environment.get("CLAUDE_CONFIG_DIR") or Path(environment.get("HOME") or Path.home()) / ".claude")
    files = {
        "local": here / ".claude" / "settings.local.json",
        "project": here / ".claude" / "settings.json",
        "user": home / "settings.json",
    }
    wanted = files if user.sources is None else {part.strip() for part in user.sources.split(",")}
    return [_given(user.settings), *(_quietly(path) for name, path in files.items() if name in wanted)]


def _given(settings: str | None) -> dict[str, Any]:
    """The user's `--settings`: a path or JSON."""
    if settings is None:
        return {}
    if not settings.lstrip().startswith("{"):
        path = Path(settings).expanduser()
        try:
            settings = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "no UTF-8"
            raise InputError(f"--settings {path}: {str(why).lower()}") from None
    try:
        value = json.loads(settings)
    except (ValueError, RecursionError) as error:
        raise InputError(f"--settings: no JSON: {error}") from None
    if not isinstance(value, dict):
        raise InputError("--settings: has to be a JSON object")
    return value


def _text(path: str | None) -> str | None:
    """The user's `--append-system-prompt-file`."""
    if path is None:
        return None
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "no UTF-8"
        raise InputError(f"--append-system-prompt-file {path}: {str(why).lower()}") from None


def _quietly(path: Path) -> dict[str, Any]:
    """A settings file of the user's; what can't be read is the client's to complain about."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _shows_thinking(binary: str, environment: Mapping[str, str]) -> bool:
    """Whether this version knows the flag that shows narration blocks' words: it says so without a network."""
    try:
        done = subprocess.run(
            [binary, "--thinking-display", "summarized", "--version"],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PROBE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def verdicts(path: str, scope: str) -> dict[tuple[str, str], Verdict]:
    """What a provider's refusals led to in earlier runs of a project; nothing where the record can't be read now.

    Raises:
        InputError: the record is refused for good: another's, or of a newer version.
    """
    found: dict[tuple[str, str], Verdict] = {}
    if not path or not Path(path).exists():
        return found
    try:
        with record.Record(path, readonly=True) as held:
            for row in held.sessions(scope):
                for stop in held.stops(row.session):
                    found[stop.session, stop.seam] = "late" if stop.rule == "late" else "original"
    except record.RecordFault as error:
        if not error.passing:
            raise InputError(f"{error}; or run with --no-record") from None
    return found
