"""pi's settings as they stand when a run begins. Law: reading only; what the user has is never written."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import pi
from .start import Prepared, Start, Wish

_EXTENSION = Path(__file__).with_name("pi_extension.js")
_KEYS = {
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_OAUTH_TOKEN", "ANTHROPIC_AUTH_TOKEN"),
    "openai": ("OPENAI_API_KEY",),
    "google": ("GEMINI_API_KEY",),
    "openrouter": ("OPENROUTER_API_KEY",),
    "azure": ("AZURE_OPENAI_API_KEY",),
    "github-copilot": ("COPILOT_GITHUB_TOKEN",),
    "deepseek": ("DEEPSEEK_API_KEY",),
    "groq": ("GROQ_API_KEY",),
    "mistral": ("MISTRAL_API_KEY",),
    "xai": ("XAI_API_KEY",),
}
"""The variables by which it finds a key, of its providers that are most used (its docs/providers.md)."""


def prepare(
    arguments: Sequence[str], wish: Wish, *, binary: str, here: Path, environment: Mapping[str, str]
) -> Prepared:
    """Read what a run has to know (see `start.Launch`).

    Raises:
        InputError: arguments that start no session, or a provider whose wire would not pass through the proxy.
    """
    user = pi.asked(arguments)
    agent = _agent(environment)
    default = _read(agent / "settings.json").get("defaultProvider")
    pi.check(user, default if isinstance(default, str) else "")

    def compose(address: str, folder: str) -> Start:
        return pi.compose(
            user,
            wish,
            address=address,
            folder=folder,
            python=sys.executable,
            extension=str(_EXTENSION),
            environment=environment,
        )

    return Prepared(None, compose, login=", ".join(_logins(agent, environment)))


def _agent(environment: Mapping[str, str]) -> Path:
    named = environment.get("PI_CODING_AGENT_DIR")
    home = Path(environment.get("HOME") or Path.home())
    if named:
        return home / named[2:] if named.startswith("~/") else Path(named)
    return home / ".pi" / "agent"


def _logins(agent: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """The providers that it has a login for, and which."""
    for name, held in _read(agent / "auth.json").items():
        if isinstance(held, dict):
            yield f"{name} ({'a subscription' if held.get('type') == 'oauth' else 'an API key'})"
    for name, variables in _KEYS.items():
        yield from (f"{name} ({variable})" for variable in variables if environment.get(variable))
    own = _read(agent / "models.json").get("providers")
    for name, held in own.items() if isinstance(own, dict) else ():
        if isinstance(held, dict) and held.get("apiKey"):
            yield f"{name} (models.json)"


def _read(path: Path) -> dict[str, Any]:
    """A file of its settings; nothing where it can't be read, which the client tells by itself."""
    try:
        value = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
