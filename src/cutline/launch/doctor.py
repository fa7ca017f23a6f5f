"""Whether a client would run through Cutline here: what is there, what is missing, what to do.

Law: looks only; nothing is written, no provider is asked and no session is started. What can't be told is said so.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from .. import events, mandate
from ..errors import CutlineError, InputError
from ..measure import request_of
from ..sessions import clients
from . import setup, start
from .start import Client, Prepared, Wish

State = Literal["good", "note", "bad"]

MEASURED: Mapping[str, tuple[str, ...]] = {
    "claude": ("2.1.332", "2.1.197"),
    "codex": ("0.171.0",),
    "gemini": ("0.61.0",),
    "opencode": ("1.18.33",),
    "pi": ("1.6.0",),
}
"""Versions with which runs and resumed copies were measured (the pages of docs/)."""
_VERSION = re.compile(r"\d+\.\d+\.\d+(?:-[\w.]+)?")
_ASKS_S, _STARTS_S = 30, 30
_READ = 64 * 1024 * 1024  # bytes of a session that is read to tell how its agent narrates
_ENOUGH = 0.5  # of the calls: from there on a way of narrating is the model's


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        name: what.
        state: "bad" where a run would not begin or not work.
        text: what was found.
        advice: what to do; "" where nothing is.
    """

    name: str
    state: State
    text: str
    advice: str = ""


def installed(names: Sequence[str], environment: Mapping[str, str]) -> list[Client]:
    """Those of the clients whose program is on PATH."""
    return [start.CLIENTS[name] for name in names if shutil.which(name, path=environment.get("PATH"))]


def look(client: Client, here: Path, environment: Mapping[str, str]) -> list[Finding]:
    """Look at a client, as it would be started here.

    Args:
        client: which.
        here: the working directory.
        environment: the user's.
    """
    binary = shutil.which(client.name, path=environment.get("PATH"))
    if binary is None:
        return [Finding("installed", "bad", f"{client.name} is not on PATH", f"npm install -g {client.package}")]
    version = _version(binary, environment)
    found = [Finding("installed", "good", f"{version or 'a version it does not tell'}, {binary}")]
    try:
        prepared = client.launch.prepare((), Wish(), binary=binary, here=here, environment=environment)
    except InputError as error:
        found.append(Finding("wire", "bad", str(error)))
    else:
        found += [_login(prepared), _wire(prepared, client)]
    return [
        *found,
        _tools(here, environment),
        _set_up(client, environment),
        _copies(client, version),
        _narration(client),
    ]


def _version(binary: str, environment: Mapping[str, str]) -> str:
    try:
        done = subprocess.run(
            [binary, "--version"],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_ASKS_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    said = _VERSION.search(done.stdout.decode("utf-8", "replace"))
    return said[0] if said else ""


def _login(prepared: Prepared) -> Finding:
    if prepared.login:
        return Finding("login", "good", prepared.login)
    return Finding("login", "note", "nothing here says how", "log in with the client itself, or set its API key")


def _wire(prepared: Prepared, client: Client) -> Finding:
    if prepared.upstream is None:
        return Finding("wire", "good", "several providers; run puts the proxy before each")
    parts = urlsplit(prepared.upstream)  # a gateway's path may hold a key
    host = parts.hostname if parts.port is None else f"{parts.hostname}:{parts.port}"
    return Finding("wire", "good", f"{parts.scheme}://{host}; cutline run {client.name} puts the proxy before it")


def _tools(here: Path, environment: Mapping[str, str]) -> Finding:
    """Start the tools' server as a run does, and ask it what it has."""
    began = time.monotonic()
    try:
        names = _listed(here, environment)
    except Exception as error:  # of whatever the server or the library says
        said = str(error) or type(error).__name__
        return Finding("tools", "bad", f"cutline mcp does not answer: {said}", "cutline mcp  (and read what it says)")
    took = time.monotonic() - began
    missing = [tool["name"] for tool in mandate.TOOLS if tool["name"] not in names]
    if missing:
        return Finding("tools", "bad", f"cutline mcp does not have {', '.join(missing)}", "install Cutline anew")
    return Finding("tools", "good", f"{', '.join(names)}: there in {took:.1f} s")


def _listed(here: Path, environment: Mapping[str, str]) -> list[str]:
    import anyio
    from mcp import Client as Asking
    from mcp import StdioServerParameters

    command, *arguments = start.own(sys.executable, "mcp")
    without = {**environment, "CUTLINE_RECORD": ""}
    server = StdioServerParameters(command=command, args=arguments, env=without, cwd=str(here))

    async def ask() -> list[str]:
        with anyio.fail_after(_STARTS_S):
            async with Asking(server) as asking:
                return [tool.name for tool in (await asking.list_tools()).tools]

    return anyio.run(ask)


def _set_up(client: Client, environment: Mapping[str, str]) -> Finding:
    """Whether `cutline setup` gave it the tools for good, and they are there as it gave them."""
    try:
        state = setup.state(client.name, environment, sys.executable)
    except InputError as error:
        return Finding("set up", "note", str(error))
    if state == "set":
        return Finding("set up", "good", "for good: the tools and the mandate are there in every session")
    if state == "changed":
        advice = f"cutline setup {client.name}, which shows what is missing"
        return Finding("set up", "note", "for good, and what it was given is other now", advice)
    return Finding("set up", "note", f"not for good; cutline run {client.name} brings what it needs")


def _copies(client: Client, version: str) -> Finding:
    known = MEASURED.get(client.name, ())
    if version in known:
        return Finding("copies", "good", "cut copies of sessions are resumed; measured with this version")
    shown = " and ".join(known) or "no version"
    advice = "look at a first copy: cutline cut, then resume it; the original stays"
    return Finding("copies", "note", f"measured with {shown}, not with {version or 'this one'}", advice)


def _narration(client: Client) -> Finding:
    """By which way the agent's words come, in the client's latest session that has calls."""
    name = "narration"
    ask = "the mandate asks for it in a run"
    latest = next((one for one in clients.sessions(None, (client.sessions,)) if one.file.talks), None)
    if latest is None:
        return Finding(name, "note", "no session yet to tell it by", ask)
    if latest.file.path.stat().st_size > _READ:
        return Finding(name, "note", "the latest session is too large to look into", f"cutline show {latest.file.id}")
    try:
        history = clients.open_found(latest).history
        found = events.channels(request_of(history.body)[0])
    except CutlineError as error:
        return Finding(name, "note", f"the latest session can't be read: {error}")
    who = f"{history.model or 'its model'}, latest session"
    return narrated(found, who)


def narrated(found: events.Channels, who: str) -> Finding:
    """What the ways in which calls are narrated mean for a run."""
    name = "narration"
    if not found.calls:
        return Finding(name, "note", f"{who}: no calls", "the mandate asks for it in a run")
    told = {"text": found.text, "narration blocks": found.narration, "say": found.say}
    way, most = max(told.items(), key=lambda one: one[1])
    share = f"{who}: {found.calls - found.silent:,} of {found.calls:,} calls narrated"
    if most >= _ENOUGH * found.calls:
        return Finding(name, "good", f"{share}, in {way}" if way != "say" else f"{share}, by say")
    if found.hidden:
        return Finding(name, "note", f"{share}; {found.hidden:,} blocks hide their words", "say carries them in a run")
    return Finding(name, "note", share, "the mandate asks for it in a run; the notice's trace lists the rest")
