"""Bedrock under botocore and boto3: histories are cut inside the program, before a request is signed.

Law: only a request's body is changed, by a cut that was proven; whatever fails in here, the original goes. botocore is
not imported: its event system is handed in. Nothing of a request is kept but its size.

    import boto3
    from cutline.integrations.botocore import install

    client = boto3.client("bedrock-runtime")
    hook = install(client)
"""

from __future__ import annotations

import threading
from typing import Any

from ..cutter import Cutter
from ..proxy import plan, routes
from ..proxy.plan import Forward
from ..proxy.routes import Route

_BEFORE, _AFTER = "before-call.bedrock-runtime", "after-call.bedrock-runtime"
_CONTEXT = "cutline"


class Hook:
    """What `install` puts into a client or session.

    Attributes:
        requests, cut: requests that carried a history, and how many of them were cut.
        whole, sent: bytes of their histories, and of what was sent of them.
        faults: what failed of ours, and what Bedrock refused of a cut; a line each.
    """

    def __init__(self, events: Any) -> None:
        self.requests = self.cut = self.whole = self.sent = 0
        self.faults: list[str] = []
        self._events = events
        self._cutter = Cutter()
        self._refused: set[str] = set()
        self._lock = threading.Lock()
        events.register(_BEFORE, self._before)
        events.register(_AFTER, self._after)

    def remove(self) -> None:
        """Take it out again: what is asked from now on goes as it is."""
        self._events.unregister(_BEFORE, self._before)
        self._events.unregister(_AFTER, self._after)

    def _before(self, params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        """A request, before it is signed."""
        route = routes.route("POST", str(params.get("url_path", "")))
        body = params.get("body")
        if route is None or not isinstance(body, (bytes, bytearray, str)):
            return
        with self._lock:  # clients are shared between threads, a cutter is not
            sent = self._decide(route, body.encode() if isinstance(body, str) else bytes(body))
            self.requests, self.cut = self.requests + 1, self.cut + sent.changed
            self.whole, self.sent = self.whole + len(sent.whole), self.sent + len(sent.body)
        if sent.fault:
            self._fault(sent.fault)
        if sent.changed:
            params["body"], context[_CONTEXT] = sent.raw, sent.seam

    def _decide(self, route: Route, body: bytes) -> Forward:
        try:
            sent = plan.forward(
                route, {}, body, self._cutter, lambda _, seam: "original" if seam in self._refused else None
            )
            if isinstance(sent, Forward):
                return sent
            fault = sent.message
        except Exception as error:  # a fault of ours must not stop the program: the original goes
            fault = f"{type(error).__name__}: {error}"
        return plan.unharmed(route, {}, body, fault)

    def _after(self, http_response: Any, parsed: Any, context: dict[str, Any], **_: Any) -> None:
        """An answer: where a cut was refused, the original goes from now on at that seam."""
        seam = context.get(_CONTEXT)
        if seam and getattr(http_response, "status_code", 0) == 400:
            self._refused.add(seam)
            said = parsed.get("Error", {}).get("Message", "") if isinstance(parsed, dict) else ""
            self._fault(f"rule 5: the provider refused the cut at {seam} ({said}); ask again: the original goes now")

    def _fault(self, line: str) -> None:
        if line not in self.faults:
            self.faults.append(line)


def install(client: Any) -> Hook:
    """Cut what a client, or every client of a session, sends to Bedrock's runtime.

    Args:
        client: a `bedrock-runtime` client of boto3 or botocore, or a session of either; clients that a session has
            made before are left as they are.
    """
    meta = getattr(client, "meta", None)
    events = getattr(meta, "events", None) or getattr(client, "events", None)
    return Hook(events if events is not None else client)
