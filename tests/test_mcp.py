"""The MCP server as clients meet it: resources, the prompt, both transports, and what it is given by mistake."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import pytest

from cutline import checkpoint, mandate, mcp_serving
from cutline.errors import InputError
from cutline.record import Document, Record
from cutline.resources import Resources
from cutline.sessions.claude_code.find import folder_name
from made import Session
from test_tools import DOCUMENT, HANDOFF, call, exchange, result

AT = 1_796_208_540.0  # 2026-12-02 10:49 UTC
ADDRESS = "0123456789abcdef"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    made.mkdir()
    return made.resolve()


@pytest.fixture
def record(tmp_path: Path) -> Record:
    return Record(tmp_path / "data" / "record.db")


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))


def keep(
    record: Record, folder: Path, id: str = ADDRESS, at: float = AT, where: str = "", flags: Any = None, **more: Any
) -> str:
    """Store a document of this project; its text."""
    text = json.dumps({**DOCUMENT, **more}, ensure_ascii=False)
    stamp = json.dumps({"directory": where or str(folder), "branch": "main"})
    told = json.dumps({"unproven": flags or []})
    record.put_document(Document("ab1eebff-11ff", str(folder), at, id, text, stamp, told))
    return text


class TestCheckpointDocuments:
    def test_are_listed_the_newest_first_with_time_and_session(self, record: Record, folder: Path):
        keep(record, folder, "1" * 16, AT, done="the reader is fixed")
        keep(record, folder, "2" * 16, AT + 60, done="14 of 28\nparts \x1b[31magree")
        listed, more = Resources(folder, str(folder), record).listed()
        assert [one.uri for one in listed] == [f"cutline://checkpoint/{digit * 16}" for digit in "21"] and not more
        assert listed[0].title == "checkpoint 2026-12-02 10:50 UTC, session ab1eebff"
        assert listed[0].about == "14 of 28 parts [31magree", "one line, and nothing that steers a terminal"
        assert {one.kind for one in listed} == {"application/json"}

    def test_are_read_as_they_are_kept_and_what_the_machine_noted_stands_apart(self, record: Record, folder: Path):
        text = keep(record, folder, flags=["p99 is 41.7ms"], done="“é” \u2028 1.50")
        document, noted = Resources(folder, str(folder), record).read(f"cutline://checkpoint/{ADDRESS}")
        assert document.text == text and document.kind == "application/json"
        told = json.loads(noted.text or "")
        assert told["stamp"]["branch"] == "main" and told["unproven"] == ["p99 is 41.7ms"]
        assert told["session"] == "ab1eebff-11ff" and told["at"] == "2026-12-02 10:49 UTC"

    def test_without_a_known_call_have_an_address_all_the_same(self, record: Record, folder: Path):
        one, two = keep(record, folder, "", AT), keep(record, folder, "", AT + 1)
        shelf = Resources(folder, str(folder), record)
        listed, _ = shelf.listed()
        assert len({entry.uri for entry in listed}) == 2
        assert [shelf.read(entry.uri)[0].text for entry in listed] == [two, one]

    def test_of_another_project_are_neither_listed_nor_read(self, record: Record, folder: Path):
        keep(record, folder.parent / "another")
        shelf = Resources(folder, str(folder), record)
        assert shelf.listed() == ([], "")
        with pytest.raises(InputError, match="no checkpoint 0123456789abcdef in this project"):
            shelf.read(f"cutline://checkpoint/{ADDRESS}")

    def test_without_a_record_come_out_of_the_clients_session_files(self, folder: Path, tmp_path: Path):
        made = Session(cwd=str(folder))
        made.human("Go.")
        made.agent(call("toolu_1", HANDOFF, done="not yet"))
        made.answer("toolu_1", checkpoint.refusal(["open: a text is required"]))
        made.checkpoint("the reader is fixed")
        place = tmp_path / "config" / "projects" / folder_name(str(folder))
        made.write(place / f"{made.id}.jsonl")
        (place / "broken.jsonl").write_text('{"micro_handoff')
        shelf = Resources(folder, str(folder), None)
        ((one,), _) = shelf.listed()
        assert one.about == "the reader is fixed" and one.title == "checkpoint 2026-10-05 09:00 UTC, session 11111111"
        assert json.loads(shelf.read(one.uri)[0].text or "")["done"] == "the reader is fixed"

    def test_come_in_pages(self, record: Record, folder: Path):
        for number in range(205):
            keep(record, folder, f"{number:016x}", AT + number)
        shelf = Resources(folder, str(folder), record)
        first, cursor = shelf.listed()
        second, then = shelf.listed(cursor)
        third, end = shelf.listed(then)
        assert [len(page) for page in (first, second, third)] == [100, 100, 5] and not end
        assert len({one.uri for one in (*first, *second, *third)}) == 205
        assert shelf.listed("cutline://checkpoint/gone")[0] == first

    @pytest.mark.parametrize(
        "uri",
        ["", "cutline://", "cutline://checkpoint/", "cutline://checkpoint/../../etc/passwd", "file:///etc/passwd",
         f"cutline://checkpoint/{ADDRESS}/noted", f"cutline://checkpoint/{ADDRESS}\n", "cutline://recipe//etc/passwd",
         "cutline://recipe/%2e%2e/x", "\0", "x" * 100_000],
    )  # fmt: skip
    def test_an_address_that_names_nothing_is_refused_in_one_short_line(self, record: Record, folder: Path, uri: str):
        keep(record, folder)
        with pytest.raises(InputError) as told:
            Resources(folder, str(folder), record).read(uri)
        assert len(str(told.value)) < 300 and str(told.value).isprintable()


class TestRecipes:
    def shelf(self, record: Record, folder: Path, *paths: Any, **more: Any) -> Resources:
        keep(record, folder, recipes=list(paths), **more)
        return Resources(folder, str(folder), record)

    def test_are_listed_behind_the_documents_that_name_them(self, record: Record, folder: Path):
        shelf = self.shelf(record, folder, "tools/count parts.sh", "docs/how.md", " ", 3)
        listed, _ = shelf.listed()
        assert [(one.uri, one.kind) for one in listed[1:]] == [
            ("cutline://recipe/tools/count%20parts.sh", "text/plain"),
            ("cutline://recipe/docs/how.md", "text/markdown"),
        ]
        assert listed[1].about == f"named by checkpoint {ADDRESS}" and listed[1].title == "recipe tools/count parts.sh"

    def test_are_read_exactly(self, record: Record, folder: Path):
        (folder / "how.md").write_bytes("# é\r\n".encode())
        (folder / "raw.bin").write_bytes(b"\xff\x00")
        shelf = self.shelf(record, folder, "how.md", "raw.bin", str(folder / "how.md"))
        (text,) = shelf.read("cutline://recipe/how.md")
        assert text.text == "# é\r\n" and text.kind == "text/markdown"
        (data,) = shelf.read("cutline://recipe/raw.bin")
        assert data.text is None and data.data == b"\xff\x00"
        assert shelf.read(f"cutline://recipe/{folder}/how.md")[0].text == "# é\r\n"

    def test_are_looked_for_where_the_document_was_written(self, record: Record, folder: Path):
        (folder / "sub").mkdir()
        (folder / "sub" / "how.sh").write_text("make audit")
        (folder / ".git").mkdir()
        keep(record, folder, where=str(folder), working_directory="sub", recipes=["how.sh"])
        beside = folder / "other"
        beside.mkdir()
        shelf = Resources(beside, str(folder), record)
        assert shelf.read("cutline://recipe/how.sh")[0].text == "make audit", "up to the git root"

    def test_that_no_document_names_are_not_read(self, record: Record, folder: Path):
        (folder / "secret.txt").write_text("no")
        with pytest.raises(InputError, match="no resource of this project"):
            self.shelf(record, folder, "how.md").read("cutline://recipe/secret.txt")

    @pytest.mark.parametrize(
        ("path", "why"),
        [
            ("../outside.sh", "lies outside of this project"),
            ("{outside}", "lies outside of this project"),
            ("sub/../../outside.sh", "lies outside of this project"),
            ("link.sh", "lies outside of this project"),
            ("away/outside.sh", "lies outside of this project"),
            (".git/config", "lies outside of this project"),
            ("/etc/passwd", "lies outside of this project"),
            ("~/.ssh/id", "no such file"),
            ("sub", "is no file|is a directory"),
            ("pipe", "is no file"),
            ("large.sh", "weighs 2,000,001 bytes"),
            ("gone.sh", "no such file"),
            ("a\0b", "no such file"),
            ("x" * 5_000, "no such file"),
        ],
    )
    def test_that_lead_elsewhere_are_listed_and_not_read(self, record: Record, folder: Path, path: str, why: str):
        outside = folder.parent / "outside.sh"
        outside.write_text("no")
        (folder / "sub").mkdir()
        (folder / ".git").mkdir()
        (folder / ".git" / "config").write_text("url = https://token@host")
        (folder / "link.sh").symlink_to(outside)
        (folder / "away").symlink_to(folder.parent)
        os.mkfifo(folder / "pipe")
        (folder / "large.sh").write_bytes(b"x" * 2_000_001)
        shelf = self.shelf(record, folder, path.format(outside=outside))
        (_, listed), _ = shelf.listed()
        with pytest.raises(InputError, match=why) as told:
            shelf.read(listed.uri)
        assert str(told.value).isprintable() and len(str(told.value)) < 300

    def test_a_place_that_a_document_only_claims_opens_no_other_one(self, record: Record, folder: Path):
        (folder.parent / "outside.sh").write_text("no")
        shelf = self.shelf(record, folder, "outside.sh", where=str(folder.parent), working_directory="..")
        with pytest.raises(InputError, match="lies outside"):
            shelf.read("cutline://recipe/outside.sh")


# ---------------------------------------------------------------------------------------------- as it is served


def environment(folder: Path, record: Path | None, **more: str) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"], "HOME": str(folder.parent / "home"), "CUTLINE_RECORD": str(record or ""),
        "CLAUDE_CONFIG_DIR": str(folder.parent / "config"), "CLAUDE_PROJECT_DIR": str(folder), **more,
    }  # fmt: skip


@contextmanager
def over_http(folder: Path, record: Path | None, *arguments: str) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """`cutline mcp --http`: its address and its process."""
    command = [sys.executable, "-P", "-m", "cutline", "mcp", "--http", *arguments]
    with subprocess.Popen(
        command,
        env=environment(folder, record),
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as server:
        try:
            assert server.stdout is not None
            yield server.stdout.readline().decode().strip(), server
        finally:
            server.terminate()
            server.wait(10)


Way = Callable[[], Any]


@pytest.fixture(params=["stdio", "stdio, older protocol", "http", "http, older protocol"])
def way(request: pytest.FixtureRequest, folder: Path, tmp_path: Path) -> Iterator[Way]:
    """The official client, connected in each way; several may be connected at once."""
    from mcp import Client, StdioServerParameters

    record = tmp_path / "data" / "record.db"
    transport, _, older = request.param.partition(", ")
    mode: Any = "legacy" if older else "auto"
    if transport == "http":
        with over_http(folder, record) as (address, _):
            yield lambda: Client(address, mode=mode, cache=None, read_timeout_seconds=30)
    else:
        parameters = StdioServerParameters(
            command=sys.executable,
            args=["-P", "-m", "cutline", "mcp"],
            env=environment(folder, record),
            cwd=str(folder),
        )
        yield lambda: Client(parameters, mode=mode, cache=None, read_timeout_seconds=30)


def text_of(reply: Any) -> str:
    return "\n".join(part.text for part in reply.content)


@pytest.mark.slow
class TestByTheOfficialClient:
    def test_tools_resources_and_the_prompt(self, way: Way, folder: Path, record: Record):
        (folder / "how.md").write_text("# How")
        text = keep(record, folder, recipes=["how.md", "../outside.md"])

        async def talk() -> None:
            from mcp.shared.exceptions import MCPError

            async with way() as client:
                assert [tool.name for tool in (await client.list_tools()).tools] == ["micro_handoff", "recall", "say"]
                listed = (await client.list_resources()).resources
                assert [str(one.uri) for one in listed] == [
                    f"cutline://checkpoint/{ADDRESS}", "cutline://recipe/how.md", "cutline://recipe/../outside.md",
                ]  # fmt: skip
                document, noted = (await client.read_resource(listed[0].uri)).contents
                assert document.text == text and json.loads(noted.text)["session"] == "ab1eebff-11ff"
                (recipe,) = (await client.read_resource(listed[1].uri)).contents
                assert recipe.text == "# How" and recipe.mime_type == "text/markdown"
                for uri in (listed[2].uri, "file:///etc/passwd", "cutline://checkpoint/../x"):
                    with pytest.raises(MCPError, match=r"^cutline: "):
                        await client.read_resource(uri)
                (prompt,) = (await client.list_prompts()).prompts
                assert prompt.name == "micro-handoff" and not prompt.arguments
                (asked,) = (await client.get_prompt("micro-handoff")).messages
                assert asked.role == "user" and asked.content.text == mcp_serving.PROMPT
                with pytest.raises(MCPError, match="one prompt"):
                    await client.get_prompt("another")

        anyio.run(talk)

    def test_a_checkpoint_is_handed_back_once_to_each_session_and_is_a_resource_then(
        self, way: Way, folder: Path, record: Record
    ):
        for session in ("s1", "s2"):
            record.write(
                exchange(
                    folder,
                    {"role": "user", "content": f"Go, {session}."},
                    {"role": "assistant", "content": [call(f"toolu_{session}", "Bash", command="git log -1")]},
                    {"role": "user", "content": [result(f"toolu_{session}", "a1b2c3d retry_policy.go:213")]},
                    answer=[call(f"toolu_of_{session}", HANDOFF, **DOCUMENT)],
                    session=session,
                )
            )

        async def talk() -> None:
            async with way() as client:

                async def handoff(session: str) -> Any:
                    meta: Any = {"claudecode/toolUseId": f"toolu_of_{session}"}
                    return await client.call_tool("micro_handoff", DOCUMENT, meta=meta)

                for session in ("s1", "s2"):
                    refused = await handoff(session)
                    assert refused.is_error and "not narrated" in text_of(refused)
                for session in ("s2", "s1"):
                    assert text_of(await handoff(session)).startswith("checkpoint stored")
                listed = (await client.list_resources()).resources
                assert [one.title.rpartition(" ")[2] for one in listed] == ["s1", "s2"]

        anyio.run(talk)

    def test_whatever_is_sent_by_mistake_is_answered_and_the_next_call_too(self, way: Way, folder: Path):
        async def talk() -> None:
            async with way() as client:

                async def refused(name: str, arguments: Any) -> str:
                    reply = await client.call_tool(name, arguments)
                    assert reply.is_error, arguments
                    assert len(text_of(reply)) < 1_000 and len(text_of(reply).splitlines()) == 1
                    return text_of(reply)

                large = {**DOCUMENT, "done": "x" * 1_000_000}
                assert "weighs 1,000,0" in await refused("micro_handoff", large)
                for wrong in ({"done": 1}, {**DOCUMENT, "facts": {"claim": "x"}}, {**DOCUMENT, "recipes": [None]}):
                    assert (await refused("micro_handoff", wrong)).startswith("checkpoint refused:")
                for wrong in ({}, {"what": ["a"]}, {"what": "a", "offset": "1"}, {"what": "a", "offset": 1e300}):
                    await refused("recall", wrong)
                for words in ('" OR NEAR(a b) NOT * ^x : {} -y', "../../etc/passwd", f"{ADDRESS}/../x", "%_%", '"""'):
                    assert "no call in this project" in await refused("recall", {"what": words})
                assert "nothing at the address" in await refused("recall", {"what": ADDRESS})
                await refused("say", {"text": "\n"})
                await refused("rm", {})
                steered = {**DOCUMENT, "done": "bell \x07, escape \x1b[2J, zero \0", "more": {"deep": [1.50, None]}}
                assert text_of(await client.call_tool("micro_handoff", steered)).startswith("checkpoint stored")
                listed = (await client.list_resources()).resources
                assert listed[0].description == "bell , escape [2J, zero"
                document = (await client.read_resource(listed[0].uri)).contents[0]
                assert json.loads(document.text) == steered

        anyio.run(talk)

    def test_two_clients_on_one_record(self, way: Way, tmp_path: Path):
        async def talk() -> None:
            async with way() as one, way() as two, anyio.create_task_group() as group:
                for client in (one, two) * 5:
                    group.start_soon(client.call_tool, "micro_handoff", DOCUMENT)

        anyio.run(talk)
        with Record(tmp_path / "data" / "record.db", readonly=True) as held:
            assert len(held.documents()) == 10

    def test_half_of_a_surrogate_pair_in_a_result_ends_nothing(self, way: Way, folder: Path, record: Record):
        """A command that breaks off in the middle of an emoji leaves one; it can't be sent in UTF-8."""
        body = [
            {"role": "user", "content": "Go."},
            {"role": "assistant", "content": [call("toolu_1", "Bash", command="make audit")]},
            {"role": "user", "content": [result("toolu_1", "128 sites HALF")]},
        ]
        made = exchange(folder, *body)
        record.write(exchange(folder, body=made.body.replace(b"HALF", rb"\ud83d")))

        async def talk() -> None:
            async with way() as client:
                listed = text_of(await client.call_tool("recall", {"what": "sites audit"}))
                shown = await client.call_tool("recall", {"what": listed.splitlines()[1].split()[0]})
                assert shown.content[1].text == "128 sites \ufffd" and "U+FFFD" in shown.content[2].text

        anyio.run(talk)


class TestOverStandardInput:
    @asynccontextmanager
    async def lines(self, folder: Path) -> AsyncIterator[Any]:
        """The server, spoken to in lines as a client writes them; asks and gives the answer of an id."""
        command = [sys.executable, "-P", "-m", "cutline", "mcp"]
        async with await anyio.open_process(command, env=environment(folder, None), cwd=folder) as server:
            assert server.stdin is not None and server.stdout is not None
            read = b""

            async def ask(id: int, line: str) -> dict[str, Any]:
                nonlocal read
                await server.stdin.send(line.encode() + b"\n")
                with anyio.fail_after(20):
                    while True:
                        while b"\n" not in read:
                            read += await server.stdout.receive()
                        first, _, read = read.partition(b"\n")
                        found: dict[str, Any] = json.loads(first)
                        if found.get("id") == id:
                            return found

            hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
            await ask(0, json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}))
            await server.stdin.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
            yield ask
            await server.stdin.aclose()
            assert await server.wait() == 0

    def test_a_call_with_half_of_a_surrogate_pair_is_answered(self, folder: Path):
        """A client's JSON may hold one; the library does not read such a line, and would never answer it."""
        line = '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"say","arguments":{"text":"%s"}}}'

        async def talk() -> None:
            async with self.lines(folder) as ask:
                for number, words in enumerate((r"half \ud83d", r"\udc00\ud83d", r"\\ud83d whole \ud83d\ude00"), 1):
                    assert (await ask(number, line % (number, words)))["result"]["content"][0]["text"] == "said"

        anyio.run(talk)

    def test_arguments_that_are_no_object_are_an_error_of_the_call(self, folder: Path):
        line = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"say","arguments":[1]}}'

        async def talk() -> None:
            async with self.lines(folder) as ask:
                assert (await ask(1, line))["error"]["code"] == -32602

        anyio.run(talk)

    def test_lines_that_are_no_messages_end_nothing(self, folder: Path):
        line = '{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"say","arguments":{"text":"still"}}}'
        junk = ["no JSON", "[]", "{", "[" * 100_000, "\x00\x1b", '{"jsonrpc":"2.0","id":1}']

        async def talk() -> None:
            async with self.lines(folder) as ask:
                told = await ask(9, "\n".join([*junk, line]))
                assert told["result"]["content"][0]["text"] == "said"

        anyio.run(talk)


@pytest.mark.slow
class TestOverHTTP:
    def asked(
        self, address: str, method: str = "POST", path: str | None = None, body: str = "{}", **headers: str
    ) -> tuple[int, str]:
        there = urlsplit(address)
        connection = http.client.HTTPConnection("127.0.0.1", there.port or 0, timeout=10)
        given = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path or there.path, body, given)
        answer = connection.getresponse()
        told = answer.read().decode()
        connection.close()
        return answer.status, told

    def test_who_may_ask(self, folder: Path):
        listing = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        with over_http(folder, None) as (address, _):
            there = urlsplit(address)
            assert there.hostname == "127.0.0.1" and len(there.path.split("/")[1]) >= 32
            status, told = self.asked(address, body=listing, mcp_protocol_version="2025-11-25")
            assert status == 200 and '"recall"' in told
            for status, more in [
                (403, {"host": "evil.example"}),
                (403, {"host": "127.0.0.1.evil.example"}),
                (403, {"origin": "https://evil.example"}),
                (403, {"origin": "null"}),
                (403, {"path": "/mcp"}),
                (403, {"path": f"/{'x' * 32}/mcp"}),
                (400, {"path": there.path.replace("/mcp", "/../mcp")}),
                (404, {"path": there.path.replace("/mcp", "/other")}),
                (404, {"path": there.path + "/"}),
                (404, {"path": there.path + "?x=1"}),
                (413, {"body": "x" * 5_000_000}),
            ]:
                got, told = self.asked(address, **{"body": listing, **more})  # type: ignore[arg-type]
                assert got == status, (more, got, told)
                assert "recall" not in told

    def test_listens_on_loopback_only(self, folder: Path):
        with over_http(folder, None) as (address, _):
            port = urlsplit(address).port
            with socket.create_connection(("127.0.0.1", port)):
                pass
            with pytest.raises(OSError), socket.create_connection(("127.0.0.2", port), timeout=2):
                pass

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_an_interruption_ends_it_at_once_and_well_and_the_port_is_free(self, folder: Path, number: signal.Signals):
        with over_http(folder, None) as (address, server):
            held = socket.create_connection(("127.0.0.1", urlsplit(address).port or 0))
            held.sendall(b"POST / HTTP/1.1\r\n")  # a client that does not go
            begun = time.monotonic()
            server.send_signal(number)
            out, err = server.communicate(timeout=10)
            held.close()
        assert server.returncode == 0 and time.monotonic() - begun < 5
        token = urlsplit(address).path.split("/")[1]
        assert out == b"" and token.encode() not in err and err.decode().count("\n") == 1, err
        with over_http(folder, None, "--port", str(urlsplit(address).port)) as (again, _):
            assert urlsplit(again).port == urlsplit(address).port

    def test_a_port_that_is_taken_is_said_in_one_line(self, folder: Path):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            with over_http(folder, None, "--port", str(port)) as (address, server):
                _, err = server.communicate(timeout=20)
        assert address == "" and server.returncode == 2
        assert err.decode() == f"cutline: 127.0.0.1:{port}: address already in use; give another --port\n"

    def test_a_port_without_http_is_refused(self, folder: Path):
        done = subprocess.run(
            [sys.executable, "-P", "-m", "cutline", "mcp", "--port", "1"],
            env=environment(folder, None),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=20,
            check=False,
        )
        assert done.returncode == 2 and b"--port goes with --http" in done.stderr


@pytest.mark.slow
class TestStartedByHand:
    """Without a run's environment: the user's record where there is one, and none is begun."""

    def documents(self, folder: Path, data: Path) -> bool:
        from mcp import Client, StdioServerParameters

        given = environment(folder, None, XDG_DATA_HOME=str(data))
        del given["CUTLINE_RECORD"]
        parameters = StdioServerParameters(
            command=sys.executable, args=["-P", "-m", "cutline", "mcp"], env=given, cwd=str(folder)
        )

        async def talk() -> None:
            async with Client(parameters) as client:
                assert text_of(await client.call_tool("micro_handoff", DOCUMENT)).startswith("checkpoint stored")

        anyio.run(talk)
        return (data / "cutline" / "record.db").exists()

    @pytest.mark.skipif(sys.platform != "linux", reason="the record lies elsewhere on other systems")
    def test_the_record_is_the_users_own(self, folder: Path, tmp_path: Path):
        data = tmp_path / "share"
        assert not self.documents(folder, data)
        with Record(data / "cutline" / "record.db"):
            pass
        assert self.documents(folder, data)
        with Record(data / "cutline" / "record.db", readonly=True) as held:
            assert len(held.documents(str(folder))) == 1


def test_the_prompt_asks_for_what_the_mandate_asks_for():
    assert len(mcp_serving.PROMPT) < 900
    for word in ("micro_handoff", "facts", "specifics", "file", "went wrong", "next"):
        assert word in mcp_serving.PROMPT
    assert "every word" in mcp_serving.PROMPT and "every word" in mandate.MANDATE.replace("\n", " ")


def test_the_commands_module_loads_nothing_of_mcp():
    code = "import cutline.cli.mcp, sys; print([m for m in sys.modules if m.split('.')[0] in ('mcp','pydantic','uvicorn','anyio','starlette')])"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, timeout=20, check=True)
    assert done.stdout.strip() == b"[]"
