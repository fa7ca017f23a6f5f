"""The memo on the other formats: it gives what the cut gives, byte for byte, and reads only what is new."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import abroad
import conversations
from cutline import cut, verify
from cutline.memo import Memo

FORMATS = tuple(abroad.FORMATS)
LISTS = {"openai_chat": "messages", "openai_responses": "input", "gemini": "contents", "converse": "messages"}


def same(memo: Memo, body: bytes, **options: Any) -> None:
    found, wanted = memo.cut(body, **options), cut(body, **options)
    assert found.body == wanted.body
    assert (found.changed, found.reason, found.notices, found.removed) == (
        wanted.changed,
        wanted.reason,
        wanted.notices,
        wanted.removed,
    )


@pytest.mark.parametrize("format", FORMATS)
@settings(max_examples=12)
@given(data=st.data(), options=st.sampled_from(({}, {"join": None}, {"notice": False}, {"profile": "strict"})))
def test_generated_histories_that_grow_are_cut_as_without_it(format: str, data: Any, options: dict[str, Any]):
    memo = Memo()
    for body in data.draw(abroad.growing(format)):
        same(memo, body, **options)
        same(memo, body, **options)


@pytest.mark.parametrize("format", FORMATS)
def test_a_history_that_grew_is_not_cut_anew(format: str, monkeypatch: pytest.MonkeyPatch):
    """Behind a seam, only the first cut is a cut."""
    made: list[bytes] = []
    memo, bodies = Memo(), conversations.growing(format, 12, (3, 8))

    def counted(body: bytes, *rest: Any, **more: Any) -> Any:
        made.append(body)
        return whole(body, *rest, **more)

    from cutline import cut as library
    from cutline.cut import cut_native as whole

    monkeypatch.setattr("cutline.memo.cut_native", counted)
    for body in bodies:
        done = memo.cut(body)
        assert done.body == library(body).body
        assert not done.changed or verify(body, done.body)
    cuttable = [body for body in bodies if library(body).changed]
    assert len([body for body in made if library(body).changed]) == 2 < len(cuttable), "each of two seams once"


def more(format: str, whole: dict[str, Any], *items: Any) -> bytes:
    return json.dumps({**whole, LISTS[format]: [*whole[LISTS[format]], *items]}).encode()


def result(format: str, id: str, tool: str, text: str) -> Any:
    """A lone result, of a call that stands somewhere before."""
    *_, last = conversations._step(format, "", id, tool, {}, text)
    return last


CHANGES: dict[str, Callable[[str, dict[str, Any]], bytes]] = {
    "another model": lambda format, whole: more(format, {**whole, "model": "another"}),
    "another tool": lambda format, whole: more(format, {**whole, "tools": [], "toolConfig": {"tools": []}}),
    "a word in the beginning": lambda format, whole: json.dumps(whole).replace("Do all", "Did all").encode(),
    "white space": lambda format, whole: json.dumps(whole, indent=1).encode(),
    "a result that comes late": lambda format, whole: more(format, whole, result(format, "call_r0", "read", "again")),
    "a result of no call": lambda format, whole: more(format, whole, result(format, "nobody", "other", "lost")),
    "an item of an unknown role": lambda format, whole: more(format, whole, {"role": "stranger", "content": "x"}),
    "no object": lambda format, whole: more(format, whole, 3),
    "a reference to what the server holds": lambda format, whole: more(
        format, whole, {"type": "item_reference", "id": "msg_0"}
    ),
    "a compaction": lambda format, whole: more(format, whole, {"type": "compaction", "encrypted_content": "x"}),
    "the end of the list, twice": lambda format, whole: json.dumps(whole).encode() + b"]}",
    "nothing behind the turn": lambda format, whole: more(format, {**whole, LISTS[format]: whole[LISTS[format]][:-2]}),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("format", FORMATS)
def test_what_could_change_the_cut_is_cut_anew(format: str, change: str):
    memo = Memo()
    for known in conversations.growing(format, 8, (3,)):
        memo.cut(known)
    same(memo, CHANGES[change](format, json.loads(known)))
    same(memo, known)


@pytest.mark.parametrize("format", FORMATS)
def test_a_new_checkpoint_moves_the_seam(format: str):
    memo = Memo()
    for body in conversations.growing(format, 9, (2, 4, 7)):
        same(memo, body)


@pytest.mark.parametrize("format", FORMATS)
def test_conversations_that_share_a_memo(format: str):
    memo = Memo()
    one = conversations.growing(format, 8, (3,))
    two = [body.replace(b"Do all", b"Did all") for body in one]
    for pair in zip(one, two, strict=True):
        for body in pair:
            same(memo, body)
