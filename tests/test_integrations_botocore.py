"""AWS's own client with the hook: cut before it is signed, so that its signature holds, and nothing else is touched."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

import providers
from cutline import cut
from cutline.integrations.botocore import install
from providers import Provider
from test_proxy_upstreams import THEIRS, signature_fault

NOVA, CLAUDE = "amazon.nova-pro-v1:0", "anthropic.claude-sonnet-4-5-20250929-v1:0"


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Any:
    botocore = pytest.importorskip("botocore.session", reason="botocore is not installed")
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in {**THEIRS, "AWS_EC2_METADATA_DISABLED": "true", "AWS_MAX_ATTEMPTS": "1"}.items():
        monkeypatch.setenv(name, value)
    return botocore.Session()


def client(session: Any, url: str) -> Any:
    return session.create_client("bedrock-runtime", region_name="us-east-1", endpoint_url=url)


def ask(asked: Any, way: str, body: bytes) -> str:
    """One request in a way; the words of the answer, or the stop reason of a streamed one."""
    if way == "converse":
        return asked.converse(modelId=NOVA, **json.loads(body))["output"]["message"]["content"][0]["text"]
    if way == "converse-stream":
        told = asked.converse_stream(modelId=NOVA, **json.loads(body))["stream"]
        (stop,) = (event["messageStop"]["stopReason"] for event in told if "messageStop" in event)
        return str(stop)
    if way == "invoke":
        return json.loads(asked.invoke_model(modelId=CLAUDE, body=body)["body"].read())["content"][0]["text"]
    told = asked.invoke_model_with_response_stream(modelId=CLAUDE, body=body)["body"]
    return "tool_use" if b'"tool_use"' in b"".join(event["chunk"]["bytes"] for event in told) else ""


@pytest.mark.parametrize("way", ("converse", "converse-stream", "invoke", "invoke-stream"))
def test_what_is_sent_is_cut_and_its_signature_holds(way: str, session: Any):
    bodies = providers.growing(way.partition("-")[0])
    with Provider() as provider:
        asked = client(session, provider.url)
        hook = install(asked)
        for body in bodies:
            assert ask(asked, way, body) in ("I look: å, 𝄞.", "tool_use")
        hook.remove()
        ask(asked, way, bodies[-1])
    sent = [json.loads(one.body) for one in provider.asked]
    assert sent == [*(json.loads(cut(body).body) for body in bodies), json.loads(bodies[-1])]
    assert [signature_fault(one) for one in provider.asked] == [""] * len(sent)
    assert (hook.requests, hook.cut, hook.faults) == (len(bodies), sum(cut(body).changed for body in bodies), [])
    assert hook.sent == sum(len(one.body) for one in provider.asked[:-1]) < hook.whole


def test_every_client_that_a_session_makes(session: Any):
    body = providers.growing("converse")[-1]
    with Provider() as provider:
        hook = install(session)
        ask(client(session, provider.url), "converse", body)
    assert hook.cut == 1 and len(provider.asked[0].body) < len(body) / 2


def test_a_cut_that_bedrock_refuses_is_made_no_more(session: Any):
    body = providers.growing("converse")[-1]
    with Provider(refuses=lambda sent: "no" if len(sent) < len(body) / 2 else "") as provider:
        asked = client(session, provider.url)
        hook = install(asked)
        with pytest.raises(Exception, match=r"\bno\b"):
            ask(asked, "converse", body)
        assert ask(asked, "converse", body) == "I look: å, 𝄞."
    assert len(provider.asked) == 2 and json.loads(provider.asked[1].body) == json.loads(body)
    (fault,) = hook.faults
    assert fault.startswith("rule 5: ") and "(no)" in fault


def test_a_fault_of_ours_stops_nothing(session: Any, monkeypatch: pytest.MonkeyPatch):
    body = providers.growing("converse")[-1]

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr("cutline.cutter.Cutter.cut", broken)
    with Provider() as provider:
        asked = client(session, provider.url)
        hook = install(asked)
        assert ask(asked, "converse", body) == "I look: å, 𝄞."
    assert json.loads(provider.asked[0].body) == json.loads(body) and hook.faults == ["ZeroDivisionError: ours"]


def test_other_services_are_left_alone(session: Any):
    with Provider() as provider:
        hook = install(session)
        other = session.create_client("bedrock", region_name="us-east-1", endpoint_url=provider.url)
        other.list_foundation_models()
    assert hook.requests == 0 and provider.asked
