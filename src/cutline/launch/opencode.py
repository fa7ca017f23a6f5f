"""What opencode is started with: the user's own arguments, and what a run adds to them as a plugin for this run only.

Law: pure; arguments and environment in, the same out. What the plugin does stands in `opencode_plugin.js`; the
client's own rules are measured in docs/opencode.md.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from .. import mandate
from ..errors import InputError
from ..proxy import routes
from .start import SERVER, Start, Wish, dump, own, run_words, with_loopback

GIVEN = "opencode.json"
"""The file in the run's folder that tells the plugin what is wanted."""
WORDS = "MANDATE.md"
"""The file in the run's folder that the client takes its instructions from, besides the user's."""
TOOLS = tuple(f"{SERVER}_{tool['name']}" for tool in mandate.TOOLS)
"""The three tools, as the client names them."""
LAYER = "OPENCODE_CONFIG_CONTENT"
"""The layer of the client's configuration that is an environment variable, above the user's files."""

_STARTS_MS = 30_000
_NONE = frozenset(
    (
        *("completion", "mcp", "attach", "debug", "providers", "auth", "agent", "upgrade", "uninstall", "models"),
        *("stats", "export", "import", "github", "session", "plugin", "plug", "db"),
    )
)
# Flags of the client's with which the checkpoint would not be a call of its own, or the history go over a web socket.
_OFF = ("OPENCODE_EXPERIMENTAL_CODE_MODE", "OPENCODE_EXPERIMENTAL_WEBSOCKETS")
# With a plugin the client waits, once, for a package that it fetches into its own folder anyway; without a network it
# would wait for minutes. The plugin takes these back before anything is run.
_PATIENCE = {"npm_config_fetch_retries": "0", "npm_config_fetch_timeout": "15000"}
_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\r\n]*|/\*.*?\*/', re.S)
_TRAILING = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])')


def check(arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    """Refuse what starts no session, and what would keep the run's plugin out.

    Args:
        arguments: the client's own, as the user typed them.
        environment: the user's.

    Raises:
        InputError: it is such a thing.
    """
    if arguments and arguments[0] in _NONE:
        raise InputError(f"run starts a session; for this, type: opencode {shlex.join(arguments)}")
    options = [word.partition("=")[0] for word in arguments[: arguments.index("--") if "--" in arguments else None]]
    if "--attach" in options:
        raise InputError("--attach: another server would run the session, past the proxy; run it without")
    pure = environment.get("OPENCODE_PURE", "").lower() in ("1", "true")
    if pure or "--pure" in options:
        raise InputError(f"{'OPENCODE_PURE' if pure else '--pure'} keeps the run's own plugin out; run without it")


def read(text: str) -> Any:
    """JSON as the client reads it, with comments and trailing commas.

    Raises:
        ValueError, RecursionError: it is none.
    """
    return json.loads(_TRAILING.sub(r"\1", _COMMENT.sub(r"\1", text)))


def layer(given: str, plugin: str, *, clears: bool = False) -> str:
    """The configuration's layer in the environment: the user's own, with a plugin more.

    Args:
        given: the variable's value; "" for none.
        plugin: address of the plugin.
        clears: the client may clear old results by itself, where its configuration wants that.

    Raises:
        InputError: the user's own is no JSON object.
    """
    try:
        held = read(given or "{}")
    except (ValueError, RecursionError) as error:
        raise InputError(f"{LAYER}: no JSON: {error}") from None
    if not isinstance(held, dict) or not isinstance(held.get("plugin", []), list):
        raise InputError(f"{LAYER}: has to be a JSON object, its plugin a list")
    held["plugin"] = [*held.get("plugin", []), plugin]
    if not clears:
        # Not by the plugin: what clears reads the configuration anew, before plugins are there.
        own = held.get("compaction")
        held["compaction"] = {**(own if isinstance(own, dict) else {}), "prune": False}
    return json.dumps(held, ensure_ascii=False)


def compose(
    arguments: Sequence[str],
    wish: Wish,
    *,
    address: str,
    folder: str,
    python: str,
    plugin: str,
    environment: Mapping[str, str],
) -> Start:
    """What to start the client with.

    Args:
        arguments: the user's.
        wish: how the run is wanted.
        address: the proxy's address, token and all.
        folder: the run's own folder.
        python: the interpreter that runs Cutline's own commands.
        plugin: address of the plugin.
        environment: the user's.

    Raises:
        InputError: the user's layer of configuration in the environment can't be read.
    """
    words = run_words(folder, wish)
    patience = {name: value for name, value in _PATIENCE.items() if name not in environment}
    server: dict[str, Any] = {
        "type": "local",
        "command": own(python, "mcp"),
        "environment": words,
        "enabled": True,
        "timeout": _STARTS_MS,
    }
    given = {
        "address": address,
        "carried": routes.PATTERN,
        "server": server,
        "tools": TOOLS,
        "mandate": f"{folder}/{WORDS}",
        "held": wish.mandate,
        "compaction": not wish.keep_compaction,
        "unset": list(patience),
    }
    set_ = {
        **patience,
        **with_loopback(environment),
        **words,
        **dict.fromkeys(_OFF, "false"),
        LAYER: layer(environment.get(LAYER, ""), plugin, clears=wish.keep_compaction),
    }
    return Start(tuple(arguments), set_, {GIVEN: dump(given), WORDS: mandate.MANDATE + "\n"})
