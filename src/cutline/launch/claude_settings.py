"""Claude Code's settings as they stand when a run begins. Law: reading only; what the user has is never written."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import InputError
from . import claude_code
from .claude_code import Asked
from .start import Prepared, Start, Wish

_PROBE_S = 20


def prepare(
    arguments: Sequence[str], wish: Wish, *, binary: str, here: Path, environment: Mapping[str, str]
) -> Prepared:
    """Read what a run has to know (see `start.Launch`).

    Raises:
        InputError: its settings can't be read, or it is set to another provider.
    """
    user = claude_code.asked(arguments)
    layers = _layers(user, here, environment)
    provider = claude_code.upstream(layers, environment)
    appended = _text(user.append_file)
    lines = (layer.get("statusLine") for layer in layers)
    status_line = next((line for line in lines if isinstance(line, dict)), None)

    def compose(address: str, folder: str) -> Start:
        return claude_code.compose(
            user,
            wish,
            address=address,
            provider=provider,
            folder=folder,
            python=sys.executable,
            given=layers[0],
            appended=appended,
            status_line=status_line,
            environment=environment,
            shows_thinking=_shows_thinking(binary, environment),
        )

    return Prepared(provider, compose, login=_login(layers, environment))


def _login(layers: Sequence[Mapping[str, Any]], environment: Mapping[str, str]) -> str:
    """How the client is logged in, where it can be told; macOS keeps the subscription's token elsewhere."""
    set_ = [environment, *(layer["env"] for layer in layers if isinstance(layer.get("env"), dict))]
    for name, said in (("ANTHROPIC_AUTH_TOKEN", "a token"), ("ANTHROPIC_API_KEY", "an API key")):
        if any(held.get(name) for held in set_):
            return f"{said} ({name})"
    if any(layer.get("apiKeyHelper") for layer in layers):
        return "an API key (apiKeyHelper)"
    held = _quietly(_home(environment) / ".credentials.json")
    return "a subscription" if environment.get("CLAUDE_CODE_OAUTH_TOKEN") or "claudeAiOauth" in held else ""


def _home(environment: Mapping[str, str]) -> Path:
    return Path(environment.get("CLAUDE_CONFIG_DIR") or Path(environment.get("HOME") or Path.home()) / ".claude")


def _layers(user: Asked, here: Path, environment: Mapping[str, str]) -> list[dict[str, Any]]:
    """The client's settings, the strongest first: the flag's, the project's local ones, the project's, the user's."""
    home = _home(environment)
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
