"""A Claude Code session made for tests: real enough to be found, read, cut and resumed; every word is ours."""

import json
from pathlib import Path

CWD = "/home/user/proj"
FOLDER = "-home-user-proj"
ID = "11111111-2222-4333-8444-555555555555"


class Session:
    """Records in the order in which they are said, each linked to the one before."""

    def __init__(self, id: str = ID, model: str = "claude-sonnet-4-5", cwd: str = CWD) -> None:
        self.id, self.model, self.cwd = id, model, cwd
        self.records: list[dict] = []
        self.parent: str | None = None
        self.calls = 0
        self.messages = 0
        self.tokens = 12_000

    def _add(self, type_: str, message: dict, **more) -> dict:
        number = len(self.records) + 1
        record = {
            "parentUuid": self.parent,
            "isSidechain": False,
            "userType": "external",
            "cwd": self.cwd,
            "sessionId": self.id,
            "version": "2.1.150",
            "gitBranch": "main",
            "type": type_,
            "message": message,
            "uuid": f"{number:08x}-0000-4000-8000-000000000000",
            "timestamp": f"2026-10-05T09:{number // 60:02}:{number % 60:02}.000Z",
            **more,
        }
        self.records.append(record)
        self.parent = record["uuid"]
        return record

    def human(self, text: str) -> None:
        self._add("user", {"role": "user", "content": text})

    def agent(self, *blocks: dict) -> None:
        self.messages += 1
        self.tokens += 400
        for block in blocks:
            message = {
                "model": self.model,
                "id": f"msg_{self.messages:04}",
                "type": "message",
                "role": "assistant",
                "content": [block],
                "usage": {
                    "input_tokens": 10,
                    "cache_read_input_tokens": self.tokens,
                    "cache_creation_input_tokens": 400,
                    "output_tokens": 60,
                },
            }
            self._add("assistant", message, requestId=f"req_{self.messages:04}")

    def step(self, says: str, command: str, result: str, tool: str = "Bash", thinks: str = "") -> str:
        """One call with its words and its result; returns the call's id."""
        self.calls += 1
        id_ = f"toolu_{self.calls:04}"
        blocks = [{"type": "thinking", "thinking": thinks, "signature": "U0lH"}] if thinks else []
        blocks += [{"type": "text", "text": says}] if says else []
        self.agent(*blocks, {"type": "tool_use", "id": id_, "name": tool, "input": {"command": command}})
        self.answer(id_, result)
        return id_

    def answer(self, id_: str, result: str) -> None:
        block = {"tool_use_id": id_, "type": "tool_result", "content": result, "is_error": False}
        self._add(
            "user",
            {"role": "user", "content": [block]},
            toolUseResult={"stdout": result, "stderr": "", "interrupted": False},
        )

    def checkpoint(self, done: str = "the reader is fixed", facts: list[dict[str, str]] | None = None) -> None:
        self.calls += 1
        id_ = f"toolu_{self.calls:04}"
        self.agent(
            {"type": "text", "text": "A natural point: checkpoint."},
            {
                "type": "tool_use",
                "id": id_,
                "name": "mcp__cutline__micro_handoff",
                "input": {"done": done, "open": "nothing", "went_wrong": "nothing", "facts": facts or []},
            },
        )
        self.answer(id_, "Checkpoint stored.")

    def write(self, path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in self.records), "utf-8")
        return path


def small(checkpoint: bool = False, id: str = ID, cwd: str = CWD) -> Session:
    """Three human turns, eight calls with large results."""
    made = Session(id, cwd=cwd)
    made.human("The importer drops the last row. Find out why.")
    for number in range(4):
        made.step(
            f"Reading part {number} of importer.py, because the loop's bound is computed there.",
            f"sed -n {number * 40 + 1},{number * 40 + 40}p importer.py",
            "\n".join(f"line {number * 40 + n}: value_{n} = rows[{n}]" for n in range(60)),
            thinks="the bound, or the buffer?",
        )
    made.agent({"type": "text", "text": "It is range(len(rows) - 1) in importer.py:77."})
    made.human("Good. Fix it, and never touch the fixtures.")
    for number in range(4):
        made.step(
            f"Run {number} of the tests; I expect 31 passed.",
            f"pytest -q -x --run {number}",
            "\n".join(f"tests/test_{n}.py ......" for n in range(80)) + "\n31 passed",
        )
    made.agent({"type": "text", "text": "Fixed: 31 passed in each of four runs (measured)."})
    if checkpoint:
        made.checkpoint()
    made.human("Now write the changelog line.")
    made.step("Looking at the last entry, to keep its form.", "head -5 CHANGELOG.md", "## 1.2\n- faster")
    made.agent({"type": "text", "text": "Written."})
    return made
