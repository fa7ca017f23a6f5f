"""Answers that providers really gave, of every format, from the recordings in ../shared/data."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from wire_bodies import ENDPOINTS, SESSIONS


@dataclass(frozen=True, slots=True)
class Recorded:
    """One answer.

    Attributes:
        name: the recording's file and the exchange's number in it.
        format: of the request.
        content_type: the answer's.
        status: its status.
        body: its bytes, without content encoding.
    """

    name: str
    format: str
    content_type: str
    status: int
    body: bytes


def recorded() -> Iterator[Recorded]:
    """Every recorded answer to a request with a history; nothing where ../shared is absent."""
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
            status = status["code"] if isinstance(status, dict) else status
            headers = {name.lower(): value for name, value in response["headers"].items()}
            kind = headers.get("content-type", "")
            body = _bytes(response.get("parsed_body") or response.get("body"))
            if "gzip" in str(headers.get("content-encoding")) and body[:2] == b"\x1f\x8b":
                body = gzip.decompress(body)
            if format and body and not address.endswith("/compact"):
                code = int(str(status).split()[0])
                yield Recorded(f"{path.stem} {number}", format, kind[0] if isinstance(kind, list) else kind, code, body)


def _bytes(held: Any) -> bytes:
    if isinstance(held, dict) and "string" in held:
        held = held["string"]
    if isinstance(held, bytes):
        return held
    return held.encode() if isinstance(held, str) else json.dumps(held).encode() if held else b""
