"""The variables that tools are given: those of this process, without its secrets.

Law: pure. A variable whose name tells of a secret, or whose value has a known secret's form, is left out unless it is
named; how a provider's client logs in is none of a tool's business.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from ...record import mask

# Whole parts of a name, so that KEYBOARD, TOKENIZERS_PARALLELISM and PASSTHROUGH stay.
_SECRET = re.compile(
    r"(?:^|_)(?:APIKEY|KEY|KEYS|TOKEN|TOKENS|SECRET|SECRETS|PASSWORD|PASSWD|PASSPHRASE|PASS|PWD|CREDENTIAL|CREDENTIALS|AUTH"
    r"|PAT|COOKIE|DSN|PRIVATE|CONNECTION_STRING)(?:$|_)|(?:APIKEY|TOKEN|SECRET|PASSWORD|PASSWD)(?:$|_)"
)
_PREFIXES = ("AWS_", "AZURE_", "GOOGLE_APPLICATION_", "ANTHROPIC_", "OPENAI_", "GEMINI_", "CLAUDE_", "CODEX_")
_SPARED = frozenset({"PWD", "OLDPWD", "AWS_REGION", "AWS_DEFAULT_REGION", "XDG_SESSION_COOKIE_PATH"})
# What makes programs wait for a key, page, or paint: a tool has no terminal.
_QUIET = {
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "true",
    "NO_COLOR": "1",
    "DEBIAN_FRONTEND": "noninteractive",
}
# They would run a program before each command, or change how bash reads it.
_DROPPED = frozenset({"BASH_ENV", "ENV", "PROMPT_COMMAND", "SHELLOPTS", "BASHOPTS", "BASH_XTRACEFD"})


def is_secret(name: str, value: str = "") -> bool:
    """Whether a variable is one that tools are not given."""
    upper = name.upper()
    if upper in _SPARED:
        return False
    if _SECRET.search(upper) or upper.startswith(_PREFIXES):
        return True
    data = value.encode("utf-8", "surrogateescape")
    return mask(data) != data


def given(environment: Mapping[str, str], named: Collection[str] = ()) -> dict[str, str]:
    """The variables for tools.

    Args:
        environment: this process's.
        named: variables that the human named: given in spite of what they hold.
    """
    return {
        name: value
        for name, value in environment.items()
        if name in named or not (name in _DROPPED or name.startswith("BASH_FUNC_") or is_secret(name, value))
    } | {name: value for name, value in _QUIET.items() if name not in named}


def withheld(environment: Mapping[str, str], named: Collection[str] = ()) -> list[str]:
    """The names that `given` leaves out as secrets, sorted: what a person is told, never the values."""
    return sorted(name for name, value in environment.items() if name not in named and is_secret(name, value))
