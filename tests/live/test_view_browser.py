"""The page in a real browser: nothing recorded runs, nothing is asked of anybody, by keyboard, at both ends of width."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

import view_made
from browser import Page, browser, chromium
from cutline.errors import InputError
from cutline.sessions.clients import open_path
from cutline.view import export, server, timeline
from cutline.view.shelf import Shelf

from . import npm

pytestmark = pytest.mark.slow
AXE = "4.14.1"
READY = "document.querySelector('#figures strong') !== null && document.querySelector('.row') !== null"
NOTED = READY + " && /calls narrated/.test(document.querySelector('#facts').textContent)"
SIZES = ((360, 740), (1600, 1000))
CLIENTS = ("aider", "claude-code", "codex", "copilot-cli", "gemini-cli", "inspect", "mini-swe-agent", "opencode")
CLIENTS += ("openhands", "pi", "specstory", "swe-agent")


@asynccontextmanager
async def served(file: Path, here: Path, *, reads: bool = True) -> AsyncIterator[str]:
    """The server with one session, by its address."""
    shelf = Shelf(open_path(file))
    if reads:
        await asyncio.to_thread(shelf.get, shelf.first)  # as the command does before it prints the address
    runner = web.AppRunner(server.app(shelf, "token", None, here), access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/token/"
    finally:
        await runner.cleanup()


def looking(tmp_path: Path, file: Path, scenario: Callable[[Page, str], Awaitable[Any]], *, reads: bool = True) -> Any:
    """Run a scenario with the server on one session and a browser."""
    chromium()

    async def run() -> Any:
        async with served(file, tmp_path, reads=reads) as address, browser(tmp_path) as page:
            return await scenario(page, address)

    return asyncio.run(run())


@pytest.mark.parametrize("way", ["served", "exported"])
def test_nothing_recorded_runs_or_leaves(tmp_path: Path, way: str):
    file = view_made.hostile(tmp_path / "hostile.jsonl")
    exported = tmp_path / "one.html"
    exported.write_bytes(export.page(open_path(file)))

    async def scenario(page: Page, address: str) -> None:
        await page.open(address if way == "served" else exported.as_uri())
        await page.until(READY)
        blocks = await page.js("view.count")
        assert blocks > 50
        for index in range(0, blocks, 3):
            await page.js(f"openBlock({index})")
        await page.key("Escape")
        await page.js("document.querySelectorAll('details').forEach((one) => (one.open = true))")
        if way == "served":
            for where in ("#/", "#/search/" + "window"):
                await page.js(f"location.hash = {json.dumps(where)}")
                await asyncio.sleep(0.5)
        assert await page.js("window.hit") is None
        assert (
            await page.js("document.querySelectorAll('main img, main svg, main iframe, base, main link').length") == 0
        )
        outside = [url for url in page.asked() if not url.startswith((address, exported.as_uri(), "about:"))]
        assert not outside
        assert not page.said()

    looking(tmp_path, file, scenario)


def test_the_policy_holds_even_against_the_page_itself(tmp_path: Path):
    """What script could do if some of it did get in: nothing."""
    file = view_made.demo(tmp_path / "demo.jsonl")

    async def scenario(page: Page, address: str) -> None:
        await page.open(address)
        await page.until(READY)
        blocked = "(() => { try { %s; return 'ran'; } catch (error) { return error.name; } })()"
        assert await page.js(blocked % "document.body.innerHTML = '<b>x</b>'") == "TypeError"
        assert await page.js(blocked % "eval('1')") == "EvalError"
        assert await page.js("fetch('http://127.0.0.1:9/').then(() => 'sent', (error) => error.name)") == "TypeError"
        assert any("Content Security Policy" in text for text in page.said())

    looking(tmp_path, file, scenario)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing_serious(tmp_path: Path, dark: bool):
    with npm.place("axe-core", AXE) as folder:
        script = folder / "node_modules" / "axe-core" / "axe.min.js"
        if not script.exists():
            npm.install(folder, "axe-core", AXE)
    file = view_made.demo(tmp_path / "demo.jsonl")
    exported = tmp_path / "one.html"
    exported.write_bytes(export.page(open_path(file)))

    async def look(page: Page) -> list[str]:
        await page.js(script.read_text("utf-8") + "; 0")
        found = await page.js("axe.run(document).then((found) => found.violations)")
        assert await page.js("axe.version") == AXE
        return [
            f"{one['id']}: {node['html'][:160]} {node['failureSummary'][:300]}"
            for one in found
            if one["impact"] in ("serious", "critical")
            for node in one["nodes"]
        ]

    async def scenario(page: Page, address: str) -> None:
        for width, height in SIZES:
            await page.open("about:blank")
            await page.open(address, width, height, dark=dark)
            await page.until(NOTED)
            assert await look(page) == [], width
            await page.js("document.querySelectorAll('details').forEach((one) => (one.open = true))")
            await page.js("openBlock(3)")
            assert await look(page) == [], f"{width}, a block open"
            await page.key("Escape")
            await page.js("wanted = () => 0, move(20)")  # held there: the exact answer never comes
            assert await page.js("document.querySelector('#figures').getAttribute('aria-busy')") == "true"
            assert await look(page) == [], f"{width}, the seam held"
            await page.js("location.hash = '#/'")
            await page.until("!document.querySelector('#list').hidden")
            assert await look(page) == [], f"{width}, the list"
            await page.open(exported.as_uri(), width, height, dark=dark)
            await page.until(NOTED)
            await page.js("document.querySelectorAll('details').forEach((one) => (one.open = true))")
            assert await look(page) == [], f"{width}, the exported file"

    looking(tmp_path, file, scenario)


def test_nothing_is_wider_than_the_window(tmp_path: Path):
    file = view_made.hostile(tmp_path / "hostile.jsonl")

    async def scenario(page: Page, address: str) -> None:
        for width, height in SIZES:
            await page.open("about:blank")
            await page.open(address, width, height)
            await page.until(READY)
            assert await page.js("document.documentElement.scrollWidth") == width

    looking(tmp_path, file, scenario)


def test_a_long_session_opens_in_a_second_and_scrolls_without_a_stall(tmp_path: Path):
    file = view_made.long(tmp_path / "long.jsonl", 5_000)

    async def scenario(page: Page, address: str) -> None:
        opened = []
        for _ in range(3):
            await page.open("about:blank")
            start = time.perf_counter()
            await page.call("Page.navigate", url=address)
            await page.until("document.querySelector('.row') !== null && view.count >= 5000")
            opened.append(time.perf_counter() - start)
        await page.until(NOTED)
        assert min(opened) < 1, opened
        assert await page.js("document.querySelectorAll('.row').length") < 60
        watch = """(() => { window.long = []; new PerformanceObserver((list) =>
            long.push(...list.getEntries().map((one) => one.duration))).observe({ type: 'longtask' }); })()"""
        await page.js(watch)
        await page.js(
            "new Promise((done) => setTimeout(() => { const end = performance.now() + 90; while (performance.now() < end); done(); }))"
        )
        await page.until("long.length > 0")  # so it would be seen
        scroll = """new Promise((done) => {
                long.length = 0;
                const box = document.querySelector('#blocks');
                let at = 0;
                const step = () => {
                  box.scrollTop = (box.scrollHeight * ++at) / 120;
                  if (at < 120) requestAnimationFrame(step);
                  else setTimeout(() => done([long, box.scrollTop]), 300);
                };
                requestAnimationFrame(step);
            })"""
        # A task that another process keeps from the processor is long too: once in three goes there must be none.
        stalled = []
        for _ in range(3):
            tasks, scrolled = await page.js(scroll)
            assert scrolled > 100_000
            stalled.append(tasks)
            if not tasks:
                break
        assert not stalled[-1], stalled
        # What a cut would do is told within a frame, wherever the seam is dragged.
        frames = await page.js(
            """new Promise((done) => {
                const took = [];
                const step = () => {
                  const start = performance.now();
                  move(view.last - 1 - 30 * took.length);
                  drawLine($("line"), view);
                  took.push(performance.now() - start);
                  if (took.length < 60) requestAnimationFrame(step);
                  else done(took);
                };
                requestAnimationFrame(step);
            })"""
        )
        assert await page.js("document.querySelector('#figures').getAttribute('aria-busy')") == "true"
        assert sorted(frames)[len(frames) // 2] < 16, frames
        await page.until("document.querySelector('#figures').getAttribute('aria-busy') === 'false'")

    looking(tmp_path, file, scenario)


def test_everything_is_reached_by_keyboard(tmp_path: Path):
    file = view_made.demo(tmp_path / "demo.jsonl")

    async def scenario(page: Page, address: str) -> None:
        await page.open(address)
        await page.until(NOTED)
        focus = "document.activeElement.id"
        seen = []
        for _ in range(60):
            await page.key("Tab")
            seen.append(await page.js(focus))
            if seen[-1] == "blocks":
                break
        assert {"all", "query", "seam", "show", "find", "blocks"} <= set(seen), seen
        for key in ("ArrowDown", "ArrowDown", "PageDown", "End", "Home", "ArrowDown"):
            await page.key(key)
        assert await page.js("document.querySelector('#blocks').getAttribute('aria-activedescendant')") == "row-1"
        await page.key("Enter")
        await page.until(
            "document.querySelector('#one').open && document.querySelector('#one-text').textContent.length > 3"
        )
        assert await page.js("document.querySelector('#one-text').textContent") == await page.js(
            "source.text(view.key, 1)"
        )
        await page.key("Escape")
        assert await page.js("!document.querySelector('#one').open && " + focus + " === 'blocks'")
        # Everything that can be worked is come by, once around.
        await page.js("document.querySelectorAll('details').forEach((one) => (one.open = true))")
        count = "document.querySelectorAll('a[href], button, input, select, summary, [tabindex=\"0\"]').length"
        for _ in range(await page.js(count)):
            await page.key("Tab")
            await page.js("document.activeElement.setAttribute('data-seen', ''), 0")
        missed = await page.js(
            """[...document.querySelectorAll('a[href], button, input, select, summary, [tabindex="0"]')]
            .filter((one) => one.offsetParent && !one.hasAttribute('data-seen')).map((one) => one.outerHTML)"""
        )
        assert missed == []

    looking(tmp_path, file, scenario)


def test_the_seam_is_dragged_and_the_figures_follow(tmp_path: Path):
    file = view_made.demo(tmp_path / "demo.jsonl")

    async def scenario(page: Page, address: str) -> None:
        await page.open(address)
        await page.until(NOTED)
        removed = "view.gone.reduce((sum, one) => sum + one, 0)"
        at_first, first = await page.js(removed), await page.js("view.at")
        box = await page.js(
            "(() => { const box = document.querySelector('#strip').getBoundingClientRect(); "
            "return [box.left, box.top, box.width]; })()"
        )
        seam = await page.js("document.querySelector('#seam').getBoundingClientRect().left + 22")
        await page.mouse("mousePressed", seam, box[1] + 10)
        for share in (0.8, 0.6, 0.4):
            await page.mouse("mouseMoved", box[0] + share * box[2], box[1] + 10)
        at_once = await page.js(removed)
        await page.mouse("mouseReleased", box[0] + 0.4 * box[2], box[1] + 10)
        assert 0 < at_once < at_first and await page.js("view.at") < first
        await page.until("view.found.chosen === String(view.chosen)")
        seam_at, chosen = await page.js("view.found.seam"), await page.js("view.chosen")
        assert seam_at <= chosen
        assert await page.js("[...view.gone].every((gone, index) => !gone || view.message[index] < view.found.seam)")
        # By keyboard, a message at a time and a human turn at a time.
        await page.js("document.querySelector('#seam').focus()")
        await page.key("End")
        await page.until(f"view.found.seam === view.last && {removed} >= {at_first}")
        assert await page.js("document.querySelector('#seam').getAttribute('aria-valuetext')") == "at the end"
        await page.key("Home")
        await page.until("/Nothing to cut here/.test(document.querySelector('#where').textContent)")
        assert await page.js(removed) == 0

    looking(tmp_path, file, scenario)


@pytest.mark.parametrize("which", ["demo", "long"])
def test_what_is_told_at_once_is_nearly_what_the_exact_answer_says(tmp_path: Path, which: str):
    path = tmp_path / "one.jsonl"
    file = view_made.demo(path) if which == "demo" else view_made.long(path, 400)

    async def scenario(page: Page, address: str) -> None:
        await page.open(address)
        await page.until(NOTED + " && view.known !== null")
        for share in (0.4, 0.55, 0.7, 1):
            told = await page.js(f"(move(Math.floor(view.last * {share})), about(view, view.chosen))")
            await page.until("view.found.chosen === String(view.chosen)")
            exact = await page.js("view.found")
            assert told["seam"] == exact["seam"]
            for number in (0, 1):
                assert told["tokens"][number] == pytest.approx(exact["tokens"][number], rel=0.06), (share, number)
            for name in ("calls", "holes", "thinking"):
                assert told["lost"][name] == exact["lost"][name], (share, name)
            for name in ("D", "each", "net"):
                assert told["money"][name] == pytest.approx(exact["money"][name], rel=0.15), (share, name)
            assert told["money"]["pays"] == exact["money"]["pays"]

    looking(tmp_path, file, scenario)


def test_a_history_that_can_not_be_read_is_one_line_on_the_page(tmp_path: Path):
    file = view_made.unreadable(tmp_path / "unread.jsonl")

    async def scenario(page: Page, address: str) -> None:
        await page.open(address)
        await page.until("/can't be read/.test(document.querySelector('#status').textContent)")
        said = await page.js("document.querySelector('#status').textContent")
        assert said.startswith("unread.jsonl: its history can't be read: ") and "\n" not in said
        assert not await page.js("document.querySelector('#status').hidden")
        await page.js("document.querySelector('#all').click()")
        await page.until("!document.querySelector('#list').hidden")

    looking(tmp_path, file, scenario, reads=False)


def test_sessions_of_every_client_are_shown(tmp_path: Path, shared: Path):
    """One that nobody developed on, of each: the smallest beyond a few lines."""
    chromium()
    files = [file for kind in CLIENTS if (file := _recorded(shared, kind))]
    assert len(files) >= 9, files

    async def run() -> None:
        async with browser(tmp_path) as page:
            for file in files:
                async with served(file, tmp_path) as address:
                    await page.open(address)
                    await page.until("document.querySelector('.row') !== null && view.found !== null")
                    for width, height in SIZES:
                        await page.look(width, height, dark=width == 360)
                        await page.js("move(Math.floor(view.last / 2)), openBlock(view.count - 1)")
                        assert await page.js("document.documentElement.scrollWidth") == width, file
                    assert not page.said(), file
                    await page.open("about:blank")  # or it would ask on when nobody answers

    asyncio.run(run())


def _recorded(shared: Path, kind: str) -> Path | None:
    for file in sorted((shared / "data" / "sessions" / kind).iterdir(), key=lambda path: path.stat().st_size):
        if file.is_file() and file.stat().st_size > 20_000:
            with suppress(InputError):
                if len(timeline.read(open_path(file)).entries) > 4:
                    return file
    return None


def test_a_session_that_goes_on_is_followed(tmp_path: Path):
    file = view_made.demo(tmp_path / "demo.jsonl")

    async def scenario(page: Page, address: str) -> None:
        await page.open(address)
        await page.until(NOTED)
        before = await page.js("view.count")
        last = json.loads(file.read_text("utf-8").splitlines()[-1])
        more = last | {
            "parentUuid": last["uuid"],
            "uuid": "ffffffff-0000-4000-8000-000000000000",
            "type": "user",
            "message": {"role": "user", "content": "One thing more, while you are at it."},
        }
        with file.open("a", encoding="utf-8") as handle:
            handle.write(json.dumps(more) + "\n")
        await page.until(f"view.count === {before + 1}")
        assert await page.js("view.preview.at(-1)") == "One thing more, while you are at it."

    looking(tmp_path, file, scenario)


def test_the_command_serves_the_page(tmp_path: Path):
    """The real command, from its printed address."""
    file = view_made.demo(tmp_path / "demo.jsonl")
    command = [sys.executable, "-m", "cutline", "view", str(file), "--no-open"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:")

        async def scenario() -> None:
            chromium()
            async with browser(tmp_path) as page:
                await page.open(address)
                await page.until(NOTED)
                assert "month doesn't close" in await page.js("document.title")
                assert not page.said()

        asyncio.run(scenario())
    finally:
        process.terminate()
        process.communicate(timeout=20)


def test_an_empty_home_has_an_empty_page(tmp_path: Path):
    command = [sys.executable, "-m", "cutline", "view", "--no-open"]
    home = tmp_path / "home"
    home.mkdir()
    world = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"}
    process = subprocess.Popen(command, cwd=home, env=world, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()

        async def scenario() -> None:
            chromium()
            async with browser(tmp_path) as page:
                await page.open(address)
                await page.until("/No session of any client/.test(document.querySelector('#sessions').textContent)")
                await page.js("location.hash = '#/search/anything'")
                await page.until("/Nothing holds all/.test(document.querySelector('#hits').textContent)")
                assert not page.said()

        asyncio.run(scenario())
    finally:
        process.terminate()
        process.communicate(timeout=20)
