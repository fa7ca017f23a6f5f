"""Sessions for the page's tests: one to be looked at, one that is long, one that means harm. Every word is ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import demo_made
import made

CHARACTERS = 3.6  # bytes a token: the usage that the made-up provider counts
HARNESS = 14_000

ATTACKS = (
    "<script>window.hit = 1</script>",
    "<img src=x onerror='window.hit = 1'>",
    "</script><script>window.hit = 1</script>",
    "</pre></textarea></title><svg onload=window.hit=1>",
    "javascript:window.hit=1//",
    "<!--<script>window.hit = 1//-->",
    "]]><script>window.hit = 1</script>",
    "\u2028window.hit = 1\u2029",
    "\ud83d<iframe srcdoc='<script>parent.hit = 1</script>'>",
    "<base href='https://attacker.example/'><link rel=stylesheet href=https://attacker.example/x.css>",
    "{{constructor.constructor('window.hit=1')()}}${window.hit=1}",
    "<meta http-equiv=refresh content='0;url=https://attacker.example/'>",
)


def demo(path: Path, cwd: str = made.CWD) -> Path:
    """The session of `cutline demo`, really carried out, as a Claude Code file with a provider's usage."""
    body = json.loads(demo_made.played(path).demo.whole)
    session = made.Session(model=body["model"], cwd=cwd)
    weight = 0
    for message in body["messages"]:
        size = len(json.dumps(message))
        if message["role"] == "assistant":
            _answer(session, message["content"], weight, size)
        elif any(block["type"] == "tool_result" for block in message["content"]):
            for block in message["content"]:
                if block["type"] == "tool_result":
                    session.answer(block["tool_use_id"], "".join(part["text"] for part in block["content"]))
                elif not block["text"].startswith("<system-reminder>"):
                    session.human(block["text"])
        else:
            session.human(message["content"][0]["text"])
        weight += size
    return session.write(path)


def _answer(session: made.Session, content: list[dict[str, Any]], before: int, size: int) -> None:
    first = len(session.records)
    session.agent(*content)
    sent = HARNESS + round(before / CHARACTERS)
    read = 0 if len(session.records) < 4 else max(0, sent - 900)
    for record in session.records[first:]:
        record["message"]["usage"] = {
            "input_tokens": 4,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": sent - read,
            "output_tokens": round(size / CHARACTERS),
        }


def long(path: Path, blocks: int = 5_000) -> Path:
    """A session of so many blocks."""
    session = made.Session()
    session.human("Go through every part, one after the other.")
    for number in range(blocks // 4):
        if number % 60 == 59:
            session.human(f"Good so far; part {number} is next.")
        session.step(
            f"Reading part {number}, because its bound is computed there.",
            f"sed -n {number},{number + 40}p part_{number}.py",
            "\n".join(f"line {number * 40 + n}: value_{n} = rows[{n}]" for n in range(30)),
            thinks="the bound, or the buffer?",
        )
    session.agent({"type": "text", "text": "All parts are read."})
    return session.write(path)


def unreadable(path: Path) -> Path:
    """A session file whose records are whole, and whose history no provider would take: a call without a name."""
    session = made.small()
    for record in session.records:
        for block in record["message"]["content"] if isinstance(record["message"]["content"], list) else ():
            if block["type"] == "tool_use":
                del block["name"]
    return session.write(path)


def hostile(path: Path) -> Path:
    """A session in which every text, name and field tries to become script."""
    session = made.Session(cwd="/home/user/<img src=x onerror=window.hit=1>")
    for attack in ATTACKS:
        session.human(f"{attack} please")
        session.step(attack, attack, attack, tool=attack, thinks=attack)
    fact = {"claim": ATTACKS[0], "basis": "measured", "evidence": ATTACKS[1]}
    call = {name: ATTACKS[1] for name in ("done", "open", "went_wrong", "next", "working_directory")}
    call |= {"facts": [fact], "dead_ends": list(ATTACKS), "recipes": [ATTACKS[0]]}
    session.agent({"type": "tool_use", "id": "toolu_c", "name": "micro_handoff", "input": call})
    session.answer("toolu_c", ATTACKS[2])
    session.human(ATTACKS[3])
    for record in session.records:
        record["gitBranch"] = ATTACKS[0]
        record["version"] = ATTACKS[1]
        if record["type"] == "assistant":
            record["message"]["model"] = ATTACKS[2]
    path.write_text("".join(json.dumps(record) + "\n" for record in session.records), "utf-8")  # half an emoji, escaped
    return path
