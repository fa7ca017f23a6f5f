"""The client's own caches behind a seam: what it takes to be in the context, and is gone, the agent gets again."""

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from cutline.blocks import address

from . import claude
from .run import BOUND, DOCUMENT, HANDOFF, OLDER, RECALL, Home, Ran, blocks, result_of, shared
from .upstream import Answer, Block, Recorded, Upstream, call, text, thinking

pytestmark = pytest.mark.slow

POINTING = "2.1.197"
"""A version that answers a repeated read with a pointer to the earlier one."""
POINTER = "Wasted call — file unchanged since your last Read."
FILLED = "[cutline] The earlier result, address "


def rows(name: str, count: int = 120) -> str:
    """A file too long for an answer that one has to remember, so that no checkpoint asks for it."""
    return "".join(f"{name}_{number} = {number}\n" for number in range(count))


def step(*calls: Block, words: str = "I go on.") -> list[Block]:
    return [thinking("So far so good."), text(words), *calls]


def read(id_: str, path: Path | str, **more: Any) -> Block:
    return call(id_, "Read", file_path=str(path), **more)


def handoff(id_: str) -> list[Block]:
    return step(call(id_, HANDOFF, **DOCUMENT), words="A natural point.")


def where(block: Block) -> str:
    """The address of a scripted call."""
    return address(block["id"], block["name"], json.dumps(block["input"]).encode())


def seams(turn: Recorded) -> list[str]:
    return [block["id"] for block in blocks(turn.messages, "tool_use") if block["name"] == HANDOFF]


def play(
    home: Home, script: Sequence[Answer], prompt: str = "Go.", *arguments: str, **more: Any
) -> tuple[Ran, Upstream]:
    """A run to its end, of which nothing was refused, and whose prefix changed at seams only."""
    with Upstream(script, strict=True, bound=True) as upstream:
        ran = home.run(upstream, prompt, *arguments, **more)
    assert ran.code == 0, ran.stderr
    assert upstream.refusals == [] and upstream.unused == 0
    turns = [turn for turn in upstream.conversation if "x-claude-code-agent-id" not in turn.headers]
    for before, after in pairwise(turns):
        if seams(before) == seams(after):
            assert shared(before, after) == len(before.messages), "a message that was sent before has changed"
    return ran, upstream


def test_a_repeated_read_gives_the_content_that_left(tmp_path: Path):
    """Whatever the file is called, over two seams, and `recall` of the pointer's own address gives the content too."""
    home = Home.make(tmp_path, POINTING)
    folder = home.project
    for name in ("a", "b", "c"):
        (folder / f"{name}.py").write_text(rows(name))
    again = read("toolu_a2", folder / "a.py")
    script = [
        step(read("toolu_a1", folder / "a.py"), read("toolu_b1", folder / "b.py"), read("toolu_c1", folder / "c.py")),
        handoff("toolu_h1"),
        step(again),
        step(read("toolu_b2", "b.py")),
        step(read("toolu_c2", folder / "c.py", offset=1)),
        step(call("toolu_r1", RECALL, what=where(again))),
        handoff("toolu_h2"),
        step(read("toolu_a3", folder / "a.py")),
        step(call("toolu_ls", "Bash", command="ls", description="look")),
        [text("Done.")],
    ]
    ran, upstream = play(home, script)
    for id_, name in (("toolu_a2", "a"), ("toolu_b2", "b"), ("toolu_c2", "c"), ("toolu_a3", "a")):
        seen = {
            result_of(turn.messages, id_)
            for turn in upstream.conversation
            if any(block["tool_use_id"] == id_ for block in blocks(turn.messages, "tool_result"))
        }
        (shown,) = seen  # the same on every later request
        assert shown.startswith(POINTER) and shown.count(FILLED) == 1
        assert f"\n57\t{name}_56 = 56\n" in shown and f"\n120\t{name}_119 = 119" in shown
    recalled = result_of(upstream.conversation[6].messages, "toolu_r1")
    assert f"found behind the pointer at {where(again)}" in recalled and "\n57\ta_56 = 56\n" in recalled
    assert [len(ran.session[key]) for key in ("checkpoints", "faults", "refusals")] == [2, 0, 0]


def test_a_file_that_changed_is_never_filled_with_what_it_was(tmp_path: Path):
    """Changed by the agent before the seam or behind it, by a command, or by the human who then names it."""
    home = Home.make(tmp_path, POINTING)
    folder = home.project
    for name in ("a", "b", "c", "d"):
        (folder / f"{name}.py").write_text(rows(name))
    edit = {"old_string": "_56 = 56\n", "new_string": "_56 = 'new'\n"}
    sed = f"sed -i \"s/c_56 = 56/c_56 = 'new'/\" {folder}/c.py"
    script = [
        step(*(read(f"toolu_{name}1", folder / f"{name}.py") for name in "abcd")),
        step(call("toolu_e1", "Edit", file_path=str(folder / "a.py"), **edit)),
        step(read("toolu_a2", folder / "a.py")),
        handoff("toolu_h1"),
        step(call("toolu_e2", "Edit", file_path=str(folder / "b.py"), **edit)),
        step(call("toolu_s1", "Bash", command=sed, description="change c")),
        step(*(read(f"toolu_{name}3", folder / f"{name}.py") for name in "abc")),
        [thinking("Enough."), text("Done.")],
    ]
    _, upstream = play(home, script)
    for name in "abc":
        shown = result_of(upstream.conversation[-1].messages, f"toolu_{name}3")
        assert f"57\t{name}_56 = 'new'\n" in shown and f"{name}_56 = 56" not in shown, name

    # The client attaches a file that the human names, and points there: what left may be older.
    (folder / "d.py").write_text(rows("d").replace("d_56 = 56", "d_56 = 'new'"))
    script = [step(read("toolu_d3", folder / "d.py")), [thinking("Enough."), text("Done.")]]
    _, upstream = play(home, script, "I have changed @d.py.", "--continue")
    last = upstream.conversation[-1].messages
    assert "d_56 = 'new'" in json.dumps(last) and "d_56 = 56" not in json.dumps(last)
    assert result_of(last, "toolu_d3").startswith(POINTER)


@pytest.mark.parametrize("model", [OLDER, BOUND])
def test_a_newer_client_reads_the_file_again(tmp_path: Path, model: str):
    home = Home.make(tmp_path)
    (home.project / "a.py").write_text(rows("a"))
    file = home.project / "a.py"
    script = [
        step(read("toolu_a1", file)),
        handoff("toolu_h1"),
        step(read("toolu_a2", file)),
        step(read("toolu_a3", file)),
        [text("Done.")],
    ]
    _, upstream = play(home, script, model=model)
    for id_ in ("toolu_a2", "toolu_a3"):
        shown = result_of(upstream.conversation[-1].messages, id_)
        assert "57\ta_56 = 56\n" in shown and FILLED not in shown


@pytest.mark.parametrize("version", [POINTING, claude.VERSION])
def test_a_file_that_was_read_before_the_seam_can_be_changed_behind_it(tmp_path: Path, version: str):
    """The client remembers that it was read, though the agent no longer sees it: nobody has to read it again."""
    home = Home.make(tmp_path, version)
    one, two = home.project / "one.py", home.project / "two.py"
    one.write_text(rows("one"))
    two.write_text(rows("two"))
    script = [
        step(read("toolu_r1", one), read("toolu_r2", two)),
        handoff("toolu_h1"),
        step(call("toolu_e1", "Edit", file_path=str(one), old_string="one_7 = 7\n", new_string="one_7 = 'seven'\n")),
        step(call("toolu_w1", "Write", file_path=str(two), content="two = 2\n")),
        [text("Done.")],
    ]
    _, upstream = play(home, script)
    assert "one_7 = 'seven'" in one.read_text() and two.read_text() == "two = 2\n"
    for id_ in ("toolu_e1", "toolu_w1"):
        # It says so of a context that the file has left: the notice says what left.
        assert "file state is current in your context" in result_of(upstream.conversation[-1].messages, id_)


def test_what_the_client_saved_to_a_file_and_its_task_list_outlive_the_seam(tmp_path: Path):
    home = Home.make(tmp_path)
    count = call("toolu_b1", "Bash", command="seq 1 30000", description="count")

    def saved(body: dict[str, Any]) -> list[Block]:
        shown = result_of(body["messages"], "toolu_c1")
        path = shown.split("Full output saved to: ")[1].split("\n")[0]
        return step(read("toolu_s1", path, offset=29_990, limit=5))

    script: list[Answer] = [
        step(
            call("toolu_t1", "TaskCreate", subject="Look at part nine", description="It is open.", activeForm="Looking")
        ),
        step(count, words="I run seq 1 30000, because the count matters; I expect 30000 at its end."),
        handoff("toolu_h1"),
        step(call("toolu_c1", RECALL, what=where(count))),
        saved,
        step(call("toolu_t2", "TaskList")),
        [text("Done.")],
    ]
    _, upstream = play(home, script, allowed="Bash,Read,TaskCreate,TaskList")
    last = upstream.conversation[-1].messages
    assert "29992\t29992" in result_of(last, "toolu_s1")
    assert "Look at part nine" in result_of(last, "toolu_t2")
    assert blocks(last, "tool_use")[0]["name"] == HANDOFF
