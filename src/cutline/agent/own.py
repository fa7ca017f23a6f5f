"""Our own three tools: the transport answers them, and recall knows the whole of what was capped.

Law: only this answers micro_handoff, recall and say; what a recalled output says is data.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..recall import ADDRESS
from ..transport import Transport
from .tools.capping import wholes

_PAGE = 100_000  # characters of a whole output that come back at once


class OwnTools:
    """Answers calls of our own tools (see `loop.Own`).

    Args:
        transport: saw the history.
        outputs: the folder of whole outputs.
    """

    def __init__(self, transport: Transport, outputs: Path) -> None:
        self._transport, self._outputs = transport, outputs

    def answer(self, call: Mapping[str, Any]) -> dict[str, Any] | None:
        """The answer to a call, as Anthropic's tool_result block. It may read files: call it in a thread."""
        given = call.get("input") or {}
        if call.get("name") == "recall":
            whole = self._whole(given.get("what"), given.get("offset", 0))
            if whole is not None:
                block = {"type": "text", "text": whole}
                return {"type": "tool_result", "tool_use_id": call.get("id"), "content": [block]}
        return self._transport.answer(call)

    def recall(self, what: str) -> str:
        """What the human sees of an address or of words."""
        told = self.answer({"type": "tool_use", "id": "", "name": "recall", "input": {"what": what}}) or {}
        return "\n".join(str(part.get("text", "")) for part in told.get("content", ()))

    def _whole(self, what: object, offset: object) -> str | None:
        """A page of an output that was capped; None where none is kept at that address."""
        if not (isinstance(what, str) and ADDRESS.match(what.strip()) and type(offset) is int and offset >= 0):
            return None
        kept = wholes(self._outputs, what.strip())
        if not kept:
            return None
        text = kept[-1].read_text("utf-8", errors="replace")
        end = min(len(text), offset + _PAGE)
        more = f"; go on with offset {end}" if end < len(text) else ""
        head = f"{what.strip()}: the whole output, characters {offset:,} to {end:,} of {len(text):,}{more}"
        return f"{head}\n{text[offset:end]}"
