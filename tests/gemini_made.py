"""Sessions of Gemini CLI made up for tests: written as the client writes them, in each of its three shapes."""

import json
from pathlib import Path
from typing import Any

import pytest

from conftest import SHARED
from cutline.sessions.cutting import execute, prospect
from cutline.sessions.gemini_cli import open_session
from cutline.sessions.neutral import NeutralSession

RECORDED = sorted((SHARED / "data" / "sessions" / "gemini-cli").glob("*.json*"))
needs_data = pytest.mark.skipif(not RECORDED, reason="the recorded sessions are not on this machine: no ../shared/data")
ID = "5e551000-0000-4000-8000-000000000001"
NOTE = "mcp_cutline_micro_handoff"
DOCUMENT = {"done": "counted", "open": "the sum", "went_wrong": "nothing"}
META = {"sessionId": ID, "projectHash": "ab" * 32, "startTime": "2026-10-05T09:00:00.000Z", "kind": "main"}

Record = dict[str, Any]


class Writer:
    """Writes a session as the client does."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def record(self, type_: str, content: Any, **members: Any) -> Record:
        number = len(self.records) + 1
        made = {"id": f"m{number}", "timestamp": f"2026-10-05T09:00:{number:02d}.000Z", "type": type_}
        self.records.append({**made, "content": content, **members})
        return self.records[-1]

    def human(self, *texts: str) -> Record:
        return self.record("user", [{"text": text} for text in texts])

    def agent(self, words: Any, *calls: Record, thoughts: tuple[str, ...] = (), **members: Any) -> Record:
        made = [
            {"subject": "S", "description": thought, "timestamp": "2026-10-05T10:00:00.000Z"} for thought in thoughts
        ]
        tokens = {"input": 900, "output": 20, "cached": 600, "thoughts": 5, "tool": 0, "total": 925}
        more = {"thoughts": made, "tokens": tokens, "model": "gemini-3-pro-preview"}
        return self.record("gemini", words, **more, **({"toolCalls": list(calls)} if calls else {}), **members)

    def lines(self, *more: Record) -> bytes:
        return b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in [META, *self.records, *more])

    def document(self) -> bytes:
        return json.dumps({**META, "messages": self.records}, indent=2, ensure_ascii=False).encode()

    def contents(self) -> bytes:
        """The same talk as `/chat save` writes it."""
        found: list[Record] = []
        for record in self.records:
            content = record["content"]
            parts = content if isinstance(content, list) else [{"text": content}] if content else []
            calls = record.get("toolCalls", [])
            parts = parts + [{"functionCall": {key: made[key] for key in ("id", "name", "args")}} for made in calls]
            found.append({"role": "user" if record["type"] == "user" else "model", "parts": parts})
            if calls:
                found.append({"role": "user", "parts": [part for made in calls for part in made["result"]]})
        return json.dumps({"history": found, "authType": "gemini-api-key"}, indent=2).encode()


def answer(id_: str, name: str, output: Any) -> Record:
    response = output if isinstance(output, dict) else {"output": output}
    return {"functionResponse": {"id": id_, "name": name, "response": response}}


def made(id_: str, output: Any, name: str = "run_shell_command", **members: Any) -> Record:
    """A completed call, its id behind the tool's name as newer versions write it."""
    id_ = f"{name}__{id_}"
    arguments = DOCUMENT if name == NOTE else {"command": f"run {id_}"}
    done = {"id": id_, "name": name, "args": arguments, "status": "success", "resultDisplay": f"shown: {output}"}
    return {**done, "result": [answer(id_, name, output)], **members}


def twice(record: Record) -> Record:
    """The message of their own in which newer versions keep the results of a message's calls a second time."""
    parts = [part for made_ in record["toolCalls"] for part in made_["result"]]
    return {"id": f"{record['id']}-again", "timestamp": record["timestamp"], "type": "user", "content": parts}


def talk(*, repeated: bool = True) -> Writer:
    """Two calls, a checkpoint with a call beside it, one call more, a second prompt."""
    writer = Writer()
    writer.record("user", [{"text": "<session_context>\nToday is Monday.\n</session_context>"}])
    writer.human("Count “é” \u2028 😀, please.")
    steps = [
        writer.agent("I count.", made("a", "1\n2\n3"), made("b", "looked"), thoughts=("Two at once.",)),
        writer.agent("It counts to 3.", made("c", "41\n42")),
        writer.agent("A note.", made("d", "aside"), made("n", "checkpoint stored", NOTE), thoughts=("Time.",)),
        writer.agent("Now the sum.", made("e", "820")),
    ]
    writer.agent("The sum is 820.")
    writer.human("Thanks.")
    writer.agent("You are welcome.")
    if repeated:
        for step in steps:
            writer.records.insert(writer.records.index(step) + 1, twice(step))
    return writer


def written(folder: Path, data: bytes, name: str = "session-2026-10-05T09-00-5e551000.jsonl") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def blocks(session: NeutralSession) -> list[tuple[str, str, str]]:
    """(role, kind, words or id) of each block."""
    found = []
    for message in json.loads(session.history.body)["messages"]:
        for block in message["content"]:
            key = {"text": "text", "tool_use": "id", "tool_result": "tool_use_id"}.get(block["type"], "thinking")
            found.append((message["role"], block["type"], block.get(key, "")))
    return found


def said(session: NeutralSession) -> list[tuple[str, str, str]]:
    """Its blocks without reasoning, which every shape spells in its own way."""
    return [one for one in blocks(session) if one[1] != "thinking"]


def kinds(session: NeutralSession) -> dict[str, int]:
    told = [kind for _, kind, _ in blocks(session)]
    return {kind: told.count(kind) for kind in ("tool_use", "tool_result", "thinking", "image")}


def cut(path: Path, **options: Any) -> tuple[NeutralSession, Path]:
    """Cut a session file; the copy read again, and its path."""
    copy = execute(prospect(open_session(path), **options))[0]
    return open_session(copy.path), copy.path


GOOD = talk(repeated=False).lines()
