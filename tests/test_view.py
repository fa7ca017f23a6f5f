"""The page without a browser: what it is told of a session, who gets at it, and that its figures are the command's."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

import made
import view_made
from cutline.errors import InputError, NothingToCut, Unreadable
from cutline.record import Exchange, Record
from cutline.sessions.clients import open_path
from cutline.sessions.cutting import prospect
from cutline.view import export, server, timeline, whatif
from cutline.view.shelf import Shelf

TOKEN = "a-token-for-tests"
Asked = Callable[..., Awaitable[tuple[int, dict[str, str], bytes]]]


def serving(file: Path, scenario: Callable[[Asked, Shelf], Awaitable[Any]], record: Path | None = None) -> Any:
    """Run a scenario against the server with one session."""

    async def run() -> Any:
        shelf = Shelf(open_path(file))
        runner = web.AppRunner(server.app(shelf, TOKEN, record, file.parent), access_log=None)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            port = runner.addresses[0][1]
            async with aiohttp.ClientSession() as client:

                async def asked(path: str, method: str = "GET", **more: Any) -> tuple[int, dict[str, str], bytes]:
                    async with client.request(method, f"http://127.0.0.1:{port}{path}", **more) as answer:
                        return answer.status, dict(answer.headers), await answer.read()

                return await scenario(asked, shelf)
        finally:
            await runner.cleanup()

    return asyncio.run(run())


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return made.small(checkpoint=True).write(tmp_path / f"{made.ID}.jsonl")


# ------------------------------------------------------------------------------------------ what the page is told


def test_every_block_has_an_author_and_the_words_of_each_are_told_whole(small: Path):
    found = timeline.read(open_path(small))
    parts = [entry.part for entry in found.entries]
    assert parts.count("human") == 3 and parts.count("call") == parts.count("result") == 9
    assert parts.count("checkpoint") == 2 and parts.count("thinking") == 4
    words = [found.text(index) for index, part in enumerate(parts) if part == "human"]
    assert words[0] == "The importer drops the last row. Find out why."
    result = next(index for index, part in enumerate(parts) if part == "result")
    assert found.text(result).count("\n") == 59 and len(found.entries[result].preview) <= 140


def readable(paths: Iterable[Path]) -> Iterator[timeline.Timeline]:
    """Those of the recorded sessions that hold a history (a few hold none, or one that nobody can read)."""
    for path in paths:
        try:
            yield timeline.read(open_path(path))
        except (InputError, Unreadable):
            continue


def test_the_tokens_of_blocks_add_up_to_what_the_provider_counted(sessions: list[Path]):
    checked = 0
    for found in readable(sessions):
        session = found.session
        if session.history.requests and found.fit.source == "calibrated" and len(found.entries) > 100:
            last = session.history.requests[-1]
            until = found.firsts[last.message]
            ours = found.fit.harness + sum(entry.tokens for entry in found.entries[:until])
            assert ours == pytest.approx(last.usage.total_input, rel=0.25), session.path.name
            checked += 1
    assert checked >= 5


def test_what_the_page_shows_of_a_cut_is_what_the_command_does(sessions: list[Path]):
    checked = 0
    for found in readable(sessions[:12]):
        session = found.session
        for at in (None, *session.history.human[-2:], len(found.firsts)):
            shown = whatif.cut_at(found, at)
            try:
                wanted = prospect(session, at=at)
            except NothingToCut:
                assert shown["reason"]
                continue
            gone = [index for start, end in shown["gone"] for index in range(start, end)]
            assert len(gone) == len(wanted.done.plan.drop)
            assert {found.index(*one.place) for one in wanted.done.removed} <= set(gone)
            assert shown["tokens"][1] == wanted.report.after.tokens and shown["words"][1] == 0
            assert not {found.entries[index].part for index in gone} & {"human", "harness", "attachment"}
            checked += 1
    assert checked > 10


def test_what_is_remembered_of_narration_changes_no_answer(sessions: list[Path]):
    found = next(one for one in readable(sessions) if 100 < len(one.entries) < 500)
    places = (*found.session.history.human[-1:], len(found.firsts))
    held = [whatif.cut_at(found, at) for at in (*places, *places)]
    assert found.verdicts and len(held) == 2 * len(places)
    for at, shown in zip((*places, *places), held, strict=True):
        assert shown == whatif.cut_at(timeline.read(found.session), at)


def test_claims_are_shown_with_what_speaks_against_them(tmp_path: Path):
    session = made.small()
    facts = [
        {"claim": "31 passed in each run", "basis": "measured", "evidence": "pytest -q -x --run 0"},
        {"claim": "77 passed in each run", "basis": "measured", "evidence": "pytest -q -x --run 1"},
        {"claim": "it was the bound", "basis": "inferred", "evidence": ""},
    ]
    document = {"done": "the bound", "open": "nothing", "went_wrong": "nothing", "facts": facts}
    session.agent({"type": "tool_use", "id": "toolu_c", "name": "micro_handoff", "input": document})
    session.answer("toolu_c", "Checkpoint stored.")
    (told,) = timeline.read(open_path(session.write(tmp_path / "one.jsonl"))).documents()
    assert [bool(fact["doubt"]) for fact in told["facts"]] == [False, True, False]
    assert told["texts"]["done"] == "the bound" and "stored" in told["reply"]
    assert all(fact["calls"] for fact in told["facts"][:2]) and told["facts"][2]["calls"] == []


def test_every_kind_of_session_is_shown(shared: Path):
    kinds: dict[str, int] = {}
    wanted = (
        "codex",
        "opencode",
        "gemini-cli",
        "pi",
        "copilot-cli",
        "swe-agent",
        "mini-swe-agent",
        "aider",
        "specstory",
    )
    folders = [sorted((shared / "data" / "sessions" / kind).iterdir()) for kind in wanted]
    small = [path for folder in folders for path in folder[:6] if path.stat().st_size < 300_000]
    for found in readable(small):
        told = json.loads(json.dumps({**found.as_json(), **found.notes()}))
        assert len(told["blocks"]["part"]) == len(found.entries) > 0
        assert all(isinstance(found.text(index), str) for index in range(len(found.entries)))
        kinds[found.session.client] = kinds.get(found.session.client, 0) + 1
    assert len(kinds) >= 8, kinds


def test_a_history_that_can_not_be_read_names_its_file(tmp_path: Path):
    async def scenario(asked: Asked, shelf: Shelf) -> None:
        for what in ("session", "notes", "cut"):
            status, _, body = await asked(f"/{TOKEN}/api/{what}", params={"key": shelf.first})
            assert status == 404
            assert json.loads(body)["error"].startswith("one.jsonl: its history can't be read: a tool_use block")

    serving(view_made.unreadable(tmp_path / "one.jsonl"), scenario)


def test_a_database_that_is_written_beside_itself_has_changed(small: Path):
    shelf = Shelf(open_path(small))
    before = shelf.stamp(shelf.first)
    small.with_name(small.name + "-wal").write_bytes(b"more")
    assert shelf.stamp(shelf.first) != before


# ------------------------------------------------------------------------------------------------- who gets at it


def test_without_the_token_there_is_nothing(small: Path):
    async def scenario(asked: Asked, shelf: Shelf) -> None:
        for path in (
            "/",
            "/page.js",
            "/api/sessions",
            "/wrong/",
            f"/{TOKEN}x/api/sessions",
            f"/x/api/session?key={shelf.first}",
        ):
            status, headers, body = await asked(path)
            assert status == 404 and b"importer" not in body, path
            assert headers["Content-Security-Policy"] == server.POLICY
        assert (await asked(f"/{TOKEN}/"))[0] == 200

    serving(small, scenario)


def test_another_hosts_name_is_refused_and_nothing_can_be_changed(small: Path):
    async def scenario(asked: Asked, shelf: Shelf) -> None:
        path = f"/{TOKEN}/api/session?key={shelf.first}"
        assert (await asked(path))[0] == 200
        for host in ("attacker.example", "attacker.example:80", "127.0.0.1.attacker.example:1", ""):
            assert (await asked(path, headers={"Host": host}))[0] == 403, host
        for method in ("POST", "PUT", "DELETE", "OPTIONS"):
            assert (await asked(path, method))[0] >= 400

    serving(small, scenario)


def test_no_path_can_be_asked_for(small: Path):
    async def scenario(asked: Asked, shelf: Shelf) -> None:
        for name in ("../__init__.py", "..%2f__init__.py", "%2e%2e/server.py", "__init__.py", "nothing.js"):
            assert (await asked(f"/{TOKEN}/{name}"))[0] == 404, name
        for key in ("", str(small), "../" + small.name, "0" * 16):
            assert (await asked(f"/{TOKEN}/api/session", params={"key": key}))[0] == 404, key
        for index in ("-1", "100000", "x", "", "0x1"):
            status, _, body = await asked(f"/{TOKEN}/api/block", params={"key": shelf.first, "index": index})
            assert status == 400 and "number" in json.loads(body)["error"]

    serving(small, scenario)


def test_every_answer_forbids_what_the_page_does_not_need(small: Path):
    async def scenario(asked: Asked, shelf: Shelf) -> None:
        for path in ("", "page.js", "page.css", "api/sessions", f"api/notes?key={shelf.first}"):
            status, headers, _ = await asked(f"/{TOKEN}/{path}")
            assert status == 200
            assert "default-src 'none'" in headers["Content-Security-Policy"]
            assert "unsafe" not in headers["Content-Security-Policy"]
            assert headers["X-Content-Type-Options"] == "nosniff" and headers["Referrer-Policy"] == "no-referrer"

    serving(small, scenario)


def test_search_finds_what_was_said_and_what_was_returned(small: Path):
    async def scenario(asked: Asked, shelf: Shelf) -> None:
        status, _, body = await asked(f"/{TOKEN}/api/find", params={"key": shelf.first, "q": "31 PASSED"})
        entries = shelf.get(shelf.first).entries
        assert status == 200
        assert {entries[index].part for index in json.loads(body)["found"]} == {"agent", "result"}

    serving(small, scenario)


def test_the_record_is_searched_and_what_is_found_leads_to_its_session(small: Path, tmp_path: Path):
    body = open_path(small).history.body
    with Record(tmp_path / "record" / "record.db") as held:
        held.write(Exchange("another", "", "claude", "/p", 1_790_000_000.0, body, len(body), "", 200, b"", {}, "turn"))

    async def scenario(asked: Asked, shelf: Shelf) -> None:
        _, _, found = await asked(f"/{TOKEN}/api/search", params={"q": "31 passed"})
        hits = json.loads(found)["found"]
        assert {hit["part"] for hit in hits} == {"agent", "result"}
        assert {hit["project"] for hit in hits} >= {"/p"}
        assert len({(hit["address"], hit["text"]) for hit in hits}) == len(hits)
        told = json.loads((await asked(f"/{TOKEN}/api/search", params={"q": "no such words"}))[2])
        assert told["found"] == [] and told["looked"].startswith("the record and the session files of ")

    serving(small, scenario, tmp_path / "record" / "record.db")

    async def without(asked: Asked, shelf: Shelf) -> None:
        _, _, found = await asked(f"/{TOKEN}/api/search", params={"q": "31 passed"})
        assert {hit["key"] for hit in json.loads(found)["found"]} == {shelf.first}
        assert json.loads(found)["looked"].startswith("no record is kept here; ")

    serving(small, without)


def test_a_session_that_grows_is_read_again(small: Path):
    async def scenario(asked: Asked, shelf: Shelf) -> None:
        before = len(shelf.get(shelf.first).entries)
        first = json.loads((await asked(f"/{TOKEN}/api/stamp", params={"key": shelf.first}))[2])
        session = made.small(checkpoint=True)
        session.human("And one more thing.")
        session.write(small)
        second = json.loads((await asked(f"/{TOKEN}/api/stamp", params={"key": shelf.first}))[2])
        assert first != second
        _, _, body = await asked(f"/{TOKEN}/api/session", params={"key": shelf.first})
        assert len(json.loads(body)["blocks"]["part"]) == before + 1

    serving(small, scenario)


# -------------------------------------------------------------------------------------------------------- an export


def test_an_export_asks_nobody_and_holds_no_secret(tmp_path: Path):
    key = "sk-" + "ant-" + "api03-" + "x" * 40
    lines = "\\n".join("MIIEpAIBAAKCAQEA" + "b" * 48 for _ in range(8))
    private = f"-----BEGIN RSA PRIVATE KEY-----\\n{lines}\\n-----END RSA PRIVATE KEY-----"
    session = made.small(checkpoint=True)
    session.step(f"The key is {key}.", f"curl -H 'x-api-key: {key}'", f"{'.' * 120}{key} and {private}")
    html = export.page(open_path(session.write(tmp_path / "one.jsonl"))).decode()
    assert "sk-" + "ant-" not in html and "MIIEpAIBAAKCAQEA" not in html
    assert html.count("[masked: anthropic key]") >= 3 and "[masked: private key]" in html
    assert not re.search(r"""(?:src|href)=["']?(?!#|data:)[\w/]""", html.partition('id="data"')[0])
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', html)
    assert policy.startswith("default-src 'none'") and "unsafe" not in policy and "connect-src" not in policy


def test_nothing_recorded_ends_the_element_that_holds_it(tmp_path: Path):
    html = export.page(open_path(view_made.hostile(tmp_path / "one.jsonl"))).decode()
    data = html.partition('<script type="application/json" id="data">')[2]
    held, end, rest = data.partition("</script>")
    assert "<" not in held and end and json.loads(held)["session"]["title"]
    assert rest.count("<script>") == 1 and rest.count("</script>") == 1
