"""The real clients through the proxy: their wire is cut, nothing of it is refused, and the record has all of it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cutline import record
from cutline.measure import request_of
from cutline.proxy.app import Gateway, Passed
from cutline.proxy.observer import Observer, Place

from . import chat, codex, gemini_cli, npm, opencode, pi

pytestmark = pytest.mark.slow

DOCUMENT = {"done": "read", "open": "the rest", "went_wrong": "nothing"}
LONG = "seq 1 3000"


class Through:
    """A proxy in the place of a scripted provider: its address has what the provider's has behind it."""

    def __init__(self, upstream: Any, folder: Path) -> None:
        self.aside = getattr(upstream, "aside", None)
        self.passed: list[Passed] = []
        self.path = folder / "r.db"
        self._writer = record.Writer(self.path)
        self.observer = Observer(Place("test", str(folder), None), self._writer)
        behind = "/v1" if upstream.url.endswith("/v1") else ""
        base = upstream.url.removesuffix(behind)
        self._gateway = Gateway(base, "token", passed=self._note, said=self.observer.said)
        self.url = self._gateway.start() + behind

    def _note(self, passed: Passed) -> None:
        self.passed.append(passed)
        self.observer.passed(passed)

    def close(self) -> None:
        self._gateway.stop()
        self.observer.close()
        assert self._writer.close()


@contextmanager
def through(upstream: Any, folder: Path) -> Iterator[Through]:
    proxy = Through(upstream, folder)
    try:
        yield proxy
    finally:
        proxy.close()


def talk_codex(tmp_path: Path) -> Through:
    server = tmp_path / "server.py"
    server.write_text(npm.SERVER)
    tools = f'mcp_servers.cutline={{command="{sys.executable}",args=["{server}"]}}'
    script = [
        [codex.reasoning("s1"), codex.said("I look."), codex.call("c1", "exec_command", cmd=LONG)],
        [codex.reasoning("s2"), codex.call("c2", "exec_command", cmd=LONG)],
        [codex.said("A natural point."), codex.call("ck", "micro_handoff", "mcp__cutline", **DOCUMENT)],
        [codex.reasoning("s3"), codex.call("c3", "exec_command", cmd="echo on")],
        [codex.said("Done.")],
    ]
    with codex.Upstream(script) as upstream, through(upstream, tmp_path) as proxy:
        client = codex.Codex(codex.install(), proxy.url, tmp_path / "codex", settings=("-c", tools))
        assert client.run(_work(tmp_path), "Count.").code == 0
        assert upstream.refusals == [] and upstream.unused == 0
    return proxy


CHAT = [
    chat.Answer("I look.", [("c1", "bash", {"command": LONG, "description": "counts"})], "Which?"),
    chat.Answer("", [("c2", "bash", {"command": LONG, "description": "counts"})]),
    chat.Answer("A natural point.", [("ck", "cutline_micro_handoff", DOCUMENT)]),
    chat.Answer("On.", [("c3", "bash", {"command": "echo on", "description": "goes on"})]),
    chat.Answer("Done."),
]


def talk_opencode(tmp_path: Path) -> Through:
    with opencode.provider(CHAT) as upstream, through(upstream, tmp_path) as proxy:
        client = opencode.client(tmp_path / "home", tmp_path / "work")
        assert client.run(proxy, "Count.").code == 0  # type: ignore[arg-type]
        assert upstream.faults == [] and upstream.unused == 0
    return proxy


def talk_pi(tmp_path: Path) -> Through:
    own = [
        chat.Answer(one.text, [(i, n.replace("cutline_", "mcp__cutline__"), v) for i, n, v in one.calls])
        for one in CHAT
    ]
    with chat.Upstream(own) as upstream, through(upstream, tmp_path) as proxy:
        client = pi.client(tmp_path / "home", tmp_path / "work")
        assert client.run(proxy, "Count.").code == 0  # type: ignore[arg-type]
        assert upstream.faults == [] and upstream.unused == 0
    return proxy


def talk_gemini(tmp_path: Path) -> Through:
    server, shell = tmp_path / "server.py", "run_shell_command"
    server.write_text(npm.SERVER)
    script = [
        [gemini_cli.text("I look."), gemini_cli.call(shell, "", "c2ln", command=LONG)],
        [gemini_cli.thought("Hm."), gemini_cli.call(shell, "", "c2ln", command=LONG)],
        [gemini_cli.text("A natural point."), gemini_cli.call("mcp_cutline_micro_handoff", "", "c2ln", **DOCUMENT)],
        [gemini_cli.call(shell, "", "c2ln", command="echo on")],
        [gemini_cli.text("Done.")],
    ]
    with gemini_cli.Upstream(script) as upstream, through(upstream, tmp_path) as proxy:
        home = gemini_cli.Home(tmp_path / "home", _work(tmp_path))
        home.settle({"cutline": {"command": sys.executable, "args": [str(server)], "trust": True}})
        assert home.run(proxy.url, "Count.").code == 0
        assert upstream.faults == [] and len(upstream.conversation) == len(script)
    return proxy


def _work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


TALKS: dict[str, tuple[Callable[[Path], Through], str]] = {
    "codex": (talk_codex, "openai_responses"),
    "opencode": (talk_opencode, "openai_chat"),
    "pi": (talk_pi, "openai_chat"),
    "gemini": (talk_gemini, "gemini"),
}


@pytest.mark.parametrize("name", TALKS)
def test_a_client_s_wire_is_cut_at_its_checkpoint(name: str, tmp_path: Path):
    talk, format = TALKS[name]
    proxy = talk(tmp_path)
    turns = [passed.sent for passed in proxy.passed if b"tools" in passed.sent.whole and passed.sent.kind == "turn"]
    turns = [sent for sent in turns if b"seq 1 3000" in sent.whole or sent.seam]
    assert {sent.format for sent in turns} == {format} and not any(sent.fault for sent in turns)
    (account,) = (one for one in proxy.observer.accounts.values() if one.turns)
    (step,) = account.steps
    assert step.after_messages < step.before_messages, "the history's part, the client's own words in it"
    assert [bool(sent.seam) for sent in turns] == [False, False, True, True], (
        "from the request behind the checkpoint on"
    )
    first, second = (sent.body for sent in turns[2:])
    prefix = _history(first)
    assert _history(second)[: len(prefix)] == prefix, "what was sent before the next checkpoint stays as it was"
    assert account.used.total_input and not account.uncounted and not account.refusals and not proxy.observer.faults
    assert (account.session == "") == (name in ("gemini", "pi"))
    with record.Record(proxy.path, readonly=True) as held:
        assert held.faults() == []
        assert [one.found.call.name for one in held.search(None, ["3000", "1500"])]
        assert {row.size for row in held.requests(account.session)} >= {len(sent.whole) for sent in turns}


def _history(body: bytes) -> list[bytes]:
    """The messages of a body, but the last one, whose cache mark may wander."""
    request, native = request_of(body)
    assert native is not None and request.messages
    return [body[start:end] for start, end in native.items][:-1]
