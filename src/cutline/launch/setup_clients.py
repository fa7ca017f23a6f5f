"""What `cutline setup` gives each client: which files, and what stands in them.

Law: looks only. Everywhere it is the tools' server and the mandate, in the client's own official place for them;
nothing points at a proxy, since a client that is led to one which is not running works no more (docs/setup.md). Where
a client takes files of ours as they are (an extension), the user's own are not touched.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from .. import mandate
from ..errors import InputError
from . import gemini, setup_text
from .claude_code import TOOLS
from .setup_text import Entry
from .start import SERVER, dump, own

_STARTS_S, _WAITS_MS = 30, 10_000
_OPENCODE = ("opencode.jsonc", "opencode.json", "config.json")


@dataclass(frozen=True, slots=True)
class File:
    """A file that is given something.

    Attributes:
        path: which.
        kind: how it is written; "own" for one that is ours alone.
        entries: what a file of the user's is given.
        text: all of a file of ours.
    """

    path: Path
    kind: Literal["json", "toml", "own"]
    entries: tuple[Entry, ...] = ()
    text: str = ""


@dataclass(frozen=True, slots=True)
class Given:
    """What a client is given.

    Attributes:
        folder: where its settings lie.
        files: the files that are given something.
        others: files that are not, and where in them a server of the user's would have the name of ours.
    """

    folder: Path
    files: tuple[File, ...]
    others: tuple[tuple[Path, tuple[str, ...]], ...] = ()


def given(name: str, environment: Mapping[str, str], python: str) -> Given:
    """What a client is given.

    Args:
        name: the client's, as behind `cutline run`.
        environment: the user's.
        python: the interpreter that runs Cutline's own commands.

    Raises:
        InputError: a client that is not known.
    """
    if name not in _CLIENTS:
        raise InputError(f"setup knows {', '.join(_CLIENTS)}, not {name}")
    home = Path(environment.get("HOME") or Path.home())
    return _CLIENTS[name](home, environment, python)


def check(wanted: Given, python: str) -> None:
    """Refuse what would not work.

    Raises:
        InputError: the interpreter runs from a cache, as `uvx` does; or a server of the user's has the name of ours.
    """
    for path, keys in wanted.others:
        _free(path, keys)
    if any(part.startswith(("archive-v", "environments-v")) for part in Path(python).parts):
        raise InputError(
            "this cutline runs from uv's cache, and may be gone tomorrow: uv tool install cutline, then again"
        )


def _claude(home: Path, environment: Mapping[str, str], python: str) -> Given:
    moved = environment.get("CLAUDE_CONFIG_DIR")
    folder = Path(moved) if moved else home / ".claude"
    command, *arguments = own(python, "mcp", "--mandate")
    server = {"type": "stdio", "command": command, "args": arguments, "env": {}, "alwaysLoad": True}
    servers = File((folder if moved else home) / ".claude.json", "json", (Entry(("mcpServers", SERVER), server),))
    allowed = Entry(("permissions", "allow"), list(TOOLS), joins=True)
    return Given(folder, (servers, File(folder / "settings.json", "json", (allowed,))))


def _codex(home: Path, environment: Mapping[str, str], python: str) -> Given:
    folder = Path(environment.get("CODEX_HOME") or home / ".codex")
    command, *arguments = own(python, "mcp", "--mandate")
    server = {
        "command": command,
        "args": arguments,
        # The client gives a server few of its variables; by these recall finds session files and the record.
        "env_vars": ["CODEX_HOME", "XDG_DATA_HOME"],
        "startup_timeout_sec": _STARTS_S,
        "default_tools_approval_mode": "approve",
        "supports_parallel_tool_calls": True,
        "omit_tools_from": ["deferred", "code_mode"],  # in view, and called by themselves
    }
    # The first request waits a second for servers, and what comes later is not there for the whole session.
    waits = Entry(("mcp_optional_startup_grace_ms",), _WAITS_MS, yields=True)
    return Given(folder, (File(folder / "config.toml", "toml", (waits, Entry(("mcp_servers", SERVER), server))),))


def _gemini(home: Path, environment: Mapping[str, str], python: str) -> Given:
    folder = Path(environment.get("GEMINI_CLI_HOME") or home) / ".gemini"
    extension = folder / "extensions" / SERVER
    files = (
        File(extension / "gemini-extension.json", "own", text=gemini.extension(own(python, "mcp"), {}) + "\n"),
        File(extension / gemini.WORDS, "own", text=mandate.MANDATE + "\n"),
        File(folder / "policies" / f"{SERVER}.toml", "own", text=gemini.policy()),
    )
    return Given(folder, files, ((folder / "settings.json", ("mcpServers", SERVER)),))


def _opencode(home: Path, environment: Mapping[str, str], python: str) -> Given:
    folder = Path(environment.get("XDG_CONFIG_HOME") or home / ".config") / "opencode"
    there = [folder / name for name in _OPENCODE if (folder / name).exists()]
    server = {"type": "local", "command": own(python, "mcp", "--mandate"), "enabled": True}
    path = there[0] if there else folder / "opencode.json"
    file = File(path, "json", (Entry(("mcp", SERVER), server),))
    return Given(folder, (file,), tuple((path, ("mcp", SERVER)) for path in there[1:]))


def _pi(home: Path, environment: Mapping[str, str], python: str) -> Given:
    folder = Path(environment.get("PI_CODING_AGENT_DIR") or home / ".pi" / "agent").expanduser()
    command, *arguments = own(python, "mcp")
    server = {"command": command, "args": arguments, "exposure": "direct"}
    text = _PI % (dump(server), json.dumps(mandate.MANDATE))
    file = File(folder / "extensions" / f"{SERVER}.js", "own", text=text)
    return Given(folder, (file,), ((folder / "mcp.json", ("mcpServers", SERVER)),))


_PI = """\
// Written by `cutline setup pi`; `cutline setup pi --remove` takes it away.
const server = %s;
const mandate = %s;

export default function (pi) {
	if (process.env.CUTLINE_RUN) return; // `cutline run pi` brings its own tools
	pi.registerMcpServer("cutline", server);
	pi.on("before_agent_start", (event) => {
		event.systemPromptOptions.sections.cutline = mandate;
	});
}
"""
_CLIENTS: dict[str, Callable[[Path, Mapping[str, str], str], Given]] = {
    "claude": _claude,
    "codex": _codex,
    "gemini": _gemini,
    "opencode": _opencode,
    "pi": _pi,
}
NAMES = tuple(_CLIENTS)
"""The clients that can be set up, as behind `cutline run`."""


def _free(path: Path, keys: tuple[str, ...]) -> None:
    """See to it that a file which is not edited holds no server of our name."""
    if not path.exists():
        return
    try:
        held: Any = setup_text.value("json", path.read_bytes())
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    for key in keys:
        held = held.get(key) if isinstance(held, dict) else None
    if held is not None:
        raise InputError(f"{path}: {'.'.join(keys)} is a server of that name already; take it out or rename it")
