"""Every wire format through the gateway: cut, proven, counted and recorded as Anthropic's is, and answered untouched.

A real gateway between a real client (http.client) and a real server that refuses what the providers refuse.
"""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest

import providers
import streams
from cutline import cut, record
from cutline.encodings import pack, unpack
from cutline.proxy import ledger, routes
from cutline.proxy.app import Gateway, Passed
from cutline.proxy.observer import Observer, Place
from providers import WAYS, WHOLE, Provider, format_of, growing
from streams import Said

TOKEN = "a-token-of-the-test"
Headers = Sequence[tuple[str, str]]


@dataclass
class Proxy:
    """A gateway with its observer, and a client's view of it."""

    upstream: str
    folder: Path
    options: dict[str, Any] = field(default_factory=dict)
    passed: list[Passed] = field(default_factory=list)
    carried: int = 0

    def __enter__(self) -> Proxy:
        self.writer = record.Writer(self.folder / "record" / "r.db")
        self.observer = Observer(Place("test", "/project", self.folder), self.writer)
        self.gateway = Gateway(
            self.upstream, TOKEN, passed=self._note, hook=self.observer.hook, said=self.observer.said, **self.options
        )
        self.port = urlsplit(self.gateway.start()).port or 0
        return self

    def __exit__(self, *_: object) -> None:
        self.gateway.stop()
        self.observer.close()
        assert self.writer.close()

    def _note(self, passed: Passed) -> None:
        self.passed.append(passed)
        self.observer.passed(passed)

    def ask(
        self, target: str, body: bytes | None = None, headers: Headers = (), method: str = "POST"
    ) -> SimpleNamespace:
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)) as connection:
            connection.putrequest(method, f"/{TOKEN}{target}", skip_accept_encoding=True)
            for name, value in headers:
                connection.putheader(name, value)
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            got = connection.getresponse()
            told = {name.lower(): value for name, value in got.getheaders()}
            answer = SimpleNamespace(status=got.status, headers=told, body=got.read())
        if routes.route(method, target) and b"cutline: " not in answer.body:
            self.carried += 1
            assert until(lambda: len(self.passed) == self.carried)
        return answer

    def account(self) -> Any:
        """The sums of the one session, when all is counted."""
        self.observer.close()
        assert not self.observer.faults
        (account,) = self.observer.accounts.values()
        return account


def until(true: Callable[[], object], seconds: float = 5) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end and not true():
        time.sleep(0.005)
    return bool(true())


# ---------------------------------------------------------------------------------------------------------- routes


@pytest.mark.parametrize(
    ("target", "format", "kind"),
    (
        *((target, format_of(way) if way != "invoke" else "bedrock", "turn") for way, target in WAYS.items()),
        *((target, format_of(way) if way != "invoke" else "bedrock", "turn") for way, target in WHOLE.items()),
        ("/chat/completions", "openai_chat", "turn"),
        ("/api/v1/chat/completions", "openai_chat", "turn"),
        ("/responses", "openai_responses", "turn"),
        ("/backend-api/codex/responses", "openai_responses", "turn"),
        ("/v1/responses/compact", "openai_responses", "compaction"),
        ("/v1/responses/input_tokens", "openai_responses", "count"),
        ("/v1beta/models/gemini-3-pro:countTokens", "gemini", "count"),
        ("/v1internal:streamGenerateContent?alt=sse", "gemini", "turn"),
        ("/v1internal:countTokens", "gemini", "count"),
        ("/v1/projects/p/locations/l/publishers/anthropic/models/claude:streamRawPredict", "anthropic", "turn"),
        ("/v1/projects/p/locations/l/publishers/anthropic/models/count-tokens:rawPredict", "anthropic", "count"),
        ("/model/arn%3Aaws%3Abedrock%2Fx/converse-stream", "converse", "turn"),
        ("/model/m/count-tokens", "converse", "count"),
        ("/v1/responses/resp_1/cancel", None, ""),
        ("/v1/completions", None, ""),
        ("/v1/embeddings", None, ""),
        ("/v1beta/models/m:embedContent", None, ""),
        ("/v1internal:loadCodeAssist", None, ""),
        ("/model/m/async-invoke", None, ""),
        ("/api/chat", None, ""),
    ),
)
def test_which_addresses_carry_a_history(target: str, format: str | None, kind: str):
    found = routes.route("POST", target)
    assert (found.format, found.kind) == (format, kind) if found else format is None
    assert routes.route("GET", target) is None


# ------------------------------------------------------------------------------------------------- a conversation


@pytest.mark.parametrize("way", WAYS)
def test_a_conversation_is_cut_at_its_checkpoints_and_answers_pass_as_they_come(way: str, tmp_path: Path):
    """Fourteen parts and two checkpoints: each request arrives as the cut of itself, and the provider refuses none."""
    bodies = [json.dumps({**json.loads(body), **_streamed(way)}).encode() for body in growing(way, 14, (8, 12))]
    with Provider() as provider, Proxy(provider.url + "/base", tmp_path) as proxy:
        for body in bodies:
            got = proxy.ask(WAYS[way], body, [("Content-Type", "application/json"), ("Accept-Encoding", "gzip, br")])
            assert got.status == 200 and got.headers["content-encoding"] == "gzip"
            whole = streams.chat(Said()) if way == "openai_chat" else streams.stream(way, Said())
            assert unpack(got.body, "gzip", 1 << 20) == whole
        assert [asked.body for asked in provider.asked] == [cut(body).body for body in bodies]
        assert {asked.target for asked in provider.asked} == {"/base" + WAYS[way]}, "prefix and query are kept"
        assert {asked.headers["content-length"] for asked in provider.asked[-1:]} == {str(len(cut(bodies[-1]).body))}
        account = proxy.account()
    assert not provider.faults and not account.faults and not account.refusals
    assert [step.seam for step in account.steps] == list(
        dict.fromkeys(p.sent.seam for p in proxy.passed if p.sent.seam)
    )
    assert (account.turns, len(account.steps), account.metered) == (len(bodies), 2, way != "anthropic")
    for step in account.steps:
        assert step.after_messages < step.before_messages / 2 and step.before_tokens == step.after_tokens == 1_000
    models = {"gemini": "gemini-3-pro", "converse": "amazon.nova-pro-v1:0", "anthropic": "claude-sonnet-4-5"}
    assert account.model == models.get(format_of(way), "gpt-5.2")
    assert way == "gemini" or ledger.seller(account.model) == ("aws" if way == "converse" else None)
    written = 0 if format_of(way) == "gemini" else 100
    assert (account.used.total_input, account.used.cache_read) == (1_000 * len(bodies), 600 * len(bodies))
    assert (account.used.cache_write_5m, account.used.output) == (written * len(bodies), 20 * len(bodies))
    assert account.uncut > account.used.total_input and account.uncounted == 0


def _streamed(way: str) -> dict[str, Any]:
    return {"stream": True} if way in ("anthropic", "openai_chat", "openai_responses") else {}


@pytest.mark.parametrize("way", WHOLE)
def test_an_answer_that_comes_whole_is_counted(way: str, tmp_path: Path):
    body = growing(way)[-1]
    with Provider() as provider, Proxy(provider.url, tmp_path) as proxy:
        got = proxy.ask(WHOLE[way], body, [("api-key", "made-up"), ("Accept-Encoding", "gzip")])
        assert (
            got.status == 200 and got.headers["content-encoding"] == "gzip" and provider.asked[0].target == WHOLE[way]
        )
        assert provider.asked[0].headers["api-key"] == "made-up"
        assert provider.asked[0].body == cut(body).body != body
        account = proxy.account()
    assert (account.used.input, account.used.output, account.metered) == (1_000, 20, True)


def test_answers_without_counters_are_told_and_nothing_is_made_up_for_them(tmp_path: Path):
    """Chat Completions count only where the client asked for it; the proxy does not ask in its place."""
    body = json.dumps({**json.loads(growing("openai_chat")[-1]), "stream": True}).encode()
    with Provider(usage=False) as provider, Proxy(provider.url, tmp_path) as proxy:
        proxy.ask(WAYS["openai_chat"], body)
        assert b"include_usage" not in provider.asked[0].body
        account = proxy.account()
    assert (account.turns, account.uncounted, account.used.total_input) == (1, 1, 0)


# ------------------------------------------------------------------------------------------------ compressed bodies


@pytest.mark.parametrize("way", ("anthropic", "openai_responses", "gemini"))
@pytest.mark.parametrize("encoding", ("zstd", "gzip", "deflate", "zstd, gzip"))
def test_a_compressed_body_goes_on_in_its_encoding(way: str, encoding: str, tmp_path: Path):
    body = growing(way)[-1]
    with Provider() as provider, Proxy(provider.url, tmp_path) as proxy:
        assert proxy.ask(WAYS[way], pack(body, encoding), [("Content-Encoding", encoding)]).status == 200
    (asked,) = provider.asked
    assert asked.body == cut(body).body != body and asked.headers["content-encoding"] == encoding
    assert asked.headers["content-length"] == str(len(asked.raw)) and len(asked.raw) < len(asked.body)


def test_a_body_that_can_not_be_opened_passes_and_that_is_said(tmp_path: Path):
    with Provider(refuses=lambda sent: "") as provider, Proxy(provider.url, tmp_path) as proxy:
        for encoding, body in (("br", b"\x0b\x02\x80"), ("gzip", b"no gzip")):
            proxy.ask("/v1/responses", body, [("Content-Encoding", encoding)])
        br, torn = proxy.observer.notes
    assert br == "a body in the encoding br can't be read: it passes untouched"
    assert torn.startswith("the body is no gzip: ") and torn.endswith(": it passes untouched")


# --------------------------------------------------------------------------------------------- a request in another


@pytest.mark.parametrize(
    ("target", "wrap", "format"),
    (
        (
            "/v1internal:streamGenerateContent?alt=sse",
            lambda body: {"model": "m", "request": body, "project": "p"},
            "gemini",
        ),
        (
            "/v1beta/models/m:countTokens",
            lambda body: {"generateContentRequest": {"model": "models/m", **body}},
            "gemini",
        ),
        ("/v1beta/models/m:countTokens", lambda body: body, "gemini"),
        ("/model/m/count-tokens", lambda body: {"input": {"converse": body}}, "converse"),
    ),
)
def test_a_request_inside_of_another_one_is_cut_where_it_stands(target: str, wrap: Any, format: str, tmp_path: Path):
    inner = json.loads(growing(format)[-1])
    body = json.dumps(wrap(inner)).encode()
    with Provider() as provider, Proxy(provider.url, tmp_path) as proxy:
        proxy.ask(target, body)
    sent, whole = provider.asked[0].body, proxy.passed[0].sent.whole
    assert len(sent) < len(body) / 2 and whole in body
    assert sent == body.replace(whole, cut(whole).body)


# ------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("way", WAYS)
def test_where_the_provider_refuses_the_cut_the_original_goes_and_what_it_said_is_told(way: str, tmp_path: Path):
    body = growing(way)[-1]
    with (
        Provider(refuses=lambda sent: "" if sent == body else "messages.3: no") as provider,
        Proxy(provider.url, tmp_path) as proxy,
    ):
        for _ in range(2):
            assert proxy.ask(WAYS[way], body).status == 200
        assert [asked.body for asked in provider.asked[-2:]] == [body, body], "remembered"
        assert provider.asked[0].body == cut(body).body
        account = proxy.account()
    (told,) = account.refusals
    assert "(messages.3: no)" in told and "the original was accepted" in told


def test_a_server_that_wants_roles_to_alternate_is_sent_the_cut_that_folds(tmp_path: Path):
    """What is left of Chat Completions may be two of the agent's messages in a row, which some templates refuse."""
    held = json.loads(growing("openai_chat", 6, (4,))[-1])
    held["messages"] += [{"role": "assistant", "content": "They agree."}, {"role": "user", "content": "Sure?"}]
    body = json.dumps(held).encode()
    folded = cut(body, profile="strict").body
    with Provider(strict=True) as provider, Proxy(provider.url, tmp_path) as proxy:
        for _ in range(2):
            assert proxy.ask(WAYS["openai_chat"], body).status == 200
        assert [asked.body for asked in provider.asked] == [cut(body).body, folded, folded]
        assert "without neighbours of one role was accepted" in proxy.account().refusals[0]
    with Provider(strict=True) as provider, Proxy(provider.url, tmp_path, {"profile": "strict"}) as proxy:
        assert proxy.ask(WAYS["openai_chat"], body).status == 200
        assert [asked.body for asked in provider.asked] == [folded]


@pytest.mark.parametrize(
    ("target", "shape"),
    (
        ("/v1/messages", {"type": "error", "error": {"type": "invalid_request_error", "message": "…"}}),
        (
            "/v1/chat/completions",
            {"error": {"message": "…", "type": "invalid_request_error", "param": None, "code": None}},
        ),
        ("/v1/responses", {"error": {"message": "…", "type": "invalid_request_error", "param": None, "code": None}}),
        ("/v1beta/models/m:generateContent", {"error": {"code": 400, "message": "…", "status": "INVALID_ARGUMENT"}}),
        ("/model/m/converse", {"message": "…"}),
    ),
)
def test_what_the_proxy_itself_refuses_has_the_provider_s_shape(target: str, shape: Any, tmp_path: Path):
    with Provider() as provider, Proxy(provider.url, tmp_path) as proxy:
        got = proxy.ask(target, b"{}", [("Upgrade", "h2c"), ("Connection", "Upgrade")])
    told = json.loads(got.body)
    message = told.get("message") or told["error"]["message"]
    assert got.status == 400 and message.startswith("cutline: ")
    assert json.loads(got.body.replace(json.dumps(message).encode(), '"…"'.encode())) == shape
    assert not provider.asked


# -------------------------------------------------------------------------------------------- what can't be cut


def test_a_history_that_the_server_holds_passes_and_that_is_said(tmp_path: Path):
    body = json.dumps({**json.loads(growing("openai_responses")[-1]), "previous_response_id": "resp_0"}).encode()
    with Provider(refuses=lambda sent: "") as provider, Proxy(provider.url, tmp_path) as proxy:
        proxy.ask(WAYS["openai_responses"], body)
        assert provider.asked[0].body == body
        assert "held by the server" in proxy.passed[0].sent.reason
        account = proxy.account()
    assert account.held == 1 and not account.steps


@pytest.mark.parametrize("path", ("/api/chat", "/api/generate"))
def test_ollama_s_own_api_passes_untouched_and_that_is_said(path: str, tmp_path: Path):
    body = growing("openai_chat")[-1]
    with Provider() as provider, Proxy(provider.url, tmp_path) as proxy:
        for _ in range(2):
            assert proxy.ask(path, body).status == 200
        assert [asked.body for asked in provider.asked] == [body, body]
        (note,) = proxy.observer.notes
        assert "/api/chat" in note and "/v1" in note
        assert until(lambda: (tmp_path / "status.json").exists())
        assert json.loads((tmp_path / "status.json").read_text())["notes"] == [note]


# ------------------------------------------------------------------------------------------- who asks, and for what


@pytest.mark.parametrize(
    ("way", "headers", "members", "who"),
    (
        ("openai_responses", [("session-id", "s"), ("thread-id", "s")], {}, ("s", "")),
        (
            "openai_responses",
            [("session-id", "s"), ("thread-id", "t"), ("x-openai-subagent", "collab_spawn")],
            {},
            ("s", "t"),
        ),
        ("openai_responses", [("session-id", "s"), ("x-openai-subagent", "review")], {}, ("s", "review")),
        ("openai_responses", [], {"prompt_cache_key": "s"}, ("s", "")),
        ("openai_chat", [("X-Session-Id", "s"), ("x-session-affinity", "s")], {}, ("s", "")),
        ("openai_chat", [("X-Session-Id", "t"), ("x-parent-session-id", "s")], {}, ("s", "t")),
        ("openai_chat", [("x-session-affinity", "s")], {}, ("s", "")),
        ("openai_chat", [], {"note": '"prompt_cache_key":"no"'}, ("", "")),
        ("gemini", [("x-session-id", "s")], {}, ("s", "")),
        ("gemini", [], {}, ("", "")),
    ),
)
def test_session_and_sub_agent_are_read_where_each_client_puts_them(
    way: str, headers: Headers, members: dict[str, Any], who: tuple[str, str], tmp_path: Path
):
    body = json.dumps({**json.loads(growing(way)[0]), **members}).encode()
    with Provider() as provider, Proxy(provider.url, tmp_path) as proxy:
        proxy.ask(WAYS[way], body, headers)
    assert (proxy.passed[0].sent.session, proxy.passed[0].sent.agent) == who and provider.asked


TURN = json.dumps({"session_id": "s", "request_kind": "turn"})
SUMMARY = json.dumps({"session_id": "s", "request_kind": "compaction"})


@pytest.mark.parametrize(
    ("way", "target", "headers", "words", "kind"),
    (
        ("openai_responses", "/v1/responses", [("x-codex-turn-metadata", SUMMARY)], "", "compaction"),
        ("openai_responses", "/v1/responses", [("x-codex-turn-metadata", TURN)], "", "turn"),
        ("openai_responses", "/v1/responses", [("x-codex-turn-metadata", "{")], "", "turn"),
        ("openai_responses", "/v1/responses/compact", [], "", "compaction"),
        (
            "openai_responses",
            "/v1/responses",
            [],
            "You are performing a CONTEXT CHECKPOINT COMPACTION. Create a handoff summary for another LLM.",
            "compaction",
        ),
        (
            "gemini",
            "/v1beta/models/m:generateContent",
            [],
            "Generate a new <state_snapshot> based on the provided history.\n\nFirst, reason in your scratchpad. Then, "
            "generate the updated <state_snapshot>.",
            "compaction",
        ),
        ("gemini", "/v1beta/models/m:generateContent", [], "What is a <state_snapshot>?", "turn"),
        (
            "openai_chat",
            "/v1/chat/completions",
            [],
            "Here is the conversation so far:\n\n<conversation>\n[User]: hi\n</conversation>\n\nCreate a new anchored "
            "summary from the conversation history.",
            "compaction",
        ),
        (
            "openai_chat",
            "/v1/chat/completions",
            [],
            "<conversation>\n[User]: hi\n</conversation>\n\nThe messages above are a conversation to summarize.",
            "compaction",
        ),
    ),
)
def test_the_client_s_own_summary_reads_the_whole_history(
    way: str, target: str, headers: Headers, words: str, kind: str, tmp_path: Path
):
    held = json.loads(growing(way)[-1])
    if words:
        part = {"parts": [{"text": words}]} if way == "gemini" else {"content": words}
        held[{"gemini": "contents", "openai_chat": "messages"}.get(way, "input")].append({"role": "user", **part})
    body = json.dumps(held).encode()
    with Provider() as provider, Proxy(provider.url, tmp_path) as proxy:
        proxy.ask(target, body, headers)
    assert proxy.passed[0].sent.kind == kind
    assert (provider.asked[0].body == body) is (kind == "compaction")


# -------------------------------------------------------------------------------------------------------- the record


@pytest.mark.parametrize("way", ("openai_chat", "openai_responses", "gemini", "converse", "invoke"))
def test_the_whole_history_is_recorded_byte_for_byte(way: str, tmp_path: Path):
    bodies = growing(way)
    with Provider() as provider, Proxy(provider.url, tmp_path) as proxy:
        for body in bodies:
            proxy.ask(WAYS[way], body, [("x-session-id", "s")])
        assert len(provider.asked) == len(bodies)
    with record.Record(tmp_path / "record" / "r.db", readonly=True) as held:
        rows = held.requests("s")
        assert [held.body(row.id) for row in rows] == bodies
        assert [row.seam for row in rows] == [passed.sent.seam for passed in proxy.passed]
        assert json.loads(held.answer(rows[0].id))[0]["type"] == "text"
        assert held.faults() == []


def test_threads_end_with_the_proxy(tmp_path: Path):
    with Provider() as provider, Proxy(provider.url, tmp_path) as proxy:
        proxy.ask(WAYS["gemini"], growing("gemini")[-1])
    assert not [one.name for one in threading.enumerate() if one.name.startswith("cutline-proxy")]


assert providers.WAYS is WAYS
