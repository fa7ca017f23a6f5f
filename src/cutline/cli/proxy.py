"""`cutline proxy`: the proxy alone, for programs that are pointed at it by hand.

Law: prints its address and serves until it is interrupted; cuts at checkpoints, as under `run`, and reports at its end.
"""

from __future__ import annotations

import secrets
import signal
import threading
from pathlib import Path

import click


@click.command("proxy", epilog="Example: cutline proxy --upstream openai")
@click.option(
    "--upstream",
    metavar="NAME|URL",
    help="anthropic, openai, gemini, azure, openrouter, vllm, ollama, bedrock, or a base URL.  [default: the provider "
    "whose base URL the environment names, else anthropic]",
)
@click.option("--strict", is_flag=True, help="The server refuses two messages of one role in a row.")
@click.option("--aws-profile", metavar="NAME", help="Whose credentials Bedrock's requests are signed with.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Listen on this port of 127.0.0.1.")
@click.option("--no-record", is_flag=True, help="Keep no record.")
@click.option("--json", "as_json", is_flag=True, help="The report as JSON.")
def command(
    upstream: str | None, strict: bool, aws_profile: str | None, port: int, no_record: bool, as_json: bool
) -> None:
    """Serve a proxy on loopback until interrupted.

    Histories in the formats of Anthropic Messages, Chat Completions, Responses, Gemini, Converse and InvokeModel are
    cut, whatever the provider; everything else passes untouched.
    """
    import os

    from .. import project, record
    from ..cutter import Profile
    from ..launch.run import Ended, verdicts
    from ..proxy import upstreams
    from ..proxy.app import Gateway
    from ..proxy.observer import Observer, Place
    from ..proxy.signing import Signer
    from . import wire_report
    from .held import looked_at

    meant = upstreams.choose(upstream, os.environ)
    signer = Signer(aws_profile) if meant.signed else None
    path = "" if no_record else str(record.default_path())
    looked_at(path)
    writer = record.Writer(path, apart=True) if path else None
    scope = project.project(Path.cwd())
    profile: Profile = "strict" if strict else None
    observer = Observer(Place("", scope, None, profile=profile), writer)
    gateway = Gateway(
        meant.base,
        secrets.token_urlsafe(24),
        passed=observer.passed,
        verdicts=verdicts(path, scope),
        hook=observer.hook,
        said=observer.said,
        port=port,
        profile=profile,
        signer=signer,
    )
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):  # before anybody knows the address, and so when to end it
        signal.signal(number, lambda *_: stopped.set())
    try:
        click.echo(gateway.start())
        told = f"set {meant.variable} to this address{meant.behind and f' with {meant.behind} behind it'}"
        told = told if meant.variable else "this address takes the place of the provider's base URL"
        click.echo(f"cutline: {told}; requests go to {meant.base}; ^C ends it", err=True)
        while not stopped.wait(1.0):  # a signal that comes as the lock is taken is seen at the next look
            pass
    finally:
        gateway.stop()
        observer.close()
        if writer is not None:
            writer.close()
    faults = [*observer.faults, *([f"the record: {writer.fault}"] if writer is not None and writer.fault else [])]
    ended = Ended(0, tuple(observer.accounts.values()), tuple(faults), path, tuple(observer.notes))
    wire_report.show(ended, as_json)
