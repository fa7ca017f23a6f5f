"""The agent's tools, asked by the official MCP client over standard input and output, and their answers' sources."""

import json
import os
import sys
import time
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from conversations import FORMATS, growing, intent
from conversations import result as gives
from cutline import events, mandate
from cutline.blocks import address
from cutline.mcp import PAGE, Tools
from cutline.measure import request_of
from cutline.record import Exchange, Record
from cutline.sessions.claude_code.find import folder_name
from made import Session

DOCUMENT = {"done": "a", "open": "b", "went_wrong": "nothing"}
HANDOFF = "mcp__cutline__micro_handoff"


def call(id: str, name: str, **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": given}


def result(id: str, content: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": content}


def exchange(project: Path, *messages: dict[str, Any], answer: list[dict[str, Any]] = [], **more: Any) -> Exchange:  # noqa: B006
    body = json.dumps({"model": "m", "messages": list(messages)}, ensure_ascii=False).encode()
    given = {
        "session": "s1", "agent": "", "client": "claude", "project": str(project), "at": time.time(), "body": body,
        "sent": len(body), "seam": "", "status": 200, "answer": json.dumps(answer).encode() if answer else b"",
        "usage": {}, "kind": "turn", **more,
    }  # fmt: skip
    return Exchange(**given)


@pytest.fixture
def record(tmp_path: Path) -> Record:
    return Record(tmp_path / "data" / "record.db")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    made.mkdir()
    return made.resolve()


@pytest.fixture
def tools(record: Record, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Tools:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
    return Tools(folder, str(folder), record, "s1")


def asked(tools: Tools, name: str, id: str = "toolu_x", **arguments: Any) -> str:
    return "\n".join(tools.call(name, arguments, id).texts)


class TestRecall:
    def history(self, folder: Path, output: str) -> list[dict[str, Any]]:
        return [
            {"role": "user", "content": "Go."},
            {"role": "assistant", "content": [call("toolu_1", "Bash", command="make audit")]},
            {"role": "user", "content": [result("toolu_1", output)]},
        ]

    WHERE = address("toolu_1", "Bash", b'{"command": "make audit"}')

    def test_gives_the_exact_text_in_a_part_of_its_own(self, tools: Tools, record: Record, folder: Path):
        output = "  128 sites\t\u2028 é \x1b[31m\r\n\n"
        record.write(exchange(folder, *self.history(folder, output)))
        reply = tools.call("recall", {"what": self.WHERE}, "")
        assert reply.texts[1] == output
        assert self.WHERE in reply.texts[0] and '"make audit"' in reply.texts[0]

    def test_finds_by_words_in_any_case(self, tools: Tools, record: Record, folder: Path):
        record.write(exchange(folder, *self.history(folder, "128 Sites in 5 files")))
        assert self.WHERE in asked(tools, "recall", what="sites AUDIT")
        assert "no call in this project" in asked(tools, "recall", what="sites nowhere")

    def test_does_not_find_earlier_calls_of_itself(self, tools: Tools, record: Record, folder: Path):
        asking = call("toolu_2", "mcp__cutline__recall", what="sites audit")
        again = [
            {"role": "assistant", "content": [asking]},
            {"role": "user", "content": [result("toolu_2", "128 sites")]},
        ]
        record.write(exchange(folder, *self.history(folder, "128 sites"), *again))
        assert "toolu_2" not in asked(tools, "recall", what="sites audit")
        assert asked(tools, "recall", what="sites audit").count("\n") == 1

    def test_stays_within_the_project(self, tools: Tools, record: Record, folder: Path):
        record.write(exchange(folder.parent / "another", *self.history(folder, "128 sites")))
        assert "nothing at the address" in asked(tools, "recall", what=self.WHERE)
        assert "no call in this project" in asked(tools, "recall", what="sites")

    def test_pages_a_result_that_is_too_long_for_one_answer(self, tools: Tools, record: Record, folder: Path):
        output = "".join(f"{number}\n" for number in range(150_000))
        record.write(exchange(folder, *self.history(folder, output)))
        got, offset = "", 0
        for _ in range(3):
            reply = tools.call("recall", {"what": self.WHERE, "offset": offset}, "")
            got, offset = got + reply.texts[1], offset + PAGE
            assert (f"go on with offset {offset}" in reply.texts[0]) is (offset < len(output))
        assert got == output

    @pytest.mark.parametrize(
        ("now", "said"),
        [
            ("one\ntwo\nthree\n", "still has these lines"),
            ("one\nTWO\nthree\n", "changed since: line 2 differ"),
            ("one", "changed since: lines 2-3 differ"),
            (None, "is gone by now"),
        ],
    )
    def test_says_how_stale_a_read_file_is(
        self, tools: Tools, record: Record, folder: Path, now: str | None, said: str
    ):
        read = call("toolu_2", "Read", file_path=str(folder / "a.py"))
        shown = "     1\tone\n     2\ttwo\n     3\tthree\n\n<system-reminder>careful</system-reminder>"
        record.write(
            exchange(
                folder,
                {"role": "user", "content": "Go."},
                {"role": "assistant", "content": [read]},
                {"role": "user", "content": [result("toolu_2", shown)]},
            )
        )
        if now is not None:
            (folder / "a.py").write_text(now)
        where = address("toolu_2", "Read", json.dumps(read["input"]).encode())
        reply = tools.call("recall", {"what": where}, "")
        assert said in reply.texts[0]
        assert reply.texts[1] == shown

    def test_of_a_pointer_gives_what_it_points_to(self, tools: Tools, record: Record, folder: Path):
        stub = "Wasted call — file unchanged since your last Read. Refer to that earlier tool_result instead."
        read = {"file_path": str(folder / "a.py")}
        record.write(
            exchange(
                folder,
                {"role": "user", "content": "Go."},
                {"role": "assistant", "content": [call("toolu_1", "Read", **read)]},
                {"role": "user", "content": [result("toolu_1", "1\tthe whole file")]},
                {"role": "assistant", "content": [call("toolu_2", "Read", **read)]},
                {"role": "user", "content": [result("toolu_2", stub)]},
            )
        )
        where = address("toolu_2", "Read", json.dumps(read).encode())
        reply = tools.call("recall", {"what": where}, "")
        assert reply.texts[1] == "1\tthe whole file" and "found behind the pointer" in reply.texts[0]

    def test_of_a_pointer_gives_what_was_shown_before_it_however_it_was_asked_for(
        self, tools: Tools, record: Record, folder: Path
    ):
        stub = "Wasted call — file unchanged since your last Read. Refer to that earlier tool_result instead."
        file = str(folder / "a.py")
        asked_for = [{"file_path": file}, {"file_path": "a.py", "offset": 1}, {"file_path": file}]
        messages: list[dict[str, Any]] = [{"role": "user", "content": "Go."}]
        for number, (given, shown) in enumerate(zip(asked_for, ("1\told", stub, "1\tnew")), 1):
            messages.append({"role": "assistant", "content": [call(f"toolu_{number}", "Read", **given)]})
            messages.append({"role": "user", "content": [result(f"toolu_{number}", shown)]})
        record.write(exchange(folder, *messages))
        where = address("toolu_2", "Read", json.dumps(asked_for[1]).encode())
        assert tools.call("recall", {"what": where}, "").texts[1] == "1\told"

    def test_of_a_fetch_that_points_back_gives_the_page(self, tools: Tools, record: Record, folder: Path):
        given = {"url": "https://a.example/page", "prompt": "all of it"}
        pointer = "Already fetched https://a.example/page with the same prompt 40s ago in this conversation (tool call"
        messages: list[dict[str, Any]] = [{"role": "user", "content": "Go."}]
        for number, shown in enumerate(("the page", pointer)):
            messages.append({"role": "assistant", "content": [call(f"toolu_{number}", "WebFetch", **given)]})
            messages.append({"role": "user", "content": [result(f"toolu_{number}", shown)]})
        record.write(exchange(folder, *messages))
        where = address("toolu_1", "WebFetch", json.dumps(given).encode())
        assert tools.call("recall", {"what": where}, "").texts[1] == "the page"

    def test_brings_images_back(self, tools: Tools, record: Record, folder: Path):
        image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
        shot = call("toolu_1", "Bash", command="make audit")
        record.write(
            exchange(
                folder,
                {"role": "user", "content": "Go."},
                {"role": "assistant", "content": [shot]},
                {"role": "user", "content": [result("toolu_1", [{"type": "text", "text": "a picture"}, image])]},
            )
        )
        reply = tools.call("recall", {"what": self.WHERE}, "")
        assert reply.images == (("image/png", "aGk="),) and reply.texts[1] == "a picture\n[image]"

    def test_without_a_record_reads_the_clients_session_files(self, tools: Tools, folder: Path, tmp_path: Path):
        tools.record = None
        made = Session(cwd=str(folder))
        made.human("Go.")
        made.agent(call("toolu_1", "Bash", command="make audit"))
        made.answer("toolu_1", "128 sites")
        made.write(tmp_path / "config" / "projects" / folder_name(str(folder)) / f"{made.id}.jsonl")
        assert asked(tools, "recall", what=self.WHERE).endswith("128 sites")

    @pytest.mark.parametrize(
        "arguments", [{}, {"what": " "}, {"what": 3}, {"what": "a", "offset": -1}, {"what": "a", "offset": True}]
    )
    def test_refuses_what_means_nothing(self, tools: Tools, arguments: dict[str, Any]):
        reply = tools.call("recall", arguments, "")
        assert reply.error and len(reply.texts[0].splitlines()) == 1


class TestTheCheckpoint:
    def test_is_stored_with_the_machines_stamp(self, tools: Tools, record: Record, folder: Path):
        said = asked(tools, "micro_handoff", **DOCUMENT)
        assert said.startswith("checkpoint stored ") and str(folder) in said
        (held,) = record.documents(str(folder))
        assert json.loads(held.json) == DOCUMENT and json.loads(held.stamp)["directory"] == str(folder)
        assert held.address == address("toolu_x", HANDOFF, json.dumps(DOCUMENT).encode())

    def test_of_a_wrong_shape_is_refused_and_not_stored(self, tools: Tools, record: Record, folder: Path):
        reply = tools.call("micro_handoff", {"done": "a"}, "toolu_x")
        assert reply.texts[0].startswith("checkpoint refused:") and reply.error
        assert record.documents(str(folder)) == []

    def test_belongs_to_the_session_that_called_it_also_after_a_clear(self, tools: Tools, record: Record, folder: Path):
        self.risky(record, folder, "toolu_y")
        asked(tools, "micro_handoff", "toolu_y", **DOCUMENT)
        asked(tools, "micro_handoff", "toolu_y", **DOCUMENT)
        assert [held.session for held in record.documents(str(folder))] == ["another-id-after-a-clear"]

    def test_that_was_refused_hides_no_risk_from_the_next_one(self, tools: Tools, record: Record, folder: Path):
        """The second call begins where the last stored checkpoint stands, not behind the refused one."""
        refused = {**result("toolu_2", "checkpoint refused: done: a text is required"), "is_error": True}
        record.write(
            exchange(
                folder,
                {"role": "user", "content": "Go."},
                {"role": "assistant", "content": [call("toolu_1", "Bash", command="git log -1")]},
                {"role": "user", "content": [result("toolu_1", "a1b2c3d retry_policy.go:213")]},
                {"role": "assistant", "content": [call("toolu_2", HANDOFF, done="a")]},
                {"role": "user", "content": [refused]},
                answer=[call("toolu_3", HANDOFF, **DOCUMENT)],
            )
        )
        assert "not narrated" in asked(tools, "micro_handoff", "toolu_3", **DOCUMENT)

    def risky(self, record: Record, folder: Path, id: str) -> None:
        record.write(
            exchange(
                folder,
                {"role": "user", "content": "Go."},
                {"role": "assistant", "content": [call("toolu_1", "Bash", command="git log -1")]},
                {"role": "user", "content": [result("toolu_1", "a1b2c3d retry_policy.go:213")]},
                answer=[{"type": "text", "text": "Now the checkpoint."}, call(id, HANDOFF, **DOCUMENT)],
                session="another-id-after-a-clear",
            )
        )

    def test_hands_back_what_is_at_risk_once(self, tools: Tools, record: Record, folder: Path):
        self.risky(record, folder, "toolu_5")
        first = tools.call("micro_handoff", DOCUMENT, "toolu_5")
        assert first.error and first.texts[0].startswith("checkpoint refused:") and "not narrated" in first.texts[0]
        self.risky(record, folder, "toolu_6")
        second = tools.call("micro_handoff", DOCUMENT, "toolu_6")
        assert not second.error and second.texts[0].startswith("checkpoint stored")
        assert "not found" not in second.texts[0]

    def test_flags_a_claim_that_stays_unproven(self, tools: Tools, record: Record, folder: Path):
        claimed = {**DOCUMENT, "facts": [{"claim": "p99 is 41.7ms", "basis": "measured", "evidence": "wrk -t4"}]}
        for id in ("toolu_5", "toolu_6"):
            self.risky(record, folder, id)
            reply = tools.call("micro_handoff", claimed, id)
        assert "Stored as unproven" in reply.texts[0] and "41.7ms" in reply.texts[0]
        (held,) = record.documents(str(folder))
        assert "41.7ms" in json.loads(held.flags)["unproven"][0]

    @pytest.mark.parametrize("format", FORMATS)
    def test_is_made_of_the_recorded_history_of_every_format(
        self, tools: Tools, record: Record, folder: Path, format: str
    ):
        """What is at risk comes back, and the document's address is that of the call on the wire."""
        went, *_, stored = growing(format, parts=2, checkpoints=(1,))[1:]
        silent = went.replace(json.dumps(intent(0)).encode(), b'"Hm."')
        silent = silent.replace(json.dumps(gives(0)).encode(), b'"a1b2c3d retry_policy.go:213"')
        for said, instead in ((b'"read"', b'"Bash"'), (b"path", b"command"), (b"part_00.py", b"git log -1")):
            silent = silent.replace(said, instead)
        made = next(one.call for one in events.calls(request_of(stored)[0]) if one.call.name == "micro_handoff")
        answer = [{"type": "text", "text": "Now."}, call("call_c1", "micro_handoff", **json.loads(made.arguments))]
        record.write(replace(exchange(folder, answer=answer), body=silent))
        first, second = (tools.call("micro_handoff", json.loads(made.arguments), "call_c1") for _ in range(2))
        assert first.error and "not narrated" in first.texts[0], first.texts
        assert not second.error, second.texts
        (held,) = record.documents(str(folder))
        assert held.session == "s1" and (held.address == made.address or format == "gemini")

    def test_works_without_record_and_history(self, tools: Tools):
        tools.record = None
        said = asked(tools, "micro_handoff", **DOCUMENT)
        assert said.startswith("checkpoint stored") and "history was not found" in said


class TestOverStandardInputAndOutput:
    """As a client starts it: `cutline mcp`, the environment of a run, the official client library."""

    @asynccontextmanager
    async def session(self, folder: Path, record: Path | None):
        from mcp import ClientSession, StdioServerParameters
        from mcp.client.stdio import stdio_client

        environment = {
            "PATH": os.environ["PATH"], "HOME": str(folder), "CUTLINE_RECORD": str(record or ""),
            "CLAUDE_PROJECT_DIR": str(folder), "CLAUDE_CODE_SESSION_ID": "s1",
        }  # fmt: skip
        server = StdioServerParameters(
            command=sys.executable, args=["-P", "-m", "cutline", "mcp"], env=environment, cwd=str(folder)
        )
        async with stdio_client(server) as (incoming, outgoing), ClientSession(incoming, outgoing) as client:
            await client.initialize()
            yield client

    def test_lists_three_tools_and_answers(self, folder: Path, tmp_path: Path):
        (folder / "click.py").write_text("raise SystemExit('a module of the project was imported')")

        async def talk() -> None:
            async with self.session(folder, tmp_path / "data" / "record.db") as client:
                listed = (await client.list_tools()).tools
                assert [tool.name for tool in listed] == [tool["name"] for tool in mandate.TOOLS]
                assert listed[1].meta == {"anthropic/maxResultSizeChars": 500_000}
                # Else a client in its plan mode refuses them.
                assert all(tool.annotations is not None and tool.annotations.read_only_hint for tool in listed)
                said = await client.call_tool("say", {"text": "I read a.py, because it leaks."})
                assert said.content[0].text == "said" and not said.is_error
                stored = await client.call_tool("micro_handoff", DOCUMENT)
                assert stored.content[0].text.startswith("checkpoint stored")
                refused = await client.call_tool("micro_handoff", {"done": 1})
                assert refused.is_error and refused.content[0].text.startswith("checkpoint refused:")
                unknown = await client.call_tool("rm", {})
                assert unknown.is_error

        anyio.run(talk)
        with Record(tmp_path / "data" / "record.db", readonly=True) as held:
            assert len(held.documents()) == 1

    def test_two_servers_on_one_record(self, folder: Path, tmp_path: Path):
        async def talk() -> None:
            path = tmp_path / "data" / "record.db"
            async with (
                self.session(folder, path) as one,
                self.session(folder, path) as two,
                anyio.create_task_group() as group,
            ):
                for client in (one, two) * 5:
                    group.start_soon(client.call_tool, "micro_handoff", DOCUMENT)

        anyio.run(talk)
        with Record(tmp_path / "data" / "record.db", readonly=True) as held:
            assert len(held.documents()) == 10
