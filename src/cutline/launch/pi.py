"""What pi is started with: the user's own arguments, and what a run adds to them as an extension for this run only.

Law: pure; arguments and environment in, the same out. What the extension does stands in `pi_extension.js`; the
client's own rules are measured in docs/pi.md.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from .. import mandate
from ..errors import InputError
from ..proxy import routes
from .start import Start, Wish, dump, own, run_words, with_loopback

GIVEN = "pi.json"
"""The file in the run's folder that tells the extension what is wanted."""
TOOLS = tuple(f"cutline_{tool['name']}" for tool in mandate.TOOLS)
"""The three tools, as the extension names them."""

_SUBCOMMANDS = frozenset(("install", "remove", "uninstall", "update", "list", "config", "auth", "mcp"))
_SHORT = {"-t": "--tools", "-xt": "--exclude-tools", "-nt": "--no-tools", "-n": "--name", "-e": "--extension"}
_SHORT |= {"-c": "--continue", "-r": "--resume"}
_VALUED = frozenset(
    (
        *("--mode", "--provider", "--model", "--api-key", "--system-prompt", "--append-system-prompt", "--name"),
        *("--session", "--session-id", "--fork", "--session-dir", "--models", "--tools", "--exclude-tools"),
        *("--thinking", "--export", "--extension", "--skill", "--prompt-template", "--theme", "--use-theme"),
        *("--tui-mode",),
    )
)
_CHOOSE = ("--provider", "--model", "--models", "--session", "--session-id", "--fork", "--continue", "--resume")
_PAST = {"amazon-bedrock": "its requests are signed and go past the proxy; run works with all other providers"}


@dataclass(frozen=True, slots=True)
class Asked:
    """What the user's arguments hold that a run has to know.

    Attributes:
        rest: the arguments without the list of tools.
        tools: the value of `--tools`; None where it is not given.
        without: `--no-tools` is given.
        provider: the one that `--provider` or `--model` names; "" where neither does.
        chosen: something says which model is used, so that the settings' own does not count.
    """

    rest: tuple[str, ...]
    tools: str | None = None
    without: bool = False
    provider: str = ""
    chosen: bool = False


def asked(arguments: Sequence[str]) -> Asked:
    """Read the user's arguments.

    Raises:
        InputError: a subcommand of the client, which starts no session; or our tools are to be left out.
    """
    if arguments and arguments[0] in _SUBCOMMANDS:
        raise InputError(f"run starts a session; for this, type: pi {shlex.join(arguments)}")
    rest: list[str] = []
    found: dict[str, str] = {}
    at = 0
    while at < len(arguments):
        word = arguments[at]
        at += 1
        if word == "--":
            rest += arguments[at - 1 :]
            break
        name = _SHORT.get(word, word)
        given = [word]
        if name in _VALUED and at < len(arguments):
            given.append(arguments[at])
            at += 1
        if name.startswith("-"):
            found[name] = given[-1]
        if name != "--tools":
            rest += given
    left = [one.strip() for one in found.get("--exclude-tools", "").split(",")]
    lost = [tool for tool in TOOLS if any(fnmatchcase(tool, one) for one in left)]
    if lost:
        raise InputError(f"--exclude-tools would leave out {', '.join(lost)}; run needs them")
    provider = found.get("--provider") or found.get("--model", "").partition("/")[0]
    chosen = any(name in found for name in _CHOOSE)
    return Asked(tuple(rest), found.get("--tools"), "--no-tools" in found, provider, chosen)


def check(user: Asked, default: str) -> None:
    """Refuse a provider whose wire would not pass through the proxy.

    Args:
        user: the user's arguments.
        default: the provider that the client's settings name; "" where they name none.

    Raises:
        InputError: it is such a one.
    """
    provider = user.provider if user.chosen else default
    if provider in _PAST:
        raise InputError(f"{provider}: {_PAST[provider]}")


def compose(
    user: Asked,
    wish: Wish,
    *,
    address: str,
    folder: str,
    python: str,
    extension: str,
    environment: Mapping[str, str],
) -> Start:
    """What to start the client with.

    Args:
        user: the user's arguments.
        wish: how the run is wanted.
        address: the proxy's address, token and all.
        folder: the run's own folder.
        python: the interpreter that runs Cutline's own commands.
        extension: path of the extension.
        environment: the user's.
    """
    words = run_words(folder, wish)
    given = {
        "address": address,
        "extension": extension,
        "subcommands": sorted(_SUBCOMMANDS),
        "carried": routes.PATTERN,
        "server": own(python, "mcp"),
        "tools": mandate.TOOLS,
        "mandate": mandate.MANDATE,
        "held": wish.mandate,
        "compaction": not wish.keep_compaction,
    }
    arguments = ["--extension", extension, *_tools(user), *user.rest]
    return Start(tuple(arguments), {**with_loopback(environment), **words}, {GIVEN: dump(given)})


def _tools(user: Asked) -> list[str]:
    """The list of tools with ours in it: a list of names leaves out all others, one of changes does not."""
    names = [one.strip() for one in (user.tools or "").split(",") if one.strip()]
    changes = any(name.startswith(("+", "-")) for name in names)
    if user.without or (names and not changes):
        names += [f"+{tool}" if changes else tool for tool in TOOLS]
    return ["--tools", ",".join(names)] if names else []
