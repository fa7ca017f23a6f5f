"""What Claude Code is started with: the user's own arguments, and what a run adds to them.

Law: pure; arguments, settings and environment in, the same out. What the user gave stays and wins where only one
can be; the client's own rules of merging are measured in docs/claude-code.md.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from .. import mandate
from ..errors import InputError
from .start import SERVER, Start, Wish, dump, own, run_words, with_loopback

DEFAULT_UPSTREAM = "https://api.anthropic.com"
TOOLS = tuple(f"mcp__{SERVER}__{tool['name']}" for tool in mandate.TOOLS)

_SUBCOMMANDS = frozenset(
    (
        *("agents", "auth", "config", "doctor", "install", "login", "logout", "mcp", "migrate-installer", "plugin"),
        *("plugins", "setup-token", "update", "upgrade", "auto-mode", "remote-control"),
    )
)
_MERGED = ("--settings", "--setting-sources", "--append-system-prompt", "--append-system-prompt-file")
# Other providers' wires: the proxy would not see the traffic, or could not sign it.
_ELSEWHERE = ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY", "CLAUDE_CODE_USE_MANTLE")


@dataclass(frozen=True, slots=True)
class Asked:
    """What the user's arguments hold that a run has to merge with its own.

    Attributes:
        rest: the arguments without the merged ones.
        settings: the value of `--settings`, a path or JSON; None where it is not given.
        sources: the value of `--setting-sources`; None where it is not given.
        append: the value of `--append-system-prompt`; None where it is not given.
        append_file: the value of `--append-system-prompt-file`; None where it is not given.
        display: a `--thinking-display` is given.
    """

    rest: tuple[str, ...]
    settings: str | None
    sources: str | None
    append: str | None
    append_file: str | None
    display: bool


def asked(arguments: Sequence[str]) -> Asked:
    """Read the user's arguments.

    Raises:
        InputError: a subcommand of the client, which starts no session.
    """
    if arguments and arguments[0] in _SUBCOMMANDS:
        raise InputError(f"run starts a session; for this, type: claude {shlex.join(arguments)}")
    rest: list[str] = []
    found: dict[str, str] = {}
    display = False
    at = 0
    while at < len(arguments):
        word = arguments[at]
        name, equals, value = word.partition("=")
        if word == "--":
            rest += arguments[at:]
            break
        if name in ("--settings", "--append-system-prompt", "--append-system-prompt-file"):
            if not equals:
                at += 1
                if at >= len(arguments):
                    raise InputError(f"{name} needs a value")
                value = arguments[at]
            if not value:
                raise InputError(f"{name} needs a value")
            found[name] = value
        else:
            display = display or name == "--thinking-display"
            if name == "--setting-sources":
                found[name] = value if equals else next(iter(arguments[at + 1 :]), "")
            rest.append(word)
        at += 1
    settings, sources, append, file = (found.get(name) for name in _MERGED)
    return Asked(tuple(rest), settings, sources, append, file, display)


def upstream(layers: Sequence[Mapping[str, Any]], environment: Mapping[str, str]) -> str:
    """The provider's base URL that the client would use.

    Args:
        layers: the client's settings, the strongest first.
        environment: the process's.

    Raises:
        InputError: the client is set to a provider whose wire the proxy does not speak.
    """

    def setting(name: str) -> str:
        for layer in layers:
            held = layer.get("env")
            if isinstance(held, Mapping) and isinstance(held.get(name), str):
                return str(held[name])
        return environment.get(name, "")

    for name in _ELSEWHERE:
        if setting(name) not in ("", "0", "false"):
            raise InputError(f"{name} is set: the proxy speaks Anthropic's own API only; unset it, or run claude plain")
    return setting("ANTHROPIC_BASE_URL") or DEFAULT_UPSTREAM


def compose(
    user: Asked,
    wish: Wish,
    *,
    address: str,
    provider: str,
    folder: str,
    python: str,
    given: Mapping[str, Any],
    appended: str | None = None,
    status_line: Mapping[str, Any] | None,
    environment: Mapping[str, str],
    shows_thinking: bool,
) -> Start:
    """What to start the client with.

    Args:
        user: the user's arguments.
        wish: how the run is wanted.
        address: the proxy's address, token and all.
        provider: the provider's base URL.
        folder: the run's own folder.
        python: the interpreter that runs Cutline's own commands.
        given: the user's `--settings`, decoded.
        appended: what the user's `--append-system-prompt-file` holds.
        status_line: the status line that the client would show, from whichever settings; None for none.
        environment: the user's.
        shows_thinking: the client knows the flag that shows narration blocks' words.
    """
    own_words = run_words(folder, wish)
    set_ = {"ANTHROPIC_BASE_URL": address, **with_loopback(environment), **own_words}
    if "ENABLE_TOOL_SEARCH" not in environment and urlsplit(provider).hostname == "api.anthropic.com":
        # Older versions turn tool search off for a base URL that is not the provider's own.
        set_["ENABLE_TOOL_SEARCH"] = "true"
    server = own(python, "mcp")
    files = {
        "mcp.json": dump(
            {
                "mcpServers": {
                    SERVER: {
                        "command": server[0],
                        "args": server[1:],
                        "env": own_words,
                        "alwaysLoad": True,
                    }
                }
            }
        ),
        "settings.json": dump(_settings(given, wish, address, python, status_line)),
    }
    if status_line is not None:
        files["statusline.json"] = dump(dict(status_line))
    # The client takes one appended prompt: the newest joins file and text in this order, older ones refuse both.
    words = "\n\n".join(part for part in (appended, user.append, mandate.MANDATE) if part)
    # Each with "=": an option that takes several values would swallow a prompt that follows it.
    arguments = [
        f"--settings={folder}/settings.json",
        f"--mcp-config={folder}/mcp.json",
        f"--append-system-prompt={words}",
    ]
    if shows_thinking and not user.display:
        arguments.append("--thinking-display=summarized")
    return Start((*arguments, *user.rest), set_, files)


def uncounted(python: str, since: datetime) -> dict[str, Any]:
    """The settings with which a cut copy is resumed, besides the user's own.

    The client reckons how full a session is by its last answer's usage, which in a copy is of the uncut history; so
    its automatic summary is held back until a request was answered (docs/claude-code-sessions.md).
    """
    moment = since.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    hook = {"type": "command", "command": shlex.join(own(python, "hook", "full", "--since", moment)), "timeout": 10}
    return {"hooks": {"PreCompact": [{"matcher": "auto", "hooks": [hook]}]}}


def _settings(
    given: Mapping[str, Any],
    wish: Wish,
    address: str,
    python: str,
    status_line: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """The user's `--settings` with a run's own put in: hooks are added, permissions too."""
    merged = json.loads(json.dumps(given))
    # The user's settings file may set a base URL too, and would win over the environment.
    merged["env"] = {**_object(merged.get("env")), "ANTHROPIC_BASE_URL": address}
    permissions = _object(merged.get("permissions"))
    merged["permissions"] = {**permissions, "allow": [*_list(permissions.get("allow")), *TOOLS]}
    hooks = _object(merged.get("hooks"))
    for event, entry in _hooks(wish, address, python):
        hooks[event] = [*_list(hooks.get(event)), entry]
    merged["hooks"] = hooks
    line: dict[str, Any] = {"type": "command", "command": shlex.join(own(python, "status", "--line"))}
    if status_line is not None and "padding" in status_line:
        line["padding"] = status_line["padding"]
    merged["statusLine"] = line
    return dict(merged)


def _hooks(wish: Wish, address: str, python: str) -> list[tuple[str, dict[str, Any]]]:
    def asking(name: str) -> dict[str, Any]:
        return {"type": "http", "url": f"{address}/cutline/hook/{name}", "timeout": 5}

    found: list[tuple[str, dict[str, Any]]] = []
    if wish.mandate != "text":
        found.append(("PreToolUse", {"hooks": [asking("before-call")]}))
    if not wish.keep_compaction:
        found += [
            ("PreCompact", {"matcher": "auto", "hooks": [asking("before-compaction")]}),
            ("PostToolUse", {"hooks": [asking("after-call")]}),
            ("UserPromptSubmit", {"hooks": [asking("after-call")]}),
        ]
    after = {"type": "command", "command": shlex.join(own(python, "hook", "compacted")), "timeout": 10}
    found.append(("SessionStart", {"matcher": "compact", "hooks": [after]}))  # it takes no address, only a command
    return found


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
