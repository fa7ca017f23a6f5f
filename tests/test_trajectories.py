"""What is read and shown only: trajectories, Inspect's logs, Markdown. Every recorded file, and every kind's own marks."""

import json
import os
import re
import struct
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import made
from conftest import SHARED
from cutline import events
from cutline.blocks import Kind
from cutline.errors import InputError
from cutline.sessions import aider, clients, specstory
from cutline.sessions.inspect import archive
from cutline.sessions.model import Session
from cutline.wire import anthropic as wire
from test_command_line import Shell, fails, shell  # noqa: F401

DATA = SHARED / "data"
ROWS: list[dict[str, Any]] = json.loads((DATA / "manifest.json").read_text()) if DATA.is_dir() else []
needs_data = pytest.mark.skipif(not ROWS, reason="the recorded sessions are not on this machine: no ../shared/data")
# Request bodies of an agent, which are read and cut as bodies.
BODIES = re.compile(r"openhands/(?:llm_completions|openhands_last-request)")
SHOWN = [row for row in ROWS if row["kind"] in clients.SHOWN and not BODIES.match(row["file"])]


def path_of(row: dict[str, Any]) -> Path:
    return DATA / "sessions" / row["file"]


def parts(path: Path) -> list[str]:
    """The sessions of a file: what a refusal to choose among them says there are."""
    try:
        clients.open_path(path)
    except InputError as error:
        total = int(re.search(r"holds (\d+)", str(error))[1])  # type: ignore[index]
        listed = re.search(r"there are: (.*)\)", str(error))[1].removesuffix(", …").split(", ")  # type: ignore[index]
        return listed if len(listed) == total else [str(number) for number in range(1, total + 1)]
    return [""]


def opened(path: Path) -> list[Session]:
    return [clients.open_path(path, part) for part in parts(path)]


def outline(session: Session) -> list[str]:
    """Each message as its origin's first letter and its blocks: words, +call, -result, [what is nobody's words]."""
    lines = []
    for origin, message in zip(session.history.origins, json.loads(session.history.body)["messages"], strict=True):
        told = []
        for block in message["content"]:
            if block["type"] == "tool_use":
                told.append(f"+{block['id']} {block['name']} {json.dumps(block['input'])}")
            elif block["type"] == "tool_result":
                content = block["content"]
                words = content if isinstance(content, str) else "".join(one.get("text", "?") for one in content)
                told.append(f"-{block['tool_use_id']}{'!' if block.get('is_error') else ''} {words}")
            elif block["type"] == "tool_addition":
                told.append(f"[{block['raw']}]")
            else:
                told.append(block.get("text", block.get("thinking", block["type"])))
        lines.append(f"{origin[0]}: {' '.join(told)}")
    return lines


def counts(session: Session) -> Counter[str]:
    request = wire.read(session.history.body)
    pairs, orphans = wire.pairs(request.messages)
    blocks = [block for message in request.messages for block in message.blocks]
    assert [len(places) for places in session.history.places] == [len(message.blocks) for message in request.messages]
    assert len(session.history.origins) == len(request.messages)
    return Counter(
        calls=sum(block.kind is Kind.CALL for block in blocks),
        results=sum(block.kind is Kind.RESULT for block in blocks),
        human=len(session.history.human),
        thinking=sum(block.kind is Kind.THINKING for block in blocks),
        pairs=len(pairs),
        orphans=orphans,
        control=sum(block.kind is Kind.CONTROL for block in blocks),
    )


# ----------------------------------------------------------------------------------------- every recorded file

DEMONSTRATION = (
    "11 calls, 10 observations and the demonstration's task (taken there for the task, and the task for a result) "
    "are of the demonstration that stands before the task: the harness's, not this agent's"
)
DIFFERENT = {
    "openhands/openhands_multi_swe_bench_output.jsonl": (
        {"results": 103},
        "3 observations are what the client looked up for the first message, 2 are errors that answer no call",
    ),
    "openhands/openhands_traj_basic_gui_mode.json": (
        {"results": 4},
        "4 observations say that the client's state changed, 3 are the empty ones behind messages",
    ),
    "swe-agent/swebench-2024-06-20_psf__requests-1142.traj": ({"calls": 20, "results": 19}, DEMONSTRATION),
    "swe-agent/swebench-2024-06-20_sphinx-doc__sphinx-9602.traj": ({"calls": 37, "results": 36}, DEMONSTRATION),
    "swe-agent/swe-agent_67__function_calling_replace_from_source_marshmallow-code__marshmallow-1867.traj": (
        {"results": 13, "human": 1},
        "the file calls the task an observation; nothing was called before it",
    ),
    "inspect/metr_small.eval": (
        {"human": 6},
        "70 messages in the user's place tell the tokens that were used: its scaffold's, not marked as input",
    ),
    "aider/aider_chat-history.md": (
        {"results": 0, "human": 1768},
        "Aider's output answers no call (it is harness text); inputs with only empty lines between them are several; "
        "8 headings of the agent's own begin with ####",
    ),
    "aider/monochromatic.aider.chat.history.md": ({"results": 0}, "Aider's output answers no call"),
    "aider/zen-mcp.aider.chat.history.md": ({"results": 0}, "Aider's output answers no call"),
    "specstory/getspecstory_2026-06-29_17-56-23Z.md": (
        {"calls": 0},
        "252 tool uses are rendered text, no tool blocks; 3 of the count stand in a quoted diff, 7 are names of ids",
    ),
}


@needs_data
@pytest.mark.parametrize("row", SHOWN, ids=lambda row: row["file"][:50])
def test_a_recorded_file_is_read_and_its_counts_are_met(row: dict[str, Any]):
    found: Counter[str] = Counter()
    for session in opened(path_of(row)):
        assert session.client == row["kind"] and not session.damage
        assert session.sealed and session.title
        found += counts(session)
    stats = row["stats"]
    expected = {"calls": stats["tool_calls"], "results": stats["tool_results"], "human": stats["human_msgs"]}
    told, why = DIFFERENT.get(row["file"], ({}, ""))
    assert {key: found[key] for key in expected} == expected | told, why
    assert all(expected[key] != value for key, value in told.items()), "no difference any more: take it out"
    assert found["orphans"] == 0 and found["pairs"] == found["results"]
    assert found["thinking"] == stats["thinking"]


# Where the counts of the other kinds are held against the manifest, record by record.
COUNTED = {
    "claude-code": "test_sessions_read.py",
    "codex": "test_codex_sessions.py",
    "pi": "test_pi_sessions.py",
    "gemini-cli": "test_gemini_cli_sessions.py",
    "copilot-cli": "test_copilot_cli_sessions.py",
    "opencode": "test_opencode_sessions.py",
}


@needs_data
def test_every_file_of_the_manifest_is_read_by_a_test():
    assert {row["kind"] for row in ROWS} == {*COUNTED, *clients.SHOWN, "wire"}
    tests = Path(__file__).parent
    for name in COUNTED.values():
        assert "tool_calls" in (tests / name).read_text() and "manifest.json" in (tests / name).read_text()
    bodies = [row for row in ROWS if BODIES.match(row["file"])]
    assert len(SHOWN) + len(bodies) == sum(row["kind"] in clients.SHOWN for row in ROWS)
    for row in ROWS:
        owner = clients._owner(path_of(row))
        if row["kind"] == "wire" or row in bodies:
            assert owner not in clients.SHOWN, f"{row['file']} is a body and taken for {owner}'s"
        elif row["kind"] != "claude-code":
            assert owner == row["kind"]
        else:
            assert not owner


COMMAND = re.compile(r"\s*<(?:command-(?:name|message)|bash-input)>")
MADE_BY_HAND = ("claude-code/claude-code-log_", "claude-code/agent-sessions_")


@needs_data
@pytest.mark.parametrize(
    "row", [row for row in ROWS if row["kind"] == "claude-code"], ids=lambda row: row["file"].split("/", 1)[1][:40]
)
def test_what_a_person_typed_in_claude_code_is_counted(row: dict[str, Any]):
    """The other counts of these files are held against their records; words are counted on the live branch."""
    try:
        session = clients.open_path(path_of(row))
    except InputError as error:
        assert "no live conversation" in str(error) and row["file"].startswith(MADE_BY_HAND)
        return
    messages, stats = json.loads(session.history.body)["messages"], row["stats"]
    typed = [messages[number]["content"] for number in session.history.human]
    texts = [one if isinstance(one, str) else next((b["text"] for b in one if "text" in b), "") for one in typed]
    # The manifest leaves out commands that a person typed, and words that waited in the client's queue.
    words = [text for text in texts if not COMMAND.match(text)]
    if stats["types"].get("queue-operation"):
        assert len(words) >= stats["human_msgs"] or stats["compactions"] or stats["branches"]
    elif stats["compactions"] or stats["branches"] or stats["sidechain"]:
        assert len(words) <= stats["human_msgs"]  # what is on another branch, or before a compaction, is not sent
    elif not row["file"].startswith(MADE_BY_HAND):
        assert len(words) == stats["human_msgs"]


def said(value: Any) -> Iterator[str]:
    """Every text that a file's messages hold: the contents, not what stands beside them."""
    if isinstance(value, str):
        yield value
    for part in value if isinstance(value, list) else ():
        yield part if isinstance(part, str) else part.get("text") or part.get("reasoning") or ""


def words_of(session: Session) -> str:
    """All that a history holds, one text behind another."""
    told = []
    for message in json.loads(session.history.body)["messages"]:
        for block in message["content"]:
            content = block.get("content", "")
            told += said(content)
            told.append(block.get("text") or block.get("thinking") or "")
            if "raw" in block:
                inside = json.loads(block["raw"])
                told += said(inside if isinstance(inside, str) else inside.get("content", ""))
            told.append(str(block.get("input", {}).get("command", "")) if block["type"] == "tool_use" else "")
    return "\n".join(told)


@needs_data
@pytest.mark.parametrize(
    "row", [row for row in SHOWN if row["kind"].endswith("swe-agent")], ids=lambda r: r["file"][:40]
)
def test_every_message_of_a_trajectory_is_in_its_history(row: dict[str, Any]):
    document = json.loads(path_of(row).read_bytes())
    messages = document if isinstance(document, list) else document.get("history") or document["messages"]
    told = words_of(clients.open_path(path_of(row)))
    for message in messages:
        for text in said(message["content"]):
            # An action in the text is taken apart: its fence, or the tags around it, are marks of the format.
            pieces = re.split(r"\n?```\w*\n?|</?command>", text) if message["role"] == "assistant" else [text]
            assert all(piece.strip() in told for piece in pieces), text[:200]


@needs_data
@pytest.mark.parametrize("row", [row for row in SHOWN if row["kind"] == "inspect"], ids=lambda row: row["file"][:40])
def test_every_message_of_every_sample_is_in_its_history(row: dict[str, Any]):
    path = path_of(row)
    if path.suffix == ".eval":
        with zipfile.ZipFile(path) as held:
            samples = [json.loads(held.read(name)) for name in held.namelist() if name.startswith("samples/")]
    else:
        samples = json.loads(path.read_bytes())["samples"]
    assert len(samples) == len(parts(path)) or len(parts(path)) == 1
    for sample in samples:
        session = clients.open_path(path, f"{sample['id']}_epoch_{sample['epoch']}")
        told = words_of(session)
        assert len(session.history.places) == len(sample["messages"])
        assert all(text in told for message in sample["messages"] for text in said(message["content"]))
        made = [call["id"] for message in sample["messages"] for call in message.get("tool_calls") or ()]
        assert [found.call.name != "" for found in events.calls(wire.read(session.history.body))] == [True] * len(made)


@needs_data
@pytest.mark.parametrize("row", [row for row in SHOWN if row["kind"] == "openhands"], ids=lambda row: row["file"][:50])
def test_every_word_call_and_result_of_openhands_is_in_its_history(row: dict[str, Any]):
    path = path_of(row)
    if path.suffix == ".jsonl":
        histories = {one["instance_id"]: one["history"] for one in map(json.loads, path.read_text().splitlines())}
    else:
        histories = {"": json.loads(path.read_bytes())}
    for part, history in histories.items():
        session = clients.open_path(path, part)
        told = words_of(session)
        calls = {(found.call.name, found.call.result) for found in events.calls(wire.read(session.history.body))}
        for event in history:
            meta = event.get("tool_call_metadata")
            if event.get("action") == "message":
                assert event["args"]["content"] in told
            elif meta and "observation" in event:
                assert (meta["function_name"], event["content"]) in calls
            elif meta:
                assert (meta["model_response"]["choices"][0]["message"]["content"] or "") in told


@needs_data
@pytest.mark.parametrize(
    "row", [row for row in SHOWN if row["kind"] in ("aider", "specstory")], ids=lambda r: r["file"]
)
def test_every_line_of_markdown_is_somebodys_or_nobodys(row: dict[str, Any]):
    """In the file's order, byte for byte; only marks, and empty lines around words, are not in the history."""
    path = path_of(row)
    told = words_of(clients.open_path(path))
    at = 0
    for line in path.read_text("utf-8").split("\n"):
        if row["kind"] == "aider":
            words = line[5:-2] if line.startswith("#### ") and line.endswith("  ") else line.strip()
        else:
            words = "" if re.match(r"_\*\*(User|Agent)|---$|# 2026-|<!-- ", line) else line
        found = told.find(words, at)
        assert found >= 0, line
        at = found + len(words)


# ------------------------------------------------------------------------------------- Markdown: whose words they are


class Aider:
    """Writes a chat history as Aider does: each method appends."""

    def __init__(self) -> None:
        self.text = "\n# aider chat started at 2026-01-02 03:04:05\n\n"

    def human(self, words: str) -> None:
        self.text += "\n#### " + "  \n#### ".join(words.splitlines() or ["<blank>"]).rstrip() + "  \n"

    def agent(self, words: str) -> None:
        self.text += "\n" + words.strip() + "\n\n"

    def output(self, words: str) -> None:
        self.text += f"> {words.strip()}".rstrip() + "  \n"


LINE = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Zl", "Zp", "Cs")), min_size=1, max_size=30).map(
    str.strip
)
PROSE = st.lists(
    st.one_of(LINE, st.sampled_from(["#### A heading", "> a quotation", "# Title", "```py", "", "    code", "---"])),
    min_size=1,
    max_size=6,
).map(lambda lines: "\n".join(["Well.", *lines, "So."]))


@given(st.lists(st.tuples(st.sampled_from(["human", "agent", "output"]), PROSE), min_size=1, max_size=8))
def test_aiders_marks_say_whose_the_words_are(tmp_path_factory: pytest.TempPathFactory, turns: list[tuple[str, str]]):
    writer = Aider()
    expected: list[tuple[str, str]] = []
    for who, words in turns:
        if who == "output" and expected and expected[-1][0] == "agent":
            words = words.partition("\n")[0]  # of several lines it could be a quotation of the agent's
        getattr(writer, who)(words)
        told = "\n".join(line.rstrip() for line in words.splitlines()) if who == "human" else words.strip()
        if expected and who == "agent" == expected[-1][0]:
            told = f"{expected.pop()[1]}\n\n\n{told}"  # two replies behind one another are one run of lines
        if who != "output":
            expected.append((who, told))
        else:
            expected.append(("harness", ""))
    path = tmp_path_factory.mktemp("aider") / "history.md"
    path.write_text(writer.text, encoding="utf-8")
    session = aider.open_session(path)
    messages = json.loads(session.history.body)["messages"]
    found = [
        (origin, message["content"][0].get("text", ""))
        for origin, message in zip(session.history.origins, messages, strict=True)
    ]
    assert [one for one in found if one[0] != "harness"] == [one for one in expected if one[0] != "harness"]


def test_an_output_of_several_lines_is_not_the_agents(tmp_path: Path):
    writer = Aider()
    writer.human("/test")
    writer.output("=== test session\nplatform x\n> quoted by the test\n2 passed")
    writer.agent("All pass.\n\n> as you said\n\n#### Summary\n\nDone.")
    (tmp_path / "h.md").write_text(writer.text)
    session = aider.open_session(tmp_path / "h.md")
    assert [line[0] for line in outline(session)] == ["h", "h", "h", "a"]
    assert outline(session)[-1] == "a: All pass.\n\n> as you said\n\n#### Summary\n\nDone."
    assert (session.title, session.last[:19]) == ("/test", "2026-01-02T03:04:05")


def specstory_of(*messages: tuple[str, str]) -> str:
    text = (
        "<!-- Generated by SpecStory, Markdown v2.1.0 -->\n\n# 2026-01-02 03:04:05Z\n\n<!-- Codex Session x (y) -->\n\n"
    )
    before = ""
    for heading, words in messages:
        text += "---\n\n" if before and before != heading.split()[0] else ""
        text += f"_**{heading}**_\n\n{words}\n\n"
        before = heading.split()[0]
    return text.rstrip("\n") + "\n"


def test_a_rendered_tool_use_is_nobodys_words(tmp_path: Path):
    fenced = "```text\n</details></tool-use>\n_**User (x)**_\n```"
    tool = f'<tool-use data-tool-type="shell" data-tool-name="Bash"><details>\n{fenced}\n</details></tool-use>'
    thought = "<think><details><summary>Thought Process</summary>\nhm\n</details></think>"
    path = tmp_path / "s.md"
    path.write_text(
        specstory_of(
            ("User (2026-01-02 03:04:05Z)", "Look.\n\n---\n\n<tool-use> is what I typed"),
            ("Agent (m-1 2026-01-02 03:04:06Z)", f"I look.\n\n{tool}\n\nFound, é."),
            ("Agent (m-1 2026-01-02 03:04:07Z)", thought),
            ("Agent - sidechain (m-2 2026-01-02 03:04:08Z)", "Another agent."),
            ("User", "Thanks."),
        )
    )
    session = specstory.open_session(path)
    assert outline(session) == [
        "h: Look.\n\n---\n\n<tool-use> is what I typed",
        "a: I look.",
        f"a: [{json.dumps(tool)}]",
        "a: Found, é.",
        f"a: {thought}",
        'h: ["Another agent."]',
        "h: Thanks.",
    ]
    assert (session.version, session.history.model, session.history.human) == ("2.1.0", "m-2", [0, 6])
    assert session.last == "2026-01-02T03:04:08+00:00"


# ------------------------------------------------------------------------------ trajectories: each version's own marks


def written(folder: Path, name: str, value: Any) -> Path:
    path = folder / name
    path.write_bytes(value if isinstance(value, bytes) else json.dumps(value, ensure_ascii=False).encode())
    return path


SYSTEM, TASK = {"role": "system", "content": "SYS"}, {"role": "user", "content": "Do it, é."}


def test_a_command_in_the_text_is_a_call_and_the_words_around_it_are_words(tmp_path: Path):
    told = {
        "trajectory_format": "mini-swe-agent-1",
        "messages": [
            SYSTEM,
            TASK,
            {"role": "assistant", "content": 'I list\\n "it".\n\n```bash\nls \\\n -la | grep "é"\n```\n\nThen on.'},
            {"role": "user", "content": "<returncode>0</returncode>"},
            {"role": "assistant", "content": "No command."},
            {"role": "user", "content": "Please always provide EXACTLY ONE action."},
            {"role": "assistant", "content": "```bash\na\n```\n```bash\nb\n```"},
            {"role": "user", "content": "Please always provide EXACTLY ONE action."},
            {"role": "assistant", "content": "```bash\nrm x\n```"},
            {"role": "user", "content": "Command not executed. The user rejected your command: keep x"},
        ],
    }
    session = clients.open_path(written(tmp_path, "x.json", told))
    assert outline(session) == [
        'h: ["SYS"]',
        "h: Do it, é.",
        'a: I list\\n "it". + bash {"command": "ls \\\\\\n -la | grep \\"\\u00e9\\""} Then on.',
        "r: - <returncode>0</returncode>",
        "a: No command.",
        'h: ["Please always provide EXACTLY ONE action."]',
        "a: ```bash\na\n```\n```bash\nb\n```",
        'h: ["Please always provide EXACTLY ONE action."]',
        'a: + bash {"command": "rm x"}',
        "h: Command not executed. The user rejected your command: keep x",
    ]
    assert session.history.human == [1, 9]


def test_a_trajectory_with_tool_calls_or_of_responses_is_read(tmp_path: Path):
    call = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
    usage = {"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 60}}
    extra = {"response": {"id": "r1", "model": "m-1", "usage": usage}, "timestamp": 1_700_000_000.5}
    items = [
        {"type": "reasoning", "summary": []},
        {"type": "message", "content": [{"type": "output_text", "text": "bye"}]},
        {"type": "function_call", "call_id": "c2", "name": "bash", "arguments": "not json"},
    ]
    told = {
        "info": {"mini_version": "2.2.7", "config": {"environment": {"cwd": "/w"}, "model": {"model_name": "p/m-1"}}},
        "messages": [
            SYSTEM,
            TASK,
            {"role": "assistant", "content": "Looking.", "tool_calls": [call], "extra": extra},
            {"role": "tool", "tool_call_id": "c1", "content": "a.py"},
            {"object": "response", "output": items, "usage": {"input_tokens": 7}, "model": "m-2"},
            {"type": "function_call_output", "call_id": "c2", "output": "b.py"},
            {"role": "user", "content": "stop", "extra": {"interrupt_type": "UserInterruption"}},
            {"role": "exit", "content": "patch"},
        ],
        "trajectory_format": "mini-swe-agent-1.1",
        "instance_id": "x__y-1",
    }
    session = clients.open_path(written(tmp_path, "x.traj.json", told))
    assert (session.id, session.version, session.cwd, session.history.model) == ("x__y-1", "2.2.7", "/w", "m-2")
    made = session.history.requests
    assert [(one.message, one.model, one.usage.input, one.usage.cache_read, one.usage.output) for one in made] == [
        (2, "m-1", 40, 60, 5),
        (4, "m-2", 7, 0, 0),
    ]
    assert session.last == "2023-11-14T22:13:20.500000+00:00"
    assert [line[:24] for line in outline(session)] == [
        'h: ["SYS"]',
        "h: Do it, é.",
        'a: Looking. +c1 bash {"c',
        "r: -c1 a.py",
        'a: {"type": "reasoning",',
        "r: -c2 b.py",
        "h: stop",
        'h: [{"role": "exit", "co',
    ]
    assert outline(session)[4].endswith('bye +c2 bash "not json"')


def event(number: int, source: str, **members: Any) -> dict[str, Any]:
    return {"id": number, "timestamp": f"2026-01-02T03:04:{number:02d}", "source": source, **members}


def test_openhands_events_without_the_models_answer_are_read(tmp_path: Path):
    told = [
        event(0, "agent", action="system", args={"content": "SYS", "openhands_version": "0.9"}),
        event(1, "user", action="message", args={"content": "Go.", "image_urls": ["data:image/png;base64,AA=="]}),
        event(2, "environment", observation="agent_state_changed", content="", extras={}),
        event(3, "agent", action="run", args={"command": "ls", "thought": "I look."}),
        event(4, "agent", observation="run", cause=3, content="a.py"),
        event(5, "agent", action="think", args={"thought": "hm"}),
        event(6, "agent", observation="think", cause=5, content="logged"),
        event(7, "user", action="run", args={"command": "pwd"}),
        event(8, "agent", observation="run", cause=7, content="/w"),
        event(9, "agent", observation="error", content="wrong parameter"),
        event(10, "agent", action="message", args={"content": "Done."}),
    ]
    session = clients.open_path(written(tmp_path, "t.json", told))
    assert outline(session)[1:] == [
        "h: Go. image",
        'a: I look. + run {"command": "ls", "thought": "I look."}',
        "r: - a.py",
        'a: + think {"thought": "hm"}',
        "r: - logged",
        f"h: [{json.dumps(told[7], ensure_ascii=False)}]",
        'h: ["/w"]',
        'h: ["wrong parameter"]',
        "a: Done.",
    ]
    assert (session.version, session.title, len(session.history.human)) == ("0.9", "Go.", 1)


def test_what_openhands_condensed_away_is_not_in_the_history(tmp_path: Path):
    condensed = {
        "forgotten_events_start_id": 1,
        "forgotten_events_end_id": 2,
        "summary": "They ran.",
        "summary_offset": 1,
    }
    told = [
        event(0, "user", action="message", args={"content": "Go."}),
        event(1, "agent", action="message", args={"content": "one"}),
        event(2, "agent", action="message", args={"content": "two"}),
        event(3, "agent", action="message", args={"content": "three"}),
        event(4, "agent", action="condensation", args=condensed),
        event(5, "user", action="message", args={"content": "On."}),
    ]
    session = clients.open_path(written(tmp_path, "t.json", told))
    assert outline(session) == ["h: Go.", "s: They ran.", "a: three", "h: On."]
    assert session.history.compacted


@pytest.fixture
def conversation(tmp_path: Path) -> Path:
    """A folder as OpenHands' SDK writes it; gives the first of its events' files."""
    words = lambda text: [{"type": "text", "text": text}]  # noqa: E731
    said = lambda source, text: {  # noqa: E731
        "kind": "MessageEvent",
        "source": source,
        "llm_message": {"role": "user" if source == "user" else "assistant", "content": words(text)},
    }
    made = {"id": "c1", "name": "terminal", "arguments": '{"command": "ls", "security_risk": "LOW"}', "origin": "x"}
    told: list[dict[str, Any]] = [
        {"kind": "SystemPromptEvent", "source": "agent", "system_prompt": {"type": "text", "text": "SYS"}, "tools": []},
        {**said("user", "Go."), "extended_content": words("a skill")},
        {"kind": "ConversationStateUpdateEvent", "source": "environment", "key": "k", "value": 1},
        {
            "kind": "ActionEvent",
            "source": "agent",
            "thought": words("I look."),
            "reasoning_content": "hm",
            "tool_name": "terminal",
            "tool_call_id": "c1",
            "tool_call": made,
            "llm_response_id": "r1",
            "action": {"kind": "TerminalAction", "command": "ls"},
        },
        {
            "kind": "ObservationEvent",
            "source": "environment",
            "tool_name": "terminal",
            "tool_call_id": "c1",
            "observation": {"kind": "TerminalObservation", "content": words("a.py"), "is_error": True},
        },
        said("agent", "Gone astray."),
        said("agent", "Done."),
        {"kind": "UnknownToUs", "source": "agent"},
    ]
    folder = tmp_path / "conversations" / "0123abcd"
    (folder / "events").mkdir(parents=True)
    parent = None
    for number, one in enumerate(told):
        head = {"id": f"e{number}", "timestamp": f"2026-01-02T03:04:{number:02d}", "source": one["source"]}
        # The sixth was left for another branch: the seventh goes on behind the fifth.
        told_parent = {"parent_id": "e4" if number == 6 else parent} if parent else {}
        path = folder / "events" / f"event-{number:05d}-e{number}.json"
        path.write_text(json.dumps(head | told_parent | one))
        parent = f"e{number}"
    counted = {
        "model": "p/m-1",
        "prompt_tokens": 50,
        "completion_tokens": 4,
        "cache_read_tokens": 20,
        "response_id": "r1",
    }
    state = {
        "workspace": {"working_dir": str(tmp_path / "project"), "kind": "LocalWorkspace"},
        "agent": {"llm": {"model": "p/m-1"}},
        "stats": {"usage_to_metrics": {"agent": {"token_usages": [counted]}}},
        "leaf_event_id": "e7",
    }
    (folder / "base_state.json").write_text(json.dumps(state))
    return folder / "events" / "event-00000-e0.json"


def test_a_conversation_of_the_sdk_is_read_along_its_live_branch(conversation: Path):
    session = clients.open_path(conversation.with_name("event-00003-e3.json"))
    assert outline(session) == [
        'h: [{"type": "text", "text": "SYS"}]',
        "h: Go.",
        'h: [{"type": "text", "text": "a skill"}]',
        'a: hm I look. +c1 terminal {"command": "ls", "security_risk": "LOW"}',
        "r: -c1! a.py",
        "a: Done.",
    ]
    assert (session.id, session.cwd[-7:], session.history.model) == ("0123abcd", "project", "p/m-1")
    assert [(one.usage.input, one.usage.cache_read) for one in session.history.requests] == [(30, 20)]
    conversation.with_name("event-00004-e4.json").write_text('{"id": "e4"')
    damaged = clients.open_path(conversation)
    assert len(damaged.damage) == 1 and "event-00004-e4.json" in damaged.damage[0]


# ------------------------------------------------------------------------------------------------- Inspect's logs

TURNS = [
    {"id": "s", "role": "system", "content": "SYS"},
    {
        "id": "u",
        "role": "user",
        "source": "input",
        "content": [{"type": "image", "image": "attachment://0a1b"}, {"type": "text", "text": "What?"}],
    },
    {
        "id": "a",
        "role": "assistant",
        "source": "generate",
        "model": "m-1",
        "content": [{"type": "reasoning", "reasoning": "hm", "signature": "sig"}, {"type": "text", "text": "I ask."}],
        "tool_calls": [{"id": "c1", "function": "bash", "arguments": {"cmd": "attachment://ffff", "n": 1.50}}],
    },
    {
        "id": "t",
        "role": "tool",
        "tool_call_id": "c1",
        "content": "",
        "error": {"type": "timeout", "message": "too slow"},
    },
    {"id": "w", "role": "user", "content": "[usage] 3 tokens"},
    {"id": "b", "role": "assistant", "content": 'Lost: attachment://dead "attachment://0a1b"'},
]
USAGE = {"input_tokens": 8, "output_tokens": 3, "input_tokens_cache_read": 90, "input_tokens_cache_write": 2}


def sample(number: int = 1, epoch: int = 1) -> dict[str, Any]:
    answer = {"model": "m-1", "choices": [{"message": TURNS[2], "stop_reason": "x"}], "usage": USAGE, "z": float("nan")}
    asked = {
        "event": "model",
        "model": "p/m-1",
        "input": TURNS[:2],
        "output": answer,
        "timestamp": "2026-01-02T03:04:05Z",
    }
    texts = {"0a1b": "data:image/png;base64,QUJD", "ffff": "ls é", "bbbb": "nobody asks for it"}
    events = [{"event": "state"}, asked]
    return {
        "id": number,
        "epoch": epoch,
        "messages": TURNS,
        "scores": {"x": float("nan")},
        "events": events,
        "attachments": texts,
    }


HEADER = {
    "version": 2,
    "status": "success",
    "eval": {"task": "quiz", "created": "2026-01-01", "packages": {"inspect_ai": "0.3"}},
}
ASKED = [
    'h: ["SYS"]',
    "h: image What?",
    'a: hm I ask. +c1 bash {"cmd": "ls \\u00e9", "n": 1.5}',
    "r: -c1! too slow",
    'h: ["[usage] 3 tokens"]',
    'a: Lost: attachment://dead "attachment://0a1b"',
]


def log_of(path: Path, *samples: dict[str, Any], compression: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile_for(compression).ZipFile(path, "w", compression) as held:
        held.writestr("_journal/start.json", json.dumps(HEADER))
        for one in samples:
            held.writestr(f"samples/{one['id']}_epoch_{one['epoch']}.json", json.dumps(one, ensure_ascii=False))
        held.writestr("header.json", json.dumps(HEADER))
    return path


def zipfile_for(compression: int) -> Any:
    if compression == 93 and sys.version_info < (3, 14):
        from backports.zstd import zipfile as backported

        return backported
    return zipfile


@pytest.mark.parametrize(
    "compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, 93], ids=["stored", "deflate", "zstd"]
)
def test_an_archived_log_is_read_with_what_its_messages_refer_to(tmp_path: Path, compression: int):
    session = clients.open_path(log_of(tmp_path / "x.eval", sample(), compression=compression))
    assert outline(session) == ASKED
    assert b'"n": 1.5' in session.history.body and session.history.human == [1]
    (made,) = session.history.requests
    assert (made.message, made.model, made.message_id, made.timestamp[:19]) == (2, "m-1", "a", "2026-01-02T03:04:05")
    assert (made.usage.input, made.usage.cache_read, made.usage.cache_write_5m, made.usage.output) == (8, 90, 2, 3)
    assert (session.title, session.version) == ("quiz, sample 1", "0.3")
    assert session.damage == ()


def test_a_log_in_json_is_read_in_whatever_order_it_is(tmp_path: Path):
    one = sample()
    turned = dict(reversed(one.items()))
    for order in (one, turned):
        session = clients.open_path(written(tmp_path, "x.json", HEADER | {"samples": [order]}))
        assert outline(session) == ASKED
    del one["attachments"]["ffff"]
    session = clients.open_path(written(tmp_path, "x.json", HEADER | {"samples": [one]}))
    assert session.damage == ("References of messages that lead to nothing in the log: 1.",)


def test_a_sample_in_chunks_is_read_by_its_references(tmp_path: Path):
    pool = [{"id": "x", "role": "user", "content": "on another branch"}, *TURNS]
    numbered = json.loads(
        json.dumps(pool).replace("attachment://0a1b", "attachment://0").replace("attachment://ffff", "attachment://2")
    )
    outside = {"id": 1, "epoch": 1, "message_refs": [[1, 4], [4, 99]], "sequences": {}}
    with zipfile.ZipFile(tmp_path / "x.eval", "w") as held:
        held.writestr("header.json", json.dumps(HEADER))
        held.writestr("samples/1_epoch_1/sample.json", json.dumps(outside))
        held.writestr("samples/1_epoch_1/messages/0.json", json.dumps(numbered[:3]))
        held.writestr("samples/1_epoch_1/messages/3.json", json.dumps(numbered[3:]))
        held.writestr("samples/1_epoch_1/attachments/0.json", json.dumps(["data:image/png;base64,QUJD", "no"]))
        held.writestr("samples/1_epoch_1/attachments/2.json", json.dumps(["ls é"]))
        held.writestr("samples/1_epoch_1/events/0.json", json.dumps(sample()["events"]))
    session = clients.open_path(tmp_path / "x.eval")
    assert [line.replace('attachment://0"', 'attachment://0a1b"') for line in outline(session)] == ASKED
    assert len(session.history.requests) == 1


@pytest.mark.parametrize("form", ["eval", "json"])
def test_one_of_several_samples_is_named_behind_the_path(tmp_path: Path, form: str):
    samples = [sample(1), sample(2, 1), sample(2, 2), sample(10)]
    path = tmp_path / f"2026-01-02T03-04-05-00-00_quiz_DN2wbX2ZvACsBpjwptzBRo.{form}"
    if form == "eval":
        log_of(path, *samples)
    else:
        written(tmp_path, path.name, HEADER | {"samples": samples})
    asks = {
        "": "holds 4 samples; name one, as in “",
        "2": "no sample “2” among its 4; give one of: 1_epoch_1, 2_epoch_1, 2_epoch_2, 10_epoch_1",
        "3": "no sample “3”",
    }
    for part, says in asks.items():
        with pytest.raises(InputError, match=re.escape(says)):
            clients.open_path(path, part)
    assert clients.open_path(path, "10").id == "DN2wbX2ZvACsBpjwptzBRo#10_epoch_1"
    assert clients.resolve(f"{path}#2_epoch_2", tmp_path).title == "quiz, sample 2, epoch 2"


# ------------------------------------------------------------------------------------------------------ bad input

KINDS = {
    "openhands": [event(0, "user", action="message", args={"content": "Go."})],
    "swe-agent": {
        "environment": "x",
        "trajectory": [],
        "history": [{"role": "user", "content": "Go.", "agent": "main"}],
    },
    "mini-swe-agent": {"trajectory_format": "mini-swe-agent-1.1", "messages": [TASK]},
    "inspect": HEADER | {"samples": [sample()]},
    "aider": b"# aider chat started at 2026-01-02 03:04:05\n\n#### Go.  \n",
    "specstory": specstory_of(("User", "Go.")).encode(),
}


def refused(path: Path, says: str, part: str = "") -> None:
    with pytest.raises(InputError) as caught:
        clients.open_path(path, part)
    message = str(caught.value)
    assert says in message and message.startswith(f"{path}: ") and "\n" not in message
    assert ";" in message, "it says what to do"


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_known_by_what_is_in_it(kind: str, tmp_path: Path):
    session = clients.open_path(written(tmp_path, "no-ending", KINDS[kind]))
    assert session.client == kind
    assert clients.client(kind).resume(session.id) == []
    refused(tmp_path / "no-ending", "no sample “x”" if kind == "inspect" else "leave “#x” out", "x")


@pytest.mark.parametrize(
    ("kind", "value", "says"),
    [
        ("openhands", b'[{"id":0,"timestamp":"t","source":"user","action":"message","args":{"content":"x', "not JSON"),
        ("openhands", KINDS["openhands"] * 2 + [3, None, []], ""),
        ("openhands", KINDS["openhands"][0], "one event outside of a folder events"),
        ("openhands", b'{"instance_id":"a","test_result":{}}', "no history in it"),
        ("swe-agent", {"trajectory": [], "history": [], "info": {"history": [{"role": "x"}]}}, "no history in it"),
        ("swe-agent", b'{"environment":"x","trajectory":[{"action":"ls"}]', "the JSON ends too early"),
        ("mini-swe-agent", {"trajectory_format": "mini-swe-agent-1", "messages": []}, "no messages in it"),
        ("mini-swe-agent", b'{"trajectory_format":"mini-swe-agent-1","messages":[{"content":"\xff"}]}', "UTF-8"),
        ("inspect", HEADER | {"samples": []}, "no sample in it"),
        ("inspect", HEADER, "no sample in it"),
        ("inspect", HEADER | {"samples": [sample() | {"messages": []}]}, "no messages in it"),
        ("inspect", json.dumps(HEADER | {"samples": [sample()]}).encode()[:900], "not JSON"),
        ("aider", b"# aider chat started at 2026-01-02 03:04:05\n\xff\n", ""),
        ("specstory", b"<!-- Generated by SpecStory, Markdown v2.1.0 -->\n\n# 2026\n", "nobody says anything in it"),
    ],
)
def test_what_is_torn_or_empty_is_told_in_one_line(kind: str, value: Any, says: str, tmp_path: Path):
    path = written(tmp_path, "file", value)
    assert clients._owner(path) == kind
    if says:
        refused(path, says)
    else:
        assert clients.open_path(path).history.places


@pytest.mark.parametrize("kind", clients.SHOWN)
def test_what_can_not_be_opened_is_told_in_one_line(kind: str, tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "empty").touch()
    (tmp_path / "binary").write_bytes(b"\x7fELF\0\0" * 99)
    for name, says in {
        ".": "is a directory",
        "no": "no such file",
        "pipe": "no regular file",
        "empty": "empty",
    }.items():
        with pytest.raises(InputError, match=says):
            clients.client(kind).open_session(tmp_path / name)
    with pytest.raises(InputError, match=r"(not JSON|no chat begins|nobody says|expected).*;"):
        clients.client(kind).open_session(tmp_path / "binary")


def test_a_deep_or_a_wrong_member_is_no_traceback(tmp_path: Path):
    deep: Any = b"[" * 50_000
    refused(written(tmp_path, "a", b'{"environment":"x","trajectory":[],"history":[' + deep), "nested too deeply")
    for junk in (None, 3, "x", [], {}, [None], {"role": 5}, {"role": "assistant", "content": 7, "tool_calls": "x"}):
        for kind, member in (("swe-agent", "history"), ("mini-swe-agent", "messages")):
            value = dict(KINDS[kind]) | {member: [*KINDS[kind][member], junk]}  # type: ignore[index]
            assert outline(clients.open_path(written(tmp_path, "b", value)))[0].startswith("h: ")
        one = sample() | {
            "messages": [*TURNS, junk],
            "attachments": junk,
            "events": [junk, {"event": "model", "output": junk}],
        }
        assert outline(clients.open_path(written(tmp_path, "c", HEADER | {"samples": [one]})))[0] == ASKED[0]
        told = [*KINDS["openhands"], event(1, "agent", action="run", args=junk, tool_call_metadata=junk)]
        assert outline(clients.open_path(written(tmp_path, "d", told)))[0] == "h: Go."


def test_a_line_without_an_end_is_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("cutline.sessions.shown._LONGEST", 1_000)
    refused(written(tmp_path, "a", KINDS["aider"] + b"x" * 2_000), "a line of more than 1,000 bytes")


class TestHostileArchives:
    def test_a_torn_or_foreign_archive(self, tmp_path: Path):
        whole = log_of(tmp_path / "x.eval", sample()).read_bytes()
        for size in (4, 30, len(whole) // 2, len(whole) - 30):
            refused(written(tmp_path, "torn.eval", whole[:size]), "a zip archive that can't be read")
        with zipfile.ZipFile(tmp_path / "other.zip", "w") as held:
            held.writestr("word/document.xml", "x")
        refused(tmp_path / "other.zip", "a zip archive, but no log in it")

    def test_a_damaged_entry(self, tmp_path: Path):
        for compression in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, 93):
            data = bytearray(log_of(tmp_path / "x.eval", sample(), compression=compression).read_bytes())
            at = data.find(b"samples/1_epoch_1.json") + 60
            data[at : at + 40] = bytes(40)
            refused(written(tmp_path, "x.eval", bytes(data)), "samples/1_epoch_1.json: ")

    def test_an_entry_that_is_encrypted_or_compressed_in_an_unknown_way(self, tmp_path: Path):
        data = log_of(tmp_path / "x.eval", sample()).read_bytes()
        for offset, value in ((8, 1), (10, 97)):  # in the directory's entries: the flags, the method
            changed = bytearray(data)
            at = -1
            while (at := changed.find(b"PK\x01\x02", at + 1)) >= 0:
                struct.pack_into("<H", changed, at + offset, value)
            refused(written(tmp_path, "x.eval", bytes(changed)), ".json: ")

    def test_names_lead_nowhere(self, tmp_path: Path):
        inside = tmp_path / "inside"
        inside.mkdir()
        with zipfile.ZipFile(inside / "x.eval", "w") as held:
            held.writestr("header.json", json.dumps(HEADER))
            for name in (
                "samples/../../evil_epoch_1.json",
                "/samples/1_epoch_1.json",
                "samples/\x1b[2J_epoch_1.json",
            ):
                held.writestr(name, json.dumps(sample()))
        before = sorted(tmp_path.rglob("*"))
        with pytest.raises(InputError) as caught:
            clients.open_path(inside / "x.eval")
        assert str(caught.value).isprintable()
        assert clients.open_path(inside / "x.eval", "../../evil").history.places
        assert sorted(tmp_path.rglob("*")) == before

    def test_a_bomb_is_read_no_further_than_a_bound(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(archive, "MOST", 1 << 20)
        large = sample() | {"events": [{"event": "x", "z": "0" * 4_000_000}]}
        path = log_of(tmp_path / "x.eval", large)
        assert path.stat().st_size < 20_000
        refused(path, "more than 1,048,576 bytes when unpacked")
        # One that lies about its size is read as far as it says, and found to be torn.
        data = bytearray(path.read_bytes())
        at = data.rfind(b"PK\x01\x02", 0, data.rfind(b"samples/1_epoch_1.json"))
        struct.pack_into("<I", data, at + 24, 5_000)
        refused(written(tmp_path, "lies.eval", bytes(data)), "samples/1_epoch_1.json: ")


# ------------------------------------------------------------------------------------------------- finding them


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in os.environ:
        if name.startswith(("OPENHANDS_", "FILE_STORE", "SWE_AGENT_", "MSWEA_", "INSPECT_", "AIDER_", "XDG_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    (project / "inner").mkdir()
    monkeypatch.chdir(project)
    return tmp_path


def found(kind: str, cwd: Path | None = None) -> list[tuple[str, str]]:
    return [(one.id, one.title) for one in clients.client(kind).sessions(cwd)]


def test_each_kind_is_found_where_it_lies_and_where_its_variable_says(
    home: Path, conversation: Path, monkeypatch: pytest.MonkeyPatch
):
    project, log_id = home / "project", "DN2wbX2ZvACsBpjwptzBRo"
    for folder in ("logs/deep", "trajectories/me/run", ".specstory/history"):
        (project / folder).mkdir(parents=True)
    log_of(project / "logs" / "deep" / f"2026-01-02T03-04-05-00-00_quiz_{log_id}.eval", sample(1), sample(2))
    written(project / "logs", "settings.json", {"version": 1})
    written(project / "trajectories" / "me" / "run", "x__y-1.traj", KINDS["swe-agent"])
    written(project, ".aider.chat.history.md", KINDS["aider"])
    written(project / ".specstory" / "history", "2026-01-02_03-04-05Z-go.md", KINDS["specstory"])
    expected = {
        "inspect": [(log_id, "quiz (2 samples)")],
        "swe-agent": [("x__y-1", "Go.")],
        "aider": [(".aider.chat.history", "Go.")],
        "specstory": [("2026-01-02_03-04-05Z-go", "Go.")],
    }
    for kind, listed in expected.items():
        assert found(kind, project) == listed
    assert found("aider", project / "inner") == expected["aider"], "up to the project's root"
    assert found("specstory", project / "inner") == expected["specstory"]
    assert found("aider", home) == found("inspect", home) == []
    elsewhere = home / "elsewhere"
    elsewhere.mkdir()
    for name, kind, path in (
        ("INSPECT_LOG_DIR", "inspect", project / "logs"),
        ("SWE_AGENT_TRAJECTORY_DIR", "swe-agent", project / "trajectories"),
        ("AIDER_CHAT_HISTORY_FILE", "aider", project / ".aider.chat.history.md"),
    ):
        monkeypatch.setenv(name, str(path))
        assert found(kind, elsewhere) == expected[kind]
        assert path in clients.client(kind).places()
    monkeypatch.setenv("INSPECT_LOG_DIR", f"file://{project / 'logs'}")
    assert found("inspect", elsewhere) == expected["inspect"]
    monkeypatch.setenv("INSPECT_LOG_DIR", "s3://bucket/logs")
    assert found("inspect", project) == []


def test_what_lies_in_the_home_folder_is_of_the_directory_that_it_names(
    home: Path, conversation: Path, monkeypatch: pytest.MonkeyPatch
):
    told = {
        "info": {"mini_version": "2", "config": {"environment": {"cwd": str(home / "project")}}},
        **KINDS["mini-swe-agent"],
    }
    folder = home / "config"
    folder.mkdir()
    written(folder, "last_mini_run.traj.json", told)
    monkeypatch.setenv("MSWEA_GLOBAL_CONFIG_DIR", str(folder))
    assert found("mini-swe-agent") == found("mini-swe-agent", home / "project") == [("last_mini_run", "Do it, é.")]
    assert found("mini-swe-agent", home) == []
    assert found("openhands") == []
    for name, value in (("OPENHANDS_PERSISTENCE_DIR", home), ("OPENHANDS_CONVERSATIONS_DIR", home / "conversations")):
        monkeypatch.setenv(name, str(value))
        assert found("openhands") == found("openhands", home / "project") == [("0123abcd", "Go.")]
        assert found("openhands", home) == []
        monkeypatch.delenv(name)
    old = home / "home" / ".openhands" / "sessions" / "77" / "events"
    old.mkdir(parents=True)
    for number, one in enumerate([event(0, "agent", action="system", args={}), *KINDS["openhands"]]):
        written(old, f"{number}.json", one | {"id": number})
    assert found("openhands") == [("77", "Go.")]
    assert clients.resolve("77", home).title == "Go."


# --------------------------------------------------------------------------------------------- the command line


@pytest.mark.parametrize(
    "kind", [kind if kind == "inspect" else pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS]
)
def test_it_is_shown_and_not_cut(shell: Shell, kind: str):  # noqa: F811
    path = str(written(shell.project, "a-file", KINDS[kind]))
    shown = shell("show", path).stdout.decode()
    markdown = kind in ("aider", "specstory")
    assert ("holds no tool blocks, so nothing in it can be cut" if markdown else "is read and shown only") in shown
    told = json.loads(shell("show", path, "--json").stdout)
    assert told["sealed"] and told["damage"] == [] and told["rows"]["human text"]["blocks"] == 1
    advice = "goes on with its words elsewhere" if markdown else "--dry-run shows what a cut would leave"
    for command in ("cut", "resume"):
        assert fails(shell(command, path), 2, advice).count(";") == 1
    if kind != "inspect":
        fails(shell("cut", path, "--dry-run"), 3)  # nobody has called anything in it
    assert sorted(one.name for one in shell.project.iterdir()) == ["a-file"]


def test_a_call_is_recalled_by_its_address_and_a_cut_is_worked_out(shell: Shell):  # noqa: F811
    path = str(log_of(shell.project / "x.eval", sample(1), sample(2)))
    fails(shell("show", path), 2, "holds 2 samples; name one, as in “x.eval#1”")
    shown = shell("show", f"{path}#2", "--holes").stdout.decode()
    address = re.search(r"\b[0-9a-f]{16}\b", shown)[0]  # type: ignore[index]
    assert shell("recall", "-s", f"{path}#2", address, "--raw").stdout == b"too slow"
    done = shell("cut", "--dry-run", f"{path}#2")
    assert done.returncode == 0 and "whole body" in done.stdout.decode()


def test_a_clients_own_session_comes_first(shell: Shell):  # noqa: F811
    history = shell.project / ".specstory" / "history"
    history.mkdir(parents=True)
    rendered = written(history, f"{made.ID[:8]}-rendered.md", KINDS["specstory"])
    alone = json.loads(shell("--json").stdout)
    assert alone["path"] == str(rendered) and alone["cut"] is None
    assert "holds no tool blocks" in shell().stdout.decode()
    real = shell.session()
    os.utime(real, (1, 1))
    assert json.loads(shell("--json").stdout)["path"] == str(real)
    assert json.loads(shell("show", made.ID[:8], "--json").stdout)["path"] == str(real)
    assert [one["client"] for one in json.loads(shell("ls", "--json").stdout)] == ["specstory", "claude-code"]


# ------------------------------------------------------------------------------------------- scale, and the tools


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read from /proc")
@pytest.mark.parametrize("form", ["json", "eval", "swe-agent", "openhands"])
def test_a_trajectory_of_100_mb_is_read_in_80_mb(tmp_path: Path, form: str):
    """Its weight is in what is passed over: events, steps, the answers that come with each action."""
    noise = json.dumps("Ünïcödé wörds 123.45 — line\n" * 2_000, ensure_ascii=False)
    path = tmp_path / "large"
    if form == "openhands":
        made = event(1, "agent", action="run", args={"command": "ls"}, tool_call_metadata={"noise": "NOISE"})
        head, item, tail = json.dumps(KINDS["openhands"])[:-1], "," + json.dumps(made), "]"
    elif form == "swe-agent":
        history = json.dumps([{"role": "user", "content": "Go.", "agent": "main"}])
        head, item, tail = (
            '{"environment":"x","trajectory":[{"action":"a"}',
            ',{"query":"NOISE"}',
            f'],"history":{history}}}',
        )
    else:
        one = json.dumps(sample() | {"events": []})
        head, tail = one.split('"events": []')
        head, item, tail = head + '"events": [0', ',{"event":"model","input":"NOISE"}', "]" + tail
    item = item.replace('"NOISE"', noise)
    whole = [head, *[item] * (100_000_000 // len(item.encode())), tail]
    if form == "eval":
        log_of(path)
        with (
            zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as held,
            held.open("samples/1_epoch_1.json", "w") as entry,
        ):
            entry.writelines(piece.encode() for piece in whole)
    else:
        before, behind = (json.dumps(HEADER)[:-1] + ',"samples":[', "]}") if form == "json" else ("", "")
        path.write_text("".join([before, *whole, behind]), "utf-8")
    code = (
        "import re, sys; from pathlib import Path; from cutline.sessions import clients;"
        "s = clients.open_path(Path(sys.argv[1])); print(s.client, len(s.history.places),"
        "re.search(r'VmHWM:\\s*(\\d+) kB', open('/proc/self/status').read())[1])"
    )
    source = Path(__file__).resolve().parents[1] / "src"
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(source)},
    )
    client, messages, peak = done.stdout.split()
    assert client == (form if form in clients.SHOWN else "inspect") and int(messages) > 0
    assert int(peak) * 1024 <= 80_000_000, f"peak {int(peak):,} kB"
