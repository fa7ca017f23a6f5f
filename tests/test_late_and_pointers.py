"""Two things that only a live session shows: thinking made before the cut was switched on, and results that point back."""

import json
from typing import Any

import pytest

from cutline import CutError, cut, verify
from cutline.memo import Memo
from cutline.wire import anthropic as wire

Block = dict[str, Any]


def body(*messages: dict[str, Any], model: str = "claude-opus-5-5") -> bytes:
    held = {"model": model, "thinking": {"type": "adaptive"}, "tools": [], "messages": list(messages)}
    return json.dumps(held).encode()


def agent(*blocks: Block) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def world(*blocks: Block) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def call(id: str, name: str, **given: Any) -> Block:
    return {"type": "tool_use", "id": id, "name": name, "input": given}


def result(id: str, content: str) -> Block:
    return {"type": "tool_result", "tool_use_id": id, "content": content}


def text(words: str) -> Block:
    return {"type": "text", "text": words}


THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "c2lnbmVk"}
START = (
    {"role": "user", "content": "Find the leak."},
    agent(text("Reading."), call("c1", "WebFetch", url="https://a.example/", prompt="all")),
    world(result("c1", "the whole page")),
    agent(call("h1", "mcp__cutline__micro_handoff", done="x", open="x", went_wrong="x")),
    world(result("h1", "checkpoint stored")),
)
TAIL = (agent(THOUGHT, text("On."), call("c2", "Bash", command="ls")), world(result("c2", "a b")))


class TestALateCut:
    """Thinking behind the seam that was made over the uncut history goes, where the model may bind it to that."""

    def test_takes_the_tails_thinking_of_a_bound_model_and_proves_it(self):
        before = body(*START, *TAIL)
        kept, late = cut(before), cut(before, late=True)
        assert b'"thinking": "Hm."' in kept.body and b'"thinking": "Hm."' not in late.body
        assert verify(before, late.body, late=True).thinking.count == 1

    @pytest.mark.parametrize("mutant", [False, True])
    def test_is_not_the_other_cut_to_the_proof(self, mutant: bool):
        before = body(*START, *TAIL)
        with pytest.raises(CutError) as failed:
            verify(before, cut(before, late=mutant).body, late=not mutant)
        assert failed.value.rule in (3, 7)

    def test_changes_nothing_where_the_model_does_not_bind_its_thinking(self):
        before = body(*START, *TAIL, model="claude-sonnet-4-5")
        assert cut(before, late=True).body == cut(before).body

    def test_leaves_no_message_without_content(self):
        before = body(*START, agent(THOUGHT, call("c2", "Bash", command="ls")), world(result("c2", "a b")))
        after = json.loads(cut(before, late=True).body)
        assert all(message["content"] for message in after["messages"])


class TestAFetchThatPointsBack:
    def test_is_filled_with_the_page_that_left(self):
        pointer = (
            "Already fetched https://a.example/ with the same prompt 40s ago in this conversation (tool call c1). "
            "WebFetch caches pages, so use that earlier result."
        )
        again = call("c3", "WebFetch", url="https://a.example/", prompt="all")
        before = body(*START, agent(text("Again."), again), world(result("c3", pointer)))
        done = cut(before)
        filled = json.loads(done.body)["messages"][-1]["content"][0]["content"]
        assert filled.startswith(pointer) and filled.endswith("the whole page")
        verify(before, done.body)


READ = "Wasted call — file unchanged since your last Read. Refer to that earlier tool_result instead."
STORED = (
    agent(call("h1", "mcp__cutline__micro_handoff", done="x", open="x", went_wrong="x")),
    world(result("h1", "checkpoint stored")),
)


class TestAReadThatPointsBack:
    """The client knows a file by its place, not by how a call spells it."""

    @pytest.mark.parametrize(
        ("first", "again"),
        [
            ({"file_path": "/w/a.py"}, {"file_path": "/w/a.py"}),
            ({"file_path": "/w/a.py"}, {"file_path": "a.py"}),
            ({"file_path": "a.py"}, {"file_path": "a.py"}),
            ({"file_path": "/w/a.py"}, {"file_path": "/w/sub/../a.py"}),
            ({"file_path": "/w//./a.py"}, {"file_path": "/w/a.py"}),
            ({"file_path": "/w/a.py"}, {"file_path": "/w/a.py", "offset": 1}),
            ({"offset": 1, "file_path": "/w/a.py", "limit": 9}, {"file_path": "/w/a.py", "limit": 9}),
        ],
    )
    def test_is_filled_however_the_file_is_named(self, first: dict[str, Any], again: dict[str, Any]):
        assert filled(first, again).endswith("left this context:\n1\trow = 1")

    @pytest.mark.parametrize(
        "again",
        [{"file_path": "/v/a.py"}, {"file_path": "/w/a.py", "offset": 2}, {"file_path": "/w/a.py", "limit": 1}],
    )
    def test_is_not_filled_with_what_another_question_was_answered(self, again: dict[str, Any]):
        assert filled({"file_path": "/w/a.py"}, again) == READ

    def test_is_not_filled_where_a_short_name_may_mean_two_files(self):
        other = (agent(call("c0", "Read", file_path="/v/a.py")), world(result("c0", "1\tother = 1")))
        assert filled({"file_path": "/w/a.py"}, {"file_path": "a.py"}, other) == READ

    @pytest.mark.parametrize("spelling", ["/w/a.py", "a.py", "/w/./a.py"])
    def test_is_not_filled_over_a_write(self, spelling: str):
        wrote = (
            agent(call("w1", "Write", file_path=spelling, content="new")),
            world(result("w1", "updated")),
        )
        assert filled({"file_path": "/w/a.py"}, {"file_path": "/w/a.py"}, between=wrote) == READ

    def test_is_not_filled_where_the_human_named_the_file_since(self):
        """The client then points to what it attached to the human's words: they stay, and may be newer."""
        named = (
            {
                "role": "user",
                "content": '<system-reminder>\nCalled the Read tool with the following input: {"file_path":"/w/a.py"}\n'
                "</system-reminder>",
            },
            {
                "role": "user",
                "content": "<system-reminder>\nResult of calling the Read tool:\n1\trow = 2\n</system-reminder>",
            },
        )
        assert filled({"file_path": "/w/a.py"}, {"file_path": "a.py"}, between=named) == READ
        assert filled({"file_path": "/w/a.py"}, {"file_path": "a.py"}, named).endswith("\n1\trow = 1")


def filled(
    first: dict[str, Any],
    again: dict[str, Any],
    before: tuple[dict[str, Any], ...] = (),
    between: tuple[dict[str, Any], ...] = (),
) -> str:
    """What the agent is given for the second of two reads, with a checkpoint and `between` in between."""
    whole = body(
        {"role": "user", "content": "Go."},
        *before,
        agent(call("c1", "Read", **first)),
        world(result("c1", "1\trow = 1")),
        *STORED,
        *between,
        agent(text("Again."), call("c2", "Read", **again)),
        world(result("c2", READ)),
    )
    done = cut(whole)
    verify(whole, done.body)
    found: str = json.loads(done.body)["messages"][-1]["content"][0]["content"]
    return found


class TestAMemoInALiveSession:
    """The client declares the checkpoint tool behind the messages: its name stands in every body, cut or not."""

    TOOLS = ("mcp__cutline__micro_handoff", "Bash")

    def live(self, *messages: dict[str, Any]) -> bytes:
        tools = [{"name": name, "input_schema": {"type": "object"}} for name in self.TOOLS]
        return json.dumps({"model": "claude-opus-5-5", "messages": list(messages), "tools": tools}).encode()

    def test_a_history_that_grows_behind_a_seam_is_not_cut_anew(self, monkeypatch: pytest.MonkeyPatch):
        memo = Memo()
        assert memo.cut(self.live(*START)).changed
        monkeypatch.setattr("cutline.memo.cut_read", None)
        grown = self.live(*START, *TAIL)
        assert memo.cut(grown).body == cut(grown).body

    def test_thinking_behind_the_seam_that_goes_late_goes_from_what_grew_too(self):
        """The memo once copied it as it came."""
        memo = Memo()
        thought = {"type": "thinking", "thinking": "hm", "signature": "abc"}
        grown = self.live(*START, agent(thought, call("c9", "Bash", command="ls")), world(result("c9", "a")))
        for whole in (self.live(*START), grown):
            assert memo.cut(whole, late=True).body == cut(whole, late=True).body
        assert b"abc" in cut(grown).body and b"abc" not in cut(grown, late=True).body

    def test_a_history_without_a_checkpoint_is_read_on_from_where_it_was(self, monkeypatch: pytest.MonkeyPatch):
        memo, read = Memo(), []
        known = wire.read
        monkeypatch.setattr(
            "cutline.memo.wire.read", lambda body, one=None, upto=0: read.append(upto) or known(body, one, upto)
        )
        memo.cut(self.live(*START[:3]))
        grown = self.live(*START)
        assert memo.cut(grown).body == cut(grown).body
        assert read[:2] == [0, 3]


def test_a_system_message_behind_a_provider_s_own_result_moves_up_where_a_person_s_words_follow():
    """What stood between them left: nothing of the agent's follows any more, and there it may not stand."""
    search = [
        {"type": "server_tool_use", "id": "s1", "name": "tool_search_tool_bm25", "input": {"query": "x"}},
        {"type": "tool_search_tool_result", "tool_use_id": "s1", "content": {"type": "found"}},
    ]
    before = body(
        {"role": "user", "content": "Go."},
        agent(text("Looking."), *search, call("c1", "Bash", command="ls")),
        world(result("c1", "a b")),
        {"role": "system", "content": "be brief"},
        agent(call("c2", "Bash", command="ls -l")),
        world(result("c2", "a b"), text("And c?")),
        agent(call("h1", "micro_handoff", done="x", open="x", went_wrong="x")),
        world(result("h1", "stored")),
    )
    done = cut(before)
    assert [message["role"] for message in json.loads(done.body)["messages"]][:4] == [
        "user",
        "system",
        "assistant",
        "user",
    ]
    verify(before, done.body)
