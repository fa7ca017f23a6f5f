"""Two things that only a live session shows: thinking made before the cut was switched on, and results that point back."""

import json
from typing import Any

import pytest

from cutline import CutError, cut, verify

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
