"""Codex's configuration as it stands when a run begins. Law: reading only; what the user has is never written."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import InputError
from . import codex
from .codex import Asked
from .start import Prepared, Start, Wish

_PROBE_S = 20
_SYSTEM = Path("/etc/codex/config.toml")
# What a project's own file may not set, in the client.
_NOT_THE_PROJECTS = (
    "openai_base_url",
    "chatgpt_base_url",
    "model_provider",
    "model_providers",
    "profile",
    "oss_provider",
)


def prepare(
    arguments: Sequence[str], wish: Wish, *, binary: str, here: Path, environment: Mapping[str, str]
) -> Prepared:
    """Read what a run has to know (see `start.Launch`).

    Raises:
        InputError: its configuration can't be read, or it is set to a provider that the proxy can't stand in for.
    """
    if wish.mandate != "text":
        raise InputError(f"--mandate {wish.mandate}: not with codex, only text: the mandate is asked for in the prompt")
    user = codex.asked(arguments)
    where = here / Path(user.directory).expanduser() if user.directory else here
    config: dict[str, Any] = {}
    for layer in _layers(user, where, environment):
        config = codex.merged(config, layer)
    asks = bool(config.get("openai_base_url")) or config.get("model_provider", "openai") != "openai"
    upstream = codex.provider(user, config, not asks and _by_chatgpt(binary, user, environment))
    alone = _knows(binary, "--no-daemon", environment)

    def compose(address: str, folder: str) -> Start:
        return codex.compose(
            user,
            wish,
            address=address,
            folder=folder,
            python=sys.executable,
            upstream=upstream,
            config=config,
            environment=environment,
            alone=alone,
        )

    return Prepared(upstream.base, compose, sockets=False, login=_login(upstream, environment))


def _login(upstream: codex.Provider, environment: Mapping[str, str]) -> str:
    """How the client is logged in, where it can be told."""
    if upstream.name != "openai":
        return f"as model_providers.{upstream.name} says"
    if upstream.base == codex.CHATGPT:
        return "ChatGPT"
    keyed = bool(environment.get("CODEX_API_KEY")) or (_home(environment) / "auth.json").exists()
    return "an API key" if keyed else ""


def _home(environment: Mapping[str, str]) -> Path:
    return Path(environment.get("CODEX_HOME") or Path(environment.get("HOME") or Path.home()) / ".codex")


def _layers(user: Asked, where: Path, environment: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """The client's configuration, the weakest first: the system's, the user's, the profile's, the project's, `-c`."""
    home = _home(environment)
    yield _read(_SYSTEM)
    own: dict[str, Any] = {}
    if not user.plain:
        own = _read(home / "config.toml")
        if user.profile:
            own = codex.merged(own, _read(home / f"{user.profile}.config.toml"))
        yield own
    folders = [where, *where.parents]
    root = next((n for n, folder in enumerate(folders) if (folder / ".git").exists()), 0)
    trusted = own.get("projects")
    if isinstance(trusted, dict) and any(_trusts(trusted.get(str(folder))) for folder in folders[: root + 1]):
        for folder in reversed(folders[: root + 1]):
            if folder / ".codex" != home:
                held = _read(folder / ".codex" / "config.toml")
                yield {key: value for key, value in held.items() if key not in _NOT_THE_PROJECTS}
    yield codex.settings(user.overrides)


def _trusts(entry: Any) -> bool:
    return isinstance(entry, dict) and entry.get("trust_level") == "trusted"


def _read(path: Path) -> dict[str, Any]:
    """A layer; nothing where there is none."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return {}
    except OSError as error:
        raise InputError(f"{path}: {(error.strerror or str(error)).lower()}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: no TOML: {error}") from None


def _by_chatgpt(binary: str, user: Asked, environment: Mapping[str, str]) -> bool:
    """Whether the client is logged in with ChatGPT; a key in the environment goes before that, in `exec`."""
    if environment.get("CODEX_API_KEY") and user.command == "exec":
        return False
    done = _run([binary, "login", "status"], environment)
    return done is not None and b"ChatGPT" in done.stdout + done.stderr


def _knows(binary: str, flag: str, environment: Mapping[str, str]) -> bool:
    """Whether this version knows a flag: it says so without a network."""
    done = _run([binary, flag, "--version"], environment)
    return done is not None and done.returncode == 0


def _run(command: list[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[bytes] | None:
    try:
        return subprocess.run(
            command,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PROBE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
