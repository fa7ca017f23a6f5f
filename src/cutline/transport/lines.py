"""What carries a request where the program named no transport of its own: httpx's, as its client would have made it.

Law: `httpx` and `httpx2` are the same to us, and neither is imported here: the request says which of them it is.
"""

from __future__ import annotations

import asyncio
import socket
import sys
import urllib.request
import weakref
from typing import Any

_SDKS = {"max_connections": 1000, "max_keepalive_connections": 100}
"""Limits as the SDKs set them in place of httpx's own (100 and 20): ours stands where theirs would."""
_PROBE_S, _PROBES = 60, 5


def family(request: Any) -> Any:
    """The module that a request is of, `httpx` or `httpx2`."""
    for kind in type(request).__mro__:
        module = sys.modules.get(kind.__module__.partition(".")[0])
        if hasattr(module, "HTTPTransport"):
            return module
    raise TypeError(f"{type(request).__name__} is no request of httpx or httpx2")


class Lines:
    """httpx's transports, each made when a first request needs it.

    One for each proxy that the environment names, and for each event loop: a connection can't outlive its loop.
    """

    def __init__(self) -> None:
        self._proxies: dict[str, str] | None = None
        self._sync: dict[tuple[str, str], Any] = {}
        self._async: weakref.WeakKeyDictionary[Any, dict[tuple[str, str], Any]] = weakref.WeakKeyDictionary()

    def sync(self, request: Any) -> Any:
        """The transport for a request of a sync client."""
        httpx, proxy = family(request), self._proxy(request.url)
        made = self._sync.get((httpx.__name__, proxy))
        if made is None:
            made = self._sync.setdefault((httpx.__name__, proxy), httpx.HTTPTransport(**_arguments(httpx, proxy)))
        return made

    def asynchronous(self, request: Any) -> Any:
        """The transport for a request of an async client."""
        httpx, proxy = family(request), self._proxy(request.url)
        held = self._async.setdefault(_loop(), {})
        made = held.get((httpx.__name__, proxy))
        if made is None:
            made = held.setdefault((httpx.__name__, proxy), httpx.AsyncHTTPTransport(**_arguments(httpx, proxy)))
        return made

    def close(self) -> None:
        """Close what sync clients used; a later request makes it anew."""
        held, self._sync = self._sync, {}
        for one in held.values():
            one.close()

    async def aclose(self) -> None:
        """Close what async clients of this event loop used; a later request makes it anew."""
        for one in self._async.pop(_loop(), {}).values():
            await one.aclose()

    def _proxy(self, url: Any) -> str:
        """The proxy that the environment names for an address, as httpx's clients take it; "" for none."""
        if self._proxies is None:
            self._proxies = urllib.request.getproxies()
        found = self._proxies.get(url.scheme) or self._proxies.get("all") or ""
        if not found or urllib.request.proxy_bypass(url.host if url.port is None else f"{url.host}:{url.port}"):
            return ""
        return found if "://" in found else f"http://{found}"


class _NoLoop:
    """Stands for the loop where it is none of asyncio's (trio)."""


_ELSEWHERE = _NoLoop()


def _loop() -> Any:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return _ELSEWHERE


def _arguments(httpx: Any, proxy: str) -> dict[str, Any]:
    """As the SDKs make theirs: their limits, and probes that hold a silent connection open."""
    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    for name, value in (("TCP_KEEPIDLE", _PROBE_S), ("TCP_KEEPINTVL", _PROBE_S), ("TCP_KEEPCNT", _PROBES)):
        if hasattr(socket, name):
            options.append((socket.IPPROTO_TCP, getattr(socket, name), value))
    made: dict[str, Any] = {"limits": httpx.Limits(**_SDKS), "socket_options": options}
    return {**made, "proxy": proxy} if proxy else made
