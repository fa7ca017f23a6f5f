"""Request bodies that a provider was really sent and answered, of every format, from the recordings in ../shared/data.

A body that came as text keeps its bytes; one that a recording holds as a value is written out again. Only answered
requests count: a refused one proves nothing about what is taken.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

SESSIONS = Path(__file__).resolve().parents[2] / "shared" / "data" / "sessions"
MISSING = "the recorded requests are not on this machine: there is no ../shared/data"

FORMATS = ("anthropic", "openai_chat", "openai_responses", "gemini", "converse")


@dataclass(frozen=True, slots=True)
class Recorded:
    """One answered request.

    Attributes:
        name: the recording's file and the request's number in it.
        format: one of FORMATS.
        body: the request body.
        model: as the body or, where that is silent, the address says.
    """

    name: str
    format: str
    body: bytes
    model: str


def recorded() -> list[tuple[str, str, bytes]]:
    """(name, format, body) of every answered request; empty where ../shared is absent."""
    return [(one.name, one.format, one.body) for one in requests()]


@cache
def requests() -> tuple[Recorded, ...]:
    """Every answered request with its model; empty where ../shared is absent."""
    if not SESSIONS.is_dir():
        return ()
    return (*_tapes(), *_logged_by_litellm(), *_logged_by_openhands(), *_logged_by_inspect())


# The end of an address without its query, and the format of what is sent there.
ENDPOINTS = (
    (r"/chat/completions$", "openai_chat"),
    (r"/v1/messages$|/model/[^/]*anthropic\.[^/]*/invoke(-with-response-stream)?$", "anthropic"),
    (r"/responses(/compact)?$", "openai_responses"),
    (r"/models/[^/]+:(streamG|g)enerateContent$", "gemini"),
    (r"/model/[^/]+/converse(-stream)?$", "converse"),
)


def _tapes() -> Iterator[Recorded]:
    """The tapes of SDKs' test suites: YAML, in the dialects of three recorders."""
    yaml = pytest.importorskip("yaml", reason="the recordings are YAML, and pyyaml is not installed")

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        """The safe one, which also takes how one recorder marks bytes."""

    Loader.add_constructor("!binary", yaml.SafeLoader.construct_yaml_binary)
    for path in sorted((SESSIONS / "wire").glob("*.y*ml")):
        tape = yaml.load(path.read_text("utf-8"), Loader)
        for number, exchange in enumerate(tape.get("interactions") or tape.get("http_interactions") or []):
            if "request" not in exchange:
                continue  # a recording of another protocol
            request, response = exchange["request"], exchange["response"]
            address = str(request.get("uri") or request.get("url")).partition("?")[0]
            format = next((format for end, format in ENDPOINTS if re.search(end, address)), None)
            status = response.get("status") or response.get("code")
            if isinstance(status, dict):
                status = status["code"]
            sent = request.get("parsed_body") or request.get("body")
            if isinstance(sent, dict) and "string" in sent:
                sent = sent["string"]
            if format and sent and str(status).startswith("200"):
                yield _made(f"{path.stem} {number}", format, sent, address)


def _logged_by_litellm() -> Iterator[Recorded]:
    """A log of an agent's calls, each request with its answer on the next line."""
    for path in sorted((SESSIONS / "wire").glob("swe-agent-pr_*.jsonl")):
        lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        for number, (line, answer) in enumerate(pairwise(lines)):
            if line["type"] == "request" and answer["type"] == "response":
                yield _made(f"{path.stem} {number}", "openai_chat", _without_the_caller(line["request_params"]))


def _logged_by_openhands() -> Iterator[Recorded]:
    """What OpenHands keeps of each call: the messages as they were sent, the rest beside them."""
    found = sorted((SESSIONS / "openhands").glob("llm_completions_*/*.json"))
    found += sorted((SESSIONS / "openhands").glob("*last-request*.json"))
    found += sorted((SESSIONS / "wire").glob("openhands-sdk_*.json"))
    for path in found:
        log = json.loads(path.read_text("utf-8"))
        tools = log.get("tools") or log["kwargs"].get("tools")
        sent = {"model": log["response"]["model"], "messages": log["messages"]}
        yield _made(path.stem, "openai_chat", sent | ({"tools": tools} if tools else {}))


def _logged_by_inspect() -> Iterator[Recorded]:
    """Inspect's logs hold each request as it left, by the model's own API."""
    for path in sorted((SESSIONS / "inspect").iterdir()):
        number = -1
        for sample in _samples(path):
            for event in sample.get("events") or ():
                sent = (event.get("call") or {}).get("request")
                if event.get("event") != "model" or not isinstance(sent, dict) or event.get("error"):
                    continue
                number += 1
                format = "anthropic" if event["model"].startswith("anthropic/") else "openai_chat"
                sent = _filled(_without_the_caller(sent), sample.get("attachments") or {})
                yield _made(f"{path.stem} {number}", format, sent)


def _filled(value: Any, attachments: dict[str, str]) -> Any:
    """The value with its long texts back where the log holds pointers to them."""
    if isinstance(value, dict):
        return {name: _filled(member, attachments) for name, member in value.items()}
    if isinstance(value, list):
        return [_filled(member, attachments) for member in value]
    if isinstance(value, str):
        return re.sub(r"attachment://([0-9a-f]{32})", lambda found: attachments[found[1]], value)
    return value


def _samples(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".json":
        found: list[dict[str, Any]] = json.loads(path.read_text("utf-8")).get("samples") or []
        return found
    with zipfile.ZipFile(path) as log:
        return [json.loads(log.read(name)) for name in sorted(log.namelist()) if name.startswith("samples/")]


def _without_the_caller(sent: dict[str, Any]) -> dict[str, Any]:
    """A library's own arguments are no part of what it sends, a key least of all."""
    own = ("api_key", "api_version", "fallbacks", "extra_headers")
    return {name: value for name, value in sent.items() if name not in own}


def _made(name: str, format: str, sent: Any, address: str = "") -> Recorded:
    body = sent.encode() if isinstance(sent, str) else sent
    if not isinstance(body, bytes):
        body = json.dumps(sent, ensure_ascii=False).encode("utf-8", "surrogatepass")
    in_address = re.search(r"/models?/([^/]+?)(:\w+|/[\w-]+)$", address)
    return Recorded(name, format, body, json.loads(body).get("model") or (in_address[1] if in_address else ""))
