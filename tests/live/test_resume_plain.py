"""What every cut copy leans on: the client writes a session file, and `--resume` sends all of it again."""

import json
from pathlib import Path
from typing import Any

import pytest

from live import claude
from live.upstream import Upstream, call, text

pytestmark = pytest.mark.slow


def flat(messages: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    """(role, type, what it says) of each block; the client's own reminders and system messages aside."""
    found: list[tuple[str, str, str]] = []
    for message in messages:
        content = message["content"]
        for block in [text(content)] if isinstance(content, str) else content:
            said = block.get("text") or block.get("id") or block.get("tool_use_id") or ""
            if message["role"] != "system" and not said.startswith("<system-reminder>"):
                found.append((message["role"], block["type"], said))
    return found


def test_a_resumed_session_sends_its_whole_history(tmp_path: Path) -> None:
    cwd, config = tmp_path / "project", tmp_path / "config"
    cwd.mkdir()
    binary = claude.install()
    script = [
        [text("I list the folder first."), call("toolu_01", "Bash", command="echo first", description="echo")],
        [call("toolu_02", "Bash", command="exit 3", description="fail")],
        [text("The second one failed with 3.")],
    ]
    with Upstream(script) as upstream:
        outcome = claude.Claude(binary, upstream.url).run("Look around.", cwd, config)
    assert outcome.code == 0, outcome.stderr
    session = outcome.result["session_id"]
    assert [path.stem for path in claude.sessions(config, cwd)] == [session]

    with Upstream([[text("Nothing more.")]]) as upstream:
        resumed = claude.Claude(binary, upstream.url).resume(session, "And now?", cwd, config)
    assert resumed.code == 0, resumed.stderr
    assert resumed.result["result"] == "Nothing more."
    assert len(upstream.conversation) == 1
    sent = upstream.conversation[0]
    assert flat(sent.messages) == [
        ("user", "text", "Look around."),
        ("assistant", "text", "I list the folder first."),
        ("assistant", "tool_use", "toolu_01"),
        ("user", "tool_result", "toolu_01"),
        ("assistant", "tool_use", "toolu_02"),
        ("user", "tool_result", "toolu_02"),
        ("assistant", "text", "The second one failed with 3."),
        ("user", "text", "And now?"),
    ]
    results = [block for message in sent.messages for block in message["content"] if "tool_use_id" in block]
    # The client may put a reminder behind a result's own text.
    own = [result["content"].split("\n\n<system-reminder>")[0] for result in results]
    assert own == ["first", "Exit code 3"]
    lines = claude.sessions(config, cwd)[0].read_text(encoding="utf-8").splitlines()
    assert {json.loads(line)["sessionId"] for line in lines if '"sessionId"' in line} == {session}
