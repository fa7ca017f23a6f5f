"""opencode's settings as they stand when a run begins. Law: reading only; what the user has is never written."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import opencode
from .start import Prepared, Start, Wish

_PLUGIN = Path(__file__).with_name("opencode_plugin.js")
_KEYS = {
    "anthropic": ("ANTHROPIC_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "google": ("GOOGLE_GENERATIVE_AI_API_KEY", "GEMINI_API_KEY"),
    "openrouter": ("OPENROUTER_API_KEY",),
    "opencode": ("OPENCODE_API_KEY",),
    "deepseek": ("DEEPSEEK_API_KEY",),
    "groq": ("GROQ_API_KEY",),
    "mistral": ("MISTRAL_API_KEY",),
    "xai": ("XAI_API_KEY",),
}
"""The variables by which it finds a key, of its providers that are most used."""
_KINDS = {"api": "an API key", "oauth": "a login", "wellknown": "an organisation's"}


def prepare(
    arguments: Sequence[str], wish: Wish, *, binary: str, here: Path, environment: Mapping[str, str]
) -> Prepared:
    """Read what a run has to know (see `start.Launch`).

    Raises:
        InputError: arguments that start no session, or the run's plugin would be kept out.
    """
    opencode.check(arguments, environment)
    opencode.layer(environment.get(opencode.LAYER, ""), "")

    def compose(address: str, folder: str) -> Start:
        return opencode.compose(
            arguments,
            wish,
            address=address,
            folder=folder,
            python=sys.executable,
            plugin=_PLUGIN.as_uri(),
            environment=environment,
        )

    return Prepared(None, compose, login=", ".join(_logins(environment)))


def _logins(environment: Mapping[str, str]) -> Iterator[str]:
    """The providers that it has a login for, and which; of its configuration the user's own file is looked into."""
    home = Path(environment.get("HOME") or Path.home())
    data = Path(environment.get("XDG_DATA_HOME") or home / ".local" / "share") / "opencode"
    for name, held in _read(data / "auth.json").items():
        if isinstance(held, dict) and held.get("type") in _KINDS:
            yield f"{name} ({_KINDS[held['type']]})"
    for name, variables in _KEYS.items():
        yield from (f"{name} ({variable})" for variable in variables if environment.get(variable))
    config = Path(environment.get("XDG_CONFIG_HOME") or home / ".config") / "opencode"
    for file in ("opencode.json", "opencode.jsonc"):
        own = _read(config / file).get("provider")
        for name, held in own.items() if isinstance(own, dict) else ():
            if isinstance(held, dict) and isinstance(held.get("options"), dict) and held["options"].get("apiKey"):
                yield f"{name} ({file})"


def _read(path: Path) -> dict[str, Any]:
    """A file of its own; nothing where it can't be read, which the client tells by itself."""
    try:
        value = opencode.read(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
