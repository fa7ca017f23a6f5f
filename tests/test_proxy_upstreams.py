"""Which provider is meant, and requests that have to be signed anew: with AWS's own client, and a check that is ours."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import signal
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import providers
from cutline import cut
from cutline.errors import InputError
from cutline.proxy import upstreams
from cutline.proxy.app import Gateway
from cutline.proxy.signing import Signer
from providers import Asked, Provider

KEY, SECRET, SESSION = "AKIAMADEUP", "made-up-secret", "made-up-session"
THEIRS = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_SESSION_TOKEN": SESSION}
TOKEN = "a-token-of-the-test"


@pytest.mark.parametrize(
    ("wanted", "environment", "meant"),
    (
        (None, {}, ("anthropic", "https://api.anthropic.com", "ANTHROPIC_BASE_URL", "")),
        (None, {"ANTHROPIC_BASE_URL": "http://gw/a"}, ("anthropic", "http://gw/a", "ANTHROPIC_BASE_URL", "")),
        (None, {"OPENAI_BASE_URL": "http://gw/v1"}, ("openai", "http://gw/v1", "OPENAI_BASE_URL", "")),
        (None, {"GOOGLE_GEMINI_BASE_URL": "http://gw"}, ("gemini", "http://gw", "GOOGLE_GEMINI_BASE_URL", "")),
        (None, {"AZURE_OPENAI_ENDPOINT": "https://r.x"}, ("azure", "https://r.x", "AZURE_OPENAI_ENDPOINT", "")),
        ("openai", {}, ("openai", "https://api.openai.com/v1", "OPENAI_BASE_URL", "")),
        ("openai", {"OPENAI_API_BASE": "http://old/v1"}, ("openai", "http://old/v1", "OPENAI_BASE_URL", "")),
        ("openrouter", {}, ("openrouter", "https://openrouter.ai/api/v1", "OPENAI_BASE_URL", "")),
        ("vllm", {}, ("vllm", "http://127.0.0.1:8000/v1", "OPENAI_BASE_URL", "")),
        ("ollama", {}, ("ollama", "http://127.0.0.1:11434", "OPENAI_BASE_URL", "/v1")),
        ("ollama", {"OLLAMA_HOST": "box:1"}, ("ollama", "http://box:1", "OPENAI_BASE_URL", "/v1")),
        ("https://r.openai.azure.com", {}, ("azure", "https://r.openai.azure.com", "AZURE_OPENAI_ENDPOINT", "")),
        ("http://127.0.0.1:9/x", {}, ("", "http://127.0.0.1:9/x", "", "")),
        ("https://evil-openai.com", {}, ("", "https://evil-openai.com", "", "")),
    ),
)
def test_which_provider_is_meant(wanted: str | None, environment: dict[str, str], meant: tuple[str, ...]):
    found = upstreams.choose(wanted, environment)
    assert (found.name, found.base, found.variable, found.behind) == meant and not found.signed


@pytest.mark.parametrize(
    ("wanted", "environment", "base"),
    (
        ("bedrock", {"AWS_REGION": "eu-central-1"}, "https://bedrock-runtime.eu-central-1.amazonaws.com"),
        ("bedrock", {"AWS_DEFAULT_REGION": "us-east-1"}, "https://bedrock-runtime.us-east-1.amazonaws.com"),
        ("bedrock", {"AWS_ENDPOINT_URL_BEDROCK_RUNTIME": "http://x"}, "http://x"),
        (
            "https://bedrock-runtime-fips.us-east-1.amazonaws.com",
            {},
            "https://bedrock-runtime-fips.us-east-1.amazonaws.com",
        ),
        (
            "https://vpce-1.bedrock-runtime.us-east-1.vpce.amazonaws.com",
            {},
            "https://vpce-1.bedrock-runtime.us-east-1.vpce.amazonaws.com",
        ),
    ),
)
def test_bedrock_is_signed(wanted: str, environment: dict[str, str], base: str):
    found = upstreams.choose(wanted, environment)
    assert (found.name, found.base, found.signed) == ("bedrock", base, True)


@pytest.mark.parametrize(
    ("wanted", "words"),
    (("nobody", "neither an address"), ("azure", "set AZURE_OPENAI_ENDPOINT"), ("bedrock", "set AWS_REGION")),
)
def test_what_is_nobody_s_is_refused_in_one_line(wanted: str, words: str):
    with pytest.raises(InputError, match=words) as found:
        upstreams.choose(wanted, {})
    assert "\n" not in str(found.value)


# ------------------------------------------------------------------------------------------- the command as it is run


@contextmanager
def command(tmp_path: Path, *options: str, **environment: str) -> Iterator[tuple[str, str, list[Any]]]:
    """`cutline proxy`, running: its address, what it said, and its report in a list when it has ended."""
    own = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data"), **environment}
    running = subprocess.Popen(
        [sys.executable, "-m", "cutline", "proxy", "--json", *options],
        env=own,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stdout and running.stderr
    report: list[Any] = []
    with running:
        try:
            address, said = running.stdout.readline().strip(), running.stderr.readline().strip()
            yield address, said, report
        finally:
            running.send_signal(signal.SIGINT)
            try:
                _, rest = running.communicate(timeout=20)
            except subprocess.TimeoutExpired:
                running.kill()
                raise
    assert running.returncode == 0, rest
    report.append(json.loads(rest))


def post(address: str, target: str, body: bytes, headers: Mapping[str, str] = {}) -> bytes:
    told = urllib.request.Request(address + target, body, {"Content-Type": "application/json", **headers})
    with urllib.request.urlopen(told, timeout=20) as got:
        data: bytes = got.read()
        return data


@pytest.mark.parametrize(
    ("name", "variable", "way", "target"),
    (
        ("openai", "OPENAI_BASE_URL", "openai_responses", "/v1/responses"),
        ("azure", "AZURE_OPENAI_ENDPOINT", "openai_chat", providers.WHOLE["openai_chat"]),
        ("gemini", "GOOGLE_GEMINI_BASE_URL", "gemini", providers.WAYS["gemini"]),
        ("ollama", "OLLAMA_HOST", "openai_chat", "/v1/chat/completions"),
        ("vllm", "VLLM_BASE_URL", "openai_chat", "/chat/completions"),
        ("openrouter", "OPENROUTER_BASE_URL", "openai_chat", "/chat/completions"),
    ),
)
def test_the_command_serves_each_provider_by_the_client_s_own_environment(
    name: str, variable: str, way: str, target: str, tmp_path: Path
):
    body = providers.growing(way)[-1]
    with Provider() as provider:
        with command(tmp_path, "--upstream", name, **{variable: provider.url}) as (address, said, report):
            post(address, target, body, {"api-key": "made-up", "x-session-id": "s"})
            post(address, "/api/chat", b"{}")
        assert provider.asked[0].body == cut(body).body and provider.asked[0].target == target
        assert provider.asked[0].headers["api-key"] == "made-up"
    assert f"requests go to {provider.url}" in said and said.startswith("cutline: set ")
    (told,) = report
    (session,) = told["sessions"]
    assert (session["session"], session["turns"], session["input_tokens"]) == ("s", 1, 1_000)
    assert len(session["checkpoints"]) == 1 and "Ollama" in told["notes"][0] and not told["faults"]


def test_bedrock_without_credentials_does_not_begin(tmp_path: Path):
    own = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "AWS_EC2_METADATA_DISABLED": "true", "AWS_REGION": "x"}
    done = subprocess.run(
        [sys.executable, "-m", "cutline", "proxy", "--upstream", "bedrock", "--no-record"],
        env=own,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 2 and done.stderr.startswith("cutline: no AWS credentials were found; ")


# ---------------------------------------------------------------------------------------------------- signatures


def signature_fault(asked: Asked, secret: str = SECRET) -> str:
    """Why AWS would refuse a signature ("" where it would not), by the documentation of Signature Version 4."""
    given = re.match(
        r"AWS4-HMAC-SHA256 Credential=(\w+)/(\d{8})/([\w-]+)/(\w+)/aws4_request, "
        r"SignedHeaders=([\w;-]+), Signature=(\w{64})\Z",
        asked.headers.get("authorization", ""),
    )
    if given is None:
        return "no signature"
    _, day, region, service, names, signature = given.groups()
    path, _, query = asked.target.partition("?")
    listed = sorted(pair.partition("=")[::2] for pair in query.split("&") if pair)
    canonical = [asked.method, urllib.parse.quote(path, safe="/~"), "&".join(f"{key}={value}" for key, value in listed)]
    canonical += [f"{name}:{' '.join(asked.headers[name].split())}" for name in names.split(";")]
    canonical += ["", names, hashlib.sha256(asked.raw).hexdigest()]
    scope = f"{day}/{region}/{service}/aws4_request"
    digest = hashlib.sha256("\n".join(canonical).encode()).hexdigest()
    key = ("AWS4" + secret).encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    text = "\n".join(["AWS4-HMAC-SHA256", asked.headers["x-amz-date"], scope, digest])
    wanted = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    return "" if hmac.compare_digest(wanted, signature) else "another signature"


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Any:
    """AWS's own client for an address, with credentials that are made up."""
    session = pytest.importorskip("botocore.session", reason="botocore is not installed")
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in {**THEIRS, "AWS_EC2_METADATA_DISABLED": "true"}.items():
        monkeypatch.setenv(name, value)

    def client(address: str) -> Any:
        return session.Session().create_client("bedrock-runtime", region_name="eu-central-1", endpoint_url=address)

    return client


def conversed(client: Any) -> Any:
    """A conversation with a checkpoint, asked by AWS's own client; the answer's text and usage."""
    held = json.loads(providers.growing("converse")[-1])
    got = client.converse(modelId="amazon.nova-pro-v1:0", **held)
    return got["output"]["message"]["content"][0]["text"], got["usage"]["inputTokens"]


def test_the_check_of_signatures_is_that_of_aws_s_own_client(aws: Any):
    with Provider() as provider:
        assert conversed(aws(provider.url + "/with%20a/prefix"))[1] == 1_000
    (asked,) = provider.asked
    assert signature_fault(asked) == "" and signature_fault(asked, "another") == "another signature"


def test_a_cut_request_is_signed_anew_with_the_user_s_credentials(aws: Any):
    with Provider() as provider:
        gateway = Gateway(provider.url, TOKEN, signer=Signer())
        try:
            address = gateway.start()
            text, tokens = conversed(aws(address))
            assert (text, tokens) == ("I look: å, 𝄞.", 1_000)
            told = aws(address).converse_stream(
                modelId="amazon.nova-pro-v1:0", **json.loads(providers.growing("converse")[-1])
            )
            stop = [event["messageStop"]["stopReason"] for event in told["stream"] if "messageStop" in event]
            assert stop == ["tool_use"]
        finally:
            gateway.stop()
    for asked in provider.asked:
        assert signature_fault(asked) == "", asked.headers
        assert (
            asked.headers["x-amz-security-token"] == SESSION
            and "eu-central-1/bedrock/" in asked.headers["authorization"]
        )
        assert TOKEN not in repr(asked.headers)
        assert len(asked.body) < len(providers.growing("converse")[-1]) / 2


@pytest.mark.parametrize("path", ("/model/m/apply?x=b&a=1", "/guardrail/g/version/1/apply"))
def test_what_carries_no_history_is_signed_too(aws: Any, path: str):
    with Provider() as provider:
        gateway = Gateway(provider.url, TOKEN, signer=Signer())
        try:
            address = gateway.start()
            theirs = {"Authorization": "AWS4-HMAC-SHA256 Credential=x/20260101/eu-west-1/bedrock/aws4_request, x=y"}
            post(address, path, b'{"a":1}', theirs)
            post(address, "/model/m/converse", providers.growing("converse")[0], {"Authorization": "Bearer made-up"})
        finally:
            gateway.stop()
    one, two = provider.asked
    assert signature_fault(one) == "" and one.raw == b'{"a":1}' and "eu-west-1" in one.headers["authorization"]
    assert two.headers["authorization"] == "Bearer made-up", "a key of Bedrock's own needs no signature"


def test_credentials_that_can_not_be_renewed_are_told_in_one_line(aws: Any, monkeypatch: pytest.MonkeyPatch):
    signer = Signer()

    class Broken:
        def get_frozen_credentials(self) -> None:
            raise RuntimeError("the login\nhas ended")

    monkeypatch.setattr(signer, "_credentials", Broken())
    with Provider() as provider:
        gateway = Gateway(provider.url, TOKEN, signer=signer)
        try:
            client = aws(gateway.start())
            with pytest.raises(Exception, match="cutline: AWS credentials: the login has ended; log in again"):
                conversed(client)
        finally:
            gateway.stop()
    assert not provider.asked


@pytest.mark.parametrize("key", (KEY, "AKIDANOTHER"))
def test_what_a_client_has_signed_for_the_provider_is_cut_where_its_credentials_are_found(
    aws: Any, key: str, monkeypatch: pytest.MonkeyPatch
):
    """It names the provider with each request, as under `cutline run`; else, and uncut, its own signature goes on."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", key)
    theirs, said = Signer(), list[str]()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    first, *_, last = providers.growing("converse")
    scope = ("Authorization", f"AWS4-HMAC-SHA256 Credential={key}/20260101/eu-west-1/bedrock/aws4_request, x=y")
    path = "/model/amazon.nova-pro-v1%3A0/converse"
    with Provider() as provider:
        gateway = Gateway(None, TOKEN, said=said.append)
        try:
            address = f"{gateway.start()}/{provider.url.replace('://', '/')}"
            for body in (first, last):
                own = theirs.sign("POST", provider.url + path, [("Content-Type", "application/json"), scope], body)
                post(address, path, body, dict(own))
        finally:
            gateway.stop()
    assert [signature_fault(one) for one in provider.asked] == ["", ""]
    assert [one.body for one in provider.asked] == [first, cut(last).body if key == KEY else last]
    assert all(f"Credential={key}/" in one.headers["authorization"] for one in provider.asked)
    assert [("are signed by the client" in line) for line in said] == [True] * (key != KEY)
