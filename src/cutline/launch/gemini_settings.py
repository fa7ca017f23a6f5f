"""Gemini CLI's settings as they stand when a run begins. Law: reading only; what the user has is never written."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import InputError
from . import gemini, gemini_home
from .start import Prepared, Start, Wish

_SYSTEM = {"darwin": "/Library/Application Support/GeminiCli", "win32": "C:\\ProgramData\\gemini-cli"}
_UNTRUSTED = ("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION")
"""What the client takes from a `.env` of a folder that is not trusted."""
_LINE = re.compile(r"\s*(?:export\s+)?([\w.-]+)\s*[=:]\s*(.*?)\s*$")
_NOISE = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.S)
_COMMA = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])')


def prepare(
    arguments: Sequence[str], wish: Wish, *, binary: str, here: Path, environment: Mapping[str, str]
) -> Prepared:
    """Read what a run has to know (see `start.Launch`).

    Raises:
        InputError: its settings can't be read, it is not logged in, or its wire would not pass through the proxy.
    """
    user = gemini.asked(arguments)
    home = Path(environment.get("GEMINI_CLI_HOME") or environment.get("HOME") or Path.home()).absolute()
    if here.resolve() == home.resolve():
        raise InputError(f"{here} is gemini's home, whose settings it would read twice; run it in a project")
    trusted = environment.get("GEMINI_CLI_TRUSTED_FOLDERS_PATH") or str(home / ".gemini" / "trustedFolders.json")
    weak, strong = _layers(home, environment)
    settings = gemini.merged(weak, strong)
    trusts = _trusts(here, settings, environment, Path(trusted))
    if trusts:
        settings = gemini.merged(gemini.merged(weak, _read(here / ".gemini" / "settings.json")), strong)
    known = {**_variables(here, home, trusts), **environment}
    gemini.check(user, wish, settings, known)
    upstream = gemini.provider(settings, known)

    def compose(address: str, folder: str) -> Start:
        return gemini.compose(
            user,
            wish,
            address=address,
            folder=folder,
            python=sys.executable,
            upstream=upstream,
            settings=settings,
            environment=environment,
            home=str(home),
            policies=_policies(settings, home),
            trusted=trusted,
        )

    return Prepared(upstream.base, compose, lay=lambda folder: gemini_home.lay(folder, home), login=upstream.login)


def _layers(home: Path, environment: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The layers below the project's, merged, and the one above it: the machine's own."""
    system = environment.get("GEMINI_CLI_SYSTEM_SETTINGS_PATH")
    path = Path(system) if system else Path(_SYSTEM.get(sys.platform, "/etc/gemini-cli")) / "settings.json"
    usual = environment.get("GEMINI_CLI_SYSTEM_DEFAULTS_PATH") or path.with_name("system-defaults.json")
    return gemini.merged(_read(Path(usual)), _read(home / ".gemini" / "settings.json")), _read(path)


def _read(path: Path) -> dict[str, Any]:
    """A layer; nothing where there is none. The client takes JSON with comments, and `$NAME` in its texts."""
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {error}") from None
    try:
        value = json.loads(_COMMA.sub(r"\1", _NOISE.sub(r"\1", text)))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: no JSON: {error}") from None
    if not isinstance(value, dict):
        raise InputError(f"{path}: has to be a JSON object")
    return value


def _trusts(here: Path, settings: Mapping[str, Any], environment: Mapping[str, str], path: Path) -> bool:
    """Whether the client trusts a folder before it reads its arguments: only then its settings and `.env` count."""
    if environment.get("GEMINI_RESTRICTED_MODE") == "true" or environment.get("GEMINI_CLI_TRUST_WORKSPACE") == "false":
        return False
    security = settings.get("security")
    trust = security.get("folderTrust") if isinstance(security, dict) else None
    off = isinstance(trust, dict) and trust.get("enabled") is False
    if off or environment.get("GEMINI_CLI_TRUST_WORKSPACE") == "true":
        return True
    longest, trusted = -1, False
    for rule, level in _read(path).items():
        place = Path(rule).parent if level == "TRUST_PARENT" else Path(rule)
        if len(rule) > longest and here.resolve().is_relative_to(place.resolve()):
            longest, trusted = len(rule), level in ("TRUST_FOLDER", "TRUST_PARENT")
    return trusted


def _variables(here: Path, home: Path, trusts: bool) -> dict[str, str]:
    """What the client reads from the one `.env` that it takes; the environment's own goes before it."""
    for path in _env_files(here, home, trusts):
        if path.is_file():
            try:
                lines = path.read_text(encoding="utf-8").splitlines()
            except (OSError, UnicodeDecodeError):
                return {}
            found = {match[1]: _value(match[2]) for line in lines if (match := _LINE.match(line))}
            return found if trusts else {name: found[name] for name in _UNTRUSTED if name in found}
    return {}


def _env_files(here: Path, home: Path, trusts: bool) -> Iterator[Path]:
    for folder in (here, *here.parents, home):
        if trusts:
            yield folder / ".gemini" / ".env"
        yield folder / ".env"


def _value(text: str) -> str:
    if text[:1] in ("'", '"', "`") and text.find(text[0], 1) > 0:
        return text[1 : text.find(text[0], 1)]
    return text.partition("#")[0].strip()


def _policies(settings: Mapping[str, Any], home: Path) -> list[str]:
    """The user's policies, which a `--policy` would take the place of."""
    given = settings.get("policyPaths")
    if isinstance(given, list) and given:
        return [os.path.expandvars(str(path)).replace("~", str(home), 1) if path else "" for path in given if path]
    own = home / ".gemini" / "policies"
    return [str(own)] if own.is_dir() else []
