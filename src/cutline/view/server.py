"""The page's server: loopback, a token in the address, files of this package and JSON, nothing else.

Law: every answer forbids the browser to load, run or send anything from elsewhere; what is recorded leaves as JSON and
is put on the page as text. A request under another host's name is refused (so that no page elsewhere gets at this one
by a name that leads here). Only reading: there is no request that changes anything.
"""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from importlib import resources
from pathlib import Path
from typing import Any

from aiohttp import web

from .. import recall
from ..errors import CutlineError
from ..narration import target
from ..recall import Recalled, RecordedCalls, SessionFiles, Source
from ..record import Record, Said
from ..sessions.model import Session
from . import shelf as shelves
from . import whatif
from .shelf import Shelf

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
FILES = {
    "page.html": "text/html",
    "page.css": "text/css",
    "draw.js": "text/javascript",
    "rows.js": "text/javascript",
    "reckon.js": "text/javascript",
    "page.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}
_HITS, _SHOWN, _LONGEST = 60, 200, 400
Work = Callable[[web.Request], Any]


def file(name: str) -> bytes:
    """A file of the page."""
    return (resources.files(__package__) / "page" / name).read_bytes()


def app(shelf: Shelf, token: str, record: Path | None = None, here: Path | None = None) -> web.Application:
    """The application.

    Args:
        shelf: the sessions.
        token: what the address begins with.
        record: the record's file, searched first; None for none.
        here: the directory whose sessions are searched where there is no record; None for every one's.
    """

    @web.middleware
    async def guard(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        host = (request.host or "").rpartition(":")[0] or request.host
        if host not in ("127.0.0.1", "localhost", "[::1]"):
            return _refused(403, "this address is served to this machine alone")
        given = request.match_info.get("token", "")
        if not hmac.compare_digest(given.encode("utf-8", "replace"), token.encode()):
            return _refused(404, "nothing here; the address that cutline view printed has a token in it")
        try:
            answer = await handler(request)
        except CutlineError as error:
            return _refused(404, str(error))
        except web.HTTPException as error:
            return _refused(error.status, error.reason)
        answer.headers.update(_HEADERS)
        return answer

    def answering(work: Work) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def handler(request: web.Request) -> web.Response:
            found = await asyncio.to_thread(work, request)
            return web.Response(body=json.dumps(found, separators=(",", ":")).encode(), content_type="application/json")

        return handler

    async def static(request: web.Request) -> web.Response:
        name = request.match_info.get("name") or "page.html"
        if name not in FILES:
            raise web.HTTPNotFound
        return web.Response(body=file(name), content_type=FILES[name], charset="utf-8")

    def listed(_: web.Request) -> Any:
        return {"first": shelf.first, "sessions": shelf.list()}

    def session(request: web.Request) -> Any:
        name = request.query.get("key", "")
        stamp = shelf.stamp(name)
        return {"stamp": stamp, **shelf.get(name).as_json()}

    def notes(request: web.Request) -> Any:
        return shelf.get(request.query.get("key", "")).notes()

    def stamp(request: web.Request) -> Any:
        return {"stamp": shelf.stamp(request.query.get("key", ""))}

    def block(request: web.Request) -> Any:
        found = shelf.get(request.query.get("key", ""))
        index = _number(request.query.get("index"), len(found.entries) - 1)
        return {"text": found.text(index)}

    def cut(request: web.Request) -> Any:
        found = shelf.get(request.query.get("key", ""))
        at = request.query.get("at", "")
        return whatif.cut_at(found, _number(at, len(found.firsts)) if at else None)

    def find(request: web.Request) -> Any:
        found = shelf.get(request.query.get("key", ""))
        return {"found": found.find(request.query.get("q", "").split())}

    def search(request: web.Request) -> Any:
        looked = "the record and " if record else "no record is kept here; "
        looked += f"the session files of {here}" if here else "every session file"
        return {"found": _search(request.query.get("q", "").split(), shelf, record, here), "looked": looked}

    made = web.Application(middlewares=[guard])
    api = "/{token}/api/"
    made.router.add_get("/{token}/", static)
    for path, work in (
        ("sessions", listed),
        ("session", session),
        ("notes", notes),
        ("stamp", stamp),
        ("block", block),
        ("cut", cut),
        ("find", find),
        ("search", search),
    ):
        made.router.add_get(api + path, answering(work))
    made.router.add_get("/{token}/{name}", static)
    made.router.add_route("*", "/{rest:.*}", static)
    return made


def serve(made: web.Application, token: str, port: int, told: Callable[[str], None]) -> None:
    """Serve until interrupted; `told` is called with the address once it answers."""

    async def run() -> None:
        runner = web.AppRunner(made, access_log=None)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", port)
            await site.start()
            told(f"http://127.0.0.1:{runner.addresses[0][1]}/{token}/")
            await asyncio.Event().wait()
        finally:
            await runner.cleanup()

    try:
        asyncio.run(run())
    except KeyboardInterrupt:
        pass


def _refused(status: int, text: str) -> web.Response:
    return web.json_response({"error": text}, status=status, headers=_HEADERS)


def _number(given: str | None, most: int) -> int:
    try:
        number = int(given or "")
    except ValueError:
        raise web.HTTPBadRequest(reason="a number is wanted") from None
    if not 0 <= number <= most:
        raise web.HTTPBadRequest(reason=f"a number up to {most} is wanted")
    return number


class _Given:
    """The session that the page was opened with, as a place to look in."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def calls(self, address: str) -> list[Recalled]:
        return [hit for hit in recall.of_session(self._session) if hit.call.address == address][::-1]

    def search(self, words: Sequence[str], limit: int, *, tool: str = "", since: float = 0.0) -> list[Recalled]:
        hits = list(recall.of_session(self._session))[::-1]
        return recall.chosen(hits, words, tool, since)[:limit]

    def said(self, words: Sequence[str], limit: int, *, author: str = "", since: float = 0.0) -> list[Said]:
        return recall.said_in(self._session.history.body, words, author, since, self._session)[:limit]


def _search(words: list[str], shelf: Shelf, record: Path | None, here: Path | None) -> list[dict[str, Any]]:
    """Calls and words that hold all of some words: from the record, the directory's session files and the one given."""
    if not words:
        return []
    files: list[Source] = [SessionFiles(here)]
    if shelf.first:
        files.insert(0, _Given(shelf.get(shelf.first).session))
    with ExitStack() as stack:
        held = [RecordedCalls(stack.enter_context(Record(record)), None)] if record else []
        found = [hit for source in (*held, *files) for hit in _hits(source, words, shelf)]
    # What several of them know stands once, as it was found first.
    return list({(hit["part"], hit["address"], hit["text"]): hit for hit in reversed(found)}.values())[::-1][:_SHOWN]


def _hits(source: Source, words: list[str], shelf: Shelf) -> list[dict[str, Any]]:
    keys = shelves.of_ids(shelf.list())
    found = [
        {
            "key": keys.get(said.session, ""),
            "part": said.author,
            "label": "",
            "text": _about(said.text, words),
            "when": recall.when(said.at or None),
            "project": said.project,
            "address": "",
        }
        for said in source.said(words, _HITS)
    ]
    for hit in recall.by_words([source], words, _HITS):
        call = hit.call
        found.append(
            {
                "key": keys.get(hit.session, ""),
                "part": "result",
                "label": f"{call.name} {target(call.name, call.arguments)}".strip(),
                "text": _about(call.result or call.arguments.decode("utf-8", "replace"), words),
                "when": recall.when(hit.at),
                "project": hit.project,
                "address": call.address,
            }
        )
    return found


def _about(text: str, words: list[str]) -> str:
    """What stands around the first of the words."""
    at = text.lower().find(words[0].lower())
    start = max(0, at - _LONGEST // 4)
    return ("…" if start else "") + " ".join(text[start : start + _LONGEST].split())
