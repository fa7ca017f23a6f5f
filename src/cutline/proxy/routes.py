"""Which requests carry a history, of which format: by method and path alone.

Law: a pure table of the providers' own addresses, behind any prefix. What is not in it passes untouched.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal
from urllib.parse import unquote

Kind = Literal["turn", "compaction", "count"]

BEDROCK = "bedrock"
"""The format of Bedrock's InvokeModel: the model's own, which only the body tells."""


@dataclass(frozen=True, slots=True)
class Route:
    """A request that carries a history.

    Attributes:
        format: of its body and its answer (`answers.FORMATS`), or `BEDROCK`.
        kind: a "turn" of a conversation, a "compaction" that the server makes, or a token "count".
        inside: members one in another in which the request itself stands, where they are there.
        model: as the address names it; "" where it names none.
    """

    format: str
    kind: Kind = "turn"
    inside: tuple[str, ...] = ()
    model: str = ""


_MODEL = r"/models/[^/]+:"
_TABLE: tuple[tuple[str, Route], ...] = (
    (r"/v1/messages", Route("anthropic")),
    (r"/v1/messages/count_tokens", Route("anthropic", "count")),
    (r"/publishers/anthropic/models/count-tokens:rawPredict", Route("anthropic", "count")),
    (r"/publishers/anthropic/models/[^/]+:(?:rawPredict|streamRawPredict)", Route("anthropic")),
    (r"/chat/completions", Route("openai_chat")),
    (r"/responses", Route("openai_responses")),
    (r"/responses/compact", Route("openai_responses", "compaction")),
    (r"/responses/input_tokens", Route("openai_responses", "count")),
    # Gemini CLI's login by Google: the request stands in another one.
    (r"/v1internal:(?:generateContent|streamGenerateContent)", Route("gemini", inside=("request",))),
    (r"/v1internal:countTokens", Route("gemini", "count", ("request",))),
    (rf"{_MODEL}(?:generateContent|streamGenerateContent)", Route("gemini")),
    (rf"{_MODEL}countTokens", Route("gemini", "count", ("generateContentRequest",))),
    (r"/model/[^/]+/(?:converse|converse-stream)", Route("converse")),
    (r"/model/[^/]+/(?:invoke|invoke-with-response-stream)", Route(BEDROCK)),
    (r"/model/[^/]+/count-tokens", Route("converse", "count", ("input", "converse"))),
)
PATTERN = "|".join(f"(?:{path})" for path, _ in _TABLE)
"""What the paths of requests that carry a history end with, as one expression that JavaScript reads too."""
_ROUTES = tuple((re.compile(rf"(?:{path})/?\Z"), found) for path, found in _TABLE)
_NAMED = re.compile(r"/models?/([^/:]+)(?::\w+|/[\w-]+)/?\Z")
_OLLAMA = re.compile(r"/api/(?:chat|generate)/?\Z")


def route(method: str, target: str) -> Route | None:
    """The route of a request; None where it carries no history.

    Args:
        method: of the request.
        target: path and query behind the proxy's token.
    """
    if method != "POST":
        return None
    path = target.partition("?")[0]
    found = next((found for pattern, found in _ROUTES if pattern.search(path)), None)
    named = _NAMED.search(path) if found else None
    return replace(found, model=unquote(named[1])) if found and named else found


def spared(method: str, target: str) -> str:
    """Why a request that seems to carry a history is not cut, in one line for people; "" for any other."""
    if method == "POST" and _OLLAMA.search(target.partition("?")[0]):
        return "Ollama's own API (/api/chat) passes untouched and is not cut; point the client at its /v1 instead"
    return ""


def shape(target: str) -> str:
    """The format in which an error is told to whoever asks for a path: its route's, else Anthropic's."""
    found = route("POST", target)
    return "converse" if found and found.format == BEDROCK else found.format if found else "anthropic"
