"""A real browser for the page's tests: Debian's Chromium without a window, driven over its own debugging protocol."""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

STARTS_S, WAITS_S = 30, 30
_NAMES = ("chromium", "chromium-browser", "google-chrome")
_QUIET = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
)


def chromium() -> str:
    """The browser's path; where there is none, the test skips."""
    found = next((path for name in _NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no Chromium on PATH; Debian's package is called chromium")
    return found


class Page:
    """One page of the browser."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._last = 0
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self.events: list[dict[str, Any]] = []

    async def listen(self) -> None:
        async for message in self._socket:
            told = json.loads(message.data)
            if "id" in told:
                self._waiting.pop(told["id"]).set_result(told)
            else:
                self.events.append(told)

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._last += 1
        number, done = self._last, asyncio.get_running_loop().create_future()
        self._waiting[number] = done
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        told = await asyncio.wait_for(done, WAITS_S)
        assert "error" not in told, f"{method}: {told.get('error')}"
        return told["result"]

    async def js(self, script: str) -> Any:
        """The value of an expression; what it promises is waited for."""
        held = {"awaitPromise": True, "returnByValue": True, "allowUnsafeEvalBlockedByCSP": False}
        found = await self.call("Runtime.evaluate", expression=script, **held)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    async def until(self, script: str) -> Any:
        """Wait until an expression is true."""
        for _ in range(WAITS_S * 50):
            found = await self.js(script)
            if found:
                return found
            await asyncio.sleep(0.02)
        raise AssertionError(f"never true: {script}; the page says: {await self.js('document.body.innerText')}")

    async def open(self, address: str, width: int = 1600, height: int = 1000, *, dark: bool = False) -> None:
        await self.look(width, height, dark=dark)
        await self.call("Page.navigate", url=address)
        await self.until("document.readyState === 'complete'")

    async def look(self, width: int, height: int, *, dark: bool = False) -> None:
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.call("Emulation.setEmulatedMedia", features=[scheme])

    async def key(self, name: str) -> None:
        codes = {"Enter": 13, "Escape": 27, "PageUp": 33, "PageDown": 34, "End": 35, "Home": 36}
        codes |= {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Tab": 9}
        text = {"text": "\r"} if name == "Enter" else {}
        for type_ in ("keyDown", "keyUp"):
            await self.call(
                "Input.dispatchKeyEvent", type=type_, key=name, code=name, windowsVirtualKeyCode=codes[name], **text
            )

    async def mouse(self, type_: str, x: float, y: float) -> None:
        await self.call("Input.dispatchMouseEvent", type=type_, x=x, y=y, button="left", buttons=1, clickCount=1)

    async def shot(self, path: Path, *, whole: bool = True) -> None:
        found = await self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(found["data"]))

    def said(self) -> list[str]:
        """What the browser complained of: exceptions, refused loads, errors on its console."""
        found = []
        for event in self.events:
            held = event.get("params", {})
            if event["method"] == "Runtime.exceptionThrown":
                found.append(str(held["exceptionDetails"].get("exception", held["exceptionDetails"])))
            elif event["method"] == "Log.entryAdded" and held["entry"]["level"] == "error":
                found.append(held["entry"]["text"])
        return found

    def asked(self) -> list[str]:
        """Every address that was asked for."""
        return [
            event["params"]["request"]["url"] for event in self.events if event["method"] == "Network.requestWillBeSent"
        ]


@asynccontextmanager
async def browser(folder: Path) -> AsyncIterator[Page]:
    """A browser with an empty profile, and its one page."""
    profile = folder / "profile"
    command = [chromium(), *_QUIET, f"--user-data-dir={profile}", "about:blank"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        told = profile / "DevToolsActivePort"
        for _ in range(STARTS_S * 50):
            if told.exists() and told.read_text().count("\n"):
                break
            assert process.poll() is None, "the browser ended at once"
            await asyncio.sleep(0.02)
        port = told.read_text().splitlines()[0]
        async with aiohttp.ClientSession() as client:
            async with client.get(f"http://127.0.0.1:{port}/json/list") as answer:
                (target,) = [one for one in await answer.json(content_type=None) if one["type"] == "page"]
            async with client.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                page = Page(socket)
                listening = asyncio.create_task(page.listen())
                for domain in ("Page", "Runtime", "Log", "Network"):
                    await page.call(f"{domain}.enable")
                yield page
                listening.cancel()
    finally:
        process.terminate()
        process.wait(timeout=20)
