"""One run: the proxy, the client through it, and what there is to say at its end.

Law: whatever is started is stopped, whatever was made is removed, and the client's exit code is the run's. Reads
the user's settings, writes none of them.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .. import project, record
from ..cutter import Verdict
from ..errors import InputError
from ..proxy import state
from ..proxy.app import Gateway
from ..proxy.ledger import Account
from ..proxy.observer import Observer, Place
from . import start
from .start import Wish
from .terminal import Terminal

_VERDICTS: Mapping[str, Verdict] = {"late": "late", "strict": "strict"}


@dataclass(frozen=True, slots=True)
class Ended:
    """A run that ended.

    Attributes:
        code: the client's exit code.
        accounts: the sessions that passed through.
        faults: what went wrong besides, a line each.
        record: path of the record; "" where recording was off.
        notes: what passed without being cut, and why, a line each.
        again: the client and its words before a session's id, where it goes on in it; "" where no client was started.
        copied: a session of that client is better gone on with in a cut copy.
    """

    code: int
    accounts: tuple[Account, ...]
    faults: tuple[str, ...]
    record: str
    notes: tuple[str, ...] = ()
    again: str = ""
    copied: bool = False


def run(
    name: str, arguments: Sequence[str], wish: Wish, terminal: Terminal, ready: Callable[[], None] = lambda: None
) -> Ended:
    """Run a client through a proxy of its own, on this terminal.

    Args:
        name: the client's, as in `start.CLIENTS`.
        arguments: the client's own.
        wish: how the run is wanted; its `record` names the record, "" for none.
        terminal: what takes the signals, entered.
        ready: called when all is there, right before the client starts.

    Raises:
        InputError: the client is not installed, its settings can't be read, or its wire would not pass.
    """
    env = dict(os.environ)
    client = start.client(name)
    binary = shutil.which(client.name, path=env.get("PATH"))
    if binary is None:
        raise InputError(f"{client.name} is not on PATH; install it: npm install -g {client.package}")
    here = Path.cwd()
    prepared = client.launch.prepare(arguments, wish, binary=binary, here=here, environment=env)
    scope = project.project(here)
    known = verdicts(wish.record, scope)
    with contextlib.ExitStack() as undone:  # what was begun last ends first, however the run ends
        folder = state.make(os.getpid())
        undone.callback(folder.lock.close)
        undone.callback(state.remove, folder.path)
        writer = record.Writer(wish.record, apart=True) if wish.record else None
        if writer is not None:
            undone.callback(writer.close)
        observer = Observer(Place(client.name, scope, folder.path, wish.mandate), writer)
        undone.callback(observer.close)
        gateway = Gateway(
            prepared.upstream,
            secrets.token_urlsafe(24),
            passed=observer.passed,
            verdicts=known,
            hook=observer.hook,
            said=observer.said,
            sockets=prepared.sockets,
            named=lambda: observer.session,
        )
        undone.callback(gateway.stop)
        made = prepared.compose(gateway.start(), str(folder.path))
        check(binary, made.arguments)
        for name, text in made.files.items():
            path = folder.path / name
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            path.chmod(0o600)
        if prepared.lay is not None:
            undone.callback(prepared.lay(folder.path))
        ready()
        code = terminal.run([binary, *made.arguments], {**env, **made.environment})
    faults = [*observer.faults, *([f"the record: {writer.fault}"] if writer is not None and writer.fault else [])]
    accounts, notes = tuple(observer.accounts.values()), tuple(observer.notes)
    return Ended(
        code, accounts, tuple(faults), wish.record, notes, f"{client.name} {client.again}", copied=client.copied
    )


def check(binary: str, arguments: Sequence[str]) -> None:
    """Refuse what Windows would start with half of its arguments.

    Raises:
        InputError: a script of cmd.exe's, which ends an argument at its first line break, and one that has some.
    """
    if binary.lower().endswith((".cmd", ".bat")) and any("\n" in argument for argument in arguments):
        raise InputError(f"{binary}: a .cmd file is given no line breaks; install the client's own .exe, and run again")


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
                    found[stop.session, stop.seam] = _VERDICTS.get(stop.rule, "original")
    except record.RecordFault as error:
        if not error.passing:
            raise InputError(f"{error}; or run with --no-record") from None
    return found
