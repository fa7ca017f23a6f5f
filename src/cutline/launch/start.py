"""What every client's launch has in common: how a run is wanted, and what a client is started with.

Law: values and small pure helpers. Each client's rules stand in a module of their own, imported when it is asked for.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, cast

from ..errors import InputError

SERVER = "cutline"
"""What the tools' MCP server is called, in every client."""


@dataclass(frozen=True, slots=True)
class Wish:
    """How a run is wanted.

    Attributes:
        mandate: "text", or held by a hook: "nudge", "strict".
        keep_compaction: leave the client's own compaction alone.
        record: path of the record; "" where recording is off.
    """

    mandate: Literal["text", "nudge", "strict"] = "text"
    keep_compaction: bool = False
    record: str = ""


@dataclass(frozen=True, slots=True)
class Start:
    """What the client is started with.

    Attributes:
        arguments: behind the client's name.
        environment: set besides the user's own.
        files: by name, what the run's folder has to hold.
    """

    arguments: tuple[str, ...]
    environment: dict[str, str]
    files: dict[str, str]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A run that can begin.

    Attributes:
        upstream: the provider's base URL that the client would use; None where it uses several, and names the one that
            is meant with each request (`proxy.plan.elsewhere`).
        compose: from the proxy's address (token and all) and the run's folder, what to start the client with.
        sockets: web sockets pass untouched; False where the client, refused one, asks over HTTP, which is cut.
        lay: puts into the run's folder what is more than text; returns what is to be done when the client has ended.
        login: how the client is logged in, in a few words; "" where nothing tells it.
    """

    upstream: str | None
    compose: Callable[[str, str], Start]
    sockets: bool = True
    lay: Callable[[Path], Callable[[], None]] | None = None
    login: str = ""


class Launch(Protocol):
    """A client's module here. It reads the user's configuration and writes none of it."""

    def prepare(
        self, arguments: Sequence[str], wish: Wish, *, binary: str, here: Path, environment: Mapping[str, str]
    ) -> Prepared:
        """Read what a run has to know.

        Args:
            arguments: the client's own, as the user typed them.
            wish: how the run is wanted.
            binary: path of the client's program.
            here: the working directory.
            environment: the user's.

        Raises:
            InputError: the client's configuration can't be read, or its wire would not pass through the proxy.
        """


@dataclass(frozen=True, slots=True)
class Client:
    """A client that can be run.

    Attributes:
        name: the program, and the word behind `cutline run`.
        sessions: what its session files are called in `cutline.sessions`.
        package: its name on npm.
        module: the module here that prepares it.
        again: what stands before a session's id where the client goes on in it.
        copied: a session is better gone on with in a cut copy than as it is.
    """

    name: str
    sessions: str
    package: str
    module: str
    again: str = "--resume"
    copied: bool = False

    @property
    def launch(self) -> Launch:
        """The client's module."""
        return cast(Launch, importlib.import_module(f".{self.module}", __package__))


CLIENTS: dict[str, Client] = {
    one.name: one
    for one in (
        Client("claude", "claude-code", "@anthropic-ai/claude-code", "claude_settings"),
        Client("codex", "codex", "@openai/codex", "codex_settings", "resume"),
        # Resumed as it is, it sends every result twice (docs/gemini.md).
        Client("gemini", "gemini-cli", "@google/gemini-cli", "gemini_settings", copied=True),
        Client("opencode", "opencode", "opencode-ai", "opencode_settings", "-s"),
        Client("pi", "pi", "@earendil-works/pi-coding-agent", "pi_settings", "--session"),
    )
}


def client(name: str) -> Client:
    """The client of that name.

    Raises:
        InputError: none.
    """
    if name not in CLIENTS:
        raise InputError(f"run knows {', '.join(CLIENTS)}, not {name}; run's own flags stand before the client's name")
    return CLIENTS[name]


def own(python: str, *words: str) -> list[str]:
    """One of Cutline's own commands. -P: a module in the user's project must not be taken for one of ours."""
    return [python, "-P", "-m", "cutline", *words]


def run_words(folder: str, wish: Wish) -> dict[str, str]:
    """The environment by which Cutline's own commands know the run they belong to."""
    return {"CUTLINE_RUN": folder, "CUTLINE_RECORD": wish.record}


def with_loopback(environment: Mapping[str, str]) -> dict[str, str]:
    """The hosts that are asked without the user's own proxy, ours among them."""
    before = environment.get("NO_PROXY") or environment.get("no_proxy") or ""
    names = [part.strip() for part in before.split(",") if part.strip()]
    hosts = ",".join([*names, *(name for name in ("127.0.0.1", "localhost") if name not in names)])
    return {"NO_PROXY": hosts, "no_proxy": hosts}


def dump(value: Any) -> str:
    """JSON that a person can read."""
    return json.dumps(value, indent=1)
