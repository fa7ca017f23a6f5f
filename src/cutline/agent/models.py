"""Which model is asked, and how: Pydantic AI's models on an httpx client whose transport is Cutline's.

Law: the history goes in whole; what is cut, recorded and measured of it is the transport's. An answer comes back as
pieces, and then once, whole, as it will be sent again. Nothing is tried again here: the loop decides that.
"""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from .. import money
from ..errors import InputError
from ..mandate import TOOLS
from .state import Answer, Given, Words

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage

    from ..transport import Transport

HINT = "<system-reminder>The human typed this while you worked:</system-reminder>"
"""Stands before a hint, in a block of its own: the hint's bytes are the human's alone."""

# By the provider's name: its model class, its provider class, the variable of its key, its cut format.
_KINDS: Mapping[str, tuple[str, str, str, str]] = {
    "anthropic": ("AnthropicModel", "AnthropicProvider", "ANTHROPIC_API_KEY", "anthropic"),
    "openai": ("OpenAIResponsesModel", "OpenAIProvider", "OPENAI_API_KEY", "openai"),
    "openai-chat": ("OpenAIChatModel", "OpenAIProvider", "OPENAI_API_KEY", "openai"),
    "google": ("GoogleModel", "GoogleProvider", "GEMINI_API_KEY", "google"),
}
_ALSO = {"gemini": "google", "openai-responses": "openai", "local": "openai-chat"}
_NEEDED = (
    "pydantic_ai",
    "anthropic",
    "openai",
    "google",
    "prompt_toolkit",
    "tree_sitter",
    "tree_sitter_bash",
    "pathspec",
)
_TIMEOUT_S = 600.0  # between two bytes of an answer
_CONNECT_S = 15.0


class Trouble(Exception):
    """A request came to nothing.

    Attributes:
        passing: the same request may succeed later.
        wait: seconds that the provider asked for; None for no word of it.
        full: the request was longer than the model's window.
    """

    def __init__(self, text: str, *, passing: bool = False, wait: float | None = None, full: bool = False) -> None:
        super().__init__(text)
        self.passing, self.wait, self.full = passing, wait, full


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of an answer as it streams: text or thinking."""

    text: str
    thinking: bool = False


@dataclass(frozen=True, slots=True)
class Whole:
    """An answer, complete: as it is kept (`dumped`), and its token counts by `Used`'s names."""

    message: dict[str, Any]
    used: dict[str, Any]


def named(spec: str) -> tuple[str, str]:
    """A model's provider and name out of "provider:name".

    Raises:
        InputError: no provider, no name, or a provider that is not known.
    """
    provider, _, name = spec.partition(":")
    provider = _ALSO.get(provider, provider)
    if provider in _KINDS and name:
        return provider, name
    known = ", ".join([*_KINDS, *_ALSO])
    raise InputError(f"--model {spec!r}: give provider:name, with one of {known} (another server: --base-url)")


def installed() -> None:
    """See that the libraries are there.

    Raises:
        InputError: they are not.
    """
    from importlib.util import find_spec

    if any(find_spec(name) is None for name in _NEEDED):
        raise InputError("the agent needs its libraries: pip install 'cutline[agent]'")


class Model:
    """One model at one address.

    Args:
        spec: "provider:name".
        base_url: another place of that provider's API, such as a local server's; "" for its own.
        transport: Cutline's, under all requests.
        environment: where the key stands.

    Raises:
        InputError: the name is wrong, or its key is missing.
    """

    def __init__(
        self, spec: str, base_url: str, transport: Transport, environment: Mapping[str, str] = os.environ
    ) -> None:
        self.spec = spec
        self.provider, self.name = named(spec)
        self._variable = _KINDS[self.provider][2]
        key = environment.get(self._variable, "")
        if self.provider == "google":
            key = key or environment.get("GOOGLE_API_KEY", "")
        if not key and not base_url:
            raise InputError(f"no key for {spec}: set {self._variable}, or name a server with --base-url")
        installed()
        self._key, self._base_url, self._transport = key or "none", base_url, transport
        self._loading = threading.Lock()
        self._client: Any = None
        self._model: Any = None
        self._mapped: list[ModelMessage] = []
        self._rewritten = -1
        self._rates: dict[int, money.Rates | None] = {}

    def load(self) -> None:
        """Import the provider's library and open the client; `stream` does it too. Takes a second or two."""
        with self._loading:
            if self._model is None:
                self._model = self._opened()

    def _opened(self) -> Any:
        import importlib

        import httpx2

        kind, provider, _, module = _KINDS[self.provider]
        models = importlib.import_module(f"pydantic_ai.models.{module}")
        providers = importlib.import_module(f"pydantic_ai.providers.{module}")
        timeout = httpx2.Timeout(_TIMEOUT_S, connect=_CONNECT_S)
        self._client = httpx2.AsyncClient(transport=self._transport, timeout=timeout)
        where: dict[str, Any] = {"base_url": self._base_url} if self._base_url else {}
        made = getattr(providers, provider)(api_key=self._key, http_client=self._client, **where)
        return getattr(models, kind)(self.name, provider=made)

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()

    # ------------------------------------------------------------------------------------------------ asking

    async def stream(
        self,
        history: Sequence[Given | Answer],
        rewritten: int,
        instructions: str,
        tools: Sequence[Mapping[str, Any]],
    ) -> AsyncIterator[Piece | Whole]:
        """Ask the model: pieces as they come, then the whole answer.

        Args:
            history: whole; it ends with what is given.
            rewritten: another number where earlier parts of the history changed.
            instructions: the system prompt.
            tools: name, description and schema of each.

        Raises:
            Trouble: it came to nothing.
        """
        from pydantic_ai import exceptions as wrong
        from pydantic_ai.direct import model_request_stream
        from pydantic_ai.models import ModelRequestParameters
        from pydantic_ai.tools import ToolDefinition

        self.load()
        if rewritten != self._rewritten:
            self._mapped, self._rewritten = [], rewritten
        for one in history[len(self._mapped) :]:
            self._mapped.append(self._message(one, instructions))
        declared = [
            ToolDefinition(
                name=tool["name"],
                description=tool["description"],
                parameters_json_schema=dict(tool["schema"]),
                strict=False,
            )
            for tool in tools
        ]
        try:
            asked = model_request_stream(
                self._model,
                [one for one in self._mapped if one.parts],
                model_settings=self._settings(),
                model_request_parameters=ModelRequestParameters(function_tools=declared),
            )
            async with asked as stream:
                async for event in stream:
                    piece = _piece(event)
                    if piece is not None:
                        yield piece
                answer = stream.get()
        except wrong.ModelAPIError as error:
            raise _trouble(error, wrong) from error
        except wrong.AgentRunError as error:  # an answer that the library can't read
            raise Trouble(f"the answer could not be read: {_line(error)}", passing=True) from error
        if not _ended(answer):
            raise Trouble("the answer broke off", passing=True)
        yield Whole(dumped(answer), self._used(answer.usage))

    def _settings(self) -> Any:
        settings: dict[str, Any] = {"max_retries": 0}
        if self.provider == "anthropic":
            return settings | {"anthropic_cache": True, "anthropic_cache_instructions": True}
        if self.provider == "google":
            return {}
        return settings | ({"openai_store": False} if self.provider == "openai" else {})

    # ------------------------------------------------------------------------------------------------ mapping

    def _message(self, one: Given | Answer, instructions: str) -> ModelMessage:
        from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelRequest, ToolReturnPart, UserPromptPart

        if isinstance(one, Answer):
            found: list[ModelMessage] = ModelMessagesTypeAdapter.validate_python([dict(one.message)])
            return found[0]
        parts: list[Any] = []
        for number, result in enumerate(one.results):
            text = result.text
            if one.reminder and number == len(one.results) - 1:
                text = f"{text}\n\n{one.reminder}"
            # The other formats have no flag for it, and the library's wrapping would hide a refused checkpoint.
            failed = result.is_error and self.provider in ("anthropic", "google")
            outcome: Any = "failed" if failed else "success"
            parts.append(ToolReturnPart(result.name, text, tool_call_id=result.call, outcome=outcome))
        parts += [UserPromptPart(_spoken(words)) for words in one.words]
        if one.reminder and not one.results:
            parts.append(UserPromptPart(_spoken(Words(one.reminder, "harness"))))
        return ModelRequest(parts=parts, instructions=instructions)

    # ------------------------------------------------------------------------------------------------ figures

    @property
    def window(self) -> int:
        """Tokens that the model can take; 0 where that is not known."""
        return window(self.name)

    def rates(self, prompt: int = 0) -> money.Rates | None:
        """What the model costs; None where no price is known, as for a local server's."""
        tier = prompt // 50_000
        if tier not in self._rates:
            self._rates[tier] = money.rates(self.name, prompt=prompt)
        return self._rates[tier]

    def _used(self, usage: Any) -> dict[str, Any]:
        read, written = usage.cache_read_tokens or 0, usage.cache_write_tokens or 0
        plain, output = max(0, (usage.input_tokens or 0) - read - written), usage.output_tokens or 0
        rates = self.rates(plain + read + written)
        usd = None if rates is None else money.cost(money.Usage(plain, read, written, 0, output), rates)
        return {"input": plain, "cache_read": read, "cache_write": written, "output": output, "usd": usd}


@cache
def window(name: str) -> int:
    """Tokens that a model can take, by its name; 0 where that is not known."""
    from genai_prices import data_snapshot

    try:
        _, found = data_snapshot.get_snapshot().find_provider_model(name, None, None, None)
    except LookupError:
        return 0
    return found.context_window or 0


def dumped(answer: Any) -> dict[str, Any]:
    """An answer as JSON values, from which the same request is made again."""
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    (found,) = ModelMessagesTypeAdapter.dump_python([answer], mode="json")
    assert isinstance(found, dict)
    return found


def partial(text: str) -> dict[str, Any]:
    """An answer that the human stopped, as far as its text was shown."""
    from pydantic_ai.messages import ModelResponse, TextPart

    return dumped(ModelResponse(parts=[TextPart(text)]))


def own_tools() -> tuple[dict[str, Any], ...]:
    """The declarations of micro_handoff, recall and say, as `stream` takes them."""
    return tuple(
        {"name": tool["name"], "description": tool["description"], "schema": tool["inputSchema"]} for tool in TOOLS
    )


def _spoken(words: Words) -> Any:
    if words.by == "hint":
        return [HINT, words.text]
    return f"<system-reminder>{words.text}</system-reminder>" if words.by == "harness" else words.text


def _piece(event: Any) -> Piece | None:
    kind = getattr(event, "event_kind", "")
    held = event.part if kind == "part_start" else event.delta if kind == "part_delta" else None
    what = getattr(held, "part_kind", getattr(held, "part_delta_kind", ""))
    text = getattr(held, "content", None) or getattr(held, "content_delta", None)
    return Piece(text, what == "thinking") if what in ("text", "thinking") and isinstance(text, str) else None


def _ended(answer: Any) -> bool:
    """Whether the provider said why its answer ended: a stream that only ends was cut short."""
    if answer.finish_reason in (None, "content_filter"):
        return answer.finish_reason is not None
    # For Chat Completions the library fills in a reason where none came; the provider's own stands in the details.
    return answer.provider_name != "openai" or bool((answer.provider_details or {}).get("finish_reason"))


def _trouble(error: Any, wrong: Any) -> Trouble:
    passing = (
        wrong.ModelRateLimitError,
        wrong.ModelUnavailableError,
        wrong.ModelServerError,
        wrong.ModelConnectionError,
    )
    if isinstance(error, wrong.ModelContextWindowExceededError):
        do = "fork at an earlier event, or go on with a model of a larger window"
        return Trouble(f"the request is longer than the model's window ({_line(error)}); {do}", full=True)
    if isinstance(error, passing):
        return Trouble(_line(error), passing=True, wait=error.retry_after)
    return Trouble(_line(error))


def _line(error: Exception) -> str:
    """What a provider said, in one line."""
    body = getattr(error, "body", None)
    held = body.get("error", body) if isinstance(body, dict) else None
    said = held.get("message") if isinstance(held, dict) else None
    status = getattr(error, "status_code", None)
    text = " ".join(str(said or error).split())[:300]
    return f"{status}: {text}" if status and said else text


__all__ = ["HINT", "Model", "Piece", "Trouble", "Whole", "dumped", "named", "own_tools", "partial", "window"]
