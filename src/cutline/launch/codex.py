"""What Codex is started with: the user's own arguments, and what a run adds to them as `-c key=value`.

Law: pure; arguments, configuration and environment in, the same out. Overrides of the user's stand before ours, since
of two the client takes the later one, and those behind a subcommand before those in front of it (docs/codex.md).
"""

from __future__ import annotations

import json
import shlex
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .. import mandate
from ..errors import InputError
from .start import SERVER, Start, Wish, own, run_words, with_loopback

KEYED, CHATGPT = "https://api.openai.com/v1", "https://chatgpt.com/backend-api/codex"
"""Where the client's own provider sends, by an API key and by a login with ChatGPT."""

_STARTS_S = 30  # seconds; the client's own 10 are short where many servers start at once
_SESSIONS = {"exec": "exec", "e": "exec", "review": "review", "resume": "resume", "fork": "fork"}
_NONE = frozenset(
    (
        *("agents", "login", "logout", "mcp", "plugin", "app-server", "remote-control", "completion", "update"),
        *("doctor", "sandbox", "debug", "apply", "a", "queue", "archive", "delete", "migrate-rollouts"),
        *("migrate-nfs-db", "unarchive", "cloud", "exec-server", "features", "help", "mcp-server", "execpolicy"),
    )
)
_SHORT = {
    "c": "config",
    "i": "image",
    "m": "model",
    "p": "profile",
    "s": "sandbox",
    "C": "cd",
    "a": "approve",
    "o": "o",
}
_VALUED = frozenset(
    (
        *("config", "enable", "disable", "remote", "remote-auth-token-env", "image", "model", "local-provider"),
        *("profile", "sandbox", "cd", "add-dir", "ask-for-approval", "output-schema", "output-last-message", "color"),
        *("base", "commit", "title", "thread-source", "cyber-access-program"),
    )
)
_SIGNED = ("amazon-bedrock", "google-vertex")  # built in, and each request is signed or goes elsewhere
_LOCAL = ("ollama", "lmstudio")


@dataclass(frozen=True, slots=True)
class Asked:
    """What the user's arguments hold that a run has to know.

    Attributes:
        rest: the arguments without the overrides.
        overrides: the user's `-c`, in their order.
        command: "exec" or "review", headless, or "resume" or "fork"; "" for a session on the terminal.
        again: it goes on in a session that there was.
        profile: the value of `--profile`; "" where it is not given.
        directory: the value of `--cd`; "" where it is not given.
        local: the provider that `--oss` means, or "?" where the configuration tells it; "" without the flag.
        plain: the user's configuration file is not to be read.
    """

    rest: tuple[str, ...]
    overrides: tuple[str, ...] = ()
    command: str = ""
    again: bool = False
    profile: str = ""
    directory: str = ""
    local: str = ""
    plain: bool = False


@dataclass(frozen=True, slots=True)
class Provider:
    """Where the client would send.

    Attributes:
        name: the provider's id in the client's configuration.
        base: its base URL.
        points: what is overridden to point it elsewhere; each key is given the address.
        sets: what is overridden besides.
    """

    name: str
    base: str
    points: tuple[str, ...]
    sets: tuple[tuple[str, Any], ...] = ()


def asked(arguments: Sequence[str]) -> Asked:
    """Read the user's arguments.

    Raises:
        InputError: a subcommand of the client that starts no session, or one that another server would run.
    """
    rest: list[str] = []
    overrides: list[str] = []
    found: dict[str, str] = {}
    words: list[str] = []
    at = 0
    while at < len(arguments):
        word = arguments[at]
        at += 1
        if word == "--":
            rest += arguments[at - 1 :]
            break
        name, value = _option(word)
        if not name:
            if not words and word in _NONE:
                raise InputError(f"run starts a session; for this, type: codex {shlex.join(arguments)}")
            words.append(word)
            rest.append(word)
            continue
        given = [word]
        if name in _VALUED and value is None:
            if at >= len(arguments):
                raise InputError(f"{word} needs a value")
            value = arguments[at]
            given.append(value)
            at += 1
            while name == "image" and at < len(arguments) and not arguments[at].startswith("-"):
                given.append(arguments[at])  # it takes all words that follow
                at += 1
        if name == "config":
            overrides.append(value or "")
            continue
        found[name] = value or ""
        rest += given
    if "remote" in found:
        raise InputError("--remote: another server would run the session, past the proxy; run it without")
    local = (found.get("local-provider") or "?") if "oss" in found else ""
    profile, directory = found.get("profile", ""), found.get("cd", "")
    plain = "ignore-user-config" in found
    command = _SESSIONS.get(words[0], "") if words else ""
    again = bool({"resume", "fork"} & {command, *(words[1:2] if command == "exec" else ())})
    return Asked(tuple(rest), tuple(overrides), command, again, profile, directory, local, plain)


def _option(word: str) -> tuple[str, str | None]:
    """An option's long name and the value that stands in the same word, if one does; no name for another word."""
    if word.startswith("--"):
        name, equals, value = word[2:].partition("=")
        return name, value if equals else None
    if word.startswith("-") and len(word) > 1:
        return _SHORT.get(word[1], word[1]), word[2:].removeprefix("=") or None
    return "", None


def settings(overrides: Iterable[str]) -> dict[str, Any]:
    """The user's `-c` as one table, read as the client reads them: a value that is no TOML is text.

    Raises:
        InputError: one without a key or a value.
    """
    table: dict[str, Any] = {}
    for given in overrides:
        key, equals, text = given.partition("=")
        if not equals or not key.strip():
            raise InputError(f"-c {given}: has to be key=value")
        try:
            value = tomllib.loads(f"x = {text}")["x"]
        except tomllib.TOMLDecodeError:
            value = text.strip().strip("\"'")
        for part in reversed(key.strip().split(".")):
            value = {part: value}
        table = merged(table, value)
    return table


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Two layers of configuration as one: tables are merged, of anything else the upper one counts."""
    out = dict(below)
    for key, value in above.items():
        held = out.get(key)
        out[key] = merged(held, value) if isinstance(held, dict) and isinstance(value, dict) else value
    return out


def provider(user: Asked, config: Mapping[str, Any], chatgpt: bool) -> Provider:
    """Where the client would send, and how it is told to send elsewhere.

    Args:
        user: the user's arguments.
        config: the client's configuration, all layers merged.
        chatgpt: the login is one with ChatGPT.

    Raises:
        InputError: a provider whose wire the proxy can't stand in.
    """
    if user.local:
        name = user.local if user.local != "?" else str(config.get("oss_provider") or "ollama")
    else:
        name = str(config.get("model_provider") or "openai")
    if name == "openai":
        base = _text(config.get("openai_base_url")) or (CHATGPT if chatgpt else KEYED)
        return Provider(name, base, ("openai_base_url",))
    held = _table(_table(config.get("model_providers")).get(name))
    if name in _SIGNED or "aws" in held:
        raise InputError(f"{name}: its requests are signed or go their own way; run works with API keys and ChatGPT")
    base = _text(held.get("base_url"))
    if not base and name in _LOCAL:
        raise InputError(
            f"{name}: the client finds its local server by itself; name it in config.toml as a provider of your own, "
            'with base_url = "http://127.0.0.1:11434/v1", and give -c model_provider=NAME'
        )
    if not base:
        raise InputError(f"model_providers.{name} has no base_url in config.toml; the run would not know where to send")
    if "." in name:
        raise InputError(f"model_providers.{name}: a name with a dot can't be overridden; give it another name")
    sets = ((f"model_providers.{name}.supports_websockets", False),) if held.get("supports_websockets") else ()
    return Provider(name, base, (f"model_providers.{name}.base_url",), sets)


def compose(
    user: Asked,
    wish: Wish,
    *,
    address: str,
    folder: str,
    python: str,
    upstream: Provider,
    config: Mapping[str, Any],
    environment: Mapping[str, str],
    alone: bool,
) -> Start:
    """What to start the client with.

    Args:
        user: the user's arguments.
        wish: how the run is wanted.
        address: the proxy's address, token and all.
        folder: the run's own folder.
        python: the interpreter that runs Cutline's own commands.
        upstream: what `provider` found.
        config: the client's configuration, all layers merged.
        environment: the user's.
        alone: this version knows the flag that keeps a session out of a server shared with others.

    Raises:
        InputError: an MCP server of the user's has the name of ours, and would be merged with it.
    """
    if "url" in _table(_table(config.get("mcp_servers")).get(SERVER)):
        raise InputError(f"mcp_servers.{SERVER} in config.toml is an address; give that server another name")
    words = run_words(folder, wish)
    # The client gives a server few of its variables; by this one recall finds the session files.
    kept = {name: environment[name] for name in ("CODEX_HOME", "XDG_DATA_HOME") if environment.get(name)}
    # In a session that there was the client gives no new instructions; the server's stand beside its tools.
    server = own(python, "mcp", *(["--mandate"] if user.again else []))
    ours: list[tuple[str, Any]] = [
        *((key, address) for key in upstream.points),
        *upstream.sets,
        (
            f"mcp_servers.{SERVER}",
            {
                "command": server[0],
                "args": server[1:],
                "env": {**kept, **words},
                "enabled": True,
                "startup_timeout_sec": _STARTS_S,
                "default_tools_approval_mode": "approve",
                "supports_parallel_tool_calls": True,
                "required": True,  # the first request waits for it
                # In view, and called by themselves: not looked up, not from within a script.
                "omit_tools_from": ["deferred", "code_mode"],
            },
        ),
        ("developer_instructions", _instructions(config)),
    ]
    given = [*user.overrides, *(f"{key}={toml(value)}" for key, value in ours)]
    arguments = [word for one in given for word in ("-c", one)]
    if alone and user.command in ("", "resume", "fork"):
        arguments.append("--no-daemon")
    return Start((*arguments, *user.rest), {**with_loopback(environment), **words}, {})


def _instructions(config: Mapping[str, Any]) -> str:
    """The user's own, then the mandate."""
    return "\n\n".join(part for part in (_text(config.get("developer_instructions")), mandate.MANDATE) if part)


def toml(value: Any) -> str:
    """A value in TOML, on one line."""
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{toml(key)}={toml(held)}" for key, held in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(toml, value)) + "]"
    # TOML's basic strings are JSON's, but for halves of surrogate pairs and DEL.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
