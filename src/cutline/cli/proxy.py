"""`cutline proxy`: the proxy alone, for programs that are pointed at it by hand.

Law: prints its address and serves until it is interrupted; cuts at checkpoints, as under `run`, and reports at its end.
"""

from __future__ import annotations

import secrets
import signal
import threading
from pathlib import Path

import click


@click.command("proxy")
@click.option("--upstream", metavar="URL", help="The provider's base URL.  [default: as ANTHROPIC_BASE_URL says]")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Listen on this port of 127.0.0.1.")
@click.option("--no-record", is_flag=True, help="Keep no record.")
@click.option("--json", "as_json", is_flag=True, help="The report as JSON.")
def command(upstream: str | None, port: int, no_record: bool, as_json: bool) -> None:
    """Serve a proxy for Anthropic Messages on loopback until interrupted."""
    import os

    from .. import project, record
    from ..launch.claude_code import DEFAULT_UPSTREAM
    from ..launch.run import Ended, verdicts
    from ..proxy.app import Gateway
    from ..proxy.observer import Observer, Place
    from . import wire_report

    path = "" if no_record else str(record.default_path())
    writer = record.Writer(path) if path else None
    scope = project.project(Path.cwd())
    observer = Observer(Place("", scope, None), writer)
    base = upstream or os.environ.get("ANTHROPIC_BASE_URL") or DEFAULT_UPSTREAM
    gateway = Gateway(
        base,
        secrets.token_urlsafe(24),
        passed=observer.passed,
        verdicts=verdicts(path, scope),
        hook=observer.hook,
        port=port,
    )
    try:
        click.echo(gateway.start())
        click.echo(f"cutline: set ANTHROPIC_BASE_URL to this address; requests go to {base}; ^C ends it", err=True)
        stopped = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stopped.set())
        stopped.wait()
    finally:
        gateway.stop()
        observer.close()
        if writer is not None:
            writer.close()
    wire_report.show(Ended(0, tuple(observer.accounts.values()), tuple(observer.faults), path), as_json)
