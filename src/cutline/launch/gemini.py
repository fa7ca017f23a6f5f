"""What Gemini CLI is started with: the user's own arguments, and what a run adds to them as an extension of its own.

Law: pure; arguments, settings and environment in, the same out. What the user gave stays and wins where only one can
be; the client's own rules are measured in docs/gemini.md.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .. import mandate
from ..errors import InputError
from .start import SERVER, Start, Wish, dump, own, run_words, with_loopback

HOME, FOLDER = "home", f"home/.gemini/extensions/{SERVER}"
"""In the run's folder: the home that the client is given, and the run's extension in it."""
WORDS = "MANDATE.md"
"""The file of an extension that the client reads to the agent."""
ADDRESS = "address"
"""The file in the run's folder by which `cutline hook` finds the proxy."""
KEYED, CODE_ASSIST, VERTEX = (
    "https://generativelanguage.googleapis.com",
    "https://cloudcode-pa.googleapis.com",
    "https://aiplatform.googleapis.com",
)
"""Where the client sends by an API key, by a login with Google, and on Vertex AI."""

_STARTS_MS = 30_000
_HOOK_MS = 5_000
_SUBCOMMANDS = frozenset(("mcp", "extensions", "extension", "skills", "skill", "hooks", "hook", "gemma"))
_SHORT = {"-e": "--extensions", "-s": "--sandbox", "-p": "--prompt", "-i": "--prompt-interactive", "-m": "--model"}
_VALUED = frozenset(
    (
        *("--extensions", "--policy", "--allowed-mcp-server-names", "--prompt", "--prompt-interactive", "--model"),
        *("--admin-policy", "--allowed-tools", "--include-directories", "--output-format", "--approval-mode"),
        *("--session-id", "--session-file", "-o"),
    )
)
_LISTS = ("--extensions", "--policy", "--allowed-mcp-server-names")
_VARIABLES = {
    "gemini-api-key": "GOOGLE_GEMINI_BASE_URL",
    "gateway": "GOOGLE_GEMINI_BASE_URL",
    "vertex-ai": "GOOGLE_VERTEX_BASE_URL",
    "oauth-personal": "CODE_ASSIST_ENDPOINT",
    "compute-default-credentials": "CODE_ASSIST_ENDPOINT",
    "cloud-shell": "CODE_ASSIST_ENDPOINT",
}
"""By the way to log in, in the client's words: the variable that says where requests go."""
_SAID = {"gemini-api-key": "an API key", "gateway": "an API key, or the gateway's own", "vertex-ai": "Vertex AI"}


@dataclass(frozen=True, slots=True)
class Asked:
    """What the user's arguments hold that a run has to know.

    Attributes:
        rest: the arguments without the list of extensions.
        extensions: the values of `--extensions`; None where it is not given.
        policies: `--policy` is given.
        servers: the values of `--allowed-mcp-server-names`; None where it is not given.
        sandbox: `--sandbox` is given; None where it is not.
    """

    rest: tuple[str, ...]
    extensions: tuple[str, ...] | None = None
    policies: bool = False
    servers: tuple[str, ...] | None = None
    sandbox: bool | None = None


@dataclass(frozen=True, slots=True)
class Provider:
    """Where the client would send.

    Attributes:
        base: the base URL.
        variable: the environment variable by which it is pointed elsewhere.
        login: how it is logged in, in a few words.
    """

    base: str
    variable: str
    login: str = field(default="", compare=False)


def asked(arguments: Sequence[str]) -> Asked:
    """Read the user's arguments.

    Raises:
        InputError: a subcommand of the client, which starts no session, or an option without its value.
    """
    if arguments and arguments[0] in _SUBCOMMANDS:
        raise InputError(f"run starts a session; for this, type: gemini {shlex.join(arguments)}")
    rest: list[str] = []
    lists: dict[str, list[str]] = {}
    sandbox: bool | None = None
    at = 0
    while at < len(arguments):
        word = arguments[at]
        at += 1
        if word == "--":
            rest += arguments[at - 1 :]
            break
        name, equals, value = word.partition("=")
        name = _SHORT.get(name, name)
        given = [word]
        if name in _VALUED and not equals:
            if at >= len(arguments):
                raise InputError(f"{word} needs a value")
            value = arguments[at]
            given.append(value)
            at += 1
        if name in _LISTS:
            lists.setdefault(name, []).extend(part.strip() for part in value.split(",") if part.strip())
        if name in ("--sandbox", "--no-sandbox"):
            sandbox = name == "--sandbox" and value != "false"
        if name != "--extensions":
            rest += given
    chosen, policies, servers = (lists.get(name) for name in _LISTS)
    return Asked(
        tuple(rest),
        None if chosen is None else tuple(chosen),
        policies is not None,
        None if servers is None else tuple(servers),
        sandbox,
    )


def provider(settings: Mapping[str, Any], environment: Mapping[str, str]) -> Provider:
    """Where the client would send, by the way in which it logs in.

    Args:
        settings: the client's, all layers merged.
        environment: the user's, with what the client reads from a `.env`.

    Raises:
        InputError: nothing says how it logs in, or a way that is not known.
    """
    way = _text(_table(_table(settings.get("security")).get("auth")).get("selectedType")) or _way(environment)
    if not way:
        raise InputError("gemini is not logged in: start it once by itself and log in, or set GEMINI_API_KEY")
    variable = _VARIABLES.get(way)
    if variable is None:
        raise InputError(f"gemini logs in by {way}, which run does not know; an API key, Google and Vertex AI work")
    login = _SAID.get(way, "a Google account")
    return Provider(environment.get(variable) or _usual(variable, environment), variable, login)


def _way(environment: Mapping[str, str]) -> str:
    """The way to log in that the environment alone tells, as the client finds it."""
    if environment.get("GOOGLE_GENAI_USE_GCA") == "true":
        return "oauth-personal"
    if environment.get("GOOGLE_GENAI_USE_VERTEXAI") == "true":
        return "vertex-ai"
    if environment.get("GOOGLE_GEMINI_BASE_URL"):
        return "gateway"
    if environment.get("GEMINI_API_KEY"):
        return "gemini-api-key"
    shell = environment.get("CLOUD_SHELL") == "true" or environment.get("GEMINI_CLI_USE_COMPUTE_ADC") == "true"
    return "compute-default-credentials" if shell else ""


def _usual(variable: str, environment: Mapping[str, str]) -> str:
    if variable == "CODE_ASSIST_ENDPOINT":
        return CODE_ASSIST
    if variable == "GOOGLE_GEMINI_BASE_URL":
        return KEYED
    location = environment.get("GOOGLE_CLOUD_LOCATION", "")
    if location in ("us", "eu"):
        return f"https://aiplatform.{location}.rep.googleapis.com"
    # A key of Vertex AI's own is asked without project and location.
    if location in ("", "global") or environment.get("GOOGLE_API_KEY") or not environment.get("GOOGLE_CLOUD_PROJECT"):
        return VERTEX
    return f"https://{location}-aiplatform.googleapis.com"


def check(user: Asked, wish: Wish, settings: Mapping[str, Any], environment: Mapping[str, str]) -> None:
    """Refuse what the run could not carry.

    Args:
        user: the user's arguments.
        wish: how the run is wanted.
        settings: the client's, all layers merged.
        environment: the user's, with what the client reads from a `.env`.

    Raises:
        InputError: the client's sandbox, an MCP server of our name, or extensions that are restricted to a list.
    """
    tools = _table(settings.get("tools"))
    wanted = environment.get("GEMINI_SANDBOX", "").strip().lower()
    boxed = user.sandbox if user.sandbox is not None else wanted not in ("", "0", "false") or bool(tools.get("sandbox"))
    if boxed and wanted not in ("0", "false"):
        raise InputError("gemini's sandbox does not reach the proxy on this machine; run without it (--sandbox=false)")
    if SERVER in _table(settings.get("mcpServers")):
        raise InputError(f"mcpServers.{SERVER} in gemini's settings would take our server's place; rename it")
    if _table(settings.get("security")).get("allowedExtensions"):
        raise InputError("security.allowedExtensions in gemini's settings keeps the run's extension out; run needs it")
    if _table(_table(settings.get("admin")).get("mcp")).get("enabled") is False:
        raise InputError("admin.mcp.enabled is false in gemini's settings: the three tools can't be given")
    if wish.mandate != "text" and _table(settings.get("hooksConfig")).get("enabled") is False:
        raise InputError(
            f"--mandate {wish.mandate} is held by hooks, and hooksConfig.enabled is false in gemini's settings"
        )


def compose(
    user: Asked,
    wish: Wish,
    *,
    address: str,
    folder: str,
    python: str,
    upstream: Provider,
    settings: Mapping[str, Any],
    environment: Mapping[str, str],
    home: str,
    policies: Sequence[str],
    trusted: str,
) -> Start:
    """What to start the client with.

    Args:
        user: the user's arguments.
        wish: how the run is wanted.
        address: the proxy's address, token and all.
        folder: the run's own folder.
        python: the interpreter that runs Cutline's own commands.
        upstream: what `provider` found.
        settings: the client's, all layers merged.
        environment: the user's.
        home: the user's own home, as the client sees it.
        policies: paths of the user's policies, which the client reads only where none are given by flag.
        trusted: path of the client's list of trusted folders.
    """
    words = run_words(folder, wish)
    files = {
        ADDRESS: address,
        f"{FOLDER}/gemini-extension.json": extension(own(python, "mcp"), {**words, "GEMINI_CLI_HOME": home}),
        f"{FOLDER}/{WORDS}": mandate.MANDATE + "\n",
        f"{FOLDER}/hooks/hooks.json": dump({"hooks": _hooks(python, wish)}),
        f"{SERVER}.toml": policy(),
    }
    given = () if user.policies else policies
    arguments = [f"--policy={path}" for path in (*given, f"{folder}/{SERVER}.toml")]
    if user.extensions is not None:
        arguments += [f"--extensions={name}" for name in (*user.extensions, SERVER) if name != "none"]
    if user.servers is not None:
        arguments.append(f"--allowed-mcp-server-names={SERVER}")
    elif allowed := _table(settings.get("mcp")).get("allowed"):
        without = _table(settings.get("mcp")).get("excluded") or ()
        names = [str(name) for name in allowed if name not in without]
        arguments += [f"--allowed-mcp-server-names={name}" for name in (*names, SERVER)]
    set_ = {
        **with_loopback(environment),
        **words,
        upstream.variable: address,
        "GEMINI_CLI_HOME": f"{folder}/{HOME}",
        "GEMINI_CLI_TRUSTED_FOLDERS_PATH": trusted,
    }
    return Start((*arguments, *user.rest), set_, files)


def _hooks(python: str, wish: Wish) -> dict[str, Any]:
    """The client names its session to hooks alone: never on the wire, where its login is an API key.

    A call without words is returned unrun before it, where the mandate is held strictly, or reminded of behind it: what
    stands before a call that runs is not shown to the agent.
    """

    def asking(what: str) -> list[dict[str, Any]]:
        command = shlex.join(own(python, "hook", "ask", "--for", what))
        return [{"hooks": [{"type": "command", "command": command, "timeout": _HOOK_MS}]}]

    held = {"nudge": "AfterTool", "strict": "BeforeTool"}
    calls = {held[wish.mandate]: asking("before-call")} if wish.mandate in held else {}
    return {"SessionStart": asking("session"), **calls}


def extension(server: Sequence[str], environment: Mapping[str, str]) -> str:
    """The manifest of an extension that brings the tools' server and the words of the file beside it.

    Args:
        server: the command that serves the tools.
        environment: what it is given besides the client's own.
    """
    command, *arguments = server
    tools = {"command": command, "args": arguments, "env": dict(environment), "timeout": _STARTS_MS}
    return dump({"name": SERVER, "version": "1.0.0", "contextFileName": WORDS, "mcpServers": {SERVER: tools}})


def policy() -> str:
    """Allows the three tools, in every mode and without asking; the client takes no such rule from an extension."""
    names = json.dumps([tool["name"] for tool in mandate.TOOLS])
    return f'[[rule]]\nmcpName = "{SERVER}"\ntoolName = {names}\ndecision = "allow"\npriority = 900\n'


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Two layers of settings as one: objects are merged, of anything else the upper one counts."""
    out = dict(below)
    for key, value in above.items():
        held = out.get(key)
        out[key] = merged(held, value) if isinstance(held, dict) and isinstance(value, dict) else value
    return out


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
