"""The proof: it accepts what the cut makes of real histories, and rejects a cut that breaks one rule alone.

Each mutant is an output that a faulty cut could have made; it must be rejected under the number of its rule.
"""

import base64
import json
import random
import re
from collections.abc import Callable
from typing import Any

import pytest
from bodies import BUGS, CHECKPOINT, bodies, bodies_of, body, session_files

from cutline import CutError, cut, verify
from cutline.cut import cut_session
from cutline.errors import Unreadable
from cutline.verify.fates import read_model, tagged_narration
from cutline.verify.tree import read

STUB = "Wasted call — file unchanged since your last Read. Refer to that earlier tool_result instead."
MARK = {"type": "ephemeral"}
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}

Block = dict[str, Any]
Mutation = Callable[[bytes], bytes]


def text(words: str, **more: Any) -> Block:
    return {"type": "text", "text": words, **more}


def call(id: str, name: str = "Bash", **given: Any) -> Block:
    return {"type": "tool_use", "id": id, "name": name, "input": given}


def result(id: str, content: Any = "done", **more: Any) -> Block:
    return {"type": "tool_result", "tool_use_id": id, "content": content, **more}


def thought(words: str, signature: str = "c2lnbmVk") -> Block:
    return {"type": "thinking", "thinking": words, "signature": signature}


def agent(*blocks: Block) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def human(*blocks: Block) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def note(words: str) -> dict[str, Any]:
    return {"role": "system", "content": words}


HISTORY = [
    {"role": "user", "content": "Find why the sundial runs late. é"},
    agent(thought("Where to look?"), text("Reading the table for its longitude."), call("c1", "Read", file_path="CLAUDE.md")),
    human(result("c1", "rules")),
    note("The clock was set."),
    agent(text("The longitude lost its sign.", cache_control=MARK), call("c2", command="pytest -q")),
    human(result("c2", "1 failed"), IMAGE, text("Use metres, please.")),
    agent({"type": "sketch", "lines": [1.5]}, call("q1", "AskUserQuestion", question="East or west?")),
    human(result("q1", "West.")),
    agent(thought("Enough."), text("Checkpoint one."), call("k1", CHECKPOINT, done="the sign"), call("s1", command="date")),
    human(result("k1", "Checkpoint stored."), result("s1", "Monday")),
    agent(text(" \n"), call("c3", command="ls")),
    human(result("c3", "eot.py")),
    agent(text("Now the equation of time."), call("c4", "Read", file_path="/eot.py")),
    human(result("c4", 'def eot():\n    return 7  # "minutes"')),
    agent(text("It is a constant 7."), call("c5", command="python eot.py")),
    human(result("c5", "7")),
    agent(thought("Note it down."), text("Checkpoint two."), call("k2", CHECKPOINT, done="the constant")),
    human(result("k2", "Checkpoint stored.")),
    agent(thought("Look again."), text("Looking at eot.py again."), call("c6", "Read", file_path="/eot.py")),
    human(result("c6", STUB)),
    {"role": "user", "content": "Go on, then."},
]
# Spellings that no library would write again: a number with a trailing zero, an escape that need not be.
BEFORE = body(HISTORY).replace(b'"lines":[1.5]', b'"lines":[1.50]').replace("é".encode(), b"\\u00e9")
AFTER = cut(BEFORE).body


def spelled(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def swap(old: str, new: str) -> Mutation:
    """One thing, found once, is spelled differently."""

    def mutate(after: bytes) -> bytes:
        assert after.count(old.encode()) == 1, old
        return after.replace(old.encode(), new.encode())

    return mutate


def drop(value: str) -> Mutation:
    """An element with the comma before it, or else behind it, is gone."""

    def mutate(after: bytes) -> bytes:
        first = f",{value}".encode() not in after
        return swap(f"{value}," if first else f",{value}", "")(after)

    return mutate


def put_before(anchor: str, *values: Any) -> Mutation:
    """Elements more before the one that begins with `anchor`."""
    return swap(anchor, "".join(f"{spelled(value)}," for value in values) + anchor)


def chain(*mutations: Mutation) -> Mutation:
    def mutate(after: bytes) -> bytes:
        for mutation in mutations:
            after = mutation(after)
        return after

    return mutate


def notices(after: bytes) -> list[str]:
    """The two notices as they are spelled, without the blank line before."""
    found = [part.split('"}')[0] for part in after.decode().split("Checkpoint stored.\\n\\n")[1:]]
    assert len(found) == 2
    assert all(notice.startswith("[cutline] Left out") for notice in found)
    return found


def renote(number: int, change: Callable[[str], str]) -> Mutation:
    """One notice is changed."""
    return lambda after: swap(notices(after)[number], change(notices(after)[number]))(after)


def notice_before_the_clients_words(after: bytes) -> bytes:
    notice = notices(after)[0]
    return swap(f"Checkpoint stored.\\n\\n{notice}", f"{notice}\\n\\nCheckpoint stored.")(after)


def notice_of_the_other_stretch(after: bytes) -> bytes:
    first, second = notices(after)
    return swap(first, second)(after) if first != second else after


def notice_in_the_humans_mouth(after: bytes) -> bytes:
    notice = notices(after)[1]
    return chain(swap(f"\\n\\n{notice}", ""), swap("Go on, then.", f"Go on, then.\\n\\n{notice}"))(after)


def first_checkpoint_gone(after: bytes) -> bytes:
    after = re.sub(rb',\{"type":"tool_use","id":"k1".*?\}\}', b"", after)
    return re.sub(rb'\{"role":"user","content":\[\{"type":"tool_result","tool_use_id":"k1".*?"\}\]\},', b"", after)


ONE, TWO = "Reading the table for its longitude.", "The longitude lost its sign."
METRES = spelled(text("Use metres, please."))
SKETCH = '{"role":"assistant","content":[{"type":"sketch"'
CLOCK = spelled(note("The clock was set."))
C2, R2 = HISTORY[4]["content"][1], HISTORY[5]["content"][0]
Q1, A1 = spelled(HISTORY[6]["content"][1]), spelled(HISTORY[7])

MUTANTS: dict[str, tuple[int, Mutation]] = {
    # 1: nothing said is lost or changed
    "a word is changed": (1, swap("lost its sign", "lost the sign")),
    "an escape is respelled": (1, swap("late. \\u00e9", "late. é")),
    "two texts change places": (1, swap(f"{ONE}\\n\\n{TWO}", f"{TWO}\\n\\n{ONE}")),
    "two messages change places": (
        1,
        chain(drop(spelled(agent(text("Late.")))), lambda after: after)
        if False
        else swap("Find why the sundial runs late. \\u00e9", "Use metres, please."),
    ),
}
