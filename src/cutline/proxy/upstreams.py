"""Where the proxy sends: by a provider's name, by an address, or by the client's own environment.

Law: a pure table. An address is taken as it is given, path and all; requests' own paths are put behind it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from ..errors import InputError


@dataclass(frozen=True, slots=True)
class Upstream:
    """A provider, and how a client is pointed at the proxy before it.

    Attributes:
        name: the provider's; "" for an address that is not known.
        base: its base URL.
        variable: what a client is given the proxy's address in; "" where that is the client's own affair.
        behind: what the client's own base URL has behind the address.
        signed: requests are signed, and have to be signed anew.
    """

    name: str
    base: str
    variable: str
    behind: str = ""
    signed: bool = False


@dataclass(frozen=True, slots=True)
class _Known:
    """A provider: the variables that name its base URL, the first of which a client is given; its usual base URL."""

    variables: tuple[str, ...]
    base: str
    behind: str = ""


_KNOWN: Mapping[str, _Known] = {
    "anthropic": _Known(("ANTHROPIC_BASE_URL",), "https://api.anthropic.com"),
    "openai": _Known(("OPENAI_BASE_URL", "OPENAI_API_BASE"), "https://api.openai.com/v1"),
    "gemini": _Known(("GOOGLE_GEMINI_BASE_URL",), "https://generativelanguage.googleapis.com"),
    "azure": _Known(("AZURE_OPENAI_ENDPOINT",), ""),
    "openrouter": _Known(("OPENROUTER_BASE_URL",), "https://openrouter.ai/api/v1"),
    "vllm": _Known(("VLLM_BASE_URL",), "http://127.0.0.1:8000/v1"),
    "ollama": _Known(("OLLAMA_HOST",), "http://127.0.0.1:11434", "/v1"),
    "bedrock": _Known(("AWS_ENDPOINT_URL_BEDROCK_RUNTIME",), ""),
}
NAMES = tuple(_KNOWN)
"""Providers that can be named."""
_GIVEN = {"openrouter": "OPENAI_BASE_URL", "vllm": "OPENAI_BASE_URL", "ollama": "OPENAI_BASE_URL"}
_HOSTS = (
    (r"(?:^|\.)anthropic\.com$", "anthropic"),
    (r"(?:^|\.)openai\.com$", "openai"),
    (r"(?:^|\.)(?:openai|cognitiveservices)\.azure\.com$", "azure"),
    (r"(?:^|\.)(?:generativelanguage|aiplatform)\.googleapis\.com$", "gemini"),
    (r"(?:^|\.)openrouter\.ai$", "openrouter"),
    (r"bedrock-runtime[\w.-]*\.amazonaws\.com(?:\.cn)?$", "bedrock"),
)


def choose(wanted: str | None, environment: Mapping[str, str]) -> Upstream:
    """The provider that is meant.

    Args:
        wanted: a name of `NAMES`, or a base URL; None for what the environment names, else Anthropic.
        environment: the client's.

    Raises:
        InputError: a word that is neither, or a provider whose address nothing tells.
    """
    if wanted is None:
        named = (name for name, known in _KNOWN.items() if any(environment.get(one) for one in known.variables))
        wanted = next(named, "anthropic")
    if wanted in _KNOWN:
        return _of(wanted, _base(wanted, environment))
    if "://" not in wanted:
        raise InputError(f"{wanted}: neither an address nor one of {', '.join(NAMES)}")
    host = urlsplit(wanted).hostname or ""
    return _of(next((name for pattern, name in _HOSTS if re.search(pattern, host)), ""), wanted)


def _of(name: str, base: str) -> Upstream:
    known = _KNOWN.get(name)
    variable = _GIVEN.get(name, known.variables[0] if known else "")
    return Upstream(name, base, variable, known.behind if known else "", name == "bedrock")


def _base(name: str, environment: Mapping[str, str]) -> str:
    """A provider's base URL, by the environment, else the usual one."""
    known = _KNOWN[name]
    given = next((environment[one] for one in known.variables if environment.get(one)), "")
    if given:
        return given if "://" in given else f"http://{given}"  # as Ollama's is written
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    if name == "bedrock" and region:
        return f"https://bedrock-runtime.{region}.amazonaws.com"
    if not known.base:
        missing = "AWS_REGION" if name == "bedrock" else known.variables[0]
        raise InputError(f"{name}: set {missing}, or give the address instead of the name")
    return known.base
